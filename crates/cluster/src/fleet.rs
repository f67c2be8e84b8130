//! Pools in front of one server that share its connections: which of them may open how many.
//!
//! The problem: several pools must never open more connections together than one of them may
//! alone, whatever dies, hangs or is cut off, and have nothing in common but the server. The
//! mechanism: a limit of N is N *units*, and each unit is two named locks on the server. A pool
//! holds the [`Lock::Claim`] of a unit on a connection of its own before it opens a backend for
//! it; the backend itself holds the unit's [`Lock::Witness`] from its login to its end. A pool
//! claims only a unit of which it has seen both free, and uses it once it has held the claim for a
//! while and the witness is free still. Each pool also holds a
//! [`Lock::Seat`], and tells numbers (its demand, its limit, a KILL) by their binary digits, each
//! of which is a lock ([`Lock::Digit`]). A [`Member`] asks in rounds who holds what, and decides
//! by one pure function for all ([`shares`]) what it gives up and takes. It reads no clock and
//! opens no socket.
//!
//! Invariants:
//! - A unit with a backend of one pool is claimed by no other: while the pool lives and is
//!   connected it has the claim, and else the server has the witness, for as long as it has the
//!   connection.
//! - A number that is misread in between moves shares for a round, and never the invariant
//!   above.
//! - All loops go over [`SEATS_MAX`] seats, and units up to the limit; a survey asks for at most
//!   [`LIMIT_LOCKS_MAX`] locks of limits, which take turns.

mod kills;
mod member;
mod units;

pub use kills::{ANYBODY, KillAnswer, RemoteKill};
pub use member::{LIMIT_LOCKS_MAX, Member, Need, Plan, SEAT_ROUNDS, SeatView};
use std::time::Duration;
pub use units::Units;

/// Pools of a fleet: their numbers are six bits of a client's id.
pub const SEATS_MAX: u8 = 64;
/// Units of a limit: each is asked for four times a second by each pool.
pub const UNITS_MAX: usize = 4096;
/// A pool opens backends for so long behind an answer of the server: its claims may be gone since.
pub const FRESH: Duration = Duration::from_millis(500);
/// A unit is used once its claim was held for so long, and its witness is free still: a pool that
/// has lost it opens no backend for it any more, and one that it opened last has logged in.
const HELD_FOR: Duration = Duration::from_millis(600);
/// Binary digits of a demand and a limit.
const DIGITS: u8 = 16;

/// A limit that is shared: 0 for all backends, else a number made of its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(pub u32);

/// A number that a pool tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Number {
    /// Units that it could use.
    Demand(Resource),
    /// Units that there are, by its settings.
    Limit(Resource),
    /// A KILL: that there is one, its kind, and its number.
    Kill,
    /// Id of the client that is to be ended.
    Victim,
    /// Hash of the account that may end it.
    Account,
}

/// A named lock on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lock {
    /// A pool's place in the fleet.
    Seat(u8),
    /// Held: this digit of a number that a seat tells is 1.
    Digit(u8, Number, u8),
    /// A unit that a pool may use.
    Claim(Resource, u32),
    /// A unit that a backend uses.
    Witness(Resource, u32),
    /// Answer to the KILL of a seat with this number.
    Answer(u8, u8, KillAnswer),
}

impl Lock {
    /// Its name on the server, within the 64 characters that MySQL allows.
    #[must_use]
    pub fn name(self, fleet: &str) -> String {
        let own = match self {
            Lock::Seat(seat) => format!("s{seat}"),
            Lock::Digit(seat, number, digit) => match number {
                Number::Demand(of) => format!("d{seat}.{:x}.{digit}", of.0),
                Number::Limit(of) => format!("l{seat}.{:x}.{digit}", of.0),
                Number::Kill => format!("k{seat}.{digit}"),
                Number::Victim => format!("v{seat}.{digit}"),
                Number::Account => format!("u{seat}.{digit}"),
            },
            Lock::Claim(of, unit) => format!("c{:x}.{unit}", of.0),
            Lock::Witness(of, unit) => format!("w{:x}.{unit}", of.0),
            Lock::Answer(seat, number, answer) => format!("a{seat}.{number}.{}", answer as u8),
        };
        format!("onramp:{fleet}:{own}")
    }
}

/// A command about one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// GET_LOCK that does not wait.
    Get(Lock),
    /// RELEASE_LOCK.
    Release(Lock),
    /// IS_USED_LOCK: the connection that holds it.
    Holder(Lock),
}

impl Op {
    /// Its expression in SQL.
    #[must_use]
    pub fn sql(self, fleet: &str) -> String {
        match self {
            Op::Get(lock) => format!("GET_LOCK('{}',0)", lock.name(fleet)),
            Op::Release(lock) => format!("RELEASE_LOCK('{}')", lock.name(fleet)),
            Op::Holder(lock) => format!("IS_USED_LOCK('{}')", lock.name(fleet)),
        }
    }
}

/// Demand that a pool tells: it follows what the pool could use by a quarter a round. A unit that
/// moves is nobody's for most of a second, which a swing is not worth.
#[must_use]
pub fn told_demand(before: u32, now: u32) -> u32 {
    match now > before {
        true => before + (now - before).div_ceil(4),
        false => before - (before - now).div_ceil(4),
    }
}

/// Units of each pool, by what each could use, at least `floor` where there are so many. What
/// nobody could use is spread evenly; of too few each has its part by demand.
#[must_use]
pub fn shares(limit: u32, floor: u32, demands: &[u32]) -> Vec<u32> {
    let count = u32::try_from(demands.len()).unwrap_or(u32::MAX).max(1);
    let floor = floor.min(limit / count);
    let wants: Vec<u32> = demands.iter().map(|&demand| demand.max(floor)).collect();
    let sum: u64 = wants.iter().map(|&want| u64::from(want)).sum();
    if sum <= u64::from(limit) {
        let spare = limit - u32::try_from(sum).unwrap_or(limit);
        let each = |(at, want): (u32, &u32)| want + spare / count + u32::from(at < spare % count);
        return (0..).zip(&wants).map(each).collect();
    }
    // Who would get less than the floor gets that, and the others their parts of the rest.
    let mut in_order: Vec<usize> = (0..wants.len()).collect();
    in_order.sort_by_key(|at| wants[*at]);
    let (mut given, mut rests) = (vec![floor; wants.len()], Vec::new());
    let (mut left, mut total) = (u64::from(limit), sum);
    for at in in_order {
        let want = u64::from(wants[at]);
        let exact = left * want;
        if rests.is_empty() && exact < u64::from(floor) * total {
            (left, total) = (left - u64::from(floor), total - want);
        } else {
            given[at] = u32::try_from(exact / total).unwrap_or(0);
            rests.push((std::cmp::Reverse(exact % total), at));
        }
    }
    rests.sort_unstable();
    let missing = limit.saturating_sub(given.iter().sum());
    for (_, at) in rests.iter().take(missing as usize) {
        given[*at] += 1;
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_whole_and_follow_demand() {
        assert_eq!(shares(64, 2, &[0]), [64]);
        assert_eq!(shares(64, 2, &[0, 0]), [32, 32]);
        assert_eq!(shares(65, 2, &[10, 30]), [23, 42]);
        assert_eq!(shares(40, 0, &[100, 300]), [10, 30]);
        assert_eq!(shares(32, 2, &[10, 60]), [5, 27]);
        assert_eq!(shares(40, 2, &[1000, 0, 0]), [36, 2, 2]);
        assert_eq!(shares(40, 9, &[30, 10, 9]), [22, 9, 9]);
        assert_eq!(shares(3, 2, &[5, 5]), [2, 1]);
        assert_eq!(shares(3, 2, &[0, 9, 9, 9]), [0, 1, 1, 1]);
        assert_eq!(shares(0, 2, &[9, 9]), [0, 0]);
    }

    #[test]
    fn names_are_as_long_as_a_server_takes() {
        let fleet = "f".repeat(20);
        let largest = Resource(u32::MAX);
        let locks = [
            Lock::Claim(largest, u32::MAX),
            Lock::Witness(largest, u32::MAX),
            Lock::Digit(63, Number::Limit(largest), 31),
            Lock::Answer(63, 63, KillAnswer::Failed),
        ];
        assert!(locks.iter().all(|lock| lock.name(&fleet).len() <= 64));
    }
}
