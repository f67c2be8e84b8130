//! Workloads whose clients wait for answers; most of them prove data.
//!
//! The problem: a proxy or a failover that loses, repeats or mixes up statements shows in no rate.
//! The mechanism: clients, each a thread with a connection of its own ([`clients`]), write down
//! what they ask and what they are told ([`history`]). When all have ended the tables are read once
//! more, and the [`Subject`] checks the whole; faults are told with the operations that show them
//! ([`finding`]).
//!
//! Invariants: an answer that leaves it open whether a write was done is never held against the
//! server, so a finding is no client's own doubt; where the tables cannot be read in [`CHECK_MAX`]
//! the verdict is that nothing is known. A row that is missing, or has no number, is [`NOTHING`],
//! which no client writes. The history is bounded, and so is the time of its check.

mod append;
mod bank;
mod clients;
mod finding;
mod history;
mod register;
mod tpcc;

pub(crate) use clients::run_group;
pub use finding::{Finding, Kind, Shown};
pub(crate) use tpcc::TpccArgs;

use crate::Outcome;
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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;
use tpcc::Tpcc;
use wire::blocking::values;

/// Connections of a proof, each with a thread.
pub(crate) const CLIENTS_MAX: u32 = 1_000;
/// Longest time to read the tables at the end, and to check the history.
const CHECK_MAX: Duration = Duration::from_secs(60);
/// Longest time in which the conditions of `tpcc` are checked: a hundred warehouses take minutes.
pub(crate) const CONDITIONS_MAX: Duration = Duration::from_secs(3600);
/// Longest time to fill the tables at the start, beyond a statement that is running.
const SETUP_MAX: Duration = Duration::from_secs(10);
/// Pause before the tables are tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A workload, which mostly can check its history.
trait Subject: Send + Sync {
    /// False if it has no history: a run takes its tables as they are.
    fn proves(&self) -> bool {
        true
    }
    /// Its tables, each with its columns.
    fn tables(&self) -> &'static [(&'static str, &'static str)];
    /// Statements that fill the empty tables for a run.
    fn fill(&self) -> Vec<String> {
        Vec::new()
    }
    /// One operation of a client.
    fn step(&self, teller: &mut Teller<'_>) -> Result<(), Stopped>;
    /// Reads the tables by `client` and checks the history of the run.
    fn check(
        &self,
        _client: &mut Client,
        _operations: &[Operation],
        _findings: &mut Findings,
    ) -> Result<(), Fault> {
        Ok(())
    }
}

/// The workload, for tables that are to be made.
fn subject(workload: Workload) -> Option<Box<dyn Subject>> {
    match workload {
        Workload::Tpcc => Some(Box::new(Tpcc {
            size: tpcc::FULL,
            is_paced: false,
        })),
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

/// Makes the tables of a workload, and fills those that a run takes as they are.
///
/// # Errors
/// A sentence in the server's words.
pub(crate) fn prepare(
    workload: Workload,
    asked: TpccArgs,
    plan: &Plan,
    stop: &AtomicBool,
) -> Result<(), String> {
    run_on_tables(workload, plan, |table, columns| {
        format!("CREATE TABLE {table} ({columns}) ENGINE=InnoDB")
    })?;
    match workload {
        Workload::Tpcc => tpcc::fill(asked.size_or(tpcc::FULL), plan, stop),
        _ => Ok(()),
    }
}

/// Checks the tables of `tpcc`.
///
/// # Errors
/// A sentence in the server's words, or that there was too little time.
pub(crate) fn check_tables(asked: TpccArgs, plan: Plan, most: Duration) -> Result<Outcome, String> {
    let checked = within(most, move || {
        Tpcc::open(&plan, asked)?;
        tpcc::check(&plan).map_err(|fault| fault.words() + advice(&fault))
    });
    let broken = checked.ok_or_else(|| too_late("checked", most))??;
    for line in &broken {
        aside!("load: tpcc: {line}");
    }
    match broken.is_empty() {
        true => {
            aside!("load: tpcc: all consistency conditions hold");
            Ok(Outcome::Ran)
        }
        false => Ok(Outcome::Crossed),
    }
}

/// Does the work on a thread of its own; `None` if it takes longer, when nobody listens any more.
fn within<T: Send + 'static>(
    most: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, done) = sync_channel(1);
    thread::spawn(move || {
        let _ = sender.send(work());
    });
    done.recv_timeout(most).ok()
}

fn too_late(what: &str, most: Duration) -> String {
    let seconds = most.as_secs();
    format!("the tables could not be {what} within {seconds} s")
}

/// Drops the tables of a workload.
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
        .map_err(|(fault, text)| text + &fault.words() + advice(&fault))
}

/// Runs statements on a connection of their own.
fn run_all(plan: &Plan, texts: &[String]) -> Result<(), (Fault, String)> {
    let mut client = connect(plan).map_err(|fault| (fault, String::new()))?;
    texts.iter().try_for_each(|text| {
        let ran = client.query(text.as_bytes());
        ran.map(drop).map_err(|fault| (fault, format!("{text}: ")))
    })
}

/// Server's errors of a moment: too many connections, a lock that another holds, read only.
const PASSING: &[u32] = &[1040, 1203, 1205, 1213, 1290, 1792, 1836];

/// True for an error after which the same may succeed.
fn may_pass(fault: &Fault) -> bool {
    let is_of_pool = (9500..9600).contains(&fault.code);
    answer_of(fault) == Answer::Missing || is_of_pool || PASSING.contains(&fault.code)
}

/// Tries again after errors that may pass, for so long at most.
fn retry<T, E>(
    most: Duration,
    fault: fn(&E) -> &Fault,
    attempt: impl Fn() -> Result<T, E>,
) -> Result<T, E> {
    let end = Time::now() + most;
    loop {
        match attempt() {
            Err(error) if may_pass(fault(&error)) && Time::now() < end => {
                thread::park_timeout(RETRY_PAUSE);
            }
            ended => return ended,
        }
    }
}

/// True if the tables of a workload have transactions.
fn have_transactions(client: &mut Client, subject: &dyn Subject) -> Result<bool, Fault> {
    let tables = subject.tables();
    let names: Vec<String> = tables.iter().map(|(name, _)| format!("'{name}'")).collect();
    let text = format!(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND \
         engine = 'InnoDB' AND table_name IN ({})",
        names.join(",")
    );
    let mut count = NOTHING;
    client.read(text.as_bytes(), |row| [count] = numbers(row))?;
    Ok(usize::try_from(count) == Ok(tables.len()))
}

fn connect(plan: &Plan) -> Result<Client, Fault> {
    Client::connect(&plan.address, &plan.credentials, plan.connect_timeout)
}

/// Empties and fills the tables of a proof for a run.
fn fill_anew(subject: &dyn Subject, plan: &Plan) -> Result<(), String> {
    let tables = subject.tables().iter();
    let mut texts: Vec<String> = tables.map(|(name, _)| format!("TRUNCATE {name}")).collect();
    texts.extend(subject.fill());
    retry(SETUP_MAX, |(fault, _)| fault, || run_all(plan, &texts))
        .map_err(|(fault, text)| text + &fault.words() + advice(&fault))?;
    let asked = connect(plan).and_then(|mut client| have_transactions(&mut client, subject));
    if !asked.map_err(|fault| fault.words())? {
        let names = subject.tables().iter().map(|(name, _)| *name);
        let names: Vec<&str> = names.collect();
        return Err(format!("not all of InnoDB: {}", names.join(", ")));
    }
    Ok(())
}

impl Proof {
    /// Empties and fills the tables for a run, if it proves something; `None` for a script.
    ///
    /// # Errors
    /// A sentence in the server's words.
    pub(crate) fn begin(
        workload: Workload,
        asked: TpccArgs,
        plan: &Plan,
    ) -> Result<Option<Arc<Proof>>, String> {
        let Some(mut subject) = subject(workload) else {
            return Ok(None);
        };
        if workload == Workload::Tpcc {
            subject = Box::new(Tpcc::open(plan, asked)?);
        }
        if subject.proves() {
            fill_anew(subject.as_ref(), plan)?;
        }
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

    /// Verdict on the run, of which nothing is noted any more, if it proves something.
    pub(crate) fn check(self: &Arc<Proof>, plan: &Arc<Plan>) -> Option<Verdict> {
        let proves = self.subject.proves();
        proves.then(|| self.check_within(plan, CHECK_MAX))
    }

    fn check_within(self: &Arc<Proof>, plan: &Arc<Plan>, most: Duration) -> Verdict {
        let operations = Arc::new(self.history.take());
        let mut verdict = Verdict::of(&operations);
        if verdict.acknowledged == 0 {
            verdict.give_up("no write was acknowledged".to_owned());
            return verdict;
        }
        let (proof, plan) = (self.clone(), plan.clone());
        let judged = within(most, move || proof.judge(&plan, &operations, most));
        match judged {
            Some(Ok(findings)) => {
                if !findings.is_empty() {
                    verdict.data = Data::Wrong;
                }
                verdict.findings = findings;
            }
            Some(Err(fault)) => {
                verdict.give_up(format!("the tables could not be read: {}", fault.words()));
            }
            None => verdict.give_up(too_late("read and checked", most)),
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
        let check = || {
            let mut findings = Findings::new(operations);
            let mut client = connect(plan)?;
            if !have_transactions(&mut client, self.subject.as_ref())? {
                let text = "the tables are no longer all of InnoDB".to_owned();
                findings.add(Kind::Unasked, text, &[]);
            }
            // Last: once it has read, the connection may be lost while it computes.
            self.subject.check(&mut client, operations, &mut findings)?;
            Ok(findings.into_vec())
        };
        retry(most, |fault| fault, check)
    }
}

/// Statement that inserts the rows 0 to `count` - 1 with one value.
fn insert_rows(table: &str, count: u32, value: i64) -> String {
    let rows: Vec<String> = (0..count).map(|id| format!("({id},{value})")).collect();
    format!("INSERT INTO {table} VALUES {}", rows.join(","))
}

/// Value of a row that is missing, or has no number.
const NOTHING: i64 = i64::MIN;

/// The first values of a row.
fn columns<const N: usize>(row: &[u8]) -> [&[u8]; N] {
    let mut values = values(row);
    std::array::from_fn(|_| values.next().unwrap_or_default())
}

/// The first values of a row as numbers.
fn numbers<const N: usize>(row: &[u8]) -> [i64; N] {
    columns(row).map(number)
}

/// A number as text; [`NOTHING`] if it is none.
fn number(text: &[u8]) -> i64 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.parse().unwrap_or(NOTHING)
}

/// A key as text; one that no row has if it is none.
fn key(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A number for people.
fn told(number: i64) -> String {
    match number {
        NOTHING => "nothing".to_owned(),
        number => number.to_string(),
    }
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

    pub(crate) fn give_up(&mut self, reason: String) {
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

    /// State of the data, in a word.
    pub(crate) fn word(&self) -> &'static str {
        match self.data {
            Data::Right => "right",
            Data::Wrong => "WRONG",
            Data::Unknown => "UNKNOWN",
        }
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
        let reason = self.reason.iter().map(|reason| format!(": {reason}"));
        let reason: String = reason.collect();
        lines.push(format!("proof: the data are {}{reason}", self.word()));
        lines
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::crowd;
    use crate::options::LoadArgs;
    use crate::tests::{Answer as Reply, COLUMN, END, packets, serve};
    use clap::Parser;
    use history::Act;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }

    /// A verdict with a finding.
    pub(crate) fn wrong() -> Verdict {
        let shown = Shown {
            client: Some(4),
            from_ms: 1.0,
            to_ms: None,
            what: "write 8 at 1: no answer".to_owned(),
        };
        Verdict {
            data: Data::Wrong,
            acknowledged: 7,
            refused: 2,
            unanswered: 1,
            reads: 5,
            findings: vec![Finding {
                kind: Kind::Torn,
                count: 3,
                text: "an account is <odd>".to_owned(),
                history: vec![shown],
            }],
            ..Verdict::of(&[])
        }
    }

    #[test]
    fn errors_that_may_pass_are_tried_again() {
        let tried = |code, most: u64| {
            let tries = AtomicU64::new(0);
            let fault = Fault {
                code,
                ..Fault::ended("x")
            };
            let attempt = || match tries.fetch_add(1, Ordering::Relaxed) {
                0 => Err(fault.clone()),
                tries => Ok(tries),
            };
            retry(Duration::from_secs(most), |fault| fault, attempt).is_ok()
        };
        for code in [1040, 1205, 1213, 2013, 9507, 111] {
            assert!(tried(code, 60), "{code}");
            assert!(!tried(code, 0), "{code}");
        }
        for code in [1146, 1045, 1142] {
            assert!(!tried(code, 60), "{code}");
        }
    }

    #[test]
    fn what_is_no_number_is_nothing() {
        let row = b"\x0212\xfb\x03abc\x0599999";
        let seen: [i64; 5] = numbers(row);
        assert_eq!(seen, [12, NOTHING, NOTHING, 99_999, NOTHING]);
        assert_eq!((key(NOTHING), key(7)), (u32::MAX, 7));
        assert_eq!((told(NOTHING), told(7)), ("nothing".into(), "7".into()));
    }

    /// A workload of this name at a target, whose history is one acknowledged write.
    fn one_write(name: &str, target: &str, (key, value): (u32, u64)) -> (Plan, Arc<Proof>) {
        let line = Line::parse_from(["load", name, "run", "--target", target]);
        let proof = Proof {
            subject: subject(line.load.workload).unwrap(),
            history: History::default(),
            numbers: AtomicU64::new(0),
        };
        let place = proof.history.begin(0, Act::Write, key, value).unwrap();
        proof.history.answer(place, Answer::Done);
        (crowd::make_plan(&line.load).unwrap(), Arc::new(proof))
    }

    #[test]
    fn a_check_that_takes_too_long_knows_nothing() {
        // It accepts, and says nothing.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("mysql://a@{}/t", silent.local_addr().unwrap());
        let most = Duration::from_millis(20);
        let (plan, proof) = one_write("bank", &target, (1, 1));
        let reason = check_tables(TpccArgs::default(), plan, most).unwrap_err();
        assert_eq!(reason, "the tables could not be checked within 0 s");
        let (plan, _) = one_write("bank", &target, (1, 1));
        let verdict = proof.check_within(&Arc::new(plan), most);
        assert_eq!((verdict.data, verdict.acknowledged), (Data::Unknown, 1));
        let reason = "the tables could not be read and checked within 0 s";
        assert_eq!(verdict.reason.as_deref(), Some(reason));
    }

    /// A check of many operations takes seconds, in which its connection may be lost.
    #[test]
    fn nothing_is_asked_once_the_tables_are_read() {
        let was_read = AtomicBool::new(false);
        let server = serve(Arc::new(move |text: &str| {
            let row = |values: &[&[u8]], width: &[u8], columns: &[&[u8]]| {
                Reply::Send(packets(&[&[width], columns, values, &[END]].concat()))
            };
            match text {
                _ if was_read.load(Ordering::SeqCst) => Reply::HangUp,
                "SELECT id, v FROM proof_register" => {
                    was_read.store(true, Ordering::SeqCst);
                    let values =
                        [0, 1, 2, 3, 4, 5, 6, 7].map(|id| format!("\x01{id}\x01{}", 9 * (id / 7)));
                    let values = values.each_ref().map(String::as_bytes);
                    row(&values, b"\x02", &[COLUMN, COLUMN])
                }
                _ => row(&[b"\x011"], b"\x01", &[COLUMN]),
            }
        }));
        let target = format!("mysql://a@{server}/t");
        let (plan, proof) = one_write("register", &target, (7, 9));
        let verdict = proof.check_within(&Arc::new(plan), CHECK_MAX);
        assert_eq!((verdict.data, verdict.reason), (Data::Right, None));
    }
}
