//! Statements: what a client's command is, and how it gets to a backend.
//!
//! A command is answered here when no server is needed (COM_PING, COM_SET_OPTION, a reset), passed
//! to the backend that the client has, or given one by `start.rs`. Texts are judged before they
//! run (`query.rs`), so that an error halfway through cannot leave a trace on a shared backend.
//!
//! Invariant: a statement goes out only to a backend that stands in its client's session state, or
//! behind what puts it there ([`crate::pair::restoring`]).

use crate::backend::ForSession;
use crate::client::buffers::message::payload_of;
use crate::client::{ClientState, Handled, leaving, reset_connection};
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use crate::observe::audit::end;
use crate::observe::log::statement::StatementLog;
use crate::scheduler::queueing;
use crate::statements::answered_locally::is_answered_here;
use crate::statements::kill::carrying;
use crate::statements::kill::meaning::kill_of_command;
use crate::statements::own_ok::OwnOk;
use crate::statements::{prepared_commands, query, start, unanswered};
use reactor::Net;
use session::plan::statement_without_text;
use session::read_back::Properties;
use std::borrow::Cow;
use wire::command::Command;

/// Handles a command of a client that is idle.
pub(crate) fn on_command<N: Net>(parts: &mut Parts<N>, key: ClientId, message: &[u8]) -> Handled {
    parts.known.rules.renew(&parts.shared.scheduling.rules);
    let is_logged = parts.settings.statement_log != StatementLog::Off;
    match is_logged || !parts.known.rules.is_empty() {
        true => carry_out_noted(parts, key, message),
        false => carry_out(parts, key, message),
    }
}

/// Handles a command where a log or a rule wants to know of it.
fn carry_out_noted<N: Net>(parts: &mut Parts<N>, key: ClientId, message: &[u8]) -> Handled {
    let is_logged = parts.settings.statement_log != StatementLog::Off;
    if is_logged {
        parts.observed.statement_logs.forget_error();
    }
    let handled = carry_out(parts, key, message);
    if let Some(client) = parts.clients.get_mut(key)
        && client.state() == ClientState::Idle
    {
        client.session.effects.set_slot(None);
    }
    if is_logged && handled == Handled::Used {
        parts.logs().answered_here(key, message);
    }
    handled
}

fn carry_out<N: Net>(parts: &mut Parts<N>, key: ClientId, message: &[u8]) -> Handled {
    if message[3] != 0 {
        let refusal = Refusal::OutOfOrder {
            expected: 0,
            got: message[3],
        };
        leaving::refuse_and_leave(parts, key, &refusal);
        return Handled::Used;
    }
    if parts.shared.cluster.is_some() {
        parts.readers().prepare_to_route(key);
    }
    let Some(client) = parts.clients.get_mut(key) else {
        return Handled::Used;
    };
    client.session.begin_command();
    let has_lost_transaction = client.ended.has_lost_transaction();
    let awaits_answers = (client.session.modified.as_ref()).is_some_and(|t| t.is_awaited());
    let joined = parts.client_side.current_input.joined(message);
    let payload = match &joined {
        Some(joined) => Cow::Borrowed(&joined[..]),
        None => payload_of(message),
    };
    let byte = payload.first().copied().unwrap_or(0);
    let Some(command) = Command::from_byte(byte) else {
        if unanswered::awaits_answers(parts, key) {
            return parts.waiters().wait_outside(key);
        }
        parts.observed.counts.refused += 1;
        let refusal = Refusal::Command { byte };
        parts.answers().count(key, &refusal);
        (parts.answers()).error_unread(key, refusal.code(), &refusal.to_string());
        return Handled::Used;
    };
    if awaits_answers && command != Command::Quit {
        return parts.waiters().wait_outside(key);
    }
    let arguments = payload.get(1..).unwrap_or_default();
    if has_lost_transaction && (parts.answers()).hears_of_lost_transaction(key, command, arguments)
    {
        return Handled::Used;
    }
    match command {
        Command::Query => query::on_query(parts, key, message, arguments),
        _ => on_other(parts, key, command, message, arguments),
    }
}

/// Handles a command that is no text.
fn on_other<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    command: Command,
    message: &[u8],
    arguments: &[u8],
) -> Handled {
    if needs_read_back(parts, key, command) {
        return parts.waiters().wait_outside(key);
    }
    match command {
        Command::Quit => parts.clients.close_for(key, end::QUIT),
        Command::Ping => match parts.members().dead_end(key) {
            Some(why) => queueing::end_client(parts, key, &why),
            None => parts.answers().pong(key),
        },
        Command::SetOption => {
            let (server, client) = (parts.shared.server.flavour, parts.clients.get_mut(key));
            match client.map(|c| {
                c.session
                    .set_option(arguments, server, &mut parts.known.sessions)
            }) {
                Some(Ok(())) => parts.answers().ok(key, &OwnOk::WARNED_END),
                Some(Err((error, words))) => parts.answers().error_unread(key, error, words),
                None => {}
            }
        }
        Command::ResetConnection => return reset_connection::on_reset(parts, key),
        Command::ChangeUser => return reset_connection::on_change_user(parts, key, arguments),
        Command::ProcessKill => {
            let kill = kill_of_command(arguments, parts.shared.server.flavour);
            if kill.is_some() {
                return carrying::on_kill(parts, key, message, kill);
            }
            (parts.answers()).error(key, wire::errors::UNKNOWN_COM, "Unknown command");
        }
        Command::StmtPrepare
        | Command::StmtExecute
        | Command::StmtBulkExecute
        | Command::StmtSendLongData
        | Command::StmtFetch
        | Command::StmtReset
        | Command::StmtClose => {
            return prepared_commands::on_prepared(parts, key, command, message);
        }
        _ => {
            let statement = statement_without_text(command, parts.shared.server.flavour);
            return start::start(parts, key, message, statement);
        }
    }
    Handled::Used
}

/// True if the pool cannot carry out a command before it knows what it asks just now.
fn needs_read_back<N: Net>(parts: &mut Parts<N>, key: ClientId, command: Command) -> bool {
    let starts_over = matches!(command, Command::ResetConnection | Command::ChangeUser);
    match command {
        _ if starts_over => parts.client_view(key).is_some_and(|view| {
            let reports = view.is_being_asked(ForSession::Reports(true));
            reports || view.is_reading(Properties::ROLE) || view.is_counting()
        }),
        // MySQL's OK of COM_INIT_DB counts the conditions before it.
        Command::InitDb if parts.shared.server.flavour.is_mysql() => {
            unanswered::awaits_answers(parts, key)
        }
        _ if is_answered_here(command) => unanswered::awaits_answers(parts, key),
        _ => false,
    }
}
