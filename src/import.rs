//! `onramp import`: a configuration of the pool from one of ProxySQL, MaxScale or MySQL Router.
//!
//! The problem: who changes pools has users, limits and addresses written down in another's terms.
//! The mechanism: the file is read (`libconfig.rs`), its settings are put into this pool's terms
//! (`proxysql.rs`, `ini.rs`), and the result is checked as the pool checks it at start. What has no
//! counterpart, or another meaning, stands in front as comments.
//!
//! Invariants: a file that is there is never overwritten; one that is made is readable by its owner
//! alone, because it holds passwords.

mod foreign;
mod ini;
mod libconfig;
mod proxysql;
mod settings;

use clap::Args;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make a configuration of the pool from one of ProxySQL, MaxScale or MySQL Router
#[derive(Args)]
pub(crate) struct ImportArgs {
    /// A maxscale.cnf, a mysqlrouter.conf, a proxysql.cnf, or what SELECT CONFIG INTO OUTFILE has
    /// written on ProxySQL's admin interface
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Take the server of this hostgroup [default: the hostgroup of most users]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    hostgroup: Option<i64>,

    /// Write to this file, which must not exist [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Makes it; 1, with a sentence, where that cannot be done, or where the pool cannot start with it
/// as it is.
pub(crate) fn run(args: &ImportArgs) -> ExitCode {
    let mut err = io::stderr();
    let made = match make(&args.file, args.hostgroup) {
        Ok(made) => made,
        Err(why) => {
            let _ = writeln!(err, "onramp import: {why}");
            return ExitCode::FAILURE;
        }
    };
    if let Err(error) = write(&made.text, args.output.as_deref()) {
        let name = args.output.as_deref().unwrap_or(Path::new("-")).display();
        let _ = writeln!(err, "onramp import: {name}: {error}");
        return ExitCode::FAILURE;
    }
    if made.notes > 0 {
        let _ = writeln!(
            err,
            "onramp import: {} to be looked at; see the comments at its head",
            match made.notes {
                1 => "one thing is".to_owned(),
                notes => format!("{notes} things are"),
            }
        );
    }
    match made.lacks {
        None => ExitCode::SUCCESS,
        Some(why) => {
            let _ = writeln!(
                err,
                "onramp import: the pool cannot start with it yet: {why}"
            );
            ExitCode::FAILURE
        }
    }
}

/// A configuration.
struct Made {
    text: String,
    /// Things to be looked at.
    notes: usize,
    /// Reason for which the pool does not take it.
    lacks: Option<String>,
}

fn make(file: &Path, hostgroup: Option<i64>) -> Result<Made, String> {
    let place = file.display();
    let foreign = |why: String| {
        let mut left = libconfig::FILE_BYTES_MAX;
        let text = libconfig::text_of(file, &mut left).unwrap_or_default();
        match (ini::convert(&text), foreign::told(&text)) {
            (Some(settings), _) => Ok(settings),
            (None, Some(told)) => Err(format!("{place}: {told}")),
            (None, None) => Err(why),
        }
    };
    let settings = match libconfig::read(file) {
        Ok(read) => proxysql::convert(&read, hostgroup).map_err(|why| format!("{place}: {why}")),
        Err(why) => foreign(why),
    }?;
    let text = settings.text(&place.to_string());
    let checked = pool::Raw::parse(&text).and_then(pool::Raw::check);
    Ok(Made {
        text,
        notes: settings.notes().len(),
        lacks: checked.err(),
    })
}

fn write(text: &str, path: Option<&Path>) -> io::Result<()> {
    let Some(path) = path else {
        return io::stdout().write_all(text.as_bytes());
    };
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests;
