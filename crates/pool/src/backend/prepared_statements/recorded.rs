//! A client's prepared statement as bytes, for another process of the pool.
//!
//! What the server has prepared stays with the backends of this process. What goes is what the
//! client knows: the id, the text and the session in which it was prepared, the types that it has
//! sent, long data for the next execution. The other process prepares the text where it executes
//! it, as for any backend that lacks it.

use super::{Held, Statements};
use session::record::{Read, put_bool, put_option, read_bool, read_number, read_option, read_text};
use session::state::Session;
use session::text::Text;
use std::rc::Rc;
use wire::packet::{Reader, put_lenenc, put_lenenc_bytes};

/// A statement of a client that another process has sent.
#[derive(Debug)]
pub(crate) struct HeldRecord {
    pub(crate) id: u32,
    columns: u16,
    params: u16,
    overlong: bool,
    pub(crate) sql: Text,
    pub(crate) session: Rc<Session>,
    types: Option<Rc<[u8]>>,
    long: Option<Vec<u8>>,
}

impl Held {
    /// Appends it. No cursor of it is open.
    /// `before` is the statement in front of it: mostly it was prepared in the same session.
    pub(crate) fn put_record(&self, out: &mut Vec<u8>, before: Option<&Held>) {
        // Each field has to be named here: one that is new is not forgotten.
        let Held {
            id,
            columns,
            params,
            cursor: _,
            overlong,
            definition,
            types,
            long,
        } = self;
        put_lenenc(out, u64::from(*id));
        put_lenenc(out, u64::from(*columns));
        put_lenenc(out, u64::from(*params));
        put_bool(out, *overlong);
        put_lenenc_bytes(out, &definition.sql);
        let same = before.filter(|b| Rc::ptr_eq(&b.definition.session, &definition.session));
        put_bool(out, same.is_some());
        if same.is_none() {
            definition.session.put_record(out);
        }
        put_option(out, types.as_deref(), put_lenenc_bytes);
        put_option(out, long.as_ref(), |out, long| put_lenenc_bytes(out, long));
    }
}

impl HeldRecord {
    /// Reads one that stands behind another in the session `before`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read_record(
        reader: &mut Reader<'_>,
        before: Option<&Rc<Session>>,
        session: impl Fn(&mut Reader<'_>) -> Read<Session>,
    ) -> Read<HeldRecord> {
        Ok(HeldRecord {
            id: read_number(reader, "the number of a statement")?,
            columns: read_number(reader, "a number of columns")?,
            params: read_number(reader, "a number of parameters")?,
            overlong: read_bool(reader, "whether long data was too long")?,
            sql: read_text(reader, "a statement's text")?,
            session: match read_bool(reader, "whether its session is the same")? {
                false => Rc::new(session(reader)?),
                true => {
                    let before = before.cloned();
                    before.ok_or_else(|| reader.malformed("a session"))?
                }
            },
            types: read_option(reader, "types of parameters", |reader| {
                Ok(reader.lenenc_bytes("types of parameters")?.into())
            })?,
            long: read_option(reader, "long data", |reader| {
                Ok(reader.lenenc_bytes("long data")?.to_vec())
            })?,
        })
    }
}

impl Statements {
    /// All of them, by their ids.
    pub(crate) fn held(&self) -> &[Held] {
        &self.list
    }

    /// Takes one that another process has sent, whose id is above all others.
    pub(crate) fn take_record(&mut self, record: HeldRecord, definition: Rc<super::Definition>) {
        self.types += record.types.as_ref().map_or(0, |types| types.len());
        self.add(Held {
            id: record.id,
            columns: record.columns,
            params: record.params,
            cursor: false,
            overlong: record.overlong,
            definition,
            types: record.types,
            long: record.long.map(Box::new),
        });
    }
}
