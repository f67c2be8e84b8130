//! Connections that are counted by their address: when they come, until they are closed.
//!
//! The problem: a connection is counted where it is known whom it speaks for, which is at once, or
//! behind its PROXY header, or when it comes from another process; and the count must end with it
//! ([`crate::limits::addresses`]). The mechanism: a group notes the [`CountedAddress`] of each
//! of its clients, beside them, since most pools have no such limits.
//!
//! Invariants: a client has one such entry at most, which is given up where it is closed; a proxy's
//! own connection (health checks, and one whose header has not come) has none; where a limit comes
//! by a reload, who is here already counts.

use crate::client::clients::Clients;
use crate::config::Settings;
use crate::errors::reasons::Refusal;
use crate::group::shared::Shared;
use crate::group::tokens::ClientId;
use crate::limits::addresses::CountedAddress;
use reactor::Net;
use std::collections::HashMap;
use std::net::IpAddr;

/// Addresses under which a group's clients are counted, and the means to find a client's.
pub(crate) struct AddressCounts<'a, N: Net> {
    pub(crate) counted: &'a mut HashMap<ClientId, CountedAddress>,
    pub(crate) net: &'a N,
    pub(crate) shared: &'a Shared,
    pub(crate) settings: &'a Settings,
    pub(crate) clients: &'a Clients<N::Sock>,
}

impl<N: Net> AddressCounts<'_, N> {
    /// True if a connection has to begin with a header.
    pub(crate) fn needs_proxy_header(&self, sock: &N::Sock) -> bool {
        let networks = &self.settings.proxy_protocol_networks;
        // Most pools have none: their connections are not asked where they come from.
        !networks.is_empty()
            && self.net.peer(sock).is_some_and(|peer| {
                let address = peer.ip();
                networks.iter().any(|network| network.contains(address))
            })
    }

    /// Counts a connection from this address, which is looked up only where there are limits.
    pub(crate) fn admit(
        &mut self,
        address: impl FnOnce(&N) -> Option<IpAddr>,
    ) -> Result<CountedAddress, Refusal> {
        let rules = self.settings.address_rules();
        if !rules.is_any() {
            return Ok(CountedAddress::default());
        }
        let (address, now) = (address(self.net), self.net.now());
        let entered = (self.shared.logins.address_limits).enter(address, &rules, now);
        entered.map_err(Refusal::AddressLimit)
    }

    /// Counts a client there until it is closed.
    pub(crate) fn note(&mut self, key: ClientId, counted: CountedAddress) {
        if counted != CountedAddress::default() {
            self.counted.insert(key, counted);
        }
    }

    /// Takes a client out of its counts.
    pub(crate) fn leave(&mut self, key: ClientId) {
        if let Some(counted) = self.counted.remove(&key) {
            self.shared.logins.address_limits.leave(counted);
        }
    }

    /// Counts a client that is here without having been counted; it is not refused.
    pub(crate) fn count(&mut self, key: ClientId) {
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let transport = &client.transport;
        let of_proxy =
            transport.client_address().is_none() && self.needs_proxy_header(transport.sock());
        if of_proxy || self.counted.contains_key(&key) {
            return;
        }
        let address = transport.peer(self.net).map(|peer| peer.ip());
        let (rules, now) = (self.settings.address_rules(), self.net.now());
        let counted = (self.shared.logins.address_limits).admit(address, &rules, now);
        self.note(key, counted);
    }

    /// Counts all clients that are here uncounted, where there are limits.
    pub(crate) fn count_all(&mut self) {
        if !self.settings.address_rules().is_any() {
            return;
        }
        let keys: Vec<ClientId> = self.clients.iter().map(|(key, _)| key).collect();
        keys.into_iter().for_each(|key| self.count(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::scripted::{Scripted, shared};

    #[test]
    fn a_client_is_counted_until_it_leaves_where_there_is_a_limit() {
        let address = || Some(IpAddr::from([192, 0, 2, 1]));
        for (text, limited) in [("", false), ("clients_per_address_max = 1", true)] {
            let shared = shared(text);
            let settings = shared.settings();
            let (net, mut counted) = (Scripted::default(), HashMap::new());
            let clients = Clients::default();
            let mut address_counts = AddressCounts {
                counted: &mut counted,
                net: &net,
                shared: &shared,
                settings: &settings,
                clients: &clients,
            };
            let key = ClientId::from_parts(1, 1);
            let entry = address_counts.admit(|_| address()).unwrap();
            address_counts.note(key, entry);
            assert_eq!(
                address_counts.admit(|_| address()).is_err(),
                limited,
                "{text}"
            );
            address_counts.leave(key);
            address_counts.leave(key);
            assert!(address_counts.admit(|_| address()).is_ok());
            assert!(counted.is_empty());
        }
    }
}
