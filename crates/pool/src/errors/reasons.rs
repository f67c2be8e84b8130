//! Reasons: every pin, refusal and close has one, with a name for counters and words for people.
//!
//! A client that is refused or cut off gets an error that says whose doing it was, what limit or
//! event caused it, and what to do; the same reason is counted. Invariant: no string is made up at
//! the place of use; what varies (a limit, a time, the server's words) is a parameter here.

use crate::limits::addresses::Met;
use crate::scheduler::lane::LaneName;
use session::own_commands::OWN_COMMANDS_MAX;
pub(crate) use session::pins::PinReason;
use session::prepared::Full;
use std::fmt;
use std::time::Duration;
use wire::errors::{self, ErrorCode};
use wire::wrong_protocol::WrongProtocol;

/// Why a statement or a client was refused, or cut off, with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The limit on clients is reached.
    Clients {
        /// The limit, over all groups.
        max: usize,
    },
    /// The descriptor table of this group is full.
    GroupFull {
        /// Most clients that it holds.
        max: usize,
    },
    /// The user has as many clients as it may.
    UserClients {
        /// The user.
        user: String,
        /// Its limit.
        max: usize,
    },
    /// The pool uses as much memory as it may, or the machine has hardly any left.
    Memory {
        /// Usage and limit.
        detail: String,
    },
    /// Its address, or its network, has as many connections as it may.
    AddressLimit(Met),
    /// The server is told clients' addresses, and clients of too many are connected.
    ClientAddresses {
        /// Most clients that a group takes.
        max: usize,
    },
    /// Too many passwords wait to be checked already.
    PasswordChecks {
        /// Statements waiting in that queue.
        waiting: usize,
    },
    /// Too many statements wait already.
    LaneFull {
        /// Queue in which it would have waited.
        lane: LaneName,
        /// Statements waiting in this group.
        waiting: usize,
    },
    /// The waiting statements hold too many bytes already.
    LaneBytes {
        /// Queue in which it would have waited.
        lane: LaneName,
        /// Bytes of those that wait in this group.
        bytes: usize,
        /// Bytes of this one.
        len: usize,
    },
    /// Too many statements of the user wait already.
    UserLaneFull {
        /// The user.
        user: String,
        /// Queue in which it would have waited.
        lane: LaneName,
        /// Waiting statements of the user, in all groups.
        waiting: usize,
    },
    /// `onramp_priority` was to take a value that is none.
    Priority {
        /// The value.
        value: String,
    },
    /// The statement ran for longer than its user's statements may.
    StatementTime {
        /// The limit.
        max: Duration,
    },
    /// The transaction was open for longer than its user's may be.
    TransactionTime {
        /// The limit.
        max: Duration,
    },
    /// The client kept a backend and sent nothing for longer than its user's may.
    KeptIdle {
        /// The limit.
        max: Duration,
    },
    /// Clients of the account keep as many backends as they may.
    KeptBackends {
        /// The limit.
        max: usize,
        /// True if that is known only behind the statement.
        has_run: bool,
    },
    /// An administrator's rule rejects statements of its digest.
    RejectedDigest {
        /// The digest.
        digest: u64,
        /// The administrator's message, which may be empty.
        message: String,
    },
    /// As many statements of its digest run or wait as an administrator's rule allows.
    DigestLimit {
        /// The digest.
        digest: u64,
        /// The limit.
        max: usize,
    },
    /// The statement waited too long for a backend.
    WaitedTooLong {
        /// Queue in which it waited.
        lane: LaneName,
        /// Statements in front of its lane.
        ahead: usize,
        /// Time for which it waited.
        waited: Duration,
        /// State of the backends, and the last failure to get another one.
        detail: String,
    },
    /// The server has been away for long enough not to be waited for.
    ServerDown {
        /// For how long.
        lasted: Duration,
        /// Why the last dial failed.
        why: String,
    },
    /// The pool is shutting down.
    Draining,
    /// The command is none that a pool can serve.
    Command {
        /// Its first byte.
        byte: u8,
    },
    /// A KILL in a form in which nobody can tell who is meant before the server does.
    Kill,
    /// KILL names a backend of the pool.
    KillBackend,
    /// KILL could not be carried to the server.
    KillFailed(String),
    /// The statement was ended by KILL before it was sent.
    Interrupted,
    /// Conditions or counts of the previous statement can no longer be read.
    PreviousGone,
    /// The pool has sent too many commands of its own for the statement.
    OwnCommands,
    /// The statement is longer than the server takes.
    TooLong {
        /// Bytes of the statement, as far as known.
        len: usize,
        /// The most that is taken.
        max: usize,
    },
    /// Unfinished command larger than the pool may hold of it.
    Input {
        /// Bytes of it, held or announced.
        len: usize,
        /// Limit that it exceeds.
        limit: InputLimit,
    },
    /// Packets came out of order.
    OutOfOrder {
        /// The number that had to come.
        expected: u8,
        /// The number that came.
        got: u8,
    },
    /// A packet is not what the protocol calls for.
    Malformed(String),
    /// The client speaks another protocol where its login must come.
    WrongProtocol(WrongProtocol),
    /// The PROXY header that has to come first has not, or is none.
    ProxyHeader(String),
    /// The handshake of TLS has failed.
    Tls(String),
    /// The client logs in in clear, and has to use TLS.
    InsecureTransport,
    /// The client took too long to log in or to take its reply.
    TooSlow(&'static str),
    /// The backend was lost while it ran the client's statement or kept its session.
    BackendLost(String),
    /// The server with the client's transaction is written to no more; another one is.
    TransactionLost,
    /// The server broke the protocol while it ran the client's statement.
    ServerProtocol(String),
    /// A backend could not be brought into the client's session state.
    Restore(String),
    /// A statement ran behind a SET that was to restore its session and failed against all
    /// expectation.
    Unrestored(String),
    /// A prepared statement cannot be prepared, or executed.
    Prepared(Unprepared),
    /// The server refused our login with the backend account.
    BackendLogin(String),
    /// Refusal of the server to log the account in, with no backend of it left for a client that
    /// has run statements: it is closed.
    NoBackendLogin(String),
}

/// Limit on the bytes of unfinished commands that a client exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputLimit {
    /// One command may be so long.
    Command(usize),
    /// All commands of a user's clients may be so long.
    User {
        /// The user.
        user: String,
        /// Its limit.
        max: usize,
    },
    /// There was no room for the rest of it.
    NoRoom {
        /// Time for which it has waited for that.
        waited: Duration,
    },
    /// All memory is in use, and the client holds more than its share.
    Share {
        /// The share.
        max: usize,
    },
    /// It took room that others waited for, and did not go on.
    Stalled,
}

/// Why a prepared statement cannot be prepared, or executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unprepared {
    /// Its long data was more than the pool keeps.
    LongData,
    /// Every statement that the client's backend may have is held by a cursor.
    Full {
        /// Largest number allowed.
        max: usize,
    },
    /// The client has as many statements as it may.
    Held {
        /// Their number.
        count: usize,
    },
    /// The texts of the client's statements are as long as they may be.
    HeldBytes {
        /// Their bytes.
        bytes: usize,
    },
    /// No backend can be brought into the session in which it was prepared.
    NoSession,
}

impl From<Full> for Unprepared {
    fn from(full: Full) -> Unprepared {
        match full {
            Full::Count { count } => Unprepared::Held { count },
            Full::Bytes { bytes } => Unprepared::HeldBytes { bytes },
        }
    }
}

impl fmt::Display for InputLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputLimit::Command(max) => write!(
                f,
                "a command may have {max}, at most half of 'input_bytes_max'; raise that"
            ),
            InputLimit::User { user, max } => write!(
                f,
                "the clients of user '{user}' may have {max} together ('input_bytes_max' of the \
                 user); send fewer long commands at once"
            ),
            InputLimit::NoRoom { waited } => write!(
                f,
                "others hold all of 'input_bytes_max', or what long commands may have of the \
                 backends, and none became free in {} ms; send it again later",
                waited.as_millis()
            ),
            InputLimit::Share { max } => write!(
                f,
                "the connection holds so much of the pool's memory, all of which is in use \
                 ('memory_bytes_max'; a connection's share is {max}): prepared statements, their \
                 texts and data, warnings, variables; hold less, or raise that"
            ),
            InputLimit::Stalled => f.write_str(
                "it did not come on while others waited for room ('input_bytes_max'); send it \
                 again, without a pause",
            ),
        }
    }
}

impl fmt::Display for Unprepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unprepared::LongData => f.write_str(
                "onramp: the long data of this statement's parameters is longer than \
                 'max_allowed_packet', or too much of it waits in the pool; nothing was executed",
            ),
            Unprepared::Full { max } => write!(
                f,
                "Can't create more than max_prepared_stmt_count statements (current value: {max}; \
                 onramp: all of them have open cursors; close one, or raise prepared_max)"
            ),
            Unprepared::Held { count } => write!(
                f,
                "Can't create more than max_prepared_stmt_count statements (current value: \
                 {count}; onramp: this connection alone has so many; close those that it executes \
                 no more)"
            ),
            Unprepared::HeldBytes { bytes } => write!(
                f,
                "Can't create more than max_prepared_stmt_count statements (onramp: the texts of \
                 this connection's statements have {bytes} bytes; close those that it executes no \
                 more)"
            ),
            Unprepared::NoSession => f.write_str(
                "onramp: the statement was prepared with a default schema, which the session has \
                 lost since; nothing was executed, prepare it again",
            ),
        }
    }
}

/// Commands that servers have and a pool does not pass on: COM_SHUTDOWN, COM_BINLOG_DUMP,
/// COM_TABLE_DUMP, COM_REGISTER_SLAVE, COM_BINLOG_DUMP_GTID, COM_CLONE,
/// COM_SUBSCRIBE_GROUP_REPLICATION_STREAM.
const NOT_PASSED_ON: [u8; 7] = [0x08, 0x12, 0x13, 0x15, 0x1E, 0x20, 0x21];

impl Refusal {
    /// All names for counters.
    pub(crate) const NAMES: [&'static str; 47] = [
        "clients",
        "group-full",
        "user-clients",
        "memory",
        "client-addresses",
        "password-checks",
        "lane-full",
        "lane-bytes",
        "user-lane-full",
        "waited-too-long",
        "priority",
        "statement-time",
        "transaction-time",
        "kept-idle",
        "kept-backends",
        "rejected-digest",
        "digest-limit",
        "server-down",
        "draining",
        "command",
        "kill",
        "previous-gone",
        "own-commands",
        "too-long",
        "input-stalled",
        "input-full",
        "out-of-order",
        "malformed",
        "proxy-header",
        "tls",
        "tls-handshake",
        "insecure-transport",
        "too-slow",
        "backend-lost",
        "transaction-lost",
        "server-protocol",
        "restore",
        "unrestored",
        "backend-login",
        "prepared",
        "kill-backend",
        "kill-failed",
        "interrupted",
        "address-clients",
        "address-logins",
        "network-clients",
        "network-logins",
    ];

    /// A short stable name, for counters: one of [`Refusal::NAMES`].
    #[must_use]
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Refusal::Clients { .. } => "clients",
            Refusal::GroupFull { .. } => "group-full",
            Refusal::UserClients { .. } => "user-clients",
            Refusal::Memory { .. } => "memory",
            Refusal::AddressLimit(met) => met.name(),
            Refusal::ClientAddresses { .. } => "client-addresses",
            Refusal::PasswordChecks { .. } => "password-checks",
            Refusal::LaneFull { .. } => "lane-full",
            Refusal::LaneBytes { .. } => "lane-bytes",
            Refusal::UserLaneFull { .. } => "user-lane-full",
            Refusal::WaitedTooLong { .. } => "waited-too-long",
            Refusal::Priority { .. } => "priority",
            Refusal::StatementTime { .. } => "statement-time",
            Refusal::TransactionTime { .. } => "transaction-time",
            Refusal::KeptIdle { .. } => "kept-idle",
            Refusal::KeptBackends { .. } => "kept-backends",
            Refusal::RejectedDigest { .. } => "rejected-digest",
            Refusal::DigestLimit { .. } => "digest-limit",
            Refusal::ServerDown { .. } => "server-down",
            Refusal::Draining => "draining",
            Refusal::Command { .. } => "command",
            Refusal::Kill => "kill",
            Refusal::PreviousGone => "previous-gone",
            Refusal::OwnCommands => "own-commands",
            Refusal::TooLong { .. } => "too-long",
            Refusal::Input {
                limit: InputLimit::Stalled,
                ..
            } => "input-stalled",
            Refusal::Input { .. } => "input-full",
            Refusal::OutOfOrder { .. } => "out-of-order",
            Refusal::Malformed(_) => "malformed",
            Refusal::WrongProtocol(wrong) => match wrong {
                WrongProtocol::ProxyV1 | WrongProtocol::ProxyV2 => "proxy-header",
                WrongProtocol::ClientHello | WrongProtocol::SslRequest => "tls",
            },
            Refusal::ProxyHeader(_) => "proxy-header",
            Refusal::Tls(_) => "tls-handshake",
            Refusal::InsecureTransport => "insecure-transport",
            Refusal::TooSlow(_) => "too-slow",
            Refusal::BackendLost(_) => "backend-lost",
            Refusal::TransactionLost => "transaction-lost",
            Refusal::ServerProtocol(_) => "server-protocol",
            Refusal::Restore(_) => "restore",
            Refusal::Unrestored(_) => "unrestored",
            Refusal::BackendLogin(_) | Refusal::NoBackendLogin(_) => "backend-login",
            Refusal::Prepared(_) => "prepared",
            Refusal::KillBackend => "kill-backend",
            Refusal::KillFailed(_) => "kill-failed",
            Refusal::Interrupted => "interrupted",
        }
    }

    /// True if a limit is met or the server is away: whoever is on call wants to hear of it.
    pub(crate) fn is_of_limit(&self) -> bool {
        matches!(
            self,
            Refusal::UserClients { .. }
                | Refusal::Memory { .. }
                | Refusal::ClientAddresses { .. }
                | Refusal::LaneFull { .. }
                | Refusal::LaneBytes { .. }
                | Refusal::UserLaneFull { .. }
                | Refusal::WaitedTooLong { .. }
                | Refusal::RejectedDigest { .. }
                | Refusal::DigestLimit { .. }
                | Refusal::ServerDown { .. }
                | Refusal::TooLong { .. }
                | Refusal::Input { .. }
                | Refusal::Restore(_)
                | Refusal::Prepared(_)
                | Refusal::BackendLogin(_)
                | Refusal::NoBackendLogin(_)
        )
    }

    /// The error number that drivers know.
    #[must_use]
    pub(crate) fn code(&self) -> ErrorCode {
        match self {
            Refusal::Clients { .. }
            | Refusal::GroupFull { .. }
            | Refusal::AddressLimit(_)
            | Refusal::ClientAddresses { .. }
            | Refusal::PasswordChecks { .. } => errors::CON_COUNT,
            Refusal::UserClients { .. } => errors::TOO_MANY_USER_CONNECTIONS,
            Refusal::Memory { .. } => errors::OUT_OF_RESOURCES,
            Refusal::LaneFull { .. } => errors::LANE_FULL,
            Refusal::LaneBytes { .. } => errors::LANE_BYTES,
            Refusal::UserLaneFull { .. } => errors::USER_LANE_FULL,
            Refusal::WaitedTooLong { .. } => errors::WAITED_TOO_LONG,
            Refusal::ServerDown { .. } => errors::SERVER_DOWN,
            Refusal::Unrestored(_) => errors::UNRESTORED,
            Refusal::Priority { .. } => errors::WRONG_VALUE_FOR_VAR,
            Refusal::StatementTime { .. } => errors::QUERY_TIMEOUT,
            Refusal::TransactionTime { .. } => errors::TRANSACTION_TIMEOUT,
            Refusal::KeptIdle { .. } => errors::KEPT_IDLE,
            Refusal::KeptBackends { .. } => errors::KEPT_BACKENDS,
            Refusal::RejectedDigest { .. } => errors::REJECTED_DIGEST,
            Refusal::DigestLimit { .. } => errors::DIGEST_LIMIT,
            Refusal::Draining => errors::SERVER_SHUTDOWN,
            Refusal::Command { .. } => errors::UNKNOWN_COM,
            Refusal::Interrupted => errors::QUERY_INTERRUPTED,
            Refusal::Kill | Refusal::KillBackend | Refusal::PreviousGone => errors::NOT_SUPPORTED,
            Refusal::TooLong { .. } | Refusal::Input { .. } => errors::NET_PACKET_TOO_LARGE,
            Refusal::OutOfOrder { .. } => errors::NET_PACKETS_OUT_OF_ORDER,
            Refusal::Malformed(_) => errors::MALFORMED_PACKET,
            Refusal::TooSlow(_)
            | Refusal::WrongProtocol(_)
            | Refusal::ProxyHeader(_)
            | Refusal::Tls(_) => errors::HANDSHAKE,
            Refusal::InsecureTransport => errors::SECURE_TRANSPORT_REQUIRED,
            Refusal::BackendLost(_) => errors::NET_READ,
            Refusal::TransactionLost => errors::LOCK_DEADLOCK,
            Refusal::ServerProtocol(_) => errors::SERVER_PROTOCOL,
            Refusal::Restore(_) | Refusal::KillFailed(_) | Refusal::OwnCommands => {
                errors::UNKNOWN_ERROR
            }
            Refusal::Prepared(
                Unprepared::Full { .. } | Unprepared::Held { .. } | Unprepared::HeldBytes { .. },
            ) => errors::PREPARED_COUNT,
            Refusal::Prepared(_) => errors::UNKNOWN_ERROR,
            Refusal::BackendLogin(_) => errors::NO_FOREIGN_SERVER,
            Refusal::NoBackendLogin(_) => errors::CONNECT_AGAIN,
        }
    }
}

const KILL: &str = "onramp: expected KILL [CONNECTION | QUERY] and the number of a client, alone \
     in its text; any other KILL could hit a shared connection: connect to the server itself";
const KILL_BACKEND: &str = "onramp: the number is a connection of the pool's, which many \
     clients share; KILL the client's own number, its CONNECTION_ID()";

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::LaneFull { .. }
            | Refusal::LaneBytes { .. }
            | Refusal::UserLaneFull { .. }
            | Refusal::ServerDown { .. }
            | Refusal::WaitedTooLong { .. } => self.fmt_wait(f),
            Refusal::Clients { .. }
            | Refusal::GroupFull { .. }
            | Refusal::AddressLimit(_)
            | Refusal::ClientAddresses { .. }
            | Refusal::UserClients { .. }
            | Refusal::Memory { .. }
            | Refusal::PasswordChecks { .. }
            | Refusal::StatementTime { .. }
            | Refusal::TransactionTime { .. }
            | Refusal::KeptIdle { .. }
            | Refusal::KeptBackends { .. }
            | Refusal::RejectedDigest { .. }
            | Refusal::DigestLimit { .. }
            | Refusal::TooLong { .. }
            | Refusal::Input { .. }
            | Refusal::TooSlow(_)
            | Refusal::Priority { .. } => self.fmt_limit(f),
            Refusal::Draining => f.write_str("Server shutdown in progress (onramp is draining)"),
            Refusal::Command { byte } if NOT_PASSED_ON.contains(byte) => write!(
                f,
                "Unknown command (onramp: command 0x{byte:02x} cannot go through a pool; connect \
                 to the server itself)"
            ),
            // As a server says of a command that it does not have.
            Refusal::Command { .. } => f.write_str("Unknown command"),
            Refusal::Kill => f.write_str(KILL),
            Refusal::KillBackend => f.write_str(KILL_BACKEND),
            Refusal::KillFailed(why) => write!(f, "onramp: KILL did not reach the server: {why}"),
            Refusal::Interrupted => f.write_str("Query execution was interrupted"),
            Refusal::PreviousGone => f.write_str(
                "onramp: what the previous statement left is gone; run both statements again, in \
                 one transaction or one text",
            ),
            Refusal::OwnCommands => write!(
                f,
                "onramp: {OWN_COMMANDS_MAX} commands of the pool's own did not bring a backend \
                 into this session's state, which is a bug in onramp; the statement was not \
                 executed, and the connection is closed"
            ),
            Refusal::OutOfOrder { expected, got } => write!(
                f,
                "Got packets out of order (onramp: expected packet number {expected} from the \
                 client, got {got})"
            ),
            Refusal::Malformed(what) => write!(f, "onramp: the client sent a {what}"),
            Refusal::Tls(why) => write!(f, "onramp: the TLS handshake failed: {why}"),
            // The servers' own words.
            Refusal::InsecureTransport => f.write_str(errors::SECURE_TRANSPORT_WORDS),
            Refusal::WrongProtocol(wrong) => write!(
                f,
                "Bad handshake (onramp: expected a login packet, got {})",
                words_of(*wrong)
            ),
            Refusal::ProxyHeader(why) => write!(
                f,
                "Bad handshake (onramp: expected a PROXY header from this address, which is in \
                 proxy_protocol_networks: {why})"
            ),
            Refusal::BackendLost(why) => write!(
                f,
                "Lost connection to MySQL server during query (onramp: {why}; whether the \
                 statement took effect is unknown)"
            ),
            Refusal::TransactionLost => f.write_str(
                "onramp: the transaction was lost with its server and has no effect; try \
                 restarting transaction",
            ),
            Refusal::ServerProtocol(why) => write!(
                f,
                "onramp: {why}; the pool has closed its connection, and whether the statement \
                 took effect is unknown; look who answers at the server's address"
            ),
            Refusal::Restore(why) => write!(
                f,
                "onramp: no backend could be brought into this session's state: {why}; the \
                 statement was not executed"
            ),
            Refusal::Unrestored(why) => write!(
                f,
                "onramp: the server no longer takes a value of this session that it took before \
                 ({why}); the statement's result was dropped, and it may have taken effect under \
                 other session variables: look before you run it again"
            ),
            Refusal::Prepared(why) => why.fmt(f),
            Refusal::BackendLogin(why) => {
                write!(f, "onramp: the server refused the pool's login: {why}")
            }
            Refusal::NoBackendLogin(why) => write!(
                f,
                "onramp: the connection is closed, connect again: the server refused the pool's \
                 login: {why}"
            ),
        }
    }
}

/// Description of what came in place of a login, and what to do about it.
fn words_of(wrong: WrongProtocol) -> &'static str {
    match wrong {
        WrongProtocol::ProxyV1 => {
            "a header of the PROXY protocol, version 1, which the pool takes once, from \
             proxy_protocol_networks only: name the proxy's address there, or switch it off in the \
             proxy in front (HAProxy: take send-proxy from the server's line)"
        }
        WrongProtocol::ProxyV2 => {
            "a header of the PROXY protocol, version 2, which the pool takes once, from \
             proxy_protocol_networks only: name the proxy's address there, or switch it off in the \
             proxy in front (HAProxy: take send-proxy-v2 from the server's line)"
        }
        WrongProtocol::ClientHello => {
            "a ClientHello of TLS in front of the greeting: TLS begins behind a request in the \
             protocol (with [tls] cert and key), so let the client, or the proxy in front, connect \
             without TLS of its own (HAProxy: take ssl from the server's line)"
        }
        WrongProtocol::SslRequest => {
            "a request for TLS, which the pool does not offer: name a certificate ([tls] cert and \
             key), or let the client connect without (--ssl-mode=DISABLED, MariaDB --skip-ssl, \
             JDBC sslMode=disable)"
        }
    }
}

impl Refusal {
    /// The words of a refusal to wait, or to wait on.
    fn fmt_wait(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::LaneFull { lane, waiting } => write!(
                f,
                "onramp: {waiting} statements wait for a backend already (waiting_max; this one \
                 would be number {} and wait in the {} lane; waited 0 ms); nothing was executed, \
                 try again later",
                waiting + 1,
                lane.name()
            ),
            Refusal::LaneBytes { lane, bytes, len } => write!(
                f,
                "onramp: the statements that wait for a backend hold {bytes} bytes already \
                 (waiting_bytes_max; this one has {len} and would wait in the {} lane; waited \
                 0 ms); nothing was executed, try again later",
                lane.name()
            ),
            Refusal::UserLaneFull {
                user,
                lane,
                waiting,
            } => write!(
                f,
                "onramp: {waiting} statements of user '{user}' wait for a backend already \
                 (waiting_max of the user; this one would be number {} and wait in the {} lane; \
                 waited 0 ms); nothing was executed, try again later",
                waiting + 1,
                lane.name()
            ),
            Refusal::WaitedTooLong {
                lane,
                ahead,
                waited,
                detail,
            } => write!(
                f,
                "onramp: the statement waited {} ms for a backend, first in the {} lane with \
                 {ahead} in front of that lane, and was not executed; try again later ({detail})",
                waited.as_millis(),
                lane.name()
            ),
            Refusal::ServerDown { lasted, why } => write!(
                f,
                "onramp: the server cannot be reached, for {} ms now (server_down_fail_ms: it is \
                 not waited for): {why}; nothing was executed, try again later",
                lasted.as_millis()
            ),
            _ => Ok(()),
        }
    }

    /// The words of a limit that was met.
    fn fmt_limit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Clients { max } => {
                write!(
                    f,
                    "Too many connections (onramp: clients_max is {max}; raise it)"
                )
            }
            Refusal::GroupFull { max } => write!(
                f,
                "Too many connections (onramp: the descriptor table of this group holds {max} \
                 clients; raise the descriptor limit, clients_max or groups)"
            ),
            Refusal::AddressLimit(met) => write!(f, "Too many connections (onramp: {met})"),
            Refusal::ClientAddresses { max } => write!(
                f,
                "Too many connections (onramp: clients of {max} addresses are connected to this \
                 group, and backend.proxy_protocol gives each address backends of its own)"
            ),
            Refusal::UserClients { user, max } => write!(
                f,
                "User {user} already has more than 'max_user_connections' active connections \
                 (onramp: clients_max of this user is {max})"
            ),
            Refusal::PasswordChecks { waiting } => write!(
                f,
                "Too many connections (onramp: {waiting} passwords wait to be decrypted already; \
                 this one was not looked at; try again)"
            ),
            Refusal::Memory { detail } => write!(
                f,
                "Out of memory; onramp takes no more clients now ({detail}); try again later"
            ),
            Refusal::Priority { value } => write!(
                f,
                "Variable 'onramp_priority' can't be set to the value of '{value}' (onramp: \
                 expected 'high', 'low', 'auto' or DEFAULT, in a SET of its own)"
            ),
            Refusal::StatementTime { max } => write!(
                f,
                "Query execution was interrupted, maximum statement execution time exceeded \
                 (onramp: statement_ms_max is {}; whether the statement took effect is unknown)",
                max.as_millis()
            ),
            Refusal::TransactionTime { max } => write!(
                f,
                "onramp: the transaction was open for longer than transaction_ms_max ({}) and is \
                 rolled back; connect again",
                max.as_millis()
            ),
            Refusal::KeptIdle { max } => write!(
                f,
                "onramp: the connection kept a backend for its transaction or pin and sent nothing \
                 for longer than kept_idle_s_max ({} s); what was uncommitted is rolled back; \
                 connect again, and commit or let go sooner",
                max.as_secs()
            ),
            Refusal::KeptBackends { max, has_run } => write!(
                f,
                "onramp: clients of this account keep {max} backends for transactions or pins \
                 already (account_kept_backends_max); {}",
                match has_run {
                    true => "what is uncommitted is rolled back; connect again later",
                    false => "nothing was executed, try again later",
                }
            ),
            Refusal::RejectedDigest { digest, message } => {
                let colon = if message.is_empty() { "" } else { ": " };
                write!(
                    f,
                    "onramp: an administrator rejects this statement (REJECT DIGEST \
                     '{digest:016x}'){colon}{message}; nothing was executed"
                )
            }
            Refusal::DigestLimit { digest, max } => write!(
                f,
                "onramp: {max} such statements run or wait already (LIMIT DIGEST '{digest:016x}' \
                 TO {max}); nothing was executed, try again later"
            ),
            Refusal::TooLong { len, max } => write!(
                f,
                "Got a packet bigger than 'max_allowed_packet' bytes ({len}, and {max} are taken \
                 at most)"
            ),
            Refusal::Input { len, limit } => write!(
                f,
                "Got a packet bigger than 'max_allowed_packet' bytes (onramp: the pool has no room \
                 for a command of {len} bytes or more: {limit}; nothing was executed)"
            ),
            Refusal::TooSlow(what) => write!(f, "onramp: {what}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
