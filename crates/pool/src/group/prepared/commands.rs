//! Commands about prepared statements.
//!
//! What becomes of a command follows from the client's list of statements
//! ([`crate::statements::binary_prepare`]). Executions are classified by their text, as COM_QUERY
//! is; an error of the pool is an error packet.

use crate::backend::BackendState;
use crate::buffers::message::payload_of;
use crate::client::{Client, Handled};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::group::tokens::ClientId;
use crate::pair::prepared::put_closes;
use crate::server::watched::code_catalogue::Seen;
use crate::statements::binary_prepare::{Chosen, CommandOutcome};
use crate::statements::kill::meaning::command_of;
use crate::statements::own_ok::OwnOk;
use crate::statements::stored_code::SchemaText;
use reactor::Net;
use session::found::Found;
use session::plan::{class_with, hides_reads, in_bulk, statement_of};
use session::prepared::{Definition, UnderWay};
use session::send_mode::send_mode_of_execution;
use session::shapes::{Pipelinable, may_pipeline_text};
use sql::classify::{self, Marks, Reads, Verb};
use sql::text::Text;
use std::borrow::Cow;
use std::rc::Rc;
use wire::attributes::Form;
use wire::command::{Command, ReplyShape};
use wire::execution::{is_cut_short, wants_cursor, without_cursor};

/// Execution of a client: its command, and its own id of the statement.
struct Execution {
    command: Command,
    id: u32,
    definition: Rc<Definition>,
}

impl<N: Net> Group<N> {
    /// A client's prepared text, which is known to do this. A server looks names up where they were
    /// prepared, or where it is now.
    fn schema_text<'t>(
        &mut self,
        key: ClientId,
        definition: &'t Definition,
        found: &'t classify::Statement,
    ) -> Option<SchemaText<'t>> {
        self.code().see();
        let client = self.clients.get(key)?;
        let session = &definition.session;
        let mode = self.shared.server.lex_mode(session, client.capabilities);
        let schema = session.schema.as_deref();
        let Seen { names, version } = &self.code_seen;
        let names_none = definition.names_none_of(names, *version, mode);
        Some(SchemaText {
            sql: &definition.sql,
            mode,
            found,
            schema: schema.filter(|schema| client.session.schema.as_deref() == Some(*schema)),
            names_none_of: names_none.then_some(*version),
        })
    }

    /// A command about a prepared statement.
    pub(crate) fn on_prepared(
        &mut self,
        key: ClientId,
        command: Command,
        message: &[u8],
    ) -> Handled {
        let joined = self.current_input.joined(message);
        let payload = match &joined {
            Some(joined) => Cow::Borrowed(&joined[..]),
            None => payload_of(message),
        };
        if let Command::StmtExecute | Command::StmtBulkExecute = command {
            return self.on_execute(key, command, message, &payload);
        }
        let Some(mut commands) = self.statement_commands(key) else {
            return Handled::Used;
        };
        let outcome = match command {
            Command::StmtPrepare => {
                let sql = &payload[1..];
                let (client, server) = (&*commands.client, commands.server);
                let mode = client.lex_mode(server);
                let seen = self.current_input.seen(message, (sql, mode), false, None);
                let commands = self.statement_commands(key);
                let text = Text { sql, mode, seen };
                commands.map_or(CommandOutcome::Done, |mut commands| commands.prepare(&text))
            }
            Command::StmtFetch => commands.fetch(&payload),
            Command::StmtReset => match commands.reset(&payload) {
                CommandOutcome::Done => {
                    self.answers().ok(key, &OwnOk::PLAIN);
                    CommandOutcome::Done
                }
                outcome => outcome,
            },
            _ if is_cut_short(command, &payload) => match commands.server.flavour.is_mysql() {
                true => CommandOutcome::Malformed,
                false => CommandOutcome::Done,
            },
            Command::StmtSendLongData => {
                let (client, server) = (commands.client, commands.server);
                (commands.kept).take_long_data(client, message, &payload, server);
                CommandOutcome::Done
            }
            _ => {
                if let Some((backend_id, definition, id)) = commands.close(&payload)
                    && let Some(backend) = self.backends.get_mut(backend_id)
                {
                    if let Some(out) = backend.close_cursor(&definition, id) {
                        self.backend_writer().send(backend_id, &out);
                    }
                    self.settle(backend_id);
                }
                CommandOutcome::Done
            }
        };
        self.follow_outcome(key, message, outcome)
    }

    /// Does what is to become of a command about a prepared statement.
    fn follow_outcome(
        &mut self,
        key: ClientId,
        message: &[u8],
        outcome: CommandOutcome,
    ) -> Handled {
        match outcome {
            CommandOutcome::Sent(statement, instead) => {
                return self.start(key, instead.as_deref().unwrap_or(message), statement);
            }
            CommandOutcome::Done => {}
            CommandOutcome::Malformed => self.answers().malformed(key),
            CommandOutcome::Raised(error, words) => self.answers().error(key, error, &words),
            CommandOutcome::Full => return self.answers().refuse_to_prepare(key),
            CommandOutcome::Refused(refusal) => {
                return self.answers().refuse_counted(key, &refusal);
            }
        }
        Handled::Used
    }

    /// COM_STMT_EXECUTE and COM_STMT_BULK_EXECUTE.
    fn on_execute(
        &mut self,
        key: ClientId,
        command: Command,
        message: &[u8],
        payload: &[u8],
    ) -> Handled {
        let Some(mut commands) = self.statement_commands(key) else {
            return Handled::Used;
        };
        let Chosen {
            id,
            definition,
            kill,
        } = match commands.choose(command, message, payload) {
            Ok(chosen) => chosen,
            Err(outcome) => return self.follow_outcome(key, message, outcome),
        };
        if definition.class.kills {
            let capabilities = self.clients.get(key).map_or(0, |c| c.capabilities);
            let said = kill.map(|kill| command_of(kill, Form::of(capabilities)));
            return self.on_kill(key, &said.unwrap_or_default(), kill);
        }
        if let Some(backend) = self
            .matching()
            .last_backend_for_text(key, &definition.class)
        {
            self.bind(key, backend);
        }
        let handled = self.execute_read(key, (command, id), definition, message);
        self.leave_last_backend(key);
        handled
    }

    /// Executes a statement, or a text of its own where it reads what its backend does not know.
    fn execute_read(
        &mut self,
        key: ClientId,
        (command, id): (Command, u32),
        definition: Rc<Definition>,
        message: &[u8],
    ) -> Handled {
        let text = self.schema_text(key, &definition, &definition.class);
        let known = text.is_some_and(|text| self.code().knows(text, &definition.session));
        let class = class_with(&definition.class, known);
        let told = !hides_reads(&class);
        let elsewhere = self.clients.get(key).map(Client::reads_elsewhere);
        let asks = elsewhere.is_some_and(|elsewhere| class.reads.intersects(elsewhere));
        if told && asks {
            if (self.client_view(key)).is_some_and(|view| view.is_read_back_now(class.reads)) {
                return self.waiters().wait_outside(key);
            }
            // Each execution of a bulk asks anew, so that no text has all the answers.
            let before = self.survey().before(key);
            let before = before.filter(|_| command == Command::StmtExecute);
            let Some(sql) = before.and_then(|before| before.execution(&definition)) else {
                self.kept.drop_long_data(self.clients.get_mut(key), id);
                return self.answers().refuse_counted(key, &Refusal::PreviousGone);
            };
            let client = self.clients.get(key);
            let session = client.map(|client| client.session.clone());
            let mut class = definition.class;
            class.reads = Reads::NONE;
            let instead = Definition::new(sql.into(), session.unwrap_or_default(), class);
            let execution = Execution {
                command: Command::StmtExecute,
                id,
                definition: self.definitions.share(instead),
            };
            return self.execute(key, execution, known, message);
        }
        let text = self.schema_text(key, &definition, &class);
        if text.is_some_and(|text| self.asks_for_lost(key, text)) {
            self.kept.drop_long_data(self.clients.get_mut(key), id);
            return self.answers().refuse_counted(key, &Refusal::PreviousGone);
        }
        let execution = Execution {
            command,
            id,
            definition,
        };
        self.execute(key, execution, known, message)
    }

    fn execute(
        &mut self,
        key: ClientId,
        execution: Execution,
        known: bool,
        message: &[u8],
    ) -> Handled {
        let Execution {
            command,
            id,
            definition,
        } = execution;
        let class = class_with(&definition.class, known);
        // MariaDB 10.11 answers ANALYZE of a query with two results in one where a cursor is asked
        // for, and MySQL 9.7 ends itself at EXPLAIN of one.
        let explains = class.verb == Verb::Explain && class.marks.contains(Marks::SELECT_INSIDE);
        let plain = (explains && command == Command::StmtExecute).then(|| without_cursor(message));
        let message = plain.as_deref().unwrap_or(message);
        // The servers send the results of a CALL at once, whatever it asks for.
        let cursor = command == Command::StmtExecute
            && class.verb != Verb::Call
            && wants_cursor(&payload_of(message));
        let capabilities = self.clients.get(key).map_or(0, |c| c.capabilities);
        let mode = (self.shared.server).lex_mode(&definition.session, capabilities);
        let mut statement = statement_of(&class, mode);
        if command == Command::StmtBulkExecute {
            statement = in_bulk(statement, class.verb);
        }
        statement.send_mode = send_mode_of_execution(definition.asks_schema(), &class);
        if cursor {
            statement.found = Found::Unsure;
            statement.shape = ReplyShape::Cursor;
        }
        let may_pipeline = !cursor
            && (self.settings.pipeline_max > 1
                && may_pipeline_text(&definition.sql, &class, statement.found));
        if may_pipeline || self.figures.digests.are_counted() {
            statement.digest = definition.digest(mode);
            let text = (&definition.sql[..], mode);
            (self.figures.digests).note(statement.digest, text, self.net.now());
        }
        let whole = |client: &Client<N::Sock>| client.executes_whole(command, id);
        if may_pipeline && self.clients.get(key).is_some_and(whole) {
            statement.pipelinable = Pipelinable::Execution;
        }
        if let Some(text) = self.schema_text(key, &definition, &class)
            && let Some(mut planning) = self.planning(key)
        {
            planning.plan(text, known, &mut statement);
        }
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        client.prepared.get_or_insert_default().under_way = Some(UnderWay {
            cursor,
            ..UnderWay::new(command, id, definition)
        });
        self.start(key, message, statement)
    }

    /// Closes what idle backends have prepared beyond their share: that of each is smaller since
    /// the server takes fewer (`max_prepared_stmt_count`), and clients' own would be refused.
    pub(crate) fn give_statements_back(&mut self) {
        let share = self.shared.prepared_of_backend(&self.settings);
        for backend_id in self.backends.keys() {
            let Some(backend) = self.backends.get_mut(backend_id) else {
                continue;
            };
            let idle = backend.state() == BackendState::Idle;
            if !idle || backend.prepared.count() <= share {
                continue;
            }
            let mut out = Vec::new();
            while backend.prepared.count() > share
                && let Some(id) = backend.prepared.take_oldest()
            {
                put_closes(&mut out, &[id]);
            }
            // The rest are names, whose end has a reply.
            if backend.prepared.count() > share {
                self.retire(backend_id);
            } else {
                self.backend_writer().send(backend_id, &out);
            }
        }
    }
}
