//! Facts about a backend's session that are no part of its state as a value: what earlier clients
//! have left there, and what the next one must not meet.
//!
//! Invariants: LAST_INSERT_ID() that is not known is never taken for a client's; a session that was
//! reset has nothing of a client, but knows that it was reset.

use super::{Backend, LastClient, OpenTransaction, SchemaThere, Typed};
use crate::scheduler::account_slots::RunPlace;
use session::prepared::OnBackend;

impl<S> Backend<S> {
    /// Begins a checkout, with a place among what runs on its server; returns the client that it
    /// served last.
    pub(crate) fn begin_checkout(&mut self, running: RunPlace) -> Option<LastClient> {
        self.running = running;
        self.served = false;
        self.last_client.take()
    }

    /// Notes that it has run a statement of the client that has it.
    pub(crate) fn note_served(&mut self) {
        self.served = true;
    }

    /// True if it has run a statement of the client that has it.
    pub(crate) fn has_served(&self) -> bool {
        self.served
    }

    /// The client that it has served last, until another gets it.
    pub(crate) fn last_client(&self) -> Option<LastClient> {
        self.last_client
    }

    /// Stores the client that has just given it back.
    pub(crate) fn note_last_client(&mut self, last: LastClient) {
        self.last_client = Some(last);
    }

    /// True if its LAST_INSERT_ID() is known to be this one.
    pub(crate) fn has_insert_id(&self, id: u64) -> bool {
        self.insert_id == Some(id)
    }

    /// Stores its LAST_INSERT_ID().
    pub(crate) fn note_insert_id(&mut self, id: u64) {
        self.insert_id = Some(id);
    }

    /// Invalidates its LAST_INSERT_ID(), which may have changed and is not read back.
    pub(crate) fn forget_insert_id(&mut self) {
        self.insert_id = None;
    }

    /// True if it stands in another schema than its client's, which could not be set: what it
    /// reports of its schema is nobody's.
    pub(crate) fn is_in_another_schema(&self) -> bool {
        self.schema == SchemaThere::Another
    }

    /// Notes that the schema there is its client's now, set by the pool or by the command itself.
    pub(crate) fn note_schema_of_client(&mut self) {
        self.schema = SchemaThere::Clients;
    }

    /// True if user variables may be there that its session, as a value, does not have: NULL, since
    /// no statement takes one away.
    pub(crate) fn has_leftovers(&self) -> bool {
        self.leftovers
    }

    /// Notes that a user variable was taken out of its session as a value.
    pub(crate) fn note_leftover(&mut self) {
        self.leftovers = true;
    }

    /// True if its session has been reset since its login.
    pub(crate) fn was_reset(&self) -> bool {
        self.was_reset
    }

    /// Types of stored code that MySQL may keep there.
    pub(crate) fn types_there(&self) -> Option<&Typed> {
        self.typed.as_ref()
    }

    /// The transaction that was open when it was last looked at.
    pub(crate) fn transaction_seen(&self) -> Option<&OpenTransaction> {
        self.transaction_seen.as_ref()
    }

    /// Notes that its session has started over: nothing of a client is there, and nobody is
    /// pipelined.
    pub(crate) fn note_reset(&mut self) {
        self.close_pipeline();
        self.leftovers = false;
        self.was_reset = true;
        self.conditions_of = None;
        self.prepared = OnBackend::default();
        self.typed = None;
        self.insert_id = Some(0);
    }
}

#[cfg(test)]
impl<S> Backend<S> {
    pub(crate) fn note_another_schema(&mut self) {
        self.schema = SchemaThere::Another;
    }

    pub(crate) fn insert_id(&self) -> Option<u64> {
        self.insert_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reactor::Time;
    use std::rc::Rc;

    #[test]
    fn a_reset_takes_away_what_clients_have_left() {
        let mut backend = Backend::of_tests(Time(1), Rc::default());
        backend.note_leftover();
        backend.forget_insert_id();
        assert!(!backend.has_insert_id(0));
        backend.note_reset();
        assert!(!backend.has_leftovers() && backend.was_reset() && backend.has_insert_id(0));
    }

    #[test]
    fn the_last_client_is_told_once() {
        let mut backend = Backend::of_tests(Time(1), Rc::default());
        let client = crate::group::tokens::ClientId::from_parts(1, 0);
        let last = LastClient { client, sent: 3 };
        backend.note_served();
        backend.note_last_client(last);
        assert_eq!(
            [(); 2].map(|()| backend.begin_checkout(None)),
            [Some(last), None]
        );
        assert!(!backend.has_served());
    }
}
