//! Texts whose replies are known to hold up backends.
//!
//! The problem: clients that do not read take every backend that becomes free, because nobody knows
//! what a statement will be like. The mechanism: a text, by its digest, is known to be long from
//! the moment at which a reader of its reply has become slow, for as long as at least one in
//! [`LONG_ONE_IN`] of its last runs has. A text that has never run is taken for short; it is *like*
//! long ones if those of its shape ([`shape`]) are, so that of several such texts another is
//! believed first.
//!
//! Invariant: the tables are bounded ([`TEXTS_MAX`], [`SHAPES`]); when texts are too many, both are
//! learnt again.

use sql::digest::{SHAPES, shape};
use std::collections::HashMap;

/// Texts remembered in a group.
const TEXTS_MAX: usize = 1024;
/// Runs of a text among which at least one must have held up its backend for the text to be long.
const LONG_ONE_IN: u16 = 4;

/// Runs of one text since a reader of its reply first was slow; both are halved when one of them is
/// as many as there may be, so that the last runs count most.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    slow: u8,
    quick: u8,
}

impl Runs {
    fn count(&mut self, is_slow: bool) {
        if self.slow.max(self.quick) == u8::MAX {
            (self.slow, self.quick) = (self.slow / 2, self.quick / 2);
        }
        match is_slow {
            true => self.slow += 1,
            false => self.quick += 1,
        }
    }

    fn are_long(self) -> bool {
        let all = u16::from(self.slow) + u16::from(self.quick);
        self.slow > 0 && u16::from(self.slow) * LONG_ONE_IN >= all
    }
}

/// Facts of such texts, by their digests.
#[derive(Debug, Default)]
pub(crate) struct LongTexts {
    runs: HashMap<u64, Runs>,
    /// Runs of all texts of each shape; of none while no text is known.
    shapes: Vec<Runs>,
}

impl LongTexts {
    /// True if no text is known to be long.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// True if the text of this digest is known to be long; 0 is the digest of an unknown one.
    pub(crate) fn is_long(&self, digest: u64) -> bool {
        self.runs.get(&digest).is_some_and(|runs| runs.are_long())
    }

    /// True if texts of the shape of this one are known to be long.
    pub(crate) fn is_like_long(&self, digest: u64) -> bool {
        let runs = self.shapes.get(shape(digest));
        digest != 0 && runs.is_some_and(|runs| runs.are_long())
    }

    /// Counts a run of a text whose reader has become slow.
    pub(crate) fn was_slow(&mut self, digest: u64) {
        if digest == 0 {
            return;
        }
        if self.runs.len() >= TEXTS_MAX && !self.runs.contains_key(&digest) {
            self.runs.clear();
            self.shapes.clear();
        }
        self.runs.entry(digest).or_default().count(true);
        self.shapes.resize(SHAPES, Runs::default());
        self.shapes[shape(digest)].count(true);
    }

    /// Counts a run of a text that has ended without holding up its backend.
    pub(crate) fn was_quick(&mut self, digest: u64) {
        if let Some(runs) = self.runs.get_mut(&digest) {
            runs.count(false);
        }
        if let Some(runs) = self.shapes.get_mut(shape(digest)) {
            runs.count(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_short_until_it_has_shown_itself_long() {
        let mut texts = LongTexts::default();
        texts.was_quick(7);
        assert!(texts.is_empty() && !texts.is_long(7));
        texts.was_slow(7);
        assert!(texts.is_long(7) && !texts.is_long(8));
        texts.was_slow(0);
        assert!(!texts.is_long(0), "that is no text");
    }

    #[test]
    fn a_text_that_is_long_less_often_than_one_time_in_four_is_short() {
        let mut texts = LongTexts::default();
        texts.was_slow(7);
        (0..3).for_each(|_| texts.was_quick(7));
        assert!(texts.is_long(7), "one in four");
        texts.was_quick(7);
        assert!(!texts.is_long(7), "one in five");
        (0..1000).for_each(|_| texts.was_quick(7));
        (0..100).for_each(|_| texts.was_slow(7));
        assert!(texts.is_long(7), "the last runs count most");
    }

    #[test]
    fn a_text_is_like_long_ones_of_its_shape_until_others_of_it_are_short() {
        let digest = |sql: &str| sql::digest::digest(sql.as_bytes(), Default::default());
        let [long, like, other] =
            ["SELECT a_1 FROM t", "SELECT a_2 FROM t", "SELECT 1"].map(digest);
        let mut texts = LongTexts::default();
        assert!(!texts.is_like_long(like));
        texts.was_slow(long);
        assert!(texts.is_like_long(like) && !texts.is_long(like));
        assert!(!texts.is_like_long(other) && !texts.is_like_long(0));
        (0..4).for_each(|_| texts.was_quick(like));
        assert!(!texts.is_like_long(like) && texts.is_long(long));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut texts = LongTexts::default();
        (1..=TEXTS_MAX as u64).for_each(|digest| texts.was_slow(digest));
        texts.was_slow(1);
        assert!(texts.is_long(2), "the bound is not passed yet");
        texts.was_slow(TEXTS_MAX as u64 + 1);
        assert_eq!(texts.runs.len(), 1);
        let of_shapes = texts.shapes.iter().filter(|runs| runs.are_long());
        assert_eq!((texts.shapes.len(), of_shapes.count()), (SHAPES, 1));
    }
}
