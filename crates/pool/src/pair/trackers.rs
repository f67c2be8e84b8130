//! Reports to a client about its session: those that the server sends by default, or those that it
//! has set.
//!
//! The problem: the pool needs every tracker of a backend, and a client may switch trackers off, or
//! name the variables that it wants to hear of. The mechanism: a SET that does so is taken apart
//! ([`sql::tracking`]); the server gets one that leaves the trackers as they are, the client's own
//! settings become a part of its session, and what the backend tells is reduced to them as it
//! passes by. A SET in another form pins, and then its backend is set as the client wants it.
//!
//! Invariant: a backend that serves several clients tells everything, whatever any of them has set.

use crate::client::ClientSession;
use crate::errors::reasons::PinReason;
use crate::pair::{Broken, Pair, UNREADABLE};
use crate::server::facts::ServerFacts;
use session::reply_summary::ReplySummary;
use sql::classify::{PinCause, Reads, Statement, Verb};
use sql::lex::LexMode;
use sql::tracking::{PINNING, Retracked, Tracked, retracked};
use std::borrow::Cow;
use std::ops::Deref;
use std::rc::Rc;
use wire::capabilities::SESSION_TRACK;
use wire::track::{Bound, Transactions, Wanted, keep, put_schema};

/// Reason why a client keeps its backend whose trackers are as it has set them.
pub(crate) const PINNED: PinReason = PinReason::Text(PinCause::SessionTracking);
/// Reason why a client keeps its backend of whose switches it has set some.
const SWITCHED: PinReason = PinReason::Text(PinCause::SessionSwitches);

/// MySQL's switch that has transactions numbered, with its value where the pool has set it in a
/// client's session: what a client sets is spelt otherwise by the server.
pub(crate) const TRACKED_FOR_POOL: (&[u8], &[u8]) = (b"session_track_gtids", b"own_gtid");

/// True if the pool has had the transactions of a client numbered, of which it is not told.
pub(crate) fn tracks_for_pool(client: &ClientSession) -> bool {
    let (name, value) = TRACKED_FOR_POOL;
    client.state.variable(name) == Some(value)
}

/// Reports that a client wants.
pub(crate) enum WantedBy<'a> {
    /// Reports by default.
    Usual(&'a Wanted),
    /// Reports by the session's own settings.
    Own(Rc<Tracked>),
    /// Reports that follow from a SET of its own, for one reply; or from the settings of its
    /// backend.
    Made(Wanted),
}

impl Deref for WantedBy<'_> {
    type Target = Wanted;

    fn deref(&self) -> &Wanted {
        match self {
            WantedBy::Usual(wanted) => wanted,
            WantedBy::Own(tracked) => &tracked.wanted,
            WantedBy::Made(wanted) => wanted,
        }
    }
}

impl<'a> WantedBy<'a> {
    /// Reports but for the default schema.
    pub(crate) fn without_schema(self) -> WantedBy<'a> {
        WantedBy::Made(Wanted {
            schema: false,
            ..self.clone()
        })
    }

    /// Reports but for changes of some state.
    pub(crate) fn without_state(self) -> WantedBy<'a> {
        WantedBy::Made(Wanted {
            state: false,
            ..self.clone()
        })
    }
}

/// Reports of the trackers of a client's session.
pub(crate) fn wanted_by<'a>(session: &ClientSession, server: &'a ServerFacts) -> WantedBy<'a> {
    let usual = match &session.state.tracked {
        Some(tracked) => WantedBy::Own(tracked.clone()),
        None => WantedBy::Usual(&server.trackers.wanted),
    };
    match session.pins.is_empty() && session.effects.retracking().is_none() {
        true if !session.has_switched() => usual,
        _ => wanted_beside(session, usual),
    }
}

/// Reports where a SET of what is reported is under way, or a backend's trackers are its client's.
fn wanted_beside<'a>(session: &ClientSession, usual: WantedBy<'a>) -> WantedBy<'a> {
    if session.pins.is_pinned_for(PINNED) {
        let all = Wanted::from_setting("*", false).variables;
        return WantedBy::Made(passed_on(session, all, &usual));
    }
    match session.effects.retracking() {
        Some(retracking) => WantedBy::Made(retracking.now.clone()),
        None if session.has_switched() => {
            WantedBy::Made(passed_on(session, usual.variables.clone(), &usual))
        }
        None => usual,
    }
}

/// Reports of these variables, and of what the switches let through that the backend of a client
/// has of its own; by default `usual`.
fn passed_on(session: &ClientSession, variables: Vec<Box<[u8]>>, usual: &Wanted) -> Wanted {
    let switched = session.pins.is_pinned_for(SWITCHED) && session.has_switched();
    let own = |name: &str| switched || session.state.variable(name.as_bytes()).is_some();
    Wanted {
        variables,
        schema: usual.schema || session.state.variable(b"session_track_schema").is_some(),
        state: usual.state || own("session_track_state_change"),
        transactions: match own("session_track_transaction_info") {
            true => Transactions::Characteristics,
            false => usual.transactions,
        },
    }
}

impl ClientSession {
    /// Queues its own schema for a later OK, after an execution that ran in another one and failed.
    pub(crate) fn owe_schema(&mut self, capabilities: u32, server: &ServerFacts) {
        let tracks = capabilities & SESSION_TRACK != 0 && wanted_by(self, server).schema;
        let mut block = Vec::new();
        if let Some(schema) = self.state.schema.as_ref().filter(|_| tracks) {
            put_schema(&mut block, schema);
        }
        // What was written here can be read.
        let added = self.pending_changes.add(&block);
        debug_assert!(added.is_ok());
    }

    /// True if its statement makes the server forget changes that it was to be told of.
    pub(crate) fn forgets_changes(&self) -> bool {
        self.effects.retracking().is_some_and(|found| found.forgets)
    }

    /// Settings of its trackers, if its backend does not have them.
    pub(crate) fn tracks<'a>(&'a self, server: &'a ServerFacts) -> Option<Cow<'a, Tracked>> {
        if self.pins.is_pinned_for(PINNED) {
            return None;
        }
        let own = self.state.tracked.as_deref().unwrap_or(&server.trackers);
        if !self.has_switched() {
            return Some(Cow::Borrowed(own));
        }
        let value = |name: &str| self.state.variable(name.as_bytes());
        let on = |name, usual| value(name).map_or(usual, |value| matches!(value, b"1" | b"ON"));
        let mut tracked = own.clone();
        let wanted = &mut tracked.wanted;
        wanted.schema = on("session_track_schema", wanted.schema);
        wanted.state = on("session_track_state_change", wanted.state);
        if let Some(value) = value("session_track_transaction_info") {
            let mysql = server.flavour.is_mysql();
            wanted.transactions = Transactions::from_setting(value, mysql);
        }
        Some(Cow::Owned(tracked))
    }

    /// True if it keeps its backend for settings of its trackers, whether the server has told what
    /// they are or not.
    pub(crate) fn has_set_trackers(&self) -> bool {
        self.pins.is_pinned_for(PINNED) || self.pins.is_pinned_for(SWITCHED)
    }

    /// True if the switches of its backend are its own.
    fn has_switched(&self) -> bool {
        let set = |name: &[u8]| self.state.variable(name).is_some();
        PINNING.into_iter().any(set)
    }

    /// Takes apart a SET that says what it is told: unless it sets the backend's switches it does
    /// not pin the client any more. Its settings count once the server has answered.
    pub(crate) fn retrack(
        &self,
        (sql, mode): (&[u8], LexMode),
        found: &mut Statement,
        server: &ServerFacts,
    ) -> Option<Retracked> {
        let sets = found.verb == Verb::Set && !found.multi && !found.passing;
        // What it asks about the statement before is answered in words of their own.
        let alone = found.reads == found.reads.of(Reads::TRACKERS);
        let own = self.tracks(server).filter(|_| sets && alone);
        let switched = self.has_switched();
        let retracked =
            own.and_then(|own| retracked(sql, mode, &server.trackers, &own, switched))?;
        found.causes.remove(PinCause::SessionTracking);
        if retracked.pins {
            found.causes.insert(PinCause::SessionSwitches);
        }
        found.pin = found.causes.iter().next();
        Some(retracked)
    }
}

impl Pair<'_> {
    /// Keeps what the server has reported for the client and has no room in this reply for the
    /// client's next OK, as MySQL does.
    pub(crate) fn tell_later(&mut self, summary: &ReplySummary) -> Result<(), Broken> {
        let mysql = self.context.server.flavour.is_mysql();
        let tracks = self.ends.capabilities & SESSION_TRACK != 0;
        if summary.changes.is_empty() || !mysql || !tracks {
            return Ok(());
        }
        let mut wanted = wanted_by(self.client, self.context.server);
        if self.backend.is_in_another_schema() {
            wanted = wanted.without_schema();
        }
        let mut changes = Vec::new();
        let hides = tracks_for_pool(self.client);
        let bound = self.backend.bound_mut();
        let kept = keep(&summary.changes, &wanted, hides, bound, &mut changes);
        if kept.is_err() || (self.client.pending_changes.add(&changes)).is_err() {
            return Err(UNREADABLE);
        }
        Ok(())
    }

    /// Adopts what an answered statement has set for trackers, if it went well.
    pub(super) fn note_retracked(&mut self, went: bool) {
        let Some(retracking) = (self.client.effects.take_retracking()).filter(|_| went) else {
            return;
        };
        if retracking.pins {
            // Of the end of what is open nobody may be told.
            *self.backend.bound_mut() = Bound::default();
        }
        let tracked = Rc::new(retracking.then);
        self.change_both(|session| session.tracked = Some(tracked.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::tests::Parts;
    use session::state::Session;
    use sql::lex::Server;

    #[test]
    fn numbers_of_transactions_that_the_pool_alone_wants_are_not_told_later() {
        let gtids = b"\x03\x06\x00\x04a:12";
        for (value, told) in [("own_gtid", &b""[..]), ("OWN_GTID", &gtids[..])] {
            let mut parts = Parts::bound();
            parts.server.flavour = Server::MySql(90_700);
            parts.client.capabilities |= SESSION_TRACK;
            let mut session = Session::default();
            session.put(TRACKED_FOR_POOL.0, value.as_bytes());
            parts.client.session.state = Rc::new(session);
            let summary = ReplySummary {
                changes: gtids.to_vec(),
                ..ReplySummary::default()
            };
            parts.pair().tell_later(&summary).unwrap();
            assert_eq!(
                parts.client.session.pending_changes.bytes(),
                told,
                "{value}"
            );
        }
    }
}
