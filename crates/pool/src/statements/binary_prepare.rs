//! Commands of clients about the statements that they have prepared by number.
//!
//! COM_STMT_PREPARE and COM_STMT_EXECUTE become statements like any other; COM_STMT_FETCH and
//! COM_STMT_RESET go to the client's backend where a cursor is open and are answered by the pool
//! otherwise, in the server's words; COM_STMT_CLOSE gets no answer. Long data is kept with the
//! client until its statement runs, resets or closes.
//!
//! [`StatementCommands`] borrows a client with its list, changes the list, and says what is to
//! become of the command ([`CommandOutcome`]). It sends nothing.
//!
//! Source of what is answered here: MariaDB 10.11 and MySQL 9.7, asked over the wire.

use crate::backend::Backend;
use crate::client::Client;
use crate::errors::reasons::{Refusal, Unprepared};
use crate::group::tokens::BackendId;
use crate::limits::retained::Retained;
use crate::pair::prepared::head_of;
use crate::server::facts::ServerFacts;
use session::found::Found;
use session::plan::area_of;
use session::prepared::{Definition, Definitions, UnderWay};
use session::send_mode::SendMode;
use session::state::Interner;
use session::statement::{Conditions, Statement};
use sql::classify::Reads;
use sql::kill::Kill;
use sql::lex::Server;
use sql::text::Text;
use std::rc::Rc;
use wire::attributes::Form;
use wire::capabilities::EXTENDED_BULK;
use wire::command::{Command, put_command};
use wire::errors::{self, ErrorCode};
use wire::execution::{EXECUTE_FIXED, LAST_PREPARED, Types, only_number, statement_id, types};

/// Decision about a command.
#[derive(Debug)]
pub(crate) enum CommandOutcome {
    /// A backend runs it, or this command in its place.
    Sent(Statement, Option<Vec<u8>>),
    /// Command that is carried out.
    Done,
    /// Command that cannot be read.
    Malformed,
    /// Error that the server has for it.
    Raised(ErrorCode, String),
    /// Every statement that the client's backend may have is held by a cursor.
    Full,
    /// Refusal.
    Refused(Refusal),
}

/// An execution that is under way.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// The client's number of the statement.
    pub(crate) id: u32,
    pub(crate) definition: Rc<Definition>,
    /// Target of a KILL that can be read for certain.
    pub(crate) kill: Option<Kill>,
}

/// A client with the statements that it has prepared, and what they are made of.
pub(crate) struct StatementCommands<'a, S> {
    pub(crate) client: &'a mut Client<S>,
    /// The backend that it has, if it has one.
    pub(crate) backend: Option<&'a Backend<S>>,
    pub(crate) server: &'a ServerFacts,
    pub(crate) definitions: &'a mut Definitions,
    pub(crate) sessions: &'a mut Interner,
    pub(crate) retained: &'a mut Retained,
    /// Statements that a backend may have.
    pub(crate) share: usize,
}

impl<S> StatementCommands<'_, S> {
    /// COM_STMT_PREPARE: always asks the server, whatever is known of the text.
    pub(crate) fn prepare(&mut self, text: &Text<'_>) -> CommandOutcome {
        let (mode, class) = (text.mode, text.seen.class);
        // Prepared, it kills nobody yet.
        let reads = class.kills && Kill::read_with(text.sql, mode, Some(0)).is_some();
        if !reads && text.seen.hides_kill {
            return CommandOutcome::Refused(Refusal::Kill);
        }
        let own = class.reads.intersects(Reads::CONNECTION_ID);
        let own = own.then(|| self.client.with_own_id(text.sql, mode));
        let own = own.flatten();
        let sql = own.as_deref().unwrap_or(text.sql);
        let backend = self.backend;
        if backend.is_some_and(|backend| backend.session.prepared.is_full(self.share)) {
            return CommandOutcome::Full;
        }
        let client = &mut *self.client;
        if let Some(full) = (client.session.prepared.as_ref()).and_then(|all| all.is_full()) {
            return CommandOutcome::Refused(Refusal::Prepared(full.into()));
        }
        let session = client.session.state.clone();
        client.session.pin_without_schema(&session, (sql, &class));
        client.session.touch_to_prepare(sql, mode, &class);
        let definition = (self.definitions).define(self.sessions, sql, &session, class);
        let id = client.identity.statements_made.wrapping_add(1);
        let under_way = UnderWay::new(Command::StmtPrepare, id, definition);
        client.session.prepared.get_or_insert_default().under_way = Some(under_way);
        let mut statement = Statement::plain(Command::StmtPrepare.reply());
        statement.send_mode = SendMode::Anywhere;
        statement.conditions = Conditions::Counts;
        statement.found = Found::Keeps;
        if !class.reads.intersects(Reads::DIAGNOSTICS) {
            statement.area = area_of(&class, self.server.flavour);
        }
        let instead = own.map(|own| {
            let mut rewritten = Vec::new();
            put_command(&mut rewritten, Command::StmtPrepare, &own);
            rewritten
        });
        CommandOutcome::Sent(statement, instead)
    }

    /// COM_STMT_EXECUTE and COM_STMT_BULK_EXECUTE: which statement is executed, whose types of
    /// parameters are known from here on.
    ///
    /// # Errors
    /// What becomes of one that is not.
    pub(crate) fn choose(
        &mut self,
        command: Command,
        message: &[u8],
        payload: &[u8],
    ) -> Result<Chosen, CommandOutcome> {
        let execution = command == Command::StmtExecute;
        if execution && payload.len() < EXECUTE_FIXED {
            // Servers look at that before they look for the statement.
            return Err(CommandOutcome::Malformed);
        }
        let id = self.id_in(payload, command)?;
        let form = Form::of(self.client.capabilities);
        let prepared = (self.client.session.prepared.as_mut()).ok_or(CommandOutcome::Done)?;
        let held = prepared.get(id).ok_or(CommandOutcome::Done)?;
        // What becomes of the execution is another matter: a driver does not send them again.
        let given = types(command, head_of(message), usize::from(held.params), form);
        let by_last = statement_id(payload) == Some(LAST_PREPARED);
        let without_types = given == Types::Earlier || execution && given == Types::Unreadable;
        if by_last && without_types {
            // The server's own refusal: with that id the types have to stand there. With an id that
            // it knows, some of these are taken, as executions with types of before.
            return Err(CommandOutcome::Malformed);
        }
        prepared.remember(id, given);
        prepared.count(&self.retained.statements);
        let held = prepared.get(id).ok_or(CommandOutcome::Done)?;
        let definition = held.definition.clone();
        if held.overlong {
            self.client.session.prepared.drop_long_data(id);
            let refusal = Refusal::Prepared(Unprepared::LongData);
            return Err(CommandOutcome::Refused(refusal));
        }
        let kill = match definition.class.kills {
            true => {
                let alone = execution && held.long.is_none();
                let number = || only_number(payload, held.types.as_deref(), form);
                let number = alone.then(number).flatten();
                let client = &*self.client;
                let mode = (self.server).lex_mode(&definition.session, client.capabilities);
                Kill::read_with(&definition.sql, mode, number)
            }
            false => None,
        };
        Ok(Chosen {
            id,
            definition,
            kill,
        })
    }

    /// COM_STMT_FETCH: rows of a cursor on the client's backend.
    pub(crate) fn fetch(&mut self, payload: &[u8]) -> CommandOutcome {
        // The command, the statement's id and a number of rows, which MariaDB does not insist on.
        let mysql = self.server.flavour.is_mysql();
        if mysql && payload.len() < 9 {
            return CommandOutcome::Malformed;
        }
        let id = match self.id_in(payload, Command::StmtFetch) {
            Ok(id) => id,
            Err(outcome) => return outcome,
        };
        if (self.client.session.prepared).goes_to_cursor(Command::StmtFetch, id) {
            return CommandOutcome::Sent(Statement::plain(Command::StmtFetch.reply()), None);
        }
        let end = if mysql { "." } else { "" };
        let text = format!("The statement ({id}) has no open cursor{end}");
        CommandOutcome::Raised(errors::NO_OPEN_CURSOR, text)
    }

    /// COM_STMT_RESET: drops long data, closes the cursor.
    pub(crate) fn reset(&mut self, payload: &[u8]) -> CommandOutcome {
        let id = match self.id_in(payload, Command::StmtReset) {
            Ok(id) => id,
            Err(outcome) => return outcome,
        };
        self.client.session.prepared.drop_long_data(id);
        if (self.client.session.prepared).goes_to_cursor(Command::StmtReset, id) {
            return CommandOutcome::Sent(Statement::plain(Command::StmtReset.reply()), None);
        }
        match self.server.flavour.is_mysql() {
            true => self.client.session.last.answered_uncounted(0),
            false => self.client.session.last.answered(0),
        }
        CommandOutcome::Done
    }

    /// COM_STMT_CLOSE: an unknown id is nothing to a server either. Where a cursor of the statement
    /// is open, its backend and what it is open on there.
    pub(crate) fn close(&mut self, payload: &[u8]) -> Option<(BackendId, Rc<Definition>, u32)> {
        let client = &mut *self.client;
        let mysql = self.server.flavour.is_mysql();
        let id = statement_id(payload)
            .and_then(|id| client.session.prepared.statement_meant(id, mysql))?;
        client.session.prepared.drop_long_data(id);
        let prepared = client.session.prepared.as_mut()?;
        let open = prepared.cursor_of(id).cloned();
        prepared.set_cursor(id, None);
        prepared.remove(id)?;
        prepared.count(&self.retained.statements);
        if prepared.is_empty() {
            *client.session.prepared = None;
        }
        Some((client.backend()?, open?, id))
    }

    /// The id in a command that must name a statement of the client's; without one the client gets
    /// the server's error.
    fn id_in(&self, payload: &[u8], command: Command) -> Result<u32, CommandOutcome> {
        let id = statement_id(payload).ok_or(CommandOutcome::Malformed)?;
        let server = self.server.flavour;
        if let Some(meant) = (self.client.session.prepared).statement_meant(id, server.is_mysql()) {
            return Ok(meant);
        }
        // A server looks at what the client has negotiated before it looks for the statement.
        let bulk = u32::from(self.client.identity.extended) & EXTENDED_BULK != 0;
        if command == Command::StmtBulkExecute && !bulk {
            let words = "This command is not supported in the prepared statement protocol yet";
            return Err(CommandOutcome::Raised(
                errors::UNSUPPORTED_PREPARED,
                words.into(),
            ));
        }
        // Each server names the function that looked for it.
        let what = match (command, server) {
            (_, Server::MySql(_)) => "mysql_stmt_precheck",
            (Command::StmtFetch, _) => "mysqld_stmt_fetch",
            (Command::StmtReset, _) => "mysqld_stmt_reset",
            _ => "mysqld_stmt_execute",
        };
        let text = format!("Unknown prepared statement handler ({id}) given to {what}");
        Err(CommandOutcome::Raised(errors::UNKNOWN_STATEMENT, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reactor::Time;
    use session::global_defaults::GlobalDefaults;
    use session::last_statement::RowCount;
    use session::state::Session;
    use sql::lex::LexMode;
    use sql::text::Seen;
    use wire::reply::Prepared;

    const NOW: Time = Time(1_000_000_000);
    const MYSQL: Server = Server::MySql(90_700);

    struct Bench {
        client: Client<()>,
        backend: Backend<()>,
        has_backend: bool,
        server: ServerFacts,
        definitions: Definitions,
        sessions: Interner,
        retained: Retained,
        share: usize,
    }

    impl Bench {
        fn new() -> Bench {
            let server = ServerFacts::of_tests();
            let (charsets, defaults) = (&server.default_charsets, GlobalDefaults::default());
            let session = Rc::new(Session::at_login(b"", true, charsets, &defaults));
            Bench {
                client: Client::of_tests(NOW, session),
                backend: Backend::of_tests(NOW, Rc::default()),
                has_backend: false,
                server,
                definitions: Definitions::default(),
                sessions: Interner::default(),
                retained: Retained::default(),
                share: 100,
            }
        }

        fn commands(&mut self) -> StatementCommands<'_, ()> {
            StatementCommands {
                client: &mut self.client,
                backend: self.has_backend.then_some(&self.backend),
                server: &self.server,
                definitions: &mut self.definitions,
                sessions: &mut self.sessions,
                retained: &mut self.retained,
                share: self.share,
            }
        }

        fn prepare(&mut self, sql: &str) -> CommandOutcome {
            let mode = LexMode {
                server: self.server.flavour,
                ..LexMode::default()
            };
            let text = Text {
                sql: sql.as_bytes(),
                mode,
                seen: Seen::read(sql.as_bytes(), mode, false, None),
            };
            self.commands().prepare(&text)
        }

        /// Prepares this for the client under number 1.
        fn has(&mut self, sql: &str, params: u16) {
            let outcome = self.prepare(sql);
            assert!(
                matches!(outcome, CommandOutcome::Sent(_, None)),
                "{outcome:?}"
            );
            let prepared = self.client.session.prepared.as_mut().unwrap();
            let under_way = prepared.under_way.take().unwrap();
            let header = Prepared {
                id: 9,
                columns: 0,
                params,
                warnings: 0,
            };
            prepared.note_new(1, under_way.definition, Some(header));
        }
    }

    /// A command about the statement with this number.
    fn about(command: Command, id: u32, rest: &[u8]) -> Vec<u8> {
        [&[command.byte()][..], &id.to_le_bytes(), rest].concat()
    }

    /// The words of an error, and its number.
    fn raised(outcome: CommandOutcome) -> (u16, String) {
        match outcome {
            CommandOutcome::Raised(error, words) => (error.code, words),
            other => panic!("no error: {other:?}"),
        }
    }

    #[test]
    fn a_number_that_means_nothing_is_refused_in_the_servers_words() {
        let mut bench = Bench::new();
        let unknown = errors::UNKNOWN_STATEMENT.code;
        let words = |what| format!("Unknown prepared statement handler (5) given to {what}");
        let payload = about(Command::StmtFetch, 5, &[1, 0, 0, 0]);
        let outcome = raised(bench.commands().fetch(&payload));
        assert_eq!(outcome, (unknown, words("mysqld_stmt_fetch")));
        let payload = about(Command::StmtReset, 5, b"");
        let outcome = raised(bench.commands().reset(&payload));
        assert_eq!(outcome, (unknown, words("mysqld_stmt_reset")));
        let payload = about(Command::StmtExecute, 5, &[0, 1, 0, 0, 0]);
        let outcome = bench.commands().choose(Command::StmtExecute, b"", &payload);
        let outcome = raised(outcome.unwrap_err());
        assert_eq!(outcome, (unknown, words("mysqld_stmt_execute")));
        let outcome = bench
            .commands()
            .choose(Command::StmtBulkExecute, b"", &payload);
        let outcome = raised(outcome.unwrap_err());
        assert_eq!(
            outcome.0,
            errors::UNSUPPORTED_PREPARED.code,
            "not agreed on"
        );
        bench.server.flavour = MYSQL;
        let payload = about(Command::StmtReset, 5, b"");
        let outcome = raised(bench.commands().reset(&payload));
        assert_eq!(outcome, (unknown, words("mysql_stmt_precheck")));
    }

    #[test]
    fn a_command_that_is_cut_short_is_malformed() {
        let mut bench = Bench::new();
        let outcome = bench.commands().fetch(b"\x1c\x01\0");
        assert!(matches!(outcome, CommandOutcome::Malformed), "{outcome:?}");
        let short = about(Command::StmtExecute, 1, &[0, 1, 0, 0]);
        let outcome = bench.commands().choose(Command::StmtExecute, b"", &short);
        assert!(
            matches!(outcome, Err(CommandOutcome::Malformed)),
            "{outcome:?}"
        );
        // MySQL wants a number of rows.
        bench.has("SELECT 1", 0);
        let payload = about(Command::StmtFetch, 1, b"");
        let outcome = raised(bench.commands().fetch(&payload));
        assert_eq!(outcome.0, errors::NO_OPEN_CURSOR.code);
        assert_eq!(outcome.1, "The statement (1) has no open cursor");
        bench.server.flavour = MYSQL;
        let outcome = bench.commands().fetch(&payload);
        assert!(matches!(outcome, CommandOutcome::Malformed), "{outcome:?}");
    }

    #[test]
    fn a_statement_is_prepared_under_the_next_number() {
        let mut bench = Bench::new();
        bench.client.identity.statements_made = 6;
        let outcome = bench.prepare("SELECT 1");
        assert!(
            matches!(outcome, CommandOutcome::Sent(_, None)),
            "{outcome:?}"
        );
        let under_way = bench.client.session.prepared.under_way().unwrap();
        assert_eq!((under_way.id, under_way.command), (7, Command::StmtPrepare));
        // The client's own number stands in the text that the server gets.
        bench.client.identity.set_id(1234);
        let CommandOutcome::Sent(_, Some(instead)) = bench.prepare("SELECT CONNECTION_ID()") else {
            panic!("another text is sent");
        };
        assert!(String::from_utf8_lossy(&instead).contains("1234"));
    }

    #[test]
    fn what_may_not_be_prepared_is_refused() {
        let mut bench = Bench::new();
        let outcome = bench.prepare("SELECT 1; KILL 5");
        assert!(
            matches!(outcome, CommandOutcome::Refused(Refusal::Kill)),
            "{outcome:?}"
        );
        let outcome = bench.prepare("KILL ?");
        assert!(
            matches!(outcome, CommandOutcome::Sent(..)),
            "it kills nobody yet: {outcome:?}"
        );
        (bench.has_backend, bench.share) = (true, 0);
        let outcome = bench.prepare("SELECT 1");
        assert!(matches!(outcome, CommandOutcome::Full), "{outcome:?}");
    }

    #[test]
    fn an_execution_knows_its_statement_and_whom_it_kills() {
        let mut bench = Bench::new();
        bench.has("SELECT 1", 0);
        let payload = about(Command::StmtExecute, 1, &[0, 1, 0, 0, 0]);
        let message = [&b"\x0a\0\0\0"[..], &payload].concat();
        let chosen = bench
            .commands()
            .choose(Command::StmtExecute, &message, &payload);
        let chosen = chosen.unwrap();
        assert_eq!((chosen.id, chosen.kill), (1, None));
        assert_eq!(&*chosen.definition.sql, b"SELECT 1");
        let mut bench = Bench::new();
        bench.has("KILL QUERY 77", 0);
        let chosen = bench
            .commands()
            .choose(Command::StmtExecute, &message, &payload);
        assert!(chosen.unwrap().kill.is_some_and(|kill| kill.query));
    }

    #[test]
    fn a_reset_leaves_the_counts_of_a_statement_without_rows() {
        let mut bench = Bench::new();
        bench.has("SELECT 1", 0);
        bench.client.session.last.row_count = RowCount::NONE;
        let payload = about(Command::StmtReset, 1, b"");
        let outcome = bench.commands().reset(&payload);
        assert!(matches!(outcome, CommandOutcome::Done), "{outcome:?}");
        assert_eq!(bench.client.session.last.row_count.get(), Some(0));
    }

    #[test]
    fn a_statement_is_closed_once_and_an_unknown_one_is_nothing() {
        let mut bench = Bench::new();
        bench.has("SELECT 1", 0);
        let unknown = about(Command::StmtClose, 2, b"");
        assert_eq!(bench.commands().close(&unknown), None);
        assert!(bench.client.session.prepared.is_some());
        let payload = about(Command::StmtClose, 1, b"");
        assert_eq!(bench.commands().close(&payload), None, "no cursor is open");
        assert!(
            bench.client.session.prepared.is_none(),
            "nothing is left in the box"
        );
    }
}
