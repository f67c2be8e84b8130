//! Statements that define stored code, or move it: what a CREATE TRIGGER will make, before the
//! server has made it.
//!
//! The text is at hand, so the code counts from the moment that the statement is sent. What is
//! read too much in a text of several statements is scanned along, which can only make it worse.

use super::super::routine::Routine;
use super::{Code, Folded, Path, Scanned, body, expression, fold};
use crate::lex::{Kind, LexMode};
use std::collections::BTreeSet;
use std::ops::Range;

/// Kind of object that has code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defined {
    /// A trigger; its path is the table's.
    Trigger,
    /// A view.
    View,
    /// A stored function.
    Function,
    /// A stored procedure.
    Procedure,
    /// A column whose default or value is computed; its path is the table's.
    Column,
    /// A table or view that takes over what another one has, under another name.
    Copy,
}

/// One thing with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Kind of object.
    pub kind: Defined,
    /// Its name.
    pub path: Path,
    /// Side effects of its code.
    pub scanned: Scanned,
}

/// Definitions in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Each.
    pub list: Vec<Definition>,
    /// Code is made, changed or taken away.
    pub code: bool,
    /// Tables are renamed, copied or taken away.
    pub tables: bool,
    /// Schemas that are altered, created or dropped.
    pub schemas: Vec<Schema>,
}

/// A schema that a text alters, creates or drops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Its name; `None` for the default schema.
    pub name: Option<Folded>,
    /// Fate of the object.
    pub change: SchemaChange,
}

/// Effect of a statement on a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaChange {
    /// ALTER.
    Altered,
    /// CREATE.
    Created,
    /// CREATE IF NOT EXISTS.
    CreatedUnlessThere,
    /// DROP.
    Dropped,
}

/// Words that may follow ALTER DATABASE in place of a name.
const SCHEMA_OPTIONS: [&[u8]; 7] = [
    b"CHARACTER",
    b"CHARSET",
    b"COLLATE",
    b"COMMENT",
    b"DEFAULT",
    b"ENCRYPTION",
    b"READ",
];

const OBJECTS: [&[u8]; 16] = [
    b"TRIGGER",
    b"VIEW",
    b"FUNCTION",
    b"PROCEDURE",
    b"PACKAGE",
    b"TABLE",
    b"TABLES",
    b"DATABASE",
    b"SCHEMA",
    b"INDEX",
    b"EVENT",
    b"USER",
    b"ROLE",
    b"SERVER",
    b"SEQUENCE",
    b"TABLESPACE",
];
/// Tokens between CREATE and the kind of object: OR REPLACE, a definer and the like.
const HEAD_MAX: usize = 24;

/// Tokens that are read for all definitions of a text, as a multiple of those that it has: a body
/// is scanned with all that stands behind it, and a client must not hold up all others with a text
/// of many. Those beyond that may leave anything, until they are read from the server.
const READ_MAX: usize = 4;

/// Definitions in a text, if its server runs it.
#[must_use]
pub fn definitions(sql: &[u8], mode: LexMode) -> Definitions {
    let code = Code::new(sql, mode);
    let mut out = Definitions::default();
    let mut left = code.tokens.len().saturating_mul(READ_MAX);
    for at in 0..code.tokens.len() {
        if code.is(at, &[b"CREATE", b"ALTER", b"DROP", b"RENAME"]) {
            code.define(at, &mut left, &mut out);
        }
    }
    if mode.no_schema {
        // Passed over in front of tables and views, not of routines.
        let routine = |kind| matches!(kind, Defined::Function | Defined::Procedure);
        let tables = out.list.iter_mut().filter(|one| !routine(one.kind));
        tables.for_each(|one| one.path.schema = None);
    }
    out
}

impl Code<'_> {
    /// Reads a definition that begins here; at most so many tokens are read for it.
    fn define(&self, verb: usize, left: &mut usize, out: &mut Definitions) {
        let ends = |at: usize| self.kind(at).is_none_or(|kind| kind == Kind::Semicolon);
        let head = (verb + 1..verb + HEAD_MAX).take_while(|&at| !ends(at));
        let Some(object) = head.into_iter().find(|&at| self.is(at, &OBJECTS)) else {
            return;
        };
        let mut name = object + 1;
        while self.is(name, &[b"IF", b"NOT", b"EXISTS", b"BODY"]) {
            name += 1;
        }
        let is = |kind: &[u8]| self.is(object, &[kind]);
        let makes = self.is(verb, &[b"CREATE"]);
        let tables = is(b"TABLE") || is(b"TABLES");
        out.tables |= tables;
        out.code |= is(b"TRIGGER") || is(b"VIEW") || is(b"FUNCTION") || is(b"PROCEDURE");
        out.code |= is(b"PACKAGE") || is(b"DATABASE") || is(b"SCHEMA");
        let schema = is(b"DATABASE") || is(b"SCHEMA");
        let drops = self.is(verb, &[b"DROP"]);
        if drops && !schema {
            return;
        }
        let Some((path, end)) = self.path(name) else {
            return;
        };
        if schema {
            if verb > 0 && self.is(verb - 1, &[b"SHOW"]) {
                return;
            }
            let change = match makes {
                true if self.is(object + 1, &[b"IF"]) => SchemaChange::CreatedUnlessThere,
                true => SchemaChange::Created,
                false if drops => SchemaChange::Dropped,
                false => SchemaChange::Altered,
            };
            let named = change != SchemaChange::Altered || !self.is(name, &SCHEMA_OPTIONS);
            out.schemas.push(Schema {
                name: named.then_some(path.name),
                change,
            });
            return;
        }
        let view = is(b"VIEW") && !self.is(verb, &[b"RENAME"]);
        let body = makes && (is(b"TRIGGER") || is(b"FUNCTION") || is(b"PROCEDURE"));
        if !(view || body || tables) {
            return;
        }
        // Only a body has semicolons of its own.
        let all = end..self.tokens.len();
        let whole = body || self.doubtful;
        let mut near = all.clone().take(*left);
        let semicolon = near.find(|&at| !whole && ends(at));
        let to = semicolon.unwrap_or(all.end);
        let cost = to - end;
        let readable = cost <= *left;
        *left = left.saturating_sub(cost);
        if is(b"TRIGGER") && makes {
            self.define_trigger(end, readable, out);
        } else if view {
            let scanned = match readable {
                true => expression(self.between(end, to), self.mode),
                false => Scanned::unreadable(),
            };
            out.push(Defined::View, path, scanned);
        } else if body {
            let kind = match is(b"FUNCTION") {
                true => Defined::Function,
                false => Defined::Procedure,
            };
            let scanned = match readable {
                true => self.routine_body(end),
                false => Scanned::unreadable(),
            };
            out.push(kind, path, scanned);
        } else if readable {
            self.define_table(verb, path, end..to, out);
        } else {
            out.push(Defined::Column, path, Scanned::unreadable());
        }
    }

    /// The text of these tokens, with what stands between them.
    fn between(&self, from: usize, to: usize) -> &[u8] {
        let start = |at: usize| self.tokens.get(at).map_or(self.sql.len(), |t| t.start);
        self.sql.get(start(from)..start(to)).unwrap_or_default()
    }

    /// The text from this token on.
    fn rest(&self, at: usize) -> &[u8] {
        self.between(at, self.tokens.len())
    }

    fn find(&self, mut among: Range<usize>, word: &[u8]) -> Option<usize> {
        among.find(|&at| self.is(at, &[word]))
    }

    /// Reads `... ON table FOR EACH ROW [FOLLOWS | PRECEDES other] body`.
    fn define_trigger(&self, from: usize, readable: bool, out: &mut Definitions) {
        let most = if readable { usize::MAX } else { HEAD_MAX };
        let until = |from: usize| from..self.tokens.len().min(from.saturating_add(most));
        let table = self.find(until(from), b"ON");
        let table = table.and_then(|on| self.path(on + 1));
        let Some((path, end)) = table else { return };
        let mut scanned = Scanned::unreadable();
        if let Some(row) = self.find(until(end), b"ROW").filter(|_| readable) {
            let ordered = self.is(row + 1, &[b"FOLLOWS", b"PRECEDES"]);
            let start = row + if ordered { 3 } else { 1 };
            scanned = body(self.rest(start), self.mode, &BTreeSet::new());
        }
        out.push(Defined::Trigger, path, scanned);
    }

    /// Parameters, what is returned, characteristics; then the body.
    fn routine_body(&self, from: usize) -> Scanned {
        let mut routine = Routine::new(false);
        let mut locals: BTreeSet<Folded> = BTreeSet::new();
        for at in from..self.tokens.len() {
            match self.tokens[at].kind {
                Kind::Semicolon => break,
                Kind::Word => {
                    let before = at.checked_sub(1).map_or(&b""[..], |at| self.text(at));
                    routine.word(self.text(at), before);
                    if routine.has_begun() {
                        return body(self.rest(at), self.mode, &locals);
                    }
                }
                Kind::Punct(byte) => routine.other(byte),
                _ => routine.other(0),
            }
            if self.is_name(at) {
                locals.insert(fold(self.text(at)));
            }
        }
        Scanned::unreadable()
    }

    /// Reads the definition of a table: its columns' expressions, and what it takes over from
    /// others.
    fn define_table(&self, verb: usize, path: Path, all: Range<usize>, out: &mut Definitions) {
        let mut scanned = match self.doubtful {
            true => self.scan(),
            false => expression(self.between(all.start, all.end), self.mode),
        };
        // A key before its columns looks like a call, and no stored function may be called here.
        scanned.calls.clear();
        let renames = self.is(verb, &[b"RENAME"]);
        let copies = [&b"LIKE"[..], b"SELECT", b"RENAME"];
        if renames || all.clone().any(|at| self.is(at, &copies)) {
            let scanned = Scanned {
                names: std::iter::once(path.name.clone())
                    .chain(path.schema.clone())
                    .chain(scanned.names.iter().cloned())
                    .collect(),
                ..Scanned::default()
            };
            if self.is(verb, &[b"CREATE"]) {
                out.push(Defined::Copy, path.clone(), scanned.clone());
            }
            for at in all {
                let target = self.is(at, &[b"TO", b"AS", b"RENAME"]);
                if let Some((target, _)) = self.path(at + 1).filter(|_| target) {
                    out.push(Defined::Copy, target, scanned.clone());
                }
            }
        }
        if scanned.verdict > super::Verdict::Clean {
            out.push(Defined::Column, path, scanned);
        } else {
            scanned.names.clear();
        }
    }
}

impl Definitions {
    fn push(&mut self, kind: Defined, path: Path, scanned: Scanned) {
        self.list.push(Definition {
            kind,
            path,
            scanned,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_that_are_defined_are_named() {
        let defined = |sql: &str| {
            let schemas = definitions(sql.as_bytes(), LexMode::default()).schemas;
            let shown = |schema: Schema| {
                let name = schema.name.as_deref().map(String::from_utf8_lossy);
                let name = name.map_or("-".to_string(), |name| name.to_string());
                let change = match schema.change {
                    SchemaChange::Altered => "~",
                    SchemaChange::Created => "",
                    SchemaChange::CreatedUnlessThere => "?",
                    SchemaChange::Dropped => "!",
                };
                name + change
            };
            schemas.into_iter().map(shown).collect::<Vec<_>>().join(" ")
        };
        for (sql, expected) in [
            ("ALTER DATABASE Shop CHARACTER SET greek", "shop~"),
            ("ALTER SCHEMA `a b` COLLATE greek_bin", "a b~"),
            ("ALTER DATABASE DEFAULT CHARACTER SET greek", "-~"),
            ("alter schema collate = greek_bin", "-~"),
            ("ALTER DATABASE `default` CHARACTER SET greek", "default~"),
            ("CREATE DATABASE charset", "charset"),
            ("CREATE OR REPLACE DATABASE shop; CREATE SCHEMA b", "shop b"),
            ("CREATE DATABASE IF NOT EXISTS shop", "shop?"),
            ("DROP DATABASE shop", "shop!"),
            ("DROP SCHEMA IF EXISTS `Collate`", "collate!"),
            ("DROP TABLE database_of", ""),
            ("SHOW CREATE DATABASE shop; DROP DATABASE b", "b!"),
            ("CREATE TABLE database_of (a INT)", ""),
        ] {
            assert_eq!(defined(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_schema_that_is_passed_over_is_not_a_views() {
        let mode = LexMode {
            no_schema: true,
            ..LexMode::default()
        };
        let sql =
            b"CREATE VIEW other.v AS SELECT 1; CREATE FUNCTION other.f() RETURNS INT RETURN 1";
        let list = definitions(sql, mode).list;
        let schemas: Vec<_> = list.into_iter().map(|one| one.path.schema).collect();
        assert_eq!(schemas, [None, Some(fold(b"other"))]);
    }

    fn found(text: &str) -> Vec<Definition> {
        definitions(text.repeat(3000).as_bytes(), LexMode::default()).list
    }

    fn unread(list: &[Definition]) -> usize {
        let unread = |one: &&Definition| one.scanned == Scanned::unreadable();
        list.iter().filter(unread).count()
    }

    /// Read to the end of the text for each, these would be millions of tokens.
    #[test]
    fn what_is_read_for_definitions_is_bounded_by_the_text() {
        for (text, kind) in [
            ("CREATE PROCEDURE p() DO 1;", Defined::Procedure),
            (
                "CREATE FUNCTION f() RETURNS INT RETURN 1;",
                Defined::Function,
            ),
            ("CREATE VIEW v AS SELECT f() ", Defined::View),
            (
                "CREATE TABLE t (a INT AS (GET_LOCK('a', 1))) ",
                Defined::Column,
            ),
            (
                "CREATE TRIGGER t BEFORE INSERT ON u FOR EACH ROW DO 1;",
                Defined::Trigger,
            ),
        ] {
            let list = found(text);
            assert!(list.iter().all(|one| one.kind == kind), "{text}");
            let read = list.len() - unread(&list);
            assert_eq!((list.len(), read), (3000, READ_MAX), "{text}");
        }
    }

    #[test]
    fn what_ends_with_its_statement_is_always_read() {
        for text in [
            "CREATE VIEW v AS SELECT f();",
            "CREATE TABLE t (a INT AS (GET_LOCK('a', 1)));",
        ] {
            let list = found(text);
            assert_eq!((list.len(), unread(&list)), (3000, 0), "{text}");
        }
    }
}
