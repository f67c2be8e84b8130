//! Reports of trackers, and their consequences for the session and the transaction of a pair.
//!
//! The problem: a report says what is, not why; what no text of the client explains may have been
//! done by stored code, which may have done more that is not reported. The mechanism: a text says
//! what it explains ([`Explanation`]); what is reported without that pins, since nobody knows what
//! else has changed.
//!
//! Invariant: what was reported is in the session of both from then on, or the client is pinned.

use crate::backend::Reports;
use crate::errors::reasons::PinReason;
use crate::pair::{Broken, Pair, UNREADABLE};
use session::reply_summary::ReplySummary;
use session::state::{BIG_SELECTS, CHARSET_VARIABLES, Session, is_paired_collation};
use session::statement::{Code, Explanation};
use std::rc::Rc;
use wire::track::{Change, changes};

/// Reported behind each write, and no setting (see [`session::last_gtid`]).
const LAST_GTID: &[u8] = b"last_gtid";
/// Character sets in which ASCII is no single byte: a text that restores a session is read wrongly
/// where its literals are in one, and the answers to the pool's questions come in one.
const WIDE: [&[u8]; 4] = [b"ucs2", b"utf16", b"utf16le", b"utf32"];

/// True if a variable says that results or literals are in such a character set.
pub(crate) fn is_wide(name: &[u8], value: &[u8]) -> bool {
    let set = value.split(|&byte| byte == b'_').next().unwrap_or_default();
    let named = (CHARSET_VARIABLES.iter()).any(|charset| charset.as_bytes() == name);
    named && WIDE.contains(&set)
}

/// Changes in a reply, while they are read.
struct Reported<'t> {
    /// Explanation of them by the texts.
    explanation: Explanation,
    /// The session before them.
    known: Rc<Session>,
    /// That with them. Most changes are a transaction's beginning and end, which no session keeps.
    session: Option<Session>,
    /// Collations that go with a character set, which is reported as well and may set them.
    collations: Vec<(&'t [u8], &'t [u8])>,
    /// Such a character set was.
    charset: bool,
    /// Reported value; `max_join_size` sets it too, without a report, and may come behind it.
    big_selects: Option<&'t [u8]>,
    /// Reason why the client keeps its backend from now on.
    pin: Option<PinReason>,
    /// True if a character set is one in which ASCII is no single byte.
    is_wide: bool,
    /// Something has changed, and it was not said what.
    is_bare: bool,
    /// The texts, or what else was reported, say what.
    is_explained: bool,
}

impl Reported<'_> {
    /// The session with the changes so far, to be changed.
    fn changed(&mut self) -> &mut Session {
        self.session.get_or_insert_with(|| (*self.known).clone())
    }
}

impl Pair<'_> {
    /// Takes what the client's answered statement has set.
    pub(crate) fn note_statement(
        &mut self,
        summary: &ReplySummary,
        explanation: Explanation,
    ) -> Result<(), Broken> {
        if !summary.changes.is_empty() {
            self.note_changes(summary, explanation)?;
        }
        if self.client.effects.retracking().is_some() {
            self.note_retracked(summary.error.is_none());
        }
        Ok(())
    }

    /// Applies what the trackers reported to the session that client and backend share.
    pub(crate) fn note_changes(
        &mut self,
        summary: &ReplySummary,
        explanation: Explanation,
    ) -> Result<(), Broken> {
        let mut reported = Reported {
            explanation,
            known: self.client.state.clone(),
            session: None,
            collations: Vec::new(),
            charset: false,
            big_selects: None,
            pin: None,
            is_wide: false,
            is_bare: false,
            is_explained: explanation != Explanation::None,
        };
        let read = changes(&summary.changes, |change| self.take(change, &mut reported));
        if read.is_err() {
            return Err(UNREADABLE);
        }
        if let Some(mut session) = reported.session {
            // In a text of several nobody can tell which of the two was set last.
            let both = reported.charset && !reported.collations.is_empty();
            if both && self.client.statement.is_several() {
                reported.pin.get_or_insert(PinReason::UnexplainedChange);
            }
            for (name, value) in reported.collations {
                // It was taken, so its name is one.
                let _ = session.set(name, value);
            }
            if let Some(value) = reported.big_selects {
                let _ = session.set(BIG_SELECTS, value);
            }
            self.adopt(session);
        }
        if reported.is_bare && !reported.is_explained {
            reported.pin.get_or_insert(PinReason::UnexplainedChange);
        }
        if let Some(pin) = reported.pin {
            self.pin(pin);
        }
        if reported.is_wide {
            self.pin(PinReason::WideCharset);
        }
        Ok(())
    }

    /// Takes one change that was reported.
    fn take<'t>(&mut self, change: Change<'t>, reported: &mut Reported<'t>) {
        let (client, backend) = (&mut *self.client, &mut *self.backend);
        let explains = reported.explanation == Explanation::Lasting;
        match change {
            Change::Variable { name, value } if name == LAST_GTID => {
                let gtid = self.context.gtids.entry(self.owner).or_default();
                gtid.set(value);
            }
            // SET STATEMENT: reported as if it lasted.
            Change::Variable { .. } if reported.explanation == Explanation::Passing => {}
            Change::Variable { name, .. } if client.is_no_setting(name) => {}
            // SET STATEMENT gives the value back behind its answer, and it is reported later, to
            // whoever is there.
            Change::Variable { name, value }
                if reported.explanation == Explanation::None
                    && client.statement.code == Code::None
                    && reported.known.value(name) == Some(value) =>
            {
                reported.is_explained = true;
            }
            Change::Variable { name, value } => {
                reported.is_wide |= is_wide(name, value);
                if name == BIG_SELECTS {
                    reported.big_selects = Some(value);
                }
                match is_paired_collation(name) {
                    Some(true) => reported.collations.push((name, value)),
                    paired => reported.charset |= paired.is_some(),
                }
                if !client.take_variable(reported.changed(), (name, value), explains) {
                    reported.pin.get_or_insert(PinReason::UnexplainedChange);
                }
            }
            Change::Schema(_) if backend.is_in_another_schema() => {
                reported.is_explained = true;
            }
            Change::Schema(schema) => {
                reported.is_explained = true;
                let schema = (!schema.is_empty()).then(|| schema.into());
                reported.changed().use_schema(schema);
            }
            Change::State => reported.is_bare = true,
            Change::TransactionState(_) | Change::TransactionCharacteristics(_) => {
                backend.transaction.take(&change);
            }
            Change::Gtids(_) | Change::Other(_) => {}
        }
    }

    /// Puts client and backend into this session together.
    fn adopt(&mut self, changed: Session) {
        let sessions = &mut *self.context.sessions;
        let session = sessions.intern(changed);
        let multi = self.backend.state.multi_statements;
        if self.context.server.flavour.is_mysql() {
            self.backend.note_typing(self.owner, &session);
        }
        let there = match self.backend.is_in_another_schema() {
            false => sessions.with_multi(&session, multi),
            true => {
                let mut elsewhere = (*session).clone();
                (elsewhere.schema, elsewhere.multi_statements) = (None, multi);
                sessions.intern(elsewhere)
            }
        };
        self.backend.enter(there);
        self.client.state = session;
        if let Some(schema) = self.client.schema_of_login() {
            self.context.schemas.learn(self.ends.pool, schema);
        }
    }

    /// Notes that an error may have ended the transaction, of which servers report late or in part.
    /// On MariaDB what is left to be reported is asked for; MySQL reports it in time.
    pub(crate) fn note_rolled_back(&mut self) {
        let code = self.client.statement.code != Code::None;
        let mysql = self.context.server.flavour.is_mysql();
        if !code && self.backend.transaction.rolled_back() && !mysql {
            self.backend.reports = Reports::Due(Explanation::Lasting);
        }
    }
}
