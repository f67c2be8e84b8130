//! Texts that the pool answers by itself, and what becomes of a BEGIN that was answered so.
//!
//! Which texts those are, and for whom, says [`crate::alone`]. The BEGIN goes out later, in front
//! of its client's next statement; here its answer comes in.

use crate::alone::{Alone, Edge, edge_of};
use crate::client::{Company, Handled};
use crate::group::Group;
use crate::own_ok::OwnOk;
use crate::pair::trackers::told_to;
use reactor::{Key, Net};
use session::read_back::Properties;
use session::reply_summary::ReplySummary;
use session::standing::Behind;
use sql::lex::LexMode;
use std::time::Duration;
use wire::capabilities::SESSION_TRACK;
use wire::track::{Change, changes, keep};

impl<N: Net> Group<N> {
    /// Answers a text that needs no server: one that begins or ends a transaction of which no
    /// backend knows, or a SET that changes nothing. `None` where it is none of these, or a backend
    /// has to run it.
    pub(crate) fn on_text_alone(&mut self, key: Key, sql: &[u8], mode: LexMode) -> Option<Handled> {
        let edge = edge_of(sql);
        if edge == Some(Edge::End)
            && let Some(lease) = (self.alone(key).filter(Alone::asks_before_end))
                .and_then(|alone| alone.view.client.lease())
        {
            self.read_back(lease, key, Properties::INSERT_ID);
        }
        let alone = self.alone(key)?;
        let reports = match edge {
            Some(edge) => alone.reports_of_edge(edge)?,
            None if alone.sets_nothing(sql, mode) => Vec::new(),
            None => return None,
        };
        if alone.is_about_to_leave() {
            return Some(self.waiters().wait_outside(key));
        }
        if !alone.may_answer(mode) {
            return None;
        }
        let client = self.clients.get_mut(key)?;
        let begun = client.is_begin_deferred();
        let counts = &mut self.counts;
        match edge {
            Some(Edge::Begin) => {
                client.company = Company::BeginDeferred;
                counts.transactions_deferred += 1;
            }
            Some(Edge::End) => {
                client.company = Company::Any;
                match begun {
                    true => counts.transactions_unsent += 1,
                    false => counts.ends_spared += 1,
                }
            }
            None => counts.sets_spared += 1,
        }
        match mode.server.is_mysql() {
            true => client.last.answered_clean(0),
            false => client.last.answered_uncounted(0),
        }
        let digests = &mut self.figures.digests;
        let digest = digests.of((sql, mode), self.net.now());
        digests.sent(digest, Duration::ZERO);
        digests.answered(digest, Duration::ZERO, false, 0);
        let ok = OwnOk {
            reports: &reports,
            ..OwnOk::PLAIN
        };
        self.answers().ok(key, &ok);
        Some(Handled::Used)
    }

    /// A client as one that may be answered without the server.
    pub(crate) fn alone(&self, key: Key) -> Option<Alone<'_, N::Sock>> {
        Some(Alone {
            view: self.client_view(key)?,
            server: &self.shared.server,
            is_on: self.settings.defer_begin && self.draining.is_none(),
        })
    }

    /// That BEGIN was answered.
    pub(crate) fn deferred_begin_answered(
        &mut self,
        lease: Key,
        owner: Option<Key>,
        summary: &ReplySummary,
    ) {
        let Some((owner, client)) = owner.and_then(|owner| Some((owner, self.clients.get(owner)?)))
        else {
            return self.retire(lease);
        };
        if let Some((code, text)) = &summary.error {
            return self.restore_failed(lease, owner, Behind::Unknown, (*code, text));
        }
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        // Its client has been told of the beginning, if it is told of transactions at all.
        let wanted = told_to(client, &self.shared.server);
        let told = match client.capabilities & SESSION_TRACK != 0 {
            true => keep(
                &summary.changes,
                &wanted,
                &mut backend.bound,
                &mut Vec::new(),
            ),
            false => Ok(false),
        };
        let read = changes(&summary.changes, |change| match change {
            Change::TransactionState(state) => backend.transaction.note_state(state),
            Change::TransactionCharacteristics(sql) => {
                backend.transaction.note_characteristics(sql);
            }
            _ => {}
        });
        if told.is_err() || read.is_err() {
            self.lose(lease, "the server sent session changes that cannot be read");
        }
    }
}
