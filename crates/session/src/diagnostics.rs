//! Conditions of a statement, retained as a value for questions about it.
//!
//! Most statements clear the warnings before them, some leave them, and whether one has tables
//! decides on MariaDB. [`Area`] says what is known of a text
//! ([`area_of`](crate::plan::area_of)).

use serde::{Deserialize, Serialize};
use sql::asked::{Condition, Get};
use sql::lex::Server;
use sql::sqlstate::state_of;
use wire::command::ReplyShape;
use wire::packet::{Frame, HEADER_LEN, Reader, frame, put_short};
use wire::reply::{END, OkPacket, Reply, Step};
use wire::status;

/// Conditions that a session keeps unless `max_error_count` says otherwise.
const CONDITIONS_MAX: u32 = 64;

/// Fate of the warnings of the statement before when this one goes well without any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Clears them.
    Clears,
    /// Keeps them.
    Keeps,
    /// Unknown from the text.
    Unsure,
    /// Keeps them, and adds a warning that the reply does not count.
    Warns,
}

/// Warnings of a statement, or its error, retained for its client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// The reply to SHOW WARNINGS.
    pub reply: Vec<u8>,
    /// `character_set_results` of that moment, in which the words are.
    pub charset: Option<Box<[u8]>>,
    /// `@@warning_count`, if it is known.
    pub total: Option<u32>,
    /// The SQL state of the error that ended it.
    pub state: Option<[u8; 5]>,
    /// SIGNAL may have raised any of them, with items of its own.
    pub signals: bool,
}

/// Warnings as the end of a statement counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Number of warnings; unknown after an error.
    pub warnings: Option<u16>,
    /// The SQL state of the error that ended it.
    pub state: Option<[u8; 5]>,
    /// SIGNAL may have raised any of them.
    pub signals: bool,
}

/// One row of SHOW WARNINGS.
pub struct Row<'a> {
    /// Note, Warning or Error.
    pub level: &'a [u8],
    /// Its number, in digits.
    pub errno: &'a [u8],
    /// Its words.
    pub message: &'a [u8],
}

impl Row<'_> {
    fn is_error(&self) -> bool {
        self.level == b"Error"
    }
}

fn row_of(payload: &[u8]) -> Option<Row<'_>> {
    let mut reader = Reader::new(payload);
    Some(Row {
        level: reader.lenenc_bytes("a level").ok()?,
        errno: reader.lenenc_bytes("a number").ok()?,
        message: reader.lenenc_bytes("a message").ok()?,
    })
}

/// The packets of a reply, with what each does; as many as fit.
fn packets_of(bytes: &[u8]) -> Vec<(Step<'_>, &[u8])> {
    let mut reply = Reply::new(ReplyShape::Results);
    let mut found = Vec::new();
    let mut rest = bytes;
    while let Frame::Whole { total, .. } = frame(rest) {
        let payload = &rest[HEADER_LEN..total];
        let Ok(step) = reply.advance(payload.len(), payload) else {
            break;
        };
        found.push((step, &rest[..total]));
        if reply.is_done() {
            break;
        }
        rest = &rest[total..];
    }
    found
}

impl Diagnostics {
    /// The packets of the reply, with what each does.
    fn packets(&self) -> Vec<(Step<'_>, &[u8])> {
        packets_of(&self.reply)
    }

    /// The conditions, in their order.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<'_>> {
        let packets = self.packets();
        let rows = packets.iter().filter(|(step, _)| *step == Step::Row);
        rows.filter_map(|(_, packet)| row_of(&packet[HEADER_LEN..]))
            .collect()
    }

    /// Number of conditions.
    pub fn conditions(&self) -> u16 {
        u16::try_from(self.rows().len()).unwrap_or(u16::MAX)
    }

    /// The reply to SHOW WARNINGS or SHOW ERRORS with these limits, in a session with this status.
    pub fn shown(&self, errors: bool, offset: u64, rows: u64, now: u16) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.reply.len());
        let mut at = 0;
        for (step, packet) in self.packets() {
            let mut shown = true;
            if step == Step::Row {
                let error = row_of(&packet[HEADER_LEN..]).is_some_and(|row| row.is_error());
                shown = (error || !errors) && at >= offset && at - offset < rows;
                at += u64::from(error || !errors);
            }
            if shown {
                out.extend_from_slice(packet);
            }
            if let Step::Ok(ok) | Step::End(ok) = step {
                // It was read while a transaction was open, perhaps; what it said of the session
                // was noted then.
                let status = ok.status & status::OF_ONE_REPLY | now;
                let changes = &[][..];
                out.truncate(out.len() - packet.len());
                put_short(&mut out, packet[3], |out| {
                    let ok = OkPacket {
                        status,
                        changes,
                        ..ok
                    };
                    ok.put(out, END, false)
                });
            }
        }
        out
    }

    /// `@@error_count`, if it is known.
    pub fn errors(&self) -> Option<u32> {
        let rows = self.rows();
        let all = self.total == u32::try_from(rows.len()).ok();
        let errors = rows.iter().filter(|row| row.is_error()).count();
        u32::try_from(errors).ok().filter(|_| all)
    }

    /// The SET that GET DIAGNOSTICS stands for; `None` where its answer is not known.
    pub fn assignments(
        &self,
        get: &Get,
        row_count: Option<i64>,
        server: Server,
    ) -> Option<Vec<u8>> {
        let rows = self.rows();
        let number = u32::try_from(rows.len()).ok()?;
        let Some(condition) = get.condition else {
            return get.assignments(number, row_count, None);
        };
        let at = usize::try_from(condition.checked_sub(1)?).ok()?;
        let row = rows.get(at)?;
        let errno: u32 = std::str::from_utf8(row.errno).ok()?.parse().ok()?;
        if !self.is_plain() {
            return None;
        }
        // The error that ended the statement is the last of its errors.
        let last = rows.iter().rposition(|row| row.is_error());
        let state = match self.state.filter(|_| last == Some(at)) {
            Some(state) => state,
            None => state_of(u16::try_from(errno).ok()?, server),
        };
        let condition = Condition {
            errno,
            state: &state,
            message: row.message,
        };
        get.assignments(number, row_count, Some(condition))
    }

    /// True if each condition's items follow from its number and words, but for its row.
    fn is_plain(&self) -> bool {
        let utf8 = self.charset.as_deref().is_some_and(|name| {
            let names: [&[u8]; 4] = [b"utf8mb4", b"utf8mb3", b"utf8", b""];
            names.contains(&name)
        });
        let plain = |byte: &u8| byte.is_ascii() && *byte != 0;
        // What SIGNAL raises without a number of its own.
        let signalled = |row: &Row<'_>| matches!(row.errno, b"1642" | b"1643" | b"1644");
        let odd = |row: &Row<'_>| signalled(row) || !(utf8 || row.message.iter().all(plain));
        !self.signals && !self.rows().iter().any(odd)
    }
}

/// Conditions that a session keeps, as the server said when it was asked for its default.
pub fn conditions_max(said: &str) -> u32 {
    said.parse().unwrap_or(CONDITIONS_MAX)
}
