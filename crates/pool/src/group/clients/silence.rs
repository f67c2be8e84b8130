//! Silence: hosts that are gone without a word, the server's and clients'.
//!
//! The problem: a host that loses its power, or its network, closes nothing. A statement whose
//! reply is awaited has nothing on its way to the server, so without a question the kernel never
//! finds out; and what is on its way is repeated for a quarter of an hour. On the other side, a
//! client that is gone keeps its transaction, and so its locks.
//!
//! The mechanism: the kernel asks every idle connection for a sign of life (keepalive), which a
//! host answers whatever its processes do, so a server that computes for an hour is left alone.
//! While something is unacknowledged the kernel does not ask; then the sweep looks for how long
//! nothing has come ([`Net::unanswered`]). A connection on which nothing has come for
//! `backend_silence_s_max` (`client_silence_s_max`) is closed, and those who wait for it hear why.
//!
//! A host may answer while its server stands still. Then `statement_ms_max` bounds clients'
//! statements, where it is set; what the pool itself asks for them has to be answered within
//! `wait_ms_max`.

use crate::backend::{BackendState, Purpose};
use crate::group::Group;
use reactor::{Key, Net};
use std::io::{Error, ErrorKind};
use std::time::Duration;

/// Clients without a backend are looked at once in so many sweeps: there may be very many, and they
/// keep nothing from others.
const SWEEPS_BETWEEN: u32 = 16;

fn words(longest: Option<Duration>) -> String {
    match longest {
        Some(longest) => format!(
            "the server's host has not answered for {} s",
            longest.as_secs()
        ),
        None => "the server's host does not answer".into(),
    }
}

/// Why a connection to the server cannot be read or written any more, where its host may be silent
/// for so long.
pub(crate) fn why_broken(error: &Error, silence_max: Option<Duration>) -> String {
    match error.kind() {
        ErrorKind::TimedOut => words(silence_max),
        _ => format!("the connection to the server broke: {error}"),
    }
}

impl<N: Net> Group<N> {
    /// Gives up backends whose server acknowledges nothing.
    pub(crate) fn end_silent_backends(&mut self) {
        let longest = self.settings.backend_silence_max;
        let Some(max) = longest else { return };
        // One that is being opened has a limit of its own.
        let silent = self.backends.iter().filter(|(_, backend)| {
            backend.state() != BackendState::Dialling
                && (self.net.unanswered(backend.transport.sock())).is_some_and(|d| d >= max)
        });
        let silent: Vec<Key> = silent.map(|(key, _)| key).collect();
        for key in silent {
            self.lose(key, &words(longest));
        }
    }

    /// Gives up backends that do not answer what the pool itself has asked. Not bounded are a
    /// preparation, which may wait for a lock like a statement, and a reset, which may have much
    /// to roll back.
    pub(crate) fn end_unanswered_commands(&mut self) {
        let (now, max) = (self.net.now(), self.settings.wait_max);
        let late = self.backends.iter().filter(|(_, backend)| {
            let asks = backend.flight().front().is_some_and(|command| {
                !matches!(
                    command.purpose,
                    Purpose::Statement | Purpose::Prepare(_) | Purpose::Ahead | Purpose::GiveBack
                ) && now.since(command.sent.max(backend.busy_since)) > max
            });
            asks && backend.state() == BackendState::Leased
        });
        let late: Vec<Key> = late.map(|(key, _)| key).collect();
        for key in late {
            let ms = max.as_millis();
            let why = format!("the server did not answer the pool's own question within {ms} ms");
            self.lose(key, &why);
        }
    }

    /// Closes clients that acknowledge nothing.
    pub(crate) fn end_silent_clients(&mut self) {
        let Some(max) = self.settings.client_silence_max else {
            return;
        };
        let turn = self.sweeps % SWEEPS_BETWEEN;
        let silent = self.clients.iter().filter(|(key, client)| {
            (client.lease().is_some() || key.parts().0 % SWEEPS_BETWEEN == turn)
                && self
                    .net
                    .unanswered(client.transport.sock())
                    .is_some_and(|d| d >= max)
        });
        let silent: Vec<Key> = silent.map(|(key, _)| key).collect();
        for key in silent {
            self.counts.too_slow += 1;
            self.close_later(key);
        }
    }
}
