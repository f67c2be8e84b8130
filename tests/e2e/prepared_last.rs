//! MariaDB's id -1: the statement that this connection prepared last, so that a driver can prepare
//! and execute in one write, before it knows the id.
//!
//! Each client's last one is its own, whatever others prepare on the same backend meanwhile, and
//! whatever else it says itself between the two. Everything is told in bytes.

use crate::compare::{Story, same, same_on, same_on_both};
use crate::metrics::until;
use crate::world::{HOLD, app, found, login, mysql, start_pool};
use testkit::real::Real;
use testkit::reply::Outcome;
use wire::capabilities::EXTENDED_BULK;
use wire::command::Command;

const LAST: &[u8] = b"\xff\xff\xff\xff";
/// Behind the id: no cursor, one iteration.
const PLAIN: &[u8] = b"\0\x01\0\0\0";
/// One INT, 7, with its type; and 8 without.
const SEVEN: &[u8] = b"\0\x01\0\0\0\0\x01\x03\0\x07\0\0\0";
const EIGHT: &[u8] = b"\0\x01\0\0\0\0\0\x08\0\0\0";

fn last(rest: &[u8]) -> Vec<u8> {
    [LAST, rest].concat()
}

/// Says all in one write, then hears all answers; ids are each server's own.
fn in_one_write(story: &mut Story, who: usize, commands: &[(Command, &[u8])]) {
    story.client(who).send(commands).unwrap();
    for (command, arguments) in commands {
        if matches!(command, Command::StmtClose | Command::StmtSendLongData) {
            continue;
        }
        let mut reply = story.client(who).receive();
        for outcome in reply.iter_mut().flatten() {
            if let Outcome::Prepared(prepared) = outcome {
                prepared.id = 0;
            }
        }
        let text = String::from_utf8_lossy(arguments);
        story.note(&format!("client {who}: {command:?} {text}"), reply);
    }
}

fn query(sql: &str) -> (Command, &[u8]) {
    (Command::Query, sql.as_bytes())
}

fn prepare(sql: &str) -> (Command, &[u8]) {
    (Command::StmtPrepare, sql.as_bytes())
}

fn run(arguments: &[u8]) -> (Command, &[u8]) {
    (Command::StmtExecute, arguments)
}

fn long(arguments: &[u8]) -> (Command, &[u8]) {
    (Command::StmtSendLongData, arguments)
}

fn tell(story: &mut Story, clients: &[usize]) {
    let (seven, eight, plain) = (last(SEVEN), last(EIGHT), last(PLAIN));
    for &who in clients {
        // With parameters, and again with the types of the execution before.
        in_one_write(
            story,
            who,
            &[prepare("SELECT ? + 1"), run(&seven), run(&eight)],
        );
    }
    for &who in clients {
        // Others have prepared in between, on the same backend.
        in_one_write(story, who, &[run(&eight)]);
        // What stands between the two makes no difference, or does: the server decides.
        for between in [
            query("SELECT 'between'"),
            query("SELECT * FROM missing"),
            query("SET @x = 1"),
            query("DEALLOCATE PREPARE named"),
            (Command::Ping, b""),
            (Command::InitDb, b"missing"),
            (Command::StmtReset, LAST),
        ] {
            in_one_write(story, who, &[prepare("SELECT ? * 2"), between, run(&seven)]);
        }
        in_one_write(
            story,
            who,
            &[prepare("SELECT 'first'"), prepare("SELECT"), run(&plain)],
        );
        in_one_write(
            story,
            who,
            &[run(&plain), prepare("SELECT 'then'"), run(&plain)],
        );
    }
    for &who in clients {
        let text = last(b"\0\0long ");
        let more = last(b"\0\0data");
        let value = last(b"\0\x01\0\0\0\0\x01\xfd\0");
        let commands = [
            prepare("SELECT CONCAT(?, '!')"),
            long(&text),
            long(&more),
            run(&value),
        ];
        in_one_write(story, who, &commands);
        let cursor = last(b"\x01\x01\0\0\0");
        let opened = [prepare("SELECT seq FROM seq_1_to_3"), run(&cursor)];
        in_one_write(story, who, &opened);
        in_one_write(story, who, &[(Command::StmtReset, LAST)]);
        in_one_write(story, who, &[(Command::StmtClose, LAST), run(&plain)]);
        in_one_write(
            story,
            who,
            &[prepare("SELECT 'gone'"), (Command::ResetConnection, b"")],
        );
        in_one_write(story, who, &[run(&plain)]);
    }
}

#[test]
fn a_statement_is_prepared_and_executed_in_one_write() {
    for backends in [1, 2] {
        same("last_in_one_write", backends, |story| {
            let clients = [story.join(), story.join(), story.join()];
            tell(story, &clients);
        });
    }
}

#[test]
fn bulk_executions_need_no_id_either() {
    same("last_in_bulk", 1, |story| {
        let account = app().schema(&story.schema).extended(EXTENDED_BULK);
        let (a, b) = (story.join_as(&account), story.join_as(&account));
        story.sql(a, "CREATE TABLE t (who INT, v INT)");
        for (who, sql) in [
            (a, &b"INSERT INTO t VALUES (1, ?)"[..]),
            (b, b"INSERT INTO t VALUES (2, ?)"),
            (a, b"INSERT INTO t VALUES (3, ?)"),
        ] {
            // Types are sent; two rows, each with no indicator.
            let rows = last(b"\x80\0\x03\0\0\x05\0\0\0\0\x06\0\0\0");
            let more = last(b"\0\0\0\x07\0\0\0");
            let commands = [
                (Command::StmtPrepare, sql),
                (Command::StmtBulkExecute, &rows[..]),
                (Command::StmtBulkExecute, &more[..]),
            ];
            in_one_write(story, who, &commands);
        }
        story.sql(b, "SELECT * FROM t ORDER BY who, v");
    });
}

/// MySQL knows no such id.
#[test]
fn mysql_takes_the_last_id_for_an_unknown_one() {
    let test = "last_on_mysql";
    let Some(real) = mysql(test) else { return };
    same_on(real, test, 1, |story| {
        let (a, b) = (story.join(), story.join());
        let plain = last(PLAIN);
        for who in [a, b, a] {
            let prepare = (Command::StmtPrepare, &b"SELECT 'once'"[..]);
            in_one_write(story, who, &[prepare, run(&plain)]);
            in_one_write(story, who, &[(Command::StmtReset, LAST), query("SELECT 2")]);
            in_one_write(story, who, &[(Command::StmtFetch, &last(b"\x01\0\0\0"))]);
        }
    });
}

/// Errors about statements that are not there are asked about like any others.
#[test]
fn an_unknown_statement_is_an_error_of_the_session() {
    let test = "unknown_is_an_error";
    same_on_both(test, 1, |story| {
        let (one, other) = (story.join(), story.join());
        // Far from the ids that a server has given by now.
        let unknown = 0x7000_0077u32.to_le_bytes();
        let fetch = [&unknown[..], &1u32.to_le_bytes()].concat();
        let execute = [&unknown[..], &[0, 1, 0, 0, 0]].concat();
        let id = story.prepare(one, "SELECT 1").id.to_le_bytes();
        let closed = [id, 1u32.to_le_bytes()].concat();
        for (command, arguments) in [
            (Command::StmtFetch, &fetch[..]),
            (Command::StmtExecute, &execute),
            (Command::StmtReset, &unknown),
            (Command::StmtFetch, &closed),
        ] {
            for before in ["SELECT CAST('x' AS SIGNED)", "DO 1"] {
                for question in ["SHOW WARNINGS", "SELECT @@error_count, ROW_COUNT()"] {
                    story.sql(one, before);
                    story.sql(other, "SELECT CAST('other' AS SIGNED), 1 / 0");
                    story.command(one, command, arguments);
                    story.sql(other, "SELECT 2");
                    story.command(one, Command::SetOption, &[0, 0]);
                    story.sql(one, question);
                }
            }
        }
    });
}

/// The server takes few statements: what backends keep for others gives way, and clients may have
/// prepared more than that all the same.
#[test]
fn a_server_that_takes_few_statements_refuses_none() {
    let extra = ["--max-prepared-stmt-count=8"];
    let test = "a_server_that_takes_few_statements_refuses_none";
    for started in [Real::start(&extra), Real::start_mysql(&extra)] {
        let started = started.inspect(|real| real.create_user("app", "app"));
        let Some(real) = found(started, test) else {
            continue;
        };
        let pool = start_pool(&real, "few.toml", "backends_max = 4\ngroups = 1");
        let mut clients = Vec::new();
        for number in 0..4 {
            let mut client = login(&pool.address, &app());
            client.must(HOLD);
            let texts = (0..6).map(|other| format!("SELECT {number}{other}, ?"));
            let prepared: Vec<_> = texts.map(|sql| client.prepare(&sql)).collect();
            clients.push((client, prepared));
        }
        for (client, prepared) in &mut clients {
            for statement in prepared {
                let reply = client.execute(statement.id, &[Some(b"1")], false).unwrap();
                assert!(matches!(reply[..], [Outcome::Rows(_)]), "{reply:?}");
            }
        }
        let count = real
            .admin()
            .rows("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
        let count: u32 = count.texts()[0][1].parse().unwrap();
        assert!(count <= 4, "{count} statements for 4 backends");
    }
}

/// The server takes fewer statements than before: the pool closes those that it keeps for later,
/// and clients prepare on.
#[test]
fn kept_statements_give_way_where_the_server_takes_fewer() {
    const STATEMENTS: usize = 40;
    const FEWER: usize = 20;
    let test = "ps_fewer";
    for start in [Real::start, Real::start_mysql] {
        let Some(real) = found(start(&[]), test) else {
            continue;
        };
        real.create_user("app", "app");
        let pool = start_pool(&real, "fewer.toml", "groups = 1\nbackends_max = 2");
        let mut clients = [(); 2].map(|()| login(&pool.address, &app()));
        for client in &mut clients {
            client.must(HOLD);
        }
        for (who, client) in clients.iter_mut().enumerate() {
            for number in 0..STATEMENTS {
                client.prepare(&format!("SELECT {who}, {number}"));
            }
            client.must("COMMIT");
        }
        let mut admin = real.admin();
        let mut count = || {
            let rows = admin.rows("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
            rows.texts()[0][1].parse::<usize>().unwrap()
        };
        assert!(count() >= 2 * STATEMENTS);
        real.admin()
            .must(&format!("SET GLOBAL max_prepared_stmt_count = {FEWER}"));
        // The pool looks at it once a second.
        until(|| match count() {
            kept if kept <= FEWER => Ok(()),
            kept => Err(format!("{kept} statements are kept")),
        });
        for client in &mut clients {
            let id = client.prepare("SELECT 'one more'").id;
            assert!(client.execute(id, &[], false).is_ok());
        }
    }
}
