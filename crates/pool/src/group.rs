//! One group: a thread's clients, backends and queues, and the turn that moves them.
//!
//! The hot path, in the order in which a statement takes it (more of each in `ARCHITECTURE.md`):
//! [`Group::turn`] → `pump.rs: consume` (bytes become a command) → `query.rs: on_query` (a text
//! becomes a [`crate::statements::plan::Plan`], and `carry_out_plan` does what that says) →
//! `start.rs: start` (a backend now, or a place in the queue) → `begin` (the session is
//! restored) → `send_statement` → `replies.rs: digest_reply` (the reply is relayed) →
//! `endings.rs: statement_done` → `settle` → `checkout.rs: release` (the next in the queue).
//!
//! Decisions are made by values that know no group and are tested without one: what a
//! command comes to ([`crate::statements`]), what becomes of a client and its backend
//! ([`crate::pair`]), who gets what ([`crate::scheduler::matching`]). They borrow what they see,
//! and say what they have decided; the group does it.
//!
//! A step is a function over the group's [`Parts`], in the file of its subject: it cannot call the
//! turn, nor another client's command. What is to be done next is a task, which the turn carries
//! out when the step has returned (`group/tasks.rs`).
//!
//! A group shares nothing with others but what never changes ([`Shared`]). It has no socket and no
//! clock of its own: bytes, events and time come through [`Net`], so a whole group runs in
//! simulation from a seed.
//!
//! Invariants:
//! - a backend is checked out and in by `checkout.rs` only, and is bound to one
//!   client;
//! - each backend, dialling ones included, has a slot of the budget that all groups share;
//! - an object is never removed in the middle of its own handling: clients that must go are noted
//!   in `closing` and closed at the end of the turn.

pub(crate) mod bulk_turn;
pub(crate) mod deliveries;
pub(crate) mod drain;
pub(crate) mod inputs;
pub(crate) mod parts;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod tasks;
pub(crate) mod tokens;

use crate::auth::logins;
use crate::backend::{Backend, dialling, losses, replies};
use crate::client::buffers::transport::HANDSHAKES_PER_TURN;
use crate::client::clients::Clients;
use crate::client::{arrivals, closing, leaving, pump};
use crate::cluster::routing;
use crate::group::parts::Parts;
use crate::group::shared::{Order, Shared};
use crate::group::tasks::TASKS_MAX;
use crate::group::tasks::Task;
use crate::group::tokens::{BACKEND, BackendId, CLIENT, ClientId, KILL_CONNECTION, LISTENER};
use crate::limits::slow_readers::relieving;
use crate::limits::{late_clients, memory_share};
use crate::observe::listing::{Answer, Question, Said, Wanted};
use crate::scheduler::{queueing, serving, sharing};
use crate::server::{globals, outages, redefinition};
use crate::statements::kill::carrying;
use crate::statements::kill::jobs::{KillAsk, KillEnd};
use crate::statements::{endings, prepared_commands};
use reactor::{Event, Net, Slots, Time, Token};
use std::sync::Arc;
use std::time::Duration;

/// Interval at which limits that need no exactness (idle, login, write times) are checked.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The client of the event that comes so many events later is fetched from memory meanwhile.
const EVENTS_AHEAD: usize = 2;

/// One group.
pub struct Group<N: Net> {
    /// Parts that its steps work on.
    pub parts: Parts<N>,
    sweep_at: Time,
    /// Number of sweeps.
    sweeps: u32,
}

/// Prefetches the memory of the client that an event is about: its own, or the answer to its
/// statement.
fn prefetch_client<S>(token: Token, clients: &Clients<S>, backends: &Slots<Backend<S>, BackendId>) {
    let client = match token.kind() {
        CLIENT => Some(token.key().into()),
        BACKEND => {
            let backend = backends.get(token.key().into());
            backend.and_then(|backend| backend.flight.front()?.owner)
        }
        _ => None,
    };
    if let Some(client) = client {
        clients.prefetch(client);
    }
}

impl<N: Net> Group<N> {
    /// Group number `index` with nobody in it.
    pub fn new(net: N, shared: Arc<Shared>, index: usize) -> Group<N> {
        Group {
            sweep_at: net.now() + SWEEP_EVERY,
            sweeps: 0,
            parts: Parts::new(net, shared, index),
        }
    }

    /// Handles everything that is ready: the events, what an earlier turn left, what is due.
    pub fn turn(&mut self, events: &[Event]) {
        begin_turn(&mut self.parts);
        self.run_tasks();
        for (at, event) in events.iter().enumerate() {
            let parts = &mut self.parts;
            if let Some(coming) = events.get(at + EVENTS_AHEAD) {
                prefetch_client(coming.token, &parts.clients, &parts.backends);
            }
            let key = event.token.key();
            match event.token.kind() {
                LISTENER => (parts.client_side.arrivals).note_pending(key.parts().0 as usize),
                CLIENT => pump::on_client(parts, key.into(), *event),
                BACKEND => replies::on_backend(parts, key.into(), *event),
                KILL_CONNECTION => carrying::on_kill_connection(parts, key.into(), *event),
                _ => {}
            }
            self.run_tasks();
        }
        for key in self.parts.work.bulk.take_at_once() {
            replies::read_or_line_up(&mut self.parts, key);
            self.run_tasks();
        }
        let (inputs, now) = (&self.parts.client_side.inputs, self.parts.net.now());
        let waits = inputs.has_line() || inputs.has_waiting();
        if !self.parts.work.bulk.is_at_rest(now, waits) {
            self.do_bulk_work();
        }
        arrivals::accept_arrivals(&mut self.parts);
        self.run_tasks();
        self.close_marked();
        end_what_is_due(&mut self.parts);
        if self.parts.net.now() >= self.sweep_at {
            self.sweep_at = self.parts.net.now() + SWEEP_EVERY;
            self.sweeps = self.sweeps.wrapping_add(1);
            sweep(&mut self.parts, self.sweeps);
        }
        let (work, now) = (&mut self.parts.work, self.parts.net.now());
        while let Some(&(at, key)) = work.answered.first()
            && at <= now
        {
            work.answered.pop_first();
            work.tasks.add(Task::Read(key));
        }
        if self.parts.work.drain.is_look_due(self.parts.net.now()) {
            close_drained(&mut self.parts);
        }
        self.run_tasks();
        let parts = &mut self.parts;
        if !parts.server_side.kill_connection.is_idle() {
            carrying::next_kill(parts);
        }
        if !parts.client_side.slow_readers.is_at_rest() {
            relieving::relieve_backends(parts);
        }
        if !parts.client_side.waiting_count.is_empty() || parts.shared.is_running_wanted() {
            serving::serve_all(parts);
        }
        self.run_tasks();
        let parts = &mut self.parts;
        let wants = !parts.client_side.waiting_count.is_empty()
            || parts.shared.budget.wants(parts.index)
            || parts.backend_pools.wants_account;
        if wants || parts.server_side.refused_pool.is_some() {
            dialling::dial_where_wanted(parts);
        }
        sharing::lend(parts);
        self.run_tasks();
        replies::flush_dirty(&mut self.parts);
        // A connection that broke as it was written to has left its client to be served.
        self.run_tasks();
        self.close_marked();
        end_turn(&mut self.parts);
    }

    /// Moment at which [`Group::turn`] must be called at the latest, events or not.
    pub fn deadline(&mut self) -> Time {
        let parts = &mut self.parts;
        let waits = !parts.client_side.waiting_count.is_empty();
        let is_behind = waits && parts.matching().is_behind() && !parts.matching().yields();
        let is_busy = parts.work.bulk.turns_at_once() || parts.clients.has_closing();
        if is_behind || is_busy || !parts.work.tasks.is_empty() {
            return Time(0);
        }
        let now = parts.net.now();
        let login_gap = parts.shared.scheduling.login_gap(&parts.settings, now);
        let lent = parts.matching().next_lent();
        let mut next = lent
            .map_or(Time::NEVER, |(at, _)| at)
            .min(self.sweep_at)
            .min(parts.client_side.auth_delays.next())
            .min((parts.shared.upstream).down_at(now, parts.settings.server_down_fail))
            .min(parts.client_side.arrivals.next(login_gap))
            .min((parts.client_side.inputs).next_look(parts.net.now()))
            .min((parts.client_side.reported_memory).next_look(&parts.shared.retained.memory))
            .min((parts.work.bulk).next(parts.client_side.inputs.has_line()));
        if waits || parts.shared.is_running_wanted() {
            next = next.min(parts.matching().next_for_waiting());
        }
        let slow_readers = &parts.client_side.slow_readers;
        if !slow_readers.is_at_rest() {
            next = next.min(slow_readers.next_relief(&parts.backends, waits, now));
        }
        let drains = parts.work.drain.next(parts.settings.drain_max);
        let answered = parts.work.answered.first().map(|(at, _)| *at);
        (drains.into_iter().chain(answered)).fold(next, Time::min)
    }

    /// Statements that wait because the share of those known to be long is used up; for tests.
    pub fn set_aside(&mut self) -> usize {
        self.parts.matching().set_aside()
    }

    /// Carries out an order.
    pub fn order(&mut self, order: Order) {
        let parts = &mut self.parts;
        match order {
            Order::CloseInTurns(over) => {
                (parts.work.drain).begin_leaving(over, parts.net.now());
                // What waits for the end of a pause is to run, or nobody would ever hear of it.
                parts.shared.scheduling.set_paused(false);
            }
            Order::Drain => {
                parts.work.drain.begin_ending(parts.net.now());
                parts.shared.scheduling.set_paused(false);
                close_drained(parts);
            }
            Order::Report => {
                let lines = parts.survey().report();
                parts.work.turn_output.put_report(lines);
            }
            Order::Ask(question) => on_question(parts, question),
            Order::Reconnect => parts.closer().leave_backends(|_| true),
            Order::Kill(ask) => {
                if let Some(end) = carrying::kill_anywhere(parts, &ask) {
                    carrying::answer_asker(parts, ask.asker, end);
                }
            }
            Order::CloseSeat(seat) => parts.clients.close_seat(seat),
            Order::Killed(killer, end) => carrying::kill_ends(parts, killer, &end),
            Order::PasswordChecked(key, checked) => {
                logins::on_password_checked(parts, key, checked)
            }
            Order::TextRead(key, read) => {
                let (client, now) = (parts.clients.get_mut(key), parts.net.now());
                if client.is_some_and(|client| client.takes_from_reader(read, now)) {
                    parts.work.tasks.add(Task::Read(key));
                }
            }
            Order::Spool(done) => parts.unread().spooled(done),
            // The thread of the group knows of these.
            Order::Look | Order::Give(_) | Order::Keep | Order::CloseListeners => {}
            Order::Accept | Order::Leave | Order::Census => {}
        }
        self.run_tasks();
        self.close_marked();
    }

    /// True when a drain has ended: nobody is left, or its time is up.
    pub fn is_drained(&self) -> bool {
        let parts = &self.parts;
        let is_left = !parts.clients.is_empty();
        (parts.work.drain).is_over(is_left, parts.settings.drain_max, parts.net.now())
    }

    /// Runs the tasks that the step before has left, and those that they leave.
    pub(crate) fn run_tasks(&mut self) {
        for _ in 0..TASKS_MAX {
            let Some(task) = self.parts.work.tasks.next() else {
                return;
            };
            match task {
                Task::Read(client) => pump::pump(&mut self.parts, client),
                Task::Settle(backend) => endings::settle(&mut self.parts, backend),
                Task::Pipeline(backend) => serving::take_followers(&mut self.parts, backend),
                Task::Serve => serving::serve(&mut self.parts),
                Task::Spare(pool) => {
                    if self.parts.matching().wants_spare(pool) {
                        dialling::dial(&mut self.parts, pool);
                    }
                }
            }
            debug_assert!(
                (self.parts.work.tasks)
                    .are_few(self.parts.clients.len() + self.parts.backends.len())
            );
        }
    }

    /// Serves a client with the bytes that it has sent, and does what that leaves.
    pub(crate) fn serve_client(&mut self, client: ClientId) {
        pump::pump(&mut self.parts, client);
        self.run_tasks();
    }

    /// Closes those who must go; closing one may free a backend for another.
    fn close_marked(&mut self) {
        while let Some(key) = self.parts.clients.next_to_close() {
            closing::close(&mut self.parts, key);
            self.run_tasks();
        }
    }
}

/// Takes what has changed since the last turn.
fn begin_turn<N: Net>(parts: &mut Parts<N>) {
    parts.work.handshakes_left = HANDSHAKES_PER_TURN;
    settings::take_settings(parts);
    parts.known.rules.renew(&parts.shared.scheduling.rules);
    if parts.shared.watched.globals.version() != parts.known.defaults.version() {
        globals::take_globals(parts);
    }
    if parts.shared.watched.schemas_defined.count() != parts.known.schemas_seen {
        redefinition::take_schemas(parts);
    }
    let changed = (parts.server_side.status).changes(&parts.shared.upstream);
    if changed.is_back || changed.has_moved {
        outages::notice_upstream(parts, changed);
    }
    if parts.shared.cluster.is_some() {
        routing::take_readers(parts);
    }
}

/// Ends what has waited for too long, and answers those whose delay is over.
fn end_what_is_due<N: Net>(parts: &mut Parts<N>) {
    let (now, least) = (parts.net.now(), parts.settings.server_down_fail);
    if let Some(lasted) = parts.shared.upstream.silent_for(now, least) {
        outages::lose_unanswered(parts, lasted);
    }
    if !parts.client_side.waiting_count.is_empty() {
        queueing::expire(parts);
    }
    if parts.client_side.auth_delays.next() <= parts.net.now() {
        logins::answer_delayed(parts);
    }
}

/// Writes what is left to be written, and tells the other groups what is held here.
fn end_turn<N: Net>(parts: &mut Parts<N>) {
    replies::flush_dirty(parts);
    let statements = parts.observed.counts.statements;
    parts.matching().publish(statements);
    parts.room().publish();
    let held = parts.survey().held_for_clients();
    let (memory, now) = (&parts.shared.retained.memory, parts.net.now());
    let look = (parts.client_side.reported_memory).report(memory, held, now);
    if let Some(look) = look {
        memory_share::close_who_holds_most(parts, look);
    }
}

/// Answers a question of the console.
fn on_question<N: Net>(parts: &mut Parts<N>, question: Question) {
    let said = match question.what {
        Wanted::Clients { from, busy } => parts.survey().client_lines(from, busy),
        Wanted::Sums { from } => parts.survey().sums(from),
        Wanted::Holder => parts.survey().holder_line(),
        Wanted::Backends => parts.survey().backend_lines(),
        Wanted::Kill { id, idle_for, .. } if !parts.survey().is_idle_for(id, idle_for) => {
            Said::Killed(KillEnd::Unknown(id))
        }
        Wanted::Kill { id, query, .. } => {
            let ask = KillAsk {
                asker: None,
                id,
                query,
                user: None,
                account: None,
            };
            // What the server is asked for ends by itself, or is said in the log.
            Said::Killed(carrying::kill(parts, &ask).unwrap_or(KillEnd::Done))
        }
    };
    let ticket = question.ticket;
    parts.work.turn_output.answer(Answer { ticket, said });
}

/// Keeps limits that need no exactness; `sweeps`: how many there have been.
fn sweep<N: Net>(parts: &mut Parts<N>, sweeps: u32) {
    for (key, refusal) in parts.room().sweep() {
        leaving::refuse_input(parts, key, &refusal);
    }
    late_clients::end_late_clients(parts, sweeps);
    parts.client_reader().close_departed();
    losses::sweep_backends(parts);
    late_clients::keep_time_limits(parts, sweeps);
    prepared_commands::give_statements_back(parts);
    for backend in parts.members().outdated_idle() {
        parts.closer().retire(backend);
    }
    carrying::drop_late_kills(parts);
    let now = parts.net.now();
    (parts.observed.log).tell_omitted(&mut parts.observed.statement_logs, now);
    (parts.observed.log).tell_idle(now, parts.observed.counts.idle_closed);
    parts.unread().end_longest();
    if parts.work.drain.is_ending() {
        close_drained(parts);
    }
}

/// Reads the clients whose turn has come in a drain: those that hold nothing and have sent nothing
/// are closed.
fn close_drained<N: Net>(parts: &mut Parts<N>) {
    let now = parts.net.now();
    for key in parts.clients.keys() {
        if parts.work.drain.has_turn(key, now) {
            parts.work.tasks.add(Task::Read(key));
        }
    }
}

#[cfg(test)]
pub(crate) mod scripted;

#[cfg(test)]
pub(crate) mod tests;
