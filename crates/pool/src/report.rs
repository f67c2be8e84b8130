//! The report: every client in one line, pinned or not, why, since when and by which statement.
//!
//! SIGUSR2 asks for it. Each group writes its own lines and, behind them, how many of its clients
//! are pinned now, by reason; the lines are printed by a thread of their own, so that a slow
//! terminal holds up nobody's statements.

use crate::client::{Client, ClientState};
use crate::group::Group;
use crate::reasons::PinReason;
use crate::session::Text;
use reactor::{Key, Net, Time};
use std::collections::BTreeMap;

/// Bytes of a statement that are kept for the report.
const TEXT_MAX: usize = 200;

/// The moment and the statement of a pin.
#[derive(Debug)]
pub(crate) struct Pinned {
    /// Since when.
    pub(crate) since: Time,
    /// The beginning of the statement; empty when none is at hand.
    pub(crate) text: Text,
    /// The statement has not been sent: if it never is, there is nothing to be pinned for.
    pub(crate) unsent: bool,
}

impl<S> Client<S> {
    /// Takes back a pin whose statement was not sent.
    pub(crate) fn unpin_unsent(&mut self) {
        if self.pinned.as_ref().is_some_and(|pinned| pinned.unsent) {
            self.pin = None;
            self.pinned = None;
        }
    }

    /// The statement that it may be pinned for goes out.
    pub(crate) fn pin_is_sent(&mut self) {
        if let Some(pinned) = &mut self.pinned {
            pinned.unsent = false;
        }
    }
}

impl<N: Net> Group<N> {
    /// Notes that a client keeps its backend for good from now on, for what it did before; `false`
    /// when it did already.
    pub(crate) fn pin(&mut self, key: Key, reason: PinReason) -> bool {
        self.pin_with(key, reason, b"", false)
    }

    /// The same for a statement that is about to be sent; also `true` when this very statement has
    /// pinned the client before it had to wait.
    pub(crate) fn pin_by(&mut self, key: Key, reason: PinReason, sql: &[u8]) -> bool {
        self.pin_with(key, reason, sql, true)
    }

    fn pin_with(&mut self, key: Key, reason: PinReason, sql: &[u8], unsent: bool) -> bool {
        let since = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        client.unsure |= matches!(reason, PinReason::Variable | PinReason::Schema);
        if client.pin.is_some() {
            return client.pinned.as_ref().is_some_and(|pinned| pinned.unsent);
        }
        client.pin = Some(reason);
        let text = sql[..sql.len().min(TEXT_MAX)].into();
        client.pinned = Some(Box::new(Pinned {
            since,
            text,
            unsent,
        }));
        *self.counts.pins.entry(reason.name()).or_default() += 1;
        true
    }

    /// One line for each client, and the sum.
    pub(crate) fn report(&self) -> Vec<String> {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        let mut lines = Vec::with_capacity(self.clients.len() + 1);
        for (_, client) in self.clients.iter() {
            lines.push(self.line_of(client));
            if let Some(pin) = client.pin {
                *reasons.entry(pin.name()).or_default() += 1;
            }
        }
        lines.push(format!(
            "group {}: {} clients, pinned now: {reasons:?}",
            self.index,
            self.clients.len()
        ));
        lines
    }

    fn line_of(&self, client: &Client<N::Sock>) -> String {
        let account = self.roster.ranks.get(client.kind as usize);
        let account = account.map_or("", |ranks| ranks.kind.user.as_str());
        let state = match client.state() {
            ClientState::Greeted | ClientState::Proving | ClientState::Opening => "logging in",
            ClientState::Idle => "idle",
            ClientState::Waiting => "waiting",
            ClientState::Restoring | ClientState::Running | ClientState::Feeding => "running",
            ClientState::Asking => "killing",
            ClientState::Leaving => "leaving",
        };
        let backend = client.lease.and_then(|lease| self.backends.get(lease));
        let lease = match backend {
            Some(backend) if backend.in_transaction() => {
                format!("in a transaction on thread {}", backend.thread)
            }
            Some(backend) => format!("on thread {}", backend.thread),
            None => "on no thread".to_string(),
        };
        let pin = match (client.pin, &client.pinned) {
            (Some(pin), Some(pinned)) => {
                let seconds = self.net.now().since(pinned.since).as_secs();
                let text = String::from_utf8_lossy(&pinned.text);
                let by = if text.is_empty() {
                    "what it left"
                } else {
                    &*text
                };
                format!("pinned ({}) for {seconds} s by: {by:?}", pin.name())
            }
            (Some(pin), None) => format!("pinned ({})", pin.name()),
            (None, _) if client.is_held() => "held by a cursor".to_string(),
            (None, _) => "not pinned".to_string(),
        };
        format!(
            "client {} account '{account}' {state} {lease}, {pin}",
            client.id
        )
    }
}
