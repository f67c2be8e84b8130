//! State that a client's last statement has left for questions about it, as a value.
//!
//! The problem: SHOW WARNINGS, GET DIAGNOSTICS, ROW_COUNT() and FOUND_ROWS() ask the session about
//! its last statement, and the backend that ran it may serve others meanwhile. The mechanism: a
//! [`LastStatement`] goes with the client. It has the counts, the conditions once they are read,
//! what is still to be read back ([`PendingReadBack`]), and which of it the client's backend still
//! has ([`LastStatement::lost`] is the rest).
//!
//! Invariants: what is not known for certain is unknown, never a guess; a count or a condition is
//! this client's own, or it is unknown.

use crate::diagnostics::{Area, Counted, Diagnostics};
use crate::found::{Found, FoundRows};
use crate::meter::{Charged, Meter};
use crate::read_back::{Ended, Properties, changed_by};
use crate::reply_summary::ReplySummary;
use crate::statement::{Conditions, Explanation, Statement};
use serde::{Deserialize, Serialize};
use sql::classify::Reads;

/// Counts of a statement.
pub const COUNTS: Reads = Reads::ROW_COUNT.union(Reads::LAST_GTID);
/// Facts of a statement that only its backend knows by itself.
pub const LEFT_BY_STATEMENT: Reads = COUNTS.union(Reads::FOUND_ROWS).union(Reads::DIAGNOSTICS);
/// RESIGNAL when handler not active
const NO_HANDLER: u16 = 1645;
/// GET STACKED DIAGNOSTICS when handler not active
const NO_HANDLER_STACKED: u16 = 3004;
/// You have an error in your SQL syntax
const UNPARSED: u16 = 1064;
/// LAST_INSERT_ID() that went with its backend before it was read back. No server generates it.
const LOST_INSERT_ID: u64 = u64::MAX;
/// Errors that MariaDB finds before it runs a SHOW that looks up: no such schema, no such table, a
/// view that is not valid.
const NOT_THERE: [u16; 3] = [1049, 1146, 1356];

/// Fate of ROW_COUNT() and of the GTID that go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    New,
    Stay,
    MayStay,
}

/// Pending read-backs: what the backend must be asked before it may serve another client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingReadBack {
    /// The statement failed or warned: SHOW WARNINGS.
    pub warnings: bool,
    /// True if it failed, so that the transaction's state is unknown.
    pub failed: bool,
    /// Explanation by the text of a failed statement of the changes that the next report tells of.
    pub explanation: Explanation,
    /// Properties that may have changed.
    pub changed: Properties,
}

/// Owner of the conditions in the answer to SHOW WARNINGS on a client's behalf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum ReadBack {
    /// Those of its last statement.
    #[default]
    Wanted,
    /// The client's own; the number that COM_PING counts of them is known already.
    Uncounted,
    /// Nobody: the pool has answered a command since, or somebody else's stand in front of them.
    Outdated,
}

/// ROW_COUNT(), if it is known; 8 bytes of an idle client instead of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowCount(i64);

impl RowCount {
    /// ROW_COUNT() of a statement with rows, and of one that has failed.
    pub const NONE: RowCount = RowCount(-1);
    /// No statement counts so.
    const UNKNOWN: RowCount = RowCount(i64::MIN);

    /// The number, if it is known.
    pub fn get(self) -> Option<i64> {
        (self != Self::UNKNOWN).then_some(self.0)
    }
}

/// State that a client's last statement has left.
///
/// As a record for another process it is what stays known without its backend; the rest goes along
/// with that ([`OnItsBackend`]).
#[derive(Debug, Serialize, Deserialize)]
pub struct LastStatement {
    /// LAST_INSERT_ID()
    pub insert_id: u64,
    /// ROW_COUNT(), if it is known.
    pub row_count: RowCount,
    /// FOUND_ROWS(), if it is known.
    pub found_rows: FoundRows,
    /// Pending read-backs.
    #[serde(skip)]
    pub pending: PendingReadBack,
    /// Number of statements that its client has sent, with this one; may begin again at 0.
    pub number: u32,
    /// Number of conditions that it has by itself, as MySQL counts them in the OK of COM_PING.
    pub conditions: u16,
    #[serde(skip)]
    read_back: ReadBack,
    /// Facts that are still valid on the backend: nothing else has run there since.
    #[serde(skip)]
    valid: Reads,
    /// Conditions as the end of the last statement with some has counted them.
    #[serde(skip)]
    counted: Counted,
    /// Conditions of the last statement that left any, once they are read.
    kept: Option<Box<Charged<Diagnostics>>>,
    /// True if there are some whose words nobody knows; then none are kept. (An enum of the two
    /// would take 8 bytes more of each idle client.)
    lost: bool,
}

impl Default for LastStatement {
    /// State of a session that has run no statement.
    fn default() -> LastStatement {
        LastStatement {
            insert_id: 0,
            row_count: RowCount(0),
            found_rows: FoundRows::NONE_YET,
            pending: PendingReadBack::default(),
            number: 0,
            conditions: 0,
            read_back: ReadBack::default(),
            valid: Reads::default(),
            counted: Counted::default(),
            kept: None,
            lost: false,
        }
    }
}

/// State of a client's last statement that goes to another process together with its backend.
#[derive(Debug, Serialize, Deserialize)]
pub struct OnItsBackend {
    warnings: bool,
    changed: Properties,
    read_back: ReadBack,
    valid: Reads,
    counted: Counted,
}

/// On its way to another process.
impl LastStatement {
    /// True if nothing of it is still to be read back.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.pending == PendingReadBack::default()
    }

    /// True if it may go together with its backend: what is still to be read back there can be
    /// told.
    #[must_use]
    pub fn goes_with_backend(&self) -> bool {
        !self.pending.failed && self.pending.explanation == Explanation::None
    }

    /// State that its backend has of it, where that goes along.
    #[must_use]
    pub fn on_its_backend(&self) -> OnItsBackend {
        OnItsBackend {
            warnings: self.pending.warnings,
            changed: self.pending.changed,
            read_back: self.read_back,
            valid: self.valid,
            counted: self.counted,
        }
    }

    /// Takes what has come with its backend from another process.
    pub fn came_with_backend(&mut self, there: OnItsBackend) {
        self.pending.warnings = there.warnings;
        self.pending.changed = there.changed;
        (self.read_back, self.valid, self.counted) = (there.read_back, there.valid, there.counted);
    }

    /// Counts what has come among what is kept for the clients of a group.
    pub fn charge(&mut self, meter: &Meter) {
        self.kept = self.kept.take().map(|kept| charged(kept.value, meter));
    }
}

/// Facts that are still valid on the backend.
impl LastStatement {
    /// Facts that its client's backend cannot tell any more.
    #[must_use]
    pub fn lost(&self) -> Reads {
        LEFT_BY_STATEMENT.without(self.valid)
    }

    /// LAST_INSERT_ID(), if it is lost.
    #[must_use]
    pub fn lost_insert_id(&self) -> Reads {
        match self.insert_id == LOST_INSERT_ID {
            true => Reads::LAST_INSERT_ID,
            false => Reads::default(),
        }
    }

    /// Gives up what was to be read back from a lost backend, LAST_INSERT_ID() too.
    pub fn lose_backend(&mut self) {
        if self.pending.changed.contains(Properties::INSERT_ID) {
            self.insert_id = LOST_INSERT_ID;
        }
        self.pending = PendingReadBack::default();
        self.lose_conditions();
    }

    /// True if its client's backend still has all of this.
    pub fn is_valid_on_backend(&self, what: Reads) -> bool {
        self.valid.contains(what)
    }

    /// Marks these as not to be asked on its client's backend, which has no more of them.
    pub fn invalidate(&mut self, what: Reads) {
        self.valid = self.valid.without(what);
    }

    /// Marks these as valid on its client's backend, as on a connection of its own.
    pub fn own(&mut self, what: Reads) {
        self.valid = self.valid.union(what);
    }

    /// Marks all as invalid, its client having got another backend.
    pub fn moved(&mut self) {
        self.valid = Reads::default();
    }

    /// True if its client's backend, and nobody else, knows FOUND_ROWS().
    pub fn counts_unread(&self) -> bool {
        self.found_rows.get().is_none() && self.is_valid_on_backend(Reads::FOUND_ROWS)
    }
}

/// Conditions.
impl LastStatement {
    /// Those that are kept.
    #[must_use]
    pub fn kept(&self) -> Option<&Diagnostics> {
        self.kept.as_deref().map(|kept| &kept.value)
    }

    /// True if it has left any, known or not.
    pub fn has_conditions(&self) -> bool {
        self.kept.is_some() || self.has_unknown_conditions()
    }

    /// True if it has left some that nobody knows, or not yet.
    pub fn has_unknown_conditions(&self) -> bool {
        self.lost || self.pending.warnings
    }

    /// True if questions about it may come that its last backend answers best.
    pub fn may_be_asked_for(&self) -> bool {
        self.row_count != RowCount::NONE || self.alone_knows()
    }

    /// True if its last backend knows more of it than is kept.
    pub fn alone_knows(&self) -> bool {
        self.kept().is_some() || self.found_rows.get().is_none() || self.row_count.get().is_none()
    }

    /// Gives up the conditions' words, which nobody will know any more.
    pub fn lose_conditions(&mut self) {
        (self.kept, self.lost) = (None, true);
    }

    /// Clears the conditions.
    pub fn forget_conditions(&mut self) {
        self.none_kept();
        // Nor are there any among what is being read back.
        self.read_back = ReadBack::Outdated;
        self.counted = Counted::default();
        self.conditions = 0;
    }

    /// Others rode behind it, and the backend is theirs: what was to be read back there is lost.
    pub fn leave_to_followers(&mut self) {
        if self.pending.warnings {
            self.lose_conditions();
        }
        self.pending = PendingReadBack::default();
    }

    /// Takes the answer to SHOW WARNINGS on its client's behalf; `charset` is
    /// `character_set_results` of that moment and `stored_max` the `max_error_count`.
    pub fn keep_conditions(
        &mut self,
        answer: Result<Vec<u8>, ()>,
        charset: Option<&[u8]>,
        stored_max: u32,
        meter: &Meter,
    ) {
        if self.read_back == ReadBack::Outdated {
            return;
        }
        let Ok(reply) = answer else {
            // Who asks for them elsewhere hears that they are not there any more.
            return self.lose_conditions();
        };
        let mut kept = Diagnostics {
            reply,
            charset: charset.map(Box::from),
            total: None,
            state: self.counted.state,
            signals: self.counted.signals,
        };
        let stored = u32::try_from(kept.rows().len()).unwrap_or(u32::MAX);
        kept.total = match self.counted.warnings {
            Some(u16::MAX) => None,
            Some(warnings) => Some(u32::from(warnings)),
            None => (stored < stored_max).then_some(stored),
        };
        if let (Some(_), Some(total)) = (self.counted.state, kept.total) {
            self.count_conditions(u16::try_from(total).unwrap_or(u16::MAX));
        }
        let some = stored > 0 || kept.total != Some(0);
        self.keep(some.then(|| charged(kept, meter)));
    }

    /// Stores the number of conditions read back.
    fn count_conditions(&mut self, count: u16) {
        if self.read_back == ReadBack::Wanted {
            self.conditions = count;
        }
    }

    /// Retains conditions. Those that were lost meanwhile stay lost: an error of the pool's own
    /// came behind the statement.
    fn keep(&mut self, kept: Option<Box<Charged<Diagnostics>>>) {
        if !self.lost {
            self.kept = kept;
        }
    }

    /// Clears the retained conditions: there are none, or they are still to be read.
    fn none_kept(&mut self) {
        (self.kept, self.lost) = (None, false);
    }
}

/// Events.
impl LastStatement {
    /// Notes that a statement of its client goes to a backend.
    pub fn sent(&mut self) {
        self.read_back = ReadBack::Wanted;
        self.number = self.number.wrapping_add(1);
    }

    /// Notes a command answered locally, which leaves this ROW_COUNT() and nothing else.
    pub fn answered(&mut self, row_count: i64) {
        self.row_count = RowCount(row_count);
        self.invalidate(COUNTS);
    }

    /// Notes an answer of the pool's own; the conditions of the statement before stay, and are not
    /// counted any more.
    pub fn answered_uncounted(&mut self, row_count: i64) {
        self.answered(row_count);
        self.conditions = 0;
        if self.read_back == ReadBack::Wanted {
            self.read_back = ReadBack::Uncounted;
        }
    }

    /// Notes an answer of the pool's own behind which the conditions of the statement before are
    /// gone.
    pub fn answered_clean(&mut self, row_count: i64) {
        self.answered(row_count);
        self.forget_conditions();
        self.invalidate(Reads::DIAGNOSTICS);
    }

    /// Notes an answered KILL. One that goes well keeps the conditions before it on MariaDB, and
    /// clears them on MySQL (seen on 10.11 and 9.7).
    pub fn answered_kill(&mut self, went: bool, mysql: bool) {
        if went && !mysql {
            return self.answered_uncounted(0);
        }
        self.failed_by_pool();
        if went {
            (self.lost, self.conditions) = (false, 0);
            self.row_count = RowCount(0);
        }
    }

    /// Notes an error of the pool's own for its client's command, which no backend shows: the
    /// conditions of the statement before are gone, and nobody knows its own in the client's
    /// character set.
    pub fn failed_by_pool(&mut self) {
        // What is still to be read of the statement before is not asked for any more.
        self.pending.warnings &= self.pending.failed;
        self.read_back = ReadBack::Outdated;
        self.invalidate(COUNTS.union(Reads::DIAGNOSTICS));
        self.lose_conditions();
        self.conditions = 1;
        self.row_count = RowCount::NONE;
    }

    /// True if its statement has failed with these words alone, and nothing else of it is to be
    /// read: were it sent again, the server's answer and what it leaves would be the same.
    pub fn fails_again(&self, words: &str) -> bool {
        let kept = self
            .kept()
            .filter(|_| self.pending == PendingReadBack::default());
        kept.is_some_and(
            |kept| matches!(&kept.rows()[..], [row] if row.message == words.as_bytes()),
        )
    }

    /// Notes the pool's error for the same statement, sent again.
    pub fn failed_again(&mut self) {
        self.row_count = RowCount::NONE;
        self.conditions = 1;
    }

    /// Starts over with its session; FOUND_ROWS() stays, as on the servers.
    pub fn start_over(&mut self) {
        self.answered_clean(0);
        self.pending = PendingReadBack::default();
        self.insert_id = 0;
    }

    /// Notes that a prepared statement had to be prepared again on its backend: what stood there
    /// for SHOW WARNINGS may be gone.
    pub fn prepared_ahead(&mut self) {
        self.invalidate(Reads::DIAGNOSTICS);
    }

    /// Notes that it has failed, which is the error of its client's statement.
    pub fn failed_ahead(&mut self, summary: &ReplySummary) {
        self.pending.failed = true;
        self.pending.warnings = true;
        self.read_back = ReadBack::Wanted;
        self.none_kept();
        self.valid = self.valid.union(COUNTS).union(Reads::DIAGNOSTICS);
        self.conditions = 1;
        self.counted = Counted {
            state: Some(summary.state),
            ..Counted::default()
        };
    }

    /// Takes what an ended statement leaves.
    pub fn ended(&mut self, ended: &Ended<'_>) {
        let Ended {
            statement,
            summary,
            alone,
            ..
        } = *ended;
        let failed = summary.error.is_some();
        self.pending.failed = failed;
        self.pending.explanation = match failed {
            true => statement.explanation,
            false => Explanation::None,
        };
        self.pending.changed = self.pending.changed.union(changed_by(ended));
        let after = counts_after(statement, summary);
        self.count_rows(statement, summary, after);
        if failed || !statement.counts_before {
            // How many the error brought with it is known once they have been read.
            self.conditions = match failed {
                true => u16::from(!is_unlisted(statement, summary)),
                false => summary.warnings,
            };
        }
        let warned = failed || summary.warnings > 0 || (summary.warned && statement.is_several());
        if warned {
            self.note_conditions(statement, summary, alone);
        } else {
            self.note_clean(statement.area, alone);
        }
        self.count_found(ended);
        // A backend that knows nothing of the statement before does not learn it by this one.
        let own = self.is_valid_on_backend(Reads::ROW_COUNT);
        let counts = alone && (own || after == Counts::New);
        self.set_valid(COUNTS, counts);
    }

    fn set_valid(&mut self, what: Reads, valid: bool) {
        self.valid = match valid {
            true => self.valid.union(what),
            false => self.valid.without(what),
        };
    }

    fn count_rows(&mut self, statement: &Statement, summary: &ReplySummary, after: Counts) {
        let conditions = statement.conditions;
        // GET DIAGNOSTICS with a warning is one that asked for what there is not.
        let in_vain = conditions.asks() && summary.warnings > 0;
        if after == Counts::Stay && !in_vain {
            return;
        }
        let failed = summary.error.is_some();
        let may_differ = matches!(
            (conditions, summary.affected),
            (Conditions::RaisesOrAsks, Some(0)) | (Conditions::CountsLast, Some(1..))
        );
        let odd = failed || conditions == Conditions::Uncounted || in_vain;
        self.row_count = match summary.affected {
            // Where it was the same before, it does not matter whether it stays.
            _ if after == Counts::MayStay && self.row_count != RowCount::NONE => RowCount::UNKNOWN,
            Some(_) if may_differ && !odd => RowCount::UNKNOWN,
            Some(rows) if !odd => RowCount(i64::try_from(rows).unwrap_or(i64::MAX)),
            _ => RowCount::NONE,
        };
    }

    fn note_conditions(&mut self, statement: &Statement, summary: &ReplySummary, alone: bool) {
        let failed = summary.error.is_some();
        let asks = statement.conditions.asks();
        if is_unlisted(statement, summary) {
            if !alone {
                self.invalidate(Reads::DIAGNOSTICS);
            }
            return;
        }
        // MySQL's COM_INIT_DB clears none: its error comes behind them.
        let behind = failed && statement.counts_before;
        let follows = behind || asks && (!failed || summary.is_error(NO_HANDLER));
        self.pending.warnings = true;
        if follows && !self.is_valid_on_backend(Reads::DIAGNOSTICS) {
            // Its backend has them behind the conditions of another statement.
            self.lose_conditions();
            self.read_back = ReadBack::Outdated;
            return;
        }
        if statement.is_several() && summary.is_error(UNPARSED) {
            // Where its first one is GET DIAGNOSTICS, those of before are shown with it.
            self.read_back = ReadBack::Uncounted;
        }
        self.none_kept();
        self.set_valid(Reads::DIAGNOSTICS, alone);
        self.counted = Counted {
            warnings: (!failed && !follows && !statement.is_several()).then_some(summary.warnings),
            state: failed.then_some(summary.state),
            signals: matches!(
                statement.conditions,
                Conditions::Raises | Conditions::RaisesOrAsks
            ),
        };
    }

    fn note_clean(&mut self, area: Area, alone: bool) {
        let some = self.has_conditions();
        let valid = alone && self.is_valid_on_backend(Reads::DIAGNOSTICS);
        match area {
            Area::Clears => {
                self.forget_conditions();
                self.pending.warnings = false;
                self.set_valid(Reads::DIAGNOSTICS, alone);
            }
            Area::Keeps => self.set_valid(Reads::DIAGNOSTICS, valid),
            Area::Unsure | Area::Warns => {
                // Where the backend still has them, it can be asked whether it has.
                self.set_valid(Reads::DIAGNOSTICS, valid);
                self.pending.warnings = some && valid;
                if some {
                    (self.kept, self.lost) = (None, !valid);
                    self.counted = Counted::default();
                }
            }
        }
    }

    /// Notes what a finished statement did to FOUND_ROWS().
    fn count_found(&mut self, ended: &Ended<'_>) {
        let found = match (ended.statement.found, &ended.summary.error) {
            // On MariaDB one that fails has counted the rows that it had sent, and queries inside.
            (found, Some(_)) if found != Found::Keeps => Found::Unsure,
            (found, _) => found,
        };
        let valid = self.is_valid_on_backend(Reads::FOUND_ROWS);
        let (known, new) = match found {
            Found::Keeps => (self.found_rows.get(), false),
            Found::Rows => (ended.summary.affected.is_none().then_some(ended.rows), true),
            Found::Counts | Found::Calculated => (None, true),
            Found::Unsure => (None, false),
        };
        self.found_rows.set(known);
        self.set_valid(Reads::FOUND_ROWS, ended.alone && (valid || new));
    }
}

/// True if an error stands nowhere but in its packet.
fn is_unlisted(statement: &Statement, summary: &ReplySummary) -> bool {
    statement.conditions.asks() && summary.is_error(NO_HANDLER_STACKED)
}

/// Effect of a finished statement on the counts.
fn counts_after(statement: &Statement, summary: &ReplySummary) -> Counts {
    match (statement.conditions, &summary.error) {
        (Conditions::LooksUp, Some((code, _))) if NOT_THERE.contains(code) => Counts::Stay,
        (Conditions::MayCount, Some(_)) => Counts::MayStay,
        (conditions, None) if conditions.keep_counts() => Counts::Stay,
        _ => Counts::New,
    }
}

/// Conditions, counted among what is kept for the clients of a group.
fn charged(kept: Diagnostics, meter: &Meter) -> Box<Charged<Diagnostics>> {
    let bytes = size_of::<Charged<Diagnostics>>() + kept.reply.capacity();
    Box::new(Charged::new(kept, meter, bytes))
}

#[cfg(test)]
mod tests;
