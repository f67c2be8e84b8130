//! Tests of a client and its backend without a group.

use super::*;
use crate::backend::{BackendState, ForBackend, ForSession, InFlight, Purpose};
use crate::client::ClientState;
use crate::group::tokens::BackendId;
use crate::pair::next::Checkin;
use crate::pair::view::ClientView;
use session::global_defaults::GlobalDefaults;
use session::last_statement::LEFT_BY_STATEMENT;
use session::reply_summary::ReplySummary;
use session::send_mode::{Prefix, SendMode};
use session::statement::{Explanation, Statement};
use session::text::Text;
use sql::classify::Reads;
use sql::lex::Server;
use std::rc::Rc;
use wire::attributes::Form;
use wire::capabilities::NO_SCHEMA;
use wire::command::ReplyShape;

pub(super) const NOW: Time = Time(1_000_000_000);

/// A client and a backend that stand in one session, and what they are made of.
pub(super) struct Parts {
    pub(super) client: Client<()>,
    pub(super) backend: Backend<()>,
    pub(super) server: ServerFacts,
    sessions: Interner,
    schemas: Schemas,
    gtids: BTreeMap<ClientId, LastGtid>,
    pub(super) counts: Counts,
    pub(super) retained: Retained,
}

pub(super) fn owner() -> ClientId {
    ClientId::from_parts(1, 0)
}

fn other() -> ClientId {
    ClientId::from_parts(2, 0)
}

impl Parts {
    pub(super) fn new() -> Parts {
        let mut sessions = Interner::default();
        let session = sessions.intern(Session::default());
        Parts {
            client: Client::of_tests(NOW, session.clone()),
            backend: Backend::of_tests(NOW, session),
            server: ServerFacts::of_tests(),
            sessions,
            schemas: Schemas::default(),
            gtids: BTreeMap::new(),
            counts: Counts::default(),
            retained: Retained::default(),
        }
    }

    /// A client between two statements that has the backend.
    pub(super) fn bound() -> Parts {
        let mut parts = Parts::new();
        let (client, backend) = (&mut parts.client, &mut parts.backend);
        client.login = None;
        assert!(client.change_state(ClientState::Idle, NOW));
        for state in [
            BackendState::Preparing,
            BackendState::Idle,
            BackendState::CheckedOut,
        ] {
            assert!(backend.change_state(state, NOW));
        }
        let keys = (owner(), BackendId::from_parts(7, 0));
        client.bind(backend, keys);
        parts
    }

    pub(super) fn pair(&mut self) -> Pair<'_> {
        let context = Context {
            server: &self.server,
            sessions: &mut self.sessions,
            retained: &self.retained,
            schemas: &mut self.schemas,
            gtids: &mut self.gtids,
            counts: &mut self.counts,
            epoch: 1,
            now: NOW,
        };
        Pair::of(owner(), &mut self.client, &mut self.backend, context)
    }

    /// Commands that are put in front of a plain statement, and how.
    fn prefix(&mut self) -> (Prefix, String) {
        let mut out = Vec::new();
        self.client.session.statement = Statement::plain(ReplyShape::Results);
        let prefix = (self.pair()).checkout(b"\x09\0\0\0\x03SELECT 1", 1024, &mut out);
        (prefix, String::from_utf8_lossy(&out).into_owned())
    }

    pub(super) fn purposes(&self) -> Vec<Purpose> {
        let flight = self.backend.flight.iter();
        flight.map(|command| command.purpose).collect()
    }
}

/// A report that a variable has been set.
pub(super) fn reported(name: &str, value: &str) -> ReplySummary {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let both = [text(name), text(value)].concat();
    let changes = [&[0, u8::try_from(both.len()).unwrap()][..], &both].concat();
    ReplySummary {
        changes,
        ..ReplySummary::default()
    }
}

#[test]
fn what_is_reported_is_in_the_session_of_both() {
    let mut parts = Parts::new();
    let report = reported("time_zone", "+01:00");
    let noted = parts.pair().note_changes(&report, Explanation::Lasting);
    assert_eq!(noted, Ok(()));
    assert!(Rc::ptr_eq(
        &parts.client.session.state,
        &parts.backend.session.state
    ));
    let now = parts.client.session.state.variable(b"time_zone");
    assert_eq!(now, Some(&b"+01:00"[..]));
    assert!(!parts.client.session.pins.is_pinned());
}

#[test]
fn what_no_text_explains_pins_and_is_counted_once() {
    let mut parts = Parts::new();
    for zone in ["+01:00", "+02:00"] {
        let report = reported("time_zone", zone);
        let noted = parts.pair().note_changes(&report, Explanation::None);
        assert_eq!(noted, Ok(()));
    }
    assert!((parts.client.session.pins).is_pinned_for(PinReason::UnexplainedChange));
    let name = PinReason::UnexplainedChange.name();
    assert_eq!(parts.counts.pins.get(name), Some(&1));
}

#[test]
fn a_report_that_cannot_be_read_gives_the_backend_up() {
    let mut parts = Parts::new();
    let report = ReplySummary {
        changes: b"\x00\x7f".to_vec(),
        ..ReplySummary::default()
    };
    let noted = parts.pair().note_changes(&report, Explanation::Lasting);
    assert!(noted.is_err());
}

#[test]
fn nothing_stands_in_front_of_a_statement_whose_backend_is_in_its_session() {
    let mut parts = Parts::new();
    assert_eq!(parts.prefix(), (Prefix::CannotFail, String::new()));
    assert_eq!(parts.purposes(), []);
}

/// A global variable has changed and changed back between the logins of the two.
#[test]
fn a_text_that_nothing_is_to_be_set_for_is_joined_with_nothing() {
    let mut parts = Parts::new();
    let at_first = GlobalDefaults::named(vec![b"wait_timeout"[..].into()]);
    let values = |value: &[u8]| vec![Some(value.into())];
    let there = at_first.with(values(b"1"), Text::default()).unwrap();
    let between = there.with(values(b"2"), Text::default()).unwrap();
    let here = between.with(values(b"1"), Text::default()).unwrap();
    for (session, defaults) in [
        (&mut parts.backend.session.state, there),
        (&mut parts.client.session.state, here),
    ] {
        Rc::make_mut(session).defaults = defaults;
        *session = parts.sessions.intern((**session).clone());
    }
    parts.backend.session.conditions_of = Some(other());
    let mut out = Vec::new();
    parts.client.session.statement = Statement::plain(ReplyShape::Results);
    parts.client.session.statement.send_mode = SendMode::Joined;
    let text = b"\x0c\0\0\0\x03CREATE TABLE";
    let prefix = parts.pair().checkout(text, 1024, &mut out);
    assert_eq!(prefix, Prefix::CannotFail);
    assert_eq!(parts.purposes(), [ForBackend::Clearing.into()]);
    assert!(Rc::ptr_eq(
        &parts.backend.session.state,
        &parts.client.session.state
    ));
}

#[test]
fn conditions_of_others_are_cleared_and_the_clients_own_stay() {
    let mut parts = Parts::new();
    parts.backend.session.conditions_of = Some(other());
    let (prefix, sent) = parts.prefix();
    assert_eq!(prefix, Prefix::CannotFail);
    assert!(sent.contains("SHOW CREATE TABLE"), "{sent}");
    assert_eq!(parts.purposes(), [ForBackend::Clearing.into()]);
    assert_eq!(parts.backend.session.conditions_of, None);
    // No table has a schema for this one.
    let mut parts = Parts::new();
    parts.client.capabilities |= NO_SCHEMA;
    parts.backend.session.conditions_of = Some(other());
    let (_, sent) = parts.prefix();
    assert!(sent.contains("DO IF(0,"), "{sent}");
    assert_eq!(parts.purposes(), [ForBackend::Clearing.into()]);
    // Within a transaction nobody else has been here.
    let mut parts = Parts::new();
    parts.backend.session.conditions_of = Some(other());
    parts.backend.session.transaction.note_begin_sent();
    assert_eq!(parts.prefix(), (Prefix::CannotFail, String::new()));
}

#[test]
fn mysql_clears_what_the_clients_own_session_has_left_unless_its_text_asks() {
    let asks = [
        Reads::DIAGNOSTICS,
        Reads::DIAGNOSTICS.union(Reads::ROW_COUNT),
    ];
    let all = [Reads::NONE, Reads::ROW_COUNT, asks[0], asks[1]];
    for (looks_back, of) in all.iter().flat_map(|&all| [(all, owner()), (all, other())]) {
        let mut parts = Parts::new();
        parts.server.flavour = Server::MySql(90_700);
        parts.backend.session.conditions_of = Some(of);
        parts.client.session.last.invalidate(LEFT_BY_STATEMENT);
        parts.client.session.last.own(Reads::FOUND_ROWS);
        parts.client.session.statement.looks_back = looks_back;
        let clears = parts.pair().has_conditions_of_others();
        let expected = of == other() || asks.contains(&looks_back);
        assert_eq!(clears, expected, "{looks_back:?} {of:?}");
    }
}

#[test]
fn a_begin_that_was_answered_before_comes_last_in_front_of_the_statement() {
    let mut parts = Parts::new();
    parts.backend.session.conditions_of = Some(other());
    parts.client.command.defer_begin();
    let (prefix, sent) = parts.prefix();
    assert_eq!(prefix, Prefix::CannotFail);
    assert!(sent.ends_with("BEGIN"), "{sent}");
    assert_eq!(
        parts.purposes(),
        [ForBackend::Clearing.into(), ForSession::Begin.into()]
    );
    assert!(parts.backend.session.in_transaction() && !parts.client.command.is_begin_deferred());
}

#[test]
fn a_backend_whose_schema_could_not_be_set_serves_nobody_else() {
    let mut parts = Parts::new();
    let mut elsewhere = Session::default();
    elsewhere.use_schema(Some(b"gone"[..].into()));
    parts.backend.session.state = parts.sessions.intern(elsewhere);
    parts.backend.schema_not_set(&mut parts.sessions);
    assert_eq!(parts.backend.session.state.schema, None);
    assert!(parts.backend.session.is_in_another_schema() && !parts.backend.reuse.is_for_others());
}

#[test]
fn a_client_waits_for_its_own_questions_alone() {
    let mut parts = Parts::new();
    let asked = |parts: &Parts, backend: Option<&Backend<()>>| {
        let view = ClientView {
            key: owner(),
            client: &parts.client,
            backend,
        };
        view.is_being_asked(ForSession::Warnings)
    };
    for (of, waits) in [(other(), false), (owner(), true)] {
        let command = InFlight::own(Some(of), ForSession::Warnings, ReplyShape::Results);
        parts.backend.flight.expect(command);
        assert_eq!(asked(&parts, Some(&parts.backend)), waits);
    }
    assert!(!asked(&parts, None), "it has no backend");
}

#[test]
fn a_statement_whose_client_has_gone_may_have_set_a_savepoint() {
    let mut parts = Parts::new();
    // Without autocommit, where no flag tells of a savepoint.
    parts.backend.session.transaction.note_status(0);
    parts.backend.session.note_savepoint(None, true);
    assert!(parts.backend.session.in_transaction());
    let mut parts = Parts::new();
    parts.backend.session.transaction.note_status(0);
    let plain = Statement::plain(ReplyShape::Status);
    parts.backend.session.note_savepoint(Some(&plain), true);
    assert!(!parts.backend.session.in_transaction());
}

/// Looks at two sessions alone: no connection of either is there.
fn with_sessions_alone<R>(
    client: &mut ClientSession,
    backend: &mut BackendSession,
    look: impl FnOnce(Pair<'_>) -> R,
) -> R {
    let server = ServerFacts::of_tests();
    let ends = Ends {
        client: ClientState::Idle,
        is_logging_in: false,
        capabilities: 0,
        pool: 0,
        backend: BackendState::CheckedOut,
        on: On {
            form: Form::Plain,
            server: server.flavour,
            thread: 1,
        },
        is_reader: false,
    };
    look(Pair {
        owner: owner(),
        client,
        backend,
        command: &mut CommandState::default(),
        flight: &mut Flight::new(NOW),
        reuse: &mut Reuse::default(),
        ends,
        context: Context {
            server: &server,
            sessions: &mut Interner::default(),
            retained: &Retained::default(),
            schemas: &mut Schemas::default(),
            gtids: &mut BTreeMap::new(),
            counts: &mut Counts::default(),
            epoch: 1,
            now: NOW,
        },
    })
}

#[test]
fn checkout_brings_the_servers_session_into_the_clients_and_checkin_frees_it() {
    let mut wanted = Session::default();
    wanted.put(b"time_zone", b"+01:00");
    let mut client = ClientSession::new(Rc::new(wanted));
    let mut backend = BackendSession::default();
    client.statement = Statement::plain(ReplyShape::Results);
    let mut out = Vec::new();
    with_sessions_alone(&mut client, &mut backend, |mut pair| {
        let prefix = pair.checkout(b"\x09\0\0\0\x03SELECT 1", 1024, &mut out);
        assert_ne!(prefix, Prefix::CannotFail);
        assert!(!pair.flight.is_empty());
    });
    assert!(String::from_utf8_lossy(&out).contains("time_zone"));
    assert!(Rc::ptr_eq(&client.state, &backend.state));
    with_sessions_alone(&mut client, &mut backend, |mut pair| {
        assert_eq!(pair.checkin(), Checkin::Free);
    });
    backend.transaction.note_begin_sent();
    with_sessions_alone(&mut client, &mut backend, |mut pair| {
        assert_eq!(pair.checkin(), Checkin::Keep);
    });
}
