//! Observation: counters, logs, metrics and traces.
//!
//! [`figures`] is what a group counts and measures, [`metrics`] all that is published of it;
//! [`log`] and [`statement_logs`] are lines, [`limited_log`] as many as a log can bear,
//! about clients as [`who`] names them; [`audit`] has their logins and ends; [`refusals`] are
//! counted by account;
//! [`telemetry`] and [`otel`] go to an OpenTelemetry collector; [`survey`] and [`listing`] show a
//! group's clients and backends, with their [`programs`].
//!
//! Nothing here changes what a client gets, and no group waits for a reader.

pub(crate) mod audit;
pub(crate) mod figures;
pub(crate) mod identity;
pub(crate) mod limited_log;
pub(crate) mod listing;
pub(crate) mod log;
pub(crate) mod metrics;
pub(crate) mod otel;
pub(crate) mod programs;
pub(crate) mod refusals;
pub(crate) mod statement_logs;
pub(crate) mod survey;
pub(crate) mod telemetry;

use crate::errors::totals::ErrorCounts;
use crate::observe::audit::{AuditTrail, Happened};
use crate::observe::programs::Programs;
use crate::observe::refusals::Refusals;
use crate::observe::telemetry::Telemetry;
use std::sync::Arc;

/// Records that all groups write.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Refusals by account.
    pub(crate) refusals: Refusals,
    /// Logins and ends of clients, for those who audit them.
    pub(crate) audit: Arc<AuditTrail>,
    /// Names of clients' programs.
    pub(crate) programs: Programs,
    /// Errors of the server, by number.
    pub(crate) errors: ErrorCounts,
    /// Destination of spans of statements, if they are exported.
    pub(crate) telemetry: Option<Telemetry>,
}

impl Records {
    /// Writes what has happened to a client into the audit trail, if there is one.
    pub(crate) fn note_for_audit<'a>(&self, happened: impl FnOnce() -> Happened<'a>) {
        if self.audit.is_on() {
            self.audit.note(&happened(), &self.programs);
        }
    }
}
