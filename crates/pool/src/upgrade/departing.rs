//! Clients that go to another process next: their next command is left alone.
//!
//! The problem: a client that sends one statement right behind the other is hardly ever found
//! between two of them by who looks now and then. The mechanism: while a group hands over, a client
//! stands in a line here from the moment at which its statement has ended, before its next command
//! is looked at ([`departs`], which [`crate::client::pump::pump`] asks). What it has sent goes with
//! it; what has not been read waits in its socket. The next batch takes those in the line.
//!
//! Invariants: no more stand in line than a batch takes, so nobody waits for more than the batch
//! that is under way and the next; whoever stands there is idle, and closed as anybody is; who
//! cannot go after all is served on.

use crate::client::{Client, ClientState};
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::ClientId;
use crate::pair::next::Checkin;
use crate::statements::endings;
use crate::upgrade::departures::{BATCH_CLIENTS, Going};
use crate::upgrade::record::Stays;
use reactor::{Net, Time};

/// True if a client's next command is not looked at here: while the group hands over, it is put
/// in line, if it may go and there is room.
pub(crate) fn departs<N: Net>(parts: &mut Parts<N>, key: ClientId) -> bool {
    parts.client_side.departures.is_open && stands_in_line(parts, key)
}

/// Puts a client in line, if it may go and there is room.
fn stands_in_line<N: Net>(parts: &mut Parts<N>, key: ClientId) -> bool {
    if parts.client_side.departures.has(key) {
        return true;
    }
    let has_room = parts.client_side.departures.queue.len() < BATCH_CLIENTS;
    let departs = has_room && !matches!(goes(parts, key), Going::Not(_));
    if departs {
        let now = parts.net.now();
        parts.client_side.departures.queue.push((key, now));
    }
    departs
}

/// True if something is to be done about those in line.
pub(crate) fn has_departures<N: Net>(parts: &mut Parts<N>) -> bool {
    let count = parts.client_side.departures.queue.len();
    (0..count).any(|at| {
        let (key, _) = parts.client_side.departures.queue[at];
        !matches!(goes(parts, key), Going::Soon(_))
    })
}

/// Takes the first in line who may go now, with the moment since which it stands there. Those
/// before it who cannot go after all are served on.
pub(crate) fn next_departure<N: Net>(parts: &mut Parts<N>) -> Option<(ClientId, Time)> {
    let mut at = 0;
    while let Some(&(key, since)) = parts.client_side.departures.queue.get(at) {
        match goes(parts, key) {
            Going::Now => {
                parts.client_side.departures.queue.remove(at);
                return Some((key, since));
            }
            Going::Soon(_) => at += 1,
            Going::Not(_) => {
                parts.client_side.departures.queue.remove(at);
                parts.work.tasks.add(Task::Read(key));
            }
        }
    }
    None
}

/// True if a client may go now.
pub(crate) fn goes<N: Net>(parts: &mut Parts<N>, key: ClientId) -> Going {
    let Some(client) = parts.clients.get(key) else {
        return Going::Not(Stays::Busy);
    };
    let refused = &parts.client_side.departures.refused;
    if refused.contains(&(key, client.backend().is_some())) {
        return Going::Not(Stays::Refused);
    }
    let backend = client.backend_in(&parts.backends);
    let goes_along = backend.is_some_and(|backend| backend.goes_with(key));
    let stays = client.stays(goes_along);
    let is_read_back = |parts: &Parts<N>| {
        let view = parts.client_view(key);
        view.is_some_and(|view| view.is_read_back())
    };
    match stays {
        None => Going::Now,
        Some(why @ (Stays::Asks | Stays::Holding)) if is_read_back(parts) => Going::Soon(why),
        Some(why @ (Stays::Pinned | Stays::Holding)) if is_pending_first(parts, key) => {
            Going::Soon(why)
        }
        Some(why) => Going::Not(why),
    }
}

/// Notes that the other process does not take a client, with a backend or without.
pub(crate) fn refuse<N: Net>(parts: &mut Parts<N>, key: ClientId) {
    let bound = parts.clients.get(key).and_then(Client::backend);
    let has_backend = bound.is_some() || parts.server_side.migrating.has(key);
    let refused = &mut parts.client_side.departures.refused;
    refused.insert((key, has_backend));
}

/// True if the server owes a report of what an idle client has done on its backend, and is
/// asked for it: without that the backend cannot go.
fn is_pending_first<N: Net>(parts: &mut Parts<N>, key: ClientId) -> bool {
    let mysql = parts.shared.server.flavour.is_mysql();
    let client = parts.clients.get(key);
    let idle = client.filter(|client| client.state() == ClientState::Idle);
    let Some(backend_id) = idle.and_then(Client::backend) else {
        return false;
    };
    let backend = idle.and_then(|client| client.backend_in(&parts.backends));
    let Some(backend) = backend.filter(|backend| backend.session.owes_report(mysql)) else {
        return false;
    };
    if !backend.flight.is_empty() {
        return true;
    }
    let pair = parts.pair(key, backend_id);
    let next = pair.map(|mut pair| pair.checkin_before_leaving());
    let Some(next @ Checkin::Ask(_)) = next else {
        return false;
    };
    endings::follow(parts, key, backend_id, next);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{ForSession, InFlight, Purpose, Reports};
    use crate::errors::reasons::PinReason;
    use crate::group::Group;
    use crate::group::scripted::Scripted;
    use crate::group::tests::{self, NOW, backend, client};
    use crate::group::tokens::BackendId;
    use crate::scheduler::checkout;
    use session::statement::Explanation;
    use wire::command::ReplyShape;

    /// A group that hands over.
    fn group() -> Group<Scripted> {
        let mut group = tests::group();
        group.parts.client_side.departures.begin();
        group
    }

    /// A client that has a backend, which answers something of the pool's own if it `is_asked`.
    fn bound(group: &mut Group<Scripted>, is_asked: bool) -> (ClientId, BackendId) {
        let (key, backend) = tests::bound(group);
        if is_asked {
            let question = InFlight::own(Some(key), ForSession::Warnings, ReplyShape::Results);
            group
                .parts
                .backends
                .get_mut(backend)
                .unwrap()
                .flight
                .expect(question);
        }
        (key, backend)
    }

    #[test]
    fn who_is_at_rest_goes_now_alone_or_with_its_backend() {
        let mut group = group();
        let alone = client(&mut group);
        assert_eq!(goes(&mut group.parts, alone), Going::Now);
        let (key, backend_id) = bound(&mut group, false);
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        backend.session.transaction.note_begin_sent();
        assert_eq!(
            goes(&mut group.parts, key),
            Going::Now,
            "its transaction goes along"
        );
        let pinned = group.parts.clients.get_mut(key).unwrap();
        pinned
            .session
            .pins
            .add(PinReason::PreparedSchema, None, NOW.0);
        assert_eq!(
            goes(&mut group.parts, key),
            Going::Now,
            "and so does what pins it"
        );
    }

    #[test]
    fn who_is_only_asked_about_goes_when_that_is_answered() {
        let mut group = group();
        let (key, backend) = bound(&mut group, true);
        assert_eq!(goes(&mut group.parts, key), Going::Soon(Stays::Holding));
        group
            .parts
            .backends
            .get_mut(backend)
            .unwrap()
            .flight
            .take_answered();
        assert_eq!(goes(&mut group.parts, key), Going::Now);
    }

    #[test]
    fn what_the_server_owes_is_asked_for_first() {
        let mut group = group();
        let (key, backend_id) = bound(&mut group, false);
        let client = group.parts.clients.get_mut(key).unwrap();
        (client.session.pins).add(PinReason::PreparedSchema, None, NOW.0);
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        backend.session.reports = Reports::Due(Explanation::None);
        let asked = |group: &mut Group<Scripted>| {
            assert_eq!(goes(&mut group.parts, key), Going::Soon(Stays::Pinned));
            let flight = group.parts.backends.get(backend_id).unwrap().flight.iter();
            let asks = |command: &&InFlight| {
                matches!(command.purpose, Purpose::Session(ForSession::Reports(_)))
            };
            flight.filter(asks).count()
        };
        let first = asked(&mut group);
        assert!(first > 0, "it is asked for");
        assert_eq!(asked(&mut group), first, "and once");
    }

    #[test]
    fn whose_backend_is_busy_and_keeps_something_for_it_stays() {
        let mut group = group();
        let (in_transaction, backend_id) = bound(&mut group, true);
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        backend.session.transaction.note_begin_sent();
        assert_eq!(
            goes(&mut group.parts, in_transaction),
            Going::Not(Stays::Holding)
        );
        let (pinned, _) = bound(&mut group, true);
        let client = group.parts.clients.get_mut(pinned).unwrap();
        (client.session.pins).add(PinReason::PreparedSchema, None, NOW.0);
        assert_eq!(goes(&mut group.parts, pinned), Going::Not(Stays::Pinned));
    }

    #[test]
    fn who_runs_something_or_is_not_there_stays() {
        let mut group = group();
        let key = client(&mut group);
        let client = group.parts.clients.get_mut(key).unwrap();
        assert!(client.change_state(ClientState::Running, NOW));
        assert_eq!(goes(&mut group.parts, key), Going::Not(Stays::Busy));
        group.parts.clients.remove(key);
        assert_eq!(goes(&mut group.parts, key), Going::Not(Stays::Busy));
    }

    #[test]
    fn who_was_refused_is_looked_at_again_once_it_has_or_has_no_backend() {
        let mut group = group();
        let key = client(&mut group);
        refuse(&mut group.parts, key);
        assert_eq!(goes(&mut group.parts, key), Going::Not(Stays::Refused));
        let backend_id = backend(&mut group);
        assert!(checkout::bind(&mut group.parts, key, backend_id, None));
        assert_eq!(goes(&mut group.parts, key), Going::Now);
    }

    #[test]
    fn the_line_gives_who_may_go_now_and_serves_who_cannot_on() {
        let mut group = group();
        let ((soon, backend), not, now) = (
            bound(&mut group, true),
            client(&mut group),
            client(&mut group),
        );
        assert!([soon, not, now].map(|key| departs(&mut group.parts, key)) == [true; 3]);
        assert!(has_departures(&mut group.parts));
        let client = group.parts.clients.get_mut(not).unwrap();
        assert!(client.change_state(ClientState::Running, NOW));
        assert_eq!(next_departure(&mut group.parts), Some((now, NOW)));
        assert!(
            !group.parts.client_side.departures.has(not),
            "it is served on"
        );
        assert_eq!(next_departure(&mut group.parts), None);
        assert!(departs(&mut group.parts, soon) && !has_departures(&mut group.parts));
        group
            .parts
            .backends
            .get_mut(backend)
            .unwrap()
            .flight
            .take_answered();
        assert!(has_departures(&mut group.parts));
        assert_eq!(next_departure(&mut group.parts), Some((soon, NOW)));
    }

    #[test]
    fn no_more_stand_in_line_than_a_batch_takes() {
        let mut group = group();
        let clients: Vec<ClientId> = (0..=BATCH_CLIENTS).map(|_| client(&mut group)).collect();
        let departing = clients
            .iter()
            .filter(|key| departs(&mut group.parts, **key))
            .count();
        assert_eq!(departing, BATCH_CLIENTS);
        assert_eq!(
            group.parts.client_side.departures.end(),
            clients[..BATCH_CLIENTS]
        );
        assert!(
            !departs(&mut group.parts, clients[0]),
            "nobody goes any more"
        );
    }
}
