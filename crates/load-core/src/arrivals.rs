//! Events that come when they come, whether or not anybody has time for them: the open loop.
//!
//! Each group draws its part of the arrivals itself, at exponential or even gaps along the profile
//! of the rate. An arrival that finds no idle connection waits in a queue; its clock runs from when
//! it came, which is its intended start. A full queue sheds the arrival: that is counted, and the
//! run goes on.
//!
//! Invariant: arrivals are never skipped because the group was late; they are handed out late, with
//! their own times.

use crate::durations::exponential;
use crate::random::Random;
use crate::rate_profile::RateProfile;
use reactor::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Distribution of the gaps between arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Gaps {
    /// At random: exponential gaps, as of many clients who know nothing of each other
    Poisson,
    /// Evenly
    Constant,
}

/// A group's arrivals, and its queue.
#[derive(Debug)]
pub struct Arrivals {
    profile: RateProfile,
    gaps: Gaps,
    /// The group's part of the rate, above 0 up to 1.
    part: f64,
    random: Random,
    began: Time,
    /// Seconds after `began`; `None` when no more come.
    next_s: Option<f64>,
    queue: VecDeque<Time>,
    queue_max: usize,
}

impl Arrivals {
    /// Arrivals along `profile`, of which this group gets `part`; [`Arrivals::start`] begins them.
    pub fn new(
        profile: RateProfile,
        gaps: Gaps,
        part: f64,
        queue_max: u32,
        random: Random,
    ) -> Self {
        Arrivals {
            profile,
            gaps,
            part,
            random,
            began: Time::NEVER,
            next_s: None,
            queue: VecDeque::new(),
            queue_max: queue_max as usize,
        }
    }

    /// Starts the arrivals. `offset` (0 to 1) is where in its first even gap this group starts, so
    /// that the even arrivals of several groups do not fall together.
    pub fn start(&mut self, now: Time, offset: f64) {
        self.began = now;
        let first = match self.gaps {
            Gaps::Poisson => exponential(&mut self.random),
            Gaps::Constant => offset,
        };
        self.next_s = self.profile.reach(0.0, first / self.part);
    }

    /// Ends arrivals; events that wait go on waiting.
    pub fn close(&mut self) {
        self.next_s = None;
    }

    /// Comes to an end: nobody arrives any more, and nobody waits.
    pub fn stop(&mut self) {
        self.next_s = None;
        self.queue.clear();
    }

    /// The intended start of the next arrival, if it has come.
    pub fn take(&mut self, now: Time) -> Option<Time> {
        let due = self.due();
        if due > now {
            return None;
        }
        let amount = match self.gaps {
            Gaps::Poisson => exponential(&mut self.random),
            Gaps::Constant => 1.0,
        };
        self.next_s = self
            .next_s
            .and_then(|next| self.profile.reach(next, amount / self.part));
        Some(due)
    }

    /// Moment of the next arrival.
    pub fn due(&self) -> Time {
        match self.next_s {
            Some(seconds) => self.began + Duration::from_secs_f64(seconds),
            None => Time::NEVER,
        }
    }

    /// Queues an arrival; false when there is no room.
    pub fn wait(&mut self, start: Time) -> bool {
        let has_room = self.queue.len() < self.queue_max;
        if has_room {
            self.queue.push_back(start);
        }
        has_room
    }

    /// The intended start of the one that has waited longest, who waits no more.
    pub fn next_in_queue(&mut self) -> Option<Time> {
        self.queue.pop_front()
    }

    /// Sends those away who have been waiting since before `time`; returns how many.
    pub fn expire(&mut self, time: Time) -> u64 {
        let mut expired = 0;
        while self.queue.front().is_some_and(|start| *start < time) {
            self.queue.pop_front();
            expired += 1;
        }
        expired
    }

    /// Number of events that wait.
    pub fn waiting(&self) -> u64 {
        self.queue.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time(7_000_000_000);

    fn arrivals(profile: &str, gaps: Gaps, part: f64) -> Arrivals {
        let random = Random::new(1, 2);
        let mut arrivals = Arrivals::new(profile.parse().unwrap(), gaps, part, 3, random);
        arrivals.start(START, 0.5);
        arrivals
    }

    fn taken(arrivals: &mut Arrivals, seconds: u64) -> Vec<f64> {
        let until = START + Duration::from_secs(seconds);
        std::iter::from_fn(|| arrivals.take(until))
            .map(|time| time.since(START).as_secs_f64())
            .collect()
    }

    #[test]
    fn even_arrivals_keep_their_distance() {
        let all = taken(&mut arrivals("100", Gaps::Constant, 0.5), 10);
        assert_eq!(all.len(), 500);
        assert!((all[0] - 0.01).abs() < 1e-6, "{}", all[0]);
        assert!(
            all.windows(2)
                .all(|pair| (pair[1] - pair[0] - 0.02).abs() < 1e-6)
        );
    }

    /// Gaps of a Poisson process have a deviation as large as their mean, and counts in equal times
    /// a variance as large as theirs.
    #[test]
    fn random_arrivals_are_a_poisson_process() {
        let all = taken(&mut arrivals("1000", Gaps::Poisson, 1.0), 100);
        let count = all.len() as f64;
        assert!((count - 1e5).abs() < 4.0 * 1e5f64.sqrt(), "{count}");
        let gaps: Vec<f64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>();
        let deviation = (square / gaps.len() as f64).sqrt();
        assert!(
            (deviation / mean - 1.0).abs() < 0.02,
            "{}",
            deviation / mean
        );
        let mut counts = vec![0f64; 1_000];
        for (tenth, count) in (0..).zip(&mut counts) {
            let here = |at: &&f64| (**at * 10.0).floor() == f64::from(tenth);
            *count = all.iter().filter(here).count() as f64;
        }
        let variance = counts.iter().map(|n| (n - 100.0).powi(2)).sum::<f64>() / 1e3;
        assert!((80.0..120.0).contains(&variance), "{variance}");
    }

    #[test]
    fn a_rate_that_ramps_is_followed() {
        for gaps in [Gaps::Constant, Gaps::Poisson] {
            let all = taken(&mut arrivals("0:0,10s:2000,10s:0", gaps, 1.0), 60);
            let early = all.iter().filter(|at| **at < 5.0).count();
            assert!(
                (9_600..10_400).contains(&all.len()),
                "{gaps:?}: {}",
                all.len()
            );
            assert!((2_300..2_700).contains(&early), "{gaps:?}: {early}");
        }
    }

    #[test]
    fn who_waits_keeps_his_time_and_a_full_line_sheds() {
        let mut arrivals = arrivals("1", Gaps::Constant, 1.0);
        for n in 0..3 {
            assert!(arrivals.wait(Time(n)));
        }
        assert!(!arrivals.wait(Time(3)), "there is room for three");
        assert_eq!(arrivals.next_in_queue(), Some(Time(0)));
        assert_eq!(arrivals.expire(Time(2)), 1);
        assert_eq!(arrivals.waiting(), 1);
        arrivals.stop();
        assert_eq!(arrivals.waiting(), 0);
        assert_eq!(arrivals.due(), Time::NEVER);
    }
}
