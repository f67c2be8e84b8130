//! Meters: how many bytes the clients of a group make the pool keep.
//!
//! What is kept for a client ends in many ways. So what is counted is counted by an object beside
//! it, a [`Charge`], which gives its bytes back when it is dropped.
//!
//! Invariant: a meter shows the sum of its charges.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

/// Bytes of one kind that the clients of a group hold.
#[derive(Clone, Debug, Default)]
pub struct Meter(Rc<Cell<usize>>);

impl Meter {
    /// Bytes of now.
    pub fn bytes(&self) -> usize {
        self.0.get()
    }
}

/// Bytes that something has of a meter, until it is dropped.
#[derive(Debug, Default)]
pub struct Charge {
    meter: Option<Meter>,
    bytes: usize,
}

impl Charge {
    /// Charge of this many bytes of a meter.
    pub fn new(meter: &Meter, bytes: usize) -> Charge {
        let mut charge = Charge::default();
        charge.set(meter, bytes);
        charge
    }

    /// Bytes of now.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts so many bytes from now on.
    pub fn set(&mut self, meter: &Meter, bytes: usize) {
        let meter = self.meter.get_or_insert_with(|| meter.clone());
        meter.0.set(meter.bytes() - self.bytes + bytes);
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(meter) = &self.meter {
            meter.0.set(meter.bytes() - self.bytes);
        }
    }
}

/// A value and what it is charged with.
#[derive(Debug)]
pub struct Charged<T> {
    /// The value.
    pub value: T,
    _charge: Charge,
}

impl<T> Charged<T> {
    /// A value that is charged with so many bytes.
    pub fn new(value: T, meter: &Meter, bytes: usize) -> Charged<T> {
        let charge = Charge::new(meter, bytes);
        Charged {
            value,
            _charge: charge,
        }
    }
}

impl<T: Serialize> Serialize for Charged<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

/// A value that is read is charged with nothing yet.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Charged<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Charged<T>, D::Error> {
        Ok(Charged {
            value: T::deserialize(deserializer)?,
            _charge: Charge::default(),
        })
    }
}

impl<T> Deref for Charged<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_charged_is_given_back_with_its_owner() {
        let meter = Meter::default();
        let mut one = Charge::new(&meter, 10);
        let other = Charged::new("text", &meter, 7);
        assert_eq!((meter.bytes(), other.len()), (17, 4));
        one.set(&meter, 3);
        assert_eq!((meter.bytes(), one.bytes()), (10, 3));
        drop(one);
        assert_eq!(meter.bytes(), 7);
        drop(other);
        assert_eq!(meter.bytes(), 0);
    }
}
