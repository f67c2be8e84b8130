//! Sets of names that every name of a text is looked up in.
//!
//! The problem: a statement that names a table with a trigger, or a view, runs code that its text
//! does not show, so each name of each text is looked up among these. Folding it into a string of
//! its own and comparing that took a fifth of a statement's processing. The mechanism: a name
//! becomes a number while its bytes are folded, and the set holds numbers only.
//!
//! Invariants: nothing is allocated for a lookup; names that compare equal ([`fold`]) have one
//! number. Names that differ may share one, so a hit says that the text is to be looked at again,
//! and a miss is certain.
//!
//! [`fold`]: crate::classify::stored::fold

use crate::classify::stored::{BEYOND_ASCII, folded, is_name};
use crate::digest::AsItIs;
use crate::lex::{LexMode, Lexer};
use std::collections::HashSet;
use std::hash::BuildHasherDefault;

/// Names, as they are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameSet {
    numbers: HashSet<u64, BuildHasherDefault<AsItIs>>,
    words: Words,
}

/// Lengths of the names that begin with a letter: most words of a text are none of them by that
/// alone. A bit for each length, up to the last bit, which is that of all longer ones; letters of
/// one row in both cases, with what shares their last bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Words([u32; 32]);

impl Words {
    fn place(first: u8, len: usize) -> (usize, u32) {
        (usize::from(first & 31), 1 << len.min(31))
    }

    /// True if a word, which stands without quotes, may be one of the names.
    fn has(&self, first: u8, len: usize) -> bool {
        let (row, bit) = Self::place(first, len);
        self.0[row] & bit != 0
    }

    /// Takes in a name that is folded.
    fn insert(&mut self, name: &[u8]) {
        match name {
            [] => {}
            // Any name beyond ASCII is folded to this one.
            BEYOND_ASCII => self.0 = [u32::MAX; 32],
            [first, ..] => {
                let (row, bit) = Self::place(*first, name.len());
                self.0[row] |= bit;
            }
        }
    }
}

/// FNV-1a: <http://www.isthe.com/chongo/tech/comp/fnv/>.
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The number of a name of these bytes, which are folded.
fn number(folded: impl Iterator<Item = u8>) -> u64 {
    folded.fold(OFFSET_BASIS, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    })
}

impl NameSet {
    /// True if there is no name in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// True if a name, as it stands in a text, may be one of these; `false` is certain.
    #[must_use]
    pub fn may_have(&self, name: &[u8]) -> bool {
        match name {
            [] | [b'`' | b'"', ..] => {}
            [first, ..] if self.words.has(*first, name.len()) => {}
            _ => return false,
        }
        self.numbers.contains(&number(folded(name)))
    }

    /// True if any name in a text may be one of these; `false` is certain.
    #[must_use]
    pub fn may_be_in(&self, sql: &[u8], mode: LexMode) -> bool {
        let mut names = Lexer::new(sql, mode).filter(|token| is_name(*token));
        !self.is_empty() && names.any(|token| self.may_have(&sql[token.start..token.end]))
    }
}

/// Set of names that are folded: a name may have quotes in it, and is another when it is folded
/// again.
impl<'a> FromIterator<&'a [u8]> for NameSet {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(names: I) -> Self {
        let mut set = Self::default();
        for name in names {
            set.numbers.insert(number(name.iter().copied()));
            set.words.insert(name);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::stored::fold;

    #[test]
    fn a_name_is_found_in_each_form_in_which_it_compares_equal() {
        let names: [&[u8]; 5] = [b"orders", b"a`b", b"`q`", b"x$y", BEYOND_ASCII];
        let set: NameSet = names.into_iter().collect();
        for same in [
            "orders",
            "ORDERS",
            "`Orders`",
            "\"orders\"",
            "`a``b`",
            "\"a`b\"",
            "`A``B`",
            "```Q```",
            "X$y",
            "größe",
            "`é`",
        ] {
            assert!(set.may_have(same.as_bytes()), "{same}");
            let folded = fold(same.as_bytes());
            assert!(names.contains(&&*folded), "{same}");
        }
        for other in [
            "order", "orders1", "", "`", "``", "a``b", "`a`b`", "'orders'", "q", "`q`",
        ] {
            assert!(!set.may_have(other.as_bytes()), "{other}");
            let folded = fold(other.as_bytes());
            assert!(!names.contains(&&*folded), "{other}");
        }
        assert!(!set.is_empty() && NameSet::default().is_empty());
        assert!(!NameSet::default().may_have(b"orders"));
    }

    #[test]
    fn a_name_of_any_length_and_first_byte_is_found() {
        let mut all = Vec::new();
        for first in (0..0x80).filter(|byte: &u8| !b"`\"".contains(byte)) {
            for len in [1, 2, 30, 31, 32, 33, 64, 300] {
                let mut name = vec![b'x'; len];
                name[0] = first;
                all.push(name);
            }
        }
        for name in &all {
            let lower = name.to_ascii_lowercase();
            let set: NameSet = [&*lower].into_iter().collect();
            assert!(set.may_have(name), "{}", name.escape_ascii());
            let quoted = [b"`", &**name, b"`"].concat();
            assert!(set.may_have(&quoted), "{}", quoted.escape_ascii());
            let found = all.iter().filter(|name| set.may_have(name));
            assert!(found.count() <= 2, "one, in both cases");
            assert!(!set.may_have("é".as_bytes()));
        }
    }

    #[test]
    fn a_name_is_found_in_a_text_and_not_in_its_strings() {
        let set: NameSet = [&b"orders"[..]].into_iter().collect();
        let is_in = |sql: &str| set.may_be_in(sql.as_bytes(), LexMode::default());
        assert!(is_in("SELECT a FROM shop.Orders"));
        assert!(is_in("SELECT `orders`.a"));
        assert!(!is_in("SELECT 'orders', @orders FROM t -- orders"));
    }
}
