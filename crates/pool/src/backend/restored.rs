//! Restoring a backend: what is sent to bring it into a client's session, statements that are
//! prepared for that, and what stands there afterwards ([`crate::pair::restoring`]).
//!
//! Invariant: the session that is noted is the server's once everything in flight has succeeded.

use crate::backend::{Backend, BackendSession};
use crate::client::ClientSession;
use crate::client::buffers::message::payload_of;
use crate::pair::prepared::put_closes;
use session::prepared::{Definition, Definitions, UnderWay};
use session::reply_summary::ReplySummary;
use session::roles::switch;
use session::send_mode::Joined;
use session::state::{Interner, On, Session, restore};
use session::statement::{Statement, Untracked};
use std::rc::Rc;
use wire::attributes::{header_len, put_joined, put_query};

impl<S> Backend<S> {
    /// Writes a client's text behind statements of the pool's own, in one command with them.
    pub(crate) fn put_joined(&mut self, message: &[u8], joined: &Joined) {
        let payload = payload_of(message);
        let arguments = payload.get(1..).unwrap_or_default();
        let header = header_len(self.form, arguments).unwrap_or(0);
        let (attributes, sql) = arguments.split_at(header);
        put_joined(self.output.last(), attributes, &joined.text, sql);
    }

    /// Notes that the default schema could not be set in front of an execution. That runs in its
    /// own schema; this stands in none that its client could use by name.
    pub(crate) fn schema_not_set(&mut self, sessions: &mut Interner) {
        let mut elsewhere = (*self.session.state).clone();
        elsewhere.schema = None;
        self.session.state = sessions.intern(elsewhere);
        self.session.note_another_schema();
        self.reuse.end_with_client();
    }
}

impl BackendSession {
    /// Appends the commands that bring it from one session into another, role and all, and returns
    /// how many there are; each is answered by OK or ERR. `insert_id` is a LAST_INSERT_ID() to be
    /// set besides.
    pub(crate) fn put_session(
        &self,
        out: &mut Vec<u8>,
        on: On,
        (from, to): (&Session, &Session),
        insert_id: Option<u64>,
    ) -> usize {
        let role = switch(from, to, self.login_role.as_deref());
        if let Some(sql) = &role {
            put_query(out, on.form, sql);
        }
        usize::from(role.is_some()) + restore(out, on, (from, to), insert_id)
    }

    /// Notes that the server has accepted its session, that of this client if it has one: the
    /// values can be set again.
    pub(crate) fn note_accepted(&self, client: Option<&ClientSession>) {
        let there = &self.state;
        there.accepted.note(self.epoch);
        if let Some(own) = client.map(|client| &client.state)
            && own.multi_statements != there.multi_statements
            && own.equals_but_for_multi(there)
        {
            own.accepted.note(self.epoch);
        }
    }

    /// Takes what an answered command has prepared: returns the definition, and the ids of what is
    /// of no use any more.
    pub(crate) fn take_prepared(
        &mut self,
        summary: &ReplySummary,
        definitions: &mut Definitions,
    ) -> Option<(Rc<Definition>, Vec<u32>)> {
        let definition = self.prepared.preparing.take()?;
        // What was read back in front of it belongs to the session in which it was prepared.
        let definition = definitions.with_session(&definition, self.state.clone());
        let mut old = Vec::new();
        if let Some(new) = summary.prepared {
            // Of this session, which may be another than the one known in front of it. Where its
            // collation is not read back, the same definition was prepared in another one.
            old = self.prepared.take_all_of(&definition);
            self.prepared.add(definition.clone(), new.id);
        }
        Some((definition, old))
    }

    /// Bytes that close a statement here whose cursor is open and which its client has closed.
    pub(crate) fn close_cursor(&mut self, definition: &Rc<Definition>, id: u32) -> Option<Vec<u8>> {
        let sent_to = self.prepared.with_cursor((definition, id))?;
        self.prepared.take(definition, sent_to);
        let mut out = Vec::new();
        put_closes(&mut out, &[sent_to]);
        Some(out)
    }

    /// Notes that a backend is about to prepare a statement, and closes what is too many for that.
    pub(crate) fn make_room_for(&mut self, under_way: &UnderWay, share: usize, out: &mut Vec<u8>) {
        self.prepared.preparing = Some(under_way.definition.clone());
        // The same text again: what it means may have changed since.
        let old = self.prepared.take_all_of(&under_way.definition);
        put_closes(out, &old);
        while self.prepared.count() >= share
            && let Some(id) = self.prepared.take_oldest()
        {
            put_closes(out, &[id]);
        }
    }

    /// Notes what a statement has done to savepoints. Where its client has gone, nobody knows what
    /// that may be.
    pub(crate) fn note_savepoint(&mut self, statement: Option<&Statement>, went: bool) {
        let set = statement.is_none_or(|statement| {
            statement.untracked.contains(Untracked::SAVEPOINT) && (went || statement.is_several())
        });
        let ended = statement
            .is_some_and(|statement| statement.untracked.contains(Untracked::NO_SAVEPOINT));
        self.transaction.note_savepoint(set, ended && went);
    }
}
