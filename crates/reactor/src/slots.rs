//! Slots: a vector of objects that come and go, addressed by keys that do not come back.
//!
//! An event may name an object that was removed earlier in the same turn. A [`Key`] therefore
//! carries the slot's generation; a stale key finds nothing.
//!
//! Invariant: a key is valid from `insert` to `remove` and never again (until a slot has been used
//! 2^28 times, after which its keys repeat).

use crate::prefetch::prefetch;
use std::marker::PhantomData;

/// Names one object in a [`Slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: u32,
}

/// Generations fit the bits that a [`crate::Token`] has left for them.
const GENERATION_MASK: u32 = (1 << 28) - 1;

impl Key {
    /// The slot's index and generation as they travel in a token.
    #[must_use]
    pub const fn parts(self) -> (u32, u32) {
        (self.index, self.generation)
    }

    /// A key again from its parts.
    #[must_use]
    pub const fn from_parts(index: u32, generation: u32) -> Key {
        Key {
            index,
            generation: generation & GENERATION_MASK,
        }
    }
}

/// Defines a type around [`Key`] for the keys of one table, which no other table takes.
#[macro_export]
macro_rules! slot_key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name($crate::Key);

        impl $name {
            /// The key of the slot with this index and generation.
            #[must_use]
            pub const fn from_parts(index: u32, generation: u32) -> $name {
                $name($crate::Key::from_parts(index, generation))
            }

            /// The slot's index and generation.
            #[must_use]
            pub const fn parts(self) -> (u32, u32) {
                self.0.parts()
            }
        }

        impl From<$crate::Key> for $name {
            fn from(key: $crate::Key) -> $name {
                $name(key)
            }
        }

        impl From<$name> for $crate::Key {
            fn from(key: $name) -> $crate::Key {
                key.0
            }
        }
    };
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Type of the keys of one table: [`Key`] itself, or a type of [`slot_key!`](crate::slot_key).
pub trait SlotKey: Copy + From<Key> + Into<Key> {}

impl<K: Copy + From<Key> + Into<Key>> SlotKey for K {}

/// Objects by key.
#[derive(Debug)]
pub struct Slots<T, K = Key> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    keys: PhantomData<K>,
}

impl<T, K> Default for Slots<T, K> {
    fn default() -> Self {
        Slots {
            slots: Vec::new(),
            free: Vec::new(),
            keys: PhantomData,
        }
    }
}

impl<T, K: SlotKey> Slots<T, K> {
    /// No objects, with room for `capacity` of them, so that a known number costs no growing.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Slots<T, K> {
        Slots {
            slots: Vec::with_capacity(capacity),
            free: Vec::new(),
            keys: PhantomData,
        }
    }

    /// Objects present.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts `value` in a slot and names it.
    ///
    /// # Panics
    /// When 2^32 objects are present, which no descriptor table allows.
    pub fn insert(&mut self, value: T) -> K {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.value = Some(value);
            let generation = slot.generation;
            return Key { index, generation }.into();
        }
        let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 objects");
        self.slots.push(Slot {
            generation: 0,
            value: Some(value),
        });
        let generation = 0;
        Key { index, generation }.into()
    }

    /// Takes the object out; its key finds nothing from now on.
    pub fn remove(&mut self, key: K) -> Option<T> {
        let key: Key = key.into();
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = (slot.generation + 1) & GENERATION_MASK;
        self.free.push(key.index);
        Some(value)
    }

    /// The object of this key, if it is still there.
    #[must_use]
    pub fn get(&self, key: K) -> Option<&T> {
        let key: Key = key.into();
        let slot = self.slots.get(key.index as usize)?;
        if slot.generation == key.generation {
            slot.value.as_ref()
        } else {
            None
        }
    }

    /// The object of this key, to change it.
    pub fn get_mut(&mut self, key: K) -> Option<&mut T> {
        let key: Key = key.into();
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation == key.generation {
            slot.value.as_mut()
        } else {
            None
        }
    }

    /// Asks the processor to fetch the object of this key, which is looked at soon: with thousands
    /// of objects each one that comes up lies far from the processor, and fetching it overlaps with
    /// other work. Says nothing of whether there is one.
    pub fn prefetch(&self, key: K) {
        let key: Key = key.into();
        if let Some(slot) = self.slots.get(key.index as usize) {
            prefetch(slot);
        }
    }

    /// All objects with their keys, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.every(0, 1)
    }

    /// The objects whose turn it is of `rounds` turns, in which each has one; those of the others
    /// are not looked at.
    pub fn every(&self, turn: u32, rounds: u32) -> impl Iterator<Item = (K, &T)> {
        let (first, step) = ((turn % rounds) as usize, rounds as usize);
        let slots = self.slots.iter().enumerate().skip(first).step_by(step);
        slots.filter_map(|(index, slot)| {
            let key = Key {
                index: u32::try_from(index).ok()?,
                generation: slot.generation,
            };
            slot.value.as_ref().map(|value| (key.into(), value))
        })
    }

    /// The keys of the objects of which this is so.
    #[must_use]
    pub fn keys_of(&self, which: impl Fn(&T) -> bool) -> Vec<K> {
        let found = self.iter().filter(|(_, value)| which(value));
        found.map(|(key, _)| key).collect()
    }

    /// All values, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        (self.slots.iter_mut()).filter_map(|slot| slot.value.as_mut())
    }

    /// The keys of all objects present, for a loop that changes them.
    #[must_use]
    pub fn keys(&self) -> Vec<K> {
        self.iter().map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing() {
        let mut slots: Slots<_> = Slots::default();
        let a = slots.insert("a");
        let b = slots.insert("b");
        assert_eq!(slots.len(), 2);
        assert_eq!(slots.remove(a), Some("a"));
        assert_eq!(slots.remove(a), None);
        let c = slots.insert("c");
        assert_eq!(slots.get(a), None);
        assert_eq!((slots.get(b), slots.get(c)), (Some(&"b"), Some(&"c")));
        assert_eq!(c.parts().0, a.parts().0, "the slot is used again");
        assert_ne!(c, a);
        assert_eq!(slots.keys().len(), 2);
        // A hint says nothing, of whatever key.
        for key in [a, c, Key::from_parts(9, 0)] {
            slots.prefetch(key);
        }
    }

    #[test]
    fn keys_are_found_by_their_values() {
        let mut slots: Slots<_> = Slots::default();
        let keys: Vec<Key> = (0..4).map(|number| slots.insert(number)).collect();
        slots.remove(keys[2]);
        assert_eq!(slots.keys_of(|number| number % 2 == 0), [keys[0]]);
        assert_eq!(slots.keys_of(|_| true).len(), 3);
        assert_eq!(slots.keys_of(|_| false), []);
    }

    #[test]
    fn each_object_has_one_turn_of_all() {
        let mut slots: Slots<_> = Slots::default();
        let keys: Vec<Key> = (0..10).map(|number| slots.insert(number)).collect();
        slots.remove(keys[4]);
        let of = |turn| slots.every(turn, 4).map(|(_, n)| *n).collect::<Vec<_>>();
        assert_eq!([of(0), of(1)], [vec![0, 8], vec![1, 5, 9]]);
        assert_eq!([of(6), of(7)], [vec![2, 6], vec![3, 7]], "turns go on");
        assert_eq!(slots.every(20, 64).count(), 0);
    }

    #[test]
    fn a_key_survives_its_parts() {
        let mut slots: Slots<_> = Slots::default();
        let key = slots.insert(1);
        let (index, generation) = key.parts();
        assert_eq!(Key::from_parts(index, generation), key);
    }
}
