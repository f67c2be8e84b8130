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
    let counted = |name| number_of(&said, name);
    (counted("restored"), counted("restored_in_front"))
}

/// A restoring command that can fail goes in one command with the statement, for clients that may
/// send several in one text and for those that may not.
#[test]
fn schemas_and_any_variable_cost_no_round_trip() {
    both("no_round_trip", |real, test| {
        fresh_schema(real, test);
        let extra = "backends_max = 1\ngroups = 1";
        let pool = fresh_pool(real, extra);
        // A variable that is not known to be settable by everybody.
        let name = "default_storage_engine";
        let values = match real.flavour() {
            Flavour::MariaDb => ["Aria", "InnoDB"],
            Flavour::MySql => ["MEMORY", "InnoDB"],
        };
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
