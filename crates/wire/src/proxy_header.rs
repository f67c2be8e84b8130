//! Headers of the PROXY protocol, versions 1 and 2: what a proxy in front says of its client.
//!
//! The problem: behind a proxy every connection comes from the proxy's address. The mechanism: the
//! proxy sends a header in front of the first byte of its client, once. [`ProxyHeader::read`] takes
//! the bytes that have come so far and says how long the header is and what it says, or that more
//! of it has to come, or why it is none. [`Version::put`] writes one, for a server that takes them.
//!
//! Invariants:
//! - what a front part of some bytes is found to be, header or not, all of them are found to be;
//! - no more than [`V1_LEN_MAX`] or [`V2_LEN_MAX`] bytes are ever waited for.
//!
//! The fields behind the addresses of version 2 (TLVs) are skipped. That includes the checksum
//! (PP2_TYPE_CRC32C), which only receivers that support it have to verify: TCP has its own.
//!
//! Source: "The PROXY protocol, versions 1 & 2" by HAProxy.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest header of version 1, as specified, with its CRLF.
pub const V1_LEN_MAX: usize = 107;
/// The longest header of version 2 that is taken. The specification allows 64 KiB; HAProxy's with
/// all its options (a Unix path, TLS, name of the certificate, SNI, unique id) stays below 1 KiB.
pub const V2_LEN_MAX: usize = 2048;

const V1_START: &[u8] = b"PROXY ";
const V2_START: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of a header of version 2 in front of the addresses.
const V2_FIXED_LEN: usize = 16;
const V2_LOCAL: u8 = 0x20;
const V2_PROXY: u8 = 0x21;
const V2_UNSPECIFIED: u8 = 0x00;
const V2_TCP4: u8 = 0x11;
const V2_TCP6: u8 = 0x21;
const V2_UNIX: u8 = 0x31;

/// The version of a header that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

impl Version {
    /// Appends the header for a client at this address; `None`: who connects speaks for itself
    /// (`UNKNOWN` in version 1, `LOCAL` in version 2).
    ///
    /// The ports are 0, and the destination is the unspecified address: several clients of one
    /// address share a connection, and what it says of the way to it is nobody's.
    pub fn put(self, client: Option<IpAddr>, out: &mut Vec<u8>) {
        match (self, client.map(|address| address.to_canonical())) {
            (Version::V1, None) => out.extend_from_slice(b"PROXY UNKNOWN\r\n"),
            (Version::V1, Some(IpAddr::V4(client))) => {
                let line = format!("PROXY TCP4 {client} {} 0 0\r\n", Ipv4Addr::UNSPECIFIED);
                out.extend_from_slice(line.as_bytes());
            }
            (Version::V1, Some(IpAddr::V6(client))) => {
                let line = format!("PROXY TCP6 {client} {} 0 0\r\n", Ipv6Addr::UNSPECIFIED);
                out.extend_from_slice(line.as_bytes());
            }
            (Version::V2, None) => {
                out.extend_from_slice(V2_START);
                out.extend_from_slice(&[V2_LOCAL, V2_UNSPECIFIED, 0, 0]);
            }
            (Version::V2, Some(IpAddr::V4(client))) => {
                out.extend_from_slice(V2_START);
                out.extend_from_slice(&[V2_PROXY, V2_TCP4, 0, 12]);
                out.extend_from_slice(&client.octets());
                out.extend_from_slice(&[0; 4 + 2 + 2]);
            }
            (Version::V2, Some(IpAddr::V6(client))) => {
                out.extend_from_slice(V2_START);
                out.extend_from_slice(&[V2_PROXY, V2_TCP6, 0, 36]);
                out.extend_from_slice(&client.octets());
                out.extend_from_slice(&[0; 16 + 2 + 2]);
            }
        }
    }
}

/// Origin of a connection, as a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A client at this address. An IPv4 address is never written as one of IPv6.
    Address(SocketAddr),
    /// The header names no client (`UNKNOWN`, `AF_UNSPEC`), or the proxy speaks for itself, as for
    /// a health check (`LOCAL`).
    Unknown,
    /// A Unix socket of the proxy's host.
    Unix,
}

/// Result of looking at the first bytes of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// The front part of a header, or nothing yet.
    Partial,
    /// A header of so many bytes; what follows is the client's.
    Whole {
        /// Its bytes.
        len: usize,
        /// Origin that it names.
        source: Source,
    },
    /// No header that is taken.
    Malformed(Malformed),
}

/// Reason for which bytes are no header that is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// First bytes of no header.
    Start,
    /// Line of version 1 without an end within its bound.
    LongLine,
    /// A line of version 1 that ends with LF alone, or has CR elsewhere.
    LineEnd,
    /// A line of version 1 with other content than it may have.
    Line(String),
    /// Another version than 2, or another command than LOCAL and PROXY.
    Command(u8),
    /// A family of addresses that a client of this protocol cannot have.
    Family(u8),
    /// Fewer bytes are announced than the addresses have.
    Short {
        /// Number of bytes that are announced.
        len: usize,
        /// Number of bytes that the addresses have.
        expected: usize,
    },
    /// More bytes are announced than are taken.
    Long(usize),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Start => f.write_str("the first bytes are those of no PROXY header"),
            Malformed::LongLine => write!(
                f,
                "the line of version 1 has no end within {V1_LEN_MAX} bytes"
            ),
            Malformed::LineEnd => f.write_str("the line of version 1 does not end with CR LF"),
            Malformed::Line(line) => write!(
                f,
                "expected PROXY TCP4|TCP6|UNKNOWN SOURCE DESTINATION PORT PORT, got '{}'",
                line.escape_debug()
            ),
            Malformed::Command(byte) => write!(
                f,
                "expected version 2 with the command LOCAL or PROXY (0x20, 0x21), got {byte:#04x}"
            ),
            Malformed::Family(byte) => write!(
                f,
                "expected a stream over IPv4, IPv6 or a Unix socket (0x11, 0x21, 0x31) or \
                 unspecified (0x00), got {byte:#04x}"
            ),
            Malformed::Short { len, expected } => write!(
                f,
                "expected {expected} bytes of addresses, got a length of {len}"
            ),
            Malformed::Long(len) => write!(
                f,
                "expected a header of {V2_LEN_MAX} bytes at most, got one of {len}"
            ),
        }
    }
}

impl ProxyHeader {
    /// Reads the first bytes of a connection, as far as they have come.
    #[must_use]
    pub fn read(bytes: &[u8]) -> ProxyHeader {
        let begins = |start: &[u8]| {
            let both = start.len().min(bytes.len());
            start[..both] == bytes[..both]
        };
        let read = if begins(V1_START) {
            read_v1(bytes)
        } else if begins(V2_START) {
            read_v2(bytes)
        } else {
            Err(Malformed::Start)
        };
        match read {
            Ok(Some((len, source))) => ProxyHeader::Whole { len, source },
            Ok(None) => ProxyHeader::Partial,
            Err(why) => ProxyHeader::Malformed(why),
        }
    }
}

/// A header's length and source; `None` while more of it has to come.
type Progress = Result<Option<(usize, Source)>, Malformed>;

fn read_v1(bytes: &[u8]) -> Progress {
    let window = &bytes[..bytes.len().min(V1_LEN_MAX)];
    let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
        return match window.len() {
            V1_LEN_MAX => Err(Malformed::LongLine),
            _ => Ok(None),
        };
    };
    let line = match window[..end].split_last() {
        Some((b'\r', line)) if !line.contains(&b'\r') => line,
        _ => return Err(Malformed::LineEnd),
    };
    let source = source_of_line(line)
        .ok_or_else(|| Malformed::Line(String::from_utf8_lossy(line).into_owned()))?;
    Ok(Some((end + 1, source)))
}

/// Origin in a line of version 1; `None` where it is not as specified.
fn source_of_line(line: &[u8]) -> Option<Source> {
    let text = std::str::from_utf8(line.strip_prefix(V1_START)?).ok()?;
    // Whatever follows that word is to be ignored.
    if text == "UNKNOWN" || text.starts_with("UNKNOWN ") {
        return Some(Source::Unknown);
    }
    let fields: Vec<&str> = text.split(' ').collect();
    let [family, source, destination, source_port, destination_port] = fields[..] else {
        return None;
    };
    let (source, destination): (IpAddr, IpAddr) = (source.parse().ok()?, destination.parse().ok()?);
    let is_of_family = |address: &IpAddr| match family {
        "TCP4" => address.is_ipv4(),
        "TCP6" => address.is_ipv6(),
        _ => false,
    };
    if !is_of_family(&source) || !is_of_family(&destination) {
        return None;
    }
    port(destination_port)?;
    Some(address(source, port(source_port)?))
}

/// A port in decimal digits without leading zeros.
fn port(text: &str) -> Option<u16> {
    let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_canonical)
}

fn address(source: IpAddr, port: u16) -> Source {
    Source::Address(SocketAddr::new(source.to_canonical(), port))
}

fn read_v2(bytes: &[u8]) -> Progress {
    let Some(command) = bytes.get(V2_START.len()) else {
        return Ok(None);
    };
    if !matches!(*command, V2_LOCAL | V2_PROXY) {
        return Err(Malformed::Command(*command));
    }
    let Some(fixed) = bytes.first_chunk::<V2_FIXED_LEN>() else {
        return Ok(None);
    };
    let announced = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    let len = V2_FIXED_LEN + announced;
    if len > V2_LEN_MAX {
        return Err(Malformed::Long(len));
    }
    let expected = match (*command, fixed[13]) {
        // Whatever stands there is to be ignored.
        (V2_LOCAL, _) | (_, V2_UNSPECIFIED) => 0,
        (_, V2_TCP4) => 12,
        (_, V2_TCP6) => 36,
        (_, V2_UNIX) => 216,
        (_, family) => return Err(Malformed::Family(family)),
    };
    if announced < expected {
        return Err(Malformed::Short {
            len: announced,
            expected,
        });
    }
    let Some(addresses) = bytes.get(V2_FIXED_LEN..len) else {
        return Ok(None);
    };
    let source = match (expected, addresses) {
        (12, [a, b, c, d, _, _, _, _, high, low, ..]) => address(
            Ipv4Addr::new(*a, *b, *c, *d).into(),
            u16::from_be_bytes([*high, *low]),
        ),
        (36, _) => match (addresses.first_chunk::<16>(), &addresses[32..]) {
            (Some(source), [high, low, ..]) => address(
                Ipv6Addr::from(*source).into(),
                u16::from_be_bytes([*high, *low]),
            ),
            _ => Source::Unknown,
        },
        (216, _) => Source::Unix,
        _ => Source::Unknown,
    };
    Ok(Some((len, source)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Source {
        Source::Address(text.parse().unwrap())
    }

    /// A header of version 2.
    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [V2_START, &[command, family], &len, rest].concat()
    }

    fn v2_tcp6(source: &str) -> Vec<u8> {
        let source: Ipv6Addr = source.parse().unwrap();
        let rest = [&source.octets()[..], &[0; 16], &[0x12, 0x34, 0x0c, 0xea]].concat();
        v2(V2_PROXY, V2_TCP6, &rest)
    }

    const TCP4: [u8; 12] = [192, 0, 2, 1, 192, 0, 2, 2, 0x12, 0x34, 0x0c, 0xea];

    /// Headers as specified, each with what it says.
    fn headers() -> Vec<(Vec<u8>, Source)> {
        // A checksum that is wrong, and a name.
        let tlvs = b"\x03\0\x04\xff\xff\xff\xff\x02\0\x04name";
        vec![
            (
                b"PROXY TCP4 192.0.2.1 192.0.2.2 4660 3306\r\n".to_vec(),
                at("192.0.2.1:4660"),
            ),
            (
                b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n".to_vec(),
                at("255.255.255.255:65535"),
            ),
            (
                b"PROXY TCP6 2001:db8::1 ::1 0 3306\r\n".to_vec(),
                at("[2001:db8::1]:0"),
            ),
            (
                b"PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n".to_vec(),
                at("192.0.2.1:1"),
            ),
            (b"PROXY UNKNOWN\r\n".to_vec(), Source::Unknown),
            (
                b"PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n".to_vec(),
                Source::Unknown,
            ),
            (v2(V2_PROXY, V2_TCP4, &TCP4), at("192.0.2.1:4660")),
            (
                v2(V2_PROXY, V2_TCP4, &[&TCP4[..], tlvs].concat()),
                at("192.0.2.1:4660"),
            ),
            (v2_tcp6("2001:db8::7"), at("[2001:db8::7]:4660")),
            (v2_tcp6("::ffff:192.0.2.1"), at("192.0.2.1:4660")),
            (v2(V2_PROXY, V2_UNIX, &[b'/'; 216]), Source::Unix),
            (v2(V2_PROXY, V2_UNSPECIFIED, b""), Source::Unknown),
            (v2(V2_PROXY, V2_UNSPECIFIED, tlvs), Source::Unknown),
            (v2(V2_LOCAL, V2_UNSPECIFIED, b""), Source::Unknown),
            // Addresses of a LOCAL connection are skipped, whatever they are.
            (v2(V2_LOCAL, V2_TCP4, &TCP4), Source::Unknown),
            (v2(V2_LOCAL, 0x77, b"abc"), Source::Unknown),
        ]
    }

    #[test]
    fn what_is_written_is_read_again() {
        let v4 = Some(IpAddr::from([192, 0, 2, 1]));
        let v6 = "2001:db8::7".parse().ok();
        let mapped = "::ffff:192.0.2.1".parse().ok();
        let cases = [
            (Version::V1, None, &b"PROXY UNKNOWN\r\n"[..]),
            (Version::V1, v4, b"PROXY TCP4 192.0.2.1 0.0.0.0 0 0\r\n"),
            (Version::V1, mapped, b"PROXY TCP4 192.0.2.1 0.0.0.0 0 0\r\n"),
            (Version::V1, v6, b"PROXY TCP6 2001:db8::7 :: 0 0\r\n"),
            (Version::V2, None, &v2(V2_LOCAL, 0, &[])),
            (
                Version::V2,
                v4,
                &v2(V2_PROXY, V2_TCP4, &[192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
            ),
        ];
        for (version, client, expected) in cases {
            let mut out = Vec::new();
            version.put(client, &mut out);
            assert_eq!(out, expected, "{version:?} {client:?}");
        }
        for (version, client) in [Version::V1, Version::V2].map(|version| (version, v6)) {
            let mut out = Vec::new();
            version.put(client, &mut out);
            let (len, source) = (out.len(), at("[2001:db8::7]:0"));
            assert_eq!(ProxyHeader::read(&out), ProxyHeader::Whole { len, source });
        }
    }

    #[test]
    fn headers_say_where_a_client_is_whatever_follows_them() {
        for (header, source) in headers() {
            let len = header.len();
            let whole = ProxyHeader::Whole { len, source };
            assert_eq!(ProxyHeader::read(&header), whole, "{header:02x?}");
            let more = [&header[..], b"\x20\0\0\x01 and what the client says\r\n"].concat();
            assert_eq!(ProxyHeader::read(&more), whole);
            for cut in 0..len {
                let read = ProxyHeader::read(&header[..cut]);
                assert_eq!(read, ProxyHeader::Partial, "{:02x?}", &header[..cut]);
            }
        }
    }

    #[test]
    fn what_is_no_header_is_known_by_the_first_byte_that_cannot_be_one() {
        let line = |text: &str| Malformed::Line(text.into());
        let cases: Vec<(Vec<u8>, Malformed)> = vec![
            (b"\x20".to_vec(), Malformed::Start),
            (b"PROXX".to_vec(), Malformed::Start),
            (b"PROXY\t".to_vec(), Malformed::Start),
            (b"\r\n\r\n\0\r\nQUIX".to_vec(), Malformed::Start),
            (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Malformed::Start),
            (b"PROXY UNKNOWN\n".to_vec(), Malformed::LineEnd),
            (b"PROXY \r\r\n".to_vec(), Malformed::LineEnd),
            (b"PROXY \r\n".to_vec(), line("PROXY ")),
            (b"PROXY UNKNOWNS\r\n".to_vec(), line("PROXY UNKNOWNS")),
            (v2(0x22, V2_TCP4, b""), Malformed::Command(0x22)),
            (v2(0x11, V2_TCP4, b""), Malformed::Command(0x11)),
            (v2(V2_PROXY, 0x12, &TCP4), Malformed::Family(0x12)),
            (v2(V2_PROXY, 0x41, &TCP4), Malformed::Family(0x41)),
        ];
        for (bytes, why) in cases {
            let read = ProxyHeader::read(&bytes);
            assert_eq!(read, ProxyHeader::Malformed(why), "{bytes:02x?}");
        }
        for fields in [
            "TCP4 192.0.2.1 192.0.2.2 1",
            "TCP4 192.0.2.1 192.0.2.2 1 2 3",
            "TCP4  192.0.2.1 192.0.2.2 1 2",
            "TCP4 192.0.2.01 192.0.2.2 1 2",
            "TCP4 192.0.2.256 192.0.2.2 1 2",
            "TCP4 192.0.2.1 192.0.2.2 65536 2",
            "TCP4 192.0.2.1 192.0.2.2 +1 2",
            "TCP4 192.0.2.1 192.0.2.2 01 2",
            "TCP4 192.0.2.1 192.0.2.2 1 ",
            "TCP4 192.0.2.1 ::1 1 2",
            "TCP4 ::1 ::1 1 2",
            "TCP6 192.0.2.1 192.0.2.2 1 2",
            "TCP6 fe80::1%eth0 ::1 1 2",
            "tcp4 192.0.2.1 192.0.2.2 1 2",
            "UDP4 192.0.2.1 192.0.2.2 1 2",
        ] {
            let bytes = format!("PROXY {fields}\r\n");
            let why = line(bytes.trim_end_matches("\r\n"));
            let read = ProxyHeader::read(bytes.as_bytes());
            assert_eq!(read, ProxyHeader::Malformed(why));
        }
    }

    #[test]
    fn a_line_of_version_1_is_as_long_as_specified_and_no_longer() {
        let line = |len: usize| {
            let fill = "x".repeat(len - "PROXY UNKNOWN \r\n".len());
            format!("PROXY UNKNOWN {fill}\r\n").into_bytes()
        };
        let (len, source) = (V1_LEN_MAX, Source::Unknown);
        assert_eq!(
            ProxyHeader::read(&line(V1_LEN_MAX)),
            ProxyHeader::Whole { len, source }
        );
        let long = line(V1_LEN_MAX + 1);
        let refused = ProxyHeader::Malformed(Malformed::LongLine);
        assert_eq!(ProxyHeader::read(&long), refused);
        assert_eq!(ProxyHeader::read(&long[..V1_LEN_MAX]), refused);
        let before = ProxyHeader::read(&long[..V1_LEN_MAX - 1]);
        assert_eq!(before, ProxyHeader::Partial);
    }

    #[test]
    fn a_header_of_version_2_has_a_bound_and_room_for_its_addresses() {
        let fits = v2(V2_LOCAL, V2_UNSPECIFIED, &[0; V2_LEN_MAX - V2_FIXED_LEN]);
        let (len, source) = (V2_LEN_MAX, Source::Unknown);
        assert_eq!(ProxyHeader::read(&fits), ProxyHeader::Whole { len, source });
        let long = v2(
            V2_LOCAL,
            V2_UNSPECIFIED,
            &[0; V2_LEN_MAX - V2_FIXED_LEN + 1],
        );
        let refused = ProxyHeader::Malformed(Malformed::Long(V2_LEN_MAX + 1));
        assert_eq!(ProxyHeader::read(&long[..V2_FIXED_LEN]), refused);
        for (family, expected) in [(V2_TCP4, 12), (V2_TCP6, 36), (V2_UNIX, 216)] {
            let len = expected - 1;
            let short = v2(V2_PROXY, family, &vec![0; len]);
            let refused = ProxyHeader::Malformed(Malformed::Short { len, expected });
            assert_eq!(ProxyHeader::read(&short[..V2_FIXED_LEN]), refused);
        }
    }
}
