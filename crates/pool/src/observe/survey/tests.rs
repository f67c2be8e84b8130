//! Tests of what may be seen of a group, without a group.

use super::*;
use crate::backend::pools::PoolKey;
use crate::backend::{Endpoint, ForSession, InFlight, Purpose};
use crate::client::ClientState;
use crate::client::identity::Proof;
use crate::errors::reasons::PinReason;
use crate::group::scripted::{Scripted, shared};
use crate::limits::spool::Spool;
use crate::observe::figures::digests::Digests;
use crate::observe::listing::{PAGE, Said};
use crate::scheduler::queue::QueueName;
use crate::upgrade::record::Stays;
use reactor::Event;
use session::meter::Charge;
use session::state::Session;
use std::rc::Rc;
use wire::command::ReplyShape;

const NOW: Time = Time(9_000_000_000);

/// A group's things.
struct Bench {
    net: Scripted,
    shared: Shared,
    settings: Arc<Settings>,
    clients: Clients<()>,
    backends: Slots<Backend<()>, BackendId>,
    pools: BackendPools,
    waiting_count: WaitingCount,
    inputs: Inputs,
    slow_readers: SlowReaders,
    retained: Retained,
    definitions: Definitions,
    sessions: Interner,
    gtids: BTreeMap<ClientId, LastGtid>,
    reads: GroupReads,
    counts: Counts,
    figures: Figures,
    statement_logs: StatementLogs,
    bulk: Bulk,
}

impl Bench {
    /// Those of a group in which nobody is.
    fn new() -> Bench {
        let shared = shared("");
        let settings = shared.settings();
        let mut pools = BackendPools::default();
        pools.add(PoolKey::of_user("app"), |_| true);
        Bench {
            net: Scripted {
                now: NOW,
                ..Scripted::default()
            },
            slow_readers: SlowReaders::new(Spool::new(0, shared.lengths.spool_block)),
            figures: Figures::new(settings.users.len(), Digests::of_group(0, 1)),
            shared,
            settings,
            clients: Clients::default(),
            backends: Slots::default(),
            pools,
            waiting_count: WaitingCount::default(),
            inputs: Inputs::default(),
            retained: Retained::default(),
            definitions: Definitions::default(),
            sessions: Interner::default(),
            gtids: BTreeMap::new(),
            reads: GroupReads::default(),
            counts: Counts::default(),
            statement_logs: StatementLogs::default(),
            bulk: Bulk::default(),
        }
    }

    fn survey(&self) -> Survey<'_, Scripted> {
        Survey {
            net: &self.net,
            shared: &self.shared,
            settings: &self.settings,
            index: 0,
            clients: &self.clients,
            backends: &self.backends,
            pools: &self.pools,
            waiting_count: &self.waiting_count,
            inputs: &self.inputs,
            slow_readers: &self.slow_readers,
            retained: &self.retained,
            definitions: &self.definitions,
            sessions: &self.sessions,
            gtids: &self.gtids,
            reads: &self.reads,
            counts: &self.counts,
            figures: &self.figures,
            statement_logs: &self.statement_logs,
            bulk: &self.bulk,
        }
    }

    /// A client that is logged in, between two statements.
    fn client(&mut self) -> ClientId {
        let mut client = Client::of_tests(NOW, Rc::default());
        client.login = None;
        client.identity.set_proof(Proof::Given);
        client
            .identity
            .set_id(self.clients.next_id(self.shared.ids(), 0, 1));
        assert!(client.change_state(ClientState::Idle, NOW));
        self.clients.insert(client)
    }

    /// An idle backend.
    fn backend(&mut self) -> BackendId {
        let mut backend = Backend::of_tests(NOW, Rc::default());
        assert!(backend.change_state(BackendState::Preparing, NOW));
        assert!(backend.change_state(BackendState::Idle, NOW));
        backend.thread = 42;
        self.backends.insert(backend)
    }

    /// Checks a backend out to a client.
    fn check_out(&mut self, client: ClientId, backend_id: BackendId) {
        let backend = self.backends.get_mut(backend_id).unwrap();
        assert!(backend.change_state(BackendState::CheckedOut, NOW));
        let keys = (client, backend_id);
        let client = self.clients.get_mut(client).unwrap();
        client.bind(backend, keys);
    }

    /// Puts a statement of a client in flight on a backend.
    fn runs(&mut self, client: ClientId, backend: BackendId) {
        let command = InFlight::own(Some(client), Purpose::Statement, ReplyShape::Results);
        self.backends
            .get_mut(backend)
            .unwrap()
            .flight
            .expect(command);
        let client = self.clients.get_mut(client).unwrap();
        assert!(client.change_state(ClientState::Running, NOW));
    }

    fn pin(&mut self, client: ClientId) {
        let pins = &mut self.clients.get_mut(client).unwrap().session.pins;
        pins.add(PinReason::PreparedSchema, None, NOW.0 - 3_000_000_000);
    }

    /// Buffers `len` uncounted bytes of a client's reply.
    fn has_untaken(&mut self, client: ClientId, len: usize) {
        let output = self
            .clients
            .get_mut(client)
            .unwrap()
            .output
            .insert(Box::default());
        output.bytes = vec![1; len];
    }

    fn forgotten(&self) -> String {
        self.survey().forgotten().unwrap_or_default()
    }
}

#[test]
fn who_is_here_is_counted_by_what_it_does() {
    let mut bench = Bench::new();
    let (one, two) = (bench.client(), bench.client());
    let (backend, _idle) = (bench.backend(), bench.backend());
    bench.check_out(one, backend);
    bench.pin(one);
    // A pin without a backend keeps none from others.
    bench.pin(two);
    let client = bench.clients.get_mut(two).unwrap();
    bench
        .waiting_count
        .enter(client, (QueueName::Low, NOW, 10), &bench.settings);
    bench.counts.accepted = 5;
    let census = bench.survey().census();
    assert_eq!((census.clients, census.pinned, census.waiting), (2, 1, 1));
    assert_eq!(
        (census.backends_checked_out, census.counts.accepted),
        (1, 5)
    );
    let view = bench.survey().view(Turns::default());
    assert_eq!(view.at, NOW);
    assert_eq!(view.census.pinned, 1);
    assert_eq!(view.stages[Stage::Holding as usize], 1);
    assert_eq!(view.stages[Stage::Idle as usize], 1);
    let reason = PinReason::PreparedSchema.name();
    assert_eq!(view.pinned.get(reason), Some(&2), "each pin has its reason");
}

#[test]
fn the_sum_that_is_kept_for_clients_leaves_nothing_out() {
    let mut bench = Bench::new();
    let before = bench.survey().held_for_clients();
    let client = bench.client();
    let one = bench.survey().held_for_clients();
    assert_eq!(one - before, size_of::<Client<()>>());
    bench.gtids.insert(client, LastGtid::default());
    assert_eq!(bench.survey().held_for_clients() - one, GTID_BYTES);
    let charge = Charge::new(&bench.retained.tls_bytes, 1000);
    let all = bench.survey().held_for_clients();
    assert_eq!(all - one, GTID_BYTES + 1000);
    assert_eq!(bench.survey().census().memory_bytes, all);
    drop(charge);
}

#[test]
fn what_is_counted_and_not_there_is_found() {
    let mut bench = Bench::new();
    assert_eq!(bench.survey().miscounted(), None);
    let charge = Charge::new(&bench.retained.tls_bytes, 7);
    let said = bench.survey().miscounted().unwrap();
    assert_eq!(said, "TLS of clients: 7 bytes are counted, not 0");
    drop(charge);
    let client = bench.client();
    bench.gtids.insert(client, LastGtid::default());
    assert_eq!(bench.survey().miscounted(), None);
    bench.clients.remove(client);
    let said = bench.survey().miscounted().unwrap();
    assert!(said.starts_with("last_gtid of who has left"), "{said}");
    bench.gtids.clear();
    let client = bench.client();
    bench.has_untaken(client, 9);
    let said = bench.survey().miscounted().unwrap();
    assert!(said.starts_with("outputs"), "it was not counted: {said}");
}

#[test]
fn the_longest_reply_that_waits_on_its_backend_is_found() {
    let mut bench = Bench::new();
    assert_eq!(bench.survey().longest_untaken(), (0, false));
    for len in [9, 20] {
        let (client, backend) = (bench.client(), bench.backend());
        bench.check_out(client, backend);
        bench.runs(client, backend);
        bench.has_untaken(client, len);
    }
    assert_eq!(bench.survey().longest_untaken(), (20, false));
    // One without a backend has all of its reply.
    let client = bench.client();
    bench.has_untaken(client, 100);
    assert_eq!(bench.survey().longest_untaken(), (20, false));
}

#[test]
fn whoever_stands_in_no_line_is_named() {
    let mut bench = Bench::new();
    let (client, backend) = (bench.client(), bench.backend());
    assert_eq!(bench.survey().forgotten(), None);
    let readable = Event {
        token: client.token(),
        readable: true,
        writable: false,
        closed: false,
    };
    let transport = &mut bench.clients.get_mut(client).unwrap().transport;
    transport.note(readable);
    let said = bench.forgotten();
    assert!(said.ends_with("its bytes can be read"), "{said}");
    bench.clients.get_mut(client).unwrap().ended.set_closing();
    assert_eq!(bench.forgotten(), "", "it is closed anyway");
    bench.clients.remove(client);
    let client = bench.client();
    let waiting = bench.clients.get_mut(client).unwrap();
    assert!(waiting.change_state(ClientState::Waiting, NOW));
    let said = bench.forgotten();
    assert!(said.ends_with("it waits for nothing"), "{said}");
    let waiting = bench.clients.get_mut(client).unwrap();
    bench
        .waiting_count
        .enter(waiting, (QueueName::Low, NOW, 10), &bench.settings);
    let said = bench.forgotten();
    assert!(said.ends_with("a queue that does not have it"), "{said}");
    bench.clients.remove(client);
    let client = bench.client();
    bench.check_out(client, backend);
    let running = bench.clients.get_mut(client).unwrap();
    assert!(running.change_state(ClientState::Running, NOW));
    let said = bench.forgotten();
    assert!(said.ends_with("nothing of it is in flight"), "{said}");
    bench
        .backends
        .get_mut(backend)
        .unwrap()
        .transport
        .note(readable);
    bench.clients.remove(client);
    let said = bench.forgotten();
    assert!(said.ends_with("it stands in no line"), "{said}");
    bench.bulk.read_at_once(backend);
    assert_eq!(bench.forgotten(), "");
}

#[test]
fn clients_are_listed_page_by_page() {
    let mut bench = Bench::new();
    for _ in 0..=PAGE {
        bench.client();
    }
    let page = |from| match bench.survey().client_lines(from, false) {
        Said::Clients(lines) => lines.len(),
        other => panic!("no page: {other:?}"),
    };
    assert_eq!((page(0), page(PAGE)), (PAGE, 1));
    // Of a page, however long, the page asks no more than its sums.
    let Said::Sums(sums, PAGE) = bench.survey().sums(0) else {
        panic!("they were asked for");
    };
    assert_eq!((sums.sources.len(), sums.pins.len()), (1, 0));
}

#[test]
fn a_line_says_what_a_client_and_a_backend_do() {
    let mut bench = Bench::new();
    let (client, backend) = (bench.client(), bench.backend());
    bench.check_out(client, backend);
    bench.pin(client);
    let lines = |bench: &Bench| {
        let Said::Clients(mut clients) = bench.survey().client_lines(0, false) else {
            panic!("they were asked for");
        };
        let Said::Backends(mut backends) = bench.survey().backend_lines() else {
            panic!("they were asked for");
        };
        (clients.remove(0), backends.remove(0))
    };
    let (of_client, of_backend) = lines(&bench);
    assert_eq!(of_client.thread, Some(42));
    assert_eq!(of_client.pins, [(PinReason::PreparedSchema.name(), 3.0)]);
    assert_eq!((of_backend.state, of_backend.in_flight), ("held", 0));
    assert_eq!(of_backend.client, Some(of_client.id));
    bench.runs(client, backend);
    let (_, of_backend) = lines(&bench);
    assert_eq!((of_backend.state, of_backend.in_flight), ("running", 1));
    // Nobody is named before its name is proven.
    bench
        .clients
        .get_mut(client)
        .unwrap()
        .identity
        .set_proof(Proof::Missing);
    assert_eq!(lines(&bench).0.user, None);
}

#[test]
fn the_report_has_a_line_for_each_client_and_the_sum() {
    let mut bench = Bench::new();
    let (client, backend) = (bench.client(), bench.backend());
    bench.check_out(client, backend);
    bench.pin(client);
    let lines = bench.survey().report();
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let reason = PinReason::PreparedSchema.name();
    let of_client = texts[texts.len() - 2];
    assert!(
        of_client.contains("idle on thread 42, pinned ("),
        "{of_client}"
    );
    assert!(
        of_client.contains(&format!("({reason}) for 3 s")),
        "{of_client}"
    );
    let sum = texts[texts.len() - 1];
    assert!(sum.contains("1 clients"), "{sum}");
    assert!(sum.contains(&format!("{reason}: 1")), "{sum}");
}

#[test]
fn who_has_left_is_not_packed() {
    let mut bench = Bench::new();
    let client = bench.client();
    let records = bench.survey().packed(client);
    assert!(records.is_ok_and(|records| records.backend.is_none()));
    bench.clients.remove(client);
    assert_eq!(bench.survey().packed(client).err(), Some(Stays::Busy));
}

#[test]
fn why_a_wait_is_long_is_said() {
    let mut bench = Bench::new();
    let (client, backend) = (bench.client(), bench.backend());
    bench.check_out(client, backend);
    bench.pin(client);
    bench.pools.pools[0].last_failure = Some("refused".into());
    let said = bench.survey().what_backends_do(0);
    assert!(said.contains("1 of them by pinned clients"), "{said}");
    assert!(said.starts_with("last failure: refused; 1 of"), "{said}");
}

#[test]
fn the_longest_login_of_a_pool_is_found() {
    let at = |port: u16| Arc::new(Address::parse(&format!("127.0.0.1:{port}")).unwrap());
    let session = Rc::new(Session::default());
    let dialled = |(port, pool, seconds): (u16, usize, u64)| {
        let to = Endpoint::new((), at(port), pool);
        let since = Time::default() + Duration::from_secs(seconds);
        Backend::dialling(to, since, session.clone(), None)
    };
    let mut backends: Vec<Backend<()>> = [(1, 0, 7), (2, 0, 5), (3, 1, 1)].map(dialled).into();
    let now = Time::default() + Duration::from_secs(9);
    let longest = |backends: &[Backend<()>], pool| longest_login(backends.iter(), pool, now);
    assert_eq!(longest(&backends, 0), Some((at(2), Duration::from_secs(4))));
    assert_eq!(longest(&backends, 1), Some((at(3), Duration::from_secs(8))));
    assert_eq!(longest(&backends, 2), None);
    // One that is logged in and does not answer what it is told first has not ended its login.
    let two = Time::default() + Duration::from_secs(8);
    assert!(backends[2].change_state(BackendState::Preparing, two));
    assert_eq!(longest(&backends, 1), Some((at(3), Duration::from_secs(1))));
    assert!(backends[2].change_state(BackendState::Idle, two));
    assert_eq!(longest(&backends, 1), None);
}

#[test]
fn the_statement_that_is_unanswered_for_longest_is_found() {
    let running = |(seconds, purpose, len): (u64, Purpose, usize)| {
        let mut backend: Backend<()> = Backend::of_tests(Time::default(), Rc::default());
        backend.flight.expect(InFlight {
            sent: Time::default() + Duration::from_secs(seconds),
            ..InFlight::own(None, purpose, ReplyShape::Results)
        });
        backend.flight.summary_mut().len = len;
        backend
    };
    let now = Time::default() + Duration::from_secs(9);
    let longest = |all: &[(u64, Purpose, usize)]| {
        let backends: Vec<Backend<()>> = all.iter().copied().map(running).collect();
        longest_unanswered(backends.iter(), now)
    };
    assert_eq!(longest(&[]), None);
    // One that has been answered in part, and a question of the pool's own.
    let others = [
        (1, Purpose::Statement, 5),
        (1, ForSession::Warnings.into(), 0),
    ];
    assert_eq!(longest(&others), None);
    for purpose in [Purpose::Statement, ForSession::Ahead.into()] {
        let all = [
            others[0],
            (7, Purpose::Statement, 0),
            (3, purpose, 0),
            others[1],
        ];
        assert_eq!(longest(&all), Some(Duration::from_secs(6)));
    }
}
