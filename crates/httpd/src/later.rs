//! Answers that take a while: a thread that makes them, one after another.
//!
//! The problem: some answers are asked of other threads, and the one that polls the sockets must
//! wait for nobody. Invariant: at most [`LATER_MAX`] jobs wait; a connection that closes leaves its
//! job, whose answer then finds nobody.

use crate::{Job, LATER_MAX, Reply};
use reactor::{Mailbox, Sender, mailbox};
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// The polling thread's end.
pub(crate) struct Later {
    jobs: SyncSender<(u64, Job)>,
    made: Mailbox<(u64, Reply)>,
}

impl Later {
    /// Starts the thread, which ends with this value.
    pub(crate) fn start() -> io::Result<Later> {
        let (jobs, todo) = sync_channel::<(u64, Job)>(LATER_MAX);
        let (done, made): (Sender<(u64, Reply)>, _) = mailbox()?;
        let work = move || {
            for (number, job) in todo {
                done.send((number, job()));
            }
        };
        let builder = thread::Builder::new().name("http-later".to_owned());
        builder.spawn(work)?;
        Ok(Later { jobs, made })
    }

    /// Queues an answer to be made for the connection of this number. `false` where too many wait.
    pub(crate) fn make(&self, number: u64, job: Job) -> bool {
        self.jobs.try_send((number, job)).is_ok()
    }

    /// Replies that have been made since the last call.
    pub(crate) fn made(&self) -> Vec<(u64, Reply)> {
        self.made.take()
    }

    /// Mailbox that becomes readable when there is something.
    pub(crate) fn wake(&self) -> &Mailbox<(u64, Reply)> {
        &self.made
    }
}
