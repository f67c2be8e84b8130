//! A client that has come from another process as a record: whether it may be here, and what it is
//! made of.
//!
//! The record says what the client was there ([`crate::upgrade::record`]). Here it has to fit: into
//! the group that its id names, within the limits, with a user that the settings still have or an
//! account that is known, and with nothing negotiated that is not offered. Invariant: what is
//! refused is refused before anything of the group has changed.

use crate::auth::account::{Account, Counted};
use crate::auth::credential::Credential;
use crate::buffers::transport::Transport;
use crate::client::{Client, Company};
use crate::config::{Origin, Settings, User};
use crate::pool_members::Onward;
use crate::shared::Shared;
use crate::upgrade::record::Arrived;
use reactor::Time;
use session::state::Session;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use wire::auth::native;
use wire::capabilities as cap;

/// A client that this process cannot have: words for the log of the other one.
pub(crate) type NotHere = String;

/// Where it comes to.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) settings: &'a Settings,
    /// The group's number, and how many clients it has.
    pub(crate) group: usize,
    pub(crate) clients: usize,
}

impl Arrived {
    /// Whether it may be here.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn fits(&self, place: &Place<'_>) -> Result<(), NotHere> {
        let shared = place.shared;
        let offered = shared.offered | cap::COMPRESS | cap::ZSTD;
        if place.clients >= shared.clients_per_group {
            return Err("the group has as many clients as it may have".into());
        }
        if shared.clients.load(Relaxed) >= place.settings.clients_max {
            return Err("there are as many clients as there may be (clients_max)".into());
        }
        if shared.is_memory_full.load(Relaxed) {
            return Err("no memory is left for more clients".into());
        }
        if self.capabilities & !offered != 0 || u32::from(self.extended) & !shared.extended != 0 {
            return Err("it has agreed on capabilities that are not offered here".into());
        }
        if shared.group_of_client(self.id) != place.group {
            return Err("its number is one of another group".into());
        }
        Ok(())
    }

    /// Its user, and what its backends log in with.
    ///
    /// # Errors
    /// Why it cannot be here.
    pub(crate) fn onward(&self, place: &Place<'_>) -> Result<(usize, Onward), NotHere> {
        let shared = place.shared;
        let users = &place.settings.users;
        let (user, onward) = match &self.account {
            None => {
                let is_that =
                    |user: &User| user.origin == Origin::Settings && user.name == self.user;
                let listed = users.iter().position(is_that);
                let user = listed.ok_or("its user is not in the settings any more")?;
                let onward = Onward {
                    user: users[user].backend_user.clone(),
                    credential: Credential::Password(users[user].backend_password.clone()),
                    account: None,
                };
                (user, onward)
            }
            Some(there) => {
                let counted = Counted {
                    user: there.user.clone(),
                    host: there.host.clone(),
                    ..Counted::default()
                };
                let all = shared.accounts.of_server();
                let account = all.of(&counted);
                let account = account.ok_or("its account is not known here")?;
                learn_again(account, &there.credential);
                let onward = shared.onward(account);
                let onward = onward.filter(|onward| onward.credential == there.credential);
                let onward = onward.ok_or("no login here has proven its account yet")?;
                (account.user, onward)
            }
        };
        let max = users.get(user).and_then(|user| user.limits.clients_max);
        if max.is_some_and(|max| users[user].usage.clients.load(Relaxed) >= max) {
            return Err("its user has as many clients as it may have".into());
        }
        Ok((user, onward))
    }

    /// The client, over this socket; it is on its way still.
    pub(crate) fn client<S>(&mut self, sock: S, now: Time, session: Rc<Session>) -> Client<S> {
        let mut transport = Transport::plain(sock, self.is_local);
        if let Some(address) = self.address {
            transport.set_client_address(address);
        }
        if let Some(tls) = self.tls.take() {
            transport.set_tls(tls);
        }
        transport.set_compression(self.compression.take());
        let mut client = Client::moving(transport, now, session);
        client.id = self.id;
        client.capabilities = self.capabilities;
        client.extended = self.extended;
        client.collation = self.collation;
        client.seq = self.seq;
        client.changes_failed = self.changes_failed;
        client.place.priority = self.priority;
        client.last = std::mem::take(&mut self.last);
        client.pending_changes = std::mem::take(&mut self.pending_changes);
        client.keep_input(&self.input);
        if self.begin_deferred {
            client.company = Company::BeginDeferred;
        }
        client.statements_made = self.statements_made;
        client
    }
}

/// What its clients have proven teaches the password of an account again, where that can be
/// checked.
fn learn_again(account: &Account, credential: &Credential) {
    if let Credential::Native(once) = credential
        && account.credential().is_none()
        && native::stored_from_once(once) == account.verifier.native
    {
        let _ = account.learnt.native.set(*once);
    }
}
