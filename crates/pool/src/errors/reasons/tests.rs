//! Every error that the pool can send is one that `onramp explain` knows.
//!
//! A variant that is added does not compile here until it has a number of its own in [`number`];
//! then the test asks for an example of it, and for its entry in the catalogue of `onramp explain`
//! (`crates/doctor/src/explain/catalogue/onramp.toml`).

use super::*;

/// Number of the variant, counted from 0 without a gap.
fn number(refusal: &Refusal) -> usize {
    match refusal {
        Refusal::Clients { .. } => 0,
        Refusal::GroupFull { .. } => 1,
        Refusal::UserClients { .. } => 2,
        Refusal::Memory { .. } => 3,
        Refusal::QueueFull { .. } => 4,
        Refusal::QueueBytes { .. } => 5,
        Refusal::UserQueueFull { .. } => 6,
        Refusal::SessionSetting { .. } => 7,
        Refusal::NotOnReader => 55,
        Refusal::StatementTime { .. } => 8,
        Refusal::TransactionTime { .. } => 9,
        Refusal::WaitedTooLong { .. } => 10,
        Refusal::Draining => 11,
        Refusal::Command { .. } => 12,
        Refusal::Kill => 13,
        Refusal::KillBackend => 14,
        Refusal::KillFailed(_) => 15,
        Refusal::Interrupted => 16,
        Refusal::PreviousGone => 17,
        Refusal::TooLong { .. } => 18,
        Refusal::OutOfOrder { .. } => 19,
        Refusal::Malformed(_) => 20,
        Refusal::TooSlow(_) => 21,
        Refusal::BackendLost(_) => 22,
        Refusal::TransactionLost => 52,
        Refusal::Restore(_) => 23,
        Refusal::Unrestored(_) => 24,
        Refusal::Prepared(Unprepared::LongData) => 26,
        Refusal::Prepared(Unprepared::Full { .. }) => 27,
        Refusal::Prepared(Unprepared::NoSession) => 28,
        Refusal::Prepared(Unprepared::Held { .. }) => 41,
        Refusal::Prepared(Unprepared::HeldBytes { .. }) => 42,
        Refusal::BackendLogin(_) => 29,
        Refusal::NoBackendLogin(_) => 48,
        Refusal::OwnCommands => 30,
        Refusal::Input { limit, .. } => match limit {
            InputLimit::Command(_) => 31,
            InputLimit::User { .. } => 32,
            InputLimit::NoRoom { .. } => 33,
            InputLimit::Stalled => 34,
            InputLimit::Share { .. } => 43,
        },
        Refusal::PasswordChecks { .. } => 35,
        Refusal::WrongProtocol { wrong } => match wrong {
            WrongProtocol::ProxyV1 => 36,
            WrongProtocol::ProxyV2 => 37,
            WrongProtocol::ClientHello => 38,
            WrongProtocol::SslRequest => 39,
        },
        Refusal::ServerDown { .. } => 40,
        Refusal::Tls(_) => 44,
        Refusal::InsecureTransport => 45,
        Refusal::ProxyHeader(_) => 46,
        Refusal::AddressLimit(_) => 25,
        Refusal::ClientAddresses { .. } => 47,
        Refusal::KeptIdle { .. } => 49,
        Refusal::ServerProtocol(_) => 50,
        Refusal::KeptBackends { .. } => 51,
        Refusal::RejectedDigest { .. } => 53,
        Refusal::DigestLimit { .. } => 54,
    }
}

const NUMBERS: usize = 56;

/// A command that had no room.
fn input(limit: InputLimit) -> Refusal {
    Refusal::Input { len: 70, limit }
}

/// An example of each, and the entry that explains it. Where the words are a server's own, so is
/// the entry.
fn examples() -> Vec<(Refusal, &'static str)> {
    let (queue, waiting) = (QueueName::Low, 5);
    let user = || "app".to_owned();
    let words = || "the server closed the connection".to_owned();
    let max = Duration::from_millis(300);
    vec![
        (Refusal::Clients { max: 100 }, "onramp-clients"),
        (Refusal::GroupFull { max: 900 }, "onramp-group-full"),
        (
            Refusal::AddressLimit(Met::examples()[0]),
            "onramp-address-limit",
        ),
        (
            Refusal::ClientAddresses { max: 1024 },
            "onramp-client-addresses",
        ),
        (
            Refusal::UserClients {
                user: user(),
                max: 3,
            },
            "onramp-user-clients",
        ),
        (Refusal::Memory { detail: words() }, "onramp-memory"),
        (Refusal::QueueFull { queue, waiting }, "onramp-queue-full"),
        (
            Refusal::QueueBytes {
                queue,
                bytes: 7,
                len: 8,
            },
            "onramp-queue-full",
        ),
        (
            Refusal::UserQueueFull {
                user: user(),
                queue,
                waiting,
            },
            "onramp-queue-full",
        ),
        (
            Refusal::SessionSetting {
                name: "onramp_priority",
                value: user(),
            },
            "onramp-priority",
        ),
        (Refusal::NotOnReader, "onramp-not-on-reader"),
        (Refusal::StatementTime { max }, "onramp-statement-time"),
        (Refusal::TransactionTime { max }, "onramp-transaction-time"),
        (Refusal::KeptIdle { max }, "onramp-kept-idle"),
        (
            Refusal::KeptBackends {
                max: 2,
                has_run: false,
            },
            "onramp-kept-backends",
        ),
        (
            Refusal::RejectedDigest {
                digest: 7,
                message: "too slow, see ticket 5".into(),
            },
            "onramp-rejected-digest",
        ),
        (
            Refusal::DigestLimit { digest: 7, max: 2 },
            "onramp-digest-limit",
        ),
        (
            Refusal::WaitedTooLong {
                queue,
                ahead: 2,
                waited: max,
                detail: words(),
            },
            "onramp-waited",
        ),
        (
            Refusal::ServerDown {
                lasted: max,
                why: words(),
            },
            "onramp-server-down",
        ),
        (Refusal::Draining, "onramp-draining"),
        (Refusal::Command { byte: 0x12 }, "onramp-command"),
        (Refusal::Kill, "onramp-kill"),
        (Refusal::KillBackend, "onramp-kill-backend"),
        (Refusal::KillFailed(words()), "onramp-kill-failed"),
        (Refusal::Interrupted, "server-1317"),
        (Refusal::PreviousGone, "onramp-previous"),
        (Refusal::TooLong { len: 70, max: 64 }, "server-1153"),
        (
            Refusal::OutOfOrder {
                expected: 1,
                got: 3,
            },
            "server-1156",
        ),
        (
            Refusal::Malformed("packet without a command".to_owned()),
            "onramp-malformed",
        ),
        (Refusal::TooSlow("the login took too long"), "onramp-slow"),
        (Refusal::BackendLost(words()), "onramp-backend-lost"),
        (Refusal::TransactionLost, "onramp-transaction-lost"),
        (Refusal::ServerProtocol(words()), "onramp-server-protocol"),
        (Refusal::Restore(words()), "onramp-restore"),
        (Refusal::Unrestored(words()), "onramp-unrestored"),
        (Refusal::Prepared(Unprepared::LongData), "onramp-prepared"),
        (
            Refusal::Prepared(Unprepared::Full { max: 9 }),
            "onramp-prepared-cursors",
        ),
        (
            Refusal::Prepared(Unprepared::Held { count: 16_382 }),
            "onramp-prepared-held",
        ),
        (
            Refusal::Prepared(Unprepared::HeldBytes { bytes: 1 << 26 }),
            "onramp-prepared-held",
        ),
        (Refusal::Prepared(Unprepared::NoSession), "onramp-prepared"),
        (Refusal::BackendLogin(words()), "onramp-backend-login"),
        (Refusal::NoBackendLogin(words()), "onramp-backend-login"),
        (Refusal::OwnCommands, "onramp-own-commands"),
        (input(InputLimit::Command(64)), "onramp-input"),
        (
            input(InputLimit::User {
                user: user(),
                max: 64,
            }),
            "onramp-input",
        ),
        (input(InputLimit::NoRoom { waited: max }), "onramp-input"),
        (input(InputLimit::Stalled), "onramp-input"),
        (input(InputLimit::Share { max: 64 }), "onramp-input"),
        (
            Refusal::PasswordChecks { waiting: 256 },
            "onramp-password-checks",
        ),
        (
            Refusal::WrongProtocol {
                wrong: WrongProtocol::ProxyV1,
            },
            "onramp-wrong-protocol",
        ),
        (
            Refusal::WrongProtocol {
                wrong: WrongProtocol::ProxyV2,
            },
            "onramp-wrong-protocol",
        ),
        (
            Refusal::WrongProtocol {
                wrong: WrongProtocol::ClientHello,
            },
            "onramp-wrong-protocol",
        ),
        (
            Refusal::WrongProtocol {
                wrong: WrongProtocol::SslRequest,
            },
            "onramp-wrong-protocol",
        ),
        (Refusal::Tls(words()), "onramp-tls"),
        (Refusal::ProxyHeader(words()), "onramp-proxy-header"),
        (Refusal::InsecureTransport, "login-3159"),
    ]
}

#[test]
fn every_refusal_has_an_entry_that_explains_it() {
    let examples = examples();
    let mut seen: Vec<usize> = examples
        .iter()
        .map(|(refusal, _)| number(refusal))
        .collect();
    seen.sort_unstable();
    assert!(
        seen.into_iter().eq(0..NUMBERS),
        "each variant has one example"
    );
    for (refusal, entry) in &examples {
        let ErrorCode { code, state } = refusal.code();
        // As the command line shows it, as Python does, and as Go does.
        for line in [
            format!("ERROR {code} ({state}): {refusal}"),
            format!("pymysql.err.OperationalError: ({code}, \"{refusal}\")"),
            format!("Error {code} ({state}): {refusal}"),
        ] {
            assert_eq!(doctor::explain::entry_of(&line), Some(*entry), "{line}");
        }
        // The pool's own numbers are nobody else's.
        if (9500..9600).contains(&code) {
            let number = code.to_string();
            assert!(doctor::explain::entry_of(&number).is_some(), "{number}");
        }
    }
}

#[test]
fn the_names_for_counters_are_those_of_all_refusals() {
    let examples = examples().into_iter().map(|(refusal, _)| refusal);
    let met = Met::examples().map(Refusal::AddressLimit);
    let names: BTreeSet<_> = examples.chain(met).map(|refusal| refusal.name()).collect();
    assert_eq!(names, Refusal::names());
}

#[test]
fn every_number_that_the_pool_sends_is_known() {
    for error in [
        errors::CON_COUNT,
        errors::HANDSHAKE,
        errors::ACCESS_DENIED,
        errors::UNKNOWN_COM,
        errors::BAD_DB,
        errors::SERVER_SHUTDOWN,
        errors::NO_SUCH_THREAD,
        errors::KILL_DENIED,
        errors::UNKNOWN_ERROR,
        errors::NET_PACKET_TOO_LARGE,
        errors::NET_PACKETS_OUT_OF_ORDER,
        errors::QUERY_INTERRUPTED,
        errors::MALFORMED_PACKET,
        errors::UNKNOWN_STATEMENT,
        errors::UNSUPPORTED_PREPARED,
        errors::NO_OPEN_CURSOR,
        errors::PREPARED_COUNT,
        errors::WAITED_TOO_LONG,
        errors::QUEUE_FULL,
        errors::USER_QUEUE_FULL,
        errors::QUEUE_BYTES,
        errors::TRANSACTION_TIMEOUT,
        errors::UNRESTORED,
        errors::LOCK_DEADLOCK,
        errors::SERVER_PROTOCOL,
        errors::OUT_OF_RESOURCES,
        errors::TOO_MANY_USER_CONNECTIONS,
        errors::WRONG_VALUE_FOR_VAR,
        errors::CLIENT_INACTIVE,
        errors::QUERY_TIMEOUT,
        errors::NOT_SUPPORTED,
        errors::NOT_SUPPORTED_AUTH_MODE,
        errors::CONNECTION_KILLED,
        errors::NET_READ,
        errors::NO_FOREIGN_SERVER,
    ] {
        let number = error.code.to_string();
        assert!(doctor::explain::entry_of(&number).is_some(), "{number}");
    }
}

#[test]
fn every_reason_is_in_the_documentation() {
    let page = include_str!("../../../../../docs/pool/errors.md");
    for name in Refusal::names() {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
