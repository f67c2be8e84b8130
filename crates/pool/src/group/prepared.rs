//! Prepared statements in a group; the values are in [`session::prepared`].
//!
//! The clients' commands (`commands`), and what a backend lacks and is given ahead of an execution
//! (`ahead`). What is written to a backend, and what came of it, is [`crate::pair::prepared`].
//! Statements that are prepared as text (PREPARE, EXECUTE) are their server's: such a client keeps
//! its backend.

mod ahead;
mod commands;
