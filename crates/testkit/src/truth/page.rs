//! `tests/pages/trackers.md`: the tables as a page, and the page as tables.
//!
//! The page is made of one section for each server. Variables with the same cells share a row. What
//! is read back from the page equals what was written, so that tests can hold other things against
//! the committed truth where no server is at hand.

use super::{Answered, Row, Table, Way};

/// Heads the column of statements that change nothing.
const ANSWERED: &str = "answered";

/// Table of a section that a row belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    States,
    Variables,
    Answered,
}

const HEAD: &str = "\
# What the servers' session trackers report

The pool shares connections because the server reports what a statement changed in its session.
This page shows what servers report. `crates/testkit/src/truth` found it on live servers: it changes
each state in each way, on a connection of its own with all trackers on, and reads the state before
and after. `ONRAMP_WRITE=1 cargo test --test e2e truth` writes this page for the servers that are
there. Without the variable the same test compares.

Ways:

- *text* is COM_QUERY. *execute* is the binary protocol.
- In the other ways the change is in the body of stored code, which CALL, SELECT or INSERT runs.
- A *failing trigger* raises an error after the change. Its cell says what the next statement's OK
  reports.

Cells:

- `variable`, `schema`, `transaction`, `characteristics`: the tracker of that name reports it.
- `ok`: a field of the OK packet reports it.
- `state`: the server reports only that some state has changed.
- **silent**: the state changed, and the server reported nothing.
- `unchanged`: the statement succeeded without changing the state.
- `misreported`: the same, but the tracker says that it has changed.
- `refused`: stored code may not contain it.
- A number is the server's error.

*Answered* are statements that change nothing, to which the pool answers in the server's place: what
a server answers to them behind a statement with a warning, and ROW_COUNT() behind them where the
statement before changed rows.
";

/// The whole page.
#[must_use]
pub fn page(tables: &[Table]) -> String {
    let sections: Vec<String> = tables.iter().map(section).collect();
    format!("{HEAD}\n{}", sections.join("\n"))
}

fn section(table: &Table) -> String {
    let mut text = format!("## {}\n\n", table.server);
    let ways = Way::ALL.map(Way::name);
    let states = ways.iter().filter(|way| !way.starts_with('`'));
    let states: Vec<&str> = states.copied().collect();
    text += &format!("| state | changed by | {} |\n", states.join(" | "));
    text += &format!("|---|---|{}\n", "---|".repeat(states.len()));
    for row in &table.states {
        let cells = cells(row);
        let cells = [&cells[..1], &cells[2..]].concat();
        text += &format!(
            "| {} | `{}` | {} |\n",
            row.name,
            row.change,
            cells.join(" | ")
        );
    }
    text += &format!("\n| variables | {} |\n", ways.join(" | "));
    text += &format!("|---|{}\n", "---|".repeat(ways.len()));
    let mut kinds: Vec<(&[String; 7], Vec<&str>)> = Vec::new();
    for row in &table.variables {
        match kinds.iter_mut().find(|(cells, _)| **cells == row.cells) {
            Some((_, names)) => names.push(&row.name),
            None => kinds.push((&row.cells, vec![&row.name])),
        }
    }
    // The many first: the exceptions follow them.
    kinds.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    for (kind, names) in kinds {
        let row = Row {
            name: names.join(", "),
            change: String::new(),
            cells: kind.clone(),
        };
        text += &format!("| {} | {} |\n", row.name, cells(&row).join(" | "));
    }
    if !table.answered.is_empty() {
        text += &format!("\n| {ANSWERED} | reply | reports | conditions | ROW_COUNT() |\n");
        text += "|---|---|---|---|---|\n";
    }
    for row in &table.answered {
        text += &format!("| `{}` | {} |\n", row.statement, row.cells.join(" | "));
    }
    if !table.unchanged.is_empty() {
        let names = table.unchanged.join(", ");
        text += &format!("\nNot examined, since no tried value was taken: {names}.\n");
    }
    if !table.not_by_default.is_empty() {
        let names = table.not_by_default.join(", ");
        text += &format!("\nNot brought back by `SET name = DEFAULT`: {names}.\n");
    }
    text
}

fn cells(row: &Row) -> Vec<String> {
    let bold = |cell: &String| match cell.as_str() {
        "silent" => "**silent**".to_string(),
        other => other.to_string(),
    };
    row.cells.iter().map(bold).collect()
}

/// The tables of a page.
#[must_use]
pub fn tables(page: &str) -> Vec<Table> {
    let sections = page.split("\n## ").skip(1);
    sections.map(table).collect()
}

fn table(section: &str) -> Table {
    let mut table = Table {
        server: section.lines().next().unwrap_or_default().into(),
        states: Vec::new(),
        variables: Vec::new(),
        answered: Vec::new(),
        unchanged: Vec::new(),
        not_by_default: Vec::new(),
    };
    let mut part = Part::States;
    for line in section.lines().skip(1) {
        if let Some((_, names)) = line.split_once("no tried value was taken: ") {
            let names = names.trim_end_matches('.').split(", ");
            table.unchanged = names.map(String::from).collect();
        }
        if let Some((_, names)) = line.split_once("by `SET name = DEFAULT`: ") {
            let names = names.trim_end_matches('.').split(", ");
            table.not_by_default = names.map(String::from).collect();
        }
        let Some(row) = line
            .strip_prefix("| ")
            .and_then(|line| line.strip_suffix(" |"))
        else {
            continue;
        };
        let columns: Vec<&str> = row.split(" | ").collect();
        match columns[0] {
            "state" => part = Part::States,
            "variables" => part = Part::Variables,
            ANSWERED => part = Part::Answered,
            statement if part == Part::Answered => table.answered.push(Answered {
                statement: statement.trim_matches('`').into(),
                cells: std::array::from_fn(|at| columns[at + 1].into()),
            }),
            names if part == Part::Variables => {
                let row = |name: &str| row_of(name, "", &columns[1..]);
                table.variables.extend(names.split(", ").map(row));
            }
            name => {
                let cells = [&columns[2..3], &["-"], &columns[3..]].concat();
                table.states.push(row_of(name, columns[1], &cells));
            }
        }
    }
    table
        .variables
        .sort_by(|one, other| one.name.cmp(&other.name));
    table
}

fn row_of(name: &str, change: &str, cells: &[&str]) -> Row {
    let cells = cells.iter().map(|cell| cell.trim_matches('*').to_string());
    let cells: Vec<String> = cells.collect();
    Row {
        name: name.into(),
        change: change.trim_matches('`').into(),
        cells: cells.try_into().expect("a cell for each way"),
    }
}

/// Differences between two tables of servers, in words; empty when they agree.
#[must_use]
pub fn differences(committed: &Table, found: &Table) -> Vec<String> {
    let all = |table: &Table| [&table.states[..], &table.variables].concat();
    let (committed_rows, found_rows) = (all(committed), all(found));
    let by_name = |rows: &[Row], name: &str| rows.iter().find(|row| row.name == name).cloned();
    let mut words = Vec::new();
    for row in &found_rows {
        match by_name(&committed_rows, &row.name) {
            None => words.push(format!(
                "{}: not in the page; found {:?}",
                row.name, row.cells
            )),
            Some(other) if other != *row => words.push(format!(
                "{}: the page says {:?} {:?}, found {:?} {:?}",
                row.name, other.change, other.cells, row.change, row.cells
            )),
            Some(_) => {}
        }
    }
    for row in &committed_rows {
        if by_name(&found_rows, &row.name).is_none() {
            words.push(format!("{}: in the page, but not on the server", row.name));
        }
    }
    if committed.answered != found.answered {
        let (committed, found) = (&committed.answered, &found.answered);
        words.push(format!(
            "answered: the page says {committed:?}, found {found:?}"
        ));
    }
    if committed.not_by_default != found.not_by_default {
        let (committed, found) = (&committed.not_by_default, &found.not_by_default);
        words.push(format!(
            "not by DEFAULT: the page says {committed:?}, found {found:?}"
        ));
    }
    words
}
