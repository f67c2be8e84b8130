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
pub(crate) mod relayed;
pub(crate) mod reset_connection;
pub(crate) mod tls;
pub(crate) mod unrestored;

use crate::auth::login::Login;
use crate::backend::Backend;
use crate::backend::binding::Binding;
use crate::backend::relay::PendingChanges;
use crate::client::buffers::received::Received;
use crate::client::buffers::room::make_room;
use crate::client::buffers::transport::Transport;
use crate::client::modified::Modified;
use crate::client::place::Place;
use crate::errors::reasons::{PinReason, Refusal};
use crate::group::tokens::BackendId;
use crate::limits::rules::Slot;
use crate::limits::spool::Tail;
use crate::server::facts::ServerFacts;
use reactor::{Slots, Time};
use session::known_digests::Pipelinable;
use session::last_statement::{COUNTS, LEFT_BY_STATEMENT, LastStatement};
use session::meter::{Charge, Meter};
use session::own_commands::OwnCommands;
use session::pins::Pins;
use session::prepared::Statements;
use session::send_mode::SendMode;
use session::state::Session;
use session::statement::Statement;
use session::transaction::Doubt;
use sql::classify::{PinCause, Reads};
use sql::lex::LexMode;
use sql::tracking::Retracked;
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

/// State of a client's proof that it is its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Not yet.
    Missing,
    /// Proven and counted among that user's clients, not let in yet.
    Counted,
    /// Proven and let in.
    Given,
    /// Proven, and changing its user.
    Changing,
}

/// Reason for which it is not known what became of a lost transaction.
const IN_DOUBT: &str =
    "the server was lost before it told whether a failed statement had committed the transaction";

/// End of a client's statement or connection from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Nothing,
    /// Its statement, by KILL, before that was sent.
    Statement,
    /// Its transaction, with its server, behind an error perhaps.
    Transaction(Doubt),
    /// The client: it is to be closed at the end of the turn.
    Connection,
}

/// Pipelining of a client's next statement: behind those of other clients on one backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pipelining {
    /// Allowed where its digest allows it.
    Allowed,
    /// Not now: it was sent behind one that changed its session, and runs again.
    NotAfterAbort,
    /// Not now: the client has been told that a transaction is open, and no backend knows of it
    /// ([`crate::statements::answered_locally`]).
    NotWhileBeginIsDeferred,
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

/// Effects that a command has if it succeeds, and its place.
#[derive(Debug, Default)]
struct Effects {
    /// Place of the statement among those that a rule allows.
    slot: Option<Slot>,
    /// Reports on the session that the client gets from then on.
    retracking: Option<Box<Retracked>>,
    /// Variables that it may set without a report, until it is sent.
    modifying: Option<Box<Modified>>,
}

impl Effects {
    fn is_empty(&self) -> bool {
        self.slot.is_none() && self.retracking.is_none() && self.modifying.is_none()
    }
}

/// One accepted connection.
#[derive(Debug)]
pub(crate) struct Client<S> {
    /// Its socket, and what lies over it.
    pub(crate) transport: Transport<S>,
    state: ClientState,
    /// The id of the collation it logged in with, or has changed its user with.
    collation: u16,
    /// Number of the next packet to it.
    seq: u8,
    /// Times that it has failed to change its user.
    changes_failed: u8,
    /// True if its next statement may be pipelined, as far as that does not follow from its text.
    pipelining: Pipelining,
    /// End of it from outside of its statements.
    ended: Ended,
    /// Statement that runs, or for which it waits.
    pub statement: Statement,
    /// Its CONNECTION_ID(): the number in our greeting.
    id: u32,
    /// Negotiated capabilities.
    pub capabilities: u32,
    /// MariaDB's extended capabilities that it negotiated; those that are offered fit.
    extended: u8,
    /// Its user, an index into the settings; says something once that is proven.
    user: u16,
    /// True if it has proven that it is this user.
    proof: Proof,
    /// Its place in line.
    pub(crate) place: Place,
    /// Commands of the pool's own that its backends have answered since its last command began.
    own_commands: OwnCommands,
    /// The pool that serves it, an index into [`crate::backend::pools::BackendPools`].
    pub pool: u32,
    /// Moment at which it entered its state, or its peer last took bytes.
    since: Time,
    /// The session its statements run under.
    pub session: Rc<Session>,
    /// Bytes received and not handled.
    input: Option<Box<Received>>,
    /// Bytes not yet sent.
    pub output: Option<Box<Output>>,
    /// Its login, while it lasts.
    pub login: Option<Box<Login>>,
    /// Effects of its command, until they are noted, and its place.
    effects: Option<Box<Effects>>,
    /// Changes in its session that it is still to be told.
    pending_changes: PendingChanges,
    /// Its prepared statements, if it has any.
    pub(crate) prepared: Option<Box<Statements>>,
    /// The id of the statement that it prepared last; the next one's is higher.
    statements_made: u32,
    /// Reason why it keeps its backend, if it does.
    pub(crate) pins: Pins,
    /// Variables that may have been set on its backend and were neither reported nor read back.
    pub(crate) modified: Option<Box<Modified>>,
    /// The backend bound to it.
    binding: Binding<BackendId>,
    /// State that its last statement has left for questions about it.
    pub(crate) last: LastStatement,
}

/// An idle client's budget of user-space memory, but for its slot's 8 bytes.
const CLIENT_BYTES_MAX: usize = 248;
const _: () = assert!(size_of::<Client<std::os::fd::OwnedFd>>() <= CLIENT_BYTES_MAX);
const _: () = assert!(EXTENDED_OFFERED <= u8::MAX as u32);

impl<S> Client<S> {
    /// True if it is to be closed at the end of the turn.
    pub(crate) fn is_closing(&self) -> bool {
        self.ended == Ended::Connection
    }

    /// Marks it to be closed at the end of the turn; see [`clients::Clients::close_later`].
    pub(crate) fn set_closing(&mut self) {
        self.ended = Ended::Connection;
    }

    /// Notes that KILL has ended its statement before that was sent.
    pub(crate) fn interrupt(&mut self) {
        if self.ended == Ended::Nothing {
            self.ended = Ended::Statement;
        }
    }

    /// Forgets a backend that is gone. A transaction that was open there is lost with it: the next
    /// statement hears of that.
    pub(crate) fn lose_backend(&mut self, in_transaction: bool, doubt: Doubt) {
        self.last.lose_backend();
        if in_transaction && self.ended != Ended::Connection {
            self.ended = Ended::Transaction(doubt);
        }
    }

    /// True if it has not heard yet that its transaction is lost.
    pub(crate) fn has_lost_transaction(&self) -> bool {
        matches!(self.ended, Ended::Transaction(_))
    }

    /// Takes the loss of its transaction: what it hears of it now, unless it has ended the
    /// transaction itself.
    pub(crate) fn take_lost_transaction(&mut self) -> Option<Refusal> {
        let Ended::Transaction(doubt) = self.ended else {
            return None;
        };
        self.ended = Ended::Nothing;
        Some(match doubt {
            Doubt::MayBeCommitted => Refusal::BackendLost(IN_DOUBT.into()),
            Doubt::None | Doubt::MayBeUndone => Refusal::TransactionLost,
        })
    }

    /// True if its statement has been ended before it was sent.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.ended == Ended::Statement
    }

    /// Takes the interruption; its client hears of it now.
    pub(crate) fn take_interruption(&mut self) -> bool {
        let interrupted = self.is_interrupted();
        if interrupted {
            self.ended = Ended::Nothing;
        }
        interrupted
    }

    /// Its statement's digest under its session; 0 of one that is pipelined with nobody.
    pub(crate) fn session_digest(&self) -> u64 {
        if self.pipelining != Pipelining::Allowed {
            return 0;
        }
        let session = Rc::as_ptr(&self.session).addr();
        self.statement
            .pipelinable
            .session_digest(self.statement.digest, session)
    }

    /// True if it has been told that a transaction is open, of which no backend knows.
    pub(crate) fn is_begin_deferred(&self) -> bool {
        self.pipelining == Pipelining::NotWhileBeginIsDeferred
    }

    /// Mode in which the texts that it sends are cut.
    pub(crate) fn lex_mode(&self, server: &ServerFacts) -> LexMode {
        server.lex_mode(&self.session, self.capabilities)
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
            id: 0,
            pipelining: Pipelining::Allowed,
            ended: Ended::Nothing,
            pins: Pins::default(),
            modified: None,
            transport,
            state: ClientState::Greeted,
            collation: 0,
            seq: 1,
            changes_failed: 0,
            own_commands: OwnCommands::default(),
            statement: Statement::plain(ReplyShape::None),
            capabilities: 0,
            extended: 0,
            user: 0,
            proof: Proof::Missing,
            place: Place::none(now),
            pool: 0,
            since: now,
            session,
            input: None,
            output: None,
            login: Some(Box::new(login)),
            effects: None,
            pending_changes: PendingChanges::default(),
            prepared: None,
            statements_made: 0,
            binding: Binding::default(),
            last: LastStatement::default(),
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
            seq: 0,
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

    /// State.
    pub(crate) fn state(&self) -> ClientState {
        self.state
    }

    /// True if it has proven its user, and is counted among that user's clients.
    pub(crate) fn is_known(&self) -> bool {
        self.proof != Proof::Missing
    }

    /// True if it has been let in.
    pub(crate) fn is_let_in(&self) -> bool {
        matches!(self.proof, Proof::Given | Proof::Changing)
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
            self.set_slot(None);
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

    /// True if it keeps its backend though no transaction is open.
    pub(crate) fn is_held(&self) -> bool {
        self.is_pinned() || self.prepared.as_ref().is_some_and(|p| p.holds())
    }

    /// True if it will keep its backend behind its next statement, as far as is known.
    pub(crate) fn will_keep(&self) -> bool {
        self.is_begin_deferred() || self.pins.will_pin() || !self.session.commits()
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
        match self.is_pinned_for(PinReason::Text(PinCause::SessionTracking)) {
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
        self.forget_command();
        self.statement.send_mode = SendMode::Apart;
        self.statement.pipelinable = Pipelinable::Never;
        self.effects = None;
        self.pins.forget_plan();
    }

    /// Forgets a command about a prepared statement that was not carried out, and the box when
    /// nothing else is in it.
    pub(crate) fn forget_command(&mut self) {
        if let Some(prepared) = &mut self.prepared {
            prepared.under_way = None;
            if prepared.is_empty() {
                self.prepared = None;
            }
        }
    }

    /// True if its bytes are wanted now: one that has not taken its last reply must not hold a
    /// backend for the next.
    pub(crate) fn takes_input(&self) -> bool {
        use ClientState::*;
        matches!(self.state, Accepted | Greeted | Proving | Idle | Feeding)
            && self.output.is_none()
            && !self.is_being_read()
    }

    /// True if a reader has the text of its command.
    pub(crate) fn is_being_read(&self) -> bool {
        let input = self.input.as_ref();
        input.is_some_and(|input| input.is_being_read())
    }

    /// True if its login waits for a worker, or for the time at which it hears that it failed.
    pub(crate) fn waits_to_log_in(&self) -> bool {
        match self.state {
            ClientState::Verifying => true,
            ClientState::Delayed => !self.is_known(),
            _ => false,
        }
    }

    /// Appends received bytes to what waits to be handled.
    pub(crate) fn keep_input(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let has_password = self.login.is_some();
            let input = self.input.get_or_insert_default();
            if has_password {
                return input.keep_of_login(bytes);
            }
            let buffer = input.buffer();
            make_room(buffer, bytes.len());
            buffer.extend_from_slice(bytes);
        }
    }

    /// Puts a command that was taken from its input back to the front.
    pub(crate) fn put_back(&mut self, command: &[u8]) {
        self.input.get_or_insert_default().put_front(command);
    }

    /// Bytes of the command at the front of what waits to be handled.
    pub(crate) fn command_len(&self) -> usize {
        self.input.as_ref().map_or(0, |input| input.command_len())
    }

    /// Drops the first `len` bytes of what waits to be handled, and the box when it is empty.
    pub(crate) fn drop_input(&mut self, len: usize) {
        self.place.give_up();
        match &mut self.input {
            Some(input) if input.len() > len => input.drop_front(len, usize::MAX),
            input => *input = None,
        }
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
        client.statement.send_mode = SendMode::NewSchema;
        (client.statement.pipelinable, client.statement.digest) = (Pipelinable::Text, 7);
        assert!(client.may_choose_schema() && client.session_digest() != 0);
        client.begin_command();
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
        assert!(client.input.is_none());
        client.keep_input(b"abc");
        client.keep_input(b"def");
        client.drop_input(2);
        assert_eq!(
            client.input.as_deref().map(|input| &input[..]),
            Some(&b"cdef"[..])
        );
        client.drop_input(4);
        assert!(client.input.is_none());
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
