//! The audit trail: a line of JSON for each login, failed login, change of user, and end of a
//! client.
//!
//! The problem: who was let in, from where, and why they went has to be told to those who never
//! look at the log, in a form that their programs read already. The mechanism: a line is an object
//! with the names of MySQL Enterprise Audit in its JSON format, which Percona's audit log filter
//! writes too, and which Elastic's module `mysqlenterprise` and others read; what those do not
//! have (TLS, certificate, port, reason) stands in `connection_data`. A group appends the line to
//! one text of fixed size; a thread takes that text as a whole and writes its lines to a file or
//! to syslog. No line is allocated by itself: one of a login is freed by another thread, and would
//! leave a hole among what the clients of its group keep. The texts take their memory at the start.
//!
//! Invariants: no group waits for the disk; a line is one valid object, whatever a client calls
//! itself; what cannot be written is counted, and said in the log; each client that was let in has
//! one line for that and one for its end, in whichever process it ends.
//!
//! Bounds: [`WAITING_MAX`] bytes of lines wait, and each value of a client's has at most
//! [`VALUE_MAX`].

use crate::auth::requirement::names;
use crate::client::Client;
use crate::client::identity::Proof;
use crate::observe::log::{Event, Facts, note_of};
use crate::observe::programs::{Program, Programs};
use reactor::Net;
use serde_json::{Value, json};
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Bytes of lines that wait to be written.
const WAITING_MAX: usize = 1 << 20;
/// Bytes of a value that a client has given; the rest is left out.
const VALUE_MAX: usize = 256;
/// Time to write the lines that wait at the end of the program.
const FLUSH_MAX: Duration = Duration::from_secs(2);
/// Socket of the system's log.
const SYSLOG: &str = "/dev/log";
/// Facility authpriv, severity info.
const SYSLOG_PRIORITY: u8 = 10 << 3 | 6;

/// Reasons for which clients end, where a refusal does not name one.
pub(crate) mod end {
    /// Goodbye of the client (COM_QUIT).
    pub(crate) const QUIT: &str = "quit";
    /// End of its connection without a goodbye.
    pub(crate) const DISCONNECTED: &str = "disconnected";
    /// Silence for `idle_s_max` or `wait_timeout`.
    pub(crate) const IDLE: &str = "idle-timeout";
    /// Stop within a command, or in front of its reply.
    pub(crate) const STALLED: &str = "stalled";
    /// Its host acknowledges nothing.
    pub(crate) const SILENT: &str = "silent";
    pub(crate) const KILLED: &str = "killed";
    pub(crate) const KILLED_AT_CONSOLE: &str = "killed-at-console";
    /// The pool drained.
    pub(crate) const DRAIN: &str = "drain";
    pub(crate) const MEMORY: &str = "memory-share";
    pub(crate) const READER: &str = "reader-closed";
    /// Its connection to the server was lost.
    pub(crate) const LOST: &str = "backend-lost";
    /// None of these; the log may say more.
    pub(crate) const CLOSED: &str = "closed";

    /// A connection that fails with this error: the kernel may notice a silent host first.
    pub(crate) fn of(error: &std::io::Error) -> &'static str {
        match error.kind() {
            std::io::ErrorKind::TimedOut | std::io::ErrorKind::HostUnreachable => SILENT,
            _ => DISCONNECTED,
        }
    }
}

/// Destination of the lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditLog {
    /// The system's log.
    Syslog,
    /// A file, to the end of which they are written.
    File(PathBuf),
}

impl fmt::Display for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditLog::Syslog => f.write_str(SYSLOG),
            AuditLog::File(path) => path.display().fmt(f),
        }
    }
}

/// An event of a client, with all that its line says.
#[derive(Debug, Default)]
pub(crate) struct Happened<'a> {
    event: &'static str,
    id: u32,
    /// Address that the client came from, where it has one and that is known.
    address: Option<SocketAddr>,
    is_local: bool,
    /// The account that the client has, or wants to have.
    account: &'a [u8],
    /// Name that the client has given.
    name: &'a [u8],
    /// Number of the error that it got; 0: of none.
    status: Option<u16>,
    reason: Option<&'static str>,
    schema: Option<&'a [u8]>,
    program: Program,
    /// Version and cipher.
    tls: Option<(&'static str, &'static str)>,
    /// Subject of its certificate.
    subject: Option<String>,
}

impl<'a> Happened<'a> {
    fn to<N: Net>(client: &'a Client<N::Sock>, net: &N, name: &'a [u8]) -> Happened<'a> {
        let certificate = client.transport.peer_certificate();
        Happened {
            event: "disconnect",
            id: client.identity.id(),
            address: client.transport.peer(net),
            is_local: client.transport.is_local(),
            account: name,
            name,
            schema: client.session.state.schema.as_deref(),
            program: client.place.arrival.program,
            tls: client.transport.tls_names(),
            subject: certificate.and_then(names).map(|(_, subject)| subject),
            ..Happened::default()
        }
    }

    /// A login, or a change of user, has ended; `why`: with this error, for this reason.
    pub(crate) fn at_login<N: Net>(
        client: &'a Client<N::Sock>,
        net: &N,
        name: &'a [u8],
        why: Option<(u16, &'static str)>,
    ) -> Happened<'a> {
        Happened {
            event: match client.identity.proof() {
                Proof::Changing => "change_user",
                _ => "connect",
            },
            status: Some(why.map_or(0, |why| why.0)),
            reason: why.map(|why| why.1),
            ..Happened::to(client, net, name)
        }
    }

    /// Event with the account that the name means.
    pub(crate) fn of_account(self, account: &'a str) -> Happened<'a> {
        let account = account.as_bytes();
        Happened { account, ..self }
    }

    /// A client that was let in ends.
    pub(crate) fn at_end<N: Net>(
        client: &'a Client<N::Sock>,
        net: &N,
        account: &'a str,
        reason: &'static str,
    ) -> Happened<'a> {
        Happened {
            reason: Some(reason),
            ..Happened::to(client, net, account.as_bytes())
        }
    }

    /// Event of a connection that is refused in place of a greeting.
    pub(crate) fn turned_away(
        address: Option<SocketAddr>,
        (status, reason): (u16, &'static str),
    ) -> Happened<'a> {
        Happened {
            event: "connect",
            address,
            is_local: address.is_none(),
            status: Some(status),
            reason: Some(reason),
            ..Happened::default()
        }
    }

    /// Its line, with this number.
    fn line(&self, number: u64, programs: &Programs) -> String {
        let ip = self.address.map(|address| address.ip().to_canonical());
        let ip = ip.map_or_else(String::new, |ip| ip.to_string());
        let host = if self.is_local { "localhost" } else { &ip };
        let mut data = serde_json::Map::new();
        let mut put = |key: &str, value: Value| data.insert(key.into(), value);
        put(
            "connection_type",
            match self.tls {
                Some(_) => "ssl",
                None if self.is_local => "socket",
                None => "tcp/ip",
            }
            .into(),
        );
        if let Some(status) = self.status {
            put("status", status.into());
        }
        put("db", bounded(self.schema.unwrap_or_default()));
        if let Some(name) = programs.name(self.program) {
            put("connection_attributes", json!({ "program_name": *name }));
        }
        if let Some(address) = self.address {
            put("port", address.port().into());
        }
        if let Some((version, cipher)) = self.tls {
            put("tls_version", version.into());
            put("tls_cipher", cipher.into());
        }
        if let Some(subject) = &self.subject {
            put("certificate_subject", bounded(subject.as_bytes()));
        }
        if let Some(reason) = self.reason {
            put("reason", reason.into());
        }
        record(
            number,
            ("connection", self.event),
            json!({
                "connection_id": self.id,
                "account": { "user": bounded(self.account), "host": host },
                "login": { "user": bounded(self.name), "os": "", "ip": ip, "proxy": "" },
                "connection_data": data,
            }),
        )
    }
}

/// Text that a client has given, as far as there is room for it.
fn bounded(text: &[u8]) -> Value {
    let text = String::from_utf8_lossy(&text[..text.len().min(VALUE_MAX)]);
    text[..text.floor_char_boundary(VALUE_MAX)].into()
}

/// A line: what all of them begin with, and the rest.
fn record(number: u64, (class, event): (&str, &str), rest: Value) -> String {
    let time = measure::utc::text(reactor::utc_now());
    // MySQL's form, to the second.
    let (date, time) = (&time[..10], &time[11..19]);
    let mut line = json!({
        "timestamp": format!("{date} {time}"), "id": number, "class": class, "event": event,
    });
    if let (Value::Object(line), Value::Object(rest)) = (&mut line, rest) {
        line.extend(rest);
    }
    line.to_string() + "\n"
}

/// Lines on their way to the thread that writes them.
#[derive(Debug, Default)]
struct Waiting {
    /// Whole lines; has no room where there is no thread.
    lines: String,
    /// True while the lines that were taken before these are being written.
    is_writing: bool,
}

/// Empty text for [`WAITING_MAX`] bytes, whose pages are there: a storm of logins takes none.
fn room() -> String {
    let mut room = "\0".repeat(WAITING_MAX);
    room.clear();
    room
}

/// The trail of all groups.
#[derive(Debug, Default)]
pub(crate) struct AuditTrail {
    is_on: AtomicBool,
    writer: OnceLock<()>,
    waiting: Mutex<Waiting>,
    /// Signal that a line waits, or all have been written.
    changed: Condvar,
    /// Destination from the next line on, if that is another one.
    next: Mutex<Option<AuditLog>>,
    /// Lines so far, written or not: their numbers have a gap where some were lost.
    number: AtomicU64,
    lost: AtomicU64,
}

impl AuditTrail {
    /// Begins the trail, if there is one. `is_first`: this process takes nobody's place.
    ///
    /// # Errors
    /// Why it cannot be written there.
    pub(crate) fn begin(
        self: &Arc<Self>,
        to: Option<&AuditLog>,
        is_first: bool,
    ) -> Result<(), String> {
        self.open(to)?;
        if is_first {
            self.note_own("startup");
        }
        Ok(())
    }

    /// Writes there from now on, to a file that is opened anew: it may have been renamed.
    ///
    /// # Errors
    /// Why it cannot; everything is as before.
    pub(crate) fn open(self: &Arc<Self>, to: Option<&AuditLog>) -> Result<(), String> {
        let Some(to) = to else {
            self.is_on.store(false, Relaxed);
            return Ok(());
        };
        let why = |error: io::Error| format!("audit_log: {to}: {error}");
        // Threads may have tables of descriptors of their own: the one that writes opens it again.
        Output::open(to).map_err(why)?;
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(to.clone());
        if self.writer.get().is_none() {
            let trail = self.clone();
            let thread = std::thread::Builder::new().name("audit".into());
            (thread.spawn(move || trail.write_all())).map_err(why)?;
            let _ = self.writer.set(());
            self.waiting().lines = room();
        }
        self.is_on.store(true, Relaxed);
        Ok(())
    }

    /// Ends the trail: `goes_on` in another process, or not.
    pub(crate) fn end(&self, goes_on: bool) {
        if !goes_on {
            self.note_own("shutdown");
        }
        let is_due = |waiting: &mut Waiting| waiting.is_writing || !waiting.lines.is_empty();
        let _ = (self.changed).wait_timeout_while(self.waiting(), FLUSH_MAX, is_due);
    }

    /// True if there is one.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Lines that were not written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Writes a line. Waits for nobody.
    pub(crate) fn note(&self, happened: &Happened<'_>, programs: &Programs) {
        let number = self.number.fetch_add(1, Relaxed);
        self.hand_over(&happened.line(number, programs));
    }

    /// Writes a line about the pool itself.
    fn note_own(&self, event: &'static str) {
        if self.is_on() {
            let number = self.number.fetch_add(1, Relaxed);
            let data = json!({ "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION") });
            let rest = json!({ "connection_id": 0, format!("{event}_data"): data });
            self.hand_over(&record(number, ("audit", event), rest));
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_over(&self, line: &str) {
        let mut waiting = self.waiting();
        if waiting.lines.capacity() - waiting.lines.len() < line.len() {
            self.lost.fetch_add(1, Relaxed);
            return;
        }
        waiting.lines.push_str(line);
        drop(waiting);
        self.changed.notify_all();
    }

    /// Takes the lines that wait, once there are any; those that it took before are written.
    fn take(&self, lines: &mut String) {
        lines.clear();
        let mut waiting = self.waiting();
        waiting.is_writing = false;
        self.changed.notify_all();
        let waiting = (self.changed).wait_while(waiting, |waiting| waiting.lines.is_empty());
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut waiting.lines, lines);
        waiting.is_writing = true;
    }

    fn write_all(&self) {
        let (mut output, mut told, mut fails) = (None, 0, false);
        let mut lines = room();
        loop {
            self.take(&mut lines);
            let next = (self.next.lock().unwrap_or_else(PoisonError::into_inner)).take();
            if let Some(next) = next {
                output = Some(Output::open(&next));
            }
            let Some(output) = &mut output else { continue };
            for line in lines.split_inclusive('\n') {
                let written = match output {
                    Ok(output) => output.write(line),
                    Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                };
                if let Err(error) = written {
                    self.lost.fetch_add(1, Relaxed);
                    if !std::mem::replace(&mut fails, true) {
                        let text =
                            format_args!("lines are lost until they can be written: {error}");
                        note_of(Event::AuditLost, &Facts::default(), text);
                    }
                    continue;
                }
                fails = false;
                let omitted = self.lost() - told;
                if omitted > 0 {
                    told += omitted;
                    let facts = Facts {
                        omitted,
                        ..Facts::default()
                    };
                    let text = format_args!("{omitted} lines were lost; lines are written again");
                    note_of(Event::AuditLost, &facts, text);
                }
            }
        }
    }
}

/// An open destination.
#[derive(Debug)]
enum Output {
    Syslog(PathBuf, UnixDatagram),
    /// File, with the fact that the last line is not whole.
    File(File, bool),
}

impl Output {
    fn open(to: &AuditLog) -> io::Result<Output> {
        match to {
            AuditLog::Syslog => Output::syslog(Path::new(SYSLOG)),
            AuditLog::File(path) => {
                reactor::scratch::open_at_end(path).map(|file| Output::File(file, false))
            }
        }
    }

    fn syslog(path: &Path) -> io::Result<Output> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        Ok(Output::Syslog(path.into(), socket))
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        match self {
            Output::Syslog(path, socket) => {
                let (pid, line) = (std::process::id(), line.trim_end());
                let message = format!("<{SYSLOG_PRIORITY}>onramp[{pid}]: {line}");
                if socket.send(message.as_bytes()).is_err() {
                    // It may have been started again.
                    socket.connect(path)?;
                    socket.send(message.as_bytes())?;
                }
                Ok(())
            }
            Output::File(file, is_torn) => {
                if *is_torn {
                    file.write_all(b"\n")?;
                }
                *is_torn = true;
                file.write_all(line.as_bytes())?;
                *is_torn = false;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Value {
        assert_eq!(line.find('\n'), Some(line.len() - 1), "{line}");
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn a_line_is_one_object_whatever_a_client_calls_itself() {
        let long = [b'x'; 2 * VALUE_MAX];
        let wide = "\u{1F600}".repeat(VALUE_MAX);
        let names: [&[u8]; 7] = [
            b"",
            b"a\"b\\c",
            b"line\r\nfeed\0\x1b[2J\x7f",
            b"\xff\xfe\xc3",
            "\u{2028}\u{85}".as_bytes(),
            &long,
            wide.as_bytes(),
        ];
        let programs = Programs::default();
        for name in names {
            let happened = Happened {
                event: "connect",
                account: name,
                name,
                schema: Some(name),
                program: programs.number(name),
                subject: Some(String::from_utf8_lossy(name).into_owned()),
                status: Some(1045),
                reason: Some("wrong-password"),
                is_local: true,
                ..Happened::default()
            };
            let line = happened.line(7, &programs);
            let read = read(&line);
            let shown = read["login"]["user"].as_str().unwrap();
            let lossy = String::from_utf8_lossy(name);
            assert!(
                lossy.starts_with(shown) || name.len() > VALUE_MAX,
                "{shown}"
            );
            assert!(shown.len() <= VALUE_MAX && line.len() < 8 * 6 * VALUE_MAX);
            assert_eq!(read["id"], 7);
            assert_eq!(read["connection_data"]["status"], 1045);
            assert_eq!(read["account"]["host"], "localhost");
        }
    }

    #[test]
    fn a_host_that_the_kernel_gives_up_is_silent() {
        let of = |errno: i32| end::of(&io::Error::from_raw_os_error(errno));
        let [reset, timed_out, unreachable] = [104, 110, 113].map(of);
        let expected = [end::DISCONNECTED, end::SILENT, end::SILENT];
        assert_eq!([reset, timed_out, unreachable], expected);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let trail = AuditTrail::default();
        let note = || trail.note(&Happened::default(), &Programs::default());
        note();
        assert_eq!(trail.lost(), 1, "nobody writes");
        trail.waiting().lines = room();
        let mut noted = 1;
        while trail.lost() < 3 {
            note();
            noted += 1;
        }
        let mut lines = String::new();
        trail.take(&mut lines);
        assert!(lines.len() <= WAITING_MAX);
        assert_eq!(lines.lines().count(), noted - 3);
        assert!((lines.split_inclusive('\n')).all(|line| read(line).is_object()));
    }

    #[test]
    fn syslog_gets_a_line_in_a_message_and_is_found_again() {
        let folder = std::env::temp_dir().join(format!("onramp-audit-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("log");
        let heard = |socket: &UnixDatagram| {
            let mut bytes = [0; 100];
            let len = socket.recv(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..len]).into_owned()
        };
        let log = UnixDatagram::bind(&path).unwrap();
        let mut output = Output::syslog(&path).unwrap();
        output.write("{}\n").unwrap();
        let expected = format!("<86>onramp[{}]: {{}}", std::process::id());
        assert_eq!(heard(&log), expected);
        drop(log);
        std::fs::remove_file(&path).unwrap();
        assert!(output.write("{}\n").is_err(), "it is away");
        let log = UnixDatagram::bind(&path).unwrap();
        output.write("{}\n").unwrap();
        assert_eq!(heard(&log), expected);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_was_written_in_part_does_not_spoil_the_next_line() {
        let path = std::env::temp_dir().join(format!("onramp-audit-{}.log", std::process::id()));
        let mut output = Output::open(&AuditLog::File(path.clone())).unwrap();
        output.write("{\"half\":").unwrap();
        let Output::File(_, is_torn) = &mut output else {
            panic!("it is a file");
        };
        *is_torn = true;
        output.write("{}\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"half\":\n{}\n");
        std::fs::remove_file(&path).unwrap();
    }
}
