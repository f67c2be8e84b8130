//! Long connections as the users of a Locust master: as many as it wants, opened again where they
//! are lost, and each message or answer reported as a request.
//!
//! What was late, wrong or lost is a failure there. A late one has its response time, which is, for
//! messages of connections that are held, how much later than its time it came.

use super::counts::{Counts, Verdict};
use super::group::Order;
use super::options::LongArgs;
use super::run::{GroupThreads, start};
use load_core::errors::Phase;
use load_locust::{Entries, Runner};
use reactor::Time;
use std::time::Duration;

/// Longest time for connections to end.
const END_MAX: Duration = Duration::from_secs(5);

/// Users that hold TCP connections, or ask over HTTP.
pub struct Users {
    group_threads: GroupThreads,
    /// Name under which the master shows their requests.
    name: String,
    method: &'static str,
}

impl Users {
    /// # Errors
    /// A sentence that says why they cannot begin.
    pub fn start(args: &LongArgs) -> Result<Users, String> {
        let group_threads = start(args)?;
        group_threads.order(Order::Start);
        let (name, method) = match args {
            LongArgs::Hold(args) => (args.target.to_string(), "TCP"),
            LongArgs::Http(args) => (args.url.path.clone(), "GET"),
        };
        Ok(Users {
            group_threads,
            name,
            method,
        })
    }
}

impl Runner for Users {
    fn order(&mut self, users: u32) {
        self.group_threads.order(Order::Users(users));
    }

    fn listen(&mut self, until: Time) {
        self.group_threads.listen(until);
    }

    fn failure(&self) -> Option<String> {
        self.group_threads.failure.clone()
    }

    fn collect(&mut self, entries: &mut Entries, now: f64) {
        self.group_threads.ask(Order::Report);
        let counts = std::mem::take(&mut self.group_threads.total);
        report(&counts, &self.name, self.method, entries, now);
    }

    fn end(&mut self) {
        self.group_threads.end(END_MAX);
    }
}

/// Reports what was counted since the last report.
fn report(counts: &Counts, name: &str, method: &'static str, entries: &mut Entries, now: f64) {
    let late = counts.of(Verdict::Late);
    entries.answered(name, method, &counts.latency, late, now);
    let mut failed = |method, words: String, count| {
        entries.failed(name, method, count, now);
        entries.explain(name, method, words, count, now);
    };
    // Answers that are wrong have a row with their status; of what is lost, a row has the reason.
    let (mut wrong, mut lost) = (counts.of(Verdict::Wrong), counts.of(Verdict::Lost));
    for row in counts.errors.rows() {
        let words = match row.sqlstate.as_str() {
            "" | "HTTP" => row.message.clone(),
            _ => format!("{}: {}", row.code, row.message),
        };
        match (row.phase, row.sqlstate.as_str()) {
            (Phase::Connect | Phase::Init, _) => failed("CONNECT", words, row.count),
            (Phase::Statement, "HTTP") => {
                wrong = wrong.saturating_sub(row.count);
                failed(method, words, row.count);
            }
            (Phase::Statement, _) => {
                lost = lost.saturating_sub(row.count);
                failed(method, words, row.count);
            }
        }
    }
    failed(method, "wrong: not what was agreed".to_owned(), wrong);
    failed(method, "lost: it did not come".to_owned(), lost);
    let words = "late: right, but later than --late-after allows";
    entries.explain(name, method, words.to_owned(), late, now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use load_core::errors::Fault;
    use rmpv::Value;

    #[test]
    fn what_is_late_wrong_or_lost_is_a_failure_with_words() {
        let mut counts = Counts::default();
        for ms in [1, 2, 3] {
            counts.latency.record(Duration::from_millis(ms));
        }
        counts.judge(Verdict::Right, 2);
        counts.judge(Verdict::Late, 1);
        counts.judge(Verdict::Wrong, 4);
        counts.judge(Verdict::Lost, 7);
        let status = Fault {
            code: 500,
            sqlstate: "HTTP".to_owned(),
            message: "status 500".to_owned(),
        };
        counts.errors.count(Phase::Statement, status);
        counts.errors.count(Phase::Statement, Fault::ended("early"));
        counts.connect_failed(Fault::ended("at once"));
        let mut entries = Entries::default();
        report(&counts, "/", "GET", &mut entries, 5.0);
        let taken = entries.take(1.0, Value::Nil, 0).to_string();
        // Three answers, four wrong, seven lost and one connection; all but two failed.
        for words in [
            "\"num_requests\": 14, \"num_none_requests\": 11, \"num_failures\": 12",
            "\"num_requests\": 1, \"num_none_requests\": 1",
            "status 500",
            "closed the connection early",
            "\"wrong: not what was agreed\", \"occurrences\": 3",
            "\"lost: it did not come\", \"occurrences\": 6",
            "\"late: right, but later than --late-after allows\", \"occurrences\": 1",
        ] {
            assert!(taken.contains(words), "{words} in {taken}");
        }
    }
}
