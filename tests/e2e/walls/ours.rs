//! The walls of onramp itself: descriptors of the pool and of the load generator.
//!
//! Both have a descriptor table for each group, so what a limit allows is a product; it is counted
//! here with tables so small that hundreds fill them. The kernel deals the pool's clients to its
//! groups by hash, so with several groups the forecast is what is reached for sure, and only with
//! one group is it the very number.

use super::crowd::Crowd;
use super::{Forecast, compare, doctor_about, explained, has};
use crate::world::*;
use serde_json::Value;
use std::fs;

/// Descriptors of each table of the pool, and of the load generator; the latter so many that the
/// one or two that a shell leaves open in it are less than 2 %.
const POOL_LIMIT: &str = "--nofile=300:300";
const LOAD: &str = "--nofile=200:200";

/// A pool with so many groups and backends, each group with few descriptors.
fn small_pool(real: &Real, groups: &str) -> Pool {
    let backend = format!("mysql://app:app@{}", real.address());
    let options = ["--groups", groups, "--backends-max", groups];
    let backend = ["--backend", &backend, "--clients-max", "5000"];
    let pool = Pool::start_behind(
        &["prlimit", POOL_LIMIT],
        binary(),
        &[options, backend].concat(),
    );
    pool.unwrap_or_else(|why| panic!("{why}"))
}

fn pool_forecast(groups: &str) -> Forecast {
    let options = ["--role", "pool", "--backends", groups];
    doctor_about("onramp", &["prlimit", POOL_LIMIT], &options)
}

#[test]
fn descriptors_of_the_pool_end_where_the_doctor_says() {
    let test = "descriptors_of_the_pool_end_where_the_doctor_says";
    if !has(&["prlimit"]) {
        return;
    }
    let Some(real) = pooled(server) else { return };
    let forecast = pool_forecast("1");
    let pool = small_pool(real, "1");
    let crowd = Crowd::gather_at(&pool.address, &|| pool.said(), &forecast, "");
    let words = &crowd.words;
    assert!(words.starts_with("ERROR 1040: "), "{words}");
    assert!(words.contains("onramp"), "{words}");
    assert!(!explained(words).is_empty(), "{words}");
    compare(&forecast, "pool_descriptors", crowd.count());
    // Dealt to four by hash, the fullest is full first; not before the forecast.
    let (forecast, pool) = (pool_forecast("4"), small_pool(real, "4"));
    let crowd = Crowd::gather_at(&pool.address, &|| pool.said(), &forecast, "");
    let (sure, reached) = (forecast.connections, crowd.count());
    eprintln!("{test}: four groups: forecast {sure} for sure, reached {reached}");
    assert!(reached >= sure && reached <= 4 * 300, "{sure}, {reached}");
}

#[test]
fn descriptors_of_the_load_end_where_the_doctor_says() {
    if !has(&["prlimit"]) {
        return;
    }
    let extra = [
        "--max-connections=12000",
        "--thread-handling=pool-of-threads",
    ];
    let real = or_return!(own(Real::start(&extra)));
    real.create_user("app", "app");
    let forecast = doctor_about("direct", &["prlimit", LOAD], &["--role", "client"]);
    let target = format!("mysql://app:app@127.0.0.1:{}/mysql", real.port());
    let json = real.folder().join("load.json");
    let options = ["--connections", "10000", "--time", "1", "--target", &target];
    let to = ["--json", json.to_str().unwrap()];
    let line = [&["load", "select", "run"][..], &options, &to].concat();
    let ran = limited(&line);
    // It says so before it starts, in the doctor's words.
    let warned = "onramp load: warning: client_descriptors: have 200";
    assert!(ran.stderr.contains(warned), "{ran:?}");
    let text = fs::read_to_string(&json).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let report: Value = serde_json::from_str(&text).unwrap();
    let errors = report["errors"].as_array().unwrap();
    assert!(errors.iter().any(|error| error["code"] == 24), "{report:#}");
    let reached = report["connected"].as_u64().unwrap();
    compare(&forecast, "client_descriptors", reached);
}

/// Runs the program with the load's few descriptors.
fn limited(line: &[&str]) -> Ran {
    let before = [LOAD, binary().to_str().unwrap()];
    run(
        Path::new("prlimit"),
        &[&before[..], line].concat(),
        Duration::from_secs(120),
    )
}
