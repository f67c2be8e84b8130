//! Tests of the tests' own client and server.

use super::*;
use crate::reply::Outcome;
use wire::auth::Plugin;
use wire::capabilities as cap;
use wire::command::Command;

fn start(test: &str) -> Option<Real> {
    match Real::start(&[]) {
        Ok(real) => Some(real),
        Err(why) if why.contains("is not installed") => {
            skipped(test, &why);
            None
        }
        Err(why) => panic!("{why}"),
    }
}

#[test]
fn a_server_survives_a_kill_and_its_folder_goes_with_it() {
    let Some(mut real) = start("a_server_survives_a_kill_and_its_folder_goes_with_it") else {
        return;
    };
    real.create_user("app", "secret");
    real.execute(&["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT)"]);
    real.kill9();
    assert!(Client::connect(&real.address(), &Account::new("app", "secret")).is_err());
    real.restart().unwrap();
    for account in [
        Account::new("app", "secret").schema("shop"),
        Account::new("app", "secret").without(cap::DEPRECATE_EOF | cap::SESSION_TRACK),
        Account::new("app", "secret").plugin(Plugin::CachingSha2),
    ] {
        let mut client = Client::connect(&real.address(), &account).unwrap();
        assert_eq!(client.value("SELECT COUNT(*) FROM shop.t"), "0");
        let prepared = client.prepare("SELECT ?, 1 + 1, NULL");
        assert_eq!((prepared.params.len(), prepared.columns.len()), (1, 3));
        let outcomes = client.execute(prepared.id, &[Some(b"x")], false).unwrap();
        assert_eq!(outcomes[0].rows().texts(), [["x", "2", "NULL"]]);
        client
            .send(&[
                (Command::Ping, b""),
                (Command::Query, b"DO 1"),
                (Command::Query, b"SELECT 2"),
            ])
            .unwrap();
        assert!(matches!(client.receive().unwrap()[..], [Outcome::Done(_)]));
        assert!(matches!(client.receive().unwrap()[..], [Outcome::Done(_)]));
        assert_eq!(client.receive().unwrap()[0].rows().only(), "2");
        assert_eq!(client.failure("SELECT * FROM shop.missing").code, 1146);
    }
    let wrong = Client::connect(&real.address(), &Account::new("app", "wrong")).unwrap_err();
    assert!(
        wrong
            .to_string()
            .contains("Access denied for user 'app'@'127.0.0.1'"),
        "{wrong}"
    );
    let folder = real.folder().to_path_buf();
    drop(real);
    assert!(!folder.exists());
}
