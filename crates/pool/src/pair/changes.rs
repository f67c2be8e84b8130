//! What trackers report, and what follows from it for the session and the transaction of a pair.
//!
//! The problem: a report says what is, not why; what no text of the client explains may have been
//! done by stored code, which may have done more that is not reported. The mechanism: a text says
//! what it explains ([`Explanation`]); what is reported without that pins, since nobody knows what
//! else has changed.
//!
//! Invariant: what was reported is in the session of both from then on, or the client is pinned.

use crate::backend::{Backend, Reports, SchemaThere};
use crate::client::Client;
use crate::errors::reasons::PinReason;
use crate::pair::trackers::PINNED;
use crate::pair::{Broken, Pair};
use session::read_back::Properties;
use session::reply_summary::ReplySummary;
use session::state::{BIG_SELECTS, CHARSET_VARIABLES, CLOCK, Session, is_paired_collation};
use session::statement::{Code, Explanation, Statement, Untracked};
use sql::classify::PinCause;
use wire::track::{Change, changes};

/// Reported behind each write, and no setting (see [`session::last_gtid`]).
const LAST_GTID: &[u8] = b"last_gtid";
/// Variables that servers report by themselves: each statement has its own.
const RECREATED: [&[u8]; 5] = [
    b"statement_id",
    b"last_insert_id",
    b"identity",
    b"warning_count",
    b"error_count",
];
/// Variables that a statement uses up; reported when they are set.
const USED_UP: [&[u8]; 4] = [b"timestamp", b"insert_id", b"rand_seed1", b"rand_seed2"];

/// Causes of pins of clients whose text sets one of these.
const USED: [PinCause; 2] = [PinCause::VariableInUse, PinCause::SpecialVariable];

/// How variables begin that say what is tracked.
const TRACKING: &[u8] = b"session_track_";
/// The one of them that no backend has on for the pool.
const TRACKING_GTIDS: &[u8] = b"session_track_gtids";
/// Character sets in which ASCII is no single byte: a text that restores a session is read wrongly
/// where its literals are in one, and the answers to the pool's questions come in one.
const WIDE: [&[u8]; 4] = [b"ucs2", b"utf16", b"utf16le", b"utf32"];

/// Whether a variable says that results or literals are in such a character set.
pub(crate) fn is_wide(name: &[u8], value: &[u8]) -> bool {
    let set = value.split(|&byte| byte == b'_').next().unwrap_or_default();
    let named = CHARSET_VARIABLES
        .iter()
        .any(|charset| charset.as_bytes() == name);
    named && WIDE.contains(&set)
}

impl<S> Client<S> {
    /// Whether a report that `timestamp` has changed comes of its own text.
    fn sets_clock(&self) -> bool {
        let touched = self.touched.as_ref();
        touched.is_some_and(|touched| touched.asks_clock())
    }

    /// Notes in its session what is reported of a variable. `false` where no text of its says so: a
    /// trigger or a view has done it, and may have done more. What the next statement uses up
    /// cannot be given back anyway.
    fn take_variable(
        &mut self,
        session: &mut Session,
        (name, value): (&[u8], &[u8]),
        explains: bool,
    ) -> bool {
        let used_up = || {
            USED.iter()
                .any(|&used| self.is_pinned_for(PinReason::Text(used)))
        };
        let said = match name {
            CLOCK => self.sets_clock(),
            _ => !USED_UP.contains(&name) || used_up(),
        };
        let kept = session.set(name, value).is_ok();
        let charset = CHARSET_VARIABLES
            .iter()
            .any(|charset| charset.as_bytes() == name);
        self.last.owed.changed =
            (self.last.owed.changed).union(Properties::COLLATION.when(charset));
        kept && explains && said
    }
}

impl<S> Backend<S> {
    /// Notes what a statement has done to savepoints. Where its client has gone, nobody knows what
    /// that may be.
    pub(crate) fn note_savepoint(&mut self, statement: Option<&Statement>, went: bool) {
        let set = statement.is_none_or(|statement| {
            statement.untracked.contains(Untracked::SAVEPOINT) && (went || statement.is_several())
        });
        let ended = statement
            .is_some_and(|statement| statement.untracked.contains(Untracked::NO_SAVEPOINT));
        self.transaction.note_savepoint(set, ended && went);
    }
}

impl<S> Pair<'_, S> {
    /// The client's statement is answered: takes what it has set.
    pub(crate) fn note_statement(
        &mut self,
        summary: &ReplySummary,
        explanation: Explanation,
    ) -> Result<(), Broken> {
        self.note_changes(summary, explanation)?;
        self.note_retracked(summary.error.is_none());
        Ok(())
    }

    /// Applies what the trackers reported to the session that client and backend share.
    pub(crate) fn note_changes(
        &mut self,
        summary: &ReplySummary,
        explanation: Explanation,
    ) -> Result<(), Broken> {
        if summary.changes.is_empty() {
            return Ok(());
        }
        let (client, backend) = (&mut *self.client, &mut *self.backend);
        let (owner, gtids) = (self.owner, &mut *self.context.gtids);
        // Most changes are a transaction's beginning and end, which no session keeps.
        let mut changed: Option<Session> = None;
        let known = client.session.clone();
        let passing = explanation == Explanation::Passing;
        let explains = explanation == Explanation::Lasting;
        let tracks = client.is_pinned_for(PINNED);
        let (mut pin, mut bare, mut explained) = (None, false, explains || passing);
        let mut wide = false;
        let (mut collations, mut charset) = (Vec::new(), false);
        let mut big_selects = None;
        let read = changes(&summary.changes, |change| match change {
            Change::Variable { name, value } if name == LAST_GTID => {
                gtids.entry(owner).or_default().set(value)
            }
            // SET STATEMENT: reported as if it lasted.
            Change::Variable { .. } if passing => {}
            Change::Variable { name, .. } if RECREATED.contains(&name) => {}
            // The pool's own.
            Change::Variable { name, .. }
                if name.starts_with(TRACKING) && name != TRACKING_GTIDS && !tracks => {}
            // SET STATEMENT gives the value back behind its answer, and it is reported later, to
            // whoever is there.
            Change::Variable { name, value }
                if explanation == Explanation::None
                    && client.statement.code == Code::None
                    && known.value(name) == Some(value) =>
            {
                explained = true;
            }
            Change::Variable { name, value } => {
                wide |= is_wide(name, value);
                if name == BIG_SELECTS {
                    big_selects = Some(value);
                }
                match is_paired_collation(name) {
                    Some(true) => collations.push((name, value)),
                    paired => charset |= paired.is_some(),
                }
                let session = changed.get_or_insert_with(|| (*known).clone());
                if !client.take_variable(session, (name, value), explains) {
                    pin = pin.or(Some(PinReason::UnexplainedChange));
                }
            }
            Change::Schema(_) if backend.schema == SchemaThere::Another => explained = true,
            Change::Schema(schema) => {
                explained = true;
                let session = changed.get_or_insert_with(|| (*known).clone());
                session.use_schema((!schema.is_empty()).then(|| schema.into()));
            }
            Change::State => bare = true,
            Change::TransactionState(state) => {
                backend.transaction.note_state(state);
            }
            Change::TransactionCharacteristics(sql) => {
                backend.transaction.note_characteristics(sql);
            }
            Change::Gtids(_) | Change::Other(_) => {}
        });
        if read.is_err() {
            return Err("the server sent session changes that cannot be read");
        }
        if let Some(mut changed) = changed {
            // In a text of several nobody can tell which of the two was set last.
            if charset && !collations.is_empty() && client.statement.is_several() {
                pin = pin.or(Some(PinReason::UnexplainedChange));
            }
            for (name, value) in collations {
                // It was taken, so its name is one.
                let _ = changed.set(name, value);
            }
            if let Some(value) = big_selects {
                let _ = changed.set(BIG_SELECTS, value);
            }
            self.adopt(changed);
        }
        if bare && !explained {
            pin = pin.or(Some(PinReason::UnexplainedChange));
        }
        if let Some(pin) = pin {
            self.pin(pin);
        }
        if wide {
            self.pin(PinReason::WideCharset);
        }
        Ok(())
    }

    /// Both have come to another session together.
    fn adopt(&mut self, changed: Session) {
        let sessions = &mut *self.context.sessions;
        let session = sessions.intern(changed);
        let multi = self.backend.session.multi_statements;
        self.backend.session = match self.backend.schema {
            SchemaThere::Clients => sessions.with_multi(&session, multi),
            SchemaThere::Another => {
                let mut elsewhere = (*session).clone();
                (elsewhere.schema, elsewhere.multi_statements) = (None, multi);
                sessions.intern(elsewhere)
            }
        };
        self.client.session = session;
        if let Some(schema) = self.client.schema_of_login() {
            let pool = self.client.pool as usize;
            self.context.schemas.learn(pool, schema);
        }
    }

    /// An error may have ended the transaction, of which servers tell late or in part. On MariaDB
    /// what is left to be told is asked for; MySQL tells it in time.
    pub(crate) fn note_rolled_back(&mut self) {
        let code = self.client.statement.code != Code::None;
        let mysql = self.context.server.flavour.is_mysql();
        if !code && self.backend.transaction.rolled_back() && !mysql {
            self.backend.reports = Reports::Due(Explanation::Lasting);
        }
    }
}
