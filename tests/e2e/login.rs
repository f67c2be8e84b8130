//! Logins: who gets in, and what those are told who do not.

use crate::proxy_header::packet;
use crate::world::*;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::process::Stdio;
use testkit::real::mysql_command_line;
use testkit::talk::USUAL;
use wire::auth::caching_sha2::{FAST_AUTH_OK, FULL_AUTH, REQUEST_PUBLIC_KEY, encrypt};
use wire::auth::{NONCE_LEN, Nonce, Plugin};
use wire::handshake::{AUTH_MORE, AUTH_SWITCH, AuthSwitch, Greeting, Login};
use wire::packet::put_packet;
use wire::reply::{ERR, OK};

#[test]
fn the_right_password_lets_a_client_in() {
    let (_, way) = or_return!(shared(2));
    let accounts = [
        app(),
        app().schema("shop"),
        app().plugin(Plugin::CachingSha2),
        app().without(cap::PLUGIN_AUTH),
        app().without(cap::PLUGIN_AUTH_LENENC_DATA | cap::SESSION_TRACK | cap::DEPRECATE_EOF),
        app().with(cap::CONNECT_ATTRS),
        Account::new("other", "other's"),
        Account::new("bare", ""),
    ];
    for account in accounts {
        let mut client = login(&way, &account);
        let expected = account.schema.clone().unwrap_or("NULL".into());
        assert_eq!(client.value("SELECT DATABASE()"), expected);
        let user = client.value("SELECT CURRENT_USER()");
        assert_eq!(user, format!("{}@%", account.user));
    }
}

#[test]
fn a_wrong_password_is_denied_in_the_servers_words() {
    let (real, way) = or_return!(shared(2));
    let cases = [
        Account::new("app", "wrong"),
        Account::new("app", "wrong").schema("shop"),
        Account::new("app", "wrong").plugin(Plugin::CachingSha2),
        Account::new("app", ""),
        Account::new("nobody", "x"),
        Account::new("nobody", ""),
        Account::new("", "x"),
        Account::new("APP", "app"),
        Account::new("bare", "x"),
    ];
    for account in &cases {
        let expected = refusal(&real.address(), account);
        assert_eq!(refusal(&way, account), expected, "{account:?}");
        assert_eq!(expected.code, 1045);
    }
    let words = refusal(&way, &cases[0]).message;
    assert_eq!(
        words,
        "Access denied for user 'app'@'127.0.0.1' (using password: YES)"
    );
}

#[test]
fn an_unknown_or_forbidden_schema_is_refused_at_login() {
    let (real, way) = or_return!(shared(1));
    for account in [
        app().schema("nowhere"),
        Account::new("small", "small").schema("closed"),
        Account::new("small", "small").schema("nowhere"),
        app().schema("no`such"),
    ] {
        let expected = refusal(&real.address(), &account);
        for _ in 0..2 {
            assert_eq!(refusal(&way, &account), expected, "{account:?}");
        }
    }
    assert_eq!(refusal(&way, &app().schema("nowhere")).code, 1049);
}

#[test]
fn caching_sha2_works_over_rsa_first_and_fast_afterwards() {
    let (_, way) = or_return!(shared(2));
    // With the clear password in the configuration no full authentication is ever needed; with a
    // native hash the first login must send the password.
    for (account, full) in [
        (Account::new("sha", SHA_PASSWORD), 0),
        (Account::new("hashed_sha", "password"), 1),
    ] {
        for plugin in [Plugin::Native, Plugin::CachingSha2] {
            let mut client = login(&way, &account.clone().plugin(plugin).schema("shop"));
            assert_eq!(client.value("SELECT DATABASE()"), "shop");
            let count = client.talk().full_authentications;
            assert!(count <= full, "{}", account.user);
        }
        let again = login(&way, &account.clone().plugin(Plugin::CachingSha2));
        assert_eq!(again.talk().full_authentications, 0, "{}", account.user);
        let wrong = refusal(&way, &Account::new(&account.user, "x"));
        assert_eq!(wrong.code, 1045);
        says(&wrong.message, "(using password: YES)");
    }
}

#[test]
fn an_account_may_be_configured_by_its_hash() {
    let (_, way) = or_return!(shared(2));
    let mut client = login(&way, &Account::new("hashed", "password"));
    assert_eq!(client.value("SELECT CURRENT_USER()"), "app@%");
    let wrong = refusal(&way, &Account::new("hashed", "Password"));
    assert_eq!(wrong.code, 1045);
    let sha = Account::new("hashed", "password").plugin(Plugin::CachingSha2);
    assert_eq!(login(&way, &sha).value("SELECT 1"), "1");
}

#[test]
fn a_unix_socket_is_a_listener_too() {
    let (_, way) = or_return!(shared(2));
    let socket = way.socket.clone();
    let mut client = login(&socket, &app().schema("shop"));
    assert_eq!(client.value("SELECT DATABASE()"), "shop");
    let wrong = refusal(&socket, &Account::new("app", "wrong"));
    let expected = "Access denied for user 'app'@'localhost' (using password: YES)";
    assert_eq!(wrong.message, expected);
    let sha = Account::new("sha", SHA_PASSWORD).plugin(Plugin::CachingSha2);
    assert_eq!(login(&socket, &sha).value("SELECT 1"), "1");
}

/// Answer of the other side to these bytes, until it ends the connection or waits for more.
fn answer_to(address: &Address, bytes: &[u8]) -> Vec<u8> {
    let Address::Tcp(address) = address else {
        panic!("a TCP address")
    };
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(testkit::client::ANSWER_MAX))
        .unwrap();
    packet(&mut stream).unwrap();
    stream.write_all(bytes).unwrap();
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn nonsense_instead_of_a_login_ends_that_connection_only() {
    let (_, way) = or_return!(shared(2));
    let mut witness = login(&way, &app());
    let nonsense: [&[u8]; 8] = [
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0",
        b"\x05\0\0\x01abcde",
        b"\xff\xff\xff\x01",
        b"\0\0\0\x01",
        b"\x20\0\0\x07\x85\xa6\x03\0\0\0\0\x01\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        &[0xff; 5000],
    ];
    for bytes in nonsense {
        let answer = answer_to(&way, bytes);
        let is_error = answer.get(4).is_none_or(|&first| first == 0xFF);
        assert!(is_error, "{bytes:02x?} was answered with {answer:02x?}");
        assert_eq!(witness.value("SELECT 1"), "1");
    }
}

#[test]
fn failed_logins_are_logged_with_address_account_and_reason() {
    let (_, pool) = or_return!(shared_pool("groups = 1\nbackends_max = 1"));
    for (user, reason) in [("app", "wrong-password"), ("no\nbody", "unknown-user")] {
        let refused = refusal(&pool.address, &Account::new(user, "guess"));
        assert_eq!(refused.code, 1045);
        let account = user.escape_debug();
        let line = pool.wait_for(&format!("account=\"{account}\" ")).unwrap();
        let facts = "onramp pool: level=warning event=login-failed client=127.0.0.1:";
        assert!(line.contains(facts), "{line}");
        let message = format!(" reason={reason} message=Access denied for user '{account}'@");
        assert!(line.contains(&message), "{line}");
    }
    // More than are logged in a second: their number is.
    let others: Vec<_> = (0..12)
        .map(|_| {
            let way = pool.address.clone();
            std::thread::spawn(move || refusal(&way, &Account::new("app", "guess")).code)
        })
        .collect();
    for other in others {
        assert_eq!(other.join().unwrap(), 1045);
    }
    pool.wait_for(" omitted=").unwrap();
}

#[test]
fn peers_that_speak_something_else_are_told_what() {
    let (_, pool) = or_return!(shared_pool("groups = 1\nbackends_max = 1"));
    let mut request = vec![32, 0, 0, 1, 0, 0x0a, 0, 0];
    request.resize(36, 0);
    // An SSLRequest, and TLS right behind it.
    request.extend_from_slice(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03");
    let v1 = b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n";
    let v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\0\x01\0\x02";
    let cases: [(&[u8], &str, &str); 4] = [
        (v1, "proxy-header", "PROXY protocol, version 1"),
        (v2, "proxy-header", "PROXY protocol, version 2"),
        (&request[36..], "tls", "a ClientHello of TLS"),
        (&request, "tls", "a request for TLS"),
    ];
    for (bytes, reason, words) in cases {
        let answer = answer_to(&pool.address, bytes);
        let error: &[u8] = &[0xff, 19, 4];
        assert_eq!(answer.get(4..7), Some(error), "error 1043: {answer:02x?}");
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(text.contains(words), "{text}");
        let line = pool.wait_for(words).unwrap();
        let facts = "level=warning event=login-refused client=127.0.0.1:";
        says(&line, facts);
        says(&line, &format!(" reason={reason} "));
    }
}

/// A login packet is as long as it may be, or refused by its header.
#[test]
fn a_login_packet_is_bounded() {
    const LOGIN_LEN_MAX: u32 = 64 * 1024;
    let (_, way) = or_return!(shared(1));
    let Address::Tcp(pool) = *way else { return };
    for (len, code) in [
        (LOGIN_LEN_MAX - 4, None),
        (LOGIN_LEN_MAX - 3, Some(1153u16)),
    ] {
        let mut stream = TcpStream::connect(pool).unwrap();
        packet(&mut stream).unwrap();
        let header = [&len.to_le_bytes()[..3], &[1]].concat();
        stream.write_all(&header).unwrap();
        stream.write_all(&vec![0; len as usize]).unwrap();
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[4], 0xff);
        let got = u16::from_le_bytes([answer[5], answer[6]]);
        match code {
            Some(code) => assert_eq!(got, code),
            None => assert_ne!(got, 1153, "it is read, and is no login"),
        }
    }
}

/// Way of a client: the pool, and its number of an address of its own, so that no earlier one
/// delays it.
type Way<'a> = (&'a Address, u32);

/// Proof of a user: plugin that it begins with, password, and whether that goes in clear.
type Proof<'a> = (&'a str, &'a str, bool);

/// Packets, with zeros for nonces.
type Heard = Vec<(u8, Vec<u8>)>;

/// All that a failed login hears behind the greeting, up to the end of the connection.
fn packets_heard(way: Way, user: &str, proof: Proof) -> Heard {
    let (mut stream, nonce) = greeted(way, user, proof);
    let heard = proof_heard(&mut stream, nonce, proof);
    assert!(packet(&mut stream).is_none(), "the connection is closed");
    heard
}

/// A connection that has said so in its login, and the nonce of the greeting.
fn greeted((pool, source): Way, user: &str, (first, password, _): Proof) -> (TcpStream, Nonce) {
    let source = IpAddr::V4(Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + source));
    let mut stream = TcpStream::from(reactor::socket::dial(pool, Some(source)).unwrap());
    stream.set_nonblocking(false).unwrap();
    let longest = Some(testkit::client::ANSWER_MAX);
    stream.set_read_timeout(longest).unwrap();
    let greeting = packet(&mut stream).unwrap().1;
    let greeting = Greeting::read(&greeting).unwrap();
    let nonce = greeting.nonce;
    let given = Plugin::from_name(first.as_bytes()).unwrap_or(Plugin::Native);
    let mut out = Vec::new();
    Login {
        capabilities: USUAL & greeting.capabilities,
        collation: 45,
        user: user.as_bytes(),
        answer: &given.answer(password.as_bytes(), &nonce),
        schema: b"",
        plugin: first.as_bytes(),
        zstd_level: 3,
        extended: 0,
    }
    .put(&mut out, 1);
    stream.write_all(&out).unwrap();
    (stream, nonce)
}

/// All packets up to an OK or an error while a password is proven.
fn proof_heard(stream: &mut TcpStream, mut nonce: Nonce, (_, password, clear): Proof) -> Heard {
    let (mut heard, password) = (Vec::new(), password.as_bytes());
    while let Some((seq, mut said)) = packet(stream) {
        let answer = match said[..] {
            [AUTH_SWITCH, ..] => {
                let switch = AuthSwitch::read(&said).unwrap();
                nonce = switch.nonce().unwrap();
                let plugin = Plugin::from_name(switch.plugin).unwrap();
                let at = said.len() - switch.data.len();
                said[at..at + NONCE_LEN].fill(0);
                Some(plugin.answer(password, &nonce).clone())
            }
            [AUTH_MORE, FAST_AUTH_OK] => None,
            [AUTH_MORE, FULL_AUTH] if clear => Some([password, b"\0"].concat()),
            [AUTH_MORE, FULL_AUTH] => Some(vec![REQUEST_PUBLIC_KEY]),
            [AUTH_MORE, ref key @ ..] => Some(encrypt(password, &nonce, key).unwrap()),
            _ => None,
        };
        let ends = matches!(said.first(), Some(&(OK | ERR)));
        heard.push((seq, said));
        if ends {
            break;
        }
        if let Some(answer) = answer {
            let mut out = Vec::new();
            put_packet(&mut out, seq.wrapping_add(1), &answer);
            stream.write_all(&out).unwrap();
        }
    }
    heard
}

/// Answer to a change to this user, on a connection that has logged in as another.
fn change_heard(way: Way, user: &str, proof: Proof) -> Heard {
    let own = ("caching_sha2_password", "entry", false);
    let (mut stream, nonce) = greeted(way, "entry", own);
    let entry = proof_heard(&mut stream, nonce, own);
    assert_eq!(entry.last().unwrap().1[0], OK, "{entry:?}");
    let (first, password) = (proof.0.as_bytes(), proof.1.as_bytes());
    let given = Plugin::from_name(first).unwrap_or(Plugin::Native);
    let answer = given.answer(password, &nonce);
    let mut command = vec![Command::ChangeUser.byte()];
    command.extend_from_slice(user.as_bytes());
    command.extend_from_slice(&[0, u8::try_from(answer.len()).unwrap()]);
    command.extend_from_slice(&answer);
    command.extend_from_slice(&[0, 45, 0]);
    command.extend_from_slice(first);
    command.push(0);
    let mut out = Vec::new();
    put_packet(&mut out, 0, &command);
    stream.write_all(&out).unwrap();
    proof_heard(&mut stream, nonce, proof)
}

/// Names cannot be found out by what is said to them, at a login or a change of user: all bytes are
/// the same as for a wrong password. Both names have the same length. All ways are gone at once,
/// because errors come late.
#[test]
fn an_unknown_user_hears_the_bytes_of_a_wrong_password() {
    let hash = "password_hash = \"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19\"";
    let plugins = ["mysql_native_password", "caching_sha2_password"];
    let given = [plugins[0], plugins[1], "x", ""].map(|first| {
        [("wrong", false), ("wrong", true), ("", true)].map(|(word, clear)| (first, word, clear))
    });
    let hears: [fn(Way, &str, Proof) -> Heard; 2] = [packets_heard, change_heard];
    let ways = given.concat().into_iter();
    let ways: Vec<_> = ways
        .flat_map(|proof| hears.map(|hear| (hear, proof)))
        .collect();
    for real in pooled_servers() {
        let proofs = ["password = \"password\"", hash];
        for (wanted, proof) in plugins.map(|one| proofs.map(|proof| (one, proof))).concat() {
            let rest =
                format!("auth = \"{wanted}\"\nbackend_user = \"app\"\nbackend_password = \"app\"");
            let text = format!(
                "[backend]\naddress = \"{}\"\n[[user]]\nname = \"known\"\n{proof}\n{rest}\n\
                 [[user]]\nname = \"entry\"\npassword = \"entry\"\n{rest}\n",
                real.address()
            );
            let pool = pool_from(real, &text);
            // Before and after the pool has learnt what it can of the password.
            for (first_source, learnt) in [(1, false), (100, true)] {
                if learnt {
                    login(&pool.address, &Account::new("known", "password"));
                }
                std::thread::scope(|scope| {
                    for (source, &(hear, given)) in (first_source..).zip(&ways) {
                        let way = (&pool.address, source);
                        let heard = ["where", "known"]
                            .map(|user| scope.spawn(move || hear(way, user, given)));
                        scope.spawn(move || {
                            let [mut unknown, known] = heard.map(|one| one.join().unwrap());
                            let (_, last) = unknown.last_mut().unwrap();
                            says(&String::from_utf8_lossy(last), "for user 'where'");
                            let at = last.windows(5).position(|word| word == b"where");
                            last[at.unwrap()..][..5].copy_from_slice(b"known");
                            let case = format!("{wanted}, {proof}, learnt: {learnt}, {given:?}");
                            assert_eq!(known, unknown, "{case}");
                        });
                    }
                });
            }
        }
    }
}

/// All that a wrong password hears under this name: at a login and at a change of user, whatever
/// plugin it begins with. The name and the address are left out.
fn all_heard(pool: &Address, source: u32, user: &str) -> Vec<Heard> {
    let mut all = Vec::new();
    for (source, first) in (source..).zip(["mysql_native_password", "caching_sha2_password", ""]) {
        let (way, wrong) = ((pool, source), (first, "wrong", false));
        all.extend([
            packets_heard(way, user, wrong),
            change_heard(way, user, wrong),
        ]);
    }
    for (_, last) in all.iter_mut().filter_map(|heard| heard.last_mut()) {
        let place = |words: &[u8]| last.windows(words.len()).position(|part| part == words);
        let account = place(user.as_bytes()).zip(place(b"' (using password: YES)"));
        let (from, to) = account.expect("an error that names the user");
        last.drain(from..to);
    }
    all
}

/// Each unknown name is asked for one of the plugins that users have, always the same: it is
/// a user's whose name nobody knows, for all that can be heard.
#[test]
fn an_unknown_name_has_a_plugin_of_its_own_where_users_have_several() {
    let Some(real) = pooled(server) else { return };
    let users = [
        ("native", "auth = \"mysql_native_password\""),
        ("sha2", "auth = \"caching_sha2_password\""),
        ("either", ""),
        // The one whose connections change their user.
        ("entry", "auth = \"caching_sha2_password\""),
    ];
    let mut text = format!("[backend]\naddress = \"{}\"\n", real.address());
    for (name, auth) in users {
        text += &format!(
            "[[user]]\nname = \"{name}\"\npassword = \"{name}\"\n{auth}\n\
             backend_user = \"app\"\nbackend_password = \"app\"\n"
        );
    }
    let pool = pool_from(real, &text);
    // Its quick answer is known to be right.
    login(&pool.address, &Account::new("entry", "entry"));
    let names: Vec<String> = (0..24).map(|n| format!("nobody{n}")).collect();
    let asked: Vec<&str> = users[..3].iter().map(|(name, _)| *name).collect();
    // The unknown ones twice.
    let unknown = names.iter().chain(&names).map(String::as_str);
    let heard: Vec<_> = std::thread::scope(|scope| {
        let all = (0..).zip(asked.iter().copied().chain(unknown));
        let all = all.map(|(n, user)| {
            let address = &pool.address;
            scope.spawn(move || all_heard(address, 1 + 3 * n, user))
        });
        let threads: Vec<_> = all.collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let (known, unknown) = heard.split_at(3);
    let (first, again) = unknown.split_at(names.len());
    for ((name, heard), again) in names.iter().zip(first).zip(again) {
        assert!(known.contains(heard), "{name}: {heard:?}");
        assert_eq!(heard, again, "{name}");
    }
    for (user, known) in asked.iter().zip(known) {
        let like = first.iter().filter(|heard| *heard == known).count();
        assert!(like > 0, "no name is like {user}");
    }
}

/// Some drivers speak the character set of the greeting's collation, unless they are told another.
#[test]
fn the_greeting_names_the_servers_collation() {
    for (real, expected) in [(pooled(server), None), (pooled(mysql), Some(255))] {
        let Some(real) = real else { continue };
        let pool = through(real, 1);
        let collation = |client: Client| client.talk().greeting.as_ref().unwrap().collation;
        let direct = collation(Client::connect(&real.address(), &app()).unwrap());
        assert_eq!(collation(login(&pool, &app())), direct);
        assert_eq!(expected.unwrap_or(direct), direct);
    }
}

/// The OK of a login reports the schema that it named, to clients that are told of changes.
#[test]
fn the_ok_of_a_login_is_the_servers() {
    for real in pooled_servers() {
        let pool = through(real, 2);
        let schema = app().schema("mysql");
        let accounts = [
            app(),
            schema.clone(),
            schema.clone().without(cap::DEPRECATE_EOF),
            schema.clone().without(cap::SESSION_TRACK),
            schema.with(cap::COMPRESS),
        ];
        // Schemas that the pool has tried, and those that it tries now.
        for account in accounts.iter().chain(&accounts) {
            let direct = Client::connect(&real.address(), account).unwrap();
            assert_eq!(login(&pool, account).talk().let_in, direct.talk().let_in);
        }
    }
}

/// MySQL's library from 9.0 on has no `mysql_native_password`: to a greeting with that plugin its
/// first answer is an empty one in the other.
#[test]
fn mysqls_own_command_line_logs_in() {
    for real in pooled_servers() {
        let open = "[[user]]\nname = \"open\"\npassword = \"\"\nbackend_user = \"app\"\n\
                    backend_password = \"app\"\n";
        let extra = format!("{}{open}", tls(real, "optional"));
        let pool = fresh_pool(real, &extra);
        let port = port_of(&pool.address);
        for mode in ["DISABLED", "REQUIRED"] {
            for (user, password, right) in [
                ("app", "app", true),
                ("open", "", true),
                ("sha", SHA_PASSWORD, true),
                ("hashed", "password", true),
                ("hashed_sha", "password", true),
                ("app", "wrong", false),
                ("app", "", false),
                ("nobody", "app", false),
            ] {
                let mut command = match mysql_command_line() {
                    Ok(command) => command,
                    Err(why) => return skip(&why),
                };
                command.args(["--no-defaults", "--protocol=tcp", "-h127.0.0.1", "-N"]);
                command.args(words(&format!("-P {port} -u{user} --ssl-mode={mode}")));
                command.args([&format!("--password={password}"), "--get-server-public-key"]);
                command.args(["-e", "SELECT 41 + 1"]).stdin(Stdio::null());
                let output = command.output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let case = format!("{mode} {user} {password:?}: {said}");
                match right {
                    true => assert_eq!(output.stdout, b"42\n", "{case}"),
                    false => assert!(said.contains("ERROR 1045 (28000)"), "{case}"),
                }
            }
        }
    }
}
