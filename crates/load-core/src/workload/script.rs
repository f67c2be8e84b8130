//! A script: the steps of a workload's event, compiled once a run from statements as people read
//! them.
//!
//! A statement is written down as `SELECT c FROM sbtest# WHERE id=?` with the source of each `?`:
//! `#` is the table's number, and a sign that is doubled is the sign itself. [`Script`] has the
//! statements cut at these places, so that writing one is copying pieces and digits. The same
//! statement can be written as text or, its text having been prepared, as the values alone.
//!
//! Invariants: a statement's values are drawn in the order of its `?`, so text and values are the
//! same for the same random numbers.

use super::options::PsMode;
use super::text::{GROUPS_C, GROUPS_PAD, put_groups, put_number, put_signed};
use super::{Draw, Event, ScriptArgs, Workload};
use crate::random::{Rows, unique};

/// Source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Number of a row, drawn.
    Row,
    /// A new row that later statements come back to.
    NewRow,
    /// The row of the last `NewRow`.
    SameRow,
    /// The value before, and so many more.
    Plus(u32),
    /// A random string for column `c`, or for `pad`.
    C,
    Pad,
    /// A key that was in no table before.
    Key,
}

/// Table of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// A drawn one.
    Any,
    /// The table of the statement before.
    Same,
    /// The first one.
    First,
    /// The connection's own.
    Own,
}

/// Kind of a statement by its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// SELECT.
    Select,
    /// INSERT, UPDATE or DELETE.
    Change,
    /// COMMIT.
    Commit,
    /// Any other statement.
    Other,
}

/// A statement as it is written down in the catalogue.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) sources: Vec<Source>,
    /// True if it is prepared where statements are.
    pub(super) prepared: bool,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Table,
    Value(Source),
}

/// A statement, cut.
#[derive(Clone, Debug)]
struct Template {
    /// Text as it is written down; long ones are cut.
    title: String,
    pieces: Vec<(Box<[u8]>, Slot)>,
    tail: Box<[u8]>,
    verb: Verb,
    prepared: bool,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    template: u16,
    table: Table,
}

/// Characters of a statement's text in a report.
const TITLE_MAX: usize = 72;

/// Bytes of rows in bulk that make a statement: sysbench's buffer.
const BULK_BYTES: u32 = 512 * 1024;

/// A workload with its options put in; the same for all connections.
#[derive(Clone, Debug)]
pub struct Script {
    templates: Vec<Template>,
    steps: Vec<Step>,
    tables: u32,
    rows: Rows,
    connections: u32,
    /// Events are rows, and a statement is as many as fit.
    bulk: bool,
    /// Statements that can be are prepared.
    prepares: bool,
    /// Events after which a connection is reopened; 0 for never.
    reconnect: u32,
    /// Steps from the first to the last of these stand in a transaction.
    transaction: Option<(u16, u16)>,
}

impl Script {
    /// The frame of the script of `workload` over `tables` tables, for so many connections; the
    /// catalogue has its steps.
    pub(super) fn without_steps(
        workload: Workload,
        args: &ScriptArgs,
        tables: u32,
        rows: Rows,
        connections: u32,
    ) -> Script {
        Script {
            templates: Vec::new(),
            steps: Vec::new(),
            tables,
            rows,
            connections,
            bulk: workload == Workload::BulkInsert,
            prepares: args.db_ps_mode == PsMode::Auto,
            reconnect: args.reconnect,
            transaction: None,
        }
    }

    /// Statements that can be are prepared.
    pub fn prepares(&self) -> bool {
        self.prepares
    }

    /// True when an event has no statement, so that nothing would ever be asked.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Adds a statement `count` times, the first time of `table`, then of the same.
    pub(super) fn add(&mut self, statement: Statement, table: Table, count: u16) {
        self.add_all(vec![statement], table, count);
    }

    /// Adds several statements `count` times as [`Script::add`] does.
    pub(super) fn add_all(&mut self, statements: Vec<Statement>, table: Table, count: u16) {
        let first = u16::try_from(self.templates.len()).unwrap_or(u16::MAX);
        if count == 0 {
            return;
        }
        self.templates.extend(statements.iter().map(Template::cut));
        let end = u16::try_from(self.templates.len()).unwrap_or(u16::MAX);
        let mut table = table;
        for _ in 0..count {
            for template in first..end {
                self.steps.push(Step { template, table });
                table = Table::Same;
            }
        }
    }

    /// Puts BEGIN and COMMIT around what there is.
    pub(super) fn wrap(&mut self, begin: Statement, commit: Statement) {
        let at = u16::try_from(self.templates.len()).unwrap_or(u16::MAX);
        self.templates.push(Template::cut(&begin));
        self.templates.push(Template::cut(&commit));
        // The table of the first statement is drawn there, so BEGIN keeps what there was.
        let step = |template| Step {
            template,
            table: Table::Same,
        };
        self.steps.insert(0, step(at));
        self.steps.push(step(at + 1));
        let last = u16::try_from(self.steps.len()).unwrap_or(u16::MAX);
        self.transaction = Some((1, last));
    }

    /// Events in the statement that comes next, where events are rows; at most what is one
    /// statement. `made` is what the connection has made so far.
    pub fn rows_of_next(&self, made: u32) -> Option<u32> {
        self.bulk.then(|| bulk_rows(made))
    }

    /// Sets how many rows the next statement has.
    pub fn begin_bulk(event: &mut Event, rows: u32) {
        event.row = rows;
    }

    /// Number of events that an event counts as.
    pub fn weight(&self, event: &Event) -> u32 {
        if self.bulk { event.row } else { 1 }
    }

    /// True where a connection that has run `events` is to be reopened.
    pub fn ends_life(&self, events: u32) -> bool {
        self.reconnect > 0 && events.is_multiple_of(self.reconnect)
    }

    /// Moves on to the event's next statement; false when the event is over.
    pub fn advance(&self, event: &mut Event, draw: &mut Draw<'_>) -> bool {
        let Some(step) = self.steps.get(usize::from(event.step)) else {
            return false;
        };
        match step.table {
            Table::Any => event.table = 1 + draw.random.below(self.tables),
            Table::Same => {}
            Table::First => event.table = 1,
            Table::Own => event.table = draw.index + 1,
        }
        event.step += 1;
        true
    }

    /// True where an event is a transaction, or has one.
    pub fn has_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// True where the statement that was sent last stands in a transaction of the script.
    pub fn in_transaction(&self, event: &Event) -> bool {
        self.transaction
            .is_some_and(|(first, last)| (first..=last).contains(&event.step))
    }

    /// Verb of the present statement.
    pub fn verb(&self, event: &Event) -> Verb {
        self.template(event).verb
    }

    fn template(&self, event: &Event) -> &Template {
        let step = &self.steps[usize::from(event.step.max(1) - 1)];
        &self.templates[usize::from(step.template)]
    }

    /// The number under which a connection keeps the present statement's id, if it is to be
    /// prepared.
    pub fn key(&self, event: &Event) -> Option<u32> {
        let step = &self.steps[usize::from(event.step.max(1) - 1)];
        let template = &self.templates[usize::from(step.template)];
        let table = if template.has_table() { event.table } else { 0 };
        let tables = self.tables.saturating_add(1);
        let key = u32::from(step.template).wrapping_mul(tables) + table;
        (self.prepares && template.prepared).then_some(key)
    }

    /// True where the script has several statements.
    pub fn is_mixed(&self) -> bool {
        self.templates.len() > 1
    }

    /// The script's statements as they are written down, by their numbers.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.templates.iter().map(|template| &*template.title)
    }

    /// Number of the present statement in its script.
    pub fn number_of(&self, event: &Event) -> u16 {
        self.steps[usize::from(event.step.max(1) - 1)].template
    }

    /// Appends the present statement's text with `?` for its values, as it is prepared.
    pub fn put_prepared_text(&self, event: &Event, out: &mut Vec<u8>) {
        let template = self.template(event);
        for (piece, slot) in &template.pieces {
            out.extend_from_slice(piece);
            match slot {
                Slot::Table => put_number(out, event.table),
                Slot::Value(_) => out.push(b'?'),
            }
        }
        out.extend_from_slice(&template.tail);
    }

    /// Appends the arguments of COM_STMT_EXECUTE for the present statement, prepared as `id`: no
    /// cursor, one execution, no NULL, the types, the values. Numbers are BIGINT, as sysbench binds
    /// them.
    pub fn put_values(&self, id: u32, event: &mut Event, draw: &mut Draw<'_>, out: &mut Vec<u8>) {
        const BIGINT: [u8; 2] = [0x08, 0];
        const VAR_STRING: [u8; 2] = [0xFD, 0];
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        let template = self.template(event);
        let count = template.sources().count();
        if count == 0 {
            return;
        }
        out.resize(out.len() + count.div_ceil(8), 0);
        out.push(1);
        for source in template.sources() {
            let is_string = matches!(source, Source::C | Source::Pad);
            out.extend_from_slice(if is_string { &VAR_STRING } else { &BIGINT });
        }
        let mut before = 0;
        for source in template.sources() {
            match source {
                Source::C => put_string(out, draw, GROUPS_C),
                Source::Pad => put_string(out, draw, GROUPS_PAD),
                source => {
                    before = self.number(source, before, event, draw);
                    out.extend_from_slice(&before.to_le_bytes());
                }
            }
        }
    }

    /// Appends the present statement's text.
    pub fn put_text(&self, event: &mut Event, draw: &mut Draw<'_>, out: &mut Vec<u8>) {
        let template = self.template(event);
        let mut before = 0;
        for (piece, slot) in &template.pieces {
            out.extend_from_slice(piece);
            match slot {
                Slot::Table => put_number(out, event.table),
                Slot::Value(Source::C) => {
                    out.push(b'\'');
                    put_groups(out, draw.random, GROUPS_C);
                    out.push(b'\'');
                }
                Slot::Value(Source::Pad) => {
                    out.push(b'\'');
                    put_groups(out, draw.random, GROUPS_PAD);
                    out.push(b'\'');
                }
                Slot::Value(source) => {
                    before = self.number(*source, before, event, draw);
                    put_signed(out, before);
                }
            }
        }
        out.extend_from_slice(&template.tail);
        if self.bulk {
            put_bulk(out, event.row, draw.made);
        }
    }

    /// A value that is a number.
    fn number(&self, source: Source, before: i64, event: &mut Event, draw: &mut Draw<'_>) -> i64 {
        match source {
            Source::Row => self.rows.draw(draw.random).into(),
            Source::NewRow => {
                event.row = self.rows.draw(draw.random);
                event.row.into()
            }
            Source::SameRow => event.row.into(),
            Source::Plus(more) => before + i64::from(more),
            Source::Key => {
                let index = draw.made.wrapping_mul(self.connections);
                *draw.made = draw.made.wrapping_add(1);
                i64::from(unique(index.wrapping_add(draw.index))) + i64::from(i32::MIN)
            }
            Source::C | Source::Pad => 0,
        }
    }
}

impl Template {
    fn has_table(&self) -> bool {
        let is_table = |(_, slot): &(_, Slot)| matches!(slot, Slot::Table);
        self.pieces.iter().any(is_table)
    }

    fn sources(&self) -> impl Iterator<Item = Source> {
        self.pieces.iter().filter_map(|(_, slot)| match slot {
            Slot::Table => None,
            Slot::Value(source) => Some(*source),
        })
    }

    fn cut(statement: &Statement) -> Template {
        let mut sources = statement.sources.iter();
        let (mut pieces, mut piece) = (Vec::new(), Vec::new());
        let mut bytes = statement.text.bytes().peekable();
        while let Some(byte) = bytes.next() {
            let slot = match byte {
                b'#' | b'?' if bytes.next_if_eq(&byte).is_some() => {
                    piece.push(byte);
                    continue;
                }
                b'#' => Slot::Table,
                b'?' => match sources.next() {
                    Some(source) => Slot::Value(*source),
                    None => unreachable!("each ? of the catalogue has its source"),
                },
                _ => {
                    piece.push(byte);
                    continue;
                }
            };
            pieces.push((std::mem::take(&mut piece).into_boxed_slice(), slot));
        }
        Template {
            title: title(&statement.text),
            pieces,
            tail: piece.into_boxed_slice(),
            verb: Verb::of(&statement.text),
            prepared: statement.prepared,
        }
    }
}

impl Verb {
    fn of(text: &str) -> Verb {
        Verb::of_bytes(text.as_bytes())
    }

    /// The verb of a statement's text.
    pub fn of_bytes(text: &[u8]) -> Verb {
        let word = text.trim_ascii_start();
        let end = word.iter().position(u8::is_ascii_whitespace);
        let word = &word[..end.unwrap_or(word.len())];
        let is = |verb: &str| word.eq_ignore_ascii_case(verb.as_bytes());
        match word {
            _ if is("SELECT") => Verb::Select,
            _ if is("INSERT") || is("UPDATE") || is("DELETE") => Verb::Change,
            _ if is("COMMIT") => Verb::Commit,
            _ => Verb::Other,
        }
    }
}

/// A statement's text as reports name it.
fn title(text: &str) -> String {
    match text.char_indices().nth(TITLE_MAX) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Appends a random string with its length in front.
fn put_string(out: &mut Vec<u8>, draw: &mut Draw<'_>, groups: usize) {
    let at = out.len();
    out.push(0);
    put_groups(out, draw.random, groups);
    // At most 119 bytes: a length of one byte.
    out[at] = u8::try_from(out.len() - at - 1).unwrap_or(0);
}

/// Rows `(n,n)` from `made` + 1 on that fit one statement.
fn bulk_rows(made: u32) -> u32 {
    let (mut rows, mut bytes, mut next) = (0, 0, made.wrapping_add(1));
    while bytes < BULK_BYTES {
        bytes += 2 * (next.max(1).ilog10() + 1) + 4;
        next = next.wrapping_add(1);
        rows += 1;
    }
    rows - 1
}

fn put_bulk(out: &mut Vec<u8>, rows: u32, made: &mut u32) {
    for row in 0..rows {
        *made = made.wrapping_add(1);
        out.extend_from_slice(if row == 0 { b"(" } else { b",(" });
        put_number(out, *made);
        out.push(b',');
        put_number(out, *made);
        out.push(b')');
    }
}
