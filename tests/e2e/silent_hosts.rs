//! Hosts that fall silent: the server's, and a client's. Each is a network namespace whose packets
//! get lost ([`testkit::link`]), so nothing is closed and nothing refused.

use crate::audit::{TRAIL, end, id};
use crate::walls::{has, is_root};
use crate::world::*;
use testkit::link::{Host, Link, Lost};
use testkit::real::await_blocked;
use wire::capabilities::LOCAL_FILES;

/// The cable, or `None`, said on stderr, where there can be none.
pub(crate) fn cable() -> Option<Link> {
    (is_root() && has(&Link::NEEDS)).then(|| Link::new().unwrap())
}

/// A server on the far host, and a pool on the near one with a Unix socket for the test.
struct Apart {
    link: Link,
    real: Real,
    pool: Pool,
    address: Address,
}

fn apart(extra: &str) -> Option<Apart> {
    let link = cable()?;
    let enter = link.enter(Host::Far);
    let started = Real::start_behind(&enter.each_ref().map(String::as_str), &["--bind-address=*"]);
    let real = own(started)?;
    real.execute(&["CREATE DATABASE far", "CREATE TABLE far.t (v INT)"]);
    let server = Address::parse(&format!("{}:{}", Link::FAR, real.port())).unwrap();
    let socket = real.folder().join("pool.sock");
    let file = config_file(&real, "far.toml", &config(&server, extra));
    let enter = link.enter(Host::Near);
    let (config, listen) = (file.to_str().unwrap(), socket.to_str().unwrap());
    let arguments = ["--config", config, "--listen", listen];
    let pool = Pool::start_behind(&enter.each_ref().map(String::as_str), binary(), &arguments);
    Some(Apart {
        link,
        real,
        pool: pool.unwrap_or_else(|why| panic!("{why}")),
        address: Address::Unix(socket),
    })
}

const SOON: &str = "backends_max = 4\ngroups = 1\nbackend_silence_s_max = 3\n";

#[test]
fn a_statement_whose_server_falls_silent_ends_with_the_truth() {
    let apart = or_return!(apart(SOON));
    // Nothing is on its way to the server: only a question of the kernel's finds out.
    let mut waits = login(&apart.address, &app());
    send(&mut waits, "SELECT SLEEP(1000)");
    await_blocked(&mut apart.real.admin(), &waits, "SELECT SLEEP(1000)");
    // Something is on its way: the kernel does not ask.
    let mut inside = login(&apart.address, &app().schema("far"));
    inside.must(HOLD);
    apart.link.cut(Lost::Both);
    let lost = inside.failure("INSERT INTO t VALUES (1)");
    for failure in [lost, failure_of(waits.receive())] {
        assert_eq!(failure.code, 1158, "{failure:?}");
        let words = "the server's host has not answered for 3 s; whether the statement took effect";
        assert!(failure.message.contains(words), "{failure:?}");
    }
    // Its transaction is gone with the server's session.
    assert!(inside.query("SELECT 1").is_err());
    apart.link.mend();
    let mut new = login(&apart.address, &app().schema("far"));
    assert_eq!(
        new.value("SELECT COUNT(*) FROM t"),
        "0",
        "{}",
        apart.pool.said()
    );
}

fn failure_of(
    outcome: Result<Vec<Outcome>, testkit::client::ClientError>,
) -> testkit::reply::Failure {
    match outcome.unwrap().pop() {
        Some(Outcome::Failed(failure)) => failure,
        other => panic!("expected an error, got {other:?}"),
    }
}

/// Asks until the answer is an error of this number.
fn ask_until_refused(client: &mut Client, code: u16) -> String {
    until(|| match client.query("SELECT 1").unwrap().pop() {
        Some(Outcome::Failed(failure)) if failure.code == code => Ok(failure.message),
        other => Err(format!("{other:?}")),
    })
}

#[test]
fn a_server_that_is_known_to_be_gone_is_not_waited_for() {
    let limits = "server_down_fail_ms = 300\ndial_ms_max = 2000\nwait_ms_max = 600000\n";
    let apart = or_return!(apart(&format!("{SOON}{limits}")));
    let mut client = login(&apart.address, &app());
    assert_eq!(client.value("SELECT 1"), "1");
    apart.link.cut(Lost::Both);
    let words = ask_until_refused(&mut client, 9507);
    says(&words, "the server cannot be reached, for ");
    apart.pool.wait_for("event=server-lost ").unwrap();
    // A login that needs the server hears it as well.
    let refused = Client::connect(&apart.address, &app().schema("far")).unwrap_err();
    assert!(refused.to_string().contains("9507"), "{refused}");
    apart.link.mend();
    apart.pool.wait_for("event=server-back ").unwrap();
    assert_eq!(client.value("SELECT 1"), "1", "{}", apart.pool.said());
    let mut new = login(&apart.address, &app().schema("far"));
    assert_eq!(new.value("SELECT COUNT(*) FROM t"), "0");
    let said = apart.pool.said();
    for event in ["event=server-lost ", "event=server-back "] {
        assert_eq!(said.matches(event).count(), 1, "{said}");
    }
}

#[test]
fn a_server_that_computes_for_long_is_left_alone() {
    let apart = or_return!(apart(SOON));
    let account = app().schema("far").with(LOCAL_FILES);
    let mut client = login(&apart.address, &account);
    assert_eq!(client.value("SELECT SLEEP(7)"), "0");
    // Nor is one that does not read, whose kernel answers for it: its window is closed.
    let mut other = login(&apart.real.socket(), &app().schema("far"));
    other.must("CREATE TABLE once (v INT PRIMARY KEY, pad MEDIUMTEXT) ENGINE=InnoDB");
    other.must(HOLD);
    other.must("INSERT INTO once VALUES (1, NULL)");
    let lines = (1..=30).map(|v| format!("{v}\t{}\n", "x".repeat(1 << 20)));
    let lines: String = lines.collect();
    client.local_file = Some(lines.into_bytes());
    let loaded = std::thread::scope(|scope| {
        let load = "LOAD DATA LOCAL INFILE 'any' IGNORE INTO TABLE once";
        let load = scope.spawn(|| client.query(load));
        other.script("DO SLEEP(9); ROLLBACK");
        load.join().unwrap().unwrap()
    });
    assert!(matches!(loaded[..], [Outcome::Done(_)]), "{loaded:?}");
    assert_eq!(client.value("SELECT COUNT(*) FROM once"), "30");
}

#[test]
fn a_client_whose_host_is_gone_gives_its_locks_back() {
    let Some(link) = cable() else { return };
    let real = or_return!(pooled(own_server));
    let sql = "CREATE DATABASE near; CREATE TABLE near.t (v INT PRIMARY KEY) ENGINE=InnoDB; \
               INSERT INTO near.t VALUES (1), (2)";
    real.script(sql);
    let port = testkit::onramp::free_port();
    let listen = format!("{}:{port}", Link::NEAR);
    let extra = format!("backends_max = 4\ngroups = 1\nclient_silence_s_max = 3\n{TRAIL}");
    let file = config_file(&real, "near.toml", &config(&real.socket(), &extra));
    let enter = link.enter(Host::Near);
    let arguments = ["--config", file.to_str().unwrap(), "--listen", &listen];
    let pool = Pool::start_behind(&enter.each_ref().map(String::as_str), binary(), &arguments);
    let pool = pool.unwrap_or_else(|why| panic!("{why}"));
    let address = Address::parse(&listen).unwrap();
    let account = app().schema("near");
    let open = || link.on(Host::Far, || Client::connect(&address, &account).unwrap());
    let mut idle = open();
    idle.must(HOLD);
    idle.must("UPDATE t SET v = 10 WHERE v = 1");
    // The answer to this one is on its way when its host goes.
    let mut answered = open();
    answered.must(HOLD);
    answered.must("UPDATE t SET v = 20 WHERE v = 2");
    let held = "SELECT GET_LOCK('cable', 100)";
    let mut other = login(&real.socket(), &account);
    assert_eq!(other.value(held), "1");
    send(&mut answered, held);
    await_blocked(&mut real.admin(), &answered, held);
    link.cut(Lost::Both);
    other.must("DO RELEASE_LOCK('cable')");
    let rows = other.rows("SELECT v FROM t FOR UPDATE").texts();
    assert_eq!(rows, [["1"], ["2"]], "{}", pool.said());
    for client in [&idle, &answered] {
        assert_eq!(end(&pool, id(client)), "silent");
    }
}
