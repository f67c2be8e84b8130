//! The histogram of latencies, drawn as sysbench 1.0 draws it.
//!
//! A row for each of its 1,024 steps from 1 microsecond to 100 s, evenly apart on a logarithmic
//! scale, that something fell into; bars are relative to the longest, 40 characters. Whatever is
//! longer than 100 s stands in the last row.

use measure::Histogram;

const STEPS: usize = 1_024;
const LOWEST_MS: f64 = 0.001;
const HIGHEST_MS: f64 = 100_000.0;
const BAR: f64 = 40.0;

/// The text, with an empty line behind it.
pub(super) fn text(latency: &Histogram) -> String {
    let mut steps = vec![0u64; STEPS];
    let per_step = (HIGHEST_MS.ln() - LOWEST_MS.ln()) / (STEPS - 1) as f64;
    for (ms, count) in latency.lengths_ms() {
        let ms = ms.clamp(LOWEST_MS, HIGHEST_MS);
        steps[rounded((ms.ln() - LOWEST_MS.ln()) / per_step).min(STEPS - 1)] += count;
    }
    let longest = steps.iter().copied().max().unwrap_or(0).max(1) as f64;
    let mut out = String::from(
        "Latency histogram (values are in milliseconds)\n       \
         value  ------------- distribution ------------- count\n",
    );
    for (step, count) in steps
        .into_iter()
        .enumerate()
        .filter(|(_, count)| *count > 0)
    {
        let ms = (step as f64 * per_step + LOWEST_MS.ln()).exp();
        let bar = "*".repeat(rounded(count as f64 * BAR / longest));
        out.push_str(&format!("{ms:12.3} |{bar:<40} {count}\n"));
    }
    out.push_str(" \n");
    out
}

/// The nearest whole number, of one that is not negative.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "that is what it is for"
)]
fn rounded(number: f64) -> usize {
    (number + 0.5) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn bars_are_relative_to_the_longest() {
        let mut latency = Histogram::new();
        for (us, count) in [(100, 40), (1_000, 10), (200_000_000, 1)] {
            (0..count).for_each(|_| latency.record(Duration::from_micros(us)));
        }
        let text = text(&latency);
        let lines: Vec<&str> = text.split('\n').collect();
        assert_eq!(
            lines[1],
            "       value  ------------- distribution ------------- count"
        );
        assert_eq!(lines[2], format!("       0.100 |{} 40", "*".repeat(40)));
        let ms: f64 = lines[3][..12].trim().parse().unwrap();
        assert!((ms - 1.0).abs() < 0.01, "{ms}");
        assert_eq!(lines[3][12..], format!(" |{:<40} 10", "*".repeat(10)));
        assert_eq!(lines[4], format!("  100000.000 |{:<40} 1", "*"));
        assert_eq!(lines[5..], [" ", ""]);
    }
}
