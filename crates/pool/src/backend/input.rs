//! Bytes from backends: who is read now, how much, and who is read later.
//!
//! A backend is read for a share of a turn. One whose reply is long is read piece by piece, as bulk
//! work, between the statements of others; one whose handshake is under way, as often as handshakes
//! are made in a turn. What is read goes behind what was left unused of the last read.
//!
//! Invariants: a backend is not read while the client that its bytes are for has not taken the last
//! ones, so the memory that waits for slow clients is bounded; one that has more to read stands in
//! a line, or is noted as held up.

use crate::backend::handshake::LoginStep;
use crate::backend::pools::BackendPools;
use crate::backend::{Backend, READ_LEN, READ_LEN_LONG};
use crate::client::clients::Clients;
use crate::group::shared::Shared;
use crate::group::tokens::BackendId;
use crate::limits::slow_readers::SlowReaders;
use crate::scheduler::bulk::{Bulk, Piece};
use reactor::{Net, Read, Slots};
use std::io;

/// Bytes read of a reply that is not long, but for a part of the last read; then others have
/// theirs.
const READ_TURN_BYTES: usize = 128 * 1024;

/// Result of reading.
#[derive(Debug)]
pub(crate) enum FromServer {
    /// No read: it is not read now.
    Nothing,
    /// Number of bytes at the front of the buffer, those of before included.
    Bytes(usize),
    /// No more bytes at this moment; next step of its login.
    Blocked(LoginStep),
    /// End: the server has closed the connection.
    End,
    /// Error of a broken connection.
    Failed(io::Error),
}

/// Bytes read of a backend in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// All of it, but for a part of the last read.
    pub(crate) share: usize,
    /// By the first read.
    pub(crate) len: usize,
}

impl Pace {
    /// True if it is that of a long reply.
    pub(crate) fn is_long(self) -> bool {
        self.len == READ_LEN_LONG
    }
}

/// The backends of a group, and those among them that are read later.
pub(crate) struct FromBackend<'a, N: Net> {
    pub(crate) net: &'a mut N,
    pub(crate) backends: &'a mut Slots<Backend<N::Sock>, BackendId>,
    pub(crate) clients: &'a Clients<N::Sock>,
    pub(crate) pools: &'a BackendPools,
    pub(crate) shared: &'a Shared,
    pub(crate) slow_readers: &'a mut SlowReaders,
    /// Work of later turns.
    pub(crate) bulk: &'a mut Bulk,
    /// Steps of handshakes that may still be made in this turn.
    pub(crate) handshakes_left: &'a mut usize,
}

impl<N: Net> FromBackend<'_, N> {
    /// Bytes read of it at once: a piece of a long reply, and of another as much as makes it long.
    /// `None` where its handshake is under way and goes on in one of the next turns.
    pub(crate) fn pace(&mut self, key: BackendId) -> Option<Pace> {
        let backend = self.backends.get(key)?;
        if !backend.transport.takes_step(self.handshakes_left) {
            self.bulk.read_at_once(key);
            return None;
        }
        let is_long = backend.flight.reply_so_far().len >= self.shared.lengths.long_reply;
        let (share, len) = match is_long {
            true => (READ_LEN_LONG, READ_LEN_LONG),
            false => (READ_TURN_BYTES, READ_LEN),
        };
        Some(Pace { share, len })
    }

    /// Reads at most `len` bytes of a backend, behind those that were left of the last read. What
    /// is not used of them is to be given back ([`FromBackend::give_back`]).
    pub(crate) fn read(&mut self, key: BackendId, buffer: &mut Vec<u8>, len: usize) -> FromServer {
        let now = self.net.now();
        let may_read = |backend: &&mut Backend<_>| {
            (self.slow_readers).may_read(backend, self.clients, self.shared, now)
        };
        // There may be bytes, and the client that they are for has taken the last ones.
        let Some(backend) = self.backends.get_mut(key).filter(may_read) else {
            return FromServer::Nothing;
        };
        let kept = backend.input.len();
        if buffer.len() < kept + len {
            buffer.resize(kept + len, 0);
        }
        buffer[..kept].copy_from_slice(&backend.input);
        match (backend.transport).read(self.net, &mut buffer[kept..kept + len]) {
            Read::Bytes(n) => {
                backend.input.clear();
                if !backend.is_reader() {
                    self.shared.upstream.heard();
                }
                FromServer::Bytes(kept + n)
            }
            Read::Blocked => {
                let pool = &self.pools.pools[backend.pool].key;
                FromServer::Blocked(backend.go_on_with_login(pool))
            }
            Read::End => FromServer::End,
            Read::Failed(error) => FromServer::Failed(error),
        }
    }

    /// Puts back what was not used of the last read.
    pub(crate) fn give_back(&mut self, key: BackendId, rest: &[u8]) {
        if let Some(backend) = self.backends.get_mut(key) {
            backend.input.extend_from_slice(rest);
        }
    }

    /// Puts off the rest of a backend's input to a later turn, if there is any: its share of this
    /// one is used up.
    pub(crate) fn put_off(&mut self, key: BackendId) {
        let now = self.net.now();
        let is_readable = |backend: &&mut Backend<_>| backend.transport.is_readable();
        let Some(backend) = self.backends.get_mut(key).filter(is_readable) else {
            return;
        };
        if !(self.slow_readers).may_read(backend, self.clients, self.shared, now) {
            return self.slow_readers.note_held_up(key, backend, now);
        }
        match backend.flight.reply_so_far().len >= self.shared.lengths.long_reply {
            true => self.bulk.push(Piece::Reply(key)),
            false => self.bulk.read_at_once(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::pools::PoolKey;
    use crate::backend::{BackendState, InFlight, Purpose};
    use crate::client::{Client, ClientState};
    use crate::group::scripted::{Scripted, shared};
    use crate::group::tokens::ClientId;
    use crate::limits::spool::Spool;
    use reactor::{Event, Time};
    use std::rc::Rc;
    use wire::command::ReplyShape;

    const NOW: Time = Time(1_000_000_000);

    struct Bench {
        net: Scripted,
        backends: Slots<Backend<()>, BackendId>,
        clients: Clients<()>,
        pools: BackendPools,
        shared: Shared,
        slow_readers: SlowReaders,
        bulk: Bulk,
        handshakes_left: usize,
    }

    impl Bench {
        /// A client whose statement runs on a backend, from which there may be bytes.
        fn new() -> (Bench, ClientId, BackendId) {
            let shared = shared("");
            let client = Client::of_tests(NOW, Rc::default());
            let (mut clients, mut backends) = (Clients::default(), Slots::default());
            let mut pools = BackendPools::default();
            pools.add(PoolKey::of_user("app"), |_| false);
            let owner = clients.insert(client);
            let mut backend = Backend::of_tests(NOW, Rc::default());
            use BackendState::{CheckedOut, Idle, Preparing};
            for state in [Preparing, Idle, CheckedOut] {
                assert!(backend.change_state(state, NOW));
            }
            let shape = ReplyShape::Results;
            (backend.flight).expect(InFlight::own(Some(owner), Purpose::Statement, shape));
            let key = backends.insert(backend);
            let client = clients.get_mut(owner).unwrap();
            assert!(client.change_state(ClientState::Idle, NOW));
            let backend = backends.get_mut(key).unwrap();
            client.bind(backend, (owner, key));
            let mut bench = Bench {
                net: Scripted::default(),
                backends,
                clients,
                pools,
                slow_readers: SlowReaders::new(Spool::new(0, shared.lengths.spool_block)),
                shared,
                bulk: Bulk::default(),
                handshakes_left: 1,
            };
            bench.tells(key);
            (bench, owner, key)
        }

        /// Notes readiness of the backend, as if there were bytes.
        fn tells(&mut self, key: BackendId) {
            let backend = self.backends.get_mut(key).unwrap();
            backend.transport.note(Event {
                token: key.token(),
                readable: true,
                writable: false,
                closed: false,
            });
        }

        fn from(&mut self) -> FromBackend<'_, Scripted> {
            FromBackend {
                net: &mut self.net,
                backends: &mut self.backends,
                clients: &self.clients,
                pools: &self.pools,
                shared: &self.shared,
                slow_readers: &mut self.slow_readers,
                bulk: &mut self.bulk,
                handshakes_left: &mut self.handshakes_left,
            }
        }

        /// Fills the client's output with `len` bytes that it has not taken.
        fn holds_up(&mut self, owner: ClientId, len: usize) {
            let client = self.clients.get_mut(owner).unwrap();
            client.output.insert(Box::default()).bytes = vec![0; len];
        }
    }

    #[test]
    fn what_is_read_goes_behind_what_was_left() {
        let (mut bench, _, key) = Bench::new();
        let mut buffer = Vec::new();
        bench.net.incoming = b"one".to_vec();
        let got = bench.from().read(key, &mut buffer, 8);
        assert!(matches!(got, FromServer::Bytes(3)), "{got:?}");
        bench.from().give_back(key, &buffer[1..3]);
        bench.net.incoming = b" two".to_vec();
        bench.tells(key);
        let got = bench.from().read(key, &mut buffer, 8);
        assert!(matches!(got, FromServer::Bytes(6)), "{got:?}");
        assert_eq!(&buffer[..6], b"ne two");
        bench.tells(key);
        let got = bench.from().read(key, &mut buffer, 8);
        assert!(
            matches!(got, FromServer::Blocked(LoginStep::Wait)),
            "{got:?}"
        );
        let got = bench.from().read(key, &mut buffer, 8);
        assert!(
            matches!(got, FromServer::Nothing),
            "nothing has come: {got:?}"
        );
    }

    #[test]
    fn a_backend_waits_for_its_client_and_is_noted() {
        let (mut bench, owner, key) = Bench::new();
        bench.net.incoming = b"more".to_vec();
        bench.holds_up(owner, 9);
        let got = bench.from().read(key, &mut Vec::new(), 8);
        assert!(matches!(got, FromServer::Nothing), "{got:?}");
        assert_eq!(bench.net.incoming.len(), 4, "it lies in the socket");
        bench.from().put_off(key);
        let backend = bench.backends.get(key).unwrap();
        assert!(backend.flight.held_up_since().is_some());
        assert!(bench.bulk.pop().is_none() && !bench.bulk.turns_at_once());
    }

    #[test]
    fn a_long_reply_goes_on_as_bulk_work_and_another_at_once() {
        let (mut bench, _, key) = Bench::new();
        assert_eq!(bench.from().pace(key).unwrap().len, READ_LEN);
        bench.from().put_off(key);
        assert!(bench.bulk.turns_at_once());
        let (mut bench, _, key) = Bench::new();
        let long = bench.shared.lengths.long_reply;
        let backend = bench.backends.get_mut(key).unwrap();
        backend.flight.summary_mut().len = long;
        let pace = bench.from().pace(key).unwrap();
        assert_eq!((pace.share, pace.len), (READ_LEN_LONG, READ_LEN_LONG));
        bench.from().put_off(key);
        assert!(matches!(bench.bulk.pop(), Some(Piece::Reply(next)) if next == key));
    }

    #[test]
    fn handshakes_have_their_share_of_a_turn_and_others_need_none() {
        let (mut bench, _, key) = Bench::new();
        assert!(bench.from().pace(key).is_some());
        assert_eq!(bench.handshakes_left, 1, "it has none under way");
        bench.handshakes_left = 0;
        assert!(bench.from().pace(key).is_some());
    }
}
