//! Endings: a statement's reply is complete; what has it left, and whose is the backend now?
//!
//! What the trackers reported becomes part of the session that client and backend share. What they
//! do not report is read back before the backend may serve somebody else: warnings,
//! FOUND_ROWS(), LAST_INSERT_ID() and the collation ([`Group::settle`]). Then the lease is kept
//! (transaction, pin) or released to the next in the lane.
//!
//! Invariant: a backend is released only with nothing in flight, nothing owed, no transaction open
//! or announced, and a client that is not pinned.

use crate::backend::{Backend, BackendState, InFlight, Reports, Riding};
use crate::client::{Client, ClientState, Company};
use crate::errors::reasons::PinReason;
use crate::group::Group;
use crate::pair::Pair;
use crate::pair::prepared::put_closes;
use reactor::{Key, Net};
use session::diagnostics::Diagnostics;
use session::last_statement::COUNTS;
use session::read_back::Properties;
use session::reply_summary::ReplySummary;
use session::standing::Standing;
use session::statement::{Code, Explanation, Owed, Trace};
use sql::classify::Reads;

/// A row of SHOW WARNINGS, from its first byte: MariaDB's trace of stored code that failed.
const TRACE: &[u8] = b"\x04Note\x044094";
/// A text that the server could not read: nothing of it has run.
const UNPARSED: u16 = 1064;

/// Whether a statement that failed or warned on MariaDB may have left its trace among the warnings.
fn trace_of<S>(client: &Client<S>, summary: &ReplySummary) -> Trace {
    match client.statement.code {
        // One that was left before, in the same transaction, is still to be asked.
        _ if client.last.owed.trace.is_asked() => client.last.owed.trace,
        Code::Known => Trace::Known,
        _ if summary.error.is_some() && !summary.is_error(UNPARSED) => Trace::Asked(0),
        _ => Trace::Unasked,
    }
}

/// Why the rest of a reply does not come.
const PARTED: &str = "a statement that was sent behind this one had its connection closed";

impl<S> Client<S> {
    /// What its texts say of that which the answer to its statement reports: what the statement
    /// before it changed before it failed, MySQL reports here too.
    fn explanation(&self) -> Explanation {
        match (self.statement.explanation, self.last.owed.explanation) {
            (Explanation::None, Explanation::Lasting) => Explanation::Lasting,
            (own, _) => own,
        }
    }
}

impl<N: Net> Group<N> {
    /// A client's statement is answered to its last byte.
    pub(crate) fn statement_done(&mut self, key: Key, command: &InFlight, summary: &ReplySummary) {
        self.counts.statements += 1;
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        backend.served = true;
        let preparing = backend.take_prepared(summary, &mut self.definitions);
        let pair = command.owner.and_then(|owner| self.pair(owner, key));
        let closed = pair.and_then(|mut pair| pair.note_prepared(preparing, summary));
        if let Some(id) = closed {
            let mut out = Vec::new();
            put_closes(&mut out, &[id]);
            self.backend_writer().send(key, &out);
        }
        let owner = command.owner.and_then(|owner| self.clients.get(owner));
        if let Some(backend) = self.backends.get_mut(key) {
            let statement = owner.map(|client| &client.statement);
            backend.note_savepoint(statement, summary.error.is_none());
        }
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        let contaminated = backend.has_changed(summary);
        let ending = backend.ending(command, summary, self.net.now());
        self.shapes.learn(command.shape, ending);
        backend.pass_lease_on();
        let Some(owner) = command
            .owner
            .filter(|owner| self.clients.get(*owner).is_some())
        else {
            return self.statement_of_nobody(key, summary, contaminated);
        };
        self.note_service(owner, command, summary);
        let alone = self
            .backends
            .get(key)
            .is_some_and(|backend| backend.flight().is_empty());
        if !alone && contaminated {
            self.part_riders(key, Some(owner));
        }
        let explanation = self.clients.get(owner).map(Client::explanation);
        let explanation = explanation.unwrap_or_default().with_due(summary.due);
        self.note_changes(key, owner, summary, explanation);
        if let Some(mut pair) = self.pair(owner, key) {
            pair.note_retracked(summary.error.is_none());
        }
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        client.company = Company::Any;
        client.note_result(summary);
        if let Some((code, _)) = &summary.error {
            session::last_gtid::doubt(&mut self.gtids, owner, *code);
        }
        let mysql = self.shared.server.flavour.is_mysql();
        let found_before = client.last.found_rows.get();
        let statement = client.statement;
        let rows = command.reply.rows();
        let kept = (client.last).ended(&statement, summary, rows, (alone, mysql));
        if let Some(backend) = self.backends.get_mut(key) {
            if !kept {
                let unsure = client.last.is_found_unsure(alone);
                backend.unsettled = backend.found.zip(found_before).filter(|_| unsure);
                let asked = client.last.owed.changed.intersects(Properties::FOUND_ROWS);
                if backend.unsettled.is_some() && !asked {
                    client.last.found_rows.unsettle();
                }
            }
            backend.found = match client.last.is_native(Reads::FOUND_ROWS) {
                true => client.last.found_rows.get(),
                false => backend.found.filter(|_| kept),
            };
        }
        if !mysql && (summary.error.is_some() || summary.warnings > 0) {
            client.last.owed.trace = trace_of(client, summary);
        }
        // What is to follow would begin with COM_SET_OPTION, which sets the counts itself.
        let multi = client.session.multi_statements;
        let stays = |b: &Backend<N::Sock>| b.session.multi_statements == multi;
        if !self.backends.get(key).is_some_and(stays) {
            client.last.disown(COUNTS);
        }
        // COM_INIT_DB is sent in whatever schema the backend is; where it fails, the session's own
        // is to be set in front of what follows.
        let (failed, own) = (summary.error.is_some(), &client.session.schema);
        let strays = |b: &Backend<N::Sock>| b.session.schema != *own;
        let moves = statement.standing == Standing::NewSchema;
        if failed && moves && self.backends.get(key).is_some_and(strays) {
            client.last.disown(COUNTS.union(Reads::DIAGNOSTICS));
        }
        if !alone && !contaminated {
            // Others rode behind: the backend is theirs, and the words of a warning are gone.
            client.last.leave_to_riders();
            self.clients.unbind(owner, &mut self.backends);
        }
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        if !client.change_state(ClientState::Idle, now) {
            return self.clients.close_later(owner);
        }
        self.settle(key);
        self.take_riders(key);
        if self.draining.is_some() {
            (self.clients).leave_if_idle(owner, self.departures.has(owner));
        }
        self.pump(owner);
    }

    /// Measures how long a statement of a client took, and counts how it ended.
    fn note_service(&mut self, owner: Key, command: &InFlight, summary: &ReplySummary) {
        let Some(client) = self.clients.get(owner) else {
            return;
        };
        let service = self.net.now().since(command.sent);
        let failed = summary.error.is_some();
        self.figures.answered(client.user, service, failed);
        let rows = command.reply.rows();
        (self.figures.digests).answered(client.statement.digest, service, failed, rows);
        if let Some((number, _)) = &summary.error {
            self.shared.errors.count(*number);
        }
        self.logs().ended(owner, command, service, summary);
    }

    /// The statement that others rode behind has changed their session, or its backend is closed:
    /// what they would be answered may be wrong, or nothing. The answers are dropped, and their
    /// statements, plain reads of which they have seen nothing, run again in order, each of them
    /// with nobody beside it. The lease is `owner`'s, who is none of them.
    pub(crate) fn part_riders(&mut self, key: Key, owner: Option<Key>) {
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        backend.riding = Riding::Closed;
        let riders = backend.part_riders(owner);
        let now = self.net.now();
        backend.note_left(now);
        backend.binding.hand_over(owner);
        for (rider, command) in riders {
            match command {
                Some(command) => self.run_again(rider, &command),
                // Its reply has begun, and comes to no end.
                None => self.backend_lost(rider, (false, false), false, PARTED),
            }
        }
    }

    /// Runs a statement of a client once more, as if it had come just now.
    fn run_again(&mut self, key: Key, command: &[u8]) {
        self.clients.unbind(key, &mut self.backends);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        client.company = Company::RunsAgain;
        client.put_back(command);
        self.counts.ridden_again += 1;
        self.return_to_idle(key);
    }

    /// The client left while its statement ran.
    fn statement_of_nobody(&mut self, key: Key, summary: &ReplySummary, contaminated: bool) {
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        if !backend.flight().is_empty() {
            if contaminated {
                self.part_riders(key, None);
                return self.retire(key);
            }
            return self.take_riders(key);
        }
        if backend
            .lease()
            .is_some_and(|owner| self.clients.get(owner).is_some())
        {
            return self.settle(key);
        }
        let unknown = summary.error.is_some() || summary.warned || !summary.changes.is_empty();
        let due = backend.reports != Reports::Complete;
        if unknown || due || backend.in_transaction() {
            return self.retire(key);
        }
        backend.insert_id = None;
        self.release(key);
    }

    /// Applies what the trackers reported to the session that client and backend share.
    pub(crate) fn note_changes(
        &mut self,
        key: Key,
        owner: Key,
        summary: &ReplySummary,
        explanation: Explanation,
    ) {
        if summary.changes.is_empty() {
            return;
        }
        let pair = self.pair(owner, key);
        if let Some(Err(why)) = pair.map(|mut pair| pair.note_changes(summary, explanation)) {
            self.lose(key, why);
        }
    }

    /// The answer to our SHOW WARNINGS, which follows each statement that failed or warned.
    ///
    /// An ERR packet carries no trackers. MySQL keeps what the statement changed before it failed
    /// for the next OK, which is this one. MariaDB forgets it; but where stored code failed, which
    /// alone can change something and fail, it leaves its trace among the warnings, unless the
    /// session keeps no notes or has no room for one: that is asked then ([`Group::read_back`]).
    pub(crate) fn warnings_read(
        &mut self,
        key: Key,
        owner: Option<Key>,
        summary: &ReplySummary,
        collected: Vec<u8>,
    ) {
        if let Some(owner) = owner {
            let owed = (self.clients.get(owner)).map(|client| client.last.owed.explanation);
            let explanation = owed.unwrap_or_default().with_due(summary.due);
            self.note_changes(key, owner, summary, explanation);
            if let Some(mut pair) = self.pair(owner, key) {
                let told = pair.tell_later(summary);
                pair.note_rolled_back();
                if let Err(why) = told {
                    self.lose(key, why);
                }
            }
            let known = self
                .clients
                .get(owner)
                .is_some_and(|c| c.last.owed.trace == Trace::Known);
            if !known && collected.windows(TRACE.len()).any(|part| part == TRACE) {
                self.pin(owner, PinReason::FailedCode);
            }
        }
        if let Some(client) = owner.and_then(|owner| self.clients.get_mut(owner)) {
            client.keep_warnings(summary, collected, &self.shared.server, &self.kept.warnings);
        }
        if let Some(client) = owner.and_then(|owner| self.clients.get_mut(owner))
            && client.last.owed.trace.is_asked()
        {
            let kept = client.last.kept().map_or(0, Diagnostics::conditions);
            client.last.owed.trace = Trace::Asked(u8::try_from(kept).unwrap_or(u8::MAX));
        }
        self.settle(key);
    }

    /// Nothing is in flight: decides what becomes of the lease.
    pub(crate) fn settle(&mut self, key: Key) {
        let Some(backend) = self.backends.get(key) else {
            return;
        };
        if backend.state() != BackendState::Leased || !backend.flight().is_empty() {
            return;
        }
        let Some(owner) = backend.lease() else { return };
        let reports = backend.owes_report(self.shared.server.flavour.is_mysql());
        let (Some(backend), Some(client)) = (self.backends.get(key), self.clients.get_mut(owner))
        else {
            return;
        };
        use ClientState::{Asking, Idle, Waiting};
        let rests = matches!(client.state(), Idle | Waiting | Asking);
        if !rests || backend.reuse.is_frozen() {
            return;
        }
        let untracked = client.touched.as_ref().is_some_and(|t| t.is_untracked());
        let asks = client.may_have_ended();
        let owed = client.last.owed;
        let found = Properties::FOUND_ROWS;
        if owed.changed.intersects(found) && !backend.transaction.is_announced() {
            return self.read_back(key, owner, found);
        }
        if client.is_held() && !asks && !untracked {
            return self.resume(key);
        }
        let in_transaction = backend.in_transaction();
        // After an error the status is unknown; the reply to SHOW WARNINGS tells it. In a
        // transaction the backend answers for itself, unless it has only the last condition.
        let partly = !client.last.is_native(Reads::DIAGNOSTICS);
        if owed.warnings && (!in_transaction || owed.failed || untracked || partly) {
            return self.ask(key, owner, |pair| pair.ask_for_conditions());
        }
        if untracked {
            return self.ask(key, owner, |pair| pair.retell());
        }
        if in_transaction && !reports {
            return self.resume(key);
        }
        // Any other question has rows of its own, and clears conditions on MySQL.
        let changed = client.changed_properties();
        let asks = asks || reports || client.touched.is_some() || !changed.is_empty();
        let server = self.shared.server.flavour;
        if asks && client.last.questions(server).has_conditions() && self.ask_for(key, owner) {
            return;
        }
        let counts = (self.clients.get(owner)).is_some_and(|client| client.last.counts_unread());
        if reports && counts {
            return self.read_back(key, owner, Properties::FOUND_ROWS);
        }
        if reports {
            return self.ask(key, owner, |pair| pair.ask_for_report());
        }
        if !changed.is_empty() {
            return self.read_back(key, owner, changed);
        }
        if let Some(client) = self.clients.get_mut(owner) {
            client.touched = None;
            client.last.owed = Owed::default();
        }
        self.release(key);
    }

    /// Has a client's backend answer what the two of them write.
    pub(crate) fn ask(
        &mut self,
        lease: Key,
        owner: Key,
        put: impl FnOnce(&mut Pair<'_, N::Sock>) -> Vec<u8>,
    ) {
        if let Some(mut pair) = self.pair(owner, lease) {
            let out = put(&mut pair);
            self.backend_writer().ask(lease, &out);
        }
    }
}
