//! A connection to the server that goes wrong at each stage of a statement: whoever waits for it
//! hears the truth within a bound, and its slot is free again.

use crate::world::{app, binary, config, config_file, direct, fresh_schema, login, mysql, server};
use reactor::Address;
use testkit::client::Client;
use testkit::onramp::Pool;
use testkit::proxy::{Proxy, Way, Wrong};
use testkit::real::{Real, skipped};
use testkit::reply::Outcome;

const LIMITS: &str = "backends_max = 2\nbackends_min = 0\ngroups = 1\n\
    backends_reserved = 0\ndial_ms_max = 1000\nwait_ms_max = 3000\nstatement_ms_max = 2000\n\
    server_down_fail_ms = 60000\nstored_code_refresh_s = 0\n";
const STATEMENT: &str = "SELECT CONCAT('sta', 'ge'), 'asked', SLEEP(0)";

/// One stage: what comes when it goes wrong, and which errors are the truth then.
struct Stage {
    name: &'static str,
    way: Way,
    bytes: &'static [u8],
    wrong: Wrong,
    codes: &'static [u16],
}

const fn stage(
    name: &'static str,
    (way, bytes): (Way, &'static [u8]),
    wrong: Wrong,
    codes: &'static [u16],
) -> Stage {
    Stage {
        name,
        way,
        bytes,
        wrong,
        codes,
    }
}

use Way::ToServer;
use Wrong::{Closed, Silent};

/// Waited for and not executed; given up, or lost, while it may have been.
const STAGES: [Stage; 3] = [
    stage(
        "restoring",
        (ToServer, b"lock_wait_timeout"),
        Silent,
        &[9501, 1158],
    ),
    stage("statement", (ToServer, b"asked"), Silent, &[3024, 1158]),
    stage("statement, closed", (ToServer, b"asked"), Closed, &[1158]),
];

fn pool_behind(real: &Real, proxy: &Proxy, name: &str) -> Pool {
    let file = config_file(
        real,
        &format!("{name}.toml"),
        &config(&proxy.address, LIMITS),
    );
    Pool::start(binary(), &["--config", file.to_str().unwrap()]).unwrap()
}

/// Both servers, each behind a proxy.
fn far_sides(test: &str, schema: &str) -> Vec<(&'static Real, Proxy)> {
    if direct() {
        skipped(test, "it is about the pool");
        return Vec::new();
    }
    let both = [server(test), mysql(test)].into_iter().flatten();
    both.map(|real| {
        fresh_schema(real, schema);
        let Address::Tcp(server) = real.address() else {
            panic!("{test}: the server has no port")
        };
        (real, Proxy::start(server))
    })
    .collect()
}

/// Every slot can be used.
fn all_slots_work(pool: &Pool, stage: &str, schema: &str) {
    let mut both: Vec<Client> = (0..2)
        .map(|_| login(&pool.address, &app().schema(schema)))
        .collect();
    for client in &mut both {
        client.must("BEGIN");
        assert_eq!(client.value("SELECT 1"), "1", "{stage}: {}", pool.said());
    }
}

#[test]
fn each_stage_that_goes_wrong_ends_with_the_truth_and_leaks_no_slot() {
    let test = "each_stage_that_goes_wrong_ends_with_the_truth_and_leaks_no_slot";
    for (real, proxy) in far_sides(test, "swept").into_iter().take(1) {
        let pool = pool_behind(real, &proxy, "stages");
        for one in STAGES {
            let mut client = login(&pool.address, &app().schema("swept"));
            client.must("SET lock_wait_timeout = 77");
            // Others use the backends, so that the next statement has its session restored.
            all_slots_work(&pool, one.name, "swept");
            proxy.go_wrong(one.way, one.bytes, one.wrong);
            match client.query(STATEMENT) {
                Ok(outcomes) => match &outcomes[..] {
                    [Outcome::Failed(failure)] => {
                        let told = one.codes.contains(&failure.code);
                        assert!(told, "{}: {failure}", one.name);
                    }
                    other => panic!(
                        "{} at {}: {other:?}: {}",
                        one.name,
                        real.address(),
                        pool.said()
                    ),
                },
                Err(error) => panic!("{}: {error}", one.name),
            }
            proxy.mend();
            all_slots_work(&pool, one.name, "swept");
        }
    }
}

#[test]
fn a_commit_without_an_answer_is_not_said_to_have_failed() {
    let test = "a_commit_without_an_answer_is_not_said_to_have_failed";
    for (real, proxy) in far_sides(test, "stages_commit") {
        let pool = pool_behind(real, &proxy, "stages_commit");
        for (wrong, code) in [(Silent, 3024), (Closed, 1158)] {
            let mut client = login(&pool.address, &app().schema("stages_commit"));
            client.must("CREATE TABLE IF NOT EXISTS t (v INT) ENGINE=InnoDB");
            client.must("BEGIN");
            client.must("INSERT INTO t VALUES (1)");
            proxy.go_wrong(ToServer, b"COMMIT", wrong);
            let failure = client.failure("COMMIT");
            assert_eq!(failure.code, code, "{failure}");
            assert!(
                failure.message.contains("took effect is unknown"),
                "{failure}"
            );
            proxy.mend();
            assert!(client.query("SELECT 1").is_err(), "its session is gone");
            all_slots_work(&pool, "COMMIT", "stages_commit");
        }
    }
}
