//! HTTP/1.1 answers, read as they come (RFC 9112).
//!
//! An answer is a head and a body whose end is told by Content-Length, by chunks, or by the end of
//! the connection. The body is compared with what was expected while it passes by and is not kept;
//! of a head only what has not come whole is. Interim answers (1xx) are passed over.

use crate::target::find;
use load_core::errors::Fault;

/// The longest head that is taken, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Part of an answer in which the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    /// Bytes of body that are left.
    Length(u64),
    /// The line with a chunk's size: what has been read of it, and whether its extension has begun.
    Size(u64, bool),
    /// Bytes of the chunk that are left.
    Chunk(u64),
    /// The end of line behind a chunk.
    ChunkEnd,
    /// Behind the last chunk; whether the present line is empty so far.
    Trailer(bool),
    /// Body that ends with the connection.
    ToEnd,
}

/// An answer that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// True if the server ends the connection.
    pub(super) close: bool,
    /// True if its body is what was expected, or nothing in particular was.
    pub(super) as_expected: bool,
}

/// A body that passes by, compared with what was expected.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Body {
    differs: bool,
    /// Bytes that have come.
    came: u64,
}

impl Body {
    /// Takes some more of it.
    pub(super) fn pass(&mut self, bytes: &[u8], expected: Option<&[u8]>) {
        if let (Some(expected), false) = (expected, self.differs) {
            let from = usize::try_from(self.came).unwrap_or(usize::MAX);
            let same = expected.get(from..from.saturating_add(bytes.len()));
            self.differs = same != Some(bytes);
        }
        self.came += bytes.len() as u64;
    }

    /// Ends an answer; true if it was what was expected, to its last byte.
    pub(super) fn is_as_expected(&self, expected: Option<&[u8]>) -> bool {
        let is_short = expected.is_some_and(|body| (body.len() as u64) != self.came);
        !self.differs && !is_short
    }

    pub(super) fn came(&self) -> u64 {
        self.came
    }
}

/// Reads one answer after the other.
#[derive(Debug)]
pub(super) struct Reader {
    part: Part,
    status: u16,
    close: bool,
    body: Body,
    #[expect(
        clippy::box_collection,
        reason = "8 bytes of an idle connection instead of 24"
    )]
    head: Option<Box<Vec<u8>>>,
}

impl Reader {
    pub(super) fn new() -> Reader {
        Reader {
            part: Part::Head,
            status: 0,
            close: false,
            body: Body::default(),
            head: None,
        }
    }

    /// Takes bytes; `expected` is the body. Says how many were used, and the answer when it is
    /// over: what is left then is not its.
    ///
    /// # Errors
    /// What is no HTTP/1.1.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<(usize, Option<Answer>), Fault> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.part {
                Part::Head => match self.take_head(rest)? {
                    None => return Ok((bytes.len(), None)),
                    Some(used) => {
                        at += used;
                        if self.part == Part::Length(0) {
                            return Ok((at, Some(self.over(expected))));
                        }
                    }
                },
                Part::Length(left) => {
                    let (used, left) = self.pass(rest, left, expected);
                    at += used;
                    self.part = Part::Length(left);
                    if left == 0 {
                        return Ok((at, Some(self.over(expected))));
                    }
                }
                Part::Chunk(left) => {
                    let (used, left) = self.pass(rest, left, expected);
                    at += used;
                    self.part = if left == 0 {
                        Part::ChunkEnd
                    } else {
                        Part::Chunk(left)
                    };
                }
                Part::ToEnd => at += self.pass(rest, u64::MAX, expected).0,
                Part::Size(..) | Part::ChunkEnd | Part::Trailer(_) => {
                    at += 1;
                    if self.take_framing(rest[0])? {
                        return Ok((at, Some(self.over(expected))));
                    }
                }
            }
        }
        Ok((at, None))
    }

    /// Answer that ends with the connection, if there is one.
    pub(super) fn end(&mut self, expected: Option<&[u8]>) -> Option<Answer> {
        (self.part == Part::ToEnd).then(|| self.over(expected))
    }

    fn over(&mut self, expected: Option<&[u8]>) -> Answer {
        let answer = Answer {
            status: self.status,
            close: self.close,
            as_expected: self.body.is_as_expected(expected),
        };
        *self = Reader::new();
        answer
    }

    /// Lets up to `left` bytes of body pass by; says how many did and how many are left.
    fn pass(&mut self, bytes: &[u8], left: u64, expected: Option<&[u8]>) -> (usize, u64) {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        self.body.pass(&bytes[..count], expected);
        (count, left - count as u64)
    }

    /// One byte of what frames chunks. True when the answer is over.
    fn take_framing(&mut self, byte: u8) -> Result<bool, Fault> {
        let wrong = || Fault::protocol("the server sent a chunk without a size".to_owned());
        self.part = match (self.part, byte) {
            (Part::Size(0, _), b'\n') => Part::Trailer(true),
            (Part::Size(size, _), b'\n') => Part::Chunk(size),
            (Part::Size(size, _), b';') => Part::Size(size, true),
            (part @ Part::Size(..), b'\r' | b' ' | b'\t') => part,
            (part @ Part::Size(_, true), _) => part,
            (Part::Size(size, false), digit) => {
                let digit = char::from(digit).to_digit(16).ok_or_else(wrong)?;
                let size = size.checked_mul(16).ok_or_else(wrong)? + u64::from(digit);
                Part::Size(size, false)
            }
            (Part::ChunkEnd, b'\n') => Part::Size(0, false),
            (Part::ChunkEnd, b'\r') => Part::ChunkEnd,
            (Part::Trailer(true), b'\n') => return Ok(true),
            (Part::Trailer(_), b'\n') => Part::Trailer(true),
            (Part::Trailer(is_empty), b'\r') => Part::Trailer(is_empty),
            (Part::Trailer(_), _) => Part::Trailer(false),
            _ => return Err(wrong()),
        };
        Ok(false)
    }

    /// Takes the head; `None` when it has not come whole yet, else how many bytes of `bytes` it
    /// used.
    fn take_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        let mut kept = self.head.take();
        let before = kept.as_ref().map_or(0, |head| head.len());
        let text = match &mut kept {
            None => bytes,
            Some(head) => {
                head.extend_from_slice(bytes);
                head
            }
        };
        if let Some(end) = find(text, b"\r\n\r\n") {
            self.read_head(&text[..end])?;
            return Ok(Some(end + 4 - before));
        }
        if text.len() > HEAD_BYTES_MAX {
            let what = format!("the server sent a head of more than {HEAD_BYTES_MAX} bytes");
            return Err(Fault::protocol(what));
        }
        self.head = kept.or_else(|| Some(Box::new(bytes.to_vec())));
        Ok(None)
    }

    fn read_head(&mut self, head: &[u8]) -> Result<(), Fault> {
        let head = String::from_utf8_lossy(head);
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let wrong = || Fault::protocol(format!("'{}' is no HTTP/1.1 answer", clipped(first)));
        let rest = first.strip_prefix("HTTP/1.").ok_or_else(wrong)?;
        let mut words = rest.split(' ');
        self.close = words.next() == Some("0");
        self.status = words
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or_else(wrong)?;
        self.part = Part::ToEnd;
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(wrong)?;
            let value = value.trim();
            let has = |word| {
                value
                    .split(',')
                    .any(|part| part.trim().eq_ignore_ascii_case(word))
            };
            if name.eq_ignore_ascii_case("connection") {
                self.close = has("close") || (self.close && !has("keep-alive"));
            } else if name.eq_ignore_ascii_case("transfer-encoding") && has("chunked") {
                self.part = Part::Size(0, false);
            } else if name.eq_ignore_ascii_case("content-length") && self.part == Part::ToEnd {
                self.part = Part::Length(value.parse().map_err(|_| wrong())?);
            }
        }
        match self.status {
            100..=199 => self.part = Part::Head,
            204 | 304 => self.part = Part::Length(0),
            _ => {}
        }
        self.close |= self.part == Part::ToEnd;
        Ok(())
    }
}

fn clipped(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All answers in `text`, fed in pieces of `size` bytes.
    fn read(text: &str, size: usize, expected: Option<&str>) -> Result<Vec<Answer>, Fault> {
        let expected = expected.map(str::as_bytes);
        let (mut reader, mut answers) = (Reader::new(), Vec::new());
        for mut piece in text.as_bytes().chunks(size) {
            while !piece.is_empty() {
                let (used, answer) = reader.take(piece, expected)?;
                answers.extend(answer);
                piece = &piece[used..];
            }
        }
        answers.extend(reader.end(expected));
        Ok(answers)
    }

    fn answer(status: u16, close: bool, as_expected: bool) -> Answer {
        Answer {
            status,
            close,
            as_expected,
        }
    }

    #[test]
    fn the_end_of_a_body_is_found_however_it_is_told_and_cut() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\
            HTTP/1.1 100 Continue\r\n\r\n\
            HTTP/1.1 503 Busy\r\ntransfer-encoding: Chunked\r\n\r\n\
            A;x=1\r\n0123456789\r\n1\r\n!\r\n0\r\nTrailer: 1\r\n\r\n\
            HTTP/1.1 204 No Content\r\nConnection: Close\r\n\r\n\
            HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\
            HTTP/1.1 200 OK\r\n\r\nto the end";
        let expected = [
            answer(200, false, true),
            answer(503, false, true),
            answer(204, true, true),
            answer(200, false, true),
            answer(200, true, true),
        ];
        for size in [1, 2, 3, 10, text.len()] {
            assert_eq!(read(text, size, None).unwrap(), expected, "{size}");
        }
        let old = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n.";
        assert_eq!(read(old, 9, None).unwrap(), [answer(200, false, true)]);
    }

    #[test]
    fn a_body_is_as_expected_to_its_last_byte() {
        for (body, is_right) in [("ok", true), ("oK", false), ("o", false), ("okk", false)] {
            let length = body.len();
            let plain = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked";
            let chunked = format!("{head}\r\n\r\n{length}\r\n{body}\r\n0\r\n\r\n");
            for (text, size) in [(&plain, 1), (&plain, 500), (&chunked, 1), (&chunked, 500)] {
                let answers = read(text, size, Some("ok")).unwrap();
                assert_eq!(answers, [answer(200, false, is_right)], "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error_with_its_words() {
        for (bad, words) in [
            ("SSH-2.0-x\r\n\r\n", "'SSH-2.0-x' is no HTTP/1.1 answer"),
            ("HTTP/1.1 abc\r\n\r\n", "no HTTP/1.1 answer"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                "no HTTP/1.1 answer",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
                "without a size",
            ),
        ] {
            let fault = read(bad, 7, None).unwrap_err();
            assert!(fault.message.contains(words), "{bad:?}: {}", fault.message);
        }
        let endless = "x".repeat(HEAD_BYTES_MAX + 1);
        assert!(read(&endless, 50_000, None).is_err());
    }

    #[test]
    fn a_connection_that_waits_is_small() {
        assert!(size_of::<Reader>() <= 48);
    }
}
