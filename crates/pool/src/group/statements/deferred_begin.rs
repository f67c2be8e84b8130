//! Texts that the pool answers by itself, and what becomes of a BEGIN that was answered so.
//!
//! Such texts are recognised by [`crate::statements::answered_locally`]. The BEGIN goes out later,
//! in front of its client's next statement ([`crate::pair::restoring`]).

use crate::client::{Handled, Pipelining};
use crate::group::Group;
use crate::group::tokens::ClientId;
use crate::statements::answered_locally::{Alone, Edge, edge_of};
use crate::statements::own_ok::OwnOk;
use reactor::Net;
use session::read_back::Properties;
use sql::classify::Reads;
use sql::text::Text;
use std::time::Duration;

impl<N: Net> Group<N> {
    /// Answers a text that needs no server: one that begins or ends a transaction of which no
    /// backend knows, or a SET that changes nothing. `None` where it is none of these, or a backend
    /// has to run it.
    pub(crate) fn on_text_alone(&mut self, key: ClientId, text: &Text<'_>) -> Option<Handled> {
        let (sql, mode) = (text.sql, text.mode);
        let edge = edge_of(sql);
        if edge == Some(Edge::End)
            && let Some(backend) = (self.alone(key).filter(Alone::asks_before_end))
                .and_then(|alone| alone.view.client.backend())
            && let Some(mut pair) = self.pair(key, backend)
        {
            let next = pair.read_back(Properties::INSERT_ID);
            self.follow(key, backend, next);
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
        if !alone.may_answer() {
            return None;
        }
        let client = self.clients.get_mut(key)?;
        let begun = client.is_begin_deferred();
        let counts = &mut self.counts;
        match edge {
            Some(Edge::Begin) => {
                client.pipelining = Pipelining::NotWhileBeginIsDeferred;
                counts.transactions_deferred += 1;
            }
            Some(Edge::End) => {
                client.pipelining = Pipelining::Allowed;
                match begun {
                    true => counts.transactions_unsent += 1,
                    false => counts.ends_spared += 1,
                }
            }
            None => counts.sets_spared += 1,
        }
        match mode.server.is_mysql() {
            true => {
                client.last.answered_clean(0);
                // What clears its conditions there counts.
                if client.last.counts_unread() {
                    client.last.invalidate(Reads::FOUND_ROWS);
                }
            }
            false => client.last.answered_uncounted(0),
        }
        self.count_text_alone(text, false);
        let ok = OwnOk {
            reports: &reports,
            ..OwnOk::PLAIN
        };
        self.answers().ok(key, &ok);
        Some(Handled::Used)
    }

    /// Answers an empty text behind another one. `None` where a backend has to run it.
    pub(crate) fn on_empty_text(&mut self, key: ClientId, text: &Text<'_>) -> Option<Handled> {
        let alone = self.alone(key).filter(Alone::follows_empty)?;
        if alone.is_about_to_leave() {
            return Some(self.waiters().wait_outside(key));
        }
        if !alone.repeats_empty() {
            return None;
        }
        self.count_text_alone(text, true);
        self.answers().empty_again(key);
        Some(Handled::Used)
    }

    fn count_text_alone(&mut self, text: &Text<'_>, failed: bool) {
        let digests = &mut self.figures.digests;
        let digest = digests.of_text(text, self.net.now());
        digests.sent(digest, Duration::ZERO);
        digests.answered(digest, Duration::ZERO, failed, 0);
    }
}
