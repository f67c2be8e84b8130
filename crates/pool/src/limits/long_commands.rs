//! Long commands: how many of them a group has at the server at once.
//!
//! The problem: a statement of tens of MiB keeps its backend for as long as it takes to send and to
//! parse, which is seconds where the server has several of them. A hundred clients that send such
//! ones had all backends, and the short statements of everybody else waited for one until error
//! 9501. The server gets no more done by having all of them at once.
//!
//! The mechanism: a client whose long command has come whole waits with it in front of the queues,
//! among those who wait for room (`limits/unfinished.rs`), while [`AT_ONCE`] of its group are under
//! way, and while they have half of the group's backends. One that was sent and has run for
//! [`LASTS`] is no longer under way: it may wait for a lock. A client that has a backend does not
//! wait, since others may wait for its transaction.
//!
//! Invariant: who waits is admitted within the time of `wait_ms_max`, or refused.

use crate::backend::Backend;
use crate::client::buffers::received::Received;
use crate::client::buffers::room::{Inputs, Standing};
use crate::client::clients::Clients;
use crate::group::parts::Parts;
use crate::group::tokens::{BackendId, ClientId};
use reactor::{Net, Slots, Time};
use std::time::Duration;
use wire::packet::{Frame, frame};

/// Bytes from which on a command is long.
pub(crate) const LONG_COMMAND: usize = 1 << 20;

/// Long commands of a group that are under way at once.
const AT_ONCE: usize = 2;

/// Age from which on a sent one is under way only until the server has taken all of it.
const LASTS: Duration = Duration::from_secs(5);

/// True if a whole long command is at the front of what a client has sent.
pub(crate) fn is_long(input: &Received) -> bool {
    input.len() >= LONG_COMMAND
        && matches!(frame(input), Frame::Whole { total, .. } if total >= LONG_COMMAND)
}

impl<S> Backend<S> {
    /// True if a long command is in flight; of one, true if it is under way.
    fn long_command(&self, now: Time) -> Option<bool> {
        let mut flight = self.flight.iter();
        let command = flight.find(|command| command.is_long)?;
        Some(self.unsent() > 0 || now.since(command.sent) < LASTS)
    }
}

impl Inputs {
    /// True if one more long command may go to the server, or to the queues, in a group with this
    /// `share` of the backends.
    pub(crate) fn admits_long<S>(
        &self,
        clients: &Clients<S>,
        backends: &Slots<Backend<S>, BackendId>,
        (share, now): (usize, Time),
    ) -> bool {
        let (mut under_way, mut at_server) = (0, 0);
        for (_, backend) in backends.iter() {
            if let Some(is_under_way) = backend.long_command(now) {
                under_way += usize::from(is_under_way);
                at_server += 1;
            }
        }
        let holders = self.holders.keys();
        let holders = holders.filter_map(|key| clients.get(*key));
        let queued = holders.filter(|client| client.queues_long()).count();
        let most = (share / 2).max(1);
        under_way + queued < AT_ONCE && at_server + queued < most
    }
}

/// True if the long command at the front of `input` is not to be looked at yet; `needs_backend`:
/// its client has none.
pub(crate) fn waits_behind_long<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    input: &Received,
    needs_backend: bool,
) -> bool {
    if !is_long(input) {
        return false;
    }
    let share = parts.shared.budget.share(parts.index);
    let waits = needs_backend
        && !(parts.client_side.inputs).admits_long(
            &parts.clients,
            &parts.backends,
            (share, parts.net.now()),
        );
    if waits {
        parts.room().wait_behind_long(key);
    } else if parts.client_side.inputs.is_behind_long(key) {
        parts.client_side.inputs.stand(key, Standing::Reading);
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{InFlight, Purpose};
    use crate::client::ClientState;
    use crate::group::Group;
    use crate::group::scripted::Scripted;
    use crate::group::tests::{NOW, backend, bound, client, group};
    use wire::command::{Command, ReplyShape, put_command};

    /// A backend that runs a long command, sent then.
    fn runs_long(group: &mut Group<Scripted>, sent: Time) -> BackendId {
        let backend_id = backend(group);
        let own = InFlight::own(None, Purpose::Statement, ReplyShape::Results);
        let is_long = true;
        let command = InFlight {
            sent,
            is_long,
            ..own
        };
        group
            .parts
            .backends
            .get_mut(backend_id)
            .unwrap()
            .flight
            .expect(command);
        backend_id
    }

    /// A client's input with a whole command of so many bytes.
    fn command(len: usize) -> Received {
        let (mut input, mut bytes) = (Received::default(), Vec::new());
        put_command(&mut bytes, Command::Query, &vec![b'x'; len - 5]);
        input.buffer().extend_from_slice(&bytes);
        input
    }

    /// True if a client waits that has sent a command of so many bytes.
    fn waits(group: &mut Group<Scripted>, key: ClientId, len: usize) -> bool {
        let client = group.parts.clients.get(key);
        let needs_backend = client.unwrap().needs_backend();
        waits_behind_long(&mut group.parts, key, &command(len), needs_backend)
    }

    fn admits(group: &Group<Scripted>) -> bool {
        let at = (group.parts.shared.budget.share(0), group.parts.net.now());
        (group.parts.client_side.inputs).admits_long(
            &group.parts.clients,
            &group.parts.backends,
            at,
        )
    }

    #[test]
    fn so_many_long_commands_are_under_way_and_the_next_waits() {
        let mut group = group();
        let key = client(&mut group);
        let first = runs_long(&mut group, NOW);
        assert!(!waits(&mut group, key, LONG_COMMAND));
        runs_long(&mut group, NOW);
        assert!(!waits(&mut group, key, LONG_COMMAND - 1));
        let (holder, _) = bound(&mut group);
        assert!(!waits(&mut group, holder, LONG_COMMAND));
        assert!(waits(&mut group, key, LONG_COMMAND));
        assert!(
            group.parts.client_side.inputs.is_behind_long(key)
                && group.parts.client_side.inputs.has_waiting()
        );
        group.serve_inputs(NOW);
        assert!(
            group.parts.client_side.inputs.is_behind_long(key),
            "nothing has ended"
        );
        group
            .parts
            .backends
            .get_mut(first)
            .unwrap()
            .flight
            .take_answered();
        group.serve_inputs(NOW);
        assert!(
            !group.parts.client_side.inputs.holds_up(key)
                && !group.parts.client_side.inputs.has_waiting()
        );
    }

    #[test]
    fn who_waits_for_a_backend_or_its_session_counts_too() {
        let mut group = group();
        let key = client(&mut group);
        runs_long(&mut group, NOW);
        let (next, _) = bound(&mut group);
        let client = group.parts.clients.get_mut(next).unwrap();
        client.input.put(Some(Box::new(command(LONG_COMMAND))));
        assert!(client.change_state(ClientState::Restoring, NOW));
        group.parts.room().count(next);
        assert!(waits(&mut group, key, LONG_COMMAND));
    }

    #[test]
    fn what_waits_at_the_server_holds_up_others_for_a_while_and_leaves_half_of_the_backends() {
        let mut group = group();
        for _ in 0..AT_ONCE {
            runs_long(&mut group, NOW);
        }
        assert!(!admits(&group));
        group.parts.net.now = NOW + LASTS;
        assert!(admits(&group));
        let half = group.parts.shared.budget.share(0) / 2;
        for _ in AT_ONCE..half - 1 {
            runs_long(&mut group, NOW);
        }
        assert!(admits(&group));
        runs_long(&mut group, NOW);
        assert!(!admits(&group));
    }
}
