//! The message at the front of what a client has sent: how long it is, and what it carries.
//!
//! A message is one packet, or several where the first is full. Only those are copied.

use std::borrow::Cow;
use wire::packet::{HEADER_LEN, PAYLOAD_MAX, join_payload};

/// The payload of a whole message; only one of several packets is copied.
pub(crate) fn payload_of(message: &[u8]) -> Cow<'_, [u8]> {
    if message.len() < HEADER_LEN + PAYLOAD_MAX {
        return Cow::Borrowed(&message[HEADER_LEN..]);
    }
    let mut joined = Vec::with_capacity(message.len());
    join_payload(message, &mut joined);
    Cow::Owned(joined)
}
