//! When it is looked for code: at start, when a statement through the pool has defined some, when
//! the server says that somebody else may have, and every `stored_code_refresh_s` in any case.
//!
//! The problem: what is defined past the pool, or inside of other code, is in no text that the pool
//! sees, and a look at all code is too much to be taken all the time. The mechanism: a server
//! counts the statements of each kind that it has begun (`Com_create_trigger` and its like), those
//! inside of stored code too. These few numbers are asked for once a second; where they have
//! changed, a look follows at once, and another behind the next asking, since a statement is
//! counted when it begins and may take effect later.
//!
//! A look may cost the server much where there are many tables, so there are at least twenty times
//! its own length between two that no statement through the pool asked for.

use super::Hidden;
use super::look::{look_once, open};
use crate::group::Shared;
use crate::log::note;
use crate::probe::{Connection, ProbeError};
use crate::session::Text;
use reactor::Time;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// After a look that failed, and between two questions about the counters.
const AGAIN: Duration = Duration::from_secs(1);
/// Between two looks that nobody asked for: so many times the length of the last.
const PAUSE: u32 = 20;

/// Statements that define code, give it to another table, or take it away.
const COUNTERS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_create_procedure',\
     'Com_create_function','Com_create_udf','Com_create_trigger','Com_create_view',\
     'Com_create_package','Com_create_package_body','Com_alter_procedure','Com_alter_function',\
     'Com_alter_table','Com_rename_table','Com_create_table','Com_drop_procedure',\
     'Com_drop_function','Com_drop_trigger','Com_drop_view','Com_drop_db','Com_drop_package',\
     'Com_drop_package_body')";

/// The first look, before the first client.
pub(crate) fn first_look(shared: &Shared) {
    if !shared.hidden.on {
        return;
    }
    let looked = open(&shared.settings).and_then(|mut connection| {
        look_once(shared, &mut connection)?;
        connection.leave();
        Ok(())
    });
    if let Err(error) = looked {
        note(format_args!(
            "the catalogue of hidden code cannot be read, so that triggers and views are not \
             known: {}; it is tried again",
            error.why
        ));
        shared.hidden.lock().asked = true;
    }
}

/// Looks again whenever it is time, on a thread of its own that ends with the process.
pub(crate) fn keep_looking(shared: Arc<Shared>) {
    if !shared.hidden.on {
        return;
    }
    let watch = move || {
        let mut watch = Watch::new(Time::now());
        let mut failed = false;
        loop {
            shared.hidden.wait(AGAIN);
            let result = watch.turn(&shared);
            if let Err(error) = &result {
                watch.connection = None;
                if !failed {
                    let why = &error.why;
                    note(format_args!(
                        "the catalogue of hidden code cannot be read: {why}"
                    ));
                }
                shared.hidden.lock().asked = true;
                shared.hidden.pause(AGAIN);
            }
            failed = result.is_err();
        }
    };
    let thread = std::thread::Builder::new().name("catalogue".into());
    if let Err(error) = thread.spawn(watch) {
        note(format_args!("cannot start the catalogue's thread: {error}"));
    }
}

/// What the catalogue's thread knows.
struct Watch {
    connection: Option<Connection>,
    /// The counters in front of the last look.
    counters: Option<Vec<Vec<Text>>>,
    /// A look is due.
    due: bool,
    /// The last look: its end, and its length.
    looked: (Time, Duration),
}

impl Watch {
    fn new(now: Time) -> Watch {
        Watch {
            connection: None,
            counters: None,
            due: false,
            looked: (now, Duration::ZERO),
        }
    }

    /// Asks the counters, and looks if it is time.
    fn turn(&mut self, shared: &Shared) -> Result<(), ProbeError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => open(&shared.settings)?,
        };
        let counters = connection.query(COUNTERS)?;
        let news = self.counters.as_ref() != Some(&counters);
        let (end, length) = self.looked;
        let since = Time::now().since(end);
        let every = shared.settings.looking.every.unwrap_or(AGAIN);
        let asked = shared.hidden.lock().asked;
        let rested = since >= length * PAUSE;
        let due = self.due || news || since >= every;
        if asked || rested && due {
            let begun = Time::now();
            look_once(shared, &mut connection)?;
            let now = Time::now();
            self.looked = (now, now.since(begun));
            self.counters = Some(counters);
            self.due = news;
        } else {
            self.due = due;
        }
        self.connection = Some(connection);
        Ok(())
    }
}

impl Hidden {
    /// Waits until a look is asked for, at most this long.
    fn wait(&self, longest: Duration) {
        let state = self.lock();
        let waited = self
            .wanted
            .wait_timeout_while(state, longest, |state| !state.asked);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits, whatever is asked for.
    fn pause(&self, time: Duration) {
        let waited = self.wanted.wait_timeout_while(self.lock(), time, |_| true);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
