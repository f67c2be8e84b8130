//! Variables that nobody reports, that are used up, or that are hard to write: two clients on one
//! backend, so a pin that lasts is a story that comes to no end.

use crate::compare::{same_on, same_on_both};
use crate::world::*;

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

/// On MySQL the expression around it types a variable that was never set.
#[test]
fn what_is_made_of_an_unset_variable_is_no_binary_text() {
    let Some(real) = pooled(mysql) else { return };
    same_on(real, "unset_variables", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for value in ["'text'", "x'ff'", "7", "1.5", "2e0"] {
            story.sql(a, &format!("SET @x = {value}"));
            for made in [
                "CONCAT_WS(' ', @x, @@time_zone)",
                "IFNULL(@x, 'a'), COALESCE(@x, 'b'), UPPER(@x), HEX(@x)",
                "IFNULL(@x, 5), IFNULL(@x, 1e0), @x + 1, @x = 'a'",
                "IFNULL(@x, CURRENT_DATE), IFNULL(@x, 'a' COLLATE utf8mb4_bin)",
                "COLLATION(@x), COERCIBILITY(@x), COLLATION(CONCAT(@x, 'a'))",
                "GROUP_CONCAT(@x), JSON_ARRAY(@x), CASE WHEN 1 THEN @x ELSE 1 END",
            ] {
                let reply = story.sql(b, &format!("SELECT {made}"));
                let [Outcome::Rows(rows)] = &reply[..] else {
                    panic!("{made}: {reply:?}");
                };
                let is_text = |kind| matches!(kind, 15 | 249..=254);
                let types = rows.columns.iter().map(|column| {
                    let kind = if is_text(column.kind) {
                        253
                    } else {
                        column.kind
                    };
                    (kind, column.collation, column.flags)
                });
                story.say(&format!("types: {:?}", types.collect::<Vec<_>>()));
            }
        }
    });
}
