//! One breach of a rule.
//!
//! It always says three things: where, what is wrong, and what to do about it. The form is the one
//! that editors and terminals know how to follow.

use std::fmt;

/// A breach of a rule at one line of one file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offence {
    /// Relative to the workspace.
    pub(crate) path: String,
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) what: String,
    /// Advice.
    pub(crate) remedy: String,
}

impl Offence {
    pub(crate) fn new(
        path: &str,
        line: usize,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}:{}: {}; {}",
            self.path, self.line, self.what, self.remedy
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_what_and_what_to_do() {
        let offence = Offence::new("src/main.rs", 7, "too long", "break the line");
        assert_eq!(
            offence.to_string(),
            "src/main.rs:7: too long; break the line"
        );
    }
}
