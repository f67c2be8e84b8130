//! Statements: what becomes of a client's command before it is sent, or instead of that.
//!
//! [`plan`] judges a text or an execution, as a whole. [`answered_locally`] has the texts that no
//! server has to see, and [`own_ok`] the answers to them; [`stored_code`] what a text runs besides
//! itself, [`pinning`] its effects on its client; [`binary_prepare`] has prepared statements;
//! [`kill`] is KILL, as a whole.
//!
//! They look at values and say what they have decided. [`commands`] takes a client's command,
//! [`query`] and [`prepared_commands`] carry out what was decided, [`start`] gets it a backend
//! and sends it, and [`endings`] follow its reply.

pub(crate) mod ahead;
pub(crate) mod answered_locally;
pub(crate) mod binary_prepare;
pub(crate) mod commands;
pub(crate) mod endings;
pub(crate) mod kill;
pub(crate) mod own_ok;
pub(crate) mod pinning;
pub(crate) mod plan;
pub(crate) mod prepared_commands;
pub(crate) mod query;
pub(crate) mod start;
pub(crate) mod stored_code;
pub(crate) mod unanswered;
