//! Resources that a group lends its connections, one at a time.
//!
//! A connection of the generator has no buffers and no counters, so that a million of them fit.
//! Its group has one [`Context`] and passes it to whoever an event is for. Invariant: between two
//! connections the buffers are empty.

use crate::preparing::Refusals;
use crate::work::Work;
use load_core::allowance::Allowance;
use load_core::errors::Fault;
use load_core::plan::Plan;
use load_core::stats::Stats;
use reactor::{RealNet, Time};
use std::sync::Arc;
use std::time::Duration;
use wire::compressed::Packer;
/// Resources that a group lends a connection.
pub(crate) struct Context {
    pub(crate) net: RealNet,
    pub(crate) plan: Arc<Plan>,
    pub(crate) stats: Stats,
    /// Buffer for reading.
    pub(crate) buffer: Vec<u8>,
    /// Buffer for writing.
    pub(crate) out: Vec<u8>,
    /// Compression: what is unpacked, what is packed, and who does it.
    pub(crate) plain: Vec<u8>,
    pub(crate) frames: Vec<u8>,
    pub(crate) packer: Box<Packer>,
    /// Connections that wait for a reply.
    pub(crate) executing: u32,
    /// New statements may be sent.
    pub(crate) running: bool,
    /// The error that is to end the run, until it is told.
    pub(crate) fatal: Option<String>,
    /// Statements that the server does not prepare.
    pub(crate) refusals: Refusals,
    pub(crate) work: Work,
    pub(crate) events: Arc<Allowance>,
}

impl Context {
    /// Counts a statement that failed so long after it was sent; true when its event is to be run
    /// again.
    pub(crate) fn failed(&mut self, fault: Fault, age: Duration) -> bool {
        let again = self.plan.tolerance.ignores(&fault);
        self.heed(&fault);
        self.stats.failed(fault, again, Some(age));
        again
    }

    /// Ends the run where this error is one that does.
    pub(crate) fn heed(&mut self, fault: &Fault) {
        if self.plan.tolerance.ends_at(fault) {
            self.fatal.get_or_insert_with(|| fault.words());
        }
    }

    /// Takes leave to begin up to `wanted` more events at once; returns how many.
    pub(crate) fn take_events(&mut self, wanted: u32) -> u32 {
        self.events.take(wanted)
    }

    /// The intended start of the event that a connection is to begin now that its last one is
    /// over; `None` lets it rest.
    pub(crate) fn next_start(&mut self, now: Time) -> Option<Time> {
        let start = match self.running {
            true => self.work.next_start(now)?,
            false => return None,
        };
        // An arrival took its leave when it arrived.
        (!self.work.is_closed || self.take_event()).then_some(start)
    }

    /// Takes leave to begin one more event.
    pub(crate) fn take_event(&mut self) -> bool {
        self.running && self.events.take(1) == 1
    }
}
