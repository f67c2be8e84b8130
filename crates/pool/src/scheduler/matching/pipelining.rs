//! Behind whose statements one may go out.
//!
//! A statement that is known to be short, and leaves nothing, need not wait for a backend: it goes
//! out behind others of its kind, and the server answers in order ([`session::known_digests`]).

use crate::backend::Backend;
use crate::backend::followers::Followers;
use crate::client::{Client, ClientState};
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::matching::Matching;
use std::rc::Rc;

impl<S> Matching<'_, S> {
    /// A backend on which a client's statement that has just come may be pipelined now, if nobody
    /// waits who came before.
    pub(crate) fn place_to_pipeline(&mut self, key: ClientId, message: &[u8]) -> Option<BackendId> {
        let client = self.clients.get(key)?;
        let pool = client.pool as usize;
        if !self.may_pipeline(client, message)
            || self.front_of(pool).is_some()
            || (self.pools).owes_next(&self.shared.budget, self.index)
            || self.shared.scheduling.is_paused()
        {
            return None;
        }
        self.place_for((key, client), message)
    }

    /// The backend with the fewest in flight that takes the statement of a client, which may be
    /// pipelined, behind them; a group has few backends. One that has more than another that takes
    /// it is not asked for what it has prepared: each backend's table is memory of its own.
    fn place_for(&self, follower: (ClientId, &Client<S>), message: &[u8]) -> Option<BackendId> {
        let mut best = None;
        for (backend_id, backend) in self.backends.iter() {
            let rank = (backend.flight.len(), backend_id);
            if best.is_none_or(|best| rank < best)
                && self.takes_follower(follower, backend, message)
            {
                best = Some(rank);
            }
        }
        best.map(|(_, backend_id)| backend_id)
    }

    /// True if a client's statement may go out behind others at all.
    fn may_pipeline(&self, client: &Client<S>, message: &[u8]) -> bool {
        Followers::takes(message.len())
            && !client.session.is_held()
            && client.backend().is_none()
            && self.known_digests.trusts(client.session_digest())
            && (self.shared.watched.code_catalogue).holds(client.session.statement.judged)
    }

    /// True if the statement of a client, which may be pipelined, may go out behind what is in
    /// flight on this backend.
    fn takes_follower(
        &self,
        (key, client): (ClientId, &Client<S>),
        backend: &Backend<S>,
        message: &[u8],
    ) -> bool {
        let (own, there) = (&client.session, &backend.session);
        backend.takes_followers()
            && backend.flight.len() < self.settings.pipeline_max
            && backend.pool == client.pool as usize
            && there.has_insert_id(own.last.insert_id)
            && Rc::ptr_eq(&there.state, &own.state)
            && !own.finds_types_of_others(there, key)
            && own.is_prepared_on(backend, message, &self.shared.server)
    }

    /// A place for a client whose command waits in its input to be pipelined: on this backend,
    /// which has room, or, if that stands in another session's state, on any other. Or the clients
    /// of one session would hold up those of another, with places free for both.
    pub(crate) fn place_for_waiting(
        &self,
        key: ClientId,
        backend_id: BackendId,
    ) -> Option<BackendId> {
        let client = self.clients.get(key)?;
        // What stands behind a login that waits is no statement yet.
        let waits = client.state() == ClientState::Waiting;
        let input = client.input.bytes().filter(|_| waits)?;
        let message = &input[..input.command_len()];
        let backend = self.backends.get(backend_id)?;
        // A rule is looked up when its turn comes.
        if !self.may_pipeline(client, message)
            || self.rules.contains_key(&client.session.statement.digest)
        {
            return None;
        }
        if self.takes_follower((key, client), backend, message) {
            return Some(backend_id);
        }
        let differs = !Rc::ptr_eq(&backend.session.state, &client.session.state);
        differs.then(|| self.place_for((key, client), message))?
    }
}
