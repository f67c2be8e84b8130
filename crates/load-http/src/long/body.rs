//! Body of a message and its period: the options that both sides of a test have in common.
//!
//! `onramp load` judges what `onramp target` sends, so both are told the same, in the same words: a
//! text, or a size for which both make the same bytes; and a period, which is never zero.

use clap::Args;
use load_core::durations::parse_length;
use std::sync::Arc;
use std::time::Duration;

/// Longest body, in bytes.
const BODY_BYTES_MAX: u32 = 64 << 20;

/// Reads a length of time that is not zero.
pub fn parse_period(text: &str) -> Result<Duration, String> {
    match parse_length(text)? {
        Duration::ZERO => Err(format!("'{text}': expected a time above 0")),
        period => Ok(period),
    }
}

/// Body of a message; both sides take these options.
#[derive(Args, Clone, Debug)]
pub struct BodyArgs {
    /// Text of each message
    #[arg(long, value_name = "TEXT", default_value = "ok")]
    pub payload: String,

    /// Let each message be so many bytes of a fixed pattern instead, 1 to 67,108,864
    #[arg(long, value_name = "BYTES", conflicts_with = "payload",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(BODY_BYTES_MAX)))]
    pub payload_size: Option<u32>,
}

impl BodyArgs {
    /// The bytes.
    pub fn bytes(&self) -> Arc<[u8]> {
        match self.payload_size {
            None => self.payload.as_bytes().into(),
            // A prime period, so that a message that is cut or shifted does not look whole.
            Some(size) => (0..size)
                .map(|i| b'!' + u8::try_from(i % 89).unwrap_or(0))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_above_zero() {
        assert_eq!(parse_period("1.5s"), Ok(Duration::from_millis(1_500)));
        assert!(parse_period("0s").is_err_and(|e| e.contains("above 0")));
        assert!(parse_period("often").is_err_and(|e| e.contains("250ms")));
    }

    #[test]
    fn a_pattern_is_the_same_on_both_sides_and_not_periodic_in_its_size() {
        let of = |size| {
            BodyArgs {
                payload: String::new(),
                payload_size: Some(size),
            }
            .bytes()
        };
        assert_eq!(of(1_000), of(1_000));
        assert_eq!(of(1_000).len(), 1_000);
        assert!(of(1_000).iter().all(u8::is_ascii_graphic));
        assert_ne!(of(1_000)[..500], of(1_000)[500..]);
    }
}
