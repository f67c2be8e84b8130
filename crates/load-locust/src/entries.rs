//! A worker's statistics of requests, in the form that Locust's master adds up.
//!
//! Counts are those since the last report. Response times go into buckets of about two digits, as
//! Locust has them; sums, smallest and largest are exact.

use super::message::map;
use measure::Histogram;
use rmpv::Value;
use std::collections::BTreeMap;

/// Requests of one name.
#[derive(Debug, Default)]
struct Entry {
    times: Histogram,
    /// Failures, with and without a response time.
    late: u64,
    failures: u64,
    /// By second of the clock: requests, and those of them that failed.
    per_second: BTreeMap<u64, (u64, u64)>,
}

/// Counted since the last report.
#[derive(Debug, Default)]
pub struct Entries {
    /// By name and method.
    entries: BTreeMap<(String, &'static str), Entry>,
    /// By method, name and words: how often, and when first and last.
    errors: BTreeMap<(&'static str, String, String), (u64, f64, f64)>,
}

/// Names of errors and requests that one report has.
const ROWS_MAX: usize = 1_000;

impl Entries {
    /// Counts requests up to `now`, in seconds of the clock: those that were answered, by their
    /// response times. Of them, so many were `late`, which is a failure.
    pub fn answered(
        &mut self,
        name: &str,
        method: &'static str,
        times: &Histogram,
        late: u64,
        now: f64,
    ) {
        let Some(entry) = self.entry(name, method, times.count() + late) else {
            return;
        };
        entry.times.merge(times);
        entry.late += late;
        let second = entry.per_second.entry(whole(now)).or_default();
        second.0 += times.count();
        second.1 += late;
    }

    /// Counts requests that failed without an answer.
    pub fn failed(&mut self, name: &str, method: &'static str, count: u64, now: f64) {
        let Some(entry) = self.entry(name, method, count) else {
            return;
        };
        entry.failures += count;
        let second = entry.per_second.entry(whole(now)).or_default();
        second.0 += count;
        second.1 += count;
    }

    /// Gives the words for failures that are counted.
    pub fn explain(
        &mut self,
        name: &str,
        method: &'static str,
        words: String,
        count: u64,
        now: f64,
    ) {
        let key = (method, name.to_owned(), words);
        let has_room = self.errors.len() < ROWS_MAX || self.errors.contains_key(&key);
        if count == 0 || !has_room {
            return;
        }
        let known = self.errors.entry(key).or_insert((0, now, now));
        known.0 += count;
        known.2 = now;
    }

    /// Entry under which `count` requests are counted, if there are any and there is room.
    fn entry(&mut self, name: &str, method: &'static str, count: u64) -> Option<&mut Entry> {
        let key = (name.to_owned(), method);
        let has_room = self.entries.len() < ROWS_MAX || self.entries.contains_key(&key);
        (count > 0 && has_room).then(|| self.entries.entry(key).or_default())
    }

    /// The data of a report, and a new beginning.
    pub fn take(&mut self, started: f64, classes: Value, users: u32) -> Value {
        let taken = std::mem::take(self);
        let mut total = Entry::default();
        let mut list = Vec::new();
        for ((name, method), entry) in &taken.entries {
            total.times.merge(&entry.times);
            total.late += entry.late;
            total.failures += entry.failures;
            for (second, (requests, failed)) in &entry.per_second {
                let sum = total.per_second.entry(*second).or_default();
                sum.0 += requests;
                sum.1 += failed;
            }
            list.push(entry.value(name, method, started));
        }
        let errors = taken
            .errors
            .into_iter()
            .map(|((method, name, words), seen)| {
                let key = format!("{method}.{name}.{words}");
                let row = map([
                    ("name", name.into()),
                    ("method", method.into()),
                    ("error", words.into()),
                    ("occurrences", seen.0.into()),
                    ("first_seen", seen.1.into()),
                    ("last_seen", seen.2.into()),
                ]);
                (key.into(), row)
            });
        map([
            ("stats", Value::Array(list)),
            ("stats_total", total.value("Aggregated", "", started)),
            ("errors", Value::Map(errors.collect())),
            ("user_classes_count", classes),
            ("user_count", users.into()),
        ])
    }
}

impl Entry {
    fn value(&self, name: &str, method: &str, started: f64) -> Value {
        let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
        for (ms, count) in self.times.lengths_ms() {
            *buckets.entry(bucket(ms)).or_default() += count;
        }
        let pairs = |pairs: BTreeMap<u64, u64>| {
            let pairs = pairs.into_iter().filter(|(_, count)| *count > 0);
            Value::Map(
                pairs
                    .map(|(key, count)| (key.into(), count.into()))
                    .collect(),
            )
        };
        let requests = self
            .per_second
            .iter()
            .map(|(second, counts)| (*second, counts.0));
        let failures = self
            .per_second
            .iter()
            .map(|(second, counts)| (*second, counts.1));
        let last = self
            .per_second
            .last_key_value()
            .map(|(second, _)| *second as f64);
        let is_timed = self.times.count() > 0;
        map([
            ("name", name.into()),
            ("method", method.into()),
            (
                "last_request_timestamp",
                last.map_or(Value::Nil, Value::from),
            ),
            ("start_time", started.into()),
            ("num_requests", (self.times.count() + self.failures).into()),
            ("num_none_requests", self.failures.into()),
            ("num_failures", (self.late + self.failures).into()),
            ("total_response_time", self.times.sum_ms().into()),
            ("max_response_time", self.times.max_ms().into()),
            (
                "min_response_time",
                is_timed
                    .then(|| self.times.min_ms())
                    .map_or(Value::Nil, Value::from),
            ),
            ("total_content_length", 0.into()),
            ("response_times", pairs(buckets)),
            ("num_reqs_per_sec", pairs(requests.collect())),
            ("num_fail_per_sec", pairs(failures.collect())),
        ])
    }
}

/// About two digits, as Locust rounds.
fn bucket(ms: f64) -> u64 {
    let step = match ms {
        ms if ms < 100.0 => 1.0,
        ms if ms < 1_000.0 => 10.0,
        ms if ms < 10_000.0 => 100.0,
        _ => 1_000.0,
    };
    whole((ms / step).round() * step)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are whole, not negative and far below 2^53 here"
)]
fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn field<'a>(value: &'a Value, name: &str) -> &'a Value {
        let fields = value.as_map().unwrap();
        let found = fields.iter().find(|(key, _)| key.as_str() == Some(name));
        &found.unwrap().1
    }

    #[test]
    fn response_times_have_about_two_digits() {
        let given = [0.2, 1.4, 99.4, 144.0, 146.0, 1_449.0, 12_345.0];
        assert_eq!(given.map(bucket), [0, 1, 99, 140, 150, 1_400, 12_000]);
    }

    #[test]
    fn names_beyond_the_most_are_left_out() {
        let mut entries = Entries::default();
        for number in 0..=ROWS_MAX {
            let name = format!("select {number}");
            entries.failed(&name, "SQL", 1, 1_000.0);
            entries.explain(&name, "SQL", "lost".to_owned(), 1, 1_000.0);
        }
        // Who has a place keeps it.
        entries.failed("select 0", "SQL", 1, 1_000.0);
        let report = entries.take(990.0, Value::Nil, 5);
        assert_eq!(field(&report, "stats").as_array().unwrap().len(), ROWS_MAX);
        assert_eq!(field(&report, "errors").as_map().unwrap().len(), ROWS_MAX);
        let total = field(field(&report, "stats_total"), "num_requests");
        assert_eq!(total, &Value::from(ROWS_MAX + 1));
    }

    #[test]
    fn a_report_has_requests_failures_and_seconds_once() {
        let mut times = Histogram::new();
        times.record(Duration::from_micros(2_500));
        times.record(Duration::from_millis(120));
        let mut entries = Entries::default();
        entries.answered("select", "SQL", &times, 1, 1_000.7);
        entries.failed("select", "SQL", 1, 1_000.7);
        entries.explain("select", "SQL", "lost".to_owned(), 1, 1_000.7);
        let report = entries.take(990.0, Value::Nil, 5);
        let list = field(&report, "stats").as_array().unwrap();
        assert_eq!(list.len(), 1);
        for entry in [&list[0], field(&report, "stats_total")] {
            let number = |name: &str| field(entry, name).as_f64().unwrap();
            assert_eq!((number("num_requests"), number("num_failures")), (3.0, 2.0));
            assert_eq!(number("total_response_time"), 122.5);
            assert_eq!(number("min_response_time"), 2.5);
            let times = Value::Map(vec![(3.into(), 1.into()), (120.into(), 1.into())]);
            assert_eq!(field(entry, "response_times"), &times);
            let seconds = Value::Map(vec![(1_000.into(), 3.into())]);
            assert_eq!(field(entry, "num_reqs_per_sec"), &seconds);
            let seconds = Value::Map(vec![(1_000.into(), 2.into())]);
            assert_eq!(field(entry, "num_fail_per_sec"), &seconds);
        }
        let errors = field(&report, "errors").as_map().unwrap();
        assert_eq!(field(&errors[0].1, "occurrences"), &Value::from(1));
        // What was taken is not told again.
        let empty = entries.take(990.0, Value::Nil, 5);
        assert!(field(&empty, "stats").as_array().unwrap().is_empty());
        assert_eq!(
            field(field(&empty, "stats_total"), "min_response_time"),
            &Value::Nil
        );
    }
}
