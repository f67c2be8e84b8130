//! Timeouts that a session knows, kept by the pool as by a server.

use crate::compare::{Story, same_on_both};
use crate::world::*;

/// Messages to a client until its connection ends, and its end: in order, or by a reset.
fn last_words(client: &mut Client) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        match client.wait() {
            Ok(happened) => heard.push(format!("{happened:?}")),
            Err(ClientError::Io(error)) => {
                heard.push(format!("{:?}", error.kind()));
                return heard;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Clients that hold something or nothing, and that others end.
fn killed_clients(story: &mut Story) {
    for hold in ["DO 1", "BEGIN", "SELECT GET_LOCK('killed', 30)"] {
        let (who, other) = (story.join(), story.join());
        story.sql(who, hold);
        let id = story.client(who).value("SELECT CONNECTION_ID()");
        story.client(other).must(&format!("KILL {id}"));
        let heard = last_words(story.client(who));
        story.say(&format!("killed after {hold}: {heard:?}"));
    }
}

#[test]
fn a_killed_client_is_closed_as_by_its_server() {
    same_on_both("killed_clients", 3, killed_clients);
}

/// Clients of which one always has the only backend, in a transaction that is soon over.
#[test]
fn short_transactions_one_behind_the_other_are_not_too_long() {
    for real in pooled_servers() {
        let user = "transaction_ms_max = 2000";
        let extra = format!("backends_max = 1\ngroups = 1\n{user}");
        let pool = fresh_pool(real, &extra);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut client = login(&pool.address, &app());
                    for _ in 0..25 {
                        client.script("BEGIN; DO SLEEP(0.06); COMMIT");
                    }
                });
            }
        });
        let mut client = login(&pool.address, &app());
        client.must("BEGIN");
        assert_eq!(client.failure("DO SLEEP(9)").code, 9506);
    }
}

#[test]
fn interactive_clients_have_a_time_of_their_own_and_backends_that_end_harm_nobody() {
    let arguments = ["--wait-timeout=3", "--interactive-timeout=600"];
    let real = or_return!(own(Real::start(&arguments)));
    let pool = fresh_pool(&real, "backends_max = 2\ngroups = 1");
    let mut interactive = login(&pool.address, &app().with(cap::INTERACTIVE));
    assert_eq!(interactive.value("SELECT @@wait_timeout"), "600");
    for _ in 0..2 {
        let mut plain = login(&pool.address, &app());
        assert_eq!(plain.value("SELECT @@wait_timeout"), "3");
        assert_eq!(last_words(&mut plain), ["ConnectionReset"]);
        // The backends have been idle for as long; what is lost with one would be an error here.
        assert_eq!(interactive.value("SELECT @@wait_timeout"), "600");
        assert_eq!(login(&pool.address, &app()).value("SELECT 1"), "1");
    }
}

#[test]
fn a_client_that_only_pings_is_not_idle() {
    let (_, way) = or_return!(shared(2));
    let mut pings = login(&way, &app());
    pings.must("SET wait_timeout = 3");
    let mut idle = login(&way, &app());
    idle.must("SET wait_timeout = 6");
    let idles = std::thread::spawn(move || last_words(&mut idle));
    while !idles.is_finished() {
        pings.run(Command::Ping, b"").unwrap();
    }
    assert_eq!(pings.value("SELECT @@wait_timeout"), "3");
}

#[test]
fn a_client_that_takes_nothing_for_its_net_write_timeout_is_cut_off() {
    let (_, way) = or_return!(shared(1));
    let mut slow = login(&way, &app().schema("shop"));
    slow.must("SET net_write_timeout = 1");
    let sql = b"SELECT REPEAT('x', 1000000) FROM seq_1_to_500";
    slow.send(&[(Command::Query, sql)]).unwrap();
    // There is one backend: this is answered once the slow client has lost it, or once the pool has
    // taken the reply off it.
    let mut quick = login(&way, &app());
    assert_eq!(quick.value("SELECT @@net_write_timeout"), "60");
    // Half a reply must not look like a whole one.
    match slow.receive().map(|outcomes| outcomes.into_iter().last()) {
        Ok(Some(Outcome::Rows(rows))) => assert_eq!(rows.rows.len(), 500),
        Ok(last) => assert_eq!(last.unwrap().failure().code, 1158),
        Err(_) => {}
    }
}

#[test]
fn a_client_that_stops_amid_a_command_is_cut_off() {
    let (_, way) = or_return!(shared(2));
    for more in [0, cap::COMPRESS] {
        let mut stops = login(&way, &app().with(more));
        stops.must("SET net_read_timeout = 1");
        assert_eq!(stops.value("SELECT GET_LOCK('amid', 0)"), "1");
        // The front of a packet of 100 bytes, or of a frame of as many.
        stops.send_unframed(b"\x64\0\0\0\x03SEL").unwrap();
        let mut waits = login(&way, &app());
        assert_eq!(waits.value("SELECT GET_LOCK('amid', 50)"), "1");
        assert_eq!(waits.value("SELECT RELEASE_LOCK('amid')"), "1");
        last_words(&mut stops);
    }
}

#[test]
fn a_client_that_stops_amid_its_file_is_cut_off() {
    let Some(real) = pooled(server) else { return };
    crate::world::fresh_schema(real, "amid_file");
    let way = through(real, 1);
    let account = app().schema("amid_file").with(cap::LOCAL_FILES);
    let mut stops = login(&way, &account);
    stops.script("CREATE TABLE t (id INT) ENGINE=InnoDB; SET net_read_timeout = 3");
    let load = b"LOAD DATA LOCAL INFILE 'anything' INTO TABLE t";
    stops.send(&[(Command::Query, load)]).unwrap();
    stops.wait().unwrap();
    stops.send_raw(b"\x02\0\0\x021\n").unwrap();
    let mut quick = login(&way, &account);
    assert_eq!(quick.value("SELECT COUNT(*) FROM t"), "0");
    last_words(&mut stops);
}
