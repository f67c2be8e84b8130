//! Endings: a statement's reply is complete; what has it left, and whose is the backend now?
//!
//! What the trackers reported becomes part of the session that client and backend share. What they
//! do not report is read back before the backend may serve somebody else; then the backend is kept
//! (transaction, pin) or released to the next in the queue. [`crate::pair::next`] decides it, and
//! [`Group::settle`] does it.
//!
//! Invariant: a backend is released only where [`Next::Free`] says so, or its client has gone and
//! left nothing there.

use crate::backend::{Aborted, Backend, InFlight, Reports};
use crate::client::ClientState;
use crate::group::Group;
use crate::group::backends::losses::{Loss, LossCause};
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::pair::next::Next;
use crate::pair::prepared::put_closes;
use reactor::Net;
use session::last_gtid::may_have_written;
use session::own_writes::OwnWrites;
use session::reply_summary::ReplySummary;
use session::transaction::Doubt;
use wire::errors::refuses_writes;

/// Reason why the rest of a reply does not come. Who is pipelined has no transaction, and keeps
/// nothing.
const ABORTED: Loss<'_> = Loss {
    why: "a statement that was sent behind this one had its connection closed",
    in_transaction: false,
    doubt: Doubt::None,
    served: false,
    amid_packet: true,
    cause: LossCause::Ended,
};

/// Reason why a client loses the session that it keeps on its backend.
const CHANGED: Loss<'_> = Loss {
    why: "a statement of another client that had begun there has changed the session",
    in_transaction: false,
    doubt: Doubt::None,
    served: true,
    amid_packet: false,
    cause: LossCause::Ended,
};

impl<N: Net> Group<N> {
    /// Handles the end of a client's statement, answered to its last byte.
    pub(crate) fn statement_done(
        &mut self,
        backend_id: BackendId,
        command: &InFlight,
        summary: &ReplySummary,
    ) {
        self.counts.statements += 1;
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return;
        };
        backend.note_served();
        let client = command.owner.and_then(|owner| self.clients.get(owner));
        let statement = client.map(|client| &client.statement);
        backend.note_savepoint(statement, summary.error.is_none());
        let has_prepared = client.is_some_and(|client| client.prepared.is_some());
        if has_prepared || backend.prepared.preparing.is_some() {
            self.note_prepared(backend_id, command, summary);
        }
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return;
        };
        // What a client that keeps the backend has left there is no change by a reply of nobody.
        let dirty = match backend.client() {
            Some(_) if command.owner.is_none() => !summary.changes.is_empty(),
            _ => backend.has_changed(summary),
        };
        backend.pass_on();
        let alone = backend.flight().is_empty();
        let ending = command.ending(summary, dirty, self.net.now());
        self.known_digests.learn(command.session_digest, ending);
        let Some(owner) = command
            .owner
            .filter(|owner| self.clients.get(*owner).is_some())
        else {
            return self.statement_of_nobody(backend_id, summary, dirty);
        };
        self.note_service(owner, backend_id, command, summary);
        if !alone && dirty {
            self.abort_followers(backend_id, Some(owner));
        }
        let Some(mut pair) = self.pair(owner, backend_id) else {
            return;
        };
        let explanation = pair.client.explanation().with_due(summary.due);
        let noted = pair.note_statement(summary, explanation);
        if let Some(open) = pair.backend.see_transaction(command.sent) {
            open.statements = open.statements.saturating_add(1);
        }
        if let Err(why) = noted {
            // The client has had its answer, and its session is on the backend alone: it is closed
            // without another word.
            let _ = pair
                .client
                .change_state(ClientState::Idle, pair.context.now);
            self.clients.close_later(owner);
            return self.lose(backend_id, why);
        }
        pair.note_left(command, summary, alone);
        if !alone && !dirty {
            // Others rode behind: the backend is theirs, and the words of a warning are gone.
            pair.client.last.leave_to_followers();
            self.clients.unbind(owner, &mut self.backends);
        }
        let now = self.net.now();
        if !self.clients.enter(owner, ClientState::Idle, now) {
            return;
        }
        // What it sends next may be here already.
        if self.shared.schemas_defined.count() != self.schemas_seen {
            self.take_schemas();
        }
        self.settle(backend_id);
        if !self.waiting_count.is_empty() {
            self.tasks.add(Task::Pipeline(backend_id));
        }
        (self.drain).close(owner, &mut self.clients, &self.departures, now);
        self.tasks.add(Task::Read(owner));
    }

    /// Notes what a statement has done to the backend's prepared statements.
    fn note_prepared(&mut self, backend_id: BackendId, command: &InFlight, summary: &ReplySummary) {
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return;
        };
        let (preparing, mut closed) = backend
            .take_prepared(summary, &mut self.definitions)
            .unzip();
        let pair = command.owner.and_then(|owner| self.pair(owner, backend_id));
        let left = pair.and_then(|mut pair| pair.note_prepared(preparing, summary));
        closed.get_or_insert_default().extend(left);
        if let Some(ids) = closed.filter(|ids| !ids.is_empty()) {
            let mut out = Vec::new();
            put_closes(&mut out, &ids);
            self.backend_writer().send(backend_id, &out);
        }
    }

    /// Measures how long a statement of a client took, and counts how it ended.
    fn note_service(
        &mut self,
        owner: ClientId,
        backend: BackendId,
        command: &InFlight,
        summary: &ReplySummary,
    ) {
        let Some(client) = self.clients.get(owner) else {
            return;
        };
        let service = self.net.now().since(command.sent);
        let failed = summary.error.is_some();
        let (place, pool) = (
            client.figures_place(&self.backend_pools),
            client.pool as usize,
        );
        let statement = client.statement;
        self.figures.answered(place, service, failed);
        let rows = command.reply.reply().rows();
        let digest = client.statement.digest;
        self.figures.digests.answered(digest, service, failed, rows);
        self.slow_readers.statement_ended(backend, digest, owner);
        if let Some((number, words)) = &summary.error {
            self.shared.errors.count(*number);
            if let Some(cluster) = &self.shared.cluster
                && !self.backend_pools.is_reader(pool)
            {
                cluster.failed_on_writer(*number, words);
            }
            if refuses_writes(*number) {
                if !self.backend_pools.is_reader(pool) {
                    self.shared.doubt_writer();
                }
            } else if may_have_written(&statement, *number) {
                self.readers().doubt_writes(owner, OwnWrites::doubt);
            }
        }
        self.shared
            .count_read(&self.backend_pools.pools[pool].key, false);
        if self.statement_logs.has_notes() {
            self.logs().ended(owner, command, service, summary);
        }
    }

    /// Aborts the statements pipelined behind one that has changed their session, or whose backend
    /// is closed: what they would be answered may be wrong, or nothing. The answers are dropped,
    /// and their statements, plain reads of which they have seen nothing, run again in order, each
    /// of them with nobody beside it. The backend is `owner`'s, who is none of them. Where it is
    /// nobody's, a client that kept something on the backend has lost it.
    pub(crate) fn abort_followers(&mut self, backend_id: BackendId, owner: Option<ClientId>) {
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return;
        };
        backend.close_pipeline();
        if owner.is_some() {
            // What their statements do to the session, which was not theirs, is not known.
            backend.reuse.end_with_client();
        }
        let changed = Loss {
            in_transaction: backend.in_transaction(),
            doubt: backend.transaction.doubt(),
            ..CHANGED
        };
        let keeper = backend.client().filter(|_| owner.is_none());
        let followers = backend.abort_followers(owner);
        let keeper =
            keeper.filter(|keeper| followers.iter().all(|(follower, _)| follower != keeper));
        let now = self.net.now();
        backend.note_left(now);
        backend.binding.hand_over(owner);
        for (follower, aborted) in followers {
            match aborted {
                Aborted::RunsAgain(command) => self.run_again(follower, &command),
                Aborted::HasBegun => self.backend_lost(follower, ABORTED),
                Aborted::OwnsSession => self.backend_lost(follower, changed),
            }
        }
        let Some((key, client)) = keeper.and_then(|key| Some((key, self.clients.get(key)?))) else {
            return;
        };
        // Who keeps nothing there goes on without it.
        let is_idle = client.state() == ClientState::Idle;
        if is_idle && !client.loses_with_backend(changed.in_transaction) {
            self.clients.unbind(key, &mut self.backends);
        } else {
            self.backend_lost(key, changed);
        }
    }

    /// Runs a statement of a client once more, as if it had come just now.
    pub(crate) fn run_again(&mut self, key: ClientId, command: &[u8]) {
        self.clients.unbind(key, &mut self.backends);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        client.run_apart();
        client.put_back(command);
        self.counts.pipelined_again += 1;
        self.return_to_idle(key);
    }

    /// Checks in, or closes, the backend of a statement whose client left while it ran.
    fn statement_of_nobody(&mut self, backend_id: BackendId, summary: &ReplySummary, dirty: bool) {
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return;
        };
        if dirty {
            self.abort_followers(backend_id, None);
            return self.closer().retire(backend_id);
        }
        if !backend.flight().is_empty() {
            return self.tasks.add(Task::Pipeline(backend_id));
        }
        let owner = backend.client();
        if owner.is_some_and(|owner| self.clients.get(owner).is_some()) {
            return self.tasks.add(Task::Settle(backend_id));
        }
        let unknown = summary.error.is_some() || summary.warned || !summary.changes.is_empty();
        let due = backend.reports != Reports::Complete;
        if unknown || due || backend.in_transaction() {
            return self.closer().retire(backend_id);
        }
        backend.forget_insert_id();
        self.release(backend_id);
    }

    /// Decides what becomes of the backend, if nothing is in flight.
    pub(crate) fn settle(&mut self, backend: BackendId) {
        let owner = self.backends.get(backend).and_then(Backend::client);
        if let Some(owner) = owner
            && let Some(mut pair) = self.pair(owner, backend)
        {
            let next = pair.next();
            self.follow(owner, backend, next);
        }
    }

    /// Takes the next step with a client's backend.
    pub(crate) fn follow(&mut self, owner: ClientId, backend: BackendId, next: Next) {
        match next {
            Next::Wait => {}
            Next::Keep => {
                let kept = self.backends.get_mut(backend);
                match kept.and_then(|kept| kept.keep(&self.backend_pools, true)) {
                    None => self.resume(backend),
                    // Its text did not tell that it would keep the backend.
                    Some(refusal) => self.part_with_backend(backend, owner, &refusal),
                }
            }
            Next::Ask(out) => self.backend_writer().ask(backend, &out),
            Next::GoOn => {
                // What was read back for the sake of its execution is there.
                let client = self.clients.get_mut(owner);
                if client.is_some_and(|client| client.mark_read_back(false)) {
                    self.return_to_idle(owner);
                }
                self.tasks.add(Task::Settle(backend));
            }
            Next::Free => self.release(backend),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BackendState, Purpose};
    use crate::errors::reasons::PinReason;
    use crate::group::scripted::Scripted;
    use crate::group::tests::{NOW, bound, group};
    use wire::command::ReplyShape;

    /// A pinned client between two statements. In front of what it sends next, two replies are to
    /// come that nobody waits for: who rode behind its last statement runs again elsewhere.
    fn pinned_behind_replies_of_nobody() -> (Group<Scripted>, ClientId, BackendId) {
        let mut group = group();
        let (key, backend_id) = bound(&mut group);
        let client = group.clients.get_mut(key).unwrap();
        client.pins.add(PinReason::PreparedSchema, None, NOW.0);
        let backend = group.backends.get_mut(backend_id).unwrap();
        for _ in 0..2 {
            let command = InFlight::own(None, Purpose::Statement, ReplyShape::Results);
            backend.expect(command);
        }
        backend.note_left(NOW);
        (group, key, backend_id)
    }

    /// Takes the oldest reply of a backend as complete.
    fn answered(group: &mut Group<Scripted>, backend_id: BackendId, summary: &ReplySummary) {
        let backend = group.backends.get_mut(backend_id).unwrap();
        let command = backend.take_answered().unwrap();
        group.statement_done(backend_id, &command, summary);
    }

    #[test]
    fn a_backend_stays_its_clients_behind_replies_of_nobody() {
        let (mut group, key, backend_id) = pinned_behind_replies_of_nobody();
        for _ in 0..2 {
            answered(&mut group, backend_id, &ReplySummary::default());
            let backend = group.backends.get(backend_id).unwrap();
            assert_eq!(backend.client(), Some(key));
            assert_eq!(backend.state(), BackendState::CheckedOut);
            assert_eq!(group.clients.get(key).unwrap().backend(), Some(backend_id));
        }
    }

    #[test]
    fn who_keeps_a_session_that_a_reply_of_nobody_has_changed_is_closed() {
        // The first of the replies, and the last.
        for before in [0, 1] {
            let (mut group, key, backend) = pinned_behind_replies_of_nobody();
            for _ in 0..before {
                answered(&mut group, backend, &ReplySummary::default());
            }
            let changed = ReplySummary {
                changes: vec![0, 1, 0],
                ..ReplySummary::default()
            };
            answered(&mut group, backend, &changed);
            assert!(group.backends.get(backend).is_none());
            assert!(
                group
                    .clients
                    .get(key)
                    .is_none_or(|client| client.is_closing())
            );
        }
    }

    #[test]
    fn who_keeps_nothing_goes_on_without_a_backend_that_a_reply_of_nobody_has_changed() {
        let (mut group, key, backend) = pinned_behind_replies_of_nobody();
        group.clients.get_mut(key).unwrap().pins = Default::default();
        group.abort_followers(backend, None);
        group.closer().retire(backend);
        let client = group.clients.get(key).unwrap();
        assert_eq!((client.is_closing(), client.backend()), (false, None));
    }

    #[test]
    fn a_backend_where_followers_were_aborted_serves_its_client_and_nobody_else() {
        let (mut group, key, backend) = pinned_behind_replies_of_nobody();
        group.abort_followers(backend, Some(key));
        let reuse = group.backends.get(backend).unwrap().reuse;
        assert!(!reuse.is_for_others() && !reuse.is_frozen());
    }

    #[test]
    fn conditions_of_a_reply_of_nobody_are_no_clients() {
        let (mut group, key, backend_id) = pinned_behind_replies_of_nobody();
        let backend = group.backends.get_mut(backend_id).unwrap();
        let command = backend.take_answered().unwrap();
        let warned = ReplySummary {
            warned: true,
            ..ReplySummary::default()
        };
        backend.note_conditions_left(&command, &warned, None);
        assert!(backend.conditions_of.is_some_and(|of| of != key));
    }

    #[test]
    fn the_session_of_who_owns_it_is_lost_with_its_transaction() {
        let (mut group, key, backend_id) = pinned_behind_replies_of_nobody();
        group.clients.get_mut(key).unwrap().pins = Default::default();
        let backend = group.backends.get_mut(backend_id).unwrap();
        backend.transaction.note_begin_sent();
        let client = group.clients.get_mut(key).unwrap();
        assert!(client.change_state(ClientState::Running, NOW));
        let statement = InFlight::own(Some(key), Purpose::Statement, ReplyShape::Results);
        group
            .backends
            .get_mut(backend_id)
            .unwrap()
            .expect(statement);
        group.abort_followers(backend_id, None);
        let client = group.clients.get(key);
        assert!(client.is_none_or(|client| client.state() == ClientState::Leaving));
    }

    #[test]
    fn whose_session_nobody_knows_behind_its_answer_is_closed_without_another_word() {
        let mut group = group();
        let (key, backend) = bound(&mut group);
        let client = group.clients.get_mut(key).unwrap();
        assert!(client.change_state(ClientState::Running, NOW));
        let command = InFlight::own(Some(key), Purpose::Statement, ReplyShape::Status);
        let cut_short = ReplySummary {
            changes: vec![0, 9],
            ..ReplySummary::default()
        };
        group.statement_done(backend, &command, &cut_short);
        assert!(group.backends.get(backend).is_none());
        assert!(group.clients.get(key).unwrap().is_closing());
        assert_eq!(
            group.net.written, b"\x01\0\0\0\x01",
            "the backend's COM_QUIT"
        );
    }
}
