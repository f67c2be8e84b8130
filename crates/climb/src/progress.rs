//! Progress of a climb, on stderr.
//!
//! Two kinds of text: a line that stays (a cell begins, a cell has ended) and, on a terminal only,
//! one live line that is overwritten in place (connects so far, statements/s of the last second).
//! In a log file the live line would be thousands of lines, so it is left out there. Nothing here
//! fails: a closed stderr must not end a run.

use std::io::Write;

/// A live line longer than a narrow terminal would wrap, and not be overwritten.
const LIVE_CHARS_MAX: usize = 79;

/// The writer of progress.
pub(crate) struct Progress<'a> {
    out: &'a mut dyn Write,
    /// True if a live line can be shown.
    terminal: bool,
    live_shown: bool,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, terminal: bool) -> Self {
        Self {
            out,
            terminal,
            live_shown: false,
        }
    }

    /// Prints a line that stays.
    pub(crate) fn line(&mut self, text: &str) {
        self.clear();
        let _ = writeln!(self.out, "{text}");
        let _ = self.out.flush();
    }

    /// Prints text that the next call replaces.
    pub(crate) fn live(&mut self, text: &str) {
        if self.terminal {
            let text: String = text.chars().take(LIVE_CHARS_MAX).collect();
            let _ = write!(self.out, "\r\x1b[K{text}");
            let _ = self.out.flush();
            self.live_shown = true;
        }
    }

    /// Takes the live line away, so that other output can follow.
    pub(crate) fn clear(&mut self) {
        if self.live_shown {
            let _ = write!(self.out, "\r\x1b[K");
            self.live_shown = false;
        }
    }
}

/// Live figures of a line of load's report, `[ 4s ] thds: 1000 tps: 9.1 qps: 9.1 ...`: the second
/// and the statements/s. None for any other line.
pub(crate) fn report_line(line: &str) -> Option<(u64, f64)> {
    let (second, rest) = line.strip_prefix('[')?.split_once(']')?;
    let second = second.trim().trim_end_matches('s').parse().ok()?;
    let rate = rest
        .split_once("qps:")?
        .1
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    Some((second, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(terminal: bool) -> String {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, terminal);
        progress.live("1 of 2");
        progress.line("done");
        progress.clear();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_live_line_is_for_terminals() {
        assert_eq!(said(false), "done\n");
        assert_eq!(said(true), "\r\x1b[K1 of 2\r\x1b[Kdone\n");
    }

    #[test]
    fn a_report_line_is_read() {
        let line = "[ 4s ] thds: 1000 tps: 13870.52 qps: 13870.52 (r/w/o: 13870.52/0.00/0.00) \
                    lat (ms,95%): 80.03 err/s: 0.00 reconn/s: 0.00";
        assert_eq!(report_line(line), Some((4, 13_870.52)));
        assert_eq!(report_line("Threads started!"), None);
        assert_eq!(report_line("[ x ] qps"), None);
    }
}
