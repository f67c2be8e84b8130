//! The users by name, and what logins go by to tell whether a password is theirs.
//!
//! Users stand in the settings. With `auth = "server"` the server's accounts are users too, as far
//! as no user of the settings has their name ([`crate::auth::server_accounts`]).
//!
//! The problem: whoever logs in with a name that is not listed must not find that out, by the
//! packets or by their time. The mechanism: a listed user stands in for it ([`Accounts::find`]),
//! all steps are taken with that one's plugin and verifier, and the verdict is no.
//!
//! A user whose password is known only as a hash needs one full authentication with
//! `caching_sha2_password`; what logins teach is kept with the account, for all
//! groups ([`crate::auth::account::Learnt`]).

use crate::auth::account::{Account, Method};
use crate::auth::host_pattern::ClientHost;
use crate::auth::server_accounts::ServerAccounts;
use crate::auth::stand_ins::StandIns;
use crate::auth::verifier::Verifier;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use wire::auth::caching_sha2::{self, Cached, KeyPair};
use wire::auth::{Nonce, Plugin};

/// Names and passwords of users, shared by all groups.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// The users of the settings, as these were read last.
    listed: Mutex<Arc<Listed>>,
    /// Secret by which a user is chosen to stand in for an unknown name.
    secret: Cached,
    /// The server's accounts, as they were read last.
    of_server: Mutex<Arc<ServerAccounts>>,
    /// Account that stands in where no user is listed.
    nobody: Arc<Account>,
}

/// The users of the settings.
#[derive(Debug)]
struct Listed {
    by_name: HashMap<Box<[u8]>, Arc<Account>>,
    /// Those that stand in for unknown ones.
    stand_ins: StandIns,
}

impl Listed {
    fn new(users: Vec<Account>) -> Listed {
        let users: Vec<Arc<Account>> = users.into_iter().map(Arc::new).collect();
        let name = |user: &Arc<Account>| (user.name.as_bytes().into(), user.clone());
        let mut stand_ins = StandIns::default();
        let no_passwords = users.iter().all(|user| user.verifier.empty);
        for user in &users {
            if no_passwords || !user.verifier.empty {
                stand_ins.push(user.clone());
            }
        }
        Listed {
            by_name: users.iter().map(name).collect(),
            stand_ins,
        }
    }
}

/// Account that a name means.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The user; `None`: there is none of that name.
    pub(crate) user: Option<usize>,
    /// The account whose plugin and verifier are used: its own, or one that stands in for it.
    pub(crate) like: Arc<Account>,
}

impl Accounts {
    pub(crate) fn new(users: Vec<Account>) -> Accounts {
        // The same at each start, as the answers about a user that exists are.
        let mut secret = Vec::new();
        for user in &users {
            secret.extend_from_slice(&user.verifier.native);
        }
        let nobody = Account {
            user: 0,
            name: String::new(),
            verifier: Verifier::of_nobody(),
            method: Some(Method::Plugin(Plugin::Native)),
            learnt: Arc::default(),
            of_server: None,
            second: None,
        };
        Accounts {
            listed: Mutex::new(Arc::new(Listed::new(users))),
            secret: caching_sha2::cached(&secret),
            of_server: Mutex::default(),
            nobody: Arc::new(nobody),
        }
    }

    fn listed(&self) -> Arc<Listed> {
        let listed = self.listed.lock();
        listed.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the users by those of a reload; a user that may log in as before keeps its learnt
    /// passwords.
    pub(crate) fn set_listed(&self, mut users: Vec<Account>) {
        let before = self.listed();
        for user in &mut users {
            let Some(same) = before.by_name.get(user.name.as_bytes()) else {
                continue;
            };
            let learn = |user: &mut Account| {
                if let Some(same) = same.passwords().find(|same| same.proves_like(user)) {
                    user.learnt = same.learnt.clone();
                }
            };
            learn(user);
            if let Some(second) = &mut user.second {
                learn(Arc::make_mut(second));
            }
        }
        let listed = Arc::new(Listed::new(users));
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = listed;
    }

    /// The server's accounts, as they were read last.
    pub(crate) fn of_server(&self) -> Arc<ServerAccounts> {
        let of_server = self.of_server.lock();
        of_server.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the accounts read from the server.
    pub(crate) fn set_of_server(&self, accounts: ServerAccounts) {
        let mut of_server = (self.of_server.lock()).unwrap_or_else(PoisonError::into_inner);
        *of_server = Arc::new(accounts);
    }

    /// Account that a name means, for a client there. For an unknown one a user stands in, the same
    /// each time, so that it is asked for a plugin that some user has. Takes the same steps for
    /// both: the hosts of an account are looked through for an unknown name too, those of its
    /// stand-in.
    pub(crate) fn find(&self, name: &[u8], host: &ClientHost) -> Identity {
        let hash = caching_sha2::cached(&[&self.secret, name].concat());
        let number = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
        let of_server = self.of_server();
        let listed = self.listed();
        let stand_in = listed.stand_ins.choose(&of_server.stand_ins, number);
        let stand_in = stand_in.unwrap_or(&self.nobody);
        let listed = listed.by_name.get(name);
        let is_known = listed.is_some() || of_server.has_name(name);
        let sought = match is_known {
            true => name,
            false => stand_in.name.as_bytes(),
        };
        let named = of_server.named(sought, host).filter(|_| is_known);
        let of_server = of_server.or_anonymous(named, host);
        let found = listed.or(of_server);
        Identity {
            user: found.map(|account| account.user),
            like: found.unwrap_or(stand_in).clone(),
        }
    }

    /// Removes the cached passwords of all the server's accounts, which the server may have
    /// forgotten: the next logins have to send them.
    pub(crate) fn forget_caches(&self) {
        (self.of_server().all()).for_each(|account| account.learnt.forget());
    }

    /// The account as it is now, if its password is still the one that was proven.
    pub(crate) fn is_current(&self, account: &Account) -> bool {
        let Some(of_server) = &account.of_server else {
            let listed = self.listed();
            let now = listed.by_name.get(account.name.as_bytes());
            let is_it = |now: &Arc<Account>| Arc::ptr_eq(&now.learnt, &account.learnt);
            return now.is_some_and(|now| now.passwords().any(is_it));
        };
        let all = self.of_server();
        let now = all.of(&of_server.counted);
        now.is_some_and(|now| Arc::ptr_eq(&now.learnt, &account.learnt))
    }
}

/// State that all logins share.
pub(crate) struct LoginContext<'a> {
    /// Accounts that may log in.
    pub accounts: &'a Accounts,
    /// Keys for full authentication.
    pub keys: &'a KeyPair,
}

/// Proof of its name that a login has given.
#[derive(Clone, Debug)]
pub(crate) struct Proof {
    /// Account that the name means.
    pub(crate) identity: Identity,
    /// The nonce of this login.
    pub(crate) nonce: Nonce,
    /// The quick answer in front of the full authentication.
    pub(crate) quick: Vec<u8>,
    /// Form in which the password came.
    pub(crate) sent: Sent,
}

/// Form in which a password comes in full authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Encrypted with the pool's key.
    Encrypted,
    /// Password in clear, with a NUL behind it, or encrypted: nobody can listen in.
    PerhapsClear,
}

impl Proof {
    /// True if the quick answer proves the user, by what has been learnt since it was sent. Takes
    /// the same steps for a name that is not listed.
    pub(crate) fn is_proven_quickly(&self) -> bool {
        let proves = |account: &Arc<Account>| {
            let learnt = account.learnt.sha2();
            let cached = learnt.map(|learnt| learnt.cached);
            cached.is_some_and(|cached| caching_sha2::verify(&self.quick, &self.nonce, &cached))
        };
        self.identity.like.passwords().any(proves) && self.identity.user.is_some()
    }

    /// True if this is the user's password. What is learnt from it is kept, but of an account of
    /// the server: that is kept when the server has the password cached too.
    pub(crate) fn is_proven_by(&self, password: &[u8]) -> bool {
        (self.identity.like.passwords()).any(|account| {
            let fits = account.verifier.is_password(password);
            self.identity
                .accepts(account, (password, fits), &mut |_, _| ())
        })
    }
}

/// Receiver of the right password of an account of the server, before anybody is let in by it.
pub(crate) type Learn<'l> = &'l mut dyn FnMut(&Account, &[u8]);

impl Identity {
    /// True if a password that fits the account is that of the user: it may be another's, who
    /// stands in for a name that nobody has. What is learnt from it is kept.
    pub(crate) fn accepts(
        &self,
        account: &Account,
        (password, fits): (&[u8], bool),
        learn: Learn<'_>,
    ) -> bool {
        let right = fits && self.user.is_some();
        match (right, &account.of_server) {
            (false, _) => {}
            (true, Some(_)) => learn(account, password),
            (true, None) => account.learnt.learn(password, false),
        }
        right
    }
}
