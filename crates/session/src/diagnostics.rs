//! Conditions of a statement, retained as a value for questions about it.
//!
//! Most statements clear the warnings before them, some leave them, and whether one has tables
//! decides on MariaDB. [`Area`] says what is known of a text
//! ([`area_of`](crate::beforehand::area_of)).

use crate::conditions::{Items, has_rows, read_items};
use crate::text::Text;
use sql::asked::{Condition, Get, TEXTS, origins};
use sql::lex::Server;
use sql::sqlstate::state_of;
use wire::command::ReplyShape;
use wire::errors::{
    MALFORMED_PACKET, NO_OPEN_CURSOR, UNKNOWN_COM, UNKNOWN_STATEMENT, UNSUPPORTED_PREPARED,
};
use wire::packet::{Frame, HEADER_LEN, Reader, frame, put_lenenc_bytes, put_short};
use wire::reply::{END, OkPacket, Reply, Step};
use wire::status;

/// Conditions whose items are asked for at most; each is a question of its own.
const ASKED_MAX: usize = 64;

/// Fate of the warnings of the statement before when this one goes well without any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// They are gone.
    Clears,
    /// They stay.
    Keeps,
    /// Nobody can tell from the text.
    Unsure,
    /// They stay, and a warning that the reply does not count comes behind them.
    Warns,
}

/// Character sets in which each character of ASCII is its byte.
const LIKE_ASCII: [&[u8]; 7] = [
    b"utf8mb4", b"utf8mb3", b"utf8", b"latin1", b"latin2", b"ascii", b"cp1251",
];

/// True if an error of this number is the pool's SIGNAL, where a statement that asks for earlier
/// conditions has failed with it.
pub fn is_raised(code: u16) -> bool {
    let raised = [
        UNKNOWN_STATEMENT,
        NO_OPEN_CURSOR,
        UNSUPPORTED_PREPARED,
        UNKNOWN_COM,
        MALFORMED_PACKET,
    ];
    raised.iter().any(|error| error.code == code)
}

/// True if MySQL's COM_PING counts such an error alone, though it stands behind the conditions of
/// the statement before.
pub fn is_counted_alone(code: u16) -> bool {
    is_raised(code) && code != UNKNOWN_COM.code && code != MALFORMED_PACKET.code
}

/// Warnings of a statement, or its error, retained for its client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Items that were asked for, condition by condition.
    pub items: Option<Vec<Items>>,
}

/// Warnings as the end of a statement counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Number of warnings; unknown after an error.
    pub warnings: Option<u16>,
    /// The SQL state of the error that ended it.
    pub state: Option<[u8; 5]>,
    /// SIGNAL may have raised any of them.
    pub signals: bool,
    /// There is one more condition behind those that were kept, on a backend with others.
    pub follows: bool,
    /// An empty answer is asked for, whose packets those that are kept are to stand in.
    pub frame: bool,
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

/// The reply to SHOW WARNINGS as a prepared statement's: its rows in the binary protocol.
pub fn in_binary(shown: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(shown.len());
    for (step, packet) in packets_of(shown) {
        let row = row_of(&packet[HEADER_LEN..]).filter(|_| step == Step::Row);
        let errno = |row: &Row<'_>| std::str::from_utf8(row.errno).ok()?.parse().ok();
        match row.and_then(|row| Some((errno(&row)?, row))) {
            Some((errno, Row { level, message, .. })) => put_short(&mut out, packet[3], |out| {
                // No column is NULL.
                out.extend_from_slice(&[0, 0]);
                put_lenenc_bytes(out, level);
                out.extend_from_slice(&u32::to_le_bytes(errno));
                put_lenenc_bytes(out, message);
            }),
            None => out.extend_from_slice(packet),
        }
    }
    out
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

    /// The SET that GET DIAGNOSTICS stands for, about the condition of this number.
    pub fn assignments(
        &self,
        get: &Get,
        condition: Option<u32>,
        row_count: Option<i64>,
        server: Server,
    ) -> Option<Vec<u8>> {
        let rows = self.rows();
        let number = u32::try_from(rows.len()).ok()?;
        let Some(condition) = condition else {
            return get.assignments(number, row_count, None);
        };
        let at = usize::try_from(condition.checked_sub(1)?).ok()?;
        let row = rows.get(at)?;
        let errno: u32 = std::str::from_utf8(row.errno).ok()?.parse().ok()?;
        let items = self.items.as_ref().and_then(|items| items.get(at));
        let row_number = items.and_then(|items| items.row);
        if let Some(others) = items.and_then(|items| items.others.as_deref()) {
            let condition = Condition {
                errno,
                state: &others.state,
                message: &others.message,
                texts: std::array::from_fn(|at| &others.texts[at][..]),
                row: row_number,
            };
            return get.assignments(number, row_count, Some(condition));
        }
        if !self.is_plain() {
            return None;
        }
        // The error that ended the statement is the last of its errors.
        let last = rows.iter().rposition(|row| row.is_error());
        let state = match self.state.filter(|_| last == Some(at)) {
            Some(state) => state,
            None => state_of(u16::try_from(errno).ok()?, server),
        };
        let mut texts: [&[u8]; TEXTS.len()] = [b""; TEXTS.len()];
        [texts[0], texts[1]] = origins(&state, server);
        let condition = Condition {
            errno,
            state: &state,
            message: row.message,
            texts,
            row: row_number,
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

    /// Conditions of which items are to be asked for, and whether all items are.
    pub fn unread_items(&self, server: Server) -> (usize, bool) {
        if self.items.is_some() {
            return (0, false);
        }
        let (rows, all) = (self.rows().len(), !self.is_plain());
        let wanted = all || has_rows(server);
        (if wanted && rows <= ASKED_MAX { rows } else { 0 }, all)
    }

    /// Items have come back, of one condition after the other.
    pub fn take_items(&mut self, row: &[Text], all: bool, server: Server) {
        let items = read_items(row, all, server);
        self.items = items.filter(|items| items.len() == self.rows().len());
    }

    /// True if they were read in another character set than this, and read alike in both.
    pub fn can_be_shown_in(&self, charset: Option<&[u8]>) -> bool {
        let plain = |byte: &u8| (b' '..=b'~').contains(byte);
        let like_ascii = |name: Option<&[u8]>| name.is_some_and(|name| LIKE_ASCII.contains(&name));
        let before = self.charset.as_deref();
        before != charset
            && like_ascii(before)
            && like_ascii(charset)
            && self.rows().iter().all(|row| row.message.iter().all(plain))
    }

    /// Shows them as `empty` would: an answer without rows in this character set.
    pub fn show_as(&mut self, empty: &Diagnostics) {
        self.reply = self.rows_within(empty, b"");
        self.charset.clone_from(&empty.charset);
    }

    /// The packets of another answer with these rows, and one more, in place of its own.
    fn rows_within(&self, shown: &Diagnostics, more: &[u8]) -> Vec<u8> {
        let mut reply = Vec::new();
        for (step, packet) in shown.packets() {
            if matches!(step, Step::Ok(_) | Step::End(_)) {
                for (_, row) in self.packets().iter().filter(|(step, _)| *step == Step::Row) {
                    reply.extend_from_slice(row);
                }
                reply.extend_from_slice(more);
            }
            if step != Step::Row {
                reply.extend_from_slice(packet);
            }
        }
        reply
    }

    /// These conditions with one more behind them, which `shown` ends with; that has the conditions
    /// of somebody else in front of it.
    pub fn followed_by(mut self, shown: &Diagnostics) -> Diagnostics {
        let last = shown
            .packets()
            .into_iter()
            .rfind(|(step, _)| *step == Step::Row);
        self.reply = self.rows_within(shown, last.map_or(b"", |(_, row)| row));
        self.total = self.total.map(|total| total + 1);
        self.charset.clone_from(&shown.charset);
        if let Some(items) = &mut self.items {
            items.push(Items::default());
        }
        self
    }
}
