//! Random numbers in eight bytes a connection.
//!
//! A Weyl sequence through a mixing function (the construction known as SplitMix64): passes the
//! usual statistical tests, has no bad seeds, and costs a few instructions. Each connection has its
//! own, so a run repeats from its seed however its connections are dealt to groups.

mod rows;

pub use rows::{RandArgs, Rows, Zipfian};

/// One connection's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random(u64);

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

impl Random {
    /// The numbers of connection `index` in a run with this seed.
    pub fn new(seed: u64, index: u64) -> Random {
        Random(mix(mix(seed).wrapping_add(index.wrapping_mul(STEP))))
    }

    /// The next number, uniform over all of `u64`.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number from 0 to `bound` - 1, each as likely as another; 0 for a bound of 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        let wide = u64::from(bound) * (self.next_u64() >> 32);
        u32::try_from(wide >> 32).unwrap_or(0)
    }

    /// A number from 0 to just below 1, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        const STEPS: f64 = (1u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 / STEPS
    }
}

/// The `index`th of 2^32 different numbers in no apparent order: a bijection, so that what is drawn
/// in one run is never drawn twice.
pub fn unique(index: u32) -> u32 {
    // Each step can be undone: an odd factor, and a shift that leaves the upper half as it was.
    let mut x = index ^ 0x5BD1_E995;
    x = (x ^ x >> 16).wrapping_mul(0x85EB_CA6B);
    x = (x ^ x >> 13).wrapping_mul(0xC2B2_AE35);
    x ^ x >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_evenly() {
        let mut random = Random::new(1, 0);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(
            counts.iter().all(|&n| (9_500..10_500).contains(&n)),
            "{counts:?}"
        );
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn connections_have_different_numbers_that_repeat_with_the_seed() {
        let first = |seed, index| Random::new(seed, index).next_u64();
        assert_eq!(first(7, 3), first(7, 3));
        assert_ne!(first(7, 3), first(7, 4));
        assert_ne!(first(7, 3), first(8, 3));
    }

    #[test]
    fn unique_numbers_are_unique() {
        let mut seen: Vec<u32> = (0..100_000).map(unique).collect();
        assert!(
            seen.windows(2).filter(|pair| pair[0] > pair[1]).count() > 40_000,
            "no apparent order"
        );
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 100_000);
    }
}
