//! Statements: what a client's command is, what it needs, and how it gets to a backend.
//!
//! A command is answered here when no server is needed (COM_PING, COM_SET_OPTION, a reset), passed
//! to the backend that the client has, or given one by `leases.rs`. Its text is classified before
//! it runs: what it may leave behind, unseen by the trackers, pins the client *before* the server
//! sees it, so that an error halfway through cannot leave a trace on a shared backend.
//!
//! What the statement before left (warnings, ROW_COUNT(), FOUND_ROWS()) is kept with the client,
//! and answered from there when the backend has served others since: `diagnostics.rs`.
//!
//! Invariant: a statement goes out only to a backend that stands in its client's session state, or
//! behind what puts it there (`restoring.rs`).

pub(crate) mod deferred_begin;
pub(crate) mod endings;
pub(crate) mod kills;

use crate::backend::{InFlight, Purpose, Riding};
use crate::buffers::message::payload_of;
use crate::client::{Client, ClientState, Handled};
use crate::code_seen::{Inside, SchemaText};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::kill_meaning::kill_of_command;
use crate::log::statement::StatementLog;
use crate::naming::{PreparedText, Spoken, may_name};
use crate::own_ok::OwnOk;

use crate::pair::conditions::is_refused_whole;
use crate::pair::previous::Previous;
use crate::queue::priority::{Asked, asked};
use crate::statement_logs::Logging;
use reactor::{Key, Net};
use session::beforehand::{class_with, statement_of, statement_without_text};
use session::found::hides_reads;
use session::read_back::Properties;
use session::shapes;
use session::shapes::Ride;
use session::standing::{Front, Standing, standing_of, standing_of_execution};
use session::statement::{Code, LooksBack, Statement};
use sql::classify::{PinCause, Reads, Verb};
use sql::kill::Kill;
use sql::text::Text;
use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;
use wire::command::{Command, ReplyShape};
use wire::reply::Reply;

/// Commands that the pool answers itself, with the session's status.
pub(crate) fn is_answered_here(command: Command) -> bool {
    matches!(command, Command::Ping | Command::SetOption)
}

/// Whether a client keeps a backend that alone knows how many conditions its last error has left:
/// the server's answer to its next command tells that.
fn is_uncounted<S>(client: &Client<S>) -> bool {
    client.last.owed.failed && client.is_held()
}

impl<N: Net> Group<N> {
    /// Handles a command of a client that is idle.
    pub(crate) fn on_command(&mut self, key: Key, message: &[u8]) -> Handled {
        if self.settings.statement_log == StatementLog::Off {
            return self.carry_out(key, message);
        }
        self.statement_logs.forget_error();
        let handled = self.carry_out(key, message);
        if handled == Handled::Used {
            self.logs().answered_here(key, message);
        }
        handled
    }

    fn carry_out(&mut self, key: Key, message: &[u8]) -> Handled {
        if message[3] != 0 {
            let refusal = Refusal::OutOfOrder {
                expected: 0,
                got: message[3],
            };
            self.refuse_and_leave(key, &refusal);
            return Handled::Used;
        }
        if let Some(client) = self.clients.get_mut(key) {
            client.forget_command();
        }
        if self
            .clients
            .get(key)
            .is_some_and(|client| client.last.is_asked_elsewhere())
        {
            return self.waiters().wait_outside(key);
        }
        let joined = self.in_hand.joined(message);
        let payload = match &joined {
            Some(joined) => Cow::Borrowed(&joined[..]),
            None => payload_of(message),
        };
        let byte = payload.first().copied().unwrap_or(0);
        let Some(command) = Command::from_byte(byte) else {
            self.counts.refused += 1;
            let refusal = Refusal::Command { byte };
            *self.counts.refusals.entry(refusal.name()).or_default() += 1;
            return self.raise(key, refusal.code(), &refusal.to_string());
        };
        let arguments = payload.get(1..).unwrap_or_default();
        if let Some(client) = self.clients.get_mut(key) {
            client.touching = None;
            client.retracking = None;
            client.pins.forget_plan();
            let touched = client.touched.as_ref();
            if touched.is_some_and(|touched| touched.is_awaited()) && command != Command::Quit {
                return self.waiters().wait_outside(key);
            }
        }
        if self.needs_read_back(key, command) {
            return self.waiters().wait_outside(key);
        }
        match command {
            Command::Quit => self.clients.close_later(key),
            Command::Ping => self.answers().pong(key),
            Command::SetOption => {
                let (server, client) = (self.shared.server.flavour, self.clients.get_mut(key));
                match client.map(|c| c.set_option(arguments, server, &mut self.sessions)) {
                    Some(Ok(())) => self.answers().ok(key, &OwnOk::WARNED_END),
                    Some(Err((error, words))) => return self.raise(key, error, words),
                    None => {}
                }
            }
            Command::ResetConnection => return self.on_reset(key),
            Command::ChangeUser => return self.on_change_user(key, arguments),
            Command::Query => {
                let client = self.clients.get(key);
                return match client.map(|client| client.text_in(arguments)) {
                    Some(Ok(sql)) => self.on_query(key, message, sql),
                    Some(Err(_)) => {
                        self.answers().malformed(key);
                        Handled::Used
                    }
                    None => Handled::Used,
                };
            }
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

    /// Whether the pool cannot carry out a command before it knows what it asks just now.
    fn needs_read_back(&mut self, key: Key, command: Command) -> bool {
        let reports = self
            .client_view(key)
            .is_some_and(|view| view.is_being_asked(Purpose::Reports(true)));
        match command {
            Command::ResetConnection | Command::ChangeUser => {
                reports
                    || self
                        .client_view(key)
                        .is_some_and(|view| view.is_reading(Properties::ROLE))
                    || self.asks_before_leaving(key)
            }
            // Behind an error the server's answer tells the status, which these tell. MySQL's OK of
            // COM_INIT_DB counts the conditions before it.
            Command::InitDb if self.shared.server.flavour.is_mysql() => {
                self.awaits_conditions(key, is_uncounted)
            }
            _ if is_answered_here(command) => reports || self.awaits_conditions(key, is_uncounted),
            _ => false,
        }
    }

    /// Whether the conditions of a client's last statement are being read back, or are asked for
    /// now: where its backend alone has them, and they are `wanted` of such a client.
    pub(crate) fn awaits_conditions(
        &mut self,
        key: Key,
        wanted: impl Fn(&Client<N::Sock>) -> bool,
    ) -> bool {
        let Some(view) = self.client_view(key) else {
            return false;
        };
        if view.is_being_asked(Purpose::Warnings) {
            return true;
        }
        let client = view.client;
        let asks = client.last.owed.warnings && wanted(client);
        let lease = client.lease().filter(|_| asks);
        let Some((lease, mut pair)) = lease.and_then(|l| Some((l, self.pair(key, l)?))) else {
            return false;
        };
        let out = pair.ask_for_conditions();
        self.backend_writer().ask(lease, &out);
        true
    }

    /// A text that a client sends, without what stands in front of it in `message`.
    pub(crate) fn on_query(&mut self, key: Key, message: &[u8], sql: &[u8]) -> Handled {
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let mode = self
            .shared
            .server
            .lex_mode(&client.session, client.capabilities);
        if let Some(handled) = self.on_text_alone(key, sql, mode) {
            return handled;
        }
        let asked = asked(sql, mode);
        if asked != Asked::Nothing {
            return match self.waiters().ask_priority(key, asked) {
                Ok(()) => {
                    self.answers().ok(key, &OwnOk::PLAIN);
                    Handled::Used
                }
                Err(refusal) => self.answers().refuse_counted(key, &refusal),
            };
        }
        let digested = self.figures.digests.are_counted();
        let seen = self.in_hand.seen(message, sql, mode, digested);
        if seen.class.verb == Verb::Kill && !seen.class.multi {
            return self.on_kill(key, message, Kill::read(sql, mode));
        }
        if seen.hides_kill {
            return self.answers().refuse_counted(key, &Refusal::Kill);
        }
        let text = Text { sql, mode, seen };
        let naming = may_name(&seen.class).then(|| self.naming(key)).flatten();
        let spoken = naming.map_or(Spoken::Plain, |mut naming| naming.speak(message, &text));
        let handled = match spoken {
            Spoken::Plain => self.run_text(key, message, &text),
            Spoken::Runs(prepared) => self.run_prepared_text(key, message, &prepared),
            spoken => return self.go_on_spoken(key, message, spoken),
        };
        self.leave_last_backend(key);
        handled
    }

    /// Does what is to become of a text about a statement by name that runs no other.
    fn go_on_spoken(&mut self, key: Key, message: &[u8], spoken: Spoken) -> Handled {
        match spoken {
            Spoken::Plain | Spoken::Runs(_) => {}
            Spoken::Sent(instead) => {
                let mut statement = Statement::plain(ReplyShape::Results);
                statement.explain();
                statement.standing = Standing::Anywhere;
                return self.start(key, instead.as_deref().unwrap_or(message), statement);
            }
            Spoken::Deallocated => self.answers().ok(key, &OwnOk::PLAIN),
            Spoken::Waits => return self.waiters().wait_outside(key),
            Spoken::ReadsVariables => {
                if let Some(lease) = self.clients.get(key).and_then(Client::lease) {
                    let property = Properties::USER_VARIABLES;
                    return self.wait_for_property(key, lease, property);
                }
            }
            Spoken::Full => return self.answers().refuse_to_prepare(key),
            Spoken::Refused(refusal) => return self.answers().refuse_counted(key, &refusal),
        }
        Handled::Used
    }

    /// Runs a text of a client's.
    fn run_text(&mut self, key: Key, message: &[u8], text: &Text<'_>) -> Handled {
        let Text { sql, mode, seen } = text;
        let (sql, mode, found) = (*sql, *mode, &seen.class);
        if let Some(lease) = self.matching().last_backend_for_text(key, found) {
            self.bind(key, lease);
        }
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let (session, elsewhere) = (client.session.clone(), client.reads_elsewhere());
        // Without a schema a name that names none is nothing's: the server refuses it.
        let schema = Some(session.schema.as_deref().unwrap_or_default());
        let judged = SchemaText {
            sql,
            mode,
            found,
            schema,
        };
        let known = self.code().known(judged, &session);
        let mut class = class_with(found, known.as_ref());
        let mut statement = statement_of(&class, mode.server);
        // Stored code may read anything; that it reads what a statement before its call left is
        // not assumed, or no CALL could ever be made.
        let told = !matches!(class.pin, Some(cause) if hides_reads(cause));
        if !told && self.naming(key).is_some_and(|mut n| n.loses_to_hidden()) {
            return self.waiters().wait_outside(key);
        }
        let client = self.clients.get(key);
        let lacks = client.is_some_and(|client| {
            !told && client.lacks_conditions(found)
                || client.may_stack_conditions(found, mode.server)
        });
        if client.is_some_and(|client| client.stacks_conditions(found, mode.server)) {
            if self.awaits_conditions(key, is_uncounted) {
                return self.waiters().wait_outside(key);
            }
            statement.counts_before = true;
        }
        let inside = match is_refused_whole(found, &session) {
            true => Inside::Known,
            false => {
                let found = &class;
                self.asks_inside(key, SchemaText { found, ..judged })
            }
        };
        if lacks || inside == Inside::Gone {
            return self.previous_gone(key);
        }
        inside.mark(&mut statement);
        let retracks = class.causes.contains(PinCause::SessionTracking);
        let client = self.clients.get_mut(key).filter(|_| retracks);
        let mut instead = client.and_then(|client| {
            let backend = client.lease().and_then(|lease| self.backends.get(lease));
            let transaction = backend.map_or_else(Default::default, |b| b.transaction);
            client.retrack((sql, mode), &class, transaction, &self.shared.server)
        });
        if instead.is_some() {
            class.causes.remove(PinCause::SessionTracking);
            class.pin = class.causes.iter().next();
        }
        let found = &class;
        if instead.is_none() && told && found.reads.intersects(elsewhere) {
            if self.reads_back_first(key, found.reads) {
                return self.waiters().wait_outside(key);
            }
            let before = self.survey().before(key);
            match before.map_or(Previous::Gone, |b| b.previous(sql, mode, found)) {
                Previous::Rows(rows) => {
                    self.answers().show(key, &rows);
                    return Handled::Used;
                }
                Previous::Gone => return self.previous_gone(key),
                Previous::Text(text) => instead = Some(text),
                Previous::Same => {}
            }
        }
        let rides = self.settings.ride_max > 1 && shapes::text_rides(sql, found, statement.found);
        if rides || self.figures.digests.are_counted() {
            statement.digest = text.digest();
            let now = self.net.now();
            (self.figures.digests).note(statement.digest, (sql, mode), now);
        }
        if rides {
            statement.ride = Ride::Text;
        }
        if let Some(known) = &known {
            known.mark(&mut statement);
        }
        if let Some(mut planning) = self.planning(key) {
            planning.plan(SchemaText { found, ..judged }, &mut statement);
            planning.client.touch(sql, mode, found);
            planning.client.touch_by_code(known.as_ref());
        }
        statement.standing = standing_of(found);
        if instead.is_none() && found.reads.intersects(Reads::CONNECTION_ID) {
            instead = self.clients.get(key).and_then(|c| c.with_own_id(sql, mode));
        }
        if let Some(text) = instead {
            let Some(client) = self.clients.get(key) else {
                return Handled::Used;
            };
            let rewritten = client.reworded(message, &text);
            return self.start(key, &rewritten, statement);
        }
        self.start(key, message, statement)
    }

    /// Runs a text that was prepared by name, or is executed at once: what it does is what its
    /// client's command does.
    fn run_prepared_text(&mut self, key: Key, message: &[u8], text: &PreparedText) -> Handled {
        if let Some(lease) = self.matching().last_backend_for_text(key, &text.class) {
            self.bind(key, lease);
        }
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let sql = &text.sql;
        let (session, capabilities) = (client.session.clone(), client.capabilities);
        let mode = self.shared.server.lex_mode(&text.session, capabilities);
        // A server looks names up where they were prepared, or where it is now.
        let schema = text.session.schema.as_deref();
        let schema = schema.filter(|schema| session.schema.as_deref() == Some(*schema));
        let judged = SchemaText {
            sql,
            mode,
            found: &text.class,
            schema,
        };
        let known = self.code().known(judged, &text.session);
        let found = &class_with(&text.class, known.as_ref());
        let mut statement = statement_of(found, self.shared.server.flavour);
        statement.digest = (self.figures.digests).of((sql, mode), self.net.now());
        let told = !matches!(found.pin, Some(cause) if hides_reads(cause));
        if !told && self.naming(key).is_some_and(|mut n| n.loses_to_hidden()) {
            return self.waiters().wait_outside(key);
        }
        let client = self.clients.get(key).filter(|_| !told);
        let lacks = client.is_some_and(|client| client.lacks_conditions(found));
        let inside = self.asks_inside(key, SchemaText { found, ..judged });
        if lacks || inside == Inside::Gone {
            return self.previous_gone(key);
        }
        inside.mark(&mut statement);
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        // It can be said as it is, unless there are values in it, or it is of another session.
        let as_it_is = Rc::ptr_eq(&text.session, &session) && !sql.contains(&b'?');
        let mut instead = None;
        if told && found.reads.intersects(client.reads_elsewhere()) {
            if self.reads_back_first(key, found.reads) {
                return self.waiters().wait_outside(key);
            }
            let before = self.survey().before(key);
            match before.map_or(Previous::Gone, |b| b.previous(sql, mode, found)) {
                Previous::Rows(rows) => {
                    self.answers().show(key, &rows);
                    if let Some(client) = self.clients.get_mut(key) {
                        client.forget_command();
                    }
                    return Handled::Used;
                }
                Previous::Text(text_instead) if as_it_is || !text.immediate => {
                    instead = Some(text_instead);
                }
                Previous::Text(_) | Previous::Gone => {
                    if let Some(client) = self.clients.get_mut(key) {
                        client.forget_command();
                    }
                    return self.previous_gone(key);
                }
                Previous::Same => {}
            }
        }
        if text.immediate {
            statement.explain();
        }
        statement.standing = match text.immediate {
            true => standing_of(found),
            false => standing_of_execution(sql, found),
        };
        if let Some(known) = &known {
            known.mark(&mut statement);
        }
        if let Some(mut planning) = self.planning(key) {
            planning.plan(SchemaText { found, ..judged }, &mut statement);
            planning.client.touch(sql, mode, found);
            planning.client.touch_by_code(known.as_ref());
        }
        let Some(instead) = instead else {
            return self.start(key, message, statement);
        };
        if as_it_is {
            if let Some(client) = self.clients.get_mut(key) {
                client.forget_command();
            }
            statement.standing = standing_of(found);
            let Some(client) = self.clients.get(key) else {
                return Handled::Used;
            };
            let message = client.reworded(message, &instead);
            return self.start(key, &message, statement);
        }
        if let Some(mut naming) = self.naming(key) {
            naming.execute_instead(&instead, text);
        }
        self.start(key, message, statement)
    }

    /// The logs of statements, and what their lines are made of.
    pub(crate) fn logs(&mut self) -> Logging<'_, N> {
        Logging {
            net: &self.net,
            shared: &self.shared,
            settings: &self.settings,
            clients: &self.clients,
            backends: &self.backends,
            pools: &self.backend_pools,
            digests: &self.figures.digests,
            logs: &mut self.statement_logs,
        }
    }

    /// Runs a command on the client's backend, on another one, or later.
    pub(crate) fn start(&mut self, key: Key, message: &[u8], statement: Statement) -> Handled {
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        if std::mem::take(&mut client.interrupted) {
            client.last.lose_conditions();
            self.answers().refuse(key, &Refusal::Interrupted);
            return Handled::Used;
        }
        client.statement = statement;
        if let Some(lease) = client.lease() {
            if self.matching().waits_for_read_back(key, lease) {
                return self.waiters().wait_outside(key);
            }
            if self.matching().waits_with_lease(key, lease) {
                return self.wait_in_lane(key, message.len());
            }
            return self.begin(key, lease, message);
        }
        if self.draining.is_some() {
            self.refuse_and_leave(key, &Refusal::Draining);
            return Handled::Used;
        }
        if let Some(lease) = self.acquire(key) {
            return self.begin(key, lease, message);
        }
        if let Some(lease) = self.matching().place_to_ride(key, message)
            && !self.matching().is_ahead()
        {
            self.send_statement(key, lease, message, &Front::CannotFail);
            return Handled::Used;
        }
        self.wait_in_lane(key, message.len())
    }

    /// Sends a statement to a backend, behind whatever is in flight there and, in `front`, what
    /// brings the backend into the client's session.
    pub(crate) fn send_statement(&mut self, key: Key, lease: Key, message: &[u8], front: &Front) {
        let now = self.net.now();
        // Who rides was chosen by the present names (`matching/riding.rs`).
        let others = |c: &InFlight| c.purpose == Purpose::Statement;
        let backend = self.backends.get(lease);
        let rides = backend.is_some_and(|backend| backend.flight().iter().any(others));
        if !rides && let Some(mut planning) = self.planning(key) {
            planning.judge_again(message);
        }
        let runs = *front == Front::CannotFail;
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if runs {
            client.note_pins(now, &mut self.counts);
        }
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        if !client.change_state(ClientState::Running, now) {
            return self.clients.close_later(key);
        }
        let waited = match client.place.is_held() {
            true => now.since(client.place.since()),
            false => Duration::ZERO,
        };
        self.figures.sent(client.user, waited);
        self.figures.digests.sent(client.statement.digest, waited);
        client.binding.join(lease);
        client.last.sent();
        if client.statement.spoils {
            backend.reuse.end_with_client();
        }
        let first = backend.flight().is_empty();
        let behind = backend.flight().back().and_then(|command| command.owner);
        self.counts.ridden += u64::from(behind.is_some_and(|owner| owner != key));
        // Beside a transaction, or what a client is pinned for, nobody else has a place.
        let apart = client.is_held() || backend.in_transaction();
        let shape = if apart { 0 } else { client.shape() };
        if first {
            backend.riding = match self.shapes.trusts(shape) {
                true => Riding::Open,
                false => Riding::Closed,
            };
        }
        let statement = client.statement;
        if self.settings.logs_statements() {
            self.logs().note((key, lease), message, waited);
        }
        let tells = statement.looks_back == LooksBack::AtRowCount;
        if statement.code == Code::Unread || tells {
            let out = self.pair(key, lease).map(|mut pair| {
                let mut out = match statement.code {
                    Code::Unread => pair.hide_names(),
                    _ => Vec::new(),
                };
                if tells {
                    pair.put_row_count(&mut out);
                }
                out
            });
            if let Some(out) = out.filter(|out| !out.is_empty()) {
                self.backend_writer().send(lease, &out);
            }
        }
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        if let Front::Joined(joined) = front {
            backend.expect_joined(key, joined);
        }
        let kept = match first || shape == 0 {
            true => 0,
            false => backend.riders.keep(message),
        };
        backend.expect(InFlight {
            owner: Some(key),
            purpose: Purpose::Statement,
            reply: Reply::new(statement.shape),
            shape,
            sent: now,
            first,
            left: None,
            kept,
        });
        let unread = statement.code == Code::Unread;
        let known = !unread && statement.code != Code::None;
        self.counts.code_known += u64::from(known);
        self.counts.code_unread += u64::from(unread);
        if runs && let Some(client) = self.clients.get_mut(key) {
            client.note_touched(Some(backend), (now, &mut self.counts));
        }
        match front {
            Front::Joined(joined) => {
                backend.put_joined(message, joined);
                self.backend_writer().send(lease, b"");
            }
            _ => self.send_command(key, lease, message),
        }
        if let Some(backend) = self.backends.get_mut(lease) {
            self.running.begins(backend, self.net.now());
        }
    }
}
