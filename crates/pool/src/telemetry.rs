//! Statements on their way to an OpenTelemetry collector: one bounded queue for all groups.
//!
//! The problem: a span is made where a statement ends, in a group's thread, and the collector may
//! be slow or away. The mechanism: the group makes a [`Span`] of what the line of the log has
//! anyway, and puts it into a queue that never makes it wait; a thread of its own
//! (`operations/otel.rs`) makes requests of them. Where nothing is exported, [`Telemetry`] does not
//! exist.
//!
//! Invariants: a queue holds [`SPANS_MAX`] spans at most, each with a text of [`TEXT_MAX`] bytes at
//! most; every span that was made is counted once in [`Outcome`] when it is sent or left out.

use crate::log::Facts;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Spans that wait to be sent.
pub(crate) const SPANS_MAX: usize = 4096;
/// Bytes of a statement's text in a span: as many as in the log.
const TEXT_MAX: usize = 4096;
/// The bit of a trace's flags that says that it is recorded.
const SAMPLED: u8 = 1;

/// A statement that has ended, and the trace that it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    /// The trace's id, as hexadecimal digits.
    pub(crate) trace: Box<str>,
    /// The id of the span above it, the same way.
    pub(crate) parent: Box<str>,
    /// When it ended, as the time of day.
    pub(crate) end: Duration,
    /// From its arrival until it was sent to the server.
    pub(crate) wait: Duration,
    /// From then on until its end.
    pub(crate) service: Duration,
    pub(crate) text: Box<str>,
    pub(crate) command: Option<&'static str>,
    /// The server's address.
    pub(crate) server: Option<Box<str>>,
    pub(crate) client: Option<Box<str>>,
    pub(crate) account: Option<Box<str>>,
    pub(crate) rows: u64,
    pub(crate) error: Option<u16>,
    pub(crate) digest: Option<u64>,
    /// Why it has no reply of the server's.
    pub(crate) reason: Option<Box<str>>,
}

/// What became of spans, or of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The collector has taken them.
    Sent,
    /// The queue was full.
    LeftOut,
    /// The collector does not want them.
    Rejected,
    /// The collector could not be reached for so long that they were dropped.
    GivenUp,
}

impl Outcome {
    pub(crate) const ALL: [Outcome; 4] = [
        Outcome::Sent,
        Outcome::LeftOut,
        Outcome::Rejected,
        Outcome::GivenUp,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Outcome::Sent => "sent",
            Outcome::LeftOut => "left_out",
            Outcome::Rejected => "rejected",
            Outcome::GivenUp => "given_up",
        }
    }
}

/// What the groups give to the exporter.
#[derive(Debug)]
pub(crate) enum Item {
    Span(Box<Span>),
    /// The process ends: what is there is sent, and then this is dropped.
    End(SyncSender<()>),
}

/// The groups' end of the export.
#[derive(Debug)]
pub(crate) struct Telemetry {
    sender: SyncSender<Item>,
    spans: [AtomicU64; Outcome::ALL.len()],
    /// Requests that the collector has answered well, and others.
    requests: [AtomicU64; 2],
}

/// Both ends of the queue.
pub(crate) fn queue() -> (Telemetry, Receiver<Item>) {
    let (sender, receiver) = sync_channel(SPANS_MAX);
    let telemetry = Telemetry {
        sender,
        spans: Default::default(),
        requests: Default::default(),
    };
    (telemetry, receiver)
}

impl Telemetry {
    /// A statement is logged: it becomes a span, if its client has named a trace that is recorded.
    pub(crate) fn note_statement(&self, facts: &Facts<'_>, text: &str) {
        if let Some(span) = span_of(facts, text) {
            self.put(span);
        }
    }

    fn put(&self, span: Span) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.sender.try_send(Item::Span(Box::new(span)))
        {
            self.count(Outcome::LeftOut, 1);
        }
    }

    pub(crate) fn count(&self, outcome: Outcome, spans: u64) {
        self.spans[outcome as usize].fetch_add(spans, Relaxed);
    }

    pub(crate) fn spans(&self, outcome: Outcome) -> u64 {
        self.spans[outcome as usize].load(Relaxed)
    }

    pub(crate) fn count_request(&self, is_good: bool) {
        self.requests[usize::from(is_good)].fetch_add(1, Relaxed);
    }

    pub(crate) fn requests(&self, is_good: bool) -> u64 {
        self.requests[usize::from(is_good)].load(Relaxed)
    }

    /// Asks for what is there to be sent, and waits for it, so long at most.
    pub(crate) fn finish(&self, longest: Duration) {
        let (done, wait) = sync_channel(0);
        if self.sender.try_send(Item::End(done)).is_ok() {
            let _ = wait.recv_timeout(longest);
        }
    }
}

fn span_of(facts: &Facts<'_>, text: &str) -> Option<Span> {
    let statement = facts.statement.as_ref()?;
    let mut parts = statement.trace?.split('-').skip(1);
    let (trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?);
    if u8::from_str_radix(flags, 16).ok()? & SAMPLED == 0 {
        return None;
    }
    let text = &text[..text.floor_char_boundary(TEXT_MAX)];
    Some(Span {
        trace: trace.into(),
        parent: parent.into(),
        end: reactor::utc_now(),
        wait: statement.wait,
        service: statement.service,
        text: text.into(),
        command: statement.command,
        server: statement.server.map(|(at, _)| at.to_string().into()),
        client: facts.client.map(|peer| peer.to_string().into()),
        account: facts
            .account
            .map(|name| String::from_utf8_lossy(name).into()),
        rows: statement.rows,
        error: statement.error,
        digest: statement.digest,
        reason: facts.reason.map(Into::into),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::statement::StatementFacts;

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
        let span = span_of(&facts(Some(RECORDED)), "SELECT ?").unwrap();
        assert_eq!(&*span.trace, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(&*span.parent, "b7ad6b7169203331");
        assert_eq!(
            (&*span.text, span.account.as_deref()),
            ("SELECT ?", Some("app"))
        );
        let unrecorded = RECORDED.replace("-01", "-02");
        assert_eq!(span_of(&facts(Some(&unrecorded)), "SELECT ?"), None);
        assert_eq!(span_of(&facts(None), "SELECT ?"), None);
        assert_eq!(span_of(&Facts::default(), ""), None);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let long = "ä".repeat(TEXT_MAX);
        let span = span_of(&facts(Some(RECORDED)), &long).unwrap();
        assert_eq!(span.text.len(), TEXT_MAX);
        let odd = format!("x{long}");
        assert_eq!(
            span_of(&facts(Some(RECORDED)), &odd).unwrap().text.len(),
            TEXT_MAX - 1
        );
    }

    #[test]
    fn a_full_queue_counts_what_it_leaves_out() {
        let (telemetry, receiver) = queue();
        for _ in 0..SPANS_MAX + 3 {
            telemetry.note_statement(&facts(Some(RECORDED)), "DO ?");
        }
        assert_eq!(telemetry.spans(Outcome::LeftOut), 3);
        assert_eq!(receiver.try_iter().count(), SPANS_MAX);
        drop(receiver);
        telemetry.note_statement(&facts(Some(RECORDED)), "DO ?");
        assert_eq!(telemetry.spans(Outcome::LeftOut), 4);
        telemetry.finish(Duration::from_secs(60));
    }
}
