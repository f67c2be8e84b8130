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
