//! Values that the statement before left, where SQL alone does not tell: clients that wait or go,
//! spare backends, and answers that must not be another client's.
//!
//! The stories `asked_elsewhere`, `asked_inside` and `found` tell the rest.

use crate::world::*;

/// A client that leaves while its backend is asked what it has left there does not take it along.
#[test]
fn who_leaves_while_asked_leaves_the_backend_to_others() {
    for real in pooled_servers() {
        let way = through(real, 1);
        let mut stays = login(&way, &app());
        for _ in 0..40 {
            let mut leaves = login(&way, &app());
            let warns = b"DROP PROCEDURE IF EXISTS shop.no_such_procedure";
            let counts = b"SELECT 1 UNION SELECT 2";
            let commands = [
                (Command::Query, &warns[..]),
                (Command::Query, &counts[..]),
                (Command::Quit, &[][..]),
            ];
            leaves.send(&commands).unwrap();
            drop(leaves);
            assert_eq!(stays.value("SELECT 7"), "7");
        }
    }
}

/// Questions in one text with a call of code that nobody knows, in such code, and behind commands
/// that leave what was there: an answer may be that it is not known any more, but never another's.
#[test]
fn nobody_reads_the_conditions_of_another_client() {
    let questions = [
        "SHOW WARNINGS; CALL plain('q')",
        "SHOW ERRORS; CALL plain('q')",
        "SHOW COUNT(*) WARNINGS; CALL plain('q')",
        "SHOW COUNT(*) ERRORS; CALL plain('q')",
        "GET DIAGNOSTICS @n = NUMBER; SELECT @n; CALL plain('q')",
        "SELECT @@warning_count, @@error_count; CALL plain('q')",
        "CALL plain('q'); SHOW WARNINGS",
        "CALL resignals()",
        "CALL asks()",
    ];
    let leaves = [
        "SELECT CAST('bsecret' AS SIGNED)",
        "SELECT bsecret FROM no_such_table",
        "SELECT CAST('bsecret' AS SIGNED) FROM t; SELECT 1",
    ];
    let schema = "nobodys_conditions";
    for real in pooled_servers() {
        fresh_schema(real, schema);
        let way = through(real, 1);
        let account = app().schema(schema).with(cap::MULTI_STATEMENTS);
        let mut a = login(&way, &account);
        for sql in [
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "INSERT INTO t VALUES (1)",
            "CREATE PROCEDURE plain(w TEXT) BEGIN DO 0; SET @x = w; DO GET_LOCK('own', 0); END",
            "CREATE PROCEDURE resignals() BEGIN DO GET_LOCK('own', 0); BEGIN \
             DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; \
             SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'own'; END; END",
            "CREATE PROCEDURE asks() BEGIN SHOW WARNINGS; DO GET_LOCK('own', 0); END",
        ] {
            a.must(sql);
        }
        for before in ["DO 1", "USE no_such_schema"] {
            for leave in leaves {
                for question in questions {
                    let (mut b, mut c) = (login(&way, &account), login(&way, &account));
                    c.query(before).unwrap();
                    b.query(leave).unwrap();
                    for asks in [question, "SHOW WARNINGS"] {
                        let told = format!("{:?}", c.query(asks));
                        assert!(!told.contains("bsecret"), "{asks} behind {leave}: {told}");
                    }
                }
            }
        }
    }
}

/// Values that an error may have left unsaid are asked behind it, when the client takes its time:
/// that takes nothing from a text which asks for the conditions and cannot be answered by the pool.
#[test]
fn a_text_that_pins_finds_the_conditions_of_an_error_before_it() {
    for real in pooled_servers() {
        fresh_schema(real, "late_text");
        real.execute(&["CREATE PROCEDURE late_text.locks() DO RELEASE_LOCK('late_text')"]);
        let pool = fresh_pool(real, "groups = 1\nbackends_max = 2");
        let mut a = login(&pool.address, &app().with(cap::MULTI_STATEMENTS));
        let id = a.talk().greeting.as_ref().unwrap().connection_id;
        a.query("SELECT * FROM late_text.nowhere").unwrap();
        // Says nothing before all that follows the error has been answered.
        pool.report_of(id).unwrap();
        let reply = a.query("SHOW WARNINGS; CALL late_text.locks()").unwrap();
        assert!(format!("{reply:?}").contains("1146"), "{reply:?}");
    }
}

/// A backend is closed for a client that it cannot serve, which has no default schema, while the
/// question of the one that it served last waits behind that client (WordPress on few backends).
#[test]
fn a_backend_that_makes_room_is_asked_first_for_a_client_that_waits() {
    for real in pooled_servers() {
        fresh_schema(real, "asks_room");
        let pool = fresh_pool(real, "backends_max = 1\ngroups = 1");
        let account = app().schema("asks_room");
        let [mut holds, mut asks] = [(); 2].map(|()| login(&pool.address, &account));
        let mut schemaless = login(&pool.address, &app());
        holds.script("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)");
        holds.must(HOLD);
        let texts: [(Command, &[u8]); 2] = [
            (
                Command::Query,
                b"SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1",
            ),
            (Command::Query, b"SELECT FOUND_ROWS()"),
        ];
        asks.send(&texts).unwrap();
        pool.wait_for_census("waiting: 1,").unwrap();
        send(&mut schemaless, "SELECT 7");
        pool.wait_for_census("waiting: 2,").unwrap();
        holds.must("COMMIT");
        asks.receive().unwrap();
        let found = format!("{:?}", asks.receive().unwrap());
        assert!(found.contains("[\"3\"]"), "{found}");
        schemaless.receive().unwrap();
    }
}

/// Nobody takes the backend of a client that has been warned while there may be one more.
#[test]
fn a_client_that_has_been_warned_keeps_its_backend() {
    for real in pooled_servers() {
        fresh_schema(real, "asks_spare");
        let pool = fresh_pool(real, "backends_max = 3\ngroups = 1");
        let account = app().schema("asks_spare");
        let mut clients: Vec<_> = (0..3).map(|_| login(&pool.address, &account)).collect();
        clients[0].must("CREATE PROCEDURE counted() SELECT ROW_COUNT(), FOUND_ROWS()");
        clients[0].must("CREATE TABLE t (id INT)");
        // Nobody waits, and still there are two.
        clients[0].must("SELECT CAST('own' AS SIGNED)");
        let opened = pool.wait_for_census("backends_idle: 2");
        opened.expect("one more is opened");
        clients[0].must("SELECT CAST('own' AS SIGNED)");
        for other in [1, 2, 1] {
            clients[other].must("SELECT id FROM t");
        }
        clients[0].must("CALL counted()");
    }
}
