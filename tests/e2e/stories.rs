//! The stories of `tests/stories`, each file a test on each server; `testkit::story` has the
//! format.
//!
//! All stories of a file share their pools, one for each number of backends and set of settings,
//! and a schema that is empty when each begins. `ONRAMP_STORY` names the story that is told, alone;
//! with `ONRAMP_LATE` set each step waits until the pool has asked what it wants to know about the
//! one before.

use crate::world::{direct, fresh_schema, start_pool, tls};
use std::collections::HashMap;
use std::path::Path;
use testkit::client::Client;
use testkit::onramp::Pool;
use testkit::oracle::Reply;
use testkit::real::Real;
use testkit::story::{Story, judge, parse, tell};

/// Looks for clients of a story that has been told, until there are none.
const LOOKS_MAX: usize = 1_000_000;

/// Makes a test of each file on each server.
macro_rules! stories {
    ($($file:ident)*) => {
        const FILES: &[&str] = &[$(stringify!($file)),*];

        mod on_mariadb {
            $(#[test]
            fn $file() {
                super::told(stringify!($file), crate::world::server);
            })*
        }

        mod on_mysql {
            $(#[test]
            fn $file() {
                super::told(stringify!($file), crate::world::mysql);
            })*
        }
    };
}

stories! {
    asked_elsewhere asked_inside calls changes character_sets cursors deferred_begin eof_packets
    equal_values found kills last_prepared long_user_variables mariadb_capabilities mysql_only
    names no_schema_capability older_warnings pins prefix_commands prepared_statements protocol
    query_attributes reset_connection restored_sessions roles session_reports sessions
    status_of_sessions timeouts transactions unset_user_variables variables wide_character_sets
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories")
}

#[test]
fn every_file_is_told() {
    let names = std::fs::read_dir(folder()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    let mut told: Vec<String> = FILES.iter().map(|file| format!("{file}.story")).collect();
    told.sort();
    assert_eq!(names, told, "the list in tests/e2e/stories.rs");
}

/// Tells the stories of a file to a server, and to pools in front of it.
fn told(file: &str, server: fn(&str) -> Option<&'static Real>) {
    let Some(real) = server(&format!("stories::{file}")) else {
        return;
    };
    let path = format!("tests/stories/{file}.story");
    let text = std::fs::read_to_string(folder().join(format!("{file}.story"))).unwrap();
    let schema = format!("story_{file}");
    let stories = parse(&text, &schema, real.flavour());
    let mut stories = stories.unwrap_or_else(|why| panic!("{path}: {why}"));
    if let Ok(only) = std::env::var("ONRAMP_STORY") {
        stories.retain(|story| story.name == only);
    }
    // First all directly: no backend of a pool is in the schema yet.
    let directly: Vec<_> = stories
        .iter()
        .map(|story| told_directly(real, &schema, story))
        .collect();
    let mut pools = Pools::new();
    let mut failures = String::new();
    for (story, replies) in stories.iter().zip(&directly) {
        let pooled = (!direct()).then(|| told_to_pool(real, &schema, story, &mut pools));
        failures += &judge(&path, story, replies, pooled.as_deref());
    }
    let server = real.flavour();
    assert!(
        failures.is_empty(),
        "stories that differ on {server:?}:\n{failures}"
    );
}

/// Pools by the lines of their configuration.
type Pools = HashMap<String, Pool>;

fn is_late() -> bool {
    std::env::var_os("ONRAMP_LATE").is_some()
}

fn told_directly(real: &Real, schema: &str, story: &Story) -> Vec<Reply> {
    let mut admin = real.admin();
    fresh_schema(real, schema);
    let replies = tell(&mut admin, &real.address(), None, (story, schema, false));
    await_no_client(&mut admin, schema);
    replies
}

fn told_to_pool(real: &Real, schema: &str, story: &Story, pools: &mut Pools) -> Vec<Reply> {
    let count = pools.len();
    let (backends, settings) = (story.backends, &story.settings);
    let settings = format!("backends_max = {backends}\ngroups = 1\n{settings}");
    let pool = pools.entry(settings).or_insert_with_key(|settings| {
        let extra = format!("{settings}{}", tls(real, "optional"));
        start_pool(real, &format!("{schema}_{count}.toml"), &extra)
    });
    fresh_schema(real, schema);
    let how = (story, schema, is_late());
    tell(&mut real.admin(), &pool.address, Some(pool), how)
}

/// Waits until the server has ended the connections of a story's clients: their locks and tables
/// are gone then.
fn await_no_client(admin: &mut Client, schema: &str) {
    let asks =
        format!("SELECT COUNT(*) FROM information_schema.processlist WHERE db LIKE '{schema}%'");
    let ended = (0..LOOKS_MAX).any(|_| admin.value(&asks) == "0");
    assert!(ended, "clients of {schema} are still there");
}
