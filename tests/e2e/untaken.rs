//! Statements that take nothing, though their kind does: no pin outlives them.

use crate::world::{app, login, mysql, server, through};
use testkit::real::Flavour;

/// A name that is none, one that is too long, and a lock that somebody else has.
#[test]
fn locks_that_were_not_taken_pin_nobody() {
    let test = "locks_that_were_not_taken_pin_nobody";
    for real in [server(test), mysql(test)].into_iter().flatten() {
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
    for real in [server(test), mysql(test)].into_iter().flatten() {
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
    for real in [server(test), mysql(test)].into_iter().flatten() {
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
