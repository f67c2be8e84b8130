//! The real network, on loopback: events, both address families, private tables.
use super::*;
use crate::Key;

fn token(index: u32) -> Token {
    Token::new(1, Key::from_parts(index, 0))
}

/// Waits for any event. Each comes once only, so tests look at the sockets, not at the events.
fn wait(net: &mut RealNet) {
    net.wait(
        Time::now() + std::time::Duration::from_secs(1),
        &mut Vec::new(),
    )
    .unwrap();
}

fn accept_one(net: &mut RealNet) -> OwnedFd {
    loop {
        if let Some(sock) = net.accept(0).unwrap() {
            return sock;
        }
        wait(net);
    }
}

fn read_some(net: &mut RealNet, sock: &OwnedFd, buffer: &mut [u8]) -> Read {
    loop {
        match net.read(sock, buffer) {
            Read::Blocked => wait(net),
            other => return other,
        }
    }
}

fn talk(net: &mut RealNet, client: &OwnedFd, server: &OwnedFd) {
    assert!(matches!(net.write(client, b"hello"), Write::Bytes(5)));
    let mut buffer = [0; 16];
    assert!(matches!(
        read_some(net, server, &mut buffer),
        Read::Bytes(5)
    ));
    assert_eq!(&buffer[..5], b"hello");
}

/// Access that the servers give to their sockets.
const EVERYBODY: socket::FileAccess = socket::FileAccess {
    mode: 0o777,
    owner: None,
    group: None,
};

#[test]
fn tcp_from_a_chosen_source_address() {
    let mut net = RealNet::new().unwrap();
    let (held, address) = socket::reserve(&"127.0.0.1:0".parse().unwrap()).unwrap();
    net.listen(&address, 8, token(0)).unwrap();
    drop(held);
    let client = net
        .connect_from(&Address::Tcp(address), Some([127, 0, 0, 9].into()))
        .unwrap();
    net.watch(&client, token(1)).unwrap();
    let server = accept_one(&mut net);
    net.watch(&server, token(2)).unwrap();
    let from: SocketAddr = rustix::net::getpeername(&server)
        .unwrap()
        .unwrap()
        .try_into()
        .unwrap();
    assert_eq!(from.ip().to_string(), "127.0.0.9");
    net.connected(&client).unwrap();
    talk(&mut net, &client, &server);
    drop(client);
    assert!(matches!(
        read_some(&mut net, &server, &mut [0; 8]),
        Read::End
    ));
}

#[test]
fn a_connection_that_was_reset_still_has_its_peer() {
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let mut net = RealNet::new().unwrap();
        let (held, address) = socket::reserve(&host.parse().unwrap()).unwrap();
        net.listen(&address, 8, token(0)).unwrap();
        drop(held);
        let client = net.connect(&Address::Tcp(address)).unwrap();
        let server = accept_one(&mut net);
        net.watch(&server, token(2)).unwrap();
        let peer = rustix::net::getsockname(&client).unwrap();
        let peer: Option<SocketAddr> = peer.try_into().ok();
        assert_eq!((net.peer(&server), peer.is_some()), (peer, true));
        net.reset_on_close(&client);
        drop(client);
        assert!(matches!(
            read_some(&mut net, &server, &mut [0; 8]),
            Read::Failed(_)
        ));
        assert!(rustix::net::getpeername(&server).is_err());
        assert_eq!(net.peer(&server), peer);
    }
}

#[test]
fn a_unix_listener_replaces_a_dead_socket_file_only() {
    let dir = std::env::temp_dir().join(format!("onramp-unix-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("s.sock");
    drop(socket::listen_unix(&path, EVERYBODY, 8).unwrap());
    // Also where it cannot listen in the end, a file is not left behind.
    let owner_gone = socket::FileAccess {
        owner: Some(u32::MAX - 1),
        ..EVERYBODY
    };
    let given = socket::listen_unix(&path, owner_gone, 8);
    assert_eq!(given.is_ok(), path.exists());
    drop(given);
    let listener = Arc::new(socket::listen_unix(&path, EVERYBODY, 8).unwrap());
    assert_eq!(
        socket::listen_unix(&path, EVERYBODY, 8).unwrap_err().kind(),
        io::ErrorKind::AddrInUse
    );
    let mut net = RealNet::new().unwrap();
    net.share(listener, token(0)).unwrap();
    drop(accept_one(&mut net)); // the question of the second listener, whether we live
    let client = net.connect(&Address::Unix(path)).unwrap();
    let server = accept_one(&mut net);
    net.watch(&server, token(2)).unwrap();
    talk(&mut net, &client, &server);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn an_address_in_use_is_seen_although_listeners_share() {
    let (held, address) = socket::reserve(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let _listener = socket::listen_tcp(&address, 8).unwrap();
    drop(held);
    let error = socket::reserve(&address).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn a_refused_connection_says_so() {
    let mut net = RealNet::new().unwrap();
    let (held, address) = socket::reserve(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let client = net.connect(&Address::Tcp(address)).unwrap();
    net.watch(&client, token(1)).unwrap();
    let mut events = Vec::new();
    while !events
        .iter()
        .any(|event: &Event| event.token == token(1) && event.closed)
    {
        net.wait(Time::NEVER, &mut events).unwrap();
    }
    let error = net.connected(&client).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    drop(held);
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let mut net = RealNet::new().unwrap();
    let deadline = Time::now() + std::time::Duration::from_millis(5);
    net.wait(deadline, &mut Vec::new()).unwrap();
    assert!(net.now() >= deadline);
}

#[test]
fn random_bytes_differ() {
    let mut net = RealNet::new().unwrap();
    let (mut a, mut b) = ([0; 20], [0; 20]);
    net.random(&mut a);
    net.random(&mut b);
    assert_ne!(a, b);
}
