//! Commands about prepared statements.
//!
//! The client's list of statements ([`crate::statements::binary_prepare`]) decides what becomes of
//! a command. Executions are classified by their text, as COM_QUERY is; an error of the pool is an
//! error packet.

use crate::backend::BackendState;
use crate::client::Handled;
use crate::client::buffers::message::payload_of;
use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use crate::pair::prepared::put_closes;
use crate::statements::binary_prepare::{Chosen, CommandOutcome};
use crate::statements::kill::carrying;
use crate::statements::kill::meaning::command_of;
use crate::statements::own_ok::OwnOk;
use crate::statements::pinning::guards;
use crate::statements::plan::Execution;
use crate::statements::query::Judged;
use crate::statements::{endings, query, start};
use reactor::Net;
use sql::text::Text;
use std::borrow::Cow;
use wire::attributes::Form;
use wire::command::Command;
use wire::execution::is_cut_short;

/// A command about a prepared statement.
pub(crate) fn on_prepared<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    command: Command,
    message: &[u8],
) -> Handled {
    let joined = parts.client_side.current_input.joined(message);
    let payload = match &joined {
        Some(joined) => Cow::Borrowed(&joined[..]),
        None => payload_of(message),
    };
    if let Command::StmtExecute | Command::StmtBulkExecute = command {
        return on_execute(parts, key, command, message, &payload);
    }
    let Some(mut commands) = parts.statement_commands(key) else {
        return Handled::Used;
    };
    let outcome = match command {
        Command::StmtPrepare => {
            let sql = &payload[1..];
            let (client, server) = (&*commands.client, commands.server);
            let mode = client.lex_mode(server);
            let seen = (parts.client_side.current_input).seen(message, (sql, mode), false, None);
            let commands = parts.statement_commands(key);
            let text = Text { sql, mode, seen };
            commands.map_or(CommandOutcome::Done, |mut commands| commands.prepare(&text))
        }
        Command::StmtFetch => commands.fetch(&payload),
        Command::StmtReset => match commands.reset(&payload) {
            CommandOutcome::Done => {
                parts.answers().ok(key, &OwnOk::PLAIN);
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
                && let Some(backend) = parts.backends.get_mut(backend_id)
            {
                if let Some(out) = backend.session.close_cursor(&definition, id) {
                    parts.backend_writer().send(backend_id, &out);
                }
                endings::settle(parts, backend_id);
            }
            CommandOutcome::Done
        }
    };
    follow_outcome(parts, key, message, outcome)
}

/// Carries out the outcome of a command about a prepared statement.
fn follow_outcome<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    message: &[u8],
    outcome: CommandOutcome,
) -> Handled {
    match outcome {
        CommandOutcome::Sent(statement, instead) => {
            return start::start(parts, key, instead.as_deref().unwrap_or(message), statement);
        }
        CommandOutcome::Done => {}
        CommandOutcome::Malformed => parts.answers().malformed(key),
        CommandOutcome::Raised(error, words) => parts.answers().error(key, error, &words),
        CommandOutcome::Full => return parts.answers().refuse_to_prepare(key),
        CommandOutcome::Refused(refusal) => {
            return parts.answers().refuse_counted(key, &refusal);
        }
    }
    Handled::Used
}

/// COM_STMT_EXECUTE and COM_STMT_BULK_EXECUTE.
fn on_execute<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    command: Command,
    message: &[u8],
    payload: &[u8],
) -> Handled {
    let Some(mut commands) = parts.statement_commands(key) else {
        return Handled::Used;
    };
    let capabilities = commands.client.capabilities;
    let Chosen {
        id,
        definition,
        kill,
    } = match commands.choose(command, message, payload) {
        Ok(chosen) => chosen,
        Err(outcome) => return follow_outcome(parts, key, message, outcome),
    };
    let mode = (parts.shared.server).lex_mode(&definition.session, capabilities);
    if !parts.known.rules.is_empty()
        && let Some(handled) = start::keep_rules(parts, key, definition.digest(mode))
    {
        if let Some(client) = parts.clients.get_mut(key) {
            client.session.prepared.drop_long_data(id);
        }
        return handled;
    }
    if definition.class.kills {
        let said = kill.map(|kill| command_of(kill, Form::of(capabilities)));
        return carrying::on_kill(parts, key, &said.unwrap_or_default(), kill);
    }
    let Some(client) = parts.clients.get(key) else {
        return Handled::Used;
    };
    (parts.known.code_seen).renew(&parts.shared.watched.code_catalogue);
    let text = client.prepared_text(&definition, &parts.shared.server);
    let guards = guards(text, &mut parts.known.code_seen, &parts.shared);
    let execution = Execution {
        command,
        id,
        definition: &definition,
        message,
    };
    let reads = parts.reading(key);
    let reads =
        reads.is_some_and(|client| client.wants_readers(&parts.backend_pools, &definition.sql));
    let plan = query::judge(parts, (key, reads), &guards, |j| j.execution(execution));
    let judged = Judged::Execution(command, id, definition);
    query::carry_out_plan(parts, key, message, plan, judged, guards)
}

/// Closes what idle backends have prepared beyond their share: that of each is smaller since
/// the server takes fewer (`max_prepared_stmt_count`), and clients' own would be refused.
pub(crate) fn give_statements_back<N: Net>(parts: &mut Parts<N>) {
    let share = parts.shared.prepared_of_backend(&parts.settings);
    for backend_id in parts.backends.keys() {
        let Some(backend) = parts.backends.get_mut(backend_id) else {
            continue;
        };
        let idle = backend.state() == BackendState::Idle;
        if !idle || backend.session.prepared.count() <= share {
            continue;
        }
        let mut out = Vec::new();
        while backend.session.prepared.count() > share
            && let Some(id) = backend.session.prepared.take_oldest()
        {
            put_closes(&mut out, &[id]);
        }
        // The rest are names, whose end has a reply.
        if backend.session.prepared.count() > share {
            parts.closer().retire(backend_id);
        } else {
            parts.backend_writer().send(backend_id, &out);
        }
    }
}
