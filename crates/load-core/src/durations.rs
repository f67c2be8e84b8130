//! Lengths of time as users write them: one length, or lengths that are drawn.
//!
//! `250ms` is a length; a bare number is seconds, as in sysbench's options. A [`Spread`] is what a
//! think time or a lifetime is drawn from: one length, any between two, or an exponential one,
//! which is how long somebody waits who has no memory of how long he has waited already.

use crate::random::Random;
use std::time::Duration;

/// The units, the longer names first where one begins another.
const UNITS: [(&str, f64); 7] = [
    ("us", 1e-6),
    ("ms", 1e-3),
    ("min", 60.0),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3_600.0),
    ("", 1.0),
];
/// The longest length that is taken: longer ones are slips of the pen.
const LONGEST_S: f64 = 366.0 * 86_400.0;

/// Reads a length such as `500us`, `250ms`, `1.5s`, `2m`, `1h` or `10`, which is seconds.
///
/// # Errors
/// A sentence that says what is taken.
pub fn parse_length(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!("'{text}' is no length of time; write a number and us, ms, s, m or h, as in 250ms")
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let scale = UNITS.iter().find(|(name, _)| *name == unit);
    let (_, scale) = scale.ok_or_else(wrong)?;
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let seconds = number * scale;
    if !(0.0..=LONGEST_S).contains(&seconds) {
        return Err(wrong());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Distribution that lengths are drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Always this one.
    Fixed(Duration),
    /// Any between these, each as likely as another.
    Between(Duration, Duration),
    /// Exponential, with this mean.
    Exponential(Duration),
}

impl Spread {
    /// Reads `D`, `D-D` or `exp:D`.
    ///
    /// # Errors
    /// A sentence that says what is taken.
    pub fn parse(text: &str) -> Result<Spread, String> {
        if let Some(mean) = text.strip_prefix("exp:") {
            return parse_length(mean).map(Spread::Exponential);
        }
        let Some((low, high)) = text.split_once('-') else {
            return parse_length(text).map(Spread::Fixed);
        };
        let (low, high) = (parse_length(low)?, parse_length(high)?);
        if low > high {
            return Err(format!("'{text}': the first length is the shorter one"));
        }
        Ok(Spread::Between(low, high))
    }

    /// The shortest length that is drawn.
    pub fn shortest(self) -> Duration {
        match self {
            Spread::Fixed(length) => length,
            Spread::Between(low, _) => low,
            Spread::Exponential(_) => Duration::ZERO,
        }
    }

    /// The longest length that is drawn; an exponential one has no bound.
    pub fn longest(self) -> Duration {
        match self {
            Spread::Fixed(length) => length,
            Spread::Between(_, high) => high,
            Spread::Exponential(_) => Duration::MAX,
        }
    }

    /// One length.
    pub fn draw(self, random: &mut Random) -> Duration {
        match self {
            Spread::Fixed(length) => length,
            Spread::Between(low, high) => low + (high - low).mul_f64(unit(random)),
            Spread::Exponential(mean) => mean.mul_f64(exponential(random)),
        }
    }
}

/// A number from 0 up to but not including 1.
pub fn unit(random: &mut Random) -> f64 {
    // 53 bits are what a double holds.
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// An exponential number with mean 1.
pub fn exponential(random: &mut Random) -> f64 {
    -(1.0 - unit(random)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_units_and_bare_numbers_are_seconds() {
        for (text, micros) in [
            ("500us", 500),
            ("250ms", 250_000),
            ("1.5s", 1_500_000),
            ("2m", 120_000_000),
            ("2min", 120_000_000),
            ("1h", 3_600_000_000),
            ("10", 10_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_length(text).unwrap().as_micros(), micros, "{text}");
        }
        for text in ["", "s", "-1s", "1d", "1 s", "nan", "inf", "1e99"] {
            let error = parse_length(text).unwrap_err();
            assert!(error.contains("250ms"), "{text}: {error}");
        }
    }

    #[test]
    fn spreads_are_read_and_drawn() {
        let ms = Duration::from_millis;
        assert_eq!(Spread::parse("5ms").unwrap(), Spread::Fixed(ms(5)));
        let between = Spread::parse("10ms-30ms").unwrap();
        assert_eq!(between, Spread::Between(ms(10), ms(30)));
        let exponential = Spread::parse("exp:20ms").unwrap();
        assert_eq!(exponential, Spread::Exponential(ms(20)));
        assert!(Spread::parse("30ms-10ms").unwrap_err().contains("shorter"));
        for (spread, deviation_ms) in [(between, 20.0 / 12f64.sqrt()), (exponential, 20.0)] {
            let mut random = Random::new(1, 1);
            let drawn: Vec<f64> = (0..100_000)
                .map(|_| spread.draw(&mut random).as_secs_f64() * 1e3)
                .collect();
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let square = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            let deviation = (square / drawn.len() as f64).sqrt();
            assert!((mean - 20.0).abs() < 0.3, "{spread:?}: mean {mean}");
            assert!(
                (deviation - deviation_ms).abs() < 0.3,
                "{spread:?}: {deviation}"
            );
        }
    }
}
