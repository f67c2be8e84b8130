//! `@@last_gtid`: the number of a session's last write in MariaDB's binary log.
//!
//! The problem: with the binary log on, MariaDB reports a new one behind each write. It is no
//! setting: nobody can give it to another backend, and a backend's own is that of whoever wrote
//! there last. The mechanism: what was reported to a client is kept for it, and stands in its text
//! in place of the variable (`sql/own_id.rs`), on its own backend too.
//!
//! Invariant: a client has its own, or it is unknown; it is never another's.

use std::collections::BTreeMap;

/// Bytes of the longest: two numbers of 32 bits, one of 64, and what stands between.
const LEN_MAX: usize = 42;
/// Errors after which nothing was written: no statement, no such table or column, a key that is
/// there, a lock that was not had.
const WROTE_NOTHING: [u16; 7] = [1064, 1065, 1146, 1054, 1062, 1205, 1213];
/// Unknown table: those that were known are dropped, and that is written.
const BAD_TABLE: u16 = 1051;

/// GTID that was reported to a client last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastGtid {
    text: [u8; LEN_MAX],
    /// `None`: it is not known.
    len: Option<u8>,
}

impl Default for LastGtid {
    fn default() -> Self {
        let text = [0; LEN_MAX];
        Self { text, len: None }
    }
}

impl LastGtid {
    /// Another one was reported.
    pub fn set(&mut self, value: &[u8]) {
        self.len = None;
        if let Some(room) = self.text.get_mut(..value.len()) {
            room.copy_from_slice(value);
            self.len = u8::try_from(value.len()).ok();
        }
    }

    /// The GTID, if it is known.
    pub fn get(&self) -> Option<&str> {
        let text = self.text.get(..usize::from(self.len?))?;
        let plain = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
        std::str::from_utf8(text)
            .ok()
            .filter(|text| text.bytes().all(|byte| plain(&byte)))
    }
}

/// A client's statement has failed with this error; MariaDB reports nothing behind one.
pub fn doubt<Key: Ord>(gtids: &mut BTreeMap<Key, LastGtid>, client: Key, code: u16) {
    if code == BAD_TABLE {
        gtids.insert(client, LastGtid::default());
    } else if !WROTE_NOTHING.contains(&code)
        && let Some(gtid) = gtids.get_mut(&client)
    {
        gtid.len = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_of_a_write_is_unknown() {
        let mut gtid = LastGtid::default();
        assert_eq!(gtid.get(), None);
        gtid.set(b"0-1-29966");
        assert_eq!(gtid.get(), Some("0-1-29966"));
        gtid.set(b"4294967295-4294967295-18446744073709551615");
        assert_eq!(gtid.get().map(str::len), Some(LEN_MAX));
        gtid.set(b"0-1-2'");
        assert_eq!(gtid.get(), None);
        gtid.set(&[b'1'; LEN_MAX + 1]);
        assert_eq!(gtid.get(), None);
    }
}
