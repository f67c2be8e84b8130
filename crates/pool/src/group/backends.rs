//! Backends: what goes to the server, what arrives from it, and what that means for the client that
//! waits for it.
//!
//! The oldest command in flight owns the bytes that arrive. A client's statement is relayed as it
//! comes ([`crate::backend::relay`]); replies to the pool's own commands (login, preparation,
//! restoring) are collected and read. What follows a complete reply stands in `endings.rs`, what
//! follows the loss of a backend in `losses.rs`.
//! The backends to read, and how much of each, are chosen in [`crate::backend::input`]. Bytes for a
//! backend go out at the end of the turn, all in one write ([`crate::backend::output`]).

pub(crate) mod abandoned;
pub(crate) mod losses;
pub(crate) mod outages;
pub(crate) mod session_reset;

use crate::backend::handshake::LoginStep;
use crate::backend::input::{FromServer, Pace};
use crate::backend::openings::Opened;
use crate::backend::output::Written;
use crate::backend::overdue::why_broken;
use crate::backend::pools::DialEnd;
use crate::backend::relay::{Stop, WHOLE_MAX};
use crate::backend::{
    Backend, BackendState, ForBackend, ForSession, InFlight, Purpose, READ_LEN_LONG,
};
use crate::client::ClientState;
use crate::group::Group;
use crate::group::backends::losses::{LossCause, REFUSED};
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::pair::internal_replies::{After, OwnAnswer};
use crate::pair::next::Next;
use crate::pair::passing::Passing;
use crate::scheduler::bulk::Piece;
use crate::server::tls::words_of;
use reactor::{Event, Net};
use session::reply_summary::ReplySummary;
use session::roles::switch;
use std::io::{self, ErrorKind};
use wire::attributes::put_query;
use wire::checked::Breach;
use wire::command::{Command, ReplyShape, put_command};
use wire::errors::refuses_writes;
use wire::packet::{Frame, HEADER_LEN, Header, frame};
use wire::reply::{ERR, ErrPacket};

impl<N: Net> Group<N> {
    /// Handles an event of a backend's socket.
    pub(crate) fn on_backend(&mut self, backend_id: BackendId, event: Event) {
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return;
        };
        backend.transport.note(event);
        if backend.state() == BackendState::Dialling && !self.is_reached(backend_id) {
            return;
        }
        if event.writable {
            let written = self.backend_writer().write(backend_id);
            self.written(backend_id, written);
        }
        self.read_or_line_up(backend_id);
    }

    /// A backend that is being dialled has got on: says for whom it is dialled, in front of its
    /// login. `false` where the server cannot be reached.
    fn is_reached(&mut self, backend_id: BackendId) -> bool {
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return false;
        };
        if let Err(error) = self.net.connected(backend.transport.sock()) {
            let address = self.shared.upstream.words(backend.at());
            let why = format!("cannot connect to {address}: {error}");
            self.dial_failed(backend_id, &why, DialEnd::Unreached);
            return false;
        }
        let header = backend.take_header();
        if !header.is_empty() {
            self.backend_writer().send(backend_id, &header);
        }
        true
    }

    /// Reads what a backend has sent; a long reply waits for the group's bulk work.
    pub(crate) fn read_or_line_up(&mut self, backend: BackendId) {
        match self.backend_reader().is_long(backend) {
            true => self.bulk.push(Piece::Reply(backend)),
            false => self.read_backend(backend),
        }
    }

    /// Reads what a backend has sent, as long as its client takes it, and a share of it at most.
    pub(crate) fn read_backend(&mut self, backend_id: BackendId) {
        if !self.backend_reader().takes_handshake(backend_id) {
            return;
        }
        let mut buffer = std::mem::take(&mut self.lent.from_backend);
        let Pace { share, mut len } = self.backend_reader().pace(backend_id);
        let mut taken = 0;
        while taken < share {
            match self.backend_reader().read(backend_id, &mut buffer, len) {
                FromServer::Bytes(n) => {
                    let used = self.digest(backend_id, &buffer[..n]);
                    self.backend_reader()
                        .give_back(backend_id, &buffer[used..n]);
                    taken += len;
                    len = READ_LEN_LONG;
                    continue;
                }
                FromServer::Nothing => {}
                FromServer::Blocked => {
                    if let Some(backend) = self.backends.get_mut(backend_id) {
                        let pool = &self.backend_pools.pools[backend.pool].key;
                        let step = backend.go_on_with_login(pool);
                        self.login_step(backend_id, step);
                    }
                }
                FromServer::End => self.lose(backend_id, "the server closed the connection"),
                FromServer::Failed(error) => self.backend_broken(backend_id, &error),
            }
            break;
        }
        self.lent.from_backend = buffer;
        if (self.backends.get(backend_id)).is_some_and(|backend| backend.transport.is_readable()) {
            self.backend_reader().put_off(backend_id);
        }
    }

    /// Writes to every backend that has something in line.
    pub(crate) fn flush_dirty(&mut self) {
        while let Some(key) = self.dirty.pop() {
            self.write_on(key);
        }
    }

    /// Goes on writing to a backend that has had its share of an earlier turn.
    pub(crate) fn write_on(&mut self, key: BackendId) {
        let written = self.backend_writer().write_on(key);
        self.written(key, written);
    }

    /// Handles the outcome of a write to a backend: closes a broken one, and reads its client's
    /// file on.
    fn written(&mut self, key: BackendId, written: Written) {
        if let Some(error) = written.broken {
            self.backend_broken(key, &error);
        }
        // The server has taken what its client had sent of a file: the client is read again.
        if let Some(key) = written.fed
            && let Some(client) = self.clients.get_mut(key)
        {
            // It could not be heard meanwhile.
            client.heard_from(self.net.now());
            self.bulk.push(Piece::Client(key));
        }
    }

    /// Closes a backend whose connection cannot be read or written any more.
    pub(crate) fn backend_broken(&mut self, backend: BackendId, error: &io::Error) {
        let state = self.backends.get(backend).map(Backend::state);
        match words_of(error) {
            // Another attempt finds the same certificate, until somebody changes something.
            Some(why) if state == Some(BackendState::Dialling) => {
                self.dial_failed(backend, &why, DialEnd::Account);
            }
            Some(why) => self.lose(backend, &why),
            None => {
                let why = why_broken(error, self.settings.backend_silence_max);
                match error.kind() {
                    ErrorKind::ConnectionReset => self.lose_as(backend, &why, LossCause::Reset),
                    _ => self.lose(backend, &why),
                }
            }
        }
    }

    /// Uses up what has arrived; returns how many bytes were used.
    fn digest(&mut self, backend_id: BackendId, input: &[u8]) -> usize {
        let mut at = 0;
        while at < input.len() {
            let Some(backend) = self.backends.get_mut(backend_id) else {
                return input.len();
            };
            let used = match backend.state() {
                BackendState::Dialling => {
                    let of = &self.backend_pools.pools[backend.pool].key;
                    let (used, step) = backend.take_login(&mut self.net, of, &input[at..]);
                    self.login_step(backend_id, step);
                    used
                }
                _ => self.digest_reply(backend_id, &input[at..]),
            };
            if used == 0 {
                break;
            }
            at += used;
        }
        at
    }

    /// Goes on with the login of a backend.
    fn login_step(&mut self, backend_id: BackendId, step: LoginStep) {
        match step {
            LoginStep::Wait => {}
            LoginStep::Send(out) => self.backend_writer().send(backend_id, &out),
            LoginStep::In => match self.openings().logged_in(backend_id) {
                Some(out) => self.backend_writer().send(backend_id, &out),
                None => self.lose(backend_id, "the pool lost track of this connection"),
            },
            LoginStep::Failed(why, end) => {
                if end == DialEnd::PasswordUnknown
                    && let Some(backend) = self.backends.get(backend_id)
                {
                    let pool = &self.backend_pools.pools[backend.pool];
                    pool.key.forget_password(&self.shared.accounts);
                }
                self.dial_failed(backend_id, &why, end);
            }
            LoginStep::Broken(error) => self.backend_broken(backend_id, &error),
        }
    }

    /// Passes on what has come of the oldest reply; returns the bytes used.
    pub(crate) fn digest_reply(&mut self, backend_id: BackendId, input: &[u8]) -> usize {
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return 0;
        };
        let oldest = backend.flight().front();
        let is_awaited = oldest.is_some();
        let Some(&command) = oldest.filter(|command| !is_unasked(backend, command, input)) else {
            // A server speaks unasked only to say why it is about to close.
            match (last_words(input), is_awaited) {
                (Some(words), _) => self.lose(backend_id, &words),
                (None, _) if may_be_last_words(input) => {}
                (None, true) => self.lose_as(
                    backend_id,
                    &words_of_breach(&Breach::NUMBERED_0, input),
                    LossCause::Breach,
                ),
                (None, false) => self.lose(
                    backend_id,
                    "the server sent bytes that nobody had asked for",
                ),
            }
            return 0;
        };
        let is_relayed = command.purpose == Purpose::Statement;
        let is_begun = !command.reply.reply().is_at_start();
        if backend.is_reader() && is_relayed && !is_begun && command.kept > 0 && has_refusal(input)
        {
            // Code that no text showed writes. It has changed nothing here.
            self.leave_reader(backend_id, REFUSED);
            return 0;
        }
        // Who has gone does not wait for it: it has been counted.
        let owner = command.owner.filter(|_| is_relayed);
        let mut out = std::mem::take(&mut self.lent.out);
        out.clear();
        let mut passing = Passing {
            client: owner.and_then(|owner| self.clients.get_mut(owner)),
            backend,
            server: &self.shared.server,
        };
        let fed = passing.pass_on(command.reply, input, &mut out);
        if command.purpose.is_collected() {
            backend.collect(&out);
        }
        let lengths = backend.check_lengths(is_relayed);
        if let Some(owner) = owner {
            // Whoever hears of a write has to find it, on any connection.
            if self.shared.cluster.is_some()
                && let Some(backend) = self.backends.get(backend_id)
                && !backend.reported().is_empty()
            {
                let changes = backend.reported().to_vec();
                self.readers().note_writes(owner, &changes);
            }
            self.client_writer().send(owner, &out);
        }
        self.lent.out = out;
        let used = match fed.and_then(|fed| Ok(lengths.map(|()| fed)?)) {
            Ok((used, stop)) => {
                match stop {
                    Stop::Hungry => {}
                    Stop::File => self.ask_for_file(backend_id),
                    Stop::Done => self.finish(backend_id),
                }
                used
            }
            Err(error) => {
                let why = words_of_breach(&error, input);
                self.lose_as(backend_id, &why, LossCause::Breach);
                0
            }
        };
        if let Some(backend) = self.backends.get_mut(backend_id) {
            backend.count_kept(&self.retained.in_transit);
            if backend.is_read_in_vain(self.net.now()) {
                self.abandon(backend_id, None);
            }
        }
        used
    }

    fn ask_for_file(&mut self, backend_id: BackendId) {
        let now = self.net.now();
        let owner = self.backends.get(backend_id).and_then(Backend::client);
        let Some(owner) = owner.filter(|owner| self.clients.get(*owner).is_some()) else {
            let why = "the client left while the server waited for its file";
            return self.lose(backend_id, why);
        };
        if self.clients.enter(owner, ClientState::Feeding, now) {
            // The file may have come with the statement already.
            self.tasks.add(Task::Read(owner));
        }
    }

    /// Relays a payload of the client's local file to the server; an empty one is the file's end.
    /// One of several packets is a single payload here as it is on the server.
    pub(crate) fn on_file_packet(&mut self, key: ClientId, message: &[u8]) {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let Some(backend) = client.backend() else {
            return;
        };
        let last = message.len() == HEADER_LEN;
        if last && !client.change_state(ClientState::Running, now) {
            return self.clients.close_later(key);
        }
        self.backend_writer().send(backend, message);
    }

    /// Handles the complete reply to the oldest command in flight.
    pub(crate) fn finish(&mut self, backend_id: BackendId) {
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return;
        };
        let owner = backend.client().and_then(|owner| self.clients.get(owner));
        if owner.is_some_and(|owner| owner.state() == ClientState::Feeding) {
            // What the client still sends of its file would be taken for commands.
            return self.lose(backend_id, "the server answered before the end of the file");
        }
        let Some(command) = backend.take_answered() else {
            return;
        };
        // The next reply may be here already, and its client was last looked at when it sent its
        // statement.
        if let Some(next) = backend.flight().front().and_then(|next| next.owner) {
            self.clients.prefetch(next);
        }
        if let Some(status) = backend.reply_so_far().status {
            backend.transaction.note_status(status);
        }
        if command.purpose == ForSession::Begin.into() {
            backend.transaction.note_begin_answered();
        }
        let (mut summary, collected) = backend.take_reply(self.net.now());
        if command.purpose == Purpose::Statement && summary.len < self.shared.long_reply {
            self.bulk.note_others(self.net.now());
        }
        summary.due = backend.reports.due();
        if backend.flight().is_empty() {
            backend.close_pipeline();
            self.running.ends(backend);
        }
        let is_own =
            command.purpose != Purpose::Statement && command.purpose != ForSession::SetAgain.into();
        if is_own && !self.may_go_on(backend_id, &command) {
            return;
        }
        let client = command.owner.and_then(|owner| self.clients.get(owner));
        if let Some(backend) = self.backends.get_mut(backend_id) {
            if backend.sends_eofs() {
                let mysql = self.shared.server.flavour.is_mysql();
                backend.note_reports(&command, &summary, client, mysql);
            }
            if summary.error.is_some() {
                let may_commit = client.is_some_and(|client| client.statement.may_commit());
                let may_commit = may_commit && command.purpose == Purpose::Statement;
                backend.transaction.note_failed(may_commit);
            }
            let area = client.map(|client| client.statement.area);
            backend.note_conditions_left(&command, &summary, area);
        }
        if matches!(command.purpose, Purpose::Session(ForSession::Reports(_)))
            && let Some(owner) = command.owner
            && self.shared.cluster.is_some()
        {
            self.readers().note_writes(owner, &summary.changes);
        }
        match command.purpose {
            Purpose::Statement => self.statement_done(backend_id, &command, &summary),
            Purpose::Session(purpose) => {
                self.session_answered(backend_id, command.owner, purpose, &summary, collected)
            }
            Purpose::Backend(purpose) => {
                self.backend_answered(backend_id, command.owner, purpose, &summary, &collected)
            }
        }
        if let Some(backend) = self.backends.get_mut(backend_id) {
            backend.give_room_back(summary);
        }
    }

    /// Handles the answer to a command for a backend.
    fn backend_answered(
        &mut self,
        backend_id: BackendId,
        owner: Option<ClientId>,
        command: ForBackend,
        summary: &ReplySummary,
        collected: &[u8],
    ) {
        match command {
            ForBackend::Prepare(fresh) => {
                let mut openings = self.openings();
                match openings.answered(backend_id, fresh, summary, collected) {
                    Opened::Waits => {}
                    Opened::Idle => self.offer(backend_id),
                    Opened::Failed(why, end) => self.dial_failed(backend_id, &why, end),
                    Opened::Outdated => self.closer().retire(backend_id),
                    Opened::Astray => {
                        self.lose(backend_id, "the pool lost track of this connection")
                    }
                }
            }
            ForBackend::Schema => {
                if let Some(backend) = self.backends.get_mut(backend_id)
                    && summary.error.is_some()
                {
                    backend.schema_not_set(&mut self.sessions);
                }
            }
            ForBackend::Clearing => {}
            ForBackend::CatchUp => self.caught_up(backend_id, owner, (summary, collected)),
            ForBackend::GiveBack => {
                // It holds nothing any more. Where the server knows no such command, the end of the
                // connection does the same, if later.
                self.closer().retire(backend_id);
                if let Some(key) = owner {
                    self.clients.unbind(key, &mut self.backends);
                    self.return_to_idle(key);
                }
            }
            ForBackend::RollBack => {
                let backend = self.backends.get_mut(backend_id);
                match backend.is_some_and(|backend| backend.is_rolled_back(summary)) {
                    true => self.release(backend_id),
                    false => self.closer().retire(backend_id),
                }
            }
            ForBackend::ResetSession(last) => {
                self.session_was_reset(backend_id, (owner, last), summary, collected)
            }
        }
    }

    /// Handles the answer to a command for a client's session: does with the client and the backend
    /// what follows.
    fn session_answered(
        &mut self,
        backend_id: BackendId,
        owner: Option<ClientId>,
        command: ForSession,
        summary: &ReplySummary,
        collected: Vec<u8>,
    ) {
        let backend = self.backends.get(backend_id);
        let pool = backend.and_then(|backend| self.backend_pools.pools.get(backend.pool));
        let answer = OwnAnswer {
            summary,
            collected,
            extended: pool.map_or(0, |pool| pool.key.extended),
        };
        let pair = owner.and_then(|owner| Some((owner, self.pair(owner, backend_id)?)));
        let Some((owner, mut pair)) = pair else {
            return match command {
                ForSession::Warnings => self.settle(backend_id),
                _ => self.closer().retire(backend_id),
            };
        };
        match pair.answered(command, answer) {
            After::Nothing => {}
            After::Settle => self.settle(backend_id),
            After::GoOn => self.follow(owner, backend_id, Next::GoOn),
            After::Stands => {
                if self.stands_restored(owner) {
                    self.tasks.add(Task::Read(owner));
                    self.tasks.add(Task::Settle(backend_id));
                }
            }
            After::Ready => {
                self.tasks.add(Task::Read(owner));
                self.tasks.add(Task::Settle(backend_id));
            }
            After::Replay(error) => {
                self.answers().replay(owner, &error);
                if let Some(client) = self.clients.get_mut(owner) {
                    client.last.failed_ahead(summary);
                }
                self.settle(backend_id);
                self.tasks.add(Task::Read(owner));
            }
            After::CloseClient => self.clients.close_later(owner),
            After::Unrestored(behind) => {
                if let Some((code, text)) = &summary.error {
                    self.restore_failed(owner, backend_id, behind, (*code, text));
                }
            }
            After::Lose(why) => self.lose(backend_id, why),
        }
    }

    /// Handles the restored session of a client's backend: lets the client in if it waits for that.
    /// `false` when the client is gone.
    fn stands_restored(&mut self, owner: ClientId) -> bool {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(owner) else {
            return false;
        };
        if let Some(schema) = client.schema_of_login() {
            self.schemas.learn(client.pool as usize, schema);
        }
        let logs_in = client.is_logging_in();
        if !client.change_state(ClientState::Idle, now) {
            self.clients.close_later(owner);
            return false;
        }
        if logs_in {
            self.answers().end_login(owner, b"");
        }
        true
    }

    /// Brings a backend into the state of a client that logs in; that is the check of its schema.
    /// `true` when it stands there already: the client is let in, and what it has said behind its
    /// login is the caller's to see to.
    #[must_use]
    pub(crate) fn open_on(&mut self, key: ClientId, backend_id: BackendId) -> bool {
        let now = self.net.now();
        let login = self
            .clients
            .get(key)
            .and_then(|client| client.login.as_ref());
        let late = login.is_some_and(|login| login.begins_late);
        if late {
            // By now a backend of its pool has been dialled.
            let _ = self.members().begins(key);
        }
        let (Some(client), Some(backend)) =
            (self.clients.get_mut(key), self.backends.get_mut(backend_id))
        else {
            return false;
        };
        let mut out = std::mem::take(&mut self.lent.out);
        out.clear();
        let mut from = (*backend.session).clone();
        if from.role != client.session.role {
            // A schema that is open to the one need not be to the other.
            from.schema = None;
        }
        let (to, sent) = client.session.without_schema_as_sent(&from);
        let on = backend.on(self.shared.server.flavour);
        let mut commands = 0;
        if let Some(sql) = switch(&from, &to, backend.login_role()) {
            put_query(&mut out, backend.form(), &sql);
            commands += 1;
        }
        commands += session::state::restore(&mut out, on, (&from, &to), None);
        // Behind what makes the server read it in the client's character set.
        if let Some(schema) = sent {
            put_command(&mut out, Command::InitDb, schema);
            commands += 1;
        }
        backend.note_leftovers(client.session.user_variables());
        backend.session = client.session.clone();
        backend.note_role();
        for i in 1..=commands {
            let purpose = ForSession::Restore(i == commands);
            let command = InFlight::own(Some(key), purpose, ReplyShape::Status);
            backend.expect(command);
        }
        let moved = self.clients.enter(key, ClientState::Restoring, now);
        if moved && commands > 0 {
            self.backend_writer().ask(backend_id, &out);
        }
        self.lent.out = out;
        moved && commands == 0 && self.stands_restored(key)
    }
}

/// True if what arrives is no answer to the oldest command in flight: packets of an answer go on
/// counting from those of the command, which took at least number 0 ("Sequence ID" in MySQL's
/// protocol documentation), so at a reply's very first packet number 0 is the server's own word.
fn is_unasked<S>(backend: &Backend<S>, command: &InFlight, input: &[u8]) -> bool {
    backend.reply_so_far().len == 0
        && command.reply.reply().is_at_start()
        && backend.is_at_packet_start()
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
