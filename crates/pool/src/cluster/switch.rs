//! The switchover: an operator has another server written to, without an error for clients.
//!
//! The console holds what is new, and waits for the end of all transactions. Then the old writer is
//! set read-only, the new one is waited for until it has everything, by the old one's GTIDs, and
//! promoted: by the pool's own statements, or by a program of the operator's. Galera's nodes all
//! take writes: there nothing of this is needed.
//!
//! Invariant: the old writer takes writes again only if it is certain that the new one does not.

use crate::cluster::{Cluster, now_ms};
use crate::server::probe::{Connection, ProbeError, log_in_at};
use ::cluster::{Kind, ServerId, State};
use reactor::Time;
use std::process::{Command, Stdio};
use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use wire::handshake::is_of_mariadb;

/// Interval at which a program that runs is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A switchover that has begun; there is one at a time.
pub(crate) struct Switch<'a> {
    from: ServerId,
    to: ServerId,
    _only: MutexGuard<'a, ()>,
}

/// Failure of a promotion.
enum Unpromoted {
    /// The new server takes no writes.
    Surely(String),
    /// It may take writes.
    Perhaps(String),
}

/// Statements of one product.
struct Texts {
    hold: &'static str,
    release: &'static str,
    position: &'static str,
    /// Waits for a position, for so many seconds.
    wait: fn(&str, u64) -> String,
    stop: &'static str,
    start: &'static str,
    promote: [&'static str; 2],
}

const MARIADB: Texts = Texts {
    hold: "SET GLOBAL read_only=1",
    release: "SET GLOBAL read_only=0",
    position: "SELECT @@gtid_binlog_pos",
    wait: |position, seconds| format!("SELECT MASTER_GTID_WAIT('{position}',{seconds})"),
    stop: "STOP SLAVE",
    start: "START SLAVE",
    promote: ["RESET SLAVE ALL", "SET GLOBAL read_only=0"],
};

const MYSQL: Texts = Texts {
    hold: "SET GLOBAL super_read_only=1",
    release: "SET GLOBAL super_read_only=0,GLOBAL read_only=0",
    position: "SELECT @@global.gtid_executed",
    wait: |position, seconds| format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{position}',{seconds})"),
    stop: "STOP REPLICA",
    start: "START REPLICA",
    promote: [
        "RESET REPLICA ALL",
        "SET GLOBAL super_read_only=0,GLOBAL read_only=0",
    ],
};

impl Cluster {
    /// Begins to switch over to the server of this name.
    ///
    /// # Errors
    /// A sentence: why that cannot be now.
    pub(crate) fn begin_switch(&self, name: &str) -> Result<Switch<'_>, String> {
        let only = match self.switching.try_lock() {
            Ok(only) => only,
            Err(TryLockError::Poisoned(only)) => PoisonError::into_inner(only),
            Err(TryLockError::WouldBlock) => return Err("another switchover is under way".into()),
        };
        let to = self.named(name)?;
        let known = self.known();
        let Some(from) = known.view.writer else {
            return Err(format!("no server is written to now: {}", known.view.why));
        };
        let state = &known.view.servers[to.index()];
        match state.state {
            State::Writer => Err(format!("'{name}' is written to already")),
            State::Reader | State::Unused => Ok(Switch {
                from,
                to,
                _only: only,
            }),
            other => Err(format!("'{name}' is {}: {}", other.word(), state.why)),
        }
    }

    pub(crate) fn switch_max(&self) -> Duration {
        self.switch_max
    }

    /// Switches over while no statement begins. Gives the time that it took.
    ///
    /// # Errors
    /// A sentence: the old writer is written to on.
    pub(crate) fn carry_out(&self, switch: &Switch<'_>) -> Result<Duration, String> {
        let begun = Time::now();
        if self.kind() != Kind::Galera {
            let exchanged = self.exchange(switch);
            self.ask_now();
            exchanged?;
        }
        {
            let known = &mut *self.known();
            let why = "an operator has switched over to it";
            let view = (known.view).switched(switch.to, why, now_ms());
            self.put_in_force(known, view);
        }
        self.await_writer(begun)
    }

    /// Waits until statements can go to the writer.
    fn await_writer(&self, begun: Time) -> Result<Duration, String> {
        loop {
            let now = Time::now();
            if self.upstream.address(now).is_ok() || now.since(begun) > self.switch_max * 4 {
                return Ok(now.since(begun));
            }
            reactor::pause(LOOK_EVERY);
        }
    }

    /// Makes the old writer read-only, and then the new server writable.
    fn exchange(&self, switch: &Switch<'_>) -> Result<(), String> {
        let connect = |id: ServerId| {
            let place = &self.members[id.index()].place;
            // A read that waits for the end of a step ends behind it.
            let longest = self.switch_max + Duration::from_secs(2);
            log_in_at(place, &self.settings(), longest).map_err(|error| error.why)
        };
        let (mut old, greeting) = connect(switch.from)?;
        let (mut new, _) = connect(switch.to)?;
        let is_mariadb = is_of_mariadb(&String::from_utf8_lossy(&greeting.version));
        let texts = if is_mariadb { &MARIADB } else { &MYSQL };
        let held = old.query(texts.hold).map_err(|error| error.why);
        let promoted = held
            .map_err(Unpromoted::Surely)
            .and_then(|_| self.promote(switch, texts, &mut old, &mut new));
        match promoted {
            Ok(()) => Ok(()),
            Err(Unpromoted::Surely(why)) => match old.query(texts.release) {
                Ok(_) => Err(why),
                Err(error) => Err(format!("{why}; '{}' failed: {}", texts.release, error.why)),
            },
            Err(Unpromoted::Perhaps(why)) => Err(format!(
                "{why}; the old writer stays read-only, since the new one may take writes: look \
                 at both (SHOW SERVERS)"
            )),
        }
    }

    fn promote(
        &self,
        switch: &Switch<'_>,
        texts: &Texts,
        old: &mut Connection,
        new: &mut Connection,
    ) -> Result<(), Unpromoted> {
        let surely = |error: ProbeError| Unpromoted::Surely(error.why);
        let position = first(&old.query(texts.position).map_err(surely)?);
        if position.is_empty() {
            let why = "the old writer has no GTIDs (log_bin, gtid_mode), so that nobody can tell \
                       when the new one has everything";
            return Err(Unpromoted::Surely(why.into()));
        }
        let wait = (texts.wait)(
            &position.replace(['\n', '\''], ""),
            self.switch_max.as_secs().max(1),
        );
        if first(&new.query(&wait).map_err(surely)?) != "0" {
            let within = self.switch_max.as_millis();
            let why = format!("the new server has not caught up within {within} ms");
            return Err(Unpromoted::Surely(why));
        }
        if self.run_command(switch).map_err(Unpromoted::Perhaps)? {
            return Ok(());
        }
        new.query(texts.stop).map_err(surely)?;
        let [reset, release] = texts.promote;
        if let Err(error) = new.query(reset) {
            // As it was, as far as that can be.
            let _ = new.query(texts.start);
            return Err(surely(error));
        }
        let released = new.query(release).map(|_| ());
        released.map_err(|error| Unpromoted::Perhaps(error.why))
    }

    /// Runs the operator's program; `false` where there is none.
    fn run_command(&self, switch: &Switch<'_>) -> Result<bool, String> {
        let Some((program, arguments)) = self.promote_command.split_first() else {
            return Ok(false);
        };
        let [old, new] = [switch.from, switch.to]
            .map(|id| self.known().settings.servers[id.index()].address.clone());
        let failed = |why: String| format!("promote_command: {program}: {why}");
        let mut child = Command::new(program)
            .args(arguments)
            .env("ONRAMP_OLD", old)
            .env("ONRAMP_NEW", new)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let begun = Time::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(true),
                Ok(Some(status)) => return Err(failed(status.to_string())),
                Err(error) => return Err(failed(error.to_string())),
                Ok(None) if Time::now().since(begun) > self.switch_max => {
                    let _ = child.kill();
                    let _ = child.wait();
                    let within = self.switch_max.as_millis();
                    return Err(failed(format!("it did not end within {within} ms")));
                }
                Ok(None) => reactor::pause(LOOK_EVERY),
            }
        }
    }
}

/// The first value of an answer.
fn first(rows: &[Vec<session::text::Text>]) -> String {
    let value = rows.first().and_then(|row| row.first());
    value.map_or(String::new(), |value| {
        String::from_utf8_lossy(value).into_owned()
    })
}
