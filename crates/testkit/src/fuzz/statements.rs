//! Texts: classification, other readers of them, KILL, and the id put in place of CONNECTION_ID().
//!
//! The rule of the classification is one-sided: a pin that is missing gives one client's session to
//! another. So something that must pin is put behind any text at all, and must be seen there.

use super::tokens::{mode_of, tokens_of};
use sql::acquired::acquired;
use sql::asked::{Question, question};
use sql::classify::{PinCause, Reads, Verb, classify as judge, stored};
use sql::kill::{Kill, Victim};
use sql::lex::{Executable, Kind, LexMode, Lexer, Token};
use sql::name_set::NameSet;
use sql::own_id::with_own_id;
use sql::text::Seen;
use std::collections::BTreeSet;

/// Judges SQL behind one byte for the mode.
pub(super) fn classify(data: &[u8]) {
    let Some((&how, sql)) = data.split_first() else {
        return;
    };
    let (mode, _) = mode_of(how);
    let statement = judge(sql, mode);
    let (tokens, sure) = tokens_of(sql, mode, Executable::Run);
    let read = |sql: &[u8]| {
        let mut lexer = Lexer::new(sql, mode);
        lexer.by_ref().for_each(drop);
        (lexer.miscut(), lexer.unread())
    };
    let (miscut, unread) = read(sql);
    assert!(
        !miscut || statement.pin.is_some(),
        "doubtful, and not pinned"
    );
    let with = |more: &str| [sql, b"\n;\n", more.as_bytes()].concat();
    let behind = |more: &str| judge(&with(more), mode);
    // Nothing runs behind what no server reads.
    let runs = |more: &str| !unread && !read(&with(more)).1;
    // The body of a routine that is being created does nothing yet.
    let defines = statement.verb == Verb::Ddl;
    if !defines {
        for (more, _) in PINNING.iter().filter(|(more, _)| runs(more)) {
            assert!(behind(more).pin.is_some(), "{more} is not seen");
        }
        let asks = "SELECT LAST_INSERT_ID(), CONNECTION_ID()";
        let reads = match runs(asks) {
            true => behind(asks).reads,
            false => Reads::ALL,
        };
        assert!(reads.contains(Reads::LAST_INSERT_ID) && reads.contains(Reads::CONNECTION_ID));
    }
    let in_front = judge(&[b" /* */ ", sql].concat(), mode);
    assert_eq!(
        in_front, statement,
        "a comment in front changes the judgement"
    );
    for (more, cause) in PINNING {
        assert_eq!(judge(more.as_bytes(), mode).pin, Some(cause), "{more}");
    }
    if sure && !mentions_executable(sql) {
        let other = spaced_otherwise(sql, &tokens);
        let shown = other.escape_ascii();
        assert_eq!(judge(&other, mode), statement, "spaced otherwise: {shown}");
        assert!(
            statement.pin.is_some() || !calls_lock(sql, &tokens),
            "a lock is taken, and nobody sees it"
        );
    }
}

/// Each leaves behind what no tracker reports.
const PINNING: [(&str, PinCause); 13] = [
    ("SELECT GET_LOCK('a', 1)", PinCause::UserLock),
    ("LOCK TABLES t READ", PinCause::LockTables),
    ("CALL p()", PinCause::StoredCode),
    ("SELECT f(1)", PinCause::StoredCode),
    ("SELECT s.f (1)", PinCause::StoredCode),
    ("CREATE TEMPORARY TABLE t (a INT)", PinCause::TemporaryTable),
    ("DROP TEMPORARY TABLE t", PinCause::TemporaryTable),
    ("FLUSH TABLES WITH READ LOCK", PinCause::GlobalReadLock),
    ("BACKUP LOCK t", PinCause::BackupLock),
    ("HANDLER t OPEN", PinCause::Handler),
    ("XA START 'a'", PinCause::Xa),
    ("PREPARE s FROM 'DO 1'", PinCause::TextPrepare),
    ("EXECUTE s", PinCause::TextExecute),
];

/// True if a comment may be executed; what stands in it is no gap.
fn mentions_executable(sql: &[u8]) -> bool {
    find(sql, b"/*!").is_some() || find(sql, b"/*M!").is_some()
}

/// The text with other white space where it has white space, and other comments where it has such.
fn spaced_otherwise(sql: &[u8], tokens: &[Token]) -> Vec<u8> {
    let mut out = Vec::new();
    let put_gap = |out: &mut Vec<u8>, gap: &[u8]| match gap {
        b"" => {}
        gap if gap.iter().all(|byte| matches!(byte, 9..=13 | b' ')) => out.extend(b"\n\t "),
        // White space may decide whether a parenthesis touches its name.
        gap => {
            let space = gap.iter().take_while(|byte| matches!(byte, 9..=13 | b' '));
            out.extend(space);
            out.extend(b"/* GET_LOCK( '`\" */#;\n");
        }
    };
    let mut at = 0;
    for token in tokens {
        put_gap(&mut out, &sql[at..token.start]);
        out.extend(&sql[token.start..token.end]);
        at = token.end;
    }
    put_gap(&mut out, &sql[at..]);
    out
}

/// True if GET_LOCK is called where a value may stand, outside of definitions.
fn calls_lock(sql: &[u8], tokens: &[Token]) -> bool {
    let is = |token: &Token, word: &[u8]| {
        token.kind == Kind::Word && sql[token.start..token.end].eq_ignore_ascii_case(word)
    };
    let defines = |token: &Token| is(token, b"CREATE") || is(token, b"ALTER");
    let called = |window: &[Token]| {
        let value = matches!(window[0].kind, Kind::Punct(b',' | b'=' | b'+' | b'('));
        let value = value || is(&window[0], b"SELECT") || is(&window[0], b"DO");
        value && is(&window[1], b"GET_LOCK") && window[2].kind == Kind::Punct(b'(')
    };
    !tokens.iter().any(defines) && tokens.windows(3).any(called)
}

/// Runs other readers of a text: each one byte for the mode, then SQL.
pub(super) fn readers(data: &[u8]) {
    let Some((&how, sql)) = data.split_first() else {
        return;
    };
    let (mode, _) = mode_of(how);
    let found = judge(sql, mode);
    let held = acquired(sql, mode, &found, Some(b"s"));
    for (cause, name) in &held.taken {
        assert!(found.causes.contains(*cause), "{cause:?} {name:?}");
    }
    // Texts with these causes always take something; with others they may only give it back.
    for cause in [PinCause::Unknown, PinCause::StoredCode] {
        let known = held.for_good.contains(cause) || !found.causes.contains(cause);
        assert!(known, "{cause:?} is taken, and by nothing: {held:?}");
    }
    let locks = found.causes.contains(PinCause::UserLock);
    assert!(!locks || held.asks_for_locks || held.for_good.contains(PinCause::UserLock));
    if let Some(Question::Show {
        errors,
        offset,
        rows,
    }) = question(sql, mode)
    {
        let what = if errors { "ERRORS" } else { "WARNINGS" };
        let plain = format!("SHOW {what} LIMIT {offset}, {rows}");
        let again = question(plain.as_bytes(), mode);
        assert_eq!(again, question(sql, mode), "{plain}");
    }
    let _ = stored::body(sql, mode, &BTreeSet::new());
    let _ = stored::expression(sql, mode);
    let _ = stored::definitions(sql, mode);
    let (tokens, _) = tokens_of(sql, mode, Executable::Run);
    let names: Vec<stored::Folded> = stored::names_in(sql, mode).collect();
    assert!(names.len() <= tokens.len());
    // Each name that stands in it is found in it, by either way of looking.
    for name in names.iter().take(NAMES_TRIED) {
        let set: NameSet = [&**name].into_iter().collect();
        assert!(set.may_be_in(sql, mode), "{}", name.escape_ascii());
        let seen = Seen::read(sql, mode, false, Some(&set));
        assert!(seen.may_name, "{}", name.escape_ascii());
    }
}

/// Names of a text that are looked for in it: each costs a pass over the text.
const NAMES_TRIED: usize = 16;

/// Reads SQL behind one byte for the mode, with KILL in front and as it is.
pub(super) fn kill(data: &[u8]) {
    let Some((&how, sql)) = data.split_first() else {
        return;
    };
    let (mode, _) = mode_of(how);
    for sql in [sql.to_vec(), [b"KILL ", sql].concat()] {
        let Some(kill) = Kill::read(&sql, mode) else {
            continue;
        };
        let kind = if kill.query { "QUERY" } else { "CONNECTION" };
        let plain = match kill.victim {
            Victim::Id(id) => format!("KILL {kind} {id}"),
            Victim::Own => format!("KILL {kind} CONNECTION_ID()"),
        };
        assert_eq!(Kill::read(plain.as_bytes(), mode), Some(kill), "{plain}");
        if let Victim::Id(id) = kill.victim {
            let (tokens, _) = tokens_of(&sql, mode, Executable::Run);
            let number = tokens.iter().find(|token| token.kind == Kind::Number);
            let number = number.map(|token| &sql[token.start..token.end]);
            let digits = number
                .expect("an id is a number")
                .escape_ascii()
                .to_string();
            assert_eq!(digits.parse(), Ok(id));
        }
    }
}

const ID: u32 = 1_073_741_825;
const CALL: &[u8] = b"CAST(1073741825 AS UNSIGNED)";
const VARIABLE: &[u8] = b"INET_ATON('64.0.0.1')";
const ALIAS: &[u8] = b" AS `";

/// Reads SQL behind one byte for the mode.
pub(super) fn own_id(data: &[u8]) {
    let Some((&how, sql)) = data.split_first() else {
        return;
    };
    let (mode, _) = mode_of(how);
    // What is put in must be told from what was there.
    let own = |text: &[u8]| [CALL, VARIABLE].iter().any(|put| find(text, put).is_some());
    if own(sql) {
        return;
    }
    let Some(out) = with_own_id(sql, mode, ID) else {
        return;
    };
    assert!(own(&out), "changed, and no id in it");
    assert_eq!(with_own_id(&out, mode, ID), None, "a call is left over");
    let (tokens, sure) = tokens_of(sql, mode, Executable::Run);
    assert!(sure);
    let (_, still_sure) = tokens_of(&out, mode, Executable::Run);
    assert!(still_sure, "cut otherwise: {}", out.escape_ascii());
    let mut lexer = Lexer::new(sql, mode);
    lexer.by_ref().for_each(drop);
    // Where comments run, what stands between tokens is blanks: a name put behind a column must not
    // stand inside of one.
    let mut bare = sql.to_vec();
    if lexer.has_executable() {
        bare.fill(b' ');
        for token in &tokens {
            let place = token.start..token.end;
            bare[place.clone()].copy_from_slice(&sql[place]);
        }
    }
    only_ids_and_names(&bare, &out, &tokens, mode);
}

/// Characters of the longest name of a column.
const NAME_LEN_MAX: usize = 255;

/// The name behind an opening backtick, and the bytes up to the end of the closing one.
fn unquoted(text: &[u8]) -> (Vec<u8>, usize) {
    let (mut name, mut at) = (Vec::new(), 0);
    loop {
        match text[at..] {
            [b'`', b'`', ..] => at += 1,
            [b'`', ..] => return (name, at + 1),
            _ => {}
        }
        name.push(*text.get(at).expect("a name is closed"));
        at += 1;
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Walks both texts: the second is the first with ids in place of calls, and names behind columns.
fn only_ids_and_names(sql: &[u8], out: &[u8], tokens: &[Token], mode: LexMode) {
    let (mut at, mut to) = (0, 0);
    while to < out.len() {
        let rest = &out[to..];
        let replaced = tokens.iter().position(|token| token.start == at);
        if let Some(index) = replaced
            && let Some(len) = [CALL, VARIABLE]
                .iter()
                .find(|put| rest.starts_with(put))
                .map(|put| put.len())
        {
            let last = match tokens[index].kind {
                Kind::SystemVariable => index,
                _ => index + 2,
            };
            at = tokens[last].end;
            to += len;
        } else if rest.starts_with(ALIAS) && !sql[at..].starts_with(ALIAS) {
            let (name, len) = unquoted(&rest[ALIAS.len()..]);
            // The name is the column as it was written, up to here, or the first of it.
            let cut = String::from_utf8_lossy(&name).chars().count() >= NAME_LEN_MAX;
            let written = &sql[..at];
            let is_its = written.ends_with(&name) || cut && find(written, &name).is_some();
            assert!(is_its, "{mode:?}: {}", out.escape_ascii());
            to += ALIAS.len() + len;
        } else {
            assert_eq!(sql.get(at), Some(&out[to]), "{}", out.escape_ascii());
            at += 1;
            to += 1;
        }
    }
    assert_eq!(at, sql.len(), "the end of the text is gone");
}
