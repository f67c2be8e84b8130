//! The server's global values as the last look has found them, with their version.
//!
//! `watch.rs` fills it, each group takes it ([`crate::server::globals`]).
//!
//! Invariant: the version changes with the values, and only with them.

use crate::observe::log::{Event, note};
use reactor::Time;
use session::global_defaults::GlobalDefaults;
use session::text::Text;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Global values, shared by all groups.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The version of `state.now`.
    version: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) now: GlobalDefaults,
    /// The last look that found `now` as it is, at its begin.
    seen: Time,
    /// The last look that found something else; backends dialled later may be of either kind.
    pub(crate) before: Time,
}

impl Watch {
    /// Another one when the values are others.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn name(&self, names: Vec<Text>) {
        self.lock().now = GlobalDefaults::named(names);
    }

    /// Notes the values that a look which began at `asked_at` has found.
    fn note(&self, asked_at: Time, (values, init_connect): (Vec<Option<Text>>, Text)) {
        let mut state = self.lock();
        if let Some(now) = state.now.with(values, init_connect) {
            state.before = state.seen;
            self.version.store(now.version(), Release);
            if state.now.version() > 0 {
                tell_difference(&now, &state.now);
            }
            state.now = now;
        }
        state.seen = asked_at;
    }

    /// True if it is known already what to ask for.
    pub(crate) fn is_named(&self) -> bool {
        !self.lock().now.names().is_empty()
    }

    /// The statement that asks for all global values.
    pub(crate) fn question(&self) -> String {
        let values = self.lock().now.global_question();
        format!(
            "SELECT {values},@@global.init_connect,@@global.max_connections,\
             @@global.max_prepared_stmt_count"
        )
    }

    /// Takes the answer to what was asked at `asked_at`; gives how many connections the server
    /// takes, and how many prepared statements. `None`: these are not the values.
    pub(crate) fn answered(&self, asked_at: Time, rows: Vec<Vec<Text>>) -> Option<(usize, usize)> {
        let now = self.lock().now.clone();
        let row = rows.into_iter().next();
        let told = row.and_then(|row| <[Text; 4]>::try_from(row).ok());
        let number = |text: Text| std::str::from_utf8(&text).ok()?.parse().ok();
        let [told, init, connections, prepared] = told?;
        let most = (number(connections)?, number(prepared)?);
        self.note(asked_at, (now.read(&told)?, init));
        Some(most)
    }
}

fn tell_difference(now: &GlobalDefaults, old: &GlobalDefaults) {
    note(
        Event::Globals,
        format_args!(
            "the server's global values have changed ({}): they hold for who logs in from now on",
            now.changed_since(old).join(", ")
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_stands_for_values_and_what_is_equal_is_none() {
        let watch = Watch::default();
        watch.name(vec![Text::from(&b"a"[..])]);
        let value = |text: &str| (vec![Some(Text::from(text.as_bytes()))], Text::default());
        watch.note(Time(10), value("1"));
        assert_eq!(watch.version.load(Acquire), 1);
        watch.note(Time(20), value("1"));
        assert_eq!(watch.version.load(Acquire), 1);
        watch.note(Time(30), value("2"));
        assert_eq!(watch.version.load(Acquire), 2);
        // What was dialled after the last look that found the old value may have either.
        assert_eq!(watch.lock().before, Time(20));
    }
}
