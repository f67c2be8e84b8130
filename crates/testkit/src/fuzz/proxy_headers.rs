//! PROXY headers: what they are found to be does not depend on how they arrive.
//!
//! What is taken for a header must be the same bytes whether they come one at a time or with the
//! login behind them; one byte more or less, and the login begins in the middle of an address.

use std::net::SocketAddr;
use wire::proxy_header::{ProxyHeader, Source, V1_LEN_MAX, V2_LEN_MAX};

/// Reads the first bytes of a connection.
pub(super) fn proxy_header(data: &[u8]) {
    let whole = ProxyHeader::read(data);
    // The first front part of which something is known decides for all.
    let cuts = (0..=data.len().min(V2_LEN_MAX)).map(|cut| ProxyHeader::read(&data[..cut]));
    let known = cuts
        .enumerate()
        .find(|(_, read)| *read != ProxyHeader::Partial);
    match known {
        None => {
            assert_eq!(whole, ProxyHeader::Partial);
            assert!(data.len() < V2_LEN_MAX, "more is waited for than is taken");
            let is_v1 = data.first() == Some(&b'P');
            assert!(!is_v1 || data.len() < V1_LEN_MAX);
        }
        Some((cut, read)) => {
            assert_eq!(read, whole, "the header depends on how the bytes arrive");
            if let ProxyHeader::Whole { len, source } = read {
                assert_eq!(len, cut, "it is known as soon as it is there");
                written_again(source);
            }
        }
    }
}

/// Checks that a header can be written in version 1 and read back.
fn written_again(source: Source) {
    let line = match source {
        Source::Unknown | Source::Unix => return,
        Source::Address(SocketAddr::V4(at)) => {
            format!("PROXY TCP4 {} 192.0.2.1 {} 1\r\n", at.ip(), at.port())
        }
        Source::Address(SocketAddr::V6(at)) => {
            assert_eq!(at.ip().to_ipv4_mapped(), None);
            format!("PROXY TCP6 {} ::1 {} 1\r\n", at.ip(), at.port())
        }
    };
    let len = line.len();
    let read = ProxyHeader::read(line.as_bytes());
    assert_eq!(read, ProxyHeader::Whole { len, source });
}
