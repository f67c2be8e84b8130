//! Choice of the reply that is taken off its backend now, of those that go to the spool.
//!
//! The problem: several replies that go to the spool at once are made by several threads of the
//! server at once. They ask for all processors, and everybody's short statement waits behind each
//! of them. The mechanism: a group takes off one reply at a time, to its end, and over all groups
//! there is one for two cores ([`CollectingGroups`]); the other backends are not read, so the
//! server's threads for them sleep. Where the processors are busy that takes no longer in all, and
//! the first of those backends is free sooner. A reply gives way to the next in line before its end
//! - after [`TURN_MAX`], or less where many stand in line: each of a group's line is read again
//!   within [`LAP_MAX`] of the group's own turns, for servers and clients end what does not move
//!   for longer than their timeouts;
//! - once its server has sent nothing for [`SILENCE_MAX`].
//!
//! A group that has had its turn stands back for a moment, in which another can take it.
//!
//! Invariants: while replies stand in a group's line and it has a turn, one of them is taken off;
//! the groups that have a turn are at most as many as [`CollectingGroups`] allows, and one that has
//! no reply in line has none.

use crate::group::tokens::ClientId;
use reactor::Time;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// A reply that is longer gives way to the next after this time, and a group to another.
const TURN_MAX: Duration = Duration::from_secs(1);
/// Within so long each of a line has a turn.
const LAP_MAX: Duration = Duration::from_secs(20);
/// One whose server sends nothing gives way to the next after this time.
const SILENCE_MAX: Duration = Duration::from_millis(20);
/// Interval at which a group looks if it can have a turn.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Time for which a group that has had one leaves it to the others.
const STANDS_BACK: Duration = Duration::from_millis(10);

/// Groups that may take replies off their backends at once.
#[derive(Debug)]
pub(crate) struct CollectingGroups {
    max: usize,
    groups: usize,
    now: AtomicUsize,
}

impl CollectingGroups {
    /// Limit for this many groups on this many cores.
    pub(crate) fn new(groups: usize, cores: usize) -> CollectingGroups {
        CollectingGroups {
            max: (cores / 2).max(1),
            groups,
            now: AtomicUsize::new(0),
        }
    }

    /// Groups that do now.
    pub(crate) fn now(&self) -> usize {
        self.now.load(Relaxed)
    }

    fn take(&self) -> bool {
        let more = |now| (now < self.max).then_some(now + 1);
        self.now.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    fn give(&self) {
        self.now.fetch_sub(1, Relaxed);
    }

    /// True if groups may have to wait for each other.
    fn is_scarce(&self) -> bool {
        self.groups > self.max
    }
}

/// Client whose turn it is in a group.
#[derive(Debug, Default)]
pub(crate) struct Collecting {
    client: Option<ClientId>,
    /// Moment at which its turn began, and that of the group.
    began: Time,
    group_began: Time,
    heard_at: Time,
    /// Moment at which the group looks again whether it can have a turn.
    looks_at: Option<Time>,
    /// True if anybody else waits for this turn.
    is_wanted: bool,
    /// Longest time of a turn.
    turn: Duration,
}

impl Collecting {
    /// True if the reply of this client is taken off its backend now.
    pub(crate) fn takes(&self, client: ClientId) -> bool {
        self.client == Some(client)
    }

    /// True if nothing is taken off, and nothing waits for that.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.client.is_none() && self.looks_at.is_none()
    }

    /// Client whose reply that is.
    pub(crate) fn client(&self) -> Option<ClientId> {
        self.client
    }

    /// Notes that something of a client's reply has come.
    pub(crate) fn heard(&mut self, client: ClientId, now: Time) {
        if self.takes(client) {
            self.heard_at = now;
        }
    }

    /// Chooses from those in line, whose replies have not ended. `has_more`: bytes of the one that
    /// has its turn wait to be read. Returns who has had a turn and goes behind the others.
    pub(crate) fn choose(
        &mut self,
        line: &[ClientId],
        has_more: bool,
        now: Time,
        all: &CollectingGroups,
    ) -> Option<ClientId> {
        let had = self.client;
        let before = had.filter(|client| line.contains(client));
        let others = u32::try_from(line.len()).unwrap_or(u32::MAX);
        self.turn = TURN_MAX.min(LAP_MAX / others.max(1));
        self.is_wanted = others > 1 || all.is_scarce();
        if has_more {
            self.heard_at = now;
        }
        let goes_on = before.is_some() && now < self.next_choice();
        let looks_later = had.is_none() && self.looks_at.is_some_and(|at| now < at);
        if goes_on || looks_later && !line.is_empty() {
            return None;
        }
        if had.is_some() {
            let alone = before.is_some() && others == 1;
            let is_over = alone || now.since(self.group_began) >= TURN_MAX;
            if line.is_empty() || is_over && all.is_scarce() {
                all.give();
                self.client = None;
                self.looks_at = (!line.is_empty()).then(|| now + STANDS_BACK);
                return before;
            }
        } else if line.is_empty() || !all.take() {
            self.looks_at = (!line.is_empty()).then(|| now + LOOK_EVERY);
            return None;
        } else {
            self.group_began = now;
        }
        self.looks_at = None;
        let mut next = line.iter().filter(|client| Some(**client) != before);
        self.client = next.next().copied().or(before);
        (self.began, self.heard_at) = (now, now);
        before
    }

    /// Moment at which it is chosen anew, unless the reply ends before or its server sends more.
    pub(crate) fn next_choice(&self) -> Time {
        match self.client {
            None => self.looks_at.unwrap_or(Time::NEVER),
            Some(_) if self.is_wanted => (self.began + self.turn).min(self.heard_at + SILENCE_MAX),
            Some(_) => Time::NEVER,
        }
    }

    /// Ends the taking off of replies.
    pub(crate) fn end(&mut self, all: &CollectingGroups) {
        if std::mem::take(self).client.is_some() {
            all.give();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: Time = Time(5_000_000_000);

    fn client(which: u32) -> ClientId {
        ClientId::from_parts(which, 0)
    }

    fn line(count: u32) -> Vec<ClientId> {
        (0..count).map(client).collect()
    }

    /// One group, which need not wait for another.
    fn one_group() -> CollectingGroups {
        CollectingGroups::new(1, 2)
    }

    /// One whose turn it is in a line.
    fn first_of(line: &[ClientId], all: &CollectingGroups) -> Collecting {
        let mut collecting = Collecting::default();
        assert_eq!(collecting.choose(line, false, BEGAN, all), None);
        assert_eq!(collecting.client(), line.first().copied());
        collecting
    }

    #[test]
    fn one_reply_is_taken_off_to_its_end() {
        let all = one_group();
        let mut collecting = first_of(&line(3), &all);
        let later = BEGAN + TURN_MAX / 2;
        assert_eq!(collecting.choose(&line(3), true, later, &all), None);
        let taken = line(3).into_iter().filter(|key| collecting.takes(*key));
        assert_eq!(taken.collect::<Vec<_>>(), [client(0)]);
        assert_eq!(collecting.choose(&line(3)[1..], false, later, &all), None);
        assert_eq!(collecting.client(), Some(client(1)));
        assert_eq!(collecting.choose(&[], false, later, &all), None);
        assert_eq!((collecting.client(), all.now()), (None, 0));
        assert_eq!(collecting.next_choice(), Time::NEVER);
    }

    #[test]
    fn a_long_one_gives_way_after_its_turn() {
        let all = one_group();
        let mut collecting = first_of(&line(3), &all);
        let almost = Time(BEGAN.0 - 1) + TURN_MAX;
        assert_eq!(collecting.choose(&line(3), true, almost, &all), None);
        let end = BEGAN + TURN_MAX;
        let had = collecting.choose(&line(3), true, end, &all);
        assert_eq!((had, all.now()), (Some(client(0)), 1));
        assert_eq!(collecting.client(), Some(client(1)));
    }

    #[test]
    fn each_of_a_long_line_has_a_turn_within_a_lap() {
        let (count, all) = (400, one_group());
        let mut waiting = line(count);
        let mut collecting = first_of(&waiting, &all);
        let mut now = BEGAN;
        for _ in 0..count {
            // The one that is heard all the while.
            now = now + LAP_MAX / count;
            let had = collecting.choose(&waiting, true, now, &all).unwrap();
            waiting.retain(|key| *key != had);
            waiting.push(had);
        }
        assert_eq!(collecting.client(), Some(client(0)));
        assert_eq!(now, BEGAN + LAP_MAX);
    }

    #[test]
    fn one_whose_server_is_silent_gives_way() {
        let all = one_group();
        let mut collecting = first_of(&line(2), &all);
        let heard = BEGAN + SILENCE_MAX / 2;
        collecting.heard(client(1), BEGAN + SILENCE_MAX);
        collecting.heard(client(0), heard);
        assert_eq!(collecting.next_choice(), heard + SILENCE_MAX);
        let before = Time(heard.0 - 1) + SILENCE_MAX;
        assert_eq!(collecting.choose(&line(2), false, before, &all), None);
        let after = heard + SILENCE_MAX;
        let had = collecting.choose(&line(2), false, after, &all);
        assert_eq!(had, Some(client(0)));
        assert_eq!(collecting.client(), Some(client(1)));
    }

    #[test]
    fn alone_it_gives_way_to_nobody() {
        let all = one_group();
        let mut collecting = first_of(&line(1), &all);
        assert_eq!(collecting.next_choice(), Time::NEVER);
        let late = BEGAN + LAP_MAX * 2;
        assert_eq!(collecting.choose(&line(1), false, late, &all), None);
        assert_eq!(collecting.client(), Some(client(0)));
    }

    #[test]
    fn of_two_groups_on_two_cores_one_takes_replies_off_at_a_time() {
        let all = CollectingGroups::new(2, 2);
        let mut first = first_of(&line(2), &all);
        let mut second = Collecting::default();
        assert_eq!(second.choose(&line(1), false, BEGAN, &all), None);
        assert_eq!((second.client(), all.now()), (None, 1));
        assert_eq!(second.next_choice(), BEGAN + LOOK_EVERY);
        // Its turn is over, and it leaves the next to the other.
        let end = BEGAN + TURN_MAX;
        let had = first.choose(&line(2), true, end, &all);
        assert_eq!((had, all.now()), (Some(client(0)), 0));
        assert_eq!(
            (first.client(), first.next_choice()),
            (None, end + STANDS_BACK)
        );
        assert_eq!(first.choose(&line(2), false, end + LOOK_EVERY, &all), None);
        assert_eq!(first.client(), None);
        assert_eq!(second.choose(&line(1), false, end + LOOK_EVERY, &all), None);
        assert_eq!(second.client(), Some(client(0)));
        assert_eq!(first.choose(&line(2), false, end + STANDS_BACK, &all), None);
        assert_eq!((first.client(), all.now()), (None, 1));
        // Who ends, or has nothing in line any more, gives its turn back.
        second.end(&all);
        second.end(&all);
        assert_eq!(all.now(), 0);
        let now = first.next_choice();
        assert_eq!(first.choose(&line(2), false, now, &all), None);
        assert_eq!((first.client(), all.now()), (Some(client(0)), 1));
        assert_eq!(first.choose(&[], false, now, &all), None);
        assert_eq!((first.next_choice(), all.now()), (Time::NEVER, 0));
    }

    #[test]
    fn there_is_a_turn_for_two_cores() {
        let all = CollectingGroups::new(6, 5);
        let taken: Vec<bool> = (0..3).map(|_| all.take()).collect();
        assert_eq!(taken, [true, true, false]);
        assert!(CollectingGroups::new(6, 1).take());
    }
}
