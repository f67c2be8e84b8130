//! The PROXY protocol in front of the pool: headers by hand in every form and cut, and HAProxy.

use crate::world::*;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command as Program, Stdio};
use testkit::client::ANSWER_MAX;
use testkit::talk::USUAL;
use wire::errors::HANDSHAKE;
use wire::handshake::{Greeting, Login};

const V1: &[u8] = b"PROXY TCP4 192.0.2.1 192.0.2.2 4660 3306\r\n";
const FROM_LOOPBACK: &str = "proxy_protocol_networks = [\"127.0.0.1\", \"2001:db8::/32\"]\n";

/// A header of version 2.
fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
    let start = b"\r\n\r\n\0\r\nQUIT\n";
    [start, &[command, family][..], &len, rest].concat()
}

fn v2_tcp4() -> Vec<u8> {
    let addresses = [192, 0, 2, 1, 192, 0, 2, 2, 0x12, 0x34, 0x0c, 0xea];
    // A checksum, which is skipped, and a name.
    let tlvs = b"\x03\0\x04\0\0\0\0\x02\0\x04name";
    v2(0x21, 0x11, &[&addresses[..], tlvs].concat())
}

fn v2_tcp6() -> Vec<u8> {
    let source = "2001:db8::7".parse::<std::net::Ipv6Addr>().unwrap();
    let rest = [&source.octets()[..], &[0; 16], &[0x12, 0x34, 0x0c, 0xea]].concat();
    v2(0x21, 0x21, &rest)
}

/// A connection to the pool from this address of the host.
pub(crate) fn connected(pool: &Address, last: u8) -> TcpStream {
    let source = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    let stream = TcpStream::from(reactor::socket::dial(pool, Some(source)).unwrap());
    stream.set_nonblocking(false).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
    stream
}

/// A proxy that sends a header in front of what its clients say, in pieces of so many bytes.
fn front(pool: &Address, header: &[u8], piece: usize) -> Address {
    let pieces = header.chunks(piece).map(<[u8]>::to_vec);
    testkit::relay::start(tcp(pool), pieces.collect(), |_, _, _| {})
}

/// A packet: its sequence number and its payload.
pub(crate) fn packet(stream: &mut impl Read) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let len = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let mut payload = vec![0; len as usize];
    stream.read_exact(&mut payload).ok()?;
    Some((header[3], payload))
}

/// The words of the error with this number that is the next packet, and the last one.
fn refusal(stream: &mut TcpStream, seq: u8) -> String {
    let (got, payload) = packet(stream).unwrap();
    assert_eq!(got, seq, "{payload:02x?}");
    assert_eq!(payload[0], 0xff, "an error: {payload:02x?}");
    assert_eq!(payload[1..3], HANDSHAKE.code.to_le_bytes());
    assert!(packet(stream).is_none(), "the connection is closed");
    String::from_utf8_lossy(&payload[3..]).into_owned()
}

#[test]
fn a_header_says_where_the_client_is() {
    pooled_servers().for_each(says_where_the_client_is);
}

fn says_where_the_client_is(real: &Real) {
    let pool = fresh_pool(real, &format!("groups = 1\n{FROM_LOOPBACK}"));
    let own = "127.0.0.1:";
    let unix = v2(0x21, 0x31, &[b'/'; 216]);
    let own_v6 = b"PROXY TCP6 2001:db8::7 ::1 4660 3306\r\n";
    let mapped = b"PROXY TCP6 ::ffff:192.0.2.1 ::1 4660 3306\r\n";
    let forms: [(&[u8], &str); 9] = [
        (V1, "192.0.2.1:4660"),
        (own_v6, "[2001:db8::7]:4660"),
        (mapped, "192.0.2.1:4660"),
        (&v2_tcp4(), "192.0.2.1:4660"),
        (&v2_tcp6(), "[2001:db8::7]:4660"),
        // The proxy speaks for itself, or does not say for whom.
        (b"PROXY UNKNOWN\r\n", own),
        (&v2(0x20, 0, b""), own),
        (&v2(0x21, 0, b"\x03\0\x04\0\0\0\0"), own),
        (&unix, own),
    ];
    for (header, expected) in forms {
        for piece in [header.len(), 1, 5] {
            let front = front(&pool.address, header, piece);
            let mut client = login(&front, &app());
            assert_eq!(client.value("SELECT 1"), "1");
            let id = client.talk().greeting.as_ref().unwrap().connection_id;
            let line = pool.report_of(id).unwrap();
            says(&line, &format!("client={expected}"));
        }
    }
    // Who is refused is named by the same address.
    let front = front(&pool.address, &v2_tcp4(), 1);
    for account in ["app", "nobody"].map(|user| Account::new(user, "guess")) {
        let failure = crate::world::refusal(&front, &account);
        let words = format!("Access denied for user '{}'@'192.0.2.1'", account.user);
        assert!(failure.message.contains(&words), "{}", failure.message);
        logs(&pool, &words, "event=login-failed client=192.0.2.1:4660 ");
    }
}

/// A pool that takes headers from 127.0.0.1.
fn pool_behind_proxies(more: &str) -> Option<Pool> {
    let extra = format!("groups = 1\n{FROM_LOOPBACK}{more}");
    pooled(server).map(|real| fresh_pool(real, &extra))
}

/// A login that needs no nonce.
fn bare_login() -> Vec<u8> {
    let mut out = Vec::new();
    Login {
        capabilities: USUAL,
        collation: 45,
        user: b"bare",
        answer: b"",
        schema: b"",
        plugin: b"mysql_native_password",
        zstd_level: 3,
        extended: 0,
    }
    .put(&mut out, 1);
    out
}

#[test]
fn a_header_and_the_login_may_come_in_one_write_or_in_any_pieces() {
    let pool = or_return!(pool_behind_proxies(""));
    for header in [V1.to_vec(), v2_tcp4(), v2(0x20, 0, b"")] {
        // And a COM_PING behind them.
        let bytes = [&header[..], &bare_login(), b"\x01\0\0\0\x0e"].concat();
        for piece in [bytes.len(), 1, 7, header.len() + 1] {
            let mut stream = connected(&pool.address, 1);
            for piece in bytes.chunks(piece) {
                stream.write_all(piece).unwrap();
            }
            let (seq, greeting) = packet(&mut stream).unwrap();
            assert_eq!(seq, 0);
            Greeting::read(&greeting).unwrap();
            for (number, command) in [(2, "the login"), (1, "the ping")] {
                let (seq, answer) = packet(&mut stream).unwrap();
                assert_eq!((seq, answer[0]), (number, 0), "{command}: {answer:02x?}");
            }
        }
    }
}

#[test]
fn from_a_listed_network_a_header_is_required_and_one_that_is_none_is_named() {
    let pool = or_return!(pool_behind_proxies(""));
    let long_line = [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 200]].concat();
    let long = [&v2(0x21, 0x11, b"")[..14], b"\xff\xff"].concat();
    let cases: [(&[u8], &str); 7] = [
        (&bare_login(), "the first bytes are those of no"),
        (b"GET / HTTP/1.1\r\n", "the first bytes are those of no"),
        (b"PROXY TCP4 192.0.2.1\r\n", "got 'PROXY TCP4 192.0.2.1'"),
        (&long_line, "no end within 107 bytes"),
        (&long, "expected a header of 2048 bytes at most"),
        (&v2(0x21, 0x11, b"short"), "expected 12 bytes of addresses"),
        (&v2(0x2f, 0x11, b""), "expected version 2"),
    ];
    for (bytes, words) in cases {
        let mut stream = connected(&pool.address, 1);
        stream.write_all(bytes).unwrap();
        let said = refusal(&mut stream, 0);
        says(&said, "expected a PROXY header from this address");
        says(&said, words);
        let line = pool.wait_for(words).unwrap();
        let facts = "event=login-refused client=127.0.0.1:";
        says(&line, facts);
        says(&line, " reason=proxy-header ");
    }
    // One header is all that a proxy can say.
    let mut stream = connected(&pool.address, 1);
    stream.write_all(V1).unwrap();
    packet(&mut stream).unwrap();
    stream.write_all(V1).unwrap();
    let said = refusal(&mut stream, 1);
    assert!(said.contains("which the pool takes once"), "{said}");
}

#[test]
fn a_header_from_elsewhere_is_refused_and_clients_there_need_none() {
    let pool = or_return!(pool_behind_proxies(""));
    for header in [V1.to_vec(), v2_tcp4()] {
        let mut stream = connected(&pool.address, 2);
        packet(&mut stream).unwrap();
        stream.write_all(&header).unwrap();
        let said = refusal(&mut stream, 1);
        let words = "from proxy_protocol_networks only: name the proxy's address there";
        assert!(said.contains(words), "{said}");
    }
    logs(&pool, " reason=proxy-header ", " client=127.0.0.2:");
    let mut stream = connected(&pool.address, 2);
    packet(&mut stream).unwrap();
    stream.write_all(&bare_login()).unwrap();
    assert_eq!(packet(&mut stream).unwrap().1[0], 0, "it gets in");
}

#[test]
fn who_does_not_send_its_header_is_not_greeted_and_ended_in_time() {
    let pool = or_return!(pool_behind_proxies("login_ms_max = 1500"));
    // A probe that connects and closes is not worth a line.
    drop(connected(&pool.address, 1));
    let part = v2_tcp4();
    for sent in [&b""[..], &V1[..20], &part[..15]] {
        let mut stream = connected(&pool.address, 1);
        stream.write_all(sent).unwrap();
        let said = refusal(&mut stream, 0);
        assert!(said.contains("none came in login_ms_max"), "{said}");
        assert!(said.contains("AWS Network Load Balancers"), "{said}");
    }
    pool.terminate();
    let (_, said) = pool.wait();
    assert_eq!(said.matches("reason=proxy-header").count(), 3, "{said}");
}

#[test]
fn host_patterns_of_accounts_are_matched_with_the_header() {
    own_servers(&[]).for_each(|real| host_patterns_are_matched_with_the_header(&real));
}

/// The account that a name means is decided by the header's address.
fn host_patterns_are_matched_with_the_header(real: &Real) {
    let (select, by) = match real.flavour() {
        Flavour::MariaDb => ("mysql.global_priv", "IDENTIFIED BY"),
        Flavour::MySql => ("mysql.user", "IDENTIFIED WITH caching_sha2_password BY"),
    };
    real.execute(&[
        "CREATE USER watcher@'%' IDENTIFIED BY 'watching'",
        &format!("GRANT SELECT ON {select} TO watcher@'%'"),
        &format!("CREATE USER near@'192.0.2.%' {by} 'inside'"),
        &format!("CREATE USER near@'%' {by} 'outside'"),
    ]);
    let text = format!(
        "auth = \"server\"\ngroups = 1\n{FROM_LOOPBACK}[backend]\naddress = \"{}\"\n\
         monitor_user = \"watcher\"\nmonitor_password = \"watching\"\n",
        real.address()
    );
    let pool = pool_from(real, &text);
    let plugin = match real.flavour() {
        Flavour::MariaDb => wire::auth::Plugin::Native,
        Flavour::MySql => wire::auth::Plugin::CachingSha2,
    };
    let inside = front(&pool.address, V1, V1.len());
    let elsewhere = b"PROXY TCP4 203.0.113.9 192.0.2.2 1 2\r\n";
    let outside = front(&pool.address, elsewhere, elsewhere.len());
    let heard = |front: &Address, password: &str| {
        let account = Account::new("near", password).plugin(plugin);
        match Client::connect(front, &account) {
            Ok(mut client) => match &client.query("SELECT CURRENT_USER()").unwrap()[..] {
                [Outcome::Failed(failure)] => failure.message.clone(),
                [outcome] => outcome.rows().only(),
                other => panic!("{other:?}"),
            },
            Err(other) => other.to_string(),
        }
    };
    assert_eq!(heard(&outside, "outside"), "near@%");
    let denied = heard(&outside, "inside");
    assert!(denied.contains("'near'@'203.0.113.9'"), "{denied}");
    let denied = heard(&inside, "outside");
    assert!(denied.contains("'near'@'192.0.2.1'"), "{denied}");
    // The password is right; the server itself sees the pool's address, from where the name is
    // another account with another password.
    let other = heard(&inside, "inside");
    let expected = "the server refused the pool's login";
    assert!(other.contains(expected), "{other}");
}

/// Starts it with a listener that is there already, in front of the pool. It connects from
/// 127.0.0.9 and checks the pool all the time.
fn haproxy(folder: &Path, pool: &Address, option: &str) -> Option<(Ended, Address)> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let text = format!(
        "defaults\n mode tcp\n timeout connect 60s\n timeout client 60s\n timeout server 60s\n\
         listen pool\n bind fd@0\n \
         server pool {} source 127.0.0.9 {option} check inter 50ms\n",
        tcp(pool)
    );
    let file = folder.join(format!("{option}.cfg"));
    std::fs::write(&file, text).unwrap();
    let mut haproxy = Program::new("haproxy");
    haproxy.args(["-db", "-f"]).arg(&file);
    haproxy.stdin(OwnedFd::from(listener));
    haproxy.stdout(Stdio::null()).stderr(Stdio::null());
    Some((Ended(haproxy.spawn().ok()?), address))
}

#[test]
fn clients_behind_haproxy_are_seen_as_themselves() {
    let Some(real) = pooled(server) else { return };
    let networks = "groups = 1\nproxy_protocol_networks = \"127.0.0.8/31\"\n";
    let pool = fresh_pool(real, networks);
    for option in ["send-proxy", "send-proxy-v2", "send-proxy-v2-ssl-cn"] {
        let Some((_haproxy, address)) = haproxy(real.folder(), &pool.address, option) else {
            return skip("haproxy is not installed");
        };
        let mut client = login(&address, &app());
        assert_eq!(client.value("SELECT 1"), "1");
        let id = client.talk().greeting.as_ref().unwrap().connection_id;
        let line = pool.report_of(id).unwrap();
        assert!(line.contains(" client=127.0.0.1:"), "{option}: {line}");
        let refused = Client::connect(&address, &Account::new("app", "guess")).unwrap_err();
        assert!(!refused.to_string().contains("127.0.0.9"), "{refused}");
    }
    // Its health checks are no failed logins.
    pool.terminate();
    let (_, said) = pool.wait();
    assert_eq!(said.matches("event=login-failed").count(), 3, "{said}");
    assert!(!said.contains("event=login-refused"), "{said}");
}

/// A server that takes headers from the pool.
fn server_that_takes_headers(test: &str) -> Option<Real> {
    found(Real::start(&["--proxy-protocol-networks=127.0.0.1"]), test)
}

/// A pool that sends the server headers of this version.
fn pool_that_tells(real: &Real, version: &str) -> Pool {
    let text = format!(
        "groups = 1\nlisten = [\"127.0.0.1:0\"]\n{FROM_LOOPBACK}[backend]\naddress = \"{}\"\n\
         proxy_protocol = \"{version}\"\n[[user]]\nname = \"told\"\npassword = \"told\"\n",
        real.address()
    );
    let file = config_file(real, &format!("{version}.toml"), &text);
    Pool::start(binary(), &["--config", file.to_str().unwrap()]).unwrap()
}

/// A client at 127.0.0.`last`.
fn at(pool: &Address, last: u8) -> Client {
    let header = format!("PROXY TCP4 127.0.0.{last} 127.0.0.1 7 3306\r\n");
    let front = front(pool, header.as_bytes(), 100);
    login(&front, &Account::new("told", "told"))
}

#[test]
fn the_server_is_told_where_clients_are() {
    let real = or_return!(pooled(server_that_takes_headers));
    // Each of these accounts is for one address, and so is what it may do.
    for last in [1, 2, 3] {
        real.execute(&[
            &format!("CREATE USER told@'127.0.0.{last}' IDENTIFIED BY 'told'"),
            &format!("CREATE DATABASE of_{last}"),
            &format!("GRANT ALL ON of_{last}.* TO told@'127.0.0.{last}'"),
        ]);
    }
    let who = "SELECT CONCAT(USER(), ' ', CURRENT_USER())";
    for version in ["v1", "v2"] {
        let pool = pool_that_tells(&real, version);
        let (mut two, mut three) = (at(&pool.address, 2), at(&pool.address, 3));
        for _ in 0..3 {
            assert_eq!(two.value(who), "told@127.0.0.2 told@127.0.0.2");
            assert_eq!(three.value(who), "told@127.0.0.3 told@127.0.0.3");
        }
        two.script("CREATE TABLE of_2.t (a INT); DROP TABLE of_2.t");
        let failure = three.failure("CREATE TABLE of_2.t (a INT)");
        assert_eq!(failure.code, 1142, "{failure}");
        assert!(failure.message.contains("'told'@'127.0.0.3'"), "{failure}");
        // Another client at an address has backends of that address.
        let mut other_two = at(&pool.address, 2);
        let host = "SELECT HOST FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()";
        assert_eq!(two.value(host), "127.0.0.2");
        assert_eq!(other_two.value(host), "127.0.0.2");
        // KILL goes as the backend's account does.
        let running = two.talk().greeting.as_ref().unwrap().connection_id;
        send(&mut two, "SELECT SLEEP(60)");
        let sleeps = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                      WHERE INFO = 'SELECT SLEEP(60)' AND HOST = '127.0.0.2'";
        until(|| match real.admin().value(sleeps).as_str() {
            "1" => Ok(()),
            other => Err(format!("{other} statements sleep")),
        });
        other_two.must(&format!("KILL QUERY {running}"));
        two.receive().unwrap();
        assert_eq!(two.value(who), "told@127.0.0.2 told@127.0.0.2");
    }
}

/// A server that takes headers, with the account of `pool_that_tells` for all addresses.
fn server_that_is_told(test: &str) -> Option<Real> {
    let real = server_that_takes_headers(test)?;
    let sql = "CREATE USER told@'%' IDENTIFIED BY 'told'; GRANT ALL ON *.* TO told@'%'; \
               CREATE DATABASE shop; CREATE TABLE shop.t (a INT)";
    real.script(sql);
    Some(real)
}

#[test]
fn clients_go_to_the_next_process_with_the_address_that_is_told() {
    let real = or_return!(pooled(server_that_is_told));
    let old = pool_that_tells(&real, "v2");
    let [mut two, mut three] = [2, 3].map(|last| at(&old.address, last));
    assert_eq!(two.value("SELECT USER()"), "told@127.0.0.2");
    assert_eq!(three.value("SELECT USER()"), "told@127.0.0.3");
    three.script("BEGIN; INSERT INTO shop.t VALUES (1)");
    let file = real.folder().join("v2.toml");
    let new = old.succeed(binary(), &["--config", file.to_str().unwrap()]);
    let new = new.unwrap_or_else(|why| panic!("{why}"));
    ended(old);
    let asked = "SELECT CONCAT(USER(), COUNT(*)) FROM shop.t";
    assert_eq!(three.value(asked), "told@127.0.0.31");
    three.must("COMMIT");
    for (client, told) in [(&mut two, "told@127.0.0.2"), (&mut three, "told@127.0.0.3")] {
        assert_eq!(client.value("SELECT USER()"), told);
    }
    assert_eq!(at(&new.address, 4).value("SELECT USER()"), "told@127.0.0.4");
}

/// Logs in from this address by a header; the connection, the first byte of the answer, and its
/// rest.
fn logged_in_from(pool: &Address, address: Ipv4Addr) -> (TcpStream, u8, String) {
    let mut stream = connected(pool, 1);
    let header = format!("PROXY TCP4 {address} 127.0.0.1 7 3306\r\n");
    stream.write_all(header.as_bytes()).unwrap();
    packet(&mut stream).unwrap();
    stream.write_all(&bare_login()).unwrap();
    let (_, answer) = packet(&mut stream).unwrap();
    let words = String::from_utf8_lossy(&answer[1..]).into_owned();
    (stream, answer[0], words)
}

#[test]
fn clients_of_more_addresses_than_can_be_told_are_refused() {
    let real = or_return!(pooled(server_that_is_told));
    let text = format!(
        "groups = 1\nlisten = [\"127.0.0.1:0\"]\n{FROM_LOOPBACK}[backend]\naddress = \"{}\"\n\
         proxy_protocol = \"v1\"\n[[user]]\nname = \"bare\"\npassword = \"\"\n\
         backend_user = \"told\"\nbackend_password = \"told\"\n",
        real.address()
    );
    let pool = pool_from(&real, &text);
    let address = |number: u32| Ipv4Addr::from(0x0A00_0000 + number);
    let mut held: Vec<TcpStream> = (0..1024)
        .map(|number| {
            let (stream, first, words) = logged_in_from(&pool.address, address(number));
            assert_eq!(first, 0, "client {number}: {words}");
            stream
        })
        .collect();
    let (_, first, words) = logged_in_from(&pool.address, address(1024));
    assert_eq!(first, 0xFF);
    assert!(words.starts_with("\u{10}\u{4}#08004"), "{words}");
    assert!(words.contains("1024"), "{words}");
    // Another client at an address that is told is let in.
    assert_eq!(logged_in_from(&pool.address, address(7)).1, 0);
    // And so is one at a new address, once another is not needed any more.
    drop(held.pop());
    until(|| match logged_in_from(&pool.address, address(1025)) {
        (_, 0, _) => Ok(()),
        (_, _, words) => Err(words),
    });
}

#[test]
fn a_server_that_expects_no_header_is_named_at_start() {
    if let Some(real) = pooled(server) {
        let text = format!(
            "listen = [\"127.0.0.1:0\"]\n[backend]\naddress = \"{}\"\n\
             proxy_protocol = \"v2\"\n[[user]]\nname = \"app\"\npassword = \"app\"\n",
            real.address()
        );
        let file = config_file(real, "unexpected.toml", &text);
        let ran = onramp(&format!("pool --config {}", file.display()));
        assert!(!ran.status.success(), "{ran:?}");
        says(&ran.stderr, "proxy_protocol_networks");
    }
}
