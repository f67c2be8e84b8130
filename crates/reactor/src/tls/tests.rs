//! The server's side over a pair of sockets, against rustls's own client.
use super::*;
use crate::{Key, RealNet, Time, Token};
use rustls::client::ClientConnection;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConnection, SupportedProtocolVersion};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// Most that rustls takes from a socket before the caller has taken what was in it: 16 KiB of
/// plaintext, a record, and what it reads at once.
const READ_AHEAD_MAX: u64 = 40 * 1024;
const CERT: &[u8] = include_bytes!("../../../testkit/tls/cert.pem");
const KEY: &[u8] = include_bytes!("../../../testkit/tls/key.pem");

/// Hands over what either side has to say, until neither has more.
pub(crate) fn talk(client: &mut ClientConnection, server: &mut ServerConnection) {
    while client.wants_write() || server.wants_write() {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        while client.wants_write() {
            client.write_tls(&mut there).unwrap();
        }
        let mut there = &there[..];
        while !there.is_empty() {
            server.read_tls(&mut there).unwrap();
            server.process_new_packets().unwrap();
        }
        while server.wants_write() {
            server.write_tls(&mut back).unwrap();
        }
        let mut back = &back[..];
        while !back.is_empty() {
            client.read_tls(&mut back).unwrap();
            client.process_new_packets().unwrap();
        }
    }
}

/// A server with the certificate of tests.
pub(crate) fn server_config() -> ServerConfig {
    let cert = CertificateDer::from_pem_slice(CERT).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key);
    config.unwrap()
}

fn client_config(version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(CERT).unwrap())
        .unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn name() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

fn client(version: &'static SupportedProtocolVersion) -> ClientConnection {
    ClientConnection::new(client_config(version), name()).unwrap()
}

/// A client and what it talks to.
struct Pair {
    net: RealNet,
    sock: OwnedFd,
    tls: Tls,
    client: ClientConnection,
    far: UnixStream,
}

impl Pair {
    fn new(version: &'static SupportedProtocolVersion) -> Pair {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let mut net = RealNet::new().unwrap();
        let sock = OwnedFd::from(near);
        net.watch(&sock, Token::new(1, Key::from_parts(0, 0)))
            .unwrap();
        Pair {
            net,
            sock,
            tls: Tls::server(&Arc::new(server_config())).unwrap(),
            client: client(version),
            far,
        }
    }

    /// The client sends what it has; nobody reads it yet.
    fn send(&mut self) {
        while self.client.wants_write() {
            match self.client.write_tls(&mut self.far) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Lets the client take what has come; true when that was something.
    fn receive(&mut self) -> bool {
        let mut any = false;
        loop {
            match self.client.read_tls(&mut self.far) {
                Ok(0) => return any,
                Ok(_) => {
                    any = true;
                    self.client.process_new_packets().unwrap();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return any,
                // It holds enough of what the caller has not taken.
                Err(_) => return any,
            }
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Read {
        self.tls.read(&mut self.net, &self.sock, buffer)
    }

    fn shake(&mut self) {
        let mut buffer = [0; 16];
        while self.client.is_handshaking() || self.tls.is_handshaking() {
            self.send();
            assert!(matches!(self.read(&mut buffer), Read::Blocked));
            self.receive();
        }
    }

    fn says(&mut self, bytes: &[u8]) {
        self.client.writer().write_all(bytes).unwrap();
        self.send();
    }
}

/// Reads until there is nothing more, or to the end, which is `true`.
fn read_all(pair: &mut Pair, step: usize) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    let mut buffer = vec![0; step];
    loop {
        match pair.read(&mut buffer) {
            Read::Bytes(count) => {
                all.extend_from_slice(&buffer[..count]);
                // What a caller relies on: nothing is left behind a short read.
                if count < step && pair.tls.is_emptied() {
                    assert!(matches!(pair.read(&mut buffer), Read::Blocked));
                }
            }
            Read::Blocked => return (all, false),
            Read::End => return (all, true),
            Read::Failed(error) => panic!("{error}"),
        }
    }
}

#[test]
fn no_more_is_read_ahead_of_the_caller_than_its_bound() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version);
        pair.shake();
        for _ in 0..5 {
            pair.says(&[7; 30_000]);
        }
        let held = |pair: &Pair| rustix::io::ioctl_fionread(&pair.sock).unwrap();
        let sent = held(&pair);
        assert!(sent > 2 * READ_AHEAD_MAX, "{sent}");
        let mut byte = [0];
        assert!(matches!(pair.read(&mut byte), Read::Bytes(1)));
        let taken = sent - held(&pair);
        assert!(taken <= READ_AHEAD_MAX, "{taken} bytes for one");
        assert!(!pair.tls.is_emptied());
    }
}

/// The first message of a server, if it says that it has more than rustls takes.
#[test]
fn a_servers_handshake_is_bounded() {
    let (near, mut far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let mut net = RealNet::new().unwrap();
    let sock = OwnedFd::from(near);
    net.watch(&sock, Token::new(1, Key::from_parts(0, 0)))
        .unwrap();
    let mut tls = Tls::client(&client_config(&TLS13), name()).unwrap();
    // A record of the handshake, with a ServerHello of 64 KiB.
    far.write_all(&[22, 3, 3, 0, 4, 2, 1, 0, 0]).unwrap();
    let read = tls.read(&mut net, &sock, &mut [0; 16]);
    assert!(matches!(read, Read::Failed(_)), "{read:?}");
}

#[test]
fn bytes_go_both_ways_in_pieces_of_any_length() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version);
        pair.shake();
        let text: Vec<u8> = (0..50_000u32)
            .map(|n| u8::try_from(n % 251).unwrap_or(0))
            .collect();
        for step in [1, 7, 4096, 100_000] {
            pair.says(&text);
            assert_eq!(read_all(&mut pair, step), (text.clone(), false));
        }
        // Everything that was taken arrives, in order, whatever the socket has room for.
        let long: Vec<u8> = (0..3_000_000u32)
            .map(|n| u8::try_from(n / 7 % 251).unwrap_or(0))
            .collect();
        let (mut sent, mut received) = (0, Vec::new());
        while received.len() < long.len() {
            while sent < long.len() {
                let (net, sock) = (&mut pair.net, &pair.sock);
                match pair.tls.write(net, sock, &long[sent..]) {
                    Write::Bytes(count) => sent += count,
                    Write::Blocked => break,
                    Write::Failed(error) => panic!("{error}"),
                }
            }
            pair.receive();
            let mut buffer = vec![0; 100_000];
            while let Ok(count @ 1..) = pair.client.reader().read(&mut buffer) {
                received.extend_from_slice(&buffer[..count]);
            }
            pair.tls.flush(&mut pair.net, &pair.sock).unwrap();
        }
        assert!(received == long);
        assert!(!pair.tls.has_unsent());
    }
}

/// One segment may hold the end of the handshake and the first message.
#[test]
fn what_comes_with_the_end_of_the_handshake_is_read() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version);
        // TLS 1.2 lets the client go on when the server has finished, 1.3 before.
        pair.client.writer().write_all(b"login").unwrap();
        let mut buffer = [0; 64];
        loop {
            pair.send();
            if let Read::Bytes(count) = pair.read(&mut buffer) {
                assert_eq!(&buffer[..count], b"login");
                break;
            }
            pair.receive();
        }
    }
}

#[test]
fn the_handshake_may_come_byte_by_byte_and_partly_be_read_already() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version);
        let mut hello = Vec::new();
        pair.client.write_tls(&mut hello).unwrap();
        let rest = hello.split_off(100);
        let (net, sock) = (&mut pair.net, &pair.sock);
        pair.tls.take(net, sock, &hello).unwrap();
        for byte in rest {
            assert!(matches!(pair.read(&mut [0; 16]), Read::Blocked));
            pair.far.write_all(&[byte]).unwrap();
        }
        pair.shake();
        pair.says(b"x");
        assert_eq!(read_all(&mut pair, 10), (b"x".to_vec(), false));
    }
}

#[test]
fn nothing_is_written_before_the_handshake_is_over() {
    let mut pair = Pair::new(&TLS13);
    let (net, sock) = (&mut pair.net, &pair.sock);
    let written = pair.tls.write(net, sock, b"secret");
    assert!(matches!(written, Write::Failed(_)));
    assert!(!pair.tls.has_unsent());
}

#[test]
fn an_end_is_told_whether_it_was_announced_or_not() {
    for announced in [true, false] {
        let mut pair = Pair::new(&TLS13);
        pair.shake();
        pair.says(b"last");
        if announced {
            pair.client.send_close_notify();
            pair.send();
        } else {
            pair.far.shutdown(std::net::Shutdown::Write).unwrap();
        }
        assert_eq!(read_all(&mut pair, 4), (b"last".to_vec(), true));
    }
}

#[test]
fn the_peer_hears_that_nothing_more_will_come() {
    let mut pair = Pair::new(&TLS13);
    pair.shake();
    pair.tls.end(&mut pair.net, &pair.sock);
    pair.receive();
    assert!(matches!(pair.client.reader().read(&mut [0; 8]), Ok(0)));
}

#[test]
fn what_is_no_tls_fails_and_is_answered_with_an_alert() {
    let mut pair = Pair::new(&TLS13);
    pair.far.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let read = pair.read(&mut [0; 64]);
    assert!(matches!(read, Read::Failed(error) if error.kind() == ErrorKind::InvalidData));
    let mut alert = [0; 64];
    let count = pair.far.read(&mut alert).unwrap();
    assert_eq!(
        alert[0],
        21,
        "a record with an alert: {:?}",
        &alert[..count]
    );
    // A record that somebody has changed.
    let mut pair = Pair::new(&TLS13);
    pair.shake();
    let mut record = Vec::new();
    pair.client.writer().write_all(b"DROP").unwrap();
    pair.client.write_tls(&mut record).unwrap();
    *record.last_mut().unwrap() ^= 1;
    pair.far.write_all(&record).unwrap();
    assert!(matches!(pair.read(&mut [0; 64]), Read::Failed(_)));
}

/// A replayed record, as any that is out of order, ends the connection.
#[test]
fn a_record_is_taken_once() {
    let mut pair = Pair::new(&TLS13);
    pair.shake();
    let mut record = Vec::new();
    pair.client.writer().write_all(b"INSERT").unwrap();
    pair.client.write_tls(&mut record).unwrap();
    pair.far.write_all(&record).unwrap();
    assert_eq!(read_all(&mut pair, 64), (b"INSERT".to_vec(), false));
    pair.far.write_all(&record).unwrap();
    assert!(matches!(pair.read(&mut [0; 64]), Read::Failed(_)));
}

#[test]
fn keys_are_changed_when_the_peer_wants_that() {
    let mut pair = Pair::new(&TLS13);
    pair.shake();
    for round in 0..5u8 {
        pair.client.refresh_traffic_keys().unwrap();
        pair.says(&[round; 3]);
        assert_eq!(read_all(&mut pair, 64), (vec![round; 3], false));
        let (net, sock) = (&mut pair.net, &pair.sock);
        assert!(matches!(
            pair.tls.write(net, sock, &[round]),
            Write::Bytes(1)
        ));
        pair.receive();
        let mut buffer = [0; 8];
        assert_eq!(pair.client.reader().read(&mut buffer).unwrap(), 1);
    }
}

/// A peer that takes nothing: what is taken from the caller is bounded.
#[test]
fn ciphertext_that_waits_is_bounded() {
    let mut pair = Pair::new(&TLS13);
    pair.shake();
    let bytes = vec![1; 1 << 20];
    let mut taken = 0;
    loop {
        let (net, sock) = (&mut pair.net, &pair.sock);
        match pair.tls.write(net, sock, &bytes) {
            Write::Bytes(count) => {
                assert!(count <= WRITE_BYTES_MAX);
                taken += count;
            }
            Write::Blocked => break,
            Write::Failed(error) => panic!("{error}"),
        }
    }
    assert!(taken > 0);
    assert!(pair.tls.has_unsent());
    let Stage::Records(stream) = &pair.tls.stage else {
        panic!("{:?}", pair.tls)
    };
    assert!(
        stream.unsent_len() <= UNSENT_BYTES_MAX,
        "{}",
        stream.unsent_len()
    );
    let _ = pair.net.wait(Time::now(), &mut Vec::new());
}

/// An event of what comes between two reads may have been seen before the second.
#[test]
fn what_was_left_of_one_read_does_not_hide_what_has_come_since() {
    let mut pair = Pair::new(&TLS13);
    pair.shake();
    pair.says(b"0123456789");
    assert!(matches!(pair.read(&mut [0; 4]), Read::Bytes(4)));
    assert!(!pair.tls.is_emptied());
    pair.says(b"abc");
    let mut buffer = [0; 64];
    assert!(matches!(pair.read(&mut buffer), Read::Bytes(9)));
    assert_eq!(&buffer[..9], b"456789abc");
    assert!(pair.tls.is_emptied());
    // The same of a client's side, which has what rustls keeps.
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    let mut net = RealNet::new().unwrap();
    let sock = OwnedFd::from(near);
    let mut tls = Tls::client(&client_config(&TLS13), name()).unwrap();
    let server = server_config();
    let mut server = rustls::ServerConnection::new(Arc::new(server)).unwrap();
    while server.is_handshaking() || server.wants_write() {
        tls.flush(&mut net, &sock).unwrap();
        let _ = server.read_tls(&mut &far);
        server.process_new_packets().unwrap();
        while server.wants_write() {
            server.write_tls(&mut &far).unwrap();
        }
        assert!(matches!(tls.read(&mut net, &sock, &mut [0]), Read::Blocked));
    }
    let mut says = |text: &[u8]| {
        server.writer().write_all(text).unwrap();
        server.write_tls(&mut &far).unwrap();
    };
    says(b"0123456789");
    assert!(matches!(
        tls.read(&mut net, &sock, &mut [0; 4]),
        Read::Bytes(4)
    ));
    says(b"abc");
    assert!(matches!(
        tls.read(&mut net, &sock, &mut buffer),
        Read::Bytes(9)
    ));
    assert!(tls.is_emptied());
}

/// Between two messages there are keys and nothing else, however they have come.
#[test]
fn nothing_is_kept_between_two_messages() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version);
        pair.shake();
        assert_eq!(pair.tls.kept_bytes(), size_of::<Tls>());
        let mut records = Vec::new();
        for text in [&[1; 3][..], &[2; 20_000], &[3; 1]] {
            pair.client.writer().write_all(text).unwrap();
            while pair.client.wants_write() {
                pair.client.write_tls(&mut records).unwrap();
            }
        }
        let expected = [&[1; 3][..], &[2; 20_000], &[3; 1]].concat();
        // Byte by byte: each is taken from the socket at once, and what is kept is a record.
        let (mut got, mut buffer) = (Vec::new(), [0; 20_000]);
        for (at, byte) in records.iter().enumerate() {
            // All the bytes of one record on the way are two copies of it at most.
            assert!(pair.tls.kept_bytes() <= size_of::<Tls>() + stream::RECEIVED_MAX);
            pair.far.write_all(&[*byte]).unwrap();
            match pair.read(&mut buffer) {
                Read::Bytes(count) => got.extend_from_slice(&buffer[..count]),
                Read::Blocked => assert!(at + 1 < records.len()),
                other => panic!("{other:?}"),
            }
            assert!(pair.tls.is_emptied());
        }
        assert!(got == expected, "{}", got.len());
        assert_eq!(pair.tls.kept_bytes(), size_of::<Tls>());
        // All at once, for a caller with little room.
        pair.says(&expected);
        let (mut got, mut buffer) = (Vec::new(), [0; 100]);
        while got.len() < expected.len() {
            match pair.read(&mut buffer) {
                Read::Bytes(count) => got.extend_from_slice(&buffer[..count]),
                other => panic!("{other:?}"),
            }
            assert!(pair.tls.kept_bytes() <= size_of::<Tls>() + stream::RECEIVED_MAX + (1 << 14));
        }
        assert!(got == expected);
        assert!(matches!(pair.read(&mut buffer), Read::Blocked));
        assert_eq!(pair.tls.kept_bytes(), size_of::<Tls>());
    }
}

#[test]
fn what_came_in_front_of_a_fault_is_read_and_the_peer_is_told_once() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version);
        pair.shake();
        let mut records = Vec::new();
        for text in [b"good", b"evil"] {
            pair.client.writer().write_all(text).unwrap();
            pair.client.write_tls(&mut records).unwrap();
        }
        *records.last_mut().unwrap() ^= 1;
        records.extend_from_slice(&[23, 3, 3, 0, 40]);
        pair.far.write_all(&records).unwrap();
        let mut buffer = [0; 64];
        assert!(matches!(pair.read(&mut buffer), Read::Bytes(4)));
        assert!(!pair.tls.is_emptied());
        let failed = pair.read(&mut buffer);
        assert!(matches!(failed, Read::Failed(error) if error.kind() == ErrorKind::InvalidData));
        for _ in 0..2 {
            assert!(matches!(pair.read(&mut buffer), Read::End));
            let (net, sock) = (&mut pair.net, &pair.sock);
            assert!(matches!(pair.tls.write(net, sock, b"x"), Write::Failed(_)));
            pair.tls.end(net, sock);
        }
        pair.client.read_tls(&mut pair.far).unwrap();
        let alert = pair.client.process_new_packets().unwrap_err();
        let expected = rustls::AlertDescription::BadRecordMac;
        assert_eq!(alert, rustls::Error::AlertReceived(expected));
        let mut more = [0; 64];
        let nothing = pair.far.read(&mut more).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    }
}

/// A request of the peer while nothing can be sent to it is answered when it takes bytes again.
#[test]
fn an_update_is_answered_when_there_is_room() {
    let mut pair = Pair::new(&TLS13);
    pair.shake();
    let (mut said, mut received) = (0, 0);
    while !pair.tls.has_unsent() {
        match pair.tls.write(&mut pair.net, &pair.sock, &[1; 4096]) {
            Write::Bytes(count) => said += count,
            other => panic!("{other:?}"),
        }
    }
    pair.client.refresh_traffic_keys().unwrap();
    pair.says(b"x");
    assert_eq!(read_all(&mut pair, 16), (b"x".to_vec(), false));
    let mut buffer = vec![0; 1 << 16];
    loop {
        pair.receive();
        while let Ok(count @ 1..) = pair.client.reader().read(&mut buffer) {
            received += count;
        }
        if pair.tls.flush(&mut pair.net, &pair.sock).unwrap() && received == said {
            break;
        }
    }
    assert!(matches!(
        pair.tls.write(&mut pair.net, &pair.sock, b"y"),
        Write::Bytes(1)
    ));
    pair.receive();
    assert_eq!(pair.client.reader().read(&mut buffer).unwrap(), 1);
}

#[test]
fn no_secret_is_shown() {
    let mut pair = Pair::new(&TLS13);
    assert!(format!("{:?}", pair.tls).contains("Handshake"));
    pair.shake();
    let shown = format!("{:?}", pair.tls);
    assert!(
        !shown.contains("secret") && shown.contains("Keys at record 0"),
        "{shown}"
    );
}

/// Goes on in what stands for another process.
fn elsewhere(tls: &Tls) -> Tls {
    assert!(tls.may_go());
    let mut out = Vec::new();
    tls.put_record(&mut out);
    for len in (0..out.len()).step_by(7) {
        assert!(Tls::read_record(&out[..len]).is_none());
    }
    let there = Tls::read_record(&out).unwrap();
    out.push(0);
    assert!(Tls::read_record(&out).is_none());
    there
}

#[test]
fn a_connection_goes_on_elsewhere_with_what_it_has_half_read() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version);
        assert!(!pair.tls.may_go(), "a handshake");
        let mut nothing = Vec::new();
        pair.tls.put_record(&mut nothing);
        assert!(nothing.is_empty() && Tls::read_record(&nothing).is_none());
        pair.shake();
        pair.tls = elsewhere(&pair.tls);
        let mut buffer = [0; 64];
        for cut in 0..60 {
            // Two records; the first is read in part, the second has come in part.
            let mut records = Vec::new();
            for text in [b"a first record", b"another record"] {
                pair.client.writer().write_all(text).unwrap();
                pair.client.write_tls(&mut records).unwrap();
            }
            let cut = cut.min(records.len());
            pair.far.write_all(&records[..cut]).unwrap();
            let mut got = Vec::new();
            if let Read::Bytes(count) = pair.read(&mut buffer[..4]) {
                got.extend_from_slice(&buffer[..count]);
            }
            pair.tls = elsewhere(&pair.tls);
            pair.far.write_all(&records[cut..]).unwrap();
            loop {
                match pair.read(&mut buffer) {
                    Read::Bytes(count) => got.extend_from_slice(&buffer[..count]),
                    Read::Blocked => break,
                    other => panic!("{other:?}"),
                }
                pair.tls = elsewhere(&pair.tls);
            }
            assert_eq!(got, b"a first recordanother record", "{cut}");
            assert!(matches!(
                pair.tls.write(&mut pair.net, &pair.sock, b"answer"),
                Write::Bytes(6)
            ));
            pair.receive();
            let mut answer = [0; 8];
            assert_eq!(pair.client.reader().read(&mut answer).unwrap(), 6);
        }
        // With unsent bytes it stays.
        while !pair.tls.has_unsent() {
            let _ = pair.tls.write(&mut pair.net, &pair.sock, &[1; 30_000]);
        }
        assert!(!pair.tls.may_go());
        // At its end, too.
        let mut pair = Pair::new(version);
        pair.shake();
        pair.client.send_close_notify();
        pair.send();
        assert!(matches!(pair.read(&mut buffer), Read::End));
        assert!(!pair.tls.may_go());
    }
}

/// A client's certificate is asked for again when it changes its user.
#[test]
fn a_certificate_goes_along() {
    let mut pair = Pair::new(&TLS13);
    pair.shake();
    assert_eq!(elsewhere(&pair.tls).peer_certificate(), None);
    pair.tls.certificate = Some(vec![7; 900].into());
    let there = elsewhere(&pair.tls);
    assert_eq!(there.peer_certificate(), Some(&[7; 900][..]));
    assert_eq!(there.kept_bytes(), size_of::<Tls>() + 900);
    pair.tls.certificate = Some(vec![7; CERTIFICATE_BYTES_MAX + 1].into());
    let mut out = Vec::new();
    pair.tls.put_record(&mut out);
    assert!(Tls::read_record(&out).is_none());
}
