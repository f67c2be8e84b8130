//! The clients of a group: their slots, their ids, and who is to be closed.
//!
//! The problem: a client may turn out to have to go while it, or another for which it is handled,
//! is still in somebody's hands; and the number by which a client knows itself must tell its group
//! and mean one client at a time. The mechanism: who must go is noted here
//! ([`Clients::close_later`]) and closed by the group at the end of its turn
//! ([`Clients::next_to_close`]). Ids begin at [`FIRST_ID`], where no server's numbers are found in
//! practice; each group counts in steps of the number of groups, and when it has counted to the
//! end, it begins again and leaves out the ids that are in use.
//!
//! Invariants: an id belongs to one client at a time; a client is noted once; one that is on its
//! way to another process is not noted, because that process may have it by now.

use crate::backend::Backend;
use crate::client::{Client, ClientState};
use crate::group::tokens::{BackendId, ClientId};
use crate::observe::audit::end;
use crate::server::fleet::seat_of;
use reactor::{Net, Slots, Time};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// Clients' ids are at least this and below twice this: ten digits, positive in 32 bits with sign.
pub(crate) const FIRST_ID: u32 = 1 << 30;

/// Time behind an answer in which a drain closes no client: its next command may be on its way, and
/// is to get an error that says that nothing has been executed.
const ANSWERED: Duration = Duration::from_millis(2);

/// The clients of a group.
#[derive(Debug)]
pub(crate) struct Clients<S> {
    slots: Slots<Client<S>, ClientId>,
    /// Clients to be closed at the end of the turn.
    closing: Vec<ClientId>,
    /// Reasons why clients that leave do so, as words of the audit trail.
    ends: HashMap<ClientId, &'static str>,
    /// The last id that was given out, counted in this group, and whether it has begun again.
    counted: (u32, bool),
}

impl<S> Default for Clients<S> {
    fn default() -> Clients<S> {
        Clients {
            slots: Slots::default(),
            closing: Vec::new(),
            ends: HashMap::new(),
            counted: (0, false),
        }
    }
}

/// Their slots.
impl<S> Deref for Clients<S> {
    type Target = Slots<Client<S>, ClientId>;

    fn deref(&self) -> &Slots<Client<S>, ClientId> {
        &self.slots
    }
}

impl<S> DerefMut for Clients<S> {
    fn deref_mut(&mut self) -> &mut Slots<Client<S>, ClientId> {
        &mut self.slots
    }
}

impl<S> Clients<S> {
    /// Notes that a client must go at the end of this turn.
    pub(crate) fn close_later(&mut self, key: ClientId) {
        if let Some(client) = self.slots.get_mut(key)
            && !client.ended.is_closing()
            && client.state() != ClientState::Moving
        {
            client.ended.set_closing();
            self.closing.push(key);
        }
    }

    /// Moves a client to another state; `false` if it is gone, or is closed because that is no move
    /// from its own.
    pub(crate) fn enter(&mut self, key: ClientId, to: ClientState, now: Time) -> bool {
        let Some(client) = self.slots.get_mut(key) else {
            return false;
        };
        let moved = client.change_state(to, now);
        if !moved {
            self.close_later(key);
        }
        moved
    }

    /// Closes a client once its last bytes are sent.
    pub(crate) fn leave(&mut self, key: ClientId, now: Time) {
        let Some(client) = self.slots.get_mut(key) else {
            return;
        };
        let flushed = client.output.is_none();
        let leaves = client.state() == ClientState::Leaving
            || client.change_state(ClientState::Leaving, now);
        if flushed || !leaves {
            self.close_later(key);
        }
    }

    /// Notes why a client leaves, unless that is known already.
    pub(crate) fn note_end(&mut self, key: ClientId, reason: &'static str) {
        let client = self.slots.get(key);
        if client.is_some_and(|client| client.state() != ClientState::Moving) {
            self.ends.entry(key).or_insert(reason);
        }
    }

    /// Notes that a client must go, and why.
    pub(crate) fn close_for(&mut self, key: ClientId, reason: &'static str) {
        self.note_end(key, reason);
        self.close_later(key);
    }

    /// Notes that the clients must go whose ids name this seat of a fleet.
    pub(crate) fn close_seat(&mut self, seat: u8) {
        let is_named = |client: &Client<S>| seat_of(client.identity.id()) == u32::from(seat);
        for key in self.slots.keys_of(is_named) {
            self.close_for(key, end::KILLED);
        }
    }

    /// Closes a client with a reset. MariaDB ends so what is over its timeouts, and drivers tell it
    /// from an end in order: the server has gone away (2006), and those that can connect again.
    pub(crate) fn reset_later<N: Net<Sock = S>>(&mut self, key: ClientId, net: &mut N) {
        if let Some(client) = self.slots.get(key) {
            net.reset_on_close(client.transport.sock());
        }
        self.close_later(key);
    }

    /// Takes the reason for which a client leaves.
    pub(crate) fn take_end(&mut self, key: ClientId) -> &'static str {
        self.ends.remove(&key).unwrap_or(end::CLOSED)
    }

    /// Takes a client's backend from it, if it has one; returns the client, and which that was. The
    /// backend is nobody's then, or that of those behind the client.
    pub(crate) fn unbind(
        &mut self,
        key: ClientId,
        backends: &mut Slots<Backend<S>, BackendId>,
    ) -> Option<(&mut Client<S>, Option<BackendId>)> {
        let client = self.slots.get_mut(key)?;
        let backend_id = client.backend();
        let backend = backend_id.and_then(|backend_id| backends.get_mut(backend_id));
        client.unbind(key, backend);
        Some((client, backend_id))
    }

    /// Closes a client that keeps nothing on a backend and has sent nothing, unless it `departs` to
    /// another process: the close of a socket with bytes in it is a reset. One that is logging in
    /// goes only where the pool `ends`. Gives the moment at which to ask again about one that was
    /// answered within [`ANSWERED`].
    pub(crate) fn leave_if_idle(
        &mut self,
        key: ClientId,
        departs: bool,
        ends: bool,
        now: Time,
    ) -> Option<Time> {
        let client = self.slots.get(key)?;
        use ClientState::{Accepted, Greeted, Idle, Opening, Proving, Verifying};
        let idle = match client.state() {
            Accepted | Greeted | Proving | Verifying | Opening => ends,
            Idle => {
                let is_read = !client.transport.is_readable() && client.input.bytes().is_none();
                let holds = client.backend().is_some() || client.output.is_some();
                is_read && !holds && !departs
            }
            _ => false,
        };
        let may_end = client.since() + ANSWERED;
        match idle {
            true if client.state() == Idle && now < may_end => return Some(may_end),
            true => self.close_for(key, end::DRAIN),
            false => {}
        }
        None
    }

    /// Takes one of those who must go.
    pub(crate) fn next_to_close(&mut self) -> Option<ClientId> {
        self.closing.pop()
    }

    /// True if somebody must go.
    pub(crate) fn has_closing(&self) -> bool {
        !self.closing.is_empty()
    }

    /// An id for a new client of group `index` of so many `groups`, of so many ids from the first.
    pub(crate) fn next_id(&mut self, ids: (u32, u32), index: usize, groups: usize) -> u32 {
        let groups = u32::try_from(groups).unwrap_or(1);
        let index = u32::try_from(index).unwrap_or(0);
        loop {
            let (mut count, mut again) = self.counted;
            count += 1;
            if count >= ids.1 / groups {
                (count, again) = (0, true);
            }
            self.counted = (count, again);
            let id = ids.0 + count * groups + index;
            if !again || self.with_id(id).is_none() {
                return id;
            }
        }
    }

    /// Number of ids that it has given out, and true if it has begun again.
    pub(crate) fn counted_to(&self) -> (u32, bool) {
        self.counted
    }

    /// Counts ids from here on: the group before it has given out these.
    pub(crate) fn count_on(&mut self, counted: u32, again: bool) {
        self.counted = (self.counted.0.max(counted), self.counted.1 | again);
    }

    /// The client with this id. It is asked for KILL, which is rare, so this looks at all of them.
    pub(crate) fn with_id(&self, id: u32) -> Option<(ClientId, &Client<S>)> {
        let is_here = |client: &Client<_>| {
            !client.ended.is_closing() && client.state() != ClientState::Moving
        };
        let mut clients = self.slots.iter();
        clients.find(|(_, client)| client.identity.id() == id && is_here(client))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::client::buffers::transport::Transport;
    use std::rc::Rc;

    fn client(id: u32) -> Client<()> {
        let mut client = Client::of_tests(Time(1), Rc::default());
        client.identity.set_id(id);
        client
    }

    #[test]
    fn ids_tell_their_group_and_are_in_use_once() {
        let (index, groups) = (2, 3);
        let mut clients = Clients::default();
        let first = clients.next_id((FIRST_ID, FIRST_ID), index, groups);
        assert_eq!(first, FIRST_ID + 3 + 2);
        let here = clients.insert(client(first));
        assert_eq!(
            clients.next_id((FIRST_ID, FIRST_ID), index, groups),
            FIRST_ID + 6 + 2
        );
        // The counter is at its end: the id of who is here is left out, and found.
        clients.count_on(FIRST_ID / 3 - 1, false);
        assert_eq!(
            clients.next_id((FIRST_ID, FIRST_ID), index, groups),
            FIRST_ID + 2
        );
        assert_eq!(clients.counted_to(), (0, true));
        assert_eq!(
            clients.next_id((FIRST_ID, FIRST_ID), index, groups),
            FIRST_ID + 6 + 2
        );
        assert_eq!(clients.with_id(first).map(|(key, _)| key), Some(here));
        let given_out = clients.with_id(FIRST_ID + 6 + 2);
        assert!(given_out.is_none(), "not here");
    }

    #[test]
    fn who_counts_on_does_not_count_back() {
        let mut clients: Clients<()> = Clients::default();
        clients.count_on(7, false);
        clients.count_on(5, true);
        assert_eq!(clients.counted_to(), (7, true));
    }

    #[test]
    fn who_must_go_is_noted_once_and_found_by_its_id_no_more() {
        let mut clients = Clients::default();
        let key = clients.insert(client(FIRST_ID));
        assert!(!clients.has_closing());
        clients.close_later(key);
        clients.close_later(key);
        assert!(clients.with_id(FIRST_ID).is_none());
        assert_eq!(
            (clients.next_to_close(), clients.next_to_close()),
            (Some(key), None)
        );
    }

    #[test]
    fn those_of_a_seat_that_is_anothers_are_closed() {
        let mut clients = Clients::default();
        let of_seat = |seat| client(FIRST_ID + seat * crate::server::fleet::IDS + 5);
        let keys = [3, 4, 3, 0].map(|seat| clients.insert(of_seat(seat)));
        clients.close_seat(3);
        let closed = [clients.next_to_close(), clients.next_to_close()];
        assert!(closed.contains(&Some(keys[0])) && closed.contains(&Some(keys[2])));
        assert_eq!(clients.take_end(keys[0]), end::KILLED);
        assert_eq!(clients.next_to_close(), None);
    }

    #[test]
    fn who_is_on_its_way_is_not_closed() {
        let mut clients = Clients::default();
        let mut moving = Client::moving(Transport::plain((), true), Time(1), Rc::default());
        moving.identity.set_id(FIRST_ID);
        let key = clients.insert(moving);
        clients.close_later(key);
        assert!(!clients.has_closing());
        assert!(clients.with_id(FIRST_ID).is_none());
    }
}
