//! Pins of a client: causes that begin now are noted, counted and logged.
//!
//! The causes and their order are [`session::pins`]'; the texts that have them are read in
//! [`crate::statements::pinning`].

use crate::client::ClientSession;
use crate::errors::reasons::PinReason;
use crate::observe::figures::counts::Counts;
use reactor::Time;
use sql::acquired::Name;

impl ClientSession {
    /// Notes that it keeps its backend from now on, for what it did before: as long as it has
    /// something of this name, or for good.
    pub(crate) fn pin(
        &mut self,
        reason: PinReason,
        name: Option<Name>,
        (now, counts): (Time, &mut Counts),
    ) {
        if self.pins.add(reason, name, now.0) {
            counts.pinned_for(reason);
        }
    }

    /// Starts the pins of the command that goes out, and counts them.
    pub(crate) fn note_pins(&mut self, now: Time, counts: &mut Counts) {
        for reason in self.pins.sent(now.0) {
            counts.pinned_for(reason);
        }
    }
}
