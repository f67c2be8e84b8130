//! Queueing: which queue a command waits in, within which limits, and how its wait ends.
//!
//! A command that gets no backend at once waits in a queue of its client's pool
//! ([`crate::scheduler::waiters`]). A wait is bounded four ways: by the statements that wait in the
//! group, by those of the client's user, by the bytes of their commands, and by time. Who meets a
//! bound gets an error of its own number at once; nothing was executed, so it may be tried again.
//!
//! A client with an open transaction needs no queue, because it has a backend; only under
//! `high_prio_mode = "none"` it waits like everybody else
//! ([`crate::scheduler::matching::Matching::waits_with_backend`]). It waits at the concurrency
//! limit, in which stalled statements do not count. None of the bounds holds for it: the others may
//! wait for the locks of its transaction, so it has to get on, and there is at most one such client
//! for each backend.
//!
//! Invariant: who waits in a queue is counted ([`crate::scheduler::waiting_count`]), and who is
//! counted waits in one.

use crate::client::{ClientState, Handled};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::group::tokens::ClientId;
use crate::scheduler::matching::turns::REFUSABLE;
use crate::scheduler::waiters::Entered;
use reactor::Net;

impl<N: Net> Group<N> {
    /// Puts a client whose command of `len` bytes is at the front of its input in its queue, or
    /// says why it cannot wait there.
    pub(crate) fn wait_in_queue(&mut self, key: ClientId, len: usize) -> Handled {
        let matching = self.matching();
        let goes_before_slow = matching.goes_before_slow(key);
        let is_tried = !goes_before_slow && matching.may_try(key);
        if is_tried {
            self.slow_readers.start_trial(key, self.net.now());
        }
        match self.waiters().enter(key, len, goes_before_slow || is_tried) {
            Entered::Waits => Handled::Kept,
            Entered::Gone => Handled::Used,
            Entered::Refused(refusal) => {
                self.answers().refuse(key, &refusal);
                Handled::Used
            }
        }
    }

    /// Refuses those who have waited too long for a backend.
    pub(crate) fn expire(&mut self) {
        let now = self.net.now();
        let longest = self.settings.wait_max;
        let down = (self.shared.upstream).down_for(now, self.settings.server_down_fail);
        for pool in 0..self.backend_pools.pools.len() {
            if let Some(lasted) = down {
                self.refuse_while_down(pool, lasted);
            }
            for queue in REFUSABLE {
                while let Some(front) = self.matching().front_in(pool, queue) {
                    let waited = now.since(front.since);
                    if waited < longest {
                        break;
                    }
                    self.backend_pools.pools[pool].queues.pop(queue);
                    let mut detail = self.survey().what_backends_do(pool);
                    if self.backend_pools.pools[pool].slots.is_at_max() {
                        detail.push_str("; its account may have no more (account_backends_max)");
                    }
                    if let Some(why) = self.shared.upstream.no_writer() {
                        detail.push_str("; no server is known to take writes: ");
                        detail.push_str(&why);
                    }
                    if self.backend_pools.pools[pool].is_server_full() {
                        detail.push_str("; its server takes no more (backends_max of [[server]])");
                    }
                    let refusal = Refusal::WaitedTooLong {
                        queue,
                        ahead: self.backend_pools.pools[pool].queues.ahead_of(queue),
                        waited,
                        detail,
                    };
                    self.give_up(front.client, &refusal);
                }
            }
        }
    }

    /// Takes a waiting client out of its queue with an error instead of a backend.
    pub(crate) fn give_up(&mut self, key: ClientId, refusal: &Refusal) {
        self.waiters().forget(key);
        self.answers().refuse_counted(key, refusal);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        client.pins.forget_plan();
        if client.state() == ClientState::Opening {
            self.clients.note_end(key, refusal.name());
            return self.leave(key);
        }
        let len = client.command_len();
        client.drop_input(len);
        self.return_to_idle(key);
    }

    /// Gives every client of a pool that waits for a backend an error. True if there were any.
    pub(crate) fn refuse_waiting(&mut self, pool: usize, refusal: &Refusal) -> bool {
        let mut any = false;
        while let Some(client) = self.matching().take_refusable(pool) {
            any = true;
            self.give_up(client, refusal);
        }
        any
    }

    /// Closes every client of a pool that waits for a backend, where none can be had any more.
    pub(crate) fn end_waiting(&mut self, pool: usize, why: &str) {
        while let Some(client) = self.matching().take_refusable(pool) {
            self.waiters().forget(client);
            self.end_client(client, why);
        }
    }

    /// Closes a client that can run no statement any more. One that has run some is told so by an
    /// error for which drivers connect again, some without its words. One that has run none would
    /// meet the same again: it is told the words.
    pub(crate) fn end_client(&mut self, key: ClientId, why: &str) {
        let has_run = self.clients.get(key).is_some_and(|c| c.last.number != 0);
        let refusal = match has_run {
            true => Refusal::NoBackendLogin(why.into()),
            false => Refusal::BackendLogin(why.into()),
        };
        self.refuse_and_leave(key, &refusal);
    }
}
