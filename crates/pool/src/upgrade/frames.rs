//! Messages of an upgrade: length, kind, and what the kind has.
//!
//! Invariants: a message is read whole or not at all; one that is longer than [`FRAME_BYTES_MAX`],
//! of an unknown kind or with something left over is refused.

use session::record::{Read, put_list, put_option, read_list, read_number, read_option, read_text};
use std::net::SocketAddr;
use std::path::PathBuf;
use wire::packet::{Reader, put_lenenc, put_lenenc_bytes};

/// The version of these messages and of the records in them. A process hands over only to one that
/// speaks the same.
pub(crate) const VERSION: u64 = 10;
/// The longest message.
pub(crate) const FRAME_BYTES_MAX: usize = 32 << 20;
/// Length and kind.
pub(crate) const FRAME_HEADER: usize = 5;
/// The longest reason.
const REASON_MAX: usize = 200;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// New to old: it has checked its settings and has reached the server.
    Hello { version: u64 },
    /// Old to new, with the listeners of Unix sockets and the file of the right to accept: how many
    /// groups there are, where they listen.
    Welcome {
        groups: usize,
        tcp: Vec<SocketAddr>,
        unix: Vec<PathBuf>,
    },
    /// New to old: its groups stand and wait for what they are given.
    Ready,
    /// Old to new: all is given. Clients, and the longest that one was not served.
    Done { clients: u64, pause_us: u64 },
    /// Either to the other: it does not go on, and why.
    Refused { why: String },
    /// A group to its successor, with its listeners: how many clients it has greeted, and whether
    /// it has begun to count again.
    Listeners { greeted: u32, again: bool },
    /// A group to its successor: global values that sessions in the records began under.
    GlobalDefaults(Vec<u8>),
    /// A group to its successor, with a socket for each record: clients.
    Clients(Vec<ClientRecords>),
    /// A group to the one before it: it has the listeners, or those clients for which there is no
    /// reason why not.
    Taken(Vec<Option<String>>),
    /// Old to new: rules of administrators, all of them, whenever they have changed.
    Rules(Vec<u8>),
    /// Old to new: the right to accept can be taken. New to old: it is taken. Old to new, later: it
    /// is wanted back.
    Right,
}

/// A client as records, each with its socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientRecords {
    pub(crate) client: Vec<u8>,
    /// The backend that it has.
    pub(crate) backend: Option<Vec<u8>>,
}

impl ClientRecords {
    /// Bytes of both.
    pub(crate) fn len(&self) -> usize {
        self.client.len() + self.backend.as_ref().map_or(0, Vec::len)
    }

    /// Sockets that come with them.
    pub(crate) fn sockets(&self) -> usize {
        1 + usize::from(self.backend.is_some())
    }
}

/// Why what has come is no message.
pub(crate) type Unreadable = session::record::RecordError;

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Frame::Hello { .. } => 1,
            Frame::Welcome { .. } => 2,
            Frame::Ready => 3,
            Frame::Done { .. } => 4,
            Frame::Refused { .. } => 5,
            Frame::Listeners { .. } => 6,
            Frame::GlobalDefaults(_) => 7,
            Frame::Clients(_) => 8,
            Frame::Taken(_) => 9,
            Frame::Right => 10,
            Frame::Rules(_) => 11,
        }
    }

    /// Appends it.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER]);
        match self {
            Frame::Hello { version } => put_lenenc(out, *version),
            Frame::Welcome { groups, tcp, unix } => {
                put_lenenc(out, *groups as u64);
                put_lenenc(out, tcp.len() as u64);
                for address in tcp {
                    put_lenenc_bytes(out, address.to_string().as_bytes());
                }
                put_lenenc(out, unix.len() as u64);
                for path in unix {
                    put_lenenc_bytes(out, path.as_os_str().as_encoded_bytes());
                }
            }
            Frame::Ready | Frame::Right => {}
            Frame::Done { clients, pause_us } => {
                put_lenenc(out, *clients);
                put_lenenc(out, *pause_us);
            }
            Frame::Refused { why } => put_lenenc_bytes(out, cut(why)),
            Frame::Listeners { greeted, again } => {
                put_lenenc(out, u64::from(*greeted));
                out.push(u8::from(*again));
            }
            Frame::GlobalDefaults(bytes) | Frame::Rules(bytes) => out.extend_from_slice(bytes),
            Frame::Clients(records) => {
                put_list(out, records.iter(), |out, records| {
                    put_lenenc_bytes(out, &records.client);
                    put_option(out, records.backend.as_deref(), put_lenenc_bytes);
                });
            }
            Frame::Taken(verdicts) => {
                put_lenenc(out, verdicts.len() as u64);
                for verdict in verdicts {
                    put_lenenc_bytes(out, verdict.as_deref().map_or(b"", cut));
                }
            }
        }
        let len = u32::try_from(out.len() - start - FRAME_HEADER).unwrap_or(u32::MAX);
        out[start..start + 4].copy_from_slice(&len.to_le_bytes());
        out[start + 4] = self.kind();
    }

    /// Length of the message at the front, header included, once that is known.
    ///
    /// # Errors
    /// Longer than any.
    pub(crate) fn len_of(bytes: &[u8]) -> Result<Option<usize>, Unreadable> {
        let Some(len) = bytes.first_chunk() else {
            return Ok(None);
        };
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        if len > FRAME_BYTES_MAX {
            return Err(Unreadable::NotCarried(
                "a message of the other process is too long",
            ));
        }
        Ok(Some(FRAME_HEADER + len))
    }

    /// Reads a message, with its header.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(bytes: &[u8]) -> Read<Frame> {
        let mut reader = Reader::new(bytes);
        reader.u32("a length")?;
        let kind = reader.u8("a kind of message")?;
        let reader = &mut reader;
        let frame = match kind {
            1 => Frame::Hello {
                version: reader.lenenc("a version")?,
            },
            2 => Frame::Welcome {
                groups: read_number(reader, "a number of groups")?,
                tcp: read_list(reader, "addresses", |reader| {
                    let text = read_text(reader, "an address")?;
                    let text = std::str::from_utf8(&text).ok();
                    let address = text.and_then(|text| text.parse().ok());
                    address.ok_or_else(|| reader.malformed("an address").into())
                })?,
                unix: read_list(reader, "paths", |reader| {
                    let text = read_text(reader, "a path")?;
                    use std::os::unix::ffi::OsStringExt;
                    Ok(std::ffi::OsString::from_vec(text.into_vec()).into())
                })?,
            },
            3 => Frame::Ready,
            4 => Frame::Done {
                clients: reader.lenenc("a number of clients")?,
                pause_us: reader.lenenc("a time")?,
            },
            5 => Frame::Refused {
                why: words(&read_text(reader, "a reason")?),
            },
            6 => Frame::Listeners {
                greeted: read_number(reader, "a number of clients")?,
                again: reader.u8("whether it counts again")? != 0,
            },
            7 => Frame::GlobalDefaults(reader.rest().to_vec()),
            8 => Frame::Clients(read_list(reader, "records", |reader| {
                Ok(ClientRecords {
                    client: reader.lenenc_bytes("a record")?.to_vec(),
                    backend: read_option(reader, "a backend", |reader| {
                        Ok(reader.lenenc_bytes("a record")?.to_vec())
                    })?,
                })
            })?),
            9 => Frame::Taken(read_list(reader, "verdicts", |reader| {
                let why = read_text(reader, "a reason")?;
                Ok((!why.is_empty()).then(|| words(&why)))
            })?),
            10 => Frame::Right,
            11 => Frame::Rules(reader.rest().to_vec()),
            _ => return Err(reader.malformed("a kind of message").into()),
        };
        match reader.is_empty() {
            true => Ok(frame),
            false => Err(reader.malformed("the end of a message").into()),
        }
    }

    /// Descriptors that come with it.
    pub(crate) fn descriptors(&self) -> Option<usize> {
        match self {
            Frame::Welcome { unix, .. } => Some(unix.len() + 1),
            Frame::Clients(records) => Some(records.iter().map(ClientRecords::sockets).sum()),
            // Its group has as many as it has addresses.
            Frame::Listeners { .. } => None,
            _ => Some(0),
        }
    }
}

fn words(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// The front of a reason.
fn cut(why: &str) -> &[u8] {
    &why.as_bytes()[..why.len().min(REASON_MAX)]
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
            Frame::Refused { why: "no".into() },
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
            Frame::Taken(vec![None, Some("full".into())]),
            Frame::Rules(vec![4, 5]),
            Frame::Right,
        ]
    }

    #[test]
    fn messages_are_read_as_they_were_written_and_never_in_part() {
        for frame in all() {
            let mut out = Vec::new();
            frame.put(&mut out);
            assert_eq!(Frame::len_of(&out), Ok(Some(out.len())));
            assert_eq!(Frame::read(&out), Ok(frame.clone()));
            if !matches!(frame, Frame::GlobalDefaults(_) | Frame::Rules(_)) {
                for len in FRAME_HEADER..out.len() {
                    assert!(Frame::read(&out[..len]).is_err(), "{frame:?} {len}");
                }
                out.push(0);
                assert!(Frame::read(&out).is_err(), "{frame:?}");
            }
        }
        assert!(Frame::read(&[0, 0, 0, 0, 99]).is_err());
        assert_eq!(Frame::len_of(&[1, 0]), Ok(None));
        let max = u32::try_from(FRAME_BYTES_MAX).unwrap();
        assert!(Frame::len_of(&max.to_le_bytes()).unwrap().is_some());
        assert!(Frame::len_of(&(max + 1).to_le_bytes()).is_err());
    }

    #[test]
    fn a_reason_is_bounded() {
        let mut out = Vec::new();
        Frame::Refused {
            why: "x".repeat(1000),
        }
        .put(&mut out);
        assert!(out.len() <= FRAME_HEADER + REASON_MAX + 3);
    }
}
