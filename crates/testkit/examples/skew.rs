//! A closed loop of point selects whose connections are dealt to the pool's groups on purpose.
//!
//! The problem: the kernel deals connections to groups by chance, so a skewed load cannot be asked
//! for. The mechanism: a connection's id names its group, so this opens connections until each
//! group has as many as wanted, and closes the others. Then all of them ask at once, each again as
//! soon as it is answered. `scripts/skew.sh` compares what it prints for two ways of dealing.
//!
//! Usage: `skew HOST:PORT GROUPS CONNECTIONS PERCENT SECONDS ROWS`, where PERCENT is the share of
//! group 0 (0: the same for each group). It logs in as app with password app, schema sbtest, and
//! prints one line of `NAME VALUE` pairs.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for measuring: it says its figures, and ends where it cannot go on"
)]

use measure::Histogram;
use reactor::{Key, Net, Read, RealNet, Time, Token, descriptors};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::Duration;
use testkit::reply::Outcome;
use testkit::talk::{Account, Happened, Talk};
use wire::command::Command;

/// Nothing is counted until all have been answered a few times.
const WARMUP: Duration = Duration::from_secs(3);
/// Connections until chance must have filled every group.
const LOGINS_PER_CONNECTION: usize = 40;

struct Client {
    sock: OwnedFd,
    talk: Talk,
    group: usize,
    asked: Time,
}

struct Bench {
    net: RealNet,
    clients: Vec<Client>,
    rows: u64,
    random: u64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, numbers @ ..] = &arguments[..] else {
        panic!("usage: skew HOST:PORT GROUPS CONNECTIONS PERCENT SECONDS ROWS");
    };
    let numbers: Vec<usize> = numbers.iter().map(|n| n.parse().unwrap()).collect();
    let [groups, connections, percent, seconds, rows] = numbers[..] else {
        panic!("expected five numbers after the address, got {numbers:?}");
    };
    let _ = descriptors::raise_limit();
    let wanted = deal(groups, connections, percent);
    let mut bench = Bench {
        net: RealNet::new().unwrap(),
        clients: open(address, &wanted),
        rows: rows as u64,
        random: 0x9e37_79b9_7f4a_7c15,
    };
    bench.run(Duration::from_secs(seconds as u64), groups);
}

/// Number of connections of each group.
fn deal(groups: usize, connections: usize, percent: usize) -> Vec<usize> {
    if percent == 0 {
        return (0..groups)
            .map(|group| connections / groups + usize::from(group < connections % groups))
            .collect();
    }
    let first = connections * percent / 100;
    let others = deal(groups - 1, connections - first, 0);
    std::iter::once(first).chain(others).collect()
}

/// Logs connections in until every group has as many as wanted.
fn open(address: &str, wanted: &[usize]) -> Vec<Client> {
    let mut missing = wanted.to_vec();
    let mut clients = Vec::new();
    let most = wanted.iter().sum::<usize>() * LOGINS_PER_CONNECTION;
    for _ in 0..most {
        let client = log_in(address, wanted.len());
        if let Some(more) = missing[client.group].checked_sub(1) {
            missing[client.group] = more;
            clients.push(client);
        }
        if missing.iter().all(|n| *n == 0) {
            return clients;
        }
    }
    panic!("{most} connections were opened, and groups lack {missing:?}");
}

fn log_in(address: &str, groups: usize) -> Client {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut talk = Talk::new(Account::new("app", "app").schema("sbtest"), false);
    let mut buffer = [0; 4096];
    loop {
        let mut out = Vec::new();
        let happened = talk.next(&mut out).unwrap();
        stream.write_all(&out).unwrap();
        match happened {
            Some(Happened::In) => break,
            Some(other) => panic!("a login failed: {other:?}"),
            None => {}
        }
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "the pool closed the connection during a login");
        talk.feed(&buffer[..n]);
    }
    stream.set_nonblocking(true).unwrap();
    let id = talk.greeting.as_ref().unwrap().connection_id;
    Client {
        sock: stream.into(),
        talk,
        // Ids count in steps of the number of groups, from a power of two.
        group: (id - (1 << 30)) as usize % groups,
        asked: Time(0),
    }
}

impl Bench {
    fn run(&mut self, time: Duration, groups: usize) {
        for index in 0..self.clients.len() {
            let key = Key::from_parts(u32::try_from(index).unwrap(), 0);
            let token = Token::new(0, key);
            self.net.watch(&self.clients[index].sock, token).unwrap();
            self.ask(index);
        }
        let (begin, mut events) = (Time::now() + WARMUP, Vec::new());
        let (mut all, mut counted) = (Histogram::new(), vec![0u64; groups]);
        while Time::now() < begin + time {
            self.net.wait(begin + time, &mut events).unwrap();
            for event in &events {
                let index = event.token.key().parts().0 as usize;
                if !event.readable || !self.is_answered(index) {
                    continue;
                }
                let (client, now) = (&self.clients[index], Time::now());
                if now >= begin {
                    all.record(now.since(client.asked));
                    counted[client.group] += 1;
                }
                self.ask(index);
            }
        }
        let [mean, p50, p99] = [
            all.mean_ms(),
            all.percentile_ms(50.0),
            all.percentile_ms(99.0),
        ];
        let rate = all.count() as f64 / time.as_secs_f64();
        println!("statements_per_s {rate:.0} mean_ms {mean:.2} p50_ms {p50:.2} p99_ms {p99:.2}");
        println!("# answered by group: {counted:?}");
    }

    fn ask(&mut self, index: usize) {
        // Xorshift: any spread over the rows does.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let id = self.random % self.rows + 1;
        let sql = format!("SELECT c FROM sbtest1 WHERE id={id}");
        let client = &mut self.clients[index];
        let mut out = Vec::new();
        client
            .talk
            .command(&mut out, Command::Query, sql.as_bytes());
        client.asked = Time::now();
        // A short statement always fits into an empty socket.
        let written = self.net.write(&client.sock, &out);
        assert!(matches!(written, reactor::Write::Bytes(n) if n == out.len()));
    }

    /// Reads what is there; `true` when the statement is answered.
    fn is_answered(&mut self, index: usize) -> bool {
        let client = &mut self.clients[index];
        let mut buffer = [0; 4096];
        match self.net.read(&client.sock, &mut buffer) {
            Read::Bytes(n) => client.talk.feed(&buffer[..n]),
            Read::Blocked => return false,
            other => panic!("a connection ended: {other:?}"),
        }
        match client.talk.next(&mut Vec::new()).unwrap() {
            Some(Happened::Reply(outcomes)) => {
                assert!(matches!(outcomes[..], [Outcome::Rows(_)]), "{outcomes:?}");
                true
            }
            None => false,
            Some(other) => panic!("expected a reply, got {other:?}"),
        }
    }
}
