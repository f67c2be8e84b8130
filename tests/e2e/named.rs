//! Statements prepared by name, as text: many clients, few backends, the same answers.

use crate::compare::{same, same_on, same_on_both};
use crate::world::{app, direct, fresh_schema, login, mysql, own_server, server, start_pool};
use testkit::client::Client;
use testkit::reply::Outcome;
use wire::capabilities as cap;
use wire::command::Command;

#[test]
fn names_are_the_clients_own() {
    same("names", 1, |story| {
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
    same("meant", 1, |story| {
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
    same("does", 2, |story| {
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
    same("failed_prepare", 1, |story| {
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
    same("from_variable", 2, |story| {
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
    same("names_dropped", 1, |story| {
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

#[test]
fn names_pin_nobody_and_stay_within_the_budget() {
    let test = "names_pin_nobody_and_stay_within_the_budget";
    let Some(real) = own_server(test) else { return };
    if direct() {
        return;
    }
    real.create_user("app", "app");
    let extra = "groups = 1\nbackends_max = 2\nprepared_max = 10";
    let pool = start_pool(&real, "names_budget.toml", extra);
    let mut clients: Vec<_> = (0..4).map(|_| login(&pool.address, &app())).collect();
    let mut admin = real.admin();
    let mut most = 0;
    for round in 0..3 {
        for (who, client) in clients.iter_mut().enumerate() {
            for name in 0..6 {
                if round == 0 {
                    client.must(&format!("PREPARE p{name} FROM 'SELECT {who}, {name}'"));
                    client.prepare(&format!("SELECT {who} + {name}"));
                }
                let row = client.rows(&format!("EXECUTE p{name}")).rows;
                let expected: [Option<Vec<u8>>; 2] =
                    [who, name].map(|n| Some(n.to_string().into_bytes()));
                assert_eq!(row, [expected.to_vec()]);
                let count = admin.rows("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
                let text = count.rows[0][1].clone().unwrap();
                let count: usize = String::from_utf8(text).unwrap().parse().unwrap();
                most = most.max(count);
            }
        }
    }
    assert!((2..=10).contains(&most), "{most} prepared at once");
    pool.ask_for_report();
    pool.wait_for("4 clients, pinned now: {}").unwrap();
}

/// A procedure that nobody has read may use all names of its caller, and those that its backend
/// has are the server's to know from then on. A client with more of them prepares the others again.
#[test]
fn names_that_a_backend_has_no_room_for_are_prepared_again() {
    let test = "names_that_a_backend_has_no_room_for_are_prepared_again";
    if direct() {
        return;
    }
    let Some(real) = server(test) else { return };
    fresh_schema(real, "names_share");
    let mut admin = real.admin();
    admin.must("CREATE PROCEDURE names_share.unread() EXECUTE p0");
    let extra = "groups = 1\nbackends_max = 1\nprepared_max = 4";
    let pool = start_pool(real, "names_share.toml", extra);
    let login = || login(&pool.address, &app().schema("names_share"));
    let prepare = |client: &mut Client, name: usize| {
        client.must(&format!("PREPARE p{name} FROM 'SELECT {name}'"));
    };
    let execute = |client: &mut Client, name: usize| {
        let value = client.value(&format!("EXECUTE p{name}"));
        assert_eq!(value, name.to_string());
    };

    let mut client = login();
    (0..6).for_each(|name| prepare(&mut client, name));
    for _ in 0..2 {
        assert_eq!(client.value("CALL unread()"), "0");
    }
    (0..4).for_each(|name| execute(&mut client, name));
    assert_eq!(client.failure("EXECUTE p5").code, 1243);
    // What it prepares from now on goes to the server, whose limit counts.
    prepare(&mut client, 5);
    execute(&mut client, 5);
    drop(client);

    // Beside three that are the server's to know, one has room. The others do not take its place,
    // one after the other.
    let mut client = login();
    (0..3).for_each(|name| prepare(&mut client, name));
    assert_eq!(client.value("CALL unread()"), "0");
    (3..6).for_each(|name| prepare(&mut client, name));
    for _ in 0..2 {
        assert_eq!(client.value("CALL unread()"), "0");
        (0..3).for_each(|name| execute(&mut client, name));
    }
    (3..6).for_each(|name| prepare(&mut client, name));
    (0..6).for_each(|name| execute(&mut client, name));
}

#[test]
fn more_names_than_a_client_may_carry_pin_it() {
    let test = "more_names_than_a_client_may_carry_pin_it";
    let Some(real) = server(test) else { return };
    if direct() {
        return;
    }
    fresh_schema(real, "many_names");
    let pool = start_pool(real, "many_names.toml", "groups = 1\nbackends_max = 2");
    let mut client = login(&pool.address, &app());
    for name in 0..70 {
        client.must(&format!("PREPARE p{name} FROM 'SELECT {name}'"));
    }
    pool.ask_for_report();
    pool.wait_for("pinned now: {\"text_prepare\": 1}").unwrap();
    for name in 64..70 {
        client.must(&format!("DEALLOCATE PREPARE p{name}"));
    }
    pool.ask_for_report();
    pool.wait_for("pinned now: {}").unwrap();
    assert_eq!(client.value("EXECUTE p63"), "63");
    assert_eq!(client.failure("EXECUTE p64").code, 1243);
}

#[test]
fn what_nobody_has_read_meets_nobody_elses_names() {
    same("unread_names", 4, |story| {
        let schema = story.schema.clone();
        let (a, b) = (story.join(), story.join());
        let multi = app().schema(&schema).with(cap::MULTI_STATEMENTS);
        let (c, d) = (story.join_as(&multi), story.join_as(&multi));
        story.all(
            a,
            &["PREPARE p FROM 'SELECT 1'", "PREPARE q FROM 'SELECT ?'"],
        );
        // A literal in two parts, and a parameter that is computed.
        story.all(
            b,
            &["PREPARE p FROM 'SELECT 5'", "PREPARE p FROM 'SELECT ' '6'"],
        );
        story.all(b, &["EXECUTE p", "EXECUTE q USING 1 + 1"]);
        story.all(a, &["EXECUTE p", "EXECUTE q USING 1 + 1", "EXECUTE p"]);
        story.all(b, &["DEALLOCATE PREPARE p", "EXECUTE p"]);
        story.sql(c, "PREPARE p FROM 'SELECT 7'");
        story.sql(d, "EXECUTE p; SELECT 1");
        story.sql(d, "PREPARE p FROM 'SELECT 8'; EXECUTE p");
        story.sql(c, "EXECUTE p");
    });
}

/// Texts of several statements find their clients' names on any backend, in the session in which
/// they were prepared; what such a text does to a name counts for the next.
#[test]
fn texts_of_several_find_the_names_of_their_clients() {
    for backends in [1, 2, 4] {
        same_on_both("names_of_several", backends, |story| {
            let multi = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
            let (a, b) = (story.join_as(&multi), story.join());
            story.all(
                a,
                &[
                    "CREATE TABLE t (v INT)",
                    "INSERT INTO t VALUES (7)",
                    "PREPARE p FROM 'SELECT 1 + ?'",
                    "SET sql_mode = 'ANSI_QUOTES'",
                    r#"PREPARE q FROM 'SELECT "v" FROM t'"#,
                    "SET sql_mode = DEFAULT, @x = 4",
                    "PREPARE r FROM 'SELECT 3'",
                ],
            );
            let others = ["PREPARE p FROM 'SELECT 100'", "PREPARE q FROM 'SELECT 200'"];
            story.all(b, &others);
            story.sql(
                a,
                "DO 1; EXECUTE p USING @x; execute `Q`; SELECT @@sql_mode, \"v\"",
            );
            if backends > 1 {
                // A client with such a text keeps its backend.
                story.all(b, &["EXECUTE p", "EXECUTE q", "EXECUTE r"]);
            }
            story.all(
                a,
                &[
                    "EXECUTE p USING @x",
                    "DEALLOCATE PREPARE p; EXECUTE q",
                    "EXECUTE r",
                    "EXECUTE p USING @x",
                    "DEALLOCATE PREPARE p",
                    "PREPARE q FROM 'SELECT 5'; SELECT 6; EXECUTE q",
                    "EXECUTE q",
                    "PREPARE q FROM 'SELECT 8'",
                    "EXECUTE q; EXECUTE never; SELECT 9",
                    "DROP PREPARE q; EXECUTE q",
                ],
            );
            story.command(a, wire::command::Command::ResetConnection, b"");
            story.all(b, &["EXECUTE p", "EXECUTE q"]);
            story.all(a, &["EXECUTE r; SELECT 1", "SELECT 2"]);
        });
    }
}

/// An execution behind SET STATEMENT, which has a statement behind it.
#[test]
fn an_execution_behind_set_statement_finds_its_name() {
    same("names_behind_set", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "PREPARE p FROM 'SELECT 1, @@max_statement_time'");
        story.all(b, &["PREPARE p FROM 'SELECT 100'", "EXECUTE p"]);
        story.all(
            a,
            &[
                "SET STATEMENT max_statement_time = 5 FOR EXECUTE p",
                "EXECUTE p",
                "SET STATEMENT max_statement_time = 5 FOR EXECUTE never",
            ],
        );
    });
}

/// A client that is pinned for its names gives one of them another text, on a backend that never
/// had the one before.
#[test]
fn a_pinned_client_executes_what_it_has_prepared_last() {
    for backends in [1, 2] {
        same_on_both("names_given_anew", backends, |story| {
            let multi = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
            let (a, b) = (story.join_as(&multi), story.join());
            for pinning in [
                "DO 1; EXECUTE q",
                "SELECT 1; PREPARE p FROM 'SELECT 2'",
                "PREPARE p FROM 'SELECT 2'; DO 1",
            ] {
                story.all(a, &["PREPARE p FROM 'SELECT ?'", "PREPARE q FROM 'DO 5'"]);
                story.all(b, &["PREPARE p FROM 'SELECT 100'", "EXECUTE p"]);
                story.sql(a, pinning);
                if pinning.contains("EXECUTE") {
                    story.sql(a, "PREPARE p FROM 'SELECT 2'");
                }
                story.all(a, &["EXECUTE p", "PREPARE p FROM 'SELEC'", "EXECUTE p"]);
                story.command(a, wire::command::Command::ResetConnection, b"");
                story.sql(b, "EXECUTE p");
            }
        });
    }
    same("names_given_behind_set", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(a, &["PREPARE p FROM 'SELECT ?'", "PREPARE q FROM 'DO 5'"]);
        story.all(b, &["PREPARE p FROM 'SELECT 100'", "EXECUTE p"]);
        story.all(
            a,
            &[
                "SET STATEMENT max_statement_time = 5 FOR EXECUTE q",
                "PREPARE p FROM 'SELECT 2'",
                "EXECUTE p",
            ],
        );
    });
}

/// More names in a text than are prepared in front of it: the first ones are.
#[test]
fn a_text_with_many_names_finds_the_first_of_them() {
    let test = "a_text_with_many_names_finds_the_first_of_them";
    let Some(real) = server(test) else { return };
    if direct() {
        return;
    }
    fresh_schema(real, "names_in_text");
    let pool = start_pool(real, "names_in_text.toml", "groups = 1\nbackends_max = 1");
    let account = app().with(cap::MULTI_STATEMENTS);
    let (mut a, mut b) = (login(&pool.address, &account), login(&pool.address, &app()));
    let names: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    for name in &names {
        a.must(&format!("PREPARE {name} FROM 'SELECT 1'"));
        b.must(&format!("PREPARE {name} FROM 'SELECT 2'"));
    }
    let executed: Vec<String> = names.iter().map(|name| format!("EXECUTE {name}")).collect();
    let outcomes = a.query(&executed.join("; ")).unwrap();
    assert_eq!(outcomes.len(), 17, "{outcomes:?}");
    let Some(Outcome::Failed(failure)) = outcomes.last() else {
        panic!("{outcomes:?}");
    };
    assert_eq!(failure.code, 1243);
}

/// Procedures that prepare and deallocate a name of their own, on a pool that trusts them.
#[test]
fn procedures_may_use_names_that_clients_use() {
    let test = "procedures_may_use_names_that_clients_use";
    let Some(real) = server(test) else { return };
    if direct() {
        return;
    }
    fresh_schema(real, "names_inside");
    let mut admin = real.admin();
    admin.must("USE names_inside");
    admin.must(
        "CREATE PROCEDURE runs() BEGIN PREPARE s FROM 'DO 1'; EXECUTE s; \
         DEALLOCATE PREPARE s; END",
    );
    let extra = "groups = 1\nbackends_max = 1\nwait_ms_max = 2000\nstored_code = \"trust\"";
    let pool = start_pool(real, "names_inside.toml", extra);
    let account = app().schema("names_inside");
    let mut calls = login(&pool.address, &account);
    let mut other = login(&pool.address, &account);
    for _ in 0..2 {
        other.must("PREPARE s FROM 'SELECT 3'");
        calls.must("CALL runs()");
        assert_eq!(other.value("EXECUTE s"), "3");
        calls.must("PREPARE s FROM 'SELECT 4'");
        calls.must("CALL runs()");
        assert_eq!(calls.value("EXECUTE s"), "4");
    }
}

/// Questions of an executed text about the statement before are answered on any backend: with
/// values in it, prepared in another session, and where it sets a variable.
#[test]
fn a_text_with_values_asks_about_the_statement_before() {
    let test = "a_text_with_values_asks_about_the_statement_before";
    for (real, mysql) in [(server(test), false), (mysql(test), true)] {
        let Some(real) = real else { continue };
        same_on(real, "names_ask", 1, |story| {
            let (a, b) = (story.join(), story.join());
            story.all(
                a,
                &[
                    "CREATE TABLE t (v INT)",
                    "SET @x = 40, @text = 'a''b'",
                    "PREPARE p FROM 'SELECT ROW_COUNT(), ? + 1, ?'",
                    "PREPARE found FROM 'SELECT FOUND_ROWS(), ? FROM DUAL'",
                    "PREPARE plain FROM 'SELECT ROW_COUNT() + 1 AS c'",
                    "PREPARE sets FROM 'SELECT ROW_COUNT(), ? INTO @n, @m'",
                    "PREPARE stays FROM 'SELECT ROW_COUNT() INTO @k'",
                ],
            );
            if mysql {
                story.sql(
                    a,
                    "PREPARE counts FROM 'SELECT @@warning_count, @@error_count, ?'",
                );
            } else {
                story.all(
                    a,
                    &[
                        "PREPARE shows FROM 'SHOW WARNINGS'",
                        "PREPARE gets FROM 'GET DIAGNOSTICS @r = ROW_COUNT, @w = NUMBER'",
                    ],
                );
            }
            for charset in ["utf8mb4", "latin1"] {
                story.sql(a, &format!("SET NAMES {charset}"));
                for sql in [
                    "EXECUTE p USING @x, @text",
                    "EXECUTE plain",
                    "EXECUTE sets USING @x",
                    "EXECUTE stays",
                    "EXECUTE counts USING @text",
                    "EXECUTE shows",
                    "EXECUTE gets",
                    "EXECUTE found USING @text",
                ] {
                    for before in [
                        "INSERT INTO t VALUES (1), (2)",
                        "DO 1",
                        "SELECT v FROM t",
                        "SELECT 1/0",
                    ] {
                        story.sql(a, before);
                        story.all(
                            b,
                            &["SELECT 7 UNION SELECT 8", "SELECT CAST('b' AS SIGNED)"],
                        );
                        story.sql(a, sql);
                        story.all(b, &["PREPARE p FROM 'SELECT 5'", "EXECUTE p", "SELECT 1"]);
                        story.sql(a, "SELECT @n, @m, @k, @r, @w");
                    }
                }
            }
        });
    }
}

/// The pool answers DEALLOCATE itself. On MariaDB the conditions of the statement before stay.
#[test]
fn conditions_outlive_a_deallocation_where_the_server_lets_them() {
    let test = "deallocated";
    same_on_both(test, 1, |story| {
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

/// A procedure that prepares, or takes away, a name which its caller has on another backend.
#[test]
fn a_procedure_gives_its_callers_name_to_something_else() {
    same_on_both("named_in_code", 3, |story| {
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

/// Behind an EXECUTE that nobody can read to its end, names are the server's to know: what the
/// client takes away and prepares again is not taken away once more.
#[test]
fn names_behind_an_unread_execution_are_the_servers() {
    let test = "named_unread";
    same_on_both(test, 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(b, "PREPARE q FROM 'SELECT 3'");
        story.all(
            a,
            &[
                "CREATE FUNCTION f() RETURNS INT NO SQL RETURN 7",
                "PREPARE p FROM 'SELECT ?'",
                "PREPARE r FROM 'SELECT 2'",
                "EXECUTE p USING (SELECT 1)",
                "EXECUTE p USING f()",
                "DEALLOCATE PREPARE p",
                "PREPARE p FROM 'SELECT 1 + ?'",
                "EXECUTE p USING 1",
                "EXECUTE p USING (SELECT 1)",
                "SET @x = 1",
                "EXECUTE p USING @x",
                "EXECUTE r",
                "PREPARE r FROM 'SELECT 4'",
                "EXECUTE p USING f()",
                "EXECUTE r",
                "DEALLOCATE PREPARE r",
                "EXECUTE r",
                "EXECUTE p USING (SELECT 1)",
                "EXECUTE p USING @x",
            ],
        );
        story.sql(b, "EXECUTE q");
        let several = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        let c = story.join_as(&several);
        story.all(
            c,
            &[
                "CREATE PROCEDURE u() BEGIN PREPARE z FROM 'SELECT 1'; EXECUTE z; END",
                "SELECT 8; PREPARE q FROM 'SELECT 5'",
                "CALL u()",
                "EXECUTE q",
            ],
        );
    });
}

/// A statement to which a text gives a name is not run where another client has something under
/// that name.
#[test]
fn a_name_that_a_text_gives_away_is_not_another_clients() {
    same_on_both("named_given", 2, |story| {
        let b = story.join();
        let several = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        let c = story.join_as(&several);
        for text in [
            "EXECUTE q; PREPARE q FROM 'SELECT 5'",
            "SELECT nosuch; PREPARE q FROM 'SELECT 5'",
            "EXECUTE q; PREPARE q FROM 'SELECT 6'",
        ] {
            story.sql(b, "PREPARE q FROM 'SELECT 3'");
            story.sql(b, "EXECUTE q");
            story.sql(c, "PREPARE z FROM 'SELECT 1'");
            story.sql(c, text);
            story.sql(c, "EXECUTE q");
            story.sql(b, "EXECUTE q");
        }
    });
}

/// MariaDB prepares no INSERT in a read-only transaction: that is no error of a text that does not
/// name it. What the procedure gives the name to is what counts behind it.
#[test]
fn a_name_that_cannot_be_prepared_now_stops_no_text_without_it() {
    same_on_both("named_read_only", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (id INT)",
                "CREATE PROCEDURE u() BEGIN PREPARE p FROM 'SELECT 2'; EXECUTE p; END",
                "PREPARE p FROM 'INSERT INTO t VALUES (1)'",
            ],
        );
        story.all(b, &["BEGIN", "SELECT * FROM t"]);
        story.all(
            a,
            &[
                "START TRANSACTION READ ONLY",
                "SELECT * FROM t",
                "PREPARE q FROM @nothing; COMMIT",
                "CALL u()",
                "EXECUTE p",
                "COMMIT",
                "EXECUTE p",
                "SELECT * FROM t",
            ],
        );
        story.sql(b, "COMMIT");
    });
}

/// A name whose text cannot be prepared any more stops no text that does not name it.
#[test]
fn a_name_that_cannot_be_prepared_any_more_stops_no_other_text() {
    same_on_both("named_stale", 3, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE gone (id INT)",
                "CREATE TABLE kept (id INT)",
                "CREATE PROCEDURE u() BEGIN PREPARE z FROM 'SELECT 1'; EXECUTE z; END",
                "PREPARE p FROM 'SELECT * FROM gone'",
            ],
        );
        story.all(
            b,
            &["BEGIN", "SELECT * FROM kept", "COMMIT", "DROP TABLE gone"],
        );
        story.all(
            a,
            &[
                "LOCK TABLES kept WRITE",
                "SELEC",
                "UNLOCK TABLES",
                "CALL u()",
            ],
        );
    });
}
