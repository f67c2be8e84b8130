//! Properties that hold for any bytes whatever: one target per parser of `wire` and `sql`, and one
//! for the records of TLS.
//!
//! The problem: everything that a peer sends is untrusted, and a parser that panics, or that cuts
//! a stream at the wrong place, takes a whole group down or gives one client another's reply. The
//! mechanism: each target takes any bytes and checks properties: what is written is read again,
//! the way in which a stream is cut into reads changes nothing, two implementations agree. The
//! same targets run in two ways: libFuzzer searches with them (`fuzz/`, `make fuzz`), and in every
//! `make test` `tests/fuzz.rs` replays the committed corpus and its mutations ([`mutate`]).
//!
//! Invariants: a target has no state and no source of chance but its input, so that a file of the
//! corpus repeats what it found; it fails by panicking; it is quick, a few microseconds.

mod executions;
mod frames;
mod logins;
pub mod mutate;
mod packets;
mod proxy_headers;
mod records;
mod replies;
mod statements;
mod targets;
mod tokens;

use crate::sim::random::Random;

/// One parser, or a few that belong together.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of its binary in `fuzz/` and of its folder in `fuzz/corpus/`.
    pub name: &'static str,
    /// Panics where a property does not hold.
    pub check: fn(&[u8]),
}

const fn target(name: &'static str, check: fn(&[u8])) -> Target {
    Target { name, check }
}

/// Every target.
pub const TARGETS: [Target; 19] = [
    target("packets", packets::packets),
    target("values", packets::values),
    target("greeting", logins::greeting),
    target("login", logins::login),
    target("client_login", logins::client_login),
    target("status", replies::status),
    target("trackers", replies::trackers),
    target("reply", replies::reply),
    target("execution", executions::execution),
    target("attributes", executions::attributes),
    target("compressed", frames::compressed),
    target("proxy_header", proxy_headers::proxy_header),
    target("records", records::records),
    target("dsn", targets::dsn),
    target("lexer", tokens::lexer),
    target("classify", statements::classify),
    target("readers", statements::readers),
    target("kill", statements::kill),
    target("own_id", statements::own_id),
];

/// Runs one target by its name.
///
/// # Panics
/// When there is none of that name, and where a property does not hold.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of this name").check)(data);
}

/// Cuts `data` into the pieces in which it might arrive. The cuts follow from the bytes alone: the
/// corpus needs no room for them, and each mutation is also cut again.
fn pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut random = Random::new(hash(data));
    let mut rest = data;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, later) = rest.split_at(random.piece(rest.len()));
        rest = later;
        Some(piece)
    })
}

/// FNV-1a: any spread will do, but it must never change.
fn hash(data: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    data.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
