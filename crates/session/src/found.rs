//! FOUND_ROWS() as a value, and what may become of it.
//!
//! The effect of a text is [`found_of`](crate::plan::found_of), the value at the end of a statement
//! [`LastStatement::ended`](crate::last_statement::LastStatement::ended).

use serde::{Deserialize, Serialize};

/// Effect on FOUND_ROWS().
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Number of rows of the reply.
    Rows,
    /// Unchanged number.
    Keeps,
    /// New number, known to the backend.
    Counts,
    /// New number for which its client is about to ask (SQL_CALC_FOUND_ROWS): it is read back.
    Calculated,
    /// Unknown from the text.
    Unsure,
}

/// FOUND_ROWS(), if it is known; 8 bytes of an idle client instead of 16.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FoundRows(u64);

impl FoundRows {
    /// More than any query finds.
    const UNKNOWN: u64 = u64::MAX;
    /// FOUND_ROWS() of a session that has asked nothing yet.
    pub const NONE_YET: FoundRows = FoundRows(0);

    /// The number, if it is known.
    pub fn get(self) -> Option<u64> {
        (self.0 < Self::UNKNOWN).then_some(self.0)
    }

    /// Sets the number; `None`: not known.
    pub fn set(&mut self, rows: Option<u64>) {
        self.0 = rows.unwrap_or(Self::UNKNOWN);
    }
}
