//! An outage, as the clients saw it, in steps of a tenth of a second.
//!
//! It begins with the longest time without an answer, if that is [`GAP_MIN`] at least, or a little
//! before with its errors; else with the first error. It is over when a second's rate is 95 % of
//! the rate before. All of it is computed from the counts of the steps alone.

use load_core::steps::{STEP, Step};
use serde::{Deserialize, Serialize};

/// Shortest time without an answer that an outage is told by, in steps.
const GAP_MIN: usize = 5;
/// Steps before such a gap in which an error belongs to it.
const ERRORS_BEFORE: usize = 20;
/// Steps of which the rate before is the mean, at most and at least.
const BEFORE_MAX: usize = 100;
const BEFORE_MIN: usize = 10;
/// Steps of which the rate after is the mean.
const AFTER: usize = 10;
/// Share of the rate before that has to be reached.
const RECOVERED: f64 = 0.95;
/// Steps that are shown around an outage: on each side, and in all.
const SHOWN_AROUND: usize = 30;
const SHOWN_MAX: usize = 600;

/// Errors, gaps, and the return to the rate before. Times are in seconds since measuring began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outage {
    /// First error of the measured time.
    pub first_error_s: Option<f64>,
    /// Last one.
    pub last_error_s: Option<f64>,
    /// Longest time without an answer, after the first one.
    pub longest_gap_s: f64,
    /// Its beginning.
    pub gap_from_s: Option<f64>,
    /// Beginning of the outage; null if there was none.
    pub began_s: Option<f64>,
    /// Statements that succeeded each second before it; null in the first second.
    pub before_per_s: Option<f64>,
    /// Time until a second's rate was 95 % of that; null if it never was.
    pub recovered_s: Option<f64>,
    /// The outage step by step.
    pub steps: Vec<Shown>,
}

/// Counts of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// Its beginning.
    pub t_s: f64,
    /// Statements that succeeded.
    pub answered: u32,
    /// See [`Step::errors`].
    pub errors: u32,
}

impl Outage {
    /// Reads the steps of the measured time.
    pub(crate) fn of(steps: &[Step]) -> Outage {
        let is_error = |step: &Step| step.errors > 0;
        let first_error = steps.iter().position(is_error);
        let (gap_from, gap) = longest_gap(steps);
        let mut outage = Outage {
            first_error_s: first_error.map(seconds),
            last_error_s: steps.iter().rposition(is_error).map(seconds),
            longest_gap_s: seconds(gap),
            gap_from_s: (gap > 0).then(|| seconds(gap_from)),
            ..Outage::default()
        };
        let (began, back) = if gap >= GAP_MIN {
            let near = gap_from.saturating_sub(ERRORS_BEFORE)..gap_from;
            let error = near.into_iter().find(|at| is_error(&steps[*at]));
            (error.unwrap_or(gap_from), gap_from + gap)
        } else if let Some(error) = first_error {
            (error, error)
        } else {
            return outage;
        };
        outage.began_s = Some(seconds(began));
        let before = &steps[began.saturating_sub(BEFORE_MAX)..began];
        let mut end = steps.len();
        if before.len() >= BEFORE_MIN {
            let wanted = mean(before) * RECOVERED;
            let after = steps[back..].windows(AFTER);
            let recovered = after.map(mean).position(|rate| rate >= wanted);
            outage.before_per_s = Some(mean(before) / STEP.as_secs_f64());
            outage.recovered_s = recovered.map(|steps| seconds(back + steps - began));
            end = recovered.map_or(end, |steps| back + steps + SHOWN_AROUND);
        }
        let from = began.saturating_sub(SHOWN_AROUND);
        let shown = steps
            .iter()
            .enumerate()
            .take(end)
            .skip(from)
            .take(SHOWN_MAX);
        outage.steps = shown
            .map(|(at, step)| Shown {
                t_s: seconds(at),
                answered: step.answered,
                errors: step.errors,
            })
            .collect();
        outage
    }

    /// Adds what another machine saw: the longer gap stands.
    pub(crate) fn merge(&mut self, other: Outage) {
        let errors = [self.first_error_s, other.first_error_s]
            .into_iter()
            .flatten();
        let first = errors.reduce(f64::min);
        let last = self.last_error_s.max_with(other.last_error_s);
        if (other.began_s.is_some(), other.longest_gap_s)
            > (self.began_s.is_some(), self.longest_gap_s)
        {
            *self = other;
        }
        (self.first_error_s, self.last_error_s) = (first, last);
    }

    /// The line for people, where there was an outage.
    pub(crate) fn text(&self) -> Option<String> {
        self.began_s?;
        let mut text = String::from("outage: ");
        if let (Some(first), Some(last)) = (self.first_error_s, self.last_error_s) {
            text += &format!("first error after {first:.1} s, last after {last:.1} s; ");
        }
        text += &format!("longest time without an answer {:.1} s", self.longest_gap_s);
        if let Some(from) = self.gap_from_s {
            text += &format!(" from {from:.1} s on");
        }
        if let Some(before) = self.before_per_s {
            text += &match self.recovered_s {
                Some(after) => format!("; 95 % of {before:.0} per second again after {after:.1} s"),
                None => format!("; 95 % of {before:.0} per second was not reached again"),
            };
        }
        Some(text)
    }
}

trait MaxWith {
    fn max_with(self, other: Self) -> Self;
}

impl MaxWith for Option<f64> {
    fn max_with(self, other: Self) -> Self {
        [self, other].into_iter().flatten().reduce(f64::max)
    }
}

/// Beginning and length of the longest run of steps without an answer, behind the first answer.
fn longest_gap(steps: &[Step]) -> (usize, usize) {
    let is_silent = |step: &Step| step.answered == 0;
    let mut at = steps
        .iter()
        .position(|step| !is_silent(step))
        .unwrap_or(steps.len());
    let mut longest = (at, 0);
    for run in steps[at..].chunk_by(|one, next| is_silent(one) == is_silent(next)) {
        if is_silent(&run[0]) && run.len() > longest.1 {
            longest = (at, run.len());
        }
        at += run.len();
    }
    longest
}

/// Answers of a step.
fn mean(steps: &[Step]) -> f64 {
    let sum: u64 = steps.iter().map(|step| u64::from(step.answered)).sum();
    sum as f64 / steps.len() as f64
}

fn seconds(steps: usize) -> f64 {
    (steps as f64 * STEP.as_secs_f64() * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of so many answers each, with an error where the second is 1.
    fn steps(parts: &[(usize, u32, u32)]) -> Vec<Step> {
        let part = |&(count, answered, errors): &(usize, u32, u32)| {
            std::iter::repeat_n(Step { answered, errors }, count)
        };
        parts.iter().flat_map(part).collect()
    }

    #[test]
    fn a_server_that_was_away_is_told_by_gap_errors_and_recovery() {
        // 4 s of 100, errors for 0.2 s, 2.8 s of silence, 0.5 s of half the rate, then all of it.
        let seen = Outage::of(&steps(&[
            (40, 100, 0),
            (2, 20, 3),
            (28, 0, 0),
            (5, 50, 0),
            (1, 0, 1),
            (40, 100, 0),
        ]));
        assert_eq!(
            (seen.first_error_s, seen.last_error_s),
            (Some(4.0), Some(7.5))
        );
        assert_eq!((seen.longest_gap_s, seen.gap_from_s), (2.8, Some(4.2)));
        assert_eq!(
            (seen.began_s, seen.before_per_s),
            (Some(4.0), Some(1_000.0))
        );
        assert_eq!(seen.recovered_s, Some(3.6));
        assert_eq!(seen.steps[0].t_s, 1.0);
        assert_eq!(seen.steps.len(), 30 + 36 + 30);
        let text = seen.text().unwrap();
        assert_eq!(
            text,
            "outage: first error after 4.0 s, last after 7.5 s; longest time without an answer \
             2.8 s from 4.2 s on; 95 % of 1000 per second again after 3.6 s"
        );
    }

    #[test]
    fn a_rate_that_never_comes_back_is_said() {
        let seen = Outage::of(&steps(&[(20, 100, 0), (5, 0, 0), (200, 94, 0)]));
        assert_eq!((seen.first_error_s, seen.began_s), (None, Some(2.0)));
        assert_eq!(seen.recovered_s, None);
        assert!(
            seen.text()
                .unwrap()
                .ends_with("; 95 % of 1000 per second was not reached again")
        );
        let cut = Outage::of(&steps(&[(20, 100, 0), (30, 0, 9)]));
        assert_eq!((cut.longest_gap_s, cut.recovered_s), (3.0, None));
    }

    #[test]
    fn errors_without_a_gap_begin_an_outage_of_the_rate() {
        let seen = Outage::of(&steps(&[
            (20, 100, 0),
            (1, 100, 1),
            (20, 50, 0),
            (20, 100, 0),
        ]));
        assert_eq!((seen.began_s, seen.recovered_s), (Some(2.0), Some(2.0)));
        let harmless = Outage::of(&steps(&[(20, 100, 0), (1, 100, 1), (20, 100, 0)]));
        assert_eq!(harmless.recovered_s, Some(0.0));
        let early = Outage::of(&steps(&[(3, 100, 0), (1, 100, 1), (20, 100, 0)]));
        assert_eq!((early.before_per_s, early.recovered_s), (None, None));
    }

    #[test]
    fn short_pauses_and_a_slow_beginning_are_no_outage() {
        let seen = Outage::of(&steps(&[(30, 0, 0), (20, 100, 0), (4, 0, 0), (20, 100, 0)]));
        assert_eq!((seen.longest_gap_s, seen.began_s), (0.4, None));
        assert_eq!(seen.text(), None);
        assert_eq!(Outage::of(&[]), Outage::default());
        assert_eq!(Outage::of(&steps(&[(9, 0, 0)])).longest_gap_s, 0.0);
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let seen = Outage::of(&steps(&[(50, 9, 0), (2_000, 0, 1)]));
        assert_eq!(seen.steps.len(), SHOWN_MAX);
        assert_eq!(seen.steps[0].t_s, 2.0);
    }

    #[test]
    fn of_several_machines_the_longer_gap_stands() {
        let mut one = Outage::of(&steps(&[(20, 100, 0), (6, 0, 1), (20, 100, 0)]));
        let two = Outage::of(&steps(&[(10, 100, 0), (9, 0, 1), (20, 100, 0)]));
        one.merge(two.clone());
        assert_eq!(
            (one.first_error_s, one.last_error_s),
            (Some(1.0), Some(2.5))
        );
        assert_eq!((one.longest_gap_s, one.recovered_s), (0.9, two.recovered_s));
        one.merge(Outage::default());
        assert_eq!(one.longest_gap_s, 0.9);
    }
}
