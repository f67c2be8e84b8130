//! Memory: for sockets, for threads of the server, for what sessions may ask for.
//!
//! Memory of sockets is the kernel's and shows in no process; a control group is charged for it all
//! the same. The figures of one connection are measured ones (`need.rs`); they are the least that a
//! connection takes, so the number that memory allows is the most that can be hoped for.

use crate::facts::{Facts, NO_LIMIT, Server};
use crate::finding::{Amount, Demand, Finding, Severity, Status};
use crate::need::{Bytes, SOCKET_BYTES, bytes_per_connection, server_bytes};
use crate::number::{bytes, round_up, thousands};
use crate::question::{PerWay, Question, Way};
use crate::setting::Setting;

/// Bytes of a page, on every machine that this is built for by default.
const PAGE_BYTES: u64 = 4096;

pub(super) fn memory(facts: &Facts, question: &Question) -> Option<Finding> {
    let free = facts.host.count("memory_available_bytes");
    let group = &facts.this.group;
    let in_group = group
        .memory_max
        .filter(|max| *max != NO_LIMIT)
        .map(|max| max.saturating_sub(group.memory_now.unwrap_or_default()));
    let have = match (free, in_group) {
        (Some(free), Some(in_group)) => Some(free.min(in_group)),
        (free, in_group) => free.or(in_group),
    };
    let each = bytes_per_connection(question);
    let demands = each.map(|each| Some(Demand::new(0, each.sum())));
    let where_from = match in_group {
        Some(room) if Some(room) == have => format!("the control group {}", group.memory_path),
        _ => "the host".to_owned(),
    };
    let asked = question.ways.iter().map(|way| {
        let Bytes { kernel, user } = each[way.index()];
        let (kernel, user) = (bytes(kernel), bytes(user));
        format!("{way} {kernel} in the kernel and {user} in processes")
    });
    let asked: Vec<String> = asked.collect();
    Some(
        Finding::of(question, "memory", Severity::Wall, have, demands)
            .in_bytes()
            .why(format!(
                "bytes that {where_from} has left. A connection takes at least: {}. Each end of it \
                 here is {} in the kernel, which shows in no process",
                asked.join("; "),
                bytes(SOCKET_BYTES)
            ))
            .remedy(
                "add memory, put server, pool and clients on hosts of their own, or go through \
                 onramp",
            ),
    )
}

/// Memory that the server's control group lets the server have, where it is not this process's own.
pub(super) fn group_memory(facts: &Facts, question: &Question) -> Option<Finding> {
    question.role.has_server().then_some(())?;
    let group = &facts.server_process.as_ref()?.group;
    let max = group.memory_max?;
    let have = match max {
        NO_LIMIT => NO_LIMIT,
        max => max.saturating_sub(group.memory_now.unwrap_or_default()),
    };
    let direct = server_bytes(Way::Direct);
    let demands: PerWay<_> = [
        Some(Demand::new(0, direct)),
        Some(Demand::new(0, server_bytes(Way::ServerPool))),
        Some(Demand::new(direct * question.backends, 0)),
    ];
    let finding = Finding::of(
        question,
        "group_memory",
        Severity::Wall,
        Some(have),
        demands,
    );
    Some(
        finding
            .in_bytes()
            .why(format!(
                "bytes that the server's control group {} (memory.max, systemd's MemoryMax) has \
                 left, pages of files that give way not counted. A connection with a thread of its \
                 own takes {} of them. Past it the kernel kills the server",
                group.memory_path,
                bytes(direct)
            ))
            .remedy(
                "systemctl set-property UNIT MemoryMax=..., or the container's limit; or go \
                 through onramp",
            ),
    )
}

/// Size of a thread's stack where the kernel promises no more than it has.
pub(super) fn overcommit(facts: &Facts, question: &Question) -> Option<Finding> {
    question.role.has_server().then_some(())?;
    let host = &facts.host;
    let never = host.sysctl("vm.overcommit_memory")? == 2;
    let stack = facts
        .server
        .as_ref()
        .and_then(|server| server.number("thread_stack"));
    let stack = stack.unwrap_or(DEFAULT_STACK);
    let have = match never {
        true => host.count("commit_limit_bytes"),
        false => Some(NO_LIMIT),
    };
    let committed = host.count("committed_bytes").unwrap_or_default();
    let demands = [Some(Demand::new(committed, stack)), None, None];
    Some(
        Finding::of(question, "overcommit", Severity::Wall, have, demands)
            .in_bytes()
            .why(format!(
                "with vm.overcommit_memory=2 every thread's whole stack ({}) counts as used, \
                 touched or not; {} are promised already",
                bytes(stack),
                bytes(committed)
            ))
            .settings(vec![Setting::Sysctl("vm.overcommit_memory", vec![0])]),
    )
}

/// thread_stack of MariaDB 10.11, in bytes.
const DEFAULT_STACK: u64 = 299_008;

pub(super) fn tcp_mem(facts: &Facts, question: &Question) -> Option<Finding> {
    let have = facts.host.sysctl_last("net.ipv4.tcp_mem");
    let now = facts.host.count("tcp_memory_pages").unwrap_or_default();
    // A statement, or its answer, is in one buffer at a time.
    let demands = Way::ALL.map(|way| (question.role.ends(way) > 0).then_some(Demand::new(now, 1)));
    let finding = Finding::of(question, "tcp_mem", Severity::Strain, have, demands);
    let need = round_up(finding.needed());
    let values = match facts.host.sysctls.get("net.ipv4.tcp_mem") {
        Some(values) if have >= Some(need) => values.clone(),
        _ => vec![need / 4 * 2, need / 4 * 3, need],
    };
    Some(
        finding
            .why(format!(
                "pages of {PAGE_BYTES} bytes for all sockets' buffers; {} are in use. A connection \
                 that executes has a page in one of them. Above the middle number the kernel \
                 shrinks windows, above the last it drops (\"Out of socket memory\")",
                thousands(now)
            ))
            .settings(vec![Setting::Sysctl("net.ipv4.tcp_mem", values)]),
    )
}

/// The least that each socket may always have.
pub(super) fn tcp_buffers(facts: &Facts, question: &Question) -> Option<Finding> {
    const LEAST: u64 = 4096;
    let names = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
    let [receive, send] = names.map(|name| facts.host.sysctl(name));
    let (receive, send) = (receive?, send?);
    let is_small = receive <= 4 * LEAST && send <= 4 * LEAST;
    let status = if is_small { Status::Ok } else { Status::Warn };
    let have = Amount::Words(format!("{} / {}", thousands(receive), thousands(send)));
    let need = question
        .connections
        .map_or(Amount::Unknown, |_| Amount::Words("4,096 / 4,096".into()));
    let rest = |name: &str| {
        let values = facts.host.sysctls.get(name).cloned().unwrap_or_default();
        [vec![LEAST], values.get(1..).unwrap_or_default().to_vec()].concat()
    };
    Some(
        Finding::observed("tcp_buffers", status, have, need)
            .why(
                "the least receive and send buffer (first numbers of tcp_rmem and tcp_wmem) is \
                 granted to every socket, even when tcp_mem is used up",
            )
            .settings(names.map(|name| Setting::Sysctl(name, rest(name))).to_vec()),
    )
}

/// Buffers that a session may ask for, in bytes: (name, how many of them).
const SESSION_BUFFERS: [(&str, u64); 5] = [
    ("net_buffer_length", 2),
    ("sort_buffer_size", 1),
    ("join_buffer_size", 1),
    ("read_buffer_size", 1),
    ("read_rnd_buffer_size", 1),
];

pub(super) fn session_buffers(facts: &Facts, question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let each = buffers_of_session(server);
    let have = server
        .is_local
        .then(|| facts.host.count("memory_available_bytes"))
        .flatten();
    let demands: PerWay<_> = [
        Some(Demand::new(0, each)),
        Some(Demand::new(0, each)),
        Some(Demand::new(each * question.backends, 0)),
    ];
    Some(
        Finding::of(question, "session_buffers", Severity::Strain, have, demands)
            .in_bytes()
            .why(format!(
                "a session may ask for {} while it sorts, joins and reads (sort_buffer_size, \
                 join_buffer_size, read_buffer_size, read_rnd_buffer_size, net_buffer_length); if \
                 all did at once it would be this much. Point selects use next to none of it",
                bytes(each)
            ))
            .settings(vec![
                Setting::Global("sort_buffer_size", "262144".into()),
                Setting::Global("join_buffer_size", "262144".into()),
            ]),
    )
}

fn buffers_of_session(server: &Server) -> u64 {
    let of = |(name, times): &(&str, u64)| server.number(name).unwrap_or_default() * times;
    SESSION_BUFFERS.iter().map(of).sum()
}
