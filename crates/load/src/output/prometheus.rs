//! The figures for a monitoring system, while the run goes: the Prometheus text format over HTTP.
//!
//! A thread of its own answers one request after the other with the text that the main thread made
//! last, so a slow reader holds up nobody but other readers. Whatever is asked for, this is the
//! answer. Counters are of the whole run, the ramp included and a warm-up not; latencies are
//! summaries, in seconds as is the custom there.
//! (The format: prometheus.io, "Exposition formats", version 0.0.4.)
//!
//! Invariant: a reader's socket exists in this thread's descriptor table only. A group that begins
//! while a reader is being answered copies the main table; a copy of his socket there would keep it
//! open for as long as the group lives, and he would wait for its end all that time.

use super::Frame;
use crate::errors::Phase;
use crate::stats::{Class, Stats};
use measure::{Histogram, process};
use reactor::descriptors;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a reader may take to ask, and to take the answer.
const READER_MAX: Duration = Duration::from_secs(2);
const QUANTILES: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// The text, and the thread that hands it out until the process ends.
pub(super) struct Exporter {
    text: Arc<Mutex<String>>,
}

impl Exporter {
    /// Listens at `address`.
    ///
    /// # Errors
    /// A sentence with the address and the system's reason.
    pub(super) fn open(address: &str) -> Result<Exporter, String> {
        let wrong = |error| format!("--prometheus {address}: {error}");
        let listener = TcpListener::bind(address).map_err(wrong)?;
        let place = listener.local_addr().map_err(wrong)?;
        eprintln!("load: figures at http://{place}/metrics");
        let text = Arc::new(Mutex::new(String::new()));
        serve(listener, text.clone()).map_err(wrong)?;
        Ok(Exporter { text })
    }

    /// What is handed out from now on.
    pub(super) fn show(&self, frame: &Frame<'_>) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = render(frame);
    }
}

/// Answers whoever comes, in a thread of its own, until the process ends.
fn serve(listener: TcpListener, text: Arc<Mutex<String>>) -> std::io::Result<()> {
    let work = move || {
        // Where this is not allowed no group has a table of its own either, and nothing is copied.
        let _ = descriptors::own_table();
        for reader in listener.incoming().flatten() {
            let text = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // A reader that has gone needs no answer.
            let _ = answer(reader, &text);
        }
    };
    let builder = thread::Builder::new().name("prometheus".to_owned());
    builder.spawn(work).map(|_| ())
}

fn answer(mut reader: TcpStream, text: &str) -> std::io::Result<()> {
    reader.set_read_timeout(Some(READER_MAX))?;
    reader.set_write_timeout(Some(READER_MAX))?;
    let (mut asked, mut piece) = (Vec::new(), [0; 1024]);
    while !asked.windows(4).any(|end| end == b"\r\n\r\n") && asked.len() < 16 * 1024 {
        match reader.read(&mut piece)? {
            0 => return Ok(()),
            n => asked.extend_from_slice(&piece[..n]),
        }
    }
    write!(
        reader,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    )
}

/// A counter or a gauge: its name, what it is, and its value.
type Figure<T> = (&'static str, &'static str, T);

fn render(frame: &Frame<'_>) -> String {
    let mut out = String::new();
    put_counters(&mut out, frame.total);
    put_errors(&mut out, frame.total);
    put_gauges(&mut out, frame);
    put_latencies(&mut out, frame.total);
    out
}

fn put_counters(out: &mut String, total: &Stats) {
    let name = "onramp_load_statements_total";
    put_head(out, name, "counter", "Statements that succeeded, by class.");
    for (class, count) in [
        ("read", total.reads),
        ("write", total.writes),
        ("other", total.others),
    ] {
        let _ = writeln!(out, "{name}{{class=\"{class}\"}} {count}");
    }
    let counters: [Figure<u64>; 13] = [
        ("events", "Events that ran to their end.", total.events),
        (
            "in_time",
            "Statements that succeeded in time.",
            total.in_time,
        ),
        ("failed_statements", "Statements that failed.", total.failed),
        (
            "ignored_errors",
            "Statements whose event was run again.",
            total.ignored,
        ),
        ("gave_up", "Statements that clients gave up.", total.gave_up),
        (
            "arrived",
            "Events that arrived in the open loop.",
            total.arrived,
        ),
        ("shed", "Arrivals that found the line full.", total.shed),
        (
            "expired",
            "Arrivals whose patience ended in the line.",
            total.expired,
        ),
        (
            "connects",
            "Connections opened for the first time.",
            total.connect_latency.count(),
        ),
        ("reconnects", "Connections opened again.", total.reconnects),
        (
            "failed_connects",
            "Attempts to connect that failed.",
            total.failed_connects,
        ),
        (
            "lost_connections",
            "Connections lost while open.",
            total.lost,
        ),
        (
            "retired_connections",
            "Connections at their lifetime's end.",
            total.retired,
        ),
    ];
    for (name, help, value) in counters {
        let name = format!("onramp_load_{name}_total");
        put_head(out, &name, "counter", help);
        let _ = writeln!(out, "{name} {value}");
    }
}

fn put_errors(out: &mut String, total: &Stats) {
    let name = "onramp_load_errors_total";
    put_head(out, name, "counter", "Errors by phase and number.");
    for (word, phase) in [
        ("connect", Phase::Connect),
        ("init", Phase::Init),
        ("statement", Phase::Statement),
    ] {
        for row in total.errors.of(phase) {
            let (code, state, count) = (row.code, &row.sqlstate, row.count);
            let labels = format!("phase=\"{word}\",code=\"{code}\",sqlstate=\"{state}\"");
            let _ = writeln!(out, "{name}{{{labels}}} {count}");
        }
    }
}

fn put_gauges(out: &mut String, frame: &Frame<'_>) {
    let sample = process::own().unwrap_or_default();
    let point = frame.point.copied().unwrap_or_default();
    let gauges: [Figure<f64>; 6] = [
        (
            "connected",
            "Connections that are open.",
            frame.gauges.connected as f64,
        ),
        (
            "executing",
            "Connections that wait for an answer.",
            frame.gauges.executing as f64,
        ),
        (
            "waiting",
            "Events that wait for an idle connection.",
            frame.gauges.waiting as f64,
        ),
        (
            "statements_per_second",
            "In the last second.",
            point.statements_per_s,
        ),
        (
            "cpu_share",
            "CPU over usable cores, in the last second.",
            point.cpu_share,
        ),
        (
            "resident_memory_bytes",
            "Of this process.",
            sample.rss_bytes as f64,
        ),
    ];
    for (name, help, value) in gauges {
        let name = format!("onramp_load_{name}");
        put_head(out, &name, "gauge", help);
        let _ = writeln!(out, "{name} {value}");
    }
    let name = "onramp_load_cpu_seconds_total";
    put_head(out, name, "counter", "CPU time of this process.");
    let _ = writeln!(out, "{name} {}", sample.cpu.as_secs_f64());
}

fn put_latencies(out: &mut String, total: &Stats) {
    let name = "onramp_load_latency_seconds";
    put_head(
        out,
        name,
        "summary",
        "Latencies by kind, over the whole run.",
    );
    for (kind, counts) in [
        ("read", total.latency_of(Class::Read)),
        ("write", total.latency_of(Class::Write)),
        ("other", total.latency_of(Class::Other)),
        ("event", &total.event_latency),
        ("connect", &total.connect_latency),
        ("reconnect", &total.reconnect_latency),
        ("lag", &total.lag),
    ] {
        put_summary(out, name, kind, counts);
    }
}

fn put_summary(out: &mut String, name: &str, kind: &str, counts: &Histogram) {
    for quantile in QUANTILES {
        let seconds = counts.percentile_ms(quantile * 100.0) / 1e3;
        let _ = writeln!(
            out,
            "{name}{{kind=\"{kind}\",quantile=\"{quantile}\"}} {seconds}"
        );
    }
    let sum = counts.sum_ms() / 1e3;
    let _ = writeln!(out, "{name}_sum{{kind=\"{kind}\"}} {sum}");
    let _ = writeln!(out, "{name}_count{{kind=\"{kind}\"}} {}", counts.count());
}

fn put_head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Gauges;
    use crate::errors::Fault;
    use std::io::ErrorKind;
    use std::net::SocketAddr;
    use std::sync::mpsc::sync_channel;

    fn rendered() -> String {
        let mut total = Stats::default();
        for ms in 1..=100 {
            total.succeeded(Class::Read, Duration::from_millis(ms), None);
        }
        total.failed(Fault::ended("during a statement"), false);
        total.gave_up = 4;
        let gauges = Gauges {
            connected: 9,
            ..Gauges::default()
        };
        render(&Frame {
            total: &total,
            gauges,
            point: None,
        })
    }

    #[test]
    fn every_figure_has_its_head_and_its_value() {
        let text = rendered();
        for line in [
            "# TYPE onramp_load_statements_total counter",
            "onramp_load_statements_total{class=\"read\"} 100",
            "onramp_load_gave_up_total 4",
            "onramp_load_connected 9",
            "onramp_load_errors_total{phase=\"statement\",code=\"2013\",sqlstate=\"HY000\"} 1",
            "# TYPE onramp_load_latency_seconds summary",
            "onramp_load_latency_seconds_sum{kind=\"read\"} 5.05",
            "onramp_load_latency_seconds_count{kind=\"read\"} 100",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        let heads = text.lines().filter(|l| l.starts_with("# TYPE")).count();
        let mut names: Vec<&str> = text
            .lines()
            .filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next())
            .collect();
        names.dedup();
        assert_eq!(names.len(), heads, "no name has two heads");
    }

    /// A server of its own with this text.
    fn served(text: &str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, Arc::new(Mutex::new(text.to_owned()))).unwrap();
        address
    }

    #[test]
    fn whoever_asks_is_answered() {
        let exporter = Exporter::open("127.0.0.1:0").map_err(|why| panic!("{why}"));
        drop(exporter);
        let mut reader = TcpStream::connect(served("a 1\n")).unwrap();
        reader
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
        assert!(
            said.ends_with("Content-Length: 4\r\nConnection: close\r\n\r\na 1\n"),
            "{said}"
        );
    }

    /// True when the server has accepted this connection: until then its end has no inode.
    /// (Documentation/networking/proc_net_tcp.rst of Linux: both ends are the second and third
    /// column, ports in hexadecimal, the inode the tenth.)
    fn is_accepted(reader: &TcpStream) -> bool {
        let port = |address: SocketAddr| format!(":{:04X}", address.port());
        let ours = port(reader.local_addr().unwrap());
        let theirs = port(reader.peer_addr().unwrap());
        let table = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
        table.lines().any(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            columns[1].ends_with(&theirs) && columns[2].ends_with(&ours) && columns[9] != "0"
        })
    }

    #[test]
    fn a_reader_hears_the_end_although_a_group_begins_while_he_is_answered() {
        let mut reader = TcpStream::connect(served("a 1\n")).unwrap();
        reader.write_all(b"GET /metrics HTTP/1.0\r\n").unwrap();
        while !is_accepted(&reader) {
            thread::yield_now();
        }
        let ((begun, begins), (end, ends)) = (sync_channel(1), sync_channel::<()>(1));
        let group = thread::spawn(move || {
            descriptors::own_table().unwrap();
            begun.send(()).unwrap();
            // Until the other end is dropped.
            ends.recv()
        });
        begins.recv().unwrap();
        let _ = reader.write_all(b"\r\n");
        // A test that does not get on for longer than a reader may take finds the connection reset,
        // which is an end as well.
        reader.set_read_timeout(Some(20 * READER_MAX)).unwrap();
        let heard = reader.read_to_end(&mut Vec::new());
        let kind = heard.map_err(|error| error.kind());
        assert_ne!(kind, Err(ErrorKind::WouldBlock), "he waits for the end");
        drop(end);
        assert!(group.join().unwrap().is_err());
    }
}
