//! Prepared statements as records.
//!
//! What the server has prepared stays with the backends of this process, but for one that goes
//! along with its client ([`EntryRecord`]). What goes otherwise is what the client knows: the id,
//! the text and the session in which it was prepared, the types that it has sent, long data for the
//! next execution. The other process prepares the text where it executes it, as for any backend
//! that lacks it.

use super::{Here, NotCarried, SessionRecord};
use crate::meter::Meter;
use crate::prepared::{Definition, Entry, Held, LongData, OnBackend, Statements};
use crate::state::Session;
use crate::text::Text;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// A statement of a client of another process.
#[derive(Debug, Serialize, Deserialize)]
pub struct HeldRecord {
    /// Its id, as the client was told.
    pub id: u32,
    columns: u16,
    params: u16,
    overlong: bool,
    /// Its text.
    pub sql: Text,
    /// The session in which it was prepared; `None`: that of the one in front of it.
    session: Option<SessionRecord>,
    types: Option<Text>,
    long: Option<Vec<u8>>,
}

impl HeldRecord {
    /// Statements with their sessions.
    ///
    /// # Errors
    /// [`NotCarried`]: no client has such statements, or such a session cannot be here.
    pub fn with_sessions(
        records: Vec<HeldRecord>,
        here: Here<'_>,
    ) -> Result<Vec<(HeldRecord, Rc<Session>)>, NotCarried> {
        if !records.is_sorted_by(|one, two| one.id < two.id) {
            return Err(NotCarried("prepared statements are not in order"));
        }
        let mut before: Option<Rc<Session>> = None;
        let with_session = |mut record: HeldRecord| {
            let session = match record.session.take() {
                Some(session) => Rc::new(session.into_session(here)?),
                None => before.clone().ok_or(NotCarried("a session is missing"))?,
            };
            before = Some(session.clone());
            Ok((record, session))
        };
        records.into_iter().map(with_session).collect()
    }
}

impl Statements {
    /// All of them as records. No cursor is open.
    #[must_use]
    pub fn records(&self) -> Vec<HeldRecord> {
        let mut before: Option<&Rc<Session>> = None;
        let mut records = Vec::with_capacity(self.held().len());
        for held in self.held() {
            let Held {
                id,
                columns,
                params,
                cursor: _,
                overlong,
                definition,
                types,
                long,
            } = held;
            let session = &definition.session;
            let is_new = before.is_none_or(|before| !Rc::ptr_eq(before, session));
            before = Some(session);
            records.push(HeldRecord {
                id: *id,
                columns: *columns,
                params: *params,
                overlong: *overlong,
                sql: definition.sql.clone(),
                session: is_new.then(|| SessionRecord::from(&**session)),
                types: types.as_deref().map(Text::from),
                long: long.as_ref().map(|long| long.messages().to_vec()),
            });
        }
        records
    }

    /// Takes one that another process has sent, whose id is above all others.
    pub fn take_record(&mut self, record: HeldRecord, definition: Rc<Definition>, long: &Meter) {
        let long = record.long.map(|messages| LongData::new(messages, long));
        self.add(Held {
            id: record.id,
            columns: record.columns,
            params: record.params,
            cursor: false,
            overlong: record.overlong,
            definition,
            types: record.types.map(Rc::from),
            long: long.map(Box::new),
        });
    }
}

/// A statement prepared on a backend that another process has sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct EntryRecord {
    sql: Text,
    session: SessionRecord,
    id: u32,
    types: Option<Text>,
    began_with_cursor: Option<bool>,
}

impl EntryRecord {
    /// Statements with their sessions.
    ///
    /// # Errors
    /// [`NotCarried`]: such a session cannot be here.
    pub fn with_sessions(
        records: Vec<EntryRecord>,
        here: Here<'_>,
    ) -> Result<Vec<(EntryRecord, Session)>, NotCarried> {
        let with_session = |mut record: EntryRecord| {
            let session = std::mem::take(&mut record.session).into_session(here)?;
            Ok((record, session))
        };
        records.into_iter().map(with_session).collect()
    }
}

impl OnBackend {
    /// All of it as records, in the order of their use. No cursor is open, and nothing is being
    /// prepared.
    #[must_use]
    pub fn records(&self) -> Vec<EntryRecord> {
        let mut entries: Vec<&Entry> = self.entries().collect();
        entries.sort_unstable_by_key(|entry| entry.used);
        let record = |entry: &Entry| {
            let Entry {
                definition,
                id,
                types,
                used: _,
                cursor_of: _,
                began_with_cursor,
            } = entry;
            EntryRecord {
                sql: definition.sql.clone(),
                session: SessionRecord::from(&*definition.session),
                id: *id,
                types: types.as_deref().map(Text::from),
                began_with_cursor: *began_with_cursor,
            }
        };
        entries.into_iter().map(record).collect()
    }

    /// State of a backend that another process has sent; `define` makes the definitions.
    #[must_use]
    pub fn of_records(
        records: Vec<(EntryRecord, Session)>,
        mut define: impl FnMut(&[u8], &Session) -> Rc<Definition>,
    ) -> OnBackend {
        let mut prepared = OnBackend::default();
        for (record, session) in records {
            let entry = prepared.add(define(&record.sql, &session), record.id);
            entry.types = record.types.map(Rc::from);
            entry.began_with_cursor = record.began_with_cursor;
        }
        prepared
    }
}
