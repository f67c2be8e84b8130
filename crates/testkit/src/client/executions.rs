//! The arguments of executions, byte by byte.
//!
//! Parameters are texts or NULL, their types are sent along or left out, and where query attributes
//! were agreed on these stand behind the parameters. One execution ends before its value.

use crate::talk::VAR_STRING;
use wire::attributes::Form;
use wire::execution::COUNT_AVAILABLE;

/// A number of 8 bytes.
const LONGLONG: u8 = 8;

/// The arguments of COM_STMT_EXECUTE where query attributes were agreed on.
pub(super) fn attributed(
    id: u32,
    (params, cursor, typed): (&[Option<&[u8]>], bool, bool),
    attributes: &[(String, String)],
) -> Vec<u8> {
    let counts = !attributes.is_empty();
    let mut out = id.to_le_bytes().to_vec();
    out.push(u8::from(cursor) | (u8::from(counts) * COUNT_AVAILABLE));
    out.extend_from_slice(&1u32.to_le_bytes());
    let own = attributes
        .iter()
        .map(|(name, value)| (&name[..], Some(value.as_bytes())));
    let all: Vec<_> = params.iter().map(|param| ("", *param)).chain(own).collect();
    if all.is_empty() {
        return out;
    }
    out.push(u8::try_from(all.len()).expect("a few"));
    let mut nulls = vec![0u8; all.len().div_ceil(8)];
    for (index, (_, value)) in all.iter().enumerate() {
        nulls[index / 8] |= u8::from(value.is_none()) << (index % 8);
    }
    out.extend_from_slice(&nulls);
    out.push(u8::from(typed));
    for (name, _) in all.iter().filter(|_| typed) {
        out.extend_from_slice(&[VAR_STRING, 0]);
        wire::packet::put_lenenc_bytes(&mut out, name.as_bytes());
    }
    for value in all.iter().filter_map(|(_, value)| *value) {
        wire::packet::put_lenenc_bytes(&mut out, value);
    }
    out
}

/// The arguments of COM_STMT_EXECUTE with texts (or NULL) as parameters.
#[must_use]
pub fn execution(id: u32, params: &[Option<&[u8]>], cursor: bool) -> Vec<u8> {
    let types = [VAR_STRING, 0].repeat(params.len());
    execution_of(id, params, cursor, Some(&types))
}

/// An execution with the types of the one before.
#[must_use]
pub fn execution_again(id: u32, params: &[Option<&[u8]>]) -> Vec<u8> {
    execution_of(id, params, false, None)
}

/// The arguments of COM_STMT_EXECUTE with the type of one parameter, a number of 8 bytes, and one
/// byte of its value: no server can read that.
#[must_use]
pub fn cut_execution(id: u32, form: Form) -> Vec<u8> {
    let behind = match form {
        Form::Plain => &[0, 1, LONGLONG, 0, 7][..],
        // The count of parameters, and an empty name.
        Form::Attributed => &[1, 0, 1, LONGLONG, 0, 0, 7],
    };
    [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0], behind].concat()
}

/// The arguments of MariaDB's COM_STMT_BULK_EXECUTE with texts (or NULL) as parameters; `typed`
/// sends their types along.
///
/// # Panics
/// When there is no row.
#[must_use]
pub fn bulk_execution(id: u32, typed: bool, rows: &[&[Option<&[u8]>]]) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.extend_from_slice(&[if typed { 128 } else { 0 }, 0]);
    if typed {
        out.extend_from_slice(&[VAR_STRING, 0].repeat(rows[0].len()));
    }
    for value in rows.iter().copied().flatten() {
        out.push(u8::from(value.is_none()));
        if let Some(text) = value {
            wire::packet::put_lenenc_bytes(&mut out, text);
        }
    }
    out
}

pub(super) fn execution_of(
    id: u32,
    params: &[Option<&[u8]>],
    cursor: bool,
    types: Option<&[u8]>,
) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.push(u8::from(cursor));
    out.extend_from_slice(&1u32.to_le_bytes());
    if params.is_empty() {
        return out;
    }
    let mut nulls = vec![0u8; params.len().div_ceil(8)];
    for (index, param) in params.iter().enumerate() {
        nulls[index / 8] |= u8::from(param.is_none()) << (index % 8);
    }
    out.extend_from_slice(&nulls);
    out.push(u8::from(types.is_some()));
    out.extend_from_slice(types.unwrap_or_default());
    for param in params.iter().flatten() {
        wire::packet::put_lenenc_bytes(&mut out, param);
    }
    out
}
