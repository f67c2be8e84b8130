//! Backends whose time is over, by any of the limits that the sweep keeps.
//!
//! | limit | what it bounds |
//! |---|---|
//! | `dial_ms_max` | a connection that is being opened and logged in |
//! | `backend_silence_s_max` | a server's host that acknowledges nothing |
//! | `wait_ms_max` | the server's answer to a question of the pool's own |
//! | [`UNREAD_BYTES_MAX`], [`UNREAD_MAX`] | a reply whose client has left |
//! | the server's `wait_timeout` | an idle connection, which the server is about to close |
//! | `backend_idle_ms_max`, `backend_life_s_max` | an idle connection that is not needed, or old |
//!
//! Not bounded are a client's statement (but by `statement_ms_max`, where that is set), a
//! preparation, which may wait for a lock like a statement, and a reset, which may have much to
//! roll back.
//!
//! Invariant: no limit of idle backends closes one that has still to answer about a client's
//! statement.

use crate::backend::{Backend, BackendState};
use crate::config::Settings;
use crate::group::tokens::BackendId;
use crate::server::facts::ServerTimeouts;
use reactor::Time;
use std::io::{Error, ErrorKind};
use std::time::Duration;

/// Bytes of a reply that are read and thrown away after its client has left.
pub(crate) const UNREAD_BYTES_MAX: usize = 32 * 1024;
/// Longest time for which the rest of such a reply is read.
pub(crate) const UNREAD_MAX: Duration = Duration::from_secs(5);
/// Longest time before the server closes a backend (`wait_timeout`) in which it is sent nothing: a
/// command that meets the close on its way would be lost.
const MARGIN_MAX: Duration = Duration::from_secs(5);
/// Half the shortest `wait_timeout`, 1 s: until then there is nothing to look up.
const ALIVE: Duration = Duration::from_millis(500);

/// Fate of a backend whose time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// Failure of its dial, for this reason.
    Dial(String),
    /// Loss, for this reason.
    Lost(String),
    /// Close, with a KILL that ends what nobody waits for.
    Unread,
    /// Close, once what it alone knows has been asked for.
    Idle,
}

/// Limits that its time is measured by.
pub(crate) struct TimeLimits<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) timeouts: &'a ServerTimeouts,
    /// The capabilities of its pool.
    pub(crate) capabilities: u32,
    /// True if there are more backends than are kept without use.
    pub(crate) has_spare: bool,
    pub(crate) now: Time,
}

/// A dial that has stood unanswered for so long is started over when the server is back.
const STALE_AFTER: Duration = Duration::from_millis(100);

impl<S> Backend<S> {
    /// True if it is being dialled, and may never be answered, as a server that is back by now has
    /// not heard of it.
    pub(crate) fn is_stale_dial(&self, now: Time) -> bool {
        let dial = self.dial.as_ref();
        let asks = dial.is_some_and(|dial| dial.thread.is_none());
        asks && now.since(self.born) >= STALE_AFTER
    }

    /// True if its time is over, and what that means. `unanswered`: for how long the server's host
    /// has acknowledged nothing.
    pub(crate) fn overdue(
        &self,
        key: BackendId,
        unanswered: impl FnOnce() -> Option<Duration>,
        limits: &TimeLimits<'_>,
    ) -> Option<Overdue> {
        let (settings, now) = (limits.settings, limits.now);
        let opens = matches!(
            self.state(),
            BackendState::Dialling | BackendState::Preparing
        );
        if opens && now.since(self.since) > settings.dial_max {
            let ms = settings.dial_max.as_millis();
            let why = format!("the server did not answer within {ms} ms");
            return Some(Overdue::Dial(why));
        }
        // One that is being opened has a limit of its own.
        if let Some(max) = settings.backend_silence_max
            && self.state() != BackendState::Dialling
            && unanswered().is_some_and(|silent| silent >= max)
        {
            return Some(Overdue::Lost(silent_for(Some(max))));
        }
        if self.is_unanswered(settings.wait_max, now) {
            let ms = settings.wait_max.as_millis();
            let why = format!("the server did not answer the pool's own question within {ms} ms");
            return Some(Overdue::Lost(why));
        }
        if self.is_read_in_vain(now) {
            return Some(Overdue::Unread);
        }
        let is_old = || {
            let unused = now.since(self.since) > settings.backend_idle_max && limits.has_spare;
            unused || now.since(self.born) > life_of(key, self.born, settings.backend_life_max)
        };
        let idle = self.state() == BackendState::Idle;
        let dies = || !self.lives_on(limits.capabilities, limits.timeouts, now);
        (idle && (dies() || is_old())).then_some(Overdue::Idle)
    }

    /// True if what the pool itself has asked is not answered in time.
    fn is_unanswered(&self, max: Duration, now: Time) -> bool {
        let asks = self.flight.front().is_some_and(|command| {
            !command.purpose.may_take_long()
                && now.since(command.sent.max(self.flight.busy_since())) > max
        });
        asks && self.state() == BackendState::CheckedOut
    }

    /// True if enough of a reply that nobody waits for has been read. Where a client keeps its
    /// session on the backend, such a reply in front of its own is read to its end.
    pub(crate) fn is_read_in_vain(&self, now: Time) -> bool {
        let left = self.flight.front().and_then(|command| command.left);
        let reply = self.flight.reply_so_far();
        let sends_rows = reply.columns.is_some();
        left.is_some_and(|left| {
            sends_rows
                && self.client().is_none()
                && (reply.len.saturating_sub(left.len) > UNREAD_BYTES_MAX
                    || now.since(left.at) > UNREAD_MAX)
        })
    }

    /// True if the server keeps this idle backend for long enough to run a statement on it.
    pub(crate) fn lives_on(&self, capabilities: u32, timeouts: &ServerTimeouts, now: Time) -> bool {
        let idle = now.since(self.since);
        if idle < ALIVE {
            return true;
        }
        let max = timeouts.wait_of(&self.session.state, capabilities);
        idle < max - (max / 2).min(MARGIN_MAX)
    }
}

/// Life of one backend: `life_max`, shortened by up to a tenth. Backends that were dialled together
/// must not be replaced together, so the share differs by key and birth.
fn life_of(key: BackendId, born: Time, life_max: Duration) -> Duration {
    let mixed = (born.0 ^ u64::from(key.parts().0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let permille = u32::try_from(mixed >> 32).unwrap_or(0) % 100;
    life_max - life_max / 1000 * permille
}

fn silent_for(longest: Option<Duration>) -> String {
    match longest {
        Some(longest) => format!(
            "the server's host has not answered for {} s",
            longest.as_secs()
        ),
        None => "the server's host does not answer".into(),
    }
}

/// Reason why a connection to the server cannot be read or written any more, where its host may be
/// silent for so long.
pub(crate) fn why_broken(error: &Error, silence_max: Option<Duration>) -> String {
    match error.kind() {
        ErrorKind::TimedOut => silent_for(silence_max),
        _ => format!("the connection to the server broke: {error}"),
    }
}

#[cfg(test)]
mod tests;
