//! A connection that asks over HTTP/2: some requests at once, each in a stream of its own.
//!
//! Verdicts are those of HTTP/1.1 ([`super::http`]); a stream's request, answer and pause follow
//! each other as a connection's do there. What belongs to the connection is kept small: the table
//! of header fields is switched off ([`super::hpack`]), windows are as large as they can be and are
//! opened again when half of one is used, and bodies pass by. Docs: `docs/decisions/0015`.
//!
//! A server may send GOAWAY, as nginx does after a number of requests: answers that it has promised
//! are waited for, streams that it has not taken are no failures, and the connection is opened
//! again.
//!
//! Invariants:
//! - a request is sent only when the server's SETTINGS are known, and no more at once than they
//!   allow;
//! - what waits to be sent is bounded ([`OUT_BYTES_MAX`]), and so is a block of header fields
//!   ([`BLOCK_BYTES_MAX`]);
//! - a connection has at most one wake that is to come earlier than all others.

use super::answer::Body;
use super::counts::{Counts, Marks, Verdict};
use super::group::{Context, Next, Talk};
use super::hpack;
use super::http::{self, Question, USER_AGENT, think};
use super::http2_frames::{self as frames, Frames, Head, PAYLOAD_BYTES_MAX, Part, put};
use super::place::Place;
use load_core::durations::unit;
use load_core::errors::Fault;
use load_core::transport::Ending;
use reactor::{Time, Write};
use std::time::Duration;

/// Bound on one of them and a stream: a million are this times a million.
const _: () = assert!(size_of::<State>() + size_of::<Lane>() <= 256);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Advice where nothing that has come was HTTP/2.
const LOOK: &str = "look whether it speaks HTTP/2";
/// Largest window that there is.
const WINDOW_MAX: u32 = (1 << 31) - 1;
/// Window of a connection in the beginning.
const WINDOW_DEFAULT: u32 = 65_535;
/// The last number that a stream can have.
const STREAM_MAX: u32 = (1 << 31) - 1;
/// Bytes that may wait to be sent: the requests of 1,024 streams, and answers to a server that asks
/// and does not read.
const OUT_BYTES_MAX: usize = 1024 * (PAYLOAD_BYTES_MAX + 9) + 64 * 1024;
/// Bytes of header fields of one answer.
const BLOCK_BYTES_MAX: usize = 64 * 1024;

const SETTINGS_HEADER_TABLE_SIZE: u16 = 1;
const SETTINGS_ENABLE_PUSH: u16 = 2;
const SETTINGS_MAX_CONCURRENT_STREAMS: u16 = 3;
const SETTINGS_INITIAL_WINDOW_SIZE: u16 = 4;

/// The header fields of all requests.
///
/// # Errors
/// A sentence, where they do not fit into one frame.
pub(super) fn request(url: &Place) -> Result<Vec<u8>, String> {
    let block = hpack::request(url.is_secure(), &url.authority(), &url.path, USER_AGENT);
    match block.len() {
        0..=PAYLOAD_BYTES_MAX => Ok(block),
        length => Err(format!(
            "the URL makes a request of {length} bytes; with HTTP/2 {PAYLOAD_BYTES_MAX} are the \
             most"
        )),
    }
}

/// Stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Server that has not told its settings.
    Greeting,
    Open,
    /// No more requests; it ends when the last answer is here.
    Draining,
}

/// State of one of the streams that are used one after the other.
#[derive(Debug)]
enum Lane {
    /// Pause until the next request is due.
    Thinking(Time),
    Asking(Asked),
}

#[derive(Debug)]
struct Asked {
    stream: u32,
    /// 0 until the head of the answer has come.
    status: u16,
    /// Bytes of the stream's window that are used.
    used: u32,
    sent_at: Time,
    content_length: Option<u64>,
    body: Body,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Multiplexed(Box<State>);

#[derive(Debug)]
struct State {
    stage: Stage,
    lanes: Vec<Lane>,
    /// Streams that the server allows at once.
    allowed: u32,
    /// The number of the next stream.
    next: u32,
    frames: Frames,
    /// Header fields that come in several frames: the first one's head, and the fields.
    block: Option<Box<(Head, Vec<u8>)>>,
    out: Vec<u8>,
    /// Bytes of the connection's window that are used.
    used: u32,
    /// Moment at which it was opened.
    since: Time,
    /// The earliest wake that is to come.
    wakes_at: Time,
}

fn wrong(what: &str) -> Fault {
    Fault::protocol(format!("the server broke HTTP/2: it sent {what}"))
}

impl State {
    /// Sends what the server's settings do not decide.
    fn greet(&mut self) {
        self.out.extend_from_slice(PREFACE);
        let mut settings = Vec::new();
        for (name, value) in [
            (SETTINGS_HEADER_TABLE_SIZE, 0),
            (SETTINGS_ENABLE_PUSH, 0),
            (SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_MAX),
        ] {
            settings.extend_from_slice(&name.to_be_bytes());
            settings.extend_from_slice(&value.to_be_bytes());
        }
        put(&mut self.out, frames::SETTINGS, 0, 0, &settings);
        self.widen(0, WINDOW_MAX - WINDOW_DEFAULT);
    }

    fn widen(&mut self, stream: u32, by: u32) {
        let payload = by.to_be_bytes();
        put(&mut self.out, frames::WINDOW_UPDATE, 0, stream, &payload);
    }

    fn asked(&self) -> impl Iterator<Item = &Asked> {
        self.lanes.iter().filter_map(|lane| match lane {
            Lane::Asking(asked) => Some(asked),
            Lane::Thinking(_) => None,
        })
    }

    fn count_asked(&self) -> u64 {
        self.asked().count() as u64
    }

    fn lane_of(&mut self, stream: u32) -> Option<&mut Lane> {
        let is_its =
            |lane: &&mut Lane| matches!(lane, Lane::Asking(asked) if asked.stream == stream);
        self.lanes.iter_mut().find(is_its)
    }

    /// True for a stream that has been begun and is over.
    fn is_past(&self, stream: u32) -> bool {
        stream % 2 == 1 && stream < self.next
    }

    /// Sends the requests that are due, asks to be woken for the next one, and sends what waits.
    fn go_on(&mut self, context: &mut Context<'_, Question>) -> Result<Next, Fault> {
        if self.stage == Stage::Open && context.running {
            self.ask_due(context);
        }
        self.send(context)?;
        if self.stage == Stage::Draining && self.asked().next().is_none() {
            context.wake_at = Some(self.reopens_at(context.now));
            return Ok(Next::Ends);
        }
        // Where the server allows no more, the next answer is what the next request waits for.
        let may_ask = self.count_asked() < u64::from(self.allowed);
        let earliest = self.earliest();
        if self.stage == Stage::Open && context.running && may_ask && earliest < self.wakes_at {
            self.wakes_at = earliest;
            context.wake_at = Some(earliest);
        }
        Ok(Next::Stays)
    }

    /// Moment of the next request.
    fn earliest(&self) -> Time {
        let due = |lane: &Lane| match lane {
            Lane::Thinking(due) => *due,
            Lane::Asking(_) => Time::NEVER,
        };
        self.lanes.iter().map(due).min().unwrap_or(Time::NEVER)
    }

    /// Moment at which a connection that is over is needed again.
    fn reopens_at(&self, now: Time) -> Time {
        match self.earliest() {
            Time::NEVER => now,
            due => due.max(now),
        }
    }

    fn ask_due(&mut self, context: &Context<'_, Question>) {
        let mut asking = self.count_asked();
        for lane in &mut self.lanes {
            let is_due = matches!(lane, Lane::Thinking(due) if *due <= context.now);
            if !is_due || asking >= u64::from(self.allowed) {
                continue;
            }
            if self.next > STREAM_MAX {
                self.stage = Stage::Draining;
                return;
            }
            let flags = frames::END_HEADERS | frames::END_STREAM;
            let block = &context.plan.request;
            put(&mut self.out, frames::HEADERS, flags, self.next, block);
            *lane = Lane::Asking(Asked {
                stream: self.next,
                status: 0,
                used: 0,
                sent_at: context.now,
                content_length: None,
                body: Body::default(),
            });
            self.next += 2;
            asking += 1;
        }
    }

    fn send(&mut self, context: &mut Context<'_, Question>) -> Result<(), Fault> {
        let mut sent = 0;
        while sent < self.out.len() {
            match context.write(&self.out[sent..]) {
                Write::Bytes(count) => sent += count,
                Write::Blocked => break,
                Write::Failed(error) => return Err(Fault::system(&error)),
            }
        }
        if sent == self.out.len() {
            self.out = Vec::new();
        } else {
            self.out.drain(..sent);
        }
        if self.out.len() > OUT_BYTES_MAX {
            return Err(wrong(&format!(
                "so much to be answered that {} bytes wait for it to read",
                self.out.len()
            )));
        }
        Ok(())
    }

    fn on_part(
        &mut self,
        context: &mut Context<'_, Question>,
        part: Part<'_>,
    ) -> Result<(), Fault> {
        let (head, payload) = match part {
            Part::Data {
                stream,
                bytes,
                used,
                is_last,
            } => {
                self.refuse_before_settings(frames::DATA)?;
                return self.on_data(context, (stream, bytes, used), is_last);
            }
            Part::Frame(head, payload) => (head, payload),
        };
        self.refuse_before_settings(head.kind)?;
        if self.block.is_some() && head.kind != frames::CONTINUATION {
            return Err(wrong("another frame between those of one block of fields"));
        }
        match head.kind {
            frames::HEADERS => self.on_headers(context, head, payload),
            frames::CONTINUATION => self.on_continuation(context, head, payload),
            frames::SETTINGS => self.on_settings(head, payload),
            frames::PING if payload.len() != 8 => Err(wrong("a PING that has not 8 bytes")),
            frames::PING if head.has(frames::ACK) => Ok(()),
            frames::PING => {
                put(&mut self.out, frames::PING, frames::ACK, 0, payload);
                Ok(())
            }
            frames::RST_STREAM => self.on_reset(context, head.stream, payload),
            frames::GOAWAY => self.on_goaway(context, payload),
            frames::PUSH_PROMISE => Err(wrong("a PUSH_PROMISE, which was ruled out")),
            // Requests have no body, so the server's windows are never used; priorities and frames
            // of kinds that are not known are passed over.
            _ => Ok(()),
        }
    }

    fn refuse_before_settings(&self, kind: u8) -> Result<(), Fault> {
        match self.stage {
            Stage::Greeting if kind != frames::SETTINGS => Err(wrong(&format!(
                "something else than SETTINGS first; {LOOK}"
            ))),
            _ => Ok(()),
        }
    }

    fn on_settings(&mut self, head: Head, payload: &[u8]) -> Result<(), Fault> {
        if head.has(frames::ACK) {
            return Ok(());
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() || head.stream != 0 {
            return Err(wrong("SETTINGS that are none"));
        }
        for &[high, low, a, b, c, d] in settings {
            if u16::from_be_bytes([high, low]) == SETTINGS_MAX_CONCURRENT_STREAMS {
                self.allowed = u32::from_be_bytes([a, b, c, d]);
            }
        }
        put(&mut self.out, frames::SETTINGS, frames::ACK, 0, &[]);
        if self.stage == Stage::Greeting {
            self.stage = Stage::Open;
        }
        Ok(())
    }

    fn on_headers(
        &mut self,
        context: &mut Context<'_, Question>,
        head: Head,
        payload: &[u8],
    ) -> Result<(), Fault> {
        let mut fields = payload;
        let mut padding = 0;
        let broken = || wrong("HEADERS that are shorter than what they announce");
        if head.has(frames::PADDED) {
            let (first, rest) = fields.split_first().ok_or_else(broken)?;
            (padding, fields) = (usize::from(*first), rest);
        }
        if head.has(frames::PRIORITY) {
            fields = fields.get(5..).ok_or_else(broken)?;
        }
        let end = fields.len().checked_sub(padding).ok_or_else(broken)?;
        if head.has(frames::END_HEADERS) {
            return self.on_fields(context, head, &fields[..end]);
        }
        self.block = Some(Box::new((head, fields[..end].to_vec())));
        Ok(())
    }

    fn on_continuation(
        &mut self,
        context: &mut Context<'_, Question>,
        head: Head,
        payload: &[u8],
    ) -> Result<(), Fault> {
        let block = self.block.take();
        let mut block = block
            .filter(|block| block.0.stream == head.stream)
            .ok_or_else(|| wrong("a CONTINUATION of nothing"))?;
        block.1.extend_from_slice(payload);
        if block.1.len() > BLOCK_BYTES_MAX {
            return Err(wrong(&format!(
                "more than {BLOCK_BYTES_MAX} bytes of header fields"
            )));
        }
        if head.has(frames::END_HEADERS) {
            return self.on_fields(context, block.0, &block.1);
        }
        self.block = Some(block);
        Ok(())
    }

    /// Takes complete header fields: of an answer, an interim one, or behind a body.
    fn on_fields(
        &mut self,
        context: &mut Context<'_, Question>,
        head: Head,
        block: &[u8],
    ) -> Result<(), Fault> {
        let fields = hpack::read(block).map_err(|what| wrong(&format!("{what} (HPACK)")))?;
        let Some(Lane::Asking(asked)) = self.lane_of(head.stream) else {
            return Err(wrong("an answer that nobody asked for"));
        };
        let is_last = head.has(frames::END_STREAM);
        match (asked.status, fields.status) {
            (0, Some(100..=199)) if !is_last => return Ok(()),
            (0, Some(status @ 200..)) => {
                asked.status = status;
                asked.content_length = fields.content_length;
            }
            (0, _) => return Err(wrong("an answer without a status")),
            (_, None) if is_last => {}
            _ => return Err(wrong("two heads of one answer")),
        }
        match is_last {
            true => self.on_answer(context, head.stream),
            false => Ok(()),
        }
    }

    fn on_data(
        &mut self,
        context: &mut Context<'_, Question>,
        (stream, bytes, used): (u32, &[u8], u32),
        is_last: bool,
    ) -> Result<(), Fault> {
        if self.block.is_some() {
            return Err(wrong("another frame between those of one block of fields"));
        }
        let expected = context.plan.expected.as_deref();
        let Some(Lane::Asking(asked)) = self.lane_of(stream) else {
            return Err(wrong("a body that nobody asked for"));
        };
        if asked.status == 0 {
            return Err(wrong("a body without a head"));
        }
        asked.body.pass(bytes, expected);
        asked.used = asked.used.saturating_add(used);
        let widened = match asked.used > WINDOW_MAX / 2 && !is_last {
            true => std::mem::take(&mut asked.used),
            false => 0,
        };
        if widened > 0 {
            self.widen(stream, widened);
        }
        self.used = self.used.saturating_add(used);
        if self.used > WINDOW_MAX / 2 {
            let used = std::mem::take(&mut self.used);
            self.widen(0, used);
        }
        match is_last {
            true => self.on_answer(context, stream),
            false => Ok(()),
        }
    }

    /// Takes the last byte of an answer, and begins the pause behind it.
    fn on_answer(&mut self, context: &mut Context<'_, Question>, stream: u32) -> Result<(), Fault> {
        let next = context.now + think(context);
        let Some(lane) = self.lane_of(stream) else {
            return Ok(());
        };
        let Lane::Asking(asked) = std::mem::replace(lane, Lane::Thinking(next)) else {
            return Ok(());
        };
        let has_body = ![204, 304].contains(&asked.status);
        if let Some(length) = asked.content_length
            && has_body
            && length != asked.body.came()
        {
            context.judge(Verdict::Lost, 1);
            return Err(wrong(&format!(
                "{} bytes of a body that was to have {length}",
                asked.body.came()
            )));
        }
        let as_expected = asked.body.is_as_expected(context.plan.expected.as_deref());
        http::judge(context, asked.sent_at, asked.status, as_expected);
        if !context.plan.keep_alive {
            self.stage = Stage::Draining;
        }
        Ok(())
    }

    /// Takes the server's reset of one answer.
    fn on_reset(
        &mut self,
        context: &mut Context<'_, Question>,
        stream: u32,
        payload: &[u8],
    ) -> Result<(), Fault> {
        let Ok(code) = <[u8; 4]>::try_from(payload) else {
            return Err(wrong("an RST_STREAM that has not 4 bytes"));
        };
        let next = context.now + think(context);
        let is_past = self.is_past(stream);
        let Some(lane) = self.lane_of(stream) else {
            return match is_past {
                true => Ok(()),
                false => Err(wrong("an RST_STREAM of a stream that was never begun")),
            };
        };
        *lane = Lane::Thinking(next);
        context.judge(Verdict::Lost, 1);
        let name = error_name(u32::from_be_bytes(code));
        let fault = Fault::protocol(format!("the server gave an answer up: {name}"));
        context
            .counts
            .errors
            .count(load_core::errors::Phase::Statement, fault);
        Ok(())
    }

    /// Takes a GOAWAY: the server takes no more requests.
    fn on_goaway(
        &mut self,
        context: &mut Context<'_, Question>,
        payload: &[u8],
    ) -> Result<(), Fault> {
        let (words, _) = payload.as_chunks::<4>();
        let [last, code, ..] = words else {
            return Err(wrong("a GOAWAY that is too short"));
        };
        let (last, code) = (u32::from_be_bytes(*last), u32::from_be_bytes(*code));
        if code != 0 {
            return Err(Fault::protocol(format!(
                "the server ended the connection: {}",
                error_name(code)
            )));
        }
        self.stage = Stage::Draining;
        for lane in &mut self.lanes {
            // What the server has not taken is asked again on the next connection.
            if matches!(lane, Lane::Asking(asked) if asked.stream > last & STREAM_MAX) {
                *lane = Lane::Thinking(context.now);
            }
        }
        Ok(())
    }
}

/// The standard's name of an error.
fn error_name(code: u32) -> String {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    let name = NAMES.get(code as usize).copied();
    name.map_or_else(|| format!("error {code}"), str::to_owned)
}

impl Talk for Multiplexed {
    type Plan = Question;
    const REOPENS: bool = true;
    const PROTOCOLS: &'static [&'static [u8]] = &[b"h2"];

    fn new(_: Time, now: Time) -> Multiplexed {
        Multiplexed(Box::new(State {
            stage: Stage::Greeting,
            lanes: Vec::new(),
            allowed: u32::MAX,
            next: 1,
            frames: Frames::new(),
            block: None,
            out: Vec::new(),
            used: 0,
            since: now,
            wakes_at: Time::NEVER,
        }))
    }

    fn unfit(question: &Question, protocol: Option<&[u8]>) -> Option<Fault> {
        let is_fit = !question.is_secure || protocol == Some(b"h2");
        (!is_fit).then(|| {
            let what = "the server does not offer HTTP/2 under TLS (ALPN h2); use \
                        --http-version 1.1, or switch it on there";
            Fault::protocol(what.to_owned())
        })
    }

    fn greet(&mut self, context: &mut Context<'_, Question>) -> Result<Next, Fault> {
        self.0.greet();
        self.0.go_on(context)
    }

    fn begin(
        &mut self,
        context: &mut Context<'_, Question>,
        is_first: bool,
    ) -> Result<Next, Fault> {
        let state = &mut *self.0;
        for _ in 0..context.plan.streams {
            // Nobody begins in step with everybody else.
            let pause = match is_first {
                true => think(context).mul_f64(unit(context.random)),
                false => Duration::ZERO,
            };
            state.lanes.push(Lane::Thinking(context.now + pause));
        }
        state.go_on(context)
    }

    fn wake(&mut self, context: &mut Context<'_, Question>) -> Result<Next, Fault> {
        if self.0.wakes_at <= context.now {
            self.0.wakes_at = Time::NEVER;
        }
        self.0.go_on(context)
    }

    fn resume(&mut self, context: &mut Context<'_, Question>) -> Result<Next, Fault> {
        self.0.send(context)?;
        Ok(Next::Stays)
    }

    fn hear(
        &mut self,
        context: &mut Context<'_, Question>,
        mut bytes: &[u8],
    ) -> Result<Next, Fault> {
        let state = &mut *self.0;
        let mut frames = std::mem::replace(&mut state.frames, Frames::new());
        while !bytes.is_empty() {
            let taken = frames.take(bytes);
            let (used, part) = taken.map_err(|what| match state.stage {
                Stage::Greeting => wrong(&format!("{what} first; {LOOK}")),
                Stage::Open | Stage::Draining => wrong(&what),
            })?;
            if let Some(part) = part {
                state.on_part(context, part)?;
            }
            bytes = &bytes[used..];
        }
        state.frames = frames;
        state.go_on(context)
    }

    fn ended(&mut self, context: &mut Context<'_, Question>, _: Ending) -> Result<Next, Fault> {
        if self.0.stage == Stage::Greeting {
            return Err(Fault::ended(&format!("before its SETTINGS; {LOOK}")));
        }
        if self.0.count_asked() > 0 {
            return Err(Fault::ended("before its answer was over"));
        }
        context.wake_at = Some(self.0.reopens_at(context.now));
        Ok(Next::Ends)
    }

    fn overdue(&self, question: &Question, now: Time) -> Option<Fault> {
        let state = &*self.0;
        if state.stage == Stage::Greeting {
            let is_over = now.since(state.since) > question.timeout;
            return is_over
                .then(|| Fault::protocol(format!("the server says nothing (--timeout); {LOOK}")));
        }
        let first = state.asked().map(|asked| asked.sent_at).min()?;
        http::overdue(question, first, now)
    }

    fn is_busy(&self) -> bool {
        self.0.count_asked() > 0
    }

    fn lost(&mut self, context: &mut Context<'_, Question>) {
        context.judge(Verdict::Lost, self.0.count_asked());
        self.0.lanes.clear();
    }

    fn finish(&mut self, _: &Question, counts: &mut Counts, _: &mut Marks, _: Time) {
        counts.unfinished += self.0.count_asked();
    }
}
