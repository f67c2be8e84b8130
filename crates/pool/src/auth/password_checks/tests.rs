//! The queue of password checks: its bounds, equal answers, and whom a verdict reaches.
use super::*;
use crate::auth::accounts::{Accounts, Identity};
use crate::auth::host_pattern::ClientHost;
use crate::config::accounts_of;
use std::sync::LazyLock;
use wire::auth::Nonce;
use wire::auth::caching_sha2::{KeyPair, encrypt};

const NONCE: Nonce = *b"abcdefghij0123456789";
const OTHER: Nonce = *b"ABCDEFGHIJ9876543210";

struct World {
    accounts: Accounts,
    keys: KeyPair,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let text = r#"
        listen = ["127.0.0.1:1"]
        [backend]
        address = "127.0.0.1:2"
        [[user]]
        name = "hashed"
        password_hash = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"
        backend_password = "secret"
        [[user]]
        name = "later"
        password_hash = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"
        backend_password = "secret"
    "#;
    let users = crate::Raw::parse(text).unwrap().check().unwrap().users;
    World {
        accounts: Accounts::new(accounts_of(&users)),
        keys: KeyPair::generate().unwrap(),
    }
});

fn proof(user: Option<usize>, nonce: Nonce) -> Proof {
    let names = [&b"hashed"[..], b"later"];
    let host = ClientHost::of(None, true);
    let identity = WORLD.accounts.find(names[user.unwrap_or(0)], &host);
    Proof {
        identity: Identity { user, ..identity },
        nonce,
        quick: b"no answer to anything, 32 bytes!".to_vec(),
        sent: Sent::Encrypted,
    }
}

fn client(number: u32) -> (usize, ClientId) {
    (0, ClientId::from_parts(number, 0))
}

fn verdict(number: u32, right: bool) -> Verdict {
    let (group, client) = client(number);
    Verdict {
        group,
        client,
        checked: match right {
            true => Checked::Right,
            false => Checked::Wrong,
        },
    }
}

fn sent(password: &[u8]) -> Vec<u8> {
    encrypt(password, &NONCE, WORLD.keys.public_pem()).unwrap()
}

fn run(checks: &PasswordChecks) -> Vec<Verdict> {
    let next = |kind| checks.next(kind);
    let check = next(CheckQueue::Prompt).or_else(|| next(CheckQueue::Suspect));
    let login_context = LoginContext {
        accounts: &WORLD.accounts,
        keys: &WORLD.keys,
    };
    check.map_or_else(Vec::new, |check| check.run(&login_context, &mut |_, _| ()))
}

#[test]
fn the_right_password_of_the_right_user_with_the_right_nonce_passes() {
    let checks = PasswordChecks::default();
    let cases = [
        (&b"secret"[..], Some(0), NONCE, true),
        (b"Secret", Some(0), NONCE, false),
        (b"secret", None, NONCE, false),
        (b"secret", Some(0), OTHER, false),
    ];
    for (number, (password, user, nonce, right)) in (0..).zip(cases) {
        let submitted = checks.submit(
            CheckQueue::Prompt,
            &sent(password),
            client(number),
            proof(user, nonce),
        );
        assert_eq!(run(&checks), [verdict(number, right)], "case {number}");
        drop(submitted.unwrap());
    }
    // What a login has cut is no encrypted password, and none in clear.
    for sent in [Sent::Encrypted, Sent::PerhapsClear] {
        let proof = Proof {
            sent,
            ..proof(Some(0), NONCE)
        };
        let submitted = checks.submit(CheckQueue::Prompt, &[7; 258], client(9), proof);
        let expected = Verdict {
            checked: Checked::OtherKey,
            ..verdict(9, false)
        };
        assert_eq!(run(&checks), [expected]);
        drop(submitted.unwrap());
    }
    assert_eq!(checks.waiting(), 0);
}

#[test]
fn a_password_for_another_key_is_told_from_a_wrong_one() {
    let (checks, other) = (PasswordChecks::default(), KeyPair::generate().unwrap());
    for (number, keys, checked) in [
        (1, &other, Checked::OtherKey),
        (2, &WORLD.keys, Checked::Right),
    ] {
        let sent = encrypt(b"secret", &NONCE, keys.public_pem()).unwrap();
        let proof = proof(Some(0), NONCE);
        let submitted = checks.submit(CheckQueue::Prompt, &sent, client(number), proof);
        let expected = Verdict {
            checked,
            ..verdict(number, true)
        };
        assert_eq!(run(&checks), [expected]);
        drop(submitted.unwrap());
    }
}

#[test]
fn equal_answers_are_decrypted_once_and_judged_each_by_its_nonce() {
    let checks = PasswordChecks::default();
    let sent = sent(b"secret");
    let mut waits = Vec::new();
    for (number, nonce) in [(1, NONCE), (2, OTHER), (3, NONCE)] {
        let submitted = checks.submit(
            CheckQueue::Prompt,
            &sent,
            client(number),
            proof(Some(0), nonce),
        );
        waits.push(submitted.unwrap());
    }
    assert_eq!(checks.waiting(), 1);
    let verdicts = run(&checks);
    let expected = [verdict(1, true), verdict(2, false), verdict(3, true)];
    assert_eq!(verdicts, expected);
}

#[test]
fn as_many_equal_answers_as_may_wait_and_no_more() {
    let checks = PasswordChecks::default();
    let mut waits = Vec::new();
    let mut submit = |number| {
        let submitted = checks.submit(
            CheckQueue::Prompt,
            b"same",
            client(number),
            proof(None, NONCE),
        );
        submitted.map(|one| waits.push(one))
    };
    let max = u32::try_from(ATTEMPTS_PER_CHECK_MAX).unwrap();
    assert!((0..max).all(|number| submit(number).is_ok()));
    let waiting = ATTEMPTS_PER_CHECK_MAX;
    assert_eq!(submit(max), Err(Full { waiting }));
}

#[test]
fn each_queue_is_full_at_its_bound_and_the_other_is_not() {
    let checks = PasswordChecks::default();
    let mut waits = Vec::new();
    let mut number = 0;
    for kind in [CheckQueue::Suspect, CheckQueue::Prompt] {
        let mut submit = || {
            number += 1u32;
            let answer = number.to_le_bytes();
            let submitted = checks.submit(kind, &answer, client(number), proof(None, NONCE));
            submitted.map(|one| waits.push(one))
        };
        let waiting = kind.max();
        assert!((0..waiting).all(|_| submit().is_ok()));
        assert_eq!(submit(), Err(Full { waiting }));
    }
    assert_eq!(checks.waiting(), CHECKS_MAX + SUSPECT_CHECKS_MAX);
}

#[test]
fn a_login_that_has_left_is_not_checked() {
    let checks = PasswordChecks::default();
    let sent = sent(b"secret");
    let left = checks.submit(CheckQueue::Prompt, &sent, client(1), proof(Some(0), NONCE));
    drop(left.unwrap());
    let stays = checks.submit(CheckQueue::Prompt, &sent, client(2), proof(Some(0), NONCE));
    assert_eq!(run(&checks), [verdict(2, true)]);
    drop(stays.unwrap());
}

#[test]
fn what_one_login_has_taught_answers_those_that_wait() {
    let checks = PasswordChecks::default();
    let user = Some(1);
    let quick = caching_sha2::answer(b"secret", &OTHER).to_vec();
    let quick = Proof {
        quick,
        ..proof(user, OTHER)
    };
    let first = checks.submit(
        CheckQueue::Prompt,
        &sent(b"secret"),
        client(1),
        proof(user, NONCE),
    );
    // What it sends cannot be decrypted: its quick answer alone can prove it.
    let second = checks.submit(CheckQueue::Prompt, &[9; 256], client(2), quick);
    assert_eq!(run(&checks), [verdict(1, true)]);
    assert_eq!(run(&checks), [verdict(2, true)]);
    assert!(first.is_ok() && second.is_ok());
}
