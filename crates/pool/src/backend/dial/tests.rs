//! Our login on a server, against packets written out.
use super::*;
use crate::server::tls::ServerKey;
use wire::auth::Nonce;
use wire::auth::caching_sha2::KeyPair;
use wire::capabilities as cap;
use wire::handshake::Login;
use wire::packet::HEADER_LEN;

const NONCE: Nonce = *b"abcdefghijklmnopqrst";

fn pool_key() -> PoolKey {
    PoolKey {
        capabilities: cap::FOUND_ROWS,
        ..PoolKey::of_user("app")
    }
}

fn security(asking: Asking) -> Security {
    let key = ServerKey::None;
    Security { asking, key }
}

fn greeting(capabilities: u32, plugin: &str) -> Vec<u8> {
    let greeting = Greeting {
        version: b"10.11.6-MariaDB".to_vec(),
        connection_id: 1,
        nonce: NONCE,
        capabilities,
        extended: 0,
        collation: 45,
        status: 2,
        plugin: plugin.as_bytes().to_vec(),
    };
    let mut out = Vec::new();
    greeting.put(&mut out);
    out.split_off(4)
}

const ALL: u32 = 0x81FF_F7FE | 1;

fn sent(step: DialStep) -> Vec<u8> {
    match step {
        DialStep::Send(out) => out,
        other => panic!("expected bytes to send, got {other:?}"),
    }
}

#[test]
fn a_native_login_is_one_answer() {
    let mut dial = Dial::new(false, security(Asking::Off));
    let out = sent(dial.packet(&pool_key(), &greeting(ALL, "mysql_native_password"), 0));
    assert_eq!(out[3], 1);
    let login = Login::read(&out[4..]).unwrap();
    assert_eq!(login.user, b"app");
    assert_eq!(login.answer, wire::auth::native::answer(b"secret", &NONCE));
    assert_ne!(login.capabilities & cap::SESSION_TRACK, 0);
    assert_ne!(
        login.capabilities & cap::FOUND_ROWS,
        0,
        "the key of this key of backend"
    );
    assert_eq!(login.capabilities & cap::SSL, 0);
    assert_eq!(
        dial.packet(&pool_key(), b"\0\0\0\x02\0\0\0", 2),
        DialStep::In
    );
}

#[test]
fn a_server_without_trackers_is_refused_by_name() {
    let old = ALL & !cap::SESSION_TRACK;
    let step = Dial::new(false, security(Asking::Off)).packet(
        &pool_key(),
        &greeting(old, "mysql_native_password"),
        0,
    );
    let DialStep::Failed(text, true) = step else {
        panic!("{step:?}")
    };
    assert!(text.contains("CLIENT_SESSION_TRACK"), "{text}");
}

#[test]
fn the_server_may_ask_for_another_plugin() {
    let mut dial = Dial::new(false, security(Asking::Off));
    sent(dial.packet(&pool_key(), &greeting(ALL, "caching_sha2_password"), 0));
    let mut switch = b"\xfemysql_native_password\0".to_vec();
    switch.extend_from_slice(b"ABCDEFGHIJKLMNOPQRST\0");
    let out = sent(dial.packet(&pool_key(), &switch, 2));
    assert_eq!(out[..4], [20, 0, 0, 3]);
    assert_eq!(
        out[4..],
        wire::auth::native::answer(b"secret", b"ABCDEFGHIJKLMNOPQRST")
    );
    let step = dial.packet(&pool_key(), b"\xfeed25519\0abcdefghijklmnopqrst\0", 2);
    let DialStep::Failed(text, true) = step else {
        panic!("{step:?}")
    };
    assert!(text.contains("'ed25519'"), "{text}");
}

#[test]
fn full_authentication_is_rsa_over_tcp_and_clear_over_a_unix_socket() {
    let keys = KeyPair::generate().unwrap();
    let mut refuses = Dial::new(false, security(Asking::Off));
    sent(refuses.packet(&pool_key(), &greeting(ALL, "caching_sha2_password"), 0));
    let DialStep::Failed(why, true) = refuses.packet(&pool_key(), &[1, 4], 2) else {
        panic!("nobody has said whose key is to encrypt it");
    };
    for words in ["was not sent", "backend.tls", "server_public_key"] {
        assert!(why.contains(words), "{why}");
    }
    let here = Address::parse("127.0.0.1:3306").unwrap();
    let mut dial = Dial::new(false, Security::of(None, &here));
    sent(dial.packet(&pool_key(), &greeting(ALL, "caching_sha2_password"), 0));
    assert_eq!(
        dial.packet(&pool_key(), &[1, 3], 2),
        DialStep::Wait,
        "the quick way"
    );
    assert_eq!(sent(dial.packet(&pool_key(), &[1, 4], 2)), [1, 0, 0, 3, 2]);
    let mut key = vec![1];
    key.extend_from_slice(keys.public_pem());
    let out = sent(dial.packet(&pool_key(), &key, 4));
    let plain = keys.decrypt(&out[4..]).unwrap();
    let password = wire::auth::caching_sha2::unmask(&plain, &NONCE);
    assert_eq!(password, Some(b"secret"[..].into()));
    let mut local = Dial::new(true, security(Asking::Off));
    sent(local.packet(&pool_key(), &greeting(ALL, "caching_sha2_password"), 0));
    assert_eq!(
        sent(local.packet(&pool_key(), &[1, 4], 2)),
        b"\x07\0\0\x03secret\0"
    );
}

#[test]
fn the_servers_own_words_are_kept() {
    let step = Dial::new(false, security(Asking::Off)).packet(
        &pool_key(),
        b"\xff\x10\x04Too many connections",
        0,
    );
    assert_eq!(
        step,
        DialStep::Failed("error 1040: Too many connections".into(), false)
    );
    let denied = |asking| {
        let mut dial = Dial::new(false, security(asking));
        sent(dial.packet(&pool_key(), &greeting(ALL, "mysql_native_password"), 0));
        dial.packet(&pool_key(), b"\xff\x15\x04#28000Access denied", 2)
    };
    let said = "error 1045: Access denied; look whether the pool's password for 'app' is the \
                account's on the server, and whether the account may log in from the pool's host";
    assert_eq!(
        denied(Asking::Preferred),
        DialStep::Failed(said.into(), true)
    );
    // Without TLS it may be for that.
    let DialStep::Failed(why, true) = denied(Asking::Off) else {
        panic!("it is denied");
    };
    assert!(
        why.starts_with(said) && why.contains("set backend.tls"),
        "{why}"
    );
}

#[test]
fn a_locked_account_needs_somebody_who_opens_it() {
    // 3118 of MySQL, 4151 of MariaDB.
    for code in [b"\x2e\x0c", b"\x37\x10"] {
        let mut dial = Dial::new(false, security(Asking::Off));
        sent(dial.packet(&pool_key(), &greeting(ALL, "mysql_native_password"), 0));
        let refusal = [b"\xff", &code[..], b"#HY000this account is locked"].concat();
        let step = dial.packet(&pool_key(), &refusal, 2);
        assert!(matches!(step, DialStep::Failed(_, true)), "{step:?}");
    }
}

#[test]
fn garbage_fails_with_a_sentence() {
    for payload in [&b""[..], b"\x09", b"HTTP/1.1 400 Bad Request"] {
        let step = Dial::new(false, security(Asking::Off)).packet(&pool_key(), payload, 0);
        assert!(matches!(step, DialStep::Failed(..)), "{step:?}");
    }
}

#[test]
fn a_server_without_the_attributes_that_clients_were_offered_is_refused() {
    let attributed = PoolKey {
        capabilities: cap::QUERY_ATTRIBUTES,
        ..pool_key()
    };
    let native = "mysql_native_password";
    let mut dial = Dial::new(false, security(Asking::Off));
    let with = greeting(ALL | cap::QUERY_ATTRIBUTES, native);
    let out = sent(dial.packet(&attributed, &with, 0));
    let login = Login::read(&out[4..]).unwrap();
    assert_ne!(login.capabilities & cap::QUERY_ATTRIBUTES, 0);
    let mut dial = Dial::new(false, security(Asking::Off));
    match dial.packet(&attributed, &greeting(ALL, native), 0) {
        DialStep::Failed(why, lasting) => {
            assert!(why.contains("CLIENT_QUERY_ATTRIBUTES"), "{why}");
            assert!(lasting);
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
    // Who was not offered them does not ask for them either.
    let mut dial = Dial::new(false, security(Asking::Off));
    let out = sent(dial.packet(&pool_key(), &with, 0));
    let login = Login::read(&out[4..]).unwrap();
    assert_eq!(login.capabilities & cap::QUERY_ATTRIBUTES, 0);
}

#[test]
fn a_fresh_backend_is_spoken_to_in_its_form() {
    let mut out = Vec::new();
    put_preparation(&mut out, Form::Plain, ROLE);
    assert_eq!(&out[4..8], b"\x03SET");
    assert!(out.ends_with(b",@@autocommit,CURRENT_ROLE()"));
    out.clear();
    put_preparation(&mut out, Form::Attributed, "");
    assert_eq!(&out[4..10], b"\x03\0\x01SET");
    let second = HEADER_LEN + 3 + TRACKERS.len();
    assert_eq!(&out[second + 4..second + 16], b"\x03\0\x01SELECT @@");
}
