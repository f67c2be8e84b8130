//! The export to OpenTelemetry: metrics, and spans of statements, to a collector (OTLP over HTTP,
//! as JSON).
//!
//! The problem: a collector may be slow, away, or unwilling, and no client may notice that. The
//! mechanism: one thread outside of the groups takes spans from their queue
//! ([`crate::telemetry`]), and the figures from where `/metrics` has them
//! ([`Board::sample`]), and sends both in turn. A batch that could not be sent is tried again with
//! longer and longer pauses, then dropped; metrics are not tried again, because the next ones hold
//! the same counts. What the requests say is `otel/encode.rs`'s matter, how they go out
//! `otel/request.rs`'s.
//!
//! Bounds: [`BATCH_MAX`] spans in a request, [`TRIES_MAX`] tries, [`PAUSE_MAX`] between two; the
//! queue behind has its own.

mod encode;
mod request;

use crate::config::OtelSettings;
use crate::log::{Event, note};
use crate::operations::metrics::Board;
use crate::operations::otel::encode::{Resource, metrics_request, spans_request};
use crate::operations::otel::request::{Answer, Collector};
use crate::shared::Shared;
use crate::telemetry::{self, Item, Outcome, Span, Telemetry};
use reactor::Time;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

/// Spans of one request.
const BATCH_MAX: usize = 512;
/// A span waits for others for so long.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// Times that one batch is sent.
const TRIES_MAX: u32 = 6;
/// The pause after the first try; each is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest pause, also where the collector asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// At the end of the process, what is there gets this time to be sent.
const END_MAX: Duration = Duration::from_secs(2);

/// An export that has not begun.
pub(crate) struct Exporter {
    collector: Collector,
    resource: Resource,
    interval: Duration,
    items: Receiver<Item>,
}

/// Makes the queue, and what empties it, while files may still be read.
///
/// # Errors
/// A sentence with the setting.
pub(crate) fn prepare(settings: &OtelSettings) -> Result<(Telemetry, Exporter), String> {
    let (telemetry, items) = telemetry::queue();
    let exporter = Exporter {
        collector: Collector::new(settings)?,
        resource: Resource::of(settings),
        interval: settings.interval,
        items,
    };
    Ok((telemetry, exporter))
}

/// Begins to export, in a thread that ends with the process.
///
/// # Errors
/// The system's, when there can be no thread.
pub(crate) fn start(
    exporter: Exporter,
    shared: Arc<Shared>,
    board: Arc<Board>,
) -> Result<(), String> {
    let work = move || {
        let Some(telemetry) = &shared.telemetry else {
            return;
        };
        let mut sending = Sending {
            exporter,
            telemetry,
            board: &board,
            system: encode::system_name(shared.server.flavour.is_mysql()),
            batch: Vec::new(),
            due: Time::default(),
            tries: 0,
            is_lost: false,
        };
        sending.run();
    };
    let builder = std::thread::Builder::new().name("otel".into());
    let spawned = builder.spawn(work).map(|_| ());
    spawned.map_err(|error| format!("cannot start a thread: {error}"))
}

/// The process ends: what is there is sent, if that can be done soon.
pub(crate) fn finish(shared: &Shared) {
    if let Some(telemetry) = &shared.telemetry {
        telemetry.finish(END_MAX);
    }
}

struct Sending<'a> {
    exporter: Exporter,
    telemetry: &'a Telemetry,
    board: &'a Board,
    system: &'static str,
    /// Spans that go out next.
    batch: Vec<Span>,
    /// When they do, if there are any.
    due: Time,
    /// How often these were tried.
    tries: u32,
    /// The collector has not taken the last request.
    is_lost: bool,
}

impl Sending<'_> {
    fn run(&mut self) {
        let mut next_metrics = Time::now() + self.exporter.interval;
        loop {
            match self.gather(next_metrics) {
                Ok(None) => {}
                Ok(Some(done)) => return self.end(done),
                Err(_) => return,
            }
            let now = Time::now();
            if !self.batch.is_empty() && now >= self.due {
                self.send_spans();
            }
            if now >= next_metrics {
                self.send_metrics();
                next_metrics = Time::now() + self.exporter.interval;
            }
        }
    }

    /// Takes spans until something is due; tells if the process ends.
    fn gather(&mut self, metrics: Time) -> Result<Option<SyncSender<()>>, RecvTimeoutError> {
        loop {
            let until = match self.batch.is_empty() {
                true => metrics,
                false => metrics.min(self.due),
            };
            let left = until.since(Time::now());
            if self.batch.len() >= BATCH_MAX {
                // The queue is left as it is; whether the process ends is seen behind it.
                reactor::pause(left);
                return Ok(None);
            }
            match self.exporter.items.recv_timeout(left) {
                Ok(Item::Span(span)) => self.take(*span),
                Ok(Item::End(done)) => return Ok(Some(done)),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, span: Span) {
        let now = Time::now();
        if self.batch.is_empty() {
            self.due = now + BATCH_WAIT;
        }
        self.batch.push(span);
        if self.batch.len() == BATCH_MAX && self.tries == 0 {
            self.due = now;
        }
    }

    fn send_spans(&mut self) {
        let body = spans_request(&self.exporter.resource, self.system, &self.batch);
        let answer = self.exporter.collector.post("traces", &body);
        self.note_answer(&answer);
        let all = self.batch.len() as u64;
        self.tries += 1;
        match answer {
            Answer::Taken { rejected } => {
                let rejected = rejected.min(all);
                self.telemetry.count(Outcome::Sent, all - rejected);
                self.telemetry.count(Outcome::Rejected, rejected);
            }
            Answer::Refused { .. } => self.telemetry.count(Outcome::Rejected, all),
            Answer::Later { after, .. } if self.tries < TRIES_MAX => {
                self.due = Time::now() + pause_before(self.tries, after);
                return;
            }
            Answer::Later { .. } => self.telemetry.count(Outcome::GivenUp, all),
        }
        self.tries = 0;
        self.batch.clear();
    }

    fn send_metrics(&mut self) {
        let sample = self.board.sample();
        let body = metrics_request(&self.exporter.resource, &sample, reactor::utc_now());
        let answer = self.exporter.collector.post("metrics", &body);
        self.note_answer(&answer);
    }

    /// Everything once more, and only once.
    fn end(&mut self, done: SyncSender<()>) {
        if !self.batch.is_empty() {
            self.send_spans();
        }
        self.send_metrics();
        drop(done);
    }

    /// Counts a request; an outage is logged when it begins and when it ends.
    fn note_answer(&mut self, answer: &Answer) {
        let why = match answer {
            Answer::Taken { .. } => None,
            Answer::Refused { why } | Answer::Later { why, .. } => Some(why),
        };
        self.telemetry.count_request(why.is_none());
        match why {
            Some(why) if !self.is_lost => note(
                Event::OtelLost,
                format_args!(
                    "{}: {why}; metrics and spans wait or are left out, clients are not affected",
                    self.exporter.collector.endpoint()
                ),
            ),
            None if self.is_lost => note(
                Event::OtelBack,
                format_args!(
                    "{} takes requests again",
                    self.exporter.collector.endpoint()
                ),
            ),
            _ => {}
        }
        self.is_lost = why.is_some();
    }
}

/// The pause behind so many tries that failed; the collector may ask for another.
fn pause_before(tries: u32, asked: Option<Duration>) -> Duration {
    let doubled = PAUSE_FIRST.saturating_mul(1 << tries.saturating_sub(1).min(16));
    asked.unwrap_or(doubled).clamp(PAUSE_FIRST, PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        let pauses: Vec<u64> = (1..=TRIES_MAX + 1)
            .map(|tries| pause_before(tries, None).as_secs())
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(pause_before(u32::MAX, None), PAUSE_MAX);
        let asked = |seconds| pause_before(1, Some(Duration::from_secs(seconds)));
        assert_eq!(asked(5), Duration::from_secs(5));
        assert_eq!(asked(0), PAUSE_FIRST);
        assert_eq!(asked(86_400), PAUSE_MAX);
    }
}
