//! Query attributes: what a client sends beside one statement reaches that statement and no other.
//!
//! MySQL's component `query_attributes` gives them back in words. What SQL can ask stands in
//! `tests/stories/query_attributes.story`; here are bytes, long texts, pipelining and a KILL.

use crate::world::*;

/// Question to a session.
const ASKED: &str = "SELECT mysql_query_attribute_string('n')";

fn attributed() -> Account {
    app().with(cap::QUERY_ATTRIBUTES)
}

#[test]
fn a_header_that_cannot_be_read_is_refused_in_the_servers_words() {
    let Some(real) = pooled(mysql) else { return };
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
fn attributes_longer_than_a_packet_are_relayed() {
    let Some(real) = pooled(mysql) else { return };
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
    let Some(real) = pooled(mysql) else { return };
    let pool = fresh_pool(real, "backends_max = 1\ngroups = 1");
    let mut clients: Vec<Client> = (0..8)
        .map(|_| login(&pool.address, &attributed()))
        .collect();
    clients[0].attributes(&[("n", "alone")]);
    assert_eq!(clients[0].value(ASKED), "alone");
    clients[0].attributes(&[("m", "1"), ("n", "2"), ("o", "3")]);
    assert_eq!(clients[0].value(ASKED), "2");
    for round in 0..20 {
        for (at, client) in clients.iter_mut().enumerate() {
            client.attributes(&[("n", &format!("{round} of {at}"))]);
            send(client, ASKED);
        }
        for (at, client) in clients.iter_mut().enumerate() {
            let reply = client.receive().unwrap();
            assert_eq!(reply[0].rows().only(), format!("{round} of {at}"));
        }
    }
    let census = pool.wait_for_census(" statements: 162,").unwrap();
    assert!(!census.contains(" pipelined: 0,"), "{census}");
    let pins = census.contains("stored code");
    assert!(!pins, "{census}");
}

#[test]
fn a_kill_reaches_a_client_with_attributes() {
    let Some(real) = pooled(mysql) else { return };
    let way = through(real, 2);
    let (mut victim, mut killer) = (login(&way, &attributed()), login(&way, &attributed()));
    let id = victim.talk().greeting.as_ref().unwrap().connection_id;
    victim.attributes(&[("n", "the victim's")]);
    send(&mut victim, "SELECT SLEEP(50), 'attributed'");
    let mut admin = real.admin();
    let running = "SELECT COUNT(*) FROM information_schema.processlist \
                   WHERE state = 'User sleep' AND info LIKE '%''attributed''%'";
    wait_while(|| admin.value(running) == "0");
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
    let (_, way) = or_return!(shared(1));
    let mut client = login(&way, &attributed());
    assert_eq!(client.talk().capabilities & cap::QUERY_ATTRIBUTES, 0);
    assert_eq!(client.value("SELECT 1"), "1");
}
