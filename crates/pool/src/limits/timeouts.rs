//! Timeouts that sessions know: `wait_timeout`, `net_read_timeout` and `net_write_timeout`, kept by
//! the pool towards its clients, and known of the server towards the pool.
//!
//! A client's values are those of its session, which the trackers report when it sets them, else
//! the server's global ones as they were when the pool started; one that logged in as interactive
//! begins with `interactive_timeout` for its `wait_timeout`, as on a server. The sweep looks once a
//! second, so each may last up to a second longer.
//!
//! - `wait_timeout`: a client without a statement for so long is closed: by MySQL (from 8.0.24)
//!   with error 4031 first, by MariaDB without a word, with a reset. `idle_s_max` closes earlier,
//!   never later.
//! - `net_read_timeout`: a client that stops in the middle of a command or of its local file.
//! - `net_write_timeout`: a client that takes nothing of its reply; `write_ms_max` is used instead
//!   where the session has not set it.
//!
//! A backend has the same values, because they are restored with the session and any statement may
//! ask for them. So the server closes one that has been idle for its `wait_timeout`. One that a
//! client holds does not die before its client's time is over, as both became idle at once; one
//! that nobody holds is not used when its end is near ([`Backend::lives_on`]), and closed before
//! it.
//!
//! # Hosts that are gone
//!
//! The problem: a host that loses its power, or its network, closes nothing. A statement whose
//! reply is awaited has nothing on its way to the server, so without a question the kernel never
//! finds out; and what is on its way is repeated for a quarter of an hour. On the other side, a
//! client that is gone keeps its transaction, and so its locks.
//!
//! The mechanism: the kernel asks idle connections for a sign of life (keepalive), which a host
//! answers whatever its processes do, so a server that computes for an hour is left alone. Clients
//! are asked in turns, a few in each sweep ([`TimeLimits::probes`]): probes to all at once are
//! dropped on the way, and living clients would be given up. While something is unacknowledged the
//! kernel does not ask; then the sweep looks for how long nothing has come ([`Net::unanswered`]). A
//! connection on which nothing has come for `backend_silence_s_max` (`client_silence_s_max`) is
//! closed, and those who wait for it hear why.
//!
//! A host may answer while its server stands still, and a server its watch while it answers no
//! statement (a full disk, a lock on everything). Then `statement_ms_max` bounds clients'
//! statements and what is prepared for them, where it is set; what else the pool itself asks for
//! them has to be answered within `wait_ms_max`.
//!
//! # Limits of users
//!
//! A statement or a transaction of a user's may take so long (`statement_ms_max`,
//! `transaction_ms_max`), and a client may keep a backend idle for so long (`kept_idle_s_max`).
//! All of this is looked at in the sweep, once a second.
//!
//! Backends' own limits are in [`crate::backend::overdue`].
//!
//! Invariant: here is said who is late; nothing is closed.

use crate::backend::Backend;
use crate::client::buffers::room::Inputs;
use crate::client::clients::Clients;
use crate::client::{Client, ClientState};
use crate::config::{SILENCE_PARTS, Settings};
use crate::errors::reasons::Refusal;
use crate::group::tokens::{BackendId, ClientId};
use crate::server::facts::ServerFacts;
use crate::server::facts::seconds;
use reactor::{Net, Slots, Time};
use std::time::Duration;

/// Time that the spool's disk may take for what a client waits for. Far above what a disk that is
/// behind needs for all that its lines may hold.
pub(crate) const DISK_MAX: Duration = Duration::from_secs(60);
/// Part of its time by which an idle client without a backend may be closed late.
const IDLE_PARTS: u64 = 16;
/// Most sweeps between two looks at one.
const LOOKS_BETWEEN_MAX: u32 = 64;
/// Time before the pool's sweep at which the server may find that a connection's time is over.
const SWEEP_SLACK: Duration = Duration::from_secs(2);
/// Clients of a group that are asked in one sweep; among more each turn comes later. All groups'
/// probes of one moment fit the kernel's queue of 1,000 packets (`net.core.netdev_max_backlog`).
const PROBES_MAX: u32 = 256;
/// Sweeps after which the answer to a probe is looked at: the kernel sends it in a second.
const PROBED_SWEEPS: u32 = 2;

/// Reason why a client must go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// PROXY header that was not sent.
    Header,
    /// Login that is not complete.
    Login,
    /// Reply that does not come out of the spool.
    Spooled,
    /// Reply that was not taken, or rest of a command that does not come.
    Stalled,
    /// Silence.
    Idle,
}

/// Limit that a backend's statement has exceeded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OverTime {
    /// A client's statement or transaction, as it is told.
    Clients(ClientId, Refusal),
    /// A statement whose client has left; those that are pipelined behind it are of the same
    /// account.
    Nobodys,
}

/// Inputs of the time limits.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) server: &'a ServerFacts,
}

impl Limits<'_> {
    /// Time limit that a client has exceeded, if any, with this backend if it has one.
    fn lateness<S>(
        self,
        client: &Client<S>,
        backend: Option<&Backend<S>>,
        now: Time,
    ) -> Option<Late> {
        use ClientState::{Accepted, Feeding, Greeted, Idle, Leaving, Opening, Proving, Verifying};
        let stands = now.since(client.since());
        let Limits { settings, server } = self;
        // It cannot take what has not been read from the spool.
        if client.waits_for_spool() {
            return (stands > DISK_MAX).then_some(Late::Spooled);
        }
        if client.output.is_some() || client.state() == Leaving {
            return (stands > self.write_max(client)).then_some(Late::Stalled);
        }
        let read_max = || {
            let own = client.session.state.value(b"net_read_timeout");
            own.and_then(seconds).unwrap_or(server.timeouts.read)
        };
        match client.state() {
            Accepted => (stands > settings.login_max).then_some(Late::Header),
            Greeted | Proving | Verifying => (stands > settings.login_max).then_some(Late::Login),
            Opening => (stands > settings.login_max + settings.wait_max).then_some(Late::Login),
            // The server keeps it from being heard.
            Feeding if client.has_fed_enough(backend) => None,
            Feeding => (stands > read_max()).then_some(Late::Stalled),
            Idle if client.is_amid_command() => (stands > read_max()).then_some(Late::Stalled),
            Idle => (stands > self.idle_max(client)).then_some(Late::Idle),
            _ => None,
        }
    }

    /// Time for which a client may take nothing of its reply.
    fn write_max<S>(self, client: &Client<S>) -> Duration {
        const NAME: &[u8] = b"net_write_timeout";
        let own = client.session.state.variable(NAME).and_then(seconds);
        let default = || client.session.state.defaults.value(NAME).and_then(seconds);
        let usual = self.settings.write_max;
        own.or(usual)
            .or_else(default)
            .unwrap_or(self.server.timeouts.write)
    }

    /// Time for which a client may say nothing.
    fn idle_max<S>(self, client: &Client<S>) -> Duration {
        let timeouts = &self.server.timeouts;
        let own = timeouts.wait_of(&client.session.state, client.capabilities);
        let of_user = &self.settings.users[client.identity.user()].limits;
        of_user.idle_max.map_or(own, |max| max.min(own))
    }

    /// True if the time of an idle client is over, or so near its end that the server, which counts
    /// by itself on the client's backend, may have found so first.
    pub(crate) fn has_idled<S>(self, client: &Client<S>, now: Time) -> bool {
        let stands = now.since(client.since());
        client.state() == ClientState::Idle
            && client.output.is_none()
            && stands + SWEEP_SLACK > self.idle_max(client)
    }
}

/// Sweeps in which a client is looked at once. It grows with the time for which it has been idle,
/// of which it is a part, so that very many idle clients cost next to nothing.
fn looks_between<S>(client: &Client<S>, now: Time) -> u32 {
    if client.state() != ClientState::Idle
        || client.backend().is_some()
        || client.input.bytes().is_some()
    {
        return 1;
    }
    let parts = now.since(client.since()).as_secs() / IDLE_PARTS;
    1 << parts.max(1).ilog2().min(LOOKS_BETWEEN_MAX.ilog2())
}

/// Clients and backends of a group, and the limits of time that they are under.
pub(crate) struct TimeLimits<'a, N: Net> {
    pub(crate) net: &'a N,
    pub(crate) limits: Limits<'a>,
    pub(crate) clients: &'a Clients<N::Sock>,
    pub(crate) backends: &'a mut Slots<Backend<N::Sock>, BackendId>,
    pub(crate) inputs: &'a Inputs,
}

impl<N: Net> TimeLimits<'_, N> {
    /// Clients that have taken too long, and with what; `sweep`: how many sweeps there have been.
    pub(crate) fn late_clients(&self, sweep: u32) -> Vec<(ClientId, Late)> {
        let now = self.net.now();
        let all = self.clients.iter();
        let due = all.filter(|(key, client)| {
            let rounds = looks_between(client, now);
            key.parts().0 % rounds == sweep % rounds
        });
        due.filter(|(key, client)| !self.inputs.holds_up(*key) && !client.input.is_being_read())
            .filter_map(|(key, client)| {
                let backend = client.backend_in(self.backends);
                Some((key, self.limits.lateness(client, backend, now)?))
            })
            .collect()
    }

    /// Clients that acknowledge nothing; `sweep`: how many sweeps there have been. Those without a
    /// backend are looked at in turns: there may be very many, and they keep nothing from others.
    pub(crate) fn silent_clients(&self, sweep: u32) -> Vec<ClientId> {
        let Some(max) = self.limits.settings.client_silence_max else {
            return Vec::new();
        };
        let holders = self.backends.iter().filter_map(|(_, b)| b.client());
        let holders = holders.filter_map(|key| Some((key, self.clients.get(key)?)));
        let others = self.clients.every(sweep, self.rounds(max));
        let others = others.filter(|(_, client)| client.backend().is_none());
        let silent = holders.chain(others).filter(|(_, client)| {
            (self.net.unanswered(client.transport.sock())).is_some_and(|d| d >= max)
        });
        silent.map(|(key, _)| key).collect()
    }

    /// Sweeps, one a second, in which each client has its turn.
    fn rounds(&self, silence_max: Duration) -> u32 {
        let seconds = (silence_max / SILENCE_PARTS).as_secs();
        let wished = u32::try_from(seconds).unwrap_or(u32::MAX);
        let clients = u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
        wished.max(clients / PROBES_MAX).max(PROBED_SWEEPS + 1)
    }

    /// Clients to ask for a sign of life in this sweep, and those that were asked some sweeps ago.
    pub(crate) fn probes(&self, sweep: u32) -> (Vec<ClientId>, Vec<ClientId>) {
        let Some(max) = self.limits.settings.client_silence_max else {
            return Default::default();
        };
        let now = self.net.now();
        let quiet = |client: &Client<_>| now.since(client.since()) >= max / SILENCE_PARTS;
        let due = self.clients.every(sweep, self.rounds(max));
        let asked = (self.clients).every(sweep.wrapping_sub(PROBED_SWEEPS), self.rounds(max));
        (
            due.filter(|(_, c)| quiet(c)).map(|(key, _)| key).collect(),
            asked.map(|(key, _)| key).collect(),
        )
    }

    /// Client whose time on this backend is over.
    pub(crate) fn overdue(&mut self, backend_id: BackendId) -> Option<OverTime> {
        let now = self.net.now();
        let backend = self.backends.get_mut(backend_id)?;
        let open_since = backend.session.see_transaction(now).map(|open| open.since);
        let flight = &backend.flight;
        let running = flight.front().filter(|c| c.purpose.may_wait_for_locks());
        let of = |key| {
            let client = self.clients.get(key)?;
            let user = &self.limits.settings.users[client.identity.user()];
            Some((client, &user.limits))
        };
        // Behind a reply of nobody waits who keeps something there, or who is pipelined.
        let Some(owner) = running.and_then(|c| c.owner).or(backend.client()) else {
            let (_, limits) = of(flight.iter().find_map(|c| c.owner)?)?;
            let since = running?.sent.max(backend.flight.busy_since());
            let late = limits.statement_max.is_some_and(|m| now.since(since) > m);
            return late.then_some(OverTime::Nobodys);
        };
        let first = running.and_then(|_| flight.iter().find(|c| c.owner == Some(owner)));
        let (client, limits) = of(owner)?;
        if let (Some(max), Some(first)) = (limits.statement_max, first)
            && now.since(first.sent.max(backend.flight.busy_since())) > max
        {
            return Some(OverTime::Clients(owner, Refusal::StatementTime { max }));
        }
        if let Some((max, since)) = limits.transaction_max.zip(open_since)
            && now.since(since) > max
        {
            return Some(OverTime::Clients(owner, Refusal::TransactionTime { max }));
        }
        let max = limits.kept_idle_max?;
        let keeps = match client.state() {
            ClientState::Idle => backend.flight.is_empty(),
            ClientState::Feeding => !client.has_fed_enough(Some(&*backend)),
            _ => false,
        };
        let late = keeps && client.output.is_none() && now.since(client.since()) > max;
        late.then_some(OverTime::Clients(owner, Refusal::KeptIdle { max }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BackendState, ForSession, InFlight, Purpose};
    use crate::config::Raw;
    use crate::group::scripted::Scripted;
    use session::state::Session;
    use session::transaction::Transaction;
    use std::rc::Rc;
    use wire::command::ReplyShape;

    const NOW: Time = Time(1_000_000_000_000);
    const SECOND: Duration = Duration::from_secs(1);
    const MOMENT: Duration = Duration::from_millis(1);

    struct Bench {
        net: Scripted,
        settings: Settings,
        server: ServerFacts,
        clients: Clients<()>,
        backends: Slots<Backend<()>, BackendId>,
        inputs: Inputs,
    }

    impl Bench {
        fn new(top: &str, user: &str) -> Bench {
            let text = format!(
                "listen = [\"127.0.0.1:1\"]\n{top}\n[backend]\naddress = \"127.0.0.1:2\"\n\
                 [[user]]\nname = \"a\"\npassword = \"b\"\n{user}\n"
            );
            Bench {
                net: Scripted {
                    now: NOW,
                    ..Scripted::default()
                },
                settings: Raw::parse(&text).and_then(Raw::check).unwrap(),
                server: ServerFacts::of_tests(),
                clients: Clients::default(),
                backends: Slots::default(),
                inputs: Inputs::default(),
            }
        }

        /// A client that has stood in this state since now.
        fn client(&mut self, states: &[ClientState]) -> ClientId {
            let mut client = Client::of_tests(NOW, Rc::default());
            for state in states {
                assert!(client.change_state(*state, NOW));
            }
            self.clients.insert(client)
        }

        /// A client whose statement has run on a backend since now.
        fn running(&mut self) -> (ClientId, BackendId) {
            let key = self.client(&[ClientState::Idle, ClientState::Running]);
            let mut backend = Backend::of_tests(NOW, Rc::default());
            for state in [
                BackendState::Preparing,
                BackendState::Idle,
                BackendState::CheckedOut,
            ] {
                assert!(backend.change_state(state, NOW));
            }
            let backend_id = self.backends.insert(backend);
            let client = self.clients.get_mut(key).unwrap();
            let backend = self.backends.get_mut(backend_id).unwrap();
            client.bind(backend, (key, backend_id));
            backend.flight.expect(InFlight {
                sent: NOW,
                ..InFlight::own(Some(key), Purpose::Statement, ReplyShape::Results)
            });
            (key, backend_id)
        }

        fn limits(&mut self) -> TimeLimits<'_, Scripted> {
            TimeLimits {
                net: &self.net,
                limits: Limits {
                    settings: &self.settings,
                    server: &self.server,
                },
                clients: &self.clients,
                backends: &mut self.backends,
                inputs: &self.inputs,
            }
        }

        /// Clients that are late after so long, and not a moment before.
        fn late_after(&mut self, max: Duration) -> Vec<Late> {
            self.net.now = NOW + max;
            assert_eq!(self.limits().late_clients(0), [], "it has its time");
            self.net.now = NOW + max + MOMENT;
            let late = self.limits().late_clients(0);
            late.into_iter().map(|(_, late)| late).collect()
        }
    }

    #[test]
    fn a_login_has_its_time_and_a_wait_for_a_backend_besides() {
        let mut bench = Bench::new("login_ms_max = 1000\nwait_ms_max = 2000", "");
        bench.client(&[]);
        assert_eq!(bench.late_after(SECOND), [Late::Login]);
        let mut bench = Bench::new("login_ms_max = 1000\nwait_ms_max = 2000", "");
        bench.client(&[ClientState::Opening]);
        assert_eq!(bench.late_after(3 * SECOND), [Late::Login]);
    }

    #[test]
    fn an_idle_client_has_the_shortest_of_its_own_and_its_users_time() {
        let idle = |user: &str, own: Option<&[u8]>| {
            let mut bench = Bench::new("", user);
            bench.server.timeouts.wait = 9 * SECOND;
            let key = bench.client(&[ClientState::Idle]);
            let client = bench.clients.get_mut(key).unwrap();
            if let Some(own) = own {
                let mut session = Session::default();
                session.put(b"wait_timeout", own);
                client.session.state = Rc::new(session);
            }
            bench
        };
        assert_eq!(idle("", None).late_after(9 * SECOND), [Late::Idle]);
        assert_eq!(idle("", Some(b"3")).late_after(3 * SECOND), [Late::Idle]);
        let sooner = idle("idle_s_max = 2", None).late_after(2 * SECOND);
        assert_eq!(sooner, [Late::Idle]);
        let never_later = idle("idle_s_max = 20", None).late_after(9 * SECOND);
        assert_eq!(never_later, [Late::Idle]);
    }

    #[test]
    fn idle_clients_are_looked_at_less_often_the_longer_they_are_idle() {
        for (seconds, between) in [(0, 1), (31, 1), (32, 2), (100, 4), (255, 8), (99_999, 64)] {
            let mut bench = Bench::new("", "idle_s_max = 1");
            bench.net.now = NOW + seconds * SECOND;
            let key = bench.client(&[ClientState::Idle]);
            let client = bench.clients.get_mut(key).unwrap();
            client.count_from(NOW);
            assert_eq!(looks_between(client, bench.net.now), between, "{seconds} s");
            client.keep_input(b"\x05\0");
            assert_eq!(looks_between(client, bench.net.now), 1, "amid a command");
            let (running, _) = bench.running();
            let running = bench.clients.get(running).unwrap();
            assert_eq!(looks_between(running, NOW + 999 * SECOND), 1);
        }
        let mut bench = Bench::new("", "idle_s_max = 1");
        let keys = [(); 8].map(|()| bench.client(&[ClientState::Idle]));
        bench.net.now = NOW + 100 * SECOND;
        let mut late = |sweep| bench.limits().late_clients(sweep);
        let found: Vec<_> = (0..4).flat_map(&mut late).map(|(key, _)| key).collect();
        assert_eq!(found.len(), keys.len(), "each in its turn");
    }

    #[test]
    fn who_has_begun_a_command_has_the_time_of_a_read() {
        let mut bench = Bench::new("", "");
        bench.server.timeouts.read = 4 * SECOND;
        let key = bench.client(&[ClientState::Idle]);
        bench.clients.get_mut(key).unwrap().keep_input(b"\x05\0");
        assert_eq!(bench.late_after(4 * SECOND), [Late::Stalled]);
    }

    #[test]
    fn the_server_may_find_an_idle_client_first_and_only_near_the_end() {
        let mut bench = Bench::new("", "");
        bench.server.timeouts.wait = 9 * SECOND;
        let key = bench.client(&[ClientState::Idle]);
        let limits = Limits {
            settings: &bench.settings,
            server: &bench.server,
        };
        let client = bench.clients.get(key).unwrap();
        assert!(!limits.has_idled(client, NOW + 9 * SECOND - SWEEP_SLACK));
        assert!(limits.has_idled(client, NOW + 9 * SECOND - SWEEP_SLACK + MOMENT));
    }

    #[test]
    fn idle_clients_are_asked_for_a_sign_of_life_in_turns() {
        const CLIENTS: usize = 100;
        let mut bench = Bench::new("client_silence_s_max = 30", "");
        let keys: Vec<_> = (0..CLIENTS)
            .map(|_| bench.client(&[ClientState::Idle]))
            .collect();
        let mut started = Vec::new();
        for sweep in 0..10 {
            bench.net.now = NOW + 9 * SECOND + 999 * MOMENT;
            assert_eq!(
                bench.limits().probes(sweep).0,
                [],
                "they have said something"
            );
            bench.net.now = NOW + 10 * SECOND;
            let due = bench.limits().probes(sweep).0;
            assert_eq!(due.len(), CLIENTS / 10);
            assert_eq!(bench.limits().probes(sweep + PROBED_SWEEPS).1, due);
            started.extend(due);
        }
        started.sort_unstable();
        assert_eq!(started, keys, "each once");
        for _ in CLIENTS..11 * PROBES_MAX as usize {
            bench.client(&[ClientState::Idle]);
        }
        bench.net.now = NOW + 10 * SECOND;
        let mut asked = |sweep| bench.limits().probes(sweep).0.len();
        assert_eq!([0, 10].map(&mut asked), [PROBES_MAX as usize; 2]);
        let mut off = Bench::new("client_silence_s_max = 0", "");
        off.client(&[ClientState::Idle]);
        off.net.now = NOW + 9_999 * SECOND;
        assert_eq!(off.limits().probes(0), Default::default());
    }

    #[test]
    fn a_statement_counts_from_when_its_backend_began_with_it() {
        let mut bench = Bench::new("", "statement_ms_max = 1000");
        let (key, backend) = bench.running();
        let busy_since = NOW + SECOND;
        bench
            .backends
            .get_mut(backend)
            .unwrap()
            .begin_load(busy_since);
        bench.net.now = busy_since + SECOND;
        assert_eq!(bench.limits().overdue(backend), None);
        bench.net.now = busy_since + SECOND + MOMENT;
        let refusal = Refusal::StatementTime { max: SECOND };
        assert_eq!(
            bench.limits().overdue(backend),
            Some(OverTime::Clients(key, refusal))
        );
    }

    #[test]
    fn what_is_prepared_for_an_execution_has_the_time_of_a_statement() {
        let mut bench = Bench::new("", "statement_ms_max = 1000");
        let (key, backend_id) = bench.running();
        let backend = bench.backends.get_mut(backend_id).unwrap();
        backend.flight.iter_mut().next().unwrap().purpose = ForSession::Ahead.into();
        bench.net.now = NOW + SECOND;
        assert_eq!(bench.limits().overdue(backend_id), None);
        bench.net.now = NOW + SECOND + MOMENT;
        let refusal = Refusal::StatementTime { max: SECOND };
        let late = Some(OverTime::Clients(key, refusal));
        assert_eq!(bench.limits().overdue(backend_id), late);
    }

    #[test]
    fn who_waits_behind_a_reply_of_nobody_has_the_time_of_a_statement() {
        let mut bench = Bench::new("", "statement_ms_max = 1000");
        let (key, backend_id) = bench.running();
        let backend = bench.backends.get_mut(backend_id).unwrap();
        backend.flight.iter_mut().next().unwrap().owner = None;
        bench.net.now = NOW + 5 * SECOND;
        assert_eq!(
            bench.limits().overdue(backend_id),
            None,
            "nobody waits for it"
        );
        let sent = bench.net.now;
        let backend = bench.backends.get_mut(backend_id).unwrap();
        backend.flight.expect(InFlight {
            sent,
            ..InFlight::own(Some(key), Purpose::Statement, ReplyShape::Results)
        });
        bench.net.now = sent + SECOND;
        assert_eq!(bench.limits().overdue(backend_id), None);
        bench.net.now = sent + SECOND + MOMENT;
        let refusal = Refusal::StatementTime { max: SECOND };
        assert_eq!(
            bench.limits().overdue(backend_id),
            Some(OverTime::Clients(key, refusal))
        );
    }

    #[test]
    fn who_is_pipelined_behind_a_reply_of_nobody_waits_as_long_as_that_statement_may_take() {
        let mut bench = Bench::new("", "statement_ms_max = 1000");
        let (key, backend_id) = bench.running();
        let follower = bench.client(&[ClientState::Idle, ClientState::Running]);
        let backend = bench.backends.get_mut(backend_id).unwrap();
        backend.flight.iter_mut().next().unwrap().owner = None;
        backend.binding.forget(key);
        bench.net.now = NOW + SECOND + MOMENT;
        assert_eq!(
            bench.limits().overdue(backend_id),
            None,
            "nobody waits for it"
        );
        let sent = bench.net.now;
        let backend = bench.backends.get_mut(backend_id).unwrap();
        backend.flight.expect(InFlight {
            sent,
            ..InFlight::own(Some(follower), Purpose::Statement, ReplyShape::Results)
        });
        assert_eq!(bench.limits().overdue(backend_id), Some(OverTime::Nobodys));
        let backend = bench.backends.get_mut(backend_id).unwrap();
        backend.flight.take_reply(NOW + MOMENT);
        assert_eq!(bench.limits().overdue(backend_id), None, "it began later");
    }

    #[test]
    fn a_transaction_counts_behind_a_reply_of_nobody_too() {
        let mut bench = Bench::new("", "transaction_ms_max = 1000");
        let (key, backend_id) = bench.running();
        let backend = bench.backends.get_mut(backend_id).unwrap();
        backend.flight.iter_mut().next().unwrap().owner = None;
        (backend.session.transaction).note_status(wire::status::IN_TRANS);
        assert_eq!(bench.limits().overdue(backend_id), None);
        bench.net.now = NOW + SECOND + MOMENT;
        let refusal = Refusal::TransactionTime { max: SECOND };
        assert_eq!(
            bench.limits().overdue(backend_id),
            Some(OverTime::Clients(key, refusal))
        );
    }

    #[test]
    fn transactions_one_behind_the_other_are_not_one_long_one() {
        let next: [fn(&mut Transaction); 2] = [
            // COMMIT, and another one of this client or the next.
            |transaction| {
                transaction.note_status(wire::status::AUTOCOMMIT);
                transaction.note_begin_sent();
                transaction.note_status(wire::status::IN_TRANS);
                transaction.note_begin_answered();
            },
            // COMMIT AND CHAIN
            |transaction| transaction.note_savepoint(false, true),
        ];
        for next in next {
            let mut bench = Bench::new("", "transaction_ms_max = 1000");
            let (key, backend_id) = bench.running();
            let backend = bench.backends.get_mut(backend_id).unwrap();
            (backend.session.transaction).note_status(wire::status::IN_TRANS);
            for second in 0..5 {
                bench.net.now = NOW + second * SECOND;
                assert_eq!(bench.limits().overdue(backend_id), None, "second {second}");
                next(
                    &mut bench
                        .backends
                        .get_mut(backend_id)
                        .unwrap()
                        .session
                        .transaction,
                );
            }
            assert_eq!(bench.limits().overdue(backend_id), None);
            bench.net.now = NOW + 6 * SECOND;
            let refusal = Refusal::TransactionTime { max: SECOND };
            let late = Some(OverTime::Clients(key, refusal));
            assert_eq!(
                bench.limits().overdue(backend_id),
                late,
                "the last one lasts"
            );
        }
    }

    #[test]
    fn a_transaction_counts_from_when_it_was_seen_and_ends_with_itself() {
        let mut bench = Bench::new("", "transaction_ms_max = 1000");
        let (key, backend_id) = bench.running();
        let open = |bench: &mut Bench, status: u16| {
            let backend = bench.backends.get_mut(backend_id).unwrap();
            backend.session.transaction.note_status(status);
        };
        let in_transaction = wire::status::IN_TRANS | wire::status::AUTOCOMMIT;
        open(&mut bench, in_transaction);
        assert_eq!(bench.limits().overdue(backend_id), None);
        open(&mut bench, wire::status::AUTOCOMMIT);
        bench.net.now = NOW + 5 * SECOND;
        assert_eq!(bench.limits().overdue(backend_id), None, "it has ended");
        open(&mut bench, in_transaction);
        assert_eq!(bench.limits().overdue(backend_id), None, "another begins");
        bench.net.now = NOW + 6 * SECOND + MOMENT;
        let refusal = Refusal::TransactionTime { max: SECOND };
        assert_eq!(
            bench.limits().overdue(backend_id),
            Some(OverTime::Clients(key, refusal))
        );
    }
}
