//! State that a client's last statement has left, as bytes: see [`crate::record`].
//!
//! If the backend that ran it stays behind, its knowledge is lost, and nothing may still have to be
//! read back. If it goes along, its knowledge and its pending read-backs stand beside
//! ([`LastStatement::put_beside`]).

use super::{LastStatement, PendingReadBack, ReadBack, charged};
use crate::diagnostics::{Diagnostics, Told};
use crate::found::FoundRows;
use crate::meter::Meter;
use crate::read_back::Properties;
use crate::record::{
    Read, put_bool, put_one_of, put_option, read_bool, read_number, read_one_of, read_option,
    read_text,
};
use crate::statement::Explanation;
use sql::classify::Reads;
use wire::packet::{Reader, put_lenenc, put_lenenc_bytes};

/// Owners of conditions that are read back, by the number in a record.
const READ_BACKS: [ReadBack; 3] = [ReadBack::Wanted, ReadBack::Uncounted, ReadBack::Outdated];

impl LastStatement {
    /// True if nothing of it is still to be read back.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.pending == PendingReadBack::default()
    }

    /// True if it may go to another process together with its backend: what is still to be read
    /// back there is so little that it can be said ([`LastStatement::put_beside`]).
    #[must_use]
    pub fn goes_with_backend(&self) -> bool {
        let PendingReadBack {
            warnings: _,
            failed,
            explanation,
            changed: _,
        } = self.pending;
        !failed && explanation == Explanation::None
    }

    /// Appends what its backend has of it, where that goes along: beside [`Self::put_record`].
    pub fn put_beside(&self, out: &mut Vec<u8>) {
        put_bool(out, self.pending.warnings);
        put_lenenc(out, u64::from(self.pending.changed.bits()));
        put_one_of(out, READ_BACKS, &self.read_back);
        out.push(self.valid.bits());
        let Told {
            warnings,
            state,
            signals,
        } = self.told;
        put_option(out, warnings.map(u64::from), put_lenenc);
        put_option(out, state, |out, state| out.extend_from_slice(&state));
        put_bool(out, signals);
    }

    /// Reads that.
    ///
    /// # Errors
    /// [`crate::record::RecordError::Malformed`].
    pub fn read_beside(&mut self, reader: &mut Reader<'_>) -> Read<()> {
        self.pending.warnings = read_bool(reader, "whether warnings are to be read")?;
        self.pending.changed = Properties::from_bits(read_number(reader, "what may have changed")?);
        self.read_back = read_one_of(reader, READ_BACKS, "whose conditions are read back")?;
        self.valid = Reads::from_bits(reader.u8("what its backend knows")?);
        self.told = Told {
            warnings: read_option(reader, "a count of warnings", |r| {
                read_number(r, "a count of warnings")
            })?,
            state: read_option(reader, "a SQL state", read_state)?,
            signals: read_bool(reader, "whether SIGNAL may have raised it")?,
        };
        Ok(())
    }

    /// Appends it.
    pub fn put_record(&self, out: &mut Vec<u8>) {
        // Each field has to be named here: one that is new is not forgotten.
        let LastStatement {
            insert_id,
            row_count,
            found_rows,
            pending: _,
            number,
            conditions,
            read_back: _,
            valid: _,
            told: _,
            kept,
            lost,
        } = self;
        put_lenenc(out, *insert_id);
        put_lenenc(out, row_count.0.cast_unsigned());
        put_option(out, found_rows.get(), put_lenenc);
        put_lenenc(out, u64::from(*number));
        put_lenenc(out, u64::from(*conditions));
        put_bool(out, *lost);
        put_option(out, kept.as_deref().map(|kept| &kept.value), put_kept);
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`crate::record::RecordError::Malformed`].
    pub fn read_record(reader: &mut Reader<'_>, meter: &Meter) -> Read<LastStatement> {
        let insert_id = reader.lenenc("LAST_INSERT_ID()")?;
        let row_count = super::RowCount(reader.lenenc("ROW_COUNT()")?.cast_signed());
        let mut found_rows = FoundRows::NONE_YET;
        let found = read_option(reader, "FOUND_ROWS()", |r| Ok(r.lenenc("FOUND_ROWS()")?))?;
        found_rows.set(found);
        let number = read_number(reader, "a count of statements")?;
        let conditions = read_number(reader, "a count of conditions")?;
        let lost = read_bool(reader, "whether conditions are lost")?;
        let kept = read_option(reader, "conditions", read_kept)?;
        Ok(LastStatement {
            insert_id,
            row_count,
            found_rows,
            pending: PendingReadBack::default(),
            number,
            conditions,
            read_back: ReadBack::default(),
            valid: Reads::default(),
            told: Told::default(),
            kept: kept.map(|kept| charged(kept, meter)),
            lost,
        })
    }
}

fn put_kept(out: &mut Vec<u8>, kept: &Diagnostics) {
    let Diagnostics {
        reply,
        charset,
        total,
        state,
        signals,
    } = kept;
    put_lenenc_bytes(out, reply);
    put_option(out, charset.as_deref(), put_lenenc_bytes);
    put_option(out, total.map(u64::from), put_lenenc);
    put_option(out, state.as_ref(), |out, state| {
        out.extend_from_slice(state);
    });
    put_bool(out, *signals);
}

fn read_kept(reader: &mut Reader<'_>) -> Read<Diagnostics> {
    Ok(Diagnostics {
        reply: reader.lenenc_bytes("the reply to SHOW WARNINGS")?.to_vec(),
        charset: read_option(reader, "a character set", |r| {
            read_text(r, "a character set")
        })?,
        total: read_option(reader, "@@warning_count", |r| {
            read_number(r, "@@warning_count")
        })?,
        state: read_option(reader, "a SQL state", read_state)?,
        signals: read_bool(reader, "whether SIGNAL may have raised it")?,
    })
}

fn read_state(reader: &mut Reader<'_>) -> Read<[u8; 5]> {
    let mut state = [0; 5];
    state.copy_from_slice(reader.bytes(5, "a SQL state")?);
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_statement::RowCount;

    #[test]
    fn what_a_statement_has_left_is_read_as_it_was_written() {
        let meter = Meter::default();
        let mut last = LastStatement {
            insert_id: u64::MAX,
            row_count: RowCount(-1),
            number: u32::MAX,
            conditions: 7,
            valid: Reads::ROW_COUNT,
            ..LastStatement::default()
        };
        let kept = Diagnostics {
            reply: vec![1; 700],
            charset: Some(b"utf8mb4"[..].into()),
            total: Some(1),
            state: Some(*b"45000"),
            signals: true,
        };
        for (found, kept) in [(None, Some(kept)), (Some(0), None), (Some(9), None)] {
            last.found_rows.set(found);
            last.kept = kept.map(|kept| charged(kept, &meter));
            let mut out = Vec::new();
            last.put_record(&mut out);
            let mut reader = Reader::new(&out);
            let read = LastStatement::read_record(&mut reader, &meter).unwrap();
            assert!(reader.is_empty());
            assert_eq!(read.insert_id, last.insert_id);
            assert_eq!(read.row_count, last.row_count);
            assert_eq!(read.found_rows.get(), found);
            assert_eq!((read.number, read.conditions), (u32::MAX, 7));
            assert_eq!(read.kept(), last.kept());
            assert!(
                !read.is_valid_on_backend(Reads::ROW_COUNT),
                "its backend stays"
            );
            assert!(read.is_settled());
            for len in 0..out.len() {
                let cut = LastStatement::read_record(&mut Reader::new(&out[..len]), &meter);
                assert!(cut.is_err(), "{len}");
            }
        }
        last.pending.warnings = true;
        assert!(!last.is_settled());
    }

    /// A state with each part other than by default.
    fn beside() -> LastStatement {
        let mut last = LastStatement {
            valid: Reads::ROW_COUNT.union(Reads::DIAGNOSTICS),
            read_back: ReadBack::Uncounted,
            told: Told {
                warnings: Some(3),
                state: Some(*b"42S02"),
                signals: true,
            },
            ..LastStatement::default()
        };
        last.pending.warnings = true;
        last.pending.changed = Properties::INSERT_ID.union(Properties::ROLE);
        last
    }

    fn read_beside(bytes: &[u8]) -> Read<LastStatement> {
        let mut read = LastStatement::default();
        let mut reader = Reader::new(bytes);
        read.read_beside(&mut reader)?;
        assert!(reader.is_empty());
        Ok(read)
    }

    #[test]
    fn what_its_backend_has_goes_beside_it() {
        for read_back in READ_BACKS {
            for told in [beside().told, Told::default()] {
                let mut last = beside();
                (last.read_back, last.told) = (read_back, told);
                let mut out = Vec::new();
                last.put_beside(&mut out);
                let read = read_beside(&out).unwrap();
                assert_eq!((read.pending, read.valid), (last.pending, last.valid));
                assert_eq!((read.read_back, read.told), (read_back, told));
                for len in 0..out.len() {
                    assert!(read_beside(&out[..len]).is_err(), "{len}");
                }
            }
        }
    }

    #[test]
    fn whose_conditions_nobody_knows_is_an_error() {
        let mut out = Vec::new();
        beside().put_beside(&mut out);
        // Warnings, what changed, and then whose conditions.
        out[2] = u8::try_from(READ_BACKS.len()).unwrap();
        assert!(read_beside(&out).is_err());
        out[2] = 0;
        assert_eq!(read_beside(&out).unwrap().read_back, ReadBack::Wanted);
    }

    #[test]
    fn it_goes_with_its_backend_unless_more_is_owed_than_can_be_said() {
        assert!(beside().goes_with_backend() && LastStatement::default().goes_with_backend());
        let changes: [fn(&mut LastStatement); 2] = [
            |last| last.pending.failed = true,
            |last| last.pending.explanation = Explanation::Passing,
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut last = beside();
            change(&mut last);
            assert!(!last.goes_with_backend(), "{at}");
            let mut alone = LastStatement::default();
            change(&mut alone);
            assert!(!alone.is_settled(), "{at}");
        }
    }

    #[test]
    fn garbled_it_is_an_error_or_a_value_and_never_a_panic() {
        let meter = Meter::default();
        let mut last = beside();
        let kept = Diagnostics {
            reply: vec![1; 20],
            ..Diagnostics::default()
        };
        last.kept = Some(charged(kept, &meter));
        let (mut own, mut beside) = (Vec::new(), Vec::new());
        last.put_record(&mut own);
        last.put_beside(&mut beside);
        for at in 0..own.len() {
            for change in [1, 0x7f, 0xfe] {
                let mut garbled = own.clone();
                garbled[at] = garbled[at].wrapping_add(change);
                let _ = LastStatement::read_record(&mut Reader::new(&garbled), &meter);
            }
        }
        for at in 0..beside.len() {
            for change in [1, 0x7f, 0xfe] {
                let mut garbled = beside.clone();
                garbled[at] = garbled[at].wrapping_add(change);
                let _ = LastStatement::default().read_beside(&mut Reader::new(&garbled));
            }
        }
        drop(last);
        assert_eq!(meter.bytes(), 0);
    }

    #[test]
    fn a_count_that_nobody_knows_stays_unknown() {
        let meter = Meter::default();
        let mut last = LastStatement {
            row_count: RowCount::UNKNOWN,
            ..LastStatement::default()
        };
        last.lose_conditions();
        let mut out = Vec::new();
        last.put_record(&mut out);
        let read = LastStatement::read_record(&mut Reader::new(&out), &meter).unwrap();
        assert_eq!(read.row_count.get(), None);
        assert!(read.has_unknown_conditions());
    }
}
