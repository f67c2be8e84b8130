//! The users by name, and what logins go by to tell whether a password is theirs.
//!
//! The problem: whoever logs in with a name that is not listed must not find that out, by the
//! packets or by their time. The mechanism: a listed user stands in for it ([`Accounts::find`]),
//! all steps are taken with that one's plugin and verifier, and the verdict is no.
//!
//! A user whose password is known only as a `mysql_native_password` hash needs one full
//! authentication; what that teaches is kept here, for all groups.

use crate::auth::verifier::Verifier;
use std::collections::HashMap;
use std::sync::OnceLock;
use wire::auth::caching_sha2::{self, Cached, KeyPair};
use wire::auth::{Nonce, Plugin};

/// What a user must prove, and how.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) name: String,
    /// What proves the password.
    pub(crate) verifier: Verifier,
    /// The plugin that clients must use; `None`: either.
    pub(crate) plugin: Option<Plugin>,
}

/// What all groups share of the users' names and passwords.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// In the order of the settings.
    accounts: Box<[Account]>,
    by_name: HashMap<Box<[u8]>, usize>,
    /// Hashes learnt in full authentications, by user.
    learnt: Box<[OnceLock<Cached>]>,
    /// Users that stand in for unknown ones.
    stand_ins: Box<[usize]>,
    /// Decides who stands in for whom, and is known to nobody.
    secret: Cached,
}

/// Whom a name means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The user; `None`: there is none of that name.
    pub(crate) user: Option<usize>,
    /// The user whose plugin and verifier are used: the same, or one that stands in for it.
    pub(crate) like: usize,
}

impl Accounts {
    pub(crate) fn new(users: Vec<Account>) -> Accounts {
        let name = |(index, user): (usize, &Account)| (user.name.as_bytes().into(), index);
        let has_password = |index: &usize| !users[*index].verifier.empty;
        let mut stand_ins: Vec<usize> = (0..users.len()).filter(has_password).collect();
        if stand_ins.is_empty() {
            stand_ins = (0..users.len()).collect();
        }
        // The same at each start, as the answers about a user that exists are.
        let mut secret = Vec::new();
        for user in &users {
            secret.extend_from_slice(&user.verifier.native);
        }
        Accounts {
            by_name: users.iter().enumerate().map(name).collect(),
            learnt: users.iter().map(|_| OnceLock::new()).collect(),
            stand_ins: stand_ins.into(),
            secret: caching_sha2::cached(&secret),
            accounts: users.into(),
        }
    }

    /// Whom a name means. For an unknown one a user stands in, the same each time, so that it is
    /// asked for a plugin that some user has. Takes the same steps for both.
    pub(crate) fn find(&self, name: &[u8]) -> Identity {
        let hash = caching_sha2::cached(&[&self.secret, name].concat());
        let number = hash[..4]
            .iter()
            .fold(0, |number, byte| number << 8 | usize::from(*byte));
        let stand_in = self.stand_ins.get(number % self.stand_ins.len().max(1));
        let user = self.by_name.get(name).copied();
        Identity {
            user,
            like: user.or(stand_in.copied()).unwrap_or_default(),
        }
    }

    /// What the user with this number must prove.
    pub(crate) fn of(&self, user: usize) -> &Account {
        &self.accounts[user]
    }

    /// What a full authentication has taught of this user.
    pub(crate) fn learnt(&self, user: usize) -> Option<&Cached> {
        self.learnt.get(user)?.get()
    }

    /// Notes the hash of this user's password.
    pub(crate) fn learn(&self, user: usize, hash: Cached) {
        if let Some(learnt) = self.learnt.get(user) {
            // Another group may have learnt the same at the same moment.
            let _ = learnt.set(hash);
        }
    }
}

/// What all logins share.
pub(crate) struct LoginContext<'a> {
    /// Who may log in.
    pub accounts: &'a Accounts,
    /// For full authentication.
    pub keys: &'a KeyPair,
}

/// What a login has given to prove its name.
#[derive(Clone, Debug)]
pub(crate) struct Proof {
    /// The user, an index into the settings; `None`: there is none of that name.
    pub(crate) user: Option<usize>,
    /// The user whose verifier is used, the same one where there is such a user.
    pub(crate) like: usize,
    /// The nonce of this login.
    pub(crate) nonce: Nonce,
    /// The quick answer in front of the full authentication.
    pub(crate) quick: Vec<u8>,
}

impl Proof {
    /// Whether the quick answer proves the user, by what has been learnt since it was sent. Takes
    /// the same steps for a name that is not listed.
    pub(crate) fn is_proven_quickly(&self, accounts: &Accounts) -> bool {
        let learnt = accounts.learnt(self.like);
        let proven =
            learnt.is_some_and(|learnt| caching_sha2::verify(&self.quick, &self.nonce, learnt));
        proven && self.user.is_some()
    }

    /// Whether this is the user's password; what is learnt from it is kept.
    pub(crate) fn is_proven_by(&self, password: &[u8], login_context: &LoginContext<'_>) -> bool {
        let right = login_context
            .accounts
            .of(self.like)
            .verifier
            .is_password(password);
        let hash: Cached = caching_sha2::cached(password);
        match self.user {
            Some(user) if right => {
                login_context.accounts.learn(user, hash);
                true
            }
            _ => false,
        }
    }
}
