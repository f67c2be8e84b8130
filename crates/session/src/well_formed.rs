//! Bytes that are text of a character set.
//!
//! The problem: a client's own literal may hold any bytes, and so may its user variable. Behind an
//! introducer (`_gbk x'E9'`) a server takes text alone (error 1300), and no other literal has a
//! character set of its own choice. The mechanism: a table of the bytes of which letters are made.
//! It says what a server looks at: whether a letter is assigned is no part of it.
//!
//! Source: every byte and every pair of bytes behind the introducers of MariaDB 10.11 and MySQL
//! 9.7. Where they differ, what both take counts: MySQL takes 8E A0 in ujis, and any byte in
//! eucjpms; MariaDB has no gb18030.
//!
//! Invariant: what is called text, both servers take.

/// Bytes from one to another, and more of them.
type Bytes = &'static [(u8, u8)];
/// Bytes at each place of a letter.
type Letter = &'static [Bytes];

const GBK: &[Letter] = &[&[&[(0x81, 0xfe)], &[(0x40, 0x7e), (0x80, 0xfe)]]];
const GB18030: &[Letter] = &[
    GBK[0],
    &[
        &[(0x81, 0xfe)],
        &[(0x30, 0x39)],
        &[(0x81, 0xfe)],
        &[(0x30, 0x39)],
    ],
];
const GB2312: &[Letter] = &[&[&[(0xa1, 0xf7)], &[(0xa1, 0xfe)]]];
const BIG5: &[Letter] = &[&[&[(0xa1, 0xf9)], &[(0x40, 0x7e), (0xa1, 0xfe)]]];
const SJIS: &[Letter] = &[
    &[&[(0xa1, 0xdf)]],
    &[&[(0x81, 0x9f), (0xe0, 0xfc)], &[(0x40, 0x7e), (0x80, 0xfc)]],
];
const UJIS: &[Letter] = &[
    &[&[(0xa1, 0xfe)], &[(0xa1, 0xfe)]],
    &[&[(0x8e, 0x8e)], &[(0xa1, 0xdf)]],
    &[&[(0x8f, 0x8f)], &[(0xa1, 0xfe)], &[(0xa1, 0xfe)]],
];
const EUCKR: &[Letter] = &[&[&[(0x81, 0xfe)], &[(0x41, 0x5a), (0x61, 0x7a), (0x81, 0xfe)]]];

/// True if a server takes these bytes behind this character set's introducer. `charset`: its name
/// in lower case, as a collation's begins; in those that are not named here each byte is a letter.
#[must_use]
pub fn is_text(charset: &[u8], bytes: &[u8]) -> bool {
    match charset {
        b"utf8mb4" => std::str::from_utf8(bytes).is_ok(),
        b"utf8" | b"utf8mb3" => std::str::from_utf8(bytes)
            .is_ok_and(|text| text.chars().all(|letter| letter.len_utf8() < 4)),
        b"ascii" => bytes.is_ascii(),
        b"gbk" => is_made_of(GBK, bytes),
        b"gb18030" => is_made_of(GB18030, bytes),
        b"gb2312" => is_made_of(GB2312, bytes),
        b"big5" => is_made_of(BIG5, bytes),
        b"sjis" | b"cp932" => is_made_of(SJIS, bytes),
        b"ujis" | b"eucjpms" => is_made_of(UJIS, bytes),
        b"euckr" => is_made_of(EUCKR, bytes),
        b"ucs2" => bytes.len().is_multiple_of(2),
        b"utf16" => is_utf16(bytes, u16::from_be_bytes),
        b"utf16le" => is_utf16(bytes, u16::from_le_bytes),
        b"utf32" => {
            let (letters, rest) = bytes.as_chunks();
            let is_letter = |&letter| char::from_u32(u32::from_be_bytes(letter)).is_some();
            rest.is_empty() && letters.iter().all(is_letter)
        }
        _ => true,
    }
}

fn is_utf16(bytes: &[u8], number: impl Fn([u8; 2]) -> u16) -> bool {
    let (units, rest) = bytes.as_chunks();
    let units = units.iter().map(|&unit| number(unit));
    rest.is_empty() && char::decode_utf16(units).all(|letter| letter.is_ok())
}

/// True if bytes are ASCII and these letters.
fn is_made_of(letters: &[Letter], mut bytes: &[u8]) -> bool {
    let is_of = |bytes: Bytes, byte: u8| bytes.iter().any(|&(a, b)| (a..=b).contains(&byte));
    while let Some((first, rest)) = bytes.split_first() {
        if first.is_ascii() {
            bytes = rest;
            continue;
        }
        let begins = |letter: &&Letter| {
            letter.len() <= bytes.len()
                && (letter.iter().zip(bytes)).all(|(place, &byte)| is_of(place, byte))
        };
        let Some(letter) = letters.iter().find(begins) else {
            return false;
        };
        bytes = &bytes[letter.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts, and bytes that are none, in a character set.
    type Known = (
        &'static str,
        &'static [&'static [u8]],
        &'static [&'static [u8]],
    );

    const KNOWN: [Known; 17] = [
        ("utf8mb4", &[b"\xf0\x9f\x98\x80"], &[b"A\xff\xfe", b"\xe9"]),
        ("utf8mb3", &[b"\xc3\xa9"], &[b"\xf0\x9f\x98\x80"]),
        ("utf8", &[b"\xc3\xa9"], &[b"\xe9"]),
        ("ascii", &[b"A\x7f"], &[b"\x80"]),
        ("latin1", &[b"\xff\xfe"], &[]),
        (
            "gbk",
            &[b"\x81\x40a\xfe\xfe", b"\xbf\x5c"],
            &[b"\xe9", b"\x80\x40", b"\x81\x3f", b"\x81\x7f", b"\xff\x40"],
        ),
        (
            "gb18030",
            &[b"\x81\x30\x81\x30\xfe\x39\xfe\x39", b"\x81\x40"],
            &[b"\x81\x30", b"\x81\x30\x81", b"\x81\x30\x81\x40"],
        ),
        (
            "gb2312",
            &[b"\xa1\xa1\xf7\xfe"],
            &[b"\xf8\xa1", b"\xa1\xa0"],
        ),
        (
            "big5",
            &[b"\xa1\x40\xf9\xfe", b"\xa5\x5c"],
            &[b"\xa4", b"\xfa\x40", b"\xa1\x80", b"\xa1\xa0"],
        ),
        (
            "sjis",
            &[b"\x81\x40\xa1\xfc\xfc\xdf", b"\x83\x5c"],
            &[b"\x81", b"\x80", b"\xa0", b"\x81\x7f", b"\xfd\x40"],
        ),
        ("cp932", &[b"\xe0\x80"], &[b"\x9f\xfd"]),
        (
            "ujis",
            &[b"\x8e\xa1\x8f\xa1\xfe\xfe\xfe"],
            &[b"\x8f", b"\x8f\xa1", b"\x8e\xe0", b"\xa1\xa0"],
        ),
        ("eucjpms", &[b"\x8e\xdf"], &[b"\x8e"]),
        (
            "euckr",
            &[b"\x81\x41\xfe\xfe"],
            &[b"\xb0", b"\x81\x5b", b"\x81\x80"],
        ),
        ("ucs2", &[b"", b"\xd8\x00"], &[b"a"]),
        ("utf16", &[b"\xd8\x00\xdc\x00"], &[b"\xd8\x00", b"\x00"]),
        (
            "utf32",
            &[b"\x00\x10\xff\xff"],
            &[b"\x00\x11\x00\x00", b"\x00\x00"],
        ),
    ];

    #[test]
    fn text_is_what_both_servers_take() {
        for (charset, texts, others) in KNOWN {
            for text in texts {
                assert!(is_text(charset.as_bytes(), text), "{charset} {text:x?}");
            }
            for other in others {
                assert!(!is_text(charset.as_bytes(), other), "{charset} {other:x?}");
            }
        }
        assert!(is_text(b"utf16le", b"\x00\xd8\x00\xdc") && !is_text(b"utf16le", b"\x00\xd8"));
    }
}
