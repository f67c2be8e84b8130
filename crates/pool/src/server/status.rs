//! State of the server's address as one group has seen it: the place to dial, and the changes
//! since.
//!
//! [`Upstream`] knows more, for all groups and as it is at the moment. A group acts on changes, so
//! it remembers which of them it has seen.
//!
//! Invariant: each change is seen once by each group.

use crate::server::upstream::Upstream;
use reactor::{Address, Time};
use std::sync::Arc;

/// Changes since a group looked last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    /// True if an outage has ended.
    pub(crate) is_back: bool,
    /// The server's name means other addresses.
    pub(crate) has_moved: bool,
}

/// State that a group has seen.
#[derive(Debug)]
pub(crate) struct ServerStatus {
    /// Moment at which a dial is tried at the latest while the server's name is being looked up.
    pub(crate) address_at: Time,
    /// Outages that have ended.
    returns: u64,
    /// Changes of what the name means.
    moves: u64,
}

impl Default for ServerStatus {
    fn default() -> ServerStatus {
        ServerStatus {
            address_at: Time::NEVER,
            returns: 0,
            moves: 0,
        }
    }
}

impl ServerStatus {
    /// The address to be dialled now, unless the server's name is being looked up.
    pub(crate) fn address(&mut self, upstream: &Upstream, now: Time) -> Option<Arc<Address>> {
        let address = upstream.address(now);
        self.address_at = *address.as_ref().err().unwrap_or(&Time::NEVER);
        address.ok()
    }

    /// Changes since this was asked last.
    pub(crate) fn changes(&mut self, upstream: &Upstream) -> Changed {
        let (returns, moves) = (upstream.returns(), upstream.moves());
        Changed {
            is_back: std::mem::replace(&mut self.returns, returns) != returns,
            has_moved: std::mem::replace(&mut self.moves, moves) != moves,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::upstream::Place;

    #[test]
    fn the_end_of_an_outage_is_seen_once() {
        let at = Address::Unix("/s".into());
        let upstream = Upstream::new(Place::Fixed(at.clone()));
        let mut server_status = ServerStatus::default();
        let nothing = Changed {
            is_back: false,
            has_moved: false,
        };
        assert_eq!(server_status.changes(&upstream), nothing);
        upstream.failed(&at, Time(5), "refused");
        assert_eq!(server_status.changes(&upstream), nothing, "it goes on");
        upstream.reached(&at, Time(9));
        assert!(server_status.changes(&upstream).is_back);
        assert_eq!(server_status.changes(&upstream), nothing);
    }

    #[test]
    fn a_fixed_address_is_dialled_at_once() {
        let at = Address::Unix("/s".into());
        let upstream = Upstream::new(Place::Fixed(at.clone()));
        let mut server_status = ServerStatus::default();
        assert_eq!(
            server_status.address(&upstream, Time(1)).as_deref(),
            Some(&at)
        );
        assert_eq!(server_status.address_at, Time::NEVER);
    }
}
