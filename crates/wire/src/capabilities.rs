//! Capability flags: what the two ends of a connection agreed on at login.
//!
//! Numbers are from the protocol manuals. Three sets are ours: what we need of a server
//! ([`BACKEND_REQUIRED`]), what we offer to clients ([`OFFERED`]), and which of a client's flags
//! change the results of a statement and so must be the same on the backend that runs it
//! ([`BACKEND_KEY`]).

/// Old meaning: long passwords. MariaDB clears it to announce its extended capabilities.
pub const LONG_PASSWORD: u32 = 1;
/// UPDATE reports the rows found, not the rows changed.
pub const FOUND_ROWS: u32 = 1 << 1;
/// Longer column flags; always on since 4.1.
pub const LONG_FLAG: u32 = 1 << 2;
/// The login names a schema.
pub const CONNECT_WITH_DB: u32 = 1 << 3;
/// `schema.table.column` is refused.
pub const NO_SCHEMA: u32 = 1 << 4;
/// The compressed protocol (zlib).
pub const COMPRESS: u32 = 1 << 5;
/// LOAD DATA LOCAL is allowed.
pub const LOCAL_FILES: u32 = 1 << 7;
/// Spaces may stand between a function's name and its parenthesis.
pub const IGNORE_SPACE: u32 = 1 << 8;
/// The 4.1 protocol; there is no other left.
pub const PROTOCOL_41: u32 = 1 << 9;
/// `wait_timeout` starts at `interactive_timeout`.
pub const INTERACTIVE: u32 = 1 << 10;
/// TLS after the handshake.
pub const SSL: u32 = 1 << 11;
/// The client knows transactions' status flags.
pub const TRANSACTIONS: u32 = 1 << 13;
/// 4.1 authentication (challenge of 20 bytes).
pub const SECURE_CONNECTION: u32 = 1 << 15;
/// Several statements in one COM_QUERY.
pub const MULTI_STATEMENTS: u32 = 1 << 16;
/// Several results to a COM_QUERY.
pub const MULTI_RESULTS: u32 = 1 << 17;
/// Several results to a COM_STMT_EXECUTE.
pub const PS_MULTI_RESULTS: u32 = 1 << 18;
/// Authentication plugins are named.
pub const PLUGIN_AUTH: u32 = 1 << 19;
/// Connection attributes follow the login.
pub const CONNECT_ATTRS: u32 = 1 << 20;
/// Authentication answers of more than 255 bytes.
pub const PLUGIN_AUTH_LENENC_DATA: u32 = 1 << 21;
/// OK packets carry session state changes.
pub const SESSION_TRACK: u32 = 1 << 23;
/// Result sets that end with an OK packet, without an EOF between columns and rows.
pub const DEPRECATE_EOF: u32 = 1 << 24;
/// The compressed protocol with zstd; the login then ends with a level.
pub const ZSTD: u32 = 1 << 26;
/// Statements come with named values (MySQL, from 8.0.23); see [`crate::attributes`].
pub const QUERY_ATTRIBUTES: u32 = 1 << 27;

/// MariaDB's extended capabilities: further 32 bits, where LONG_PASSWORD is off on both sides. This
/// one: COM_STMT_BULK_EXECUTE.
pub const EXTENDED_BULK: u32 = 1 << 2;
/// Columns' definitions tell more of the type, behind the names ("JSON", "uuid").
pub const EXTENDED_METADATA: u32 = 1 << 3;
/// Extended capabilities that are offered if the server has them; part of what a backend must have
/// as its client. Not offered: progress reports (packets out of turn), cached metadata and results
/// of bulk executions row by row (replies of other forms).
pub const EXTENDED_OFFERED: u32 = EXTENDED_BULK | EXTENDED_METADATA;

/// Flags without which we do not talk to a server, each with its name for the error text.
pub const BACKEND_REQUIRED: [(u32, &str); 5] = [
    (PROTOCOL_41, "CLIENT_PROTOCOL_41"),
    (SECURE_CONNECTION, "CLIENT_SECURE_CONNECTION"),
    (PLUGIN_AUTH, "CLIENT_PLUGIN_AUTH"),
    (
        SESSION_TRACK,
        "CLIENT_SESSION_TRACK (MySQL 5.7, MariaDB 10.2)",
    ),
    (
        DEPRECATE_EOF,
        "CLIENT_DEPRECATE_EOF (MySQL 5.7, MariaDB 10.2)",
    ),
];

/// Capabilities that a client may choose from at login. Flags that would change the form of packets
/// in ways that are not translated (TLS, optional metadata) are not offered, so no client can ask
/// for them. Compression is offered besides where it is wanted, and query attributes where the
/// server has them.
pub const OFFERED: u32 = LONG_PASSWORD
    | FOUND_ROWS
    | LONG_FLAG
    | CONNECT_WITH_DB
    | NO_SCHEMA
    | LOCAL_FILES
    | IGNORE_SPACE
    | PROTOCOL_41
    | INTERACTIVE
    | TRANSACTIONS
    | SECURE_CONNECTION
    | MULTI_STATEMENTS
    | MULTI_RESULTS
    | PS_MULTI_RESULTS
    | PLUGIN_AUTH
    | CONNECT_ATTRS
    | PLUGIN_AUTH_LENENC_DATA
    | SESSION_TRACK
    | DEPRECATE_EOF;

/// Flags that are fixed when a backend logs in and change what a statement returns: a client's
/// statements run only on backends with the same ones. IGNORE_SPACE is not among them: all that it
/// does is to put a word into the session's `sql_mode`, which is restored like any variable.
/// QUERY_ATTRIBUTES is: commands have another form with it, and so go out as they came.
/// DEPRECATE_EOF is: without it flags and warnings stand in front of the rows too, and only the
/// server knows them there.
pub const BACKEND_KEY: u32 = FOUND_ROWS
    | NO_SCHEMA
    | LOCAL_FILES
    | INTERACTIVE
    | MULTI_RESULTS
    | PS_MULTI_RESULTS
    | DEPRECATE_EOF
    | QUERY_ATTRIBUTES;

/// Flags every backend connection of ours sets besides its key.
pub const BACKEND_ALWAYS: u32 = LONG_PASSWORD
    | LONG_FLAG
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | MULTI_STATEMENTS
    | PLUGIN_AUTH
    | PLUGIN_AUTH_LENENC_DATA
    | SESSION_TRACK;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_offered_that_cannot_be_translated() {
        assert_eq!(OFFERED & (SSL | (1 << 25)), 0);
    }

    #[test]
    fn a_key_is_made_of_flags_that_clients_can_ask_for() {
        assert_eq!(BACKEND_KEY & !(OFFERED | QUERY_ATTRIBUTES), 0);
        assert_eq!(OFFERED & QUERY_ATTRIBUTES, 0, "not every server has them");
        assert_eq!(BACKEND_KEY & BACKEND_ALWAYS, 0);
    }
}
