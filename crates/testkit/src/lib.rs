//! Tools of the tests: a client that can say anything, real servers, fake ones, and a world that
//! runs from a seed.
//!
//! - [`talk`] is the client's side of the protocol without a socket, [`client`] the same with one;
//!   [`reply`] holds what came back as values to compare.
//! - [`oracle`] tells random stories of many clients twice, to the server itself and through the
//!   pool, and compares every reply; [`story`] does so with stories that stand in files.
//! - [`truth`] finds out what a server's session trackers report, [`conformance`] what two clients
//!   of a pool can tell of each other, state by state.
//! - [`real`] starts a private MariaDB, [`onramp`] the program under test; [`guard`] ends both and
//!   removes their files when the tests are over, however they end. [`terminal`] starts it where it
//!   has keys and a width. [`proxy`] loses connections, [`crooked`] does wrong to statements.
//!
//! Nothing here is part of a program. It fails by panicking, with the reason in words.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the tests' machinery fails by panicking"
)]

pub mod actor;
pub mod certificates;
pub mod client;
pub mod conformance;
pub mod crooked;
mod frames;
pub mod fuzz;
pub mod guard;
pub mod hostile;
pub mod link;
pub mod onramp;
pub mod oracle;
pub mod output;
pub mod proxy;
pub mod real;
pub mod relay;
pub mod reply;
pub mod sim;
pub mod story;
pub mod talk;
pub mod terminal;
pub mod texts;
pub mod tls;
pub mod truth;
