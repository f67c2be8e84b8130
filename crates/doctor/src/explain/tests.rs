//! Table tests of the explanations: which line means what.

use super::catalogue::{Entry, entries};
use super::live::Live;
use super::matching::{Explained, Query};
use super::{errno, log, render};
use crate::facts::{Facts, NO_LIMIT, Process};
use std::collections::HashSet;

/// The names of the entries that explain what was asked.
fn names(asked: &str) -> Vec<&'static str> {
    let explained = Query::of(asked).answer();
    let name = |one: &Explained| one.entry.map_or("-", |entry| entry.name.as_str());
    explained.iter().map(name).collect()
}

/// Lines as the programs write them, and the entries that must explain them.
const LINES: &str = include_str!("tests/lines.txt");

#[test]
fn each_line_is_explained_by_its_entry() {
    let mut wrong = Vec::new();
    let (mut of_mysql, mut of_others) = (0, 0);
    for pair in LINES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (wanted, line) = pair.split_once(" | ").unwrap();
        let wanted: Vec<&str> = wanted.split_whitespace().collect();
        let found = names(line);
        let is_unknown = wanted == ["nothing"] && found.is_empty();
        if found != wanted && !is_unknown {
            wrong.push(format!("{line}\n   wanted {wanted:?}, got {found:?}"));
        }
        let is_of = |kinds: &[&str]| kinds.iter().any(|kind| wanted[0].starts_with(kind));
        if is_of(&["client-", "server-", "login-", "log-"]) {
            of_mysql += 1;
        } else if !is_unknown && !is_of(&["onramp-"]) {
            of_others += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(of_mysql > 300 && of_others > 150, "{of_mysql} {of_others}");
    // "Timed out" of an application that waits for itself is no errno.
    let line = "QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00";
    let text = render::text(&Query::of(line).answer(), &Facts::default());
    assert!(
        text.starts_with("the application's own connection pool"),
        "{text}"
    );
}

#[test]
fn the_catalogue_is_whole() {
    let mut seen = HashSet::new();
    for entry in entries() {
        let name = &entry.name;
        assert!(seen.insert(name), "{name} twice");
        assert!(
            !entry.title.is_empty() && !entry.title.ends_with('.'),
            "{name}"
        );
        assert!(
            !entry.cause.trim().is_empty() && !entry.fault.is_empty(),
            "{name}"
        );
        assert!(!entry.remedy.is_empty(), "{name}: no remedy");
        for look in &entry.verify {
            assert!(
                look.run.is_some() != look.sql.is_some(),
                "{name}: a command or a statement"
            );
            if let Some(Live::Variable(variable) | Live::Status(variable)) = &look.live {
                let sql = look.sql.as_deref().unwrap_or_default();
                assert!(
                    sql.contains(variable.as_str()),
                    "{name}: {variable} is not in {sql}"
                );
            }
        }
        let text = entry.cause.to_lowercase();
        for word in ["todo", "http://", "https://"] {
            assert!(!text.contains(word), "{name}: {word}");
        }
        for errno in &entry.errno {
            assert!(errno::name(*errno).is_some(), "{name}: {errno}");
        }
    }
}

#[test]
fn each_entry_is_found_by_its_own_words_numbers_and_names() {
    for entry in entries() {
        let name = entry.name.as_str();
        for words in &entry.says {
            let about = if entry.family { "the database: " } else { "" };
            let line = about.to_owned() + &words.replace('*', " x ");
            let found = names(&line);
            // The same words stand for several errors where an errno decides: the plain one wins.
            let shared = entries()
                .iter()
                .any(|other| other.name != name && other.says.contains(words));
            assert!(
                found.first() == Some(&name) || shared,
                "{name}: {words}: {found:?}"
            );
        }
        for symbol in &entry.symbol {
            assert_eq!(names(symbol), [name], "{symbol}");
        }
        if entry.errno.is_empty() && entry.only_if.is_empty() {
            for number in &entry.number {
                let found = names(&number.to_string());
                let first = entries().iter().find(|e| {
                    e.errno.is_empty() && e.only_if.is_empty() && e.number.contains(number)
                });
                assert_eq!(found, [first.unwrap().name.as_str()], "{number}");
            }
        }
        if entry.number.is_empty() {
            for errno in &entry.errno {
                assert_eq!(names(&errno.to_string()), [name], "{errno}");
            }
        }
    }
}

/// Sources of onramp's own words.
const SOURCES: &[&str] = &[
    include_str!("../../../pool/src/errors/reasons.rs"),
    include_str!("../../../pool/src/limits/addresses.rs"),
    include_str!("../../../pool/src/run.rs"),
    include_str!("../../../pool/src/run/group_threads.rs"),
    include_str!("../../../pool/src/run/layout.rs"),
    include_str!("../../../pool/src/limits/late_clients.rs"),
    include_str!("../../../pool/src/limits/timeouts.rs"),
    include_str!("../../../pool/src/server/watch.rs"),
    include_str!("../../../load-core/src/errors.rs"),
    include_str!("../../../load-core/src/threads.rs"),
    include_str!("../../../load/src/group_threads.rs"),
    include_str!("../../../climb/src/limits.rs"),
];

#[test]
fn onramps_own_words_are_those_of_its_sources() {
    // Strings are broken over lines with a backslash, and hold values in braces.
    let text = SOURCES.concat().replace("\\\n", " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for entry in entries()
        .iter()
        .filter(|entry| entry.name.starts_with("onramp-"))
    {
        for words in entry.says.iter().flat_map(|words| words.split('*')) {
            let name = &entry.name;
            let words = words.trim();
            assert!(
                text.contains(words),
                "{name}: no source says `{words}`; change the entry with the words"
            );
        }
    }
}

/// The names of every event and of every refusal of the pool.
fn words_of_the_pool() -> Vec<&'static str> {
    let page = include_str!("../../../../docs/pool/signals-and-log.md");
    let (_, events) = page.split_once("| event | level | when |").unwrap();
    let rows = events
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut words: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    // A row ends with the name and the number: `"clients" CON_COUNT;`.
    let name = |line: &'static str| {
        let (row, number) = line.trim_end().strip_suffix(';')?.rsplit_once("\" ")?;
        let is_number = number
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        let (_, name) = row.rsplit_once('"').filter(|_| is_number)?;
        (!name.is_empty()).then_some(name)
    };
    let names: Vec<&str> = SOURCES[0].lines().filter_map(name).collect();
    assert!(names.len() > 40, "{names:?}");
    words.extend(names);
    // Names that depend on a value: `const TLS: &str = "tls";`, and those of limits of addresses.
    let constants = SOURCES[0].lines().filter(|line| line.starts_with("const "));
    let (_, limits) = SOURCES[1].split_once("NAMES: [&'static str").unwrap();
    let (limits, _) = limits.split_once("];").unwrap();
    let texts = constants.chain(limits.lines());
    words.extend(texts.filter_map(|line| line.split('"').nth(1)));
    words
}

#[test]
fn each_event_and_refusal_of_the_pool_is_explained() {
    let words = words_of_the_pool();
    assert!(words.len() > 90, "{words:?}");
    for word in &words {
        let lines = [
            (*word).to_owned(),
            format!("2026-01-01T00:00:00.000Z onramp pool: level=info event={word} message=so"),
            format!("{{\"level\":\"info\",\"event\":\"{word}\",\"message\":\"so\"}}"),
            format!("level=warning event=login-refused reason={word} message=so"),
        ];
        for line in lines {
            let found = names(&line);
            let is_known = matches!(found[..], [name] if name.starts_with("onramp-word-"));
            assert!(is_known, "{line}: {found:?}");
        }
    }
    for word in entries().iter().flat_map(|entry| &entry.word) {
        let is_login = ["wrong-password", "unknown-user", "tls-required"].contains(&word.as_str());
        assert!(
            is_login || words.contains(&word.as_str()),
            "the pool does not say {word}"
        );
    }
}

/// The second columns of the tables `who | says`.
fn said_in_the_manual() -> Vec<&'static str> {
    let manual = include_str!("../../../../docs/limits.md");
    let mut said = Vec::new();
    let mut is_says = false;
    for line in manual.lines() {
        if !line.starts_with('|') {
            is_says = false;
        } else if line == "| who | says |" {
            is_says = true;
        } else if is_says && let Some((_, words)) = line[1..].split_once('|') {
            said.extend(words.split('`').skip(1).step_by(2));
        }
    }
    said
}

#[test]
fn the_manuals_lines_are_explained() {
    let said = said_in_the_manual();
    assert!(said.len() > 30, "{said:?}");
    for words in said {
        assert!(!names(words).is_empty(), "docs/limits.md says `{words}`");
    }
}

#[test]
fn a_bare_number_names_what_else_it_may_be() {
    let explained = Query::of("2003").answer();
    let text = render::text(&explained, &Facts::default());
    for words in [
        "2003: the client cannot connect over TCP",
        "(99): ",
        "(111): ",
        "(110): ",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn what_the_pool_means_by_a_number_comes_first() {
    let is_own = |entry: &Entry| entry.name.starts_with("onramp-");
    for number in entries().iter().flat_map(|entry| &entry.number) {
        let explained = Query::of(&number.to_string()).answer();
        let shown = explained.first().and_then(|one| one.entry).unwrap();
        let of_pool = entries().iter().filter(|entry| is_own(entry));
        let of_pool: Vec<_> = of_pool.filter(|e| e.number.contains(number)).collect();
        let text = render::text(&explained, &Facts::default());
        let first = format!("{number}: if onramp pool sent it\n");
        let is_shared = !is_own(shown) && !of_pool.is_empty();
        assert_eq!(text.starts_with(&first), is_shared, "{text}");
        let own = text.split("If the server sent it:").next().unwrap();
        let words = own.split_whitespace().collect::<Vec<_>>().join(" ");
        for case in of_pool.iter().filter(|_| is_shared) {
            assert!(words.contains(&case.title), "{}: {text}", case.name);
            assert!(own.contains(&case.remedy[0]), "{}: {text}", case.name);
        }
    }
    // Each error that the pool sends is explained as its own, but for what a server says alike.
    const ALIKE: [&str; 9] = [
        "1045", "1094", "1095", "1156", "1213", "1243", "1317", "1421", "3159",
    ];
    let page = include_str!("../../../../docs/pool/errors.md");
    let (_, rows) = page.split_once("| number | state | when |").unwrap();
    let rows = rows.lines().skip(2).take_while(|row| row.starts_with('|'));
    let numbers = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(','));
    for number in numbers.map(str::trim) {
        let explained = Query::of(number).answer();
        let shown = explained.first().and_then(|one| one.entry);
        let shown = shown.unwrap_or_else(|| panic!("{number} is not known"));
        let text = render::text(&explained, &Facts::default());
        let is_said = text.contains("if onramp pool sent it") || is_own(shown);
        assert!(is_said || ALIKE.contains(&number), "{number}: {text}");
    }
}

#[test]
fn an_errno_without_a_story_still_has_its_name() {
    let explained = Query::of("EXDEV").answer();
    let text = render::text(&explained, &Facts::default());
    assert!(text.starts_with("errno 18, EXDEV: "), "{text}");
    assert!(Query::of("errno 4000").answer().is_empty());
    assert!(Query::of("hello").answer().is_empty());
}

/// A host like the articles': one process of a server with a thread for each connection.
fn host() -> Facts {
    let mut facts = Facts::default();
    let sysctls = [
        ("kernel.pid_max", vec![32_768]),
        ("kernel.threads-max", vec![515_000]),
        ("vm.max_map_count", vec![65_530]),
        ("net.ipv4.ip_local_port_range", vec![32_768, 60_999]),
    ];
    for (name, values) in sysctls {
        facts.host.sysctls.insert(name.to_owned(), values);
    }
    facts.host.counts.insert("threads".to_owned(), 900);
    facts.host.counts.insert("pids".to_owned(), 900);
    let mut server = Process {
        pid: 7,
        name: "mysqld".to_owned(),
        nproc_soft: Some(500_000),
        user_threads: Some(600),
        maps: Some(1_530),
        threads: Some(600),
        ..Process::default()
    };
    server.group.pids_max = Some(NO_LIMIT);
    server.group.pids_now = Some(600);
    facts.server_process = Some(server);
    facts
}

#[test]
fn the_nearest_limit_is_marked() {
    let explained = Query::of("ERROR 1135 (HY000): Can't create a new thread (errno 11)").answer();
    let text = render::text(&explained, &host());
    let marked: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("nearest"))
        .collect();
    assert_eq!(marked.len(), 1, "{text}");
    assert!(
        marked[0].contains("32,768, 900 in use: room for 31,868 more threads"),
        "{text}"
    );
    assert!(
        text.contains("65,530, 1,530 in use by mysqld, pid 7: room for 32,000"),
        "{text}"
    );
}

#[test]
fn the_articles_thread_is_reckoned() {
    let line =
        "FATAL: pthread_create() for thread #32352 failed. errno = 12 (Cannot allocate memory)";
    let text = render::text(&Query::of(line).answer(), &host());
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("32,351 threads x 2 mappings = 64,702"),
        "{text}"
    );
    assert!(
        text.contains("the other 828 are the program's own"),
        "{text}"
    );
    assert!(
        text.contains("vm.max_map_count") && text.contains("neither Lua's memory"),
        "{text}"
    );
}

#[test]
fn statements_and_ports_and_redo_are_reckoned() {
    let text = |line: &str| {
        let text = render::text(&Query::of(line).answer(), &host());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let found =
        text("Can't create more than max_prepared_stmt_count statements (current value: 16382)");
    assert!(found.contains("16,382 / 91 = 180 connections"), "{found}");
    let found = text("ERROR 2003 (HY000): Can't connect to MySQL server on 'db' (99)");
    assert!(
        found.contains("60999 - 32768 + 1 = 28,232 ports"),
        "{found}"
    );
    assert!(
        found.contains("100,000 connections need a product of 4"),
        "{found}"
    );
    let found = text(
        "InnoDB: ERROR: the age of the last checkpoint is 78511054, which exceeds the log group \
         capacity 77000000.",
    );
    assert!(
        found.contains("78,511,054 (74.8 MiB) are not on disk"),
        "{found}"
    );
}

#[test]
fn a_log_is_told_by_kinds_with_causes_first() {
    let mut text = String::new();
    for at in 0..300 {
        text += &format!(
            "2026-11-21 09:00:{:02} {at} [Warning] Aborted connection {at} to db: 'sbtest' user: \
             'sbtest' host: '10.0.0.7' (Got an error reading communication packets)\n",
            at % 60
        );
    }
    text += "FATAL: MySQL error: 1461 \"Can't create more than max_prepared_stmt_count statements \
        (current value: 16382)\"\n";
    text += "2026-11-21 09:01:00 0 [Note] InnoDB: Buffer pool(s) load completed (11)\n";
    let log = log::read(&text);
    let found: Vec<_> = log
        .explained
        .iter()
        .map(|one| (one.entry.unwrap().name.as_str(), one.count))
        .collect();
    assert_eq!(found, [("server-1461", 1), ("server-1152", 300)]);
    assert_eq!((log.lines, log.recognised), (302, 301));
    let heading = render::log_heading(&log);
    assert!(
        heading.contains("300 x  a connection ended") && heading.contains("(an echo)"),
        "{heading}"
    );
    assert!(log::read("all is well\n").explained.is_empty());
}

#[test]
fn text_fits_on_a_screen() {
    for entry in entries() {
        let asked = match (entry.number.first(), entry.says.first()) {
            (_, Some(words)) => words.replace('*', " x "),
            (Some(number), None) => number.to_string(),
            (None, None) => continue,
        };
        let text = render::text(&Query::of(&asked).answer(), &host());
        for line in text.lines() {
            let is_command = line.starts_with("    ") && !line.starts_with("        ");
            let max = if is_command { 120 } else { 92 };
            assert!(line.chars().count() <= max, "{}: {line}", entry.name);
        }
    }
}

#[test]
fn json_has_the_live_values() {
    let text = render::json(&Query::of("1135").answer(), &host());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value[0]["name"], "server-1135");
    let verify = value[0]["verify"].as_array().unwrap();
    let shown = verify
        .iter()
        .find(|look| look["run"] == "cat /proc/sys/kernel/pid_max");
    assert_eq!(
        shown.unwrap()["now"],
        "32,768, 900 in use: room for 31,868 more threads"
    );
}
