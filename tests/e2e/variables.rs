//! Variables that nobody reports, that are used up, or that are hard to write: two clients on one
//! backend, so a pin that lasts is a story that comes to no end.

use crate::compare::{Story, same_on, same_on_both};
use crate::world::mysql;
use testkit::reply::Outcome;
use wire::command::Command;

/// Two clients take turns with what they set; then both look, one starts over, and both look again.
fn in_turns(story: &mut Story, first: &[&str], second: &[&str], probe: &str) {
    let (a, b) = (story.join(), story.join());
    for who in [a, b] {
        story.command(who, Command::SetOption, &[0, 0]);
    }
    let most = first.len().max(second.len());
    for i in 0..most {
        for (who, says) in [(a, first), (b, second)] {
            if let Some(sql) = says.get(i) {
                story.sql(who, sql);
            }
            story.sql(b, probe);
            story.sql(a, probe);
        }
    }
    story.command(a, Command::ResetConnection, b"");
    story.sql(b, probe);
    story.sql(a, probe);
}

/// A literal may hold bytes that are no text of its character set; no introducer takes them.
#[test]
fn a_user_variable_may_hold_what_is_no_text() {
    same_on_both("ill_formed", 2, |story| {
        let (a, b) = (story.join(), story.join());
        let probe = "SELECT HEX(@a), CHARSET(@a), HEX(@b), CHARSET(@b)";
        story.sql(a, "SET NAMES utf8mb3");
        for text in [
            "SET @a = '\u{1f600}'",
            "SELECT '\u{1f600}' INTO @b",
            "SET @a = 'x', @b = '\u{e9}'",
        ] {
            for sets in ["SET @a = 1", "SET @b = 'own'"] {
                story.sql(a, text);
                story.sql(b, sets);
                story.sql(a, probe);
            }
        }
        story.sql(a, "SET NAMES utf8mb4");
        story.command(a, Command::Query, b"SET @a = '\xff\xfe'");
        story.sql(b, "SET @a = 2");
        story.sql(a, probe);
    });
}

/// Which GTIDs are told is a variable as any other; what else a client is told stays.
#[test]
fn who_asks_for_gtids_is_told_nothing_else_besides() {
    let Some(real) = mysql("tells_gtids") else {
        return;
    };
    same_on(real, "tells_gtids", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for sets in [
            "SET session_track_gtids = OWN_GTID",
            "SET @@session.session_track_gtids = 'OFF', div_precision_increment = 6",
            "SET SESSION session_track_gtids = DEFAULT",
            "SET session_track_gtids = OWN_GTID, session_track_schema = ON",
        ] {
            story.sql(a, sets);
            story.sql(b, "SET transaction_alloc_block_size = 2048");
            story.sql(b, "SELECT @@session_track_gtids");
            story.sql(
                a,
                "SELECT @@session_track_gtids, @@session_track_system_variables",
            );
            story.sql(a, "SET time_zone = '+01:00', div_precision_increment = 5");
        }
    });
}

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

#[test]
fn user_variables_of_every_name_follow_their_clients() {
    same_on_both("odd_names", 1, |story| {
        in_turns(
            story,
            &[
                "SET @`a b` = 1, @'x' = 2, @`q``r` = 3",
                "SET @\u{e9} = 4",
                "SET @`\u{c9}` = 5, @e = 6",
                "SET @`a b ` = 7",
                "SET @`a b` = NULL, @`\u{e9}` = NULL",
                "SET @`a b` = 8, @`no\\such` = 9",
            ],
            &[
                "SET @\"x\" = 20",
                "SET @e = 21",
                "SELECT 22, 23 INTO @`\u{e9}`, @`q``r`",
                "SET NAMES latin1",
            ],
            "SELECT LEFT(@`a b`, 9), LEFT(@`a b `, 9), LEFT(@x, 9), LEFT(@`q``r`, 9), LEFT(@e, 9)",
        );
        let (a, b) = (story.join(), story.join());
        for (set, who) in [("SET @\u{e9} = 1", a), ("SET @`\u{c9}` = 2", b)] {
            story.sql(who, set);
            for who in [a, b] {
                story.sql(
                    who,
                    "SELECT LEFT(@\u{e9}, 9), LEFT(@`\u{c9}`, 9), LEFT(@e, 9)",
                );
            }
        }
    });
}

#[test]
fn long_and_many_user_variables_follow_their_clients() {
    same_on_both("long_variables", 1, |story| {
        let probe = "SELECT LENGTH(@a), LEFT(MD5(@a), 8), LEFT(@b, 9), LEFT(@v199, 9)";
        let many: Vec<String> = (0..200).map(|i| format!("@v{i} = {i}")).collect();
        let many = format!("SET {}", many.join(", "));
        in_turns(
            story,
            &[
                "SET @a = REPEAT('x', 1000)",
                "SET @a = REPEAT('\u{e9}', 30000), @b = 1",
                &many,
                "SET @a = REPEAT('y', 65536)",
                "SET @a = NULL",
            ],
            &["SET @a = REPEAT('z', 513)", "SET @b = 2"],
            probe,
        );
    });
}

/// One backend: who sets a seed keeps it until a reset.
#[test]
fn random_numbers_go_on_from_where_their_client_has_put_them() {
    same_on_both("sets_seeds", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB");
        story.sql(a, "INSERT INTO t VALUES (1), (2)");
        let mut set = story.prepare(a, "SET rand_seed2 = 7").id;
        for _ in 0..2 {
            story.sql(a, "SET rand_seed1 = 5, rand_seed2 = 9");
            story.execute(a, set, &[]);
            story.sql(a, "SELECT @@time_zone");
            story.all(
                a,
                &["SELECT RAND(), RAND()", "SELECT RAND() FROM t", "SELECT 1"],
            );
            story.all(a, &["SET rand_seed1 = 77", "SELECT RAND()"]);
            story.command(a, Command::ResetConnection, b"");
            set = story.prepare(a, "SET rand_seed2 = 7").id;
            story.sql(a, "SELECT ROUND(RAND(), 6) IN (0, 0.000001), 5");
            story.sql(b, "SET SESSION rand_seed1 = 1, SESSION rand_seed2 := 2");
            story.all(b, &["SELECT RAND()", "BEGIN", "SELECT RAND()"]);
            story.all(b, &["SET rand_seed1 = 3, rand_seed2 = 4", "COMMIT"]);
            story.command(b, Command::ResetConnection, b"");
            story.sql(b, "SELECT ROUND(RAND(), 6) IN (0, 0.000001), 7");
        }
    });
}
