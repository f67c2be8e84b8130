//! Who stands in for a name that is nobody's (`accounts.rs`).
//!
//! The problem: a login is asked for the plugin of its account, and an unknown name must be asked
//! as a known one is, always the same, also while accounts come and go on the server.
//!
//! The mechanism: what can be told of an account from outside is its plugin, so names are spread
//! over plugins as accounts are, by a hash: a plugin says nothing of whether its name is known. One
//! account more moves the names near the borders alone, so that who asks before and after it
//! learns next to nothing.

use crate::auth::account::Account;
use std::sync::Arc;
use wire::auth::Plugin;

/// Accounts that stand in for unknown names, by plugin.
#[derive(Debug, Default)]
pub(crate) struct StandIns([Vec<Arc<Account>>; 3]);

impl StandIns {
    pub(crate) fn push(&mut self, account: Arc<Account>) {
        let place = match account.plugin {
            Some(Plugin::Native) => 0,
            Some(Plugin::CachingSha2) => 1,
            None => 2,
        };
        self.0[place].push(account);
    }

    /// All of them.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.0.iter().flatten()
    }

    /// The one of both for a name with this hash.
    pub(crate) fn choose<'a>(
        &'a self,
        others: &'a StandIns,
        hash: u32,
    ) -> Option<&'a Arc<Account>> {
        let kinds = self.0.iter().zip(&others.0);
        let counts = kinds.clone().map(|(one, other)| one.len() + other.len());
        let all: usize = counts.sum();
        let place = (u64::from(hash) * all as u64) >> u32::BITS;
        let mut place = usize::try_from(place).unwrap_or_default();
        for (one, other) in kinds {
            let mut of_kind = one.iter().chain(other);
            match place.checked_sub(one.len() + other.len()) {
                None => return of_kind.nth(place),
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
                plugin: Some(plugin),
                learnt: Arc::default(),
                of_server: None,
            }));
        }
        all
    }

    /// How many of 1,000 names are asked for the first plugin, and how many for another one when
    /// there are the others instead.
    fn asked(before: [&StandIns; 2], after: [&StandIns; 2]) -> (usize, usize) {
        let hashes = (0..1000).map(|number| number * (u32::MAX / 1000));
        let plugin = |of: [&StandIns; 2], hash| of[0].choose(of[1], hash).unwrap().plugin;
        hashes.fold((0, 0), |(native, moved), hash| {
            let (was, is) = (plugin(before, hash), plugin(after, hash));
            let is_native = was == Some(Plugin::Native);
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
}
