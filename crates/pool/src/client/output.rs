//! Bytes to clients: at once where there is room, the rest when there is.
//!
//! A client's unsent bytes live in a box; as long as there is one, its backend is not read, so a
//! slow client holds back the server and not the pool's memory: at most one read of a backend
//! ([`crate::backend::READ_LEN_LONG`] and what it grows by in translation) waits for each. While
//! others wait for the backend, the rest may go to a file instead (`slow_readers.rs`). A client
//! that has agreed on compression gets the same bytes in frames.
//!
//! Invariants: bytes go out in the order in which they were sent here; a client whose connection is
//! broken is noted to be closed, and gets no more.

use crate::client::buffers::packing::Packing;
use crate::client::clients::Clients;
use crate::client::{ClientState, Output};
use crate::group::shared::Shared;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::slow_readers::{Keeps, NextOfSpool, SlowReaders};
use crate::observe::audit::end;
use crate::scheduler::bulk::{Bulk, Piece};
use reactor::{Net, Write};
use session::meter::Meter;

/// The clients of a group, and what is kept of that which they have not taken.
pub(crate) struct ToClient<'a, N: Net> {
    pub(crate) net: &'a mut N,
    pub(crate) shared: &'a Shared,
    pub(crate) clients: &'a mut Clients<N::Sock>,
    /// Bytes that they have not taken.
    pub(crate) outputs: &'a Meter,
    pub(crate) slow_readers: &'a mut SlowReaders,
    /// Compressor that makes frames.
    pub(crate) packing: &'a mut Packing,
    /// Work of later turns.
    pub(crate) bulk: &'a mut Bulk,
}

impl<N: Net> ToClient<'_, N> {
    /// Sends `bytes` to a client, or keeps what does not fit.
    pub(crate) fn send(&mut self, key: ClientId, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let mut frames = std::mem::take(&mut self.packing.frames);
        let mut rest = bytes;
        if client.transport.compresses()
            && let Some(compression) = client.transport.compression_mut()
        {
            frames.clear();
            let (algorithm, seq) = (compression.algorithm, compression.seq);
            let packer = self.packing.packer();
            compression.seq = packer.pack_as(algorithm, seq, bytes, &mut frames);
            rest = &frames;
        }
        if client.output.is_none() {
            while !rest.is_empty() {
                match client.transport.write(self.net, rest) {
                    Write::Bytes(n) => rest = &rest[n..],
                    Write::Blocked => break,
                    Write::Failed(error) => {
                        self.packing.frames = frames;
                        return self.clients.close_for(key, end::of(&error));
                    }
                }
            }
        }
        // Under TLS all may be taken, and not sent.
        if !rest.is_empty() || client.transport.has_unsent() {
            let keeps = Keeps {
                shared: self.shared,
                outputs: self.outputs,
            };
            (self.slow_readers).keep((key, client), rest, keeps, self.net.now());
        }
        self.packing.frames = frames;
    }

    /// Sends what was kept; goes on reading the client's backend when all of it is gone.
    pub(crate) fn flush_and_read_on(&mut self, key: ClientId) {
        if let Some(backend) = self.flush(key) {
            self.bulk.read_at_once(backend);
        }
    }

    /// Sends what was kept; when all of it is gone, says which backend is to be read
    /// on.
    pub(crate) fn flush(&mut self, key: ClientId) -> Option<BackendId> {
        let client = self.clients.get_mut(key)?;
        let unsent = client.transport.unsent_len();
        let flushed = client.transport.flush(self.net);
        if client.transport.unsent_len() < unsent {
            client.since = self.net.now();
        }
        match flushed {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return self.give_up(key, end::of(&error)),
        }
        let output = client.output.as_mut()?;
        let Output { bytes, sent, .. } = &mut **output;
        while *sent < bytes.len() {
            match client.transport.write(self.net, &bytes[*sent..]) {
                Write::Bytes(n) => {
                    *sent += n;
                    client.since = self.net.now();
                }
                Write::Blocked => return None,
                Write::Failed(error) => return self.give_up(key, end::of(&error)),
            }
        }
        let keeps = Keeps {
            shared: self.shared,
            outputs: self.outputs,
        };
        match self.slow_readers.next((key, output), keeps) {
            NextOfSpool::Nothing => {}
            NextOfSpool::InMemory => {
                self.bulk.push(Piece::Client(key));
                return None;
            }
            NextOfSpool::OnDisk => return None,
        }
        if client.transport.has_unsent() {
            return None;
        }
        client.output = None;
        if client.state() == ClientState::Leaving {
            return self.give_up(key, end::DISCONNECTED);
        }
        client.backend()
    }

    /// Closes a client whose connection is broken; `None`: no backend is read for it.
    fn give_up(&mut self, key: ClientId, why: &'static str) -> Option<BackendId> {
        self.clients.close_for(key, why);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::client::Client;
    use crate::group::scripted::{Scripted, shared, tls_record};
    use crate::limits::spool::Spool;
    use reactor::{Time, Tls};
    use std::rc::Rc;
    use std::time::Duration;

    struct Bench {
        net: Scripted,
        shared: Shared,
        clients: Clients<()>,
        outputs: Meter,
        slow_readers: SlowReaders,
        packing: Packing,
        bulk: Bulk,
    }

    impl Bench {
        fn new() -> (Bench, ClientId) {
            let client = Client::of_tests(Time(1), Rc::default());
            let mut clients = Clients::default();
            let key = clients.insert(client);
            let bench = Bench {
                net: Scripted::default(),
                shared: shared(""),
                clients,
                outputs: Meter::default(),
                slow_readers: SlowReaders::new(Spool::new(0, 64 * 1024)),
                packing: Packing::default(),
                bulk: Bulk::default(),
            };
            (bench, key)
        }

        fn writer(&mut self) -> ToClient<'_, Scripted> {
            ToClient {
                net: &mut self.net,
                shared: &self.shared,
                clients: &mut self.clients,
                outputs: &self.outputs,
                slow_readers: &mut self.slow_readers,
                packing: &mut self.packing,
                bulk: &mut self.bulk,
            }
        }
    }

    #[test]
    fn what_has_no_room_waits_and_goes_out_in_order() {
        let (mut bench, key) = Bench::new();
        bench.net.room = 3;
        bench.writer().send(key, b"abcde");
        bench.writer().send(key, b"fg");
        assert_eq!(bench.net.written, b"abc");
        assert!(bench.outputs.bytes() > 0);
        assert_eq!(bench.writer().flush(key), None);
        assert_eq!(bench.net.written, b"abc", "there is no room yet");
        bench.net.room = 100;
        bench.writer().flush(key);
        assert_eq!(bench.net.written, b"abcdefg");
        assert!(bench.clients.get(key).unwrap().output.is_none());
        assert_eq!(bench.outputs.bytes(), 0);
    }

    #[test]
    fn who_takes_a_part_under_tls_has_taken_something() {
        let (mut bench, key) = Bench::new();
        let tls = Tls::read_record(&tls_record(1)).unwrap();
        bench.clients.get_mut(key).unwrap().transport.set_tls(tls);
        bench.net.room = 0;
        bench.writer().send(key, b"abcde");
        let begun = bench.net.now;
        let since = |bench: &Bench| bench.clients.get(key).unwrap().since;
        bench.net.now = begun + Duration::from_secs(1);
        bench.writer().flush(key);
        assert_eq!(since(&bench), begun, "it has taken nothing");
        bench.net.room = 1;
        bench.writer().flush(key);
        assert_eq!(since(&bench), bench.net.now, "one byte of the record");
        assert!(bench.clients.get(key).unwrap().transport.has_unsent());
    }

    #[test]
    fn whose_connection_is_broken_is_noted_to_be_closed() {
        let (mut bench, key) = Bench::new();
        bench.net.is_broken = true;
        bench.writer().send(key, b"abc");
        assert_eq!(bench.clients.next_to_close(), Some(key));
    }
}
