//! The threads that write and read the spool's files (`spool_jobs.rs`).
//!
//! One writes, one reads. They end with the process, and the files without a name with them: what
//! is under way then is of nobody any more.
//!
//! Who reads slowly must not take from others what it costs to store its reply: the copy into the
//! page cache, and as much again on the server and in the group for the bytes that come next. So
//! the writer rests for [`REST`] times as long as a write took. What it does not take stays with
//! the server, as the groups' share of its line is bounded. Where processors or the disk are busy,
//! writes take longer, and so do the rests.

use crate::group::shared::{Order, Shared};
use crate::group::tokens::ClientId;
use crate::limits::spool_jobs::{SpoolDone, SpoolFiles};
use reactor::{Scratch, Sender, Time};
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// Rest of the writer after writing, in multiples of the time that it took.
const REST: u32 = 1;
/// Longest rest.
const REST_MAX: Duration = Duration::from_millis(20);

/// Loop of a thread.
type Work = fn(&Shared, &SpoolFiles<File>, &[Sender<Order>]);

impl Shared {
    /// Writes to the spool that wait.
    #[must_use]
    pub fn spool_writes_waiting(&self) -> usize {
        self.jobs.spool.writes_len()
    }

    /// Reads of the spool that wait.
    #[must_use]
    pub fn spool_reads_waiting(&self) -> usize {
        self.jobs.spool.reads_len()
    }

    /// Runs the next writes on this thread, as a simulation's writer. The outcome comes with the
    /// number of their group.
    #[must_use]
    pub fn write_spool<F: Scratch>(&self, files: &SpoolFiles<F>) -> Option<(usize, Order)> {
        let (group, done) = files.write(self.jobs.spool.next_writes()?);
        Some((group, Order::Spool(done)))
    }

    /// Runs the next read on this thread, as a simulation's reader.
    #[must_use]
    pub fn read_spool<F: Scratch>(&self, files: &SpoolFiles<F>) -> Option<(usize, Order)> {
        let read = self.jobs.spool.next_read()?;
        Some(message(files.read(&read)))
    }
}

/// Starts the threads, if there is a spool.
///
/// # Errors
/// A sentence when a thread cannot be started.
pub(crate) fn start_spool(
    shared: &Arc<Shared>,
    groups: &Arc<[Sender<Order>]>,
) -> Result<(), String> {
    if shared.settings().spool_bytes_max == 0 {
        return Ok(());
    }
    let folder = shared.settings().spool_folder.clone();
    let files = Arc::new(SpoolFiles::new(move || reactor::scratch::open(&folder)));
    let threads: [(&str, Work); 2] = [("spool-write", write), ("spool-read", read)];
    for (name, work) in threads {
        let (shared, groups, files) = (shared.clone(), groups.clone(), files.clone());
        std::thread::Builder::new()
            .name(name.into())
            .spawn(move || work(&shared, &files, &groups))
            .map_err(|error| format!("cannot start a thread for the spool: {error}"))?;
    }
    Ok(())
}

fn write(shared: &Shared, files: &SpoolFiles<File>, groups: &[Sender<Order>]) {
    loop {
        let batch = shared.jobs.spool.wait_for_writes();
        let began = Time::now();
        let (group, done) = files.write(batch);
        let took = Time::now().since(began);
        if !done.is_empty() {
            groups[group].send(Order::Spool(done));
        }
        reactor::pause((took * REST).min(REST_MAX));
    }
}

fn read(shared: &Shared, files: &SpoolFiles<File>, groups: &[Sender<Order>]) {
    loop {
        if let Some(read) = shared.jobs.spool.wait_for_read() {
            let (group, order) = message(files.read(&read));
            groups[group].send(order);
        }
    }
}

/// A message to the group of a client whose block was read.
fn message((group, client, done): (usize, ClientId, SpoolDone)) -> (usize, Order) {
    (group, Order::Spool(vec![(client, done)]))
}
