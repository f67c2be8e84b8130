//! Mailboxes: how one thread hands a message to a group.
//!
//! A list behind a lock, and an eventfd that wakes the group's epoll. Off the statement path: used
//! for orders (drain) and hand-over.
//!
//! Invariant: mailboxes are made before any group takes its own descriptor table, so the eventfd
//! has the same number in all of them.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
struct Inner<T> {
    messages: Mutex<Vec<T>>,
    wake: OwnedFd,
}

/// The end that receives; belongs to one group.
#[derive(Debug)]
pub struct Mailbox<T>(Arc<Inner<T>>);

/// The end that sends; any thread may have one.
#[derive(Debug)]
pub struct Sender<T>(Arc<Inner<T>>);

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender(self.0.clone())
    }
}

/// Makes a mailbox and its sending end.
///
/// # Errors
/// The system's error (EMFILE, ENOMEM).
pub fn mailbox<T>() -> io::Result<(Sender<T>, Mailbox<T>)> {
    let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
    let inner = Arc::new(Inner {
        messages: Mutex::new(Vec::new()),
        wake,
    });
    Ok((Sender(inner.clone()), Mailbox(inner)))
}

impl<T> Sender<T> {
    /// Puts `message` in the box and wakes its owner.
    pub fn send(&self, message: T) {
        self.0
            .messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(message);
        // A full counter (the only failure) means that the owner is being woken anyway.
        let _ = rustix::io::write(&self.0.wake, &1u64.to_ne_bytes());
    }
}

impl<T> Mailbox<T> {
    /// Takes all messages, oldest first.
    #[must_use]
    pub fn take(&self) -> Vec<T> {
        // Nothing to read means that another wake-up already took them: an empty list is right.
        let _ = rustix::io::read(&self.0.wake, &mut [0u8; 8]);
        std::mem::take(
            &mut *self
                .0
                .messages
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

impl<T> AsFd for Mailbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_arrive_in_order_from_another_thread() {
        let (sender, mailbox) = mailbox().unwrap();
        assert!(mailbox.take().is_empty());
        std::thread::spawn(move || (0..3).for_each(|i| sender.send(i)))
            .join()
            .unwrap();
        assert_eq!(mailbox.take(), [0, 1, 2]);
        assert!(mailbox.take().is_empty());
    }
}
