//! System variables: what it means to set or to read one.
//!
//! Almost all are tracked by the server and restored by the pooler, so they mean nothing here. The
//! exceptions are few and listed: variables that the next statement uses up, that the server does
//! not report, that hold an answer about earlier statements, or that would blind the pooler.
//!
//! Invariant: a name with bytes from 0x80 on, or with a quote inside, is never taken for harmless:
//! servers may compare names without regard to accents.

use super::{PinCause, Reads};

/// Whose variable is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// This session's, said or by default.
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

/// What it means to set a session variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// The trackers report it and the pooler can restore it.
    Restorable,
    /// A character set or collation of the session.
    Charset,
    /// `sql_mode`: texts that follow are cut by other rules.
    SqlMode,
    /// `sql_auto_is_null`: harmless when off; on, `WHERE id IS NULL` reads the last insert id.
    AutoIsNull,
    /// The client must keep its backend.
    Pins(PinCause),
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

/// What it means that the session's variable `name` is set.
pub(super) fn setting(name: &[u8]) -> Setting {
    const SPECIAL: [&[u8]; 19] = [
        b"insert_id",
        b"last_insert_id",
        b"identity",
        b"rand_seed1",
        b"rand_seed2",
        b"timestamp",
        b"skip_replication",
        b"skip_parallel_replication",
        b"sql_log_bin",
        b"server_id",
        b"wsrep_on",
        b"completion_type",
        b"original_commit_timestamp",
        b"original_server_version",
        b"immediate_server_version",
        b"require_row_format",
        b"redirect_url",
        // MariaDB: of one replication connection, though reported as the session's.
        b"max_relay_log_size",
        b"sql_slave_skip_counter",
    ];
    const PREFIXES: [(&[u8], Setting); 10] = [
        (b"character_set", Setting::Charset),
        (b"collation_", Setting::Charset),
        (b"pseudo_", Setting::Pins(PinCause::SpecialVariable)),
        (b"gtid_", Setting::Pins(PinCause::SpecialVariable)),
        (b"wsrep_gtid_", Setting::Pins(PinCause::SpecialVariable)),
        (b"debug", Setting::Pins(PinCause::SpecialVariable)),
        (b"dbug", Setting::Pins(PinCause::SpecialVariable)),
        (b"session_track_", Setting::Pins(PinCause::SessionTracking)),
        (b"profiling", Setting::Pins(PinCause::Profiling)),
        (b"optimizer_trace", Setting::Pins(PinCause::Profiling)),
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
    if SPECIAL.iter().any(|other| is(other)) {
        return Setting::Pins(PinCause::SpecialVariable);
    }
    let prefix = PREFIXES.iter().find(|(prefix, _)| starts(prefix));
    prefix.map_or(Setting::Restorable, |&(_, setting)| setting)
}

/// What an expression reads when it names the variable `name`; `None` if that is not certain.
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
    let tracking = name.get(..14);
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
