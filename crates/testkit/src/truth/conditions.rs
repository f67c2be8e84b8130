//! Conditions (warnings, errors) of a failed statement, behind another: cleared, kept, replaced.
//!
//! The problem: SHOW WARNINGS asks about the statement before, and servers differ in which
//! statements clear what was there; the pool has to know it from the text ([`area_of`]). The
//! mechanism: for every statement of `conditions.txt` a connection of its own raises an error, runs
//! the statement and asks SHOW WARNINGS, SHOW COUNT(*) WARNINGS and `@@warning_count`. The result
//! is committed (`tests/pages/conditions.md`), and [`gaps`] holds the judgement of texts against
//! it.
//!
//! Invariant: every word that can begin a statement stands in `conditions.txt`
//! (`sql::classify::first_words`), but for [`LEFT_OUT`].

use super::cover::mode_of;
use crate::client::Client;
use crate::real::{Flavour, Real};
use crate::reply::Outcome;
use session::diagnostics::Area;
use session::plan::area_of;
use sql::classify::classify;
use std::fmt::Write;
use wire::command::Command;

const STATEMENTS: &str = include_str!("conditions.txt");
/// Raises the condition that is there before.
const BEFORE: &str = "SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 5555";
/// Its number.
const BEFORE_ERRNO: &str = "5555";
/// First words that are not tried: they would end the server, or never end.
pub const LEFT_OUT: [&str; 2] = ["LOOP", "SHUTDOWN"];

const HEAD: &str = "\
# What statements do to the conditions before them

Behind an error, a statement runs on the same connection; then SHOW WARNINGS, SHOW COUNT(\\*)
WARNINGS and `@@warning_count` are asked. This page shows what servers answer; the pool follows it
where another connection has to answer. `crates/testkit/src/truth/conditions.rs` asks the servers.
`ONRAMP_WRITE=1 cargo test --test e2e truth` writes this page for the servers that are there.
Without the variable the same test compares.

*text* is COM_QUERY, *prepare* COM_STMT_PREPARE, *execute* COM_STMT_EXECUTE of what was prepared
before the error.

- `cleared`: the error is gone. `kept`: it is shown.
- `warns`: the statement's own warnings alone are shown; `warns behind`: they follow the error.
- `fails`: the statement fails, and its own conditions alone are shown; `fails behind`: they follow
  the error; `fails unlisted`: the error before is shown alone.
- `-`: it cannot be prepared, or has parameters.
";

/// A way to send a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Text,
    Prepare,
    Execute,
}

/// One statement's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The statement.
    pub statement: String,
    /// Effects as text, when it is prepared, when it is executed.
    pub cells: [String; 3],
}

/// Statements for a server, in order; `false` of those that are not asked about.
fn statements(flavour: Flavour) -> impl Iterator<Item = (&'static str, bool)> {
    let comment = |line: &&str| !line.starts_with("# ");
    STATEMENTS.lines().filter(comment).filter_map(move |line| {
        let (only, rest) = match line.as_bytes() {
            [b'M', b'+' | b':', ..] => (Some(Flavour::MariaDb), &line[1..]),
            [b'Y', b'+' | b':', ..] => (Some(Flavour::MySql), &line[1..]),
            _ => (None, line),
        };
        let asked = !rest.starts_with('+');
        let text = rest.strip_prefix(['+', ':']).unwrap_or(rest);
        (only.is_none_or(|only| only == flavour)).then_some((text, asked))
    })
}

/// First words of statements that no line of `conditions.txt` begins with.
#[must_use]
pub fn untried() -> Vec<&'static str> {
    let all: Vec<&str> = [Flavour::MariaDb, Flavour::MySql]
        .into_iter()
        .flat_map(|flavour| statements(flavour).map(|(text, _)| text))
        .collect();
    let tried = |word: &&str| {
        all.iter()
            .any(|text| text.split([' ', '(']).next() == Some(*word))
    };
    let words = sql::classify::first_words();
    words
        .filter(|word| !tried(word) && !LEFT_OUT.contains(word))
        .collect()
}

/// Asks a server about every statement.
///
/// # Panics
/// When the ground cannot be laid.
#[must_use]
pub fn examine(real: &Real) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for way in [Way::Text, Way::Prepare, Way::Execute] {
        let mut admin = real.admin();
        let names = [
            "DATABASE IF EXISTS conditions",
            "DATABASE IF EXISTS conditions_b",
        ];
        let users = [
            "USER IF EXISTS conditions_u, conditions_v",
            "ROLE IF EXISTS conditions_r",
        ];
        for name in names.into_iter().chain(users) {
            admin.must(&format!("DROP {name}"));
        }
        admin.must("CREATE DATABASE conditions");
        admin.must("USE conditions");
        let mut at = 0;
        for (statement, asked) in statements(real.flavour()) {
            if !asked {
                admin.must(statement);
                continue;
            }
            let cell = cell(real, statement, way);
            if way == Way::Text {
                let statement = statement.into();
                rows.push(Row {
                    statement,
                    cells: [cell, String::new(), String::new()],
                });
            } else {
                rows[at].cells[way as usize] = cell;
            }
            at += 1;
        }
    }
    rows
}

fn cell(real: &Real, statement: &str, way: Way) -> String {
    let mut client = real.admin();
    client.must("USE conditions");
    let said = match way {
        Way::Text => {
            client.failure(BEFORE);
            client.query(statement)
        }
        Way::Prepare => {
            client.failure(BEFORE);
            client.run(Command::StmtPrepare, statement.as_bytes())
        }
        Way::Execute => {
            let prepared = client.run(Command::StmtPrepare, statement.as_bytes());
            match prepared.as_deref() {
                Ok([Outcome::Prepared(prepared)]) if prepared.params.is_empty() => {
                    client.failure(BEFORE);
                    client.execute(prepared.id, &[], false)
                }
                _ => return "-".into(),
            }
        }
    };
    let said = said.unwrap_or_else(|error| panic!("{statement}: {error}"));
    let failed = said.iter().any(|one| matches!(one, Outcome::Failed(_)));
    judged(&mut client, failed)
}

/// Conditions at this moment.
fn judged(client: &mut Client, failed: bool) -> String {
    let shown = client.rows("SHOW WARNINGS");
    let codes: Vec<String> = shown.texts().iter().map(|row| row[1].clone()).collect();
    let before = codes.first().is_some_and(|code| code == BEFORE_ERRNO);
    let own = codes.len() - usize::from(before);
    let word = match (failed, before, own) {
        (false, false, 0) => "cleared",
        (false, true, 0) => "kept",
        (false, false, _) => "warns",
        (false, true, _) => "warns behind",
        (true, true, 0) => "fails unlisted",
        (true, false, _) => "fails",
        (true, true, _) => "fails behind",
    };
    let counts = ["SHOW COUNT(*) WARNINGS", "SELECT @@warning_count"].map(|sql| client.value(sql));
    match counts.iter().all(|count| *count == codes.len().to_string()) {
        true => word.into(),
        false => format!("{word}, counted {}", counts.join(" and ")),
    }
}

/// The page with this section of a server's; the others stay.
#[must_use]
pub fn with_section(page: &str, server: &str, section: &str) -> String {
    let mut sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    sections.retain(|one| one.lines().next() != Some(server));
    let section = format!("{server}\n{section}");
    sections.push(&section);
    sections.sort_unstable();
    let sections: String = sections.iter().fold(String::new(), |mut text, one| {
        let _ = write!(text, "\n## {}\n", one.trim_end());
        text
    });
    format!("{HEAD}{sections}")
}

/// The section of a server, without its heading, where the page has one.
#[must_use]
pub fn section_of<'a>(page: &'a str, server: &str) -> Option<&'a str> {
    let sections = page.split("\n## ").skip(1);
    let mut found = sections.filter_map(|one| one.split_once('\n'));
    found
        .find(|(name, _)| *name == server)
        .map(|(_, section)| section)
}

/// A server's section: statements with the same cells share a row, the many first.
#[must_use]
pub fn section(rows: &[Row]) -> String {
    let mut kinds: Vec<(&[String; 3], Vec<&str>)> = Vec::new();
    for row in rows {
        match kinds.iter_mut().find(|(cells, _)| **cells == row.cells) {
            Some((_, all)) if all.contains(&&*row.statement) => {}
            Some((_, all)) => all.push(&row.statement),
            None => kinds.push((&row.cells, vec![&row.statement])),
        }
    }
    kinds.sort_by_key(|(_, all)| std::cmp::Reverse(all.len()));
    let mut text = String::from("\n| text | prepare | execute | statements |\n|---|---|---|---|\n");
    for (cells, all) in kinds {
        let all: Vec<String> = all.iter().map(|one| format!("`{one}`")).collect();
        let _ = writeln!(text, "| {} | {} |", cells.join(" | "), all.join(", "));
    }
    text
}

/// Statements of a section, with their cells.
fn rows_of(section: &str) -> Vec<(&str, Vec<&str>)> {
    let mut rows = Vec::new();
    for line in section.lines().filter(|line| line.ends_with("` |")) {
        let mut cells = line.trim_start_matches("| ").splitn(4, " | ");
        let found: Vec<&str> = cells.by_ref().take(3).collect();
        let all = cells.next().unwrap_or_default().trim_end_matches(" |");
        for statement in all.trim_matches('`').split("`, `") {
            rows.push((statement, found.clone()));
        }
    }
    rows
}

/// Statements that the pool judges otherwise than the servers of a page do, as sentences.
#[must_use]
pub fn gaps(page: &str) -> Vec<String> {
    let mut gaps = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let server = section.lines().next().unwrap_or_default();
        let mode = mode_of(server);
        for (statement, cells) in rows_of(section) {
            let area = area_of(&classify(statement.as_bytes(), mode), mode.server);
            for (way, cell) in ["text", "prepare", "execute"].into_iter().zip(cells) {
                let right = match cell {
                    "cleared" => matches!(area, Area::Clears | Area::Unsure),
                    "kept" => matches!(area, Area::Keeps | Area::Unsure),
                    _ => true,
                };
                if !right {
                    let area = format!("{area:?}");
                    gaps.push(format!(
                        "{server}: {statement} as {way}: {cell}, taken for {area}"
                    ));
                }
            }
        }
    }
    gaps
}
