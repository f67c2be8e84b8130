//! Every path's walls and every sentence, from plain structs.
//!
//! The numbers are those of a usual Linux: 65,530 memory maps, 32,768 process numbers. The walls
//! themselves are the doctor's, and tested there; here they must reach the rows.

use super::*;
use doctor::facts::NO_LIMIT;

/// A machine with no bound in the way, and a private server.
fn roomy() -> Facts {
    let mut facts = Facts::default();
    facts.this.nofile_hard = Some(NO_LIMIT);
    facts.server = Some(private_server(u32::MAX));
    facts
}

fn with(name: &str, value: u64) -> Facts {
    let mut facts = roomy();
    facts.host.sysctls.insert(name.to_owned(), vec![value]);
    facts
}

fn cell(path: Path, connections: u32) -> Cell {
    Cell { connections, path }
}

fn not_tried(path: Path, connections: u32, facts: &Facts) -> Option<String> {
    forbidden(
        &question(cell(path, connections), Role::AllInOne, 2_000),
        facts,
    )
}

#[test]
fn descriptors_bound_every_path_but_onramp() {
    let mut facts = roomy();
    facts.this.nofile_hard = Some(20_000);
    let text = not_tried(Path::Direct, 100_000, &facts).unwrap();
    let start = "not tried: server_descriptors: have 20,000, need 100,450 (";
    assert!(text.starts_with(start), "{text}");
    assert_eq!(not_tried(Path::ServerPool, 100_000, &facts), Some(text));
    assert_eq!(not_tried(Path::Onramp, 1_000_000, &facts), None);
    assert_eq!(not_tried(Path::Direct, 19_550, &facts), None);
    assert!(not_tried(Path::Direct, 19_551, &facts).is_some());
}

#[test]
fn threads_and_maps_bound_direct_alone() {
    let facts = with("vm.max_map_count", 65_530);
    let text = not_tried(Path::Direct, 50_000, &facts).unwrap();
    let words = "max_map_count: have 65,530, need 100,400 (sysctl -w vm.max_map_count=110000)";
    assert!(text.contains(words), "{text}");
    assert_eq!(not_tried(Path::Direct, 32_565, &facts), None);
    assert_eq!(not_tried(Path::ServerPool, 50_000, &facts), None);
    let facts = with("kernel.pid_max", 32_768);
    let text = not_tried(Path::Direct, 32_600, &facts).unwrap();
    assert!(text.contains("pid_max: have 32,768, need 32,900"), "{text}");
}

#[test]
fn the_nearest_of_several_walls_is_named() {
    let mut facts = with("kernel.pid_max", 32_768);
    facts
        .host
        .sysctls
        .insert("vm.max_map_count".to_owned(), vec![20_000]);
    let text = not_tried(Path::Direct, 50_000, &facts).unwrap();
    assert!(text.starts_with("not tried: max_map_count"), "{text}");
}

#[test]
fn mariadb_ends_at_100_000() {
    assert_eq!(not_tried(Path::ServerPool, 100_000, &roomy()), None);
    let text = not_tried(Path::ServerPool, 100_001, &roomy()).unwrap();
    assert!(
        text.contains("max_connections: have 100,000, need 100,001"),
        "{text}"
    );
    assert!(text.contains("100,000 is the most"), "{text}");
}

#[test]
fn this_machine_has_facts() {
    let facts = facts_with_server(500);
    assert!(facts.this.nofile_hard > Some(0) && facts.host.sysctl("kernel.pid_max") > Some(0));
    assert_eq!(facts.server.unwrap().number("max_connections"), Some(500));
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
    let mut facts = with("kernel.pid_max", 32_768);
    facts.this.nofile_hard = Some(20_000);
    let range = vec![32_768, 60_999];
    facts
        .host
        .sysctls
        .insert("net.ipv4.ip_local_port_range".to_owned(), range);
    facts
        .host
        .sysctls
        .insert("net.core.somaxconn".to_owned(), vec![128]);
    facts.server = Some(private_server(5_000));
    let cell = cell(path, 10_000);
    let outcome = Outcome {
        cell,
        report,
        load_words: "exit status: 1: no server",
        pool_death: None,
        server_log,
        question: &question(cell, Role::AllInOne, 64),
        facts: &facts,
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
        (
            1040,
            "Too many connections",
            "max_connections: have 5,000, need 10,000 (SET GLOBAL max_connections = 10000)",
        ),
        (
            1135,
            "Can't create a new thread (errno 11)",
            "pid_max: have 32,768, need 10,300",
        ),
        (
            2004,
            "Can't create TCP/IP socket (24)",
            "descriptors: have 20,000",
        ),
        (2003, "Can't connect (99)", "local_ports: have unlimited"),
        (2003, "Can't connect (110)", "accept_queue: have 129"),
        (2003, "connect timed out", "try --connect-rate"),
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
