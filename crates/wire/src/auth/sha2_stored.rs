//! Stored hashes of `caching_sha2_password`.
//!
//! Two formats. `$A$` + three hexadecimal digits (rounds / 1000) + `$` + 20 bytes of salt + 43
//! digits is SHA-crypt with SHA-256, by its public specification (Ulrich Drepper, "Unix crypt using
//! SHA-256 and SHA-512"). `$B$` with the same head and 88 digits of base64 is PBKDF2 with
//! HMAC-SHA512. Either takes some milliseconds to check, on purpose.

use super::{equal, sha256};
use aws_lc_rs::{digest, pbkdf2};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::num::NonZeroU32;

/// Servers take no longer password with this plugin. The time of a check grows with the length.
pub const PASSWORD_MAX: usize = 256;

const SALT_LEN: usize = 20;
const CRYPT_LEN: usize = 43;
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Cost of checking a password against a stored hash: checks of equal work take equal time for
/// equal passwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Rounds of SHA-crypt.
    Crypt(u32),
    /// Rounds of PBKDF2.
    Pbkdf2(u32),
}

/// A stored hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredHash {
    rounds: NonZeroU32,
    salt: [u8; SALT_LEN],
    hash: Hash,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hash {
    Crypt([u8; CRYPT_LEN]),
    Pbkdf2([u8; digest::SHA512_OUTPUT_LEN]),
}

impl StoredHash {
    /// Reads what a server's table has; `None`: it is none.
    #[must_use]
    pub fn parse(stored: &[u8]) -> Option<StoredHash> {
        let (head, rest) = stored.split_at_checked(7)?;
        let [b'$', kind, b'$', digits @ .., b'$'] = head else {
            return None;
        };
        let thousands = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        let rounds = NonZeroU32::new(thousands * 1000)?;
        let (salt, hash) = rest.split_at_checked(SALT_LEN)?;
        let hash = match kind {
            b'A' => Hash::Crypt(hash.try_into().ok()?),
            b'B' => Hash::Pbkdf2(STANDARD.decode(hash).ok()?.try_into().ok()?),
            _ => return None,
        };
        Some(StoredHash {
            rounds,
            salt: salt.try_into().ok()?,
            hash,
        })
    }

    /// Cost of a check.
    #[must_use]
    pub fn work(&self) -> Work {
        match self.hash {
            Hash::Crypt(_) => Work::Crypt(self.rounds.get()),
            Hash::Pbkdf2(_) => Work::Pbkdf2(self.rounds.get()),
        }
    }

    /// True if this is the password. Takes some milliseconds, whatever it is.
    #[must_use]
    pub fn is_of(&self, password: &[u8]) -> bool {
        let is_long = password.len() > PASSWORD_MAX;
        let password = if is_long { b"" } else { password };
        let same = match &self.hash {
            Hash::Crypt(hash) => equal(&crypt(password, &self.salt, self.rounds.get()), hash),
            Hash::Pbkdf2(hash) => {
                let algorithm = pbkdf2::PBKDF2_HMAC_SHA512;
                pbkdf2::verify(algorithm, self.rounds, &self.salt, password, hash).is_ok()
            }
        };
        same && !is_long
    }
}

/// Bytes of a block, over and over, `len` of them.
fn repeated(block: &[u8], len: usize) -> Vec<u8> {
    block.iter().copied().cycle().take(len).collect()
}

/// SHA-crypt with SHA-256. The names of the values are those of the specification.
fn crypt(password: &[u8], salt: &[u8], rounds: u32) -> [u8; CRYPT_LEN] {
    let b = sha256([password, salt, password]);
    let b_long = repeated(&b, password.len());
    let mut parts = vec![password, salt, &b_long];
    let mut bits = password.len();
    while bits > 0 {
        parts.push(if bits & 1 != 0 { &b } else { password });
        bits >>= 1;
    }
    let mut a = sha256(parts);
    let dp = sha256(std::iter::repeat_n(password, password.len()));
    let p = repeated(&dp, password.len());
    let ds = sha256(std::iter::repeat_n(salt, 16 + usize::from(a[0])));
    let s = repeated(&ds, salt.len());
    for round in 0..rounds {
        let is_odd = round % 2 != 0;
        let mut parts = [&a[..], b"", b"", &p];
        if is_odd {
            parts.swap(0, 3);
        }
        if round % 3 != 0 {
            parts[1] = &s;
        }
        if round % 7 != 0 {
            parts[2] = &p;
        }
        a = sha256(parts);
    }
    digits(&a)
}

/// The specification's own base 64: three bytes, in its order, give four digits, the lowest first.
fn digits(hash: &[u8; 32]) -> [u8; CRYPT_LEN] {
    let mut out = [0; CRYPT_LEN];
    let mut put = |at: usize, count: usize, mut bits: u32| {
        for digit in out.iter_mut().skip(at).take(count) {
            *digit = DIGITS[(bits & 0x3F) as usize];
            bits >>= 6;
        }
    };
    let (mut high, mut middle, mut low) = (0, 10, 20);
    for group in 0..10 {
        let bits = u32::from(hash[high]) << 16 | u32::from(hash[middle]) << 8;
        put(4 * group, 4, bits | u32::from(hash[low]));
        (high, middle, low) = (low + 1, high + 1, middle + 1);
    }
    put(40, 3, u32::from(hash[31]) << 8 | u32::from(hash[30]));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_specification() {
        // openssl passwd -5
        let cases = [
            (
                &b"Hello world!"[..],
                &b"saltstring"[..],
                5000,
                "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
            ),
            (
                b"Hello world!",
                b"saltstringsaltst",
                10_000,
                "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA",
            ),
        ];
        for (password, salt, rounds, expected) in cases {
            assert_eq!(crypt(password, salt, rounds), expected.as_bytes());
        }
    }

    #[test]
    fn what_is_no_hash_is_none() {
        let salt = [b'$'; SALT_LEN];
        let hash = crypt(b"secret", &salt, 5000);
        let stored = [b"$A$005$", &salt[..], &hash].concat();
        let read = StoredHash::parse(&stored).unwrap();
        assert!(read.is_of(b"secret") && !read.is_of(b"Secret") && !read.is_of(b""));
        assert_eq!(read.work(), Work::Crypt(5000));
        assert!(!read.is_of(&[b'x'; PASSWORD_MAX + 1]));
        for len in 0..stored.len() {
            assert_eq!(StoredHash::parse(&stored[..len]), None);
        }
        for head in [b"$C$005$", b"$A$000$", b"$A$0x5$", b"xA$005$"] {
            assert_eq!(StoredHash::parse(&[head, &salt[..], &hash].concat()), None);
        }
    }

    #[test]
    fn the_newer_format_is_read_too() {
        let (salt, rounds) = ([7; SALT_LEN], NonZeroU32::new(1000).unwrap());
        let mut hash = [0; 64];
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA512,
            rounds,
            &salt,
            b"secret",
            &mut hash,
        );
        let stored = [b"$B$001$", &salt[..], STANDARD.encode(hash).as_bytes()].concat();
        assert_eq!(stored.len(), 115);
        let read = StoredHash::parse(&stored).unwrap();
        assert!(read.is_of(b"secret") && !read.is_of(b"Secret"));
        assert_eq!(read.work(), Work::Pbkdf2(1000));
    }
}
