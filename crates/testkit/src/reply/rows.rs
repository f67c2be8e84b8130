//! Rows and columns, in the text and in the binary protocol.
//!
//! Values are kept as text, as the text protocol has them; binary integers and floats are written
//! out. Dates in binary rows are kept as the bytes that came, in hexadecimal.

use super::words;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use wire::capabilities::EXTENDED_METADATA;
use wire::packet::{Malformed, Reader};

/// A column's or a parameter's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The schema it comes from, empty for none.
    pub schema: String,
    /// The table it comes from, under its name in the statement; empty for none.
    pub table: String,
    /// The table's own name.
    pub table_itself: String,
    /// Its name in the result.
    pub name: String,
    /// Its name in the table.
    pub name_itself: String,
    /// Extended type information, as MariaDB sends it to clients that asked for it.
    pub more_of_type: String,
    /// Its longest value, in bytes.
    pub length: u32,
    /// Digits behind the point.
    pub decimals: u8,
    /// The protocol's number of its type.
    pub kind: u8,
    /// The collation's number.
    pub collation: u16,
    /// Its flags (bit 5: unsigned).
    pub flags: u16,
}

const UNSIGNED: u16 = 32;

impl Column {
    pub(crate) fn read(payload: &[u8], extended: u32) -> Result<Column, Malformed> {
        let mut reader = Reader::new(payload);
        let text = words;
        reader.lenenc_bytes("a catalog")?;
        Ok(Column {
            schema: text(reader.lenenc_bytes("a schema")?),
            table: text(reader.lenenc_bytes("a table")?),
            table_itself: text(reader.lenenc_bytes("an original table")?),
            name: text(reader.lenenc_bytes("a column name")?),
            name_itself: text(reader.lenenc_bytes("an original name")?),
            more_of_type: match extended & EXTENDED_METADATA {
                0 => String::new(),
                _ => text(reader.lenenc_bytes("more of the type")?),
            },
            collation: {
                reader.lenenc("the length of the fixed fields")?;
                reader.u16("a collation")?
            },
            length: reader.u32("a column's length")?,
            kind: reader.u8("a type")?,
            flags: reader.u16("flags")?,
            decimals: reader.u8("decimals")?,
        })
    }
}

/// One value; `None` is NULL.
pub type Value = Option<Vec<u8>>;

/// A result set.
#[derive(Clone, PartialEq, Eq)]
pub struct Rows {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Without CLIENT_DEPRECATE_EOF: status flags and warnings in front of its rows.
    pub begin: Option<(u16, u16)>,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
    /// Content of the end packet.
    pub end: super::Done,
}

impl Rows {
    /// All values as text, NULL as `NULL`.
    #[must_use]
    pub fn texts(&self) -> Vec<Vec<String>> {
        let row = |row: &Vec<Value>| row.iter().map(text_of).collect();
        self.rows.iter().map(row).collect()
    }

    /// Takes out each value that is this text, in whatever character set.
    pub(super) fn forget(&mut self, text: &str) {
        let encoded = encodings(text);
        for value in self.rows.iter_mut().flatten() {
            if value.as_ref().is_some_and(|value| encoded.contains(value)) {
                *value = Some(b"its number".into());
            }
        }
    }

    /// The only value.
    ///
    /// # Panics
    /// When there are more or fewer.
    #[must_use]
    pub fn only(&self) -> String {
        match &self.rows[..] {
            [row] if row.len() == 1 => text_of(&row[0]),
            _ => panic!("expected one value, got {self:?}"),
        }
    }
}

/// A text of ASCII as `character_set_results` may have it sent: with one byte, two (ucs2, utf16,
/// utf16le) or four (utf32) for each character.
pub(super) fn encodings(text: &str) -> [Vec<u8>; 4] {
    let with = |before: &[u8], behind: &[u8]| {
        let bytes = text.bytes();
        bytes
            .flat_map(|byte| [before, &[byte], behind].concat())
            .collect()
    };
    [
        with(b"", b""),
        with(b"\0", b""),
        with(b"", b"\0"),
        with(b"\0\0\0", b""),
    ]
}

fn text_of(value: &Value) -> String {
    match value {
        Some(bytes) => words(bytes),
        None => "NULL".into(),
    }
}

/// Rows in a failure's text: many of them, or long values, would drown it. Two that differ are
/// written differently all the same: what is cut is told apart by a hash of all values.
impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        let names: Vec<&str> = self.columns.iter().map(|c| &c.name[..]).collect();
        write!(f, "{names:?}")?;
        let mut cut = self.rows.len() > SHOWN;
        for row in self.rows.iter().take(SHOWN) {
            cut |= row.iter().flatten().any(|value| value.len() > LONG);
            let short: Vec<String> = row.iter().map(shortened).collect();
            write!(f, " [{}]", short.join(", "))?;
        }
        if cut {
            let mut hasher = DefaultHasher::new();
            self.rows.hash(&mut hasher);
            write!(f, " with hash {:x}", hasher.finish())?;
        }
        if let Some((flags, warnings)) = self.begin {
            write!(f, " behind flags {flags:x}, {warnings} warnings")?;
        }
        write!(f, " ({} rows, {:?})", self.rows.len(), self.end)
    }
}

/// Bytes of a value that are shown.
const LONG: usize = 200;

fn shortened(value: &Value) -> String {
    let Some(bytes) = value else {
        return "NULL".into();
    };
    match bytes.get(..LONG).filter(|_| bytes.len() > LONG) {
        Some(start) => format!("{:?}... ({} bytes)", words(start), bytes.len()),
        None => format!("{:?}", words(bytes)),
    }
}

/// Takes a row of the text protocol apart.
pub(crate) fn text_row(payload: &[u8], columns: usize) -> Result<Vec<Value>, Malformed> {
    const NULL: u8 = 0xFB;
    let mut reader = Reader::new(payload);
    let mut row = Vec::with_capacity(columns);
    for _ in 0..columns {
        let mut probe = reader;
        if probe.u8("a value")? == NULL {
            reader = probe;
            row.push(None);
        } else {
            row.push(Some(reader.lenenc_bytes("a value")?.to_vec()));
        }
    }
    if reader.is_empty() {
        Ok(row)
    } else {
        Err(reader.malformed("the end of a row"))
    }
}

/// Bytes of a date or a time, at most.
const DATE_MAX: usize = 12;

/// Takes a row of the binary protocol apart.
pub(crate) fn binary_row(payload: &[u8], columns: &[Column]) -> Result<Vec<Value>, Malformed> {
    let mut reader = Reader::new(payload);
    if reader.u8("a binary row")? != 0 {
        return Err(reader.malformed("a binary row"));
    }
    let nulls = reader.bytes((columns.len() + 9) / 8, "a NULL bitmap")?;
    let mut row = Vec::with_capacity(columns.len());
    for (index, column) in columns.iter().enumerate() {
        let bit = index + 2;
        let is_null = nulls[bit / 8] & (1 << (bit % 8)) != 0;
        row.push(if is_null {
            None
        } else {
            Some(binary_value(&mut reader, column)?)
        });
    }
    match reader.is_empty() {
        true => Ok(row),
        false => Err(reader.malformed("no value behind the last column of a row")),
    }
}

fn binary_value(reader: &mut Reader<'_>, column: &Column) -> Result<Vec<u8>, Malformed> {
    let width = match column.kind {
        6 => 0,         // NULL
        1 => 1,         // TINY
        2 | 13 => 2,    // SHORT, YEAR
        3 | 9 | 4 => 4, // LONG, INT24, FLOAT
        8 | 5 => 8,     // LONGLONG, DOUBLE
        7 | 10 | 11 | 12 => {
            let date = reader.lenenc_bytes("a date")?;
            if date.len() > DATE_MAX {
                return Err(reader.malformed("a date"));
            }
            return Ok(format!("date {date:02x?}").into_bytes());
        }
        _ => return Ok(reader.lenenc_bytes("a value")?.to_vec()),
    };
    let mut bytes = [0; 8];
    bytes[..width].copy_from_slice(reader.bytes(width, "a number")?);
    let raw = u64::from_le_bytes(bytes);
    let shift = 64 - 8 * width.max(1);
    let text = match column.kind {
        4 => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).to_string(),
        5 => f64::from_le_bytes(bytes).to_string(),
        _ if column.flags & UNSIGNED != 0 => raw.to_string(),
        _ => ((raw << shift).cast_signed() >> shift).to_string(),
    };
    Ok(text.into_bytes())
}
