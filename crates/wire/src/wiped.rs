//! Bytes that are overwritten when they are dropped.
//!
//! The problem: what is freed keeps its content until somebody else uses the memory, and a password
//! that is needed for a moment would be found there a day later, in a core or by whoever reads the
//! process. The mechanism: [`Wiped`] owns such bytes and overwrites all that it has allocated when
//! it is dropped; [`wipe`] and [`wipe_all`] do it for buffers that go on being used.
//!
//! The compiler may leave out writes that nobody reads; the crate `zeroize` has those that it may
//! not. Invariant: a [`Wiped`] does not grow, since a vector that does leaves a copy behind.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use zeroize::Zeroize;

/// Overwrites these bytes.
pub fn wipe(bytes: &mut [u8]) {
    bytes.zeroize();
}

/// Overwrites all that a buffer has, and had before it was shortened; it is empty then, with the
/// same memory.
pub fn wipe_all(buffer: &mut Vec<u8>) {
    buffer.zeroize();
}

/// A secret.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Wiped(Vec<u8>);

impl Wiped {
    /// The first bytes, `max` at most.
    #[must_use]
    pub fn cut(bytes: &[u8], max: usize) -> Wiped {
        Wiped(bytes[..bytes.len().min(max)].to_vec())
    }
}

impl From<&[u8]> for Wiped {
    fn from(bytes: &[u8]) -> Wiped {
        Wiped(bytes.to_vec())
    }
}

impl From<Vec<u8>> for Wiped {
    fn from(bytes: Vec<u8>) -> Wiped {
        Wiped(bytes)
    }
}

impl Deref for Wiped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Wiped {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe_all(&mut self.0);
    }
}

impl fmt::Debug for Wiped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_buffer_had_is_overwritten_too() {
        let mut buffer = b"a secret".to_vec();
        let (place, capacity) = (buffer.as_ptr(), buffer.capacity());
        buffer.truncate(2);
        wipe_all(&mut buffer);
        assert_eq!((buffer.as_ptr(), buffer.capacity()), (place, capacity));
        assert!(buffer.is_empty());
        // What is behind the end was written before, so it may be looked at by growing over it.
        buffer.resize(8, b'x');
        wipe(&mut buffer[..4]);
        assert_eq!(buffer, b"\0\0\0\0xxxx");
    }

    #[test]
    fn a_secret_is_not_shown_and_is_found_by_its_bytes() {
        let secret = Wiped::cut(b"hush, hush", 4);
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(&secret[..], b"hush");
        let table = std::collections::HashMap::from([(secret, 1)]);
        assert_eq!(table.get(&b"hush"[..]), Some(&1));
    }
}
