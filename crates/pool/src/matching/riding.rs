//! Behind whose statements one may go out.
//!
//! A statement that is known to be short, and leaves nothing, need not wait for a backend: it goes
//! out behind others of its kind, and the server answers in order ([`session::shapes`]).

use crate::backend::Backend;
use crate::backend::riders::Riders;
use crate::client::ClientState;
use crate::matching::Matching;
use reactor::Key;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

impl<S> Matching<'_, S> {
    /// A backend on which a client's statement that has just come may ride now, if nobody waits
    /// who came before.
    pub(crate) fn place_to_ride(&mut self, key: Key, message: &[u8]) -> Option<Key> {
        let client = self.clients.get(key)?;
        let pool = client.pool as usize;
        if !self.shapes.trusts(client.shape())
            || self.front_of(pool).is_some()
            || (self.shared.budget).owes_next(self.index, self.pools.count)
            || self.shared.paused.load(Relaxed)
        {
            return None;
        }
        self.place_for(key, message)
    }

    /// The backend with the fewest in flight that takes a client's statement behind them; a group
    /// has few backends.
    fn place_for(&self, key: Key, message: &[u8]) -> Option<Key> {
        let takes = |(candidate, backend): &(Key, &Backend<S>)| {
            (self.takes_rider(key, *candidate, message))
                .then_some((backend.flight().len(), *candidate))
        };
        self.backends
            .iter()
            .filter_map(|pair| takes(&pair))
            .min()
            .map(|(_, lease)| lease)
    }

    /// Whether a client's statement may go out on a backend behind what is in flight there.
    fn takes_rider(&self, key: Key, lease: Key, message: &[u8]) -> bool {
        let (Some(backend), Some(client)) = (self.backends.get(lease), self.clients.get(key))
        else {
            return false;
        };
        backend.takes_riders()
            && Riders::takes(message.len())
            && backend.flight().len() < self.settings.ride_max
            && backend.pool == client.pool as usize
            && backend.insert_id == Some(client.last.insert_id)
            && Rc::ptr_eq(&backend.session, &client.session)
            && !client.finds_types_of_others(backend, key)
            && !client.is_held()
            && client.lease().is_none()
            && self.shapes.trusts(client.shape())
            && self.shared.code_catalogue.holds(client.statement.judged)
            && client.is_prepared_on(backend, message, &self.shared.server)
    }

    /// Where a client whose command waits in its input may ride: on this backend, or, if that has
    /// room and stands in another session's state, on any other. Or the clients of one session
    /// would hold up those of another, with places free for both.
    pub(crate) fn place_for_waiting(&self, key: Key, lease: Key) -> Option<Key> {
        let client = self.clients.get(key)?;
        // What stands behind a login that waits is no statement yet.
        let waits = client.state() == ClientState::Waiting;
        let input = client.input.as_ref().filter(|_| waits)?;
        let message = &input[..input.command_len()];
        if self.takes_rider(key, lease, message) {
            return Some(lease);
        }
        let backend = self.backends.get(lease)?;
        let has_room = backend.flight().len() < self.settings.ride_max;
        let differs = !Rc::ptr_eq(&backend.session, &self.clients.get(key)?.session);
        (has_room && differs).then(|| self.place_for(key, message))?
    }
}
