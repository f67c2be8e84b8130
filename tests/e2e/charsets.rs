//! Clients that speak in character sets of several bytes: their texts are read like any others.

use crate::compare::{Story, same_on_both};
use crate::world::{app, both_servers, fresh_schema, login, mysql, server, through};
use reactor::Address;
use testkit::client::Client;
use testkit::reply::Outcome;
use wire::command::Command;

fn variables(client: &mut Client) -> Vec<Vec<String>> {
    match &client.query("SHOW SESSION VARIABLES").unwrap()[0] {
        Outcome::Rows(rows) => rows.texts(),
        other => panic!("no variables: {other:?}"),
    }
}

/// Changes that a reset makes to a session that has set nothing since its login: whatever else is
/// in this list on a new server has to be restored on a backend that starts over.
#[test]
fn a_reset_forgets_nothing_of_a_login_but_what_is_known() {
    let test = "forgets_at_resets";
    for real in both_servers(test) {
        fresh_schema(real, test);
        real.execute(&[&format!("ALTER DATABASE {test} CHARACTER SET koi8r")]);
        let mut client = login(&real.address(), &app().schema(test));
        let before = variables(&mut client);
        client.run(Command::ResetConnection, b"").unwrap();
        let after = variables(&mut client);
        let pairs = before.iter().zip(&after).filter(|(one, two)| one != two);
        let changed: Vec<String> = pairs.map(|(row, _)| row[0].clone()).collect();
        // Those of the second list are other ones at each look.
        let known = ["character_set_database", "collation_database"];
        let passing = ["rand_seed1", "rand_seed2", "statement_id", "timestamp"];
        // MySQL gives back the server's character sets, not those of the login; both are asked.
        let read_back = [
            "character_set_client",
            "character_set_connection",
            "character_set_results",
            "collation_connection",
        ];
        for name in known {
            assert!(changed.iter().any(|other| other == name), "{changed:?}");
        }
        let all = [&known[..], &passing, &read_back].concat();
        let rest: Vec<&String> = changed
            .iter()
            .filter(|name| !all.contains(&&***name))
            .collect();
        assert!(rest.is_empty(), "{:?}: {rest:?}", real.flavour());
    }
}

/// Results, literals and the pool's own questions are in character sets of two and four bytes.
#[test]
fn wide_character_sets_are_their_clients_own() {
    let tell = |story: &mut Story| {
        let b = story.join();
        story.sql(
            b,
            "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(9))",
        );
        story.sql(b, "SET time_zone = '+01:00'");
        for charset in ["ucs2", "utf16", "utf16le", "utf32"] {
            for set in [
                format!("SET character_set_results = {charset}"),
                format!("SET character_set_connection = {charset}"),
                format!("SET collation_connection = {charset}_general_ci"),
            ] {
                let a = story.join();
                story.all(a, &[&set, "SELECT 1", "SET time_zone = '+02:00'"]);
                story.all(
                    b,
                    &["SELECT @@time_zone, @@collation_connection", "SELECT 'b'"],
                );
                story.all(
                    a,
                    &[
                        "SET @x = 'abc'",
                        "SELECT HEX(@x), HEX('a'), @@time_zone, 'a'",
                        "INSERT INTO t (b) VALUES ('a')",
                        "SELECT LAST_INSERT_ID() > 0",
                        "SELECT CAST('x' AS SIGNED)",
                        "SHOW WARNINGS",
                        "SELECT no_such_column",
                        "SHOW WARNINGS",
                        "SELECT b FROM t WHERE a = 1",
                    ],
                );
                let prepared = story.prepare(a, "SELECT ?, 'p'");
                story.execute(a, prepared.id, &[Some(b"1")]);
                story.command(a, Command::ResetConnection, b"");
                story.all(a, &["SELECT @@collation_connection, 'a'"]);
                story.sql(b, "SELECT 5 FROM t WHERE b = 'b'");
                story.command(a, Command::Quit, b"");
            }
        }
    };
    same_on_both("wide_charsets", 2, tell);
}

/// Ways into such a character set that are no SET of their own.
#[test]
fn wide_character_sets_come_in_many_ways() {
    let tell = |story: &mut Story| {
        let b = story.join();
        story.all(
            b,
            &[
                "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(9))",
                "CREATE PROCEDURE p() SET character_set_results = utf16",
                "CREATE PROCEDURE q() BEGIN SET @y = 'q'; \
                 SET collation_connection = utf32_bin; END",
            ],
        );
        for way in [
            "SET NAMES ucs2",
            "SET NAMES utf16 COLLATE utf16_bin",
            "SET character_set_client = utf32",
            "SET NAMES utf8mb4, character_set_results = ucs2",
            "SET @x = 'abc', character_set_connection = utf32, @y = 'def'",
            "SET @@session.character_set_results = 'utf16', time_zone = '+03:00'",
            "SET character_set_results = 35",
            "SET collation_connection = 'ucs2_general_ci'",
            "INSERT INTO t (b) VALUES ('x'); SET character_set_results = utf16; SELECT 'z'",
            "SET character_set_connection = ucs2; INSERT INTO t (b) VALUES (CAST('y' AS CHAR)); \
             SELECT CAST('a' AS SIGNED)",
            "SET collation_connection = utf16_bin; SET NAMES latin1; SELECT 'a'",
            "CALL p()",
            "CALL q()",
        ] {
            let a = story.join();
            story.all(a, &["SET @v = 'v', time_zone = '+02:00'", way]);
            story.all(
                b,
                &[
                    "SELECT @v, @@time_zone, @@collation_connection",
                    "SET @w = 'w'",
                ],
            );
            story.all(
                a,
                &[
                    "SELECT @v, @w, @x, @y, HEX('a'), @@time_zone",
                    "SHOW WARNINGS",
                    "SELECT LAST_INSERT_ID() > 0, ROW_COUNT()",
                    "SET @x = 'é'",
                    "SELECT CAST('x' AS SIGNED)",
                    "SHOW COUNT(*) WARNINGS",
                    "SET NAMES utf8mb4",
                    "SELECT @v, @w, @x, @y, HEX('a'), @@time_zone",
                ],
            );
            story.sql(b, "SELECT @w, 'b', @@collation_connection");
            let prepared = story.prepare(a, "SELECT ?, 'p', @v");
            story.execute(a, prepared.id, &[Some(b"1")]);
            story.sql(a, way);
            story.execute(a, prepared.id, &[Some(b"1")]);
            story.change_user(a, &app().schema("wide_ways"));
            story.all(a, &["SELECT @@collation_connection, 'a', @v"]);
            story.command(a, Command::Quit, b"");
            story.sql(b, "SELECT @w, 'b', @@collation_connection");
        }
    };
    same_on_both("wide_ways", 2, tell);
}

/// A login, or a change of user, in a character set that no client may speak.
#[test]
fn a_login_in_a_wide_character_set_is_refused_as_on_a_server() {
    let outcome = |address: &Address, collation: u16| {
        let mut wide = app();
        wide.collation = collation;
        let refused = Client::connect(address, &wide).map(drop);
        wide.password = "wrong".into();
        let wrong = Client::connect(address, &wide).map(drop);
        let mut client = login(address, &app());
        let changed = format!("{:?}", client.change_user(&wide));
        let then = client.query("SELECT @@collation_connection, DATABASE()");
        // How a connection ends is the system's business.
        let then = then.map_err(|_| "ended");
        format!("{refused:?} {wrong:?} {changed:?} {then:?}")
    };
    for real in server("wide_logins")
        .into_iter()
        .chain(mysql("wide_logins"))
    {
        let way = through(real, 2);
        // ucs2, utf16, utf16le, utf32; one that is nobody's.
        for collation in [35, 101, 60, 0] {
            let (own, ours) = (
                outcome(&real.address(), collation),
                outcome(&way, collation),
            );
            assert_eq!(ours, own, "{:?}: {collation}", real.flavour());
        }
    }
}

/// A client that logs in with a schema that does not exist, or whose name its character set cannot
/// say, hears the server's words.
#[test]
fn a_login_with_a_schema_that_cannot_be_is_refused_as_on_a_server() {
    let outcome = |address: &Address, schema: &str, collation: u16| {
        let mut account = app().schema(schema);
        account.collation = collation;
        format!("{:?}", Client::connect(address, &account).map(drop))
    };
    for real in both_servers("schemas_of_logins") {
        let way = through(real, 2);
        // utf8mb3, binary, utf8mb4.
        for collation in [33, 63, 45] {
            for schema in [
                "a\u{1f601} ",
                "a\u{1f601}",
                "\u{442}\u{435}",
                "no_such",
                "a ",
            ] {
                let own = outcome(&real.address(), schema, collation);
                let ours = outcome(&way, schema, collation);
                assert_eq!(ours, own, "{:?}: {schema} {collation}", real.flavour());
            }
        }
    }
}
