//! A client in a queue: the queue that it waits in, and the backends that suit it best.
//!
//! Queues are [`crate::scheduler::queue`]'s, the choice of a backend is
//! [`crate::scheduler::matching`]'s.

use crate::client::{Client, ClientSession, ClientState};
use crate::config::Settings;
use crate::scheduler::matching::choice::Affinity;
use crate::scheduler::priority::{Mode, Priority};
use crate::scheduler::queue::QueueName;

impl<S> Client<S> {
    /// The queue for what it wants now; takes a ticket where that is the high one.
    pub(crate) fn queue(&mut self, goes_before_slow: bool, settings: &Settings) -> QueueName {
        if self.state() == ClientState::Opening {
            return QueueName::Login;
        }
        if self.backend().is_some() {
            return QueueName::Held;
        }
        if goes_before_slow {
            return QueueName::High;
        }
        let limits = &settings.users[self.identity.user()].limits;
        let high = match self.place.priority.unwrap_or(limits.priority) {
            Priority::High => true,
            Priority::Low => false,
            Priority::Auto => limits.high_prio_mode == Mode::Statements,
        };
        if high && self.place.use_ticket() {
            return QueueName::High;
        }
        self.place.give_tickets(limits.high_prio_tickets);
        QueueName::Low
    }
}

impl ClientSession {
    /// Loss of the client if another used the backend of its last statement.
    pub(crate) fn affinity(&self) -> Affinity {
        match self.last.alone_knows() {
            true => Affinity::Only,
            false if self.last.may_be_asked_for() => Affinity::Counts,
            false => Affinity::None,
        }
    }
}
