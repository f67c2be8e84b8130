//! What is read back of a session before its backend serves somebody else.
//!
//! The problem: no tracker reports all that a statement may have changed. The mechanism: what is
//! owed is asked in one question ([`session::read_back`]), when nothing is in flight any more
//! ([`Group::settle`]) or when something needs it earlier; the answer is taken property by
//! property. What each of them is, and when it is owed, stands with its owner: `found.rs`,
//! `roles.rs`, `user_variables.rs`, `untracked_changes.rs`, `pinning.rs`, `endings.rs`.
//!
//! Adding a property: a row in [`session::read_back`], who owes it in
//! [`Client::changed_properties`], who takes it in [`Group::take_answer`].
//!
//! Invariant: a backend about which something is owed serves nobody else.

use crate::backend::Purpose;
use crate::client::Client;
use crate::errors::reasons::PinReason;
use crate::group::Group;
use reactor::{Key, Net};
use session::read_back::{Answer, Asked, Properties, Question, question};
use session::reply_summary::ReplySummary;
use session::statement::Trace;
use session::user_variables::collation_of;
use sql::classify::PinCause;

impl<S> Client<S> {
    /// Which properties of its session its backend alone knows.
    pub(crate) fn changed_properties(&self) -> Properties {
        let touched = self.touched.as_ref();
        let variables = touched.is_some_and(|touched| touched.fresh);
        let clock = touched.is_some_and(|touched| touched.asks_clock());
        let traced = self.last.owed.trace.is_asked();
        self.last
            .owed
            .changed
            .union(Properties::NOTES.when(traced))
            .union(Properties::HOLDINGS.when(self.pins.asks()))
            .union(Properties::CLOCK.when(clock))
            .union(Properties::USER_VARIABLES.when(variables))
    }
}

impl<N: Net> Group<N> {
    /// Asks a backend for these properties of its client's session, and for FOUND_ROWS(), which
    /// the question takes away, where only the backend knows that.
    pub(crate) fn read_back(&mut self, lease: Key, owner: Key, properties: Properties) {
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        let counts = client.last.counts_unread();
        let mut properties = properties.union(Properties::FOUND_ROWS.when(counts));
        if properties.intersects(Properties::USER_VARIABLES) && !client.names_to_read() {
            properties = properties.without(Properties::USER_VARIABLES);
            self.pin(owner, PinReason::Text(PinCause::UserVariable));
        }
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        let holdings = match properties.intersects(Properties::HOLDINGS) {
            true => client.pins.columns_to_ask(),
            false => Vec::new(),
        };
        if let Some(touched) = &mut client.touched {
            touched.awaited += usize::from(properties.intersects(Properties::CLOCK));
        }
        let touched = client.touched.as_ref();
        let asked = Question {
            properties,
            holdings: &holdings,
            user_variables: touched.map_or(&[], |touched| &touched.names),
        };
        if properties.is_empty() {
            self.go_on(owner);
            return self.settle(lease);
        }
        let (sql, asked) = (question(&asked), asked.asked());
        self.counts.questions += 1;
        self.counts.properties_asked += u64::from(properties.count());
        self.send_own(lease, owner, Purpose::ReadBack(asked), &sql);
        if properties.intersects(Properties::FOUND_ROWS) {
            self.note_deprecation(lease, owner);
        }
    }

    /// A question was answered.
    pub(crate) fn properties_told(
        &mut self,
        key: Key,
        owner: Option<Key>,
        asked: Asked,
        summary: &ReplySummary,
        collected: &[u8],
    ) {
        let Some(backend) = self.backends.get(key) else {
            return;
        };
        let alone = backend.flight().is_empty();
        if summary.error.is_some() && asked.properties == Properties::ROLE && !alone {
            // Refused where a reset is about to follow, as in the middle of an XA transaction.
            return;
        }
        let pool = self.backend_pools.pools.get(backend.pool);
        let extended = pool.map_or(0, |pool| pool.key.extended);
        let answer = Answer::read(asked, collected, extended);
        let answer = answer.filter(|_| summary.error.is_none());
        let Some(owner) = owner.filter(|owner| self.clients.get(*owner).is_some()) else {
            return self.retire(key);
        };
        match answer {
            Some(answer) => self.take_answer(key, owner, asked.properties, &answer),
            // What it holds, it keeps.
            None if asked.properties == Properties::HOLDINGS => {}
            None => return self.lose(key, "the server did not give a session's state back"),
        }
        self.go_on(owner);
        self.settle(key);
    }

    fn take_answer(&mut self, key: Key, owner: Key, asked: Properties, answer: &Answer) {
        if asked.intersects(Properties::HOLDINGS) {
            self.holdings_told(key, owner, answer);
        }
        if asked.intersects(Properties::NOTES) {
            self.notes_told(owner, answer);
        }
        if asked.intersects(Properties::FOUND_ROWS) {
            self.found_rows_told(key, owner, answer);
        }
        if asked.intersects(Properties::INSERT_ID) {
            self.insert_id_told(key, owner, answer);
        }
        if asked.intersects(Properties::COLLATION) {
            self.collation_told(key, owner, answer);
        }
        if asked.intersects(Properties::CLOCK) {
            self.clock_told(key, owner, answer.text(Properties::CLOCK));
        }
        if asked.intersects(Properties::USER_VARIABLES) {
            self.variables_told(key, owner, answer);
        }
        if asked.intersects(Properties::ROLE) {
            self.role_told(key, owner, answer.text(Properties::ROLE));
        }
        if let Some(client) = self.clients.get_mut(owner) {
            client.last.owed.changed = client.last.owed.changed.without(asked);
        }
    }

    fn insert_id_told(&mut self, key: Key, owner: Key, answer: &Answer) {
        let Some(id) = answer.number(Properties::INSERT_ID) else {
            return self.lose(key, "the server gave a LAST_INSERT_ID() that is no number");
        };
        if let (Some(client), Some(backend)) =
            (self.clients.get_mut(owner), self.backends.get_mut(key))
        {
            client.last.insert_id = id;
            backend.insert_id = Some(id);
        }
    }

    /// Whether the trace of stored code that failed could stand among the warnings: it does not
    /// where the session keeps no notes, or had no room for it.
    fn notes_told(&mut self, owner: Key, answer: &Answer) {
        let mut columns = answer.of(Properties::NOTES).map(|(_, value)| value);
        let (notes, room) = (columns.next().flatten(), columns.next().flatten());
        let room = room.and_then(|text| std::str::from_utf8(text).ok()?.parse::<u64>().ok());
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        // With as many as are counted at most, it may have been left out.
        let noted = |count: u8| {
            let room = room.is_some_and(|max| u64::from(count) < max);
            notes.is_some_and(|notes| **notes == *b"1") && room && count < u8::MAX
        };
        let traced = match std::mem::take(&mut client.last.owed.trace) {
            Trace::Asked(conditions) => noted(conditions),
            Trace::Unasked | Trace::Known => true,
        };
        if !traced {
            self.pin(owner, PinReason::FailedCode);
        }
    }

    /// The collation, which differs from what was reported where a text has set it unseen; and that
    /// of results.
    fn collation_told(&mut self, key: Key, owner: Key, answer: &Answer) {
        let (Some(client), Some(backend)) =
            (self.clients.get_mut(owner), self.backends.get_mut(key))
        else {
            return;
        };
        if client.is_pinned_for(PinReason::WideCharset) {
            return;
        }
        let Some((column, Some(collation))) = answer.of(Properties::COLLATION).next() else {
            return;
        };
        let described_before = client.session.results_collation.clone();
        // The two may differ by now: COM_SET_OPTION changes the client's alone.
        for session in [&mut client.session, &mut backend.session] {
            let mut changed = (**session).clone();
            changed.put(b"collation_connection", collation);
            let results = collation_of(column, &changed);
            changed.results_collation = self.shared.server.results_in(results);
            *session = self.sessions.intern(changed);
        }
        // Conditions of an earlier statement were shown in the collation of before.
        let anew = client.session.results_collation != described_before;
        if anew && client.last.kept().is_some() && client.last.conditions == 0 {
            client.last.lose_conditions();
        }
    }
}
