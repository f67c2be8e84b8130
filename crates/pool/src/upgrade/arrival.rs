//! A client that has come from another process as a record: whether it may be here, and what it is
//! made of.
//!
//! The record says what the client was there ([`crate::upgrade::record`]). Here it has to fit: into
//! the group that its id names, within the limits, with a user that the settings still have or an
//! account that is known, and with nothing negotiated that is not offered. Invariant: what is
//! refused is refused before anything of the group has changed.

use crate::auth::account::{Account, Counted};
use crate::auth::credential::Credential;
use crate::backend::pool_members::Onward;
use crate::client::Client;
use crate::client::buffers::transport::Transport;
use crate::client::place::Arrival;
use crate::config::{Origin, Settings, User};
use crate::group::shared::Shared;
use crate::upgrade::record::{Arrived, NotHere};
use reactor::{Address, Time};
use session::state::Session;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wire::auth::native;
use wire::capabilities as cap;

/// Parts of the group that a client comes to.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) settings: &'a Settings,
    /// The group's number, and how many clients it has.
    pub(crate) group: usize,
    pub(crate) clients: usize,
}

impl Place<'_> {
    /// Takes a slot for a backend that was dialled at `at` in another process; `address` is that
    /// of the server.
    ///
    /// # Errors
    /// It cannot be here.
    pub(crate) fn take_slot(
        &self,
        address: Option<Arc<Address>>,
        at: &str,
    ) -> Result<Arc<Address>, NotHere> {
        let address = address.filter(|address| address.to_string() == at);
        let address = address.ok_or("its backend is a connection to another server")?;
        match self.shared.budget.take(self.group) {
            true => Ok(address),
            false => Err("there are as many backends as there may be (backends_max)".into()),
        }
    }
}

impl Arrived {
    /// True if it may be here.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn fits(&self, place: &Place<'_>) -> Result<(), NotHere> {
        let shared = place.shared;
        let offered = shared.logins.offered | cap::COMPRESS | cap::ZSTD;
        if place.clients >= shared.clients_per_group() {
            return Err("the group has as many clients as it may have".into());
        }
        if shared.clients() >= place.settings.clients_max {
            return Err("there are as many clients as there may be (clients_max)".into());
        }
        if shared.retained.memory.is_short() {
            return Err("no memory is left for more clients".into());
        }
        if self.capabilities & !offered != 0
            || u32::from(self.carried.extended) & !shared.logins.extended != 0
        {
            return Err("it has agreed on capabilities that are not offered here".into());
        }
        if shared.group_of_client(self.carried.id) != place.group {
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
                let all = shared.logins.accounts.of_server();
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
        client.identity.take_carried(self.carried);
        client.capabilities = self.capabilities;
        client.place.priority = self.priority;
        client.session.last = std::mem::take(&mut self.last);
        client.session.pending_changes = std::mem::take(&mut self.pending_changes);
        client.keep_input(&self.input);
        if self.begin_deferred {
            client.command.defer_begin();
        }
        client.place.arrival = Arrival::at(self.connected);
        client
    }
}

/// Learns the password of an account again from what its clients have proven, where that can be
/// checked.
fn learn_again(account: &Account, credential: &Credential) {
    if let Credential::Native(once) = credential
        && account.credential().is_none()
        && native::stored_from_once(once) == account.verifier.native
    {
        let _ = account.learnt.native.set(*once);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::identity::Carried;
    use crate::group::scripted::shared;

    /// The first id of the only group.
    const ID: u32 = crate::client::clients::FIRST_ID;

    fn place<'a>(shared: &'a Shared, settings: &'a Settings) -> Place<'a> {
        Place {
            shared,
            settings,
            group: 0,
            clients: 0,
        }
    }

    fn arrived() -> Arrived {
        Arrived {
            user: "app".into(),
            account: None,
            gtid: None,
            carried: Carried {
                id: ID,
                collation: 45,
                seq: 0,
                changes_failed: 2,
                extended: 0,
                statements_made: 3,
            },
            capabilities: 0,
            priority: None,
            is_local: true,
            address: None,
            tls: None,
            compression: None,
            session: Session::default(),
            last: session::last_statement::LastStatement::default(),
            pending_changes: crate::backend::relay::PendingChanges::default(),
            input: b"\x05\0".to_vec(),
            begin_deferred: true,
            statements: Vec::new(),
            last_prepared: None,
            program: String::new(),
            connected: Time(5),
        }
    }

    #[test]
    fn who_fits_comes_in() {
        let shared = shared("");
        let settings = shared.settings();
        assert_eq!(arrived().fits(&place(&shared, &settings)), Ok(()));
    }

    #[test]
    fn each_bound_keeps_out_who_meets_it() {
        let shared = shared("clients_max = 5");
        let settings = shared.settings();
        let here = place(&shared, &settings);
        let full = Place {
            clients: shared.clients_per_group(),
            ..here
        };
        assert!(
            arrived()
                .fits(&full)
                .is_err_and(|why| why.contains("group"))
        );
        (0..5).for_each(|_| shared.add_client());
        assert!(
            arrived()
                .fits(&here)
                .is_err_and(|why| why.contains("clients_max"))
        );
        shared.remove_client();
        assert_eq!(arrived().fits(&here), Ok(()));
        (shared.retained.memory).set_shortage(Some(String::new()));
        assert!(
            arrived()
                .fits(&here)
                .is_err_and(|why| why.contains("memory"))
        );
    }

    #[test]
    fn what_is_not_offered_here_keeps_out_and_compression_does_not() {
        let shared = shared("");
        let settings = shared.settings();
        let here = place(&shared, &settings);
        let mut client = arrived();
        client.capabilities = cap::COMPRESS | cap::ZSTD;
        assert_eq!(client.fits(&here), Ok(()));
        client.capabilities = !shared.logins.offered & !cap::COMPRESS & !cap::ZSTD;
        assert!(client.fits(&here).is_err());
        client.capabilities = 0;
        client.carried.extended = 0x80;
        assert!(client.fits(&here).is_err());
    }

    #[test]
    fn a_user_must_be_listed_and_have_room() {
        let shared = shared("");
        let settings = shared.settings();
        let here = place(&shared, &settings);
        let (user, onward) = arrived().onward(&here).unwrap();
        assert_eq!((user, &*onward.user), (0, "app"));
        assert!(onward.account.is_none());
        let stranger = Arrived {
            user: "other".into(),
            ..arrived()
        };
        assert!(stranger.onward(&here).is_err());
        let mut bounded = (*settings).clone();
        bounded.users[0].limits.clients_max = Some(1);
        let here = place(&shared, &bounded);
        assert!(arrived().onward(&here).is_ok());
        bounded.users[0].usage.clients.store(1, Relaxed);
        assert!(arrived().onward(&place(&shared, &bounded)).is_err());
    }

    #[test]
    fn a_backend_comes_with_a_slot_and_to_the_same_server_only() {
        let shared = shared("backends_max = 1");
        let settings = shared.settings();
        let here = place(&shared, &settings);
        let address = || Some(Arc::new(Address::Unix("/s".into())));
        assert!(here.take_slot(None, "/s").is_err());
        assert!(here.take_slot(address(), "/other").is_err());
        assert!(here.take_slot(address(), "/s").is_ok());
        assert!(
            here.take_slot(address(), "/s").is_err(),
            "it was the last one"
        );
    }

    #[test]
    fn a_client_is_what_it_was_and_is_on_its_way() {
        let mut arrived = arrived();
        let client = arrived.client((), Time(7), Rc::default());
        assert_eq!(client.state(), crate::client::ClientState::Moving);
        assert_eq!((client.identity.id(), client.identity.collation), (ID, 45));
        assert_eq!(
            (
                client.identity.changes_failed,
                client.identity.statements_made
            ),
            (2, 3)
        );
        assert!(client.command.is_begin_deferred() && client.is_amid_command());
        assert!(
            !client.identity.is_known(),
            "its user is counted by whoever lets it in"
        );
    }
}
