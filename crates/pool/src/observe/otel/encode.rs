//! The bodies of requests: OTLP in its JSON form.
//!
//! Names are those of the protocol's messages in lowerCamelCase, ids are hexadecimal digits,
//! numbers of 64 bits are texts, and enums are numbers. A span's attributes follow the semantic
//! conventions for databases; what they have no name for begins with `onramp.`.

use crate::config::OtelSettings;
use crate::observe::log::Level;
use crate::observe::metrics::{Sample, nanoseconds, otlp, text};
use crate::observe::telemetry::{Ran, Record, Span, Whose};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// `SPAN_KIND_CLIENT`: what a span shows is a call of the database.
const CLIENT: u32 = 3;
/// `STATUS_CODE_ERROR`.
const FAILED: u32 = 2;
/// A span's flags: its trace is recorded, and the span above it is known to be another process's.
const FLAGS: u32 = 0x301;
/// First words of statements that become names of spans; there is a bounded number of names.
const VERBS: [&str; 27] = [
    "ALTER", "ANALYZE", "BEGIN", "CALL", "COMMIT", "CREATE", "DELETE", "DO", "DROP", "EXECUTE",
    "EXPLAIN", "GRANT", "INSERT", "KILL", "LOAD", "LOCK", "OPTIMIZE", "REPLACE", "REVOKE",
    "ROLLBACK", "SELECT", "SET", "SHOW", "START", "TRUNCATE", "UPDATE", "WITH",
];

/// Resource that the metrics and spans are of.
pub(crate) struct Resource(Value);

impl Resource {
    pub(crate) fn of(settings: &OtelSettings) -> Resource {
        let own = settings.service_instance_id.clone();
        let instance = own.unwrap_or_else(|| uuid(reactor::random_bytes()));
        Resource(json!({ "attributes": [
            text("service.name", &settings.service_name),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", &instance),
        ]}))
    }
}

/// Random bytes as a UUID of version 4.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let digits = hex(&bytes);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| &digits[part]).join("-")
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// `db.system.name` of the server.
pub(crate) fn system_name(is_mysql: bool) -> &'static str {
    match is_mysql {
        true => "mysql",
        false => "mariadb",
    }
}

fn scope() -> Value {
    json!({ "name": "onramp", "version": env!("CARGO_PKG_VERSION") })
}

/// An `ExportMetricsServiceRequest`.
pub(crate) fn metrics_request(resource: &Resource, sample: &Sample<'_>, now: Duration) -> Value {
    json!({ "resourceMetrics": [{
        "resource": resource.0,
        "scopeMetrics": [{ "scope": scope(), "metrics": otlp(sample, now) }],
    }]})
}

/// An `ExportTraceServiceRequest`.
pub(crate) fn spans_request(resource: &Resource, system: &str, spans: &[Span]) -> Value {
    let with_ids = spans
        .iter()
        .map(|span| of(span, system, reactor::random_bytes()));
    let spans: Vec<Value> = with_ids.collect();
    json!({ "resourceSpans": [{
        "resource": resource.0,
        "scopeSpans": [{ "scope": scope(), "spans": spans }],
    }]})
}

/// An `ExportLogsServiceRequest`.
pub(crate) fn records_request(resource: &Resource, system: &str, records: &[Record]) -> Value {
    let records: Vec<Value> = records.iter().map(|record| line(record, system)).collect();
    json!({ "resourceLogs": [{
        "resource": resource.0,
        "scopeLogs": [{ "scope": scope(), "logRecords": records }],
    }]})
}

fn of(span: &Span, system: &str, id: [u8; 8]) -> Value {
    let verb = verb(&span.text);
    let start = span.end.saturating_sub(span.ran.wait + span.ran.service);
    let mut out = json!({
        "traceId": span.trace.id,
        "spanId": hex(&id),
        "parentSpanId": span.trace.parent,
        "flags": FLAGS,
        "name": verb.unwrap_or(system),
        "kind": CLIENT,
        "startTimeUnixNano": nanoseconds(start),
        "endTimeUnixNano": nanoseconds(span.end),
        "attributes": attributes(span, system, verb),
    });
    let failed = span.ran.error.map(|error| error.to_string());
    if let Some(why) = failed
        .as_deref()
        .or(span.reason.as_deref().filter(|why| *why != "pool"))
    {
        out["status"] = json!({ "code": FAILED, "message": why });
    }
    out
}

fn attributes(span: &Span, system: &str, verb: Option<&str>) -> Vec<Value> {
    let mut out = vec![
        text("db.system.name", system),
        text("db.query.text", &span.text),
    ];
    out.extend(verb.map(|verb| text("db.operation.name", verb)));
    put_whose(&span.whose, &mut out);
    put_reason(span.reason.as_deref(), &mut out);
    put_ran(&span.ran, &mut out);
    out
}

/// A line of the log.
fn line(record: &Record, system: &str) -> Value {
    let (severity, level) = match record.event.level() {
        Level::Error => (17, "ERROR"),
        Level::Warning => (13, "WARN"),
        Level::Info => (9, "INFO"),
    };
    let mut attributes = Vec::new();
    put_whose(&record.whose, &mut attributes);
    put_reason(record.reason.as_deref(), &mut attributes);
    if record.omitted > 0 {
        attributes.push(int("onramp.omitted", &record.omitted.to_string()));
    }
    if let Some(ran) = &record.ran {
        attributes.push(text("db.system.name", system));
        put_ran(ran, &mut attributes);
    }
    let mut out = json!({
        "timeUnixNano": nanoseconds(record.at),
        "observedTimeUnixNano": nanoseconds(record.at),
        "severityNumber": severity,
        "severityText": level,
        "eventName": format!("onramp.{}", record.event.name()),
        "body": { "stringValue": record.message },
        "attributes": attributes,
    });
    if let Some(trace) = &record.trace {
        out["traceId"] = json!(trace.id);
        out["spanId"] = json!(trace.parent);
        out["flags"] = json!(trace.flags);
    }
    out
}

fn int(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "intValue": value } })
}

fn put_whose(whose: &Whose, out: &mut Vec<Value>) {
    put_address("client", whose.client.as_deref(), out);
    out.extend(whose.account.as_deref().map(|name| text("user.name", name)));
}

fn put_reason(reason: Option<&str>, out: &mut Vec<Value>) {
    out.extend(reason.map(|reason| text("onramp.reason", reason)));
}

/// Appends the address of one side; that of a Unix socket has no port.
fn put_address(side: &str, at: Option<&str>, out: &mut Vec<Value>) {
    let Some(at) = at else { return };
    let parts = at
        .rsplit_once(':')
        .filter(|(_, port)| port.parse::<u16>().is_ok());
    let (address, port) = parts.map_or((at, None), |(host, port)| (host, Some(port)));
    let address = address.trim_start_matches('[').trim_end_matches(']');
    out.push(text(&format!("{side}.address"), address));
    out.extend(port.map(|port| int(&format!("{side}.port"), port)));
}

/// Appends the attributes of a statement's run.
fn put_ran(ran: &Ran, out: &mut Vec<Value>) {
    let double = |key: &str, value: f64| json!({ "key": key, "value": { "doubleValue": value } });
    put_address("server", ran.server.as_deref(), out);
    out.push(int("db.response.returned_rows", &ran.rows.to_string()));
    if let Some(error) = ran.error.map(|error| error.to_string()) {
        out.extend([
            text("db.response.status_code", &error),
            text("error.type", &error),
        ]);
    }
    out.extend(ran.command.map(|command| text("onramp.command", command)));
    let digest = ran.digest.map(|digest| format!("{digest:016x}"));
    out.extend(digest.map(|digest| text("onramp.digest", &digest)));
    out.extend([
        double("onramp.wait_seconds", ran.wait.as_secs_f64()),
        double("onramp.service_seconds", ran.service.as_secs_f64()),
    ]);
}

/// The first word of a text behind its comments, if it is one of those that name spans.
fn verb(sql: &str) -> Option<&'static str> {
    let mut rest = sql.trim_start();
    while let Some(comment) = rest.strip_prefix("/*") {
        rest = comment.split_once("*/")?.1.trim_start();
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic());
    let word = &rest[..end.unwrap_or(rest.len())];
    VERBS
        .into_iter()
        .find(|verb| verb.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::log::Event;
    use crate::observe::telemetry::Trace;

    fn ran() -> Ran {
        Ran {
            wait: Duration::from_millis(2),
            service: Duration::from_millis(3),
            command: Some("Query"),
            server: Some("[::1]:3306".into()),
            rows: 7,
            error: None,
            digest: Some(10),
        }
    }

    fn trace() -> Trace {
        Trace {
            id: "0af7651916cd43dd8448eb211c80319c".into(),
            parent: "b7ad6b7169203331".into(),
            flags: 1,
        }
    }

    fn span() -> Span {
        Span {
            trace: trace(),
            end: Duration::from_millis(1_700_000_000_010),
            text: "SELECT ? FROM t".into(),
            whose: Whose {
                client: Some("unix".into()),
                account: Some("app".into()),
            },
            ran: ran(),
            reason: None,
        }
    }

    #[test]
    fn a_span_is_written_as_the_protocol_wants_it() {
        let written = of(&span(), "mariadb", [0xAB; 8]);
        let expected = json!({
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": "abababababababab",
            "parentSpanId": "b7ad6b7169203331",
            "flags": 0x301,
            "name": "SELECT",
            "kind": 3,
            "startTimeUnixNano": "1700000000005000000",
            "endTimeUnixNano": "1700000000010000000",
            "attributes": [
                { "key": "db.system.name", "value": { "stringValue": "mariadb" } },
                { "key": "db.query.text", "value": { "stringValue": "SELECT ? FROM t" } },
                { "key": "db.operation.name", "value": { "stringValue": "SELECT" } },
                { "key": "client.address", "value": { "stringValue": "unix" } },
                { "key": "user.name", "value": { "stringValue": "app" } },
                { "key": "server.address", "value": { "stringValue": "::1" } },
                { "key": "server.port", "value": { "intValue": "3306" } },
                { "key": "db.response.returned_rows", "value": { "intValue": "7" } },
                { "key": "onramp.command", "value": { "stringValue": "Query" } },
                { "key": "onramp.digest", "value": { "stringValue": "000000000000000a" } },
                { "key": "onramp.wait_seconds", "value": { "doubleValue": 0.002 } },
                { "key": "onramp.service_seconds", "value": { "doubleValue": 0.003 } },
            ],
        });
        assert_eq!(written, expected);
    }

    #[test]
    fn a_statement_that_failed_has_the_status_of_one() {
        let failed = Span {
            ran: Ran {
                error: Some(1064),
                ..ran()
            },
            text: "SELEC".into(),
            ..span()
        };
        let written = of(&failed, "mysql", [0; 8]);
        assert_eq!(written["name"], "mysql");
        assert_eq!(written["status"], json!({ "code": 2, "message": "1064" }));
        let cut = Span {
            reason: Some("client-closed".into()),
            ..span()
        };
        assert_eq!(
            of(&cut, "mysql", [0; 8])["status"]["message"],
            "client-closed"
        );
        let here = Span {
            reason: Some("pool".into()),
            ..span()
        };
        assert_eq!(of(&here, "mysql", [0; 8]).get("status"), None);
    }

    #[test]
    fn a_line_of_the_log_is_written_as_the_protocol_wants_it() {
        let record = Record {
            at: Duration::from_millis(1_700_000_000_010),
            event: Event::LoginFailed,
            whose: Whose {
                client: Some("192.0.2.7:41710".into()),
                account: Some("app".into()),
            },
            reason: Some("wrong-password".into()),
            omitted: 3,
            ran: None,
            trace: None,
            message: "Access denied".into(),
        };
        let expected = json!({
            "timeUnixNano": "1700000000010000000",
            "observedTimeUnixNano": "1700000000010000000",
            "severityNumber": 13,
            "severityText": "WARN",
            "eventName": "onramp.login-failed",
            "body": { "stringValue": "Access denied" },
            "attributes": [
                { "key": "client.address", "value": { "stringValue": "192.0.2.7" } },
                { "key": "client.port", "value": { "intValue": "41710" } },
                { "key": "user.name", "value": { "stringValue": "app" } },
                { "key": "onramp.reason", "value": { "stringValue": "wrong-password" } },
                { "key": "onramp.omitted", "value": { "intValue": "3" } },
            ],
        });
        assert_eq!(line(&record, "mariadb"), expected);
        let of_a_statement = Record {
            event: Event::SlowStatement,
            ran: Some(ran()),
            trace: Some(trace()),
            ..record
        };
        let written = line(&of_a_statement, "mariadb");
        assert_eq!(written["traceId"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(
            (&written["spanId"], &written["flags"]),
            (&"b7ad6b7169203331".into(), &1.into())
        );
        let attributes = written["attributes"].to_string();
        for part in [
            "\"onramp.service_seconds\"",
            "\"db.system.name\"",
            "\"::1\"",
        ] {
            assert!(attributes.contains(part), "no {part} in {attributes}");
        }
    }

    #[test]
    fn names_of_spans_are_bounded() {
        for (sql, expected) in [
            (" select 1", Some("SELECT")),
            ("/* a */ /*b*/INSERT INTO t", Some("INSERT")),
            ("(SELECT 1)", None),
            ("/* SELECT", None),
            ("SELECTED", None),
            ("", None),
        ] {
            assert_eq!(verb(sql), expected, "{sql}");
        }
    }

    #[test]
    fn an_instance_has_a_random_name() {
        assert_eq!(uuid([0xFF; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
    }
}
