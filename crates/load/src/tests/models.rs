//! The models of load, as a server sees them: who sends when, who gives up, who comes back.
use super::*;
use std::collections::HashMap;
use std::thread::ThreadId;

/// Statements that a server has seen, by the connection (a thread each) they came on.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<HashMap<ThreadId, u32>>>);

impl Seen {
    /// Notes a statement; how many have come on this connection.
    fn note(&self) -> u32 {
        let mut seen = self.0.lock().unwrap();
        let count = seen.entry(std::thread::current().id()).or_default();
        *count += 1;
        *count
    }

    fn by_connection(&self) -> Vec<u32> {
        self.0.lock().unwrap().values().copied().collect()
    }
}

/// Statements that a server answers at a time, and the most there ever were.
#[derive(Clone, Default)]
struct Crowding(Arc<(AtomicU32, AtomicU32)>);

impl Crowding {
    fn inside(&self, what: impl FnOnce()) {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        what();
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> u32 {
        self.0.1.load(Ordering::SeqCst)
    }
}

#[test]
fn an_open_loop_sends_what_arrives_and_no_more() {
    let seen = Seen::default();
    let script = {
        let seen = seen.clone();
        move |_: &str| {
            seen.note();
            Answer::Send(one_row())
        }
    };
    let options = "select --threads 8 --rate 400 --arrivals constant --events 200";
    let (stats, _) = Trial::new(options, script).run(never);
    assert_eq!((stats.arrived, stats.events, stats.shed), (200, 200, 0));
    let by_connection = seen.by_connection();
    assert_eq!(by_connection.len(), 8);
    assert!(
        by_connection.iter().all(|n| *n >= 5),
        "those at rest take turns: {by_connection:?}"
    );
    assert!(
        (1..=200).contains(&stats.lag.count()),
        "of those who found one at rest"
    );
}

/// One connection, a server that does not answer the first statement before ten arrivals have met a
/// full line: who arrives waits, and the latency of those who wait has their waiting in it.
#[test]
fn who_finds_no_connection_waits_and_the_clock_runs() {
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock().unwrap();
    let script = {
        let gate = gate.clone();
        move |_: &str| {
            drop(gate.lock());
            Answer::Send(one_row())
        }
    };
    // One executes, 50 wait, 10 are shed; nobody else comes.
    let options = "select --threads 1 --rate 1000 --arrivals constant --queue-max 50 --events 61";
    let mut trial = Trial::new(options, script);
    trial.group_threads.order(Order::Start);
    let until = Time::now() + Duration::from_secs(20);
    while trial.stats.shed < 10 {
        assert!(Time::now() < until, "{:?}", trial.stats.arrived);
        trial
            .group_threads
            .listen(Time::now() + Duration::from_millis(5));
        trial.report(Order::Report);
    }
    assert_eq!(trial.group_threads.gauges().waiting, 50, "a full line");
    drop(held);
    let (stats, _) = trial.run(never);
    assert_eq!((stats.arrived, stats.shed, stats.events), (61, 10, 51));
    // One comes each millisecond: who came last into the line had to wait for ten others to come,
    // and who came first for 60. Percentiles are a hundredth off at most.
    let latency = stats.statement_latency();
    let (shortest, longest) = (latency.percentile_ms(1.0), latency.max_ms());
    assert!(shortest >= 9.8, "{shortest}");
    assert!(longest >= 59.0, "{longest}");
}

#[test]
fn clients_give_up_hang_up_and_try_again_until_they_are_answered() {
    let seen = Seen::default();
    let asked = Arc::new(AtomicU32::new(0));
    let script = {
        let (seen, asked) = (seen.clone(), asked.clone());
        move |_: &str| {
            let on_this = seen.note();
            assert_eq!(
                on_this, 1,
                "a connection that was given up is not used again"
            );
            match asked.fetch_add(1, Ordering::SeqCst) {
                0..6 => Answer::Silence,
                _ => Answer::Send(one_row()),
            }
        }
    };
    let options = "select --threads 2 --events 2 --give-up 30ms";
    let (stats, group_threads) = Trial::new(options, script).run(never);
    // On a busy machine some may lose their patience before they are logged in.
    assert!(stats.gave_up >= 6, "{}", stats.gave_up);
    assert_eq!(stats.gave_up, stats.reconnects + stats.failed_connects);
    assert_eq!((stats.events, stats.reads), (2, 2));
    assert_eq!(
        (stats.failed, stats.lost, group_threads.unfinished),
        (0, 0, 0)
    );
    assert_eq!(stats.reconnect_latency.count(), stats.reconnects);
    // An event's clock runs through all its repetitions, a statement's through the last one.
    let given_up_ms = stats.event_latency.sum_ms() - stats.statement_latency().sum_ms();
    assert!(given_up_ms >= 6.0 * 30.0, "{given_up_ms}");
}

#[test]
fn retries_come_to_an_end_and_the_next_event_begins() {
    let script = |_: &str| Answer::Silence;
    let options = "select --threads 1 --give-up 5ms --retries 2 --retry-pause 1ms-2ms --events 3";
    let (stats, _) = Trial::new(options, script).run(never);
    assert_eq!(
        (stats.gave_up, stats.events),
        (9, 0),
        "three tries for each event"
    );
}

/// A patience that is longer than every answer costs one timer, and nobody gives up.
#[test]
fn who_is_answered_in_time_does_not_give_up() {
    let script = |_: &str| Answer::Send(one_row());
    let options = "select --threads 4 --events 4000 --give-up 5s";
    let (stats, _) = Trial::new(options, script).run(never);
    assert_eq!(
        (stats.reads, stats.in_time, stats.gave_up),
        (4_000, 4_000, 0)
    );
}

#[test]
fn goodput_is_what_was_answered_in_time() {
    let number = AtomicU32::new(0);
    let script = move |_: &str| {
        if number.fetch_add(1, Ordering::SeqCst).is_multiple_of(4) {
            std::thread::sleep(Duration::from_millis(60));
        }
        Answer::Send(one_row())
    };
    let (stats, _) = Trial::new("select --threads 1 --events 20 --in-time 50ms", script).run(never);
    assert_eq!((stats.reads, stats.gave_up), (20, 0));
    assert!(stats.in_time <= 15, "five were late: {}", stats.in_time);
}

#[test]
fn only_so_many_are_active_and_all_take_turns() {
    let (seen, crowding) = (Seen::default(), Crowding::default());
    let script = {
        let (seen, crowding) = (seen.clone(), crowding.clone());
        move |_: &str| {
            crowding.inside(|| {
                seen.note();
                std::thread::sleep(Duration::from_micros(300));
            });
            Answer::Send(one_row())
        }
    };
    let options = "select --threads 40 --active 10% --events 800";
    let (stats, _) = Trial::new(options, script).run(never);
    assert_eq!(stats.events, 800);
    assert!((1..=4).contains(&crowding.most()), "{}", crowding.most());
    let by_connection = seen.by_connection();
    assert_eq!(by_connection.len(), 40);
    assert!(
        by_connection.iter().all(|n| (2..=30).contains(n)),
        "{by_connection:?}"
    );
}

#[test]
fn who_thinks_sends_after_a_pause() {
    let script = |_: &str| Answer::Send(one_row());
    let options = "select --threads 10 --think-time 20ms-40ms --events 100";
    let began = Time::now();
    let (stats, _) = Trial::new(options, script).run(never);
    // Each connection makes ten events: a first, and nine pauses of 20 ms at least.
    assert!(Time::now().since(began) >= Duration::from_millis(180));
    assert_eq!((stats.events, stats.lag.count()), (100, 100));
}

#[test]
fn lifetimes_end_between_events_and_connections_come_back() {
    let script = |_: &str| Answer::Send(one_row());
    let options = "select --threads 4 --lifetime 5ms-25ms";
    let (stats, _) = Trial::new(options, script).run(|stats| stats.reconnects > 30);
    assert!(
        stats.retired >= stats.reconnects,
        "{} {}",
        stats.retired,
        stats.reconnects
    );
    assert_eq!((stats.lost, stats.failed, stats.gave_up), (0, 0, 0));
    assert!(stats.reads > 30);
}

#[test]
fn connections_follow_their_stages_up_and_down() {
    let script = |_: &str| Answer::Send(one_row());
    let options = "select --threads 12 --stages 0:2,100ms:12,1s:12,1100ms:3 --connect-rate 0";
    let mut trial = Trial::new(options, script);
    assert_eq!(trial.group_threads.connected(), 2);
    trial.group_threads.order(Order::Start);
    for wanted in [12, 3] {
        let until = Time::now() + Duration::from_secs(20);
        while trial.group_threads.connected() != wanted {
            assert!(
                Time::now() < until,
                "{} stand",
                trial.group_threads.connected()
            );
            trial
                .group_threads
                .listen(Time::now() + Duration::from_millis(2));
            trial.report(Order::Report);
        }
    }
    let (stats, _) = trial.run(|_| true);
    assert_eq!((stats.lost, stats.failed, stats.reconnects), (0, 0, 0));
}
