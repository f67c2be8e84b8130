//! Tables that a statement looks at: on MariaDB they decide about the warnings before it.
//!
//! The problem: MariaDB clears warnings in front of a statement whose parser has noted a table, and
//! leaves them otherwise; FROM DUAL is none, the FROM of EXTRACT() is none, many forms of SHOW are
//! queries of tables and others are not. The mechanism: the token behind each FROM of a query, and
//! for the other statements the word that names what they are about. Every form here was told to
//! MariaDB 10.11 (`tests/stories/older_warnings.story` tells them again).
//!
//! Invariant: what is not known for certain is neither cleared nor kept.

use super::super::verbs::{self, Stage};
use super::Scan;
use crate::classify::{Marks, Verb};
use crate::lex::{Kind, Token};

/// Facts of a statement's tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tables {
    /// A bit for each depth of parentheses at which a query has begun.
    selects: u64,
    /// True if the next token stands behind a query's FROM.
    from: bool,
    /// True if it looks at a table.
    some: bool,
    /// True for a form that looks at no table.
    none: bool,
    /// True if it may look at a table.
    unsure: bool,
}

/// Objects that SHOW finds in tables of the server's own.
const SHOWN_FROM_TABLES: [&[u8]; 25] = [
    b"CHARACTER",
    b"CHARSET",
    b"CLIENT_STATISTICS",
    b"COLLATION",
    b"COLUMNS",
    b"DATABASES",
    b"ENGINES",
    b"EVENTS",
    b"FIELDS",
    b"FUNCTION",
    b"INDEX",
    b"INDEXES",
    b"INDEX_STATISTICS",
    b"KEYS",
    b"OPEN",
    b"PLUGINS",
    b"PROCEDURE",
    b"SCHEMAS",
    b"STATUS",
    b"TABLE",
    b"TABLES",
    b"TABLE_STATISTICS",
    b"TRIGGERS",
    b"USER_STATISTICS",
    b"VARIABLES",
];
/// Objects that SHOW tells without one.
const SHOWN: [&[u8]; 14] = [
    b"ALL",
    b"AUTHORS",
    b"BINARY",
    b"BINLOG",
    b"CONTRIBUTORS",
    b"ENGINE",
    b"GRANTS",
    b"MASTER",
    b"PRIVILEGES",
    b"PROCESSLIST",
    b"PROFILES",
    b"RELAYLOG",
    b"REPLICA",
    b"SLAVE",
];
/// Defined objects that are tables to the parser.
const TABLES: [&[u8]; 4] = [b"TABLE", b"VIEW", b"SEQUENCE", b"INDEX"];
/// Objects that SHOW CREATE tells without one. To show a routine or a trigger MariaDB may have to
/// read its body, and an INSERT there clears the conditions before.
const CREATED: [&[u8]; 4] = [b"DATABASE", b"SCHEMA", b"EVENT", b"USER"];
/// Defined objects that are none.
const NO_TABLES: [&[u8]; 6] = [
    b"DATABASE",
    b"SCHEMA",
    b"PROCEDURE",
    b"FUNCTION",
    b"USER",
    b"ROLE",
];
/// Statements about tables, by their first words.
const MAINTAINS: [&[u8]; 5] = [b"CHECK", b"CHECKSUM", b"OPTIMIZE", b"REPAIR", b"TRUNCATE"];
/// Functions of sequences, which are tables, and the Oracle mode's words for them.
const SEQUENCES: [&[u8]; 4] = [b"LASTVAL", b"NEXTVAL", b"CURRVAL", b"SETVAL"];
/// Words between EXPLAIN and what it explains.
const EXPLAINS: [&[u8]; 6] = [
    b"EXTENDED",
    b"PARTITIONS",
    b"FORMAT",
    b"ANALYZE",
    b"FOR",
    b"WITH",
];

impl Scan<'_> {
    /// Judges a token behind a query's FROM.
    pub(super) fn behind_from(&mut self, token: Token) {
        if std::mem::take(&mut self.tables.from) {
            self.tables.some |= !self.is(token, b"DUAL");
        }
    }

    /// Ends the queries inside of parentheses that close now.
    pub(super) fn close_queries(&mut self, kept: u64) {
        self.tables.selects &= kept;
    }

    /// Judges a word, before its stage has looked at it.
    pub(super) fn table_word(&mut self, token: Token) {
        let bit = 1_u64.checked_shl(self.depth);
        let selects = bit.is_some_and(|bit| self.tables.selects & bit != 0);
        let before = self.last[0];
        match token.end - token.start {
            3 if self.is(token, b"FOR") && self.is(before, b"VALUE") => self.tables.some = true,
            4 if self.is(token, b"FROM") => {
                self.tables.from = selects;
                self.tables.unsure |= bit.is_none();
            }
            // The FROM of a REVOKE SELECT is an account's.
            6 if self.stage == Stage::Accounts => {}
            6 if self.is(token, b"SELECT") => self.tables.selects |= bit.unwrap_or(0),
            6 | 7 if self.is_any(token, &SEQUENCES) => self.tables.unsure = true,
            _ => {}
        }
        match self.current {
            Verb::Show if self.stage == Stage::Show => {
                self.tables.some |= self.is_any(token, &SHOWN_FROM_TABLES);
                self.tables.none |= self.is_any(token, &SHOWN);
            }
            Verb::Show if self.is(before, b"CREATE") => {
                self.tables.some |= self.is_any(token, &TABLES);
                self.tables.none |= self.is_any(token, &CREATED);
            }
            Verb::Ddl if self.stage == Stage::Ddl => {
                let trigger = self.is(token, b"TRIGGER") && self.is(self.verb, b"CREATE");
                self.tables.some |= self.is_any(token, &TABLES) || trigger;
                self.tables.none |= self.is_any(token, &NO_TABLES);
            }
            Verb::Ddl if before.start == self.verb.start && self.is(before, b"RENAME") => {
                self.tables.some |= self.is_any(token, &[b"TABLE", b"TABLES"]);
                self.tables.none |= self.is(token, b"USER");
            }
            Verb::Explain if before.start == self.verb.start => self.explained(token),
            _ => {}
        }
    }

    /// Judges a call of a built-in function.
    pub(super) fn table_call(&mut self, name: Token) {
        self.tables.some |= self.is_any(name, &SEQUENCES);
    }

    /// Judges the first word of a statement.
    pub(super) fn table_verb(&mut self, token: Token) {
        self.tables.some |= self.is_any(token, &MAINTAINS);
        self.tables.none |= self.is_any(token, &[b"UNLOCK", b"HELP", b"PURGE"]);
    }

    /// Judges a word or name right behind EXPLAIN, DESCRIBE or ANALYZE.
    fn explained(&mut self, token: Token) {
        let query = self.is_any(token, &[b"SELECT", b"VALUES"]);
        let other = !query && !self.is_any(token, &EXPLAINS);
        self.tables.some |= other;
        if other && verbs::first(self.text(token)).is_none() {
            self.marked(Marks::COUNTED);
        }
    }

    /// Judges a statement that EXPLAIN is about.
    pub(super) fn explains(&mut self, verb: Verb) {
        self.tables.some |= verb != Verb::Select;
    }

    /// Judges SET of what the server may keep in tables.
    pub(super) fn may_look_at_tables(&mut self) {
        self.tables.unsure = true;
    }

    /// Judges a word in the body of a stored object: MariaDB clears conditions when it reads an
    /// INSERT or REPLACE, not when it runs it (since 10.7; seen on 10.11).
    pub(super) fn body_word(&mut self, token: Token) {
        self.tables.unsure |= self.is_any(token, &[b"INSERT", b"REPLACE"]);
    }

    /// Judges GET_LOCK(): one that does not get its lock clears the warnings, and no other function
    /// of the server's own does.
    pub(super) fn waits_for_lock(&mut self) {
        self.tables.unsure = true;
    }

    /// True if the statement at hand clears the warnings before it, or leaves them if it has none
    /// of its own; `None` where nobody can tell.
    pub(super) fn clears_warnings(&self) -> Option<bool> {
        use Verb::{Admin, Ddl, Lock, Savepoint, Select, Set, Show, Update, Use};
        use Verb::{Begin, Commit, Delete, Do, Empty, Explain, Insert, Load, Replace, Rollback};
        if self.mode.server.is_mysql() {
            // MySQL leaves them behind a body that declares a condition or a handler, unless it is
            // an event's that is prepared (seen on 9.7).
            return match (self.stage, self.routine.declares_conditions()) {
                (Stage::Routine, true) => (!self.routine.is_event()).then_some(false),
                _ => Some(true),
            };
        }
        let Tables {
            some, none, unsure, ..
        } = self.tables;
        match self.current {
            Insert | Update | Delete | Replace | Load => Some(true),
            Begin | Commit | Rollback | Savepoint | Use | Empty => Some(false),
            Select | Set | Do | Explain | Show | Ddl | Admin | Lock if some => Some(true),
            Select | Set | Do => (!unsure).then_some(false),
            Explain if self.marks.contains(Marks::SELECT_INSIDE) => (!unsure).then_some(false),
            Show | Ddl | Admin | Lock if none => (!unsure).then_some(false),
            _ => None,
        }
    }

    /// Judges a name in quotes, where a word could stand.
    pub(super) fn table_name(&mut self, token: Token) {
        let explains = self.current == Verb::Explain && self.last[0].start == self.verb.start;
        if explains && token.kind == Kind::Name {
            self.tables.some = true;
            self.marked(Marks::COUNTED);
        }
    }
}
