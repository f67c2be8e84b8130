//! Prepared statements in a group; the values are in [`session::prepared`].
//!
//! The clients' commands (`commands`), what a backend lacks and is given ahead of an execution
//! (`ahead`), and errors that the server has to raise (`raised`). Texts that name a statement are
//! [`crate::statements::sql_prepare`]; what is written to a backend, and what came of it, is
//! [`crate::pair::prepared`].

mod ahead;
mod commands;
pub(crate) mod raised;
