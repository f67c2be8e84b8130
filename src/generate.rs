//! Manual pages and completions, made from the options that clap knows.
//!
//! Packages need them as files, so they are made by the program itself: nothing that describes the
//! options can fall behind them.

use clap::Command;
use clap_complete::Shell;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write manual pages and completions for shells
#[derive(clap::Args)]
pub(crate) struct GenerateArgs {
    /// Kind of files to write
    #[arg(value_enum)]
    what: What,

    /// Into this folder, which must exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// Pages of section 1, one for each command
    Man,
    /// For bash, zsh and fish
    Completions,
}

/// Writes them; 1 where the folder cannot be written.
pub(crate) fn run(args: &GenerateArgs, command: Command) -> ExitCode {
    let written = match args.what {
        What::Man => clap_mangen::generate_to(command, &args.folder),
        What::Completions => completions(command, args),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let folder = args.folder.display();
            let _ = writeln!(io::stderr(), "onramp generate: {folder}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn completions(mut command: Command, args: &GenerateArgs) -> io::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "onramp", &args.folder)?;
    }
    Ok(())
}
