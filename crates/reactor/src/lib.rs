//! Sockets, events and descriptors for one thread per group; the only crate with `unsafe`.
//!
//! The problem: hold hundreds of thousands of connections in one process, each as cheap as its own
//! struct, on any Linux, within whatever descriptor limit the process was given. The mechanism: one
//! epoll per thread, edge-triggered, each socket registered once; a private descriptor table per
//! thread ([`descriptors`]), so that RLIMIT_NOFILE holds per thread; generational slots instead of
//! pointers ([`Slots`]); and [`Net`], the few calls through which a group touches the world, so
//! that a simulation can stand in for it.
//!
//! Invariants:
//! - no word of MySQL in here;
//! - a descriptor number means something in the thread that made it only, except for what was
//!   opened before the thread took its own table (mailboxes, Unix listeners);
//! - every socket is non-blocking; no call here waits but [`RealNet::wait`].

pub mod accounts;
pub mod activation;
pub mod address;
pub mod arguments;
pub mod clock;
pub mod descriptors;
mod freed;
mod mailbox;
mod net;
mod prefetch;
pub mod privileges;
mod real;
pub mod records;
mod right;
pub mod scheduling;
pub mod scratch;
mod skip_hostname_verification;
mod skip_verification;
mod slots;
pub mod socket;
pub mod tls;
pub mod tls_client;
pub mod tls_errors;
pub mod tls_files;

pub use address::Address;
pub use clock::{Time, pause, utc_now, wall_clock};
pub use freed::give_back_memory;
pub use mailbox::{Mailbox, Sender, mailbox};
pub use net::{Event, Net, Read, Token, Write};
pub use prefetch::prefetch;
pub use real::{RealNet, random_bytes};
pub use right::Right;
pub use scratch::Scratch;
pub use skip_hostname_verification::SkipHostnameVerification;
pub use skip_verification::SkipVerification;
pub use slots::{Key, SlotKey, Slots};
pub use tls::Tls;
