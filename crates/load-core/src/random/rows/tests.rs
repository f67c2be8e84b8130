//! Each distribution against what its definition says of every row: Pearson's chi-square over bins
//! of equal expectation, at a level that a right implementation misses once in some 10,000 seeds
//! (the seeds are fixed) and a wrong one by far.
use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: RandArgs,
}

fn rows(line: &str, count: u32) -> Rows {
    let words = std::iter::once("rows").chain(line.split_whitespace());
    Rows::new(&Line::try_parse_from(words).unwrap().args, count)
}

const DRAWS: u32 = 200_000;
const COUNT: u32 = 1_000;

/// Number of draws of each row.
fn counts(rows: &Rows) -> Vec<u32> {
    let mut random = Random::new(11, 0);
    let mut counts = vec![0; rows.count as usize];
    for _ in 0..DRAWS {
        counts[rows.draw(&mut random) as usize - 1] += 1;
    }
    counts
}

/// Compares draws with the probability of each row; rows that are rare are put together.
fn assert_fits(counts: &[u32], probability: impl Fn(u32) -> f64) {
    let (mut square, mut bins) = (0.0_f64, 0.0_f64);
    let (mut expected, mut found) = (0.0, 0.0);
    let mut total = 0.0;
    for (row, count) in (1..).zip(counts) {
        total += probability(row);
        expected += probability(row) * f64::from(DRAWS);
        found += f64::from(*count);
        if expected >= 200.0 {
            square += (found - expected).powi(2) / expected;
            bins += 1.0;
            (expected, found) = (0.0, 0.0);
        }
    }
    assert!((total - 1.0).abs() < 1e-6, "probabilities sum to {total}");
    assert!(bins >= 20.0, "{bins} bins show nothing");
    // Chi-square with k degrees of freedom has mean k and variance 2k.
    let limit = bins + 4.0 * (2.0 * bins).sqrt();
    assert!(square < limit, "chi-square {square:.1} over {bins} bins");
}

/// The distribution function of the mean of `n` uniform numbers (Irwin and Hall's, scaled).
fn mean_below(x: f64, n: u16) -> f64 {
    let (scaled, mut sum, mut factor) = (x.clamp(0.0, 1.0) * f64::from(n), 0.0, 1.0);
    for k in 0..=n {
        let rest = scaled - f64::from(k);
        if rest <= 0.0 {
            break;
        }
        sum += factor * rest.powi(n.into());
        factor *= -f64::from(n - k) / f64::from(k + 1);
    }
    let all: f64 = (1..=n).map(f64::from).product();
    sum / all
}

#[test]
fn uniform_rows_are_equally_likely() {
    assert_fits(&counts(&rows("", COUNT)), |_| 1.0 / f64::from(COUNT));
}

#[test]
fn gaussian_rows_are_means_of_uniform_numbers() {
    let n = f64::from(COUNT);
    for numbers in [12u16, 3, 1] {
        let line = format!("--rand-type gaussian --rand-spec-iter {numbers}");
        assert_fits(&counts(&rows(&line, COUNT)), |row| {
            let upper = mean_below(f64::from(row) / n, numbers);
            upper - mean_below(f64::from(row - 1) / n, numbers)
        });
    }
}

#[test]
fn special_rows_are_in_the_middle() {
    for (line, special, share) in [
        ("--rand-type special", 0.01, 0.75),
        (
            "--rand-type special --rand-spec-pct 10 --rand-spec-res 40",
            0.1,
            0.4,
        ),
    ] {
        let span = f64::from(COUNT) - 1.0;
        let (width, before) = (span * special + 1.0, (span - span * special) / 2.0);
        assert_fits(&counts(&rows(line, COUNT)), |row| {
            let (from, to) = (f64::from(row - 1), f64::from(row));
            let first = before + (1.0 - share) * width;
            let covered = (to.min(before + width) - from.max(first)).max(0.0) / width;
            let around = mean_below(to / span, 12) - mean_below(from / span, 12);
            covered + (1.0 - share) * around
        });
    }
}

#[test]
fn pareto_gives_four_fifths_to_one_fifth() {
    let n = f64::from(COUNT);
    for h in [0.2, 0.4] {
        let line = format!("--rand-type pareto --rand-pareto-h {h}");
        let found = counts(&rows(&line, COUNT));
        let below = |row: u32| (f64::from(row) / n).powf((1.0_f64 - h).ln() / h.ln());
        assert_fits(&found, |row| below(row) - below(row - 1));
        let first = whole(n * h) as usize;
        let share = f64::from(found[..first].iter().sum::<u32>()) / f64::from(DRAWS);
        assert!((share - (1.0 - h)).abs() < 0.005, "h {h}: {share}");
    }
}

#[test]
fn zipfian_rows_fall_with_their_number() {
    for exponent in [0.8, 1.0, 0.0, 1.7] {
        let line = format!("--rand-type zipfian --rand-zipfian-exp {exponent}");
        let weight = |row: u32| f64::from(row).powf(-exponent);
        let sum: f64 = (1..=COUNT).map(weight).sum();
        assert_fits(&counts(&rows(&line, COUNT)), |row| weight(row) / sum);
    }
}

#[test]
fn every_row_drawn_is_in_the_table_however_small() {
    let mut random = Random::new(3, 1);
    for kind in ["uniform", "gaussian", "special", "pareto", "zipfian"] {
        for count in [1, 2, 3, 100, 2_147_483_647] {
            let rows = rows(&format!("--rand-type {kind}"), count);
            let (mut low, mut high) = (u32::MAX, 0);
            for _ in 0..2_000 {
                let row = rows.draw(&mut random);
                (low, high) = (low.min(row), high.max(row));
            }
            assert!(
                low >= 1 && high <= count,
                "{kind} of {count}: {low}..{high}"
            );
        }
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    for line in [
        "--rand-pareto-h 0",
        "--rand-pareto-h 1",
        "--rand-zipfian-exp -1",
        "--rand-zipfian-exp x",
        "--rand-spec-res 100",
        "--rand-spec-iter 0",
    ] {
        let words = std::iter::once("rows").chain(line.split_whitespace());
        assert!(Line::try_parse_from(words).is_err(), "{line}");
    }
}
