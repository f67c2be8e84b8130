//! The classification of texts, held against the committed truth.
//!
//! For each cell of the table: what a server does not report in a way that tells the new state must
//! pin the client by its text, or be read back. The rules by which the pool covers the rest are
//! written out here ([`covered`]), each with where it stands, so that a state that a server no
//! longer reports, or a text that no longer pins, is a failure of a test and not of a session.
//!
//! What no text shows, since a trigger does it, is not the classification's, but its body's:
//! [`OUT_OF_SIGHT`].

use super::{Answered, Row, Table, Way};
use sql::classify::{InsertId, Reads, Statement, Verb, classify};
use sql::lex::{Charset, LexMode, Server};
use sql::unscoped::retold;

/// States that a trigger can leave while nothing is reported: the pool finds such triggers by their
/// bodies (`triggers_and_views.rs`).
pub const OUT_OF_SIGHT: [&str; 8] = [
    "user variable by INTO",
    "user variable by :=",
    "named lock",
    "named lock given up",
    "last value of a sequence",
    "instance lock",
    "role",
    "resource group",
];

/// Cells that the pool does not cover, as sentences; empty when all are.
#[must_use]
pub fn gaps(table: &Table) -> Vec<String> {
    let mode = mode_of(&table.server);
    let mut gaps = Vec::new();
    for row in table.states.iter().chain(&table.variables) {
        for (way, cell) in Way::ALL.iter().zip(&row.cells) {
            for text in texts(row, *way) {
                let found = classify(text.as_bytes(), mode);
                if !covered(row, *way, cell, &found) && !retells(row, *way, cell, &text, mode) {
                    let (server, way) = (&table.server, way.name());
                    gaps.push(format!(
                        "{server}: {} by {way} is '{cell}', and nothing pins: {text}",
                        row.name
                    ));
                }
            }
        }
    }
    for answered in &table.answered {
        if !answers_alike(answered, mode) {
            gaps.push(format!(
                "{}: {} is answered otherwise than the pool answers it: {:?}",
                table.server, answered.statement, answered.cells
            ));
        }
    }
    for name in &table.not_by_default {
        let text = format!("SET SESSION {name} = 1");
        let found = classify(text.as_bytes(), mode);
        let covered =
            found.pin.is_some() || found.sets_charset || found.insert_id != InsertId::Keeps;
        if !covered && !RESTORED_OTHERWISE.contains(&name.as_str()) {
            gaps.push(format!(
                "{}: DEFAULT does not bring {name} back",
                table.server
            ));
        }
    }
    gaps
}

/// True if the pool's own answer has nothing else in it: `Group::on_text_alone` and COM_PING send
/// an OK without numbers, and `LastStatement` notes what has become of conditions and counts.
fn answers_alike(row: &Answered, mode: LexMode) -> bool {
    let [reply, reports, conditions, count] = row.cells.each_ref().map(String::as_str);
    if row.statement == "COM_PING" {
        // MySQL counts the conditions that are still there.
        return reply.ends_with("autocommit") && (reports, conditions) == ("none", "kept");
    }
    let sets = row.statement.starts_with("SET");
    let begins = matches!(row.statement.as_str(), "BEGIN" | "START TRANSACTION");
    let status = match begins {
        true => "in a transaction, autocommit",
        false => "autocommit",
    };
    // Whoever is told of variables is not answered alone.
    let reported = sets || begins || reports == "none";
    let left = match mode.server.is_mysql() {
        true => "cleared",
        false => "kept",
    };
    // The status has MariaDB's flag of ANSI_QUOTES.
    let reply = reply.trim_end_matches(", status 0x8000");
    reply == status && reported && conditions == left && count == "0"
}

/// `state.rs` of `session` restores the first two by their global value, and the third by the
/// backend's number; the next two are no state of a session; the others cannot be set by one.
const RESTORED_OTHERWISE: [&str; 9] = [
    "foreign_key_checks",
    "unique_checks",
    "pseudo_thread_id",
    "max_relay_log_size",
    "sql_slave_skip_counter",
    "max_allowed_packet",
    "max_user_connections",
    "net_buffer_length",
    "wsrep_gtid_seq_no",
];

pub(super) fn mode_of(server: &str) -> LexMode {
    let (name, version) = server.split_once(' ').expect("a name and a version");
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    let number = next() * 10_000 + next() * 100 + next();
    LexMode {
        charset: Charset::Utf8,
        server: match name {
            "MariaDB" => Server::MariaDb(number),
            _ => Server::MySql(number),
        },
        ..LexMode::default()
    }
}

/// Texts by which a client changes it so; all spellings for a variable.
fn texts(row: &Row, way: Way) -> Vec<String> {
    let name = &row.name;
    let all = |texts: &[&str]| texts.iter().map(|text| text.replace("{}", name)).collect();
    match way {
        Way::Call => vec!["CALL truth.p()".into()],
        Way::Function => vec!["SELECT truth.f()".into()],
        Way::Trigger | Way::Failing => vec!["INSERT INTO truth.fired VALUES (1)".into()],
        Way::Text | Way::Execute if !row.change.is_empty() => vec![row.change.clone()],
        Way::Text | Way::Execute => all(&[
            "SET {} = 1",
            "SET SESSION {} = 1",
            "SET LOCAL {} = 1",
            "SET @@SESSION.{} = 1",
            "SET @@local.{} = 1",
            "SET @a = 1, {} = 1",
            "SET NAMES latin1, {} = 1",
        ]),
        Way::At => all(&["SET @@{} = 1", "SET sql_notes = 1, @@`{}` := 1"]),
    }
}

/// True if the pool has the server report a change of which it says nothing (`sql/unscoped.rs`).
fn retells(row: &Row, way: Way, cell: &str, text: &str, mode: LexMode) -> bool {
    let told = format!("{0}=@@SESSION.{0}", row.name);
    let says = |set: Vec<u8>| String::from_utf8_lossy(&set).contains(&told);
    let mut sets = retold(text.as_bytes(), mode).into_iter();
    way == Way::At && cell == "silent" && sets.any(says)
}

/// True if the pool keeps the change from other clients, and gives it to its own.
fn covered(row: &Row, way: Way, cell: &str, found: &Statement) -> bool {
    let number = cell.bytes().all(|byte| byte.is_ascii_digit());
    // Nothing happened.
    if number || matches!(cell, "-" | "refused" | "unchanged") || found.pin.is_some() {
        // But for what each statement sets for itself, and then read as before.
        return !(cell == "unchanged" && row.name.starts_with("session_track_"))
            || found.pin.is_some()
            || way.hides();
    }
    let reported = cell.strip_prefix("later: ").unwrap_or(cell);
    let name = row.name.as_str();
    match reported {
        // `Group::settle` reads back what an OK tells of the insert id; warnings and counts are
        // kept from each reply (`LastStatement::ended`).
        "ok" => !name.starts_with("LAST_INSERT_ID()") || found.insert_id != InsertId::Keeps,
        // `Session::set`: restored by difference; and a reader whose text says so reads back.
        "variable" => !is_passing(name) || way.hides() || is_asked_for(name, found),
        "schema" => true,
        // `Backend::in_transaction`: the backend is kept.
        "transaction" | "characteristics" | "transaction+characteristics" => true,
        // `Group::note_changes`: pins, unless the text explains the change and it is read back.
        "state" => {
            !matches!(found.verb, Verb::Set | Verb::Use)
                || found.user_variables
                || found.sets_role
                || (found.sets_charset && name.contains("collation"))
        }
        // `NOT_STATE` in `state.rs`: it is no part of a session.
        "misreported" => true,
        "silent" => {
            found.user_variables
                || found.sets_role
                || is_asked_for(name, found)
                || (name.starts_with("LAST_INSERT_ID()") && found.insert_id != InsertId::Keeps)
                || (way.hides() && OUT_OF_SIGHT.contains(&name))
                // Stored code that fails: `Group::warnings_read` finds its trace.
                || way == Way::Failing
                || (name == "table locks given up" || name == "named lock given up")
                || (name == "ROW_COUNT()" && way == Way::Function)
                // `pair/left.rs`: its backend is asked before it serves anybody else.
                || (name == "FOUND_ROWS()" && found.replaces.contains(Reads::FOUND_ROWS))
        }
        _ => false,
    }
}

impl Way {
    /// True if the text does not show the change.
    fn hides(self) -> bool {
        matches!(self, Way::Trigger | Way::Failing)
    }
}

/// True if the text makes the pool read what has become of the variable.
fn is_asked_for(name: &str, found: &Statement) -> bool {
    match name {
        "timestamp" => found.sets_clock,
        "identity" | "last_insert_id" => found.insert_id != InsertId::Keeps,
        _ => false,
    }
}

/// Variables that a later statement uses up, or of which the report does not say all.
fn is_passing(name: &str) -> bool {
    let names = [
        "timestamp",
        "insert_id",
        "rand_seed1",
        "rand_seed2",
        "identity",
        "last_insert_id",
        "gtid_seq_no",
        "gtid_next",
    ];
    names.contains(&name)
        || name.starts_with("random numbers")
        // The pool has these on for itself; GTIDs are a client's own.
        || (name.starts_with("session_track_") && name != "session_track_gtids")
}
