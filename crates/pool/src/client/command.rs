//! The command of a client that is handled now: what is planned for it until it is sent, and how it
//! may go out; and its end from outside.
//!
//! Plans of a command that was not sent are forgotten when the next one is looked at
//! ([`crate::client::Client::begin_command`]).

use crate::client::modified::Modified;
use crate::errors::reasons::Refusal;
use crate::limits::rules::Slot;
use session::own_commands::OwnCommands;
use session::transaction::Doubt;
use sql::tracking::Retracked;

/// Reason for which it is not known what became of a lost transaction.
const IN_DOUBT: &str =
    "the server was lost before it told whether a failed statement had committed the transaction";

/// End of a client's statement or connection from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ended {
    #[default]
    Nothing,
    /// Its statement, by KILL, before that was sent.
    Statement,
    /// Its transaction, with its server, behind an error perhaps.
    Transaction(Doubt),
    /// The client: it is to be closed at the end of the turn.
    Connection,
}

/// Pipelining of a client's next statement: behind those of other clients on one backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pipelining {
    /// Allowed where its digest allows it.
    #[default]
    Allowed,
    /// Not now: it was sent behind one that changed its session, and runs again.
    NotAfterAbort,
    /// Not now: the client has been told that a transaction is open, and no backend knows of it
    /// ([`crate::statements::answered_locally`]).
    NotWhileBeginIsDeferred,
}

/// Effects that a command has if it succeeds, and its place.
#[derive(Debug, Default)]
struct Planned {
    /// Place of the statement among those that a rule allows.
    slot: Option<Slot>,
    /// Reports on the session that the client gets from then on.
    retracking: Option<Box<Retracked>>,
    /// Variables that it may set without a report, until it is sent.
    modifying: Option<Box<Modified>>,
}

impl Planned {
    fn is_empty(&self) -> bool {
        self.slot.is_none() && self.retracking.is_none() && self.modifying.is_none()
    }
}

/// State of a client's command, until it is sent.
#[derive(Debug, Default)]
pub(crate) struct CommandState {
    /// True if the next statement may be pipelined, as far as that does not follow from its text.
    pipelining: Pipelining,
    /// Commands of the pool's own that backends have answered since the last command began.
    own_commands: OwnCommands,
}

/// Effects of a client's command, until they are noted, and its place; in a box that is there only
/// while there are any.
#[derive(Debug, Default)]
pub(crate) struct Effects(Option<Box<Planned>>);

impl Ended {
    /// True if it is to be closed at the end of the turn.
    pub(crate) fn is_closing(&self) -> bool {
        *self == Ended::Connection
    }

    /// Marks it to be closed at the end of the turn
    /// ([`crate::client::clients::Clients::close_later`]).
    pub(crate) fn set_closing(&mut self) {
        *self = Ended::Connection;
    }

    /// Notes that KILL has ended its statement before that was sent.
    pub(crate) fn interrupt(&mut self) {
        if *self == Ended::Nothing {
            *self = Ended::Statement;
        }
    }

    /// Notes that the transaction is lost with its server.
    pub(crate) fn lose_transaction(&mut self, doubt: Doubt) {
        if *self != Ended::Connection {
            *self = Ended::Transaction(doubt);
        }
    }

    /// True if it has not heard yet that its transaction is lost.
    pub(crate) fn has_lost_transaction(&self) -> bool {
        matches!(self, Ended::Transaction(_))
    }

    /// Takes the loss of its transaction: what it hears of it now, unless it has ended the
    /// transaction itself.
    pub(crate) fn take_lost_transaction(&mut self) -> Option<Refusal> {
        let Ended::Transaction(doubt) = *self else {
            return None;
        };
        *self = Ended::Nothing;
        Some(match doubt {
            Doubt::MayBeCommitted => Refusal::BackendLost(IN_DOUBT.into()),
            Doubt::None | Doubt::MayBeUndone => Refusal::TransactionLost,
        })
    }

    /// True if its statement has been ended before it was sent.
    pub(crate) fn is_interrupted(&self) -> bool {
        *self == Ended::Statement
    }

    /// Takes the interruption; its client hears of it now.
    pub(crate) fn take_interruption(&mut self) -> bool {
        let interrupted = self.is_interrupted();
        if interrupted {
            *self = Ended::Nothing;
        }
        interrupted
    }
}

impl CommandState {
    /// Ends it: the pool's own commands are counted anew.
    pub(crate) fn end(&mut self) {
        self.own_commands = OwnCommands::default();
    }

    /// Counts an answered command of the pool's own for its command; `false` when it was one too
    /// many.
    #[must_use]
    pub(crate) fn note_own(&mut self) -> bool {
        self.own_commands.note()
    }

    /// Allows its next statement to be pipelined as its digest allows.
    pub(crate) fn allow_pipelining(&mut self) {
        self.pipelining = Pipelining::Allowed;
    }

    /// True if its statement runs apart.
    pub(crate) fn runs_apart(&self) -> bool {
        self.pipelining == Pipelining::NotAfterAbort
    }

    /// Keeps its aborted statement, sent behind one that changed its session, from being pipelined
    /// again.
    pub(crate) fn run_apart(&mut self) {
        self.pipelining = Pipelining::NotAfterAbort;
    }

    /// Notes an open transaction of which no backend knows yet.
    pub(crate) fn defer_begin(&mut self) {
        self.pipelining = Pipelining::NotWhileBeginIsDeferred;
    }

    /// True if it has been told that a transaction is open, of which no backend knows.
    pub(crate) fn is_begin_deferred(&self) -> bool {
        self.pipelining == Pipelining::NotWhileBeginIsDeferred
    }

    /// True if the next statement may be pipelined as its digest allows.
    pub(crate) fn may_be_pipelined(&self) -> bool {
        self.pipelining == Pipelining::Allowed
    }
}

impl Effects {
    /// Changes a part, and keeps no memory where there is none.
    fn put(&mut self, is_there: bool, set: impl FnOnce(&mut Planned)) {
        if is_there || self.0.is_some() {
            set(self.0.get_or_insert_default());
            self.0.take_if(|planned| planned.is_empty());
        }
    }

    fn take<T>(&mut self, part: impl FnOnce(&mut Planned) -> Option<T>) -> Option<T> {
        let taken = part(self.0.as_mut()?);
        self.0.take_if(|planned| planned.is_empty());
        taken
    }

    /// Trackers that its command sets.
    pub(crate) fn retracking(&self) -> Option<&Retracked> {
        self.0.as_ref()?.retracking.as_deref()
    }

    /// Plans what it is told of its session from its command on.
    pub(crate) fn plan_retracking(&mut self, retracking: Option<Box<Retracked>>) {
        self.put(retracking.is_some(), |planned| {
            planned.retracking = retracking
        });
    }

    /// Takes what its command sets of that.
    pub(crate) fn take_retracking(&mut self) -> Option<Box<Retracked>> {
        self.take(|planned| planned.retracking.take())
    }

    /// Variables that its command may set without a report, once that is sent.
    pub(crate) fn modifying(&self) -> Option<&Modified> {
        self.0.as_ref()?.modifying.as_deref()
    }

    /// Plans which variables its command may set without a report.
    pub(crate) fn plan_modifying(&mut self, modifying: Option<Box<Modified>>) {
        self.put(modifying.is_some(), |planned| planned.modifying = modifying);
    }

    /// Takes the variables that its command, which is sent, may set without a report.
    pub(crate) fn take_modifying(&mut self) -> Option<Box<Modified>> {
        self.take(|planned| planned.modifying.take())
    }

    /// Sets the place of its statement among those that a rule allows; frees the one that it had.
    pub(crate) fn set_slot(&mut self, slot: Option<Slot>) {
        self.put(slot.is_some(), |planned| planned.slot = slot);
    }

    /// Forgets what was planned.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}
