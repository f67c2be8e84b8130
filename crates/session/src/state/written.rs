//! The SET that brings a session's variables from one state to another.
//!
//! Values are what the server reported, so each can be written back: as a number, as a plain text
//! in quotes, or by its bytes where quotes, `sql_mode` or a character set could change it.
//!
//! Invariant: what such a SET sets means the same whatever character set and `sql_mode` the backend
//! stands in.

use super::{
    BIG_SELECTS, CHARSET_VARIABLES, CLOCK, JOIN_SIZE, On, RESULTS, SCHEMA_VARIABLES, Session,
    UserVariables, partner,
};
use crate::global_defaults::alias_of;
use sql::lex::Server;

/// Texts that may be NULL, which is reported as an empty value; none of them can be empty.
const NULLABLE: [&[u8]; 6] = [
    RESULTS,
    b"default_tmp_storage_engine",
    b"enforce_storage_engine",
    b"external_table_storage_engine",
    b"innodb_ft_user_stopword_table",
    b"innodb_tmpdir",
];

/// Times that may be none, which MariaDB shows as the word `DEFAULT`; as a text it is refused.
const SHOWN_AS_DEFAULT: [&[u8]; 1] = [b"system_versioning_asof"];

/// Texts that may look like numbers.
const TEXTS: [&[u8]; 3] = [
    b"default_master_connection",
    b"innodb_ft_user_stopword_table",
    b"innodb_tmpdir",
];

/// A session's CONNECTION_ID(), which has no default.
const THREAD: &[u8] = b"pseudo_thread_id";
/// MySQL 8 and 9 set these two to OFF by `SET x=DEFAULT`, whatever their global value is
/// (tests/pages/trackers.md).
const NOT_BY_DEFAULT: [&str; 2] = ["foreign_key_checks", "unique_checks"];

/// Version from which on MySQL types an unset user variable by its place: parameters of prepared
/// statements and user variables were made so together. Seen on 9.7; not so on 8.0.15.
const MYSQL_TYPES_BY_PLACE: u32 = 80_022;

/// The SET that brings variables from one session's values to the other's; empty for none.
pub(super) fn set_of((from, to): (&Session, &Session), insert_id: Option<u64>, on: On) -> Vec<u8> {
    let mut set = Vec::new();
    if from.variables_differ(to) {
        put_differences(&mut set, from, to, on);
    }
    if from.user != to.user {
        put_user_differences(&mut set, (&from.user, &to.user), on.server);
    }
    if let Some(id) = insert_id {
        put_assignment(&mut set, b"last_insert_id", id.to_string().as_bytes());
    }
    set
}

fn put_differences(set: &mut Vec<u8>, from: &Session, to: &Session, on: On) {
    let charset_differs = CHARSET_VARIABLES
        .iter()
        .any(|name| from.variable(name.as_bytes()) != to.variable(name.as_bytes()));
    let charset_differs = charset_differs || from.results_collation != to.results_collation;
    let results = to.variable(RESULTS).filter(|value| !value.is_empty());
    let collation = to.results_collation.as_deref();
    let described = collation.zip(results).filter(|_| charset_differs);
    let by_number = |collation: &[u8]| collation.iter().all(u8::is_ascii_digit);
    let by_name = described.filter(|(collation, _)| !by_number(collation));
    if let Some((collation, results)) = by_name {
        // In front of all others, which it sets too.
        set.extend_from_slice(b"SET NAMES '");
        set.extend_from_slice(results);
        set.extend_from_slice(b"' COLLATE '");
        set.extend_from_slice(collation);
        set.push(b'\'');
    }
    for (name, value) in &to.variables {
        let is_charset = CHARSET_VARIABLES.iter().any(|c| c.as_bytes() == &**name);
        // MariaDB's parameters have the collation of the client's character set, which SET NAMES
        // and logins set together with that of results; set alone, it would have its default.
        let client = CHARSET_VARIABLES[0].as_bytes();
        if **name == *client && by_name.is_some_and(|(_, results)| **value == *results) {
            continue;
        }
        match described.filter(|_| **name == *RESULTS) {
            Some((collation, _)) if by_number(collation) => put_assignment(set, name, collation),
            Some(_) => {}
            None if **name == *BIG_SELECTS && join_size_differs(from, to) => {}
            None if (is_charset && charset_differs)
                || from.variable(name) != Some(value)
                || partner(name).is_some_and(|(o, _)| from.variable(o) != to.variable(o)) =>
            {
                put_assignment(set, name, value);
                // MariaDB cuts a number, whose last microsecond may be lost as a float, where MySQL
                // rounds it.
                let cut = **name == *CLOCK && !on.server.is_mysql() && value.contains(&b'.');
                set.extend_from_slice(if cut { b"5" } else { b"" });
            }
            None => {}
        }
    }
    let dropped = from.variables.iter().map(|(name, _)| &**name);
    let dropped = dropped.filter(|name| to.variable(name).is_none());
    // A schema brings its own character set.
    let brought = |name: &[u8]| {
        to.schema.is_some()
            && SCHEMA_VARIABLES
                .iter()
                .any(|other| other.as_bytes() == name)
    };
    for name in dropped.chain(from.begun_otherwise(to)) {
        // A collation says its character set too.
        let (name, set_already) = match partner(name) {
            Some((collation, true)) => (collation, to.variable(collation).is_some()),
            Some((charset, false)) => (name, to.variable(charset).is_some()),
            None => {
                let other = alias_of(name);
                (
                    name,
                    other.is_some_and(|other| to.variable(other).is_some()),
                )
            }
        };
        let behind = name == BIG_SELECTS && join_size_differs(from, to);
        if !brought(name) && !set_already && !behind {
            put_defaults(set, name, to, on.thread);
        }
    }
    if join_size_differs(from, to) {
        // Behind the one that sets it too.
        match to.variable(BIG_SELECTS) {
            Some(value) => put_assignment(set, BIG_SELECTS, value),
            None => put_defaults(set, BIG_SELECTS, to, on.thread),
        }
    }
}

/// True if [`JOIN_SIZE`] is to be set to get from the one to the other.
fn join_size_differs(from: &Session, to: &Session) -> bool {
    let listed = from.variable(JOIN_SIZE) != to.variable(JOIN_SIZE);
    listed || from.begun_otherwise(to).any(|name| name == JOIN_SIZE)
}

/// Puts a variable to the value with which a session began.
fn put_defaults(set: &mut Vec<u8>, name: &[u8], session: &Session, thread: u32) {
    // Some take an empty value from a configuration file only; NULL is the default of the others.
    // Bytes are in the character set of who asked for them.
    let known = session
        .defaults
        .value(name)
        .filter(|value| !value.is_empty());
    if let Some(value) = known.filter(|value| literal_of(name, value) != Literal::Bytes) {
        return put_assignment(set, name, value);
    }
    put_name(set, name);
    if name == THREAD {
        set.extend_from_slice(thread.to_string().as_bytes());
    } else if NOT_BY_DEFAULT.iter().any(|n| n.as_bytes() == name) {
        set.extend_from_slice(b"@@GLOBAL.");
        set.extend_from_slice(name);
    } else {
        set.extend_from_slice(b"DEFAULT");
    }
}

/// Puts user variables that `to` has not to the NULL that is most like that of an unset one, and
/// sets those that differ: all of them where servers may take two names for one.
///
/// MySQL (seen on 9.7) gives an unset one the type that its place wants, so `IFNULL(@a, 5)` is a
/// number and `CONCAT(@a)` a text; of all that can be set, the NULL of a number comes closest. On
/// MariaDB (seen on 10.11) it is binary text, wherever it stands.
fn put_user_differences(
    set: &mut Vec<u8>,
    (from, to): (&UserVariables, &UserVariables),
    server: Server,
) {
    let typed: &[u8] = match server {
        Server::MySql(version) if version >= MYSQL_TYPES_BY_PLACE => b"0",
        _ => b"_binary x''",
    };
    for (name, _) in from.pairs() {
        if to.get(name).is_none() {
            let name = quoted_variable(name);
            put_name(set, &name);
            set.extend_from_slice(typed);
            put_name(set, &name);
            set.extend_from_slice(b"NULL");
        }
    }
    let all = from.is_tricky() || to.is_tricky();
    for (name, literal) in to.pairs() {
        if all || from.get(name) != Some(literal) {
            put_name(set, &quoted_variable(name));
            set.extend_from_slice(literal);
        }
    }
}

/// A user variable's name as it is written in any text.
pub fn quoted_variable(name: &[u8]) -> Vec<u8> {
    let mut quoted = b"@`".to_vec();
    for &byte in name {
        quoted.extend_from_slice(if byte == b'`' {
            b"``"
        } else {
            std::slice::from_ref(&byte)
        });
    }
    quoted.push(b'`');
    quoted
}

fn put_name(set: &mut Vec<u8>, name: &[u8]) {
    set.extend_from_slice(if set.is_empty() { b"SET " } else { b"," });
    set.extend_from_slice(name);
    set.push(b'=');
}

fn put_assignment(set: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    put_name(set, name);
    match literal_of(name, value) {
        Literal::Null => set.extend_from_slice(b"NULL"),
        Literal::Default => set.extend_from_slice(b"DEFAULT"),
        Literal::Number => set.extend_from_slice(value),
        Literal::Quoted => set.extend_from_slice(&[b"'", value, b"'"].concat()),
        Literal::Bytes => {
            let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            set.extend_from_slice(&[b"_utf8mb4 x'", hex.as_bytes(), b"'"].concat());
        }
    }
}

/// Form of `value` in a SET: a number as it is, a plain text in quotes, NULL for an empty value of
/// what cannot be empty, DEFAULT where a value is shown as that word; a text that quotes and
/// character sets could change, by its bytes.
pub(super) fn literal_of(name: &[u8], value: &[u8]) -> Literal {
    if value.is_empty() && NULLABLE.contains(&name) {
        return Literal::Null;
    }
    if value == b"DEFAULT" && SHOWN_AS_DEFAULT.contains(&name) {
        return Literal::Default;
    }
    let mut digits = value
        .strip_prefix(b"-")
        .unwrap_or(value)
        .split(|&b| b == b'.');
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    if digits.next().is_some_and(is_number)
        && digits.next().is_none_or(is_number)
        && digits.next().is_none()
        && !TEXTS.contains(&name)
    {
        return Literal::Number;
    }
    let plain = |&b: &u8| (b.is_ascii_graphic() || b == b' ') && !matches!(b, b'\\' | b'\'' | b'"');
    match value.iter().all(plain) {
        true => Literal::Quoted,
        false => Literal::Bytes,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Null,
    Default,
    Number,
    Quoted,
    Bytes,
}
