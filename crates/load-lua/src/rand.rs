//! Random numbers as sysbench's scripts get them: for one seed, the same numbers.
//!
//! Each connection ("thread" of a script) has a generator of its own, xoroshiro128+ (Blackman and
//! Vigna, public domain). Its 128 bits come from four numbers of the C library's `random()`, which
//! `srandom(seed)` began: the first connection takes the first four, and so on. So that a stream
//! repeats on every C library, the additive feedback generator that glibc documents for `random()`
//! is written out here.
//!
//! Invariant: a draw takes as many numbers from the generator as sysbench's does, so that the draws
//! after it are the same, too.

use load_core::program::{Distribution, Shape};
use load_core::random::unique;
use std::cell::{Cell, RefCell};

/// The numbers of the C library's `random()` after `srandom(seed)`.
struct LibcRandom {
    state: [u32; 31],
    at: usize,
}

impl LibcRandom {
    fn new(seed: u32) -> LibcRandom {
        let mut state = [0u32; 31];
        // 0 is taken for 1.
        let mut word = i64::from(seed.max(1).cast_signed());
        for slot in &mut state {
            *slot = u32::try_from(word.rem_euclid(1 << 32)).unwrap_or(0);
            word = 16807 * word % 2_147_483_647;
            if word < 0 {
                word += 2_147_483_647;
            }
        }
        let mut random = LibcRandom { state, at: 0 };
        (0..310).for_each(|_| {
            random.next();
        });
        random
    }

    /// A number of 31 bits.
    fn next(&mut self) -> u32 {
        let (front, rear) = ((self.at + 3) % 31, self.at);
        self.state[front] = self.state[front].wrapping_add(self.state[rear]);
        self.at = (self.at + 1) % 31;
        self.state[front] >> 1
    }

    fn word(&mut self) -> u64 {
        let high = u64::from(self.next() % u32::MAX);
        high << 32 | u64::from(self.next() % u32::MAX)
    }
}

/// One connection's generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Xoroshiro([u64; 2]);

impl Xoroshiro {
    fn next(&mut self) -> u64 {
        let [s0, mut s1] = self.0;
        let result = s0.wrapping_add(s1);
        s1 ^= s0;
        self.0 = [s0.rotate_left(55) ^ s1 ^ (s1 << 14), s1.rotate_left(36)];
        result
    }

    /// Number from 0 to just below 1, in steps of 2^-52.
    fn unit(&mut self) -> f64 {
        f64::from_bits(0x3FF << 52 | self.next() >> 12) - 1.0
    }
}

/// The generators of a group's connections, and whose turn it is.
#[derive(Debug)]
pub(super) struct Generators {
    shape: Shape,
    of: RefCell<Vec<Xoroshiro>>,
    current: Cell<usize>,
    /// Count of numbers that `unique` has given, from its beginning.
    uniques: Cell<u32>,
    /// Step by which `unique` counts up, so that groups give different numbers.
    stride: u32,
}

impl Generators {
    /// Generators for `count` connections from number `first` on. Group `part` of `parts` shares
    /// the numbers of `unique` with the others; `start` is where all begin.
    pub(super) fn new(
        shape: Shape,
        seed: u64,
        (first, count): (u32, u32),
        (part, parts): (u32, u32),
        start: u32,
    ) -> Generators {
        let seed = u32::try_from(seed & u64::from(u32::MAX)).unwrap_or(1);
        let mut random = LibcRandom::new(seed);
        let mut state = || Xoroshiro([random.word(), random.word()]);
        (0..first).for_each(|_| {
            state();
        });
        Generators {
            shape,
            of: RefCell::new((0..count).map(|_| state()).collect()),
            current: Cell::new(0),
            uniques: Cell::new(start.wrapping_add(part)),
            stride: parts.max(1),
        }
    }

    /// Makes draws those of this connection of the group from now on.
    pub(super) fn turn_to(&self, connection: u32) {
        self.current.set(connection as usize);
    }

    fn with<T>(&self, draw: impl FnOnce(&mut Xoroshiro) -> T) -> T {
        let mut all = self.of.borrow_mut();
        let at = self.current.get().min(all.len().saturating_sub(1));
        match all.get_mut(at) {
            Some(one) => draw(one),
            None => draw(&mut Xoroshiro([1, 2])),
        }
    }

    pub(super) fn uint64(&self) -> u64 {
        self.with(Xoroshiro::next)
    }

    pub(super) fn unit(&self) -> f64 {
        self.with(Xoroshiro::unit)
    }

    /// `sysbench.rand.default`.
    pub(super) fn by_default(&self, low: f64, high: f64) -> f64 {
        match self.shape.kind {
            Distribution::Uniform => self.uniform(low, high),
            Distribution::Gaussian => self.gaussian(low, high),
            Distribution::Special => self.special(low, high),
            Distribution::Pareto => self.pareto(low, high),
            Distribution::Zipfian => self.zipfian(low, high),
        }
    }

    /// Each number from `low` to `high` as often as another.
    pub(super) fn uniform(&self, low: f64, high: f64) -> f64 {
        low + (self.unit() * (high - low + 1.0)).floor()
    }

    fn mean(&self, span: f64) -> f64 {
        let iterations = self.shape.iterations.max(1);
        let sum: f64 = (0..iterations).map(|_| self.unit() * span).sum();
        sum / f64::from(iterations)
    }

    pub(super) fn gaussian(&self, low: f64, high: f64) -> f64 {
        low + self.mean(high - low + 1.0).floor()
    }

    pub(super) fn special(&self, low: f64, high: f64) -> f64 {
        let span = high - low;
        let drawn = self.unit();
        let all = span * 100.0 / (100.0 - self.shape.special_share);
        if drawn * all < span {
            return low + self.mean(span).floor();
        }
        let special = span * self.shape.special_percent / 100.0;
        low + (drawn * (special + 1.0) + span / 2.0 - special / 2.0).floor()
    }

    pub(super) fn pareto(&self, low: f64, high: f64) -> f64 {
        let power = self.shape.pareto_h.ln() / (1.0 - self.shape.pareto_h).ln();
        low + ((high - low + 1.0) * self.unit().powf(power)).floor()
    }

    /// Number `low + i - 1` in proportion to `i^-exponent`, by rejection-inversion.
    pub(super) fn zipfian(&self, low: f64, high: f64) -> f64 {
        let count = (high - low + 1.0).clamp(1.0, f64::from(u32::MAX));
        let zipfian = load_core::random::Zipfian::new(count, self.shape.zipfian_exponent);
        low + f64::from(zipfian.draw_from(|| self.unit())) - 1.0
    }

    /// A number that was not given before in this run. sysbench's begin at a place of the clock's,
    /// so they never repeat with the seed.
    pub(super) fn unique(&self) -> u32 {
        let index = self.uniques.get();
        self.uniques.set(index.wrapping_add(self.stride));
        unique(index)
    }

    /// Appends a text of this format: `#` becomes a digit, `@` a letter, all else stays.
    pub(super) fn string(&self, format: &[u8], out: &mut Vec<u8>) {
        let byte = |low: u8, high: u8| {
            let drawn = self.uniform(low.into(), high.into());
            (low..=high).find(|byte| f64::from(*byte) >= drawn)
        };
        for &sign in format {
            out.push(match sign {
                b'#' => byte(b'0', b'9').unwrap_or(b'9'),
                b'@' => byte(b'a', b'z').unwrap_or(b'z'),
                other => other,
            });
        }
    }

    /// Appends letters, between `min` and `max` of them.
    pub(super) fn varstring(&self, min: f64, max: f64, out: &mut Vec<u8>) {
        /// Most letters that a script may ask for: as much as a packet holds.
        const LETTERS_MAX: f64 = 16_777_216.0;
        let mut left = self.uniform(min, max).clamp(0.0, LETTERS_MAX);
        while left >= 1.0 {
            self.string(b"@", out);
            left -= 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generators(first: u32) -> Generators {
        Generators::new(Shape::default(), 7, (first, 2), (0, 1), 0)
    }

    /// Numbers that sysbench 1.0.20 prints for `--rand-seed=7`.
    #[test]
    fn one_seed_gives_sysbenchs_numbers() {
        let drawn = generators(0);
        let uniform: Vec<f64> = (0..4).map(|_| drawn.uniform(0.0, 1e6)).collect();
        assert_eq!(uniform, [539_748.0, 657_415.0, 407_790.0, 865_025.0]);
        assert_eq!(drawn.uint64(), 1_882_345_312_236_688_097);
        assert!((drawn.unit() - 0.540_245_831_121_67).abs() < 1e-14);
        assert_eq!(drawn.by_default(1.0, 1e5), 50_255.0);
        assert_eq!(drawn.gaussian(1.0, 1e5), 52_962.0);
        assert_eq!(drawn.special(1.0, 1e5), 47_994.0);
        assert_eq!(drawn.pareto(1.0, 1e5), 68.0);
        let mut string = Vec::new();
        drawn.string(b"##-@@", &mut string);
        assert_eq!(string, b"75-we");
    }

    #[test]
    fn each_connection_has_numbers_of_its_own_wherever_it_is_dealt_to() {
        let first = |group_first: u32, connection: u32| {
            let drawn = generators(group_first);
            drawn.turn_to(connection);
            drawn.uniform(0.0, 1e6)
        };
        assert_eq!((first(0, 0), first(0, 1)), (539_748.0, 503_087.0));
        assert_eq!((first(1, 0), first(1, 1)), (503_087.0, 564_173.0));
    }

    #[test]
    fn unique_numbers_of_all_groups_are_unique() {
        let groups = [0, 1].map(|part| Generators::new(Shape::default(), 1, (0, 1), (part, 2), 9));
        let mut seen: Vec<u32> = (0..2_000).map(|i| groups[i % 2].unique()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 2_000);
    }

    #[test]
    fn every_distribution_stays_in_its_range() {
        for kind in [
            Distribution::Uniform,
            Distribution::Gaussian,
            Distribution::Special,
            Distribution::Pareto,
            Distribution::Zipfian,
        ] {
            let shape = Shape {
                kind,
                ..Shape::default()
            };
            let drawn = Generators::new(shape, 3, (0, 1), (0, 1), 0);
            for _ in 0..5_000 {
                let number = drawn.by_default(10.0, 20.0);
                assert!(
                    (10.0..=20.0).contains(&number) && number.fract() == 0.0,
                    "{kind:?} {number}"
                );
            }
        }
    }
}
