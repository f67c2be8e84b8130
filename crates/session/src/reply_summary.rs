//! Summary of a reply, gathered while it passes by.
//!
//! A reply may take many reads and several results; what matters of it for the session and for
//! whoever looks after the backend is noted here, and read when the last byte has passed.

use crate::statement::{Explanation, Statement};
use sql::classify::InsertId;
use wire::reply::{Prepared, Step};
use wire::status::MORE_RESULTS;
use wire::track::{add_lasting, says_nothing};

/// Bytes of notes for which a backend keeps room: many times what a transaction reports.
const ROOM_MAX: usize = 1024;

/// Notes of one reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplySummary {
    /// Status flags of the last OK.
    pub status: Option<u16>,
    /// Number and words of the error that ended it.
    pub error: Option<(u16, String)>,
    /// Affected rows of the last OK; `None` when the last result was a result set.
    pub affected: Option<u64>,
    /// The last insert id that was not 0.
    pub insert_id: u64,
    /// Status flags of an EOF packet, if the last packet was one.
    pub eof: Option<u16>,
    /// Explanation by their texts of what earlier statements of its client have changed, if it also
    /// reports that (`reports.rs` of the pool).
    pub due: Option<Explanation>,
    /// SQL state of that error.
    pub state: [u8; 5],
    /// Warnings of the last result.
    pub warnings: u16,
    /// Any of the results had warnings.
    pub warned: bool,
    /// The header of a statement that was prepared.
    pub prepared: Option<Prepared>,
    /// Columns of the first result.
    pub columns: Option<u16>,
    /// Bytes sent to the client.
    pub len: usize,
    /// Session changes of all OKs that say something, one behind the other.
    pub changes: Vec<u8>,
}

impl ReplySummary {
    /// True if it ended with this error.
    pub fn is_error(&self, number: u16) -> bool {
        self.error.as_ref().is_some_and(|(code, _)| *code == number)
    }

    /// True if LAST_INSERT_ID() may be another than before this statement.
    #[must_use]
    pub fn may_have_set_insert_id(&self, statement: &Statement) -> bool {
        match statement.insert_id {
            // Of a trigger, which a text does not show.
            InsertId::Keeps => self.insert_id != 0,
            // Only an OK tells of ids, and the last one tells of its own statement only.
            InsertId::InOk => {
                let told = self.affected.is_some() && self.columns.is_none();
                statement.is_several() || !told || self.error.is_some() || self.insert_id != 0
            }
            InsertId::MaySet => true,
        }
    }

    /// True if its first result was its last: no OK and no rows stand before its error.
    pub fn is_first(&self) -> bool {
        self.status.is_none() && self.columns.is_none()
    }

    /// Takes over the room of notes that have been read, so that the next need no new one.
    pub fn take_room(&mut self, mut changes: Vec<u8>) {
        if self.changes.capacity() == 0 && changes.capacity() <= ROOM_MAX {
            changes.clear();
            self.changes = changes;
        }
    }

    /// Notes what a packet of the reply says; `eof`: it is an EOF packet, which has no room for
    /// changes.
    pub fn notice(&mut self, step: &Step<'_>, eof: bool) {
        match step {
            Step::Ok(ok) | Step::End(ok) | Step::CursorOpen(ok) => {
                let ends_rows = !matches!(step, Step::Ok(_));
                self.eof = eof.then_some(ok.status);
                self.status = Some(ok.status);
                self.affected = (!ends_rows).then_some(ok.affected_rows);
                self.warnings = ok.warnings;
                self.warned |= ok.warnings > 0;
                if ok.insert_id != 0 {
                    self.insert_id = ok.insert_id;
                }
                if !ok.changes.is_empty() && !says_nothing(ok.changes) {
                    // A routine sends rows before its end.
                    match ends_rows && ok.status & MORE_RESULTS != 0 {
                        true => add_lasting(ok.changes, &mut self.changes),
                        false => self.changes.extend_from_slice(ok.changes),
                    }
                }
            }
            Step::Columns(count) => {
                let count = u16::try_from(*count).unwrap_or(u16::MAX);
                self.columns.get_or_insert(count);
            }
            Step::Err(err) => {
                self.eof = None;
                let text = String::from_utf8_lossy(err.message).into_owned();
                self.error = Some((err.code, text));
                self.state = err.state.try_into().unwrap_or(*b"HY000");
            }
            Step::Prepared(prepared) => {
                self.warnings = prepared.warnings;
                self.prepared = Some(*prepared);
            }
            Step::Cut
            | Step::Continuation
            | Step::Text
            | Step::Row
            | Step::Definition { .. }
            | Step::DefinitionsEnd(_)
            | Step::File => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Extent;
    use wire::command::ReplyShape;
    use wire::reply::{ErrPacket, OkPacket};

    #[test]
    fn the_last_result_counts_and_changes_add_up() {
        let ok = OkPacket {
            affected_rows: 3,
            insert_id: 7,
            status: 3,
            warnings: 1,
            info: b"",
            changes: b"\x02\x011",
        };
        let mut summary = ReplySummary::default();
        summary.notice(&Step::Ok(ok), false);
        assert_eq!(
            (summary.affected, summary.insert_id, summary.warnings),
            (Some(3), 7, 1)
        );
        let ok = OkPacket {
            insert_id: 0,
            warnings: 0,
            ..ok
        };
        summary.notice(&Step::End(ok), false);
        assert_eq!(
            (summary.affected, summary.insert_id, summary.warnings),
            (None, 7, 0)
        );
        assert_eq!(summary.changes, b"\x02\x011\x02\x011");
        let error = ErrPacket {
            code: 1064,
            state: b"42000",
            message: b"bad",
        };
        summary.notice(&Step::Err(error), false);
        assert_eq!(summary.error, Some((1064, "bad".to_string())));
    }

    #[test]
    fn an_insert_without_an_id_in_its_ok_keeps_the_last_one() {
        let ok = |affected, insert_id| ReplySummary {
            affected,
            insert_id,
            ..ReplySummary::default()
        };
        let failed = ReplySummary {
            error: Some((1062, String::new())),
            ..ok(None, 0)
        };
        // INSERT ... RETURNING: no OK packet tells of an id.
        let rows = ReplySummary {
            columns: Some(1),
            ..ok(Some(0), 0)
        };
        let mut insert = Statement::plain(ReplyShape::Results);
        insert.insert_id = InsertId::InOk;
        assert!(!ok(Some(2), 0).may_have_set_insert_id(&insert));
        assert!(ok(Some(2), 7).may_have_set_insert_id(&insert));
        assert!(failed.may_have_set_insert_id(&insert));
        assert!(rows.may_have_set_insert_id(&insert));
        insert.extent = Extent::Several;
        assert!(ok(Some(2), 0).may_have_set_insert_id(&insert));
    }
}
