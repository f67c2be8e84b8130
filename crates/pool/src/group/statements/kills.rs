//! KILL: how one is carried out.
//!
//! Its victim is found by [`crate::statements::kill::meaning`]. The victim's group is in its id;
//! another group is asked by a message and answers by a message. There, a statement that was not
//! sent is answered by the pool; one that runs alone on its backend is ended by a KILL that another
//! connection carries to the server (`connection.rs`); one that others are pipelined with is
//! answered at once, and its reply dropped when it comes ([`crate::statements::kill::fate`]). A
//! connection is ended by closing it.
//!
//! Invariants: an id belongs to one client at a time; whoever says KILL is answered, by a time
//! limit at the latest.

use crate::backend::Backend;
use crate::client::{ClientState, Handled};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::group::shared::Order;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId, KillConnectionId};
use crate::observe::audit::end;
use crate::statements::kill::connection::{Around, Ended, KillConnection};
use crate::statements::kill::fate::Fate;
use crate::statements::kill::jobs::{Asker, KillAsk, KillEnd};
use crate::statements::kill::meaning::{Killer, Meant};
use reactor::{Event, Net};
use session::statement::Statement;
use sql::kill::Kill;
use std::time::Duration;
use wire::command::{Command, ReplyShape};
use wire::errors;
use wire::packet::HEADER_LEN;

/// A KILL that nobody has answered after the time for a dial and this is answered with an error.
const ANSWER_MAX: Duration = Duration::from_secs(2);

impl<N: Net> Group<N> {
    /// Handles a client's KILL; `None`: in words that cannot be read for certain.
    pub(crate) fn on_kill(&mut self, key: ClientId, message: &[u8], kill: Option<Kill>) -> Handled {
        let Some(kill) = kill else {
            return self.answers().refuse_counted(key, &Refusal::Kill);
        };
        if self.awaits_answers(key) {
            return self.waiters().wait_outside(key);
        }
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let killer = Killer {
            asker: Asker {
                group: self.index,
                killer: key,
            },
            id: client.id(),
            user: &self.backend_pools.pools[client.pool as usize].key.user,
        };
        let (group, ask) = match killer.means(kill, &self.shared) {
            Meant::Client { group, ask } => (group, ask),
            Meant::Itself => return self.kill_self(key, message, kill.query),
            Meant::Backend => return self.answers().refuse_counted(key, &Refusal::KillBackend),
            Meant::Elsewhere => {
                let reply = match message.get(HEADER_LEN) == Some(&Command::Query.byte()) {
                    true => ReplyShape::Results,
                    false => ReplyShape::Status,
                };
                return self.start(key, message, Statement::plain(reply));
            }
        };
        let end = if group == self.index {
            self.kill_anywhere(&ask)
        } else {
            self.turn_output.send(group, Order::Kill(Box::new(ask)));
            None
        };
        match end {
            Some(end) => self.answers().killed(key, &end),
            None => {
                let now = self.net.now();
                self.clients.enter(key, ClientState::Asking, now);
            }
        }
        Handled::Used
    }

    /// Answers a client that ends itself: for its own connection it gets the error that its server
    /// would give, for its own statement it hears it from the server, as any error: it is asked
    /// about by the next statement.
    fn kill_self(&mut self, key: ClientId, message: &[u8], query: bool) -> Handled {
        if query {
            let Some(client) = self.clients.get(key) else {
                return Handled::Used;
            };
            let text = client.reworded(message, b"KILL QUERY CONNECTION_ID()");
            return self.start(key, &text, Statement::plain(ReplyShape::Status));
        }
        if self.shared.server.flavour.is_mysql() {
            self.answers().refuse(key, &Refusal::Interrupted);
        } else {
            self.answers()
                .error(key, errors::CONNECTION_KILLED, "Connection was killed");
        }
        self.clients.note_end(key, end::KILLED);
        self.leave(key);
        Handled::Used
    }

    /// Tells whoever asked what became of it; the pool itself does not ask.
    pub(crate) fn answer_asker(&mut self, asker: Option<Asker>, end: KillEnd) {
        let Some(asker) = asker else { return };
        let fleet = self.shared.fleet.as_ref();
        if fleet.is_some_and(|fleet| fleet.answers(asker, &end)) {
            return;
        }
        if asker.group == self.index {
            self.kill_ends(asker.killer, &end);
        } else {
            let message = Order::Killed(asker.killer, end);
            self.turn_output.send(asker.group, message);
        }
    }

    /// Answers this group's client that waits for a KILL that has come to its end.
    pub(crate) fn kill_ends(&mut self, killer: ClientId, end: &KillEnd) {
        let now = self.net.now();
        let client = self.clients.get(killer);
        if client.is_some_and(|client| client.state() == ClientState::Asking)
            && self.clients.enter(killer, ClientState::Idle, now)
        {
            self.answers().killed(killer, end);
            self.tasks.add(Task::Read(killer));
            (self.drain).close(killer, &mut self.clients, &self.departures, now);
        }
    }

    /// Ends a client of this group, or looks for it in the other pools of the fleet. `None`: the
    /// end comes later.
    pub(crate) fn kill_anywhere(&mut self, ask: &KillAsk) -> Option<KillEnd> {
        let end = self.kill(ask);
        let fleet = self.shared.fleet.as_ref();
        let is_unknown = matches!(end, Some(KillEnd::Unknown(_)));
        match fleet.filter(|fleet| is_unknown && fleet.pass_on(ask)) {
            Some(_) => None,
            None => end,
        }
    }

    /// Ends a client of this group, or its statement. `None`: the server must be asked first.
    pub(crate) fn kill(&mut self, ask: &KillAsk) -> Option<KillEnd> {
        let fate = ask.fate(&self.clients, &self.backends, &self.backend_pools);
        let victim = self.clients.with_id(ask.id);
        let identity = victim.and_then(|victim| self.survey().identity(victim));
        if let Some(identity) = identity.filter(|_| !matches!(fate, Fate::Ended(_))) {
            (self.log).killed(self.net.now(), &identity, ask.query, &ask.said_by());
        }
        let end = match ask.is_of_administrator() {
            false => end::KILLED,
            true => end::KILLED_AT_CONSOLE,
        };
        match fate {
            Fate::Ended(end) => return Some(end),
            Fate::GiveUp(victim) => self.give_up(victim, &Refusal::Interrupted),
            Fate::Instead(victim) => {
                if let Some(client) = self.clients.get_mut(victim) {
                    client.interrupt();
                }
            }
            Fate::LeavePipeline {
                victim,
                backend: backend_id,
            } => {
                let now = self.net.now();
                let backend = self.backends.get_mut(backend_id);
                if backend.is_some_and(|backend| backend.leave_to_followers(victim, now)) {
                    self.clients.unbind(victim, &mut self.backends);
                    self.answers().refuse(victim, &Refusal::Interrupted);
                    self.return_to_idle(victim);
                }
            }
            Fate::Close(victim) => self.clients.close_for(victim, end),
            Fate::Interrupt {
                backend: backend_id,
                job,
            } => {
                if let Some(backend) = self.backends.get_mut(backend_id) {
                    backend.close_pipeline();
                }
                self.kill_connection.push(job);
                return None;
            }
            Fate::CloseWith {
                victim,
                backend: backend_id,
                job,
            } => {
                self.clients.close_for(victim, end);
                self.clients.unbind(victim, &mut self.backends);
                self.closer().retire(backend_id);
                self.kill_connection.push(job);
                return None;
            }
        }
        Some(KillEnd::Done)
    }

    /// The KILLs that go to the server, and what they need.
    fn kills(&mut self) -> (&mut KillConnection<N::Sock>, Around<'_, N>) {
        let around = Around {
            net: &mut self.net,
            shared: &self.shared,
            settings: &self.settings,
            pools: &self.backend_pools,
            backends: &mut self.backends,
        };
        (&mut self.kill_connection, around)
    }

    /// Begins the next KILL, if none is under way. At the end of a turn, when no client's
    /// commands are being handled: it may answer one.
    pub(crate) fn next_kill(&mut self) {
        while let (kills, mut around) = self.kills()
            && let Some(ended) = kills.go_on(&mut around)
        {
            self.kill_carried(ended);
        }
    }

    /// Handles an event of the socket of the connection that carries a KILL.
    pub(crate) fn on_kill_connection(&mut self, key: KillConnectionId, event: Event) {
        let (kills, mut around) = self.kills();
        let mut ended = kills.on_event(&mut around, key, event);
        while let Some(one) = ended {
            self.kill_carried(one);
            let (kills, mut around) = self.kills();
            ended = kills
                .go_on(&mut around)
                .or_else(|| kills.read(&mut around, key));
        }
    }

    /// Ends a KILL that was answered, or never will be: the backend goes on, and the asker gets the
    /// outcome.
    fn kill_carried(&mut self, ended: Ended) {
        let backend_id = ended.job.aim.map(|aim| aim.backend);
        if let Some(backend_id) = backend_id
            && let Some(backend) = self.backends.get_mut(backend_id)
        {
            backend.reuse.thaw(ended.spoils);
            self.settle(backend_id);
            self.resume(backend_id);
        }
        self.answer_asker(ended.job.asker, ended.end);
    }

    /// Resumes a client that has waited for its own backend, and keeps it.
    pub(crate) fn resume(&mut self, backend_id: BackendId) {
        let backend = self.backends.get(backend_id);
        let backend = backend.filter(|backend| backend.flight().is_empty());
        if let Some(owner) = backend.and_then(Backend::client)
            && let Some(client) = self.clients.get(owner)
            && client.state() == ClientState::Waiting
            && !client.place.is_in_queue()
        {
            self.return_to_idle(owner);
        }
    }

    /// KILLs that nobody has answered in time.
    pub(crate) fn drop_late_kills(&mut self) {
        let (now, longest) = (self.net.now(), self.settings.dial_max);
        if let Some(ended) = self.kill_connection.drop_late(now, longest) {
            self.kill_carried(ended);
            self.next_kill();
        }
        let late = |client: &crate::client::Client<N::Sock>| {
            client.state() == ClientState::Asking
                && now.since(client.since()) > longest + ANSWER_MAX
        };
        for key in self.clients.keys_of(late) {
            let why = format!("no answer within {} ms", (longest + ANSWER_MAX).as_millis());
            self.kill_ends(key, &KillEnd::Failed(why));
        }
    }
}
