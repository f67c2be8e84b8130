//! What MySQL tells its clients and MariaDB does not, told through the pool as by the server.

use crate::compare::same_on;
use crate::world::mysql;
use wire::command::Command;

#[test]
fn transactions_are_reported_where_they_begin_and_end() {
    let test = "transactions_are_reported_where_they_begin_and_end";
    let Some(real) = mysql(test) else { return };
    same_on(real, test, 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (v INT)",
                "BEGIN",
                "INSERT INTO t VALUES (1)",
            ],
        );
        story.all(a, &["COMMIT", "START TRANSACTION READ ONLY", "ROLLBACK"]);
        story.all(
            b,
            &["SET autocommit = 0", "INSERT INTO t VALUES (2)", "COMMIT"],
        );
        story.all(
            b,
            &[
                "SET autocommit = 1",
                "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            ],
        );
        story.all(
            b,
            &[
                "TRUNCATE t",
                "XA START 'x'",
                "XA END 'x'",
                "XA ROLLBACK 'x'",
            ],
        );
        story.all(b, &["LOCK TABLES t WRITE", "UNLOCK TABLES"]);
    });
}

#[test]
fn a_change_of_schema_counts_the_clients_own_warnings() {
    let test = "a_change_of_schema_counts_the_clients_own_warnings";
    let Some(real) = mysql(test) else { return };
    same_on(real, test, 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "SELECT 1 / 0");
        story.sql(b, "SELECT 1");
        story.command(a, Command::InitDb, b"shop");
        story.sql(b, "SELECT 1 / 0, 2 / 0");
        story.command(a, Command::InitDb, b"shop");
        story.command(a, Command::Ping, b"");
        story.sql(a, "SHOW WARNINGS");
    });
}

#[test]
fn results_are_described_in_the_sessions_collation() {
    let test = "results_are_described_in_the_sessions_collation";
    let Some(real) = mysql(test) else { return };
    same_on(real, test, 1, |story| {
        let (a, b) = (story.join(), story.join());
        for names in [
            "SET NAMES utf8mb4",
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
            "SET character_set_results = utf8mb4",
            "SET CHARACTER SET latin1",
            "SET character_set_results = NULL",
            "SET NAMES DEFAULT",
        ] {
            story.sql(a, "SELECT 'a'");
            story.sql(b, names);
            story.sql(a, "SELECT 'a'");
            story.sql(b, "SELECT 'b', @@collation_connection");
        }
        story.command(b, Command::ResetConnection, b"");
        story.all(b, &["SELECT 'b'", "SET time_zone = '+01:00'"]);
        story.sql(a, "SELECT 'a'");
        story.sql(b, "SELECT 'b'");
    });
}
