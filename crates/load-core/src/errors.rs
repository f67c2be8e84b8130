//! Errors by number: what went wrong how often, in the words of whoever said so.
//!
//! The problem: among millions of statements a few kinds of error happen many times; each kind must
//! be seen with its number and its words, and none may be lost. The mechanism: [`Fault`] is one
//! error, whether a server's ERR packet, the system's errno or a breach of protocol; [`ErrorTable`]
//! counts them by phase and number and keeps the first one's words.
//!
//! Invariants: server and client numbers start at 1000, errnos end far below, so one number means
//! one thing; a table has at most [`NUMBERS_MAX`] rows, and one of each phase for all other
//! numbers, however long the run and whatever a server says.

use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;
use wire::packet::Malformed;
use wire::reply::ErrPacket;

/// The client library's number for a connection that ended early.
const SERVER_LOST: u32 = 2013;
/// The client library's number for a packet that is not what it should be.
const MALFORMED: u32 = 2027;
/// Number of errors that are not told apart.
const OTHER_NUMBERS: u32 = 0;
/// Words of a server that are kept, in bytes.
const MESSAGE_MAX: usize = 512;

/// Errors, by phase and number, that are told apart.
const NUMBERS_MAX: usize = 1_000;

/// Phase of a connection in which it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Opening and logging in.
    Connect,
    /// Running the statements of `--init-sql`.
    Init,
    /// Executing, or waiting to.
    Statement,
}

impl Phase {
    /// Behind "while".
    pub fn doing(self) -> &'static str {
        match self {
            Phase::Connect => "connecting",
            Phase::Init => "running --init-sql",
            Phase::Statement => "executing",
        }
    }
}

/// Step of opening a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The TCP connection or Unix socket.
    Connect,
    /// The handshake of TLS.
    Tls,
    /// The login of the protocol.
    Login,
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A server's or client library's number from 1000 on, else an errno.
    pub code: u32,
    /// Empty for an errno.
    pub sqlstate: String,
    /// The text that came with it.
    pub message: String,
}

impl Fault {
    /// A server's error.
    pub fn server(err: &ErrPacket<'_>) -> Fault {
        let words = &err.message[..err.message.len().min(MESSAGE_MAX)];
        Fault {
            code: err.code.into(),
            sqlstate: String::from_utf8_lossy(err.state).into_owned(),
            message: String::from_utf8_lossy(words).into_owned(),
        }
    }

    /// An error of the system.
    pub fn system(error: &io::Error) -> Fault {
        let Some(errno) = error.raw_os_error() else {
            return Fault::protocol(error.to_string());
        };
        let message = match errno_name(errno) {
            Some(name) => format!("{name}: {error}"),
            None => error.to_string(),
        };
        Fault {
            code: errno.unsigned_abs(),
            sqlstate: String::new(),
            message,
        }
    }

    /// Fault of a server that closed the connection while `doing`.
    pub fn ended(doing: &str) -> Fault {
        Fault {
            code: SERVER_LOST,
            sqlstate: "HY000".to_owned(),
            message: format!("the server closed the connection {doing}"),
        }
    }

    /// Fault of a connection that was not ready in time; `which` step of opening it was not over.
    pub fn timeout(which: Step, seconds: u64) -> Fault {
        let what = match which {
            Step::Connect => "the server did not accept the connection",
            Step::Tls => "the server accepted the connection and did not finish the TLS handshake",
            Step::Login => "the server did not finish the login",
        };
        let look = match which {
            Step::Connect | Step::Login => "look whether it is overloaded",
            Step::Tls => "look whether it expects TLS on this port, or is overloaded",
        };
        Fault {
            code: ETIMEDOUT.unsigned_abs(),
            sqlstate: String::new(),
            message: format!(
                "ETIMEDOUT: {what} within {seconds} s; {look}, or allow more time \
                 (--connect-timeout)"
            ),
        }
    }

    /// A client that gives up did so before it was let in.
    pub fn impatience(waited: Duration) -> Fault {
        Fault {
            code: ETIMEDOUT.unsigned_abs(),
            sqlstate: String::new(),
            message: format!(
                "ETIMEDOUT: not logged in {} ms after the event was to begin (--give-up)",
                waited.as_millis()
            ),
        }
    }

    /// The server said something that the protocol has no place for, or that we cannot answer.
    pub fn protocol(message: String) -> Fault {
        Fault {
            code: MALFORMED,
            sqlstate: "HY000".to_owned(),
            message,
        }
    }

    /// Number, state and message in one line.
    pub fn words(&self) -> String {
        match self.sqlstate.as_str() {
            "" => self.message.clone(),
            state => format!("error {} ({state}): {}", self.code, self.message),
        }
    }

    /// True for what more connections would only meet again: a limit of this machine.
    pub fn is_own_limit(&self) -> bool {
        let code = self.code.cast_signed();
        self.sqlstate.is_empty() && [EMFILE, ENFILE, EADDRNOTAVAIL, ENOBUFS, ENOMEM].contains(&code)
    }

    /// True for a Unix listener whose line is full: try again a little later.
    pub fn is_busy_listener(&self) -> bool {
        self.sqlstate.is_empty() && self.code.cast_signed() == EAGAIN
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Fault {
        Fault::protocol(format!("from the server: {malformed}"))
    }
}

// Linux's numbers, the same on every architecture this is built for.
const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
/// Descriptors of the process are used up.
pub const EMFILE: i32 = 24;
/// Local ports for the address are used up.
pub const EADDRNOTAVAIL: i32 = 99;
const ENOBUFS: i32 = 105;
const ETIMEDOUT: i32 = 110;

fn errno_name(errno: i32) -> Option<&'static str> {
    Some(match errno {
        1 => "EPERM",
        2 => "ENOENT",
        EAGAIN => "EAGAIN",
        ENOMEM => "ENOMEM",
        13 => "EACCES",
        22 => "EINVAL",
        ENFILE => "ENFILE",
        EMFILE => "EMFILE",
        32 => "EPIPE",
        98 => "EADDRINUSE",
        EADDRNOTAVAIL => "EADDRNOTAVAIL",
        101 => "ENETUNREACH",
        104 => "ECONNRESET",
        ENOBUFS => "ENOBUFS",
        ETIMEDOUT => "ETIMEDOUT",
        111 => "ECONNREFUSED",
        113 => "EHOSTUNREACH",
        _ => return None,
    })
}

/// One kind of error and how often it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// A server's or client library's number from 1000 on, else an errno.
    pub code: u32,
    /// Five characters; empty for an errno.
    pub sqlstate: String,
    /// The words of the first one.
    pub message: String,
    /// Number of these errors.
    pub count: u64,
    /// Phase of the connection.
    pub phase: Phase,
    /// Shortest time from sending the statement, or from beginning to connect, to the error, in
    /// milliseconds; null where it is not known.
    pub age_min_ms: Option<u64>,
    /// Longest such time.
    pub age_max_ms: Option<u64>,
}

impl ErrorCount {
    /// The line for people.
    pub fn text(&self) -> String {
        let phase = self.phase.doing();
        let state = match self.sqlstate.as_str() {
            "" => String::new(),
            state => format!(" ({state})"),
        };
        let ErrorCount {
            code,
            message,
            count,
            ..
        } = self;
        let age = match self.age_text() {
            Some(age) => format!(" ({age})"),
            None => String::new(),
        };
        format!("error {code}{state} x {count} while {phase}: {message}{age}")
    }

    /// Time to the error: `299.8 to 300.2 s after it was sent`.
    pub fn age_text(&self) -> Option<String> {
        let since = match self.phase {
            Phase::Connect | Phase::Init => "after connecting began",
            Phase::Statement => "after it was sent",
        };
        let (least, most) = (self.age_min_ms?, self.age_max_ms?);
        let seconds = |ms: u64| ms as f64 / 1e3;
        Some(match most {
            0..1_000 => format!("{least} to {most} ms {since}"),
            _ => format!("{:.1} to {:.1} s {since}", seconds(least), seconds(most)),
        })
    }
}

/// Errors by phase and number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorTable {
    rows: Vec<ErrorCount>,
}

impl ErrorTable {
    /// Counts one error.
    pub fn count(&mut self, phase: Phase, fault: Fault) {
        self.count_after(phase, fault, None);
    }

    /// Counts one error that came so long after its statement, or after connecting began.
    pub fn count_after(&mut self, phase: Phase, fault: Fault, age: Option<Duration>) {
        let age_ms = age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        self.add(ErrorCount {
            code: fault.code,
            sqlstate: fault.sqlstate,
            message: fault.message,
            count: 1,
            phase,
            age_min_ms: age_ms,
            age_max_ms: age_ms,
        });
    }

    /// Adds what another table counted.
    pub fn merge(&mut self, other: ErrorTable) {
        self.add_all(other.rows);
    }

    /// Adds rows of another table.
    pub fn add_all(&mut self, rows: Vec<ErrorCount>) {
        rows.into_iter().for_each(|row| self.add(row));
    }

    fn add(&mut self, row: ErrorCount) {
        let same = |known: &ErrorCount| known.phase == row.phase && known.code == row.code;
        match self.rows.iter().position(same) {
            Some(at) => {
                let known = &mut self.rows[at];
                known.count += row.count;
                let ages = [known.age_min_ms, row.age_min_ms].into_iter().flatten();
                known.age_min_ms = ages.min();
                known.age_max_ms = known.age_max_ms.max(row.age_max_ms);
            }
            None if self.rows.len() < NUMBERS_MAX || row.code == OTHER_NUMBERS => {
                self.rows.push(row);
            }
            None => self.add(ErrorCount {
                code: OTHER_NUMBERS,
                sqlstate: String::new(),
                message: "errors of other numbers".to_owned(),
                ..row
            }),
        }
    }

    /// All kinds of error, in no order.
    pub fn rows(&self) -> &[ErrorCount] {
        &self.rows
    }

    /// The kinds of error of a phase, the most frequent first.
    pub fn of(&self, phase: Phase) -> Vec<&ErrorCount> {
        let mut rows: Vec<_> = self.rows.iter().filter(|row| row.phase == phase).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        rows
    }

    /// All kinds of error, the most frequent first.
    pub fn all(&self) -> Vec<&ErrorCount> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        rows
    }

    /// All kinds of error: those of connecting first, in each phase the most frequent first.
    pub fn sorted(mut self) -> Vec<ErrorCount> {
        self.rows
            .sort_by_key(|row| (row.phase, std::cmp::Reverse(row.count)));
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: u16, message: &str) -> Fault {
        Fault::server(&ErrPacket {
            code,
            state: b"40001",
            message: message.as_bytes(),
        })
    }

    #[test]
    fn errors_are_counted_by_phase_and_number_with_the_first_words() {
        let (mut a, mut b) = (ErrorTable::default(), ErrorTable::default());
        a.count(Phase::Statement, server(1213, "first"));
        b.count(Phase::Statement, server(1213, "second"));
        b.count(Phase::Statement, server(1205, "wait"));
        b.count(Phase::Connect, server(1213, "odd"));
        a.merge(b);
        assert_eq!(a.of(Phase::Statement)[0].count, 2);
        let rows = a.sorted();
        let seen: Vec<_> = rows
            .iter()
            .map(|r| (r.phase, r.code, r.count, &*r.message))
            .collect();
        assert_eq!(
            seen,
            [
                (Phase::Connect, 1213, 1, "odd"),
                (Phase::Statement, 1213, 2, "first"),
                (Phase::Statement, 1205, 1, "wait"),
            ]
        );
        let json = serde_json::to_string(&rows[0]).unwrap();
        let expected = r#"{"code":1213,"sqlstate":"40001","message":"odd","count":1,
            "phase":"connect","age_min_ms":null,"age_max_ms":null}"#;
        assert_eq!(json, expected.replace("\n            ", ""));
    }

    #[test]
    fn an_error_tells_how_long_after_its_statement_it_came() {
        let mut table = ErrorTable::default();
        let mut count = |phase, ms: Option<u64>| {
            table.count_after(phase, server(2013, "lost"), ms.map(Duration::from_millis));
            table.clone().sorted()
        };
        assert_eq!(count(Phase::Statement, None)[0].age_text(), None);
        let text = |rows: &[ErrorCount]| rows.last().unwrap().text();
        let rows = count(Phase::Statement, Some(7));
        assert!(text(&rows).ends_with("executing: lost (7 to 7 ms after it was sent)"));
        let rows = count(Phase::Statement, Some(300_160));
        assert!(text(&rows).contains("x 3 while executing: lost (0.0 to 300.2 s after it was"));
        let rows = count(Phase::Connect, Some(1_000));
        assert!(
            rows[0]
                .text()
                .ends_with(": lost (1.0 to 1.0 s after connecting began)")
        );
        let mut other = ErrorTable::default();
        other.add_all(rows.clone());
        other.add_all(rows);
        let rows = other.sorted();
        assert_eq!(
            (rows[1].age_min_ms, rows[1].age_max_ms),
            (Some(7), Some(300_160))
        );
    }

    #[test]
    fn the_systems_errors_keep_number_and_name() {
        let fault = Fault::system(&io::Error::from_raw_os_error(EMFILE));
        assert_eq!((fault.code, &*fault.sqlstate), (24, ""));
        assert_eq!(fault.message, "EMFILE: Too many open files (os error 24)");
        assert!(fault.is_own_limit());
        assert!(!server(1040, "Too many connections").is_own_limit());
        assert!(Fault::system(&io::Error::from_raw_os_error(EAGAIN)).is_busy_listener());
        let odd = Fault::system(&io::Error::other("odd"));
        assert_eq!((odd.code, &*odd.message), (MALFORMED, "odd"));
    }

    #[test]
    fn of_numbers_without_end_the_rest_are_counted_together() {
        let mut table = ErrorTable::default();
        for code in 1_000..=u16::MAX {
            table.count(Phase::Statement, server(code, "odd"));
        }
        let mut all = ErrorTable::default();
        all.count(Phase::Connect, server(1040, "full"));
        all.merge(table);
        all.count(Phase::Connect, server(9_999, "odd"));
        assert_eq!(all.rows().len(), NUMBERS_MAX + 2);
        let counted: u64 = all.rows().iter().map(|row| row.count).sum();
        assert_eq!(counted, u64::from(u16::MAX) - 999 + 2);
        let rest = all.of(Phase::Statement)[0];
        assert_eq!(
            (rest.code, &*rest.message),
            (OTHER_NUMBERS, "errors of other numbers")
        );
    }

    #[test]
    fn a_servers_words_are_bounded() {
        assert_eq!(server(1064, &"x".repeat(9_000)).message.len(), MESSAGE_MAX);
    }
}
