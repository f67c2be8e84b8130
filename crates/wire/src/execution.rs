//! Commands about one prepared statement: its id, and the types of its parameters.
//!
//! The problem: a pooler gives clients statement ids of its own and runs a client's executions on
//! whatever connection it has, where the statement has another id and may never have been told the
//! types of its parameters; an execution may leave them out when they are those of the one before.
//! The mechanism: [`statement_id`] and [`set_statement_id`] touch the four bytes behind the command
//! byte, where every such command has them; [`types`] finds the types in an execution, and
//! [`put_with_types`] writes it anew with types in it.
//!
//! Source: MariaDB's "Clientserver Protocol" pages on COM_STMT_EXECUTE, COM_STMT_BULK_EXECUTE and
//! COM_STMT_SEND_LONG_DATA, and MySQL's manual of internals ("Prepared Statements").
//!
//! Invariant: no function panics on any payload; what cannot be read is [`Types::Unreadable`] and
//! for the server to refuse.

use crate::command::{Command, put_command};
use crate::packet::HEADER_LEN;

/// MariaDB, from 10.2: instead of an id, the statement that this connection prepared last.
pub const LAST_PREPARED: u32 = u32::MAX;
/// Flags of COM_STMT_EXECUTE that ask for a cursor: read-only, for update, scrollable.
pub const CURSOR_FLAGS: u8 = 1 | 2 | 4;
/// Bulk flag: the types of the parameters follow.
const BULK_SENDS_TYPES: u8 = 128;
/// Where the id stands in a payload: behind the command byte.
const ID: std::ops::Range<usize> = 1..5;
/// Command byte, id, flags, iteration count; then the null bitmap.
const EXECUTE_FIXED: usize = 10;
/// Command byte, id, bulk flags; then the types.
const BULK_FIXED: usize = 7;

/// The types of an execution's parameters, two bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types<'a> {
    /// The statement has no parameters.
    NoParameters,
    /// They stand in the message.
    Sent(&'a [u8]),
    /// They are those of an earlier execution.
    Earlier,
    /// The message is too short for its parameters.
    Unreadable,
}

/// The id in a command about a prepared statement, if it is long enough to have one.
#[must_use]
pub fn statement_id(payload: &[u8]) -> Option<u32> {
    let id = payload.get(ID)?;
    Some(u32::from_le_bytes(id.try_into().ok()?))
}

/// Writes another id into a message (headers included) that has one.
pub fn set_statement_id(message: &mut [u8], id: u32) {
    if let Some(place) = message.get_mut(HEADER_LEN + ID.start..HEADER_LEN + ID.end) {
        place.copy_from_slice(&id.to_le_bytes());
    }
}

/// Whether a COM_STMT_EXECUTE asks for a cursor.
#[must_use]
pub fn wants_cursor(payload: &[u8]) -> bool {
    payload
        .get(ID.end)
        .is_some_and(|flags| flags & CURSOR_FLAGS != 0)
}

/// Where the byte stands that says whether types follow.
fn flag_at(command: Command, params: usize) -> usize {
    match command {
        Command::StmtBulkExecute => ID.end,
        _ => EXECUTE_FIXED + params.div_ceil(8),
    }
}

/// The types in an execution's payload, of a statement with so many parameters.
#[must_use]
pub fn types(command: Command, payload: &[u8], params: usize) -> Types<'_> {
    if params == 0 {
        return Types::NoParameters;
    }
    let at = flag_at(command, params);
    let Some(&flag) = payload.get(at) else {
        return Types::Unreadable;
    };
    let (sent, start) = match command {
        Command::StmtBulkExecute => (flag & BULK_SENDS_TYPES != 0, BULK_FIXED),
        _ => (flag == 1, at + 1),
    };
    if !sent {
        return Types::Earlier;
    }
    match payload.get(start..start + 2 * params) {
        Some(types) => Types::Sent(types),
        None => Types::Unreadable,
    }
}

/// Appends an execution that left its types out ([`Types::Earlier`]) with these types in it.
pub fn put_with_types(out: &mut Vec<u8>, command: Command, payload: &[u8], types: &[u8]) {
    let at = flag_at(command, types.len() / 2);
    let mut arguments = Vec::with_capacity(payload.len() + types.len());
    let (front, rest) = payload.split_at(payload.len().min(at));
    arguments.extend_from_slice(front.get(1..).unwrap_or_default());
    let mut rest = rest.iter().copied();
    let flag = rest.next().unwrap_or(0);
    if command == Command::StmtBulkExecute {
        arguments.push(flag | BULK_SENDS_TYPES);
        arguments.extend(rest.next());
    } else {
        arguments.push(1);
    }
    arguments.extend_from_slice(types);
    arguments.extend(rest);
    put_command(out, command, &arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXECUTE: Command = Command::StmtExecute;
    const BULK: Command = Command::StmtBulkExecute;

    #[test]
    fn an_id_is_read_and_replaced_in_place() {
        let mut message = b"\x05\0\0\0\x19\x07\0\0\0".to_vec();
        assert_eq!(statement_id(&message[HEADER_LEN..]), Some(7));
        set_statement_id(&mut message, 0x0102_0304);
        assert_eq!(message, b"\x05\0\0\0\x19\x04\x03\x02\x01");
        assert_eq!(statement_id(b"\x19\x07\0"), None);
        let mut short = b"\x02\0\0\0\x19\x07".to_vec();
        set_statement_id(&mut short, 9);
        assert_eq!(short, b"\x02\0\0\0\x19\x07");
    }

    #[test]
    fn types_are_found_behind_the_null_bitmap() {
        let head = b"\x17\x01\0\0\0\0\x01\0\0\0";
        let with = |rest: &[u8]| [&head[..], rest].concat();
        let sent = with(b"\0\x01\x08\0\xfd\0data");
        assert_eq!(types(EXECUTE, &sent, 2), Types::Sent(b"\x08\0\xfd\0"));
        assert_eq!(types(EXECUTE, &with(b"\0\0data"), 2), Types::Earlier);
        assert_eq!(types(EXECUTE, &with(b""), 0), Types::NoParameters);
        assert_eq!(types(EXECUTE, &with(b"\0"), 2), Types::Unreadable);
        assert_eq!(types(EXECUTE, &with(b"\0\x01\x08"), 2), Types::Unreadable);
        // Nine parameters have a bitmap of two bytes.
        assert_eq!(types(EXECUTE, &with(b"\0\0\0x"), 9), Types::Earlier);
    }

    #[test]
    fn types_are_put_in_where_they_were_left_out() {
        let payload = b"\x17\x01\0\0\0\0\x01\0\0\0\x02\0data";
        let mut out = Vec::new();
        put_with_types(&mut out, EXECUTE, payload, b"\x08\0\xfd\0");
        let expected = b"\x17\x01\0\0\0\0\x01\0\0\0\x02\x01\x08\0\xfd\0data";
        assert_eq!(&out[HEADER_LEN..], expected);
        assert_eq!(types(EXECUTE, expected, 2), Types::Sent(b"\x08\0\xfd\0"));
    }

    #[test]
    fn a_bulk_execution_has_its_types_behind_its_flags() {
        let payload = b"\xfa\x01\0\0\0\x80\0\x08\0\0rest";
        assert_eq!(types(BULK, payload, 1), Types::Sent(b"\x08\0"));
        let without = b"\xfa\x01\0\0\0\x40\0\0rest";
        assert_eq!(types(BULK, without, 1), Types::Earlier);
        let mut out = Vec::new();
        put_with_types(&mut out, BULK, without, b"\x08\0");
        assert_eq!(&out[HEADER_LEN..], b"\xfa\x01\0\0\0\xc0\0\x08\0\0rest");
    }

    #[test]
    fn nothing_that_is_cut_short_is_read_past_its_end() {
        let whole = b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\x08\0\xfd\0data";
        for cut in 0..whole.len() {
            for params in [1, 2, 9, 65_535] {
                let _ = types(EXECUTE, &whole[..cut], params);
                let _ = types(BULK, &whole[..cut], params);
                let mut out = Vec::new();
                put_with_types(&mut out, EXECUTE, &whole[..cut], &[8, 0]);
                put_with_types(&mut out, BULK, &whole[..cut], &[8, 0]);
            }
            let _ = (statement_id(&whole[..cut]), wants_cursor(&whole[..cut]));
        }
        assert!(wants_cursor(b"\x17\x01\0\0\0\x01"));
        assert!(!wants_cursor(b"\x17\x01\0\0\0\x08"));
    }
}
