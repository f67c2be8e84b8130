//! Rows as a climb gives them, for the tests of everything that is made from rows.
//!
//! They cover what a renderer must bear: figures, a path that did not hold, a path that was not
//! tried, failures, and missing memory.

use crate::evidence::{Evidence, Host, Settings};
use crate::ladder::{Cell, Path};
use crate::row::{LoadError, Row};

/// Three rungs by three paths, and a fourth rung that only onramp holds.
pub(crate) fn evidence() -> Evidence {
    let mut evidence = empty();
    for row in rows() {
        evidence.push(row);
    }
    evidence.finished = true;
    evidence
}

/// The evidence of a climb before its first cell.
pub(crate) fn empty() -> Evidence {
    Evidence {
        headline: crate::headline::of(&[], crate::headline::Place::Shared),
        finished: false,
        host: Host {
            date: "2025-11-21T06:12:17Z".to_owned(),
            command: "onramp climb --rungs 100,1000,10000,100000".to_owned(),
            onramp_version: "0.1.0".to_owned(),
            onramp_commit: Some("9e224ec".to_owned()),
            server: "10.11.19-MariaDB".to_owned(),
            peers: Vec::new(),
            cpus: 2,
            cpu_model: "AMD EPYC 7R13 Processor".to_owned(),
            memory_bytes: 24 << 30,
            kernel: "Linux 6.12.9".to_owned(),
            nofile_hard: 20_000,
            unlike_published: None,
        },
        settings: Settings {
            workload: "oltp_point_select".to_owned(),
            tables: 4,
            table_size: 25_000,
            warmup_s: 3,
            time_s: 10,
            ..Settings::default()
        },
        rows: Vec::new(),
    }
}

/// The rows of `evidence`.
pub(crate) fn rows() -> Vec<Row> {
    let direct = |connections, rate, latency| held(Path::Direct, connections, rate, latency);
    let pooled = |connections, rate, latency| held(Path::ServerPool, connections, rate, latency);
    let onramp = |connections, rate, latency| held(Path::Onramp, connections, rate, latency);
    vec![
        direct(100, 17_204.0, [5.81, 4.12, 14.2, 31.7]),
        pooled(100, 17_950.0, [5.57, 5.31, 8.9, 13.4]),
        onramp(100, 16_480.0, [6.07, 6.02, 6.9, 7.6]),
        direct(1_000, 15_310.0, [65.3, 41.0, 201.4, 468.9]),
        pooled(1_000, 16_102.0, [62.1, 60.2, 88.0, 121.0]),
        onramp(1_000, 16_205.0, [61.7, 61.3, 65.2, 69.0]),
        with_failures(direct(10_000, 9_804.0, [1_020.0, 512.0, 3_681.0, 7_904.0])),
        pooled(10_000, 12_480.0, [801.0, 770.0, 1_240.0, 2_105.0]),
        onramp(10_000, 13_921.0, [718.0, 713.0, 760.0, 807.0]),
        not_tried(Path::Direct, 100_000),
        not_tried(Path::ServerPool, 100_000),
        onramp(100_000, 13_455.0, [7_432.0, 7_390.0, 7_811.0, 8_402.0]),
    ]
}

/// A row with figures although some of its connections failed.
pub(crate) fn almost_held() -> Row {
    let limit = "9,990 of 10,000 connected: 10 times error 2003 Can't connect (110); connects come \
                 faster than they are taken; try --connect-rate";
    Row {
        connected: Some(9_990),
        failed_connects: Some(10),
        limit: Some(limit.to_owned()),
        ..held(
            Path::Direct,
            10_000,
            9_804.0,
            [1_020.0, 512.0, 3_681.0, 7_904.0],
        )
    }
}

/// A row with figures: statements/s, and mean, p50, p95 and p99 in milliseconds.
pub(crate) fn held(path: Path, connections: u32, rate: f64, latency: [f64; 4]) -> Row {
    let [mean, p50, p95, p99] = latency;
    let clients = f64::from(connections);
    let server_each = match path {
        Path::Onramp => 0,
        Path::Direct | Path::HaProxy | Path::Router => 161_000,
        Path::ServerPool => 74_000,
    };
    let (pool, server) = match path {
        Path::Onramp => (
            Some(412.0 + 120_000.0 / clients),
            Some(9_000_000.0 / clients),
        ),
        Path::Direct | Path::HaProxy | Path::Router => {
            (None, Some(161_000.0 + 4_000_000.0 / clients))
        }
        Path::ServerPool => (None, Some(74_000.0 + 5_000_000.0 / clients)),
    };
    Row {
        connected: Some(u64::from(connections)),
        statements_per_s: Some(rate),
        mean_ms: Some(mean),
        p50_ms: Some(p50),
        p95_ms: Some(p95),
        p99_ms: Some(p99),
        p99_over_mean: Some(p99 / mean),
        failed_statements: Some(0),
        failed_connects: Some(0),
        connect_s: Some(clients / 4_000.0),
        pool_rss_bytes: pool.map(|_| u64::from(connections) * 412 + (6 << 20)),
        load_rss_bytes: Some(u64::from(connections) * 232 + (8 << 20)),
        kernel_bytes: Some(u64::from(connections) * 5_600),
        pool_bytes_per_client: pool,
        server_rss_bytes: Some(u64::from(connections) * server_each + (112 << 20)),
        server_bytes_per_client: server,
        ..Row::of(Cell { connections, path })
    }
}

fn with_failures(row: Row) -> Row {
    let error = LoadError {
        code: Some(2013),
        sqlstate: Some("HY000".to_owned()),
        message: Some("Lost connection to server during query".to_owned()),
        count: 12,
        phase: Some("statement".to_owned()),
        age_min_ms: Some(299_800.0),
        age_max_ms: Some(300_200.0),
    };
    Row {
        failed_statements: Some(12),
        errors: vec![error],
        ..row
    }
}

fn not_tried(path: Path, connections: u32) -> Row {
    let limit = "not tried: the server would need 100,500 file descriptors, and the hard limit is \
                 20,000 per process (ulimit -Hn)";
    Row {
        limit: Some(limit.to_owned()),
        ..Row::of(Cell { connections, path })
    }
}
