//! The host part of a server's account: which clients it means, and which account comes first.
//!
//! The problem: a server has `'app'@'%'` and `'app'@'10.1.%'` as two accounts, and lets the first
//! that fits decide. The mechanism: a [`HostPattern`] says whether it means a client
//! ([`HostPattern::matches`]) and how specific it is ([`HostPattern::rank`]).
//!
//! The rules were tried on MariaDB 10.11 and MySQL 9.7 (`tests/e2e/accounts.rs`). Of names only
//! `localhost` is known of a client: addresses are not looked up in the DNS, because a group waits
//! for nobody.

use std::net::{IpAddr, Ipv4Addr};

/// Host of a client, as accounts are matched with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientHost {
    /// Its address; `None`: a Unix socket.
    pub(crate) address: Option<IpAddr>,
    /// True for `localhost`: a Unix socket, or the loopback address where the server looks names
    /// up.
    pub(crate) is_localhost: bool,
}

impl ClientHost {
    /// Host of a client at this address; `names_hosts`: the server looks names up.
    pub(crate) fn of(address: Option<IpAddr>, names_hosts: bool) -> ClientHost {
        // An IPv4 client of an IPv6 listener.
        let address = address.map(|address| address.to_canonical());
        // Servers call these two so, whatever the name service says.
        let is_loopback = address.is_some_and(|address| match address {
            IpAddr::V4(address) => address == Ipv4Addr::LOCALHOST,
            IpAddr::V6(address) => address.is_loopback(),
        });
        ClientHost {
            address,
            is_localhost: address.is_none() || names_hosts && is_loopback,
        }
    }
}

/// Server whose rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostRules {
    MariaDb,
    MySql,
}

/// A host as an account has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostPattern {
    /// An IPv4 network: its address, and the bits that count.
    Network(u32, u32),
    /// A name or an address, with `%`, `_` and `\` as in LIKE.
    Like(Box<[u8]>),
}

/// Rank of a host by how specific it is; the greatest decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The empty text.
    Empty,
    /// `%`.
    Any,
    /// Pattern with wildcards. MySQL: how many characters stand in front of the first one; MariaDB:
    /// how many stand beside them.
    Pattern(usize),
    Name,
    /// MySQL: how many bits it has.
    Network(u32),
    /// MySQL: an address.
    Address,
}

impl HostPattern {
    /// Reads a host part. MySQL reads `ADDRESS/BITS` too.
    pub(crate) fn parse(host: &str, rules: HostRules) -> HostPattern {
        let network = host.split_once('/').and_then(|(address, mask)| {
            let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
            let mask = match (mask.parse::<Ipv4Addr>(), rules) {
                (Ok(mask), _) => u32::from(mask),
                (Err(_), HostRules::MariaDb) => return None,
                (Err(_), HostRules::MySql) => match mask.parse::<u32>().ok()? {
                    0 => 0,
                    bits @ 1..=32 => u32::MAX << (32 - bits),
                    _ => return None,
                },
            };
            Some(HostPattern::Network(address, mask))
        });
        network.unwrap_or_else(|| HostPattern::Like(host.as_bytes().into()))
    }

    /// True if it means a client there.
    pub(crate) fn matches(&self, host: &ClientHost) -> bool {
        match self {
            HostPattern::Network(network, mask) => match host.address {
                Some(IpAddr::V4(address)) => u32::from(address) & mask == *network,
                _ => false,
            },
            HostPattern::Like(pattern) => {
                let of_address =
                    |address: IpAddr| like_host(pattern, address.to_string().as_bytes());
                pattern.is_empty()
                    || host.is_localhost && like_host(pattern, b"localhost")
                    || host.address.is_some_and(of_address)
            }
        }
    }

    /// Rank of the pattern: of the accounts that fit, the one with the highest rank decides. Where
    /// two have the same, MariaDB takes the one whose text is the greater, `localhost` before
    /// `127.0.0.1`; MySQL's order depends on its history, and the pool takes the first of the
    /// table.
    pub(crate) fn rank(&self, rules: HostRules) -> Rank {
        let pattern = match (self, rules) {
            // Names, networks and addresses differ by their texts alone.
            (HostPattern::Network(..), HostRules::MariaDb) => return Rank::Name,
            (HostPattern::Network(_, mask), HostRules::MySql) => {
                return Rank::Network(mask.count_ones());
            }
            (HostPattern::Like(pattern), _) => pattern,
        };
        let (mut first, mut beside, mut at) = (None, 0, 0);
        while at < pattern.len() {
            match pattern[at] {
                b'%' | b'_' => first = first.or(Some(at)),
                b'\\' if at + 1 < pattern.len() => {
                    at += 1;
                    beside += 1;
                }
                _ => beside += 1,
            }
            at += 1;
        }
        let is_address = || {
            let text = std::str::from_utf8(pattern).ok();
            text.is_some_and(|text| text.parse::<IpAddr>().is_ok())
        };
        match (&pattern[..], first, rules) {
            (b"", ..) => Rank::Empty,
            (b"%", ..) => Rank::Any,
            (_, None, HostRules::MySql) if is_address() => Rank::Address,
            (_, None, _) => Rank::Name,
            (_, Some(first), HostRules::MySql) => Rank::Pattern(first),
            (_, Some(_), HostRules::MariaDb) => Rank::Pattern(beside),
        }
    }
}

/// True if a host is like a pattern, upper and lower case being the same.
fn like_host(pattern: &[u8], host: &[u8]) -> bool {
    like(pattern, host, u8::eq_ignore_ascii_case)
}

/// True if a text is like a pattern, where `is_same` says which bytes are the same. Takes at most
/// the product of their lengths, which are short.
pub(crate) fn like(pattern: &[u8], text: &[u8], is_same: fn(&u8, &u8) -> bool) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where the last `%` stands, and how much of the text it takes.
    let mut many: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some(b'%') => {
                many = Some((p, t));
                p += 1;
                continue;
            }
            Some(b'_') => Some(1),
            Some(b'\\') if p + 1 < pattern.len() => is_same(&pattern[p + 1], &text[t]).then_some(2),
            Some(byte) => is_same(byte, &text[t]).then_some(1),
            None => None,
        };
        match (step, &mut many) {
            (Some(step), _) => {
                p += step;
                t += 1;
            }
            (None, Some((at, taken))) => {
                *taken += 1;
                (p, t) = (*at + 1, *taken);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'%')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: &str) -> ClientHost {
        ClientHost::of(address.parse().ok(), true)
    }

    #[test]
    fn patterns_mean_addresses_networks_and_localhost() {
        let cases = [
            ("%", "10.1.2.3", true),
            ("", "10.1.2.3", true),
            ("10.1.%", "10.1.2.3", true),
            ("10.1.%", "10.11.2.3", false),
            ("10.1.2._", "10.1.2.3", true),
            ("10.1.2._", "10.1.2.34", false),
            ("10.1.2.\\_", "10.1.2.3", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "::ffff:10.1.2.3", true),
            ("10.1.0.0/255.255.0.0", "10.1.2.3", true),
            ("10.1.0.0/255.255.0.0", "10.2.2.3", false),
            // The network's own bits must be those of its address.
            ("10.1.2.3/255.255.0.0", "10.1.2.3", false),
            ("10.1.0.0/16", "10.1.2.3", true),
            ("10.1.0.0/33", "10.1.2.3", false),
            ("localhost", "127.0.0.1", true),
            ("LocalHost", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("localhost", "127.0.0.2", false),
            ("localhost", "::1", true),
            ("local%", "127.0.0.1", true),
            ("localhost", "a Unix socket", true),
            ("127.0.0.1", "a Unix socket", false),
            ("%", "a Unix socket", true),
            ("2001:db8::%", "2001:db8::7", true),
            ("db.example", "10.1.2.3", false),
        ];
        for (pattern, from, expected) in cases {
            let parsed = HostPattern::parse(pattern, HostRules::MySql);
            assert_eq!(parsed.matches(&host(from)), expected, "{pattern} {from}");
        }
        assert!(!HostPattern::parse("10.1.0.0/16", HostRules::MariaDb).matches(&host("10.1.2.3")));
        let unnamed = ClientHost::of("127.0.0.1".parse().ok(), false);
        assert!(!HostPattern::parse("localhost", HostRules::MySql).matches(&unnamed));
    }

    #[test]
    fn the_most_specific_comes_first() {
        let orders = [
            (
                HostRules::MySql,
                &[
                    "10.1.2.3",
                    "10.1.0.0/255.255.0.0",
                    "10.0.0.0/255.0.0.0",
                    "localhost",
                ][..],
                ["10.1.%", "10._.%", "1%", "%.1.2.3"],
            ),
            (
                HostRules::MariaDb,
                &["localhost"],
                ["%.1.2.3", "10.1.%", "10._.%", "1%"],
            ),
        ];
        for (rules, before, patterns) in orders {
            let all = before.iter().chain(&patterns).chain(&["%", ""]);
            let ranks: Vec<Rank> = all
                .map(|pattern| HostPattern::parse(pattern, rules).rank(rules))
                .collect();
            assert!(ranks.is_sorted_by(|a, b| a > b), "{rules:?}: {ranks:?}");
            let rank = |pattern| HostPattern::parse(pattern, rules).rank(rules);
            assert_eq!(rank("a\\_b"), Rank::Name);
            let is_name = |pattern| rank(pattern) == Rank::Name;
            let is_mariadb = rules == HostRules::MariaDb;
            assert_eq!(is_name("10.1.2.3"), is_mariadb);
            assert_eq!(is_name("10.1.0.0/255.255.0.0"), is_mariadb);
        }
    }

    #[test]
    fn a_pattern_takes_no_more_than_the_product_of_the_lengths() {
        let pattern = "%a".repeat(30) + "b";
        assert!(!like_host(pattern.as_bytes(), &[b'a'; 255]));
        assert!(like_host(b"%a%b%", b"xxaxxbxx"));
        assert!(!like_host(b"a", b""));
        assert!(like_host(b"%%", b""));
        assert!(like_host(b"a\\", b"a\\"));
    }
}
