//! A console: tables and commands of a running program, for any client of the MySQL protocol.
//!
//! The problem: an operator wants to ask a running pool who is there and why somebody waits, with
//! the client and the SQL that he has, also at the moment when nothing else answers. The mechanism:
//! a listener, accounts and threads of its own. Each connection is a thread ([`session`]) with an
//! empty SQLite database in memory ([`engine`]); a statement is translated from MySQL's dialect
//! ([`dialect`]), the tables that it reads are filled from the [`Source`], it runs, and they are
//! emptied. So WHERE, ORDER BY, GROUP BY and joins are those of a real SQL engine. SHOW of a whole
//! table passes it by: the rows go from the source into the answer ([`answer`]).
//!
//! Invariants: nothing that a client sends changes the database or reaches a file; whoever asks
//! waits, and nobody else. Bounds: [`CONNECTIONS_MAX`], [`COMMAND_MAX`], [`ROWS_MAX`],
//! [`RESULT_BYTES_MAX`], [`ANSWERS_BYTES_MAX`], [`STATEMENTS_MAX`], [`READERS_MAX`],
//! [`STATEMENT_MAX`], [`LOGIN_MAX`], [`IDLE_MAX`], [`COMMAND_REST_MAX`], [`TAKE_MAX`].

mod answer;
mod dialect;
mod engine;
mod session;
mod shares;

pub use dialect::{Action, LAST_MINUTES, Victims};
pub use session::VERSION;

use session::Stream;
use shares::{Answers, Statements};
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Connections at once; one more ends the oldest of those that have not logged in, or the oldest.
pub const CONNECTIONS_MAX: usize = 32;
/// Bytes of a command.
pub const COMMAND_MAX: usize = 1 << 20;
/// Rows of a table: one that has more cannot be asked.
pub const ROWS_MAX: usize = 200_000;
/// Bytes of an answer.
pub const RESULT_BYTES_MAX: usize = 32 << 20;
/// Bytes of all answers that are made or sent at a moment.
pub const ANSWERS_BYTES_MAX: usize = 128 << 20;
/// Statements that run at once.
pub const STATEMENTS_MAX: usize = 4;
/// Most statements at once of accounts that may only read: one place is the administrators'.
pub const READERS_MAX: usize = 3;
/// The time that a statement may run.
pub const STATEMENT_MAX: Duration = Duration::from_secs(10);
/// The time for a login.
pub const LOGIN_MAX: Duration = Duration::from_secs(10);
/// The time between two statements.
pub const IDLE_MAX: Duration = Duration::from_secs(8 * 3600);
/// The time in which the rest of a command must come.
pub const COMMAND_REST_MAX: Duration = Duration::from_secs(10);
/// The time in which a client must take an answer.
pub const TAKE_MAX: Duration = Duration::from_secs(30);
/// Delay of the answer to a wrong password.
const DENIED_AFTER: Duration = Duration::from_secs(1);
/// Pause after an accept that failed for want of descriptors or memory.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The type of a column's values; any of them may be NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// An integer of 64 bits.
    Integer,
    /// A double.
    Real,
    /// UTF-8.
    Text,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub of: Type,
    /// Characters that SHOW gives its texts, the rest being cut; `None`: only SHOW FULL has it, or
    /// no column of its table has a width, and SHOW has all.
    pub width: Option<usize>,
    /// Description in one line.
    pub help: &'static str,
}

/// A table that can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The schema: [`DEFAULT_SCHEMA`], where no name needs it, or one that a server has too.
    pub schema: &'static str,
    /// Its name; `SHOW NAME` shows it where the schema is [`DEFAULT_SCHEMA`].
    pub name: &'static str,
    /// Subject of a row, in one line.
    pub help: &'static str,
    /// Its columns, the one that LIKE compares first.
    pub columns: &'static [Column],
}

impl Table {
    /// True if SHOW leaves some of it to SHOW FULL.
    pub(crate) fn is_wide(&self) -> bool {
        self.columns.iter().any(|column| column.width.is_some())
    }
}

/// The schema of the program's own tables, in which a connection begins.
pub const DEFAULT_SCHEMA: &str = "onramp";

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A double.
    Real(f64),
    /// A text.
    Text(Cow<'static, str>),
}

/// A row, in the order of its table's columns.
pub type Row = Vec<Value>;

/// An account that may log in.
#[derive(Clone, Debug)]
pub struct Account {
    /// The name.
    pub name: String,
    /// The password.
    pub password: Vec<u8>,
    /// Rights of the account.
    pub access: Access,
}

/// Rights of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Read, and give commands.
    Admin,
}

/// Source of tables and commands. Its functions are called from several threads at once, and may
/// wait for a moment.
pub trait Source: Send + Sync + 'static {
    /// All tables.
    fn tables(&self) -> &'static [Table];

    /// The rows of one of them, at most [`ROWS_MAX`].
    ///
    /// # Errors
    /// A sentence that says who has not answered in time.
    fn rows(&self, table: &Table) -> Result<Vec<Row>, String>;

    /// Names and values of what `@@NAME` and SHOW VARIABLES show.
    fn variables(&self) -> Vec<(String, String)>;

    /// A line of figures, as COM_STATISTICS has it.
    fn summary(&self) -> String;

    /// True if SET may name this setting.
    fn is_setting(&self, name: &str) -> bool;

    /// Carries out the action that an administrator of this name wants; returns the words of what
    /// was done.
    ///
    /// # Errors
    /// A sentence that says why it cannot be done.
    fn act(&self, admin: &str, action: &Action) -> Result<String, Refused>;

    /// Does, when the answer of [`Source::act`] is on its way, what had to wait for it: an action
    /// that ends the program begins now, or nobody would hear that it ends.
    fn has_answered(&self, action: &Action);

    /// Notes a login that was accepted or refused.
    fn logged_in(&self, account: &str, peer: &str, accepted: bool);
}

/// Socket that clients come in by.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
}

impl Listener {
    fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream, peer))
            }
            Listener::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

/// State that all connections share.
pub(crate) struct Site {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) accounts: Vec<Account>,
    pub(crate) statements: Statements,
    pub(crate) answers: Arc<Answers>,
    /// Connections that are open, the oldest first.
    open: Mutex<Vec<Open>>,
}

/// An open connection.
struct Open {
    number: u32,
    stream: Stream,
    has_logged_in: bool,
}

impl Site {
    fn leave(&self, number: u32) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|other| other.number != number);
    }

    /// Notes that a connection has logged in.
    pub(crate) fn note_login(&self, number: u32) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let found = open.iter_mut().find(|other| other.number == number);
        if let Some(found) = found {
            found.has_logged_in = true;
        }
    }
}

/// Reason for a command that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Client number that does not exist here, and where to look.
    UnknownClient(u64, String),
    /// Silence of the source within the time for an answer: a sentence.
    Late(String),
    /// Another reason, in a sentence.
    Because(String),
}

/// Words that the client is told.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::UnknownClient(id, where_to_look) => {
                write!(f, "Unknown thread id: {id} ({where_to_look})")
            }
            Refused::Late(why) | Refused::Because(why) => f.write_str(why),
        }
    }
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused::Because(why)
    }
}

/// Reads a command.
///
/// # Errors
/// A sentence: what is wrong with it, or that it is none.
pub fn command(text: &[u8], source: &dyn Source) -> Result<Action, String> {
    let names = dialect::Names {
        tables: source.tables(),
        schema: DEFAULT_SCHEMA,
        variables: &source.variables(),
        settings: &|name| source.is_setting(name),
    };
    match dialect::read(text, &names) {
        Ok(dialect::Asked::Act(action)) => Ok(action),
        Ok(_) => Err("expected a command, as HELP lists them at the console".to_owned()),
        Err(wrong) => Err(wrong.words),
    }
}

/// Serves whoever comes, in threads of its own, until the process ends.
///
/// # Errors
/// The system's, where the thread cannot be started.
pub fn serve(
    listener: Listener,
    accounts: Vec<Account>,
    source: Arc<dyn Source>,
) -> io::Result<()> {
    let site = Arc::new(Site {
        source,
        accounts,
        statements: Statements::default(),
        answers: Arc::default(),
        open: Mutex::default(),
    });
    let work = move || {
        // Its threads share this table; where it is not allowed they use the common one.
        let _ = reactor::descriptors::own_table();
        let numbers = AtomicU32::new(1);
        loop {
            match listener.accept() {
                Ok(stream) => begin(&site, stream, numbers.fetch_add(1, Ordering::Relaxed)),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => reactor::pause(ACCEPT_AGAIN),
            }
        }
    };
    let builder = thread::Builder::new().name("console".to_owned());
    builder.spawn(work).map(|_| ())
}

/// Starts the thread of a connection. Without one, or without descriptors, it is closed.
fn begin(site: &Arc<Site>, stream: Stream, number: u32) {
    let Ok(copy) = stream.copy() else { return };
    {
        let mut open = site.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= CONNECTIONS_MAX {
            // Whoever has not proven anything ends nobody who has.
            let stranger = open.iter().position(|other| !other.has_logged_in);
            let oldest = open.remove(stranger.unwrap_or(0));
            oldest.stream.end();
        }
        open.push(Open {
            number,
            stream: copy,
            has_logged_in: false,
        });
    }
    let apart = site.clone();
    let work = move || {
        session::attend(&apart, stream, number);
        apart.leave(number);
    };
    let builder = thread::Builder::new().name(format!("console-{number}"));
    if builder.spawn(work).is_err() {
        site.leave(number);
    }
}

#[cfg(test)]
mod tests;
