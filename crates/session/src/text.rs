//! Texts of a session: bytes that are mostly ASCII, in whatever character set they came.
//!
//! Values and names come from servers and clients as bytes, and are sent back as the same bytes;
//! nothing here decodes them. How SQL is cut into tokens is the matter of [`sql::lex`].

/// Bytes, mostly ASCII, as the server sent them.
pub type Text = Box<[u8]>;

/// Whether a word stands anywhere in a text.
#[must_use]
pub fn mentions(sql: &[u8], word: &[u8]) -> bool {
    sql.windows(word.len())
        .any(|found| found.eq_ignore_ascii_case(word))
}
