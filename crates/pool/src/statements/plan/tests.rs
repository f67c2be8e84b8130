//! Tests of plans, without a group.

use super::*;
use crate::backend::{Backend, ForSession, InFlight};
use crate::errors::reasons::PinReason;
use crate::group::tokens::ClientId;
use crate::pair::view::ClientView;
use crate::server::watched::code_catalogue::{CodeCatalogue, Seen};
use reactor::Time;
use session::global_defaults::GlobalDefaults;
use session::last_statement::RowCount;
use session::send_mode::SendMode;
use session::state::Session;
use sql::classify::classify;
use sql::lex::LexMode;
use sql::text;
use std::rc::Rc;

/// A client between two statements, and what is known beside it.
struct Bench {
    client: Client<()>,
    backend: Option<Backend<()>>,
    /// True if the backend of its last statement is idle.
    last_is_idle: bool,
    last_is_reader: bool,
    server: ServerFacts,
    catalogue: CodeCatalogue,
    seen: Seen,
    policy: StoredCode,
    reads_elsewhere: bool,
}

const LAST: BackendId = BackendId::from_parts(7, 0);

impl Bench {
    fn new() -> Bench {
        let server = ServerFacts::of_tests();
        let (charsets, defaults) = (&server.default_charsets, GlobalDefaults::default());
        let mut session = Session::at_login(b"", true, charsets, &defaults);
        session.put(b"autocommit", b"ON");
        let mut client = Client::of_tests(Time(1), Rc::new(session));
        client.login = None;
        Bench {
            client,
            backend: None,
            last_is_idle: false,
            last_is_reader: false,
            server,
            catalogue: CodeCatalogue::empty(),
            seen: Seen::default(),
            policy: StoredCode::Pin,
            reads_elsewhere: false,
        }
    }

    fn mode(&self) -> LexMode {
        self.client.lex_mode(&self.server)
    }

    fn judge(&self, judge: impl FnOnce(Judging<'_, ()>) -> Plan) -> Plan {
        judge(Judging {
            alone: Alone {
                view: ClientView {
                    key: ClientId::from_parts(1, 0),
                    client: &self.client,
                    backend: self.backend.as_ref(),
                },
                server: &self.server,
                is_on: true,
            },
            code: CodeSeen {
                catalogue: &self.catalogue,
                sql_mode: "",
                seen: &self.seen,
            },
            policy: self.policy,
            gtid: None,
            pipelines: true,
            digests: false,
            reads_elsewhere: self.reads_elsewhere,
            guarded: false,
            last_backend: &|asks_only| {
                (self.last_is_idle && (!self.last_is_reader || asks_only())).then_some(LAST)
            },
        })
    }

    fn plan(&self, sql: &str) -> Plan {
        let (sql, mode) = (sql.as_bytes(), self.mode());
        let seen = text::Seen::read(sql, mode, false, None);
        self.judge(|judging| judging.text(&Text { sql, mode, seen }, None))
    }

    fn run(&self, sql: &str) -> RunPlan {
        match self.plan(sql) {
            Plan::Run(run) => run,
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// Adds to the catalogue what this text defines.
    fn defines(&mut self, sql: &str) {
        let found = classify(sql.as_bytes(), self.mode());
        let text = SchemaText {
            sql: sql.as_bytes(),
            mode: self.mode(),
            found: &found,
            schema: Some(b""),
            names_none_of: None,
        };
        let defined = sql::classify::stored::definitions(text.sql, text.mode);
        let code = CodeSeen {
            catalogue: &self.catalogue,
            sql_mode: "",
            seen: &self.seen,
        };
        assert!(code.defines(text, defined).is_some());
        self.seen.renew(&self.catalogue);
    }

    fn execution(&self, command: Command, sql: &str, flags: u8) -> Plan {
        let class = classify(sql.as_bytes(), self.mode());
        let session = self.client.session.state.clone();
        let definition = Definition::new(sql.as_bytes().into(), session, class);
        let payload = [&[command.byte(), 1, 0, 0, 0][..], &[flags, 1, 0, 0, 0]].concat();
        let message = [&[10, 0, 0, 0][..], &payload].concat();
        self.judge(|judging| {
            judging.execution(Execution {
                command,
                id: 1,
                definition: &definition,
                message: &message,
            })
        })
    }
}

#[test]
fn an_execution_that_is_not_whole_is_tied_to_the_writer_as_its_text_is() {
    let mut bench = Bench::new();
    bench.reads_elsewhere = true;
    for (sql, place) in [
        ("SELECT a FROM t WHERE b = ? FOR UPDATE", Why::Locks),
        ("SELECT ?, @@hostname", Why::Server),
        ("SELECT a FROM t WHERE b = ?", Why::NoSelect),
    ] {
        for flags in [0, 1] {
            let Plan::Run(run) = bench.execution(Command::StmtExecute, sql, flags) else {
                panic!("{sql}");
            };
            let is_read = place == Why::NoSelect && flags == 1;
            let expected = if is_read { Why::Session } else { place };
            assert_eq!(run.statement.place, expected, "{sql} {flags}");
        }
    }
}

#[test]
fn a_plain_text_runs_as_it_is() {
    let run = Bench::new().run("SELECT 1 FROM t");
    assert_eq!((run.instead, run.back), (None, None));
    assert!(run.effects.pins.is_none() && run.effects.modifying.is_none());
    assert_eq!(run.statement.pipelinable, Pipelinable::Text);
    assert_eq!(run.statement.send_mode, SendMode::Joined);
    assert_ne!(run.statement.digest, 0);
}

#[test]
fn a_begin_is_answered_and_a_commit_that_ends_something_runs() {
    let mut bench = Bench::new();
    let begun = bench.plan("BEGIN");
    assert!(
        matches!(begun, Plan::Reply(OwnReply::Ok(Some(Edge::Begin), _))),
        "{begun:?}"
    );
    bench.client.command.defer_begin();
    bench.client.ended.interrupt();
    assert!(!bench.run("COMMIT").asks_insert_id);
}

#[test]
fn a_text_waits_until_its_backend_has_told_what_it_may_leave() {
    let mut bench = Bench::new();
    let mut backend = Backend::of_tests(Time(1), Rc::default());
    backend.flight.expect(InFlight::own(
        Some(ClientId::from_parts(1, 0)),
        ForSession::Warnings,
        ReplyShape::Results,
    ));
    bench.backend = Some(backend);
    assert!(matches!(bench.plan("BEGIN"), Plan::Wait));
    bench.client.session.last.lose_conditions();
    assert!(matches!(bench.plan("SHOW WARNINGS"), Plan::Wait));
    assert!(matches!(bench.plan("SELECT 1"), Plan::Run(_)));
}

#[test]
fn a_kill_is_read_alone_and_refused_beside_others() {
    let bench = Bench::new();
    assert!(matches!(bench.plan("KILL 5"), Plan::Kill(Some(_))));
    let hidden = bench.plan("SELECT 1; KILL 5");
    assert!(matches!(hidden, Plan::Refuse(Refusal::Kill)), "{hidden:?}");
}

#[test]
fn the_priority_of_a_client_is_the_pools_own() {
    let plan = Bench::new().plan("SET onramp_priority = 'high'");
    assert!(
        matches!(plan, Plan::Reply(OwnReply::Priority(Asked::Priority(_)))),
        "{plan:?}"
    );
}

#[test]
fn who_asks_about_the_statement_before_goes_back_or_gets_what_is_known() {
    let mut bench = Bench::new();
    bench.client.session.last.row_count = RowCount::NONE;
    let known = bench.run("SELECT ROW_COUNT()").instead.unwrap();
    assert!(String::from_utf8_lossy(&known).contains("-1"));
    bench.client.session.last.found_rows.set(None);
    let lost = bench.plan("SELECT FOUND_ROWS()");
    assert!(
        matches!(lost, Plan::Refuse(Refusal::PreviousGone)),
        "{lost:?}"
    );
    bench.last_is_idle = true;
    bench.client.session.last.own(Reads::FOUND_ROWS);
    let there = bench.run("SELECT FOUND_ROWS()");
    assert_eq!((there.back, there.instead), (Some(LAST), None));
    assert_eq!(bench.run("SELECT 1").back, None, "it asks nothing");
    bench.last_is_reader = true;
    assert_eq!(bench.run("SELECT FOUND_ROWS()").back, Some(LAST));
    bench.defines("CREATE PROCEDURE p() UPDATE orders SET a = FOUND_ROWS()");
    for sql in ["CALL p()", "DELETE FROM t WHERE a = FOUND_ROWS()"] {
        let elsewhere = bench.plan(sql);
        assert!(
            matches!(elsewhere, Plan::Refuse(Refusal::PreviousGone)),
            "{elsewhere:?}"
        );
    }
}

#[test]
fn code_that_nobody_has_read_pins_and_known_code_does_not() {
    let mut bench = Bench::new();
    let pins = |run: RunPlan| run.effects.pins.is_some();
    assert!(pins(bench.run("CALL p()")));
    bench.defines("CREATE PROCEDURE p() UPDATE orders SET a = 1");
    let run = bench.run("CALL p()");
    assert_eq!(run.statement.code, session::statement::Code::Known);
    assert!(!pins(run));
    bench.defines(
        "CREATE TRIGGER tr BEFORE INSERT ON orders FOR EACH ROW SELECT RELEASE_LOCK('l') INTO @a",
    );
    let insert = "INSERT INTO orders VALUES (1)";
    let plan = bench.run(insert).effects.pins.unwrap();
    assert_eq!(plan.reasons, [PinReason::TriggersAndViews]);
    bench.policy = StoredCode::Trust;
    let run = bench.run(insert);
    assert_eq!(run.statement.pipelinable, Pipelinable::Never);
    assert!(!pins(run));
}

#[test]
fn what_a_text_sets_is_noted_for_when_it_is_sent() {
    let bench = Bench::new();
    let modifying = bench.run("SET @a = 1").effects.modifying.unwrap();
    assert_eq!(modifying.names.len(), 1);
    let taken = bench.run("SELECT GET_LOCK('a', 1)").effects.pins.unwrap();
    assert_eq!(taken.acquired.taken.len(), 1);
}

#[test]
fn the_id_of_a_client_stands_in_its_text() {
    let mut bench = Bench::new();
    bench.client.identity.set_id(1234);
    let instead = bench.run("SELECT CONNECTION_ID()").instead.unwrap();
    assert!(String::from_utf8_lossy(&instead).contains("1234"));
}

#[test]
fn an_execution_runs_in_its_own_schema_and_opens_a_cursor_where_it_may() {
    let bench = Bench::new();
    let run = |command, sql, flags| match bench.execution(command, sql, flags) {
        Plan::Run(run) => run,
        other => panic!("{sql}: {other:?}"),
    };
    let plain = run(Command::StmtExecute, "SELECT 1 FROM t", 0);
    assert_eq!(plain.statement.send_mode, SendMode::OwnSchema);
    assert!(!plain.cursor && plain.definition.is_none());
    let cursor = run(Command::StmtExecute, "SELECT 1 FROM t", 1);
    assert!(cursor.cursor && cursor.statement.pipelinable == Pipelinable::Never);
    assert!(!run(Command::StmtExecute, "CALL p()", 1).cursor);
    let explains = run(Command::StmtExecute, "EXPLAIN SELECT 1 FROM t", 1);
    assert!(explains.drops_cursor && !explains.cursor);
}

#[test]
fn an_execution_that_asks_runs_what_is_known_in_its_place() {
    let mut bench = Bench::new();
    bench.client.session.last.row_count = RowCount::NONE;
    let Plan::Run(run) = bench.execution(Command::StmtExecute, "SELECT ROW_COUNT()", 0) else {
        panic!("it is known");
    };
    assert!(String::from_utf8_lossy(&run.definition.unwrap().sql).contains("-1"));
    let bulk = bench.execution(Command::StmtBulkExecute, "SELECT ROW_COUNT()", 0);
    assert!(
        matches!(bulk, Plan::Refuse(Refusal::PreviousGone)),
        "{bulk:?}"
    );
}
