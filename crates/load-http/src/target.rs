//! `onramp target`: servers to test long connections and HTTP against.
//!
//! The problem: a test of connections needs a server that is not itself the limit, and whose
//! answers are known. The mechanism: groups as everywhere, a thread each with its own descriptor
//! table and its own listener on the same address, so that a million connections are a matter of
//! memory only. A connection is some dozens of bytes; what is to be sent is one text that all
//! share.
//!
//! - `tcp` sends its message to every connection once a period, counted from its accept.
//! - `http` answers every request with its message.
//!
//! Files: [`options`] is the command line, [`run`] the main thread, [`group`] one thread, [`peer`]
//! one connection, [`request`] what HTTP requests look like.

mod group;
mod options;
mod peer;
mod request;
mod run;

pub use options::{HttpArgs, Kind, SizeArgs, TargetArgs, TcpArgs};
pub use request::find;
pub use run::run;
