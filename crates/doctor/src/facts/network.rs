//! Counts of the network stack: sockets, what was dropped since boot, connection tracking, ports.
//!
//! All are those of the network namespace that this process is in. Listeners are counted without
//! reading the table of a million connections behind them.

use super::Host;
use super::files::{Files, number};

/// `(name, count)` of what can be read.
pub(super) fn counts(files: &Files, host: &Host) -> Vec<(&'static str, Option<u64>)> {
    let text = |path: &str| files.text(path).unwrap_or_default();
    let sockets = text("/proc/net/sockstat");
    let tcp = |word: &str| after_word(&sockets, "TCP:", word);
    let extended = text("/proc/net/netstat");
    let seen = |name: &str| named(&extended, "TcpExt:", name);
    let range = host.sysctls.get("net.ipv4.ip_local_port_range");
    let range = range.and_then(|range| Some((*range.first()?, *range.last()?)));
    let reserved = text("/proc/sys/net/ipv4/ip_local_reserved_ports");
    vec![
        ("tcp_sockets", tcp("inuse")),
        ("tcp_orphans", tcp("orphan")),
        ("tcp_time_wait", tcp("tw")),
        ("tcp_memory_pages", tcp("mem")),
        (
            "connection_table_places",
            connection_table_places(&text("/proc/sys/net/ipv4/tcp_ehash_entries")),
        ),
        ("listen_overflows", seen("ListenOverflows")),
        ("listen_drops", seen("ListenDrops")),
        ("syn_queue_full_drops", seen("TCPReqQFullDrop")),
        ("syn_queue_full_cookies", seen("TCPReqQFullDoCookies")),
        ("time_wait_overflows", seen("TCPTimeWaitOverflow")),
        ("aborts_on_memory", seen("TCPAbortOnMemory")),
        (
            "backlog_drops",
            backlog_drops(&text("/proc/net/softnet_stat")),
        ),
        (
            "conntrack_entries",
            files.number("/proc/sys/net/netfilter/nf_conntrack_count"),
        ),
        (
            "ports_reserved",
            range.map(|range| reserved_in(&reserved, range)),
        ),
        (
            "ports_listening",
            range.map(|range| listening_in(&text_of_listeners(files), range)),
        ),
    ]
}

/// `TCP: inuse 5 orphan 0 tw 4`: the number behind `word`.
fn after_word(text: &str, line: &str, word: &str) -> Option<u64> {
    let rest = text.lines().find_map(|text| text.strip_prefix(line))?;
    let mut words = rest.split_whitespace().skip_while(|text| *text != word);
    number(words.nth(1)?)
}

/// The places of the kernel's table of connections, from the text of
/// `/proc/sys/net/ipv4/tcp_ehash_entries`. The number there is negative in a namespace that shares
/// the table of the machine's first network. `None` where there is no number, or none of places.
#[must_use]
pub fn connection_table_places(text: &str) -> Option<u64> {
    let places: i64 = text.trim().parse().ok()?;
    (places != 0).then_some(places.unsigned_abs())
}

/// A line of names, then a line of numbers, both behind the same word.
fn named(text: &str, line: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|text| text.strip_prefix(line));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|text| text == name)?;
    number(numbers.split_whitespace().nth(at)?)
}

/// The second column, in hexadecimal: packets dropped because a processor's backlog was full.
fn backlog_drops(text: &str) -> Option<u64> {
    let dropped = text
        .lines()
        .filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok());
    (!text.is_empty()).then(|| dropped.sum())
}

/// Number of ports of `8080,9000-9010` that are in the range.
fn reserved_in(text: &str, (first, last): (u64, u64)) -> u64 {
    let count = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u64, u64) = (number(from)?, number(to)?);
        Some((to.min(last) + 1).saturating_sub(from.max(first)))
    };
    text.trim().split(',').filter_map(count).sum()
}

/// The kernel lists listeners first, so the table of a million connections is not read.
fn text_of_listeners(files: &Files) -> String {
    use std::io::{BufRead, BufReader};
    let mut found = String::new();
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let Ok(file) = std::fs::File::open(files.path(path)) else {
            continue;
        };
        let lines = BufReader::new(file).lines().map_while(Result::ok).skip(1);
        for line in lines.take_while(|line| line.split_whitespace().nth(3) == Some("0A")) {
            found.push_str(&line);
            found.push('\n');
        }
    }
    found
}

/// Ports of the range that somebody listens on: the kernel does not give them to a client.
fn listening_in(lines: &str, (first, last): (u64, u64)) -> u64 {
    let port = |line: &str| {
        let (_, port) = line.split_whitespace().nth(1)?.rsplit_once(':')?;
        u64::from_str_radix(port, 16).ok()
    };
    let mut ports: Vec<u64> = lines.lines().filter_map(port).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
        .iter()
        .filter(|port| (first..=last).contains(port))
        .count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_by_name() {
        let sockets = "sockets: used 12\nTCP: inuse 5 orphan 1 tw 4 alloc 9 mem 3\n";
        assert_eq!(after_word(sockets, "TCP:", "tw"), Some(4));
        assert_eq!(after_word(sockets, "TCP:", "none"), None);
        let extended = "TcpExt: A ListenDrops B\nTcpExt: 1 27 3\nIpExt: ListenDrops\nIpExt: 9\n";
        assert_eq!(named(extended, "TcpExt:", "ListenDrops"), Some(27));
        assert_eq!(named(extended, "TcpExt:", "C"), None);
        let softnet = "005448c4 00000001 0\n0057fab5 0000001a 0\n";
        assert_eq!(backlog_drops(softnet), Some(27));
        assert_eq!(backlog_drops(""), None);
        assert_eq!(connection_table_places("262144\n"), Some(262_144));
        assert_eq!(
            connection_table_places("-262144\n"),
            Some(262_144),
            "shared with the host"
        );
        assert_eq!(connection_table_places(""), None, "a kernel before 6.1");
    }

    #[test]
    fn ports_that_are_not_for_clients_are_counted_in_the_range_only() {
        assert_eq!(
            reserved_in("80,32768-32777,40000,60999-61010\n", (32_768, 60_999)),
            12
        );
        assert_eq!(reserved_in("\n", (1, 2)), 0);
        let lines = "0: 0100007F:9C40 00000000:0000 0A\n1: 00000000:9C40 0:0 0A\n\
            2: 00000000:0CEA 0:0 0A\n";
        assert_eq!(listening_in(lines, (32_768, 60_999)), 1);
    }
}
