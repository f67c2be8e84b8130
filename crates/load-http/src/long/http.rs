//! A connection that asks over HTTP/1.1: request, answer, a pause for thought, and again.
//!
//! The loop is closed. An answer is *right* when its status is 2xx and its body what was expected;
//! *late* if it is right but took longer than allowed; *wrong* otherwise; *lost* when the
//! connection broke or the time was over before its last byte. A connection that the server ends
//! between two requests, or with an answer that says so, is opened again and is no failure: HTTP
//! lets it.

use super::answer::{Answer, Reader};
use super::counts::{Counts, Marks, Verdict};
use super::group::{Context, Next, Talk};
use load_core::durations::{Spread, unit};
use load_core::errors::Fault;
use load_core::transport::Ending;
use reactor::{Time, Write};
use std::sync::Arc;
use std::time::Duration;

/// Bound on one of them: a million are this times a million.
const _: () = assert!(size_of::<Option<Asker>>() <= 72);

/// Name of the client in requests.
pub(super) const USER_AGENT: &str = concat!("onramp/", env!("CARGO_PKG_VERSION"));

/// The system's number for a time that is over.
const ETIMEDOUT: u32 = 110;

/// Request that all connections send.
#[derive(Debug)]
pub(super) struct Question {
    /// The request, byte for byte; of HTTP/2 the block of its header fields.
    pub(super) request: Vec<u8>,
    /// The body of a right answer; `None` takes any.
    pub(super) expected: Option<Arc<[u8]>>,
    /// The pause between an answer and the next request.
    pub(super) think: Spread,
    /// A right answer that takes longer is late.
    pub(super) late_after: Duration,
    /// An answer that takes longer is given up.
    pub(super) timeout: Duration,
    /// One connection for many requests.
    pub(super) keep_alive: bool,
    /// Requests of HTTP/2 that are under way at once.
    pub(super) streams: u16,
    /// Under TLS, where both sides agree on the version of HTTP.
    pub(super) is_secure: bool,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Asker {
    reader: Reader,
    sent_at: Time,
    /// Bytes of the request that have left.
    sent: u32,
    /// True if a request has no answer yet.
    asking: bool,
}

impl Asker {
    fn ask(&mut self, context: &mut Context<'_, Question>) -> Result<Next, Fault> {
        (self.sent_at, self.sent, self.asking) = (context.now, 0, true);
        self.resume(context)
    }

    fn on_answer(&mut self, context: &mut Context<'_, Question>, answer: Answer) {
        self.asking = false;
        judge(context, self.sent_at, answer.status, answer.as_expected);
    }
}

/// The pause in front of the next request.
pub(super) fn think(context: &mut Context<'_, Question>) -> Duration {
    context.plan.think.draw(context.random)
}

/// Fault of an answer to a request of `sent_at` that has taken too long.
pub(super) fn overdue(question: &Question, sent_at: Time, now: Time) -> Option<Fault> {
    let is_over = now.since(sent_at) > question.timeout;
    is_over.then(|| Fault {
        code: ETIMEDOUT,
        sqlstate: String::new(),
        message: format!(
            "ETIMEDOUT: no answer within {} s (--timeout)",
            question.timeout.as_secs_f64()
        ),
    })
}

/// Judges an answer that has come whole.
pub(super) fn judge(
    context: &mut Context<'_, Question>,
    sent_at: Time,
    status: u16,
    as_expected: bool,
) {
    let took = context.now.since(sent_at);
    let is_right = (200..300).contains(&status) && as_expected;
    let verdict = match is_right {
        false => Verdict::Wrong,
        true if took > context.plan.late_after => Verdict::Late,
        true => Verdict::Right,
    };
    context.judge(verdict, 1);
    if is_right {
        context.counts.latency.record(took);
        return;
    }
    let what = match as_expected {
        true => "",
        false => ", with another body than expected",
    };
    let fault = Fault {
        code: status.into(),
        sqlstate: "HTTP".to_owned(),
        message: format!("status {status}{what}"),
    };
    context
        .counts
        .errors
        .count(load_core::errors::Phase::Statement, fault);
}

impl Talk for Asker {
    type Plan = Question;
    const REOPENS: bool = true;
    const PROTOCOLS: &'static [&'static [u8]] = &[b"http/1.1"];

    fn new(_: Time, now: Time) -> Asker {
        Asker {
            reader: Reader::new(),
            sent_at: now,
            sent: 0,
            asking: false,
        }
    }

    fn begin(
        &mut self,
        context: &mut Context<'_, Question>,
        is_first: bool,
    ) -> Result<Next, Fault> {
        let think = think(context);
        if is_first && think > Duration::ZERO {
            // Nobody begins in step with everybody else.
            context.wake_at = Some(context.now + think.mul_f64(unit(context.random)));
            return Ok(Next::Stays);
        }
        self.ask(context)
    }

    fn wake(&mut self, context: &mut Context<'_, Question>) -> Result<Next, Fault> {
        if context.running && !self.asking {
            return self.ask(context);
        }
        Ok(Next::Stays)
    }

    fn resume(&mut self, context: &mut Context<'_, Question>) -> Result<Next, Fault> {
        while self.asking {
            let plan = context.plan;
            let rest = &plan.request[self.sent as usize..];
            if rest.is_empty() {
                break;
            }
            match context.write(rest) {
                Write::Bytes(count) => self.sent += u32::try_from(count).unwrap_or(0),
                Write::Blocked => break,
                Write::Failed(error) => return Err(Fault::system(&error)),
            }
        }
        Ok(Next::Stays)
    }

    fn hear(
        &mut self,
        context: &mut Context<'_, Question>,
        mut bytes: &[u8],
    ) -> Result<Next, Fault> {
        while !bytes.is_empty() {
            if !self.asking {
                let what = "the server sent an answer that nobody asked for";
                return Err(Fault::protocol(what.to_owned()));
            }
            let (used, answer) = self.reader.take(bytes, context.plan.expected.as_deref())?;
            bytes = &bytes[used..];
            let Some(answer) = answer else {
                continue;
            };
            self.on_answer(context, answer);
            let think = think(context);
            if answer.close || !context.plan.keep_alive {
                context.wake_at = Some(context.now + think);
                return Ok(Next::Ends);
            }
            if !context.running {
                continue;
            }
            if think > Duration::ZERO {
                context.wake_at = Some(context.now + think);
            } else {
                self.ask(context)?;
            }
        }
        Ok(Next::Stays)
    }

    fn ended(&mut self, context: &mut Context<'_, Question>, how: Ending) -> Result<Next, Fault> {
        if self.asking {
            let answer = match how {
                Ending::Announced => self.reader.end(context.plan.expected.as_deref()),
                // A body that ends with the connection may have been cut.
                Ending::Cut => None,
            };
            let answer = answer.ok_or_else(|| Fault::ended("before its answer was over"))?;
            self.on_answer(context, answer);
        }
        context.wake_at = Some(context.now + think(context));
        Ok(Next::Ends)
    }

    fn overdue(&self, question: &Question, now: Time) -> Option<Fault> {
        let asking = self.asking.then(|| overdue(question, self.sent_at, now));
        asking.flatten()
    }

    fn is_busy(&self) -> bool {
        self.asking
    }

    fn lost(&mut self, context: &mut Context<'_, Question>) {
        if std::mem::take(&mut self.asking) {
            context.judge(Verdict::Lost, 1);
        }
    }

    fn finish(&mut self, _: &Question, counts: &mut Counts, _: &mut Marks, _: Time) {
        counts.unfinished += u64::from(self.asking);
    }
}
