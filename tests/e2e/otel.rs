//! The export to OpenTelemetry: what a collector is sent, and that its absence harms nobody.
//!
//! The collector is one of the test's own, which checks the form of whatever comes: the names of
//! the protocol's messages and no others, ids as hexadecimal digits, numbers of 64 bits as texts.
//! `scripts/otel.sh` has the protocol's own definitions read the same requests.

use crate::metrics::{figures, place_of};
use crate::world::*;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use testkit::certificates::{Authority, Valid, put};

/// Requests that a test has not looked at.
const REQUESTS_MAX: usize = 4096;
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
const OK: &str = "200 OK";

/// A collector that answers with the status that it is told.
struct Collector {
    port: u16,
    status: Arc<Mutex<&'static str>>,
    requests: Receiver<(String, Value)>,
}

impl Collector {
    fn start() -> Collector {
        Collector::over(None)
    }

    /// A collector, under TLS if there is a certificate.
    fn over(tls: Option<Arc<ServerConfig>>) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let status = Arc::new(Mutex::new(OK));
        let (sender, requests) = sync_channel(REQUESTS_MAX);
        let shared = status.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (sender, status, tls) = (sender.clone(), shared.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => attend(stream, &sender, &status),
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).unwrap();
                        attend(StreamOwned::new(connection, stream), &sender, &status);
                    }
                });
            }
        });
        Collector {
            port,
            status,
            requests,
        }
    }

    fn settings(&self) -> String {
        let port = self.port;
        format!("[otel]\nendpoint = \"http://127.0.0.1:{port}/\"\ninterval_s = 1\n")
    }

    fn answer_with(&self, status: &'static str) {
        *self.status.lock().unwrap() = status;
    }

    /// The next request about this signal.
    fn next(&self, signal: &str) -> Value {
        let path = format!("/v1/{signal}");
        loop {
            let (at, body) = self.requests.recv_timeout(LIMIT).unwrap();
            check(&body);
            if at == path {
                return body;
            }
        }
    }
}

/// Requests of one connection, until it ends.
fn attend(
    stream: impl Read + Write,
    requests: &SyncSender<(String, Value)>,
    status: &Mutex<&'static str>,
) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut head) = (String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            head += &line.to_ascii_lowercase();
        }
        says(&head, "content-type: application/json\r\n");
        let len = head.split("content-length: ").nth(1).unwrap();
        let len = len.split("\r\n").next().unwrap().parse().unwrap();
        let mut body = vec![0; len];
        reader.read_exact(&mut body).unwrap();
        let mut words = head.split(' ');
        assert_eq!(words.next(), Some("post"));
        let path = words.next().unwrap().to_owned();
        let body = serde_json::from_slice(&body).unwrap();
        let status = *status.lock().unwrap();
        let answer =
            format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nretry-after: 1\r\n\r\n{{}}");
        // Told first: who has the answer may ask what has come.
        let told = requests.send((path, body));
        if told.is_err() || reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The keys that each message may have.
const KEYS: [(&str, &str); 19] = [
    ("", "resourceMetrics resourceSpans resourceLogs"),
    ("resourceMetrics", "resource scopeMetrics"),
    ("resourceLogs", "resource scopeLogs"),
    ("scopeLogs", "scope logRecords"),
    ("body", "stringValue"),
    (
        "logRecords",
        "timeUnixNano observedTimeUnixNano severityNumber severityText eventName \
        body attributes traceId spanId flags",
    ),
    ("resourceSpans", "resource scopeSpans"),
    ("resource", "attributes"),
    ("scopeMetrics", "scope metrics"),
    ("scopeSpans", "scope spans"),
    ("scope", "name version"),
    ("metrics", "name description unit sum gauge histogram"),
    ("sum", "dataPoints aggregationTemporality isMonotonic"),
    ("gauge", "dataPoints"),
    ("histogram", "dataPoints aggregationTemporality"),
    ("attributes", "key value"),
    ("value", "stringValue intValue doubleValue"),
    ("status", "code message"),
    (
        "spans",
        "traceId spanId parentSpanId flags name kind startTimeUnixNano endTimeUnixNano \
        attributes status",
    ),
];
const POINT: &str = "attributes startTimeUnixNano timeUnixNano asDouble count sum bucketCounts \
        explicitBounds";

/// True if a request has the protocol's form.
fn check(body: &Value) {
    check_message("", body);
}

fn check_message(name: &str, message: &Value) {
    let keys = KEYS.iter().find(|(of, _)| *of == name);
    let keys = keys.map_or(POINT, |(_, keys)| *keys);
    for (key, value) in message.as_object().unwrap() {
        let is_known = keys.split(' ').any(|known| known == key);
        assert!(is_known, "{name} has {key}: {value}");
        let is_number = |text: &Value| text.as_str().is_some_and(|t| t.parse::<u64>().is_ok());
        let is_hex = |len| {
            let text = value.as_str().unwrap();
            let is_digit = |b: u8| b.is_ascii_digit() || b.is_ascii_lowercase();
            text.len() == len && text.bytes().all(is_digit)
        };
        match (key.as_str(), value) {
            ("count" | "intValue", n) => assert!(is_number(n), "{key}: {n}"),
            (time, n) if time.ends_with("imeUnixNano") => assert!(is_number(n), "{key}: {n}"),
            ("bucketCounts", counts) => assert!(counts.as_array().unwrap().iter().all(is_number)),
            ("explicitBounds", bounds) => {
                assert!(bounds.as_array().unwrap().iter().all(Value::is_f64));
            }
            ("traceId", _) => assert!(is_hex(32), "{value}"),
            ("spanId" | "parentSpanId", _) => assert!(is_hex(16), "{value}"),
            (_, Value::Array(all)) => all.iter().for_each(|one| check_message(key, one)),
            (_, Value::Object(_)) => check_message(key, value),
            _ => {}
        }
    }
}

/// Attributes as `key=value`.
fn attributes(of: &Value) -> BTreeSet<String> {
    let all = of["attributes"].as_array().unwrap().iter();
    let shown = all.map(|attribute| {
        let mut values = attribute["value"].as_object().unwrap().values();
        let value = values.next().unwrap();
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!("{}={value}", attribute["key"].as_str().unwrap())
    });
    shown.collect()
}

/// A metric of a request.
fn metric<'a>(request: &'a Value, name: &str) -> &'a Value {
    let metrics = &request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let mut all = metrics.as_array().unwrap().iter();
    all.find(|metric| metric["name"] == name)
        .unwrap_or_else(|| panic!("no {name}: {metrics}"))
}

fn records(request: &Value) -> Vec<Value> {
    let records = &request["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
    records.as_array().unwrap().clone()
}

fn spans(request: &Value) -> Vec<Value> {
    let spans = &request["resourceSpans"][0]["scopeSpans"][0]["spans"];
    spans.as_array().unwrap().clone()
}

fn traced(client: &mut Client, sql: &str, flags: &str) {
    let text = format!("{sql} /*traceparent='00-{TRACE}-{PARENT}-{flags}'*/");
    client.must(&text);
}

#[test]
fn metrics_come_at_their_interval_as_the_protocol_wants_them() {
    let Some(real) = pooled(server) else { return };
    let collector = Collector::start();
    let otel = collector.settings();
    let settings = format!("groups = 1\n{otel}service_name = \"shop-db\"\n");
    let pool = fresh_pool(real, &settings);
    let mut client = login(&pool.address, &app());
    for _ in 0..50 {
        client.must("SELECT 1");
    }
    let count = |request: &Value| {
        let sum = &metric(request, "onramp_pool_statements_total")["sum"];
        assert_eq!(sum["aggregationTemporality"], 2);
        assert_eq!(sum["isMonotonic"], true);
        sum["dataPoints"][0]["asDouble"].as_f64().unwrap()
    };
    let request = until(|| match collector.next("metrics") {
        request if count(&request) == 50.0 => Ok(request),
        request => Err(count(&request).to_string()),
    });
    let resource = attributes(&request["resourceMetrics"][0]["resource"]);
    assert!(resource.contains("service.name=shop-db"), "{resource:?}");
    let version = format!("service.version={}", env!("CARGO_PKG_VERSION"));
    assert!(resource.contains(&version), "{resource:?}");
    let mut facts = resource.iter();
    let instance = facts
        .find_map(|a| a.strip_prefix("service.instance.id="))
        .unwrap();
    assert_eq!(instance.len(), 36, "{instance}");
    let clients = &metric(&request, "onramp_pool_clients")["gauge"]["dataPoints"];
    let idle = clients.as_array().unwrap().iter();
    let mut idle = idle.filter(|point| attributes(point).contains("state=idle"));
    assert_eq!(idle.next().unwrap()["asDouble"], 1.0);
    let turns = metric(&request, "onramp_pool_turn_seconds");
    assert_eq!(turns["unit"], "s");
    let turns = &turns["histogram"]["dataPoints"][0];
    let (bounds, buckets) = (&turns["explicitBounds"], &turns["bucketCounts"]);
    let (bounds, buckets) = (bounds.as_array().unwrap(), buckets.as_array().unwrap());
    assert_eq!(bounds.len() + 1, buckets.len());
    let number = |text: &Value| text.as_str().unwrap().parse::<u64>().unwrap();
    let count = buckets.iter().map(number).sum::<u64>();
    assert_eq!(count, number(&turns["count"]));
    assert!(turns["sum"].as_f64().unwrap() > 0.0);
    // The same process, later.
    let began = |request: &Value| {
        let sum = &metric(request, "onramp_pool_statements_total")["sum"]["dataPoints"][0];
        (
            sum["startTimeUnixNano"].clone(),
            number(&sum["timeUnixNano"]),
        )
    };
    let again = collector.next("metrics");
    assert_eq!(began(&again).0, began(&request).0);
    assert!(began(&again).1 > began(&request).1);
}

#[test]
fn statements_that_are_logged_become_spans_of_their_traces() {
    let Some(real) = pooled(server) else { return };
    let collector = Collector::start();
    let otel = collector.settings();
    let settings = format!("statement_log = \"masked\"\nslow_statement_ms = 1\n{otel}");
    let pool = fresh_pool(real, &settings);
    let mut client = login(&pool.address, &app());
    client.must("SELECT 'no trace'");
    traced(&mut client, "SELECT 'not recorded'", "00");
    // It is slow too, and one span all the same.
    traced(&mut client, "SELECT SLEEP(0.03), 'secret'", "01");
    let wrong = format!("SELECT * FROM shop.nowhere /*traceparent='00-{TRACE}-{PARENT}-01'*/");
    assert_eq!(client.failure(&wrong).code, 1146);
    let mut found = spans(&collector.next("traces"));
    while found.len() < 2 {
        found.extend(spans(&collector.next("traces")));
    }
    assert_eq!(found.len(), 2, "{found:?}");
    let slow = attributes(&found[0]);
    for part in [
        "db.system.name=mariadb",
        "db.operation.name=SELECT",
        "db.response.returned_rows=1",
        "user.name=app",
        "client.address=127.0.0.1",
        "server.address=127.0.0.1",
        &format!("server.port={}", real.port()),
        "onramp.command=query",
    ] {
        assert!(slow.contains(part), "no {part} in {slow:?}");
    }
    assert!(!format!("{found:?}").contains("secret"));
    for span in &found {
        assert_eq!(span["traceId"], TRACE);
        assert_eq!(span["parentSpanId"], PARENT);
        assert_eq!(span["kind"], 3);
        assert_eq!(span["name"], "SELECT");
    }
    let time = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    let took = time(&found[0], "endTimeUnixNano") - time(&found[0], "startTimeUnixNano");
    assert!(took >= 30_000_000, "{took} ns");
    assert_eq!(found[0].get("status"), None);
    assert_eq!(found[1]["status"]["code"], 2);
    let failed = attributes(&found[1]);
    assert!(
        failed.contains("db.response.status_code=1146"),
        "{failed:?}"
    );
    assert_ne!(found[0]["spanId"], found[1]["spanId"]);
}

#[test]
fn lines_of_the_log_become_records() {
    let Some(real) = pooled(server) else { return };
    let collector = Collector::start();
    let otel = collector.settings();
    let settings = format!("http = \"127.0.0.1:0\"\nslow_statement_ms = 1\n{otel}logs = true\n");
    let pool = fresh_pool(real, &settings);
    let place = place_of(&pool);
    let mut client = login(&pool.address, &app());
    // The trace is named whether it is recorded or not.
    traced(&mut client, "SELECT SLEEP(0.03), 'secret'", "00");
    let guess = Account::new("app", "guess");
    assert!(Client::connect(&pool.address, &guess).is_err());
    let mut found: Vec<Value> = Vec::new();
    let event = |name: &str, found: &[Value]| {
        let name = format!("onramp.{name}");
        found.iter().find(|r| r["eventName"] == name).cloned()
    };
    let all = ["listening", "slow-statement", "login-failed"];
    while !all.iter().all(|name| event(name, &found).is_some()) {
        found.extend(records(&collector.next("logs")));
    }
    let listening = event("listening", &found).unwrap();
    assert_eq!(listening["severityNumber"], 9);
    assert_eq!(listening["severityText"], "INFO");
    let said = listening["body"]["stringValue"].as_str().unwrap();
    assert!(said.starts_with("listening on 127.0.0.1:"), "{said}");
    let slow = event("slow-statement", &found).unwrap();
    assert_eq!(slow["severityNumber"], 13);
    assert_eq!(slow["flags"], 0);
    assert_eq!(slow["traceId"], TRACE);
    assert_eq!(slow["spanId"], PARENT);
    let facts = attributes(&slow);
    for part in "user.name=app client.address=127.0.0.1 onramp.command=query".split(' ') {
        assert!(facts.contains(part), "no {part} in {facts:?}");
    }
    assert!(!format!("{found:?}").contains("secret"));
    let failed = attributes(&event("login-failed", &found).unwrap());
    assert!(
        failed.contains("onramp.reason=wrong-password"),
        "{failed:?}"
    );
    // A statement that no recorded trace wants is no span.
    let sent = "onramp_pool_otel_log_records_total{outcome=\"sent\"}";
    until(|| match figures(&place)[sent] {
        count if count >= 3.0 => Ok(()),
        count => Err(format!("{count} sent")),
    });
    let sent = "onramp_pool_otel_spans_total{outcome=\"sent\"}";
    assert_eq!(figures(&place)[sent], 0.0);
    // The last line goes out before the process ends.
    drop(client);
    pool.terminate();
    ended(pool);
    while event("ended", &found).is_none() {
        found.extend(records(&collector.next("logs")));
    }
}

#[test]
fn a_log_that_is_not_asked_for_is_not_sent() {
    let Some(real) = pooled(server) else { return };
    let collector = Collector::start();
    let settings = format!("http = \"127.0.0.1:0\"\n{}", collector.settings());
    let pool = fresh_pool(real, &settings);
    let place = place_of(&pool);
    collector.next("metrics");
    let threads = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", pool.id())).unwrap();
        // A thread that has ended since it was listed has no name.
        tasks
            .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
            .map(|name| name.trim().to_owned())
    };
    assert!(threads().any(|name| name == "otel"));
    assert!(!threads().any(|name| name == "otel-logs"));
    let shown = figures(&place);
    let is_counted = shown.keys().any(|name| name.contains("otel_log_records"));
    assert!(!is_counted, "{shown:?}");
}

#[test]
fn a_collector_that_is_away_harms_nobody() {
    let Some(real) = pooled(server) else { return };
    let collector = Collector::start();
    collector.answer_with("503 Service Unavailable");
    let settings = format!(
        "http = \"127.0.0.1:0\"\nstatement_log = \"masked\"\nstatement_log_per_s_max = 1000000\n{}",
        collector.settings()
    );
    let pool = fresh_pool(real, &settings);
    let place = place_of(&pool);
    let mut client = login(&pool.address, &app());
    traced(&mut client, "DO 'first'", "01");
    // It is sent again until the collector takes it.
    let first = collector.next("traces");
    let again = collector.next("traces");
    assert_eq!(spans(&again).len(), spans(&first).len());
    let lost = pool.wait_for("event=otel-lost").unwrap();
    says(&lost, "status 503");
    says(&lost, "/v1/");
    // Until the queue is full, however slow the machine is: statements go on, what is left out is
    // counted.
    let left_out = "onramp_pool_otel_spans_total{outcome=\"left_out\"}";
    let mut sent = 1.0;
    wait_while(|| {
        (0..3000).for_each(|_| traced(&mut client, "DO 1", "01"));
        sent += 3000.0;
        figures(&place)[left_out] == 0.0
    });
    collector.answer_with(OK);
    pool.wait_for("event=otel-back").unwrap();
    // On a slow machine a batch may have been given up before that, after its last try.
    until(|| {
        let figures = figures(&place);
        let spans = figures.iter();
        let spans = spans.filter(|(name, _)| name.starts_with("onramp_pool_otel_spans_total{"));
        match spans.map(|(_, count)| count).sum::<f64>() {
            count if count == sent => Ok(()),
            count => Err(format!("{count} spans are accounted for")),
        }
    });
    // What is there at the end is sent before the process has ended.
    while collector.requests.try_recv().is_ok() {}
    traced(&mut client, "DO 'last'", "01");
    drop(client);
    pool.terminate();
    ended(pool);
    let last = collector
        .requests
        .try_iter()
        .filter(|(path, _)| path == "/v1/traces");
    assert_eq!(last.flat_map(|(_, body)| spans(&body)).count(), 1);
}

#[test]
fn an_endpoint_that_nobody_serves_or_that_is_none() {
    let Some(real) = pooled(server) else { return };
    let port = free_port();
    let endpoint = format!("[otel]\nendpoint = \"http://127.0.0.1:{port}\"\ninterval_s = 1\n");
    let pool = fresh_pool(real, &endpoint);
    let mut client = login(&pool.address, &app());
    pool.wait_for("event=otel-lost").unwrap();
    assert_eq!(client.value("SELECT 1"), "1");
    for endpoint in "127.0.0.1:4318 http:// ftp://a:1 http://u:p@a:1 http://a:1/?k=v".split(' ') {
        let otel = format!("[otel]\nendpoint = \"{endpoint}\"\n");
        let file = config_file(real, "otel-none.toml", &config(&real.address(), &otel));
        let arguments = ["--config", file.to_str().unwrap()];
        let said = Pool::start(binary(), &arguments).unwrap_err();
        says(&said, "otel.endpoint: expected http://HOST:PORT");
    }
}

#[test]
fn a_collector_under_tls_is_believed_by_its_certificate() {
    let Some(real) = pooled(server) else { return };
    let authority = Authority::new("collectors");
    let signed = authority.sign("collector", &["127.0.0.1"], Valid::Now);
    let certificate = CertificateDer::from_pem_slice(signed.cert.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let collector = Collector::over(Some(Arc::new(tls)));
    let start = |name: &str, authority: &Authority| {
        let ca = put(real.folder(), &format!("{name}.pem"), &authority.pem());
        let settings = collector.settings().replace("http://", "https://");
        let settings = format!("{settings}ca = \"{}\"\n", ca.display());
        fresh_pool(real, &settings)
    };
    let stranger = start("otel-stranger", &Authority::new("others"));
    let lost = stranger.wait_for("event=otel-lost").unwrap();
    assert!(lost.to_lowercase().contains("certificate"), "{lost}");
    assert!(collector.requests.try_recv().is_err());
    let _pool = start("otel-tls", &authority);
    metric(&collector.next("metrics"), "onramp_pool_ready");
}
