//! FOUND_ROWS() as a value, and what may become of it.
//!
//! What a text does to it says [`found_of`](crate::beforehand::found_of); what a statement has left
//! of it when it has ended, [`LastStatement::ended`](crate::last_statement::LastStatement::ended).

/// Effect on FOUND_ROWS().
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is the number of rows of the reply.
    Rows,
    /// It counts, and queries stand inside of it.
    Nested,
    /// It stays.
    Keeps,
    /// It is new; which it is, the backend knows.
    Counts,
    /// It is the number of rows that matched; if that is 0, it may have stayed.
    Matched,
    /// Nobody can tell from the text.
    Unsure,
}

/// FOUND_ROWS(), if it is known; 8 bytes of an idle client instead of 16.
#[derive(Clone, Copy, Debug)]
pub struct FoundRows(u64);

impl FoundRows {
    /// More than any query finds.
    const UNKNOWN: u64 = u64::MAX;
    /// It is that of its backend, or the one before.
    const UNSETTLED: u64 = u64::MAX - 1;
    /// FOUND_ROWS() of a session that has asked nothing yet.
    pub const NONE_YET: FoundRows = FoundRows(0);

    /// The number, if it is known.
    pub fn get(self) -> Option<u64> {
        (self.0 < Self::UNSETTLED).then_some(self.0)
    }

    /// Nobody can tell whether its last statement has counted before its backend is asked.
    pub fn unsettle(&mut self) {
        self.0 = Self::UNSETTLED;
    }

    /// True if its backend is to be asked, and what that had before decides.
    pub fn is_unsettled(self) -> bool {
        self.0 == Self::UNSETTLED
    }

    /// It is this number; `None`: not known.
    pub fn set(&mut self, rows: Option<u64>) {
        self.0 = rows.unwrap_or(Self::UNKNOWN);
    }
}
