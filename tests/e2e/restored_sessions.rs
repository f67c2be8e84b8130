//! Clients in different states share a backend, and nobody waits for its being restored.

use crate::world::*;

pub(crate) fn both(test: &str, does: impl Fn(&Real, &str)) {
    if let Some(real) = server(test) {
        does(real, test);
    }
    if let Some(real) = mysql(test) {
        does(real, &format!("{test}_mysql"));
    }
}

/// Statements that found their backend in another state, and those of them that nothing was waited
/// for.
pub(crate) fn restored(pool: &Pool, statements: u64) -> (u64, u64) {
    let said = pool.wait_for_census(&format!("statements: {statements},"));
    let said = said.unwrap();
    let counted = |name: &str| -> u64 {
        let rest = said.split(&format!(" {name}: ")).nth(1).expect(name);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    (counted("restored"), counted("restored_in_front"))
}

/// A variable that is not known to be settable by everybody, and two values of it.
fn unsure(real: &Real) -> (&'static str, [&'static str; 2]) {
    match real.flavour() {
        Flavour::MariaDb => ("default_storage_engine", ["Aria", "InnoDB"]),
        Flavour::MySql => ("default_storage_engine", ["MEMORY", "InnoDB"]),
    }
}

/// A restoring command that can fail goes in one command with the statement, for clients that may
/// send several in one text and for those that may not.
#[test]
fn schemas_and_any_variable_cost_no_round_trip() {
    both("no_round_trip", |real, test| {
        fresh_schema(real, test);
        let extra = "backends_max = 1\ngroups = 1";
        let pool = fresh_pool(real, extra);
        let (name, values) = unsure(real);
        let mut clients = [
            login(&pool.address, &app().schema(test)),
            login(
                &pool.address,
                &app().schema("shop").with(cap::MULTI_STATEMENTS),
            ),
        ];
        let schemas = [test, "shop"];
        for (client, value) in clients.iter_mut().zip(values) {
            client.must(&format!("SET {name} = {value}"));
        }
        let mut statements = 2;
        let (all, front) = restored(&pool, statements);
        for _ in 0..10 {
            for ((client, value), schema) in clients.iter_mut().zip(values).zip(schemas) {
                let rows = client.rows(&format!("SELECT DATABASE(), @@{name}"));
                assert_eq!(rows.texts(), [[schema, value]]);
                statements += 1;
            }
        }
        let (all_then, front_then) = restored(&pool, statements);
        assert!(all_then >= all + 20, "{all_then} after {all}");
        assert_eq!(all_then - all, front_then - front, "all were in front");
    });
}

/// A statement whose schema is gone runs nowhere, least of all where its backend stood.
#[test]
fn a_statement_whose_schema_was_dropped_does_not_run() {
    both("dropped_meanwhile", |real, test| {
        fresh_schema(real, test);
        let extra = "backends_max = 1\ngroups = 1";
        let pool = fresh_pool(real, extra);
        let mut admin = real.admin();
        admin.must(&format!("CREATE TABLE {test}.t (v INT)"));
        let doomed = format!("{test}_doomed");
        for capabilities in [0, cap::MULTI_STATEMENTS] {
            admin.must(&format!("CREATE DATABASE {doomed}"));
            admin.must(&format!("CREATE TABLE {doomed}.t (v INT)"));
            let account = app().with(capabilities);
            let mut gone = login(&pool.address, &account.clone().schema(&doomed));
            let mut stays = login(&pool.address, &account.schema(test));
            gone.must("INSERT INTO t VALUES (1)");
            stays.must("INSERT INTO t VALUES (2)");
            admin.must(&format!("DROP DATABASE {doomed}"));
            let failure = gone.failure("INSERT INTO t VALUES (3)");
            assert!(failure.message.contains("1049"), "{failure}");
            assert!(failure.message.contains("not executed"), "{failure}");
            // Its session goes on, without a schema.
            assert_eq!(gone.failure("INSERT INTO t VALUES (4)").code, 1046);
            assert_eq!(stays.value("SELECT GROUP_CONCAT(DISTINCT v) FROM t"), "2");
        }
    });
}
