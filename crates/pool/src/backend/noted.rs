//! Facts about a server's session that are no part of its state as a value: what earlier clients
//! have left there, and what the next one must not meet.
//!
//! Invariants: LAST_INSERT_ID() that is not known is never taken for a client's; a session that was
//! reset has nothing of a client, but knows that it was reset.

use super::{BackendSession, LastClient, OpenTransaction, Reports, SchemaThere, Typed};
use crate::group::tokens::ClientId;
use reactor::Time;
use session::prepared::OnBackend;
use session::reply_summary::ReplySummary;
use session::state::Session;
use wire::rows::Columns;
use wire::track::Bound;

impl BackendSession {
    /// The role of its login (see [`crate::pair::roles`]), if it can be given back.
    pub(crate) fn login_role(&self) -> Option<&[u8]> {
        self.login_role.as_deref()
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

    /// Notes that it stands in another schema than its client's.
    pub(crate) fn note_another_schema(&mut self) {
        self.schema = SchemaThere::Another;
    }

    /// Notes that the schema there is its client's now, set by the pool or by the command itself.
    pub(crate) fn note_schema_of_client(&mut self) {
        self.schema = SchemaThere::Clients;
    }

    /// True if user variables may be there that its state does not have: NULL, since no statement
    /// takes one away.
    pub(crate) fn has_leftovers(&self) -> bool {
        self.leftovers
    }

    /// Notes that a user variable was taken out of its state.
    pub(crate) fn note_leftover(&mut self) {
        self.leftovers = true;
    }

    /// True if it has been reset since its login.
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

    /// Notes that it has started over: nothing of a client is there.
    pub(crate) fn note_reset(&mut self) {
        self.leftovers = false;
        self.was_reset = true;
        self.conditions_of = None;
        self.prepared = OnBackend::default();
        self.typed = None;
        self.insert_id = Some(0);
    }

    /// Transaction state that its client has been told last.
    pub(crate) fn bound_mut(&mut self) -> &mut Bound {
        &mut self.bound
    }

    /// The client's statement whose cursor was opened last, and the columns of its rows.
    pub(crate) fn cursor(&self) -> Option<&(u32, Columns)> {
        self.cursor.as_ref()
    }

    /// Stores the cursor that a client's statement has opened.
    pub(crate) fn note_cursor(&mut self, id: u32, columns: Columns) {
        self.cursor = Some((id, columns));
    }

    /// True if the statement that has been answered so has changed the session that those in flight
    /// behind it run in.
    pub(crate) fn has_changed(&self, summary: &ReplySummary) -> bool {
        let due = self.reports != Reports::Complete;
        !summary.changes.is_empty() || due || self.in_transaction()
    }

    /// True if the server holds a transaction open, or one is announced (`SET TRANSACTION`) or
    /// begun by a savepoint.
    pub(crate) fn in_transaction(&self) -> bool {
        self.transaction.is_open()
    }

    /// Notes that a transaction is open, if one is: since this moment, unless it was seen before.
    pub(crate) fn see_transaction(&mut self, since: Time) -> Option<&mut OpenTransaction> {
        let number = self.transaction.number();
        let fresh = OpenTransaction {
            number,
            since,
            statements: 0,
        };
        let seen = self.transaction_seen.filter(|seen| seen.number == number);
        self.transaction_seen = self.in_transaction().then_some(seen.unwrap_or(fresh));
        self.transaction_seen.as_mut()
    }

    /// Notes the session whose types stored code may get from now on. Types that it gets where the
    /// session has set nothing are everybody's, and not noted.
    pub(crate) fn note_typing(&mut self, by: ClientId, session: &Session) {
        let Some(typing) = session.typing() else {
            return;
        };
        let same = |typed: &Typed| typed.by == Some(by) && *typed.typing == *typing;
        if !self.typed.as_ref().is_some_and(same) {
            let typing = typing.into();
            let by = Some(by);
            self.typed = Some(Typed { by, typing });
        }
    }

    /// True if stored code may have types there of this client's session.
    pub(crate) fn has_types_of(&self, client: ClientId) -> bool {
        (self.typed.as_ref()).is_some_and(|typed| typed.by == Some(client))
    }

    /// Marks the types as nobody's, the session that has set them having started over.
    pub(crate) fn invalidate_types(&mut self) {
        if let Some(typed) = &mut self.typed {
            typed.by = None;
        }
    }
}

#[cfg(test)]
impl BackendSession {
    pub(crate) fn bound(&self) -> &Bound {
        &self.bound
    }

    pub(crate) fn insert_id(&self) -> Option<u64> {
        self.insert_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use std::rc::Rc;

    #[test]
    fn a_reset_takes_away_what_clients_have_left() {
        let mut there = BackendSession::new(Rc::default());
        there.note_leftover();
        there.forget_insert_id();
        assert!(!there.has_insert_id(0));
        there.note_reset();
        assert!(!there.has_leftovers() && there.was_reset() && there.has_insert_id(0));
    }

    #[test]
    fn the_last_client_is_told_once() {
        let mut backend = Backend::of_tests(Time(1), Rc::default());
        let client = crate::group::tokens::ClientId::from_parts(1, 0);
        let last = LastClient { client, sent: 3 };
        backend.note_served();
        backend.session.note_last_client(last);
        assert_eq!(
            [(); 2].map(|()| backend.begin_checkout(None)),
            [Some(last), None]
        );
        assert!(!backend.has_served());
    }
}
