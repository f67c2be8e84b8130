//! Translation of a text in MySQL's dialect to what the console does.
//!
//! The text is cut by the servers' own rules ([`sql::lex`]) and written again for SQLite: strings
//! in single quotes without backslashes, `@@NAME` as its value, no comments. What begins with SHOW,
//! DESCRIBE or a command's name is one of the forms of this file; SET of a session's variable does
//! nothing, because clients begin with it; everything else is left to the engine.

mod actions;

pub use actions::{Action, Victims};

use crate::answer::Wrong;
use crate::{Column, DEFAULT_SCHEMA, Table, Type};
use actions::DEFAULT;
use sql::lex::{Kind, LexMode, Lexer, Token};
use wire::errors;

/// Variables that clients and drivers set as they begin, besides those that have a value here.
const SESSION_VARIABLES: [&str; 18] = [
    "big_tables",
    "character_set_filesystem",
    "foreign_key_checks",
    "group_concat_max_len",
    "innodb_lock_wait_timeout",
    "lc_messages",
    "lc_time_names",
    "lock_wait_timeout",
    "max_execution_time",
    "max_statement_time",
    "profiling",
    "session_track_schema",
    "sql_log_bin",
    "sql_notes",
    "sql_quote_show_create",
    "sql_safe_updates",
    "sql_select_limit",
    "unique_checks",
];

/// Words behind SET that are no variables.
const SET_WORDS: [&str; 7] = [
    "character",
    "charset",
    "names",
    "password",
    "role",
    "statement",
    "transaction",
];

/// Times that `SHOW NAME LAST n MINUTES` knows.
pub const LAST_MINUTES: [u32; 3] = [1, 5, 60];

/// Prefix of a table's name in that of its figures of the last minutes, which has a column
/// `minutes`.
const RECENT: &str = "recent_";

/// Characters that stand in place of the rest of a text that SHOW cuts.
const CUT: &str = "..";

/// The commands, and what each does, for HELP.
pub(crate) const COMMANDS: &[(&str, &str)] = &[
    ("HELP", "this list"),
    (
        "SHOW NAME [LIKE|WHERE|ORDER BY|LIMIT]",
        "a table, as wide as a terminal",
    ),
    ("SHOW FULL NAME", "all of its columns, texts in full"),
    (
        "SHOW STATEMENTS|USERS LAST 1|5|60 MINUTES",
        "what has happened lately, and runs now",
    ),
    ("SELECT", "a query over the tables, in SQLite's SQL"),
    (
        "DESCRIBE NAME",
        "the columns of a table, and what they mean",
    ),
    (
        "KILL [CONNECTION] ID",
        "closes a client and ends its statement",
    ),
    ("KILL QUERY ID", "ends the statement of a client"),
    (
        "KILL [QUERY] USER 'NAME' | ADDRESS 'IP[/BITS]'",
        "the same, of all clients of an account, or from there",
    ),
    (
        "KILL IDLE TRANSACTIONS OLDER THAN S",
        "closes clients that left a transaction idle for S seconds",
    ),
    (
        "REJECT DIGEST 'D' [WITH 'MESSAGE'] [FOR S]",
        "refuses statements like that, for S seconds",
    ),
    (
        "LIMIT DIGEST 'D' TO N [FOR S]",
        "refuses those beyond N at once",
    ),
    ("ALLOW DIGEST 'D'", "takes that back; SHOW RULES has them"),
    (
        "SET USER 'NAME' LIMIT KEY = VALUE|DEFAULT",
        "changes a limit of a user, over reloads",
    ),
    (
        "PAUSE, RESUME",
        "statements of clients without a backend wait, and go on",
    ),
    (
        "RECONNECT",
        "replaces the connections to the server as they become free",
    ),
    (
        "SWITCH TO NAME",
        "has another of several servers written to, without an error for clients",
    ),
    (
        "EXPLAIN ROUTE STATEMENT",
        "says which of several servers would get a client's statement, and why",
    ),
    (
        "FENCED NAME, UNFENCED NAME",
        "vouches that a server that is down takes no writes, and takes that back",
    ),
    ("RELOAD", "reads settings and certificates again"),
    (
        "SET NAME = VALUE|DEFAULT",
        "changes a setting until the next reload",
    ),
    (
        "DRAIN",
        "no new clients; ends when the running work has ended",
    ),
    ("SHUTDOWN", "ends the pool at once"),
];

/// Request of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Rows: a text for the engine.
    Rows(String),
    /// All rows of a table, as they are.
    All(Table),
    /// A command.
    Act(Action),
    /// Another schema for the session.
    Use(&'static str),
    /// Nothing that the console has, and that clients send all the same.
    Nothing,
}

/// Names that the dialect needs to know.
pub(crate) struct Names<'a> {
    pub(crate) tables: &'a [Table],
    /// The session's schema.
    pub(crate) schema: &'static str,
    pub(crate) variables: &'a [(String, String)],
    /// Settings that SET may name.
    pub(crate) settings: &'a dyn Fn(&str) -> bool,
}

impl Names<'_> {
    /// The schema of this name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn schema(&self, name: &str) -> Result<&'static str, Wrong> {
        let mut known: Vec<&'static str> = self.tables.iter().map(|table| table.schema).collect();
        known.sort_unstable();
        known.dedup();
        let found = known.iter().find(|known| known.eq_ignore_ascii_case(name));
        found.copied().ok_or_else(|| Wrong {
            code: errors::BAD_DB,
            words: format!("Unknown database '{name}'; there are {}", known.join(", ")),
        })
    }
}

/// Reads a text.
pub(crate) fn read(text: &[u8], names: &Names<'_>) -> Result<Asked, Wrong> {
    let text = std::str::from_utf8(text)
        .map_err(|_| Wrong::syntax("expected a statement in UTF-8, got other bytes"))?;
    let mut lexer = Lexer::new(text.as_bytes(), LexMode::default());
    let mut tokens: Vec<Token> = lexer.by_ref().collect();
    if lexer.unread() {
        return Err(Wrong::syntax("a quote or a comment has no end"));
    }
    while tokens
        .last()
        .is_some_and(|token| token.kind == Kind::Semicolon)
    {
        tokens.pop();
    }
    if tokens.iter().any(|token| token.kind == Kind::Semicolon) {
        return Err(Wrong::syntax(
            "expected one statement, got several; send them one by one",
        ));
    }
    let reader = Reader {
        text,
        tokens: &tokens,
        names,
    };
    reader.read()
}

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    names: &'a Names<'a>,
}

impl<'a> Reader<'a> {
    fn text_of(&self, at: usize) -> &'a str {
        self.tokens
            .get(at)
            .map_or("", |token| &self.text[token.start..token.end])
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.text_of(at).eq_ignore_ascii_case(word)
    }

    fn any(&self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(at, word))
    }

    /// Checks that the text ends in front of this token.
    fn ends(&self, at: usize) -> Result<(), Wrong> {
        match self.tokens.get(at) {
            None => Ok(()),
            Some(token) => Err(Wrong::syntax(format!(
                "expected the end of the statement, got '{}'",
                &self.text[token.start..]
            ))),
        }
    }

    fn read(&self) -> Result<Asked, Wrong> {
        let command = |action: Action| self.ends(1).map(|()| Asked::Act(action));
        match self.text_of(0).to_ascii_uppercase().as_str() {
            "" => Err(Wrong {
                code: errors::EMPTY_QUERY,
                words: "Query was empty".into(),
            }),
            "SHOW" => self.show(),
            "HELP" => self.ends(1).and_then(|()| self.show_table("help", 1, true)),
            "DESCRIBE" | "DESC" => self.describe(1),
            "EXPLAIN" if self.is(1, "ROUTE") && self.tokens.len() > 2 => Ok(Asked::Act(
                Action::Route(self.text[self.tokens[2].start..].into()),
            )),
            "EXPLAIN" if self.tokens.len() == 2 || self.is(2, ".") => self.describe(1),
            "USE" => self.ends(2).and_then(|()| {
                let schema = self.names.schema(self.text_of(1).trim_matches('`'))?;
                Ok(Asked::Use(schema))
            }),
            "BEGIN" | "START" | "COMMIT" | "ROLLBACK" => Ok(Asked::Nothing),
            "SET" if self.is(1, "USER") => self.user_limit(),
            "SET" => self.set(),
            "PAUSE" => command(Action::Pause),
            "RESUME" => command(Action::Resume),
            "DRAIN" => command(Action::Drain),
            "SHUTDOWN" => command(Action::Shutdown),
            "RECONNECT" => command(Action::Reconnect),
            "RELOAD" => command(Action::Reload),
            "KILL" => self.kill(),
            "SWITCH" if self.is(1, "TO") => self.of_server("SWITCH TO", 2, Action::SwitchTo),
            "FENCED" => self.of_server("FENCED", 1, Action::Fenced),
            "UNFENCED" => self.of_server("UNFENCED", 1, Action::Unfenced),
            "REJECT" | "LIMIT" | "ALLOW" => self.rule(),
            _ => self.rest(0).map(Asked::Rows),
        }
    }

    /// A command with the name of a server behind it, which may be several tokens.
    fn of_server(
        &self,
        command: &str,
        at: usize,
        action: fn(String) -> Action,
    ) -> Result<Asked, Wrong> {
        let name = match (self.tokens.get(at), self.tokens.last()) {
            (Some(one), _) if one.kind == Kind::String => {
                self.ends(at + 1)?;
                unquoted(&self.text[one.start..one.end])
            }
            (Some(first), Some(last)) => self.text[first.start..last.end].to_owned(),
            _ => {
                let why = "expected the name of a server (SHOW SERVERS)";
                return Err(Wrong::syntax(format!("{command}: {why}")));
            }
        };
        Ok(Asked::Act(action(name)))
    }

    /// SET of a setting of the program; everything else is a variable of the client's session,
    /// which the console does not have.
    fn set(&self) -> Result<Asked, Wrong> {
        let (is_global, is_session) = (self.is(1, "GLOBAL"), self.any(1, &["SESSION", "LOCAL"]));
        let mut at = 1 + usize::from(is_global || is_session);
        let mut written = self.text_of(at).to_ascii_lowercase();
        // A name with a dot is several tokens.
        while self.is(at + 1, ".") {
            at += 2;
            written = format!("{written}.{}", self.text_of(at).to_ascii_lowercase());
        }
        let of_user = written.starts_with('@') && !written.starts_with("@@");
        let name = written.trim_start_matches('@');
        let of_global = name.strip_prefix("global.");
        let of_session = ["session.", "local."]
            .iter()
            .find_map(|scope| name.strip_prefix(scope));
        // `@@NAME` is of the session too.
        let is_session =
            is_session || of_session.is_some() || written.starts_with("@@") && of_global.is_none();
        let name = of_session.or(of_global).unwrap_or(name);
        if !of_user && (self.names.settings)(name) {
            return self.set_setting(name, at + 1, is_session && !is_global);
        }
        match of_user || !is_global && self.is_of_sessions(name) {
            true => Ok(Asked::Nothing),
            false => Err(Wrong {
                code: errors::UNKNOWN_VARIABLE,
                words: format!("Unknown system variable '{name}'; see SHOW CONFIG"),
            }),
        }
    }

    /// SET of a setting, with what assigns and the value from this token on.
    fn set_setting(&self, name: &str, at: usize, is_session: bool) -> Result<Asked, Wrong> {
        if is_session {
            return Err(Wrong {
                code: errors::GLOBAL_VARIABLE,
                words: format!(
                    "'{name}': settings are the whole pool's, not a session's: write SET {name} = \
                     VALUE"
                ),
            });
        }
        let (value, end) = self.assigned(name, at)?;
        self.ends(end)?;
        Ok(Asked::Act(Action::Set {
            name: name.to_owned(),
            value,
        }))
    }

    /// Value that SET gives a setting, with `=` at this token, and the token behind it.
    fn assigned(&self, name: &str, at: usize) -> Result<(Option<String>, usize), Wrong> {
        if !self.any(at, &["=", ":="]) {
            return Err(Wrong::syntax(format!("SET {name}: expected = and a value")));
        }
        match self.tokens.get(at + 1) {
            Some(token) if token.kind == Kind::String => {
                Ok((Some(unquoted(&self.text[token.start..token.end])), at + 2))
            }
            Some(token) => {
                // Several words, or a sign and a number, are one value; one SET is of one setting.
                let rest = &self.tokens[at + 1..];
                let is_comma = |t: &Token| &self.text[t.start..t.end] == ",";
                let end = rest.iter().position(is_comma).unwrap_or(rest.len());
                let last = rest[..end].last().unwrap_or(token);
                let value = &self.text[token.start..last.end];
                let value = (!value.eq_ignore_ascii_case(DEFAULT)).then(|| value.to_owned());
                Ok((value, at + 1 + end))
            }
            None => Err(Wrong::syntax(format!("SET {name}: expected a value"))),
        }
    }

    /// True if SET names what a session of a server has, so that a client may begin with it: a
    /// mistyped setting must not be taken for one.
    fn is_of_sessions(&self, name: &str) -> bool {
        let mut known = self.names.variables.iter();
        known.any(|(known, _)| known == name)
            || SET_WORDS.contains(&name)
            || SESSION_VARIABLES.contains(&name)
    }

    /// The columns of a table, which may stand behind its schema or in front of it, and of which a
    /// pattern may choose some.
    fn describe(&self, at: usize) -> Result<Asked, Wrong> {
        let name_at = |at: usize| self.text_of(at).trim_matches('`');
        let (mut schema, name, mut next) = match self.is(at + 1, ".") {
            true => (Some(name_at(at)), name_at(at + 2), at + 3),
            false => (None, name_at(at), at + 1),
        };
        if self.any(next, &["FROM", "IN"]) {
            (schema, next) = (Some(name_at(next + 1)), next + 2);
        }
        let known = self.names.tables.iter().rev();
        let mut known = known.filter(|table| {
            schema.is_none_or(|schema| table.schema.eq_ignore_ascii_case(schema))
                && table.name.eq_ignore_ascii_case(name)
        });
        let Some(table) = known.next() else {
            return Err(self.unknown(name));
        };
        let pattern = match self.is(next, "LIKE") {
            true => {
                self.ends(next + 2)?;
                format!("AND name LIKE {} ESCAPE '\\' ", self.pattern(next + 1)?)
            }
            false => self.ends(next).map(|()| String::new())?,
        };
        Ok(Asked::Rows(format!(
            "SELECT name AS \"Field\", type AS \"Type\", help AS \"Comment\" \
             FROM {DEFAULT_SCHEMA}.columns \
             WHERE \"table\" = '{}' AND \"schema\" = '{}' {pattern}ORDER BY position",
            table.name, table.schema
        )))
    }

    /// The pattern behind LIKE, for SQLite.
    fn pattern(&self, at: usize) -> Result<String, Wrong> {
        match self.tokens.get(at) {
            Some(token) if token.kind == Kind::String => {
                Ok(quoted(&unquoted(&self.text[token.start..token.end])))
            }
            _ => Err(Wrong::syntax("LIKE: expected a text in quotes")),
        }
    }

    fn unknown(&self, name: &str) -> Wrong {
        let own = self
            .names
            .tables
            .iter()
            .filter(|table| table.schema == DEFAULT_SCHEMA);
        let names: Vec<String> = own.map(|table| table.name.to_ascii_uppercase()).collect();
        Wrong {
            code: errors::NO_SUCH_TABLE,
            words: format!("There is no '{name}' here; there are {}", names.join(", ")),
        }
    }

    fn show(&self) -> Result<Asked, Wrong> {
        let is_full = self.is(1, "FULL");
        let at = 1 + usize::from(self.any(1, &["GLOBAL", "SESSION", "LOCAL", "FULL", "EXTENDED"]));
        let pairs = |table: &str| {
            format!(
                "SELECT name AS \"Variable_name\", value AS \"Value\" \
                 FROM {DEFAULT_SCHEMA}.{table}"
            )
        };
        let (base, first, next) = match self.text_of(at).to_ascii_uppercase().as_str() {
            "DATABASES" | "SCHEMAS" => (
                format!("SELECT DISTINCT \"schema\" AS \"Database\" FROM {DEFAULT_SCHEMA}.tables"),
                "Database",
                at + 1,
            ),
            "TABLES" => {
                let (schema, next) = match self.any(at + 1, &["FROM", "IN"]) {
                    true => {
                        let named = self.text_of(at + 2).trim_matches('`');
                        (self.names.schema(named)?, at + 3)
                    }
                    false => (self.names.schema, at + 1),
                };
                let base = format!(
                    "SELECT name, substr(help, 1, instr(help || ' ', '. ')) AS help \
                     FROM {DEFAULT_SCHEMA}.tables WHERE \"schema\" = '{schema}'"
                );
                (base, "name", next)
            }
            "COLUMNS" | "FIELDS" if self.any(at + 1, &["FROM", "IN"]) => {
                return self.describe(at + 2);
            }
            "VARIABLES" => (pairs("variables"), "Variable_name", at + 1),
            "STATUS" => (pairs("status"), "Variable_name", at + 1),
            "WARNINGS" => {
                let base = "SELECT '' AS \"Level\", 0 AS \"Code\", '' AS \"Message\" WHERE 0";
                (base.to_owned(), "Level", self.tokens.len())
            }
            _ => return self.show_table(self.text_of(at), at + 1, is_full),
        };
        let rest = self.filter(first, next)?;
        Ok(Asked::Rows(format!("SELECT * FROM ({base}) {rest}")))
    }

    /// Rows of a table that is named, with what stands behind the name.
    fn show_table(&self, name: &str, next: usize, is_full: bool) -> Result<Asked, Wrong> {
        // SHOW PROCESSLIST is the one that servers have too.
        let schema = match name.eq_ignore_ascii_case("processlist") {
            true => "information_schema",
            false => DEFAULT_SCHEMA,
        };
        let known = |name: &str| {
            let mut all = self.names.tables.iter();
            all.find(|table| table.schema == schema && table.name.eq_ignore_ascii_case(name))
        };
        let Some(table) = known(name) else {
            return Err(self.unknown(name));
        };
        let lately = match self.is(next, "LAST") {
            true => Some((known(&format!("{RECENT}{name}")), self.last(next + 1)?)),
            false => None,
        };
        let (table, from, next) = match lately {
            None => (table, format!("{schema}.\"{}\"", table.name), next),
            Some((Some(table), minutes)) => {
                let from = format!("{schema}.\"{}\" WHERE minutes = {minutes}", table.name);
                (table, format!("(SELECT * FROM {from})"), next + 3)
            }
            Some((None, _)) => {
                return Err(Wrong::syntax(format!(
                    "SHOW {name} has no LAST; SHOW STATEMENTS and SHOW USERS have"
                )));
            }
        };
        let is_all = is_full || !table.is_wide();
        if is_all && lately.is_none() && next >= self.tokens.len() {
            return Ok(Asked::All(*table));
        }
        let columns = match is_all {
            true => "*".to_owned(),
            false => {
                let columns = table.columns.iter().filter_map(shown_narrow);
                columns.collect::<Vec<String>>().join(", ")
            }
        };
        let first = table.columns.first().map_or("", |column| column.name);
        let rest = self.filter(first, next)?;
        Ok(Asked::Rows(format!("SELECT {columns} FROM {from} {rest}")))
    }

    /// Minutes behind LAST.
    fn last(&self, at: usize) -> Result<u32, Wrong> {
        let minutes = self.text_of(at).parse();
        let minutes = minutes
            .ok()
            .filter(|minutes| LAST_MINUTES.contains(minutes));
        match minutes.filter(|_| self.any(at + 1, &["MINUTE", "MINUTES"])) {
            Some(minutes) => Ok(minutes),
            None => Err(Wrong::syntax(format!(
                "LAST: expected 1 MINUTE, 5 MINUTES or 60 MINUTES, got '{} {}'",
                self.text_of(at),
                self.text_of(at + 1)
            ))),
        }
    }

    /// LIKE, WHERE, ORDER BY and LIMIT from this token on, for a table with this first column.
    fn filter(&self, first: &str, next: usize) -> Result<String, Wrong> {
        let rest = if self.is(next, "LIKE") {
            let pattern = self.pattern(next + 1)?;
            let rest = self.rest(next + 2)?;
            format!("WHERE \"{first}\" LIKE {pattern} ESCAPE '\\' {rest}")
        } else if next >= self.tokens.len() || self.any(next, &["WHERE", "ORDER", "LIMIT"]) {
            self.rest(next)?
        } else {
            return Err(Wrong::syntax(format!(
                "expected LIKE, WHERE, ORDER BY or LIMIT, got '{}'",
                self.text_of(next)
            )));
        };
        Ok(rest)
    }

    /// The tokens from this one on, for SQLite.
    fn rest(&self, from: usize) -> Result<String, Wrong> {
        let mut out = String::new();
        let mut end = None;
        for token in self.tokens.iter().skip(from) {
            if end.is_some_and(|end| end < token.start) {
                out.push(' ');
            }
            end = Some(token.end);
            let text = &self.text[token.start..token.end];
            match token.kind {
                Kind::String => out.push_str(&quoted(&unquoted(text))),
                Kind::SystemVariable => out.push_str(&quoted(self.value_of(text)?)),
                Kind::UserVariable => {
                    return Err(Wrong {
                        code: errors::NOT_SUPPORTED,
                        words: format!("the console has no user variables such as {text}"),
                    });
                }
                _ => out.push_str(text),
            }
        }
        Ok(out)
    }

    /// The value of `@@NAME` or `@@SCOPE.NAME`.
    fn value_of(&self, text: &str) -> Result<&'a str, Wrong> {
        let name = text.trim_start_matches('@').to_ascii_lowercase();
        let name = name.rsplit('.').next().unwrap_or(&name).trim_matches('`');
        let mut known = self.names.variables.iter();
        match known.find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, value)) => Ok(value),
            None => Err(Wrong {
                code: errors::UNKNOWN_VARIABLE,
                words: format!("Unknown system variable '{name}'"),
            }),
        }
    }
}

/// A column as SHOW has it: not at all, or cut to its width.
fn shown_narrow(column: &Column) -> Option<String> {
    let (name, width) = (column.name, column.width?);
    let cut = width.saturating_sub(CUT.len());
    Some(match column.of {
        Type::Text => format!(
            "CASE WHEN length(\"{name}\") > {width} THEN substr(\"{name}\", 1, {cut}) || '{CUT}' \
             ELSE \"{name}\" END AS \"{name}\""
        ),
        Type::Integer | Type::Real => format!("\"{name}\""),
    })
}

/// A text as a string of SQLite's.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Value of a MySQL string: without its quotes and backslashes. A charset's name in front of it
/// (`_utf8'x'`) is a token of its own.
fn unquoted(text: &str) -> String {
    let mut bytes = text.chars();
    let Some(quote) = bytes.next() else {
        return String::new();
    };
    let inner: Vec<char> = bytes.collect();
    let inner = &inner[..inner.len().saturating_sub(1)];
    let mut out = String::new();
    let mut at = 0;
    while at < inner.len() {
        let next = inner.get(at + 1).copied();
        match (inner[at], next) {
            ('\\', Some(next)) => {
                match next {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    '0' => out.push('\0'),
                    'b' => out.push('\u{8}'),
                    'Z' => out.push('\u{1a}'),
                    // These two stay escaped for LIKE.
                    '%' | '_' => out.extend(['\\', next]),
                    other => out.push(other),
                }
                at += 1;
            }
            (one, Some(next)) if one == quote && next == quote => {
                out.push(quote);
                at += 1;
            }
            (one, _) => out.push(one),
        }
        at += 1;
    }
    out
}
