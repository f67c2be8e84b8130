//! Clients that speak in character sets of several bytes: their texts are read like any others.

use crate::world::*;

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
    for real in pooled_servers() {
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
