//! What a group does with prepared statements; the values are in
//! [`session::prepared`].
//!
//! The clients' commands (`commands`), texts that name a statement (`named`), what a backend lacks
//! and is given ahead of an execution (`ahead`), and errors that the server has to raise
//! (`raised`). What is written to a backend, and what came of it, is [`crate::pair::prepared`].

mod ahead;
mod commands;
pub(crate) mod named;
pub(crate) mod raised;
