//! Server status flags, as OK and EOF packets carry them.
//!
//! They are the server's word on what its session is in: a transaction, more results, a cursor.
//! ERR packets carry none, so after an error the status is unknown until the next OK.

/// Open transaction.
pub const IN_TRANS: u16 = 1;
/// `autocommit` is on.
pub const AUTOCOMMIT: u16 = 1 << 1;
/// Another result follows.
pub const MORE_RESULTS: u16 = 1 << 3;
/// A statement found no good index, or none.
pub const POOR_INDEX: u16 = 0b11 << 4;
/// Open cursor; rows come by COM_STMT_FETCH.
pub const CURSOR_EXISTS: u16 = 1 << 6;
/// End of a cursor, whose last row has been sent.
pub const LAST_ROW_SENT: u16 = 1 << 7;
/// Backslashes in strings are plain characters; changes how SQL is lexed.
pub const NO_BACKSLASH_ESCAPES: u16 = 1 << 9;
/// Columns of a prepared statement that are others than when it was prepared.
pub const METADATA_CHANGED: u16 = 1 << 10;
/// Slow statement.
pub const SLOW: u16 = 1 << 11;
/// Rows that are the OUT parameters of a CALL in the binary protocol.
pub const PS_OUT_PARAMS: u16 = 1 << 12;
/// Session state changed; tracker blocks follow in the OK.
pub const SESSION_STATE_CHANGED: u16 = 1 << 14;
/// Flags that say something of one reply, and nothing of the session behind it.
pub const OF_ONE_REPLY: u16 = MORE_RESULTS
    | POOR_INDEX
    | CURSOR_EXISTS
    | LAST_ROW_SENT
    | METADATA_CHANGED
    | SLOW
    | PS_OUT_PARAMS
    | SESSION_STATE_CHANGED;
/// MariaDB: double quotes quote identifiers; changes how SQL is lexed.
pub const ANSI_QUOTES: u16 = 1 << 15;
