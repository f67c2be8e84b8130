//! System variables: what it means to set or to read one.
//!
//! Almost all are tracked by the server and restored by the pool, so they mean nothing here. The
//! exceptions are few and listed: variables that a later statement uses up, that nobody can read
//! back, that hold an answer about earlier statements, or that would blind the pool.
//!
//! Invariant: a name with bytes from 0x80 on, or with a quote inside, is never taken for harmless:
//! servers may compare names without regard to accents.

use super::{PinCause, Reads};

/// Scope of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Session's own, said or by default.
    Session,
    /// The server's: nothing happens to the session.
    Global,
}

impl Scope {
    /// The scope that a keyword names.
    pub(super) fn named(word: &[u8]) -> Option<Self> {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        if is(b"SESSION") || is(b"LOCAL") {
            Some(Self::Session)
        } else if is(b"GLOBAL") || is(b"PERSIST") || is(b"PERSIST_ONLY") {
            Some(Self::Global)
        } else {
            None
        }
    }
}

/// Effect of setting a session variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// Variable that the trackers report and the pool can restore.
    Restorable,
    /// A character set or collation of the session.
    Charset,
    /// `sql_mode`: texts that follow are cut by other rules.
    SqlMode,
    /// LAST_INSERT_ID() by another name: it follows its client like that.
    InsertId,
    /// `timestamp`: its report does not say whether the clock goes on.
    Clock,
    /// `sql_auto_is_null`: harmless when off; on, MariaDB's `WHERE id IS NULL` looks at what no
    /// variable shows.
    AutoIsNull,
    /// Harmless when off, if it never was on; otherwise the client must keep its backend.
    UnlessOff(PinCause),
    /// Variable for which the client must keep its backend.
    Pins(PinCause),
}

/// Variables that mean something until they have this value again, and what they mean cannot be
/// followed elsewhere: most are used up by a statement that comes later (MariaDB 10.11 and MySQL
/// 9.7: each was set, used, and read before and after).
const IN_USE: [(&str, &str); 4] = [
    ("gtid_next", "'AUTOMATIC'"),
    ("gtid_seq_no", "0"),
    ("insert_id", "0"),
    ("sql_auto_is_null", "0"),
];

/// The name of a variable that is in use, and the value that it has when it is not, as SQL.
#[must_use]
pub fn rests_at(name: &[u8]) -> Option<(&'static str, &'static str)> {
    let found = IN_USE
        .iter()
        .find(|(other, _)| name.eq_ignore_ascii_case(other.as_bytes()));
    found.copied()
}

/// The name of a variable in a text, quotes and scope removed, for one of the session.
pub(crate) fn session_name(token: &[u8]) -> Option<&[u8]> {
    match split(token)? {
        (Scope::Session, name) => Some(name),
        (Scope::Global, _) => None,
    }
}

/// Scope and name of `@@name` or `@@scope.name`, quotes removed.
///
/// `None` if the text stops at the scope: white space follows, and the name comes later.
pub(super) fn split(text: &[u8]) -> Option<(Scope, &[u8])> {
    let text = text.strip_prefix(b"@@").unwrap_or(text);
    let mut parts = text.split(|&byte| byte == b'.');
    let first = parts.next().unwrap_or_default();
    match (Scope::named(first), parts.next_back()) {
        (None, last) => Some((Scope::Session, unquoted(last.unwrap_or(first)))),
        (Some(scope), Some(last)) => Some((scope, unquoted(last))),
        (Some(_), None) => None,
    }
}

/// A name without the quotes around it; quotes inside stay.
pub(super) fn unquoted(name: &[u8]) -> &[u8] {
    match name {
        [open @ (b'`' | b'"'), inner @ .., close] if open == close => inner,
        _ => name,
    }
}

/// The tracker that a client sets for itself: backends tell nothing of it unless it is set.
const GTIDS: &[u8] = b"session_track_gtids";

/// Variables of MariaDB that show a part of another one's value, or stand for some of its words: a
/// SET of these sets the other, and the server reports only the one that was named.
const PARTS: [&[u8]; 5] = [
    b"log_queries_not_using_indexes",
    b"log_slow_admin_statements",
    b"log_slow_slave_statements",
    b"old",
    b"wsrep_causal_reads",
];

/// Effect of setting the session's variable `name`.
pub(super) fn setting(name: &[u8]) -> Setting {
    const PREFIXES: [(&[u8], Setting); 6] = [
        (b"character_set", Setting::Charset),
        (b"collation_", Setting::Charset),
        (b"wsrep_gtid_", Setting::Pins(PinCause::SpecialVariable)),
        (b"debug", Setting::Pins(PinCause::SpecialVariable)),
        (b"dbug", Setting::Pins(PinCause::SpecialVariable)),
        (b"session_track_", Setting::Pins(PinCause::SessionTracking)),
    ];
    if !is_plain(name) {
        return Setting::Pins(PinCause::Unknown);
    }
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    let starts = |prefix: &[u8]| {
        name.get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    if is(b"sql_mode") {
        return Setting::SqlMode;
    }
    if is(b"sql_auto_is_null") {
        return Setting::AutoIsNull;
    }
    if is(b"profiling") || is(b"optimizer_trace") {
        return Setting::UnlessOff(PinCause::Profiling);
    }
    if is(b"query_cache_type") {
        // MariaDB lets no session have it on once it is off for all; who had it then keeps it.
        return Setting::UnlessOff(PinCause::SpecialVariable);
    }
    if is(b"enable_cascade_triggers") {
        // On, a DELETE or UPDATE on MySQL runs code of tables that its text does not name.
        return Setting::UnlessOff(PinCause::SpecialVariable);
    }
    if is(b"timestamp") {
        return Setting::Clock;
    }
    if is(b"last_insert_id") || is(b"identity") {
        return Setting::InsertId;
    }
    if rests_at(name).is_some() {
        return Setting::Pins(PinCause::VariableInUse);
    }
    if is(GTIDS) {
        // Reported and restored as any other; what it makes the server tell is for its client.
        return Setting::Restorable;
    }
    if is(b"rand_seed1") || is(b"rand_seed2") || is(b"redirect_url") {
        return Setting::Pins(PinCause::SpecialVariable);
    }
    if PARTS.iter().any(|part| is(part)) {
        return Setting::Pins(PinCause::SpecialVariable);
    }
    let prefix = PREFIXES.iter().find(|(prefix, _)| starts(prefix));
    prefix.map_or(Setting::Restorable, |&(_, setting)| setting)
}

/// Results that an expression reads when it names the variable `name`; `None` if that is not
/// certain.
pub(super) fn reads(name: &[u8]) -> Option<Reads> {
    const READS: [(&[u8], Reads); 6] = [
        (b"last_insert_id", Reads::LAST_INSERT_ID),
        (b"identity", Reads::LAST_INSERT_ID),
        (b"warning_count", Reads::DIAGNOSTICS),
        (b"error_count", Reads::DIAGNOSTICS),
        (b"pseudo_thread_id", Reads::CONNECTION_ID),
        (b"last_gtid", Reads::LAST_GTID),
    ];
    if !is_plain(name) {
        return None;
    }
    let tracking = (!name.eq_ignore_ascii_case(GTIDS)).then(|| name.get(..14));
    let tracking = tracking.flatten();
    if tracking.is_some_and(|start| start.eq_ignore_ascii_case(b"session_track_")) {
        return Some(Reads::TRACKERS);
    }
    let found = READS
        .iter()
        .find(|(other, _)| name.eq_ignore_ascii_case(other));
    Some(found.map_or(Reads::NONE, |&(_, reads)| reads))
}

fn is_plain(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_$".contains(byte))
}

#[cfg(test)]
mod tests {
    use crate::classify::{PinCause as Pin, classify};
    use crate::lex::{LexMode, Server};

    fn modes() -> [LexMode; 2] {
        [Server::MariaDb(101_119), Server::MySql(90_704)].map(|server| LexMode {
            server,
            ..LexMode::default()
        })
    }

    #[test]
    fn settings_in_one_text_are_known_like_those_in_several() {
        for sql in [
            "SET NAMES utf8mb4; SET time_zone = '+00:00'; SET SESSION wait_timeout = 100",
            "SET sql_mode = 'ANSI_QUOTES,IGNORE_SPACE'; SET NAMES latin1; SET autocommit = 1;",
            "SET character_set_client = latin1; SELECT id, COUNT(*) FROM t WHERE v <> 'x'",
            "SET @@sql_mode = CONCAT(@@sql_mode, ',ORACLE'); SET time_zone = DEFAULT",
        ] {
            for mode in modes() {
                let found = classify(sql.as_bytes(), mode);
                assert!(found.pin.is_none() && found.multi, "{sql}: {found:?}");
            }
        }
    }

    #[test]
    fn what_gathers_pins_unless_it_is_off() {
        let profiling = Some(Pin::Profiling);
        for (sql, pin) in [
            ("SET profiling = 1", profiling),
            ("SET profiling = @x", profiling),
            ("SET profiling = 0 + 1", profiling),
            ("SET SESSION profiling = OFF", None),
            ("SET profiling_history_size = 50", None),
            ("SET optimizer_trace = 'enabled=on'", profiling),
            ("SET optimizer_trace = 'enabled=off,enabled=on'", profiling),
            ("SET optimizer_trace = 'enabled=off,one_line=off'", None),
            (
                "SET optimizer_trace_max_mem_size = 5, profiling = 1",
                profiling,
            ),
            ("SET query_cache_type = ON", Some(Pin::SpecialVariable)),
            (
                "SET SESSION query_cache_type = 1",
                Some(Pin::SpecialVariable),
            ),
            ("SET query_cache_type = DEFAULT", Some(Pin::SpecialVariable)),
            ("SET SESSION query_cache_type = OFF", None),
            ("SET query_cache_type = 0", None),
            (
                "SET enable_cascade_triggers = ON",
                Some(Pin::SpecialVariable),
            ),
            ("SET enable_cascade_triggers = OFF", None),
            (
                "SET log_slow_admin_statements = OFF",
                Some(Pin::SpecialVariable),
            ),
            ("SET GLOBAL log_slow_admin_statements = OFF", None),
            (
                "SET time_zone = DEFAULT, @@old = 1",
                Some(Pin::SpecialVariable),
            ),
            ("SET log_slow_filter = '', old_mode = ''", None),
            ("FLUSH STATUS", Some(Pin::SessionStatus)),
            (
                "FLUSH NO_WRITE_TO_BINLOG TABLES, STATUS",
                Some(Pin::SessionStatus),
            ),
            ("FLUSH USER_VARIABLES", Some(Pin::Unknown)),
            ("FLUSH TABLES", None),
            ("SET original_commit_timestamp = 5", None),
            ("SET original_server_version = 80000", None),
            ("SET gtid_next = 'AUTOMATIC'", Some(Pin::VariableInUse)),
        ] {
            for mode in modes() {
                assert_eq!(classify(sql.as_bytes(), mode).pin, pin, "{sql}");
            }
        }
    }
}
