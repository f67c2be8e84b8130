//! The run while it goes, as JSON: what its page draws, updated each second.
//!
//! The page is a file of its own (`live.html`) that never changes; all that it shows is in here.
//! Names and units are those of the result's JSON where there is the same figure.
//!
//! Invariant: the series is bounded by [`PAST_MAX`], so that an answer stays small however long a
//! run takes.

use super::Frame;
use super::live::Scene;
use load_core::errors::ErrorCount;
use load_core::latency::Latency;
use load_core::series::Point;
use measure::host::{Host, Watch};
use measure::process;
use serde::Serialize;
use std::collections::VecDeque;

/// Seconds that the charts show.
const PAST_MAX: usize = 300;
/// Kinds of error that are listed, the most frequent.
const ERRORS_MAX: usize = 20;

#[derive(Serialize)]
struct Live<'a> {
    workload: &'a str,
    target: &'a str,
    connections: u32,
    /// Seconds that the run is to take; 0 is without end.
    time_s: u64,
    /// Connections are being opened; then statements are sent.
    is_ramp: bool,
    connected: u64,
    executing: u64,
    waiting: u64,
    statements: u64,
    events: u64,
    failed_statements: u64,
    ignored_errors: u64,
    failed_connects: u64,
    lost_connections: u64,
    reconnects: u64,
    gave_up: u64,
    shed: u64,
    /// Latency of the whole run so far.
    statement: Latency,
    event: Latency,
    connect: Latency,
    errors: Vec<&'a ErrorCount>,
    rss_bytes: u64,
    host: Host,
    series: &'a VecDeque<Point>,
}

/// Points that the page remembers.
pub(super) struct LivePage {
    scene: Scene,
    past: VecDeque<Point>,
    host: Watch,
}

impl LivePage {
    pub(super) fn new(scene: Scene) -> LivePage {
        LivePage {
            scene,
            past: VecDeque::new(),
            host: Watch::default(),
        }
    }

    /// State of the run as JSON.
    pub(super) fn json(&mut self, frame: &Frame<'_>) -> String {
        if let Some(point) = frame.point {
            self.past.push_back(*point);
            if self.past.len() > PAST_MAX {
                self.past.pop_front();
            }
        }
        let total = frame.total;
        let mut errors = total.errors.all();
        errors.truncate(ERRORS_MAX);
        let live = Live {
            workload: &self.scene.workload,
            target: &self.scene.target,
            connections: self.scene.connections,
            time_s: self.scene.time_s,
            is_ramp: frame.point.is_none(),
            connected: frame.gauges.connected,
            executing: frame.gauges.executing,
            waiting: frame.gauges.waiting,
            statements: total.successes(),
            events: total.events,
            failed_statements: total.failed,
            ignored_errors: total.ignored,
            failed_connects: total.failed_connects,
            lost_connections: total.lost,
            reconnects: total.reconnects,
            gave_up: total.gave_up,
            shed: total.shed + total.expired,
            statement: Latency::of(&total.statement_latency()),
            event: Latency::of(&total.event_latency),
            connect: Latency::of(&total.connect_latency),
            errors,
            rss_bytes: process::own().unwrap_or_default().rss_bytes,
            host: self.host.look(),
            series: &self.past,
        };
        // Numbers and strings can always be written.
        serde_json::to_string(&live).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load_core::control::Gauges;
    use load_core::errors::{Fault, Phase};
    use load_core::stats::{Class, Stats};
    use std::time::Duration;

    fn scene() -> Scene {
        Scene {
            workload: "select".to_owned(),
            target: "mysql://app@10.0.0.1:3306/sbtest".to_owned(),
            connections: 50,
            time_s: 60,
            has_arrivals: false,
            has_deadline: false,
        }
    }

    #[test]
    fn it_has_what_the_page_draws() {
        let mut total = Stats::default();
        total.succeeded(Class::Read, Duration::from_millis(4), None);
        let fault = Fault {
            code: 1040,
            sqlstate: "08004".to_owned(),
            message: "</script>\"Too many\"".to_owned(),
        };
        total.errors.count(Phase::Connect, fault);
        let gauges = Gauges {
            connected: 49,
            executing: 7,
            ..Gauges::default()
        };
        let mut page = LivePage::new(scene());
        let frame = |point| Frame {
            total: &total,
            gauges,
            point,
        };
        let ramp: serde_json::Value = serde_json::from_str(&page.json(&frame(None))).unwrap();
        assert_eq!(ramp["is_ramp"], true);
        assert_eq!(
            (&ramp["connected"], &ramp["executing"]),
            (&49.into(), &7.into())
        );
        assert_eq!(ramp["statement"]["p50_ms"], 4.0);
        assert_eq!(ramp["errors"][0]["message"], "</script>\"Too many\"");
        assert_eq!(ramp["series"].as_array().unwrap().len(), 0);
        let point = Point::default();
        let mut last = String::new();
        for _ in 0..PAST_MAX + 5 {
            last = page.json(&frame(Some(&point)));
        }
        let run: serde_json::Value = serde_json::from_str(&last).unwrap();
        assert_eq!(run["is_ramp"], false);
        assert_eq!(run["series"].as_array().unwrap().len(), PAST_MAX);
    }
}
