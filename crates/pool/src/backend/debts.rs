//! What is still to be asked of a client's last backend, as a value.
//!
//! [`crate::group::session_state::lazy_readback`] decides when it is asked; a backend holds
//! [`Asked`] while the answers are on their way.

use reactor::Key;

/// What is to be asked of a client's home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Debts {
    /// FOUND_ROWS()
    pub(crate) found: bool,
    /// Items of so many conditions.
    pub(crate) conditions: usize,
    /// All items of each; otherwise those that differ from one server to the next.
    pub(crate) all: bool,
}

/// What is being asked of a backend, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) client: Key,
    /// The client's count of statements.
    pub(crate) sent: u32,
    pub(crate) debts: Debts,
    /// A condition could not be read.
    pub(crate) failed: bool,
}

impl Debts {
    pub(crate) fn is_none(self) -> bool {
        !self.found && self.conditions == 0
    }

    /// Whether a SELECT would take them away.
    pub(crate) fn has_conditions(self) -> bool {
        self.conditions > 0
    }
}
