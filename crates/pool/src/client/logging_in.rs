//! A client that logs in: the security of its transport, and the name of its account.
//!
//! The steps of a login are [`crate::auth::login`]'s; its place in a pool is given by
//! [`crate::backend::pool_members`].

use crate::backend::pools::BackendPools;
use crate::client::{Client, ClientState};
use crate::config::Settings;
use crate::observe::figures::places::place_of_user;
use reactor::Net;
use wire::wrong_protocol::WrongProtocol;

impl<S> Client<S> {
    /// Notes with its login whether a password may come in clear.
    pub(crate) fn note_secure<N: Net<Sock = S>>(&mut self, net: &N) {
        if let Some(login) = &mut self.login {
            login.secure |= self.transport.is_secure() || self.transport.is_of_this_host(net);
        }
    }

    /// True if the packet in the place of its login asks for TLS, where that may be had.
    pub(crate) fn asks_for_tls(&self, payload: &[u8]) -> bool {
        WrongProtocol::of_login(payload) == Some(WrongProtocol::SslRequest)
            && self.state() == ClientState::Greeted
            && !self.transport.is_tls()
    }

    /// The name of its user. Accounts of the server are one user of the settings, and are
    /// called as they are there.
    pub(crate) fn user_name<'a>(
        &self,
        settings: &'a Settings,
        pools: &'a BackendPools,
    ) -> Option<&'a str> {
        let user = settings.users.get(self.identity.user())?;
        let pool = pools.pools.get(self.pool as usize);
        Some(match pool.filter(|pool| pool.key.account.is_some()) {
            Some(pool) => &pool.key.user,
            None => &user.name,
        })
    }

    /// Place of its statements' figures.
    pub(crate) fn figures_place(&self, pools: &BackendPools) -> u16 {
        let pool = pools.pools.get(self.pool as usize);
        let of_account = pool.and_then(|pool| pool.figures);
        of_account.unwrap_or_else(|| place_of_user(self.identity.user()))
    }
}
