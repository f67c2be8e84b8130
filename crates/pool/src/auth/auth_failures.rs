//! Failed logins, counted by address, and the delay that they earn.
//!
//! The problem: who guesses passwords, or sends garbage for them, costs the pool more than it costs
//! the sender. The mechanism: each address has a level, which a failed login raises by one and each
//! second without one lowers by one. Above [`FREE`] the error for a failed login is held back: the
//! higher the level, the longer, [`DELAY_MAX`] at most; and its full authentications wait in a line
//! of their own ([`crate::auth::password_checks`]). A login with the right password is never held
//! back, so those who share an address with a guesser get in.
//!
//! IPv4 addresses count each for itself, IPv6 addresses by their /64 network. The loopback address
//! counts like any other. Unix sockets have no address: all their clients count as one.
//!
//! The table has [`ADDRESSES_MAX`] cells, found by a hash that nobody outside can know; two
//! addresses in one cell share a level. It is written without locks by all groups.

use reactor::Time;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Cells of the table, of 8 bytes each.
pub(crate) const ADDRESSES_MAX: usize = 16 * 1024;
/// Failed logins that cost nothing.
pub(crate) const FREE: u64 = 10;
/// Further delay of each further one.
const DELAY_STEP: Duration = Duration::from_millis(20);
/// The longest time that the error for a failed login is held back.
pub(crate) const DELAY_MAX: Duration = Duration::from_secs(2);
/// A level rises to this at most: two minutes without a failure, and an address starts over.
const LEVEL_MAX: u64 = 120;
/// Bits of a cell that hold the level; the others hold the second of its last change.
const LEVEL_BITS: u32 = 8;

/// The levels of all addresses.
#[derive(Debug)]
pub(crate) struct AuthFailures {
    cells: Box<[AtomicU64]>,
    hash: RandomState,
}

impl Default for AuthFailures {
    fn default() -> AuthFailures {
        AuthFailures {
            cells: (0..ADDRESSES_MAX).map(|_| AtomicU64::new(0)).collect(),
            hash: RandomState::new(),
        }
    }
}

/// Rest of a cell's level at this second.
fn level_at(cell: u64, second: u64) -> u64 {
    let level = cell & ((1 << LEVEL_BITS) - 1);
    level.saturating_sub(second.saturating_sub(cell >> LEVEL_BITS))
}

impl AuthFailures {
    fn cell(&self, address: Option<IpAddr>) -> &AtomicU64 {
        let network = address.map(|address| match address.to_canonical() {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => 1 << 63 | (address.to_bits() >> 64) as u64 >> 1,
        });
        let hash = self.hash.hash_one(network);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a remainder of a small number"
        )]
        let index = (hash % ADDRESSES_MAX as u64) as usize;
        &self.cells[index]
    }

    fn change(&self, address: Option<IpAddr>, now: Time, change: impl Fn(u64) -> u64) -> u64 {
        let second = now.0 / 1_000_000_000;
        let next = |cell| second << LEVEL_BITS | change(level_at(cell, second)).min(LEVEL_MAX);
        let cell = self.cell(address);
        let before = cell.fetch_update(Relaxed, Relaxed, |cell| Some(next(cell)));
        let (Ok(before) | Err(before)) = before;
        next(before) & ((1 << LEVEL_BITS) - 1)
    }

    /// Counts a failed, or still undecided, login from this address; returns the level after it.
    pub(crate) fn note(&self, address: Option<IpAddr>, now: Time) -> u64 {
        self.change(address, now, |level| level + 1)
    }

    /// Takes one counted login back that has not failed.
    pub(crate) fn forgive(&self, address: Option<IpAddr>, now: Time) {
        self.change(address, now, |level| level.saturating_sub(1));
    }
}

/// Delay of the error for a failed login at this level.
pub(crate) fn delay_at(level: u64) -> Duration {
    let steps = u32::try_from(level.saturating_sub(FREE)).unwrap_or(u32::MAX);
    DELAY_STEP.saturating_mul(steps).min(DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Time {
        Time(second * 1_000_000_000)
    }

    #[test]
    fn failures_of_one_address_raise_its_level_and_time_lowers_it() {
        let failures = AuthFailures::default();
        let address = Some("192.0.2.1".parse().unwrap());
        for n in 1..=FREE {
            assert_eq!(failures.note(address, at(100)), n);
            assert_eq!(delay_at(n), Duration::ZERO);
        }
        assert_eq!(delay_at(failures.note(address, at(100))), DELAY_STEP);
        assert_eq!(failures.note(address, at(105)), FREE + 1 - 5 + 1);
        failures.forgive(address, at(105));
        assert_eq!(failures.note(address, at(105)), FREE - 3);
        assert_eq!(failures.note(address, at(1000)), 1, "forgotten");
    }

    #[test]
    fn a_level_has_an_upper_bound_and_so_has_the_delay() {
        let failures = AuthFailures::default();
        for _ in 0..1000 {
            assert!(failures.note(None, at(5)) <= LEVEL_MAX);
        }
        assert_eq!(delay_at(failures.note(None, at(5))), DELAY_MAX);
        assert_eq!(delay_at(u64::MAX), DELAY_MAX);
        // A clock that another group has read later does not matter.
        assert_eq!(failures.note(None, at(4)), LEVEL_MAX);
    }

    #[test]
    fn a_table_that_more_addresses_meet_than_it_has_cells_stays_as_large() {
        let failures = AuthFailures::default();
        for n in 0..4 * u32::try_from(ADDRESSES_MAX).unwrap() {
            failures.note(Some(IpAddr::V4(n.into())), at(1));
        }
        assert_eq!(failures.cells.len(), ADDRESSES_MAX);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address_and_a_mapped_address_is_itself() {
        let failures = AuthFailures::default();
        let same = |a: &str, b: &str| {
            let [a, b] = [a, b].map(|text| Some(text.parse().unwrap()));
            std::ptr::eq(failures.cell(a), failures.cell(b))
        };
        assert!(same("2001:db8::1", "2001:db8::ffff:1"));
        assert!(same("::ffff:192.0.2.1", "192.0.2.1"));
    }
}
