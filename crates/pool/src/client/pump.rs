//! The pump: a client's bytes become commands, for as long as it may be served.
//!
//! While its statement waits or runs, its further bytes stay in the kernel, which is all the
//! back-pressure there is. Commands that were read together are handled one after the other, so
//! pipelining works and is answered in order.
//!
//! Long texts are given to readers (`text_reading.rs`), and the commands handled with what those
//! found. Their bytes are not copied for the backend that they are sent to (`outgoing.rs`). Where
//! too many texts wait for a reader, the group reads the text itself. Not bounded: what is looked
//! up in a long text again, because it names user variables, its client is pinned, or the server
//! has triggers or views with code.

use crate::auth::logins;
use crate::backend::replies;
use crate::client::buffers::received::Received;
use crate::client::input::Got;
use crate::client::{Client, ClientState, Handled, leaving, proxy_header, tls};
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::ClientId;
use crate::limits::long_commands;
use crate::scheduler::client_turn::ClientTurn;
use crate::server::facts::ServerFacts;
use crate::statements::commands;
use crate::upgrade::departing;
use reactor::{Event, Net};
use wire::packet::{Frame, frame, packets, payload_len};
use wire::wrong_protocol::WrongProtocol;

/// The longest packet of a login.
const LOGIN_LEN_MAX: usize = 64 * 1024;

/// Memory of a client's input that is kept when its commands are used up.
const KEPT_MAX: usize = crate::client::input::SCRATCH_LEN;

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

/// Handles the whole messages at the front of a client's input, and drops those that are used.
pub(crate) fn consume_input<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    input: &mut Received,
    turn: &mut ClientTurn,
) {
    if input.len() <= parts.shared.lengths.text_here {
        let used = consume(parts, key, input, turn);
        return input.drop_front(used, KEPT_MAX);
    }
    let current_input = input.take_current();
    let bytes = current_input.bytes.clone();
    // What is done for this client may lead to serving another.
    let outer = parts.client_side.current_input.0.replace(current_input);
    let used = consume(parts, key, &bytes, turn);
    drop(bytes);
    if let Some(current_input) = std::mem::replace(&mut parts.client_side.current_input.0, outer) {
        input.put_back(current_input, used, KEPT_MAX);
    }
}

/// Handles an event of a client's socket.
pub(crate) fn on_client<N: Net>(parts: &mut Parts<N>, key: ClientId, event: Event) {
    let Some(client) = parts.clients.get_mut(key) else {
        return;
    };
    client.transport.note(event);
    if event.writable && client.has_unsent() {
        parts.client_writer().flush_and_read_on(key);
    }
    if parts.clients.get(key).is_some_and(Client::takes_input) {
        // Who has used up a turn, or waits for room, goes on in its line.
        if !parts.client_side.inputs.holds_up(key) {
            parts.work.tasks.add(Task::Read(key));
        }
    } else if event.closed {
        parts.client_reader().hung_up(key);
    }
}

/// Serves a client for as long as it has bytes and may be served, and its turn lasts. In a drain it
/// is closed then, if its turn has come and it holds nothing.
pub(crate) fn pump<N: Net>(parts: &mut Parts<N>, key: ClientId) {
    pump_uncounted(parts, key);
    if !parts.work.drain.is_off() {
        parts.close_if_drained(key);
    }
    parts.room().count(key);
}

fn pump_uncounted<N: Net>(parts: &mut Parts<N>, key: ClientId) {
    let mut turn = ClientTurn::default();
    while turn.takes_read(|| parts.net.clock()) {
        if is_left_unread(parts, key) {
            return;
        }
        let Some(client) = parts.clients.get_mut(key) else {
            return;
        };
        if !client.transport.withholds_input()
            && let Some(mut input) = client.input.take()
        {
            if client.leaves_to_reader(&mut input, (parts.index, key), &parts.shared) {
                client.input.put(Some(input));
                return;
            }
            let needs_backend = client.needs_backend();
            if long_commands::waits_behind_long(parts, key, &input, needs_backend) {
                if let Some(client) = parts.clients.get_mut(key) {
                    client.input.put(Some(input));
                }
                return;
            }
            consume_input(parts, key, &mut input, &mut turn);
            let Some(client) = parts.clients.get_mut(key) else {
                return;
            };
            let takes_input = client.takes_input();
            if !input.is_empty() {
                client.input.put(Some(input));
            } else {
                parts.work.lent.inputs.put(input);
            }
            if !takes_input {
                return;
            }
        }
        if turn.is_over() {
            break;
        }
        if is_left_unread(parts, key) || !fill(parts, key, &mut turn) {
            return;
        }
    }
    parts.client_side.inputs.stand_in_line(key);
}

/// True if a client is not read now: it is not to be served, what it has sent of a file is enough
/// for the server, or it goes to another process.
fn is_left_unread<N: Net>(parts: &mut Parts<N>, key: ClientId) -> bool {
    let client = parts.clients.get(key);
    let is_served = client.is_some_and(|client| {
        let may_send = client.takes_input() && !client.ended.is_closing();
        may_send && !client.has_fed_enough(client.backend_in(&parts.backends))
    });
    !is_served || departing::departs(parts, key)
}

/// Reads more bytes; `false` when there are none now.
fn fill<N: Net>(parts: &mut Parts<N>, key: ClientId, turn: &mut ClientTurn) -> bool {
    match parts.client_reader().read(key) {
        Got::Nothing => return false,
        Got::More => return true,
        Got::Fresh(fresh) => {
            let bytes = fresh.bytes();
            // What is longer goes by way of the client's input.
            let used = match bytes.len() > parts.shared.lengths.text_here {
                true => 0,
                false => consume(parts, key, bytes, turn),
            };
            parts.client_reader().give_back(key, fresh, used);
            return true;
        }
        Got::Refused(refusal) => leaving::refuse_and_leave(parts, key, &refusal),
        Got::NoRoom(refusal) => leaving::refuse_input(parts, key, &refusal),
        Got::Failed(error) => parts.failed_logins().tls_failed(key, &error),
    }
    false
}

/// Handles the whole messages at the front of `bytes`, as far as its turn goes; returns how
/// many bytes were used.
pub(crate) fn consume<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    bytes: &[u8],
    turn: &mut ClientTurn,
) -> usize {
    let mut at = 0;
    while at < bytes.len() && !departing::departs(parts, key) {
        let Some(client) = parts.clients.get_mut(key) else {
            return bytes.len();
        };
        if client.ended.is_closing() {
            return bytes.len();
        }
        let state = client.state();
        if !client.takes_input() || client.has_fed_enough(client.backend_in(&parts.backends)) {
            return at;
        }
        let rest = &bytes[at..];
        if state == ClientState::Accepted {
            match proxy_header::take_proxy_header(parts, key, rest) {
                0 => return at,
                len => at += len,
            }
            continue;
        }
        if state == ClientState::Greeted
            && let Some(wrong) = WrongProtocol::of_bytes(rest)
        {
            leaving::refuse_and_leave(parts, key, &Refusal::WrongProtocol { wrong });
            return at;
        }
        let (total, last_seq) = match frame(rest) {
            Frame::Whole { total, last_seq } => (total, last_seq),
            Frame::Partial { total } => {
                if let Err(refusal) = check_length(state, total, &parts.shared.server) {
                    if state == ClientState::Idle {
                        // The answer is numbered behind the last packet that has begun.
                        client.identity.seq =
                            u8::try_from(packets(total) % 256).unwrap_or_default();
                    }
                    leaving::refuse_and_leave(parts, key, &refusal);
                }
                return at;
            }
            Frame::OutOfOrder { expected, got } => {
                leaving::refuse_and_leave(parts, key, &Refusal::OutOfOrder { expected, got });
                return at;
            }
        };
        if !turn.takes_command(|| parts.net.clock()) {
            return at;
        }
        client.heard_from(parts.net.now());
        let seq = std::mem::replace(&mut client.identity.seq, last_seq.wrapping_add(1));
        let message = &rest[..total];
        let handled = match (check_length(state, total, &parts.shared.server), state) {
            (Err(refusal), _) => {
                leaving::refuse_and_leave(parts, key, &refusal);
                Handled::Used
            }
            (_, ClientState::Idle) => commands::on_command(parts, key, message),
            (_, ClientState::Feeding) => {
                replies::on_file_packet(parts, key, message);
                Handled::Used
            }
            _ => logins::on_login_packet(parts, key, message, seq),
        };
        match handled {
            Handled::Used => at += total,
            Handled::Kept => return at,
            Handled::Framed => {
                if let Some(client) = parts.clients.get_mut(key) {
                    client.transport.keep_frames(&rest[total..]);
                }
                return bytes.len();
            }
            Handled::Secured => {
                tls::begin_tls(parts, key, &rest[total..]);
                return bytes.len();
            }
        }
        // Its place was that of this command.
        if let Some(client) = parts.clients.get_mut(key) {
            client.place.give_up();
            client.command.end();
        }
    }
    at
}
