//! A right that one of several processes has at a time.
//!
//! The problem: processes that succeed each other must agree which one accepts clients, whichever
//! of them is killed at whatever moment. The mechanism: a lock of the kernel (`fcntl`, `F_SETLK`)
//! on two bytes of a file in memory that all of them have. The kernel releases it when its process
//! ends. The right passes on by halves, so that at no moment a third process can take it: the
//! holder offers one byte, the next process takes that, and the holder gives the other one back.
//! Whoever takes the right by itself needs both bytes.
//!
//! Invariants: such a lock belongs to a descriptor table, not to a descriptor. So copies in the
//! tables of groups, in children and in messages do not have it, and it is to be taken and given
//! back by threads that share the main thread's table. Closing any descriptor of the file in that
//! table gives the right back, so a process keeps the one that it has.

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Flock, FlockType, fcntl_getlk};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of the file.
const BOTH: Range<libc::off_t> = 0..2;
const OFFERED: Range<libc::off_t> = 1..2;

/// The file whose lock is the right.
#[derive(Debug)]
pub struct Right(OwnedFd);

impl Right {
    /// A right that nobody has.
    ///
    /// # Errors
    /// The system's error.
    pub fn new() -> io::Result<Right> {
        Ok(Right(memfd_create("onramp-right", MemfdFlags::CLOEXEC)?))
    }

    /// The right of another process that has sent its descriptor.
    #[must_use]
    pub fn received(file: OwnedFd) -> Right {
        Right(file)
    }

    /// Takes the right, unless another process has a part of it. True if it is this process's now.
    #[must_use]
    pub fn try_take(&self) -> bool {
        self.lock(libc::F_WRLCK, BOTH)
    }

    /// Offers the right, of which this process keeps one half until the other one is taken.
    pub fn offer(&self) {
        self.lock(libc::F_UNLCK, OFFERED);
    }

    /// Takes what is offered. True if the right is this process's as soon as the other half is
    /// given back.
    #[must_use]
    pub fn take_offered(&self) -> bool {
        self.lock(libc::F_WRLCK, OFFERED)
    }

    /// Gives back what this process has of the right.
    pub fn give_back(&self) {
        self.lock(libc::F_UNLCK, BOTH);
    }

    fn lock(&self, kind: libc::c_int, bytes: Range<libc::off_t>) -> bool {
        // SAFETY: the structure is one of integers, for all of which 0 is a value.
        // JUSTIFICATION: its fields differ between systems, so it cannot be written out.
        #[expect(unsafe_code)]
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        // From the beginning (SEEK_SET, which is 0); the kinds are small numbers.
        lock.l_type = libc::c_short::try_from(kind).unwrap_or_default();
        (lock.l_start, lock.l_len) = (bytes.start, bytes.end - bytes.start);
        // SAFETY: the descriptor is open as long as `self` is, and the pointer is that of a live
        // flock for the length of the call, which keeps none of it.
        // JUSTIFICATION: rustix locks whole files only.
        #[expect(unsafe_code)]
        let done = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETLK, &raw const lock) };
        done == 0
    }

    /// The other process that has the right.
    #[must_use]
    pub fn holder(&self) -> Option<u32> {
        let lock = fcntl_getlk(&self.0, &Flock::from(FlockType::WriteLock)).ok()?;
        let pid = lock?.pid?.as_raw_nonzero().get();
        u32::try_from(pid).ok()
    }
}

impl AsFd for Right {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptors::own_table;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
    use std::thread;

    /// A thread with a table of its own, which stands for another process and ends as one.
    struct Other {
        orders: SyncSender<fn(&Right) -> bool>,
        done: Receiver<bool>,
        thread: thread::JoinHandle<()>,
    }

    impl Other {
        fn start(right: &Arc<Right>) -> Other {
            let (orders, ordered) = sync_channel::<fn(&Right) -> bool>(0);
            let (says, done) = sync_channel(0);
            let right = right.clone();
            let thread = thread::spawn(move || {
                own_table().unwrap();
                // The descriptor of this table is closed with it; the value is that of the other
                // one.
                for order in ordered {
                    says.send(order(&right)).unwrap();
                }
            });
            Other {
                orders,
                done,
                thread,
            }
        }

        fn does(&self, order: fn(&Right) -> bool) -> bool {
            self.orders.send(order).unwrap();
            self.done.recv().unwrap()
        }

        fn end(self) {
            drop(self.orders);
            self.thread.join().unwrap();
        }
    }

    /// Waits until the kernel has ended the table, a moment after its thread.
    fn take_in_the_end(right: &Right) {
        while !right.try_take() {
            thread::yield_now();
        }
    }

    #[test]
    fn one_process_has_it_until_it_gives_it_back_or_ends() {
        let right = Arc::new(Right::new().unwrap());
        assert_eq!(right.holder(), None);
        assert!(right.try_take() && right.try_take(), "it is this table's");
        let other = Other::start(&right);
        assert!(!other.does(Right::try_take) && !other.does(Right::take_offered));
        right.give_back();
        assert!(other.does(Right::try_take));
        assert!(!right.try_take());
        assert_eq!(right.holder(), Some(std::process::id()));
        other.end();
        take_in_the_end(&right);
    }

    #[test]
    fn it_passes_on_and_at_no_step_a_third_process_has_it() {
        let right = Arc::new(Right::new().unwrap());
        let (old, new) = (Other::start(&right), Other::start(&right));
        let nobody_else = || assert!(!right.try_take());
        assert!(old.does(Right::try_take));
        old.does(|right| {
            right.offer();
            true
        });
        nobody_else();
        assert!(new.does(Right::take_offered));
        nobody_else();
        old.does(|right| {
            right.give_back();
            true
        });
        nobody_else();
        assert!(new.does(Right::try_take) && !old.does(Right::try_take));
        // One that ends in the middle leaves it to the one that has taken the half.
        new.does(|right| {
            right.offer();
            true
        });
        assert!(old.does(Right::take_offered));
        new.end();
        while !old.does(Right::try_take) {
            nobody_else();
        }
        // Where nobody has, it is anybody's.
        old.does(|right| {
            right.offer();
            true
        });
        old.end();
        take_in_the_end(&right);
    }
}
