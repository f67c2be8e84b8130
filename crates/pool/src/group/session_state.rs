//! The state of a session, property by property: how it is learnt, carried to another backend, or
//! pinned.
//!
//! The values and the rules are the crate `session`'s. Each file here is a group's part in one
//! property: the questions that it sends to a backend, and what it does with the answers.

pub(crate) mod globals;
pub(crate) mod redefinition;
pub(crate) mod triggers_and_views;
