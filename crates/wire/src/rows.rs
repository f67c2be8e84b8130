//! Rows of a result: the number of their values, checked while they pass by.
//!
//! A row in the text protocol has one length-encoded string, or the byte 0xFB for NULL, for each
//! column, and nothing behind; [`Row`] counts them in pieces of any length. A row in the binary
//! protocol has a zero byte, a bitmap of its NULLs, and at least one byte for each other value:
//! that it is long enough for these is what is checked, because where its values end depends on
//! types that a relay does not keep.

use crate::packet::{Malformed, Reader};

/// Columns of a result, at most: prepared statements count them in 16 bits, servers have 4,096.
pub const COLUMNS_MAX: u64 = 0xFFFF;
/// Bytes of a length in front of a value, at most.
const LENGTH_MAX: usize = 9;
/// NULL in a row of the text protocol.
const NULL: u8 = 0xFB;

/// One row in the text protocol on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Values that are still to begin.
    values: u32,
    /// Bytes of the present value that are still to come.
    rest: u64,
    /// The part of a value's length that has come.
    length: [u8; LENGTH_MAX],
    length_there: usize,
    /// Bytes of the row that have come.
    taken: usize,
}

impl Row {
    /// A row of so many values, none of which has come.
    #[must_use]
    pub fn new(columns: u16) -> Row {
        Row {
            values: columns.into(),
            ..Row::default()
        }
    }

    /// Takes the row's next bytes.
    ///
    /// # Errors
    /// [`Malformed`] when they are more values than columns, or no value.
    #[inline]
    pub fn take(&mut self, piece: &[u8]) -> Result<(), Malformed> {
        self.taken += piece.len();
        let mut at = 0;
        while at < piece.len() {
            let left = piece.len() - at;
            let rest = usize::try_from(self.rest).map_or(left, |rest| rest.min(left));
            self.rest -= rest as u64;
            at += rest;
            at += self.take_short(&piece[at..]);
            if let Some(&byte) = piece.get(at).filter(|_| self.rest == 0) {
                self.take_length(byte)?;
                at += 1;
            }
        }
        Ok(())
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
            return Err(self.malformed("no value behind the last column of a row"));
        }
        self.length[self.length_there] = byte;
        self.length_there += 1;
        let length = &self.length[..self.length_there];
        let width = match length[0] {
            0xFC => 3,
            0xFD => 4,
            0xFE => LENGTH_MAX,
            0xFF => return Err(self.malformed("the length of a value")),
            _ => 1,
        };
        if length.len() == width {
            self.rest = match length[0] {
                NULL => 0,
                _ => Reader::new(length).lenenc("a value's length")?,
            };
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
        match (self.values, self.rest, self.length_there) {
            (0, 0, 0) => Ok(()),
            (1.., 0, 0) => Err(self.malformed("a value for each column of a row")),
            _ => Err(self.malformed("a value that ends within its row")),
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
    row.take(payload)?;
    row.end()
}

/// Bytes of a binary row that say which of its values are NULL, with the zero byte in front.
#[must_use]
pub fn binary_head_len(columns: u16) -> usize {
    1 + (usize::from(columns) + 2).div_ceil(8)
}

/// Checks a binary row of `len` bytes by its head.
///
/// # Errors
/// [`Malformed`] when it does not begin with 0, or is too short for the values that are not NULL.
pub fn check_binary(columns: u16, head: &[u8], len: usize) -> Result<(), Malformed> {
    let head_len = binary_head_len(columns);
    let too_short = malformed("a value for each column of a row", len);
    if head.first() != Some(&0) {
        return Err(malformed("a row in the binary protocol", len));
    }
    let bitmap = head.get(1..head_len).ok_or(too_short)?;
    let nulls: u32 = bitmap.iter().map(|byte| byte.count_ones()).sum();
    let values = usize::from(columns).saturating_sub(nulls as usize);
    match len >= head_len + values {
        true => Ok(()),
        false => Err(too_short),
    }
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
