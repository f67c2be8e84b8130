//! Frames of HTTP/2 (RFC 9113, section 4), read as they come and written.
//!
//! The payload of DATA passes by in pieces and is not kept. Every other frame is kept until it is
//! whole, which the agreed size of a frame bounds.

/// Bytes of a frame in front of its payload.
const HEAD_BYTES: usize = 9;
/// The largest payload that was agreed on: the default of SETTINGS_MAX_FRAME_SIZE.
pub(super) const PAYLOAD_BYTES_MAX: usize = 16_384;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const ACK: u8 = 0x1;
pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
pub(super) const PRIORITY: u8 = 0x20;

/// Header of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    length: usize,
}

impl Head {
    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A part of what has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// A frame other than DATA.
    Frame(Head, &'a [u8]),
    /// Some of a body, perhaps nothing.
    Data {
        stream: u32,
        bytes: &'a [u8],
        /// Bytes of the window that it used, padding and all.
        used: u32,
        /// True for the last part of the answer.
        is_last: bool,
    },
}

/// Meaning of the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Head,
    /// A header; the bytes that are kept are the payload of the frame before.
    HeadBehind,
    Payload(Head),
    /// Length of the padding behind the data of so many bytes.
    PadLength(Head),
    /// Bytes of data, and bytes of padding.
    Data(Head, usize, usize),
}

/// Reads one frame after the other.
#[derive(Debug)]
pub(super) struct Frames {
    at: At,
    /// Bytes of a frame that is not whole: at most a head and a payload.
    kept: Vec<u8>,
}

impl Frames {
    pub(super) fn new() -> Frames {
        Frames {
            at: At::Head,
            kept: Vec::new(),
        }
    }

    /// Takes from the front of `bytes`, which are not empty; says how many were used, and what they
    /// have completed.
    ///
    /// # Errors
    /// What no peer may send, in words.
    pub(super) fn take<'a>(
        &'a mut self,
        bytes: &'a [u8],
    ) -> Result<(usize, Option<Part<'a>>), String> {
        if self.at == At::HeadBehind {
            // Also its memory: few connections are between two frames.
            (self.at, self.kept) = (At::Head, Vec::new());
        }
        match self.at {
            At::Head | At::HeadBehind => {
                let (used, whole) = self.collect(bytes, HEAD_BYTES);
                let Some(head) = whole else {
                    return Ok((used, None));
                };
                let head = read_head(head)?;
                self.kept.clear();
                // Frames without a payload are over with their heads.
                match (head.kind, head.length) {
                    (DATA, length) if head.has(PADDED) && length == 0 => {
                        return Err("a DATA frame without its padding".to_owned());
                    }
                    (DATA, _) if head.has(PADDED) => self.at = At::PadLength(head),
                    (DATA, length) => {
                        self.at = At::Data(head, length, 0);
                        if length == 0 {
                            return Ok((used, Some(self.pass(head, &[], 0, 0, 0))));
                        }
                    }
                    (_, 0) => return Ok((used, Some(Part::Frame(head, &[])))),
                    _ => self.at = At::Payload(head),
                }
                Ok((used, None))
            }
            At::Payload(head) => {
                if self.kept.is_empty() && bytes.len() >= head.length {
                    self.at = At::Head;
                    let payload = &bytes[..head.length];
                    return Ok((head.length, Some(Part::Frame(head, payload))));
                }
                let missing = head.length - self.kept.len();
                let used = missing.min(bytes.len());
                self.kept.extend_from_slice(&bytes[..used]);
                if used < missing {
                    return Ok((used, None));
                }
                self.at = At::HeadBehind;
                Ok((used, Some(Part::Frame(head, &self.kept))))
            }
            At::PadLength(head) => {
                let padding = usize::from(bytes[0]);
                let data = (head.length - 1)
                    .checked_sub(padding)
                    .ok_or("padding that is longer than its frame")?;
                let part = self.pass(head, &[], data, padding, 1);
                Ok((1, Some(part)))
            }
            At::Data(head, data, padding) => {
                let count = data.min(bytes.len());
                let skipped = padding.min(bytes.len() - count);
                let (data, padding) = (data - count, padding - skipped);
                let used = count + skipped;
                let part = self.pass(head, &bytes[..count], data, padding, used);
                Ok((used, Some(part)))
            }
        }
    }

    /// A piece of DATA, behind which so much is left.
    fn pass<'a>(
        &mut self,
        head: Head,
        bytes: &'a [u8],
        data: usize,
        padding: usize,
        used: usize,
    ) -> Part<'a> {
        let is_over = data + padding == 0;
        self.at = match is_over {
            true => At::Head,
            false => At::Data(head, data, padding),
        };
        Part::Data {
            stream: head.stream,
            bytes,
            used: u32::try_from(used).unwrap_or(u32::MAX),
            is_last: is_over && head.has(END_STREAM),
        }
    }

    /// Takes what is missing of a head; gives it when it is whole.
    fn collect<'a>(&'a mut self, bytes: &'a [u8], wanted: usize) -> (usize, Option<&'a [u8]>) {
        let used = wanted.saturating_sub(self.kept.len()).min(bytes.len());
        if used == wanted {
            return (used, Some(&bytes[..used]));
        }
        self.kept.extend_from_slice(&bytes[..used]);
        let is_whole = self.kept.len() == wanted;
        (used, is_whole.then_some(&*self.kept))
    }
}

fn read_head(head: &[u8]) -> Result<Head, String> {
    let byte = |at: usize| head.get(at).copied().unwrap_or_default();
    let length = u32::from_be_bytes([0, byte(0), byte(1), byte(2)]) as usize;
    if length > PAYLOAD_BYTES_MAX {
        return Err(format!(
            "a frame of {length} bytes where {PAYLOAD_BYTES_MAX} are the most (FRAME_SIZE_ERROR)"
        ));
    }
    Ok(Head {
        kind: byte(3),
        flags: byte(4),
        stream: u32::from_be_bytes([byte(5) & 0x7f, byte(6), byte(7), byte(8)]),
        length,
    })
}

/// Appends a frame.
pub(super) fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kind, stream, payload; whether it was the end of a stream.
    type Found = (u8, u32, Vec<u8>, bool);

    /// Reads `bytes` in pieces of `size`: frames whole, DATA put together again.
    fn read(bytes: &[u8], size: usize) -> Result<Vec<Found>, String> {
        let (mut frames, mut found, mut data) = (Frames::new(), Vec::new(), Vec::new());
        let mut window = 0;
        for mut piece in bytes.chunks(size) {
            while !piece.is_empty() {
                let (used, part) = frames.take(piece)?;
                match part {
                    None => {}
                    Some(Part::Frame(head, payload)) => {
                        found.push((head.kind, head.stream, payload.to_vec(), false));
                    }
                    Some(Part::Data {
                        stream,
                        bytes,
                        used,
                        is_last,
                    }) => {
                        data.extend_from_slice(bytes);
                        window += used;
                        if is_last {
                            found.push((DATA, stream, std::mem::take(&mut data), is_last));
                        }
                    }
                }
                piece = &piece[used..];
            }
        }
        found.push((u8::MAX, window, data, false));
        Ok(found)
    }

    #[test]
    fn frames_are_found_however_they_are_cut() {
        let mut bytes = Vec::new();
        put(&mut bytes, SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]);
        put(&mut bytes, SETTINGS, ACK, 0, &[]);
        put(&mut bytes, HEADERS, END_HEADERS, 1, b"\x88");
        put(&mut bytes, DATA, 0, 1, b"he");
        put(&mut bytes, DATA, PADDED | END_STREAM, 1, b"\x03llo\0\0\0");
        put(&mut bytes, DATA, END_STREAM, 3, &[]);
        put(&mut bytes, PING, 0, 0, b"12345678");
        let expected = [
            (SETTINGS, 0, vec![0, 3, 0, 0, 0, 100], false),
            (SETTINGS, 0, vec![], false),
            (HEADERS, 1, b"\x88".to_vec(), false),
            (DATA, 1, b"hello".to_vec(), true),
            (DATA, 3, vec![], true),
            (PING, 0, b"12345678".to_vec(), false),
            (u8::MAX, 9, vec![], false),
        ];
        for size in [1, 2, 3, 7, 10, 1000] {
            assert_eq!(read(&bytes, size).unwrap(), expected, "{size}");
        }
    }

    #[test]
    fn a_frame_is_kept_up_to_the_agreed_size() {
        let mut bytes = Vec::new();
        put(&mut bytes, PING, 0, 0, &vec![7; PAYLOAD_BYTES_MAX]);
        let found = read(&bytes, 1000).unwrap();
        assert_eq!(found[0].2.len(), PAYLOAD_BYTES_MAX);
        let mut bytes = Vec::new();
        put(&mut bytes, PING, 0, 0, &vec![7; PAYLOAD_BYTES_MAX + 1]);
        assert!(read(&bytes, 1000).unwrap_err().contains("16385 bytes"));
    }

    #[test]
    fn padding_is_within_its_frame() {
        for payload in [&b""[..], b"\x01", b"\x03ab"] {
            let mut bytes = Vec::new();
            put(&mut bytes, DATA, PADDED, 1, payload);
            assert!(read(&bytes, 1).is_err(), "{payload:?}");
        }
        let mut bytes = Vec::new();
        put(&mut bytes, DATA, PADDED | END_STREAM, 1, b"\0");
        assert_eq!(read(&bytes, 1).unwrap()[0], (DATA, 1, vec![], true));
    }
}
