//! Statements of connections after their login, as a server sees them, and their counts.
use super::*;
use std::collections::HashMap;
use std::thread::ThreadId;

/// Two statements in front of the events; the second returns a row.
const INIT: &str = "--init-sql=SET@a=1 --init-sql=SELECT(@a)";

/// Statements of each connection (a thread each), in order.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<HashMap<ThreadId, Vec<String>>>>);

impl Heard {
    fn note(&self, said: &str) {
        let mut heard = self.0.lock().unwrap();
        let id = std::thread::current().id();
        heard.entry(id).or_default().push(said.to_owned());
    }

    fn by_connection(&self) -> Vec<Vec<String>> {
        self.0.lock().unwrap().values().cloned().collect()
    }
}

fn trial(options: &str, heard: &Heard, answer: fn(&str) -> Answer) -> Trial {
    let heard = heard.clone();
    Trial::new(&format!("{options} {INIT}"), move |said: &str| {
        heard.note(said);
        answer(said)
    })
}

fn well(said: &str) -> Answer {
    Answer::Pieces(if said == "SET@a=1" { ok() } else { one_row() }, 5)
}

#[test]
fn each_connection_is_set_up_once_before_its_first_event() {
    for options in ["--db-ps-mode=disable", "--compression"] {
        let heard = Heard::default();
        let options = format!("select --threads 6 --events 30 {options}");
        let trial = trial(&options, &heard, well);
        assert_eq!(trial.group_threads.connected(), 6);
        let before: Vec<_> = heard.by_connection();
        assert_eq!(before, vec![["SET@a=1", "SELECT(@a)"]; 6], "no event yet");
        assert_eq!(trial.stats.connect_latency.count(), 6);
        assert_eq!(trial.stats.successes(), 0);
        let (stats, _) = trial.run(never);
        assert_eq!((stats.reads, stats.events, stats.failed), (30, 30, 0));
        assert_eq!(stats.statement_latency().count(), 30);
        for heard in heard.by_connection() {
            let later = heard[2..].iter();
            assert!(later.clone().all(|said| said.starts_with("SELECT pad")));
        }
    }
}

#[test]
fn a_connection_that_is_reopened_is_set_up_again() {
    let heard = Heard::default();
    // The fifth life has two events left.
    let options = "select --threads 1 --events 18 --reconnect 4";
    let trial = trial(options, &heard, well);
    let (stats, _) = trial.run(never);
    assert_eq!((stats.reads, stats.failed, stats.lost), (18, 0, 0));
    assert_eq!((stats.reconnects, stats.reconnect_latency.count()), (4, 4));
    let heard = heard.by_connection();
    assert_eq!(heard.len(), 5);
    assert!(heard.iter().all(|h| h[..2] == ["SET@a=1", "SELECT(@a)"]));
}

#[test]
fn a_session_that_cannot_be_set_up_runs_nothing() {
    let heard = Heard::default();
    let refuse = |said: &str| match said {
        "SET@a=1" => Answer::Send(ok()),
        _ => Answer::Send(err(1054, "Unknown column")),
    };
    let trial = trial("select --threads 3", &heard, refuse);
    assert_eq!(trial.group_threads.connected(), 0);
    let (stats, _) = trial.run(|_| true);
    assert_eq!((stats.failed_connects, stats.failed), (3, 0));
    assert_eq!(heard.by_connection(), vec![["SET@a=1", "SELECT(@a)"]; 3]);
    let errors = stats.errors.sorted();
    let seen: Vec<_> = errors.iter().map(|e| (e.phase, e.code, e.count)).collect();
    assert_eq!(seen, [(Phase::Init, 1054, 3)]);
}

#[test]
fn a_connection_lost_or_stuck_while_it_is_set_up_has_failed_to_connect() {
    for (answer, code) in [
        ((|_: &str| Answer::HangUp) as fn(&str) -> Answer, 2013),
        (|_: &str| Answer::Silence, 110),
    ] {
        let heard = Heard::default();
        let trial = trial("select --threads 2 --connect-timeout 1", &heard, answer);
        let errors = trial.stats.errors.clone().sorted();
        assert_eq!((errors[0].phase, errors[0].code), (Phase::Init, code));
        let failed = (trial.group_threads.connected(), trial.stats.failed_connects);
        assert_eq!((failed, trial.stats.lost), ((0, 2), 0));
        assert_eq!(heard.by_connection(), vec![["SET@a=1"]; 2]);
    }
}
