//! Every session variable that the server lists, with a value that it can be set to.
//!
//! The list is the server's own (SHOW SESSION VARIABLES), and the few that servers hide. What a
//! variable can be set to is found by trying: the next number, the other switch, one of the words
//! that variables take. A variable that is not the session's, or read-only, is none of ours.

use super::State;
use super::cell::TRACKERS;
use crate::client::Client;
use crate::real::Real;
use crate::reply::Outcome;

/// MySQL sets them without showing them.
const HIDDEN: &[&str] = &[
    "debug_set_operations_secondary_overflow_at",
    "original_commit_timestamp",
    "require_row_format",
    "resultset_metadata",
    "secondary_engine_cost_threshold",
    "show_create_table_skip_secondary_engine",
    "show_gipk_in_create_table_and_information_schema",
    "use_secondary_engine",
    "xa_detach_on_prepare",
];

/// Words that some variable takes; tried in this order.
const WORDS: &[&str] = &[
    "'NONE'",
    "'OFF'",
    "'ON'",
    "'latin1'",
    "'latin1_bin'",
    "'de_DE'",
    "'+03:00'",
    "'MyISAM'",
    "'SERIALIZABLE'",
    "'STATEMENT'",
    "'MIXED'",
    "'NO'",
    "'YES'",
    "'ALL'",
    "'FULL'",
    "'MINIMAL'",
    "'CHAIN'",
    "'ANSI'",
    "'index_merge=off'",
    "'time_zone'",
    "'AUTOMATIC'",
    "'OWN_GTID'",
    "'STATE'",
    "'FORCED'",
    "'IDEMPOTENT'",
    "'truth'",
    "NULL",
    "1",
    "1000",
];

/// Names for one and the same, where a report may use the other one.
const ALIASES: &[(&str, &str)] = &[
    ("transaction_isolation", "tx_isolation"),
    ("transaction_read_only", "tx_read_only"),
    ("identity", "last_insert_id"),
];

/// The error for a variable that is the server's, or read-only.
const NOT_OURS: [u16; 3] = [1238, 1229, 1193];

/// Variables that can be set, and those of which no tried value was taken, each with an error.
pub(crate) fn all(real: &Real) -> (Vec<State>, Vec<String>) {
    let mut client = real.admin();
    let shown = client.rows("SHOW SESSION VARIABLES");
    let mut names: Vec<String> = shown
        .texts()
        .into_iter()
        .map(|mut row| row.swap_remove(0))
        .collect();
    names.extend(HIDDEN.iter().map(ToString::to_string));
    names.sort();
    names.dedup();
    let (mut found, mut unchanged) = (Vec::new(), Vec::new());
    for name in names {
        // A connection of its own: some of them change what others take.
        let mut client = real.admin();
        client.must(TRACKERS);
        match settable(&mut client, &name) {
            Ok(Some((set, read))) => found.push(state(&name, &set, read)),
            Ok(None) => {}
            Err(code) => unchanged.push(format!("{name} ({code})")),
        }
    }
    (found, unchanged)
}

/// Variables that `SET name = DEFAULT` makes another than a session begins with, or that it fails
/// for.
pub(crate) fn not_by_default(real: &Real) -> Vec<String> {
    let shown = real.admin().rows("SHOW SESSION VARIABLES");
    let names = shown.texts().into_iter().map(|mut row| row.swap_remove(0));
    names.filter(|name| !comes_back(real, name)).collect()
}

fn comes_back(real: &Real, name: &str) -> bool {
    let mut client = real.admin();
    let before = read(&mut client, name);
    let reply = client.query(&format!("SET SESSION {name} = DEFAULT"));
    match reply.expect("the server is there").remove(0) {
        Outcome::Failed(failure) => NOT_OURS.contains(&failure.code),
        // The clock goes on.
        _ => name == "timestamp" || read(&mut client, name) == before,
    }
}

fn read(client: &mut Client, name: &str) -> Option<String> {
    let reply = client.query(&format!("SELECT @@SESSION.{name}")).ok()?;
    match &reply[0] {
        Outcome::Rows(rows) => Some(rows.only()),
        _ => None,
    }
}

/// A value, and how it reads then; `None` when it is not a variable of the session.
fn settable(client: &mut Client, name: &str) -> Result<Option<(String, String)>, u16> {
    let Some(before) = read(client, name) else {
        return Ok(None);
    };
    let mut last = 0;
    for value in candidates(&before) {
        let reply = client.query(&format!("SET SESSION {name} = {value}"));
        match reply.expect("the server is there").remove(0) {
            Outcome::Failed(failure) if NOT_OURS.contains(&failure.code) => return Ok(None),
            Outcome::Failed(failure) => last = failure.code,
            _ => match read(client, name) {
                Some(now) if now != before => return Ok(Some((value, now))),
                _ => {}
            },
        }
    }
    Err(last)
}

fn candidates(before: &str) -> Vec<String> {
    let mut all = Vec::new();
    if let Ok(number) = before.parse::<f64>() {
        let whole = before.parse::<u64>().unwrap_or_default();
        let more = [whole.saturating_add(1), whole.saturating_mul(2), whole / 2];
        all.extend(more.map(|number| number.to_string()));
        all.extend(["1", "0", "2", "1000", "4096", "65536"].map(String::from));
        all.retain(|value| value.parse() != Ok(number));
    }
    if before.eq_ignore_ascii_case("on") {
        all.push("OFF".into());
    }
    if before.eq_ignore_ascii_case("off") {
        all.push("ON".into());
    }
    all.extend(WORDS.iter().map(ToString::to_string));
    all
}

fn state(name: &str, value: &str, becomes: String) -> State {
    let mut variables = vec![name.to_string()];
    for (one, other) in ALIASES {
        if name == *one {
            variables.push((*other).into());
        } else if name == *other {
            variables.push((*one).into());
        }
    }
    State {
        name: name.into(),
        change: format!("SET SESSION {name} = {value}"),
        at: Some(format!("SET @@{name} = {value}")),
        proof: vec![format!("SELECT @@SESSION.{name}")],
        becomes: Some(becomes),
        variables,
        ..State::default()
    }
}
