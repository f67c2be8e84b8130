//! A connection's place in the run: what stays when it is closed and reopened.
//!
//! Connections come and go (lost, given up, at the end of a lifetime); the run goes on in their
//! slots: the random numbers, the counts, and an event that was given up and is to be run again.

use crate::random::Random;
use crate::workload::Draw;
use reactor::Time;
use std::time::Duration;

/// The part of a connection that outlives reopening.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionSlot {
    /// Random numbers of the connection, from the run's seed and its index.
    pub random: Random,
    /// Decides its source address.
    pub index: u32,
    /// True if it was open before.
    pub reopening: bool,
    /// Rows that it has made.
    pub made: u32,
    /// We closed it ourselves: it is opened again without regard to the connect rate.
    pub unpaced: bool,
    /// Times that its event has been given up and is to be run again.
    pub repeats: u16,
    /// Events that it has finished.
    pub events: u32,
    /// Time for which its statements were executing.
    pub busy: Duration,
    /// Intended start of its event, from which the event's latency runs.
    pub event_at: Time,
    /// Not connected: when it is to be opened again, from which a repeated event's first statement
    /// runs.
    pub asked_at: Time,
}

impl ConnectionSlot {
    /// A connection that has not been opened yet.
    pub fn new(random: Random, index: u32) -> ConnectionSlot {
        ConnectionSlot {
            random,
            index,
            reopening: false,
            made: 0,
            unpaced: false,
            repeats: 0,
            events: 0,
            busy: Duration::ZERO,
            event_at: Time(0),
            asked_at: Time(0),
        }
    }

    /// True if a connection of it stood, now or before.
    pub fn was_open(&self) -> bool {
        self.reopening || self.events > 0
    }

    /// Random numbers that its workload draws from.
    pub fn draw(&mut self) -> Draw<'_> {
        Draw {
            random: &mut self.random,
            index: self.index,
            made: &mut self.made,
        }
    }
}
