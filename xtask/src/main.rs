//! The workspace's own chores: `cargo run -p xtask -- tidy`, and `... house [CRATE]`.
//!
//! Style that a program can check is not worth a reviewer's time. `tidy` reads the sources and the
//! manifests as text, prints every offence as `file:line: what; what to do`, and ends with status 1
//! if there was one. It needs nothing but std, so that it is the first check to run and the
//! quickest.
//!
//! What rustfmt and clippy already check stays theirs. What they cannot know is here: which crate
//! may use which, where the clock may be read, which modules import one another in a circle.
//! `house` reports the structure: sizes, imports, cycles, long functions, and the numbers that
//! `tidy` holds to bounds.

#![allow(
    clippy::print_stdout,
    reason = "the offences are this program's report"
)]

mod edges;
mod functions;
mod house;
mod mask;
mod measures;
mod modules;
mod named_files;
mod offence;
mod ratchet;
mod rules;
mod scan;
mod source;
mod tidy;
mod titles;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = workspace_root();
    let result = match arguments[..] {
        ["tidy"] => tidy::run(&root),
        ["house"] => return print_house(&root, None),
        ["house", name] => return print_house(&root, Some(name)),
        _ => {
            eprintln!(
                "usage: cargo run -p xtask -- tidy\n       cargo run -p xtask -- house [CRATE]"
            );
            return ExitCode::from(2);
        }
    };
    match result {
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

fn print_house(root: &Path, only: Option<&str>) -> ExitCode {
    match tidy::read_sources(root).and_then(|s| Ok((s, tidy::read_documents(root)?))) {
        Ok((sources, documents)) => {
            print!("{}", house::report(&sources, only));
            if only.is_none() {
                print!(
                    "{}",
                    house::report_measures(&measures::all(&sources, &documents))
                );
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("house: cannot read the workspace: {error}");
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
