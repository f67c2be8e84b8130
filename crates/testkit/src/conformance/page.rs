//! `docs/conformance.md`: the suite's result as a page, one section for each server.

use super::{Path, Row};

const HEAD: &str = "\
# Conformance

Two clients share one connection to the server through `onramp pool`. One of them (A) sets a state
of its session, both look, the other (B) sets its own, both look, both end it, both look. Every
reply (values, columns, errors, warnings, counts, status flags) is compared with what two
connections of their own hear. `ONRAMP_WRITE=1 cargo test --test e2e conformance` writes this page;
without the variable the same test fails where a run says otherwise.

Paths: A sets it by COM_QUERY (*text*), by a *prepared* statement of the binary protocol, behind
another statement in one text (*multi*), inside of stored code (*CALL*, *function*, *trigger*, and a
*failing trigger* that raises an error behind it), in a *transaction* that is rolled back at the end,
between two *errors*, and with COM_RESET_CONNECTION (*reset*) or COM_CHANGE_USER behind it.

| a cell says | and means |
|---|---|
| yes | the same as direct; A was never bound to a backend |
| yes, held | the same; A has its backend while a transaction is open |
| yes, pin `r` | the same; A is pinned for reason `r` while the state holds, and free at its end |
| ..., stays | A keeps its pin until it leaves or resets |
| refused | the server refuses it, and through the pool A hears the same |
| **differs** | A or B can tell, at the step that is named |
";

/// A section: the table of one server.
#[must_use]
pub fn section(server: &str, rows: &[Row]) -> String {
    let paths: Vec<&str> = Path::ALL.iter().map(|path| path.name()).collect();
    let mut text = format!("## {server}\n\n{}\n\n", sum(rows));
    text += &format!("| state | set by | {} |\n", paths.join(" | "));
    text += &format!("|---|---|{}\n", "---|".repeat(paths.len()));
    for row in rows {
        let (name, set) = (&row.name, &row.set);
        text += &format!("| {name} | `{set}` | {} |\n", row.cells.join(" | "));
    }
    text
}

fn sum(rows: &[Row]) -> String {
    let cells = || rows.iter().flat_map(|row| &row.cells);
    let all = cells().count();
    let differs = cells().filter(|cell| cell.contains("differs")).count();
    let refused = cells().filter(|cell| *cell == "refused").count();
    let free = cells().filter(|cell| *cell == "yes").count();
    let stays = cells().filter(|cell| cell.contains("pin")).count();
    format!(
        "{all} cells: {} the same as direct ({refused} of them refused by the server, {free} \
         without being bound, {stays} with a pin), {differs} not.",
        all - differs
    )
}

/// The section of this server in a page, if it is there.
#[must_use]
pub fn section_in<'a>(page: &'a str, server: &str) -> Option<&'a str> {
    sections(page).find(|section| section.lines().next() == Some(&format!("## {server}")))
}

fn sections(page: &str) -> impl Iterator<Item = &str> {
    let starts = page.match_indices("## ").map(|(at, _)| at);
    let starts: Vec<usize> = starts.filter(|at| page[..*at].ends_with('\n')).collect();
    let ends = starts.iter().skip(1).copied().chain([page.len()]);
    let spans: Vec<(usize, usize)> = starts.iter().copied().zip(ends).collect();
    spans
        .into_iter()
        .map(|(start, end)| page[start..end].trim_end())
}

/// The page with this section in place of the one of its server.
#[must_use]
pub fn with_section(page: &str, section: &str) -> String {
    let title = section.lines().next();
    let others = sections(page).filter(|other| other.lines().next() != title);
    let mut all: Vec<&str> = others.chain([section.trim_end()]).collect();
    all.sort_unstable();
    format!("{HEAD}\n{}\n", all.join("\n\n"))
}
