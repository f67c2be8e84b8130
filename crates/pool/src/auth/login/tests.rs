//! The login exchange: both plugins, right and wrong, without a socket.
use super::*;
use crate::auth::accounts::Accounts;
use crate::auth::verifier::Verifier;
use crate::config::{Raw, User, accounts_of};
use std::sync::LazyLock;
use wire::auth::caching_sha2::{Cached, KeyPair};

const NONCE: Nonce = *b"abcdefghij0123456789";
const FRESH: Nonce = *b"ABCDEFGHIJ9876543210";

static KEYS: LazyLock<KeyPair> = LazyLock::new(|| KeyPair::generate().unwrap());

fn users() -> Vec<User> {
    let text = r#"
        listen = ["127.0.0.1:1"]
        [backend]
        address = "127.0.0.1:2"
        [[user]]
        name = "any"
        password = "secret"
        [[user]]
        name = "sha2"
        password = "secret"
        auth = "caching_sha2_password"
        [[user]]
        name = "hashed"
        password_hash = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"
        backend_password = "secret"
        auth = "caching_sha2_password"
        [[user]]
        name = "open"
        password = ""
    "#;
    let mut users = Raw::parse(text).unwrap().check().unwrap().users;
    let mut clear = users[1].clone();
    clear.name = "clear".into();
    clear.method = Some(Method::ClearPassword);
    users.push(clear);
    users
}

struct Fixture {
    accounts: Accounts,
}

/// A Unix socket.
const HERE: ClientHost = ClientHost {
    address: None,
    is_localhost: true,
};

impl Fixture {
    fn new() -> Fixture {
        Fixture::of(&users())
    }

    fn of(users: &[User]) -> Fixture {
        Fixture {
            accounts: Accounts::new(accounts_of(users)),
        }
    }

    fn learnt(&self, name: &str) -> Option<Cached> {
        let found = self.accounts.find(name.as_bytes(), &HERE);
        found.like.learnt.sha2().map(|learnt| learnt.cached)
    }

    /// Calls [`Login::answer`], with the worker's verdict in place of the wait for it.
    fn answer(&self, login: &mut Login, answer: &[u8], seq: u8) -> Outcome {
        match login.answer(&self.login_context(), answer, seq) {
            Outcome::Check(answer) => {
                let plain = KEYS.decrypt(&answer).unwrap_or_default();
                let proof = login.proof().unwrap();
                let password = caching_sha2::unmask(&plain, &proof.nonce).unwrap_or_default();
                let right = proof.is_proven_by(&password);
                let checked = match right {
                    true => Checked::Right,
                    false => Checked::Wrong,
                };
                login.checked(checked, seq)
            }
            outcome => outcome,
        }
    }

    fn login_context(&self) -> LoginContext<'_> {
        LoginContext {
            keys: &KEYS,
            accounts: &self.accounts,
        }
    }

    fn begin(&self, login: &mut Login, user: &str, plugin: Plugin, password: &str) -> Outcome {
        let answer = plugin.answer(password.as_bytes(), &NONCE);
        let sent = handshake::Login {
            capabilities: 0,
            collation: 45,
            user: user.as_bytes(),
            answer: &answer,
            schema: b"",
            plugin: plugin.name().as_bytes(),
            zstd_level: 3,
            extended: 0,
        };
        login.begin(&self.login_context(), &sent, (&HERE, FRESH), 2)
    }
}

fn secret_hash_is_the_hash_of_secret() -> bool {
    native::stored_from_text("*14E65567ABDB5135D0CFD9A70B3032C179A49EE7")
        == Some(native::stored(b"secret"))
}

const NONCES: Nonces = Nonces {
    greeted: NONCE,
    fresh: FRESH,
};

#[test]
fn native_is_proven_at_once() {
    let fixture = Fixture::new();
    let mut login = Login::new(NONCE, false);
    let outcome = fixture.begin(&mut login, "any", Plugin::Native, "secret");
    assert_eq!(outcome, Outcome::Welcome(0, vec![], 2));
    let outcome = fixture.begin(&mut login, "any", Plugin::Native, "wrong");
    assert_eq!(outcome, Outcome::Denied(2, true));
    let outcome = fixture.begin(&mut login, "any", Plugin::Native, "");
    assert_eq!(outcome, Outcome::Denied(2, false));
}

#[test]
fn caching_sha2_says_that_it_was_quick() {
    let fixture = Fixture::new();
    let mut login = Login::new(NONCE, false);
    let outcome = fixture.begin(&mut login, "sha2", Plugin::CachingSha2, "secret");
    assert_eq!(outcome, Outcome::Welcome(1, vec![2, 0, 0, 2, 1, 3], 3));
    let outcome = fixture.begin(&mut login, "sha2", Plugin::CachingSha2, "wrong");
    assert_eq!(
        outcome,
        Outcome::Send(vec![2, 0, 0, 2, 1, 4]),
        "the password itself decides"
    );
    let sent = caching_sha2::encrypt(b"wrong", &NONCE, KEYS.public_pem()).unwrap();
    assert_eq!(
        fixture.answer(&mut login, &sent, 4),
        Outcome::Denied(4, true)
    );
}

#[test]
fn another_plugin_is_asked_for_with_a_new_nonce() {
    let fixture = Fixture::new();
    let mut login = Login::new(NONCE, false);
    let Outcome::Send(out) = fixture.begin(&mut login, "sha2", Plugin::Native, "secret") else {
        panic!("a switch had to come");
    };
    let switch = handshake::AuthSwitch::read(&out[4..]).unwrap();
    assert_eq!(
        (switch.plugin, switch.nonce()),
        (&b"caching_sha2_password"[..], Some(FRESH))
    );
    let old = caching_sha2::answer(b"secret", &NONCE);
    let outcome = fixture.answer(&mut login, &old, 4);
    assert_eq!(
        outcome,
        Outcome::Send(vec![2, 0, 0, 4, 1, 4]),
        "an answer to the old nonce"
    );
    let mut login = Login::new(NONCE, false);
    let _ = fixture.begin(&mut login, "sha2", Plugin::Native, "secret");
    let new = caching_sha2::answer(b"secret", &FRESH);
    assert!(matches!(
        fixture.answer(&mut login, &new, 4),
        Outcome::Welcome(1, _, 5)
    ));
}

#[test]
fn full_authentication_goes_by_rsa_and_is_remembered() {
    assert!(secret_hash_is_the_hash_of_secret());
    let fixture = Fixture::new();
    let mut login = Login::new(NONCE, false);
    let outcome = fixture.begin(&mut login, "hashed", Plugin::CachingSha2, "secret");
    assert_eq!(outcome, Outcome::Send(vec![2, 0, 0, 2, 1, 4]));
    let Outcome::Send(pem) = fixture.answer(&mut login, &[2], 4) else {
        panic!()
    };
    let sent = caching_sha2::encrypt(b"secret", &NONCE, &pem[5..]).unwrap();
    assert_eq!(
        fixture.answer(&mut login, &sent, 6),
        Outcome::Welcome(2, vec![], 6)
    );
    let mut second = Login::new(NONCE, false);
    let outcome = fixture.begin(&mut second, "hashed", Plugin::CachingSha2, "secret");
    assert!(
        matches!(outcome, Outcome::Welcome(2, _, 3)),
        "quick the second time"
    );
}

#[test]
fn a_wrong_password_in_full_authentication_teaches_nothing() {
    let fixture = Fixture::new();
    let mut login = Login::new(NONCE, false);
    let _ = fixture.begin(&mut login, "hashed", Plugin::CachingSha2, "wrong");
    let sent = caching_sha2::encrypt(b"wrong", &NONCE, KEYS.public_pem()).unwrap();
    assert_eq!(
        fixture.answer(&mut login, &sent, 6),
        Outcome::Denied(6, true)
    );
    assert_eq!(fixture.learnt("hashed"), None);
}

#[test]
fn a_password_in_clear_is_taken_from_a_unix_socket_only() {
    for secure in [true, false] {
        let fixture = Fixture::new();
        let mut login = Login::new(NONCE, secure);
        let _ = fixture.begin(&mut login, "hashed", Plugin::CachingSha2, "secret");
        let outcome = fixture.answer(&mut login, b"secret\0", 4);
        assert_eq!(matches!(outcome, Outcome::Welcome(2, ..)), secure);
    }
}

/// An encrypted answer whose last byte is 0, as that of a password in clear is.
fn encrypted_with_a_zero_at_its_end(password: &[u8]) -> Vec<u8> {
    let mut all = std::iter::repeat_with(|| {
        caching_sha2::encrypt(password, &NONCE, KEYS.public_pem()).unwrap()
    });
    all.find(|sent| sent.last() == Some(&0)).unwrap()
}

#[test]
fn an_encrypted_password_that_ends_like_one_in_clear_is_decrypted() {
    let fixture = Fixture::new();
    let mut login = Login::new(NONCE, true);
    let _ = fixture.begin(&mut login, "hashed", Plugin::CachingSha2, "secret");
    let sent = encrypted_with_a_zero_at_its_end(b"secret");
    assert_eq!(
        fixture.answer(&mut login, &sent, 4),
        Outcome::Welcome(2, vec![], 4)
    );
}

#[test]
fn what_cannot_be_an_encrypted_password_is_not_decrypted() {
    let fixture = Fixture::new();
    for len in [1, 255, 257, 5000] {
        let mut login = Login::new(NONCE, false);
        let _ = fixture.begin(&mut login, "hashed", Plugin::CachingSha2, "secret");
        let outcome = login.answer(&fixture.login_context(), &vec![7; len], 4);
        assert_eq!(outcome, Outcome::Denied(4, true), "{len} bytes");
    }
}

/// A packet of a login may have 64 KiB, and each login that waits for its verdict would keep them.
#[test]
fn what_is_kept_of_a_login_is_bounded_whatever_it_sends() {
    let fixture = Fixture::new();
    let long = vec![b'x'; 60_000];
    let name = String::from_utf8(long.clone()).unwrap();
    let mut login = Login::new(NONCE, true);
    let _ = fixture.begin(&mut login, &name, Plugin::CachingSha2, "secret");
    assert_eq!(login.name.len(), NAME_MAX);
    let mut login = Login::new(NONCE, true);
    let nothing = fixture.begin(&mut login, "hashed", Plugin::Native, "");
    assert!(matches!(nothing, Outcome::Send(_)), "another plugin");
    let asked = login.answer(&fixture.login_context(), &long, 3);
    assert!(matches!(asked, Outcome::Send(_)), "the password");
    assert_eq!(login.proof().unwrap().quick.len(), 0);
}

/// A long answer for an account whose stored hash takes a worker its time is bounded and wrong.
#[test]
fn what_a_worker_is_given_is_bounded_and_what_is_too_long_is_wrong() {
    let digits = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcde";
    let stored = format!("$A$001$01234567890123456789{digits}");
    let mut account = accounts_of(&users()).remove(0);
    account.verifier = Verifier::from_stored(Plugin::CachingSha2, stored.as_bytes());
    account.method = Some(Method::Plugin(Plugin::CachingSha2));
    let name = account.name.clone();
    let fixture = Fixture {
        accounts: Accounts::new(vec![account]),
    };
    for len in [1, PASSWORD_MAX + 1, PASSWORD_MAX + 2, 60_000] {
        let mut login = Login::new(NONCE, true);
        let _ = fixture.begin(&mut login, &name, Plugin::CachingSha2, "secret");
        let mut sent = vec![b'x'; len - 1];
        sent.push(0);
        let Outcome::Check(given) = login.answer(&fixture.login_context(), &sent, 4) else {
            panic!("{len} bytes are not checked");
        };
        assert_eq!(given.len(), len.min(ANSWER_MAX));
        assert_eq!(given[..] == sent[..], len <= ANSWER_MAX);
    }
}

/// Everything that a client hears that logs in, or changes its user, with a wrong password.
fn summary(
    fixture: &Fixture,
    name: &str,
    first: Plugin,
    change: bool,
    password: &str,
) -> Vec<Outcome> {
    let mut login = Login::new(NONCE, false);
    let (mut nonce, mut plugin) = (NONCE, first);
    let mut outcome = if change {
        login.change(
            &fixture.login_context(),
            (name.as_bytes(), &HERE),
            first.name().as_bytes(),
            Nonces {
                greeted: FRESH,
                fresh: FRESH,
            },
            2,
        )
    } else {
        fixture.begin(&mut login, name, first, password)
    };
    let mut all = Vec::new();
    for seq in [4, 6, 8] {
        all.push(outcome.clone());
        let Outcome::Send(out) = &outcome else { break };
        let answer = match out[4] {
            handshake::AUTH_SWITCH => {
                let switch = handshake::AuthSwitch::read(&out[4..]).unwrap();
                plugin = Plugin::from_name(switch.plugin).unwrap();
                nonce = switch.nonce().unwrap();
                plugin.answer(password.as_bytes(), &nonce)
            }
            _ => caching_sha2::encrypt(b"wrong", &nonce, KEYS.public_pem()).unwrap(),
        };
        outcome = fixture.answer(&mut login, &answer, seq);
    }
    assert!(
        matches!(all.last(), Some(Outcome::Denied(..))),
        "{name} {plugin:?}: {all:?}"
    );
    all
}

/// Users with these plugins, and one with neither a plugin nor a password.
fn users_with(plugins: &[&str]) -> Vec<User> {
    let mut text =
        String::from("listen = [\"127.0.0.1:1\"]\n[backend]\naddress = \"127.0.0.1:2\"\n");
    for (number, plugin) in plugins.iter().enumerate() {
        text += &format!("[[user]]\nname = \"user{number}\"\npassword = \"secret{number}\"\n");
        if !plugin.is_empty() {
            text += &format!("auth = \"{plugin}\"\n");
        }
    }
    text += "[[user]]\nname = \"open\"\npassword = \"\"\n";
    Raw::parse(&text).unwrap().check().unwrap().users
}

#[test]
fn an_unknown_user_hears_what_a_known_one_hears_for_a_wrong_password() {
    let (native, sha2) = ("mysql_native_password", "caching_sha2_password");
    for plugins in [
        &[native][..],
        &[sha2],
        &[""],
        &[native, sha2],
        &[sha2, "", sha2],
    ] {
        let fixture = Fixture::of(&users_with(plugins));
        for (first, change) in [
            (Plugin::Native, false),
            (Plugin::CachingSha2, false),
            (Plugin::Native, true),
            (Plugin::CachingSha2, true),
        ] {
            for password in ["wrong", ""] {
                let of = |name: &str| summary(&fixture, name, first, change, password);
                let known = (0..plugins.len()).map(|number| of(&format!("user{number}")));
                let known: Vec<_> = known.collect();
                let mut met = vec![false; known.len()];
                for number in 0..32 {
                    let unknown = of(&format!("nobody{number}"));
                    let same = known
                        .iter()
                        .zip(&mut met)
                        .filter(|(known, _)| **known == unknown);
                    let same = same.map(|(_, met)| *met = true).count();
                    assert!(
                        same > 0,
                        "{plugins:?} {first:?}: {unknown:?}, not in {known:?}"
                    );
                }
                assert!(
                    met.iter().all(|met| *met),
                    "{plugins:?}: no unknown user is like some"
                );
            }
        }
    }
}

#[test]
fn the_same_user_stands_in_for_an_unknown_one_at_each_start() {
    let plugins = ["mysql_native_password", "caching_sha2_password"];
    let [a, b] = [(); 2].map(|()| Fixture::of(&users_with(&plugins)));
    for number in 0..32 {
        let name = format!("nobody{number}");
        let found = a.accounts.find(name.as_bytes(), &HERE);
        let other = b.accounts.find(name.as_bytes(), &HERE);
        assert_eq!(found.like.name, other.like.name);
        assert_eq!(found.user, None);
    }
}

#[test]
fn an_unknown_user_is_denied_with_the_password_of_its_stand_in() {
    let fixture = Fixture::of(&users_with(&[""]));
    let mut login = Login::new(NONCE, false);
    for plugin in [Plugin::Native, Plugin::CachingSha2] {
        let outcome = fixture.begin(&mut login, "nobody", plugin, "secret0");
        assert!(!matches!(outcome, Outcome::Welcome(..)));
    }
    let sent = caching_sha2::encrypt(b"secret0", &NONCE, KEYS.public_pem()).unwrap();
    assert_eq!(
        fixture.answer(&mut login, &sent, 4),
        Outcome::Denied(4, true)
    );
    assert_eq!(login.name, b"nobody");
}

#[test]
fn an_account_without_password_takes_no_password() {
    let fixture = Fixture::new();
    let mut login = Login::new(NONCE, false);
    let outcome = fixture.begin(&mut login, "open", Plugin::Native, "");
    assert_eq!(outcome, Outcome::Welcome(3, vec![], 2));
    for no_password in [&b""[..], b"\0"] {
        let asked = fixture.begin(&mut login, "open", Plugin::CachingSha2, "");
        assert!(matches!(asked, Outcome::Send(_)), "{asked:?}");
        let outcome = fixture.answer(&mut login, no_password, 4);
        assert_eq!(outcome, Outcome::Welcome(3, vec![], 4), "{no_password:?}");
    }
    for plugin in [Plugin::Native, Plugin::CachingSha2] {
        let wrong = fixture.begin(&mut login, "open", plugin, "x");
        assert!(!matches!(wrong, Outcome::Welcome(..)));
    }
}

/// The first answer of a client that has no plugin but this one, to a greeting with the other.
#[test]
fn an_empty_first_answer_in_the_other_plugin_is_asked_for_again() {
    let fixture = Fixture::new();
    for (user, place) in [("any", 0), ("sha2", 1)] {
        for (password, right) in [("secret", true), ("wrong", false), ("", false)] {
            let mut login = Login::new(NONCE, false);
            let Outcome::Send(out) = fixture.begin(&mut login, user, Plugin::CachingSha2, "")
            else {
                panic!("{user} has to be asked");
            };
            let switch = handshake::AuthSwitch::read(&out[4..]).unwrap();
            assert_eq!(switch.plugin, b"caching_sha2_password");
            assert_eq!(switch.nonce(), Some(FRESH));
            let answer = Plugin::CachingSha2.answer(password.as_bytes(), &FRESH);
            let outcome = fixture.answer(&mut login, &answer, 4);
            match outcome {
                Outcome::Welcome(found, _, 5) => assert!(right && found == place),
                other => assert!(!right, "{other:?}"),
            }
        }
    }
}

#[test]
fn a_change_of_user_asks_native_passwords_with_the_nonce_of_the_greeting() {
    let fixture = Fixture::new();
    let login_context = fixture.login_context();
    let (native, sha2) = ("mysql_native_password", "caching_sha2_password");
    for (user, named, plugin, nonce) in [
        (&b"any"[..], "", native, NONCE),
        (b"any", "client_ed25519", native, NONCE),
        (b"any", native, native, NONCE),
        (b"any", sha2, sha2, FRESH),
        (b"sha2", native, sha2, FRESH),
    ] {
        let mut login = Login::new(NONCE, false);
        let mut expected = Vec::new();
        handshake::put_auth_switch(&mut expected, 1, plugin, &nonce);
        let outcome = login.change(&login_context, (user, &HERE), named.as_bytes(), NONCES, 1);
        assert_eq!(outcome, Outcome::Send(expected));
        let answer = Plugin::from_name(plugin.as_bytes())
            .unwrap()
            .answer(b"secret", &nonce);
        let outcome = login.answer(&login_context, &answer, 3);
        assert!(matches!(outcome, Outcome::Welcome(..)));
    }
}

/// Request for the password itself: a nonce without meaning behind the name.
const ASKED_IN_CLEAR: &[u8] = b"\x2b\0\0\x02\xfemysql_clear_password\0ABCDEFGHIJ9876543210\0";

#[test]
fn the_password_itself_is_asked_for_under_tls_alone() {
    let fixture = Fixture::new();
    for first in [Plugin::Native, Plugin::CachingSha2] {
        let mut login = Login::new(NONCE, true);
        let outcome = fixture.begin(&mut login, "clear", first, "secret");
        assert_eq!(
            outcome,
            Outcome::Denied(2, false),
            "a Unix socket is no TLS"
        );
        assert_eq!(login.obstacle(), Some("tls-required"));
        login.is_tls = true;
        assert_eq!(login.obstacle(), None);
        let asked = fixture.begin(&mut login, "clear", first, "secret");
        assert_eq!(asked, Outcome::Send(ASKED_IN_CLEAR.to_vec()));
    }
    let mut login = Login::new(NONCE, false);
    let context = fixture.login_context();
    let outcome = login.change(&context, (b"clear", &HERE), b"", NONCES, 2);
    assert_eq!(outcome, Outcome::Denied(2, false));
    login.is_tls = true;
    let outcome = login.change(&context, (b"clear", &HERE), b"", NONCES, 2);
    assert_eq!(outcome, Outcome::Send(ASKED_IN_CLEAR.to_vec()));
}

#[test]
fn the_password_itself_is_compared_whole() {
    let fixture = Fixture::new();
    let long = [b"secret".as_slice(), &[b'x'; PASSWORD_MAX]].concat();
    let all: [(&[u8], Outcome); 8] = [
        (b"secret\0", Outcome::Welcome(4, vec![], 4)),
        (b"secret", Outcome::Welcome(4, vec![], 4)),
        (b"secret\0\0", Outcome::Denied(4, true)),
        (b"secre\0", Outcome::Denied(4, true)),
        (b"secrets\0", Outcome::Denied(4, true)),
        (b"\0", Outcome::Denied(4, false)),
        (b"", Outcome::Denied(4, false)),
        (&long, Outcome::Denied(4, true)),
    ];
    for (answer, expected) in all {
        let mut login = Login::new(NONCE, false);
        login.is_tls = true;
        let _ = fixture.begin(&mut login, "clear", Plugin::Native, "secret");
        assert_eq!(
            fixture.answer(&mut login, answer, 4),
            expected,
            "{answer:?}"
        );
    }
    assert_eq!(fixture.learnt("clear"), None, "nothing is kept of it");
}

/// An unknown user is asked for the password itself where all users are, and is denied whatever it
/// sends.
#[test]
fn an_unknown_user_is_asked_for_the_password_itself_as_a_known_one_is() {
    let mut users = users();
    users.retain(|user| user.name == "clear");
    let fixture = Fixture::of(&users);
    for (name, right) in [("clear", true), ("nobody", false)] {
        let mut login = Login::new(NONCE, false);
        login.is_tls = true;
        let asked = fixture.begin(&mut login, name, Plugin::Native, "secret");
        assert_eq!(asked, Outcome::Send(ASKED_IN_CLEAR.to_vec()), "{name}");
        let outcome = fixture.answer(&mut login, b"secret\0", 4);
        assert_eq!(matches!(outcome, Outcome::Welcome(..)), right, "{name}");
        let mut login = Login::new(NONCE, false);
        let outcome = fixture.begin(&mut login, name, Plugin::Native, "secret");
        assert_eq!(outcome, Outcome::Denied(2, false), "{name}");
    }
}
