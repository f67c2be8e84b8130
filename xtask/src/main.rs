//! The workspace's own chores: `cargo run -p xtask -- tidy`.
//!
//! Style that a program can check is not worth a reviewer's time. `tidy` reads the sources and the
//! manifests as text, prints every offence as `file:line: what; what to do`, and ends with status 1
//! if there was one. It needs nothing but std, so that it is the first check to run and the
//! quickest.
//!
//! What rustfmt and clippy already check stays theirs. What they cannot know is here: which crate
//! may use which, where the clock may be read, how long a file or a function may get.

#![allow(
    clippy::print_stdout,
    reason = "the offences are this program's report"
)]

mod edges;
mod exceptions;
mod functions;
mod mask;
mod offence;
mod rules;
mod scan;
mod source;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["tidy"] {
        eprintln!("usage: cargo run -p xtask -- tidy");
        return ExitCode::from(2);
    }
    match tidy::run(&workspace_root()) {
        Ok(offences) if offences.is_empty() => {
            println!("tidy: no offence");
            ExitCode::SUCCESS
        }
        Ok(offences) => {
            offences.iter().for_each(|offence| println!("{offence}"));
            println!("tidy: {} offences", offences.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: cannot read the workspace: {error}");
            ExitCode::from(2)
        }
    }
}

/// The folder of the workspace: cargo names this crate's when it runs us; without cargo, the
/// current one.
fn workspace_root() -> PathBuf {
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(crate_folder) => PathBuf::from(crate_folder).join(".."),
        None => PathBuf::from("."),
    }
}
