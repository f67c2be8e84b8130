//! Guards of statements that change what is watched: when one has ended, the watch looks at once.
//!
//! A guard belongs to the plan of a statement ([`session::pins`]) and ends with it, however that
//! ends: with an answer, with its client, or with its backend.

use crate::group::shared::Shared;
use session::pins::Guard;
use session::reply_summary::ReplySummary;
use sql::classify::stored::Schema;
use std::sync::Arc;

/// Held while a statement that sets a global variable, or changes accounts, is under way.
#[derive(Debug)]
pub(crate) struct Changing(pub(crate) Arc<Shared>);

impl Guard for Changing {}

impl Drop for Changing {
    fn drop(&mut self) {
        self.0.watched.trigger.fire();
    }
}

/// Held while a statement that defines code is under way.
#[derive(Debug)]
pub(crate) struct Coming {
    pub(crate) shared: Arc<Shared>,
    pub(crate) number: u64,
}

impl Guard for Coming {}

impl Drop for Coming {
    fn drop(&mut self) {
        self.shared.watched.code_catalogue.is_defined(self.number);
        self.shared.watched.trigger.fire();
    }
}

/// ER_DBACCESS_DENIED_ERROR
const ACCESS_DENIED: u16 = 1044;

/// Held while a text that alters, creates or drops schemas is under way.
#[derive(Debug)]
pub(crate) struct DefiningSchemas {
    pub(crate) shared: Arc<Shared>,
    pub(crate) schemas: Vec<Schema>,
    /// True for several statements: which of them have failed or warned is not known.
    pub(crate) several: bool,
}

impl Guard for DefiningSchemas {
    fn answered(&mut self, summary: &ReplySummary) {
        // Of several some may have run before the one that failed. Who may not do so has done none.
        if summary.error.is_some() && (!self.several || summary.is_error(ACCESS_DENIED)) {
            return;
        }
        let certain = summary.warnings == 0 && !self.several;
        for schema in self.schemas.drain(..) {
            self.shared.watched.schemas_defined.note(schema, certain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::scripted::shared;
    use std::time::Duration;

    #[test]
    fn the_watch_is_woken_when_a_guarded_statement_has_ended() {
        let shared = Arc::new(shared(""));
        drop(Changing(shared.clone()));
        // It would wait for ever otherwise.
        shared.watched.trigger.wait(Duration::MAX);
    }
}
