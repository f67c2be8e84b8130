//! Counters: what has happened in a group, and who is in it.
//!
//! A group is the only writer of its counters, so they are plain numbers; twice a second it hands
//! a copy of them over, together with the census of the moment, and sums are made of the copies.

use crate::backend::BackendState;
use crate::errors::reasons::PinReason;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{AddAssign, Deref, DerefMut};

/// Declares a struct of numbers, its sum and its text: `{name: number, ...}`.
macro_rules! numbers {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl AddAssign<&$name> for $name {
            fn add_assign(&mut self, other: &$name) {
                $(self.$field += &other.$field;)*
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                put_numbers(f, [$((stringify!($field), &self.$field as &dyn fmt::Display)),*])
            }
        }
    };
}

fn put_numbers<'a>(
    f: &mut fmt::Formatter<'_>,
    numbers: impl IntoIterator<Item = (&'a str, &'a dyn fmt::Display)>,
) -> fmt::Result {
    f.write_str("{")?;
    for (i, (name, number)) in numbers.into_iter().enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        write!(f, "{comma}{name}: {number}")?;
    }
    f.write_str("}")
}

/// Numbers by the name of a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByReason(BTreeMap<&'static str, u64>);

impl Deref for ByReason {
    type Target = BTreeMap<&'static str, u64>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for ByReason {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl AddAssign<&ByReason> for ByReason {
    fn add_assign(&mut self, other: &ByReason) {
        for (reason, count) in &other.0 {
            *self.0.entry(reason).or_default() += count;
        }
    }
}

impl fmt::Display for ByReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        put_numbers(
            f,
            self.0.iter().map(|(reason, count)| (*reason, count as _)),
        )
    }
}

numbers! {
    /// Events since the group began.
    Counts {
        /// Connections accepted.
        accepted: u64,
        /// Logins that succeeded.
        logins: u64,
        /// Logins with a wrong name or password.
        denied: u64,
        /// Statements whose reply was complete.
        statements: u64,
        /// Statements that were sent behind another client's statement in flight.
        pipelined: u64,
        /// Statements that ran once more, because what stood in front of them had changed their
        /// session, or its backend was closed.
        pipelined_again: u64,
        /// Statements that had to wait in a queue.
        waited: u64,
        /// Statements that had to wait in the high queue.
        waited_high: u64,
        /// Statements of the low queue that went before one of the high queue, having waited for
        /// long.
        kicked_up: u64,
        /// Clients and statements refused by a limit.
        refused: u64,
        /// Errors that the pool itself has sent, by reason.
        refusals: ByReason,
        /// Clients that left while their statement waited; it was not executed.
        gave_up: u64,
        /// Replies that were ended because their clients had left.
        abandoned: u64,
        /// Replies that were taken off their backends because their clients did not read.
        spooled: u64,
        /// Clients closed because they did not read while others waited.
        slow_closed: u64,
        /// Clients closed for idling longer than they may.
        idle_closed: u64,
        /// Clients closed by a time limit.
        too_slow: u64,
        /// Times a command waited for room before the rest of it was read.
        input_waited: u64,
        /// Clients closed for a command that took room which others waited for, and did not go on.
        input_stalled: u64,
        /// Clients closed because they held more than their share when all memory was used.
        memory_closed: u64,
        /// Connections to the server that were opened.
        dialled: u64,
        /// Attempts that failed.
        dial_failures: u64,
        /// Connections to the server that were lost.
        backends_lost: u64,
        /// Times a backend answered nothing for so long that others were let past.
        stalled: u64,
        /// Connections to the server that were closed for being idle or old.
        trimmed: u64,
        /// Connections to the server that were closed because another group lacked one.
        lent: u64,
        /// Times a backend was brought into another session's state.
        restored: u64,
        /// Restorations that nobody waited for: in front of the statement, in the same write.
        restored_in_front: u64,
        /// Transactions whose BEGIN went out in front of their first statement, or not at all.
        transactions_deferred: u64,
        /// Deferred transactions that ended without a statement.
        transactions_unsent: u64,
        /// COMMIT and ROLLBACK without a transaction that the server has not seen.
        ends_spared: u64,
        /// SET of variables to the values that they have, which the server has not seen.
        sets_spared: u64,
        /// Transactions of clients that have left, rolled back on a backend that stays.
        rolled_back: u64,
        /// Questions about a session that were asked behind a statement.
        questions: u64,
        /// Properties that they asked for: each would be a round trip, asked alone.
        properties_asked: u64,
        /// Times a backend's session started over, for a user variable that its client had never
        /// set.
        resets: u64,
        /// Statements that ran stored code, all of it known to leave nothing that pins.
        code_known: u64,
        /// Statements that ran code or texts of which that is not known.
        code_unread: u64,
        /// Accepts that failed for want of descriptors or memory.
        accept_failures: u64,
        /// Clients pinned, by reason.
        pins: ByReason,
    }
}

impl Counts {
    /// Counts a new pin by its reason.
    pub(crate) fn pinned_for(&mut self, reason: PinReason) {
        *self.pins.entry(reason.name()).or_default() += 1;
    }
}

numbers! {
    /// Clients and backends of a group, and counts of what has happened.
    Census {
        /// Clients of any state.
        clients: usize,
        /// Clients that keep a backend for good.
        pinned: usize,
        /// Statements and logins in queues.
        waiting: usize,
        /// Bytes of the user variables that follow clients.
        variables_bytes: usize,
        /// Bytes of commands that have not come whole, or wait.
        input_bytes: usize,
        /// Bytes that are kept for clients in all.
        memory_bytes: usize,
        /// Backends that are held up by clients that do not read.
        slow_readers: usize,
        /// Clients whose reply was taken off its backend.
        spooled_clients: usize,
        /// Bytes of the spool that their replies have.
        spooled_bytes: usize,
        /// Backends being dialled or prepared.
        backends_dialling: usize,
        /// Backends that are free.
        backends_idle: usize,
        /// Backends that are checked out.
        backends_checked_out: usize,
        /// Counts of what has happened.
        counts: Counts,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Names in the census as it is printed.
    fn printed() -> BTreeSet<String> {
        let census = Census::default().to_string();
        let names = census
            .split([' ', '{'])
            .filter_map(|word| word.strip_suffix(':'));
        names.map(str::to_owned).collect()
    }

    /// True for a name of the page of metrics, in front of which stands `onramp_pool_`, and behind
    /// which that of a sum has `_total`.
    fn is_metric(name: &str) -> bool {
        let page = include_str!("../../../../../docs/pool/metrics.md");
        let is_there = |end: &str| page.contains(&format!("- `onramp_pool_{name}{end}`"));
        is_there("") || is_there("_total")
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
        let missing = printed.difference(&documented);
        let missing: Vec<_> = missing.filter(|name| !is_metric(name)).collect();
        let unknown: Vec<_> = documented.difference(&printed).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "{missing:?} {unknown:?}"
        );
    }
}
