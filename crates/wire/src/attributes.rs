//! Query attributes (MySQL, from 8.0.23): named values that a client sends beside one statement.
//!
//! The problem: where CLIENT_QUERY_ATTRIBUTES was agreed on, each COM_QUERY has a header in front
//! of its text and each execution's parameters have names. Who takes that header for text reads
//! another statement than the server runs. The mechanism: [`Form`] says how the two ends of a
//! connection write these commands; [`header_len`] finds where the text begins; [`put_query`] and
//! [`put_reworded`] write a COM_QUERY in the form of its connection.
//!
//! Source: MySQL's manual ("Query Attributes", COM_QUERY, COM_STMT_EXECUTE), and MySQL 9.7 asked
//! with each type of value and many lengths: the header stands there also without attributes; a
//! set count other than 1, a missing type, or a date of another length is error 1835.
//!
//! Invariant: where [`header_len`] gives a length, the server finds the text at the same byte.
//! What it would still make something of (a value that is longer than its message) is malformed
//! here.

use crate::capabilities::QUERY_ATTRIBUTES;
use crate::command::{Command, put_command};
use crate::packet::{Malformed, PAYLOAD_MAX, Reader, put_packet, put_short};

/// Form of COM_QUERY and COM_STMT_EXECUTE on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Command that is all text; parameters have no names and no count.
    #[default]
    Plain,
    /// Command with query attributes, on which both ends agreed.
    Attributed,
}

impl Form {
    /// The form of a connection with these capabilities.
    #[must_use]
    pub fn of(capabilities: u32) -> Form {
        match capabilities & QUERY_ATTRIBUTES {
            0 => Form::Plain,
            _ => Form::Attributed,
        }
    }
}

/// The header of a text without attributes: none of them, in one set.
pub const NO_ATTRIBUTES: &[u8] = &[0, 1];

/// Bytes in front of the text, in what follows the command byte of a COM_QUERY.
///
/// # Errors
/// [`Malformed`] where a server would say error 1835, or might find the text at another place.
pub fn header_len(form: Form, arguments: &[u8]) -> Result<usize, Malformed> {
    if form == Form::Plain || arguments.starts_with(NO_ATTRIBUTES) {
        return Ok(match form {
            Form::Plain => 0,
            Form::Attributed => NO_ATTRIBUTES.len(),
        });
    }
    let mut reader = Reader::new(arguments);
    let count = reader.lenenc("a number of query attributes")?;
    let sets = reader.lenenc("a number of sets of query attributes")?;
    if sets != 1 {
        return Err(reader.malformed("one set of query attributes"));
    }
    // Each has two bytes of its type at least, so the message bounds the number.
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > arguments.len() {
        return Err(reader.malformed("as many query attributes as there is room for"));
    }
    if count > 0 {
        skip_attributes(&mut reader, count)?;
    }
    Ok(arguments.len() - reader.rest().len())
}

fn skip_attributes(reader: &mut Reader<'_>, count: usize) -> Result<(), Malformed> {
    let nulls = reader.bytes(count.div_ceil(8), "the attributes that are NULL")?;
    if reader.u8("whether types follow")? == 0 {
        return Err(reader.malformed("the types of query attributes"));
    }
    let mut values = *reader;
    for _ in 0..count {
        skip_type(&mut values)?;
    }
    for at in 0..count {
        let kind = reader.u16("the type of a query attribute")?.to_le_bytes()[0];
        reader.lenenc_bytes("the name of a query attribute")?;
        if nulls[at / 8] & (1 << (at % 8)) == 0 {
            skip_value(&mut values, kind)?;
        }
    }
    *reader = values;
    Ok(())
}

fn skip_type(reader: &mut Reader<'_>) -> Result<(), Malformed> {
    reader.u16("the type of a query attribute")?;
    reader.lenenc_bytes("the name of a query attribute")?;
    Ok(())
}

/// Skips a value, which has the width of a parameter of a prepared statement.
fn skip_value(reader: &mut Reader<'_>, kind: u8) -> Result<(), Malformed> {
    const WHAT: &str = "the value of a query attribute";
    let width = match kind {
        1 => 1,
        2 => 2,
        3 | 4 => 4,
        5 | 8 => 8,
        // TIMESTAMP, DATE, TIME, DATETIME: as much as the value needs.
        7 | 10..=12 => {
            let before = *reader;
            let len = reader.lenenc(WHAT)?;
            let fits = match kind {
                10 => matches!(len, 0 | 4),
                11 => matches!(len, 0 | 8 | 12),
                _ => matches!(len, 0 | 4 | 7 | 11),
            };
            if !fits {
                return Err(before.malformed("a date or a time of a length that these have"));
            }
            usize::from(len.to_le_bytes()[0])
        }
        244 => return Err(reader.malformed("a type that values have")),
        _ => return reader.lenenc_bytes(WHAT).map(|_| ()),
    };
    reader.bytes(width, WHAT).map(|_| ())
}

/// Appends a COM_QUERY of one's own, without attributes.
pub fn put_query(out: &mut Vec<u8>, form: Form, sql: &[u8]) {
    match form {
        Form::Plain => put_command(out, Command::Query, sql),
        Form::Attributed => put_reworded(out, NO_ATTRIBUTES, sql),
    }
}

/// Appends a COM_QUERY that says another text with this header, as [`header_len`] found it.
pub fn put_reworded(out: &mut Vec<u8>, header: &[u8], sql: &[u8]) {
    put_joined(out, header, b"", sql);
}

/// Appends a command whose text is `front` followed by `sql`, without a copy of either.
pub fn put_joined(out: &mut Vec<u8>, header: &[u8], front: &[u8], sql: &[u8]) {
    let parts = [&[Command::Query.byte()], header, front, sql];
    if parts.iter().map(|part| part.len()).sum::<usize>() < PAYLOAD_MAX {
        put_short(out, 0, |out| {
            parts.iter().for_each(|part| out.extend_from_slice(part));
        });
    } else {
        put_packet(out, 0, &parts.concat());
    }
}

#[cfg(test)]
mod tests;
