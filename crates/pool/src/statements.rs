//! Statements: what becomes of a client's command before it is sent, or instead of that.
//!
//! [`answered_locally`] has the texts that no server has to see, and [`own_ok`] the answers to
//! them; [`stored_code`] what a text runs besides itself, [`pinning`] what keeps its client's
//! backend; [`binary_prepare`] has prepared statements; [`kill`] is KILL, as a whole.
//!
//! They look at values and say what they have decided; the group does it.

pub(crate) mod answered_locally;
pub(crate) mod binary_prepare;
pub(crate) mod kill;
pub(crate) mod own_ok;
pub(crate) mod pinning;
pub(crate) mod stored_code;
