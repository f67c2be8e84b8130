//! Habits of a run: those of `onramp load`, or of the sysbench whose line it was given.
//!
//! The line is taken apart elsewhere; here is what it asks for beyond what options of `onramp load`
//! can say, in a form that options and reports share.

use std::io::Write;
use wire::dsn::Dsn;

/// Program whose report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The report of `onramp load`, which is 1.0's.
    #[default]
    Load,
    /// sysbench 1.0, for a line of its own form.
    New,
    /// sysbench 0.5.
    Old,
}

/// Demands of a line of sysbench beyond those that `onramp load` has options for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    pub(crate) dialect: Dialect,
    /// Servers besides the target; connections go to each in turn.
    pub(crate) more_targets: Vec<Dsn>,
    /// Events that have not ended in time are left where they are, and told.
    pub(crate) forced: bool,
    /// The report begins with a histogram of latencies.
    pub(crate) histogram: bool,
    /// True if the seed is said to come from a timer.
    pub(crate) from_timer: bool,
    /// Stdout has what the script prints, and no report.
    pub(crate) quiet: bool,
}

impl Manner {
    /// An event that has begun runs to its end when the time is over.
    pub(crate) fn finishes_events(&self) -> bool {
        self.dialect != Dialect::Load
    }

    /// True if statements are counted by their first word, as 0.5 did, not by their reply.
    pub(crate) fn counts_by_text(&self) -> bool {
        self.dialect == Dialect::Old
    }

    /// Writes a part of the report to stdout at once. Whoever reads it may have gone; the run and
    /// its other reports go on.
    pub(crate) fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        let mut stdout = std::io::stdout().lock();
        let _ = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
    }

    /// Prefix of a reason on standard error.
    pub(crate) fn prefix(&self) -> &'static str {
        match self.dialect {
            Dialect::Load => "onramp load",
            _ => "FATAL",
        }
    }
}
