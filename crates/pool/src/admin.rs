//! Administration of a running pool: the console, the live page, and the HTTP site.
//!
//! Each is served by threads of its own from what groups publish. Invariant: no group waits for any
//! of them.

pub(crate) mod console;
pub(crate) mod live;
pub(crate) mod site;
