//! Backend pool of a client, and the reasons that keep it out of one.
//!
//! A client that has proven its account shares the backends of all who log in to the server as it
//! does: with the same account, the same capabilities that change results, under the same version
//! of the privileges, and from the same address where the server is told of that. An account counts
//! its clients.
//!
//! What stands between a proven password and a session: what the account requires of the
//! connection, and what the server says of the account.
//!
//! The problem: an account of the server (`auth = "server"`) may be locked, expired, or have as
//! many connections as it may, and the server would tell the pool's backends so, not the client.
//! The mechanism: the pool looks at the same things in the same order, and answers in the server's
//! words ([`bar_of`]): `REQUIRE`, the lock, the expiry, the number of clients.
//!
//! Invariants: who belongs to a pool is counted once, by its account; whoever is counted among a
//! user's clients ([`Client::is_known`]) is taken off that count once, when it is closed or becomes
//! another user's; a pool's number is another
//! one's only when no client belongs to it, nor would go back to it.

use crate::auth::account::{Account, ClientsMax, Counted, Unusable};
use crate::auth::credential::Credential;
use crate::backend::pools::{BackendPool, BackendPools, CLIENT_ADDRESSES_MAX, PoolKey};
use crate::client::Client;
use crate::client::clients::Clients;
use crate::client::identity::Proof;
use crate::config::Settings;
use crate::errors::reasons::Refusal;
use crate::group::shared::Shared;
use crate::group::tokens::{BackendId, ClientId};
use crate::server::schemas::Schemas;
use cluster::ServerId;
use reactor::Net;
use session::global_defaults::GlobalDefaults;
use session::state::Interner;
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wire::errors::{
    ACCOUNT_LOCKED, ACCOUNT_LOCKED_MARIADB, ErrorCode, NOT_SUPPORTED_AUTH_MODE, PASSWORD_EXPIRED,
    TOO_MANY_USER_CONNECTIONS, USER_LIMIT_REACHED,
};

/// Reason why a client is not let in, though its password may be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bar {
    /// The client hears what it would for a wrong password; the log says this.
    Denied(&'static str),
    /// Error in which `{name}` and `{host}` are its own.
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

    /// Reason as the log names it.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Bar::Denied(reason) | Bar::Refused { reason, .. } => reason,
        }
    }
}

/// Reason why no password opens an account, if that is so.
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

/// Bar that keeps a client out that has proven its password, if any.
pub(crate) fn bar_of<S>(
    client: &Client<S>,
    account: &Account,
    shared: &Shared,
    settings: &Settings,
    pools: &BackendPools,
) -> Option<Bar> {
    let transport = &client.transport;
    let of_server = account.of_server.as_ref();
    let require = match of_server {
        Some(of_server) => &of_server.require,
        None => &settings.users.get(account.user)?.require,
    };
    let unmet = require.unmet(transport.is_tls(), transport.peer_certificate());
    if let Some(unmet) = unmet {
        return Some(Bar::Denied(unmet));
    }
    if !shared.logins.accounts.is_current(account) {
        return Some(Bar::Denied("account-changed"));
    }
    let of_server = of_server?;
    if let Some(bar) = unusable(account) {
        return Some(bar);
    }
    if of_server.is_locked {
        return match shared.server.flavour.is_mysql() {
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
    let (error, text) = has_too_many(client, account, pools)?;
    Some(Bar::Refused {
        reason: "account-clients",
        error,
        text,
    })
}

/// True if an account of the server has as many clients as it may, in the server's words.
fn has_too_many<S>(
    client: &Client<S>,
    account: &Account,
    pools: &BackendPools,
) -> Option<(ErrorCode, String)> {
    let of_server = account.of_server.as_ref()?;
    let is_counted = client.identity.is_known()
        && pools.counted_in(client.pool as usize).as_deref() == Some(&*of_server.counted);
    let others = of_server.counted.clients.load(Relaxed) - usize::from(is_counted);
    let name = &account.name;
    match of_server.clients_max? {
        ClientsMax::OfAccount(max) if others >= max => Some((
            USER_LIMIT_REACHED,
            format!(
                "User '{name}' has exceeded the 'max_user_connections' resource (current \
                 value: {max})"
            ),
        )),
        ClientsMax::OfServer(max) if others >= max => Some((
            TOO_MANY_USER_CONNECTIONS,
            format!("User {name} already has more than 'max_user_connections' active connections"),
        )),
        _ => None,
    }
}

/// Credential of the backends of a client.
#[derive(Clone, Debug)]
pub(crate) struct Onward {
    pub(crate) user: String,
    pub(crate) credential: Credential,
    /// The account of the server that was proven.
    pub(crate) account: Option<Arc<Counted>>,
}

impl Shared {
    /// Login of a client of this account on the server; `None`: it is an account of the server, and
    /// how to log in to it is not known.
    pub(crate) fn onward(&self, account: &Account) -> Option<Onward> {
        let Some(of_server) = &account.of_server else {
            let settings = self.settings();
            let user = settings.users.get(account.user)?;
            return Some(Onward {
                user: user.backend_user.clone(),
                credential: Credential::Password(user.backend_password.clone()),
                account: None,
            });
        };
        Some(Onward {
            user: account.name.clone(),
            credential: account.credential()?,
            account: Some(of_server.counted.clone()),
        })
    }
}

/// A place for backends of a client's address.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Address of the client that the server is told.
    pub(crate) reported: Option<IpAddr>,
    /// Backends of an address that clients have left, which are closed for that.
    pub(crate) idle: Vec<BackendId>,
}

/// The clients of a group as members of its pools.
pub(crate) struct PoolMembers<'a, N: Net> {
    pub(crate) clients: &'a mut Clients<N::Sock>,
    pub(crate) pools: &'a mut BackendPools,
    pub(crate) schemas: &'a mut Schemas,
    pub(crate) sessions: &'a mut Interner,
    /// Global defaults that sessions begin with.
    pub(crate) defaults: &'a GlobalDefaults,
    pub(crate) net: &'a N,
    pub(crate) shared: &'a Shared,
    pub(crate) settings: &'a Settings,
}

impl<N: Net> PoolMembers<'_, N> {
    /// Counts a client that has proven its name among its user's, and no more among another's.
    ///
    /// # Errors
    /// [`Refusal::UserClients`]: there are too many of them, this one not counted.
    pub(crate) fn count(&mut self, key: ClientId, user: usize) -> Result<(), Refusal> {
        let Some(client) = self.clients.get_mut(key) else {
            return Ok(());
        };
        if client.identity.is_known() {
            let before = &self.settings.users[client.identity.user()].usage.clients;
            before.fetch_sub(1, Relaxed);
        }
        client.identity.count_as(user);
        let user = &self.settings.users[user];
        client.place.give_tickets(user.limits.high_prio_tickets);
        let others = user.usage.clients.fetch_add(1, Relaxed);
        match user.limits.clients_max {
            Some(max) if others >= max => Err(Refusal::UserClients {
                user: user.name.clone(),
                max,
            }),
            _ => Ok(()),
        }
    }

    /// The user with the limits of a pool's account of the server.
    pub(crate) fn user_of(&self, pool: usize) -> Option<usize> {
        let account = self.pools.counted_in(pool)?;
        self.settings.server_account(&account.user)
    }

    /// Moves clients of the server's accounts to the users that have their limits by now.
    pub(crate) fn follow_users(&mut self) {
        let users = (0..self.pools.pools.len()).map(|pool| self.user_of(pool));
        let users: Vec<Option<usize>> = users.collect();
        if users.iter().all(Option::is_none) {
            return;
        }
        for client in (self.clients.values_mut()).filter(|client| client.identity.is_known()) {
            let user = users.get(client.pool as usize).copied().flatten();
            let Some(user) = user.filter(|user| *user != client.identity.user()) else {
                continue;
            };
            let of = |user: usize| &self.settings.users[user];
            of(client.identity.user())
                .usage
                .clients
                .fetch_sub(1, Relaxed);
            client.identity.count_as(user);
            client.place.give_tickets(of(user).limits.high_prio_tickets);
            of(user).usage.clients.fetch_add(1, Relaxed);
        }
    }

    /// Counts a client of this user that has come from another process, which has let it in.
    pub(crate) fn joins(&mut self, key: ClientId, user: usize) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        client.identity.let_in_as(user);
        let user = &self.settings.users[user];
        client.place.give_tickets(user.limits.high_prio_tickets);
        user.usage.clients.fetch_add(1, Relaxed);
    }

    /// Reason for which a client can run no statement any more. COM_PING, by which applications'
    /// pools ask whether a connection serves, fails with it.
    pub(crate) fn dead_end(&mut self, key: ClientId) -> Option<String> {
        let client = self.clients.get(key).filter(|c| c.backend().is_none())?;
        let pool = client.pool as usize;
        // Its next statement moves it on.
        let pool = match self.outdated(key) {
            Some(old) => {
                let key_of_now = self.key_of_now(old);
                self.pools.find(&key_of_now)?
            }
            None => pool,
        };
        self.pools.pools[pool].dead_end(&self.shared.logins.accounts)
    }

    /// True if it is known how a login of this client's pool begins, where `init_connect` decides
    /// that ([`crate::server::begins`]); its session begins so.
    pub(crate) fn begins(&mut self, key: ClientId) -> bool {
        if self.defaults.init_connect().is_empty() {
            return true;
        }
        let client = self.clients.get_mut(key);
        let Some(client) = client.filter(|c| c.identity.proof() != Proof::Changing) else {
            return true;
        };
        let known = self.pools.pools[client.pool as usize].begins.as_ref();
        let known = known.filter(|known| *known.init_connect == *self.defaults.init_connect());
        let Some(begins) = known else {
            return false;
        };
        let mut session = (*client.session.state).clone();
        begins.begin(&mut session);
        client.session.state = self.sessions.intern(session);
        true
    }

    /// Address of a client that the server is told.
    pub(crate) fn reported_address(&self, key: ClientId) -> Option<IpAddr> {
        let client = self.clients.get(key)?;
        let peer = client.transport.peer(self.net);
        peer.filter(|_| self.settings.backend_proxy.tells())
            .map(|peer| peer.ip().to_canonical())
    }

    /// Address of a client that the server is told, once there is a place for backends of that
    /// address. Where clients have left one, its backends are to be closed for that.
    ///
    /// # Errors
    /// [`Refusal::ClientAddresses`]: clients of as many others are connected as may be.
    pub(crate) fn place_for_address(&mut self, key: ClientId) -> Result<Place, Refusal> {
        let Some(address) = self.reported_address(key) else {
            return Ok(Place::default());
        };
        let pools = &self.pools;
        let is_its = |pool: &BackendPool| pool.key.client_address == Some(address);
        if pools.pools.iter().any(is_its) || pools.addresses() < CLIENT_ADDRESSES_MAX {
            return Ok(Place {
                reported: Some(address),
                idle: Vec::new(),
            });
        }
        let used = self.kinds_in_use();
        let all = self.pools.pools.iter().enumerate();
        let left = all.filter(|(index, pool)| {
            let is_idle = pool.idle.len() == pool.count;
            pool.key.client_address.is_some() && is_idle && !used.contains(index)
        });
        let Some(idle) = left.map(|(_, pool)| pool.idle.clone()).next() else {
            let max = CLIENT_ADDRESSES_MAX;
            return Err(Refusal::ClientAddresses { max });
        };
        Ok(Place {
            reported: Some(address),
            idle,
        })
    }

    /// The pool of a client that has proven its account now; `from`: what the server is told of
    /// where it is.
    pub(crate) fn pool_of(
        &mut self,
        (capabilities, extended): (u32, u32),
        onward: Onward,
        from: Option<IpAddr>,
    ) -> usize {
        let key = PoolKey {
            client_address: from,
            capabilities,
            extended,
            user: onward.user,
            credential: onward.credential,
            account: onward.account,
            privileges: self.shared.watched.privileges.version(),
            reader: None,
        };
        match self.pools.find(&key) {
            Some(found) => found,
            None => self.add_pool(key),
        }
    }

    /// The pool on this server for the clients of a pool on the writer.
    pub(crate) fn on_reader(&mut self, home: usize, reader: ServerId) -> usize {
        self.pools.on_reader(home, reader).unwrap_or_else(|key| {
            let pool = self.add_pool(key);
            self.pools.pools[pool].home = Some(home);
            pool
        })
    }

    fn add_pool(&mut self, key: PoolKey) -> usize {
        let used = self.kinds_in_use();
        let slots =
            (self.shared.connections.account_slots).of(&key.user, key.reader, self.settings);
        let is_of_server = key.account.is_some();
        let server = key.reader.or_else(|| self.shared.upstream.writer_id());
        let server = self.shared.connections_to(server);
        let figures =
            is_of_server.then(|| self.shared.connections.account_places.place_of(&key.user));
        let index = self.pools.add(key, |index| used.contains(&index));
        self.pools.pools[index].slots = slots;
        self.pools.pools[index].server = server;
        self.pools.pools[index].figures = figures;
        // Its number may have been another's.
        self.schemas.forget_pool(index);
        index
    }

    /// Gives a client that has proven its account a pool, and counts it among the account's.
    pub(crate) fn put_in_pool(&mut self, key: ClientId, pool: usize) {
        let new = self.pools.counted_in(pool);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let old = client.identity.is_known().then_some(client.pool as usize);
        client.pool = u32::try_from(pool).unwrap_or(0);
        // The new one first: another account's count may not seem to be free in between.
        if let Some(new) = new {
            new.clients.fetch_add(1, Relaxed);
        }
        let counted = old.and_then(|old| self.pools.counted_in(old));
        if let Some(counted) = counted {
            counted.clients.fetch_sub(1, Relaxed);
        }
    }

    /// Kinds of all clients, and those to which a change of user that fails would go back.
    fn kinds_in_use(&self) -> HashSet<usize> {
        let mut used = HashSet::new();
        for (_, client) in self.clients.iter() {
            let pool = client.pool as usize;
            used.insert(pool);
            used.extend(self.pools.pools.get(pool).and_then(|pool| pool.home));
            let login = client.login.as_ref();
            used.extend(login.and_then(|login| Some(login.before.as_ref()?.pool as usize)));
        }
        used
    }

    /// The pool of a client that began under an older version of the privileges, of which no
    /// backend is left: it goes on with backends of now ([`PoolMembers::move_on`]). One that is
    /// dialled for it has the privileges of now anyway.
    pub(crate) fn outdated(&self, key: ClientId) -> Option<usize> {
        let client = self.clients.get(key).filter(|c| c.backend().is_none())?;
        let old = client.pool as usize;
        let is_outdated = (self.pools).is_outdated(old, self.shared.watched.privileges.version());
        (is_outdated && self.pools.pools[old].count == 0).then_some(old)
    }

    /// The key of a pool under the version of the privileges that holds now. The password may have
    /// been changed, and proven by others, since its clients logged in.
    pub(crate) fn key_of_now(&self, pool: usize) -> PoolKey {
        let key = self.pools.pools[pool].key.clone();
        let counted = key.account.as_ref();
        let now = counted.and_then(|counted| {
            (self.shared.logins.accounts.of_server().of(counted)?).credential()
        });
        PoolKey {
            credential: now.unwrap_or_else(|| key.credential.clone()),
            privileges: self.shared.watched.privileges.version(),
            reader: None,
            ..key
        }
    }

    /// Moves a client on from a pool of an older version of the privileges, to this one.
    pub(crate) fn move_on(&mut self, key: ClientId, old: usize) -> usize {
        let key_of_now = self.key_of_now(old);
        let capabilities = (key_of_now.capabilities, key_of_now.extended);
        let onward = Onward {
            user: key_of_now.user,
            credential: key_of_now.credential,
            account: key_of_now.account,
        };
        let pool = self.pool_of(capabilities, onward, key_of_now.client_address);
        if let Some(client) = self.clients.get_mut(key) {
            client.pool = u32::try_from(pool).unwrap_or(0);
        }
        pool
    }

    /// Idle backends of a version of the privileges that no client has any more.
    pub(crate) fn outdated_idle(&self) -> Vec<BackendId> {
        let now = self.shared.watched.privileges.version();
        let outdated = |pool: &BackendPool| pool.key.privileges != now;
        let idle = |pool: &BackendPool| outdated(pool) && !pool.idle.is_empty();
        if !self.pools.pools.iter().any(idle) {
            return Vec::new();
        }
        let used = self.kinds_in_use();
        let all = self.pools.pools.iter().enumerate();
        let left = all.filter(|(index, pool)| outdated(pool) && !used.contains(index));
        left.flat_map(|(_, pool)| pool.idle.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::scripted::{Scripted, shared};
    use reactor::Time;
    use std::rc::Rc;

    struct Bench {
        clients: Clients<()>,
        pools: BackendPools,
        schemas: Schemas,
        sessions: Interner,
        defaults: GlobalDefaults,
        net: Scripted,
        shared: Shared,
        settings: Arc<Settings>,
    }

    impl Bench {
        fn new() -> Bench {
            let shared = shared("");
            Bench {
                clients: Clients::default(),
                pools: BackendPools::default(),
                schemas: Schemas::default(),
                sessions: Interner::default(),
                defaults: GlobalDefaults::default(),
                net: Scripted::default(),
                settings: shared.settings(),
                shared,
            }
        }

        fn members(&mut self) -> PoolMembers<'_, Scripted> {
            PoolMembers {
                clients: &mut self.clients,
                pools: &mut self.pools,
                schemas: &mut self.schemas,
                sessions: &mut self.sessions,
                defaults: &self.defaults,
                net: &self.net,
                shared: &self.shared,
                settings: &self.settings,
            }
        }

        fn client(&mut self) -> ClientId {
            let client = Client::of_tests(Time(1), Rc::default());
            self.clients.insert(client)
        }

        /// The pool of who logs in to the server as this account, with these capabilities.
        fn pool_of(&mut self, account: &Arc<Counted>, capabilities: u32) -> usize {
            let onward = Onward {
                user: account.user.clone(),
                credential: Credential::Password("secret".into()),
                account: Some(account.clone()),
            };
            self.members().pool_of((capabilities, 0), onward, None)
        }
    }

    fn account(user: &str) -> Arc<Counted> {
        Arc::new(Counted {
            user: user.into(),
            host: "%".into(),
            ..Counted::default()
        })
    }

    fn count(account: &Counted) -> usize {
        account.clients.load(Relaxed)
    }

    #[test]
    fn who_logs_in_to_the_server_alike_shares_backends() {
        let mut bench = Bench::new();
        let (one, other) = (account("one"), account("other"));
        let first = bench.pool_of(&one, 0);
        assert_eq!(bench.pool_of(&one, 0), first);
        let pools = [bench.pool_of(&one, 8), bench.pool_of(&other, 0)];
        assert!(!pools.contains(&first) && pools[0] != pools[1]);
    }

    #[test]
    fn an_account_counts_its_clients_and_one_that_moves_is_counted_once() {
        let mut bench = Bench::new();
        let (one, other) = (account("one"), account("other"));
        let pools = [bench.pool_of(&one, 0), bench.pool_of(&other, 0)];
        let key = bench.client();
        bench.members().put_in_pool(key, pools[0]);
        assert_eq!((count(&one), count(&other)), (1, 0));
        // Only who is known belonged to a pool before.
        bench.members().joins(key, 0);
        bench.members().put_in_pool(key, pools[1]);
        assert_eq!((count(&one), count(&other)), (0, 1));
        assert_eq!(bench.clients.get(key).unwrap().pool as usize, pools[1]);
    }

    #[test]
    fn who_has_come_from_another_process_is_counted_among_its_users() {
        let mut bench = Bench::new();
        let key = bench.client();
        bench.members().joins(key, 0);
        assert!(bench.clients.get(key).unwrap().identity.is_known());
        let usage = &bench.settings.users[0].usage;
        assert_eq!(usage.clients.load(Relaxed), 1);
    }

    #[test]
    fn a_pool_of_older_privileges_is_left_once_it_is_empty() {
        let mut bench = Bench::new();
        let one = account("one");
        let old = bench.pool_of(&one, 0);
        let key = bench.client();
        bench.members().put_in_pool(key, old);
        assert_eq!(bench.members().outdated(key), None);
        bench.pools.pools[old].key.privileges = u32::MAX;
        assert_eq!(bench.members().outdated(key), Some(old));
        bench.pools.pools[old].count = 1;
        assert_eq!(bench.members().outdated(key), None, "a backend is left");
        bench.pools.pools[old].count = 0;
        bench.members().move_on(key, old);
        let pool = bench.clients.get(key).unwrap().pool as usize;
        assert_ne!(pool, old);
        assert_eq!(bench.pools.pools[pool].key.user, "one");
    }

    #[test]
    fn who_proves_another_name_is_counted_among_those_of_that_alone() {
        const OTHER: &str = "[[user]]\nname = \"other\"\npassword = \"secret\"\nclients_max = 1";
        let mut bench = Bench::new();
        bench.shared = shared(OTHER);
        bench.settings = bench.shared.settings();
        let counted = |bench: &Bench| {
            let users = &bench.settings.users;
            [0, 1].map(|user| users[user].usage.clients.load(Relaxed))
        };
        let (first, second) = (bench.client(), bench.client());
        assert_eq!(bench.members().count(first, 1), Ok(()));
        assert_eq!(counted(&bench), [0, 1]);
        assert_eq!(bench.members().count(first, 0), Ok(()));
        assert_eq!(counted(&bench), [1, 0]);
        let refused = bench.members().count(second, 0);
        assert!(matches!(refused, Err(Refusal::UserClients { max: 1, .. })));
        assert_eq!(counted(&bench), [2, 0], "until it is closed");
    }

    #[test]
    fn what_lies_idle_of_older_privileges_goes_when_no_client_has_them() {
        let mut bench = Bench::new();
        let old = bench.pool_of(&account("one"), 0);
        let (backend, key) = (BackendId::from_parts(7, 0), bench.client());
        bench.members().put_in_pool(key, old);
        bench.pools.pools[old].idle.push(backend);
        assert!(bench.members().outdated_idle().is_empty());
        bench.pools.pools[old].key.privileges = u32::MAX;
        assert!(
            bench.members().outdated_idle().is_empty(),
            "a client has them"
        );
        bench.clients.remove(key);
        assert_eq!(bench.members().outdated_idle(), [backend]);
    }
}
