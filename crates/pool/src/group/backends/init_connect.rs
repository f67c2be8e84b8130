//! `init_connect`: statements that the server runs for each account without administrator's rights
//! when it logs in, before its first own.
//!
//! The problem: what they set is the beginning of a session and no tracker reports it, so a session
//! that began so must not be taken for one with global values, and a client must begin with it
//! whichever backend it gets. The mechanism: while the global variable is set, a fresh backend is
//! asked for all its variables; those that differ from the global values are listed in its session
//! ([`Begins`]), and in those of clients that log in as the same pool. The first client of a pool
//! waits for a backend as one with a schema does. A reset or a change of user begins without it, as
//! on the servers.
//!
//! When the variable changes, backends that began otherwise serve nobody any more.
//!
//! Invariant: no client of a pool is let in before it is known what its login does.

use crate::client::Proof;
use crate::group::Group;
use crate::server::begins::Begins;
use reactor::{Key, Net};
use session::state::Session;
use session::text::Text;

impl<N: Net> Group<N> {
    /// Whether it is known how a login of this client's pool begins; its session begins so.
    pub(crate) fn begins(&mut self, key: Key) -> bool {
        if self.begun.init_connect().is_empty() {
            return true;
        }
        let Some(client) = self
            .clients
            .get_mut(key)
            .filter(|c| c.proof != Proof::Changing)
        else {
            return true;
        };
        let known = self.backend_pools.pools[client.pool as usize]
            .begins
            .as_ref();
        let Some(begins) = known.filter(|known| *known.init_connect == *self.begun.init_connect())
        else {
            return false;
        };
        let mut session = (*client.session).clone();
        begins.begin(&mut session);
        client.session = self.sessions.intern(session);
        true
    }

    /// A fresh backend of a pool has told its session, and with `init_connect` all its variables.
    pub(crate) fn note_begins(&mut self, pool: usize, fresh: &mut Session, values: Option<&Text>) {
        let Some(values) = values.and_then(|values| fresh.begun.read(values)) else {
            return;
        };
        let begins = Begins::of(fresh, &values, &self.shared.server);
        begins.begin(fresh);
        self.backend_pools.pools[pool].begins = Some(begins);
    }
}
