//! Messages of an upgrade: length, kind, and what the kind has.
//!
//! Invariants: a message is read whole or not at all; one that is longer than [`FRAME_BYTES_MAX`],
//! of an unknown kind or with something left over is refused. [`Frame::Hello`] and
//! [`Frame::Refused`] have their form in every version, so that two versions can tell each other.

use crate::record::{Record, RecordError};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The version of these messages and of the records in them. A process hands over only to one that
/// speaks the same.
pub const VERSION: u64 = 12;
/// The longest message, in bytes behind its header.
pub const FRAME_BYTES_MAX: usize = 32 << 20;
/// Bytes of a header: the length of the part behind it (4 bytes, the lowest first), and the kind.
const FRAME_HEADER: usize = 5;
/// The longest reason, in bytes.
const REASON_MAX: usize = 200;

/// A message; its kind is its place in this list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    /// Old to new: rules of administrators, all of them, whenever they have changed.
    Rules(Vec<u8>),
    /// New to old: it has checked its settings and has reached the server.
    Hello {
        /// Its [`VERSION`].
        version: u64,
    },
    /// Old to new, with the listeners of Unix sockets and the file of the right to accept.
    Welcome {
        /// Number of groups.
        groups: usize,
        /// Addresses where they listen.
        tcp: Vec<SocketAddr>,
        /// Paths of the Unix sockets.
        unix: Vec<PathBuf>,
    },
    /// New to old: its groups stand and wait for what they are given.
    Ready,
    /// Old to new: all is given.
    Done {
        /// Clients that have gone.
        clients: u64,
        /// The longest that one was not served, in microseconds.
        pause_us: u64,
    },
    /// Either to the other: it does not go on.
    Refused {
        /// Reason for people.
        why: String,
    },
    /// A group to its successor, with its listeners.
    Listeners {
        /// Number of clients that it has greeted.
        greeted: u32,
        /// True if it has begun to count again.
        again: bool,
    },
    /// A group to its successor: global values that sessions in the records began under.
    GlobalDefaults(Vec<u8>),
    /// A group to its successor, with a socket for each record: clients.
    Clients(Vec<ClientRecords>),
    /// A group to the one before it: it has the listeners, or those clients for which there is no
    /// reason why not.
    Taken(Vec<Option<String>>),
    /// Old to new: the right to accept can be taken. New to old: it is taken. Old to new, later: it
    /// is wanted back.
    Right,
}

/// A client as records, each with its socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRecords {
    /// The client's own.
    pub client: Vec<u8>,
    /// Record of the backend that it has.
    pub backend: Option<Vec<u8>>,
}

impl ClientRecords {
    /// Bytes of both.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.client.len() + self.backend.as_ref().map_or(0, Vec::len)
    }

    /// Sockets that come with them.
    #[must_use]
    pub fn sockets(&self) -> usize {
        1 + usize::from(self.backend.is_some())
    }
}

impl Frame {
    /// Refusal for a reason, of which the front goes along.
    #[must_use]
    pub fn refusal(why: &str) -> Frame {
        Frame::Refused { why: front(why) }
    }

    /// Answer to clients that have come: for each the reason why it is not taken, if there is one.
    #[must_use]
    pub fn taken(verdicts: Vec<Option<String>>) -> Frame {
        let cut = |why: Option<String>| why.map(|why| front(&why));
        Frame::Taken(verdicts.into_iter().map(cut).collect())
    }

    /// The message with its header.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, RecordError> {
        let frame = Record::to_bytes(self)?;
        let len = u32::try_from(frame.len() - 1).unwrap_or(u32::MAX);
        let mut out = len.to_le_bytes().to_vec();
        out.extend(frame);
        Ok(out)
    }

    /// Length of the message at the front, header included, once that is known.
    ///
    /// # Errors
    /// Longer than any.
    pub(crate) fn len_of(bytes: &[u8]) -> Result<Option<usize>, String> {
        let Some(len) = bytes.first_chunk() else {
            return Ok(None);
        };
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        match len > FRAME_BYTES_MAX {
            true => Err(format!(
                "the other process sends a message of {len} bytes, and the longest has \
                 {FRAME_BYTES_MAX}"
            )),
            false => Ok(Some(FRAME_HEADER + len)),
        }
    }

    /// Reads a message, with its header.
    ///
    /// # Errors
    /// [`RecordError::Malformed`].
    pub(crate) fn read(bytes: &[u8]) -> Result<Frame, RecordError> {
        Record::from_bytes(bytes.get(FRAME_HEADER - 1..).unwrap_or_default())
    }

    /// Descriptors that come with it; `None`: the receiver knows how many.
    #[must_use]
    pub fn descriptors(&self) -> Option<usize> {
        match self {
            Frame::Welcome { unix, .. } => Some(unix.len() + 1),
            Frame::Clients(records) => Some(records.iter().map(ClientRecords::sockets).sum()),
            // Its group has as many as it has addresses.
            Frame::Listeners { .. } => None,
            _ => Some(0),
        }
    }
}

/// The front of a reason.
fn front(why: &str) -> String {
    why[..why.floor_char_boundary(REASON_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Frame> {
        vec![
            Frame::Hello { version: VERSION },
            Frame::Welcome {
                groups: 3,
                tcp: vec![
                    "127.0.0.1:1".parse().unwrap(),
                    "[::1]:65535".parse().unwrap(),
                ],
                unix: vec!["/run/a.sock".into()],
            },
            Frame::Ready,
            Frame::Done {
                clients: 10_000,
                pause_us: 1,
            },
            Frame::refusal("no"),
            Frame::Listeners {
                greeted: 7,
                again: true,
            },
            Frame::GlobalDefaults(vec![1, 2, 3]),
            Frame::Clients(vec![
                ClientRecords::default(),
                ClientRecords {
                    client: vec![9; 300],
                    backend: Some(vec![1, 2]),
                },
            ]),
            Frame::taken(vec![None, Some("full".into())]),
            Frame::Rules(vec![4, 5]),
            Frame::Right,
        ]
    }

    #[test]
    fn messages_are_read_as_they_were_written_and_never_in_part() {
        for frame in all() {
            let mut out = frame.to_bytes().unwrap();
            assert_eq!(Frame::len_of(&out), Ok(Some(out.len())));
            assert_eq!(Frame::read(&out), Ok(frame.clone()));
            for len in 0..out.len() {
                assert!(Frame::read(&out[..len]).is_err(), "{frame:?} {len}");
            }
            out.push(0);
            assert!(Frame::read(&out).is_err(), "{frame:?}");
        }
        assert!(Frame::read(&[0, 0, 0, 0, 99]).is_err());
        assert_eq!(Frame::len_of(&[1, 0]), Ok(None));
        let max = u32::try_from(FRAME_BYTES_MAX).unwrap();
        assert!(Frame::len_of(&max.to_le_bytes()).unwrap().is_some());
        assert!(Frame::len_of(&(max + 1).to_le_bytes()).is_err());
    }

    #[test]
    fn versions_are_told_in_a_form_that_stays() {
        let hello = Frame::Hello { version: 11 }.to_bytes().unwrap();
        assert_eq!(hello, [1, 0, 0, 0, 1, 11]);
        let refused = Frame::refusal("no").to_bytes().unwrap();
        assert_eq!(refused, [3, 0, 0, 0, 5, 2, b'n', b'o']);
    }

    #[test]
    fn a_reason_is_bounded() {
        let long = "\u{e4}".repeat(1000);
        for frame in [
            Frame::refusal(&long),
            Frame::taken(vec![Some(long.clone())]),
        ] {
            let bytes = frame.to_bytes().unwrap();
            assert!(bytes.len() <= FRAME_HEADER + REASON_MAX + 4);
            assert_eq!(Frame::read(&bytes), Ok(frame));
        }
    }
}
