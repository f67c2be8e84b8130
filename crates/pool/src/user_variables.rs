//! User variables (`@a`) follow their client as values.
//!
//! The problem: a user variable lives in one server session, and no tracker tells its value. The
//! mechanism: the text names the variables that it may set ([`touched`]); when the lease would end,
//! they are read back once, with type and collation, and each becomes the literal that makes it
//! anew ([`literal_of`]): a part of the session, restored by difference like any other. What no
//! literal gives back exactly, and what is too long or too much to carry, pins.
//!
//! The client's next statement may stand behind the question already. The answer counts unless that
//! statement may set some itself, so a client that never pauses has its variables on one backend
//! alone for no longer than one that does.
//!
//! A variable cannot be taken away from a server session but with all else. One that the client has
//! never set is put to a NULL as like an unset one as can be (`put_user_differences`); none is
//! quite, and what differs is told in docs/pool.md. On MySQL a NULL that the client has set itself
//! is another, and is restored as such.
//!
//! Invariants: a backend whose variables were not read back serves nobody else; names are lower
//! case, as the servers compare them.
//!
//! What the servers make of each literal was compared on MariaDB 10.11 and MySQL 9.7.

use crate::backend::Purpose;
use crate::group::Group;
use crate::heard::Heard;
use crate::reasons::PinReason;
use crate::session::{Session, Text};
use reactor::{Key, Net};
use wire::capabilities::EXTENDED_METADATA;
use wire::classify::{PinCause, Statement, Verb};
use wire::lex::{Kind, LexMode, Lexer};
use wire::packet::{Frame, HEADER_LEN, Malformed, Reader, frame};
use wire::reply::{Reply, Role};

/// Variables that a client may carry, and that are read back at once.
const COUNT_MAX: usize = 16;
/// Longest literal, in bytes.
const LITERAL_MAX: usize = 512;
/// The type in which MySQL describes a binary text that was set (MEDIUM_BLOB): SET @a=NULL makes
/// such a NULL, while an unset variable there is a VAR_STRING. MariaDB makes no difference.
const SET_BINARY: u8 = 250;
/// The flag of an unsigned column.
const UNSIGNED: u16 = 32;

/// Names of the variables that a text may set; `None` when they cannot be told or are too many.
pub(crate) fn touched(sql: &[u8], mode: LexMode, found: &Statement) -> Option<Vec<Text>> {
    let tokens = || Lexer::new(sql, mode);
    let reads = matches!(
        found.verb,
        Verb::Select | Verb::Insert | Verb::Update | Verb::Delete | Verb::Replace
    );
    let into = |text: &[u8]| found.verb == Verb::Select && text.eq_ignore_ascii_case(b"INTO");
    let sets = tokens().any(|t| t.kind == Kind::Assign || into(&sql[t.start..t.end]));
    if reads && !sets && !found.multi {
        return Some(Vec::new());
    }
    let mut names: Vec<Text> = Vec::new();
    for token in tokens().filter(|token| token.kind == Kind::UserVariable) {
        let name = name_of(&sql[token.start..token.end])?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (names.len() <= COUNT_MAX).then_some(names)
}

/// `@name` without sign and quotes, in lower case; `None` if that needs more than ASCII letters.
pub(crate) fn name_of(token: &[u8]) -> Option<Text> {
    let name = token.strip_prefix(b"@")?;
    let name = match name {
        [open @ (b'`' | b'"' | b'\''), inner @ .., close] if open == close => inner,
        _ => name,
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$.".contains(byte);
    let good = !name.is_empty() && name.iter().all(plain);
    good.then(|| name.to_ascii_lowercase().into())
}

/// The question that reads variables back.
fn question(names: &[Text]) -> Vec<u8> {
    let mut sql = b"SELECT ".to_vec();
    for (i, name) in names.iter().enumerate() {
        for part in [&b"@`"[..], b"`,HEX(@`", b"`),COLLATION(@`"]
            .iter()
            .enumerate()
        {
            if i > 0 && part.0 == 0 {
                sql.push(b',');
            }
            sql.extend_from_slice(part.1);
            sql.extend_from_slice(name);
        }
        sql.extend_from_slice(b"`)");
    }
    // A session with sql_select_limit = 0 would answer nothing.
    sql.extend_from_slice(b" LIMIT 1");
    sql
}

/// One value as it was read back.
struct Read<'a> {
    name: &'a [u8],
    /// The protocol's number of its type.
    kind: u8,
    flags: u16,
    value: Option<&'a [u8]>,
    hex: &'a [u8],
    collation: &'a [u8],
}

/// What stands behind `SET @name=` to make the value anew; an empty one for a variable that is as
/// if it were not set. `None` when no literal does it.
fn literal_of(read: &Read<'_>) -> Option<Vec<u8>> {
    let unsigned = read.flags & UNSIGNED != 0;
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let zero = read.value.is_none();
    let value = read.value.unwrap_or(b"0");
    let mut literal = match read.kind {
        1..=3 | 8 | 9 if unsigned && digits(value) => [b"CAST(", value, b" AS UNSIGNED)"].concat(),
        1..=3 | 8 | 9 => {
            let number = std::str::from_utf8(value).ok()?.parse::<i64>().ok()?;
            // Its negative is no number of 64 bits, so it is none with a sign in front.
            (number != i64::MIN).then(|| value.to_vec())?
        }
        // DECIMAL
        0 | 246 => {
            let mut parts = value
                .strip_prefix(b"-")
                .unwrap_or(value)
                .split(|&b| b == b'.');
            let plain = parts.next().is_some_and(digits) && parts.next().is_none_or(digits);
            if !plain || parts.next().is_some() {
                return None;
            }
            match value.contains(&b'.') {
                true => value.to_vec(),
                false => [b"CAST(", value, b" AS DECIMAL(65,0))"].concat(),
            }
        }
        // FLOAT, DOUBLE
        4 | 5 => {
            let text = std::str::from_utf8(value).ok()?;
            text.parse::<f64>()
                .ok()
                .filter(|number| number.is_finite())?;
            let exponent: &[u8] = if text.contains(['e', 'E']) {
                b""
            } else {
                b"e0"
            };
            [value, exponent].concat()
        }
        15 | 249..=254 => text_literal(read)?,
        _ => return None,
    };
    if zero && !literal.is_empty() {
        literal.extend_from_slice(&[b",@`", read.name, b"`=NULL"].concat());
    }
    (literal.len() <= LITERAL_MAX).then_some(literal)
}

fn text_literal(read: &Read<'_>) -> Option<Vec<u8>> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if !read.collation.iter().all(plain) || !read.hex.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    if read.collation == b"binary" {
        let unset = read.value.is_none() && read.kind != SET_BINARY;
        let literal = || [b"_binary x'", read.hex, b"'"].concat();
        return Some(if unset { Vec::new() } else { literal() });
    }
    let charset = read.collation.split(|&byte| byte == b'_').next()?;
    let parts: [&[u8]; 6] = [
        b"_",
        charset,
        b" x'",
        read.hex,
        b"' COLLATE ",
        read.collation,
    ];
    Some(parts.concat())
}

/// What is read of a column's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    collation: u16,
    kind: u8,
    flags: u16,
}

/// Each column, and the values of the only row.
type Collected = (Vec<Column>, Vec<Option<Text>>);

fn collected_row(collected: &[u8], extended: u32) -> Option<Collected> {
    let mut reply = Reply::new(wire::command::ReplyShape::Results);
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    let mut rest = collected;
    while let Frame::Whole { total, .. } = frame(rest) {
        let payload = &rest[HEADER_LEN..total];
        let role = reply.role(payload.first().copied(), payload.len());
        match role {
            Role::Definition => columns.push(column_of(payload, extended).ok()?),
            Role::Row => {
                let mut reader = Reader::new(payload);
                while !reader.is_empty() {
                    // NULL is the byte 0xFB, which is no length.
                    values.push(reader.lenenc_bytes("a value").ok().map(Text::from));
                }
            }
            _ => {}
        }
        reply.advance(role, payload, payload.len()).ok()?;
        rest = &rest[total..];
        if reply.is_done() {
            break;
        }
    }
    Some((columns, values))
}

/// A column's definition, in the form that these extended capabilities give it.
fn column_of(payload: &[u8], extended: u32) -> Result<Column, Malformed> {
    let mut reader = Reader::new(payload);
    for what in [
        "a catalog",
        "a schema",
        "a table",
        "a table",
        "a name",
        "a name",
    ] {
        reader.lenenc_bytes(what)?;
    }
    if extended & EXTENDED_METADATA != 0 {
        reader.lenenc_bytes("more of the type")?;
    }
    reader.lenenc("the length of the fixed fields")?;
    let collation = reader.u16("a collation")?;
    reader.u32("a column's length")?;
    Ok(Column {
        collation,
        kind: reader.u8("a type")?,
        flags: reader.u16("flags")?,
    })
}

/// The collation in which the last column of a collected result is described, a text; `None` in a
/// session whose results are in no character set.
pub(crate) fn results_collation(collected: &[u8], extended: u32, session: &Session) -> Option<u16> {
    let results = session.variable(b"character_set_results")?;
    let (columns, _) = collected_row(collected, extended)?;
    let last = columns.last().filter(|_| !results.is_empty())?;
    Some(last.collation)
}

impl<N: Net> Group<N> {
    /// A client's command is this text: notes what it may set, for when it is sent.
    pub(crate) fn touch(&mut self, key: Key, sql: &[u8], mode: LexMode, found: &Statement) {
        if !found.user_variables {
            return;
        }
        let names = touched(sql, mode, found);
        if names.is_none() {
            self.pin_by(key, PinReason::Text(PinCause::UserVariable), sql);
        }
        if let Some(client) = self.clients.get_mut(key) {
            let names = names.filter(|names| !names.is_empty());
            client.touching = names.map(Box::new);
        }
    }

    /// A statement that may set these variables is about to be sent.
    pub(crate) fn note_touched(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let Some(next) = client.touching.take() else {
            return;
        };
        if let Some(backend) = client.lease.and_then(|lease| self.backends.get_mut(lease)) {
            for command in &mut backend.flight {
                if command.purpose == Purpose::UserVariables(false) {
                    command.purpose = Purpose::UserVariables(true);
                }
            }
        }
        let names = client.touched.get_or_insert_default();
        for name in *next {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.len() > COUNT_MAX {
            client.touched = None;
            self.pin(key, PinReason::Text(PinCause::UserVariable));
        }
    }

    /// Asks for the values of what the client's statements may have set.
    pub(crate) fn read_variables(&mut self, lease: Key, owner: Key) {
        let names = self
            .clients
            .get(owner)
            .and_then(|client| client.touched.as_ref());
        let Some(sql) = names.map(|names| question(names)) else {
            return;
        };
        if let Ok(sql) = std::str::from_utf8(&sql) {
            self.send_own(lease, owner, Purpose::UserVariables(false), sql);
        }
    }

    /// The values have come back; `old`: a statement behind may set others or these again.
    pub(crate) fn variables_read(
        &mut self,
        key: Key,
        owner: Option<Key>,
        old: bool,
        heard: &Heard,
        collected: &[u8],
    ) {
        let kind = self.backends.get(key).map_or(0, |backend| backend.kind);
        let extended = (self.roster.ranks.get(kind)).map_or(0, |ranks| ranks.kind.extended);
        let row = collected_row(collected, extended).filter(|_| heard.error.is_none());
        let Some((columns, values)) = row else {
            return self.lose(key, "the server did not give a session's variables back");
        };
        let Some((owner, client)) =
            owner.and_then(|owner| Some((owner, self.clients.get_mut(owner)?)))
        else {
            return self.retire(key);
        };
        if old {
            // All of them are asked for once that statement has run.
            return;
        }
        let names = client.touched.take().unwrap_or_default();
        if columns.len() != 3 * names.len() || values.len() != columns.len() {
            return self.lose(
                key,
                "the server gave other variables back than it was asked for",
            );
        }
        let mut client_session = (*client.session).clone();
        let mut exact = true;
        for (i, name) in names.iter().enumerate() {
            let Column { kind, flags, .. } = columns[3 * i];
            let value = values[3 * i].as_deref();
            let read = Read {
                name,
                kind,
                flags,
                value,
                hex: values[3 * i + 1].as_deref().unwrap_or_default(),
                collation: values[3 * i + 2].as_deref().unwrap_or_default(),
            };
            match literal_of(&read) {
                Some(literal) => client_session.set_user_variable(name, &literal),
                None => exact = false,
            }
        }
        exact &= client_session.user_variables_count() <= COUNT_MAX;
        if !exact {
            self.pin(owner, PinReason::Text(PinCause::UserVariable));
            self.go_on(owner);
            return self.settle(key);
        }
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        let mut session = (*backend.session).clone();
        session.take_user_variables(&client_session);
        backend.session = self.sessions.intern(session);
        let session = self.sessions.intern(client_session);
        if let Some(client) = self.clients.get_mut(owner) {
            client.session = session;
        }
        self.go_on(owner);
        self.settle(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::classify::classify;

    fn touched_in(sql: &str) -> Option<Vec<String>> {
        let mode = LexMode::default();
        let found = classify(sql.as_bytes(), mode);
        let names = touched(sql.as_bytes(), mode, &found)?;
        let text = |name: Text| String::from_utf8(name.to_vec()).unwrap();
        Some(names.into_iter().map(text).collect())
    }

    #[test]
    fn a_text_names_what_it_may_set() {
        let cases: [(&str, &[&str]); 6] = [
            ("SET @A = 1, @`b c` = 2", &[]),
            ("SET @A = 1, @b = @a + 1", &["a", "b"]),
            ("SELECT @a, @b", &[]),
            ("SELECT @a := @b + 1", &["a", "b"]),
            ("SELECT 1, 2 INTO @x, @'y'", &["x", "y"]),
            ("INSERT INTO t VALUES (@a)", &[]),
        ];
        for (sql, names) in &cases[1..] {
            assert_eq!(touched_in(sql).unwrap(), *names, "{sql}");
        }
        assert_eq!(touched_in(cases[0].0), None, "a name with a space");
    }

    #[test]
    fn each_type_has_its_literal() {
        let literal = |kind, flags, value: Option<&str>, hex: &str, collation: &str| {
            let read = Read {
                name: b"v",
                kind,
                flags,
                value: value.map(str::as_bytes),
                hex: hex.as_bytes(),
                collation: collation.as_bytes(),
            };
            literal_of(&read).map(|literal| String::from_utf8(literal).unwrap())
        };
        let number = |kind, flags, value| literal(kind, flags, value, "", "binary");
        let cases = [
            (number(8, 128, Some("-5")), "-5"),
            (number(8, 160, Some("5")), "CAST(5 AS UNSIGNED)"),
            (number(246, 128, Some("1.50")), "1.50"),
            (number(246, 128, Some("5")), "CAST(5 AS DECIMAL(65,0))"),
            (number(5, 128, Some("0.1")), "0.1e0"),
            (number(5, 128, Some("1e100")), "1e100"),
            (number(8, 128, None), "0,@`v`=NULL"),
            (literal(251, 128, None, "", "binary"), ""),
            (literal(253, 128, None, "", "binary"), ""),
            (
                literal(250, 128, None, "", "binary"),
                "_binary x'',@`v`=NULL",
            ),
            (
                literal(251, 128, Some("\0"), "00", "binary"),
                "_binary x'00'",
            ),
            (
                literal(251, 0, Some("a"), "61", "utf8mb4_bin"),
                "_utf8mb4 x'61' COLLATE utf8mb4_bin",
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found.as_deref(), Some(expected));
        }
        let long = "6".repeat(LITERAL_MAX);
        assert_eq!(literal(251, 0, Some("x"), &long, "latin1_bin"), None);
        assert_eq!(number(8, 128, Some("-9223372036854775808")), None);
        assert_eq!(
            number(17, 0, Some("1")),
            None,
            "a type that no variable has"
        );
    }
}
