//! Items of conditions: what GET DIAGNOSTICS tells of a warning or an error beyond SHOW WARNINGS.
//!
//! The problem: SHOW WARNINGS gives level, number and words. Of a condition that the server raised
//! itself the other items follow from those, but for MariaDB's ROW_NUMBER; SIGNAL may give any of
//! them any value. The mechanism: items of what SIGNAL may have raised, and MariaDB's row numbers,
//! are asked for with GET DIAGNOSTICS where the condition still stands, into variables of the
//! pool's own ([`put_question`]); texts come back in hexadecimal digits, which no character set
//! changes.
//!
//! Invariant: an item that was not read and does not follow is not known.

use crate::state::Session;
use crate::text::Text;
use crate::user_variables::name_of;
use sql::asked::TEXTS;
use sql::lex::{Kind, LexMode, Lexer, Server};
use std::fmt::Write;

/// The first MariaDB that has ROW_NUMBER.
const ROW_NUMBERS_SINCE: u32 = 100_700;
/// Conditions that a session keeps unless `max_error_count` says otherwise.
const CONDITIONS_MAX: u32 = 64;

/// Items of one condition, as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Items {
    /// MariaDB's ROW_NUMBER.
    pub row: Option<u64>,
    /// The others, where they do not follow from what SHOW WARNINGS tells.
    pub others: Option<Box<Others>>,
}

/// Items that SIGNAL can set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// In the order of [`TEXTS`].
    pub texts: [Vec<u8>; TEXTS.len()],
    /// RETURNED_SQLSTATE.
    pub state: Vec<u8>,
    /// MESSAGE_TEXT.
    pub message: Vec<u8>,
}

/// True if a server tells the row of a condition.
pub fn has_rows(server: Server) -> bool {
    matches!(server, Server::MariaDb(version) if version >= ROW_NUMBERS_SINCE)
}

/// Names of the items that are asked for, and whether each is a text.
fn asked(all: bool, server: Server) -> impl Iterator<Item = (&'static str, bool)> {
    let texts = TEXTS
        .into_iter()
        .chain(["RETURNED_SQLSTATE", "MESSAGE_TEXT"]);
    let texts = texts.filter(move |_| all).map(|name| (name, true));
    let row = has_rows(server).then_some(("ROW_NUMBER", false));
    texts.chain(row)
}

/// Writes the items behind GET DIAGNOSTICS CONDITION, and the columns that give them back.
pub fn put_question(
    sql: &mut String,
    columns: &mut String,
    number: usize,
    all: bool,
    server: Server,
) {
    for (at, (name, text)) in asked(all, server).enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(sql, "{comma}@onramp_{number}_{at}={name}");
        let _ = match text {
            true => write!(columns, ",HEX(@onramp_{number}_{at})"),
            false => write!(columns, ",@onramp_{number}_{at}"),
        };
    }
}

/// The items of one condition after the other, from the row that gives them back.
pub fn read_items(row: &[Text], all: bool, server: Server) -> Option<Vec<Items>> {
    let each = asked(all, server).count();
    row.chunks(each.max(1))
        .map(|values| read_one(values, all, server))
        .collect()
}

fn read_one(values: &[Text], all: bool, server: Server) -> Option<Items> {
    let mut items = Items::default();
    let mut values = values.iter();
    if all {
        let mut others = Others::default();
        for text in &mut others.texts {
            *text = unhex(values.next()?)?;
        }
        others.state = unhex(values.next()?)?;
        others.message = unhex(values.next()?)?;
        items.others = Some(Box::new(others));
    }
    if has_rows(server) {
        items.row = Some(std::str::from_utf8(values.next()?).ok()?.parse().ok()?);
    }
    Some(items)
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = text.chunks(2);
    pairs
        .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect()
}

/// The number that a client's user variable holds, as the number of a condition; `None` when that
/// is not certain.
pub fn number_in(session: &Session, variable: &[u8], mode: LexMode) -> Option<u32> {
    let name = name_of(variable, mode)?;
    let Some(literal) = session.user_variable(&name) else {
        return Some(0);
    };
    let literal = std::str::from_utf8(literal).ok()?;
    if literal.ends_with("=NULL") {
        return Some(0);
    }
    let number = literal
        .strip_prefix("CAST(")
        .map_or(Some(literal), |rest| rest.strip_suffix(" AS UNSIGNED)"));
    let number: i128 = number?.parse().ok()?;
    Some(u32::try_from(number).unwrap_or(if number < 0 { 0 } else { u32::MAX }))
}

/// The text about a condition that no backend has: the server says so, in its own words. `None`
/// where the text names none.
pub fn absent_condition(sql: &[u8], mode: LexMode) -> Option<Vec<u8>> {
    let mut tokens = Lexer::new(sql, mode);
    let condition = tokens.find(|token| {
        let text = &sql[token.start..token.end];
        token.kind == Kind::Word && text.eq_ignore_ascii_case(b"CONDITION")
    });
    let number = condition.and_then(|_| tokens.next())?;
    let mut text = sql[..number.start].to_vec();
    text.extend_from_slice(u32::MAX.to_string().as_bytes());
    text.extend_from_slice(&sql[number.end..]);
    Some(text)
}

/// Conditions that a session keeps, as the server said when it was asked for its default.
pub fn conditions_max(said: &str) -> u32 {
    said.parse().unwrap_or(CONDITIONS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_comes_back_item_by_item() {
        let mariadb = Server::MariaDb(101_100);
        let (mut sql, mut columns) = (String::new(), String::new());
        put_question(&mut sql, &mut columns, 2, false, mariadb);
        assert_eq!(sql, "@onramp_2_0=ROW_NUMBER");
        assert_eq!(columns, ",@onramp_2_0");
        let mut row: Vec<Text> = vec![Text::from(&b""[..]); TEXTS.len()];
        row[7] = Text::from(&b"74"[..]);
        for text in [&b"3435303031"[..], b"C3A4", b"3"] {
            row.push(Text::from(text));
        }
        let items = read_items(&row, true, mariadb).unwrap();
        let others = items[0].others.as_deref().unwrap();
        assert_eq!(items[0].row, Some(3));
        assert_eq!(others.texts[7], b"t");
        assert_eq!(others.state, b"45001");
        assert_eq!(others.message, "\u{e4}".as_bytes());
        row.pop();
        assert_eq!(read_items(&row, true, mariadb), None);
        assert_eq!(read_items(&[Text::from(&b"x"[..])], false, mariadb), None);
    }
}
