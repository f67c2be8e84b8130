//! The monitor of one server: a thread that asks it again and again.
//!
//! Each server has a thread, so that one that answers slowly holds up no question to another. Every
//! question goes out on one connection, which is opened anew when it was lost. No read waits longer
//! than `cluster.answer_ms_max`.

use crate::cluster::Cluster;
use crate::cluster::traits::Traits;
use crate::server::probe::{Connection, Fault, ProbeError, log_in_at};
use ::cluster::{Failure, Observation, Report, ServerId, questions};
use reactor::{Address, Time};
use std::sync::Arc;
use std::time::Duration;

/// Least time between two questions, however often something asks for one.
const GAP: Duration = Duration::from_millis(20);

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
    for (place, member) in (0..).zip(&cluster.members) {
        member.place.keep_looking_up()?;
        let (cluster, id) = (cluster.clone(), ServerId(place));
        let thread = std::thread::Builder::new().name("monitor".into());
        let started = thread.spawn(move || cluster.keep_asking(id));
        started.map_err(|error| format!("cannot start the thread that asks a server: {error}"))?;
    }
    Ok(())
}

impl Cluster {
    fn keep_asking(&self, id: ServerId) {
        let trigger = &self.members[id.index()].trigger;
        let mut asked = None;
        loop {
            let begun = Time::now();
            let answer = self.ask(id, &mut asked);
            let took = Time::now().since(begun);
            let at: Option<Arc<Address>> = asked.as_ref().map(|asked| asked.connection.at.clone());
            let observation = Observation {
                server: id,
                at: begun.0 / 1_000_000,
                took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                answer,
                traffic: self.reads().on[id.index()].take(),
            };
            let again = self.noted(observation, at);
            trigger.pause(GAP);
            trigger.wait(again.saturating_sub(GAP));
        }
    }

    /// Asks on the connection that stands; if that was lost, or there is none, on another.
    fn ask(&self, id: ServerId, kept: &mut Option<Asked>) -> Result<Report, Failure> {
        if let Some(asked) = kept.take() {
            match self.ask_on(asked, kept) {
                Err(Failure::Refused(_)) => {}
                answer => return answer,
            }
        }
        let settings = self.settings();
        let place = &self.members[id.index()].place;
        let logged_in = log_in_at(place, &settings, self.answer_max);
        let logged_in = logged_in.and_then(|(mut connection, greeting)| {
            let traits = Traits::ask(&mut connection, &greeting)?;
            Ok((connection, greeting, traits))
        });
        let (connection, greeting, traits) = logged_in.map_err(failure_of)?;
        self.meet(id, traits);
        let version = String::from_utf8_lossy(&greeting.version).into_owned();
        let asked = Asked {
            connection,
            version,
        };
        self.ask_on(asked, kept)
    }

    /// Asks on this connection, which is kept if it can be used on.
    fn ask_on(&self, mut asked: Asked, kept: &mut Option<Asked>) -> Result<Report, Failure> {
        let kind = self.kind();
        let texts = questions::texts(kind, &asked.version);
        let answers = asked.connection.tables(texts).map_err(failure_of)?;
        *kept = Some(asked);
        let rows: Result<Vec<questions::Rows>, ProbeError> = answers.into_iter().collect();
        let rows = rows.map_err(|error| Failure::Broken(error.why))?;
        questions::report(kind, &rows)
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
