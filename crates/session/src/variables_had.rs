//! The names of user variables that a backend has had since its session began, as a value.
//!
//! A backend keeps it, and is asked whether a statement could read what another client has left.
//! Names are bounded by [`NAMES_MAX`] and [`NAME_LEN_MAX`]; with more, or longer ones, any name may
//! have been there.

use crate::record::{Read, put_bool, put_list, read_bool, read_list, read_text};
use crate::state::{UserVariables, is_tricky};
use crate::text::Text;
use std::collections::HashSet;
use wire::packet::{Reader, put_lenenc_bytes};

/// Names that a backend remembers; with more it counts as having had any.
const NAMES_MAX: usize = 512;
/// Longest of them, in bytes.
const NAME_LEN_MAX: usize = 256;
/// Stands for a name that is not certain.
pub const UNCERTAIN: &[u8] = b"";

/// Names of the user variables that a backend has had since its session began.
#[derive(Clone, Debug, Default)]
pub struct Had {
    names: HashSet<Text>,
    /// There were too many to remember, or too long ones.
    any: bool,
}

impl Had {
    /// Notes one more.
    pub fn add(&mut self, name: &[u8]) {
        if self.any || self.names.contains(name) {
            return;
        }
        if self.names.len() >= NAMES_MAX || name.len() > NAME_LEN_MAX {
            *self = Had {
                any: true,
                ..Had::default()
            };
            return;
        }
        self.names.insert(name.into());
    }

    /// Notes those of a session.
    pub fn add_all(&mut self, user: &UserVariables) {
        for (name, _) in user.pairs() {
            self.add(name);
        }
    }

    /// Appends them.
    pub fn put_record(&self, out: &mut Vec<u8>) {
        put_bool(out, self.any);
        put_list(out, self.names.iter(), |out, name| {
            put_lenenc_bytes(out, name);
        });
    }

    /// Reads them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read_record(reader: &mut Reader<'_>) -> Read<Had> {
        let any = read_bool(reader, "whether any variable was there")?;
        let names = read_list(reader, "variables", |reader| {
            read_text(reader, "a variable")
        })?;
        let mut had = Had {
            any,
            ..Had::default()
        };
        names.iter().for_each(|name| had.add(name));
        Ok(had)
    }

    /// True if one of these may have been there, which a client has never set; `own` knows those
    /// that it has set, which it would find on a connection of its own too.
    #[must_use]
    pub fn has_any_of(&self, unset: &[Text], own: impl Fn(&[u8]) -> bool) -> bool {
        let meets = |had: &Text| {
            let may_be = |name: &Text| {
                *name == *had
                    || [name, had]
                        .iter()
                        .any(|n| ***n == *UNCERTAIN || is_tricky(n))
            };
            unset.iter().any(may_be) && !own(had)
        };
        !unset.is_empty() && (self.any || self.names.iter().any(meets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_remembers_names_until_they_are_too_many() {
        let names = |names: &[&str]| -> Vec<Text> {
            names.iter().map(|name| name.as_bytes().into()).collect()
        };
        let mut had = Had::default();
        let has = |had: &Had, unset: &[&str]| had.has_any_of(&names(unset), |_| false);
        assert!(!has(&had, &["a", "", "\u{e9}"]), "it had none");
        had.add(b"a");
        assert!(!has(&had, &[]) && !has(&had, &["b"]));
        assert!(has(&had, &["b", "a"]) && has(&had, &[""]));
        assert!(has(&had, &["\u{e1}"]), "it may be a");
        had.add("\u{e9}".as_bytes());
        assert!(has(&had, &["b"]) && !has(&had, &[]));
        // What the client has set itself is not another's.
        let own = |own: &'static str| move |name: &[u8]| name == own.as_bytes();
        assert!(!had.has_any_of(&names(&["b"]), own("\u{e9}")));
        assert!(had.has_any_of(&names(&["a", "b"]), own("\u{e9}")));
        assert!(had.has_any_of(&names(&["b"]), own("a")));
        for i in had.names.len()..NAMES_MAX {
            had.add(format!("v{i}").as_bytes());
        }
        assert!(!had.any && had.names.len() == NAMES_MAX);
        let mut uncertain = Had::default();
        uncertain.add(UNCERTAIN);
        assert!(has(&uncertain, &["a"]) && !has(&uncertain, &[]));
        had.add(b"one more");
        assert!(had.any && had.names.is_empty() && has(&had, &["x"]));
        let mut had = Had::default();
        had.add(&[b'n'; NAME_LEN_MAX]);
        assert!(!had.any && had.names.len() == 1);
        had.add(&[b'n'; NAME_LEN_MAX + 1]);
        assert!(had.any && had.names.is_empty());
    }
}
