//! A session's state, as a client or the server believes it to be.
//!
//! Both sides of the simulation keep one: the fake server what it has been told, each client what
//! it must find. Invariant: two sessions are equal when their words are.

use std::collections::BTreeMap;

/// Values of a session unless somebody has set them.
pub(crate) const DEFAULTS: [(&str, &str); 8] = [
    ("character_set_client", "utf8mb4"),
    ("character_set_connection", "utf8mb4"),
    ("character_set_results", "utf8mb4"),
    ("collation_connection", "utf8mb4_general_ci"),
    ("sort_buffer_size", "30"),
    ("optimizer_prune_level", "1"),
    ("sql_safe_updates", "OFF"),
    ("time_zone", "SYSTEM"),
];

/// A session's state, as a client or the server believes it to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) schema: Option<String>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) multi: bool,
}

impl Standing {
    /// Sets a variable; those that have their default are not listed.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        if DEFAULTS.contains(&(name, value)) {
            self.variables.remove(name);
        } else {
            self.variables.insert(name.into(), value.into());
        }
    }

    /// Everything in one line.
    pub(crate) fn words(&self) -> String {
        let schema = self.schema.as_deref().unwrap_or("-");
        format!("{schema} {:?} multi={}", self.variables, self.multi)
    }
}

/// The session of an execution in words: what it is now, but for the schema, and what it was when
/// the statement was prepared.
pub(crate) fn words_of(now: &Standing, prepared: &Standing) -> String {
    let mut now = now.clone();
    now.schema.clone_from(&prepared.schema);
    format!("{} prepared in {}", now.words(), prepared.words())
}
