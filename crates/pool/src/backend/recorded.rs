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

use super::{Backend, BackendState, Endpoint, Load, OpenTransaction, Reports, SchemaThere};
use crate::backend::relay::Middle;
use crate::backend::reuse::Reuse;
use crate::group::tokens::ClientId;
use crate::scheduler::account_slots::Kept;
use reactor::Time;
use session::prepared::OnBackendRecord;
use session::record::{
    Read, put_age, put_bool, put_one_of, put_option, read_age, read_bool, read_number, read_one_of,
    read_option, read_text,
};
use session::state::Session;
use session::text::Text;
use session::transaction::Transaction;
use std::time::Duration;
use wire::packet::{Reader, put_lenenc, put_lenenc_bytes};
use wire::track::Bound;

/// Transaction states that a client has been told, by the number in a record.
const BOUNDS: [Bound; 3] = [Bound::Outside, Bound::Inside, Bound::Snapshot];

/// A backend that another process has sent.
#[derive(Debug)]
pub(crate) struct BackendRecord {
    /// The server's address at which it was dialled.
    pub(crate) at: String,
    age: Duration,
    transaction_age: Option<Duration>,
    session: Session,
    login_role: Option<Text>,
    thread: u32,
    insert_id: Option<u64>,
    leftovers: bool,
    has_conditions: bool,
    transaction: Transaction,
    pub(crate) prepared: OnBackendRecord,
    bound: Bound,
    served: bool,
}

impl<S> Backend<S> {
    /// True if it can go to another process together with this client, which has it.
    pub(crate) fn goes_with(&self, client: ClientId) -> bool {
        let is_plain = !self.transport.is_tls() && self.transport.compression().is_none();
        let is_quiet = self.flight.is_empty()
            && self.input.is_empty()
            && self.output.is_empty()
            && !self.dirty
            && self.middle == Middle::default()
            && self.prepared.preparing.is_none()
            && self.load == Load::None;
        let is_known = self.reports == Reports::Complete
            && !self.reuse.is_frozen()
            && self.schema == SchemaThere::Clients
            && self.conditions_of.is_none_or(|of| of == client);
        self.state == BackendState::CheckedOut
            && self.binding.id() == Some(client)
            && is_plain
            && is_quiet
            && is_known
    }

    /// Appends it. It goes with its client.
    pub(crate) fn put_record(&self, out: &mut Vec<u8>, now: Time) {
        // Each field has to be named here: one that is new is not forgotten.
        let Backend {
            transport: _,
            state: _,
            at,
            pool: _,
            form: _,
            eofs: _,
            reports: _,
            since: _,
            born,
            transaction_seen,
            dial: _,
            session,
            login_role,
            thread,
            epoch: _,
            reuse: _,
            schema: _,
            insert_id,
            last_client: _,
            leftovers,
            conditions_of,
            transaction,
            prepared,
            cursor: _,
            flight: _,
            followers: _,
            middle: _,
            bound,
            input: _,
            output: _,
            dirty: _,
            pipeline: _,
            served,
            load: _,
            held_up_since: _,
            busy_since: _,
            binding: _,
            summary: _,
            collected: _,
            kept: _,
            typed: _,
            was_reset: _,
            kept_slot: _,
        } = self;
        put_lenenc_bytes(out, at.to_string().as_bytes());
        put_age(out, now.since(*born));
        put_option(out, *transaction_seen, |out, seen| {
            put_age(out, now.since(seen.since));
        });
        session.put_record(out);
        put_option(out, login_role.as_deref(), put_lenenc_bytes);
        put_lenenc(out, u64::from(*thread));
        put_option(out, *insert_id, put_lenenc);
        put_bool(out, *leftovers);
        put_bool(out, conditions_of.is_some());
        transaction.put_record(out);
        prepared.put_record(out);
        put_one_of(out, BOUNDS, bound);
        put_bool(out, *served);
    }
}

impl BackendRecord {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read_record(
        reader: &mut Reader<'_>,
        session: impl Fn(&mut Reader<'_>) -> Read<Session>,
    ) -> Read<BackendRecord> {
        let number = |reader: &mut Reader<'_>| Ok(reader.lenenc("a number")?);
        Ok(BackendRecord {
            at: String::from_utf8_lossy(reader.lenenc_bytes("an address")?).into_owned(),
            age: read_age(reader, "the age of a backend")?,
            transaction_age: read_option(reader, "a transaction", |reader| {
                read_age(reader, "the age of a transaction")
            })?,
            session: session(reader)?,
            login_role: read_option(reader, "a role", |reader| read_text(reader, "a role"))?,
            thread: read_number(reader, "the server's number of a backend")?,
            insert_id: read_option(reader, "LAST_INSERT_ID()", number)?,
            leftovers: read_bool(reader, "whether variables are left over")?,
            has_conditions: read_bool(reader, "whether it has conditions")?,
            transaction: Transaction::read_record(reader)?,
            prepared: OnBackendRecord::read_record(reader, session)?,
            bound: read_one_of(reader, BOUNDS, "a transaction's bound")?,
            served: read_bool(reader, "whether it has served")?,
        })
    }

    /// Its session, which is to be interned.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }
}

impl<S> Backend<S> {
    /// One that has come from another process with the client `of`, over this socket.
    pub(crate) fn arrived(
        from: Endpoint<S>,
        record: &BackendRecord,
        of: ClientId,
        now: Time,
        session: std::rc::Rc<Session>,
    ) -> Backend<S> {
        Backend {
            state: BackendState::CheckedOut,
            born: now.ago(record.age),
            transaction_seen: record.transaction_age.map(|age| OpenTransaction {
                number: record.transaction.number(),
                since: now.ago(age),
                statements: 0,
            }),
            dial: None,
            login_role: record.login_role.clone(),
            thread: record.thread,
            // It serves its client, and nobody after it.
            reuse: Reuse::ItsClient,
            insert_id: record.insert_id,
            leftovers: record.leftovers,
            conditions_of: record.has_conditions.then_some(of),
            transaction: record.transaction,
            bound: record.bound,
            // The process that let it be kept has counted it.
            kept_slot: Some(Kept::default()),
            served: record.served,
            ..Backend::dialling(from, now, session, None)
        }
    }
}
