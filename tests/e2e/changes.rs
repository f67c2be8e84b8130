//! State that no command can restore: the client keeps its backend, and others do not see it.

use crate::compare::{same, same_on};
use crate::world::{app, login, mysql, server, through};
use testkit::reply::Outcome;
use wire::capabilities as cap;
use wire::command::Command;

#[test]
fn user_variables_are_the_clients_own() {
    same("user_variables", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(a, &["SET @x = 1, @y := 'text'", "SELECT @x, @y"]);
        story.all(b, &["SELECT @x, @y", "SELECT 5 INTO @x", "SELECT @x"]);
        story.all(a, &["SELECT @x", "SELECT @x := @x + 1", "SELECT @x"]);
        story.sql(b, "SELECT @x");
    });
}

/// On MySQL the expression around it types a variable that was never set.
#[test]
fn what_is_made_of_an_unset_variable_is_no_binary_text() {
    let Some(real) = mysql("unset_variables") else {
        return;
    };
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

/// A client that has set NULL itself has that NULL, on MySQL unlike one that has set nothing.
#[test]
fn a_variable_set_to_null_stays_as_it_was_set() {
    let Some(real) = mysql("set_to_null") else {
        return;
    };
    same_on(real, "set_to_null", 1, |story| {
        story.columns = true;
        let (a, b) = (story.join(), story.join());
        story.all(b, &["SET @x = NULL", "SET @y = 1, @y = NULL"]);
        story.sql(a, "SET @x = 'text', @y = 'text'");
        story.sql(b, "SELECT @x, IFNULL(@x, 'a'), @y, IFNULL(@y, 5)");
    });
}

#[test]
fn text_prepared_statements_are_the_clients_own() {
    same("text_prepared", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "PREPARE p FROM 'SELECT 1 + ?'");
        story.sql(b, "PREPARE p FROM 'SELECT 100'");
        story.sql(a, "EXECUTE p USING 4");
        story.sql(b, "EXECUTE p");
        story.sql(a, "DEALLOCATE PREPARE p");
        story.sql(a, "EXECUTE p USING 4");
        story.sql(b, "EXECUTE p");
    });
}

#[test]
fn found_rows_is_a_matter_of_the_login() {
    same("found_rows_flag", 1, |story| {
        let schema = story.schema.clone();
        let plain = story.join();
        let found = story.join_as(&app().schema(&schema).with(cap::FOUND_ROWS));
        story.all(
            plain,
            &["CREATE TABLE t (v INT)", "INSERT INTO t VALUES (1), (1)"],
        );
        for who in [plain, found, plain, found] {
            story.sql(who, "UPDATE t SET v = 1");
        }
    });
}

/// Two clients on one backend: every type comes back as the type that it was, on both protocols.
#[test]
fn user_variables_keep_their_types_on_a_shared_backend() {
    same("variable_types", 1, |story| {
        let (a, b) = (story.join(), story.join());
        let probe = "SELECT @v, @v IS NULL, HEX(@v), COLLATION(@v), COERCIBILITY(@v), @v + 1, \
                     CONCAT(@v, 'x')";
        for value in [
            "5",
            "-5",
            "18446744073709551615",
            "CAST(5 AS UNSIGNED)",
            "1.50",
            "-0.001",
            "CAST(7 AS DECIMAL(10,0))",
            "1e0/3",
            "-1.5e300",
            "'text'",
            "''",
            "_latin1 x'E9'",
            "_utf8mb4 'x' COLLATE utf8mb4_bin",
            "x'00FF41'",
            "NOW()",
            "NULL",
            "9223372036854775807",
        ] {
            story.sql(a, "SET @v = 'another type', @other = 1");
            story.sql(b, "SET @v = 1");
            story.sql(a, &format!("SET @V = {value}"));
            story.sql(b, probe);
            // The present moment differs from telling to telling.
            if value != "NOW()" {
                story.sql(a, probe);
            }
            story.sql(b, "SELECT 1");
            story.sql(a, "SELECT @v IS NULL, @other");
        }
    });
}

#[test]
fn user_variables_are_set_in_every_way_without_a_pin() {
    same("variable_ways", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
                "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
            ],
        );
        for (one, other) in [
            ("SET @x = 1, @y = @x + 1", "SET @x = 'b'"),
            (
                "SELECT v INTO @x FROM t WHERE id = 2",
                "SELECT MAX(v), 7 FROM t INTO @x, @y",
            ),
            (
                "SELECT @x := @x + 1",
                "SELECT id, @x := CONCAT(@x, id) FROM t",
            ),
            ("SELECT 1 INTO @x FROM t WHERE 0", "SELECT v INTO @x FROM t"),
            (
                "SET @x = (SELECT SUM(v) FROM t)",
                "UPDATE t SET v = (@x := 5) WHERE id = 3",
            ),
            (
                "SET @x = 1, no_such_variable = 2",
                "SET time_zone = '+01:00', @x = 3",
            ),
            ("BEGIN", "SET @x = 'outside'"),
            ("SET @x = 'inside'", "SET @x = 2"),
            ("ROLLBACK", "SELECT @x"),
        ] {
            story.sql(a, one);
            story.sql(b, other);
            story.sql(a, "SELECT @x, @y");
            story.sql(b, "SELECT @x, @y");
        }
        // Too long to be carried: it stays where it is.
        story.sql(a, "SET @x = REPEAT('x', 2000)");
        story.sql(b, "SET @x = 1");
        story.sql(a, "SELECT @x");
        story.command(a, Command::ResetConnection, b"");
        story.sql(b, "SELECT @x");
        story.sql(a, "SELECT @x IS NULL, @y IS NULL");
    });
}

/// More clients than backends, each with variables of its own, and nobody is pinned.
#[test]
fn clients_with_variables_share_a_backend() {
    let test = "clients_with_variables_share_a_backend";
    let Some(real) = server(test) else { return };
    let way = through(real, 1);
    let mut clients: Vec<_> = (0..20).map(|_| login(&way, &app())).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        client.must(&format!("SET @mine = {i}, @name = 'client {i}'"));
    }
    for _ in 0..3 {
        for (i, client) in clients.iter_mut().enumerate() {
            let expected = [i.to_string(), format!("client {i}")];
            assert_eq!(client.rows("SELECT @mine, @name").texts(), [expected]);
        }
    }
}
