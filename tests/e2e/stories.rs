//! The stories of `tests/stories`, each file a test on each server; `testkit::story` has the
//! format.
//!
//! All stories of a file share their pools, one for each number of backends and set of settings,
//! and a schema that is empty when each begins. `ONRAMP_STORY` names the story that is told, alone;
//! with `ONRAMP_LATE` set each step waits until the pool has asked what it wants to know about the
//! one before.

use crate::world::*;
use std::collections::HashMap;
use testkit::oracle::Reply;
use testkit::story::{Story, judge, parse, tell};

/// Error by which MySQL ends a definition, or ANALYZE TABLE, that waits in a circle with others,
/// such as those of other tests: a story that differs in it is told again.
const DEADLOCK: &str = "Deadlock found when trying to get lock";
/// Times that a story is told again.
const RETOLD_MAX: usize = 5;
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
    status_of_sessions stored_code timeouts transactions unset_user_variables variables
    wide_character_sets
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
    let real = or_return!(server(&format!("stories::{file}")));
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
        let pooled = told_to_pool(real, &schema, story, &mut pools);
        let mut differs = judge(&path, story, replies, Some(&pooled));
        for _ in 0..RETOLD_MAX {
            if !differs.contains(DEADLOCK) {
                break;
            }
            let replies = told_directly(real, &schema, story);
            let pooled = told_to_pool(real, &schema, story, &mut pools);
            differs = judge(&path, story, &replies, Some(&pooled));
        }
        failures += &differs;
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
    let (backends, settings) = (story.backends, &story.settings);
    let settings = format!("backends_max = {backends}\ngroups = 1\n{settings}");
    let pool = pools.entry(settings).or_insert_with_key(|settings| {
        let extra = format!("{settings}{}", tls(real, "optional"));
        fresh_pool(real, &extra)
    });
    fresh_schema(real, schema);
    forget_code(pool, schema);
    let how = (story, schema, is_late());
    tell(&mut real.admin(), &pool.address, Some(pool), how)
}

/// Makes a pool look at all stored code: that of the story before is gone, and no statement through
/// the pool has said so.
fn forget_code(pool: &Pool, schema: &str) {
    let mut client = Client::connect(&pool.address, &Account::new("app", "app")).unwrap();
    let drop = format!("DROP VIEW IF EXISTS {schema}.no_view");
    // On MySQL it may be the victim of a deadlock with definitions of other tests.
    wait_while(|| {
        let outcomes = client.query(&drop).unwrap();
        matches!(&outcomes[..], [Outcome::Failed(failure)] if failure.code == 1213)
    });
    pool.wait_for_definitions().unwrap();
}

/// Waits until the server has ended the connections of a story's clients: their locks and tables
/// are gone then. A table of them would be refused where another test runs a text that is none in
/// the server's character set (error 3854).
fn await_no_client(admin: &mut Client, schema: &str) {
    wait_while(|| {
        let listed = admin.rows("SHOW PROCESSLIST").texts();
        listed.iter().any(|row| row[3].starts_with(schema))
    });
}
