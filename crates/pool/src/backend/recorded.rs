//! A backend as bytes: it goes to another process of the pool together with the client that has it.
//!
//! The problem: an open transaction, a lock or a temporary table is on one connection to the
//! server. The mechanism: that connection's descriptor goes along, and with it what the pool knows
//! of it. It goes only between two commands, when everything that has come was read
//! ([`Backend::goes_with`]): no reply is half read, nothing is unsent, no question of the pool's
//! own is under way. Over there it serves this client, and nobody after it: nothing that counts for
//! others (the version of privileges, types of stored code, when it is too old, whether another
//! server has come) has to be carried.
//!
//! Invariants: what is not carried is what it is on every backend at rest; a record that cannot be
//! read whole makes no backend.

use super::SchemaThere;
use super::{Backend, BackendSession, BackendState, Endpoint, Load, OpenTransaction, Reports};
use crate::backend::reuse::Reuse;
use crate::group::tokens::ClientId;
use crate::scheduler::account_slots::Kept;
use reactor::Time;
use serde::{Deserialize, Serialize};
use session::record::{EntryRecord, SessionRecord};
use session::state::Session;
use session::text::Text;
use session::transaction::Transaction;
use std::time::Duration;
use wire::track::Bound;

/// A backend of another process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BackendRecord {
    /// The server's address at which it was dialled.
    pub(crate) at: String,
    age: Duration,
    transaction_age: Option<Duration>,
    pub(crate) session: SessionRecord,
    login_role: Option<Text>,
    thread: u32,
    insert_id: Option<u64>,
    leftovers: bool,
    has_conditions: bool,
    transaction: Transaction,
    pub(crate) prepared: Vec<EntryRecord>,
    bound: Bound,
    served: bool,
}

impl<S> Backend<S> {
    /// True if it can go to another process together with this client, which has it.
    pub(crate) fn goes_with(&self, client: ClientId) -> bool {
        let is_plain = !self.transport.is_tls() && self.transport.compression().is_none();
        let is_quiet = self.flight.is_at_rest()
            && self.input.is_empty()
            && self.output.is_empty()
            && !self.dirty
            && self.session.prepared.preparing.is_none()
            && self.load == Load::None;
        let is_known = self.session.reports == Reports::Complete
            && !self.reuse.is_frozen()
            && self.session.schema == SchemaThere::Clients
            && self.session.conditions_of.is_none_or(|of| of == client);
        self.state == BackendState::CheckedOut
            && self.binding.id() == Some(client)
            && is_plain
            && is_quiet
            && is_known
    }

    /// Its record. It goes with its client.
    pub(crate) fn record(&self, now: Time) -> BackendRecord {
        // Each field has to be named here: one that is new is not forgotten.
        let Backend {
            transport: _,
            state: _,
            at,
            pool: _,
            form: _,
            since: _,
            born,
            dial: _,
            session,
            flight: _,
            thread,
            units: _,
            on_server: _,
            running: _,
            reuse: _,
            // One on a reader is taken by no other process.
            is_reader: _,
            catching_up: _,
            input: _,
            output: _,
            dirty: _,
            kept_slot: _,
            served,
            load: _,
            binding: _,
            kept: _,
        } = self;
        let BackendSession {
            state,
            epoch: _,
            login_role,
            reports: _,
            schema: _,
            insert_id,
            bound,
            last_client: _,
            leftovers,
            was_reset: _,
            conditions_of,
            transaction,
            transaction_seen,
            prepared,
            cursor: _,
            typed: _,
        } = session;
        BackendRecord {
            at: at.to_string(),
            age: now.since(*born),
            transaction_age: transaction_seen.map(|seen| now.since(seen.since)),
            session: SessionRecord::from(&**state),
            login_role: login_role.clone(),
            thread: *thread,
            insert_id: *insert_id,
            leftovers: *leftovers,
            has_conditions: conditions_of.is_some(),
            transaction: *transaction,
            prepared: prepared.records(),
            bound: *bound,
            served: *served,
        }
    }

    /// Backend that has come from another process with the client `of`, over this socket.
    pub(crate) fn arrived(
        from: Endpoint<S>,
        record: &BackendRecord,
        of: ClientId,
        now: Time,
        session: std::rc::Rc<Session>,
    ) -> Backend<S> {
        let begun = Backend::dialling(from, now, session, None);
        Backend {
            state: BackendState::CheckedOut,
            born: now.ago(record.age),
            dial: None,
            session: BackendSession {
                transaction_seen: record.transaction_age.map(|age| OpenTransaction {
                    number: record.transaction.number(),
                    since: now.ago(age),
                    statements: 0,
                }),
                login_role: record.login_role.clone(),
                insert_id: record.insert_id,
                leftovers: record.leftovers,
                conditions_of: record.has_conditions.then_some(of),
                transaction: record.transaction,
                bound: record.bound,
                ..begun.session
            },
            thread: record.thread,
            // It serves its client, and nobody after it.
            reuse: Reuse::ItsClient,
            // The process that let it be kept has counted it.
            kept_slot: Some(Kept::default()),
            served: record.served,
            ..begun
        }
    }
}
