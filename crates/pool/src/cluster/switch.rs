//! The switchover: an operator has another server written to, without an error for clients.
//!
//! The console waits until the new one has what the old one has, so that it is held for as short as
//! can be. Then it holds what is new, and waits for the end of all transactions. The old writer is
//! set read-only, the new one is waited for until it has everything, by the old one's GTIDs, and
//! promoted: by the pool's own statements, or by a program of the operator's. Galera's nodes all
//! take writes: there nothing of this is needed. A group elects whom it is asked to, and Aurora
//! whom the program asks for: they see to it themselves that there is one writer.
//!
//! Invariant: the old writer takes writes again only if it is certain that the new one does not:
//! behind a promotion that failed it is set read-only first.

use crate::cluster::{Cluster, now_ms};
use crate::server::probe::{Connection, ProbeError, log_in_at};
use ::cluster::{Kind, ServerId, State};
use reactor::Time;
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use wire::handshake::{Greeting, is_of_mariadb};

/// Time within which a server has to have everything that does not replicate from the writer.
const UNFOLLOWED_MAX: Duration = Duration::from_secs(1);
/// Advice about one that has not.
const UNFOLLOWED: &str = ": it does not replicate from the writer: have it do so first (CHANGE \
    MASTER TO, CHANGE REPLICATION SOURCE TO; promote_command may, at each switchover)";
/// Interval at which a program that runs is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A switchover that has begun; there is one at a time.
pub(crate) struct Switch<'a> {
    from: ServerId,
    to: ServerId,
    _only: MutexGuard<'a, ()>,
}

/// Connections to the old and the new writer, opened before anything is held.
pub(crate) struct Steps {
    old: Connection,
    new: Connection,
    texts: &'static Texts,
    /// Time that the new writer is given for what it lacks.
    longest: Duration,
}

/// Time that a switchover took; or for which the new writer, which is in force, was not reached.
pub(crate) type Switched = Result<Duration, Duration>;

/// Failure of a promotion.
enum Unpromoted {
    /// Certainty that the new server takes no writes.
    Surely(String),
    /// Possibility that it takes writes.
    Perhaps(String),
}

/// Statements of one product.
struct Texts {
    hold: &'static str,
    release: &'static str,
    position: &'static str,
    /// Waits for a position, for so many seconds.
    wait: fn(&str, u64) -> String,
    /// The position that was replicated, where a wait compares numbers alone: a server of another
    /// history may have higher ones.
    replicated: Option<&'static str>,
    stop: &'static str,
    start: &'static str,
    promote: [&'static str; 2],
}

const MARIADB: Texts = Texts {
    hold: "SET GLOBAL read_only=1",
    release: "SET GLOBAL read_only=0",
    position: "SELECT @@gtid_binlog_pos",
    wait: |position, seconds| format!("SELECT MASTER_GTID_WAIT('{position}',{seconds})"),
    replicated: Some("SELECT @@gtid_slave_pos"),
    stop: "STOP SLAVE",
    start: "START SLAVE",
    promote: ["RESET SLAVE ALL", "SET GLOBAL read_only=0"],
};

const MYSQL: Texts = Texts {
    hold: "SET GLOBAL super_read_only=1",
    release: "SET GLOBAL super_read_only=0,GLOBAL read_only=0",
    position: "SELECT @@global.gtid_executed",
    wait: |position, seconds| format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{position}',{seconds})"),
    replicated: None,
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
            Err(TryLockError::WouldBlock) => {
                return Err("another switchover is under way, or the pool is ending".into());
            }
        };
        let to = self.named(name)?;
        let known = self.known();
        let Some(from) = known.view.writer else {
            return Err(format!("no server is written to now: {}", known.view.why));
        };
        let state = &known.view.servers[to.index()];
        match state.state {
            State::Writer | State::Full => Err(format!("'{name}' is written to already")),
            State::Reader | State::Unused => Ok(Switch {
                from,
                to,
                _only: only,
            }),
            other => Err(format!("'{name}' is {}: {}", other.word(), state.why)),
        }
    }

    /// Waits for the end of a switchover that is under way, and lets none begin while the result is
    /// held: a process that ended amid one would leave the old writer read-only. The steps of one
    /// are bounded.
    pub(crate) fn end_switches(&self) -> MutexGuard<'_, ()> {
        let only = self.switching.lock();
        only.unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn switch_max(&self) -> Duration {
        self.switch_max
    }

    /// Opens what the switchover needs, and waits until the new server has what the old one has by
    /// now. Statements go on meanwhile: while they are held, only what came since is waited for.
    ///
    /// # Errors
    /// A sentence: nothing has been changed.
    pub(crate) fn approach(&self, switch: &Switch<'_>) -> Result<Option<Steps>, String> {
        if !matches!(self.kind(), Kind::Replication | Kind::Rds) {
            return Ok(None);
        }
        let (old, greeting) = self.connect(switch.from)?;
        let (new, _) = self.connect(switch.to)?;
        let is_mariadb = is_of_mariadb(&String::from_utf8_lossy(&greeting.version));
        let texts = if is_mariadb { &MARIADB } else { &MYSQL };
        let is_followed = {
            let known = self.known();
            known
                .view
                .is_followed_by(switch.to, &known.settings, now_ms())
        };
        let (longest, hint) = match is_followed {
            true => (self.switch_max, ""),
            false => (self.switch_max.min(UNFOLLOWED_MAX), UNFOLLOWED),
        };
        let mut steps = Steps {
            old,
            new,
            texts,
            longest,
        };
        catch_up(&mut steps).map_err(|why| why + hint)?;
        Ok(Some(steps))
    }

    /// Switches over while no statement begins. Gives the time that it took, or the time within
    /// which the new writer could not be reached.
    ///
    /// # Errors
    /// A sentence: the old writer is written to on.
    pub(crate) fn carry_out(
        &self,
        switch: &Switch<'_>,
        steps: Option<Steps>,
    ) -> Result<Switched, String> {
        let begun = Time::now();
        let moved = match (self.kind(), steps) {
            (_, Some(steps)) => self.exchange(switch, steps),
            (Kind::GroupReplication, None) => self.elect(switch),
            (Kind::Aurora, None) => match self.run_command(switch) {
                Ok(false) => Err("with Aurora promote_command must do it".into()),
                done => done.map(|_| ()),
            },
            (_, None) => Ok(()),
        };
        self.ask_now();
        moved?;
        {
            let known = &mut *self.known();
            let why = "an operator has switched over to it";
            let view = (known.view).switched(switch.to, why, now_ms());
            self.put_in_force(known, view);
        }
        Ok(self.await_writer(begun))
    }

    /// Waits until statements can go to the writer.
    fn await_writer(&self, begun: Time) -> Switched {
        loop {
            let now = Time::now();
            let took = now.since(begun);
            if self.upstream.address(now).is_ok() {
                return Ok(took);
            }
            if took > self.switch_max * 4 {
                return Err(took);
            }
            reactor::pause(LOOK_EVERY);
        }
    }

    /// A connection to a server, on which a read that waits for the end of a step ends behind it.
    fn connect(&self, id: ServerId) -> Result<(Connection, Greeting), String> {
        let longest = self.switch_max + Duration::from_secs(2);
        let place = self.place(id).ok_or("the server is known no more")?;
        log_in_at(&place, &self.settings(), longest, None).map_err(|error| error.why)
    }

    /// Elects the new server in the replication group.
    fn elect(&self, switch: &Switch<'_>) -> Result<(), String> {
        if self.run_command(switch)? {
            return Ok(());
        }
        let (mut new, _) = self.connect(switch.to)?;
        let elected = new.query("SELECT group_replication_set_as_primary(@@server_uuid)");
        elected.map(|_| ()).map_err(|error| error.why)
    }

    /// Makes the old writer read-only, and then the new server writable.
    fn exchange(&self, switch: &Switch<'_>, mut steps: Steps) -> Result<(), String> {
        let held = steps.old.query(steps.texts.hold);
        let promoted = held
            .map_err(|error| Unpromoted::Surely(error.why))
            .and_then(|_| self.promote(switch, &mut steps));
        match promoted {
            Ok(()) => Ok(()),
            Err(Unpromoted::Surely(why)) => Err(release(&mut steps, why)),
            Err(Unpromoted::Perhaps(why)) => match steps.new.query(steps.texts.hold) {
                Ok(_) => Err(release(&mut steps, why)),
                Err(_) => Err(format!(
                    "{why}; the old writer stays read-only, since the new one may take writes: \
                     look at both (SHOW SERVERS)"
                )),
            },
        }
    }

    fn promote(&self, switch: &Switch<'_>, steps: &mut Steps) -> Result<(), Unpromoted> {
        let surely = |error: ProbeError| Unpromoted::Surely(error.why);
        catch_up(steps).map_err(Unpromoted::Surely)?;
        let Steps { new, texts, .. } = steps;
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
            .process_group(0)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let begun = Time::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(true),
                Ok(Some(status)) => return Err(failed(status.to_string())),
                Err(error) => return Err(failed(error.to_string())),
                Ok(None) if Time::now().since(begun) > self.switch_max => {
                    // What it has started ends with it.
                    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                        let _ = kill_process_group(group, Signal::KILL);
                    }
                    let _ = child.wait();
                    let within = self.switch_max.as_millis();
                    return Err(failed(format!("it did not end within {within} ms")));
                }
                Ok(None) => reactor::pause(LOOK_EVERY),
            }
        }
    }
}

/// Waits until the new server has everything that the old one has.
fn catch_up(steps: &mut Steps) -> Result<(), String> {
    let Steps {
        old, new, texts, ..
    } = steps;
    let why = |error: ProbeError| error.why;
    let position = first(&old.query(texts.position).map_err(why)?);
    if position.is_empty() {
        let why = "the old writer has no GTIDs (log_bin, gtid_mode), so that nobody can tell \
                   when the new one has everything";
        return Err(why.into());
    }
    let wait = (texts.wait)(
        &position.replace(['\n', '\''], ""),
        steps.longest.as_secs().max(1),
    );
    if first(&new.query(&wait).map_err(why)?) != "0" {
        return Err(format!(
            "the new server has not caught up within {} ms",
            steps.longest.as_millis()
        ));
    }
    if let Some(question) = texts.replicated {
        let replicated = first(&new.query(question).map_err(why)?);
        if !has_all(&replicated, &position) {
            return Err(format!(
                "the new server has other transactions than the old one: it has replicated \
                 {replicated}, and the old one is at {position}"
            ));
        }
    }
    Ok(())
}

/// True if what was replicated ends, in each domain of a position of MariaDB, in a transaction of
/// the server that the position names, that one or a later one.
fn has_all(replicated: &str, position: &str) -> bool {
    let gtids = |text: &str| -> Vec<Vec<u64>> {
        let numbers = |gtid: &str| gtid.split('-').flat_map(|n| n.trim().parse()).collect();
        text.split_terminator(',').map(numbers).collect()
    };
    let replicated = gtids(replicated);
    gtids(position).iter().all(|wanted| {
        let is_there = |had: &Vec<u64>| had[..2] == wanted[..2] && had[2..] >= wanted[2..];
        (replicated.iter()).any(|had| had.len() == 3 && wanted.len() == 3 && is_there(had))
    })
}

/// Lets the old writer take writes again, and says why.
fn release(Steps { old, texts, .. }: &mut Steps, why: String) -> String {
    match old.query(texts.release) {
        Ok(_) => why,
        Err(error) => format!("{why}; {}", error.why),
    }
}

/// The first value of an answer.
fn first(rows: &[Vec<session::text::Text>]) -> String {
    let value = rows.first().and_then(|row| row.first());
    value.map_or(String::new(), |value| {
        String::from_utf8_lossy(value).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_had_by_who_has_replicated_its_transactions() {
        for (replicated, position, expected) in [
            ("0-1-5", "0-1-5", true),
            ("0-1-6", "0-1-5", true),
            ("0-1-4", "0-1-5", false),
            ("0-2-900", "0-1-5", false),
            ("1-1-5", "0-1-5", false),
            ("3-7-2,0-1-5", "0-1-5,3-7-2", true),
            ("0-1-5", "0-1-5,3-7-2", false),
            ("", "0-1-5", false),
            ("", "", true),
            ("0-1", "0-1", false),
        ] {
            assert_eq!(has_all(replicated, position), expected, "{replicated}");
        }
    }
}
