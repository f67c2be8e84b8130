//! Every wall and every sentence, from plain structs.
//!
//! The numbers are those of a usual Linux: 65,530 memory maps, 32,768 process numbers. A test
//! lowers one bound at a time and expects the sentence that names it.

use super::*;

/// A machine with no bound in the way.
fn roomy() -> Machine {
    Machine {
        cpus: 2,
        cpu_model: String::new(),
        memory_bytes: 24 << 30,
        kernel: String::new(),
        nofile_hard: u64::MAX,
        user_threads: u64::MAX,
        group_threads: u64::MAX,
        threads_max: u64::MAX,
        pid_max: u64::MAX,
        max_map_count: u64::MAX,
        threads_now: 100,
    }
}

fn cell(path: Path, connections: u32) -> Cell {
    Cell { connections, path }
}

#[test]
fn descriptors_bound_every_path_but_onramp() {
    let machine = Machine {
        nofile_hard: 20_000,
        ..roomy()
    };
    let text = forbidden(cell(Path::Direct, 100_000), &machine).unwrap();
    assert_eq!(
        text,
        "not tried: the server would need 100,500 file descriptors, and the hard limit is 20,000 \
         per process (ulimit -Hn)"
    );
    assert_eq!(
        forbidden(cell(Path::ServerPool, 100_000), &machine),
        Some(text)
    );
    assert_eq!(forbidden(cell(Path::Onramp, 1_000_000), &machine), None);
    assert_eq!(forbidden(cell(Path::Direct, 19_500), &machine), None);
    assert!(forbidden(cell(Path::Direct, 19_501), &machine).is_some());
}

#[test]
fn threads_and_maps_bound_direct_alone() {
    let machine = Machine {
        max_map_count: 65_530,
        ..roomy()
    };
    let text = forbidden(cell(Path::Direct, 50_000), &machine).unwrap();
    assert!(
        text.contains("need 100,400 memory maps, and vm.max_map_count is 65,530"),
        "{text}"
    );
    assert_eq!(forbidden(cell(Path::Direct, 32_565), &machine), None);
    assert_eq!(forbidden(cell(Path::ServerPool, 50_000), &machine), None);

    let machine = Machine {
        pid_max: 32_768,
        ..roomy()
    };
    let text = forbidden(cell(Path::Direct, 32_600), &machine).unwrap();
    assert!(
        text.contains("32,600 threads, and kernel.pid_max is 32,768"),
        "{text}"
    );

    let machine = Machine {
        user_threads: 1_024,
        ..roomy()
    };
    let text = forbidden(cell(Path::Direct, 1_000), &machine).unwrap();
    assert!(text.contains("(ulimit -Hu) is 1,024"), "{text}");
}

#[test]
fn mariadb_ends_at_100_000() {
    assert_eq!(forbidden(cell(Path::ServerPool, 100_000), &roomy()), None);
    let text = forbidden(cell(Path::ServerPool, 100_001), &roomy()).unwrap();
    assert!(text.contains("max_connections ends at 100,000"), "{text}");
}

fn report(connected: u64, errors: Vec<LoadError>) -> LoadReport {
    let statements_per_s = Some(1.0);
    LoadReport {
        connected: Some(connected),
        statements_per_s,
        errors,
        ..LoadReport::default()
    }
}

fn error(code: i64, message: &str, count: u64) -> LoadError {
    let message = Some(message.to_owned());
    LoadError {
        code: Some(code),
        message,
        count,
        ..LoadError::default()
    }
}

fn limit(path: Path, report: Option<&LoadReport>, server_log: &[String]) -> Option<String> {
    let machine = Machine {
        nofile_hard: 20_000,
        pid_max: 32_768,
        ..roomy()
    };
    let cell = cell(path, 10_000);
    let outcome = Outcome {
        cell,
        report,
        load_words: "exit status: 1: no server",
        pool_death: None,
        server_log,
        machine: &machine,
    };
    outcome.limit()
}

#[test]
fn who_held_all_has_no_limit() {
    assert_eq!(
        limit(Path::Direct, Some(&report(10_000, vec![])), &[]),
        None
    );
    let failed_once = report(10_000, vec![error(2013, "Lost connection", 1)]);
    assert_eq!(limit(Path::Direct, Some(&failed_once), &[]), None);
}

#[test]
fn figures_count_from_99_of_100() {
    let cell = cell(Path::Direct, 10_000);
    assert!(is_held(cell, &report(9_900, vec![])));
    assert!(!is_held(cell, &report(9_899, vec![])));
    let nothing = LoadReport {
        statements_per_s: None,
        ..report(10_000, vec![])
    };
    assert!(!is_held(cell, &nothing));
}

#[test]
fn errors_become_causes() {
    let cases = [
        (1040, "Too many connections", "max_connections is reached"),
        (
            1135,
            "Can't create a new thread (errno 11)",
            "threads the nearest: kernel.pid_max is 32,768",
        ),
        (1461, "Can't create more than", "max_prepared_stmt_count"),
        (
            2004,
            "Can't create TCP/IP socket (24)",
            "20,000 descriptors (ulimit -Hn)",
        ),
        (2003, "Can't connect (99)", "ip_local_port_range"),
        (2003, "Can't connect (110)", "try --connect-rate"),
    ];
    for (code, message, cause) in cases {
        let report = report(
            4_000,
            vec![error(1, "rare", 2), error(code, message, 6_000)],
        );
        let text = limit(Path::Direct, Some(&report), &[]).unwrap();
        let start = format!("4,000 of 10,000 connected: 6,000 times error {code} {message}; ");
        assert!(text.starts_with(&start) && text.contains(cause), "{text}");
    }
}

#[test]
fn loads_own_word_goes_first() {
    let mut report = report(4_000, vec![error(1040, "Too many connections", 6_000)]);
    report.limit = Some("descriptors".to_owned());
    let text = limit(Path::Direct, Some(&report), &[]).unwrap();
    assert_eq!(text, "4,000 of 10,000 connected: descriptors");
}

#[test]
fn without_a_report_the_log_and_last_words_speak() {
    let log = ["x [ERROR] Out of memory".to_owned()];
    let text = limit(Path::Direct, None, &log).unwrap();
    assert_eq!(text, "the server's log says: Out of memory");
    let text = limit(Path::Direct, None, &[]).unwrap();
    assert_eq!(text, "load gave no figures: exit status: 1: no server");
}
