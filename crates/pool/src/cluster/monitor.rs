//! The monitor of one server: a thread that asks it again and again.
//!
//! Each server has a thread, so that one that answers slowly holds up no question to another. Every
//! question goes out on one connection, which is opened anew when it was lost. An answer that has
//! not come within `cluster.answer_ms_max` is counted as missing, and waited for on: one that comes
//! late shows that the server is alive, and a new login would be late too.

use crate::cluster::traits::Traits;
use crate::cluster::{Cluster, now_ms};
use crate::observe::log::{Event, note};
use crate::server::probe::{Connection, Fault, Late, ProbeError, log_in_at};
use crate::server::upstream::Upstream;
use ::cluster::{Failure, Observation, Report, ServerId, questions};
use reactor::{Address, Time};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Least time between two questions, however often something asks for one.
const GAP: Duration = Duration::from_millis(20);
/// Time until a place without a server is looked at, unless somebody says that it has one.
const VACANT: Duration = Duration::from_secs(60);

/// A connection that stands, and the version in its greeting.
struct Asked {
    connection: Connection,
    version: String,
}

/// Starts the threads, which end with the process.
///
/// # Errors
/// Why one cannot be started.
pub(crate) fn start(cluster: &Arc<Cluster>) -> Result<(), String> {
    for place in (0..).take(cluster.members.len()) {
        if let Some(place) = cluster.place(ServerId(place)) {
            place.keep_looking_up()?;
        }
        let (cluster, id) = (cluster.clone(), ServerId(place));
        let thread = std::thread::Builder::new().name("monitor".into());
        let started = thread.spawn(move || cluster.keep_asking(id));
        started.map_err(|error| format!("cannot start the thread that asks a server: {error}"))?;
    }
    cluster.start_discovery()
}

impl Cluster {
    fn keep_asking(self: &Arc<Self>, id: ServerId) {
        let trigger = &self.members[id.index()].trigger;
        let (mut asked, mut before) = (None, None);
        loop {
            let Some(place) = self.place(id) else {
                trigger.wait(VACANT);
                continue;
            };
            if (before.as_ref()).is_none_or(|before| !Arc::ptr_eq(before, &place)) {
                (asked, before) = (None, Some(place.clone()));
            }
            let begun = Time::now();
            let answer = self.ask(id, &place, &mut asked);
            let took = Time::now().since(begun);
            let at: Option<Arc<Address>> = asked.as_ref().map(|asked| asked.connection.at.clone());
            let observation = Observation {
                server: id,
                at: begun.0 / 1_000_000,
                took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                answer,
                traffic: self.traffic(id),
            };
            let again = self.noted(observation, &place, at);
            trigger.pause(GAP);
            trigger.wait(again.saturating_sub(GAP));
        }
    }

    /// Place of a server, if there is one.
    pub(super) fn place(&self, id: ServerId) -> Option<Arc<Upstream>> {
        self.known().places[id.index()].clone()
    }

    /// Asks on the connection that stands; if that was lost, or there is none, on another.
    fn ask(
        self: &Arc<Self>,
        id: ServerId,
        place: &Arc<Upstream>,
        kept: &mut Option<Asked>,
    ) -> Result<Report, Failure> {
        if let Some(asked) = kept.take() {
            match self.ask_on(asked, kept) {
                Err(Failure::Refused(_)) => {}
                answer => return answer,
            }
        }
        let late = Some(self.late(id, place));
        let logged_in = log_in_at(place, &self.settings(), self.answer_max, late);
        let logged_in = logged_in.and_then(|(mut connection, greeting)| {
            let traits = Traits::ask(&mut connection, &greeting)?;
            Ok((connection, greeting, traits))
        });
        let (connection, greeting, traits) = logged_in.map_err(failure_of)?;
        self.meet(id, place, traits);
        let version = String::from_utf8_lossy(&greeting.version).into_owned();
        let asked = Asked {
            connection,
            version,
        };
        self.ask_on(asked, kept)
    }

    /// Notes, each time that a server's answer is late, that it is missing so far.
    fn late(self: &Arc<Self>, id: ServerId, place: &Arc<Upstream>) -> Late {
        let (cluster, place) = (self.clone(), place.clone());
        Box::new(move || {
            let took_ms = u64::try_from(cluster.answer_max.as_millis()).unwrap_or(u64::MAX);
            let observation = Observation {
                server: id,
                // One later than the question, whose answer is still to be counted.
                at: (now_ms() + 1).saturating_sub(took_ms),
                took_ms,
                answer: Err(Failure::TimedOut),
                traffic: cluster.traffic(id),
            };
            cluster.noted(observation, &place, None);
        })
    }

    /// Asks on this connection, which is kept if it can be used on.
    fn ask_on(&self, mut asked: Asked, kept: &mut Option<Asked>) -> Result<Report, Failure> {
        let kind = self.kind();
        let mut texts = questions::texts(kind, &asked.version).to_vec();
        let replicas = questions::replicas_text(kind, &asked.version);
        let replicas = replicas.filter(|_| self.discovers());
        texts.extend(replicas);
        let mut answers = asked.connection.tables(&texts).map_err(failure_of)?;
        *kept = Some(asked);
        let replicas = replicas.and_then(|_| answers.pop());
        let rows: Result<Vec<questions::Rows>, ProbeError> = answers.into_iter().collect();
        let rows = rows.map_err(|error| Failure::Broken(error.why))?;
        let mut report = questions::report(kind, &rows)?;
        if let Some(answer) = replicas {
            report.replicas = self.replicas(answer);
        }
        Ok(report)
    }

    /// Replicas that a server names, or none and a line of the log.
    fn replicas(&self, answer: Result<questions::Rows, ProbeError>) -> Vec<String> {
        let read = answer.map_err(|error| error.why);
        let read = read.and_then(|rows| questions::replicas(&rows));
        read.unwrap_or_else(|why| {
            if !self.is_unnamed.swap(true, Relaxed) {
                note(
                    Event::Warning,
                    format_args!("replicas cannot be discovered: {why}"),
                );
            }
            Vec::new()
        })
    }
}

fn failure_of(error: ProbeError) -> Failure {
    match error.fault {
        Fault::Unreached => Failure::Refused(error.why),
        Fault::Unanswered => Failure::TimedOut,
        Fault::Passing | Fault::Lasting | Fault::Untrusted => Failure::LoginRefused(error.why),
        Fault::Failed(_) | Fault::TooLong => Failure::Broken(error.why),
    }
}
