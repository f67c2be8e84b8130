//! Two clients with different session states share one backend, and neither can tell.

use crate::metrics::{figures, place_of};
use crate::restored_sessions::restored;
use crate::world::*;

/// A question that only the backend of the statement before could answer is refused once, in words;
/// from then on the client keeps a backend and gets its answers.
#[test]
fn a_question_about_the_statement_before_is_answered_or_refused_but_never_wrong() {
    let (_, way) = or_return!(shared(2));
    let account = app().schema("shop");
    for (before, question, answer) in [
        ("SELECT 1/0", "SHOW COUNT(*) WARNINGS", "1"),
        ("SELECT 1/0", "SELECT @@warning_count", "1"),
        (
            "SELECT seq FROM seq_1_to_3",
            "SELECT FOUND_ROWS() + 1 AS n",
            "4",
        ),
    ] {
        let (mut one, mut other) = (login(&way, &account), login(&way, &account));
        one.must(before);
        other.must("SELECT 2");
        match &one.query(question).unwrap()[..] {
            [Outcome::Rows(rows)] => assert_eq!(rows.only(), answer, "{question}"),
            [Outcome::Failed(failure)] => {
                assert_eq!(failure.code, 1235, "{question}: {failure}");
                says(&failure.message, "run both statements again");
            }
            outcomes => panic!("{question}: {outcomes:?}"),
        }
        one.must(before);
        other.must("SELECT 2");
        assert_eq!(one.value(question), answer, "{question}");
    }
}

/// A change that the server has taken before goes out in front of the statement.
#[test]
fn differences_that_cannot_fail_are_not_waited_for() {
    let (_, pool) = or_return!(shared_pool("backends_max = 1\ngroups = 1"));
    let account = app().schema("shop");
    let clients = [(); 2].map(|()| login(&pool.address, &account));
    let zones = ["+01:00", "-02:00"];
    let mut both: Vec<_> = clients.into_iter().zip(zones).collect();
    for (client, zone) in &mut both {
        client.must(&format!(
            "SET NAMES latin1, time_zone = '{zone}', sql_mode = 'ANSI_QUOTES', autocommit = 1"
        ));
    }
    for _ in 0..10 {
        for (client, zone) in &mut both {
            assert_eq!(&client.value("SELECT @@time_zone"), zone);
        }
    }
    let (all, front) = restored(&pool, 22);
    assert!(all >= 20 && all - front <= 4, "{front} of {all} in front");
}

/// A server that is asked for IGNORE_SPACE at login has it in the session's sql_mode from then on.
#[test]
fn ignore_space_of_the_login_is_part_of_the_sql_mode() {
    let (_, way) = or_return!(shared(1));
    let account = app().with(cap::IGNORE_SPACE);
    let mut plain = login(&way, &app());
    let mut spaced = login(&way, &account);
    let usual = plain.value("SELECT @@sql_mode");
    let with = spaced.value("SELECT @@sql_mode");
    assert_eq!(with.replace("IGNORE_SPACE,", ""), usual);
    assert!(with.contains("IGNORE_SPACE"), "{with}");
    // Whatever the backend had before, it has what the login asked for.
    spaced.must("SET sql_mode = ''");
    let mut next = login(&way, &account);
    assert_eq!(next.value("SELECT @@sql_mode"), with);
    assert_eq!(next.value("SELECT COUNT (*) FROM (SELECT 1) one"), "1");
    next.must("SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')");
    assert!(next.value("SELECT @@sql_mode").contains("IGNORE_SPACE"));
    assert_eq!(plain.value("SELECT @@sql_mode"), usual);
    // It is the login's alone: a reset or another user brings back what every session has.
    next.run(Command::ResetConnection, b"").unwrap();
    assert_eq!(next.value("SELECT @@sql_mode"), usual);
    let mut changed = login(&way, &account);
    changed.change_user(&account).unwrap();
    assert_eq!(changed.value("SELECT @@sql_mode"), usual);
}

/// Applications in PHP log in, set their session, and choose a schema then.
#[test]
fn clients_that_choose_their_schema_late_take_connections_that_are_there() {
    for real in pooled_servers() {
        fresh_schema(real, "late_schema");
        let settings = "backends_max = 2\ngroups = 1\nhttp = \"127.0.0.1:0\"\n";
        let pool = fresh_pool(real, settings);
        let place = place_of(&pool);
        let mut other = login(&pool.address, &app().schema("late_schema"));
        other.must("CREATE TABLE t (id INT)");
        for number in 0..12 {
            let mut client = login(&pool.address, &app());
            client.script("SET NAMES utf8mb4; SELECT @@SESSION.sql_mode");
            client.run(Command::InitDb, b"late_schema").unwrap();
            client.must(&format!("INSERT INTO t VALUES ({number})"));
            assert_eq!(client.value("SELECT DATABASE()"), "late_schema");
            let mut stranger = login(&pool.address, &app());
            let nothing = stranger.run(Command::InitDb, b"no_such_schema").unwrap();
            assert!(format!("{nothing:?}").contains("1049"), "{nothing:?}");
            let failed = stranger.query("SELECT COUNT(*) FROM t").unwrap();
            assert!(format!("{failed:?}").contains("1046"), "{failed:?}");
            stranger.must("BEGIN");
            stranger.run(Command::InitDb, b"no_such_schema").unwrap();
            let failed = stranger.query("SELECT COUNT(*) FROM t").unwrap();
            assert!(format!("{failed:?}").contains("1046"), "{failed:?}");
            stranger.must("COMMIT");
            assert_eq!(other.value("SELECT DATABASE()"), "late_schema");
        }
        assert_eq!(other.value("SELECT COUNT(*) FROM t"), "12");
        // The figures are as old as those of the statements that they count.
        until(|| match figures(&place) {
            figures if figures["onramp_pool_statements_total"] < 80.0 => Err("old".to_owned()),
            figures => {
                // Not one for each of the clients. A few are opened where the pool learns late that
                // a client has left, which holds one of the two.
                let dials = figures["onramp_pool_dials_total"];
                assert!(dials <= 8.0, "{dials}");
                Ok(())
            }
        });
    }
}
