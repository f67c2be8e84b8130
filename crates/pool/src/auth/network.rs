//! Networks of addresses, as settings name them.
//!
//! The problem: which peers are trusted is said by address or network (`192.0.2.1`, `10.0.0.0/8`,
//! `2001:db8::/32`). The mechanism: [`Network`] reads that and says whether an address is in it.
//! Names are left out: a group looks nothing up.

use std::fmt;
use std::net::IpAddr;

/// An address, or all that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

/// An address as a number, and how many bits its family has.
fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (address.to_bits().into(), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

impl Network {
    /// Reads an address or `ADDRESS/BITS`. Bits behind those that count must be zero: where they
    /// are not, a mistake is more likely than a wish.
    pub(crate) fn parse(text: &str) -> Result<Network, String> {
        let expected = || format!("expected an address or a network as 10.0.0.0/8, got '{text}'");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let (value, width) = number(address);
        let bits = match bits {
            None => width,
            Some(bits) => bits.parse().map_err(|_| expected())?,
        };
        if bits > width {
            return Err(format!("'{text}': at most {width} bits are possible"));
        }
        let network = Network { address, bits };
        if value != network.front_of(value, width) {
            return Err(format!(
                "'{text}': bits behind the first {bits} are not zero"
            ));
        }
        Ok(network)
    }

    /// The bits that count.
    fn front_of(&self, value: u128, width: u32) -> u128 {
        let behind = width - self.bits;
        let shifted = value.checked_shr(behind).unwrap_or(0);
        shifted.checked_shl(behind).unwrap_or(0)
    }

    /// True if an address is in it. An IPv4 client of an IPv6 listener has its IPv4 address.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let (value, width) = number(address.to_canonical());
        let (own, own_width) = number(self.address);
        width == own_width && self.front_of(value, width) == own
    }

    /// True if it has addresses of this host's loopback only.
    pub(crate) fn is_loopback(&self) -> bool {
        self.address.is_loopback()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_begin_with_its_bits() {
        for (network, address, expected) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("192.0.2.128/25", "192.0.2.127", false),
            ("192.0.2.128/25", "192.0.2.255", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "203.0.113.9", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::1", "::1", true),
            ("::1", "::2", false),
        ] {
            let parsed = Network::parse(network).unwrap();
            let address = address.parse().unwrap();
            assert_eq!(parsed.contains(address), expected, "{network} {address}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused_in_words() {
        for (text, words) in [
            ("", "expected an address"),
            ("proxy.example", "expected an address"),
            ("10.0.0.0/", "expected an address"),
            ("10.0.0.0/255.0.0.0", "expected an address"),
            ("10.0.0.0/-1", "expected an address"),
            ("10.0.0.0/33", "at most 32 bits"),
            ("::/129", "at most 128 bits"),
            ("10.0.0.1/8", "bits behind the first 8 are not zero"),
        ] {
            let why = Network::parse(text).unwrap_err();
            assert!(why.contains(words) && why.contains(text), "{why}");
        }
    }
}
