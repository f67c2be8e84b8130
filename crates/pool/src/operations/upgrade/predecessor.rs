//! The old process's end of an upgrade: it waits for a successor, and hands everything to it.
//!
//! A thread of its own waits at an abstract socket for a process of the same user, all the time
//! that the pool runs. What it decides it tells the groups ([`Order::Give`], [`Order::Keep`]).
//!
//! Invariants: a successor that is gone, or that says that it cannot go on, ends the hand-over, and
//! the next one may try. With the last client the successor is the pool: from then on this process
//! only ends.

use crate::log::{Event, note};
use crate::operations::upgrade::{LISTEN_EVERY, Progress, STEP_MAX, name_of_process};
use crate::shared::{Order, Shared};
use crate::upgrade::channel::{Channel, Come};
use crate::upgrade::frames::{Frame, VERSION};
use reactor::handover::{self, Peer};
use reactor::{Sender, Time};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often the log says how many clients are still here.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// What there is to be handed over.
pub(crate) struct Predecessor {
    pub(crate) orders: Vec<Sender<Order>>,
    pub(crate) tcp: Vec<SocketAddr>,
    pub(crate) unix: Vec<(PathBuf, Arc<OwnedFd>)>,
    /// After `drain_max` of its settings, what is still here is drained.
    pub(crate) shared: Arc<Shared>,
    pub(crate) progress: Arc<Progress>,
    /// The successor, while there is one.
    pub(crate) successor: Arc<Mutex<Option<Channel>>>,
}

impl Predecessor {
    /// Waits for successors in a thread of its own.
    ///
    /// # Errors
    /// Why there can be no upgrade.
    pub(crate) fn keep_waiting(self) -> Result<(), String> {
        let words = |error: std::io::Error| error.to_string();
        let listener = handover::listen_at(&name_of_process(handover::own().pid)).map_err(words)?;
        let listener = UnixListener::from(listener);
        listener.set_nonblocking(false).map_err(words)?;
        let work = move || {
            while let Ok((stream, _)) = listener.accept() {
                let socket = OwnedFd::from(stream);
                if let Ok(peer) = handover::peer(&socket)
                    && peer.uid == handover::own().uid
                    && self.attend(socket, peer)
                {
                    return;
                }
            }
        };
        let builder = std::thread::Builder::new().name("upgrade".into());
        builder.spawn(work).map(|_| ()).map_err(words)
    }

    /// Hands everything to the process at this socket. `false`: it does not take over, and this
    /// process goes on.
    fn attend(&self, socket: OwnedFd, peer: Peer) -> bool {
        if let Err(why) = self.welcome(socket, peer) {
            note(
                Event::UpgradeFailed,
                format_args!(
                    "process {} does not take over: {why}; this process goes on",
                    peer.pid
                ),
            );
            return false;
        }
        note(
            Event::Upgrade,
            format_args!(
                "process {} takes over: it gets the listeners, then the clients",
                peer.pid
            ),
        );
        {
            let mut steps = self.progress.steps();
            let number = steps.number + 1;
            *steps = Default::default();
            (steps.is_on, steps.number) = (true, number);
        }
        Order::Give(peer).tell_all(&self.orders);
        let Err(why) = self.hand_over() else {
            return true;
        };
        self.progress.steps().is_on = false;
        Order::Keep.tell_all(&self.orders);
        if let Some(mut channel) = self.lock().take() {
            let _ = channel.send(&Frame::Refused { why: why.clone() }, &[]);
        }
        let moved = self.moved_in_the_end();
        note(
            Event::UpgradeFailed,
            format_args!(
                "process {} does not take over any more, with {moved} clients: {why}; this process \
                 goes on with the others, and accepts again",
                peer.pid
            ),
        );
        false
    }

    /// Clients that have gone, once no group hands over any more: the last word of the other
    /// process may say that it has taken some.
    fn moved_in_the_end(&self) -> u64 {
        let late = Time::now() + STEP_MAX;
        loop {
            let steps = self.progress.steps();
            if steps.stopped.len() == self.orders.len() || Time::now() >= late {
                return steps.moved;
            }
            drop(steps);
            reactor::pause(LISTEN_EVERY);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Channel>> {
        self.successor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells where this process listens, and waits until the other one is ready.
    fn welcome(&self, socket: OwnedFd, peer: Peer) -> Result<(), String> {
        let words = |error: std::io::Error| error.to_string();
        let mut channel = Channel::waiting(socket, Some(STEP_MAX)).map_err(words)?;
        let refuse = |channel: &mut Channel, why: String| {
            let _ = channel.send(&Frame::Refused { why: why.clone() }, &[]);
            Err(why)
        };
        match next(&mut channel)? {
            Frame::Hello { version } if version == VERSION => {}
            Frame::Hello { version } => {
                let why = format!("it speaks version {version} of the hand-over, not {VERSION}");
                return refuse(&mut channel, why);
            }
            _ => return Err("it has sent something else than its version".into()),
        }
        let sockets: Vec<BorrowedFd<'_>> = self.unix.iter().map(|(_, fd)| fd.as_fd()).collect();
        let welcome = Frame::Welcome {
            groups: self.orders.len(),
            tcp: self.tcp.clone(),
            unix: self.unix.iter().map(|(path, _)| path.clone()).collect(),
        };
        channel.send(&welcome, &sockets).map_err(words)?;
        note(
            Event::Upgrade,
            format_args!("process {} has checked its settings, and begins", peer.pid),
        );
        match next(&mut channel)? {
            Frame::Ready => {}
            Frame::Refused { why } => return Err(why),
            _ => return Err("it has sent something else than that it is ready".into()),
        }
        channel.wait_at_most(Some(LISTEN_EVERY)).map_err(words)?;
        *self.lock() = Some(channel);
        Ok(())
    }

    /// Waits until the last client has gone, and lets the groups end then.
    ///
    /// # Errors
    /// What has failed before. Behind that the successor is the pool, and nothing of it is looked
    /// at any more: groups that have ended cannot go on.
    fn hand_over(&self) -> Result<(), String> {
        let (begin, mut said) = (Time::now(), Time::now());
        let mut is_drained = false;
        loop {
            match self.lock().as_mut().map(Channel::receive).transpose()? {
                // The main thread has said goodbye: the process ends.
                None => return Ok(()),
                Some(Come::Nothing) => {}
                Some(Come::End) => return Err("it has ended".into()),
                Some(Come::Frame(Frame::Refused { why }, _)) => return Err(why),
                Some(Come::Frame(..)) => return Err("it has sent what it was not asked for".into()),
            }
            let now = Time::now();
            let steps = self.progress.steps();
            if let Some(why) = &steps.failed {
                return Err(why.clone());
            }
            let is_counted = steps.clients.len() == self.orders.len();
            let (left, words) = (steps.left_count(), steps.left_words());
            let refusal = steps.refusal.clone().unwrap_or_default();
            drop(steps);
            if is_counted && left == 0 {
                Order::Leave.tell_all(&self.orders);
                return Ok(());
            }
            let drains = !is_drained && now.since(begin) >= self.shared.settings().drain_max;
            if left > 0 && (drains || now.since(said) >= SAY_EVERY) {
                said = now;
                let refused = match refusal.is_empty() {
                    true => String::new(),
                    false => format!(" (refused: {refusal})"),
                };
                let then = if drains { "; they are drained" } else { "" };
                note(
                    Event::Upgrade,
                    format_args!("{left} clients are still here: {words}{refused}{then}"),
                );
            }
            if drains {
                is_drained = true;
                Order::Drain.tell_all(&self.orders);
            }
        }
    }
}

fn next(channel: &mut Channel) -> Result<Frame, String> {
    match channel.receive()? {
        Come::Frame(frame, _) => Ok(frame),
        Come::End => Err("it has ended".into()),
        Come::Nothing => Err(format!("it has said nothing for {} s", STEP_MAX.as_secs())),
    }
}

/// The last client has gone: tells the successor so. `false` when there is none.
pub(crate) fn say_goodbye(progress: &Progress, successor: &Mutex<Option<Channel>>) -> bool {
    let channel = successor
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let Some(mut channel) = channel else {
        return false;
    };
    let steps = progress.steps();
    let pause_us = u64::try_from(steps.longest.as_micros()).unwrap_or(u64::MAX);
    let clients = steps.moved;
    drop(steps);
    note(
        Event::Upgrade,
        format_args!(
            "handed over: {clients} clients, none of them out of service for more than {} ms",
            pause_us.div_ceil(1000)
        ),
    );
    let _ = channel.send(&Frame::Done { clients, pause_us }, &[]);
    true
}
