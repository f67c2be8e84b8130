//! Hooks of reports: a script writes a report itself, in place of sysbench's text.
//!
//! A script with `sysbench.hooks.report_intermediate` or `report_cumulative` is given a table of
//! numbers instead of the text on standard output. The run makes the numbers ([`Numbers`]) and does
//! not know who takes them ([`Hooks`]).

/// Kind of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// One line each interval.
    Intermediate,
    /// The whole report: at checkpoints and at the end.
    Cumulative,
}

impl Hook {
    /// Its name in `sysbench.hooks`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Hook::Intermediate => "report_intermediate",
            Hook::Cumulative => "report_cumulative",
        }
    }
}

/// Numbers that a hook is given, by sysbench's names. Times are in seconds.
pub(crate) type Numbers = Vec<(&'static str, f64)>;

/// Scripts that may take a report.
pub(crate) trait Hooks {
    /// Gives it the numbers of a report; false where it has no such hook, and the text is due.
    fn report(&mut self, hook: Hook, numbers: Numbers) -> bool;
}

/// Hooks of a run without scripts.
pub(crate) struct NoHooks;

impl Hooks for NoHooks {
    fn report(&mut self, _: Hook, _: Numbers) -> bool {
        false
    }
}
