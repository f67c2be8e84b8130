//! Changes on the server past the pool, as the watch has seen them last.
//!
//! `operations::watch` asks and writes; groups read without waiting. Global values, privileges, and
//! the code in triggers and views are what is watched; [`lock_waits`] are asked for by the console;
//! [`trigger`] wakes the watch before its time.

pub(crate) mod accounts;
pub(crate) mod code_catalogue;
pub(crate) mod global_values;
pub(crate) mod lock_waits;
pub(crate) mod privileges;
pub(crate) mod schemas_defined;
pub(crate) mod trigger;

use crate::config::Settings;
use crate::server::watched::code_catalogue::CodeCatalogue;
use crate::server::watched::global_values::Watch;
use crate::server::watched::lock_waits::LockQuestions;
use crate::server::watched::privileges::Privileges;
use crate::server::watched::schemas_defined::SchemasDefined;
use crate::server::watched::trigger::WatchTrigger;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Findings of the watch, and questions to it.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Triggers, views and columns that may change a session unseen.
    pub(crate) code_catalogue: CodeCatalogue,
    /// Schemas that have other character sets than before.
    pub(crate) schemas_defined: SchemasDefined,
    /// Global defaults that sessions begin with.
    pub(crate) globals: Watch,
    /// Accounts and privileges of the server.
    pub(crate) privileges: Privileges,
    /// Questions of consoles about waits for row locks.
    pub(crate) lock_questions: LockQuestions,
    /// Something that is watched may have changed.
    pub(crate) trigger: Arc<WatchTrigger>,
    /// Prepared statements that the server takes of all its clients.
    prepared_taken: AtomicUsize,
}

impl Watched {
    /// Nothing found yet.
    pub(crate) fn new(settings: &Settings) -> Watched {
        Watched {
            code_catalogue: CodeCatalogue::new(settings),
            schemas_defined: SchemasDefined::default(),
            globals: Watch::default(),
            privileges: Privileges::default(),
            lock_questions: LockQuestions::default(),
            trigger: Arc::default(),
            prepared_taken: AtomicUsize::new(usize::MAX),
        }
    }

    /// Notes how many prepared statements the server takes (`max_prepared_stmt_count`).
    pub(crate) fn set_prepared_taken(&self, taken: usize) {
        self.prepared_taken.store(taken, Ordering::Release);
    }

    /// Statements that may be prepared on all backends: `prepared_max`, within three quarters of
    /// what the server takes, so that there is room for others.
    pub(crate) fn prepared_max(&self, settings: &Settings) -> usize {
        let taken = self.prepared_taken.load(Ordering::Acquire);
        settings.prepared_max.min(taken - taken / 4)
    }
}
