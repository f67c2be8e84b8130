//! The stages of a statement: what a word means because of its place.
//!
//! Each stage waits for the few words that decide, hands over to the next or to [`Stage::Body`],
//! and leaves all else to the general checks. A token that a stage does not expect makes the
//! statement less understood, never more: it ends the stage or pins.

use super::super::routine::Routine;
use super::super::set::{self, Scope, Setting};
use super::super::verbs::{self, Stage};
use super::super::{InsertId, Marks, PinCause, Reads, Verb};
use super::{Reader, Scan};
use crate::lex::{Kind, Server, Token};

impl Scan<'_> {
    pub(super) fn first_word(&mut self, token: Token) {
        let Some(first) = verbs::first(self.text(token)) else {
            self.pin(PinCause::Unknown);
            return self.begin(Verb::Other, Stage::Body);
        };
        self.verb = token;
        self.out.kills |= first.verb == Verb::Kill;
        // SIGNAL makes a condition of its own; GET DIAGNOSTICS and RESIGNAL look at those before.
        if first.verb == Verb::Diagnostics && !self.is(token, b"SIGNAL") {
            self.read(Reads::DIAGNOSTICS);
        }
        let in_parentheses = self.depth > 0;
        if in_parentheses && first.verb != Verb::Select {
            self.pin(PinCause::Unknown);
        }
        if let Some(cause) = first.pin {
            self.pin(cause);
        }
        self.begin(first.verb, first.stage);
        self.table_verb(token);
    }

    pub(super) fn begin(&mut self, verb: Verb, stage: Stage) {
        self.stage = stage;
        self.current = verb;
        if !self.out.multi {
            self.out.verb = verb;
        }
        self.out.insert_id = self.out.insert_id.max(verb.insert_id());
        self.out.sets_savepoint |= verb == Verb::Savepoint;
        self.calls = !matches!(stage, Stage::Ddl | Stage::Accounts) && verb != Verb::Ddl;
        self.accounts = matches!(stage, Stage::Ddl | Stage::Accounts | Stage::Show);
        self.out.changes_watched |= stage == Stage::Accounts;
        self.scope = Scope::Session;
        self.variable = None;
        self.with_depth = self.depth;
    }

    /// Judges the second word of statements in which it decides.
    pub(super) fn clause(&mut self, token: Token) {
        let before = self.last[0];
        match self.stage {
            Stage::Begin if !self.is(token, b"WORK") => self.pin(PinCause::StoredCode),
            Stage::Completion => {
                if self.is(token, b"TO") && !self.out.multi {
                    self.out.verb = Verb::Savepoint;
                } else if self.is(token, b"RELEASE") && !self.is(before, b"NO") {
                    self.pin(PinCause::Release);
                }
            }
            Stage::Start => {
                let transaction = self.is(token, b"TRANSACTION");
                self.begin(
                    if transaction {
                        Verb::Begin
                    } else {
                        Verb::Admin
                    },
                    Stage::Body,
                );
            }
            Stage::Lock => {
                let instance = self.is(token, b"INSTANCE");
                self.pin(if instance {
                    PinCause::BackupLock
                } else {
                    PinCause::LockTables
                });
                self.stage = Stage::Body;
            }
            Stage::Flush => {
                let lock = self.is(token, b"LOCK") && self.is(before, b"READ");
                if lock || self.is(token, b"EXPORT") {
                    self.pin(PinCause::GlobalReadLock);
                } else if self.is(token, b"STATUS") {
                    self.pin(PinCause::SessionStatus);
                } else if self.is(token, b"USER_VARIABLES") {
                    // What the session has is gone on this backend, and nothing reports it.
                    self.pin(PinCause::Unknown);
                } else if self.is(token, b"PRIVILEGES") {
                    self.out.changes_watched = true;
                }
            }
            Stage::Show => self.show(token),
            Stage::SetStatement if self.depth == 0 && self.is(token, b"FOR") => {
                self.stage = Stage::First;
            }
            Stage::SetStatement => self.passing_variable(token),
            _ => {}
        }
    }

    /// Judges a word or a name between SET STATEMENT and FOR. To set some variables and to set them
    /// back leaves something behind, or hides what the statement itself does to the session. A
    /// character set comes back with its default collation, whatever it had.
    pub(super) fn passing_variable(&mut self, token: Token) {
        let name = set::unquoted(self.text(token));
        let lasts = match set::setting(name) {
            Setting::Pins(_) | Setting::UnlessOff(_) => true,
            Setting::Charset => {
                (name.get(..13)).is_some_and(|start| start.eq_ignore_ascii_case(b"character_set"))
            }
            _ => name.eq_ignore_ascii_case(b"max_join_size"),
        };
        if lasts {
            self.pin(PinCause::SpecialVariable);
        }
    }

    fn show(&mut self, token: Token) {
        if self.is_any(token, &BEFORE_SHOWN) {
            return;
        }
        self.stage = Stage::Body;
        if self.is_any(token, &LOOKED_UP) {
            self.marked(Marks::COUNTED);
        } else if self.is_any(token, &NO_QUERY) {
            self.marked(Marks::NO_QUERY);
        }
        if self.is_any(token, &[b"WARNINGS", b"ERRORS", b"COUNT"]) {
            self.shows_conditions = true;
            self.read(Reads::DIAGNOSTICS);
        } else if self.is(token, b"VARIABLES") && !self.is(self.last[0], b"GLOBAL") {
            // Shows `last_insert_id` among the others.
            self.read(Reads::LAST_INSERT_ID);
        }
    }

    /// Judges the verb of the statement behind EXPLAIN or WITH.
    pub(super) fn inner_verb(&mut self, token: Token) {
        if self.depth != self.with_depth {
            return;
        }
        if self.stage == Stage::Explain && self.is(token, b"TABLE") {
            if !self.is_any(self.last[0], &[b"EXPLAIN", b"DESCRIBE", b"DESC"]) {
                self.begin(Verb::Admin, Stage::Body);
                self.explains(Verb::Admin);
            }
            return;
        }
        let Some(first) = verbs::first(self.text(token)) else {
            return;
        };
        let inserts = matches!(first.verb, Verb::Insert | Verb::Replace);
        if !inserts && !matches!(first.verb, Verb::Select | Verb::Update | Verb::Delete) {
            return;
        }
        self.out.insert_id = self.out.insert_id.max(first.verb.insert_id());
        if self.stage == Stage::Explain {
            self.explains(first.verb);
        }
        if self.stage == Stage::With {
            self.current = first.verb;
        }
        if self.stage == Stage::With && !self.out.multi && self.out.verb != Verb::Explain {
            self.out.verb = first.verb;
        }
        self.stage = first.stage;
    }

    /// Judges INSERT [IGNORE] [INTO] name, REPLACE name, LOAD DATA ... INTO TABLE name.
    pub(super) fn target_word(&mut self, token: Token) {
        const MODIFIERS: [&[u8]; 6] = [
            b"LOW_PRIORITY",
            b"DELAYED",
            b"HIGH_PRIORITY",
            b"IGNORE",
            b"INTO",
            b"TABLE",
        ];
        let dotted = self.last[0].kind == Kind::Punct(b'.');
        self.stage = match self.stage {
            Stage::Load if self.is(token, b"TABLE") && self.is(self.last[0], b"INTO") => {
                Stage::Target
            }
            Stage::Load => {
                if self.is(token, b"LOCAL") {
                    self.marked(Marks::LOCAL_FILE);
                }
                Stage::Load
            }
            Stage::Target if self.is_any(token, &MODIFIERS) => Stage::Target,
            Stage::Target => Stage::TargetName,
            _ if dotted => Stage::TargetName,
            _ => Stage::Body,
        };
    }

    /// Judges CREATE, ALTER, DROP: words up to the kind of object.
    pub(super) fn object(&mut self, token: Token) {
        let before = self.last[0];
        let create = self.is(self.verb, b"CREATE");
        if self.is(token, b"TEMPORARY") {
            self.pin(PinCause::TemporaryTable);
        } else if self.is(token, b"VIEW") {
            self.stage = Stage::View;
        } else if self.is(token, b"EVENT") || self.is_any(token, &ROUTINES) {
            let event = self.is(token, b"EVENT");
            // ALTER EVENT has a body too; the other statements about routines have none.
            let body = create || (event && !self.is(before, b"DROP"));
            self.routine = Routine::new(event);
            self.stage = if body { Stage::Routine } else { Stage::Body };
        } else if self.is_any(token, &[b"USER", b"ROLE"]) {
            self.stage = Stage::Accounts;
            self.out.changes_watched = true;
        } else if self.is_any(
            token,
            &[b"TABLE", b"INDEX", b"SEQUENCE", b"DATABASE", b"SCHEMA"],
        ) {
            self.stage = Stage::Body;
            self.accounts = false;
        }
    }

    pub(super) fn routine_token(&mut self, token: Token) {
        self.body_word(token);
        match token.kind {
            Kind::Word => self.routine.word(self.text(token), self.text(self.last[0])),
            Kind::Punct(byte) => self.routine.other(byte),
            _ => self.routine.other(0),
        }
    }

    /// Judges a word or name in SET.
    pub(super) fn set_word(&mut self, token: Token) {
        match self.stage {
            Stage::Assignment if token.kind == Kind::Word => self.assignment_word(token),
            Stage::Assignment | Stage::Variable => {
                self.variable = Some(token);
                self.stage = Stage::Variable;
            }
            _ => self.value(token),
        }
    }

    fn assignment_word(&mut self, token: Token) {
        if let Some(scope) = Scope::named(self.text(token)) {
            self.scope = scope;
            return;
        }
        self.stage = Stage::Rest;
        if self.is_any(token, &[b"NAMES", b"CHARACTER", b"CHAR", b"CHARSET"]) {
            self.sets_unreported();
            self.out.sets_charset = true;
            self.reader = self.reader.max(Reader::Charset);
        } else if self.is(token, b"ROLE") {
            self.out.sets_role = true;
            self.accounts = true;
        } else if self.is(token, b"AUTHORIZATION") {
            self.pin(PinCause::Role);
        } else if self.is(token, b"RESOURCE") {
            self.pin(PinCause::ResourceGroup);
        } else if self.is_any(token, &[b"PASSWORD", b"DEFAULT"]) {
            self.accounts = true;
            self.out.changes_watched = true;
            // It looks at tables of the server's own.
            self.marked(Marks::FROM_INSIDE);
            self.may_look_at_tables();
        } else if self.is(token, b"STATEMENT") {
            self.passes();
            self.stage = Stage::SetStatement;
        } else if self.is(token, b"TRANSACTION") {
            self.sets_unreported();
        } else {
            self.variable = Some(token);
            self.stage = Stage::Variable;
        }
    }

    /// Pins for a SET of session variables behind SET STATEMENT ... FOR: what it sets lasts, and
    /// MariaDB reports nothing of it.
    fn sets_unreported(&mut self) {
        if self.out.passing {
            self.pin(PinCause::SpecialVariable);
        }
    }

    /// Judges any token that can be the first of a value, or that ends one that looked harmless.
    pub(super) fn value(&mut self, token: Token) {
        match self.stage {
            Stage::Assignment => self.stage = Stage::Rest,
            Stage::Variable if matches!(token.kind, Kind::Assign | Kind::Punct(b'=')) => {
                self.stage = Stage::Rest;
                self.assign();
            }
            Stage::Value => {
                self.stage = Stage::Off;
                if !self.is_off(token) {
                    self.pin(self.unless_off);
                }
            }
            Stage::Off => {
                self.pin(self.unless_off);
                self.stage = Stage::Rest;
            }
            Stage::Begin => self.pin(PinCause::StoredCode),
            Stage::First => {
                self.pin(PinCause::Unknown);
                self.begin(Verb::Other, Stage::Body);
            }
            Stage::Target => self.stage = Stage::Body,
            Stage::TargetName if token.kind != Kind::Punct(b'.') => self.stage = Stage::Body,
            _ => {}
        }
    }

    /// Makes the value that follows pin, unless it is off.
    fn pin_unless_off(&mut self, cause: PinCause) {
        self.unless_off = cause;
        self.stage = Stage::Value;
    }

    /// True if a value switches off what is switched; of the optimizer's trace it is a text with
    /// its parts in it.
    fn is_off(&self, token: Token) -> bool {
        let text = self.text(token).to_ascii_lowercase();
        match token.kind {
            Kind::Number => text == b"0",
            Kind::String => {
                let parts = text
                    .get(1..text.len().saturating_sub(1))
                    .unwrap_or_default();
                let mut parts = parts.split(|&byte| byte == b',');
                parts.next() == Some(b"enabled=off") && parts.all(|part| part.ends_with(b"=off"))
            }
            _ => self.is_any(token, &[b"OFF", b"FALSE"]),
        }
    }

    /// Handles the assignment to the variable at hand.
    fn assign(&mut self) {
        let Some(token) = self.variable else { return };
        let (scope, name) = match token.kind {
            Kind::SystemVariable => match set::split(self.text(token)) {
                Some(split) => split,
                None => return self.pin(PinCause::Unknown),
            },
            _ => (self.scope, set::unquoted(self.text(token))),
        };
        if scope == Scope::Global {
            self.out.changes_watched = true;
            return;
        }
        self.sets_unreported();
        // MariaDB reports nothing of `SET @@name` (tests/pages/trackers.md).
        let unscoped = !self.text(token).contains(&b'.');
        let mysql = self.mode.server.is_mysql();
        let reported = matches!(self.mode.server, Server::MySql(version) if version >= 80_000);
        if token.kind == Kind::SystemVariable && unscoped && !reported {
            self.out.untracked = true;
        }
        match set::setting(name) {
            Setting::Restorable => {}
            Setting::Charset => {
                self.out.sets_charset = true;
                self.reader = self.reader.max(Reader::Charset);
            }
            Setting::SqlMode => self.reader = Reader::Mode,
            Setting::InsertId => self.out.insert_id = InsertId::MaySet,
            Setting::Clock => self.out.sets_clock = true,
            // MySQL looks at LAST_INSERT_ID() and nothing else.
            Setting::AutoIsNull if mysql => {}
            Setting::AutoIsNull => self.pin_unless_off(PinCause::VariableInUse),
            Setting::UnlessOff(cause) => self.pin_unless_off(cause),
            Setting::Pins(cause) => self.pin(cause),
        }
    }
}

/// Words between SHOW and what is shown.
const BEFORE_SHOWN: [&[u8]; 6] = [
    b"SESSION",
    b"LOCAL",
    b"GLOBAL",
    b"FULL",
    b"EXTENDED",
    b"STORAGE",
];
/// Objects that SHOW looks up as a query does, so that its rows count as FOUND_ROWS() (seen on
/// MariaDB 10.11 and MySQL 9.7).
const LOOKED_UP: [&[u8]; 20] = [
    b"CHARACTER",
    b"CHARSET",
    b"COLLATION",
    b"COLUMNS",
    b"COUNT",
    b"DATABASES",
    b"ENGINES",
    b"EVENTS",
    b"FIELDS",
    b"INDEX",
    b"INDEXES",
    b"KEYS",
    b"OPEN",
    b"PLUGINS",
    b"SCHEMAS",
    b"STATUS",
    b"TABLE",
    b"TABLES",
    b"TRIGGERS",
    b"VARIABLES",
];
/// Objects that SHOW tells without a query (seen on both).
const NO_QUERY: [&[u8]; 5] = [
    b"CREATE",
    b"ENGINE",
    b"GRANTS",
    b"PRIVILEGES",
    b"PROCESSLIST",
];
const ROUTINES: [&[u8]; 4] = [b"PROCEDURE", b"FUNCTION", b"TRIGGER", b"PACKAGE"];
