//! Limits: what a user's clients, a transaction, a statement, an idle backend and all the memory
//! may take, and what happens to who takes more.
//!
//! Limits on numbers are checked where the number grows (a login); limits on time in the sweep,
//! once a second, over the backends, of which there are few. Memory is sampled off the statement
//! path ([`Shared::look_at_memory`]); while it is short nobody is let in, and those inside go on.
//!
//! A statement or transaction over its limit costs its client the connection and the server
//! connection behind it: closing that is what rolls back, and what no server refuses. A KILL ends
//! the statement there, which a server that does not look at its client would run on.
//!
//! Invariant: whoever is counted among a user's clients (`known`) is taken off that count once, in
//! `clients.rs: close` or by changing to another user.

use crate::buffers::memory::{meminfo, memory_of};
use crate::client::Proof;
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::shared::Shared;
use reactor::{Key, Net};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

/// With less available memory than this on the machine nobody is let in.
const AVAILABLE_MIN: u64 = 64 << 20;

impl Shared {
    /// Looks whether there is memory for more clients. Reads three files, so it is called now and
    /// then by one group. What cannot be read limits nothing.
    pub(crate) fn look_at_memory(&self) {
        let used = measure::process::own().map_or(0, |sample| sample.rss_bytes);
        let limit = memory_of(self.settings().memory_bytes_max);
        let available = meminfo("MemAvailable").unwrap_or(u64::MAX);
        let why = if used > limit {
            Some(format!("{used} bytes are resident, the limit is {limit}"))
        } else if available < AVAILABLE_MIN {
            Some(format!(
                "the machine has {available} bytes left, fewer than {AVAILABLE_MIN}"
            ))
        } else {
            None
        };
        self.is_memory_full.store(why.is_some(), Relaxed);
        *self
            .memory_full
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// The error for one that is not let in for want of memory.
    pub(crate) fn memory_refusal(&self) -> Refusal {
        let words = self
            .memory_full
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Refusal::Memory {
            detail: words.clone().unwrap_or_default(),
        }
    }
}

impl<N: Net> Group<N> {
    /// Counts a client that has proven its name among its user's; `false` when there are too many
    /// of them, and the client has been told so.
    pub(crate) fn count_user(&mut self, key: Key, index: usize) -> bool {
        // An account may be newer than this turn.
        self.take_settings();
        let settings = self.settings.clone();
        let user = &settings.users[index];
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        if client.is_known() {
            let before = &self.settings.users[client.user as usize].usage.clients;
            before.fetch_sub(1, Relaxed);
        }
        self.room().uncount(key);
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        client.user = u16::try_from(index).unwrap_or(u16::MAX);
        if client.proof == Proof::Missing {
            client.proof = Proof::Given;
        }
        client.place.give_tickets(user.limits.high_prio_tickets);
        let others = self.settings.users[index]
            .usage
            .clients
            .fetch_add(1, Relaxed);
        self.room().count(key);
        let Some(max) = user.limits.clients_max.filter(|max| others >= *max) else {
            return true;
        };
        let user = user.name.clone();
        self.refuse_and_leave(key, &Refusal::UserClients { user, max });
        false
    }
}
