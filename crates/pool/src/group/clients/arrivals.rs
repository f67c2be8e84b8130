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

use crate::config::Settings;
use crate::group::Group;
use crate::group::shared::Shared;
use reactor::{Net, Time};
use std::time::Duration;

/// Connections accepted per turn and listener; more wait for the next turn, behind statements.
const ACCEPTS_PER_TURN: u32 = 64;
/// An accept that failed, mostly for want of descriptors, is tried again after this.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

impl Shared {
    /// Time between two logins in a group: none while no statement has to wait anywhere.
    pub(crate) fn login_gap(&self, settings: &Settings, now: Time) -> Duration {
        if !self.fronts.anybody_waits(now) {
            return Duration::ZERO;
        }
        let groups = u32::try_from(self.groups).unwrap_or(u32::MAX);
        Duration::from_secs(1) / settings.logins_per_s_max * groups
    }
}

impl<N: Net> Group<N> {
    /// Accepts what is pending, as far as statements leave time for it.
    pub(crate) fn accept_arrivals(&mut self) {
        let mut at = 0;
        while let Some(&listener) = self.arrivals.pending.get(at) {
            if self.accept_some(listener) {
                at += 1;
            } else {
                self.arrivals.pending.swap_remove(at);
            }
        }
    }

    /// Accepts what may come in at one listener; `false` when nobody is left.
    fn accept_some(&mut self, listener: usize) -> bool {
        let now = self.net.now();
        let gap = self.shared.login_gap(&self.settings, now);
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
}
