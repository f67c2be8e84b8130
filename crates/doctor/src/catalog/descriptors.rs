//! Descriptors: of the server, of the pool and the clients, and of the whole host.
//!
//! A limit of a process stands in the way of whoever has one table for all its connections: the
//! server. The pool and the load generator have a table for each group, and then the product of
//! tables and limit counts.

use super::threads::{server_process, words};
use crate::facts::{Facts, NO_LIMIT};
use crate::finding::{Amount, Demand, Finding, Severity};
use crate::need::{FILES_OF_SERVER, load_holds, pool_holds, server_files};
use crate::number::{round_up, thousands};
use crate::question::{PerWay, Question, Way};
use crate::setting::Setting;

/// One for each connection of the server; on the way through onramp one for each backend.
fn of_server(facts: &Facts, question: &Question) -> PerWay<Option<Demand>> {
    let process = facts.server_process.as_ref();
    let connected = facts
        .server
        .as_ref()
        .and_then(|server| server.counted("Threads_connected"));
    let files = process.and_then(|process| process.files);
    let base = files.map_or(FILES_OF_SERVER, |files| {
        files.saturating_sub(connected.unwrap_or(0))
    });
    [
        Some(Demand::new(base, 1)),
        Some(Demand::new(base, 1)),
        Some(Demand::new(base + question.backends, 0)),
    ]
}

pub(super) fn server_descriptors(facts: &Facts, question: &Question) -> Option<Finding> {
    let told = facts
        .server
        .as_ref()
        .and_then(|server| server.number("open_files_limit"));
    let process = server_process(facts);
    let have = match (&facts.server_process, told) {
        // The kernel's word counts.
        (Some(process), _) => process.nofile_soft,
        (None, Some(told)) => Some(told),
        // A server raises its soft limit to the hard one.
        (None, None) => question.role.has_server().then_some(process.nofile_hard)?,
    };
    let demands = of_server(facts, question);
    let base = demands[0].map_or(0, |demand| demand.base);
    let finding = Finding::of(
        question,
        "server_descriptors",
        Severity::Wall,
        have,
        demands,
    );
    let settings = Setting::ServerDescriptors {
        running: round_up(finding.needed()),
        at_start: server_files(question.server_sees()),
    };
    Some(finding
        .why(format!(
            "the server has a descriptor for each connection and {} of its own (RLIMIT_NOFILE of \
             {}: soft {}, hard {}; open_files_limit). Past it accept fails with errno 24, and the \
             client waits",
            thousands(base),
            words(facts),
            Amount::from(process.nofile_soft),
            Amount::from(process.nofile_hard),
        ))
        .settings(vec![settings]))
}

pub(super) fn nr_open(facts: &Facts, question: &Question) -> Option<Finding> {
    question.role.has_server().then_some(())?;
    let have = facts.host.sysctl("fs.nr_open");
    let finding = Finding::of(
        question,
        "nr_open",
        Severity::Wall,
        have,
        of_server(facts, question),
    );
    let value = server_files(question.server_sees())
        .max(round_up(finding.needed()))
        .max(have.unwrap_or_default());
    Some(
        finding
            .why("no limit of descriptors can be set above it, not even root's or systemd's")
            .settings(vec![Setting::Sysctl("fs.nr_open", vec![value])]),
    )
}

pub(super) fn pool_descriptors(facts: &Facts, question: &Question) -> Option<Finding> {
    (question.role.has_pool() && question.ways.contains(&Way::Onramp)).then_some(())?;
    let have = facts.this.nofile_hard;
    let holds = have.map(|have| match have {
        NO_LIMIT => NO_LIMIT,
        have => pool_holds(have, question.backends),
    });
    let need = least(question.wanted(), |limit| {
        pool_holds(limit, question.backends)
    });
    let demands = [None, None, Some(Demand::new(need, 0))];
    let mut finding = Finding::of(question, "pool_descriptors", Severity::Wall, have, demands);
    finding.holds[Way::Onramp.index()] = holds;
    Some(
        finding
            .why(format!(
                "the pool's groups have descriptor tables of their own, so the limit (ulimit -Hn) \
             holds for each; there are at most as many groups as backends, {} here",
                question.backends
            ))
            .settings(vec![Setting::Descriptors(round_up(need))]),
    )
}

pub(super) fn client_descriptors(facts: &Facts, question: &Question) -> Option<Finding> {
    question.role.has_clients().then_some(())?;
    let have = facts.this.nofile_hard;
    let holds = have.map(|have| match have {
        NO_LIMIT => NO_LIMIT,
        have => load_holds(have),
    });
    let need = least(question.wanted(), load_holds);
    let demands = [Some(Demand::new(need, 0)); 3];
    let mut finding = Finding::of(
        question,
        "client_descriptors",
        Severity::Wall,
        have,
        demands,
    );
    finding.holds = [holds; 3];
    let one = have.filter(|have| *have != NO_LIMIT);
    let one = one.map_or("any number of".to_owned(), |one| {
        thousands(one.saturating_sub(10))
    });
    Some(
        finding
            .why(format!(
                "onramp load gives each group a descriptor table of its own (ulimit -Hn holds for \
             each); a client with one table for all, as sysbench, stops at about {one} \
             connections with errno 24 (client error 2004)"
            ))
            .settings(vec![Setting::Descriptors(round_up(need))]),
    )
}

/// The least limit with which `wanted` are held, by halving.
fn least(wanted: u64, holds: impl Fn(u64) -> u64) -> u64 {
    let (mut low, mut high) = (0, wanted.saturating_add(1_024));
    while low + 1 < high {
        let middle = low.midpoint(high);
        if holds(middle) >= wanted {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

pub(super) fn file_max(facts: &Facts, question: &Question) -> Option<Finding> {
    let most = facts.host.sysctl("fs.file-max");
    let server = facts.server_process.as_ref();
    let is_free = facts.this.file_max_is_free && server.is_none_or(|of| of.file_max_is_free);
    let have = most.map(|most| if is_free { NO_LIMIT } else { most });
    let open = facts.host.count("files_open").unwrap_or_default();
    let demands = Way::ALL.map(|way| {
        let backends = match way {
            Way::Onramp if question.role.has_pool() => 2 * question.backends,
            _ => 0,
        };
        Some(Demand::new(open + backends, question.role.ends(way)))
    });
    let finding = Finding::of(question, "file_max", Severity::Wall, have, demands);
    let value = round_up(finding.needed()).max(most.unwrap_or_default());
    Some(
        finding
            .why(format!(
                "every end of a connection on this host is an open file: {} at most, {} open now. \
                 Past it errno 23 (ENFILE) meets everybody on the host who is not root{}",
                thousands(most.unwrap_or_default()),
                thousands(open),
                if is_free { ", as this shell is" } else { "" }
            ))
            .settings(vec![Setting::Sysctl("fs.file-max", vec![value])]),
    )
}
