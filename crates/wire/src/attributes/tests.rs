//! Headers with their bytes written out, as MySQL 9.7 takes or refuses them.

use super::*;

const ATTRIBUTED: Form = Form::Attributed;

/// The text behind the header, or `None` where that is malformed.
fn text(arguments: &[u8]) -> Option<&[u8]> {
    let len = header_len(ATTRIBUTED, arguments).ok()?;
    Some(&arguments[len..])
}

#[test]
fn a_form_is_a_capability() {
    assert_eq!(Form::of(0x0001_0200), Form::Plain);
    assert_eq!(Form::of(0x0800_0200), Form::Attributed);
}

#[test]
fn a_plain_text_has_no_header() {
    for sql in [&b"SELECT 1"[..], b"", b"\0\x01x"] {
        assert_eq!(header_len(Form::Plain, sql), Ok(0));
    }
}

#[test]
fn the_header_stands_there_without_attributes_too() {
    assert_eq!(text(b"\0\x01SELECT 1"), Some(&b"SELECT 1"[..]));
    assert_eq!(text(b"\0\x01"), Some(&b""[..]));
    // Longer forms of the same numbers.
    assert_eq!(text(b"\xfc\0\0\x01SELECT 1"), Some(&b"SELECT 1"[..]));
    assert_eq!(text(b"\0\xfc\x01\0SELECT 1"), Some(&b"SELECT 1"[..]));
}

#[test]
fn names_and_values_are_passed_over() {
    let one = b"\x01\x01\0\x01\xfe\0\x01n\x01vSELECT 1";
    assert_eq!(text(one), Some(&b"SELECT 1"[..]));
    let null = b"\x01\x01\x01\x01\xfe\0\x01nSELECT 1";
    assert_eq!(text(null), Some(&b"SELECT 1"[..]));
    // Any flag but 0 says that types follow; bits of the bitmap that nobody has mean nothing.
    let odd = b"\x01\x01\xfe\x02\xfe\0\x01n\x01vSELECT 1";
    assert_eq!(text(odd), Some(&b"SELECT 1"[..]));
    let long = b"\x01\x01\0\x01\xfe\0\xfc\x01\0n\xfc\x01\0vSELECT 1";
    assert_eq!(text(long), Some(&b"SELECT 1"[..]));
    let two = b"\x02\x01\x01\x01\xfd\0\x01a\x08\x80\x01b\x01\0\0\0\0\0\0\0DO 2";
    assert_eq!(text(two), Some(&b"DO 2"[..]), "the first is NULL");
    let mut nine = b"\x09\x01\0\x01\x01".to_vec();
    nine.extend_from_slice(&b"\x01\0\x01x".repeat(9));
    nine.extend_from_slice(b"\x01\x02\x03\x04\x05\x06\x07\x08DO 9");
    assert_eq!(text(&nine), Some(&b"DO 9"[..]), "a bitmap of two bytes");
}

#[test]
fn each_type_has_its_width() {
    let with = |kind: u8, value: &[u8]| {
        let mut out = vec![1, 1, 0, 1, kind, 0, 1, b'n'];
        out.extend_from_slice(value);
        out.extend_from_slice(b"DO 1");
        text(&out).map(<[u8]>::to_vec)
    };
    let found = Some(b"DO 1".to_vec());
    for (kind, width) in [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8)] {
        assert_eq!(
            with(kind, &b"\xfb\xfb\xfb\xfb\xfb\xfb\xfb\xfb"[..width]),
            found
        );
    }
    for kind in [0, 6, 9, 13, 15, 16, 245, 246, 249, 252, 253, 254, 255] {
        assert_eq!(with(kind, b"\x03abc"), found, "type {kind}");
    }
    for (kind, lengths) in [
        (7, &[0, 4, 7, 11][..]),
        (10, &[0, 4]),
        (11, &[0, 8, 12]),
        (12, &[0, 4, 7, 11]),
    ] {
        for len in 0..=13u8 {
            let mut value = vec![len];
            value.resize(1 + usize::from(len), 1);
            let fits = lengths.contains(&len);
            assert_eq!(with(kind, &value) == found, fits, "type {kind}, {len}");
            assert_eq!(with(kind, &value).is_some(), fits, "type {kind}, {len}");
        }
    }
    assert_eq!(with(244, b"\x03abc"), None);
}

#[test]
fn what_the_server_refuses_is_malformed() {
    for refused in [
        &b""[..],
        b"\0",
        b"\0\0SELECT 1",
        b"\0\x02SELECT 1",
        b"SELECT 1",
        b"\xfb\x01SELECT 1",
        b"\xff\x01SELECT 1",
        b"\x01\x01",
        b"\x01\x01\0",
        b"\x01\x01\0\0SELECT 1",
        b"\x01\x01\0\0\xfe\0\x01n\x01vSELECT 1",
        b"\x01\x01\0\x01\xfe\0\xfan\x01vSELECT 1",
        b"\x01\x01\0\x01\xfe\0\x01n\xfavSELECT 1",
        b"\x01\x01\0\x01\xfe\0\x01n\xffSELECT 1",
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01SELECT 1",
        b"\xfd\xff\xff\x01\x01SELECT 1",
    ] {
        assert_eq!(text(refused), None, "{refused:02x?}");
    }
}

#[test]
fn nothing_that_is_cut_short_is_read_past_its_end() {
    let whole = b"\x02\x01\0\x01\xfe\0\x01n\x0c\0\x02at\x03abc\x04\xe9\x07\x01\x01DO 1";
    assert_eq!(text(whole), Some(&b"DO 1"[..]));
    for cut in 0..whole.len() - 4 {
        assert_eq!(text(&whole[..cut]), None);
    }
}

#[test]
fn a_text_of_our_own_has_the_form_of_its_connection() {
    let mut out = Vec::new();
    put_query(&mut out, Form::Plain, b"DO 1");
    assert_eq!(out, b"\x05\0\0\0\x03DO 1");
    out.clear();
    put_query(&mut out, ATTRIBUTED, b"DO 1");
    assert_eq!(out, b"\x07\0\0\0\x03\0\x01DO 1");
    out.clear();
    put_reworded(&mut out, b"\x01\x01\0\x01\xfe\0\x01n\x01v", b"DO 2");
    assert_eq!(out, b"\x0f\0\0\0\x03\x01\x01\0\x01\xfe\0\x01n\x01vDO 2");
}

#[test]
fn a_long_text_takes_several_packets() {
    let sql = vec![b'x'; PAYLOAD_MAX - 3];
    let mut out = Vec::new();
    put_query(&mut out, ATTRIBUTED, &sql);
    assert_eq!(out[..7], [0xFF, 0xFF, 0xFF, 0, 3, 0, 1]);
    assert_eq!(out[out.len() - 4..], [0, 0, 0, 1]);
}
