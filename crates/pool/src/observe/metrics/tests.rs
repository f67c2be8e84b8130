//! The rules of names and labels, and the text as a strict reader takes it.

use super::*;
use std::collections::BTreeSet;

#[test]
fn names_follow_the_conventions() {
    let mut names = BTreeSet::new();
    for metric in METRICS {
        let name = metric.name;
        assert!(names.insert(name), "{name} stands twice");
        assert!(
            name.starts_with("onramp_") || name.starts_with("process_"),
            "{name}"
        );
        assert!(
            name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
            "{name}"
        );
        assert_eq!(
            name.ends_with("_total"),
            metric.kind == Type::Counter,
            "{name}"
        );
        assert_eq!(
            metric.kind == Type::Histogram,
            name.ends_with("_seconds") && metric.kind != Type::Gauge,
            "{name}"
        );
        assert!(
            metric.help.ends_with('.') && !metric.help.contains('|'),
            "{name}"
        );
        for reserved in ["_count", "_sum", "_bucket", "_info_total"] {
            assert!(!name.ends_with(reserved), "{name}");
        }
    }
}

/// A text as a strict reader takes it: families in one piece, each with help and type before its
/// values, no value twice. Values by name and labels.
fn read(text: &str, is_open: bool) -> BTreeMap<String, f64> {
    let (mut family, mut kind) = (String::new(), String::new());
    let (mut families, mut values) = (BTreeSet::new(), BTreeMap::new());
    let mut ended = false;
    for line in text.lines() {
        assert!(!ended, "behind the end: {line}");
        if line == "# EOF" {
            ended = true;
        } else if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().unwrap().to_owned();
            assert!(families.insert(family.clone()), "{family} comes again");
            kind.clear();
        } else if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, is) = of.split_once(' ').unwrap();
            assert_eq!(name, family);
            kind = is.to_owned();
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let endings: &[&str] = match (kind.as_str(), is_open) {
                ("counter", true) => &["_total"],
                ("histogram", _) => &["_bucket", "_sum", "_count"],
                ("counter" | "gauge", _) => &[""],
                _ => panic!("{line}"),
            };
            let fits = endings.iter().any(|end| name == format!("{family}{end}"));
            assert!(fits, "{line} in {family} {kind}");
            let value: f64 = value.parse().unwrap();
            assert!(value >= 0.0, "{line}");
            assert_eq!(values.insert(series.to_owned(), value), None, "{line}");
        }
    }
    assert_eq!(ended, is_open);
    values
}

#[test]
fn before_the_server_has_answered_there_is_little_to_say() {
    let board = Board::default();
    let sample = board.sample();
    let values = read(&prometheus(&sample), false);
    assert_eq!(values["onramp_pool_ready"], 0.0);
    assert_eq!(values["onramp_pool_draining"], 0.0);
    assert!(values["process_resident_memory_bytes"] > 1e6);
    assert!(!values.keys().any(|name| name.contains("clients")));
    assert!(sample.unready().unwrap().starts_with("starting"));
    assert_eq!(sample.unhealthy(Duration::ZERO), None);
    assert_eq!(read(&openmetrics(&sample), true).len(), values.len());
    board.drains();
    assert!(board.sample().unready().unwrap().starts_with("draining"));
}

#[test]
fn groups_behind_the_last_with_a_place_share_one() {
    for (count, places) in [(GROUPS_MAX, GROUPS_MAX), (GROUPS_MAX + 2, GROUPS_MAX + 1)] {
        let groups: Vec<_> = (0..count).map(|_| GroupView::empty(1).into()).collect();
        let mut points = Points {
            names: &["group"],
            points: Vec::new(),
        };
        each_group(&groups, &mut points, |_| 1.0);
        assert_eq!(points.points.len(), places);
        let values = points.points.iter().map(|point| match point.value {
            PointValue::Number(number) => number,
            PointValue::Times(_) => panic!("a number"),
        });
        assert_eq!(values.sum::<f64>(), count as f64);
    }
}

/// The names of metrics in a text, those of a histogram's values as that of the histogram.
fn names_in(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(|c| !is_part(c));
    words
        .filter(|word| word.starts_with("onramp_") || word.starts_with("process_"))
        .filter(|word| *word != "onramp_pool_")
        .map(|word| {
            let ends = ["_bucket", "_sum", "_count"];
            ends.iter()
                .find_map(|end| word.strip_suffix(end))
                .unwrap_or(word)
        })
        .collect()
}

/// The labels that a text names: `by (a, b)`, `{{a}}` and `$labels.a`.
fn labels_in(text: &str) -> BTreeSet<&str> {
    let between = |from: &'static str, to: char| {
        let parts = text.split(from).skip(1);
        parts.filter_map(move |part| part.split(to).next())
    };
    let shown = between("{{", '}').map(|label| label.trim().trim_start_matches("$labels."));
    let grouped = between("by (", ')').flat_map(|labels| labels.split(','));
    let labels = shown.filter(|label| !label.is_empty()).chain(grouped);
    labels.map(str::trim).collect()
}

#[test]
fn what_monitoring_names_exists() {
    let files = [
        include_str!("../../../../../monitoring/alerts.yml"),
        include_str!("../../../../../monitoring/grafana-dashboard.json"),
    ];
    let metrics: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    let labels = METRICS.iter().flat_map(|metric| metric.labels);
    let labels: BTreeSet<&str> = labels.copied().chain(["instance", "le"]).collect();
    for text in files {
        let names = names_in(text);
        assert!(names.len() > 10);
        let unknown: Vec<_> = names.difference(&metrics).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let unknown: Vec<_> = labels_in(text).difference(&labels).copied().collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

#[test]
fn the_dashboard_is_one() {
    let text = include_str!("../../../../../monitoring/grafana-dashboard.json");
    let board: serde_json::Value = serde_json::from_str(text).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let mut places = BTreeSet::new();
    for (at, panel) in panels.iter().enumerate() {
        assert_eq!(panel["id"].as_u64(), Some(at as u64 + 1));
        let place = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{panel}");
        assert!(places.insert((place("y"), place("x"))), "{panel}");
        if panel["type"] == "row" {
            continue;
        }
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{panel}");
        for target in targets {
            let query = target["expr"].as_str().unwrap();
            let open = query.matches('(').count();
            assert_eq!(open, query.matches(')').count(), "{query}");
        }
    }
}
