//! Error numbers of MySQL servers that we send or must recognise.
//!
//! Numbers and SQL states are the servers' own (`mysqld_error.h` in their manuals), so that drivers
//! react to ours as they would to a server's. A number of the client libraries' own is never sent:
//! MariaDB's library takes such a packet for a malformed one, and nobody reads its words.

/// A server error number with its SQL state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode {
    /// The number, as in `ERROR 1045`.
    pub code: u16,
    /// Five characters of SQL state.
    pub state: &'static str,
}

const fn error(code: u16, state: &'static str) -> ErrorCode {
    // `errmsg.h` of both libraries: CR_MIN_ERROR to CR_MAX_ERROR, and MariaDB's CER_ numbers.
    assert!(!matches!(code, 2000..=2999 | 5000..=5999));
    ErrorCode { code, state }
}

/// True for the errors of a server that takes no writes: `read_only` (1290, InnoDB's 1836), or a
/// node of Galera without a majority (1047).
#[must_use]
pub fn refuses_writes(code: u16) -> bool {
    matches!(code, 1047 | 1290 | 1836)
}

/// Too many connections.
pub const CON_COUNT: ErrorCode = error(1040, "08004");
/// The handshake failed.
pub const HANDSHAKE: ErrorCode = error(1043, "08S01");
/// Access denied for a user.
pub const ACCESS_DENIED: ErrorCode = error(1045, "28000");
/// Unknown command.
pub const UNKNOWN_COM: ErrorCode = error(1047, "08S01");
/// Unknown database.
pub const BAD_DB: ErrorCode = error(1049, "42000");
/// Shutdown of the server.
pub const SERVER_SHUTDOWN: ErrorCode = error(1053, "08S01");
/// KILL names a connection that is not there.
pub const NO_SUCH_THREAD: ErrorCode = error(1094, "HY000");
/// KILL names a connection of another account.
pub const KILL_DENIED: ErrorCode = error(1095, "HY000");
/// An error that has no number of its own.
pub const UNKNOWN_ERROR: ErrorCode = error(1105, "HY000");
/// Packet larger than the limit.
pub const NET_PACKET_TOO_LARGE: ErrorCode = error(1153, "08S01");
/// Packets came out of order.
pub const NET_PACKETS_OUT_OF_ORDER: ErrorCode = error(1156, "08S01");
/// Rollback of the transaction, which may be run again.
pub const LOCK_DEADLOCK: ErrorCode = error(1213, "40001");
/// Connections of the account: as many as it may have.
pub const USER_LIMIT_REACHED: ErrorCode = error(1226, "42000");
/// End of a statement by KILL.
pub const QUERY_INTERRUPTED: ErrorCode = error(1317, "70100");
/// A packet could not be read.
pub const MALFORMED_PACKET: ErrorCode = error(1835, "HY000");
/// Expired password.
pub const PASSWORD_EXPIRED: ErrorCode = error(1862, "HY000");
/// Locked account, in MySQL.
pub const ACCOUNT_LOCKED: ErrorCode = error(3118, "HY000");
/// Locked account, in MariaDB.
pub const ACCOUNT_LOCKED_MARIADB: ErrorCode = error(4151, "HY000");
/// Id of no prepared statement of this session.
pub const UNKNOWN_STATEMENT: ErrorCode = error(1243, "HY000");
/// A command for prepared statements that this connection has not negotiated.
pub const UNSUPPORTED_PREPARED: ErrorCode = error(1295, "HY000");
/// Prepared statement without an open cursor to read from.
pub const NO_OPEN_CURSOR: ErrorCode = error(1421, "HY000");
/// Prepared statements: no more are possible.
pub const PREPARED_COUNT: ErrorCode = error(1461, "42000");
/// Onramp's own: a statement waited too long for a backend and was not executed; retryable. No
/// server uses 9501 to 9513, so nobody takes them for a lock wait or a full server.
pub const WAITED_TOO_LONG: ErrorCode = error(9501, "HY000");
/// Onramp's own: as many statements wait in the group as may; nothing was executed; retryable.
pub const QUEUE_FULL: ErrorCode = error(9502, "HY000");
/// Onramp's own: as many statements of this user wait as may; nothing was executed; retryable.
pub const USER_QUEUE_FULL: ErrorCode = error(9503, "HY000");
/// Onramp's own: the waiting statements hold as many bytes as they may; nothing was executed;
/// retryable.
pub const QUEUE_BYTES: ErrorCode = error(9504, "HY000");
/// Onramp's own: a transaction was open for longer than its user may keep one; rolled back.
pub const TRANSACTION_TIMEOUT: ErrorCode = error(9506, "HY000");
/// Onramp's own: the server cannot be reached, and is not waited for; nothing was executed;
/// retryable.
pub const SERVER_DOWN: ErrorCode = error(9507, "HY000");
/// Onramp's own: a client kept a backend and sent nothing for longer than its user may.
pub const KEPT_IDLE: ErrorCode = error(9508, "HY000");
/// Onramp's own: the server broke the protocol while a statement ran; whether that took effect is
/// unknown.
pub const SERVER_PROTOCOL: ErrorCode = error(9509, "08S01");
/// Onramp's own: a statement may have run in another session state than its own, because a SET in
/// front of it failed; its result was dropped.
pub const UNRESTORED: ErrorCode = error(9510, "HY000");
/// Onramp's own: clients of the account keep as many backends as they may.
pub const KEPT_BACKENDS: ErrorCode = error(9511, "HY000");
/// Onramp's own: an administrator rejects statements of this digest; nothing was executed.
pub const REJECTED_DIGEST: ErrorCode = error(9512, "HY000");
/// Onramp's own: as many statements of this digest run as an administrator allows; nothing was
/// executed; retryable.
pub const DIGEST_LIMIT: ErrorCode = error(9513, "HY000");
/// The server (here: the pool) has no memory for another connection.
pub const OUT_OF_RESOURCES: ErrorCode = error(1041, "08004");
/// Connections of the user: as many as it may have.
pub const TOO_MANY_USER_CONNECTIONS: ErrorCode = error(1203, "42000");
/// The transaction only reads.
pub const IN_READ_ONLY_TRANSACTION: ErrorCode = error(1792, "25006");
/// Variable that is the server's (here: a setting is the pool's), and no session has.
pub const GLOBAL_VARIABLE: ErrorCode = error(1229, "HY000");
/// A variable cannot take this value.
pub const WRONG_VALUE_FOR_VAR: ErrorCode = error(1231, "42000");
/// MySQL, from 8.0.24: the connection was idle for its `wait_timeout`, and is closed.
pub const CLIENT_INACTIVE: ErrorCode = error(4031, "HY000");
/// Onramp's own use of that number, with the state of a broken link: the client can go on no more,
/// and is closed. Drivers and pools that know either of the two connect again.
pub const CONNECT_AGAIN: ErrorCode = error(4031, "08S01");
/// The words of [`CLIENT_INACTIVE`].
pub const CLIENT_INACTIVE_WORDS: &str = "The client was disconnected by the server because of \
     inactivity. See wait_timeout and interactive_timeout for configuring this behavior.";
/// The login came in clear, and must be made over TLS or a Unix socket.
pub const SECURE_TRANSPORT_REQUIRED: ErrorCode = error(3159, "HY000");
/// The words of [`SECURE_TRANSPORT_REQUIRED`].
pub const SECURE_TRANSPORT_WORDS: &str =
    "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
/// A statement ran for longer than it may.
pub const QUERY_TIMEOUT: ErrorCode = error(3024, "HY000");
/// Lack of support.
pub const NOT_SUPPORTED: ErrorCode = error(1235, "42000");
/// Authentication method is not supported by the client.
pub const NOT_SUPPORTED_AUTH_MODE: ErrorCode = error(1251, "08004");
/// MariaDB: a connection has ended itself by KILL.
pub const CONNECTION_KILLED: ErrorCode = error(1927, "70100");
/// The connection to the server was lost while a statement ran. A server says so of a connection
/// between servers, with the state of a broken link; a client without a pool would find out itself.
pub const NET_READ: ErrorCode = error(1158, "08S01");
/// A server could not connect to another one, which holds what it was asked for.
pub const NO_FOREIGN_SERVER: ErrorCode = error(1429, "HY000");
/// The statement cannot be parsed.
pub const PARSE_ERROR: ErrorCode = error(1064, "42000");
/// Empty statement.
pub const EMPTY_QUERY: ErrorCode = error(1065, "42000");
/// Table that does not exist.
pub const NO_SUCH_TABLE: ErrorCode = error(1146, "42S02");
/// System variable that does not exist.
pub const UNKNOWN_VARIABLE: ErrorCode = error(1193, "HY000");
/// Lack of a privilege of the account.
pub const SPECIFIC_ACCESS_DENIED: ErrorCode = error(1227, "42000");

/// True if an error says that the account lacks a privilege, so that a GRANT helps: on a schema
/// (1044), a table (1142), a column (1143), or for all of the server (1227).
#[must_use]
pub fn lacks_privilege(code: u16) -> bool {
    matches!(code, 1044 | 1142 | 1143 | 1227)
}
