//! Differences of sessions that go out in front of a statement, in the same write.
//!
//! The problem: what stands behind a command on the wire runs even when that command fails, so a
//! statement behind a SET that fails would run in somebody else's state; waiting for it costs a
//! round trip. The mechanism: a SET to values that this server has accepted before cannot fail when
//! it comes again, for variables that need no privilege and depend on nothing but their value
//! (`KNOWN_GOOD`). A session is *accepted* when a backend of this epoch has stood in it: its
//! values came from the server's own reports then, or were set there and waited for. The epoch ends
//! when a backend is lost or cannot be had, because another server may answer at the address next.
//!
//! A default schema can be dropped, and variables that are not listed may depend on rights or on
//! other things: a difference in those goes otherwise (`send_mode.rs`).
//!
//! Invariant: a SET that is known to be good and fails all the same ends its backend, the reply to
//! the statement behind it is dropped, and its client is told that it may have taken effect.

use crate::state::Session;

/// Variables whose SET fails only for a value that no session can have: no privilege is asked for
/// (MariaDB 10.11, MySQL 9.7: their manuals on each), none is read-only inside of what a session
/// may be doing between transactions, and none names an object that can be dropped.
const KNOWN_GOOD: [&str; 47] = [
    "auto_increment_increment",
    "auto_increment_offset",
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "cte_max_recursion_depth",
    "default_week_format",
    "div_precision_increment",
    "foreign_key_checks",
    "group_concat_max_len",
    "idle_readonly_transaction_timeout",
    "idle_transaction_timeout",
    "idle_write_transaction_timeout",
    "innodb_lock_wait_timeout",
    "interactive_timeout",
    "join_buffer_size",
    "lc_messages",
    "lc_time_names",
    "lock_wait_timeout",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_join_size",
    "max_sort_length",
    "max_statement_time",
    "net_read_timeout",
    "net_write_timeout",
    "optimizer_switch",
    "sort_buffer_size",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_mode",
    "sql_notes",
    "sql_quote_show_create",
    "sql_safe_updates",
    "sql_select_limit",
    "sql_warnings",
    "time_zone",
    "tmp_table_size",
    "transaction_isolation",
    "transaction_read_only",
    "tx_isolation",
    "tx_read_only",
    "unique_checks",
    "wait_timeout",
];

fn is_good_variable(name: &[u8]) -> bool {
    let found = KNOWN_GOOD.binary_search_by(|known| known.as_bytes().cmp(name));
    found.is_ok()
}

/// True if the commands that bring a backend of this epoch from one session to the other cannot
/// fail, as far as anybody can know, but for the one that sets the default schema.
pub fn is_known_good(from: &Session, to: &Session, epoch: u64) -> bool {
    let accepted =
        || to.accepted.is_of(epoch) && from.differing_variables(to).all(is_good_variable);
    // Neither COM_SET_OPTION nor the SET of a user variable can fail.
    !from.variables_differ(to) || accepted()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(pairs: &[(&str, &str)]) -> Session {
        let charsets = ["utf8mb4"; 4].map(|name| name.as_bytes().into());
        let mut session = Session::at_login(
            b"a",
            false,
            &charsets,
            &crate::global_defaults::GlobalDefaults::default(),
        );
        for (name, value) in pairs {
            session.set(name.as_bytes(), value.as_bytes()).unwrap();
        }
        session
    }

    #[test]
    fn what_was_accepted_in_this_epoch_is_known_good_and_nothing_else() {
        let from = session(&[("sql_mode", "ANSI")]);
        let to = session(&[("time_zone", "+01:00")]);
        assert!(!is_known_good(&from, &to, 7), "never accepted");
        to.accepted.note(7);
        assert!(is_known_good(&from, &to, 7));
        assert!(!is_known_good(&from, &to, 8), "by another server, maybe");
        assert!(!is_known_good(&from, &to.clone(), 7), "to be changed");
        to.accepted.withdraw();
        assert!(!is_known_good(&from, &to, 7));
        assert!(is_known_good(&from, &from.clone(), 7), "no difference");
    }

    #[test]
    fn unknown_variables_are_not_known_to_be_good() {
        let from = session(&[]);
        let other = session(&[("storage_engine", "Aria")]);
        other.accepted.note(1);
        from.accepted.note(1);
        assert!(!is_known_good(&from, &other, 1));
        assert!(!is_known_good(&other, &from, 1), "back to its default");
    }

    #[test]
    fn the_table_can_be_searched() {
        assert!(KNOWN_GOOD.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(
            is_good_variable(b"autocommit")
                && is_good_variable(b"unique_checks")
                && !is_good_variable(b"sql_log_bin")
        );
    }
}
