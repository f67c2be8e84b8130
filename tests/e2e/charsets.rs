//! Clients that speak in character sets of several bytes: their texts are read like any others.

use crate::compare::{Story, same, same_on, same_on_both};
use crate::world::{
    HOLD, app, both_servers, direct, found, fresh_schema, login, mysql, server, through,
};
use reactor::Address;
use testkit::client::Client;
use testkit::real::{Real, skipped};
use testkit::reply::Outcome;
use testkit::talk::Account;
use wire::capabilities as cap;
use wire::command::Command;

/// A character set, a letter, and a letter whose last byte is a backslash by itself.
type Set = (&'static str, &'static [u8], Option<&'static [u8]>);

const SETS: [Set; 5] = [
    ("gbk", b"\xd6\xd0", Some(b"\x81\\")),
    ("sjis", b"\x93\xfa", Some(b"\x83\\")),
    ("big5", b"\xa4\xa4", Some(b"\xa5\\")),
    ("euckr", b"\xc7\xd1", None),
    ("ujis", b"\xc6\xfc", None),
];

fn say(story: &mut Story, who: usize, text: &str, letter: &[u8]) {
    let mut sql = Vec::new();
    for (i, part) in text.split('%').enumerate() {
        if i > 0 {
            sql.extend_from_slice(letter);
        }
        sql.extend_from_slice(part.as_bytes());
    }
    story.command(who, Command::Query, &sql);
}

/// One backend for two clients: whoever is pinned makes the other wait in vain.
#[test]
fn letters_of_several_bytes_pin_nobody() {
    same("letters", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for (set, letter, _) in SETS {
            story.sql(a, &format!("SET NAMES {set}"));
            for text in [
                "CREATE TABLE `t%` (`%` VARCHAR(20) CHARACTER SET utf8mb4)",
                "INSERT INTO `t%` VALUES ('%'), ('a%b\\'c')",
                "SELECT `%`, HEX(`%`), '%' AS `x%` FROM `t%` -- %",
                "SELECT /* % */ \"%\", CONNECTION_ID() > 0",
                "SET @v = '%'",
                "SELECT @v, HEX(@v), CHARSET(@v)",
                "DROP TABLE `t%`",
            ] {
                say(story, a, text, letter);
                story.sql(b, "SELECT @@character_set_client, @v");
            }
        }
    });
}

/// What a server takes for the end of such a letter is no backslash.
#[test]
fn a_letter_that_ends_with_a_backslash_is_read_as_the_server_reads_it() {
    same("backslashes", 2, |story| {
        let (a, b) = (story.join(), story.join());
        for (set, _, letter) in SETS {
            let Some(letter) = letter else { continue };
            story.sql(a, &format!("SET NAMES {set}"));
            for text in [
                "SELECT HEX('%'), 'behind'",
                "SELECT HEX('%'), GET_LOCK('backslashes', 1) -- '",
                "SELECT IS_USED_LOCK('backslashes') IS NULL",
                "SELECT RELEASE_ALL_LOCKS()",
            ] {
                say(story, a, text, letter);
                story.sql(b, "SELECT @@character_set_client");
            }
        }
    });
}

/// The set of a client's texts has a collation that no variable shows; parameters have it too.
#[test]
fn parameters_have_the_collation_of_their_client() {
    same("collation_of_parameters", 2, |story| {
        story.columns = true;
        let [other, one] = [0; 2].map(|_| story.join());
        for names in ["utf8mb4 COLLATE utf8mb4_bin", "utf8mb4", "latin1"] {
            story.sql(one, &format!("SET NAMES {names}"));
            // The next backend is another one.
            story.sql(other, HOLD);
            let id = story.prepare(one, "SELECT ?, ? = 'RED'").id;
            story.execute(one, id, &[Some(b"red"), Some(b"red")]);
            story.sql(other, "COMMIT");
        }
    });
}

/// Asks for what a session has of its schema beside the name: the character set of files that are
/// loaded, and of expressions.
const OF_SCHEMA: &str = "SELECT DATABASE(), @@character_set_database, @@collation_database, \
                         @@character_set_connection, @@collation_connection";

/// A schema in another character set than the server's, a client in it, and another client.
fn in_a_schema_of_its_own(test: &str, story: impl Fn(&mut Story, usize, usize)) {
    same_on_both(test, 1, |told| {
        let first = told.join();
        told.sql(first, &format!("ALTER DATABASE {test} CHARACTER SET koi8r"));
        told.sql(first, "CREATE TABLE t (v VARCHAR(9) CHARACTER SET utf8mb4)");
        let (a, b) = (told.join(), told.join());
        story(told, a, b);
    });
}

#[test]
fn a_backend_that_begins_anew_has_the_character_set_of_its_schema() {
    in_a_schema_of_its_own("renews_schemas_charset", |story, a, b| {
        for round in 0..2 {
            story.all(a, &["SELECT 1", OF_SCHEMA]);
            story.sql(b, &format!("SET @n{round} = 1"));
            story.all(a, &[&format!("SELECT @n{round}"), OF_SCHEMA]);
            story.all(
                a,
                &[
                    "SET CHARACTER SET utf8mb4",
                    OF_SCHEMA,
                    "INSERT INTO t VALUES ('\u{44f}\u{65e5}')",
                    "SELECT HEX(v) FROM t",
                    "SET NAMES utf8mb4",
                ],
            );
            story.all(b, &[OF_SCHEMA, "USE information_schema", OF_SCHEMA]);
            story.all(a, &[&format!("SELECT @n{round}"), OF_SCHEMA]);
        }
    });
}

#[test]
fn the_character_set_of_a_schema_is_set_for_one_client_alone() {
    in_a_schema_of_its_own("sets_schemas_charset", |story, a, b| {
        story.all(a, &["SET character_set_database = greek", OF_SCHEMA]);
        story.all(b, &[OF_SCHEMA, "SET CHARACTER SET utf8mb4", OF_SCHEMA]);
        story.all(a, &["SET CHARACTER SET utf8mb4", OF_SCHEMA]);
        story.all(
            b,
            &["SET @@collation_database = hebrew_general_ci", OF_SCHEMA],
        );
        story.sql(a, OF_SCHEMA);
        story.sql(b, OF_SCHEMA);
        let here = format!("USE {}", story.schema);
        story.all(b, &[&here, OF_SCHEMA]);
        story.all(a, &["SET character_set_database = DEFAULT", OF_SCHEMA]);
        story.sql(b, OF_SCHEMA);
        story.all(a, &["USE no_such_schema", OF_SCHEMA, &here, OF_SCHEMA]);
    });
}

#[test]
fn a_session_that_begins_anew_forgets_the_character_set_of_its_schema() {
    in_a_schema_of_its_own("resets_schemas_charset", |story, a, b| {
        story.command(a, Command::ResetConnection, b"");
        story.sql(b, OF_SCHEMA);
        story.all(a, &[OF_SCHEMA, "SET CHARACTER SET utf8mb4", OF_SCHEMA]);
        story.sql(b, OF_SCHEMA);
        story.sql(a, "SELECT 1, DATABASE()");
        let account = app().schema(&story.schema);
        story.change_user(b, &account);
        story.sql(a, OF_SCHEMA);
        story.sql(b, OF_SCHEMA);
        let here = format!("USE {}", story.schema);
        story.all(a, &[&here, OF_SCHEMA]);
        story.sql(a, "SET character_set_database = greek");
        story.command(a, Command::ResetConnection, b"");
        story.sql(b, OF_SCHEMA);
        story.sql(a, OF_SCHEMA);
    });
}

fn variables(client: &mut Client) -> Vec<Vec<String>> {
    match &client.query("SHOW SESSION VARIABLES").unwrap()[0] {
        Outcome::Rows(rows) => rows.texts(),
        other => panic!("no variables: {other:?}"),
    }
}

/// What a reset changes of a session that has set nothing since its login: whatever else is in this
/// list on a new server has to be restored on a backend that starts over.
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

/// A reset leaves the server's character set in place of the schema's. On MySQL an account that may
/// not set that gets it all the same, on a backend that it shares with one that did not reset.
#[test]
fn a_reset_without_privileges_leaves_the_servers_character_set() {
    for (found, test) in [
        (server("reset_charset"), "reset_charset"),
        (mysql("reset_charset_mysql"), "reset_charset_mysql"),
    ] {
        let Some(real) = found else { continue };
        same_on(real, test, 1, |story| {
            let mut admin = real.admin();
            for sql in [
                format!("ALTER DATABASE {test} CHARACTER SET greek"),
                format!("CREATE DATABASE IF NOT EXISTS {test}_2 CHARACTER SET cp1250"),
                "CREATE USER IF NOT EXISTS small@'%' IDENTIFIED BY 'small'".into(),
                format!("GRANT ALL ON `{test}%`.* TO small@'%'"),
            ] {
                admin.must(&sql);
            }
            let account = Account::new("small", "small").schema(test);
            let clients = [0; 3].map(|_| story.join_as(&account));
            let look = |story: &mut Story| {
                for who in clients {
                    story.sql(who, "SELECT DATABASE(), @@character_set_database, @x");
                    story.sql(who, "SELECT @@collation_database, @@sql_mode");
                }
            };
            look(story);
            story.command(clients[0], Command::ResetConnection, b"");
            look(story);
            story.sql(clients[1], &format!("USE {test}_2"));
            story.sql(clients[0], "SET @x = 1, sql_mode = 'ANSI_QUOTES'");
            look(story);
            story.command(clients[1], Command::ResetConnection, b"");
            look(story);
            story.sql(clients[0], "SET CHARACTER SET latin1");
            look(story);
            story.sql(clients[0], "SELECT @@collation_connection");
            story.sql(clients[0], &format!("USE {test}"));
            look(story);
        });
    }
}

/// MariaDB gives a character set back with its default collation, whatever the session had.
#[test]
fn a_character_set_of_one_statement_is_not_left_to_others() {
    let collations = "SELECT @@collation_server, @@collation_database, @@collation_connection";
    same_on_both("set_statement_charset", 2, |story| {
        story.columns = true;
        for set in [
            "character_set_server = latin1",
            "character_set_database = latin1",
            "character_set_results = latin1",
            "character_set_results = NULL",
            "character_set_connection = latin1",
            "character_set_client = latin1",
            "collation_server = latin1_bin",
        ] {
            let (a, b) = (story.join(), story.join());
            for who in [a, b] {
                story.sql(who, "SET collation_server = utf8mb4_bin");
                story.sql(who, "SET NAMES utf8mb4 COLLATE utf8mb4_bin");
            }
            story.sql(b, &format!("SET STATEMENT {set} FOR SELECT 1"));
            for who in [a, b, a] {
                story.sql(who, collations);
                story.sql(who, "CREATE DATABASE sleak");
                story.sql(who, "SHOW CREATE DATABASE sleak");
                story.sql(who, "DROP DATABASE sleak");
            }
            story.command(a, Command::Quit, b"");
            story.command(b, Command::Quit, b"");
        }
    });
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
            "PREPARE s FROM 'SET character_set_results = utf32'; EXECUTE s",
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
                    "PREPARE r FROM 'SELECT HEX(?), @v'",
                    "SET @x = 'é'",
                    "EXECUTE r USING @x",
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

/// A change of user has both bytes of the collation's number, a login the low one.
#[test]
fn a_change_of_user_may_name_any_collation() {
    let asks = "SELECT @@character_set_client, @@character_set_results, @@collation_connection";
    same_on_both("any_collation", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (v VARCHAR(9) CHARACTER SET utf8mb4)");
        // Of MySQL, of MariaDB, of nobody, of both.
        for collation in [309, 278, 264, 608, 2304, 576, 9999, 45] {
            let account = app().schema("any_collation").speaking(collation);
            story.change_user(a, &account);
            story.all(a, &[asks, "INSERT INTO t VALUES ('\u{e4}\u{20ac}')"]);
            story.sql(b, "SELECT HEX(v) FROM t");
            story.all(a, &["SELECT v, 'x' FROM t", asks]);
            story.command(a, Command::ResetConnection, b"");
            story.sql(a, asks);
            story.sql(b, "DELETE FROM t");
            let c = story.join_as(&account);
            story.sql(c, asks);
            story.change_user(b, &account);
            story.sql(b, asks);
            story.change_user(b, &app().schema("any_collation"));
        }
        story.sql(b, "DROP TABLE t");
    });
}

/// Who logs in, or changes the user, in a character set that no client may speak.
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

/// Who logs in with a schema that there is not, or whose name its character set cannot say, hears
/// the server's words.
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

/// A SET of a character set sets its collation too, and the other way round: what was set last is
/// the session's, in whatever order, also behind a reset.
#[test]
fn a_charset_and_its_collation_follow_who_set_one_of_them() {
    same_on_both("charset_pairs", 1, |story| {
        let account = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        let (a, b) = (story.join_as(&account), story.join_as(&account));
        let asked = "SELECT @@character_set_database, @@collation_database, \
             @@character_set_server, @@collation_server";
        for resets in [false, true] {
            for pair in ["database", "server"] {
                for set in [
                    "SET character_set_{} = latin1",
                    "SET collation_{} = latin1_bin",
                    "SET character_set_{} = greek",
                    "SET character_set_{} = latin1, collation_{} = greek_bin",
                    "SET collation_{} = latin1_bin, character_set_{} = greek",
                    "SET character_set_{} = DEFAULT",
                    "SET collation_{} = hebrew_bin",
                    "SET collation_{} = DEFAULT",
                ] {
                    if resets {
                        story.command(a, Command::ResetConnection, b"");
                    }
                    story.sql(a, &set.replace("{}", pair));
                    for who in [b, a, b] {
                        story.sql(who, asked);
                    }
                }
            }
        }
    });
    // In one text of several, where the reports do not say which came last.
    same_on_both("charset_pairs_in_one", 2, |story| {
        let account = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        let (a, b) = (story.join_as(&account), story.join_as(&account));
        let set = "SET collation_server = latin1_german1_ci; SET character_set_server = latin1";
        for sql in [
            set,
            "SET character_set_server = greek; SET collation_server = greek_bin",
        ] {
            story.sql(a, sql);
            for who in [b, a, b, a] {
                story.sql(who, "SELECT @@character_set_server, @@collation_server");
            }
            story.command(a, Command::ResetConnection, b"");
        }
    });
}

/// A default schema whose name is written in the client's character set, and comes back on backends
/// that stand in any other.
#[test]
fn a_schema_is_named_in_the_character_set_of_its_backend() {
    let cyrillic = "\u{442}\u{435}\u{441}\u{442}";
    let koi8r = b"\xd4\xc5\xd3\xd4";
    same_on_both("schema_in_koi8r", 2, |story| {
        let [a, b, other] = [0; 3].map(|_| story.join());
        story.sql(
            b,
            &format!("CREATE DATABASE `{cyrillic}` CHARACTER SET cp1251"),
        );
        for (set, by_command) in [
            ("SET CHARACTER SET koi8r", false),
            ("SET NAMES koi8r", true),
            ("SET CHARACTER SET koi8r", true),
        ] {
            story.sql(a, set);
            match by_command {
                true => story.command(a, Command::InitDb, koi8r),
                false => say(story, a, "USE %", koi8r),
            }
            let prepared = story.prepare(a, "SELECT HEX(DATABASE())").id;
            let check = |story: &mut Story| {
                story.all(a, &["SHOW TABLES", OF_SCHEMA]);
                story.execute(a, prepared, &[]);
            };
            check(story);
            // Elsewhere, on one that stands in another character set and schema.
            story.all(b, &["SET NAMES latin1", "USE mysql"]);
            check(story);
            story.all(other, &["SET CHARACTER SET cp1251", "BEGIN", "SELECT 1"]);
            check(story);
            story.sql(other, "COMMIT");
            // On one that has been renewed.
            for who in [b, other] {
                let name = format!("@n{}", set.len() + usize::from(by_command) + who);
                story.sql(who, &format!("SET {name} = 1"));
                story.sql(a, &format!("SELECT {name}"));
                check(story);
            }
            // On the one whose session is in the same schema, and begins anew.
            for name in [&b"SET NAMES utf8mb4"[..], b"SET CHARACTER SET utf8mb4"] {
                story.command(b, Command::Query, name);
                story.command(b, Command::InitDb, cyrillic.as_bytes());
                story.all(b, &["SELECT 1", OF_SCHEMA]);
                story.command(b, Command::ResetConnection, b"");
                story.all(b, &["SELECT 1", OF_SCHEMA]);
                check(story);
                let account = app().schema(cyrillic);
                story.change_user(b, &account);
                story.all(b, &["SELECT 1", OF_SCHEMA]);
                check(story);
            }
            story.command(a, Command::ResetConnection, b"");
            check(story);
        }
        story.sql(b, &format!("DROP DATABASE `{cyrillic}`"));
    });
}

/// A server may give every client its own default, whatever collation the login names
/// (`skip_character_set_client_handshake`, which MySQL 9 has no more). What is restored must be so,
/// also where the default is what the pool's own logins name.
#[test]
fn a_server_that_heeds_no_collation_is_followed() {
    let test = "heeds_no_collation";
    if direct() {
        return skipped(test, "it starts servers of its own");
    }
    for collation in ["utf8mb4_general_ci", "latin2_czech_cs"] {
        let (charset, _) = collation.split_once('_').unwrap();
        let options = [
            "--skip-character-set-client-handshake",
            &format!("--character-set-server={charset}"),
            &format!("--collation-server={collation}"),
        ];
        let Some(real) = found(Real::start(&options), test) else {
            continue;
        };
        real.create_user("app", "app");
        same_on(&real, test, 1, tell_of_collations);
    }
}

fn tell_of_collations(story: &mut Story) {
    let asks = "SELECT @@character_set_client, @@character_set_connection, \
                @@character_set_results, @@collation_connection, HEX('\u{e9}'), CHARSET('')";
    for collation in [8, 45, 33, 63] {
        let account = Account {
            collation,
            ..app().schema(&story.schema)
        };
        let (a, b) = (story.join_as(&account), story.join_as(&account));
        story.all(a, &[asks, "SET NAMES cp1251", asks]);
        story.all(b, &[asks, "SET CHARACTER SET koi8r", asks]);
        story.all(a, &[asks]);
        story.command(a, Command::ResetConnection, b"");
        story.change_user(b, &account);
        story.all(a, &[asks]);
        story.all(b, &[asks, "SET NAMES DEFAULT", asks]);
    }
}

/// MariaDB reports changes otherwise where the default schema is in such a character set.
#[test]
fn sessions_are_followed_in_schemas_of_wide_character_sets() {
    for set in ["ucs2", "utf16", "utf16le", "utf32"] {
        same_on_both("wide_schemas", 2, |story| {
            let (a, b) = (story.join(), story.join());
            let schema = story.schema.clone();
            story.all(
                a,
                &[
                    "CREATE TABLE kept (id INT)",
                    &format!("ALTER DATABASE `{schema}` CHARACTER SET {set}"),
                    &format!("USE `{schema}`"),
                    "SET sql_mode = 'ANSI_QUOTES'",
                    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                    "BEGIN",
                    "SELECT \"id\" FROM kept",
                    "COMMIT",
                    "USE information_schema",
                    &format!("USE `{schema}`"),
                ],
            );
            // The backend that has seen this is another client's.
            story.all(b, &["BEGIN", "SELECT * FROM kept FOR UPDATE"]);
            story.all(
                a,
                &[
                    "SELECT \"id\" FROM kept",
                    "SELECT @@sql_mode, DATABASE()",
                    "CREATE TABLE another (name CHAR(3))",
                    "SHOW CREATE TABLE another",
                ],
            );
            story.sql(b, "COMMIT");
        });
    }
}

/// Every backend that stood in a schema when it was altered, or created again, has its new
/// character set. Who has not said USE since keeps the old one on a server: it is not asked.
#[test]
fn a_schema_that_is_defined_anew_has_its_character_set_on_every_backend() {
    same_on_both("schemas_charset_anew", 2, |story| {
        let (a, b, c) = (story.join(), story.join(), story.join());
        let name = story.schema.clone();
        let ask = |story: &mut Story| {
            let makes = "CREATE TABLE of_charset (v TEXT)";
            let shows = "SHOW CREATE TABLE of_charset";
            story.all(a, &[OF_SCHEMA, makes, shows, "DROP TABLE of_charset"]);
        };
        for begins in [b, c] {
            story.sql(begins, HOLD);
        }
        for begins in [b, c] {
            story.sql(begins, "COMMIT");
        }
        for anew in [
            vec![format!("ALTER DATABASE {name} CHARACTER SET greek")],
            vec!["ALTER DATABASE CHARACTER SET hebrew".to_string()],
            vec![
                format!("DROP DATABASE {name}"),
                format!("CREATE SCHEMA IF NOT EXISTS `{name}` CHARACTER SET cp1251"),
                format!("USE {name}"),
            ],
            vec![
                // MySQL warns of this name, though it creates.
                format!("DROP DATABASE {name}"),
                format!("CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8"),
                format!("USE {name}"),
            ],
            vec![
                // Of the schema in which it is executed.
                "USE shop".to_string(),
                "PREPARE anew FROM 'ALTER DATABASE CHARACTER SET latin5'".to_string(),
                format!("USE {name}"),
                "EXECUTE anew".to_string(),
            ],
            vec![
                format!("PREPARE anew FROM 'ALTER SCHEMA {name} COLLATE greek_bin'"),
                "EXECUTE anew".to_string(),
            ],
        ] {
            for sql in &anew {
                story.sql(a, sql);
            }
            // One backend is b's, the other answers; then it is c's, and the first answers.
            story.sql(b, HOLD);
            ask(story);
            story.sql(c, HOLD);
            story.sql(b, "COMMIT");
            ask(story);
            story.sql(c, "COMMIT");
        }
    });
}
