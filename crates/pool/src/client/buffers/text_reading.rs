//! Reading of long texts, off the groups' threads.
//!
//! The problem: to know what a text may leave in its session, every token of it is looked at. For
//! 60 MiB that takes from ten milliseconds to half a second, and a text of several packets has to
//! be put together first; meanwhile nobody else of its group would be served. The mechanism: a
//! command with a text of more than [`TEXT_HERE_MAX`] bytes is put in a queue once it has come
//! whole, and its client's bytes stay where they are; a reader (`text_workers.rs`) classifies the
//! text and sends what it found to the group's mailbox. With that at hand the group handles the
//! command like any other (`long_texts.rs`).
//!
//! Invariants: a text is classified by the same function here and there; what was found names the
//! buffer that was read and how it was cut, and is of no use for another or when the session is
//! read otherwise by then; a text whose client has left is not read. The queue holds one text of a
//! client, which is counted as the client's (`input_bytes_max`), and [`TEXTS_MAX`] texts at most;
//! the group reads one more by itself.

use crate::group::tokens::ClientId;
use sql::lex::LexMode;
use sql::text::Seen;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use wire::attributes::{Form, header_len};
use wire::packet::{HEADER_LEN, PAYLOAD_MAX, join_payload};

/// The longest command with a text that is read on its group's thread.
pub(crate) const TEXT_HERE_MAX: usize = 256 * 1024;
/// Texts that wait for a reader.
pub(crate) const TEXTS_MAX: usize = 1024;

/// A text to be read.
#[derive(Debug)]
pub(crate) struct TextJob {
    /// Its client's group, and its key there.
    pub(crate) group: usize,
    pub(crate) client: ClientId,
    /// Bytes of the client, and the length of the command with the text.
    pub(crate) bytes: Weak<Vec<u8>>,
    pub(crate) message_len: usize,
    /// Form of the header in front of the text, if its command has one.
    pub(crate) form: Option<Form>,
    pub(crate) mode: LexMode,
}

/// Findings in a long text.
#[derive(Clone, Debug)]
pub struct TextRead {
    bytes: Weak<Vec<u8>>,
    message_len: usize,
    mode: LexMode,
    text_len: usize,
    /// Payload of a text in several packets.
    joined: Option<Arc<Vec<u8>>>,
    seen: Seen,
}

impl PartialEq for TextRead {
    fn eq(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.bytes, &other.bytes) && self.mode == other.mode
    }
}

impl Eq for TextRead {}

impl TextRead {
    /// True if this is the buffer that was read.
    pub(crate) fn is_of(&self, bytes: &Arc<Vec<u8>>) -> bool {
        std::ptr::eq(self.bytes.as_ptr(), Arc::as_ptr(bytes))
    }

    /// Bytes of the command.
    pub(crate) fn message_len(&self) -> usize {
        self.message_len
    }

    /// Mode in which the text was cut.
    pub(crate) fn mode(&self) -> LexMode {
        self.mode
    }

    /// Payload of the command, if it had to be put together.
    pub(crate) fn joined(&self) -> Option<Arc<Vec<u8>>> {
        self.joined.clone()
    }

    /// Bytes of that.
    pub(crate) fn joined_len(&self) -> usize {
        self.joined.as_ref().map_or(0, |joined| joined.capacity())
    }

    /// Findings in the text, if it is of this length and is cut so.
    pub(crate) fn seen(&self, len: usize, mode: LexMode) -> Option<Seen> {
        (self.text_len == len && self.mode == mode).then_some(self.seen)
    }

    #[cfg(test)]
    pub(crate) fn for_tests(bytes: Weak<Vec<u8>>, message_len: usize) -> TextRead {
        TextRead {
            bytes,
            message_len,
            mode: LexMode::default(),
            text_len: message_len - HEADER_LEN - 1,
            joined: None,
            seen: Seen::NOTHING,
        }
    }
}

impl TextJob {
    /// True if its client has left.
    fn is_abandoned(&self) -> bool {
        self.bytes.strong_count() == 0
    }

    /// Reads the text; `None` when its client has left.
    pub(crate) fn run(self) -> Option<(usize, ClientId, Box<TextRead>)> {
        let bytes = self.bytes.upgrade()?;
        let message = &bytes[..self.message_len];
        let joined = (message.len() >= HEADER_LEN + PAYLOAD_MAX).then(|| {
            let mut joined = Vec::with_capacity(message.len());
            join_payload(message, &mut joined);
            Arc::new(joined)
        });
        let payload = (joined.as_ref()).map_or(&message[HEADER_LEN..], |joined| &joined[..]);
        let arguments = payload.get(1..).unwrap_or_default();
        // Where it cannot be read, the command is refused whatever its text is.
        let header = (self.form).map_or(0, |form| header_len(form, arguments).unwrap_or(0));
        let sql = arguments.get(header..).unwrap_or_default();
        let read = TextRead {
            bytes: self.bytes,
            message_len: self.message_len,
            mode: self.mode,
            text_len: sql.len(),
            seen: Seen::read(sql, self.mode, true, None),
            joined,
        };
        Some((self.group, self.client, Box::new(read)))
    }
}

/// The texts that wait, shared by all groups and the readers.
#[derive(Debug, Default)]
pub(crate) struct TextJobs {
    queue: Mutex<VecDeque<TextJob>>,
    added: Condvar,
}

impl TextJobs {
    fn queue(&self) -> MutexGuard<'_, VecDeque<TextJob>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of texts that wait.
    pub(crate) fn len(&self) -> usize {
        self.queue().len()
    }

    /// Puts a text in line; `false` when `max` wait already.
    pub(crate) fn submit(&self, job: TextJob, max: usize) -> bool {
        let mut queue = self.queue();
        if queue.len() >= max {
            queue.retain(|job| !job.is_abandoned());
        }
        let has_room = queue.len() < max;
        if has_room {
            queue.push_back(job);
            self.added.notify_one();
        }
        has_room
    }

    /// The next text, if there is one.
    pub(crate) fn next(&self) -> Option<TextJob> {
        self.queue().pop_front()
    }

    /// The next text, waited for.
    pub(crate) fn wait(&self) -> TextJob {
        let mut queue = self.queue();
        loop {
            if let Some(job) = queue.pop_front() {
                return job;
            }
            queue = (self.added.wait(queue)).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::lex::Charset;

    fn job(bytes: &Arc<Vec<u8>>, message_len: usize) -> TextJob {
        TextJob {
            group: 3,
            client: ClientId::from_parts(1, 0),
            bytes: Arc::downgrade(bytes),
            message_len,
            form: Some(Form::Plain),
            mode: LexMode::default(),
        }
    }

    fn read(job: TextJob) -> Box<TextRead> {
        let Some((3, _, read)) = job.run() else {
            panic!("a text that was read, for group 3");
        };
        read
    }

    #[test]
    fn a_text_is_read_as_on_its_groups_thread() {
        let sql = b"SELECT GET_LOCK('a', 1)";
        let mut message = vec![u8::try_from(sql.len() + 1).unwrap(), 0, 0, 0, 3];
        message.extend_from_slice(sql);
        let len = message.len();
        message.extend_from_slice(b"what follows it");
        let bytes = Arc::new(message);
        let read = read(job(&bytes, len));
        assert!(read.is_of(&bytes));
        let mode = LexMode::default();
        let seen = Seen::read(sql, mode, true, None);
        assert!(seen.class.pin.is_some() && !seen.hides_kill);
        assert_eq!(read.seen(sql.len(), mode), Some(seen));
        assert_eq!(read.seen(sql.len() - 1, mode), None, "another text");
        let otherwise = LexMode {
            charset: Charset::OneByte,
            ..mode
        };
        assert_eq!(read.seen(sql.len(), otherwise), None, "cut otherwise");
    }

    #[test]
    fn a_text_in_several_packets_is_put_together() {
        let mut message = vec![0xFF, 0xFF, 0xFF, 0, 3];
        message.extend_from_slice(b"SELECT '");
        message.resize(HEADER_LEN + PAYLOAD_MAX, b'x');
        message.extend_from_slice(&[20, 0, 0, 1]);
        message.extend_from_slice(b"', GET_LOCK('a', 10)");
        let bytes = Arc::new(message);
        let read = read(job(&bytes, bytes.len()));
        let joined = read.joined().unwrap();
        assert_eq!(joined.len(), PAYLOAD_MAX + 20);
        assert!(read.joined_len() >= joined.len(), "it counts");
        let found = read.seen(joined.len() - 1, LexMode::default());
        let seen = Seen::read(&joined[1..], LexMode::default(), true, None);
        assert!(seen.class.pin.is_some());
        assert_eq!(found, Some(seen));
    }

    #[test]
    fn the_text_of_a_client_that_has_left_is_not_read() {
        let bytes = Arc::new(b"\x05\0\0\0\x03DO 1".to_vec());
        let jobs = TextJobs::default();
        assert!(jobs.submit(job(&bytes, 9), TEXTS_MAX));
        drop(bytes);
        assert!(jobs.next().unwrap().run().is_none());
    }

    #[test]
    fn texts_of_clients_that_have_left_give_way_at_the_bound() {
        let message = || Arc::new(b"\x05\0\0\0\x03DO 1".to_vec());
        let (first, leaves) = (message(), message());
        let jobs = TextJobs::default();
        let submit = |bytes: &Arc<Vec<u8>>| jobs.submit(job(bytes, 9), TEXTS_MAX);
        assert!(submit(&first));
        for _ in 1..TEXTS_MAX {
            assert!(submit(&leaves));
        }
        assert!(!submit(&message()), "all of them wait");
        assert_eq!(jobs.len(), TEXTS_MAX);
        drop(leaves);
        assert!(submit(&first), "behind one that waits");
        assert_eq!(jobs.len(), 2);
    }
}
