//! Pages of the documentation that are made from a table in the sources.
//!
//! The problem: a page that repeats a table falls behind it. The mechanism: a test makes the page
//! and compares it with the committed one ([`check`]), or writes it. What stands on the page is the
//! business of the module that has the table.

use std::path::PathBuf;

/// Compares a page, by its path in the repository, with what its table makes of it; with
/// `ONRAMP_WRITE` set, writes it. `test` is what to run to have it written.
pub(crate) fn check(page: &str, test: &str, made: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    if std::env::var_os("ONRAMP_WRITE").is_some() {
        return std::fs::write(path, made).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    let pairs = made.lines().zip(committed.lines());
    let differs = pairs.clone().find(|(made, committed)| made != committed);
    assert!(
        made == committed,
        "{page} says otherwise (ONRAMP_WRITE=1 cargo test -p pool {test} rewrites it); \
         first made and committed line that differ: {differs:?}"
    );
}
