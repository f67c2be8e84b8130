//! One connection: its state, and what it does when its socket can be read or written.
//!
//! Connecting -> LoggingIn -> SettingUp -> Idle <-> Executing <-> RollingBack. Within an event the
//! next statement goes out at once where a reply ends; whether another event follows at once is for
//! the model of load to say ([`Context::next_start`]). [`Connection::become_state`] is the only
//! place where the state changes; leaving for good is a [`Fault`] that is returned to the group.
//!
//! Invariants:
//! - an idle connection is its struct and nothing else: how bytes come and go is in `bytes.rs`;
//! - a statement's latency runs to its reply's last byte from when it was to be sent: the intended
//!   start of its event for the first, the end of the reply before it for the others;
//! - rows pass by unread; packets that carry a decision are taken whole.

mod bytes;
mod setting_up;

use crate::context::Context;
use crate::preparing::{self, Prepared};
use bytes::Spill;
use load_core::connection_slot::ConnectionSlot;
use load_core::errors::{Fault, Phase};
use load_core::stats::Class;
use load_core::transport::{Handshake, Transport};
use load_core::workload::{Event, Script};
use reactor::{Net, RealNet, Time};
use std::os::fd::OwnedFd;
use std::time::Duration;
use wire::client_login::{ClientLogin, Progress};
use wire::command::{Command, ReplyShape};
use wire::packet::{HEADER_LEN, Header};
use wire::reply::{ErrPacket, Reply, Step};

/// Bound on a connection's size, which is the memory of a million of them.
const _: () = assert!(size_of::<Connection>() <= 168);

/// Packets that must be whole are short: OK, ERR, a column count, a public key.
const WHOLE_MAX: usize = 16 * 1024;

/// State of a connection.
#[derive(Debug)]
pub(crate) enum State {
    /// Connection that the system is opening.
    Connecting,
    /// Login under way. Boxed, for it is short-lived.
    LoggingIn(Box<ClientLogin>),
    /// A statement of `--init-sql`, the one of this number, has no answer yet.
    SettingUp(u16),
    /// Open, and nothing is asked.
    Idle,
    /// Statement of the workload that has no answer yet.
    Executing,
    /// Statement of the workload that is being prepared, to be executed next.
    Preparing,
    /// ROLLBACK after an error that has no answer yet; then the event is run again, or another.
    RollingBack { again: bool },
}

impl State {
    fn is_executing(&self) -> bool {
        matches!(
            self,
            State::Executing | State::Preparing | State::RollingBack { .. }
        )
    }

    fn may_become(&self, next: &State) -> bool {
        use State::*;
        matches!(
            (self, next),
            (Connecting, LoggingIn(_))
                | (LoggingIn(_) | SettingUp(_), SettingUp(_) | Idle)
                | (Idle, Executing | Preparing)
                | (
                    Executing | Preparing | RollingBack { .. },
                    Idle | Executing | Preparing
                )
                | (Executing | Preparing, RollingBack { .. })
        )
    }
}

/// A connection of the run.
#[derive(Debug)]
pub(crate) struct Connection {
    transport: Transport,
    state: State,
    /// Number of the server's next packet.
    seq: u8,
    /// Bytes of a packet that are yet to pass by.
    skip: u32,
    reply: Reply,
    event: Event,
    /// Moment at which the statement was to be sent; while connecting, when that began.
    sent_at: Time,
    pub(crate) slot: ConnectionSlot,
    /// A timer looks after its patience.
    pub(crate) is_watched: bool,
    /// True for a connection past its lifetime, which ends with its event.
    pub(crate) is_leaving: bool,
    /// Its packets travel in compressed frames.
    is_packed: bool,
    spill: Option<Box<Spill>>,
    prepared: Option<Box<Prepared>>,
}

/// Outcome of a statement.
enum Outcome {
    Succeeded(Class),
    Failed(Fault),
}

impl Connection {
    /// A connection that the system has begun to open.
    pub(crate) fn new(transport: Transport, slot: ConnectionSlot, now: Time) -> Connection {
        Connection {
            transport,
            state: State::Connecting,
            seq: 0,
            skip: 0,
            reply: Reply::new(ReplyShape::None),
            event: Event::default(),
            sent_at: now,
            slot,
            is_watched: false,
            is_leaving: false,
            is_packed: false,
            spill: None,
            prepared: None,
        }
    }

    pub(crate) fn sock(&self) -> &OwnedFd {
        self.transport.sock()
    }

    /// True until the server has let us in and the session is set up.
    pub(crate) fn is_opening(&self) -> bool {
        self.phase() != Phase::Statement
    }

    /// Phase under which its errors are counted.
    pub(crate) fn phase(&self) -> Phase {
        match self.state {
            State::Connecting | State::LoggingIn(_) => Phase::Connect,
            State::SettingUp(_) => Phase::Init,
            _ => Phase::Statement,
        }
    }

    /// True when it is open and nothing is asked.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// True while a statement has no answer.
    pub(crate) fn is_executing(&self) -> bool {
        self.state.is_executing()
    }

    /// Changes the state, in this one place. Who is executing is counted here, for the end of the
    /// run.
    fn become_state(&mut self, context: &mut Context, next: State) {
        debug_assert!(self.state.may_become(&next), "{:?} to {next:?}", self.state);
        match (self.state.is_executing(), next.is_executing()) {
            (false, true) => context.executing += 1,
            (true, false) => context.executing -= 1,
            _ => {}
        }
        self.state = next;
    }

    /// While connecting, when that began; else when the last statement was to be sent.
    pub(crate) fn sent_at(&self) -> Time {
        self.sent_at
    }

    /// Moment from which its patience counts: the intended start of what it waits for.
    pub(crate) fn asked_at(&self) -> Time {
        if self.is_opening() {
            self.slot.asked_at
        } else {
            self.sent_at
        }
    }

    /// Begins an event of which `start` is the intended start.
    pub(crate) fn begin(&mut self, context: &mut Context, start: Time) -> Result<(), Fault> {
        self.event = Event::default();
        if let Some(rows) = context
            .plan
            .script_of(self.slot.index)
            .rows_of_next(self.slot.made)
        {
            Script::begin_bulk(&mut self.event, 1 + context.take_events(rows - 1));
        }
        self.slot.event_at = start;
        self.slot.repeats = 0;
        self.next_statement(context, start)
    }

    /// Begins the event again that was given up before the connection was reopened.
    pub(crate) fn repeat(&mut self, context: &mut Context) -> Result<(), Fault> {
        if let Some(rows) = context
            .plan
            .script_of(self.slot.index)
            .rows_of_next(self.slot.made)
        {
            Script::begin_bulk(&mut self.event, rows);
        }
        self.next_statement(context, self.slot.asked_at)
    }

    /// Says goodbye; the socket is closed when the connection is dropped.
    pub(crate) fn quit(&mut self, net: &mut RealNet) {
        /// The command, and the same in a frame.
        const BYE: &[u8] = b"\x01\0\0\0\x01";
        const PACKED_BYE: &[u8] = b"\x05\0\0\0\0\0\0\x01\0\0\0\x01";
        if self.is_idle() {
            let bye = if self.is_packed { PACKED_BYE } else { BYE };
            // Nobody waits for an answer; a server that is gone needs no goodbye.
            let _ = self.transport.write(net, bye);
        }
    }

    /// Handles a writable socket: a connection stands or has failed, or there is room again.
    pub(crate) fn on_writable(&mut self, context: &mut Context) -> Result<(), Fault> {
        if matches!(self.state, State::Connecting) {
            if self.open_further(context)? == Handshake::Waits {
                return Ok(());
            }
            if !self.transport.is_emptied_by_short_read() {
                // What came with the handshake has been read already: no event will tell of it.
                self.on_readable(context, false)?;
            }
        }
        self.transport.flush(&mut context.net)?;
        self.send_rest(context)
    }

    /// Carries on with the handshake of a socket that is connected; fails if it is not.
    fn open_further(&mut self, context: &mut Context) -> Result<Handshake, Fault> {
        let connected = context.net.connected(self.transport.sock());
        connected.map_err(|e| Fault::system(&e))?;
        let how_far = self.transport.handshake(&mut context.net)?;
        if how_far == Handshake::Done {
            self.become_state(context, State::LoggingIn(Box::new(ClientLogin::new())));
        }
        Ok(how_far)
    }

    fn doing(&self) -> &'static str {
        match self.state {
            State::Connecting | State::LoggingIn(_) => "during the login",
            State::SettingUp(_) => "during --init-sql",
            State::Idle => "while it was idle",
            State::Executing | State::Preparing | State::RollingBack { .. } => "during a statement",
        }
    }

    /// Deals with the packets at the front of `bytes`, behind which so many more bytes have come in
    /// frames; returns how many bytes were used.
    fn take_packets(
        &mut self,
        context: &mut Context,
        bytes: &[u8],
        behind: usize,
    ) -> Result<usize, Fault> {
        let mut at = 0;
        loop {
            let pass = bytes.len().saturating_sub(at).min(self.skip as usize);
            at += pass;
            self.skip -= u32::try_from(pass).unwrap_or(self.skip);
            if matches!(self.state, State::Preparing) && self.skip == 0 && self.reply.is_done() {
                self.send_statement(context, Time::now())?;
            }
            let rest = &bytes[at..];
            let Some(header) = Header::read(rest) else {
                return Ok(at);
            };
            let is_reply = self.awaits_reply();
            if is_reply && header.seq != self.seq {
                return Err(Fault::protocol(format!(
                    "packets out of order: expected number {} from the server, got {}",
                    self.seq, header.seq
                )));
            }
            let body = &rest[HEADER_LEN..];
            if header.len > 0 && body.is_empty() {
                return Ok(at);
            }
            let step = match is_reply {
                true => self.reply.advance(header.len, body)?,
                false => Step::Cut,
            };
            if step.passes_by() {
                // Its bytes are not looked at.
                self.skip = u32::try_from(header.len).unwrap_or(u32::MAX);
                self.seq = header.seq.wrapping_add(1);
                at += HEADER_LEN;
                continue;
            }
            if header.len > WHOLE_MAX {
                return Err(Fault::protocol(format!(
                    "the server sent a packet of {} bytes where {WHOLE_MAX} are the most",
                    header.len
                )));
            }
            let Some(payload) = body.get(..header.len) else {
                return Ok(at);
            };
            self.seq = header.seq.wrapping_add(1);
            at += HEADER_LEN + header.len;
            if is_reply {
                let has_ended = self.on_reply(context, step)?;
                // The next statement left only now, so this cannot be its reply.
                let rest = bytes.len() - at + behind;
                if has_ended && self.awaits_reply() && rest > 0 {
                    return Err(Fault::protocol(format!(
                        "the server sent {rest} bytes behind the end of a reply"
                    )));
                }
            } else {
                self.on_other(context, header.seq, payload)?;
            }
        }
    }

    /// A packet that does not belong to a statement.
    fn on_other(&mut self, context: &mut Context, seq: u8, payload: &[u8]) -> Result<(), Fault> {
        let State::LoggingIn(login) = &mut self.state else {
            // Servers announce that they close an idle connection by an ERR packet.
            return Err(match payload.first() {
                Some(&wire::reply::ERR) => Fault::server(&ErrPacket::read(payload)?),
                _ => Fault::protocol(format!(
                    "the server sent {} bytes that nobody asked for",
                    payload.len()
                )),
            });
        };
        let mut out = std::mem::take(&mut context.out);
        out.clear();
        let progress = login.on_packet(
            &context.plan.credentials_of(self.slot.index).account(),
            seq,
            payload,
            &mut out,
        );
        let result = match &progress {
            Ok(Progress::Waits) => self.send(context, &out),
            _ => Ok(()),
        };
        context.out = out;
        if let Progress::Done = progress? {
            self.is_packed = context.plan.credentials.compresses;
            return self.set_up(context, 0);
        }
        result
    }

    /// A packet that decides something about the statement. True when its reply has ended.
    fn on_reply(&mut self, context: &mut Context, step: Step<'_>) -> Result<bool, Fault> {
        let outcome = match step {
            // The last of several results, after rows: CALL ends like this.
            Step::Ok(_) if self.reply.rows() > 0 => Outcome::Succeeded(Class::Read),
            Step::Ok(ok) if ok.affected_rows > 0 => Outcome::Succeeded(Class::Write),
            Step::Ok(_) => Outcome::Succeeded(Class::Other),
            Step::End(_) => Outcome::Succeeded(Class::Read),
            Step::Err(err) => Outcome::Failed(Fault::server(&err)),
            Step::File => {
                let what = "the server asks for a local file, which no workload offers";
                return Err(Fault::protocol(what.to_owned()));
            }
            Step::Prepared(prepared) => {
                if let Some(key) = context.plan.script_of(self.slot.index).key(&self.event) {
                    let known = self.prepared.get_or_insert_default();
                    known.insert(key, prepared.id);
                }
                return Ok(false);
            }
            Step::Cut
            | Step::Continuation
            | Step::Text
            | Step::Row
            | Step::Definition { .. }
            | Step::Columns(_)
            | Step::DefinitionsEnd(_)
            | Step::CursorOpen(_) => return Ok(false),
        };
        let has_ended = self.reply.is_done();
        match self.state {
            _ if !has_ended => {}
            State::SettingUp(number) => self.go_on_setting_up(context, number, outcome)?,
            _ => self.finish(context, outcome)?,
        }
        Ok(has_ended)
    }

    /// Counts the statement of a complete reply and sends the next one.
    fn finish(&mut self, context: &mut Context, outcome: Outcome) -> Result<(), Fault> {
        let now = Time::now();
        let again = match self.state {
            State::RollingBack { again } => Some(again),
            _ => None,
        };
        match (outcome, again) {
            (Outcome::Succeeded(class), again) => {
                let verb = context.plan.script_of(self.slot.index).verb(&self.event);
                let class = match context.plan.counts_by_text && again.is_none() {
                    true => context.stats.class_by_verb(verb),
                    false => class,
                };
                let (took, in_time) = (now.since(self.sent_at), context.plan.model.in_time);
                context.stats.succeeded(class, took, in_time);
                context.stats.steps.answered(now);
                if context.plan.is_mixed() && again.is_none() {
                    let statement = context.plan.number_of(self.slot.index, &self.event);
                    context.stats.succeeded_with(statement, took);
                }
                match again {
                    None => self.next_statement(context, now),
                    Some(again) => self.after_error(context, again, now),
                }
            }
            (Outcome::Failed(fault), Some(again)) => {
                context
                    .stats
                    .failed(fault, false, Some(now.since(self.sent_at)));
                self.after_error(context, again, now)
            }
            (Outcome::Failed(fault), None)
                if matches!(self.state, State::Preparing) && preparing::is_refusal(&fault) =>
            {
                // It goes as text, then; that it did stands among the errors.
                let number = context.plan.number_of(self.slot.index, &self.event);
                context.refusals.note(fault.code, number, now);
                context.stats.errors.count(Phase::Statement, fault);
                self.send_statement(context, now)
            }
            (Outcome::Failed(fault), None) => {
                let again = context.failed(fault, now.since(self.sent_at));
                if context.running
                    && context
                        .plan
                        .script_of(self.slot.index)
                        .in_transaction(&self.event)
                {
                    self.become_state(context, State::RollingBack { again });
                    put_command(&mut context.out, Command::Query, |out| {
                        out.extend_from_slice(b"ROLLBACK");
                    });
                    self.send_command(context, ReplyShape::Results, now)
                } else {
                    self.after_error(context, again, now)
                }
            }
        }
    }

    /// Runs the event again, with its clock going on, or gives it up for another.
    fn after_error(&mut self, context: &mut Context, again: bool, now: Time) -> Result<(), Fault> {
        self.event.restart();
        if again {
            self.next_statement(context, now)
        } else {
            self.begin_event(context, now)
        }
    }

    /// Begins the next event where one is to follow at once.
    pub(crate) fn begin_event(&mut self, context: &mut Context, now: Time) -> Result<(), Fault> {
        let start = match self.is_leaving {
            true => None,
            false => context.next_start(now),
        };
        let Some(start) = start else {
            self.rest(context);
            return Ok(());
        };
        self.begin(context, start)
    }

    /// Sends the event's next statement, which was to be sent `now`; where the event is over counts
    /// it and begins another.
    fn next_statement(&mut self, context: &mut Context, now: Time) -> Result<(), Fault> {
        let script = context.plan.script_of(self.slot.index);
        if !script.advance(&mut self.event, &mut self.slot.draw()) {
            self.count_event(context, now);
            return self.begin_event(context, now);
        }
        self.send_statement(context, now)
    }

    /// Sends the present statement: as text, or as the values of a prepared one, or first the
    /// command that prepares it.
    fn send_statement(&mut self, context: &mut Context, now: Time) -> Result<(), Fault> {
        let goes_on = context.plan.finishes_events && self.event.step > 1;
        if !context.running && !goes_on {
            self.rest(context);
            return Ok(());
        }
        let (plan, index) = (&context.plan, self.slot.index);
        let (script, event) = (plan.script_of(index), &mut self.event);
        let mut draw = self.slot.draw();
        let key = script.key(event);
        let id = key.and_then(|key| self.prepared.as_ref()?.id(key));
        let (command, shape, state) = match (key, id) {
            (Some(_), None) if context.refusals.allow(plan.number_of(index, event), now) => {
                (Command::StmtPrepare, ReplyShape::Prepared, State::Preparing)
            }
            (Some(_), Some(_)) => (Command::StmtExecute, ReplyShape::Results, State::Executing),
            _ => (Command::Query, ReplyShape::Results, State::Executing),
        };
        put_command(&mut context.out, command, |out| match (command, id) {
            (Command::StmtPrepare, _) => script.put_prepared_text(event, out),
            (_, Some(id)) => script.put_values(id, event, &mut draw, out),
            _ => script.put_text(event, &mut draw, out),
        });
        self.become_state(context, state);
        self.send_command(context, shape, now)
    }

    /// Counts an event that has run to its end. One that is many rows counts as many events, and
    /// all but the last have cost nothing.
    fn count_event(&mut self, context: &mut Context, now: Time) {
        let weight = context.plan.script_of(self.slot.index).weight(&self.event);
        let latency = now.since(self.slot.event_at);
        context.stats.events += u64::from(weight);
        let reads = context.plan.reads_elsewhere(self.slot.index);
        context.stats.read_events += u64::from(if reads { weight } else { 0 });
        for _ in 1..weight {
            context.stats.event_latency.record(Duration::ZERO);
        }
        context.stats.event_latency.record(latency);
        self.slot.events += weight;
        self.slot.busy += latency;
        self.is_leaving |= context
            .plan
            .script_of(self.slot.index)
            .ends_life(self.slot.events);
    }

    /// Rests, nothing more being asked of the server for now, so that there is nothing to be asked
    /// again.
    fn rest(&mut self, context: &mut Context) {
        self.slot.repeats = 0;
        if self.is_executing() {
            self.become_state(context, State::Idle);
        }
    }

    /// Sends the command in `context.out`, which was to be sent `now`.
    fn send_command(
        &mut self,
        context: &mut Context,
        shape: ReplyShape,
        now: Time,
    ) -> Result<(), Fault> {
        let out = std::mem::take(&mut context.out);
        self.reply = Reply::new(shape);
        self.seq = 1;
        self.sent_at = now;
        let result = self.send(context, &out);
        context.out = out;
        result
    }
}

/// Replaces `out` by a command whose arguments `put_arguments` writes.
fn put_command(out: &mut Vec<u8>, command: Command, put_arguments: impl FnOnce(&mut Vec<u8>)) {
    out.clear();
    wire::packet::put_short(out, 0, |out| {
        out.push(command.byte());
        put_arguments(out);
    });
}
