//! Commands about one prepared statement: its id, and the types of its parameters.
//!
//! The problem: a pool gives clients statement ids of its own and runs a client's executions on
//! whatever connection it has, where the statement has another id and may never have been told the
//! types of its parameters; an execution may leave them out when they are those of the one before.
//! The mechanism: [`statement_id`] and [`set_statement_id`] touch the four bytes behind the command
//! byte, where every such command has them; [`types`] finds the types in an execution, and
//! [`put_with_types`] rewrites it with types in it.
//!
//! Source: MariaDB's "Clientserver Protocol" pages on COM_STMT_EXECUTE, COM_STMT_BULK_EXECUTE and
//! COM_STMT_SEND_LONG_DATA, and MySQL's manual of internals ("Prepared Statements").
//!
//! Invariant: no function panics on any payload; what cannot be read is [`Types::Unreadable`] and
//! for the server to refuse.

use crate::attributes::Form;
use crate::command::{Command, put_command};
use crate::packet::{HEADER_LEN, Reader};

/// MariaDB, from 10.2: instead of an id, the statement that this connection prepared last.
pub const LAST_PREPARED: u32 = u32::MAX;
/// Flags of COM_STMT_EXECUTE that ask for a cursor: read-only, for update, scrollable.
pub const CURSOR_FLAGS: u8 = 1 | 2 | 4;
/// Flag of COM_STMT_EXECUTE, with query attributes: a number of parameters stands there though the
/// statement has none.
pub const COUNT_AVAILABLE: u8 = 8;
/// Bulk flag: the types of the parameters follow.
const BULK_SENDS_TYPES: u8 = 128;
/// Range of the id in a payload: behind the command byte.
const ID: std::ops::Range<usize> = 1..5;
/// Command byte, id, flags, iteration count; then the null bitmap, in an attributed one behind the
/// number of parameters and attributes.
pub const EXECUTE_FIXED: usize = 10;
/// Command byte, id, number of the parameter; then its data.
const LONG_DATA_FIXED: usize = 7;
/// Command byte, id, bulk flags; then the types.
const BULK_FIXED: usize = 7;

/// Types of parameters, as in column definitions.
const TINY: u8 = 1;
const SHORT: u8 = 2;
const LONG: u8 = 3;
const LONGLONG: u8 = 8;
const INT24: u8 = 9;
const VARCHAR: u8 = 15;
const VAR_STRING: u8 = 253;
const STRING: u8 = 254;
/// Flag in a type's second byte.
const UNSIGNED: u8 = 0x80;

/// The types of an execution's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types<'a> {
    /// Statement without parameters.
    NoParameters,
    /// Types in the message.
    Sent(TypeList<'a>),
    /// Types of an earlier execution.
    Earlier,
    /// Message that is too short for its parameters, or has others.
    Unreadable,
}

/// Types, two bytes each, with or without a name behind each. A name belongs to the one execution
/// that says it, so lists that differ in names only are equal.
#[derive(Clone, Copy, Debug)]
pub struct TypeList<'a> {
    bytes: &'a [u8],
    named: bool,
}

impl<'a> TypeList<'a> {
    /// A list without names.
    #[must_use]
    pub const fn plain(bytes: &'a [u8]) -> TypeList<'a> {
        let named = false;
        TypeList { bytes, named }
    }

    /// The list of `count` types at the front of `bytes`, if they are all there.
    fn read(bytes: &'a [u8], count: usize, form: Form) -> Option<TypeList<'a>> {
        let named = form == Form::Attributed;
        if !named {
            let bytes = bytes.get(..2 * count)?;
            return Some(TypeList { bytes, named });
        }
        let mut reader = Reader::new(bytes);
        for _ in 0..count {
            reader.u16("a type").ok()?;
            reader.lenenc_bytes("a name").ok()?;
        }
        let len = bytes.len() - reader.rest().len();
        Some(TypeList {
            bytes: &bytes[..len],
            named,
        })
    }

    /// Each type.
    pub fn types(self) -> impl Iterator<Item = [u8; 2]> + 'a {
        let mut reader = Reader::new(self.bytes);
        std::iter::from_fn(move || {
            let kind = reader.u16("a type").ok()?;
            if self.named {
                reader.lenenc_bytes("a name").ok()?;
            }
            Some(kind.to_le_bytes())
        })
    }

    /// The types without names.
    #[must_use]
    pub fn to_plain(self) -> Vec<u8> {
        self.types().flatten().collect()
    }

    /// True if it is a list of these types.
    #[must_use]
    pub fn is(self, types: &[u8]) -> bool {
        match self.named {
            true => self == TypeList::plain(types),
            false => self.bytes == types,
        }
    }
}

impl PartialEq for TypeList<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.types().eq(other.types())
    }
}

impl Eq for TypeList<'_> {}

/// The id in a command about a prepared statement, if it is long enough to have one.
#[must_use]
pub fn statement_id(payload: &[u8]) -> Option<u32> {
    let id = payload.get(ID)?;
    Some(u32::from_le_bytes(id.try_into().ok()?))
}

/// True if a COM_STMT_SEND_LONG_DATA or COM_STMT_CLOSE lacks some of what it always has. Neither is
/// answered, but MySQL has an error for this; MariaDB drops such a command.
#[must_use]
pub fn is_cut_short(command: Command, payload: &[u8]) -> bool {
    match command {
        Command::StmtSendLongData => payload.len() < LONG_DATA_FIXED,
        Command::StmtClose => payload.len() < ID.end,
        _ => false,
    }
}

/// Writes another id into a message (headers included) that has one.
pub fn set_statement_id(message: &mut [u8], id: u32) {
    if let Some(place) = message.get_mut(HEADER_LEN + ID.start..HEADER_LEN + ID.end) {
        place.copy_from_slice(&id.to_le_bytes());
    }
}

/// True if a COM_STMT_EXECUTE asks for a cursor.
#[must_use]
pub fn wants_cursor(payload: &[u8]) -> bool {
    payload
        .get(ID.end)
        .is_some_and(|flags| flags & CURSOR_FLAGS != 0)
}

/// Copies a COM_STMT_EXECUTE, headers included, without its request for a cursor.
#[must_use]
pub fn without_cursor(message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    if let Some(flags) = message.get_mut(HEADER_LEN + ID.end) {
        *flags &= !CURSOR_FLAGS;
    }
    message
}

/// Offset of the byte that says that types follow, and the number of parameters and attributes of
/// the message; `None` where it is too short to say.
fn flag_at(command: Command, payload: &[u8], params: usize, form: Form) -> Option<(usize, usize)> {
    if command == Command::StmtBulkExecute {
        return Some((ID.end, params));
    }
    if form == Form::Plain {
        return Some((EXECUTE_FIXED + params.div_ceil(8), params));
    }
    let mut reader = Reader::new(payload.get(EXECUTE_FIXED..)?);
    let count = reader.lenenc("a number of parameters").ok()?;
    let at = payload.len() - reader.rest().len();
    let count = usize::try_from(count).ok()?;
    Some((at.checked_add(count.div_ceil(8))?, count))
}

/// The types in an execution's payload, of a statement with so many parameters; those of query
/// attributes, which stand behind them, are left out.
#[must_use]
pub fn types(command: Command, payload: &[u8], params: usize, form: Form) -> Types<'_> {
    if params == 0 {
        return Types::NoParameters;
    }
    let Some((at, count)) = flag_at(command, payload, params, form) else {
        return Types::Unreadable;
    };
    let Some(&flag) = payload.get(at) else {
        return Types::Unreadable;
    };
    let (sent, start) = match command {
        Command::StmtBulkExecute => (flag & BULK_SENDS_TYPES != 0, BULK_FIXED),
        _ => (flag != 0, at + 1),
    };
    // Attributes are of no earlier execution: a server refuses them without types.
    if count < params || (!sent && count > params) {
        return Types::Unreadable;
    }
    if !sent {
        return Types::Earlier;
    }
    let named = match command {
        Command::StmtBulkExecute => Form::Plain,
        _ => form,
    };
    let behind = payload.get(start..).unwrap_or_default();
    TypeList::read(behind, params, named).map_or(Types::Unreadable, Types::Sent)
}

/// The number that an execution gives a statement's only parameter, sent as an integer or as
/// digits; `earlier` is its type where the message leaves it out. Negative numbers wrap.
#[must_use]
pub fn only_number(payload: &[u8], earlier: Option<&[u8]>, form: Form) -> Option<u64> {
    let (at, count) = flag_at(Command::StmtExecute, payload, 1, form)?;
    let nulls = payload.get(at.checked_sub(count.div_ceil(8))?)?;
    if nulls & 1 != 0 {
        return None;
    }
    let behind = payload.get(at + 1..)?;
    let (kind, values) = match types(Command::StmtExecute, payload, 1, form) {
        Types::Sent(list) => {
            let all = TypeList::read(behind, count, form)?;
            (list.types().next()?, behind.get(all.bytes.len()..)?)
        }
        Types::Earlier => (earlier?.get(..2)?.try_into().ok()?, behind),
        Types::NoParameters | Types::Unreadable => return None,
    };
    let integer = |len: usize| {
        let bytes = values.get(..len)?;
        let negative = kind[1] & UNSIGNED == 0 && bytes[len - 1] & 0x80 != 0;
        let mut wide = [if negative { 0xFF } else { 0 }; 8];
        wide[..len].copy_from_slice(bytes);
        Some(u64::from_le_bytes(wide))
    };
    match kind[0] {
        TINY => integer(1),
        SHORT => integer(2),
        LONG | INT24 => integer(4),
        LONGLONG => integer(8),
        VARCHAR | VAR_STRING | STRING => {
            let digits = Reader::new(values).lenenc_bytes("digits").ok()?;
            std::str::from_utf8(digits).ok()?.parse().ok()
        }
        _ => None,
    }
}

/// Appends an execution that left its types out ([`Types::Earlier`]) with these types in it.
pub fn put_with_types(
    out: &mut Vec<u8>,
    command: Command,
    payload: &[u8],
    types: &[u8],
    form: Form,
) {
    let at = flag_at(command, payload, types.len() / 2, form).map_or(payload.len(), |(at, _)| at);
    let mut arguments = Vec::with_capacity(payload.len() + 2 * types.len());
    let (front, rest) = payload.split_at(payload.len().min(at));
    arguments.extend_from_slice(front.get(1..).unwrap_or_default());
    let mut rest = rest.iter().copied();
    let flag = rest.next().unwrap_or(0);
    if command == Command::StmtBulkExecute {
        arguments.push(flag | BULK_SENDS_TYPES);
        arguments.extend(rest.next());
        arguments.extend_from_slice(types);
    } else {
        arguments.push(1);
        for kind in types.chunks(2) {
            arguments.extend_from_slice(kind);
            if form == Form::Attributed {
                arguments.push(0);
            }
        }
    }
    arguments.extend(rest);
    put_command(out, command, &arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Form = Form::Plain;
    const ATTRIBUTED: Form = Form::Attributed;

    fn sent(bytes: &[u8]) -> Types<'_> {
        Types::Sent(TypeList::plain(bytes))
    }

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
        let whole = with(b"\0\x01\x08\0\xfd\0data");
        assert_eq!(types(EXECUTE, &whole, 2, PLAIN), sent(b"\x08\0\xfd\0"));
        assert_eq!(types(EXECUTE, &with(b"\0\0data"), 2, PLAIN), Types::Earlier);
        assert_eq!(types(EXECUTE, &with(b""), 0, PLAIN), Types::NoParameters);
        assert_eq!(types(EXECUTE, &with(b"\0"), 2, PLAIN), Types::Unreadable);
        assert_eq!(
            types(EXECUTE, &with(b"\0\x01\x08"), 2, PLAIN),
            Types::Unreadable
        );
        // Nine parameters have a bitmap of two bytes.
        assert_eq!(types(EXECUTE, &with(b"\0\0\0x"), 9, PLAIN), Types::Earlier);
    }

    #[test]
    fn types_are_put_in_where_they_were_left_out() {
        let payload = b"\x17\x01\0\0\0\0\x01\0\0\0\x02\0data";
        let mut out = Vec::new();
        put_with_types(&mut out, EXECUTE, payload, b"\x08\0\xfd\0", PLAIN);
        let expected = b"\x17\x01\0\0\0\0\x01\0\0\0\x02\x01\x08\0\xfd\0data";
        assert_eq!(&out[HEADER_LEN..], expected);
        assert_eq!(types(EXECUTE, expected, 2, PLAIN), sent(b"\x08\0\xfd\0"));
    }

    #[test]
    fn the_only_number_is_read_from_integers_and_digits() {
        let with = |rest: &[u8]| [&b"\x17\x01\0\0\0\0\x01\0\0\0"[..], rest].concat();
        let number = |rest: &[u8]| only_number(&with(rest), Some(b"\x03\0"), PLAIN);
        assert_eq!(
            number(b"\0\x01\x08\0\x05\0\0\x40\0\0\0\0"),
            Some(0x4000_0005)
        );
        assert_eq!(number(b"\0\x01\x01\0\xff"), Some(u64::MAX));
        assert_eq!(number(b"\0\x01\x01\x80\xff"), Some(255));
        assert_eq!(number(b"\0\x01\xfd\0\x0242"), Some(42));
        assert_eq!(number(b"\0\x01\xfd\0\x02x2"), None);
        // The type of an earlier execution.
        assert_eq!(number(b"\0\0\x07\0\0\0"), Some(7));
        // NULL, a float, and what is cut off.
        assert_eq!(number(b"\x01\x01\x08\0"), None);
        assert_eq!(number(b"\0\x01\x04\0\0\0\0\0"), None);
        assert_eq!(number(b"\0\x01\x08\0\x05"), None);
        // With an attribute behind the parameter.
        let attributed = with(b"\x02\0\x01\x03\0\0\xfd\0\x01k\x09\0\0\0\x01v");
        assert_eq!(only_number(&attributed, None, ATTRIBUTED), Some(9));
    }

    #[test]
    fn a_bulk_execution_has_its_types_behind_its_flags() {
        let payload = b"\xfa\x01\0\0\0\x80\0\x08\0\0rest";
        assert_eq!(types(BULK, payload, 1, PLAIN), sent(b"\x08\0"));
        let without = b"\xfa\x01\0\0\0\x40\0\0rest";
        assert_eq!(types(BULK, without, 1, PLAIN), Types::Earlier);
        let mut out = Vec::new();
        put_with_types(&mut out, BULK, without, b"\x08\0", PLAIN);
        assert_eq!(&out[HEADER_LEN..], b"\xfa\x01\0\0\0\xc0\0\x08\0\0rest");
    }

    #[test]
    fn an_attributed_execution_counts_and_names_its_parameters() {
        let types_of = |rest: &[u8], params| {
            let payload = [&b"\x17\x01\0\0\0\x08\x01\0\0\0"[..], rest].concat();
            match types(EXECUTE, &payload, params, ATTRIBUTED) {
                Types::Sent(found) => Some(found.to_plain()),
                Types::Earlier => Some(b"earlier".to_vec()),
                Types::NoParameters => Some(b"none".to_vec()),
                Types::Unreadable => None,
            }
        };
        let found = |bytes: &[u8]| Some(bytes.to_vec());
        let one = types_of(b"\x01\0\x01\xfe\x80\0\x01x", 1);
        assert_eq!(one, found(b"\xfe\x80"));
        // A name of the statement's own parameter, and an attribute behind it.
        let two = types_of(b"\x02\0\x01\x03\0\x01p\xfe\0\x01n\x07\0\0\0\x01v", 1);
        assert_eq!(two, found(b"\x03\0"));
        assert_eq!(types_of(b"\x01\0\0\x01x", 1), found(b"earlier"));
        assert_eq!(types_of(b"\x01\0\x02\xfe\0\0\x01x", 1), found(b"\xfe\0"));
        assert_eq!(
            types_of(b"\xfc\x01\0\0\x01\xfe\0\0\x01x", 1),
            found(b"\xfe\0")
        );
        assert_eq!(types_of(b"\x01\0\x01\xfe\0\x01n\x01v", 0), found(b"none"));
        // Fewer than the statement has, attributes without types, and what is cut short.
        for unread in [
            &b"\0"[..],
            b"",
            b"\x02\0\0\x01z\x01w",
            b"\x01",
            b"\x01\0",
            b"\x01\0\x01\xfe\0",
            b"\x01\0\x01\xfe\0\x05n",
            b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\0",
        ] {
            assert_eq!(types_of(unread, 1), None, "{unread:02x?}");
        }
    }

    #[test]
    fn types_are_put_in_with_names_that_are_empty() {
        let payload = b"\x17\x01\0\0\0\0\x01\0\0\0\x02\x02\0data";
        let mut out = Vec::new();
        put_with_types(&mut out, EXECUTE, payload, b"\x08\0\xfd\0", ATTRIBUTED);
        let expected = b"\x17\x01\0\0\0\0\x01\0\0\0\x02\x02\x01\x08\0\0\xfd\0\0data";
        assert_eq!(&out[HEADER_LEN..], expected);
        let found = types(EXECUTE, expected, 2, ATTRIBUTED);
        assert_eq!(found, sent(b"\x08\0\xfd\0"));
    }

    #[test]
    fn lists_are_the_same_whatever_their_names() {
        let named = TypeList::read(b"\x08\0\x02ab\xfd\0\0more", 2, ATTRIBUTED).unwrap();
        assert!(named.is(b"\x08\0\xfd\0") && !named.is(b"\x08\0\xfe\0"));
        assert!(!named.is(b"\x08\0") && !named.is(b"\x08\0\xfd\0\x01\0"));
        assert_eq!(named, TypeList::plain(b"\x08\0\xfd\0"));
        assert_eq!(named.to_plain(), b"\x08\0\xfd\0");
        assert!(TypeList::plain(b"\x08\0").is(b"\x08\0"));
    }

    #[test]
    fn nothing_that_is_cut_short_is_read_past_its_end() {
        let whole = b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\x08\0\xfd\0data";
        for cut in 0..whole.len() {
            for (params, form) in [1, 2, 9, 65_535]
                .into_iter()
                .flat_map(|params| [(params, PLAIN), (params, ATTRIBUTED)])
            {
                let _ = types(EXECUTE, &whole[..cut], params, form);
                let _ = types(BULK, &whole[..cut], params, form);
                let mut out = Vec::new();
                put_with_types(&mut out, EXECUTE, &whole[..cut], &[8, 0], form);
                put_with_types(&mut out, BULK, &whole[..cut], &[8, 0], form);
            }
            let _ = (statement_id(&whole[..cut]), wants_cursor(&whole[..cut]));
        }
        assert!(wants_cursor(b"\x17\x01\0\0\0\x01"));
        assert!(!wants_cursor(b"\x17\x01\0\0\0\x08"));
    }
}
