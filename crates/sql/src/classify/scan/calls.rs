//! Names before parentheses, and the parentheses themselves.
//!
//! `f(x)` may be a call of a stored function, a built-in function, a keyword with its list, a table
//! with its columns or an alias with its columns. Only the first must pin. `found_rows(a)` and its
//! like, functions without arguments, are no questions where something stands in the parentheses: a
//! table, a key or a list of WITH may have that name. A name counts as a call
//! unless the catalogue of built-in names knows it or its place excludes an operand: the servers'
//! grammars allow no call right behind AS, behind a string or a closing parenthesis, or in the list
//! of WITH.

use super::super::names::{self, Effect};
use super::super::set::Scope;
use super::super::verbs::Stage;
use super::super::{InsertId, Marks, PinCause, Reads, Verb};
use super::Scan;
use crate::lex::{Kind, Token};

/// Decision of the token behind an opening parenthesis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    Nothing,
    InsertId,
    Geometry,
    /// A function without arguments that reads this; with one, it is the name of something else.
    Question(Reads),
}

impl Scan<'_> {
    pub(super) fn open(&mut self, token: Token) {
        let [before, earlier, _] = self.last;
        // CREATE TABLE t VALUES ROW(...): rows are computed, as by a SELECT.
        let row = self.is(before, b"ROW") && self.is(earlier, b"VALUES");
        self.calls |= row || self.is(before, b"VALUES");
        if matches!(before.kind, Kind::Word | Kind::Name) {
            self.call(before);
        }
        if self.stage != Stage::First {
            self.value(token);
        }
        self.depth += 1;
    }

    pub(super) fn close(&mut self, token: Token) {
        self.value(token);
        if let Some((depth, commas)) = self.point
            && depth == self.depth
        {
            self.point = None;
            if commas != 1 {
                self.stored_code();
            }
        }
        self.depth = self.depth.saturating_sub(1);
        let kept = 1_u64
            .checked_shl(self.depth + 1)
            .map_or(u64::MAX, |bit| bit - 1);
        self.with &= kept;
        self.close_queries(kept);
    }

    pub(super) fn comma(&mut self, token: Token) {
        if self.current == Verb::Set {
            self.marked(Marks::SETS_SEVERAL);
        }
        if self.marks.contains(Marks::LIMIT) {
            // LIMIT 1, 2, as far as one can tell here.
            self.marked(Marks::CUTS);
        }
        if self.current == Verb::Update && !self.marks.contains(Marks::SET_INSIDE) {
            self.marked(Marks::TABLES);
        }
        if let Some((depth, commas)) = &mut self.point
            && *depth == self.depth
        {
            *commas += 1;
        }
        let set = matches!(
            self.stage,
            Stage::Value | Stage::Off | Stage::Rest | Stage::Variable
        );
        if set && self.depth == 0 {
            self.stage = Stage::Assignment;
            self.scope = Scope::Session;
            self.variable = None;
        } else {
            self.value(token);
        }
    }

    /// Judges a word or name directly before a parenthesis that opens now.
    fn call(&mut self, name: Token) {
        let [_, before, earlier] = self.last;
        if self.stage == Stage::TargetName {
            return;
        }
        let qualified = before.kind == Kind::Punct(b'.');
        // COLUMNS belongs to JSON_TABLE where it follows the path, which is its second argument.
        if self.json_tables > 0 && self.is(name, b"COLUMNS") && before.kind == Kind::String {
            self.json_tables -= u32::from(earlier.kind == Kind::Punct(b','));
            return;
        }
        if !qualified {
            match names::called(name.kind, self.text(name), self.mode.server) {
                Some(Effect::Tight) if !self.touches(name) => {}
                Some(effect) => {
                    self.table_call(name);
                    return self.built_in(effect, before);
                }
                None => {}
            }
        }
        // A table's alias with columns, or the columns of LOAD DATA: no operand stands there.
        let behind_operand = matches!(before.kind, Kind::Punct(b')') | Kind::String);
        let charset = self.out.verb == Verb::Load && self.is_any(before, &[b"SET", b"CHARSET"]);
        let listed = before.kind == Kind::Punct(b',') && earlier.kind == Kind::Punct(b')');
        let bit = 1_u64.checked_shl(self.depth).unwrap_or(0);
        let table = self.with & bit != 0 && (listed || self.is_any(before, &WITH));
        let safe = behind_operand || self.is(before, b"AS") || charset || table;
        if !safe {
            self.stored_code();
        }
    }

    /// Judges a call that may run stored code, unless the statement only defines something.
    fn stored_code(&mut self) {
        if self.calls {
            self.pin(PinCause::StoredCode);
        }
    }

    /// True if the parenthesis that opens now belongs to the name, for names that need that.
    fn touches(&self, name: Token) -> bool {
        let rest = self.sql.get(name.end..).unwrap_or_default();
        let next = if self.mode.ignore_space {
            rest.iter().find(|byte| !matches!(byte, 9..=13 | b' '))
        } else {
            rest.first()
        };
        next == Some(&b'(')
    }

    fn built_in(&mut self, effect: Effect, before: Token) {
        match effect {
            Effect::Plain | Effect::Tight => {}
            Effect::Geometry => self.opened = Opened::Geometry,
            Effect::Point if self.point.is_some() => self.stored_code(),
            Effect::Point => self.point = Some((self.depth + 1, 0)),
            Effect::JsonTable if self.mode.server.is_mysql() => {}
            Effect::JsonTable => {
                let among_tables = before.kind == Kind::Punct(b',')
                    || self.is_any(before, &[b"FROM", b"JOIN", b"LATERAL", b"STRAIGHT_JOIN"]);
                if among_tables {
                    self.json_tables += 1;
                } else {
                    self.stored_code();
                }
            }
            Effect::LastInsertId => {
                self.read(Reads::LAST_INSERT_ID);
                self.opened = Opened::InsertId;
            }
            Effect::RowCount => self.opened = Opened::Question(Reads::ROW_COUNT),
            Effect::FoundRows => self.opened = Opened::Question(Reads::FOUND_ROWS),
            Effect::ConnectionId => self.opened = Opened::Question(Reads::CONNECTION_ID),
            Effect::LastGtid => self.opened = Opened::Question(Reads::LAST_GTID),
            Effect::UserLock => {
                self.pin(PinCause::UserLock);
                self.waits_for_lock();
            }
            Effect::Sequence => self.pin(PinCause::Sequence),
            Effect::SetVal => self.out.writes = true,
        }
    }

    /// Judges the first token behind an opening parenthesis whose function asked for it.
    pub(super) fn first_argument(&mut self, token: Token) {
        // `opened` is set when the parenthesis itself is handled, so this is the token behind it.
        let empty = token.kind == Kind::Punct(b')');
        match std::mem::replace(&mut self.opened, Opened::Nothing) {
            Opened::InsertId if !empty => self.out.insert_id = InsertId::MaySet,
            Opened::Geometry if empty => self.stored_code(),
            Opened::Question(what) if empty => self.read(what),
            Opened::InsertId | Opened::Geometry | Opened::Question(_) | Opened::Nothing => {}
        }
    }

    /// Keeps `with` true: a list goes on while tokens fit `name [(...)] AS (...), name ...`.
    pub(super) fn with_list(&mut self, token: Token) {
        let before = self.last[0];
        let bit = 1_u64.checked_shl(self.depth).unwrap_or(0);
        if self.with & bit == 0 {
            return;
        }
        let names = matches!(before.kind, Kind::Punct(b',')) || self.is_any(before, &WITH);
        let fits = match token.kind {
            Kind::Word | Kind::Name => names || self.is_any(token, &[b"AS", b"RECURSIVE"]),
            Kind::Punct(b'(') => matches!(before.kind, Kind::Word | Kind::Name),
            // Closes the parenthesis around the list.
            Kind::Punct(b')') => false,
            Kind::Punct(b',') => before.kind == Kind::Punct(b')'),
            _ => false,
        };
        if !fits {
            self.with &= !bit;
        }
    }
}

const WITH: [&[u8]; 2] = [b"WITH", b"RECURSIVE"];
