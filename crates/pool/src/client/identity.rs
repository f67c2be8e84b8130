//! Identity of a client: its CONNECTION_ID(), its user, and how far it has proven to be that user.
//!
//! A user is counted by [`crate::backend::pool_members`]; here is whom the client counts for.
//!
//! Invariant: a client counts for one user at a time, from its proof on until it is closed.

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

/// State of a client's proof that it is its user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Not yet.
    #[default]
    Missing,
    /// Proven and counted among that user's clients, not let in yet.
    Counted,
    /// Proven and let in.
    Given,
    /// Proven, and changing its user.
    Changing,
}

/// Numbers of a client, and its user.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    /// The CONNECTION_ID(): the number in our greeting.
    id: u32,
    /// The id of the statement that was prepared last; the next one's is higher.
    pub(crate) statements_made: u32,
    /// The id of the collation of the login, or of the last change of user.
    pub(crate) collation: u16,
    /// The user, an index into the settings; says something once that is proven.
    user: u16,
    /// Number of the next packet to it.
    pub(crate) seq: u8,
    /// MariaDB's extended capabilities that were negotiated; those that are offered fit.
    pub(crate) extended: u8,
    /// Changes of user that have failed.
    pub(crate) changes_failed: u8,
    /// State of the proof of the user.
    proof: Proof,
}

impl Identity {
    /// Identity of a client whose greeting has the first number.
    pub(crate) fn greeted() -> Identity {
        Identity {
            seq: 1,
            ..Identity::default()
        }
    }

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

    /// Lets in the user that is proven.
    pub(crate) fn let_in(&mut self) {
        self.proof = Proof::Given;
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

    /// Sets the negotiated ones of MariaDB's extended capabilities; those that are offered fit.
    pub(crate) fn set_extended(&mut self, extended: u32) {
        self.extended = u8::try_from(extended).unwrap_or(0);
    }

    /// True if it has proven its user, and is counted among that user's clients.
    pub(crate) fn is_known(&self) -> bool {
        self.proof != Proof::Missing
    }

    /// True if it has been let in.
    pub(crate) fn is_let_in(&self) -> bool {
        matches!(self.proof, Proof::Given | Proof::Changing)
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
impl Identity {
    pub(crate) fn set_proof(&mut self, proof: Proof) {
        self.proof = proof;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use reactor::Time;
    use std::rc::Rc;

    #[test]
    fn a_change_of_user_that_fails_goes_back_and_is_counted() {
        let mut client = Client::of_tests(Time(1), Rc::default());
        client.identity.count_as(3);
        assert_eq!(
            (client.identity.user(), client.identity.proof()),
            (3, Proof::Counted)
        );
        client.identity.let_in_as(3);
        client.identity.begin_change_of_user();
        client.identity.count_as(4);
        assert_eq!(
            (client.identity.user(), client.identity.proof()),
            (4, Proof::Changing)
        );
        client.identity.fail_change_of_user(3);
        assert_eq!(
            (client.identity.user(), client.identity.proof()),
            (3, Proof::Given)
        );
        assert_eq!(client.identity.changes_failed, 1);
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
        client.identity.take_carried(carried);
        assert_eq!(client.identity.carried(), carried);
    }
}
