//! Resources that a text acquires for its session, and gives back: locks, temporary tables,
//! cursors, variables that a later statement uses up.
//!
//! A pin can end when what it stands for has ended. For that it must be known exactly what was
//! taken: each acquired resource has a cause and a name (a lock's, a table's with its schema, an
//! alias, a transaction's), and a statement gives back what it names in the same form. The
//! mechanism: a handful of statements are recognized whole, token by token; names count only if no
//! server could read them in another way.
//!
//! The rule is one-sided, as in [`crate::classify`]: whatever is not recognized takes something
//! that nothing ends ([`Acquired::for_good`]) and gives nothing back. What a text gives back counts
//! when the server has answered OK.
//!
//! Sources: the servers' manuals on LOCK TABLES, FLUSH, BACKUP STAGE, LOCK INSTANCE FOR BACKUP,
//! HANDLER and XA; what each ends was tried on MariaDB 10.11 and MySQL 9.7.

pub(crate) mod words;

use crate::classify::{PinCause, PinCauses, Statement, Verb, rests_at, session_name};
use crate::lex::{Kind, LexMode, Lexer, Server, Token, function_name};
use words::Words;

/// The name of an acquired resource, with its schema where it has one.
pub type Name = Box<[u8]>;

/// Longest name of a lock or an alias, in bytes: MySQL refuses longer ones.
const NAME_MAX: usize = 64;

/// The id that the next row of the session gets.
const INSERT_ID: &str = "insert_id";

/// Resource that a text gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// One acquired resource.
    One(PinCause, Name),
    /// All with this cause, whatever their names, if they are known at all.
    All(PinCause),
}

/// Resources that a text acquires and gives back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acquired {
    /// Resources that it acquires, if it succeeds or fails half-way.
    pub taken: Vec<(PinCause, Name)>,
    /// Causes with which it takes something that cannot be told apart.
    pub for_good: PinCauses,
    /// Resources that it gives back, if it succeeds.
    pub ended: Vec<Ended>,
    /// Causes whose names mean something else from now on, if the session holds any.
    pub blurred: PinCauses,
    /// Tables that have another name when it has succeeded, in this order: those of the session,
    /// where it holds one of that name.
    pub renamed: Vec<(Name, Name)>,
    /// True if it takes or releases named locks; the server alone knows which are held after it.
    pub asks_for_locks: bool,
}

impl Acquired {
    /// True if it takes, ends and changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if it takes anything.
    #[must_use]
    pub fn takes(&self) -> bool {
        !self.taken.is_empty() || !self.for_good.is_empty()
    }

    fn take(&mut self, cause: PinCause, name: Option<Name>) {
        match name {
            Some(name) => self.taken.push((cause, name)),
            None => self.for_good.insert(cause),
        }
    }

    fn end(&mut self, cause: PinCause, name: Name) {
        self.ended.push(Ended::One(cause, name));
    }
}

/// Judges a text that was classified as `found`; `schema` is the default schema in which its names
/// are looked up, if that is certain.
#[must_use]
pub fn acquired(sql: &[u8], mode: LexMode, found: &Statement, schema: Option<&[u8]>) -> Acquired {
    let mut out = Acquired::default();
    let ends_something = matches!(found.verb, Verb::Begin | Verb::Lock | Verb::Ddl);
    if found.causes.is_empty() && !ends_something && !found.multi {
        return out;
    }
    let mut lexer = Lexer::new(sql, mode);
    let tokens: Vec<Token> = lexer.by_ref().collect();
    let clear = lexer.legible();
    let words = Words::new(sql, &tokens, mode);
    if found.verb == Verb::Ddl || found.multi || !clear {
        let mut all = tokens.iter();
        let renames = !clear || all.any(|token| words.is(*token, b"RENAME"));
        let read = (clear && !found.multi).then(|| renamed(words, mode.server, schema));
        match read.flatten() {
            Some(tables) if renames => out.renamed = tables,
            _ if renames => out.blurred.insert(PinCause::TemporaryTable),
            _ => {}
        }
    }
    let mut rest = found.causes;
    if clear {
        if rest.contains(PinCause::UserLock) {
            rest.remove(PinCause::UserLock);
            out.asks_for_locks = true;
            take_locks(&words, &tokens, mode.server, &mut out);
        }
        if rest.contains(PinCause::VariableInUse) {
            rest.remove(PinCause::VariableInUse);
            take_variables(&words, &tokens, &mut out);
        }
        if !found.multi
            && let Some(cause) = head(words, found, schema, &mut out)
        {
            rest.remove(cause);
        }
    }
    out.for_good = out.for_good.union(rest);
    out
}

/// Takes every call of GET_LOCK with a plain literal as its name.
fn take_locks(words: &Words<'_>, tokens: &[Token], server: Server, out: &mut Acquired) {
    const RELEASES: [&[u8]; 2] = [b"RELEASE_LOCK", b"RELEASE_ALL_LOCKS"];
    for (at, token) in tokens.iter().enumerate() {
        let Some(text) = function_name(token.kind, words.text(*token)) else {
            continue;
        };
        let kind = |behind: usize| tokens.get(at + behind).map(|token| token.kind);
        if kind(1) != Some(Kind::Punct(b'(')) {
            continue;
        }
        if text.eq_ignore_ascii_case(b"GET_LOCK") {
            let alone = kind(3) == Some(Kind::Punct(b','));
            let name = tokens.get(at + 2).filter(|_| alone);
            if !name.is_some_and(|name| words.locks_nothing(*name, server)) {
                let name = name.and_then(|name| words.literal(*name));
                out.take(PinCause::UserLock, name);
            }
        } else if text.len() > 8 && text[..8].eq_ignore_ascii_case(b"SERVICE_") {
            out.for_good.insert(PinCause::UserLock);
        } else if RELEASES.iter().any(|name| text.eq_ignore_ascii_case(name)) {
            out.asks_for_locks = true;
        }
    }
    let [select, name, open, close, ..] = tokens else {
        return;
    };
    let alone = tokens[4..].iter().all(|t| t.kind == Kind::Semicolon);
    let empty = open.kind == Kind::Punct(b'(') && close.kind == Kind::Punct(b')');
    let head = words.is(*select, b"SELECT") || words.is(*select, b"DO");
    if alone && empty && head && words.is(*name, RELEASES[1]) {
        out.ended.push(Ended::All(PinCause::UserLock));
    }
}

/// Takes every variable that is in use once it is set, if a text that sets some names it at all.
/// With `insert_id` set to 0 the next row gets that id, and the variable shows 0 before and after
/// (MariaDB 10.11, MySQL 9.7): only of another number can be told when it is used up.
fn take_variables(words: &Words<'_>, tokens: &[Token], out: &mut Acquired) {
    for (at, token) in tokens.iter().enumerate() {
        let name = match token.kind {
            Kind::Word | Kind::Name | Kind::SystemVariable => session_name(words.text(*token)),
            _ => None,
        };
        if let Some((name, _)) = name.and_then(rests_at) {
            let is_told = name != INSERT_ID || is_set_to_number(words, &tokens[at + 1..]);
            let name = is_told.then(|| Name::from(name.as_bytes()));
            out.take(PinCause::VariableInUse, name);
        }
    }
}

/// True if these tokens assign a number other than 0, and nothing more.
fn is_set_to_number(words: &Words<'_>, tokens: &[Token]) -> bool {
    let [assign, value, rest @ ..] = tokens else {
        return false;
    };
    let digits = words.text(*value);
    let ends = |next: &Token| matches!(next.kind, Kind::Punct(b',') | Kind::Semicolon);
    matches!(assign.kind, Kind::Assign | Kind::Punct(b'='))
        && digits.iter().all(u8::is_ascii_digit)
        && digits.iter().any(|digit| *digit != b'0')
        && rest.first().is_none_or(ends)
}

/// A single statement, by its first words; gives the cause that is judged completely.
fn head(
    mut words: Words<'_>,
    found: &Statement,
    schema: Option<&[u8]>,
    out: &mut Acquired,
) -> Option<PinCause> {
    let only = |cause| found.causes == PinCauses::of(cause);
    let first = words.next_word()?;
    let is = |word: &[u8]| first.eq_ignore_ascii_case(word);
    if found.verb == Verb::Begin {
        if found.causes.is_empty() {
            out.ended.push(Ended::All(PinCause::LockTables));
        }
    } else if is(b"LOCK") && only(PinCause::LockTables) {
        out.take(PinCause::LockTables, Some(Name::default()));
        return Some(PinCause::LockTables);
    } else if is(b"LOCK") && only(PinCause::BackupLock) {
        let whole = words.eat(b"INSTANCE") && words.eat(b"FOR") && words.eat(b"BACKUP");
        let name = (whole && words.at_end()).then(|| name(b"instance"));
        out.take(PinCause::BackupLock, name);
        return Some(PinCause::BackupLock);
    } else if is(b"UNLOCK") {
        unlock(&mut words, out);
    } else if is(b"FLUSH") && only(PinCause::GlobalReadLock) {
        out.take(PinCause::GlobalReadLock, Some(Name::default()));
        return Some(PinCause::GlobalReadLock);
    } else if is(b"BACKUP") && only(PinCause::BackupLock) {
        backup(&mut words, out);
        return Some(PinCause::BackupLock);
    } else if is(b"CREATE") && found.causes.contains(PinCause::TemporaryTable) {
        let table = created(&mut words, schema);
        out.take(PinCause::TemporaryTable, table);
        return Some(PinCause::TemporaryTable);
    } else if is(b"DROP") {
        dropped(&mut words, schema, out);
        return Some(PinCause::TemporaryTable);
    } else if is(b"HANDLER") && only(PinCause::Handler) {
        handler(&mut words, out);
        return Some(PinCause::Handler);
    } else if is(b"XA") && only(PinCause::Xa) {
        xa(&mut words, out);
        return Some(PinCause::Xa);
    }
    None
}

fn name(text: &[u8]) -> Name {
    text.into()
}

/// Reads UNLOCK TABLES, UNLOCK INSTANCE.
fn unlock(words: &mut Words<'_>, out: &mut Acquired) {
    if words.eat(b"INSTANCE") {
        if words.at_end() {
            out.end(PinCause::BackupLock, name(b"instance"));
        }
    } else if (words.eat(b"TABLES") || words.eat(b"TABLE")) && words.at_end() {
        out.ended.push(Ended::All(PinCause::LockTables));
        out.ended.push(Ended::All(PinCause::GlobalReadLock));
    }
}

/// Reads BACKUP STAGE, BACKUP LOCK, BACKUP UNLOCK.
fn backup(words: &mut Words<'_>, out: &mut Acquired) {
    if words.eat(b"UNLOCK") && words.at_end() {
        out.end(PinCause::BackupLock, name(b"lock"));
    } else if words.eat(b"STAGE") {
        if words.eat(b"END") && words.at_end() {
            out.end(PinCause::BackupLock, name(b"stage"));
        } else {
            out.take(PinCause::BackupLock, Some(name(b"stage")));
        }
    } else if words.eat(b"LOCK") {
        out.take(PinCause::BackupLock, Some(name(b"lock")));
    } else {
        out.for_good.insert(PinCause::BackupLock);
    }
}

/// The table of CREATE [OR REPLACE] TEMPORARY TABLE [IF NOT EXISTS].
fn created(words: &mut Words<'_>, schema: Option<&[u8]>) -> Option<Name> {
    if words.eat(b"OR") && !words.eat(b"REPLACE") {
        return None;
    }
    if !words.eat(b"TEMPORARY") || !words.eat(b"TABLE") {
        return None;
    }
    if words.eat(b"IF") && !(words.eat(b"NOT") && words.eat(b"EXISTS")) {
        return None;
    }
    words.table(schema)
}

/// RENAME TABLE, or RENAME within ALTER TABLE, taken apart; `None` where it is not understood.
fn renamed(
    mut words: Words<'_>,
    server: Server,
    schema: Option<&[u8]>,
) -> Option<Vec<(Name, Name)>> {
    let mut out = Vec::new();
    if words.eat(b"RENAME") {
        if !words.eat(b"TABLE") && !words.eat(b"TABLES") {
            return words.eat(b"USER").then_some(out);
        }
        // MySQL's takes no table of the session's own.
        if server.is_mysql() {
            return Some(out);
        }
        let _ = words.eat(b"IF") && words.eat(b"EXISTS");
        loop {
            let from = words.table(schema)?;
            out.push((from, words.eat(b"TO").then(|| words.table(schema))??));
            if !words.eat_punct(b',') {
                return words.at_end().then_some(out);
            }
        }
    }
    words.eat(b"ALTER").then_some(())?;
    let _ = words.eat(b"ONLINE");
    let _ = words.eat(b"IGNORE");
    words.eat(b"TABLE").then_some(())?;
    let _ = words.eat(b"IF") && words.eat(b"EXISTS");
    let from = words.table(schema)?;
    while !words.at_end() {
        if !words.eat(b"RENAME") {
            words.next();
        } else if ![&b"COLUMN"[..], b"INDEX", b"KEY"]
            .iter()
            .any(|part| words.eat(part))
        {
            let _ = words.eat(b"TO") || words.eat(b"AS") || words.eat_punct(b'=');
            let to = words.table(schema)?;
            let alone = out.is_empty() && (words.eat_punct(b',') || words.at_end());
            // Where a name without a schema goes from another schema, servers may differ.
            let moves = from.split(|byte| *byte == 0).next() != to.split(|byte| *byte == 0).next();
            out.push((alone && !moves).then_some((from.clone(), to))?);
        }
    }
    Some(out)
}

/// Reads DROP [TEMPORARY] TABLE [IF EXISTS] and names. It takes nothing, however it is written.
fn dropped(words: &mut Words<'_>, schema: Option<&[u8]>, out: &mut Acquired) {
    words.eat(b"TEMPORARY");
    if !words.eat(b"TABLE") && !words.eat(b"TABLES") {
        return;
    }
    if words.eat(b"IF") && !words.eat(b"EXISTS") {
        return;
    }
    let mut tables = Vec::new();
    loop {
        let Some(table) = words.table(schema) else {
            return;
        };
        tables.push(table);
        if !words.eat_punct(b',') {
            break;
        }
    }
    let _ = words.eat(b"RESTRICT") || words.eat(b"CASCADE");
    if words.at_end() {
        for table in tables {
            out.end(PinCause::TemporaryTable, table);
        }
    }
}

/// Reads HANDLER t OPEN [[AS] alias], HANDLER alias CLOSE, HANDLER alias READ.
fn handler(words: &mut Words<'_>, out: &mut Acquired) {
    let first = words.plain_name();
    let mut qualified = false;
    let mut last = first.clone();
    while words.eat_punct(b'.') {
        qualified = true;
        last = words.plain_name();
    }
    if words.eat(b"OPEN") {
        let aliased = words.eat(b"AS") || !words.at_end();
        let alias = if aliased { words.plain_name() } else { last };
        out.take(PinCause::Handler, alias.filter(|_| words.at_end()));
    } else if words.eat(b"CLOSE") {
        if let Some(alias) = first.filter(|_| !qualified && words.at_end()) {
            out.end(PinCause::Handler, alias);
        }
    } else if !words.eat(b"READ") {
        out.for_good.insert(PinCause::Handler);
    }
}

/// Reads XA START xid and what follows it; a transaction is named as it was written.
fn xa(words: &mut Words<'_>, out: &mut Acquired) {
    if words.eat(b"START") || words.eat(b"BEGIN") {
        let xid = words.xid();
        let _ = words.eat(b"JOIN") || words.eat(b"RESUME");
        out.take(PinCause::Xa, xid.filter(|_| words.at_end()));
    } else if words.eat(b"COMMIT") || words.eat(b"ROLLBACK") {
        let xid = words.xid();
        let _ = words.eat(b"ONE") && words.eat(b"PHASE");
        if let Some(xid) = xid.filter(|_| words.at_end()) {
            out.end(PinCause::Xa, xid);
        }
    } else if !words.eat(b"END") && !words.eat(b"PREPARE") && !words.eat(b"RECOVER") {
        out.for_good.insert(PinCause::Xa);
    }
}

#[cfg(test)]
mod tests;
