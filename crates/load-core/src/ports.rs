//! Source addresses: where the ports for many connections come from.
//!
//! The problem: a connection is told from others by its two addresses and two ports, so one source
//! address gives at most as many connections to one server as there are local ports (28,232 by
//! default). The mechanism: where the server is on 127.0.0.0/8, every address of that network is
//! ours, and connections are dealt over 127.0.0.2, 127.0.0.3 and so on; elsewhere the user names
//! the addresses.
//!
//! One address is used up to nine tenths of its ports. Where more are needed each gives two fifths
//! of its ports only. The kernel's connect() looks at every second port first, and at the others
//! where none of those is free. With half of an address's ports in use it looks at thousands for
//! each connection: on Linux 6.18 a connection takes 35 to 40 us with up to two fifths of them in
//! use, 60 to 70 us up to half, and about 1,000 us beyond.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};

const RANGE_FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// The kernel's default, should the file not be readable.
const RANGE_DEFAULT: (u16, u16) = (32_768, 60_999);

/// Loopback addresses taken at most; with the default range that is for 900 million connections.
const ADDRESSES_MAX: u32 = 65_536;

/// The local ports and the addresses that connections are dealt over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// First and last local port.
    pub range: (u16, u16),
    /// Addresses used in turn; empty leaves the choice to the kernel.
    pub addresses: Vec<IpAddr>,
}

impl Sources {
    /// The sources for `connections` to a server; `given` are the user's own.
    pub fn choose(
        server: Option<IpAddr>,
        connections: u32,
        given: &[IpAddr],
        range: (u16, u16),
    ) -> Sources {
        let ports = ports_in(range);
        let addresses = match server {
            _ if !given.is_empty() => given.to_vec(),
            Some(IpAddr::V4(server)) if server.is_loopback() && connections > ports / 10 * 9 => {
                let wanted = connections.div_ceil((ports / 5 * 2).max(1));
                loopback_addresses(wanted)
            }
            _ => Vec::new(),
        };
        Sources { range, addresses }
    }

    /// Source address of connection number `index`; `None` leaves it to the kernel.
    pub fn of(&self, index: u64) -> Option<IpAddr> {
        let count = self.addresses.len() as u64;
        let at = index.checked_rem(count)?;
        self.addresses.get(usize::try_from(at).ok()?).copied()
    }

    /// The arithmetic, for whoever ran out of ports.
    pub fn arithmetic(&self) -> String {
        let (first, last) = self.range;
        let (ports, addresses) = (ports_in(self.range), self.addresses.len().max(1));
        let word = if addresses == 1 {
            "address"
        } else {
            "addresses"
        };
        format!(
            "{addresses} source {word} x {ports} local ports ({first} to {last}) = {} connections \
             to one server address at most",
            addresses as u64 * u64::from(ports)
        )
    }
}

/// The kernel's range of local ports.
pub fn local_range() -> (u16, u16) {
    fs::read_to_string(RANGE_FILE)
        .ok()
        .and_then(|text| parse_range(&text))
        .unwrap_or(RANGE_DEFAULT)
}

fn parse_range(text: &str) -> Option<(u16, u16)> {
    let mut numbers = text.split_ascii_whitespace();
    let (first, last) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    (first <= last).then_some((first, last))
}

fn ports_in((first, last): (u16, u16)) -> u32 {
    u32::from(last) - u32::from(first) + 1
}

/// 127.0.0.2 and what follows. 127.0.0.1 is left to everybody else.
fn loopback_addresses(count: u32) -> Vec<IpAddr> {
    let first = u32::from(Ipv4Addr::new(127, 0, 0, 2));
    let end = first + count.min(ADDRESSES_MAX);
    (first..end).map(|bits| IpAddr::V4(bits.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));

    fn count(server: Option<IpAddr>, connections: u32) -> usize {
        Sources::choose(server, connections, &[], RANGE_DEFAULT)
            .addresses
            .len()
    }

    #[test]
    fn more_addresses_are_taken_when_ports_run_short() {
        assert_eq!(count(LOOPBACK, 25_407), 0);
        assert_eq!(count(LOOPBACK, 25_408), 3);
        assert_eq!(count(LOOPBACK, 100_000), 9);
        assert_eq!(count(LOOPBACK, 1_000_000), 89);
        let far = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(
            count(far, 100_000),
            0,
            "only loopback addresses are ours to take"
        );
        assert_eq!(count(Some("::1".parse().unwrap()), 100_000), 0);
        assert_eq!(count(None, 100_000), 0);
    }

    #[test]
    fn connections_take_the_addresses_in_turn() {
        let sources = Sources::choose(LOOPBACK, 60_000, &[], RANGE_DEFAULT);
        let text: Vec<_> = (0..7).map(|i| sources.of(i).unwrap().to_string()).collect();
        assert_eq!(text[..3], ["127.0.0.2", "127.0.0.3", "127.0.0.4"]);
        assert_eq!(text[6], text[0]);
        assert_eq!(Sources::choose(LOOPBACK, 5, &[], RANGE_DEFAULT).of(3), None);
    }

    #[test]
    fn addresses_of_the_user_come_first() {
        let given = [IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9))];
        let sources = Sources::choose(LOOPBACK, 100_000, &given, RANGE_DEFAULT);
        assert_eq!(sources.addresses, given);
    }

    #[test]
    fn loopback_addresses_go_on_behind_the_first_256() {
        assert_eq!(loopback_addresses(u32::MAX).len(), 65_536);
        assert_eq!(loopback_addresses(300)[254].to_string(), "127.0.1.0");
    }

    #[test]
    fn the_arithmetic_is_said() {
        let sources = Sources::choose(LOOPBACK, 5, &[], RANGE_DEFAULT);
        assert_eq!(
            sources.arithmetic(),
            "1 source address x 28232 local ports (32768 to 60999) = 28232 connections to one \
             server address at most"
        );
        assert_eq!(parse_range("1024\t65535\n"), Some((1024, 65_535)));
        assert_eq!(parse_range("9 1"), None);
        let (first, last) = local_range();
        assert!(first < last);
    }
}
