//! Rules of administrators, which the process that takes over follows as well.
//!
//! The old process sends them before the first client goes, and again when they have changed: the
//! console is its own until it ends.

use crate::config::UserLimit;
use crate::config::reload::{limits_of_users, set_of_user};
use crate::group::shared::Shared;
use crate::limits::rules::{self, RuleRecord};
use crate::observe::log::{Event, note};
use handover::{Frame, Record};
use reactor::Time;
use std::io;

/// All rules of this process, as a message.
///
/// # Errors
/// They have no form as bytes.
pub(crate) fn message(shared: &Shared) -> io::Result<Frame> {
    let rules = rules::records(&shared.scheduling.rules.get(), Time::now());
    let bytes = (rules, limits_of_users(shared)).to_bytes();
    bytes.map(Frame::Rules).map_err(io::Error::other)
}

/// Follows the rules of the process before.
pub(crate) fn take_over(shared: &Shared, bytes: &[u8]) {
    let wrong = |why: &dyn std::fmt::Display| {
        let text = format_args!("a rule of the process before does not hold here: {why}");
        note(Event::UpgradeFailed, text);
    };
    let (rules, limits) = match <(Vec<RuleRecord>, Vec<UserLimit>)>::from_bytes(bytes) {
        Ok((rules, limits)) => (rules::of_records(rules, Time::now()), limits),
        Err(why) => return wrong(&why),
    };
    shared.scheduling.rules.take_over(rules);
    let before = limits_of_users(shared);
    let gone = before.iter().filter(|limit| {
        let is_same = |other: &UserLimit| (&other.user, &other.name) == (&limit.user, &limit.name);
        !limits.iter().any(is_same)
    });
    let gone = gone.map(|limit| UserLimit {
        value: None,
        ..limit.clone()
    });
    let new = limits.iter().filter(|limit| !before.contains(limit));
    for limit in gone.chain(new.cloned()) {
        if let Err(why) = set_of_user(shared, &limit.user, &limit.name, limit.value.as_deref()) {
            wrong(&why);
        }
    }
}
