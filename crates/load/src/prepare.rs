//! `prepare` and `cleanup`: the tables sbtest1 to sbtestN, laid out as sysbench's. For rows in bulk
//! each connection gets a table of its own, which stays empty.
//!
//! Rows go in by statements of many rows, up to 1,000 rows or half a mebibyte; the index on `k`
//! is made last, which is cheaper than keeping it up to date. Up to four tables are filled at once,
//! each over a connection of its own; the main thread shows how far they are.
//!
//! Invariants: an existing table is never touched by `prepare`: the server's error is the answer;
//! ids run from 1 without a gap, whatever the server's auto-increment settings.

use crate::blocking::{Client, advice};
use crate::crowd;
use crate::manner::Dialect;
use crate::options::LoadArgs;
use load_core::errors::Fault;
use load_core::login::Credentials;
use load_core::random::{Random, Rows};
use load_core::workload::{Workload, put_number, put_row_values};
use reactor::{Address, Time};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// Tables that are filled at once.
const TABLES_AT_ONCE: u32 = 4;
/// Rows in one statement.
const ROWS_MAX: u32 = 1_000;
/// Bytes after which a statement gets no further row.
const STATEMENT_BYTES: usize = 512 * 1024;
/// Bytes that a row's text is shorter than.
const ROW_BYTES: usize = 256;

/// Form of the tables.
struct Kind {
    /// Empty tables of two columns, for rows in bulk.
    bulk: bool,
    auto_inc: bool,
    /// True if the key is a plain index.
    secondary: bool,
    /// Column k has an index.
    index: bool,
    engine: String,
}

impl Kind {
    fn of(args: &LoadArgs) -> Kind {
        let script = &args.script;
        Kind {
            bulk: args.workload == Workload::BulkInsert,
            auto_inc: script.auto_inc,
            secondary: script.secondary,
            index: script.create_secondary,
            engine: script.mysql_storage_engine.clone(),
        }
    }

    fn create(&self, table: u32) -> String {
        if self.bulk {
            return format!(
                "CREATE TABLE sbtest{table} (id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, \
                 PRIMARY KEY (id))"
            );
        }
        let auto = if self.auto_inc { " AUTO_INCREMENT" } else { "" };
        let key = if self.secondary {
            "KEY xid"
        } else {
            "PRIMARY KEY"
        };
        format!(
            "CREATE TABLE sbtest{table} (id INTEGER NOT NULL{auto}, k INTEGER DEFAULT '0' NOT \
             NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, {key} (id)) \
             ENGINE={}",
            self.engine
        )
    }
}

/// Number of tables that the workload uses: for rows in bulk, one for each connection.
fn tables_of(args: &LoadArgs) -> u32 {
    match args.workload {
        Workload::BulkInsert => args.connections,
        _ => args.tables,
    }
}

/// State that the threads share.
struct Job {
    address: Address,
    credentials: Credentials,
    timeout: Duration,
    tables: u32,
    rows: u32,
    kind: Kind,
    /// Draws column k.
    draws: Rows,
    /// True if each step is said on standard output, as sysbench does.
    narrates: bool,
    seed: u64,
    next_table: AtomicU32,
    rows_done: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Job {
    fn new(args: &LoadArgs, stop: Arc<AtomicBool>) -> Result<Job, String> {
        let address = crowd::resolve(&args.target)?;
        let credentials = Credentials::of(&args.target, [&address].into_iter());
        Ok(Job {
            address,
            credentials: credentials.securing(args.security()?),
            timeout: Duration::from_secs(args.connect_timeout),
            tables: tables_of(args),
            rows: args.table_size,
            kind: Kind::of(args),
            draws: Rows::new(&args.rand, args.table_size),
            narrates: args.manner.dialect != Dialect::Load,
            seed: args.rand_seed.max(1),
            next_table: AtomicU32::new(1),
            rows_done: AtomicU64::new(0),
            stop,
        })
    }

    fn connect(&self) -> Result<Client, String> {
        Client::connect(&self.address, &self.credentials, self.timeout)
            .map_err(|fault| format!("could not connect to {}: {}", self.address, fault.words()))
    }

    /// The next table's number, as long as there are any and nobody wants to stop.
    fn take_table(&self) -> Option<u32> {
        let table = self.next_table.fetch_add(1, Ordering::Relaxed);
        (table <= self.tables && !self.is_stopped()).then_some(table)
    }

    fn narrate(&self, what: &str) {
        if self.narrates {
            // Whoever reads it may have gone; the tables are made all the same.
            let _ = writeln!(io::stdout(), "{what}");
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Makes and fills the tables.
///
/// # Errors
/// A sentence that says which table failed and in the server's words why.
pub(crate) fn prepare(args: &LoadArgs, stop: &Arc<AtomicBool>) -> Result<(), String> {
    let job = Job::new(args, stop.clone())?;
    let began = Time::now();
    let threads = job.tables.min(TABLES_AT_ONCE);
    let (sender, results) = sync_channel(threads as usize);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (job, sender) = (&job, sender.clone());
            scope.spawn(move || {
                // The receiver waits for every thread; it cannot be gone.
                let _ = sender.send(fill_tables(job));
            });
        }
        drop(sender);
        let mut first_failure = None;
        loop {
            match results.recv_timeout(Duration::from_secs(1)) {
                Ok(Ok(())) => {}
                Ok(Err(reason)) => {
                    // One table failed: the others end after their present statement.
                    job.next_table.store(job.tables + 1, Ordering::Relaxed);
                    first_failure.get_or_insert(reason);
                }
                Err(RecvTimeoutError::Timeout) => say_progress(&job, began),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        first_failure.map_or(Ok(()), Err)
    })?;
    say_progress(&job, began);
    if job.is_stopped() {
        return Err("stopped before all tables were filled; run cleanup before prepare".into());
    }
    Ok(())
}

fn say_progress(job: &Job, began: Time) {
    let done = job.rows_done.load(Ordering::Relaxed);
    let seconds = Time::now().since(began).as_secs_f64().max(1e-3);
    aside!(
        "load: prepared {done} of {} rows in {} tables, {seconds:.1} s, {:.0} rows/s",
        u64::from(if job.kind.bulk { 0 } else { job.rows }) * u64::from(job.tables),
        job.tables,
        done as f64 / seconds
    );
}

fn fill_tables(job: &Job) -> Result<(), String> {
    let mut client = job.connect()?;
    while let Some(table) = job.take_table() {
        fill_table(job, &mut client, table)
            .map_err(|fault| format!("table sbtest{table}: {}", fault.words() + advice(&fault)))?;
    }
    Ok(())
}

fn fill_table(job: &Job, client: &mut Client, table: u32) -> Result<(), Fault> {
    job.narrate(&format!("Creating table 'sbtest{table}'..."));
    client.query(job.kind.create(table).as_bytes())?;
    if job.kind.bulk {
        return Ok(());
    }
    job.narrate(&format!(
        "Inserting {} records into 'sbtest{table}'",
        job.rows
    ));
    let mut random = Random::new(job.seed, table.into());
    let mut statement = Vec::with_capacity(STATEMENT_BYTES + ROW_BYTES);
    let mut id = 1;
    while id <= job.rows && !job.is_stopped() {
        let next = put_insert(&mut statement, table, id, &job.draws, &mut random);
        client.query(&statement)?;
        job.rows_done
            .fetch_add(u64::from(next - id), Ordering::Relaxed);
        id = next;
    }
    if job.kind.index {
        job.narrate(&format!("Creating a secondary index on 'sbtest{table}'..."));
        client.query(format!("CREATE INDEX k_{table} ON sbtest{table}(k)").as_bytes())?;
    }
    Ok(())
}

/// Replaces `statement` by an insert of rows from `id` on; returns the id after its last.
fn put_insert(
    statement: &mut Vec<u8>,
    table: u32,
    id: u32,
    rows: &Rows,
    random: &mut Random,
) -> u32 {
    statement.clear();
    statement.extend_from_slice(b"INSERT INTO sbtest");
    put_number(statement, table);
    statement.extend_from_slice(b" (id,k,c,pad) VALUES ");
    let end = rows.count().min(id.saturating_add(ROWS_MAX - 1));
    let mut next = id;
    while next <= end && statement.len() < STATEMENT_BYTES {
        if next > id {
            statement.push(b',');
        }
        let k = rows.draw(random);
        put_row_values(statement, next, k, random);
        next += 1;
    }
    next
}

/// Makes the server read the tables, as sysbench's command of that name does: each whole by its
/// key, and by its second index.
///
/// # Errors
/// A sentence that says which table failed and in the server's words why.
pub(crate) fn prewarm(args: &LoadArgs) -> Result<(), String> {
    let job = Job::new(args, Arc::default())?;
    let mut client = job.connect()?;
    for table in 1..=job.tables {
        job.narrate(&format!("Prewarming table sbtest{table}"));
        let rows = job.rows;
        for statement in [
            "SET tmp_table_size=2*1024*1024*1024".to_owned(),
            "SET max_heap_table_size=2*1024*1024*1024".to_owned(),
            format!("ANALYZE TABLE sbtest{table}"),
            format!(
                "SELECT AVG(id) FROM (SELECT * FROM sbtest{table} FORCE KEY (PRIMARY) \
                 LIMIT {rows}) t"
            ),
            format!(
                "SELECT COUNT(*) FROM (SELECT * FROM sbtest{table} WHERE k LIKE '%0%' \
                 LIMIT {rows}) t"
            ),
        ] {
            client
                .query(statement.as_bytes())
                .map_err(|fault| format!("table sbtest{table}: {}", fault.words()))?;
        }
    }
    aside!("load: read {} tables", job.tables);
    Ok(())
}

/// Drops the tables; those that do not exist are passed over.
///
/// # Errors
/// A sentence that says which table failed and in the server's words why.
pub(crate) fn cleanup(args: &LoadArgs) -> Result<(), String> {
    let job = Job::new(args, Arc::default())?;
    let mut client = job.connect()?;
    for table in 1..=job.tables {
        job.narrate(&format!("Dropping table 'sbtest{table}'..."));
        let drop = format!("DROP TABLE IF EXISTS sbtest{table}");
        client
            .query(drop.as_bytes())
            .map_err(|fault| format!("table sbtest{table}: {}", fault.words()))?;
    }
    aside!("load: dropped {} tables", job.tables);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insert_has_a_thousand_rows_at_most_and_all_get_in() {
        let mut random = Random::new(1, 1);
        let rows = Rows::uniform(2_500);
        let (mut statement, mut id, mut sizes) = (Vec::new(), 1, Vec::new());
        while id <= 2_500 {
            let next = put_insert(&mut statement, 7, id, &rows, &mut random);
            let text = std::str::from_utf8(&statement).unwrap();
            assert!(text.starts_with(&format!("INSERT INTO sbtest7 (id,k,c,pad) VALUES ({id},")));
            assert_eq!(text.matches("'),(").count() + 1, (next - id) as usize);
            sizes.push(next - id);
            id = next;
        }
        assert_eq!(sizes, [1_000, 1_000, 500]);
    }
}
