//! Bytes on their way to a backend.
//!
//! The problem: a command of 60 MiB that is copied to the backend's buffer costs a group tens of
//! milliseconds, nearly all of it for memory that is touched for the first time. The mechanism:
//! short commands are appended to one buffer; a long one is not copied, its client's buffer is
//! shared ([`Outgoing::push_shared`]) and given back when its bytes have been written.
//!
//! Invariant: bytes leave in the order in which they were pushed.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Largest buffer that is kept once it is empty, and most bytes behind those that are written that
/// are moved to its front.
const KEPT_MAX: usize = 64 * 1024;

/// Bytes of a local file that wait for the server to take them, besides one packet; then no more is
/// read from the client.
pub(crate) const FED_MAX: usize = 256 * 1024;

/// Part behind the first buffer.
#[derive(Debug)]
enum Part {
    Copied(Vec<u8>),
    Shared(Arc<Vec<u8>>, Range<usize>),
}

/// Bytes that are to be written to a backend.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    /// Bytes of it that are written.
    sent: usize,
    behind: VecDeque<Part>,
}

impl Outgoing {
    /// Bytes that are not written.
    pub(crate) fn len(&self) -> usize {
        let behind = self.behind.iter().map(|part| match part {
            Part::Copied(bytes) => bytes.len(),
            Part::Shared(_, range) => range.len(),
        });
        self.bytes.len() - self.sent + behind.sum::<usize>()
    }

    /// True if all is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.len() == self.sent && self.behind.is_empty()
    }

    /// Bytes of memory that it takes.
    pub(crate) fn capacity(&self) -> usize {
        let behind = self.behind.iter().map(|part| match part {
            Part::Copied(bytes) => bytes.capacity(),
            Part::Shared(bytes, _) => bytes.capacity(),
        });
        self.bytes.capacity() + behind.sum::<usize>()
    }

    /// The buffer at the end, to append to.
    pub(crate) fn last(&mut self) -> &mut Vec<u8> {
        if let Some(Part::Shared(..)) = self.behind.back() {
            self.behind.push_back(Part::Copied(Vec::new()));
        }
        match self.behind.back_mut() {
            Some(Part::Copied(bytes)) => bytes,
            _ => &mut self.bytes,
        }
    }

    /// Appends a part of a buffer without copying it.
    pub(crate) fn push_shared(&mut self, bytes: Arc<Vec<u8>>, range: Range<usize>) {
        if range.start < range.end {
            self.behind.push_back(Part::Shared(bytes, range));
        }
    }

    /// Bytes that are written next: as many as lie in one piece.
    pub(crate) fn front(&self) -> &[u8] {
        match self.behind.front() {
            Some(Part::Shared(bytes, range)) if self.sent == self.bytes.len() => {
                bytes.get(range.clone()).unwrap_or_default()
            }
            _ => &self.bytes[self.sent..],
        }
    }

    /// Drops this many written bytes of [`Outgoing::front`].
    pub(crate) fn written(&mut self, len: usize) {
        if self.sent < self.bytes.len() {
            self.sent += len;
        } else if let Some(Part::Shared(_, range)) = self.behind.front_mut() {
            range.start += len;
            if range.start >= range.end {
                self.behind.pop_front();
            }
        }
        let left = self.bytes.len() - self.sent;
        if left == 0 {
            self.sent = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_MAX {
                self.bytes = Vec::new();
            }
            if let Some(Part::Copied(bytes)) = self.behind.front_mut() {
                self.bytes = std::mem::take(bytes);
                self.behind.pop_front();
            }
        } else if left <= self.sent.min(KEPT_MAX) {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes all of it in pieces of `step` bytes.
    fn drain(outgoing: &mut Outgoing, step: usize) -> Vec<u8> {
        let mut written = Vec::new();
        while !outgoing.is_empty() {
            let piece = outgoing.front();
            let piece = &piece[..piece.len().min(step)];
            assert!(!piece.is_empty(), "it is not empty and has nothing");
            written.extend_from_slice(piece);
            let (len, before) = (piece.len(), outgoing.len());
            outgoing.written(len);
            assert_eq!(outgoing.len(), before - len);
        }
        written
    }

    #[test]
    fn bytes_leave_in_their_order_in_pieces_of_any_length() {
        for step in [1, 2, 3, 5, 100] {
            let mut outgoing = Outgoing::default();
            outgoing.last().extend_from_slice(b"set;");
            outgoing.push_shared(Arc::new(b"0123456789".to_vec()), 2..8);
            outgoing.push_shared(Arc::new(b"abc".to_vec()), 3..3);
            outgoing.push_shared(Arc::new(b"abcdef".to_vec()), 0..3);
            outgoing.last().extend_from_slice(b"ping");
            outgoing.last().extend_from_slice(b"quit");
            assert_eq!(outgoing.len(), 21);
            assert_eq!(drain(&mut outgoing, step), b"set;234567abcpingquit");
            outgoing.last().extend_from_slice(b"again");
            assert_eq!(drain(&mut outgoing, step), b"again");
        }
    }

    #[test]
    fn a_long_command_is_not_copied_and_its_buffer_is_given_back() {
        let bytes = Arc::new(vec![7; 1 << 20]);
        let mut outgoing = Outgoing::default();
        outgoing.push_shared(bytes.clone(), 0..1 << 20);
        assert!(std::ptr::eq(outgoing.front(), &bytes[..]));
        assert_eq!(outgoing.capacity(), bytes.capacity(), "it counts");
        outgoing.written((1 << 20) - 1);
        assert_eq!(Arc::strong_count(&bytes), 2);
        outgoing.written(1);
        assert_eq!(Arc::strong_count(&bytes), 1);
        assert!(outgoing.is_empty());
    }

    #[test]
    fn no_more_than_a_short_rest_is_moved_to_the_front() {
        let mut outgoing = Outgoing::default();
        outgoing.last().resize(3 * KEPT_MAX, 1);
        outgoing.written(2 * KEPT_MAX - 1);
        assert_eq!(outgoing.sent, 2 * KEPT_MAX - 1, "too long to be moved");
        outgoing.written(1);
        assert_eq!((outgoing.sent, outgoing.len()), (0, KEPT_MAX));
    }
}
