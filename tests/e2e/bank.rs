//! A bank under faults: clients that transfer through a pool, and the check of their ledger.
//!
//! Each transfer has a tag and writes it in its own transaction. A client notes what it was told:
//! done, not done, or unknown. In the end the server must have each tag that was reported done
//! once, none that was reported not done, and the sum of all accounts as it was.

use crate::world::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

pub(crate) const CLIENTS: usize = 16;
const ACCOUNTS: usize = 50;
/// Error of a statement that may or may not have run.
pub(crate) const MAYBE_RAN: u16 = 1158;
/// Error of a node of Galera that leaves its cluster during a COMMIT, which the others may have
/// applied (ER_ERROR_DURING_COMMIT).
const ERROR_DURING_COMMIT: u16 = 1180;
/// Longest wait for progress.
const STUCK_AFTER: Duration = Duration::from_secs(180);

pub(crate) fn bank() -> Account {
    Account::new("bank", "bank").schema("bank")
}

/// Makes the bank, on a server that takes writes.
pub(crate) fn found_bank(admin: &mut Client) {
    for sql in [
        "CREATE DATABASE bank",
        "CREATE TABLE bank.ledger (id INT AUTO_INCREMENT PRIMARY KEY, tag VARCHAR(40)) \
         ENGINE=InnoDB",
        "CREATE TABLE bank.probe (id INT AUTO_INCREMENT PRIMARY KEY)",
        "CREATE TABLE bank.account (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
        "CREATE USER bank@'%' IDENTIFIED BY 'bank'",
        "GRANT ALL ON bank.* TO bank@'%'",
        "CREATE USER probe@'%' IDENTIFIED BY 'probe'",
        "GRANT INSERT ON bank.probe TO probe@'%'",
    ] {
        admin.must(sql);
    }
    let rows: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id},100)")).collect();
    let joined = rows.join(",");
    admin.must(&format!("INSERT INTO bank.account VALUES {joined}"));
}

/// Answers to one client about its transfers, by tag.
#[derive(Default)]
pub(crate) struct Ledger {
    done: Vec<String>,
    /// Each with the error, and true if that answered its COMMIT.
    not_done: Vec<(String, u16, bool)>,
    unknown: Vec<String>,
    pub(crate) errors: Vec<Failure>,
    /// Connections that were closed.
    pub(crate) cut: usize,
}

/// Progress of all clients.
#[derive(Default)]
struct Progress {
    done: usize,
    /// The moment that was marked, and when a transfer was done that began behind it.
    marked: Option<Instant>,
    first_after: Option<Instant>,
}

/// Course of a test, as its clients see it.
#[derive(Default)]
pub(crate) struct Course {
    progress: Mutex<Progress>,
    changed: Condvar,
    /// Clients end behind a few more.
    is_over: AtomicBool,
}

impl Course {
    fn count(&self, begun: Instant) {
        let mut progress = self.progress.lock().unwrap();
        progress.done += 1;
        if progress.marked.is_some_and(|marked| marked <= begun) {
            progress.first_after.get_or_insert_with(Instant::now);
        }
        self.changed.notify_all();
    }

    /// Marks this moment: the first transfer that begins behind it is noted.
    pub(crate) fn mark(&self) {
        let mut progress = self.progress.lock().unwrap();
        (progress.marked, progress.first_after) = (Some(Instant::now()), None);
    }

    /// Waits until so much more is done.
    pub(crate) fn wait_for(&self, more: usize) {
        let until = self.progress.lock().unwrap().done + more;
        drop(self.wait(|progress| progress.done >= until));
    }

    /// Waits for the first transfer behind the mark, and gives when it was done.
    pub(crate) fn first_after(&self) -> Instant {
        let progress = self.wait(|progress| progress.first_after.is_some());
        progress.first_after.unwrap()
    }

    fn wait(&self, wanted: impl Fn(&Progress) -> bool) -> std::sync::MutexGuard<'_, Progress> {
        let progress = self.progress.lock().unwrap();
        let (progress, timeout) = (self.changed)
            .wait_timeout_while(progress, STUCK_AFTER, |it| !wanted(it))
            .unwrap();
        assert!(!timeout.timed_out(), "the bank makes no progress");
        progress
    }
}

/// One transfer; the error, and true if it answered its COMMIT.
fn transfer(client: &mut Client, number: usize, tag: &str) -> Result<(), Option<(Failure, bool)>> {
    let (from, to) = (number % ACCOUNTS, (number * 7 + 3) % ACCOUNTS);
    let statements = [
        "BEGIN".to_owned(),
        format!("UPDATE account SET v = v - 1 WHERE id = {from}"),
        format!("UPDATE account SET v = v + 1 WHERE id = {to}"),
        format!("INSERT INTO ledger (tag) VALUES ('{tag}')"),
        "COMMIT".to_owned(),
    ];
    for sql in &statements {
        let cut = |error| {
            eprintln!("cut in {sql}: {error}");
            None
        };
        if let Some(Outcome::Failed(failure)) = client.query(sql).map_err(cut)?.pop() {
            return Err(Some((failure, sql == "COMMIT")));
        }
    }
    Ok(())
}

fn transfer_on(address: &Address, who: usize, course: &Course) -> Ledger {
    let mut ledger = Ledger::default();
    let mut client = login(address, &bank());
    let mut after = 0;
    for number in 0.. {
        if after > 10 {
            return ledger;
        }
        after += usize::from(course.is_over.load(Ordering::SeqCst));
        let (tag, begun) = (format!("{who}.{number}"), Instant::now());
        match transfer(&mut client, who * 31 + number, &tag) {
            Ok(()) => {
                ledger.done.push(tag);
                course.count(begun);
            }
            Err(Some((failure, is_commit))) => {
                match is_commit && matches!(failure.code, MAYBE_RAN | ERROR_DURING_COMMIT) {
                    true => ledger.unknown.push(tag),
                    false => ledger.not_done.push((tag, failure.code, is_commit)),
                }
                ledger.errors.push(failure);
                if client.query("ROLLBACK").is_err() {
                    ledger.cut += 1;
                    client = login(address, &bank());
                }
            }
            Err(None) => {
                ledger.unknown.push(tag);
                ledger.cut += 1;
                client = login(address, &bank());
            }
        }
    }
    ledger
}

/// Runs transfers through a pool while `act` does what is to be survived, and a few more behind it.
pub(crate) fn under_load<T>(pool: &Address, act: impl FnOnce(&Course) -> T) -> (T, Vec<Ledger>) {
    let course = Course::default();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|who| {
                let course = &course;
                scope.spawn(move || transfer_on(pool, who, course))
            })
            .collect();
        course.wait_for(300);
        let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| act(&course)));
        course.is_over.store(true, Ordering::SeqCst);
        let acted = acted.unwrap_or_else(|failed| std::panic::resume_unwind(failed));
        let ledgers = clients.into_iter().map(|client| client.join().unwrap());
        (acted, ledgers.collect())
    })
}

/// Checks what the server has against what clients were told.
pub(crate) fn check(admin: &mut Client, ledgers: &[Ledger]) {
    let mut present: HashMap<String, usize> = HashMap::new();
    for row in admin.rows("SELECT tag FROM bank.ledger").texts() {
        *present.entry(row[0].clone()).or_default() += 1;
    }
    let doubled: Vec<_> = present.iter().filter(|(_, count)| **count != 1).collect();
    let lost = ledgers.iter().flat_map(|it| &it.done);
    let lost: Vec<_> = lost.filter(|tag| !present.contains_key(*tag)).collect();
    let wrong = ledgers.iter().flat_map(|it| &it.not_done);
    let wrong: Vec<_> = wrong
        .filter(|(tag, ..)| present.contains_key(tag))
        .collect();
    assert!(
        doubled.is_empty() && lost.is_empty() && wrong.is_empty(),
        "doubled {doubled:?}, reported done and lost {lost:?}, reported not done and done {wrong:?}"
    );
    let sum = admin.value("SELECT SUM(v) FROM bank.account");
    assert_eq!(sum, (ACCOUNTS * 100).to_string());
}

/// Counts of what clients were told, in words.
pub(crate) fn told(ledgers: &[Ledger]) -> String {
    let count = |of: fn(&Ledger) -> usize| ledgers.iter().map(of).sum::<usize>();
    let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
    for failure in ledgers.iter().flat_map(|ledger| &ledger.errors) {
        *codes.entry(failure.code).or_default() += 1;
    }
    format!(
        "{} done, {} not done, {} unknown, {} disconnected; errors {codes:?}",
        count(|it| it.done.len()),
        count(|it| it.not_done.len()),
        count(|it| it.unknown.len()),
        count(|it| it.cut)
    )
}
