//! A connection's socket with what lies over it: TLS, and compressed frames inside of that.
//!
//! The problem: most connections are plain, and must cost no more than their socket; and what is
//! read from one under TLS says nothing about what its socket still holds. The mechanism:
//! [`Transport`] owns the socket and, in a box that plain connections do not have, the layers over
//! it. It reads and writes as [`Net`] does, under whatever layers there are but the frames, which
//! are made and taken apart by `client/compression.rs`.
//!
//! Invariant: [`Transport::is_readable`] is true for as long as something may be there to be read
//! without a further event, in the socket or in TLS. It is said here alone.

use crate::client::buffers::packing::Compression;
use crate::client::buffers::room::INPUT_FREE;
use reactor::tls::UNSENT_BYTES_MAX;
use reactor::{Event, Net, Read, Tls, Write};
use session::meter::{Charge, Meter};
use std::io;
use std::net::SocketAddr;

/// Steps of handshakes that a group makes in one turn.
pub(crate) const HANDSHAKES_PER_TURN: usize = 8;

/// A connection, plain or under TLS.
#[derive(Debug)]
pub(crate) struct Transport<S> {
    sock: S,
    /// More may be there to be read.
    readable: bool,
    /// True if the peer will send no more.
    ended: bool,
    /// True for a Unix socket.
    is_local: bool,
    layers: Option<Box<Layers>>,
}

/// Layers over the socket.
#[derive(Debug, Default)]
struct Layers {
    tls: Option<Box<TlsLayer>>,
    /// Compression, if there is any.
    compression: Option<Box<Compression>>,
    /// Address of the client, as the proxy in front says.
    client_address: Option<SocketAddr>,
}

/// TLS, and the bytes of memory that it takes where those are counted.
#[derive(Debug)]
struct TlsLayer {
    tls: Tls,
    charge: Charge,
}

/// Longest unpacked frame of which nothing is handled before all of it was right.
pub(crate) const CHECKED_MAX: usize = 64 * 1024;

/// Bound on all that a client behind a proxy has besides.
const _: () = assert!(size_of::<Layers>() <= 48);

impl<S> Transport<S> {
    /// A plain connection over this socket, which is a Unix socket if it is local.
    pub(crate) fn plain(sock: S, is_local: bool) -> Transport<S> {
        Transport {
            sock,
            readable: false,
            ended: false,
            is_local,
            layers: None,
        }
    }

    /// True if servers call it a secure transport: nobody between the two ends can listen.
    pub(crate) fn is_secure(&self) -> bool {
        self.is_local || self.is_tls()
    }

    /// True if the socket is a Unix socket.
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    /// Takes note of an event of its socket.
    pub(crate) fn note(&mut self, event: Event) {
        self.readable |= event.readable;
        self.ended |= event.closed;
    }

    /// Makes the next read look at the socket without an event.
    pub(crate) fn look_again(&mut self) {
        self.readable = true;
    }

    /// True if something may be there to be read.
    pub(crate) fn is_readable(&self) -> bool {
        self.readable
    }

    /// True if the peer will send no more.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The socket, to be watched and asked about.
    pub(crate) fn sock(&self) -> &S {
        &self.sock
    }

    /// Address of the peer, or of the client for whom it speaks; `None`: a Unix socket.
    pub(crate) fn peer<N: Net<Sock = S>>(&self, net: &N) -> Option<SocketAddr> {
        self.client_address().or_else(|| net.peer(&self.sock))
    }

    /// Address of the client by a PROXY header.
    pub(crate) fn client_address(&self) -> Option<SocketAddr> {
        self.layers.as_ref()?.client_address
    }

    /// Sets the address of the client behind a peer that is a proxy.
    pub(crate) fn set_client_address(&mut self, address: SocketAddr) {
        self.layers.get_or_insert_default().client_address = Some(address);
    }

    /// True if the client is on this host, so that nobody listens on the way from it. What a proxy
    /// says of its client's address tells nothing of that way.
    pub(crate) fn is_of_this_host<N: Net<Sock = S>>(&self, net: &N) -> bool {
        let is_loopback = || net.peer(&self.sock).is_some_and(|p| p.ip().is_loopback());
        self.client_address().is_none() && is_loopback()
    }

    fn tls(&self) -> Option<&Tls> {
        Some(&self.layers.as_ref()?.tls.as_ref()?.tls)
    }

    /// True if TLS has begun.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls().is_some()
    }

    /// Version and cipher of TLS, behind its handshake.
    pub(crate) fn tls_names(&self) -> Option<(&'static str, &'static str)> {
        self.tls()?.names()
    }

    /// The certificate that the peer has shown and that has passed the check, in DER.
    pub(crate) fn peer_certificate(&self) -> Option<&[u8]> {
        self.tls()?.peer_certificate()
    }

    /// True if it can be read: no handshake is under way, or one of the steps of those is left.
    pub(crate) fn takes_step(&self, handshakes_left: &mut usize) -> bool {
        let left = handshakes_left.checked_sub(usize::from(self.is_handshaking()));
        *handshakes_left = left.unwrap_or(0);
        left.is_some()
    }

    /// True if the handshake of TLS has begun and not ended.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls().is_some_and(Tls::is_handshaking)
    }

    /// True if bytes that were taken from the caller have not been sent yet.
    pub(crate) fn has_unsent(&self) -> bool {
        self.tls().is_some_and(Tls::has_unsent)
    }

    /// Number of bytes that wait for room in the socket: fewer than before say that the peer reads.
    pub(crate) fn unsent_len(&self) -> usize {
        self.tls().map_or(0, Tls::unsent_len)
    }

    /// Bytes of memory that what is unsent may take.
    pub(crate) fn unsent_bytes(&self) -> usize {
        match self.has_unsent() {
            true => UNSENT_BYTES_MAX,
            false => 0,
        }
    }

    /// Bytes of memory that TLS takes of a client, with what was read of an unfinished record, but
    /// without what is unsent.
    pub(crate) fn tls_bytes(&self) -> usize {
        self.tls().map_or(0, Tls::kept_bytes)
    }

    /// Puts TLS over the socket. `received` is what has been read behind the request for it: the
    /// first bytes of TLS, whatever they look like.
    pub(crate) fn begin_tls<N: Net<Sock = S>>(
        &mut self,
        net: &mut N,
        tls: Tls,
        received: &[u8],
    ) -> io::Result<()> {
        // Something may be there, in the socket or in what was received already.
        self.readable = true;
        let layer = put_tls(&mut self.layers, tls);
        layer.take(net, &self.sock, received)
    }

    /// Sends the request for TLS and begins it, as a client. `received` is what has been read
    /// behind the greeting.
    pub(crate) fn ask_for_tls<N: Net<Sock = S>>(
        &mut self,
        net: &mut N,
        request: &[u8],
        tls: Tls,
        received: &[u8],
    ) -> io::Result<()> {
        match net.write(&self.sock, request) {
            Write::Bytes(count) if count == request.len() => {}
            Write::Bytes(_) | Write::Blocked => {
                return Err(io::Error::other(
                    "a new connection has no room for the request for TLS",
                ));
            }
            Write::Failed(error) => return Err(error),
        }
        self.begin_tls(net, tls, received)?;
        self.flush(net).map(|_| ())
    }

    /// Reads into `buffer`, which is not empty.
    pub(crate) fn read<N: Net<Sock = S>>(&mut self, net: &mut N, buffer: &mut [u8]) -> Read {
        let (read, is_emptied) = match self.parts() {
            (sock, None) => (net.read(sock, buffer), true),
            (sock, Some(tls)) => (tls.read(net, sock, buffer), tls.is_emptied()),
        };
        // A short read has emptied the socket; an end or more bytes bring a new event.
        self.readable = match read {
            Read::Bytes(count) => count == buffer.len() || !is_emptied || self.ended,
            _ => false,
        };
        read
    }

    /// True if it can go to another process as it is; false of one that is not under TLS.
    pub(crate) fn tls_may_go(&self) -> bool {
        self.tls().is_some_and(Tls::may_go)
    }

    /// State of TLS for another process, keys too; `None`: it is not under TLS.
    pub(crate) fn tls_record(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.tls()?.put_record(&mut out);
        Some(out)
    }

    /// Goes on under TLS that has come from another process.
    pub(crate) fn set_tls(&mut self, tls: Tls) {
        // What has come with it tells of itself by no event.
        self.readable = true;
        put_tls(&mut self.layers, tls);
    }

    /// Counts [`Transport::tls_bytes`] until it is dropped.
    pub(crate) fn count_tls(&mut self, meter: &Meter) {
        if let Some(layer) = self.layers.as_mut().and_then(|layers| layers.tls.as_mut()) {
            layer.charge.set(meter, layer.tls.kept_bytes());
        }
    }

    /// Reads as [`Transport::read`], and counts anew what TLS takes.
    pub(crate) fn read_counted<N: Net<Sock = S>>(
        &mut self,
        net: &mut N,
        buffer: &mut [u8],
        meter: &Meter,
    ) -> Read {
        let read = self.read(net, buffer);
        self.count_tls(meter);
        read
    }

    /// Writes from `bytes`, which is not empty. Under TLS, some of what was taken may still have to
    /// be sent: see [`Transport::has_unsent`].
    pub(crate) fn write<N: Net<Sock = S>>(&mut self, net: &mut N, bytes: &[u8]) -> Write {
        match self.parts() {
            (sock, None) => net.write(sock, bytes),
            (sock, Some(tls)) => tls.write(net, sock, bytes),
        }
    }

    /// Sends what was taken and has not been sent; `false` where there is no room for all of it.
    pub(crate) fn flush<N: Net<Sock = S>>(&mut self, net: &mut N) -> io::Result<bool> {
        match self.parts() {
            (_, None) => Ok(true),
            (sock, Some(tls)) => tls.flush(net, sock),
        }
    }

    /// Tells the peer that nothing more will come, where there is a way to.
    pub(crate) fn end<N: Net<Sock = S>>(&mut self, net: &mut N) {
        if let (sock, Some(tls)) = self.parts() {
            tls.end(net, sock);
        }
    }

    fn parts(&mut self) -> (&S, Option<&mut Tls>) {
        let tls = match &mut self.layers {
            None => None,
            Some(layers) => layers.tls.as_mut().map(|layer| &mut layer.tls),
        };
        (&self.sock, tls)
    }

    /// Compression, if there is any.
    pub(crate) fn compression(&self) -> Option<&Compression> {
        self.layers.as_ref()?.compression.as_deref()
    }

    /// Compression, to be changed.
    pub(crate) fn compression_mut(&mut self) -> Option<&mut Compression> {
        self.layers.as_mut()?.compression.as_deref_mut()
    }

    /// True if its bytes come and go in frames.
    pub(crate) fn compresses(&self) -> bool {
        self.compression().is_some_and(|c| c.on)
    }

    /// True if what has been unpacked is not to be handled yet: its frame is not known to be right.
    pub(crate) fn withholds_input(&self) -> bool {
        let body = self.compression().and_then(|c| c.body.as_ref());
        body.is_some_and(|body| {
            let header = body.header();
            header.is_packed() && header.unpacked.max(header.sent) <= CHECKED_MAX
        })
    }

    /// True if the frame that is being unpacked is longer than what a client is read for nothing.
    pub(crate) fn unpacks_much(&self) -> bool {
        let body = self.compression().and_then(|c| c.body.as_ref());
        let header = body.map(|body| body.header());
        header.is_some_and(|header| header.is_packed() && header.unpacked > INPUT_FREE)
    }

    /// Keeps what was read together with the last packet of a login.
    pub(crate) fn keep_frames(&mut self, bytes: &[u8]) {
        if let Some(compression) = self.compression_mut() {
            compression.raw.extend_from_slice(bytes);
        }
    }

    /// Sets the compression that was agreed on at the login.
    pub(crate) fn set_compression(&mut self, agreed: Option<Box<Compression>>) {
        if agreed.is_some() || self.layers.is_some() {
            self.layers.get_or_insert_default().compression = agreed;
        }
    }
}

fn put_tls(layers: &mut Option<Box<Layers>>, tls: Tls) -> &mut Tls {
    let charge = Charge::default();
    let layer = Box::new(TlsLayer { tls, charge });
    &mut layers.get_or_insert_default().tls.insert(layer).tls
}
