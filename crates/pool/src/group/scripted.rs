//! World of tests whose sockets do what the test says, and what groups share.
//!
//! Parts of a group that write and read are tested without a group and without a kernel: all
//! sockets are one, bytes that are written are kept, bytes that come are put there by the test.

use crate::config::Raw;
use crate::group::shared::{Shared, Sizes};
use crate::server::facts::ServerFacts;
use reactor::{Address, Net, Read, Time, Token, Write};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use wire::auth::caching_sha2::KeyPair;

/// The world.
#[derive(Debug)]
pub(crate) struct Scripted {
    pub(crate) now: Time,
    /// Bytes that have been written.
    pub(crate) written: Vec<u8>,
    /// Bytes that may still be written.
    pub(crate) room: usize,
    /// Bytes that are to be read.
    pub(crate) incoming: Vec<u8>,
    /// Connections break when something is written, and cannot be opened.
    pub(crate) is_broken: bool,
    pub(crate) peer: Option<SocketAddr>,
}

impl Default for Scripted {
    fn default() -> Scripted {
        Scripted {
            now: Time(1_000_000_000),
            written: Vec::new(),
            room: usize::MAX,
            incoming: Vec::new(),
            is_broken: false,
            peer: None,
        }
    }
}

impl Net for Scripted {
    type Sock = ();

    fn now(&self) -> Time {
        self.now
    }

    fn accept(&mut self, _listener: usize) -> io::Result<Option<()>> {
        Ok(None)
    }

    fn connect(&mut self, _to: &Address) -> io::Result<()> {
        match self.is_broken {
            true => Err(ErrorKind::ConnectionRefused.into()),
            false => Ok(()),
        }
    }

    fn connected(&mut self, _sock: &()) -> io::Result<()> {
        Ok(())
    }

    fn watch(&mut self, _sock: &(), _token: Token) -> io::Result<()> {
        Ok(())
    }

    fn unwatch(&mut self, _sock: &()) -> io::Result<()> {
        Ok(())
    }

    fn read(&mut self, _sock: &(), buffer: &mut [u8]) -> Read {
        let len = buffer.len().min(self.incoming.len());
        if len == 0 {
            return Read::Blocked;
        }
        buffer[..len].copy_from_slice(&self.incoming[..len]);
        self.incoming.drain(..len);
        Read::Bytes(len)
    }

    fn write(&mut self, _sock: &(), bytes: &[u8]) -> Write {
        if self.is_broken {
            return Write::Failed(ErrorKind::ConnectionReset.into());
        }
        let len = bytes.len().min(self.room);
        if len == 0 {
            return Write::Blocked;
        }
        self.room -= len;
        self.written.extend_from_slice(&bytes[..len]);
        Write::Bytes(len)
    }

    fn random(&mut self, bytes: &mut [u8]) {
        bytes.fill(7);
    }

    fn peer(&self, _sock: &()) -> Option<SocketAddr> {
        self.peer
    }
}

/// State that one group shares with nobody, under these settings besides those that have to be
/// there.
pub(crate) fn shared(settings: &str) -> Shared {
    let text = format!(
        "listen = [\"127.0.0.1:6033\"]\ngroups = 1\n{settings}\n\
         [backend]\naddress = \"127.0.0.1:3306\"\n\
         [[user]]\nname = \"app\"\npassword = \"secret\"\n"
    );
    let settings = Raw::parse(&text).and_then(Raw::check).unwrap();
    let sizes = Sizes {
        groups: 1,
        cores: 1,
        clients_per_group: 100,
    };
    let keys = KeyPair::generate().unwrap();
    Shared::new(settings, ServerFacts::of_tests(), keys, sizes)
}

/// TLS 1.3 with AES of 128 bits, its counters, and the front of a record.
pub(crate) fn tls_record(suite: u8) -> Vec<u8> {
    let mut bytes = vec![1, 3, suite];
    for secret in [[3; 32], [4; 32]] {
        bytes.extend_from_slice(&secret);
        bytes.extend_from_slice(&7u64.to_be_bytes());
    }
    bytes.extend_from_slice(&99u64.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0]);
    for kept in [&[23, 3, 3][..], &[], &[]] {
        bytes.extend_from_slice(&(kept.len() as u64).to_be_bytes());
        bytes.extend_from_slice(kept);
    }
    bytes
}
