//! The probe: what the server is like, asked once before the pool begins to serve.
//!
//! Our greeting mirrors the server's version, and a client's session begins with the character sets
//! that its collation id means on this server, so the pool must know both before the first client.
//! The probe is one plain blocking connection on the main thread; the groups' backends come later.

use crate::auth::secret::Secret;
use crate::backend::dial::{account_of, refusal};
use crate::backend::pools::PoolKey;
use crate::config::Settings;
use crate::group::shared::Shared;
use crate::server::facts::{ServerFacts, ServerTimeouts};
use crate::server::proxy_protocol::ProxyProtocol;
use crate::server::rows::read_row;
use crate::server::tls::{Asking, BackendTls, Security, words_of};
use crate::server::upstream::Upstream;
use ::cluster::questions;
use reactor::{Address, Time, tls_client};
use session::text::Text;
use sql::lex::Server;
use sql::tracking::Tracked;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use wire::blocking::{self, Failure};
use wire::client_login::{Account, COLLATION};
use wire::handshake::{Greeting, is_of_mariadb, own_version};
use wire::track::{Transactions, Wanted};

/// The collation of the probe's login. Hardly any server has it as its default, so that a session
/// which has the default in spite of it is of a server that heeds no client's collation
/// (`skip_character_set_client_handshake`), where `init_connect` has not set it.
const BINARY: u8 = 63;
/// Character sets that no client may speak; a server puts its default in their place.
const NOT_FOR_CLIENTS: [&[u8]; 4] = [b"ucs2", b"utf16", b"utf16le", b"utf32"];
/// Bytes of an answer that are kept.
const ANSWER_MAX: usize = blocking::MESSAGE_MAX;
/// Times for an answer for which [`Late`] waits.
const LATE_MAX: u32 = 4;
/// Characters of a question that an error quotes.
const WORDS_MAX: usize = 80;

const SETTINGS: &str = "SELECT @@max_allowed_packet,@@global.sql_mode,\
    @@global.session_track_system_variables,@@global.session_track_schema,\
    @@global.character_set_client,@@global.character_set_connection,\
    @@global.character_set_results,@@global.collation_connection,@@skip_name_resolve,\
    @@global.wait_timeout,@@global.interactive_timeout,@@global.net_read_timeout,\
    @@global.net_write_timeout,\
    @@global.max_error_count,@@global.session_track_state_change,\
    @@global.session_track_transaction_info,\
    IF(@@init_connect='',@@character_set_client,'binary')";
/// The pool's own questions need all rows, and names as they are, whatever holds for new sessions.
const OWN_SESSION: &str = "SET SESSION sql_mode='',SESSION sql_select_limit=18446744073709551615,\
    SESSION sql_big_selects=1";
/// Question for the collations whose ids fit into the two bytes of a change of user.
const COLLATIONS: &str = "SELECT ID,CHARACTER_SET_NAME,COLLATION_NAME \
    FROM information_schema.COLLATIONS WHERE ID BETWEEN 1 AND 65535";
/// Query for collations of MariaDB since 10.10: a collation of several character sets has an id and
/// a name for each.
const COLLATIONS_OF_CHARSETS: &str = "SELECT ID,CHARACTER_SET_NAME,FULL_COLLATION_NAME \
    FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY WHERE ID BETWEEN 1 AND 65535";

/// Says OFF where the SQL layer carries out foreign keys, nothing where only InnoDB can.
const FOREIGN_KEYS: &str = "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'";

/// Reason why the server could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbeError {
    /// A sentence.
    pub why: String,
    /// Its meaning.
    pub fault: Fault,
}

/// Reasons why the server could not be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nobody answered, or not to the end.
    Unreached,
    /// Silence on a connection that stands, within the time for an answer.
    Unanswered,
    /// Answer that is of no use now; it may be later.
    Passing,
    /// The server refuses the account. Asking again will not help until somebody changes the
    /// account or the server.
    Lasting,
    /// The server answers a question with this error.
    Failed(u16),
    /// Certificate that does not pass, or no TLS to be had with the server.
    Untrusted,
    /// Answer longer than [`ANSWER_MAX`].
    TooLong,
}

impl ProbeError {
    pub(crate) fn passing(why: impl Into<String>) -> ProbeError {
        ProbeError {
            why: why.into(),
            fault: Fault::Passing,
        }
    }

    pub(crate) fn unreached(why: impl Into<String>) -> ProbeError {
        ProbeError {
            why: why.into(),
            fault: Fault::Unreached,
        }
    }

    /// True when the server can be reached by nobody, as far as this tells.
    pub(crate) fn is_unreached(&self) -> bool {
        matches!(self.fault, Fault::Unreached | Fault::Unanswered)
    }

    /// Error of a server that was sent a PROXY header: each server that does not expect one says
    /// something else, and MySQL that the packets are out of order.
    fn about_header(self) -> ProbeError {
        let why = format!(
            "{}; backend.proxy_protocol sends a header, which the server takes only from addresses \
             in its own proxy_protocol_networks (MySQL never does)",
            self.why
        );
        ProbeError { why, ..self }
    }
}

/// A stream that waits.
trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// Action each time that nothing has come within the time for an answer, which is waited for on.
pub(crate) type Late = Box<dyn FnMut() + Send>;

/// A stream on which an answer may be late.
struct Patient {
    stream: Box<dyn Stream>,
    late: Late,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for _ in 1..LATE_MAX {
            match self.stream.read(buffer) {
                Err(error) if is_silence(&error) => (self.late)(),
                read => return read,
            }
        }
        self.stream.read(buffer)
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// True for the error of a blocking socket whose time limit has passed.
fn is_silence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// Puts TLS over a stream, and waits until it stands.
fn begin_tls(stream: &mut Box<dyn Stream>, tls: &BackendTls) -> io::Result<()> {
    let connection = tls.connection().map_err(io::Error::other)?;
    let plain = std::mem::replace(stream, Box::new(io::Cursor::new(Vec::new())));
    *stream = Box::new(tls_client::over(connection, plain)?);
    Ok(())
}

/// Rows of a query; NULL is an empty text.
pub(crate) type Rows = Vec<Vec<Text>>;

/// A connection that waits, with the words and the bounds of the pool's own questions.
pub(crate) struct Connection {
    /// The server's address.
    pub(crate) at: Arc<Address>,
    connection: blocking::Connection<Box<dyn Stream>>,
    /// TLS to the server.
    tls: Option<Arc<BackendTls>>,
    /// Time for which an answer is waited for.
    longest: Duration,
    /// Its socket, so that another thread can end it.
    socket: Option<Arc<OwnedFd>>,
}

/// Ends it at the server too: threads with tables of their own have copies of a descriptor that
/// was there before them.
impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = reactor::socket::shut_down(socket);
        }
    }
}

/// Asks the server at `upstream`, with the account of `key`, within the settings' time for a dial
/// per answer.
///
/// # Errors
/// [`ProbeError`] with the server's or the system's words.
pub(crate) fn probe(
    upstream: &Upstream,
    key: &PoolKey,
    settings: &Settings,
) -> Result<ServerFacts, ProbeError> {
    let mut connection = connect(upstream, settings)?;
    // A server reads the account's name in the login's character set.
    let is_ascii = key.user.is_ascii();
    let collation = if is_ascii { BINARY } else { COLLATION };
    let greeting =
        connection
            .log_in(key, collation)
            .map_err(|error| match settings.backend_proxy {
                ProxyProtocol::Off => error,
                _ => error.about_header(),
            })?;
    let version = String::from_utf8_lossy(&greeting.version).into_owned();
    connection.query(OWN_SESSION)?;
    let settings = connection.query(SETTINGS)?;
    let settings = settings.first().filter(|row| row.len() == 17);
    let row = settings.ok_or(ProbeError::passing("the server did not tell its settings"))?;
    let text = |i: usize| String::from_utf8_lossy(&row[i]).into_owned();
    let default_charsets = [
        row[4].clone(),
        row[5].clone(),
        row[6].clone(),
        row[7].clone(),
    ];
    let heeds_collations = !is_ascii || *row[16] == *b"binary" || row[16] != row[4];
    let schema = matches!(text(3).as_str(), "1" | "ON");
    let flavour = flavour_of(&version);
    let collations = connection.query(match flavour {
        Server::MariaDb(101_001..) => COLLATIONS_OF_CHARSETS,
        _ => COLLATIONS,
    })?;
    let native = match flavour.is_mysql() {
        true => connection.query(FOREIGN_KEYS)?,
        false => Rows::new(),
    };
    let mut trackers = Wanted::from_setting(&text(2), schema);
    trackers.state = matches!(text(14).as_str(), "1" | "ON");
    let mysql = flavour.is_mysql();
    trackers.transactions = Transactions::from_setting(&row[15], mysql);
    let time = |i: usize| text(i).parse().map(Duration::from_secs).ok();
    let usual = ServerTimeouts::default();
    let timeouts = ServerTimeouts {
        wait: time(9).unwrap_or(usual.wait),
        interactive: time(10).unwrap_or(usual.interactive),
        read: time(11).unwrap_or(usual.read),
        write: time(12).unwrap_or(usual.write),
    };
    Ok(ServerFacts {
        max_allowed_packet: text(0).parse().unwrap_or(16 << 20),
        sql_mode: text(1),
        names_hosts: !matches!(text(8).as_str(), "1" | "ON"),
        conditions_max: session::diagnostics::conditions_max(&text(13)),
        trackers: Tracked {
            variables: row[2].clone(),
            wanted: trackers,
        },
        charsets: charsets_by_collation(&collations),
        heeds_collations,
        refused_charsets: match heeds_collations {
            true => refused_charsets(&collations),
            false => HashMap::new(),
        },
        default_results: results_by_default(&collations, &default_charsets),
        default_charsets,
        reset_loses_foreign_keys: native
            .first()
            .and_then(|row| row.get(1))
            .is_some_and(|value| **value == *b"OFF"),
        flavour,
        timeouts,
        collation: greeting.collation,
        capabilities: greeting.capabilities,
        extended: greeting.extended,
        version,
    })
}

/// The number of a row's collation.
fn number_of(row: &[Text]) -> Option<u16> {
    std::str::from_utf8(&row[0]).ok()?.parse().ok()
}

/// Character sets that no client may speak, by their collations.
fn refused_charsets(rows: &[Vec<Text>]) -> HashMap<u16, Text> {
    let rows = rows.iter().filter(|row| row.len() == 3);
    let refused = rows.filter(|row| NOT_FOR_CLIENTS.contains(&&*row[1]));
    let named = |row: &Vec<Text>| Some((number_of(row)?, row[1].clone()));
    refused.filter_map(named).collect()
}

fn charsets_by_collation(rows: &[Vec<Text>]) -> HashMap<u16, [Text; 4]> {
    let mut found = HashMap::new();
    for row in rows.iter().filter(|row| row.len() == 3) {
        let (charset, collation) = (&row[1], &row[2]);
        if let Some(id) = number_of(row).filter(|_| !NOT_FOR_CLIENTS.contains(&&**charset)) {
            let all = [
                charset.clone(),
                charset.clone(),
                charset.clone(),
                collation.clone(),
            ];
            found.insert(id, all);
        }
    }
    found
}

/// The number of the collation that `character_set_results` has for every session: both servers
/// give it the one of `collation_connection` as they start.
fn results_by_default(rows: &[Vec<Text>], default: &[Text; 4]) -> Option<u16> {
    let [_, _, results, collation] = default;
    let fits = |row: &&Vec<Text>| row.len() == 3 && row[1] == *results && row[2] == *collation;
    let row = rows.iter().find(fits)?;
    std::str::from_utf8(&row[0]).ok()?.parse().ok()
}

/// Server that a version text names.
fn flavour_of(version: &str) -> Server {
    let mut numbers = own_version(version)
        .split(|c: char| !c.is_ascii_digit())
        .map(|n| n.parse::<u32>());
    let mut next = || numbers.next().and_then(Result::ok).filter(|n| *n < 10_000);
    let (Some(major), Some(minor), Some(patch)) = (next(), next(), next()) else {
        return Server::Unknown;
    };
    let number = major * 10_000 + minor * 100 + patch;
    if is_of_mariadb(version) {
        Server::MariaDb(number)
    } else {
        Server::MySql(number)
    }
}

/// Opens a connection on which nothing is waited for longer than for a dial.
fn connect(upstream: &Upstream, settings: &Settings) -> Result<Connection, ProbeError> {
    let longest = settings.dial_max;
    let (at, socket) = upstream
        .connect(settings.backend_keepalive(), longest)
        .map_err(ProbeError::unreached)?;
    let tls = settings.tls_at(upstream, &at);
    let connection = Connection::over(at, socket, (settings, tls), longest, None)?;
    if let Some(socket) = connection.socket.as_ref().filter(|_| upstream.is_writer()) {
        upstream.end_with_writer(socket);
    }
    Ok(connection)
}

/// Words for a failure on a blocking socket. A time limit on one shows itself as EAGAIN, whose
/// words ("Resource temporarily unavailable") say nothing of it.
fn words(error: &std::io::Error, longest: Duration) -> String {
    match is_silence(error) {
        true if longest.subsec_millis() == 0 => {
            format!("no answer within {} s", longest.as_secs())
        }
        true => format!("no answer within {} ms", longest.as_millis()),
        false => error.to_string(),
    }
}

fn into_stream(at: &Address, socket: OwnedFd, longest: Duration) -> io::Result<Box<dyn Stream>> {
    let longest = Some(longest);
    Ok(match at {
        Address::Tcp(_) => {
            let stream = TcpStream::from(socket);
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(longest)?;
            stream.set_write_timeout(longest)?;
            Box::new(stream)
        }
        Address::Unix(_) => {
            let stream = UnixStream::from(socket);
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(longest)?;
            stream.set_write_timeout(longest)?;
            Box::new(stream)
        }
    })
}

/// A connection of the account that asks for the pool itself, beside the backends.
///
/// # Errors
/// [`ProbeError`]: that there is no server, or that it refuses the account.
pub(crate) fn log_in_to_look(shared: &Shared) -> Result<Connection, ProbeError> {
    let (user, password) = shared.settings().monitor_account();
    let mut connection = log_in_as(shared, user, password)?;
    connection.query(OWN_SESSION)?;
    Ok(connection)
}

/// A connection of any account, beside the backends.
///
/// # Errors
/// As [`log_in_to_look`].
pub(crate) fn log_in_as(
    shared: &Shared,
    user: String,
    password: Secret,
) -> Result<Connection, ProbeError> {
    let key = PoolKey::to_ask(user, password);
    let mut connection = connect(&shared.upstream, &shared.settings())?;
    let logged_in = connection.log_in(&key, COLLATION);
    if let Err(error) = &logged_in {
        let (at, now) = (&connection.at, Time::now());
        match error.fault {
            Fault::Unreached | Fault::Unanswered => {
                _ = shared.upstream.failed(at, now, &error.why);
            }
            // The server has answered: it can be reached, whatever it has against the account.
            Fault::Lasting => _ = shared.upstream.reached(at, now),
            Fault::Passing | Fault::Failed(_) | Fault::Untrusted | Fault::TooLong => {}
        }
    }
    logged_in.map(|_| connection)
}

/// A connection of this account to a server by itself, on which no answer is waited for longer than
/// `longest`; its failures are no outage. With the server's greeting.
///
/// # Errors
/// [`ProbeError`]: that there is no server, or that it refuses the account.
pub(crate) fn log_in_at(
    upstream: &Upstream,
    settings: &Settings,
    longest: Duration,
    late: Option<Late>,
) -> Result<(Connection, Greeting), ProbeError> {
    let keepalive = settings.backend_keepalive();
    let opened = upstream.try_connect(keepalive, longest);
    let (at, socket) = opened.map_err(|failure| match failure.timed_out {
        true => ProbeError {
            why: failure.why,
            fault: Fault::Unanswered,
        },
        false => ProbeError::unreached(failure.why),
    })?;
    let tls = settings.tls_at(upstream, &at);
    let mut connection = Connection::over(at, socket, (settings, tls), longest, late)?;
    let (user, password) = settings.monitor_account();
    let greeting = connection.log_in(&PoolKey::to_ask(user, password), COLLATION)?;
    connection.query(OWN_SESSION)?;
    Ok((connection, greeting))
}

impl Connection {
    fn over(
        at: Arc<Address>,
        socket: OwnedFd,
        (settings, tls): (&Settings, Option<Arc<BackendTls>>),
        longest: Duration,
        late: Option<Late>,
    ) -> Result<Connection, ProbeError> {
        let tls =
            tls.ok_or_else(|| ProbeError::unreached("another server is the writer by now"))?;
        let cannot = |error| ProbeError::passing(format!("cannot use a connection: {error}"));
        let shared = Arc::new(socket.try_clone().map_err(cannot)?);
        let mut stream = into_stream(&at, socket, longest).map_err(cannot)?;
        if let Some(late) = late {
            stream = Box::new(Patient { stream, late });
        }
        // The pool asks for itself.
        let header = settings.backend_proxy.header(None);
        stream.write_all(&header).map_err(cannot)?;
        Ok(Connection {
            at,
            connection: blocking::Connection::new(stream),
            tls: Some(tls),
            longest,
            socket: Some(shared),
        })
    }

    /// Logs in; returns the server's greeting.
    fn log_in(&mut self, key: &PoolKey, collation: u8) -> Result<Greeting, ProbeError> {
        let security = Security::of(self.tls.as_deref(), &self.at);
        let asking = security.asking;
        let account = Account {
            collation,
            ..account_of(key, matches!(*self.at, Address::Unix(_)), &security)
        };
        let tls = self.tls.clone().filter(|_| asking != Asking::Off);
        let mut secure = tls.map(|tls| move |stream: &mut _| begin_tls(stream, &tls));
        let secure = (secure.as_mut()).map(|secure| secure as &mut dyn FnMut(&mut _) -> _);
        let logged_in = self.connection.log_in_over(&account, secure);
        logged_in.map_err(|failure| match failure {
            Failure::Login(error) => {
                let (why, lasting) = refusal(&error, key, asking);
                let fault = if lasting {
                    Fault::Lasting
                } else {
                    Fault::Passing
                };
                ProbeError { why, fault }
            }
            Failure::Read(ref error) | Failure::Write(ref error) => {
                match words_of(error, self.tls.as_deref()) {
                    Some(why) => ProbeError {
                        why,
                        fault: Fault::Untrusted,
                    },
                    None => self.lost(failure),
                }
            }
            failure => self.lost(failure),
        })
    }

    /// Error of a connection that can no longer be used.
    fn lost(&self, failure: Failure) -> ProbeError {
        match failure {
            Failure::Write(error) => {
                ProbeError::unreached(format!("the server does not read: {error}"))
            }
            Failure::Read(error) => {
                let why = words(&error, self.longest);
                let fault = match is_silence(&error) {
                    true => Fault::Unanswered,
                    false => Fault::Unreached,
                };
                ProbeError {
                    why: format!("from the server: {why}"),
                    fault,
                }
            }
            Failure::Malformed(error) => ProbeError::passing(format!("the server sent a {error}")),
            Failure::Closed
            | Failure::TooLong
            | Failure::LocalFile
            | Failure::Login(_)
            | Failure::Server { .. } => ProbeError::unreached(failure.to_string()),
        }
    }

    /// Says goodbye, so that the server need not wonder.
    pub(crate) fn leave(mut self) {
        self.connection.quit();
    }

    /// All rows of a query; NULL is an empty text.
    pub(crate) fn query(&mut self, sql: &str) -> Result<Rows, ProbeError> {
        self.ask(&[sql]).and_then(|mut answers| answers.remove(0))
    }

    /// The answers to several texts, which go out in one write: each its rows, or what the server
    /// has against it. There must be few enough of them to lie in a socket's buffer.
    ///
    /// # Errors
    /// [`ProbeError`]: the connection is of no more use.
    pub(crate) fn ask(
        &mut self,
        texts: &[impl AsRef<str>],
    ) -> Result<Vec<Result<Rows, ProbeError>>, ProbeError> {
        let queries: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
        let sent = self.connection.send_queries(&queries);
        sent.map_err(|failure| self.lost(failure))?;
        queries.iter().map(|sql| self.answer(sql)).collect()
    }

    /// The answers to several texts as [`Connection::ask`], with the names of their columns.
    ///
    /// # Errors
    /// [`ProbeError`]: the connection is of no more use.
    pub(crate) fn tables(
        &mut self,
        texts: &[&str],
    ) -> Result<Vec<Result<questions::Rows, ProbeError>>, ProbeError> {
        let sent = self.connection.send_queries(texts);
        sent.map_err(|failure| self.lost(failure))?;
        let table = |text: &&str| {
            let mut table = questions::Rows::default();
            let column = |definition: &[u8]| {
                let name = blocking::column_name(definition);
                (table.columns).push(String::from_utf8_lossy(name).into_owned());
            };
            let mut rows = Vec::new();
            let row = |row: &[u8]| {
                let values = blocking::values_or_null(row);
                rows.push(values.map(|value| value.map(<[u8]>::to_vec)).collect());
            };
            let answer = self.connection.answer_table(column, row);
            table.rows = rows;
            match answer {
                Ok(_) => Ok(Ok(table)),
                Err(failure @ Failure::Server { code, .. }) => Ok(Err(ProbeError {
                    why: format!("'{}' failed: {failure}", beginning(text)),
                    fault: Fault::Failed(code),
                })),
                Err(failure) => Err(self.lost(failure)),
            }
        };
        texts.iter().map(table).collect()
    }

    /// One answer, to this text.
    fn answer(&mut self, sql: &str) -> Result<Result<Rows, ProbeError>, ProbeError> {
        let (mut rows, mut len) = (Vec::new(), 0);
        let answer = self.connection.answer(|row| {
            len += row.len();
            if len > ANSWER_MAX {
                // The rest is read, so that the connection can be used, and forgotten.
                rows = Vec::new();
            } else {
                rows.push(read_row(row));
            }
        });
        match answer {
            Ok(_) if len > ANSWER_MAX => {
                let mib = ANSWER_MAX >> 20;
                Ok(Err(ProbeError {
                    why: format!("the answer to '{}' has more than {mib} MiB", beginning(sql)),
                    fault: Fault::TooLong,
                }))
            }
            Ok(_) => Ok(Ok(rows)),
            Err(failure @ Failure::Server { code, .. }) => Ok(Err(ProbeError {
                why: format!("'{}' failed: {failure}", beginning(sql)),
                fault: Fault::Failed(code),
            })),
            Err(failure) => Err(self.lost(failure)),
        }
    }
}

/// Beginning of a text, as much as a line of the log has room for.
fn beginning(sql: &str) -> String {
    match sql.char_indices().nth(WORDS_MAX) {
        Some((end, _)) => format!("{}...", &sql[..end]),
        None => sql.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that has said all this, and hears nothing.
    struct Said(std::io::Cursor<Vec<u8>>);

    impl Read for Said {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Write for Said {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_of_any_length_is_read_and_only_so_much_is_kept() {
        let row = [&[0xfc, 0x00, 0x80][..], &[b'x'; 0x8000]].concat();
        let rows = ANSWER_MAX / row.len() + 1;
        let mut said = Vec::new();
        let mut put = |payload: &[u8]| {
            let len = u32::try_from(payload.len()).unwrap().to_le_bytes();
            said.extend_from_slice(&[&len[..3], &[1], payload].concat());
        };
        let short = [
            b"\x01",
            &b"\x03def\0\0\0\x01a\0\x0c\x3f\0\0\0\0\0\xfd\0\0\0\0\0"[..],
        ];
        let end = b"\xfe\0\0\x02\0\0\0";
        for (rows, row) in [(rows, &row[..]), (1, b"\x03yes")] {
            short.iter().for_each(|packet| put(packet));
            (0..rows).for_each(|_| put(row));
            put(end);
        }
        let mut connection = Connection {
            at: Arc::new(Address::Unix("/s".into())),
            connection: blocking::Connection::new(Box::new(Said(std::io::Cursor::new(said)))),
            tls: None,
            longest: Duration::MAX,
            socket: None,
        };
        let error = connection.query("SELECT much").unwrap_err();
        assert_eq!(error.fault, Fault::TooLong);
        assert!(
            error.why.contains("'SELECT much' has more than 64 MiB"),
            "{error:?}"
        );
        let rows = connection.query("SELECT little").unwrap();
        assert_eq!(rows, [[Text::from(&b"yes"[..])]]);
    }

    #[test]
    fn versions_name_their_server() {
        let cases = [
            ("5.5.5-10.11.14-MariaDB-0+deb12u2", Server::MariaDb(101_114)),
            ("11.8.3-MariaDB", Server::MariaDb(110_803)),
            ("8.4.6", Server::MySql(80_406)),
            ("9.7.4-Debian", Server::MySql(90_704)),
            ("8.0.36-28.1 Percona", Server::MySql(80_036)),
            ("whatever", Server::Unknown),
        ];
        for (version, server) in cases {
            assert_eq!(flavour_of(version), server, "{version}");
        }
    }

    #[test]
    fn a_collation_means_four_variables_unless_no_client_may_speak_it() {
        let row = |id: &str, charset: &str, collation: &str| {
            [id, charset, collation]
                .map(|s| Text::from(s.as_bytes()))
                .to_vec()
        };
        let rows = [
            row("45", "utf8mb4", "utf8mb4_general_ci"),
            row("54", "utf16", "utf16_bin"),
        ];
        let found = charsets_by_collation(&rows);
        let all = ["utf8mb4", "utf8mb4", "utf8mb4", "utf8mb4_general_ci"];
        assert_eq!(found[&45], all.map(|s| Text::from(s.as_bytes())));
        assert!(!found.contains_key(&54));
        let refused = refused_charsets(&rows);
        assert_eq!(refused, HashMap::from([(54, Text::from(&b"utf16"[..]))]));
    }

    #[test]
    fn a_row_keeps_its_nulls_as_empty_values() {
        let row = read_row(b"\x02ab\xfb\x00\x01c");
        let row: Vec<&[u8]> = row.iter().map(|v| &**v).collect();
        assert_eq!(row, [&b"ab"[..], b"", b"", b"c"]);
    }

    #[test]
    fn the_server_finds_the_end_of_a_connection_of_which_there_is_a_copy() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let copy = ours.try_clone().unwrap();
        let settings = crate::group::scripted::shared("").settings();
        let at = Arc::new(Address::Unix("/s.sock".into()));
        drop(Connection::over(
            at,
            ours.into(),
            (&settings, Some(settings.backend_tls.clone())),
            Duration::from_secs(1),
            None,
        ));
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
        drop(copy);
    }

    /// A stream on which something comes at the look of this number.
    struct Slow(u32);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 -= 1;
            match self.0 {
                0 => (&b"x"[..]).read(buffer),
                _ => Err(std::io::ErrorKind::WouldBlock.into()),
            }
        }
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_late_answer_is_waited_for_so_long_and_each_wait_is_told_of() {
        for (look, read, told) in [
            (1, Some(1), 0),
            (LATE_MAX, Some(1), LATE_MAX - 1),
            (LATE_MAX + 1, None, LATE_MAX - 1),
        ] {
            let (late, count) = std::sync::mpsc::sync_channel(LATE_MAX as usize);
            let mut patient = Patient {
                stream: Box::new(Slow(look)),
                late: Box::new(move || late.send(()).unwrap()),
            };
            assert_eq!(patient.read(&mut [0]).ok(), read, "{look}");
            assert_eq!(count.try_iter().count(), told as usize, "{look}");
        }
    }

    #[test]
    fn a_server_that_says_nothing_gave_no_answer_in_time() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let longest = Duration::from_millis(20);
        let at = Address::Unix("/s.sock".into());
        let mut connection = Connection {
            connection: blocking::Connection::new(into_stream(&at, ours.into(), longest).unwrap()),
            at: Arc::new(at),
            tls: None,
            longest,
            socket: None,
        };
        let error = connection.query("SELECT 1").unwrap_err();
        assert_eq!(error.why, "from the server: no answer within 20 ms");
        assert_eq!(error.fault, Fault::Unanswered);
        assert_eq!(
            words(
                &std::io::ErrorKind::TimedOut.into(),
                Duration::from_secs(10)
            ),
            "no answer within 10 s"
        );
    }
}
