//! The figures as OpenTelemetry's protocol has them, in its JSON form (OTLP 1.x).
//!
//! Counters are cumulative, monotonic sums that begin with the process; histograms have explicit
//! bounds. Names are those of `/metrics`. Numbers of 64 bits are texts, as the JSON form of
//! protobuf wants them.

use super::{METRICS, Metric, Point, PointValue, Sample, Type};
use crate::observe::figures::{BOUNDS, Histogram};
use serde_json::{Value, json};
use std::time::Duration;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u32 = 2;

/// All metrics that have a value; `now` is the time of day.
pub(crate) fn otlp(sample: &Sample<'_>, now: Duration) -> Vec<Value> {
    let (start, now) = (nanoseconds(sample.began()), nanoseconds(now));
    let metrics = METRICS.iter().filter_map(|metric| {
        let points = metric.points(sample);
        let points: Vec<Value> = points.iter().map(|point| of(point, &start, &now)).collect();
        (!points.is_empty()).then(|| with_points(metric, &points))
    });
    metrics.collect()
}

/// A time of day as the protocol writes it.
pub(crate) fn nanoseconds(time: Duration) -> String {
    time.as_nanos().to_string()
}

/// An attribute with a text.
pub(crate) fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn with_points(metric: &Metric, points: &[Value]) -> Value {
    let mut out = json!({ "name": metric.name, "description": metric.help, "unit": unit(metric) });
    let (kind, data) = match metric.kind {
        Type::Counter => (
            "sum",
            json!({
                "dataPoints": points,
                "aggregationTemporality": CUMULATIVE,
                "isMonotonic": true,
            }),
        ),
        Type::Gauge => ("gauge", json!({ "dataPoints": points })),
        Type::Histogram => (
            "histogram",
            json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE }),
        ),
    };
    out[kind] = data;
    out
}

/// The unit that its name ends in, by UCUM.
fn unit(metric: &Metric) -> &'static str {
    let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
    match name {
        _ if name.ends_with("_seconds") => "s",
        _ if name.ends_with("_bytes") => "By",
        _ => "",
    }
}

fn of(point: &Point, start: &str, now: &str) -> Value {
    let labels = point.labels.iter();
    let attributes: Vec<Value> = labels.map(|(name, value)| text(name, value)).collect();
    let mut out = json!({
        "attributes": attributes, "startTimeUnixNano": start, "timeUnixNano": now,
    });
    match &point.value {
        PointValue::Number(number) => out["asDouble"] = (*number).into(),
        PointValue::Times(times) => put_times(&mut out, times),
    }
    out
}

fn put_times(out: &mut Value, times: &Histogram) {
    let counts = times.counts().iter().map(u64::to_string);
    let bounds = BOUNDS.iter().map(|(bound, _)| bound.as_secs_f64());
    out["count"] = times.count().to_string().into();
    out["sum"] = times.sum().as_secs_f64().into();
    out["bucketCounts"] = counts.collect::<Vec<_>>().into();
    out["explicitBounds"] = bounds.collect::<Vec<_>>().into();
}
