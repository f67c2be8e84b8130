//! Writing: to clients and to backends, and answers of the pool's own.
//!
//! What goes to clients goes out at once where there is room ([`crate::to_client`]); what goes to a
//! backend goes out at the end of the turn, with whatever else is for it then, in one write.

use crate::buffers::outgoing::FED_MAX;
use crate::client::Proof;
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::own_ok::{OwnOk, Unreadable};
use crate::queue::bulk::Piece;
use crate::to_client::ToClient;
use reactor::{Key, Net, Write};
use session::last_statement::RowCount;
use wire::reply::put_err;

/// Bytes that are written to one backend in a turn; then others have theirs.
pub(crate) const WRITE_TURN_BYTES: usize = 256 * 1024;

impl<N: Net> Group<N> {
    /// What is sent to clients goes through this.
    #[inline]
    fn client_writer(&mut self) -> ToClient<'_, N> {
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

    /// Sends `bytes` to a client, or keeps what does not fit.
    pub(crate) fn send_client(&mut self, key: Key, bytes: &[u8]) {
        self.client_writer().send(key, bytes);
    }

    /// Sends what was kept; goes on reading the client's backend when all of it is gone.
    pub(crate) fn flush_client(&mut self, key: Key) {
        if let Some(backend) = self.client_writer().flush(key) {
            self.read_in_next_turn(backend);
        }
    }

    /// Sends an OK of the pool's own.
    pub(crate) fn send_ok(&mut self, key: Key, ok: &OwnOk<'_>) {
        let status = self
            .client_view(key)
            .map_or(0, |view| view.status(self.shared.server.flavour));
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let mut out = std::mem::take(&mut self.lent);
        out.clear();
        match client.put_ok(&mut out, ok, status, &self.shared.server) {
            Ok(()) => self.send_client(key, &out),
            Err(Unreadable) => self.close_later(key),
        }
        self.lent = out;
    }

    /// The OK of a login: what it proves to clients of MariaDB is its info, and it reports the
    /// default schema.
    pub(crate) fn end_login(&mut self, key: Key, front: &[u8]) {
        let server = &self.shared.server;
        self.counts.logins += 1;
        let (mut proof, mut reports) = (None, Vec::new());
        if let Some(client) = self.clients.get_mut(key) {
            if let Some(login) = client.login.take() {
                proof = login.certificate_proof();
            }
            client.proof = Proof::Given;
            reports = client.schema_report(server);
        }
        let proof = proof.filter(|_| !server.flavour.is_mysql());
        let ok = OwnOk {
            front,
            info: proof.as_ref().map_or(&[], |proof| proof),
            reports: &reports,
            ..OwnOk::PLAIN
        };
        self.send_ok(key, &ok);
        if let Some(client) = self.clients.get_mut(key) {
            client.begin_compression();
        }
    }

    /// Puts `bytes` in line for a backend; they go out at the end of the turn, with whatever else
    /// is for it then, in one write.
    pub(crate) fn send_backend(&mut self, key: Key, bytes: &[u8]) {
        if let Some(backend) = self.backends.get_mut(key) {
            backend.output.last().extend_from_slice(bytes);
            self.write_at_end_of_turn(key);
        }
    }

    /// Sends a client's command to its backend, in the words that the backend knows.
    pub(crate) fn send_command(&mut self, key: Key, lease: Key, message: &[u8]) {
        let prepared = (self.clients.get_mut(key)).and_then(|client| client.prepared.as_mut());
        let Some(under_way) = prepared.and_then(|prepared| prepared.under_way.take()) else {
            return self.send_message(lease, message);
        };
        let share = self.shared.prepared_of_backend(&self.settings);
        if let Some(mut pair) = self.pair(key, lease) {
            let out = pair.put_prepared(under_way, message, share);
            self.send_backend(lease, &out);
        }
    }

    /// The same of a client's command, which is not copied if it is long and lies in the buffer of
    /// what the client has sent.
    pub(crate) fn send_message(&mut self, key: Key, message: &[u8]) {
        let is_long = message.len() > self.shared.text_here_max;
        match self.in_hand.buffer_of(message).filter(|_| is_long) {
            Some((bytes, range)) => {
                if let Some(backend) = self.backends.get_mut(key) {
                    backend.output.push_shared(bytes, range);
                    self.write_at_end_of_turn(key);
                }
            }
            None => self.send_backend(key, message),
        }
    }

    fn write_at_end_of_turn(&mut self, key: Key) {
        if let Some(backend) = self.backends.get_mut(key)
            && !backend.dirty
        {
            backend.dirty = true;
            self.dirty.push(key);
        }
    }

    /// The server has taken what its client had sent of a file: the client is read again.
    fn feed_on(&mut self, lease: Option<Key>) {
        let now = self.net.now();
        if let Some(key) = lease
            && let Some(client) = self.clients.get_mut(key)
        {
            // It could not be heard meanwhile.
            client.heard_from(now);
            self.bulk.push(Piece::Client(key));
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
        if let Some(backend) = self.backends.get_mut(key) {
            backend.dirty = false;
            self.flush_backend(key);
        }
        if let Some(backend) = self.backends.get_mut(key) {
            backend.count_kept(&self.in_transit);
        }
    }

    /// Writes what is in line for a backend, as far as there is room, and a turn's share at most.
    pub(crate) fn flush_backend(&mut self, key: Key) {
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        let before = backend.unsent();
        let mut share = before.min(WRITE_TURN_BYTES);
        let mut broken = None;
        let mut blocked = match backend.transport.flush(&mut self.net) {
            Ok(is_sent) => !is_sent,
            Err(error) => {
                broken = Some(error);
                true
            }
        };
        while share > 0 && broken.is_none() && !blocked {
            let piece = backend.output.front();
            let piece = &piece[..piece.len().min(share)];
            match backend.transport.write(&mut self.net, piece) {
                Write::Bytes(n) => {
                    backend.output.written(n);
                    share -= n;
                }
                Write::Blocked => blocked = true,
                Write::Failed(error) => broken = Some(error),
            }
        }
        let left = backend.unsent();
        let fed = backend
            .lease()
            .filter(|_| before > FED_MAX && left <= FED_MAX);
        if left > 0 && !blocked && broken.is_none() && !backend.dirty {
            backend.dirty = true;
            self.bulk.push(Piece::Command(key));
        }
        if let Some(error) = broken {
            self.backend_broken(key, &error);
        }
        self.feed_on(fed);
    }

    /// Sends an error of the pool's own as the answer to the client's command.
    pub(crate) fn refuse(&mut self, key: Key, refusal: &Refusal) {
        *self.counts.refusals.entry(refusal.name()).or_default() += 1;
        let text = refusal.to_string();
        // An execution was refused, and is over for its client: so is the long data for it.
        if let Some(client) = self.clients.get_mut(key)
            && let Some(id) = client.under_way().map(|under_way| under_way.id)
        {
            self.long_data -= client.drop_long_data(id);
        }
        self.send_error(key, refusal.code(), &text);
    }

    /// Sends an error as the answer to the client's command.
    pub(crate) fn send_error(&mut self, key: Key, code: wire::errors::ErrorCode, text: &str) {
        self.logs().own_error(key, code.code);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let mut out = std::mem::take(&mut self.lent);
        out.clear();
        put_err(&mut out, client.seq, code, text);
        client.last.row_count = RowCount::NONE;
        self.send_client(key, &out);
        self.lent = out;
    }
}
