//! One cell of the table: one state, changed in one way, on a connection of its own.
//!
//! What a cell says:
//!
//! | word | means |
//! |---|---|
//! | `variable` | the tracker of variables names it |
//! | `schema` | the tracker of the schema |
//! | `transaction` | the status, or the tracker of transactions |
//! | `characteristics` | the tracker of a transaction's characteristics |
//! | `ok` | a field of the OK packet: insert id, affected rows, warnings |
//! | `state` | only that some state has changed |
//! | `silent` | it changed, and nothing came |
//! | `unchanged` | the statement went well, and the state is as before |
//! | `misreported` | the same, but the tracker says that it has changed |
//! | a number | the server's error; no change |
//!
//! For a failing trigger, `later: ...` is what the next statement's OK reports.
//!
//! Invariant: a connection is reset before it is left, so that locks are gone when the next begins.

use super::{State, Told, Way};
use crate::client::{Client, ClientError};
use crate::real::Real;
use crate::reply::{Done, Outcome};
use wire::command::Command;
use wire::status;

/// Text by which the pool switches them on.
pub(crate) const TRACKERS: &str = "SET session_track_system_variables='*',session_track_schema=ON,\
     session_track_state_change=ON,session_track_transaction_info='CHARACTERISTICS'";

/// The error of the trigger that fails.
const ON_PURPOSE: u16 = 3333;

/// All ways; routines are made by the administrator and removed again.
pub(crate) fn cells(real: &Real, admin: &mut Client, state: &State) -> [String; 7] {
    let (change, mut made) = (&state.change, Vec::new());
    let made_as = [
        ("PROCEDURE truth.p", format!("() BEGIN {change}; END")),
        (
            "FUNCTION truth.f",
            format!("() RETURNS INT BEGIN {change}; RETURN 1; END"),
        ),
        (
            "TRIGGER truth.fires",
            format!(
                " BEFORE INSERT ON truth.fired FOR EACH ROW BEGIN {change}; IF NEW.x = 2 THEN \
                 SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {ON_PURPOSE}; END IF; END"
            ),
        ),
    ];
    for (name, body) in made_as {
        // What a routine may not contain is refused when it is made.
        let reply = admin.query(&format!("CREATE {name}{body}"));
        let reply = reply.unwrap_or_else(|error| panic!("{name}{body}: {error}"));
        if !reply.iter().any(|outcome| failed(outcome).is_some()) {
            made.push(name);
        }
    }
    let has = |kind: &str| made.iter().any(|name: &&str| name.starts_with(kind));
    let cells = Way::ALL.map(|way| match way {
        Way::At if state.at.is_none() => "-".into(),
        Way::Call if !has("PROCEDURE") => "refused".into(),
        Way::Function if !has("FUNCTION") => "refused".into(),
        Way::Trigger | Way::Failing if !has("TRIGGER") => "refused".into(),
        way => cell(real, state, way),
    });
    for name in made {
        admin.must(&format!("DROP {name}"));
    }
    cells
}

fn failed(outcome: &Outcome) -> Option<u16> {
    match outcome {
        Outcome::Failed(failure) => Some(failure.code),
        _ => None,
    }
}

fn cell(real: &Real, state: &State, way: Way) -> String {
    let mut client = real.admin();
    client.must("USE truth");
    client.must(TRACKERS);
    for sql in &state.before {
        client.must(sql);
    }
    let text = changed(&mut client, state, way);
    // Gives locks and transactions back, which a plain good-bye does at some later time. Some
    // states forbid it; those end with the connection.
    let left = client.run(Command::ResetConnection, b"");
    match (text, left) {
        (Ok(text), Ok(_)) => text,
        (Err(error), _) | (_, Err(error)) => {
            panic!("{} by {}: {error}", state.name, way.name())
        }
    }
}

fn changed(client: &mut Client, state: &State, way: Way) -> Result<String, ClientError> {
    let before = proof(client, state)?;
    let mut outcomes = say(client, state, way)?;
    let late = way == Way::Failing;
    match outcomes.iter().find_map(failed) {
        Some(ON_PURPOSE) if late => outcomes = client.query("DO 1")?,
        Some(code) => return Ok(code.to_string()),
        None => {}
    }
    let after = proof(client, state)?;
    let changed = match &state.becomes {
        Some(wanted) => after == *wanted && before != *wanted,
        None => after != before,
    };
    let signs = signs(&outcomes, state);
    Ok(match (changed, signs.is_empty(), late) {
        (false, ..) if misreported(&outcomes, state) => "misreported".to_string(),
        (false, ..) => "unchanged".to_string(),
        (true, true, _) => "silent".to_string(),
        (true, false, false) => signs.join("+"),
        (true, false, true) => format!("later: {}", signs.join("+")),
    })
}

fn say(client: &mut Client, state: &State, way: Way) -> Result<Vec<Outcome>, ClientError> {
    let text = match way {
        Way::Text | Way::Execute => &state.change,
        Way::At => state.at.as_deref().unwrap_or_default(),
        Way::Call => "CALL truth.p()",
        Way::Function => "SELECT truth.f()",
        Way::Trigger => "INSERT INTO truth.fired VALUES (1)",
        Way::Failing => "INSERT INTO truth.fired VALUES (2)",
    };
    if way != Way::Execute {
        return client.query(text);
    }
    let prepared = client.run(Command::StmtPrepare, text.as_bytes())?;
    match &prepared[..] {
        [Outcome::Prepared(prepared)] => client.execute(prepared.id, &[], false),
        _ => Ok(prepared),
    }
}

/// State as the values of the last reply, or the first error.
fn proof(client: &mut Client, state: &State) -> Result<String, ClientError> {
    let mut said = String::new();
    for sql in &state.proof {
        let reply = client.query(sql)?;
        if let Some(code) = reply.iter().find_map(failed) {
            return Ok(format!("error {code}"));
        }
        said = match &reply[0] {
            Outcome::Rows(rows) => rows.texts().concat().join(","),
            _ => "ok".into(),
        };
    }
    Ok(said)
}

/// The reports that are of this state, the most telling ones.
fn signs(outcomes: &[Outcome], state: &State) -> Vec<&'static str> {
    let done: Vec<&Done> = outcomes.iter().filter_map(done_of).collect();
    let changes = || done.iter().flat_map(|done| &done.changes);
    let named = |change: &&String| {
        let name = change.split('=').next().unwrap_or_default();
        let is = |variable: &String| variable.eq_ignore_ascii_case(name);
        state.variables.iter().any(is)
    };
    let has = |start: &str| changes().any(|change| change.starts_with(start));
    let open = changes().any(|change| {
        let state = change.strip_prefix("transaction=");
        state.is_some_and(|state| state.bytes().any(|b| b != b'_'))
    });
    let characteristics = changes()
        .any(|change| change.starts_with("characteristics=") && change != "characteristics=");
    let last = done.last();
    let ok = last.is_some_and(|last| match state.told {
        Told::Nothing => false,
        Told::InsertId => last.insert_id != 0,
        Told::Affected => last.affected_rows != 0,
        Told::Warnings => last.warnings != 0,
    });
    let in_transaction = last.is_some_and(|last| last.status & status::IN_TRANS != 0);
    let mut signs = Vec::new();
    let mut sign = |is: bool, word| {
        if is {
            signs.push(word);
        }
    };
    sign(changes().any(|change| named(&change)), "variable");
    sign(state.name.starts_with("schema") && has("schema="), "schema");
    sign(open || in_transaction, "transaction");
    sign(characteristics, "characteristics");
    sign(ok, "ok");
    let bare = signs.is_empty() && changes().any(|change| change == "state");
    if bare {
        signs.push("state");
    }
    signs
}

/// True if the last report has the value that it had inside of stored code only.
fn misreported(outcomes: &[Outcome], state: &State) -> bool {
    let done = outcomes.iter().filter_map(done_of);
    let reports = done.flat_map(|done| &done.changes);
    let mut reports = reports.filter_map(|change| change.split_once('='));
    let named = |name: &str| state.variables.iter().any(|v| v.eq_ignore_ascii_case(name));
    let last = reports.rfind(|(name, _)| named(name));
    let switch = |value: &str| match value {
        "ON" => "1".to_string(),
        "OFF" => "0".to_string(),
        value => value.to_string(),
    };
    let wanted = state.becomes.as_deref().map(switch);
    last.is_some_and(|(_, value)| Some(switch(value)) == wanted)
}

fn done_of(outcome: &Outcome) -> Option<&Done> {
    match outcome {
        Outcome::Done(done) => Some(done),
        Outcome::Rows(rows) => Some(&rows.end),
        _ => None,
    }
}
