//! `onramp explain`: what an error meant, how to see it on this host now, and what to do.
//!
//! The problem: the limits on the way to many connections show themselves as `(99)`, `errno 11` or
//! `Aborted connection`, in the words of whichever program met them first, and mostly on the wrong
//! host. The mechanism: the [`catalogue`] is data: numbers, errnos and words that stand in a line,
//! and for each its cause, commands that show it, and the remedy. [`clues`] reads what a line gives
//! away, [`matching`] finds the entry that fits best, [`live`] adds the values of this host from
//! the same facts as the doctor's, [`arithmetic`] reckons with the numbers of the line, and
//! [`log`] goes through a whole log.
//!
//! Invariants: nothing is changed on the host, and a server is asked only if a target was given; a
//! line that fits no entry is said to be unknown, never explained by a guess.

mod arithmetic;
mod catalogue;
mod clues;
mod errno;
mod live;
mod log;
mod matching;
mod options;
mod render;

pub use options::ExplainArgs;

use crate::facts::{Facts, Files};
use live::Live;
use matching::{Explained, Query};
use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;

/// Bytes of a log that are read from standard input.
const LOG_BYTES_MAX: u64 = 256 << 20;
/// Status where nothing was recognised.
const STATUS_UNKNOWN: u8 = 1;
/// Neither an error nor a log was given, or the server that was named cannot be asked like that.
const STATUS_USAGE: u8 = 2;

/// Explains and prints. Status 0: at least one error was recognised; 1: none was; 2: nothing to
/// explain was given, or the options of the target do not go together.
#[must_use]
pub fn run(args: &ExplainArgs) -> ExitCode {
    let asked = args.error.join(" ");
    let text = if !asked.trim().is_empty() && asked != "-" {
        None
    } else if asked != "-" && std::io::stdin().is_terminal() {
        say(&mut std::io::stderr(), render::USAGE);
        return STATUS_USAGE.into();
    } else {
        Some(read_log())
    };
    let facts = match facts(args) {
        Ok(facts) => facts,
        Err(why) => {
            say(&mut std::io::stderr(), &format!("onramp explain: {why}\n"));
            return STATUS_USAGE.into();
        }
    };
    let (explained, heading) = match &text {
        None => (Query::of(&asked).answer(), String::new()),
        Some(text) => {
            let log = log::read(text);
            let heading = render::log_heading(&log);
            (log.explained, heading)
        }
    };
    let known = !explained.is_empty();
    // Which server is looked at matters where its limits would be shown, and none are.
    let looks = explained.iter().filter_map(|one| one.entry);
    let mut looks = looks.flat_map(|entry| &entry.verify);
    let wants_server = looks.any(|look| look.live.as_ref().is_some_and(Live::is_of_server));
    let choice = facts.choice().filter(|_| facts.server_process.is_none());
    if let Some(choice) = choice.filter(|_| wants_server) {
        say(
            &mut std::io::stderr(),
            &format!("onramp explain: {choice}\n"),
        );
    }
    let out = match (args.json, known) {
        (true, _) => render::json(&explained, &facts),
        (false, true) => heading + &render::text(&explained, &facts),
        (false, false) if text.is_some() => heading,
        (false, false) => render::unknown(&asked),
    };
    if !say(&mut std::io::stdout(), &out) {
        return ExitCode::FAILURE;
    }
    if known {
        ExitCode::SUCCESS
    } else {
        STATUS_UNKNOWN.into()
    }
}

/// True if some explanation tells the value of this variable or status of a server.
pub(crate) fn is_told(name: &str) -> bool {
    let mut looks = catalogue::entries().iter().flat_map(|entry| &entry.verify);
    looks.any(|look| look.live.as_ref().is_some_and(|live| live.is_of_name(name)))
}

/// The name of the catalogue's entry for an error line; None for a line that it does not know.
#[must_use]
pub fn entry_of(line: &str) -> Option<&'static str> {
    let explained = Query::of(line).answer().into_iter().next();
    explained.and_then(|explained: Explained| explained.entry.map(|entry| entry.name.as_str()))
}

fn facts(args: &ExplainArgs) -> Result<Facts, String> {
    let target = args.server.target()?;
    let facts = crate::gather(target.as_ref(), args.server_pid, &Files::of_kernel());
    for why in &facts.missing {
        say(&mut std::io::stderr(), &format!("onramp explain: {why}\n"));
    }
    Ok(facts)
}

fn read_log() -> String {
    let mut bytes = Vec::new();
    let read = std::io::stdin()
        .lock()
        .take(LOG_BYTES_MAX)
        .read_to_end(&mut bytes);
    if let Err(error) = read {
        say(
            &mut std::io::stderr(),
            &format!("onramp explain: standard input: {error}\n"),
        );
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes; false if nobody reads.
fn say(out: &mut impl std::io::Write, text: &str) -> bool {
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .is_ok()
}

#[cfg(test)]
mod tests;
