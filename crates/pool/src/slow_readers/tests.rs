//! Tests of slow readers without a group.

use super::*;
use crate::backend::InFlight;
use std::rc::Rc;
use wire::command::ReplyShape;

const NOW: Time = Time(1_000_000_000);

fn client() -> Client<()> {
    Client::of_tests(NOW, Rc::default())
}

/// A backend on which statements of these clients are in flight.
fn backend(owners: &[Option<Key>]) -> Backend<()> {
    let mut backend = Backend::of_tests(NOW, Rc::default());
    for owner in owners {
        backend.expect(InFlight::own(
            *owner,
            Purpose::Statement,
            ReplyShape::Results,
        ));
    }
    backend
}

fn key(number: u32) -> Key {
    Key::from_parts(number, 0)
}

fn readers() -> SlowReaders {
    SlowReaders::new(Spool::new(0, 4096))
}

#[test]
fn a_reply_that_others_ride_behind_is_kept_up_to_its_bound() {
    assert!(!has_room(0, 1) && !has_room(0, 0));
    assert!(has_room(0, 2) && has_room(REPLY_MAX - 1, 2));
    assert!(!has_room(REPLY_MAX, 2) && !has_room(REPLY_MAX, 9));
}

#[test]
fn statements_of_others_behind_a_reply_are_riders() {
    let (a, b) = (Some(key(1)), Some(key(2)));
    for (owners, rides) in [
        (&[][..], false),
        (&[a], false),
        (&[a, a], false),
        (&[a, None], false),
        (&[a, None, b], true),
    ] {
        assert_eq!(backend(owners).has_riders(), rides, "{owners:?}");
    }
}

#[test]
fn a_backend_that_is_held_up_is_looked_at_when_its_reader_is_slow() {
    let mut readers = readers();
    let mut backends = Slots::default();
    let lease = backends.insert(backend(&[Some(key(1))]));
    let next = |readers: &SlowReaders, backends: &Slots<_>, wait, now| {
        readers.next_relief(backends, wait, now)
    };
    assert_eq!(next(&readers, &backends, true, NOW), Time::NEVER);
    for later in [0, 1] {
        let now = NOW + Duration::from_millis(later);
        readers.note_held_up(lease, backends.get_mut(lease).unwrap(), now);
    }
    assert_eq!(readers.held_up, [lease], "it is noted once");
    assert_eq!(next(&readers, &backends, true, NOW), NOW + SLOW_AFTER);
    assert_eq!(next(&readers, &backends, false, NOW), Time::NEVER);
    // Those who ride behind it wait, whoever else does.
    let rider = InFlight::own(Some(key(2)), Purpose::Statement, ReplyShape::Results);
    backends.get_mut(lease).unwrap().expect(rider);
    assert_eq!(next(&readers, &backends, false, NOW), NOW + SLOW_AFTER);
    let slow = NOW + SLOW_AFTER;
    assert_eq!(
        next(&readers, &backends, true, slow),
        Time::NEVER,
        "it is looked at now"
    );
}

#[test]
fn what_a_client_keeps_a_backend_from_and_what_is_off_its_backend_is_counted() {
    let (mut readers, mut backends) = (readers(), Slots::default());
    let mut clients = Slots::default();
    let reader = clients.insert(client());
    let lease = backends.insert(backend(&[Some(reader)]));
    let (on, of) = (
        clients.get_mut(reader).unwrap(),
        backends.get_mut(lease).unwrap(),
    );
    on.binding.bind(&mut of.binding, (reader, lease));
    readers.note_held_up(lease, of, NOW);
    assert_eq!(
        readers.count(&clients, &backends),
        (0, 0, 0),
        "it has taken all"
    );
    clients.get_mut(reader).unwrap().output = Some(Box::default());
    assert_eq!(readers.count(&clients, &backends), (1, 0, 0));
    let output = clients.get_mut(reader).unwrap().output.as_mut().unwrap();
    output.rest = Rest::Spooled(Tail::default());
    readers.spooled.push(reader);
    assert_eq!(readers.count(&clients, &backends), (0, 1, 0));
}

#[test]
fn the_report_says_what_a_client_has_not_taken() {
    let mut client = client();
    assert_eq!(client.reading(NOW), "");
    let mut output = Output::default();
    output.bytes = b"12345".to_vec();
    output.sent = 2;
    client.output = Some(Box::new(output));
    let later = NOW + Duration::from_secs(3);
    assert_eq!(
        client.reading(later),
        ", has taken nothing for 3 s of 3 bytes"
    );
    client.output.as_mut().unwrap().rest = Rest::Spooled(Tail::default());
    let taken = ", has taken nothing for 3 s of 3 bytes, being taken off its backend";
    assert_eq!(client.reading(later), taken);
}
