//! Fairness between accounts: none takes what another waits for.
//!
//! The problem: the backends of an account are pools of their own, and whoever has a pool's
//! backends keeps them while its clients ask for more. Clients of one account that run long
//! statements, or keep their backends, leave another account with one backend, or none. The
//! mechanism: an account's *fair part* is an even one of the group's share, as far as that is not
//! lent, among the accounts that have or want backends there.
//! - A backend that becomes free goes to an account below its fair part that waits, if its own
//!   account has more than that ([`Matching::poorer_pool`]).
//! - The backends that are reserved are for accounts below their fair part as well
//!   ([`Matching::is_below_fair_part`]): clients that keep theirs do not get the last ones.
//! - Of what may run at once, the account with the fewest backends in use has the next
//!   ([`Matching::fairest_pool`]).
//!
//! What an account may have in all groups together is bounded in `account_slots.rs`
//! (`account_backends_max`). Each group does all this with its own backends. With one account
//! nothing of this happens. It is decided for each statement that waits, so nothing here allocates,
//! and the pools are gone through once for each question, however many accounts there are.

use crate::scheduler::matching::Matching;

impl<S> Matching<'_, S> {
    /// The fair part of each account; `None` if no more than one has or wants backends. The first
    /// time, the accounts are counted as of this moment.
    fn fair_part(&mut self) -> Option<usize> {
        if self.pools.pools.len() < 2 {
            return None;
        }
        let pools = &mut *self.pools;
        let accounts = *(self.accounts).get_or_insert_with(|| pools.count_accounts());
        // What others have borrowed is nobody's part here.
        let share = self.shared.budget.share(self.index).min(pools.count);
        (accounts > 1).then(|| share.div_ceil(accounts))
    }

    /// True if a pool's account uses less than its fair part, and others have or want backends.
    pub(crate) fn is_below_fair_part(&mut self, pool: usize) -> bool {
        let part = self.fair_part();
        part.is_some_and(|part| self.pools.of_account(pool).used < part)
    }

    /// The pool that a backend is closed for which has become free in this one: its account waits
    /// and has less than its fair part, and this one's has more.
    pub(crate) fn poorer_pool(&mut self, pool: usize) -> Option<usize> {
        let part = self.fair_part()?;
        if self.shared.budget.has_room(self.index) || self.pools.of_account(pool).count <= part {
            return None;
        }
        let mut poorest: Option<(usize, usize)> = None;
        for other in 0..self.pools.pools.len() {
            let has = self.pools.of_account(other).count;
            let dials = self.pools.pools[other].dialling > 0;
            let may_dial = has < part && !dials && self.may_dial(other);
            if may_dial && self.account_has_room(other) && self.wants_dial(other) {
                poorest = fewer(poorest, has, other);
            }
        }
        poorest.map(|(_, pool)| pool)
    }

    /// The pool that is served next: of those in which somebody can be served, the one whose
    /// account uses the fewest backends.
    pub(crate) fn fairest_pool(&mut self) -> Option<usize> {
        let count = self.pools.pools.len();
        let waits = |matching: &mut Self, pool: usize| {
            matching.pools.pools[pool].queues.len() > 0 && matching.may_run(pool)
        };
        let mut waiting = (0..count).filter(|&pool| waits(self, pool));
        let (first, second) = (waiting.next()?, waiting.next());
        if second.is_none() {
            return Some(first);
        }
        self.fair_part();
        let mut fairest: Option<(usize, usize)> = None;
        for pool in first..count {
            let used = self.pools.of_account(pool).used;
            let is_fairer = fairest.is_none_or(|(least, _)| used < least);
            if is_fairer && waits(self, pool) && self.next_to_serve(pool).is_some() {
                fairest = Some((used, pool));
            }
        }
        fairest.map(|(_, pool)| pool)
    }

    /// Puts the pools into `order`, in which backends are opened for them.
    pub(crate) fn put_fair_order(&mut self, order: &mut Vec<usize>) {
        order.clear();
        order.extend(0..self.pools.pools.len());
        self.fair_part();
        if order.len() > 1 {
            order.sort_unstable_by_key(|&pool| (self.pools.of_account(pool).count, pool));
        }
    }
}

/// The pool with the fewest backends so far; of equal ones the first.
fn fewer(best: Option<(usize, usize)>, count: usize, pool: usize) -> Option<(usize, usize)> {
    match best {
        Some((least, _)) if least <= count => best,
        _ => Some((count, pool)),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::ServerLimits;
    use crate::group::tokens::{BackendId, ClientId};
    use crate::scheduler::account_slots::AccountSlots;
    use crate::scheduler::matching::tests::Bench;
    use crate::scheduler::queue::QueueName;
    use reactor::Time;

    /// Backends that clients of a pool's account use.
    fn uses(bench: &mut Bench, pool: u32, count: usize) -> Vec<BackendId> {
        let used = (0..count).map(|_| {
            let client = bench.client(pool, None);
            let backend = bench.idle(pool as usize, None);
            bench.check_out(client, backend);
            bench.runs(client, backend);
            backend
        });
        used.collect()
    }

    fn waits(bench: &mut Bench, pool: u32) -> ClientId {
        let client = bench.client(pool, None);
        bench.waits(client, QueueName::Low, 5);
        client
    }

    #[test]
    fn a_backend_goes_to_an_account_below_its_fair_part() {
        let mut bench = Bench::new("backends_max = 4");
        uses(&mut bench, 0, 4);
        assert_eq!(bench.matching().poorer_pool(0), None, "nobody waits");
        waits(&mut bench, 0);
        assert_eq!(bench.matching().poorer_pool(0), None, "of its own account");
        waits(&mut bench, 1);
        assert_eq!(bench.matching().poorer_pool(0), Some(1));
        assert_eq!(bench.matching().poorer_pool(1), None, "it has none");
    }

    #[test]
    fn nobody_gives_from_its_fair_part_and_nobody_gets_more_than_that() {
        let mut bench = Bench::new("backends_max = 4");
        uses(&mut bench, 0, 2);
        uses(&mut bench, 1, 1);
        waits(&mut bench, 1);
        assert_eq!(bench.matching().poorer_pool(0), None, "two of four");
        let mut bench = Bench::new("backends_max = 5");
        uses(&mut bench, 0, 4);
        uses(&mut bench, 1, 1);
        waits(&mut bench, 1);
        assert_eq!(bench.matching().poorer_pool(0), Some(1));
        let mut bench = Bench::new("backends_max = 6");
        uses(&mut bench, 0, 3);
        uses(&mut bench, 1, 3);
        waits(&mut bench, 1);
        assert_eq!(bench.matching().poorer_pool(0), None);
    }

    #[test]
    fn what_is_reserved_is_for_accounts_below_their_fair_part() {
        let mut bench = Bench::new("backends_max = 8");
        uses(&mut bench, 0, 7);
        waits(&mut bench, 0);
        assert_eq!(bench.matching().front_to_serve(0), None);
        let other = waits(&mut bench, 1);
        let front = bench.matching().front_to_serve(1).unwrap();
        assert_eq!(front.client, other);
        assert_eq!(bench.matching().front_to_serve(0), None, "it is above");
    }

    #[test]
    fn of_a_share_that_is_lent_an_account_has_its_part_of_what_is_left() {
        let mut bench = Bench::among("backends_max = 16", 2);
        assert!((0..13).all(|_| bench.shared.budget.take(1)));
        uses(&mut bench, 0, 2);
        bench.idle(0, None);
        waits(&mut bench, 0);
        let other = waits(&mut bench, 1);
        assert_eq!(bench.matching().front_to_serve(0), None, "two of three");
        assert_eq!(bench.matching().front_to_serve(1).unwrap().client, other);
    }

    #[test]
    fn the_account_that_uses_the_fewest_backends_is_served_first() {
        let mut bench = Bench::new("backends_max = 8");
        uses(&mut bench, 0, 2);
        uses(&mut bench, 1, 1);
        for pool in [0, 1] {
            bench.idle(pool, None);
        }
        assert_eq!(bench.matching().fairest_pool(), None, "nobody waits");
        waits(&mut bench, 0);
        assert_eq!(bench.matching().fairest_pool(), Some(0));
        waits(&mut bench, 1);
        assert_eq!(bench.matching().fairest_pool(), Some(1));
    }

    #[test]
    fn at_the_writers_limit_only_its_readers_are_served_and_dialled() {
        let mut bench = Bench::new("backends_max = 8\noversubscribe = 0");
        bench.is_read(1);
        for (pool, is_full) in [(1, false), (0, true)] {
            let client = bench.client(pool, None);
            let backend = bench.idle(pool as usize, None);
            bench.check_out(client, backend);
            bench.runs(client, backend);
            bench.counts(backend);
            bench.idle(pool as usize, None);
            let mut matching = bench.matching();
            let mut has_room = |pool| matching.may_run(pool);
            assert_eq!((has_room(0), has_room(1)), (!is_full, true));
        }
        let writes = waits(&mut bench, 0);
        assert_eq!(bench.matching().fairest_pool(), None, "{writes:?}");
        assert!(!bench.matching().is_behind());
        waits(&mut bench, 1);
        assert_eq!(bench.matching().fairest_pool(), Some(1));
        assert!(bench.matching().is_behind());
    }

    #[test]
    fn a_place_to_run_goes_to_the_oldest_front_and_is_wanted_while_somebody_waits() {
        let mut bench = Bench::new("backends_max = 8");
        let server = AccountSlots::of_server(ServerLimits {
            backends_max: None,
            running_max: Some(1),
        });
        let running = server.running().unwrap().clone();
        bench.matching().pools.pools[0].server = Some(server);
        let key = waits(&mut bench, 0);
        assert!(bench.matching().may_run(0));
        let place = running.connect();
        assert!(!bench.matching().may_run(0));
        assert!(bench.matching().note_account_wants() && bench.matching().pools.wants_account);
        assert!(!bench.matching().note_account_wants(), "it is not new");
        drop(place);
        running.want((9, 0), Some(Time(0)));
        assert!(
            !bench.matching().may_run(0),
            "another has waited for longer"
        );
        running.want((9, 0), None);
        assert!(bench.matching().may_run(0));
        // Nobody is held up by a front that is gone.
        bench.forgets(key);
        assert!(!bench.matching().note_account_wants() && !bench.matching().pools.wants_account);
        assert!(!running.is_wanted());
    }
}
