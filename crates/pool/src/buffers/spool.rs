//! The spool: replies that were taken off their backends and wait for their clients on disk.
//!
//! The problem: a client that does not read its reply keeps a backend, or the pool's memory. The
//! mechanism: each group has one scratch file, in blocks of [`BLOCK`] bytes. A reply that is taken
//! off ([`Tail`]) has a list of blocks; it is written behind and read in front, and each block goes
//! back as soon as it has been read. The file is made when it is first needed, and cut to nothing
//! when nobody has a block any more. When and for whom, `slow_readers.rs` decides.
//!
//! What is written goes to the kernel's page cache. A group writes at most what it reads from its
//! backends in one turn, and reads back at most [`SENT_PER_TURN`] for one client.
//!
//! Invariants: blocks in use, over all groups, are at most `spool_bytes_max`, but for what one read
//! of each group may add; a block belongs to one reply, or is free.

use reactor::{Scratch, Time};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Bytes of one block.
pub(crate) const BLOCK: usize = 64 * 1024;
/// Bytes that one client is sent from the file at once; then others have theirs.
pub(crate) const SENT_PER_TURN: usize = 2 * BLOCK;
/// Who lacks room says so once in each sweep, or more often.
const LACK_LASTS: Duration = Duration::from_secs(2);
/// A file that failed is not tried again before this time is over.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// What all groups use of `spool_bytes_max`.
#[derive(Debug)]
pub(crate) struct SpoolUse {
    max: usize,
    used: AtomicUsize,
    /// When it last had no room for a reply.
    lacked_at: AtomicU64,
    /// Since when the slowest reader of each group has taken nothing.
    longest: Box<[AtomicU64]>,
}

impl SpoolUse {
    /// Nothing is used of so many bytes by so many groups.
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

    /// Whether there was no room a moment ago.
    pub(crate) fn lacks(&self, now: Time) -> bool {
        let at = Time(self.lacked_at.load(Relaxed));
        at != Time(0) && now.since(at) < LACK_LASTS && !self.has_room()
    }

    /// Notes since when the slowest reader of a group has taken nothing.
    pub(crate) fn note_longest(&self, group: usize, since: Time) {
        self.longest[group].store(since.0, Relaxed);
    }

    /// Whether no other group has a reader that has taken nothing for longer.
    pub(crate) fn is_longest(&self, group: usize, since: Time) -> bool {
        let mut others = self.longest.iter().enumerate();
        others.all(|(other, longest)| other == group || longest.load(Relaxed) >= since.0)
    }

    /// Whether another block may be used.
    fn has_room(&self) -> bool {
        self.used.load(Relaxed) + BLOCK <= self.max
    }
}

/// The part of a reply that is in the file.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    blocks: VecDeque<u32>,
    /// Bytes of the first block that have been sent.
    start: usize,
    /// Bytes that have not been sent.
    len: usize,
}

impl Tail {
    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that its list of blocks takes.
    pub(crate) fn memory(&self) -> usize {
        self.blocks.capacity() * size_of::<u32>()
    }
}

/// One group's file and its blocks.
#[derive(Debug)]
pub(crate) struct Spool<F> {
    /// Made when it is first needed.
    file: Option<F>,
    /// When it could last not be made or written.
    failed_at: Option<Time>,
    /// Blocks of the file that nobody has.
    free: Vec<u32>,
    /// Blocks that the file has.
    blocks: u32,
}

impl<F> Default for Spool<F> {
    fn default() -> Self {
        Spool {
            file: None,
            failed_at: None,
            free: Vec::new(),
            blocks: 0,
        }
    }
}

fn place(block: u32, offset: usize) -> u64 {
    u64::from(block) * BLOCK as u64 + offset as u64
}

impl<F: Scratch> Spool<F> {
    /// Bytes of blocks that replies have.
    pub(crate) fn used(&self) -> usize {
        (self.blocks as usize - self.free.len()) * BLOCK
    }

    /// Bytes of memory that the list of free blocks takes.
    pub(crate) fn memory(&self) -> usize {
        self.free.capacity() * size_of::<u32>()
    }

    /// Whether the spool takes more now.
    pub(crate) fn has_room(&self, all: &SpoolUse, now: Time) -> bool {
        let rests = self.failed_at.is_some_and(|at| now.since(at) < AGAIN_AFTER);
        !rests && all.has_room()
    }

    /// Appends bytes to a reply; `make` makes the file, if it is not there.
    ///
    /// # Errors
    /// The system's; the reply cannot be completed then.
    pub(crate) fn append(
        &mut self,
        tail: &mut Tail,
        bytes: &[u8],
        (all, now): (&SpoolUse, Time),
        make: impl FnOnce() -> io::Result<F>,
    ) -> io::Result<()> {
        let appended = self.try_append(tail, bytes, all, make);
        self.failed_at = appended.is_err().then_some(now);
        appended
    }

    fn try_append(
        &mut self,
        tail: &mut Tail,
        mut bytes: &[u8],
        all: &SpoolUse,
        make: impl FnOnce() -> io::Result<F>,
    ) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(make()?);
        }
        while !bytes.is_empty() {
            let written = tail.start + tail.len;
            if written == tail.blocks.len() * BLOCK {
                tail.blocks.push_back(self.take(all));
            }
            let last = tail.blocks.back().copied().unwrap_or_default();
            let (piece, rest) = bytes.split_at(bytes.len().min(BLOCK - written % BLOCK));
            if let Some(file) = &self.file {
                file.write_at(piece, place(last, written % BLOCK))?;
            }
            tail.len += piece.len();
            bytes = rest;
        }
        Ok(())
    }

    /// Reads what comes next of a reply, to the end of its block.
    ///
    /// # Errors
    /// The system's; the reply cannot be completed then.
    pub(crate) fn read<'a>(&self, tail: &Tail, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        let len = tail.len.min(BLOCK - tail.start);
        buffer.clear();
        buffer.resize(len, 0);
        let first = tail.blocks.front().copied().unwrap_or_default();
        if let Some(file) = &self.file {
            file.read_at(buffer, place(first, tail.start))?;
        }
        Ok(buffer)
    }

    /// So many bytes in front of a reply have been sent.
    pub(crate) fn sent(&mut self, tail: &mut Tail, len: usize, all: &SpoolUse) {
        tail.start += len;
        tail.len -= len.min(tail.len);
        if tail.start >= BLOCK || tail.len == 0 {
            tail.start %= BLOCK;
            if let Some(block) = tail.blocks.pop_front() {
                self.give(block, all);
            }
        }
        if tail.len == 0 {
            tail.start = 0;
        }
    }

    /// Gives back what a reply has, which is not sent any more.
    pub(crate) fn drop_tail(&mut self, tail: Tail, all: &SpoolUse) {
        for block in tail.blocks {
            self.give(block, all);
        }
    }

    fn take(&mut self, all: &SpoolUse) -> u32 {
        all.used.fetch_add(BLOCK, Relaxed);
        self.free.pop().unwrap_or_else(|| {
            self.blocks += 1;
            self.blocks - 1
        })
    }

    fn give(&mut self, block: u32, all: &SpoolUse) {
        all.used.fetch_sub(BLOCK, Relaxed);
        self.free.push(block);
        if self.free.len() == self.blocks as usize {
            (self.free, self.blocks) = (Vec::new(), 0);
            if let Some(file) = &self.file {
                // What cannot be given back is written over.
                let _ = file.set_len(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// A disk of so many bytes.
    struct Disk(RefCell<Vec<u8>>, Cell<usize>);

    impl Scratch for Disk {
        fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
            let mut disk = self.0.borrow_mut();
            let at = usize::try_from(at).unwrap();
            if at + bytes.len() > self.1.get() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let len = disk.len().max(at + bytes.len());
            disk.resize(len, 0);
            disk[at..at + bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
        fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
            let at = usize::try_from(at).unwrap();
            bytes.copy_from_slice(&self.0.borrow()[at..at + bytes.len()]);
            Ok(())
        }
        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0.borrow_mut().truncate(usize::try_from(len).unwrap());
            Ok(())
        }
    }

    fn disk(len: usize) -> io::Result<Disk> {
        Ok(Disk(RefCell::default(), Cell::new(len)))
    }

    /// Bytes that tell where they stand.
    fn bytes(from: usize, len: usize) -> Vec<u8> {
        (from..from + len)
            .map(|n| u8::try_from(n % 251).unwrap())
            .collect()
    }

    #[test]
    fn replies_side_by_side_come_out_as_they_went_in() {
        let all = SpoolUse::new(64 * BLOCK, 1);
        let mut spool = Spool::default();
        let mut tails = [Tail::default(), Tail::default()];
        let (mut put, mut got) = ([0; 2], [0; 2]);
        let mut buffer = Vec::new();
        for round in 0..400 {
            let which = round % 2;
            let piece = bytes(put[which], 1 + (round * 7919) % 50_000);
            let put_now =
                spool.append(&mut tails[which], &piece, (&all, Time(1)), || disk(1 << 30));
            put_now.unwrap();
            put[which] += piece.len();
            for _ in 0..round % 4 {
                if tails[which].len() == 0 {
                    break;
                }
                let said = spool.read(&tails[which], &mut buffer).unwrap();
                let sent = 1 + (round * 31) % said.len();
                assert_eq!(said[..sent], bytes(got[which], sent));
                got[which] += sent;
                spool.sent(&mut tails[which], sent, &all);
                assert_eq!(tails[which].len(), put[which] - got[which]);
            }
        }
        for tail in tails {
            spool.drop_tail(tail, &all);
        }
        assert_eq!((spool.used(), all.used.load(Relaxed)), (0, 0));
        assert!(
            spool.file.unwrap().0.borrow().is_empty(),
            "the disk is given back"
        );
    }

    #[test]
    fn the_bound_is_one_of_all_groups() {
        let all = SpoolUse::new(3 * BLOCK, 2);
        let (mut one, mut other) = (Spool::default(), Spool::default());
        let (mut mine, mut theirs) = (Tail::default(), Tail::default());
        let put = |spool: &mut Spool<Disk>, tail: &mut Tail, len| {
            assert!(spool.has_room(&all, Time(1)));
            spool
                .append(tail, &bytes(0, len), (&all, Time(1)), || disk(1 << 30))
                .unwrap();
        };
        put(&mut one, &mut mine, BLOCK + 1);
        put(&mut other, &mut theirs, 1);
        assert!(!one.has_room(&all, Time(1)) && !other.has_room(&all, Time(1)));
        other.drop_tail(theirs, &all);
        assert!(one.has_room(&all, Time(1)));
    }

    #[test]
    fn a_disk_that_is_full_is_left_alone_for_a_while() {
        let all = SpoolUse::new(1 << 30, 1);
        let mut spool = Spool::default();
        let mut tail = Tail::default();
        let put = spool.append(&mut tail, &bytes(0, 2 * BLOCK), (&all, Time(1)), || {
            disk(BLOCK)
        });
        assert_eq!(put.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(!spool.has_room(&all, Time(2)));
        assert!(spool.has_room(&all, Time(1) + AGAIN_AFTER));
        spool.drop_tail(tail, &all);
        assert_eq!(all.used.load(Relaxed), 0);
    }
}
