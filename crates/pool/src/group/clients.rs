//! Clients: greet, read, close.
//!
//! [`Group::pump`] turns bytes into commands for as long as a client may be served: while its
//! statement waits or runs, its further bytes stay in the kernel, which is all the back-pressure
//! there is. Commands that were read together are handled one after the other, so pipelining works
//! and is answered in order.

pub(crate) mod arrivals;
pub(crate) mod departing;
pub(crate) mod login;
pub(crate) mod long_commands;
pub(crate) mod long_texts;
pub(crate) mod memory_share;
pub(crate) mod moving;
pub(crate) mod proxy_header;
pub(crate) mod reset_connection;
pub(crate) mod slow_readers;
pub(crate) mod timeouts;
pub(crate) mod tls;
pub(crate) mod unfinished;

use crate::auth::login::Login;
use crate::client::buffers::transport::Transport;
use crate::client::input::Got;
use crate::client::{Client, ClientState, Handled};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::group::tasks::Task;
use crate::group::tokens::ClientId;
use crate::limits::addresses::CountedAddress;
use crate::observe::audit::end;
use crate::scheduler::client_turn::ClientTurn;
use crate::server::facts::ServerFacts;
use reactor::{Address, Event, Net};
use session::state::Session;
use std::sync::atomic::Ordering;
use wire::handshake::nonce_of_connection;
use wire::packet::{Frame, frame, packets, payload_len};
use wire::wrong_protocol::WrongProtocol;

/// The longest packet of a login.
const LOGIN_LEN_MAX: usize = 64 * 1024;

/// True if a client in this state may send a message of so many bytes, headers and all.
fn check_length(state: ClientState, total: usize, server: &ServerFacts) -> Result<(), Refusal> {
    let (len, max) = match state {
        ClientState::Greeted | ClientState::Proving => (total, LOGIN_LEN_MAX),
        // Servers take commands that are shorter than `max_allowed_packet`.
        _ => (payload_len(total), server.max_allowed_packet - 1),
    };
    match len > max {
        true => Err(Refusal::TooLong { len, max }),
        false => Ok(()),
    }
}

impl<N: Net> Group<N> {
    /// Greets a connection, at once or behind its PROXY header, or says why it cannot stay.
    pub(crate) fn greet(&mut self, sock: N::Sock, listener: usize) {
        self.counts.accepted += 1;
        let refusal = if !self.drain.is_off() {
            Some(Refusal::Draining)
        } else if self.clients.len() >= self.shared.clients_per_group {
            Some(Refusal::GroupFull {
                max: self.shared.clients_per_group,
            })
        } else if self.shared.clients.load(Ordering::Relaxed) >= self.settings.clients_max {
            Some(Refusal::Clients {
                max: self.settings.clients_max,
            })
        } else if self.shared.is_memory_full.load(Ordering::Relaxed) {
            Some(self.shared.memory_refusal())
        } else {
            None
        };
        let needs_header = refusal.is_none() && self.address_counts().needs_proxy_header(&sock);
        let admitted = match refusal {
            Some(refusal) => Err(refusal),
            // A proxy speaks for others: theirs is the address that counts.
            None if needs_header => Ok(CountedAddress::default()),
            None => self
                .address_counts()
                .admit(|net| net.peer(&sock).map(|peer| peer.ip())),
        };
        let counted = match admitted {
            Ok(counted) => counted,
            Err(refusal) => return self.failed_logins().turn_away(&sock, &refusal),
        };
        let is_local = matches!(self.settings.listen.get(listener), Some(Address::Unix(_)));
        let transport = Transport::plain(sock, is_local);
        let id = self
            .clients
            .next_id(self.shared.ids(), self.index, self.shared.groups);
        let nonce = nonce_of_connection(&self.nonce_key, id);
        let session = self.sessions.intern(Session::default());
        let now = self.net.now();
        let login = Login::new(nonce, is_local);
        let mut client = match needs_header {
            true => Client::before_header(transport, now, session, login),
            false => Client::greeted(transport, now, session, login),
        };
        client.set_id(id);
        let key = self.clients.insert(client);
        self.address_counts().note(key, counted);
        self.shared.clients.fetch_add(1, Ordering::Relaxed);
        let watched = match self.clients.get(key) {
            Some(client) => self.net.watch(client.transport.sock(), key.token()),
            None => return,
        };
        if watched.is_err() {
            self.counts.accept_failures += 1;
            return self.clients.close_later(key);
        }
        if !needs_header {
            let nonce_key = self.nonce_key;
            self.answers().greeting(key, &nonce_key);
        }
    }

    /// Handles an event of a client's socket.
    pub(crate) fn on_client(&mut self, key: ClientId, event: Event) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        client.transport.note(event);
        if event.writable && client.has_unsent() {
            self.client_writer().flush_and_read_on(key);
        }
        if self.clients.get(key).is_some_and(Client::takes_input) {
            // Who has used up a turn, or waits for room, goes on in its line.
            if !self.inputs.holds_up(key) {
                self.tasks.add(Task::Read(key));
            }
        } else if event.closed {
            self.client_reader().hung_up(key);
        }
    }

    /// Serves a client for as long as it has bytes and may be served, and its turn lasts.
    pub(crate) fn pump(&mut self, key: ClientId) {
        self.pump_uncounted(key);
        let held = self.clients.get(key).map_or(0, Client::held);
        if self.inputs.counts(held) {
            self.room().count(key);
        }
    }

    fn pump_uncounted(&mut self, key: ClientId) {
        let mut turn = ClientTurn::default();
        while turn.takes_read(|| self.net.clock()) {
            let Some(client) = self.clients.get_mut(key) else {
                return;
            };
            if !client.takes_input() || client.is_closing() || self.is_left_unread(key) {
                return;
            }
            let Some(client) = self.clients.get_mut(key) else {
                return;
            };
            if !client.withholds_input()
                && let Some(mut input) = client.take_input()
            {
                if client.leaves_to_reader(&mut input, (self.index, key), &self.shared) {
                    client.put_input(input);
                    return;
                }
                if self.waits_behind_long(key, &input) {
                    if let Some(client) = self.clients.get_mut(key) {
                        client.put_input(input);
                    }
                    return;
                }
                self.consume_input(key, &mut input, &mut turn);
                let Some(client) = self.clients.get_mut(key) else {
                    return;
                };
                let takes_input = client.takes_input();
                if !input.is_empty() {
                    client.put_input(input);
                } else {
                    self.lent.inputs.put(input);
                }
                if !takes_input {
                    return;
                }
            }
            if turn.is_over() {
                break;
            }
            if self.is_left_unread(key) || !self.fill(key, &mut turn) {
                return;
            }
        }
        self.room().stand_in_line(key);
    }

    /// True if a client is not read now: what it has sent of a file is enough for the server, or it
    /// goes to another process.
    fn is_left_unread(&mut self, key: ClientId) -> bool {
        let feeds = |client: &&Client<N::Sock>| client.state() == ClientState::Feeding;
        let feeder = self.clients.get(key).filter(feeds);
        let fed = feeder.is_some_and(|c| c.has_fed_enough(c.backend_in(&self.backends)));
        fed || self.departs(key)
    }

    /// Reads more bytes; `false` when there are none now.
    fn fill(&mut self, key: ClientId, turn: &mut ClientTurn) -> bool {
        match self.client_reader().read(key) {
            Got::Nothing => return false,
            Got::More => return true,
            Got::Fresh(fresh) => {
                let bytes = fresh.bytes();
                // What is longer goes by way of the client's input.
                let used = match bytes.len() > self.shared.text_here_max {
                    true => 0,
                    false => self.consume(key, bytes, turn),
                };
                self.client_reader().give_back(key, fresh, used);
                return true;
            }
            Got::Refused(refusal) => self.refuse_and_leave(key, &refusal),
            Got::NoRoom(refusal) => self.refuse_input(key, &refusal),
            Got::Failed(error) => self.failed_logins().tls_failed(key, &error),
        }
        false
    }

    /// Handles the whole messages at the front of `bytes`, as far as its turn goes; returns how
    /// many bytes were used.
    pub(crate) fn consume(&mut self, key: ClientId, bytes: &[u8], turn: &mut ClientTurn) -> usize {
        let mut at = 0;
        loop {
            let Some(client) = self.clients.get_mut(key) else {
                return bytes.len();
            };
            // The place was that of the command before.
            if at > 0 {
                client.place.give_up();
            }
            if client.is_closing() {
                return bytes.len();
            }
            let state = client.state();
            if !client.takes_input() || at == bytes.len() || self.is_left_unread(key) {
                return at;
            }
            let rest = &bytes[at..];
            if state == ClientState::Accepted {
                match self.take_proxy_header(key, rest) {
                    0 => return at,
                    len => at += len,
                }
                continue;
            }
            if state == ClientState::Greeted
                && let Some(wrong) = WrongProtocol::of_bytes(rest)
            {
                self.refuse_and_leave(key, &Refusal::WrongProtocol { wrong });
                return at;
            }
            let (total, last_seq) = match frame(rest) {
                Frame::Whole { total, last_seq } => (total, last_seq),
                Frame::Partial { total } => {
                    if let Err(refusal) = check_length(state, total, &self.shared.server) {
                        let commands = state == ClientState::Idle;
                        if let Some(client) = self.clients.get_mut(key).filter(|_| commands) {
                            // The answer is numbered behind the last packet that has begun.
                            client.set_seq(u8::try_from(packets(total) % 256).unwrap_or_default());
                        }
                        self.refuse_and_leave(key, &refusal);
                    }
                    return at;
                }
                Frame::OutOfOrder { expected, got } => {
                    self.refuse_and_leave(key, &Refusal::OutOfOrder { expected, got });
                    return at;
                }
            };
            if !turn.takes_command(|| self.net.clock()) {
                return at;
            }
            match self.handle(key, state, &rest[..total], last_seq) {
                Handled::Used => {
                    at += total;
                    if let Some(client) = self.clients.get_mut(key) {
                        client.end_command();
                    }
                }
                Handled::Kept => return at,
                Handled::Framed => {
                    if let Some(client) = self.clients.get_mut(key) {
                        client.keep_frames(&rest[total..]);
                    }
                    return bytes.len();
                }
                Handled::Secured => {
                    self.begin_tls(key, &rest[total..]);
                    return bytes.len();
                }
            }
        }
    }

    fn handle(
        &mut self,
        key: ClientId,
        state: ClientState,
        message: &[u8],
        last_seq: u8,
    ) -> Handled {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        client.heard_from(now);
        let seq = client.seq();
        client.set_seq(last_seq.wrapping_add(1));
        if let Err(refusal) = check_length(state, message.len(), &self.shared.server) {
            self.refuse_and_leave(key, &refusal);
            return Handled::Used;
        }
        match state {
            ClientState::Idle => self.on_command(key, message),
            ClientState::Feeding => {
                self.on_file_packet(key, message);
                Handled::Used
            }
            _ => self.on_login_packet(key, message, seq),
        }
    }

    /// Sends an error and closes once it is sent.
    pub(crate) fn refuse_and_leave(&mut self, key: ClientId, refusal: &Refusal) {
        self.counts.refused += 1;
        let client = self.clients.get(key);
        if client.is_some_and(|client| !client.is_known()) {
            self.failed_logins().note_refused(key, refusal);
        }
        self.answers().refuse(key, refusal);
        self.clients.note_end(key, refusal.name());
        self.leave(key);
    }

    /// Writes into the audit trail that the clients that are still here are cut off.
    pub(crate) fn note_cut_off(&mut self) {
        for key in self.clients.keys() {
            self.logs().closed(key, end::DRAIN);
        }
    }

    /// Closes a client once its last bytes are sent.
    pub(crate) fn leave(&mut self, key: ClientId) {
        self.leave_amid_file(key);
        self.clients.leave(key, self.net.now());
    }

    /// Closes the backend of a client that goes in the middle of its local file. The server would
    /// wait for the rest of the file, with the transaction and the locks of what it has.
    fn leave_amid_file(&mut self, key: ClientId) {
        let client = self.clients.get(key);
        let feeds = client.filter(|client| client.state() == ClientState::Feeding);
        if let Some(backend_id) = feeds.and_then(Client::backend) {
            self.abort_followers(backend_id, Some(key));
            self.closer().retire(backend_id);
            self.clients.unbind(key, &mut self.backends);
        }
    }

    /// Removes a client; its backend is freed, or closed when it may hold something of its.
    pub(crate) fn close(&mut self, key: ClientId) {
        self.failed_logins().note_gone(key);
        self.gtids.remove(&key);
        self.readers().doubt_running(key);
        self.reads.forget(key);
        self.address_counts().leave(key);
        let end = self.clients.take_end(key);
        self.logs().closed(key, end);
        self.waiters().forget(key);
        self.room().uncount(key);
        // Where the other process has its backend, this one forgets that, and says nothing on it.
        if let Some((backend_id, backend)) = self.migrating.forget(key) {
            self.shared.forget_thread(backend.thread);
            self.backend_pools.leaves(backend.pool, backend_id);
            (self.turn_output).give_slot_back(&self.shared.budget, self.index);
        }
        self.leave_amid_file(key);
        let Some(mut client) = self.clients.remove(key) else {
            return;
        };
        // What another process may go on with is dropped without a word: a record that is sealed
        // here would have the nonce of one that is sealed there.
        if client.state() != ClientState::Moving {
            client.transport.end(&mut self.net);
        }
        if let Some(output) = client.output.take() {
            self.slow_readers.drop_rest(output.rest, &self.shared);
        }
        self.shared.clients.fetch_sub(1, Ordering::Relaxed);
        if client.is_known() {
            let user = &self.settings.users[client.user()].usage;
            user.clients.fetch_sub(1, Ordering::Relaxed);
            if let Some(counted) = self.backend_pools.counted_in(client.pool as usize) {
                counted.clients.fetch_sub(1, Ordering::Relaxed);
            }
        }
        if let Some(backend_id) = client.backend() {
            let keeps = client.is_held() || client.modified.is_some() || client.session_is_unread();
            self.orphan(key, backend_id, keeps);
        }
    }
}
