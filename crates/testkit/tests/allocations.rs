//! The relay path allocates nothing: counted in a real group, between real clients and a server.
//!
//! The problem: an allocation for each statement is a lock, a cache line and a source of unequal
//! latencies, and it comes back with any harmless-looking change. The mechanism: the group runs in
//! this thread, whose allocations are counted; its clients run in other threads. What a group
//! learns once (shapes, sessions, the size of its buffers) it may allocate for, so the counting
//! begins when the clients have said everything many times. Invariant: the counted part is the
//! loop of a group's thread, reactor included.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use pool::{Group, Raw, Shared, Sizes, listener_token};
use reactor::{Address, Event, RealNet, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use testkit::client::Client;
use testkit::onramp::{free_port, loopback};
use testkit::real::{Real, skipped};
use testkit::sim;
use testkit::talk::Account;
use wire::auth::caching_sha2::KeyPair;

/// Clients, more than backends, so that statements wait in queues.
const CLIENTS: usize = 8;
const WARM_UP: u64 = 4_000;
const COUNTED: u64 = 10_000;
/// A connection that is opened, a buffer that grows: a few allocations, however many statements
/// there are.
const OCCASIONAL: u64 = 25;
/// Allocations of the work that is due once a second, which is not counted.
const EACH_SECOND: u64 = 5;

/// Statements of the clients, and a flag that tells them to go on.
#[derive(Default)]
struct Done {
    statements: AtomicU64,
    over: AtomicBool,
}

/// One statement runs at a time, so that others wait for the limit too.
fn settings(server: &Real, port: u16) -> pool::Settings {
    let text = format!(
        "listen = [\"127.0.0.1:{port}\"]\ngroups = 1\nbackends_max = 2\noversubscribe = 0\n\
         [backend]\naddress = \"127.0.0.1:{}\"\n\
         [[user]]\nname = \"app\"\npassword = \"secret\"\n",
        server.port()
    );
    Raw::parse(&text).unwrap().check().unwrap()
}

/// One client, saying the same over and over with other values.
fn talk(port: u16, number: usize, script: &[&str], done: &Done) {
    let account = Account::new("app", "secret");
    let mut client = Client::connect(&loopback(port), &account).unwrap();
    while !done.over.load(Ordering::Relaxed) {
        for statement in script {
            client.must(&statement.replace('#', &number.to_string()));
            done.statements.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The loop of a group's thread, until the clients have done so many statements.
fn live(group: &mut Group<RealNet>, events: &mut Vec<Event>, done: &Done, until: u64) {
    while done.statements.load(Ordering::Relaxed) < until {
        let at_most = Time::now() + Duration::from_millis(50);
        let deadline = group.deadline().min(at_most);
        group.parts.net.wait(deadline, events).unwrap();
        group.turn(events);
        assert!(group.parts.work.turn_output.take_messages().is_empty());
        assert!(group.parts.work.turn_output.take_report().is_empty());
    }
}

/// Allocations of a group while its clients run this script; `None` without a server.
fn allocations(test: &str, script: &[&str]) -> Option<u64> {
    let server = match Real::start(&[]) {
        Ok(server) => server,
        Err(why) => {
            skipped(test, &why);
            return None;
        }
    };
    server.create_user("app", "secret");
    server.execute(&[
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO d.t VALUES (0,0),(1,0),(2,0),(3,0),(4,0),(5,0),(6,0),(7,0)",
    ]);
    let port = free_port();
    let Address::Tcp(address) = loopback(port) else {
        unreachable!("a loopback address is TCP")
    };
    let shared = Shared::new(
        settings(&server, port),
        sim::facts(),
        KeyPair::generate().unwrap(),
        Sizes {
            groups: 1,
            cores: 1,
            clients_per_group: 100,
        },
    );
    let mut net = RealNet::new().unwrap();
    net.listen(&address, 128, listener_token(0)).unwrap();
    let mut group = Group::new(net, Arc::new(shared), 0);
    let (mut events, done) = (Vec::new(), Done::default());
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let done = &done;
            scope.spawn(move || talk(port, number, script, done));
        }
        live(&mut group, &mut events, &done, WARM_UP);
        let begun = Instant::now();
        let counted = allocation_counter::measure(|| {
            live(&mut group, &mut events, &done, WARM_UP + COUNTED);
        });
        let regular = begun.elapsed().as_secs() * EACH_SECOND;
        done.over.store(true, Ordering::Relaxed);
        // Whoever is in the middle of its script is served to the end.
        while group.parts.survey().census().clients > 0 {
            let deadline = Time::now() + Duration::from_millis(50);
            group.parts.net.wait(deadline, &mut events).unwrap();
            group.turn(&events);
        }
        Some(counted.count_total.saturating_sub(regular))
    })
}

#[test]
fn reads_of_many_clients_on_few_backends() {
    let script = ["SELECT n FROM d.t WHERE id=#"];
    let found = allocations("allocations::reads", &script);
    assert!(
        found.is_none_or(|count| count <= OCCASIONAL),
        "{found:?} allocations"
    );
}

#[test]
fn transactions_that_write() {
    let script = [
        "BEGIN",
        "UPDATE d.t SET n=n+1 WHERE id=#",
        "SELECT n FROM d.t WHERE id=#",
        "COMMIT",
    ];
    let found = allocations("allocations::transactions", &script);
    assert!(
        found.is_none_or(|count| count <= OCCASIONAL),
        "{found:?} allocations"
    );
}
