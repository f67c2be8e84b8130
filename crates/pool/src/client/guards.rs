//! Guards of statements that change what is watched: when one has ended, the watch looks at once.
//!
//! A guard belongs to the plan of a statement ([`session::holds`]) and ends with it, however that
//! ends: with an answer, with its client, or with its backend.

use crate::shared::Shared;
use session::holds::Guard;
use std::sync::Arc;

/// Held while a statement that sets a global variable is under way.
#[derive(Debug)]
pub(crate) struct Setting(pub(crate) Arc<Shared>);

impl Guard for Setting {}

impl Drop for Setting {
    fn drop(&mut self) {
        self.0.bell.ring();
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
        self.shared.code_catalogue.is_defined(self.number);
        self.shared.bell.ring();
    }
}
