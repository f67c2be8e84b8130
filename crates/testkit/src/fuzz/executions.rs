//! Executions of prepared statements: ids and types are put in, everything else stays.
//!
//! A value that moves by one byte is another value in somebody's table, so what is written anew is
//! compared with what came, byte for byte.

use wire::command::Command;
use wire::execution::{Types, put_with_types, set_statement_id, statement_id, types, wants_cursor};
use wire::packet::{HEADER_LEN, join_payload, put_packet};

/// One byte for the command, one for the number of parameters, then the payload.
pub(super) fn execution(data: &[u8]) {
    let [how, params, payload @ ..] = data else {
        return;
    };
    let command = match how & 1 {
        0 => Command::StmtExecute,
        _ => Command::StmtBulkExecute,
    };
    // Bitmaps of one byte, of several, and of more than any message has.
    let params = match how & 6 {
        6 => usize::from(*params) * 257,
        _ => usize::from(*params),
    };
    ids(payload);
    let _ = wants_cursor(payload);
    match types(command, payload, params) {
        Types::NoParameters => assert_eq!(params, 0),
        Types::Sent(found) => assert_eq!(found.len(), 2 * params),
        Types::Earlier => with_types(command, payload, params),
        Types::Unreadable => {
            let fixed = 10 + params.div_ceil(8) + 1 + 2 * params;
            assert!(payload.len() < fixed, "long enough for its types");
        }
    }
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
fn with_types(command: Command, payload: &[u8], params: usize) {
    let put: Vec<u8> = (0..2 * params).map(|n| n.to_le_bytes()[0]).collect();
    let mut message = Vec::new();
    put_with_types(&mut message, command, payload, &put);
    let mut written = Vec::new();
    join_payload(&message, &mut written);
    assert_eq!(written[0], command.byte());
    let (flag, start) = match command {
        Command::StmtBulkExecute => (5, 7),
        _ => (10 + params.div_ceil(8), 11 + params.div_ceil(8)),
    };
    if written.len() < start + put.len() {
        assert!(command == Command::StmtBulkExecute && payload.len() < 7);
        return;
    }
    assert_eq!(types(command, &written, params), Types::Sent(&put));
    written.drain(start..start + put.len());
    assert_eq!(written.len(), payload.len());
    written[0] = payload[0];
    written[flag] = payload[flag];
    assert_eq!(written, payload, "only types and their flag are put in");
}
