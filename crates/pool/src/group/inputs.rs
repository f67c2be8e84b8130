//! Unfinished commands of clients: who is read on, and who is refused.
//!
//! The bounds, the counts and the line are those of [`crate::limits::unfinished`]. Invariant: who
//! is refused for what it holds is counted again before anything else is read from it.

use crate::group::Group;
use crate::limits::unfinished::TURN_BYTES;
use crate::scheduler::bulk::TURN_MAX;
use reactor::{Net, Time};

impl<N: Net> Group<N> {
    /// Serves those who stand in line, and those for whom there is room now, in bulk work that
    /// `began` then.
    pub(crate) fn serve_inputs(&mut self, began: Time) {
        self.parts.room().admit_waiting();
        let at = (
            self.parts.shared.budget.share(self.parts.index),
            self.parts.net.now(),
        );
        if !self.parts.client_side.inputs.behind_long.is_empty()
            && (self.parts.client_side.inputs).admits_long(
                &self.parts.clients,
                &self.parts.backends,
                at,
            )
        {
            self.parts.room().admit_behind_long();
        }
        let mut left = TURN_BYTES;
        for _ in 0..self.parts.client_side.inputs.queue.len() {
            if left == 0 || self.parts.net.clock().since(began) >= TURN_MAX {
                break;
            }
            let Some((key, share)) = self.parts.room().next_in_queue(left) else {
                continue;
            };
            self.serve_client(key);
            left = left.saturating_sub(self.parts.room().served(key, share));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::client::buffers::packing::Compression;
    use crate::client::input::SCRATCH_LEN;
    use crate::client::pump;
    use crate::group::Group;
    use crate::group::scripted::Scripted;
    use crate::group::tests::{client, group};
    use crate::group::tokens::ClientId;
    use crate::scheduler::client_turn::COMMANDS_MAX;
    use reactor::Event;
    use wire::compressed::{Algorithm, Packer};

    const PING: &[u8] = b"\x01\0\0\0\x0e";
    /// Bytes of the OK that answers it.
    const OK_LEN: usize = 11;
    const TURN: usize = COMMANDS_MAX as usize;

    /// A client that has sent so many pings at once.
    fn flood(group: &mut Group<Scripted>, pings: usize) -> ClientId {
        let key = client(group);
        let client = group.parts.clients.get_mut(key).unwrap();
        client.keep_input(&PING.repeat(pings));
        key
    }

    /// Pings of a client that were read and not answered.
    fn left(group: &Group<Scripted>, key: ClientId) -> usize {
        let input = group.parts.clients.get(key).unwrap().input.bytes();
        input.map_or(0, |input| input.len() / PING.len())
    }

    /// Event of bytes from a client.
    fn comes(group: &mut Group<Scripted>, key: ClientId, bytes: &[u8]) -> Event {
        group.parts.net.incoming = bytes.to_vec();
        Event {
            token: key.token(),
            readable: true,
            writable: false,
            closed: false,
        }
    }

    #[test]
    fn commands_that_need_no_server_take_turns_with_those_of_others() {
        let mut group = group();
        let floods = [0; 3].map(|_| flood(&mut group, 4 * TURN));
        for key in floods {
            pump::pump(&mut group.parts, key);
            assert_eq!(left(&group, key), 3 * TURN);
        }
        // More of what it sends gives it no further turn, and another client gets on at once.
        let other = client(&mut group);
        let more = comes(&mut group, floods[0], PING);
        pump::on_client(&mut group.parts, floods[0], more);
        group.run_tasks();
        assert_eq!(left(&group, floods[0]), 3 * TURN);
        let asks = comes(&mut group, other, PING);
        let before = group.parts.net.written.len();
        pump::on_client(&mut group.parts, other, asks);
        group.run_tasks();
        assert_eq!(group.parts.net.written.len() - before, OK_LEN);
        // Who has had a turn stands behind those who have not.
        while group.parts.client_side.inputs.has_line() {
            let before = floods.map(|key| left(&group, key));
            group.do_bulk_work();
            let after = floods.map(|key| left(&group, key));
            for (before, after) in before.iter().zip(after) {
                assert!(
                    before - after <= TURN,
                    "{before} before it, {after} behind it"
                );
            }
            let (least, most) = (after.iter().min().unwrap(), after.iter().max().unwrap());
            assert!(most - least <= TURN, "{after:?}");
        }
        assert_eq!(floods.map(|key| left(&group, key)), [0; 3]);
    }

    #[test]
    fn a_frame_of_many_commands_is_unpacked_as_they_are_answered() {
        let mut group = group();
        let key = client(&mut group);
        let mut frame = Vec::new();
        let pings = PING.repeat(200_000);
        Packer::default().pack_as(Algorithm::Zlib, 0, &pings, &mut frame);
        frame.shrink_to_fit();
        let sent = frame.len();
        let client = group.parts.clients.get_mut(key).unwrap();
        let compression = Compression::going_on(Algorithm::Zlib, 0, frame);
        client.transport.set_compression(Some(compression));
        pump::pump(&mut group.parts, key);
        for turns in 1..=500 {
            let before = group.parts.net.written.len();
            group.do_bulk_work();
            let answered = (group.parts.net.written.len() - before) / (OK_LEN + 7);
            assert!((1..=TURN).contains(&answered), "{answered} in turn {turns}");
            let held = group.parts.clients.get(key).unwrap().held();
            assert!(held <= sent + 2 * SCRATCH_LEN, "{held} of {sent}");
        }
    }

    #[test]
    fn who_does_not_take_its_answers_is_not_read_on() {
        let mut group = group();
        let key = flood(&mut group, 4 * TURN);
        // There is room for one answer, and for a part of the second.
        group.parts.net.room = OK_LEN + 4;
        pump::pump(&mut group.parts, key);
        for _ in 0..100 {
            let more = comes(&mut group, key, PING);
            group.turn(&[more]);
        }
        assert_eq!(left(&group, key), 4 * TURN - 2);
        let output = group
            .parts
            .clients
            .get(key)
            .unwrap()
            .output
            .as_ref()
            .unwrap();
        assert_eq!(output.bytes.len() - output.sent, OK_LEN - 4);
        assert_eq!(group.parts.net.incoming, PING, "it is not read");
        // Once it takes them, it goes on by turns.
        group.parts.net.room = usize::MAX;
        let mut taken = comes(&mut group, key, b"");
        taken.writable = true;
        pump::on_client(&mut group.parts, key, taken);
        group.run_tasks();
        assert_eq!(left(&group, key), 3 * TURN - 2);
    }
}
