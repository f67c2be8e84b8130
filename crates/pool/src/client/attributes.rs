//! Query attributes (MySQL): how a client's commands are read, and said in other words.
//!
//! The problem: a client that has agreed on query attributes puts named values in front of each
//! text and among the parameters of each execution; they belong to that one statement and are for
//! the server to read. The mechanism: the capability is a part of a backend's pool key
//! (`wire/capabilities.rs: BACKEND_KEY`), so a client's command goes out in the form in which it
//! came, attributes and all. What the pool does with a text, it does behind the header; where it
//! says something else instead, the header stays; what it says on its own has an empty one
//! (`wire/attributes.rs: put_query`).
//!
//! Invariants: the text that is classified is the text that the server runs, so a header that
//! cannot be read for certain is refused; what is kept of a statement (a definition, user
//! variables, types of parameters) has no attribute in it.

use crate::client::Client;
use crate::client::buffers::message::payload_of;
use sql::lex::LexMode;
use wire::attributes::{Form, header_len, put_reworded};
use wire::packet::Malformed;

/// The text in the arguments of a COM_QUERY, behind its attributes where its client has agreed on
/// these.
pub(crate) fn text_in(capabilities: u32, arguments: &[u8]) -> Result<&[u8], Malformed> {
    match Form::of(capabilities) {
        Form::Plain => Ok(arguments),
        form => Ok(&arguments[header_len(form, arguments)?..]),
    }
}

/// A client's text in other words, with the query attributes that it came with.
pub(crate) fn reworded(capabilities: u32, message: &[u8], sql: &[u8]) -> Vec<u8> {
    let payload = payload_of(message);
    let arguments = payload.get(1..).unwrap_or_default();
    let len = header_len(Form::of(capabilities), arguments).unwrap_or(0);
    let mut out = Vec::with_capacity(sql.len() + len + 8);
    put_reworded(&mut out, &arguments[..len], sql);
    out
}

impl<S> Client<S> {
    /// The text with its own id for CONNECTION_ID(), when that is what it asks for.
    pub(crate) fn with_own_id(&self, sql: &[u8], mode: LexMode) -> Option<Vec<u8>> {
        let id = self.own_id()?;
        if sql::unscoped::sets(sql, mode, b"pseudo_thread_id") {
            return None;
        }
        sql::own_id::with_own_id(sql, mode, id)
    }

    /// Its own id, where that is what CONNECTION_ID() means.
    pub(crate) fn own_id(&self) -> Option<u32> {
        // Among the server's lists of connections its own ids are meant; and a client that has set
        // @@pseudo_thread_id gets that from the server.
        let schema = self.session.state.schema.as_deref().unwrap_or_default();
        const LISTS: [&[u8]; 3] = [b"information_schema", b"performance_schema", b"sys"];
        let lists = LISTS.iter().any(|list| schema.eq_ignore_ascii_case(list));
        let set = self.session.state.variable(b"pseudo_thread_id").is_some();
        (!lists && !set).then_some(self.identity.id())
    }
}
