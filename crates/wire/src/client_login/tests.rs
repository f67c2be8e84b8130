//! Logins against packets written out: both plugins, the switch between them, refusals.
use super::*;
use crate::handshake::put_auth_switch;
use crate::packet::HEADER_LEN;

const NONCE: Nonce = *b"abcdefghijklmnopqrst";

const REQUIRED: u32 =
    cap::PROTOCOL_41 | cap::SECURE_CONNECTION | cap::PLUGIN_AUTH | cap::DEPRECATE_EOF;

fn who(password: &'static str, private: bool) -> Account<'static> {
    Account {
        user: b"app",
        credential: Credential::Password(password.as_bytes()),
        schema: b"shop",
        private,
        wanted: REQUIRED | cap::LONG_PASSWORD | cap::CONNECT_WITH_DB | cap::FOUND_ROWS,
        extended: 0,
        required: REQUIRED,
        collation: COLLATION,
        server_key: ServerKey::Sent,
    }
}

fn greeting(plugin: &str, without: u32) -> Vec<u8> {
    let greeting = Greeting {
        version: b"8.0.36".to_vec(),
        connection_id: 7,
        nonce: NONCE,
        capabilities: (cap::OFFERED | cap::DEPRECATE_EOF | cap::SSL) & !without,
        extended: 0,
        collation: 45,
        status: 2,
        plugin: plugin.as_bytes().to_vec(),
    };
    let mut out = Vec::new();
    greeting.put(&mut out);
    out.split_off(HEADER_LEN)
}

/// Feeds one payload and returns what is sent: the packet's number and its payload.
fn step(login: &mut ClientLogin, who: &Account<'_>, seq: u8, payload: &[u8]) -> (u8, Vec<u8>) {
    let mut out = Vec::new();
    assert_eq!(
        login.on_packet(who, seq, payload, &mut out),
        Ok(Progress::Waits)
    );
    if out.is_empty() {
        return (0, out);
    }
    let payload = out.split_off(HEADER_LEN);
    assert_eq!(usize::from(out[0]), payload.len());
    (out[3], payload)
}

fn error(login: &mut ClientLogin, who: &Account<'_>, payload: &[u8]) -> LoginError {
    login
        .on_packet(who, 0, payload, &mut Vec::new())
        .unwrap_err()
}

#[test]
fn a_native_login_is_one_answer() {
    let (mut login, who) = (ClientLogin::new(), who("secret", false));
    let (seq, sent) = step(&mut login, &who, 0, &greeting("mysql_native_password", 0));
    assert_eq!(seq, 1);
    let response = Login::read(&sent).unwrap();
    assert_eq!(
        (response.user, response.schema),
        (&b"app"[..], &b"shop"[..])
    );
    assert_eq!(response.plugin, b"mysql_native_password");
    assert_eq!(
        response.answer,
        crate::auth::native::answer(b"secret", &NONCE)
    );
    let (asked, offered) = (response.capabilities, greeting("", cap::FOUND_ROWS));
    assert_eq!(asked, who.wanted);
    let mut out = Vec::new();
    let mut other = ClientLogin::new();
    other.on_packet(&who, 0, &offered, &mut out).unwrap();
    let asked = Login::read(&out[HEADER_LEN..]).unwrap().capabilities;
    assert_eq!(
        asked,
        who.wanted & !cap::FOUND_ROWS,
        "what is not offered is left out"
    );
    let mut out = Vec::new();
    let ok = b"\0\0\0\x02\0\0\0";
    assert_eq!(login.on_packet(&who, 2, ok, &mut out), Ok(Progress::Done));
    assert!(out.is_empty());
}

#[test]
fn an_empty_password_is_an_empty_answer() {
    let (mut login, who) = (ClientLogin::new(), who("", false));
    let (_, sent) = step(&mut login, &who, 0, &greeting("caching_sha2_password", 0));
    assert_eq!(Login::read(&sent).unwrap().answer, b"");
}

#[test]
fn the_server_may_switch_the_plugin() {
    let (mut login, who) = (ClientLogin::new(), who("secret", false));
    step(&mut login, &who, 0, &greeting("auth_gssapi", 0));
    let mut switch = Vec::new();
    let nonce = b"0123456789abcdefghij";
    put_auth_switch(&mut switch, 2, "caching_sha2_password", nonce);
    let (seq, sent) = step(&mut login, &who, 2, &switch[HEADER_LEN..]);
    assert_eq!(seq, 3);
    assert_eq!(sent, caching_sha2::answer(b"secret", nonce));
    assert_eq!(
        step(&mut login, &who, 4, b"\x01\x03"),
        (0, vec![]),
        "fast path"
    );
    let mut other = Vec::new();
    put_auth_switch(&mut other, 2, "client_ed25519", nonce);
    let error = error(&mut login, &who, &other[HEADER_LEN..]);
    assert_eq!(error, LoginError::Plugin("client_ed25519".into()));
    assert!(!error.to_string().contains("does not know"), "{error}");
    // MySQL names this one of accounts that it does not have.
    let error = LoginError::Plugin("sha256_password".into()).to_string();
    assert!(
        error.contains("whether there is such an account"),
        "{error}"
    );
}

#[test]
fn full_authentication_is_clear_where_nobody_listens() {
    let (mut login, who) = (ClientLogin::new(), who("secret", true));
    step(&mut login, &who, 0, &greeting("caching_sha2_password", 0));
    assert_eq!(
        step(&mut login, &who, 2, b"\x01\x04"),
        (3, b"secret\0".to_vec())
    );
}

#[test]
fn full_authentication_is_clear_under_tls_and_only_where_the_server_has_it() {
    let mut who = who("secret", false);
    who.wanted |= cap::SSL;
    for (without, answer) in [(0, &b"secret\0"[..]), (cap::SSL, &[2])] {
        let mut login = ClientLogin::new();
        let greeting = greeting("caching_sha2_password", without);
        step(&mut login, &who, 0, &greeting);
        assert_eq!(
            step(&mut login, &who, 2, b"\x01\x04"),
            (3, answer.to_vec()),
            "{without:x}"
        );
    }
}

#[test]
fn full_authentication_is_encrypted_over_tcp() {
    let pair = caching_sha2::KeyPair::generate().unwrap();
    let (mut login, who) = (ClientLogin::new(), who("secret", false));
    step(&mut login, &who, 0, &greeting("caching_sha2_password", 0));
    assert_eq!(step(&mut login, &who, 2, b"\x01\x04"), (3, vec![2]));
    let mut key = vec![1];
    key.extend_from_slice(pair.public_pem());
    let mut out = Vec::new();
    assert_eq!(
        login.on_packet(&who, 4, &key, &mut out),
        Ok(Progress::Waits)
    );
    assert_eq!(out[3], 5);
    let plain = pair.decrypt(&out[HEADER_LEN..]).unwrap();
    let password = caching_sha2::unmask(&plain, &NONCE).unwrap();
    assert_eq!(&password[..], b"secret");
}

#[test]
fn a_refusal_keeps_the_servers_words() {
    let (mut login, who) = (ClientLogin::new(), who("secret", false));
    let early = error(&mut login, &who, b"\xff\x10\x04Too many connections");
    assert_eq!(early.to_string(), "error 1040: Too many connections");
    step(&mut login, &who, 0, &greeting("mysql_native_password", 0));
    let late = error(&mut login, &who, b"\xff\x15\x04#28000Access denied");
    let LoginError::Refused { code, state, .. } = late else {
        panic!("{late:?}")
    };
    assert_eq!((code, &state[..]), (1045, &b"28000"[..]));
}

#[test]
fn an_old_server_is_told_what_it_lacks() {
    let (mut login, who) = (ClientLogin::new(), who("secret", false));
    let payload = greeting("mysql_native_password", cap::DEPRECATE_EOF);
    let words = error(&mut login, &who, &payload).to_string();
    assert!(
        words.contains("8.0.36") && words.contains("DEPRECATE_EOF"),
        "{words}"
    );
}

#[test]
fn nonsense_is_an_error() {
    let who = who("secret", false);
    let mut login = ClientLogin::new();
    for payload in [&b""[..], b"\x09old", b"\x0a5.5", b"\xfe"] {
        assert!(login.on_packet(&who, 0, payload, &mut Vec::new()).is_err());
    }
    step(&mut login, &who, 0, &greeting("mysql_native_password", 0));
    for payload in [
        &b""[..],
        b"\x05",
        b"\xfe",
        b"\xfeplugin\0short",
        b"\x01\x04",
        b"\x01",
    ] {
        assert!(login.on_packet(&who, 0, payload, &mut Vec::new()).is_err());
    }
}

/// Servers go by the request for TLS: MariaDB sends no extended metadata to who has not asked for
/// them there.
#[test]
fn a_request_for_tls_says_what_the_login_behind_it_says() {
    let both = cap::EXTENDED_BULK | cap::EXTENDED_METADATA;
    for (asked, offered, bytes) in [
        (0, 0, [0, 0, 0, 0]),
        (both, 0, [0, 0, 0, 0]),
        (0, both, [0, 0, 0, 0]),
        (both, cap::EXTENDED_METADATA, [8, 0, 0, 0]),
        (both, both, [12, 0, 0, 0]),
    ] {
        let greeting = Greeting {
            version: b"5.5.5-10.11.14-MariaDB".to_vec(),
            connection_id: 7,
            nonce: NONCE,
            capabilities: (cap::OFFERED | cap::DEPRECATE_EOF | cap::SSL) & !cap::LONG_PASSWORD,
            extended: offered,
            collation: 45,
            status: 2,
            plugin: b"mysql_native_password".to_vec(),
        };
        let mut payload = Vec::new();
        greeting.put(&mut payload);
        let payload = payload.split_off(HEADER_LEN);
        let mut who = who("secret", false);
        who.wanted |= cap::SSL;
        who.extended = asked;
        let mut request = Vec::new();
        let offers = put_tls_request(who.first(), 0, &payload, &mut request);
        assert_eq!(offers, Ok(true));
        assert_eq!(request[..HEADER_LEN], [32, 0, 0, 1]);
        let (_, login) = step(&mut ClientLogin::new(), &who, 1, &payload);
        assert_eq!(
            request[HEADER_LEN..],
            login[..32],
            "{asked:#x} {offered:#x}"
        );
        assert_eq!(request[HEADER_LEN + 28..], bytes);
        // LONG_PASSWORD says that there are no extended capabilities.
        assert_eq!(request[HEADER_LEN] & 1 == 1, bytes == [0; 4]);
    }
}

/// A server in whose place somebody else answers: it asks a native account for the password itself.
fn asked_for_password(key: ServerKey<'_>) -> (Result<Progress, LoginError>, Vec<u8>, ClientLogin) {
    let who = Account {
        server_key: key,
        ..who("secret", false)
    };
    let mut login = ClientLogin::new();
    step(&mut login, &who, 0, &greeting("mysql_native_password", 0));
    let mut switch = Vec::new();
    put_auth_switch(&mut switch, 2, "caching_sha2_password", &NONCE);
    step(&mut login, &who, 2, &switch[HEADER_LEN..]);
    let mut out = Vec::new();
    let progress = login.on_packet(&who, 4, b"\x01\x04", &mut out);
    (progress, out, login)
}

#[test]
fn a_password_is_encrypted_by_an_allowed_key_alone() {
    let (refused, out, _) = asked_for_password(ServerKey::None);
    assert_eq!(refused, Err(LoginError::Unprotected));
    assert_eq!(out, b"", "nor is a key asked for");
    let pair = caching_sha2::KeyPair::generate().unwrap();
    let pinned = ServerKey::Pinned(pair.public_pem());
    let (sent, out, mut login) = asked_for_password(pinned);
    assert_eq!((sent, out[3]), (Ok(Progress::Waits), 5));
    let plain = pair.decrypt(&out[HEADER_LEN..]).unwrap();
    let password = caching_sha2::unmask(&plain, &NONCE).unwrap();
    assert_eq!(&password[..], b"secret");
    // Another key that comes all the same is not used.
    let other = caching_sha2::KeyPair::generate().unwrap();
    let key = [&[1][..], other.public_pem()].concat();
    let who = Account {
        server_key: pinned,
        ..who("secret", false)
    };
    let mut out = Vec::new();
    let error = login.on_packet(&who, 6, &key, &mut out).unwrap_err();
    assert!(matches!(error, LoginError::OutOfPlace(_)), "{error}");
    assert_eq!(out, b"");
}

#[test]
fn a_hash_serves_with_the_plugin_of_its_account_alone() {
    let hash = [7; 20];
    let who = Account {
        credential: Credential::Native(&hash),
        ..who("", false)
    };
    let mut login = ClientLogin::new();
    step(&mut login, &who, 0, &greeting("caching_sha2_password", 0));
    let mut switch = Vec::new();
    put_auth_switch(&mut switch, 2, "caching_sha2_password", &NONCE);
    let refused = error(&mut login, &who, &switch[HEADER_LEN..]);
    assert!(
        matches!(refused, LoginError::PasswordUnknown(_)),
        "{refused}"
    );
}

#[test]
fn a_login_has_as_many_packets_as_it_may() {
    let mut switch = Vec::new();
    put_auth_switch(&mut switch, 2, "caching_sha2_password", &NONCE);
    let who = who("secret", true);
    for again in [&switch[HEADER_LEN..], b"\x01\x03", b"\x01\x04"] {
        let mut login = ClientLogin::new();
        step(&mut login, &who, 0, &greeting("caching_sha2_password", 0));
        for _ in 1..LOGIN_PACKETS_MAX {
            let mut out = Vec::new();
            assert_eq!(
                login.on_packet(&who, 2, again, &mut out),
                Ok(Progress::Waits)
            );
        }
        let words = error(&mut login, &who, again).to_string();
        assert!(words.contains("more than 10 packets"), "{words}");
    }
}
