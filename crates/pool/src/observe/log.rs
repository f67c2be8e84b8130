//! Lines for people and for programs that read logs, on standard error.
//!
//! A line has the time in UTC, then keys with values: its level, its event, and where there is one
//! a client's address, its account and further facts; `message=` is the last, and its value is the
//! rest of the line:
//!
//! ```text
//! 2026-01-31T12:00:00.123Z onramp pool: level=warning event=login-failed
//!     client=192.0.2.7:41710 account="app" reason=wrong-password message=Access denied for ...
//! ```
//!
//! (in one line). With `log_format = "json"` it is an object with the same keys instead, and
//! `time`. `log_level` leaves out what matters less; what a signal asks for is always logged. What
//! peers say cannot begin a line of its own or end a value: control characters and quotes are
//! escaped. [`Event`] names every event; docs/pool/signals-and-log.md has them as a table, which a
//! test compares with it.
//!
//! Once [`start`] has been called, lines are written by a thread of their own: a standard error
//! that takes nothing, a terminal that was stopped, must not stop a group. At most [`LINES_MAX`]
//! lines wait for it, of which [`STATEMENT_LINES_MAX`] may be of the log of all statements; how
//! many were left out on top of that is said as soon as it goes on. A closed standard error is no
//! reason to stop serving.

pub(crate) mod line_limit;
pub(crate) mod statement;

use crate::observe::log::statement::StatementFacts;

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Lines that wait to be written.
const LINES_MAX: usize = 4096;
/// Those of them that may be of the log of all statements: it leaves room for what matters more.
const STATEMENT_LINES_MAX: usize = LINES_MAX / 2;
/// Time to write the lines that wait at the end of the program.
const FLUSH_MAX: Duration = Duration::from_secs(2);
/// Bytes of a message; the rest is left out.
const MESSAGE_MAX: usize = 8 * 1024;

/// Importance of a line, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Failure of the pool to do what it is for, or its end.
    Error,
    /// Something is wrong somewhere; the pool goes on.
    Warning,
    /// Fact for the record.
    Info,
}

impl Level {
    pub(crate) fn from_name(name: &str) -> Option<Level> {
        let all = [Level::Error, Level::Warning, Level::Info];
        all.into_iter().find(|level| level.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
        }
    }
}

/// Form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Keys with values, for people and for `grep`.
    Text,
    /// An object of JSON, for programs.
    Json,
}

impl LogFormat {
    pub(crate) fn from_name(name: &str) -> Option<LogFormat> {
        match name {
            "text" => Some(LogFormat::Text),
            "json" => Some(LogFormat::Json),
            _ => None,
        }
    }
}

macro_rules! events {
    ($($event:ident $name:literal $level:ident $meaning:literal,)*) => {
        /// Subject of a line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event {
            $(#[doc = $meaning] $event,)*
        }

        impl Event {
            /// All of them, in the order of the documentation.
            #[cfg(test)]
            const ALL: &[Event] = &[$(Event::$event,)*];

            /// Its name in the log.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Event::$event => $name,)* }
            }

            pub(crate) fn level(self) -> Level {
                match self { $(Event::$event => Level::$level,)* }
            }

            /// Cause of the event, for the documentation.
            #[cfg(test)]
            fn meaning(self) -> &'static str {
                match self { $(Event::$event => $meaning,)* }
            }
        }
    };
}

events! {
    Settings "settings" Error "the settings cannot be used; the pool ends with status 2",
    Warning "warning" Warning "a setting is allowed but unwise",
    Bug "bug" Error "a client was closed for a bug of the pool: please report the line",
    Start "start" Info "the server, and what the pool derives from its settings",
    Waiting "waiting" Warning "the server cannot be reached at start; the pool waits for it",
    Http "http" Info "HTTP is served, and where",
    Console "console" Info "the console is served, and where",
    ConsoleLogin "console-login" Info
        "an account has logged in at the console; once an hour from a host",
    ConsoleDenied "console-denied" Warning "a failed login at the console",
    ConsoleCommand "console-command" Warning
        "a command at the console; why, where it was refused",
    RuleEnded "rule-ended" Info "the time of a rule for a digest is over",
    Listening "listening" Info "clients may connect",
    Failed "failed" Error "the pool, or a part of it, cannot go on; the message says why",
    Signal "signal" Info "settings are about to be read again: why, or why not yet",
    Draining "draining" Info "SIGTERM or SIGINT: a drain begins",
    Ended "ended" Info "the pool has ended; totals",
    Upgrade "upgrade" Info "another process is taking over; its progress",
    Upgraded "upgraded" Info "this process has taken over from another",
    UpgradeFailed "upgrade-failed" Error "a process could not take over; this one goes on",
    LoginFailed "login-failed" Warning "a wrong name or password; `reason` says which",
    Refused "refused" Warning
        "a statement or a client that had logged in met a limit; `reason` says which",
    Killed "killed" Warning "KILL has ended a client or its statement",
    LoginRefused "login-refused" Warning "a client was refused before it had logged in",
    ServerLost "server-lost" Error "the server cannot be reached: an outage begins",
    ServerBack "server-back" Info "the outage ends; its length",
    ServerMoved "server-moved" Info "the server's name has another address",
    WriterMoved "writer-moved" Warning "another of several servers is written to, or none; why",
    FleetLost "fleet-lost" Warning "the other pools of the fleet cannot be asked for; why",
    FleetSeatLost "fleet-seat-lost" Warning "another pool has this one's seat; clients are closed",
    FleetBack "fleet-back" Info "the other pools of the fleet are asked again",
    ServerState "server-state" Info "the state of one of several servers has changed; why",
    ServerUnfit "server-unfit" Error "one of several servers cannot stand in for the others",
    ServerFound "server-found" Info "the cluster names a server, which is asked from now on",
    ServerGone "server-gone" Info "a server that was found is not asked any more; why",
    ServerRefused "server-refused" Warning "the cluster names a server that is not used; why",
    NameLost "name-lost" Warning "the server's name cannot be looked up any more",
    NameBack "name-back" Info "it can be looked up again",
    BackendsMax "backends-max" Warning
        "the number of connections that the server allows has changed",
    MemoryShare "memory-share" Warning "a client was closed for the memory that it used",
    IdleClosed "idle-closed" Info
        "clients were closed for idling longer than they may; at most once a minute",
    ReaderClosed "reader-closed" Warning "a client was closed for not reading its reply",
    TimeLimit "time-limit" Warning
        "a statement or transaction exceeded its time limit; its client was closed",
    BackendLost "backend-lost" Warning "a connection to the server ended unexpectedly",
    BackendRefused "backend-refused" Error "the server refuses an account of the pool",
    SettingsRead "settings-read" Info
        "settings were read again; which took effect, and which need a restart",
    SettingsKept "settings-kept" Error "they cannot be used; nothing changed",
    CertificatesRead "certificates-read" Info "changed certificates are in use",
    CertificatesKept "certificates-kept" Error "they cannot be used; the old ones stay",
    WatchLost "watch-lost" Warning "changes on the server past the pool are not noticed",
    WatchBack "watch-back" Info "they are noticed again",
    Globals "globals" Info "global variables of the server have changed",
    AccountsUnread "accounts-unread" Warning
        "the server's accounts cannot be read; those read before hold",
    Accounts "accounts" Info "accounts or privileges on the server may have changed",
    CodeCatalogue "code-catalogue" Info "triggers and views that may change sessions",
    CodeUnseen "code-catalogue-partial" Warning "the account is not shown all triggers and views",
    CodeUnread "code-catalogue-unread" Warning "triggers and views cannot be read; tried again",
    Census "census" Info "SIGUSR1: the census",
    Client "client" Info "SIGQUIT: one client",
    Group "group" Info "SIGQUIT: a group's clients; triggers and views",
    OtelLost "otel-lost" Warning "the OpenTelemetry collector refuses or cannot be reached; why",
    OtelBack "otel-back" Info "it accepts again",
    SlowStatement "slow-statement" Warning "a statement took `slow_statement_ms` or longer",
    Statement "statement" Info "a statement has ended, and `statement_log` is on",
    AuditLost "audit-lost" Warning
        "lines of the audit trail could not be written; `omitted` counts them",
    LinesLost "lines-lost" Warning
        "lines that could not be written in time; `omitted` counts them",
}

impl Event {
    /// True if it is logged when lines up to this level are.
    fn is_logged(self, up_to: Level) -> bool {
        let asked_for = matches!(
            self,
            Event::Census | Event::Client | Event::Group | Event::Statement
        );
        // The end of what was logged is logged, too.
        let level = match self {
            Event::ServerBack => Event::ServerLost.level(),
            Event::NameBack => Event::NameLost.level(),
            Event::WatchBack => Event::WatchLost.level(),
            Event::OtelBack => Event::OtelLost.level(),
            _ => self.level(),
        };
        asked_for || level <= up_to
    }
}

/// The facts of a line that have keys of their own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts<'a> {
    /// Client that it is about; one of a Unix socket has no address.
    pub(crate) client: Option<Peer>,
    /// Its CONNECTION_ID(), for KILL.
    pub(crate) id: Option<u32>,
    /// The account, as the client gave it.
    pub(crate) account: Option<&'a [u8]>,
    /// Reason as a word.
    pub(crate) reason: Option<&'a str>,
    /// Digest of the statement that ends with it.
    pub(crate) digest: Option<u64>,
    /// True if a transaction ends with it.
    pub(crate) cuts_transaction: bool,
    /// Lines of this event that were left out since the last one.
    pub(crate) omitted: u64,
    /// The statement that it is about.
    pub(crate) statement: Option<StatementFacts<'a>>,
}

/// Origin of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Peer {
    Tcp(SocketAddr),
    #[default]
    Unix,
}

impl From<Option<SocketAddr>> for Peer {
    fn from(address: Option<SocketAddr>) -> Peer {
        address.map_or(Peer::Unix, Peer::Tcp)
    }
}

impl Peer {
    /// Its address without the port.
    pub(crate) fn host(&self) -> String {
        match self {
            Peer::Tcp(address) => match address.ip().to_canonical() {
                IpAddr::V4(host) => host.to_string(),
                IpAddr::V6(host) => format!("[{host}]"),
            },
            Peer::Unix => self.to_string(),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Tcp(address) => {
                SocketAddr::new(address.ip().to_canonical(), address.port()).fmt(f)
            }
            Peer::Unix => f.write_str("unix"),
        }
    }
}

enum Message {
    Line(String),
    /// A line of the log of all statements.
    StatementLine(String),
    /// Everything before it has been written once this is dropped.
    Flush(SyncSender<()>),
}

/// Hook called for each line: with its event, its facts, its message. It may not wait.
type Export = Box<dyn Fn(Event, &Facts<'_>, &str) + Send + Sync>;

static WRITER: OnceLock<SyncSender<Message>> = OnceLock::new();
static EXPORT: OnceLock<Export> = OnceLock::new();
/// The level, and whether lines are JSON.
static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);
static IS_JSON: AtomicBool = AtomicBool::new(false);
static OMITTED: AtomicU64 = AtomicU64::new(0);
/// Lines of the log of all statements that wait.
static STATEMENT_LINES: AtomicUsize = AtomicUsize::new(0);

/// Sets the form of lines, and their least importance, from now on.
pub(crate) fn set_style(format: LogFormat, up_to: Level) {
    LEVEL.store(up_to as u8, Ordering::Relaxed);
    IS_JSON.store(format == LogFormat::Json, Ordering::Relaxed);
}

/// Style that [`set_style`] has set.
pub(crate) fn style() -> (LogFormat, Level) {
    let format = match IS_JSON.load(Ordering::Relaxed) {
        true => LogFormat::Json,
        false => LogFormat::Text,
    };
    let level = match LEVEL.load(Ordering::Relaxed) {
        0 => Level::Error,
        1 => Level::Warning,
        _ => Level::Info,
    };
    (format, level)
}

/// Begins to write lines on a thread of its own.
///
/// # Errors
/// The system's, when there can be no thread.
pub(crate) fn start() -> std::io::Result<()> {
    let (sender, receiver) = sync_channel(LINES_MAX);
    let thread = std::thread::Builder::new().name("log".into());
    thread.spawn(move || write_all(&receiver))?;
    let _ = WRITER.set(sender);
    Ok(())
}

/// Exports each line too, from now on; only the first call counts.
pub(crate) fn export_to(export: Export) {
    let _ = EXPORT.set(export);
}

/// Waits until what was logged has been written, for two seconds at most.
pub(crate) fn flush() {
    let Some(writer) = WRITER.get() else { return };
    let (done, wait) = sync_channel(0);
    if writer.try_send(Message::Flush(done)).is_ok() {
        let _ = wait.recv_timeout(FLUSH_MAX);
    }
}

fn write_all(lines: &Receiver<Message>) {
    for message in lines {
        match message {
            Message::Line(line) => write(&line),
            Message::StatementLine(line) => {
                STATEMENT_LINES.fetch_sub(1, Ordering::Relaxed);
                write(&line);
            }
            Message::Flush(done) => drop(done),
        }
        let omitted = OMITTED.swap(0, Ordering::Relaxed);
        if omitted > 0 {
            let facts = Facts {
                omitted,
                ..Facts::default()
            };
            write(&line(
                Event::LinesLost,
                &facts,
                format_args!("standard error did not take what the pool had to say"),
            ));
        }
    }
}

fn write(line: &str) {
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// Logs an event that is about no client.
pub(crate) fn note(event: Event, text: fmt::Arguments<'_>) {
    note_of(event, &Facts::default(), text);
}

/// Logs an event with facts.
pub(crate) fn note_of(event: Event, facts: &Facts<'_>, text: fmt::Arguments<'_>) {
    if !event.is_logged(style().1) {
        return;
    }
    let line = line(event, facts, text);
    match WRITER.get() {
        Some(writer) if event == Event::Statement => {
            hand_statement_over(writer, line, &STATEMENT_LINES, &OMITTED);
        }
        Some(writer) => drop(hand_over(writer, Message::Line(line), &OMITTED)),
        None => write(&line),
    }
}

/// Gives a line to the writer; where that is too far behind, it is counted as left out, and this is
/// `false`.
fn hand_over(writer: &SyncSender<Message>, line: Message, omitted: &AtomicU64) -> bool {
    match writer.try_send(line) {
        Ok(()) => return true,
        Err(TrySendError::Full(_)) => drop(omitted.fetch_add(1, Ordering::Relaxed)),
        Err(TrySendError::Disconnected(Message::Line(line) | Message::StatementLine(line))) => {
            write(&line);
        }
        Err(TrySendError::Disconnected(Message::Flush(_))) => {}
    }
    false
}

/// Hands over a line of the log of all statements, of which `waiting` wait already.
fn hand_statement_over(
    writer: &SyncSender<Message>,
    line: String,
    waiting: &AtomicUsize,
    omitted: &AtomicU64,
) {
    if waiting.fetch_add(1, Ordering::Relaxed) >= STATEMENT_LINES_MAX {
        omitted.fetch_add(1, Ordering::Relaxed);
    } else if hand_over(writer, Message::StatementLine(line), omitted) {
        return;
    }
    waiting.fetch_sub(1, Ordering::Relaxed);
}

/// Logs many lines, and waits while there is no room for them: not for a group's thread.
pub(crate) fn note_all(lines: Vec<ReportLine>) {
    for ReportLine {
        event,
        client,
        account,
        text,
    } in lines
    {
        let facts = Facts {
            client,
            account: account.as_deref(),
            ..Facts::default()
        };
        let line = line(event, &facts, format_args!("{text}"));
        match WRITER.get() {
            Some(writer) => drop(writer.send(Message::Line(line))),
            None => write(&line),
        }
    }
}

/// A line of a report, to be logged by a thread that may wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportLine {
    pub(crate) event: Event,
    pub(crate) client: Option<Peer>,
    pub(crate) account: Option<Vec<u8>>,
    pub(crate) text: String,
}

/// The line, which is exported too.
fn line(event: Event, facts: &Facts<'_>, text: fmt::Arguments<'_>) -> String {
    let time = measure::utc::text(reactor::utc_now());
    let mut message = text.to_string();
    if message.len() > MESSAGE_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_MAX));
        message.push_str(" ...");
    }
    if let Some(export) = EXPORT.get() {
        export(event, facts, &message);
    }
    match style().0 {
        LogFormat::Text => text_line(&time, event, facts, &message),
        LogFormat::Json => json_line(&time, event, facts, &message),
    }
}

fn text_line(time: &str, event: Event, facts: &Facts<'_>, message: &str) -> String {
    let (level, name) = (event.level().name(), event.name());
    let mut line = format!("{time} onramp pool: level={level} event={name}");
    // Writing to a string does not fail.
    if let Some(client) = facts.client {
        let _ = write!(line, " client={client}");
    }
    if let Some(id) = facts.id {
        let _ = write!(line, " id={id}");
    }
    if let Some(account) = facts.account {
        let account = String::from_utf8_lossy(account);
        let _ = write!(line, " account=\"{}\"", account.escape_debug());
    }
    if let Some(reason) = facts.reason {
        let _ = write!(line, " reason={reason}");
    }
    if let Some(digest) = facts.digest {
        let _ = write!(line, " digest={digest:016x}");
    }
    if facts.cuts_transaction {
        line.push_str(" transaction=cut");
    }
    for (key, value) in facts.statement.iter().flat_map(StatementFacts::pairs) {
        let _ = match value.as_str() {
            Some(text) => write!(line, " {key}={text}"),
            None => write!(line, " {key}={value}"),
        };
    }
    if facts.omitted > 0 {
        let _ = write!(line, " omitted={}", facts.omitted);
    }
    let _ = writeln!(line, " message={}", printable(message));
    line
}

fn json_line(time: &str, event: Event, facts: &Facts<'_>, message: &str) -> String {
    let mut line = serde_json::Map::new();
    let mut put = |key: &str, value: serde_json::Value| line.insert(key.into(), value);
    put("time", time.into());
    put("level", event.level().name().into());
    put("event", event.name().into());
    if let Some(client) = facts.client {
        put("client", client.to_string().into());
    }
    if let Some(id) = facts.id {
        put("id", id.into());
    }
    if let Some(account) = facts.account {
        put("account", String::from_utf8_lossy(account).into());
    }
    if let Some(reason) = facts.reason {
        put("reason", reason.into());
    }
    if let Some(digest) = facts.digest {
        put("digest", format!("{digest:016x}").into());
    }
    if facts.cuts_transaction {
        put("transaction", "cut".into());
    }
    for (key, value) in facts.statement.iter().flat_map(StatementFacts::pairs) {
        put(key, value);
    }
    if facts.omitted > 0 {
        put("omitted", facts.omitted.into());
    }
    put("message", message.into());
    serde_json::Value::Object(line).to_string() + "\n"
}

/// The text in one line.
fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests;
