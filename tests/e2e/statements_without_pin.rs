//! Statements that take nothing, though their kind does: no pin outlives them.

use crate::world::{app, both_servers, login, server, through};
use testkit::real::Flavour;
use wire::capabilities as cap;
use wire::command::Command;

/// A name that is none, one that is too long, and a lock that somebody else has.
#[test]
fn locks_that_were_not_taken_pin_nobody() {
    let test = "locks_that_were_not_taken_pin_nobody";
    for real in both_servers(test) {
        let mut holder = real.admin();
        assert_eq!(holder.value("SELECT GET_LOCK('theirs', 0)"), "1");
        let way = through(real, 1);
        let [mut one, mut other] = [login(&way, &app()), login(&way, &app())];
        let long = format!("SELECT GET_LOCK('{}', 0)", "x".repeat(193));
        for sql in [
            "SELECT GET_LOCK(NULL, 0)",
            "DO GET_LOCK('', 0)",
            "SELECT GET_LOCK('theirs', 0)",
            &long,
        ] {
            one.query(sql).unwrap();
            assert_eq!(other.value("SELECT 'a place'"), "a place", "{sql}");
        }
        let name = "y".repeat(65);
        one.query(&format!("SELECT GET_LOCK('{name}', 0)")).unwrap();
        if real.flavour() == Flavour::MariaDb {
            let held = format!("SELECT IS_USED_LOCK('{name}') IS NOT NULL");
            assert_eq!(holder.value(&held), "1");
            one.must(&format!("DO RELEASE_LOCK('{name}')"));
        }
        assert_eq!(other.value("SELECT 'a place'"), "a place");
        holder.must("DO RELEASE_LOCK('theirs')");
    }
}

#[test]
fn a_text_that_has_no_end_pins_nobody() {
    let test = "a_text_that_has_no_end_pins_nobody";
    for real in both_servers(test) {
        let way = through(real, 1);
        let [mut broken, mut other] = [login(&way, &app()), login(&way, &app())];
        for sql in [
            "SELECT 'it\'s Tuesday",
            "SELECT \"x",
            "SELECT `x",
            "SELECT 1 /* x",
            "SHOW PROFILES",
        ] {
            let said = broken.query(sql).unwrap();
            let refused = format!("{said:?}").contains("1064");
            assert_eq!(refused, !sql.starts_with("SHOW"), "{sql}: {said:?}");
            assert_eq!(other.value("SELECT 'a place'"), "a place", "{sql}");
        }
    }
}

/// A space makes a built-in function a stored one, on both servers; where there is none of that
/// name nothing has run.
#[test]
fn a_routine_that_does_not_exist_pins_nobody() {
    let test = "a_routine_that_does_not_exist_pins_nobody";
    for real in both_servers(test) {
        let way = through(real, 1);
        let account = app().schema("shop");
        let [mut one, mut other] = [login(&way, &account), login(&way, &account)];
        for (sql, code) in [
            ("SELECT MAX (1)", 1630),
            ("SELECT no_such_function(1)", 1305),
            ("CALL shop.no_such_procedure(ABS(1))", 1305),
            ("SELECT COUNT (*)", 1064),
        ] {
            assert_eq!(one.failure(sql).code, code, "{sql}");
            assert_eq!(other.value("SELECT 'a place'"), "a place", "{sql}");
        }
        one.must("SET sql_mode = 'IGNORE_SPACE'");
        assert_eq!(one.value("SELECT MAX (1)"), "1");
        assert_eq!(other.value("SELECT 'a place'"), "a place");
    }
}

/// SET STATEMENT gives a variable back behind its answer. The server reports that with a later one,
/// to whoever runs the next statement there, and to a client whose next statement is there already
/// when the pool asks for it.
#[test]
fn what_set_statement_gives_back_pins_nobody() {
    let test = "what_set_statement_gives_back_pins_nobody";
    let Some(real) = server(test) else { return };
    let way = through(real, 1);
    for account in [app(), app().without(cap::DEPRECATE_EOF)] {
        let [mut one, mut other] = [login(&way, &account), login(&way, &account)];
        for next in [
            "SELECT 1 / 3",
            "SET @x = 1 / 3",
            "SET lock_wait_timeout = 77",
        ] {
            let sets = "SET STATEMENT div_precision_increment = 9 FOR SELECT 1 / 3";
            let query = |sql: &'static str| (Command::Query, sql.as_bytes());
            one.send(&[query(sets), query(next)]).unwrap();
            let told = one.receive().unwrap();
            let third = told[0].rows().rows[0][0].as_deref();
            assert_eq!(third, Some(&b"0.333333333"[..]));
            one.receive().unwrap();
            for client in [&mut other, &mut one] {
                client.must("START TRANSACTION");
                client.must("COMMIT");
                assert_eq!(client.value("SELECT 1 / 3"), "0.3333", "{next}");
            }
        }
    }
}
