//! Bytes that a client has sent and that are not handled, and the class of the text at their front.
//!
//! Short commands are read where they are handled. The text of a long one is read by a thread that
//! is no group's (`text_reading.rs`): until that has told what it found, the command counts as one
//! that has not come whole.
//!
//! Invariants: what is known of a text is dropped with the command it belongs to; a reader's answer
//! counts only for the buffer that it has read.

use crate::client::buffers::room::{make_room, room_for};
use crate::client::buffers::text_reading::TextRead;
use sql::lex::LexMode;
use sql::name_set::NameSet;
use sql::text::Seen;
use std::ops::{Deref, Range};
use std::sync::{Arc, Weak};
use wire::packet::{Frame, frame};
use wire::wiped::wipe_all;

/// State of the text at the front.
#[derive(Debug, Default)]
enum Text {
    /// Text that is short, or for which nobody has asked.
    #[default]
    Unread,
    /// Text that a reader has, and with it all bytes.
    UnderWay(Arc<Vec<u8>>),
    Read(Box<TextRead>),
}

/// Room for a login that has not come whole: for most of them.
const LOGIN_ROOM_MIN: usize = 512;

/// Bytes received and not handled.
#[derive(Debug, Default)]
pub(crate) struct Received {
    bytes: Vec<u8>,
    text: Text,
    /// True if a login is in it, or was: what is used of it is overwritten.
    has_password: bool,
}

/// Bytes of a client that are not handled, in a box that is there only while there are any.
#[derive(Debug, Default)]
pub(crate) struct Input(Option<Box<Received>>);

impl Input {
    /// The bytes, if there are any.
    pub(crate) fn bytes(&self) -> Option<&Received> {
        self.0.as_deref()
    }

    /// Takes the bytes out.
    pub(crate) fn take(&mut self) -> Option<Box<Received>> {
        self.0.take()
    }

    /// Puts bytes in place of those that are there.
    pub(crate) fn put(&mut self, bytes: Option<Box<Received>>) {
        self.0 = bytes;
    }

    /// True if a reader has the text of the command at the front.
    pub(crate) fn is_being_read(&self) -> bool {
        self.0.as_ref().is_some_and(|bytes| bytes.is_being_read())
    }

    /// Takes that text from its reader; `false` where it is not waited for any more.
    pub(crate) fn take_read(&mut self, read: Box<TextRead>) -> bool {
        self.0.as_mut().is_some_and(|bytes| bytes.take(read))
    }

    /// Appends received bytes; those of a login may hold a password.
    pub(crate) fn keep(&mut self, bytes: &[u8], is_login: bool) {
        if bytes.is_empty() {
            return;
        }
        let kept = self.0.get_or_insert_default();
        if is_login {
            return kept.keep_of_login(bytes);
        }
        let buffer = kept.buffer();
        make_room(buffer, bytes.len());
        buffer.extend_from_slice(bytes);
    }

    /// Puts a command that was taken out back to the front.
    pub(crate) fn put_front(&mut self, command: &[u8]) {
        self.0.get_or_insert_default().put_front(command);
    }

    /// Bytes of the command at the front.
    pub(crate) fn command_len(&self) -> usize {
        self.0.as_ref().map_or(0, |bytes| bytes.command_len())
    }

    /// Drops the first `len` bytes, and the box when it is empty.
    pub(crate) fn drop_front(&mut self, len: usize) {
        match &mut self.0 {
            Some(bytes) if bytes.len() > len => bytes.drop_front(len, usize::MAX),
            bytes => *bytes = None,
        }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.text {
            Text::UnderWay(bytes) => bytes,
            _ => &self.bytes,
        }
    }
}

impl Received {
    /// Bytes of memory that it takes.
    pub(crate) fn capacity(&self) -> usize {
        match &self.text {
            Text::Unread => self.bytes.capacity(),
            Text::UnderWay(bytes) => bytes.capacity(),
            Text::Read(read) => self.bytes.capacity() + read.joined_len(),
        }
    }

    /// Bytes by which room for `more` lengthens it.
    pub(crate) fn room_for(&self, more: usize) -> usize {
        room_for(&self.bytes, more)
    }

    /// True if a reader has its text.
    pub(crate) fn is_being_read(&self) -> bool {
        matches!(self.text, Text::UnderWay(_))
    }

    /// Findings of a reader about the text at the front.
    pub(crate) fn text(&self) -> Option<&TextRead> {
        match &self.text {
            Text::Read(read) => Some(read),
            _ => None,
        }
    }

    /// The buffer, to append to. Bytes that a reader has are taken back.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.take_back();
        &mut self.bytes
    }

    /// Takes the bytes back that a reader was given, if it was given any.
    pub(crate) fn take_back(&mut self) {
        if self.is_being_read()
            && let Text::UnderWay(bytes) = std::mem::take(&mut self.text)
        {
            self.bytes = Arc::unwrap_or_clone(bytes);
        }
    }

    /// All bytes; nothing is known of a text any more.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(self.buffer())
    }

    /// Clears it, and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.wipe();
        self.buffer().clear();
        self.text = Text::Unread;
    }

    /// Appends a part of a login. A buffer that grows leaves a copy behind, so that is done by hand
    /// here.
    pub(crate) fn keep_of_login(&mut self, more: &[u8]) {
        self.has_password = true;
        let buffer = self.buffer();
        let needed = buffer.len() + more.len();
        if buffer.capacity() < needed {
            let mut grown = Vec::with_capacity((2 * needed).max(LOGIN_ROOM_MIN));
            grown.extend_from_slice(buffer);
            wipe_all(buffer);
            *buffer = grown;
        }
        buffer.extend_from_slice(more);
    }

    /// Overwrites what it has and had, if a login was in it; it is empty then.
    fn wipe(&mut self) {
        if std::mem::take(&mut self.has_password) {
            wipe_all(self.buffer());
        }
    }

    /// Puts bytes in front of all others.
    pub(crate) fn put_front(&mut self, front: &[u8]) {
        self.buffer().splice(..0, front.iter().copied());
        self.text = Text::Unread;
    }

    /// Drops the first bytes, and the memory of a long command with them.
    pub(crate) fn drop_front(&mut self, used: usize, kept_max: usize) {
        if used == 0 {
            return;
        }
        if self.has_password {
            let rest = self.buffer()[used..].to_vec();
            self.wipe();
            (self.bytes, self.text) = (rest, Text::Unread);
            return;
        }
        let bytes = self.buffer();
        if used >= bytes.len() - used && bytes.capacity() > kept_max {
            *bytes = bytes[used..].to_vec();
        } else {
            bytes.drain(..used);
        }
        self.text = Text::Unread;
    }

    /// Bytes of the command at the front; all of them if it has not come whole.
    pub(crate) fn command_len(&self) -> usize {
        match frame(self) {
            Frame::Whole { total, .. } => total,
            _ => self.len(),
        }
    }

    /// Gives the bytes to a reader.
    pub(crate) fn give(&mut self) -> Weak<Vec<u8>> {
        let bytes = Arc::new(std::mem::take(self.buffer()));
        let weak = Arc::downgrade(&bytes);
        self.text = Text::UnderWay(bytes);
        weak
    }

    /// Takes a text that a reader has read; `true` if it is this one.
    pub(crate) fn take(&mut self, read: Box<TextRead>) -> bool {
        let is_its = match &self.text {
            Text::UnderWay(bytes) => read.is_of(bytes),
            _ => false,
        };
        if is_its {
            self.buffer();
            self.text = Text::Read(read);
        }
        is_its
    }

    /// Takes all out, to be handled.
    pub(crate) fn take_current(&mut self) -> CurrentInput {
        let bytes = Arc::new(std::mem::take(self.buffer()));
        let text = match std::mem::take(&mut self.text) {
            Text::Read(read) => Some(read),
            _ => None,
        };
        CurrentInput { bytes, text }
    }

    /// Puts it back, without the bytes that have been used.
    pub(crate) fn put_back(&mut self, current_input: CurrentInput, used: usize, kept_max: usize) {
        let CurrentInput { bytes, text } = current_input;
        match Arc::try_unwrap(bytes) {
            Ok(bytes) => {
                self.bytes = bytes;
                if let Some(read) = text {
                    self.text = Text::Read(read);
                }
                self.drop_front(used, kept_max);
            }
            // A backend is sent its front.
            Err(bytes) => self.bytes = bytes[used..].to_vec(),
        }
    }
}

/// Bytes of a client while they are handled.
#[derive(Debug)]
pub(crate) struct CurrentInput {
    pub(crate) bytes: Arc<Vec<u8>>,
    text: Option<Box<TextRead>>,
}

/// Bytes of the client that are being handled, if they are long.
#[derive(Debug, Default)]
pub(crate) struct LongInput(pub(crate) Option<CurrentInput>);

impl LongInput {
    /// The buffer in which a client's long message lies, and where it lies there.
    pub(crate) fn buffer_of(&self, message: &[u8]) -> Option<(Arc<Vec<u8>>, Range<usize>)> {
        let current_input = self.0.as_ref()?;
        Some((
            current_input.bytes.clone(),
            current_input.range_of(message)?,
        ))
    }

    /// Payload of a message, if a reader has put it together.
    pub(crate) fn joined(&self, message: &[u8]) -> Option<Arc<Vec<u8>>> {
        self.0.as_ref()?.text_of(message)?.joined()
    }

    /// Findings in a client's text; `digested` and `names` are those of [`Seen::read`].
    pub(crate) fn seen(
        &self,
        message: &[u8],
        (sql, mode): (&[u8], LexMode),
        digested: bool,
        names: Option<&NameSet>,
    ) -> Seen {
        let read = (self.0.as_ref()).and_then(|current_input| current_input.text_of(message));
        let read = read.and_then(|text| text.seen(sql.len(), mode));
        read.unwrap_or_else(|| Seen::read(sql, mode, digested, names))
    }
}

impl CurrentInput {
    /// Range of a message in it, if it lies there: by its address, whatever its bytes are.
    pub(crate) fn range_of(&self, message: &[u8]) -> Option<Range<usize>> {
        let start = message.as_ptr().addr();
        let start = start.checked_sub(self.bytes.as_ptr().addr())?;
        let end = start.checked_add(message.len())?;
        (end <= self.bytes.len()).then_some(start..end)
    }

    /// Findings about the text of a message, if that is the one in front.
    pub(crate) fn text_of(&self, message: &[u8]) -> Option<&TextRead> {
        let range = self.range_of(message)?;
        let text = self.text.as_deref()?;
        (range.start == 0 && range.end == text.message_len()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(bytes: &[u8]) -> Received {
        let mut received = Received::default();
        received.buffer().extend_from_slice(bytes);
        received
    }

    #[test]
    fn of_a_login_nothing_is_left_behind_its_end() {
        let mut one = Received::default();
        one.keep_of_login(b"\x05\0\0\0pa");
        one.keep_of_login(b"ssw\x01\0\0\0\x0e");
        assert_eq!(&one[..], b"\x05\0\0\0passw\x01\0\0\0\x0e");
        one.drop_front(9, 100);
        assert_eq!(&one[..], b"\x01\0\0\0\x0e", "what is behind it is kept");
        one.keep_of_login(b"x");
        one.clear();
        let buffer = one.buffer();
        assert!(buffer.is_empty() && buffer.capacity() > 0);
        buffer.resize(buffer.capacity(), b'.');
        assert!(one.iter().all(|byte| *byte == b'.'));
    }

    const QUERY: &[u8] = b"\x05\0\0\0\x03DO 1\x05\0\0\0\x03DO 2";

    #[test]
    fn what_a_reader_found_counts_for_the_buffer_that_it_has_read() {
        let mut one = received(QUERY);
        let weak = one.give();
        assert!(one.is_being_read());
        assert_eq!((&one[..], one.command_len()), (QUERY, 9));
        let mut other = received(QUERY);
        let stale = other.give();
        let read = |of: &Weak<Vec<u8>>| Box::new(TextRead::for_tests(of.clone(), 9));
        assert!(!one.take(read(&stale)), "the same bytes elsewhere");
        assert!(one.take(read(&weak)));
        assert!(!one.take(read(&weak)), "it is not asked for any more");
        assert!(one.text().is_some() && !one.is_being_read());
        let current_input = one.take_current();
        let bytes = current_input.bytes.clone();
        assert!(current_input.text_of(&bytes[..9]).is_some());
        assert!(
            current_input.text_of(&bytes[9..]).is_none(),
            "the one behind it"
        );
        assert!(
            current_input.text_of(&QUERY[..9]).is_none(),
            "the same elsewhere"
        );
        drop(bytes);
        one.put_back(current_input, 0, 100);
        assert!(one.text().is_some(), "it waits");
        one.drop_front(9, 100);
        assert!(one.text().is_none());
        assert_eq!(&one[..], &QUERY[9..]);
    }

    #[test]
    fn what_is_sent_on_is_not_copied() {
        let mut one = received(QUERY);
        let current_input = one.take_current();
        let (shared, at) = (current_input.bytes.clone(), current_input.bytes.as_ptr());
        assert_eq!(current_input.range_of(&shared[2..9]), Some(2..9));
        assert_eq!(current_input.range_of(QUERY), None);
        one.put_back(current_input, 9, 100);
        assert_eq!(&one[..], &QUERY[9..]);
        assert_eq!(shared.as_ptr(), at);
        assert_eq!(Arc::strong_count(&shared), 1);
    }

    #[test]
    fn bytes_that_a_reader_has_can_be_taken_back() {
        let mut one = received(QUERY);
        let weak = one.give();
        one.drop_front(9, 100);
        assert_eq!(&one[..], &QUERY[9..]);
        assert!(!one.take(Box::new(TextRead::for_tests(weak, 9))));
    }
}
