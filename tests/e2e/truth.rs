//! The committed truth about the servers' trackers, compared with the servers that are there.
//!
//! `ONRAMP_WRITE=1` writes the page instead (`tests/pages/trackers.md`); the sections of servers
//! that are not there stay as they are.

use crate::world::*;
use std::sync::Mutex;
use testkit::truth::{conditions, cover, examine, page, server_of};

/// The page is one file, whatever the number of tests that write it.
static WRITING: Mutex<()> = Mutex::new(());

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/trackers.md")
}

fn check(started: Result<Real, String>, test: &str) {
    let real = or_return!(found(started, test));
    let committed = page::tables(&std::fs::read_to_string(file()).unwrap_or_default());
    let writes = std::env::var_os("ONRAMP_WRITE").is_some();
    let server = server_of(&real);
    let there = committed.iter().find(|table| table.server == server);
    if there.is_none() && !writes {
        return skipped(
            test,
            &format!("tests/pages/trackers.md has no section of {server}"),
        );
    }
    let began = std::time::Instant::now();
    let table = examine(&real);
    eprintln!("{server}: examined in {:.1?}", began.elapsed());
    if writes {
        let _one = WRITING.lock().unwrap();
        let mut tables = page::tables(&std::fs::read_to_string(file()).unwrap_or_default());
        tables.retain(|other| other.server != server);
        tables.push(table);
        tables.sort_by(|one, other| one.server.cmp(&other.server));
        return std::fs::write(file(), page::page(&tables)).unwrap();
    }
    let differences = page::differences(there.unwrap(), &table);
    assert!(
        differences.is_empty(),
        "{server} does otherwise than tests/pages/trackers.md says:\n{}",
        differences.join("\n")
    );
}

#[test]
fn mariadb_reports_what_the_page_says() {
    check(Real::start(&[]), "mariadb_reports_what_the_page_says");
}

#[test]
fn mysql_reports_what_the_page_says() {
    let arguments = ["--performance-schema=ON"];
    check(
        Real::start_mysql(&arguments),
        "mysql_reports_what_the_page_says",
    );
}

#[test]
fn mysql_8_reports_what_the_page_says() {
    let arguments = ["--performance-schema=ON"];
    check(
        Real::start_mysql8(&arguments),
        "mysql_8_reports_what_the_page_says",
    );
}

/// A change that a server does not report in a way that tells the new state must show in the text.
#[test]
fn what_is_silent_is_pinned_or_read_back() {
    let tables = page::tables(&std::fs::read_to_string(file()).unwrap());
    assert!(tables.len() >= 3, "the page holds {} servers", tables.len());
    let gaps: Vec<String> = tables.iter().flat_map(cover::gaps).collect();
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

fn conditions_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/conditions.md")
}

fn check_conditions(started: Result<Real, String>, test: &str) {
    let real = or_return!(found(started, test));
    let page = std::fs::read_to_string(conditions_file()).unwrap_or_default();
    let writes = std::env::var_os("ONRAMP_WRITE").is_some();
    let server = server_of(&real);
    let there = conditions::section_of(&page, &server);
    if there.is_none() && !writes {
        let why = format!("tests/pages/conditions.md has no section of {server}");
        return skipped(test, &why);
    }
    let section = conditions::section(&conditions::examine(&real));
    if writes {
        let _one = WRITING.lock().unwrap();
        let page = std::fs::read_to_string(conditions_file()).unwrap_or_default();
        let page = conditions::with_section(&page, &server, &section);
        return std::fs::write(conditions_file(), page).unwrap();
    }
    let lines = |text: &str| text.trim().lines().map(String::from).collect::<Vec<_>>();
    let (page, found) = (lines(there.unwrap()), lines(&section));
    assert_eq!(
        found, page,
        "{server} does otherwise than tests/pages/conditions.md says"
    );
}

#[test]
fn mariadb_treats_conditions_as_the_page_says() {
    check_conditions(Real::start(&[]), "mariadb_treats_conditions");
}

#[test]
fn mysql_treats_conditions_as_the_page_says() {
    check_conditions(Real::start_mysql(&[]), "mysql_treats_conditions");
}

/// A text that the pool takes for one that clears conditions, or keeps them, does so on servers.
#[test]
fn conditions_are_judged_as_the_page_says() {
    let page = std::fs::read_to_string(conditions_file()).unwrap();
    let gaps = conditions::gaps(&page);
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
    let untried = conditions::untried();
    assert!(untried.is_empty(), "not in conditions.txt: {untried:?}");
}
