//! A program in a terminal: the keys that it gets, the size that it finds, the modes it leaves.
//!
//! The terminal is a pseudoterminal of the kernel. It controls nobody's session, so it sends no
//! signals by itself: [`InTerminal::signal`] does.

use crate::guard::Guard;
use crate::onramp::{await_stop, signal, wait_at_most};
use crate::output::Output;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The longest that anything here may take.
const LIMIT: Duration = Duration::from_secs(120);

/// A terminal.
#[derive(Debug)]
pub struct Terminal {
    /// The user's end.
    user: File,
    /// The programs' end.
    programs: OwnedFd,
    output: Output,
}

impl Terminal {
    /// A terminal of this size.
    ///
    /// # Panics
    /// Where the system has none.
    #[must_use]
    pub fn new(columns: u16, lines: u16) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let user = openpt(flags).unwrap();
        grantpt(&user).unwrap();
        unlockpt(&user).unwrap();
        let programs = ioctl_tiocgptpeer(&user, flags).unwrap();
        let user = File::from(user);
        let output = Output::of(user.try_clone().unwrap());
        let terminal = Terminal {
            user,
            programs,
            output,
        };
        terminal.resize(columns, lines);
        terminal
    }

    /// Gives it another size.
    ///
    /// # Panics
    /// Where the system does not.
    pub fn resize(&self, columns: u16, lines: u16) {
        let size = Winsize {
            ws_row: lines,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.user, size).unwrap();
    }

    /// Presses keys.
    ///
    /// # Panics
    /// Where the system does not take them.
    pub fn press(&mut self, keys: &str) {
        self.user.write_all(keys.as_bytes()).unwrap();
    }

    /// Output that was written to it.
    #[must_use]
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Its modes, in words to compare.
    ///
    /// # Panics
    /// Where the system does not say them.
    #[must_use]
    pub fn modes(&self) -> String {
        format!("{:?}", tcgetattr(&self.programs).unwrap())
    }

    /// True if a program gets keys one by one, and none is shown.
    ///
    /// # Panics
    /// Where the system does not say it.
    #[must_use]
    pub fn gives_keys(&self) -> bool {
        let modes = tcgetattr(&self.programs).unwrap().local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Starts a program that writes to it, and reads from it if it `has_keys`.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(&self, binary: &Path, arguments: &[&str], has_keys: bool) -> InTerminal {
        let programs = || self.programs.try_clone().unwrap();
        let mut command = Command::new(binary);
        command.args(arguments).stdout(programs());
        match has_keys {
            true => command.stdin(programs()),
            false => command.stdin(Stdio::null()),
        };
        let mut guard = Guard::new(None);
        let child = command.spawn().unwrap();
        guard.watch(child.id());
        InTerminal { child, guard }
    }
}

/// A program that runs there.
#[derive(Debug)]
pub struct InTerminal {
    child: Child,
    guard: Guard,
}

impl InTerminal {
    /// Sends it a signal.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn signal(&self, which: Signal) {
        signal(&self.child, which);
    }

    /// Waits until it is stopped, as SIGTSTP does.
    ///
    /// # Panics
    /// When it ends instead.
    pub fn wait_until_stopped(&self) {
        await_stop(&self.child);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end in time; it is killed then.
    #[must_use]
    pub fn wait(mut self) -> ExitStatus {
        wait_at_most(&mut self.child, LIMIT)
    }
}

impl Drop for InTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.guard.watch(0);
    }
}
