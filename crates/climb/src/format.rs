//! Numbers for people, in the terminal table and on the page.
//!
//! The same figure must look the same wherever it stands, so every writer of text takes its numbers
//! from here. Counts carry thousands separators; measured values carry three significant digits,
//! because a run on a shared machine does not repeat better than that; memory is in binary units.
//! Nothing here prints `NaN` or `inf`: a value that is not finite is written as a dash.

use measure::number::separated;
pub(crate) use measure::number::thousands;

/// Text where there is no figure.
pub(crate) const ABSENT: &str = "-";

/// A rate or another large measured number, rounded to an integer: `13900.4` is `13,900`.
pub(crate) fn whole(value: f64) -> String {
    if value.is_finite() {
        separated(&format!("{value:.0}"))
    } else {
        ABSENT.to_owned()
    }
}

/// Three significant digits: `0.412`, `6.91`, `14.8`, `812`, `3,681`.
pub(crate) fn figure(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        ABSENT.to_owned()
    } else if size < 1.0 {
        format!("{value:.3}")
    } else if size < 9.995 {
        format!("{value:.2}")
    } else if size < 99.95 {
        format!("{value:.1}")
    } else {
        whole(value)
    }
}

/// Number with this many decimals: `1.42`.
fn decimals(value: f64, places: usize) -> String {
    if value.is_finite() {
        format!("{value:.places$}")
    } else {
        ABSENT.to_owned()
    }
}

/// A ratio with two decimals: `1.42`.
pub(crate) fn ratio(value: f64) -> String {
    decimals(value, 2)
}

/// A ratio that says so: `1.42 x`.
pub(crate) fn times(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.2} x")
    } else {
        ABSENT.to_owned()
    }
}

/// Seconds: `0.03`, `2.50`, `25.0`.
pub(crate) fn seconds(value: f64) -> String {
    decimals(value, if value < 9.995 { 2 } else { 1 })
}

/// Memory in binary units: `412 B`, `1.90 KiB`, `54.0 KiB`, `3.20 GiB`.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= 1023.5 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let number = if unit == 0 {
        whole(scaled)
    } else {
        figure(scaled)
    };
    format!("{number} {}", UNITS[unit])
}

/// Applies a writer to a figure that may be missing.
pub(crate) fn or_absent(value: Option<f64>, write: fn(f64) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        assert_eq!(whole(-13_900.4), "-13,900");
    }

    #[test]
    fn measured_values_have_three_digits() {
        let texts: Vec<_> = [0.4123, 6.914, 9.999, 14.81, 812.3, 3_681.4]
            .map(figure)
            .into();
        assert_eq!(texts, ["0.412", "6.91", "10.0", "14.8", "812", "3,681"]);
    }

    #[test]
    fn memory_has_binary_units() {
        let texts: Vec<_> = [412.0, 1_945.6, 55_296.0, 3.2 * 1_073_741_824.0]
            .map(bytes)
            .into();
        assert_eq!(texts, ["412 B", "1.90 KiB", "54.0 KiB", "3.20 GiB"]);
    }

    #[test]
    fn what_is_not_finite_is_a_dash() {
        for value in [f64::NAN, f64::INFINITY] {
            assert_eq!(
                [whole(value), figure(value), ratio(value), bytes(value)],
                ["-"; 4]
            );
        }
        assert_eq!(or_absent(None, whole), "-");
    }
}
