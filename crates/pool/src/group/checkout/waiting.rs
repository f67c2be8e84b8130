//! Waiting out of the ordinary: before the queue, and how that ends.
//!
//! The problem: a command does not always wait from its arrival to its checkout. It may come while
//! something is read back on its client's last backend ([`crate::scheduler::waiters`] keeps its
//! place). The mechanism: it goes on with its client's backend, or to the queue of `checkout.rs`.
//!
//! Invariant: nobody passes those who wait because its last backend is not checked in yet.

use crate::client::{ClientState, Handled};
use crate::group::Group;
use crate::group::statements::is_answered_here;
use crate::group::tasks::Task;
use crate::group::tokens::ClientId;
use reactor::Net;
use wire::command::Command;
use wire::packet::HEADER_LEN;

impl<N: Net> Group<N> {
    /// Queues a command that came before its client's backend was checked in, if it needs a
    /// backend.
    pub(crate) fn line_up(&mut self, key: ClientId) {
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let byte = client
            .input()
            .as_ref()
            .and_then(|input| input.get(HEADER_LEN));
        let command = byte.and_then(|&byte| Command::from_byte(byte));
        if !command.is_some_and(is_answered_here)
            && !(self.reading(key)).is_some_and(|reading| reading.leaves_writer())
            && !self
                .alone(key)
                .is_some_and(|alone| alone.may_need_no_backend())
        {
            let len = client.command_len();
            if self.wait_in_queue(key, len) == Handled::Kept {
                return;
            }
            if let Some(client) = self.clients.get_mut(key) {
                client.drop_input(len);
            }
        }
        self.return_to_idle(key);
    }

    /// Returns a client to idle, and reads on what it has sent.
    pub(crate) fn return_to_idle(&mut self, key: ClientId) {
        let now = self.net.now();
        if self.clients.enter(key, ClientState::Idle, now) {
            self.tasks.add(Task::Read(key));
        }
    }
}
