//! A run of so many events ends, whatever becomes of the connections that were to run them.
use super::*;
use std::time::Instant;

/// The first of two connections is refused its set-up: the other one runs all events, although it
/// is the only one of its group.
#[test]
fn a_group_without_a_connection_leaves_its_events_to_others() {
    let refused = AtomicU32::new(0);
    let script = move |said: &str| match said {
        "DO(1)" if refused.fetch_add(1, Ordering::SeqCst) == 0 => Answer::Send(err(1064, "no")),
        "DO(1)" => Answer::Send(ok()),
        _ => Answer::Send(one_row()),
    };
    let trial = Trial::new("select --threads 2 --events 10 --init-sql DO(1)", script);
    assert_eq!(trial.group_threads.connected(), 1);
    let (stats, _) = trial.run(never);
    assert_eq!((stats.events, stats.failed_connects), (10, 1));
}

/// One active connection in two groups: one group never has its turn.
#[test]
fn a_group_that_has_no_turn_leaves_its_events_to_others() {
    let script = |_: &str| Answer::Send(one_row());
    let options = "select --threads 2 --active 1 --events 10";
    let (stats, _) = Trial::new(options, script).run(never);
    assert_eq!(stats.events, 10);
}

/// Answers what is asked once so much time has passed since the first statement.
fn late(by: Duration) -> impl Fn(&str) -> Answer + Send + Sync {
    let first = Mutex::new(None);
    move |_: &str| {
        let began = *first.lock().unwrap().get_or_insert_with(Instant::now);
        std::thread::sleep((began + by).saturating_duration_since(Instant::now()));
        Answer::Send(one_row())
    }
}

#[test]
fn a_group_whose_connections_are_not_wanted_any_more_leaves_its_events_to_others() {
    let options = "select --threads 4 --stages 0:4,50ms:4,50ms:1 --events 400";
    let (stats, _) = Trial::new(options, late(Duration::from_millis(100))).run(never);
    assert_eq!(stats.events, 400);
}

/// Clients hang up and have no place to come back to: their events are not waited for.
#[test]
fn who_hung_up_and_is_not_wanted_any_more_is_not_waited_for() {
    let first = Mutex::new(None);
    let script = move |_: &str| {
        let began = *first.lock().unwrap().get_or_insert_with(Instant::now);
        match began.elapsed() < Duration::from_millis(200) {
            true => Answer::Silence,
            false => Answer::Send(one_row()),
        }
    };
    let options = "select --threads 6 --stages 0:6,100ms:6,100ms:1 --give-up 20ms \
                   --retry-pause 60ms --events 40";
    let (stats, _) = Trial::new(options, script).run(never);
    assert!(stats.gave_up > 6 && stats.events <= 40, "{stats:?}");
}

#[test]
fn a_rate_that_falls_to_nothing_ends_the_run() {
    let script = |_: &str| Answer::Send(one_row());
    let options = "select --threads 2 --rate 0:1000,20ms:1000,20ms:0 --arrivals constant \
                   --events 1000";
    let (stats, _) = Trial::new(options, script).run(never);
    // Whether the one that is due as the rate falls still comes is a matter of rounding.
    assert!((19..=20).contains(&stats.arrived), "{}", stats.arrived);
    assert_eq!(stats.events, stats.arrived);
}

/// An event that was given up and then answered is over: its slot, closed and opened again at the
/// end of a lifetime, does not run it a third time.
#[test]
fn an_event_that_was_answered_is_not_run_again_by_the_next_connection() {
    let asked = Arc::new(AtomicU32::new(0));
    let script = {
        let asked = asked.clone();
        move |_: &str| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::Silence,
            _ => Answer::Send(one_row()),
        }
    };
    let options = "select --threads 1 --events 2 --rate 4 --arrivals constant --give-up 30ms \
                   --lifetime 60ms";
    let (stats, _) = Trial::new(options, script).run(never);
    // On a busy machine the second one may lose its patience before a connection is there.
    assert_eq!(stats.events + stats.expired, 2);
    let given_up = stats.gave_up - stats.failed_connects;
    let asked = u64::from(asked.load(Ordering::SeqCst));
    assert!(given_up >= 1 && asked == stats.events + given_up, "{asked}");
}
