//! A client: one accepted connection, and everything that must survive between its statements.
//!
//! An idle client costs this struct and nothing else: input and output live in boxes that exist
//! only while bytes are under way, the login in one that exists only during the login, the session
//! is shared with every client that has an equal one. The size is asserted at compile time.
//!
//! [`arrivals`] greets it, [`pump`] turns its bytes into commands, and [`closing`] is its end.
//! [`ClientState`] is where it stands; [`Client::change_state`] is the one place that moves it.

pub(crate) mod answers;
pub(crate) mod arrivals;
pub(crate) mod attributes;
pub(crate) mod buffers;
pub(crate) mod clients;
pub(crate) mod closing;
pub(crate) mod command;
pub(crate) mod compression;
pub(crate) mod executing;
pub(crate) mod guards;
pub(crate) mod held;
pub(crate) mod identity;
pub(crate) mod input;
pub(crate) mod leaving;
pub(crate) mod logging_in;
pub(crate) mod lost_backend;
pub(crate) mod modified;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod output;
pub(crate) mod pins;
pub(crate) mod place;
pub(crate) mod proxy_header;
pub(crate) mod pump;
pub(crate) mod queued;
pub(crate) mod reading;
pub(crate) mod reset_connection;
pub(crate) mod tls;
pub(crate) mod unrestored;

use crate::auth::login::Login;
use crate::backend::binding::Binding;
use crate::backend::relay::PendingChanges;
use crate::backend::{Backend, LastClient};
use crate::client::buffers::received::Input;
use crate::client::buffers::transport::Transport;
use crate::client::command::{CommandState, Effects, Ended};
use crate::client::executing::Prepared;
use crate::client::identity::Identity;
use crate::client::modified::Modified;
use crate::client::place::Place;
use crate::errors::reasons::PinReason;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::spool::Tail;
use crate::server::facts::ServerFacts;
use reactor::{Slots, Time};
use session::known_digests::Pipelinable;
use session::last_statement::{COUNTS, LEFT_BY_STATEMENT, LastStatement};
use session::meter::{Charge, Meter};
use session::pins::Pins;
use session::send_mode::SendMode;
use session::state::Session;
use session::statement::Statement;
use session::transaction::Doubt;
use sql::classify::{PinCause, Reads};
use sql::lex::LexMode;
use std::rc::Rc;
use wire::auth::NONCE_LEN;
use wire::capabilities::EXTENDED_OFFERED;
use wire::command::ReplyShape;

/// State of a client, in the order of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientState {
    /// Accepted; a PROXY header is to come, then it is greeted.
    Accepted,
    /// Greeted; its login is to come.
    Greeted,
    /// Logging in or changing its user; its proof is to come.
    Proving,
    /// A worker decrypts and compares its password.
    Verifying,
    /// Proven; a backend must accept its default schema.
    Opening,
    /// Between statements.
    Idle,
    /// Waiting in a queue with its statement.
    Waiting,
    /// Having its backend brought into its session's state; the statement follows.
    Restoring,
    /// Its statement runs.
    Running,
    /// Sending its local file, for which the server waits.
    Feeding,
    /// Waiting for its KILL.
    Asking,
    /// Moving to another process, which has not said yet that it has it; or come from one, which
    /// does not know yet that it is here.
    Moving,
    /// Its authentication failed, and it hears so a moment later.
    Delayed,
    /// Leaving once its last bytes are written.
    Leaving,
}

/// Bytes on their way to the client.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// All of them.
    pub bytes: Vec<u8>,
    /// Number of bytes that have been sent.
    pub sent: usize,
    /// Rest behind them.
    pub(crate) rest: Rest,
    /// Bytes in memory that were taken from them, and that the socket has not taken.
    pub(crate) transport_bytes: usize,
    /// Their charge on their group's memory.
    charge: Charge,
}

impl Output {
    fn memory(&self) -> usize {
        let spooled = match &self.rest {
            Rest::OnBackend => 0,
            Rest::Spooled(tail) => tail.memory(),
        };
        self.bytes.capacity() + spooled + self.transport_bytes
    }

    /// True if all in memory has been sent, and more is in the spool.
    pub(crate) fn waits_for_spool(&self) -> bool {
        let has_more = match &self.rest {
            Rest::OnBackend => false,
            Rest::Spooled(tail) => tail.len() > 0,
        };
        has_more && self.sent == self.bytes.len()
    }

    /// Counts what it takes now.
    pub(crate) fn count(&mut self, meter: &Meter) {
        self.charge.set(meter, self.memory());
    }

    /// True if at least what it keeps in memory has been counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.charge.bytes() >= self.bytes.len()
    }

    /// Bytes that were counted last.
    pub(crate) fn counted(&self) -> usize {
        self.charge.bytes()
    }
}

/// Place of the rest of a reply of which a client has not taken the front.
#[derive(Debug, Default)]
pub(crate) enum Rest {
    /// On its backend, which is read when the client has taken what was read before.
    #[default]
    OnBackend,
    /// Rest off its backend; what memory has no room for is in the spool.
    Spooled(Tail),
}

impl Rest {
    /// True if it is still on its backend.
    pub(crate) fn is_on_backend(&self) -> bool {
        matches!(self, Rest::OnBackend)
    }
}

/// Session of a client, the statement that runs under it or waits, and what the last one has left.
#[derive(Debug)]
pub(crate) struct ClientSession {
    /// The state its statements run under.
    pub(crate) state: Rc<Session>,
    /// Statement that runs, or for which it waits.
    pub(crate) statement: Statement,
    pub(crate) effects: Effects,
    /// Changes in its state that it is still to be told.
    pub(crate) pending_changes: PendingChanges,
    /// Its prepared statements, if it has any.
    pub(crate) prepared: Prepared,
    /// Reason why it keeps its backend, if it does.
    pub(crate) pins: Pins,
    /// Variables that may have been set on its backend and were neither reported nor read back.
    pub(crate) modified: Option<Box<Modified>>,
    /// State that its last statement has left for questions about it.
    pub(crate) last: LastStatement,
}

/// One accepted connection.
#[derive(Debug)]
pub(crate) struct Client<S> {
    /// Its socket, and what lies over it.
    pub(crate) transport: Transport<S>,
    state: ClientState,
    /// End of it from outside of its statements.
    pub(crate) ended: Ended,
    pub(crate) identity: Identity,
    pub(crate) command: CommandState,
    pub(crate) session: ClientSession,
    /// Negotiated capabilities.
    pub capabilities: u32,
    /// Its place in line.
    pub(crate) place: Place,
    /// The pool that serves it, an index into [`crate::backend::pools::BackendPools`].
    pub pool: u32,
    /// Moment at which it entered its state, or its peer last took bytes.
    since: Time,
    /// Bytes received and not handled.
    pub(crate) input: Input,
    /// Bytes not yet sent.
    pub output: Option<Box<Output>>,
    /// Its login, while it lasts.
    pub login: Option<Box<Login>>,
    /// The backend bound to it.
    binding: Binding<BackendId>,
}

/// An idle client's budget of user-space memory, but for its slot's 8 bytes.
const CLIENT_BYTES_MAX: usize = 248;
const _: () = assert!(size_of::<Client<std::os::fd::OwnedFd>>() <= CLIENT_BYTES_MAX);
const _: () = assert!(EXTENDED_OFFERED <= u8::MAX as u32);

impl<S> Client<S> {
    /// Forgets a backend that is gone. A transaction that was open there is lost with it: the next
    /// statement hears of that.
    pub(crate) fn lose_backend(&mut self, in_transaction: bool, doubt: Doubt) {
        self.session.last.lose_backend();
        if in_transaction {
            self.ended.lose_transaction(doubt);
        }
    }

    /// Mode in which the texts that it sends are cut.
    pub(crate) fn lex_mode(&self, server: &ServerFacts) -> LexMode {
        server.lex_mode(&self.session.state, self.capabilities)
    }

    /// The backend that it has.
    pub(crate) fn backend(&self) -> Option<BackendId> {
        self.binding.id()
    }

    /// The backend that it has, of its group's.
    pub(crate) fn backend_in<'a>(
        &self,
        backends: &'a Slots<Backend<S>, BackendId>,
    ) -> Option<&'a Backend<S>> {
        backends.get(self.backend()?)
    }

    /// A connection that has just been accepted.
    pub(crate) fn greeted(
        transport: Transport<S>,
        now: Time,
        session: Rc<Session>,
        login: Login,
    ) -> Self {
        Client {
            ended: Ended::default(),
            identity: Identity::greeted(),
            command: CommandState::default(),
            transport,
            state: ClientState::Greeted,
            session: ClientSession::new(session),
            capabilities: 0,
            place: Place::none(now),
            pool: 0,
            since: now,
            input: Input::default(),
            output: None,
            login: Some(Box::new(login)),
            binding: Binding::default(),
        }
    }

    /// Client that has to send a PROXY header before it is greeted.
    pub(crate) fn before_header(
        transport: Transport<S>,
        now: Time,
        session: Rc<Session>,
        login: Login,
    ) -> Self {
        Client {
            state: ClientState::Accepted,
            identity: Identity::default(),
            ..Client::greeted(transport, now, session, login)
        }
    }

    /// Client that has come from another process, which has let it in.
    pub(crate) fn moving(transport: Transport<S>, now: Time, session: Rc<Session>) -> Self {
        let login = Login::new([0; NONCE_LEN], false);
        Client {
            state: ClientState::Moving,
            login: None,
            ..Client::greeted(transport, now, session, login)
        }
    }

    /// Moment at which it entered its state, or its peer last took bytes.
    pub(crate) fn since(&self) -> Time {
        self.since
    }

    /// Restarts its limits of time from here.
    pub(crate) fn count_from(&mut self, now: Time) {
        self.since = now;
    }

    /// Binds it and an idle backend to each other.
    pub(crate) fn bind(&mut self, backend: &mut Backend<S>, keys: (ClientId, BackendId)) {
        self.binding.bind(&mut backend.binding, keys);
    }

    /// Pipelines its statement behind those in flight on a backend.
    pub(crate) fn join(&mut self, backend: BackendId) {
        self.binding.join(backend);
    }

    /// Unbinds it from its backend.
    pub(crate) fn unbind(&mut self, own: ClientId, backend: Option<&mut Backend<S>>) {
        let backend = backend.map(|backend| &mut backend.binding);
        self.binding.unbind(own, backend);
    }

    /// State.
    pub(crate) fn state(&self) -> ClientState {
        self.state
    }

    /// True if its login, or its change of user, has not ended.
    pub(crate) fn is_logging_in(&self) -> bool {
        self.login.is_some()
    }

    /// Moves it to another state. A move that the table does not allow is a mistake of this
    /// program: it stops tests and simulation, and is `false` in production, where the caller
    /// closes this one connection.
    #[must_use]
    pub(crate) fn change_state(&mut self, to: ClientState, now: Time) -> bool {
        use ClientState::*;
        let allowed = match (self.state, to) {
            (Leaving, _) => false,
            (Idle, Moving) | (Moving, Idle) => true,
            (Moving, _) => false,
            (_, Leaving) | (Accepted, Greeted) => true,
            (Greeted, Proving | Opening | Idle) | (Proving, Proving | Opening | Idle) => true,
            (Proving, Verifying) | (Verifying, Opening | Idle) => true,
            (Opening, Restoring | Idle) => true,
            (Idle, Waiting | Restoring | Running | Proving | Asking) => true,
            // Its turn came with a backend, or it could not be used and waits on.
            (Waiting, Restoring | Running | Idle) => true,
            (Restoring, Running | Idle | Opening) => true,
            (Running, Idle | Feeding | Waiting | Opening) => true,
            (Greeted | Proving | Verifying | Idle | Restoring, Delayed) => true,
            (Delayed, Idle) => true,
            (Feeding, Running) | (Asking, Idle) => true,
            _ => false,
        };
        debug_assert!(
            allowed,
            "a client cannot go from {:?} to {to:?}",
            self.state
        );
        if to == Idle {
            self.session.effects.set_slot(None);
        }
        self.state = to;
        self.since = now;
        allowed
    }

    /// True if it could be sent more, if that were not in the spool.
    pub(crate) fn waits_for_spool(&self) -> bool {
        let output = self.output.as_ref();
        output.is_some_and(|output| output.waits_for_spool()) && !self.transport.has_unsent()
    }

    /// Bytes that the spool has for it, if its reply is taken off its backend.
    pub(crate) fn spooled(&self) -> Option<usize> {
        match &self.output.as_ref()?.rest {
            Rest::OnBackend => None,
            Rest::Spooled(tail) => Some(tail.len()),
        }
    }

    /// True if something that it was sent has not left yet.
    pub(crate) fn has_unsent(&self) -> bool {
        self.output.is_some() || self.transport.has_unsent()
    }

    /// Its statement's digest under its session; 0 of one that is pipelined with nobody.
    pub(crate) fn session_digest(&self) -> u64 {
        if !self.command.may_be_pipelined() {
            return 0;
        }
        let session = &self.session;
        let state = Rc::as_ptr(&session.state).addr();
        (session.statement.pipelinable).session_digest(session.statement.digest, state)
    }

    /// True if it will keep its backend behind its next statement, as far as is known.
    pub(crate) fn will_keep(&self) -> bool {
        let session = &self.session;
        self.command.is_begin_deferred() || session.pins.will_pin() || !session.state.commits()
    }

    /// True if its bytes are wanted now: one that has not taken its last reply must not hold a
    /// backend for the next.
    pub(crate) fn takes_input(&self) -> bool {
        use ClientState::*;
        matches!(self.state, Accepted | Greeted | Proving | Idle | Feeding)
            && self.output.is_none()
            && !self.input.is_being_read()
    }

    /// True if its login waits for a worker, or for the time at which it hears that it failed.
    pub(crate) fn waits_to_log_in(&self) -> bool {
        match self.state {
            ClientState::Verifying => true,
            ClientState::Delayed => !self.identity.is_known(),
            _ => false,
        }
    }

    /// Appends received bytes to what waits to be handled.
    pub(crate) fn keep_input(&mut self, bytes: &[u8]) {
        self.input.keep(bytes, self.login.is_some());
    }

    /// Drops the first `len` bytes of what waits to be handled, and its place with them.
    pub(crate) fn drop_input(&mut self, len: usize) {
        self.place.give_up();
        self.input.drop_front(len);
    }
}

impl ClientSession {
    /// A session in this state, under which nothing has run.
    pub(crate) fn new(state: Rc<Session>) -> Self {
        ClientSession {
            state,
            statement: Statement::plain(ReplyShape::None),
            effects: Effects::default(),
            pending_changes: PendingChanges::default(),
            prepared: Prepared::default(),
            pins: Pins::default(),
            modified: None,
            last: LastStatement::default(),
        }
    }

    /// True if it keeps its backend though no transaction is open.
    pub(crate) fn is_held(&self) -> bool {
        self.pins.is_pinned() || self.prepared.as_ref().is_some_and(|p| p.holds())
    }

    /// The client that a backend has served last, once it has served this one, `client`.
    pub(crate) fn as_last(&self, client: ClientId) -> LastClient {
        let sent = self.last.number;
        LastClient { client, sent }
    }

    /// Results that its backend is not to be asked: those that it does not know, and `@@last_gtid`,
    /// which is kept for the client. `bound`: it has a backend, or goes back to its last one.
    pub(crate) fn reads_elsewhere(&self, bound: bool) -> Reads {
        self.reads_lost(bound).union(Reads::LAST_GTID)
    }

    /// Results that only the backend of the statement before could tell, and this client's cannot.
    pub(crate) fn reads_lost(&self, bound: bool) -> Reads {
        let lost = match bound {
            true => self.last.lost(),
            false => LEFT_BY_STATEMENT,
        };
        let lost = lost.union(self.last.lost_insert_id());
        match (self.pins).is_pinned_for(PinReason::Text(PinCause::SessionTracking)) {
            true => lost,
            false => lost.union(Reads::TRACKERS),
        }
    }

    /// Results that stored code would ask and its backend cannot tell: a number that is put into a
    /// text does not reach it. Conditions of others are cleared in front of it.
    pub(crate) fn lost_to_code(&self, bound: bool) -> Reads {
        let mut lost = self.reads_lost(bound).of(COUNTS.union(Reads::FOUND_ROWS));
        if lost.intersects(COUNTS) {
            lost = lost.union(Reads::LAST_GTID);
        }
        match self.last.has_conditions() {
            true => lost.union(self.reads_lost(bound).of(Reads::DIAGNOSTICS)),
            false => lost,
        }
    }

    /// Clears what was noted of a command that was not sent, for the next one. One that has to wait
    /// before it is judged neither sets a schema nor is pipelined because the one before did.
    pub(crate) fn begin_command(&mut self) {
        self.prepared.forget_command();
        self.statement.send_mode = SendMode::Apart;
        self.statement.pipelinable = Pipelinable::Never;
        self.effects.forget();
        self.pins.forget_plan();
    }
}

#[cfg(test)]
impl Client<()> {
    /// Client that has just been accepted, by a local socket.
    pub(crate) fn of_tests(now: Time, session: Rc<Session>) -> Client<()> {
        let login = Login::new([0; NONCE_LEN], false);
        Client::greeted(Transport::plain((), true), now, session, login)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Client<()> {
        Client::of_tests(Time(1), Rc::default())
    }

    #[test]
    fn a_command_that_is_not_judged_yet_sets_no_schema_and_does_not_ride() {
        let mut client = client();
        let statement = &mut client.session.statement;
        statement.send_mode = SendMode::NewSchema;
        (statement.pipelinable, statement.digest) = (Pipelinable::Text, 7);
        assert!(client.may_choose_schema() && client.session_digest() != 0);
        client.session.begin_command();
        assert!(!client.may_choose_schema());
        assert_eq!(client.session_digest(), 0);
    }

    #[test]
    fn an_idle_client_fits_its_budget() {
        assert!(size_of::<Client<std::os::fd::OwnedFd>>() <= CLIENT_BYTES_MAX);
    }

    #[test]
    fn a_client_lives_in_order() {
        use ClientState::*;
        let mut client = client();
        for to in [
            Proving, Opening, Restoring, Idle, Waiting, Restoring, Running, Feeding, Running,
        ] {
            assert!(client.change_state(to, Time(2)));
        }
        assert!(client.change_state(Leaving, Time(3)));
    }

    #[test]
    #[should_panic(expected = "a client cannot go from Greeted to Running")]
    fn nothing_runs_before_the_login() {
        let _ = client().change_state(ClientState::Running, Time(2));
    }

    #[test]
    #[should_panic(expected = "a client cannot go from Opening to Running")]
    fn what_is_said_behind_a_login_does_not_run_before_its_end() {
        use ClientState::*;
        let mut client = client();
        assert!(client.change_state(Opening, Time(2)));
        let _ = client.change_state(Running, Time(3));
    }

    #[test]
    fn input_is_kept_in_a_box_that_goes_when_it_is_empty() {
        let mut client = client();
        client.keep_input(b"");
        assert!(client.input.bytes().is_none());
        client.keep_input(b"abc");
        client.keep_input(b"def");
        client.drop_input(2);
        assert_eq!(
            client.input.bytes().map(|input| &input[..]),
            Some(&b"cdef"[..])
        );
        client.drop_input(4);
        assert!(client.input.bytes().is_none());
    }
}

/// Result of handling a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handled {
    /// Command that is done with.
    Used,
    /// Command that stays at the front of the client's input until its turn comes.
    Kept,
    /// Command that is done with, and behind which all comes in frames.
    Framed,
    /// Request for TLS: what follows it is TLS.
    Secured,
}
