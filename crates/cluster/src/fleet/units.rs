//! Units of one limit that a pool has: which are free, and which its backends use.
//!
//! Invariant: a unit is handed out only while its claim is held, and once the server has no
//! backend of it any more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Units by number. One that a backend uses may have lost its claim with a connection; it is free
/// again only if it has it back.
#[derive(Debug, Default)]
pub struct Units {
    claimed: BTreeSet<u32>,
    used: BTreeSet<u32>,
    /// The one that was given back last is used last.
    free: VecDeque<u32>,
    /// Units of backends that were closed here, and looks that have not found them at the server.
    closing: BTreeMap<u32, u8>,
}

/// Looks that must not find a closed backend's witness: the server ends a connection later than it
/// frees its locks.
const LOOKS: u8 = 2;

impl Units {
    /// A unit for a backend that is to be opened.
    pub fn take(&mut self) -> Option<u32> {
        let unit = self.free.pop_front()?;
        self.used.insert(unit);
        Some(unit)
    }

    /// Gives back the unit of a closed backend.
    pub fn give(&mut self, unit: u32) {
        if self.used.remove(&unit) && self.claimed.contains(&unit) {
            self.closing.insert(unit, 0);
        }
    }

    /// Units whose witnesses are to be looked for.
    pub fn closing(&self) -> impl Iterator<Item = u32> {
        self.closing.keys().copied()
    }

    /// True if a backend can be opened.
    #[must_use]
    pub fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Notes whether the server had this unit's backend at a look. `true` if the unit is free from
    /// now on.
    pub fn looked(&mut self, unit: u32, is_there: bool) -> bool {
        let Some(looks) = self.closing.get_mut(&unit) else {
            return false;
        };
        *looks = if is_there { 0 } else { *looks + 1 };
        let is_gone = *looks >= LOOKS;
        if is_gone {
            self.closing.remove(&unit);
            self.free.push_back(unit);
        }
        is_gone
    }

    /// Adds a unit of which this pool holds the claim now.
    pub fn claim(&mut self, unit: u32) {
        if self.claimed.insert(unit) && !self.used.contains(&unit) {
            self.free.push_back(unit);
        }
    }

    /// Takes away up to so many that no backend uses, whose claims are to be given up.
    pub fn withdraw(&mut self, count: u32) -> Vec<u32> {
        let mut units: Vec<u32> = self.free.iter().copied().collect();
        // The limit may be lower elsewhere.
        units.sort_unstable_by_key(|unit| std::cmp::Reverse(*unit));
        units.truncate(count as usize);
        self.free.retain(|unit| !units.contains(unit));
        units.iter().for_each(|unit| _ = self.claimed.remove(unit));
        units
    }

    /// Gives up all claims, which are lost.
    pub fn lose(&mut self) {
        self.claimed.clear();
        self.free.clear();
        self.closing.clear();
    }

    /// Number of backends whose claims are lost: they stay, and are none that the fleet leaves.
    #[must_use]
    pub fn unclaimed(&self) -> u32 {
        u32::try_from(self.used.difference(&self.claimed).count()).unwrap_or(u32::MAX)
    }

    /// True if no unit is left.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.used.is_empty() && self.claimed.is_empty()
    }

    /// Units of backends.
    #[must_use]
    pub fn used(&self) -> &BTreeSet<u32> {
        &self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_free_again_once_the_server_has_ended_its_backend() {
        let mut units = Units::default();
        units.claim(3);
        assert_eq!((units.take(), units.take()), (Some(3), None));
        units.give(3);
        assert!(!units.has_free() && !units.looked(3, false));
        assert!(!units.looked(3, true), "it is there after all");
        assert!(!units.looked(3, false) && units.looked(3, false));
        assert_eq!(units.take(), Some(3));
        units.lose();
        units.give(3);
        assert!(!units.has_free(), "its claim is lost");
        assert_eq!(units.closing().count(), 0);
    }
}
