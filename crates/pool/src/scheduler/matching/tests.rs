//! Tests of who gets what, without a group.

use super::choice::{Affinity, LastBackend};
use super::turns::TRIAL_LOOKS_MAX;
use super::*;
use crate::backend::LastClient;
use crate::backend::pools::{DialEnd, PoolKey};
use crate::backend::reuse::Reuse;
use crate::backend::{BackendState, Endpoint, InFlight, Purpose};
use crate::client::ClientState;
use crate::cluster::Cluster;
use crate::config::test_settings;
use crate::group::shared::Sizes;
use crate::limits::spool::Spool;
use crate::scheduler::queue::{QueueName, Waiting};
use crate::server::facts::ServerFacts;
use reactor::Address;
use session::state::{Interner, Session};
use session::statement::Statement;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::auth::caching_sha2::KeyPair;
use wire::command::ReplyShape;

pub(crate) const NOW: Time = Time(1_000_000_000);

/// Room for a hundred clients in one group.
const SIZES: Sizes = Sizes {
    groups: 1,
    cores: 1,
    clients_per_group: 100,
};

/// Settings with four backends.
pub(crate) const FOUR: &str = "backends_max = 4";

/// A group's things, with two pools.
pub(crate) struct Bench {
    clients: Slots<Client<()>, ClientId>,
    backends: Slots<Backend<()>, BackendId>,
    pools: BackendPools,
    waiting_count: WaitingCount,
    running: Running,
    slow_readers: SlowReaders,
    known_digests: KnownDigests,
    defaults: GlobalDefaults,
    settings: Arc<Settings>,
    pub(crate) shared: Shared,
    rules: RuleSet,
    sessions: Interner,
}

impl Bench {
    /// The statement of a client.
    fn statement(&mut self, client: ClientId) -> &mut Statement {
        &mut self.clients.get_mut(client).unwrap().session.statement
    }

    pub(crate) fn new(settings: &str) -> Bench {
        Bench::among(settings, 1)
    }

    /// Those of the first of so many groups.
    pub(crate) fn among(settings: &str, groups: usize) -> Bench {
        let mut pools = BackendPools::default();
        for user in ["a", "b"] {
            pools.add(PoolKey::of_user(user), |_| true);
        }
        let keys = KeyPair::generate().unwrap();
        let shared = Shared::new(
            test_settings(settings),
            ServerFacts::of_tests(),
            keys,
            Sizes { groups, ..SIZES },
        );
        Bench {
            clients: Slots::default(),
            backends: Slots::default(),
            pools,
            waiting_count: WaitingCount::default(),
            running: Running::default(),
            slow_readers: SlowReaders::new(Spool::new(0, 4096)),
            known_digests: KnownDigests::default(),
            defaults: GlobalDefaults::default(),
            settings: shared.settings(),
            shared,
            rules: RuleSet::new(),
            sessions: Interner::default(),
        }
    }

    pub(crate) fn matching(&mut self) -> Matching<'_, ()> {
        Matching {
            clients: &self.clients,
            backends: &self.backends,
            pools: &mut self.pools,
            waiting_count: &self.waiting_count,
            running: &self.running,
            slow_readers: &self.slow_readers,
            known_digests: &self.known_digests,
            defaults: &self.defaults,
            settings: &self.settings,
            shared: &self.shared,
            rules: &self.rules,
            index: 0,
            drains: false,
            address_at: Time::NEVER,
            now: NOW,
            accounts: None,
        }
    }

    fn last_backend(&self, key: ClientId) -> Option<BackendId> {
        let client = self.clients.get(key).unwrap();
        let last = LastBackend {
            key,
            client,
            backends: &self.backends,
            pools: (client.pool as usize, &self.pools.pools),
            defaults: &self.defaults,
            server: &self.shared.server,
            now: NOW,
        };
        last.find()
    }

    /// A session with this schema.
    fn session(&mut self, schema: Option<&str>) -> Rc<Session> {
        let mut session = Session::default();
        session.schema = schema.map(|name| name.as_bytes().into());
        self.sessions.intern(session)
    }

    /// A client of a pool, between statements.
    pub(crate) fn client(&mut self, pool: u32, schema: Option<&str>) -> ClientId {
        let session = self.session(schema);
        let mut client = Client::of_tests(NOW, session);
        client.pool = pool;
        assert!(client.change_state(ClientState::Idle, NOW));
        self.clients.insert(client)
    }

    /// Queues a client that has waited for so many nanoseconds.
    pub(crate) fn waits(&mut self, key: ClientId, queue: QueueName, since: u64) {
        let since = Time(NOW.0 - since);
        let client = self.clients.get_mut(key).unwrap();
        self.waiting_count
            .enter(client, (queue, since, 10), &self.settings);
        let queues = &mut self.pools.pools[client.pool as usize].queues;
        queues.push(Waiting {
            client: key,
            since,
            pool: client.pool,
            queue,
        });
    }

    /// Takes it out of the count of those waiting.
    pub(crate) fn forgets(&mut self, key: ClientId) {
        let client = self.clients.get_mut(key).unwrap();
        self.waiting_count.leave(client, &self.settings);
    }

    /// An idle backend of a pool, its slot taken.
    pub(crate) fn idle(&mut self, pool: usize, schema: Option<&str>) -> BackendId {
        assert!(self.shared.budget.take(0));
        let session = self.session(schema);
        let at = Arc::new(Address::Unix("/s".into()));
        let mut backend = Backend::dialling(Endpoint::new((), at, pool), NOW, session, None);
        assert!(backend.change_state(BackendState::Preparing, NOW));
        assert!(backend.change_state(BackendState::Idle, NOW));
        self.pools.dial_begins(pool);
        self.pools.dial_ends(pool);
        let key = self.backends.insert(backend);
        self.pools.pools[pool].idle.push(key);
        key
    }

    /// Loss of the last client of a backend.
    fn affinity_of(&mut self, backend: BackendId) -> Affinity {
        let matching = self.matching();
        matching.affinity(matching.backends.get(backend).unwrap())
    }

    /// Checks an idle backend out to a client.
    pub(crate) fn check_out(&mut self, client: ClientId, backend_id: BackendId) {
        let backend = self.backends.get_mut(backend_id).unwrap();
        assert!(backend.change_state(BackendState::CheckedOut, NOW));
        self.pools.pools[backend.pool]
            .idle
            .retain(|idle| *idle != backend_id);
        let client_of = self.clients.get_mut(client).unwrap();
        let keys = (client, backend_id);
        client_of.bind(backend, keys);
    }

    /// Puts a pool on a server that is read.
    pub(crate) fn is_read(&mut self, pool: usize) {
        self.pools.pools[pool].key.reader = Some(cluster::ServerId(0));
        self.shared.cluster = Some(Cluster::of_tests(""));
    }

    /// A backend that something is in flight on counts as one that runs statements.
    pub(crate) fn counts(&mut self, backend: BackendId) {
        let backend = self.backends.get_mut(backend).unwrap();
        backend.take_kind(&self.pools.pools[backend.pool].key);
        self.running.begins(backend, NOW);
    }

    /// Puts a statement of a client in flight on a backend.
    pub(crate) fn runs(&mut self, client: ClientId, backend: BackendId) {
        let command = InFlight::own(Some(client), Purpose::Statement, ReplyShape::Results);
        self.backends
            .get_mut(backend)
            .unwrap()
            .flight
            .expect(command);
    }
}

#[test]
fn a_clients_own_last_backend_comes_first_then_one_in_its_session() {
    let mut bench = Bench::new(FOUR);
    let client = bench.client(0, Some("d"));
    let own = bench.idle(0, Some("other"));
    let same = bench.idle(0, Some("d"));
    let latest = bench.idle(0, Some("other"));
    assert_eq!(bench.matching().pick_idle(0, client), Some(same));
    let mut last = LastClient { client, sent: 0 };
    bench
        .backends
        .get_mut(own)
        .unwrap()
        .session
        .note_last_client(last);
    assert_eq!(bench.matching().pick_idle(0, client), Some(own));
    assert_eq!(bench.last_backend(client), Some(own));
    // Another statement of its has run elsewhere since.
    last.sent = 7;
    bench
        .backends
        .get_mut(own)
        .unwrap()
        .session
        .note_last_client(last);
    bench.backends.remove(same);
    bench.pools.leaves(0, same);
    assert_eq!(bench.matching().pick_idle(0, client), Some(latest));
}

#[test]
fn of_backends_about_which_others_may_ask_one_in_the_clients_session_comes_first() {
    let mut bench = Bench::new("backends_max = 8");
    let client = bench.client(0, Some("d"));
    let leave = |bench: &mut Bench, schema, ago: u64| {
        let last = LastClient {
            client: bench.client(0, None),
            sent: 0,
        };
        let backend_id = bench.idle(0, Some(schema));
        let backend = bench.backends.get_mut(backend_id).unwrap();
        backend.session.note_last_client(last);
        backend.set_since(Time(NOW.0 - ago));
        assert_eq!(bench.affinity_of(backend_id), Affinity::Counts);
        backend_id
    };
    let oldest = leave(&mut bench, "other", 9);
    assert_eq!(bench.matching().pick_idle(0, client), Some(oldest));
    leave(&mut bench, "d", 1);
    let same = leave(&mut bench, "d", 5);
    leave(&mut bench, "d", 3);
    assert_eq!(bench.matching().pick_idle(0, client), Some(same));
    let free = bench.idle(0, Some("other"));
    assert_eq!(bench.matching().pick_idle(0, client), Some(free));
}

#[test]
fn an_entry_in_the_pool_that_its_client_has_left_stands_no_more() {
    let mut bench = Bench::new(FOUR);
    let client = bench.client(0, None);
    bench.waits(client, QueueName::Low, 5);
    assert!(bench.matching().front_of(0).is_some());
    bench.forgets(client);
    // It goes on waiting, from the same moment, for a backend of another pool.
    bench.clients.get_mut(client).unwrap().pool = 1;
    bench.waits(client, QueueName::Low, 5);
    assert_eq!(bench.matching().front_of(0), None);
    let front = bench.matching().front_of(1);
    assert_eq!(front.map(|front| front.client), Some(client));
}

#[test]
fn nobody_gets_a_backend_whose_schema_no_command_takes_away() {
    let mut bench = Bench::new(FOUR);
    let client = bench.client(0, None);
    bench.idle(0, Some("d"));
    bench.waits(client, QueueName::Low, 5);
    assert_eq!(bench.matching().pick_idle(0, client), None);
    assert!(bench.matching().wants_dial(0), "another is opened for it");
    assert!(bench.matching().may_dial(0));
    bench.idle(0, None);
    assert!(!bench.matching().wants_dial(0));
}

#[test]
fn what_is_reserved_goes_to_the_other_queues() {
    let mut bench = Bench::new("backends_max = 8\nbackends_reserved = 1");
    let low = bench.client(0, None);
    bench.waits(low, QueueName::Low, 9);
    let served = |bench: &mut Bench| bench.matching().front_to_serve(0).map(|w| w.client);
    assert_eq!(served(&mut bench), Some(low));
    for _ in 0..7 {
        let (client, backend) = (bench.client(0, None), bench.idle(0, None));
        bench.check_out(client, backend);
    }
    assert!(bench.matching().is_reserve_reached(0));
    assert_eq!(served(&mut bench), None);
    assert!(bench.matching().wants_more(0));
    let high = bench.client(0, None);
    bench.waits(high, QueueName::High, 1);
    assert_eq!(served(&mut bench), Some(high));
}

#[test]
fn an_entry_of_who_was_served_stands_no_more() {
    let mut bench = Bench::new(FOUR);
    let (first, second) = (bench.client(0, None), bench.client(0, None));
    bench.waits(first, QueueName::Low, 9);
    bench.waits(second, QueueName::Low, 5);
    let client = bench.clients.get_mut(first).unwrap();
    bench.waiting_count.leave(client, &bench.settings);
    let front = bench.matching().front_of(0).unwrap();
    assert_eq!(front.client, second);
    let oldest = bench.matching().oldest_wait_to_serve();
    assert_eq!(oldest, Some(Time(NOW.0 - 5)));
    let expiry = Time(NOW.0 - 5) + bench.settings.wait_max;
    assert_eq!(bench.matching().next_expiry(), expiry);
    assert_eq!(bench.matching().take_refusable(0), Some(second));
}

#[test]
fn a_pool_without_backends_is_starved_when_its_front_waits_for_longest() {
    let mut bench = Bench::new("backends_max = 1");
    let (mine, theirs) = (bench.client(0, None), bench.client(1, None));
    bench.idle(0, None);
    bench.waits(theirs, QueueName::Low, 9);
    let since = |ago: u64| Some(Time(NOW.0 - ago));
    assert_eq!(bench.matching().starved_pool(0, None), Some(1));
    assert_eq!(bench.matching().starved_pool(0, since(5)), Some(1));
    bench.waits(mine, QueueName::Low, 12);
    assert_eq!(bench.matching().starved_pool(0, since(12)), None);
    // Where its dials have failed, it waits for the next.
    bench.pools.pools[1].dial_failed(NOW, "refused".into(), DialEnd::Answered);
    assert_eq!(bench.matching().starved_pool(0, since(5)), None);
}

/// A client whose statement may be pipelined once its digest is trusted, and two backends that take
/// followers, each with one statement in flight.
fn follower_and_two(bench: &mut Bench) -> (ClientId, [BackendId; 2]) {
    let follower = bench.client(0, None);
    let backends = [(); 2].map(|()| {
        let (client, backend) = (bench.client(0, None), bench.idle(0, None));
        bench.check_out(client, backend);
        bench.runs(client, backend);
        bench
            .backends
            .get_mut(backend)
            .unwrap()
            .flight
            .begin_pipeline(true);
        backend
    });
    let client = bench.clients.get_mut(follower).unwrap();
    client.session.statement.pipelinable = session::known_digests::Pipelinable::Text;
    client.session.statement.digest = 77;
    (follower, backends)
}

/// Teaches that the digest of this client's statement is short, often enough.
fn trust_shape_of(bench: &mut Bench, follower: ClientId) {
    let digest = bench.clients.get(follower).unwrap().session_digest();
    while !bench.known_digests.trusts(digest) {
        let ending = session::known_digests::Ending {
            left_something: false,
            service: Some(Duration::from_micros(50)),
            reply_len: 10,
        };
        bench.known_digests.learn(digest, ending);
    }
}

const PIPELINED: [u8; 5] = [1, 0, 0, 0, 3];

#[test]
fn a_busier_backend_takes_who_may_ride_on_no_other() {
    let mut bench = Bench::new("backends_max = 2\npipeline_max = 3");
    let (follower, backends) = follower_and_two(&mut bench);
    trust_shape_of(&mut bench, follower);
    for (busier, other) in [(backends[0], backends[1]), (backends[1], backends[0])] {
        let second = bench.client(0, None);
        bench.runs(second, busier);
        let place = bench.matching().place_to_pipeline(follower, &PIPELINED);
        assert_eq!(place, Some(other), "it has fewer in flight");
        bench
            .backends
            .get_mut(other)
            .unwrap()
            .flight
            .close_pipeline();
        let place = bench.matching().place_to_pipeline(follower, &PIPELINED);
        assert_eq!(place, Some(busier), "the other one takes nobody");
        bench
            .backends
            .get_mut(other)
            .unwrap()
            .flight
            .begin_pipeline(true);
        let _ = bench
            .backends
            .get_mut(busier)
            .unwrap()
            .flight
            .take_answered();
    }
}

#[test]
fn who_may_ride_goes_behind_the_fewest_and_passes_nobody() {
    let mut bench = Bench::new("backends_max = 2\npipeline_max = 2");
    let session = bench.session(None);
    let (follower, backends) = follower_and_two(&mut bench);
    let message = PIPELINED;
    assert!(Rc::ptr_eq(
        &bench.clients.get(follower).unwrap().session.state,
        &session
    ));
    assert_eq!(bench.matching().place_to_pipeline(follower, &message), None);
    trust_shape_of(&mut bench, follower);
    let place = bench.matching().place_to_pipeline(follower, &message);
    assert!(place.is_some_and(|place| backends.contains(&place)));
    let other = bench.client(0, None);
    bench.runs(other, backends[0]);
    let place = bench.matching().place_to_pipeline(follower, &message);
    assert_eq!(place, Some(backends[1]), "the other one is full");
    let last_client = |bench: &mut Bench, is_last: bool| {
        let backend = bench.backends.get_mut(backends[1]).unwrap();
        backend.reuse = Reuse::default();
        if is_last {
            backend.reuse.end_with_client();
        }
    };
    last_client(&mut bench, true);
    let place = bench.matching().place_to_pipeline(follower, &message);
    assert_eq!(place, None, "nobody comes behind its client");
    last_client(&mut bench, false);
    bench.runs(other, backends[1]);
    assert_eq!(bench.matching().place_to_pipeline(follower, &message), None);
    let _ = bench
        .backends
        .get_mut(backends[1])
        .unwrap()
        .flight
        .take_answered();
    bench.waits(other, QueueName::Low, 3);
    let place = bench.matching().place_to_pipeline(follower, &message);
    assert_eq!(place, None, "another came before");
}

#[test]
fn a_paused_group_starts_nothing_for_clients_without_a_backend() {
    let mut bench = Bench::new(FOUR);
    let client = bench.client(0, None);
    bench.waits(client, QueueName::Low, 5);
    assert!(bench.matching().is_behind(), "it may have a connection");
    bench.shared.scheduling.set_paused(true);
    assert!(!bench.matching().is_behind());
    assert!(!bench.matching().may_dial(0));
}

#[test]
fn a_failed_dial_is_tried_again_after_its_wait() {
    let mut bench = Bench::new(FOUR);
    let client = bench.client(0, None);
    assert_eq!(bench.matching().next_dial(), Time::NEVER);
    bench.waits(client, QueueName::Low, 5);
    bench.pools.pools[0].dial_failed(NOW, "refused".into(), DialEnd::Answered);
    let at = bench.pools.pools[0].dial_at;
    assert!(!bench.matching().may_dial(0));
    assert_eq!(bench.matching().next_dial(), at);
}

#[test]
fn what_may_become_free_is_waited_for() {
    let mut bench = Bench::new(FOUR);
    let waiting = bench.client(0, None);
    bench.waits(waiting, QueueName::Low, 5);
    assert!(!bench.matching().gets_one_free(0), "there is none");
    let (client, backend) = (bench.client(0, None), bench.idle(0, None));
    assert!(bench.matching().gets_one_free(0), "it is idle");
    bench.check_out(client, backend);
    assert!(bench.matching().gets_one_free(0), "a statement ends");
    let transaction = &mut bench.backends.get_mut(backend).unwrap().session.transaction;
    transaction.note_status(wire::status::IN_TRANS);
    assert!(!bench.matching().gets_one_free(0));
}

#[test]
fn a_frozen_backend_keeps_even_its_own_client_waiting() {
    let mut bench = Bench::new(FOUR);
    let (client, backend) = (bench.client(0, None), bench.idle(0, None));
    bench.check_out(client, backend);
    assert!(!bench.matching().waits_for_read_back(client));
    bench.backends.get_mut(backend).unwrap().reuse.freeze();
    assert!(bench.matching().waits_for_read_back(client));
}

#[test]
fn the_budget_is_made_room_in_by_an_idle_backend() {
    let mut bench = Bench::new("backends_max = 2");
    assert_eq!(bench.matching().least_needed(), None);
    let outdated = bench.idle(0, None);
    let present = bench.idle(1, None);
    assert_eq!(bench.matching().least_needed(), Some(outdated));
    // The last one of an older version of the privileges cannot be dialled again.
    bench.pools.pools[0].key.privileges += 1;
    assert_eq!(bench.matching().least_needed(), Some(present));
}

/// Makes the text of this digest long: a slow reader has a backend.
fn long_text(bench: &mut Bench, digest: u64) {
    let reader = bench.client(0, None);
    bench.statement(reader).digest = digest;
    bench.clients.get_mut(reader).unwrap().output = Some(Box::default());
    let backend_id = bench.idle(0, None);
    bench.check_out(reader, backend_id);
    bench.runs(reader, backend_id);
    let backend = bench.backends.get_mut(backend_id).unwrap();
    bench.slow_readers.note_held_up(backend_id, backend, NOW);
    let mut crowd = crate::limits::slow_readers::Crowd {
        clients: &mut bench.clients,
        backends: &bench.backends,
        settings: &bench.settings,
        shared: &bench.shared,
        group: 0,
        now: NOW + Duration::from_millis(20),
    };
    bench.slow_readers.relieve(&mut crowd, Default::default());
}

/// Makes the text of this digest long, and lets slow readers use up their share of the two
/// backends.
fn long_text_at_its_share(bench: &mut Bench, digest: u64) {
    long_text(bench, digest);
    assert!(bench.matching().is_squeezed());
}

#[test]
fn beside_slow_readers_what_is_taken_for_short_goes_before_texts_that_nobody_knows() {
    let mut bench = Bench::new("backends_max = 3\nbackends_reserved = 0");
    let [new, write, reads, long] = [(); 4].map(|()| bench.client(0, None));
    bench.statement(write).extent = session::statement::Extent::ShortInSchema;
    bench.statement(long).digest = 9;
    for (client, before) in [(new, 9), (long, 8), (write, 7), (reads, 5)] {
        bench.waits(client, QueueName::Low, before);
    }
    assert!(!bench.matching().goes_before_slow(write), "nobody is slow");
    long_text_at_its_share(&mut bench, 9);
    for client in [reads, long] {
        assert!(!bench.matching().goes_before_slow(client), "nobody knows");
        let backend = BackendId::from_parts(90, 0);
        bench.slow_readers.statement_ended(backend, 0, client);
    }
    for (client, goes) in [(new, false), (long, false), (write, true), (reads, true)] {
        assert_eq!(bench.matching().goes_before_slow(client), goes);
    }
    assert_eq!(bench.matching().put_short_first(), [write, reads]);
    let front = bench.matching().front_to_serve(0).unwrap();
    assert_eq!((front.client, front.queue), (write, QueueName::High));
}

#[test]
fn what_is_known_to_be_long_holds_up_nobody_in_its_queue() {
    let mut bench = Bench::new("backends_max = 2\nbackends_reserved = 0");
    long_text_at_its_share(&mut bench, 9);
    let (long, new) = (bench.client(0, None), bench.client(0, None));
    bench.statement(long).digest = 9;
    bench.statement(new).digest = 8;
    bench.waits(long, QueueName::Low, 9);
    bench.waits(new, QueueName::Low, 5);
    assert!(bench.matching().is_held_back(long) && !bench.matching().is_held_back(new));
    let front = bench.matching().front_to_serve(0).unwrap();
    assert_eq!((front.client, front.queue), (new, QueueName::Low));
    assert!(bench.matching().long_waits());
    bench.forgets(new);
    assert_eq!(bench.matching().front_to_serve(0), None);
    assert_eq!(bench.matching().oldest_wait_to_serve(), None, "in no queue");
    // The share is free again: it has the place that it had.
    bench.slow_readers = SlowReaders::new(Spool::new(0, 4096));
    let front = bench.matching().front_to_serve(0).unwrap();
    assert_eq!((front.client, front.since), (long, Time(NOW.0 - 9)));
}

#[test]
fn on_a_single_backend_nobody_goes_before_others_that_wait_for_a_slow_reader() {
    let mut bench = Bench::new("backends_max = 1");
    let write = bench.client(0, None);
    bench.statement(write).extent = session::statement::Extent::ShortInSchema;
    long_text_at_its_share(&mut bench, 9);
    assert!(!bench.matching().goes_before_slow(write));
}

#[test]
fn beside_slow_readers_what_is_taken_for_short_has_the_reserve() {
    let mut bench = Bench::new("backends_max = 8");
    for _ in 0..7 {
        let (client, backend_id) = (bench.client(0, None), bench.idle(0, None));
        bench.check_out(client, backend_id);
    }
    let (new, reads) = (bench.client(0, None), bench.client(0, None));
    bench.waits(new, QueueName::Low, 9);
    bench.waits(reads, QueueName::Low, 5);
    assert_eq!(bench.matching().front_to_serve(0), None);
    for n in 0..2 {
        let (backend, client) = (
            BackendId::from_parts(90 + n, 0),
            ClientId::from_parts(80 + n, 0),
        );
        bench.slow_readers.start_long(backend, client);
    }
    assert!(bench.matching().put_short_first().is_empty());
    let backend = BackendId::from_parts(89, 0);
    bench.slow_readers.statement_ended(backend, 0, reads);
    assert_eq!(bench.matching().put_short_first(), [reads]);
    assert_eq!(bench.matching().front_to_serve(0).unwrap().client, reads);
    bench.forgets(reads);
    assert_eq!(bench.matching().front_to_serve(0), None);
}

/// Backends 90 and 91 run long texts, which is the share of eight.
fn share_is_used_up(bench: &mut Bench) {
    for n in 90..92 {
        let (backend, client) = (BackendId::from_parts(n, 0), ClientId::from_parts(n, 0));
        bench.slow_readers.start_long(backend, client);
    }
}

#[test]
fn beside_slow_readers_one_text_that_nobody_knows_is_tried_and_the_last_come_first() {
    let mut bench = Bench::new("backends_max = 8");
    for _ in 0..6 {
        let (client, backend_id) = (bench.client(0, None), bench.idle(0, None));
        bench.check_out(client, backend_id);
    }
    let [old, ran, first, last] = [(9, 1), (7, 4), (6, 3), (5, 3)].map(|(before, ran)| {
        let client = bench.client(0, None);
        bench.waits(client, QueueName::Low, before);
        let entry = bench.clients.get_mut(client).unwrap();
        entry.session.last.number = ran;
        assert!(entry.change_state(ClientState::Waiting, NOW));
        client
    });
    assert_eq!(bench.matching().put_trial_first(), None, "nobody is slow");
    share_is_used_up(&mut bench);
    assert_eq!(
        bench.matching().front_to_serve(0),
        None,
        "one is left for it"
    );
    let ended = BackendId::from_parts(89, 0);
    // Of those that have run most, and then of the last come.
    for tried in [ran, last] {
        assert_eq!(bench.matching().put_trial_first(), Some(tried));
        bench.slow_readers.start_trial(tried, NOW);
        assert_eq!(bench.matching().front_to_serve(0).unwrap().client, tried);
        assert_eq!(bench.matching().put_trial_first(), None, "one at a time");
        // It has ended, and a backend is left for the next.
        bench.slow_readers.statement_ended(ended, 0, tried);
        bench.forgets(tried);
    }
    assert_eq!(bench.matching().put_trial_first(), Some(first));
    bench.forgets(first);
    assert!(bench.matching().may_try(old));
    let (client, backend_id) = (bench.client(0, None), bench.idle(0, None));
    bench.check_out(client, backend_id);
    assert!(!bench.matching().may_try(old), "the reserve is kept");
    // Those of short statements are free soon.
    let runs = |bench: &mut Bench, sent| {
        let command = InFlight::own(Some(client), Purpose::Statement, ReplyShape::Results);
        let command = InFlight { sent, ..command };
        let backend = bench.backends.get_mut(backend_id).unwrap();
        backend.flight.take_answered();
        backend.flight.expect(command);
        bench.matching().may_try(old)
    };
    assert!(runs(&mut bench, NOW));
    assert!(
        !runs(&mut bench, Time(NOW.0 - 50_000_000)),
        "it is not short"
    );
    assert!(runs(&mut bench, NOW));
    bench.slow_readers.start_long(backend_id, client);
    assert!(!bench.matching().may_try(old), "its text is long");
}

/// Digests of two texts of one shape, and of one of another.
const LONG: u64 = 1 << 24;
const LIKE_LONG: u64 = LONG | 1;
const UNLIKE: u64 = 2 << 24;

#[test]
fn texts_unlike_long_ones_are_tried_first_and_others_while_slow_readers_have_less_than_half() {
    for (slow, takes_like) in [(4, false), (3, true)] {
        let mut bench = Bench::new("backends_max = 8");
        long_text(&mut bench, LONG);
        for n in 1..slow {
            let (backend, client) = (BackendId::from_parts(90 + n, 0), ClientId::from_parts(n, 9));
            bench.slow_readers.start_long(backend, client);
        }
        let [unlike, like] = [(7, 1, UNLIKE), (5, 9, LIKE_LONG)].map(|(before, ran, digest)| {
            let client = bench.client(0, None);
            let entry = bench.clients.get_mut(client).unwrap();
            (entry.session.last.number, entry.session.statement.digest) = (ran, digest);
            bench.waits(client, QueueName::Low, before);
            client
        });
        assert!(bench.matching().may_try(unlike));
        assert_eq!(bench.matching().may_try(like), takes_like, "{slow} slow");
        assert_eq!(bench.matching().front_to_serve(0).unwrap().client, unlike);
        assert_eq!(bench.matching().put_trial_first(), Some(unlike));
        bench.forgets(unlike);
        let front = bench.matching().front_to_serve(0);
        let expected = takes_like.then_some(like);
        assert_eq!(front.map(|front| front.client), expected, "{slow} slow");
        assert_eq!(bench.matching().put_trial_first(), expected, "{slow} slow");
    }
}

#[test]
fn so_many_of_the_last_come_are_looked_at_for_a_trial() {
    let mut bench = Bench::new("backends_max = 8");
    share_is_used_up(&mut bench);
    let all = (0..=TRIAL_LOOKS_MAX as u64).map(|number| {
        let client = bench.client(0, None);
        bench.waits(client, QueueName::Low, 1000 - number);
        client
    });
    let all: Vec<ClientId> = all.collect();
    let (first, last) = (all[0], all[TRIAL_LOOKS_MAX]);
    bench.clients.get_mut(first).unwrap().session.last.number = 9;
    assert_eq!(
        bench.matching().put_trial_first(),
        Some(last),
        "it is beyond"
    );
    bench.forgets(last);
    assert_eq!(bench.matching().put_trial_first(), Some(first));
}

#[test]
fn half_of_the_backends_run_texts_of_a_shape_at_first() {
    let mut bench = Bench::new("backends_max = 8");
    let [like, other] = [LIKE_LONG, UNLIKE].map(|digest| {
        let client = bench.client(0, None);
        bench.statement(client).digest = digest;
        client
    });
    bench.waits(like, QueueName::Low, 5);
    for _ in 0..4 {
        assert_eq!(bench.matching().front_to_serve(0).unwrap().client, like);
        bench.slow_readers.start_unknown(LONG, NOW);
    }
    assert_eq!(bench.matching().front_to_serve(0), None);
    assert!(!bench.matching().waits_for_alike(other));
    let mut matching = bench.matching();
    let over = NOW + Duration::from_millis(50);
    assert_eq!(matching.next_for_waiting(), over);
    matching.now = over;
    assert_eq!(matching.front_to_serve(0).unwrap().client, like);
    let write = &mut bench.clients.get_mut(like).unwrap().session.statement;
    write.extent = session::statement::Extent::Short;
    assert!(!bench.matching().waits_for_alike(like));
}
