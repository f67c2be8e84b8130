//! What texts may do: classification, KILL, and the id put in place of CONNECTION_ID().
//!
//! The rule of the classification is one-sided: a pin that is missing gives one client's session to
//! another. So something that must pin is put behind any text at all, and must be seen there.

use super::tokens::{mode_of, tokens_of};
use wire::classify::{PinCause, Reads, Verb, classify as judge};
use wire::kill::{Kill, Victim};
use wire::lex::{Executable, Kind, LexMode, Token};
use wire::own_id::with_own_id;

/// One byte for the mode, then SQL.
pub(super) fn classify(data: &[u8]) {
    let Some((&how, sql)) = data.split_first() else {
        return;
    };
    let (mode, _) = mode_of(how);
    let statement = judge(sql, mode);
    let (_, sure) = tokens_of(sql, mode, Executable::Run);
    assert!(sure || statement.pin.is_some(), "doubtful, and not pinned");
    let behind = |more: &str| judge(&[sql, b"\n;\n", more.as_bytes()].concat(), mode);
    // The body of a routine that is being created does nothing yet.
    let defines = statement.verb == Verb::Ddl;
    if !defines {
        for (more, _) in PINNING {
            assert!(behind(more).pin.is_some(), "{more} is not seen");
        }
        let reads = behind("SELECT LAST_INSERT_ID(), CONNECTION_ID()").reads;
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
}

/// Each leaves behind what no tracker reports.
const PINNING: [(&str, PinCause); 3] = [
    ("SELECT GET_LOCK('a', 1)", PinCause::UserLock),
    ("LOCK TABLES t READ", PinCause::LockTables),
    ("CALL p()", PinCause::StoredCode),
];

/// One byte for the mode, then SQL, with KILL in front and as it is.
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

/// One byte for the mode, then SQL.
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
    only_ids_and_names(sql, &out, &tokens, mode);
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
            let name = &rest[ALIAS.len()..];
            let end = name.iter().position(|&byte| byte == b'`');
            let end = end.expect("a name is closed");
            // The name is the column as it was written, up to here.
            assert!(sql[..at].ends_with(&name[..end]), "{mode:?}");
            to += ALIAS.len() + end + 1;
        } else {
            assert_eq!(sql.get(at), Some(&out[to]), "{}", out.escape_ascii());
            at += 1;
            to += 1;
        }
    }
    assert_eq!(at, sql.len(), "the end of the text is gone");
}
