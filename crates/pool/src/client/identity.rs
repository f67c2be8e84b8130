//! Identity of a client: its CONNECTION_ID(), its user, and how far it has proven to be that user.
//!
//! A user is counted by [`crate::backend::pool_members`]; here is whom the client counts for.
//!
//! Invariant: a client counts for one user at a time, from its proof on until it is closed.

use super::{Client, Proof};
use serde::{Deserialize, Serialize};

/// Numbers of a client that go with it to another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Carried {
    pub(crate) id: u32,
    pub(crate) collation: u16,
    pub(crate) seq: u8,
    pub(crate) changes_failed: u8,
    pub(crate) extended: u8,
    pub(crate) statements_made: u32,
}

impl<S> Client<S> {
    /// Its CONNECTION_ID(): the number in our greeting.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Sets the CONNECTION_ID() of its greeting.
    pub(crate) fn set_id(&mut self, id: u32) {
        self.id = id;
    }

    /// Its user, an index into the settings; says something once that is proven.
    pub(crate) fn user(&self) -> usize {
        self.user.into()
    }

    /// State of its proof that it is this user.
    pub(crate) fn proof(&self) -> Proof {
        self.proof
    }

    /// Sets the proven user, among whose clients it is counted.
    pub(crate) fn count_as(&mut self, user: usize) {
        self.user = u16::try_from(user).unwrap_or(u16::MAX);
        if self.proof == Proof::Missing {
            self.proof = Proof::Counted;
        }
    }

    /// Lets it in as this user.
    pub(crate) fn let_in_as(&mut self, user: usize) {
        self.user = u16::try_from(user).unwrap_or(u16::MAX);
        self.proof = Proof::Given;
    }

    /// Begins a change of user, to be proven.
    pub(crate) fn begin_change_of_user(&mut self) {
        self.proof = Proof::Changing;
    }

    /// Restores the user of before after a failed change, and counts the failure.
    pub(crate) fn fail_change_of_user(&mut self, before: usize) {
        self.let_in_as(before);
        self.changes_failed = self.changes_failed.saturating_add(1);
    }

    /// Times that it has failed to change its user.
    pub(crate) fn changes_failed(&self) -> u8 {
        self.changes_failed
    }

    /// The id of the collation it logged in with, or has changed its user with.
    pub(crate) fn collation(&self) -> u16 {
        self.collation
    }

    /// Sets the collation of its login or change of user.
    pub(crate) fn set_collation(&mut self, collation: u16) {
        self.collation = collation;
    }

    /// MariaDB's extended capabilities that it negotiated.
    pub(crate) fn extended(&self) -> u8 {
        self.extended
    }

    /// Sets the negotiated ones of MariaDB's extended capabilities; those that are offered fit.
    pub(crate) fn set_extended(&mut self, extended: u32) {
        self.extended = u8::try_from(extended).unwrap_or(0);
    }

    /// The id of the statement that it prepared last; the next one's is higher.
    pub(crate) fn statements_made(&self) -> u32 {
        self.statements_made
    }

    /// Stores the id of the statement that it prepared last.
    pub(crate) fn note_statement_made(&mut self, id: u32) {
        self.statements_made = id;
    }

    /// Numbers that go with it to another process.
    pub(crate) fn carried(&self) -> Carried {
        Carried {
            id: self.id,
            collation: self.collation,
            seq: self.seq,
            changes_failed: self.changes_failed,
            extended: self.extended,
            statements_made: self.statements_made,
        }
    }

    /// Takes the state that it has brought from another process.
    pub(crate) fn take_carried(&mut self, carried: Carried) {
        self.id = carried.id;
        self.collation = carried.collation;
        self.seq = carried.seq;
        self.changes_failed = carried.changes_failed;
        self.extended = carried.extended;
        self.statements_made = carried.statements_made;
    }
}

#[cfg(test)]
impl<S> Client<S> {
    pub(crate) fn set_proof(&mut self, proof: Proof) {
        self.proof = proof;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reactor::Time;
    use std::rc::Rc;

    #[test]
    fn a_change_of_user_that_fails_goes_back_and_is_counted() {
        let mut client = Client::of_tests(Time(1), Rc::default());
        client.count_as(3);
        assert_eq!((client.user(), client.proof()), (3, Proof::Counted));
        client.let_in_as(3);
        client.begin_change_of_user();
        client.count_as(4);
        assert_eq!((client.user(), client.proof()), (4, Proof::Changing));
        client.fail_change_of_user(3);
        assert_eq!((client.user(), client.proof()), (3, Proof::Given));
        assert_eq!(client.changes_failed(), 1);
    }

    #[test]
    fn what_goes_to_another_process_is_the_same_there() {
        let carried = Carried {
            id: 1,
            collation: 2,
            seq: 3,
            changes_failed: 4,
            extended: 5,
            statements_made: 6,
        };
        let mut client = Client::of_tests(Time(1), Rc::default());
        client.take_carried(carried);
        assert_eq!(client.carried(), carried);
    }
}
