//! A bounded queue between the pool's threads and one of the exporter's.
//!
//! The problem: who puts something in may not wait, and who takes it out may be held up by a slow
//! collector for a minute. The mechanism: a channel, and a count of what waits in it, by which
//! things that matter less are left out before it is full ([`ExportQueue::put`]). What became of
//! each is counted once, in [`Outcome`].

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Fate of things to be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Acceptance by the collector.
    Sent,
    /// Omission, the queue being full.
    LeftOut,
    /// Rejection by the collector.
    Rejected,
    /// The collector could not be reached for so long that they were dropped.
    GivenUp,
}

impl Outcome {
    pub(crate) const ALL: [Outcome; 4] = [
        Outcome::Sent,
        Outcome::LeftOut,
        Outcome::Rejected,
        Outcome::GivenUp,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Outcome::Sent => "sent",
            Outcome::LeftOut => "left_out",
            Outcome::Rejected => "rejected",
            Outcome::GivenUp => "given_up",
        }
    }
}

/// Things that the exporter takes out.
#[derive(Debug)]
pub(crate) enum Item<T> {
    One(Box<T>),
    /// End of the process: what is there is sent, and then this is dropped.
    End(SyncSender<()>),
}

/// The end of those who put something in.
#[derive(Debug)]
pub(crate) struct ExportQueue<T> {
    sender: SyncSender<Item<T>>,
    waiting: Arc<AtomicUsize>,
    outcomes: [AtomicU64; Outcome::ALL.len()],
}

/// The exporter's end.
#[derive(Debug)]
pub(crate) struct ExportReceiver<T> {
    receiver: Receiver<Item<T>>,
    waiting: Arc<AtomicUsize>,
}

/// Both ends of a queue with room for `max`, and for the word that the process ends.
pub(crate) fn queue<T>(max: usize) -> (ExportQueue<T>, ExportReceiver<T>) {
    let (sender, receiver) = sync_channel(max + 1);
    let waiting = Arc::new(AtomicUsize::new(0));
    let queue = ExportQueue {
        sender,
        waiting: waiting.clone(),
        outcomes: Default::default(),
    };
    (queue, ExportReceiver { receiver, waiting })
}

impl<T> ExportQueue<T> {
    /// Puts it in, unless so many wait already: then it is left out, and counted.
    pub(crate) fn put(&self, thing: T, max: usize) {
        if self.waiting.fetch_add(1, Relaxed) < max
            && self.sender.try_send(Item::One(Box::new(thing))).is_ok()
        {
            return;
        }
        self.waiting.fetch_sub(1, Relaxed);
        self.count(Outcome::LeftOut, 1);
    }

    pub(crate) fn count(&self, outcome: Outcome, things: u64) {
        self.outcomes[outcome as usize].fetch_add(things, Relaxed);
    }

    pub(crate) fn counted(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].load(Relaxed)
    }

    /// Asks for what is there to be sent; all of it has been once nobody holds the other end.
    pub(crate) fn finish(&self) -> Receiver<()> {
        let (done, wait) = sync_channel(0);
        // Where nobody takes it, it is dropped, and nobody waits.
        let _ = self.sender.try_send(Item::End(done));
        wait
    }
}

impl<T> ExportReceiver<T> {
    /// The next one, if it comes in that time.
    pub(crate) fn next(&self, longest: Duration) -> Result<Item<T>, RecvTimeoutError> {
        let item = self.receiver.recv_timeout(longest)?;
        if let Item::One(_) = item {
            self.waiting.fetch_sub(1, Relaxed);
        }
        Ok(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_at_the_bound_is_counted() {
        let (queue, receiver) = queue(8);
        (0..10).for_each(|number| queue.put(number, 8));
        assert_eq!(queue.counted(Outcome::LeftOut), 2);
        for expected in 0..8 {
            let Ok(Item::One(number)) = receiver.next(Duration::ZERO) else {
                panic!("{expected} is missing");
            };
            assert_eq!(*number, expected);
        }
        assert!(receiver.next(Duration::ZERO).is_err());
        queue.put(10, 8);
        assert!(receiver.next(Duration::ZERO).is_ok());
        assert_eq!(queue.counted(Outcome::LeftOut), 2);
    }

    #[test]
    fn what_matters_less_leaves_room() {
        let (queue, receiver) = queue(8);
        (0..6).for_each(|number| queue.put(number, 4));
        assert_eq!(queue.counted(Outcome::LeftOut), 2);
        (0..5).for_each(|number| queue.put(number, 8));
        assert_eq!(queue.counted(Outcome::LeftOut), 3);
        // The end is heard though it is full.
        let wait = queue.finish();
        for _ in 0..8 {
            assert!(matches!(receiver.next(Duration::ZERO), Ok(Item::One(_))));
        }
        let Ok(Item::End(done)) = receiver.next(Duration::ZERO) else {
            panic!("no end");
        };
        drop(done);
        assert!(wait.recv().is_err());
    }

    #[test]
    fn nobody_waits_for_an_exporter_that_has_gone() {
        let (queue, receiver) = queue(8);
        drop(receiver);
        queue.put(1, 8);
        queue.put(2, 8);
        assert_eq!(queue.counted(Outcome::LeftOut), 2);
        assert!(queue.finish().recv().is_err());
    }
}
