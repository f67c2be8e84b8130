//! The user variables of a session: names, and the literals that make their values.
//!
//! A session is copied and compared often, and its variables may be long; so they are one shared
//! object that is never changed, with its hash at hand. What all of a group's objects hold is
//! counted by a [`Meter`], down to the last byte and also while nobody but the interner has them.
//!
//! Invariant: sorted by name; names are as the servers compare them, as far as they are ASCII.

use super::Text;
use crate::meter::{Charge, Meter};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Bytes of SQL around two names and their values, besides a literal.
const PUNCTUATION_LEN: usize = 32;

/// One variable: its name and its literal.
type Pair = (Text, Rc<[u8]>);

#[derive(Debug)]
struct List {
    pairs: Vec<Pair>,
    hash: u64,
    charge: Charge,
}

/// All user variables of a session.
#[derive(Clone, Debug, Default)]
pub struct UserVariables(Option<Rc<List>>);

impl UserVariables {
    /// Variables with changes; an empty literal is a variable that is as if never set.
    pub fn with(&self, changes: &[(Text, Vec<u8>)], meter: &Meter) -> UserVariables {
        let mut pairs = self.pairs().to_vec();
        for (name, literal) in changes {
            let place = pairs.binary_search_by(|(other, _)| other.cmp(name));
            match (place, literal.is_empty()) {
                (Ok(found), true) => drop(pairs.remove(found)),
                (Ok(found), false) => pairs[found].1 = literal[..].into(),
                (Err(_), true) => {}
                (Err(place), false) => pairs.insert(place, (name.clone(), literal[..].into())),
            }
        }
        if pairs.is_empty() {
            return UserVariables(None);
        }
        let bytes = pairs
            .iter()
            .map(|(name, literal)| name.len() + literal.len());
        let bytes = bytes.sum();
        let mut hasher = DefaultHasher::new();
        pairs.hash(&mut hasher);
        UserVariables(Some(Rc::new(List {
            pairs,
            hash: hasher.finish(),
            charge: Charge::new(meter, bytes),
        })))
    }

    /// Each of them.
    pub fn pairs(&self) -> &[Pair] {
        self.0.as_ref().map_or(&[], |list| &list.pairs)
    }

    /// The literal of one.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let pairs = self.pairs();
        let place = pairs
            .binary_search_by(|(other, _)| (**other).cmp(name))
            .ok()?;
        Some(&pairs[place].1)
    }

    /// Bytes of names and literals.
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |list| list.charge.bytes())
    }

    /// Most bytes of SQL that set all of them, or take all of them away.
    pub fn sql_len_max(&self) -> usize {
        // To be taken away, a name is written twice, and each of its bytes may be a quote.
        let of_one = |(name, literal): &Pair| 4 * name.len() + literal.len() + PUNCTUATION_LEN;
        self.pairs().iter().map(of_one).sum()
    }

    /// True if servers may take two of its names, or one and another's, for the same.
    pub fn is_tricky(&self) -> bool {
        self.pairs().iter().any(|(name, _)| is_tricky(name))
    }

    /// True if any name is not ASCII.
    pub fn is_foreign(&self) -> bool {
        self.pairs().iter().any(|(name, _)| !name.is_ascii())
    }
}

/// True if a server may take a variable of this name for one of another: accents and spaces at the
/// end make a difference on some (MariaDB 10.11 and MySQL 9.7 differ).
pub fn is_tricky(name: &[u8]) -> bool {
    !name.is_ascii() || name.last().is_some_and(u8::is_ascii_whitespace)
}

impl PartialEq for UserVariables {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(two)) => {
                Rc::ptr_eq(one, two) || (one.hash == two.hash && one.pairs == two.pairs)
            }
            _ => false,
        }
    }
}

impl Eq for UserVariables {}

impl Hash for UserVariables {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_ref().map_or(0, |list| list.hash).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, literal: &str) -> (Text, Vec<u8>) {
        (name.as_bytes().into(), literal.as_bytes().to_vec())
    }

    #[test]
    fn what_all_of_them_hold_is_counted_until_the_last_has_gone() {
        let meter = Meter::default();
        let none = UserVariables::default();
        let one = none.with(&[change("a", "12345")], &meter);
        let same = one.clone();
        let two = one.with(&[change("bc", "1"), change("a", "")], &meter);
        assert_eq!((one.bytes(), two.bytes(), meter.bytes()), (6, 3, 9));
        assert_eq!(two.get(b"bc"), Some(&b"1"[..]));
        assert_eq!(two.get(b"a"), None);
        drop(one);
        assert_eq!(meter.bytes(), 9, "a copy is left");
        drop((same, two));
        assert_eq!(meter.bytes(), 0);
        assert_eq!(none.with(&[change("a", "")], &meter), none);
    }

    #[test]
    fn they_are_equal_by_what_they_hold() {
        let meter = Meter::default();
        let with = |changes: &[_]| UserVariables::default().with(changes, &meter);
        let one = with(&[change("a", "1"), change("b", "2")]);
        let two = with(&[change("b", "2"), change("a", "1")]);
        assert_eq!(one, two);
        assert_ne!(one, with(&[change("a", "1")]));
        assert_ne!(one, UserVariables::default());
    }

    #[test]
    fn names_that_servers_may_mix_up_are_known() {
        for name in ["\u{e9}", "a ", "a\t"] {
            assert!(is_tricky(name.as_bytes()), "{name}");
        }
        assert!(!is_tricky(b"a b`c") && !is_tricky(b"a_$.9"));
    }
}
