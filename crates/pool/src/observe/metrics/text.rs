//! The figures as text: for Prometheus (0.0.4), for OpenMetrics (1.0.0) and as JSON.
//!
//! The two text formats differ in the name of a counter's family, which OpenMetrics writes without
//! `_total`, and in the end. A metric without a value is left out. What figures there are is
//! `metrics.rs`'s matter.

use super::{METRICS, Metric, Point, PointValue, Points, Reading, Sample, Type};
use crate::observe::figures::{BOUNDS, Histogram};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

impl Metric {
    pub(crate) fn points(&self, sample: &Sample<'_>) -> Vec<Point> {
        let mut out = Points {
            names: self.labels,
            points: Vec::new(),
        };
        match (&self.read, &sample.pool) {
            (Reading::Process(read), _) => read(sample, &mut out),
            (Reading::Pool(read), Some(pool)) => read(pool, &mut out),
            (Reading::Pool(_), None) => {}
        }
        out.points
    }
}

/// The text format of Prometheus.
pub(crate) fn prometheus(sample: &Sample<'_>) -> String {
    text(sample, |metric| metric.name)
}

/// Text in the form of OpenMetrics: a counter's family has no `_total`, and the text has an end.
pub(crate) fn openmetrics(sample: &Sample<'_>) -> String {
    let family = |metric: &Metric| match metric.kind {
        Type::Counter => metric.name.strip_suffix("_total").unwrap_or(metric.name),
        Type::Gauge | Type::Histogram => metric.name,
    };
    text(sample, family) + "# EOF\n"
}

fn text(sample: &Sample<'_>, family: impl Fn(&Metric) -> &'static str) -> String {
    let mut out = String::with_capacity(64 * 1024);
    for metric in METRICS {
        let points = metric.points(sample);
        if points.is_empty() {
            continue;
        }
        let (family, kind) = (family(metric), metric.kind.name());
        // Writing to a string does not fail.
        let _ = writeln!(out, "# HELP {family} {}", escaped(metric.help));
        let _ = writeln!(out, "# TYPE {family} {kind}");
        for point in points {
            match &point.value {
                PointValue::Number(value) => {
                    let _ = writeln!(
                        out,
                        "{}{} {value}",
                        metric.name,
                        labels(&point.labels, None)
                    );
                }
                PointValue::Times(times) => put_times(&mut out, metric.name, &point.labels, times),
            }
        }
    }
    out
}

type Labels = [(&'static str, String)];

fn put_times(out: &mut String, name: &str, of: &Labels, times: &Histogram) {
    let bounds = BOUNDS.iter().map(|(_, words)| *words).chain(["+Inf"]);
    let mut count = 0;
    for (bound, more) in bounds.zip(times.counts()) {
        count += more;
        let _ = writeln!(out, "{name}_bucket{} {count}", labels(of, Some(bound)));
    }
    let sum = times.sum().as_secs_f64();
    let _ = writeln!(out, "{name}_sum{} {sum}", labels(of, None));
    let _ = writeln!(out, "{name}_count{} {count}", labels(of, None));
}

fn labels(of: &Labels, bound: Option<&str>) -> String {
    let pairs = of.iter().map(|(name, value)| (*name, value.as_str()));
    let pairs = pairs.chain(bound.map(|bound| ("le", bound)));
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    match pairs.is_empty() {
        true => String::new(),
        false => format!("{{{}}}", pairs.join(",")),
    }
}

/// Text escaped for help and the values of labels.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// All figures by name, each a list of its values with their labels.
pub(crate) fn json(sample: &Sample<'_>) -> Value {
    let mut all = Map::new();
    for metric in METRICS {
        let values = metric.points(sample).into_iter().map(|point| {
            let labels = point.labels.into_iter();
            let mut value: Map<_, _> = labels.map(|(name, v)| (name.into(), v.into())).collect();
            match point.value {
                PointValue::Number(number) => {
                    value.insert("value".into(), number.into());
                }
                PointValue::Times(times) => {
                    let percentile = |percent| times.percentile(percent).as_secs_f64();
                    value.insert("count".into(), times.count().into());
                    value.insert("sum".into(), times.sum().as_secs_f64().into());
                    for (name, percent) in [("p50", 50.0), ("p95", 95.0), ("p99", 99.0)] {
                        value.insert(name.into(), percentile(percent).into());
                    }
                }
            }
            Value::Object(value)
        });
        let values: Vec<Value> = values.collect();
        if !values.is_empty() {
            all.insert(
                metric.name.into(),
                json!({ "type": metric.kind.name(), "help": metric.help, "values": values }),
            );
        }
    }
    Value::Object(all)
}
