//! `@@last_gtid`: the number of a session's last write in MariaDB's binary log.
//!
//! The problem: with the binary log on, MariaDB reports a new one behind each write. It is no
//! setting: nobody can give it to another backend, and a backend's own is that of whoever wrote
//! there last. The mechanism: what was reported to a client is kept for it, and stands in its text
//! in place of the variable (`sql/own_id.rs`), on its own backend too.
//!
//! Invariant: a client has its own, or it is unknown; it is never another's.

use crate::found::Found;
use crate::statement::{Code, Conditions, Statement};
use std::collections::BTreeMap;

/// Bytes of the longest: two numbers of 32 bits, one of 64, and what stands between.
const LEN_MAX: usize = 42;
/// Duplicate key: a table without transactions keeps the rows before it.
const DUPLICATE: u16 = 1062;
/// Unknown table, of several that are to be dropped.
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
    /// Stores another reported one.
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

/// True if a statement that failed with this error may have written: nothing is reported behind
/// one.
#[must_use]
pub fn may_have_written(statement: &Statement, code: u16) -> bool {
    let runs_alone = statement.code == Code::None && !statement.is_several();
    let commits_first = statement.may_commit();
    let is_one = runs_alone && !commits_first && statement.conditions != Conditions::CountsLast;
    !match code {
        _ if statement.found == Found::Rows => runs_alone,
        // No statement.
        1064 | 1065 => runs_alone,
        // No such table or column: it has not begun.
        1146 | 1054 => is_one,
        // A lock was not had: what it has done is undone, but in tables without transactions.
        1205 | 1213 => is_one && statement.found != Found::Unsure,
        _ => false,
    }
}

/// Forgets a client's number where this error of a statement leaves it in doubt.
pub fn doubt<Key: Ord>(
    gtids: &mut BTreeMap<Key, LastGtid>,
    client: Key,
    (statement, code): (&Statement, u16),
) {
    // One that inserts rows is taken to insert one, or into a table with transactions.
    let inserts = code == DUPLICATE && statement.found == Found::Keeps;
    // Those tables that were known are dropped, and that is written.
    if code == BAD_TABLE {
        gtids.insert(client, LastGtid::default());
    } else if may_have_written(statement, if inserts { 1146 } else { code })
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

    #[test]
    fn what_fails_may_have_written_unless_it_is_one_statement_that_was_undone() {
        use crate::plan::{in_bulk, statement_of};
        use sql::classify::classify;
        use sql::lex::{LexMode, Server};
        for (sql, wrote_nothing, may_have_written) in [
            ("SELECT a FROM t", &[1146, 1064, 3024][..], &[][..]),
            ("SELECT f()", &[], &[1146, 1062]),
            ("CALL p()", &[], &[1146, 1062, 1064]),
            ("INSERT INTO t VALUES (1)", &[1146, 1205], &[1062, 1048]),
            ("INSERT INTO t SELECT a FROM u", &[1146], &[1205, 1213]),
            ("UPDATE t SET a = 1", &[1054, 1064], &[1062, 1205]),
            ("INSERT INTO t VALUES (1); SELECT a FROM u", &[], &[1146]),
            ("CREATE TABLE x LIKE y", &[1064], &[1146]),
            ("LOCK TABLES x READ", &[], &[1146]),
        ] {
            let mode = LexMode {
                server: Server::MariaDb(101_100),
                ..LexMode::default()
            };
            let class = classify(sql.as_bytes(), mode);
            let statement = statement_of(&class, mode);
            for code in wrote_nothing {
                assert!(!super::may_have_written(&statement, *code), "{sql} {code}");
            }
            for code in may_have_written {
                assert!(super::may_have_written(&statement, *code), "{sql} {code}");
            }
            let bulk = in_bulk(statement, class.verb);
            let inserts = sql.starts_with("INSERT INTO t VALUES") || sql.starts_with("SELECT a");
            assert_eq!(
                !super::may_have_written(&bulk, 1146),
                inserts && !class.multi
            );
        }
    }
}
