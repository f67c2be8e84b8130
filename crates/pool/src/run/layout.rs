//! How many groups there are, and how many clients each may hold.
//!
//! Each group has a descriptor table of its own, so the limit of descriptors holds for each: more
//! clients than one table holds need more groups. Otherwise there are as many as cores, and fewer
//! where they would have too few backends each.

use crate::config::Settings;
use crate::queue::budget::Budget;
use reactor::descriptors;

/// Descriptors that a group needs besides its clients and backends: epoll, listeners, mailboxes of
/// all groups, the standard streams, and some for what libraries open.
const DESCRIPTORS_RESERVED: u64 = 64;
/// A group is not made for fewer backends than this, unless the clients need its descriptors.
const BACKENDS_PER_GROUP: u64 = 8;

/// How many groups, how many clients each may hold, and the sentence that says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) groups: usize,
    pub(crate) clients_per_group: usize,
    pub(crate) reason: String,
}

/// The layout for these settings, with this limit of descriptors for a table.
///
/// # Errors
/// Which setting cannot be kept, and what to change.
pub(crate) fn plan(settings: &Settings, limit: u64, cores: u64) -> Result<Layout, String> {
    let backends = |groups: u64| {
        let groups = usize::try_from(groups).unwrap_or(1);
        Budget::most_of_group(settings.backends_max, groups) as u64
    };
    let room = |groups: u64| {
        limit
            .saturating_sub(DESCRIPTORS_RESERVED + groups)
            .saturating_sub(backends(groups))
    };
    let clients = settings.clients_max as u64;
    // Each group has backends of its own; with too few, one pinned client would be all it has.
    let served = (settings.backends_max as u64 / BACKENDS_PER_GROUP).max(1);
    let wished = settings
        .groups
        .map_or(cores.min(served), |groups| groups as u64);
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

    #[test]
    fn groups_follow_from_clients_limit_and_cores() {
        let plan_for = |clients: &str, limit| plan(&test_settings(clients), limit, 2);
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
        assert_eq!(plan(&settings, 20_000, 2).unwrap().groups, 106);
    }

    #[test]
    fn what_cannot_be_is_said_with_the_remedy() {
        let error = plan(&test_settings("clients_max = 1000000"), 256, 2).unwrap_err();
        assert!(error.contains("raise it (ulimit -n)"), "{error}");
        let error = plan(&test_settings("groups = 4\nbackends_max = 2"), 20_000, 2).unwrap_err();
        assert!(error.contains("each of 4 groups"), "{error}");
    }
}
