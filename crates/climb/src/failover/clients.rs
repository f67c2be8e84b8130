//! Clients that update a row of their own, over and over, and note what they are told.
//!
//! Each is a thread, as an application's with a connection of its own. After an error it goes on:
//! on its connection, or on a new one to the next address if that was lost, or the server takes no
//! writes.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use wire::auth::Credential;
use wire::blocking::{Connection, Failure};
use wire::capabilities as cap;
use wire::client_login::{Account, COLLATION, ServerKey};

/// Account and schema of the clients.
pub(crate) const NAME: &str = "sbtest";
/// Pause behind each update.
const PAUSE: Duration = Duration::from_millis(20);
/// Pause before another attempt to connect: a driver's.
const RETRY: Duration = Duration::from_millis(50);
const CONNECT_MAX: Duration = Duration::from_secs(1);
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Width of a column of the picture.
pub(crate) const COLUMN_MS: u64 = 100;
/// Code of what has no number: a connection that was lost, or not to be had.
const NO_CODE: u16 = 0;
const READ_ONLY: u16 = 1290;
/// Capabilities that the reader of answers goes by.
const REQUIRED: u32 =
    cap::PROTOCOL_41 | cap::SECURE_CONNECTION | cap::PLUGIN_AUTH | cap::DEPRECATE_EOF;

type Wire = Connection<TcpStream>;

/// Words of a server to its clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Told {
    /// Updates that were done.
    pub(crate) done: u64,
    /// Statements that failed, by their error; 0: the connection was lost.
    pub(crate) errors: BTreeMap<u16, u64>,
    /// Attempts to connect that failed.
    pub(crate) refused: u64,
    /// Clients whose connection was lost.
    pub(crate) disconnected: u64,
    /// Longest time in which no client was told that an update was done.
    pub(crate) longest_gap_ms: u64,
    /// Longest time from one update of a client to the next.
    pub(crate) longest_wait_ms: u64,
    /// Updates that were done in each [`COLUMN_MS`].
    pub(crate) series: Vec<u64>,
}

impl Told {
    pub(crate) fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Joins what each client noted; `times` are in milliseconds.
    fn of(notes: Vec<Notes>, lasted_ms: u64) -> Told {
        let mut told = Told::default();
        let mut all = Vec::new();
        for notes in notes {
            told.done += notes.done_ms.len() as u64;
            told.refused += notes.refused;
            told.disconnected += u64::from(notes.is_cut);
            for (code, count) in notes.errors {
                *told.errors.entry(code).or_default() += count;
            }
            let wait = longest_gap(&notes.done_ms, lasted_ms);
            told.longest_wait_ms = told.longest_wait_ms.max(wait);
            all.extend(notes.done_ms);
        }
        all.sort_unstable();
        told.longest_gap_ms = longest_gap(&all, lasted_ms);
        let columns = usize::try_from(lasted_ms / COLUMN_MS).unwrap_or(0);
        told.series = vec![0; columns];
        for at in all {
            let column = usize::try_from(at / COLUMN_MS).unwrap_or(usize::MAX);
            if let Some(count) = told.series.get_mut(column) {
                *count += 1;
            }
        }
        told
    }
}

/// Longest time between two moments, the end included.
fn longest_gap(moments: &[u64], end: u64) -> u64 {
    let next = moments.iter().skip(1).chain([&end]);
    let gaps = moments.iter().zip(next);
    gaps.map(|(from, to)| to.saturating_sub(*from))
        .max()
        .unwrap_or(end)
}

/// Notes of one client.
#[derive(Debug, Default)]
struct Notes {
    done_ms: Vec<u64>,
    errors: BTreeMap<u16, u64>,
    refused: u64,
    is_cut: bool,
}

/// Clients at work.
pub(crate) struct Course {
    begun: Instant,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Notes>>,
}

impl Course {
    /// Starts clients that connect to these ports of loopback, in turn.
    pub(crate) fn begin(ports: &[u16], password: &str, count: u32) -> Result<Course> {
        let (begun, ends) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let mut course = Course {
            begun,
            ends,
            threads: Vec::new(),
        };
        for id in 1..=count {
            let mut client = Client {
                id,
                ports: ports.to_vec(),
                at: 0,
                password: password.to_owned(),
                connection: None,
                notes: Notes::default(),
            };
            let ends = course.ends.clone();
            let thread = std::thread::Builder::new().spawn(move || {
                while !ends.load(Relaxed) {
                    std::thread::sleep(client.work(begun));
                }
                client.notes
            });
            course
                .threads
                .push(thread.context("cannot start a client's thread")?);
        }
        Ok(course)
    }

    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// Ends the clients, and joins what they noted.
    pub(crate) fn end(mut self) -> Told {
        let lasted = self.begun.elapsed();
        self.ends.store(true, Relaxed);
        let notes = self
            .threads
            .drain(..)
            .filter_map(|thread| thread.join().ok());
        Told::of(notes.collect(), super::milliseconds(lasted))
    }
}

impl Drop for Course {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
    }
}

struct Client {
    id: u32,
    ports: Vec<u16>,
    /// Index of the port that it is connected to.
    at: usize,
    password: String,
    connection: Option<Wire>,
    notes: Notes,
}

impl Client {
    /// Runs one update, or connects; returns the pause behind it.
    fn work(&mut self, begun: Instant) -> Duration {
        let Some(connection) = &mut self.connection else {
            match log_in(self.ports[self.at], NAME, &self.password) {
                Ok(connection) => {
                    self.connection = Some(connection);
                    return Duration::ZERO;
                }
                Err(_) => {
                    self.notes.refused += 1;
                    self.at = (self.at + 1) % self.ports.len();
                    return RETRY;
                }
            }
        };
        let text = format!("UPDATE {NAME}.t SET n = n + 1 WHERE id = {}", self.id);
        let code = match connection.query(text.as_bytes(), |_| {}) {
            Ok(_) => {
                self.notes
                    .done_ms
                    .push(super::milliseconds(begun.elapsed()));
                return PAUSE;
            }
            Err(Failure::Server { code, .. }) => code,
            Err(_) => NO_CODE,
        };
        *self.notes.errors.entry(code).or_default() += 1;
        self.notes.is_cut |= code == NO_CODE;
        if matches!(code, NO_CODE | READ_ONLY) {
            self.connection = None;
            self.at = (self.at + 1) % self.ports.len();
            return RETRY;
        }
        PAUSE
    }
}

/// Logs in on loopback.
pub(crate) fn log_in(port: u16, user: &str, password: &str) -> Result<Wire> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, CONNECT_MAX)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let mut connection = Connection::new(stream);
    connection.log_in(&Account {
        user: user.as_bytes(),
        credential: Credential::Password(password.as_bytes()),
        schema: b"",
        private: false,
        wanted: REQUIRED | cap::LONG_PASSWORD | cap::TRANSACTIONS,
        extended: 0,
        required: REQUIRED,
        collation: COLLATION,
        server_key: ServerKey::None,
    })?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_between_any_two_answers_and_waits_between_two_of_one_client() {
        let of = |done_ms: &[u64]| Notes {
            done_ms: done_ms.to_vec(),
            errors: BTreeMap::from([(1158, 1)]),
            ..Notes::default()
        };
        let told = Told::of(vec![of(&[10, 500, 990]), of(&[20, 300])], 1000);
        assert_eq!((told.longest_gap_ms, told.longest_wait_ms), (490, 700));
        assert_eq!((told.done, told.failed()), (5, 2));
        assert_eq!(told.series, [2, 0, 0, 1, 0, 1, 0, 0, 0, 1]);
        assert_eq!(Told::of(vec![Notes::default()], 1000).longest_gap_ms, 1000);
    }
}
