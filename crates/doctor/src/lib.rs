//! `onramp doctor`: what stands between this host, this server and N connections.
//!
//! The problem: the walls on the way to many connections are in a dozen places (limits of
//! processes, kernel settings, control groups, ports, the server's own variables), each met one
//! after the other as an error that names none of them. The mechanism: all facts are read once
//! ([`facts`]); each check holds one of them against what N connections need ([`catalog`],
//! [`need`]); the verdict is the ladder of all limits in order ([`verdict`]), from the same
//! findings.
//!
//! Invariants: a check is a pure function; what could not be read is said as skipped.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod explain;
pub mod facts;
pub mod finding;
pub mod need;
mod number;
mod options;
pub mod question;
pub mod render;
pub mod setting;
pub mod verdict;

pub use options::DoctorArgs;

use facts::{Facts, Files, find_server};
use std::io::Write as _;
use std::process::ExitCode;
use verdict::limit;

/// No way reaches the connections that were asked for.
const STATUS_SHORT: u8 = 1;

/// Examines and prints. Status 0: a way that was asked for reaches the number (or none was asked
/// for); 1: none does; 2: an option makes no sense.
#[must_use]
pub fn run(args: &DoctorArgs) -> ExitCode {
    let question = args.question();
    let files = Files::of_kernel();
    let server = question
        .role
        .has_server()
        .then(|| find_server(&files))
        .flatten();
    let facts = Facts::read(&files, server);
    let findings = catalog::check(&facts, &question);
    let text = if args.json {
        render::json(&findings)
    } else {
        render::text(&findings, &question)
    };
    let mut stdout = std::io::stdout();
    if stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .is_err()
    {
        return ExitCode::FAILURE;
    }
    let holds = |way: &question::Way| {
        limit(&findings, *way).is_none_or(|rung| rung.connections >= question.wanted())
    };
    if question.ways.iter().any(holds) {
        ExitCode::SUCCESS
    } else {
        STATUS_SHORT.into()
    }
}
