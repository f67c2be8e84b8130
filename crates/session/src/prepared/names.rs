//! Statements by name: what clients have under their names, and backends under theirs.
//!
//! A client's names are looked up here, and what its backend has under the same name. The texts
//! that name them are read by [`sql::text_prepared`].

use super::{Definition, OnBackend, Statements};
use sql::text_prepared::Name;
use std::rc::Rc;

/// Statements that a client may carry by name.
pub const NAMED_MAX: usize = 64;
/// Names in one text whose statements are prepared on a backend in front of it: each takes a few
/// commands, of which there is a bound for one statement ([`crate::own_commands`]).
pub const USED_MAX: usize = 16;
/// Bytes of their texts.
pub const NAMED_BYTES_MAX: usize = 256 * 1024;

/// Action of a command on a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// Prepares the definition under it.
    Prepare(Name),
    /// Prepares under it a text that is not known.
    PrepareUnread(Name),
    /// Executes the definition under it.
    Execute(Name),
    /// May execute it, in code that the text calls.
    MayExecute(Name),
    /// Uses it though the client has no such statement.
    Absent(Name),
    /// Takes away one whose text is not known.
    Deallocate(Name),
}

impl Named {
    /// The name whose definition its backend is to have.
    #[must_use]
    pub fn executed(&self) -> Option<&Name> {
        match self {
            Named::Execute(name) | Named::MayExecute(name) => Some(name),
            _ => None,
        }
    }
}

/// A definition that a backend has under a name.
#[derive(Debug)]
pub struct NamedEntry {
    /// The name.
    pub name: Name,
    /// `None`: a text that is not known, of the pinned client that has the backend.
    pub definition: Option<Rc<Definition>>,
    /// When it was used last, in uses of this backend.
    pub used: u64,
}

impl Statements {
    /// Definition that the client has under a name.
    pub fn named(&self, name: &[u8]) -> Option<&Rc<Definition>> {
        let mut all = self.named.iter();
        let found = all.find(|(known, _)| **known == *name)?;
        Some(&found.1)
    }

    /// The client has nothing under this name.
    pub fn forget_name(&mut self, name: &[u8]) {
        self.named.retain(|(known, _)| **known != *name);
    }

    /// The first of these names under which a backend does not have what the client has.
    pub fn lacking<'a>(
        &'a self,
        used: &'a [Name],
        on: &OnBackend,
    ) -> Option<(&'a Name, &'a Rc<Definition>)> {
        let mut known =
            (used.iter().take(USED_MAX)).filter_map(|name| Some((name, self.named(name)?)));
        known.find(|(name, definition)| !on.has_named(name, definition))
    }

    /// True if the client may carry another text under this name.
    pub fn has_room_for(&self, name: &[u8], text: &[u8]) -> bool {
        let others = || self.named.iter().filter(|(known, _)| **known != *name);
        let bytes: usize = others().map(|(_, definition)| definition.sql.len()).sum();
        others().count() < NAMED_MAX && bytes + text.len() <= NAMED_BYTES_MAX
    }
}

impl OnBackend {
    /// True if it has this definition under this name.
    pub fn has_named(&self, name: &[u8], definition: &Rc<Definition>) -> bool {
        let mut all = self.named.iter();
        let found = all.find(|entry| *entry.name == *name);
        let known = found.and_then(|entry| entry.definition.as_ref());
        known.is_some_and(|known| Rc::ptr_eq(known, definition))
    }

    /// Notes a use of the entry under this name.
    pub fn use_named(&mut self, name: &[u8]) {
        self.uses += 1;
        let mut all = self.named.iter_mut();
        if let Some(entry) = all.find(|entry| *entry.name == *name) {
            entry.used = self.uses;
        }
    }

    /// Notes what the server has under a name from now on, if anything.
    pub fn set_named(&mut self, name: &Name, definition: Option<Option<Rc<Definition>>>) {
        self.named.retain(|entry| entry.name != *name);
        self.uses += 1;
        if let Some(definition) = definition {
            self.named.push(NamedEntry {
                name: name.clone(),
                definition,
                used: self.uses,
            });
        }
    }

    /// True if it has anything under this name.
    pub fn has_name(&self, name: &[u8]) -> bool {
        self.named.iter().any(|entry| *entry.name == *name)
    }

    /// The name that was not used for longest, of those that may be taken away.
    pub fn oldest_name(&self) -> Option<(u64, Name)> {
        let all = self.named.iter().filter(|entry| entry.definition.is_some());
        let oldest = all.min_by_key(|entry| entry.used)?;
        Some((oldest.used, oldest.name.clone()))
    }
}
