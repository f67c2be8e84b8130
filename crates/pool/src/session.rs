//! The session state that follows a client from backend to backend, and its difference.
//!
//! The problem: a statement must run under its client's schema, character sets and session
//! variables, on whatever backend it gets, without a round trip to put them there. The mechanism:
//! a [`Session`] is a value; the server's trackers report every change of it; equal sessions are
//! one shared object ([`Interner`]), so "does this backend stand as the client left it" is a
//! comparison of pointers, and thousands of clients of one application cost one object. Where they
//! differ, [`restore`] writes the commands that go out in front of the statement.
//!
//! Invariants:
//! - a variable that is not listed has the value with which the session began ([`Begun`]), or,
//!   where that is not known, its default (`SET x=DEFAULT` restores it, with two exceptions);
//! - the four character set variables are always listed, because their defaults depend on how a
//!   connection logged in;
//! - only values that can be written back exactly are listed ([`literal_of`]); a client with any
//!   other keeps its backend.

mod interner;

pub(crate) use interner::Interner;

use crate::globals::Begun;
use crate::sure::Accepted;
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use wire::attributes::{Form, put_query};
use wire::capabilities::INTERACTIVE;
use wire::command::{Command, put_command};
use wire::lex::{Charset, LexMode, Server};
use wire::tracking::Tracked;

/// Bytes, mostly ASCII, as the server sent them.
pub type Text = Box<[u8]>;

/// The four variables that a login sets by its collation, in the order in which they are restored:
/// setting `character_set_connection` resets the collation, so that comes last.
pub(crate) const CHARSET_VARIABLES: [&str; 4] = [
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
];

/// The one of them whose collation no variable shows.
const RESULTS: &[u8] = b"character_set_results";

/// Variables that trackers report but that are no lasting state of a session of ours: made anew by
/// each statement, read-only, or kept elsewhere.
const NOT_STATE: [&str; 9] = [
    "statement_id",
    "last_insert_id",
    "identity",
    "insert_id",
    "warning_count",
    "error_count",
    "rand_seed1",
    "rand_seed2",
    "timestamp",
];

/// MySQL 8 and 9 set these two to OFF by `SET x=DEFAULT`, whatever their global value is
/// (docs/trackers.md).
const NOT_BY_DEFAULT: [&str; 2] = ["foreign_key_checks", "unique_checks"];

/// From this version on MySQL types an unset user variable by its place: parameters of prepared
/// statements and user variables were made so together. Seen on 9.7; not so on 8.0.15.
const MYSQL_TYPES_BY_PLACE: u32 = 80_022;

/// What a client's statements run under.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Session {
    /// The default schema.
    pub schema: Option<Text>,
    /// Whether several statements may stand in one text.
    pub multi_statements: bool,
    /// The collation in which the columns of results are described, if it is known: no variable
    /// shows it. `character_set_results` has a collation besides its name, which is that of the
    /// login, of SET NAMES, or the name's default. A number where the variable takes that, else the
    /// collation's name.
    pub(crate) results_collation: Option<Text>,
    /// The global values under which it began.
    pub(crate) begun: Begun,
    /// Variables that have changed since, sorted by name, and the character set family.
    variables: Vec<(Text, Text)>,
    /// What stands behind `SET ROLE` to be in its role; `None` for that of its backend's login.
    pub(crate) role: Option<Text>,
    /// User variables and the literals that make their values, sorted by name.
    user: Vec<(Text, Text)>,
    /// What its client is told of it, if it has set that; backends tell everything.
    pub(crate) tracked: Option<Rc<Tracked>>,
    /// Whether its values can be set again for certain.
    pub(crate) accepted: Accepted,
    /// How its texts are cut, once that was asked: it is asked for each statement.
    lex_mode: Aside<Option<LexMode>>,
}

/// What is noted of a session beside its state: equal sessions stay equal, and a copy, which is
/// made to be changed, begins without it.
#[derive(Debug, Default)]
pub(crate) struct Aside<T: Copy>(Cell<T>);

impl<T: Copy> Aside<T> {
    pub(crate) fn get(&self) -> T {
        self.0.get()
    }

    pub(crate) fn set(&self, value: T) {
        self.0.set(value);
    }
}

impl<T: Copy + Default> Clone for Aside<T> {
    fn clone(&self) -> Self {
        Aside::default()
    }
}

impl<T: Copy> PartialEq for Aside<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T: Copy> Eq for Aside<T> {}

impl<T: Copy> Hash for Aside<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A variable's value cannot be given back exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotRestorable;

impl Session {
    /// The session of a client that has just logged in with these character sets (client,
    /// connection, results, collation).
    #[must_use]
    pub(crate) fn at_login(
        schema: &[u8],
        multi_statements: bool,
        charsets: &[Text; 4],
        begun: &Begun,
    ) -> Session {
        let mut session = Session {
            begun: begun.clone(),
            schema: (!schema.is_empty()).then(|| schema.into()),
            multi_statements,
            results_collation: None,
            variables: Vec::new(),
            role: None,
            user: Vec::new(),
            tracked: None,
            accepted: Accepted::default(),
            lex_mode: Aside::default(),
        };
        for (name, value) in CHARSET_VARIABLES.iter().zip(charsets) {
            session.put(name.as_bytes(), value);
        }
        session
    }

    /// A login as an interactive client begins with another `wait_timeout`.
    pub(crate) fn begin_interactive(&mut self, capabilities: u32) {
        let wait = self.begun.value(b"interactive_timeout");
        if capabilities & INTERACTIVE != 0
            && wait != self.begun.value(b"wait_timeout")
            && let Some(wait) = wait.map(Text::from)
        {
            self.put(b"wait_timeout", &wait);
        }
    }

    /// The session of a backend that has not said yet what it is like.
    pub(crate) fn not_known(begun: &Begun) -> Session {
        Session {
            begun: begun.clone(),
            ..Session::default()
        }
    }

    /// CLIENT_IGNORE_SPACE of a login puts a word into `sql_mode`, at the place where servers list
    /// it: behind the three modes that come first. `default` is what it would be, where that is not
    /// known of the session.
    pub(crate) fn ignore_space(&mut self, default: &str) {
        const WORD: &str = "IGNORE_SPACE";
        const BEFORE: [&str; 3] = ["REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES"];
        let begun = self.value(b"sql_mode").map(String::from_utf8_lossy);
        let all = begun.map_or(default.to_string(), std::borrow::Cow::into_owned);
        let mut words: Vec<&str> = all.split(',').filter(|word| !word.is_empty()).collect();
        if !words.contains(&WORD) {
            let place = words.iter().take_while(|word| BEFORE.contains(word));
            words.insert(place.count(), WORD);
            self.put(b"sql_mode", words.join(",").as_bytes());
        }
    }

    /// The value of a listed variable.
    #[must_use]
    pub(crate) fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        let found = self
            .variables
            .binary_search_by(|(n, _)| (**n).cmp(name))
            .ok()?;
        Some(&self.variables[found].1)
    }

    /// The value of any variable, as far as it is known.
    #[must_use]
    pub(crate) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.variable(name).or_else(|| self.begun.value(name))
    }

    /// Notes a change of a variable that the server reported.
    ///
    /// # Errors
    /// [`NotRestorable`] when the value cannot be written back exactly; nothing is noted then.
    pub(crate) fn set(&mut self, name: &[u8], value: &[u8]) -> Result<(), NotRestorable> {
        if NOT_STATE.iter().any(|other| other.as_bytes() == name) {
            return Ok(());
        }
        if !is_name(name) || literal_of(name, value).is_none() {
            return Err(NotRestorable);
        }
        self.put(name, value);
        Ok(())
    }

    fn put(&mut self, name: &[u8], value: &[u8]) {
        self.lex_mode.set(None);
        match self.variables.binary_search_by(|(n, _)| (**n).cmp(name)) {
            Ok(found) => self.variables[found].1 = value.into(),
            Err(place) => self.variables.insert(place, (name.into(), value.into())),
        }
    }

    /// Notes a user variable's literal; an empty one for a variable that is as if never set.
    pub(crate) fn set_user_variable(&mut self, name: &[u8], literal: &[u8]) {
        let place = self.user.binary_search_by(|(n, _)| (**n).cmp(name));
        match (place, literal.is_empty()) {
            (Ok(found), true) => drop(self.user.remove(found)),
            (Ok(found), false) => self.user[found].1 = literal.into(),
            (Err(_), true) => {}
            (Err(place), false) => self.user.insert(place, (name.into(), literal.into())),
        }
    }

    /// The text that a user variable holds, if it is ASCII and a text.
    pub(crate) fn user_text(&self, name: &[u8]) -> Option<Vec<u8>> {
        let place = self.user.binary_search_by(|(n, _)| (**n).cmp(name)).ok()?;
        let literal = self.user[place].1.strip_prefix(b"_")?;
        // As user_variables.rs writes it: _charset x'HEX' COLLATE name, alone.
        let mut parts = literal.split(|&byte| byte == b'\'');
        let (_, hex) = (parts.next()?, parts.next()?);
        let tail = parts.next()?;
        if !tail.starts_with(b" COLLATE ") || tail.contains(&b',') || parts.next().is_some() {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = |pair: &[u8]| u8::try_from(digit(pair[0])? * 16 + digit(*pair.get(1)?)?).ok();
        let text: Vec<u8> = hex.chunks(2).map(byte).collect::<Option<_>>()?;
        // NUL would be the half of a letter of two bytes.
        (text.is_ascii() && !text.contains(&0)).then_some(text)
    }

    /// How many user variables it has.
    pub(crate) fn user_variables_count(&self) -> usize {
        self.user.len()
    }

    /// Has the same user variables as `other` from now on.
    pub(crate) fn take_user_variables(&mut self, other: &Session) {
        self.user.clone_from(&other.user);
    }

    /// The same session with the user variables and the role of `other`, which are no matter of how
    /// a text is read.
    pub(crate) fn with_values_of(&self, other: &Session) -> Session {
        let mut session = self.clone();
        session.take_user_variables(other);
        session.role.clone_from(&other.role);
        session
    }

    /// Whether any system variable differs.
    pub(crate) fn variables_differ(&self, other: &Session) -> bool {
        self.variables != other.variables
            || self.results_collation != other.results_collation
            || self.begun != other.begun
    }

    /// Whether the two differ in nothing but whether several statements may stand in one text.
    pub(crate) fn equals_but_for_multi(&self, other: &Session) -> bool {
        let same = self.schema == other.schema && self.role == other.role;
        same && !self.variables_differ(other) && self.user == other.user
    }

    /// Names of the variables that a restoring command between the two sets.
    pub(crate) fn differing_variables<'a>(
        &'a self,
        other: &'a Session,
    ) -> impl Iterator<Item = &'a [u8]> {
        let changed = other.variables.iter();
        let changed = changed.filter(|(name, value)| self.variable(name) != Some(value));
        let dropped = self.variables.iter();
        let dropped = dropped.filter(|(name, _)| other.variable(name).is_none());
        let listed = changed.chain(dropped).map(|(name, _)| &**name);
        listed.chain(self.begun_otherwise(other))
    }

    /// Names of the variables that neither has changed, and that began otherwise.
    fn begun_otherwise<'a>(&'a self, other: &'a Session) -> impl Iterator<Item = &'a [u8]> {
        let listed = |name: &[u8]| self.variable(name).or(other.variable(name)).is_some();
        self.begun.differing(&other.begun, listed)
    }

    /// Whether a text means the same in both: schema, `sql_mode` and character sets are equal.
    #[must_use]
    pub(crate) fn reads_as(&self, other: &Session) -> bool {
        let equal = |name: &str| self.value(name.as_bytes()) == other.value(name.as_bytes());
        let charsets = CHARSET_VARIABLES.iter().all(|name| equal(name));
        let charsets = charsets && self.results_collation == other.results_collation;
        self.schema == other.schema && equal("sql_mode") && charsets
    }

    /// How this server cuts the session's texts; `default` is its `sql_mode` for fresh sessions,
    /// where that of this one is not known.
    #[must_use]
    pub(crate) fn lex_mode(&self, default: &str, server: Server) -> LexMode {
        if let Some(mode) = self.lex_mode.get() {
            return mode;
        }
        let sql_mode = self.value(b"sql_mode").unwrap_or(default.as_bytes());
        let has = |word: &str| has_word(sql_mode, word);
        let mode = LexMode {
            ansi_quotes: has("ANSI_QUOTES"),
            no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
            ignore_space: has("IGNORE_SPACE"),
            charset: Charset::of_name(self.variable(b"character_set_client").unwrap_or(b"")),
            server,
        };
        self.lex_mode.set(Some(mode));
        mode
    }

    /// Whether its `sql_mode` is known and has this word.
    #[must_use]
    pub(crate) fn sql_mode_has(&self, mode: &str) -> bool {
        has_word(self.value(b"sql_mode").unwrap_or_default(), mode)
    }
}

fn has_word(list: &[u8], word: &str) -> bool {
    list.split(|&byte| byte == b',')
        .any(|listed| listed.eq_ignore_ascii_case(word.as_bytes()))
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
}

/// How `value` is written in a SET: a number as it is, a plain text in quotes, NULL for an empty
/// `character_set_results`. `None` when it holds anything that quotes and character sets could
/// change.
fn literal_of(name: &[u8], value: &[u8]) -> Option<Literal> {
    if value.is_empty() && name == b"character_set_results" {
        return Some(Literal::Null);
    }
    let mut digits = value
        .strip_prefix(b"-")
        .unwrap_or(value)
        .split(|&b| b == b'.');
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    if digits.next().is_some_and(is_number)
        && digits.next().is_none_or(is_number)
        && digits.next().is_none()
    {
        return Some(Literal::Number);
    }
    let plain = |&b: &u8| (b.is_ascii_graphic() || b == b' ') && !matches!(b, b'\\' | b'\'' | b'"');
    value.iter().all(plain).then_some(Literal::Quoted)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Literal {
    Null,
    Number,
    Quoted,
}

/// Appends the commands that bring a backend from `from` to `to`, and returns how many there are;
/// each is answered by OK or ERR. `insert_id` is a LAST_INSERT_ID() to be set besides.
pub(crate) fn restore(
    out: &mut Vec<u8>,
    (form, server): (Form, Server),
    (from, to): (&Session, &Session),
    insert_id: Option<u64>,
) -> usize {
    let mut commands = 0;
    let set = set_of((from, to), insert_id, server);
    if !set.is_empty() {
        put_query(out, form, &set);
        commands += 1;
    }
    if from.multi_statements != to.multi_statements {
        put_multi(out, to.multi_statements);
        commands += 1;
    }
    if from.schema != to.schema
        && let Some(schema) = &to.schema
    {
        put_command(out, Command::InitDb, schema);
        commands += 1;
    }
    commands
}

/// The same as text in front of a statement in one command, and how many statements that is; each
/// is answered by OK or ERR, and behind an ERR nothing runs. `None` where the schema's name would
/// have to be written otherwise than it is.
pub(crate) fn restore_as_text(
    (from, to): (&Session, &Session),
    insert_id: Option<u64>,
    server: Server,
) -> Option<(Vec<u8>, usize)> {
    let mut text = set_of((from, to), insert_id, server);
    let mut statements = 0;
    if !text.is_empty() {
        text.push(b';');
        statements += 1;
    }
    if from.schema != to.schema
        && let Some(schema) = &to.schema
    {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-');
        if !schema.iter().all(plain) {
            return None;
        }
        text.extend_from_slice(b"USE `");
        text.extend_from_slice(schema);
        text.extend_from_slice(b"`;");
        statements += 1;
    }
    Some((text, statements))
}

/// Appends the command that allows or forbids several statements in one text. It cannot fail.
pub(crate) fn put_multi(out: &mut Vec<u8>, on: bool) {
    // MYSQL_OPTION_MULTI_STATEMENTS_ON is 0, ..._OFF is 1.
    put_command(out, Command::SetOption, &[u8::from(!on), 0]);
}

/// The SET that brings variables from one session's values to the other's; empty for none.
fn set_of((from, to): (&Session, &Session), insert_id: Option<u64>, server: Server) -> Vec<u8> {
    let mut set = Vec::new();
    if from.variables_differ(to) {
        put_differences(&mut set, from, to);
    }
    if from.user != to.user {
        put_user_differences(&mut set, (from, to), server);
    }
    if let Some(id) = insert_id {
        put_assignment(&mut set, b"last_insert_id", id.to_string().as_bytes());
    }
    set
}

/// Whether commands can bring a backend from `from` to `to`: there is none that takes a default
/// schema away.
#[must_use]
pub(crate) fn can_restore(from: &Session, to: &Session) -> bool {
    from.schema.is_none() || to.schema.is_some()
}

fn put_differences(set: &mut Vec<u8>, from: &Session, to: &Session) {
    let charset_differs = CHARSET_VARIABLES
        .iter()
        .any(|name| from.variable(name.as_bytes()) != to.variable(name.as_bytes()));
    let charset_differs = charset_differs || from.results_collation != to.results_collation;
    let results = to.variable(RESULTS).filter(|value| !value.is_empty());
    let collation = to.results_collation.as_deref();
    let described = collation.zip(results).filter(|_| charset_differs);
    let by_number = |collation: &[u8]| collation.iter().all(u8::is_ascii_digit);
    if let Some((collation, results)) = described
        && !by_number(collation)
    {
        // In front of all others, which it sets too.
        set.extend_from_slice(b"SET NAMES '");
        set.extend_from_slice(results);
        set.extend_from_slice(b"' COLLATE '");
        set.extend_from_slice(collation);
        set.push(b'\'');
    }
    for (name, value) in &to.variables {
        let is_charset = CHARSET_VARIABLES.iter().any(|c| c.as_bytes() == &**name);
        match described.filter(|_| **name == *RESULTS) {
            Some((collation, _)) if by_number(collation) => put_assignment(set, name, collation),
            Some(_) => {}
            None if (is_charset && charset_differs) || from.variable(name) != Some(value) => {
                put_assignment(set, name, value);
            }
            None => {}
        }
    }
    for (name, _) in &from.variables {
        if to.variable(name).is_none() {
            put_begun(set, name, to);
        }
    }
    for name in from.begun_otherwise(to) {
        put_begun(set, name, to);
    }
}

/// Puts a variable to the value with which a session began.
fn put_begun(set: &mut Vec<u8>, name: &[u8], session: &Session) {
    // Some take an empty value from a configuration file only; NULL is the default of the others.
    let known = session.begun.value(name).filter(|value| !value.is_empty());
    if let Some(value) = known.filter(|value| literal_of(name, value).is_some()) {
        return put_assignment(set, name, value);
    }
    put_name(set, name);
    let by_default = !NOT_BY_DEFAULT.iter().any(|n| n.as_bytes() == name);
    if by_default {
        set.extend_from_slice(b"DEFAULT");
    } else {
        set.extend_from_slice(b"@@GLOBAL.");
        set.extend_from_slice(name);
    }
}

/// Sets user variables that differ, and puts those that `to` has not to the NULL that is most like
/// that of an unset one.
///
/// MySQL (seen on 9.7) gives an unset one the type that its place wants, so `IFNULL(@a, 5)` is a
/// number and `CONCAT(@a)` a text; of all that can be set, the NULL of a number comes closest. On
/// MariaDB (seen on 10.11) it is binary text, wherever it stands.
fn put_user_differences(set: &mut Vec<u8>, (from, to): (&Session, &Session), server: Server) {
    let typed: &[u8] = match server {
        Server::MySql(version) if version >= MYSQL_TYPES_BY_PLACE => b"0",
        _ => b"_binary x''",
    };
    for (name, literal) in &to.user {
        if !from
            .user
            .iter()
            .any(|pair| pair.0 == *name && pair.1 == *literal)
        {
            put_name(set, &[b"@`", &**name, b"`"].concat());
            set.extend_from_slice(literal);
        }
    }
    for (name, _) in &from.user {
        if !to.user.iter().any(|pair| pair.0 == *name) {
            let name = [b"@`", &**name, b"`"].concat();
            put_name(set, &name);
            set.extend_from_slice(typed);
            put_name(set, &name);
            set.extend_from_slice(b"NULL");
        }
    }
}

fn put_name(set: &mut Vec<u8>, name: &[u8]) {
    set.extend_from_slice(if set.is_empty() { b"SET " } else { b"," });
    set.extend_from_slice(name);
    set.push(b'=');
}

fn put_assignment(set: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    put_name(set, name);
    match literal_of(name, value) {
        Some(Literal::Null) => set.extend_from_slice(b"NULL"),
        Some(Literal::Number) => set.extend_from_slice(value),
        _ => {
            set.push(b'\'');
            set.extend_from_slice(value);
            set.push(b'\'');
        }
    }
}

#[cfg(test)]
mod tests;
