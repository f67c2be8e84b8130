//! Measures how clients are slowed down by others that send or read a lot, begin commands without
//! ending them, or flood the pool with commands that need no server.
//!
//! The problem: whether a client with 40 MiB under way delays everybody else is seen in others'
//! latencies only. The mechanism: 32 clients (8 beside floods) ask a short question each, again as
//! soon as it is answered, while others do what MODE says; then their latencies are printed, and
//! how far the memory of process PID has grown at most. Beside those that do not read, 4 clients
//! write, 4 run transactions, and the questions of 4 are texts that never ran. `scripts/heavy.sh`
//! compares modes, with the pool and without.
//!
//! Usage: `heavy HOST:PORT MODE COUNT SECONDS [PID]`. It logs in as app with password app, and
//! prints one line of `NAME VALUE` pairs. `heavy` is how often the burden was done, of a flood its
//! answers in KiB; `at_s` is when the longest statement began. MODE is one of:
//! - `none`, or `flood-none` for nothing beside 8 clients;
//! - `zlib` or `zstd`: COUNT clients begin a compressed command of 16 MiB and send 15 MiB of it;
//! - `replies`: COUNT clients loop replies of 40 MiB; `statements`: COUNT clients loop statements
//!   of 16 to 60 MiB. With `replies@MS` and `statements@MS` each of them begins one every MS
//!   milliseconds at most, so that two runs carry the same burden;
//! - `unread`: COUNT clients ask for 100 MB and read nothing; with `unread-own` each by a text of
//!   its own. With `unread@USER` they log in as this user, with its name as password;
//! - `packed`: COUNT clients loop four compressed frames that hold a statement of 16 MiB each;
//! - `flood-KIND` or `flood-KIND-WAY`: COUNT clients send commands of one kind (see `command_of`)
//!   without end. WAY is `zlib`, `zstd`, `tls`, `open` (in a transaction) or `unread` (no answer is
//!   ever taken).
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
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};
use testkit::client::Client;
use testkit::talk::Account;
use wire::blocking::Connection;
use wire::capabilities as cap;
use wire::command::{Command, put_command};
use wire::compressed::{Algorithm, Packer};
use wire::packet::{Frame, HEADER_LEN, frame};
use wire::reply::{END, ERR};

/// Clients whose latencies count; beside floods, which want most of two processors, fewer.
const OTHERS: usize = 32;
const OTHERS_OF_FLOODS: usize = 8;
/// Clients of each kind beside those that do not read.
const OF_EACH_KIND: usize = 4;
/// Nothing is counted before.
const WARMUP: Duration = Duration::from_secs(1);
/// Interval of looks at memory.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Bytes of commands that a flood writes at once, and how many commands under TLS.
const FLOOD_CHUNK: usize = 64 * 1024;
const FLOOD_BATCH: usize = 1000;
/// A statement that takes longer is told of.
const STALL: Duration = Duration::from_secs(1);
/// Frames that a client of `packed` sends before it waits for their answers.
const FRAMES: usize = 4;
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
    let (latencies, of_kinds, longest, done, most) = std::thread::scope(|scope| {
        let kinds: &[Kind] = match mode.starts_with("unread") {
            true => &[Kind::Writes, Kind::Transactions, Kind::New],
            false => &[Kind::Short],
        };
        let of_each = match mode.split(['-', '@']).next() {
            Some("flood") => OTHERS_OF_FLOODS,
            Some("unread") => OF_EACH_KIND,
            _ => OTHERS,
        };
        let (address, over) = (&address, &over);
        let others = kinds
            .iter()
            .flat_map(|kind| (0..of_each).map(move |row| (kind, row)));
        let others: Vec<_> = others
            .map(|(kind, row)| (kind, scope.spawn(move || ask(address, *kind, row, over))))
            .collect();
        let (told, heard) = mpsc::sync_channel::<()>(0);
        let heavy: Vec<_> = (0..workers(mode, count))
            .map(|number| scope.spawn(move || burden(address, mode, number, count, over)))
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
        let mut of_kinds: Vec<(Kind, Histogram)> = Vec::new();
        for (kind, other) in others {
            let (latencies, its_longest) = other.join().unwrap();
            all.merge(&latencies);
            match of_kinds.last_mut().filter(|(last, _)| last == kind) {
                Some((_, of_kind)) => of_kind.merge(&latencies),
                None => of_kinds.push((*kind, latencies)),
            }
            longest = longest.max(its_longest);
        }
        let done: usize = heavy.into_iter().map(|one| one.join().unwrap()).sum();
        (all, of_kinds, longest, done, most)
    });
    let ms = |percent| latencies.percentile_ms(percent);
    for (kind, latencies) in of_kinds.iter().filter(|_| of_kinds.len() > 1) {
        print!(
            "{kind:?} {} p99 {:.2} ",
            latencies.count(),
            latencies.percentile_ms(99.0)
        );
    }
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

/// Work of a client whose latencies count.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Short,
    Writes,
    Transactions,
    New,
}

impl Kind {
    /// Its statement of this number.
    fn text(self, row: usize, number: usize) -> String {
        let update = format!("UPDATE sbtest.beside SET n = n + 1 WHERE i = {row}");
        match (self, number % 3) {
            (Kind::Short, _) => "SELECT 4711".to_owned(),
            (Kind::New, _) => format!("SELECT 4711 AS n_{row}_{number}"),
            (Kind::Transactions, 0) => "BEGIN".to_owned(),
            (Kind::Transactions, 2) => "COMMIT".to_owned(),
            (Kind::Transactions, _) => update.replace("beside", "beside2"),
            (Kind::Writes, _) => update,
        }
    }
}

/// Runs short statements until it is over; also says how long the longest took, and when it began.
fn ask(
    address: &Address,
    kind: Kind,
    row: usize,
    over: &AtomicBool,
) -> (Histogram, (Duration, Duration)) {
    let mut client = log_in(address, 0).0;
    let mut number = 0;
    let (mut latencies, begun) = (Histogram::new(), Instant::now());
    let mut longest = (Duration::ZERO, Duration::ZERO);
    let (mut delayed, mut looked_at) = (run_delay(), Instant::now());
    while !over.load(Ordering::Relaxed) {
        let text = kind.text(row, number);
        number += 1;
        let asked = Instant::now();
        if let Err(error) = client.query(text.as_bytes(), |_| ()) {
            eprintln!("behind {:?}: {error}", begun.elapsed());
            continue;
        }
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

/// Time for which the calling thread has been ready without the kernel running it.
fn run_delay() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = told.split_whitespace().nth(1);
    Duration::from_nanos(nanos.and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// A connection that costs this program little, so that its own work is not measured; and its
/// socket, on which what these capabilities agree on is spoken.
fn log_in(address: &Address, besides: u32) -> (Connection<TcpStream>, TcpStream) {
    log_in_as("app", address, besides)
}

fn log_in_as(user: &str, address: &Address, besides: u32) -> (Connection<TcpStream>, TcpStream) {
    let Address::Tcp(address) = address else {
        panic!("{address}: expected HOST:PORT");
    };
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let socket = stream.try_clone().unwrap();
    let mut connection = Connection::new(stream);
    let wanted = cap::PROTOCOL_41 | cap::SECURE_CONNECTION | cap::PLUGIN_AUTH | cap::DEPRECATE_EOF;
    let account = wire::client_login::Account {
        user: user.as_bytes(),
        credential: wire::auth::Credential::Password(user.as_bytes()),
        schema: b"",
        private: false,
        wanted: wanted | besides,
        extended: 0,
        required: cap::PROTOCOL_41,
        collation: wire::client_login::COLLATION,
        server_key: wire::client_login::ServerKey::Sent,
    };
    connection.log_in(&account).unwrap();
    (connection, socket)
}

/// Threads that the burden takes: one holds all unfinished commands.
fn workers(mode: &str, count: usize) -> usize {
    match mode {
        "none" | "flood-none" => 0,
        "zlib" | "zstd" => 1,
        _ => count,
    }
}

/// Runs the mode until it is over; returns how often it was done.
fn burden(address: &Address, mode: &str, number: usize, count: usize, over: &AtomicBool) -> usize {
    match mode {
        "zlib" => begin_commands(address, Algorithm::Zlib, cap::COMPRESS, count, over),
        "zstd" => begin_commands(address, Algorithm::Zstd(3), cap::ZSTD, count, over),
        "packed" => loop_packed(address, over),
        _ if mode.starts_with("unread") => {
            let user = mode.split_once('@').map_or("app", |(_, user)| user);
            let own = mode.starts_with("unread-own").then_some(number);
            read_nothing(address, user, own, over)
        }
        _ if let Some(kind) = mode.strip_prefix("flood-") => flood(address, kind, over),
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

/// A client that asks for 100 MB, by a text of its `own` if it has a number, and reads nothing.
fn read_nothing(address: &Address, user: &str, own: Option<usize>, over: &AtomicBool) -> usize {
    let (_connection, mut socket) = log_in_as(user, address, 0);
    let name = own.map_or(String::new(), |number| format!(" AS n_{number}"));
    let sql =
        format!("SELECT REPEAT('x', 1000000){name} FROM sbtest.forty a, sbtest.forty b LIMIT 100");
    let mut asked = Vec::new();
    put_command(&mut asked, Command::Query, sql.as_bytes());
    socket.write_all(&asked).unwrap();
    while !over.load(Ordering::Relaxed) {
        std::thread::park_timeout(LOOK_EVERY);
    }
    1
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
        other => {
            panic!(
                "{other}: expected none, zlib, zstd, packed, unread, replies, statements or flood"
            )
        }
    };
    let mut client = log_in(address, 0).0;
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

/// A client that sends four frames, each with a statement of 16 MiB, takes the four answers, and
/// begins again; how many were answered with rows.
fn loop_packed(address: &Address, over: &AtomicBool) -> usize {
    static FRAME: OnceLock<Vec<u8>> = OnceLock::new();
    let packed = FRAME.get_or_init(|| {
        let sql = format!("SELECT LENGTH('{}')", "y".repeat(16 * MIB - 100));
        let (mut command, mut frame) = (Vec::new(), Vec::new());
        put_command(&mut command, Command::Query, sql.as_bytes());
        Packer::default().pack(&command, &mut frame);
        frame
    });
    let (_connection, mut socket) = log_in(address, cap::COMPRESS);
    let ended = socket.try_clone().unwrap();
    let (mut packer, mut done) = (Packer::default(), 0);
    std::thread::scope(|scope| {
        // Answers that are late are not waited for when it is over.
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(LOOK_EVERY);
            }
            let _ = ended.shutdown(Shutdown::Both);
        });
        let (mut raw, mut packets, mut answered) = (Vec::new(), Vec::new(), FRAMES);
        let mut buffer = [0; 4096];
        loop {
            if answered == FRAMES {
                answered = 0;
                let _ = socket.write_all(&packed.repeat(FRAMES));
            }
            let n = socket.read(&mut buffer).unwrap_or(0);
            if n == 0 {
                if !over.load(Ordering::Relaxed) {
                    eprintln!("closed behind {done} large statements");
                }
                return done;
            }
            raw.extend_from_slice(&buffer[..n]);
            while let Some(used) = packer
                .unpack_as(Algorithm::Zlib, &raw, &mut packets)
                .unwrap()
            {
                raw.drain(..used);
            }
            while let Frame::Whole { total, .. } = frame(&packets) {
                match packets[HEADER_LEN] {
                    ERR => {
                        let words = String::from_utf8_lossy(&packets[HEADER_LEN + 9..total]);
                        eprintln!("a large statement: {words}");
                        answered += 1;
                    }
                    END => {
                        done += 1;
                        answered += 1;
                    }
                    _ => {}
                }
                packets.drain(..total);
            }
        }
    })
}

/// The command of a flood of this kind.
fn command_of(kind: &str) -> (Command, &'static [u8]) {
    match kind {
        "ping" => (Command::Ping, b""),
        "empty" => (Command::Query, b""),
        "commit" => (Command::Query, b"COMMIT"),
        "set" => (Command::Query, b"SET autocommit=1"),
        "reset" => (Command::ResetConnection, b""),
        "close" => (Command::StmtClose, &[0x67, 0x12, 0, 0]),
        "error" => (Command::Query, b"SET onramp_priority='none of these'"),
        other => {
            panic!("{other}: expected ping, empty, commit, set, reset, close or error")
        }
    }
}

/// One client that sends one command again and again, whatever is answered; KiB of the answers.
fn flood(address: &Address, kind: &str, over: &AtomicBool) -> usize {
    let (kind, way) = kind.split_once('-').unwrap_or((kind, ""));
    let (command, arguments) = command_of(kind);
    if way == "tls" {
        return flood_under_tls(address, command, arguments, over);
    }
    let mut one = Vec::new();
    put_command(&mut one, command, arguments);
    let (packing, besides) = match way {
        "" | "open" | "unread" => (None, 0),
        "zlib" => (Some(Algorithm::Zlib), cap::COMPRESS),
        "zstd" => (Some(Algorithm::Zstd(3)), cap::ZSTD),
        other => panic!("{other}: expected zlib, zstd, tls, open or unread"),
    };
    let (mut connection, mut socket) = log_in(address, besides);
    if way == "open" {
        for sql in [&b"BEGIN"[..], b"SELECT 1"] {
            connection.query(sql, |_| ()).unwrap();
        }
    }
    let mut chunk = one.repeat(FLOOD_CHUNK / one.len());
    if let Some(algorithm) = packing {
        // No command is in two frames, so each begins with number 0.
        let whole = one.repeat((16 * MIB - 1) / one.len());
        chunk.clear();
        Packer::default().pack_as(algorithm, 0, &whole, &mut chunk);
    }
    let mut writer = socket.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || while writer.write_all(&chunk).is_ok() {});
        let (mut bytes, mut buffer) = (0, vec![0; 1 << 20]);
        socket.set_read_timeout(Some(LOOK_EVERY)).unwrap();
        while !over.load(Ordering::Relaxed) {
            match way {
                "unread" => std::thread::park_timeout(LOOK_EVERY),
                _ => match socket.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => bytes += n,
                    Err(_) => {}
                },
            }
        }
        let _ = socket.shutdown(Shutdown::Both);
        bytes / 1024
    })
}

/// A flood in batches under TLS, the next of which is sent before the last is answered.
fn flood_under_tls(
    address: &Address,
    command: Command,
    arguments: &[u8],
    over: &AtomicBool,
) -> usize {
    let account = Account::new("app", "app").with(cap::SSL);
    let mut client = Client::connect(address, &account).unwrap();
    assert!(client.is_tls());
    let batch = vec![(command, arguments); FLOOD_BATCH];
    let mut done = 0;
    client.send(&batch).unwrap();
    while !over.load(Ordering::Relaxed) {
        client.send(&batch).unwrap();
        for _ in 0..FLOOD_BATCH {
            client.receive().unwrap();
        }
        done += FLOOD_BATCH;
    }
    done * 11 / 1024
}
