//! Variables that a client's statements may have set on its backend, as a value.
//!
//! It is noted from the statement's text and kept with the client.
//! What came of it the server is asked ([`crate::pair::next`]).
//!
//! The problem: the trackers tell most of a session, but MariaDB nothing of `SET @@name = value`,
//! and no server says whether `SET timestamp` has stopped the clock or let it go on. The mechanism:
//! behind a statement with such a SET the server gets another that changes nothing and is reported
//! ([`sql::unscoped`]), in a transaction too, because texts that follow may be cut by another
//! `sql_mode`. Before the backend is checked in, the clock is read: if that is not what was
//! reported a moment ago, it goes on. User variables are read back by `user_variables.rs`.
//!
//! Invariants: a client's next command waits until what its session stands at is known; a backend
//! about which something is still to be asked serves nobody else.

use serde::{Deserialize, Serialize};
use session::text::Text;
use sql::classify::Statement;
use sql::lex::LexMode;
use sql::unscoped::retold;

/// Variables that a client's statements may have set on its backend. It goes to another process
/// with that backend if there is nothing of the fields that stay behind ([`Modified::goes_along`]).
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Modified {
    /// User variables.
    pub(crate) names: Vec<Text>,
    /// True if some of them may have been set since they were read back last.
    pub(crate) fresh: bool,
    /// True if it depends on user variables that its client has never set, so that none of others
    /// may be left on its backend (see [`crate::backend::session_reset`]).
    #[serde(skip)]
    pub(crate) needs_none_left: bool,
    /// SETs by which the server reports what was set in another form.
    #[serde(skip)]
    pub(crate) sets: Vec<Vec<u8>>,
    /// The statement in front of them failed.
    pub(crate) failed: bool,
    /// Number of times that the clock may have to be read until it is known to go on or stand.
    pub(crate) clock: u8,
    /// Answers that are to come before the client's next command.
    #[serde(skip)]
    pub(crate) awaited: usize,
}

impl Modified {
    /// Modifications that consist of these user variables.
    pub(crate) fn of(names: Vec<Text>) -> Modified {
        Modified {
            fresh: !names.is_empty(),
            names,
            ..Modified::default()
        }
    }

    /// Notes what a text may set besides user variables.
    pub(crate) fn set_by(&mut self, sql: &[u8], mode: LexMode, found: &Statement) {
        if found.untracked {
            self.sets = retold(sql, mode);
        }
        // Without a report there is nothing yet to compare with.
        self.clock = u8::from(found.sets_clock) * (1 + u8::from(found.untracked));
    }

    /// True if nothing is to be asked because of it.
    pub(crate) fn sets_nothing(&self) -> bool {
        self.names.is_empty() && self.sets.is_empty() && self.clock == 0
    }

    /// Notes what another text may set.
    pub(crate) fn add(&mut self, next: Modified) {
        for name in next.names {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
        self.fresh |= next.fresh;
        self.sets.extend(next.sets);
        self.clock = self.clock.max(next.clock);
    }

    /// Notes whether an answered statement that sets something has failed.
    pub(crate) fn note_result(&mut self, failed: bool) {
        self.failed |= failed && !self.sets.is_empty();
    }

    /// True if SETs are to be sent before anything else.
    pub(crate) fn is_untracked(&self) -> bool {
        !self.sets.is_empty()
    }

    /// True if its client's next command has to wait.
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited > 0
    }

    /// True if it can go along with its client and the backend to another process: nothing that it
    /// waits for is under way.
    pub(crate) fn goes_along(&self) -> bool {
        !self.needs_none_left && self.sets.is_empty() && self.awaited == 0
    }

    /// True if the clock is to be read.
    pub(crate) fn asks_clock(&self) -> bool {
        self.clock > 0
    }
}
