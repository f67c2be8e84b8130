//! Limits by address and by network: connections that are open, and logins that begin in a second.
//!
//! The problem: one host, or a network of them, can take all of `clients_max`, or all of the time
//! that logins may take, from everybody else. A listener of each group sees a part of its
//! connections only, so the sums have to be over all groups; and whoever has a network of IPv6 has
//! more addresses than any table has room for.
//!
//! The mechanism: [`AddressLimits`] is a table of [`CELLS`] cells in sets of [`WAYS`], found by a
//! hash that nobody outside can know. A cell belongs to one address (an IPv4 address, a /64 of
//! IPv6) or to one network of the settings' length. It counts who is open, and spaces out who
//! begins: as many may begin at once as in a second. A connection is counted in the cell of its
//! address and in that of its network, whichever of them has a limit, so that a limit may come
//! later; it keeps both ([`CountedAddress`]) until it ends.
//!
//! Invariants:
//! - the table does not grow;
//! - two addresses never share a cell, so nobody is refused for what another one does;
//! - a cell with an open connection is never given to another. Others are, the one that has been
//!   quiet for longest first. Where every cell of a set has open connections, a newcomer there is
//!   let in without being counted (and that is counted): a full table locks nobody out, and
//!   `clients_max` still holds;
//! - a refusal changes no count, so that who tries without a pause gets in as often as others.

use crate::auth::network::Network;
use reactor::Time;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Cells of the table, of 32 bytes each; it is made when a limit is first set.
pub(crate) const CELLS: usize = 64 * 1024;
/// Cells of a set, and sets.
const WAYS: usize = 16;
const SETS: usize = CELLS / WAYS;
/// Bits of an IPv6 address that make one address: a host has at least so many for itself.
const IPV6_ADDRESS_BITS: u32 = 64;
/// Burst of connections that may begin before others have to wait for their turn: as many as in
/// this time.
const BURST_NANOS: u64 = 1_000_000_000;
/// Cells are asked about only where an address is counted: one that says so.
const NOWHERE: u32 = u32::MAX;

/// Limits of one address, or one network; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Open connections.
    pub(crate) clients: Option<u32>,
    /// Connections that begin in a second.
    pub(crate) logins_per_s: Option<u32>,
}

/// Limit that nobody meets.
const UNMET: Limit = Limit {
    clients: Some(u32::MAX),
    logins_per_s: None,
};

/// The limits as the settings have them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressRules<'s> {
    pub(crate) address: Limit,
    pub(crate) network: Limit,
    /// Bits of an IPv4 and of an IPv6 address that make a network.
    pub(crate) network_bits: (u32, u32),
    /// Addresses that have no limit.
    pub(crate) exempt: &'s [Network],
}

impl AddressRules<'_> {
    /// True if there is anything to be counted for.
    pub(crate) fn is_any(&self) -> bool {
        self.address != Limit::default() || self.network != Limit::default()
    }
}

/// Limit that was met, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Met {
    /// An address, or a network.
    whose: Prefix,
    /// Connections in a second, not open ones.
    is_rate: bool,
    max: u32,
}

impl Met {
    /// All names for counters.
    pub(crate) const NAMES: [&'static str; 4] = [
        "address-clients",
        "address-logins",
        "network-clients",
        "network-logins",
    ];

    /// A short stable name, for counters.
    pub(crate) fn name(&self) -> &'static str {
        Met::NAMES[2 * usize::from(self.whose.is_network) + usize::from(self.is_rate)]
    }

    /// One of each limit, for tests.
    #[cfg(test)]
    pub(crate) fn examples() -> [Met; 4] {
        let limits = [(false, false), (false, true), (true, false), (true, true)];
        limits.map(|(is_network, is_rate)| Met {
            whose: Prefix::of(Ipv4Addr::LOCALHOST.into(), (32, 64), is_network),
            is_rate,
            max: 100,
        })
    }

    /// The setting that says so.
    fn setting(&self) -> &'static str {
        match (self.whose.is_network, self.is_rate) {
            (false, false) => "clients_per_address_max",
            (false, true) => "logins_per_s_per_address_max",
            (true, false) => "clients_per_network_max",
            (true, true) => "logins_per_s_per_network_max",
        }
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whose, max, setting) = (self.whose, self.max, self.setting());
        match self.is_rate {
            false => write!(
                f,
                "{max} connections from {whose} are open already, as many as may be ({setting})"
            ),
            true => write!(
                f,
                "{max} connections a second may begin from {whose} ({setting}); try again in a \
                 second"
            ),
        }
    }
}

/// The front of an address: of one address or of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Prefix {
    /// The first 64 bits of an IPv6 address, or an IPv4 address in the last 32; what is behind the
    /// prefix is 0.
    value: u64,
    bits: u8,
    is_ipv4: bool,
    is_network: bool,
}

impl Prefix {
    const NONE: Prefix = Prefix {
        value: 0,
        bits: 0,
        is_ipv4: false,
        is_network: false,
    };

    /// The first `ipv4` or `ipv6` bits of an address, which are at least 1.
    fn of(address: IpAddr, (ipv4, ipv6): (u32, u32), is_network: bool) -> Prefix {
        let (value, bits, is_ipv4) = match address {
            IpAddr::V4(address) => {
                let bits = ipv4.clamp(1, 32);
                let value = u64::from(address.to_bits() >> (32 - bits) << (32 - bits));
                (value, bits, true)
            }
            IpAddr::V6(address) => {
                let bits = ipv6.clamp(1, 64);
                let front = u64::try_from(address.to_bits() >> 64).unwrap_or(u64::MAX);
                (front >> (64 - bits) << (64 - bits), bits, false)
            }
        };
        Prefix {
            value,
            bits: u8::try_from(bits).unwrap_or(u8::MAX),
            is_ipv4,
            is_network,
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_ipv4 {
            true => {
                let address = Ipv4Addr::from_bits(u32::try_from(self.value).unwrap_or(u32::MAX));
                match self.bits {
                    32 => address.fmt(f),
                    bits => write!(f, "{address}/{bits}"),
                }
            }
            false => {
                let address = Ipv6Addr::from_bits(u128::from(self.value) << 64);
                write!(f, "{address}/{}", self.bits)
            }
        }
    }
}

/// Counts of one prefix.
#[derive(Clone, Copy, Debug)]
struct Cell {
    prefix: Prefix,
    /// Connections that are open.
    open: u32,
    /// Moment at which the last of those that did would have begun, had they come evenly.
    begun: u64,
}

const _: () = assert!(size_of::<Cell>() == 32);

impl Cell {
    const EMPTY: Cell = Cell {
        prefix: Prefix::NONE,
        open: 0,
        begun: 0,
    };

    /// Part of the limit that is met, if one is.
    fn meets(&self, limit: Limit, now: Time) -> Option<Met> {
        let met = |is_rate, max| Met {
            whose: self.prefix,
            is_rate,
            max,
        };
        if let Some(max) = limit.clients
            && self.open >= max
        {
            return Some(met(false, max));
        }
        let max = limit.logins_per_s?;
        let ahead = self.begun.saturating_sub(now.0);
        (ahead + gap(max) > BURST_NANOS).then(|| met(true, max))
    }
}

/// Nanoseconds between two of those that come evenly.
fn gap(per_second: u32) -> u64 {
    BURST_NANOS / u64::from(per_second.max(1))
}

type Set = [Cell; WAYS];

/// Counts that a connection is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountedAddress {
    address: u32,
    network: u32,
}

impl Default for CountedAddress {
    /// Nowhere.
    fn default() -> CountedAddress {
        CountedAddress {
            address: NOWHERE,
            network: NOWHERE,
        }
    }
}

/// Open and begun connections by address and by network, over all groups.
#[derive(Debug, Default)]
pub(crate) struct AddressLimits {
    sets: OnceLock<Box<[Mutex<Set>]>>,
    hash: RandomState,
    uncounted: AtomicU64,
}

impl AddressLimits {
    /// Counts a connection from this address, unless it is one too many. Unix sockets have no
    /// address, and no limit.
    ///
    /// # Errors
    /// The limit that it meets.
    pub(crate) fn enter(
        &self,
        address: Option<IpAddr>,
        limits: &AddressRules<'_>,
        now: Time,
    ) -> Result<CountedAddress, Met> {
        let Some(address) = address.filter(|_| limits.is_any()) else {
            return Ok(CountedAddress::default());
        };
        let address = address.to_canonical();
        if limits.exempt.iter().any(|of| of.contains(address)) {
            return Ok(CountedAddress::default());
        }
        let network = Prefix::of(address, limits.network_bits, true);
        let address = Prefix::of(address, (32, IPV6_ADDRESS_BITS), false);
        let address = self.count(address, limits.address, now)?;
        let network = match self.count(network, limits.network, now) {
            Ok(network) => network,
            Err(met) => {
                self.uncount(address, limits.address);
                return Err(met);
            }
        };
        if address == NOWHERE || network == NOWHERE {
            self.uncounted.fetch_add(1, Relaxed);
        }
        Ok(CountedAddress { address, network })
    }

    /// Counts one that is here already, and is not refused for any limit.
    pub(crate) fn admit(
        &self,
        address: Option<IpAddr>,
        limits: &AddressRules<'_>,
        now: Time,
    ) -> CountedAddress {
        if !limits.is_any() {
            return CountedAddress::default();
        }
        let limits = AddressRules {
            address: UNMET,
            network: UNMET,
            ..*limits
        };
        self.enter(address, &limits, now).unwrap_or_default()
    }

    /// Takes an ended connection out of the counts of its address and network.
    pub(crate) fn leave(&self, counted: CountedAddress) {
        for cell in [counted.address, counted.network] {
            if let Some((mut set, at)) = self.cell(cell) {
                set[at].open = set[at].open.saturating_sub(1);
            }
        }
    }

    /// Connections that were let in without being counted, since the table had no room.
    pub(crate) fn uncounted(&self) -> u64 {
        self.uncounted.load(Relaxed)
    }

    fn set(&self, index: usize) -> Option<MutexGuard<'_, Set>> {
        let sets = self.sets.get_or_init(|| {
            let set = |_| Mutex::new([Cell::EMPTY; WAYS]);
            (0..SETS).map(set).collect()
        });
        let set = sets.get(index)?;
        Some(set.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn cell(&self, cell: u32) -> Option<(MutexGuard<'_, Set>, usize)> {
        if cell == NOWHERE {
            return None;
        }
        let cell = cell as usize;
        Some((self.set(cell / WAYS)?, cell % WAYS))
    }

    /// Counts one in its cell; `NOWHERE` where it has none.
    fn count(&self, prefix: Prefix, limit: Limit, now: Time) -> Result<u32, Met> {
        let sets = u64::try_from(SETS).unwrap_or(u64::MAX);
        let index = usize::try_from(self.hash.hash_one(prefix) % sets).unwrap_or(0);
        let Some(mut set) = self.set(index) else {
            return Ok(NOWHERE);
        };
        let own = set.iter().position(|cell| cell.prefix == prefix);
        let other = || {
            let free = (0..WAYS).filter(|at| set[*at].open == 0);
            free.min_by_key(|at| set[*at].begun)
        };
        let Some(at) = own.or_else(other) else {
            return Ok(NOWHERE);
        };
        let cell = &mut set[at];
        if own.is_none() {
            *cell = Cell {
                prefix,
                ..Cell::EMPTY
            };
        }
        if let Some(met) = cell.meets(limit, now) {
            return Err(met);
        }
        cell.open = cell.open.saturating_add(1);
        let gap = limit.logins_per_s.map_or(0, gap);
        cell.begun = cell.begun.max(now.0) + gap;
        Ok(u32::try_from(index * WAYS + at).unwrap_or(NOWHERE))
    }

    /// Takes back what was counted last.
    fn uncount(&self, cell: u32, limit: Limit) {
        if let Some((mut set, at)) = self.cell(cell) {
            let cell = &mut set[at];
            cell.open = cell.open.saturating_sub(1);
            let gap = limit.logins_per_s.map_or(0, gap);
            cell.begun = cell.begun.saturating_sub(gap);
        }
    }
}

#[cfg(test)]
mod tests;
