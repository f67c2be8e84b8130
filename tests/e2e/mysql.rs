//! Reports that MySQL makes to its clients and MariaDB does not, told through the pool as by the
//! server.

use crate::compare::same_on;
use crate::world::{app, login, mysql, through};
use wire::capabilities as cap;
use wire::command::Command;

/// Statements that leave conditions, or look at them: MySQL counts those of the last statement in
/// the OK of the commands that are no statements.
const CONDITIONS: [&[&str]; 19] = [
    &["SELECT 1"],
    &["SELECT 1 / 0"],
    &["SELECT 1 / 0, 2 / 0", "SELECT 1"],
    &["SELECT * FROM missing"],
    &["SELEC"],
    &["SELECT 1 / 0", "SHOW WARNINGS"],
    &["SELECT 1 / 0", "SHOW WARNINGS LIMIT 1", "SHOW ERRORS"],
    &["SELECT 1 / 0", "SHOW COUNT(*) WARNINGS"],
    &["SELECT 1 / 0", "SELECT @@warning_count"],
    &["SELECT 1 / 0", "GET DIAGNOSTICS @n = NUMBER"],
    &["INSERT IGNORE INTO t VALUES (1, 'word'), (1, 2)"],
    &["BEGIN", "SELECT 1 / 0"],
    &["SET max_error_count = 0", "SELECT 1 / 0"],
    &["SELECT 1", "GET STACKED DIAGNOSTICS @n = NUMBER"],
    &["SELECT 1 / 0, 2 / 0", "GET STACKED DIAGNOSTICS @n = NUMBER"],
    &[
        "SELECT * FROM missing",
        "GET STACKED DIAGNOSTICS @n = NUMBER",
    ],
    &["SET sql_mode = 'NO_ZERO_DATE', tmp_table_size = 0"],
    &["SELECT 1", "SELECT FOUND_ROWS()"],
    &["SELECT 1", "SELECT ROW_COUNT() UNION SELECT FOUND_ROWS()"],
];

#[test]
fn commands_count_the_conditions_of_the_clients_last_statement() {
    let test = "commands_count_the_conditions_of_the_clients_last_statement";
    let Some(real) = mysql(test) else { return };
    // A second backend for what the transaction keeps.
    same_on(real, "conditions_counted", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (id INT PRIMARY KEY, v INT)");
        story.sql(a, "INSERT INTO t VALUES (1, 1)");
        let prepared = story.prepare(a, "SELECT ? / 0").id;
        let name = prepared.to_le_bytes();
        let commands: [(Command, &[u8]); 5] = [
            (Command::Ping, b""),
            (Command::SetOption, &[0, 0]),
            (Command::SetOption, &[1, 0]),
            (Command::InitDb, b"conditions_counted"),
            (Command::StmtReset, &name),
        ];
        for (before, statistics) in CONDITIONS.iter().flat_map(|b| [(b, false), (b, true)]) {
            for others in [&["SELECT 1"][..], &["SELECT 1 / 0, 2 / 0, 3 / 0"]] {
                for (command, arguments) in commands {
                    story.all(a, before);
                    story.all(b, others);
                    if statistics {
                        story.unheard(a, Command::Statistics);
                    }
                    story.command(a, command, arguments);
                    story.all(b, others);
                    story.command(a, Command::Ping, b"");
                    story.all(a, &["ROLLBACK", "SET max_error_count = DEFAULT"]);
                }
            }
        }
        story.execute(a, prepared, &[Some(b"1")]);
        story.command(a, Command::Ping, b"");
        story.command(a, Command::StmtReset, &name);
        story.command(a, Command::ResetConnection, b"");
        story.command(a, Command::Ping, b"");
    });
}

#[test]
fn unknown_statements_are_told_in_its_words() {
    let test = "unknown_statements_are_told_in_its_words";
    let Some(real) = mysql(test) else { return };
    same_on(real, test, 1, |story| {
        let a = story.join();
        let id = 77u32.to_le_bytes();
        let rows = 1u32.to_le_bytes();
        story.execute(a, 77, &[]);
        story.command(a, Command::StmtFetch, &[id, rows].concat());
        story.command(a, Command::StmtReset, &id);
        story.command(a, Command::StmtExecute, b"");
        story.command(a, Command::StmtExecute, &[1, 0]);
        story.command(a, Command::StmtReset, b"");
    });
}

/// Statements that begin, run in and end transactions.
const TRANSACTIONS: [&[&str]; 14] = [
    &["BEGIN", "BEGIN", "SELECT 1", "BEGIN", "COMMIT"],
    &[
        "BEGIN",
        "INSERT INTO t VALUES (1)",
        "BEGIN",
        "SELECT * FROM t",
        "BEGIN",
        "COMMIT",
    ],
    &[
        "COMMIT AND CHAIN",
        "SELECT @y",
        "BEGIN",
        "ROLLBACK AND CHAIN",
        "SELECT 1",
        "ROLLBACK",
    ],
    &[
        "SET TRANSACTION READ ONLY",
        "BEGIN",
        "SELECT * FROM t",
        "BEGIN",
        "COMMIT",
    ],
    &[
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SELECT * FROM t",
        "BEGIN",
        "COMMIT",
    ],
    &[
        "SET autocommit = 0",
        "INSERT INTO t VALUES (2)",
        "BEGIN",
        "COMMIT",
        "SELECT * FROM t",
    ],
    &[
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        "BEGIN",
        "SELECT * FROM t",
        "BEGIN",
        "DO 1",
    ],
    &[
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        "INSERT INTO t VALUES (3)",
        "ROLLBACK",
    ],
    &[
        "BEGIN",
        "SELECT * FROM t",
        "LOCK TABLES t READ",
        "UNLOCK TABLES",
    ],
    &[
        "XA START 'sees'",
        "INSERT INTO t VALUES (7)",
        "XA END 'sees'",
        "XA ROLLBACK 'sees'",
    ],
    &[
        "BEGIN",
        "INSERT INTO t VALUES (8)",
        "SELECT * FROM missing",
        "BEGIN",
        "COMMIT",
    ],
    &[
        "BEGIN; SELECT 1; BEGIN; COMMIT",
        "START TRANSACTION READ ONLY; DO 1",
        "BEGIN",
    ],
    &["BEGIN", "CREATE TABLE t (v INT)", "DO 1"],
    &["BEGIN", "CALL fails()", "DO 1"],
];

#[test]
fn transactions_are_reported_once_each() {
    let test = "transactions_are_reported_once_each";
    let Some(real) = mysql(test) else { return };
    same_on(real, "reported_once", 2, |story| {
        let a = story.join();
        story.sql(a, "CREATE TABLE t (v INT)");
        story.sql(
            a,
            "CREATE PROCEDURE fails() BEGIN SET time_zone = '+03:00'; COMMIT; \
             SET SESSION sql_mode = 'ANSI'; SIGNAL SQLSTATE '45000'; END",
        );
        let account = app().schema(&story.schema);
        for caps in [0, cap::DEPRECATE_EOF, cap::SESSION_TRACK] {
            for statements in TRANSACTIONS {
                let account = account.clone().without(caps);
                let account = account.with(cap::MULTI_STATEMENTS);
                // Behind an error the pool asks more, which takes the report where there is time.
                let times = 1 + usize::from(statements.contains(&"CALL fails()"));
                for late in [false, true].into_iter().take(times) {
                    story.late = late;
                    let b = story.join_as(&account);
                    story.all(b, statements);
                    story.all(a, &["BEGIN", "SELECT 1", "BEGIN", "COMMIT"]);
                    story.all(b, &["ROLLBACK", "DO 1"]);
                    story.command(b, Command::Quit, b"");
                }
                story.late = false;
            }
        }
    });
}

/// MySQL 9.7 does not say behind these results that the OK of the CALL follows: a client without a
/// pool is out of step then.
#[test]
fn a_call_ends_in_its_ok_whatever_its_results_say() {
    let Some(real) = mysql("ends_calls") else {
        return;
    };
    // One for each: where nobody may read the code, it pins.
    let way = through(real, 2);
    let (mut a, mut b) = (login(&way, &app()), login(&way, &app()));
    a.must("CREATE DATABASE ends_calls");
    a.must("USE ends_calls");
    for body in [
        "XA RECOVER",
        "SHOW TRIGGERS",
        "SHOW PLUGINS",
        "SHOW PROFILES",
    ] {
        a.must(&format!("CREATE PROCEDURE p() {body}"));
        for _ in 0..2 {
            let told = a.query("CALL p()").unwrap();
            assert_eq!(told.len(), 2, "{body}: {told:?}");
        }
        assert_eq!(b.value("SELECT 'other'"), "other", "{body}");
        assert_eq!(a.value("SELECT 'own'"), "own", "{body}");
        a.must("DROP PROCEDURE p");
    }
    a.must("DROP DATABASE ends_calls");
}
