//! Number of groups, and the share of connections of each.
//!
//! It follows from the cores and from the descriptor limit: a group has a descriptor table of its
//! own, so each holds as many connections as the limit has room for. Connections are dealt evenly.

use reactor::descriptors;
use std::thread;

/// Descriptors of a table that are not for connections: standard streams, poll, and some to spare.
const RESERVE: u64 = 48;

/// Distribution of connections over groups, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Groups, each a thread.
    pub groups: u32,
    /// Processors that this process may use.
    pub cores: u32,
    /// Descriptors of one table.
    pub descriptors: u64,
    /// True if each group has its own table.
    pub own_tables: bool,
}

impl Layout {
    /// Layout for what is wanted and this machine; 0 groups leave their number open.
    pub fn choose(connections: u32, groups: u32, descriptors: Option<u64>) -> Layout {
        let limit = descriptors::raise_limit().soft;
        let cores = thread::available_parallelism().map_or(1, |n| n.get());
        // Some sandboxes forbid it; a thread of its own finds out without harm.
        let own_tables = thread::spawn(|| descriptors::own_table().is_ok()).join();
        Layout::of(
            connections,
            groups,
            u32::try_from(cores).unwrap_or(1),
            descriptors.unwrap_or(limit),
            own_tables.unwrap_or(false),
        )
    }

    fn of(connections: u32, wanted: u32, cores: u32, descriptors: u64, own_tables: bool) -> Layout {
        let mut layout = Layout {
            groups: wanted.max(1),
            cores,
            descriptors,
            own_tables,
        };
        if wanted == 0 {
            layout.groups = cores.clamp(1, connections.max(1));
            // Each group needs a descriptor for each mailbox, so room shrinks as groups grow, and
            // past some number of them all together hold fewer.
            while own_tables
                && u64::from(connections) > layout.capacity()
                && layout.groups < connections
            {
                let more = Layout {
                    groups: layout.groups + 1,
                    ..layout
                };
                if more.capacity() <= layout.capacity() {
                    break;
                }
                layout = more;
            }
        }
        layout
    }

    /// Connections that one table has room for.
    pub fn room(&self) -> u64 {
        self.descriptors
            .saturating_sub(RESERVE + u64::from(self.groups))
    }

    /// Connections that all tables together have room for.
    fn capacity(&self) -> u64 {
        self.room() * u64::from(self.groups)
    }

    /// Cores that its threads can keep busy.
    pub fn usable_cores(&self) -> f64 {
        f64::from(self.groups.min(self.cores).max(1))
    }

    /// First index and number of the connections of group `group`.
    pub fn deal(&self, group: u32, connections: u32) -> (u32, u32) {
        let (each, rest) = (connections / self.groups, connections % self.groups);
        (
            group * each + group.min(rest),
            each + u32::from(group < rest),
        )
    }

    /// Reason for the number of groups.
    pub fn reason(&self) -> String {
        let Layout {
            groups,
            cores,
            descriptors,
            ..
        } = self;
        let room = self.room();
        if self.own_tables {
            format!(
                "{groups} groups on {cores} cores, each with its own table of {descriptors} \
                 descriptors, room for {room} connections"
            )
        } else {
            format!(
                "{groups} groups on {cores} cores; this system does not let them have descriptor \
                 tables of their own, so all share one of {descriptors} descriptors, room for \
                 {room} connections"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_from_cores_and_descriptors() {
        let groups = |connections, limit| Layout::of(connections, 0, 2, limit, true).groups;
        assert_eq!(groups(1, 20_000), 1);
        assert_eq!(groups(10_000, 20_000), 2);
        assert_eq!(groups(100_000, 20_000), 6);
        assert_eq!(groups(1_000_000, 20_000), 51);
        assert_eq!(groups(2_000, 500), 5);
        assert_eq!(groups(1_000, 1_000_000), 2);
        assert_eq!(Layout::of(1_000, 7, 2, 20_000, true).groups, 7);
        let shared = Layout::of(100_000, 0, 2, 20_000, false);
        assert_eq!(
            shared.groups, 2,
            "more groups would not help with one table"
        );
        assert!(shared.reason().contains("share one"));
        assert!(
            groups(1_000_000, 10) <= 5,
            "a limit that is far too small ends the search"
        );
        // 72 descriptors are free in each table, less one for each group: 36 x 36 is the most.
        assert_eq!(groups(1_000_000, 120), 36);
    }

    #[test]
    fn every_connection_is_dealt_once() {
        for (connections, groups) in [(10, 3), (2, 2), (100_000, 7), (3, 5)] {
            let layout = Layout::of(connections, groups, 2, 20_000, true);
            let mut next = 0;
            for group in 0..groups {
                let (first, count) = layout.deal(group, connections);
                assert_eq!(first, next);
                next += count;
            }
            assert_eq!(next, connections);
        }
    }
}
