//! Tests of the lists: ids, definitions, what a backend has and what goes first.

use super::*;
use crate::stored_code::{Object, resolve};
use sql::classify::stored::{Defined, expression, fold};

fn definition(sql: &str, session: &Rc<Session>) -> Definition {
    let class = classify::classify(sql.as_bytes(), LexMode::default());
    Definition::new(sql.as_bytes().into(), session.clone(), class)
}

fn held(id: u32, definition: &Rc<Definition>) -> Held {
    Held {
        id,
        columns: 0,
        params: 1,
        cursor: false,
        overlong: false,
        definition: definition.clone(),
        types: None,
        long: None,
    }
}

const PLAIN: How = How {
    mysql: false,
    cursor: false,
};
const ON_MYSQL: How = How {
    mysql: true,
    ..PLAIN
};
const INT: Wanted<'_> = Wanted::Types(TypeList::plain(&[8, 0]));
const TEXT: Wanted<'_> = Wanted::Types(TypeList::plain(&[253, 0]));

#[test]
fn a_statement_of_a_client_is_small() {
    assert!(size_of::<Held>() <= 48);
    assert_eq!(size_of::<Option<Box<Statements>>>(), 8);
}

#[test]
fn equal_texts_in_one_session_are_one_definition_and_unused_ones_go() {
    let mut all = Definitions::default();
    let (here, there) = (Rc::new(Session::default()), Rc::new(Session::default()));
    let one = all.intern(definition("SELECT 1", &here));
    assert!(Rc::ptr_eq(&one, &all.intern(definition("SELECT 1", &here))));
    assert!(!Rc::ptr_eq(
        &one,
        &all.intern(definition("SELECT 2", &here))
    ));
    let elsewhere = all.intern(definition("SELECT 1", &there));
    assert!(!Rc::ptr_eq(&one, &elsewhere), "another schema, maybe");
    for i in 0..1000 {
        all.intern(definition(&i.to_string(), &here));
    }
    assert!(all.all.len() <= 130);
    assert!(Rc::ptr_eq(&one, &all.intern(definition("SELECT 1", &here))));
}

#[test]
fn whether_a_text_names_code_is_found_out_once_for_each_version() {
    let names = |table: &str| {
        let scanned = expression(b"SELECT row_count()", LexMode::default());
        resolve(&[&Object {
            kind: Defined::View,
            schema: fold(b"shop"),
            name: fold(table.as_bytes()),
            title: String::new(),
            scanned,
        }])
    };
    let (orders, items) = (names("orders"), names("items"));
    let one = definition("SELECT a FROM Orders", &Rc::new(Session::default()));
    let none_of = |names: &Names, version| one.names_none_of(names, version, LexMode::default());
    assert!(!none_of(&orders, 1));
    assert!(none_of(&items, 2));
    assert!(none_of(&orders, 2), "the answer of this version is kept");
    assert!(!none_of(&orders, 3));
    assert!(none_of(&Names::default(), 4), "there is no code");
    assert!(!none_of(&Names::all(), 5), "any name may be one");
}

/// A server tells these as they were when it prepared the text, or was executed before.
#[test]
fn what_keeps_its_answer_is_shared_with_nobody() {
    let mut all = Definitions::default();
    let mut sessions = Interner::default();
    let session = Session::default();
    for text in [
        "SHOW CREATE VIEW v",
        "EXPLAIN SELECT 1",
        "DESC t",
        "CHECK TABLE v",
    ] {
        let class = classify::classify(text.as_bytes(), LexMode::default());
        let [one, other] =
            [0; 2].map(|_| all.define(&mut sessions, text.as_bytes(), &session, class));
        assert!(!Rc::ptr_eq(&one, &other), "{text}");
        // A client's and its backend's, which come from another process together, are the same.
        let [one, other] =
            [0; 2].map(|_| all.read(&mut sessions, text.as_bytes(), &session, LexMode::default()));
        assert!(Rc::ptr_eq(&one, &other), "{text}");
    }
}

#[test]
fn what_its_only_client_has_closed_goes_first() {
    let (mut all, session) = (Definitions::default(), Rc::new(Session::default()));
    let mut backend = OnBackend::default();
    let shared = all.intern(definition("SELECT 1", &session));
    let [open, closed] = [0; 2].map(|_| all.intern(definition("SHOW TABLES", &session)));
    for (id, definition) in [(1, &shared), (2, &open), (3, &closed)] {
        backend.add(definition.clone(), id);
    }
    drop(closed);
    assert_eq!(backend.take_oldest(), Some(3));
    assert_eq!(backend.take_oldest(), Some(1));
}

#[test]
fn a_clients_ids_only_grow_and_the_last_prepared_one_is_known() {
    let session = Rc::new(Session::default());
    let mut all = Definitions::default();
    let shared = all.intern(definition("SELECT ?", &session));
    let mut statements = Statements::default();
    for id in [1, 2, 5] {
        statements.add(held(id, &shared));
    }
    assert_eq!(statements.last, Some(5));
    assert!(statements.get(5).is_some() && statements.get(3).is_none());
    assert!(statements.remove(2).is_some() && statements.remove(2).is_none());
    assert_eq!(statements.last, Some(5));
    statements.remove(5);
    assert_eq!(statements.last, None, "it is not the one before instead");
    statements.remove(1);
    assert!(statements.is_empty());
}

#[test]
fn a_client_prepares_so_many_statements_and_no_more() {
    let session = Rc::new(Session::default());
    let shared = Rc::new(definition("SELECT ?", &session));
    let mut statements = Statements::default();
    for id in 0..HELD_MAX {
        assert_eq!(statements.is_full(), None);
        statements.add(held(u32::try_from(id).unwrap(), &shared));
    }
    let full = Full::Count { count: HELD_MAX };
    assert_eq!(statements.is_full(), Some(full));
    statements.remove(7);
    assert_eq!(statements.is_full(), None);
}

#[test]
fn the_texts_of_a_clients_statements_are_bounded() {
    let session = Rc::new(Session::default());
    let text = "x".repeat(HELD_BYTES_MAX / 4);
    let shared = Rc::new(definition(&text, &session));
    let mut statements = Statements::default();
    for id in 0..4 {
        assert_eq!(statements.is_full(), None);
        statements.add(held(id, &shared));
    }
    let bytes = HELD_BYTES_MAX;
    assert_eq!(statements.is_full(), Some(Full::Bytes { bytes }));
    statements.remove(0);
    assert_eq!(statements.is_full(), None);
}

#[test]
fn a_cursor_is_counted_once() {
    let session = Rc::new(Session::default());
    let shared = Rc::new(definition("SELECT ?", &session));
    let mut statements = Statements::default();
    statements.add(held(1, &shared));
    assert!(!statements.holds());
    assert!(statements.set_cursor(1, Some(&shared)));
    assert!(!statements.set_cursor(1, Some(&shared)));
    assert!(statements.holds());
    assert!(statements.set_cursor(1, None));
    assert!(!statements.set_cursor(7, None));
    assert!(!statements.holds());
}

#[test]
fn the_least_recently_used_goes_first_and_cursors_stay() {
    let session = Rc::new(Session::default());
    let texts: Vec<_> = ["a", "b", "c"]
        .map(|sql| Rc::new(definition(sql, &session)))
        .into();
    let mut backend = OnBackend::default();
    for (id, definition) in (10..).zip(&texts) {
        backend.add(definition.clone(), id);
    }
    let (a, b) = ((&texts[0], 1), (&texts[1], 2));
    let now = backend.use_now();
    backend.find(a, INT, PLAIN).unwrap().used = now;
    backend.find(b, INT, PLAIN).unwrap().cursor_of = Some(2);
    assert_eq!(backend.count(), 3);
    assert_eq!(
        backend.take_oldest(),
        Some(12),
        "b is older but has a cursor"
    );
    assert_eq!(backend.take_oldest(), Some(10));
    assert_eq!(backend.take_oldest(), None);
    assert_eq!(backend.count(), 1);
    assert!(backend.take_all_of(&texts[1]).is_empty());
    backend.take(&texts[1], 11);
    assert_eq!((backend.count(), backend.entries.len()), (0, 0));
}

#[test]
fn types_of_others_do_not_reach_who_sent_none() {
    let session = Rc::new(Session::default());
    let shared = Rc::new(definition("SELECT ?", &session));
    let mut backend = OnBackend::default();
    backend.add(shared.clone(), 10);
    let mine = (&shared, 1);
    assert!(backend.find(mine, Wanted::Unmodified, PLAIN).is_some());
    backend.find(mine, INT, PLAIN).unwrap().types = Some([8, 0].into());
    assert!(backend.find(mine, Wanted::Unmodified, PLAIN).is_none());
    assert!(backend.find(mine, TEXT, PLAIN).is_some());
    assert!(backend.find(mine, TEXT, ON_MYSQL).is_none());
    assert!(backend.find(mine, INT, ON_MYSQL).is_some());
}

#[test]
fn a_statement_with_a_cursor_is_its_owners_alone() {
    let session = Rc::new(Session::default());
    let shared = Rc::new(definition("SELECT ?", &session));
    let mut backend = OnBackend::default();
    backend.add(shared.clone(), 10);
    let (one, two) = ((&shared, 1), (&shared, 2));
    backend.set_cursor(one, Some(10));
    assert!(backend.find(two, INT, PLAIN).is_none());
    assert_eq!(backend.find(one, INT, PLAIN).unwrap().id, 10);
    assert_eq!(backend.with_cursor(one), Some(10));
    assert_eq!(backend.with_cursor(two), None);
    backend.add(shared.clone(), 11);
    assert_eq!(backend.find(two, INT, PLAIN).unwrap().id, 11);
    assert_eq!(backend.take_all_of(&shared), [11]);
    backend.set_cursor(one, None);
    assert_eq!(backend.with_cursor(one), None);
    assert_eq!(backend.take_all_of(&shared), [10]);
}

#[test]
fn what_began_with_a_cursor_is_not_run_without_one_on_mysql() {
    let session = Rc::new(Session::default());
    let shared = Rc::new(definition("SELECT ?", &session));
    let mut backend = OnBackend::default();
    backend.add(shared.clone(), 10);
    let mine = (&shared, 1);
    let cursor = How {
        cursor: true,
        ..ON_MYSQL
    };
    backend.find(mine, INT, cursor).unwrap().began_with_cursor = Some(true);
    assert!(backend.find(mine, INT, ON_MYSQL).is_none());
    assert!(backend.find(mine, INT, cursor).is_some());
    assert!(backend.find(mine, INT, PLAIN).is_some());
    backend.set_cursor(mine, Some(10));
    assert!(backend.find(mine, INT, ON_MYSQL).is_none(), "nor by itself");
    backend.add(shared.clone(), 11);
    backend.entries.values_mut().flatten().for_each(|entry| {
        entry.began_with_cursor.get_or_insert(false);
    });
    assert_eq!(backend.find(mine, INT, ON_MYSQL).unwrap().id, 11);
}

#[test]
fn what_a_server_answers_to_a_preparation_is_the_clients() {
    let session = Rc::new(Session::default());
    let shared = Rc::new(definition("SELECT ?", &session));
    let mut statements = Statements::default();
    let header = Prepared {
        id: 900,
        columns: 3,
        params: 2,
        warnings: 0,
    };
    statements.note_new(7, shared.clone(), Some(header));
    let held = statements.get(7).unwrap();
    assert_eq!((held.id, held.columns, held.params), (7, 3, 2));
    assert_eq!(statements.last, Some(7));
    statements.note_new(8, shared, None);
    assert_eq!(statements.last, None, "a failed one is the last one");
    assert_eq!(statements.held().len(), 1);
}

#[test]
fn the_types_that_were_sent_last_are_remembered_and_counted() {
    let meter = Meter::default();
    let session = Rc::new(Session::default());
    let shared = Rc::new(definition("SELECT ?", &session));
    let mut statements = Statements::default();
    statements.add(held(1, &shared));
    statements.count(&meter);
    let bare = meter.bytes();
    let types = |statements: &Statements| statements.get(1).unwrap().types.clone();
    statements.remember(1, Types::Sent(TypeList::plain(&[8, 0])));
    statements.count(&meter);
    assert_eq!(meter.bytes(), bare + 2);
    let first = types(&statements).unwrap();
    statements.remember(1, Types::Sent(TypeList::plain(&[8, 0])));
    assert!(
        Rc::ptr_eq(&first, &types(&statements).unwrap()),
        "no new object"
    );
    statements.remember(1, Types::Sent(TypeList::plain(&[253, 0, 8, 0])));
    statements.remember(9, Types::Sent(TypeList::plain(&[1, 0])));
    statements.count(&meter);
    assert_eq!(meter.bytes(), bare + 4);
    assert_eq!(types(&statements).as_deref(), Some(&[253, 0, 8, 0][..]));
    statements.settle_types(1, true);
    statements.settle_types(1, false);
    assert_eq!(types(&statements).as_deref(), Some(&[253, 0, 8, 0][..]));
    // The client's command is looked at twice before it is sent.
    for _ in 0..2 {
        statements.remember(1, Types::Sent(TypeList::plain(&[8, 0])));
    }
    statements.settle_types(1, false);
    assert_eq!(types(&statements).as_deref(), Some(&[253, 0, 8, 0][..]));
    statements.count(&meter);
    assert_eq!(meter.bytes(), bare + 4);
    statements.remove(1);
    statements.count(&meter);
    assert_eq!(meter.bytes(), bare);
    drop(statements);
    assert_eq!(meter.bytes(), 0);
}

#[test]
fn a_text_that_others_have_too_is_not_the_clients_alone() {
    let session = Rc::new(Session::default());
    let mut all = Definitions::default();
    let shared = all.intern(definition("SELECT ?", &session));
    let (mut one, mut two) = (Statements::default(), Statements::default());
    one.add(held(1, &shared));
    drop(shared);
    assert_eq!(one.own_bytes(), "SELECT ?".len());
    let again = all.intern(definition("SELECT ?", &session));
    two.add(held(1, &again));
    two.add(held(2, &again));
    assert_eq!((one.own_bytes(), two.own_bytes()), (0, 0));
}

#[test]
fn long_data_counts_as_the_clients() {
    let session = Rc::new(Session::default());
    let shared = Rc::new(definition("SELECT ?", &session));
    let copies = [shared.clone(), shared.clone()];
    let meter = Meter::default();
    let mut statements = Statements::default();
    statements.add(held(1, &shared));
    statements.get_mut(1).unwrap().long = Some(Box::new(LongData::new(vec![0; 1000], &meter)));
    assert_eq!(
        (statements.long_len(), statements.own_bytes()),
        (1000, 1000)
    );
    assert_eq!(meter.bytes(), 1000);
    statements.remove(1);
    assert_eq!((statements.long_len(), meter.bytes()), (0, 0));
    drop(copies);
}

#[test]
fn an_execution_in_another_schema_than_its_text_runs_outside() {
    let session = |schema: &str| {
        Rc::new(Session {
            schema: Some(schema.as_bytes().into()),
            ..Session::default()
        })
    };
    let (here, there) = (session("a"), session("b"));
    let shared = Rc::new(definition("SELECT ?", &here));
    for (command, outside) in [
        (Command::StmtExecute, true),
        (Command::StmtBulkExecute, true),
        (Command::StmtPrepare, false),
        (Command::StmtReset, false),
    ] {
        let under_way = UnderWay::new(command, 1, shared.clone());
        assert_eq!(under_way.runs_outside(&there), outside, "{command:?}");
        assert!(!under_way.runs_outside(&here), "{command:?}");
    }
}

#[test]
fn the_same_text_in_another_session_is_another_definition() {
    let (here, there) = (Rc::new(Session::default()), Rc::new(Session::default()));
    let mut all = Definitions::default();
    let one = all.intern(definition("SELECT ?", &here));
    assert!(Rc::ptr_eq(&one, &all.with_session(&one, here.clone())));
    let two = all.with_session(&one, there.clone());
    assert!(!Rc::ptr_eq(&one, &two) && two.sql == one.sql && two.class == one.class);
    assert!(Rc::ptr_eq(&two, &all.with_session(&one, there.clone())));
    let found = all.find(&definition("SELECT ?", &there));
    assert!(Rc::ptr_eq(&two, &found.unwrap()));
    assert!(all.find(&definition("SELECT ?, ?", &there)).is_none());
}

#[test]
fn definitions_count_the_bytes_of_their_texts() {
    let session = Rc::new(Session::default());
    let mut all = Definitions::default();
    let kept = all.intern(definition("SELECT 1", &session));
    let one = all.bytes();
    drop(all.intern(definition(&"x".repeat(5000), &session)));
    assert!(all.bytes() >= one + 5000);
    all.sweep();
    assert_eq!(all.bytes(), one);
    drop(kept);
    all.sweep();
    assert_eq!(all.bytes(), 0);
}

#[test]
fn a_backend_is_full_when_nothing_can_be_closed() {
    let session = Rc::new(Session::default());
    let shared = Rc::new(definition("SELECT ?", &session));
    let mut backend = OnBackend::default();
    assert!(!backend.is_full(1));
    backend.add(shared.clone(), 10);
    assert!(!backend.is_full(1), "it can be closed");
    backend.set_cursor((&shared, 1), Some(10));
    assert!(backend.is_full(1) && !backend.is_full(2));
}

#[test]
fn the_cursor_of_a_statement_is_of_the_text_that_opened_it() {
    let session = Rc::new(Session::default());
    let [own, other] = ["SELECT ?", "SELECT 7"].map(|sql| Rc::new(definition(sql, &session)));
    let mut statements = Statements::default();
    statements.add(held(1, &own));
    statements.set_cursor(1, Some(&other));
    assert!(
        statements
            .cursor_of(1)
            .is_some_and(|found| Rc::ptr_eq(found, &other))
    );
    statements.set_cursor(1, Some(&own));
    assert!(
        statements
            .cursor_of(1)
            .is_some_and(|found| Rc::ptr_eq(found, &own))
    );
    statements.set_cursor(1, None);
    assert!(statements.cursor_of(1).is_none());
}

#[test]
fn a_digest_is_worked_out_once_and_in_the_mode_of_its_session() {
    let session = Rc::new(Session::default());
    let shared = definition("SELECT 'a', 1", &session);
    let digest = shared.digest(LexMode::default());
    assert_eq!(
        digest,
        definition("SELECT 'b', 2", &session).digest(LexMode::default())
    );
    let ansi = LexMode {
        ansi_quotes: true,
        ..LexMode::default()
    };
    assert_eq!(shared.digest(ansi), digest);
}

mod records;

#[test]
fn a_text_of_equal_sessions_is_defined_once_whatever_their_user_variables_are() {
    let (mut definitions, mut sessions) = (Definitions::default(), Interner::default());
    let session = Session::default();
    let mode = LexMode::default();
    let first = definitions.read(&mut sessions, b"SELECT 1", &session, mode);
    assert_eq!(first.class.verb, classify::Verb::Select);
    let again = definitions.read(&mut sessions, b"SELECT 1", &session, mode);
    assert!(Rc::ptr_eq(&first, &again));
    let class = first.class;
    let defined = definitions.define(&mut sessions, b"SELECT 1", &session, class);
    assert!(Rc::ptr_eq(&first, &defined));
    let other = definitions.read(&mut sessions, b"SELECT 2", &session, mode);
    assert!(!Rc::ptr_eq(&first, &other));
}
