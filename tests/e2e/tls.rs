//! TLS of clients: what a client hears under TLS is what it hears in clear, whatever it asks for
//! and however its bytes arrive; and what is no TLS ends that connection alone.

use crate::compare::{same, same_on};
use crate::compressed::tell_of_everything;
use crate::world::*;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, Stream};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command as Program, Output, Stdio};
use testkit::client::ANSWER_MAX;
use wire::auth::{Plugin, native};
use wire::client_login::{COLLATION, put_tls_request};
use wire::handshake::{Greeting, Login};
use wire::packet::HEADER_LEN;
use wire::reply::{ERR, ErrPacket, OK, OkPacket};

/// Account that asks for TLS where it is offered.
fn secured() -> Account {
    app().with(cap::SSL)
}

#[test]
fn replies_under_tls_are_those_of_the_server_itself() {
    same("tls", 2, |story| {
        let packed = [cap::COMPRESS, cap::COMPRESS | cap::LOCAL_FILES];
        for more in [0, cap::MULTI_STATEMENTS, cap::LOCAL_FILES]
            .into_iter()
            .chain(packed)
        {
            for less in [0, cap::DEPRECATE_EOF] {
                let account = secured().schema(&story.schema).with(more).without(less);
                tell_of_everything(story, &account);
            }
        }
    });
}

#[test]
fn replies_under_tls_are_those_of_mysql_itself() {
    let Some(real) = pooled(mysql) else { return };
    same_on(real, "tls", 2, |story| {
        for more in [0, cap::LOCAL_FILES, cap::COMPRESS] {
            let account = secured().plugin(Plugin::CachingSha2).with(more);
            tell_of_everything(story, &account.schema(&story.schema));
        }
    });
}

#[test]
fn messages_of_any_length_go_both_ways() {
    let (_, way) = or_return!(shared(1));
    for more in [0, cap::COMPRESS] {
        let mut client = login(&way, &secured().with(more));
        let short = [0, 1, 16_000, 16_384, 16_385, 65_536];
        for len in short
            .into_iter()
            .chain([(16 << 20) - 12, 16 << 20, 20 << 20])
        {
            let text = "0123456789abcdef".repeat(len / 16 + 1);
            let sql = format!("SELECT '{}' AS v", &text[..len]);
            assert!(client.rows(&sql).only() == text[..len], "{len} bytes");
        }
    }
}

/// The info of the OK that let a client in.
fn info_of_login(client: &Client) -> Vec<u8> {
    let ok = OkPacket::read(&client.talk().let_in, true).unwrap();
    ok.info.to_vec()
}

/// MariaDB's clients from 11.4 on verify a certificate that no authority has signed by it.
#[test]
fn the_certificate_is_proven_by_the_password() {
    let (real, way) = or_return!(shared(2));
    let (cert, _) = testkit::tls::files(real.folder());
    let shown = reactor::tls_files::certificates("the certificate", &cert).unwrap();
    let fingerprint = native::fingerprint(&shown[0]);
    let proof = |client: &Client, password: &[u8]| {
        let nonce = client.talk().greeting.as_ref().unwrap().nonce;
        native::certificate_proof(&native::stored(password), &nonce, &fingerprint).to_vec()
    };
    // With a schema that the pool has not tried, and with one that it has.
    for account in [
        secured(),
        secured().schema("shop"),
        secured().schema("shop"),
    ] {
        for account in [account.clone(), account.without(cap::SESSION_TRACK)] {
            let client = login(&way, &account);
            assert_eq!(info_of_login(&client), proof(&client, b"app"));
        }
    }
    let hashed = login(&way, &Account::new("hashed", "password").with(cap::SSL));
    assert_eq!(info_of_login(&hashed), proof(&hashed, b"password"));
    // Nothing is proven in clear, without a password, by another plugin, or to MySQL's clients.
    let sha = Account::new("sha", SHA_PASSWORD).plugin(Plugin::CachingSha2);
    for account in [
        app(),
        Account::new("bare", "").with(cap::SSL),
        sha.with(cap::SSL),
    ] {
        assert_eq!(info_of_login(&login(&way, &account)), b"", "{account:?}");
    }
    if let Some(mysql) = pooled(mysql) {
        let client = login(&through(mysql, 1), &secured());
        assert_eq!(info_of_login(&client), b"");
    }
}

#[test]
fn full_authentication_takes_the_password_under_tls() {
    let (_, pool) = or_return!(shared_tls_pool("optional"));
    // Its password is known as a hash of the other plugin alone: the first login is a full one.
    let mut account = Account::new("hashed_sha", "password").with(cap::SSL);
    account.plugin = Some(Plugin::CachingSha2);
    for full in [1, 0] {
        let mut client = login(&pool.address, &account);
        assert!(client.is_tls());
        assert_eq!(client.talk().full_authentications, full);
        assert_eq!(client.value("SELECT 1"), "1");
    }
    for (user, password) in [("hashed_sha", "wrong"), ("nobody", "app")] {
        let mut account = Account::new(user, password).with(cap::SSL);
        account.plugin = Some(Plugin::CachingSha2);
        assert_eq!(refusal(&pool.address, &account).code, 1045, "{user}");
    }
    let mut account = Account::new("sha", SHA_PASSWORD).with(cap::SSL);
    account.plugin = Some(Plugin::Native);
    assert_eq!(login(&pool.address, &account).value("SELECT 1"), "1");
}

fn shared_tls_pool(mode: &str) -> Option<(&'static Real, Pool)> {
    let secured = tls(pooled(server)?, mode);
    shared_pool(&format!("groups = 1\nbackends_max = 2\n{secured}"))
}

/// Refusal of a login in clear, in MySQL's own words.
#[test]
fn required_means_that_a_login_in_clear_is_refused() {
    let strict = own(Real::start_mysql(&["--require-secure-transport=ON"]));
    let (real, mysql) = or_return!(pooled(server).zip(strict));
    let account = app().plugin(Plugin::CachingSha2).without(cap::SSL);
    let expected = refusal(&mysql.address(), &account);
    assert_eq!((expected.code, &*expected.state), (3159, "HY000"));
    let socket = real.folder().join("required.sock");
    let extra = format!("groups = 1\nbackends_max = 2\n{}", tls(real, "required"));
    let more = ["--listen", socket.to_str().unwrap()];
    let pool = start_pool_with(real, "required.toml", &extra, &more);
    for user in ["app", "nobody", "sha"] {
        let account = Account::new(user, "app").without(cap::SSL);
        assert_eq!(refusal(&pool.address, &account), expected);
    }
    logs(&pool, "insecure-transport", "event=login-refused");
    // A Unix socket is secure by itself.
    for address in [pool.address.clone(), Address::Unix(socket)] {
        let mut client = login(&address, &secured());
        assert_eq!(client.is_tls(), address == pool.address);
        assert_eq!(client.value("SELECT 1"), "1");
    }
}

/// A connection to the pool whose bytes a test writes itself.
struct Raw {
    stream: TcpStream,
    greeting: Greeting,
    request: Vec<u8>,
}

impl Raw {
    fn new(address: &Address) -> Raw {
        let Address::Tcp(address) = address else {
            panic!("a TCP address")
        };
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        let mut header = [0; HEADER_LEN];
        stream.read_exact(&mut header).unwrap();
        let mut payload = vec![0; usize::from(header[0]) + (usize::from(header[1]) << 8)];
        stream.read_exact(&mut payload).unwrap();
        let greeting = Greeting::read(&payload).unwrap();
        let mut request = Vec::new();
        let wanted = testkit::talk::USUAL | cap::SSL;
        assert!(put_tls_request((wanted, 0, COLLATION), 0, &payload, &mut request).unwrap());
        Raw {
            stream,
            greeting,
            request,
        }
    }

    /// The login that follows under TLS.
    fn login(&self, user: &str, password: &str, seq: u8) -> Vec<u8> {
        let mut out = Vec::new();
        Login {
            capabilities: (testkit::talk::USUAL | cap::SSL) & self.greeting.capabilities,
            extended: 0,
            collation: 45,
            user: user.as_bytes(),
            answer: &native::answer(password.as_bytes(), &self.greeting.nonce),
            schema: b"",
            plugin: Plugin::Native.name().as_bytes(),
            zstd_level: 3,
        }
        .put(&mut out, seq);
        out
    }

    /// Reads until the connection ends.
    fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }

    /// Asks for TLS and goes through the handshake.
    fn secure(&mut self, tls: &mut ClientConnection) {
        self.stream.write_all(&self.request).unwrap();
        self.shake(tls, |stream, bytes| stream.write_all(bytes).unwrap());
    }

    /// Goes through the handshake; `write` gets the bytes to be sent.
    fn shake(&mut self, tls: &mut ClientConnection, mut write: impl FnMut(&mut TcpStream, &[u8])) {
        loop {
            let mut out = Vec::new();
            while tls.wants_write() {
                tls.write_tls(&mut out).unwrap();
            }
            write(&mut self.stream, &out);
            if !tls.is_handshaking() {
                return;
            }
            tls.read_tls(&mut self.stream).unwrap();
            tls.process_new_packets().unwrap();
        }
    }
}

/// The first byte of the payload of the next packet.
fn answer_of(tls: &mut ClientConnection, stream: &mut TcpStream) -> u8 {
    let mut packet = [0; HEADER_LEN + 1];
    Stream::new(tls, stream).read_exact(&mut packet).unwrap();
    packet[HEADER_LEN]
}

#[test]
fn the_request_and_the_handshake_may_be_cut_anywhere() {
    let (_, pool) = or_return!(shared_tls_pool("required"));
    let bytewise = |stream: &mut TcpStream, bytes: &[u8]| {
        for byte in bytes {
            stream.write_all(&[*byte]).unwrap();
        }
    };
    for version in [&TLS12, &TLS13] {
        // Everything byte by byte; the request and the handshake in one segment; cut at each place.
        for cut in 0..=37 {
            let mut raw = Raw::new(&pool.address);
            let mut tls = testkit::tls::client(&[version]);
            let request = raw.request.clone();
            match cut {
                37 => {
                    bytewise(&mut raw.stream, &request);
                    raw.shake(&mut tls, bytewise);
                }
                36 => {
                    let mut first = request;
                    raw.shake(&mut tls, |stream, bytes| {
                        first.extend_from_slice(bytes);
                        stream.write_all(&first).unwrap();
                        first.clear();
                    });
                }
                cut => {
                    raw.stream.write_all(&request[..cut]).unwrap();
                    raw.stream.write_all(&request[cut..]).unwrap();
                    raw.shake(&mut tls, |stream, bytes| stream.write_all(bytes).unwrap());
                }
            }
            let login = raw.login("app", "app", 2);
            tls.writer().write_all(&login).unwrap();
            assert_eq!(answer_of(&mut tls, &mut raw.stream), OK, "cut at {cut}");
        }
    }
}

/// The login in one segment with the end of the handshake, and commands behind it.
#[test]
fn the_login_may_come_with_the_end_of_the_handshake() {
    let (_, pool) = or_return!(shared_tls_pool("required"));
    for version in [&TLS12, &TLS13] {
        let mut raw = Raw::new(&pool.address);
        let mut tls = testkit::tls::client(&[version]);
        let mut said = raw.login("app", "app", 2);
        said.extend_from_slice(&[1, 0, 0, 0, 0x0E, 1, 0, 0, 0, 0x0E]);
        tls.writer().write_all(&said).unwrap();
        raw.secure(&mut tls);
        for _ in 0..3 {
            let mut header = [0; HEADER_LEN];
            let mut stream = Stream::new(&mut tls, &mut raw.stream);
            stream.read_exact(&mut header).unwrap();
            let mut payload = vec![0; usize::from(header[0])];
            stream.read_exact(&mut payload).unwrap();
            assert_eq!(payload[0], OK, "{payload:02x?}");
        }
    }
}

/// Bytes put into the clear text behind the request are no part of the login, and end the
/// connection: it is no TLS.
#[test]
fn what_is_injected_in_front_of_tls_is_never_a_login() {
    let (_, pool) = or_return!(shared_tls_pool("optional"));
    for in_one_write in [true, false] {
        let mut raw = Raw::new(&pool.address);
        let login = raw.login("app", "app", 2);
        let mut said = raw.request.clone();
        if !in_one_write {
            raw.stream.write_all(&said).unwrap();
            said.clear();
        }
        said.extend_from_slice(&login);
        raw.stream.write_all(&said).unwrap();
        let mut tls = testkit::tls::client(&[&TLS13]);
        let mut hello = Vec::new();
        tls.write_tls(&mut hello).unwrap();
        let _ = raw.stream.write_all(&hello);
        let rest = raw.rest();
        assert_ne!(rest.get(HEADER_LEN), Some(&OK), "{rest:02x?}");
        // An alert at most, and no packet.
        assert!(rest.is_empty() || rest[0] == 21, "{rest:02x?}");
        pool.wait_for("reason=tls-handshake").unwrap();
    }
    assert_eq!(login(&pool.address, &secured()).value("SELECT 1"), "1");
}

#[test]
fn what_is_no_tls_ends_that_connection_alone() {
    let (_, pool) = or_return!(shared_tls_pool("optional"));
    let mut hello = Vec::new();
    testkit::tls::client(&[&TLS13])
        .write_tls(&mut hello)
        .unwrap();
    let mut ancient = hello.clone();
    // The version of the ClientHello, its list of versions apart.
    ancient[9..11].copy_from_slice(&[2, 0]);
    let cases: [&[u8]; 7] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0; 4096],
        &[0xFF; 4096],
        &hello[..hello.len() / 2],
        &hello[..3],
        b"",
        &ancient,
    ];
    for bytes in cases {
        let mut raw = Raw::new(&pool.address);
        let request = raw.request.clone();
        raw.stream.write_all(&[&request, bytes].concat()).unwrap();
        let _ = raw.stream.shutdown(std::net::Shutdown::Write);
        let rest = raw.rest();
        let is_of_tls = rest.first().is_none_or(|first| matches!(first, 21 | 22));
        assert!(is_of_tls, "{rest:02x?}");
    }
    // A second request, a login in clear that says it is under TLS, a login out of order.
    let mut raw = Raw::new(&pool.address);
    let said = raw.login("app", "app", 1);
    raw.stream.write_all(&said).unwrap();
    let rest = raw.rest();
    let error = ErrPacket::read(&rest[HEADER_LEN..]).unwrap();
    assert_eq!((rest[HEADER_LEN], error.code), (ERR, 1835));
    let other = Raw::new(&pool.address);
    for said in [other.request.clone(), other.login("app", "app", 1)] {
        let mut raw = Raw::new(&pool.address);
        let mut tls = testkit::tls::client(&[&TLS13]);
        raw.secure(&mut tls);
        tls.writer().write_all(&said).unwrap();
        assert_eq!(answer_of(&mut tls, &mut raw.stream), ERR);
    }
    assert_eq!(login(&pool.address, &secured()).value("SELECT 1"), "1");
}

/// A handshake that does not end is ended by the time limit of logins, and holds up nobody.
#[test]
fn a_handshake_that_does_not_end_is_ended_in_time() {
    let Some(real) = pooled(server) else { return };
    let under_tls = tls(real, "required");
    let settings = format!("groups = 1\nbackends_max = 2\nlogin_ms_max = 4000\n{under_tls}");
    let pool = fresh_pool(real, &settings);
    let mut late: Vec<Raw> = (0..20).map(|_| Raw::new(&pool.address)).collect();
    for raw in &mut late {
        let request = raw.request.clone();
        raw.stream.write_all(&request).unwrap();
    }
    assert_eq!(login(&pool.address, &secured()).value("SELECT 1"), "1");
    for mut raw in late {
        assert_eq!(raw.rest(), b"", "nothing is said in clear");
    }
    pool.wait_for_census("too_slow: 20").unwrap();
    pool.wait_for_census("clients: 0").unwrap();
}

/// True if it says goodbye or not, what a client leaves is taken back.
#[test]
fn clients_may_leave_without_a_word() {
    let (_, pool) = or_return!(shared_tls_pool("optional"));
    for announced in [true, false] {
        let mut raw = Raw::new(&pool.address);
        let mut tls = testkit::tls::client(&[&TLS13]);
        raw.secure(&mut tls);
        let login = raw.login("app", "app", 2);
        tls.writer().write_all(&login).unwrap();
        assert_eq!(answer_of(&mut tls, &mut raw.stream), OK);
        pool.wait_for_census("clients: 1").unwrap();
        if announced {
            tls.send_close_notify();
            while tls.wants_write() {
                tls.write_tls(&mut raw.stream).unwrap();
            }
            // The pool ends it, and says so too.
            let mut rest = Vec::new();
            let end = Stream::new(&mut tls, &mut raw.stream).read_to_end(&mut rest);
            assert!(end.is_ok(), "{end:?}");
        }
        drop(raw);
        pool.wait_for_census("clients: 0").unwrap();
    }
}

/// Many logins at once are all served, handshake by handshake.
#[test]
fn a_storm_of_handshakes_is_served() {
    let (_, way) = or_return!(shared(2));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut clients: Vec<_> = (0..25).map(|_| login(&way, &secured())).collect();
                for client in &mut clients {
                    assert_eq!(client.value("SELECT 1"), "1");
                }
            });
        }
    });
}

/// OpenSSL's client of a server at this address.
fn s_client(at: &str, more: &str) -> Program {
    let mut program = Program::new("openssl");
    program.args(format!("s_client -starttls mysql -connect {at} {more}").split(' '));
    program
}

#[test]
fn openssl_speaks_it_in_both_versions_and_verifies_the_certificate() {
    let (real, pool) = or_return!(shared_tls_pool("optional"));
    let at = format!("127.0.0.1:{}", port_of(&pool.address));
    let ca = real.folder().join("cert.pem");
    for version in ["-tls1_2", "-tls1_3"] {
        let more = format!("{version} -verify_return_error -verify_hostname localhost -CAfile");
        let output = s_client(&at, &more).arg(&ca).stdin(Stdio::null()).output();
        let Ok(output) = output else {
            return skip("openssl is not installed");
        };
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
    }
    // Versions that are too old are refused, with the reason in the log.
    let mut old = s_client(&at, "-tls1_1 -cipher ALL:@SECLEVEL=0");
    let output = old.stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    let line = pool.wait_for("reason=tls-handshake").unwrap();
    assert!(line.contains("no way in common"), "{line}");
    says(&line, "(signature algorithms extension required)");
    // A client that does not trust the certificate says so.
    let mut other = s_client(&at, "-verify_return_error");
    let output = other.stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    let line = pool.wait_for("refused it with the alert").unwrap();
    assert!(line.contains("alert unknown CA (48);"), "{line}");
}

/// A program of OpenSSL's that is told what to do, and what it says.
struct Openssl {
    child: Ended,
    said: String,
}

impl Openssl {
    fn start(at: &str, version: &str) -> std::io::Result<Openssl> {
        let mut program = s_client(at, &format!("-msg {version}"));
        let program = program.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = Ended(program.stderr(Stdio::null()).spawn()?);
        let mut openssl = Openssl {
            child,
            said: String::new(),
        };
        // It takes orders from here on.
        openssl.hears("Verify return code");
        Ok(openssl)
    }

    fn told(&mut self, line: &str) {
        let stdin = self.child.0.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Reads until it has said this, or its end; whether it has, and forgets what stood in front.
    fn has_heard(&mut self, expected: &str) -> bool {
        let mut bytes = [0; 4096];
        loop {
            if let Some(at) = self.said.find(expected) {
                self.said.drain(..at + expected.len());
                return true;
            }
            match self.child.0.stdout.as_mut().unwrap().read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.said += &String::from_utf8_lossy(&bytes[..count]),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn hears(&mut self, expected: &str) {
        assert!(self.has_heard(expected), "no {expected} in {}", self.said);
    }
}

/// New keys for either direction, asked for by another library: what is said behind them is
/// understood on both sides. In TLS 1.2 another handshake is refused.
#[test]
fn openssl_changes_keys_and_is_refused_another_handshake() {
    let Some(real) = pooled(server) else { return };
    // Its orders take as long as they take.
    let settings = format!("login_ms_max = 600000\n{}", tls(real, "optional"));
    let pool = fresh_pool(real, &settings);
    let at = format!("127.0.0.1:{}", port_of(&pool.address));
    let Ok(mut openssl) = Openssl::start(&at, "-tls1_3") else {
        return skip("openssl is not installed");
    };
    for _ in 0..3 {
        // Its own keys.
        openssl.told("k\n");
        openssl.hears(">>> TLS 1.3, Handshake [length 0005], KeyUpdate");
        // Its own, and then the pool's.
        openssl.told("K\n");
        openssl.hears(">>> TLS 1.3, Handshake [length 0005], KeyUpdate");
        openssl.hears("<<< TLS 1.3, Handshake [length 0005], KeyUpdate");
    }
    // A packet of a login, which has a wrong number; and what the pool says to that.
    openssl.told("\u{1}\0\0\u{7}x\n");
    openssl.hears("08S01");
    let Ok(mut openssl) = Openssl::start(&at, "-tls1_2") else {
        panic!("it was there before");
    };
    openssl.told("R\n");
    openssl.hears(">>> TLS 1.2, Handshake");
    openssl.hears("<<< TLS 1.2, Alert [length 0002], warning no_renegotiation");
    assert_eq!(login(&pool.address, &secured()).value("SELECT 1"), "1");
}

/// MariaDB's command line, over TCP to this port.
fn mariadb(port: &str, more: &[&str]) -> std::io::Result<Output> {
    let mut command = Program::new("mariadb");
    let usual = format!("--no-defaults --protocol=tcp -hlocalhost -N -P {port}");
    command.args(usual.split(' ')).args(more);
    command.stdin(Stdio::null()).output()
}

#[test]
fn the_mariadb_command_line_verifies_the_certificate() {
    let (real, pool) = or_return!(shared_tls_pool("required"));
    let port = port_of(&pool.address);
    let ca = format!("--ssl-ca={}", real.folder().join("cert.pem").display());
    let run = |more: &[&str]| mariadb(&port, more);
    let long = "SELECT LENGTH(REPEAT('x', 300000)), REPEAT('y', 300000)";
    for more in [
        &["--ssl"][..],
        &["--compress"],
        &["--ssl-verify-server-cert", &ca],
    ] {
        for (user, password) in [("app", "app"), ("sha", SHA_PASSWORD)] {
            let login = [format!("-u{user}"), format!("-p{password}")];
            let login = [&*login[0], &*login[1], "-e", long];
            let Ok(output) = run(&[&["--ssl"], more, &login].concat()) else {
                return skip("the mariadb command line is not installed");
            };
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if said.contains("cannot be loaded") {
                continue;
            }
            let is_whole = output.stdout.starts_with(b"300000\tyyy");
            assert!(is_whole, "{more:?} {user}: {said}");
        }
    }
    let output = run(&["-uapp", "-papp", "--skip-ssl", "-e", "SELECT 1"]).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("ERROR 3159 (HY000)"), "{said}");
}

/// Runs a program that uses PyMySQL and has to print that all passed. False, and said, where that
/// cannot be run.
fn passes(program: &str, arguments: &[&str]) -> bool {
    let mut command = Program::new("python3");
    let output = match command.args(["-c", program]).args(arguments).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip("python3 is not installed");
            return false;
        }
        output => output.unwrap(),
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("ModuleNotFoundError") {
        skip("python3 cannot import pymysql");
        return false;
    }
    assert_eq!(output.stdout, b"all passed\n", "{said}");
    true
}

const PASSWORD_ITSELF: &str = r#"
import ssl, struct, sys, pymysql
port, ca = int(sys.argv[1]), sys.argv[2]
context = ssl.create_default_context(cafile=ca)
def connect(password, tls=context, user='clear'):
    return pymysql.connect(host='localhost', port=port, user=user, password=password, ssl=tls)
c = connect("it's itself")
c.cursor().execute('SELECT 1')
# A change of user asks for it too.
def change(password):
    c = connect('app', user='app')
    c.user, c.password = b'clear', password
    c._execute_command(0x11, b'clear\0\0\0' + struct.pack('<H', 45) + b'mysql_native_password\0')
    packet = c._read_packet()
    assert packet.is_auth_switch_request()
    packet.read_uint8()
    name = packet.read_string()
    assert name == b'mysql_clear_password', name
    c._process_auth(name, packet)
    c.cursor().execute('SELECT 1')
change(b"it's itself")
for wrong in (lambda: connect('its itself'), lambda: connect(''), lambda: change(b'wrong'),
              lambda: connect("it's itself", None)):
    try:
        wrong()
    except pymysql.err.OperationalError as error:
        assert error.args[0] == 1045, error
    else:
        raise SystemExit('a wrong login was taken')
print('all passed')
"#;

#[test]
fn the_password_itself_is_taken_under_tls_alone() {
    for real in pooled_servers() {
        let user = "[[user]]\nname = \"clear\"\npassword = \"it's itself\"\n\
                    auth = \"mysql_clear_password\"\nrequire = \"ssl\"\n\
                    backend_user = \"app\"\nbackend_password = \"app\"\n";
        let secured = tls(real, "optional");
        let extra = format!("groups = 1\nbackends_max = 2\n{secured}\n{user}");
        let pool = fresh_pool(real, &extra);
        let port = port_of(&pool.address);
        let ca = real.folder().join("cert.pem").display().to_string();
        // MariaDB's own client sends it when it is asked to.
        let login = ["-uclear", "-pit's itself", "--ssl", "-e", "SELECT 41 + 1"];
        match mariadb(&port, &login) {
            Ok(output) => assert_eq!(output.stdout, b"42\n", "{output:?}"),
            Err(_) => skip("the mariadb command line is not installed"),
        }
        if !passes(PASSWORD_ITSELF, &[&port, &ca]) {
            return;
        }
        logs(&pool, "reason=tls-required", "account=\"clear\"");
        assert!(!pool.said().contains("it's itself"), "{}", pool.said());
    }
}
