//! Refusals by account and reason: how often, when last, whom, and in which words.
//!
//! The problem: the sum of all refusals does not tell which application is refused, nor by which
//! limit. The mechanism: one table for all groups, written when a client is refused, which is
//! never on the way of a statement that runs.
//!
//! Bounds: [`REFUSALS_MAX`] accounts with a reason; all later ones are counted as those of
//! [`OTHERS`]. Names that no account has are counted together, without a name: nobody can fill the
//! table by guessing.

use crate::observe::identity::ClientIdentity;
use crate::observe::log::Peer;
use reactor::Time;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Accounts with a reason that are told apart.
const REFUSALS_MAX: usize = 1000;
/// Stands for the accounts that are not.
const OTHERS: &str = "(others)";
/// Bytes of the words that are kept.
const WORDS_MAX: usize = 300;

/// Refusals of an account for one reason.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) count: u64,
    /// Moment of the last one.
    pub(crate) last: Time,
    /// Address of its client.
    pub(crate) peer: Peer,
    /// The words that it heard, with the limit.
    pub(crate) words: String,
}

/// By account, which is empty of clients without one, and reason.
type ByReason = BTreeMap<(String, &'static str), Refused>;

/// The refusals of all groups.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<ByReason>);

impl Refusals {
    /// Counts one.
    pub(crate) fn note(
        &self,
        identity: &ClientIdentity,
        reason: &'static str,
        words: &str,
        now: Time,
    ) {
        let account = identity.known_account().unwrap_or_default().into_owned();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (account, reason);
        if all.len() >= REFUSALS_MAX && !all.contains_key(&key) {
            key.0 = OTHERS.to_owned();
        }
        let refused = all.entry(key).or_insert_with(|| Refused {
            count: 0,
            last: now,
            peer: identity.peer,
            words: String::new(),
        });
        refused.count += 1;
        (refused.last, refused.peer) = (now, identity.peer);
        refused.words.clear();
        refused
            .words
            .push_str(&words[..words.floor_char_boundary(WORDS_MAX)]);
    }

    /// All of them, by account and reason.
    pub(crate) fn all(&self) -> ByReason {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, is_account: bool) -> ClientIdentity {
        ClientIdentity {
            account: Some(name.into()),
            is_account,
            ..ClientIdentity::default()
        }
    }

    #[test]
    fn refusals_are_told_apart_by_account_and_reason_up_to_a_bound() {
        let refusals = Refusals::default();
        for at in [1, 2] {
            refusals.note(&named("app", true), "clients", "no", Time(at));
        }
        for guess in 0..REFUSALS_MAX {
            let identity = named(&format!("guess {guess}"), false);
            refusals.note(
                &identity,
                "unknown-user",
                &"x".repeat(WORDS_MAX + 1),
                Time(3),
            );
        }
        let all = refusals.all();
        assert_eq!(all.len(), 2);
        let (app, guesses) = (
            &all[&("app".into(), "clients")],
            &all[&(String::new(), "unknown-user")],
        );
        assert_eq!((app.count, app.last, &*app.words), (2, Time(2), "no"));
        assert_eq!(
            (guesses.count, guesses.words.len()),
            (REFUSALS_MAX as u64, WORDS_MAX)
        );
        for account in 0..REFUSALS_MAX {
            refusals.note(&named(&format!("{account}"), true), "memory", "no", Time(4));
        }
        let all = refusals.all();
        assert_eq!(all.len(), REFUSALS_MAX + 1);
        assert_eq!(all[&(OTHERS.into(), "memory")].count, 2);
    }
}
