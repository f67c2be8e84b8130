//! Stand-ins for names that are nobody's (`accounts.rs`).
//!
//! The problem: a login is asked for the plugin of its account, and an unknown name must be asked
//! as a known one is, always the same, also while accounts come and go on the server.
//!
//! The mechanism: what can be told of an account from outside is what its clients are asked for,
//! and by the time of a wrong password the work that its check takes: a server's hash for
//! `caching_sha2_password` has its own number of rounds. Accounts of one method and one work are of
//! one kind. Names are spread over kinds as accounts are, by a hash: a kind says nothing of whether
//! its name is known. One account more moves the names near the borders alone, so that who asks
//! before and after it learns next to nothing.
//!
//! Who never stands in: accounts that a server makes for itself. Their names are known to
//! everybody, so they hide nobody, and the number of rounds of theirs need not be that of any
//! account that has a password.

use crate::auth::account::{Account, Method};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wire::auth::Plugin;
use wire::auth::sha2_stored::Work;

/// Beginnings of names that servers keep for accounts of their own.
const RESERVED: [&str; 2] = ["mysql.", "mariadb."];

/// Facts of an account that a wrong password can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    /// The place of its method.
    method: u8,
    work: Option<Work>,
}

impl Kind {
    fn of(account: &Account) -> Kind {
        let method = match account.method {
            Some(Method::Plugin(Plugin::Native)) => 0,
            Some(Method::Plugin(Plugin::CachingSha2)) => 1,
            None => 2,
            Some(Method::ClearPassword) => 3,
        };
        let work = account.verifier.work();
        Kind { method, work }
    }
}

/// Accounts that stand in for unknown names, by kind.
#[derive(Debug, Default)]
pub(crate) struct StandIns(BTreeMap<Kind, Vec<Arc<Account>>>);

impl StandIns {
    /// Adds an account that may stand in, unless it is one of the server's own.
    pub(crate) fn push(&mut self, account: Arc<Account>) {
        let is_reserved = RESERVED.iter().any(|begin| account.name.starts_with(begin));
        if account.of_server.is_none() || !is_reserved {
            let kind = Kind::of(&account);
            self.0.entry(kind).or_default().push(account);
        }
    }

    /// All of them.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.0.values().flatten()
    }

    fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    fn of_kind(&self, kind: Kind) -> &[Arc<Account>] {
        self.0.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// The one of both for a name with this hash.
    pub(crate) fn choose<'a>(
        &'a self,
        others: &'a StandIns,
        hash: u32,
    ) -> Option<&'a Arc<Account>> {
        let all = self.len() + others.len();
        let place = (u64::from(hash) * all as u64) >> u32::BITS;
        let mut place = usize::try_from(place).unwrap_or_default();
        let kinds: BTreeSet<Kind> = self.0.keys().chain(others.0.keys()).copied().collect();
        for kind in kinds {
            let (one, other) = (self.of_kind(kind), others.of_kind(kind));
            match place.checked_sub(one.len() + other.len()) {
                None => return one.iter().chain(other).nth(place),
                Some(rest) => place = rest,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::verifier::Verifier;

    fn stand_ins(native: usize, sha2: usize) -> StandIns {
        let mut all = StandIns::default();
        for number in 0..native + sha2 {
            let plugin = match number < native {
                true => Plugin::Native,
                false => Plugin::CachingSha2,
            };
            all.push(Arc::new(Account {
                user: number,
                name: String::new(),
                verifier: Verifier::of_nobody(),
                method: Some(Method::Plugin(plugin)),
                learnt: Arc::default(),
                of_server: None,
                second: None,
            }));
        }
        all
    }

    /// Number of names of 1,000 that are asked for the first plugin, and for another one when there
    /// are the others instead.
    fn asked(before: [&StandIns; 2], after: [&StandIns; 2]) -> (usize, usize) {
        let hashes = (0..1000).map(|number| number * (u32::MAX / 1000));
        let plugin = |of: [&StandIns; 2], hash| of[0].choose(of[1], hash).unwrap().method;
        hashes.fold((0, 0), |(native, moved), hash| {
            let (was, is) = (plugin(before, hash), plugin(after, hash));
            let is_native = was == Some(Method::Plugin(Plugin::Native));
            (
                native + usize::from(is_native),
                moved + usize::from(was != is),
            )
        })
    }

    #[test]
    fn names_are_spread_as_accounts_are_and_few_move_with_one_more() {
        let (settings, few, more) = (stand_ins(1, 1), stand_ins(24, 74), stand_ins(25, 74));
        let (native, moved) = asked([&settings, &few], [&settings, &more]);
        assert!((240..=260).contains(&native), "{native}");
        assert!(moved <= 10, "{moved}");
        let nobody = StandIns::default();
        assert!(nobody.choose(&nobody, u32::MAX).is_none());
        assert!(few.choose(&nobody, u32::MAX).is_some());
    }

    /// A hash as MySQL stores it, of that many thousand rounds.
    fn of_rounds(number: usize, thousands: u32) -> Arc<Account> {
        let digits = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcde";
        let stored = format!("$A${thousands:03X}$01234567890123456789{digits}");
        let verifier = Verifier::from_stored(Plugin::CachingSha2, stored.as_bytes());
        assert_eq!(verifier.work(), Some(Work::Crypt(thousands * 1000)));
        Arc::new(Account {
            user: number,
            name: format!("user{number}"),
            verifier,
            method: Some(Method::Plugin(Plugin::CachingSha2)),
            learnt: Arc::default(),
            of_server: None,
            second: None,
        })
    }

    /// A wrong password takes as long for unknown names as for accounts, in the same shares, and
    /// one account more changes it for next to none.
    #[test]
    fn names_are_spread_over_the_work_of_a_check_too() {
        let of = |counts: [usize; 2]| {
            let mut all = StandIns::default();
            // As accounts are read: those of one work do not stand together.
            for number in 0..counts[0].max(counts[1]) {
                for (count, thousands) in counts.iter().zip([5, 10]) {
                    if number < *count {
                        all.push(of_rounds(number, thousands));
                    }
                }
            }
            all
        };
        let nobody = StandIns::default();
        let work = |all: &StandIns, hash| {
            let like = all.choose(&nobody, hash).unwrap();
            like.verifier.work().unwrap()
        };
        let (few, more) = (of([10, 30]), of([11, 30]));
        let hashes = (0..1000).map(|number| number * (u32::MAX / 1000));
        let (mut quick, mut moved) = (0, 0);
        for hash in hashes {
            let (was, is) = (work(&few, hash), work(&more, hash));
            quick += usize::from(was == Work::Crypt(5000));
            moved += usize::from(was != is);
        }
        assert!((240..=260).contains(&quick), "{quick}");
        assert!(moved <= 20, "{moved}");
    }
}
