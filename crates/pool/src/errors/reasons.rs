//! Reasons: every pin, refusal and close has one, with a name for counters and words for people.
//!
//! A client that is refused or cut off gets an error that says whose doing it was, what limit or
//! event caused it, and what to do; the same reason is counted. Each stands in one row with its
//! words, its name and its number. Invariant: no string is made up at the place of use; what varies
//! (a limit, a time, the server's words) is a parameter here.

use crate::limits::addresses::Met;
use crate::scheduler::priority::ReadFrom;
use crate::scheduler::queue::QueueName;
use session::own_commands::OWN_COMMANDS_MAX;
pub(crate) use session::pins::PinReason;
use session::prepared::Full;
use std::collections::BTreeSet;
use std::time::Duration;
use thiserror::Error;
use wire::errors::{self, ErrorCode};
use wire::wrong_protocol::WrongProtocol;

/// Makes [`Refusal`] of its rows: words, values, name for counters, and number for drivers.
macro_rules! refusals {
    ($($(#[$about:meta])* $variant:ident $({ $($field:ident: $type:ty),* })? $(($of:ty))?
        $name:literal $code:ident;)*) => {
        /// Reason why a statement or a client was refused, or cut off, with an error.
        #[derive(Clone, Debug, PartialEq, Eq, Error)]
        pub(crate) enum Refusal {
            $($(#[$about])* $variant $({ $($field: $type),* })? $(($of))?,)*
        }

        impl Refusal {
            /// All names for counters.
            pub(crate) fn names() -> BTreeSet<&'static str> {
                let others = Met::NAMES.into_iter().chain([TLS, INPUT_STALLED]);
                [$($name),*].into_iter().filter(|name| !name.is_empty()).chain(others).collect()
            }

            /// A short stable name, for counters: one of [`Refusal::names`].
            #[must_use]
            pub(crate) fn name(&self) -> &'static str {
                if let Some(name) = self.name_by_value() {
                    return name;
                }
                match self {
                    $(Refusal::$variant { .. } => $name,)*
                }
            }

            /// The error number that drivers know.
            #[must_use]
            pub(crate) fn code(&self) -> ErrorCode {
                if let Refusal::Prepared(Unprepared::LongData | Unprepared::NoSession) = self {
                    return errors::UNKNOWN_ERROR;
                }
                match self {
                    $(Refusal::$variant { .. } => errors::$code,)*
                }
            }
        }
    };
}

refusals! {
    #[error("Too many connections (onramp: clients_max is {max}; raise it)")]
    Clients { max: usize } "clients" CON_COUNT;
    #[error(
        "Too many connections (onramp: the descriptor table of this group holds {max} clients; \
         raise the descriptor limit, clients_max or groups)"
    )]
    GroupFull { max: usize } "group-full" CON_COUNT;
    #[error(
        "User {user} already has more than 'max_user_connections' active connections (onramp: \
         clients_max of this user is {max})"
    )]
    UserClients { user: String, max: usize } "user-clients" TOO_MANY_USER_CONNECTIONS;
    /// The pool uses as much memory as it may, or the machine has hardly any left.
    #[error("Out of memory; onramp takes no more clients now ({detail}); try again later")]
    Memory { detail: String } "memory" OUT_OF_RESOURCES;
    #[error("Too many connections (onramp: {0})")]
    AddressLimit(Met) "" CON_COUNT;
    #[error(
        "Too many connections (onramp: clients of {max} addresses are connected to this group, and \
         backend.proxy_protocol gives each address backends of its own)"
    )]
    ClientAddresses { max: usize } "client-addresses" CON_COUNT;
    #[error(
        "Too many connections (onramp: {waiting} passwords wait to be decrypted already; this one \
         was not looked at; try again)"
    )]
    PasswordChecks { waiting: usize } "password-checks" CON_COUNT;
    #[error(
        "onramp: {waiting} statements wait for a backend already (waiting_max; this one would be \
         number {} and wait in the {} queue; waited 0 ms); nothing was executed, try again later",
        .waiting + 1,
        .queue.name()
    )]
    QueueFull { queue: QueueName, waiting: usize } "queue-full" QUEUE_FULL;
    #[error(
        "onramp: the statements that wait for a backend hold {bytes} bytes already \
         (waiting_bytes_max; this one has {len} and would wait in the {} queue; waited 0 ms); \
         nothing was executed, try again later",
        .queue.name()
    )]
    QueueBytes { queue: QueueName, bytes: usize, len: usize } "queue-bytes" QUEUE_BYTES;
    /// Too many statements of the user wait already, in all groups.
    #[error(
        "onramp: {waiting} statements of user '{user}' wait for a backend already (waiting_max of \
         the user; this one would be number {} and wait in the {} queue; waited 0 ms); nothing was \
         executed, try again later",
        .waiting + 1,
        .queue.name()
    )]
    UserQueueFull { user: String, queue: QueueName, waiting: usize }
        "user-queue-full" USER_QUEUE_FULL;
    #[error(
        "Variable '{name}' can't be set to the value of '{value}' (onramp: expected {} or DEFAULT, \
         in a SET of its own)",
        expected_of(name)
    )]
    SessionSetting { name: &'static str, value: String } "session-setting" WRONG_VALUE_FOR_VAR;
    #[error(
        "Cannot execute statement in a READ ONLY transaction (onramp: the transaction runs on a \
         server that is only read; run the statement outside of it, or begin behind SET \
         onramp_read_from = 'writer')"
    )]
    NotOnReader "not-on-reader" IN_READ_ONLY_TRANSACTION;
    #[error(
        "Query execution was interrupted, maximum statement execution time exceeded (onramp: \
         statement_ms_max is {}; whether the statement took effect is unknown)",
        .max.as_millis()
    )]
    StatementTime { max: Duration } "statement-time" QUERY_TIMEOUT;
    #[error(
        "onramp: the transaction was open for longer than transaction_ms_max ({}) and is rolled \
         back; connect again",
        .max.as_millis()
    )]
    TransactionTime { max: Duration } "transaction-time" TRANSACTION_TIMEOUT;
    #[error(
        "onramp: the connection kept a backend for its transaction or pin and sent nothing for \
         longer than kept_idle_s_max ({} s); what was uncommitted is rolled back; connect again, \
         and commit or let go sooner",
        .max.as_secs()
    )]
    KeptIdle { max: Duration } "kept-idle" KEPT_IDLE;
    /// Clients of the account keep as many backends as they may; `has_run`: that is known only
    /// behind the statement.
    #[error(
        "onramp: clients of this account keep {max} backends for transactions or pins already \
         (account_kept_backends_max); {}",
        match .has_run {
            true => "what is uncommitted is rolled back; connect again later",
            false => "nothing was executed, try again later",
        }
    )]
    KeptBackends { max: usize, has_run: bool } "kept-backends" KEPT_BACKENDS;
    /// An administrator's rule rejects statements of its digest; the message may be empty.
    #[error(
        "onramp: an administrator rejects this statement (REJECT DIGEST '{digest:016x}'){}{message}\
         ; nothing was executed",
        if .message.is_empty() { "" } else { ": " }
    )]
    RejectedDigest { digest: u64, message: String } "rejected-digest" REJECTED_DIGEST;
    #[error(
        "onramp: {max} such statements run or wait already (LIMIT DIGEST '{digest:016x}' TO \
         {max}); nothing was executed, try again later"
    )]
    DigestLimit { digest: u64, max: usize } "digest-limit" DIGEST_LIMIT;
    /// The statement waited too long for a backend: its queue, statements in front of that, and the
    /// state of the backends with the last failure to get another one.
    #[error(
        "onramp: the statement waited {} ms for a backend, first in the {} queue with {ahead} in \
         front of that queue, and was not executed; try again later ({detail})",
        .waited.as_millis(),
        .queue.name()
    )]
    WaitedTooLong { queue: QueueName, ahead: usize, waited: Duration, detail: String }
        "waited-too-long" WAITED_TOO_LONG;
    /// The server has been away for long enough not to be waited for; why the last dial failed.
    #[error(
        "onramp: the server cannot be reached, for {} ms now (server_down_fail_ms: it is not \
         waited for): {why}; nothing was executed, try again later",
        .lasted.as_millis()
    )]
    ServerDown { lasted: Duration, why: String } "server-down" SERVER_DOWN;
    #[error("Server shutdown in progress (onramp is draining)")]
    Draining "draining" SERVER_SHUTDOWN;
    #[error("Unknown command{}", why_not_passed_on(*.byte))]
    Command { byte: u8 } "command" UNKNOWN_COM;
    #[error(
        "onramp: expected KILL [CONNECTION | QUERY] and the number of a client, alone in its text; \
         any other KILL could hit a shared connection: connect to the server itself"
    )]
    Kill "kill" NOT_SUPPORTED;
    #[error(
        "onramp: the number is a connection of the pool's, which many clients share; KILL the \
         client's own number, its CONNECTION_ID()"
    )]
    KillBackend "kill-backend" NOT_SUPPORTED;
    #[error("onramp: KILL did not reach the server: {0}")]
    KillFailed(String) "kill-failed" UNKNOWN_ERROR;
    #[error("Query execution was interrupted")]
    Interrupted "interrupted" QUERY_INTERRUPTED;
    #[error(
        "onramp: what the previous statement left is gone; run both statements again, in one \
         transaction"
    )]
    PreviousGone "previous-gone" NOT_SUPPORTED;
    #[error(
        "onramp: {OWN_COMMANDS_MAX} commands of the pool's own did not bring a backend into this \
         session's state, which is a bug in onramp; the statement was not executed, and the \
         connection is closed"
    )]
    OwnCommands "own-commands" UNKNOWN_ERROR;
    #[error(
        "Got a packet bigger than 'max_allowed_packet' bytes ({len}, and {max} are taken at most)"
    )]
    TooLong { len: usize, max: usize } "too-long" NET_PACKET_TOO_LARGE;
    /// Unfinished command larger than the pool may hold of it: its bytes, held or announced.
    #[error(
        "Got a packet bigger than 'max_allowed_packet' bytes (onramp: the pool has no room for a \
         command of {len} bytes or more: {limit}; nothing was executed)"
    )]
    Input { len: usize, limit: InputLimit } "input-full" NET_PACKET_TOO_LARGE;
    #[error(
        "Got packets out of order (onramp: expected packet number {expected} from the client, got \
         {got})"
    )]
    OutOfOrder { expected: u8, got: u8 } "out-of-order" NET_PACKETS_OUT_OF_ORDER;
    #[error("onramp: the client sent a {0}")]
    Malformed(String) "malformed" MALFORMED_PACKET;
    /// The client speaks another protocol where its login must come.
    #[error("Bad handshake (onramp: expected a login packet, got {})", words_of(*.wrong))]
    WrongProtocol { wrong: WrongProtocol } "proxy-header" HANDSHAKE;
    #[error(
        "Bad handshake (onramp: expected a PROXY header from this address, which is in \
         proxy_protocol_networks: {0})"
    )]
    ProxyHeader(String) "proxy-header" HANDSHAKE;
    #[error("onramp: the TLS handshake failed: {0}")]
    Tls(String) "tls-handshake" HANDSHAKE;
    /// The client logs in in clear, and has to use TLS: in the servers' own words.
    #[error("{}", errors::SECURE_TRANSPORT_WORDS)]
    InsecureTransport "insecure-transport" SECURE_TRANSPORT_REQUIRED;
    /// The client took too long to log in or to take its reply.
    #[error("onramp: {0}")]
    TooSlow(&'static str) "too-slow" HANDSHAKE;
    #[error(
        "Lost connection to MySQL server during query (onramp: {0}; whether the statement took \
         effect is unknown)"
    )]
    BackendLost(String) "backend-lost" NET_READ;
    /// The server with the client's transaction is written to no more; another one is.
    #[error(
        "onramp: the transaction was lost with its server and has no effect; try restarting \
         transaction"
    )]
    TransactionLost "transaction-lost" LOCK_DEADLOCK;
    #[error(
        "onramp: {0}; the pool has closed its connection, and whether the statement took effect is \
         unknown; look who answers at the server's address"
    )]
    ServerProtocol(String) "server-protocol" SERVER_PROTOCOL;
    #[error(
        "onramp: no backend could be brought into this session's state: {0}; the statement was not \
         executed"
    )]
    Restore(String) "restore" UNKNOWN_ERROR;
    /// A statement ran behind a SET that was to restore its session and failed against all
    /// expectation.
    #[error(
        "onramp: the server no longer takes a value of this session that it took before ({0}); the \
         statement's result was dropped, and it may have taken effect under other session \
         variables: look before you run it again"
    )]
    Unrestored(String) "unrestored" UNRESTORED;
    #[error("{0}")]
    Prepared(Unprepared) "prepared" PREPARED_COUNT;
    #[error("onramp: the server refused the pool's login: {0}")]
    BackendLogin(String) "backend-login" NO_FOREIGN_SERVER;
    /// Refusal of the server to log the account in, with no backend of it left for a client that
    /// has run statements: it is closed.
    #[error(
        "onramp: the connection is closed, connect again: the server refused the pool's login: {0}"
    )]
    NoBackendLogin(String) "backend-login" CONNECT_AGAIN;
}

/// Limit on the bytes of unfinished commands that a client exceeds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum InputLimit {
    #[error("a command may have {0}, at most half of 'input_bytes_max'; raise that")]
    Command(usize),
    #[error(
        "the clients of user '{user}' may have {max} together ('input_bytes_max' of the user); \
         send fewer long commands at once"
    )]
    User { user: String, max: usize },
    #[error(
        "others hold all of 'input_bytes_max', or what long commands may have of the backends, and \
         none became free in {} ms; send it again later",
        .waited.as_millis()
    )]
    NoRoom { waited: Duration },
    #[error(
        "the connection holds so much of the pool's memory, all of which is in use \
         ('memory_bytes_max'; a connection's share is {max}): prepared statements, their texts and \
         data, warnings, variables; hold less, or raise that"
    )]
    Share { max: usize },
    #[error(
        "it did not come on while others waited for room ('input_bytes_max'); send it again, \
         without a pause"
    )]
    Stalled,
}

/// Reason why a prepared statement cannot be prepared, or executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Unprepared {
    #[error(
        "onramp: the long data of this statement's parameters is longer than 'max_allowed_packet', \
         or too much of it waits in the pool; nothing was executed"
    )]
    LongData,
    /// Every statement that the client's backend may have is held by a cursor.
    #[error(
        "Can't create more than max_prepared_stmt_count statements (current value: {max}; onramp: \
         all of them have open cursors; close one, or raise prepared_max)"
    )]
    Full { max: usize },
    #[error(
        "Can't create more than max_prepared_stmt_count statements (current value: {count}; \
         onramp: this connection alone has so many; close those that it executes no more)"
    )]
    Held { count: usize },
    #[error(
        "Can't create more than max_prepared_stmt_count statements (onramp: the texts of this \
         connection's statements have {bytes} bytes; close those that it executes no more)"
    )]
    HeldBytes { bytes: usize },
    #[error(
        "onramp: the statement was prepared with a default schema, which the session has lost \
         since; nothing was executed, prepare it again"
    )]
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

/// Commands that servers have and a pool does not pass on: COM_SHUTDOWN, COM_BINLOG_DUMP,
/// COM_TABLE_DUMP, COM_REGISTER_SLAVE, COM_BINLOG_DUMP_GTID, COM_CLONE,
/// COM_SUBSCRIBE_GROUP_REPLICATION_STREAM.
const NOT_PASSED_ON: [u8; 7] = [0x08, 0x12, 0x13, 0x15, 0x1E, 0x20, 0x21];

/// Values of a setting of the session's, of the pool's own.
fn expected_of(name: &str) -> &'static str {
    match name == ReadFrom::NAME {
        true => "'writer', 'readers', 'comments'",
        false => "'high', 'low', 'auto'",
    }
}

/// The pool's words behind those that a server says of a command that it does not have.
fn why_not_passed_on(byte: u8) -> String {
    match NOT_PASSED_ON.contains(&byte) {
        true => format!(
            " (onramp: command 0x{byte:02x} cannot go through a pool; connect to the server itself)"
        ),
        false => String::new(),
    }
}

/// Names of refusals that depend on their values.
const TLS: &str = "tls";
const INPUT_STALLED: &str = "input-stalled";

impl Refusal {
    fn name_by_value(&self) -> Option<&'static str> {
        match self {
            Refusal::AddressLimit(met) => Some(met.name()),
            Refusal::Input {
                limit: InputLimit::Stalled,
                ..
            } => Some(INPUT_STALLED),
            Refusal::WrongProtocol {
                wrong: WrongProtocol::ClientHello | WrongProtocol::SslRequest,
            } => Some(TLS),
            _ => None,
        }
    }

    /// True if a limit is met or the server is away: whoever is on call wants to hear of it.
    pub(crate) fn is_of_limit(&self) -> bool {
        matches!(
            self,
            Refusal::UserClients { .. }
                | Refusal::Memory { .. }
                | Refusal::ClientAddresses { .. }
                | Refusal::QueueFull { .. }
                | Refusal::QueueBytes { .. }
                | Refusal::UserQueueFull { .. }
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

#[cfg(test)]
mod tests;
