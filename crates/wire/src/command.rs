//! Commands: the first byte of a client's message, and what kind of reply it gets.
//!
//! [`Command::reply`] is the one place that knows which commands are answered and how; whoever
//! follows a connection asks it before it waits.

/// Commands that a client can send. Values are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    /// Ends the session; no reply.
    Quit = 0x01,
    /// Changes the default schema.
    InitDb = 0x02,
    /// A statement as text.
    Query = 0x03,
    /// Lists a table's columns (deprecated).
    FieldList = 0x04,
    /// Flushes what its byte says (deprecated; MySQL 9 has it no more).
    Refresh = 0x07,
    /// One line of server statistics.
    Statistics = 0x09,
    /// Lists the server's connections (deprecated; MySQL 9 has it no more).
    ProcessInfo = 0x0A,
    /// Ends a connection of the server by its number (deprecated; MySQL 9 has it no more).
    ProcessKill = 0x0C,
    /// Asks the server to write debug information to its log.
    Debug = 0x0D,
    /// Is the server alive?
    Ping = 0x0E,
    /// Logs in again, as somebody else maybe, on the same connection.
    ChangeUser = 0x11,
    /// Prepares a statement.
    StmtPrepare = 0x16,
    /// Runs a prepared statement.
    StmtExecute = 0x17,
    /// Sends a piece of a parameter; no reply.
    StmtSendLongData = 0x18,
    /// Forgets a prepared statement; no reply.
    StmtClose = 0x19,
    /// Clears long data and the cursor of a prepared statement.
    StmtReset = 0x1A,
    /// Switches multi-statements on or off.
    SetOption = 0x1B,
    /// Reads rows from a cursor.
    StmtFetch = 0x1C,
    /// Makes the session as new.
    ResetConnection = 0x1F,
    /// MariaDB: runs a prepared statement with many rows of parameters.
    StmtBulkExecute = 0xFA,
}

/// The shape of a command's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyShape {
    /// No reply.
    None,
    /// One OK, ERR or EOF packet.
    Status,
    /// OK, ERR, or result sets.
    Results,
    /// OK, ERR, result sets, or a request for a local file: LOAD DATA LOCAL.
    LocalFile,
    /// Result sets, and the OK of a CALL behind all of them. MySQL (seen on 9.7) leaves
    /// SERVER_MORE_RESULTS_EXISTS out of those of XA RECOVER, SHOW TRIGGERS, SHOW PLUGINS and SHOW
    /// PROFILE in a procedure.
    Call,
    /// Reply like Results to an execution that asks for a cursor: an EOF packet behind the columns
    /// that says that one is open ends the reply.
    Cursor,
    /// The header of a prepared statement, then its parameters and columns.
    Prepared,
    /// Column definitions or rows up to an EOF, without a count in front.
    Rows,
    /// One packet of plain text.
    Text,
}

impl ReplyShape {
    /// True where several results may follow one another.
    #[must_use]
    pub fn has_results(self) -> bool {
        matches!(
            self,
            ReplyShape::Results | ReplyShape::LocalFile | ReplyShape::Call | ReplyShape::Cursor
        )
    }
}

/// All of them, those first that are sent most.
const ALL: [Command; 20] = [
    Command::Query,
    Command::StmtExecute,
    Command::StmtClose,
    Command::StmtPrepare,
    Command::StmtReset,
    Command::StmtFetch,
    Command::StmtSendLongData,
    Command::StmtBulkExecute,
    Command::Ping,
    Command::Quit,
    Command::InitDb,
    Command::ResetConnection,
    Command::ChangeUser,
    Command::SetOption,
    Command::FieldList,
    Command::Statistics,
    Command::Refresh,
    Command::ProcessInfo,
    Command::ProcessKill,
    Command::Debug,
];

impl Command {
    /// Its name, for logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        use Command::*;
        match self {
            Quit => "quit",
            InitDb => "init_db",
            Query => "query",
            FieldList => "field_list",
            Refresh => "refresh",
            Statistics => "statistics",
            ProcessInfo => "process_info",
            ProcessKill => "process_kill",
            Debug => "debug",
            Ping => "ping",
            ChangeUser => "change_user",
            StmtPrepare => "prepare",
            StmtExecute => "execute",
            StmtSendLongData => "send_long_data",
            StmtClose => "close",
            StmtReset => "reset",
            SetOption => "set_option",
            StmtFetch => "fetch",
            ResetConnection => "reset_connection",
            StmtBulkExecute => "bulk_execute",
        }
    }

    /// The command of a message's first payload byte; `None` for what we neither answer nor relay
    /// (replication, server-internal and withdrawn commands).
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Command> {
        ALL.into_iter().find(|command| command.byte() == byte)
    }

    /// Form of this command's reply.
    #[must_use]
    pub fn reply(self) -> ReplyShape {
        use Command::*;
        match self {
            Quit | StmtSendLongData | StmtClose => ReplyShape::None,
            InitDb | Refresh | ProcessKill | Debug | Ping | ChangeUser | StmtReset | SetOption
            | ResetConnection => ReplyShape::Status,
            Query | ProcessInfo | StmtExecute | StmtBulkExecute => ReplyShape::Results,
            StmtPrepare => ReplyShape::Prepared,
            FieldList | StmtFetch => ReplyShape::Rows,
            Statistics => ReplyShape::Text,
        }
    }

    /// The byte on the wire.
    #[must_use]
    pub fn byte(self) -> u8 {
        self as u8
    }
}

/// Appends a whole command: its byte, then `arguments`, as packets numbered from 0.
pub fn put_command(out: &mut Vec<u8>, command: Command, arguments: &[u8]) {
    if arguments.len() < crate::packet::PAYLOAD_MAX - 1 {
        crate::packet::put_short(out, 0, |out| {
            out.push(command.byte());
            out.extend_from_slice(arguments);
        });
    } else {
        let mut payload = Vec::with_capacity(arguments.len() + 1);
        payload.push(command.byte());
        payload.extend_from_slice(arguments);
        crate::packet::put_packet(out, 0, &payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_and_its_command_agree() {
        let known = (0..=255u8).filter_map(|b| Command::from_byte(b).map(|c| (b, c)));
        let mut count = 0;
        for (byte, command) in known {
            assert_eq!(command.byte(), byte);
            count += 1;
        }
        assert_eq!(count, 20);
        assert_eq!(
            Command::from_byte(0x12),
            None,
            "COM_BINLOG_DUMP is not for a pool"
        );
    }

    #[test]
    fn a_query_is_its_byte_and_its_text() {
        let mut out = Vec::new();
        put_command(&mut out, Command::Query, b"SELECT 1");
        assert_eq!(out, b"\x09\0\0\0\x03SELECT 1");
    }
}
