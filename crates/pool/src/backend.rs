//! A backend: one connection of ours to the server, and the commands in flight on it.
//!
//! [`BackendState`] is where it stands; [`Backend::change_state`] is the one place that moves it.
//! [`dialling`] opens it, [`replies`] reads it, and [`losses`] are its end.
//! Commands in flight form a FIFO ([`Flight`]), each with its owner and purpose: commands of the
//! pool's own (restoring a session, reading back what a statement left) go in front of and behind
//! the statement of a client.
//!
//! Invariants: what stands in the FIFO has been written, or lies in `output`; `session` is what the
//! server's session is once everything in flight has succeeded; a backend whose reply made no
//! sense, or that was lost, is closed and never used again.

pub(crate) mod abandoned;
pub(crate) mod abort;
pub(crate) mod binding;
pub(crate) mod closing;
pub(crate) mod dial;
pub(crate) mod dialling;
pub(crate) mod flight;
pub(crate) mod followers;
pub(crate) mod handshake;
pub(crate) mod input;
pub(crate) mod load;
pub(crate) mod losses;
pub(crate) mod noted;
pub(crate) mod openings;
pub(crate) mod origin;
pub(crate) mod output;
pub(crate) mod overdue;
pub(crate) mod pool_members;
pub(crate) mod pools;
pub(crate) mod recorded;
pub(crate) mod relay;
pub(crate) mod replies;
pub(crate) mod reported;
pub(crate) mod restored;
pub(crate) mod reuse;
pub(crate) mod rollback;
pub(crate) mod session_reset;

use crate::backend::binding::Binding;
use crate::backend::dial::Dial;
use crate::backend::flight::Flight;
use crate::backend::pools::BackendPools;
use crate::backend::reuse::Reuse;
use crate::client::buffers::outgoing::Outgoing;
use crate::client::buffers::transport::Transport;
use crate::errors::reasons::Refusal;
use crate::group::tokens::ClientId;
use crate::scheduler::account_slots::{Kept, OnServer, RunPlace};
use crate::server::fleet::Unit;
use crate::server::tls::BackendTls;
use reactor::{Address, Time};
use session::known_digests::Ending;
use session::meter::{Charge, Meter};
use session::own_writes::OwnWrites;
use session::prepared::OnBackend;
use session::read_back::{Asked, Properties};
use session::reply_summary::ReplySummary;
use session::state::{On, Session};
use session::statement::Explanation;
use session::text::Text;
use session::transaction::Transaction;
use sql::lex::Server;
use std::rc::Rc;
use std::sync::Arc;
use wire::attributes::Form;
use wire::checked::CheckedReply;
use wire::command::ReplyShape;
use wire::rows::Columns;
use wire::track::Bound;

/// Bytes read from a backend at once.
pub(crate) const READ_LEN: usize = 16 * 1024;
/// Bytes of a read while it sends more than that: a long reply costs a call for each read and
/// write.
pub(crate) const READ_LEN_LONG: usize = 64 * 1024;

/// State of a backend, in the order of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackendState {
    /// Connection that is being opened and logged in.
    Dialling,
    /// Logged in; trackers are being switched on.
    Preparing,
    /// Free.
    Idle,
    /// Bound to a client.
    CheckedOut,
}

/// State of the server's reports on its session's statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reports {
    /// All of it.
    #[default]
    Complete,
    /// Reports that may be missing, of which the texts of the client's statements say this.
    Due(Explanation),
    /// Such reports, and stored code may have made changes that no text shows.
    OfCode(Explanation),
}

impl Reports {
    /// Explanation of the changes that are still to be reported, if any are.
    pub(crate) fn due(self) -> Option<Explanation> {
        match self {
            Reports::Complete => None,
            Reports::Due(explanation) | Reports::OfCode(explanation) => Some(explanation),
        }
    }

    /// True if the server alone may know of changes of the session. In a transaction only stored
    /// code makes such.
    pub(crate) fn hides_changes(self, in_transaction: bool) -> bool {
        match self {
            Reports::Complete => false,
            Reports::Due(_) => !in_transaction,
            Reports::OfCode(_) => true,
        }
    }
}

/// Default schema that a backend stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SchemaThere {
    /// Its client's: what it reports of it is the client's too.
    #[default]
    Clients,
    /// Another, because the client's could not be set: what it reports of it is nobody's.
    Another,
}

/// Types that MySQL may have given to stored code when a session ran it on a connection, and keeps
/// there until a reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    /// The client whose session it was, unless that has started over since.
    pub(crate) by: Option<ClientId>,
    /// Value that decided them: [`Session::typing`].
    pub(crate) typing: Text,
}

/// Part of a backend in the count of those that run statements at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// No load: nothing is in flight on it.
    None,
    /// Load that counts.
    Counted,
    /// Load without an answer for so long that it counts no more until there is one.
    Stalled,
}

/// Reason why a command is in flight: who takes its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The client's statement; its reply goes to the client.
    Statement,
    /// Command for a client's session: its reply changes the client and the backend.
    Session(ForSession),
    /// Command for the backend: its reply changes the backend alone, or its client's place there.
    Backend(ForBackend),
}

/// A command of the pool's own for a client's session on its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForSession {
    /// Brings the backend into the client's session state; `true` for the last one.
    Restore(bool),
    /// Command in front of a statement that does not run if this fails, because it stands in one
    /// text with it, or to no effect; `true` for the last one.
    Joined(bool),
    /// BEGIN that its client has had an answer to, in front of the client's next statement.
    Begin,
    /// Prepares what the client's statement executes.
    Ahead,
    /// SHOW WARNINGS on the client's behalf, kept for it.
    Warnings,
    /// Reads back properties of the session ([`session::read_back`]).
    ReadBack(Asked),
    /// Question that makes the server report what the client's statement set in a form that is not
    /// reported.
    SetAgain,
    /// Question that makes the server report what an EOF packet had no room for; `true` for the
    /// last command.
    Reports(bool),
}

/// A command of the pool's own for a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForBackend {
    /// Part of a fresh backend's preparation; `true` for the one that reads back the session.
    Prepare(bool),
    /// Sets the client's default schema, in front of an execution that runs in its own.
    Schema,
    /// Waits until the server that is read has what its client has written.
    CatchUp,
    /// Clears the conditions that another client has left.
    Clearing,
    /// COM_RESET_CONNECTION: the client's session starts over, and what it holds is given back.
    GiveBack,
    /// Ends the transaction of a client that has left ([`crate::backend::rollback`]).
    RollBack,
    /// Reset of its session for a client that is to find no user variables there
    /// ([`crate::backend::session_reset`]); `true` for the question what it is like then.
    ResetSession(bool),
}

impl From<ForSession> for Purpose {
    fn from(command: ForSession) -> Purpose {
        Purpose::Session(command)
    }
}

impl From<ForBackend> for Purpose {
    fn from(command: ForBackend) -> Purpose {
        Purpose::Backend(command)
    }
}

impl Purpose {
    /// True if the server may wait for others' locks as long as a statement may: a client's
    /// statement, and the preparation of one.
    pub(crate) fn may_wait_for_locks(self) -> bool {
        self == Purpose::Statement || self == ForSession::Ahead.into()
    }

    /// True if it may take longer than a question of the pool's own.
    pub(crate) fn may_take_long(self) -> bool {
        use ForBackend::{GiveBack, Prepare};
        self.may_wait_for_locks() || matches!(self, Purpose::Backend(Prepare(_) | GiveBack))
    }

    /// True if a reply is kept until it is whole, because more of it is read than every reply's
    /// summary has.
    pub(crate) fn is_collected(self) -> bool {
        use {ForBackend::*, ForSession::*};
        match self {
            Purpose::Session(own) => matches!(own, Ahead | Warnings | ReadBack(_)),
            Purpose::Backend(own) => matches!(own, Prepare(_) | CatchUp | ResetSession(_)),
            Purpose::Statement => false,
        }
    }
}

/// A transaction that was seen to be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenTransaction {
    /// Its number ([`Transaction::number`]).
    pub(crate) number: u32,
    /// Moment since which it is open, as far as was noticed.
    pub(crate) since: Time,
    /// Statements that were answered in it, with the one that began it.
    pub(crate) statements: u32,
}

/// Moment at which the owner of a reply left, and how much of the reply it had got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) at: Time,
    pub(crate) len: usize,
}

/// A command whose reply is outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    /// Client that the command belongs to; `None` for the pool's own on a fresh backend, and when
    /// the client has gone.
    pub(crate) owner: Option<ClientId>,
    /// Reason why it was sent.
    pub(crate) purpose: Purpose,
    /// Follows its reply.
    pub(crate) reply: CheckedReply,
    /// Its digest under its session (see [`session::known_digests`]); 0 when it is pipelined with
    /// nobody.
    pub(crate) session_digest: u64,
    /// Moment at which it was sent.
    pub(crate) sent: Time,
    /// True if nothing was in flight in front of it.
    pub(crate) first: bool,
    /// True for a long command of a client's ([`crate::limits::long_commands`]).
    pub(crate) is_long: bool,
    /// Moment since which nobody waits for its reply; `None` while its owner does.
    pub(crate) left: Option<Left>,
    /// Bytes of it that are kept ([`Followers`]).
    pub(crate) kept: usize,
}

impl InFlight {
    /// Ending that its digest learns from, if it has been answered so; `has_changed`: it has
    /// changed the session.
    pub(crate) fn ending(&self, summary: &ReplySummary, has_changed: bool, now: Time) -> Ending {
        let failed = summary.error.is_some() || summary.warnings > 0;
        Ending {
            left_something: failed || has_changed,
            service: self.first.then(|| now.since(self.sent)),
            reply_len: summary.len,
        }
    }

    /// A command of the pool's own.
    pub(crate) fn own(
        owner: Option<ClientId>,
        purpose: impl Into<Purpose>,
        shape: ReplyShape,
    ) -> InFlight {
        let reply = CheckedReply::new(shape);
        let purpose = purpose.into();
        InFlight {
            owner,
            purpose,
            reply,
            session_digest: 0,
            sent: Time(0),
            first: false,
            is_long: false,
            left: None,
            kept: 0,
        }
    }

    /// True if it reads this property of its client's session back.
    pub(crate) fn reads(&self, property: Properties) -> bool {
        matches!(self.purpose, Purpose::Session(ForSession::ReadBack(asked))
            if asked.properties.intersects(property))
    }
}

/// The client that a backend has served last, noted at checkin: it may come back for what its
/// statement left there. Once it has sent another one elsewhere, nothing there counts any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastClient {
    pub(crate) client: ClientId,
    /// Number of statements that it had sent.
    pub(crate) sent: u32,
}

/// The server's session on a backend: its state as a value, and what else stands there.
#[derive(Debug, Default)]
pub(crate) struct BackendSession {
    /// Its state.
    pub(crate) state: Rc<Session>,
    /// The role of its login (see [`crate::pair::roles`]), if it can be given back.
    login_role: Option<Text>,
    /// True if the server has reported all that its statements have changed.
    pub(crate) reports: Reports,
    /// True if its default schema is its client's.
    schema: SchemaThere,
    /// Its LAST_INSERT_ID(); `None` when it may have changed and was not read back.
    insert_id: Option<u64>,
    /// Transaction state that its client has been told last.
    bound: Bound,
    /// The client that it served last, until another gets it.
    last_client: Option<LastClient>,
    /// User variables may be there that its state does not have: NULL, since no statement takes one
    /// away.
    leftovers: bool,
    /// True if it has been reset since its login.
    was_reset: bool,
    /// The client whose conditions (warnings, errors) it may still hold.
    pub(crate) conditions_of: Option<ClientId>,
    /// State of its transaction.
    pub(crate) transaction: Transaction,
    /// The transaction that was open when it was last looked at.
    transaction_seen: Option<OpenTransaction>,
    /// Statements that are prepared on it.
    pub(crate) prepared: OnBackend,
    /// The client's statement whose cursor was opened last, and the columns of its rows.
    cursor: Option<(u32, Columns)>,
    /// Types of stored code that MySQL may keep there.
    typed: Option<Typed>,
    /// The group's epoch when it was dialled (see [`session::known_good`]).
    epoch: u64,
}

impl BackendSession {
    /// A session in this state, in which nothing has run.
    fn new(state: Rc<Session>) -> BackendSession {
        BackendSession {
            state,
            insert_id: Some(0),
            ..BackendSession::default()
        }
    }
}

/// One connection to the server.
#[derive(Debug)]
pub(crate) struct Backend<S> {
    /// Its socket, and what lies over it.
    pub(crate) transport: Transport<S>,
    state: BackendState,
    /// The server's address at which it was dialled.
    at: Arc<Address>,
    /// Its pool, an index into [`crate::backend::pools::BackendPools`].
    pub pool: usize,
    /// Form of commands on it.
    form: Form,
    /// Moment at which it entered its state.
    since: Time,
    /// Moment at which it was dialled.
    born: Time,
    /// The login, while it lasts.
    dial: Option<Box<Dial>>,
    pub(crate) session: BackendSession,
    pub(crate) flight: Flight,
    /// The server's number of it.
    pub(crate) thread: u32,
    /// Units of the fleet's limits that it uses.
    units: Vec<Unit>,
    /// Place among the connections to its server, of several.
    on_server: Option<OnServer>,
    /// Place among those of them that run something, where its server limits them.
    running: Option<OnServer>,
    /// Client that it serves next.
    pub(crate) reuse: Reuse,
    /// True on a server that is read, of several.
    is_reader: bool,
    /// Writes that its server was asked to have.
    pub(crate) catching_up: Option<Box<OwnWrites>>,
    /// Bytes received and not used up.
    input: Vec<u8>,
    /// Bytes to be sent at the end of the turn, or when there is room.
    output: Outgoing,
    /// True while it is on the list of those to be written to at the end of the turn.
    dirty: bool,
    /// Its client keeps it.
    kept_slot: Option<Kept>,
    /// True once it has run a statement of the client that has it.
    served: bool,
    /// True if it counts among the backends that run statements at once.
    load: Load,
    /// The client that has it.
    pub binding: Binding<ClientId>,
    /// Bytes that it keeps of commands and replies, counted.
    kept: Charge,
}

/// A connection to the server, and for whom it is.
#[derive(Debug)]
pub(crate) struct Endpoint<S> {
    sock: S,
    at: Arc<Address>,
    pool: usize,
}

impl<S> Endpoint<S> {
    /// One to this address, for clients of this pool.
    pub(crate) fn new(sock: S, at: Arc<Address>, pool: usize) -> Endpoint<S> {
        Endpoint { sock, at, pool }
    }
}

impl<S> Backend<S> {
    /// The client that has it; of several, the one whose reply is next.
    pub(crate) fn client(&self) -> Option<ClientId> {
        self.binding.id()
    }

    /// Units of the fleet's limits that it uses.
    pub(crate) fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Uses these units until it is dropped.
    pub(crate) fn stand_for(&mut self, units: Vec<Unit>) {
        self.units = units;
    }

    /// Counts at its server, of several, until it is dropped.
    pub(crate) fn count_at(&mut self, server: Option<OnServer>) {
        self.on_server = server;
    }

    /// Groups that want a connection to its server.
    pub(crate) fn wanting_its_server(&self) -> Vec<usize> {
        let server = self.on_server.as_ref();
        server.map(OnServer::wanting).unwrap_or_default()
    }

    /// A connection that is being opened.
    pub(crate) fn dialling(
        to: Endpoint<S>,
        now: Time,
        session: Rc<Session>,
        tls: Option<Arc<BackendTls>>,
    ) -> Self {
        let Endpoint { sock, at, pool } = to;
        let secure = matches!(*at, Address::Unix(_));
        let dial = Dial::at(&at, tls);
        Backend {
            transport: Transport::plain(sock, secure),
            state: BackendState::Dialling,
            at,
            pool,
            form: Form::Plain,
            since: now,
            born: now,
            dial: Some(Box::new(dial)),
            session: BackendSession::new(session),
            flight: Flight::new(now),
            thread: 0,
            units: Vec::new(),
            on_server: None,
            running: None,
            reuse: Reuse::default(),
            is_reader: false,
            catching_up: None,
            input: Vec::new(),
            output: Outgoing::default(),
            dirty: false,
            kept_slot: None,
            served: false,
            load: Load::None,
            binding: Binding::default(),
            kept: Charge::default(),
        }
    }

    /// Binds it to the client whose statement is the next in flight, if somebody waits for that.
    /// Behind a reply of nobody it stays where it is: a client that keeps something here has the
    /// replies of those pipelined behind its statement in front of what it sends next.
    pub(crate) fn pass_on(&mut self) {
        if let Some(owner) = self.flight.front().and_then(|next| next.owner) {
            self.binding.hand_over(Some(owner));
        }
    }

    /// State.
    pub(crate) fn state(&self) -> BackendState {
        self.state
    }

    /// Moves it to another state. A move that the table does not allow is a mistake of this
    /// program: it stops tests and simulation, and is `false` in production, where the caller
    /// closes this one connection.
    #[must_use]
    pub(crate) fn change_state(&mut self, to: BackendState, now: Time) -> bool {
        use BackendState::*;
        let allowed = matches!(
            (self.state, to),
            (Dialling, Preparing) | (Preparing, Idle) | (Idle, CheckedOut) | (CheckedOut, Idle)
        );
        debug_assert!(
            allowed,
            "a backend cannot go from {:?} to {to:?}",
            self.state
        );
        self.state = to;
        self.since = now;
        if to == Idle {
            self.kept_slot = None;
        }
        allowed
    }

    /// Counts it among those that clients of its account keep. Returns the refusal where as many
    /// are kept as may be; `has_run`: the statement that keeps it has been answered.
    pub(crate) fn keep(&mut self, pools: &BackendPools, has_run: bool) -> Option<Refusal> {
        let slots = &pools.pools[self.pool].slots;
        self.kept_slot = self.kept_slot.take().or_else(|| slots.keep());
        let max = slots.kept_max();
        (self.kept_slot.is_none()).then_some(Refusal::KeptBackends { max, has_run })
    }

    /// Begins a checkout, with a place among what runs on its server; returns the client that it
    /// served last.
    pub(crate) fn begin_checkout(&mut self, running: RunPlace) -> Option<LastClient> {
        self.running = running;
        self.served = false;
        self.session.last_client.take()
    }

    /// Notes that it has run a statement of the client that has it.
    pub(crate) fn note_served(&mut self) {
        self.served = true;
    }

    /// True if it has run a statement of the client that has it.
    pub(crate) fn has_served(&self) -> bool {
        self.served
    }

    /// Facts that a restoring command needs of it.
    pub(crate) fn on(&self, server: Server) -> On {
        On {
            form: self.form,
            server,
            thread: self.thread,
        }
    }

    /// True if others may be pipelined behind what is in flight. Behind the last client of a
    /// backend nobody may: it would not come to its end.
    pub(crate) fn takes_followers(&self) -> bool {
        self.flight.takes_followers() && self.reuse.is_for_others()
    }

    /// Counts what it keeps of commands and replies.
    pub(crate) fn count_kept(&mut self, in_transit: &Meter) {
        let kept = self.flight.capacity() + self.output.capacity();
        self.kept.set(in_transit, kept);
    }

    /// Bytes that the server has not taken yet.
    pub(crate) fn unsent(&self) -> usize {
        self.output.len()
    }
}

#[cfg(test)]
impl Backend<()> {
    /// One of the first pool that is being opened, by a local socket.
    pub(crate) fn of_tests(now: Time, session: Rc<Session>) -> Backend<()> {
        let at = Arc::new(Address::Unix("/s".into()));
        Backend::dialling(Endpoint::new((), at, 0), now, session, None)
    }
}

/// Fate of a statement whose reply nobody is to have from this backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Aborted {
    /// Command without a byte of its reply: it runs again elsewhere.
    RunsAgain(Vec<u8>),
    /// Command whose reply has come in part, and the rest does not.
    HasBegun,
    /// Command of a client whose session is on this backend alone.
    OwnsSession,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend() -> Backend<()> {
        Backend::of_tests(Time(1), Rc::default())
    }

    #[test]
    fn a_backend_lives_in_order() {
        let mut backend = backend();
        for to in [
            BackendState::Preparing,
            BackendState::Idle,
            BackendState::CheckedOut,
        ] {
            assert!(backend.change_state(to, Time(2)));
        }
        assert!(backend.change_state(BackendState::Idle, Time(3)));
        assert_eq!(backend.since, Time(3));
    }

    #[test]
    #[should_panic(expected = "a backend cannot go from Dialling to CheckedOut")]
    fn a_backend_cannot_be_checked_out_before_its_login() {
        let _ = backend().change_state(BackendState::CheckedOut, Time(2));
    }

    #[test]
    fn what_is_kept_is_counted_and_given_back() {
        let (meter, mut backend) = (Meter::default(), backend());
        backend.flight.collect(&[0; 100]);
        backend.count_kept(&meter);
        assert!(meter.bytes() >= 100);
        backend.flight.take_reply(Time(2));
        backend.count_kept(&meter);
        assert_eq!(meter.bytes(), 0);
    }
}
