//! A client's prepared statement as bytes, for another process of the pool.
//!
//! What the server has prepared stays with the backends of this process, but for one that goes
//! along with its client ([`OnBackendRecord`]). What goes otherwise is what the client knows: the
//! id, the text and the session in which it was prepared, the types that it has sent, long data for
//! the next execution. The other process prepares the text where it executes it, as for any backend
//! that lacks it.

use super::{Definition, Entry, Held, OnBackend, Statements};
use crate::record::{
    Read, put_bool, put_list, put_option, read_bool, read_list, read_number, read_option, read_text,
};
use crate::state::Session;
use crate::text::Text;
use std::rc::Rc;
use wire::packet::{Reader, put_lenenc, put_lenenc_bytes};

/// A statement of a client that another process has sent.
#[derive(Debug)]
pub struct HeldRecord {
    /// Its id, as the client was told.
    pub id: u32,
    columns: u16,
    params: u16,
    overlong: bool,
    /// Its text.
    pub sql: Text,
    /// The session in which it was prepared.
    pub session: Rc<Session>,
    types: Option<Rc<[u8]>>,
    long: Option<Vec<u8>>,
}

impl Held {
    /// Appends it. No cursor of it is open.
    /// `before` is the statement in front of it: mostly it was prepared in the same session.
    pub fn put_record(&self, out: &mut Vec<u8>, before: Option<&Held>) {
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
    pub fn read_record(
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
    pub fn held(&self) -> &[Held] {
        &self.list
    }

    /// Takes one that another process has sent, whose id is above all others.
    pub fn take_record(&mut self, record: HeldRecord, definition: Rc<Definition>) {
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

/// Statement prepared on a backend that another process has sent.
#[derive(Debug)]
pub struct OnBackendRecord {
    /// In the order of their use.
    entries: Vec<EntryRecord>,
}

#[derive(Debug)]
struct EntryRecord {
    sql: Text,
    session: Session,
    id: u32,
    types: Option<Rc<[u8]>>,
    began_with_cursor: Option<bool>,
}

impl OnBackend {
    /// Appends it. No cursor is open, and nothing is being prepared.
    pub fn put_record(&self, out: &mut Vec<u8>) {
        let put_definition = |out: &mut Vec<u8>, definition: &Definition| {
            put_lenenc_bytes(out, &definition.sql);
            definition.session.put_record(out);
        };
        let mut entries: Vec<&Entry> = self.entries.values().flatten().collect();
        entries.sort_unstable_by_key(|entry| entry.used);
        put_list(out, entries.into_iter(), |out, entry| {
            // Each field has to be named here: one that is new is not forgotten.
            let Entry {
                definition,
                id,
                types,
                used: _,
                cursor_of: _,
                began_with_cursor,
            } = entry;
            put_definition(out, definition);
            put_lenenc(out, u64::from(*id));
            put_option(out, types.as_deref(), put_lenenc_bytes);
            put_option(out, *began_with_cursor, put_bool);
        });
    }

    /// The sessions in which all of it was prepared.
    pub fn sessions(&self) -> impl Iterator<Item = &Rc<Session>> {
        let entries = self.entries.values().flatten();
        entries.map(|entry| &entry.definition.session)
    }
}

impl OnBackendRecord {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read_record(
        reader: &mut Reader<'_>,
        session: impl Fn(&mut Reader<'_>) -> Read<Session>,
    ) -> Read<OnBackendRecord> {
        let entries = read_list(reader, "prepared statements", |reader| {
            Ok(EntryRecord {
                sql: read_text(reader, "a statement's text")?,
                session: session(reader)?,
                id: read_number(reader, "the server's number of a statement")?,
                types: read_option(reader, "types of parameters", |reader| {
                    Ok(reader.lenenc_bytes("types of parameters")?.into())
                })?,
                began_with_cursor: read_option(reader, "whether a cursor was open", |reader| {
                    read_bool(reader, "whether a cursor was open")
                })?,
            })
        })?;
        Ok(OnBackendRecord { entries })
    }

    /// As a value, whose definitions are made by `define`.
    pub fn into_value(
        self,
        mut define: impl FnMut(&[u8], &Session) -> Rc<Definition>,
    ) -> OnBackend {
        let mut prepared = OnBackend::default();
        for record in self.entries {
            let definition = define(&record.sql, &record.session);
            let address = definition.address();
            prepared.add(definition, record.id);
            let entries = prepared.entries.get_mut(&address);
            if let Some(entry) = entries.and_then(|entries| entries.last_mut()) {
                entry.types = record.types;
                entry.began_with_cursor = record.began_with_cursor;
            }
        }
        prepared
    }
}
