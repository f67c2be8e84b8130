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
//! A listener tells once that somebody knocks, so the group remembers it until nobody is left.
//!
//! Invariant: a listener that has told and was not emptied is in `knocking`.
//!
//! [`Settings::logins_per_s_max`]: crate::Settings::logins_per_s_max

use crate::group::Group;
use reactor::{Key, Net, Time};
use std::time::Duration;

/// Connections accepted per turn and listener; more wait for the next turn, behind statements.
const ACCEPTS_PER_TURN: u32 = 64;
/// An accept that failed, mostly for want of descriptors, is tried again after this.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

impl<N: Net> Group<N> {
    /// Somebody waits at a listener.
    pub(crate) fn on_knock(&mut self, listener: Key) {
        let listener = listener.parts().0 as usize;
        if !self.arrivals.knocking.contains(&listener) {
            self.arrivals.knocking.push(listener);
        }
    }

    /// Accepts those who knock, as far as statements leave time for it.
    pub(crate) fn accept_arrivals(&mut self) {
        let mut at = 0;
        while let Some(&listener) = self.arrivals.knocking.get(at) {
            if self.accept_some(listener) {
                at += 1;
            } else {
                self.arrivals.knocking.swap_remove(at);
            }
        }
    }

    /// Accepts what may come in at one listener; `false` when nobody is left.
    fn accept_some(&mut self, listener: usize) -> bool {
        let now = self.net.now();
        let gap = self.login_gap();
        if self.arrivals.again_at > now {
            return true;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            if !self.arrivals.may_enter(now, gap) {
                return true;
            }
            match self.net.accept(listener) {
                Ok(Some(sock)) => self.greet(sock, listener),
                Ok(None) => return false,
                Err(_) => {
                    self.counts.accept_failures += 1;
                    self.arrivals.again_at = now + ACCEPT_AGAIN;
                    return true;
                }
            }
        }
        true
    }

    /// A login has turned out to be one under TLS.
    pub(crate) fn pace_handshake(&mut self) {
        let (now, gap) = (self.net.now(), self.login_gap());
        self.arrivals.handshake_began(now, gap);
    }

    /// Time between two logins in this group: none while no statement has to wait anywhere.
    fn login_gap(&self) -> Duration {
        if !self.shared.fronts.anybody_waits(self.net.now()) {
            return Duration::ZERO;
        }
        let groups = u32::try_from(self.shared.groups).unwrap_or(u32::MAX);
        Duration::from_secs(1) / self.settings.logins_per_s_max * groups
    }

    /// When those who knock are to be looked at again.
    pub(crate) fn next_arrival(&self) -> Time {
        if self.arrivals.knocking.is_empty() {
            Time::NEVER
        } else if self.login_gap() == Duration::ZERO {
            self.arrivals.again_at
        } else {
            self.arrivals.again_at.max(self.arrivals.next_at)
        }
    }
}
