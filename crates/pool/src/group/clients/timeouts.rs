//! Clients and backends that have taken too long, closed in the sweep.
//!
//! Who that is says [`crate::time_limits`]. An idle client is closed in the words of its server;
//! one whose statement or transaction is over its limit takes its backend along, because closing
//! that is what rolls back, and what no server refuses.

use crate::client::{Client, ClientState};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::log::{Event, Facts, note_of};
use crate::time_limits::{DISK_MAX, Late, Limits, TimeLimits};
use reactor::{Key, Net, Read};
use sql::lex::Server;
use wire::errors;

/// The first MySQL that says why it closes an idle connection (8.0.24).
const WORDS_SINCE: u32 = 80_024;
/// COM_QUIT, as the last that a client says.
const QUIT: [u8; 5] = [1, 0, 0, 0, 1];
/// Why a PROXY header may be missing: proxies are set so, or wait for their clients' first bytes.
const NO_HEADER: &str = "and none came in login_ms_max; let the proxy send one, and at once: one \
     that waits for the client's first bytes, as AWS Network Load Balancers do by default, waits \
     for ever, because the server speaks first";

impl<N: Net> Group<N> {
    /// Ends clients that have taken too long.
    pub(crate) fn end_late_clients(&mut self) {
        for (key, why) in self.time_limits().late_clients() {
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

    /// Who is under limits of time.
    pub(crate) fn time_limits(&mut self) -> TimeLimits<'_, N> {
        TimeLimits {
            net: &self.net,
            limits: Limits {
                settings: &self.settings,
                server: &self.shared.server,
            },
            clients: &self.clients,
            backends: &mut self.backends,
            inputs: &self.inputs,
        }
    }

    /// Gives up who acknowledges nothing, and ends statements and transactions that have taken
    /// longer than their user's may.
    pub(crate) fn keep_time_limits(&mut self) {
        let sweep = self.sweeps;
        for key in self.time_limits().silent_clients(sweep) {
            self.counts.too_slow += 1;
            self.close_later(key);
        }
        for lease in self.backends.keys() {
            if let Some((owner, refusal)) = self.time_limits().overdue(lease) {
                self.counts.too_slow += 1;
                self.log_time_limit(owner, &refusal);
                // The client's end is closed, and with it whatever is left on the backend.
                self.refuse_unasked(owner, &refusal);
                self.close_later(owner);
                self.abandon(lease, Some(owner));
                self.unbind(owner);
            }
        }
    }

    fn log_time_limit(&mut self, owner: Key, refusal: &Refusal) {
        let Some(omitted) = self.lines_of_losses.admit(self.net.now()) else {
            return;
        };
        let Some(client) = self.clients.get(owner) else {
            return;
        };
        let facts = Facts {
            client: Some(client.transport.peer(&self.net).into()),
            account: Some(self.settings.users[client.user as usize].name.as_bytes()),
            reason: Some(refusal.name()),
            omitted,
            ..Facts::default()
        };
        note_of(Event::TimeLimit, &facts, format_args!("{refusal}"));
    }
}
