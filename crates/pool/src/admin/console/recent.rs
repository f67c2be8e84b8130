//! Tables of the last minutes: statements by digest and by account, with what runs now.
//!
//! `SHOW STATEMENTS LAST 5 MINUTES` is `recent_statements` with `minutes = 5`, and SHOW USERS
//! alike. What runs or waits now is asked of the groups, as for `running`: a statement
//! that hangs is not answered, and would be in no figure otherwise.

use super::{Console, Shown, digest, maybe, number, seconds, text};
use crate::observe::figures::digests::{Digests, Sums};
use crate::observe::figures::places::OTHERS;
use crate::observe::figures::recent::Span;
use crate::observe::figures::{Histogram, Stage, UserFigures};
use crate::observe::listing::ClientLine;
use crate::observe::metrics::{PoolSample, Sample};
use console::{Column, DEFAULT_SCHEMA, LAST_MINUTES, Row, Table, Type};
use reactor::Time;
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

tables! { TABLES DEFAULT_SCHEMA;
    "recent_statements" "Statements of one digest in the last 1, 5 and 60 minutes (`minutes`). By \
                         the server's time, with those that run or wait now and their time so far. \
                         200 digests in ten seconds, or in a minute of the hour, are told \
                         apart." recent_statements => {
        "minutes" Integer "1, 5 or 60",
        "covered_seconds" Real "that time: a little more, or less after a start or an upgrade",
        "digest" Text(16) "as in `statements`; NULL: all others together",
        "statement" Text(20) "the text without its values",
        "count" Integer(8) "statements answered",
        "errors" Integer(6) "statements that ended with an error of the server",
        "running" Integer(7) "statements that run or wait now",
        "rows" Integer "rows in the replies",
        "wait_seconds" Real(12) "total time until they were sent",
        "service_seconds" Real "total time from sending on",
        "mean_seconds" Real(12) "mean of that time",
        "p99_seconds" Real "99th percentile of that time, rounded up to 1, 2, 4, ... ms",
        "hour_seconds" Real(12) "that mean in the last hour",
    }
    "recent_users" "The same by user, as in `users`." recent_users => {
        "minutes" Integer "1, 5 or 60",
        "covered_seconds" Real "that time: a little more, or less after a start or an upgrade",
        "user" Text(16) "its name",
        "statements" Integer(10) "statements answered",
        "errors" Integer(6) "statements that ended with an error of the server",
        "running" Integer(7) "statements that run now",
        "waiting" Integer(7) "statements that wait now",
        "wait_mean_seconds" Real "mean time until a statement was sent",
        "wait_p99_seconds" Real(16) "99th percentile of that time; 3600: that or more",
        "mean_seconds" Real "mean time from sending on",
        "p99_seconds" Real(11) "99th percentile of that time; 3600: that or more",
        "hour_p99_seconds" Real(16) "that percentile in the last hour",
    }
}

/// Time that a statement has run or waited, as far as it is within a time of this length.
fn age(client: &ClientLine, length: Duration) -> Duration {
    Duration::from_secs_f64(client.state_seconds.max(0.0)).min(length)
}

fn is_waiting(client: &ClientLine) -> bool {
    client.state == Stage::Waiting.name()
}

/// Figures of the last hour and of the shorter times, and what runs and waits now.
struct Times<'a> {
    pool: &'a PoolSample<'a>,
    now: Vec<&'a ClientLine>,
    spans: BTreeMap<u32, Span>,
}

impl<'a> Times<'a> {
    fn of(console: &Console, sample: &'a Sample<'a>) -> Result<Option<Times<'a>>, String> {
        let Some(pool) = &sample.pool else {
            return Ok(None);
        };
        let mut now: Vec<&ClientLine> = console.busy(sample)?.iter().collect();
        now.retain(|client| client.state == Stage::Running.name() || is_waiting(client));
        let recent = (console.recent.lock()).unwrap_or_else(PoisonError::into_inner);
        let span = |minutes: u32| {
            let length = Duration::from_secs(60) * minutes;
            (
                minutes,
                recent.over(length, Time::now(), &pool.total.figures),
            )
        };
        let spans = LAST_MINUTES.map(span).into();
        Ok(Some(Times { pool, now, spans }))
    }

    /// Counts by digest within a time, statements that run or wait included, and the number of
    /// those.
    fn digests(&self, span: &Span) -> (Digests, BTreeMap<u64, usize>) {
        let (mut digests, mut running) = (span.figures.digests.clone(), BTreeMap::new());
        let known = &self.pool.total.figures.digests;
        for client in &self.now {
            let text = known.text(client.digest);
            let digest = text.as_ref().map_or(0, |_| client.digest);
            let sums = digests.counted(digest, || text.unwrap_or_default());
            let time = match is_waiting(client) {
                true => &mut sums.wait,
                false => {
                    sums.note_time(age(client, span.length));
                    &mut sums.service
                }
            };
            *time = time.saturating_add(age(client, span.length));
            *running.entry(digest).or_default() += 1;
        }
        (digests, running)
    }
}

/// Mean time from sending on, of those that were answered and those that run.
fn mean(sums: &Sums, running: usize) -> f64 {
    let count = sums.count + running as u64;
    sums.service.as_secs_f64() / count.max(1) as f64
}

fn recent_statements(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let Some(times) = Times::of(console, sample)? else {
        return Ok(Vec::new());
    };
    let hour = times.spans.values().next_back();
    let hour = hour.map(|span| times.digests(span));
    let mut rows = Vec::new();
    for (minutes, span) in &times.spans {
        let (digests, running) = times.digests(span);
        let mut row = |key: u64, statement: Option<&str>, sums: &Sums| {
            let running = running.get(&key).copied().unwrap_or(0);
            let of_hour = hour.as_ref().and_then(|(digests, running)| {
                let running = running.get(&key).copied().unwrap_or(0);
                Some(mean(digests.sums_of(key)?, running))
            });
            rows.push(vec![
                number(*minutes),
                seconds(span.length.as_secs_f64()),
                digest(key),
                maybe(statement, |statement| text(statement.to_owned())),
                number(sums.count),
                number(sums.errors),
                number(running),
                number(sums.rows),
                seconds(sums.wait.as_secs_f64()),
                seconds(sums.service.as_secs_f64()),
                seconds(mean(sums, running)),
                seconds(sums.p99().as_secs_f64()),
                maybe(of_hour, seconds),
            ]);
        };
        for (key, entry) in digests.list() {
            row(key, Some(&entry.text), &entry.sums);
        }
        if *digests.others() != Sums::default() {
            row(0, None, digests.others());
        }
    }
    Ok(rows)
}

fn recent_users(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let Some(times) = Times::of(console, sample)? else {
        return Ok(Vec::new());
    };
    let none = UserFigures::default();
    let users = times.pool.users();
    // Those without a place of their own are the others.
    let place_of = |client: &ClientLine| {
        let mut users = users.iter();
        let its = users.find(|user| client.user.as_deref() == Some(&*user.name));
        its.map_or(OTHERS.into(), |user| user.place)
    };
    let now = times.now.iter().map(|client| (place_of(client), client));
    let now: Vec<(usize, &&ClientLine)> = now.collect();
    let of = |span: &Span, place: usize| {
        let mut figures = span.figures.users().get(place).unwrap_or(&none).clone();
        let mut counts = [0; 2];
        for (_, client) in now.iter().filter(|(its, _)| *its == place) {
            let (times, count) = match is_waiting(client) {
                true => (&mut figures.wait, &mut counts[1]),
                false => (&mut figures.service, &mut counts[0]),
            };
            times.record(age(client, span.length));
            *count += 1;
        }
        (figures, counts)
    };
    let p99 = |times: &Histogram| seconds(times.percentile(99.0).as_secs_f64());
    let mean = |times: &Histogram| seconds(times.mean().as_secs_f64());
    let mut rows = Vec::new();
    for (minutes, span) in &times.spans {
        for user in &users {
            let (figures, [running, waiting]) = of(span, user.place);
            let hour = times.spans.values().next_back();
            let hour = hour.map(|hour| of(hour, user.place).0);
            rows.push(vec![
                number(*minutes),
                seconds(span.length.as_secs_f64()),
                text(user.name.clone()),
                number((span.figures.users().get(user.place)).map_or(0, |of| of.service.count())),
                number(figures.errors),
                number(running),
                number(waiting),
                mean(&figures.wait),
                p99(&figures.wait),
                mean(&figures.service),
                p99(&figures.service),
                maybe(hour, |hour| p99(&hour.service)),
            ]);
        }
    }
    Ok(rows)
}
