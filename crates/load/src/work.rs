//! State of a group's model of load: idle connections, timers, arrivals.
//!
//! Invariants: a resting connection stands in `idle` or has a timer, never both; a watched one has
//! one timer for its patience. Who begins when is the group's to decide.

use load_core::arrivals::Arrivals;
use load_core::control::Part;
use load_core::model::{Loop, Model};
use load_core::random::Random;
use load_core::rate_profile::RateProfile;
use load_core::timers::Timers;
use reactor::{Key, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// Interval at which the number of connections is adjusted while it changes.
pub(crate) const STAGE_STEP: Duration = Duration::from_millis(10);

/// Purpose of a connection's timer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Why {
    /// End of its pause.
    Pause,
    /// End of the connection's patience.
    Patience,
    /// End of its life.
    Lifetime,
}

/// State of a group's model of load.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) part: Part,
    pub(crate) is_closed: bool,
    /// Connections that work at a time, with `--active`.
    pub(crate) active: Option<u32>,
    pub(crate) arrivals: Option<Arrivals>,
    /// Connections that rest and may begin at once, the one that has rested longest first.
    pub(crate) idle: VecDeque<Key>,
    pub(crate) timers: Timers<(Key, Why)>,
    /// Connections of all groups that are to be open, where that is an order.
    pub(crate) users: Option<u32>,
    /// Connections that leave as soon as they are at rest.
    pub(crate) surplus: u32,
    pub(crate) began: Option<Time>,
    /// Seconds of execution for which the stages have been followed.
    pub(crate) staged_s: f64,
    pub(crate) random: Random,
    /// Events that were given up and have not begun again.
    pub(crate) repeating: u32,
}

impl Work {
    /// Work of a group with this part of the run, and this many connections of its own.
    pub(crate) fn new(model: &Model, part: Part, connections: u32, seed: u64) -> Work {
        // Connections count up from 0; groups count down from the end, so that none share numbers.
        let random = Random::new(seed, u64::MAX - u64::from(part.group));
        let arrivals = match &model.drive {
            Loop::Open {
                rate,
                gaps,
                queue_max,
            } => {
                let share = f64::from(connections) / f64::from(part.connections);
                let line_max = part.of(*queue_max);
                Some(Arrivals::new(rate.clone(), *gaps, share, line_max, random))
            }
            _ => None,
        };
        Work {
            part,
            is_closed: matches!(model.drive, Loop::Closed),
            active: match model.drive {
                Loop::Active(active) => Some(part.of(active)),
                _ => None,
            },
            arrivals,
            idle: VecDeque::new(),
            timers: Timers::default(),
            users: None,
            surplus: 0,
            began: None,
            staged_s: 0.0,
            random,
            repeating: 0,
        }
    }

    /// The intended start of an event that a connection at rest is to begin at once; the closed
    /// loop asks elsewhere whether there is one.
    pub(crate) fn next_start(&mut self, now: Time) -> Option<Time> {
        if self.surplus > 0 {
            return None;
        }
        match &mut self.arrivals {
            Some(arrivals) => arrivals.next_in_queue(),
            None => self.is_closed.then_some(now),
        }
    }

    /// Events that have arrived and wait for an idle connection.
    pub(crate) fn waiting(&self) -> u64 {
        self.arrivals.as_ref().map_or(0, Arrivals::waiting)
    }

    /// True when no event waits to begin or to begin again.
    pub(crate) fn is_done(&self) -> bool {
        self.waiting() == 0 && self.repeating == 0
    }

    /// Connections whose patience is looked after.
    pub(crate) fn watched(&self) -> impl Iterator<Item = Key> {
        self.timed(|why| matches!(why, Why::Patience))
    }

    /// Connections that begin when their pause is over.
    pub(crate) fn pausing(&self) -> impl Iterator<Item = Key> {
        self.timed(|why| matches!(why, Why::Pause))
    }

    fn timed(&self, is_meant: fn(&Why) -> bool) -> impl Iterator<Item = Key> {
        let meant = self.timers.iter().filter(move |(_, why)| is_meant(why));
        meant.map(|(key, _)| *key)
    }

    /// Closes the arrivals, all events having arrived.
    pub(crate) fn close(&mut self) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.close();
        }
    }

    /// Lets no more events begin, also none of those that wait.
    pub(crate) fn stop(&mut self) {
        self.idle.clear();
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.stop();
        }
    }

    /// True until the last stage has been followed, however late that is.
    pub(crate) fn has_stages_left(&self, model: &Model) -> bool {
        let end = model.stages.as_ref().map(RateProfile::end);
        self.began.is_some() && end.is_some_and(|end| self.staged_s <= end)
    }

    /// Moment at which some of it is due.
    pub(crate) fn due(&self, model: &Model, now: Time) -> Time {
        let stage = match self.has_stages_left(model) {
            true => now + STAGE_STEP,
            false => Time::NEVER,
        };
        let arrival = self.arrivals.as_ref().map_or(Time::NEVER, Arrivals::due);
        self.timers.next_due().min(arrival).min(stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load_core::durations::Spread;

    /// A group that gets no processor while its last stage passes must follow it all the same.
    #[test]
    fn the_last_stage_is_followed_however_late() {
        let model = Model {
            drive: Loop::Closed,
            stages: Some("0:10,1s:10,1s:2".parse().unwrap()),
            lifetime: None,
            give_up: None,
            retries: None,
            retry_pause: Spread::Fixed(Duration::ZERO),
            in_time: None,
        };
        let part = Part {
            group: 0,
            groups: 1,
            connections: 10,
        };
        let mut work = Work::new(&model, part, 10, 1);
        let late = Time(0) + Duration::from_secs(100);
        assert_eq!(work.due(&model, late), Time::NEVER, "it has not begun");
        work.began = Some(Time(0));
        work.staged_s = 0.9;
        assert_eq!(work.due(&model, late), late + STAGE_STEP);
        work.staged_s = 100.0;
        assert_eq!(work.due(&model, late), Time::NEVER);
    }
}
