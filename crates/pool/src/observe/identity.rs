//! Clients as lines of the log and counts of refusals name them.
//!
//! The problem: a line without its client's number leads nowhere, and its address and its account
//! are in different places while it logs in, works, and is closed. The mechanism: they are copied
//! once, when something happens to it.

use crate::backend::Backend;
use crate::backend::pools::BackendPools;
use crate::client::Client;
use crate::config::Settings;
use crate::observe::log::{Facts, Peer};
use reactor::Net;
use std::borrow::Cow;

/// A client, at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientIdentity {
    pub(crate) peer: Peer,
    /// Its CONNECTION_ID(), if it got one.
    pub(crate) id: Option<u32>,
    /// The account that it has proven, or says that it is.
    pub(crate) account: Option<Vec<u8>>,
    /// True if there is such an account: others would be as many as somebody guesses.
    pub(crate) is_account: bool,
    /// Digest of its statement, the last one where none runs; 0: of none.
    pub(crate) digest: u64,
    /// True if a transaction is open.
    pub(crate) in_transaction: bool,
}

impl ClientIdentity {
    /// A connection that is not let in.
    pub(crate) fn at(peer: impl Into<Peer>) -> ClientIdentity {
        ClientIdentity {
            peer: peer.into(),
            ..ClientIdentity::default()
        }
    }

    /// A client that has not logged in.
    pub(crate) fn before_login<N: Net>(client: &Client<N::Sock>, net: &N) -> ClientIdentity {
        let login = client.login.as_deref();
        let name = login.map(|login| login.name.clone());
        ClientIdentity {
            id: Some(client.identity.id()),
            account: name.filter(|name| !name.is_empty()),
            is_account: login.is_some_and(|login| login.is_listed()),
            ..ClientIdentity::at(client.transport.peer(net))
        }
    }

    /// A client, and the backend that it has, if it has one.
    pub(crate) fn of<N: Net>(
        client: &Client<N::Sock>,
        backend: Option<&Backend<N::Sock>>,
        net: &N,
        (settings, pools): (&Settings, &BackendPools),
    ) -> ClientIdentity {
        if !client.identity.is_known() {
            return ClientIdentity::before_login(client, net);
        }
        let name = client.user_name(settings, pools);
        ClientIdentity {
            id: Some(client.identity.id()),
            account: name.map(|name| name.as_bytes().to_vec()),
            is_account: true,
            digest: client.session.statement.digest,
            in_transaction: backend.is_some_and(|backend| backend.session.in_transaction()),
            ..ClientIdentity::at(client.transport.peer(net))
        }
    }

    /// Its account, where there is one of that name.
    pub(crate) fn known_account(&self) -> Option<Cow<'_, str>> {
        let account = self.account.as_deref().filter(|_| self.is_account)?;
        Some(String::from_utf8_lossy(account))
    }

    /// Facts of a line about it.
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            client: Some(self.peer),
            id: self.id,
            account: self.account.as_deref(),
            ..Facts::default()
        }
    }

    /// Facts of a line about the end of what it ran.
    pub(crate) fn facts_of_end(&self) -> Facts<'_> {
        Facts {
            digest: (self.digest != 0).then_some(self.digest),
            cuts_transaction: self.in_transaction,
            ..self.facts()
        }
    }
}
