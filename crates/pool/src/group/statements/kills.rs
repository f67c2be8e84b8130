//! KILL, and the ids that clients know themselves by.
//!
//! The problem: a client's CONNECTION_ID() is the number in our greeting, which means nothing to
//! the server; the server's number of the backend that runs its statement means another client a
//! moment later. The mechanism: a KILL is read here ([`sql::kill`]) and looked up. The victim's
//! group is in its id; another group is asked by a message and answers by a message. There, a
//! statement that was not sent is answered by the pool; one that runs alone on its backend is ended
//! by a KILL that another connection carries to the server (`kill_connection.rs`); one that others
//! ride with is answered at once, and its reply dropped when it comes. A connection is ended by
//! closing it.
//!
//! Ids begin above [`FIRST_ID`], where no server's numbers are found in practice, so that a number
//! read from SHOW PROCESSLIST never means a client. Such a KILL goes to the server as it is, unless
//! it names a backend of the pool.
//!
//! Invariants: an id belongs to one client at a time; who has not said a KILL's number is not hit
//! by it; whoever says KILL is answered, by a time limit at the latest.

use crate::backend::kill_jobs::{Asker, KillAsk, KillEnd};
use crate::backend::{Backend, Purpose, Riding};
use crate::client::clients::FIRST_ID;
use crate::client::{ClientState, Handled};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::kill_connection::{Around, Ended, KillConnection};
use crate::kill_fate::Fate;
use crate::shared::{Order, Shared};
use reactor::{Event, Key, Net};
use session::prepared::Definition;
use session::statement::Statement;
use sql::kill::{Kill, Victim};
use sql::lex::{LexMode, Server};
use std::time::Duration;
use wire::attributes::{Form, put_query};
use wire::command::ReplyShape;
use wire::errors::{self};

/// A KILL that nobody has answered after the time for a dial and this is answered with an error.
const ANSWER_MAX: Duration = Duration::from_secs(2);

impl Shared {
    /// The group in which the client with this id is, if there is one: ids begin at [`FIRST_ID`],
    /// and each group counts in steps of the number of groups.
    pub(crate) fn group_of_client(&self, id: u32) -> usize {
        id.saturating_sub(FIRST_ID) as usize % self.groups
    }

    /// Notes the server's number of a backend that has logged in.
    pub(crate) fn note_thread(&self, thread: u32) {
        self.threads.change(|all| all.insert(thread));
    }

    /// Forgets the number of a backend that is gone.
    pub(crate) fn forget_thread(&self, thread: u32) {
        self.threads.change(|all| all.remove(&thread));
    }
}

impl<N: Net> Group<N> {
    /// A client says KILL in words.
    pub(crate) fn on_kill_text(
        &mut self,
        key: Key,
        message: &[u8],
        sql: &[u8],
        mode: LexMode,
    ) -> Handled {
        match Kill::read(sql, mode) {
            Some(kill) => self.on_kill(key, message, kill),
            None => self.answers().refuse_counted(key, &Refusal::Kill),
        }
    }

    /// A prepared KILL is executed, with this for its parameter. It goes on as the text that it
    /// comes to.
    pub(crate) fn on_kill_execution(
        &mut self,
        key: Key,
        definition: &Definition,
        parameter: Option<u64>,
    ) -> Handled {
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let mode = self
            .shared
            .server
            .lex_mode(&definition.session, client.capabilities);
        let Some(kill) = Kill::read_with(&definition.sql, mode, parameter) else {
            return self.answers().refuse_counted(key, &Refusal::Kill);
        };
        let what = if kill.query { "QUERY " } else { "" };
        let text = match kill.victim {
            Victim::Id(id) => format!("KILL {what}{id}"),
            Victim::Own => format!("KILL {what}CONNECTION_ID()"),
        };
        let mut message = Vec::new();
        put_query(&mut message, Form::of(client.capabilities), text.as_bytes());
        self.on_kill(key, &message, kill)
    }

    /// COM_PROCESS_KILL: the same without words.
    pub(crate) fn on_kill_command(&mut self, key: Key, message: &[u8], id: &[u8]) -> Handled {
        let gone = matches!(self.shared.server.flavour, Server::MySql(90_000..));
        match <[u8; 4]>::try_from(id) {
            Ok(id) if !gone => {
                let victim = Victim::Id(u64::from(u32::from_le_bytes(id)));
                let query = false;
                self.on_kill(key, message, Kill { query, victim })
            }
            _ => {
                self.answers()
                    .error(key, errors::UNKNOWN_COM, "Unknown command");
                Handled::Used
            }
        }
    }

    fn on_kill(&mut self, key: Key, message: &[u8], kill: Kill) -> Handled {
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let own = client.id;
        let id = match kill.victim {
            Victim::Own => u64::from(own),
            // MySQL takes the lower half of a longer number.
            Victim::Id(id) if self.shared.server.flavour.is_mysql() => id & u64::from(u32::MAX),
            Victim::Id(id) => id,
        };
        let Some(id) = u32::try_from(id).ok().filter(|id| *id >= FIRST_ID) else {
            let is_ours = |id| self.shared.threads.change(|all| all.contains(&id));
            if u32::try_from(id).is_ok_and(is_ours) {
                return self.answers().refuse_counted(key, &Refusal::KillBackend);
            }
            let reply = if message.get(4) == Some(&3) {
                ReplyShape::Results
            } else {
                ReplyShape::Status
            };
            return self.start(key, message, Statement::plain(reply));
        };
        if id == own {
            return self.kill_self(key, message, kill.query);
        }
        let ask = KillAsk {
            asker: Some(Asker {
                group: self.index,
                killer: key,
            }),
            id,
            query: kill.query,
            user: Some(
                self.backend_pools.pools[client.pool as usize]
                    .key
                    .user
                    .clone(),
            ),
        };
        let group = self.shared.group_of_client(id);
        let end = if group == self.index {
            self.kill(&ask)
        } else {
            self.outbox.send(group, Order::Kill(Box::new(ask)));
            None
        };
        match end {
            Some(end) => self.answers().killed(key, &end),
            None => {
                let now = self.net.now();
                if let Some(client) = self.clients.get_mut(key)
                    && !client.change_state(ClientState::Asking, now)
                {
                    self.clients.close_later(key);
                }
            }
        }
        Handled::Used
    }

    /// Who ends its own connection gets the error that its server would give. Who ends its own
    /// statement hears it from the server, as any error: it is asked about by the next statement.
    fn kill_self(&mut self, key: Key, message: &[u8], query: bool) -> Handled {
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
        self.leave(key);
        Handled::Used
    }

    /// Tells whoever asked what became of it; the pool itself does not ask.
    pub(crate) fn answer_asker(&mut self, asker: Option<Asker>, end: KillEnd) {
        let Some(asker) = asker else { return };
        if asker.group == self.index {
            self.kill_ends(asker.killer, &end);
        } else {
            let message = Order::Killed(asker.killer, end);
            self.outbox.send(asker.group, message);
        }
    }

    /// A KILL that this group's client waits for has come to its end.
    pub(crate) fn kill_ends(&mut self, killer: Key, end: &KillEnd) {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(killer) else {
            return;
        };
        if client.state() != ClientState::Asking {
            return;
        }
        if !client.change_state(ClientState::Idle, now) {
            return self.clients.close_later(killer);
        }
        self.answers().killed(killer, end);
        self.pump(killer);
        if self.draining.is_some() {
            (self.clients).leave_if_idle(killer, self.departures.has(killer));
        }
    }

    /// Ends a client of this group, or its statement. `None`: the server must be asked first.
    pub(crate) fn kill(&mut self, ask: &KillAsk) -> Option<KillEnd> {
        match ask.fate(&self.clients, &self.backends, &self.backend_pools) {
            Fate::Ended(end) => return Some(end),
            Fate::GiveUp(victim) => self.give_up(victim, &Refusal::Interrupted),
            Fate::Instead(victim) => {
                if let Some(client) = self.clients.get_mut(victim) {
                    client.interrupted = true;
                }
            }
            Fate::LeaveRide { victim, lease } => self.leave_ride(victim, lease),
            Fate::Close(victim) => self.clients.close_later(victim),
            Fate::Interrupt { lease, job } => {
                if let Some(backend) = self.backends.get_mut(lease) {
                    backend.riding = Riding::Closed;
                }
                self.kill_connection.push(job);
                return None;
            }
            Fate::CloseWith { victim, lease, job } => {
                self.clients.close_later(victim);
                self.clients.unbind(victim, &mut self.backends);
                self.retire(lease);
                self.kill_connection.push(job);
                return None;
            }
        }
        Some(KillEnd::Done)
    }

    /// A statement that shares its backend in flight is a plain SELECT: its client is answered, and
    /// its reply dropped, so that the others' are not touched. One whose reply has begun ends soon.
    fn leave_ride(&mut self, victim: Key, lease: Key) {
        let now = self.net.now();
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        let begun = backend.summary.len > 0 || !backend.middle.at_packet_start();
        let owns = |c: &crate::backend::InFlight| {
            c.owner == Some(victim) && c.purpose == Purpose::Statement
        };
        let Some(place) = backend.flight().iter().position(owns) else {
            return;
        };
        if place == 0 && begun {
            return;
        }
        if let Some(command) = backend.flight_mut().nth(place) {
            command.owner = None;
        }
        backend.note_left(now);
        self.clients.unbind(victim, &mut self.backends);
        self.answers().refuse(victim, &Refusal::Interrupted);
        self.return_to_idle(victim);
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
    pub(crate) fn on_kill_connection(&mut self, key: Key, event: Event) {
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

    /// The server has answered a KILL, or never will: the backend goes on, and who asked is told.
    fn kill_carried(&mut self, ended: Ended) {
        let lease = ended.job.aim.map(|aim| aim.lease);
        if let Some(lease) = lease
            && let Some(backend) = self.backends.get_mut(lease)
        {
            backend.reuse.thaw(ended.spoils);
            self.settle(lease);
            self.resume(lease);
        }
        self.answer_asker(ended.job.asker, ended.end);
    }

    /// A client that has waited for its own backend, and keeps it, goes on.
    pub(crate) fn resume(&mut self, lease: Key) {
        let backend = self.backends.get(lease);
        let backend = backend.filter(|backend| backend.flight().is_empty());
        if let Some(owner) = backend.and_then(Backend::lease) {
            self.wake(owner);
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
            client.state() == ClientState::Asking && now.since(client.since) > longest + ANSWER_MAX
        };
        let late = self.clients.iter().filter(|(_, client)| late(client));
        let late: Vec<Key> = late.map(|(key, _)| key).collect();
        for key in late {
            let why = format!("no answer within {} ms", (longest + ANSWER_MAX).as_millis());
            self.kill_ends(key, &KillEnd::Failed(why));
        }
    }
}
