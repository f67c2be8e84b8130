//! Prepared statements: what clients call theirs, what backends have, and how the two meet.
//!
//! The problem: a statement that is prepared lives on one connection of the server, and a client's
//! next execution may run on another. Preparing each client's statements on each backend would
//! multiply them; the server bounds their number (`max_prepared_stmt_count`). The mechanism: a
//! [`Definition`] is a text and the session it was prepared in, one object for all clients that
//! prepared the same; a client has ids of its own for definitions ([`Statements`]); a backend has
//! some definitions prepared ([`OnBackend`]), the ones used last, up to its share of the budget.
//! What a server tells from the preparation alone is nobody else's: there each preparation by a
//! client is a definition of its own ([`Definition::keeps_answer`]). An execution whose definition
//! its backend lacks waits until it has been prepared there. A client's
//! own COM_STMT_PREPARE always runs on a backend, because what it is told is what the server says
//! at that moment.
//!
//! These are the values; the pool's `statements/prepared_commands.rs` handles the commands.
//!
//! Invariants:
//! - the server holds at most [`OnBackend::count`] statements for a backend, and that is never
//!   above its share: the least recently used one is closed in front of the next;
//! - an execution without types runs with those that its client sent last, whoever else has used
//!   the statement;
//! - a statement with an open cursor is used by the client's statement that opened it and no other,
//!   and is not closed to make room;
//! - a client without prepared statements has a number (the next id) and an empty box for them.

use crate::meter::{Charge, Meter};
use crate::state::{Interner, Session};
use crate::stored_code::Names;
use crate::text::may_ask_for_schema;
use sql::classify::{self, Verb, classify};
use sql::elsewhere::Tie;
use sql::lex::LexMode;
use std::cell::{Cell, OnceCell};
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use wire::command::Command;
use wire::execution::{TypeList, Types};
use wire::reply::Prepared;

/// Statements that a client may have prepared at a time: as many as a server takes of all its
/// clients by default (`max_prepared_stmt_count`).
const HELD_MAX: usize = 16_382;
/// Bytes of texts among which those that nobody has are not looked for.
const SWEEP_BYTES_MIN: usize = 1024 * 1024;
/// Bytes of texts from which on a client prepares no further statement.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Owners of a text that one client has prepared once, and a backend: the table and those two.
const SHARED_BY_NONE: usize = 3;

/// Bound that keeps a client from preparing another statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Refusal of a client that has as many as it may.
    Count {
        /// Number of statements.
        count: usize,
    },
    /// Their texts are as long as they may be.
    Bytes {
        /// Their bytes.
        bytes: usize,
    },
}

/// A text and the session in which it was prepared: schema, `sql_mode` and character sets decide
/// what it means.
#[derive(Debug)]
pub struct Definition {
    /// The text.
    pub sql: Box<[u8]>,
    /// The session; interned, so the same session is the same object.
    pub session: Rc<Session>,
    /// Class of its executions.
    pub class: classify::Statement,
    /// Its text's digest, once that has been asked for.
    digest: OnceCell<u64>,
    /// True if its text may ask for the default schema, once that has been asked for.
    asks_schema: OnceCell<bool>,
    /// Its text's tie to one server, once that has been asked for.
    tie: OnceCell<Option<Tie>>,
    /// True if its text has none of the names of tables and views with code, by the version of
    /// these that was looked for last.
    names_none: Cell<Option<(u64, bool)>>,
}

impl Definition {
    /// A text of this class that is prepared in this session, which is interned.
    pub fn new(sql: Box<[u8]>, session: Rc<Session>, class: classify::Statement) -> Definition {
        Definition {
            sql,
            session,
            class,
            digest: OnceCell::new(),
            asks_schema: OnceCell::new(),
            tie: OnceCell::new(),
            names_none: Cell::new(None),
        }
    }

    /// One for all clients whose sessions read the text alike.
    fn shared(
        sessions: &mut Interner,
        sql: &[u8],
        session: &Session,
        class: classify::Statement,
    ) -> Definition {
        let session = sessions.intern(session.with_unread_of(&Session::default()));
        Definition::new(sql.into(), session, class)
    }

    /// True if an execution's answer may depend on when the server prepared the text, or on earlier
    /// executions. MariaDB 10.11 does not notice that the view of a SHOW CREATE VIEW has changed,
    /// and checks a view or explains a statement otherwise when it does so again.
    fn keeps_answer(&self) -> bool {
        matches!(self.class.verb, Verb::Show | Verb::Explain | Verb::Admin)
    }

    /// Its text's digest; its session is cut in this mode.
    pub fn digest(&self, mode: LexMode) -> u64 {
        *self
            .digest
            .get_or_init(|| sql::digest::digest(&self.sql, mode))
    }

    /// True if its text may ask for the default schema. Long texts are executed often, and looked
    /// through once.
    pub fn asks_schema(&self) -> bool {
        *(self.asks_schema).get_or_init(|| may_ask_for_schema(&self.sql))
    }

    /// Its text's tie to one server; its session is cut in this mode.
    pub fn tie(&self, mode: LexMode) -> Option<Tie> {
        *(self.tie).get_or_init(|| sql::elsewhere::tie(&self.sql, mode))
    }

    /// True if its text names no table and no view with code, of those of this version; its session
    /// is cut in this mode. It is looked through once for each version.
    pub fn names_none_of(&self, names: &Names, version: u64, mode: LexMode) -> bool {
        if let Some((of, none)) = self.names_none.get()
            && of == version
        {
            return none;
        }
        let tables = names.tables();
        let none = tables.is_some_and(|tables| !tables.may_be_in(&self.sql, mode));
        self.names_none.set(Some((version, none)));
        none
    }

    fn bytes(&self) -> usize {
        size_of::<Definition>() + self.sql.len()
    }

    /// A number that no other definition has while this one lives.
    fn address(self: &Rc<Self>) -> usize {
        Rc::as_ptr(self).addr()
    }
}

impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.session, &other.session) && self.sql == other.sql
    }
}

impl Eq for Definition {}

impl Hash for Definition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Rc::as_ptr(&self.session).hash(state);
        self.sql.hash(state);
    }
}

/// One object for equal definitions; those that nobody has are swept out as others come.
#[derive(Debug, Default)]
pub struct Definitions {
    all: HashSet<Rc<Definition>>,
    sweep_at: usize,
    /// Bytes of all, and from how many on those that nobody has are swept out.
    bytes: usize,
    sweep_bytes_at: usize,
}

impl Definitions {
    /// The shared object that equals `definition`; one that keeps its answer is shared with nobody.
    pub fn intern(&mut self, definition: Definition) -> Rc<Definition> {
        match definition.keeps_answer() {
            true => Rc::new(definition),
            false => self.share(definition),
        }
    }

    /// The shared object that equals `definition`, also where that keeps its answer: the pool's own
    /// texts are made anew each time that a command is looked at, and must find their backends.
    pub fn share(&mut self, definition: Definition) -> Rc<Definition> {
        if let Some(found) = self.all.get(&definition) {
            return found.clone();
        }
        if self.all.len() >= self.sweep_at || self.bytes >= self.sweep_bytes_at {
            self.sweep();
        }
        let shared = Rc::new(definition);
        self.bytes += shared.bytes();
        self.all.insert(shared.clone());
        shared
    }

    /// The definition of a text in a session. Clients share it whatever their user variables are.
    pub fn define(
        &mut self,
        sessions: &mut Interner,
        sql: &[u8],
        session: &Session,
        class: classify::Statement,
    ) -> Rc<Definition> {
        self.intern(Definition::shared(sessions, sql, session, class))
    }

    /// Defines a text that has not been classified, for a client or a backend that comes from
    /// another process. Clients of one application have the same statements: each text is
    /// classified once. The owner of its answer is shared among those, or the two would not find
    /// each other.
    pub fn read(
        &mut self,
        sessions: &mut Interner,
        sql: &[u8],
        session: &Session,
        mode: LexMode,
    ) -> Rc<Definition> {
        let unread = classify(b"", LexMode::default());
        let like = Definition::shared(sessions, sql, session, unread);
        match self.find(&like) {
            Some(known) => known,
            None => self.share(Definition {
                class: classify(sql, mode),
                ..like
            }),
        }
    }

    /// Definition that equals `like`, whatever that says of its class.
    pub fn find(&self, like: &Definition) -> Option<Rc<Definition>> {
        self.all.get(like).cloned()
    }

    /// Drops those that nobody has.
    pub fn sweep(&mut self) {
        self.all
            .retain(|definition| Rc::strong_count(definition) > 1);
        self.sweep_at = (2 * self.all.len()).max(64);
        self.bytes = self.all.iter().map(|definition| definition.bytes()).sum();
        self.sweep_bytes_at = (2 * self.bytes).max(SWEEP_BYTES_MIN);
    }

    /// Bytes of all, those that nobody has any more included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Definition of this text in another session.
    pub fn with_session(&mut self, old: &Rc<Definition>, session: Rc<Session>) -> Rc<Definition> {
        if Rc::ptr_eq(&old.session, &session) {
            return old.clone();
        }
        self.intern(Definition::new(old.sql.clone(), session, old.class))
    }
}

/// One statement of a client.
#[derive(Debug)]
pub struct Held {
    /// Its id, as the client was told.
    pub id: u32,
    /// Columns of its result when the client was last told.
    pub columns: u16,
    /// Parameters it takes.
    pub params: u16,
    /// True if a cursor of it is open on the client's backend.
    pub cursor: bool,
    /// Long data came that was too long to be kept.
    pub overlong: bool,
    /// Definition of the statement.
    pub definition: Rc<Definition>,
    /// Types of its parameters, as the client sent them last.
    pub types: Option<Rc<[u8]>>,
    /// Long data for its next execution; 8 bytes of a statement instead of 40.
    pub long: Option<Box<LongData>>,
}

/// Messages of long data, headers included, counted for as long as they wait for an execution.
#[derive(Debug, Default)]
pub struct LongData {
    messages: Vec<u8>,
    charge: Charge,
}

impl LongData {
    /// Messages that are counted from now on.
    pub fn new(messages: Vec<u8>, meter: &Meter) -> LongData {
        let charge = Charge::new(meter, messages.len());
        LongData { messages, charge }
    }

    /// Adds a message.
    pub fn push(&mut self, message: &[u8], meter: &Meter) {
        self.messages.extend_from_slice(message);
        self.charge.set(meter, self.messages.len());
    }

    /// The messages.
    pub fn messages(&self) -> &[u8] {
        &self.messages
    }

    /// Counts them, where they wait, or counts them no more.
    pub fn count(&mut self, meter: Option<&Meter>) {
        let counted = meter.map(|meter| Charge::new(meter, self.messages.len()));
        self.charge = counted.unwrap_or_default();
    }
}

impl Held {
    fn types_len(&self) -> usize {
        self.types.as_ref().map_or(0, |types| types.len())
    }

    fn long_len(&self) -> usize {
        self.long.as_ref().map_or(0, |long| long.messages.len())
    }
}

/// The command about a prepared statement that a client waits for.
#[derive(Debug)]
pub struct UnderWay {
    /// Command about a statement.
    pub command: Command,
    /// The client's id of the statement.
    pub id: u32,
    /// Definition that is prepared or executed.
    pub definition: Rc<Definition>,
    /// True if it asks for a cursor.
    pub cursor: bool,
    /// The server's id of the statement, once the command has been sent.
    pub sent_to: u32,
    /// Long data that was sent in front of it; it is moved from and to [`Held::long`].
    pub long: Option<Box<LongData>>,
    /// True while the backend is being brought into the session in which the statement is to be
    /// prepared.
    pub ahead: bool,
    /// True if it goes on when the session has been read back.
    pub reads_back: bool,
}

impl UnderWay {
    /// True if it is an execution in another schema than the session's.
    pub fn runs_outside(&self, session: &Session) -> bool {
        let executes = matches!(
            self.command,
            Command::StmtExecute | Command::StmtBulkExecute
        );
        executes && self.definition.session.schema != session.schema
    }

    /// Command that has not been sent, without a cursor.
    pub fn new(command: Command, id: u32, definition: Rc<Definition>) -> UnderWay {
        UnderWay {
            command,
            id,
            definition,
            cursor: false,
            sent_to: 0,
            long: None,
            ahead: false,
            reads_back: false,
        }
    }
}

/// A client's prepared statements.
#[derive(Debug, Default)]
pub struct Statements {
    /// By id, which only grow.
    list: Vec<Held>,
    /// Bytes of their texts.
    texts: usize,
    /// Bytes of their parameters' types.
    types: usize,
    /// The statement whose types the command under way has changed, and those before.
    replaced: Option<(u32, Option<Rc<[u8]>>)>,
    charge: Charge,
    /// The command about one of them that is not answered.
    pub under_way: Option<UnderWay>,
    /// The one that MariaDB's id for the last prepared one means.
    pub last: Option<u32>,
    /// Those that have an open cursor, and on what.
    cursors: Vec<(u32, Rc<Definition>)>,
}

impl Statements {
    /// All of them, by their ids.
    pub fn held(&self) -> &[Held] {
        &self.list
    }

    /// The statement with this id.
    pub fn get(&self, id: u32) -> Option<&Held> {
        let found = self.list.binary_search_by_key(&id, |held| held.id).ok()?;
        self.list.get(found)
    }

    /// The statement, to be changed.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Held> {
        let found = self.list.binary_search_by_key(&id, |held| held.id).ok()?;
        self.list.get_mut(found)
    }

    /// Adds a statement, whose id is above all others.
    pub(crate) fn add(&mut self, held: Held) {
        debug_assert!(self.list.last().is_none_or(|last| last.id < held.id));
        if self.list.len() == self.list.capacity() {
            // Doubling would cost a client with many statements half of its memory.
            self.list.reserve_exact(self.list.len() / 4 + 1);
        }
        self.last = Some(held.id);
        self.texts += held.definition.sql.len();
        self.types += held.types_len();
        self.list.push(held);
    }

    /// Takes the server's answer to a COM_STMT_PREPARE, a header or an error.
    pub fn note_new(&mut self, id: u32, definition: Rc<Definition>, header: Option<Prepared>) {
        let Some(header) = header else {
            self.last = None;
            return;
        };
        self.add(Held {
            id,
            columns: header.columns,
            params: header.params,
            cursor: false,
            overlong: false,
            definition,
            types: None,
            long: None,
        });
    }

    /// Takes out a statement.
    pub fn remove(&mut self, id: u32) -> Option<Held> {
        let found = self.list.binary_search_by_key(&id, |held| held.id).ok()?;
        if self.last == Some(id) {
            self.last = None;
        }
        let held = self.list.remove(found);
        self.texts -= held.definition.sql.len();
        self.types -= held.types_len();
        Some(held)
    }

    /// Notes the types that an execution of a statement sends.
    pub fn remember(&mut self, id: u32, types: Types<'_>) {
        let Some(held) = self.get(id) else {
            return;
        };
        let known = held.types.as_deref();
        if let Types::Sent(types) = types
            && !known.is_some_and(|known| types.is(known))
        {
            let before = self.set_types(id, Some(types.to_plain().into()));
            self.replaced = Some((id, before));
        }
    }

    /// Keeps the types of an answered execution, or restores those from before it where the server
    /// could not read them.
    pub fn settle_types(&mut self, id: u32, read: bool) {
        if let Some((of, before)) = self.replaced.take()
            && !read
            && of == id
        {
            self.set_types(id, before);
        }
    }

    /// Changes the types of a statement; gives those that it had.
    fn set_types(&mut self, id: u32, types: Option<Rc<[u8]>>) -> Option<Rc<[u8]>> {
        let held = self.get_mut(id)?;
        let old = held.types_len();
        let before = std::mem::replace(&mut held.types, types);
        let new = held.types_len();
        self.types = self.types - old + new;
        before
    }

    /// Counts what the list takes now.
    pub fn count(&mut self, meter: &Meter) {
        let list = self.list.capacity() * size_of::<Held>();
        self.charge.set(meter, list + self.types);
    }

    /// Bytes that the client holds alone: texts that others have prepared too are not its.
    pub fn own_bytes(&self) -> usize {
        let alone = |held: &&Held| Rc::strong_count(&held.definition) <= SHARED_BY_NONE;
        let texts = self.list.iter().filter(alone);
        let texts: usize = texts.map(|held| held.definition.sql.len()).sum();
        self.charge.bytes() + texts + self.long_len()
    }

    /// Bound that keeps the client from preparing another statement, if one does.
    pub fn is_full(&self) -> Option<Full> {
        if self.list.len() >= HELD_MAX {
            return Some(Full::Count {
                count: self.list.len(),
            });
        }
        (self.texts >= HELD_BYTES_MAX).then_some(Full::Bytes { bytes: self.texts })
    }

    /// Notes that a statement's cursor is open on this, or not; `true` when that is new.
    pub fn set_cursor(&mut self, id: u32, on: Option<&Rc<Definition>>) -> bool {
        let Some(held) = self.get_mut(id) else {
            return false;
        };
        let was_open = std::mem::replace(&mut held.cursor, on.is_some());
        self.cursors.retain(|(other, _)| *other != id);
        self.cursors.extend(on.map(|on| (id, on.clone())));
        was_open != on.is_some()
    }

    /// Definition that was executed with the open cursor of a statement: its own text, or one with
    /// the counts that it asks for.
    pub fn cursor_of(&self, id: u32) -> Option<&Rc<Definition>> {
        let mut cursors = self.cursors.iter();
        Some(&cursors.find(|(other, _)| *other == id)?.1)
    }

    /// True if something is open on the client's backend, so that it must keep it.
    pub fn holds(&self) -> bool {
        !self.cursors.is_empty()
    }

    /// True if there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.under_way.is_none()
    }

    /// Bytes of long data that wait for an execution.
    pub fn long_len(&self) -> usize {
        self.list.iter().map(Held::long_len).sum()
    }
}

/// A statement that is prepared on a backend.
#[derive(Debug)]
pub struct Entry {
    pub(crate) definition: Rc<Definition>,
    /// The server's id of it.
    pub id: u32,
    /// The types that the server was sent last.
    pub types: Option<Rc<[u8]>>,
    /// Use of this backend in which it was used last.
    pub used: u64,
    /// The client's statement that has a cursor open on it.
    pub(crate) cursor_of: Option<u32>,
    /// True if its first execution opened a cursor; `None` before that.
    pub began_with_cursor: Option<bool>,
}

/// A definition, and the id of the client's statement that uses it.
type What<'a> = (&'a Rc<Definition>, u32);

/// Manner and place of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// On MySQL.
    pub mysql: bool,
    /// True for one with a cursor.
    pub cursor: bool,
}

/// Types with which an execution is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// Types; empty where there are no parameters.
    Types(TypeList<'a>),
    /// None that any execution has sent: its client never sent any.
    Unmodified,
}

/// Index of an entry that this statement of a client can run on.
fn place(entries: &[Entry], id: u32, wanted: Wanted<'_>, how: How) -> Option<usize> {
    let by_types = |entry: &Entry| match (wanted, &entry.types) {
        (Wanted::Unmodified, types) => types.is_none(),
        (Wanted::Types(types), Some(sent)) => !how.mysql || types.is(sent),
        (Wanted::Types(_), None) => true,
    };
    let broken = |entry: &Entry| how.mysql && !how.cursor && entry.began_with_cursor == Some(true);
    let fits = |entry: &Entry| by_types(entry) && !broken(entry);
    let with = |cursor_of: Option<u32>| {
        let mut entries = entries.iter();
        entries.position(|entry| entry.cursor_of == cursor_of && fits(entry))
    };
    // Executing again closes the cursor, where that is open.
    with(Some(id)).or_else(|| with(None))
}

/// The statements that are prepared on one backend.
#[derive(Debug, Default)]
pub struct OnBackend {
    entries: HashMap<usize, Vec<Entry>>,
    count: usize,
    uses: u64,
    /// The definition that is being prepared, when one is.
    pub preparing: Option<Rc<Definition>>,
}

impl OnBackend {
    /// Statements that the server holds for this backend.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Entry that this statement of a client can run on. On MySQL earlier executions rule it out:
    /// with other types, since it derives parameters' types from them for good, from 8.0.22 (its
    /// manual on PREPARE); and when the first of all opened a cursor, for those without one, which
    /// MySQL 9.7 then answers with columns, no row and a packet that reads as one, so that whoever
    /// reads it waits for ever. That is so for the client's own cursor, too, and there the pool
    /// answers what MySQL does not.
    pub fn find(&mut self, what: What<'_>, wanted: Wanted<'_>, how: How) -> Option<&mut Entry> {
        let entries = self.entries.get_mut(&what.0.address())?;
        let found = place(entries, what.1, wanted, how)?;
        entries.get_mut(found)
    }

    /// True if [`OnBackend::find`] finds something.
    pub fn has(&self, what: What<'_>, wanted: Wanted<'_>, how: How) -> bool {
        let entries = self.entries.get(&what.0.address());
        entries.is_some_and(|entries| place(entries, what.1, wanted, how).is_some())
    }

    /// The server's id of the entry on which a client's statement has its cursor open.
    pub fn with_cursor(&self, what: What<'_>) -> Option<u32> {
        let mut entries = self.entries.get(&what.0.address())?.iter();
        let found = entries.find(|entry| entry.cursor_of == Some(what.1))?;
        Some(found.id)
    }

    /// Notes that the server has prepared a definition.
    pub fn add(&mut self, definition: Rc<Definition>, id: u32) -> &mut Entry {
        self.uses += 1;
        self.count += 1;
        let entry = Entry {
            definition,
            id,
            types: None,
            used: self.uses,
            cursor_of: None,
            began_with_cursor: None,
        };
        let address = entry.definition.address();
        self.entries.entry(address).or_default().push_mut(entry)
    }

    /// Statements in no order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().flatten()
    }

    /// The sessions in which all of it was prepared.
    pub fn sessions(&self) -> impl Iterator<Item = &Rc<Session>> {
        self.entries().map(|entry| &entry.definition.session)
    }

    /// Notes on which entry a client's statement has its cursor open, if on any.
    pub fn set_cursor(&mut self, what: What<'_>, on: Option<u32>) {
        let entries = self.entries.get_mut(&what.0.address());
        for entry in entries.into_iter().flatten() {
            if on == Some(entry.id) {
                entry.cursor_of = Some(what.1);
            } else if entry.cursor_of == Some(what.1) {
                entry.cursor_of = None;
            }
        }
    }

    /// Notes that an entry is used now.
    pub fn use_now(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// Takes out the entries of a definition that no cursor holds; gives their ids.
    pub fn take_all_of(&mut self, definition: &Rc<Definition>) -> Vec<u32> {
        let Some(entries) = self.entries.get_mut(&definition.address()) else {
            return Vec::new();
        };
        let mut ids = Vec::new();
        entries.retain(|entry| {
            let keep = entry.cursor_of.is_some();
            if !keep {
                ids.push(entry.id);
            }
            keep
        });
        if entries.is_empty() {
            self.entries.remove(&definition.address());
        }
        self.count -= ids.len();
        ids
    }

    /// Takes out the entry with this id of the server's.
    pub fn take(&mut self, definition: &Rc<Definition>, id: u32) {
        let Some(entries) = self.entries.get_mut(&definition.address()) else {
            return;
        };
        let before = entries.len();
        entries.retain(|entry| entry.id != id);
        self.count -= before - entries.len();
        if entries.is_empty() {
            self.entries.remove(&definition.address());
        }
    }

    /// True if there is no room for another, and none that could be closed to make room.
    pub fn is_full(&self, share: usize) -> bool {
        let with_cursor = |entry: &&Entry| entry.cursor_of.is_some();
        self.entries.values().flatten().filter(with_cursor).count() >= share
    }

    /// Takes out the entry that was not used for longest and has no cursor; gives its id. One that
    /// was its client's alone, and that its client has closed, goes first.
    pub fn take_oldest(&mut self) -> Option<u32> {
        let all = self.entries.values().flatten();
        let is_held = |entry: &Entry| Rc::strong_count(&entry.definition) > 1;
        let oldest = all
            .filter(|entry| entry.cursor_of.is_none())
            .min_by_key(|entry| (is_held(entry), entry.used))?;
        let (definition, id) = (oldest.definition.clone(), oldest.id);
        self.take(&definition, id);
        Some(id)
    }
}

#[cfg(test)]
mod tests;
