//! Starts the program under test, as a stranger would.
//!
//! [`Pool`] runs `onramp pool` until it is told to end, [`Target`] does so with `onramp target`;
//! [`run`] runs any command to its end.
//! Whatever happens, no process stays behind.

use crate::guard::Guard;
use crate::output::Output;
use reactor::Address;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// The longest a pool may take to begin to listen, to come to a state or to end: far more than it
/// takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Pause between two questions to a pool for what it knows: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Last lines of the program that a test shows when it fails.
const LINES_SHOWN: usize = 20;

/// Ports for servers of tests lie below those that the kernel gives to outgoing connections: one of
/// those could be taken between the moment when it was found free and that when it is listened on.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// A port on which nobody listens, and which this process has not given out a moment ago.
///
/// # Panics
/// When all are in use.
#[must_use]
pub fn free_port() -> u16 {
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    // Several test programs run at once: each begins elsewhere.
    let first = std::process::id() as usize * 61;
    let next = || {
        let at = (first + GIVEN.fetch_add(1, Ordering::Relaxed)) % PORTS.len();
        PORTS.start + u16::try_from(at).expect("a port")
    };
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let mut ports = std::iter::repeat_with(next).take(PORTS.len());
    ports.find(free).expect("a free port")
}

/// An address of 127.0.0.1.
#[must_use]
pub fn loopback(port: u16) -> Address {
    Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// A child that runs until it is told to end; it ends with this value at the latest.
#[derive(Debug)]
struct Running {
    child: Child,
    guard: Guard,
    stderr: Output,
}

impl Running {
    /// Starts `binary` with these arguments, behind another program where `prefix` names one.
    fn start(prefix: &[&str], binary: &Path, arguments: &[&str]) -> Result<Running, String> {
        let mut command = match prefix.split_first() {
            None => Command::new(binary),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(binary);
                command
            }
        };
        command.args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut guard = Guard::new(None);
        let mut child = command
            .spawn()
            .map_err(|e| format!("{}: {e}", command.get_program().display()))?;
        guard.watch(child.id());
        let stderr = Output::of(child.stderr.take().expect("stderr is a pipe"));
        Ok(Running {
            child,
            guard,
            stderr,
        })
    }

    /// The line with which it says that it listens.
    fn listening(&self) -> Result<String, String> {
        self.stderr.wait_for("listening on", 0, LIMIT)
    }

    /// Waits for its end; its status, and everything it said.
    fn wait(mut self) -> (ExitStatus, String) {
        let status = wait_at_most(&mut self.child, LIMIT);
        (status, self.stderr.whole())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Before it is killed: a test that fails by the pool's fault shows what the pool said.
        if std::thread::panicking() {
            let end = match self.child.try_wait() {
                Ok(Some(status)) => format!("had ended ({status})"),
                _ => "ran".to_string(),
            };
            let (said, left_out) = self.stderr.last(LINES_SHOWN);
            eprintln!("the program {end}; {left_out} lines, and then it said:\n{said}");
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.guard.watch(0);
    }
}

/// A running `onramp pool`.
#[derive(Debug)]
pub struct Pool {
    running: Running,
    /// Address at which it listens.
    pub address: Address,
}

impl Pool {
    /// Starts `binary pool` on a free port with these further arguments and waits until it listens.
    ///
    /// # Errors
    /// What it said, when it does not.
    pub fn start(binary: &Path, arguments: &[&str]) -> Result<Pool, String> {
        Pool::start_behind(&[], binary, arguments)
    }

    /// Starts a pool by another program, as `["prlimit", "--nofile=300:300"]`, which must become
    /// the pool.
    ///
    /// # Errors
    /// As [`Pool::start`].
    pub fn start_behind(
        prefix: &[&str],
        binary: &Path,
        arguments: &[&str],
    ) -> Result<Pool, String> {
        Pool::start_until("listening on", prefix, binary, arguments)
    }

    /// Starts a pool and waits for another line of its output.
    ///
    /// # Errors
    /// As [`Pool::start`].
    pub fn start_until(
        line: &str,
        prefix: &[&str],
        binary: &Path,
        arguments: &[&str],
    ) -> Result<Pool, String> {
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let first = ["pool", "--listen", &listen];
        let running = Running::start(prefix, binary, &[&first, arguments].concat())?;
        running.stderr.wait_for(line, 0, LIMIT)?;
        let address = loopback(port);
        Ok(Pool { running, address })
    }

    /// Starts `binary pool`, whose server is not there, and waits until it says `part`.
    ///
    /// # Errors
    /// What it said, when it does not.
    pub fn start_waiting(binary: &Path, arguments: &[&str], part: &str) -> Result<Pool, String> {
        Pool::start_until(part, &[], binary, arguments)
    }

    /// The number of its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.child.id()
    }

    /// Output so far.
    #[must_use]
    pub fn said(&self) -> String {
        self.running.stderr.text()
    }

    /// Waits for a line with `part` in it.
    ///
    /// # Errors
    /// What it said instead.
    pub fn wait_for(&self, part: &str) -> Result<String, String> {
        self.running.stderr.wait_for(part, 0, LIMIT)
    }

    /// Asks for the census again and again until it has `part` in it.
    ///
    /// # Errors
    /// What it said instead, after the longest time that anything here may take.
    pub fn wait_for_census(&self, part: &str) -> Result<String, String> {
        self.ask_until(Signal::USR1, "event=census", |line| line.contains(part))
    }

    /// Asks by a signal again and again, until the line with `about` that answers is as wanted.
    fn ask_until(
        &self,
        ask: Signal,
        about: &str,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<String, String> {
        let (stderr, begun, mut pause) = (&self.running.stderr, Instant::now(), PAUSE_MIN);
        loop {
            let asked = stderr.count();
            signal(&self.running.child, ask);
            let line = stderr.wait_for(about, asked, LIMIT)?;
            if is_wanted(&line) {
                return Ok(line);
            }
            if begun.elapsed() > LIMIT {
                return Err(format!("after {LIMIT:?} still {line:?}: {}", self.said()));
            }
            // What it tells changes by its clock and its threads: there is no event to wait for.
            std::thread::sleep(pause);
            pause = PAUSE_MAX.min(2 * pause);
        }
    }

    /// Asks it to print every client.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn ask_for_report(&self) {
        signal(&self.running.child, Signal::QUIT);
    }

    /// The pool's report of the client with this number in its greeting, once it has read back what
    /// the client's last statement has left.
    ///
    /// # Errors
    /// What it said instead.
    pub fn report_of(&self, client: u32) -> Result<String, String> {
        let about = format!("client {client} account");
        self.ask_until(Signal::QUIT, &about, |line| !line.contains(" finishing "))
    }

    /// Waits until its one group has no question of its own left: what a client's next statement
    /// finds then is what it finds when its client takes its time.
    ///
    /// # Panics
    /// When the pool is gone, or never has done.
    pub fn let_finish(&self) {
        let has_done = |line: &str| line.contains("being made ready: 0");
        let asked = self.ask_until(Signal::QUIT, "group 0: ", has_done);
        asked.unwrap_or_else(|why| panic!("{why}"));
    }

    /// Asks for the report until it has read all code that was defined through it.
    ///
    /// # Errors
    /// What it said instead, after the longest time that anything here may take.
    pub fn wait_for_definitions(&self) -> Result<(), String> {
        let about = "triggers and views that matter";
        let has_read = |line: &str| line.contains(" 0 definitions");
        self.ask_until(Signal::QUIT, about, has_read).map(drop)
    }

    /// Starts `binary pool` with these arguments in the place of this one, and waits until it
    /// listens there.
    ///
    /// # Errors
    /// What it said, when it does not.
    pub fn succeed(&self, binary: &Path, arguments: &[&str]) -> Result<Pool, String> {
        Pool::in_place_of((self.pid(), &self.address), binary, arguments)
    }

    /// Watches the process with this number, which listens there.
    ///
    /// # Errors
    /// As [`Pool::succeed`].
    pub fn in_place_of(
        place: (u32, &Address),
        binary: &Path,
        arguments: &[&str],
    ) -> Result<Pool, String> {
        let pool = Pool::begin_in_place_of(place, binary, arguments)?;
        pool.running.listening()?;
        Ok(pool)
    }

    /// Starts it without waiting for anything.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub fn begin_in_place_of(
        (pid, address): (u32, &Address),
        binary: &Path,
        arguments: &[&str],
    ) -> Result<Pool, String> {
        let (listen, pid) = (address.to_string(), pid.to_string());
        let first = ["pool", "--listen", &listen, "--upgrade", &pid];
        let running = Running::start(&[], binary, &[&first, arguments].concat())?;
        let address = address.clone();
        Ok(Pool { running, address })
    }

    /// Makes it start the program that is in its place, which takes over.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn upgrade(&self) {
        signal(&self.running.child, Signal::USR2);
    }

    /// Asks it to drain and end.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn terminate(&self) {
        signal(&self.running.child, Signal::TERM);
    }

    /// Sends SIGHUP, as a terminal that closes does, and waits for the line about it.
    ///
    /// # Errors
    /// What it said instead.
    pub fn hang_up(&self) -> Result<String, String> {
        let from = self.running.stderr.count();
        signal(&self.running.child, Signal::HUP);
        self.running.stderr.wait_for("SIGHUP", from, LIMIT)
    }

    /// The number of its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.child.id()
    }

    /// True while it runs.
    pub fn is_running(&mut self) -> bool {
        let status = self.running.child.try_wait();
        status.is_ok_and(|status| status.is_none())
    }

    /// Waits for its end; its status, and everything it said.
    ///
    /// # Panics
    /// When it does not end in time; it is killed then.
    pub fn wait(self) -> (ExitStatus, String) {
        self.running.wait()
    }
}

/// A running `onramp target`.
#[derive(Debug)]
pub struct Target {
    running: Running,
    /// Address at which it listens, as `HOST:PORT`.
    pub address: String,
}

impl Target {
    /// Starts `binary target` of this kind on a free port with these further arguments and waits
    /// until it listens.
    ///
    /// # Errors
    /// What it said, when it does not.
    pub fn start(binary: &Path, kind: &str, arguments: &[&str]) -> Result<Target, String> {
        let first = ["target", kind, "--listen", "127.0.0.1:0"];
        let running = Running::start(&[], binary, &[&first, arguments].concat())?;
        let line = running.listening()?;
        let address = line.rsplit(' ').next().unwrap_or_default().to_owned();
        Ok(Target { running, address })
    }

    /// Sends it the signals with which a pool is asked for its census and for an upgrade.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn signal_as_a_pool(&self) {
        signal(&self.running.child, Signal::USR1);
        signal(&self.running.child, Signal::USR2);
    }

    /// Tells it to end; its status, and everything it said.
    ///
    /// # Panics
    /// When it is gone already, or does not end in time.
    pub fn end(self) -> (ExitStatus, String) {
        signal(&self.running.child, Signal::TERM);
        self.running.wait()
    }
}

/// Result of a command that ran to its end.
#[derive(Debug)]
pub struct Ran {
    /// Its status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs `binary` with these arguments to its end.
///
/// # Panics
/// When it cannot be started or does not end within `limit`.
#[must_use]
pub fn run(binary: &Path, arguments: &[&str], limit: Duration) -> Ran {
    let mut command = Command::new(binary);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}", binary.display()));
    let mut guard = Guard::new(None);
    guard.watch(child.id());
    let stdout = Output::of(child.stdout.take().expect("stdout is a pipe"));
    let stderr = Output::of(child.stderr.take().expect("stderr is a pipe"));
    let status = wait_at_most(&mut child, limit);
    guard.watch(0);
    Ran {
        status,
        stdout: stdout.whole(),
        stderr: stderr.whole(),
    }
}

impl Ran {
    /// Itself, which has ended with this status.
    ///
    /// # Panics
    /// When it has not.
    #[track_caller]
    pub fn ends(self, code: i32) -> Ran {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        self
    }
}

/// Asks a program to end, as `kill` does.
pub fn terminate(child: &Child) {
    signal(child, Signal::TERM);
}

/// Asks a process to end that is no child of this one.
///
/// # Panics
/// When there is none with this number.
pub fn terminate_process(pid: i32) {
    let pid = Pid::from_raw(pid).expect("a number of a process");
    kill_process(pid, Signal::TERM).expect("the process runs");
}

/// Sends a signal to a child that has not been waited for.
pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    kill_process(pid, signal).expect("a child that was not waited for can be signalled");
}

/// Waits until a signal has stopped a child: until none of its threads runs any more.
///
/// # Panics
/// When it ends instead.
pub(crate) fn await_stop(child: &Child) {
    let state = waitpid(Some(Pid::from_child(child)), WaitOptions::UNTRACED).unwrap();
    assert!(state.is_some_and(|(_, state)| state.stopped()), "{state:?}");
}

/// Waits for a child's end; one that takes longer is killed, and the test fails.
pub(crate) fn wait_at_most(child: &mut Child, limit: Duration) -> ExitStatus {
    let pid = Pid::from_child(child);
    let ended = (Mutex::new(false), Condvar::new());
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let guard = ended.0.lock().unwrap();
            let (guard, timeout) = ended
                .1
                .wait_timeout_while(guard, limit, |ended| !*ended)
                .unwrap();
            if timeout.timed_out() && !*guard {
                let _ = kill_process(pid, Signal::KILL);
            }
            timeout.timed_out()
        });
        let status = child.wait().expect("a child can be waited for");
        *ended.0.lock().unwrap() = true;
        ended.1.notify_all();
        assert!(
            !killer.join().unwrap(),
            "the process did not end within {limit:?}: killed"
        );
        status
    })
}
