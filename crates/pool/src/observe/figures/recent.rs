//! Figures of the last minutes and of the last hour.
//!
//! The problem: sums since the start hide what began five minutes ago. The mechanism: a thread that
//! serves nobody hands over the sums of all groups each second ([`crate::admin::live`]); once in
//! [`Ring::every`] the difference to the time before goes into a slot. A question adds up the slots
//! that reach into its time and what has come since the last one; what runs now is counted in by
//! the asker. Nothing of it is on a statement's path.
//!
//! Bounds: [`SHORT_MAX`] slots of ten seconds and [`LONG_MAX`] of a minute, each with [`USERS_MAX`]
//! users, [`ACCOUNTS_MAX`] accounts and [`DIGESTS_MAX`] digests; further digests are counted
//! together. That takes [`BYTES_MAX`] at most, if each slot has other digests than all others.
//!
//! [`USERS_MAX`]: super::places::USERS_MAX
//! [`ACCOUNTS_MAX`]: super::places::ACCOUNTS_MAX

use crate::observe::figures::Figures;
use crate::observe::figures::digests::Digests;
use reactor::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Slots of ten seconds: five minutes.
const SHORT_MAX: usize = 30;
const SHORT: Duration = Duration::from_secs(10);
/// Slots of a minute: an hour.
const LONG_MAX: usize = 60;
const LONG: Duration = Duration::from_secs(60);
/// Digests of a slot that are told apart.
const DIGESTS_MAX: usize = 200;
/// Bytes of all slots.
#[cfg(test)]
const BYTES_MAX: usize = 18 << 20;

/// Figures of a time.
#[derive(Debug)]
pub(crate) struct Span {
    /// Length of the time: up to a slot more than was asked for, less after the start.
    pub(crate) length: Duration,
    pub(crate) figures: Figures,
}

#[derive(Debug)]
struct Slot {
    from: Time,
    to: Time,
    figures: Figures,
}

/// Slots of one length, the oldest first.
#[derive(Debug)]
struct Ring {
    every: Duration,
    max: usize,
    /// The end of the last slot, and the sums at that moment.
    from: Time,
    before: Figures,
    slots: VecDeque<Slot>,
}

impl Ring {
    /// The slot that is not full yet.
    fn rest(&self, to: Time, figures: &Figures) -> Slot {
        Slot {
            from: self.from,
            to,
            figures: figures.since(&self.before),
        }
    }

    fn note(&mut self, now: Time, figures: &Figures) {
        if now.since(self.from) < self.every {
            return;
        }
        let mut slot = self.rest(now, figures);
        slot.figures.digests.keep(DIGESTS_MAX);
        if self.slots.len() == self.max {
            self.slots.pop_front();
        }
        self.slots.push_back(slot);
        (self.from, self.before) = (now, figures.clone());
    }

    fn over(&self, length: Duration, now: Time, figures: &Figures) -> Span {
        let rest = self.rest(now, figures);
        let (mut from, mut sum) = (rest.from, rest.figures);
        let slots = self.slots.iter().rev();
        for slot in slots.take_while(|slot| now.since(slot.to) < length) {
            from = slot.from;
            sum.add(&slot.figures);
        }
        Span {
            length: now.since(from),
            figures: sum,
        }
    }
}

/// The last five minutes and the last hour.
#[derive(Debug)]
pub(crate) struct Recent {
    short: Ring,
    long: Ring,
}

impl Recent {
    /// Recent figures of a pool in which nothing has happened before this moment.
    pub(crate) fn since(began: Time) -> Recent {
        let ring = |every, max| Ring {
            every,
            max,
            from: began,
            before: Figures::new(0, Digests::default()),
            slots: VecDeque::new(),
        };
        Recent {
            short: ring(SHORT, SHORT_MAX),
            long: ring(LONG, LONG_MAX),
        }
    }

    /// Notes the sums of all groups at this moment.
    pub(crate) fn note(&mut self, now: Time, figures: &Figures) {
        self.short.note(now, figures);
        self.long.note(now, figures);
    }

    /// Figures of the time of this length that ends now, with these sums: an hour at most.
    pub(crate) fn over(&self, length: Duration, now: Time, figures: &Figures) -> Span {
        let ring = match length.as_secs() <= SHORT.as_secs() * SHORT_MAX as u64 {
            true => &self.short,
            false => &self.long,
        };
        ring.over(length, now, figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::figures::UserFigures;
    use crate::observe::figures::digests::Entry;
    use crate::observe::figures::places::{ACCOUNTS_MAX, USERS_MAX};

    const MS: Duration = Duration::from_millis(1);
    const MINUTE: Duration = Duration::from_secs(60);

    /// Counters of a pool, and its ring, at a moment that a test chooses.
    struct Pool {
        now: Time,
        figures: Figures,
        recent: Recent,
    }

    impl Pool {
        fn new(digests_max: usize) -> Pool {
            let began = Time(1_000_000_000_000);
            Pool {
                now: began,
                figures: Figures::new(1, Digests::of_group(digests_max, 1)),
                recent: Recent::since(began),
            }
        }

        /// Runs a statement of a digest that takes a millisecond.
        fn run(&mut self, digest: u64, failed: bool) {
            let text = || format!("DO {digest}");
            self.figures.digests.came(digest, self.now, text);
            self.figures.digests.sent(digest, MS);
            self.figures.digests.answered(digest, MS, failed, 1);
            self.figures.sent(0, MS);
            self.figures.answered(0, MS, failed);
        }

        /// Lets time pass; the figures are noted each second.
        fn pass(&mut self, seconds: u64) {
            for _ in 0..seconds {
                self.now = self.now + Duration::from_secs(1);
                self.recent.note(self.now, &self.figures);
            }
        }

        fn over(&self, minutes: u32) -> Span {
            self.recent.over(minutes * MINUTE, self.now, &self.figures)
        }

        /// Statements of a digest in the last minutes, of all others, and of the user.
        fn counts(&self, minutes: u32, digest: u64) -> [u64; 3] {
            let figures = self.over(minutes).figures;
            let list = figures.digests.list();
            let found = list.iter().find(|(known, _)| *known == digest);
            [
                found.map_or(0, |(_, entry)| entry.sums.count),
                figures.digests.others().count,
                figures.users()[0].service.count(),
            ]
        }
    }

    #[test]
    fn a_statement_is_in_a_time_as_long_as_it_is_that_recent() {
        let mut pool = Pool::new(100);
        pool.run(7, true);
        // At once, before any slot is there.
        assert_eq!(pool.counts(1, 7), [1, 0, 1]);
        assert_eq!(pool.over(1).length, Duration::ZERO);
        for (passes, expected) in [
            (9, [1, 1, 1]),
            (50, [1, 1, 1]),
            // A slot is ten seconds long, one of the hour a minute.
            (11, [0, 1, 1]),
            (229, [0, 1, 1]),
            (11, [0, 0, 1]),
            (3289, [0, 0, 1]),
            (61, [0, 0, 0]),
        ] {
            pool.pass(passes);
            let counts = [1, 5, 60].map(|minutes| pool.counts(minutes, 7)[0]);
            assert_eq!(counts, expected, "{:?}", pool.now);
            let users = [1, 5, 60].map(|minutes| pool.counts(minutes, 7)[2]);
            assert_eq!(users, expected);
        }
        assert_eq!((pool.recent.short.slots.len(), SHORT_MAX), (SHORT_MAX, 30));
        assert_eq!((pool.recent.long.slots.len(), LONG_MAX), (LONG_MAX, 60));
        let sums = pool.over(60).figures.users()[0].errors;
        assert_eq!((sums, pool.figures.users()[0].errors), (0, 1));
    }

    #[test]
    fn the_rings_wrap_around() {
        let mut pool = Pool::new(100);
        // One each second for two hours: whatever was longest ago has gone.
        for second in 0..7200 {
            pool.run(second % 3 + 1, false);
            pool.pass(1);
        }
        for (minutes, longest) in [(1, 70), (5, 310), (60, 3660)] {
            let span = pool.over(minutes);
            let [_, others, all] = pool.counts(minutes, 1);
            let seconds = span.length.as_secs();
            assert!((u64::from(minutes) * 60..=longest).contains(&seconds));
            assert_eq!((all, others), (seconds, 0));
        }
    }

    #[test]
    fn a_gap_is_in_the_slot_that_ends_it() {
        let mut pool = Pool::new(100);
        pool.pass(60);
        pool.run(7, false);
        // The machine slept.
        pool.now = pool.now + 10 * MINUTE;
        pool.pass(1);
        let span = pool.over(1);
        assert_eq!(span.length, 10 * MINUTE + Duration::from_secs(1));
        assert_eq!(pool.counts(1, 7), [1, 0, 1]);
        pool.pass(75);
        assert_eq!(pool.counts(1, 7)[0], 0);
        assert!(pool.over(1).length <= Duration::from_secs(70));
    }

    #[test]
    fn a_digest_that_is_dropped_is_among_the_others_and_no_sum_is_wrong() {
        let mut pool = Pool::new(16);
        for _ in 0..1000 {
            pool.run(1, false);
        }
        pool.pass(70);
        assert_eq!(pool.counts(1, 1), [0, 0, 0]);
        // Its thousand go over to the others, which nobody may take for new ones.
        for digest in 2..=17 {
            pool.now = pool.now + MS;
            pool.run(digest, false);
        }
        assert!(pool.figures.digests.text(1).is_none());
        assert_eq!(pool.counts(1, 1)[0], 0);
        let all = |pool: &Pool| {
            let digests = pool.over(1).figures.digests;
            let known = digests
                .list()
                .iter()
                .map(|(_, e)| e.sums.count)
                .sum::<u64>();
            known + digests.others().count
        };
        assert_eq!((all(&pool), pool.counts(1, 1)[2]), (16, 16));
        // It comes again, with fewer than it had.
        pool.run(1, true);
        assert_eq!((all(&pool), pool.counts(1, 1)[2]), (17, 17));
        pool.pass(10);
        assert_eq!(all(&pool), 17);
    }

    #[test]
    fn a_slot_has_the_digests_with_most_time_and_with_most_errors() {
        let mut pool = Pool::new(10_000);
        let many = 3 * DIGESTS_MAX as u64;
        for digest in 1..=many {
            pool.run(digest, digest == 5);
            let service = Duration::from_micros(digest);
            pool.figures.digests.answered(digest, service, false, 0);
        }
        pool.pass(10);
        let slot = &pool.recent.short.slots[0].figures.digests;
        let list = slot.list();
        assert_eq!(list.len(), DIGESTS_MAX);
        let has = |digest: u64| list.iter().any(|(known, _)| *known == digest);
        assert!(has(5) && has(many) && !has(4));
        assert_eq!(slot.others().count, 2 * (many - DIGESTS_MAX as u64));
        assert_eq!(pool.counts(1, many)[0], 2);
    }

    #[test]
    fn all_slots_together_have_a_bound() {
        // A table of a map is a power of two at least an eighth larger.
        let digests = 256 * (size_of::<(u64, Entry)>() + 1) + DIGESTS_MAX * (512 + 16);
        let users = (USERS_MAX + 1 + ACCOUNTS_MAX) * size_of::<UserFigures>();
        let slot = size_of::<Slot>() + digests + users;
        let all = (SHORT_MAX + LONG_MAX) * slot;
        assert!(all <= BYTES_MAX, "{all}");
    }
}
