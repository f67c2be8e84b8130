//! Bytes to backends: put in line while a turn lasts, and written at its end.
//!
//! What a turn has for one backend goes out in one write. A backend that takes less than is in line
//! tells of it when it can take more; one for which there is more than a turn's share goes on as
//! bulk work.
//!
//! Invariants: bytes leave in the order in which they were put in line; a backend with something in
//! line is on the list of this turn, or stands in the line of bulk work, or waits for its socket.

use crate::backend::Backend;
use crate::client::buffers::outgoing::{FED_MAX, Outgoing};
use crate::client::buffers::received::LongInput;
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::bulk::{Bulk, Piece};
use crate::scheduler::running::Running;
use reactor::{Net, Slots, Write};
use session::meter::Meter;
use std::io;

/// Bytes that are written to one backend in a turn; then others have theirs.
const WRITE_TURN_BYTES: usize = 256 * 1024;

/// The backends of a group, and those among them that are to be written to.
pub(crate) struct ToBackend<'a, N: Net> {
    pub(crate) net: &'a mut N,
    pub(crate) backends: &'a mut Slots<Backend<N::Sock>, BackendId>,
    pub(crate) running: &'a mut Running,
    /// Those that something is to be written to at the end of the turn.
    pub(crate) dirty: &'a mut Vec<BackendId>,
    /// Work of later turns.
    pub(crate) bulk: &'a mut Bulk,
    /// Bytes that they keep.
    pub(crate) in_transit: &'a Meter,
    /// Long input of a client that is being handled.
    pub(crate) current_input: &'a LongInput,
    /// A command that is longer is not copied, where that can be.
    pub(crate) copied_max: usize,
}

/// Result of writing to a backend.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Its connection cannot be written any more.
    pub(crate) broken: Option<io::Error>,
    /// The client whose file it has taken most of: that is read again.
    pub(crate) fed: Option<ClientId>,
}

impl<N: Net> ToBackend<'_, N> {
    /// Puts `bytes` in line for a backend.
    pub(crate) fn send(&mut self, key: BackendId, bytes: &[u8]) {
        if let Some(output) = self.output_of(key) {
            output.last().extend_from_slice(bytes);
        }
    }

    /// Output of a backend, which is written at the end of the turn.
    fn output_of(&mut self, key: BackendId) -> Option<&mut Outgoing> {
        let backend = self.backends.get_mut(key)?;
        backend.note_unwritten(key, self.dirty);
        Some(&mut backend.output)
    }

    /// Sends commands of the pool's own: the backend runs something from now on.
    pub(crate) fn ask(&mut self, key: BackendId, bytes: &[u8]) {
        if let Some(backend) = self.backends.get_mut(key) {
            backend.output.last().extend_from_slice(bytes);
            backend.note_unwritten(key, self.dirty);
            self.running.begins(backend, self.net.now());
        }
    }

    /// Sends a client's command, which is not copied if it is long and lies in the buffer of what
    /// the client has sent.
    pub(crate) fn send_message(&mut self, key: BackendId, message: &[u8]) {
        let is_long = message.len() > self.copied_max;
        let Some((bytes, range)) = self.current_input.buffer_of(message).filter(|_| is_long) else {
            return self.send(key, message);
        };
        if let Some(output) = self.output_of(key) {
            output.push_shared(bytes, range);
        }
    }

    /// Goes on writing to a backend whose turn in a line has come.
    pub(crate) fn write_on(&mut self, key: BackendId) -> Written {
        let Some(backend) = self.backends.get_mut(key) else {
            return Written::default();
        };
        backend.dirty = false;
        let written = backend.write(key, self.net, self.bulk);
        backend.count_kept(self.in_transit);
        written
    }

    /// Writes what is in line for a backend, as far as there is room, and a turn's share at most.
    pub(crate) fn write(&mut self, key: BackendId) -> Written {
        match self.backends.get_mut(key) {
            Some(backend) => backend.write(key, self.net, self.bulk),
            None => Written::default(),
        }
    }
}

impl<S> Backend<S> {
    /// Marks it to be written to at the end of the turn.
    fn note_unwritten(&mut self, key: BackendId, dirty: &mut Vec<BackendId>) {
        if !self.dirty {
            self.dirty = true;
            dirty.push(key);
        }
    }

    fn write<N: Net<Sock = S>>(&mut self, key: BackendId, net: &mut N, bulk: &mut Bulk) -> Written {
        let mut written = Written::default();
        let before = self.unsent();
        let mut share = before.min(WRITE_TURN_BYTES);
        let mut blocked = match self.transport.flush(net) {
            Ok(is_sent) => !is_sent,
            Err(error) => {
                written.broken = Some(error);
                true
            }
        };
        while share > 0 && !blocked {
            let piece = self.output.front();
            let piece = &piece[..piece.len().min(share)];
            match self.transport.write(net, piece) {
                Write::Bytes(n) => {
                    self.output.written(n);
                    share -= n;
                }
                Write::Blocked => blocked = true,
                Write::Failed(error) => {
                    written.broken = Some(error);
                    blocked = true;
                }
            }
        }
        let left = self.unsent();
        let is_taken = before > FED_MAX && left <= FED_MAX;
        written.fed = self.client().filter(|_| is_taken);
        if left > 0 && !blocked && !self.dirty {
            self.dirty = true;
            bulk.push(Piece::Command(key));
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{ForSession, InFlight, Load};
    use crate::group::scripted::Scripted;
    use reactor::Time;
    use std::rc::Rc;
    use wire::command::ReplyShape;

    struct Bench {
        net: Scripted,
        backends: Slots<Backend<()>, BackendId>,
        running: Running,
        dirty: Vec<BackendId>,
        bulk: Bulk,
        in_transit: Meter,
        current_input: LongInput,
    }

    impl Bench {
        fn new() -> (Bench, BackendId) {
            let mut backends = Slots::default();
            let key = backends.insert(Backend::of_tests(Time(1), Rc::default()));
            let bench = Bench {
                net: Scripted::default(),
                backends,
                running: Running::default(),
                dirty: Vec::new(),
                bulk: Bulk::default(),
                in_transit: Meter::default(),
                current_input: LongInput::default(),
            };
            (bench, key)
        }

        fn to(&mut self) -> ToBackend<'_, Scripted> {
            ToBackend {
                net: &mut self.net,
                backends: &mut self.backends,
                running: &mut self.running,
                dirty: &mut self.dirty,
                bulk: &mut self.bulk,
                in_transit: &self.in_transit,
                current_input: &self.current_input,
                copied_max: 16,
            }
        }
    }

    #[test]
    fn what_a_turn_has_goes_out_at_once_in_its_order() {
        let (mut bench, key) = Bench::new();
        bench.to().send(key, b"one ");
        bench.to().send_message(key, b"two");
        assert!(bench.net.written.is_empty());
        assert_eq!(bench.dirty, [key], "it is on the list once");
        let written = bench.to().write_on(key);
        assert!(written.broken.is_none() && written.fed.is_none());
        assert_eq!(bench.net.written, b"one two");
        bench.dirty.clear();
        bench.to().send(key, b"three");
        assert_eq!(bench.dirty, [key]);
    }

    #[test]
    fn who_takes_no_more_waits_for_its_socket() {
        let (mut bench, key) = Bench::new();
        bench.net.room = 2;
        bench.to().send(key, b"four");
        bench.to().write_on(key);
        assert_eq!(bench.net.written, b"fo");
        assert!(bench.bulk.pop().is_none(), "it is told when there is room");
        assert!(bench.in_transit.bytes() > 0);
        bench.net.room = 2;
        bench.to().write(key);
        assert_eq!(bench.net.written, b"four");
    }

    #[test]
    fn a_turn_writes_a_share_and_the_rest_is_bulk_work() {
        let (mut bench, key) = Bench::new();
        bench.to().send(key, &vec![b'x'; WRITE_TURN_BYTES + 1]);
        bench.to().write_on(key);
        assert_eq!(bench.net.written.len(), WRITE_TURN_BYTES);
        assert!(matches!(bench.bulk.pop(), Some(Piece::Command(next)) if next == key));
        assert!(
            bench.backends.get(key).unwrap().dirty,
            "it stands in a line"
        );
        bench.to().write_on(key);
        assert_eq!(bench.net.written.len(), WRITE_TURN_BYTES + 1);
        assert!(bench.bulk.pop().is_none());
    }

    #[test]
    fn a_broken_connection_is_told_of_and_stands_in_no_line() {
        let (mut bench, key) = Bench::new();
        bench.net.is_broken = true;
        bench.to().send(key, b"five");
        assert!(bench.to().write_on(key).broken.is_some());
        assert!(bench.bulk.pop().is_none());
    }

    #[test]
    fn a_backend_that_is_asked_something_counts_among_those_that_run() {
        let (mut bench, key) = Bench::new();
        let backend = bench.backends.get_mut(key).unwrap();
        let own = InFlight::own(None, ForSession::Warnings, ReplyShape::Results);
        backend.flight.expect(own);
        bench.to().ask(key, b"six");
        assert_eq!(bench.backends.get(key).unwrap().load, Load::Counted);
        assert_eq!(bench.dirty, [key]);
    }
}
