//! A group's backends, in one pool for each account and set of capabilities.
//!
//! A [`PoolKey`] is an account, the capabilities that change results, the version of the server's
//! privileges at the login of its clients (`privileges.rs`), and their address where the server is
//! told it ([`CLIENT_ADDRESSES_MAX`]). A client's statements run
//! only on backends of its pool. Each pool has queues of clients that wait. What bounds the number
//! of backends is the budget of all groups (`budget.rs`).
//!
//! When a dial fails, the pool's next one waits, doubling from [`BACK_OFF_MIN`] to
//! [`BACK_OFF_MAX`]; a success resets it.
//!
//! Idle backends are taken last in, first out (warm caches at both ends), but one that already
//! stands in the client's session state goes first.

use crate::auth::account::Counted;
use crate::auth::accounts::Accounts;
use crate::auth::credential::Credential;
use crate::auth::secret::Secret;
use crate::config::Settings;
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::account_slots::{AccountSlots, Place, RunPlace};
use crate::scheduler::budget::Budget;
use crate::scheduler::queue::{QueueName, Queues, Waiting};
use crate::server::begins::Begins;
use crate::server::facts::ServerFacts;
use cluster::ServerId;
use reactor::Time;
use session::own_writes::OwnWrites;
use session::state::Session;
use session::text::Text;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use wire::attributes::Form;
use wire::capabilities::DEPRECATE_EOF;

/// First wait after a failed dial.
pub(crate) const BACK_OFF_MIN: Duration = Duration::from_millis(50);
/// Longest wait between dials.
pub(crate) const BACK_OFF_MAX: Duration = Duration::from_secs(2);

/// Pools of backends that say a client's address, at most, in a group. A turn looks at each pool
/// several times.
pub(crate) const CLIENT_ADDRESSES_MAX: usize = 1024;

/// Credential of a backend, and the use that it can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolKey {
    /// Address of its clients, if the server is told it and they have one.
    pub(crate) client_address: Option<IpAddr>,
    /// Capabilities that change results, a subset of [`wire::capabilities::BACKEND_KEY`].
    pub capabilities: u32,
    /// MariaDB's extended capabilities, of [`wire::capabilities::EXTENDED_OFFERED`].
    pub extended: u32,
    /// The account.
    pub user: String,
    /// Credential of its backends.
    pub(crate) credential: Credential,
    /// The account of the server that its clients have proven; the server has to let the backends
    /// in as the same one. `None`: a user of the settings.
    pub(crate) account: Option<Arc<Counted>>,
    /// The version of the server's accounts and privileges at the login of its clients: those of
    /// one version do not get what was logged in under another.
    pub(crate) privileges: u32,
    /// The server that is read, of several; `None`: the one that is written to.
    pub(crate) reader: Option<ServerId>,
}

impl PoolKey {
    /// Key of a connection that asks the server for the pool itself, with this account.
    pub(crate) fn to_ask(user: String, password: Secret) -> PoolKey {
        PoolKey {
            client_address: None,
            capabilities: DEPRECATE_EOF,
            extended: 0,
            user,
            credential: Credential::Password(password),
            account: None,
            privileges: 0,
            reader: None,
        }
    }

    /// Key of a user of the settings, with the password `secret` and nothing special.
    #[cfg(test)]
    pub(crate) fn of_user(user: &str) -> PoolKey {
        PoolKey {
            capabilities: 0,
            ..PoolKey::to_ask(user.into(), "secret".into())
        }
    }

    /// The account of its server, by its name and its host, where that is known.
    fn account(&self) -> (&str, Option<&str>, Option<ServerId>) {
        let proven = self.account.as_ref();
        let host = proven.map(|account| account.host.as_str());
        (&self.user, host, self.reader)
    }

    /// Form of commands on its backends.
    pub(crate) fn form(&self) -> Form {
        Form::of(self.capabilities)
    }

    /// Reason why a dial would fail for its password, if it would: a login that is broken off or
    /// wrong counts on the server against the pool's host, or the account, so there is none.
    pub(crate) fn outdated_password(&self, accounts: &Accounts) -> Option<String> {
        let counted = self.account.as_ref()?;
        let known = accounts.of_server().of(counted)?.credential();
        let account = format!("'{}'@'{}'", counted.user, counted.host);
        (known.as_ref() != Some(&self.credential)).then(|| {
            format!(
                "the password of account {account} has been changed since the client logged in, or \
                 the server asks for it again (a restart, FLUSH PRIVILEGES); log in again"
            )
        })
    }

    /// Removes the account's cached password, which the server asks for again: its next login, in
    /// any group, has to bring it.
    pub(crate) fn forget_password(&self, accounts: &Accounts) {
        let all = accounts.of_server();
        if let Some(account) = self.account.as_ref().and_then(|account| all.of(account)) {
            account.learnt.forget();
        }
    }

    /// True if its backends send EOF packets behind definitions and rows.
    pub(crate) fn sends_eofs(&self) -> bool {
        self.capabilities & DEPRECATE_EOF == 0
    }
}

/// Failure of a dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialEnd {
    /// Nobody answered, or not to the end.
    Unreached,
    /// Refusal by the server that may pass.
    Answered,
    /// Refusal of a server with as many connections of the account as it takes.
    AccountFull,
    /// Lack of a password: the known one does not serve any more; another login teaches it.
    PasswordUnknown,
    /// The server refuses the account, or lacks what the pool needs.
    Account,
}

/// The backends of one key and the clients that wait for them.
#[derive(Debug)]
pub(crate) struct BackendPool {
    /// Key by which they log in.
    pub key: PoolKey,
    /// Number of its account in this group; pools of one account have the same.
    pub(crate) account: usize,
    /// Free ones, the last used at the end.
    pub idle: Vec<BackendId>,
    /// All of them, dialling ones included.
    pub count: usize,
    /// Those being dialled.
    pub dialling: usize,
    /// Queues of waiting clients.
    pub queues: Queues,
    /// Connections of its account, over all pools and groups.
    pub(crate) slots: Arc<AccountSlots>,
    /// Connections to its server, over all pools and groups, where there are several servers.
    pub(crate) server: Option<Arc<AccountSlots>>,
    /// Place of its figures, if it is an account of the server; else they are its users'.
    pub(crate) figures: Option<u16>,
    /// No dial before this moment.
    pub dial_at: Time,
    back_off: Duration,
    /// Reason why the last dial failed.
    pub last_failure: Option<String>,
    /// The last dial failed because the server refuses the account.
    pub(crate) is_refused: bool,
    /// Effect of its logins, where the server has `init_connect`.
    pub(crate) begins: Option<Begins>,
    /// True if the last login had a role; `None` before the first.
    pub(crate) login_has_role: Option<bool>,
    /// The pool on the writer whose clients it serves, of one on a server that is read.
    pub(crate) home: Option<usize>,
    /// Writes that its server is known to have.
    pub(crate) has: OwnWrites,
    /// Moment before which nobody waits for that server to catch up; 0: it was not behind.
    pub(crate) behind_until: Time,
}

impl BackendPool {
    fn new(key: PoolKey, account: usize) -> BackendPool {
        BackendPool {
            key,
            account,
            idle: Vec::new(),
            count: 0,
            dialling: 0,
            queues: Queues::default(),
            slots: Arc::default(),
            server: None,
            figures: None,
            dial_at: Time(0),
            back_off: BACK_OFF_MIN,
            last_failure: None,
            is_refused: false,
            begins: None,
            login_has_role: None,
            home: None,
            has: OwnWrites::default(),
            behind_until: Time(0),
        }
    }

    /// Limits on its connections: those of its account, and of its server.
    pub(crate) fn limits(&self) -> impl Iterator<Item = &Arc<AccountSlots>> {
        [Some(&self.slots), self.server.as_ref()]
            .into_iter()
            .flatten()
    }

    /// Counts at another server from now on.
    pub(crate) fn follow_server(&mut self, place: Place, server: Option<Arc<AccountSlots>>) {
        if let Some(before) = std::mem::replace(&mut self.server, server) {
            before.want(place, None);
            before.running().map(|running| running.want(place, None));
        }
    }

    /// Backends of all groups that run something on its server, where that limits them.
    pub(crate) fn running(&self) -> Option<&Arc<AccountSlots>> {
        self.server.as_ref()?.running()
    }

    /// A place for a backend that is about to run something there; `None`: there is none now.
    pub(crate) fn run(&self) -> Option<RunPlace> {
        match self.running() {
            None => Some(None),
            Some(running) => running.connect().map(Some),
        }
    }

    /// True if as many run something on its server as may.
    pub(crate) fn is_running_full(&self) -> bool {
        self.running().is_some_and(|running| running.is_at_max())
    }

    /// True if no backend of it is free, and its server takes no more.
    pub(crate) fn is_server_full(&self) -> bool {
        self.idle.is_empty() && (self.server.as_ref()).is_some_and(|server| server.is_at_max())
    }

    /// Stores the session in which a fresh backend begins, with `init_connect` with all its
    /// variables.
    pub(crate) fn note_begins(
        &mut self,
        fresh: &mut Session,
        values: Option<&Text>,
        server: &ServerFacts,
    ) {
        let Some(values) = values.and_then(|values| fresh.defaults.read(values)) else {
            return;
        };
        let begins = Begins::of(fresh, &values, server);
        begins.begin(fresh);
        self.begins = Some(begins);
    }

    /// Notes that a dial failed, and why.
    pub(crate) fn dial_failed(&mut self, now: Time, why: String, end: DialEnd) {
        self.last_failure = Some(why);
        self.has = OwnWrites::default();
        self.is_refused = matches!(end, DialEnd::Account | DialEnd::PasswordUnknown);
        self.dial_at = now + self.back_off;
        self.back_off = (self.back_off * 2).min(BACK_OFF_MAX);
    }

    /// Notes that a dial succeeded: on a server that has started again, perhaps, and has less.
    pub(crate) fn dial_succeeded(&mut self, now: Time) {
        self.last_failure = None;
        self.has = OwnWrites::default();
        self.is_refused = false;
        self.dial_at = self.dial_at.min(now);
        self.back_off = BACK_OFF_MIN;
    }
}

impl BackendPool {
    /// Reason for which no client of the pool can run a statement any more, as far as the last dial
    /// and the accounts tell; `None`: there are backends, or nothing is known to keep one away.
    pub(crate) fn dead_end(&self, accounts: &Accounts) -> Option<String> {
        if self.count > 0 {
            return None;
        }
        let refused = self.last_failure.clone().filter(|_| self.is_refused);
        refused.or_else(|| self.key.outdated_password(accounts))
    }
}

/// Backends of one account in a group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccountUse {
    /// Connections that its clients use.
    pub(crate) used: usize,
    /// All of them, dialling ones included.
    pub(crate) count: usize,
    /// True if it has some in use, or clients that wait.
    is_active: bool,
}

/// All pools of a group.
#[derive(Debug, Default)]
pub(crate) struct BackendPools {
    /// By index; pools are few and stay.
    pub pools: Vec<BackendPool>,
    /// Backends of all pools, dialling ones included; each has a slot of the budget.
    pub count: usize,
    /// True if some pool wants another connection of its account, or a place to run.
    pub(crate) wants_account: bool,
    /// Dials under way, of all pools.
    pub dialling: usize,
    /// A buffer for their order, reused.
    pub(crate) order: Vec<usize>,
    /// Backends of each account, as of the last [`BackendPools::count_accounts`].
    accounts: Vec<AccountUse>,
}

impl BackendPools {
    /// The index of a key, if there is such a key.
    pub(crate) fn find(&self, key: &PoolKey) -> Option<usize> {
        self.pools.iter().position(|pool| pool.key == *key)
    }

    /// True if a pool is on a server that is read, of several.
    pub(crate) fn is_reader(&self, pool: usize) -> bool {
        self.pools[pool].key.reader.is_some()
    }

    /// Gives pools of users of the settings the backend passwords that a reload has brought;
    /// returns those pools.
    pub(crate) fn follow_passwords(&mut self, old: &Settings, new: &Settings) -> Vec<usize> {
        // Users keep their indices.
        let users = old.users.iter().zip(&new.users);
        let changed: Vec<_> = users
            .filter(|(old, new)| {
                old.backend_user == new.backend_user && old.backend_password != new.backend_password
            })
            .collect();
        let mut followed = Vec::new();
        for (index, pool) in self.pools.iter_mut().enumerate() {
            let key = &mut pool.key;
            let of_key = changed.iter().find(|(old, _)| {
                key.account.is_none()
                    && key.user == old.backend_user
                    && key.credential == Credential::Password(old.backend_password.clone())
            });
            if let Some((_, new)) = of_key {
                key.credential = Credential::Password(new.backend_password.clone());
                followed.push(index);
            }
        }
        followed
    }

    /// Pools of backends that say a client's address.
    pub(crate) fn addresses(&self) -> usize {
        let reported = |pool: &&BackendPool| pool.key.client_address.is_some();
        self.pools.iter().filter(reported).count()
    }

    /// The index of a pool for a new key. A pool of an older version of the privileges, or of a
    /// client's address, that has neither clients (`is_used`) nor backends any more is used again,
    /// so there are never more pools than accounts, sets of capabilities and clients call for.
    pub(crate) fn add(&mut self, key: PoolKey, is_used: impl Fn(usize) -> bool) -> usize {
        let now = key.privileges;
        let passes = |key: &PoolKey| key.privileges != now || key.client_address.is_some();
        let left = self
            .pools
            .iter()
            .enumerate()
            .position(|(index, pool)| passes(&pool.key) && pool.count == 0 && !is_used(index));
        let same = (self.pools.iter()).find(|pool| pool.key.account() == key.account());
        let is_free = |number: &usize| self.pools.iter().all(|pool| pool.account != *number);
        let account = match same {
            Some(pool) => pool.account,
            None => (0..).find(is_free).unwrap_or_default(),
        };
        let pool = BackendPool::new(key, account);
        match left {
            Some(index) => {
                self.pools[index] = pool;
                // Its readers' pools served the clients of the key before.
                let homes = self.pools.iter_mut().map(|pool| &mut pool.home);
                homes.for_each(|home| *home = home.filter(|home| *home != index));
                index
            }
            None => {
                self.pools.push(pool);
                self.pools.len() - 1
            }
        }
    }

    /// The pool on this server for the clients of a pool on the writer; `None`: a new one is to be
    /// added, with this key.
    pub(crate) fn on_reader(&mut self, home: usize, reader: ServerId) -> Result<usize, PoolKey> {
        let is_its =
            |pool: &BackendPool| pool.home == Some(home) && pool.key.reader == Some(reader);
        self.pools.iter().position(is_its).ok_or_else(|| PoolKey {
            reader: Some(reader),
            ..self.pools[home].key.clone()
        })
    }

    /// Count of the clients of a pool, if its account is the server's.
    pub(crate) fn counted_in(&self, pool: usize) -> Option<Arc<Counted>> {
        self.pools.get(pool)?.key.account.clone()
    }

    /// True if a pool is of another version of the privileges than this, the one of now.
    pub(crate) fn is_outdated(&self, pool: usize, now: u32) -> bool {
        (self.pools.get(pool)).is_some_and(|pool| pool.key.privileges != now)
    }

    /// Counts the backends of each account, in one pass; returns how many accounts have backends in
    /// use or clients that wait.
    pub(crate) fn count_accounts(&mut self) -> usize {
        self.accounts.clear();
        for pool in &self.pools {
            if self.accounts.len() <= pool.account {
                (self.accounts).resize(pool.account + 1, AccountUse::default());
            }
            let account = &mut self.accounts[pool.account];
            let used = pool.count - pool.idle.len() - pool.dialling;
            account.used += used;
            account.count += pool.count;
            account.is_active |= used > 0 || pool.queues.len() > 0;
        }
        self.accounts.iter().filter(|one| one.is_active).count()
    }

    /// Backends of a pool's account, as of the last count.
    pub(crate) fn of_account(&self, pool: usize) -> AccountUse {
        let account = self.pools.get(pool).map(|pool| pool.account);
        let counted = account.and_then(|account| self.accounts.get(account));
        counted.copied().unwrap_or_default()
    }

    /// Backends that no client has.
    pub(crate) fn unused(&self) -> usize {
        let idle: usize = self.pools.iter().map(|pool| pool.idle.len()).sum();
        idle + self.dialling
    }

    /// Tells the other groups where this one does not have all of its reserve.
    pub(crate) fn note_unused(&self, budget: &Budget, group: usize) {
        let unused = self.unused();
        if unused < budget.reserved(group) {
            budget.note_idle(group, unused);
        }
    }

    /// True if this group may have another slot of the budget, as of what it uses at this moment.
    pub(crate) fn has_room(&self, budget: &Budget, group: usize) -> bool {
        budget.note_idle(group, self.unused());
        budget.has_room(group)
    }

    /// True if the next of them that becomes free is owed to another group than this.
    pub(crate) fn owes_next(&self, budget: &Budget, group: usize) -> bool {
        budget.owes_next(group, self.count, || self.unused())
    }

    /// The front of one queue of a pool, of the entries that stand.
    pub(crate) fn front_in(
        &mut self,
        pool: usize,
        queue: QueueName,
        stands: impl FnMut(&Waiting) -> bool,
    ) -> Option<Waiting> {
        self.pools[pool].queues.front(queue, stands)
    }

    /// Moment since which the oldest in any of these queues waits.
    pub(crate) fn oldest_wait(
        &mut self,
        queues: &[QueueName],
        stands: impl Fn(&Waiting) -> bool,
    ) -> Option<Time> {
        let pools = self.pools.iter_mut();
        let fronts = pools.flat_map(|pool| {
            let stands = &stands;
            (queues.iter()).filter_map(move |&queue| pool.queues.front(queue, stands))
        });
        fronts.map(|front| front.since).min()
    }

    /// Takes a client of a pool out of the first of these queues where one waits, if one does.
    pub(crate) fn take_waiting(
        &mut self,
        pool: usize,
        queues: &[QueueName],
        stands: impl Fn(&Waiting) -> bool,
    ) -> Option<ClientId> {
        queues.iter().find_map(|&queue| {
            let front = self.front_in(pool, queue, &stands)?;
            self.pools[pool].queues.pop(queue);
            Some(front.client)
        })
    }

    /// Counts a backend that begins to dial; its slots are taken.
    pub(crate) fn dial_begins(&mut self, pool: usize) {
        self.count += 1;
        self.dialling += 1;
        self.pools[pool].count += 1;
        self.pools[pool].dialling += 1;
    }

    /// Notes that a dial ended, one way or the other.
    pub(crate) fn dial_ends(&mut self, pool: usize) {
        self.dialling -= 1;
        self.pools[pool].dialling -= 1;
        self.pools[pool].slots.count(0, -1);
    }

    /// Counts a backend that has come from another process; its slot is taken.
    pub(crate) fn arrives(&mut self, pool: usize) {
        self.count += 1;
        self.pools[pool].count += 1;
        self.pools[pool].slots.count(1, 0);
    }

    /// Takes a backend off the books.
    pub(crate) fn leaves(&mut self, pool: usize, key: BackendId) {
        self.count -= 1;
        self.pools[pool].count -= 1;
        self.pools[pool].slots.count(-1, 0);
        self.pools[pool].idle.retain(|&idle| idle != key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::test_settings;

    fn key(capabilities: u32, user: &str, privileges: u32) -> PoolKey {
        PoolKey {
            client_address: None,
            capabilities,
            extended: 0,
            user: user.into(),
            credential: Credential::Password("x".into()),
            account: None,
            privileges,
            reader: None,
        }
    }

    #[test]
    fn a_key_is_an_account_capabilities_and_a_version_of_privileges() {
        let mut pools = BackendPools::default();
        let a = pools.add(key(0, "app", 0), |_| true);
        assert_eq!(pools.find(&key(0, "app", 0)), Some(a));
        for other in [key(2, "app", 0), key(0, "other", 0), key(0, "app", 1)] {
            assert_eq!(pools.find(&other), None);
        }
    }

    #[test]
    fn pools_of_one_account_are_counted_together_however_many_there_are() {
        let mut pools = BackendPools::default();
        for number in 0..300_u32 {
            let user = format!("u{}", number % 100);
            let index = pools.add(key(number / 100, &user, 0), |_| true);
            pools.dial_begins(index);
            pools.dial_ends(index);
        }
        assert_eq!((pools.count_accounts(), pools.accounts.len()), (100, 100));
        for index in 0..300 {
            let all = pools.of_account(index);
            assert_eq!((all.used, all.count), (3, 3));
        }
        // Of a pool that is used again the account's number is as well.
        let left = pools.add(key(0, "passes", 7), |_| true);
        assert_eq!(pools.pools[left].account, 100);
        pools.pools[left].key.privileges = 6;
        assert_eq!(pools.add(key(0, "comes", 7), |index| index != left), left);
        assert!(pools.pools[left].account <= 101);
    }

    #[test]
    fn clients_of_two_addresses_share_nothing_and_an_address_without_clients_goes() {
        let at = |last: u8| PoolKey {
            client_address: Some(IpAddr::from([192, 0, 2, last])),
            ..key(0, "app", 0)
        };
        let mut pools = BackendPools::default();
        let a = pools.add(at(1), |_| true);
        assert_eq!(pools.find(&at(1)), Some(a));
        assert_eq!(
            (pools.find(&at(2)), pools.find(&key(0, "app", 0))),
            (None, None)
        );
        let b = pools.add(at(2), |_| true);
        assert_ne!(a, b);
        pools.dial_begins(a);
        let c = pools.add(at(3), |_| false);
        assert_eq!(c, b, "it has neither clients nor backends");
        assert_eq!(pools.addresses(), 2);
    }

    #[test]
    fn what_nobody_uses_of_an_older_version_is_used_again() {
        let mut pools = BackendPools::default();
        let a = pools.add(key(0, "app", 0), |_| true);
        let b = pools.add(key(2, "app", 0), |_| false);
        assert_ne!(a, b, "of the same version");
        let c = pools.add(key(0, "app", 1), |_| true);
        assert!(c != a && c != b, "both have clients");
        pools.dial_begins(a);
        assert_eq!(pools.add(key(0, "app", 2), |index| index == c), b);
        pools.dial_ends(a);
        pools.leaves(a, BackendId::from_parts(1, 1));
        assert_eq!(pools.add(key(2, "app", 2), |index| index == c), a);
        assert_eq!(pools.pools.len(), 3);
    }

    #[test]
    fn a_pool_is_a_dead_end_once_it_is_refused_and_has_no_backend() {
        let accounts = Accounts::new(Vec::new());
        let mut pools = BackendPools::default();
        let a = pools.add(key(0, "app", 0), |_| true);
        let is_dead = |pools: &BackendPools| pools.pools[a].dead_end(&accounts).is_some();
        assert!(!is_dead(&pools));
        for (end, refused) in [(DialEnd::Answered, false), (DialEnd::Account, true)] {
            pools.pools[a].dial_failed(Time(0), "refused".into(), end);
            assert_eq!(is_dead(&pools), refused, "{end:?}");
        }
        pools.dial_begins(a);
        assert!(!is_dead(&pools), "it has a backend");
        pools.dial_ends(a);
        pools.leaves(a, BackendId::from_parts(1, 1));
        assert!(is_dead(&pools));
        pools.pools[a].dial_succeeded(Time(0));
        assert!(!is_dead(&pools));
    }

    #[test]
    fn pools_follow_the_password_of_their_account_and_no_other() {
        let settings = |password: &str| {
            let mut settings = test_settings("");
            let other = settings.users[0].clone();
            settings.users.push(other);
            settings.users[0].backend_user = "app".into();
            settings.users[0].backend_password = password.into();
            settings.users[1].backend_user = "other".into();
            settings.users[1].backend_password = "x".into();
            settings
        };
        let mut pools = BackendPools::default();
        let followed = pools.add(key(0, "app", 0), |_| true);
        let again = pools.add(key(2, "app", 0), |_| true);
        pools.add(key(0, "other", 0), |_| true);
        let of_server = PoolKey {
            account: Some(Arc::default()),
            ..key(0, "app", 0)
        };
        pools.add(of_server, |_| true);
        let elsewhere = PoolKey {
            credential: Credential::Password("z".into()),
            ..key(0, "app", 0)
        };
        pools.add(elsewhere, |_| true);
        assert_eq!(
            pools.follow_passwords(&settings("x"), &settings("y")),
            [followed, again]
        );
        let now = |pool: &BackendPool| pool.key.credential.clone();
        let credentials: Vec<_> = pools.pools.iter().map(now).collect();
        let of = |text: &str| Credential::Password(text.into());
        assert_eq!(credentials, [of("y"), of("y"), of("x"), of("x"), of("z")]);
        // Another account is not this one under another password.
        let mut renamed = settings("w");
        renamed.users[0].backend_user = "new".into();
        assert!(pools.follow_passwords(&settings("y"), &renamed).is_empty());
    }

    #[test]
    fn dials_back_off_and_recover() {
        let mut pools = BackendPools::default();
        let a = pools.add(key(0, "app", 0), |_| true);
        let pool = &mut pools.pools[a];
        let mut waits = Vec::new();
        for _ in 0..8 {
            pool.dial_failed(Time(0), "refused".into(), DialEnd::Answered);
            waits.push(pool.dial_at.since(Time(0)).as_millis());
        }
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        pool.dial_succeeded(Time(0));
        pool.has.note_gtid(b"0-1-7");
        pool.dial_failed(Time(0), "refused".into(), DialEnd::Answered);
        assert_eq!(pool.dial_at.since(Time(0)), BACK_OFF_MIN);
        assert!(pool.has.is_empty(), "it may have started again");
        pool.has.note_gtid(b"0-1-7");
        pool.dial_succeeded(Time(0));
        assert!(pool.has.is_empty());
    }
}
