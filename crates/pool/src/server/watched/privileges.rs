//! Privileges: a login gets what the server's accounts are now, not what they were.
//!
//! The problem: a server reads an account's privileges when it logs in, and at a change of user; a
//! backend that logged in before a GRANT or a REVOKE has the old ones, and would be given to those
//! who log in after it. The mechanism: [`crate::server::watch`] asks once a second, and behind
//! each such statement through the pool, how often the server has begun a statement about accounts
//! ([`COUNTERS`]). When that has changed, it counts a version up, and once more at the next
//! asking, since a statement is counted when it begins. The version is a part of a client's pool
//! from its login or change of user on. COM_RESET_CONNECTION changes no privileges, on either
//! server.
//!
//! A session of before keeps backends of before, as it would keep its privileges on a server. One
//! that has to be dialled for it, since all are busy, has the privileges of that moment. Their
//! slots go to whoever waits longest, of any version, and a client of whose version no backend is
//! left goes on with those of now: many changes do not divide the backends among many versions.
//!
//! Where the server's accounts may log in (`auth = "server"`) and the watch cannot tell whether
//! they have changed, it counts the version up with each question that fails: whoever logs in
//! meanwhile gets backends that log in after that, so that the server itself judges what they have
//! proven.
//!
//! Invariants: no client runs on a backend that was dialled for a client of another version; idle
//! backends of a version whose clients have all gone are closed at the next sweep.

use crate::observe::log::{Event, note};
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Release};

/// Statements that change accounts, roles or privileges, or have them read again. MariaDB counts
/// SET DEFAULT ROLE and SET PASSWORD as any SET, so that those are not among them.
pub(crate) const COUNTERS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_grant',\
     'Com_grant_role','Com_grant_roles','Com_revoke','Com_revoke_all','Com_revoke_role',\
     'Com_revoke_roles','Com_create_user','Com_alter_user','Com_alter_user_default_role',\
     'Com_drop_user','Com_rename_user','Com_create_role','Com_drop_role','Com_set_password',\
     'Com_flush')";

/// Names and numbers, as the server told them.
type Rows = Vec<Vec<Box<[u8]>>>;

/// Version of the privileges, shared by all groups.
#[derive(Debug, Default)]
pub(crate) struct Privileges {
    version: AtomicU32,
}

impl Privileges {
    pub(crate) fn version(&self) -> u32 {
        self.version.load(Acquire)
    }

    /// Counts a change of privileges, known or possible.
    pub(crate) fn count_up(&self) {
        self.version.fetch_add(1, Release);
    }
}

/// Counters of the privileges, as the watch has seen them.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    last: Option<Rows>,
    /// True if they were other ones at the last look: what was begun then may have taken effect
    /// since.
    again: bool,
}

impl Counted {
    /// The counters at another look.
    pub(crate) fn note(&mut self, rows: Rows, shared: &Privileges) -> Noted {
        let names = (self.last.as_ref()).map_or(Vec::new(), |last| changed(last, &rows));
        if !names.is_empty() || self.again {
            shared.count_up();
        }
        if !names.is_empty() {
            note(
                Event::Accounts,
                format_args!(
                    "the server's accounts may have changed ({}): who logs in from now on gets \
                     connections that do so too",
                    names.join(", ")
                ),
            );
        }
        self.again = !names.is_empty();
        self.last = Some(rows);
        match names.iter().any(|name| name == FLUSH) {
            true => Noted::Flushed,
            false => Noted::Other,
        }
    }
}

/// Counts FLUSH PRIVILEGES, among others.
const FLUSH: &str = "Com_flush";

/// Result of a look at the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// Flush after which the server may have forgotten the passwords that it had cached.
    Flushed,
    Other,
}

/// Names of the counters that are other ones.
fn changed(last: &Rows, now: &Rows) -> Vec<String> {
    let other = now.iter().filter(|row| !last.contains(row));
    let name = other.filter_map(|row| row.first());
    name.map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pairs: &[(&str, &str)]) -> Rows {
        let row =
            |(name, value): &(&str, &str)| vec![name.as_bytes().into(), value.as_bytes().into()];
        pairs.iter().map(row).collect()
    }

    #[test]
    fn a_change_makes_a_version_when_it_is_seen_and_once_more() {
        let (shared, mut counted) = (Privileges::default(), Counted::default());
        let before = rows(&[("Com_flush", "1"), ("Com_grant", "1")]);
        let after = rows(&[("Com_flush", "1"), ("Com_grant", "2")]);
        let mut seen = Vec::new();
        for now in [&before, &before, &after, &after, &after] {
            counted.note(now.clone(), &shared);
            seen.push(shared.version());
        }
        assert_eq!(seen, [0, 0, 1, 2, 2]);
        assert_eq!(changed(&before, &after), ["Com_grant"]);
    }
}
