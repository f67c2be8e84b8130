//! Clients and backends that have taken too long, closed in the sweep.
//!
//! They are found by [`crate::limits::timeouts`]. An idle client is closed in the words of its
//! server; one whose statement or transaction is over its limit takes its backend along, because
//! closing that is what rolls back, and what no server refuses.

use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::timeouts::{Late, OverTime};
use crate::observe::audit::end;
use reactor::Net;
use sql::lex::Server;
use wire::errors;

/// The first MySQL that says why it closes an idle connection (8.0.24).
const WORDS_SINCE: u32 = 80_024;
/// Reason why a PROXY header may be missing: proxies are set so, or wait for their clients' first
/// bytes.
const NO_HEADER: &str = "and none came in login_ms_max; let the proxy send one, and at once: one \
     that waits for the client's first bytes, as AWS Network Load Balancers do by default, waits \
     for ever, because the server speaks first";

impl<N: Net> Group<N> {
    /// Ends clients that have taken too long.
    pub(crate) fn end_late_clients(&mut self) {
        let sweep = self.sweeps;
        for (key, why) in self.time_limits().late_clients(sweep) {
            self.counts.too_slow += 1;
            match why {
                Late::Login => self
                    .answers()
                    .refuse(key, &Refusal::TooSlow("the login took too long")),
                Late::Header => {
                    let refusal = Refusal::ProxyHeader(NO_HEADER.into());
                    self.failed_logins().note_refused(key, &refusal);
                    self.answers().refuse(key, &refusal);
                }
                Late::Idle => self.end_idle(key),
                Late::Spooled => {
                    self.unread().end_spooled(key);
                    continue;
                }
                Late::Stalled => {
                    self.clients.note_end(key, end::STALLED);
                    if matches!(self.shared.server.flavour, Server::MariaDb(_)) {
                        self.clients.reset_later(key, &mut self.net);
                    }
                }
            }
            self.clients.close_later(key);
        }
    }

    /// Closes an idle client in the words of the server.
    pub(crate) fn end_idle(&mut self, key: ClientId) {
        self.counts.idle_closed += 1;
        self.clients.note_end(key, end::IDLE);
        match self.shared.server.flavour {
            Server::MariaDb(_) => return self.clients.reset_later(key, &mut self.net),
            Server::MySql(WORDS_SINCE..) => {}
            Server::MySql(_) | Server::Unknown => return self.clients.close_later(key),
        }
        if let Some(client) = self.clients.get_mut(key) {
            // It answers nothing.
            client.set_seq(0);
        }
        self.answers()
            .error(key, errors::CLIENT_INACTIVE, errors::CLIENT_INACTIVE_WORDS);
        self.leave(key);
    }

    /// Gives up who acknowledges nothing, and ends statements and transactions that have taken
    /// longer than their user's may.
    pub(crate) fn keep_time_limits(&mut self) {
        let sweep = self.sweeps;
        let (due, asked) = self.time_limits().probes(sweep);
        for client in due.into_iter().filter_map(|key| self.clients.get(key)) {
            self.net.start_probing(client.transport.sock());
        }
        for client in asked.into_iter().filter_map(|key| self.clients.get(key)) {
            self.net.stop_probing(client.transport.sock());
        }
        for key in self.time_limits().silent_clients(sweep) {
            self.counts.too_slow += 1;
            self.clients.close_for(key, end::SILENT);
        }
        for backend in self.backends.keys() {
            match self.time_limits().overdue(backend) {
                None => {}
                Some(OverTime::Clients(owner, refusal)) => {
                    self.counts.too_slow += 1;
                    if let Some(identity) = self.survey().identity(owner) {
                        self.log.time_limit(self.net.now(), &identity, &refusal);
                    }
                    self.part_with_backend(backend, owner, &refusal);
                    self.clients.close_later(owner);
                }
                Some(OverTime::Nobodys) => self.abandon(backend, None),
            }
        }
    }

    /// Ends whatever is left on a client's backend, and closes the client once it has taken what it
    /// was answered, and why.
    pub(crate) fn part_with_backend(
        &mut self,
        backend: BackendId,
        owner: ClientId,
        refusal: &Refusal,
    ) {
        if let Some(client) = self.clients.get_mut(owner) {
            client.begin_unasked();
        }
        self.refuse_and_leave(owner, refusal);
        self.abandon(backend, Some(owner));
        self.clients.unbind(owner, &mut self.backends);
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::{InFlight, Purpose};
    use crate::client::ClientState;
    use crate::group::tests::{NOW, bound, group_with};
    use std::time::Duration;
    use wire::command::ReplyShape;

    #[test]
    fn who_is_pipelined_behind_a_statement_of_nobody_that_takes_too_long_runs_again() {
        let mut group = group_with("statement_ms_max = 1000");
        let (follower, backend_id) = bound(&mut group);
        let client = group.clients.get_mut(follower).unwrap();
        assert!(client.change_state(ClientState::Running, NOW));
        let backend = group.backends.get_mut(backend_id).unwrap();
        backend.binding.forget(follower);
        let sent = NOW;
        let statement = InFlight::own(None, Purpose::Statement, ReplyShape::Results);
        backend.expect(InFlight { sent, ..statement });
        let owner = Some(follower);
        let kept = backend.keep_for_followers(b"\x09\0\0\0\x03SELECT 1");
        backend.expect(InFlight {
            owner,
            kept,
            ..statement
        });
        group.net.now = NOW + Duration::from_millis(1000);
        group.keep_time_limits();
        assert!(group.backends.get(backend_id).is_some(), "it has its time");
        group.net.now = group.net.now + Duration::from_millis(1);
        group.keep_time_limits();
        assert!(group.backends.get(backend_id).is_none());
        let client = group.clients.get(follower).unwrap();
        assert_eq!((client.is_closing(), client.backend()), (false, None));
        assert_eq!(
            (group.counts.pipelined_again, group.counts.too_slow),
            (1, 0)
        );
    }
}
