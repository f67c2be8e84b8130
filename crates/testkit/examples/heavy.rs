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
//! loop replies of 40 MiB; `statements`: COUNT clients loop statements of 16 to 60 MiB. With
//! `replies@MS` and `statements@MS` each of them begins one every MS milliseconds at most, so that
//! two runs carry the same burden. It logs in as app with password app, and prints one line of
//! `NAME VALUE` pairs. `heavy` is how often the burden was done, `at_s` when the longest statement
//! began.
//!
//! A statement that takes longer than [`STALL`] is told of, with the time for which the kernel left
//! its thread waiting for a processor: that part is the machine's, and nobody's fault here.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for measuring: it says its figures, and ends where it cannot go on"
)]

use measure::Histogram;
use reactor::Address;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use testkit::client::Client;
use testkit::talk::Account;
use wire::blocking::Connection;
use wire::capabilities as cap;
use wire::compressed::{Algorithm, Packer};

/// Clients whose latencies count.
const OTHERS: usize = 32;
/// Nothing is counted before.
const WARMUP: Duration = Duration::from_secs(1);
/// How often memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A statement that takes longer is told of.
const STALL: Duration = Duration::from_secs(1);
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
    let (latencies, longest, done, most) = std::thread::scope(|scope| {
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
        let mut awake = Instant::now();
        while Instant::now() < end {
            let _ = heard.recv_timeout(LOOK_EVERY);
            if awake.elapsed() > LOOK_EVERY + STALL {
                eprintln!(
                    "the look took {:?}, run delay {:?}",
                    awake.elapsed(),
                    run_delay()
                );
            }
            awake = Instant::now();
            most = most.max(resident(pid));
        }
        drop(told);
        over.store(true, Ordering::Relaxed);
        let (mut all, mut longest) = (Histogram::new(), (Duration::ZERO, Duration::ZERO));
        for other in others {
            let (latencies, its_longest) = other.join().unwrap();
            all.merge(&latencies);
            longest = longest.max(its_longest);
        }
        let done: usize = heavy.into_iter().map(|one| one.join().unwrap()).sum();
        (all, longest, done, most)
    });
    let ms = |percent| latencies.percentile_ms(percent);
    println!(
        "answers {} p50 {:.2} p99 {:.2} p999 {:.2} max {:.2} at_s {:.2} heavy {done} grown_mib {}",
        latencies.count(),
        ms(50.0),
        ms(99.0),
        ms(99.9),
        latencies.max_ms(),
        longest.1.as_secs_f64(),
        (most - before) / MIB
    );
}

fn resident(pid: Option<u32>) -> usize {
    let bytes = pid.map_or(0, |pid| {
        measure::process::of(pid).map_or(0, |sample| sample.rss_bytes)
    });
    usize::try_from(bytes).unwrap()
}

/// Asks short questions until it is over; also says how long the longest took, and when it began.
fn ask(address: &Address, over: &AtomicBool) -> (Histogram, (Duration, Duration)) {
    let mut client = log_in(address);
    let (mut latencies, begun) = (Histogram::new(), Instant::now());
    let mut longest = (Duration::ZERO, Duration::ZERO);
    let (mut delayed, mut looked_at) = (run_delay(), Instant::now());
    while !over.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let mut rows = 0;
        client.query(b"SELECT 4711", |_| rows += 1).unwrap();
        assert_eq!(rows, 1);
        let took = asked.elapsed();
        if took > STALL {
            let kernel = run_delay().saturating_sub(delayed);
            eprintln!("a statement took {took:?}; its thread was ready and not run for {kernel:?}");
        }
        if looked_at.elapsed() > LOOK_EVERY {
            (delayed, looked_at) = (run_delay(), Instant::now());
        }
        if begun.elapsed() > WARMUP {
            latencies.record(took);
            longest = longest.max((took, asked.duration_since(begun)));
        }
    }
    (latencies, longest)
}

/// How long the calling thread has been ready without the kernel running it.
fn run_delay() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = told.split_whitespace().nth(1);
    Duration::from_nanos(nanos.and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// A connection that costs this program little, so that its own work is not measured.
fn log_in(address: &Address) -> Connection<TcpStream> {
    let Address::Tcp(address) = address else {
        panic!("{address}: expected HOST:PORT");
    };
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut connection = Connection::new(stream);
    let wanted = cap::PROTOCOL_41 | cap::SECURE_CONNECTION | cap::PLUGIN_AUTH | cap::DEPRECATE_EOF;
    let account = wire::client_login::Account {
        user: b"app",
        credential: wire::auth::Credential::Password(b"app"),
        schema: b"",
        private: false,
        wanted,
        extended: 0,
        required: cap::PROTOCOL_41,
        collation: wire::client_login::COLLATION,
    };
    connection.log_in(&account).unwrap();
    connection
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
    match mode {
        "zlib" => begin_commands(address, Algorithm::Zlib, cap::COMPRESS, count, over),
        "zstd" => begin_commands(address, Algorithm::Zstd(3), cap::ZSTD, count, over),
        _ => loop_large(address, mode, number, count, over),
    }
}

/// Clients that begin compressed commands of 16 MiB and do not end them.
fn begin_commands(
    address: &Address,
    algorithm: Algorithm,
    capability: u32,
    count: usize,
    over: &AtomicBool,
) -> usize {
    let account = Account::new("app", "app").with(capability);
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
        std::thread::park_timeout(LOOK_EVERY);
    }
    sent
}

/// One client that sends large statements, or takes large replies, one after the other.
fn loop_large(
    address: &Address,
    mode: &str,
    number: usize,
    count: usize,
    over: &AtomicBool,
) -> usize {
    let (what, pace) = mode.split_once('@').unwrap_or((mode, "0"));
    let pace = Duration::from_millis(pace.parse().unwrap());
    let sql = match what {
        "replies" => "SELECT REPEAT('x', 1000000) FROM sbtest.forty".to_owned(),
        "statements" => {
            let mib = 16 + (number * 44) / count.max(1);
            format!("SELECT LENGTH('{}')", "y".repeat(mib * MIB - 100))
        }
        other => panic!("{other}: expected none, zlib, zstd, replies or statements"),
    };
    let mut client = log_in(address);
    let (mut done, begun) = (0, Instant::now());
    while !over.load(Ordering::Relaxed) {
        let mut bytes = 0;
        client
            .query(sql.as_bytes(), |row| bytes += row.len())
            .unwrap();
        assert!(bytes > 0);
        done += 1;
        let next = begun + pace * u32::try_from(done).unwrap();
        while !over.load(Ordering::Relaxed) && Instant::now() < next {
            std::thread::park_timeout(LOOK_EVERY.min(next - Instant::now()));
        }
    }
    done
}
