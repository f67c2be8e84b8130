//! Workloads that prove data.
//!
//! The problem: a proxy or a failover that loses, repeats or mixes up statements shows in no rate.
//! The mechanism: clients, each a thread with a connection of its own ([`clients`]), write down
//! what they ask and what they are told ([`history`]). When all have ended the tables are read once
//! more, and the [`Subject`] checks the whole; faults are told with the operations that show them
//! ([`finding`]).
//!
//! Invariants: an answer that leaves it open whether a write was done is never held against the
//! server, so a finding is no client's own doubt; where the tables cannot be read in [`CHECK_MAX`]
//! the verdict is that nothing is known. The history is bounded, and so is the time of its check.

mod append;
mod bank;
mod clients;
mod finding;
mod history;
mod register;

pub(crate) use clients::run_group;
pub use finding::{Finding, Kind, Shown};

use crate::blocking::{Client, advice};
use clients::{Stopped, Teller};
use finding::Findings;
use history::{Answer, History, OPERATIONS_MAX, Operation, answer_of};
use load_core::errors::Fault;
use load_core::plan::Plan;
use load_core::workload::Workload;
use reactor::Time;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;
use wire::blocking::values;

/// Connections of a proof, each with a thread.
pub(crate) const CLIENTS_MAX: u32 = 1_000;
/// Longest time to read the tables at the end, and to check the history.
const CHECK_MAX: Duration = Duration::from_secs(60);
/// Pause before the tables are tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A workload that can check its history.
trait Subject: Send + Sync {
    /// Its tables, each with its columns.
    fn tables(&self) -> &'static [(&'static str, &'static str)];
    /// Statements that fill the empty tables for a run.
    fn fill(&self) -> Vec<String>;
    /// One operation of a client.
    fn step(&self, teller: &mut Teller<'_>) -> Result<(), Stopped>;
    /// Reads the tables by `client` and checks the history of the run.
    fn check(
        &self,
        client: &mut Client,
        operations: &[Operation],
        findings: &mut Findings,
    ) -> Result<(), Fault>;
}

fn subject(workload: Workload) -> Option<Box<dyn Subject>> {
    match workload {
        Workload::Bank => Some(Box::<bank::Bank>::default()),
        Workload::Append => Some(Box::<append::Append>::default()),
        Workload::Register => Some(Box::new(register::Register)),
        _ => None,
    }
}

/// A proof of a run.
pub(crate) struct Proof {
    subject: Box<dyn Subject>,
    history: History,
    /// Numbers of writes that have been given out.
    numbers: AtomicU64,
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proof").finish_non_exhaustive()
    }
}

/// Makes the tables of a proof.
///
/// # Errors
/// A sentence in the server's words.
pub(crate) fn prepare(workload: Workload, plan: &Plan) -> Result<(), String> {
    run_on_tables(workload, plan, |table, columns| {
        format!("CREATE TABLE {table} ({columns}) ENGINE=InnoDB")
    })
}

/// Drops the tables of a proof.
///
/// # Errors
/// A sentence in the server's words.
pub(crate) fn cleanup(workload: Workload, plan: &Plan) -> Result<(), String> {
    run_on_tables(workload, plan, |table, _| {
        format!("DROP TABLE IF EXISTS {table}")
    })
}

fn run_on_tables(
    workload: Workload,
    plan: &Plan,
    text: fn(&str, &str) -> String,
) -> Result<(), String> {
    let tables = subject(workload).map_or(&[][..], |subject| subject.tables());
    let texts = tables.iter().map(|(name, columns)| text(name, columns));
    run_all(plan, &texts.collect::<Vec<String>>())
}

/// Runs statements on a connection of their own.
fn run_all(plan: &Plan, texts: &[String]) -> Result<(), String> {
    let mut client = connect(plan).map_err(|fault| fault.words())?;
    texts.iter().try_for_each(|text| {
        let ran = client.query(text.as_bytes());
        ran.map(drop)
            .map_err(|fault| format!("{text}: {}{}", fault.words(), advice(&fault)))
    })
}

fn connect(plan: &Plan) -> Result<Client, Fault> {
    Client::connect(&plan.address, &plan.credentials, plan.connect_timeout)
}

impl Proof {
    /// Empties and fills the tables for a run; `None` for a workload that proves nothing.
    ///
    /// # Errors
    /// A sentence in the server's words.
    pub(crate) fn begin(workload: Workload, plan: &Plan) -> Result<Option<Arc<Proof>>, String> {
        let Some(subject) = subject(workload) else {
            return Ok(None);
        };
        let tables = subject.tables().iter();
        let mut texts: Vec<String> = tables.map(|(name, _)| format!("TRUNCATE {name}")).collect();
        texts.extend(subject.fill());
        run_all(plan, &texts)?;
        Ok(Some(Arc::new(Proof {
            subject,
            history: History::default(),
            numbers: AtomicU64::new(0),
        })))
    }

    /// A number that no other write has, from 1.
    fn number(&self) -> u64 {
        1 + self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Verdict on the run, of which nothing is noted any more.
    pub(crate) fn check(self: &Arc<Proof>, plan: &Arc<Plan>) -> Verdict {
        self.check_within(plan, CHECK_MAX)
    }

    fn check_within(self: &Arc<Proof>, plan: &Arc<Plan>, most: Duration) -> Verdict {
        let operations = Arc::new(self.history.take());
        let mut verdict = Verdict::of(&operations);
        if verdict.acknowledged == 0 {
            verdict.give_up("no write was acknowledged".to_owned());
            return verdict;
        }
        let (sender, judged) = sync_channel(1);
        let (proof, plan) = (self.clone(), plan.clone());
        thread::spawn(move || {
            // Nobody listens any more where it took too long.
            let _ = sender.send(proof.judge(&plan, &operations, most));
        });
        match judged.recv_timeout(most) {
            Ok(Ok(findings)) => {
                if !findings.is_empty() {
                    verdict.data = Data::Wrong;
                }
                verdict.findings = findings;
            }
            Ok(Err(fault)) => {
                verdict.give_up(format!("the tables could not be read: {}", fault.words()));
            }
            Err(_) => verdict.give_up(format!(
                "the tables could not be read and checked within {} s",
                most.as_secs()
            )),
        }
        verdict
    }

    /// Reads and checks, again after failures that may pass.
    fn judge(
        &self,
        plan: &Plan,
        operations: &[Operation],
        most: Duration,
    ) -> Result<Vec<Finding>, Fault> {
        let end = Time::now() + most;
        loop {
            let mut findings = Findings::new(operations);
            let checked = connect(plan)
                .and_then(|mut client| self.subject.check(&mut client, operations, &mut findings));
            match checked {
                Ok(()) => return Ok(findings.into_vec()),
                Err(fault) if answer_of(&fault) == Answer::Refused || Time::now() >= end => {
                    return Err(fault);
                }
                Err(_) => thread::park_timeout(RETRY_PAUSE),
            }
        }
    }
}

/// Statement that inserts the rows 0 to `count` - 1 with one value.
fn insert_rows(table: &str, count: u32, value: i64) -> String {
    let rows: Vec<String> = (0..count).map(|id| format!("({id},{value})")).collect();
    format!("INSERT INTO {table} VALUES {}", rows.join(","))
}

/// The first values of a row.
fn columns<const N: usize>(row: &[u8]) -> [&[u8]; N] {
    let mut values = values(row);
    std::array::from_fn(|_| values.next().unwrap_or_default())
}

/// A number as text; 0 if it is none.
fn number<T: std::str::FromStr + Default>(text: &[u8]) -> T {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// State of the data, as far as the history tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// Nothing was found.
    Right,
    /// Faults were found.
    Wrong,
    /// The check could not be made.
    Unknown,
}

/// Result of a proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// State of the data.
    pub data: Data,
    /// Reason why it is unknown.
    pub reason: Option<String>,
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Writes of which the server said that they have no effect.
    pub refused: u64,
    /// Writes that may or may not have happened.
    pub unanswered: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// True if the run ended because no more operations are recorded.
    pub is_full: bool,
    /// Faults, by kind.
    pub findings: Vec<Finding>,
}

impl Verdict {
    fn of(operations: &[Operation]) -> Verdict {
        let count = |is_write: bool, answer: Answer| {
            let counted = operations.iter();
            let counted = counted.filter(|one| one.is_write() == is_write && one.answer == answer);
            counted.count() as u64
        };
        Verdict {
            data: Data::Right,
            reason: None,
            acknowledged: count(true, Answer::Done),
            refused: count(true, Answer::Refused),
            unanswered: count(true, Answer::Missing),
            reads: count(false, Answer::Done),
            is_full: operations.len() >= OPERATIONS_MAX,
            findings: Vec::new(),
        }
    }

    fn give_up(&mut self, reason: String) {
        (self.data, self.reason) = (Data::Unknown, Some(reason));
    }

    /// Writes, whatever their answer.
    pub(crate) fn writes(&self) -> u64 {
        self.acknowledged + self.refused + self.unanswered
    }

    /// Faults of all kinds.
    pub(crate) fn faults(&self) -> u64 {
        self.findings.iter().map(|finding| finding.count).sum()
    }

    /// Lines for people; the last one is the verdict.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "proof: writes: {} acknowledged, {} refused, {} without an answer; {} reads",
            self.acknowledged, self.refused, self.unanswered, self.reads
        )];
        if self.is_full {
            lines.push(format!(
                "proof: the run ended after {OPERATIONS_MAX} operations: no more are recorded"
            ));
        }
        let findings = self.findings.iter().flat_map(Finding::lines);
        lines.extend(findings.map(|line| format!("proof: {line}")));
        lines.push(match (self.data, &self.reason) {
            (Data::Wrong, _) => "proof: the data are WRONG".to_owned(),
            (_, Some(reason)) => format!("proof: the data are UNKNOWN: {reason}"),
            _ => "proof: the data are right".to_owned(),
        });
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crowd;
    use crate::options::LoadArgs;
    use clap::Parser;
    use history::Act;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }

    #[test]
    fn a_check_that_takes_too_long_knows_nothing() {
        // It accepts, and says nothing.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("mysql://a@{}/t", silent.local_addr().unwrap());
        let line = Line::parse_from(["load", "bank", "run", "--target", &target]);
        let plan = Arc::new(crowd::make_plan(&line.load).unwrap());
        let proof = Arc::new(Proof {
            subject: subject(Workload::Bank).unwrap(),
            history: History::default(),
            numbers: AtomicU64::new(0),
        });
        let place = proof.history.begin(0, Act::Write, 1, 1).unwrap();
        proof.history.answer(place, Answer::Done);
        let verdict = proof.check_within(&plan, Duration::from_millis(20));
        assert_eq!((verdict.data, verdict.acknowledged), (Data::Unknown, 1));
        let reason = "the tables could not be read and checked within 0 s";
        assert_eq!(verdict.reason.as_deref(), Some(reason));
    }
}
