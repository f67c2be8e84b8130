//! Commands that a client sends before its login is answered: they run behind it, in their order.

use crate::compare::{Story, same, same_on};
use crate::world::*;
use wire::auth::Plugin;

/// Commands behind a login: state that the next command reads, and a reply of the pool's own.
const SAID: [(Command, &[u8]); 6] = [
    (Command::Query, b"SELECT 1, DATABASE()"),
    (Command::Ping, b""),
    (Command::Query, b"SET time_zone = '+03:00'"),
    (Command::Query, b"SELECT @@time_zone, @a"),
    (Command::Query, b"SELECT * FROM missing"),
    (Command::Query, b"SELECT 'last'"),
];

/// Accounts whose login waits for a backend, and others.
fn accounts(schema: &str) -> [Account; 4] {
    [
        app(),
        app().schema(schema),
        app().schema("shop"),
        app().schema("nowhere"),
    ]
}

fn say_behind_logins(story: &mut Story, more: u32) {
    for account in accounts(&story.schema.clone()) {
        story.join_saying(&account.with(more), &SAID);
    }
}

#[test]
fn commands_sent_with_the_login_run_behind_it() {
    for more in [0, cap::COMPRESS] {
        same("pipelined", 2, |story| say_behind_logins(story, more));
    }
}

#[test]
fn commands_sent_with_the_login_run_behind_it_on_mysql() {
    let Some(real) = pooled(mysql) else { return };
    same_on(real, "pipelined", 2, |story| {
        for more in [0, cap::COMPRESS, cap::ZSTD] {
            for account in accounts(&story.schema.clone()) {
                let account = account.plugin(Plugin::CachingSha2).with(more);
                // From here on the server knows the password, and asks no question of its own.
                story.join_as(&app().plugin(Plugin::CachingSha2));
                story.join_saying(&account, &SAID);
            }
        }
    });
}

/// More than is read at once, so the rest is still in the socket when the login is done. The
/// backend stands in the client's schema already, which no login has tried yet.
#[test]
fn what_is_read_after_the_login_follows_what_was_read_with_it() {
    same("pipelined_long", 1, |story| {
        for more in [0, cap::COMPRESS] {
            for len in [65_000, 70_000, 200_000] {
                let schema = format!("long_{more}_{len}");
                let first = story.join();
                story.sql(first, &format!("CREATE DATABASE IF NOT EXISTS {schema}"));
                story.sql(first, &format!("USE {schema}"));
                let sql = format!("SELECT LENGTH('{}'), DATABASE()", "x".repeat(len));
                let commands = [
                    (Command::Query, &b"SELECT 'first'"[..]),
                    (Command::Query, sql.as_bytes()),
                    (Command::Query, b"SELECT 'between'"),
                    (Command::Query, sql.as_bytes()),
                    (Command::Query, b"SELECT 'last'"),
                ];
                story.join_saying(&app().schema(&schema).with(more), &commands);
                story.sql(first, &format!("DROP DATABASE {schema}"));
            }
        }
    });
}

/// A server asks for an answer in another plugin, and finds a command in its place: none of them
/// runs it, whatever they make of the connection.
#[test]
fn a_command_in_place_of_an_answer_is_none() {
    let Some(real) = pooled(server) else { return };
    fresh_schema(real, "pipelined_switch");
    real.execute(&["CREATE TABLE pipelined_switch.t (id INT)"]);
    let way = through(real, 1);
    let insert: &[u8] = b"INSERT INTO pipelined_switch.t VALUES (1)";
    let command = (Command::Query, insert);
    // The pool wants another plugin of this account than the one that it is told.
    let account = Account::new("sha", SHA_PASSWORD).plugin(Plugin::Native);
    let said = Client::connect_saying(&way, &account, &[command]);
    assert!(said.is_err(), "let in with a command for an answer");
    // A change of user asks for an answer as well.
    let mut client = login(&way, &app());
    let change = b"other\0\0pipelined_switch\0\x2d\0mysql_native_password\0";
    client
        .send(&[(Command::ChangeUser, change), command])
        .unwrap();
    while client.wait().is_ok() {}
    let mut witness = login(&way, &app().schema("pipelined_switch"));
    assert_eq!(witness.value("SELECT COUNT(*) FROM t"), "0");
}
