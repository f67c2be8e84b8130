//! The groups' threads as the main thread has them: started, told what to do, heard.
//!
//! Orders go out by mailbox, messages come back by a bounded channel. A thread that has ended
//! without a last message has panicked: nobody waits for it.
//!
//! Invariant: mailboxes are made before any group takes its own descriptor table.

use reactor::{Mailbox, Sender, Time, mailbox};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Message where a thread has panicked.
pub const PANICKED: &str =
    "a group panicked, which is a fault of this program; its words are above";

/// Stack of a group's thread, in bytes; what is not used costs nothing.
const STACK_BYTES: usize = 512 * 1024;
/// Letters that a group may have under way, on average.
const LETTERS_EACH: usize = 4;
/// Longest wait of the main thread at a time, so that it sees a signal soon.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// A thread for each group, with orders `O` and messages `L`.
pub struct Threads<O, L> {
    orders: Vec<Sender<O>>,
    threads: Vec<JoinHandle<()>>,
    letters: Receiver<L>,
}

/// Messages of a short while.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<L> {
    /// A message of a thread.
    Message(L),
    /// No message arrived in time.
    Nothing,
    /// Number of threads that have ended by now, and not all of which said so.
    Lost(usize),
    /// Lack of threads and messages.
    Nobody,
}

impl<O: Copy + Send + 'static, L: Send + 'static> Threads<O, L> {
    /// Starts so many groups; each runs the life that `life_of` makes for its number.
    ///
    /// # Errors
    /// A sentence with the system's reason.
    pub fn start<Life>(groups: u32, life_of: impl Fn(u32) -> Life) -> Result<Threads<O, L>, String>
    where
        Life: FnOnce(Mailbox<O>, SyncSender<L>) + Send + 'static,
    {
        let count = groups as usize;
        let (sender, letters) = sync_channel(LETTERS_EACH * count);
        let mut orders = Vec::with_capacity(count);
        let mut boxes = Vec::with_capacity(count);
        for _ in 0..count {
            let (order, mailbox) =
                mailbox().map_err(|e| format!("no mailbox for a group: {e}; ulimit -n?"))?;
            orders.push(order);
            boxes.push(mailbox);
        }
        let mut threads = Vec::with_capacity(count);
        for (number, mailbox) in (0..groups).zip(boxes) {
            let (life, sender) = (life_of(number), sender.clone());
            let thread = thread::Builder::new()
                .name(format!("group-{number}"))
                .stack_size(STACK_BYTES)
                .spawn(move || life(mailbox, sender))
                .map_err(|e| format!("no thread for a group: {e}"))?;
            threads.push(thread);
        }
        Ok(Threads {
            orders,
            threads,
            letters,
        })
    }

    /// Groups that were started.
    pub fn count(&self) -> usize {
        self.orders.len()
    }

    /// Gives all groups an order.
    pub fn order(&self, order: O) {
        self.orders.iter().for_each(|group| group.send(order));
    }

    /// The next message, if one comes until then, and in a short while. So many groups have said
    /// that they have ended.
    pub fn hear(&self, until: Time, ended: usize) -> Heard<L> {
        let wait = until.since(Time::now()).min(WAIT_MAX);
        match self.letters.recv_timeout(wait) {
            Ok(message) => return Heard::Message(message),
            Err(RecvTimeoutError::Disconnected) => return Heard::Nobody,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let gone = self.threads.iter().filter(|thread| thread.is_finished());
        let gone = gone.count();
        if gone <= ended {
            return Heard::Nothing;
        }
        // A last message may have come between the two looks.
        let late = self.letters.try_recv();
        late.map_or(Heard::Lost(gone), Heard::Message)
    }

    /// Waits for the end of all threads.
    ///
    /// # Errors
    /// That one of them has panicked.
    pub fn join(&mut self) -> Result<(), &'static str> {
        let threads = self.threads.drain(..);
        let panicked = threads.filter_map(|thread| thread.join().err()).count();
        if panicked > 0 { Err(PANICKED) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(threads: &Threads<u8, u32>, ended: usize) -> Heard<u32> {
        loop {
            match threads.hear(Time::NEVER, ended) {
                Heard::Nothing => {}
                heard => return heard,
            }
        }
    }

    /// Waits for its first order.
    fn wait(mailbox: &Mailbox<u8>) {
        while mailbox.take().is_empty() {
            thread::yield_now();
        }
    }

    #[test]
    fn each_group_has_its_number_and_hears_orders() {
        let mut threads = Threads::start(3, |number| {
            move |mailbox: Mailbox<u8>, letters: SyncSender<u32>| {
                wait(&mailbox);
                letters.send(number).unwrap();
            }
        })
        .unwrap();
        assert_eq!(threads.count(), 3);
        threads.order(1);
        let mut heard = [0, 1, 2].map(|ended| match next(&threads, ended) {
            Heard::Message(number) => number,
            other => panic!("{other:?}"),
        });
        heard.sort_unstable();
        assert_eq!(heard, [0, 1, 2]);
        assert_eq!(next(&threads, 3), Heard::Nobody);
        assert_eq!(threads.join(), Ok(()));
    }

    #[test]
    fn a_group_that_ends_without_a_letter_is_noticed_while_others_live() {
        let mut threads = Threads::start(2, |number| {
            move |mailbox: Mailbox<u8>, letters: SyncSender<u32>| {
                assert_ne!(number, 0, "on purpose");
                wait(&mailbox);
                letters.send(number).unwrap();
            }
        })
        .unwrap();
        assert_eq!(next(&threads, 0), Heard::Lost(1));
        threads.order(1);
        assert_eq!(next(&threads, 1), Heard::Message(1));
        assert_eq!(threads.join(), Err(PANICKED));
    }
}
