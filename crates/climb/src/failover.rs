//! The scenarios `failover` and `switchover`: a writer that dies or is changed for another as
//! planned, and what its clients see of it, by each way to it.
//!
//! The problem: "what happens to my clients when the primary dies?" is answered by no figure of a
//! ladder. The mechanism: for each way, two private MariaDB servers, the second a semi-synchronous
//! replica of the first; clients that update a row of their own, over and over, as an application
//! does whose driver connects again. After [`CALM`] the first is killed, and the second promoted
//! at once, as an orchestrator would; or the first is set read-only, and the second promoted once
//! it has everything, by the pool's `SWITCH TO` or an operator's script. Each answer is noted with
//! its time.
//!
//! The counts use no figures of the pool or of HAProxy: each client counts the updates that were
//! reported to it as done, and the rows of the second server show how many were.

mod clients;
mod pair;
mod picture;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path as FilePath, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::child::{Child, Interrupt};
use crate::evidence::Host;
use crate::failover::clients::{Course, Told};
use crate::failover::pair::Pair;
use crate::format;
use crate::machine::Machine;
use crate::options::{Plan, Scenario};
use crate::peers;
use crate::progress::Progress;
use crate::scratch::Scratch;
use crate::server::{Kind, Programs, free_loopback_port};

/// Time before the writer is killed.
const CALM: Duration = Duration::from_secs(3);
/// Clients, where the user names no rung.
const CLIENTS: u32 = 64;
/// Most clients: each is a thread, and a connection of a server.
const CLIENTS_MAX: u32 = 1_000;
/// Longest wait for a program to listen.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Time for a program to end.
const GRACE: Duration = Duration::from_secs(5);

/// A way from the clients to the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    /// Driver with both addresses, which connects to the other one after an error.
    Direct,
    /// `HAProxy` with health checks, the second server as its backup.
    HaProxy,
    /// MySQL Router with both addresses, of which the first that is there is used.
    Router,
    /// `onramp pool` with both servers.
    Onramp,
}

impl Way {
    const ALL: [Way; 4] = [Way::Direct, Way::HaProxy, Way::Router, Way::Onramp];

    fn name(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::HaProxy => "haproxy",
            Way::Router => "router",
            Way::Onramp => "onramp",
        }
    }
}

/// One way, measured.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) way: Way,
    #[serde(flatten)]
    pub(crate) told: Told,
    /// Updates of which a client was told that they were done, and that the new writer has not.
    pub(crate) lost: u64,
    /// Milliseconds from the beginning of the change to the end of the promotion.
    pub(crate) promoted_ms: u64,
}

/// All of the evidence.
#[derive(Debug, Serialize)]
struct Evidence<'a> {
    scenario: &'static str,
    host: &'a Host,
    clients: u32,
    changed_ms: u64,
    outcomes: &'a [Outcome],
}

/// Measures each way that is installed, and writes table, evidence and picture.
///
/// # Errors
/// No MariaDB, a program that does not start, a file that cannot be written.
pub(crate) fn climb(
    plan: &Plan,
    interrupt: &Interrupt,
    progress: &mut Progress<'_>,
    report: &mut dyn Write,
) -> Result<()> {
    let raw = &plan.raw;
    let scenario = raw.scenario.unwrap_or(Scenario::Failover);
    anyhow::ensure!(
        plan.target.is_none(),
        "--scenario {} changes the writer: it takes no --target",
        scenario.name()
    );
    let programs = Programs::find(Kind::Mariadb, raw.mariadb_dir.as_deref())?;
    let onramp = match &raw.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().context("the path of this program is not known")?,
    };
    let count = *raw.rungs.first().unwrap_or(&CLIENTS);
    anyhow::ensure!(count <= CLIENTS_MAX, "at most {CLIENTS_MAX} clients here");
    let host = Host::of(&Machine::read(), programs.version.clone());
    let mut outcomes = Vec::new();
    for way in Way::ALL {
        let name = way.name();
        if (way, scenario) == (Way::Router, Scenario::Switchover) {
            progress.line("climb: router, with fixed addresses, has no switchover");
            continue;
        }
        let scratch = Scratch::make(raw.scratch_dir.as_deref(), raw.keep_scratch)?;
        let mut pair = Pair::start(&programs, scratch.path(), count, interrupt)?;
        let Some(front) = Front::start(way, &pair, &scratch, &onramp, plan, interrupt)? else {
            progress.line(&format!("climb: {name} is not installed, and left out"));
            continue;
        };
        progress.line(&format!(
            "climb: {name}, {count} clients, {}",
            scenario.name()
        ));
        let course = Course::begin(&front.ports, pair.password(), count)?;
        await_time(course.begun() + CALM, interrupt)?;
        let begun = Instant::now();
        match scenario {
            Scenario::Switchover => front.switch_over(way, &pair)?,
            _ => {
                pair.kill_writer();
                pair.promote(interrupt)?;
            }
        }
        let promoted = begun.elapsed();
        await_time(begun + Duration::from_secs(raw.time.into()), interrupt)?;
        let told = course.end();
        let lost = told.done.saturating_sub(pair.updates()?);
        let outcome = Outcome {
            way,
            told,
            lost,
            promoted_ms: milliseconds(promoted),
        };
        progress.line(&format!("climb: {}", words(&outcome)));
        outcomes.push(outcome);
        drop(front);
    }
    let evidence = Evidence {
        scenario: scenario.name(),
        host: &host,
        clients: count,
        changed_ms: milliseconds(CALM),
        outcomes: &outcomes,
    };
    let mut text = serde_json::to_string_pretty(&evidence).context("the evidence is no JSON")?;
    text.push('\n');
    write_file(&raw.out_json, &text)?;
    write_file(
        &raw.out_html,
        &picture::page(&host, scenario, count, &outcomes),
    )?;
    write!(report, "{}", table(&outcomes)).context("cannot write the table to stdout")
}

/// Program between the clients and the servers, and the ports that clients connect to in turn.
struct Front {
    ports: Vec<u16>,
    child: Option<Child>,
    /// Port of the pool's console.
    console: u16,
    /// Socket for commands to `HAProxy`.
    commands: PathBuf,
}

impl Front {
    /// `None` where it is not installed.
    fn start(
        way: Way,
        pair: &Pair,
        scratch: &Scratch,
        onramp: &FilePath,
        plan: &Plan,
        interrupt: &Interrupt,
    ) -> Result<Option<Front>> {
        if way == Way::Direct {
            return Ok(Some(Front {
                ports: pair.ports().to_vec(),
                child: None,
                console: 0,
                commands: PathBuf::new(),
            }));
        }
        let (port, console) = (free_loopback_port()?, free_loopback_port()?);
        let commands = scratch.path().join("commands");
        let file = scratch.path().join(way.name());
        let mut command = match way {
            Way::HaProxy => {
                let Some(mut command) = peers::command("haproxy") else {
                    return Ok(None);
                };
                write_file(&file, &haproxy_settings(port, pair.ports(), &commands))?;
                command.arg("-db").arg("-f").arg(&file);
                command
            }
            Way::Router => {
                let Some(mut command) = peers::command("mysqlrouter") else {
                    return Ok(None);
                };
                let head = peers::router_head(scratch.path());
                write_file(&file, &(head + &router_settings(port, pair.ports())))?;
                command.arg("-c").arg(&file);
                command
            }
            Way::Onramp | Way::Direct => {
                write_file(&file, &pool_settings([port, console], pair))?;
                let mut command = Command::new(onramp);
                command
                    .arg("pool")
                    .arg("--config")
                    .arg(&file)
                    .args(&plan.raw.pool_arg);
                command
            }
        };
        command.current_dir(scratch.path());
        let child = Child::start(way.name(), command)?;
        let deadline = Instant::now() + START_PATIENCE;
        // HAProxy says nothing when it is ready; a whole login through it shows that it is.
        while clients::log_in(port, clients::NAME, pair.password()).is_err() {
            anyhow::ensure!(
                Instant::now() < deadline && !child.has_ended(Duration::ZERO),
                "{} does not let clients in: {}",
                way.name(),
                child.last_words()
            );
            await_time(Instant::now() + Duration::from_millis(50), interrupt)?;
        }
        Ok(Some(Front {
            ports: vec![port],
            child: Some(child),
            console,
            commands,
        }))
    }

    /// Switches the writes from the first server to the second, as planned.
    fn switch_over(&self, way: Way, pair: &Pair) -> Result<()> {
        match way {
            Way::Direct | Way::Router => pair.hand_over(),
            Way::HaProxy => {
                // New connections go to the second from here on.
                self.command("set server servers/one state maint")?;
                pair.hand_over()?;
                self.command("shutdown sessions server servers/one")
            }
            Way::Onramp => {
                let mut console = clients::log_in(self.console, pair::ADMIN, pair.password())?;
                console.query(b"SWITCH TO two", |_| {})?;
                Ok(())
            }
        }
    }

    /// Gives `HAProxy` a command.
    fn command(&self, words: &str) -> Result<()> {
        let mut stream = UnixStream::connect(&self.commands)?;
        writeln!(stream, "{words}")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        anyhow::ensure!(answer.trim().is_empty(), "haproxy: {}", answer.trim());
        Ok(())
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.stop(GRACE);
        }
    }
}

/// A check a second, three failures, by `HAProxy`'s manual. Clients of a server that is down are
/// cut, so that they connect to the other one.
fn haproxy_settings(port: u16, [one, two]: [u16; 2], commands: &FilePath) -> String {
    format!(
        "global\n  maxconn 4000\n  stats socket {} level admin\ndefaults\n  mode tcp\n  \
         timeout connect 1s\n  timeout client 1h\n  timeout server 1h\n  \
         option redispatch\nlisten servers\n  \
         bind 127.0.0.1:{port}\n  \
         server one 127.0.0.1:{one} check inter 1s fall 3 on-marked-down shutdown-sessions\n  \
         server two 127.0.0.1:{two} check inter 1s backup\n",
        commands.display()
    )
}

/// Makes the settings of a Router that passes TLS and logins on, and looks after no server: one
/// that refuses a connection is passed over.
fn router_settings(port: u16, [one, two]: [u16; 2]) -> String {
    format!(
        "[logger]\nlevel = ERROR\n[routing:writer]\nbind_address = 127.0.0.1\n\
         bind_port = {port}\ndestinations = 127.0.0.1:{one},127.0.0.1:{two}\n\
         routing_strategy = first-available\nprotocol = classic\n\
         client_ssl_mode = PASSTHROUGH\nserver_ssl_mode = AS_CLIENT\n\
         max_connections = 4000\nconnect_timeout = 1\n"
    )
}

fn pool_settings([port, console]: [u16; 2], pair: &Pair) -> String {
    let ([one, two], password, name) = (pair.ports(), pair.password(), clients::NAME);
    let monitor = pair::ADMIN;
    format!(
        "listen = [\"127.0.0.1:{port}\"]\n[backend]\nmonitor_user = \"{monitor}\"\n\
         monitor_password = \"{password}\"\n[[server]]\nname = \"one\"\n\
         address = \"127.0.0.1:{one}\"\n[[server]]\nname = \"two\"\naddress = \"127.0.0.1:{two}\"\n\
         [cluster]\nkind = \"replication\"\nwriter_lost = \"replace\"\n\
         [console]\nlisten = \"127.0.0.1:{console}\"\nadmin_user = \"{monitor}\"\n\
         admin_password = \"{password}\"\n[[user]]\nname = \"{name}\"\npassword = \"{password}\"\n"
    )
}

fn await_time(at: Instant, interrupt: &Interrupt) -> Result<()> {
    loop {
        interrupt.check()?;
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(crate::child::SLICE));
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn write_file(file: &FilePath, text: &str) -> Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn words(outcome: &Outcome) -> String {
    let (told, name) = (&outcome.told, outcome.way.name());
    format!(
        "{name}: {} updates, {} failed, {} of the clients disconnected, longest gap {} ms, {} lost",
        format::thousands(told.done),
        format::thousands(told.failed()),
        told.disconnected,
        format::thousands(told.longest_gap_ms),
        outcome.lost
    )
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "{:<10}{:>10}{:>10}{:>14}{:>14}{:>16}{:>8}\n",
        "way", "updates", "failed", "disconnected", "gap ms", "longest wait", "lost"
    );
    for outcome in outcomes {
        let told = &outcome.told;
        text += &format!(
            "{:<10}{:>10}{:>10}{:>14}{:>14}{:>16}{:>8}\n",
            outcome.way.name(),
            told.done,
            told.failed(),
            told.disconnected,
            told.longest_gap_ms,
            told.longest_wait_ms,
            outcome.lost
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_way() {
        let outcome = |way| Outcome {
            way,
            told: Told::default(),
            lost: 0,
            promoted_ms: 1,
        };
        let text = table(&Way::ALL.map(outcome));
        assert_eq!(text.lines().count(), 1 + Way::ALL.len());
        assert!(
            text.lines()
                .nth(2)
                .is_some_and(|line| line.starts_with("haproxy "))
        );
    }

    #[test]
    fn the_second_server_is_only_a_backup() {
        let text = haproxy_settings(1, [2, 3], FilePath::new("/s"));
        assert!(text.contains("server two 127.0.0.1:3 check inter 1s backup\n"));
    }
}
