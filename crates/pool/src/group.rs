//! One group: a thread's clients, backends and queues, and the turn that moves them.
//!
//! The hot path, in the order in which a statement takes it (more of each in `ARCHITECTURE.md`):
//! [`Group::turn`] → `clients.rs: consume` (bytes become a command) → `query.rs: on_query` (a text
//! becomes a [`crate::statements::plan::Plan`], and `carry_out_plan` does what that says) →
//! `statements.rs: start` (a backend now, or a place in the queue) → `begin` (the session is
//! restored) → `send_statement` → `backends.rs: digest_reply` (the reply is relayed) →
//! `endings.rs: statement_done` → `settle` → `checkout.rs: release` (the next in the queue).
//!
//! Decisions are made by values that know no group and are tested without one: what a
//! command comes to ([`crate::statements`]), what becomes of a client and its backend
//! ([`crate::pair`]), who gets what ([`crate::scheduler::matching`]). They borrow what they see,
//! and say what they have decided; the group does it.
//!
//! No step calls back into another client's command: what is to be done next is a task, which the
//! turn carries out when the step has returned (`group/tasks.rs`).
//!
//! A group shares nothing with others but what never changes ([`Shared`]). It has no socket and no
//! clock of its own: bytes, events and time come through [`Net`], so a whole group runs in
//! simulation from a seed.
//!
//! Invariants:
//! - a backend is checked out and in by `checkout.rs` only, and is bound to one client;
//! - each backend, dialling ones included, has a slot of the budget that all groups share;
//! - an object is never removed in the middle of its own handling: clients that must go are noted
//!   in `closing` and closed at the end of the turn.

pub(crate) mod backends;
pub(crate) mod checkout;
pub(crate) mod clients;
pub(crate) mod deliveries;
pub(crate) mod drain;
pub(crate) mod parts;
pub(crate) mod prepared;
#[cfg(test)]
pub(crate) mod scripted;
pub(crate) mod session_state;
pub(crate) mod shared;
pub(crate) mod statements;
pub(crate) mod tasks;
pub(crate) mod tokens;

use crate::auth::auth_delay::AuthDelays;
use crate::backend::pools::BackendPools;
use crate::backend::{Backend, BackendState};
use crate::client::buffers::lent::Lent;
use crate::client::buffers::received::LongInput;
use crate::client::buffers::room::Inputs;
use crate::client::buffers::transport::HANDSHAKES_PER_TURN;
use crate::client::clients::Clients;
use crate::cluster::elsewhere::GroupReads;
use crate::config::Settings;
use crate::group::clients::departing::Departures;
use crate::group::deliveries::TurnOutput;
use crate::group::drain::Drain;
use crate::group::shared::{Order, Shared};
use crate::group::tasks::{Task, Tasks};
use crate::group::tokens::{BACKEND, BackendId, CLIENT, ClientId, KILL_CONNECTION, LISTENER};
use crate::limits::addresses::CountedAddress;
use crate::limits::memory::ReportedMemory;
use crate::limits::retained::Retained;
use crate::limits::rules::RulesTaken;
use crate::limits::slow_readers::SlowReaders;
use crate::limits::spool::Spool;
use crate::observe::figures::Figures;
use crate::observe::figures::counts::Counts;
use crate::observe::figures::digests::Digests;
use crate::observe::limited_log::LimitedLog;
use crate::observe::listing::{Answer, Question, Said, Wanted};
use crate::observe::statement_logs::StatementLogs;
use crate::scheduler::admission::Arrivals;
use crate::scheduler::bulk::Bulk;
use crate::scheduler::running::Running;
use crate::scheduler::waiting_count::WaitingCount;
use crate::server::schemas::Schemas;
use crate::server::status::ServerStatus;
use crate::server::watched::code_catalogue::Seen;
use crate::statements::kill::connection::KillConnection;
use crate::statements::kill::jobs::{KillAsk, KillEnd};
use crate::upgrade::migrating::Migrating;
use reactor::{Event, Net, Slots, Time, Token};
use session::global_defaults::GlobalDefaults;
use session::known_digests::KnownDigests;
use session::last_gtid::LastGtid;
use session::prepared::Definitions;
use session::state::Interner;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Interval at which limits that need no exactness (idle, login, write times) are checked.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// The client of the event that comes so many events later is fetched from memory meanwhile.
const EVENTS_AHEAD: usize = 2;

/// One group.
pub struct Group<N: Net> {
    pub(crate) net: N,
    shared: Arc<Shared>,
    /// The settings in force, and which those are.
    settings: Arc<Settings>,
    settings_epoch: u64,
    /// Rules about digests.
    rules: RulesTaken,
    index: usize,
    pub(crate) clients: Clients<N::Sock>,
    pub(crate) backends: Slots<Backend<N::Sock>, BackendId>,
    backend_pools: BackendPools,
    /// True if it has a slot of the budget for a backend that takes the place of another.
    has_slot: bool,
    sessions: Interner,
    /// Bytes that are kept for clients.
    retained: Retained,
    /// Bytes kept for clients, as all groups know them; the client that holds most is not looked
    /// for before the moment.
    reported_memory: ReportedMemory,
    /// Schemas that a pool is known to have been let into.
    schemas: Schemas,
    /// Clients that wait in queues.
    waiting_count: WaitingCount,
    /// Statements that run here.
    running: Running,
    /// Texts that clients have prepared.
    definitions: Definitions,
    /// Key that the nonces of greetings are made of.
    nonce_key: [u8; 32],
    /// Digests that may be pipelined.
    known_digests: KnownDigests,
    /// Knowledge of code in triggers and views.
    code_seen: Seen,
    /// Number of definitions of schemas that it knows of.
    schemas_seen: u64,
    /// Global defaults that sessions begin with.
    defaults: GlobalDefaults,
    /// Backends that something is to be written to at the end of the turn.
    dirty: Vec<BackendId>,
    /// Long work that goes on in later turns.
    bulk: Bulk,
    tasks: Tasks,
    /// Connections that wait to be accepted.
    arrivals: Arrivals,
    /// Clients that go to another process next, while clients do.
    pub(crate) departures: Departures,
    /// Backends that are on their way with their clients.
    pub(crate) migrating: Migrating<N::Sock>,
    /// Counts up when another server may answer from here on (see [`session::known_good`]).
    epoch: u64,
    drain: Drain,
    /// Clients that do not read their replies.
    slow_readers: SlowReaders,
    /// `@@last_gtid` of each client to which one was reported.
    gtids: BTreeMap<ClientId, LastGtid>,
    /// Servers that are read, of several, and what clients have written.
    reads: GroupReads,
    /// Counts of clients by their address; without such limits there are none.
    counted: HashMap<ClientId, CountedAddress>,
    /// Messages that its thread has to hand over.
    pub turn_output: TurnOutput,
    /// Lines about logins that failed, and about lost connections to the server.
    log: LimitedLog,
    /// Statements that run and may be logged.
    statement_logs: StatementLogs,
    /// KILLs that go to the server, and the connection that carries them.
    kill_connection: KillConnection<N::Sock>,
    /// Commands of clients that have not come whole.
    inputs: Inputs,
    /// Bytes of the client that are being handled, if they are long.
    current_input: LongInput,
    /// Clients whose failed authentication is answered later.
    auth_delays: AuthDelays,
    /// Steps of handshakes that may still be made in this turn.
    handshakes_left: usize,
    pub(crate) counts: Counts,
    figures: Figures,
    /// Buffers that are lent for a moment.
    lent: Lent,
    sweep_at: Time,
    /// Number of sweeps.
    sweeps: u32,
    /// State of the server's address, as the group has seen it.
    server_status: ServerStatus,
    /// The pool of who was refused because the server is away: a dial looks whether it still is.
    refused_pool: Option<usize>,
}

impl<N: Net> Group<N> {
    /// Group number `index` with nobody in it.
    pub fn new(mut net: N, shared: Arc<Shared>, index: usize) -> Group<N> {
        let sweep_at = net.now() + SWEEP_EVERY;
        let mut nonce_key = [0; 32];
        net.random(&mut nonce_key);
        let spool = Spool::new(index, shared.spool_block);
        let (settings_epoch, settings) = (shared.settings_epoch(), shared.settings());
        let digests = Digests::of_group(settings.digests_max, shared.groups);
        let figures = Figures::new(settings.users.len(), digests);
        let schemas_seen = shared.schemas_defined.count();
        Group {
            net,
            shared,
            settings,
            settings_epoch,
            rules: RulesTaken::default(),
            index,
            clients: Clients::default(),
            backends: Slots::default(),
            backend_pools: BackendPools::default(),
            has_slot: false,
            sessions: Interner::default(),
            retained: Retained::default(),
            reported_memory: ReportedMemory::default(),
            schemas: Schemas::default(),
            waiting_count: WaitingCount::default(),
            running: Running::default(),
            definitions: Definitions::default(),
            nonce_key,
            known_digests: KnownDigests::default(),
            code_seen: Seen::default(),
            schemas_seen,
            defaults: GlobalDefaults::default(),
            dirty: Vec::new(),
            bulk: Bulk::default(),
            tasks: Tasks::default(),
            epoch: 1,
            current_input: LongInput::default(),
            arrivals: Arrivals::default(),
            departures: Departures::default(),
            migrating: Migrating::default(),
            drain: Drain::Off,
            slow_readers: SlowReaders::new(spool),
            gtids: BTreeMap::new(),
            reads: GroupReads::default(),
            counted: HashMap::new(),
            turn_output: TurnOutput::default(),
            log: LimitedLog::default(),
            statement_logs: StatementLogs::default(),
            kill_connection: KillConnection::default(),
            inputs: Inputs::default(),
            auth_delays: AuthDelays::default(),
            handshakes_left: HANDSHAKES_PER_TURN,
            counts: Counts::default(),
            figures,
            lent: Lent::default(),
            sweep_at,
            sweeps: 0,
            server_status: ServerStatus::default(),
            refused_pool: None,
        }
    }

    /// Takes the settings in force, if they are others by now. What is counted for users with a
    /// limit only is counted anew: a limit may have come, or gone.
    pub(crate) fn take_settings(&mut self) {
        let epoch = self.shared.settings_epoch();
        if epoch != self.settings_epoch {
            self.waiters().count_for_limits(false);
            self.room().count_all(false);
            let old = std::mem::replace(&mut self.settings, self.shared.settings());
            self.settings_epoch = epoch;
            self.members().follow_users();
            // What is on its way with a password of before would be refused for it.
            let (now, settings) = (self.net.now(), self.settings.clone());
            for pool in self.backend_pools.follow_passwords(&old, &settings) {
                self.backend_pools.pools[pool].dial_succeeded(now);
                let dials =
                    |b: &Backend<N::Sock>| b.pool == pool && b.state() == BackendState::Dialling;
                for key in self.backends.keys_of(dials) {
                    self.closer().retire(key);
                }
            }
            self.waiters().count_for_limits(true);
            self.room().count_all(true);
            self.address_counts().count_all();
            self.figures.fit(self.settings.users.len());
        }
    }

    /// Handles everything that is ready: the events, what an earlier turn left, what is due.
    pub fn turn(&mut self, events: &[Event]) {
        self.handshakes_left = HANDSHAKES_PER_TURN;
        self.take_settings();
        self.rules.renew(&self.shared.rules);
        if self.shared.globals.version() != self.defaults.version() {
            self.take_globals();
        }
        if self.shared.schemas_defined.count() != self.schemas_seen {
            self.take_schemas();
        }
        let changed = self.server_status.changes(&self.shared.upstream);
        if changed.is_back || changed.has_moved {
            self.notice_upstream(changed);
        }
        self.take_readers();
        self.run_tasks();
        for (at, event) in events.iter().enumerate() {
            if let Some(coming) = events.get(at + EVENTS_AHEAD) {
                prefetch_client(coming.token, &self.clients, &self.backends);
            }
            let key = event.token.key();
            match event.token.kind() {
                LISTENER => self.arrivals.note_pending(key.parts().0 as usize),
                CLIENT => self.on_client(key.into(), *event),
                BACKEND => self.on_backend(key.into(), *event),
                KILL_CONNECTION => self.on_kill_connection(key.into(), *event),
                _ => {}
            }
            self.run_tasks();
        }
        for key in self.bulk.take_at_once() {
            self.read_or_line_up(key);
            self.run_tasks();
        }
        let inputs = self.inputs.has_line() || self.inputs.has_waiting();
        if !self.bulk.is_at_rest(self.net.now(), inputs) {
            self.do_bulk_work();
        }
        self.accept_arrivals();
        self.run_tasks();
        self.close_marked();
        let (now, least) = (self.net.now(), self.settings.server_down_fail);
        if let Some(lasted) = self.shared.upstream.silent_for(now, least) {
            self.lose_unanswered(lasted);
        }
        if !self.waiting_count.is_empty() {
            self.expire();
        }
        if self.auth_delays.next() <= self.net.now() {
            self.answer_delayed();
        }
        if self.net.now() >= self.sweep_at {
            self.sweep_at = self.net.now() + SWEEP_EVERY;
            self.sweep();
        }
        if self.drain.is_look_due(self.net.now()) {
            let now = self.net.now();
            self.drain
                .close_all(&mut self.clients, &self.departures, now);
        }
        self.run_tasks();
        if !self.kill_connection.is_idle() {
            self.next_kill();
        }
        if !self.slow_readers.is_at_rest() {
            self.relieve_backends();
        }
        if !self.waiting_count.is_empty() {
            self.serve_all();
        }
        self.run_tasks();
        let wants = !self.waiting_count.is_empty()
            || self.shared.budget.wants(self.index)
            || self.backend_pools.wants_account;
        if wants || self.refused_pool.is_some() {
            self.dial_where_wanted();
        }
        self.lend();
        self.run_tasks();
        self.flush_dirty();
        // A connection that broke as it was written to has left its client to be served.
        self.run_tasks();
        self.close_marked();
        self.flush_dirty();
        let statements = self.counts.statements;
        self.matching().publish(statements);
        self.room().publish();
        let held = self.survey().held_for_clients();
        let is_short = self.shared.is_memory_full.load(Relaxed);
        let (memory, now) = (&self.shared.memory, self.net.now());
        if let Some(look) = self.reported_memory.report(memory, held, is_short, now) {
            self.close_who_holds_most(look);
        }
    }

    /// Moment at which [`Group::turn`] must be called at the latest, events or not.
    pub fn deadline(&mut self) -> Time {
        let waits = !self.waiting_count.is_empty();
        let is_behind = waits && self.matching().is_behind() && !self.matching().yields();
        let is_busy = self.bulk.turns_at_once() || self.clients.has_closing();
        if is_behind || is_busy || !self.tasks.is_empty() {
            return Time(0);
        }
        let now = self.net.now();
        let is_short = self.shared.is_memory_full.load(Relaxed);
        let lent = self.matching().next_lent();
        let mut next = lent
            .map_or(Time::NEVER, |(at, _)| at)
            .min(self.sweep_at)
            .min(self.auth_delays.next())
            .min((self.shared.upstream).down_at(now, self.settings.server_down_fail))
            .min((self.arrivals).next(self.shared.login_gap(&self.settings, self.net.now())))
            .min(self.inputs.next_look(self.net.now()))
            .min((self.reported_memory).next_look(&self.shared.memory, is_short))
            .min(self.bulk.next(self.inputs.has_line()));
        if waits {
            next = next.min(self.matching().next_for_waiting());
        }
        if !self.slow_readers.is_at_rest() {
            next = next.min((self.slow_readers).next_relief(&self.backends, waits, now));
        }
        next.min(self.drain.next(self.settings.drain_max).unwrap_or(next))
    }

    /// Statements that wait because the share of those known to be long is used up; for tests.
    pub fn set_aside(&mut self) -> usize {
        self.matching().set_aside()
    }

    /// The group's world.
    pub fn net_mut(&mut self) -> &mut N {
        &mut self.net
    }

    /// Carries out an order.
    pub fn order(&mut self, order: Order) {
        match order {
            Order::CloseInTurns(over) => {
                self.drain.begin_leaving(over, self.net.now());
                // What waits for the end of a pause is to run, or nobody would ever hear of it.
                self.shared.paused.store(false, Relaxed);
            }
            Order::Drain => {
                self.drain.begin_ending(self.net.now());
                self.shared.paused.store(false, Relaxed);
                let now = self.net.now();
                self.drain
                    .close_all(&mut self.clients, &self.departures, now);
            }
            Order::Report => {
                let lines = self.survey().report();
                self.turn_output.put_report(lines);
            }
            Order::Ask(question) => self.on_question(question),
            Order::Reconnect => self.closer().leave_backends(|_| true),
            Order::Kill(ask) => {
                if let Some(end) = self.kill_anywhere(&ask) {
                    self.answer_asker(ask.asker, end);
                }
            }
            Order::Killed(killer, end) => self.kill_ends(killer, &end),
            Order::PasswordChecked(key, checked) => self.on_password_checked(key, checked),
            Order::TextRead(key, read) => {
                let (client, now) = (self.clients.get_mut(key), self.net.now());
                if client.is_some_and(|client| client.takes_from_reader(read, now)) {
                    self.tasks.add(Task::Read(key));
                }
            }
            Order::Spool(done) => self.unread().spooled(done),
            // The thread of the group knows of these.
            Order::Look | Order::Give(_) | Order::Keep | Order::CloseListeners => {}
            Order::Accept | Order::Leave | Order::Census => {}
        }
        self.run_tasks();
        self.close_marked();
    }

    /// True when a drain has ended: nobody is left, or its time is up.
    pub fn is_drained(&self) -> bool {
        let is_left = !self.clients.is_empty();
        (self.drain).is_over(is_left, self.settings.drain_max, self.net.now())
    }

    /// Answers a question of the console.
    fn on_question(&mut self, question: Question) {
        let said = match question.what {
            Wanted::Clients { from, busy } => self.survey().client_lines(from, busy),
            Wanted::Sums { from } => self.survey().sums(from),
            Wanted::Holder => self.survey().holder_line(),
            Wanted::Backends => self.survey().backend_lines(),
            Wanted::Kill { id, idle_for, .. } if !self.survey().is_idle_for(id, idle_for) => {
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
                Said::Killed(self.kill(&ask).unwrap_or(KillEnd::Done))
            }
        };
        let ticket = question.ticket;
        self.turn_output.answer(Answer { ticket, said });
    }

    /// Limits that need no exactness.
    fn sweep(&mut self) {
        self.sweeps = self.sweeps.wrapping_add(1);
        for (key, refusal) in self.room().sweep() {
            self.refuse_input(key, &refusal);
        }
        self.end_late_clients();
        self.client_reader().close_departed();
        self.sweep_backends();
        self.keep_time_limits();
        self.give_statements_back();
        for backend in self.members().outdated_idle() {
            self.closer().retire(backend);
        }
        self.drop_late_kills();
        let now = self.net.now();
        self.log.tell_omitted(&mut self.statement_logs, now);
        self.log.tell_idle(now, self.counts.idle_closed);
        self.unread().end_longest();
        if self.drain.is_ending() {
            let now = self.net.now();
            self.drain
                .close_all(&mut self.clients, &self.departures, now);
        }
    }

    /// Closes those who must go; closing one may free a backend for another.
    fn close_marked(&mut self) {
        while let Some(key) = self.clients.next_to_close() {
            self.close(key);
            self.run_tasks();
        }
    }
}

/// Prefetches the memory of the client that an event is about: its own, or the answer to its
/// statement.
fn prefetch_client<S>(token: Token, clients: &Clients<S>, backends: &Slots<Backend<S>, BackendId>) {
    let client = match token.kind() {
        CLIENT => Some(token.key().into()),
        BACKEND => {
            let backend = backends.get(token.key().into());
            backend.and_then(|backend| backend.flight().front()?.owner)
        }
        _ => None,
    };
    if let Some(client) = client {
        clients.prefetch(client);
    }
}

#[cfg(test)]
pub(crate) mod tests;
