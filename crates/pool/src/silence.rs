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
//! What this does not find: a host that answers while its server stands still. `statement_ms_max`
//! bounds that, where it is set.

use crate::backend::BackendState;
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

impl<N: Net> Group<N> {
    /// Why a connection to the server cannot be read or written any more.
    pub(crate) fn why_broken(&self, error: &Error) -> String {
        match error.kind() {
            ErrorKind::TimedOut => words(self.shared.settings.backend_silence_max),
            _ => format!("the connection to the server broke: {error}"),
        }
    }

    /// Gives up backends whose server acknowledges nothing.
    pub(crate) fn end_silent_backends(&mut self) {
        let longest = self.shared.settings.backend_silence_max;
        let Some(max) = longest else { return };
        // One that is being opened has a limit of its own.
        let silent = self.backends.iter().filter(|(_, backend)| {
            backend.state() != BackendState::Dialling
                && self.net.unanswered(&backend.sock).is_some_and(|d| d >= max)
        });
        let silent: Vec<Key> = silent.map(|(key, _)| key).collect();
        for key in silent {
            self.lose(key, &words(longest));
        }
    }

    /// Closes clients that acknowledge nothing.
    pub(crate) fn end_silent_clients(&mut self) {
        let Some(max) = self.shared.settings.client_silence_max else {
            return;
        };
        let turn = self.sweeps % SWEEPS_BETWEEN;
        let silent = self.clients.iter().filter(|(key, client)| {
            (client.lease.is_some() || key.parts().0 % SWEEPS_BETWEEN == turn)
                && self.net.unanswered(&client.sock).is_some_and(|d| d >= max)
        });
        let silent: Vec<Key> = silent.map(|(key, _)| key).collect();
        for key in silent {
            self.counts.too_slow += 1;
            self.doom(key);
        }
    }
}
