//! The old process's end of an upgrade: it waits for a successor, and hands everything to it.
//!
//! A thread of its own waits at an abstract socket for a process of the same user, all the time
//! that the pool runs. What it decides it tells the groups ([`Order::Give`], [`Order::Keep`]).
//!
//! Invariants: a successor that is gone, or that says that it cannot go on, ends the hand-over.
//! Then this process accepts again and the next one may try, unless a later process accepts. With
//! the last client the successor is the pool: from then on this process only ends. While the
//! process before this one still hands over, this one stays, and passes on what it is given.

use crate::config::reload::limits_of_users;
use crate::group::shared::{Order, Shared};
use crate::observe::log::{Event, note};
use crate::upgrade::process::{LISTEN_EVERY, Progress, STEP_MAX, Steps, rules};
use crate::upgrade::process::{RELEASE_MAX, name_of_process, take_released};
use handover::{Channel, Come, Frame, Peer, VERSION};
use reactor::{Right, Sender, Time};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Interval at which the log says how many clients are still here.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// Everything that is to be handed over.
pub(crate) struct Predecessor {
    pub(crate) orders: Vec<Sender<Order>>,
    pub(crate) tcp: Vec<SocketAddr>,
    pub(crate) unix: Vec<(PathBuf, Arc<OwnedFd>)>,
    /// Parts of the pool, whose settings have the `drain_max` after which what is still here is
    /// drained.
    pub(crate) shared: Arc<Shared>,
    pub(crate) progress: Arc<Progress>,
    /// The successor, while there is one.
    pub(crate) successor: Arc<Mutex<Option<Channel>>>,
    /// The right to accept.
    pub(crate) right: Arc<Right>,
    /// True if nothing comes from a process before this one any more.
    pub(crate) is_first: Arc<AtomicBool>,
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
        let begin = Time::now();
        let Err(why) = self.hand_over(peer, begin) else {
            return true;
        };
        Order::Keep.tell_all(&self.orders);
        self.keep(peer, &why, begin);
        false
    }

    /// Serves on after a failed hand-over. Returns when this process accepts again; while another
    /// one does, it keeps the clients that it has, and ends with the last of them.
    fn keep(&self, peer: Peer, why: &str, begin: Time) {
        let failed = Time::now();
        let is_silent = self.progress.steps().is_silent;
        let (mut is_said, mut leaves, mut is_drained) = (false, false, false);
        // One that does not answer does not accept either, though it has the right.
        let takes = || self.right.try_take() || is_silent && self.right.holder() == Some(peer.pid);
        while is_drained || !takes() {
            let now = Time::now();
            let holder = self.right.holder();
            // Whom the kernel sends to listeners of this process nobody accepts.
            let is_passed_on = holder.is_some_and(|holder| holder != peer.pid);
            if !is_said && (is_passed_on || now.since(failed) >= RELEASE_MAX) {
                is_said = true;
                Order::CloseListeners.tell_all(&self.orders);
                self.wait_until(|steps| steps.closed.len() == self.orders.len());
                let refused = Frame::refusal(why);
                let holder = holder.unwrap_or_default();
                let then = format!("until they end; process {holder} accepts");
                self.end_channel(&refused, peer, why, &then);
            }
            if is_said && !leaves && self.is_first.load(Ordering::Acquire) {
                leaves = true;
                Order::Leave.tell_all(&self.orders);
            }
            if is_said && !is_drained && now.since(begin) >= self.shared.settings().drain_max {
                is_drained = true;
                note(
                    Event::Upgrade,
                    format_args!("the clients that are still here are drained"),
                );
                Order::Drain.tell_all(&self.orders);
            }
            reactor::pause(LISTEN_EVERY);
        }
        Order::Accept.tell_all(&self.orders);
        self.progress.steps().is_on = false;
        let told = match is_silent {
            true => Frame::Right,
            false => Frame::refusal(why),
        };
        self.end_channel(&told, peer, why, "and accepts again");
    }

    /// Tells the successor, if it is there, and the log how the hand-over has failed.
    fn end_channel(&self, told: &Frame, peer: Peer, why: &str, then: &str) {
        if let Some(mut channel) = self.lock().take() {
            let _ = channel.send(told, &[]);
        }
        let moved = self.moved_in_the_end();
        note(
            Event::UpgradeFailed,
            format_args!(
                "process {} does not take over any more, with {moved} clients: {why}; this process \
                 goes on with the others, {then}",
                peer.pid
            ),
        );
    }

    /// Clients that have gone, once no group hands over any more: the last word of the other
    /// process may say that it has taken some.
    fn moved_in_the_end(&self) -> u64 {
        self.wait_until(|steps| steps.stopped.len() == self.orders.len());
        self.progress.steps().moved
    }

    fn wait_until(&self, is_so: impl Fn(&Steps) -> bool) {
        let late = Time::now() + STEP_MAX;
        while !is_so(&self.progress.steps()) && Time::now() < late {
            reactor::pause(LISTEN_EVERY);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Channel>> {
        (self.successor.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells where this process listens, and waits until the other one is ready.
    fn welcome(&self, socket: OwnedFd, peer: Peer) -> Result<(), String> {
        let words = |error: std::io::Error| error.to_string();
        let mut channel = Channel::waiting(socket, Some(STEP_MAX)).map_err(words)?;
        let refuse = |channel: &mut Channel, why: String| {
            if channel.is_sent() {
                let _ = channel.send(&Frame::refusal(&why), &[]);
            }
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
        let sockets = self.unix.iter().map(|(_, fd)| fd.as_fd());
        let sockets: Vec<BorrowedFd<'_>> = sockets.chain([self.right.as_fd()]).collect();
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
        // From here on the kernel decides which process accepts where this one ends.
        if !take_released(&self.right) {
            let holder = self.right.holder().unwrap_or_default();
            let why = format!("process {holder} has the right to accept; end that one first");
            return refuse(&mut channel, why);
        }
        self.right.offer();
        let rules = rules::message(&self.shared).and_then(|rules| channel.send(&rules, &[]));
        let sent = rules.and_then(|()| channel.send(&Frame::Right, &[]));
        let sent = sent.map_err(words);
        let why = match sent.and_then(|()| next(&mut channel)) {
            Ok(Frame::Right) => None,
            Ok(Frame::Refused { why }) | Err(why) => Some(why),
            Ok(_) => Some("it has sent something else than that it accepts".into()),
        };
        if let Some(why) = why {
            let refused = refuse(&mut channel, why);
            // One that has just ended may have it for a moment; the next one needs it.
            let _ = take_released(&self.right);
            return refused;
        }
        self.right.give_back();
        channel.wait_at_most(Some(LISTEN_EVERY)).map_err(words)?;
        *self.lock() = Some(channel);
        Ok(())
    }

    /// Waits until the last client has gone, and lets the groups end then.
    ///
    /// # Errors
    /// What has failed before. Behind that the successor is the pool, and nothing of it is looked
    /// at any more: groups that have ended cannot go on.
    fn hand_over(&self, peer: Peer, begin: Time) -> Result<(), String> {
        let (mut said, mut is_drained, mut is_first) = (begin, false, false);
        let mut is_passed_on = false;
        let mut rules = None;
        loop {
            let now = (
                self.shared.scheduling.rules.version(),
                limits_of_users(&self.shared),
            );
            if let Some(channel) = &mut *self.lock()
                && rules.as_ref() != Some(&now)
            {
                // Where that fails, so does what is received.
                let _ = rules::message(&self.shared).and_then(|rules| channel.send(&rules, &[]));
                rules = Some(now);
            }
            match self.lock().as_mut().map(Channel::receive).transpose()? {
                // The main thread has said goodbye: the process ends.
                None => return Ok(()),
                Some(Come::Nothing) => {}
                Some(Come::End) => return Err("it has ended".into()),
                Some(Come::Frame(Frame::Refused { why }, _)) => return Err(why),
                Some(Come::Frame(..)) => return Err("it has sent what it was not asked for".into()),
            }
            // Those that the later process has not got are nobody's.
            if !is_passed_on && self.right.holder().is_some_and(|holder| holder != peer.pid) {
                is_passed_on = true;
                Order::CloseListeners.tell_all(&self.orders);
            }
            let now = Time::now();
            let mut steps = self.progress.steps();
            if !is_first && self.is_first.load(Ordering::Acquire) {
                is_first = true;
                // Counted before the last that came, perhaps.
                steps.clients.clear();
            }
            if let Some(why) = &steps.failed {
                return Err(why.clone());
            }
            let is_counted = steps.clients.len() == self.orders.len();
            let (left, words) = (steps.left_count(), steps.left_words());
            let refusal = steps.refusal.clone().unwrap_or_default();
            drop(steps);
            if is_counted && left == 0 && is_first {
                Order::Leave.tell_all(&self.orders);
                return Ok(());
            }
            let is_late = now.since(begin) >= self.shared.settings().drain_max;
            let drains = left > 0 && is_late && !is_drained;
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

/// Tells the successor that the last client has gone. `false` when there is none.
pub(crate) fn say_goodbye(progress: &Progress, successor: &Mutex<Option<Channel>>) -> bool {
    let channel = (successor.lock().unwrap_or_else(PoisonError::into_inner)).take();
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
