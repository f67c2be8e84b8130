//! A number that may change over a run: how many events a second, or how many connections.
//!
//! Written as one number, or as stages `TIME:NUMBER,TIME:NUMBER,...`: the number moves in a
//! straight line from one stage to the next, and stays what the last one says. Two stages at one
//! time are a step. Times count from the start of execution.

use crate::durations::parse_length;
use std::str::FromStr;
use std::time::Duration;

/// The largest number that is taken.
const HIGHEST: f64 = 1e9;

/// A number over time.
#[derive(Clone, Debug, PartialEq)]
pub struct RateProfile {
    /// Seconds and number; at least one, the first at 0, in order of time.
    points: Vec<(f64, f64)>,
}

impl RateProfile {
    /// The number at `seconds`.
    pub fn at(&self, seconds: f64) -> f64 {
        let after = self.points.partition_point(|(time, _)| *time <= seconds);
        let (from, number) = self.points[after.saturating_sub(1)];
        match self.points.get(after) {
            Some((to, next)) => number + (next - number) * (seconds - from) / (to - from),
            None => number,
        }
    }

    /// The largest number.
    pub fn highest(&self) -> f64 {
        self.points.iter().map(|p| p.1).fold(0.0, f64::max)
    }

    /// Time of the number's last change, in seconds.
    pub fn end(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.0)
    }

    /// Time at which the area below the profile, from `seconds` on, is `amount`; `None` if it never
    /// is.
    ///
    /// With `amount` 1 for even and an exponential number for random arrivals, this is when the
    /// next one comes, exactly, also while the rate changes.
    pub fn reach(&self, seconds: f64, amount: f64) -> Option<f64> {
        let (mut from, mut left) = (seconds, amount);
        let after = self.points.partition_point(|(time, _)| *time <= from);
        let mut number = self.at(from);
        for (to, next) in &self.points[after..] {
            let length = to - from;
            let area = (number + next) / 2.0 * length;
            if area >= left && area > 0.0 {
                let slope = (next - number) / length;
                let root = (number * number + 2.0 * slope * left).max(0.0).sqrt();
                return Some((from + 2.0 * left / (number + root)).min(*to));
            }
            left -= area;
            (from, number) = (*to, *next);
        }
        (number > 0.0).then(|| from + left / number)
    }
}

impl FromStr for RateProfile {
    type Err = String;

    fn from_str(text: &str) -> Result<RateProfile, String> {
        let number = |text: &str| {
            let number: f64 = text.parse().ok()?;
            (0.0..=HIGHEST).contains(&number).then_some(number)
        };
        if let Some(number) = number(text) {
            let points = vec![(0.0, number)];
            return Ok(RateProfile { points });
        }
        let mut points = Vec::new();
        for stage in text.split(',') {
            let wrong =
                || format!("'{stage}' is no stage; write TIME:NUMBER, as in 0:100,60s:10000");
            let (time, value) = stage.split_once(':').ok_or_else(wrong)?;
            let time: Duration = parse_length(time)?;
            points.push((time.as_secs_f64(), number(value).ok_or_else(wrong)?));
        }
        if points[0].0 > 0.0 {
            return Err(format!(
                "'{text}': the first stage is at time 0, as in 0:100"
            ));
        }
        if points.windows(2).any(|pair| pair[0].0 > pair[1].0) {
            return Err(format!("'{text}': stages stand in order of time"));
        }
        Ok(RateProfile { points })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> RateProfile {
        text.parse().unwrap()
    }

    #[test]
    fn stages_are_joined_by_straight_lines() {
        let ramp = profile("0:100,60s:1000,60s:50,2m:50,3m:0");
        for (seconds, number) in [
            (0.0, 100.0),
            (30.0, 550.0),
            (60.0, 50.0),
            (90.0, 50.0),
            (150.0, 25.0),
            (500.0, 0.0),
        ] {
            assert_eq!(ramp.at(seconds), number, "at {seconds} s");
        }
        assert_eq!((ramp.highest(), ramp.end()), (1_000.0, 180.0));
        assert_eq!(profile("250").at(7.0), 250.0);
    }

    #[test]
    fn the_area_is_followed_through_all_stages() {
        let flat = profile("100");
        assert_eq!(flat.reach(2.0, 50.0), Some(2.5));
        let ramp = profile("0:0,10s:100,10s:0,20s:0,20s:10");
        // Half the height holds a quarter of the area, 500.
        let half = ramp.reach(0.0, 125.0).unwrap();
        assert!((half - 5.0).abs() < 1e-9, "{half}");
        assert_eq!(ramp.reach(0.0, 510.0), Some(21.0));
        assert_eq!(ramp.reach(12.0, 5.0), Some(20.5));
        assert_eq!(profile("0:10,1s:0").reach(0.0, 6.0), None);
        assert_eq!(profile("0").reach(0.0, 1.0), None);
    }

    #[test]
    fn a_ramp_down_is_solved_on_its_falling_side() {
        let down = profile("0:100,10s:0");
        let reached = down.reach(0.0, 375.0).unwrap();
        assert!((reached - 5.0).abs() < 1e-9, "{reached}");
    }

    #[test]
    fn what_is_no_profile_is_refused_with_an_example() {
        for (text, words) in [
            ("much", "TIME:NUMBER"),
            ("0:1,5s", "TIME:NUMBER"),
            ("0:-1", "TIME:NUMBER"),
            ("5s:1", "at time 0"),
            ("0:1,5s:2,4s:3", "in order"),
            ("0:1,5x:2", "250ms"),
            ("-5", "TIME:NUMBER"),
        ] {
            let error = text.parse::<RateProfile>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
