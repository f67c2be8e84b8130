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

use crate::backend::{Backend, SchemaThere};
use crate::client::Client;
use crate::errors::reasons::PinReason;
use crate::pair::{Broken, Pair};
use crate::server::facts::ServerFacts;
use session::reply_summary::ReplySummary;
use sql::classify::{PinCause, Reads, Statement, Verb};
use sql::lex::LexMode;
use sql::tracking::{Tracked, retracked};
use std::ops::Deref;
use std::rc::Rc;
use wire::capabilities::SESSION_TRACK;
use wire::track::{Bound, Transactions, Wanted, keep, put_schema};

/// Why a client keeps its backend whose trackers are as it has set them.
pub(crate) const PINNED: PinReason = PinReason::Text(PinCause::SessionTracking);

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
pub(crate) fn wanted_by<'a, S>(client: &Client<S>, server: &'a ServerFacts) -> WantedBy<'a> {
    if let Some(retracking) = &client.retracking {
        return WantedBy::Made(retracking.now.clone());
    }
    let usual = match &client.session.tracked {
        Some(tracked) => WantedBy::Own(tracked.clone()),
        None => WantedBy::Usual(&server.trackers.wanted),
    };
    match client.is_pinned_for(PINNED) {
        true => WantedBy::Made(wanted_there(client, &usual, server)),
        false => usual,
    }
}

/// Trackers of a client's backend that is set as the client wants it; of which variables that
/// tells, nobody is told.
fn wanted_there<S>(client: &Client<S>, usual: &Wanted, server: &ServerFacts) -> Wanted {
    let own = |name: &str| client.session.variable(name.as_bytes());
    let on = |name, usual| own(name).map_or(usual, |value| matches!(value, b"1" | b"ON"));
    let mut wanted = Wanted::from_setting("*", on("session_track_schema", usual.schema));
    wanted.state = on("session_track_state_change", usual.state);
    let mysql = server.flavour.is_mysql();
    let transactions =
        own("session_track_transaction_info").map(|value| Transactions::from_setting(value, mysql));
    wanted.transactions = transactions.unwrap_or(usual.transactions);
    wanted
}

impl<S> Client<S> {
    /// Its execution ran in another schema than its own and failed: a later OK says its own again.
    pub(crate) fn owe_schema(&mut self, server: &ServerFacts) {
        let tracks = self.capabilities & SESSION_TRACK != 0 && wanted_by(self, server).schema;
        let mut block = Vec::new();
        if let Some(schema) = self.session.schema.as_ref().filter(|_| tracks) {
            put_schema(&mut block, schema);
        }
        // What was written here can be read.
        let added = self.pending_changes.add(&block);
        debug_assert!(added.is_ok());
    }

    /// True if its statement makes the server forget changes that it was to be told of.
    pub(crate) fn forgets_changes(&self) -> bool {
        self.retracking.as_ref().is_some_and(|found| found.forgets)
    }

    /// Settings of its trackers, if its backends do not know them.
    pub(crate) fn tracks<'a>(&'a self, server: &'a ServerFacts) -> Option<&'a Tracked> {
        let own = self.session.tracked.as_deref();
        (!self.is_pinned_for(PINNED)).then(|| own.unwrap_or(&server.trackers))
    }
}

impl<S> Client<S> {
    /// The text to run instead of a SET that says what it is told: it does not pin the client any
    /// more, and its settings count once the server has answered.
    pub(crate) fn retrack(
        &mut self,
        (sql, mode): (&[u8], LexMode),
        found: &mut Statement,
        backend: Option<&Backend<S>>,
        server: &ServerFacts,
    ) -> Option<Vec<u8>> {
        let sets = found.verb == Verb::Set && !found.multi && !found.passing;
        if !sets || !found.causes.contains(PinCause::SessionTracking) {
            return None;
        }
        // What it asks about the statement before is answered in words of their own.
        if found.reads != found.reads.of(Reads::TRACKERS) {
            return None;
        }
        let mysql = mode.server.is_mysql();
        let retracked = retracked(sql, mode, &server.trackers, self.tracks(server)?, mysql)?;
        // Of such a transaction nothing else tells, and the tracker is about to begin anew.
        let alone = |backend: &Backend<S>| backend.transaction.is_known_by_tracker_alone();
        if retracked.begins_anew && backend.is_some_and(alone) {
            return None;
        }
        found.causes.remove(PinCause::SessionTracking);
        found.pin = found.causes.iter().next();
        let sql = retracked.sql.clone();
        self.retracking = Some(Box::new(retracked));
        Some(sql)
    }
}

impl<S> Pair<'_, S> {
    /// The server has told what belongs to the client and has no room in this reply: it is told
    /// with the client's next OK, as MySQL does.
    pub(crate) fn tell_later(&mut self, summary: &ReplySummary) -> Result<(), Broken> {
        let mysql = self.context.server.flavour.is_mysql();
        let tracks = self.client.capabilities & SESSION_TRACK != 0;
        if summary.changes.is_empty() || !mysql || !tracks {
            return Ok(());
        }
        let mut wanted = wanted_by(self.client, self.context.server);
        if self.backend.schema == SchemaThere::Another {
            wanted = wanted.without_schema();
        }
        let mut changes = Vec::new();
        let kept = keep(
            &summary.changes,
            &wanted,
            &mut self.backend.bound,
            &mut changes,
        );
        if kept.is_err() || self.client.pending_changes.add(&changes).is_err() {
            return Err("the server sent session changes that cannot be read");
        }
        Ok(())
    }

    /// A statement is answered: what it said of trackers counts if it went well.
    pub(super) fn note_retracked(&mut self, went: bool) {
        let Some(retracking) = self.client.retracking.take().filter(|_| went) else {
            return;
        };
        if retracking.begins_anew {
            self.backend.transaction.note_tracker_begun();
            // Of the end of what is open nobody will be told.
            self.backend.bound = Bound::default();
        }
        let tracked = Rc::new(retracking.then);
        self.change_both(|session| session.tracked = Some(tracked.clone()));
    }
}
