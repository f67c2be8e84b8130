//! The spool: replies that were taken off their backends and wait for their clients on disk.
//!
//! The problem: a client that does not read its reply keeps a backend, or the pool's memory. The
//! mechanism: each group has one scratch file, in blocks. What a reply that is taken off ([`Tail`])
//! still has to say is in three parts, in this order: what the client is sent now, in its output;
//! whole blocks in the file; and what does not fill a block yet, in memory. A block is written when
//! it is full, read again when the client has taken everything before it, and given back then. The
//! file is made when it is first needed, and cut to nothing when nobody has a block any more. When
//! and for whom, `slow_readers.rs` decides.
//!
//! A group never waits for the file. Threads write and read it (`spool_jobs.rs`) and tell the
//! group when they have. What a group has given to the writer and is not told of yet is at most
//! [`QUEUED_MAX`], but for one read of a backend; above that, backends whose replies go to the
//! spool are not read. What it has asked of the reader is one block of each client; while that is
//! [`READS_MAX`] blocks, those of clients that have left included, no further reply goes there.
//!
//! Invariants: blocks in use, over all groups, are at most `spool_bytes_max`, but for what one read
//! of each group may add; a block belongs to one reply, or is free; a block is read only after the
//! writer has said that it is written; a reply has one block at most on its way back.

use crate::group::tokens::ClientId;
use crate::limits::spool_jobs::{SpoolJobs, SpoolRead, SpoolWrite};
use reactor::Time;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Bytes of one block.
pub(crate) const BLOCK: usize = 64 * 1024;
/// Bytes that a group may have given to the writer.
pub(crate) const QUEUED_MAX: usize = 1 << 20;
/// Blocks that a group has asked for and not got, above which no further reply goes to the spool.
const READS_MAX: usize = 4096;
/// Time for which a lack of room counts: it is told once in each sweep, or more often.
const LACK_LASTS: Duration = Duration::from_secs(2);
/// A file that failed is not tried again before this time is over.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Use of `spool_bytes_max` by all groups.
#[derive(Debug)]
pub(crate) struct SpoolUse {
    max: usize,
    used: AtomicUsize,
    /// Moment at which it last had no room for a reply.
    lacked_at: AtomicU64,
    /// Moments since which the slowest reader of each group has taken nothing.
    longest: Box<[AtomicU64]>,
}

impl SpoolUse {
    /// Spool of `max` bytes, none used, shared by this many groups.
    pub(crate) fn new(max: usize, groups: usize) -> SpoolUse {
        SpoolUse {
            max,
            used: AtomicUsize::new(0),
            lacked_at: AtomicU64::new(0),
            longest: (0..groups).map(|_| AtomicU64::new(Time::NEVER.0)).collect(),
        }
    }

    /// Notes that there is no room for a reply that should be taken off its backend.
    pub(crate) fn note_lack(&self, now: Time) {
        self.lacked_at.store(now.0, Relaxed);
    }

    /// True if there was no room a moment ago for a block of this size.
    pub(crate) fn lacks(&self, block: usize, now: Time) -> bool {
        let at = Time(self.lacked_at.load(Relaxed));
        at != Time(0) && now.since(at) < LACK_LASTS && !self.has_room(block)
    }

    /// Notes since when the slowest reader of a group has taken nothing.
    pub(crate) fn note_longest(&self, group: usize, since: Time) {
        self.longest[group].store(since.0, Relaxed);
    }

    /// True if no other group has a reader that has taken nothing for longer.
    pub(crate) fn is_longest(&self, group: usize, since: Time) -> bool {
        let mut others = self.longest.iter().enumerate();
        others.all(|(other, longest)| other == group || longest.load(Relaxed) >= since.0)
    }

    /// True if another block may be used.
    fn has_room(&self, block: usize) -> bool {
        self.used.load(Relaxed) + block <= self.max
    }
}

/// Parts of the spool that all groups share.
pub(crate) type OfAll<'a> = (&'a SpoolUse, &'a SpoolJobs);

/// State of a block of a reply that is read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fetch {
    #[default]
    No,
    Asked,
}

/// The part of a reply behind what its client is sent now.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Those in the file.
    blocks: VecDeque<u32>,
    /// Number of the last blocks that are not known to be written.
    unwritten: usize,
    fetch: Fetch,
    /// Bytes behind them, less than a block.
    filling: Vec<u8>,
    block: usize,
}

impl Tail {
    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len() * self.block + self.filling.len()
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.blocks.capacity() * size_of::<u32>() + self.filling.capacity()
    }

    /// Counts a written block of its.
    pub(crate) fn stored(&mut self) {
        self.unwritten = self.unwritten.saturating_sub(1);
    }

    /// Bytes in memory, if nothing stands before them.
    pub(crate) fn take_last(&mut self) -> Option<Vec<u8>> {
        let is_next = self.blocks.is_empty() && !self.filling.is_empty();
        is_next.then(|| std::mem::take(&mut self.filling))
    }
}

/// One group's file and its blocks.
#[derive(Debug)]
pub(crate) struct Spool {
    group: usize,
    /// Bytes of a block.
    block: usize,
    /// Moment at which the file could last not be made, written or read.
    failed_at: Option<Time>,
    /// Blocks of the file that nobody has.
    free: Vec<u32>,
    /// Blocks that the file has.
    blocks: u32,
    /// Blocks that the writer has and has said nothing of.
    queued: usize,
    /// Blocks that were asked for, also by clients that have left since.
    asked: usize,
}

impl Spool {
    /// Spool of group number `group`, in blocks of so many bytes.
    pub(crate) fn new(group: usize, block: usize) -> Spool {
        Spool {
            group,
            block,
            failed_at: None,
            free: Vec::new(),
            blocks: 0,
            queued: 0,
            asked: 0,
        }
    }

    /// Bytes of blocks that replies have.
    pub(crate) fn used(&self) -> usize {
        (self.blocks as usize - self.free.len()) * self.block
    }

    /// Bytes of memory that the list of free blocks takes, and what the writer has.
    pub(crate) fn memory(&self) -> usize {
        self.free.capacity() * size_of::<u32>() + self.queued * self.block
    }

    /// True if the spool takes another reply.
    pub(crate) fn has_room(&self, all: &SpoolUse, now: Time) -> bool {
        let rests = self.failed_at.is_some_and(|at| now.since(at) < AGAIN_AFTER);
        !rests && self.asked < READS_MAX && all.has_room(self.block)
    }

    /// True if it lacks room at this moment, and did so a moment ago.
    pub(crate) fn lacks(&self, all: &SpoolUse, now: Time) -> bool {
        all.lacks(self.block, now)
    }

    /// True if more may be appended now: there is room, and the writer is not behind.
    pub(crate) fn takes_more(&self, all: &SpoolUse, now: Time) -> bool {
        self.queued * self.block < QUEUED_MAX && self.has_room(all, now)
    }

    /// Appends bytes to the reply of a client.
    pub(crate) fn append(
        &mut self,
        tail: &mut Tail,
        mut bytes: &[u8],
        client: ClientId,
        (all, jobs): OfAll<'_>,
    ) {
        tail.block = self.block;
        while !bytes.is_empty() {
            let room = self.block - tail.filling.len();
            let (piece, rest) = bytes.split_at(bytes.len().min(room));
            tail.filling.extend_from_slice(piece);
            bytes = rest;
            if tail.filling.len() < self.block {
                return;
            }
            let block = self.take(all);
            tail.blocks.push_back(block);
            tail.unwritten += 1;
            self.queued += 1;
            jobs.write(SpoolWrite::Block {
                group: self.group,
                client,
                at: self.place(block),
                bytes: std::mem::take(&mut tail.filling),
            });
        }
    }

    /// Counts a block that the writer has dealt with.
    pub(crate) fn has_dealt(&mut self) {
        self.queued -= 1;
    }

    /// Counts a block that was asked for and has been read, or cannot be.
    pub(crate) fn has_read(&mut self) {
        self.asked -= 1;
    }

    /// Marks the spool's file as failed at this moment.
    pub(crate) fn failed(&mut self, now: Time) {
        self.failed_at = Some(now);
    }

    /// Asks for the first block of a client's reply, if it is written and nobody has asked.
    pub(crate) fn fetch(&mut self, tail: &mut Tail, client: ClientId, jobs: &SpoolJobs) {
        if tail.fetch == Fetch::Asked || tail.blocks.len() <= tail.unwritten {
            return;
        }
        if let Some(first) = tail.blocks.front() {
            tail.fetch = Fetch::Asked;
            self.asked += 1;
            jobs.read(SpoolRead {
                group: self.group,
                client,
                at: self.place(*first),
                len: self.block,
            });
        }
    }

    /// Releases the first block of a reply after it has been read.
    pub(crate) fn fetched(&mut self, tail: &mut Tail, of_all: OfAll<'_>) {
        tail.fetch = Fetch::No;
        if let Some(block) = tail.blocks.pop_front() {
            self.give(block, of_all);
        }
    }

    /// Gives back what a reply has, which is not sent any more.
    pub(crate) fn drop_tail(&mut self, tail: Tail, of_all: OfAll<'_>) {
        for block in tail.blocks {
            self.give(block, of_all);
        }
    }

    fn place(&self, block: u32) -> u64 {
        u64::from(block) * self.block as u64
    }

    fn take(&mut self, all: &SpoolUse) -> u32 {
        all.used.fetch_add(self.block, Relaxed);
        self.free.pop().unwrap_or_else(|| {
            self.blocks += 1;
            self.blocks - 1
        })
    }

    fn give(&mut self, block: u32, (all, jobs): OfAll<'_>) {
        all.used.fetch_sub(self.block, Relaxed);
        self.free.push(block);
        if self.free.len() == self.blocks as usize {
            (self.free, self.blocks) = (Vec::new(), 0);
            jobs.write(SpoolWrite::Cut { group: self.group });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::spool_jobs::{SpoolDone, SpoolFiles};
    use reactor::Scratch;
    use std::io;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex};

    const SMALL: usize = 1000;

    /// A disk of so many bytes, what is on it, and whether it can no longer be read.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<Vec<u8>>>, usize, Arc<AtomicBool>);

    /// Error of a disk that fails.
    fn broken() -> io::Error {
        io::Error::other("Input/output error")
    }

    impl Scratch for Disk {
        fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
            let mut disk = self.0.lock().unwrap();
            let at = usize::try_from(at).unwrap();
            if at + bytes.len() > self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let len = disk.len().max(at + bytes.len());
            disk.resize(len, 0);
            disk[at..at + bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
        fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
            if self.2.load(Relaxed) {
                return Err(broken());
            }
            let at = usize::try_from(at).unwrap();
            bytes.copy_from_slice(&self.0.lock().unwrap()[at..at + bytes.len()]);
            Ok(())
        }
        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0
                .lock()
                .unwrap()
                .truncate(usize::try_from(len).unwrap());
            Ok(())
        }
    }

    /// A group's spool with two clients, and the threads that it is told of by hand.
    struct Bench {
        all: SpoolUse,
        jobs: SpoolJobs,
        spool: Spool,
        files: SpoolFiles<Disk>,
        disk: Disk,
        tails: [Tail; 2],
    }

    fn client(which: usize) -> ClientId {
        ClientId::from_parts(u32::try_from(which).unwrap(), 0)
    }

    impl Bench {
        fn new(max: usize, disk_len: usize) -> Bench {
            let disk = Disk(Arc::default(), disk_len, Arc::default());
            let made = disk.clone();
            Bench {
                all: SpoolUse::new(max, 1),
                jobs: SpoolJobs::default(),
                spool: Spool::new(0, SMALL),
                files: SpoolFiles::new(move || Ok(made.clone())),
                disk,
                tails: Default::default(),
            }
        }

        /// Runs one job of the reader.
        fn read(&mut self) -> Option<SpoolDone> {
            let read = self.jobs.next_read()?;
            self.spool.has_read();
            Some(self.files.read(&read).2)
        }

        fn append(&mut self, which: usize, bytes: &[u8]) {
            let of_all = (&self.all, &self.jobs);
            let tail = &mut self.tails[which];
            self.spool.append(tail, bytes, client(which), of_all);
        }

        /// Runs the writer's jobs; returns the words of those that failed.
        fn write(&mut self) -> Vec<String> {
            let mut failed = Vec::new();
            while let Some(batch) = self.jobs.next_writes() {
                for (key, done) in self.files.write(batch).1 {
                    self.spool.has_dealt();
                    match done {
                        SpoolDone::Failed(why) => failed.push(why),
                        _ => self.tails[key.parts().0 as usize].stored(),
                    }
                }
            }
            failed
        }

        /// Next bytes of a client's reply, if they can be had.
        fn next(&mut self, which: usize) -> Vec<u8> {
            let tail = &mut self.tails[which];
            if let Some(bytes) = tail.take_last() {
                return bytes;
            }
            self.spool.fetch(tail, client(which), &self.jobs);
            self.spool.fetch(tail, client(which), &self.jobs);
            assert!(self.jobs.reads_len() < 2, "one at a time");
            let Some(done) = self.read() else {
                return Vec::new();
            };
            let SpoolDone::Fetched(bytes) = done else {
                panic!("what was written can be read");
            };
            let tail = &mut self.tails[which];
            self.spool.fetched(tail, (&self.all, &self.jobs));
            bytes
        }

        fn drop_tails(&mut self) {
            for tail in std::mem::take(&mut self.tails) {
                self.spool.drop_tail(tail, (&self.all, &self.jobs));
            }
        }
    }

    /// Bytes that tell where they stand.
    fn bytes(from: usize, len: usize) -> Vec<u8> {
        (from..from + len)
            .map(|n| u8::try_from(n % 251).unwrap())
            .collect()
    }

    #[test]
    fn replies_side_by_side_come_out_as_they_went_in() {
        let mut bench = Bench::new(1 << 30, 1 << 30);
        let (mut put, mut got) = ([0; 2], [0; 2]);
        for round in 0..400 {
            let which = round % 2;
            let piece = bytes(put[which], 1 + (round * 7919) % 2500);
            bench.append(which, &piece);
            put[which] += piece.len();
            if round % 3 == 0 {
                assert_eq!(bench.write(), [""; 0]);
            }
            for _ in 0..round % 4 {
                let said = bench.next(which);
                assert_eq!(said, bytes(got[which], said.len()));
                got[which] += said.len();
                assert_eq!(bench.tails[which].len(), put[which] - got[which]);
            }
        }
        assert!(got[0] > 10 * SMALL && got[1] > 10 * SMALL, "{got:?}");
        bench.drop_tails();
        assert_eq!(bench.write(), [""; 0]);
        assert_eq!((bench.spool.used(), bench.spool.queued), (0, 0));
        assert_eq!(bench.all.used.load(Relaxed), 0);
        assert!(
            bench.disk.0.lock().unwrap().is_empty(),
            "the disk is given back"
        );
    }

    #[test]
    fn what_is_not_written_is_not_read() {
        let mut bench = Bench::new(1 << 30, 1 << 30);
        bench.append(0, &bytes(0, 2 * SMALL + 1));
        assert_eq!(bench.next(0), [0; 0]);
        assert_eq!(bench.write(), [""; 0]);
        assert_eq!(bench.next(0), bytes(0, SMALL));
        assert_eq!(bench.next(0), bytes(SMALL, SMALL));
        assert_eq!(bench.next(0), bytes(2 * SMALL, 1));
        assert_eq!(bench.tails[0].len(), 0);
    }

    #[test]
    fn the_bound_is_one_of_all_groups() {
        let mut bench = Bench::new(3 * SMALL, 1 << 30);
        let mut other = Spool::new(0, SMALL);
        let mut theirs = Tail::default();
        bench.append(0, &bytes(0, 2 * SMALL));
        assert!(other.has_room(&bench.all, Time(1)));
        let of_all = (&bench.all, &bench.jobs);
        other.append(&mut theirs, &bytes(0, SMALL), client(1), of_all);
        let room = |spool: &Spool| spool.has_room(&bench.all, Time(1));
        assert!(!room(&bench.spool) && !room(&other));
        other.drop_tail(theirs, of_all);
        assert!(room(&bench.spool));
    }

    #[test]
    fn no_more_is_taken_than_the_writer_may_have() {
        let mut bench = Bench::new(1 << 30, 1 << 30);
        let mut taken = 0;
        while bench.spool.takes_more(&bench.all, Time(1)) {
            bench.append(0, &bytes(taken, SMALL));
            taken += SMALL;
        }
        assert_eq!(taken, QUEUED_MAX.next_multiple_of(SMALL));
        assert!(bench.spool.memory() >= taken, "it counts");
        assert!(bench.spool.has_room(&bench.all, Time(1)), "it is not full");
        assert_eq!(bench.write(), [""; 0]);
        assert!(bench.spool.takes_more(&bench.all, Time(1)));
    }

    #[test]
    fn a_disk_that_is_full_is_left_alone_for_a_while() {
        let mut bench = Bench::new(1 << 30, SMALL);
        bench.append(0, &bytes(0, 2 * SMALL));
        let failed = bench.write();
        assert_eq!(failed, [io::ErrorKind::StorageFull.to_string()]);
        bench.spool.failed(Time(1));
        assert!(!bench.spool.takes_more(&bench.all, Time(2)));
        assert!(bench.spool.takes_more(&bench.all, Time(1) + AGAIN_AFTER));
        bench.drop_tails();
        assert_eq!(bench.all.used.load(Relaxed), 0);
    }

    /// The disk fails when a block is read: the client hears that, and not other bytes.
    #[test]
    fn what_cannot_be_read_is_lost_in_words() {
        let mut bench = Bench::new(1 << 30, 1 << 30);
        bench.append(0, &bytes(0, SMALL));
        assert_eq!(bench.write(), [""; 0]);
        bench.disk.2.store(true, Relaxed);
        let (tail, jobs) = (&mut bench.tails[0], &bench.jobs);
        bench.spool.fetch(tail, client(0), jobs);
        let lost = SpoolDone::Lost(broken().to_string());
        assert_eq!(bench.read(), Some(lost));
    }

    /// A disk that does not answer: clients come, ask and leave.
    #[test]
    fn so_many_blocks_are_asked_for_before_no_more_replies_are_taken() {
        let mut bench = Bench::new(1 << 30, 1 << 30);
        for asked in 0..READS_MAX {
            assert!(bench.spool.has_room(&bench.all, Time(1)), "{asked}");
            bench.append(0, &bytes(0, SMALL));
            assert_eq!(bench.write(), [""; 0]);
            let (tail, jobs) = (&mut bench.tails[0], &bench.jobs);
            bench.spool.fetch(tail, client(0), jobs);
            bench.drop_tails();
        }
        assert_eq!(bench.jobs.reads_len(), READS_MAX);
        assert!(!bench.spool.has_room(&bench.all, Time(1)));
        assert!(bench.read().is_some());
        assert!(bench.spool.has_room(&bench.all, Time(1)));
    }

    #[test]
    fn blocks_of_who_has_left_are_written_again_by_the_next() {
        let mut bench = Bench::new(1 << 30, 1 << 30);
        bench.append(0, &bytes(0, 3 * SMALL));
        // It leaves while the writer has its blocks, and another gets the same ones.
        bench.drop_tails();
        bench.append(1, &bytes(7, 3 * SMALL));
        assert_eq!(bench.spool.used(), 3 * SMALL);
        assert_eq!(bench.write(), [""; 0]);
        assert_eq!(bench.next(1), bytes(7, SMALL));
    }
}
