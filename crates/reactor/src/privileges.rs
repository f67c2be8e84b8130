//! Giving up privileges: from then on the process is another user, and cannot be the first again.
//!
//! The problem: a port below 1024, a certificate's key or a socket's owner may take root; to serve
//! clients takes nothing. The mechanism: [`become_user`] gives up the groups, then the group, then
//! the user, for all threads of the process, and looks whether it has come to that.
//!
//! The calls are those of the C library: the kernel's own change the calling thread alone, and the
//! library has every thread make them.

use std::{fs, io};

/// User and groups of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its user.
    pub user: u32,
    /// Its only group.
    pub group: u32,
}

/// User and groups that the process acts as now.
#[must_use]
pub fn acting() -> Account {
    Account {
        user: rustix::process::geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
    }
}

/// Says whether the kernel may write the memory of this process to a file (a core), which is also
/// whether other processes of the same user may read it (ptrace, `/proc/PID/mem`). Another user's
/// is asked again: to become one sets it back.
///
/// # Errors
/// The system's error.
pub fn allow_dumps(allowed: bool) -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    Ok(set_dumpable_behavior(match allowed {
        true => DumpableBehavior::Dumpable,
        false => DumpableBehavior::NotDumpable,
    })?)
}

fn checked(status: libc::c_int) -> io::Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the process this user, of this group and of no other. There is no way back.
///
/// # Errors
/// EPERM where the process may not; the system's error otherwise. An error that says that something
/// is left means that the process must not go on.
pub fn become_user(account: Account) -> io::Result<()> {
    let groups = [account.group];
    // SAFETY: the list lives through the call, and its length is given.
    // JUSTIFICATION: the standard library cannot, and rustix changes one thread only.
    #[expect(unsafe_code)]
    let status = unsafe { libc::setgroups(groups.len(), groups.as_ptr()) };
    checked(status)?;
    // SAFETY: numbers are all that the call takes.
    // JUSTIFICATION: as above.
    #[expect(unsafe_code)]
    let status = unsafe { libc::setgid(account.group) };
    checked(status)?;
    // SAFETY: as above.
    // JUSTIFICATION: as above.
    #[expect(unsafe_code)]
    let status = unsafe { libc::setuid(account.user) };
    checked(status)?;
    for thread in fs::read_dir("/proc/self/task")? {
        // One that has ended meanwhile has no privileges.
        if let Ok(status) = fs::read_to_string(thread?.path().join("status")) {
            check(&status, account)?;
        }
    }
    Ok(())
}

/// Looks at what the kernel says of a thread (`/proc/PID/task/TID/status`): real, effective, saved
/// and file system user and group, further groups, and capabilities.
fn check(status: &str, account: Account) -> io::Result<()> {
    let numbers = |name: &str, expected: &[u32]| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let found = line.map(|line| line.split_whitespace().map(str::parse).collect());
        match found {
            Some(Ok(found)) if Vec::<u32>::eq(&found, expected) => Ok(()),
            _ => Err(io::Error::other(format!(
                "a thread is still another user: {name}{}",
                line.unwrap_or_default()
            ))),
        }
    };
    numbers("Uid:", &[account.user; 4])?;
    numbers("Gid:", &[account.group; 4])?;
    numbers("Groups:", &[account.group])?;
    if account.user == 0 {
        return Ok(());
    }
    for name in ["CapPrm:", "CapEff:"] {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let found = line.map(|line| line.trim().trim_start_matches('0'));
        if found != Some("") {
            let found = found.unwrap_or_default();
            return Err(io::Error::other(format!(
                "a thread still has capabilities: {name} {found}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tonramp\nUid:\t65534\t65534\t65534\t65534\n\
                          Gid:\t65533\t65533\t65533\t65533\nGroups:\t65533 \n\
                          CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n\
                          CapEff:\t0000000000000000\n";
    const ACCOUNT: Account = Account {
        user: 65534,
        group: 65533,
    };

    #[test]
    fn a_thread_that_is_somebody_else_in_any_way_is_noticed() {
        check(STATUS, ACCOUNT).unwrap();
        for (from, to, part) in [
            ("65534\nGid", "0\nGid", "Uid:"),
            ("Gid:\t65533", "Gid:\t0", "Gid:"),
            ("Groups:\t65533 ", "Groups:\t65533 0", "Groups:"),
            ("Groups:\t65533 ", "Groups:\t", "Groups:"),
            ("Groups:\t65533 \n", "", "Groups:"),
            (
                "CapPrm:\t0000000000000000",
                "CapPrm:\t0000000000000400",
                "400",
            ),
            (
                "CapEff:\t0000000000000000",
                "CapEff:\t000001ffffffffff",
                "1ff",
            ),
            ("CapEff:", "CapNone:", "CapEff:"),
        ] {
            let status = STATUS.replacen(from, to, 1);
            assert_ne!(status, STATUS);
            let error = check(&status, ACCOUNT).unwrap_err().to_string();
            assert!(error.contains(part), "{from} -> {to}: {error}");
        }
    }

    #[test]
    fn who_may_not_is_told_so() {
        if acting().user != 0 {
            let error = become_user(ACCOUNT).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
    }
}
