//! Query attributes: what a client sends beside one statement reaches that statement and no other.
//!
//! MySQL's component `query_attributes` gives them back in words, so every story asks for them: on
//! a backend that others use in between, in front of which the pool has said something of its own.

use crate::compare::{Story, same_on};
use crate::world::{app, direct, login, mysql, server, start_pool, through};
use testkit::client::Client;
use testkit::real::{Real, skipped};
use testkit::reply::Outcome;
use testkit::talk::Account;
use wire::capabilities as cap;
use wire::command::Command;

/// Question to a session.
const ASKED: &str = "SELECT mysql_query_attribute_string('n')";

/// MySQL with the component; `None`, said on stderr, where there is none.
fn with_component(test: &str) -> Option<&'static Real> {
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    let real = mysql(test)?;
    INSTALLED.call_once(|| {
        real.execute(&["INSTALL COMPONENT 'file://component_query_attributes'"]);
    });
    Some(real)
}

fn attributed() -> Account {
    app().with(cap::QUERY_ATTRIBUTES)
}

/// A client runs SQL with an attribute `n`.
fn sql_with(story: &mut Story, who: usize, value: &str, sql: &str) {
    story.client(who).attributes(&[("n", value)]);
    story.sql(who, sql);
}

#[test]
fn a_statement_has_its_own_attributes_and_no_others() {
    let test = "attributes_of_a_statement";
    let Some(real) = with_component(test) else {
        return;
    };
    for backends in [1, 3] {
        same_on(real, test, backends, |story| {
            let account = attributed().schema(&story.schema);
            let (a, b) = (story.join_as(&account), story.join_as(&account));
            let plain = story.join();
            sql_with(story, a, "of a", ASKED);
            story.sql(a, ASKED);
            story.sql(b, ASKED);
            story.sql(plain, ASKED);
            sql_with(story, b, "of b", ASKED);
            sql_with(story, a, "", ASKED);
            // In front of these goes what the pool says of the session.
            story.all(a, &["SET time_zone = '+05:00'", "SET @mine = 'a'"]);
            story.all(b, &["SET time_zone = '-05:00'"]);
            for value in ["one", "two"] {
                sql_with(story, a, value, ASKED);
                story.sql(b, ASKED);
                sql_with(story, b, value, "SELECT @@time_zone, @mine");
                sql_with(
                    story,
                    a,
                    value,
                    "SELECT @mine, CONNECTION_ID() > 0 AS c, @@time_zone",
                );
            }
            sql_with(
                story,
                a,
                "kept",
                "SET @kept = mysql_query_attribute_string('n')",
            );
            story.sql(b, "SET @kept = 'of b'");
            sql_with(
                story,
                a,
                "later",
                "SELECT @kept, mysql_query_attribute_string('n')",
            );
            story
                .client(a)
                .attributes(&[("m", "1"), ("n", "2"), ("o", "3")]);
            story.sql(a, ASKED);
        });
    }
}

#[test]
fn what_is_said_in_other_words_keeps_its_attributes() {
    let test = "attributes_reworded";
    let Some(real) = with_component(test) else {
        return;
    };
    same_on(real, test, 1, |story| {
        let account = attributed().schema(&story.schema);
        let (a, b) = (story.join_as(&account), story.join_as(&account));
        let asked = "SELECT mysql_query_attribute_string('n'), CONNECTION_ID() > 0 AS c";
        sql_with(story, a, "own id", asked);
        story.sql(a, "SELECT 1 / 0");
        story.sql(b, "SELECT 1");
        let counted = "SELECT @@warning_count, mysql_query_attribute_string('n')";
        sql_with(story, a, "counts", counted);
        story.all(
            a,
            &[
                "CREATE TABLE t (v INT)",
                "INSERT INTO t VALUES (1), (2), (3)",
            ],
        );
        story.sql(b, ASKED);
        let rows = "SELECT ROW_COUNT(), mysql_query_attribute_string('n')";
        sql_with(story, a, "rows", rows);
        story.sql(a, "SELECT 1 / 0");
        story.sql(b, ASKED);
        sql_with(story, a, "warnings", "SHOW WARNINGS");
    });
}

#[test]
fn attributes_reach_a_text_behind_what_sets_its_schema() {
    let test = "attributes_behind";
    let Some(real) = with_component(test) else {
        return;
    };
    same_on(real, test, 1, |story| {
        let schema = story.schema.clone();
        let a = story.join_as(&attributed().schema(&schema));
        let b = story.join_as(&attributed().schema("shop"));
        for value in ["one", "two;", ""] {
            for who in [a, b] {
                let asked = "SELECT mysql_query_attribute_string('n'), DATABASE(), ';'";
                sql_with(story, who, value, asked);
                story.sql(who, asked);
                sql_with(
                    story,
                    who,
                    value,
                    "SET @a = mysql_query_attribute_string('n')",
                );
                story.sql(who, "SELECT @a");
            }
        }
    });
}

#[test]
fn executions_have_attributes_of_their_own() {
    let test = "attributes_of_executions";
    let Some(real) = with_component(test) else {
        return;
    };
    for backends in [1, 3] {
        same_on(real, test, backends, |story| {
            let account = attributed().schema(&story.schema);
            let (a, b) = (story.join_as(&account), story.join_as(&account));
            let plain = story.join();
            let bare = [a, b, plain].map(|who| story.prepare(who, ASKED).id);
            let sql = "SELECT ?, mysql_query_attribute_string('n'), @@time_zone";
            let with = [a, b, plain].map(|who| story.prepare(who, sql).id);
            story.sql(b, "SET time_zone = '+02:00'");
            for (at, who) in [a, b, plain, b, a, plain].into_iter().enumerate() {
                let slot = [a, b, plain].iter().position(|w| *w == who).unwrap();
                story
                    .client(who)
                    .attributes(&[("n", &format!("step {at}"))]);
                story.execute(who, bare[slot], &[]);
                story.execute(who, bare[slot], &[]);
                story.client(who).attributes(&[("m", "1"), ("n", "of two")]);
                story.execute(who, with[slot], &[Some(b"x")]);
                story.execute(who, with[slot], &[None]);
                let again = story
                    .client(who)
                    .execute_again(with[slot], &[Some(b"again")]);
                story.note("again", again);
                for sql in ["BEGIN", "ROLLBACK", "SET @a = 1", "SELECT @a", "COMMIT"] {
                    story.sql(who, sql);
                }
            }
            story.client(a).attributes(&[("n", "before BEGIN")]);
            story.execute(a, bare[0], &[]);
            sql_with(story, a, "of BEGIN", "BEGIN");
            story.execute(a, bare[0], &[]);
            story.sql(a, "COMMIT");
            story.client(b).attributes(&[("n", "with a cursor")]);
            let cursor = story.client(b).execute(bare[1], &[], true);
            story.note("cursor", cursor);
        });
    }
}

#[test]
fn a_header_that_cannot_be_read_is_refused_in_the_servers_words() {
    let test = "attributes_malformed";
    let Some(real) = with_component(test) else {
        return;
    };
    let way = through(real, 1);
    let offered = [&real.address(), &*way].map(|address| {
        let client = login(address, &attributed());
        client.talk().capabilities
    });
    assert_eq!(offered[0], offered[1]);
    for header in [
        &b"\0\0SELECT 1"[..],
        b"\0\x02SELECT 1",
        b"SELECT 1",
        b"\x01\x01\0\0SELECT 1",
        b"\x01\x01\0\x01\xfe\0\xfan\x01vSELECT 1",
        b"\x01\x01\0\x01\x0c\0\x01n\x03abcSELECT 1",
    ] {
        let failures = [&real.address(), &*way].map(|address| {
            let mut client = login(address, &attributed());
            // Said in its own bytes, not in those of the tests' client.
            let payload = [&[3], header].concat();
            let mut packet = u32::try_from(payload.len()).unwrap().to_le_bytes().to_vec();
            packet.extend_from_slice(&payload);
            let outcomes = client.exchange(&packet, Command::Ping).unwrap();
            let failure = outcomes[0].failure().clone();
            assert_eq!(client.value("SELECT 1"), "1");
            failure
        });
        assert_eq!(failures[0], failures[1], "{header:02x?}");
        assert_eq!(failures[0].code, 1835);
    }
}

#[test]
fn attributes_travel_with_everything_else_that_a_session_does() {
    let test = "attributes_and_the_rest";
    let Some(real) = with_component(test) else {
        return;
    };
    for more in [
        0,
        cap::COMPRESS,
        cap::MULTI_STATEMENTS,
        cap::LOCAL_FILES,
        cap::FOUND_ROWS,
    ] {
        same_on(real, test, 2, |story| {
            let account = attributed().with(more).schema(&story.schema);
            let (a, b) = (story.join_as(&account), story.join_as(&account));
            story.sql(a, "DROP TABLE IF EXISTS t");
            story.sql(
                a,
                "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(40))",
            );
            let insert = "INSERT INTO t (v) VALUES (mysql_query_attribute_string('n'))";
            sql_with(story, a, "first", insert);
            story.sql(b, insert);
            story.sql(a, "SELECT LAST_INSERT_ID()");
            sql_with(story, a, "both", &format!("{ASKED}; {ASKED}"));
            story.client(a).local_file = Some(b"71\tseventy-one\n".to_vec());
            sql_with(
                story,
                a,
                "file",
                "LOAD DATA LOCAL INFILE 'anything' INTO TABLE t",
            );
            sql_with(story, a, "begin", "BEGIN");
            sql_with(story, a, "in it", insert);
            sql_with(story, b, "beside it", ASKED);
            sql_with(story, a, "fails", "SELECT * FROM missing");
            sql_with(story, a, "end", "COMMIT");
            story.sql(b, "SELECT * FROM t");
            story.command(a, Command::ResetConnection, b"");
            story.sql(a, ASKED);
            story.change_user(b, &account);
            sql_with(story, b, "changed", ASKED);
            sql_with(
                story,
                b,
                "long",
                &format!("SELECT '{}', 1", "x".repeat(300_000)),
            );
        });
    }
}

#[test]
fn attributes_longer_than_a_packet_are_relayed() {
    let test = "attributes_of_two_packets";
    let Some(real) = with_component(test) else {
        return;
    };
    let way = through(real, 1);
    let long = "y".repeat(17 << 20);
    for address in [&real.address(), &*way] {
        let mut client = login(address, &attributed());
        client.attributes(&[("n", &long)]);
        let sql = "SELECT LENGTH(mysql_query_attribute_string('n'))";
        // The function gives the front of a long one.
        assert_eq!(client.value(sql), "1023");
        client.attributes(&[("n", "beside a long text")]);
        let sql = format!("{ASKED} /* {long} */");
        assert_eq!(client.value(&sql), "beside a long text");
        assert_eq!(client.value("SELECT 1"), "1");
    }
}

#[test]
fn statements_with_attributes_ride_and_pin_nobody() {
    let test = "statements_with_attributes_ride_and_pin_nobody";
    if direct() {
        return skipped(test, "it is about the pool");
    }
    let Some(real) = with_component(test) else {
        return;
    };
    let pool = start_pool(real, "attributes_ride.toml", "backends_max = 1\ngroups = 1");
    let mut clients: Vec<Client> = (0..8)
        .map(|_| login(&pool.address, &attributed()))
        .collect();
    clients[0].attributes(&[("n", "alone")]);
    assert_eq!(clients[0].value(ASKED), "alone");
    for round in 0..20 {
        for (at, client) in clients.iter_mut().enumerate() {
            client.attributes(&[("n", &format!("{round} of {at}"))]);
            client.send(&[(Command::Query, ASKED.as_bytes())]).unwrap();
        }
        for (at, client) in clients.iter_mut().enumerate() {
            let reply = client.receive().unwrap();
            assert_eq!(reply[0].rows().only(), format!("{round} of {at}"));
        }
    }
    let census = pool.wait_for_census(" statements: 161,").unwrap();
    assert!(!census.contains(" ridden: 0,"), "{census}");
    let pins = census.contains("stored code");
    assert!(!pins, "{census}");
}

#[test]
fn a_kill_reaches_a_client_with_attributes() {
    let test = "a_kill_reaches_a_client_with_attributes";
    let Some(real) = with_component(test) else {
        return;
    };
    let way = through(real, 2);
    let (mut victim, mut killer) = (login(&way, &attributed()), login(&way, &attributed()));
    let id = victim.talk().greeting.as_ref().unwrap().connection_id;
    victim.attributes(&[("n", "the victim's")]);
    victim
        .send(&[(Command::Query, b"SELECT SLEEP(50), 'attributed'")])
        .unwrap();
    let mut admin = real.admin();
    let running = "SELECT COUNT(*) FROM information_schema.processlist \
                   WHERE state = 'User sleep' AND info LIKE '%''attributed''%'";
    while admin.value(running) == "0" {}
    killer.attributes(&[("n", "the killer's")]);
    killer.must(&format!("KILL QUERY {id}"));
    let reply = victim.receive().unwrap();
    // A killed SLEEP() gives 1; killed between its rows, the statement fails.
    match &reply[0] {
        Outcome::Rows(rows) => assert_eq!(rows.texts()[0][0], "1"),
        other => assert_eq!(other.failure().code, 1317),
    }
    assert_eq!(victim.value("SELECT 2"), "2");
}

#[test]
fn a_server_without_attributes_offers_none_through_the_pool_either() {
    let test = "a_server_without_attributes_offers_none_through_the_pool_either";
    let Some(real) = server(test) else { return };
    let way = through(real, 1);
    let mut client = login(&way, &attributed());
    assert_eq!(client.talk().capabilities & cap::QUERY_ATTRIBUTES, 0);
    assert_eq!(client.value("SELECT 1"), "1");
}
