//! The login exchange: both plugins, right and wrong, without a socket.
use super::*;
use crate::config::Raw;
use std::sync::LazyLock;

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
    Raw::parse(text).unwrap().check().unwrap().users
}

struct Fixture {
    users: Vec<User>,
    learnt: RefCell<HashMap<usize, Cached>>,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture {
            users: users(),
            learnt: RefCell::default(),
        }
    }

    fn door(&self) -> Door<'_> {
        Door {
            users: &self.users,
            keys: &KEYS,
            learnt: &self.learnt,
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
        login.begin(&self.door(), &sent, FRESH, 2)
    }
}

fn secret_hash_is_the_hash_of_secret() -> bool {
    native::stored_from_text("*14E65567ABDB5135D0CFD9A70B3032C179A49EE7")
        == Some(native::stored(b"secret"))
}

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
        login.answer(&fixture.door(), &sent, 4),
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
    let outcome = login.answer(&fixture.door(), &old, 4);
    assert_eq!(
        outcome,
        Outcome::Send(vec![2, 0, 0, 4, 1, 4]),
        "an answer to the old nonce"
    );
    let mut login = Login::new(NONCE, false);
    let _ = fixture.begin(&mut login, "sha2", Plugin::Native, "secret");
    let new = caching_sha2::answer(b"secret", &FRESH);
    assert!(matches!(
        login.answer(&fixture.door(), &new, 4),
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
    let Outcome::Send(pem) = login.answer(&fixture.door(), &[2], 4) else {
        panic!()
    };
    let sent = caching_sha2::encrypt(b"secret", &NONCE, &pem[5..]).unwrap();
    assert_eq!(
        login.answer(&fixture.door(), &sent, 6),
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
        login.answer(&fixture.door(), &sent, 6),
        Outcome::Denied(6, true)
    );
    assert!(fixture.learnt.borrow().is_empty());
}

#[test]
fn a_password_in_clear_is_taken_from_a_unix_socket_only() {
    let fixture = Fixture::new();
    for secure in [true, false] {
        let mut login = Login::new(NONCE, secure);
        let _ = fixture.begin(&mut login, "hashed", Plugin::CachingSha2, "secret");
        let outcome = login.answer(&fixture.door(), b"secret\0", 4);
        assert_eq!(matches!(outcome, Outcome::Welcome(2, ..)), secure);
        fixture.learnt.borrow_mut().clear();
    }
}

#[test]
fn an_unknown_user_takes_the_steps_of_a_known_one() {
    let fixture = Fixture::new();
    let mut login = Login::new(NONCE, false);
    let outcome = fixture.begin(&mut login, "nobody", Plugin::Native, "x");
    assert_eq!(outcome, Outcome::Denied(2, true));
    assert_eq!(login.name, b"nobody");
}

#[test]
fn an_account_without_password_takes_no_password() {
    let fixture = Fixture::new();
    for plugin in [Plugin::Native, Plugin::CachingSha2] {
        let mut login = Login::new(NONCE, false);
        assert!(matches!(
            fixture.begin(&mut login, "open", plugin, ""),
            Outcome::Welcome(3, ..)
        ));
        let wrong = fixture.begin(&mut login, "open", plugin, "x");
        assert!(!matches!(wrong, Outcome::Welcome(..)));
    }
}
