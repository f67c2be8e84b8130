//! A group's part in restoring ([`crate::pair::restoring`]): it sends what brings a backend into
//! its client's session state, in front of the statement or to be waited for.
//!
//! Where that fails, the statement has not run: the client hears so, or goes on elsewhere.

use crate::client::{ClientState, Handled};
use crate::group::Group;
use reactor::{Key, Net};
use session::standing::Front;

impl<N: Net> Group<N> {
    /// Sends a command to the client's backend, once that stands in the client's session state.
    pub(crate) fn begin(&mut self, key: Key, lease: Key, message: &[u8]) -> Handled {
        let (Some(client), Some(backend)) = (self.clients.get(key), self.backends.get(lease))
        else {
            return Handled::Used;
        };
        let has_prepared = client.prepared.is_some();
        if client.needs_renewal(backend, &self.begun, self.shared.server.flavour)
            && let Some(handled) = self.renew(key, lease)
        {
            return handled;
        }
        if has_prepared && let Some(handled) = self.prepare_ahead(key, lease, message) {
            return handled;
        }
        let mut out = std::mem::take(&mut self.lent);
        out.clear();
        let text_here_max = self.shared.text_here_max;
        let pair = self.pair(key, lease);
        let front = pair.map(|mut pair| pair.put_front(message, text_here_max, &mut out));
        let result = match front {
            None => Handled::Used,
            Some(Front::Waited) => self.send_restore(key, lease, &out),
            Some(front) => {
                self.backend_writer().send(lease, &out);
                self.send_statement(key, lease, message, &front);
                Handled::Used
            }
        };
        self.lent = out;
        result
    }

    pub(crate) fn send_restore(&mut self, key: Key, lease: Key, out: &[u8]) -> Handled {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        if !client.change_state(ClientState::Restoring, now) {
            self.clients.close_later(key);
            return Handled::Used;
        }
        self.backend_writer().ask(lease, out);
        Handled::Kept
    }
}
