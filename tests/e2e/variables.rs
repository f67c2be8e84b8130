//! Variables that nobody reports, that are used up, or that are hard to write: two clients on one
//! backend, so a pin that lasts is a story that comes to no end.

use crate::compare::{Story, same, same_on, same_on_both};
use crate::world::{app, found, mysql, server};
use testkit::real::Real;
use testkit::reply::Outcome;
use wire::capabilities as cap;
use wire::command::Command;

fn on_mariadb(test: &str, story: impl Fn(&mut Story)) {
    if let Some(real) = server(test) {
        same_on(real, test, 1, story);
    }
}

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

#[test]
fn what_is_set_without_its_scope_follows_its_client() {
    same_on_both("sets_without_scope", 1, |story| {
        in_turns(
            story,
            &[
                "SET @@div_precision_increment = 9, @@group_concat_max_len = 77",
                "SET @@sql_mode = 'ANSI_QUOTES', time_zone = '+03:00', @a = 1",
                "SET @@div_precision_increment = 3, @@no_such_variable = 1",
                "SET @@div_precision_increment = 2; SET @@time_zone = 'No/Such'; SELECT 1",
                "SET @@max_error_count = 99999999",
                "SET @@autocommit = 0",
                "SET @@autocommit = 1",
            ],
            &[
                "SET @@time_zone = '+05:00'",
                "SET @@version = 'x'",
                "SET @@max_connections = 5",
                "SET @@div_precision_increment = @@div_precision_increment + 1",
                "SET @@character_set_results = NULL, @@collation_connection = utf8mb4_bin",
                "SET @@sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
            ],
            "SELECT 1 / 3, @@sql_mode, @@group_concat_max_len, @@time_zone, @@autocommit, \
             @@max_error_count, @@collation_connection, @@character_set_results",
        );
    });
}

/// MariaDB has some variables under two names, and reports the one that was named.
#[test]
fn a_variable_of_two_names_is_one() {
    on_mariadb("two_names", |story| {
        let probe = "SELECT @@default_storage_engine, @@storage_engine, @@tmp_table_size, \
                     @@tmp_memory_table_size, @@alter_algorithm, @@old_alter_table, \
                     @@long_query_time, @@log_slow_query_time, @@slow_query_log, \
                     @@log_slow_query, @@min_examined_row_limit, \
                     @@log_slow_min_examined_row_limit";
        let first = [
            "SET default_storage_engine = MEMORY, tmp_table_size = 98304, long_query_time = 3",
            "SET storage_engine = Aria, old_alter_table = 'COPY', log_slow_query = 1",
            "SET tmp_memory_table_size = 65536, alter_algorithm = 'INPLACE', slow_query_log = 0",
            "SET @@log_slow_query_time = 4, @@storage_engine = MyISAM",
            "SET default_storage_engine = DEFAULT, @@long_query_time = DEFAULT",
        ];
        let second = [
            "SET storage_engine = MyISAM, min_examined_row_limit = 3",
            "SET tmp_memory_table_size = 32768, log_slow_query_time = 5, slow_query_log = 1",
            "SET alter_algorithm = 'NOCOPY', log_slow_min_examined_row_limit = 4",
            "SET old_alter_table = DEFAULT, tmp_table_size = DEFAULT",
        ];
        in_turns(story, &first, &second, probe);
    });
}

/// Of these the server reports the one that was named, and sets another.
#[test]
fn a_variable_that_is_part_of_another_keeps_its_client() {
    for sets in [
        "SET log_queries_not_using_indexes = 1",
        "SET log_slow_admin_statements = 0",
        "SET old = 1",
        "SET log_slow_slave_statements = 0, log_slow_filter = 'admin'",
    ] {
        on_mariadb("parts", |story| {
            let (a, b) = (story.join(), story.join());
            let probe = "SELECT @@log_slow_filter, @@log_slow_disabled_statements, @@old_mode, \
                         @@log_queries_not_using_indexes, @@log_slow_admin_statements, @@old";
            story.sql(b, "SET log_slow_filter = 'tmp_table', old_mode = ''");
            story.all(a, &[sets, "SELECT 1", probe]);
            story.command(a, Command::ResetConnection, b"");
            story.sql(b, probe);
            story.sql(a, probe);
        });
    }
}

/// `max_join_size` sets `sql_big_selects` too, without a report.
#[test]
fn a_limit_of_joins_follows_its_client_whole() {
    same_on_both("join_limits", 1, |story| {
        let probe = "SELECT @@max_join_size, @@sql_big_selects";
        let first = [
            "SET sql_big_selects = 1",
            "SET max_join_size = 5",
            "SET sql_big_selects = 1",
            "SET max_join_size = 6, sql_big_selects = 1",
            "SET sql_big_selects = 1, max_join_size = 7",
            "SET @@max_join_size = 8",
            "SET max_join_size = DEFAULT",
            "SET sql_big_selects = 0",
        ];
        let second = [
            "SET max_join_size = 5",
            "SET max_join_size = DEFAULT",
            "SET sql_big_selects = 0",
            "SET @@max_join_size = 18446744073709551615",
            "SET sql_safe_updates = 1, sql_select_limit = 1000, max_join_size = 1000000",
        ];
        in_turns(story, &first, &second, probe);
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t AS SELECT 1 AS v UNION ALL SELECT 2");
        story.all(
            a,
            &[
                "SET max_join_size = 2",
                "SELECT COUNT(*) FROM t AS x, t AS y",
            ],
        );
        story.sql(b, "SELECT COUNT(*) FROM t AS x, t AS y");
        story.sql(a, "SELECT COUNT(*) FROM t AS x, t AS y");
    });
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

/// With one backend: whoever is pinned has the other wait in vain, and finds there what that has
/// left.
#[test]
fn a_set_of_several_that_has_not_begun_does_not_pin() {
    same_on_both("sets_not_begun", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (id INT PRIMARY KEY)");
        story.sql(a, "INSERT INTO t VALUES (1), (2), (3)");
        story.sql(a, "SET @@sql_mode = 'ANSI_QUOTES'");
        for set in [
            "SET @@sql_mode = DEFAULT, @@no_such_variable = 3",
            "SET sql_mode = DEFAULT, no_such_variable = 3",
            "SET @@sql_mode = DEFAULT, @@version = 'x'",
            "SET sql_mode = DEFAULT, SESSION max_connections = 3",
            "SET sql_mode = DEFAULT, @@version = DEFAULT",
        ] {
            story.sql(b, "SET @unset = 'x'");
            story.sql(a, set);
            story.sql(
                a,
                "SELECT @unset := IFNULL(@unset, 0) + 1 FROM t ORDER BY id",
            );
            story.all(b, &["SELECT @unset", "SELECT @@sql_mode"]);
            story.sql(a, "SELECT @@sql_mode");
            story.command(a, Command::ResetConnection, b"");
            story.sql(a, "SET @@sql_mode = 'ANSI_QUOTES'");
        }
    });
}

#[test]
fn what_was_set_without_its_scope_cuts_the_next_text() {
    same_on_both("cuts_without_scope", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (v INT) ENGINE=InnoDB");
        story.all(a, &["BEGIN", "SET @@sql_mode = 'ANSI_QUOTES'"]);
        story.all(a, &["INSERT INTO \"t\" VALUES (1)", "SELECT \"v\" FROM t"]);
        story.all(a, &["COMMIT", "SELECT \"v\" FROM t"]);
        story.all(b, &["SELECT \"v\" FROM t", "SELECT @@sql_mode"]);
        story.all(a, &["SELECT 1 / 0", "SET @@max_error_count = 99999999"]);
        story.all(a, &["SHOW WARNINGS", "SELECT ROW_COUNT(), FOUND_ROWS()"]);
        story.all(b, &["SELECT 1", "SHOW WARNINGS"]);
        story.all(a, &["BEGIN", "SET @@no_such_variable = 1", "SHOW WARNINGS"]);
        story.all(a, &["SELECT ROW_COUNT()", "ROLLBACK"]);
        story.all(a, &["DO GET_LOCK('cuts', 0)", "SET @@time_zone = '+01:00'"]);
        story.all(a, &["SELECT ROW_COUNT()", "SELECT RELEASE_LOCK('cuts')"]);
        story.sql(b, "SELECT @@time_zone");
        story.sql(a, "SELECT @@time_zone");
    });
}

/// MariaDB reports its wait for locks as variables, which do not last. With one backend a pinned
/// client would have the other wait in vain.
#[test]
fn a_wait_for_locks_lasts_for_its_statement_alone() {
    same_on_both("waits_for_locks", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (id INT PRIMARY KEY)");
        story.sql(a, "INSERT INTO t VALUES (1), (2)");
        let values = "SELECT @@lock_wait_timeout, @@innodb_lock_wait_timeout";
        story.sql(a, "SET lock_wait_timeout = 77");
        for sql in [
            "SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT",
            "SELECT id FROM t WHERE id = 1 LOCK IN SHARE MODE WAIT 3",
            "SELECT id INTO @a FROM t WHERE id = 1 FOR UPDATE NOWAIT",
            "INSERT INTO t SELECT id + 2 FROM t WHERE id = 1 FOR UPDATE NOWAIT",
            "ALTER TABLE t WAIT 3 ADD COLUMN x INT",
            "CREATE INDEX x ON t (x) WAIT 2",
            "DROP INDEX x ON t NOWAIT",
            "OPTIMIZE TABLE t NOWAIT",
            "TRUNCATE TABLE t WAIT 3",
            "RENAME TABLE t WAIT 2 TO u",
            "DROP TABLE u NOWAIT",
            "DROP TABLE no_such NOWAIT",
        ] {
            story.sql(a, sql);
            story.sql(b, values);
            story.sql(a, values);
            story.all(a, &["BEGIN", sql, values, "COMMIT"]);
            story.sql(b, values);
        }
    });
}

/// Where it cannot be told whose a reported value is, its client stays where that is.
#[test]
fn a_wait_for_locks_within_other_settings_does_not_last_either() {
    same_on_both("waits_within", 2, |story| {
        let values = "SELECT @@lock_wait_timeout, @@max_error_count";
        let a = story.join();
        story.sql(a, "CREATE TABLE t (id INT PRIMARY KEY)");
        for sql in [
            "SET @a = (SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT)",
            "SET max_error_count = (SELECT COUNT(*) + 5 FROM t FOR UPDATE NOWAIT)",
            "SELECT id FROM t FOR UPDATE NOWAIT; SET max_error_count = 7",
            "SET max_error_count = 8; SELECT id FROM t FOR UPDATE NOWAIT",
            "DROP TABLE IF EXISTS no_such NOWAIT; DO 1",
        ] {
            let (a, b) = (story.join(), story.join());
            story.sql(a, sql);
            story.sql(b, values);
            story.sql(a, values);
            story.command(a, Command::ResetConnection, b"");
            story.sql(a, values);
            story.command(a, Command::Quit, b"");
            story.command(b, Command::Quit, b"");
        }
    });
}

#[test]
fn what_is_prepared_without_a_scope_follows_its_client() {
    same_on_both("prepares_without_scope", 1, |story| {
        let (a, b) = (story.join(), story.join());
        let probe = "SELECT @@div_precision_increment, @@time_zone";
        let set = story.prepare(a, "SET @@div_precision_increment = 7").id;
        for _ in 0..2 {
            story.execute(a, set, &[]);
            story.sql(b, probe);
            story.sql(a, probe);
            story.sql(a, "SET div_precision_increment = DEFAULT");
        }
        story.sql(a, "PREPARE s FROM 'SET @@time_zone = ''+02:00'''");
        story.sql(b, probe);
        story.sql(a, "EXECUTE s");
        story.sql(b, probe);
        story.sql(a, probe);
    });
}

#[test]
fn a_stopped_clock_follows_its_client_and_goes_on_again() {
    same_on_both("stops_clocks", 1, |story| {
        let stands = "SELECT @@timestamp < 2000000, UNIX_TIMESTAMP() < 2000000, \
                      IF(@@timestamp < 2000000, @@timestamp, 0)";
        in_turns(
            story,
            &[
                "SET timestamp = 1000",
                "SET timestamp = DEFAULT",
                "SET timestamp = 1000.25",
                "SET @@timestamp = 5",
                "SET @@timestamp = DEFAULT",
                "SET timestamp = 0",
                "SET timestamp = 'x'",
                "BEGIN; SET timestamp = 7; COMMIT",
            ],
            &["SET timestamp = 3000", "SET timestamp = @@timestamp + 1"],
            stands,
        );
    });
}

#[test]
fn last_insert_id_by_its_other_names_follows_its_client() {
    same_on_both("sets_insert_ids", 1, |story| {
        in_turns(
            story,
            &[
                "SET last_insert_id = 5",
                "SET @@identity = 7",
                "SET last_insert_id = DEFAULT",
            ],
            &["SET @@SESSION.identity = 6", "SET identity = 'x'"],
            "SELECT LAST_INSERT_ID(), @@identity, @@last_insert_id",
        );
    });
}

#[test]
fn variables_of_replication_follow_their_client() {
    let probe = "SELECT @@sql_log_bin, @@pseudo_slave_mode, @@completion_type";
    same_on_both("sets_replication", 1, |story| {
        in_turns(
            story,
            &[
                "SET sql_log_bin = 0",
                "SET pseudo_slave_mode = 1",
                "SET completion_type = 1",
                "SET sql_log_bin = 1",
                "SET pseudo_slave_mode = 0",
                "SET completion_type = 0",
            ],
            &["SET sql_log_bin = DEFAULT", "SET completion_type = CHAIN"],
            probe,
        );
    });
    on_mariadb("sets_replication", |story| {
        in_turns(
            story,
            &[
                "SET server_id = 77, gtid_domain_id = 5",
                "SET skip_replication = 1, skip_parallel_replication = 1",
                "SET wsrep_on = 0",
                "SET server_id = DEFAULT",
                "SET max_relay_log_size = 8192, sql_slave_skip_counter = 0",
            ],
            &["SET server_id = 78", "SET wsrep_on = 1"],
            "SELECT @@server_id, @@gtid_domain_id, @@skip_replication, \
             @@skip_parallel_replication, @@wsrep_on",
        );
    });
    if let Some(real) = mysql("sets_row_formats") {
        same_on(real, "sets_row_formats", 1, |story| {
            in_turns(
                story,
                &["SET require_row_format = 1", "SET require_row_format = 0"],
                &["SET pseudo_replica_mode = 1"],
                "SELECT @@require_row_format, @@pseudo_replica_mode",
            );
        });
    }
}

#[test]
fn a_number_of_its_own_follows_its_client_and_no_other() {
    same_on_both("sets_thread_ids", 1, |story| {
        let (a, b) = (story.join(), story.join());
        let own = "SELECT CONNECTION_ID() < 1000, @@pseudo_thread_id < 1000";
        let told = "SELECT CONNECTION_ID(), @@pseudo_thread_id";
        story.command(a, Command::SetOption, &[0, 0]);
        story.sql(a, "SET pseudo_thread_id = 999999; SELECT CONNECTION_ID()");
        story.sql(
            b,
            "SELECT CONNECTION_ID() = 999999, @@pseudo_thread_id = 999999",
        );
        story.sql(a, told);
        story.sql(a, "SET pseudo_thread_id = 5");
        story.sql(b, "SELECT CONNECTION_ID() = 5");
        story.sql(a, own);
        story.command(a, Command::ResetConnection, b"");
        story.sql(a, "SELECT CONNECTION_ID() = 5");
    });
}

#[test]
fn what_is_used_up_keeps_its_client_until_then() {
    same_on_both("uses_up", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(
            a,
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        );
        for (i, set) in [
            "SET insert_id = 50",
            "SET @@insert_id = 100",
            "SET @@SESSION.insert_id = 150, time_zone = '+01:00'",
        ]
        .iter()
        .enumerate()
        {
            story.all(
                a,
                &[set, "SELECT @@insert_id", "INSERT INTO t (v) VALUES (1)"],
            );
            story.sql(b, "SELECT @@insert_id, @@time_zone");
            story.sql(b, &format!("INSERT INTO t (v) VALUES ({i})"));
            story.sql(a, "SELECT LAST_INSERT_ID(), @@insert_id, @@time_zone");
        }
        story.all(a, &["SET insert_id = 70", "SELECT 1 / 0", "SHOW WARNINGS"]);
        story.all(a, &["SELECT FOUND_ROWS()", "INSERT INTO t (v) VALUES (3)"]);
        story.sql(b, "SELECT @@insert_id");
        story.sql(a, "SET insert_id = 5, no_such = 1");
        story.sql(b, "SELECT @@insert_id, id, v FROM t ORDER BY id");
        story.all(a, &["SET insert_id = 80", "BEGIN"]);
        story.all(a, &["INSERT INTO t (v) VALUES (2)", "COMMIT"]);
        story.sql(b, "SELECT @@insert_id, id, v FROM t ORDER BY id");
        story.sql(a, "SET insert_id = 90");
        story.command(a, Command::ResetConnection, b"");
        story.sql(b, "SELECT @@insert_id");
        story.sql(a, "SELECT @@insert_id");
    });
    on_mariadb("uses_up_sequences", |story| {
        let (a, b) = (story.join(), story.join());
        story.all(a, &["SET gtid_seq_no = 1000", "SELECT @@gtid_seq_no"]);
        story.sql(a, "SET gtid_seq_no = 0");
        story.sql(b, "SELECT @@gtid_seq_no");
        story.sql(a, "SET gtid_next = 'AUTOMATIC'");
        story.sql(b, "SELECT 1");
    });
}

/// With `insert_id` set to 0 the next row gets the id 0, and the variable shows 0 all the time.
#[test]
fn an_insert_id_of_nothing_is_the_clients_own() {
    same_on_both("insert_ids_of_nothing", 2, |story| {
        let b = story.join();
        story.sql(
            b,
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        );
        let insert = "INSERT INTO t (v) VALUES (1)";
        let look = "SELECT @@insert_id, id, v FROM t ORDER BY id";
        for set in [
            "SET insert_id = 0",
            "SET insert_id = 7; SET @@insert_id := 0",
            "SET SESSION insert_id = DEFAULT",
            "SET insert_id = 8 - 8, time_zone = '+01:00'",
            "SET insert_id = 'x'",
        ] {
            let a = story.join();
            story.command(a, Command::SetOption, &[0, 0]);
            story.sql(a, set);
            story.all(b, &[insert, look]);
            story.all(a, &[insert, look]);
            story.command(a, Command::ResetConnection, b"");
            story.all(b, &[insert, "DELETE FROM t WHERE id = 0"]);
            story.all(a, &[look, insert]);
        }
    });
}

#[test]
fn what_mysql_uses_up_keeps_its_client_until_then() {
    let test = "uses_up_on_mysql";
    let Some(real) = mysql(test) else { return };
    same_on(real, test, 1, |story| {
        let (a, b) = (story.join(), story.join());
        let probe = "SELECT @@gtid_next";
        story.all(a, &[probe, "SET gtid_next = 'AUTOMATIC'"]);
        story.all(b, &[probe, "SET gtid_seq_no = 5"]);
        story.sql(a, probe);
    });
}

/// With a binary log a transaction uses it up: MySQL does not report that.
#[test]
fn the_origin_of_a_transaction_follows_its_client_until_that_uses_it_up() {
    let test = "origins";
    let log = ["--log-bin=log", "--server-id=7"];
    let Some(real) = found(Real::start_mysql(&log), test) else {
        return;
    };
    real.create_user("app", "app");
    same_on(&real, test, 1, |story| {
        let (a, b) = (story.join(), story.join());
        let probe = "SELECT @@original_commit_timestamp, @@original_server_version, \
                     @@immediate_server_version";
        let insert = "INSERT INTO t (v) VALUES (1)";
        story.sql(
            a,
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        );
        story.sql(
            a,
            "CREATE PROCEDURE fills() INSERT INTO t (v) VALUES (2), (3)",
        );
        story.sql(b, "SET original_commit_timestamp = 99");
        for set in [
            "SET original_commit_timestamp = 5",
            "SET @@original_server_version = 80000, @@SESSION.immediate_server_version = 80001",
            "SET SESSION original_commit_timestamp = 7, original_server_version = 80002, \
             time_zone = '+01:00'",
        ] {
            for ways in [
                &[insert][..],
                &["BEGIN", insert, probe, "COMMIT"],
                &["CALL fills()"],
                &["INSERT INTO t SELECT 1 + MAX(id), 4 FROM t"],
                &["SET autocommit = 0", insert, "COMMIT", "SET autocommit = 1"],
                &["PREPARE s FROM 'INSERT INTO t (v) VALUES (5)'", "EXECUTE s"],
            ] {
                story.sql(a, set);
                story.sql(b, probe);
                // What uses none up.
                story.all(a, &[probe, "SELECT COUNT(*) FROM t", "DO 0", "COMMIT"]);
                story.all(
                    a,
                    &["BEGIN", insert, "ROLLBACK", "INSERT INTO t VALUES (1, 1)"],
                );
                story.sql(b, probe);
                story.all(a, ways);
                story.sql(b, probe);
                story.sql(a, probe);
            }
            story.all(b, &[insert, probe]);
            story.sql(a, probe);
            story.sql(b, "SET original_commit_timestamp = 98");
            story.sql(b, "SET original_server_version = 1");
        }
        story.command(a, Command::SetOption, &[0, 0]);
        let several = format!("SET immediate_server_version = 8; {insert}; {probe}");
        story.sql(a, &several);
        story.sql(b, probe);
        story.all(a, &[probe, "SET original_commit_timestamp = 9"]);
        story.all(a, &["SET original_commit_timestamp = DEFAULT", probe]);
        story.all(a, &["SET original_commit_timestamp = 'x'", probe]);
        story.sql(a, "SET original_commit_timestamp = 10");
        story.sql(b, probe);
        story.command(a, Command::ResetConnection, b"");
        story.all(a, &[probe, "SET original_commit_timestamp = 11"]);
        story.sql(b, probe);
        story.change_user(a, &app().schema(test));
        story.sql(a, probe);
        story.sql(b, probe);
    });
}

/// Each client finds its own LAST_INSERT_ID(), whatever others insert between: by function and
/// variable, in views, triggers and routines, behind ids that were given, and where an INSERT fails
/// halfway or has no id at all.
#[test]
fn the_last_insert_id_is_the_clients_own_wherever_it_is_read() {
    same_on_both("last_insert_ids", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT UNIQUE, w INT)",
                "CREATE TABLE plain (v INT)",
                "CREATE TABLE noted (v BIGINT)",
                "INSERT INTO plain VALUES (1), (2)",
                "CREATE FUNCTION last_id() RETURNS BIGINT NO SQL RETURN LAST_INSERT_ID()",
                "CREATE VIEW shows AS SELECT LAST_INSERT_ID() AS id",
                "CREATE VIEW calls AS SELECT last_id() AS id",
                "CREATE TRIGGER notes AFTER UPDATE ON plain FOR EACH ROW \
                 INSERT INTO noted VALUES (LAST_INSERT_ID())",
            ],
        );
        story.sql(a, "INSERT INTO t (v) VALUES (1)");
        story.sql(b, "INSERT INTO t (v) VALUES (2), (3)");
        let reads = [
            "SELECT LAST_INSERT_ID()",
            "SELECT @@last_insert_id, @@identity",
            "SELECT id FROM shows",
            "SELECT id FROM calls",
            "SELECT last_id()",
            "UPDATE plain SET v = v + 1 LIMIT 1",
            "SELECT v FROM noted",
        ];
        let silent = ["SELECT v FROM plain", "DELETE FROM noted", "SELECT 1"];
        let changes = [
            "INSERT INTO t (id, v) VALUES (100, 100)",
            "INSERT INTO plain VALUES (5)",
            "INSERT INTO t (v) VALUES (200), (1)",
            "INSERT IGNORE INTO t (v) VALUES (1)",
            "INSERT INTO t (v) VALUES (1) ON DUPLICATE KEY UPDATE w = 1",
            "INSERT INTO t (v) VALUES (1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)",
            "REPLACE INTO t (v) VALUES (300)",
            "REPLACE INTO plain VALUES (6)",
            "INSERT INTO t (v) SELECT v + 1000 FROM plain",
            "INSERT INTO plain VALUES (LAST_INSERT_ID())",
            "UPDATE plain SET v = LAST_INSERT_ID(v + 7) LIMIT 1",
            "SELECT LAST_INSERT_ID(77)",
            "INSERT INTO plain VALUES (8); INSERT INTO t (v) VALUES (400); \
             INSERT INTO plain VALUES (9)",
            "SET last_insert_id = 12",
        ];
        story.command(a, Command::SetOption, &[0, 0]);
        story.command(b, Command::SetOption, &[0, 0]);
        for (turn, change) in changes.iter().enumerate() {
            let (one, other) = if turn % 2 == 0 { (a, b) } else { (b, a) };
            story.all(other, &silent);
            story.sql(one, change);
            story.all(other, &silent);
            story.sql(one, reads[turn % reads.len()]);
            story.all(other, &reads);
            story.all(one, &silent[..1]);
            story.all(other, &silent);
            story.all(one, &reads);
        }
        story.all(
            a,
            &[
                "BEGIN",
                "SELECT v FROM plain",
                "INSERT INTO t (v) VALUES (500)",
            ],
        );
        story.all(
            a,
            &["SELECT v FROM plain", "SELECT LAST_INSERT_ID()", "COMMIT"],
        );
        story.all(b, &silent);
        story.all(b, &["SELECT LAST_INSERT_ID()"]);
        story.all(a, &["SELECT LAST_INSERT_ID()"]);
    });
}

#[test]
fn automatic_is_null_is_the_clients_own() {
    same_on_both("auto_is_null", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(
            a,
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        );
        let probe = "SELECT @@sql_auto_is_null, id FROM t WHERE id IS NULL";
        story.all(
            a,
            &["SET sql_auto_is_null = 1", "INSERT INTO t (v) VALUES (1)"],
        );
        story.all(a, &[probe, probe, "SET sql_auto_is_null = 0", probe]);
        story.all(b, &[probe, "SET @@sql_auto_is_null = ON", probe]);
        story.all(b, &["INSERT INTO t (v) VALUES (1)", probe]);
        story.all(b, &["SET sql_auto_is_null = OFF", probe]);
        story.sql(a, probe);
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

#[test]
fn values_of_every_kind_are_given_back() {
    on_mariadb("odd_values", |story| {
        in_turns(
            story,
            &[
                "SET default_master_connection = 'it''s'",
                "SET default_master_connection = 'a\\\\b\u{e9}'",
                "SET default_master_connection = '12'",
                "SET default_master_connection = ''",
            ],
            &[
                "SET NAMES latin1, sql_mode = 'NO_BACKSLASH_ESCAPES'",
                "SET default_master_connection = 'x\"y'",
            ],
            "SELECT HEX(@@default_master_connection), @@sql_mode, @@character_set_client",
        );
    });
    same_on_both("odd_nulls", 1, |story| {
        in_turns(
            story,
            &[
                "SET innodb_tmpdir = '/tmp'",
                "SET innodb_tmpdir = NULL",
                "SET innodb_ft_user_stopword_table = NULL",
                "SET innodb_tmpdir = ''",
            ],
            &["SET innodb_tmpdir = DEFAULT"],
            "SELECT @@innodb_tmpdir, @@innodb_ft_user_stopword_table",
        );
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
fn schemas_of_every_name_follow_their_clients() {
    same_on_both("odd_schemas", 1, |story| {
        let names = ["odd sch\u{e9}ma", "odd`1`", "odd.2", "odd \u{4e2d}\u{6587}"];
        let (a, b) = (story.join(), story.join());
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        for name in names {
            let name = quoted(name);
            story.sql(a, &format!("DROP DATABASE IF EXISTS {name}"));
            story.sql(a, &format!("CREATE DATABASE {name}"));
            story.sql(a, &format!("USE {name}"));
            story.sql(a, "CREATE TABLE t (v INT)");
            story.sql(b, "SELECT HEX(DATABASE())");
            story.all(a, &["SELECT * FROM t", "SELECT HEX(DATABASE())"]);
        }
        let mut latin1 = app();
        latin1.collation = 8;
        let c = story.join_as(&latin1);
        story.sql(c, "SELECT HEX(DATABASE()), @@character_set_client");
        story.command(c, Command::InitDb, b"odd sch\xe9ma");
        for who in [a, c, b, c, a] {
            story.sql(who, "SELECT HEX(DATABASE()), @@character_set_client");
        }
        story.command(c, Command::Query, b"USE `odd sch\xe9ma`");
        story.sql(b, "SET NAMES latin1");
        story.command(a, Command::InitDb, "odd sch\u{e9}ma".as_bytes());
        story.command(b, Command::InitDb, "odd sch\u{e9}ma".as_bytes());
        for who in [a, c, b, c, a] {
            story.sql(who, "SELECT HEX(DATABASE()), @@character_set_client");
        }
        // In latin1 these two bytes are two letters.
        let two = "odd \u{c3}\u{a9}";
        story.sql(c, "SET NAMES utf8mb4");
        story.sql(c, &format!("DROP DATABASE IF EXISTS `{two}`"));
        story.sql(c, &format!("CREATE DATABASE `{two}`"));
        let e = story.join_as(&latin1.schema("odd \u{e9}"));
        for who in [e, b, e] {
            story.sql(who, "SELECT HEX(DATABASE()), @@character_set_client");
        }
        story.all(e, &["SET NAMES utf8mb4", "SELECT DATABASE()"]);
        story.sql(b, "SELECT HEX(DATABASE()), @@character_set_client");
        story.all(
            e,
            &["SELECT DATABASE()", "DROP DATABASE `odd \u{c3}\u{a9}`"],
        );
        let d = story.join_as(&app().schema("odd sch\u{e9}ma"));
        for who in [d, c, d] {
            story.sql(who, "SELECT HEX(DATABASE())");
        }
        story.command(d, Command::ResetConnection, b"");
        story.sql(b, "SELECT HEX(DATABASE())");
        story.sql(d, "SELECT HEX(DATABASE())");
        for name in names {
            story.sql(
                b,
                &format!("DROP DATABASE {}", quoted(&name.replace('\u{e9}', "e"))),
            );
            story.sql(a, &format!("DROP DATABASE {}", quoted(name)));
        }
        story.sql(a, "SELECT HEX(DATABASE())");
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

#[test]
fn what_is_too_long_to_carry_keeps_its_client_until_it_is_shorter() {
    same_on_both("too_long_variables", 1, |story| {
        let (a, b) = (story.join(), story.join());
        let probe = "SELECT LENGTH(@a), LEFT(@b, 9)";
        for end in ["SET @a = NULL", "SET @a = 'short'", "SELECT 7 INTO @a"] {
            story.all(a, &["SET @a = REPEAT('x', 100000), @b = 1", probe]);
            story.all(a, &["SET @b = 2", probe, end]);
            story.sql(b, probe);
            story.sql(a, probe);
        }
        let many = |from: usize, value: &str| {
            let each = (from..from + 200).map(|i| format!("@w{i} = {value}"));
            format!("SET {}", each.collect::<Vec<_>>().join(", "))
        };
        story.all(a, &[&many(0, "'x'"), "SELECT LEFT(@w1, 9)"]);
        story.sql(b, "SELECT LEFT(@w1, 9)");
        story.sql(a, &many(200, "'y'"));
        story.sql(a, "SELECT LEFT(@w1, 9), LEFT(@w399, 9)");
        story.command(a, Command::ResetConnection, b"");
        story.sql(b, "SELECT LEFT(@w1, 9), LEFT(@w399, 9)");
        story.sql(a, "SELECT LEFT(@w1, 9), LEFT(@w399, 9)");
    });
}

/// A server takes any bytes in a client's own literal, but not behind an introducer.
#[test]
fn bytes_that_are_no_text_of_their_character_set_keep_their_client() {
    same_on_both("lone_lead_bytes", 2, |story| {
        let (a, b, c) = (story.join(), story.join(), story.join());
        let probe = "SELECT HEX(@v), COLLATION(@v)";
        let sets: [(&str, &[u8]); 6] = [
            ("gbk", b"\xe9"),
            ("sjis", b"\x81"),
            ("big5", b"\xa4"),
            ("ujis", b"\x8f"),
            ("euckr", b"\xb0"),
            ("gb2312", b"\xb0"),
        ];
        for (charset, lead) in sets {
            story.sql(a, &format!("SET NAMES {charset}"));
            let set = [b"SET @v = '", lead, b"'"].concat();
            story.command(a, Command::Query, &set);
            story.sql(b, "SET @v = NULL");
            story.sql(c, "SET @v = 3");
            story.sql(b, "SET @v = 5");
            story.sql(a, probe);
            story.all(a, &["SET @v = 'short'", probe]);
        }
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

/// MariaDB reports nothing of it, so its client keeps its backend until it leaves or resets.
#[test]
fn what_set_statement_sets_for_good_keeps_its_client() {
    let test = "sets_behind_set_statement";
    let Some(real) = server(test) else { return };
    same_on(real, test, 2, |story| {
        let (a, b) = (story.join(), story.join());
        let shown = "SELECT @@sql_select_limit, @@time_zone, @@autocommit, @@sql_mode, \
                     @@character_set_client, @@tx_isolation, @v";
        for set in [
            "SET sql_select_limit = 1",
            "SET SESSION time_zone = '+03:00', @v = 5",
            "SET @@autocommit = 0",
            "SET sql_mode = 'ANSI_QUOTES'",
            "SET NAMES latin1",
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET STATEMENT div_precision_increment = 9 FOR SET sql_select_limit = 2",
        ] {
            let set = format!("SET STATEMENT max_statement_time = 10 FOR {set}");
            for prepared in [false, true] {
                match prepared {
                    true => {
                        let id = story.prepare(a, &set).id;
                        story.execute(a, id, &[]);
                    }
                    false => {
                        story.sql(a, &set);
                    }
                }
                for who in [b, a] {
                    story.all(who, &["SELECT 1", shown]);
                }
                story.command(a, Command::ResetConnection, b"");
                story.sql(b, shown);
                story.sql(a, shown);
            }
        }
        // To set these for one statement leaves something, or hides what that does.
        for text in [
            "SET STATEMENT max_join_size = 10 FOR SELECT 1",
            "SET STATEMENT session_track_schema = OFF FOR USE shop",
        ] {
            story.sql(a, text);
            story.sql(b, "SELECT DATABASE(), @@sql_big_selects");
            story.sql(a, "SELECT DATABASE(), @@sql_big_selects");
            story.command(a, Command::ResetConnection, b"");
        }
        // What user variables it sets is read back.
        story.sql(a, "SET STATEMENT max_statement_time = 10 FOR SET @v = 7");
        story.sql(b, "SELECT @v");
        story.sql(a, "SELECT @v");
    });
}

/// MariaDB looks at a DEFAULT and a PASSWORD of a SET when it has set the other variables.
#[test]
fn what_a_set_that_fails_has_set_is_its_clients_alone() {
    let asks = "SELECT @@sql_mode, @@time_zone, @@autocommit, @@sql_select_limit";
    for (number, set) in [
        "SET last_insert_id = DEFAULT, sql_mode = ''",
        "SET SESSION time_zone = '+09:00', SESSION identity = DEFAULT",
        "SET last_insert_id = DEFAULT, autocommit = 0",
        "SET sql_select_limit = 1, max_allowed_packet = DEFAULT",
        "SET sql_select_limit = 1, PASSWORD FOR nobody = PASSWORD('x')",
        "SELECT 1; SET autocommit = 0, identity = DEFAULT",
        "EXECUTE IMMEDIATE 'SET autocommit = 0, last_insert_id = DEFAULT'",
    ]
    .into_iter()
    .enumerate()
    {
        same(&format!("half_a_set{number}"), 2, |story| {
            // Who is told of changes may hear of one later that the server does not tell at all.
            let schema = story.schema.clone();
            let a = story.join_as(&app().schema(&schema).without(cap::SESSION_TRACK));
            let b = story.join();
            story.sql(a, "CREATE TABLE t (id INT)");
            story.command(a, Command::SetOption, &[0, 0]);
            story.all(a, &[set, asks]);
            story.all(b, &[asks, "INSERT INTO t VALUES (1), (2)"]);
            story.command(b, Command::Quit, b"");
            story.all(a, &["SELECT COUNT(*) FROM t", asks]);
            story.command(a, Command::ResetConnection, b"");
            story.sql(a, asks);
            if set.starts_with("SET ") {
                let prepared = story.prepare(a, set).id;
                story.execute(a, prepared, &[]);
            }
            let c = story.join();
            story.sql(c, asks);
            story.sql(a, asks);
        });
    }
}

/// A time with fractions is the same on every backend, to the microsecond.
#[test]
fn a_clock_that_stands_has_its_microseconds_on_any_backend() {
    same_on_both("clock_fractions", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for time in [
            "8640837.657897896",
            "8640837.657897",
            "1700000000.000001",
            "1700000000.999999",
            "1700000000.5",
            "2147483646.123457",
            "1",
        ] {
            story.sql(a, &format!("SET timestamp = {time}"));
            for _ in 0..2 {
                story.sql(b, "DO 1");
                story.sql(a, "SELECT NOW(6), @@timestamp, @@timestamp * 1e6");
            }
        }
    });
}

/// Numbers of every size and sign are written back as they were, as far as servers report them.
#[test]
fn numbers_of_every_size_follow_their_client() {
    same_on_both("number_sizes", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for name in [
            "auto_increment_offset",
            "div_precision_increment",
            "group_concat_max_len",
            "long_query_time",
            "max_heap_table_size",
            "max_join_size",
            "max_sort_length",
            "min_examined_row_limit",
            "range_alloc_block_size",
            "tmp_table_size",
        ] {
            for value in [
                "0",
                "-1",
                "0.5",
                "33.333333",
                "1e20",
                "4294967296",
                "9223372036854775808",
                "18446744073709551615",
            ] {
                story.sql(a, &format!("SET SESSION {name} = {value}"));
                story.sql(b, "DO 1");
                story.sql(a, &format!("SELECT @@{name}, HEX(@@{name}), @@{name} + 0"));
            }
            story.sql(a, &format!("SET SESSION {name} = DEFAULT"));
        }
    });
}
