//! `tests/pages/conformance.md`: the suite's result as a page, one section for each server.
//!
//! A run is held against the page cell by cell ([`differences`]). What the page itself says to
//! differ is left to chance there: it is to be mended, and then the page is rewritten. A question
//! that the page says to be refused may be answered: that hangs on which backend is free.

use super::{Path, Row};

const HEAD: &str = "\
# Conformance

This page answers: can two clients that share a connection tell that they share it? Two clients, A
and B, share one connection to the server through `onramp pool`. A sets a state of its session. B
sets its own. Both end it. After each step both clients read the state. Every reply (values,
columns, errors, warnings, counts, status flags) is compared with the reply on a connection of the
client's own. `ONRAMP_WRITE=1 cargo test --test e2e conformance` writes this page. Without the
variable the same test fails where a run differs from the page.

Each cell is told twice through the pool: with statements that come at once, and with statements
that come only after the pool has asked what it wants to know about the one before. Where the two
differ, the cell says so.

A sets the state by one of these paths:

- *text*: by COM_QUERY;
- *prepared*: by a prepared statement of the binary protocol;
- *multi*: behind another statement in one text;
- *CALL*, *function*, *trigger*: inside of stored code;
- *failing trigger*: in a trigger that raises an error after it;
- *transaction*: in a transaction that is rolled back at the end;
- *errors*: between two errors;
- *reset*, *change user*: with COM_RESET_CONNECTION or COM_CHANGE_USER behind it;
- *EOF*: by COM_QUERY, where both clients have no CLIENT_DEPRECATE_EOF.

| a cell says | and means |
|---|---|
| yes | the same as direct; A was never bound to a backend |
| yes, held | the same; A has its backend while a transaction is open |
| yes, pin `r` | the same; A is pinned for reason `r` while the state holds, and free at its end |
| ..., stays | A keeps its pin until it leaves or resets |
| refused | the server refuses it, and A gets the same error through the pool |
| 1235 | the same until the pool refuses a question about the previous statement ([limits]) |
| 1235 or ... | refused or answered, by which backend is free at that moment |
| **differs** | A or B can tell; the test prints where, and what each received |

FOUND_ROWS() is asked after a query of both clients: before its first query, a session of MariaDB
returns what the last session of its thread has found.

[limits]: ../../docs/pool/limits.md#questions-that-are-refused
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
    let gone = cells().filter(|cell| cell.starts_with("1235")).count();
    let free = cells().filter(|cell| *cell == "yes").count();
    let stays = cells().filter(|cell| cell.contains("pin")).count();
    format!(
        "{all} cells: {} the same as direct ({refused} of them refused by the server, {free} \
         without being bound, {stays} with a pin), {gone} refused with error 1235, {differs} not.",
        all - differs - gone
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

/// Differences between a run and the page, in words. Cells that the page knows to differ are not
/// held against the run: the backend that a client gets then is a matter of moments.
#[must_use]
pub fn differences(committed: &str, found: &str) -> Vec<String> {
    let rows = |text: &str| -> Vec<Vec<String>> {
        let rows = text.lines().filter(|line| line.starts_with("| "));
        let cells = |line: &str| line.split(" | ").map(String::from).collect();
        rows.map(cells).collect()
    };
    let (committed, found) = (rows(committed), rows(found));
    let mut words = Vec::new();
    for (index, row) in found.iter().enumerate() {
        let Some(page) = committed.get(index).filter(|page| page[..2] == row[..2]) else {
            words.push(format!(
                "  not in the page, or elsewhere: {}",
                row.join(" | ")
            ));
            continue;
        };
        let cells = page.iter().zip(row);
        let same = |(one, other): (&String, &String)| {
            let may = one.starts_with("1235") && (other == "yes" || other.starts_with("1235"));
            one == other || one.contains("**differs**") || may
        };
        if page.len() != row.len() || !cells.clone().all(same) {
            let (page, row) = (page.join(" | "), row.join(" | "));
            words.push(format!("  the page: {page}\n  this run: {row}"));
        }
    }
    if committed.len() > found.len() {
        words.push("  the page has more rows".into());
    }
    words
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
