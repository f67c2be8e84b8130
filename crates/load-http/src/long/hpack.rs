//! Header fields of HTTP/2 (HPACK, RFC 7541) without a table that changes.
//!
//! The problem: HPACK's dynamic tables are up to 8 KiB of memory for each connection. The
//! mechanism: a request's fields are written with the static table and literals alone, so that all
//! requests are the same bytes; and the server is told that the table for its answers has room for
//! nothing (SETTINGS_HEADER_TABLE_SIZE 0), so that each block can be read by itself. Of an answer's
//! fields two are read, `:status` and `content-length`; the others are passed over.
//!
//! Invariants: nothing is allocated for a block that is read; an index into the table that has been
//! ruled out is an error, and so is a block that breaks off.

/// Fields of the static table.
const STATIC_FIELDS: u32 = 61;
const AUTHORITY: u32 = 1;
const PATH: u32 = 4;
const STATUS: u32 = 8;
/// The first and the last one of those that have a status for a value.
const STATUS_LAST: u32 = 14;
/// Their values.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
const ACCEPT: u32 = 19;
const CONTENT_LENGTH: u32 = 28;
const USER_AGENT: u32 = 58;

/// Fields that are read of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) status: Option<u16>,
    pub(super) content_length: Option<u64>,
}

/// The block of a request for a page.
pub(super) fn request(is_secure: bool, authority: &str, path: &str, user_agent: &str) -> Vec<u8> {
    let mut block = vec![0x82, if is_secure { 0x87 } else { 0x86 }];
    put_literal(&mut block, AUTHORITY, authority);
    put_literal(&mut block, PATH, path);
    put_literal(&mut block, USER_AGENT, user_agent);
    put_literal(&mut block, ACCEPT, "*/*");
    block
}

/// Appends a literal with a name of the static table, for no table.
fn put_literal(block: &mut Vec<u8>, name: u32, value: &str) {
    put_number(block, 0, 4, name as usize);
    put_number(block, 0, 7, value.len());
    block.extend_from_slice(value.as_bytes());
}

/// Appends a number in the last `bits` bits of a byte that begins with `pattern`, and behind it.
fn put_number(block: &mut Vec<u8>, pattern: u8, bits: u8, number: usize) {
    let most = (1_usize << bits) - 1;
    let low = |number: usize| u8::try_from(number & 0xff).unwrap_or(u8::MAX);
    if number < most {
        return block.push(pattern | low(number));
    }
    block.push(pattern | low(most));
    let mut rest = number - most;
    while rest >= 0x80 {
        block.push(low(rest & 0x7f) | 0x80);
        rest >>= 7;
    }
    block.push(low(rest));
}

/// Reads a block.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn read(block: &[u8]) -> Result<Fields, &'static str> {
    let (mut input, mut fields) = (Input(block), Fields::default());
    while let Some(first) = input.0.first().copied() {
        if first & 0x80 != 0 {
            let index = input.number(7)?;
            match index {
                STATUS..=STATUS_LAST => {
                    fields.put_status(u64::from(STATUSES[(index - STATUS) as usize]))?;
                }
                1..=STATIC_FIELDS => {}
                _ => return Err("an index into a table that was ruled out"),
            }
            continue;
        }
        if first & 0xe0 == 0x20 {
            if input.number(5)? != 0 {
                return Err("a table that is larger than agreed");
            }
            continue;
        }
        let name = input.number(if first & 0x40 != 0 { 6 } else { 4 })?;
        match name {
            0 => {
                input.string()?;
            }
            1..=STATIC_FIELDS => {}
            _ => return Err("an index into a table that was ruled out"),
        }
        let value = input.string()?;
        match name {
            STATUS..=STATUS_LAST => {
                fields.put_status(value.decimal().ok_or("a status that is no number")?)?;
            }
            CONTENT_LENGTH => {
                let length = value.decimal();
                fields.content_length = Some(length.ok_or("a content-length that is no number")?);
            }
            _ => {}
        }
    }
    Ok(fields)
}

impl Fields {
    fn put_status(&mut self, status: u64) -> Result<(), &'static str> {
        let status = u16::try_from(status).ok();
        let status = status.filter(|status| (100..=999).contains(status));
        let is_second = self.status.is_some();
        self.status = Some(status.ok_or("a status that is none of HTTP")?);
        match is_second {
            true => Err("two statuses"),
            false => Ok(()),
        }
    }
}

/// Rest of a block.
struct Input<'a>(&'a [u8]);

/// A string as it stands in a block.
struct Text<'a> {
    bytes: &'a [u8],
    is_huffman: bool,
}

const BROKEN_OFF: &str = "a block that breaks off";

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<u8, &'static str> {
        let (first, rest) = self.0.split_first().ok_or(BROKEN_OFF)?;
        self.0 = rest;
        Ok(*first)
    }

    /// A number that begins in the last `bits` bits of the next byte.
    fn number(&mut self, bits: u8) -> Result<u32, &'static str> {
        let most = (1_u32 << bits) - 1;
        let first = u32::from(self.byte()?) & most;
        if first < most {
            return Ok(first);
        }
        let mut number = most;
        // More than 28 bits have no place in a block.
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            number += u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number that is too large")
    }

    fn string(&mut self) -> Result<Text<'a>, &'static str> {
        let is_huffman = self.0.first().is_some_and(|byte| byte & 0x80 != 0);
        let length = self.number(7)? as usize;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(BROKEN_OFF)?;
        self.0 = rest;
        Ok(Text { bytes, is_huffman })
    }
}

impl Text<'_> {
    /// The number that it is, in decimal digits.
    fn decimal(&self) -> Option<u64> {
        if !self.is_huffman {
            let digits = str::from_utf8(self.bytes).ok()?;
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            return is_plain.then(|| digits.parse().ok())?;
        }
        let bit = |at: usize| self.bytes.get(at / 8).map(|byte| byte >> (7 - at % 8) & 1);
        let (mut at, mut number, mut digits) = (0, 0_u64, 0);
        let length = self.bytes.len() * 8;
        loop {
            // Less than a byte of ones fills the last byte up.
            if length - at < 8 && (at..length).all(|at| bit(at) == Some(1)) {
                return (digits > 0).then_some(number);
            }
            let mut code = 0;
            for next in at..at + 5 {
                code = code << 1 | u32::from(bit(next)?);
            }
            at += 5;
            // 0, 1 and 2 are 00000 to 00010; 3 to 9 are 011001 to 011111.
            let digit = match code {
                0..=2 => code,
                12..=15 => {
                    code = code << 1 | u32::from(bit(at)?);
                    at += 1;
                    code.checked_sub(0b01_1001)? + 3
                }
                _ => return None,
            };
            number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
            digits += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> Fields {
        Fields {
            status: Some(status),
            content_length: None,
        }
    }

    #[test]
    fn a_request_is_what_the_standard_says() {
        // RFC 7541, C.3.1, but nothing is put into a table, and `/` is written out.
        let block = request(false, "www.example.com", "/", "a");
        assert_eq!(block[..3], [0x82, 0x86, 0x01]);
        assert_eq!(&block[3..19], b"\x0fwww.example.com");
        assert_eq!(&block[19..], b"\x04\x01/\x0f\x2b\x01a\x0f\x04\x03*/*");
        let long = request(true, &"x".repeat(200), "/", "a");
        assert_eq!(long[..5], [0x82, 0x87, 0x01, 0x7f, 73]);
    }

    #[test]
    fn a_status_is_read_however_it_is_written() {
        for (at, code) in STATUSES.into_iter().enumerate() {
            let index = 0x88 + u8::try_from(at).unwrap();
            assert_eq!(read(&[index]), Ok(status(code)));
        }
        // As nginx writes it, and as RFC 7541, C.6.1 does: Huffman's digits.
        assert_eq!(read(b"\x08\x03429"), Ok(status(429)));
        assert_eq!(read(&[0x48, 0x82, 0x64, 0x02]), Ok(status(302)));
        assert_eq!(read(&[0x48, 0x83, 0x64, 0x0e, 0xff]), Ok(status(307)));
        // A table of no size, fields by other names, one with a name of its own.
        let block = b"\x20\x8d\x5f\x02ab\x10\x01x\x81\x07\x0f\x0d\x0512345";
        let all = Fields {
            status: Some(404),
            content_length: Some(12_345),
        };
        assert_eq!(read(block), Ok(all));
        assert_eq!(read(b""), Ok(Fields::default()));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (block, words) in [
            (&[0xbe][..], "ruled out"),
            (&[0x80], "ruled out"),
            (&[0x7e, 0x01, b'x'], "ruled out"),
            (&[0x3f, 0xe1, 0x1f], "larger than agreed"),
            (&[0x08, 0x03, b'2', b'0'], "breaks off"),
            (&[0x00], "breaks off"),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0x0f], "too large"),
            (b"\x08\x03abc", "no number"),
            (b"\x08\x00", "no number"),
            (b"\x08\x0299", "none of HTTP"),
            (b"\x88\x88", "two statuses"),
            (&[0x48, 0x82, 0xff, 0xff], "no number"),
        ] {
            let error = read(block).unwrap_err();
            assert!(error.contains(words), "{block:x?}: {error}");
        }
    }

    #[test]
    fn no_bytes_make_it_fail_otherwise() {
        // Each start of each block, and each byte of it changed in each bit.
        let block = b"\x20\x8d\x5f\x02ab\x10\x01x\x81\x07\x0f\x0d\x0512345\x48\x82\x64\x02";
        for end in 0..block.len() {
            let _ = read(&block[..end]);
            for bit in 0..8 {
                let mut changed = block.to_vec();
                changed[end] ^= 1 << bit;
                let _ = read(&changed);
            }
        }
    }
}
