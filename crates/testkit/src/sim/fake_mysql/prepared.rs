//! Prepared statements, and rows that other transactions hold.
//!
//! Invariants, held by a panic of the simulation: a connection has no more of them than its share
//! of the budget.

use super::{Answer, Db, NO_TABLE, Seat, id_of};
use crate::sim::answers::put_text;
use crate::sim::standing::{Standing, words_of};
use wire::errors::ErrorCode;

const DEADLOCK: ErrorCode = ErrorCode {
    code: 1213,
    state: "40001",
};
const WAITED_IN_VAIN: ErrorCode = ErrorCode {
    code: 1205,
    state: "HY000",
};

/// A prepared statement.
#[derive(Debug)]
pub(super) struct PreparedText {
    sql: String,
    standing: Standing,
    /// The type of its parameter, as it was sent last.
    kind: Option<u8>,
    pub(super) long: Option<Vec<u8>>,
}

impl Seat {
    pub(super) fn prepare(&mut self, db: &Db, sql: &str) -> Answer {
        self.clear_diagnostics(sql);
        if sql.contains("nothing") {
            return Answer::Err(NO_TABLE, "Table 'nothing' doesn't exist".into());
        }
        // No two connections give the same ids.
        self.preparations += 1;
        let id = u32::try_from(self.id).unwrap() * 1000 + self.preparations;
        let statement = PreparedText {
            sql: sql.into(),
            standing: self.standing.clone(),
            kind: None,
            long: None,
        };
        self.prepared.insert(id, statement);
        self.check_count(db);
        let columns = if sql.starts_with("SELECT") { 2 } else { 0 };
        Answer::Prepared { id, columns }
    }

    fn check_count(&self, db: &Db) {
        let (count, max) = (self.prepared.len(), db.prepared_max);
        assert!(
            count <= max,
            "{count} statements are prepared, {max} allowed"
        );
    }

    pub(super) fn statement(&mut self, payload: &[u8]) -> &mut PreparedText {
        let id = id_of(payload);
        let found = self.prepared.get_mut(&id);
        found.unwrap_or_else(|| panic!("there is no statement {id} on this connection"))
    }

    /// An execution: its one parameter is the tag, of the type that was sent last.
    pub(super) fn execute_prepared(&mut self, db: &mut Db, payload: &[u8]) -> Answer {
        let statement = self.statement(payload);
        // Fixed fields and a null bitmap of one byte.
        let mut rest = &payload[11..];
        if rest[0] == 1 {
            statement.kind = Some(rest[1]);
            rest = &rest[2..];
        }
        let value = &rest[1..];
        let long = statement.long.take();
        let kind = statement.kind.expect("the type of a parameter");
        let text = match (long, kind) {
            (Some(data), _) => String::from_utf8(data).expect("a number"),
            (None, 8) => u64::from_le_bytes(value.try_into().expect("8 bytes")).to_string(),
            (None, _) => String::from_utf8(value[1..].to_vec()).expect("a number"),
        };
        let tag = text.parse().expect("a tag");
        let sql = statement.sql.replace('?', &text);
        let prepared = statement.standing.clone();
        let words = words_of(&self.standing, &prepared);
        self.clear_diagnostics(&sql);
        self.execute(db, &sql, tag);
        self.tagged(db, &sql, tag, words)
    }

    /// A row that a transaction adds may be another's: a deadlock ends the transaction, a wait in
    /// vain the statement alone.
    pub(super) fn conflict(&mut self, db: &mut Db) -> Option<Answer> {
        db.rows += 1;
        let every = db.deadlocks_every;
        if every == 0 || !db.rows.is_multiple_of(every) {
            return None;
        }
        self.diagnostics = None;
        if (db.rows / every).is_multiple_of(2) {
            return Some(Answer::Err(
                WAITED_IN_VAIN,
                "Lock wait timeout exceeded".into(),
            ));
        }
        self.transaction = None;
        // An error tells nothing of it: the next OK does.
        put_text(&mut self.untold, 4, "");
        put_text(&mut self.untold, 5, "________");
        Some(Answer::Err(DEADLOCK, "Deadlock found".into()))
    }
}
