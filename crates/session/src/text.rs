//! Texts of a session: bytes that are mostly ASCII, in whatever character set they came.
//!
//! Values and names come from servers and clients as bytes, and are sent back as the same bytes;
//! nothing here decodes them. How SQL is cut into tokens is the matter of [`sql::lex`].

/// Bytes, mostly ASCII, as the server sent them.
pub type Text = Box<[u8]>;

/// True if a word stands anywhere in a text.
#[must_use]
pub fn mentions(sql: &[u8], word: &[u8]) -> bool {
    sql.windows(word.len())
        .any(|found| found.eq_ignore_ascii_case(word))
}

/// True if a text may ask for the default schema, by one of the functions DATABASE() and SCHEMA(),
/// or name it, as CREATE DATABASE does: one of the two words stands in it.
#[must_use]
pub fn may_ask_for_schema(sql: &[u8]) -> bool {
    mentions(sql, b"database") || mentions(sql, b"schema")
}
