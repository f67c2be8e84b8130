//! Search for the number of statements to run at once: hill climbing on throughput.
//!
//! The problem: the number that makes a server fastest depends on its cores, its disks, its locks
//! and the statements. It differs from load to load and changes while they run. The mechanism is
//! that of the .NET thread pool's hill climbing (Hellerstein, Morrison, Eilebrecht: "Optimizing
//! concurrency levels in the .NET thread pool", 2008), with pairs of measurements in place of its
//! wave:
//! 1. Windows of time with the limit alternate with windows with another one ([`STEP`] more, or as
//!    much less), in the order A B B A, so that what drifts falls on both alike.
//! 2. After each pair the mean gain and its standard error say whether the other limit is better,
//!    not better, or whether another pair is needed, as long as [`CERTAIN`] goes. More has to bring
//!    [`WORTH`] of throughput; less may cost as much: without a gain fewer run.
//! 3. The better one becomes the limit. The next step goes on in its direction and is twice as
//!    large. Otherwise the step is small again, and the other direction has its turn.
//! 4. Where neither direction is better, the limit rests for [`REST_MIN`] windows, then twice as
//!    many, up to [`REST_MAX`]. So where nothing changes the comparisons cost little.
//!
//! A window in which statements did not wait says nothing of more at once. Fewer are tried then, as
//! long as the limit is above the number that the search began with: another load may have brought
//! it there. Where fewer suffice so that nobody waits, they become the limit, once in [`REST_MAX`]
//! windows, so that a lull does not undo what has been found. Below the number that it began with a
//! limit that nobody waits for stays: statements that come all at once would find it too low.
//!
//! Invariants: the limit and what it is compared with lie between one unit and the highest number;
//! both are multiples of the unit, unless they are the highest number.
//!
//! A gradient of latency (Netflix' concurrency-limits, Envoy's adaptive concurrency) was the other
//! candidate: see decision 0025.

use std::cmp::Ordering::{self, Equal, Greater, Less};

/// A first step, in percent: so many more, or as many less.
const STEP: usize = 25;

/// The largest one.
const STEP_MAX: usize = 100;

/// The share of throughput for which more run at once.
const WORTH: f64 = 0.01;

/// Pairs of windows after which a comparison can end.
const PAIRS_MIN: usize = 2;

/// Standard errors from which on a difference is one, after [`PAIRS_MIN`] pairs and after each
/// further one: the quantile of 90 % of Student's t-distribution, because few pairs say little of
/// the error itself.
const CERTAIN: [f64; 10] = [3.08, 1.89, 1.64, 1.53, 1.48, 1.44, 1.41, 1.40, 1.38, 1.37];

/// Standard errors from which on it is one after the last pair. Where the noise hides it, the limit
/// stays.
const LIKELY: f64 = 1.0;

/// The gains of pairs differ by at least so much, whatever few of them say.
const NOISE_MIN: f64 = 0.01;

/// Windows of rest.
const REST_MIN: u32 = 4;
const REST_MAX: u32 = 20;

/// Direction of the other limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    More,
    Fewer,
}

impl Direction {
    fn other(self) -> Direction {
        match self {
            Direction::More => Direction::Fewer,
            Direction::Fewer => Direction::More,
        }
    }

    /// The gain that the other limit must have.
    fn needed(self) -> f64 {
        match self {
            Direction::More => WORTH,
            Direction::Fewer => -WORTH,
        }
    }
}

/// Current step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    /// Nothing, for so many windows.
    Resting(u32),
    /// Comparison: the next window is of the limit (A), whose throughput is compared with that of
    /// `other` (B).
    Comparing {
        other: usize,
        /// Windows that have ended.
        windows: usize,
        /// The throughput of the first window of a pair.
        first: f64,
        /// Logarithms of B / A: their sum, and that of their squares.
        sum: f64,
        squares: f64,
    },
}

/// The controller. Time is what its caller makes of it: it sees windows.
#[derive(Debug)]
pub(crate) struct HillClimb {
    /// The least limit, of which others are multiples.
    unit: usize,
    highest: usize,
    /// Limit that the search began with.
    begins_with: usize,
    limit: usize,
    direction: Direction,
    /// Step in percent.
    step: usize,
    /// Directions in which a small step has brought nothing, since one did.
    in_vain: u32,
    rest: u32,
    doing: Doing,
}

impl HillClimb {
    /// Begins with a limit; what is found lies between `unit` and `highest`.
    pub(crate) fn new(unit: usize, highest: usize, limit: usize) -> HillClimb {
        let mut climb = HillClimb {
            unit,
            highest,
            begins_with: limit,
            limit,
            direction: Direction::More,
            step: STEP,
            in_vain: 0,
            rest: REST_MIN,
            doing: Doing::Resting(1),
        };
        climb.bound(highest);
        climb
    }

    /// Sets another highest number.
    pub(crate) fn bound(&mut self, highest: usize) {
        let highest = highest.max(self.unit);
        if (highest, self.limit.clamp(self.unit, highest)) != (self.highest, self.limit) {
            self.highest = highest;
            self.limit = self.limit.clamp(self.unit, highest);
            self.compare();
        }
    }

    /// Statements that may run at once in the window that begins.
    pub(crate) fn running_max(&self) -> usize {
        match self.doing {
            // A B B A.
            Doing::Comparing { other, windows, .. } if matches!(windows % 4, 1 | 2) => other,
            _ => self.limit,
        }
    }

    /// Takes the throughput of a complete window, in statements a second; `is_limited`: others
    /// waited.
    pub(crate) fn window_ended(&mut self, throughput: f64, is_limited: bool) {
        match self.doing {
            Doing::Resting(windows) if windows > 1 => self.doing = Doing::Resting(windows - 1),
            Doing::Resting(_) => self.compare(),
            Doing::Comparing { .. } if is_limited => self.take(throughput),
            Doing::Comparing { other, .. } => self.take_of_few(throughput, other),
        }
    }

    /// Takes the throughput of a window of a comparison in which nobody waited.
    fn take_of_few(&mut self, throughput: f64, other: usize) {
        let is_other = self.running_max() != self.limit;
        let is_above = self.limit > self.begins_with;
        match (self.direction, is_other) {
            // With a higher limit they need not wait, which is what it is for.
            (Direction::More, true) => self.take(throughput),
            (Direction::More, false) if is_above => {
                self.direction = Direction::Fewer;
                self.compare();
            }
            // So many run as there are; fewer at once may serve them faster.
            (Direction::Fewer, false) if is_above => self.take(throughput),
            (Direction::Fewer, true) if is_above => {
                self.limit = other.max(self.begins_with);
                self.step = (self.step * 2).min(STEP_MAX);
                self.doing = Doing::Resting(REST_MAX);
            }
            (Direction::More | Direction::Fewer, _) => self.compare(),
        }
    }

    /// The limit that this one is compared with.
    fn other(&self) -> usize {
        let limit = self.limit;
        match self.direction {
            Direction::More => {
                let more = limit * (100 + self.step) / 100;
                self.nearest(more).max(limit + self.unit).min(self.highest)
            }
            Direction::Fewer => {
                let fewer = limit * 100 / (100 + self.step);
                let less = limit.saturating_sub(self.unit);
                self.nearest(fewer).min(less).max(self.unit)
            }
        }
    }

    fn nearest(&self, number: usize) -> usize {
        (number + self.unit / 2) / self.unit * self.unit
    }

    /// Begins a comparison, in another direction if there is no other limit in this one.
    fn compare(&mut self) {
        let mut other = self.other();
        if other == self.limit {
            self.direction = self.direction.other();
            other = self.other();
        }
        self.doing = Doing::Comparing {
            other,
            windows: 0,
            first: 0.0,
            sum: 0.0,
            squares: 0.0,
        };
    }

    /// Takes the throughput of a window of a comparison.
    fn take(&mut self, throughput: f64) {
        let Doing::Comparing {
            other,
            windows,
            first,
            sum,
            squares,
        } = &mut self.doing
        else {
            return;
        };
        let throughput = throughput.max(1.0);
        *windows += 1;
        let gain = match *windows % 4 {
            1 | 3 => {
                *first = throughput;
                return;
            }
            // A B, then B A.
            2 => (throughput / *first).ln(),
            _ => (*first / throughput).ln(),
        };
        *sum += gain;
        *squares += gain * gain;
        let (other, pairs) = (*other, *windows / 2);
        match verdict(pairs, *sum, *squares, self.direction.needed()) {
            Greater => {
                self.limit = other;
                self.step = (self.step * 2).min(STEP_MAX);
                (self.in_vain, self.rest) = (0, REST_MIN);
                self.compare();
            }
            Less => self.turn_back(),
            Equal => {}
        }
    }

    /// Turns to the other direction, or rests, after a limit that was not better.
    fn turn_back(&mut self) {
        if self.step > STEP {
            self.step = STEP;
            return self.compare();
        }
        self.direction = self.direction.other();
        self.in_vain += 1;
        if self.in_vain < 2 {
            return self.compare();
        }
        self.in_vain = 0;
        self.doing = Doing::Resting(self.rest);
        self.rest = (self.rest * 2).min(REST_MAX);
    }
}

/// True if the mean gain of pairs is more than what is `needed`, or less, or not known yet.
fn verdict(pairs: usize, sum: f64, squares: f64, needed: f64) -> Ordering {
    if pairs < PAIRS_MIN {
        return Equal;
    }
    let count = pairs as f64;
    let mean = sum / count;
    let variance = (squares - sum * mean).max(0.0) / (count - 1.0);
    let error = variance.sqrt().max(NOISE_MIN) / count.sqrt();
    let above = mean - needed;
    match CERTAIN.get(pairs - PAIRS_MIN) {
        Some(certain) if above.abs() <= certain * error => Equal,
        Some(_) if above > 0.0 => Greater,
        None if above > LIKELY * error => Greater,
        Some(_) | None => Less,
    }
}

#[cfg(test)]
mod tests;
