//! Places of users and accounts among the figures.
//!
//! The problem: with `auth = "server"` all accounts are one user of the settings, and figures of
//! "all accounts" name nobody. The mechanism: the first accounts of the server whose clients come
//! get places of their own behind those of the users, the same in all groups; a group keeps the
//! place of an account with its backends ([`crate::backend::pools`]).
//!
//! Bounds: [`USERS_MAX`] users of the settings, [`ACCOUNTS_MAX`] accounts of the server; all later
//! ones share the place [`OTHERS`].

use std::sync::{Mutex, PoisonError};

/// Users that have figures of their own, the first of the settings.
pub(crate) const USERS_MAX: usize = 50;
/// The place of the others, behind them.
pub(crate) const OTHERS: u16 = 50;
/// Accounts of the server that have figures of their own, the first that come.
pub(crate) const ACCOUNTS_MAX: usize = 50;

/// Place of a user of the settings, by its index there.
pub(crate) fn place_of_user(user: usize) -> u16 {
    u16::try_from(user).map_or(OTHERS, |user| user.min(OTHERS))
}

/// Names of the accounts of the server that have places.
#[derive(Debug, Default)]
pub(crate) struct AccountPlaces(Mutex<Vec<String>>);

impl AccountPlaces {
    /// The place of an account, which it gets if one is left.
    pub(crate) fn place_of(&self, account: &str) -> u16 {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.iter().position(|name| name == account);
        let index = known.or_else(|| {
            let is_left = names.len() < ACCOUNTS_MAX;
            is_left.then(|| {
                names.push(account.to_owned());
                names.len() - 1
            })
        });
        let index = index.and_then(|index| u16::try_from(index).ok());
        index.map_or(OTHERS, |index| OTHERS + 1 + index)
    }

    /// The names, by their places from that behind [`OTHERS`] on.
    pub(crate) fn all(&self) -> Vec<String> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_beyond_the_bound_share_the_place_of_users_beyond_theirs() {
        let places = AccountPlaces::default();
        for (account, behind) in (0..ACCOUNTS_MAX + 5).zip(1..) {
            let name = format!("app{account}");
            let has_own = account < ACCOUNTS_MAX;
            let expected = if has_own { OTHERS + behind } else { OTHERS };
            assert_eq!(places.place_of(&name), expected);
            assert_eq!(places.place_of(&name), expected);
        }
        assert_eq!(places.all().len(), ACCOUNTS_MAX);
        assert_eq!(places.all()[1], "app1");
        assert_eq!((place_of_user(49), place_of_user(149)), (49, OTHERS));
        assert_eq!(usize::from(OTHERS), USERS_MAX);
    }
}
