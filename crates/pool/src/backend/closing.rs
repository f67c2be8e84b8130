//! Closing backends: what a backend that ends gives back, and to whom.
//!
//! A backend has a slot of the budget that all groups share ([`crate::scheduler::budget`]), a slot
//! of its account, a place in its pool, and a number of the server's. All of that is given back
//! here, whatever the backend is closed for.
//!
//! Invariant: the slot of a closed backend is given back once, or goes to the one that takes its
//! place.

use super::{Backend, BackendState};
use crate::backend::pools::BackendPools;
use crate::group::deliveries::TurnOutput;
use crate::group::shared::Shared;
use crate::group::tokens::BackendId;
use crate::scheduler::running::Running;
use reactor::{Net, Slots};

/// Backends that are closed, and what they give back.
pub(crate) struct BackendCloser<'a, N: Net> {
    pub(crate) net: &'a mut N,
    pub(crate) shared: &'a Shared,
    pub(crate) index: usize,
    pub(crate) backends: &'a mut Slots<Backend<N::Sock>, BackendId>,
    pub(crate) pools: &'a mut BackendPools,
    pub(crate) running: &'a mut Running,
    pub(crate) turn_output: &'a mut TurnOutput,
}

impl<N: Net> BackendCloser<'_, N> {
    /// Closes a backend that is of no more use.
    pub(crate) fn retire(&mut self, backend_id: BackendId) {
        if self.close(backend_id) {
            self.give_slot_back();
        }
    }

    /// Gives back the slot of a backend that is closed. Others see that it is not unused any more
    /// before they see the slot.
    pub(crate) fn give_slot_back(&mut self) {
        (self.pools).note_unused(&self.shared.budget, self.index);
        (self.turn_output).give_slot_back(&self.shared.budget, self.index);
    }

    /// Closes a backend, whose slot the group still has; `false` where it is gone already.
    pub(crate) fn close(&mut self, backend_id: BackendId) -> bool {
        let Some(mut backend) = self.backends.remove(backend_id) else {
            return false;
        };
        if matches!(
            backend.state(),
            BackendState::Dialling | BackendState::Preparing
        ) {
            self.pools.dial_ends(backend.pool);
        }
        let wanting = self.running.ends(&mut backend);
        self.turn_output.wake(wanting.into_iter());
        if !backend.is_reader() {
            self.shared.forget_thread(backend.thread);
        }
        self.pools.leaves(backend.pool, backend_id);
        if backend.is_at_rest() {
            let mut quit = Vec::new();
            crate::backend::dial::put_quit(&mut quit);
            // Politeness only: without it the server counts an aborted client.
            let _ = backend.transport.write(self.net, &quit);
        }
        backend.transport.end(self.net);
        let waiting = self.pools.pools[backend.pool].slots.wanting();
        let waiting = waiting.into_iter().chain(backend.wanting_its_server());
        self.turn_output.wake(waiting);
        drop(backend);
        true
    }

    /// Ends the reuse of these backends: checked-out ones serve their client until checkin, all
    /// others close.
    pub(crate) fn leave_backends(&mut self, which: impl Fn(&Backend<N::Sock>) -> bool) {
        for key in self.backends.keys_of(which) {
            match self.backends.get_mut(key) {
                Some(backend) if backend.state() == BackendState::CheckedOut => {
                    backend.reuse.end_with_client();
                }
                _ => self.retire(key),
            }
        }
    }
}
