//! Whole groups in a simulated world: clock, network, server, clients and chaos from one seed.
//!
//! The problem: the failures that matter need a dying backend, a full send buffer and a client that
//! leaves, in one order of thousands. The mechanism: `pool::Group` is generic over its network, so
//! it runs here unchanged on [`net`], against [`fake_mysql`], with [`client`]s that judge every
//! reply; [`world`] draws from the seed what happens next. Invariant: nothing but the seed decides,
//! so a failure is repeated by its number.

mod answers;
mod client;
mod fake_mysql;
mod net;
pub(crate) mod random;
mod script;
mod settings;
mod standing;
mod tls;
mod world;

pub use settings::facts;
use wire::auth::caching_sha2::KeyPair;

/// Counts of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Replies that clients judged.
    pub answered: u64,
    /// Clients under TLS among them.
    pub secured: u64,
    /// Turns of the groups.
    pub turns: u64,
    /// Backends that a group gave up because another lacked one.
    pub lent: u64,
    /// Replies that were ended because their clients had left.
    pub abandoned: u64,
    /// Statements that ran once more, because what they rode behind had changed their session, or
    /// its backend was closed.
    pub pipelined_again: u64,
    /// Replies that were taken off their backends because their clients did not read.
    pub spooled: u64,
    /// Blocks of such replies that came back from the file.
    pub fetched: u64,
    /// Readers that were closed where the spool's disk cannot be read.
    pub unread: u64,
    /// Dials that hang.
    pub hung: u64,
    /// Clients that stopped amid a command.
    pub stalled: u64,
    /// The most bytes with which one turn answered a client that floods.
    pub flooded: usize,
    /// Clients that would have kept a backend more than they may.
    pub keepers_refused: u64,
    /// Connections to the server that were killed.
    pub killed: u64,
    /// Logins at the server with a password that was changed while clients were served.
    pub new_logins: u64,
    /// Passwords that a worker has checked.
    pub passwords: u64,
    /// The most that was kept of a reply that its client did not take, with others' behind it.
    pub untaken: usize,
    /// Texts that a reader has read.
    pub texts: u64,
    /// Questions to servers that are read whether they have a client's writes.
    pub read_questions: u64,
    /// Statements behind a restoring command that failed, and statements that waited for one.
    pub unrestored: [u64; 2],
}

/// Runs the world of this seed to its end; `trace` writes what happens to the standard error
/// output. The keys come back for the next world, because they take long to make.
///
/// # Panics
/// When the group breaks a promise; the words say which.
#[must_use]
pub fn run(seed: u64, keys: KeyPair, trace: bool) -> (Seen, KeyPair) {
    world::World::new(seed, keys, trace).run()
}
