//! Answers and errors in steps of a tenth of a second, from which an outage is read.
//!
//! Each group counts by the machine's clock, so that the counts of all groups can be added. The
//! last [`STEPS_MAX`] steps are kept: a day.

use reactor::Time;
use std::collections::VecDeque;
use std::time::Duration;

const STEP_NS: u64 = 100_000_000;
/// Length of a step.
pub const STEP: Duration = Duration::from_nanos(STEP_NS);
/// Steps that are kept.
pub const STEPS_MAX: usize = 864_000;

/// Counts of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Statements that succeeded.
    pub answered: u32,
    /// Statements that failed or were given up, connections that were lost or not opened.
    pub errors: u32,
}

/// Counts by step.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// Number of the first step by the clock.
    first: u64,
    steps: VecDeque<Step>,
}

impl Steps {
    /// Counts a statement that succeeded.
    pub fn answered(&mut self, at: Time) {
        if let Some(step) = self.step(number(at)) {
            step.answered += 1;
        }
    }

    /// Counts an error.
    pub fn error(&mut self, at: Time) {
        if let Some(step) = self.step(number(at)) {
            step.errors += 1;
        }
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Steps) {
        for (number, step) in (other.first..).zip(&other.steps) {
            if *step == Step::default() {
                continue;
            }
            if let Some(own) = self.step(number) {
                own.answered += step.answered;
                own.errors += step.errors;
            }
        }
    }

    /// The whole steps between two moments, of those that are kept.
    pub fn between(&self, from: Time, to: Time) -> Vec<Step> {
        let from = number(from) + 1;
        let count = number(to).saturating_sub(from);
        let count = usize::try_from(count).unwrap_or(STEPS_MAX).min(STEPS_MAX);
        let last = number(to);
        let step = |number: u64| {
            let at = number.checked_sub(self.first)?;
            self.steps.get(usize::try_from(at).ok()?).copied()
        };
        let numbers = last - count as u64..last;
        numbers
            .map(|number| step(number).unwrap_or_default())
            .collect()
    }

    /// The step of this number; `None` if it is older than what is kept.
    fn step(&mut self, number: u64) -> Option<&mut Step> {
        if self.steps.is_empty() {
            self.first = number;
        }
        let span = self.first + self.steps.len() as u64;
        if number < self.first {
            let more = usize::try_from(self.first - number).unwrap_or(STEPS_MAX);
            if self.steps.len() + more > STEPS_MAX {
                return None;
            }
            (0..more).for_each(|_| self.steps.push_front(Step::default()));
            self.first = number;
        } else if number >= span + STEPS_MAX as u64 {
            self.steps.clear();
            self.first = number;
        }
        let at = usize::try_from(number - self.first).unwrap_or(STEPS_MAX);
        while self.steps.len() <= at {
            self.steps.push_back(Step::default());
        }
        let over = self.steps.len().saturating_sub(STEPS_MAX);
        self.steps.drain(..over);
        self.first += over as u64;
        self.steps.get_mut(at - over)
    }
}

fn number(at: Time) -> u64 {
    at.0 / STEP_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tenths: u64) -> Time {
        Time(tenths * STEP_NS + 7)
    }

    fn counts(steps: &[Step]) -> Vec<(u32, u32)> {
        steps
            .iter()
            .map(|step| (step.answered, step.errors))
            .collect()
    }

    #[test]
    fn groups_are_added_by_the_clock() {
        let (mut one, mut two) = (Steps::default(), Steps::default());
        one.answered(at(52));
        one.answered(at(52));
        one.error(at(54));
        two.answered(at(51));
        two.answered(at(54));
        one.merge(&two);
        assert_eq!(
            counts(&one.between(at(50), at(56))),
            [(1, 0), (2, 0), (0, 0), (1, 1), (0, 0)]
        );
        assert_eq!(counts(&one.between(at(53), at(53))), []);
        assert_eq!(counts(&Steps::default().between(at(1), at(3))), [(0, 0)]);
    }

    #[test]
    fn the_last_day_is_kept() {
        let mut steps = Steps::default();
        steps.answered(at(10));
        steps.answered(at(11));
        let most = STEPS_MAX as u64;
        steps.answered(at(10 + most));
        assert_eq!((steps.first, steps.steps.len()), (11, STEPS_MAX));
        steps.error(at(10));
        assert_eq!(steps.steps.len(), STEPS_MAX, "too old");
        assert_eq!(steps.between(at(9), at(11 + most)).len(), STEPS_MAX);
        steps.answered(at(10 + 9 * most));
        assert_eq!(steps.steps.len(), 1);
        steps.merge(&Steps::default());
        assert_eq!(steps.steps.len(), 1);
    }
}
