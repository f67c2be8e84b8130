//! What a session counts and gathers about itself, and settings of several statements in one text.

use crate::compare::same_on_both;
use crate::world::{app, login, mysql_with_gtids, server, start_pool};
use wire::command::Command;

#[test]
fn counters_are_the_clients_own_from_flush_status_on() {
    same_on_both("counts_of_sessions", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(
            a,
            "CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
        );
        story.sql(a, "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)");
        let read = "SHOW SESSION STATUS LIKE 'Handler_read_rnd_next'";
        for _ in 0..2 {
            story.sql(a, "FLUSH STATUS");
            story.sql(b, "SELECT SUM(v) FROM t");
            story.sql(a, "SELECT v FROM t ORDER BY v");
            story.sql(b, "SELECT SUM(v) FROM t");
            story.sql(a, read);
        }
        story.command(a, Command::ResetConnection, b"");
        story.all(a, &["FLUSH STATUS", "SELECT 1"]);
        story.sql(a, read);
    });
}

/// One backend: a story with a pin that lasts would come to no end.
#[test]
fn settings_in_one_text_follow_their_client() {
    same_on_both("settings_in_one_text", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for who in [a, b] {
            story.command(who, Command::SetOption, &[0, 0]);
        }
        let probe = "SELECT @@character_set_client, @@collation_connection, @@time_zone, \
                     @@sql_mode, @@wait_timeout, @@character_set_results, @x";
        for text in [
            "SET NAMES latin1; SET time_zone = '+03:00'; SET wait_timeout = 1234",
            "SET sql_mode = 'ANSI_QUOTES'; SET NAMES utf8mb4 COLLATE utf8mb4_bin; SET @x = 5;",
            "SET NAMES cp1250; SET time_zone = 'No/Such'; SET wait_timeout = 999",
            "SET NAMES utf8mb4; SELECT 1; SET time_zone = '-01:00'",
            "SET @@sql_mode = ''; SET @@time_zone = '+02:00'; SET @@no_such = 1",
            "SET character_set_results = NULL; SET wait_timeout = DEFAULT",
        ] {
            story.sql(a, text);
            story.sql(b, probe);
            story.sql(a, probe);
            story.sql(b, "SET time_zone = '+07:00'; SET NAMES latin2");
            story.sql(a, probe);
        }
    });
}

#[test]
fn what_gathers_nothing_pins_nobody() {
    same_on_both("gathers_nothing", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(a, &["SET profiling = 0", "SET profiling_history_size = 7"]);
        story.sql(a, "SET optimizer_trace = 'enabled=off'");
        story.sql(
            b,
            "SELECT @@profiling, @@profiling_history_size, @@optimizer_trace",
        );
        story.sql(
            a,
            "SELECT @@profiling, @@profiling_history_size, @@optimizer_trace",
        );
        story.all(
            b,
            &[
                "SET profiling = OFF",
                "SET profiling_history_size = DEFAULT",
            ],
        );
        story.sql(b, "SHOW PROFILES");
        story.sql(a, "SELECT @@profiling, @@profiling_history_size");
    });
}

#[test]
fn flush_status_pins_by_its_name() {
    let Some(real) = server("flush_status_pins") else {
        return;
    };
    let pool = start_pool(real, "flushes.toml", "backends_max = 2\ngroups = 1");
    let mut client = login(&pool.address, &app());
    client.must("FLUSH TABLES");
    client.must("FLUSH STATUS");
    let said = pool.wait_for_census("statements: 2,").unwrap();
    assert!(said.contains("{\"session_status\": 1}"), "{said}");
}

/// A server that numbers its changes: MySQL shows the numbers that are in use as a global value,
/// and as one of each session, which none can set.
#[test]
fn a_change_under_way_is_no_global_value_that_sessions_begin_with() {
    let Some(real) = mysql_with_gtids("changes_under_way") else {
        return;
    };
    real.create_user("app", "app");
    let pool = start_pool(&real, "numbers.toml", "backends_max = 1\ngroups = 1");
    let mut before = login(&pool.address, &app());
    before.must("SELECT 1");
    let mut owner = real.admin();
    owner.must("SET gtid_next = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1'");
    before.must("SET GLOBAL default_week_format = 3");
    pool.wait_for("the server's global values have changed (default_week_format)")
        .unwrap();
    let mut after = login(&pool.address, &app());
    for _ in 0..2 {
        assert_eq!(after.value("SELECT @@default_week_format"), "3");
        assert_eq!(before.value("SELECT @@default_week_format"), "0");
    }
}
