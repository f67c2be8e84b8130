//! Authentication of clients: accounts, logins, passwords, and the cost of failed attempts.
//!
//! All of it as values. [`login`] is the client's side of the protocol as a state machine without a
//! socket; [`logins`] feeds it, and `operations::password_workers` are the threads
//! that decrypt and compare.

pub(crate) mod account;
pub(crate) mod accounts;
pub(crate) mod auth_delay;
pub(crate) mod auth_failures;
pub(crate) mod certificate;
pub(crate) mod certificate_reload;
pub(crate) mod credential;
pub(crate) mod denial;
pub(crate) mod failed_logins;
pub(crate) mod host_pattern;
pub(crate) mod login;
pub(crate) mod logins;
pub(crate) mod network;
pub(crate) mod own_certificate;
pub(crate) mod password_checks;
pub(crate) mod password_workers;
pub(crate) mod requirement;
pub(crate) mod secret;
pub(crate) mod server_accounts;
pub(crate) mod stand_ins;
pub(crate) mod verifier;
