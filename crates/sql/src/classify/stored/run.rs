//! Stored code that a client's own text runs: the routines that it calls, and questions in it.
//!
//! The rest of the text is judged by [`crate::classify`], and the routines by the caller, who knows
//! them. Invariant: each call is given, whatever block it stands in.

use super::{Call, Code};
use crate::classify::Reads;
use crate::lex::LexMode;
use std::collections::BTreeSet;

/// Routines that a text calls; `None` where servers read it in different ways.
#[must_use]
pub fn calls_in(sql: &[u8], mode: LexMode) -> Option<BTreeSet<Call>> {
    let code = Code::new(sql, mode);
    (!code.doubtful).then(|| code.scan().calls)
}

/// Results of the statement before that any word of a text may ask for, in whatever block it
/// stands.
#[must_use]
pub fn asked_in(sql: &[u8], mode: LexMode) -> Reads {
    let code = Code::new(sql, mode);
    code.reads_between(0, code.tokens.len())
}
