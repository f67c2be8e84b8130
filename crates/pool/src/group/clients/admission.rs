//! What stands between a proven password and a session: what the account requires of the
//! connection, and what the server says of the account.
//!
//! The problem: an account of the server (`auth = "server"`) may be locked, expired, or have as
//! many connections as it may, and the server would tell the pool's backends so, not the client.
//! The mechanism: the pool looks at the same things in the same order, and answers in the server's
//! words ([`Group::bar_of`]): `REQUIRE`, the lock, the expiry, the number of clients.

use crate::auth::account::{Account, Unusable};
use crate::auth::host_pattern::ClientHost;
use crate::group::Group;
use reactor::{Key, Net};
use wire::errors::{
    ACCOUNT_LOCKED, ACCOUNT_LOCKED_MARIADB, ErrorCode, NOT_SUPPORTED_AUTH_MODE, PASSWORD_EXPIRED,
};

/// Why a client is not let in, though its password may be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bar {
    /// The client hears what it would for a wrong password; the log says this.
    Denied(&'static str),
    /// It hears this error, in which `{name}` and `{host}` are its own.
    Refused {
        reason: &'static str,
        error: ErrorCode,
        text: String,
    },
}

impl Bar {
    fn refused(reason: &'static str, error: ErrorCode, text: impl Into<String>) -> Option<Bar> {
        Some(Bar::Refused {
            reason,
            error,
            text: text.into(),
        })
    }

    /// For the log.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Bar::Denied(reason) | Bar::Refused { reason, .. } => reason,
        }
    }
}

/// Why no password opens an account, if that is so.
pub(crate) fn unusable(account: &Account) -> Option<Bar> {
    let of_server = account.of_server.as_ref()?;
    match of_server.unusable.as_ref()? {
        Unusable::Anonymous => Some(Bar::Denied("anonymous-account")),
        Unusable::Plugin(plugin) => {
            let (user, host) = (&of_server.counted.user, &of_server.counted.host);
            Bar::refused(
                "plugin",
                NOT_SUPPORTED_AUTH_MODE,
                format!(
                    "account '{user}'@'{host}' is authenticated by '{plugin}', with which the pool \
                     cannot log in to the server on the client's behalf; give the account \
                     mysql_native_password or caching_sha2_password, or list it as a [[user]] of \
                     the pool with its password"
                ),
            )
        }
    }
}

impl<N: Net> Group<N> {
    /// Where a client connects from, as accounts are matched with it.
    pub(crate) fn host_of(&self, key: Key) -> ClientHost {
        let client = self.clients.get(key);
        let peer = client.and_then(|client| client.transport.peer(&self.net));
        let names_hosts = self.shared.server.names_hosts;
        ClientHost::of(peer.map(|peer| peer.ip()), names_hosts)
    }

    /// What keeps a client out that has proven its password, if anything does.
    pub(crate) fn bar_of(&self, key: Key, account: &Account) -> Option<Bar> {
        let transport = &self.clients.get(key)?.transport;
        let of_server = account.of_server.as_ref();
        let require = match of_server {
            Some(of_server) => &of_server.require,
            None => &self.settings.users.get(account.user)?.require,
        };
        let unmet = require.unmet(transport.is_tls(), transport.peer_certificate());
        if let Some(unmet) = unmet {
            return Some(Bar::Denied(unmet));
        }
        if !self.shared.accounts.is_current(account) {
            return Some(Bar::Denied("account-changed"));
        }
        let of_server = of_server?;
        if let Some(bar) = unusable(account) {
            return Some(bar);
        }
        if of_server.is_locked {
            return match self.shared.server.flavour.is_mysql() {
                true => Bar::refused(
                    "account-locked",
                    ACCOUNT_LOCKED,
                    "Access denied for user '{name}'@'{host}'. Account is locked.",
                ),
                false => Bar::refused(
                    "account-locked",
                    ACCOUNT_LOCKED_MARIADB,
                    "Access denied, this account is locked",
                ),
            };
        }
        if of_server.is_expired {
            return Bar::refused(
                "password-expired",
                PASSWORD_EXPIRED,
                "Your password has expired. To log in you must change it using a client that \
                 supports expired passwords.",
            );
        }
        let (error, text) = self.has_too_many(key, account)?;
        Some(Bar::Refused {
            reason: "account-clients",
            error,
            text,
        })
    }
}
