//! Statement text: numbers and random strings, appended without formatting machinery.
//!
//! At some 100,000 statements a second the text is a noticeable part of a statement's cost, so
//! digits are written by hand. The strings have the shape of sysbench's: groups of eleven digits
//! with a dash between them.

use crate::random::Random;

/// Digits in a group of a random string.
const GROUP: usize = 11;
/// Groups in column `c`: 119 characters of its 120.
pub(super) const GROUPS_C: usize = 10;
/// Groups in column `pad`: 59 characters of its 60.
pub(super) const GROUPS_PAD: usize = 5;

/// Appends a number in decimal.
pub fn put_number(out: &mut Vec<u8>, number: u32) {
    let mut digits = [0; 10];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a number with its sign.
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    match u32::try_from(number) {
        Ok(number) => put_number(out, number),
        Err(_) => out.extend_from_slice(number.to_string().as_bytes()),
    }
}

/// Appends a row: `(id,k,'c','pad')`.
pub fn put_row_values(out: &mut Vec<u8>, id: u32, k: u32, random: &mut Random) {
    out.push(b'(');
    put_number(out, id);
    out.push(b',');
    put_number(out, k);
    out.extend_from_slice(b",'");
    put_groups(out, random, GROUPS_C);
    out.extend_from_slice(b"','");
    put_groups(out, random, GROUPS_PAD);
    out.extend_from_slice(b"')");
}

/// Appends so many groups of digits.
pub(super) fn put_groups(out: &mut Vec<u8>, random: &mut Random, groups: usize) {
    for group in 0..groups {
        if group > 0 {
            out.push(b'-');
        }
        // One random number holds the digits of a group many times over.
        let mut rest = random.next_u64();
        for _ in 0..GROUP {
            out.push(b'0' + u8::try_from(rest % 10).unwrap_or(0));
            rest /= 10;
        }
    }
}
