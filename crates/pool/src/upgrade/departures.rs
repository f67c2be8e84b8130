//! The line of clients that go to another process next.
//!
//! [`crate::upgrade::departing`] decides who stands in it. Invariant: nobody stands in it
//! while no hand-over is under way.

use crate::group::tokens::ClientId;
use crate::upgrade::record::Stays;
use reactor::Time;
use std::collections::HashSet;

/// Clients of a batch: all of them are out of service until it is acknowledged, and to make and to
/// read one takes a part of a turn.
pub(crate) const BATCH_CLIENTS: usize = 64;

/// Readiness of a client to go to another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Going {
    /// Now.
    Now,
    /// Once its backend has answered what the pool asks behind a statement.
    Soon(Stays),
    /// Not, for this reason.
    Not(Stays),
}

/// Order in which clients go.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    /// The group hands over.
    pub(super) is_open: bool,
    /// Clients in line, each with the time since when.
    pub(super) queue: Vec<(ClientId, Time)>,
    /// Clients that the other process does not take, with a backend or without.
    pub(super) refused: HashSet<(ClientId, bool)>,
}

impl Departures {
    /// Opens the line of clients that go to another process, one after the other.
    pub(crate) fn begin(&mut self) {
        *self = Departures {
            is_open: true,
            ..Departures::default()
        };
    }

    /// Closes the line; returns the clients in it, which are to be served on.
    pub(crate) fn end(&mut self) -> Vec<ClientId> {
        let queue = std::mem::take(self).queue;
        queue.into_iter().map(|(key, _)| key).collect()
    }

    /// Puts one that was taken out of the line back in front, for the next batch.
    pub(crate) fn put_back(&mut self, departure: (ClientId, Time)) {
        self.queue.insert(0, departure);
    }

    pub(crate) fn has(&self, key: ClientId) -> bool {
        self.queue.iter().any(|(other, _)| *other == key)
    }
}
