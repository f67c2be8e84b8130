//! SET of what a client is told of its session, for a client whose server connection must go on
//! telling everything.
//!
//! The problem: a pool lives on the session trackers, all of them switched on, and a client may
//! narrow them (`SET session_track_system_variables = 'autocommit'`; some drivers do at every
//! login). The mechanism: [`retracked`] takes the SET apart, works out what the client wants to be
//! told, and writes a SET that does the rest and leaves the trackers as they are. The server still
//! sees the client's list of names, in front of all, because it refuses (or warns of) unknown ones;
//! `*` behind it makes it the whole list again before anything else is set. Of the switches, only
//! `session_track_schema` is taken apart: no driver sets the others (`docs/decisions/0031`), which
//! pin, and then all of them are set as the client says. The list stays `*` even so.
//!
//! Which of a SET's own changes are told is seen from its order: a new list forgets what was set
//! before it (tried on MariaDB 10.11 and MySQL 9.7).
//!
//! Invariant: a SET that is not understood to its end is not taken apart.

use crate::lex::{Kind, LexMode, Lexer, Server, Token};
use serde::{Deserialize, Serialize};
use wire::track::{Transactions, Wanted};

/// Settings of the trackers, as the client set them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tracked {
    /// `session_track_system_variables`, as typed.
    pub variables: Box<[u8]>,
    /// Reports that follow from all the settings.
    pub wanted: Wanted,
}

impl Tracked {
    /// True if every variable is told of, these as well.
    fn is_all(&self) -> bool {
        &*self.variables == b"*"
    }

    /// An expression that has the value of this variable, its type and its length, where the
    /// connection has all of them on. MariaDB gives a text the length of its value, and a switch
    /// inside of IF() one more; MySQL gives a variable its own length, also inside of IF().
    #[must_use]
    pub fn shown(&self, name: &str, server: Server) -> Option<String> {
        let name = name.to_ascii_lowercase();
        let mariadb = matches!(server, Server::MariaDb(_));
        let switch = |on: bool| {
            Some(match (mariadb, on) {
                (true, true) => format!("TRUNCATE(@@session.{name},0)"),
                (true, false) => format!("TRUNCATE(@@session.{name},-1)"),
                (false, true) => format!("IF(TRUE,TRUE,@@session.{name})"),
                (false, false) => format!("IF(TRUE,FALSE,@@session.{name})"),
            })
        };
        let text = |text: &str| {
            Some(match mariadb {
                true => format!("CONCAT(LEFT(@@session.{name},0),'{text}')"),
                false => format!("IF(TRUE,'{text}',@@session.{name})"),
            })
        };
        match &name[..] {
            "session_track_system_variables" if mariadb => {
                // It shows each name once, in order.
                let mut names = self.wanted.variables.clone();
                names.sort();
                names.dedup();
                text(std::str::from_utf8(&names.join(&b',')).ok()?)
            }
            "session_track_system_variables" => text(std::str::from_utf8(&self.variables).ok()?),
            "session_track_schema" => switch(self.wanted.schema),
            "session_track_state_change" => switch(self.wanted.state),
            "session_track_transaction_info" => text(match self.wanted.transactions {
                Transactions::Nothing | Transactions::Bounds => "OFF",
                Transactions::State => "STATE",
                Transactions::Characteristics => "CHARACTERISTICS",
            }),
            _ => None,
        }
    }
}

/// A SET that says what is tracked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retracked {
    /// The SET for the server.
    pub sql: Vec<u8>,
    /// Settings of the trackers from then on.
    pub then: Tracked,
    /// Reports of this SET itself.
    pub now: Wanted,
    /// True if its OK says that there is a change, and not which: one that its client was to be
    /// told of is forgotten.
    pub forgets: bool,
    /// True if it sets switches of the backend, which is its client's from now on.
    pub pins: bool,
}

const VARIABLES: &[u8] = b"session_track_system_variables";
const SCHEMA: &[u8] = b"session_track_schema";
/// The switches that are set on the backend, if any is.
pub const PINNING: [&[u8]; 2] = [
    b"session_track_state_change",
    b"session_track_transaction_info",
];
/// First words of assignments that set several variables, and which.
const NAMES: [&[u8]; 4] = [b"NAMES", b"CHARACTER", b"CHARSET", b"CHAR"];
const SET_BY_NAMES: [&[u8]; 4] = [
    b"character_set_client",
    b"character_set_connection",
    b"character_set_results",
    b"collation_connection",
];
/// Longest list that is kept.
const LIST_MAX: usize = 1024;

/// Takes a SET apart that says what is tracked; `None` where it does not, or not only in a way that
/// is understood. `global` is what the server's own settings are, `own` the client's; `pinned`: the
/// switches of its backend are its own.
#[must_use]
pub fn retracked(
    sql: &[u8],
    mode: LexMode,
    global: &Tracked,
    own: &Tracked,
    pinned: bool,
) -> Option<Retracked> {
    let mut lexer = Lexer::new(sql, mode);
    let mut tokens: Vec<Token> = lexer.by_ref().collect();
    if lexer.doubtful() || lexer.has_executable() {
        return None;
    }
    tokens.pop_if(|last| last.kind == Kind::Semicolon);
    let (first, list) = tokens.split_first()?;
    if !is(sql, *first, b"SET") || list.iter().any(|token| token.kind == Kind::Semicolon) {
        return None;
    }
    let mut settings = Settings {
        sql,
        global,
        own,
        pins: pinned,
    };
    let sets = |name: &[u8]| {
        let mut parts = (assignments(list).into_iter()).filter_map(|a| settings.parts(a));
        parts.any(|(assigned, _)| assigned == name)
    };
    let [sets_state, sets_transactions] = PINNING.map(sets);
    settings.pins |= sets_state || sets_transactions;
    let mut then = own.clone();
    let (mut rest, mut told): (Vec<&[u8]>, Vec<Box<[u8]>>) = (Vec::new(), Vec::new());
    let (mut listed, mut any, mut forgets) = (false, settings.pins, false);
    for assignment in assignments(list) {
        let (from, to) = (assignment.first()?.start, assignment.last()?.end);
        if NAMES.iter().any(|word| is(sql, assignment[0], word)) {
            rest.push(&sql[from..to]);
            told.extend(SET_BY_NAMES.map(Box::from));
            continue;
        }
        let (name, value) = settings.parts(assignment)?;
        match settings.tracks(&name, value, &mut then)? {
            true => {
                any = true;
                // What the server is sent does not set it, and so does not report it either.
                if name != VARIABLES && (own.is_all() || then.is_all()) {
                    return None;
                }
                if name == VARIABLES {
                    if std::mem::replace(&mut listed, true) {
                        return None;
                    }
                    forgets = told.iter().any(|name| own.wanted.tells_of(name));
                    told.clear();
                }
            }
            false => {
                // MariaDB does not report what is set without a scope.
                let unscoped = assignment[0].kind == Kind::SystemVariable
                    && name.starts_with(b"session_track_")
                    && !sql[from..assignment[0].end].contains(&b'.');
                rest.push(&sql[from + if unscoped { 2 } else { 0 }..to]);
                told.push(name.into());
            }
        }
    }
    if !any {
        return None;
    }
    let mut now = then.wanted.clone();
    if listed {
        let wanted = then.wanted.clone();
        told.retain(|name| wanted.tells_of(name));
        // A list that names itself is reported, and the server's is another one than the client's,
        // but for that of all.
        if then.is_all() {
            told.push(VARIABLES.into());
        } else if wanted.tells_of(VARIABLES) {
            return None;
        }
        now.variables = told;
    }
    let mut before = Vec::new();
    if settings.pins {
        // The backend reports what the server does, but for changes of state that errors have left
        // unreported while its switches were the pool's.
        now.state = pinned || sets_state || own.wanted.state;
        now.transactions = Transactions::Characteristics;
        if !pinned {
            // Its switches were the pool's: they become the client's in front of all.
            if PINNING.iter().any(|name| then.wanted.tells_of(name)) {
                return None;
            }
            let states = own.wanted.transactions;
            before = match own.wanted.state {
                true => Vec::new(),
                false => vec![&b"session_track_state_change=OFF"[..]],
            };
            before.push(match states {
                Transactions::Nothing | Transactions::Bounds => b"session_track_transaction_info=0",
                Transactions::State => b"session_track_transaction_info=1",
                Transactions::Characteristics => b"session_track_transaction_info=2",
            });
        }
    }
    Some(Retracked {
        sql: written(&before, listed.then_some(&*then.variables), &rest),
        then,
        now,
        forgets,
        pins: settings.pins,
    })
}

fn is(sql: &[u8], token: Token, word: &[u8]) -> bool {
    let text = &sql[token.start..token.end];
    token.kind == Kind::Word && text.eq_ignore_ascii_case(word)
}

/// The SET for the server: a new list for it to judge, the whole list again, and the assignments,
/// which would be forgotten in front of those. What sets nothing else makes the list whole again.
fn written(before: &[&[u8]], list: Option<&[u8]>, assignments: &[&[u8]]) -> Vec<u8> {
    let list = list.map(|list| [VARIABLES, b"='", list, b"'"].concat());
    let whole: &[u8] = b"session_track_system_variables='*'";
    let makes_whole = list.is_some() || assignments.is_empty();
    let mut parts = before.to_vec();
    parts.extend(list.as_deref());
    parts.extend(makes_whole.then_some(whole));
    parts.extend(assignments);
    [b"SET ", &parts.join(&b","[..])[..]].concat()
}

/// The parts between commas that stand in no parentheses.
fn assignments(tokens: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0_usize;
    let ends = |token: &Token| {
        match token.kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.kind == Kind::Punct(b',')
    };
    tokens.split(ends).collect()
}

struct Settings<'a> {
    sql: &'a [u8],
    global: &'a Tracked,
    own: &'a Tracked,
    pins: bool,
}

impl<'a> Settings<'a> {
    fn text(&self, token: Token) -> &'a [u8] {
        &self.sql[token.start..token.end]
    }

    /// The variable of an assignment, in lower case, and the tokens of its value. What is said of
    /// all sessions is not understood here.
    fn parts<'t>(&self, assignment: &'t [Token]) -> Option<(Vec<u8>, &'t [Token])> {
        let (mut first, mut rest) = assignment.split_first()?;
        let session = |token| is(self.sql, token, b"SESSION") || is(self.sql, token, b"LOCAL");
        if session(*first) && rest.first()?.kind == Kind::Word {
            (first, rest) = rest.split_first()?;
        }
        let name = match first.kind {
            Kind::Word => self.text(*first).to_ascii_lowercase(),
            Kind::SystemVariable => own_variable(self.text(*first))?,
            Kind::UserVariable => self.text(*first).to_vec(),
            _ => return None,
        };
        let (equals, value) = rest.split_first()?;
        let assigns = matches!(equals.kind, Kind::Punct(b'=') | Kind::Assign);
        (assigns && !value.is_empty()).then_some((name, value))
    }

    /// Notes what an assignment says of tracking; `false` when it is of something else, `None` when
    /// it is not understood.
    fn tracks(&self, name: &[u8], value: &[Token], then: &mut Tracked) -> Option<bool> {
        let wanted = &mut then.wanted;
        match name {
            VARIABLES => {
                then.variables = self.list(value)?.into();
                let names = std::str::from_utf8(&then.variables).ok()?;
                wanted.variables = Wanted::from_setting(names, false).variables;
            }
            SCHEMA if !self.pins => {
                wanted.schema = self.switch(value, self.global.wanted.schema)?;
            }
            SCHEMA | b"session_track_gtids" => return Some(false),
            _ if PINNING.contains(&name) => return Some(false),
            _ if name.starts_with(b"session_track_") => return None,
            _ => return Some(false),
        }
        Some(true)
    }

    fn switch(&self, value: &[Token], usual: bool) -> Option<bool> {
        let [value] = value else { return None };
        let text = self.text(*value).to_ascii_uppercase();
        match &text[..] {
            b"1" | b"ON" | b"TRUE" => Some(true),
            b"0" | b"OFF" | b"FALSE" => Some(false),
            b"DEFAULT" => Some(usual),
            _ => None,
        }
    }

    /// A list of names: a literal, DEFAULT, or CONCAT() of literals and the variable itself.
    fn list(&self, value: &[Token]) -> Option<Vec<u8>> {
        let list = match value {
            [one] if is(self.sql, *one, b"DEFAULT") => self.global.variables.to_vec(),
            [one] => self.piece(*one)?,
            [concat, open, parts @ .., close]
                if is(self.sql, *concat, b"CONCAT")
                    && open.kind == Kind::Punct(b'(')
                    && close.kind == Kind::Punct(b')') =>
            {
                let mut list = Vec::new();
                for part in parts.split(|token| token.kind == Kind::Punct(b',')) {
                    let [part] = part else { return None };
                    list.extend_from_slice(&self.piece(*part)?);
                }
                list
            }
            _ => return None,
        };
        (list.len() <= LIST_MAX).then_some(list)
    }

    fn piece(&self, token: Token) -> Option<Vec<u8>> {
        let text = self.text(token);
        match token.kind {
            Kind::String => {
                let inner = text.strip_prefix(b"'")?.strip_suffix(b"'")?;
                let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_*, ".contains(b);
                inner.iter().all(plain).then(|| inner.to_vec())
            }
            Kind::SystemVariable => {
                let name = text.to_ascii_lowercase();
                let global = name.strip_prefix(b"@@global.");
                match global {
                    Some(name) if name == VARIABLES => Some(self.global.variables.to_vec()),
                    None if own_variable(&name)? == VARIABLES => Some(self.own.variables.to_vec()),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The name in `@@name`, `@@session.name` or `@@local.name`, in lower case.
fn own_variable(text: &[u8]) -> Option<Vec<u8>> {
    let name = text.to_ascii_lowercase();
    let name = name.strip_prefix(b"@@")?;
    let scopes: [&[u8]; 2] = [b"session.", b"local."];
    let stripped = scopes.iter().find_map(|scope| name.strip_prefix(*scope));
    let name = stripped.unwrap_or(name);
    (!name.contains(&b'.')).then(|| name.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracked(variables: &str) -> Tracked {
        Tracked {
            variables: variables.as_bytes().into(),
            wanted: Wanted::from_setting(variables, true),
        }
    }

    fn taken(sql: &str) -> Option<Retracked> {
        let (global, own) = (tracked("autocommit,time_zone"), tracked("sql_mode"));
        retracked(sql.as_bytes(), LexMode::default(), &global, &own, false)
    }

    fn names(wanted: &Wanted) -> String {
        let names = wanted.variables.iter();
        let names: Vec<_> = names.map(|name| String::from_utf8_lossy(name)).collect();
        names.join(",")
    }

    #[test]
    fn the_server_goes_on_telling_everything() {
        let sql = "set autocommit=1,session_track_system_variables = \
             CONCAT(@@global.session_track_system_variables,',tx_isolation'), time_zone='UTC', \
             sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES')";
        let found = taken(sql).unwrap();
        let expected = "SET session_track_system_variables='autocommit,time_zone,tx_isolation',\
             session_track_system_variables='*',autocommit=1,time_zone='UTC',\
             sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES')";
        assert_eq!(String::from_utf8(found.sql).unwrap(), expected);
        assert_eq!(
            names(&found.then.wanted),
            "autocommit,time_zone,tx_isolation"
        );
        assert_eq!(
            names(&found.now),
            "time_zone",
            "what was set before is forgotten"
        );
        assert!(!found.forgets, "of autocommit it was not told before");
        let found = taken("SET sql_mode='', session_track_system_variables=''").unwrap();
        assert!(found.forgets && found.now.variables.is_empty());
    }

    #[test]
    fn every_form_is_worked_out() {
        for (value, expected) in [
            ("''", ""),
            ("'*'", "*"),
            ("DEFAULT", "autocommit,time_zone"),
            (
                "CONCAT(@@session_track_system_variables, ',a')",
                "sql_mode,a",
            ),
            ("CONCAT(@@local.session_track_system_variables)", "sql_mode"),
        ] {
            let sql = format!("SET @@session.session_track_system_variables := {value}");
            assert_eq!(names(&taken(&sql).unwrap().then.wanted), expected, "{sql}");
        }
        let found = taken("SET session_track_system_variables='*',NAMES utf8mb4").unwrap();
        assert_eq!(found.now.variables.len(), 5, "and the list itself");
        assert!(found.sql.ends_with(b",NAMES utf8mb4"));
        let found = taken("SET SESSION session_track_schema = OFF").unwrap();
        assert!(!found.then.wanted.schema);
        assert_eq!(found.sql, b"SET session_track_system_variables='*'");
    }

    #[test]
    fn what_pins_is_set_on_the_backend_but_for_the_list() {
        let sql = "SET session_track_schema=0,@@session_track_state_change=ON, \
             session_track_system_variables='a', @@session.session_track_transaction_info=1";
        let found = taken(sql).unwrap();
        let expected = "SET session_track_state_change=OFF,session_track_transaction_info=0,\
             session_track_system_variables='a',session_track_system_variables='*',\
             session_track_schema=0,session_track_state_change=ON,\
             @@session.session_track_transaction_info=1";
        assert_eq!(String::from_utf8(found.sql).unwrap(), expected);
        assert!(found.pins && found.then.wanted.schema && found.now.state);
        assert_eq!(names(&found.then.wanted), "a");
        let found = taken("SET session_track_transaction_info = 2").unwrap();
        assert!(found.pins && !found.now.state, "it was not to hear of any");
        let (global, own) = (tracked(""), tracked("b"));
        let sql = b"SET session_track_schema = OFF";
        let found = retracked(sql, LexMode::default(), &global, &own, true).unwrap();
        assert_eq!(
            (&found.sql[..], found.pins),
            (&b"SET session_track_schema = OFF"[..], true)
        );
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        for sql in [
            "SET autocommit = 1",
            "SET GLOBAL session_track_schema = OFF",
            "SET session_track_gtids = OWN_GTID",
            "SET session_track_system_variables = @a",
            "SET session_track_system_variables = CONCAT(@@sql_mode, 'a')",
            "SET session_track_system_variables = 'a\\'b'",
            "SET session_track_schema = (SELECT 1)",
            "SET session_track_schema = 1; SELECT 1",
            "SET session_track_system_variables = '', session_track_system_variables = '*'",
            "SET session_track_system_variables = 'session_track_system_variables'",
            "SET /*! session_track_schema = 1 */",
            "SET session_track_system_variables = '*', session_track_schema = 0",
        ] {
            assert_eq!(taken(sql), None, "{sql}");
        }
        let own = tracked("*");
        let sql = b"SET session_track_schema = 0";
        let found = retracked(sql, LexMode::default(), &tracked(""), &own, false);
        assert_eq!(found, None, "it is told of the switch itself");
    }
}
