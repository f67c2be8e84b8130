//! The roster: a group's backends by kind, who waits for each kind, and the budget.
//!
//! A kind is an account and the capabilities that change results; a client's statements run only on
//! backends of its kind. Each kind has a lane. The budget bounds backends of all kinds together,
//! dialling ones included, and is counted when dialling begins, so no instant exceeds it.
//!
//! When dialling fails, the next attempt of that kind waits, doubling from
//! [`BACK_OFF_MIN`] to [`BACK_OFF_MAX`]; a success resets it.
//!
//! Idle backends are taken last in, first out (warm caches at both ends), but one that already
//! stands in the client's session state goes first.

use crate::lane::Lanes;
use reactor::{Key, Time};
use std::time::Duration;

/// First wait after a failed dial.
pub(crate) const BACK_OFF_MIN: Duration = Duration::from_millis(50);
/// Longest wait between dials.
pub(crate) const BACK_OFF_MAX: Duration = Duration::from_secs(2);

/// What a backend logs in with, and what it can be used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Capabilities that change results, a subset of [`wire::capabilities::BACKEND_KEY`].
    pub capabilities: u32,
    /// The account.
    pub user: String,
    /// Its password.
    pub password: String,
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
        }
    }

    /// Notes that a dial failed, and why.
    pub(crate) fn dial_failed(&mut self, now: Time, why: String) {
        self.last_failure = Some(why);
        self.dial_at = now + self.back_off;
        self.back_off = (self.back_off * 2).min(BACK_OFF_MAX);
    }

    /// Notes that a dial succeeded.
    pub(crate) fn dial_succeeded(&mut self) {
        self.last_failure = None;
        self.back_off = BACK_OFF_MIN;
    }
}

/// All kinds of a group.
#[derive(Debug)]
pub(crate) struct Roster {
    /// By index; kinds are few and stay.
    pub ranks: Vec<Ranks>,
    /// Backends of all kinds, dialling ones included; at most `budget`.
    pub count: usize,
    /// The most there may be.
    pub budget: usize,
    /// Dials under way, of all kinds.
    pub dialling: usize,
}

impl Roster {
    /// An empty roster.
    #[must_use]
    pub(crate) fn new(budget: usize) -> Roster {
        Roster {
            ranks: Vec::new(),
            count: 0,
            budget,
            dialling: 0,
        }
    }

    /// The index of a kind; a new one gets its ranks.
    pub(crate) fn index_of(&mut self, capabilities: u32, user: &str, password: &str) -> usize {
        let found = self.ranks.iter().position(|ranks| {
            ranks.kind.capabilities == capabilities
                && ranks.kind.user == user
                && ranks.kind.password == password
        });
        found.unwrap_or_else(|| {
            let (user, password) = (user.to_string(), password.to_string());
            self.ranks.push(Ranks::new(Kind {
                capabilities,
                user,
                password,
            }));
            self.ranks.len() - 1
        })
    }

    /// Counts a backend that begins to dial.
    pub(crate) fn dial_begins(&mut self, kind: usize) {
        debug_assert!(
            self.count < self.budget,
            "the budget of backends is a hard one"
        );
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

    /// Whether another backend may be dialled.
    #[must_use]
    pub(crate) fn has_room(&self) -> bool {
        self.count < self.budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_an_account_and_capabilities() {
        let mut roster = Roster::new(4);
        let a = roster.index_of(0, "app", "x");
        assert_eq!(roster.index_of(0, "app", "x"), a);
        assert_ne!(roster.index_of(2, "app", "x"), a);
        assert_ne!(roster.index_of(0, "other", "x"), a);
    }

    #[test]
    fn the_budget_counts_from_the_first_dial() {
        let mut roster = Roster::new(1);
        let kind = roster.index_of(0, "app", "x");
        roster.dial_begins(kind);
        assert!(!roster.has_room());
        roster.dial_ends(kind);
        assert!(!roster.has_room());
        roster.leaves(kind, Key::from_parts(0, 0));
        assert!(roster.has_room());
    }

    #[test]
    fn dials_back_off_and_recover() {
        let mut roster = Roster::new(1);
        let kind = roster.index_of(0, "app", "x");
        let ranks = &mut roster.ranks[kind];
        let mut waits = Vec::new();
        for _ in 0..8 {
            ranks.dial_failed(Time(0), "refused".into());
            waits.push(ranks.dial_at.since(Time(0)).as_millis());
        }
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        ranks.dial_succeeded();
        ranks.dial_failed(Time(0), "refused".into());
        assert_eq!(ranks.dial_at.since(Time(0)), BACK_OFF_MIN);
    }
}
