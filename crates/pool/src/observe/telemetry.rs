//! Statements, and lines of the log, on their way to an OpenTelemetry collector.
//!
//! The problem: a span is made where a statement ends, a record where a line is logged, in a
//! group's thread, and the collector may be slow or away. The mechanism: the group makes a
//! [`Span`], or a [`Record`], of what the line of the log has anyway, and puts it into a queue that
//! never makes it wait ([`export_queue`]); threads of their own (`observe/otel.rs`) make
//! requests of them. Where nothing is exported, [`Telemetry`] does not exist; where the log is not,
//! it has no queue for it.
//!
//! Invariants: a queue holds [`SPANS_MAX`] spans at most, each with a text of [`TEXT_MAX`] bytes at
//! most, and the other [`RECORDS_MAX`] records, with the text that the line has; every one that was
//! made is counted once in [`Outcome`] when it is sent or left out.

mod export_queue;

use crate::observe::log::statement::StatementFacts;
use crate::observe::log::{Event, Facts};
pub(crate) use export_queue::{ExportQueue, ExportReceiver, Item, Outcome};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Spans that wait to be sent.
pub(crate) const SPANS_MAX: usize = 4096;
/// Records of lines of the log that wait to be sent.
pub(crate) const RECORDS_MAX: usize = 4096;
/// Most waiting lines with which one of the log of all statements still gets in: it leaves room for
/// what matters more, as the log itself does.
const STATEMENT_RECORDS_MAX: usize = RECORDS_MAX / 2;
/// Bytes of a statement's text in a span: as many as in the log.
const TEXT_MAX: usize = 4096;
/// The bit of a trace's flags that says that it is recorded.
const SAMPLED: u8 = 1;

/// Contents of a client's `traceparent`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trace {
    /// The trace's id, as hexadecimal digits.
    pub(crate) id: Box<str>,
    /// The id of the span above, the same way.
    pub(crate) parent: Box<str>,
    pub(crate) flags: u8,
}

impl Trace {
    fn of(traceparent: &str) -> Option<Trace> {
        let mut parts = traceparent.split('-').skip(1);
        let (id, parent, flags) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Trace {
            id: id.into(),
            parent: parent.into(),
            flags: u8::from_str_radix(flags, 16).ok()?,
        })
    }
}

/// A client, with the name that it has logged in with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Whose {
    pub(crate) client: Option<Box<str>>,
    pub(crate) account: Option<Box<str>>,
}

impl Whose {
    fn of(facts: &Facts<'_>) -> Whose {
        let account = facts.account.map(String::from_utf8_lossy);
        Whose {
            client: facts.client.map(|peer| peer.to_string().into()),
            account: account.map(Into::into),
        }
    }
}

/// Run of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ran {
    /// Time from its arrival until it was sent to the server.
    pub(crate) wait: Duration,
    /// Time from then on until its end.
    pub(crate) service: Duration,
    pub(crate) command: Option<&'static str>,
    /// The server's address.
    pub(crate) server: Option<Box<str>>,
    pub(crate) rows: u64,
    pub(crate) error: Option<u16>,
    pub(crate) digest: Option<u64>,
}

impl Ran {
    fn of(statement: &StatementFacts<'_>) -> Ran {
        Ran {
            wait: statement.wait,
            service: statement.service,
            command: statement.command,
            server: statement.server.map(|(at, _)| at.to_string().into()),
            rows: statement.rows,
            error: statement.error,
            digest: statement.digest,
        }
    }
}

/// A statement that has ended, and the trace that it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) trace: Trace,
    /// Time of day at which it ended.
    pub(crate) end: Duration,
    pub(crate) text: Box<str>,
    pub(crate) whose: Whose,
    pub(crate) ran: Ran,
    /// Reason why it has no reply of the server's.
    pub(crate) reason: Option<Box<str>>,
}

impl Span {
    fn of(facts: &Facts<'_>, text: &str) -> Option<Span> {
        let statement = facts.statement.as_ref()?;
        let trace = Trace::of(statement.trace?)?;
        if trace.flags & SAMPLED == 0 {
            return None;
        }
        Some(Span {
            trace,
            end: reactor::utc_now(),
            text: text[..text.floor_char_boundary(TEXT_MAX)].into(),
            whose: Whose::of(facts),
            ran: Ran::of(statement),
            reason: facts.reason.map(Into::into),
        })
    }
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// Time of day at which it was logged.
    pub(crate) at: Duration,
    pub(crate) event: Event,
    pub(crate) whose: Whose,
    pub(crate) reason: Option<Box<str>>,
    /// Lines of its event that were left out before it.
    pub(crate) omitted: u64,
    /// The statement that it is about, and its trace.
    pub(crate) ran: Option<Ran>,
    pub(crate) trace: Option<Trace>,
    pub(crate) message: Box<str>,
}

impl Record {
    fn of(event: Event, facts: &Facts<'_>, message: &str) -> Record {
        let statement = facts.statement.as_ref();
        Record {
            at: reactor::utc_now(),
            event,
            whose: Whose::of(facts),
            reason: facts.reason.map(Into::into),
            omitted: facts.omitted,
            ran: statement.map(Ran::of),
            trace: statement.and_then(|statement| Trace::of(statement.trace?)),
            message: message.into(),
        }
    }
}

impl ExportQueue<Record> {
    /// Queues a logged line as a record.
    pub(crate) fn note_line(&self, event: Event, facts: &Facts<'_>, message: &str) {
        let max = match event {
            Event::Statement => STATEMENT_RECORDS_MAX,
            _ => RECORDS_MAX,
        };
        self.put(Record::of(event, facts, message), max);
    }
}

/// The pool's end of the export.
#[derive(Debug)]
pub(crate) struct Telemetry {
    pub(crate) spans: ExportQueue<Span>,
    /// Lines of the log, where they are exported.
    pub(crate) records: Option<Arc<ExportQueue<Record>>>,
    /// Requests that the collector has answered well, and others.
    requests: [AtomicU64; 2],
}

/// Ends of the queues from which the exporter's threads take.
#[derive(Debug)]
pub(crate) struct ExportReceivers {
    pub(crate) spans: ExportReceiver<Span>,
    pub(crate) records: Option<ExportReceiver<Record>>,
}

/// Both ends of the queues; the log's only where it is exported.
pub(crate) fn queues(has_logs: bool) -> (Telemetry, ExportReceivers) {
    let (spans, spans_receiver) = export_queue::queue(SPANS_MAX);
    let records = has_logs.then(|| export_queue::queue(RECORDS_MAX));
    let (records, records_receiver) = records.unzip();
    let telemetry = Telemetry {
        spans,
        records: records.map(Arc::new),
        requests: Default::default(),
    };
    let receivers = ExportReceivers {
        spans: spans_receiver,
        records: records_receiver,
    };
    (telemetry, receivers)
}

impl Telemetry {
    /// Queues a logged statement as a span, if its client has named a trace that is recorded.
    pub(crate) fn note_statement(&self, facts: &Facts<'_>, text: &str) {
        if let Some(span) = Span::of(facts, text) {
            self.spans.put(span, SPANS_MAX);
        }
    }

    pub(crate) fn count_request(&self, is_good: bool) {
        self.requests[usize::from(is_good)].fetch_add(1, Relaxed);
    }

    pub(crate) fn requests(&self, is_good: bool) -> u64 {
        self.requests[usize::from(is_good)].load(Relaxed)
    }

    /// Asks for what is there to be sent, and waits for it, so long at most.
    pub(crate) fn finish(&self, longest: Duration) {
        let end = reactor::Time::now() + longest;
        let records = self.records.as_ref().map(|records| records.finish());
        for wait in [Some(self.spans.finish()), records].into_iter().flatten() {
            let _ = wait.recv_timeout(end.since(reactor::Time::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(trace: Option<&str>) -> Facts<'_> {
        Facts {
            account: Some(b"app"),
            statement: Some(StatementFacts {
                command: Some("Query"),
                server: None,
                wait: Duration::from_millis(2),
                service: Duration::from_millis(3),
                rows: 1,
                error: None,
                digest: None,
                trace,
            }),
            ..Facts::default()
        }
    }

    const RECORDED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_span_is_made_of_a_trace_that_is_recorded() {
        let span = Span::of(&facts(Some(RECORDED)), "SELECT ?").unwrap();
        assert_eq!(&*span.trace.id, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(&*span.trace.parent, "b7ad6b7169203331");
        assert_eq!(&*span.text, "SELECT ?");
        assert_eq!(span.whose.account.as_deref(), Some("app"));
        let unrecorded = RECORDED.replace("-01", "-02");
        assert_eq!(Span::of(&facts(Some(&unrecorded)), "SELECT ?"), None);
        assert_eq!(Span::of(&facts(None), "SELECT ?"), None);
        assert_eq!(Span::of(&Facts::default(), ""), None);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let long = "ä".repeat(TEXT_MAX);
        let span = Span::of(&facts(Some(RECORDED)), &long).unwrap();
        assert_eq!(span.text.len(), TEXT_MAX);
        let odd = format!("x{long}");
        assert_eq!(
            Span::of(&facts(Some(RECORDED)), &odd).unwrap().text.len(),
            TEXT_MAX - 1
        );
    }

    #[test]
    fn a_record_has_the_trace_whether_it_is_recorded_or_not() {
        let unrecorded = RECORDED.replace("-01", "-00");
        let record = Record::of(Event::Statement, &facts(Some(&unrecorded)), "SELECT ?");
        assert_eq!(record.trace.unwrap().flags, 0);
        assert_eq!(record.ran.unwrap().rows, 1);
        let record = Record::of(Event::Listening, &Facts::default(), "on *");
        assert_eq!((record.trace, record.ran), (None, None));
    }

    #[test]
    fn a_full_queue_of_spans_counts_what_it_leaves_out() {
        let (telemetry, receivers) = queues(false);
        for _ in 0..SPANS_MAX + 3 {
            telemetry.note_statement(&facts(Some(RECORDED)), "DO ?");
        }
        assert_eq!(telemetry.spans.counted(Outcome::LeftOut), 3);
        for _ in 0..SPANS_MAX {
            assert!(receivers.spans.next(Duration::ZERO).is_ok());
        }
        assert!(receivers.spans.next(Duration::ZERO).is_err());
        drop(receivers);
        telemetry.note_statement(&facts(Some(RECORDED)), "DO ?");
        assert_eq!(telemetry.spans.counted(Outcome::LeftOut), 4);
        telemetry.finish(Duration::from_secs(60));
    }

    #[test]
    fn a_full_queue_of_records_counts_what_it_leaves_out() {
        let (telemetry, receivers) = queues(true);
        let records = telemetry.records.as_ref().unwrap();
        // Statements take half of it; the rest is kept for what matters more.
        for _ in 0..STATEMENT_RECORDS_MAX + 2 {
            records.note_line(Event::Statement, &facts(None), "DO ?");
        }
        assert_eq!(records.counted(Outcome::LeftOut), 2);
        for _ in 0..RECORDS_MAX - STATEMENT_RECORDS_MAX + 3 {
            records.note_line(Event::LoginFailed, &Facts::default(), "denied");
        }
        assert_eq!(records.counted(Outcome::LeftOut), 5);
        let receiver = receivers.records.as_ref().unwrap();
        for _ in 0..RECORDS_MAX {
            assert!(receiver.next(Duration::ZERO).is_ok());
        }
        assert!(receiver.next(Duration::ZERO).is_err());
        drop(receivers);
        telemetry.finish(Duration::from_secs(60));
    }

    #[test]
    fn a_log_that_is_not_exported_has_no_queue() {
        let (telemetry, receivers) = queues(false);
        assert!(telemetry.records.is_none() && receivers.records.is_none());
    }
}
