//! Values of a session as records: how a session goes to another process of the pool.
//!
//! Most values are their own records. One that shares objects or depends on what its process knows
//! has a record beside it, which names each of its fields: one that is new is not forgotten.
//!
//! Invariants: what was written is read as an equal value; what cannot be carried exactly is
//! [`NotCarried`], never a guess.

mod prepared;
mod state;

use crate::global_defaults::GlobalDefaults;
use crate::meter::Meter;
use crate::text::Text;
pub use prepared::{EntryRecord, HeldRecord};
use serde::{Deserialize, Serialize};
pub use state::SessionRecord;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// Reason for which this process can have no such value as a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotCarried(pub &'static str);

impl fmt::Display for NotCarried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for NotCarried {}

/// Inputs of making values of records.
#[derive(Clone, Copy, Debug)]
pub struct Here<'a> {
    /// Global values under which sessions of the other process began.
    pub peer_defaults: &'a [PeerDefaults],
    /// Defaults with which sessions begin here.
    pub defaults: &'a GlobalDefaults,
    /// Meter of user variables.
    pub variables: &'a Meter,
    /// Meter of conditions.
    pub conditions: &'a Meter,
}

/// The global values that a session of another process began under.
///
/// Both processes count the changes that they have seen ([`GlobalDefaults::version`]), so the
/// number means nothing here: what counts are the values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeerDefaults {
    version: u64,
    values: Vec<(Text, Option<Text>)>,
    /// Differences from the values of this process, for the version that was asked about last: they
    /// are equal for all sessions, and mostly none.
    #[serde(skip)]
    differing: RefCell<Option<(u64, Rc<Differing>)>>,
}

/// Differences between two sets of global values.
#[derive(Debug, Default)]
struct Differing {
    /// Variables that are not known of the other process.
    not_there: Vec<Text>,
    /// Variables with another value, and that of the other process.
    otherwise: Vec<(Text, Option<Text>)>,
}

impl PeerDefaults {
    /// Values that sessions of this process begin under.
    #[must_use]
    pub fn of(defaults: &GlobalDefaults) -> PeerDefaults {
        let names = match defaults.version() {
            0 => &[],
            _ => defaults.names(),
        };
        let value = |name: &Text| (name.clone(), defaults.value(name).map(Text::from));
        PeerDefaults {
            version: defaults.version(),
            values: names.iter().map(value).collect(),
            differing: RefCell::default(),
        }
    }

    /// Version of the values in their own process.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The variables, with their values, that a session must have as its own so that with `now` it
    /// is what it was with these; none where these were not known. `listed` says which it has as
    /// its own anyway.
    ///
    /// # Errors
    /// [`NotCarried`] where a value is not known, or is NULL.
    pub fn besides(
        &self,
        now: &GlobalDefaults,
        listed: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<(Text, Text)>, NotCarried> {
        if self.version == 0 {
            return Ok(Vec::new());
        }
        if now.version() == 0 {
            return Err(NotCarried("the server's global values are not known here"));
        }
        let differing = self.differing(now);
        if differing.not_there.iter().any(|name| !listed(name)) {
            return Err(NotCarried(
                "the other process does not know all variables of a session",
            ));
        }
        let mut besides = Vec::new();
        for (name, value) in differing.otherwise.iter().filter(|(name, _)| !listed(name)) {
            match value {
                Some(value) => besides.push((name.clone(), value.clone())),
                None => {
                    return Err(NotCarried(
                        "the session began with NULL where sessions of now do not",
                    ));
                }
            }
        }
        Ok(besides)
    }

    fn differing(&self, now: &GlobalDefaults) -> Rc<Differing> {
        let mut known = self.differing.borrow_mut();
        if let Some((version, differing)) = &*known
            && *version == now.version()
        {
            return differing.clone();
        }
        let is_there = |name: &Text| {
            let found = self.values.binary_search_by(|(other, _)| other.cmp(name));
            found.is_ok()
        };
        let all = now.names().iter();
        let not_there = all.filter(|name| !is_there(name)).cloned().collect();
        let differs = |(name, value): &&(Text, Option<Text>)| now.value(name) != value.as_deref();
        let otherwise = self.values.iter().filter(differs).cloned().collect();
        let differing = Rc::new(Differing {
            not_there,
            otherwise,
        });
        *known = Some((now.version(), differing.clone()));
        differing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Text {
        text.as_bytes().into()
    }

    fn defaults(values: &[(&str, Option<&str>)]) -> GlobalDefaults {
        let names = values.iter().map(|(name, _)| text(name)).collect();
        let values = values.iter().map(|(_, value)| value.map(text)).collect();
        GlobalDefaults::named(names)
            .with(values, Text::default())
            .unwrap()
    }

    #[test]
    fn what_began_otherwise_becomes_the_sessions_own() {
        let there = PeerDefaults::of(&defaults(&[
            ("a", Some("1")),
            ("b", None),
            ("c", Some("3")),
        ]));
        let same = defaults(&[("a", Some("1")), ("b", None), ("c", Some("3"))]);
        assert_eq!(there.besides(&same, |_| false), Ok(vec![]));
        // The next one that this process has.
        let same = same.with(
            vec![Some(text("1")), None, Some(text("4"))],
            Text::default(),
        );
        let own = there.besides(&same.unwrap(), |_| false);
        assert_eq!(own, Ok(vec![(text("c"), text("3"))]));
        let other = defaults(&[("a", Some("2")), ("b", None), ("c", Some("4"))]);
        let there = PeerDefaults::of(&defaults(&[
            ("a", Some("1")),
            ("b", None),
            ("c", Some("3")),
        ]));
        let own = there.besides(&other, |name| name == b"c");
        assert_eq!(own, Ok(vec![(text("a"), text("1"))]));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let there = PeerDefaults::of(&defaults(&[("a", None)]));
        let otherwise = defaults(&[("a", Some("1"))]);
        assert!(there.besides(&otherwise, |_| false).is_err(), "NULL");
        let more = defaults(&[("a", None), ("b", Some("1"))]);
        assert!(there.besides(&more, |_| false).is_err(), "one more");
        assert!(
            there
                .besides(&GlobalDefaults::default(), |_| false)
                .is_err()
        );
        let unknown = PeerDefaults::of(&GlobalDefaults::default());
        for now in [GlobalDefaults::default(), otherwise] {
            assert_eq!(unknown.besides(&now, |_| false), Ok(vec![]));
        }
    }
}
