//! Limits: what a user's clients, a transaction, a statement, an idle backend and all the memory
//! may take, and what happens to who takes more.
//!
//! Limits on numbers are checked where the number grows (a login); limits on time in the sweep,
//! once a second, over the backends, of which there are few. Memory is sampled off the statement
//! path ([`Shared::look_at_memory`]); while it is short nobody is let in, and those inside go on.
//!
//! A statement or transaction over its limit costs its client the connection and the server
//! connection behind it: closing that is what rolls back, and what no server refuses. A KILL ends
//! the statement there, which a server that does not look at its client would run on.
//!
//! Invariant: whoever is counted among a user's clients (`known`) is taken off that count once, in
//! `clients.rs: close` or by changing to another user.

use crate::auth::account::{Account, ClientsMax, Counted};
use crate::auth::credential::Credential;
use crate::backend::backend_pools::{BackendPool, CLIENT_ADDRESSES_MAX, PoolKey};
use crate::backend::{BackendState, Purpose};
use crate::buffers::memory::{meminfo, memory_of};
use crate::client::Proof;
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::log::{Event, Facts, note_of};
use crate::shared::Shared;
use reactor::{Key, Net, Time};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use wire::errors::{ErrorCode, TOO_MANY_USER_CONNECTIONS, USER_LIMIT_REACHED};

/// With less available memory than this on the machine nobody is let in.
const AVAILABLE_MIN: u64 = 64 << 20;

impl Shared {
    /// Looks whether there is memory for more clients. Reads three files, so it is called now and
    /// then by one group. What cannot be read limits nothing.
    pub(crate) fn look_at_memory(&self) {
        let used = measure::process::own().map_or(0, |sample| sample.rss_bytes);
        let limit = memory_of(self.settings().memory_bytes_max);
        let available = meminfo("MemAvailable").unwrap_or(u64::MAX);
        let why = if used > limit {
            Some(format!("{used} bytes are resident, the limit is {limit}"))
        } else if available < AVAILABLE_MIN {
            Some(format!(
                "the machine has {available} bytes left, fewer than {AVAILABLE_MIN}"
            ))
        } else {
            None
        };
        self.is_memory_full.store(why.is_some(), Relaxed);
        *self
            .memory_full
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// The error for one that is not let in for want of memory.
    pub(crate) fn memory_refusal(&self) -> Refusal {
        let words = self
            .memory_full
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Refusal::Memory {
            detail: words.clone().unwrap_or_default(),
        }
    }
}

impl<N: Net> Group<N> {
    /// Counts a client that has proven its name among its user's; `false` when there are too many
    /// of them, and the client has been told so.
    pub(crate) fn count_user(&mut self, key: Key, index: usize) -> bool {
        // An account may be newer than this turn.
        self.take_settings();
        let settings = self.settings.clone();
        let user = &settings.users[index];
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        if client.is_known() {
            let before = &self.settings.users[client.user as usize].usage.clients;
            before.fetch_sub(1, Relaxed);
        }
        self.uncount_input(key);
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        client.user = u16::try_from(index).unwrap_or(u16::MAX);
        if client.proof == Proof::Missing {
            client.proof = Proof::Given;
        }
        client.place.give_tickets(user.limits.high_prio_tickets);
        let others = self.settings.users[index]
            .usage
            .clients
            .fetch_add(1, Relaxed);
        self.count_input(key);
        let Some(max) = user.limits.clients_max.filter(|max| others >= *max) else {
            return true;
        };
        let user = user.name.clone();
        self.refuse_and_leave(key, &Refusal::UserClients { user, max });
        false
    }

    /// Counts all that is counted for users with a limit only, by the settings that the group has
    /// now, or takes it back.
    pub(crate) fn count_for_limits(&self, on: bool) {
        for (_, client) in self.clients.iter() {
            if client.place.is_in_lane() {
                self.settings.users[client.user as usize].count_waiting(on);
            }
        }
        self.count_inputs(on);
    }

    /// Ends statements and transactions that have taken longer than their user's may.
    pub(crate) fn keep_time_limits(&mut self) {
        for lease in self.backends.keys() {
            if let Some((owner, refusal)) = self.overdue(lease) {
                self.counts.too_slow += 1;
                self.log_time_limit(owner, &refusal);
                // The client's end is closed, and with it whatever is left on the backend.
                self.refuse_unasked(owner, &refusal);
                self.close_later(owner);
                self.abandon(lease, Some(owner));
                self.unbind(owner);
            }
        }
    }

    fn log_time_limit(&mut self, owner: Key, refusal: &Refusal) {
        let Some(omitted) = self.lines_of_losses.admit(self.net.now()) else {
            return;
        };
        let Some(client) = self.clients.get(owner) else {
            return;
        };
        let facts = Facts {
            client: Some(client.transport.peer(&self.net).into()),
            account: Some(self.settings.users[client.user as usize].name.as_bytes()),
            reason: Some(refusal.name()),
            omitted,
            ..Facts::default()
        };
        note_of(Event::TimeLimit, &facts, format_args!("{refusal}"));
    }

    /// The client whose time on this backend is over, and why.
    fn overdue(&mut self, lease: Key) -> Option<(Key, Refusal)> {
        let now = self.net.now();
        let backend = self.backends.get_mut(lease)?;
        if !backend.in_transaction() {
            backend.transaction_since = None;
        }
        let running = backend
            .flight()
            .front()
            .filter(|command| command.purpose == Purpose::Statement)
            .map(|command| (command.owner, command.sent));
        let owner = match running {
            Some((owner, _)) => owner?,
            None => backend.lease()?,
        };
        let client = self.clients.get(owner)?;
        let limits = &self.settings.users[client.user as usize].limits;
        if let (Some(max), Some((_, sent))) = (limits.statement_max, running)
            && now.since(sent.max(backend.busy_since)) > max
        {
            return Some((owner, Refusal::StatementTime { max }));
        }
        let max = limits
            .transaction_max
            .filter(|_| backend.in_transaction())?;
        let since = *backend.transaction_since.get_or_insert(now);
        let late = now.since(since) > max;
        late.then_some((owner, Refusal::TransactionTime { max }))
    }

    /// Closes backends that have been idle, or have lived, for longer than they may.
    pub(crate) fn trim_backends(&mut self) {
        let now = self.net.now();
        let settings = &self.settings;
        let (idle_max, life_max) = (settings.backend_idle_max, settings.backend_life_max);
        let kept = self.shared.backends_kept(&self.settings, self.index);
        for key in self.backends.keys() {
            let Some(backend) = self.backends.get(key) else {
                continue;
            };
            if backend.state() != BackendState::Idle {
                continue;
            }
            let unused = now.since(backend.since) > idle_max && self.backend_pools.count > kept;
            if unused || now.since(backend.born) > life_of(key, backend.born, life_max) {
                self.counts.trimmed += 1;
                self.let_go(key);
            }
        }
    }
}

/// What the backends of a client log in with.
#[derive(Clone, Debug)]
pub(crate) struct Onward {
    pub(crate) user: String,
    pub(crate) credential: Credential,
    /// The account of the server that was proven.
    pub(crate) account: Option<Arc<Counted>>,
}

impl Shared {
    /// What a client of this account uses on the server; `None`: it is an account of the server,
    /// and how to log in to it is not known.
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

impl<N: Net> Group<N> {
    /// Counts a client of this user that has come from another process, which has let it in.
    pub(crate) fn count_arrived(&mut self, key: Key, index: usize) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        client.user = u16::try_from(index).unwrap_or(u16::MAX);
        client.proof = Proof::Given;
        let user = &self.settings.users[index];
        client.place.give_tickets(user.limits.high_prio_tickets);
        user.usage.clients.fetch_add(1, Relaxed);
        self.count_input(key);
    }

    /// Gives a client that has proven its account a pool, and counts it among the account's.
    pub(crate) fn put_in_pool(&mut self, key: Key, pool: usize) {
        let new = self.backend_pools.counted_in(pool);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let old = client.is_known().then_some(client.pool as usize);
        client.pool = u32::try_from(pool).unwrap_or(0);
        // The new one first: another account's count may not seem to be free in between.
        if let Some(new) = new {
            new.clients.fetch_add(1, Relaxed);
        }
        let counted = old.and_then(|old| self.backend_pools.counted_in(old));
        if let Some(counted) = counted {
            counted.clients.fetch_sub(1, Relaxed);
        }
    }

    /// Whether an account of the server has as many clients as it may, in the server's words.
    pub(crate) fn has_too_many(&self, key: Key, account: &Account) -> Option<(ErrorCode, String)> {
        let of_server = account.of_server.as_ref()?;
        let client = self.clients.get(key)?;
        let is_counted = client.is_known()
            && self
                .backend_pools
                .counted_in(client.pool as usize)
                .as_deref()
                == Some(&*of_server.counted);
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
                format!(
                    "User {name} already has more than 'max_user_connections' active connections"
                ),
            )),
            _ => None,
        }
    }

    /// What the server is told of where a client is.
    pub(crate) fn told_address(&self, key: Key) -> Option<IpAddr> {
        let client = self.clients.get(key)?;
        let peer = client.transport.peer(&self.net);
        peer.filter(|_| self.settings.backend_proxy.tells())
            .map(|peer| peer.ip().to_canonical())
    }

    /// What the server is told of where a client is, once there is a place for backends of that
    /// address. Where clients have left one, its backends are closed for that.
    ///
    /// # Errors
    /// [`Refusal::ClientAddresses`]: clients of as many others are connected as may be.
    pub(crate) fn make_place_for_address(&mut self, key: Key) -> Result<Option<IpAddr>, Refusal> {
        let Some(address) = self.told_address(key) else {
            return Ok(None);
        };
        let pools = &self.backend_pools;
        let is_its = |pool: &BackendPool| pool.key.client_address == Some(address);
        if pools.pools.iter().any(is_its) || pools.addresses() < CLIENT_ADDRESSES_MAX {
            return Ok(Some(address));
        }
        let used = self.kinds_in_use();
        let all = self.backend_pools.pools.iter().enumerate();
        let left = all.filter(|(index, pool)| {
            let is_idle = pool.idle.len() == pool.count;
            pool.key.client_address.is_some() && is_idle && !used.contains(index)
        });
        let Some(idle) = left.map(|(_, pool)| pool.idle.clone()).next() else {
            let max = CLIENT_ADDRESSES_MAX;
            return Err(Refusal::ClientAddresses { max });
        };
        for lease in idle {
            self.let_go(lease);
        }
        Ok(Some(address))
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
            privileges: self.shared.privileges.version(),
        };
        if let Some(found) = self.backend_pools.find(&key) {
            return found;
        }
        let used = self.kinds_in_use();
        let index = self.backend_pools.add(key, |index| used.contains(&index));
        // Its number may have been another's.
        self.schemas.forget_pool(index);
        index
    }

    /// Kinds of all clients, and those to which a change of user that fails would go back.
    fn kinds_in_use(&self) -> HashSet<usize> {
        let mut used = HashSet::new();
        for (_, client) in self.clients.iter() {
            used.insert(client.pool as usize);
            let login = client.login.as_ref();
            used.extend(login.and_then(|login| Some(login.before.as_ref()?.pool as usize)));
        }
        used
    }

    /// A client that began under an older version of the privileges, of which no backend is left,
    /// goes on with backends of now: one that is dialled for it has the privileges of now anyway.
    pub(crate) fn leave_outdated(&mut self, key: Key) {
        let Some(client) = self.clients.get(key).filter(|c| c.lease().is_none()) else {
            return;
        };
        let old = client.pool as usize;
        if !self
            .backend_pools
            .is_outdated(old, self.shared.privileges.version())
            || self.backend_pools.pools[old].count > 0
        {
            return;
        }
        // Those who wait in its lane are served in their order.
        if self.front_of(old).is_some() {
            return;
        }
        let PoolKey {
            client_address,
            capabilities,
            extended,
            user,
            credential,
            account,
            ..
        } = self.backend_pools.pools[old].key.clone();
        // The password may have been changed, and proven by others, since its login.
        let counted = account.as_ref();
        let now =
            counted.and_then(|counted| self.shared.accounts.of_server().of(counted)?.credential());
        let onward = Onward {
            user,
            credential: now.unwrap_or(credential),
            account,
        };
        let pool = self.pool_of((capabilities, extended), onward, client_address);
        if let Some(client) = self.clients.get_mut(key) {
            client.pool = u32::try_from(pool).unwrap_or(0);
        }
    }

    /// Closes what lies idle of a version of the privileges that no client has any more.
    pub(crate) fn retire_outdated(&mut self) {
        let now = self.shared.privileges.version();
        let outdated = |pool: &BackendPool| pool.key.privileges != now;
        let idle = |pool: &BackendPool| outdated(pool) && !pool.idle.is_empty();
        if !self.backend_pools.pools.iter().any(idle) {
            return;
        }
        let used = self.kinds_in_use();
        let all = self.backend_pools.pools.iter().enumerate();
        let left = all.filter(|(index, pool)| outdated(pool) && !used.contains(index));
        let left: Vec<Key> = left.flat_map(|(_, pool)| pool.idle.clone()).collect();
        for lease in left {
            self.retire(lease);
        }
    }
}

/// How long one backend lives: `life_max`, shortened by up to a tenth. Backends that were dialled
/// together must not be replaced together, so the share differs by key and birth.
fn life_of(key: Key, born: Time, life_max: Duration) -> Duration {
    let mixed = (born.0 ^ u64::from(key.parts().0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let permille = u32::try_from(mixed >> 32).unwrap_or(0) % 100;
    life_max - life_max / 1000 * permille
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_differ_by_a_tenth_and_are_never_longer() {
        let life = Duration::from_secs(1000);
        let lives = (0..200).map(|n| life_of(Key::from_parts(n, 0), Time(77), life));
        let lives: Vec<Duration> = lives.collect();
        assert!(lives.iter().all(|l| *l <= life && *l > life * 9 / 10));
        let spread = *lives.iter().max().unwrap() - *lives.iter().min().unwrap();
        assert!(spread > life / 20, "{spread:?}");
    }
}
