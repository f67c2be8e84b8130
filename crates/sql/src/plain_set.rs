//! SET of session variables to literals, read so narrowly that its effect is known.
//!
//! The problem: drivers and frameworks set variables to values that their sessions have already,
//! again and again. Whether such a SET does nothing is a question of what it sets to what. The
//! mechanism: [`assignments`] takes a SET of listed variables to literals apart, and says of each
//! value how the server would report it.
//!
//! Listed are variables that every client may set, that do nothing but to have their value, and
//! whose literal the servers report as it is written (MariaDB 10.11, MySQL 9.7). Values that a
//! server warns of are left out: on MySQL some of `sql_mode` and most character sets.
//!
//! Invariant: a SET that is not understood to its end is not taken apart.

use crate::lex::{Kind, LexMode, Lexer, Server, Token};

/// Texts that are longer are not looked at.
const LEN_MAX: usize = 512;

/// Target of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assignment<'a> {
    /// A variable by its name, and its value as it is reported.
    Variable(&'static str, &'a [u8]),
    /// SET SESSION TRANSACTION ISOLATION LEVEL, and the level as it is reported: of
    /// `transaction_isolation` or `tx_isolation`, whichever the server has.
    Level(&'static [u8]),
    /// SET NAMES with a collation.
    Names(&'a [u8], &'a [u8]),
}

/// Form of a variable's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// 1, ON or TRUE; reported as ON.
    Switch,
    /// Digits.
    Number,
    /// A plain text in single quotes.
    Text,
    /// A variable of a transaction: without a scope it may be of the next one alone.
    OfTransaction,
}

const VARIABLES: [(&str, Written); 14] = [
    ("autocommit", Written::Switch),
    ("foreign_key_checks", Written::Switch),
    ("group_concat_max_len", Written::Number),
    ("innodb_lock_wait_timeout", Written::Number),
    ("lock_wait_timeout", Written::Number),
    ("net_read_timeout", Written::Number),
    ("net_write_timeout", Written::Number),
    ("sql_auto_is_null", Written::Switch),
    ("sql_mode", Written::Text),
    ("time_zone", Written::Text),
    ("transaction_isolation", Written::OfTransaction),
    ("tx_isolation", Written::OfTransaction),
    ("unique_checks", Written::Switch),
    ("wait_timeout", Written::Number),
];

/// Levels of isolation, as words and as they are reported.
const LEVELS: [(&[&[u8]], &[u8]); 4] = [
    (&[b"REPEATABLE", b"READ"], b"REPEATABLE-READ"),
    (&[b"READ", b"COMMITTED"], b"READ-COMMITTED"),
    (&[b"READ", b"UNCOMMITTED"], b"READ-UNCOMMITTED"),
    (&[b"SERIALIZABLE"], b"SERIALIZABLE"),
];

/// Character sets whose names no server warns of.
const CHARSETS: [&[u8]; 2] = [b"utf8mb4", b"latin1"];

/// Modes that MySQL wants all together or not at all.
const WITH_STRICT: [&[u8]; 4] = [
    b"STRICT_TRANS_TABLES",
    b"NO_ZERO_IN_DATE",
    b"NO_ZERO_DATE",
    b"ERROR_FOR_DIVISION_BY_ZERO",
];
/// Modes of which MySQL says nothing.
const QUIET_MODES: [&[u8]; 6] = [
    b"ANSI_QUOTES",
    b"IGNORE_SPACE",
    b"NO_BACKSLASH_ESCAPES",
    b"NO_ENGINE_SUBSTITUTION",
    b"ONLY_FULL_GROUP_BY",
    b"PIPES_AS_CONCAT",
];

/// Takes a SET of listed variables to literals apart. `None` where it is anything else, or a server
/// may answer it with more than OK.
#[must_use]
pub fn assignments(sql: &[u8], mode: LexMode) -> Option<Vec<Assignment<'_>>> {
    let starts = sql.get(..4)?;
    if sql.len() > LEN_MAX || !starts[..3].eq_ignore_ascii_case(b"SET") {
        return None;
    }
    let mut lexer = Lexer::new(sql, mode);
    let tokens: Vec<Token> = lexer.by_ref().collect();
    if lexer.doubtful() || lexer.has_executable() {
        return None;
    }
    let text = Set { sql, mode };
    let (first, list) = tokens.split_first()?;
    if !text.is(*first, b"SET") {
        return None;
    }
    if let Some(level) = text.level(list) {
        return Some(vec![level]);
    }
    list.split(|token| token.kind == Kind::Punct(b','))
        .map(|tokens| text.assignment(tokens))
        .collect()
}

struct Set<'a> {
    sql: &'a [u8],
    mode: LexMode,
}

impl<'a> Set<'a> {
    fn text(&self, token: Token) -> &'a [u8] {
        &self.sql[token.start..token.end]
    }

    fn is(&self, token: Token, word: &[u8]) -> bool {
        token.kind == Kind::Word && self.text(token).eq_ignore_ascii_case(word)
    }

    fn is_session(&self, token: Token) -> bool {
        self.is(token, b"SESSION") || self.is(token, b"LOCAL")
    }

    /// SET SESSION TRANSACTION ISOLATION LEVEL.
    fn level(&self, list: &[Token]) -> Option<Assignment<'a>> {
        const BEFORE: [&[u8]; 3] = [b"TRANSACTION", b"ISOLATION", b"LEVEL"];
        let (scope, rest) = list.split_first()?;
        let level = rest.get(BEFORE.len()..)?;
        let has = |tokens: &[Token], words: &[&[u8]]| {
            tokens.len() == words.len()
                && tokens
                    .iter()
                    .zip(words)
                    .all(|(&token, word)| self.is(token, word))
        };
        if !self.is_session(*scope) || !has(&rest[..BEFORE.len()], &BEFORE) {
            return None;
        }
        let found = LEVELS.iter().find(|(words, _)| has(level, words))?;
        Some(Assignment::Level(found.1))
    }

    fn assignment(&self, tokens: &[Token]) -> Option<Assignment<'a>> {
        let (mut first, mut rest) = tokens.split_first()?;
        if let [charset, collate, collation] = rest
            && self.is(*first, b"NAMES")
            && self.is(*collate, b"COLLATE")
        {
            let charset = self.name(*charset)?;
            let known = CHARSETS
                .iter()
                .any(|known| known.eq_ignore_ascii_case(charset));
            return known.then_some(Assignment::Names(charset, self.name(*collation)?));
        }
        let mut scoped = self.is_session(*first);
        if scoped {
            (first, rest) = rest.split_first()?;
        }
        let name = match first.kind {
            Kind::Word => self.text(*first),
            Kind::SystemVariable if !scoped => {
                let text = &self.text(*first)[2..];
                let at = text.iter().position(|&byte| byte == b'.');
                scoped = at.is_some();
                let scope = &text[..at.unwrap_or(0)];
                let session: [&[u8]; 3] = [b"", b"SESSION", b"LOCAL"];
                if !session.iter().any(|word| word.eq_ignore_ascii_case(scope)) {
                    return None;
                }
                &text[at.map_or(0, |at| at + 1)..]
            }
            _ => return None,
        };
        let [equals, value] = rest else { return None };
        if !matches!(equals.kind, Kind::Punct(b'=') | Kind::Assign) {
            return None;
        }
        let listed = |(listed, _): &&(&str, Written)| listed.as_bytes().eq_ignore_ascii_case(name);
        let &(name, written) = VARIABLES.iter().find(listed)?;
        let value = match written {
            Written::Switch => self.switch(*value)?,
            Written::Number => self.number(*value)?,
            Written::Text => self.plain(*value)?,
            Written::OfTransaction if scoped && name == isolation_of(self.mode.server) => {
                self.plain(*value)?
            }
            Written::OfTransaction => return None,
        };
        let may_warn = match name {
            "sql_mode" => self.mode.server.is_mysql() && !is_quiet(value),
            // By a name it is looked up in tables.
            "time_zone" => value != b"SYSTEM" && !matches!(value, [b'+' | b'-', ..]),
            _ => false,
        };
        (!may_warn).then_some(Assignment::Variable(name, value))
    }

    fn switch(&self, value: Token) -> Option<&'static [u8]> {
        let text = self.text(value);
        let is_one_of = |words: &[&[u8]]| words.iter().any(|w| w.eq_ignore_ascii_case(text));
        let written = matches!(value.kind, Kind::Word | Kind::Number);
        match written {
            true if is_one_of(&[b"1", b"ON", b"TRUE"]) => Some(b"ON"),
            true if is_one_of(&[b"0", b"OFF", b"FALSE"]) => Some(b"OFF"),
            _ => None,
        }
    }

    fn number(&self, value: Token) -> Option<&'a [u8]> {
        let text = self.text(value);
        let digits = value.kind == Kind::Number && text.iter().all(u8::is_ascii_digit);
        digits.then_some(text)
    }

    /// A text that is the same under every `sql_mode` and in every character set.
    fn plain(&self, value: Token) -> Option<&'a [u8]> {
        let inner = self.text(value).strip_prefix(b"'")?.strip_suffix(b"'")?;
        let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_,-+:".contains(b);
        (value.kind == Kind::String && inner.iter().all(plain)).then_some(inner)
    }

    /// A word, or a plain text.
    fn name(&self, token: Token) -> Option<&'a [u8]> {
        match token.kind {
            Kind::Word => Some(self.text(token)),
            _ => self.plain(token),
        }
    }
}

/// The name of the isolation level, where a server has two the one that it does not warn of (1287):
/// MySQL 5.7.20 and MariaDB 11.1.1 have taken another, by their manuals.
fn isolation_of(server: Server) -> &'static str {
    match server {
        Server::MySql(..50_720) | Server::MariaDb(..110_101) => "tx_isolation",
        _ => "transaction_isolation",
    }
}

/// True if MySQL warns of nothing in this `sql_mode`.
fn is_quiet(modes: &[u8]) -> bool {
    let words = || modes.split(|&b| b == b',').filter(|word| !word.is_empty());
    let strict = WITH_STRICT.map(|mode| words().any(|word| word == mode));
    let together = strict.iter().all(|&has| has == strict[0]);
    let known = |word: &[u8]| QUIET_MODES.contains(&word) || WITH_STRICT.contains(&word);
    together && words().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes() -> [LexMode; 2] {
        [Server::MariaDb(101_119), Server::MySql(90_704)].map(|server| LexMode {
            server,
            ..LexMode::default()
        })
    }

    fn variables(sql: &str, mode: LexMode) -> Option<String> {
        let all = assignments(sql.as_bytes(), mode)?;
        let said = all.iter().map(|assignment| match assignment {
            Assignment::Variable(name, value) => {
                format!("{name}={}", String::from_utf8_lossy(value))
            }
            Assignment::Level(level) => format!("level={}", String::from_utf8_lossy(level)),
            Assignment::Names(charset, collation) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                format!("names={}/{}", text(charset), text(collation))
            }
        });
        Some(said.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn literals_are_known_as_they_are_reported() {
        for (sql, said) in [
            ("SET autocommit=1", "autocommit=ON"),
            ("set session AUTOCOMMIT = off", "autocommit=OFF"),
            ("SET @@session.autocommit := TRUE", "autocommit=ON"),
            ("SET @@autocommit=0 /* x */", "autocommit=OFF"),
            ("SET LOCAL wait_timeout=100", "wait_timeout=100"),
            ("SET sql_mode=''", "sql_mode="),
            (
                "SET foreign_key_checks=0, unique_checks=0",
                "foreign_key_checks=OFF unique_checks=OFF",
            ),
            ("SET time_zone='+00:00'", "time_zone=+00:00"),
            ("SET time_zone='SYSTEM'", "time_zone=SYSTEM"),
            (
                "SET SESSION TRANSACTION ISOLATION LEVEL read committed",
                "level=READ-COMMITTED",
            ),
            (
                "SET NAMES 'utf8mb4' COLLATE utf8mb4_bin, autocommit=1",
                "names=utf8mb4/utf8mb4_bin autocommit=ON",
            ),
        ] {
            for mode in modes() {
                assert_eq!(variables(sql, mode).as_deref(), Some(said), "{sql}");
            }
        }
    }

    #[test]
    fn all_else_is_left_to_the_server() {
        for sql in [
            "SET",
            "SET ",
            "SETautocommit=1",
            "SET autocommit=1;",
            "SET autocommit=1,",
            "SET autocommit=2",
            "SET autocommit='ON'",
            "SET autocommit=DEFAULT",
            "SET autocommit=1+0",
            "SET autocommit",
            "SET GLOBAL autocommit=1",
            "SET @@global.autocommit=1",
            "SET PERSIST autocommit=1",
            "SET @@other.autocommit=1",
            "SET SESSION @@autocommit=1",
            "SET `autocommit`=1",
            "SET @autocommit=1",
            "SET autocommit=1, @a=1",
            "SET autocommit=/*!1*/",
            "SET wait_timeout=-1",
            "SET wait_timeout=1.0",
            "SET wait_timeout=0x10",
            "SET max_allowed_packet=1024",
            "SET transaction_isolation='SERIALIZABLE'",
            "SET @@transaction_isolation='SERIALIZABLE'",
            "SET SESSION autocommit=1, tx_isolation='SERIALIZABLE'",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE",
            "SET SESSION TRANSACTION READ WRITE",
            "SET STATEMENT autocommit=1 FOR SELECT 1",
            "SET NAMES utf8mb4",
            "SET NAMES utf8 COLLATE utf8_bin",
            "SET NAMES DEFAULT",
            "SET time_zone='Europe/Berlin'",
            "SET time_zone='CET'",
            "SET sql_mode='a\\'b'",
            "SET sql_mode=\"\"",
            "SET sql_mode=CONCAT(@@sql_mode,'')",
            "SET sql_mode='' ''",
            "SET sql_mode=_latin1''",
            "SELECT 1",
        ] {
            for mode in modes() {
                assert_eq!(variables(sql, mode), None, "{sql}");
            }
        }
        let long = format!("SET autocommit=1{}", " ".repeat(LEN_MAX));
        assert_eq!(variables(&long, modes()[0]), None);
        assert!(variables(&long[..LEN_MAX], modes()[0]).is_some());
    }

    #[test]
    fn the_isolation_level_has_the_name_that_its_server_does_not_warn_of() {
        for (server, old) in [
            (Server::MySql(50_719), true),
            (Server::MySql(50_720), false),
            (Server::MySql(90_704), false),
            (Server::MariaDb(101_119), true),
            (Server::MariaDb(110_100), true),
            (Server::MariaDb(110_101), false),
        ] {
            let mode = LexMode {
                server,
                ..LexMode::default()
            };
            for (name, spared) in [("tx_isolation", old), ("transaction_isolation", !old)] {
                let expected = spared.then(|| format!("{name}=SERIALIZABLE"));
                for sql in ["SET SESSION ", "SET @@session."] {
                    let sql = format!("{sql}{name}='SERIALIZABLE'");
                    assert_eq!(variables(&sql, mode), expected, "{sql} {server:?}");
                }
            }
        }
    }

    #[test]
    fn modes_that_mysql_warns_of_go_there() {
        let [mariadb, mysql] = modes();
        for (modes, quiet) in [
            ("", true),
            ("ANSI_QUOTES,IGNORE_SPACE", true),
            ("STRICT_TRANS_TABLES", false),
            ("NO_ZERO_DATE", false),
            ("PAD_CHAR_TO_FULL_LENGTH", false),
            (
                "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
                 ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
                true,
            ),
        ] {
            let sql = format!("SET sql_mode='{modes}'");
            assert!(variables(&sql, mariadb).is_some(), "{modes}");
            assert_eq!(variables(&sql, mysql).is_some(), quiet, "{modes}");
        }
    }
}
