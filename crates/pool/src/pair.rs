//! A client and the backend that it has, as one value: what each knows of the other's session.
//!
//! The problem: most of what a reply says changes both, the session that the client keeps and the
//! one that stands on its backend, and both must come to the same. The mechanism: [`Pair`] borrows
//! both sessions for the moment, with what they are made of ([`Context`]), and neither connection.
//! [`Pair::checkout`] brings the backend into the client's session, [`Pair::checkin`] decides what
//! becomes of it behind a reply. There is no socket and no queue: what is to be done with the two
//! follows from what is returned, and the group does it.
//!
//! | file | has |
//! |---|---|
//! | `next.rs` | what becomes of the backend when nothing is in flight |
//! | `internal_replies.rs` | what answers to the pool's own commands make of the two |
//! | `answers.rs` | properties of a session that were read back, one function for each |
//! | `changes.rs` | what trackers report of a session and its transaction |
//! | `passing.rs` | a reply that passes by, as its client is to be told it |
//! | `left.rs` | what a statement has left: counts, conditions, FOUND_ROWS(); whose stand where |
//! | `restoring.rs` | the commands that bring a backend into its client's session |
//! | `questions.rs` | what the pool asks behind a statement |
//! | `reports.rs` | reports for which an EOF packet has no room |
//! | `prepared.rs` | prepared statements of the client on its backend |
//! | `names.rs` | those that have names, as texts use them |
//! | `unset.rs` | what a client's command must not find on a backend |
//! | `roles.rs`, `user_variables.rs`, `trackers.rs` | one property each |
//!
//! Invariant: a session that was read back or reported is that of both, or the pair says that the
//! backend is to be closed.

pub(crate) mod answers;
pub(crate) mod changes;
pub(crate) mod internal_replies;
pub(crate) mod left;
pub(crate) mod next;
pub(crate) mod passing;
pub(crate) mod prepared;
pub(crate) mod previous;
pub(crate) mod questions;
pub(crate) mod reports;
pub(crate) mod restoring;
pub(crate) mod roles;
pub(crate) mod trackers;
pub(crate) mod unset;
pub(crate) mod user_variables;
pub(crate) mod view;

use crate::backend::flight::Flight;
use crate::backend::reuse::Reuse;
use crate::backend::{Backend, BackendSession, BackendState};
use crate::client::command::CommandState;
use crate::client::{Client, ClientSession, ClientState};
use crate::errors::reasons::PinReason;
use crate::group::tokens::ClientId;
use crate::limits::retained::Retained;
use crate::observe::figures::counts::Counts;
use crate::server::facts::ServerFacts;
use crate::server::schemas::Schemas;
use reactor::Time;
use session::last_gtid::LastGtid;
use session::state::{Interner, On, Session};
use std::collections::BTreeMap;

/// Sources of a group's sessions, and the meters of what they hold.
pub(crate) struct Context<'a> {
    pub(crate) server: &'a ServerFacts,
    pub(crate) sessions: &'a mut Interner,
    pub(crate) retained: &'a Retained,
    /// Schemas that a pool is known to have been let into.
    pub(crate) schemas: &'a mut Schemas,
    /// `@@last_gtid` of each client to which one was reported.
    pub(crate) gtids: &'a mut BTreeMap<ClientId, LastGtid>,
    pub(crate) counts: &'a mut Counts,
    /// Counts up when another server may answer from here on (see [`session::known_good`]).
    pub(crate) epoch: u64,
    pub(crate) now: Time,
}

/// Reason why a backend is to be closed: its server has said something that makes no sense.
pub(crate) type Broken = &'static str;

const UNREADABLE: Broken = "the server sent session changes that cannot be read";

/// Facts of both connections that no session has.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) client: ClientState,
    pub(crate) is_logging_in: bool,
    pub(crate) capabilities: u32,
    /// The client's pool.
    pub(crate) pool: usize,
    pub(crate) backend: BackendState,
    pub(crate) on: On,
    pub(crate) is_reader: bool,
}

/// The sessions of a client and of its backend, and what is in flight there.
pub(crate) struct Pair<'a> {
    /// The client's key.
    pub(crate) owner: ClientId,
    pub(crate) client: &'a mut ClientSession,
    pub(crate) backend: &'a mut BackendSession,
    pub(crate) command: &'a mut CommandState,
    pub(crate) flight: &'a mut Flight,
    pub(crate) reuse: &'a mut Reuse,
    pub(crate) ends: Ends,
    pub(crate) context: Context<'a>,
}

impl<'a> Pair<'a> {
    /// The sessions of these two.
    pub(crate) fn of<S>(
        owner: ClientId,
        client: &'a mut Client<S>,
        backend: &'a mut Backend<S>,
        context: Context<'a>,
    ) -> Pair<'a> {
        let ends = Ends {
            client: client.state(),
            is_logging_in: client.is_logging_in(),
            capabilities: client.capabilities,
            pool: client.pool as usize,
            backend: backend.state(),
            on: backend.on(context.server.flavour),
            is_reader: backend.is_reader(),
        };
        Pair {
            owner,
            client: &mut client.session,
            backend: &mut backend.session,
            command: &mut client.command,
            flight: &mut backend.flight,
            reuse: &mut backend.reuse,
            ends,
            context,
        }
    }

    /// Pins the client to its backend for good.
    pub(crate) fn pin(&mut self, reason: PinReason) {
        let counted = (self.context.now, &mut *self.context.counts);
        self.client.pin(reason, None, counted);
    }

    /// Pins the client to its backend as long as it has something of this name.
    fn pin_while(&mut self, reason: PinReason, name: &[u8]) {
        let counted = (self.context.now, &mut *self.context.counts);
        self.client.pin(reason, Some(name.into()), counted);
    }

    /// Changes both sessions alike, which may differ by what the client's alone has been told.
    fn change_both(&mut self, mut change: impl FnMut(&mut Session)) {
        for session in [&mut self.client.state, &mut self.backend.state] {
            let mut changed = (**session).clone();
            change(&mut changed);
            *session = self.context.sessions.intern(changed);
        }
    }
}

#[cfg(test)]
mod tests;
