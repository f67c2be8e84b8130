//! Replies: what arrives from the server, and what that means for the client that waits for it.
//!
//! The oldest command in flight owns the bytes that arrive. A client's statement is relayed as it
//! comes ([`crate::backend::relay`]); replies to the pool's own commands (login, preparation,
//! restoring) are collected and read. What follows a complete reply stands in
//! `statements/endings.rs`, what follows the loss of a backend in `backend/losses.rs`. The backends
//! to read, and how much of each, are chosen in [`crate::backend::input`]. Bytes for a backend go
//! out at the end of the turn, all in one write ([`crate::backend::output`]).

use crate::auth::logins;
use crate::backend::handshake::LoginStep;
use crate::backend::input::{FromServer, Pace};
use crate::backend::openings::Opened;
use crate::backend::output::Written;
use crate::backend::overdue::why_broken;
use crate::backend::pools::DialEnd;
use crate::backend::relay::{Stop, WHOLE_MAX};
use crate::backend::{
    Backend, BackendState, ForBackend, ForSession, InFlight, Purpose, READ_LEN_LONG, abandoned,
    dialling, losses, session_reset,
};
use crate::client::lost_backend::{LossCause, REFUSED};
use crate::client::{Client, ClientState};
use crate::cluster::leaving_readers;
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::pair::internal_replies::{After, OwnAnswer};
use crate::pair::next::Checkin;
use crate::pair::passing::Passing;
use crate::scheduler::bulk::Piece;
use crate::scheduler::checkout;
use crate::server::tls::words_of;
use crate::statements::endings;
use reactor::{Event, Net};
use session::reply_summary::ReplySummary;
use std::io::{self, ErrorKind};
use wire::checked::Breach;
use wire::errors::refuses_writes;
use wire::packet::{Frame, HEADER_LEN, Header, frame};
use wire::reply::{ERR, ErrPacket};

/// True if what arrives is no answer to the oldest command in flight: packets of an answer go on
/// counting from those of the command, which took at least number 0 ("Sequence ID" in MySQL's
/// protocol documentation), so at a reply's very first packet number 0 is the server's own word.
fn is_unasked<S>(backend: &Backend<S>, command: &InFlight, input: &[u8]) -> bool {
    !backend.flight.has_begun()
        && command.reply.reply().is_at_start()
        && Header::read(input).is_some_and(|header| header.seq == 0)
}

/// Words of the log for a server that broke the protocol by this packet, with its own if it is an
/// error.
fn words_of_breach(breach: &Breach, input: &[u8]) -> String {
    let words = last_words(input).map_or_else(String::new, |words| format!(" ({words})"));
    format!("the server broke the protocol: {breach}{words}")
}

/// True if one of these packets is the error of a server that takes no writes. Neither definitions
/// nor rows begin with its byte.
fn has_refusal(mut input: &[u8]) -> bool {
    while let Frame::Whole { total, .. } = frame(input) {
        let payload = &input[HEADER_LEN..total];
        if payload.first() == Some(&ERR)
            && ErrPacket::read(payload).is_ok_and(|err| refuses_writes(err.code))
        {
            return true;
        }
        input = &input[total..];
    }
    false
}

/// True where the rest of an ERR packet may still be on its way.
fn may_be_last_words(input: &[u8]) -> bool {
    let first = input.get(HEADER_LEN);
    matches!(frame(input), Frame::Partial { total } if total <= WHOLE_MAX)
        && first.is_none_or(|first| *first == wire::reply::ERR)
}

/// The error in a packet that nobody asked for; `None` where it is none.
fn last_words(input: &[u8]) -> Option<String> {
    if let Frame::Whole { total, .. } = frame(input)
        && let Ok(err) = ErrPacket::read(&input[HEADER_LEN..total])
        && input.get(HEADER_LEN) == Some(&ERR)
    {
        let text = String::from_utf8_lossy(err.message);
        return Some(format!(
            "the server closed the connection: error {}: {text}",
            err.code
        ));
    }
    None
}

/// Handles an event of a backend's socket.
pub(crate) fn on_backend<N: Net>(parts: &mut Parts<N>, backend_id: BackendId, event: Event) {
    let Some(backend) = parts.backends.get_mut(backend_id) else {
        return;
    };
    backend.transport.note(event);
    if backend.state() == BackendState::Dialling {
        if let Err(error) = parts.net.connected(backend.transport.sock()) {
            let address = parts.shared.upstream.words(backend.at());
            let why = format!("cannot connect to {address}: {error}");
            return dialling::dial_failed(parts, backend_id, &why, DialEnd::Unreached);
        }
        // Says for whom it is dialled, in front of its login.
        let header = backend.take_header();
        if !header.is_empty() {
            parts.backend_writer().send(backend_id, &header);
        }
    }
    if event.writable {
        let written = parts.backend_writer().write(backend_id);
        after_writing(parts, backend_id, written);
    }
    read_or_line_up(parts, backend_id);
}

/// Reads what a backend has sent; a long reply waits for the group's bulk work.
pub(crate) fn read_or_line_up<N: Net>(parts: &mut Parts<N>, backend: BackendId) {
    match parts.backend_reader().pace(backend) {
        None => {}
        Some(pace) if pace.is_long() => parts.work.bulk.push(Piece::Reply(backend)),
        Some(pace) => read_at(parts, backend, pace),
    }
}

/// Reads what a backend has sent, as long as its client takes it, and a share of it at most.
pub(crate) fn read_backend<N: Net>(parts: &mut Parts<N>, backend_id: BackendId) {
    if let Some(pace) = parts.backend_reader().pace(backend_id) {
        read_at(parts, backend_id, pace);
    }
}

fn read_at<N: Net>(parts: &mut Parts<N>, backend_id: BackendId, pace: Pace) {
    let mut buffer = std::mem::take(&mut parts.work.lent.from_backend);
    let Pace { share, mut len } = pace;
    let mut taken = 0;
    while taken < share {
        match parts.backend_reader().read(backend_id, &mut buffer, len) {
            FromServer::Bytes(n) => {
                let used = digest(parts, backend_id, &buffer[..n]);
                (parts.backend_reader()).give_back(backend_id, &buffer[used..n]);
                taken += len;
                len = READ_LEN_LONG;
                continue;
            }
            FromServer::Nothing => {}
            FromServer::Blocked(step) => login_step(parts, backend_id, step),
            FromServer::End => losses::lose(parts, backend_id, "the server closed the connection"),
            FromServer::Failed(error) => backend_broken(parts, backend_id, &error),
        }
        break;
    }
    parts.work.lent.from_backend = buffer;
    parts.backend_reader().put_off(backend_id);
}

/// Writes to every backend that has something in line.
pub(crate) fn flush_dirty<N: Net>(parts: &mut Parts<N>) {
    while let Some(key) = parts.server_side.dirty.pop() {
        write_on(parts, key);
    }
}

/// Goes on writing to a backend that has had its share of an earlier turn.
pub(crate) fn write_on<N: Net>(parts: &mut Parts<N>, key: BackendId) {
    let written = parts.backend_writer().write_on(key);
    after_writing(parts, key, written);
}

/// Handles the outcome of a write to a backend: closes a broken one, and reads its client's
/// file on.
fn after_writing<N: Net>(parts: &mut Parts<N>, key: BackendId, written: Written) {
    if let Some(error) = written.broken {
        backend_broken(parts, key, &error);
    }
    // The server has taken what its client had sent of a file: the client is read again.
    if let Some(key) = written.fed
        && let Some(client) = parts.clients.get_mut(key)
    {
        // It could not be heard meanwhile.
        client.heard_from(parts.net.now());
        parts.work.bulk.push(Piece::Client(key));
    }
}

/// Closes a backend whose connection cannot be read or written any more.
pub(crate) fn backend_broken<N: Net>(parts: &mut Parts<N>, backend: BackendId, error: &io::Error) {
    let of = parts.backends.get(backend);
    let state = of.map(Backend::state);
    let tls = of.and_then(|it| it.dial.as_ref()?.tls());
    match words_of(error, tls) {
        // Another attempt finds the same certificate, until somebody changes something.
        Some(why) if state == Some(BackendState::Dialling) => {
            dialling::dial_failed(parts, backend, &why, DialEnd::Account);
        }
        Some(why) => losses::lose(parts, backend, &why),
        None => {
            let why = why_broken(error, parts.settings.backend_silence_max);
            match error.kind() {
                ErrorKind::ConnectionReset => {
                    losses::lose_as(parts, backend, &why, LossCause::Reset)
                }
                _ => losses::lose(parts, backend, &why),
            }
        }
    }
}

/// Uses up what has arrived; returns how many bytes were used.
fn digest<N: Net>(parts: &mut Parts<N>, backend_id: BackendId, input: &[u8]) -> usize {
    let mut at = 0;
    while at < input.len() {
        match digest_reply(parts, backend_id, &input[at..]) {
            0 => break,
            used => at += used,
        }
    }
    at
}

/// Goes on with the login of a backend.
fn login_step<N: Net>(parts: &mut Parts<N>, backend_id: BackendId, step: LoginStep) {
    match step {
        LoginStep::Wait => {}
        LoginStep::Send(out) => parts.backend_writer().send(backend_id, &out),
        LoginStep::In => match parts.openings().logged_in(backend_id) {
            Some(out) => parts.backend_writer().send(backend_id, &out),
            None => losses::lose(parts, backend_id, "the pool lost track of this connection"),
        },
        LoginStep::Failed(why, end) => {
            dialling::dial_failed(parts, backend_id, &why, end);
        }
        LoginStep::Broken(error) => backend_broken(parts, backend_id, &error),
    }
}

/// Passes on what has come of the oldest reply, or of the login; returns the bytes used.
pub(crate) fn digest_reply<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    input: &[u8],
) -> usize {
    let Some(backend) = parts.backends.get_mut(backend_id) else {
        return input.len();
    };
    if backend.state() == BackendState::Dialling {
        let of = &parts.backend_pools.pools[backend.pool].key;
        let (used, step) = backend.take_login(&mut parts.net, of, input);
        login_step(parts, backend_id, step);
        return used;
    }
    let oldest = backend.flight.front();
    let is_awaited = oldest.is_some();
    let Some(&command) = oldest.filter(|command| !is_unasked(backend, command, input)) else {
        // A server speaks unasked only to say why it is about to close.
        match (last_words(input), is_awaited) {
            (Some(words), _) => losses::lose(parts, backend_id, &words),
            (None, _) if may_be_last_words(input) => {}
            (None, true) => losses::lose_as(
                parts,
                backend_id,
                &words_of_breach(&Breach::NUMBERED_0, input),
                LossCause::Breach,
            ),
            (None, false) => losses::lose(
                parts,
                backend_id,
                "the server sent bytes that nobody had asked for",
            ),
        }
        return 0;
    };
    let is_relayed = command.purpose == Purpose::Statement;
    let is_begun = !command.reply.reply().is_at_start();
    if backend.is_reader() && is_relayed && !is_begun && command.kept > 0 && has_refusal(input) {
        // Code that no text showed writes. It has changed nothing here.
        leaving_readers::leave_reader(parts, backend_id, REFUSED);
        return 0;
    }
    // Who has gone does not wait for it: it has been counted.
    let owner = command.owner.filter(|_| is_relayed);
    let mut out = std::mem::take(&mut parts.work.lent.out);
    out.clear();
    let mut passing = Passing {
        client: owner.and_then(|owner| parts.clients.get_mut(owner)),
        backend,
        server: &parts.shared.server,
    };
    let fed = passing.pass_on(command.reply, input, &mut out);
    if command.purpose.is_collected() {
        backend.flight.collect(&out);
    }
    let lengths = backend.flight.check_lengths(is_relayed);
    if let Some(owner) = owner {
        // Whoever hears of a write has to find it, on any connection.
        let changes = &backend.flight.reply_so_far().changes;
        if parts.shared.cluster.is_some() && !changes.is_empty() {
            let changes = changes.clone();
            parts.readers().note_writes(owner, &changes);
        }
        parts.client_writer().send(owner, &out);
    }
    parts.work.lent.out = out;
    let mut answered = None;
    let used = match fed.and_then(|fed| Ok(lengths.map(|()| fed)?)) {
        Ok((used, stop)) => {
            match stop {
                Stop::Hungry => {}
                Stop::File => ask_for_file(parts, backend_id),
                Stop::Done => answered = finish(parts, backend_id),
            }
            used
        }
        Err(error) => {
            let why = words_of_breach(&error, input);
            losses::lose_as(parts, backend_id, &why, LossCause::Breach);
            0
        }
    };
    if let Some(backend) = parts.backends.get_mut(backend_id) {
        (answered.into_iter()).for_each(|it| backend.flight.give_room_back(it));
        backend.count_kept(&parts.client_side.retained.in_transit);
        if backend.is_read_in_vain(parts.net.now()) {
            abandoned::abandon(parts, backend_id, None);
        }
    }
    used
}

fn ask_for_file<N: Net>(parts: &mut Parts<N>, backend_id: BackendId) {
    let now = parts.net.now();
    let backend = parts.backends.get(backend_id);
    let backend = backend.filter(|backend| backend.client_in(&parts.clients).is_some());
    let Some(owner) = backend.and_then(Backend::client) else {
        let why = "the client left while the server waited for its file";
        return losses::lose(parts, backend_id, why);
    };
    if parts.clients.enter(owner, ClientState::Feeding, now) {
        // The file may have come with the statement already.
        parts.work.tasks.add(Task::Read(owner));
    }
}

/// Relays a payload of the client's local file to the server; an empty one is the file's end.
/// One of several packets is a single payload here as it is on the server.
pub(crate) fn on_file_packet<N: Net>(parts: &mut Parts<N>, key: ClientId, message: &[u8]) {
    let now = parts.net.now();
    let Some(client) = parts.clients.get_mut(key) else {
        return;
    };
    let Some(backend) = client.backend() else {
        return;
    };
    let last = message.len() == HEADER_LEN;
    if last && !client.change_state(ClientState::Running, now) {
        return parts.clients.close_later(key);
    }
    parts.backend_writer().send(backend, message);
}

/// Handles the complete reply to the oldest command in flight; returns what it has been.
pub(crate) fn finish<N: Net>(parts: &mut Parts<N>, backend_id: BackendId) -> Option<ReplySummary> {
    let backend = parts.backends.get_mut(backend_id)?;
    let (bound_to, pool) = (backend.client(), backend.pool);
    let is_feeding = |client: &Client<_>| client.state() == ClientState::Feeding;
    if backend.client_in(&parts.clients).is_some_and(is_feeding) {
        // What the client still sends of its file would be taken for commands.
        let why = "the server answered before the end of the file";
        losses::lose(parts, backend_id, why);
        return None;
    }
    let command = backend.flight.take_answered()?;
    // The next reply may be here already, and its client was last looked at when it sent its
    // statement.
    if let Some(next) = backend.flight.front().and_then(|next| next.owner) {
        parts.clients.prefetch(next);
    }
    if let Some(status) = backend.flight.reply_so_far().status {
        backend.session.transaction.note_status(status);
    }
    if command.purpose == ForSession::Begin.into() {
        backend.session.transaction.note_begin_answered();
    }
    let (mut summary, collected) = backend.flight.take_reply(parts.net.now());
    if command.purpose == Purpose::Statement && summary.len < parts.shared.lengths.long_reply {
        parts.work.bulk.note_others(parts.net.now());
    }
    summary.due = backend.session.reports.due();
    if backend.flight.is_empty() {
        backend.flight.close_pipeline();
        let wanting = parts.server_side.running.ends(backend);
        parts.work.turn_output.wake(wanting.into_iter());
    }
    let client = command.owner.and_then(|owner| parts.clients.get(owner));
    if backend.flight.sends_eofs() {
        let mysql = parts.shared.server.flavour.is_mysql();
        let client = client.map(|client| &client.session);
        (backend.session).note_reports(&command, &summary, client, mysql);
    }
    if summary.error.is_some() {
        let may_commit = client.is_some_and(|client| client.session.statement.may_commit());
        let may_commit = may_commit && command.purpose == Purpose::Statement;
        backend.session.transaction.note_failed(may_commit);
    }
    let area = client.map(|client| client.session.statement.area);
    (backend.session).note_conditions_left(&command, &summary, area);
    let done = (command.purpose == Purpose::Statement)
        .then(|| endings::note_done(backend, client, &parts.backend_pools, &command, &summary));
    let is_own =
        command.purpose != Purpose::Statement && command.purpose != ForSession::SetAgain.into();
    if is_own && !losses::may_go_on(parts, backend_id, bound_to, &command) {
        return None;
    }
    if matches!(command.purpose, Purpose::Session(ForSession::Reports(_)))
        && let Some(owner) = command.owner
        && parts.shared.cluster.is_some()
    {
        parts.readers().note_writes(owner, &summary.changes);
    }
    match command.purpose {
        Purpose::Statement => {
            if let Some(done) = done {
                endings::statement_done(parts, backend_id, &command, &summary, done);
            }
        }
        Purpose::Session(purpose) => {
            let pool = parts.backend_pools.pools.get(pool);
            let answer = OwnAnswer {
                summary: &summary,
                collected,
                extended: pool.map_or(0, |pool| pool.key.extended),
            };
            session_answered(parts, backend_id, command.owner, purpose, answer)
        }
        Purpose::Backend(purpose) => backend_answered(
            parts,
            backend_id,
            command.owner,
            purpose,
            &summary,
            &collected,
        ),
    }
    Some(summary)
}

/// Handles the answer to a command for a backend.
fn backend_answered<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    owner: Option<ClientId>,
    command: ForBackend,
    summary: &ReplySummary,
    collected: &[u8],
) {
    match command {
        ForBackend::Prepare(fresh) => {
            let mut openings = parts.openings();
            match openings.answered(backend_id, fresh, summary, collected) {
                Opened::Waits => {}
                Opened::Idle => checkout::offer(parts, backend_id),
                Opened::Failed(why, end) => dialling::dial_failed(parts, backend_id, &why, end),
                Opened::Outdated => parts.closer().retire(backend_id),
                Opened::Astray => {
                    losses::lose(parts, backend_id, "the pool lost track of this connection")
                }
            }
        }
        ForBackend::Schema => {
            if let Some(backend) = parts.backends.get_mut(backend_id)
                && summary.error.is_some()
            {
                backend.schema_not_set(&mut parts.known.sessions);
            }
        }
        ForBackend::Clearing => {}
        ForBackend::CatchUp => {
            leaving_readers::caught_up(parts, backend_id, owner, (summary, collected))
        }
        ForBackend::GiveBack => {
            // It holds nothing any more. Where the server knows no such command, the end of the
            // connection does the same, if later.
            parts.closer().retire(backend_id);
            if let Some(key) = owner {
                parts.clients.unbind(key, &mut parts.backends);
                parts.return_to_idle(key);
            }
        }
        ForBackend::RollBack => {
            let backend = parts.backends.get_mut(backend_id);
            match backend.is_some_and(|backend| backend.session.is_rolled_back(summary)) {
                true => checkout::release(parts, backend_id),
                false => parts.closer().retire(backend_id),
            }
        }
        ForBackend::ResetSession(last) => {
            session_reset::session_was_reset(parts, backend_id, (owner, last), summary, collected)
        }
    }
}

/// Handles the answer to a command for a client's session: does with the client and the backend
/// what follows.
fn session_answered<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    owner: Option<ClientId>,
    command: ForSession,
    answer: OwnAnswer<'_>,
) {
    let (summary, now) = (answer.summary, parts.net.now());
    let pair = owner.and_then(|owner| Some((owner, parts.pair(owner, backend_id)?)));
    let Some((owner, mut pair)) = pair else {
        return match command {
            ForSession::Warnings => endings::settle(parts, backend_id),
            _ => parts.closer().retire(backend_id),
        };
    };
    match pair.answered(command, answer) {
        After::Nothing => {}
        After::Settle => endings::settle(parts, backend_id),
        After::GoOn => endings::follow(parts, owner, backend_id, Checkin::GoOn),
        After::Stands => {
            if logins::stands_restored(parts, owner) {
                parts.work.tasks.add(Task::Read(owner));
                parts.work.tasks.add(Task::Settle(backend_id));
            }
        }
        After::Ready => {
            if parts.clients.enter(owner, ClientState::Idle, now) {
                parts.work.tasks.add(Task::Read(owner));
                parts.work.tasks.add(Task::Settle(backend_id));
            }
        }
        After::Replay(error) => {
            if !parts.clients.enter(owner, ClientState::Idle, now) {
                return;
            }
            parts.answers().replay(owner, &error);
            if let Some(client) = parts.clients.get_mut(owner) {
                client.drop_command();
                client.session.last.failed_ahead(summary);
            }
            endings::settle(parts, backend_id);
            parts.work.tasks.add(Task::Read(owner));
        }
        After::Unrestored(behind) => {
            if let Some((code, text)) = &summary.error {
                losses::restore_failed(parts, owner, backend_id, behind, (*code, text));
            }
        }
        After::Lose(why) => losses::lose(parts, backend_id, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::{NOW, bound, group};

    #[test]
    fn a_preparation_ahead_leaves_its_command_to_be_run_or_has_answered_it() {
        for (error, is_left) in [(None, true), (Some((1146, "no".into())), false)] {
            let mut group = group();
            let (owner, backend_id) = bound(&mut group);
            let client = group.parts.clients.get_mut(owner).unwrap();
            assert!(client.change_state(ClientState::Restoring, NOW));
            client.keep_input(b"\x01\0\0\0\x17");
            let summary = ReplySummary {
                error,
                ..ReplySummary::default()
            };
            let answer = OwnAnswer {
                summary: &summary,
                collected: b"\x09\0\0\x01\xff\x7a\x04#42S02".to_vec(),
                extended: 0,
            };
            let (parts, ahead) = (&mut group.parts, ForSession::Ahead);
            session_answered(parts, backend_id, Some(owner), ahead, answer);
            let client = group.parts.clients.get(owner).unwrap();
            assert_eq!(client.state(), ClientState::Idle);
            assert_eq!(client.input.bytes().is_some(), is_left);
        }
    }
}
