//! Reaction to an error: the event is run again, or given up, or the run ends.
//!
//! By default no error ends a run: a few numbers (deadlock, row changed since it was read, lock
//! wait timeout, as sysbench has it) are *ignored*, which means that the event is run again, and
//! all others are counted as failed. With `--stop-on-error` the first of these others ends the run.

use crate::errors::Fault;
use clap::Args;
use std::str::FromStr;

/// Options of the reaction to errors, as typed.
#[derive(Args, Clone, Debug)]
pub struct ToleranceArgs {
    /// Errors after which the event is run again: numbers with commas between, or all
    #[arg(long, value_name = "N,...|all", default_value = "1213,1020,1205",
          value_parser = Ignored::from_str)]
    pub ignore_errors: Ignored,

    /// End the run at the first error that is not ignored, with exit status 1
    #[arg(long)]
    pub stop_on_error: bool,
}

/// Errors that are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// Every error.
    All,
    /// Errors with these numbers.
    Some(Vec<u32>),
}

impl FromStr for Ignored {
    type Err = String;

    fn from_str(text: &str) -> Result<Ignored, String> {
        if text == "all" {
            return Ok(Ignored::All);
        }
        let numbers = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let parse = |part: &str| {
            let wrong = || format!("'{part}' is no error number; expected numbers, or all");
            part.parse().map_err(|_| wrong())
        };
        numbers
            .map(parse)
            .collect::<Result<_, _>>()
            .map(Ignored::Some)
    }
}

impl ToleranceArgs {
    /// True for an error after which the event is run again.
    pub fn ignores(&self, fault: &Fault) -> bool {
        match &self.ignore_errors {
            Ignored::All => true,
            Ignored::Some(codes) => codes.contains(&fault.code),
        }
    }

    /// True for an error that ends the run.
    pub fn ends_at(&self, fault: &Fault) -> bool {
        self.stop_on_error && !self.ignores(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_ignored_by_their_numbers() {
        let fault = |code| Fault {
            code,
            ..Fault::ended("x")
        };
        let args = |text: &str, stop_on_error| ToleranceArgs {
            ignore_errors: text.parse().unwrap(),
            stop_on_error,
        };
        let some = args("1213, 1205", true);
        assert!(some.ignores(&fault(1205)) && !some.ignores(&fault(1146)));
        assert!(some.ends_at(&fault(1146)) && !some.ends_at(&fault(1213)));
        assert!(!args("", false).ends_at(&fault(1146)));
        assert!(args("all", true).ignores(&fault(2013)));
        assert!("12x".parse::<Ignored>().unwrap_err().contains("12x"));
    }
}
