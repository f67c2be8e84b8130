//! One pass over the tokens of a text, statement by statement.
//!
//! Two kinds of knowledge meet here. General checks judge each token wherever it stands: a user
//! variable, a name before a parenthesis, a word such as UNION. A [`Stage`] says
//! where in its statement the scanner is, for what only the place can tell: that `t (a, b)` behind
//! INSERT INTO is a list of columns, or that the word behind SET names a variable.
//!
//! Invariants: three tokens of look-back and none ahead; the first cause of a pin is kept; a stage
//! never hides a token from the general checks, except the bodies of stored objects, which the
//! server does not run (see `routine`).

mod calls;
mod stages;
mod tables;

use super::routine::Routine;
use super::set::{self, Scope};
use super::verbs::Stage;
use super::{InsertId, Marks, PinCause, Reads, Statement, Verb, lists_user_variables};
use crate::lex::{Executable, Kind, LexMode, Lexer, Server, Token};
use calls::Opened;
use tables::Tables;

pub(super) struct Scan<'a> {
    sql: &'a [u8],
    lexer: Lexer<'a>,
    mode: LexMode,
    out: Statement,
    /// Value of `out` before the statement at hand, if that is not the first.
    before: Option<Statement>,
    stage: Stage,
    /// The last tokens, the nearest first.
    last: [Token; 3],
    /// Tokens but semicolons, and semicolons, in the whole text.
    tokens: u32,
    semicolons: u32,
    /// True if a semicolon ended the statement: the next token starts another.
    ended: bool,
    /// True if one did so inside an executable comment: servers differ in what they read behind it.
    cut_in_comment: bool,
    depth: u32,
    /// Names before parentheses may be calls.
    calls: bool,
    /// `name@host` is an account.
    accounts: bool,
    /// A bit for each depth of parentheses at which a list of WITH goes on.
    with: u64,
    with_depth: u32,
    opened: Opened,
    /// Depth and commas of an open POINT(...).
    point: Option<(u32, u32)>,
    /// Calls of JSON_TABLE that have not shown COLUMNS yet.
    json_tables: u32,
    /// Change of how texts are read, by a statement before this one.
    reader: Reader,
    /// A statement before this one calls stored code.
    behind_code: bool,
    /// True if a CALL stands in front of the statement at hand.
    behind_call: bool,
    /// SET: the scope and the name of the variable at hand.
    scope: Scope,
    variable: Option<Token>,
    /// Reason why its value pins, if it is not off.
    unless_off: PinCause,
    routine: Routine,
    /// The first word of the statement.
    verb: Token,
    /// Verb of the statement at hand, and its own marks: those of `out` are the text's.
    current: Verb,
    marks: Marks,
    /// True for SHOW WARNINGS, SHOW ERRORS or SHOW COUNT(*).
    shows_conditions: bool,
    tables: Tables,
}

/// Reading of the rest of a text, beside its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reader {
    Same,
    /// Text in another character set.
    Charset,
    /// Under another `sql_mode`, and perhaps in another character set.
    Mode,
}

/// True if a byte is this letter or sign in each character set that a client can have, and begins
/// and escapes nothing that others would read on.
fn is_same_in_charsets(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || byte.is_ascii_whitespace()
        || b"_@.,=':;+-*/()<>!%".contains(&byte)
}

const NO_TOKEN: Token = Token {
    kind: Kind::Semicolon,
    start: 0,
    end: 0,
};

impl<'a> Scan<'a> {
    pub(super) fn new(sql: &'a [u8], mode: LexMode, executable: Executable) -> Self {
        Self {
            sql,
            lexer: Lexer::with_executable(sql, mode, executable),
            mode,
            out: Statement::EMPTY,
            before: None,
            stage: Stage::First,
            last: [NO_TOKEN; 3],
            tokens: 0,
            semicolons: 0,
            ended: false,
            cut_in_comment: false,
            depth: 0,
            calls: true,
            accounts: false,
            with: 0,
            with_depth: 0,
            opened: Opened::Nothing,
            point: None,
            json_tables: 0,
            reader: Reader::Same,
            behind_code: false,
            behind_call: false,
            scope: Scope::Session,
            variable: None,
            unless_off: PinCause::VariableInUse,
            routine: Routine::default(),
            verb: NO_TOKEN,
            current: Verb::Empty,
            marks: Marks::NONE,
            shows_conditions: false,
            tables: Tables::default(),
        }
    }

    /// Reads the whole text, and shows each token to `each`; also tells whether it has comments
    /// that only some servers run.
    pub(super) fn run(mut self, mut each: impl FnMut(Token)) -> (Statement, bool) {
        while let Some(token) = self.lexer.next() {
            each(token);
            self.token(token);
            self.last = [token, self.last[0], self.last[1]];
        }
        self.finish()
    }

    fn token(&mut self, token: Token) {
        if token.kind == Kind::Semicolon {
            self.semicolon();
            return;
        }
        if self.ended {
            self.next_statement(token);
        }
        self.tokens += 1;
        match self.stage {
            Stage::Routine => return self.routine_token(token),
            Stage::View => return,
            _ => {}
        }
        if self.opened != Opened::Nothing {
            self.first_argument(token);
        }
        if self.with != 0 {
            self.with_list(token);
        }
        self.behind_from(token);
        match token.kind {
            Kind::Word => self.word(token),
            Kind::Name => self.name(token),
            Kind::Number if self.is(self.last[0], b"WAIT") => {
                self.waits_for_locks(self.last[1]);
                self.value(token);
            }
            Kind::UserVariable => self.user_variable(token),
            Kind::SystemVariable => self.system_variable(token),
            Kind::Punct(b'(') => self.open(token),
            Kind::Punct(b')') => self.close(token),
            Kind::Punct(b',') => self.comma(token),
            Kind::Punct(b'.') => {
                self.marked(Marks::QUALIFIED);
                self.value(token);
            }
            _ => self.value(token),
        }
    }

    // The ends of statements and of the text.

    fn semicolon(&mut self) {
        self.semicolons += 1;
        if self.stage == Stage::Routine && !self.routine.semicolon() {
            return;
        }
        self.cut_in_comment |= self.lexer.in_comment();
        self.ended = true;
        self.end_statement();
    }

    fn end_statement(&mut self) {
        if self.json_tables > 0 {
            self.pin(PinCause::StoredCode);
        }
        if self.stage == Stage::Routine && !self.routine.finish() {
            self.pin(PinCause::Unknown);
        }
        if self.out.multi && self.current == Verb::Diagnostics {
            self.marked(Marks::DIAGNOSTICS_BEHIND);
        }
        self.replace();
    }

    /// Notes what the statement at hand has replaced of what those before it have left, when it has
    /// succeeded (seen on MariaDB 10.11 and MySQL 9.7), and whether it leaves their warnings, if it
    /// has none of its own.
    fn replace(&mut self) {
        let asks = self.shows_conditions || self.current == Verb::Diagnostics;
        let clears = self.clears_warnings();
        self.out.keeps_warnings &= asks || clears == Some(false);
        use Verb::{Call, Empty, Other, Prepare};
        if asks || matches!(self.current, Call | Prepare | Other | Empty) {
            return;
        }
        let counts = match self.current {
            Verb::Select => self.marks.contains(Marks::COUNTED),
            verb => verb == Verb::Do && self.mode.server.is_mysql(),
        };
        self.out.replaces = (self.out.replaces.union(Reads::ROW_COUNT))
            .union(Reads::FOUND_ROWS.when(counts))
            .union(Reads::DIAGNOSTICS.when(clears == Some(true)));
    }

    fn next_statement(&mut self, token: Token) {
        self.out.multi = true;
        self.behind_call |= self.current == Verb::Call;
        self.behind_code = self.out.causes.contains(PinCause::StoredCode);
        let rest = self.sql.get(token.start..).unwrap_or_default();
        let alike = match self.reader {
            Reader::Same => true,
            Reader::Charset => rest.iter().all(|&byte| is_same_in_charsets(byte)),
            Reader::Mode => {
                // Of the first words, those of a SET alone mean the same in every mode.
                let parts = |byte: &u8| matches!(byte, b'(' | b'"');
                self.is(token, b"SET")
                    && !rest.iter().any(parts)
                    && rest.iter().all(|&byte| is_same_in_charsets(byte))
            }
        };
        if !alike || self.out.passing {
            self.pin(PinCause::Unknown);
        }
        self.before = Some(self.out);
        self.ended = false;
        self.stage = Stage::First;
        self.last = [NO_TOKEN; 3];
        self.depth = 0;
        self.calls = true;
        self.accounts = false;
        self.with = 0;
        self.opened = Opened::Nothing;
        self.point = None;
        self.json_tables = 0;
        self.current = Verb::Empty;
        self.marks = Marks::NONE;
        self.shows_conditions = false;
        self.tables = Tables::default();
    }

    fn finish(mut self) -> (Statement, bool) {
        if !self.ended {
            self.end_statement();
        }
        let versioned = self.lexer.is_versioned();
        if self.lexer.miscut() || self.cut_in_comment {
            self.pin(PinCause::Unknown);
            let unknown = Statement {
                pin: self.out.pin,
                causes: self.out.causes,
                marks: Marks::LOCAL_FILE.when(self.out.marks.contains(Marks::LOCAL_FILE)),
                ..Statement::UNKNOWN
            };
            return (unknown, versioned);
        }
        if self.lexer.unread() {
            return (self.without_last(), versioned);
        }
        (self.out, versioned)
    }

    /// The text without its last statement, which no server reads: a quote has no end in it.
    fn without_last(self) -> Statement {
        match self.before {
            Some(before) => before,
            None => Statement {
                verb: Verb::Other,
                ..Statement::EMPTY
            },
        }
    }

    // What is found.

    fn pin(&mut self, cause: PinCause) {
        self.out.pin.get_or_insert(cause);
        self.out.causes.insert(cause);
        // What runs is not in the text, so it may ask about earlier statements.
        if matches!(
            cause,
            PinCause::StoredCode | PinCause::TextExecute | PinCause::Unknown
        ) {
            self.out.insert_id = InsertId::MaySet;
            self.out.reads = Reads::ALL;
        }
    }

    fn read(&mut self, what: Reads) {
        let earlier = what.without(self.out.replaces);
        self.out.reads = self.out.reads.union(earlier);
        // On MariaDB a function that looks at no table leaves the conditions before it. What a
        // client is told of its session no code leaves.
        let own = match (self.behind_code, self.mode.server) {
            (false, _) => earlier,
            (true, Server::MariaDb(_)) if !self.behind_call => {
                earlier.of(Reads::DIAGNOSTICS.union(Reads::TRACKERS))
            }
            (true, _) => earlier.of(Reads::TRACKERS),
        };
        self.out.own_reads = self.out.own_reads.union(own);
    }

    pub(super) fn marked(&mut self, mark: Marks) {
        self.marks = self.marks.union(mark);
        self.out.marks = self.out.marks.union(mark);
    }

    // Looking at tokens.

    fn text(&self, token: Token) -> &'a [u8] {
        self.sql.get(token.start..token.end).unwrap_or_default()
    }

    /// True if the token is this keyword, given in upper case.
    fn is(&self, token: Token, keyword: &[u8]) -> bool {
        token.kind == Kind::Word && self.text(token).eq_ignore_ascii_case(keyword)
    }

    fn is_any(&self, token: Token, keywords: &[&[u8]]) -> bool {
        token.kind == Kind::Word
            && keywords
                .iter()
                .any(|keyword| self.text(token).eq_ignore_ascii_case(keyword))
    }

    // Words.

    fn word(&mut self, token: Token) {
        self.out.user_variables |= lists_user_variables(self.text(token));
        self.keyword(token);
        self.table_word(token);
        match self.stage {
            Stage::Body | Stage::Accounts | Stage::Rest | Stage::View | Stage::Routine => {}
            Stage::First => self.first_word(token),
            Stage::Assignment | Stage::Variable | Stage::Value | Stage::Off => {
                self.set_word(token);
            }
            Stage::Target | Stage::TargetName | Stage::Load => self.target_word(token),
            Stage::Ddl => self.object(token),
            Stage::Explain | Stage::With => self.inner_verb(token),
            _ => self.clause(token),
        }
    }

    /// Judges NOWAIT or `WAIT n`, `before` which this token stands. MariaDB runs the statement as
    /// if behind `SET STATEMENT lock_wait_timeout = n, innodb_lock_wait_timeout = n FOR`, and
    /// reports these values (seen on 10.11). MySQL sets no variable.
    fn waits_for_locks(&mut self, before: Token) {
        let locks = self.is_any(before, &[b"UPDATE", b"MODE"]);
        let waits = locks || matches!(self.current, Verb::Ddl | Verb::Lock | Verb::Admin);
        if self.mode.server.is_mysql() || !waits {
            return;
        }
        if self.current == Verb::Set {
            self.pin(PinCause::SpecialVariable);
        }
        self.passes();
    }

    /// Takes reports of variables for the statement at hand alone. With several in one text, it
    /// cannot be told which report is whose.
    fn passes(&mut self) {
        if self.out.multi {
            self.pin(PinCause::Unknown);
        }
        self.out.passing = true;
    }

    /// Words that mean something wherever they stand; most of them tell where a query takes its
    /// rows from, where they go, and which of them.
    fn keyword(&mut self, token: Token) {
        let [before, earlier, _] = self.last;
        let mark = match token.end - token.start {
            3 if self.is(token, b"SET") && self.stage != Stage::First => Marks::SET_INSIDE,
            3 if self.is(token, b"FOR")
                && self.is(before, b"VALUE")
                && self.is(earlier, b"NEXT") =>
            {
                return self.pin(PinCause::Sequence);
            }
            4 if self.is(token, b"FROM") && self.depth == 0 => match self.names_several() {
                true => Marks::FROM.union(Marks::TABLES),
                false => Marks::FROM,
            },
            4 if self.is_any(token, &[b"FROM", b"DUAL"]) => Marks::FROM_INSIDE,
            4 if self.is(token, b"JOIN") => Marks::TABLES,
            4 if self.is(token, b"INTO") => Marks::INTO,
            4 if self.is(token, b"WITH") && self.depth < u64::BITS => {
                self.with |= 1 << self.depth;
                return;
            }
            5 if self.depth == 0 && self.is(token, b"USING") => Marks::TABLES,
            5 if self.is(token, b"TABLE") && self.changes_rows() => Marks::SELECT_INSIDE,
            5 if self.is(token, b"LIMIT") => Marks::LIMIT,
            5 if self.is_any(token, &[b"FETCH", b"UNION"]) => Marks::CUTS,
            6 if self.is(token, b"VALUES") && self.begins_query() => Marks::SELECT_INSIDE,
            6 if self.is(token, b"SELECT") => {
                self.calls = true;
                match self.stage {
                    Stage::First => Marks::COUNTED,
                    _ => Marks::SELECT_INSIDE,
                }
            }
            6 if self.is_any(token, &[b"OFFSET", b"EXCEPT"]) => Marks::CUTS,
            6 if self.is(token, b"NOWAIT") => return self.waits_for_locks(before),
            7 | 8
                if self.current == Verb::Set && self.is_any(token, &[b"DEFAULT", b"PASSWORD"]) =>
            {
                Marks::CHECKED_LATE
            }
            9 if self.is_any(token, &[b"INTERSECT", b"PROCEDURE"]) => Marks::CUTS,
            // MySQL has it in JSON_VALUE() alone.
            9 if self.depth == 0 && self.changes_rows() && self.is(token, b"RETURNING") => {
                Marks::RETURNING
            }
            // An item of GET DIAGNOSTICS; elsewhere it is a function.
            9 if self.current == Verb::Diagnostics && self.is(token, b"ROW_COUNT") => {
                return self.read(Reads::ROW_COUNT);
            }
            // MySQL's CREATE TABLE ... START TRANSACTION: until it ends the server refuses every
            // question (error 3977).
            11 if self.current == Verb::Ddl
                && self.is(token, b"TRANSACTION")
                && self.is(before, b"START") =>
            {
                return self.pin(PinCause::Unknown);
            }
            13 if self.is(token, b"STRAIGHT_JOIN") => Marks::TABLES,
            19 if self.is(token, b"SQL_CALC_FOUND_ROWS") => Marks::CUTS.union(Marks::CALCULATED),
            _ => return,
        };
        self.marked(mark);
    }

    /// True if the FROM at hand is that of DELETE t FROM t: it has names in front of it.
    fn names_several(&self) -> bool {
        const BEFORE: [&[u8]; 4] = [b"DELETE", b"LOW_PRIORITY", b"QUICK", b"IGNORE"];
        self.current == Verb::Delete && !self.is_any(self.last[0], &BEFORE)
    }

    /// True if VALUES begins a query within the statement. Behind a function's name in an INSERT it
    /// is VALUES(column), as in `IF(VALUES(a) > a, ...)`.
    fn begins_query(&self) -> bool {
        const BEFORE: [&[u8]; 7] = [
            b"ALL",
            b"ANY",
            b"EXISTS",
            b"IN",
            b"RETURNING",
            b"SELECT",
            b"SOME",
        ];
        let [before, earlier, _] = self.last;
        let inserts = matches!(self.current, Verb::Insert | Verb::Replace);
        let names = matches!(earlier.kind, Kind::Word | Kind::Name);
        let calls = inserts && names && !self.is_any(earlier, &BEFORE);
        let in_parentheses = before.kind == Kind::Punct(b'(') && self.stage != Stage::First;
        self.removes_rows() || in_parentheses && !calls
    }

    fn changes_rows(&self) -> bool {
        matches!(self.current, Verb::Insert | Verb::Replace) || self.removes_rows()
    }

    fn removes_rows(&self) -> bool {
        matches!(self.current, Verb::Update | Verb::Delete)
    }

    fn name(&mut self, token: Token) {
        self.out.user_variables |= lists_user_variables(self.text(token));
        self.table_name(token);
        let is = |name: &[u8]| self.text(token).eq_ignore_ascii_case(name);
        let dotted = self.last[0].kind == Kind::Punct(b'.');
        // `s.nextval` is how the Oracle mode writes NEXT VALUE FOR s.
        if dotted && is(b"NEXTVAL") {
            self.pin(PinCause::Sequence);
        }
        match self.stage {
            Stage::Target | Stage::TargetName => self.target_word(token),
            Stage::Assignment | Stage::Variable | Stage::Value | Stage::Off => {
                self.set_word(token);
            }
            Stage::SetStatement => self.passing_variable(token),
            Stage::Begin => self.pin(PinCause::StoredCode),
            Stage::First => {
                self.pin(PinCause::Unknown);
                self.begin(Verb::Other, Stage::Body);
            }
            _ => {}
        }
    }

    fn user_variable(&mut self, token: Token) {
        let before = self.last[0];
        let touches = before.end == token.start;
        let quoted_account = matches!(before.kind, Kind::String | Kind::Name);
        let account = touches && (quoted_account || (self.accounts && before.kind == Kind::Word));
        if !account {
            self.out.user_variables = true;
        }
        self.value(token);
    }

    fn system_variable(&mut self, token: Token) {
        if self.stage == Stage::Assignment {
            self.stage = Stage::Variable;
            self.variable = Some(token);
            return;
        }
        let read = match set::split(self.text(token)) {
            Some((Scope::Global, _)) => Some(Reads::NONE),
            Some((Scope::Session, name)) => set::reads(name),
            None => None,
        };
        match read {
            Some(read) => self.read(read),
            None => self.pin(PinCause::Unknown),
        }
        self.value(token);
    }
}
