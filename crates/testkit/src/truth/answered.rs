//! Statements that change nothing, which the pool answers in the server's place: what a server
//! answers to them.
//!
//! Each has connections of its own with all trackers on. One has a warning and asks, behind the
//! statement, how many there are; another has changed rows and asks how many.
//!
//! | cell | says |
//! |---|---|
//! | reply | fields of the OK that are not 0, and its status in words; or the error |
//! | reports | what the trackers say |
//! | conditions | `cleared`, or `kept` |
//! | ROW_COUNT() | behind the statement |

use super::cell::TRACKERS;
use crate::client::Client;
use crate::real::Real;
use crate::reply::{Done, Outcome};
use wire::command::Command;
use wire::status;

/// Answer to one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Text of the statement.
    pub statement: String,
    /// Reply, reports, conditions, ROW_COUNT(): see the file's head.
    pub cells: [String; 4],
}

/// Said as COM_PING, which has no text.
const PING: &str = "COM_PING";
/// A statement, and what was said before it on the same connection.
const STATEMENTS: [(&str, &[&str]); 8] = [
    ("BEGIN", &[]),
    ("START TRANSACTION", &[]),
    ("COMMIT", &[]),
    ("ROLLBACK", &[]),
    ("SET sql_select_limit = 5", &["SET sql_select_limit = 5"]),
    ("SET sql_mode = 'ANSI'", &["SET sql_mode = 'ANSI'"]),
    ("SET NAMES utf8mb4", &["SET NAMES utf8mb4"]),
    (PING, &[]),
];
/// Flags of the status that are given by name.
const FLAGS: [(u16, &str); 2] = [
    (status::IN_TRANS, "in a transaction"),
    (status::AUTOCOMMIT, "autocommit"),
];

/// All statements on one server.
pub(crate) fn all(real: &Real) -> Vec<Answered> {
    let one = |(statement, before): &(&str, &[&str])| answered(real, statement, before);
    STATEMENTS.iter().map(one).collect()
}

fn answered(real: &Real, statement: &str, before: &[&str]) -> Answered {
    let (mut client, outcome) = behind(real, statement, before, "SELECT CAST('truth' AS SIGNED)");
    let (reply, reports) = match &outcome {
        Outcome::Done(done) => (reply(done), reports(done)),
        other => panic!("{statement}: {other:?}"),
    };
    let conditions = match client.rows("SHOW WARNINGS").rows.is_empty() {
        true => "cleared",
        false => "kept",
    };
    let changes_rows = "UPDATE counted SET x = x + 1";
    let (mut client, _) = behind(real, statement, before, changes_rows);
    let count = client.value("SELECT ROW_COUNT()");
    Answered {
        statement: statement.into(),
        cells: [reply, reports, conditions.into(), count],
    }
}

/// A connection on which the statement was said behind another one, and what it was answered.
fn behind(real: &Real, statement: &str, before: &[&str], other: &str) -> (Client, Outcome) {
    let mut client = real.admin();
    client.must("USE truth");
    client.must(TRACKERS);
    for sql in before {
        client.must(sql);
    }
    client.must(other);
    let outcome = match statement {
        PING => {
            let outcomes = client.run(Command::Ping, b"");
            outcomes
                .unwrap_or_else(|error| panic!("{PING}: {error}"))
                .remove(0)
        }
        text => client.must(text),
    };
    (client, outcome)
}

fn reply(done: &Done) -> String {
    let mut words = Vec::new();
    let numbers = [
        ("rows", done.affected_rows),
        ("insert id", done.insert_id),
        ("counted warnings", u64::from(done.warnings)),
    ];
    let numbers = numbers.iter().filter(|(_, number)| *number != 0);
    words.extend(numbers.map(|(name, number)| format!("{number} {name}")));
    if !done.info.is_empty() {
        words.push(format!("'{}'", done.info));
    }
    // Whether there are reports is the next cell's.
    let mut rest = done.status & !status::SESSION_STATE_CHANGED;
    for (flag, name) in FLAGS {
        if rest & flag != 0 {
            words.push(name.into());
            rest &= !flag;
        }
    }
    if rest != 0 {
        words.push(format!("status {rest:#06x}"));
    }
    words.join(", ")
}

/// Reports in the order of the alphabet, without MySQL's number of the statement, which is another
/// each time.
fn reports(done: &Done) -> String {
    let numbered = |change: &&String| change.starts_with("statement_id=");
    let told = done.changes.iter().filter(|change| !numbered(change));
    let mut reports: Vec<&str> = told.map(String::as_str).collect();
    reports.sort_unstable();
    match reports.is_empty() {
        true => "none".into(),
        false => reports.join(", "),
    }
}
