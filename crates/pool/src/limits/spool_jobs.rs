//! Work on the spool's files, off the groups' threads.
//!
//! The problem: a write goes to the page cache, but the kernel makes the writer wait when the disk
//! is behind; a read waits for the disk where the cache has let go of the bytes. A group that
//! waited would serve nobody meanwhile. The mechanism: groups put writes in one line and reads in
//! another, a thread for each line does them (`spool_threads.rs`), and the group gets a message.
//! So a reader is not behind the writer.
//!
//! Writes are done in the order in which they were put in line, those of all groups in one: a block
//! that was given back and taken by another client ends with the bytes of the later one, and a cut
//! (of a file in which nobody has a block) comes before what is written there next. A read may come
//! at any time between them: a group asks only for blocks that it knows to be written, and gives a
//! block back only when it has been read, or its client has left, to whom the bytes do not come.
//!
//! Invariants: the line of writes has at most [`QUEUED_MAX`] bytes of each group, but for one read
//! of a backend; the line of reads has one of each client at most.
//!
//! [`QUEUED_MAX`]: crate::limits::spool::QUEUED_MAX

use crate::group::tokens::ClientId;
use reactor::Scratch;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Writes of one group that are answered by one message.
const BATCH_MAX: usize = 4;

/// Something to be done to a group's file.
#[derive(Debug)]
pub(crate) enum SpoolWrite {
    /// A block of a client's reply.
    Block {
        group: usize,
        client: ClientId,
        at: u64,
        bytes: Vec<u8>,
    },
    /// Return of the disk space, nobody having a block.
    Cut { group: usize },
}

impl SpoolWrite {
    fn group(&self) -> usize {
        match self {
            SpoolWrite::Block { group, .. } | SpoolWrite::Cut { group } => *group,
        }
    }
}

/// A block of a client's reply to be read.
#[derive(Debug)]
pub(crate) struct SpoolRead {
    pub(crate) group: usize,
    pub(crate) client: ClientId,
    pub(crate) at: u64,
    pub(crate) len: usize,
}

/// Result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpoolDone {
    /// Written block.
    Stored,
    /// A block could not be written; why.
    Failed(String),
    /// The bytes of a block.
    Fetched(Vec<u8>),
    /// A block could not be read; why.
    Lost(String),
}

/// A line of work that one thread waits for.
#[derive(Debug)]
struct Line<T> {
    queue: Mutex<VecDeque<T>>,
    added: Condvar,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Line {
            queue: Mutex::default(),
            added: Condvar::new(),
        }
    }
}

impl<T> Line<T> {
    fn queue(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: T) {
        self.queue().push_back(job);
        self.added.notify_one();
    }

    /// The queue, once something is in it.
    fn waited_for(&self) -> MutexGuard<'_, VecDeque<T>> {
        let queue = self.queue();
        let filled = self.added.wait_while(queue, |queue| queue.is_empty());
        filled.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests of the groups to the spool's threads.
#[derive(Debug, Default)]
pub(crate) struct SpoolJobs {
    writes: Line<SpoolWrite>,
    reads: Line<SpoolRead>,
}

impl SpoolJobs {
    /// Puts a write in line.
    pub(crate) fn write(&self, write: SpoolWrite) {
        self.writes.push(write);
    }

    /// Puts a read in line.
    pub(crate) fn read(&self, read: SpoolRead) {
        self.reads.push(read);
    }

    /// Writes that wait.
    pub(crate) fn writes_len(&self) -> usize {
        self.writes.queue().len()
    }

    /// Reads that wait.
    pub(crate) fn reads_len(&self) -> usize {
        self.reads.queue().len()
    }

    /// The next writes, all of one group, if there are any.
    pub(crate) fn next_writes(&self) -> Option<Vec<SpoolWrite>> {
        let batch = batch_of(&mut self.writes.queue());
        (!batch.is_empty()).then_some(batch)
    }

    /// Waits for writes.
    pub(crate) fn wait_for_writes(&self) -> Vec<SpoolWrite> {
        batch_of(&mut self.writes.waited_for())
    }

    /// The next read, if there is one.
    pub(crate) fn next_read(&self) -> Option<SpoolRead> {
        self.reads.queue().pop_front()
    }

    /// Waits for a read.
    pub(crate) fn wait_for_read(&self) -> Option<SpoolRead> {
        self.reads.waited_for().pop_front()
    }
}

fn batch_of(queue: &mut VecDeque<SpoolWrite>) -> Vec<SpoolWrite> {
    let group = queue.front().map(SpoolWrite::group);
    let same = (queue.iter().take(BATCH_MAX)).take_while(|write| Some(write.group()) == group);
    let len = same.count();
    queue.drain(..len).collect()
}

/// The groups' scratch files, each made when it is first written to.
pub struct SpoolFiles<F> {
    files: Mutex<BTreeMap<usize, Arc<F>>>,
    make: Box<dyn Fn() -> io::Result<F> + Send + Sync>,
}

impl<F: Scratch> SpoolFiles<F> {
    /// No file yet; `make` makes one.
    pub fn new(make: impl Fn() -> io::Result<F> + Send + Sync + 'static) -> SpoolFiles<F> {
        SpoolFiles {
            files: Mutex::default(),
            make: Box::new(make),
        }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<F>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, group: usize) -> Option<Arc<F>> {
        self.files().get(&group).cloned()
    }

    fn made(&self, group: usize) -> io::Result<Arc<F>> {
        if let Some(file) = self.file(group) {
            return Ok(file);
        }
        let file = Arc::new((self.make)()?);
        self.files().insert(group, file.clone());
        Ok(file)
    }

    /// Runs writes of one group; returns the group, with the outcome for each client.
    pub(crate) fn write(&self, batch: Vec<SpoolWrite>) -> (usize, Vec<(ClientId, SpoolDone)>) {
        let group = batch.first().map_or(0, SpoolWrite::group);
        let mut done = Vec::with_capacity(batch.len());
        for write in batch {
            match write {
                SpoolWrite::Block {
                    client, at, bytes, ..
                } => {
                    let written = self.made(group).and_then(|file| file.write_at(&bytes, at));
                    let end = written
                        .map_or_else(|e| SpoolDone::Failed(e.to_string()), |()| SpoolDone::Stored);
                    done.push((client, end));
                }
                SpoolWrite::Cut { .. } => {
                    if let Some(file) = self.file(group) {
                        // What cannot be given back is written over.
                        let _ = file.set_len(0);
                    }
                }
            }
        }
        (group, done)
    }

    /// Runs a read; returns its group, its client and the outcome.
    pub(crate) fn read(&self, read: &SpoolRead) -> (usize, ClientId, SpoolDone) {
        let mut bytes = vec![0; read.len];
        let file = self.file(read.group).ok_or(io::ErrorKind::NotFound.into());
        let taken = file.and_then(|file| file.read_at(&mut bytes, read.at));
        let end = taken.map_or_else(
            |e| SpoolDone::Lost(e.to_string()),
            |()| SpoolDone::Fetched(bytes),
        );
        (read.group, read.client, end)
    }
}
