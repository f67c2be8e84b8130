//! What serves no client: the watch, the workers for passwords, certificates, the console, metrics
//! and the site that shows them.
//!
//! Each is a thread, or is read by one. Invariant: no group waits for any of them.

pub(crate) mod certificates;
pub(crate) mod console;
pub(crate) mod live;
pub(crate) mod metrics;
pub(crate) mod otel;
pub(crate) mod password_workers;
pub(crate) mod reload;
pub(crate) mod service;
pub(crate) mod site;
pub(crate) mod spool_threads;
pub(crate) mod text_readers;
pub(crate) mod upgrade;
pub(crate) mod watch;
