//! Waiting out of the ordinary: before the lane, back at its front, and after everybody was served.
//!
//! The problem: a command does not always wait from its arrival to its lease. It may come while
//! something is read back on its client's last lease; its backend may be lost before it was sent;
//! a backend may be lost at the very end of a turn. The mechanism: each case leads back to the
//! lane of `leases.rs`, or to another turn.
//!
//! Invariants: nobody passes those who wait because its lease has not ended yet; a lane's front has
//! waited for longest, whoever was put back there; a turn that leaves somebody waiting for what is
//! there is followed by another at once.

use crate::client::{ClientState, Handled};
use crate::group::Group;
use crate::group::statements::is_answered_here;
use crate::queue::lane::Waiting;
use reactor::{Key, Net};
use wire::command::Command;
use wire::packet::HEADER_LEN;

impl<N: Net> Group<N> {
    /// Keeps a client's command until its lease ends, or what is asked for it is answered; then it
    /// goes to the lane, to its place there.
    pub(crate) fn wait_for_read_back(&mut self, key: Key) -> Handled {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Kept;
        };
        self.line.place_of(client, now);
        if !client.change_state(ClientState::Waiting, now) {
            self.close_later(key);
        }
        Handled::Kept
    }

    /// A command that came before its client's lease had ended goes to the lane, if it needs a
    /// backend.
    pub(crate) fn line_up(&mut self, key: Key) {
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let byte = client
            .input
            .as_ref()
            .and_then(|input| input.get(HEADER_LEN));
        let command = byte.and_then(|&byte| Command::from_byte(byte));
        if !command.is_some_and(is_answered_here)
            && !self
                .alone(key)
                .is_some_and(|alone| alone.may_need_no_backend())
        {
            let len = client.command_len();
            if self.wait_in_lane(key, len) == Handled::Kept {
                return;
            }
            if let Some(client) = self.clients.get_mut(key) {
                client.drop_input(len);
            }
        }
        self.return_to_idle(key);
    }

    /// A client that waits outside of the lanes goes on with its command.
    pub(crate) fn wake(&mut self, key: Key) {
        let waits = self.clients.get(key).is_some_and(|client| {
            client.state() == ClientState::Waiting && !client.place.is_in_lane()
        });
        if waits {
            self.return_to_idle(key);
        }
    }

    /// A client is between statements, and goes on with what it has said.
    pub(crate) fn return_to_idle(&mut self, key: Key) {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if client.change_state(ClientState::Idle, now) {
            self.pump(key);
        } else {
            self.close_later(key);
        }
    }

    /// A client whose statement was not sent yet goes back to its place in its lane: the front, if
    /// it has waited there.
    pub(crate) fn wait_again(&mut self, key: Key) {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let moved = match client.is_logging_in() {
            true => client.change_state(ClientState::Opening, now),
            false => {
                client.change_state(ClientState::Idle, now)
                    && client.change_state(ClientState::Waiting, now)
            }
        };
        if !moved {
            return self.close_later(key);
        }
        // The packet of a login is used up, but its place is still the one it had.
        if client.is_logging_in() {
            client.place.keep();
        }
        let (pool, lane) = (client.pool as usize, client.place.lane());
        let len = client.command_len();
        let since = self.line.place_of(client, now);
        (self.line).enter(client, (lane, since, len), &self.settings);
        self.backend_pools.pools[pool].lanes.push(Waiting {
            client: key,
            since,
            lane,
        });
    }
}
