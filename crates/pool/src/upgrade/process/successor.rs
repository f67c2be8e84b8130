//! The new process's end of an upgrade: it asks the old one, tells it when it is ready, and hears
//! how it went.
//!
//! How the old one starts it is here too ([`Started`]): the program that is now at the path of the
//! running one, with its words. Whether it may run at all it finds out by itself, before it asks.
//!
//! Invariant: nothing is asked of the old process before the new one could serve.

use crate::group::shared::{Order, Shared};
use crate::observe::log::{Event, note};
use crate::upgrade::process::{LISTEN_EVERY, STEP_MAX, name_of_process, rules, take_released};
use handover::{Channel, Come, Frame, Peer, VERSION};
use reactor::{Right, Sender, Time};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// The option by which a process is told whose place it takes.
const OPTION: &str = "--upgrade";
/// systemd says in it which process feeds the watchdog: not the new one.
const WATCHDOG_PID: &str = "WATCHDOG_PID";
/// Time for which the other process is listened to while the groups begin.
const GLANCE: Duration = Duration::from_millis(1);

/// Command line of this process.
#[derive(Clone, Debug)]
pub struct Started {
    /// Path of the program, unless the system does not say.
    program: Option<PathBuf>,
    words: Vec<OsString>,
    predecessor: Option<u32>,
}

impl Started {
    /// Start with these words, the program's own name included.
    #[must_use]
    pub fn with(words: Vec<OsString>) -> Started {
        Started {
            // Now: once another file is in its place, the kernel calls this one deleted.
            program: std::env::current_exe().ok(),
            words,
            predecessor: None,
        }
    }

    /// Start in the place of the process with this number, if it is one.
    #[must_use]
    pub fn in_place_of(mut self, predecessor: Option<u32>) -> Started {
        self.predecessor = predecessor;
        self
    }

    /// The process whose place it takes.
    pub(crate) fn predecessor(&self) -> Option<u32> {
        self.predecessor
    }

    /// The words behind the program's name for a process that takes the place of this one.
    fn words_for(&self, pid: u32) -> Vec<OsString> {
        let mut words = Vec::new();
        let mut old = self.words.iter().skip(1);
        while let Some(word) = old.next() {
            if word == OPTION {
                old.next();
            } else if !word.as_encoded_bytes().starts_with(b"--upgrade=") {
                words.push(word.clone());
            }
        }
        words.push(OPTION.into());
        words.push(pid.to_string().into());
        words
    }

    /// Starts the program that is in the place of this one now; it takes the place of this process.
    pub(crate) fn start_successor(&self) {
        let Some(program) = &self.program else {
            return note(
                Event::UpgradeFailed,
                format_args!("the system has not said where the program is"),
            );
        };
        let mut command = Command::new(program);
        let program = program.display();
        command
            .args(self.words_for(std::process::id()))
            .env_remove(WATCHDOG_PID)
            .stdin(Stdio::null());
        let wrong = |why: &dyn std::fmt::Display| {
            note(
                Event::UpgradeFailed,
                format_args!("cannot start {program}: {why}; this process goes on"),
            );
        };
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return wrong(&error),
        };
        let pid = child.id();
        note(
            Event::Upgrade,
            format_args!("SIGUSR2: process {pid} is started from {program}"),
        );
        let wait = move || {
            // It outlives this process unless something is wrong with it.
            if let Ok(status) = child.wait() {
                note(
                    Event::UpgradeFailed,
                    format_args!("process {pid} has ended ({status}); this process goes on"),
                );
            }
        };
        let builder = std::thread::Builder::new().name("successor".into());
        if let Err(error) = builder.spawn(wait) {
            wrong(&error);
        }
    }
}

/// The process whose place this one takes, with what it has said.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) peer: Peer,
    pub(crate) groups: usize,
    pub(crate) tcp: Vec<SocketAddr>,
    pub(crate) unix: Vec<(PathBuf, Arc<OwnedFd>)>,
    /// The right to accept.
    pub(crate) right: Arc<Right>,
    channel: Channel,
    /// The last that it has said, where that came before all groups listened.
    last: Option<Come>,
}

impl Before {
    /// Asks the process with this number what there is to take.
    ///
    /// # Errors
    /// One sentence: why it cannot be succeeded.
    pub(crate) fn ask(pid: u32) -> Result<Before, String> {
        let wrong = |why: String| format!("upgrade: cannot take the place of process {pid}: {why}");
        let words = |error: std::io::Error| wrong(error.to_string());
        let socket = handover::dial(&name_of_process(pid)).map_err(|error| {
            wrong(format!(
                "{error}; expected a pool of the same user, in the same network namespace"
            ))
        })?;
        let peer = handover::peer(&socket).map_err(words)?;
        let own = handover::own();
        if (peer.pid, peer.uid) != (pid, own.uid) {
            return Err(wrong(format!(
                "process {} of user {} has its name",
                peer.pid, peer.uid
            )));
        }
        let mut channel = Channel::waiting(socket, Some(STEP_MAX)).map_err(words)?;
        let hello = channel.send(&Frame::Hello { version: VERSION }, &[]);
        hello.map_err(words)?;
        match channel.receive().map_err(wrong)? {
            Come::Frame(Frame::Welcome { groups, tcp, unix }, mut sockets)
                if sockets.len() == unix.len() + 1 =>
            {
                let right = (sockets.split_off(unix.len()).into_iter()).map(Right::received);
                let right = right.map(Arc::new).next();
                let sockets = sockets.into_iter().map(Arc::new);
                Ok(Before {
                    peer,
                    groups,
                    tcp,
                    unix: unix.into_iter().zip(sockets).collect(),
                    right: right.ok_or_else(|| wrong("the right to accept is missing".into()))?,
                    channel,
                    last: None,
                })
            }
            Come::Frame(Frame::Refused { why }, _) => Err(wrong(why)),
            Come::Frame(..) => Err(wrong("it has not said where it listens".into())),
            Come::End => Err(wrong("it has closed the connection".into())),
            Come::Nothing => Err(wrong(format!(
                "it has said nothing for {} s",
                STEP_MAX.as_secs()
            ))),
        }
    }

    /// The groups wait for what they are given: says so, takes the right to accept, and waits until
    /// all of them listen. Where the other process ends before it has handed over its listeners,
    /// and nobody else serves those who come, the groups open their own.
    ///
    /// # Errors
    /// Why they do not listen: the other process goes on, or an address cannot be had.
    pub(crate) fn await_listeners(
        &mut self,
        listening: &Receiver<Result<(), String>>,
        groups: &[Sender<Order>],
        shared: &Shared,
    ) -> Result<(), String> {
        let wrong = |why: &str| format!("upgrade: process {} {why}", self.peer.pid);
        // Where it is gone already, that is what is received.
        let _ = self.channel.send(&Frame::Ready, &[]);
        let glance = self.channel.wait_at_most(Some(GLANCE));
        glance.map_err(|error| error.to_string())?;
        let stop = Time::now() + STEP_MAX;
        let mut listen = 0;
        while listen < groups.len() {
            match listening.recv_timeout(LISTEN_EVERY) {
                Ok(told) => {
                    told?;
                    listen += 1;
                }
                Err(RecvTimeoutError::Timeout) if Time::now() < stop => {}
                Err(_) => return Err(wrong("has not handed over its listeners")),
            }
            if listen == groups.len() || self.last.is_some() {
                continue;
            }
            match self.channel.receive().map_err(|why| wrong(&why))? {
                Come::Nothing => continue,
                Come::Frame(Frame::Rules(rules), _) => rules::take_over(shared, &rules),
                Come::Frame(Frame::Right, _) if self.right.take_offered() => {
                    let _ = self.channel.send(&Frame::Right, &[]);
                }
                Come::Frame(Frame::Right, _) => {
                    let holder = self.right.holder().unwrap_or_default();
                    let why = format!("process {holder} accepts; end that one first");
                    let _ = self.channel.send(&Frame::refusal(&why), &[]);
                    return Err(wrong(&format!("goes on as before: {why}")));
                }
                Come::End if !take_released(&self.right) => {
                    return Err(wrong("has ended, and another one accepts"));
                }
                Come::End => {
                    note(
                        Event::Warning,
                        format_args!(
                            "{}: those that are missing are opened here",
                            wrong("has ended before it had handed over all of its listeners")
                        ),
                    );
                    Order::Accept.tell_all(groups);
                    self.last = Some(Come::End);
                }
                Come::Frame(Frame::Refused { why }, _) => {
                    return Err(wrong(&format!("goes on as before: {why}")));
                }
                // All is given already. Groups of a process that drains may have ended before, and
                // have given nothing.
                done => {
                    self.last = Some(done);
                    Order::Accept.tell_all(groups);
                }
            }
        }
        Ok(())
    }

    /// Waits in a thread of its own for the end of the other process, says how it went, and sets
    /// `is_over`: nothing more comes from there.
    ///
    /// # Errors
    /// The system's reason.
    pub(crate) fn hear_out(
        mut self,
        is_over: Arc<AtomicBool>,
        groups: Vec<Sender<Order>>,
        shared: Arc<Shared>,
    ) -> Result<(), String> {
        let words = |error: std::io::Error| error.to_string();
        self.channel.wait_at_most(None).map_err(words)?;
        let pid = self.peer.pid;
        let mut last = self.last.take();
        let right = self.right.clone();
        let mut next = move || loop {
            match last.take().map_or_else(|| self.channel.receive(), Ok) {
                Ok(Come::Frame(Frame::Rules(rules), _)) => rules::take_over(&shared, &rules),
                other => return other,
            }
        };
        let mut hear = move || match next() {
            Ok(Come::Frame(Frame::Right, _)) => {
                Order::Keep.tell_all(&groups);
                right.give_back();
                Order::Leave.tell_all(&groups);
                note(
                    Event::UpgradeFailed,
                    format_args!(
                        "process {pid} accepts again, since this one has not answered; this one \
                         ends with its last client"
                    ),
                );
            }
            Ok(Come::Frame(Frame::Done { clients, pause_us }, _)) => note(
                Event::Upgraded,
                format_args!(
                    "process {pid} has handed over {clients} clients; longest pause {} us",
                    pause_us
                ),
            ),
            Ok(Come::Frame(Frame::Refused { why }, _)) => note(
                Event::UpgradeFailed,
                format_args!(
                    "process {pid} keeps the clients that it has until they end ({why}); this \
                     one accepts"
                ),
            ),
            _ => note(
                Event::UpgradeFailed,
                format_args!("process {pid} has ended before it had handed over its clients"),
            ),
        };
        let work = move || {
            hear();
            is_over.store(true, Ordering::Release);
        };
        let builder = std::thread::Builder::new().name("predecessor".into());
        builder.spawn(work).map(|_| ()).map_err(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_is_told_once_whose_place_it_takes() {
        let words = |all: &str| all.split(' ').map(OsString::from).collect::<Vec<_>>();
        let started = |all: &str| Started {
            program: None,
            words: words(all),
            predecessor: None,
        };
        for all in [
            "onramp pool --config a.toml",
            "onramp pool --upgrade 7 --config a.toml",
            "onramp pool --config a.toml --upgrade=7",
        ] {
            let expected = words("pool --config a.toml --upgrade 9");
            assert_eq!(started(all).words_for(9), expected, "{all}");
        }
    }
}
