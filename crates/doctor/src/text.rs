//! The answer as text, for a person who has a run to save.
//!
//! First the verdict, one line a way; then what stops it, with the reason and the command; then
//! what makes it slow; then, a line each, what is enough and what could not be looked at. Text is
//! wrapped, commands stand on lines of their own to be copied, and colours are for terminals only.

use crate::facts::{Facts, NO_LIMIT};
use crate::finding::{Amount, Finding, Status};
use crate::number::{bytes, thousands};
use crate::question::{Question, Way};
use crate::verdict::{Rung, ladder};
use std::fmt::Write as _;

/// Columns of text.
const COLUMNS: usize = 92;
/// Limits of a way that its line names.
const NAMED_MAX: usize = 3;

/// Style of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// True for colours, on a terminal.
    pub colours: bool,
    /// Also why each check that is ok matters.
    pub everything: bool,
}

impl Style {
    fn paint(self, status: Status, words: &str) -> String {
        let colour = match status {
            Status::Fail => "31;1",
            Status::Warn => "33;1",
            Status::Ok => "32",
            Status::Skipped => "2",
        };
        match self.colours {
            true => format!("\x1b[{colour}m{words}\x1b[0m"),
            false => words.to_owned(),
        }
    }
}

/// The answer.
#[must_use]
pub fn text(all: &[Finding], facts: &Facts, question: &Question, style: Style) -> String {
    let findings: Vec<Finding> = all
        .iter()
        .filter(|finding| finding.is_asked)
        .cloned()
        .collect();
    let findings = findings.as_slice();
    let mut out = String::new();
    head(&mut out, facts, question);
    if question.connections.is_none() {
        for way in &question.ways {
            way_ladder(&mut out, findings, *way);
        }
        notes(&mut out, findings, style);
        return out;
    }
    for way in &question.ways {
        verdict(&mut out, findings, *way, question, style);
    }
    let mut gaps: Vec<&Finding> = findings
        .iter()
        .filter(|finding| matches!(finding.status, Status::Fail | Status::Warn))
        .collect();
    // What stops first comes first.
    gaps.sort_by_key(|finding| (finding.status, finding.holds.iter().flatten().min()));
    for finding in gaps {
        out.push('\n');
        gap(&mut out, finding, question, style);
    }
    out.push('\n');
    for status in [Status::Ok, Status::Skipped] {
        for finding in findings.iter().filter(|finding| finding.status == status) {
            enough(&mut out, finding, style);
        }
    }
    out
}

fn head(out: &mut String, facts: &Facts, question: &Question) {
    let host = &facts.host;
    let wanted = match question.connections {
        Some(connections) => format!("{} connections", thousands(connections)),
        None => "the ladder of limits".to_owned(),
    };
    let memory = host.count("memory_bytes").map(bytes);
    let _ = writeln!(
        out,
        "onramp doctor: {wanted}, with {} on this host (Linux {}, {} CPUs, {})",
        question.role.words(),
        host.kernel,
        host.cpus.map_or("?".to_owned(), thousands),
        memory.unwrap_or_else(|| "memory unknown".to_owned()),
    );
    if let Some(server) = &facts.server {
        let _ = writeln!(out, "server {} at {}", server.version, server.place);
    }
    if let Some(process) = &facts.server_process {
        let known = facts.servers.iter().find(|one| one.pid == process.pid);
        let words = known.map_or_else(
            || format!("{}, process {}", process.name, process.pid),
            ToString::to_string,
        );
        let _ = writeln!(out, "limits of the server are those of {words}");
    }
    if let Some(choice) = facts.choice() {
        wrapped(out, 0, &choice);
    }
    out.push('\n');
}

/// Appends one line: how many are reached, and by what they are stopped.
fn verdict(out: &mut String, findings: &[Finding], way: Way, question: &Question, style: Style) {
    let rungs = ladder(findings, way);
    let (short, over): (Vec<_>, Vec<_>) = rungs
        .iter()
        .partition(|rung| rung.connections < question.wanted());
    let reached = rungs
        .first()
        .map_or("no limit".to_owned(), |rung| thousands(rung.connections));
    let (status, words) = match (short.first(), over.first()) {
        (Some(_), _) => (Status::Fail, format!("stopped by {}", names(&short))),
        (None, Some(next)) => (Status::Ok, format!("enough; {} is next", next.finding.name)),
        (None, None) => (Status::Ok, "enough".to_owned()),
    };
    let reached = style.paint(status, &format!("{reached:>12}"));
    let _ = writeln!(out, "  {way:<15}{reached}   {words}");
}

fn names(rungs: &[&Rung<'_>]) -> String {
    let named: Vec<&str> = rungs
        .iter()
        .take(NAMED_MAX)
        .map(|rung| rung.finding.name)
        .collect();
    let more = rungs.len().saturating_sub(NAMED_MAX);
    match more {
        0 => named.join(", then "),
        more => format!("{} and {more} more", named.join(", then ")),
    }
}

/// Appends a check that is not ok: what, why, and the command.
fn gap(out: &mut String, finding: &Finding, question: &Question, style: Style) {
    let label = if finding.status == Status::Fail {
        "FAIL"
    } else {
        "warn"
    };
    let stops = finding.stops(question);
    let stops: Vec<String> = stops.into_iter().map(|way| way.to_string()).collect();
    let stops = match stops.len() {
        0 => String::new(),
        n if n == question.ways.len() && n > 1 => "   stops every way".to_owned(),
        _ => format!("   stops {}", stops.join(", ")),
    };
    let need = match finding.need {
        Amount::Unknown => String::new(),
        _ => format!("   need {}", finding.shown(&finding.need)),
    };
    let have = match finding.have {
        Amount::Unknown => String::new(),
        _ => format!("   have {}", finding.shown(&finding.have)),
    };
    let label = style.paint(finding.status, label);
    let _ = writeln!(out, "{label}  {}{have}{need}{stops}", finding.name);
    wrapped(out, 6, &finding.why);
    if !finding.remedy.is_empty() {
        for remedy in finding.remedy.split("; ") {
            let _ = writeln!(out, "      -> {remedy}");
        }
    }
}

/// Appends a check that is ok, or skipped: one line.
fn enough(out: &mut String, finding: &Finding, style: Style) {
    let (have, need) = (finding.shown(&finding.have), finding.shown(&finding.need));
    let words = match (&finding.need, finding.status) {
        (_, Status::Skipped) => "not known".to_owned(),
        (Amount::Unknown, _) => have,
        _ => format!("{have:<16} need {need}"),
    };
    let label = match finding.status {
        Status::Skipped => "skip",
        _ => "ok  ",
    };
    let label = style.paint(finding.status, label);
    let _ = writeln!(
        out,
        "{}",
        format!("{label}  {:<24}{words}", finding.name).trim_end()
    );
    if style.everything || finding.status == Status::Skipped {
        wrapped(out, 6, &finding.why);
    }
}

/// Appends all limits of a way, the lowest first.
fn way_ladder(out: &mut String, findings: &[Finding], way: Way) {
    let rungs = ladder(findings, way);
    let Some(first) = rungs.first() else {
        let _ = writeln!(out, "{way}: nothing that is known here bounds it\n");
        return;
    };
    let _ = writeln!(
        out,
        "{way}: {} connections today, then {}",
        thousands(first.connections),
        first.finding.name
    );
    for rung in rungs.iter().filter(|rung| rung.connections < NO_LIMIT) {
        let (name, have) = (rung.finding.name, rung.finding.shown(&rung.finding.have));
        let _ = writeln!(
            out,
            "  {:>14}  {name:<24} have {have}",
            thousands(rung.connections)
        );
    }
    out.push('\n');
}

/// Appends other faults, where no number of connections was given.
fn notes(out: &mut String, findings: &[Finding], style: Style) {
    let wanting = findings
        .iter()
        .filter(|finding| matches!(finding.status, Status::Warn | Status::Fail));
    for finding in wanting {
        gap(out, finding, &Question::default(), style);
        out.push('\n');
    }
    if let Some(skipped) = findings
        .iter()
        .find(|f| f.name == "server" && f.status == Status::Skipped)
    {
        enough(out, skipped, style);
    }
    out.push_str("What N connections need, and the commands: onramp doctor --connections N\n");
}

/// Words in lines that begin with so many spaces.
pub(crate) fn wrapped(out: &mut String, indent: usize, words: &str) {
    let mut column = 0;
    for word in words.split_whitespace() {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > COLUMNS {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += len;
    }
    if column > 0 {
        out.push('\n');
    }
}
