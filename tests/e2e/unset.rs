//! User variables that a client has never set, on a backend that has had them of another: columns'
//! types and lengths are compared too.

use crate::compare::{Story, same_on, same_on_both};
use crate::world::{app, both_servers, login, mysql_with_gtids, server, start_pool};
use testkit::client::Client;
use testkit::real::Real;
use testkit::reply::Outcome;
use wire::command::Command;

/// Tells a story on both servers, each on one backend.
fn on_both(test: &str, story: impl Fn(&mut Story)) {
    same_on_both(test, 1, |told| {
        told.columns = true;
        story(told);
    });
}

const SETS: &str = "SET @i = 5, @u = CAST(7 AS UNSIGNED), @d = 1.50, @f = 1e2, @t = 'text', \
                    @b = x'00ff', @z = NULL";

#[test]
fn a_variable_that_another_client_has_set_was_never_set() {
    on_both("names_unset_variables", |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, SETS);
        for name in ["i", "u", "d", "f", "t", "b", "z"] {
            story.sql(b, &format!("SELECT @{name}"));
            story.sql(b, &format!("SELECT IFNULL(@{name}, x'ff')"));
            story.sql(
                b,
                &format!("SELECT IFNULL(@{name}, 1.5), IFNULL(@{name}, 7)"),
            );
            story.sql(a, &format!("SELECT @{name}, IFNULL(@{name}, x'41')"));
        }
        story.sql(a, "SELECT @i, @u, @d, @f, @t, @b, @z");
    });
}

#[test]
fn a_sum_over_rows_begins_as_on_a_connection_of_its_own() {
    on_both("counts_rows_in_unset_variables", |story| {
        let (a, b, c) = (story.join(), story.join(), story.join());
        story.sql(a, "CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB");
        story.sql(a, "INSERT INTO t VALUES (1), (2), (3)");
        let counts = "SELECT id, @n := IFNULL(@n, 0) + 1 FROM t ORDER BY id";
        let ranks = "SELECT id, @r := @r + 1 FROM t, (SELECT @r := 0) AS x ORDER BY id";
        for who in [a, b, c, a, b] {
            story.sql(who, counts);
            story.sql(who, ranks);
            story.sql(who, "SELECT @n, @r");
        }
    });
}

#[test]
fn a_variable_that_is_set_to_null_is_set() {
    on_both("sets_variables_to_null", |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB");
        story.sql(a, "INSERT INTO t VALUES (1), (2), (3)");
        story.sql(a, "SET @n = NULL, @i = 5");
        story.sql(b, "SET @n = 'x'");
        story.sql(b, "SET @i = NULL");
        story.sql(a, "SELECT id, @n := IFNULL(@n, 0) + 1 FROM t ORDER BY id");
        story.sql(b, "SELECT @n, @i");
        story.sql(a, "SET @i = NULL");
        story.all(
            a,
            &["SELECT @n, @i", "SELECT id INTO @v FROM t WHERE id = 9"],
        );
        story.all(b, &["SELECT @v", "SELECT id INTO @v FROM t WHERE id = 9"]);
        story.all(a, &["SELECT @v", "SELECT @w := id FROM t WHERE id = 9"]);
        story.all(
            b,
            &["SELECT @v, @w", "SET @w = (SELECT 5 FROM t WHERE id = 9)"],
        );
        story.all(a, &["SELECT @v, @w", "SELECT @w := NULL", "SELECT @w"]);
    });
}

/// On MySQL a NULL has the type of what was there before it.
#[test]
fn a_null_has_the_type_of_the_value_before_it() {
    on_both("types_of_nulls", |story| {
        let (a, b) = (story.join(), story.join());
        let values = [
            "5",
            "CAST(7 AS UNSIGNED)",
            "1.50",
            "1e2",
            "'text'",
            "_latin1'x'",
            "x'00ff'",
            "DATE'2020-01-02'",
            "TIME'11:22:33'",
            "NULL",
        ];
        let nulls = ["SET @v = NULL", "SELECT NULL INTO @v", "DO @v := NULL"];
        for (value, null) in values.iter().flat_map(|v| nulls.map(|null| (v, null))) {
            story.all(a, &[&format!("SET @v = {value}"), null]);
            story.sql(b, "SET @v = 'other'");
            story.all(a, &["SELECT @v", "SELECT IFNULL(@v, 5), IFNULL(@v, 'a')"]);
            story.all(a, &["SET @v = NULL", "SELECT @v, COLLATION(@v)"]);
            story.command(a, Command::ResetConnection, b"");
        }
    });
}

#[test]
fn what_else_a_session_has_outlives_a_backend_that_begins_anew() {
    on_both("keeps_sessions_at_renewals", |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(
            a,
            "CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
        );
        story.sql(a, "INSERT INTO t VALUES (1, 10), (2, 20)");
        let all = "SELECT @mine, @@sql_mode, @@time_zone, @@character_set_results, DATABASE(), \
                   @@div_precision_increment, LAST_INSERT_ID(), @@autocommit, @@wait_timeout";
        story.sql(
            b,
            "SET @mine = 'b', time_zone = '+05:00', sql_mode = 'ANSI_QUOTES'",
        );
        story.sql(b, "SET div_precision_increment = 9, wait_timeout = 777");
        story.sql(b, "SELECT LAST_INSERT_ID(42)");
        let by_id = story.prepare(b, "SELECT v + ? FROM t WHERE id = ?").id;
        story.execute(b, by_id, &[Some(b"1"), Some(b"2")]);
        story.sql(b, "PREPARE named FROM 'SELECT v FROM t WHERE id = ?'");
        story.all(b, &["SET @id = 2", "EXECUTE named USING @id"]);
        for round in 0..3 {
            story.sql(a, &format!("SET @other{round} = 'a', time_zone = '+01:00'"));
            story.sql(b, &format!("SELECT @other{round}"));
            story.sql(b, all);
            story.execute(b, by_id, &[Some(b"5"), Some(b"1")]);
            story.sql(b, "EXECUTE named USING @id");
            story.sql(b, &format!("SELECT @other{round}, \"id\" FROM t"));
            story.sql(a, all);
        }
    });
}

#[test]
fn a_prepared_text_finds_no_variable_of_another() {
    on_both("prepares_with_unset_variables", |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, SETS);
        let id = story.prepare(b, "SELECT @i, IFNULL(@t, 5)").id;
        story.sql(a, "SELECT @i, @t");
        story.execute(b, id, &[]);
        story.sql(a, "SELECT @i, @t");
        story.sql(b, "PREPARE named FROM 'SELECT @u, IFNULL(@d, ''x'')'");
        story.sql(a, "SELECT @u, @d");
        story.all(b, &["EXECUTE named", "EXECUTE IMMEDIATE 'SELECT @f'"]);
        story.sql(a, "SELECT @i, @t");
    });
}

#[test]
fn a_change_that_reads_a_variable_leaves_it_as_on_a_connection_of_its_own() {
    on_both("changes_by_unset_variables", |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(
            a,
            "CREATE TABLE t (id INT PRIMARY KEY, v TEXT) ENGINE=InnoDB",
        );
        story.sql(a, SETS);
        story.sql(b, "INSERT INTO t VALUES (1, @t), (2, IFNULL(@i, 'none'))");
        story.sql(a, "SELECT @i, @t");
        story.sql(b, "SELECT @t, @i");
        story.sql(b, "UPDATE t SET v = @d WHERE id = 1");
        story.sql(a, "SELECT @d");
        story.all(b, &["SELECT @d, @t", "SELECT id, v FROM t"]);
    });
}

#[test]
fn a_question_about_the_statement_before_is_answered_beside_an_unset_variable() {
    on_both("asks_beside_unset_variables", |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB");
        story.sql(a, "INSERT INTO t VALUES (1), (2), (3)");
        story.sql(a, SETS);
        story.sql(b, "(SELECT id FROM t LIMIT 2) UNION SELECT 7 LIMIT 1");
        story.sql(b, "SELECT FOUND_ROWS(), @i");
        story.sql(a, "SELECT 1");
        story.sql(b, "SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1");
        story.sql(b, "SELECT @u, FOUND_ROWS()");
        story.all(
            b,
            &[
                "SELECT id FROM t WHERE id = 'x'",
                "SELECT @d",
                "SHOW WARNINGS",
            ],
        );
    });
}

/// What need not be undone is not: a value that is only set, a variable that its client has, and
/// statements that name none.
#[test]
fn only_a_variable_that_is_not_to_be_there_lets_a_backend_begin_anew() {
    let Some(real) = server("counts_renewals") else {
        return;
    };
    let pool = start_pool(real, "renewals.toml", "backends_max = 1\ngroups = 1");
    let account = app();
    let (mut a, mut b) = (
        login(&pool.address, &account),
        login(&pool.address, &account),
    );
    let mut statements = 0;
    let mut renewed = |client: &mut Client, texts: &[&str]| {
        for sql in texts {
            client.must(sql);
            statements += 1;
        }
        let said = pool.wait_for_census(&format!("statements: {statements},"));
        let said = said.unwrap();
        let count = said.split("renewed: ").nth(1).unwrap();
        let count: String = count.chars().take_while(char::is_ascii_digit).collect();
        count.parse::<u64>().unwrap()
    };
    let ranks = "SELECT @r := @r + 1 FROM (SELECT @r := 0) AS x";
    assert_eq!(renewed(&mut a, &["SET @a = 1, @n = NULL", ranks]), 0);
    let free = [
        "SELECT 1",
        "SET @a = 'x', @b := -5",
        "SELECT @a, @b",
        "DO 1",
    ];
    assert_eq!(renewed(&mut b, &free), 0);
    assert_eq!(renewed(&mut a, &["SELECT @a, @n", ranks]), 0);
    assert_eq!(renewed(&mut b, &[ranks]), 1);
    for _ in 0..3 {
        assert_eq!(renewed(&mut a, &[ranks]), 1);
        assert_eq!(renewed(&mut b, &[ranks, "SELECT @r, @a"]), 1);
    }
    assert_eq!(renewed(&mut b, &["SELECT @n"]), 2);
    // What may fail has to find none either, once for each client.
    assert_eq!(renewed(&mut a, &["SET @a = 'x', @n = 2"]), 2);
    let may_fail = "SET @a = 1 + 1, @n = @@sql_mode";
    assert_eq!(renewed(&mut b, &[may_fail, may_fail]), 3);
    assert_eq!(renewed(&mut a, &["SET @c = 5"]), 3);
    assert_eq!(renewed(&mut b, &["SET @c = (SELECT 1)"]), 4);
    assert_eq!(renewed(&mut a, &["SELECT @a, @n, @c"]), 4);
    assert_eq!(renewed(&mut b, &["SET @c = (SELECT 2)"]), 4);
}

/// Servers may take a name with an accent for another one (`@ä` is `@a` on some), so a backend that
/// has had one may have to start over. What the client itself has set is no reason for that: it
/// would be set again, and again be one.
#[test]
fn a_client_with_a_name_beyond_ascii_reads_one_that_it_has_never_set() {
    on_both("reads_beside_names_beyond_ascii", |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "SET @\u{e4} = 6");
        // Not known to succeed again, so that it is waited for.
        story.sql(a, "SET optimizer_prune_level = 0");
        story.all(a, &["SELECT @c", "SELECT @\u{e4}, @@optimizer_prune_level"]);
        story.sql(b, "SET @\u{f6} = 'b', @`x ` = 5");
        story.all(
            a,
            &[
                "SELECT @c, @`y `",
                "SELECT @o, @\u{f6}, @\u{e4}",
                "SELECT @a",
            ],
        );
        story.all(b, &["SELECT @x, @`x `", "SELECT @\u{e4}, @a, @o"]);
        story.all(a, &["SELECT @\u{e4}, @@optimizer_prune_level, @c"]);
    });
}

/// The servers' lists of user variables name those of the client, and no others.
#[test]
fn lists_of_user_variables_name_nobody_elses() {
    const LISTS: [&str; 3] = [
        "SELECT VARIABLE_NAME FROM information_schema.USER_VARIABLES ORDER BY 1",
        "SELECT variable_name FROM `information_schema`.`user_variables` ORDER BY 1",
        "SELECT VARIABLE_NAME FROM performance_schema.user_variables_by_thread WHERE THREAD_ID = \
         PS_CURRENT_THREAD_ID() ORDER BY 1",
    ];
    for real in both_servers("lists_variables") {
        let mut admin = real.admin();
        // MariaDB lets nobody grant rights on a schema that it serves without them.
        let _ = admin.query("GRANT SELECT ON performance_schema.* TO app");
        same_on(real, "lists_variables", 1, |story| {
            let (a, b) = (story.join(), story.join());
            story.all(a, &["SET @mine = 1, @more = 'x'", "SELECT no_such_column"]);
            story.all(b, &["SET @of_b = 5", "SELECT CAST('x' AS SIGNED)"]);
            for list in LISTS {
                story.sql(a, list);
                story.sql(b, list);
            }
            if !story.mysql() {
                let id = story.prepare(a, LISTS[0]).id;
                story.sql(b, "SELECT @of_b");
                story.execute(a, id, &[]);
            }
            story.sql(a, "SELECT @mine, @more");
            story.command(a, wire::command::Command::ResetConnection, b"");
            story.sql(a, LISTS[0]);
        });
    }
}

/// A server makes a user variable when it prepares a text that would set it, executed or not.
#[test]
fn what_another_client_has_only_prepared_is_not_there() {
    on_both("prepares_what_sets", |story| {
        let (a, b) = (story.join(), story.join());
        let mut texts = vec!["SELECT @n := 5"];
        if !story.mysql() {
            texts.extend(["SET @n = 5", "SELECT 5 INTO @n"]);
        }
        for text in texts {
            for by_name in [false, true] {
                let id = match by_name {
                    true => {
                        story.sql(a, &format!("PREPARE p FROM '{text}'"));
                        None
                    }
                    false => Some(story.prepare(a, text).id),
                };
                story.sql(
                    b,
                    "SELECT @n := IFNULL(@n, 0) + 1 FROM (SELECT 1 UNION SELECT 2) t",
                );
                story.command(b, wire::command::Command::ResetConnection, b"");
                story.sql(a, "SELECT 1");
                story.sql(b, "SELECT CHARSET(@n), IFNULL(@n, 1.5), @n");
                if let Some(id) = id {
                    story.execute(a, id, &[]);
                }
                story.command(a, wire::command::Command::ResetConnection, b"");
            }
        }
    });
}

/// What its client has prepared on one backend is prepared on another before it is executed there,
/// which makes the variables again: they are that client's alone.
#[test]
fn what_is_prepared_again_elsewhere_makes_its_clients_variables_alone() {
    same_on_both("prepares_again_what_sets", 2, |story| {
        let (a, b, c) = (story.join(), story.join(), story.join());
        let counts = "SELECT @n := IFNULL(@n, 0) + 1 FROM (SELECT 1 UNION SELECT 2) t";
        let by_id = story.prepare(a, counts).id;
        story.sql(a, &format!("PREPARE p FROM '{counts}'"));
        // It goes elsewhere: the backend that it had is in another's transaction.
        for who in [b, c] {
            story.all(who, &["BEGIN", "SELECT 1"]);
            story.execute(a, by_id, &[]);
            story.sql(who, "ROLLBACK");
        }
        story.all(a, &["EXECUTE p", "SELECT @n"]);
        for (waits, counts_up) in [(b, c), (c, b)] {
            story.all(waits, &["BEGIN", "SELECT 1"]);
            story.all(counts_up, &[counts, "SELECT CHARSET(@n), @n"]);
            story.sql(waits, "ROLLBACK");
        }
        story.sql(a, "SELECT @n");
    });
}

/// What is prepared from an expression, or from a variable that is not read back, may make any.
#[test]
fn what_nobody_has_read_makes_nothing_for_others() {
    on_both("prepares_unread_what_sets", |story| {
        let (a, b) = (story.join(), story.join());
        let counts = "SELECT @n := IFNULL(@n, 0) + 1 FROM (SELECT 1 UNION SELECT 2) t";
        let long = "SET @text = CONCAT('SELECT @n := 5', SPACE(70000))";
        story.all(a, &[long, "PREPARE p FROM @text"]);
        story.all(a, &["SET @text = ''", "DEALLOCATE PREPARE p", "SELECT 1"]);
        story.all(b, &[counts, "SELECT CHARSET(@n), @n"]);
        if !story.mysql() {
            story.all(a, &["PREPARE p FROM CONCAT('SELECT @m :=', ' 5')"]);
            story.all(a, &["DEALLOCATE PREPARE p", "SELECT 1"]);
            story.all(b, &["SELECT @m := IFNULL(@m, 0) + 1", "SELECT @m"]);
        }
    });
}

/// True if a SET that fails makes the variables that it names depends on where it fails. Whatever
/// another client has had on the backend, it does so as on a connection of one's own.
#[test]
fn a_set_that_fails_makes_what_it_makes_on_a_connection_of_its_own() {
    on_both("sets_that_fail", |story| {
        let (a, b) = (story.join(), story.join());
        let counts = "SELECT @k := IFNULL(@k, 0) + 1 FROM (SELECT 1 UNION SELECT 2) t";
        let too_long = format!("SET @k = 1, @l = 2, @{} = 3", "x".repeat(65));
        let digits = format!("SET @k = {}, @l = -{0}.9", "9".repeat(100));
        let sets = [
            "SET @k = 1, nosuch = 1",
            "SET time_zone = 'bad', @k = 1",
            "SET @k = 1, time_zone = 'bad'",
            "SET NAMES nosuch, @k = 1",
            "SET @k = 1, NAMES nosuch",
            "SET @k = (SELECT nosuch)",
            "SET @k = @@nosuch",
            "SET @l = 1, @k = (SELECT 1 UNION SELECT 2)",
            "SET @k = 1, @l = (SELECT 1 UNION SELECT 2)",
            "SET @k = (SELECT 1 UNION SELECT 2), @l = 1",
            "SET @k = = 1",
            "SET @k = 1, @l",
            "SET @k = 1 @l = 2",
            "SET @k = 1e400",
            "SET @k = 'x', @l = 0x1g",
            &digits,
        ];
        // The pool keeps who sends one of these.
        let kept = [
            "SET @k = nosuch()",
            "SET @k = 'open",
            "SET @k = 'open\\'",
            "SET @k = 1, @`` = 2",
            "SET @k = 1, @ = 2",
            &too_long,
        ];
        let all = (sets.iter().map(|set| (set, true))).chain(kept.iter().map(|set| (set, false)));
        for (at, (set, leaves)) in all.enumerate() {
            for by_id in [false, true] {
                story.sql(b, &format!("SET @k = 'other{at}', @l = {at}"));
                match by_id {
                    true => {
                        // Without its number: servers count on for another connection.
                        let reply = story.client(a).run(Command::StmtPrepare, set.as_bytes());
                        let failed = |one: &Outcome| matches!(one, Outcome::Failed(_));
                        let failed = reply.unwrap().iter().any(failed);
                        story.say(&format!("{set} fails: {failed}"));
                    }
                    false => {
                        story.sql(a, set);
                    }
                }
                if leaves {
                    story.sql(b, "SELECT @k, @l");
                }
                story.all(a, &["SELECT @k, IFNULL(@k, 1.5), @l", counts, "SELECT @k"]);
                story.command(a, Command::ResetConnection, b"");
            }
        }
        // What it has set before it keeps, and what it sets behind it.
        story.all(a, &["SET @k = 7", "SET @k = 8, nosuch = 1"]);
        story.sql(b, "SELECT @k");
        story.all(a, &["SELECT @k", "SET @m = 1, nosuch = 1", "SET @m = NULL"]);
        story.sql(b, "SET @m = 'other'");
        story.sql(a, "SELECT @m, IFNULL(@m, 1.5)");
    });
}

/// On MariaDB a PREPARE of a SET makes what that would set, without a value; on MySQL nothing.
#[test]
fn a_set_that_is_only_prepared_makes_what_it_makes_on_a_connection_of_its_own() {
    on_both("prepares_sets", |story| {
        let (a, b) = (story.join(), story.join());
        let counts = "SELECT @k := IFNULL(@k, 0) + 1 FROM (SELECT 1 UNION SELECT 2) t";
        for set in ["SET @k = 5", "SET @k = 'x'", "SET @k = ?", "SET @k = NULL"] {
            for by_id in [false, true] {
                story.sql(b, "SET @k = 'other'");
                match by_id {
                    true => drop(story.prepare(a, set)),
                    false => {
                        let set = set.replace('\'', "''");
                        story.sql(a, &format!("PREPARE p FROM '{set}'"));
                    }
                }
                story.sql(b, "SELECT @k");
                story.all(a, &["SELECT @k, IFNULL(@k, 1.5)", counts, "SELECT @k"]);
                story.command(a, Command::ResetConnection, b"");
            }
        }
    });
}

/// Tables with cascades, and a trigger on the child.
const CASCADES: [&str; 8] = [
    "CREATE DATABASE cascades",
    "USE cascades",
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    "CREATE TABLE child (p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    "CREATE TABLE told (p INT)",
    "CREATE TRIGGER tell AFTER DELETE ON child FOR EACH ROW INSERT INTO told VALUES (OLD.p)",
    "INSERT INTO parent VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)",
    "INSERT INTO child VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)",
];

/// Deletes one parent as this client; returns how many tables the binary log names for it.
fn tables_logged(real: &Real, client: &mut Client, id: usize) -> usize {
    let mut admin = real.admin();
    let status = admin.rows("SHOW BINARY LOG STATUS").texts();
    let (file, from) = (&status[0][0], &status[0][1]);
    client.must(&format!("DELETE FROM cascades.parent WHERE id = {id}"));
    let events = admin.rows(&format!("SHOW BINLOG EVENTS IN '{file}' FROM {from}"));
    let tables = events.texts().into_iter();
    tables.filter(|event| event[2] == "Table_map").count()
}

/// A session that MySQL 9.7 has reset leaves cascades to InnoDB, which writes no row of a child to
/// the binary log and fires no trigger. It is the client's own matter to reset its session: then it
/// gets what a connection of its own would give, and nobody else does.
#[test]
fn cascades_are_logged_and_fire_triggers_whoever_had_the_backend_before() {
    let Some(real) = mysql_with_gtids("logs_cascades") else {
        return;
    };
    real.create_user("app", "app");
    real.execute(&CASCADES);
    let account = app();
    let fresh = tables_logged(&real, &mut login(&real.address(), &account), 1);
    let mut own = login(&real.address(), &account);
    own.must("USE cascades");
    own.run(Command::ResetConnection, b"").unwrap();
    let reset = tables_logged(&real, &mut own, 2);
    let pool = start_pool(&real, "cascades.toml", "backends_max = 1\ngroups = 1");
    let mut clients = [(); 3].map(|()| login(&pool.address, &account));
    let [a, b, c] = &mut clients;
    b.must("SET @had = 1");
    a.must("SELECT @had");
    assert_eq!(tables_logged(&real, a, 3), fresh);
    c.must("USE cascades");
    c.run(Command::ResetConnection, b"").unwrap();
    assert_eq!(tables_logged(&real, c, 4), reset);
    assert_eq!(tables_logged(&real, a, 5), fresh);
    assert_eq!(tables_logged(&real, c, 6), reset);
    b.must("USE cascades");
    assert_eq!(tables_logged(&real, b, 7), fresh);
    b.must("SET enable_cascade_triggers = ON");
    b.must("DELETE FROM parent WHERE id = 8");
    assert_eq!(b.value("SELECT p FROM told"), "8");
}
