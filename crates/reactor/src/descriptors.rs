//! Descriptors: how many this process may have, and a table of its own for each group.
//!
//! RLIMIT_NOFILE bounds the *numbers* a descriptor table hands out. Threads share one table, unless
//! a thread leaves it (`unshare(CLONE_FILES)`, no privilege needed): then the limit holds for that
//! thread's table alone, and the kernel's look-ups in it need no atomic reference. N groups hold
//! N times the limit.
//!
//! What follows for whoever calls [`own_table`]: descriptors that were open before stay open in
//! both tables; whatever is opened later exists in one table only and must not be used from
//! another thread. A connection ends when the last table has closed it, so a thread that accepts
//! while others call this calls it first: a copy would keep its peers waiting for the end.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// The limit on descriptors of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Limit in force now.
    pub soft: u64,
    /// Limit up to which it can be raised without privileges.
    pub hard: u64,
}

/// Raises the soft limit to the hard one and says what is in force. Where it cannot be raised the
/// soft limit stays, and is said.
#[must_use]
pub fn raise_limit() -> Limit {
    let found = getrlimit(Resource::Nofile);
    let hard = found.maximum.unwrap_or(u64::MAX);
    let wish = Rlimit {
        current: Some(hard),
        maximum: found.maximum,
    };
    let raised = setrlimit(Resource::Nofile, wish).is_ok();
    let soft = if raised {
        hard
    } else {
        found.current.unwrap_or(u64::MAX)
    };
    Limit { soft, hard }
}

/// Gives the calling thread a descriptor table of its own, a copy of the present one.
///
/// The usual filter of containers forbids `unshare` without CAP_SYS_ADMIN, whatever is to be
/// unshared, and allows `close_range`, which unshares the table before it closes anything
/// (Linux 5.9).
///
/// # Errors
/// The system's error (ENOMEM; EPERM under filters that forbid both).
pub fn own_table() -> io::Result<()> {
    unshare_table().or_else(|error| close_nothing_in_own_table().map_err(|_| error))
}

/// Descriptors are below this number: a range that begins here holds none.
const NO_DESCRIPTOR: libc::c_uint = libc::c_int::MAX as libc::c_uint;

/// Closes an empty range of descriptors in a table of the thread's own, which stays.
fn close_nothing_in_own_table() -> io::Result<()> {
    let (first, last) = (NO_DESCRIPTOR, NO_DESCRIPTOR);
    let flags = libc::CLOSE_RANGE_UNSHARE;
    // SAFETY: as for `unshare_table`; three numbers are passed, and no descriptor is closed.
    // JUSTIFICATION: rustix has no such call.
    #[expect(unsafe_code)]
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn unshare_table() -> io::Result<()> {
    // SAFETY: the danger is a descriptor of one table used under another. Types of this crate that
    // cross threads (`Sender`, shared Unix listeners) hold descriptors opened before any thread of
    // the process called this, and are never closed while such a thread runs; all others are made
    // and dropped in the thread that owns them (`RealNet` is not `Send`).
    // JUSTIFICATION: there is no safe call for it, and it is what lifts the descriptor limit.
    #[expect(unsafe_code)]
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }
        .map_err(io::Error::from)
}

/// Number of groups that hold `connections` when each has room for `per_group`, given that the
/// kernel deals connections to listeners by hash, not in turn: the fullest group gets more than its
/// share. At least `cores`.
#[must_use]
pub fn groups_for(connections: u64, per_group: u64, cores: u64) -> u64 {
    let mut groups = cores.max(1).max(connections.div_ceil(per_group.max(1)));
    while groups > 1 && fullest_share(connections, groups) > per_group.max(1) {
        if groups >= connections {
            break;
        }
        groups += 1;
    }
    groups
}

/// Share of `connections`, dealt by hash, of the fullest of `groups`: the mean and five standard
/// deviations (about one chance in three million to be exceeded).
#[must_use]
pub fn fullest_share(connections: u64, groups: u64) -> u64 {
    let mean = connections.div_ceil(groups.max(1));
    if groups <= 1 {
        mean
    } else {
        (mean + 5 * mean.isqrt()).min(connections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn groups_follow_from_connections_limit_and_cores() {
        assert_eq!(groups_for(1_000, 19_000, 2), 2);
        assert_eq!(groups_for(100_000, 19_900, 2), 6);
        assert_eq!(groups_for(1_000_000, 19_900, 2), 53);
        assert_eq!(groups_for(0, 19_900, 4), 4);
        assert_eq!(groups_for(10, 1, 1), 10);
        assert!(fullest_share(100_000, 6) <= 19_900);
        assert!(fullest_share(1_000_000, 53) <= 19_900);
    }

    #[test]
    fn a_table_of_its_own_counts_for_itself() {
        counts_for_itself(own_table);
        counts_for_itself(close_nothing_in_own_table);
    }

    fn counts_for_itself(make: fn() -> io::Result<()>) {
        let before = File::open("/dev/null").unwrap();
        let number = before.as_raw_fd();
        std::thread::spawn(move || {
            make().unwrap();
            // Closed here, in this thread's table only.
            drop(before);
            let again = File::open("/dev/zero").unwrap();
            assert!(again.as_raw_fd() <= number);
        })
        .join()
        .unwrap();
        // Still open in the table of the thread that opened it.
        let path = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
        assert_eq!(path.to_str(), Some("/dev/null"));
    }
}
