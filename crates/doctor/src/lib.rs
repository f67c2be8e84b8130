//! `onramp doctor`: what stands between this host, this server and N connections.
//!
//! The problem: the walls on the way to many connections are in a dozen places (limits of
//! processes, kernel settings, control groups, ports, the server's own variables), each met one
//! after the other as an error that names none of them. The mechanism: all facts are read once
//! ([`facts`], [`server`]); each check holds one of them against what N connections need
//! ([`catalog`], [`need`]); the verdict is the ladder of all limits in order ([`verdict`]), from
//! the same findings. So are the fragments ([`emit`]), the changes ([`apply`]) and what the other
//! commands say before they start ([`preflight`]).
//!
//! Invariants: a check is a pure function; what could not be read is said as skipped; nothing on
//! the host or the server is changed unless `--apply` or `--undo` was asked for and agreed to.
#![forbid(unsafe_code)]

pub mod apply;
pub mod catalog;
pub mod client;
pub mod emit;
pub mod explain;
pub mod facts;
pub mod finding;
pub mod need;
mod number;
mod options;
pub mod preflight;
pub mod question;
pub mod render;
pub mod server;
pub mod setting;
pub mod target;
pub mod text;
pub mod verdict;

pub use options::DoctorArgs;

use apply::Hands;
use facts::{Facts, Files, Running, servers};
use finding::Finding;
use question::Question;
use std::io::{IsTerminal as _, Write};
use std::path::Path;
use std::process::ExitCode;
use target::Target;
use text::Style;
use verdict::limit;
use wire::dsn::Dsn;

/// No way reaches the connections that were asked for, or something could not be done.
const STATUS_SHORT: u8 = 1;
/// A file that cannot be used.
const STATUS_USAGE: u8 = 2;

/// Examines and prints. Status 0: a way that was asked for reaches the number (or none was asked
/// for), or everything was set; 1: none does, or the named server did not answer; 2: a file that
/// cannot be used.
#[must_use]
pub fn run(args: &DoctorArgs) -> ExitCode {
    let mut stdout = std::io::stdout();
    let done = if args.undo {
        undo(args, &mut stdout)
    } else {
        examine(args, &mut stdout)
    };
    match done {
        Ok(status) => status.into(),
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "onramp doctor: {why}");
            STATUS_USAGE.into()
        }
    }
}

fn examine(args: &DoctorArgs, out: &mut dyn Write) -> Result<u8, String> {
    let files = Files::of_kernel();
    let target = args.server.target()?;
    let facts = match &args.facts {
        Some(path) => read_facts(path)?,
        None => gather(target.as_ref(), args.server_pid, &files),
    };
    if let Some(path) = &args.save_facts {
        let text = serde_json::to_string_pretty(&facts).map_err(|error| error.to_string())?;
        std::fs::write(path, text + "\n")
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let is_text = args.emit.is_none() && !args.json && !args.apply;
    if let Some(choice) = facts.choice().filter(|_| !is_text) {
        let _ = writeln!(std::io::stderr(), "onramp doctor: {choice}");
    }
    let question = args.question(&facts);
    let findings = catalog::check(&facts, &question);
    if args.apply {
        let hands = Hands {
            files: &files,
            target: target.as_ref(),
        };
        return apply_now(args, &findings, &facts, &hands, out);
    }
    let text = match args.emit {
        Some(form) => emit::fragment(form, &findings, &facts, &question),
        None if args.json => render::json(&findings, &facts),
        None => text::text(&findings, &facts, &question, style(args)),
    };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| format!("cannot write to stdout: {error}"))?;
    Ok(if args.emit.is_some() {
        0
    } else {
        status(&findings, &facts, &question)
    })
}

fn style(args: &DoctorArgs) -> Style {
    let is_terminal = std::io::stdout().is_terminal();
    Style {
        colours: is_terminal && std::env::var_os("NO_COLOR").is_none(),
        everything: args.all,
    }
}

fn status(findings: &[Finding], facts: &Facts, question: &Question) -> u8 {
    let reaches = |way: &question::Way| {
        limit(findings, *way).is_none_or(|rung| rung.connections >= question.wanted())
    };
    let is_answered = facts.server.is_some() || facts.missing.is_empty();
    if is_answered && question.ways.iter().any(reaches) {
        0
    } else {
        STATUS_SHORT
    }
}

/// Facts of this host, and of the server that is named.
fn gather(target: Option<&Target>, server_pid: Option<u64>, files: &Files) -> Facts {
    let (mut server, mut missing) = (None, Vec::new());
    if let Some(target) = target {
        match server::ask(target) {
            Ok((told, not_told)) => (server, missing) = (Some(told), not_told),
            Err(failure) => missing.push(failure.to_string()),
        }
    }
    let is_here = server.as_ref().is_none_or(|server| server.is_local);
    let servers = match is_here {
        true => servers(files),
        false => Vec::new(),
    };
    if let Some(pid) = server_pid
        && files.text(&format!("/proc/{pid}/comm")).is_none()
    {
        missing.push(format!("--server-pid {pid}: no such process"));
    }
    let named = server
        .as_ref()
        .and_then(|server| server::local_process(files, server));
    let pid = server_pid.or(named);
    let answered = target.filter(|_| server.is_some());
    let pid = pid.or_else(|| the_one(&servers, answered.map(|target| &target.dsn)));
    Facts {
        servers,
        server,
        missing,
        ..Facts::read(files, pid)
    }
}

/// The only server that listens where the target is, or the only one; None if there is none or
/// several. Where it is not known where a server listens, it may be the target's.
fn the_one(servers: &[Running], target: Option<&Dsn>) -> Option<u64> {
    let is_it = |one: &&Running| match target {
        None => true,
        Some(_) if one.ports.is_empty() && one.sockets.is_empty() => true,
        Some(target) => match &target.socket {
            Some(path) => one.sockets.contains(path),
            None => one.ports.contains(&u64::from(target.port)),
        },
    };
    let mut found = servers.iter().filter(is_it);
    let first = found.next()?;
    found.next().is_none().then_some(first.pid)
}

fn read_facts(path: &Path) -> Result<Facts, String> {
    let wrong = |error: String| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}

fn apply_now(
    args: &DoctorArgs,
    findings: &[Finding],
    facts: &Facts,
    hands: &Hands<'_>,
    out: &mut dyn Write,
) -> Result<u8, String> {
    let (changes, later) = apply::plan(findings, facts, hands.files);
    if !agreed(args, &changes, &later, out)? {
        return Ok(0);
    }
    let failed = apply::make(&changes, hands, &args.record()?, out)?;
    Ok(if failed == 0 { 0 } else { STATUS_SHORT })
}

fn undo(args: &DoctorArgs, out: &mut dyn Write) -> Result<u8, String> {
    let record = args.record()?;
    let noted = apply::read_record(&record)?;
    let noted = noted.ok_or_else(|| format!("{}: no record; nothing was set", record.display()))?;
    let back: Vec<_> = noted.iter().rev().map(apply::Change::reversed).collect();
    let files = Files::of_kernel();
    let target = args.server.target()?;
    let hands = Hands {
        files: &files,
        target: target.as_ref(),
    };
    if !agreed(args, &back, &[], out)? {
        return Ok(0);
    }
    let failed = apply::undo(&noted, &hands, &record, out)?;
    Ok(if failed == 0 { 0 } else { STATUS_SHORT })
}

/// Shows what will be set, and asks unless it was said beforehand.
fn agreed(
    args: &DoctorArgs,
    changes: &[apply::Change],
    later: &[String],
    out: &mut dyn Write,
) -> Result<bool, String> {
    let stdin = std::io::stdin();
    if !args.yes && !changes.is_empty() && !stdin.is_terminal() {
        return Err("nobody can be asked here; --yes sets without asking".to_owned());
    }
    apply::agree(changes, later, args.yes, &mut stdin.lock(), out)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_servers_the_target_tells_which() {
        let one = |pid, port, socket: &str| Running {
            pid,
            name: "mysqld".to_owned(),
            ports: vec![port],
            sockets: vec![socket.to_owned()],
        };
        let two = [one(7, 3306, "/a.sock"), one(9, 3307, "/b.sock")];
        let target = |text: &str| Dsn::parse(text).unwrap();
        assert_eq!(the_one(&two[..1], None), Some(7));
        assert_eq!(the_one(&two, None), None);
        let by = |text: &str| the_one(&two, Some(&target(text)));
        assert_eq!(by("mysql://a@127.0.0.1:3307"), Some(9));
        assert_eq!(by("mysql://a@localhost?socket=/a.sock"), Some(7));
        assert_eq!(by("mysql://a@127.0.0.1:3308"), None, "a container's, say");
        let unknown = Running {
            pid: 11,
            ..Running::default()
        };
        let other = target("mysql://a@127.0.0.1:3308");
        assert_eq!(the_one(&[unknown], Some(&other)), Some(11));
    }
}
