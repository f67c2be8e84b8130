//! Authentication of clients: accounts, logins, passwords, and the cost of failed attempts.
//!
//! All of it as values. [`login`] is the client's side of the protocol as a state machine without a
//! socket; [`logins`] feeds it, and `operations::password_workers` are the threads
//! that decrypt and compare.

pub(crate) mod account;
pub(crate) mod accounts;
pub(crate) mod auth_delay;
pub(crate) mod auth_failures;
pub(crate) mod certificate;
pub(crate) mod certificate_reload;
pub(crate) mod credential;
pub(crate) mod denial;
pub(crate) mod failed_logins;
pub(crate) mod host_pattern;
pub(crate) mod login;
pub(crate) mod logins;
pub(crate) mod network;
pub(crate) mod own_certificate;
pub(crate) mod password_checks;
pub(crate) mod password_workers;
pub(crate) mod requirement;
pub(crate) mod secret;
pub(crate) mod server_accounts;
pub(crate) mod stand_ins;
pub(crate) mod verifier;

use crate::auth::accounts::{Accounts, LoginContext};
use crate::auth::auth_failures::AuthFailures;
use crate::client::buffers::packing;
use crate::config::{Settings, accounts_of};
use crate::limits::addresses::AddressLimits;
use crate::server::facts::ServerFacts;
use wire::auth::caching_sha2::KeyPair;
use wire::capabilities::{EXTENDED_OFFERED, LONG_PASSWORD, OFFERED, QUERY_ATTRIBUTES, SSL};

/// State that logins of all groups share.
#[derive(Debug)]
pub(crate) struct Logins {
    /// Capabilities that clients may choose from.
    pub(crate) offered: u32,
    /// MariaDB's extended ones.
    pub(crate) extended: u32,
    /// Keys for full authentication.
    pub(crate) keys: KeyPair,
    /// Users by name.
    pub(crate) accounts: Accounts,
    /// Failed logins by address.
    pub(crate) failures: AuthFailures,
    /// Connections by address.
    pub(crate) address_limits: AddressLimits,
}

impl Logins {
    /// State at the start, as the settings and the server have it.
    pub(crate) fn new(settings: &Settings, server: &ServerFacts, keys: KeyPair) -> Logins {
        let mut offered = OFFERED | packing::offered(settings, server);
        if settings.tls.is_some() {
            offered |= SSL;
        }
        if server.flavour.is_mysql() {
            offered |= server.capabilities & QUERY_ATTRIBUTES;
        }
        let extended = server.extended & EXTENDED_OFFERED;
        if extended != 0 {
            offered &= !LONG_PASSWORD;
        }
        Logins {
            offered,
            extended,
            keys,
            accounts: Accounts::new(accounts_of(&settings.users)),
            failures: AuthFailures::default(),
            address_limits: AddressLimits::default(),
        }
    }

    /// State that the steps of a login need.
    pub(crate) fn context(&self) -> LoginContext<'_> {
        LoginContext {
            accounts: &self.accounts,
            keys: &self.keys,
        }
    }
}
