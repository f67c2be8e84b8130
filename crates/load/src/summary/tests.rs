//! The summary's JSON and texts.
use super::*;
use clap::Parser;
use load_core::errors::{EADDRNOTAVAIL, EMFILE, Fault, Phase};
use load_core::login::Credentials;
use load_core::ports::Sources;
use reactor::Address;
use std::io;
use std::time::Duration;
use wire::reply::ErrPacket;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    load: LoadArgs,
}

fn args() -> LoadArgs {
    let line = "load select run --target mysql://a:secret@127.0.0.1/t --threads 10";
    Line::parse_from(line.split_whitespace()).load
}

fn plan(args: &LoadArgs) -> Plan {
    Plan {
        script: args.make_script(),
        tolerance: args.tolerance.clone(),
        finishes_events: args.manner.finishes_events(),
        counts_by_text: args.manner.counts_by_text(),
        more_addresses: Vec::new(),
        read: None,
        model: args.model.model(args.connections),
        credentials: Credentials::of(&args.target, [].iter()),
        init_sql: Vec::new(),
        address: Address::Tcp(([127, 0, 0, 1], 3306).into()),
        sources: Sources {
            range: (32_768, 60_999),
            addresses: Vec::new(),
        },
        connect_timeout: Duration::from_secs(30),
        connects_in_flight: 256,
        ordered_users: None,
        seed: 1,
    }
}

const LAYOUT: Layout = Layout {
    groups: 2,
    cores: 2,
    descriptors: 500,
    own_tables: true,
};

pub(crate) fn summary(measured: &Measured) -> Summary {
    let args = args();
    Summary::new(&args, &plan(&args), &LAYOUT, measured, None)
}

pub(crate) fn full() -> Measured {
    let mut measured = Measured {
        connected: 10,
        seconds: 2.0,
        cpu_s: 3.9,
        cores: 2.0,
        rss_before_bytes: 1_000,
        rss_idle_bytes: 3_000,
        rss_bytes: 4_000,
        ..Measured::default()
    };
    for ms in 1..=100 {
        measured
            .window
            .succeeded(Class::Read, Duration::from_millis(ms), None);
    }
    measured.window.events = 100;
    measured
        .drain
        .succeeded(Class::Read, Duration::from_millis(200), None);
    measured
        .drain
        .failed(Fault::ended("during a statement"), false, None);
    measured
}

#[test]
fn rates_are_of_the_window_and_latencies_of_everything() {
    let summary = summary(&full());
    assert_eq!(
        (summary.statements_per_s, summary.events_per_s),
        (50.0, 50.0)
    );
    assert_eq!((summary.max_ms, summary.drained_statements), (200.0, 1));
    assert_eq!((summary.statements, summary.failed_statements), (102, 1));
    assert_eq!(
        (summary.rss_bytes_per_connection, summary.load_rss_bytes),
        (None, 4_000)
    );
    assert_eq!(summary.limit, None);
}

#[test]
fn the_memory_of_a_connection_is_told_of_many() {
    for (connected, bytes) in [(10, None), (1_000, Some(200))] {
        let measured = Measured {
            connected,
            rss_idle_bytes: 201_000,
            ..full()
        };
        let summary = summary(&measured);
        assert_eq!(summary.rss_bytes_per_connection, bytes);
        let told = summary.text(&measured, &LAYOUT).contains("for each idle");
        assert_eq!(told, bytes.is_some());
    }
}

#[test]
fn a_run_in_which_nothing_succeeded_has_failed() {
    let check = |measured: &Measured, args: &LoadArgs| {
        let checked = summary(measured).check_success(args, measured);
        checked.err().unwrap_or_default()
    };
    let plain = args();
    let mut sided = args();
    sided.read_target = Some(sided.target.clone());
    assert_eq!(check(&full(), &plain), "");
    assert_eq!(check(&Measured::default(), &plain), "");
    let mut measured = Measured::default();
    measured.window.events = 5;
    assert_eq!(check(&measured, &plain), "no statement was sent");
    let mut measured = full();
    // Statements around it succeeded, and no event.
    measured.window.events = 0;
    assert!(check(&measured, &plain).contains("no event succeeded"));
    for (events, reads, words) in [
        (7, 0, "no event at --read-target succeeded"),
        (7, 7, "no event at --target succeeded"),
        (7, 6, ""),
    ] {
        let stats = &mut measured.window;
        (stats.events, stats.read_events) = (events, reads);
        assert!(check(&measured, &sided).contains(words));
        assert_eq!(check(&measured, &plain), "");
        assert_eq!(check(&measured, &sided).is_empty(), words.is_empty());
    }
}

#[test]
fn the_json_begins_with_the_names_of_a_rung() {
    let mut measured = full();
    measured.series.push(Point {
        t_s: 1.0,
        statements_per_s: 50.0,
        p95_ms: 9.5,
        ..Point::default()
    });
    let json = serde_json::to_value(summary(&measured)).unwrap();
    let names: Vec<&str> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        names[..23],
        [
            "connections",
            "connected",
            "statements_per_s",
            "events_per_s",
            "mean_ms",
            "p50_ms",
            "p95_ms",
            "p99_ms",
            "p999_ms",
            "max_ms",
            "statements",
            "failed_statements",
            "failed_connects",
            "connect_s",
            "duration_s",
            "limit",
            "load_rss_bytes",
            "load_cpu_s",
            "errors",
            "series",
            "workload",
            "target",
            "command"
        ]
    );
    assert!(json["limit"].is_null());
    assert_eq!(json["errors"][0]["phase"], "statement");
    assert_eq!(json["series"][0]["p95_ms"], 9.5);
    assert!(!json.to_string().contains("secret"));
}

#[test]
fn people_read_all_of_it_on_stderr() {
    let measured = full();
    let text = summary(&measured).text(&measured, &LAYOUT);
    for expected in [
        "load: connects: 10 ok, 0 failed, 0.0 s\n",
        "load: statements: 50 per second; ms: mean 51.980, p50 51.007, ",
        "p99/mean",
        "load: statements: 101 succeeded, 1 failed, 0 ignored; 0 connections lost, 0 reopened\n",
        "load: error 2013 (HY000) x 1 while executing: the server closed",
        "load: warning: the generator itself was busy",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(!text.contains("no reply when the run ended"));
}

/// The limit when three connections stand and the rest met `fault`.
fn limit_of(fault: Fault) -> String {
    let mut measured = Measured {
        connected: 3,
        ..Measured::default()
    };
    measured.outside.errors.count(Phase::Connect, fault);
    summary(&measured).limit.unwrap()
}

fn errno(number: i32) -> Fault {
    Fault::system(&io::Error::from_raw_os_error(number))
}

#[test]
fn a_limit_is_named_with_its_numbers() {
    let descriptors = limit_of(errno(EMFILE));
    assert!(descriptors.starts_with("3 of 10 connections stand: the system said 1 times: EMFILE"));
    assert!(descriptors.contains("own table of 500 descriptors, room for 450"));
    assert!(limit_of(errno(EADDRNOTAVAIL)).contains("28232 local ports"));
    let server = limit_of(Fault::server(&ErrPacket {
        code: 1040,
        state: b"08004",
        message: b"Too many connections",
    }));
    assert!(server.contains("the server said 1 times: error 1040 (08004): Too many connections;"));
    let none = summary(&Measured::default()).limit.unwrap();
    assert!(none.contains("stopped while it was connecting"));
}

#[test]
fn a_command_line_keeps_its_password_to_itself() {
    let words = [
        "load",
        "--target",
        "mysql://a:secret@h/t",
        "--target=mysql://a:secret@h:0",
        "--fail-if",
        "p99>50ms",
        "it's",
    ];
    let line = command_line(words.into_iter().map(str::to_owned));
    assert_eq!(
        line,
        r"load --target mysql://a@h:3306/t --target=mysql://... --fail-if 'p99>50ms' 'it'\''s'"
    );
    let file = std::env::temp_dir().join(format!("onramp-secret-{}", std::process::id()));
    std::fs::write(&file, "secret").unwrap();
    let named = format!(
        "mysql://a@h/t?password_file={}&ssl-mode=required",
        file.display()
    );
    let line = command_line([named].into_iter());
    assert!(line.contains("/t?password_file=...&ssl-mode="), "{line}");
    assert!(!line.contains("onramp-secret"), "{line}");
    std::fs::remove_file(&file).unwrap();
}
