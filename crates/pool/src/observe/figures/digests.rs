//! Statements by digest: how often each was run, how long it waited and ran.
//!
//! The problem: totals say that the server is busy, not with what. The mechanism: each statement of
//! a client's has a digest ([`sql::digest`]); a group counts by it. Invariants: at most as many
//! digests as the settings allow are kept; when one more comes, the half that was seen longest ago
//! is dropped, and its counts go on among those of all others. So sums stay right, and making room
//! costs each new digest a constant time.

use reactor::Time;
use sql::digest::AsItIs;
use sql::lex::LexMode;
use sql::text::Text;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a statement's text that are kept, values left out.
const TEXT_MAX: usize = 512;
/// Digests of a group, however many groups share them.
const OF_GROUP_MIN: usize = 16;

/// Times that are told apart: below 1 ms, 2 ms, 4 ms and so on to 35 minutes, and longer ones.
const TIMES: usize = 23;
/// The range without an end.
const LAST: usize = TIMES - 1;

/// Counts of a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Statements that were answered.
    pub(crate) count: u64,
    /// Those that ended with an error of the server.
    pub(crate) errors: u64,
    /// Rows that the server sent.
    pub(crate) rows: u64,
    /// Time from their arrival until they were sent to the server.
    pub(crate) wait: Duration,
    /// Time from then on until the last byte of their replies.
    pub(crate) service: Duration,
    /// The longest of these.
    pub(crate) service_max: Duration,
    /// Replies by that time; they wrap around.
    times: [u32; TIMES],
}

impl Sums {
    /// Counts a statement among those that took so long.
    pub(crate) fn note_time(&mut self, time: Duration) {
        let bits = u128::BITS - time.as_millis().leading_zeros();
        let count = &mut self.times[(bits as usize).min(LAST)];
        *count = count.wrapping_add(1);
    }

    /// The 99th percentile of the times: by linear interpolation within its range, and no more than
    /// the sum of all times leaves for it, so that a single time is exact. An hour: that or more.
    pub(crate) fn p99(&self) -> Duration {
        let all: u64 = self.times.iter().copied().map(u64::from).sum();
        let longer = all / 100;
        let mut above = longer;
        let found = self.times.iter().rposition(|count| {
            let rest = above.checked_sub((*count).into());
            above = rest.unwrap_or(above);
            // As many as that may be longer.
            rest.is_none()
        });
        let Some(range) = found else {
            return Duration::ZERO;
        };
        let least = |range: usize| f64::from((1u32 << range) >> 1) / 1e3;
        let (from, count) = (least(range), f64::from(self.times[range]));
        let below = match range {
            LAST => count,
            _ => count - above as f64,
        };
        let to = match range {
            LAST => 3600.0,
            _ => least(range + 1),
        };
        let shorter = (self.times[..range].iter().enumerate())
            .map(|(range, count)| least(range) * f64::from(*count))
            .sum::<f64>()
            + from * (count - above as f64 - 1.0);
        let left = (self.service.as_secs_f64() - shorter) / (longer + 1) as f64;
        let within = from + (to - from) * below / count;
        Duration::from_secs_f64(within.min(left).max(from))
    }

    fn times_with(&self, other: &Sums, join: fn(u32, u32) -> u32) -> [u32; TIMES] {
        std::array::from_fn(|at| join(self.times[at], other.times[at]))
    }

    pub(crate) fn add(&mut self, other: &Sums) {
        self.count += other.count;
        self.errors += other.errors;
        self.rows += other.rows;
        self.wait = self.wait.saturating_add(other.wait);
        self.service = self.service.saturating_add(other.service);
        self.service_max = self.service_max.max(other.service_max);
        self.times = self.times_with(other, u32::wrapping_add);
    }

    /// Sums of what came after an earlier state; `None` if this is no later state of it.
    fn since(&self, earlier: &Sums) -> Option<Sums> {
        Some(Sums {
            count: self.count.checked_sub(earlier.count)?,
            errors: self.errors.checked_sub(earlier.errors)?,
            rows: self.rows.checked_sub(earlier.rows)?,
            wait: self.wait.checked_sub(earlier.wait)?,
            service: self.service.checked_sub(earlier.service)?,
            service_max: Duration::ZERO,
            times: self.times_with(earlier, u32::wrapping_sub),
        })
    }
}

/// A digest.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The text without its values, as it came first.
    pub(crate) text: Arc<str>,
    pub(crate) sums: Sums,
    /// Moment at which one came last.
    pub(crate) last: Time,
}

/// The digests of a group, or of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Digests {
    max: usize,
    known: HashMap<u64, Entry, BuildHasherDefault<AsItIs>>,
    others: Sums,
}

impl Digests {
    /// The share of one of so many groups.
    pub(crate) fn of_group(all_max: usize, groups: usize) -> Digests {
        let share = (all_max / groups.max(1)).max(OF_GROUP_MIN);
        Digests {
            max: if all_max == 0 { 0 } else { share },
            ..Digests::default()
        }
    }

    /// True if any are counted.
    pub(crate) fn are_counted(&self) -> bool {
        self.max > 0
    }

    /// Counts a text that has been read.
    pub(crate) fn of_text(&mut self, text: &Text<'_>, now: Time) -> u64 {
        if !self.are_counted() {
            return 0;
        }
        let digest = text.digest();
        self.note(digest, (text.sql, text.mode), now);
        digest
    }

    /// Enters the text that a client runs under this digest.
    pub(crate) fn note(&mut self, digest: u64, (sql, mode): (&[u8], LexMode), now: Time) {
        self.came(digest, now, || sql::digest::normalized(sql, mode, TEXT_MAX));
    }

    /// Notes a statement that has come, and enters its digest if that is new.
    pub(crate) fn came(&mut self, digest: u64, now: Time, text: impl FnOnce() -> String) {
        match self.known.get_mut(&digest) {
            Some(entry) => entry.last = now,
            None if self.max == 0 => {}
            None => self.enter(digest, now, text()),
        }
    }

    fn enter(&mut self, digest: u64, now: Time, text: String) {
        if self.known.len() >= self.max {
            self.make_room();
        }
        let entry = Entry {
            text: text.into(),
            sums: Sums::default(),
            last: now,
        };
        self.known.insert(digest, entry);
    }

    /// Drops the half that was seen longest ago.
    fn make_room(&mut self) {
        let mut moments: Vec<Time> = self.known.values().map(|entry| entry.last).collect();
        let middle = moments.len() / 2;
        let (_, limit, _) = moments.select_nth_unstable(middle);
        let (limit, others) = (*limit, &mut self.others);
        // Of those of one moment any may go.
        let mut left = middle + 1;
        self.known.retain(|_, entry| {
            let goes = entry.last <= limit && left > 0;
            if goes {
                left -= 1;
                others.add(&entry.sums);
            }
            !goes
        });
    }

    fn sums(&mut self, digest: u64) -> Option<&mut Sums> {
        match self.known.get_mut(&digest) {
            Some(entry) => Some(&mut entry.sums),
            None => (self.max > 0).then_some(&mut self.others),
        }
    }

    /// Adds the wait of a sent statement to its digest.
    pub(crate) fn sent(&mut self, digest: u64, waited: Duration) {
        if let Some(sums) = self.sums(digest) {
            sums.wait = sums.wait.saturating_add(waited);
        }
    }

    /// Adds a complete reply to its digest: its service time, rows and failure.
    pub(crate) fn answered(&mut self, digest: u64, service: Duration, failed: bool, rows: u64) {
        if let Some(sums) = self.sums(digest) {
            sums.count += 1;
            sums.errors += u64::from(failed);
            sums.rows += rows;
            sums.service = sums.service.saturating_add(service);
            sums.service_max = sums.service_max.max(service);
            sums.note_time(service);
        }
    }

    /// Adds those of another group.
    pub(crate) fn add(&mut self, other: &Digests) {
        self.others.add(&other.others);
        for (digest, more) in &other.known {
            match self.known.get_mut(digest) {
                Some(entry) => {
                    entry.sums.add(&more.sums);
                    entry.last = entry.last.max(more.last);
                }
                None => {
                    self.known.insert(*digest, more.clone());
                }
            }
        }
    }

    /// Sums of all.
    fn total(&self) -> Sums {
        let mut total = self.others;
        self.known.values().for_each(|entry| total.add(&entry.sums));
        total
    }

    /// Sums of what came after an earlier state. Those of a digest that was dropped meanwhile, by
    /// one group or all, are among those of all others; the longest times are not known.
    pub(crate) fn since(&self, earlier: &Digests) -> Digests {
        let mut since = Digests::default();
        let mut rest = (self.total().since(&earlier.total())).unwrap_or_default();
        for (digest, entry) in &self.known {
            let before = earlier.known.get(digest).map(|entry| entry.sums);
            let sums = entry.sums.since(&before.unwrap_or_default());
            let sums = sums.filter(|sums| *sums != Sums::default());
            if let Some((sums, left)) = sums.and_then(|sums| Some((sums, rest.since(&sums)?))) {
                rest = left;
                since.known.insert(
                    *digest,
                    Entry {
                        sums,
                        ..entry.clone()
                    },
                );
            }
        }
        since.others = rest;
        since
    }

    /// Keeps so many: half of them for their errors, the others for their time; the rest is counted
    /// among all others.
    pub(crate) fn keep(&mut self, max: usize) {
        if self.known.len() <= max {
            return;
        }
        let mut by_time: Vec<(u64, Sums)> = (self.known.iter())
            .map(|(digest, entry)| (*digest, entry.sums))
            .collect();
        let time = |sums: &Sums| sums.service.saturating_add(sums.wait);
        by_time.sort_by_key(|(digest, sums)| (Reverse(time(sums)), *digest));
        let mut by_errors = by_time.clone();
        by_errors.retain(|(_, sums)| sums.errors > 0);
        by_errors.sort_by_key(|(_, sums)| Reverse(sums.errors));
        let first = by_errors.iter().take(max / 2);
        let mut kept: HashSet<u64> = first.map(|(digest, _)| *digest).collect();
        for (digest, _) in by_time {
            if kept.len() < max {
                kept.insert(digest);
            }
        }
        let others = &mut self.others;
        self.known.retain(|digest, entry| {
            let stays = kept.contains(digest);
            if !stays {
                others.add(&entry.sums);
            }
            stays
        });
    }

    /// The counts of a digest, made with this text if there are none yet; 0 is all others.
    pub(crate) fn counted(&mut self, digest: u64, text: impl FnOnce() -> Arc<str>) -> &mut Sums {
        if digest == 0 {
            return &mut self.others;
        }
        let entry = self.known.entry(digest).or_insert_with(|| Entry {
            text: text(),
            sums: Sums::default(),
            last: Time(0),
        });
        &mut entry.sums
    }

    /// Those that are kept, the one that took most of the server's time first.
    pub(crate) fn list(&self) -> Vec<(u64, &Entry)> {
        let mut list: Vec<(u64, &Entry)> = (self.known.iter())
            .map(|(digest, entry)| (*digest, entry))
            .collect();
        list.sort_by_key(|(digest, entry)| (Reverse(entry.sums.service), *digest));
        list
    }

    /// Counts of one that is kept; 0 is all others.
    pub(crate) fn sums_of(&self, digest: u64) -> Option<&Sums> {
        match digest {
            0 => Some(&self.others),
            digest => self.known.get(&digest).map(|entry| &entry.sums),
        }
    }

    /// The text of one, if it is kept.
    pub(crate) fn text(&self, digest: u64) -> Option<Arc<str>> {
        self.known.get(&digest).map(|entry| entry.text.clone())
    }

    /// Sums of all others: those without a text, and those that were dropped.
    pub(crate) fn others(&self) -> &Sums {
        &self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn digests(max: usize) -> Digests {
        Digests {
            max,
            ..Digests::default()
        }
    }

    #[test]
    fn what_is_counted_of_a_statement() {
        let mut digests = digests(16);
        digests.came(7, Time(1), || "SELECT ?".into());
        digests.came(7, Time(2), || unreachable!("it is known"));
        digests.sent(7, MS);
        digests.answered(7, 3 * MS, false, 5);
        digests.sent(7, 2 * MS);
        digests.answered(7, MS, true, 0);
        // One that runs no text is among the others.
        digests.sent(0, MS);
        digests.answered(0, 9 * MS, false, 1);
        let list = digests.list();
        assert_eq!(
            (list.len(), list[0].0, &*list[0].1.text),
            (1, 7, "SELECT ?")
        );
        let expected = Sums {
            count: 2,
            errors: 1,
            rows: 5,
            wait: 3 * MS,
            service: 4 * MS,
            service_max: 3 * MS,
            times: std::array::from_fn(|at| u32::from(at == 1 || at == 2)),
        };
        assert_eq!((list[0].1.sums, list[0].1.last), (expected, Time(2)));
        assert_eq!((digests.others().count, digests.others().wait), (1, MS));
    }

    #[test]
    fn a_percentile_is_exact_for_one_time_and_those_of_a_span_are_its_own() {
        let note = |sums: &mut Sums, time| {
            sums.note_time(time);
            sums.service = sums.service.saturating_add(time);
        };
        let mut sums = Sums::default();
        assert_eq!(sums.p99(), Duration::ZERO);
        (0..99).for_each(|_| note(&mut sums, MS / 2));
        assert_eq!(sums.p99(), MS);
        note(&mut sums, 100 * MS);
        assert_eq!(sums.p99(), MS, "one of a hundred is above");
        let earlier = sums;
        note(&mut sums, 100 * MS);
        assert_eq!(sums.p99(), 96 * MS, "amid 64 to 128");
        note(&mut sums, Duration::from_secs(7200));
        assert_eq!(sums.p99(), 128 * MS);
        note(&mut sums, Duration::MAX);
        let span = sums.since(&earlier).unwrap();
        assert_eq!(span.p99(), Duration::from_secs(3600));
        for time in [MS / 5, 40_000 * MS, 2_500_000 * MS] {
            let mut one = Sums::default();
            note(&mut one, time);
            assert_eq!(one.p99(), time);
        }
    }

    #[test]
    fn the_half_that_was_seen_longest_ago_makes_room() {
        let mut digests = digests(16);
        for digest in 1..=16 {
            digests.came(digest, Time(100 + digest), String::new);
            digests.answered(digest, MS, false, 1);
        }
        // The oldest of all comes again.
        digests.came(1, Time(200), String::new);
        digests.came(17, Time(201), String::new);
        let mut left: Vec<u64> = digests.known.keys().copied().collect();
        left.sort_unstable();
        assert_eq!(left, [1, 11, 12, 13, 14, 15, 16, 17]);
        // What was dropped is still counted, and what comes of it as well.
        assert_eq!(digests.others().count, 9);
        digests.answered(5, MS, false, 1);
        assert_eq!(digests.others().count, 10);
        let all: u64 = digests
            .list()
            .iter()
            .map(|(_, entry)| entry.sums.count)
            .sum();
        assert_eq!(all + digests.others().count, 17);
    }

    #[test]
    fn the_bound_holds_whatever_comes() {
        for max in [1, 2, 16] {
            let mut digests = digests(max);
            for digest in 1..1000 {
                digests.came(digest, Time(5), String::new);
                assert!(digests.known.len() <= max);
            }
        }
        let mut off = Digests::of_group(0, 4);
        off.came(1, Time(1), || unreachable!("nothing is counted"));
        off.sent(1, MS);
        off.answered(1, MS, false, 1);
        assert!(off.list().is_empty() && off.others() == &Sums::default());
        assert_eq!(Digests::of_group(1000, 4).max, 250);
        assert_eq!(Digests::of_group(1000, 640).max, OF_GROUP_MIN);
    }

    #[test]
    fn groups_add_up() {
        let (mut one, mut other) = (digests(16), digests(16));
        for (digests, last) in [(&mut one, 1), (&mut other, 2)] {
            digests.came(7, Time(last), || "SELECT ?".into());
            digests.answered(7, MS, false, 2);
            digests.answered(0, MS, false, 1);
        }
        other.came(8, Time(3), || "DO ?".into());
        other.answered(8, 3 * MS, false, 0);
        let mut all = Digests::default();
        all.add(&one);
        all.add(&other);
        let list = all.list();
        assert_eq!(
            list.iter().map(|(digest, _)| *digest).collect::<Vec<_>>(),
            [8, 7]
        );
        assert_eq!((list[1].1.sums.count, list[1].1.sums.rows), (2, 4));
        assert_eq!((list[1].1.last, all.others().count), (Time(2), 2));
    }
}
