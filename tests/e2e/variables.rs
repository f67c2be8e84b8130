//! Variables that nobody reports, that are used up, or that are hard to write: two clients on one
//! backend, so a pin that lasts is a story that comes to no end.

use crate::compare::same_on_both;
use testkit::reply::Outcome;

#[test]
fn transactions_end_as_their_session_says() {
    same_on_both("completes", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (v INT) ENGINE=InnoDB");
        story.all(a, &["SET completion_type = CHAIN", "BEGIN"]);
        story.all(a, &["INSERT INTO t VALUES (1)", "COMMIT"]);
        story.all(a, &["INSERT INTO t VALUES (2)", "ROLLBACK"]);
        story.all(a, &["SELECT v FROM t", "COMMIT AND NO CHAIN"]);
        story.all(
            b,
            &["SELECT v, @@completion_type FROM t", "BEGIN", "COMMIT"],
        );
        story.all(a, &["SET completion_type = 2", "SELECT v FROM t"]);
        story.all(b, &["SELECT @@completion_type", "COMMIT", "SELECT 1"]);
        story.all(a, &["BEGIN", "INSERT INTO t VALUES (3)", "COMMIT"]);
        let gone = story.client(a).query("SELECT 1").is_err();
        story.say(&format!("a is gone: {gone}"));
        story.sql(b, "SELECT v, @@completion_type FROM t ORDER BY v");
    });
}

/// A server may show a value in a form that it does not take: NULL as an empty text, no time as a
/// word. Each client keeps what it has set, and none is hurt by another's.
#[test]
fn every_variable_is_given_back_from_its_default_and_from_nothing() {
    // Their values are the moment's or the connection's, or they keep their client on its backend
    // (docs/pool/pins.md); of one MySQL reports NULL and an empty text alike (docs/pool/limits.md).
    const OTHERS: [&str; 18] = [
        "dbug",
        "debug",
        "enable_cascade_triggers",
        "external_table_secondary_storage_engine",
        "gtid",
        "insert_id",
        "log_queries_not_using_indexes",
        "log_slow_admin_statements",
        "log_slow_slave_statements",
        "optimizer_trace",
        "profiling",
        "pseudo_thread_id",
        "query_cache_type",
        "rand_seed",
        "redirect_url",
        "session_track",
        "timestamp",
        "wsrep",
    ];
    same_on_both("every_default", 1, |story| {
        let (a, b) = (story.join(), story.join());
        let listed = story.client(a).rows("SHOW SESSION VARIABLES");
        let names = listed.rows.iter().filter_map(|row| row[0].clone());
        let names = names.map(|name| String::from_utf8(name).unwrap());
        let of_others =
            |name: &String| name == "old" || OTHERS.iter().any(|begin| name.starts_with(begin));
        for name in names.filter(|name| !of_others(name)) {
            for value in ["DEFAULT", "NULL", "''"] {
                let done = story.sql(a, &format!("SET SESSION `{name}` = {value}"));
                if matches!(done[..], [Outcome::Done(_)]) {
                    story.sql(b, "SELECT 1");
                    story.sql(a, &format!("SELECT @@SESSION.`{name}`"));
                    story.sql(b, &format!("SELECT @@SESSION.`{name}`"));
                }
            }
        }
    });
}
