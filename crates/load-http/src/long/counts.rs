//! Counts of a group of long connections.
//!
//! Two ways of counting, because they answer two questions: how many messages were right, late,
//! wrong or lost, and how many connections had at least one of each. The first are sums; for the
//! second each connection has one byte, [`Marks`].

use load_core::errors::{ErrorTable, Fault, Phase};
use measure::Histogram;
use std::time::Duration;

/// Verdict on a message or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Right,
    Late,
    Wrong,
    Lost,
}

/// Everything since it was last taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// By [`Verdict`].
    verdicts: [u64; 4],
    /// Connections that came to stand, and how long that took.
    pub(super) connects: Histogram,
    /// Number of them whose TLS session went on from an earlier connection's.
    pub(super) resumed: u64,
    pub(super) failed_connects: u64,
    /// Connections that ended before the run did, not in order.
    pub(super) lost_connections: u64,
    /// Connections opened again.
    pub(super) reopened: u64,
    /// Answers that had not come, and were not late, when the run was over.
    pub(super) unfinished: u64,
    /// Bytes that came.
    pub(super) bytes: u64,
    /// Times of what was right or late: with HTTP from the request to the answer's last byte, else
    /// how much later than the time that was agreed.
    pub(super) latency: Histogram,
    pub(super) errors: ErrorTable,
}

impl Counts {
    /// Counts `count` messages of one verdict.
    pub(super) fn judge(&mut self, verdict: Verdict, count: u64) {
        self.verdicts[verdict as usize] += count;
    }

    pub(super) fn of(&self, verdict: Verdict) -> u64 {
        self.verdicts[verdict as usize]
    }

    /// Messages that should have come.
    pub(super) fn expected(&self) -> u64 {
        self.verdicts.iter().sum()
    }

    /// Counts a connection that could not be opened.
    pub(super) fn connect_failed(&mut self, fault: Fault) {
        self.failed_connects += 1;
        self.errors.count(Phase::Connect, fault);
    }

    /// Counts a connection that has come to stand.
    pub(super) fn connected(&mut self, after: Duration) {
        self.connects.record(after);
    }

    /// Adds what another one counted.
    pub(super) fn merge(&mut self, other: Counts) {
        for (sum, count) in self.verdicts.iter_mut().zip(other.verdicts) {
            *sum += count;
        }
        self.connects.merge(&other.connects);
        self.resumed += other.resumed;
        self.failed_connects += other.failed_connects;
        self.lost_connections += other.lost_connections;
        self.reopened += other.reopened;
        self.unfinished += other.unfinished;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
        self.errors.merge(other.errors);
    }
}

/// Verdicts that one connection has met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u8);

impl Marks {
    pub(super) fn note(&mut self, verdict: Verdict) {
        self.0 |= 1 << verdict as u8;
    }

    fn has(self, verdict: Verdict) -> bool {
        self.0 & 1 << verdict as u8 != 0
    }
}

/// Connections by what they have met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// Everything that came was right, and something came.
    pub(super) all_right: u64,
    /// Connections of which at least one message was late, wrong, lost.
    pub(super) late: u64,
    pub(super) wrong: u64,
    pub(super) lost: u64,
    /// Connections on which nothing was due.
    pub(super) silent: u64,
}

impl Census {
    pub(super) fn of(marks: &[Marks]) -> Census {
        let with =
            |wanted: &dyn Fn(Marks) -> bool| marks.iter().filter(|m| wanted(**m)).count() as u64;
        let mut right = Marks::default();
        right.note(Verdict::Right);
        Census {
            all_right: with(&|marks| marks == right),
            late: with(&|marks| marks.has(Verdict::Late)),
            wrong: with(&|marks| marks.has(Verdict::Wrong)),
            lost: with(&|marks| marks.has(Verdict::Lost)),
            silent: with(&|marks| marks == Marks::default()),
        }
    }

    pub(super) fn add(&mut self, other: Census) {
        self.all_right += other.all_right;
        self.late += other.late;
        self.wrong += other.wrong;
        self.lost += other.lost;
        self.silent += other.silent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_verdict() {
        let (mut a, mut b) = (Counts::default(), Counts::default());
        a.judge(Verdict::Right, 5);
        b.judge(Verdict::Right, 1);
        b.judge(Verdict::Lost, 2);
        b.connect_failed(Fault::ended("x"));
        a.merge(b);
        assert_eq!(
            (a.of(Verdict::Right), a.of(Verdict::Lost), a.expected()),
            (6, 2, 8)
        );
        assert_eq!((a.failed_connects, a.errors.sorted()[0].count), (1, 1));
    }

    #[test]
    fn connections_are_counted_by_what_they_met() {
        let marks = |verdicts: &[Verdict]| {
            let mut marks = Marks::default();
            verdicts.iter().for_each(|verdict| marks.note(*verdict));
            marks
        };
        use Verdict::*;
        let all = [
            marks(&[Right]),
            marks(&[Right, Right]),
            marks(&[Right, Late]),
            marks(&[Wrong, Lost]),
            marks(&[]),
        ];
        let mut census = Census::of(&all);
        assert_eq!(
            census,
            Census {
                all_right: 2,
                late: 1,
                wrong: 1,
                lost: 1,
                silent: 1
            }
        );
        census.add(census);
        assert_eq!(census.all_right, 4);
    }
}
