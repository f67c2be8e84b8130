//! Writing: to clients and to backends, and answers of the pool's own.
//!
//! What goes to clients goes out at once where there is room ([`crate::to_client`]); what goes to a
//! backend goes out at the end of the turn, with whatever else is for it then, in one write.

use crate::answers::Answers;
use crate::group::Group;
use crate::queue::bulk::Piece;
use crate::to_backend::{ToBackend, Written};
use crate::to_client::ToClient;
use reactor::{Key, Net};

impl<N: Net> Group<N> {
    /// What is sent to clients goes through this.
    #[inline]
    pub(crate) fn client_writer(&mut self) -> ToClient<'_, N> {
        ToClient {
            net: &mut self.net,
            shared: &self.shared,
            clients: &mut self.clients,
            outputs: &self.kept.outputs,
            slow_readers: &mut self.slow_readers,
            packing: &mut self.packing,
            bulk: &mut self.bulk,
        }
    }

    /// Sends what was kept; goes on reading the client's backend when all of it is gone.
    pub(crate) fn flush_client(&mut self, key: Key) {
        if let Some(backend) = self.client_writer().flush(key) {
            self.bulk.read_at_once(backend);
        }
    }

    /// Answers of the pool's own go through this.
    #[inline]
    pub(crate) fn answers(&mut self) -> Answers<'_, N> {
        Answers {
            to: ToClient {
                net: &mut self.net,
                shared: &self.shared,
                clients: &mut self.clients,
                outputs: &self.kept.outputs,
                slow_readers: &mut self.slow_readers,
                packing: &mut self.packing,
                bulk: &mut self.bulk,
            },
            settings: &self.settings,
            backends: &self.backends,
            pools: &self.backend_pools,
            digests: &self.figures.digests,
            logs: &mut self.statement_logs,
            counts: &mut self.counts,
            long_data: &mut self.kept.long_data,
            lent: &mut self.lent,
        }
    }

    /// What is sent to backends goes through this.
    #[inline]
    pub(crate) fn backend_writer(&mut self) -> ToBackend<'_, N> {
        ToBackend {
            net: &mut self.net,
            backends: &mut self.backends,
            running: &mut self.running,
            dirty: &mut self.dirty,
            bulk: &mut self.bulk,
            in_transit: &self.kept.in_transit,
            in_hand: &self.in_hand,
            copied_max: self.shared.text_here_max,
        }
    }

    /// Sends a client's command to its backend, in the words that the backend knows.
    pub(crate) fn send_command(&mut self, key: Key, lease: Key, message: &[u8]) {
        let prepared = (self.clients.get_mut(key)).and_then(|client| client.prepared.as_mut());
        let Some(under_way) = prepared.and_then(|prepared| prepared.under_way.take()) else {
            return self.backend_writer().send_message(lease, message);
        };
        let share = self.shared.prepared_of_backend(&self.settings);
        if let Some(mut pair) = self.pair(key, lease) {
            let out = pair.put_prepared(under_way, message, share);
            self.backend_writer().send(lease, &out);
        }
    }

    /// Writes to every backend that has something in line.
    pub(crate) fn flush_dirty(&mut self) {
        while let Some(key) = self.dirty.pop() {
            self.write_on(key);
        }
    }

    /// Goes on writing to a backend that has had its share of an earlier turn.
    pub(crate) fn write_on(&mut self, key: Key) {
        let written = self.backend_writer().write_on(key);
        self.written(key, written);
    }

    /// A backend has been written to.
    pub(crate) fn written(&mut self, key: Key, written: Written) {
        if let Some(error) = written.broken {
            self.backend_broken(key, &error);
        }
        // The server has taken what its client had sent of a file: the client is read again.
        let now = self.net.now();
        if let Some(key) = written.fed
            && let Some(client) = self.clients.get_mut(key)
        {
            // It could not be heard meanwhile.
            client.heard_from(now);
            self.bulk.push(Piece::Client(key));
        }
    }
}
