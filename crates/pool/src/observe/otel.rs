//! The export to OpenTelemetry: metrics, spans of statements, and lines of the log, to a collector
//! (OTLP over HTTP, as JSON).
//!
//! The problem: a collector may be slow, away, or unwilling, and no client may notice that. The
//! mechanism: a thread outside of the groups takes spans from their queue
//! ([`crate::observe::telemetry`]), and the figures from where `/metrics` has them
//! ([`Board::sample`]), and sends both in turn; where the log is exported, a second thread does the
//! same with its records. A batch that could not be sent is tried again with longer and longer
//! pauses, then dropped; metrics are not tried again, because the next ones hold the same counts.
//! Requests are encoded in `otel/encode.rs` and sent in `otel/request.rs`.
//!
//! Bounds: [`BATCH_MAX`] spans or records in a request, [`TRIES_MAX`] tries, [`PAUSE_MAX`] between
//! two; the queues behind have their own.

mod encode;
mod request;

use crate::config::OtelSettings;
use crate::group::shared::Shared;
use crate::observe::log::{self, Event, note};
use crate::observe::metrics::Board;
use crate::observe::otel::encode::{Resource, metrics_request, records_request, spans_request};
use crate::observe::otel::request::{Answer, Collector};
use crate::observe::telemetry::{
    self, ExportQueue, ExportReceiver, ExportReceivers, Item, Outcome, Record, Span, Telemetry,
};
use reactor::Time;
use serde_json::Value;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender};
use std::time::Duration;

/// Spans, or records, of one request.
const BATCH_MAX: usize = 512;
/// Time for which the first of a batch waits for others.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// Times that one batch is sent.
const TRIES_MAX: u32 = 6;
/// The pause after the first try; each is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest pause, also where the collector asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Time to send what is there at the end of the process.
const END_MAX: Duration = Duration::from_secs(2);
/// A thread with nothing to do looks again after so long.
const NOTHING_DUE: Duration = Duration::from_secs(3600);

/// An export that has not begun.
pub(crate) struct Exporter {
    collector: Collector,
    resource: Resource,
    interval: Duration,
    receivers: ExportReceivers,
}

/// Makes the queues, and what empties them, while files may still be read. From now on the lines
/// of the log become records, if they are exported.
///
/// # Errors
/// A sentence with the setting.
pub(crate) fn prepare(settings: &OtelSettings) -> Result<(Telemetry, Exporter), String> {
    let (telemetry, receivers) = telemetry::queues(settings.has_logs);
    let exporter = Exporter {
        collector: Collector::new(settings)?,
        resource: Resource::of(settings),
        interval: settings.interval,
        receivers,
    };
    if let Some(records) = telemetry.records.clone() {
        log::export_to(Box::new(move |event, facts, message| {
            records.note_line(event, facts, message);
        }));
    }
    Ok((telemetry, exporter))
}

/// Begins to export, in threads that end with the process.
///
/// # Errors
/// The system's, when there can be no thread.
pub(crate) fn start(
    exporter: Exporter,
    shared: Arc<Shared>,
    board: Arc<Board>,
) -> Result<(), String> {
    let ExportReceivers { spans, records } = exporter.receivers;
    let sender = Sender {
        collector: exporter.collector,
        resource: Arc::new(exporter.resource),
        system: encode::system_name(shared.server.flavour.is_mysql()),
    };
    if let Some(receiver) = records {
        let (sender, shared) = (sender.clone(), shared.clone());
        in_thread("otel-logs", move || {
            let telemetry = shared.records.telemetry.as_ref();
            let own = telemetry.and_then(|all| Some((all, all.records.as_deref()?)));
            if let Some((telemetry, queue)) = own {
                send_records(Courier::new(sender, telemetry, queue, receiver));
            }
        })?;
    }
    let interval = exporter.interval;
    in_thread("otel", move || {
        if let Some(telemetry) = &shared.records.telemetry {
            let spans = Courier::new(sender, telemetry, &telemetry.spans, spans);
            send_spans_and_metrics(spans, &board, interval);
        }
    })
}

fn in_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let spawned = std::thread::Builder::new().name(name.into()).spawn(work);
    let spawned = spawned.map(|_| ());
    spawned.map_err(|error| format!("cannot start a thread: {error}"))
}

/// Sends what is queued at the process's end, if that can be done soon.
pub(crate) fn finish(shared: &Shared) {
    if let Some(telemetry) = &shared.records.telemetry {
        telemetry.finish(END_MAX);
    }
}

fn send_records(mut records: Courier<'_, Record>) {
    loop {
        match records.work(Time::now() + NOTHING_DUE) {
            Ok(None) => {}
            Ok(Some(done)) => {
                records.send_rest();
                return drop(done);
            }
            Err(_) => return,
        }
    }
}

fn send_spans_and_metrics(mut spans: Courier<'_, Span>, board: &Board, interval: Duration) {
    let mut metrics = Route::new(spans.route.sender.clone(), "metrics", spans.route.telemetry);
    let send_metrics = |route: &mut Route<'_>| {
        let sample = board.sample();
        let body = metrics_request(&route.sender.resource, &sample, reactor::utc_now());
        route.post(&body);
    };
    let mut due = Time::now() + interval;
    loop {
        match spans.work(due) {
            Ok(None) => {}
            Ok(Some(done)) => {
                // Everything once more, and only once.
                spans.send_rest();
                send_metrics(&mut metrics);
                return drop(done);
            }
            Err(_) => return,
        }
        if Time::now() >= due {
            send_metrics(&mut metrics);
            due = Time::now() + interval;
        }
    }
}

/// Destination of requests, and what all of them have in common.
#[derive(Clone)]
struct Sender {
    collector: Collector,
    resource: Arc<Resource>,
    /// `db.system.name`.
    system: &'static str,
}

/// The way of one signal to the collector, which may take one and not another.
struct Route<'a> {
    sender: Sender,
    /// Its name in the path.
    signal: &'static str,
    telemetry: &'a Telemetry,
    /// True if the collector has not taken the last request.
    is_lost: bool,
}

impl<'a> Route<'a> {
    fn new(sender: Sender, signal: &'static str, telemetry: &'a Telemetry) -> Route<'a> {
        Route {
            sender,
            signal,
            telemetry,
            is_lost: false,
        }
    }

    /// Sends and counts a request; an outage is logged when it begins and when it ends.
    fn post(&mut self, body: &Value) -> Answer {
        let answer = self.sender.collector.post(self.signal, body);
        let why = match &answer {
            Answer::Taken { .. } => None,
            Answer::Refused { why } | Answer::Later { why, .. } => Some(why),
        };
        self.telemetry.count_request(why.is_none());
        let (at, signal) = (self.sender.collector.url(self.signal), self.signal);
        match why {
            Some(why) if !self.is_lost => note(
                Event::OtelLost,
                format_args!(
                    "{at}: {why}; {signal} wait or are left out, clients are not affected"
                ),
            ),
            None if self.is_lost => {
                note(Event::OtelBack, format_args!("{at} takes {signal} again"))
            }
            _ => {}
        }
        self.is_lost = why.is_some();
        answer
    }
}

/// Items that are sent in batches.
trait Cargo: Sized {
    /// The signal's name in the path.
    const SIGNAL: &'static str;

    fn request(sender: &Sender, batch: &[Self]) -> Value;
}

impl Cargo for Span {
    const SIGNAL: &'static str = "traces";

    fn request(sender: &Sender, batch: &[Span]) -> Value {
        spans_request(&sender.resource, sender.system, batch)
    }
}

impl Cargo for Record {
    const SIGNAL: &'static str = "logs";

    fn request(sender: &Sender, batch: &[Record]) -> Value {
        records_request(&sender.resource, sender.system, batch)
    }
}

/// Takes things out of their queue and sends them in batches.
struct Courier<'a, T: Cargo> {
    route: Route<'a>,
    queue: &'a ExportQueue<T>,
    receiver: ExportReceiver<T>,
    /// Batch that goes out next.
    batch: Vec<T>,
    /// Moment at which it does, if there is any.
    due: Time,
    /// Tries so far.
    tries: u32,
}

impl<'a, T: Cargo> Courier<'a, T> {
    fn new(
        sender: Sender,
        telemetry: &'a Telemetry,
        queue: &'a ExportQueue<T>,
        receiver: ExportReceiver<T>,
    ) -> Courier<'a, T> {
        Courier {
            route: Route::new(sender, T::SIGNAL, telemetry),
            queue,
            receiver,
            batch: Vec::new(),
            due: Time::default(),
            tries: 0,
        }
    }

    /// Waits until a batch is due, and sends it, or until that time; tells if the process ends.
    fn work(&mut self, until: Time) -> Result<Option<SyncSender<()>>, RecvTimeoutError> {
        let done = self.gather(until)?;
        if done.is_none() && !self.batch.is_empty() && Time::now() >= self.due {
            self.send();
        }
        Ok(done)
    }

    /// Sends the rest at once.
    fn send_rest(&mut self) {
        if !self.batch.is_empty() {
            self.send();
        }
    }

    fn gather(&mut self, until: Time) -> Result<Option<SyncSender<()>>, RecvTimeoutError> {
        loop {
            let until = match self.batch.is_empty() {
                true => until,
                false => until.min(self.due),
            };
            let left = until.since(Time::now());
            if self.batch.len() >= BATCH_MAX {
                // The queue is left as it is; whether the process ends is seen behind it.
                reactor::pause(left);
                return Ok(None);
            }
            match self.receiver.next(left) {
                Ok(Item::One(thing)) => self.take(*thing),
                Ok(Item::End(done)) => return Ok(Some(done)),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, thing: T) {
        let now = Time::now();
        if self.batch.is_empty() {
            self.due = now + BATCH_WAIT;
        }
        self.batch.push(thing);
        if self.batch.len() == BATCH_MAX && self.tries == 0 {
            self.due = now;
        }
    }

    fn send(&mut self) {
        let body = T::request(&self.route.sender, &self.batch);
        let answer = self.route.post(&body);
        let all = self.batch.len() as u64;
        self.tries += 1;
        match answer {
            Answer::Taken { rejected } => {
                let rejected = rejected.min(all);
                self.queue.count(Outcome::Sent, all - rejected);
                self.queue.count(Outcome::Rejected, rejected);
            }
            Answer::Refused { .. } => self.queue.count(Outcome::Rejected, all),
            Answer::Later { after, .. } if self.tries < TRIES_MAX => {
                self.due = Time::now() + pause_before(self.tries, after);
                return;
            }
            Answer::Later { .. } => self.queue.count(Outcome::GivenUp, all),
        }
        self.tries = 0;
        self.batch.clear();
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
