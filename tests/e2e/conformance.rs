//! The conformance suite (`testkit::conformance`), and the page that it makes.
//!
//! `ONRAMP_WRITE=1` writes `tests/pages/conformance.md` for the servers that are there; without it
//! a run that says otherwise than the page fails.

use crate::world::*;
use std::sync::Mutex;
use testkit::conformance::{Stage, page, server_of};

/// The page is one file, whatever the number of tests that write it.
static WRITING: Mutex<()> = Mutex::new(());

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/conformance.md")
}

fn read() -> String {
    std::fs::read_to_string(file()).unwrap_or_default()
}

/// One run of the whole suite, as the page's section for this server.
fn run(real: &Real) -> String {
    let extra = "groups = 1\nbackends_max = 2\nwait_ms_max = 3000";
    let pool = fresh_pool(real, extra);
    let began = std::time::Instant::now();
    let another = || fresh_pool(real, extra);
    let stage = Stage {
        real,
        pool: &pool,
        another: &another,
    };
    let rows = stage.run();
    let server = server_of(real);
    eprintln!("conformance on {server}: {:.1?}", began.elapsed());
    page::section(server, &rows)
}

fn check(started: Result<Real, String>) {
    let real = or_return!(own(started));
    let found = run(&real);
    let server = server_of(&real);
    if std::env::var_os("ONRAMP_WRITE").is_some() {
        let _one = WRITING.lock().unwrap();
        return std::fs::write(file(), page::with_section(&read(), &found)).unwrap();
    }
    let page = read();
    let committed = page::section_in(&page, server).unwrap_or_default();
    let differs = page::differences(committed, &found);
    assert!(
        differs.is_empty(),
        "tests/pages/conformance.md says otherwise (ONRAMP_WRITE=1 rewrites it):\n{}",
        differs.join("\n")
    );
}

const PATIENCE: [&str; 2] = ["--innodb-lock-wait-timeout=2", "--lock-wait-timeout=4"];

#[test]
fn two_clients_cannot_tell_on_mariadb() {
    check(Real::start(&PATIENCE));
}

#[test]
fn two_clients_cannot_tell_on_mysql() {
    let real = Real::start_mysql(&PATIENCE);
    check(real);
}
