//! The network: ports, queues of connections that are not yet accepted, connection tracking.
//!
//! Ports are a wall where one client address meets one server address, and so is the table of
//! connection tracking; everything else here costs connections only in a storm, and then without a
//! word on either side.

use crate::facts::{Facts, NO_LIMIT};
use crate::finding::{Amount, Demand, Finding, Severity, Status};
use crate::number::{round_up, thousands};
use crate::question::{PerWay, Question, Way};
use crate::setting::Setting;

/// The widest range that leaves the well-known ports alone.
const RANGE_WIDE: [u64; 2] = [1_024, 65_535];

pub(super) fn local_ports(facts: &Facts, question: &Question) -> Option<Finding> {
    question.role.has_clients().then_some(())?;
    let host = &facts.host;
    let range = host.sysctls.get("net.ipv4.ip_local_port_range");
    let range = range.and_then(|range| Some((*range.first()?, *range.last()?)));
    let count = |name| host.count(name).unwrap_or_default();
    let taken = count("ports_reserved") + count("ports_listening");
    let ports = range.map(|(first, last)| (last + 1).saturating_sub(first).saturating_sub(taken));
    let have = match (ports, question.sources) {
        (None, _) => None,
        (_, None) => Some(NO_LIMIT),
        (Some(ports), Some(sources)) => Some(ports * sources * question.targets),
    };
    // Where they are not used again, ports that wait are gone for a minute.
    let waiting = match host.sysctl("net.ipv4.tcp_tw_reuse") {
        Some(0) => count("tcp_time_wait"),
        _ => 0,
    };
    let demands = [Some(Demand::new(waiting, 1)); 3];
    let (first, last) = range.unwrap_or_default();
    let sources = match question.sources {
        None => {
            "addresses of 127.0.0.0/8, which onramp load takes as it needs them (a client that \
                 takes one address has the ports of one)"
                .to_owned()
        }
        Some(sources) => format!("{} source x {} target addresses", sources, question.targets),
    };
    let finding = Finding::of(question, "local_ports", Severity::Wall, have, demands);
    // A wide range takes ports that services want, so it is for those who need it.
    let values = match range {
        Some((first, last)) if finding.status == Status::Ok => vec![first, last],
        _ => RANGE_WIDE.to_vec(),
    };
    Some(
        finding
            .why(format!(
                "a connection is told from others by addresses and ports: {} local ports ({first} \
                 to {last}, less {taken} reserved or listened on) x {sources}; {} ports wait \
                 (TIME_WAIT). Past half of an address's ports connect takes 25 times as long, \
                 past all of them it fails with errno 99 (client error 2003)",
                thousands(ports.unwrap_or_default()),
                thousands(count("tcp_time_wait")),
            ))
            .settings(vec![Setting::Sysctl(
                "net.ipv4.ip_local_port_range",
                values,
            )])
            .remedy(format!(
                "sysctl -w net.ipv4.ip_local_port_range=\"{} {}\", with the ports of services in \
                 net.ipv4.ip_local_reserved_ports; give clients more addresses \
                 (--source-addresses), or the server",
                RANGE_WIDE[0], RANGE_WIDE[1]
            )),
    )
}

/// Sockets for each place of the kernel's table from which on every packet pays for its chain:
/// measured in decision 0029.
const TABLE_CROWDED: u64 = 8;

/// The table in which the kernel looks up the socket of each packet. Kernels before 6.1 do not tell
/// its size.
pub(super) fn connection_table(facts: &Facts, question: &Question) -> Option<Finding> {
    let host = &facts.host;
    let places = host.count("connection_table_places")?;
    let now = host.count("tcp_sockets").unwrap_or_default();
    let demands = Way::ALL.map(|way| {
        let ends = question.role.ends(way);
        (ends > 0).then_some(Demand::new(now, ends))
    });
    let have = Some(places.saturating_mul(TABLE_CROWDED));
    let finding = Finding::of(
        question,
        "connection_table",
        Severity::Strain,
        have,
        demands,
    );
    let enough = finding
        .needed()
        .div_ceil(TABLE_CROWDED)
        .next_power_of_two()
        .max(places);
    Some(
        finding
            .why(format!(
                "the kernel looks up the socket of each packet in a table of {} places, as many as \
                 it chose at boot. With more than {TABLE_CROWDED} sockets in each, every packet \
                 and every connect() takes longer: with 18, a connection and its login took 112 us \
                 of CPU instead of 89",
                thousands(places)
            ))
            .remedy(format!(
                "boot the kernel with thash_entries={enough}; or run in a network namespace made \
                 while net.ipv4.tcp_child_ehash_entries is {enough}, as onramp climb does by itself"
            )),
    )
}

pub(super) fn conntrack(facts: &Facts, question: &Question) -> Option<Finding> {
    let host = &facts.host;
    let most = host.sysctl("net.netfilter.nf_conntrack_max")?;
    let now = host.count("conntrack_entries").unwrap_or_default();
    let sockets = host.count("tcp_sockets").unwrap_or_default();
    // Loaded without a rule that wants it, it tracks nothing, however many sockets there are.
    let tracks = now > 0 && now * 4 >= sockets.min(1_000);
    let have = if tracks { most } else { NO_LIMIT };
    let demands: PerWay<_> = Way::ALL.map(|way| {
        let backends = match way {
            Way::Onramp if question.role.has_pool() => question.backends,
            _ => 0,
        };
        Some(Demand::new(now + backends, 1))
    });
    let finding = Finding::of(question, "conntrack", Severity::Wall, Some(have), demands);
    let value = round_up(finding.needed()).max(most);
    Some(
        finding
            .why(format!(
                "the firewall's table of connections (nf_conntrack) has {} places, {} used{}. When \
                 it is full, packets of new connections are dropped and connects time out",
                thousands(most),
                thousands(now),
                if tracks {
                    ""
                } else {
                    "; it is loaded, but tracks nothing now"
                }
            ))
            .settings(vec![Setting::Sysctl(
                "net.netfilter.nf_conntrack_max",
                vec![value],
            )]),
    )
}

/// Connections that the kernel keeps ready while nobody accepts.
pub(super) fn accept_queue(facts: &Facts, question: &Question) -> Option<Finding> {
    let listens = question.role.has_server() || question.role.has_pool();
    listens.then_some(())?;
    let most = facts.host.sysctl("net.core.somaxconn");
    let told = facts
        .server
        .as_ref()
        .and_then(|server| server.number("back_log"));
    // The kernel takes one more than the number says.
    let have = most.map(|most| told.unwrap_or(NO_LIMIT).min(most) + 1);
    let finding = Finding::of(
        question,
        "accept_queue",
        Severity::Strain,
        have,
        burst(question),
    );
    let value = round_up(finding.needed());
    let mut settings = vec![Setting::Sysctl(
        "net.core.somaxconn",
        vec![value.max(most.unwrap_or_default())],
    )];
    if told.is_some_and(|told| told < value) {
        settings.push(Setting::File(
            "back_log",
            value.min(BACK_LOG_MAX).to_string(),
        ));
    }
    let told = told.map_or("not known".to_owned(), thousands);
    Some(
        finding
            .why(format!(
                "connections that wait to be accepted: the lesser of the listener's back_log \
                 ({told}) and net.core.somaxconn, and one. Needed is a second of new connections. \
                 Past it the kernel drops SYNs, and connects take 1, 3, 7 s more or time out"
            ))
            .settings(settings),
    )
}

/// The largest back_log of MySQL and MariaDB.
const BACK_LOG_MAX: u64 = 65_535;

/// Connections that arrive in a second.
fn burst(question: &Question) -> PerWay<Option<Demand>> {
    let burst = question
        .connections
        .map_or(0, |n| n.min(question.connect_rate));
    [Some(Demand::new(burst, 0)); 3]
}

pub(super) fn syn_queue(facts: &Facts, question: &Question) -> Option<Finding> {
    (question.role.has_server() || question.role.has_pool()).then_some(())?;
    let most = facts.host.sysctl("net.ipv4.tcp_max_syn_backlog");
    let cookies = facts
        .host
        .sysctl("net.ipv4.tcp_syncookies")
        .is_some_and(|on| on > 0);
    let have = if cookies { Some(NO_LIMIT) } else { most };
    let finding = Finding::of(
        question,
        "syn_queue",
        Severity::Strain,
        have,
        burst(question),
    );
    let value = round_up(finding.needed()).max(most.unwrap_or_default());
    Some(
        finding
            .why(format!(
                "handshakes that are half done: tcp_max_syn_backlog is {}, and SYN cookies are {}. \
                 Without cookies those past it are dropped; with them the kernel says \"Possible \
                 SYN flooding\" and goes on",
                thousands(most.unwrap_or_default()),
                if cookies { "on" } else { "off" }
            ))
            .settings(vec![
                Setting::Sysctl("net.ipv4.tcp_max_syn_backlog", vec![value]),
                Setting::Sysctl("net.ipv4.tcp_syncookies", vec![1]),
            ]),
    )
}

/// Connections that were lost before anybody accepted them.
pub(super) fn listen_drops(facts: &Facts, question: &Question) -> Option<Finding> {
    (question.role.has_server() || question.role.has_pool()).then_some(())?;
    let host = &facts.host;
    let [overflows, drops] = ["listen_overflows", "listen_drops"].map(|name| host.count(name));
    let (overflows, drops) = (overflows?, drops?);
    let full = host.count("syn_queue_full_drops").unwrap_or_default();
    let cookies = host.count("syn_queue_full_cookies").unwrap_or_default();
    let lost = drops.max(overflows) + full;
    Some(
        seen("listen_drops", lost)
            .why(format!(
                "since boot: {} queues of connections found full, {} SYNs dropped by listeners, {} \
                 because too many handshakes were half done, {} answered with cookies",
                thousands(overflows),
                thousands(drops),
                thousands(full),
                thousands(cookies)
            ))
            .remedy(
                "it has happened here: raise what accept_queue says, or open connections more \
                 slowly; watch: nstat -az TcpExtListenDrops TcpExtListenOverflows",
            ),
    )
}

/// Longest queue of a processor that is worth making.
const BACKLOG_MAX: u64 = 300_000;

/// A count that should be none.
fn seen(name: &'static str, count: u64) -> Finding {
    let status = if count == 0 { Status::Ok } else { Status::Warn };
    Finding::observed(name, status, Amount::Number(count), Amount::Number(0))
}

pub(super) fn netdev_backlog(facts: &Facts, question: &Question) -> Option<Finding> {
    let host = &facts.host;
    let most = host.sysctl("net.core.netdev_max_backlog")?;
    let drops = host.count("backlog_drops")?;
    let more = round_up(question.wanted().max(most * 10)).clamp(most, BACKLOG_MAX.max(most));
    // Where nothing was dropped, it is long enough.
    let value = if drops == 0 { most } else { more };
    Some(
        seen("netdev_backlog", drops)
            .why(format!(
                "packets dropped since boot because a processor's queue of arrived packets \
                 (netdev_max_backlog, {}) was full; loopback goes through it too",
                thousands(most)
            ))
            .settings(vec![Setting::Sysctl(
                "net.core.netdev_max_backlog",
                vec![value],
            )]),
    )
}

pub(super) fn orphans(facts: &Facts, question: &Question) -> Option<Finding> {
    let have = facts.host.sysctl("net.ipv4.tcp_max_orphans");
    let now = facts.host.count("tcp_orphans").unwrap_or_default();
    let demands = Way::ALL.map(|way| (question.role.ends(way) > 0).then_some(Demand::new(now, 1)));
    let finding = Finding::of(question, "orphans", Severity::Strain, have, demands);
    let value = round_up(finding.needed()).max(have.unwrap_or_default());
    Some(
        finding
            .why(
                "sockets that no process has any more but whose last bytes are on their way. When \
                 all connections close at once, those past tcp_max_orphans are reset instead",
            )
            .settings(vec![Setting::Sysctl(
                "net.ipv4.tcp_max_orphans",
                vec![value],
            )]),
    )
}

pub(super) fn time_wait(facts: &Facts, question: &Question) -> Option<Finding> {
    let host = &facts.host;
    let most = host.sysctl("net.ipv4.tcp_max_tw_buckets")?;
    let overflows = host.count("time_wait_overflows")?;
    let more = round_up(question.wanted().max(most * 2));
    let value = if overflows == 0 { most } else { more };
    Some(
        seen("time_wait_overflows", overflows)
            .why(format!(
                "closed connections past tcp_max_tw_buckets ({}) are forgotten at once, so that a \
                 late packet may meet a new connection; {} wait now",
                thousands(most),
                thousands(host.count("tcp_time_wait").unwrap_or_default())
            ))
            .settings(vec![Setting::Sysctl(
                "net.ipv4.tcp_max_tw_buckets",
                vec![value],
            )]),
    )
}

/// Files that one user watches by epoll: a place for each connection of pool, load and the
/// server's own pool.
pub(super) fn epoll_watches(facts: &Facts, question: &Question) -> Option<Finding> {
    let have = facts.host.sysctl("fs.epoll.max_user_watches");
    let role = question.role;
    let clients = u64::from(role.has_clients());
    let demands = [
        (clients > 0).then_some(Demand::new(0, clients)),
        (role.ends(Way::ServerPool) > 0).then_some(Demand::new(0, role.ends(Way::ServerPool))),
        (role.ends(Way::Onramp) > 0)
            .then_some(Demand::new(question.backends, role.ends(Way::Onramp))),
    ];
    let finding = Finding::of(question, "epoll_watches", Severity::Wall, have, demands);
    let value = round_up(finding.needed()).max(have.unwrap_or_default());
    Some(
        finding
            .why(
                "sockets that one user may watch by epoll; the pool, the load and the server's \
                 own pool watch each of theirs. Past it connections fail with errno 28 (ENOSPC)",
            )
            .settings(vec![Setting::Sysctl(
                "fs.epoll.max_user_watches",
                vec![value],
            )]),
    )
}
