//! Writing: to a client or a backend, at once where there is room, the rest when there is.
//!
//! A client's unsent bytes live in a box; as long as there is one, its backend is not read, so a
//! slow client holds back the server and not the pool's memory: at most one read of a backend
//! ([`crate::backend::READ_LEN_LONG`] and what it grows by in translation) waits for each. While
//! others wait for the backend, the rest may go to a file instead (`slow_readers.rs`).

use crate::client::Proof;
use crate::client::{ClientState, Output};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::pair::trackers::told_to;
use crate::queue::bulk::Piece;
use crate::slow_readers::NextOfSpool;
use reactor::{Key, Net, Write};
use session::last_statement::RowCount;
use wire::packet::put_short;
use wire::reply::{OK, OkPacket, put_err};
use wire::{capabilities, status};

/// Bytes of a local file that wait for the server to take them, besides one packet; then no more is
/// read from the client.
pub(crate) const FED_MAX: usize = 256 * 1024;
/// Bytes that are written to one backend in a turn; then others have theirs.
pub(crate) const WRITE_TURN_BYTES: usize = 256 * 1024;

impl<N: Net> Group<N> {
    /// Sends `bytes` to a client, or keeps what does not fit.
    pub(crate) fn send_client(&mut self, key: Key, bytes: &[u8]) {
        match self.clients.get(key) {
            Some(client) if client.compresses() => self.send_frames(key, bytes),
            _ => self.send_bytes(key, bytes),
        }
    }

    /// Sends what goes over the socket as it is.
    pub(crate) fn send_bytes(&mut self, key: Key, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let mut rest = bytes;
        if client.output.is_none() {
            while !rest.is_empty() {
                match client.transport.write(&mut self.net, rest) {
                    Write::Bytes(n) => rest = &rest[n..],
                    Write::Blocked => break,
                    Write::Failed(_) => return self.close_later(key),
                }
            }
        }
        // Under TLS all may be taken, and not sent.
        if !rest.is_empty() || client.transport.has_unsent() {
            let keeps = (&*self.shared, &self.outputs);
            (self.slow_readers).keep((key, client), rest, keeps, self.net.now());
        }
    }

    /// Sends what was kept; goes on reading the client's backend when all of it is gone.
    pub(crate) fn flush_client(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let had_unsent = client.transport.has_unsent();
        match client.transport.flush(&mut self.net) {
            Ok(true) if had_unsent => client.since = self.net.now(),
            Ok(true) => {}
            Ok(false) => return,
            Err(_) => return self.close_later(key),
        }
        let Some(output) = &mut client.output else {
            return;
        };
        let Output { bytes, sent, .. } = &mut **output;
        while *sent < bytes.len() {
            match client.transport.write(&mut self.net, &bytes[*sent..]) {
                Write::Bytes(n) => {
                    *sent += n;
                    client.since = self.net.now();
                }
                Write::Blocked => return,
                Write::Failed(_) => return self.close_later(key),
            }
        }
        let keeps = (&*self.shared, &self.outputs);
        match self.slow_readers.next((key, output), keeps) {
            NextOfSpool::Nothing => {}
            NextOfSpool::InMemory => return self.bulk.push(Piece::Client(key)),
            NextOfSpool::OnDisk => return,
        }
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if client.transport.has_unsent() {
            return;
        }
        client.output = None;
        if client.state() == ClientState::Leaving {
            return self.close_later(key);
        }
        if let Some(backend) = client.lease() {
            self.read_in_next_turn(backend);
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
        match self.buffer_of(message) {
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
            self.count_kept(key);
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
        self.log_own_error(key, code.code);
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

    /// Sends an OK of the pool's own, after `front` (packets that belong before it). `first` is
    /// [`OK`], or `END` where the protocol has an EOF.
    pub(crate) fn send_ok(&mut self, key: Key, front: &[u8], first: u8) {
        self.put_ok(key, front, first, (0, b"", &[]));
    }

    /// The OK of a login: what it proves to clients of MariaDB is its info.
    pub(crate) fn end_login(&mut self, key: Key, front: &[u8]) {
        let login = self
            .clients
            .get_mut(key)
            .and_then(|client| client.login.take());
        self.counts.logins += 1;
        let is_mysql = self.shared.server.flavour.is_mysql();
        let proof = login.and_then(|login| login.certificate_proof().filter(|_| !is_mysql));
        self.send_logged_in(key, front, proof.as_ref().map_or(&[], |proof| proof));
        if let Some(client) = self.clients.get_mut(key) {
            client.begin_compression();
        }
    }

    /// The OK of a login, or of a change of user: it reports the default schema.
    fn send_logged_in(&mut self, key: Key, front: &[u8], info: &[u8]) {
        let mut changes = Vec::new();
        if let Some(client) = self.clients.get_mut(key) {
            client.proof = Proof::Given;
            if told_to(client, &self.shared.server).schema
                && let Some(schema) = &client.session.schema
            {
                wire::track::put_schema(&mut changes, schema);
            }
        }
        self.put_ok(key, front, OK, (0, info, &changes));
    }

    /// An OK that leaves the warnings before it; MySQL counts those of the last statement in it.
    pub(crate) fn send_warned_ok(&mut self, key: Key, first: u8) {
        let mysql = self.shared.server.flavour.is_mysql();
        let warnings = self
            .clients
            .get(key)
            .map_or(0, |client| client.last.conditions);
        let warnings = if mysql { warnings } else { 0 };
        self.put_ok(key, b"", first, (warnings, b"", &[]));
    }

    /// An OK that leaves no warnings, with these reports of what has changed.
    pub(crate) fn send_reporting_ok(&mut self, key: Key, reports: &[u8]) {
        self.put_ok(key, b"", OK, (0, b"", reports));
    }

    fn put_ok(
        &mut self,
        key: Key,
        front: &[u8],
        first: u8,
        (warnings, info, reports): (u16, &[u8], &[u8]),
    ) {
        let mut status = self
            .client_view(key)
            .map_or(0, |view| view.status(self.shared.server.flavour));
        let server = &self.shared.server;
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let mut out = std::mem::take(&mut self.lent);
        out.clear();
        out.extend_from_slice(front);
        let modern = client.capabilities & capabilities::DEPRECATE_EOF != 0;
        let tracks = client.capabilities & capabilities::SESSION_TRACK != 0;
        let mut changes = if tracks { reports.to_vec() } else { Vec::new() };
        let mysql = server.flavour.is_mysql();
        // These bytes have been read before, so they can be.
        if tracks && (first == OK || modern) {
            let told = told_to(client, server).transactions;
            let pending = &mut client.pending_changes;
            if pending.put(&mut changes, told, mysql).is_err() {
                return self.close_later(key);
            }
        }
        if !changes.is_empty() {
            status |= status::SESSION_STATE_CHANGED;
        }
        let (affected_rows, insert_id) = (0, 0);
        let ok = OkPacket {
            affected_rows,
            insert_id,
            status,
            warnings,
            info,
            changes: &changes,
        };
        put_short(&mut out, client.seq, |out| {
            if first == OK || modern {
                ok.put(out, first, tracks);
            } else {
                ok.put_eof(out);
            }
        });
        self.send_client(key, &out);
        self.lent = out;
    }
}
