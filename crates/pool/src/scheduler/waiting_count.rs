//! Clients that wait in the queues of a group, counted, and the moments that are the places of
//! commands.
//!
//! A wait is bounded by the statements that wait in the group, by those of the client's user, and
//! by the bytes of their commands. Who meets a bound gets an error of its own number at once;
//! nothing was executed, so it may be tried again. None of the bounds holds for who has a backend
//! already: others may wait for the locks of its transaction, so it has to get on, and there is at
//! most one such client for each backend.
//!
//! A command's place is the moment at which it came, and no two have the same.
//!
//! Invariant: the counts of the group and of the users are changed together, when a client enters a
//! queue ([`WaitingCount::enter`]) and when it leaves that ([`WaitingCount::leave`]), and nowhere
//! else.

use crate::client::Client;
use crate::config::Settings;
use crate::errors::reasons::Refusal;
use crate::scheduler::queue::QueueName;
use reactor::Time;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Clients that wait in the queues of a group.
#[derive(Debug, Default)]
pub(crate) struct WaitingCount {
    /// Statements and logins in queues.
    count: usize,
    /// Bytes of the commands of those.
    bytes: usize,
    /// The place of the last command to come.
    last_place: Time,
}

impl WaitingCount {
    /// Number of clients that wait.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// True if nobody does.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The place of a client's command: the moment at which it came, which no other has.
    pub(crate) fn place_of<S>(&mut self, client: &mut Client<S>, now: Time) -> Time {
        let next = now.max(self.last_place + Duration::from_nanos(1));
        if client.place.take(next) {
            self.last_place = next;
        }
        client.place.since()
    }

    /// Reason why a client's command of `len` bytes cannot wait in this queue, if it cannot.
    pub(crate) fn refusal<S>(
        &self,
        client: &Client<S>,
        (queue, len): (QueueName, usize),
        settings: &Settings,
    ) -> Option<Refusal> {
        // Who had to wait elsewhere first, or has been in a queue, came when there was room.
        if client.place.is_held() || queue == QueueName::Held {
            return None;
        }
        let (waiting, bytes) = (self.count, self.bytes);
        if waiting >= settings.waiting_max {
            return Some(Refusal::QueueFull { queue, waiting });
        }
        if bytes + len > settings.waiting_bytes_max {
            return Some(Refusal::QueueBytes { queue, bytes, len });
        }
        let user = &settings.users[client.identity.user()];
        let of_user = user.usage.waiting.load(Relaxed);
        let full = user.limits.waiting_max.is_some_and(|max| of_user >= max);
        full.then(|| Refusal::UserQueueFull {
            user: user.name.clone(),
            queue,
            waiting: of_user,
        })
    }

    /// Counts a client's command of `len` bytes into this queue, at this place.
    pub(crate) fn enter<S>(
        &mut self,
        client: &mut Client<S>,
        (queue, since, len): (QueueName, Time, usize),
        settings: &Settings,
    ) {
        client.place.enter(queue, since, len);
        self.count += 1;
        self.bytes += client.place.bytes();
        settings.users[client.identity.user()].count_waiting(true);
    }

    /// Takes a client out of its queue, and of the count.
    pub(crate) fn leave<S>(&mut self, client: &mut Client<S>, settings: &Settings) {
        client.place.leave();
        self.count -= 1;
        self.bytes -= client.place.bytes();
        settings.users[client.identity.user()].count_waiting(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn client() -> Client<()> {
        Client::of_tests(Time(1), Rc::default())
    }

    #[test]
    fn no_two_commands_of_one_moment_have_the_same_place() {
        let (mut line, now) = (WaitingCount::default(), Time(50));
        let (mut a, mut b) = (client(), client());
        let places = [&mut a, &mut b].map(|client| line.place_of(client, now));
        assert_eq!(places, [Time(50), Time(51)]);
        assert_eq!(
            line.place_of(&mut a, Time(90)),
            Time(50),
            "it keeps its place"
        );
        assert_eq!(line.place_of(&mut client(), Time(51)), Time(52));
    }
}
