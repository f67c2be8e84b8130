//! The command of a client that is handled now: its bytes, the backend that it is bound to, and
//! what is planned for it until it is sent.
//!
//! Plans of a command that was not sent are forgotten when the next one is looked at
//! ([`Client::begin_command`]).
//!
//! Invariant: a client and its backend name each other, but while several clients are pipelined
//! ([`crate::backend::binding`]).

use super::{Client, Pipelining};
use crate::backend::Backend;
use crate::backend::relay::PendingChanges;
use crate::client::buffers::received::Received;
use crate::client::modified::Modified;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::rules::Slot;
use reactor::Time;
use session::own_commands::OwnCommands;
use session::state::Session;
use sql::tracking::Retracked;

/// Parts of a client that change while a reply is relayed to it, and its session.
pub(crate) struct ReplyContext<'a> {
    /// Number of the next packet to it.
    pub(crate) seq: &'a mut u8,
    /// Changes in its session that it is still to be told.
    pub(crate) pending_changes: &'a mut PendingChanges,
    pub(crate) session: &'a Session,
}

impl<S> Client<S> {
    /// Moment at which it entered its state, or its peer last took bytes.
    pub(crate) fn since(&self) -> Time {
        self.since
    }

    /// Restarts its limits of time from here.
    pub(crate) fn count_from(&mut self, now: Time) {
        self.since = now;
    }

    /// Number of the next packet to it.
    pub(crate) fn seq(&self) -> u8 {
        self.seq
    }

    /// Sets the number of the next packet to it.
    pub(crate) fn set_seq(&mut self, seq: u8) {
        self.seq = seq;
    }

    /// Parts that change while a reply is relayed to it.
    pub(crate) fn reply_context(&mut self) -> ReplyContext<'_> {
        ReplyContext {
            seq: &mut self.seq,
            pending_changes: &mut self.pending_changes,
            session: &self.session,
        }
    }

    /// Changes in its session that it is still to be told.
    pub(crate) fn pending_changes(&self) -> &PendingChanges {
        &self.pending_changes
    }

    /// Adds to the changes that it is still to be told.
    pub(crate) fn pending_changes_mut(&mut self) -> &mut PendingChanges {
        &mut self.pending_changes
    }

    /// Bytes received and not handled.
    pub(crate) fn input(&self) -> Option<&Received> {
        self.input.as_deref()
    }

    /// Takes the bytes received and not handled.
    pub(crate) fn take_input(&mut self) -> Option<Box<Received>> {
        self.input.take()
    }

    /// Puts bytes back that were not handled.
    pub(crate) fn put_input(&mut self, input: Box<Received>) {
        self.input = Some(input);
    }

    /// Drops all bytes that were not handled.
    pub(crate) fn forget_input(&mut self) {
        self.input = None;
    }

    /// Ends its command: the pool's own commands are counted anew.
    pub(crate) fn end_command(&mut self) {
        self.own_commands = OwnCommands::default();
    }

    /// Counts an answered command of the pool's own for its command; `false` when it was one too
    /// many.
    #[must_use]
    pub(crate) fn note_own_command(&mut self) -> bool {
        self.own_commands.note()
    }

    /// Trackers that its command sets.
    pub(crate) fn retracking(&self) -> Option<&Retracked> {
        self.effects.as_ref()?.retracking.as_deref()
    }

    /// Plans what it is told of its session from its command on.
    pub(crate) fn plan_retracking(&mut self, retracking: Option<Box<Retracked>>) {
        if retracking.is_some() || self.effects.is_some() {
            self.effects.get_or_insert_default().retracking = retracking;
        }
    }

    /// Takes what its command sets of that.
    pub(crate) fn take_retracking(&mut self) -> Option<Box<Retracked>> {
        let taken = self.effects.as_mut()?.retracking.take();
        self.effects.take_if(|effects| effects.is_empty());
        taken
    }

    /// Variables that its command may set without a report, once that is sent.
    pub(crate) fn modifying(&self) -> Option<&Modified> {
        self.effects.as_ref()?.modifying.as_deref()
    }

    /// Plans which variables its command may set without a report.
    pub(crate) fn plan_modifying(&mut self, modifying: Option<Box<Modified>>) {
        if modifying.is_some() || self.effects.is_some() {
            self.effects.get_or_insert_default().modifying = modifying;
        }
    }

    /// Takes the variables that its command, which is sent, may set without a report.
    pub(crate) fn take_modifying(&mut self) -> Option<Box<Modified>> {
        let taken = self.effects.as_mut()?.modifying.take();
        self.effects.take_if(|effects| effects.is_empty());
        taken
    }

    /// Sets the place of its statement among those that a rule allows; frees the one that it had.
    pub(crate) fn set_slot(&mut self, slot: Option<Slot>) {
        if slot.is_some() || self.effects.is_some() {
            self.effects.get_or_insert_default().slot = slot;
            self.effects.take_if(|effects| effects.is_empty());
        }
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
}
