//! Bytes from clients: read as far as there is room for them, and unpacked where they come packed.
//!
//! Most reads bring a whole command, which is handled where it lies, in the buffer that the group
//! lends. What does not come whole is kept with its client, in a box, and the rest of it is read
//! behind that, as far as [`crate::limits::unfinished`] admits. A client that has agreed on
//! compression speaks in frames ([`crate::client::compression`]), which are read and unpacked piece
//! by piece.
//!
//! Invariants: a client is not read while bytes of it wait that are not handled; who may not take
//! more of an unfinished command is neither read nor unpacked; what may hold a password is wiped
//! from what is lent.

use crate::client::buffers::lent::Lent;
use crate::client::buffers::room::Inputs;
use crate::client::clients::Clients;
use crate::client::compression::PIECE;
use crate::client::{Client, ClientState};
use crate::config::Settings;
use crate::errors::reasons::Refusal;
use crate::group::shared::Shared;
use crate::group::tokens::ClientId;
use crate::limits::unfinished::{InputRoom, Takes};
use crate::observe::audit::end;
use crate::observe::figures::counts::Counts;
use reactor::{Net, Read};
use session::meter::Meter;
use std::io;
use wire::packet::{Frame, frame};
use wire::wiped::wipe;

/// COM_QUIT, as the last that a client says.
const QUIT: [u8; 5] = [1, 0, 0, 0, 1];
/// Bytes read from a client at once.
pub(crate) const SCRATCH_LEN: usize = 64 * 1024;
/// Bytes read at once behind a message's first part: as many as it lacks, but no fewer than this.
const INPUT_STEP_MIN: usize = 4 * 1024;
/// Pieces of one client that are read or unpacked without a command being looked for.
const PIECES_MAX: usize = 8;

/// The clients of a group, and what their bytes are read into.
pub(crate) struct FromClient<'a, N: Net> {
    pub(crate) net: &'a mut N,
    pub(crate) clients: &'a mut Clients<N::Sock>,
    pub(crate) shared: &'a Shared,
    pub(crate) settings: &'a Settings,
    pub(crate) counts: &'a mut Counts,
    /// Unfinished commands.
    pub(crate) inputs: &'a mut Inputs,
    pub(crate) lent: &'a mut Lent,
    /// Bytes that TLS takes.
    pub(crate) tls_bytes: &'a Meter,
    /// Steps of handshakes that may still be made in this turn.
    pub(crate) handshakes_left: &'a mut usize,
    /// True in a drain: what has come is read also before an event tells of it.
    pub(crate) drains: bool,
}

/// Result of a look at a client's socket.
#[derive(Debug)]
pub(crate) enum Got {
    /// Nothing now: more comes with an event, or when its turn in line does; or it is to be closed.
    Nothing,
    /// Input that is longer.
    More,
    /// Bytes that are kept nowhere else.
    Fresh(Fresh),
    /// Input that cannot be used, with the error that ends its client.
    Refused(Refusal),
    /// Unfinished command that may take no more, with the error that ends its client.
    NoRoom(Refusal),
    /// Error of a broken connection.
    Failed(io::Error),
}

/// Bytes that lie in what the group has lent, to be given back with [`FromClient::give_back`].
#[derive(Debug)]
pub(crate) struct Fresh {
    scratch: Vec<u8>,
    len: usize,
    /// True if they may hold a password.
    is_secret: bool,
}

impl Fresh {
    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.scratch[..self.len]
    }
}

impl<N: Net> FromClient<'_, N> {
    /// Closes a client that has closed its connection while it waits in a queue or for its login.
    pub(crate) fn hung_up(&mut self, key: ClientId) {
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let in_queue = client.place.is_in_queue();
        if in_queue || client.waits_to_log_in() {
            // Nothing of its statement has been executed, and nobody is there for the reply.
            self.counts.gave_up += u64::from(in_queue);
            self.clients.close_for(key, end::DISCONNECTED);
        }
    }

    fn room(&mut self) -> InputRoom<'_, N::Sock> {
        InputRoom {
            inputs: self.inputs,
            clients: self.clients,
            shared: self.shared,
            settings: self.settings,
            counts: self.counts,
            now: self.net.now(),
        }
    }

    /// Reads more bytes of a client.
    pub(crate) fn read(&mut self, key: ClientId) -> Got {
        let Some(client) = self.clients.get_mut(key) else {
            return Got::Nothing;
        };
        if self.drains {
            client.transport.look_again();
        }
        if client.transport.is_readable() && !client.transport.takes_step(self.handshakes_left) {
            self.inputs.stand_in_line(key);
            return Got::Nothing;
        }
        if client.transport.compresses() {
            return self.read_frames(key);
        }
        if !client.transport.is_readable() || client.ended.is_closing() {
            return Got::Nothing;
        }
        if let Some(input) = client.input.bytes() {
            let missing = match frame(input) {
                Frame::Partial { total } => total.saturating_sub(input.len()),
                _ => 0,
            };
            return self.read_behind(key, missing.clamp(INPUT_STEP_MIN, SCRATCH_LEN));
        }
        let is_secret = client.is_logging_in();
        let mut scratch = std::mem::take(&mut self.lent.from_client);
        // Lent already when serving one client has led to serving another.
        scratch.resize(SCRATCH_LEN, 0);
        let read = (client.transport).read_counted(self.net, &mut scratch, self.tls_bytes);
        match self.came(key, read) {
            Ok(len) => Got::Fresh(Fresh {
                scratch,
                len,
                is_secret,
            }),
            Err(none) => {
                self.lent.from_client = scratch;
                none
            }
        }
    }

    /// Result of a read that brings no bytes.
    fn came(&mut self, key: ClientId, read: Read) -> Result<usize, Got> {
        match read {
            Read::Bytes(n) => Ok(n),
            Read::Blocked => Err(Got::Nothing),
            Read::Failed(error) => Err(Got::Failed(error)),
            Read::End => {
                self.clients.close_for(key, end::DISCONNECTED);
                Err(Got::Nothing)
            }
        }
    }

    /// Reads so much behind what is kept already: the rest of a command that has not come whole.
    fn read_behind(&mut self, key: ClientId, step: usize) -> Got {
        match self.room().takes_more(key, step) {
            Takes::Now => {}
            Takes::Later => return Got::Nothing,
            Takes::Never(refusal) => return Got::NoRoom(refusal),
        }
        let Some(client) = self.clients.get_mut(key) else {
            return Got::Nothing;
        };
        let mut scratch = std::mem::take(&mut self.lent.from_client);
        scratch.resize(SCRATCH_LEN, 0);
        let read = (client.transport).read_counted(self.net, &mut scratch[..step], self.tls_bytes);
        if let Read::Bytes(n) = read {
            client.keep_input(&scratch[..n]);
            client.heard_from(self.net.now());
            if client.is_logging_in() {
                wipe(&mut scratch[..n]);
            }
        }
        self.lent.from_client = scratch;
        match self.came(key, read) {
            Ok(_) => Got::More,
            Err(none) => none,
        }
    }

    /// Unpacks a piece of a client's frames into its input, or reads more of them.
    fn read_frames(&mut self, key: ClientId) -> Got {
        for _ in 0..PIECES_MAX {
            let Some(client) = self.clients.get_mut(key) else {
                return Got::Nothing;
            };
            let lacking = match client.lacks_of_frame(&mut self.lent.packing, self.shared) {
                Ok(Some(lacking)) => lacking,
                Ok(None) => return Got::Nothing,
                Err(refusal) => {
                    client.drop_frame();
                    return Got::Refused(refusal);
                }
            };
            if lacking > 0 {
                match client.read_frames(self.net, self.tls_bytes, lacking) {
                    Some(Read::Bytes(n)) if n > 0 => continue,
                    // Nothing came, and it is not said that nothing will.
                    Some(Read::Bytes(_)) => {
                        self.clients.close_for(key, end::DISCONNECTED);
                        return Got::Nothing;
                    }
                    Some(read) => match self.came(key, read) {
                        Ok(_) => return Got::Nothing,
                        Err(none) => return none,
                    },
                    None => return Got::Nothing,
                }
            }
            match self.room().takes_more(key, PIECE) {
                Takes::Now => {}
                Takes::Later => return Got::Nothing,
                Takes::Never(refusal) => return Got::NoRoom(refusal),
            }
            let Some(client) = self.clients.get_mut(key) else {
                return Got::More;
            };
            match client.unpack(&mut self.lent.packing) {
                Ok(true) => return Got::More,
                Ok(false) => {}
                // Its client is told so, and goes.
                Err(refusal) => {
                    client.drop_frame();
                    return Got::Refused(refusal);
                }
            }
        }
        Got::More
    }

    /// Closes clients that have gone while their statement runs on a backend that nobody else will
    /// get. A server that waits for a lock looks whether its client is still there, and learns it
    /// from the backend's end; and what else the client held is given back.
    pub(crate) fn close_departed(&mut self) {
        let departed = |client: &Client<N::Sock>| {
            let runs = client.transport.has_ended() && client.state() == ClientState::Running;
            // What it has said already runs first, as on a server; whether that is more than a
            // goodbye is not looked for in a compressed frame.
            let silent = !client.transport.compresses() && !client.is_amid_command();
            runs && silent && client.session.is_held()
        };
        let found = self.clients.iter().filter(|(_, client)| departed(client));
        let found: Vec<ClientId> = found.map(|(key, _)| key).collect();
        for key in found {
            let Some(client) = self.clients.get_mut(key) else {
                continue;
            };
            let mut bytes = [0; 64];
            let read = (client.transport).read_counted(self.net, &mut bytes, self.tls_bytes);
            match read {
                Read::Blocked => {}
                Read::Bytes(n) if bytes[..n] != QUIT => client.keep_input(&bytes[..n]),
                Read::Bytes(_) | Read::End | Read::Failed(_) => {
                    self.clients.close_for(key, end::DISCONNECTED);
                }
            }
        }
    }

    /// Keeps the bytes behind the first `used` with their client, and returns the scratch buffer.
    pub(crate) fn give_back(&mut self, key: ClientId, mut fresh: Fresh, used: usize) {
        if used < fresh.len {
            self.keep_rest(key, &fresh.bytes()[used..]);
        }
        if fresh.is_secret {
            wipe(&mut fresh.scratch[..fresh.len]);
        }
        self.lent.from_client = fresh.scratch;
    }

    /// Keeps the beginning of a command whose rest is to come.
    fn keep_rest(&mut self, key: ClientId, rest: &[u8]) {
        if let Some(client) = self.clients.get_mut(key) {
            if client.input.bytes().is_none() {
                client.input.put(self.lent.inputs.take());
            }
            client.keep_input(rest);
            client.heard_from(self.net.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::scripted::{Scripted, shared};
    use reactor::{Event, Time};
    use std::rc::Rc;
    use std::sync::Arc;

    struct Bench {
        net: Scripted,
        clients: Clients<()>,
        shared: Shared,
        settings: Arc<Settings>,
        counts: Counts,
        inputs: Inputs,
        lent: Lent,
        tls_bytes: Meter,
        handshakes_left: usize,
    }

    impl Bench {
        /// Bench with a client in this state that has sent `incoming`.
        fn new(state: ClientState, incoming: &[u8]) -> (Bench, ClientId) {
            let mut client = Client::of_tests(Time(1), Rc::default());
            if state == ClientState::Idle {
                client.login = None;
                assert!(client.change_state(state, Time(1)));
            }
            let mut clients = Clients::default();
            let key = clients.insert(client);
            let shared = shared("");
            let mut bench = Bench {
                net: Scripted::default(),
                clients,
                settings: shared.settings(),
                shared,
                counts: Counts::default(),
                inputs: Inputs::default(),
                lent: Lent::default(),
                tls_bytes: Meter::default(),
                handshakes_left: 1,
            };
            bench.comes(key, incoming);
            (bench, key)
        }

        /// Delivers bytes from the client.
        fn comes(&mut self, key: ClientId, bytes: &[u8]) {
            self.net.incoming = bytes.to_vec();
            let event = Event {
                token: key.token(),
                readable: true,
                writable: false,
                closed: false,
            };
            let client = self.clients.get_mut(key).unwrap();
            client.transport.note(event);
        }

        fn from(&mut self) -> FromClient<'_, Scripted> {
            FromClient {
                net: &mut self.net,
                clients: &mut self.clients,
                shared: &self.shared,
                settings: &self.settings,
                counts: &mut self.counts,
                inputs: &mut self.inputs,
                lent: &mut self.lent,
                tls_bytes: &self.tls_bytes,
                handshakes_left: &mut self.handshakes_left,
                drains: false,
            }
        }

        fn input(&self, key: ClientId) -> Option<&[u8]> {
            self.clients.get(key)?.input.bytes().map(|input| &input[..])
        }
    }

    #[test]
    fn what_is_not_used_is_kept_and_read_on_behind() {
        let (mut bench, key) = Bench::new(ClientState::Idle, b"\x05\0\0\0\x03SE");
        let Got::Fresh(fresh) = bench.from().read(key) else {
            panic!("nothing came");
        };
        assert_eq!(fresh.bytes(), b"\x05\0\0\0\x03SE");
        assert!(bench.lent.from_client.is_empty(), "it is lent");
        bench.from().give_back(key, fresh, 0);
        assert_eq!(bench.lent.from_client.len(), SCRATCH_LEN);
        assert_eq!(bench.input(key), Some(&b"\x05\0\0\0\x03SE"[..]));
        bench.comes(key, b"T");
        assert!(matches!(bench.from().read(key), Got::More));
        assert_eq!(bench.input(key), Some(&b"\x05\0\0\0\x03SET"[..]));
    }

    #[test]
    fn what_is_used_up_costs_no_box() {
        let (mut bench, key) = Bench::new(ClientState::Idle, b"\x01\0\0\0\x0e");
        let Got::Fresh(fresh) = bench.from().read(key) else {
            panic!("nothing came");
        };
        let used = fresh.bytes().len();
        bench.from().give_back(key, fresh, used);
        assert_eq!(bench.input(key), None);
        assert!(matches!(bench.from().read(key), Got::Nothing));
    }

    #[test]
    fn what_may_hold_a_password_is_wiped_from_what_is_lent() {
        let (mut bench, key) = Bench::new(ClientState::Greeted, b"secret");
        let Got::Fresh(fresh) = bench.from().read(key) else {
            panic!("nothing came");
        };
        bench.from().give_back(key, fresh, 6);
        assert_eq!(bench.lent.from_client[..6], [0; 6]);
    }

    #[test]
    fn who_is_to_be_closed_is_not_read() {
        let (mut bench, key) = Bench::new(ClientState::Idle, b"\x01\0\0\0\x0e");
        bench.clients.close_later(key);
        assert!(matches!(bench.from().read(key), Got::Nothing));
        assert_eq!(bench.net.incoming.len(), 5);
    }
}
