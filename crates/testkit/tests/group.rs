//! One whole group against a fake server and a hostile network, many times, each from its seed.
//!
//! The problem and the mechanism are those of `testkit::sim`; this file runs the seeds.
//! `ONRAMP_SEEDS` says how many (200 unless it is set), `ONRAMP_SEED` runs one and prints what
//! happens in it. Invariant: a seed that fails is named together with the command that repeats it.
#![allow(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test speaks to its reader and fails by panicking"
)]

use pool::REPLY_MAX;
use std::panic::{AssertUnwindSafe, catch_unwind};
use testkit::sim::{self, Seen};
use wire::auth::caching_sha2::KeyPair;

const SEEDS: u64 = 200;
/// Seeds that must show what is rare, too.
const RARE_SEEDS: u64 = 1000;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

#[test]
fn no_client_notices_the_pool() {
    let one = number("ONRAMP_SEED");
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None => 1..number("ONRAMP_SEEDS").unwrap_or(SEEDS) + 1,
    };
    let count = seeds.end - seeds.start;
    let mut keys = KeyPair::generate().unwrap();
    let (mut sum, mut failed) = (Seen::default(), Vec::new());
    for seed in seeds {
        let world = AssertUnwindSafe(|| sim::run(seed, keys, one.is_some()));
        let Ok((seen, again)) = catch_unwind(world) else {
            eprintln!(
                "seed {seed} failed; to repeat it: ONRAMP_SEED={seed} cargo test -p testkit \
                 --test group -- --nocapture"
            );
            failed.push(seed);
            keys = KeyPair::generate().unwrap();
            continue;
        };
        keys = again;
        sum.answered += seen.answered;
        sum.secured += seen.secured;
        sum.turns += seen.turns;
        sum.killed += seen.killed;
        sum.keepers_refused += seen.keepers_refused;
        sum.new_logins += seen.new_logins;
        sum.flooded = sum.flooded.max(seen.flooded);
        sum.lent += seen.lent;
        sum.abandoned += seen.abandoned;
        sum.pipelined_again += seen.pipelined_again;
        sum.passwords += seen.passwords;
        sum.texts += seen.texts;
        sum.read_questions += seen.read_questions;
        sum.untaken = sum.untaken.max(seen.untaken);
        sum.spooled += seen.spooled;
        sum.fetched += seen.fetched;
        sum.unread += seen.unread;
        sum.hung += seen.hung;
        sum.stalled += seen.stalled;
        sum.unrestored[0] += seen.unrestored[0];
        sum.unrestored[1] += seen.unrestored[1];
    }
    eprintln!("{sum:?}");
    assert!(failed.is_empty(), "failed seeds: {failed:?}");
    assert!(
        sum.secured > 0 || count < SEEDS,
        "no client under TLS was answered: {sum:?}"
    );
    let both = sum.unrestored.iter().all(|times| *times > 0);
    assert!(
        sum.spooled > 0 && sum.stalled > 0 || count < SEEDS,
        "nobody read a long reply slowly, or stopped amid a command: {sum:?}"
    );
    assert!(
        sum.keepers_refused > 0 || count < SEEDS,
        "nobody wanted to keep too many backends: {sum:?}"
    );
    assert!(sum.flooded > 0 || count < SEEDS, "nobody flooded: {sum:?}");
    assert!(
        sum.new_logins > 0 || count < SEEDS,
        "nobody logged in with a changed password: {sum:?}"
    );
    assert!(
        sum.fetched > 0 || count < SEEDS,
        "no block of a reply came back from the spool: {sum:?}"
    );
    assert!(
        sum.unread > 0 && sum.hung > 0 || count < SEEDS,
        "no reader was closed for a disk that cannot be read, or that hangs: {sum:?}"
    );
    assert!(
        sum.pipelined_again > 0 || count < RARE_SEEDS,
        "no statement rode behind one that changed its session: {sum:?}"
    );
    assert!(
        sum.read_questions > 0 || count < SEEDS,
        "no read went to another server: {sum:?}"
    );
    assert!(
        sum.texts > 0 || count < SEEDS,
        "no text was read off its group's thread: {sum:?}"
    );
    assert!(
        sum.untaken >= REPLY_MAX || count < RARE_SEEDS,
        "no reply that is not taken, with others' behind it, came to its bound: {sum:?}"
    );
    assert!(
        sum.abandoned > 0 || count < RARE_SEEDS,
        "nobody left amid a long reply: {sum:?}"
    );
    assert!(
        both || count < SEEDS,
        "too few restoring commands failed: {sum:?}"
    );
}
