//! Whole groups against a server of the test's own, over real sockets.
//!
//! The server is a thread per connection that greets, lets everybody in, and answers each statement
//! as the test's function says: with what bytes, in what pieces, or by hanging up.
mod endings;
mod models;
mod setting_up;

mod workload;

use crate::group_threads::GroupThreads;
use crate::options::LoadArgs;
use clap::Parser;
use load_core::control::Order;
use load_core::errors::Phase;
use load_core::layout::Layout;
use load_core::login::Credentials;
use load_core::plan::Plan;
use load_core::ports::Sources;
use load_core::stats::Stats;
use reactor::{Address, Time};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::capabilities::COMPRESS;
use wire::compressed::Packer;
use wire::packet::{HEADER_LEN, Header, put_packet};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    load: LoadArgs,
}

/// Reaction of the server to a statement.
pub(crate) enum Answer {
    Send(Vec<u8>),
    /// A reply, some bytes at a time.
    Pieces(Vec<u8>, usize),
    HangUp,
    Silence,
    /// Prepared statement: its parameters are its question marks, its column is one.
    Prepared,
}

pub(crate) type Script = dyn Fn(&str) -> Answer + Send + Sync;

pub(crate) fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let (mut out, mut seq) = (Vec::new(), 1);
    for payload in payloads {
        seq = put_packet(&mut out, seq, payload);
    }
    out
}

pub(crate) const COLUMN: &[u8] = b"\x03def\0\0\0\x01c\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
const OK: &[u8] = b"\0\0\0\x02\0\0\0";
pub(crate) const END: &[u8] = b"\xfe\0\0\x02\0\0\0";

fn one_row() -> Vec<u8> {
    packets(&[b"\x01", COLUMN, b"\x04word", END])
}

fn ok() -> Vec<u8> {
    packets(&[OK])
}

fn err(code: u16, words: &str) -> Vec<u8> {
    let mut payload = vec![0xFF];
    payload.extend_from_slice(&code.to_le_bytes());
    payload.extend_from_slice(b"#40001");
    payload.extend_from_slice(words.as_bytes());
    packets(&[&payload])
}

/// The reply to a prepare command; the statement is the `number`th, from 1.
fn prepared_reply(text: &str, number: usize) -> Vec<u8> {
    let params = text.matches('?').count();
    let columns = usize::from(text.starts_with("SELECT"));
    let mut header = vec![0];
    header.extend_from_slice(&u32::try_from(99 + number).unwrap().to_le_bytes());
    for count in [columns, params, 0] {
        header.extend_from_slice(&u16::try_from(count).unwrap().to_le_bytes());
    }
    header.insert(9, 0);
    let mut all = vec![&header[..]];
    all.resize(1 + params + columns, COLUMN);
    packets(&all)
}

pub(crate) fn serve(script: Arc<Script>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let script = script.clone();
            std::thread::spawn(move || {
                // A client that leaves is the normal end.
                let _ = talk(stream, &*script);
            });
        }
    });
    address
}

/// The server's end of a connection, with frames around the packets once that is agreed.
struct End {
    stream: TcpStream,
    packer: Option<Packer>,
    frames: Vec<u8>,
    plain: Vec<u8>,
}

impl End {
    fn read_packet(&mut self) -> std::io::Result<Vec<u8>> {
        loop {
            if let Some(header) = Header::read(&self.plain) {
                let len = HEADER_LEN + header.len;
                if self.plain.len() >= len {
                    let rest = self.plain.split_off(len);
                    let packet = std::mem::replace(&mut self.plain, rest);
                    return Ok(packet[HEADER_LEN..].to_vec());
                }
            }
            let mut bytes = [0; 4096];
            let came = self.stream.read(&mut bytes)?;
            if came == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let Some(packer) = &mut self.packer else {
                self.plain.extend_from_slice(&bytes[..came]);
                continue;
            };
            self.frames.extend_from_slice(&bytes[..came]);
            while let Some(used) = packer.unpack(&self.frames, &mut self.plain).unwrap() {
                self.frames.drain(..used);
            }
        }
    }

    /// The bytes as they travel; several packets may share a frame or have one each.
    fn framed(&mut self, packets: &[u8]) -> Vec<u8> {
        let Some(packer) = &mut self.packer else {
            return packets.to_vec();
        };
        let mut out = Vec::new();
        // Cut where no packet ends, as servers do.
        let (front, back) = packets.split_at(packets.len() / 3);
        packer.pack(front, &mut out);
        packer.pack(back, &mut out);
        out
    }
}

fn talk(stream: TcpStream, script: &Script) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut end = End {
        stream,
        packer: None,
        frames: Vec::new(),
        plain: Vec::new(),
    };
    let greeting = wire::handshake::Greeting {
        version: b"11.4.0-Test".to_vec(),
        connection_id: 1,
        nonce: *b"abcdefghijklmnopqrst",
        capabilities: wire::capabilities::OFFERED | COMPRESS,
        extended: 0,
        collation: 45,
        status: 2,
        plugin: b"mysql_native_password".to_vec(),
    };
    let mut out = Vec::new();
    greeting.put(&mut out);
    end.stream.write_all(&out)?;
    let login = end.read_packet()?;
    let capabilities = u32::from_le_bytes(*login.first_chunk().unwrap());
    end.stream.write_all(b"\x07\0\0\x02\0\0\0\x02\0\0\0")?;
    end.packer = (capabilities & COMPRESS != 0).then(Packer::default);
    let mut prepared: Vec<String> = Vec::new();
    loop {
        let payload = end.read_packet()?;
        let said = match &payload[..] {
            [3, text @ ..] => String::from_utf8_lossy(text).into_owned(),
            [0x16, text @ ..] => format!("PREPARE {}", String::from_utf8_lossy(text)),
            [0x17, id @ ..] => {
                let number = u32::from_le_bytes(*id.first_chunk().unwrap()) - 100;
                format!("EXECUTE {}", prepared[number as usize])
            }
            _ => return Ok(()),
        };
        match script(&said) {
            Answer::Prepared => {
                let text = said.strip_prefix("PREPARE ").unwrap();
                prepared.push(text.to_owned());
                let reply = prepared_reply(text, prepared.len());
                let bytes = end.framed(&reply);
                end.stream.write_all(&bytes)?;
            }
            Answer::Send(bytes) => {
                let bytes = end.framed(&bytes);
                end.stream.write_all(&bytes)?;
            }
            Answer::Pieces(bytes, size) => {
                for piece in end.framed(&bytes).chunks(size) {
                    end.stream.write_all(piece)?;
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            // Closing would not do: the groups of other tests have copied the descriptor.
            Answer::HangUp => return end.stream.shutdown(Shutdown::Both),
            Answer::Silence => {}
        }
    }
}

/// A group_threads at work against a server that follows `script`.
struct Trial {
    group_threads: GroupThreads,
    stats: Stats,
}

impl Trial {
    fn new(options: &str, script: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Trial {
        Trial::at(serve(Arc::new(script)), options)
    }

    fn at(address: SocketAddr, options: &str) -> Trial {
        let line = format!("load {options} --target mysql://a:b@{address}/t run");
        let args = Line::parse_from(line.split_whitespace()).load;
        let plan = Plan {
            script: args.make_script(),
            tolerance: args.tolerance.clone(),
            finishes_events: args.manner.finishes_events(),
            counts_by_text: args.manner.counts_by_text(),
            more_addresses: Vec::new(),
            read: None,
            model: args.model.model(args.connections),
            credentials: Credentials::of(&args.target, [].iter()).compressing(args.compression),
            init_sql: args.init_sql.clone(),
            sources: Sources::choose(None, args.connections, &args.source_addresses, (1, 2)),
            address: Address::Tcp(address),
            connect_timeout: Duration::from_secs(args.connect_timeout),
            connects_in_flight: args.connects_in_flight(),
            ordered_users: None,
            seed: 1,
        };
        let layout = Layout {
            groups: 2.min(args.connections),
            cores: 2,
            descriptors: 1_000,
            own_tables: true,
        };
        let group_threads = GroupThreads::start(&args, &Arc::new(plan), &layout).unwrap();
        let mut trial = Trial {
            group_threads,
            stats: Stats::default(),
        };
        trial.wait(|group_threads| group_threads.settled == group_threads.len());
        trial.report(Order::Report);
        trial
    }

    fn report(&mut self, order: Order) {
        let stats = self.group_threads.report(order);
        self.stats.merge(stats);
    }

    fn wait(&mut self, done: impl Fn(&GroupThreads) -> bool) {
        let until = Time::now() + Duration::from_secs(20);
        while !done(&self.group_threads) {
            assert!(Time::now() < until, "waited too long");
            self.group_threads.listen(until);
        }
    }

    /// Executes until all events have run or `enough` says so, then ends.
    fn run(mut self, enough: impl Fn(&Stats) -> bool) -> (Stats, GroupThreads) {
        self.group_threads.order(Order::Start);
        let until = Time::now() + Duration::from_secs(20);
        loop {
            assert!(Time::now() < until, "ran too long: {:?}", self.stats.errors);
            self.group_threads
                .listen(Time::now() + Duration::from_millis(20));
            self.report(Order::Report);
            if self.group_threads.finished == self.group_threads.len() || enough(&self.stats) {
                break;
            }
        }
        self.report(Order::Stop(Time::now() + Duration::from_millis(300)));
        let rest = self.group_threads.end(Time::now() + Duration::from_secs(5));
        self.stats.merge(rest);
        assert_eq!(self.group_threads.ended, self.group_threads.len());
        assert_eq!(self.group_threads.failure, None);
        (self.stats, self.group_threads)
    }
}

fn never(_: &Stats) -> bool {
    false
}

#[test]
fn every_event_is_run_and_counted_once() {
    let trial = Trial::new("select --threads 20 --events 500", |_| {
        Answer::Send(one_row())
    });
    assert_eq!(trial.group_threads.connected(), 20);
    let (stats, group_threads) = trial.run(never);
    assert_eq!((stats.reads, stats.events, stats.failed), (500, 500, 0));
    assert_eq!(stats.statement_latency().count(), 500);
    assert_eq!(group_threads.unfinished, 0);
    assert_eq!(group_threads.tally.events().0, 25.0);
}

#[test]
fn a_checkpoint_sums_connections_since_the_one_before() {
    let options = "select --threads 20 --events 500";
    let mut trial = Trial::new(options, |_| Answer::Send(one_row()));
    trial.group_threads.order(Order::Start);
    trial.wait(|group_threads| group_threads.finished == group_threads.len());
    trial.report(Order::Checkpoint);
    let first = std::mem::take(&mut trial.group_threads.tally);
    assert_eq!((first.connections(), first.events().0), (20, 25.0));
    assert!(first.seconds().0 > 0.0);
    // Nothing has run since, here and at the end.
    trial.report(Order::Checkpoint);
    let second = std::mem::take(&mut trial.group_threads.tally);
    assert_eq!((second.connections(), second.events()), (20, (0.0, 0.0)));
    assert_eq!(second.seconds(), (0.0, 0.0));
    let (stats, group_threads) = trial.run(never);
    assert_eq!(stats.events, 500);
    assert_eq!(group_threads.tally, second);
}

#[test]
fn replies_may_come_in_pieces_of_any_size() {
    for size in [1, 3, 4, 5, 7] {
        let script = move |_: &str| Answer::Pieces(one_row(), size);
        let (stats, _) = Trial::new("select --threads 4 --events 40", script).run(never);
        assert_eq!((stats.reads, stats.failed), (40, 0), "pieces of {size}");
    }
}

#[test]
fn rows_larger_than_every_buffer_pass_by() {
    let mut row = vec![0xFD, 0x40, 0x0D, 0x03];
    row.resize(4 + 200_000, b'x');
    let script = move |_: &str| Answer::Send(packets(&[b"\x01", COLUMN, &row, &row, END]));
    let (stats, _) = Trial::new("select --threads 3 --events 30", script).run(never);
    assert_eq!((stats.reads, stats.failed), (30, 0));
}

#[test]
fn a_deadlock_rolls_back_and_runs_the_event_again() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let script = {
        let seen = seen.clone();
        move |text: &str| {
            let mut seen = seen.lock().unwrap();
            let verb = text.split(' ').next().unwrap().to_owned();
            let is_first = verb == "UPDATE" && !seen.contains(&verb);
            seen.push(verb.clone());
            Answer::Send(match verb.as_str() {
                _ if is_first => err(1213, "Deadlock found"),
                "SELECT" => one_row(),
                "BEGIN" | "COMMIT" | "ROLLBACK" => ok(),
                _ => packets(&[b"\0\x01\0\x02\0\0\0"]),
            })
        }
    };
    let (stats, _) = Trial::new("oltp_read_write --threads 1 --events 1", script).run(never);
    let seen = seen.lock().unwrap();
    let count = |verb| seen.iter().filter(|v| *v == verb).count();
    assert_eq!(seen[15..18], ["UPDATE", "ROLLBACK", "BEGIN"]);
    assert_eq!(
        (count("BEGIN"), count("COMMIT"), seen.len()),
        (2, 1, 16 + 1 + 20)
    );
    assert_eq!((stats.ignored, stats.failed, stats.events), (1, 0, 1));
    assert_eq!((stats.reads, stats.writes, stats.others), (28, 4, 4));
    assert_eq!(
        stats.errors.of(Phase::Statement)[0].message,
        "Deadlock found"
    );
}

#[test]
fn another_error_gives_the_event_up_and_goes_on() {
    let script = |_: &str| Answer::Send(err(1146, "Table 't.sbtest1' doesn't exist"));
    let (stats, _) = Trial::new("select --threads 2 --events 6", script).run(never);
    assert_eq!((stats.failed, stats.ignored, stats.events), (6, 0, 0));
    assert_eq!(
        stats.statement_latency().count(),
        0,
        "a failure is no latency"
    );
    let errors = stats.errors.sorted();
    assert_eq!((errors[0].code, errors[0].count), (1146, 6));
}

#[test]
fn a_lost_connection_is_counted_and_opened_again() {
    let number = AtomicU32::new(0);
    let script = move |_: &str| match number.fetch_add(1, Ordering::Relaxed) {
        7 => Answer::HangUp,
        _ => Answer::Send(one_row()),
    };
    let trial = Trial::new("select --threads 2", script);
    let (stats, group_threads) = trial.run(|stats| stats.reconnects > 0 && stats.reads > 20);
    assert_eq!((stats.lost, stats.reconnects, stats.failed), (1, 1, 1));
    assert_eq!(stats.errors.sorted()[0].code, 2013);
    assert!(group_threads.tally.events().0 > 0.0);
}

#[test]
fn a_statement_without_a_reply_does_not_keep_the_run_from_ending() {
    let script = |_: &str| Answer::Silence;
    let (stats, group_threads) = Trial::new("select --threads 5", script).run(|_| true);
    assert_eq!(
        (group_threads.unfinished, stats.reads, stats.failed),
        (5, 0, 0)
    );
}

#[test]
fn a_server_that_says_nothing_is_given_up_after_a_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let trial = Trial::at(address, "select --threads 2 --connect-timeout 1");
    assert_eq!(
        (trial.group_threads.connected(), trial.stats.failed_connects),
        (0, 2)
    );
    let errors = trial.stats.errors.sorted();
    assert!(
        errors[0].message.starts_with("ETIMEDOUT"),
        "{}",
        errors[0].message
    );
}

#[test]
fn nobody_there_ends_the_ramp_early() {
    // Bound, but not listening.
    let (_held, address) = reactor::socket::reserve(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let trial = Trial::at(address, "select --threads 2000 --connects-in-flight 8");
    let failed = trial.stats.failed_connects;
    assert!((128..200).contains(&failed), "{failed}");
    assert_eq!(trial.stats.errors.sorted()[0].code, 111);
}

#[test]
fn nonsense_from_the_server_is_an_error_and_no_panic() {
    for bytes in [
        b"\x01\0\0\x05\0".to_vec(),
        b"\xff\xff\xff\x01\0".to_vec(),
        b"\x01\0\0\x01\xfb".to_vec(),
        b"\x02\0\0\x01\xfc\x01".to_vec(),
        // An OK of 16 KiB and one byte.
        b"\x01\x40\0\x01\0".to_vec(),
        [packets(&[OK]), packets(&[OK])].concat(),
    ] {
        let script = move |_: &str| Answer::Send(bytes.clone());
        let trial = Trial::new("select --threads 1", script);
        let (stats, _) = trial.run(|stats| stats.lost > 1);
        assert_eq!(stats.errors.of(Phase::Statement)[0].code, 2027);
    }
}

/// Requests to a server that prepares, in order.
fn prepared_run(options: &str, refused: &'static str, code: u16) -> (Vec<String>, Stats) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let script = {
        let seen = seen.clone();
        move |said: &str| {
            seen.lock().unwrap().push(said.to_owned());
            match said.split(' ').next().unwrap() {
                "PREPARE" if said.contains(refused) => Answer::Send(err(code, "refused")),
                "PREPARE" => Answer::Prepared,
                _ if said.contains("SELECT") => Answer::Pieces(one_row(), 9),
                _ => Answer::Send(ok()),
            }
        }
    };
    let options = format!("{options} --db-ps-mode auto --threads 1");
    let (stats, _) = Trial::new(&options, script).run(never);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, stats)
}

#[test]
fn a_statement_is_prepared_when_first_needed_and_then_executed() {
    let options = "oltp_read_only --range-selects=off --point-selects 2 --events 2";
    let (seen, stats) = prepared_run(options, "nothing", 0);
    let point = "SELECT c FROM sbtest1 WHERE id=?";
    let execute = format!("EXECUTE {point}");
    let expected = [
        "PREPARE BEGIN",
        "EXECUTE BEGIN",
        &format!("PREPARE {point}"),
        &execute,
        &execute,
        "PREPARE COMMIT",
        "EXECUTE COMMIT",
        "EXECUTE BEGIN",
        &execute,
        &execute,
        "EXECUTE COMMIT",
    ];
    assert_eq!(seen, expected);
    assert_eq!((stats.reads, stats.others, stats.events), (4, 4, 2));
    assert_eq!(
        stats.statement_latency().count(),
        8,
        "preparing is no statement"
    );
}

#[test]
fn what_the_server_does_not_prepare_goes_as_text() {
    for (refused, code) in [("BEGIN", 1295), ("SELECT", 1461)] {
        let options = "oltp_read_only --range-selects=off --point-selects 2 --events 3";
        let (seen, stats) = prepared_run(options, refused, code);
        let count = |said: &str| seen.iter().filter(|s| s.starts_with(said)).count();
        assert_eq!((stats.failed, stats.events), (0, 3), "{seen:?}");
        assert_eq!(stats.successes(), 12);
        assert_eq!(count(&format!("PREPARE {refused}")), 1, "{seen:?}");
        let texts = if refused == "BEGIN" { 3 } else { 6 };
        assert_eq!(count(refused), texts, "{seen:?}");
        assert_eq!(stats.errors.of(Phase::Statement)[0].code, u32::from(code));
    }
}

#[test]
fn a_statement_that_cannot_be_prepared_for_another_reason_fails() {
    let (seen, stats) = prepared_run("oltp_point_select --events 3", "SELECT", 1146);
    assert_eq!(seen, ["PREPARE SELECT c FROM sbtest1 WHERE id=?"; 3]);
    assert_eq!((stats.failed, stats.events), (3, 0));
}

#[test]
fn a_connection_is_reopened_after_its_events() {
    let script = |_: &str| Answer::Send(one_row());
    let trial = Trial::new("select --threads 1 --events 18 --reconnect 4", script);
    let (stats, _) = trial.run(never);
    assert_eq!((stats.reads, stats.failed, stats.lost), (18, 0, 0));
    assert_eq!(stats.reconnects, 4);
}

#[test]
fn compressed_replies_may_come_in_pieces_of_any_size() {
    let long = vec![b'x'; 200];
    let mut row = vec![200];
    row.extend_from_slice(&long);
    let reply = packets(&[b"\x01", COLUMN, &row, &row, END]);
    for size in [1, 6, 8, 1000] {
        let reply = reply.clone();
        let script = move |_: &str| Answer::Pieces(reply.clone(), size);
        let options = "select --threads 3 --events 12 --compression";
        let (stats, _) = Trial::new(options, script).run(never);
        assert_eq!((stats.reads, stats.failed), (12, 0), "pieces of {size}");
    }
}

#[test]
fn long_statements_and_replies_are_compressed_both_ways() {
    let mut row = vec![0xFD, 0x40, 0x0D, 0x03];
    row.resize(4 + 200_000, b'x');
    let script = move |said: &str| match said.starts_with("INSERT") {
        true => Answer::Send(packets(&[b"\0\x01\0\x02\0\0\0"])),
        false => Answer::Send(packets(&[b"\x01", COLUMN, &row, &row, END])),
    };
    for (options, reads, writes) in [("select", 6, 0), ("bulk_insert", 0, 1)] {
        let events = if reads > 0 { 6 } else { 20_000 };
        let options = format!("{options} --threads 1 --events {events} --compression");
        let (stats, _) = Trial::new(&options, script.clone()).run(never);
        assert_eq!(
            (stats.reads, stats.writes, stats.failed),
            (reads, writes, 0)
        );
        assert_eq!(stats.events, events);
    }
}

#[test]
fn frames_are_unpacked_one_at_a_time() {
    // Two rows of 16 MiB are some 32 KiB in frames, which one read brings.
    let mut row = vec![0xFD, 0xF0, 0xFF, 0xFF];
    row.resize(4 + 0xFF_FFF0, b'x');
    let reply = packets(&[b"\x01", COLUMN, &row, &row, END]);
    let script = move |_: &str| Answer::Send(reply.clone());
    let options = "select --threads 1 --events 2 --compression";
    let (stats, _) = Trial::new(options, script).run(never);
    assert_eq!((stats.reads, stats.failed), (2, 0));
}

#[test]
fn what_comes_in_frames_behind_a_reply_is_an_error() {
    let reply = [packets(&[OK]), packets(&[OK])].concat();
    let trial = Trial::new("select --threads 1 --compression", move |_| {
        Answer::Send(reply.clone())
    });
    let (stats, _) = trial.run(|stats| stats.lost > 1);
    let errors = stats.errors.of(Phase::Statement);
    assert!(errors[0].message.contains("behind the end"), "{errors:?}");
}

#[test]
fn several_results_are_one_statement() {
    const MORE: &[u8] = b"\xfe\0\0\x0a\0\0\0";
    let one = [b"\x01", COLUMN, b"\x04word", MORE];
    let two = [b"\x01", COLUMN, b"\x04more", b"\x04rows", MORE, OK];
    let reply = packets(&[&one[..], &two[..]].concat());
    for size in [3, 1000] {
        let reply = reply.clone();
        let script = move |_: &str| Answer::Pieces(reply.clone(), size);
        let (stats, _) = Trial::new("select --threads 2 --events 10", script).run(never);
        assert_eq!((stats.reads, stats.successes(), stats.failed), (10, 10, 0));
    }
}
