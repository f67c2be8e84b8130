//! Executions of prepared statements, and texts with query attributes: ids and types are put in,
//! everything else stays.
//!
//! A value that moves by one byte is another value in somebody's table, so what is written again is
//! compared with what came, byte for byte. A header that is read as longer or shorter than it is
//! would hide a part of a statement from the pool.

use wire::attributes::{Form, header_len, put_query, put_reworded};
use wire::command::Command;
use wire::execution::{
    TypeList, Types, put_with_types, set_statement_id, statement_id, types, wants_cursor,
};
use wire::packet::{HEADER_LEN, join_payload, put_packet};

/// Reads one byte for the command and its form, one for the number of parameters, then the payload.
pub(super) fn execution(data: &[u8]) {
    let [how, params, payload @ ..] = data else {
        return;
    };
    let command = match how & 1 {
        0 => Command::StmtExecute,
        _ => Command::StmtBulkExecute,
    };
    let form = match how & 8 {
        0 => Form::Plain,
        _ => Form::Attributed,
    };
    // Bitmaps of one byte, of several, and of more than any message has.
    let params = match how & 6 {
        6 => usize::from(*params) * 257,
        _ => usize::from(*params),
    };
    ids(payload);
    let _ = wants_cursor(payload);
    match types(command, payload, params, form) {
        Types::NoParameters => assert_eq!(params, 0),
        Types::Sent(found) => {
            assert_eq!(found.types().count(), params);
            assert!(found.is(&found.to_plain()));
        }
        Types::Earlier => with_types(command, payload, params, form),
        Types::Unreadable if form == Form::Attributed => {}
        Types::Unreadable => {
            let fixed = 10 + params.div_ceil(8) + 1 + 2 * params;
            assert!(payload.len() < fixed, "long enough for its types");
        }
    }
}

/// Attributes behind the command byte of a COM_QUERY, where query attributes were agreed on.
pub(super) fn attributes(data: &[u8]) {
    assert_eq!(header_len(Form::Plain, data), Ok(0));
    let Ok(len) = header_len(Form::Attributed, data) else {
        return;
    };
    let (header, sql) = data.split_at(len);
    assert!(header.len() >= 2, "a number of attributes and one of sets");
    // What stands behind the header has no part in where it ends, and nothing of it can miss.
    assert_eq!(header_len(Form::Attributed, header), Ok(len));
    assert_eq!(
        header_len(Form::Attributed, &[header, b"\xfe\xff"].concat()),
        Ok(len)
    );
    for cut in 0..len {
        assert!(
            header_len(Form::Attributed, &header[..cut]).is_err(),
            "cut at {cut}"
        );
    }
    let mut out = Vec::new();
    put_reworded(&mut out, header, sql);
    assert_eq!(out[HEADER_LEN..], [&[3], data].concat());
    out.clear();
    put_query(&mut out, Form::Attributed, sql);
    assert_eq!(header_len(Form::Attributed, &out[HEADER_LEN + 1..]), Ok(2));
    assert_eq!(&out[HEADER_LEN + 3..], sql);
}

fn ids(payload: &[u8]) {
    let mut message = Vec::new();
    put_packet(&mut message, 0, payload);
    let before = message.clone();
    set_statement_id(&mut message, 0x0102_0304);
    match statement_id(payload) {
        None => assert_eq!(message, before),
        Some(id) => {
            assert_eq!(statement_id(&message[HEADER_LEN..]), Some(0x0102_0304));
            set_statement_id(&mut message, id);
            assert_eq!(message, before, "an id takes four bytes and no more");
        }
    }
}

/// Puts types in, and takes them out again.
fn with_types(command: Command, payload: &[u8], params: usize, form: Form) {
    let put: Vec<u8> = (0..2 * params).map(|n| n.to_le_bytes()[0]).collect();
    let mut message = Vec::new();
    put_with_types(&mut message, command, payload, &put, form);
    let mut written = Vec::new();
    join_payload(&message, &mut written);
    assert_eq!(written[0], command.byte());
    let named = form == Form::Attributed && command == Command::StmtExecute;
    let longer = put.len() + if named { params } else { 0 };
    // The number of parameters may take more bytes than it needs.
    let count = payload.len() + longer - written.len();
    assert_eq!(count, 0, "types, empty names, and nothing else");
    let counted = match (named, payload.get(10)) {
        (false, _) => 0,
        (true, Some(0xFC)) => 3,
        (true, Some(0xFD)) => 4,
        (true, Some(0xFE)) => 9,
        (true, _) => 1,
    };
    let (flag, start) = match command {
        Command::StmtBulkExecute => (5, 7),
        _ => (
            10 + counted + params.div_ceil(8),
            11 + counted + params.div_ceil(8),
        ),
    };
    if written.len() < start + longer {
        assert!(command == Command::StmtBulkExecute && payload.len() < 7);
        return;
    }
    let again = types(command, &written, params, form);
    assert_eq!(again, Types::Sent(TypeList::plain(&put)));
    written.drain(start..start + longer);
    written[0] = payload[0];
    written[flag] = payload[flag];
    assert_eq!(written, payload, "only types and their flag are put in");
}
