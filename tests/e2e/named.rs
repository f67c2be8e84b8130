//! Statements prepared by name, as text: their client keeps its backend, and gets a server's
//! answers.

use crate::compare::{same, same_on_both};
use crate::world::{app, direct, login, server, start_pool};
use wire::capabilities as cap;
use wire::command::Command;

#[test]
fn names_are_the_clients_own() {
    same("names", 3, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "PREPARE p FROM 'SELECT 1 + ?'");
        story.sql(b, "PREPARE P FROM 'SELECT 100, ''it''''s'''");
        story.all(a, &["SET @x = 4", "EXECUTE p USING @x", "EXECUTE p"]);
        story.all(b, &["EXECUTE p", "EXECUTE `p`", "EXECUTE q"]);
        story.all(a, &["DEALLOCATE PREPARE p", "EXECUTE p USING @x"]);
        story.all(
            b,
            &[
                "EXECUTE p",
                "DROP PREPARE p",
                "DEALLOCATE PREPARE p",
                "SHOW WARNINGS",
            ],
        );
        story.all(a, &["DEALLOCATE PREPARE never", "EXECUTE never"]);
    });
}

#[test]
fn a_text_means_what_it_meant_when_it_was_prepared() {
    same("meant", 3, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (v INT)",
                "INSERT INTO t VALUES (1)",
                "CREATE DATABASE meant_b",
                "CREATE TABLE meant_b.t (w VARCHAR(9))",
                "SET sql_mode = 'ANSI_QUOTES'",
                r#"PREPARE p FROM 'SELECT "v", DATABASE(), @@sql_mode FROM t'"#,
                "SET sql_mode = DEFAULT",
                "USE meant_b",
            ],
        );
        story.all(b, &["SET sql_mode = ''", "SELECT 1"]);
        story.all(a, &["EXECUTE p", "SELECT DATABASE(), @@sql_mode"]);
        story.sql(b, "SELECT DATABASE(), @@sql_mode");
        story.sql(a, r"SET sql_mode = 'NO_BACKSLASH_ESCAPES'");
        story.sql(a, r"PREPARE p FROM 'SELECT ''a\b'''");
        story.sql(b, "SELECT 1");
        story.all(a, &["SET sql_mode = DEFAULT", "EXECUTE p"]);
        story.sql(a, "DROP DATABASE meant_b");
    });
}

#[test]
fn what_an_execution_does_is_what_its_text_does() {
    same("does", 3, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB",
                "PREPARE i FROM 'INSERT INTO t (v) VALUES (?), (?)'",
                "PREPARE s FROM 'SET @y = 5, sql_mode = ''ANSI'''",
                "PREPARE l FROM 'SELECT GET_LOCK(''does'', 0)'",
                "PREPARE u FROM 'SELECT RELEASE_LOCK(''does'')'",
                "PREPARE b FROM 'BEGIN'",
                "PREPARE m FROM 'CREATE TEMPORARY TABLE own (x INT)'",
                "SET @v = 3",
                "EXECUTE i USING @v, @v",
            ],
        );
        story.sql(b, "SELECT COUNT(*), LAST_INSERT_ID() FROM t");
        story.all(a, &["SELECT LAST_INSERT_ID()", "EXECUTE s"]);
        story.sql(b, "SELECT @y, @@sql_mode");
        story.all(a, &["SELECT @y, @@sql_mode", "EXECUTE l"]);
        story.all(b, &["SELECT GET_LOCK('does', 0)", "SELECT 1"]);
        story.sql(a, "EXECUTE u");
        story.all(
            b,
            &["SELECT GET_LOCK('does', 0)", "DO RELEASE_LOCK('does')"],
        );
        story.all(a, &["EXECUTE b", "EXECUTE i USING @v, @v"]);
        story.sql(b, "SELECT COUNT(*) FROM t");
        story.all(a, &["ROLLBACK", "SELECT COUNT(*) FROM t", "EXECUTE m"]);
        story.sql(b, "SELECT * FROM own");
        story.all(a, &["SELECT * FROM own", "DROP TABLE own"]);
        story.sql(b, "SELECT 1");
        story.all(
            a,
            &[
                "EXECUTE IMMEDIATE 'SET @z = ?' USING 7",
                "EXECUTE IMMEDIATE 'SELEC'",
                "EXECUTE IMMEDIATE 'SELECT @z, ?' USING @v",
            ],
        );
        story.sql(b, "SELECT @z");
    });
}

#[test]
fn a_failed_prepare_takes_the_old_one_away() {
    same("failed_prepare", 3, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (v INT)",
                "PREPARE p FROM 'SELECT 1'",
                "PREPARE p FROM 'SELECT 2'",
                "EXECUTE p",
            ],
        );
        story.sql(b, "PREPARE p FROM 'SELECT 3'");
        story.all(a, &["PREPARE p FROM 'SELEC'", "EXECUTE p"]);
        story.sql(b, "EXECUTE p");
        story.sql(a, "PREPARE p FROM 'SELECT * FROM t'");
        story.sql(b, "DROP TABLE t");
        story.all(a, &["EXECUTE p", "SHOW WARNINGS", "EXECUTE p"]);
        story.sql(b, "CREATE TABLE t (w CHAR(3), x INT)");
        story.sql(a, "EXECUTE p");
    });
}

#[test]
fn a_text_may_come_from_a_variable() {
    same("from_variable", 3, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "SET @s = CONCAT('SELECT ', 1 + 1, ', ''x''')",
                "PREPARE p FROM @s",
                "SET @s = 'SELECT 3'",
            ],
        );
        story.all(b, &["EXECUTE p", "SELECT @s"]);
        story.all(a, &["EXECUTE p", "BEGIN", "SET @s = 'SELECT 4'"]);
        story.all(a, &["PREPARE p FROM @s", "EXECUTE p", "COMMIT"]);
        story.sql(b, "SELECT 1");
        story.all(a, &["EXECUTE p", "PREPARE p FROM @unset", "EXECUTE p"]);
        story.all(a, &["SET @s = NULL", "PREPARE p FROM @s", "EXECUTE p"]);
        story.all(a, &["SET @n = 5", "PREPARE p FROM @n", "EXECUTE p"]);
    });
}

#[test]
fn a_reset_and_a_change_of_user_drop_all_names() {
    same("names_dropped", 3, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(a, &["PREPARE p FROM 'SELECT 1'", "EXECUTE p"]);
        story.command(a, wire::command::Command::ResetConnection, b"");
        story.all(a, &["EXECUTE p", "PREPARE p FROM 'SELECT 2'"]);
        let account = app().schema(&story.schema.clone());
        story.change_user(a, &account);
        story.sql(b, "SELECT 1");
        story.sql(a, "EXECUTE p");
    });
}

/// A client keeps its backend from PREPARE or EXECUTE on, until it resets; one that deallocates, or
/// whose PREPARE could not be read, keeps none.
#[test]
fn a_client_that_prepares_or_executes_by_name_keeps_its_backend() {
    let test = "a_client_that_prepares_or_executes_by_name_keeps_its_backend";
    let Some(real) = server(test) else { return };
    if direct() {
        return;
    }
    let pool = start_pool(real, "names_pin.toml", "groups = 1\nbackends_max = 2");
    let mut client = login(&pool.address, &app());
    let pinned = |causes: &str| {
        pool.ask_for_report();
        pool.wait_for(&format!("pinned now: {{{causes}}}")).unwrap();
    };
    assert_eq!(client.failure("DEALLOCATE PREPARE p").code, 1243);
    assert_eq!(client.failure("PREPARE p FROM 'SELEC'").code, 1064);
    pinned("");
    client.must("PREPARE p FROM 'SELECT 7'");
    pinned("\"text_prepare\": 1");
    assert_eq!(client.value("EXECUTE p"), "7");
    client.must("DEALLOCATE PREPARE p");
    pinned("\"text_execute\": 1, \"text_prepare\": 1");
    client.run(Command::ResetConnection, b"").unwrap();
    pinned("");
    assert_eq!(client.failure("EXECUTE p").code, 1243);
    pinned("\"text_execute\": 1");
}

/// Texts of several statements, and MariaDB's SET STATEMENT, find the names of their clients.
#[test]
fn texts_of_several_find_the_names_of_their_clients() {
    same_on_both("names_of_several", 3, |story| {
        let multi = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        let (a, b) = (story.join_as(&multi), story.join());
        story.all(
            b,
            &["PREPARE p FROM 'SELECT 100'", "PREPARE q FROM 'SELECT 200'"],
        );
        for text in [
            "EXECUTE p; SELECT 1",
            "PREPARE p FROM 'SELECT 1 + ?'; SET @x = 4; EXECUTE p USING @x",
            "DO 1; EXECUTE p USING @x; execute `P` USING @x",
            "DEALLOCATE PREPARE p; EXECUTE p",
            "EXECUTE never; SELECT 9",
            "SET STATEMENT max_statement_time = 5 FOR EXECUTE q",
        ] {
            story.sql(a, text);
            story.all(b, &["EXECUTE p", "EXECUTE q"]);
            story.all(a, &["EXECUTE p USING @x", "EXECUTE q"]);
        }
        story.command(a, Command::ResetConnection, b"");
        story.all(a, &["EXECUTE p", "SELECT 2"]);
    });
}

/// A procedure that prepares, or takes away, a name which its caller has on another backend.
#[test]
fn a_procedure_gives_its_callers_name_to_something_else() {
    same_on_both("named_in_code", 4, |story| {
        let [a, b, other] = [0; 3].map(|_| story.join());
        story.all(
            other,
            &[
                "CREATE TABLE t (v INT)",
                "CREATE PROCEDURE gives() PREPARE p FROM 'SELECT 2'",
                "CREATE PROCEDURE takes() DEALLOCATE PREPARE p",
                "CREATE PROCEDURE runs() EXECUTE p",
                "CREATE PROCEDURE fails() PREPARE p FROM 'SELEC'",
                "CREATE PROCEDURE some() BEGIN PREPARE p FROM 'SELECT 4'; EXECUTE p; \
                 DEALLOCATE PREPARE p; END",
                "CREATE PROCEDURE deep() CALL gives()",
                "CREATE PROCEDURE reads(s TEXT) BEGIN SET @s = s; PREPARE p FROM @s; END",
            ],
        );
        for code in [
            "gives()",
            "takes()",
            "runs()",
            "fails()",
            "some()",
            "deep()",
            "reads('SELECT 5')",
        ] {
            let (a, schema) = (a, story.schema.clone());
            story.sql(a, "PREPARE p FROM 'SELECT 1'");
            story.sql(a, "EXECUTE p");
            // Whoever comes next finds another backend.
            story.all(b, &["BEGIN", "INSERT INTO t VALUES (1)"]);
            story.sql(other, "PREPARE p FROM 'SELECT 100'");
            story.sql(a, &format!("CALL {schema}.{code}"));
            story.all(a, &["EXECUTE p", "SELECT 1", "EXECUTE p"]);
            story.sql(b, "COMMIT");
            story.sql(other, "EXECUTE p");
            story.all(a, &["EXECUTE p", "DEALLOCATE PREPARE p", "EXECUTE p"]);
            story.command(a, Command::ResetConnection, b"");
        }
    });
}

/// On MariaDB the conditions of the statement before a DEALLOCATE stay.
#[test]
fn conditions_outlive_a_deallocation_where_the_server_lets_them() {
    let test = "deallocated";
    same_on_both(test, 2, |story| {
        let (a, b) = (story.join(), story.join());
        for before in ["EXECUTE p", "SELECT no_such", "SELECT CAST('x' AS SIGNED)"] {
            for between in [&[][..], &["SELECT 'b'"]] {
                for asks in ["SELECT @@warning_count, @@error_count", "SHOW WARNINGS"] {
                    story.sql(a, "PREPARE p FROM 'SELECT ? + 0'");
                    story.all(a, &[before, "DEALLOCATE PREPARE p"]);
                    story.all(b, between);
                    story.all(a, &[asks, "SELECT ROW_COUNT()"]);
                }
            }
        }
    });
}
