//! Timeouts that sessions know: `wait_timeout`, `net_read_timeout` and `net_write_timeout`, kept by
//! the pool towards its clients, and known of the server towards the pool.
//!
//! A client's values are those of its session, which the trackers report when it sets them, else
//! the server's global ones as they were when the pool started; one that logged in as interactive
//! begins with `interactive_timeout` for its `wait_timeout`, as on a server. The sweep looks once a
//! second, so each may last up to a second longer.
//!
//! - `wait_timeout`: a client without a statement for so long is closed: by MySQL (from 8.0.24)
//!   with error 4031 first, by MariaDB without a word. `idle_s_max` closes earlier, never later.
//! - `net_read_timeout`: a client that stops in the middle of a command or of its local file.
//! - `net_write_timeout`: a client that takes nothing of its reply; `write_ms_max` is used instead
//!   where the session has not set it.
//!
//! A backend has the same values, because they are restored with the session and any statement may
//! ask for them. So the server closes one that has been idle for its `wait_timeout`. One that a
//! client holds does not die before its client's time is over, as both became idle at once; one
//! that nobody holds is not used when its end is near ([`Backend::lives_on`]), and closed before
//! it.

use crate::backend::{Backend, BackendState};
use crate::client::{Client, ClientState};
use crate::config::Settings;
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::group::clients::sending::FED_MAX;
use crate::server::server_facts::seconds;
use crate::server::server_facts::{ServerFacts, ServerTimeouts};
use reactor::{Key, Net, Read, Time};
use sql::lex::Server;
use std::time::Duration;
use wire::errors;

/// The first MySQL that says why it closes an idle connection (8.0.24).
const WORDS_SINCE: u32 = 80_024;
/// The longest part of a backend's last moments in which it is not used any more. A command that
/// meets the server's own close on the way would be lost.
const MARGIN_MAX: Duration = Duration::from_secs(5);
/// Half the shortest `wait_timeout`, 1 s: until then there is nothing to look up.
const ALIVE: Duration = Duration::from_millis(500);
/// COM_QUIT, as the last that a client says.
const QUIT: [u8; 5] = [1, 0, 0, 0, 1];
/// How long the spool's disk may take for what a client waits for. Far above what a disk that is
/// behind needs for all that its lines may hold.
const DISK_MAX: Duration = Duration::from_secs(60);
/// How much earlier than the pool's sweep the server may find that a connection's time is over.
const SWEEP_SLACK: Duration = Duration::from_secs(2);

/// Why a PROXY header may be missing: proxies are set so, or wait for their clients' first bytes.
const NO_HEADER: &str = "and none came in login_ms_max; let the proxy send one, and at once: one \
     that waits for the client's first bytes, as AWS Network Load Balancers do by default, waits \
     for ever, because the server speaks first";

/// Why a client must go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    /// It has not sent its PROXY header.
    Header,
    /// It has not logged in.
    Login,
    /// Its reply does not come out of the spool.
    Spooled,
    /// It has not taken its reply, or the rest of a command does not come.
    Stalled,
    /// It has said nothing.
    Idle,
}

impl<S> Client<S> {
    /// Something has come from it: its limits count from here.
    pub(crate) fn heard_from(&mut self, now: Time) {
        if matches!(self.state(), ClientState::Idle | ClientState::Feeding) {
            self.since = now;
        }
    }

    /// Whether it has begun a command and not ended it.
    fn is_amid_command(&self) -> bool {
        self.input.is_some()
            || self
                .transport
                .compression()
                .is_some_and(|c| c.is_amid_frame())
    }
}

/// What limits of time go by.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) server: &'a ServerFacts,
}

impl<S> Client<S> {
    /// Which time limit it has exceeded, if any, with this backend if it has one.
    fn lateness(
        &self,
        backend: Option<&Backend<S>>,
        now: Time,
        limits: Limits<'_>,
    ) -> Option<Late> {
        use ClientState::{Accepted, Feeding, Greeted, Idle, Leaving, Opening, Proving, Verifying};
        let stands = now.since(self.since);
        let Limits { settings, server } = limits;
        // It cannot take what has not been read from the spool.
        if self.waits_for_spool() {
            return (stands > DISK_MAX).then_some(Late::Spooled);
        }
        if self.output.is_some() || self.state() == Leaving {
            return (stands > self.write_max(limits)).then_some(Late::Stalled);
        }
        let read_max = || {
            let own = self.session.value(b"net_read_timeout");
            own.and_then(seconds).unwrap_or(server.timeouts.read)
        };
        match self.state() {
            Accepted => (stands > settings.login_max).then_some(Late::Header),
            Greeted | Proving | Verifying => (stands > settings.login_max).then_some(Late::Login),
            Opening => (stands > settings.login_max + settings.wait_max).then_some(Late::Login),
            // The server keeps it from being heard.
            Feeding if self.has_fed_enough(backend) => None,
            Feeding => (stands > read_max()).then_some(Late::Stalled),
            Idle if self.is_amid_command() => (stands > read_max()).then_some(Late::Stalled),
            Idle => (stands > self.idle_max(limits)).then_some(Late::Idle),
            _ => None,
        }
    }

    /// How long a client may take nothing of its reply.
    fn write_max(&self, limits: Limits<'_>) -> Duration {
        const NAME: &[u8] = b"net_write_timeout";
        let own = self.session.variable(NAME).and_then(seconds);
        let begun = || self.session.begun.value(NAME).and_then(seconds);
        let usual = limits.settings.write_max;
        own.or(usual)
            .or_else(begun)
            .unwrap_or(limits.server.timeouts.write)
    }

    /// How long a client may say nothing.
    fn idle_max(&self, limits: Limits<'_>) -> Duration {
        let timeouts = &limits.server.timeouts;
        let own = timeouts.wait_of(&self.session, self.capabilities);
        let of_user = &limits.settings.users[self.user as usize].limits;
        of_user.idle_max.map_or(own, |max| max.min(own))
    }

    /// Whether the time of an idle client is over, or so near its end that the server, which counts
    /// by itself on the client's backend, may have found so first.
    pub(crate) fn has_idled(&self, now: Time, limits: Limits<'_>) -> bool {
        let stands = now.since(self.since);
        self.state() == ClientState::Idle
            && self.output.is_none()
            && stands + SWEEP_SLACK > self.idle_max(limits)
    }

    /// Whether the server is to take what it has sent of its local file before more is read.
    pub(crate) fn has_fed_enough(&self, backend: Option<&Backend<S>>) -> bool {
        self.state() == ClientState::Feeding
            && backend.is_some_and(|backend| backend.unsent() > FED_MAX)
    }
}

impl<S> Backend<S> {
    /// Whether the server will keep it, which is idle, for long enough to run something on it.
    pub(crate) fn lives_on(&self, capabilities: u32, timeouts: &ServerTimeouts, now: Time) -> bool {
        let idle = now.since(self.since);
        if idle < ALIVE {
            return true;
        }
        let max = timeouts.wait_of(&self.session, capabilities);
        idle < max - (max / 2).min(MARGIN_MAX)
    }
}

impl<N: Net> Group<N> {
    /// Ends clients that have taken too long.
    pub(crate) fn end_late_clients(&mut self) {
        let now = self.net.now();
        let late: Vec<(Key, Late)> = self
            .clients
            .iter()
            .filter(|(key, client)| !self.inputs.holds_up(*key) && !client.is_being_read())
            .filter_map(|(key, client)| {
                let backend = client.lease().and_then(|lease| self.backends.get(lease));
                Some((key, client.lateness(backend, now, self.limits())?))
            })
            .collect();
        for (key, why) in late {
            self.counts.too_slow += 1;
            match why {
                Late::Login => self.refuse(key, &Refusal::TooSlow("the login took too long")),
                Late::Header => {
                    let refusal = Refusal::ProxyHeader(NO_HEADER.into());
                    self.log_refused(None, Some(key), &refusal);
                    self.refuse(key, &refusal);
                }
                Late::Idle => self.end_idle(key),
                Late::Spooled => {
                    self.end_unread(key, DISK_MAX);
                    continue;
                }
                Late::Stalled => {}
            }
            self.close_later(key);
        }
    }

    /// Ends clients that have gone while their statement runs on a backend that nobody else will
    /// get. A server that waits for a lock looks whether its client is still there, and learns it
    /// from the backend's end; and what else the client held is given back.
    pub(crate) fn end_departed_clients(&mut self) {
        let departed = |client: &Client<N::Sock>| {
            let runs = client.transport.has_ended() && client.state() == ClientState::Running;
            // What it has said already runs first, as on a server; whether that is more than a
            // goodbye is not looked for in a compressed frame.
            let silent = !client.compresses() && !client.is_amid_command();
            runs && silent && client.is_held()
        };
        let found = self.clients.iter().filter(|(_, client)| departed(client));
        let found: Vec<Key> = found.map(|(key, _)| key).collect();
        for key in found {
            let Some(client) = self.clients.get_mut(key) else {
                continue;
            };
            let mut bytes = [0; 64];
            let read =
                (client.transport).read_counted(&mut self.net, &mut bytes, &mut self.tls_bytes);
            match read {
                Read::Blocked => {}
                Read::Bytes(n) if bytes[..n] != QUIT => client.keep_input(&bytes[..n]),
                Read::Bytes(_) | Read::End | Read::Failed(_) => self.close_later(key),
            }
        }
    }

    /// Closes an idle client in the words of the server.
    pub(crate) fn end_idle(&mut self, key: Key) {
        if !matches!(self.shared.server.flavour, Server::MySql(version) if version >= WORDS_SINCE) {
            return self.close_later(key);
        }
        if let Some(client) = self.clients.get_mut(key) {
            // It answers nothing.
            client.seq = 0;
        }
        self.send_error(key, errors::CLIENT_INACTIVE, errors::CLIENT_INACTIVE_WORDS);
        self.leave(key);
    }

    /// What limits of time go by now.
    pub(crate) fn limits(&self) -> Limits<'_> {
        Limits {
            settings: &self.settings,
            server: &self.shared.server,
        }
    }

    /// Whether the server will keep an idle backend for long enough to run something on it.
    pub(crate) fn lives_on(&self, backend: &Backend<N::Sock>) -> bool {
        let capabilities = self.backend_pools.pools[backend.pool].key.capabilities;
        backend.lives_on(capabilities, &self.shared.server.timeouts, self.net.now())
    }

    /// Closes idle backends that the server is about to close.
    pub(crate) fn retire_dying_backends(&mut self) {
        for key in self.backends.keys() {
            let dies = self.backends.get(key).is_some_and(|backend| {
                backend.state() == BackendState::Idle && !self.lives_on(backend)
            });
            if dies {
                self.counts.trimmed += 1;
                self.let_go(key);
            }
        }
    }
}
