//! Records over a socket, behind the handshake: plaintext in and out.
//!
//! The problem: between two messages nothing but keys may be kept, and a message may come in any
//! pieces. The mechanism: a thread has one buffer for what comes and one for what is sealed, lent
//! for a call; a [`Stream`] keeps what is left of them when the call ends, and mostly nothing is.
//!
//! Invariants:
//! - what is kept is bounded: of records that were not opened by [`RECEIVED_MAX`], of plaintext
//!   that the caller had no room for by one record, of ciphertext that waits for room in the socket
//!   by [`UNSENT_BYTES_MAX`];
//! - [`Stream::is_emptied`] is true only after a call that found the socket empty and left nothing
//!   here: what came in an earlier call says nothing of the socket;
//! - what was opened in front of a fault is handed out, and then the fault.

use crate::records::{self, Fault, OVERHEAD_MAX, Opened, PLAINTEXT_MAX, RECORD_MAX, Records};
use crate::tls::{UNSENT_BYTES_MAX, WRITE_BYTES_MAX};
use crate::{Net, Read, Write};
use rustls::{AlertDescription, Error};
use std::cell::RefCell;
use std::io::{self, ErrorKind};

/// Bytes that are read at once, and kept of what has not been opened.
pub(crate) const RECEIVED_MAX: usize = 2 * RECORD_MAX;
/// Records of one write, with those that the peer waits for.
const _: () = assert!(
    WRITE_BYTES_MAX.is_multiple_of(PLAINTEXT_MAX)
        && WRITE_BYTES_MAX + (WRITE_BYTES_MAX / PLAINTEXT_MAX + 4) * (OVERHEAD_MAX + 5)
            <= UNSENT_BYTES_MAX
);

thread_local! {
    static RECEIVED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static SEALED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Lends this thread's buffer for what comes.
pub(crate) fn with_received<T>(run: impl FnOnce(&mut [u8]) -> T) -> T {
    RECEIVED.with_borrow_mut(|buffer| {
        buffer.resize(RECEIVED_MAX, 0);
        run(buffer)
    })
}

/// Lends this thread's buffer for what is sealed.
fn with_sealed<T>(run: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    SEALED.with_borrow_mut(|buffer| {
        buffer.clear();
        run(buffer)
    })
}

/// A connection behind its handshake.
#[derive(Debug)]
pub(crate) struct Stream {
    records: Records,
    /// Records that have not been opened; the last may not be whole.
    received: Vec<u8>,
    /// Plaintext for which the caller had no room, from here on.
    opened: Vec<u8>,
    opened_at: usize,
    /// Ciphertext for which the socket had no room.
    unsent: Vec<u8>,
    is_emptied: bool,
    /// True if nothing more will come.
    has_ended: bool,
    /// Reason for which nothing more can be read, if the caller has not been told.
    fault: Option<Box<Error>>,
}

impl Stream {
    /// Goes on with what the handshake has left.
    pub(crate) fn new(
        records: Records,
        (received, opened, unsent): (Vec<u8>, Vec<u8>, Vec<u8>),
    ) -> Stream {
        let trim = |mut bytes: Vec<u8>| {
            bytes.shrink_to_fit();
            bytes
        };
        Stream {
            records,
            received: trim(received),
            opened: trim(opened),
            opened_at: 0,
            unsent: trim(unsent),
            is_emptied: false,
            has_ended: false,
            fault: None,
        }
    }

    /// Names of its version and its cipher.
    pub(crate) fn names(&self) -> (&'static str, &'static str) {
        self.records.names()
    }

    /// True if it can go on elsewhere: it has not ended, and everything has been sent.
    pub(crate) fn may_go(&self) -> bool {
        let is_sent = self.records.is_settled() && self.unsent.is_empty();
        is_sent && !self.has_ended && self.fault.is_none()
    }

    /// Appends all of it.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.records.put(out);
        put_bytes(out, &self.received);
        put_bytes(out, &self.opened[self.opened_at..]);
    }

    /// Reads it at the front of `bytes`.
    pub(crate) fn read_record(bytes: &mut &[u8]) -> Option<Stream> {
        let records = Records::read(bytes)?;
        let received = take_bytes(bytes, RECEIVED_MAX)?.to_vec();
        let opened = take_bytes(bytes, PLAINTEXT_MAX)?.to_vec();
        Some(Stream::new(records, (received, opened, Vec::new())))
    }

    /// True if nothing is left to be read after a read that did not fill its buffer.
    pub(crate) fn is_emptied(&self) -> bool {
        self.is_emptied
    }

    /// Bytes that are kept for what has been read.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.received.capacity() + self.opened.capacity()
    }

    /// Bytes of ciphertext that wait.
    pub(crate) fn unsent_len(&self) -> usize {
        self.unsent.len()
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends what waits, and then what the peer waits for; `false` where there is no room for all.
    pub(crate) fn flush<N: Net>(&mut self, net: &mut N, sock: &N::Sock) -> io::Result<bool> {
        if !self.unsent.is_empty() {
            let waiting = std::mem::take(&mut self.unsent);
            if !send(net, sock, &waiting, &mut self.unsent)? {
                return Ok(false);
            }
        }
        if !self.records.owes() {
            return Ok(true);
        }
        with_sealed(|out| {
            self.records.answer(out).map_err(error_of)?;
            send(net, sock, out, &mut self.unsent)
        })
    }

    /// Tells the peer that nothing more will come, as far as there is room for that.
    pub(crate) fn end<N: Net>(&mut self, net: &mut N, sock: &N::Sock) {
        if !self.records.is_over() && matches!(self.flush(net, sock), Ok(true)) {
            self.alert(net, sock, AlertDescription::CloseNotify);
        }
    }

    /// Sends the last record, if there is room for it: nobody waits for that.
    fn alert<N: Net>(&mut self, net: &mut N, sock: &N::Sock, alert: AlertDescription) {
        with_sealed(|out| {
            self.records.seal_alert(alert, out);
            if self.unsent.is_empty() {
                let _ = send(net, sock, out, &mut self.unsent);
            }
        });
    }

    pub(crate) fn write<N: Net>(&mut self, net: &mut N, sock: &N::Sock, bytes: &[u8]) -> Write {
        match self.flush(net, sock) {
            Ok(true) => {}
            Ok(false) => return Write::Blocked,
            Err(error) => return Write::Failed(error),
        }
        let taken = bytes.len().min(WRITE_BYTES_MAX);
        with_sealed(|out| {
            let mut pieces = bytes[..taken].chunks(PLAINTEXT_MAX);
            let sealed = pieces.try_for_each(|piece| self.records.seal_data(piece, out));
            let sent = send(net, sock, out, &mut self.unsent);
            match sealed.map_err(error_of).and(sent) {
                Ok(_) => Write::Bytes(taken),
                Err(error) => Write::Failed(error),
            }
        })
    }

    pub(crate) fn read<N: Net>(&mut self, net: &mut N, sock: &N::Sock, buffer: &mut [u8]) -> Read {
        self.is_emptied = false;
        let mut filled = self.take_opened(buffer);
        if filled == buffer.len() {
            return Read::Bytes(filled);
        }
        let ended = with_received(|scratch| {
            let mut lent = Lent {
                end: self.received.len(),
                start: 0,
                bytes: scratch,
            };
            lent.bytes[..lent.end].copy_from_slice(&self.received);
            let ended = self.read_records(net, sock, (buffer, &mut filled), &mut lent);
            let rest = &lent.bytes[lent.start..lent.end];
            if !rest.is_empty() || self.received.capacity() > 0 {
                self.received = rest.to_vec();
            }
            ended
        });
        let more = self.has_ended || self.fault.is_some() || !self.opened.is_empty();
        self.is_emptied &= !more && !self.has_whole();
        if self.records.owes() {
            // A socket that is broken says so to the next call as well.
            let _ = self.flush(net, sock);
        }
        match (filled, ended) {
            (1.., _) => Read::Bytes(filled),
            (0, Some(Read::Bytes(_)) | None) => Read::Blocked,
            (0, Some(ended)) => ended,
        }
    }

    /// Fills the buffer; why there is no more, if that is so.
    fn read_records<N: Net>(
        &mut self,
        net: &mut N,
        sock: &N::Sock,
        (buffer, filled): (&mut [u8], &mut usize),
        lent: &mut Lent<'_>,
    ) -> Option<Read> {
        loop {
            if let Some(error) = self.fault.take() {
                if *filled > 0 {
                    self.fault = Some(error);
                    return None;
                }
                return Some(Read::Failed(io::Error::new(ErrorKind::InvalidData, *error)));
            }
            if self.has_ended {
                return Some(Read::End);
            }
            if *filled == buffer.len() {
                return None;
            }
            match self.open_front(lent, (buffer, filled)) {
                Ok(Some(())) => continue,
                Ok(None) => {}
                Err(fault) => {
                    if let Some(alert) = fault.alert {
                        self.alert(net, sock, alert);
                    }
                    self.fault = Some(Box::new(fault.error));
                    (self.has_ended, lent.start) = (true, lent.end);
                    continue;
                }
            }
            if self.is_emptied {
                return None;
            }
            let room = lent.room(buffer.len() - *filled);
            match net.read(sock, room) {
                Read::Bytes(count) => {
                    self.is_emptied = count < room.len();
                    lent.end += count;
                }
                Read::Blocked => {
                    self.is_emptied = true;
                    return None;
                }
                // An end without an announcement is one as well: every message has its length.
                Read::End => self.has_ended = true,
                Read::Failed(error) => return Some(Read::Failed(error)),
            }
        }
    }

    /// Opens the record at the front, if it is whole.
    fn open_front(
        &mut self,
        lent: &mut Lent<'_>,
        (buffer, filled): (&mut [u8], &mut usize),
    ) -> Result<Option<()>, Fault> {
        let rest = &mut lent.bytes[lent.start..lent.end];
        let len = match records::len_of_record(rest) {
            Ok(Some(len)) if len <= rest.len() => len,
            Ok(_) => return Ok(None),
            Err(fault) => {
                self.records.give_up();
                return Err(fault);
            }
        };
        lent.start += len;
        let record = &mut rest[..len];
        match self.records.open(record)? {
            Opened::Data(range) => {
                let data = &record[range];
                let count = data.len().min(buffer.len() - *filled);
                buffer[*filled..*filled + count].copy_from_slice(&data[..count]);
                *filled += count;
                self.opened = data[count..].to_vec();
                self.opened_at = 0;
            }
            Opened::Nothing => {}
            Opened::End => self.has_ended = true,
        }
        Ok(Some(()))
    }

    /// True if a record has come whole and was not opened.
    fn has_whole(&self) -> bool {
        match records::len_of_record(&self.received) {
            Ok(Some(len)) => len <= self.received.len(),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Hands out what there was no room for.
    fn take_opened(&mut self, buffer: &mut [u8]) -> usize {
        let rest = &self.opened[self.opened_at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.opened_at += count;
        if self.opened_at == self.opened.len() {
            (self.opened, self.opened_at) = (Vec::new(), 0);
        }
        count
    }
}

/// Records that have come and are not opened, in the buffer that is lent.
struct Lent<'a> {
    bytes: &'a mut [u8],
    start: usize,
    end: usize,
}

impl Lent<'_> {
    /// Room for the next bytes: as many as the record at the front lacks, and as the caller has
    /// room for.
    fn room(&mut self, wanted: usize) -> &mut [u8] {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        // There is no whole record here, so that there is room for the rest of it.
        let lacking = match records::len_of_record(&self.bytes[..self.end]) {
            Ok(Some(len)) => len - self.end,
            _ => 0,
        };
        let most = self.bytes.len() - self.end;
        let len = (wanted + OVERHEAD_MAX).max(lacking).min(most);
        &mut self.bytes[self.end..self.end + len]
    }
}

/// Appends bytes with their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Takes them from the front, if they are no more than `max`.
pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8], max: usize) -> Option<&'a [u8]> {
    let len = records::take(bytes, 8)?.try_into().ok()?;
    let len = usize::try_from(u64::from_be_bytes(len)).ok()?;
    (len <= max).then(|| records::take(bytes, len)).flatten()
}

fn error_of(fault: Fault) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, fault.error)
}

/// Writes all that there is room for, and keeps the rest; whether there is none.
pub(crate) fn send<N: Net>(
    net: &mut N,
    sock: &N::Sock,
    mut bytes: &[u8],
    unsent: &mut Vec<u8>,
) -> io::Result<bool> {
    while !bytes.is_empty() {
        match net.write(sock, bytes) {
            Write::Bytes(count) => bytes = &bytes[count..],
            Write::Blocked => {
                unsent.extend_from_slice(bytes);
                return Ok(false);
            }
            Write::Failed(error) => return Err(error),
        }
    }
    Ok(true)
}
