//! One account: what its clients must prove, what logins have taught of its password, and what the
//! server says of it.
//!
//! It stands in the settings, or on the server ([`ServerAccount`]). Invariant: what was learnt
//! belongs to one password; another password is another [`Learnt`].

use crate::auth::credential::Credential;
use crate::auth::requirement::Requirement;
use crate::auth::secret::Secret;
use crate::auth::verifier::Verifier;
use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use wire::auth::caching_sha2::{self, Cached};
use wire::auth::{Plugin, native};
use wire::wiped::wipe;

/// Authentication methods that clients are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// An answer to a nonce, which does not tell the password.
    Plugin(Plugin),
    /// The password itself (`mysql_clear_password`), under TLS alone: for programs whose own
    /// directory or token service keeps no hash that an answer could be made from.
    ClearPassword,
}

/// `mysql_clear_password` on the wire.
pub(crate) const CLEAR_PASSWORD: &str = "mysql_clear_password";

impl Method {
    /// The method of a name, in the settings.
    pub(crate) fn from_name(name: &str) -> Option<Method> {
        match name {
            CLEAR_PASSWORD => Some(Method::ClearPassword),
            name => Plugin::from_name(name.as_bytes()).map(Method::Plugin),
        }
    }
}

/// Proof that a user has to give.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// The user whose limits hold, an index into the settings.
    pub(crate) user: usize,
    pub(crate) name: String,
    /// Verifier of the password.
    pub(crate) verifier: Verifier,
    /// Method that clients are asked for; `None`: the answer of either plugin.
    pub(crate) method: Option<Method>,
    /// Knowledge of its password from logins.
    pub(crate) learnt: Arc<Learnt>,
    /// The server's facts of it; `None`: it stands in the settings.
    pub(crate) of_server: Option<ServerAccount>,
    /// The account under its second password, during a rotation. That one has none.
    pub(crate) second: Option<Arc<Account>>,
}

impl Account {
    /// True if whoever has proven to be the one has proven to be the other.
    pub(crate) fn proves_like(&self, other: &Account) -> bool {
        let of = |account: &Account| (account.user, account.method);
        of(self) == of(other) && self.verifier.is_like(&other.verifier)
    }

    /// The account under each of its passwords.
    pub(crate) fn passwords(self: &Arc<Account>) -> impl Iterator<Item = &Arc<Account>> {
        std::iter::once(self).chain(&self.second)
    }

    /// Hash that a short answer of `caching_sha2_password` is checked with, if it is known.
    pub(crate) fn sha2(&self) -> Option<Cached> {
        let learnt = self.learnt.sha2().map(|learnt| learnt.cached);
        self.verifier.sha2.or(learnt)
    }

    /// Credential of the backends of an account of the server; `None`: no login has told.
    pub(crate) fn credential(&self) -> Option<Credential> {
        if self.verifier.empty {
            return Some(Credential::Password(Secret::default()));
        }
        let native = || self.learnt.native.get().copied().map(Credential::Native);
        let sha2 = || Some(Credential::CachingSha2(self.learnt.sha2()?.once?));
        match self.method {
            Some(Method::Plugin(Plugin::CachingSha2)) => sha2(),
            _ => native(),
        }
    }
}

/// Knowledge of one password from logins. Another password is another value.
#[derive(Default)]
pub(crate) struct Learnt {
    /// Password learnt for `caching_sha2_password`.
    sha2: Mutex<Option<LearntSha2>>,
    /// SHA1(password).
    pub(crate) native: OnceLock<native::Once>,
}

/// Knowledge from a full authentication.
#[derive(Clone, Copy)]
pub(crate) struct LearntSha2 {
    /// SHA256(SHA256(password)): what quick answers are checked with.
    pub(crate) cached: Cached,
    /// SHA256(password), of accounts of the server.
    pub(crate) once: Option<caching_sha2::Once>,
}

impl Learnt {
    fn lock(&self) -> MutexGuard<'_, Option<LearntSha2>> {
        self.sha2.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts this in the place of what there is, of which nothing is left.
    fn put(&self, learnt: Option<LearntSha2>) {
        let mut place = self.lock();
        if let Some(old) = &mut *place {
            wipe(&mut old.cached);
            old.once.iter_mut().for_each(|once| wipe(once));
        }
        *place = learnt;
    }

    /// Knowledge from a full authentication; `None`: the next one has to be full.
    pub(crate) fn sha2(&self) -> Option<LearntSha2> {
        *self.lock()
    }

    /// Notes what this password teaches. `is_onward`: the pool logs in on the server with it.
    pub(crate) fn learn(&self, password: &[u8], is_onward: bool) {
        self.put(Some(LearntSha2 {
            cached: caching_sha2::cached(password),
            once: is_onward.then(|| caching_sha2::once(password)),
        }));
    }

    /// Removes the cached password: the next login here has to bring it again.
    pub(crate) fn forget(&self) {
        self.put(None);
    }
}

impl Drop for Learnt {
    fn drop(&mut self) {
        self.put(None);
        if let Some(once) = self.native.get_mut() {
            wipe(once);
        }
    }
}

impl fmt::Debug for Learnt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The name of an account of the server, and how many clients it has.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) user: String,
    /// The host as the server has it.
    pub(crate) host: String,
    /// Clients of all groups.
    pub(crate) clients: AtomicUsize,
}

impl PartialEq for Counted {
    fn eq(&self, other: &Counted) -> bool {
        (&self.user, &self.host) == (&other.user, &other.host)
    }
}

impl Eq for Counted {}

/// Reason why an account lets nobody in, whatever the password is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// The anonymous user.
    Anonymous,
    /// Plugin of which a proxy cannot make a login onward.
    Plugin(String),
}

/// The server's facts of an account besides its password.
#[derive(Clone, Debug)]
pub(crate) struct ServerAccount {
    /// Its name, and its clients.
    pub(crate) counted: Arc<Counted>,
    pub(crate) unusable: Option<Unusable>,
    pub(crate) is_locked: bool,
    pub(crate) is_expired: bool,
    /// Further proof that its clients have to give.
    pub(crate) require: Requirement,
    /// Clients that it may have at once.
    pub(crate) clients_max: Option<ClientsMax>,
}

/// Limit of clients of an account, with its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientsMax {
    /// `MAX_USER_CONNECTIONS` of the account.
    OfAccount(usize),
    /// The server's `max_user_connections`.
    OfServer(usize),
}
