//! What a statement leaves for questions about it: warnings, errors, and counts.
//!
//! The problem: SHOW WARNINGS, GET DIAGNOSTICS, `@@warning_count`, ROW_COUNT() and FOUND_ROWS() ask
//! the session about its last statement, and the backend that ran it may have served others since.
//! The mechanism: counts are taken from the reply, warnings are read back when the lease ends
//! ([`Group::settle`]), and both stay with the client. A question that its backend cannot answer
//! is answered from there: rows that were kept are sent again, numbers are put into the text as
//! expressions of the same type ([`wire::own_id`]), GET DIAGNOSTICS becomes a SET of the same
//! values ([`wire::asked`]).
//!
//! Most statements clear the warnings before them, some leave them, and whether one has tables
//! decides on MariaDB. [`Area`] says what is known of a text; it was compared with MariaDB 10.11
//! and MySQL 9.7, statement by statement. FOUND_ROWS() has a file of its own, `found.rs`.
//!
//! Invariant: what is not known for certain is [`Previous::Gone`], never a guess.

use crate::client::Client;
use crate::group::Group;
use crate::heard::Heard;
use crate::statements::hides_reads;
use reactor::{Key, Net};
use wire::asked::{Condition, Get, Question, question};
use wire::classify::{self, Marks, Reads, Verb};
use wire::command::ReplyShape;
use wire::lex::{Kind, LexMode, Lexer, Server};
use wire::own_id::{Values, with_values};
use wire::packet::{Frame, HEADER_LEN, Reader, frame, put_short};
use wire::reply::{END, OkPacket, Reply, Role};
use wire::sqlstate::state_of;
use wire::status;

/// What only the statement before knows.
const OF_THE_ONE_BEFORE: Reads = Reads::ROW_COUNT
    .union(Reads::FOUND_ROWS)
    .union(Reads::DIAGNOSTICS)
    .union(Reads::LAST_GTID);
/// Conditions that a session keeps unless `max_error_count` says otherwise.
const CONDITIONS_MAX: u32 = 64;

/// What becomes of the warnings of the statement before when this one goes well without any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    /// They are gone.
    Clears,
    /// They stay.
    Keeps,
    /// Nobody can tell from the text.
    Unsure,
}

/// What a text does to the warnings before it.
pub(crate) fn area_of(class: &classify::Statement, server: Server) -> Area {
    if class.pin.is_some_and(hides_reads) {
        return Area::Unsure;
    }
    if class.replaces.contains(Reads::DIAGNOSTICS) {
        return Area::Clears;
    }
    if class.keeps_warnings {
        return Area::Keeps;
    }
    if class.multi {
        return Area::Unsure;
    }
    if matches!(server, Server::MySql(_)) {
        return Area::Clears;
    }
    let marks = class.marks;
    match class.verb {
        Verb::Select if !marks.contains(Marks::FROM_INSIDE) => Area::Clears,
        Verb::Explain if marks.contains(Marks::FROM_INSIDE) => Area::Unsure,
        Verb::Explain if marks.contains(Marks::FROM) => Area::Clears,
        _ => Area::Unsure,
    }
}

/// What a statement warned of, or why it failed, kept for its client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Diagnostics {
    /// The reply to SHOW WARNINGS.
    reply: Vec<u8>,
    /// `character_set_results` of that moment, in which the words are.
    charset: Option<Box<[u8]>>,
    /// `@@warning_count`, if it is known.
    total: Option<u32>,
    /// The SQL state of the error that ended it.
    state: Option<[u8; 5]>,
}

/// What the end of a statement said of its warnings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// How many; unknown after an error.
    warnings: Option<u16>,
    state: Option<[u8; 5]>,
}

/// One row of SHOW WARNINGS.
struct Row<'a> {
    level: &'a [u8],
    errno: &'a [u8],
    message: &'a [u8],
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

impl Diagnostics {
    /// The packets of the reply, with what each is.
    fn packets(&self) -> Vec<(Role, &[u8])> {
        let mut reply = Reply::new(ReplyShape::Results);
        let mut found = Vec::new();
        let mut rest = &self.reply[..];
        while let Frame::Whole { total, .. } = frame(rest) {
            let payload = &rest[HEADER_LEN..total];
            let role = reply.role(payload.first().copied(), payload.len());
            found.push((role, &rest[..total]));
            if reply.advance(role, payload, payload.len()).is_err() || reply.is_done() {
                break;
            }
            rest = &rest[total..];
        }
        found
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let packets = self.packets();
        let rows = packets.iter().filter(|(role, _)| *role == Role::Row);
        rows.filter_map(|(_, packet)| row_of(&packet[HEADER_LEN..]))
            .collect()
    }

    /// How many conditions there are.
    pub(crate) fn conditions(&self) -> u16 {
        u16::try_from(self.rows().len()).unwrap_or(u16::MAX)
    }

    /// The reply to SHOW WARNINGS or SHOW ERRORS with these limits, in a session with this status.
    fn shown(&self, errors: bool, offset: u64, rows: u64, now: u16) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.reply.len());
        let mut at = 0;
        for (role, packet) in self.packets() {
            let mut shown = true;
            if role == Role::Row {
                let error = row_of(&packet[HEADER_LEN..]).is_some_and(|row| row.is_error());
                shown = (error || !errors) && at >= offset && at - offset < rows;
                at += u64::from(error || !errors);
            }
            if shown {
                out.extend_from_slice(packet);
            }
            if role == Role::Ok
                && let Ok(ok) = OkPacket::read(&packet[HEADER_LEN..], true)
            {
                // It was read while a transaction was open, perhaps.
                let status = ok.status & status::OF_ONE_REPLY | now;
                out.truncate(out.len() - packet.len());
                put_short(&mut out, packet[3], |out| {
                    OkPacket { status, ..ok }.put(out, END, false)
                });
            }
        }
        out
    }

    /// `@@error_count`, if it is known.
    fn errors(&self) -> Option<u32> {
        let rows = self.rows();
        let all = self.total == u32::try_from(rows.len()).ok();
        let errors = rows.iter().filter(|row| row.is_error()).count();
        u32::try_from(errors).ok().filter(|_| all)
    }

    /// The SET that GET DIAGNOSTICS stands for.
    fn assignments(&self, get: &Get, row_count: i64, server: Server) -> Option<Vec<u8>> {
        let rows = self.rows();
        let number = u32::try_from(rows.len()).ok()?;
        let Some(condition) = get.condition else {
            return get.assignments(number, row_count, None);
        };
        let row = rows.get(usize::try_from(condition.checked_sub(1)?).ok()?)?;
        let errno: u32 = std::str::from_utf8(row.errno).ok()?.parse().ok()?;
        // The error that ended the statement is the last of its errors.
        let last = rows.iter().rposition(|row| row.is_error());
        let ended = last == usize::try_from(condition - 1).ok();
        let state = match self.state.filter(|_| ended) {
            Some(state) => state,
            // SIGNAL gives them any state.
            None if (1642..=1645).contains(&errno) => return None,
            None => state_of(u16::try_from(errno).ok()?, server),
        };
        let utf8 = self.charset.as_deref().is_some_and(|name| {
            let names: [&[u8]; 4] = [b"utf8mb4", b"utf8mb3", b"utf8", b""];
            names.contains(&name)
        });
        let plain = |byte: &u8| byte.is_ascii() && *byte != 0;
        if !utf8 && !row.message.iter().all(plain) {
            return None;
        }
        let condition = Condition {
            errno,
            state: &state,
            message: row.message,
        };
        get.assignments(number, row_count, Some(condition))
    }
}

impl<S> Client<S> {
    /// Notes what a finished statement did to warnings and FOUND_ROWS(); `alone` says that nothing
    /// of others stands behind it on its backend.
    pub(crate) fn note_left(&mut self, heard: &Heard, rows: u64, alone: bool) {
        let failed = heard.error.is_some();
        if failed || !self.statement.counts_before {
            // How many the error brought with it is known once they have been read.
            self.conditions = if failed { 1 } else { heard.warnings };
        }
        let warned = failed || heard.warnings > 0 || (heard.warned && self.statement.several);
        if warned {
            self.warnings = None;
            self.warnings_lost = false;
            self.warnings_native = alone;
            self.owed.warnings = true;
            self.told = Told {
                warnings: (!failed && !self.statement.several).then_some(heard.warnings),
                state: failed.then_some(heard.state),
            };
        } else {
            self.note_clean(alone);
        }
        self.note_found(heard, rows, alone);
    }

    /// A statement could not be prepared again on its backend, which is its error.
    pub(crate) fn note_ahead_failed(&mut self, heard: &Heard) {
        self.warnings = None;
        self.warnings_lost = false;
        self.warnings_native = true;
        self.counts_native = true;
        self.conditions = 1;
        self.told = Told {
            warnings: None,
            state: Some(heard.state),
        };
    }

    /// There are none any more.
    pub(crate) fn forget_warnings(&mut self) {
        self.warnings = None;
        self.warnings_lost = false;
        self.told = Told::default();
        self.conditions = 0;
    }

    fn note_clean(&mut self, alone: bool) {
        let unread = self.owed.warnings;
        let some = self.warnings.is_some() || self.warnings_lost || unread;
        match self.statement.area {
            Area::Clears => {
                self.forget_warnings();
                self.owed.warnings = false;
                self.warnings_native = alone;
            }
            Area::Keeps => self.warnings_native &= alone,
            Area::Unsure => {
                // Where the backend still has them, it can be asked whether it has.
                self.warnings_native &= alone;
                self.owed.warnings = some && self.warnings_native;
                self.warnings_lost = some && !self.warnings_native;
                if some {
                    self.warnings = None;
                    self.told = Told::default();
                }
            }
        }
    }
}

/// How a question about the statement before is answered elsewhere.
pub(crate) enum Previous {
    /// It was, here.
    Answered,
    /// By a backend, to this text instead.
    Text(Vec<u8>),
    /// Not at all.
    Gone,
}

impl<N: Net> Group<N> {
    /// SHOW WARNINGS on a client's behalf has been answered.
    pub(crate) fn keep_warnings(&mut self, owner: Option<Key>, heard: &Heard, collected: Vec<u8>) {
        let Some(client) = owner.and_then(|owner| self.clients.get_mut(owner)) else {
            return;
        };
        if !client.keeps_warnings {
            return;
        }
        if heard.error.is_some() {
            client.warnings_lost = true;
            return;
        }
        let charset = client.session.variable(b"character_set_results");
        let mut kept = Diagnostics {
            reply: collected,
            charset: charset.map(Box::from),
            total: None,
            state: client.told.state,
        };
        let stored = u32::try_from(kept.rows().len()).unwrap_or(u32::MAX);
        let max = client.session.value(b"max_error_count");
        let max = max.and_then(|max| std::str::from_utf8(max).ok()?.parse().ok());
        kept.total = match client.told.warnings {
            Some(u16::MAX) => None,
            Some(warnings) => Some(u32::from(warnings)),
            None => (stored < max.unwrap_or(self.shared.server.conditions_max)).then_some(stored),
        };
        if client.told.state.is_some()
            && let Some(total) = kept.total
        {
            client.conditions = u16::try_from(total).unwrap_or(u16::MAX);
        }
        client.warnings = (stored > 0 || kept.total != Some(0)).then(|| Box::new(kept));
    }

    /// Answers a text that reads what the statement before left, where its client's backend does
    /// not know.
    pub(crate) fn previous(
        &mut self,
        key: Key,
        sql: &[u8],
        mode: LexMode,
        found: &classify::Statement,
    ) -> Previous {
        let Some(client) = self.clients.get(key) else {
            return Previous::Answered;
        };
        let charset = client.session.variable(b"character_set_results");
        let readable = |kept: &Diagnostics| kept.charset.as_deref() == charset;
        let lost = client.warnings_lost || client.owed.warnings;
        let lost = lost || !client.warnings.as_deref().is_none_or(readable);
        if found.multi {
            return self.previous_in_first(key, sql, mode);
        }
        let asks = matches!(found.verb, Verb::Show | Verb::Diagnostics);
        let question = question(sql, mode).filter(|_| asks);
        if asks && (lost || question.is_none()) {
            return Previous::Gone;
        }
        match question {
            Some(Question::Show {
                errors,
                offset,
                rows,
            }) => self.show(key, errors, offset, rows),
            Some(Question::Count { errors }) => {
                let values = self.values_of(key, found);
                let name = if errors {
                    "error_count"
                } else {
                    "warning_count"
                };
                let sql = format!("SELECT @@session.{name}");
                let text = with_values(sql.as_bytes(), mode, values);
                text.map_or(Previous::Gone, Previous::Text)
            }
            Some(Question::Get(get)) => {
                let server = self.shared.server.flavour;
                let none = Diagnostics::default();
                let kept = client.warnings.as_deref().unwrap_or(&none);
                let text = kept.assignments(&get, client.row_count, server);
                text.map_or(Previous::Gone, Previous::Text)
            }
            None => {
                let text = with_values(sql, mode, self.values_of(key, found));
                text.map_or(Previous::Gone, Previous::Text)
            }
        }
    }

    /// The same of a text of several statements, of which only the first may ask.
    fn previous_in_first(&mut self, key: Key, sql: &[u8], mode: LexMode) -> Previous {
        let semicolon = Lexer::new(sql, mode).find(|token| token.kind == Kind::Semicolon);
        let Some(end) = semicolon.map(|token| token.start) else {
            return Previous::Gone;
        };
        let (first, rest) = (&sql[..end], &sql[end..]);
        let (one, others) = (
            classify::classify(first, mode),
            classify::classify(&rest[1..], mode),
        );
        let open = others.reads.without(one.replaces);
        // A reply that is kept is sent by itself, and nothing behind it.
        let shows = one.verb == Verb::Show && one.reads.intersects(Reads::DIAGNOSTICS);
        if open.intersects(OF_THE_ONE_BEFORE) || one.pin.or(others.pin).is_some() || shows {
            return Previous::Gone;
        }
        let Previous::Text(mut text) = self.previous(key, first, mode, &one) else {
            return Previous::Gone;
        };
        let rewritten = self.with_own_id(key, rest, mode);
        text.extend_from_slice(rewritten.as_deref().unwrap_or(rest));
        Previous::Text(text)
    }

    /// What is known of the statement before, for the questions that its backend cannot answer.
    pub(crate) fn values_of(&self, key: Key, found: &classify::Statement) -> Values<'_> {
        let Some(client) = self.clients.get(key) else {
            return Values::default();
        };
        let mut values = Values {
            id: self.own_id_in(key),
            asked: found.reads.of(client.reads_elsewhere()),
            row_count: Some(client.row_count),
            found_rows: client.found_rows,
            tracked: client.tracks(&self.shared.server),
            ..Values::default()
        };
        let server = self.shared.server.flavour;
        // MariaDB clears the warnings in front of the statement, MySQL behind it.
        let area = match server {
            Server::MySql(_) => Area::Keeps,
            _ => area_of(found, server),
        };
        if client.warnings_lost || client.owed.warnings || area == Area::Unsure {
            return values;
        }
        let kept = client.warnings.as_deref().filter(|_| area == Area::Keeps);
        values.warnings = kept.map_or(Some(0), |kept| kept.total);
        values.errors = kept.map_or(Some(0), Diagnostics::errors);
        values
    }

    fn show(&mut self, key: Key, errors: bool, offset: u64, rows: u64) -> Previous {
        let now = self.status_of(key);
        let Some(client) = self.clients.get_mut(key) else {
            return Previous::Answered;
        };
        let Some(kept) = &client.warnings else {
            // There are none; the backend's own are another's.
            let what = if errors { "ERRORS" } else { "WARNINGS" };
            return Previous::Text(format!("SHOW {what} LIMIT 0").into_bytes());
        };
        let reply = kept.shown(errors, offset, rows, now);
        client.counts_native = false;
        self.replay(key, &reply);
        Previous::Answered
    }
}

/// Conditions that a session keeps, as the server said when it was asked for its default.
pub(crate) fn conditions_max(said: &str) -> u32 {
    said.parse().unwrap_or(CONDITIONS_MAX)
}
