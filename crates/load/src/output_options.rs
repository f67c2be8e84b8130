//! Options of the command line about outputs of results.
//!
//! Apart from `output.rs`, which writes results, so that options need not know what a result is.
//! Nothing is opened here.

use crate::thresholds::Threshold;
use clap::{Args, ValueEnum};
use measure::report_file::check_writable;
use std::path::PathBuf;
use std::str::FromStr;

/// Outputs of results besides stdout.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Results")]
pub struct OutputArgs {
    /// Write the result to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write a row for every second to this file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Write the result to this file, as a page with charts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Serve the figures at http://ADDR/metrics while it runs, as HOST:PORT
    #[arg(long, value_name = "ADDR")]
    pub prometheus: Option<String>,

    /// Serve the page of the run while it goes at http://ADDR/, as HOST:PORT; also /live.json and
    /// /metrics
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,

    /// A name under which --http and --prometheus are asked for, besides addresses and localhost;
    /// may be given several times
    #[arg(long = "http-name", value_name = "NAME")]
    pub http_names: Vec<String>,

    /// Show the run while it goes, where standard output is a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub live: When,

    /// End with status 3 if this is so, as in 'p99>50ms', 'errors>0.1%', 'goodput<5000'; may be
    /// given several times
    #[arg(long, value_name = "RULE", value_parser = Threshold::from_str)]
    pub fail_if: Vec<Threshold>,
}

impl OutputArgs {
    /// True if the files can be written when the run is over.
    ///
    /// # Errors
    /// A sentence with the option and the file.
    pub(crate) fn check(&self) -> Result<(), String> {
        let files = [
            ("--json", &self.json),
            ("--csv", &self.csv),
            ("--html", &self.html),
        ];
        for (option, file) in files {
            let writable = file.as_deref().map_or(Ok(()), check_writable);
            writable.map_err(|why| format!("{option}: {why}"))?;
        }
        Ok(())
    }

    /// No file and no screen.
    pub(crate) fn nowhere() -> OutputArgs {
        OutputArgs {
            json: None,
            csv: None,
            html: None,
            prometheus: None,
            http: None,
            http_names: Vec::new(),
            live: When::Never,
            fail_if: Vec::new(),
        }
    }
}

/// Occasions to show the run on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Draw the run if standard output is a terminal
    Auto,
    /// Not at all
    Never,
}
