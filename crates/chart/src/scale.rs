//! The arithmetic of a chart's axes: values to pixels, ticks, and labels that do not overlap.
//!
//! Everything is a pure function of finite numbers, so a chart with one point, equal points or a
//! single rung comes out whole: an axis whose ends would coincide is widened first, and a
//! logarithmic axis never sees a number that is not positive.

/// An axis: a range of values on a range of pixels.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    logarithmic: bool,
    low: f64,
    high: f64,
    from_px: f64,
    to_px: f64,
}

impl Scale {
    /// Even steps from `low` at `from_px` to `high` at `to_px`.
    #[must_use]
    pub fn linear(low: f64, high: f64, from_px: f64, to_px: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            logarithmic: false,
            low,
            high,
            from_px,
            to_px,
        }
    }

    /// Even steps for even ratios; both ends must be positive.
    #[must_use]
    pub fn logarithmic(low: f64, high: f64, from_px: f64, to_px: f64) -> Self {
        // A single value stands in the middle.
        let (low, high) = if high > low {
            (low, high)
        } else {
            (low / 10.0, low * 10.0)
        };
        Self {
            logarithmic: true,
            low: low.log10(),
            high: high.log10(),
            from_px,
            to_px,
        }
    }

    /// Position of a value in pixels. Values beyond the ends are put on the end.
    #[must_use]
    pub fn px(&self, value: f64) -> f64 {
        let value = if self.logarithmic {
            value.max(1e-9).log10()
        } else {
            value
        };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from_px + share * (self.to_px - self.from_px)
    }
}

/// Round ticks from 0 to at least `most`: about five, in steps of 1, 2 or 5 times a power of ten.
#[must_use]
pub fn linear_ticks(most: f64) -> Vec<f64> {
    let most = if most > 0.0 { most } else { 1.0 };
    let rough = most / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let step = step
        .into_iter()
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let mut ticks = vec![0.0];
    let mut count = 0.0;
    while count * step < most * 0.999 {
        count += 1.0;
        ticks.push(count * step);
    }
    ticks
}

/// Powers of `base` that enclose both values; every second, third ... if there would be too many.
#[must_use]
pub fn power_ticks(least: f64, most: f64, base: f64) -> Vec<f64> {
    const TICKS_MAX: f64 = 8.0;
    let low = (least.log(base) + 1e-9).floor();
    let high = (most.log(base) - 1e-9).ceil().max(low + 1.0);
    let stride = ((high - low) / TICKS_MAX).ceil();
    let mut ticks = vec![base.powf(low)];
    let mut power = low;
    while power < high {
        power += stride;
        ticks.push(base.powf(power));
    }
    ticks
}

/// Moves wanted places apart until each has `gap` to the next, within `low..=high` if they fit.
/// Gives the places in the order of the input.
#[must_use]
pub fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut places = wanted.to_vec();
    let mut bound = low;
    for &at in &order {
        places[at] = places[at].max(bound);
        bound = places[at] + gap;
    }
    let mut bound = high;
    for &at in order.iter().rev() {
        places[at] = places[at].min(bound);
        bound = places[at] - gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_go_to_the_ends() {
        let scale = Scale::linear(0.0, 20.0, 300.0, 100.0);
        assert_eq!(
            [0.0, 10.0, 20.0, 99.0].map(|v| scale.px(v)),
            [300.0, 200.0, 100.0, 100.0]
        );
        let scale = Scale::logarithmic(100.0, 10_000.0, 0.0, 200.0);
        assert_eq!(
            [100.0, 1_000.0, 0.0].map(|value| scale.px(value)),
            [0.0, 100.0, 0.0]
        );
    }

    #[test]
    fn a_single_value_stands_in_the_middle() {
        let scale = Scale::logarithmic(1_000.0, 1_000.0, 0.0, 200.0);
        assert_eq!(scale.px(1_000.0), 100.0);
        assert!(Scale::linear(0.0, 0.0, 0.0, 200.0).px(0.0).is_finite());
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            linear_ticks(17_950.0),
            [0.0, 5_000.0, 10_000.0, 15_000.0, 20_000.0]
        );
        assert_eq!(linear_ticks(10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(linear_ticks(0.0).first(), Some(&0.0));
        assert_eq!(
            power_ticks(4.1, 8_402.0, 10.0),
            [1.0, 10.0, 100.0, 1_000.0, 10_000.0]
        );
        assert_eq!(power_ticks(1_000.0, 1_000.0, 10.0).len(), 2);
        assert!(power_ticks(1.0, 1e12, 4.0).len() <= 10);
    }

    #[test]
    fn labels_keep_their_distance() {
        assert_eq!(
            spread(&[50.0, 10.0, 52.0], 15.0, 0.0, 100.0),
            [50.0, 10.0, 65.0]
        );
        assert_eq!(spread(&[99.0, 98.0], 15.0, 0.0, 100.0), [100.0, 85.0]);
        assert!(spread(&[], 15.0, 0.0, 100.0).is_empty());
    }
}
