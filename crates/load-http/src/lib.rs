//! `onramp load` for HTTP/1.1, HTTP/2 and sockets that are only held, and `onramp target`, which
//! answers such load.
//!
//! Both run on the event loop of `load-core`; [`long::Users`] lets a Locust master order the
//! connections.
#![forbid(unsafe_code)]
#![warn(clippy::print_stderr)]

#[macro_use]
extern crate load_core;

pub mod long;
pub mod target;
