//! Workloads of `onramp load` that prove data: right for a server and the pool, and wrong, with the
//! operations that show it, behind a proxy that does wrong to some statements.

use crate::world::*;
use serde_json::Value;
use std::net::SocketAddr;
use testkit::crooked::{self, Wrong};

const WORKLOADS: [&str; 3] = ["bank", "append", "register"];
/// Numbers of connections and of operations.
const RUN: [&str; 3] = ["--connections=8", "--events=2000", "--time=0"];

/// A server, and the beginning of the names of a test's schemas there.
#[derive(Clone, Copy)]
struct Place {
    real: &'static Real,
    name: &'static str,
}

impl Place {
    fn target(self, workload: &str, port: u16) -> String {
        let schema = format!("{}_{workload}", self.name);
        format!("--target=mysql://app:app@127.0.0.1:{port}/{schema}")
    }

    /// Makes the tables of a workload anew, and runs it through this port.
    fn prove(self, workload: &str, port: u16, more: &[&str]) -> (Ran, Value) {
        let schema = format!("{}_{workload}", self.name);
        fresh_schema(self.real, &schema);
        let own = self.target(workload, self.real.port());
        run(binary(), &["load", workload, "prepare", &own], LIMIT).ends(0);
        let json = self.real.folder().join(format!("{schema}.json"));
        let (json, target) = (json.to_str().unwrap(), self.target(workload, port));
        let words = ["load", workload, "run", &target, "--json", json];
        let ran = run(binary(), &[&words, &RUN[..], more].concat(), LIMIT);
        let text = std::fs::read_to_string(json).unwrap();
        let mut json: Value = serde_json::from_str(&text).unwrap();
        (ran, json["proof"].take())
    }

    fn server(self) -> SocketAddr {
        format!("127.0.0.1:{}", self.real.port()).parse().unwrap()
    }
}

fn places(name: &'static str) -> impl Iterator<Item = Place> {
    pooled_servers().map(move |real| Place { real, name })
}

/// Words of the statement that decides a write, by workload.
fn writes(bank: &'static str) -> [(&'static str, &'static str); 3] {
    [("bank", bank), ("append", "INSERT"), ("register", "UPDATE")]
}

fn right(ran: &Ran, proof: &Value, workload: &str) {
    assert_eq!(ran.status.code(), Some(0), "{workload}: {ran:?} {proof}");
    assert_eq!(proof["data"], "right", "{workload}: {proof}");
    assert!(proof["acknowledged"].as_u64().unwrap() > 20, "{proof}");
    says(&ran.stderr, "load: proof: the data are right");
}

#[test]
fn a_server_and_the_pool_keep_data() {
    for place in places("kept") {
        let pool = fresh_pool(place.real, "backends_max = 4");
        let Address::Tcp(address) = &pool.address else {
            panic!("{}", pool.address);
        };
        for workload in WORKLOADS {
            for port in [place.real.port(), address.port()] {
                let (ran, proof) = place.prove(workload, port, &[]);
                right(&ran, &proof, workload);
                says(&ran.stdout, "    total number of events:");
            }
        }
    }
}

/// Faults by workload: what is done to which statements, and the kind that is found.
const WRONGS: &[(&str, Wrong, &str, &str)] = &[
    ("bank", Wrong::Drops, "INTO proof_transfer", "lost"),
    ("bank", Wrong::Drops, "v + ", "torn"),
    ("bank", Wrong::Repeats, "INTO proof_transfer", "doubled"),
    ("bank", Wrong::Repeats, "v + ", "torn"),
    ("bank", Wrong::Refuses, "COMMIT", "refused"),
    ("append", Wrong::Drops, "INSERT", "lost"),
    ("append", Wrong::Repeats, "INSERT", "doubled"),
    ("append", Wrong::Refuses, "INSERT", "refused"),
    ("append", Wrong::Delays, "INSERT", "reordered"),
    ("append", Wrong::Remembers, "SELECT", "stale"),
    ("register", Wrong::Drops, "UPDATE", "not-linearizable"),
    ("register", Wrong::Refuses, "UPDATE", "refused"),
    ("register", Wrong::Delays, "UPDATE", "not-linearizable"),
    ("register", Wrong::Remembers, "SELECT", "not-linearizable"),
];

#[test]
fn planted_faults_are_found_and_shown() {
    for place in places("planted") {
        for (workload, wrong, words, kind) in WRONGS {
            let port = crooked::start(place.server(), *wrong, words);
            let (ran, proof) = place.prove(workload, port, &[]);
            let case = format!("{workload}, {wrong:?} {words}: {proof} {ran:?}");
            assert_eq!(ran.status.code(), Some(3), "{case}");
            assert_eq!(proof["data"], "wrong", "{case}");
            let findings = proof["findings"].as_array().unwrap();
            let found = findings.iter().find(|one| one["kind"] == *kind);
            let found = found.unwrap_or_else(|| panic!("{case}"));
            says(&ran.stderr, found["text"].as_str().unwrap());
            if found["kind"] != "torn" {
                let shown = found["history"].as_array().unwrap();
                assert!((1..=4).contains(&shown.len()), "{case}");
            }
            says(&ran.stderr, "load: proof: the data are WRONG");
        }
    }
}

/// Changes by another after the tables were filled: by workload, the kind that is found, its words.
const STRANGE: &[(&str, &str, &str, &str)] = &[
    (
        "bank",
        "DELETE FROM proof_account WHERE id = 3",
        "torn",
        "a read saw 99000 in all",
    ),
    (
        "bank",
        "UPDATE proof_account SET v = 7 WHERE id = 3",
        "torn",
        "a read saw 99007 in all",
    ),
    (
        "bank",
        "ALTER TABLE proof_transfer ENGINE=MyISAM",
        "unasked",
        "no longer all of InnoDB",
    ),
    (
        "append",
        "REPLACE INTO proof_list VALUES (0, 'x,')",
        "unasked",
        "nobody appended nothing",
    ),
    (
        "register",
        "DELETE FROM proof_register WHERE id = 3",
        "unasked",
        "nothing was read",
    ),
    (
        "register",
        "UPDATE proof_register SET v = 7000000",
        "unasked",
        "7000000 was read",
    ),
    (
        "register",
        "ALTER TABLE proof_register ENGINE=MyISAM",
        "unasked",
        "no longer all of InnoDB",
    ),
];

#[test]
fn changes_by_another_are_found() {
    for place in places("strange") {
        for (workload, change, kind, words) in STRANGE {
            let line = format!("--init-sql={change}");
            let more = [&*line, "--connections=1"];
            let (ran, proof) = place.prove(workload, place.real.port(), &more);
            let case = format!("{workload}, {change}: {proof} {ran:?}");
            assert_eq!(ran.status.code(), Some(3), "{case}");
            let findings = proof["findings"].as_array().unwrap();
            let found = findings.iter().find(|one| one["kind"] == *kind);
            let found = found.unwrap_or_else(|| panic!("{case}"));
            assert!(found["text"].as_str().unwrap().contains(words), "{case}");
        }
        let name = "strange_bank";
        place
            .real
            .admin()
            .must(&format!("ALTER TABLE {name}.proof_account ENGINE=MyISAM"));
        let target = place.target("bank", place.real.port());
        let ran = run(binary(), &["load", "bank", "run", &target], LIMIT);
        assert_eq!(ran.status.code(), Some(1), "{ran:?}");
        says(
            &ran.stderr,
            "not all of InnoDB: proof_account, proof_transfer",
        );
    }
}

/// A write whose client was disconnected may or may not have happened: neither is a fault.
#[test]
fn unanswered_writes_are_no_fault() {
    for place in places("unanswered") {
        for (workload, words) in writes("COMMIT") {
            let port = crooked::start(place.server(), Wrong::HangsUp, words);
            let (ran, proof) = place.prove(workload, port, &[]);
            right(&ran, &proof, workload);
            assert!(proof["unanswered"].as_u64().unwrap() > 10, "{proof}");
            let (ran, proof) = place.prove(workload, port, &["--fail-if=unanswered>0"]);
            assert_eq!(
                (ran.status.code(), &proof["data"]),
                (Some(3), &"right".into())
            );
        }
    }
}

/// Clients that wait without end hold up neither the end of the run nor its check.
#[test]
fn clients_that_hang_are_left_behind() {
    for place in places("hanging") {
        for (workload, words) in writes("BEGIN") {
            let port = crooked::start(place.server(), Wrong::Silences, words);
            let end = ["--events=0", "--time=2", "--end-timeout=1"];
            let (ran, proof) = place.prove(workload, port, &end);
            right(&ran, &proof, workload);
            assert!(proof["unanswered"].as_u64().unwrap() > 0, "{proof}");
        }
    }
}

#[test]
fn a_proof_without_tables_or_answers_is_none() {
    let place = or_return!(places("spoilt").next());
    fresh_schema(place.real, "spoilt_bank");
    let target = place.target("bank", place.real.port());
    let line = ["load", "bank", "run", &target];
    let ran = run(binary(), &[&line, &RUN[..]].concat(), LIMIT).ends(1);
    says(&ran.stderr, "run the prepare command first");
    run(binary(), &["load", "bank", "prepare", &target], LIMIT).ends(0);
    let spoilt = "--init-sql=SET SESSION TRANSACTION READ ONLY";
    let ran = run(binary(), &[&line, &RUN[..], &[spoilt]].concat(), LIMIT).ends(1);
    says(
        &ran.stderr,
        "the data are unknown: no write was acknowledged",
    );
    run(binary(), &["load", "bank", "cleanup", &target], LIMIT).ends(0);
}
