//! Reports of a session's changes by the servers, and their order: the trackers, told through the
//! pool.

use crate::compare::{Story, same_on_both};
use crate::world::{app, login, mysql_with_gtids, start_pool};
use std::collections::BTreeSet;
use testkit::reply::Outcome;
use wire::capabilities as cap;
use wire::command::Command;

/// A client that reads its own writes waits for the number of its last one: it is to be told of
/// each, whatever has to be restored in front.
#[test]
fn each_write_tells_its_gtid() {
    let Some(real) = mysql_with_gtids("tells_each_gtid") else {
        return;
    };
    real.create_user("app", "app");
    real.admin().must("CREATE DATABASE s1");
    real.admin().must("CREATE DATABASE s2");
    let pool = start_pool(&real, "gtids.toml", "backends_max = 1\ngroups = 1");
    let account = |schema| app().schema(schema).with(cap::SESSION_TRACK);
    let mut writes = login(&pool.address, &account("s1"));
    let mut other = login(&pool.address, &account("s2"));
    writes.must("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    writes.must("SET session_track_gtids = OWN_GTID");
    let insert = writes.prepare("INSERT INTO t (v) VALUES (7)").id;
    let mut told = BTreeSet::new();
    let mut take = |outcomes: &[Outcome], sql: &str| {
        let [.., Outcome::Done(done)] = outcomes else {
            panic!("{sql}: {outcomes:?}");
        };
        let gtid = done
            .changes
            .iter()
            .find(|change| change.starts_with("gtids="));
        let gtid = gtid.unwrap_or_else(|| panic!("{sql}: {done:?}"));
        assert!(told.insert(gtid.clone()), "{sql}: {gtid} again");
    };
    for between in [
        "DO 1",
        "SELECT 1",
        "SET time_zone = '+03:00'",
        "SET @a = 1, group_concat_max_len = 77",
        "INSERT INTO s1.t (v) VALUES (1)",
        "USE s2",
        "SET SESSION session_track_gtids = ALL_GTIDS",
    ] {
        other.must(between);
        take(
            &writes.query("INSERT INTO t (v) VALUES (2)").unwrap(),
            between,
        );
        other.must(between);
        take(&writes.execute(insert, &[], false).unwrap(), between);
        other.must(between);
        writes.must("BEGIN");
        writes.must("INSERT INTO t (v) VALUES (3)");
        take(&writes.query("COMMIT").unwrap(), between);
    }
}

#[test]
fn what_an_eof_cannot_report_comes_with_the_next_ok() {
    let tell = |story: &mut Story| {
        let other = format!("{}_b", story.schema);
        let admin = story.join();
        story.sql(admin, &format!("CREATE DATABASE {other}"));
        story.sql(
            admin,
            // It may take a lock, so that it pins: on MariaDB the OK of a function counts
            // conditions of before, which another backend does not have.
            "CREATE FUNCTION sets(x INT) RETURNS INT DETERMINISTIC BEGIN \
             IF x < 0 THEN DO GET_LOCK('unreported', 0); END IF; \
             SET time_zone = '+03:00'; RETURN x; END",
        );
        let function = format!("SELECT {}.sets(1)", story.schema);
        let next: [&[&str]; 6] = [
            &["SET autocommit = 1"],
            &["SELECT 1", "SELECT no_such_column", "SET autocommit = 1"],
            &["SET time_zone = '+04:00'", "DO 1"],
            &["SHOW WARNINGS", "DO 1"],
            &["SELECT 1; DO 2; SELECT 3"],
            &["SET time_zone = 'nowhere'", "SET NAMES latin1", "DO 1"],
        ];
        for caps in [cap::DEPRECATE_EOF, 0] {
            let account = app().schema(&story.schema);
            let account = account.without(caps).with(cap::MULTI_STATEMENTS);
            for next in next {
                let c = story.join_as(&account);
                let prepared = story.prepare(c, "SELECT 7").id;
                story.command(c, Command::InitDb, other.as_bytes());
                story.execute(c, prepared, &[]);
                story.all(c, next);
                story.execute(c, prepared, &[]);
                story.command(c, Command::Ping, b"");
                story.execute(c, prepared, &[]);
                story.command(c, Command::SetOption, &[0, 0]);
                story.all(c, next);
                story.command(c, Command::ResetConnection, b"");
                story.all(c, next);
                story.sql(c, &function);
                story.all(c, next);
                let prepared = story.prepare(c, "SELECT 8").id;
                story.sql(c, &format!("USE {other}"));
                story.execute(c, prepared, &[]);
                story.command(c, Command::ResetConnection, b"");
                story.all(c, next);
                story.command(c, Command::Quit, b"");
            }
        }
        story.sql(admin, &format!("DROP DATABASE {other}"));
    };
    same_on_both("unreported", 2, tell);
}

/// Whoever wants to hear no more of changes hears of that one, or does not, as from a server.
#[test]
fn the_last_report_of_a_tracker_comes_as_from_a_server() {
    let tell = |story: &mut Story| {
        let on = [
            "SET session_track_state_change = ON",
            "SET SESSION session_track_state_change = 1, sql_mode = ''",
            "SET @@session.session_track_state_change = ON",
            // MariaDB takes what has no scope for no change.
            "SET LOCAL sql_safe_updates := 0, @v = 5, @@session_track_state_change := 1",
            "SET @@session_track_state_change := 1, @v = 5",
        ];
        let off = [
            "SET session_track_state_change = OFF",
            "SET SESSION session_track_state_change = 0, time_zone = '+01:00'",
            "SET time_zone = '+02:00', session_track_state_change = OFF",
            "SET @@session_track_state_change = OFF",
            "SET session_track_state_change = DEFAULT",
            "SET session_track_system_variables = '', session_track_state_change = OFF",
            "SET session_track_schema = OFF, session_track_state_change = OFF",
            "SET @@session_track_schema = ON",
        ];
        for caps in [cap::DEPRECATE_EOF, 0] {
            let account = app().schema(&story.schema).without(caps);
            for on in on {
                for off in off {
                    let [a, b] = [0; 2].map(|_| story.join_as(&account));
                    for _ in 0..2 {
                        story.all(
                            a,
                            &[on, "DO 1", off, "DO 1", "SET NAMES latin1", "DO 2", off],
                        );
                        story.all(b, &["SET NAMES latin2", "DO 2"]);
                    }
                    story.all(a, &[on, "SELECT 1", off, "SELECT 1", "SET NAMES utf8mb4"]);
                    for who in [a, b] {
                        story.command(who, Command::Quit, b"");
                    }
                }
            }
        }
    };
    same_on_both("last_report", 2, tell);
}

/// A SET of a tracker that asks about the statement before is answered wherever that has run.
#[test]
fn a_set_of_a_tracker_asks_about_the_statement_before() {
    same_on_both("tracker_asks", 2, |story| {
        let admin = story.join();
        story.sql(admin, "CREATE TABLE t (a INT)");
        for set in ["session_track_schema = 1", "session_track_state_change = 0"] {
            for elsewhere in [false, true] {
                let [a, b] = [0; 2].map(|_| story.join());
                story.sql(a, "INSERT INTO t VALUES (1), (2)");
                if elsewhere {
                    story.all(b, &["BEGIN", "INSERT INTO t VALUES (1)"]);
                }
                // It pins, and reports more than the client has asked for.
                let reply = story
                    .client(a)
                    .query(&format!("SET @r = ROW_COUNT(), {set}"));
                let went = matches!(&reply.unwrap()[..], [Outcome::Done(_)]);
                story.sql(b, "COMMIT");
                let reply = story.client(a).query("SELECT @r").unwrap();
                let Some(Outcome::Rows(rows)) = reply.first() else {
                    panic!("{reply:?}");
                };
                story.say(&format!("{set}: {went}, {:?}", rows.rows));
                for who in [a, b] {
                    story.command(who, Command::Quit, b"");
                }
            }
        }
        story.sql(admin, "DROP TABLE t");
    });
}
