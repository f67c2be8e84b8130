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
pub(crate) struct ConnectionSlot {
    pub(crate) random: Random,
    /// Decides its source address.
    pub(crate) index: u32,
    /// It was open before.
    pub(crate) reopening: bool,
    /// Rows that it has made.
    pub(crate) made: u32,
    /// We closed it ourselves: it is opened again without regard to the connect rate.
    pub(crate) unpaced: bool,
    /// Times that its event has been given up and is to be run again.
    pub(crate) repeats: u16,
    pub(crate) events: u32,
    pub(crate) busy: Duration,
    /// Intended start of its event, from which the event's latency runs.
    pub(crate) event_at: Time,
    /// Not connected: when it is to be opened again, from which a repeated event's first statement
    /// runs.
    pub(crate) asked_at: Time,
}

impl ConnectionSlot {
    pub(crate) fn new(random: Random, index: u32) -> ConnectionSlot {
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

    /// A connection of it stood, now or before.
    pub(crate) fn was_open(&self) -> bool {
        self.reopening || self.events > 0
    }

    /// Random numbers that its workload draws from.
    pub(crate) fn draw(&mut self) -> Draw<'_> {
        Draw {
            random: &mut self.random,
            index: self.index,
            made: &mut self.made,
        }
    }
}
