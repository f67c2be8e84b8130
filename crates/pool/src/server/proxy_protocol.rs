//! The PROXY protocol towards the server: whose statements a backend runs.
//!
//! The problem: the server sees the pool's address behind every client, so USER(), the list of
//! processes and the host part of accounts say nothing of clients. The mechanism: each connection
//! to a server that takes headers begins with one ([`wire::proxy_header`]). A backend says the
//! address of its clients, which is a part of its pool's key; what the pool asks for itself says
//! that it speaks for itself.
//!
//! Invariant: where it is on, clients of different addresses have no backend in common.
//!
//! Source: MariaDB's and Percona Server's `proxy_protocol_networks`.

use std::net::IpAddr;
use wire::proxy_header::Version;

/// Header that connections to the server begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// None.
    Off,
    /// One of version 1.
    V1,
    /// One of version 2.
    V2,
}

impl ProxyProtocol {
    pub(crate) fn from_name(name: &str) -> Option<ProxyProtocol> {
        match name {
            "off" => Some(ProxyProtocol::Off),
            "v1" => Some(ProxyProtocol::V1),
            "v2" => Some(ProxyProtocol::V2),
            _ => None,
        }
    }

    /// True if the server is told clients' addresses.
    pub(crate) fn tells(self) -> bool {
        self != ProxyProtocol::Off
    }

    /// The first bytes of a connection for clients at this address; `None`: for the pool itself, or
    /// for clients that have none.
    pub(crate) fn header(self, client: Option<IpAddr>) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            ProxyProtocol::Off => {}
            ProxyProtocol::V1 => Version::V1.put(client, &mut out),
            ProxyProtocol::V2 => Version::V2.put(client, &mut out),
        }
        out
    }
}
