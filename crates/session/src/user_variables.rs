//! User variables: which a text may set, how they are read back, and which literal restores each.
//!
//! Invariants: names are UTF-8, and lower case as far as they are ASCII; what no literal makes
//! exactly has none.
//!
//! What the servers make of each literal was compared on MariaDB 10.11 and MySQL 9.7.

use crate::state::{Session, quoted_variable};
use crate::text::Text;
use crate::well_formed::is_text;
use sql::classify::{Statement, Verb};
use sql::lex::{Charset, Kind, LexMode, Lexer};
use wire::capabilities::EXTENDED_METADATA;
use wire::packet::{Frame, HEADER_LEN, Malformed, Reader, frame};
use wire::reply::{Reply, Step};

/// Variables that a client may carry, and that are read back at once. Servers give as many columns
/// as that takes.
pub const COUNT_MAX: usize = 256;
/// Longest number that is no DECIMAL, as a text of any character set.
const NUMBER_LEN_MAX: usize = 128;
/// Longest name on MySQL, in letters; it refuses texts with longer ones.
const NAME_MAX: usize = 64;
/// The type in which MySQL describes a binary text that was set (MEDIUM_BLOB): SET @a=NULL makes
/// such a NULL, while an unset variable there is a VAR_STRING. MariaDB makes no difference.
const SET_BINARY: u8 = 250;
/// The type in which MySQL describes an unset one.
const UNSET: u8 = 253;
/// Longest binary text that can have been set, as its column is described; an unset variable's is
/// longer by one where it has no type of its own.
const SET_LEN_MAX: u32 = 0xff_ffff;
/// Digits of a DECIMAL that a type can have. A literal on MySQL, and so a variable, can have more.
const DECIMAL_DIGITS_MAX: usize = 65;
/// The flag of an unsigned column.
const UNSIGNED: u16 = 32;

/// Names of the variables that a text may set; `None` when they cannot be told or are too many.
pub fn modified(sql: &[u8], mode: LexMode, found: &Statement) -> Option<Vec<Text>> {
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
        let name = name_of(&sql[token.start..token.end], mode)?;
        let text = std::str::from_utf8(&name).ok()?;
        let mysql = mode.server.is_mysql();
        let refused = mysql && text.chars().count() > NAME_MAX;
        if !refused && !names.contains(&name) {
            names.push(name);
        }
    }
    (names.len() <= COUNT_MAX).then_some(names)
}

/// `@name` without sign and quotes, ASCII in lower case; `None` if what the server makes of it is
/// not certain: letters beyond ASCII in another character set than UTF-8 or in four bytes of that,
/// and escapes.
pub fn name_of(token: &[u8], mode: LexMode) -> Option<Text> {
    let name = token.strip_prefix(b"@")?;
    let name = match name {
        [open @ (b'`' | b'"' | b'\''), inner @ .., close] if open == close => {
            let escapes = *open == b'\'' || (*open == b'"' && !mode.ansi_quotes);
            if escapes && inner.contains(&b'\\') {
                return None;
            }
            undoubled(inner, *open)
        }
        _ => name.to_vec(),
    };
    let known = name.is_ascii() || mode.charset == Charset::Utf8;
    let text = std::str::from_utf8(&name).ok().filter(|_| known)?;
    let short = !text.is_empty() && text.chars().all(|letter| letter.len_utf8() < 4);
    short.then(|| text.to_ascii_lowercase().into_bytes().into())
}

/// Text between quotes, each quote in it written once.
fn undoubled(inner: &[u8], quote: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(&byte) = bytes.next() {
        out.push(byte);
        if byte == quote {
            bytes.next();
        }
    }
    out
}

/// Columns for each variable that is read back.
pub const READ_COLUMNS: usize = 3;
/// Times that a name stands in them.
const NAMES_IN_COLUMNS: usize = 5;
/// Longest text of them without the name.
const COLUMNS_LEN_MAX: usize = 128;

/// Most bytes of the columns that read these back. Each byte of a name may be a quote, which is
/// written twice.
pub fn columns_len_max(names: &[Text]) -> usize {
    let of_one = |name: &Text| 2 * NAMES_IN_COLUMNS * name.len() + COLUMNS_LEN_MAX;
    names.iter().map(of_one).sum()
}

/// Puts the [`READ_COLUMNS`] that read each of these back; a value of more than `value_max` bytes
/// comes without them. a value of more than `value_max` bytes comes without them.
///
/// The first shows the type, and a number's value. MariaDB rounds a DECIMAL there, and MySQL a
/// DOUBLE in CONCAT. HEX would make digits of a number itself. The text of a DECIMAL is in the
/// session's `collation_connection`; who has one of two or four bytes is pinned, and is not asked.
pub(crate) fn put_columns(names: &[Text], value_max: usize, put: &mut impl FnMut(&[u8])) {
    let if_longer = |name: &[u8], max: usize, then: &[u8]| {
        [b"IF(LENGTH(", name, b")>", max.to_string().as_bytes(), then].concat()
    };
    for name in names {
        let name = quoted_variable(name);
        let number = if_longer(&name, NUMBER_LEN_MAX, b",NULL,");
        put(&[&number, &name[..], b")"].concat());
        let bytes = if_longer(&name, value_max, b",'-',HEX(CONCAT(");
        put(&[&bytes, &name[..], b")))"].concat());
        put(&[b"COLLATION(", &name[..], b")"].concat());
    }
}

/// One value as it was read back.
pub struct Read<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The protocol's number of its type.
    pub kind: u8,
    /// The flags of its column.
    pub flags: u16,
    /// The longest value, as its column is described.
    pub len: u32,
    /// A number, unless it is a DECIMAL.
    pub number: &'a [u8],
    /// Its bytes in hexadecimal digits, or no such digits where they are too many; `None` for NULL.
    pub hex: Option<&'a [u8]>,
    /// The collation's name.
    pub collation: &'a [u8],
}

/// Literal behind `SET @name=` that restores the value; an empty one for a variable that is as if
/// it were not set. `None` when no literal does it.
pub fn literal_of(read: &Read<'_>) -> Option<Vec<u8>> {
    let unsigned = read.flags & UNSIGNED != 0;
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let zero = read.hex.is_none();
    let value = if zero { b"0" } else { read.number };
    let mut literal = match read.kind {
        1..=3 | 8 | 9 if unsigned && digits(value) => [b"CAST(", value, b" AS UNSIGNED)"].concat(),
        1..=3 | 8 | 9 => {
            let number = std::str::from_utf8(value).ok()?.parse::<i64>().ok()?;
            // Its negative is no number of 64 bits, so it is none with a sign in front.
            (number != i64::MIN).then(|| value.to_vec())?
        }
        // DECIMAL
        0 | 246 => {
            let value = &bytes_of(read.hex.unwrap_or(b"30"))?[..];
            let mut parts = value
                .strip_prefix(b"-")
                .unwrap_or(value)
                .split(|&b| b == b'.');
            let plain = parts.next().is_some_and(digits) && parts.next().is_none_or(digits);
            if !plain || parts.next().is_some() {
                return None;
            }
            // CAST would make the greatest number of it.
            let count = value.iter().filter(|byte| byte.is_ascii_digit()).count();
            if count > DECIMAL_DIGITS_MAX {
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
        literal.extend_from_slice(&[b",", &quoted_variable(read.name)[..], b"=NULL"].concat());
    }
    Some(literal)
}

fn text_literal(read: &Read<'_>) -> Option<Vec<u8>> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let hex = read.hex.unwrap_or_default();
    if !read.collation.iter().all(plain) || !hex.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    if read.collation == b"binary" {
        let bare = read.kind == UNSET || (read.kind != SET_BINARY && read.len > SET_LEN_MAX);
        let unset = read.hex.is_none() && bare;
        let literal = || [b"_binary x'", hex, b"'"].concat();
        return Some(if unset { Vec::new() } else { literal() });
    }
    let charset = read.collation.split(|&byte| byte == b'_').next()?;
    if !is_text(charset, &bytes_of(hex)?) {
        return None;
    }
    let parts: [&[u8]; 6] = [b"_", charset, b" x'", hex, b"' COLLATE ", read.collation];
    Some(parts.concat())
}

/// Bytes of hexadecimal digits.
fn bytes_of(hex: &[u8]) -> Option<Vec<u8>> {
    let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    hex.chunks(2).map(byte).collect()
}

/// Facts of a column's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The collation's number.
    pub collation: u16,
    /// The longest value.
    pub len: u32,
    /// The protocol's number of its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u16,
}

/// Each column, and the values of the only row.
pub type Collected = (Vec<Column>, Vec<Option<Text>>);

/// A result of one row, taken apart.
#[must_use]
pub fn collected_row(collected: &[u8], extended: u32) -> Option<Collected> {
    let mut reply = Reply::new(wire::command::ReplyShape::Results);
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    let mut rest = collected;
    while let Frame::Whole { total, .. } = frame(rest) {
        let payload = &rest[HEADER_LEN..total];
        match reply.advance(payload.len(), payload).ok()? {
            Step::Definition { .. } => columns.push(column_of(payload, extended).ok()?),
            Step::Row => {
                let mut reader = Reader::new(payload);
                while !reader.is_empty() {
                    // NULL is the byte 0xFB, which is no length.
                    values.push(reader.lenenc_bytes("a value").ok().map(Text::from));
                }
            }
            _ => {}
        }
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
    Ok(Column {
        collation,
        len: reader.u32("a column's length")?,
        kind: reader.u8("a type")?,
        flags: reader.u16("flags")?,
    })
}

/// The collation in which the first column of a collected result is described, a text; `None` in a
/// session whose results are in no character set.
pub fn results_collation(collected: &[u8], extended: u32, session: &Session) -> Option<u16> {
    let (columns, _) = collected_row(collected, extended)?;
    collation_of(columns.first()?, session)
}

/// Collation of a column that is a text.
pub fn collation_of(column: &Column, session: &Session) -> Option<u16> {
    let results = session.variable(b"character_set_results")?;
    (!results.is_empty()).then_some(column.collation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::classify::classify;

    fn modified_in(sql: &str) -> Option<Vec<String>> {
        let mode = LexMode::default();
        let found = classify(sql.as_bytes(), mode);
        let names = modified(sql.as_bytes(), mode, &found)?;
        let text = |name: Text| String::from_utf8(name.to_vec()).unwrap();
        Some(names.into_iter().map(text).collect())
    }

    #[test]
    fn a_text_names_what_it_may_set() {
        let long = "x".repeat(NAME_MAX + 1);
        let refused = format!("SET @{long} = 1, @a = 2");
        let cases: [(&str, &[&str]); 7] = [
            (
                "SET @A = 1, @`b ``C` = 2, @'\u{c9}' = 3, @\"e \" = 4",
                &["a", "b `c", "\u{c9}", "e "],
            ),
            (&refused, &[&long, "a"]),
            ("SET @A = 1, @b = @a + 1", &["a", "b"]),
            ("SELECT @a, @b", &[]),
            ("SELECT @a := @b + 1", &["a", "b"]),
            ("SELECT 1, 2 INTO @x, @'y'", &["x", "y"]),
            ("INSERT INTO t VALUES (@a)", &[]),
        ];
        for (sql, names) in cases {
            assert_eq!(modified_in(sql).unwrap(), names, "{sql}");
        }
        let on_mysql = LexMode {
            server: sql::lex::Server::MySql(90_704),
            ..LexMode::default()
        };
        let found = classify(refused.as_bytes(), on_mysql);
        let names = modified(refused.as_bytes(), on_mysql, &found).unwrap();
        assert_eq!(names, [Text::from(&b"a"[..])], "MySQL refuses the other");
        for sql in ["SET @'a\\'b' = 1", "SET @`\u{1f600}` = 1"] {
            assert_eq!(modified_in(sql), None, "{sql}");
        }
        let latin1 = LexMode {
            charset: Charset::OneByte,
            ..LexMode::default()
        };
        assert_eq!(name_of(b"@\xe9", latin1), None);
    }

    #[test]
    fn columns_are_not_longer_than_is_said() {
        for name in ["a", "````````"] {
            let names = [Text::from(name.as_bytes())];
            let mut len = 0;
            put_columns(&names, usize::MAX, &mut |column| len += column.len() + 1);
            assert!(len <= columns_len_max(&names), "{name}: {len}");
        }
    }

    #[test]
    fn each_type_has_its_literal() {
        let read = |len, kind, flags, number: &str, hex: Option<&str>, collation: &str| {
            let read = Read {
                name: b"v",
                kind,
                flags,
                len,
                number: number.as_bytes(),
                hex: hex.map(str::as_bytes),
                collation: collation.as_bytes(),
            };
            literal_of(&read).map(|literal| String::from_utf8(literal).unwrap())
        };
        let with_len =
            |len, kind, flags, hex, collation| read(len, kind, flags, "", hex, collation);
        let literal = |kind, flags, hex, collation| with_len(1 << 24, kind, flags, hex, collation);
        let hex_of = |text: &str| -> String { text.bytes().map(|b| format!("{b:02X}")).collect() };
        let number = |kind, flags, value: Option<&str>| {
            // What stands in the other column is rounded.
            let shown = value.filter(|_| kind != 246).unwrap_or_default();
            read(
                83,
                kind,
                flags,
                shown,
                value.map(hex_of).as_deref(),
                "binary",
            )
        };
        let cases = [
            (number(8, 128, Some("-5")), "-5"),
            (number(8, 160, Some("5")), "CAST(5 AS UNSIGNED)"),
            (number(246, 128, Some("1.50")), "1.50"),
            (number(246, 128, Some("5")), "CAST(5 AS DECIMAL(65,0))"),
            (number(5, 128, Some("0.1")), "0.1e0"),
            (number(5, 128, Some("1e100")), "1e100"),
            (number(8, 128, None), "0,@`v`=NULL"),
            (literal(251, 128, None, "binary"), ""),
            (literal(253, 128, None, "binary"), ""),
            (
                with_len((1 << 24) - 1, 251, 128, None, "binary"),
                "_binary x'',@`v`=NULL",
            ),
            (literal(250, 128, None, "binary"), "_binary x'',@`v`=NULL"),
            (literal(251, 128, Some("00"), "binary"), "_binary x'00'"),
            (
                literal(251, 0, Some("61"), "utf8mb4_bin"),
                "_utf8mb4 x'61' COLLATE utf8mb4_bin",
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found.as_deref(), Some(expected));
        }
        for (kind, what) in [(251, "a long text"), (246, "a long number")] {
            assert_eq!(literal(kind, 0, Some("-"), "latin1_bin"), None, "{what}");
        }
        assert_eq!(number(8, 128, Some("-9223372036854775808")), None);
        let nines = "9".repeat(DECIMAL_DIGITS_MAX);
        let [longest, longer, longer_by_a_part] =
            ["-{}", "-{}9", "{}.9"].map(|form| form.replace("{}", &nines));
        assert!(number(246, 128, Some(&longest)).is_some());
        assert_eq!(number(246, 128, Some(&longer)), None);
        assert_eq!(number(246, 128, Some(&longer_by_a_part)), None);
        assert_eq!(
            number(17, 0, Some("1")),
            None,
            "a type that no variable has"
        );
    }
}
