//! Counters of the host's kernel: CPU, sockets, ports, retransmits, drops.
//!
//! A limit of the machine looks like a slow server. These are the figures that tell them apart,
//! read from /proc once a second. What cannot be read is left out of the page.

use serde::Serialize;
use std::fs;

/// One look at the host; counters are since the machine's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    /// Clock ticks of all cores: busy, and all.
    busy: u64,
    ticks: u64,
    segments_out: u64,
    retransmits: u64,
    /// Connections that a full queue of a listener refused.
    listen_drops: u64,
    /// Packets that were thrown away in front of a socket, for want of room or of time.
    packet_drops: u64,
}

/// Figures of the host for a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// CPU of the whole machine, 0 to 1.
    pub cpu_share: f64,
    /// TCP sockets that are open.
    pub tcp_open: u64,
    /// Sockets in TIME_WAIT.
    pub tcp_time_wait: u64,
    /// Sockets that belong to no process.
    pub tcp_orphans: u64,
    /// Memory of TCP's buffers.
    pub tcp_memory_bytes: u64,
    /// Local ports for outgoing connections, to one address of a server and from one of our own.
    pub ports: u64,
    /// Segments sent since the last look.
    pub segments_out: u64,
    /// Segments sent again since then.
    pub retransmits: u64,
    /// Connections that listeners have dropped since then.
    pub listen_drops: u64,
    /// Packets that were dropped since then.
    pub packet_drops: u64,
}

/// Looks at the host again and again.
#[derive(Debug, Default)]
pub struct Watch {
    last: Option<Sample>,
}

impl Watch {
    /// Figures of the host now, and its counts since the last look.
    pub fn look(&mut self) -> Host {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let snmp = read("/proc/net/snmp");
        let netstat = read("/proc/net/netstat");
        let (busy, ticks) = cpu(&read("/proc/stat"));
        let sample = Sample {
            busy,
            ticks,
            segments_out: named(&snmp, "Tcp:", "OutSegs"),
            retransmits: named(&snmp, "Tcp:", "RetransSegs"),
            listen_drops: named(&netstat, "TcpExt:", "ListenDrops"),
            packet_drops: dropped(&read("/proc/net/softnet_stat"))
                + named(&netstat, "TcpExt:", "TCPBacklogDrop")
                + named(&netstat, "TcpExt:", "TCPRcvQDrop"),
        };
        let last = self.last.replace(sample).unwrap_or(sample);
        let sockets = read("/proc/net/sockstat");
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let ticks = since(sample.ticks, last.ticks);
        Host {
            cpu_share: match ticks {
                0 => 0.0,
                ticks => since(sample.busy, last.busy) as f64 / ticks as f64,
            },
            tcp_open: socket_count(&sockets, "inuse"),
            tcp_time_wait: socket_count(&sockets, "tw"),
            tcp_orphans: socket_count(&sockets, "orphan"),
            tcp_memory_bytes: socket_count(&sockets, "mem")
                .saturating_mul(rustix::param::page_size() as u64),
            ports: ports(&read("/proc/sys/net/ipv4/ip_local_port_range")),
            segments_out: since(sample.segments_out, last.segments_out),
            retransmits: since(sample.retransmits, last.retransmits),
            listen_drops: since(sample.listen_drops, last.listen_drops),
            packet_drops: since(sample.packet_drops, last.packet_drops),
        }
    }
}

/// Ticks of all cores, busy and all, of /proc/stat.
fn cpu(text: &str) -> (u64, u64) {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "));
    let ticks: Vec<u64> = line
        .unwrap_or_default()
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guests are in user already.
    let all: u64 = ticks.iter().take(8).sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    (all.saturating_sub(idle), all)
}

/// A number of /proc/net/snmp or netstat: a line of names, then one of values.
fn named(text: &str, kind: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(kind));
    let names = lines.next().unwrap_or_default().split_whitespace();
    let values = lines.next().unwrap_or_default().split_whitespace();
    let mut both = names.zip(values);
    let found = both.find(|(known, _)| *known == name);
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// A number of the line on TCP in /proc/net/sockstat.
fn socket_count(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"));
    let mut words = line.unwrap_or_default().split_whitespace();
    let found = words.find(|word| *word == name);
    let value = found.and_then(|_| words.next());
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// Packets that the cores' queues had no room for: the second number of each line, hexadecimal.
fn dropped(text: &str) -> u64 {
    let second = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(second).sum()
}

/// Ports of /proc/sys/net/ipv4/ip_local_port_range.
fn ports(text: &str) -> u64 {
    let mut numbers = text
        .split_whitespace()
        .map_while(|word| word.parse::<u64>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(first), Some(last)) if last >= first => last - first + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        assert_eq!(cpu("cpu  10 1 20 60 9 0 0 0 5 0\ncpu0 1 1\n"), (31, 100));
        let snmp = "Ip: A\nIp: 1\nTcp: OutSegs RetransSegs\nTcp: 700 30\n";
        assert_eq!(named(snmp, "Tcp:", "RetransSegs"), 30);
        assert_eq!(named(snmp, "Tcp:", "Absent"), 0);
        let sockets = "sockets: used 71\nTCP: inuse 25 orphan 1 tw 4345 alloc 29 mem 78\n";
        assert_eq!(socket_count(sockets, "inuse"), 25);
        assert_eq!(socket_count(sockets, "tw"), 4345);
        assert_eq!(dropped("0001 0000000a 0\n0002 00000001 0\n"), 11);
        assert_eq!(ports("32768\t60999\n"), 28_232);
    }

    #[test]
    fn what_is_not_there_counts_as_nothing() {
        assert_eq!(cpu(""), (0, 0));
        assert_eq!(named("Tcp: OutSegs\n", "Tcp:", "OutSegs"), 0);
        assert_eq!(
            (socket_count("", "inuse"), dropped("x\n"), ports("")),
            (0, 0, 0)
        );
    }
}
