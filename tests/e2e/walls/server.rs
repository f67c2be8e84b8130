//! The server's own bounds: max_connections and max_prepared_stmt_count.

use super::{compare, doctor, explained};
use crate::world::*;

/// Statements that each connection prepares: sysbench's, on ten tables.
const STATEMENTS: u64 = 91;

fn target(real: &Real) -> String {
    format!("mysql://root@localhost?socket={}", real.socket())
}

/// An account without privileges, for root gets one connection more.
fn plain(real: &Real) -> Account {
    real.execute(&["CREATE USER plain@'%' IDENTIFIED BY 'plain'"]);
    Account::new("plain", "plain")
}

#[test]
fn connections_of_a_server_end_where_the_doctor_says() {
    let real = or_return!(own(Real::start(&["--max-connections=150"])));
    let account = plain(&real);
    let forecast = doctor(&[], &["--target", &target(&real)]);
    let mut held = Vec::new();
    let refusal = loop {
        match Client::connect(&real.socket(), &account) {
            Ok(client) => held.push(client),
            Err(ClientError::Refused(failure)) => break failure,
            Err(error) => panic!("{error}"),
        }
        assert!(held.len() < 1000, "no wall");
    };
    assert_eq!(refusal.code, 1040, "{refusal:?}");
    assert_eq!(
        explained("ERROR 1040 (08004): Too many connections"),
        ["server-1040"]
    );
    compare(&forecast, "max_connections", held.len() as u64);
}

#[test]
fn prepared_statements_of_a_server_end_where_the_doctor_says() {
    let bound = format!("--max-prepared-stmt-count={}", STATEMENTS * 100 + 50);
    let real = or_return!(own(Real::start(&[&bound])));
    let account = plain(&real);
    let each = STATEMENTS.to_string();
    let forecast = doctor(
        &[],
        &[
            "--target",
            &target(&real),
            "--statements-per-connection",
            &each,
        ],
    );
    let mut held = Vec::new();
    let refusal = 'crowd: loop {
        let mut client = Client::connect(&real.socket(), &account).unwrap();
        let count = usize::try_from(STATEMENTS).unwrap();
        let commands = vec![(Command::StmtPrepare, &b"SELECT ?"[..]); count];
        client.send(&commands).unwrap();
        for _ in &commands {
            let outcomes = client.receive().unwrap();
            if let Outcome::Failed(failure) = &outcomes[0] {
                break 'crowd failure.clone();
            }
        }
        held.push(client);
        assert!(held.len() < 1000, "no wall");
    };
    assert_eq!(refusal.code, 1461, "{refusal:?}");
    let words = format!("ERROR 1461 (42000): {}", refusal.message);
    assert_eq!(explained(&words), ["server-1461"], "{words}");
    compare(&forecast, "max_prepared_stmt_count", held.len() as u64);
}
