//! The transaction of a server's session, as replies and trackers tell of it.
//!
//! The problem: the flag IN_TRANS alone does not say that a session must stay with its client. With
//! `autocommit=0` a savepoint and a first read begin a transaction that only the tracker reports;
//! `SET TRANSACTION` announces one that has not begun; and on MariaDB a savepoint in front of the
//! first table is told by nothing. The mechanism: each of them is noted when it is told or seen in
//! a text, and [`Transaction::is_open`] is their sum.
//!
//! An error tells nothing: until the next status flags, the transaction that was open may have been
//! rolled back, or committed by a statement that commits before it fails ([`Doubt`]).

use serde::{Deserialize, Serialize};
use wire::status;
use wire::track::Change;

/// Doubt about a transaction behind an error, which has no status flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Doubt {
    /// None: its state was told.
    #[default]
    None,
    /// Rolled back, perhaps.
    MayBeUndone,
    /// Committed, perhaps, or rolled back.
    MayBeCommitted,
}

/// Facts of a session's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Status flags of the last OK.
    status: u16,
    /// True if the transaction tracker says that one is open.
    tracked: bool,
    /// Characteristics of the next one have been set (`SET TRANSACTION`).
    announced: bool,
    /// True if there may be a savepoint and no transaction.
    savepoint: bool,
    /// True if a BEGIN is on its way to the server, whatever the replies to what stands in front of
    /// it say.
    #[serde(skip)]
    begin_sent: bool,
    /// True if the last OK was the first without the flag of a transaction.
    #[serde(skip)]
    ended: bool,
    /// Transactions that have ended, as far as was told; may begin again at 0.
    #[serde(skip)]
    number: u32,
    doubt: Doubt,
}

impl Default for Transaction {
    /// None, with autocommit on.
    fn default() -> Transaction {
        Transaction {
            status: status::AUTOCOMMIT,
            tracked: false,
            announced: false,
            savepoint: false,
            begin_sent: false,
            ended: false,
            number: 0,
            doubt: Doubt::None,
        }
    }
}

impl Transaction {
    /// Number of the session's transaction that is open, or comes next: another number than before
    /// says that one has ended since, open or not.
    pub fn number(self) -> u32 {
        self.number
    }

    /// Counts one that is not open any more because of what was `told`.
    fn note(&mut self, told: impl FnOnce(&mut Transaction)) {
        let was_open = self.is_open();
        told(self);
        if was_open && !self.is_open() {
            self.number = self.number.wrapping_add(1);
        }
    }

    /// True if one is open, or announced, or begun by a savepoint, or its BEGIN is on its way.
    pub fn is_open(self) -> bool {
        let flag = self.status & status::IN_TRANS != 0;
        flag || self.tracked || self.announced || self.savepoint || self.begin_sent
    }

    /// True if characteristics of the next one have been set.
    pub fn is_announced(self) -> bool {
        self.announced
    }

    /// True if the tracker says that one is open.
    pub fn is_tracked(self) -> bool {
        self.tracked
    }

    /// Status flags of the last OK.
    pub fn status(self) -> u16 {
        self.status
    }

    /// Doubt about the one that was open at the last status flags.
    pub fn doubt(self) -> Doubt {
        self.doubt
    }

    /// Notes a command that has failed, behind the status flags of its reply; `may_commit`: it may
    /// have committed what was open.
    pub fn note_failed(&mut self, may_commit: bool) {
        self.doubt = self.doubt.max(match may_commit {
            true => Doubt::MayBeCommitted,
            false => Doubt::MayBeUndone,
        });
    }

    /// Takes the status flags of an OK, in the order of their arrival.
    pub fn note_status(&mut self, flags: u16) {
        self.doubt = Doubt::None;
        self.note(|told| {
            told.ended = told.status & !flags & status::IN_TRANS != 0;
            told.status = flags;
            // A transaction's own savepoints end with it, and autocommit has none between
            // statements.
            told.savepoint &= flags & (status::IN_TRANS | status::AUTOCOMMIT) == 0;
        });
    }

    /// Notes that BEGIN is on its way to the server.
    pub fn note_begin_sent(&mut self) {
        self.begin_sent = true;
    }

    /// Notes the answer to BEGIN: its reply says whether a transaction is open.
    pub fn note_begin_answered(&mut self) {
        self.note(|told| told.begin_sent = false);
    }

    /// Takes what a tracker reports of transactions; `false` where it reports of something else.
    pub fn take(&mut self, change: &Change<'_>) -> bool {
        match change {
            Change::TransactionState(state) => self.note_state(state),
            Change::TransactionCharacteristics(sql) => self.note_characteristics(sql),
            _ => return false,
        }
        true
    }

    /// Takes the state that the tracker reports: a letter for each thing that has been done, or
    /// `_`.
    pub fn note_state(&mut self, state: &[u8]) {
        self.note(|told| told.tracked = state.iter().any(|&c| c != b'_'));
    }

    /// Takes the characteristics that the tracker reports, as statements; empty when there are
    /// none.
    pub fn note_characteristics(&mut self, statements: &[u8]) {
        self.note(|told| told.announced = !statements.is_empty());
    }

    /// Clears an announcement that a statement has used up without a report of it.
    pub fn announcement_used(&mut self) {
        self.note(|told| told.announced = false);
    }

    /// Takes the first OK behind a failed statement: true if the error has ended the transaction,
    /// and the trackers do not say so, or say that what it began with is still to come. Nothing of
    /// it counts any more.
    pub fn rolled_back(&mut self) -> bool {
        let untold = self.ended && (self.tracked || self.announced);
        self.note(|told| {
            told.tracked &= !untold;
            told.announced &= !untold;
        });
        untold
    }

    /// Notes that a statement may have `set` a savepoint, or has ended the transaction with all of
    /// them, and perhaps begun the next (`COMMIT AND CHAIN`).
    pub fn note_savepoint(&mut self, set: bool, ended: bool) {
        let alone = self.status & (status::IN_TRANS | status::AUTOCOMMIT) == 0;
        self.savepoint = alone && (self.savepoint || set) && !ended;
        if ended {
            self.number = self.number.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests;
