//! Number of groups, and of clients that each may hold.
//!
//! Each group has a descriptor table of its own, so the limit of descriptors holds for each: more
//! clients than one table holds need more groups. Otherwise there are as many as cores (as far as
//! the CPU quota of a control group allows), and fewer where they would have too few backends each,
//! or where `pids.max` of a control group leaves no room for their threads.

use crate::config::Settings;
use crate::scheduler::budget::Budget;
use measure::cgroup::{self, Limit, PIDS};
use reactor::descriptors;

/// Descriptors that a group needs besides its clients and backends: epoll, listeners, mailboxes of
/// all groups, the standard streams, and some for what libraries open.
const DESCRIPTORS_RESERVED: u64 = 64;
/// Fewest backends for which a group is made, unless the clients need its descriptors.
const BACKENDS_PER_GROUP: u64 = 8;

/// Threads that the pool has besides those of its groups.
const THREADS_RESERVED: u64 = 32;

/// Limits of the machine and of the control groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// Descriptors of one table.
    pub(crate) descriptors: u64,
    /// Cores, or as many as the CPU quota comes to.
    pub(crate) cores: u64,
    /// Threads that groups may have.
    pub(crate) threads: u64,
}

impl Machine {
    /// Reads them; raises the limit of descriptors first.
    pub(crate) fn look() -> Machine {
        let pids = cgroup::own(&PIDS).iter().map(Limit::room).min();
        Machine {
            descriptors: descriptors::raise_limit().soft,
            cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
            threads: (pids.unwrap_or(u64::MAX).saturating_sub(THREADS_RESERVED)).max(1),
        }
    }
}

/// Number of groups and of clients each may hold, and the sentence that says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) groups: usize,
    pub(crate) clients_per_group: usize,
    pub(crate) reason: String,
}

/// The layout for these settings on this machine.
///
/// # Errors
/// Which setting cannot be kept, and what to change.
pub(crate) fn plan(settings: &Settings, machine: Machine) -> Result<Layout, String> {
    let Machine {
        descriptors: limit,
        cores,
        threads,
    } = machine;
    let backends = |groups: u64| {
        let groups = usize::try_from(groups).unwrap_or(1);
        Budget::most_of_group(settings.backends_max, groups) as u64
    };
    let room = |groups: u64| {
        (limit.saturating_sub(DESCRIPTORS_RESERVED + groups)).saturating_sub(backends(groups))
    };
    let clients = settings.clients_max as u64;
    // Each group has backends of its own; with too few, one pinned client would be all it has.
    let served = (settings.backends_max as u64 / BACKENDS_PER_GROUP).max(1);
    let wished = (settings.groups).map_or(cores.min(served).min(threads), |groups| groups as u64);
    let mut groups = wished.max(1);
    while settings.groups.is_none()
        && groups < clients
        && descriptors::fullest_share(clients, groups) > room(groups)
    {
        groups += 1;
        if groups + DESCRIPTORS_RESERVED >= limit {
            return Err(format!(
                "clients_max: {clients} clients need more groups than a descriptor limit of \
                 {limit} allows; raise it (ulimit -n) or lower clients_max"
            ));
        }
        if groups > threads {
            return Err(format!(
                "clients_max: {clients} clients need more than {threads} groups with a descriptor \
                 limit of {limit}, and pids.max of the control group has no room for their \
                 threads; raise it (systemd: TasksMax), raise the descriptor limit (ulimit -n), \
                 or lower clients_max"
            ));
        }
    }
    if (settings.backends_max as u64) < groups {
        return Err(format!(
            "backends_max: expected at least one backend for each of {groups} groups, got {}; \
             raise it, or set groups",
            settings.backends_max
        ));
    }
    let share = descriptors::fullest_share(clients, groups);
    // The limit on all clients is kept by their sum; a group's own is what its table holds.
    let clients_per_group = room(groups).max(1);
    let reason = format!(
        "{groups} groups ({cores} cores; {clients} clients need {share} descriptors in the \
         fullest group, the limit is {limit} for each)"
    );
    Ok(Layout {
        groups: usize::try_from(groups).unwrap_or(1),
        clients_per_group: usize::try_from(clients_per_group).unwrap_or(usize::MAX),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::test_settings;

    fn machine(descriptors: u64, cores: u64) -> Machine {
        Machine {
            descriptors,
            cores,
            threads: u64::MAX,
        }
    }

    #[test]
    fn groups_have_threads_where_a_control_group_leaves_few() {
        let few = Machine {
            threads: 3,
            ..machine(20_000, 8)
        };
        let plan_for = |settings: &str| plan(&test_settings(settings), few);
        let groups = |settings| plan_for(settings).unwrap().groups;
        assert_eq!(groups("clients_max = 1000\nbackends_max = 80"), 3);
        assert_eq!(groups("groups = 5\nbackends_max = 80"), 5, "as it is set");
        let error = plan_for("clients_max = 100000").unwrap_err();
        assert!(
            error.contains("more than 3 groups") && error.contains("TasksMax"),
            "{error}"
        );
    }

    #[test]
    fn groups_follow_from_clients_limit_and_cores() {
        let plan_for = |clients: &str, limit| plan(&test_settings(clients), machine(limit, 2));
        assert_eq!(plan_for("clients_max = 1000", 20_000).unwrap().groups, 2);
        let hundred = plan_for("clients_max = 100000", 20_000).unwrap();
        assert_eq!(hundred.groups, 6);
        assert!(hundred.clients_per_group > 17_000);
        assert!(
            hundred
                .reason
                .starts_with("6 groups (2 cores; 100000 clients need")
        );
        assert_eq!(plan_for("backends_max = 4", 20_000).unwrap().groups, 1);
        let million = plan_for("clients_max = 1000000", 20_000).unwrap();
        assert_eq!(million.groups, 53);
        let settings = test_settings("clients_max = 2000000");
        assert_eq!(settings.backends_max, 123);
        assert_eq!(plan(&settings, machine(20_000, 2)).unwrap().groups, 106);
    }

    #[test]
    fn what_cannot_be_is_said_with_the_remedy() {
        let error = plan(&test_settings("clients_max = 1000000"), machine(256, 2)).unwrap_err();
        assert!(error.contains("raise it (ulimit -n)"), "{error}");
        let error = plan(
            &test_settings("groups = 4\nbackends_max = 2"),
            machine(20_000, 2),
        )
        .unwrap_err();
        assert!(error.contains("each of 4 groups"), "{error}");
    }
}
