//! The event loop of the generator's threads: wait, deal with events and orders, take a turn, end.
//!
//! What connections say differs (statements of a workload, a script, long connections, the servers
//! to test those against); that a thread waits in one poll for its sockets and its mailbox does
//! not. A group says when it is due at the latest and what it does ([`Turns`]); [`run`] is the
//! life of its thread.
//!
//! Invariants: orders and sockets are looked at in every turn; a group that is over is finished
//! once, behind the turn in which it ended; whatever fails is told in words.

use reactor::{Event, Key, Mailbox, RealNet, Time, Token, descriptors, scheduling};
use std::io;

/// Token of a connection.
pub const CONNECTION: u8 = 0;
/// Token of the group's mailbox.
pub const MAILBOX: u8 = 1;
/// Token of a socket that accepts.
pub const LISTENER: u8 = 2;
/// An event that comes so many events later is announced.
const EVENTS_AHEAD: usize = 2;

/// Scheduling of a thread by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waking {
    /// A little late where others are at work: most answers can wait.
    Gently,
    /// Wake at once: waking late would be the generator's own doing.
    AtOnce,
}

impl Waking {
    /// Scheduling for threads that keep times: at once.
    pub fn keeping_time(keeps_time: bool) -> Waking {
        match keeps_time {
            true => Waking::AtOnce,
            false => Waking::Gently,
        }
    }
}

/// Progress of a group, as the main thread has been told: each step once, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Milestone {
    /// Connections are being opened.
    Opening,
    /// End of the ramp: every connection has been tried.
    Settled,
    /// All that was to be done has been done, or cannot be.
    Finished,
}

/// Work of a group; all else of its thread's life is [`run`].
pub trait Turns: Sized {
    /// Sockets on which it waits.
    fn net(&mut self) -> &mut RealNet;
    /// Moment by which the next turn has to come.
    fn deadline(&self) -> Time;
    /// Follows the orders in the mailbox.
    fn obey(&mut self);
    /// Handles an event of a socket of its own.
    fn on_event(&mut self, event: &Event);
    /// Announces an event on this socket that will follow soon.
    fn announce(&self, _socket: Key) {}
    /// Works on what is due besides events.
    fn turn(&mut self);
    /// True if the group has nothing left to do.
    fn is_over(&self) -> bool;
    /// Tells the main thread what is new.
    fn say_news(&mut self) {}
    /// Closes everything and hands over the last numbers.
    fn finish(self);
}

/// Makes a thread's own descriptor table and its poll.
///
/// # Errors
/// A sentence with the system's reason.
pub fn open(waking: Waking) -> Result<RealNet, String> {
    // Where this is not allowed the main thread knows it and has said so.
    let _ = descriptors::own_table();
    if waking == Waking::Gently {
        let _ = scheduling::wake_gently();
    }
    RealNet::new().map_err(|error| wrong("make its poll", &error))
}

/// Lets orders wake the thread.
///
/// # Errors
/// A sentence with the system's reason.
pub fn watch_mailbox<O>(net: &mut RealNet, mailbox: &Mailbox<O>) -> Result<(), String> {
    let token = Token::new(MAILBOX, Key::from_parts(0, 0));
    let watched = net.watch_mailbox(mailbox, token);
    watched.map_err(|error| wrong("watch its mailbox", &error))
}

/// Message for a failed call of the system.
pub fn wrong(what: &str, error: &io::Error) -> String {
    format!("a group could not {what}: {error}")
}

/// Turn after turn, until it is over.
///
/// # Errors
/// A sentence with the system's reason, where the poll fails.
pub fn run<T: Turns>(mut group: T) -> Result<(), String> {
    let mut events = Vec::new();
    loop {
        let deadline = group.deadline();
        let waited = group.net().wait(deadline, &mut events);
        waited.map_err(|error| format!("a group's poll failed: {error}"))?;
        for (at, event) in events.iter().enumerate() {
            if let Some(coming) = events.get(at + EVENTS_AHEAD) {
                group.announce(coming.token.key());
            }
            match event.token.kind() {
                MAILBOX => group.obey(),
                _ => group.on_event(event),
            }
        }
        group.turn();
        if group.is_over() {
            group.finish();
            return Ok(());
        }
        group.say_news();
    }
}
