//! Triggers, views and columns: stored code that a statement runs without naming it.
//!
//! The problem: what such code does to its session may be reported by no tracker (a named lock, a
//! user variable set by INTO, on MariaDB whatever it did before it failed; docs/trackers.md), and
//! would stay on a backend that others share. The mechanism: a catalogue of all that has code, read
//! from the server at start, every `stored_code_refresh_s` and after each statement through the
//! pool that defines code ([`look`]), judged by `sql` ([`sql::classify::stored`]) and brought
//! down to the names of tables and views ([`session::stored_code`]). A statement whose text names
//! one of them counts as one that calls stored code: the policy `stored_code` decides.
//!
//! A definition counts from the moment that its statement is sent, by its own text, and until a
//! look that began after its reply has told what has become of it. A statement that was judged
//! before such a change and is sent after it is judged again.
//!
//! Where no such code exists, which is the rule, a statement costs the load of one number. Not
//! covered: code that is defined past the pool, or inside of other code, until the next look, which
//! follows within about a second ([`crate::operations::watch`]). What a client's own text calls is
//! in [`calls`].

mod calls;
mod look;

use crate::backend::Purpose;
use crate::buffers::message::payload_of;
use crate::client::guards::Coming;
use crate::config::StoredCode;
use crate::errors::reasons::PinReason;
use crate::group::Group;
use crate::watched::code_catalogue::Seen;
use crate::watched::code_catalogue::object_of;
pub(crate) use look::look_once;
use reactor::{Key, Net};
use session::shapes::Ride;
use session::statement::{Code, NOT_JUDGED};
use session::stored_code::{Besides, Object};
use sql::classify::stored::definitions;
use sql::classify::{self, PinCause, Verb, classify};
use sql::lex::LexMode;
use std::sync::atomic::Ordering;
use wire::attributes::{Form, header_len};
use wire::command::Command;

/// Statements that write to no table: no trigger fires.
fn reads(found: &classify::Statement) -> bool {
    use Verb::{
        Begin, Commit, Ddl, Diagnostics, Do, Empty, Kill, Lock, Rollback, Savepoint, Select, Set,
        Show, Use,
    };
    let verb = matches!(
        found.verb,
        Begin
            | Commit
            | Ddl
            | Diagnostics
            | Do
            | Empty
            | Kill
            | Lock
            | Rollback
            | Savepoint
            | Select
            | Set
            | Show
            | Use
    );
    verb && !found.multi
}

/// A version in short: only that it differs counts, and only for as long as one statement waits.
fn short(version: u64) -> u16 {
    u16::try_from(version % 0xffff).unwrap_or(0) + 1
}

impl<N: Net> Group<N> {
    /// Whether a text may run code in triggers and views; `schema` is its default schema, empty
    /// where there is none, if that is certain.
    pub(crate) fn runs_triggers_or_views(
        &mut self,
        (sql, mode): (&[u8], LexMode),
        found: &classify::Statement,
        schema: Option<&[u8]>,
    ) -> bool {
        self.see_code_catalogue();
        let names = &self.code_seen.names;
        !names.is_empty() && names.reached_by((sql, mode), schema, reads(found))
    }

    /// Sees the latest names, and gives their version in short: never [`NOT_JUDGED`].
    pub(crate) fn see_code_catalogue(&mut self) -> u16 {
        let hidden = &self.shared.code_catalogue;
        if hidden.version.load(Ordering::Acquire) != self.code_seen.version {
            let state = hidden.lock();
            self.code_seen = Seen {
                version: hidden.version.load(Ordering::Acquire),
                names: state.names.clone(),
            };
        }
        short(self.code_seen.version)
    }

    /// Whether this is the version of the names that count now.
    pub(crate) fn is_judged(&self, judged: u16) -> bool {
        judged == NOT_JUDGED
            || judged == short(self.shared.code_catalogue.version.load(Ordering::Acquire))
    }

    /// What a text defines, if it defines code; from here on that counts.
    pub(crate) fn defines_code(
        &mut self,
        (sql, mode): (&[u8], LexMode),
        found: &classify::Statement,
        schema: Option<&[u8]>,
    ) -> Option<Coming> {
        if !self.shared.code_catalogue.on || !(found.verb == Verb::Ddl || found.multi) {
            return None;
        }
        self.see_code_catalogue();
        let defined = definitions(sql, mode);
        let tables = defined.tables && !self.code_seen.names.is_empty();
        if !defined.code && !tables && defined.list.is_empty() {
            return None;
        }
        let objects = defined.list.into_iter();
        let objects = objects.map(|one| object_of(one, schema)).collect();
        let number = self.shared.code_catalogue.defines(objects);
        let shared = self.shared.clone();
        Some(Coming { shared, number })
    }

    /// Whether a command would ride behind others' statements on this backend.
    fn runs_behind_others(&self, lease: Key) -> bool {
        let backend = self.backends.get(lease);
        backend.is_some_and(|backend| {
            let mut flight = backend.flight().iter();
            flight.any(|command| command.purpose == Purpose::Statement)
        })
    }

    /// Judges a command again that is about to be sent, if the names have changed since it was
    /// judged: it has waited for a backend, and code in triggers and views has come into being
    /// meanwhile.
    pub(crate) fn judge_again(&mut self, key: Key, lease: Key, message: &[u8]) {
        // Who rides was chosen by the present names (`leases.rs: takes_rider`).
        if self.runs_behind_others(lease) {
            return;
        }
        let version = self.see_code_catalogue();
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let judged = client.statement.judged;
        if judged == NOT_JUDGED || judged == version {
            return;
        }
        let payload = payload_of(message);
        let under_way = client.prepared.as_ref().and_then(|p| p.under_way.as_ref());
        let (sql, session) = match under_way {
            Some(under_way) => {
                let definition = &under_way.definition;
                (definition.sql.to_vec(), definition.session.clone())
            }
            None if payload.first() == Some(&Command::Query.byte()) => {
                let form = Form::of(client.capabilities);
                let len = header_len(form, &payload[1..]).unwrap_or(0);
                (payload[1 + len..].to_vec(), client.session.clone())
            }
            None => return,
        };
        let mode = self.shared.server.lex_mode(&session, client.capabilities);
        let found = classify(&sql, mode);
        // The text that EXECUTE IMMEDIATE runs is not at hand any more.
        let within = found.causes.contains(PinCause::TextPrepare);
        let schema = Some(session.schema.as_deref().unwrap_or_default());
        let known = matches!(client.statement.code, Code::Known | Code::Reported);
        let unknown = known
            && self
                .known_code((&sql, mode), &found, schema, &session)
                .is_none();
        if within || unknown || self.runs_triggers_or_views((&sql, mode), &found, schema) {
            let policy = self.settings.stored_code;
            if policy == StoredCode::Pin
                && let Some(client) = self.clients.get_mut(key)
            {
                client.pin_by(PinReason::TriggersAndViews, &sql);
            }
            if let Some(client) = self.clients.get_mut(key) {
                client.statement.spoils |= policy == StoredCode::Transaction;
                client.statement.ride = Ride::Never;
            }
        }
    }
}
