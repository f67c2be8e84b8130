//! The roster: a group's backends by kind, and who waits for each kind.
//!
//! A kind is an account, the capabilities that change results, and the version of the server's
//! privileges at the login of its clients (`privileges.rs`); a client's statements run only on
//! backends of its kind. Each kind has lanes. What bounds the number of backends is the budget of
//! all groups (`budget.rs`).
//!
//! When dialling fails, the next attempt of that kind waits, doubling from
//! [`BACK_OFF_MIN`] to [`BACK_OFF_MAX`]; a success resets it.
//!
//! Idle backends are taken last in, first out (warm caches at both ends), but one that already
//! stands in the client's session state goes first.

use crate::begins::Begins;
use crate::lane::Lanes;
use crate::secret::Secret;
use reactor::{Key, Time};
use session::text::Text;
use std::time::Duration;
use wire::attributes::Form;
use wire::capabilities::DEPRECATE_EOF;

/// First wait after a failed dial.
pub(crate) const BACK_OFF_MIN: Duration = Duration::from_millis(50);
/// Longest wait between dials.
pub(crate) const BACK_OFF_MAX: Duration = Duration::from_secs(2);

/// What a backend logs in with, and what it can be used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Capabilities that change results, a subset of [`wire::capabilities::BACKEND_KEY`].
    pub capabilities: u32,
    /// The same of MariaDB's extended ones, of [`wire::capabilities::EXTENDED_OFFERED`].
    pub extended: u32,
    /// The account.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// The version of the server's accounts and privileges at the login of its clients: those of
    /// one version do not get what was logged in under another.
    pub(crate) privileges: u32,
}

impl Kind {
    /// How commands are written on its backends.
    pub(crate) fn form(&self) -> Form {
        Form::of(self.capabilities)
    }

    /// Whether its backends send EOF packets behind definitions and rows.
    pub(crate) fn sends_eofs(&self) -> bool {
        self.capabilities & DEPRECATE_EOF == 0
    }
}

/// How a dial has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialEnd {
    /// Nobody answered, or not to the end.
    Unreached,
    /// The server had something against it that may pass.
    Answered,
    /// The server refuses the account, or lacks what the pool needs.
    Account,
}

/// The backends of one kind and those who wait for them.
#[derive(Debug)]
pub(crate) struct Ranks {
    /// What they log in with.
    pub kind: Kind,
    /// Free ones, the last used at the end.
    pub idle: Vec<Key>,
    /// All of them, dialling ones included.
    pub count: usize,
    /// Those being dialled.
    pub dialling: usize,
    /// Who waits.
    pub lanes: Lanes,
    /// No dial before this moment.
    pub dial_at: Time,
    back_off: Duration,
    /// Why the last dial failed.
    pub last_failure: Option<String>,
    /// How its logins begin, where the server has `init_connect`.
    pub(crate) begins: Option<Begins>,
    /// The role of the last login, if it can be given back.
    pub(crate) login_role: Option<Text>,
}

impl Ranks {
    fn new(kind: Kind) -> Ranks {
        Ranks {
            kind,
            idle: Vec::new(),
            count: 0,
            dialling: 0,
            lanes: Lanes::default(),
            dial_at: Time(0),
            back_off: BACK_OFF_MIN,
            last_failure: None,
            begins: None,
            login_role: None,
        }
    }

    /// Notes that a dial failed, and why.
    pub(crate) fn dial_failed(&mut self, now: Time, why: String) {
        self.last_failure = Some(why);
        self.dial_at = now + self.back_off;
        self.back_off = (self.back_off * 2).min(BACK_OFF_MAX);
    }

    /// Notes that a dial succeeded.
    pub(crate) fn dial_succeeded(&mut self, now: Time) {
        self.last_failure = None;
        self.dial_at = self.dial_at.min(now);
        self.back_off = BACK_OFF_MIN;
    }
}

/// All kinds of a group.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    /// By index; kinds are few and stay.
    pub ranks: Vec<Ranks>,
    /// Backends of all kinds, dialling ones included; each has a slot of the budget.
    pub count: usize,
    /// Dials under way, of all kinds.
    pub dialling: usize,
}

impl Roster {
    /// The index of a kind, if there is such a kind.
    pub(crate) fn find(&self, kind: &Kind) -> Option<usize> {
        self.ranks.iter().position(|ranks| ranks.kind == *kind)
    }

    /// Gives a new kind its ranks: those of an older version of the privileges that has neither
    /// clients (`is_used`) nor backends any more, or new ones. There are no more of them than kinds
    /// and clients together.
    pub(crate) fn add(&mut self, kind: Kind, is_used: impl Fn(usize) -> bool) -> usize {
        let now = kind.privileges;
        let left = self.ranks.iter().enumerate().position(|(index, ranks)| {
            ranks.kind.privileges != now && ranks.count == 0 && !is_used(index)
        });
        let ranks = Ranks::new(kind);
        match left {
            Some(index) => {
                self.ranks[index] = ranks;
                index
            }
            None => {
                self.ranks.push(ranks);
                self.ranks.len() - 1
            }
        }
    }

    /// Counts a backend that begins to dial; its slot is taken.
    pub(crate) fn dial_begins(&mut self, kind: usize) {
        self.count += 1;
        self.dialling += 1;
        self.ranks[kind].count += 1;
        self.ranks[kind].dialling += 1;
    }

    /// Notes that a dial ended, one way or the other.
    pub(crate) fn dial_ends(&mut self, kind: usize) {
        self.dialling -= 1;
        self.ranks[kind].dialling -= 1;
    }

    /// Takes a backend off the books.
    pub(crate) fn leaves(&mut self, kind: usize, key: Key) {
        self.count -= 1;
        self.ranks[kind].count -= 1;
        self.ranks[kind].idle.retain(|&idle| idle != key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(capabilities: u32, user: &str, privileges: u32) -> Kind {
        Kind {
            capabilities,
            extended: 0,
            user: user.into(),
            password: Secret::from("x"),
            privileges,
        }
    }

    #[test]
    fn a_kind_is_an_account_capabilities_and_a_version_of_privileges() {
        let mut roster = Roster::default();
        let a = roster.add(kind(0, "app", 0), |_| true);
        assert_eq!(roster.find(&kind(0, "app", 0)), Some(a));
        for other in [kind(2, "app", 0), kind(0, "other", 0), kind(0, "app", 1)] {
            assert_eq!(roster.find(&other), None);
        }
    }

    #[test]
    fn what_nobody_uses_of_an_older_version_is_used_again() {
        let mut roster = Roster::default();
        let a = roster.add(kind(0, "app", 0), |_| true);
        let b = roster.add(kind(2, "app", 0), |_| false);
        assert_ne!(a, b, "of the same version");
        let c = roster.add(kind(0, "app", 1), |_| true);
        assert!(c != a && c != b, "both have clients");
        roster.dial_begins(a);
        assert_eq!(roster.add(kind(0, "app", 2), |index| index == c), b);
        roster.dial_ends(a);
        roster.leaves(a, Key::from_parts(1, 1));
        assert_eq!(roster.add(kind(2, "app", 2), |index| index == c), a);
        assert_eq!(roster.ranks.len(), 3);
    }

    #[test]
    fn dials_back_off_and_recover() {
        let mut roster = Roster::default();
        let kind = roster.add(kind(0, "app", 0), |_| true);
        let ranks = &mut roster.ranks[kind];
        let mut waits = Vec::new();
        for _ in 0..8 {
            ranks.dial_failed(Time(0), "refused".into());
            waits.push(ranks.dial_at.since(Time(0)).as_millis());
        }
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        ranks.dial_succeeded(Time(0));
        ranks.dial_failed(Time(0), "refused".into());
        assert_eq!(ranks.dial_at.since(Time(0)), BACK_OFF_MIN);
    }
}
