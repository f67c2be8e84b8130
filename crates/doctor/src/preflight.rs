//! Checks of a command before it starts: the doctor's, of what it is about to do.
//!
//! The pool and the load generator begin with what they need of this host; the climb also with
//! what a server beside them needs. They are told by the same checks, in the same words, so that a
//! warning here can be looked up there. Only walls are said: a queue that is short in a storm, or a
//! slow clock, is no news at every start.

use crate::catalog;
use crate::facts::{Facts, Files, NO_LIMIT};
use crate::finding::Finding;
use crate::question::{Question, Way};

/// The walls before `question` on this host, the nearest first.
#[must_use]
pub fn walls(question: &Question) -> Vec<Finding> {
    walls_of(&Facts::read(&Files::of_kernel(), None), question)
}

/// The walls before `question` by these facts, the nearest first.
#[must_use]
pub fn walls_of(facts: &Facts, question: &Question) -> Vec<Finding> {
    let mut walls = catalog::check(facts, question);
    walls.retain(|finding| !finding.stops(question).is_empty());
    let nearest = |finding: &Finding| {
        let ways = question.ways.iter();
        ways.filter_map(|way| finding.holds_on(*way)).min()
    };
    walls.sort_by_key(nearest);
    walls
}

/// Finding that an error on `way` comes from: the nearest wall of those that answer with this
/// error. `code` is a server's or client library's number, or an errno; the errno of a client
/// library stands in its words, in parentheses.
#[must_use]
pub fn behind<'a>(
    findings: &'a [Finding],
    way: Way,
    code: i64,
    message: &str,
) -> Option<&'a Finding> {
    let says = |errno: &i64| code == *errno || message.contains(&format!("({errno})"));
    let (_, _, names) = BEHIND
        .iter()
        .find(|(codes, errnos, _)| codes.contains(&code) || errnos.iter().any(says))?;
    let candidates = findings
        .iter()
        .filter(|finding| names.contains(&finding.name));
    candidates.min_by_key(|finding| finding.holds_on(way).unwrap_or(NO_LIMIT))
}

/// Errors by the number of server or client library, or by errno, and the checks behind them.
const BEHIND: &[(&[i64], &[i64], &[&str])] = &[
    (&[1040], &[], &["max_connections"]),
    (&[1203, 1226], &[], &["max_user_connections"]),
    (&[1461], &[], &["max_prepared_stmt_count"]),
    (
        &[1135],
        &[11, 12],
        &[
            "max_map_count",
            "pid_max",
            "threads_max",
            "group_pids",
            "user_processes",
            "overcommit",
            "memory",
            "group_memory",
        ],
    ),
    (&[], &[23], &["file_max"]),
    (&[], &[24], &["client_descriptors"]),
    (&[], &[28], &["epoll_watches"]),
    (&[], &[99], &["local_ports"]),
    (&[], &[105], &["tcp_mem", "memory"]),
    (&[], &[110], &["accept_queue", "conntrack"]),
];

/// A finding in a line: its name, the numbers and what to do.
#[must_use]
pub fn brief(finding: &Finding) -> String {
    let remedy = match finding.remedy.as_str() {
        "" => String::new(),
        remedy => format!(" ({remedy})"),
    };
    let (have, need) = (finding.shown(&finding.have), finding.shown(&finding.need));
    format!("{}: have {have}, need {need}{remedy}", finding.name)
}

/// A finding in one sentence, the same wherever it is said.
#[must_use]
pub fn sentence(finding: &Finding) -> String {
    let remedy = match finding.remedy.as_str() {
        "" => String::new(),
        remedy => format!(". To do: {remedy}"),
    };
    format!(
        "{}: have {}, need {}: {}{remedy}",
        finding.name,
        finding.shown(&finding.have),
        finding.shown(&finding.need),
        finding.why
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Role;

    fn question(connections: u64) -> Question {
        Question {
            connections: Some(connections),
            role: Role::Pool,
            ways: vec![Way::Onramp],
            ..Question::default()
        }
    }

    #[test]
    fn only_walls_are_said() {
        let mut facts = Facts::default();
        facts.host.sysctls.insert("fs.file-max".into(), vec![5_000]);
        facts
            .host
            .sysctls
            .insert("net.ipv4.tcp_max_orphans".into(), vec![5]);
        facts.host.clock_source = "hpet".into();
        assert_eq!(walls_of(&facts, &question(4_000)), []);
        let walls = walls_of(&facts, &question(6_000));
        assert_eq!(walls.len(), 1);
        let words = sentence(&walls[0]);
        assert!(
            words.starts_with("file_max: have 5,000, need 6,128: every end"),
            "{words}"
        );
        assert!(
            words.ends_with("To do: sysctl -w fs.file-max=6200"),
            "{words}"
        );
        let words = "file_max: have 5,000, need 6,128 (sysctl -w fs.file-max=6200)";
        assert_eq!(brief(&walls[0]), words);
    }

    #[test]
    fn an_error_leads_to_the_nearest_wall_that_answers_with_it() {
        let mut facts = Facts::default();
        let sysctls = &mut facts.host.sysctls;
        sysctls.insert("kernel.pid_max".into(), vec![32_768]);
        sysctls.insert("vm.max_map_count".into(), vec![65_530]);
        sysctls.insert("net.ipv4.ip_local_port_range".into(), vec![32_768, 60_999]);
        let findings = catalog::check(&facts, &Question::default());
        let name = |code, message| {
            behind(&findings, Way::Direct, code, message).map(|finding| finding.name)
        };
        assert_eq!(
            name(1135, "Can't create a new thread (errno 11)"),
            Some("pid_max")
        );
        assert_eq!(
            name(2003, "Can't connect to MySQL server on 'db' (99)"),
            Some("local_ports")
        );
        assert_eq!(name(99, "EADDRNOTAVAIL"), Some("local_ports"));
        assert_eq!(name(24, "EMFILE"), Some("client_descriptors"));
        assert_eq!(name(1064, "You have an error in your SQL syntax"), None);
        assert_eq!(
            name(1040, "Too many connections"),
            None,
            "no server was asked"
        );
    }
}
