//! Outcome of a client's statement, as far as its text and session tell it: what its changes mean,
//! what is to be read back, and what is kept for questions about it ([`crate::pair`]).
//!
//! Invariant: a variable that was neither reported nor read back counts as unread.

use crate::client::ClientSession;
use crate::errors::reasons::PinReason;
use crate::server::facts::ServerFacts;
use session::diagnostics::Diagnostics;
use session::last_statement::PendingReadBack;
use session::meter::Meter;
use session::read_back::Properties;
use session::reply_summary::ReplySummary;
use session::state::{CHARSET_VARIABLES, CLOCK, Session};
use session::statement::{Code, Explanation, Untracked};
use session::text::Text;
use sql::classify::PinCause;

/// Variables that servers report by themselves: each statement has its own.
const RECREATED: [&[u8]; 5] = [
    b"statement_id",
    b"last_insert_id",
    b"identity",
    b"warning_count",
    b"error_count",
];
/// Variables that a statement uses up; reported when they are set.
const USED_UP: [&[u8]; 4] = [b"timestamp", b"insert_id", b"rand_seed1", b"rand_seed2"];

/// Causes of pins of clients whose text sets one of these.
const USED: [PinCause; 2] = [PinCause::VariableInUse, PinCause::SpecialVariable];

/// Beginning of the variables that say what is tracked.
const TRACKING: &[u8] = b"session_track_";
/// The one of them that no backend has on for the pool.
const TRACKING_GTIDS: &[u8] = b"session_track_gtids";

impl ClientSession {
    /// Retains the answer to SHOW WARNINGS on its behalf.
    pub(crate) fn keep_warnings(
        &mut self,
        summary: &ReplySummary,
        collected: Vec<u8>,
        server: &ServerFacts,
        meter: &Meter,
    ) {
        let answer = match summary.error {
            Some(_) => Err(()),
            None => Ok(collected),
        };
        let session = &self.state;
        let stored_max = session.value(b"max_error_count");
        let stored_max = stored_max.and_then(|max| std::str::from_utf8(max).ok()?.parse().ok());
        let stored_max = stored_max.unwrap_or(server.conditions_max);
        let charset = session.variable(b"character_set_results");
        (self.last).keep_conditions(answer, charset, stored_max, meter);
    }

    /// True if its last statement has left nothing on its backend, and nothing is asked about it.
    pub(crate) fn leaves_nothing(&self) -> bool {
        let is_clean = self.modified.is_none() && self.last.pending == PendingReadBack::default();
        is_clean && self.pins.is_empty() && !self.is_held()
    }

    /// Properties of its session that its backend alone knows.
    pub(crate) fn changed_properties(&self) -> Properties {
        let modified = self.modified.as_ref();
        let variables = modified.is_some_and(|modified| modified.fresh);
        let clock = modified.is_some_and(|modified| modified.asks_clock());
        // What has replaced it since is known, or is not to be known.
        let found = Properties::FOUND_ROWS.when(!self.last.counts_unread());
        self.last
            .pending
            .changed
            .without(found)
            .union(Properties::HOLDINGS.when(self.pins.asks()))
            .union(Properties::CLOCK.when(clock))
            .union(Properties::USER_VARIABLES.when(variables))
    }

    /// True if its statement may have run stored code, or has run in another default schema, as
    /// prepared statements do: a server reports the client's own again behind it.
    pub(crate) fn runs_unseen(&self) -> bool {
        let prepared = self.prepared.under_way();
        let elsewhere =
            prepared.is_some_and(|run| run.definition.session.schema != self.state.schema);
        elsewhere || self.statement.code != Code::None || self.pins.is_pinned()
    }

    /// True if its last statement's warnings are not all kept, or not as the session would have
    /// them shown now.
    pub(crate) fn lacks_warnings(&self) -> bool {
        let charset = self.state.variable(b"character_set_results");
        let unlike = |kept: &Diagnostics| kept.charset.as_deref() != charset;
        self.last.has_unknown_conditions() || self.last.kept().is_some_and(unlike)
    }

    /// Explanation, by its texts, of the changes that the answer to its statement reports. On MySQL
    /// these include changes of the statement before, if that failed.
    pub(crate) fn explanation(&self) -> Explanation {
        match (self.statement.explanation, self.last.pending.explanation) {
            (Explanation::None, Explanation::Lasting) => Explanation::Lasting,
            (own, _) => own,
        }
    }

    /// True if a report of this variable says nothing of its session: each statement has its own,
    /// or it is one of the pool's trackers.
    pub(crate) fn is_no_setting(&self, name: &[u8]) -> bool {
        let tracks = name.starts_with(TRACKING) && name != TRACKING_GTIDS;
        RECREATED.contains(&name) || tracks && !self.has_set_trackers()
    }

    /// True if a report that `timestamp` has changed comes of its own text.
    fn sets_clock(&self) -> bool {
        let modified = self.modified.as_ref();
        modified.is_some_and(|modified| modified.asks_clock())
    }

    /// Notes in its session what is reported of a variable. `false` where no text of its says so: a
    /// trigger or a view has done it, and may have done more. What the next statement uses up
    /// cannot be given back anyway.
    pub(crate) fn take_variable(
        &mut self,
        session: &mut Session,
        (name, value): (&[u8], &[u8]),
        explains: bool,
    ) -> bool {
        let used_up = || {
            USED.iter()
                .any(|&used| self.pins.is_pinned_for(PinReason::Text(used)))
        };
        let said = match name {
            CLOCK => self.sets_clock(),
            _ => !USED_UP.contains(&name) || used_up(),
        };
        let kept = session.set(name, value).is_ok();
        let charset = (CHARSET_VARIABLES.iter()).any(|charset| charset.as_bytes() == name);
        self.last.pending.changed =
            (self.last.pending.changed).union(Properties::COLLATION.when(charset));
        kept && explains && said
    }

    /// Its default schema, if that is open to its account without a role of its own.
    pub(crate) fn schema_of_login(&self) -> Option<&Text> {
        let schema = self.state.schema.as_ref();
        schema.filter(|_| self.state.role.is_none() && !self.role_is_unread())
    }

    /// True if its backend may be in a role that was not read back.
    pub(crate) fn role_is_unread(&self) -> bool {
        self.last.pending.changed.intersects(Properties::ROLE)
            || self.statement.untracked.contains(Untracked::ROLE)
    }

    /// True if its backend may stand in a session that only a question would tell: in such a role,
    /// or with another collation of results, of which no report tells.
    pub(crate) fn is_unread(&self) -> bool {
        let changed = self.changed_properties();
        self.role_is_unread() || changed.intersects(Properties::COLLATION)
    }
}
