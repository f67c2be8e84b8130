//! Commands about prepared statements.
//!
//! What becomes of a command follows from the client's list of statements
//! ([`crate::statements::binary_prepare`]). Executions are classified by their text, as COM_QUERY
//! is; an error of the pool is an error packet.

use crate::backend::BackendState;
use crate::client::Handled;
use crate::client::buffers::message::payload_of;
use crate::group::Group;
use crate::group::statements::query::Judged;
use crate::group::tokens::ClientId;
use crate::pair::prepared::put_closes;
use crate::statements::binary_prepare::{Chosen, CommandOutcome};
use crate::statements::kill::meaning::command_of;
use crate::statements::own_ok::OwnOk;
use crate::statements::pinning::guards;
use crate::statements::plan::Execution;
use reactor::Net;
use sql::text::Text;
use std::borrow::Cow;
use wire::attributes::Form;
use wire::command::Command;
use wire::execution::is_cut_short;

impl<N: Net> Group<N> {
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
                (commands.retained).take_long_data(client, message, &payload, server);
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

    /// Carries out the outcome of a command about a prepared statement.
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
        let capabilities = self.clients.get(key).map_or(0, |c| c.capabilities);
        let mode = (self.shared.server).lex_mode(&definition.session, capabilities);
        if let Some(handled) = self.keep_rules(key, || definition.digest(mode)) {
            if let Some(client) = self.clients.get_mut(key) {
                client.drop_long_data(id);
            }
            return handled;
        }
        if definition.class.kills {
            let said = kill.map(|kill| command_of(kill, Form::of(capabilities)));
            return self.on_kill(key, &said.unwrap_or_default(), kill);
        }
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        self.code_seen.renew(&self.shared.code_catalogue);
        let text = client.prepared_text(&definition, &self.shared.server);
        let guards = guards(text, &mut self.code_seen, &self.shared);
        let execution = Execution {
            command,
            id,
            definition: &definition,
            message,
        };
        let reads = self.reading(key);
        let reads =
            reads.is_some_and(|client| client.wants_readers(&self.backend_pools, &definition.sql));
        let plan = self.judge((key, reads), &guards, |j| j.execution(execution));
        let judged = Judged::Execution(command, id, definition);
        self.carry_out_plan(key, message, plan, judged, guards)
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
                self.closer().retire(backend_id);
            } else {
                self.backend_writer().send(backend_id, &out);
            }
        }
    }
}
