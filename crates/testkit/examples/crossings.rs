//! A group with one client that says the same plain SELECT so many times, for counting calls.
//!
//! The problem: what one statement costs a reader is how many functions it crosses, and nobody can
//! count that by hand twice. The mechanism: the group runs in the first thread of this program,
//! between a client in another thread and a real server, whose account is app with password app.
//! Run under a profiler that counts calls, once with N statements and once with twice as many, the
//! difference is what N statements cross and nothing else: `scripts/crossings.sh` does that.
//!
//! Usage: `crossings SERVER_PORT STATEMENTS`.
#![allow(
    clippy::unwrap_used,
    reason = "a program for measuring: it ends where it cannot go on"
)]

use pool::{Group, Raw, Shared, Sizes, listener_token};
use reactor::{Address, RealNet, Time};
use std::sync::Arc;
use std::time::Duration;
use testkit::client::Client;
use testkit::onramp::{free_port, loopback};
use testkit::sim;
use testkit::talk::Account;
use wire::auth::caching_sha2::KeyPair;

const STATEMENT: &str = "SELECT n FROM sbtest.crossed WHERE id=1";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, statements] = &arguments[..] else {
        panic!("usage: crossings SERVER_PORT STATEMENTS");
    };
    let (server, statements): (u16, u64) = (server.parse().unwrap(), statements.parse().unwrap());
    let port = free_port();
    let Address::Tcp(address) = loopback(port) else {
        unreachable!("a loopback address is TCP")
    };
    let text = format!(
        "listen = [\"127.0.0.1:{port}\"]\ngroups = 1\nbackends_max = 1\n\
         [backend]\naddress = \"127.0.0.1:{server}\"\n\
         [[user]]\nname = \"app\"\npassword = \"app\"\n"
    );
    let settings = Raw::parse(&text).unwrap().check().unwrap();
    let keys = KeyPair::generate().unwrap();
    let sizes = Sizes {
        groups: 1,
        cores: 1,
        clients_per_group: 100,
    };
    let shared = Shared::new(settings, sim::facts(), keys, sizes);
    let mut net = RealNet::new().unwrap();
    net.listen(&address, 128, listener_token(0)).unwrap();
    let mut group = Group::new(net, Arc::new(shared), 0);
    let talk = std::thread::spawn(move || {
        let account = Account::new("app", "app");
        let mut client = Client::connect(&loopback(port), &account).unwrap();
        for _ in 0..statements {
            client.must(STATEMENT);
        }
    });
    let mut events = Vec::new();
    while !talk.is_finished() || group.parts.survey().census().clients > 0 {
        let deadline = group
            .deadline()
            .min(Time::now() + Duration::from_millis(50));
        group.parts.net.wait(deadline, &mut events).unwrap();
        group.turn(&events);
    }
    talk.join().unwrap();
}
