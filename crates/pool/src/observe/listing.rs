//! Questions to groups one by one: their clients and backends line by line, and to end a client.
//!
//! The problem: a group may hold 17,000 clients, and a list of all of them would hold up its
//! statements. The mechanism: a list comes in pages of [`PAGE`] clients, each asked for by itself;
//! a client that comes or goes between two pages may be missing or stand there twice.

use crate::observe::figures::Stage;
use crate::observe::log::Peer;
use crate::statements::kill::jobs::KillEnd;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Clients of a page.
pub(crate) const PAGE: usize = 1000;

/// Something that a group is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Ticket of the asker that waits for the answer.
    pub(crate) ticket: u64,
    pub(crate) what: Wanted,
}

/// Kinds of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A page of clients, of which so many are passed over; `busy`: only of those that have a
    /// backend or wait for one.
    Clients { from: usize, busy: bool },
    /// The sums of a page of clients.
    Sums { from: usize },
    /// The client that holds most memory.
    Holder,
    /// All backends.
    Backends,
    /// That a client, or its statement, is ended; with `idle_for`, only if it has run nothing for
    /// so long in its open transaction.
    Kill {
        id: u32,
        query: bool,
        idle_for: Option<Duration>,
    },
}

/// A group's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) ticket: u64,
    pub(crate) said: Said,
}

/// Contents of an answer.
#[derive(Debug)]
pub(crate) enum Said {
    /// A page; one that is not full is the last.
    Clients(Vec<ClientLine>),
    /// Sums of a page of so many clients.
    Sums(Sums, usize),
    Backends(Vec<BackendLine>),
    Killed(KillEnd),
}

/// Clients summed up where they are: the allocator would keep a list of all for good.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// By user and host: clients, those that run, wait, are pinned.
    pub(crate) sources: BTreeMap<(String, String), [usize; 4]>,
    /// By reason and text: clients, and the longest time in seconds.
    pub(crate) pins: BTreeMap<(String, String), (usize, f64)>,
}

impl Sums {
    pub(crate) fn add(&mut self, client: &ClientLine) {
        let user = client.user.as_deref().unwrap_or("(logging in)");
        let source = (user.to_owned(), client.address.host());
        let counts = self.sources.entry(source).or_default();
        counts[0] += 1;
        counts[1] += usize::from(client.state == Stage::Running.name());
        counts[2] += usize::from(client.state == Stage::Waiting.name());
        if client.pins.is_empty() {
            return;
        }
        counts[3] += 1;
        let reasons: Vec<&str> = client.pins.iter().map(|(reason, _)| *reason).collect();
        let by = client.pinned_by.clone().unwrap_or_default();
        let (count, longest) = self.pins.entry((reasons.join(", "), by)).or_default();
        *count += 1;
        *longest = longest.max(client.pinned_seconds().unwrap_or(0.0));
    }

    /// Adds those of another page.
    pub(crate) fn merge(&mut self, other: Sums) {
        for (source, more) in other.sources {
            let counts = self.sources.entry(source).or_default();
            (counts.iter_mut().zip(more)).for_each(|(count, more)| *count += more);
        }
        for (pin, (more, seconds)) in other.pins {
            let (count, longest) = self.pins.entry(pin).or_default();
            (*count, *longest) = (*count + more, longest.max(seconds));
        }
    }
}

/// A client, as lists show it.
#[derive(Clone, Debug)]
pub(crate) struct ClientLine {
    pub(crate) id: u32,
    /// Its user; `None` until that is proven.
    pub(crate) user: Option<String>,
    pub(crate) address: Peer,
    pub(crate) group: usize,
    pub(crate) state: &'static str,
    pub(crate) state_seconds: f64,
    /// The queue in which its statement waits.
    pub(crate) queue: Option<&'static str>,
    pub(crate) schema: Option<String>,
    /// The server's number of its backend.
    pub(crate) thread: Option<u32>,
    pub(crate) in_transaction: bool,
    /// Seconds for which the transaction is open, and how many statements were answered in it.
    pub(crate) transaction: Option<(f64, u32)>,
    /// Reason why it is pinned and for how long, the oldest first; and by which text.
    pub(crate) pins: Vec<(&'static str, f64)>,
    pub(crate) pinned_by: Option<String>,
    /// Named locks that it has, or has asked for last.
    pub(crate) lock_names: Vec<String>,
    /// Its prepared statements of the protocol.
    pub(crate) prepared: usize,
    pub(crate) memory_bytes: usize,
    pub(crate) unsent_bytes: usize,
    /// Version and cipher of TLS.
    pub(crate) tls: Option<(&'static str, &'static str)>,
    /// Name of its program.
    pub(crate) program: Option<Arc<str>>,
    pub(crate) connected_seconds: f64,
    /// Digest of the statement that runs or waits, or was the last one; 0: of none.
    pub(crate) digest: u64,
    /// Text of that statement, while it runs or waits or the client has a backend.
    pub(crate) statement: Option<Arc<str>>,
    /// Statements that it has sent to the server.
    pub(crate) statements: u32,
    /// Bytes that it has sent and taken.
    pub(crate) bytes: Option<(u64, u64)>,
}

impl ClientLine {
    /// Time since it was pinned.
    pub(crate) fn pinned_seconds(&self) -> Option<f64> {
        self.pins.first().map(|(_, seconds)| *seconds)
    }
}

/// A backend, as lists show it.
#[derive(Clone, Debug)]
pub(crate) struct BackendLine {
    pub(crate) thread: u32,
    pub(crate) group: usize,
    pub(crate) account: String,
    pub(crate) address: String,
    pub(crate) state: &'static str,
    pub(crate) state_seconds: f64,
    pub(crate) age_seconds: f64,
    /// The id of the client that has it.
    pub(crate) client: Option<u32>,
    pub(crate) in_transaction: bool,
    /// Commands whose reply is outstanding.
    pub(crate) in_flight: usize,
    /// Statements that are prepared on it.
    pub(crate) prepared: usize,
}

/// Askers that wait, each for its answer.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    by_ticket: BTreeMap<u64, SyncSender<Said>>,
}

impl Questions {
    /// A ticket, and where its answer comes.
    pub(crate) fn ticket(&self) -> (u64, Receiver<Said>) {
        // One answer comes to a ticket: nobody who answers waits.
        let (sender, receiver) = sync_channel(1);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.last += 1;
        let ticket = waiting.last;
        waiting.by_ticket.insert(ticket, sender);
        (ticket, receiver)
    }

    /// Removes a ticket whose answer nobody waits for any more.
    pub(crate) fn forget(&self, ticket: u64) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.by_ticket.remove(&ticket);
    }

    /// Hands an answer to the one that waits for it.
    pub(crate) fn answer(&self, answer: Answer) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = waiting.by_ticket.remove(&answer.ticket);
        drop(waiting);
        if let Some(sender) = sender {
            // Who has stopped waiting has no use for it.
            let _ = sender.try_send(answer.said);
        }
    }
}
