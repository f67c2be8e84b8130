//! What is read back of a session before its backend serves somebody else.
//!
//! The problem: no tracker reports all that a statement may have changed. The mechanism: what is
//! owed is asked in one question ([`session::read_back`]), when nothing is in flight any more
//! ([`Group::settle`]) or when something needs it earlier; the answer is taken property by
//! property. What each of them is, and when it is owed, stands with its owner: the files of
//! [`crate::pair`], `untracked_changes.rs`, `pinning.rs`, `endings.rs`.
//!
//! Adding a property: a row in [`session::read_back`], who owes it in
//! [`Client::changed_properties`], who takes it in [`Pair::told`](crate::pair::Pair::told).
//!
//! Invariant: a backend about which something is owed serves nobody else.

use crate::backend::Purpose;
use crate::client::Client;
use crate::errors::reasons::PinReason;
use crate::group::Group;
use reactor::{Key, Net};
use session::read_back::{Answer, Asked, Properties, Question, question};
use session::reply_summary::ReplySummary;
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
        self.ask(lease, owner, |pair| {
            let mut out = Vec::with_capacity(sql.len() + 8);
            pair.put_question(&mut out, Purpose::ReadBack(asked), &sql);
            out
        });
        if properties.intersects(Properties::FOUND_ROWS)
            && let Some(backend) = self.backends.get_mut(lease)
        {
            backend.note_deprecation(owner, self.shared.server.flavour);
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
            Some(answer) => {
                let pair = self.pair(owner, key);
                let told = pair.map(|mut pair| pair.told(asked.properties, &answer));
                if let Some(Err(why)) = told {
                    self.lose(key, why);
                }
            }
            // What it holds, it keeps.
            None if asked.properties == Properties::HOLDINGS => {}
            None => return self.lose(key, "the server did not give a session's state back"),
        }
        self.go_on(owner);
        self.settle(key);
    }
}
