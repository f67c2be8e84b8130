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

use crate::client::{ClientState, Handled, attributes, leaving};
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::shared::Order;
use crate::group::tasks::Task;
use crate::group::tokens::{ClientId, KillConnectionId};
use crate::observe::audit::end;
use crate::scheduler::queueing;
use crate::statements::kill::connection::{Around, Ended, KillConnection};
use crate::statements::kill::fate::Fate;
use crate::statements::kill::jobs::{Asker, KillAsk, KillEnd};
use crate::statements::kill::meaning::{Killer, Meant};
use crate::statements::{endings, start, unanswered};
use reactor::{Event, Net};
use session::statement::Statement;
use sql::kill::Kill;
use std::time::Duration;
use wire::command::{Command, ReplyShape};
use wire::errors;
use wire::packet::HEADER_LEN;

/// A KILL that nobody has answered after the time for a dial and this is answered with an error.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Handles a client's KILL; `None`: in words that cannot be read for certain.
pub(crate) fn on_kill<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    message: &[u8],
    kill: Option<Kill>,
) -> Handled {
    let Some(kill) = kill else {
        return parts.answers().refuse_counted(key, &Refusal::Kill);
    };
    if unanswered::awaits_answers(parts, key) {
        return parts.waiters().wait_outside(key);
    }
    let Some(client) = parts.clients.get(key) else {
        return Handled::Used;
    };
    let killer = Killer {
        asker: Asker {
            group: parts.index,
            killer: key,
        },
        id: client.identity.id(),
        user: &parts.backend_pools.pools[client.pool as usize].key.user,
    };
    let (group, ask) = match killer.means(kill, &parts.shared) {
        Meant::Client { group, ask } => (group, ask),
        Meant::Itself => return kill_self(parts, key, message, kill.query),
        Meant::Backend => return parts.answers().refuse_counted(key, &Refusal::KillBackend),
        Meant::Elsewhere => {
            let reply = match message.get(HEADER_LEN) == Some(&Command::Query.byte()) {
                true => ReplyShape::Results,
                false => ReplyShape::Status,
            };
            return start::start(parts, key, message, Statement::plain(reply));
        }
    };
    let end = if group == parts.index {
        kill_anywhere(parts, &ask)
    } else {
        (parts.work.turn_output).send(group, Order::Kill(Box::new(ask)));
        None
    };
    match end {
        Some(end) => parts.answers().killed(key, &end),
        None => {
            let now = parts.net.now();
            parts.clients.enter(key, ClientState::Asking, now);
        }
    }
    Handled::Used
}

/// Answers a client that ends itself: for its own connection it gets the error that its server
/// would give, for its own statement it hears it from the server, as any error: it is asked
/// about by the next statement.
fn kill_self<N: Net>(parts: &mut Parts<N>, key: ClientId, message: &[u8], query: bool) -> Handled {
    if query {
        let Some(client) = parts.clients.get(key) else {
            return Handled::Used;
        };
        let text =
            attributes::reworded(client.capabilities, message, b"KILL QUERY CONNECTION_ID()");
        return start::start(parts, key, &text, Statement::plain(ReplyShape::Status));
    }
    if parts.shared.server.flavour.is_mysql() {
        parts.answers().refuse(key, &Refusal::Interrupted);
    } else {
        (parts.answers()).error(key, errors::CONNECTION_KILLED, "Connection was killed");
    }
    parts.clients.note_end(key, end::KILLED);
    leaving::leave(parts, key);
    Handled::Used
}

/// Tells whoever asked what became of it; the pool itself does not ask.
pub(crate) fn answer_asker<N: Net>(parts: &mut Parts<N>, asker: Option<Asker>, end: KillEnd) {
    let Some(asker) = asker else { return };
    let fleet = parts.shared.connections.fleet.as_ref();
    if fleet.is_some_and(|fleet| fleet.answers(asker, &end)) {
        return;
    }
    if asker.group == parts.index {
        kill_ends(parts, asker.killer, &end);
    } else {
        let message = Order::Killed(asker.killer, end);
        parts.work.turn_output.send(asker.group, message);
    }
}

/// Answers this group's client that waits for a KILL that has come to its end.
pub(crate) fn kill_ends<N: Net>(parts: &mut Parts<N>, killer: ClientId, end: &KillEnd) {
    let now = parts.net.now();
    let client = parts.clients.get(killer);
    if client.is_some_and(|client| client.state() == ClientState::Asking)
        && parts.clients.enter(killer, ClientState::Idle, now)
    {
        parts.answers().killed(killer, end);
        parts.work.tasks.add(Task::Read(killer));
    }
}

/// Ends a client of this group, or looks for it in the other pools of the fleet. `None`: the
/// end comes later.
pub(crate) fn kill_anywhere<N: Net>(parts: &mut Parts<N>, ask: &KillAsk) -> Option<KillEnd> {
    let end = kill(parts, ask);
    let fleet = parts.shared.connections.fleet.as_ref();
    let is_unknown = matches!(end, Some(KillEnd::Unknown(_)));
    match fleet.filter(|fleet| is_unknown && fleet.pass_on(ask)) {
        Some(_) => None,
        None => end,
    }
}

/// Ends a client of this group, or its statement. `None`: the server must be asked first.
pub(crate) fn kill<N: Net>(parts: &mut Parts<N>, ask: &KillAsk) -> Option<KillEnd> {
    let fate = ask.fate(&parts.clients, &parts.backends, &parts.backend_pools);
    let identity = |victim| parts.survey().identity(victim);
    if let Some(identity) = fate.victim().and_then(identity) {
        (parts.observed.log).killed(parts.net.now(), &identity, ask.query, &ask.said_by());
    }
    let end = match ask.is_of_administrator() {
        false => end::KILLED,
        true => end::KILLED_AT_CONSOLE,
    };
    match fate {
        Fate::Ended(end) => return Some(end),
        Fate::GiveUp(victim) => queueing::give_up(parts, victim, &Refusal::Interrupted),
        Fate::Instead(victim) => {
            if let Some(client) = parts.clients.get_mut(victim) {
                client.ended.interrupt();
            }
        }
        Fate::LeavePipeline {
            victim,
            backend: backend_id,
        } => {
            let now = parts.net.now();
            let backend = parts.backends.get_mut(backend_id);
            if backend.is_some_and(|backend| backend.flight.leave_to_followers(victim, now)) {
                parts.clients.unbind(victim, &mut parts.backends);
                parts.answers().refuse(victim, &Refusal::Interrupted);
                parts.return_to_idle(victim);
            }
        }
        Fate::Close(victim) => parts.clients.close_for(victim, end),
        Fate::Interrupt {
            backend: backend_id,
            job,
        } => {
            if let Some(backend) = parts.backends.get_mut(backend_id) {
                backend.flight.close_pipeline();
            }
            parts.server_side.kill_connection.push(job);
            return None;
        }
        Fate::CloseWith {
            victim,
            backend: backend_id,
            job,
        } => {
            parts.clients.close_for(victim, end);
            parts.clients.unbind(victim, &mut parts.backends);
            parts.closer().retire(backend_id);
            parts.server_side.kill_connection.push(job);
            return None;
        }
    }
    Some(KillEnd::Done)
}

/// The KILLs that go to the server, and what they need.
fn lend_kills<N: Net>(parts: &mut Parts<N>) -> (&mut KillConnection<N::Sock>, Around<'_, N>) {
    let around = Around {
        net: &mut parts.net,
        shared: &parts.shared,
        settings: &parts.settings,
        pools: &parts.backend_pools,
        backends: &mut parts.backends,
    };
    (&mut parts.server_side.kill_connection, around)
}

/// Begins the next KILL, if none is under way. At the end of a turn, when no client's
/// commands are being handled: it may answer one.
pub(crate) fn next_kill<N: Net>(parts: &mut Parts<N>) {
    while let (kills, mut around) = lend_kills(parts)
        && let Some(ended) = kills.go_on(&mut around)
    {
        kill_carried(parts, ended);
    }
}

/// Handles an event of the socket of the connection that carries a KILL.
pub(crate) fn on_kill_connection<N: Net>(
    parts: &mut Parts<N>,
    key: KillConnectionId,
    event: Event,
) {
    let (kills, mut around) = lend_kills(parts);
    let mut ended = kills.on_event(&mut around, key, event);
    while let Some(one) = ended {
        kill_carried(parts, one);
        let (kills, mut around) = lend_kills(parts);
        ended = (kills.go_on(&mut around)).or_else(|| kills.read(&mut around, key));
    }
}

/// Ends a KILL that was answered, or never will be: the backend goes on, and the asker gets the
/// outcome.
fn kill_carried<N: Net>(parts: &mut Parts<N>, ended: Ended) {
    let backend_id = ended.job.aim.map(|aim| aim.backend);
    if let Some(backend_id) = backend_id
        && let Some(backend) = parts.backends.get_mut(backend_id)
    {
        backend.reuse.thaw(ended.spoils);
        endings::settle(parts, backend_id);
        endings::resume(parts, backend_id);
    }
    answer_asker(parts, ended.job.asker, ended.end);
}

/// KILLs that nobody has answered in time.
pub(crate) fn drop_late_kills<N: Net>(parts: &mut Parts<N>) {
    let (now, longest) = (parts.net.now(), parts.settings.dial_max);
    if let Some(ended) = parts.server_side.kill_connection.drop_late(now, longest) {
        kill_carried(parts, ended);
        next_kill(parts);
    }
    let late = |client: &crate::client::Client<N::Sock>| {
        client.state() == ClientState::Asking && now.since(client.since()) > longest + ANSWER_MAX
    };
    for key in parts.clients.keys_of(late) {
        let why = format!("no answer within {} ms", (longest + ANSWER_MAX).as_millis());
        kill_ends(parts, key, &KillEnd::Failed(why));
    }
}
