//! Messages to a service manager: the pool is ready, it ends, it is well.
//!
//! systemd says in `NOTIFY_SOCKET` where it listens, and in `WATCHDOG_USEC` how often it wants to
//! hear that a service is well; without these nothing is sent. A pool is well while every group
//! gets on, as `/healthz` says: a group that stands has the service restarted.

use crate::admin::site::TURNS_WITHIN;
use crate::observe::log::{Event, note};
use crate::observe::metrics::Board;
use sd_notify::NotifyState;
use std::sync::Arc;
use std::time::Duration;

/// Reports to the service manager that clients may come.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Reports readiness, with this process as the service from now on.
pub(crate) fn ready_in_place() {
    let pid = std::process::id();
    tell(&[NotifyState::MainPid(pid), NotifyState::Ready]);
}

/// Reports that settings are about to be read again; [`ready`] reports that they were.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// Reports that no new clients are taken: the pool ends when running work has ended.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        note(
            Event::Warning,
            format_args!("the service manager cannot be told ({error})"),
        );
    }
}

/// Feeds the service manager's watchdog, if it has one, in a thread that ends with the process.
pub(crate) fn feed_watchdog(board: Arc<Board>) {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return;
    };
    let every = limit / 3;
    let feed = move || {
        loop {
            reactor::pause(every.max(Duration::from_millis(10)));
            if board.sample().unhealthy(TURNS_WITHIN).is_none() {
                tell(&[NotifyState::Watchdog]);
            }
        }
    };
    let builder = std::thread::Builder::new().name("watchdog".into());
    if let Err(error) = builder.spawn(feed) {
        note(
            Event::Failed,
            format_args!("cannot start the thread that feeds the watchdog: {error}"),
        );
    }
}
