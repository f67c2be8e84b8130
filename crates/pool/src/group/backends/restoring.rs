//! A group's part in restoring ([`crate::pair::restoring`]): it sends what brings a backend into
//! its client's session state, in front of the statement or to be waited for.
//!
//! Where that fails, the statement has not run: the client hears so, or goes on elsewhere.

use crate::client::{ClientState, Handled};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use reactor::{Key, Net};
use session::reply_summary::ReplySummary;
use session::standing::{Behind, Front, Standing};
use session::statement::Owed;
use wire::status;

impl<N: Net> Group<N> {
    /// Sends a command to the client's backend, once that stands in the client's session state.
    pub(crate) fn begin(&mut self, key: Key, lease: Key, message: &[u8]) -> Handled {
        if let Some(handled) = self.renew(key, lease) {
            return handled;
        }
        if let Some(handled) = self.prepare_ahead(key, lease, message) {
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
                self.ride(key, lease, message, &front);
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

    /// A restoring command was answered, without whose success its client's statement has no
    /// effect.
    pub(crate) fn joined(
        &mut self,
        key: Key,
        owner: Option<Key>,
        last: bool,
        summary: &ReplySummary,
    ) {
        let Some(owner) = owner.filter(|owner| self.clients.get(*owner).is_some()) else {
            return self.retire(key);
        };
        if let Some((code, text)) = &summary.error {
            return self.restore_failed(key, owner, Behind::NotRun, (*code, text));
        }
        if !last {
            return;
        }
        let Some(mut pair) = self.pair(owner, key) else {
            return;
        };
        pair.backend.note_accepted(Some(pair.client));
        pair.note_runs();
        let standing = pair.client.statement.standing;
        let runs = pair.client.state() == ClientState::Running;
        let joined = runs && standing != Standing::Anywhere;
        let more = summary.status.unwrap_or_default() & status::MORE_RESULTS != 0;
        if joined && !more {
            // Nobody would ever answer.
            self.lose(key, "the server found no statement in the client's text");
        }
    }

    /// A SET that stood in front of a client's statement has failed, and its backend is gone: the
    /// statement ran in a state that is not the client's.
    pub(crate) fn front_failed(&mut self, owner: Key, keeps: bool, why: String) {
        let now = self.net.now();
        self.epoch += 1;
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        client.session.accepted.withdraw();
        let gone = keeps || client.is_held() || client.is_left_there();
        client.last.owed = Owed::default();
        self.answers()
            .refuse_counted(owner, &Refusal::Unrestored(why));
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        client.last.lose_conditions();
        if gone || !client.change_state(crate::client::ClientState::Idle, now) {
            return self.leave(owner);
        }
        self.pump(owner);
    }
}
