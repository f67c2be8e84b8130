//! The accounts of the server, as a value: who may log in where `auth = "server"`.
//!
//! The problem: a second list of users, with passwords, is work and a risk, and wrong as soon as
//! somebody changes an account on the server. The mechanism: the watch reads the server's accounts
//! (`server/watched/accounts.rs`) into a [`ServerAccounts`], which replaces the one before as a
//! whole. A login finds its account in it as the server would: by name and host, the most specific
//! host first, and the first that fits decides ([`ServerAccounts::or_anonymous`]).
//!
//! What logins have taught of a password is kept for as long as the account's plugin and stored
//! hash are the same, so a password that is changed on the server ends the old one at the next
//! login.
//!
//! Invariants: an anonymous account lets nobody in, but it decides where it comes first, as on the
//! server; an account that cannot be logged in to through the pool says why, and is never taken for
//! another one.

use crate::auth::account::{Account, ClientsMax, Counted, Learnt, Method, ServerAccount, Unusable};
use crate::auth::host_pattern::{ClientHost, HostPattern, HostRules, Rank};
use crate::auth::requirement::Requirement;
use crate::auth::stand_ins::StandIns;
use crate::auth::verifier::Verifier;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use wire::auth::Plugin;

/// Accounts that are read; more are an error of the reading.
pub(crate) const ACCOUNTS_MAX: usize = 100_000;

/// An account as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) user: String,
    pub(crate) host: String,
    pub(crate) plugin: String,
    /// Stored form of the password at the server.
    pub(crate) stored: Vec<u8>,
    pub(crate) is_locked: bool,
    pub(crate) is_expired: bool,
    pub(crate) require: Requirement,
    pub(crate) clients_max: Option<ClientsMax>,
}

/// An account with what it is found by.
#[derive(Debug)]
pub(crate) struct Entry {
    pattern: HostPattern,
    rank: Rank,
    /// Plugin with the stored form of the password: where both are equal, so is the password.
    plugin: String,
    stored: Vec<u8>,
    account: Arc<Account>,
}

impl Entry {
    /// The host as the server has it.
    fn host(&self) -> Option<&str> {
        let of_server = self.account.of_server.as_ref();
        of_server.map(|of_server| &*of_server.counted.host)
    }
}

/// All accounts.
#[derive(Debug, Default)]
pub(crate) struct ServerAccounts {
    /// By name, the most specific host first.
    by_name: HashMap<Box<[u8]>, Vec<Entry>>,
    /// Those that stand in for unknown names.
    pub(crate) stand_ins: StandIns,
}

impl ServerAccounts {
    /// The accounts that were read. `before` are those of the reading before; `user` tells by a
    /// name which user has the account's limits.
    pub(crate) fn new(
        read: Vec<Read>,
        before: &ServerAccounts,
        user: impl Fn(&str) -> usize,
        rules: HostRules,
    ) -> ServerAccounts {
        let mut accounts = ServerAccounts::default();
        for one in read {
            let user = user(&one.user);
            let entry = entry_of(one, before, user, rules);
            let account = &entry.account;
            let of_server = account.of_server.as_ref();
            let is_usable = of_server.is_some_and(|account| account.unusable.is_none());
            if is_usable && !account.verifier.empty {
                accounts.stand_ins.push(account.clone());
            }
            let name: Box<[u8]> = account.name.as_bytes().into();
            accounts.by_name.entry(name).or_default().push(entry);
        }
        for entries in accounts.by_name.values_mut() {
            match rules {
                HostRules::MariaDb => entries
                    .sort_by(|a, b| b.rank.cmp(&a.rank).then_with(|| b.host().cmp(&a.host()))),
                HostRules::MySql => entries.sort_by_key(|entry| Reverse(entry.rank)),
            }
        }
        accounts
    }

    /// Number of accounts.
    pub(crate) fn len(&self) -> usize {
        self.by_name.values().map(Vec::len).sum()
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.by_name.values().flatten().map(|entry| &entry.account)
    }

    /// True if there is an account of this name, on whatever host.
    pub(crate) fn has_name(&self, name: &[u8]) -> bool {
        self.by_name.contains_key(name)
    }

    /// The account of this name with the most specific host that fits a client there.
    pub(crate) fn named(&self, name: &[u8], host: &ClientHost) -> Option<&Entry> {
        let entries = self.by_name.get(name)?;
        entries.iter().find(|entry| entry.pattern.matches(host))
    }

    /// The account that a name means for a client there: of its own (`named`) and the anonymous
    /// ones the one with the most specific host that fits.
    pub(crate) fn or_anonymous<'a>(
        &'a self,
        named: Option<&'a Entry>,
        host: &ClientHost,
    ) -> Option<&'a Arc<Account>> {
        let found = match (named, self.named(b"", host)) {
            (Some(named), Some(anonymous)) if anonymous.rank > named.rank => anonymous,
            (named, anonymous) => named.or(anonymous)?,
        };
        Some(&found.account)
    }

    /// Clients of the accounts of this name.
    pub(crate) fn clients_of(&self, name: &str) -> usize {
        let entries = self.by_name.get(name.as_bytes()).into_iter().flatten();
        let of_server = entries.filter_map(|entry| entry.account.of_server.as_ref());
        of_server.map(|one| one.counted.clients.load(Relaxed)).sum()
    }

    /// The account of this name and host.
    pub(crate) fn of(&self, counted: &Counted) -> Option<&Arc<Account>> {
        let entries = self.by_name.get(counted.user.as_bytes())?;
        let same = |entry: &&Entry| {
            (entry.account.of_server.as_ref())
                .is_some_and(|of_server| of_server.counted.host == counted.host)
        };
        entries.iter().find(same).map(|entry| &entry.account)
    }

    fn entry(&self, user: &str, host: &str) -> Option<&Entry> {
        let entries = self.by_name.get(user.as_bytes())?;
        let same = |entry: &&Entry| {
            (entry.account.of_server.as_ref())
                .is_some_and(|of_server| of_server.counted.host == host)
        };
        entries.iter().find(same)
    }
}

fn entry_of(read: Read, before: &ServerAccounts, user: usize, rules: HostRules) -> Entry {
    let old = before.entry(&read.user, &read.host);
    let same = old.filter(|old| old.plugin == read.plugin && old.stored == read.stored);
    let learnt = same.map_or_else(Arc::<Learnt>::default, |old| old.account.learnt.clone());
    let counted = old.and_then(|old| Some(old.account.of_server.as_ref()?.counted.clone()));
    let counted = counted.unwrap_or_else(|| {
        Arc::new(Counted {
            user: read.user.clone(),
            host: read.host.clone(),
            clients: AtomicUsize::new(0),
        })
    });
    let plugin = Plugin::from_name(read.plugin.as_bytes());
    let verifier = plugin.map(|plugin| Verifier::from_stored(plugin, &read.stored));
    let unusable = match (&verifier, read.user.is_empty()) {
        (_, true) => Some(Unusable::Anonymous),
        (None, false) => Some(Unusable::Plugin(read.plugin.clone())),
        (Some(_), false) => None,
    };
    let account = Account {
        user,
        name: read.user,
        verifier: verifier.unwrap_or_else(Verifier::of_nobody),
        method: Some(Method::Plugin(plugin.unwrap_or(Plugin::Native))),
        learnt,
        of_server: Some(ServerAccount {
            counted,
            unusable,
            is_locked: read.is_locked,
            is_expired: read.is_expired,
            require: read.require,
            clients_max: read.clients_max,
        }),
        second: None,
    };
    let pattern = HostPattern::parse(&read.host, rules);
    Entry {
        rank: pattern.rank(rules),
        pattern,
        plugin: read.plugin,
        stored: read.stored,
        account: Arc::new(account),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWORD: &[u8] = b"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19";
    const OTHER: &[u8] = b"*14E65567ABDB5135D0CFD9A70B3032C179A49EE7";

    fn read(user: &str, host: &str, plugin: &str, stored: &[u8]) -> Read {
        Read {
            user: user.into(),
            host: host.into(),
            plugin: plugin.into(),
            stored: stored.into(),
            is_locked: false,
            is_expired: false,
            require: Requirement::default(),
            clients_max: None,
        }
    }

    fn native(user: &str, host: &str) -> Read {
        read(user, host, "mysql_native_password", PASSWORD)
    }

    fn find(accounts: &ServerAccounts, name: &[u8], host: &ClientHost) -> Option<Arc<Account>> {
        let named = accounts.named(name, host);
        accounts.or_anonymous(named, host).cloned()
    }

    fn found(accounts: &ServerAccounts, name: &str, from: &str) -> Option<String> {
        let host = ClientHost::of(from.parse().ok(), true);
        let account = find(accounts, name.as_bytes(), &host)?;
        let counted = &account.of_server.as_ref()?.counted;
        Some(format!("{}@{}", counted.user, counted.host))
    }

    #[test]
    fn the_first_that_fits_decides_be_it_the_anonymous_one() {
        let all = vec![
            native("app", "%"),
            native("app", "10.1.%"),
            native("app", "10.1.2.3"),
            native("", "10.9.%"),
            native("", "%"),
            native("only", "10.%"),
        ];
        let accounts =
            ServerAccounts::new(all, &ServerAccounts::default(), |_| 0, HostRules::MariaDb);
        assert_eq!(accounts.len(), 6);
        let cases = [
            ("app", "10.1.2.3", Some("app@10.1.2.3")),
            ("app", "10.1.2.4", Some("app@10.1.%")),
            ("app", "10.2.2.4", Some("app@%")),
            ("app", "10.9.2.4", Some("@10.9.%")),
            ("only", "10.8.2.4", Some("only@10.%")),
            ("only", "11.8.2.4", Some("@%")),
            ("nobody", "11.8.2.4", Some("@%")),
        ];
        for (name, from, expected) in cases {
            let expected = expected.map(str::to_owned);
            assert_eq!(found(&accounts, name, from), expected, "{name} {from}");
        }
    }

    #[test]
    fn localhost_comes_before_its_address_on_mariadb_and_behind_it_on_mysql() {
        for (rules, expected) in [
            (HostRules::MariaDb, "app@localhost"),
            (HostRules::MySql, "app@127.0.0.1"),
        ] {
            let all = vec![
                native("app", "127.0.0.0/255.255.255.0"),
                native("app", "127.0.0.1"),
                native("app", "localhost"),
            ];
            let accounts = ServerAccounts::new(all, &ServerAccounts::default(), |_| 0, rules);
            assert_eq!(found(&accounts, "app", "127.0.0.1"), Some(expected.into()));
        }
    }

    #[test]
    fn what_was_learnt_ends_with_the_password_and_the_clients_are_counted_on() {
        let first = vec![native("app", "%"), native("other", "%")];
        let first =
            ServerAccounts::new(first, &ServerAccounts::default(), |_| 0, HostRules::MariaDb);
        let host = ClientHost::of(None, true);
        let app = find(&first, b"app", &host).unwrap();
        let _ = app.learnt.native.set([1; 20]);
        assert_eq!(
            app.credential(),
            Some(crate::auth::credential::Credential::Native([1; 20]))
        );
        let mut locked = native("app", "%");
        locked.is_locked = true;
        let second = ServerAccounts::new(vec![locked], &first, |_| 0, HostRules::MariaDb);
        let now = find(&second, b"app", &host).unwrap();
        assert_eq!(now.learnt.native.get(), Some(&[1; 20]));
        assert!(find(&second, b"other", &host).is_none());
        let changed = read("app", "%", "mysql_native_password", OTHER);
        let third = ServerAccounts::new(vec![changed], &second, |_| 0, HostRules::MariaDb);
        let now = find(&third, b"app", &host).unwrap();
        assert_eq!(now.learnt.native.get(), None);
        let counted = |account: &Account| account.of_server.as_ref().unwrap().counted.clone();
        assert!(Arc::ptr_eq(&counted(&now), &counted(&app)));
    }

    #[test]
    fn who_cannot_be_logged_in_is_known_and_stands_in_for_nobody() {
        let all = vec![
            read("key", "%", "ed25519", b"x"),
            read("never", "%", "mysql_native_password", b"invalid"),
            read("open", "%", "mysql_native_password", b""),
            native("app", "%"),
        ];
        let accounts =
            ServerAccounts::new(all, &ServerAccounts::default(), |_| 0, HostRules::MariaDb);
        let host = ClientHost::of(None, true);
        let of = |name: &str| find(&accounts, name.as_bytes(), &host).unwrap();
        let unusable = |name: &str| of(name).of_server.clone().unwrap().unusable;
        assert_eq!(unusable("key"), Some(Unusable::Plugin("ed25519".into())));
        assert_eq!(unusable("never"), None);
        assert!(of("open").verifier.empty && !of("never").verifier.empty);
        assert!(!of("never").verifier.is_password(b"invalid"));
        let stand_ins = accounts.stand_ins.all();
        let names: Vec<&str> = stand_ins.map(|account| &*account.name).collect();
        assert_eq!(names, ["never", "app"]);
    }

    /// MySQL makes three accounts for itself, with hashes that no password has and of fewer rounds
    /// than those of its users: a name that took as long as they do would be known as nobody's.
    #[test]
    fn the_servers_own_accounts_stand_in_for_nobody() {
        let own = b"$A$005$THISISACOMBINATIONOFINVALIDSALTANDPASSWORDTHATMUSTNEVERBRBEUSED";
        let user = b"$A$00A$01234567890123456789./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcde";
        let sha2 = |user: &str, stored: &[u8]| read(user, "%", "caching_sha2_password", stored);
        let all = vec![
            sha2("mysql.infoschema", own),
            sha2("mysql.session", own),
            sha2("mysql.sys", own),
            sha2("mysqlapp", user),
            native("mariadb.sys", "localhost"),
        ];
        let accounts =
            ServerAccounts::new(all, &ServerAccounts::default(), |_| 0, HostRules::MySql);
        let work = |account: &Account| account.verifier.work().unwrap();
        let host = ClientHost::of(None, true);
        let of = |name: &[u8]| work(&find(&accounts, name, &host).unwrap());
        assert_ne!(of(b"mysql.sys"), of(b"mysqlapp"));
        let stand_ins = accounts.stand_ins.all();
        let names: Vec<&str> = stand_ins.map(|account| &*account.name).collect();
        assert_eq!(names, ["mysqlapp"]);
    }
}
