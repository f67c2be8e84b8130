//! The bodies of requests: OTLP in its JSON form.
//!
//! Names are those of the protocol's messages in lowerCamelCase, ids are hexadecimal digits,
//! numbers of 64 bits are texts, and enums are numbers. A span's attributes follow the semantic
//! conventions for databases; what they have no name for begins with `onramp.`.

use crate::config::OtelSettings;
use crate::operations::metrics::{Sample, nanoseconds, otlp, text};
use crate::telemetry::Span;
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

/// Whose metrics and spans they are.
pub(super) struct Resource(Value);

impl Resource {
    pub(super) fn of(settings: &OtelSettings) -> Resource {
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
pub(super) fn system_name(is_mysql: bool) -> &'static str {
    match is_mysql {
        true => "mysql",
        false => "mariadb",
    }
}

fn scope() -> Value {
    json!({ "name": "onramp", "version": env!("CARGO_PKG_VERSION") })
}

/// An `ExportMetricsServiceRequest`.
pub(super) fn metrics_request(resource: &Resource, sample: &Sample<'_>, now: Duration) -> Value {
    json!({ "resourceMetrics": [{
        "resource": resource.0,
        "scopeMetrics": [{ "scope": scope(), "metrics": otlp(sample, now) }],
    }]})
}

/// An `ExportTraceServiceRequest`.
pub(super) fn spans_request(resource: &Resource, system: &str, spans: &[Span]) -> Value {
    let with_ids = spans
        .iter()
        .map(|span| of(span, system, reactor::random_bytes()));
    let spans: Vec<Value> = with_ids.collect();
    json!({ "resourceSpans": [{
        "resource": resource.0,
        "scopeSpans": [{ "scope": scope(), "spans": spans }],
    }]})
}

fn of(span: &Span, system: &str, id: [u8; 8]) -> Value {
    let verb = verb(&span.text);
    let start = span.end.saturating_sub(span.wait + span.service);
    let mut out = json!({
        "traceId": span.trace,
        "spanId": hex(&id),
        "parentSpanId": span.parent,
        "flags": FLAGS,
        "name": verb.unwrap_or(system),
        "kind": CLIENT,
        "startTimeUnixNano": nanoseconds(start),
        "endTimeUnixNano": nanoseconds(span.end),
        "attributes": attributes(span, system, verb),
    });
    let failed = span.error.map(|error| error.to_string());
    if let Some(why) = failed
        .as_deref()
        .or(span.reason.as_deref().filter(|why| *why != "pool"))
    {
        out["status"] = json!({ "code": FAILED, "message": why });
    }
    out
}

fn attributes(span: &Span, system: &str, verb: Option<&str>) -> Vec<Value> {
    let double = |key: &str, value: f64| json!({ "key": key, "value": { "doubleValue": value } });
    let int = |key: &str, value: &str| json!({ "key": key, "value": { "intValue": value } });
    let mut out = vec![
        text("db.system.name", system),
        text("db.query.text", &span.text),
    ];
    out.extend(verb.map(|verb| text("db.operation.name", verb)));
    for (side, at) in [("server", &span.server), ("client", &span.client)] {
        let Some(at) = at else { continue };
        // A Unix socket has no port.
        let parts = at
            .rsplit_once(':')
            .filter(|(_, port)| port.parse::<u16>().is_ok());
        let (address, port) = parts.map_or((&**at, None), |(host, port)| (host, Some(port)));
        let address = address.trim_start_matches('[').trim_end_matches(']');
        out.push(text(&format!("{side}.address"), address));
        out.extend(port.map(|port| int(&format!("{side}.port"), port)));
    }
    out.extend(span.account.as_deref().map(|name| text("user.name", name)));
    out.push(int("db.response.returned_rows", &span.rows.to_string()));
    if let Some(error) = span.error.map(|error| error.to_string()) {
        out.extend([
            text("db.response.status_code", &error),
            text("error.type", &error),
        ]);
    }
    out.extend(span.command.map(|command| text("onramp.command", command)));
    out.extend(
        span.reason
            .as_deref()
            .map(|reason| text("onramp.reason", reason)),
    );
    let digest = span.digest.map(|digest| format!("{digest:016x}"));
    out.extend(digest.map(|digest| text("onramp.digest", &digest)));
    out.extend([
        double("onramp.wait_seconds", span.wait.as_secs_f64()),
        double("onramp.service_seconds", span.service.as_secs_f64()),
    ]);
    out
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

    fn span() -> Span {
        Span {
            trace: "0af7651916cd43dd8448eb211c80319c".into(),
            parent: "b7ad6b7169203331".into(),
            end: Duration::from_millis(1_700_000_000_010),
            wait: Duration::from_millis(2),
            service: Duration::from_millis(3),
            text: "SELECT ? FROM t".into(),
            command: Some("Query"),
            server: Some("[::1]:3306".into()),
            client: Some("unix".into()),
            account: Some("app".into()),
            rows: 7,
            error: None,
            digest: Some(10),
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
                { "key": "server.address", "value": { "stringValue": "::1" } },
                { "key": "server.port", "value": { "intValue": "3306" } },
                { "key": "client.address", "value": { "stringValue": "unix" } },
                { "key": "user.name", "value": { "stringValue": "app" } },
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
            error: Some(1064),
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
