//! A small mutator: from the corpus and a seed, inputs without end, the same on every machine.
//!
//! It knows no coverage, which is libFuzzer's part; it is there so that each `make test` tries some
//! thousands of neighbours of what real peers say, with a plain compiler. Invariant: the same
//! corpus and seed give the same inputs in the same order.

use crate::sim::random::Random;

/// Inputs do not grow beyond this, in bytes.
pub const LEN_MAX: usize = 4096;

/// Values at which parsers change their minds.
const BYTES: [u8; 16] = [
    0, 1, 5, 0x7f, 0x80, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff, b'\'', b'`', b'*', b'/', b'\\',
];

/// Words that SQL's parsers look for; in binary input they are as good as any bytes.
const WORDS: [&str; 28] = [
    "/*",
    "*/",
    "/*!",
    "/*M!",
    "/*!50000 ",
    "--",
    "-- ",
    "#",
    "\n",
    "''",
    "``",
    "\"",
    "\\'",
    ";",
    " AS ",
    "@",
    "@@",
    ":=",
    "CONNECTION_ID()",
    "@@pseudo_thread_id",
    "KILL ",
    "QUERY ",
    "SELECT ",
    "GET_LOCK(",
    "(",
    ")",
    ",",
    "1.e",
];

/// Makes inputs out of a corpus.
#[derive(Clone, Debug)]
pub struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    random: Random,
}

impl<'a> Mutator<'a> {
    /// A mutator of these inputs, of which there must be one.
    #[must_use]
    pub fn new(corpus: &'a [Vec<u8>], seed: u64) -> Mutator<'a> {
        assert!(!corpus.is_empty(), "a corpus has inputs");
        let random = Random::new(seed);
        Mutator { corpus, random }
    }

    /// The next input.
    pub fn input(&mut self) -> Vec<u8> {
        let mut input = self.random.pick(self.corpus).clone();
        for _ in 0..self.random.between(1, 6) {
            self.change(&mut input);
        }
        input.truncate(LEN_MAX);
        input
    }

    /// A place in the input, or its end.
    fn place(&mut self, input: &[u8]) -> usize {
        self.random.index(input.len() + 1)
    }

    /// A stretch of it, mostly short.
    fn stretch(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.place(input);
        let longest = input.len() - start;
        let most = if self.random.chance(800) { 8 } else { longest };
        start..start + self.random.index(most.min(longest) + 1)
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.place(input);
        match self.random.below(9) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = *self.random.pick(&BYTES);
                }
            }
            2 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = byte.wrapping_add(*self.random.pick(&[1, 2, 0xfe, 0xff]));
                }
            }
            3 => input.insert(at, *self.random.pick(&BYTES)),
            4 => drop(input.drain(self.stretch(input))),
            5 => {
                let again = input[self.stretch(input)].to_vec();
                input.splice(at..at, again);
            }
            6 => input.truncate(at),
            7 => {
                let word = self.random.pick(&WORDS).bytes();
                input.splice(at..at, word);
            }
            _ => {
                let other = self.random.pick(self.corpus);
                let part = other[self.stretch(other)].to_vec();
                input.splice(at..at, part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let corpus = [b"SELECT 1".to_vec(), b"KILL 5".to_vec()];
        let inputs = |seed| {
            let mut mutator = Mutator::new(&corpus, seed);
            std::iter::repeat_with(move || mutator.input()).take(200)
        };
        assert!(inputs(1).eq(inputs(1)));
        assert!(!inputs(1).eq(inputs(2)));
        let others = inputs(1).filter(|input| !corpus.contains(input)).count();
        assert!(others > 150, "{others}");
    }
}
