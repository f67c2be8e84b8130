//! Failed logins by the thousand, against a running pool: to see what they cost others, and whether
//! their time tells a known name from an unknown one.
//!
//! `login_flood flood ADDRESS USER COUNT AT_ONCE SOURCES` sends COUNT full authentications of
//! `caching_sha2_password` with random bytes for the encrypted password, AT_ONCE at a time, from
//! SOURCES addresses of 127.0.0.0/8, and says how they were answered.
//!
//! `login_flood time ADDRESS USER UNKNOWN COUNT PLUGIN` logs in COUNT times as each of two names
//! with a wrong password, in turn, one at a time, and compares the times from the login to its
//! error. Both must be told the same, packet by packet: sequence numbers, and every byte but
//! nonces, names and addresses. Each address is used for as few logins as cost nothing. The last
//! line says how often an unknown name took longer than a known one, of all pairs: where the times
//! tell nothing it is 0.5, and the deviation from it has the standard error that is printed beside
//! it.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a tool for measuring: it fails by panicking"
)]

use reactor::{Address, socket};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use testkit::talk::USUAL;
use wire::auth::Plugin;
use wire::auth::caching_sha2::{FULL_AUTH, REQUEST_PUBLIC_KEY, encrypt};
use wire::handshake::{AUTH_MORE, AUTH_SWITCH, AuthSwitch, Greeting, Login};
use wire::packet::put_packet;

/// Logins from one address: two addresses that share a cell of the pool's table have fewer than are
/// answered at once.
const FREE: u32 = 4;

struct Conversation {
    stream: TcpStream,
}

impl Conversation {
    fn open(address: &Address, source: u32) -> std::io::Result<Conversation> {
        let source = IpAddr::V4(Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + source));
        let stream = TcpStream::from(socket::dial(address, Some(source))?);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Conversation { stream })
    }

    fn read(&mut self) -> std::io::Result<(u8, Vec<u8>)> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header)?;
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let mut payload = vec![0; len];
        self.stream.read_exact(&mut payload)?;
        Ok((header[3], payload))
    }

    fn say(&mut self, seq: u8, payload: &[u8]) -> std::io::Result<()> {
        let mut out = Vec::new();
        put_packet(&mut out, seq, payload);
        self.stream.write_all(&out)
    }
}

/// End of a login.
struct Ended {
    answer: String,
    /// Time from the login to its error.
    time: Duration,
    /// Words of the server, but for what is random or names the client.
    told: Vec<String>,
}

/// A packet in letters, with a word in place of each occurrence of these bytes.
fn without(payload: &[u8], parts: &[&[u8]]) -> String {
    let letters = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| char::from(*byte))
            .collect::<String>()
    };
    let mut text = letters(payload);
    for part in parts {
        text = text.replace(&letters(part), "(x)");
    }
    text.escape_default().to_string()
}

/// One login with a wrong password.
fn fail(
    (address, source): (&Address, u32),
    (user, plugin): (&str, Plugin),
    garbage: Option<&[u8]>,
) -> std::io::Result<Ended> {
    let host = Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + source).to_string();
    let mut talk = Conversation::open(address, source)?;
    let (_, greeting) = talk.read()?;
    let Ok(greeting) = Greeting::read(&greeting) else {
        return Ok(Ended {
            answer: String::from_utf8_lossy(&greeting).into_owned(),
            time: Duration::ZERO,
            told: Vec::new(),
        });
    };
    let mut told = vec![format!(
        "{} {:?}",
        greeting.capabilities,
        String::from_utf8_lossy(&greeting.plugin)
    )];
    let mut nonce = greeting.nonce;
    let mut out = Vec::new();
    Login {
        capabilities: USUAL & greeting.capabilities,
        collation: 45,
        user: user.as_bytes(),
        answer: &plugin.answer(b"wrong", &nonce),
        schema: b"",
        plugin: plugin.name().as_bytes(),
        zstd_level: 3,
        extended: 0,
    }
    .put(&mut out, 1);
    let began = Instant::now();
    talk.stream.write_all(&out)?;
    loop {
        let (seq, said) = talk.read()?;
        let kept = match said[0] {
            AUTH_SWITCH => without(&said, &[&AuthSwitch::read(&said).unwrap().nonce().unwrap()]),
            // The pool's key is one for all clients.
            AUTH_MORE => without(&said, &[]),
            _ => without(&said, &[user.as_bytes(), host.as_bytes()]),
        };
        told.push(format!("{seq} {kept}"));
        let seq = seq.wrapping_add(1);
        match said[0] {
            AUTH_SWITCH => {
                let switch = AuthSwitch::read(&said).unwrap();
                nonce = switch.nonce().unwrap();
                let plugin = Plugin::from_name(switch.plugin).unwrap();
                talk.say(seq, &plugin.answer(b"wrong", &nonce))?;
            }
            AUTH_MORE if said[1] == FULL_AUTH => match garbage {
                Some(garbage) => talk.say(seq, garbage)?,
                None => talk.say(seq, &[REQUEST_PUBLIC_KEY])?,
            },
            AUTH_MORE => talk.say(seq, &encrypt(b"wrong", &nonce, &said[1..]).unwrap())?,
            _ => {
                let code = u16::from_le_bytes([said[1], said[2]]);
                return Ok(Ended {
                    answer: format!("error {code}"),
                    time: began.elapsed(),
                    told,
                });
            }
        }
    }
}

fn flood(arguments: &[String]) {
    let address = Address::parse(&arguments[0]).unwrap();
    let user = &arguments[1];
    let [count, at_once, sources] = [2, 3, 4].map(|at| arguments[at].parse::<u32>().unwrap());
    let next = AtomicU32::new(0);
    let answers = Mutex::new(BTreeMap::<String, u32>::new());
    let began = Instant::now();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let mut garbage = [0; 256];
            // Below any modulus of 2048 bits, so that it is decrypted.
            let random = rustix::rand::GetRandomFlags::empty();
            rustix::rand::getrandom(&mut garbage[1..255], random).unwrap();
            garbage[255] = 1;
            let way = (&address, number % sources);
            let answer = fail(way, (user, Plugin::CachingSha2), Some(&garbage));
            let answer = answer.map_or_else(|error| error.to_string(), |ended| ended.answer);
            *answers.lock().unwrap().entry(answer).or_default() += 1;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            let builder = std::thread::Builder::new().stack_size(128 * 1024);
            builder.spawn_scoped(scope, work).unwrap();
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{count} in {seconds:.1} s: {:?}",
        answers.into_inner().unwrap()
    );
}

fn time(arguments: &[String]) {
    let address = Address::parse(&arguments[0]).unwrap();
    let names = [arguments[1].as_str(), arguments[2].as_str()];
    let count: u32 = arguments[3].parse().unwrap();
    let plugin = Plugin::from_name(arguments[4].as_bytes()).unwrap();
    let mut times = [Vec::new(), Vec::new()];
    let mut told = None;
    for number in 0..count {
        // Who comes first changes by the sequence of Thue and Morse, so that neither is more often
        // the first from its address, or behind the other, than it is not.
        let order = match number.count_ones() % 2 {
            0 => [0, 1],
            _ => [1, 0],
        };
        for which in order {
            let way = (&address, 2 * number / FREE);
            let ended = fail(way, (names[which], plugin), None).unwrap();
            assert_eq!(ended.answer, "error 1045");
            times[which].push(ended.time.as_nanos() as f64 / 1000.0);
            let told = told.get_or_insert_with(|| ended.told.clone());
            assert_eq!(*told, ended.told, "{} is told something else", names[which]);
        }
    }
    println!(
        "{} packets each, the same for both: {}",
        told.as_ref().map_or(0, Vec::len),
        told.unwrap_or_default().last().map_or("", String::as_str)
    );
    for (name, times) in names.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        let middle = &times[times.len() / 10..times.len() * 9 / 10];
        let mean = middle.iter().sum::<f64>() / middle.len() as f64;
        println!(
            "{name:<12} p10 {:.1} p50 {:.1} p90 {:.1} p99 {:.1} us; middle 80%: {mean:.2} us",
            at(10),
            at(50),
            at(90),
            at(99)
        );
    }
    let (longer, error) = longer_share(&times);
    println!("the unknown name took longer in {longer:.4} of all pairs, standard error {error:.4}");
}

/// Share of pairs in which a time of the second list is longer than one of the first, both sorted
/// (the statistic of Mann and Whitney), and its standard error where both are of one distribution.
fn longer_share([first, second]: &[Vec<f64>; 2]) -> (f64, f64) {
    let shorter = second.iter().map(|time| {
        let below = first.partition_point(|other| other < time);
        let up_to = first.partition_point(|other| other <= time);
        (below + up_to) as f64 / 2.0
    });
    let (n, m) = (first.len() as f64, second.len() as f64);
    let error = ((n + m + 1.0) / (12.0 * n * m)).sqrt();
    (shorter.sum::<f64>() / (n * m), error)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("flood") => flood(&arguments[1..]),
        Some("time") => time(&arguments[1..]),
        _ => println!("expected flood or time; see the head of this file"),
    }
}
