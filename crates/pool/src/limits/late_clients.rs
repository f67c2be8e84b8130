//! Clients and backends that have taken too long, closed in the sweep.
//!
//! They are found by [`crate::limits::timeouts`]. An idle client is closed in the words of its
//! server; one whose statement or transaction is over its limit takes its backend along, because
//! closing that is what rolls back, and what no server refuses.

use crate::backend::abandoned;
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::limits::timeouts::{Late, OverTime};
use crate::observe::audit::end;
use reactor::Net;
use sql::lex::Server;

/// Reason why a PROXY header may be missing: proxies are set so, or wait for their clients' first
/// bytes.
const NO_HEADER: &str = "and none came in login_ms_max; let the proxy send one, and at once: one \
     that waits for the client's first bytes, as AWS Network Load Balancers do by default, waits \
     for ever, because the server speaks first";

/// Ends clients that have taken too long; `sweep`: how many sweeps there have been.
pub(crate) fn end_late_clients<N: Net>(parts: &mut Parts<N>, sweep: u32) {
    for (key, why) in parts.time_limits().late_clients(sweep) {
        parts.observed.counts.too_slow += 1;
        match why {
            Late::Login => {
                (parts.answers()).refuse(key, &Refusal::TooSlow("the login took too long"))
            }
            Late::Header => {
                let refusal = Refusal::ProxyHeader(NO_HEADER.into());
                parts.failed_logins().note_refused(key, &refusal);
                parts.answers().refuse(key, &refusal);
            }
            Late::Idle => parts.answers().end_idle(key),
            Late::Spooled => {
                parts.unread().end_spooled(key);
                continue;
            }
            Late::Stalled => {
                parts.clients.note_end(key, end::STALLED);
                if matches!(parts.shared.server.flavour, Server::MariaDb(_)) {
                    parts.clients.reset_later(key, &mut parts.net);
                }
            }
        }
        parts.clients.close_later(key);
    }
}

/// Gives up who acknowledges nothing, and ends statements and transactions that have taken
/// longer than their user's may; `sweep`: how many sweeps there have been.
pub(crate) fn keep_time_limits<N: Net>(parts: &mut Parts<N>, sweep: u32) {
    let (due, asked) = parts.time_limits().probes(sweep);
    let due = due.into_iter().map(|key| (key, true));
    for (key, is_due) in due.chain(asked.into_iter().map(|key| (key, false))) {
        match parts.clients.get(key).map(|client| client.transport.sock()) {
            Some(sock) if is_due => parts.net.start_probing(sock),
            Some(sock) => parts.net.stop_probing(sock),
            None => {}
        }
    }
    for key in parts.time_limits().silent_clients(sweep) {
        parts.observed.counts.too_slow += 1;
        parts.clients.close_for(key, end::SILENT);
    }
    for backend in parts.backends.keys() {
        match parts.time_limits().overdue(backend) {
            None => {}
            Some(OverTime::Clients(owner, refusal)) => {
                parts.observed.counts.too_slow += 1;
                if let Some(identity) = parts.survey().identity(owner) {
                    (parts.observed.log).time_limit(parts.net.now(), &identity, &refusal);
                }
                abandoned::part_with_backend(parts, backend, owner, &refusal);
                parts.clients.close_later(owner);
            }
            Some(OverTime::Nobodys) => abandoned::abandon(parts, backend, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::keep_time_limits;
    use crate::backend::{InFlight, Purpose};
    use crate::client::ClientState;
    use crate::group::tests::{NOW, bound, group_with};
    use std::time::Duration;
    use wire::command::ReplyShape;

    #[test]
    fn who_is_pipelined_behind_a_statement_of_nobody_that_takes_too_long_runs_again() {
        let mut group = group_with("statement_ms_max = 1000");
        let (follower, backend_id) = bound(&mut group);
        let client = group.parts.clients.get_mut(follower).unwrap();
        assert!(client.change_state(ClientState::Running, NOW));
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        backend.binding.forget(follower);
        let sent = NOW;
        let statement = InFlight::own(None, Purpose::Statement, ReplyShape::Results);
        backend.flight.expect(InFlight { sent, ..statement });
        let owner = Some(follower);
        let kept = backend.flight.keep_for_followers(b"\x09\0\0\0\x03SELECT 1");
        backend.flight.expect(InFlight {
            owner,
            kept,
            ..statement
        });
        group.parts.net.now = NOW + Duration::from_millis(1000);
        keep_time_limits(&mut group.parts, 0);
        assert!(
            group.parts.backends.get(backend_id).is_some(),
            "it has its time"
        );
        group.parts.net.now = group.parts.net.now + Duration::from_millis(1);
        keep_time_limits(&mut group.parts, 0);
        assert!(group.parts.backends.get(backend_id).is_none());
        let client = group.parts.clients.get(follower).unwrap();
        assert_eq!((client.ended.is_closing(), client.backend()), (false, None));
        assert_eq!(
            (
                group.parts.observed.counts.pipelined_again,
                group.parts.observed.counts.too_slow
            ),
            (1, 0)
        );
    }
}
