//! Tests of slow readers without a group.

use super::*;
use crate::backend::flight::Flight;
use crate::backend::{BackendState, InFlight};
use crate::group::scripted::shared;
use std::rc::Rc;
use wire::command::ReplyShape;

const NOW: Time = Time(1_000_000_000);

fn client() -> Client<()> {
    Client::of_tests(NOW, Rc::default())
}

/// A backend on which statements of these clients are in flight.
fn backend(owners: &[Option<ClientId>]) -> Backend<()> {
    let mut backend = Backend::of_tests(NOW, Rc::default());
    for owner in owners {
        backend.flight.expect(InFlight::own(
            *owner,
            Purpose::Statement,
            ReplyShape::Results,
        ));
    }
    backend
}

fn key(number: u32) -> ClientId {
    ClientId::from_parts(number, 0)
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
fn statements_of_others_behind_a_reply_are_followers() {
    let (a, b) = (Some(key(1)), Some(key(2)));
    for (owners, may_pipeline) in [
        (&[][..], false),
        (&[a], false),
        (&[a, a], false),
        (&[a, None], false),
        (&[a, None, b], true),
    ] {
        assert_eq!(
            backend(owners).flight.has_followers(),
            may_pipeline,
            "{owners:?}"
        );
    }
}

#[test]
fn a_backend_that_is_held_up_is_looked_at_when_its_reader_is_slow() {
    let mut readers = readers();
    let mut backends = Slots::default();
    let backend_id = backends.insert(backend(&[Some(key(1))]));
    let next = |readers: &SlowReaders, backends: &Slots<_, _>, wait, now| {
        readers.next_relief(backends, wait, now)
    };
    assert_eq!(next(&readers, &backends, true, NOW), Time::NEVER);
    for later in [0, 1] {
        let now = NOW + Duration::from_millis(later);
        readers.note_held_up(backend_id, backends.get_mut(backend_id).unwrap(), now);
    }
    assert_eq!(readers.held_up, [backend_id], "it is noted once");
    assert_eq!(next(&readers, &backends, true, NOW), NOW + SLOW_AFTER);
    assert_eq!(next(&readers, &backends, false, NOW), Time::NEVER);
    // Those that are pipelined behind it wait, whoever else does.
    let follower = InFlight::own(Some(key(2)), Purpose::Statement, ReplyShape::Results);
    backends
        .get_mut(backend_id)
        .unwrap()
        .flight
        .expect(follower);
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
    let backend_id = backends.insert(backend(&[Some(reader)]));
    let (on, of) = (
        clients.get_mut(reader).unwrap(),
        backends.get_mut(backend_id).unwrap(),
    );
    on.bind(of, (reader, backend_id));
    readers.note_held_up(backend_id, of, NOW);
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

/// A group with one reader on each of so many backends; each has taken nothing since `NOW`.
struct Bench {
    clients: Slots<Client<()>, ClientId>,
    backends: Slots<Backend<()>, BackendId>,
    shared: Shared,
    readers: SlowReaders,
    backend_ids: Vec<BackendId>,
    owners: Vec<ClientId>,
}

/// The digest of what they ask for.
const DIGEST: u64 = 77;
/// Moment at which they have become slow.
const SLOW: Time = Time(NOW.0 + 20_000_000);

impl Bench {
    /// The commands in flight on a backend.
    fn flight(&mut self, backend: BackendId) -> &mut Flight {
        &mut self.backends.get_mut(backend).unwrap().flight
    }

    fn new(settings: &str, count: usize) -> Bench {
        let mut bench = Bench {
            clients: Slots::default(),
            backends: Slots::default(),
            shared: shared(settings),
            readers: readers(),
            backend_ids: Vec::new(),
            owners: Vec::new(),
        };
        for _ in 0..count {
            let (owner, backend_id) = bench.starts();
            let backend = bench.backends.get_mut(backend_id).unwrap();
            bench.readers.note_held_up(backend_id, backend, NOW);
            let client = bench.clients.get_mut(owner).unwrap();
            client.output = Some(Box::default());
        }
        bench
    }

    /// Puts a client's statement in flight on a backend of its own.
    fn starts(&mut self) -> (ClientId, BackendId) {
        let mut asks = client();
        asks.session.statement.digest = DIGEST;
        let owner = self.clients.insert(asks);
        let backend_id = self.backends.insert(backend(&[Some(owner)]));
        let (client, backend) = (
            self.clients.get_mut(owner).unwrap(),
            self.backends.get_mut(backend_id).unwrap(),
        );
        for state in [
            BackendState::Preparing,
            BackendState::Idle,
            BackendState::CheckedOut,
        ] {
            assert!(backend.change_state(state, NOW));
        }
        client.bind(backend, (owner, backend_id));
        self.backend_ids.push(backend_id);
        self.owners.push(owner);
        (owner, backend_id)
    }

    fn relieve(&mut self, long: bool, now: Time) -> Vec<Relief> {
        let settings = self.shared.settings();
        let mut crowd = Crowd {
            clients: &mut self.clients,
            backends: &self.backends,
            settings: &settings,
            shared: &self.shared,
            group: 0,
            now,
        };
        self.readers.relieve(&mut crowd, Demand { any: true, long })
    }

    fn is_squeezed(&self) -> bool {
        let settings = self.shared.settings();
        self.readers.is_squeezed(&settings, &self.shared, 0)
    }
}

/// A client that is not slow.
fn other() -> ClientId {
    ClientId::from_parts(70, 0)
}

#[test]
fn a_text_is_long_from_the_moment_at_which_its_reader_is_slow() {
    let mut bench = Bench::new("backends_max = 16", 1);
    bench.relieve(false, Time(SLOW.0 - 1));
    assert!(!bench.readers.is_long(DIGEST));
    for _ in 0..2 {
        bench.relieve(false, SLOW);
        assert!(bench.readers.is_long(DIGEST));
    }
    // One run counts once, and as slow when it ends.
    bench
        .readers
        .statement_ended(bench.backend_ids[0], DIGEST, other());
    for backend in 1..=3 {
        bench
            .readers
            .statement_ended(BackendId::from_parts(90 + backend, 0), DIGEST, other());
    }
    assert!(bench.readers.is_long(DIGEST));
    bench
        .readers
        .statement_ended(BackendId::from_parts(99, 0), DIGEST, other());
    assert!(!bench.readers.is_long(DIGEST));
}

#[test]
fn who_has_had_a_reply_while_others_are_slow_is_known_until_nobody_is() {
    let mut bench = Bench::new("backends_max = 16", 1);
    let (backend, owner) = (bench.backend_ids[0], bench.owners[0]);
    let elsewhere = BackendId::from_parts(99, 0);
    let other = |n: usize| ClientId::from_parts(u32::try_from(n).unwrap() + 100, 0);
    bench.readers.statement_ended(elsewhere, 0, other(0));
    bench.relieve(false, SLOW);
    assert!(!bench.readers.is_proven(other(0)), "nobody was slow");
    for n in 0..PROVEN_MAX {
        bench.readers.statement_ended(elsewhere, 0, other(n));
    }
    assert!(bench.readers.is_proven(other(0)));
    bench.readers.statement_ended(elsewhere, 0, owner);
    assert!(bench.readers.is_proven(owner) && !bench.readers.is_proven(other(0)));
    bench.readers.statement_ended(backend, DIGEST, owner);
    assert!(!bench.readers.is_proven(owner), "it was slow itself");
    bench.readers.statement_ended(elsewhere, 0, other(1));
    bench.flight(backend).take_reply(SLOW);
    bench.relieve(false, SLOW);
    bench.relieve(false, SLOW);
    assert!(!bench.readers.is_proven(other(1)));
}

#[test]
fn what_is_long_counts_from_its_start_to_its_end() {
    let mut bench = Bench::new("backends_max = 16", 3);
    assert!(bench.relieve(false, SLOW).is_empty());
    assert!(!bench.is_squeezed(), "three of four");
    let (owner, backend) = bench.starts();
    bench.readers.start_long(backend, owner);
    assert!(bench.is_squeezed());
    assert!(bench.relieve(false, SLOW).is_empty());
    assert!(bench.is_squeezed(), "it has not become slow, and counts");
    bench.readers.statement_ended(backend, DIGEST, other());
    assert!(!bench.is_squeezed());
    bench.readers.start_long(backend, owner);
    bench.flight(backend).take_answered();
    bench.relieve(false, SLOW);
    assert!(!bench.is_squeezed(), "nothing is in flight any more");
}

#[test]
fn a_trial_ends_when_its_reader_is_slow_or_its_time_is_over_and_the_oldest_is_next() {
    let mut bench = Bench::new("backends_max = 16", 4);
    let tried = bench.owners[3];
    let moves = |bench: &mut Bench, key, to: &[ClientState]| {
        let client = bench.clients.get_mut(key).unwrap();
        assert!(to.iter().all(|state| client.change_state(*state, NOW)));
    };
    moves(
        &mut bench,
        tried,
        &[ClientState::Idle, ClientState::Running],
    );
    bench.readers.start_trial(tried, NOW);
    bench.relieve(false, Time(SLOW.0 - 1));
    assert!(bench.readers.has_trial(&bench.clients, SLOW));
    bench.relieve(false, SLOW);
    assert!(!bench.readers.has_trial(&bench.clients, SLOW));
    assert!(bench.readers.tries_oldest() && bench.is_squeezed());
    assert_eq!(bench.readers.besides_trials(), 1);
    // Its reply goes to the spool in its turn, and the next text is tried meanwhile.
    let (next, _) = bench.starts();
    moves(&mut bench, next, &[ClientState::Idle, ClientState::Waiting]);
    bench.readers.start_trial(next, SLOW);
    let end = SLOW + TRIAL_MAX;
    assert_eq!(bench.readers.next_relief(&bench.backends, true, SLOW), end);
    assert!(bench.readers.has_trial(&bench.clients, end), "it waits yet");
    moves(&mut bench, next, &[ClientState::Idle, ClientState::Running]);
    assert!(bench.readers.has_trial(&bench.clients, Time(end.0 - 1)));
    assert!(!bench.readers.has_trial(&bench.clients, end));
    assert!(bench.readers.tries_oldest(), "it may be short yet");
    bench.readers.checked_in(bench.backend_ids[3]);
    assert_eq!(bench.readers.besides_trials(), 0);
}

#[test]
fn those_beyond_the_share_are_taken_off_and_one_within_it_for_long_ones_that_wait() {
    let mut bench = Bench::new("backends_max = 16", 6);
    let relief = bench.relieve(false, SLOW);
    assert!(bench.is_squeezed());
    assert_eq!(
        relief,
        [0, 1].map(|n| Relief::TakeOff(bench.backend_ids[n]))
    );
    // The two on their way count until their replies have ended.
    assert!(bench.relieve(true, SLOW).is_empty() && bench.is_squeezed());
    for n in [0, 1] {
        let backend = bench.backend_ids[n];
        bench.readers.statement_ended(backend, DIGEST, other());
        bench.flight(backend).take_answered();
        bench.flight(backend).take_reply(NOW);
        let client = bench.clients.get_mut(bench.owners[n]).unwrap();
        client.output = None;
    }
    assert!(bench.relieve(false, SLOW).is_empty());
    assert!(bench.is_squeezed());
    let relief = bench.relieve(true, SLOW);
    assert_eq!(relief, [Relief::TakeOff(bench.backend_ids[2])]);
    assert!(bench.relieve(true, SLOW).is_empty(), "one at a time");
}

#[test]
fn without_a_spool_all_beyond_the_share_go_when_their_time_is_over_and_nobody_within_it() {
    let settings = "backends_max = 16\nspool_bytes_max = 0\nslow_reader_ms_max = 300";
    let mut bench = Bench::new(settings, 6);
    let end = NOW + Duration::from_millis(300);
    assert!(bench.relieve(true, Time(end.0 - 1)).is_empty());
    let wakes = bench.readers.next_relief(&bench.backends, true, SLOW);
    assert_eq!(wakes, end);
    let relief = bench.relieve(true, end);
    let ended = [0, 1].map(|n| Relief::End(bench.owners[n], NO_ROOM));
    assert_eq!(relief, ended);
}

#[test]
fn one_backend_of_few_is_left_to_slow_readers_and_never_the_only_one() {
    let parts = [1, 2, 3, 4, 7, 8].map(|share| part_of(share, 25));
    assert_eq!(parts, [0, 1, 1, 1, 1, 2]);
    assert_eq!([1, 8].map(|share| part_of(share, 0)), [0, 0]);
    assert_eq!([1, 8].map(|share| part_of(share, 100)), [1, 8]);
}
