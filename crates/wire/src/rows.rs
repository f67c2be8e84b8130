//! Rows of a result: the number and the lengths of their values, checked while they pass by.
//!
//! A row in the text protocol has one length-encoded string, or the byte 0xFB for NULL, for each
//! column, and nothing behind. A row in the binary protocol has a zero byte, a bitmap of its NULLs,
//! and the other values, as long as their columns' types say ([`Columns`]). [`Row`] takes either in
//! pieces of any length; [`check_text`] and [`check_binary`] take one that has come whole.
//!
//! The types of the first [`TYPED_MAX`] columns are kept. A value behind those needs a byte at
//! least, which is all that is checked of it.

use crate::packet::{Malformed, Reader};

/// Columns of a result, at most: prepared statements count them in 16 bits, servers have 4,096.
pub const COLUMNS_MAX: u64 = 0xFFFF;
/// Columns whose types are kept, at most.
pub const TYPED_MAX: usize = 32;
/// Bytes of a length in front of a value, at most.
const LENGTH_MAX: usize = 9;
/// Bytes of a date or time in the binary protocol, at most.
const TEMPORAL_MAX: u64 = 12;
/// NULL in a row of the text protocol.
const NULL: u8 = 0xFB;

const NO_ROW: &str = "a row in the binary protocol";
const TOO_FEW: &str = "a value for each column of a row";
const TOO_MANY: &str = "no value behind the last column of a row";
const CUT: &str = "a value that ends within its row";
const NO_LENGTH: &str = "the length of a value";
const NO_DATE: &str = "a date or time of at most 12 bytes";

/// Form of a column's values in the binary protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// NULL and nothing else.
    Nothing,
    One,
    Two,
    Four,
    Eight,
    /// A date or time, with its length in front.
    Temporal,
    /// Bytes, with their length in front.
    Bytes,
}

impl Form {
    /// The form of this type's values ("Binary Protocol Value" in MySQL's manual of the protocol).
    fn of_type(column_type: u8) -> Form {
        match column_type {
            6 => Form::Nothing,
            1 => Form::One,
            2 | 13 => Form::Two,
            3 | 4 | 9 => Form::Four,
            5 | 8 => Form::Eight,
            7 | 10..=12 => Form::Temporal,
            _ => Form::Bytes,
        }
    }

    /// Bytes of each value, where that has no length in front.
    fn width(self) -> Option<u8> {
        match self {
            Form::Nothing => Some(0),
            Form::One => Some(1),
            Form::Two => Some(2),
            Form::Four => Some(4),
            Form::Eight => Some(8),
            Form::Temporal | Form::Bytes => None,
        }
    }

    /// Bytes of the longest value that has its length in front.
    fn len_max(self) -> u64 {
        match self {
            Form::Temporal => TEMPORAL_MAX,
            _ => u64::MAX,
        }
    }
}

/// Columns of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Number of the columns.
    pub count: u16,
    /// Forms of the first of them that have been defined.
    forms: [Form; TYPED_MAX],
    typed: u8,
}

impl Columns {
    /// Columns of this number, none of which is defined.
    #[must_use]
    pub fn new(count: u16) -> Columns {
        Columns {
            count,
            forms: [Form::Bytes; TYPED_MAX],
            typed: 0,
        }
    }

    /// Notes the next column by its definition, which has been checked.
    pub fn define(&mut self, definition: &[u8]) {
        // Flags, decimals and a filler stand behind the type.
        const FROM_END: usize = 6;
        let at = definition.len().checked_sub(FROM_END);
        let next = self.forms.get_mut(usize::from(self.typed));
        if let (Some(at), Some(form)) = (at, next) {
            *form = Form::of_type(definition[at]);
            self.typed += 1;
        }
    }

    /// The values of a binary row of `len` bytes; `head`: the bytes that say which are NULL.
    fn values(&self, head: &[u8], len: usize) -> Result<BinaryValues, Malformed> {
        if head.first() != Some(&0) {
            return Err(malformed(NO_ROW, len));
        }
        let bitmap = head.get(1..binary_head_len(self.count));
        let bitmap = bitmap.ok_or(malformed(TOO_FEW, len))?;
        // Two bits of no column are in front.
        let is_there = |column: usize| bitmap[(column + 2) / 8] & 1 << ((column + 2) % 8) == 0;
        let (typed, count) = (usize::from(self.typed), usize::from(self.count));
        let mut values = BinaryValues {
            there: 0,
            behind: None,
        };
        let has_value = |column: &usize| is_there(*column) && self.forms[*column] != Form::Nothing;
        for column in (0..typed.min(count)).filter(has_value) {
            values.there |= 1 << column;
        }
        let behind = (typed..count).filter(|column| is_there(*column)).count();
        values.behind = (behind > 0).then_some(behind);
        Ok(values)
    }
}

/// Values of a binary row that are still to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BinaryValues {
    /// Columns of those whose types are known, as bits.
    there: u32,
    /// Bytes that those behind need at least; `None`: there are none.
    behind: Option<usize>,
}

impl BinaryValues {
    /// The column of the next value whose type is known; that begins now.
    fn next(&mut self) -> Option<usize> {
        let column = self.there.trailing_zeros();
        self.there &= self.there.wrapping_sub(1);
        (column < u32::BITS).then_some(column as usize)
    }
}

/// One row on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Values of a text row that are still to begin.
    values: u32,
    /// Values of a binary row that are still to come.
    binary: Option<BinaryValues>,
    /// Bytes of the present value that are still to come.
    rest: u64,
    /// The longest that the present value may be.
    rest_max: u64,
    /// The part of a value's length that has come.
    length: [u8; LENGTH_MAX],
    length_there: usize,
    /// Bytes of the row that have come.
    taken: usize,
}

impl Row {
    /// A text row of so many values, none of which has come.
    #[must_use]
    pub fn new(columns: u16) -> Row {
        Row {
            values: columns.into(),
            ..Row::default()
        }
    }

    /// A binary row of `len` bytes, none of which has been taken; `head`: those that say which of
    /// its values are NULL.
    ///
    /// # Errors
    /// [`Malformed`] when it is none.
    pub fn binary(columns: &Columns, head: &[u8], len: usize) -> Result<Row, Malformed> {
        Ok(Row {
            binary: Some(columns.values(head, len)?),
            rest: binary_head_len(columns.count) as u64,
            ..Row::default()
        })
    }

    /// Takes the row's next bytes.
    ///
    /// # Errors
    /// [`Malformed`] when they are more values than columns, or no value.
    #[inline]
    pub fn take(&mut self, columns: &Columns, piece: &[u8]) -> Result<(), Malformed> {
        self.taken += piece.len();
        let mut at = 0;
        while at < piece.len() {
            let left = piece.len() - at;
            let rest = usize::try_from(self.rest).map_or(left, |rest| rest.min(left));
            self.rest -= rest as u64;
            at += rest;
            at += match self.binary.is_some() {
                true => self.begin_binary(columns, piece.len() - at)?,
                false => self.take_short(&piece[at..]),
            };
            if let Some(&byte) = piece.get(at).filter(|_| self.rest == 0) {
                self.take_length(byte)?;
                at += 1;
            }
        }
        Ok(())
    }

    /// Begins the next value of a binary row if the one before has ended and the row goes on, for
    /// `left` bytes in this piece; returns how many of these it has.
    fn begin_binary(&mut self, columns: &Columns, left: usize) -> Result<usize, Malformed> {
        let too_many = self.malformed(TOO_MANY);
        let Some(binary) = &mut self.binary else {
            return Ok(0);
        };
        let goes_on = left > 0 && self.rest == 0 && self.length_there == 0;
        while goes_on && self.rest == 0 {
            let Some(column) = binary.next() else {
                let behind = binary.behind.as_mut().ok_or(too_many)?;
                *behind = behind.saturating_sub(left);
                return Ok(left);
            };
            let form = columns.forms[column];
            let Some(width) = form.width() else {
                self.values = 1;
                self.rest_max = form.len_max();
                break;
            };
            self.rest = width.into();
        }
        Ok(0)
    }

    /// Takes short values that have come whole, which most are; returns their bytes.
    #[inline]
    fn take_short(&mut self, piece: &[u8]) -> usize {
        let (mut at, mut values) = (0, self.values);
        if self.rest > 0 || self.length_there > 0 {
            return 0;
        }
        while values > 0
            && let Some(&first) = piece.get(at)
            && first <= NULL
        {
            let len = if first == NULL { 0 } else { first.into() };
            if piece.len() - at <= len {
                break;
            }
            at += 1 + len;
            values -= 1;
        }
        self.values = values;
        at
    }

    /// Takes one byte of the length in front of a value.
    fn take_length(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.values == 0 {
            return Err(self.malformed(TOO_MANY));
        }
        self.length[self.length_there] = byte;
        self.length_there += 1;
        let length = &self.length[..self.length_there];
        let width = match length[0] {
            0xFC => 3,
            0xFD => 4,
            0xFE => LENGTH_MAX,
            0xFF => return Err(self.malformed(NO_LENGTH)),
            NULL if self.binary.is_some() => return Err(self.malformed(NO_LENGTH)),
            _ => 1,
        };
        if length.len() == width {
            self.rest = match length[0] {
                NULL => 0,
                _ => Reader::new(length).lenenc(NO_LENGTH)?,
            };
            if self.binary.is_some() && self.rest > self.rest_max {
                return Err(self.malformed(NO_DATE));
            }
            self.length_there = 0;
            self.values -= 1;
        }
        Ok(())
    }

    /// Ends the row.
    ///
    /// # Errors
    /// [`Malformed`] when it has fewer values than columns, or the last one is cut.
    pub fn end(self) -> Result<(), Malformed> {
        let misses = |binary: BinaryValues| binary.there > 0 || binary.behind.unwrap_or(0) > 0;
        match (self.rest, self.length_there) {
            (0, 0) if self.values > 0 || self.binary.is_some_and(misses) => {
                Err(self.malformed(TOO_FEW))
            }
            (0, 0) => Ok(()),
            _ => Err(self.malformed(CUT)),
        }
    }

    fn malformed(&self, what: &'static str) -> Malformed {
        malformed(what, self.taken)
    }
}

/// Checks a text row that has come whole.
///
/// # Errors
/// [`Malformed`] when it has not one value for each column.
#[inline]
pub fn check_text(columns: u16, payload: &[u8]) -> Result<(), Malformed> {
    let mut row = Row::new(columns);
    // Short values alone, as most rows have.
    if row.take_short(payload) == payload.len() && row.values == 0 {
        return Ok(());
    }
    row = Row::new(columns);
    row.take(&Columns::new(columns), payload)?;
    row.end()
}

/// Bytes of a binary row that say which of its values are NULL, with the zero byte in front.
#[must_use]
pub fn binary_head_len(columns: u16) -> usize {
    1 + (usize::from(columns) + 2).div_ceil(8)
}

/// Checks a binary row that has come whole.
///
/// # Errors
/// [`Malformed`] when it has not one value for each column that is not NULL.
#[inline]
pub fn check_binary(columns: &Columns, payload: &[u8]) -> Result<(), Malformed> {
    // Numbers and short values alone, as most rows have.
    if short_binary(columns, payload)? == Some(payload.len()) {
        return Ok(());
    }
    let mut row = Row::binary(columns, payload, payload.len())?;
    row.take(columns, payload)?;
    row.end()
}

/// Length of a binary row that begins so, as its values say; `None` where they have to be looked at
/// one by one.
#[inline]
fn short_binary(columns: &Columns, payload: &[u8]) -> Result<Option<usize>, Malformed> {
    let mut values = columns.values(payload, payload.len())?;
    if values.behind.is_some() {
        return Ok(None);
    }
    let mut at = binary_head_len(columns.count);
    while let Some(column) = values.next() {
        let form = columns.forms[column];
        at += match (form.width(), payload.get(at)) {
            (Some(width), _) => usize::from(width),
            (None, Some(&len)) if len < NULL && u64::from(len) <= form.len_max() => {
                1 + usize::from(len)
            }
            _ => return Ok(None),
        };
    }
    Ok(Some(at))
}

/// Checks the definition of a column or parameter: six strings, one more with extended metadata,
/// and a block of twelve bytes.
///
/// # Errors
/// [`Malformed`] when it is anything else, such as a row or the end of a result.
pub fn check_definition(payload: &[u8]) -> Result<(), Malformed> {
    const WHAT: &str = "a column definition";
    const BLOCK_LEN: usize = 12;
    let mut reader = Reader::new(payload);
    for _ in 0..6 {
        reader.lenenc_bytes(WHAT)?;
    }
    // With extended metadata one more string stands in front of the block.
    let mut block = reader.lenenc_bytes(WHAT)?;
    if !reader.is_empty() {
        block = reader.lenenc_bytes(WHAT)?;
    }
    match block.len() == BLOCK_LEN && reader.is_empty() {
        true => Ok(()),
        false => Err(reader.malformed("the end of a column definition")),
    }
}

fn malformed(what: &'static str, len: usize) -> Malformed {
    Malformed { what, at: 0, len }
}
