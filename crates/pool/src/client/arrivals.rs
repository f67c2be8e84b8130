//! Arrivals: connections that wait to be accepted, and when they are.
//!
//! The problem: who works must hardly notice that fifty thousand arrive. A login costs the machine
//! more than a statement does, in the kernel most of all, and the kernel completes connections
//! whether or not there is time for them. The mechanism: while statements have to wait for their
//! turn in any group, logins are let in at a pace, [`Settings::logins_per_s_max`] over all groups;
//! the others stay in the listener's backlog, where they cost nothing. When none has to, there is
//! no pace but [`ACCEPTS_PER_TURN`], behind the statements of the turn. So neither starves the
//! other.
//!
//! A listener tells once of pending accepts, so the group remembers it until nobody is left.
//!
//! Invariant: a listener that has told and was not emptied is in `pending`.
//!
//! [`Settings::logins_per_s_max`]: crate::Settings::logins_per_s_max

use crate::auth::login::Login;
use crate::client::Client;
use crate::client::buffers::transport::Transport;
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::limits::addresses::CountedAddress;
use reactor::{Address, Net};
use session::state::Session;
use std::time::Duration;
use wire::handshake::nonce_of_connection;

/// Connections accepted per turn and listener; more wait for the next turn, behind statements.
const ACCEPTS_PER_TURN: u32 = 64;

/// An accept that failed, mostly for want of descriptors, is tried again after this.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

/// Greets a connection, at once or behind its PROXY header, or says why it cannot stay.
pub(crate) fn greet<N: Net>(parts: &mut Parts<N>, sock: N::Sock, listener: usize) {
    parts.observed.counts.accepted += 1;
    let refusal = if !parts.work.drain.is_off() {
        Some(Refusal::Draining)
    } else if parts.clients.len() >= parts.shared.clients_per_group() {
        Some(Refusal::GroupFull {
            max: parts.shared.clients_per_group(),
        })
    } else if parts.shared.clients() >= parts.settings.clients_max {
        Some(Refusal::Clients {
            max: parts.settings.clients_max,
        })
    } else if parts.shared.retained.memory.is_short() {
        Some(parts.shared.retained.memory.refusal())
    } else {
        None
    };
    let needs_header = refusal.is_none() && parts.address_counts().needs_proxy_header(&sock);
    let admitted = match refusal {
        Some(refusal) => Err(refusal),
        // A proxy speaks for others: theirs is the address that counts.
        None if needs_header => Ok(CountedAddress::default()),
        None => (parts.address_counts()).admit(|net| net.peer(&sock).map(|peer| peer.ip())),
    };
    let counted = match admitted {
        Ok(counted) => counted,
        Err(refusal) => return parts.failed_logins().turn_away(&sock, &refusal),
    };
    let is_local = matches!(parts.settings.listen.get(listener), Some(Address::Unix(_)));
    let transport = Transport::plain(sock, is_local);
    let id = (parts.clients).next_id(parts.shared.ids(), parts.index, parts.shared.groups());
    let nonce = nonce_of_connection(&parts.client_side.nonce_key, id);
    let session = parts.known.sessions.intern(Session::default());
    let now = parts.net.now();
    let login = Login::new(nonce, is_local);
    let mut client = match needs_header {
        true => Client::before_header(transport, now, session, login),
        false => Client::greeted(transport, now, session, login),
    };
    client.identity.set_id(id);
    let key = parts.clients.insert(client);
    parts.address_counts().note(key, counted);
    parts.shared.add_client();
    let watched = match parts.clients.get(key) {
        Some(client) => parts.net.watch(client.transport.sock(), key.token()),
        None => return,
    };
    if watched.is_err() {
        parts.observed.counts.accept_failures += 1;
        return parts.clients.close_later(key);
    }
    if !needs_header {
        let nonce_key = parts.client_side.nonce_key;
        parts.answers().greeting(key, &nonce_key);
    }
}

/// Accepts what is pending, as far as statements leave time for it.
pub(crate) fn accept_arrivals<N: Net>(parts: &mut Parts<N>) {
    let mut at = 0;
    while let Some(&listener) = parts.client_side.arrivals.pending.get(at) {
        if accept_some(parts, listener) {
            at += 1;
        } else {
            parts.client_side.arrivals.pending.swap_remove(at);
        }
    }
}

/// Accepts what may come in at one listener; `false` when nobody is left.
fn accept_some<N: Net>(parts: &mut Parts<N>, listener: usize) -> bool {
    let now = parts.net.now();
    let gap = parts.shared.scheduling.login_gap(&parts.settings, now);
    if parts.client_side.arrivals.again_at > now {
        return true;
    }
    for _ in 0..ACCEPTS_PER_TURN {
        if !parts.client_side.arrivals.may_enter(now, gap) {
            return true;
        }
        match parts.net.accept(listener) {
            Ok(Some(sock)) => greet(parts, sock, listener),
            Ok(None) => return false,
            Err(_) => {
                parts.observed.counts.accept_failures += 1;
                parts.client_side.arrivals.again_at = now + ACCEPT_AGAIN;
                return true;
            }
        }
    }
    true
}
