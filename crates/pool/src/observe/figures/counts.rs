//! Counters: what has happened in a group, and who is in it.
//!
//! A group is the only writer of its counters, so they are plain numbers; twice a second it hands
//! a copy of them over, together with the census of the moment, and sums are made of the copies.

use crate::backend::BackendState;
use crate::errors::reasons::PinReason;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Events since the group began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub accepted: u64,
    /// Logins that succeeded.
    pub logins: u64,
    /// Logins with a wrong name or password.
    pub denied: u64,
    /// Statements whose reply was complete.
    pub statements: u64,
    /// Those of them that were sent behind another client's statement in flight.
    pub pipelined: u64,
    /// Those that ran once more, because what stood in front of them had changed their session, or
    /// its backend was closed.
    pub pipelined_again: u64,
    /// Statements that had to wait in a lane.
    pub waited: u64,
    /// Those of them that waited in the high lane.
    pub waited_high: u64,
    /// Statements of the low lane that went before one of the high lane, having waited for long.
    pub kicked_up: u64,
    /// Clients and statements refused by a limit.
    pub refused: u64,
    /// Errors that the pool itself has sent, by reason.
    pub refusals: BTreeMap<&'static str, u64>,
    /// Clients that left while their statement waited; it was not executed.
    pub gave_up: u64,
    /// Replies that were ended because their clients had left.
    pub abandoned: u64,
    /// Replies that were taken off their backends because their clients did not read.
    pub spooled: u64,
    /// Clients closed because they did not read while others waited.
    pub slow_closed: u64,
    /// Clients closed for idling longer than they may.
    pub idle_closed: u64,
    /// Clients closed by a time limit.
    pub too_slow: u64,
    /// Times a command waited for room before the rest of it was read.
    pub input_waited: u64,
    /// Clients closed for a command that took room which others waited for, and did not go on.
    pub input_stalled: u64,
    /// Clients closed because they held more than their share when all memory was used.
    pub memory_closed: u64,
    /// Connections to the server that were opened.
    pub dialled: u64,
    /// Attempts that failed.
    pub dial_failures: u64,
    /// Connections to the server that were lost.
    pub backends_lost: u64,
    /// Times a backend answered nothing for so long that others were let past.
    pub stalled: u64,
    /// Connections to the server that were closed for being idle or old.
    pub trimmed: u64,
    /// Connections to the server that were closed because another group lacked one.
    pub lent: u64,
    /// Times a backend was brought into another session's state.
    pub restored: u64,
    /// Those of them that nobody waited for: in front of the statement, in the same write.
    pub restored_in_front: u64,
    /// Transactions whose BEGIN went out in front of their first statement, or not at all.
    pub transactions_deferred: u64,
    /// Those of them that ended without a statement.
    pub transactions_unsent: u64,
    /// COMMIT and ROLLBACK without a transaction that the server has not seen.
    pub ends_spared: u64,
    /// SET of variables to the values that they have, which the server has not seen.
    pub sets_spared: u64,
    /// Transactions of clients that have left, rolled back on a backend that stays.
    pub rolled_back: u64,
    /// Questions about a session that were asked behind a statement.
    pub questions: u64,
    /// Properties that they asked for: each would be a round trip, asked alone.
    pub properties_asked: u64,
    /// Times a backend's session started over, for a user variable that its client had never set.
    pub resets: u64,
    /// Statements that ran stored code, all of it known to leave nothing that pins.
    pub code_known: u64,
    /// Those that run code or texts of which that is not known.
    pub code_unread: u64,
    /// Accepts that failed for want of descriptors or memory.
    pub accept_failures: u64,
    /// Clients pinned, by reason.
    pub pins: BTreeMap<&'static str, u64>,
}

impl Counts {
    /// A client is pinned for this from now on.
    pub(crate) fn pinned_for(&mut self, reason: PinReason) {
        *self.pins.entry(reason.name()).or_default() += 1;
    }
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        self.accepted += other.accepted;
        self.logins += other.logins;
        self.denied += other.denied;
        self.statements += other.statements;
        self.pipelined += other.pipelined;
        self.pipelined_again += other.pipelined_again;
        self.waited += other.waited;
        self.waited_high += other.waited_high;
        self.kicked_up += other.kicked_up;
        self.refused += other.refused;
        for (reason, count) in &other.refusals {
            *self.refusals.entry(reason).or_default() += count;
        }
        self.gave_up += other.gave_up;
        self.abandoned += other.abandoned;
        self.spooled += other.spooled;
        self.slow_closed += other.slow_closed;
        self.idle_closed += other.idle_closed;
        self.too_slow += other.too_slow;
        self.input_waited += other.input_waited;
        self.input_stalled += other.input_stalled;
        self.memory_closed += other.memory_closed;
        self.dialled += other.dialled;
        self.dial_failures += other.dial_failures;
        self.backends_lost += other.backends_lost;
        self.stalled += other.stalled;
        self.trimmed += other.trimmed;
        self.lent += other.lent;
        self.restored += other.restored;
        self.restored_in_front += other.restored_in_front;
        self.transactions_deferred += other.transactions_deferred;
        self.transactions_unsent += other.transactions_unsent;
        self.ends_spared += other.ends_spared;
        self.sets_spared += other.sets_spared;
        self.rolled_back += other.rolled_back;
        self.questions += other.questions;
        self.properties_asked += other.properties_asked;
        self.resets += other.resets;
        self.code_known += other.code_known;
        self.code_unread += other.code_unread;
        self.accept_failures += other.accept_failures;
        for (reason, count) in &other.pins {
            *self.pins.entry(reason).or_default() += count;
        }
    }
}

/// Clients and backends of a group, and counts of what has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Clients of any state.
    pub clients: usize,
    /// Clients that keep a backend for good.
    pub pinned: usize,
    /// Statements and logins in lanes.
    pub waiting: usize,
    /// Bytes of the user variables that follow clients.
    pub variables_bytes: usize,
    /// Bytes of commands that have not come whole, or wait.
    pub input_bytes: usize,
    /// Bytes that are kept for clients in all.
    pub memory_bytes: usize,
    /// Backends that are held up by clients that do not read.
    pub slow_readers: usize,
    /// Clients whose reply was taken off its backend.
    pub spooled_clients: usize,
    /// Bytes of the spool that their replies have.
    pub spooled_bytes: usize,
    /// Backends being dialled or prepared.
    pub backends_dialling: usize,
    /// Backends that are free.
    pub backends_idle: usize,
    /// Backends that are checked out.
    pub backends_checked_out: usize,
    /// Counts of what has happened.
    pub counts: Counts,
}

impl Census {
    /// Counts one backend.
    pub(crate) fn count_backend(&mut self, state: BackendState, is_bound: bool) {
        match state {
            BackendState::Dialling | BackendState::Preparing => self.backends_dialling += 1,
            BackendState::Idle => self.backends_idle += 1,
            BackendState::CheckedOut => self.backends_checked_out += 1,
        }
        debug_assert!(
            state != BackendState::Idle || !is_bound,
            "an idle backend has no client"
        );
    }

    /// Backends of any state.
    #[must_use]
    pub fn backends(&self) -> usize {
        self.backends_dialling + self.backends_idle + self.backends_checked_out
    }
}

impl AddAssign<&Census> for Census {
    fn add_assign(&mut self, other: &Census) {
        self.clients += other.clients;
        self.pinned += other.pinned;
        self.waiting += other.waiting;
        self.variables_bytes += other.variables_bytes;
        self.input_bytes += other.input_bytes;
        self.memory_bytes += other.memory_bytes;
        self.slow_readers += other.slow_readers;
        self.spooled_clients += other.spooled_clients;
        self.spooled_bytes += other.spooled_bytes;
        self.backends_dialling += other.backends_dialling;
        self.backends_idle += other.backends_idle;
        self.backends_checked_out += other.backends_checked_out;
        self.counts += &other.counts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Names in the census as it is printed.
    fn printed() -> BTreeSet<String> {
        let census = format!("{:?}", Census::default());
        let names = census
            .split([' ', '{'])
            .filter_map(|word| word.strip_suffix(':'));
        names.map(str::to_owned).collect()
    }

    /// Names that its section of the documentation explains: those of its text, and those in front
    /// of the rows of its table.
    fn documented() -> BTreeSet<String> {
        let page = include_str!("../../../../../docs/pool/signals-and-log.md");
        let (_, section) = page.split_once("\n## Census\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let names = section.lines().flat_map(|line| {
            let cell = line
                .strip_prefix('|')
                .map_or(line, |row| row.split('|').next().unwrap());
            cell.split('`').skip(1).step_by(2)
        });
        names.map(str::to_owned).collect()
    }

    #[test]
    fn the_census_is_documented() {
        let (printed, documented) = (printed(), documented());
        assert!(printed.len() > 40, "{printed:?}");
        let missing: Vec<_> = printed.difference(&documented).collect();
        let unknown: Vec<_> = documented.difference(&printed).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "{missing:?} {unknown:?}"
        );
    }
}
