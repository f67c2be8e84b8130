//! Rows that statements ask for: sysbench's five distributions.
//!
//! The problem: how much of a table is hot decides what a server's caches and locks are asked to
//! do, so results can be compared only if the rows are drawn alike. The mechanism: [`Rows`] holds a
//! table's size and what follows from it, computed once a run; a draw costs one random number, a
//! dozen for *gaussian* and a quarter of *special*.
//!
//! With `u` a number from 0 to just below 1, and rows 1 to `n`, cut down to a whole number:
//! - *uniform*: `1 + u n`;
//! - *gaussian*: `1 + n m`, where `m` is the mean of `spec-iter` numbers `u`;
//! - *special*: where `u` is at least 1 - `r`, `1 + (n-1)(1-p)/2 + u((n-1)p + 1)`, with `r` for
//!   `spec-res` and `p` for `spec-pct` percent: so much of the draws falls on so much of the rows,
//!   in the middle and a little above; the others are as *gaussian*, of `n-1`;
//! - *pareto*: `1 + n u^(ln h / ln(1-h))`: the fraction `h` of the rows gets `1-h` of the draws;
//! - *zipfian*: row `i` is drawn in proportion to `i^-exp`, by rejection-inversion (Hörmann and
//!   Derflinger, 1996).
//!
//! The first four are those of sysbench 1.0 and 0.5, the last came after them. In the last two,
//! row 1 is the hottest.

use super::Random;
use clap::{Args, ValueEnum};

/// Distribution of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Distribution {
    /// Each row as often as another
    Uniform,
    /// Mostly around the middle: a mean of several uniform numbers
    Gaussian,
    /// Three quarters of the draws on the one percent in the middle, the rest as gaussian
    Special,
    /// The first fifth of the rows gets four fifths of the draws
    Pareto,
    /// Row i in proportion to i^-0.8
    Zipfian,
}

/// Distribution of rows, as typed. Names, ranges and defaults are sysbench's but for the default
/// distribution, which is its successor's.
#[derive(Args, Clone, Copy, Debug)]
pub struct RandArgs {
    /// Distribution by which rows are drawn
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Distribution::Uniform)]
    rand_type: Distribution,

    /// Uniform numbers whose mean is one number of gaussian and special, at least 1
    #[arg(long, value_name = "N", default_value_t = 12,
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rand_spec_iter: u16,

    /// Percent of the rows that are special, 1 to 100
    #[arg(long, value_name = "P", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=100))]
    rand_spec_pct: u8,

    /// Percent of the draws that fall on special rows, 0 to 99
    #[arg(long, value_name = "P", default_value_t = 75,
          value_parser = clap::value_parser!(u8).range(0..=99))]
    rand_spec_res: u8,

    /// Of pareto: this fraction of the rows gets the rest of the draws, above 0, below 1
    #[arg(long, value_name = "H", default_value_t = 0.2, value_parser = fraction)]
    rand_pareto_h: f64,

    /// Of zipfian: the exponent, at least 0
    #[arg(long, value_name = "E", default_value_t = 0.8, value_parser = exponent)]
    rand_zipfian_exp: f64,
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(h) if h > 0.0 && h < 1.0 => Ok(h),
        _ => Err("expected a number above 0 and below 1".to_owned()),
    }
}

fn exponent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(exponent) if (0.0..=100.0).contains(&exponent) => Ok(exponent),
        _ => Err("expected a number from 0 to 100".to_owned()),
    }
}

/// Draws rows 1 to `count`.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    count: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Uniform,
    Gaussian {
        numbers: u16,
    },
    Special {
        numbers: u16,
        /// Share of the draws, from 0 to 1, that fall on special rows.
        share: f64,
        /// Number of special rows, and of those in front of them.
        width: f64,
        before: f64,
    },
    Pareto {
        power: f64,
    },
    Zipfian(Zipfian),
}

impl Rows {
    /// Rows 1 to `count`, at least 1.
    pub fn new(args: &RandArgs, count: u32) -> Rows {
        let numbers = args.rand_spec_iter;
        let kind = match args.rand_type {
            Distribution::Uniform => Kind::Uniform,
            Distribution::Gaussian => Kind::Gaussian { numbers },
            Distribution::Special => {
                let span = f64::from(count) - 1.0;
                let special = span * f64::from(args.rand_spec_pct) / 100.0;
                Kind::Special {
                    numbers,
                    share: f64::from(args.rand_spec_res) / 100.0,
                    width: special + 1.0,
                    before: (span - special) / 2.0,
                }
            }
            Distribution::Pareto => Kind::Pareto {
                power: args.rand_pareto_h.ln() / (1.0 - args.rand_pareto_h).ln(),
            },
            Distribution::Zipfian => {
                Kind::Zipfian(Zipfian::new(count.into(), args.rand_zipfian_exp))
            }
        };
        Rows { count, kind }
    }

    /// Each row as often as another.
    pub fn uniform(count: u32) -> Rows {
        let kind = Kind::Uniform;
        Rows { count, kind }
    }

    /// The table's size.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// One row.
    pub fn draw(&self, random: &mut Random) -> u32 {
        let count = f64::from(self.count);
        let from_zero = match &self.kind {
            Kind::Uniform => return 1 + random.below(self.count),
            Kind::Zipfian(zipfian) => return zipfian.draw(random),
            Kind::Gaussian { numbers } => count * mean(*numbers, random),
            Kind::Special {
                numbers,
                share,
                width,
                before,
            } => {
                let u = random.unit();
                if u >= 1.0 - *share {
                    before + u * width
                } else {
                    (count - 1.0) * mean(*numbers, random)
                }
            }
            Kind::Pareto { power } => count * random.unit().powf(*power),
        };
        1 + whole(from_zero).min(self.count - 1)
    }
}

/// The whole part of a number from 0 to 2^32.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "that is what it is for"
)]
fn whole(number: f64) -> u32 {
    number as u32
}

fn mean(numbers: u16, random: &mut Random) -> f64 {
    let sum: f64 = (0..numbers).map(|_| random.unit()).sum();
    sum / f64::from(numbers)
}

/// Rejection-inversion: the area under `x^-exp` from 1/2 to `count` + 1/2 is cut evenly, and a cut
/// is taken back where the curve's piece above row `i` is larger than the row's own share.
#[derive(Clone, Copy, Debug)]
pub struct Zipfian {
    count: f64,
    exponent: f64,
    /// The area's two ends.
    low: f64,
    high: f64,
    /// Up to this far from its row a cut need not be looked at.
    accepted: f64,
}

impl Zipfian {
    /// Distribution of numbers 1 to `count`, at least 1 and at most 2^32 - 1.
    pub fn new(count: f64, exponent: f64) -> Zipfian {
        let mut zipfian = Zipfian {
            count,
            exponent,
            low: 0.0,
            high: 0.0,
            accepted: 0.0,
        };
        zipfian.low = zipfian.area(1.5) - 1.0;
        zipfian.high = zipfian.area(count + 0.5);
        zipfian.accepted = 2.0 - zipfian.inverse(zipfian.area(2.5) - zipfian.weight(2.0));
        zipfian
    }

    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// The integral of the weight from 1 to `x`.
    fn area(&self, x: f64) -> f64 {
        let ln = x.ln();
        let power = (1.0 - self.exponent) * ln;
        // (x^(1-e) - 1) / (1-e), which is ln x where e is 1.
        if power.abs() < 1e-12 {
            ln
        } else {
            power.exp_m1() / (1.0 - self.exponent)
        }
    }

    fn inverse(&self, area: f64) -> f64 {
        let scaled = (area * (1.0 - self.exponent)).max(-1.0);
        if scaled.abs() < 1e-12 {
            area.exp()
        } else {
            (scaled.ln_1p() / (1.0 - self.exponent)).exp()
        }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        self.draw_from(|| random.unit())
    }

    /// One number, from numbers that are drawn from 0 to just below 1.
    pub fn draw_from(&self, mut unit: impl FnMut() -> f64) -> u32 {
        loop {
            let cut = self.high + unit() * (self.low - self.high);
            let x = self.inverse(cut);
            let row = whole((x + 0.5).clamp(1.0, self.count));
            let near = f64::from(row);
            if near - x <= self.accepted || cut >= self.area(near + 0.5) - self.weight(near) {
                return row;
            }
        }
    }
}

#[cfg(test)]
mod tests;
