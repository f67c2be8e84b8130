//! Statements as bytes: written, read, cut off and garbled.

use super::*;
use crate::global_defaults::GlobalDefaults;
use crate::record::{EntryRecord, HeldRecord, Here, NotCarried, PeerDefaults};

fn session(schema: &str) -> Rc<Session> {
    Rc::new(Session {
        schema: Some(schema.as_bytes().into()),
        ..Session::default()
    })
}

fn here<'a>(defaults: &'a GlobalDefaults, meter: &'a Meter, there: &'a [PeerDefaults]) -> Here<'a> {
    Here {
        peer_defaults: there,
        defaults,
        variables: meter,
        conditions: meter,
    }
}

fn statements() -> Statements {
    let (here, there) = (session("a"), session("b"));
    let mut statements = Statements::default();
    for (id, sql, session) in [
        (3, "SELECT ?", &here),
        (4, "DO 1", &here),
        (9, "DO 2", &there),
    ] {
        statements.add(Held {
            columns: 7,
            overlong: id == 4,
            ..held(id, &Rc::new(definition(sql, session)))
        });
    }
    statements.remember(3, Types::Sent(TypeList::plain(&[8, 0])));
    statements.get_mut(9).unwrap().long =
        Some(Box::new(LongData::new(b"long".to_vec(), &Meter::default())));
    statements
}

fn long_of(held: &Held) -> Option<&[u8]> {
    held.long.as_ref().map(|long| long.messages())
}

fn taken(records: Vec<HeldRecord>) -> Result<Statements, NotCarried> {
    let (defaults, meter) = (GlobalDefaults::default(), Meter::default());
    let there = [PeerDefaults::default()];
    let mut statements = Statements::default();
    for (record, session) in HeldRecord::with_sessions(records, here(&defaults, &meter, &there))? {
        let text = std::str::from_utf8(&record.sql).unwrap();
        let definition = Rc::new(definition(text, &session));
        statements.take_record(record, definition, &meter);
    }
    Ok(statements)
}

#[test]
fn a_clients_statements_are_read_as_they_were_written() {
    let sent = statements();
    let taken = taken(sent.records()).unwrap();
    for (one, two) in sent.held().iter().zip(taken.held()) {
        assert_eq!(
            (one.id, one.columns, one.params),
            (two.id, two.columns, two.params)
        );
        assert_eq!(
            (one.overlong, &one.types, long_of(one)),
            (two.overlong, &two.types, long_of(two))
        );
        assert_eq!(one.definition.sql, two.definition.sql);
        assert_eq!(one.definition.session, two.definition.session);
    }
    let session = |at: usize| &taken.held()[at].definition.session;
    assert!(Rc::ptr_eq(session(0), session(1)), "said once");
    assert_eq!(taken.held().len(), 3);
    let meter = Meter::default();
    let (mut sent, mut taken) = (sent, taken);
    sent.count(&meter);
    let bytes = meter.bytes();
    taken.count(&meter);
    assert_eq!(meter.bytes(), 2 * bytes);
}

#[test]
fn the_session_of_a_statement_in_front_of_the_first_is_an_error() {
    let second = statements().records().swap_remove(1);
    assert!(taken(vec![second]).is_err());
}

#[test]
fn statements_that_are_not_in_order_make_no_client() {
    let mut records = statements().records();
    records.swap(0, 2);
    assert!(taken(records).is_err());
}

fn on_backend() -> OnBackend {
    let here = session("a");
    let [one, two] = ["SELECT ?", "DO ?"].map(|sql| Rc::new(definition(sql, &here)));
    let mut backend = OnBackend::default();
    backend.add(one.clone(), 10);
    backend.add(two.clone(), 11);
    backend.add(one.clone(), 12);
    let now = backend.use_now();
    let first = backend.find((&one, 1), INT, PLAIN).unwrap();
    (first.used, first.types) = (now, Some([8, 0].into()));
    first.began_with_cursor = Some(true);
    backend
}

#[test]
fn what_a_backend_has_is_read_as_it_was_written_in_the_order_of_its_use() {
    let (defaults, meter) = (GlobalDefaults::default(), Meter::default());
    let there = [PeerDefaults::default()];
    let here = here(&defaults, &meter, &there);
    let records = EntryRecord::with_sessions(on_backend().records(), here).unwrap();
    let mut all = Definitions::default();
    let mut sessions: Vec<Rc<Session>> = Vec::new();
    let mut taken = OnBackend::of_records(records, |sql, session| {
        let known = sessions.iter().find(|known| ***known == *session).cloned();
        let session = known.unwrap_or_else(|| {
            sessions.push(Rc::new(session.clone()));
            sessions[sessions.len() - 1].clone()
        });
        all.intern(definition(std::str::from_utf8(sql).unwrap(), &session))
    });
    assert_eq!(
        (taken.count(), sessions.len(), taken.sessions().count()),
        (3, 1, 3)
    );
    let one = all.find(&definition("SELECT ?", &sessions[0])).unwrap();
    let used = taken
        .find((&one, 1), INT, ON_MYSQL)
        .map(|entry| (entry.id, entry.types.clone()));
    assert!(
        used.is_some_and(|(id, _)| id == 12),
        "the one without a cursor"
    );
    let cursor = How {
        cursor: true,
        ..ON_MYSQL
    };
    taken.take(&one, 12);
    let first = taken.find((&one, 1), INT, cursor).unwrap();
    assert_eq!((first.id, first.types.as_deref()), (10, Some(&[8, 0][..])));
    // What was used last goes last.
    assert_eq!(taken.take_oldest(), Some(11));
    assert_eq!(taken.take_oldest(), Some(10));
}
