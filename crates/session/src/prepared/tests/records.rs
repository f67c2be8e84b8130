//! Statements as bytes: written, read, cut off and garbled.

use super::*;
use crate::global_defaults::GlobalDefaults;
use crate::record::{PeerDefaults, Read};
use wire::packet::Reader;

fn session(schema: &str) -> Rc<Session> {
    let mut session = Session::default();
    session.schema = Some(schema.as_bytes().into());
    Rc::new(session)
}

fn read_session(reader: &mut Reader<'_>) -> Read<Session> {
    let there = [PeerDefaults::default()];
    Session::read_record(
        reader,
        &there,
        &GlobalDefaults::default(),
        &Meter::default(),
    )
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
    statements.get_mut(9).unwrap().long = Some(Box::new(b"long".to_vec()));
    statements
}

fn written(statements: &Statements) -> Vec<u8> {
    let mut out = Vec::new();
    let mut before = None;
    for held in statements.held() {
        held.put_record(&mut out, before);
        before = Some(held);
    }
    out
}

fn read(bytes: &[u8]) -> Read<Statements> {
    let mut reader = Reader::new(bytes);
    let mut statements = Statements::default();
    let mut before: Option<Rc<Session>> = None;
    for _ in 0..3 {
        let record = HeldRecord::read_record(&mut reader, before.as_ref(), read_session)?;
        before = Some(record.session.clone());
        if statements
            .held()
            .last()
            .is_some_and(|last| last.id >= record.id)
        {
            return Err(reader.malformed("statements in order").into());
        }
        let text = std::str::from_utf8(&record.sql).unwrap_or_default();
        let definition = Rc::new(definition(text, &record.session));
        statements.take_record(record, definition);
    }
    Ok(statements)
}

#[test]
fn a_clients_statements_are_read_as_they_were_written() {
    let (sent, taken) = (statements(), read(&written(&statements())).unwrap());
    for (one, two) in sent.held().iter().zip(taken.held()) {
        assert_eq!(
            (one.id, one.columns, one.params),
            (two.id, two.columns, two.params)
        );
        assert_eq!(
            (one.overlong, &one.types, &one.long),
            (two.overlong, &two.types, &two.long)
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
fn a_clients_statements_cut_off_are_an_error() {
    let bytes = written(&statements());
    for len in 0..bytes.len() {
        assert!(read(&bytes[..len]).is_err(), "{len}");
    }
}

#[test]
fn the_session_of_a_statement_in_front_of_the_first_is_an_error() {
    let mut out = Vec::new();
    let all = statements();
    let [first, second, ..] = all.held() else {
        panic!("three of them");
    };
    second.put_record(&mut out, Some(first));
    let read = HeldRecord::read_record(&mut Reader::new(&out), None, read_session);
    assert!(read.is_err());
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
    let mut out = Vec::new();
    on_backend().put_record(&mut out);
    let mut reader = Reader::new(&out);
    let record = OnBackendRecord::read_record(&mut reader, read_session).unwrap();
    assert!(reader.is_empty());
    let mut all = Definitions::default();
    let mut sessions: Vec<Rc<Session>> = Vec::new();
    let mut taken = record.into_value(|sql, session| {
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

#[test]
fn what_a_backend_has_cut_off_is_an_error() {
    let mut out = Vec::new();
    on_backend().put_record(&mut out);
    for len in 0..out.len() {
        let cut = OnBackendRecord::read_record(&mut Reader::new(&out[..len]), read_session);
        assert!(cut.is_err(), "{len}");
    }
}

#[test]
fn garbled_statements_are_an_error_or_statements_and_never_a_panic() {
    let mut out = Vec::new();
    on_backend().put_record(&mut out);
    let bytes = written(&statements());
    for at in 0..out.len() {
        for change in [1, 0x7f, 0xff] {
            let mut garbled = out.clone();
            garbled[at] = garbled[at].wrapping_add(change);
            let _ = OnBackendRecord::read_record(&mut Reader::new(&garbled), read_session);
        }
    }
    for at in 0..bytes.len() {
        for change in [1, 0x7f, 0xff] {
            let mut garbled = bytes.clone();
            garbled[at] = garbled[at].wrapping_add(change);
            let _ = read(&garbled);
        }
    }
}
