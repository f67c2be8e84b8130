//! What others feel of clients that send or take a lot, or begin commands and do not end them.
//!
//! The problem: whether a client with 40 MiB under way delays everybody else is seen in others'
//! latencies only. The mechanism: 32 clients ask a short question each, again as soon as it is
//! answered, while others do what MODE says; then the latencies of the 32 are printed, and how far
//! the memory of process PID has grown at most. `scripts/heavy.sh` compares modes, with the pool
//! and without.
//!
//! Usage: `heavy HOST:PORT MODE COUNT SECONDS [PID]`. MODE is `none`; `zlib` or `zstd`: COUNT
//! clients begin a compressed command of 16 MiB and send 15 MiB of it; `replies`: COUNT clients
//! loop replies of 40 MiB; `statements`: COUNT clients loop statements of 16 to 60 MiB. It logs in
//! as app with password app, and prints one line of `NAME VALUE` pairs.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for measuring: it says its figures, and ends where it cannot go on"
)]

use measure::Histogram;
use reactor::Address;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use testkit::client::Client;
use testkit::talk::Account;
use wire::capabilities as cap;
use wire::compressed::{Algorithm, Packer};

/// Clients whose latencies count.
const OTHERS: usize = 32;
/// Nothing is counted before.
const WARMUP: Duration = Duration::from_secs(1);
/// How often memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const MIB: usize = 1 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, mode, count, seconds, pid @ ..] = &arguments[..] else {
        panic!("usage: heavy HOST:PORT MODE COUNT SECONDS [PID]");
    };
    let address = Address::parse(address).unwrap();
    let (count, seconds): (usize, u64) = (count.parse().unwrap(), seconds.parse().unwrap());
    let pid: Option<u32> = pid.first().map(|pid| pid.parse().unwrap());
    let over = AtomicBool::new(false);
    let before = resident(pid);
    let (latencies, done, most) = std::thread::scope(|scope| {
        let others: Vec<_> = (0..OTHERS)
            .map(|_| scope.spawn(|| ask(&address, &over)))
            .collect();
        let (told, heard) = mpsc::sync_channel::<()>(0);
        let heavy: Vec<_> = (0..workers(mode, count))
            .map(|number| {
                let (address, over) = (&address, &over);
                scope.spawn(move || burden(address, mode, number, count, over))
            })
            .collect();
        let (mut most, end) = (
            before,
            Instant::now() + WARMUP + Duration::from_secs(seconds),
        );
        while Instant::now() < end {
            let _ = heard.recv_timeout(LOOK_EVERY);
            most = most.max(resident(pid));
        }
        drop(told);
        over.store(true, Ordering::Relaxed);
        let mut all = Histogram::new();
        for other in others {
            all.merge(&other.join().unwrap());
        }
        let done: usize = heavy.into_iter().map(|one| one.join().unwrap()).sum();
        (all, done, most)
    });
    let ms = |percent| latencies.percentile_ms(percent);
    println!(
        "answers {} p50 {:.2} p99 {:.2} p999 {:.2} max {:.2} heavy {done} grown_mib {}",
        latencies.count(),
        ms(50.0),
        ms(99.0),
        ms(99.9),
        latencies.max_ms(),
        (most - before) / MIB
    );
}

fn resident(pid: Option<u32>) -> usize {
    let bytes = pid.map_or(0, |pid| {
        measure::process::of(pid).map_or(0, |sample| sample.rss_bytes)
    });
    usize::try_from(bytes).unwrap()
}

/// Asks short questions until it is over.
fn ask(address: &Address, over: &AtomicBool) -> Histogram {
    let mut client = Client::connect(address, &Account::new("app", "app")).unwrap();
    let (mut latencies, begun) = (Histogram::new(), Instant::now());
    while !over.load(Ordering::Relaxed) {
        let asked = Instant::now();
        assert_eq!(client.value("SELECT 4711"), "4711");
        if begun.elapsed() > WARMUP {
            latencies.record(asked.elapsed());
        }
    }
    latencies
}

/// Threads that the burden takes: one holds all unfinished commands.
fn workers(mode: &str, count: usize) -> usize {
    match mode {
        "none" => 0,
        "zlib" | "zstd" => 1,
        _ => count,
    }
}

/// Does what the mode says until it is over; how often it was done.
fn burden(address: &Address, mode: &str, number: usize, count: usize, over: &AtomicBool) -> usize {
    let account = Account::new("app", "app");
    let algorithm = match mode {
        "zlib" => Some((Algorithm::Zlib, cap::COMPRESS)),
        "zstd" => Some((Algorithm::Zstd(3), cap::ZSTD)),
        _ => None,
    };
    if let Some((algorithm, capability)) = algorithm {
        let account = account.with(capability);
        // A command of 16 MiB, of which the last MiB does not come.
        let mut command = vec![0xFE, 0xFF, 0xFF, 0, 3];
        command.resize(15 * MIB, 0);
        let mut frame = Vec::new();
        Packer::default().pack_as(algorithm, 0, &command, &mut frame);
        let mut all: Vec<Client> = (0..count)
            .map(|_| Client::connect(address, &account).unwrap())
            .collect();
        let sent = all
            .iter_mut()
            .filter_map(|client| client.send_unframed(&frame).ok());
        let sent = sent.count();
        while !over.load(Ordering::Relaxed) {
            std::thread::yield_now();
            std::thread::park_timeout(LOOK_EVERY);
        }
        return sent;
    }
    let mut client = Client::connect(address, &account.schema("sbtest")).unwrap();
    let sql = match mode {
        "replies" => "SELECT REPEAT('x', 1000000) FROM seq_1_to_40".to_owned(),
        "statements" => {
            let mib = 16 + (number * 44) / count.max(1);
            format!("SELECT LENGTH('{}')", "y".repeat(mib * MIB - 100))
        }
        other => panic!("{other}: expected none, zlib, zstd, replies or statements"),
    };
    let mut done = 0;
    while !over.load(Ordering::Relaxed) {
        assert!(!client.rows(&sql).rows.is_empty());
        done += 1;
    }
    done
}
