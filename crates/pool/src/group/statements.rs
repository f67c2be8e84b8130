//! Statements: what a client's command is, and how it gets to a backend.
//!
//! A command is answered here when no server is needed (COM_PING, COM_SET_OPTION, a reset), passed
//! to the backend that the client has, or given one by `checkout.rs`. Texts are judged before they
//! run (`query.rs`), so that an error halfway through cannot leave a trace on a shared backend.
//!
//! Invariant: a statement goes out only to a backend that stands in its client's session state, or
//! behind what puts it there ([`crate::pair::restoring`]).

pub(crate) mod endings;
pub(crate) mod kills;
pub(crate) mod query;
pub(crate) mod reads;

use crate::backend::{ForSession, InFlight, Purpose};
use crate::client::buffers::message::payload_of;
use crate::client::{Client, ClientState, Handled};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::group::backends::outages::silence;
use crate::group::clients::long_commands::LONG_COMMAND;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::rules::admit;
use crate::observe::audit::end;
use crate::observe::log::statement::StatementLog;
use crate::statements::kill::meaning::kill_of_command;
use crate::statements::own_ok::OwnOk;
use reactor::Net;
use session::plan::statement_without_text;
use session::read_back::Properties;
use session::send_mode::Prefix;
use session::statement::{Code, Statement};
use std::borrow::Cow;
use std::time::Duration;
use wire::command::Command;

/// Commands that the pool answers itself, with the session's status.
pub(crate) fn is_answered_here(command: Command) -> bool {
    matches!(
        command,
        Command::Ping | Command::SetOption | Command::StmtReset
    )
}

/// True if a client keeps a backend that alone knows how many conditions its last error has left:
/// the server's answer to its next command tells that.
fn is_uncounted<S>(client: &Client<S>) -> bool {
    client.last.pending.failed && client.is_held()
}

impl<N: Net> Group<N> {
    /// Handles a command of a client that is idle.
    pub(crate) fn on_command(&mut self, key: ClientId, message: &[u8]) -> Handled {
        self.rules.renew(&self.shared.rules);
        let is_logged = self.settings.statement_log != StatementLog::Off;
        if !is_logged && self.rules.is_empty() {
            return self.carry_out(key, message);
        }
        if is_logged {
            self.statement_logs.forget_error();
        }
        let handled = self.carry_out(key, message);
        if let Some(client) = self.clients.get_mut(key)
            && client.state() == ClientState::Idle
        {
            client.slot = None;
        }
        if is_logged && handled == Handled::Used {
            self.logs().answered_here(key, message);
        }
        handled
    }

    /// Refuses a statement that a rule is against, and counts one that a rule limits. `None`: it
    /// goes on.
    pub(crate) fn keep_rules(
        &mut self,
        key: ClientId,
        digest: impl FnOnce() -> u64,
    ) -> Option<Handled> {
        if self.rules.is_empty() {
            return None;
        }
        let digest = digest();
        let refusal = match admit(&self.rules, digest, self.net.now()) {
            Ok(slot) => {
                let client = self.clients.get_mut(key)?;
                client.slot = slot;
                return None;
            }
            Err(refusal) => refusal,
        };
        if let Some(client) = self.clients.get_mut(key) {
            client.statement.digest = digest;
        }
        Some(self.answers().refuse_counted(key, &refusal))
    }

    fn carry_out(&mut self, key: ClientId, message: &[u8]) -> Handled {
        if message[3] != 0 {
            let refusal = Refusal::OutOfOrder {
                expected: 0,
                got: message[3],
            };
            self.refuse_and_leave(key, &refusal);
            return Handled::Used;
        }
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        client.begin_command();
        self.readers().prepare_to_route(key);
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        let has_lost_transaction = client.has_lost_transaction();
        let awaits_answers = client.modified.as_ref().is_some_and(|t| t.is_awaited());
        let joined = self.current_input.joined(message);
        let payload = match &joined {
            Some(joined) => Cow::Borrowed(&joined[..]),
            None => payload_of(message),
        };
        let byte = payload.first().copied().unwrap_or(0);
        let Some(command) = Command::from_byte(byte) else {
            if self.awaits_answers(key) {
                return self.waiters().wait_outside(key);
            }
            self.counts.refused += 1;
            let refusal = Refusal::Command { byte };
            self.answers().count(key, &refusal);
            self.answers()
                .error_unread(key, refusal.code(), &refusal.to_string());
            return Handled::Used;
        };
        if awaits_answers && command != Command::Quit {
            return self.waiters().wait_outside(key);
        }
        let arguments = payload.get(1..).unwrap_or_default();
        if has_lost_transaction
            && self
                .answers()
                .hears_of_lost_transaction(key, command, arguments)
        {
            return Handled::Used;
        }
        match command {
            Command::Query => self.on_query(key, message, arguments),
            _ => self.on_other(key, command, message, arguments),
        }
    }

    /// Handles a command that is no text.
    fn on_other(
        &mut self,
        key: ClientId,
        command: Command,
        message: &[u8],
        arguments: &[u8],
    ) -> Handled {
        if self.needs_read_back(key, command) {
            return self.waiters().wait_outside(key);
        }
        match command {
            Command::Quit => self.clients.close_for(key, end::QUIT),
            Command::Ping => match self.members().dead_end(key) {
                Some(why) => self.end_client(key, &why),
                None => self.answers().pong(key),
            },
            Command::SetOption => {
                let (server, client) = (self.shared.server.flavour, self.clients.get_mut(key));
                match client.map(|c| c.set_option(arguments, server, &mut self.sessions)) {
                    Some(Ok(())) => self.answers().ok(key, &OwnOk::WARNED_END),
                    Some(Err((error, words))) => self.answers().error_unread(key, error, words),
                    None => {}
                }
            }
            Command::ResetConnection => return self.on_reset(key),
            Command::ChangeUser => return self.on_change_user(key, arguments),
            Command::ProcessKill => {
                let kill = kill_of_command(arguments, self.shared.server.flavour);
                if kill.is_some() {
                    return self.on_kill(key, message, kill);
                }
                (self.answers()).error(key, wire::errors::UNKNOWN_COM, "Unknown command");
            }
            Command::StmtPrepare
            | Command::StmtExecute
            | Command::StmtBulkExecute
            | Command::StmtSendLongData
            | Command::StmtFetch
            | Command::StmtReset
            | Command::StmtClose => return self.on_prepared(key, command, message),
            _ => {
                let statement = statement_without_text(command, self.shared.server.flavour);
                return self.start(key, message, statement);
            }
        }
        Handled::Used
    }

    /// True if the pool cannot carry out a command before it knows what it asks just now.
    fn needs_read_back(&mut self, key: ClientId, command: Command) -> bool {
        let starts_over = matches!(command, Command::ResetConnection | Command::ChangeUser);
        match command {
            _ if starts_over => self.client_view(key).is_some_and(|view| {
                let reports = view.is_being_asked(ForSession::Reports(true));
                reports || view.is_reading(Properties::ROLE) || view.is_counting()
            }),
            // MySQL's OK of COM_INIT_DB counts the conditions before it.
            Command::InitDb if self.shared.server.flavour.is_mysql() => self.awaits_answers(key),
            _ if is_answered_here(command) => self.awaits_answers(key),
            _ => false,
        }
    }

    /// True if what the pool's own answer would tell of a client is not known before its questions
    /// are answered: they are under way, or the conditions behind an error, which its backend alone
    /// has, are asked for now.
    pub(crate) fn awaits_answers(&mut self, key: ClientId) -> bool {
        let Some(view) = self.client_view(key) else {
            return false;
        };
        if view.is_being_asked(ForSession::Warnings)
            || view.is_being_asked(ForSession::Reports(true))
        {
            return true;
        }
        let client = view.client;
        let asks = client.last.pending.warnings && is_uncounted(client);
        let backend = client.backend().filter(|_| asks);
        let Some((backend, mut pair)) = backend.and_then(|l| Some((l, self.pair(key, l)?))) else {
            return false;
        };
        let out = pair.ask_for_conditions();
        self.backend_writer().ask(backend, &out);
        true
    }

    /// Runs a command on the client's backend, on another one, or later.
    pub(crate) fn start(&mut self, key: ClientId, message: &[u8], statement: Statement) -> Handled {
        let now = self.net.now();
        let silent_for = (self.shared.upstream).silent_for(now, self.settings.server_down_fail);
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        if client.take_interruption() {
            client.last.lose_conditions();
            self.answers().refuse(key, &Refusal::Interrupted);
            return Handled::Used;
        }
        client.statement = statement;
        if !statement.place.is_elsewhere()
            && let Some(handled) = self.leave_for_writer(key)
        {
            return handled;
        }
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        let on_reader = self.backend_pools.pools[client.pool as usize]
            .home
            .is_some();
        if let Some(backend) = client.backend() {
            if let Some(lasted) = silent_for.filter(|_| !on_reader) {
                client.pins.forget_plan();
                self.answers().refuse_counted(key, &silence(lasted));
                return Handled::Used;
            }
            if self.matching().waits_for_read_back(key, backend) {
                return self.waiters().wait_outside(key);
            }
            if self.matching().waits_with_backend(key, backend) {
                return self.wait_in_queue(key, message.len());
            }
            return self.begin(key, backend, message);
        }
        if self.drain.is_ending() {
            self.refuse_and_leave(key, &Refusal::Draining);
            return Handled::Used;
        }
        if let Some(backend) = self.acquire(key) {
            return self.begin(key, backend, message);
        }
        if (on_reader || !self.shared.upstream.is_silent())
            && let Some(backend) = self.matching().place_to_pipeline(key, message)
            && !self.matching().is_ahead()
        {
            self.send_statement(key, backend, message, &Prefix::CannotFail);
            return Handled::Used;
        }
        self.wait_in_queue(key, message.len())
    }

    /// Sends a command to the client's backend, once that stands in the client's session state.
    pub(crate) fn begin(
        &mut self,
        key: ClientId,
        backend_id: BackendId,
        message: &[u8],
    ) -> Handled {
        let (Some(client), Some(backend)) =
            (self.clients.get_mut(key), self.backends.get_mut(backend_id))
        else {
            return Handled::Used;
        };
        if client.will_keep()
            && let Some(refusal) = backend.keep(&self.backend_pools, false)
        {
            client.pins.forget_plan();
            self.tasks.add(Task::Settle(backend_id));
            return self.answers().refuse_counted(key, &refusal);
        }
        let has_prepared = client.prepared.is_some();
        let unfit = client.unfit_session(backend, key, (&self.defaults, &self.shared.server));
        if let Some(unfit) = unfit
            && let Some(handled) = self.reset_session((key, backend_id), unfit, message.len())
        {
            return handled;
        }
        if has_prepared && let Some(handled) = self.prepare_ahead(key, backend_id, message) {
            return handled;
        }
        let mut out = std::mem::take(&mut self.lent.out);
        out.clear();
        if self.shared.cluster.is_some() {
            self.readers().put_catch_up(key, backend_id, &mut out);
        }
        let text_here_max = self.shared.text_here_max;
        let pair = self.pair(key, backend_id);
        let prefix = pair.map(|mut pair| pair.put_prefix(message, text_here_max, &mut out));
        let result = match prefix {
            None => Handled::Used,
            Some(Prefix::Waited) => self.send_restore(key, backend_id, &out),
            Some(prefix) => {
                self.backend_writer().send(backend_id, &out);
                self.send_statement(key, backend_id, message, &prefix);
                Handled::Used
            }
        };
        self.lent.out = out;
        result
    }

    /// Sends what its command is to stand behind, and keeps that until it is answered.
    pub(crate) fn send_restore(
        &mut self,
        key: ClientId,
        backend: BackendId,
        out: &[u8],
    ) -> Handled {
        let now = self.net.now();
        if !self.clients.enter(key, ClientState::Restoring, now) {
            return Handled::Used;
        }
        self.backend_writer().ask(backend, out);
        Handled::Kept
    }

    /// Sends a statement to a backend, behind whatever is in flight there and, in `prefix`, what
    /// brings the backend into the client's session.
    pub(crate) fn send_statement(
        &mut self,
        key: ClientId,
        backend_id: BackendId,
        message: &[u8],
        prefix: &Prefix,
    ) {
        let runs = *prefix == Prefix::CannotFail;
        let Some((mut command, waited)) = self.note_sent((key, backend_id), message, runs) else {
            return;
        };
        if self.settings.logs_statements() {
            self.logs().note((key, backend_id), message, waited);
        }
        let (Some(client), Some(backend)) =
            (self.clients.get_mut(key), self.backends.get_mut(backend_id))
        else {
            return;
        };
        if let Prefix::Joined(joined) = prefix {
            backend.expect_joined(key, joined);
            command.reply = command.reply.behind();
        }
        backend.expect(command);
        if self.shared.server.flavour.is_mysql() {
            backend.note_typing(key, &client.session);
        }
        match client.statement.code {
            Code::None => {}
            Code::Unread => self.counts.code_unread += 1,
            Code::Known => self.counts.code_known += 1,
        }
        if runs && client.modifying().is_some() {
            client.note_modified(Some(backend), (command.sent, &mut self.counts));
        }
        match prefix {
            Prefix::Joined(joined) => {
                backend.put_joined(message, joined);
                self.backend_writer().send(backend_id, b"");
            }
            _ => self.send_command(key, backend_id, message),
        }
        if let Some(backend) = self.backends.get_mut(backend_id) {
            self.running.begins(backend, command.sent);
        }
    }

    /// Notes that a client's statement runs, with what it is pinned for where that is certain
    /// (`runs`), and whether others may be pipelined behind it. Returns its place among those in
    /// flight, and its wait; `None` where it does not go out.
    fn note_sent(
        &mut self,
        (key, backend_id): (ClientId, BackendId),
        message: &[u8],
        runs: bool,
    ) -> Option<(InFlight, Duration)> {
        let now = self.net.now();
        let (client, backend) = (
            self.clients.get_mut(key)?,
            self.backends.get_mut(backend_id)?,
        );
        if runs && !client.pins.is_empty() {
            client.note_pins(now, &mut self.counts);
        }
        if !client.change_state(ClientState::Running, now) {
            self.clients.close_later(key);
            return None;
        }
        let waited = match client.place.is_held() {
            true => now.since(client.place.since()),
            false => Duration::ZERO,
        };
        let place = client.figures_place(&self.backend_pools);
        self.figures.sent(place, waited);
        self.figures.digests.sent(client.statement.digest, waited);
        client.join(backend_id);
        client.last.sent();
        let first = backend.flight().is_empty();
        let behind = backend.flight().back().and_then(|command| command.owner);
        self.counts.pipelined += u64::from(behind.is_some_and(|owner| owner != key));
        // Beside a transaction, or what a client is pinned for, nobody else has a place.
        let apart = client.is_held() || backend.in_transaction();
        let session_digest = if apart { 0 } else { client.session_digest() };
        if first {
            backend.begin_pipeline(self.known_digests.trusts(session_digest));
        }
        let kept = match backend.is_reader() && !apart || !first && session_digest != 0 {
            true => backend.keep_for_followers(message),
            false => 0,
        };
        let command = InFlight {
            owner: Some(key),
            purpose: Purpose::Statement,
            reply: client.reply_to(message, backend),
            session_digest,
            sent: now,
            first,
            is_long: message.len() >= LONG_COMMAND,
            left: None,
            kept,
        };
        Some((command, waited))
    }

    /// Sends a client's command to its backend, in the words that the backend knows.
    pub(crate) fn send_command(&mut self, key: ClientId, backend: BackendId, message: &[u8]) {
        let prepared = (self.clients.get_mut(key)).and_then(|client| client.prepared.as_mut());
        let Some(under_way) = prepared.and_then(|prepared| prepared.under_way.take()) else {
            return self.backend_writer().send_message(backend, message);
        };
        let share = self.shared.prepared_of_backend(&self.settings);
        if let Some(mut pair) = self.pair(key, backend) {
            let out = pair.put_prepared(under_way, message, share);
            self.backend_writer().send(backend, &out);
        }
    }
}
