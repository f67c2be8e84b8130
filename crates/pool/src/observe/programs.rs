//! Names of the programs that clients are, as their connection attributes say (`program_name`).
//!
//! The problem: whoever looks for the owner of a lock wants the program's name, and an idle client
//! has no room for one. The mechanism: each name is kept once, and a client has its number.
//!
//! Bounds: [`PROGRAMS_MAX`] names of [`NAME_MAX`] bytes, for as long as the process lasts; clients
//! of programs that come later are shown without one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Names that are kept: an idle client has a byte for its own.
pub(crate) const PROGRAMS_MAX: usize = u8::MAX as usize;
/// Bytes of a name; the rest is left out.
const NAME_MAX: usize = 64;

/// Number of a program; 0: it has not said its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program(u8);

/// The names of all clients' programs.
#[derive(Debug, Default)]
pub(crate) struct Programs(Mutex<BTreeMap<Arc<str>, u8>>);

impl Programs {
    /// The number of this name.
    pub(crate) fn number(&self, name: &[u8]) -> Program {
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_MAX)]);
        if name.is_empty() {
            return Program::default();
        }
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = names.get(&*name) {
            return Program(*number);
        }
        if names.len() >= PROGRAMS_MAX {
            return Program::default();
        }
        let next = u8::try_from(names.len() + 1).unwrap_or(0);
        names.insert(name.into(), next);
        Program(next)
    }

    /// The name of this one.
    pub(crate) fn name(&self, program: Program) -> Option<Arc<str>> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names = names.iter();
        names.find_map(|(name, number)| (*number == program.0).then(|| name.clone()))
    }

    /// All names by their numbers, as of this moment.
    pub(crate) fn names(&self) -> BTreeMap<u8, Arc<str>> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pairs = names.iter().map(|(name, number)| (*number, name.clone()));
        pairs.collect()
    }
}

impl Program {
    /// Its name among these.
    pub(crate) fn name(self, names: &BTreeMap<u8, Arc<str>>) -> Option<&Arc<str>> {
        names.get(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_as_many_as_there_may_be() {
        let programs = Programs::default();
        let one = programs.number(b"backup");
        assert_eq!(programs.number(b"backup"), one);
        assert_eq!(programs.number(b""), Program::default());
        for other in 0..PROGRAMS_MAX {
            programs.number(format!("program {other}").as_bytes());
        }
        let names = programs.names();
        assert_eq!(names.len(), PROGRAMS_MAX);
        assert_eq!(one.name(&names).map(|name| &**name), Some("backup"));
        let late = programs.number(b"one more");
        assert_eq!((late, late.name(&names)), (Program::default(), None));
        let long = Programs::default();
        long.number(&[b'x'; NAME_MAX + 1]);
        assert_eq!(
            long.names().values().next().map(|name| name.len()),
            Some(NAME_MAX)
        );
    }
}
