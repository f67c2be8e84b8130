//! Prepared statements in the binary protocol: many clients, few backends, the same answers.
//!
//! Each story runs with fewer backends than clients, so a statement is executed where another
//! client has used it before, or where nobody has prepared it yet.

use crate::compare::{Story, same, same_on_both};
use crate::world::{
    app, both_servers, direct, login, mysql, own_server, server, start_pool, through,
};
use testkit::client::{Client, ClientError, execution};
use testkit::real::{Flavour, skipped};
use testkit::reply::{Column, Outcome};
use wire::capabilities as cap;
use wire::command::Command;
use wire::status;

const LONGLONG: u8 = 8;
const VAR_STRING: u8 = 253;
/// The arguments of an execution with one parameter: its type, if that is to be sent, and its
/// bytes as they stand in the message.
fn one(id: u32, kind: Option<u8>, value: &[u8]) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.extend_from_slice(&[0, 1, 0, 0, 0, 0]);
    match kind {
        Some(kind) => out.extend_from_slice(&[1, kind, 0]),
        None => out.push(0),
    }
    out.extend_from_slice(value);
    out
}

/// Clients that agreed on different things at login.
fn three(story: &mut Story) -> [usize; 3] {
    let account = app().schema(&story.schema.clone());
    [
        account.clone(),
        account.clone().without(cap::DEPRECATE_EOF),
        account.without(cap::DEPRECATE_EOF | cap::SESSION_TRACK),
    ]
    .map(|account| story.join_as(&account))
}

/// A client prepares what may be no statement; ids are each server's own.
fn prepare(story: &mut Story, who: usize, sql: &str) -> Option<u32> {
    let mut reply = story.client(who).run(Command::StmtPrepare, sql.as_bytes());
    let mut id = None;
    for outcome in reply.iter_mut().flatten() {
        if let Outcome::Prepared(prepared) = outcome {
            id = Some(std::mem::take(&mut prepared.id));
        }
    }
    story.note(&format!("client {who} prepares {sql}"), reply);
    id
}

type Reply = Result<Vec<Outcome>, ClientError>;

/// Takes a statement's id out of the words of errors.
fn without_id(mut reply: Reply, id: u32) -> Reply {
    for outcome in reply.iter_mut().flatten() {
        if let Outcome::Failed(failure) = outcome {
            failure.message = failure.message.replace(&format!("({id})"), "(id)");
        }
    }
    reply
}

/// A command about a statement.
fn about(story: &mut Story, who: usize, command: Command, id: u32, more: &[u8]) {
    let arguments = [&id.to_le_bytes()[..], more].concat();
    let reply = without_id(story.client(who).run(command, &arguments), id);
    story.note(&format!("client {who}: {command:?}"), reply);
}

/// Behind the id in an execution without parameters.
const PLAIN: [u8; 5] = [0, 1, 0, 0, 0];
/// Behind the id in a fetch of one row.
const ONE_ROW: [u8; 4] = [1, 0, 0, 0];

/// A server looks at an execution before it closes what the one before has opened.
#[test]
fn what_cannot_be_read_leaves_a_cursor_open() {
    same_on_both("ps_unread_cursor", 2, |story| {
        let (a, b) = (story.join(), story.join());
        let sql = "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT ?";
        let [id, others] = [a, b].map(|who| story.prepare(who, sql).id);
        for unread in [one(id, Some(LONGLONG), b"ab"), one(id, Some(0xAA), b"x")] {
            let columns = open_cursor(story, a, id, &[Some(b"3")]);
            story.command(a, Command::StmtExecute, &unread);
            fetch(story, a, id, 1, &columns);
            story.execute(b, others, &[Some(b"4")]);
            story.sql(a, "SET @other = 1");
            for _ in 0..3 {
                fetch(story, a, id, 1, &columns);
            }
        }
    });
}

#[test]
fn a_statement_without_a_schema_follows_its_client_into_one() {
    same("ps_no_schema", 2, |story| {
        let (a, b) = (story.join_as(&app()), story.join());
        let qualified = story.prepare(a, "SELECT COUNT(*) FROM information_schema.schemata");
        let own = story.prepare(a, "SELECT DATABASE()");
        for _ in 0..2 {
            story.execute(a, own.id, &[]);
            story.sql(b, "SELECT DATABASE()");
            story.sql(a, "USE shop");
            story.client(a).execute(qualified.id, &[], false).unwrap();
            story.execute(a, own.id, &[]);
        }
    });
}

#[test]
fn altered_tables_are_seen_as_on_a_connection_of_ones_own() {
    same("ps_altered", 2, |story| {
        let clients = three(story);
        let admin = story.join();
        story.sql(admin, "CREATE TABLE t (a INT, b TEXT)");
        story.sql(admin, "INSERT INTO t VALUES (1, 'one')");
        let mut ids = clients.map(|_| Vec::new());
        for change in [
            "DO 0",
            "ALTER TABLE t ADD COLUMN c INT DEFAULT 3",
            "ALTER TABLE t DROP COLUMN b",
            "ALTER TABLE t MODIFY a VARCHAR(20)",
            "RENAME TABLE t TO u",
            "CREATE TABLE t (z INT, y INT, x INT, w INT)",
            "DROP TABLE t",
            "CREATE VIEW t AS SELECT a FROM u",
        ] {
            story.sql(admin, change);
            for (who, ids) in clients.into_iter().zip(&mut ids) {
                ids.extend(prepare(story, who, "SELECT * FROM t"));
                story.sql(who, "SHOW WARNINGS");
                for &id in ids.iter() {
                    story.execute(who, id, &[]);
                }
                story.sql(who, "SHOW WARNINGS");
            }
        }
    });
}

#[test]
fn ids_that_mean_nothing_are_refused_in_the_servers_words() {
    same("ps_unknown", 1, |story| {
        let (a, b) = (story.join(), story.join());
        let known = story.prepare(a, "SELECT 1").id;
        story.prepare(b, "SELECT 2");
        for id in [known, 0x7000_0077, 0, u32::MAX - 1] {
            about(story, b, Command::StmtClose, id, &[]);
            about(story, b, Command::StmtExecute, id, &PLAIN);
            about(story, b, Command::StmtReset, id, &[]);
            about(story, b, Command::StmtFetch, id, &ONE_ROW);
        }
        for _ in 0..2 {
            about(story, a, Command::StmtClose, known, &[]);
            about(story, a, Command::StmtExecute, known, &PLAIN);
        }
        let next = story.prepare(a, "SELECT 3").id;
        assert_ne!(next, known, "an id is not given twice");
        about(story, a, Command::StmtClose, known, &[]);
        about(story, a, Command::StmtExecute, next, &PLAIN);
        about(story, a, Command::StmtFetch, next, &ONE_ROW);
        story.command(a, Command::ResetConnection, b"");
        about(story, a, Command::StmtExecute, next, &PLAIN);
    });
}

#[test]
fn the_last_prepared_statement_needs_no_id() {
    same("ps_last", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for who in [a, b] {
            let execute = execution(u32::MAX, &[], false);
            let prepare = format!("SELECT {who}");
            let commands = [
                (Command::StmtPrepare, prepare.as_bytes()),
                (Command::StmtExecute, &execute[..]),
                (Command::StmtPrepare, b"SELECT * FROM missing"),
                (Command::StmtExecute, &execute[..]),
                (Command::StmtPrepare, b"SELECT 'next'"),
                (Command::StmtExecute, &execute[..]),
                (Command::StmtClose, &[0xFF; 4][..]),
                (Command::StmtExecute, &execute[..]),
            ];
            story.client(who).send(&commands).unwrap();
            for step in 0..commands.len() - 1 {
                let mut reply = story.client(who).receive();
                for outcome in reply.iter_mut().flatten() {
                    if let Outcome::Prepared(prepared) = outcome {
                        prepared.id = 0;
                    }
                }
                story.note(&format!("client {who}, step {step}"), reply);
            }
        }
    });
}

#[test]
fn what_a_statement_leaves_is_its_clients() {
    same("ps_leaves", 3, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (v TINYINT)");
        let warns = story.prepare(a, "INSERT INTO t VALUES (CAST(? AS INT))");
        let fails = story.prepare(a, "SELECT 1 FROM t HAVING (SELECT 1 UNION SELECT 2)");
        let counts = story.prepare(a, "SELECT ROW_COUNT()");
        let found = story.prepare(a, "SELECT FOUND_ROWS()");
        let variable = story.prepare(a, "SELECT @x := 5");
        story.sql(b, "SELECT 1/0");
        story.execute(a, warns.id, &[Some(b"7 apples")]);
        story.sql(b, "SELECT 1");
        story.sql(a, "SHOW WARNINGS");
        story.execute(a, warns.id, &[Some(b"9")]);
        story.sql(b, "INSERT INTO t VALUES (1), (2), (3)");
        story.execute(a, counts.id, &[]);
        story.execute(a, fails.id, &[]);
        story.sql(b, "DO 0");
        story.sql(a, "SHOW WARNINGS");
        story.sql(a, "SELECT * FROM t LIMIT 2");
        story.sql(b, "SELECT 1");
        story.execute(a, found.id, &[]);
        story.command(a, Command::StmtReset, &counts.id.to_le_bytes());
        story.execute(a, counts.id, &[]);
        story.execute(a, variable.id, &[]);
        story.execute(b, u32::MAX, &[]);
        story.sql(a, "SELECT @x");
        story.sql(b, "SELECT @x");
    });
}

fn open_cursor(story: &mut Story, who: usize, id: u32, params: &[Option<&[u8]>]) -> Vec<Column> {
    let opened = without_id(story.client(who).execute(id, params, true), id);
    let outcomes = story.note(&format!("client {who} opens a cursor"), opened);
    match outcomes.first() {
        Some(Outcome::Rows(rows)) => rows.columns.clone(),
        _ => Vec::new(),
    }
}

fn fetch(story: &mut Story, who: usize, id: u32, rows: u32, columns: &[Column]) {
    let fetched = without_id(story.client(who).fetch(id, rows, columns), id);
    story.note(&format!("client {who} fetches {rows}"), fetched);
}

/// MariaDB 10.11 answers ANALYZE of a query with two results in one where a cursor is asked for,
/// and MySQL 9.7 ends itself at EXPLAIN of one: through the pool these are results without one.
#[test]
fn an_explanation_is_a_result_though_a_cursor_is_asked_for() {
    for real in both_servers("explains_with_cursor") {
        let way = through(real, 1);
        let mut client = login(&way, &app());
        let mysql = real.flavour() == Flavour::MySql;
        let explains = if mysql { "EXPLAIN" } else { "ANALYZE" };
        let id = client.prepare(&format!("{explains} SELECT 1 AS a")).id;
        for _ in 0..2 {
            let told = client.execute(id, &[], true).unwrap();
            let [Outcome::Rows(rows)] = &told[..] else {
                panic!("{told:?}");
            };
            assert!(!rows.rows.is_empty());
            let flags = status::METADATA_CHANGED | status::CURSOR_EXISTS;
            assert_eq!(rows.end.status & flags, 0, "{rows:?}");
        }
    }
}

#[test]
fn cursors_stay_open_beside_other_statements() {
    same("ps_cursors", 3, |story| {
        let clients = three(story);
        let other = story.join();
        for who in clients {
            let text = "SELECT seq FROM seq_1_to_5";
            let (one, two) = (story.prepare(who, text).id, story.prepare(who, text).id);
            let (none, empty) = (
                story.prepare(who, "DO 1").id,
                story
                    .prepare(who, "SELECT seq FROM seq_1_to_5 WHERE seq > 9")
                    .id,
            );
            let columns = open_cursor(story, who, one, &[]);
            fetch(story, who, one, 2, &columns);
            open_cursor(story, who, two, &[]);
            story.sql(other, "SELECT 1");
            story.execute(who, none, &[]);
            open_cursor(story, who, none, &[]);
            fetch(story, who, two, 3, &columns);
            fetch(story, who, one, 2, &columns);
            fetch(story, who, none, 2, &columns);
            story.command(who, Command::StmtReset, &two.to_le_bytes());
            fetch(story, who, two, 2, &columns);
            fetch(story, who, one, 2, &columns);
            fetch(story, who, one, 2, &columns);
            open_cursor(story, who, empty, &[]);
            fetch(story, who, empty, 2, &columns);
            // Executed again without one, and with one again.
            open_cursor(story, who, one, &[]);
            story.execute(who, one, &[]);
            fetch(story, who, one, 2, &columns);
            open_cursor(story, who, one, &[]);
            open_cursor(story, who, one, &[]);
            fetch(story, who, one, 1, &columns);
            story.command(who, Command::StmtClose, &one.to_le_bytes());
            fetch(story, who, one, 1, &columns);
        }
    });
}

/// A question that is answered elsewhere is executed as another text, with the count in it.
#[test]
fn a_cursor_is_open_on_a_question_that_was_answered_elsewhere() {
    same("ps_cursor_asks", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (v INT)");
        for text in ["SELECT FOUND_ROWS()", "SELECT ROW_COUNT(), 'x'"] {
            let asks = story.prepare(a, text).id;
            for rows in [3, 4] {
                story.sql(a, &format!("SELECT seq FROM seq_1_to_{rows}"));
                story.sql(b, "SELECT seq FROM seq_1_to_9");
                let columns = open_cursor(story, a, asks, &[]);
                fetch(story, a, asks, 1, &columns);
                fetch(story, a, asks, 1, &columns);
                // Executed again while the other is open.
                story.sql(a, "SELECT seq FROM seq_1_to_5");
                open_cursor(story, a, asks, &[]);
                story.sql(a, "INSERT INTO t VALUES (1), (2)");
                story.sql(a, "SELECT v FROM t");
                open_cursor(story, a, asks, &[]);
                fetch(story, a, asks, 2, &columns);
                story.command(a, Command::StmtReset, &asks.to_le_bytes());
                fetch(story, a, asks, 2, &columns);
                story.sql(b, "SELECT 1");
            }
            story.sql(a, "SELECT seq FROM seq_1_to_2");
            story.sql(b, "SELECT 1");
            open_cursor(story, a, asks, &[]);
            story.command(a, Command::StmtClose, &asks.to_le_bytes());
            story.sql(b, "SELECT 1");
        }
    });
}

#[test]
fn a_backend_is_free_again_when_the_last_cursor_is_closed() {
    same("ps_cursor_ends", 1, |story| {
        let clients = three(story);
        let ids = clients.map(|who| story.prepare(who, "SELECT seq FROM seq_1_to_5").id);
        for (way, (who, id)) in clients.into_iter().zip(ids).enumerate() {
            let columns = open_cursor(story, who, id, &[]);
            fetch(story, who, id, 2, &columns);
            // With one backend the others could not go on before this.
            match way {
                0 => fetch(story, who, id, 9, &columns),
                1 => story.command(who, Command::StmtReset, &id.to_le_bytes()),
                _ => story.command(who, Command::StmtClose, &id.to_le_bytes()),
            }
            for who in clients {
                story.sql(who, "SELECT 'still here'");
            }
        }
    });
}

/// Number of statements that the server holds, over all connections.
fn prepared_count(client: &mut Client) -> usize {
    let rows = client.rows("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
    rows.texts()[0][1].parse().unwrap()
}

#[test]
fn the_server_never_holds_more_statements_than_the_budget() {
    let test = "the_server_never_holds_more_statements_than_the_budget";
    if direct() {
        return skipped(test, "the pool's budget is meant");
    }
    let Some(real) = own_server(test) else { return };
    real.create_user("app", "app");
    let number = |name: &str, default: usize| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap())
    };
    let (clients, budget) = (number("ONRAMP_PREPARED_CLIENTS", 60), 40);
    let settings =
        format!("groups = 1\nbackends_max = 4\nprepared_max = {budget}\nclients_max = 20000");
    let pool = start_pool(&real, "pool.toml", &settings);
    let mut watcher = login(&real.address(), &app());
    let mut all: Vec<(Client, Vec<u32>)> = Vec::new();
    for who in 0..clients {
        let mut client = login(&pool.address, &app());
        let ids = (0..91).map(|i| {
            let sql = format!("SELECT {i} + ?, {}", who % 3);
            client.prepare(&sql).id
        });
        let ids = ids.collect();
        all.push((client, ids));
        let count = prepared_count(&mut watcher);
        assert!(
            count <= budget,
            "{count} statements, the budget is {budget}"
        );
    }
    for (who, (client, ids)) in all.iter_mut().enumerate() {
        for i in [0, 45, 90] {
            let outcomes = client.execute(ids[i], &[Some(b"1000")], false).unwrap();
            let row = outcomes[0].rows().texts()[0].clone();
            let expected = [(1000 + i).to_string(), (who % 3).to_string()];
            assert_eq!(row, expected, "client {who}");
        }
    }
    let count = prepared_count(&mut watcher);
    assert!(count <= budget && count > 0, "{count} statements");
    drop(all);
}

/// MySQL 9.7 does not answer an execution without a cursor of a statement that was first executed
/// with one; who shares the statement must not meet that.
#[test]
fn cursors_of_others_do_not_spoil_a_statement() {
    let test = "ps_cursors_of_others";
    let Some(real) = crate::world::mysql(test) else {
        return;
    };
    crate::compare::same_on(real, test, 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (v INT)");
        story.sql(a, "INSERT INTO t VALUES (1), (2)");
        for round in 0..2 {
            let with = story.prepare(a, "SELECT v FROM t ORDER BY v").id;
            let columns = open_cursor(story, a, with, &[]);
            let rows = story.client(a).fetch(with, 9, &columns);
            story.note("all rows", rows);
            let without = story.prepare(b, "SELECT v FROM t ORDER BY v").id;
            story.execute(b, without, &[]);
            story.execute(b, without, &[]);
            story.say(&format!("{round}"));
        }
    });
}

/// On MySQL 9.7 itself the client would wait for ever, and whoever reads the reply.
#[test]
fn ones_own_cursor_does_not_spoil_an_execution_without_one() {
    let test = "ones_own_cursor_does_not_spoil_an_execution_without_one";
    if direct() {
        return skipped(test, "MySQL does not end its reply");
    }
    let Some(real) = crate::world::mysql(test) else {
        return;
    };
    let pool = through(real, 1);
    for account in [app(), app().without(cap::DEPRECATE_EOF)] {
        let (mut client, mut other) = (login(&pool, &account), login(&pool, &app()));
        let id = client.prepare("SELECT 7 UNION SELECT 8").id;
        for _ in 0..2 {
            let opened = client.execute(id, &[], true).unwrap();
            let Some(Outcome::Rows(rows)) = opened.first() else {
                panic!("{opened:?}");
            };
            let columns = rows.columns.clone();
            for _ in 0..2 {
                let outcomes = client.execute(id, &[], false).unwrap();
                assert_eq!(outcomes[0].rows().texts(), [["7"], ["8"]]);
            }
            let fetched = client.fetch(id, 1, &columns);
            assert!(format!("{fetched:?}").contains("1421"), "{fetched:?}");
        }
        assert_eq!(client.value("SELECT 9"), "9");
        assert_eq!(other.value("SELECT 9"), "9");
    }
}

/// Commands without an answer: where they are too short, MySQL has one, which comes first.
#[test]
fn what_is_too_short_to_be_long_data_or_a_close_is_answered_as_by_the_server() {
    same_on_both("ps_cut_short", 1, |story| {
        for command in [Command::StmtSendLongData, Command::StmtClose] {
            for len in 0..8 {
                let who = story.join();
                let id = story.prepare(who, "SELECT ?").id;
                let whole = [&id.to_le_bytes()[..], &[0, 0, b'x', b'y']].concat();
                story.client(who).run(command, &whole[..len]).unwrap();
                story.sql(who, "SELECT 5");
                story.sql(who, "SELECT 6");
            }
        }
    });
}

/// Executions that are too short for their statement, by the statement's id and by that which
/// stands for the last one, byte for byte.
#[test]
fn malformed_executions_are_refused_as_by_the_server() {
    let tell = |story: &mut Story| {
        let account = app().schema(&story.schema);
        let old = story.join_as(&account.clone().without(cap::DEPRECATE_EOF));
        for who in [story.join_as(&account), old] {
            for sql in ["SELECT ?", "SELECT 1"] {
                let own = prepare(story, who, sql).unwrap();
                // The last is far from those that a server has given: MariaDB goes on counting on a
                // thread that a client which has left has used.
                for id in [u32::MAX, own, 0x7000_0077] {
                    let head = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
                    for (front, behind) in [
                        (4, &b""[..]),
                        (5, b""),
                        (9, b""),
                        (9, b"\x01"),
                        (9, b"\0"),
                        (9, b"\0\0"),
                        (9, b"\x01\0"),
                        (9, b"\0\x01"),
                        (9, b"\0\x01\xfd"),
                        (9, b"\0\x01\xfd\0"),
                        (9, b"\x01\x01\xfd\0"),
                        (9, b"\0\x01\xfd\0\x02ab"),
                    ] {
                        let arguments = [&head[..front], behind].concat();
                        let reply = story.client(who).run(Command::StmtExecute, &arguments);
                        let reply = without_id(reply, id);
                        story.note(&format!("{sql}: {front} {behind:x?}"), reply);
                        // The session lives on.
                        story.sql(who, "SELECT 5");
                    }
                }
            }
        }
    };
    same_on_both("ps_malformed", 1, tell);
}

/// A client that closes nothing is stopped at its bound with the server's own error, and others
/// prepare on.
#[test]
fn a_client_that_closes_no_statement_is_stopped_at_its_bound() {
    const HELD_MAX: u32 = 16_382;
    let test = "ps_held_max";
    for (real, name) in [(server(test), "held.toml"), (mysql(test), "held_my.toml")] {
        let Some(real) = real else { continue };
        if direct() {
            return skipped(test, "it is about the pool");
        }
        let pool = start_pool(real, name, "groups = 1\nbackends_max = 2");
        let mut client = login(&pool.address, &app());
        let prepare = (Command::StmtPrepare, &b"SELECT 1"[..]);
        let mut left = HELD_MAX;
        while left > 0 {
            let some = left.min(100);
            client.send(&vec![prepare; some as usize]).unwrap();
            for _ in 0..some {
                let reply = client.receive().unwrap();
                assert!(matches!(reply[..], [Outcome::Prepared(_)]), "{reply:?}");
            }
            left -= some;
        }
        for sql in ["SELECT 1", "SELECT 2"] {
            let refused = client.run(Command::StmtPrepare, sql.as_bytes()).unwrap();
            let failure = refused[0].failure();
            assert_eq!((failure.code, &failure.state[..]), (1461, "42000"));
            assert!(failure.message.contains("close those"), "{failure}");
        }
        let mut other = login(&pool.address, &app());
        let id = other.prepare("SELECT 'it'").id;
        assert!(other.execute(id, &[], false).is_ok());
        // Those that it has are there, and another takes the place of one that is closed.
        assert!(client.execute(HELD_MAX, &[], false).is_ok());
        client
            .send(&[(Command::StmtClose, &HELD_MAX.to_le_bytes())])
            .unwrap();
        let id = client.prepare("SELECT 3").id;
        assert!(client.execute(id, &[], false).is_ok());
    }
}

#[test]
fn long_data_goes_with_its_execution() {
    same("ps_long", 1, |story| {
        let (a, b) = (story.join(), story.join());
        let ids = [a, b].map(|who| story.prepare(who, "SELECT CONCAT(?, '!')").id);
        let send = |story: &mut Story, who: usize, param: u8, data: &[u8]| {
            let arguments = [&ids[who].to_le_bytes()[..], &[param, 0], data].concat();
            story.command(who, Command::StmtSendLongData, &arguments);
        };
        send(story, a, 0, b"from a");
        send(story, b, 0, b"from b");
        send(story, a, 0, b", more");
        story.sql(a, "SELECT 1");
        for who in [a, b] {
            let execute = one(ids[who], Some(VAR_STRING), b"");
            story.command(who, Command::StmtExecute, &execute);
            story.execute(who, ids[who], &[Some(b"in the message")]);
        }
        send(story, a, 0, b"dropped");
        story.command(a, Command::StmtReset, &ids[a].to_le_bytes());
        story.execute(a, ids[a], &[Some(b"kept")]);
        // No such parameter: the execution says so, the next one is well again.
        send(story, a, 9, b"x");
        story.execute(a, ids[a], &[Some(b"with a mistake")]);
        story.execute(a, ids[a], &[Some(b"without")]);
        send(story, b, 0, &[b'y'; 300_000]);
        let execute = one(ids[b], Some(VAR_STRING), b"");
        story.command(b, Command::StmtExecute, &execute);
    });
}
