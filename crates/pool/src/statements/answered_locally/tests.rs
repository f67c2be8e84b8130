//! Tests of texts that are answered without the server.

use super::*;

#[test]
fn plain_texts_alone_are_edges() {
    for begin in ["BEGIN", "begin", " Start Transaction\n", "BEGIN WORK"] {
        assert_eq!(edge_of(begin.as_bytes()), Some(Edge::Begin), "{begin}");
    }
    for end in ["COMMIT", "rollback ", "Commit Work", "ROLLBACK WORK"] {
        assert_eq!(edge_of(end.as_bytes()), Some(Edge::End), "{end}");
    }
    for other in [
        "",
        "BEGIN;",
        "BEGIN NOT ATOMIC",
        "START TRANSACTION READ ONLY",
        "START TRANSACTION READ WRITE",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        "START  TRANSACTION",
        "START SLAVE",
        "COMMIT AND CHAIN",
        "ROLLBACK RELEASE",
        "ROLLBACK TO a",
        "/*!BEGIN*/",
        "BEGIN -- x",
    ] {
        assert_eq!(edge_of(other.as_bytes()), None, "{other}");
    }
}

use crate::backend::{Backend, ForSession, InFlight};
use crate::group::tokens::ClientId;
use reactor::Time;
use session::state::Session;
use sql::lex::Server;
use std::rc::Rc;
use wire::command::ReplyShape;

fn mode() -> LexMode {
    LexMode {
        server: Server::MariaDb(110_400),
        ..LexMode::default()
    }
}

/// A client between two statements, without a backend.
struct Bench {
    client: Client<()>,
    server: ServerFacts,
    is_on: bool,
}

impl Bench {
    fn new() -> Bench {
        let session = Rc::<Session>::default();
        Bench {
            client: Client::of_tests(Time(1), session),
            server: ServerFacts::of_tests(),
            is_on: true,
        }
    }

    fn alone<'a>(&'a self, backend: Option<&'a Backend<()>>) -> Alone<'a, ()> {
        Alone {
            view: ClientView {
                key: ClientId::from_parts(1, 0),
                client: &self.client,
                backend,
            },
            server: &self.server,
            is_on: self.is_on,
        }
    }

    fn needs_none(&mut self, sql: &str) -> bool {
        let mut command = Vec::new();
        wire::attributes::put_query(&mut command, Form::Plain, sql.as_bytes());
        self.client.input.put(None);
        self.client.keep_input(&command);
        self.alone(None).may_need_no_backend()
    }
}

fn backend() -> Backend<()> {
    Backend::of_tests(Time(1), Rc::default())
}

#[test]
fn a_plain_begin_needs_no_backend_and_other_texts_do() {
    let mut bench = Bench::new();
    bench.client.login = None;
    assert!(bench.needs_none("BEGIN"));
    assert!(!bench.needs_none("SELECT 1"));
    assert!(!bench.needs_none("START TRANSACTION READ ONLY"));
    bench.is_on = false;
    assert!(!bench.needs_none("BEGIN"), "the settings do not want it");
}

#[test]
fn the_end_of_a_transaction_that_no_backend_knows_is_reported_to_who_is_told() {
    let mut bench = Bench::new();
    assert_eq!(bench.alone(None).reports_of_edge(Edge::Begin), Some(vec![]));
    bench.client.command.defer_begin();
    assert_eq!(bench.alone(None).reports_of_edge(Edge::Begin), Some(vec![]));
    bench.is_on = false;
    assert_eq!(bench.alone(None).reports_of_edge(Edge::End), None);
}

#[test]
fn a_client_is_about_to_leave_while_its_backend_is_asked_outside_of_a_transaction() {
    let bench = Bench::new();
    assert!(!bench.alone(None).is_about_to_leave(), "it has no backend");
    let mut backend = backend();
    assert!(
        !bench.alone(Some(&backend)).is_about_to_leave(),
        "nothing is asked"
    );
    backend.flight.expect(InFlight::own(
        None,
        ForSession::Warnings,
        ReplyShape::Results,
    ));
    assert!(bench.alone(Some(&backend)).is_about_to_leave());
}

#[test]
fn who_is_interrupted_is_not_answered_here() {
    let mut bench = Bench::new();
    assert!(bench.alone(None).may_answer());
    bench.client.ended.interrupt();
    assert!(!bench.alone(None).may_answer());
}

#[test]
fn a_set_of_what_is_not_known_may_change_it() {
    let bench = Bench::new();
    assert!(
        !bench
            .alone(None)
            .sets_nothing(b"SET autocommit = 1", mode())
    );
    assert!(!bench.alone(None).sets_nothing(b"SELECT 1", mode()));
}
