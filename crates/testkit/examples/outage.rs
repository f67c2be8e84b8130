//! Time until a statement is answered again when a server's host that was silent is back.
//!
//! `outage ONRAMP RUNS` starts a server on a host of its own (a network namespace), a pool in front
//! of it and 20 clients, of which one asks all the time. In each run the host's packets get lost
//! for between one second and eight, and the clients are refused (9507); then they pass again. It
//! prints how long it takes from then on until the one that asks, all others, and a login with a
//! schema are answered. It needs root, MariaDB and the programs of [`Link::NEEDS`].
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a tool for measuring: it fails by panicking"
)]

use reactor::Address;
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::client::Client;
use testkit::link::{Host, Link, Lost};
use testkit::onramp::Pool;
use testkit::real::Real;
use testkit::reply::Outcome;
use testkit::talk::Account;

fn is_answered(client: &mut Client) -> bool {
    matches!(client.query("SELECT 1").unwrap()[..], [Outcome::Rows(_)])
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let binary = arguments.next().expect("ONRAMP RUNS");
    let runs: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(10);
    let link = Link::new().unwrap();
    let enter = link.enter(Host::Far);
    let real = Real::start_behind(&enter.each_ref().map(String::as_str), &["--bind-address=*"]);
    let real = real.unwrap();
    real.create_user("app", "app");
    real.execute(&["CREATE DATABASE far"]);
    let socket = real.folder().join("pool.sock");
    let text = format!(
        "backends_max = 4\nserver_down_fail_ms = 300\nbackend_silence_s_max = 3\n\
         [backend]\naddress = \"{}:{}\"\n[[user]]\nname = \"app\"\npassword = \"app\"\n",
        Link::FAR,
        real.port()
    );
    let file = real.folder().join("outage.toml");
    std::fs::write(&file, text).unwrap();
    let enter = link.enter(Host::Near);
    let arguments = [
        "--config",
        file.to_str().unwrap(),
        "--listen",
        socket.to_str().unwrap(),
    ];
    let enter = enter.each_ref().map(String::as_str);
    let pool = Pool::start_behind(&enter, Path::new(&binary), &arguments).unwrap();
    let address = Address::Unix(socket);
    let account = Account::new("app", "app");
    let open = |_| Client::connect(&address, &account).unwrap();
    let mut clients: Vec<Client> = (0..20).map(open).collect();
    for run in 0..runs {
        assert!(clients.iter_mut().all(is_answered), "{}", pool.said());
        link.cut(Lost::Both);
        while is_answered(&mut clients[0]) {}
        while is_answered(&mut clients[0]) {}
        // Not in step with what the pool repeats.
        std::thread::sleep(Duration::from_millis(1000 + run * 7919 % 7000));
        let asked = Instant::now();
        link.mend();
        let mended = Instant::now();
        while !is_answered(&mut clients[0]) {}
        let first = mended.elapsed();
        assert!(clients.iter_mut().all(is_answered), "{}", pool.said());
        let all = mended.elapsed();
        Client::connect(&address, &account.clone().schema("far")).unwrap();
        println!(
            "run {run}: first answer {:.3} s, all {:.3} s, a login {:.3} s (mending took {:.3} s)",
            first.as_secs_f64(),
            all.as_secs_f64(),
            mended.elapsed().as_secs_f64(),
            (mended - asked).as_secs_f64()
        );
    }
}
