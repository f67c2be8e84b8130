//! The decision in single cases, by hand: what the simulation does not draw, or draws seldom.
//!
//! The problem: random worlds show that promises hold, not that words and bounds are right. Each
//! test asks for the next view a step at a time, a second apart.

use cluster::*;

const DB1: ServerId = ServerId(0);
const DB2: ServerId = ServerId(1);

struct Case {
    settings: Settings,
    view: View,
    now: u64,
}

impl Case {
    fn new(kind: Kind, roles: &[Role]) -> Self {
        let named = roles.iter().zip(1..).map(|(&role, id)| ServerSettings {
            name: format!("db{id}"),
            address: format!("db{id}:3306"),
            role,
            weight: 100,
        });
        let settings = Settings::new(kind, named.collect());
        let view = View::new(&settings, 0);
        Self {
            settings,
            view,
            now: 10_000,
        }
    }

    /// The view a second later, in which each server has answered so.
    fn next(&mut self, answers: Vec<Result<Report, Failure>>) -> &View {
        self.with(answers, Traffic::default())
    }

    fn with(&mut self, answers: Vec<Result<Report, Failure>>, traffic: Traffic) -> &View {
        self.now += 1_000;
        let observed = answers
            .into_iter()
            .zip(0..)
            .map(|(answer, id)| Observation {
                server: ServerId(id),
                at: self.now - 5,
                took_ms: 5,
                answer,
                traffic,
            });
        let observed: Vec<_> = observed.collect();
        self.view = decide(&observed, &self.view, &self.settings, self.now);
        &self.view
    }

    fn state(&self, id: ServerId) -> (State, &str) {
        let server = &self.view.servers[id.index()];
        (server.state, &server.why)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "an answer is a result")]
fn says(change: impl FnOnce(&mut Report)) -> Result<Report, Failure> {
    let mut report = Report::default();
    change(&mut report);
    Ok(report)
}

fn writable() -> Result<Report, Failure> {
    says(|_| {})
}

fn read_only() -> Result<Report, Failure> {
    says(|it| it.read_only = true)
}

fn refused() -> Result<Report, Failure> {
    Err(Failure::Refused("connection refused".into()))
}

/// A replica of db1 with this lag.
fn replica(lag_ms: Option<u64>) -> Result<Report, Failure> {
    replica_of("db1", lag_ms)
}

fn replica_of(host: &str, lag_ms: Option<u64>) -> Result<Report, Failure> {
    let source = Source {
        channel: String::new(),
        host: host.into(),
        port: 3306,
        server_id: 0,
        server_uuid: String::new(),
        receiver: if lag_ms.is_some() {
            Receiver::Connected
        } else {
            Receiver::Connecting
        },
        applier: true,
        lag_ms,
        error: String::new(),
    };
    says(|it| (it.read_only, it.sources) = (true, vec![source]))
}

const AUTO: [Role; 2] = [Role::Auto; 2];

#[test]
fn a_replica_that_is_not_read_only_is_neither_writer_nor_reader() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    let mut two = replica(Some(0)).unwrap();
    two.read_only = false;
    case.next(vec![writable(), Ok(two)]);
    assert_eq!(case.state(DB2), (State::Unused, "it is not read-only"));
}

#[test]
fn two_writable_servers_are_no_writer_at_start_and_no_change_later() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    let view = case.next(vec![writable(), writable()]);
    assert_eq!(view.writer, None);
    assert!(
        view.why
            .contains("takes writes too: set its read_only or its role"),
        "{}",
        view.why
    );
    let view = case.next(vec![writable(), read_only()]);
    assert_eq!((view.writer, view.epoch), (Some(DB1), 1));
    let view = case.next(vec![writable(), writable()]);
    assert_eq!((view.writer, view.epoch), (Some(DB1), 1));
    assert!(view.why.contains("db2 takes writes too"), "{}", view.why);
    assert_eq!(case.state(DB2).0, State::Unused);
}

#[test]
fn a_role_vouches_for_a_server() {
    let mut case = Case::new(Kind::Replication, &[Role::Auto, Role::Reader]);
    assert_eq!(case.next(vec![writable(), writable()]).writer, Some(DB1));
    assert_eq!(case.next(vec![read_only(), writable()]).writer, None);
    let mut case = Case::new(Kind::Replication, &[Role::Writer, Role::Auto]);
    assert_eq!(case.next(vec![writable(), refused()]).writer, Some(DB1));
    let mut case = Case::new(Kind::Replication, &AUTO);
    let view = case.next(vec![writable(), refused()]);
    assert_eq!(view.writer, None);
    assert!(
        view.why
            .contains("db2 has never answered and may take writes"),
        "{}",
        view.why
    );
}

#[test]
fn a_lost_writer_is_waited_for_until_it_is_fenced() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    case.next(vec![writable(), read_only()]);
    for _ in 0..6 {
        case.next(vec![refused(), writable()]);
    }
    assert_eq!(case.view.writer, None);
    assert!(
        case.view.why.contains("start it, or fence it"),
        "{}",
        case.view.why
    );
    case.view = case.view.fenced(DB1, Some("powered off by ops"));
    assert_eq!(case.next(vec![refused(), writable()]).writer, Some(DB2));
    // It comes back as it was: the one that is the writer now stays.
    for _ in 0..3 {
        assert_eq!(case.next(vec![writable(), writable()]).writer, Some(DB2));
    }
}

#[test]
fn a_fence_is_shown_and_taken_back() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    case.next(vec![writable(), read_only()]);
    case.view = case.view.fenced(DB1, Some("ops"));
    assert_eq!(case.next(vec![writable(), read_only()]).writer, None);
    assert_eq!(case.state(DB1), (State::Unused, "it is fenced: ops"));
    case.view = case.view.fenced(DB1, None);
    assert_eq!(case.next(vec![writable(), read_only()]).writer, Some(DB1));
}

#[test]
fn a_second_writable_server_is_warned_of_while_there_is_one() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    case.next(vec![writable(), read_only()]);
    let before = case.view.why.clone();
    case.next(vec![writable(), writable()]);
    assert!(
        case.view.why.contains("db2 takes writes too"),
        "{}",
        case.view.why
    );
    case.next(vec![writable(), read_only()]);
    assert_eq!(case.view.why, before);
}

#[test]
fn a_writer_that_returns_waits_for_servers_that_may_have_been_promoted() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    case.next(vec![writable(), read_only()]);
    for _ in 0..6 {
        case.next(vec![refused(), refused()]);
    }
    // The first good answer after a loss is not believed yet.
    case.next(vec![writable(), refused()]);
    for _ in 0..3 {
        let view = case.next(vec![writable(), refused()]);
        assert_eq!(view.writer, None);
        assert!(
            view.why.contains("db2 does not answer and may take writes"),
            "{}",
            view.why
        );
    }
    assert_eq!(case.next(vec![writable(), read_only()]).writer, Some(DB1));
}

#[test]
fn a_lost_writer_is_replaced_if_that_is_set() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    case.settings.writer_lost = WriterLost::Replace;
    case.next(vec![writable(), replica(Some(0))]);
    for _ in 0..6 {
        case.next(vec![refused(), replica(None)]);
    }
    assert_eq!((case.view.writer, case.view.epoch), (None, 2));
    assert_eq!(case.next(vec![refused(), writable()]).writer, Some(DB2));
}

#[test]
fn a_replica_of_a_server_that_was_left_is_not_read() {
    const DB3: ServerId = ServerId(2);
    const DB4: ServerId = ServerId(3);
    let mut case = Case::new(Kind::Replication, &[Role::Auto; 4]);
    let [of_one, of_three] = ["db1", "db3"].map(|host| replica_of(host, Some(0)));
    let all = |two: &Result<Report, Failure>| {
        vec![writable(), two.clone(), of_one.clone(), of_three.clone()]
    };
    assert_eq!(case.next(all(&of_one)).readers, [DB2, DB3, DB4]);
    // Replicas of the old writer have no lag, and what the new one writes never reaches them.
    case.view = case.view.switched(DB2, "an operator asked", case.now);
    let mut left = all(&writable());
    left[0] = read_only();
    assert!(case.next(left.clone()).readers.is_empty());
    assert_eq!(
        case.state(DB3),
        (State::Unused, "it does not replicate from db2")
    );
    assert_eq!(
        case.state(DB4),
        (State::Unused, "it does not replicate from db2")
    );
    let hears = |case: &Case, id| case.view.is_followed_by(id, &case.settings, case.now);
    assert!(hears(&case, DB2) && !hears(&case, DB1) && !hears(&case, DB3));
    // The old one replicates from the new one: so do its replicas.
    left[0] = replica_of("db2", Some(0));
    assert_eq!(case.next(left.clone()).readers, [DB1, DB3, DB4]);
    assert!(hears(&case, DB1) && hears(&case, DB4));
    // A circle without the writer in it ends.
    left[0] = replica_of("db4", Some(0));
    assert!(case.next(left.clone()).readers.is_empty());
    // A server that is not among these may be another writer.
    left[0] = replica_of("relay", Some(0));
    assert!(case.next(left.clone()).readers.is_empty());
    assert!(!hears(&case, DB1) && !hears(&case, DB4));
    // So may one that has never answered.
    let mut case = Case::new(Kind::Replication, &[Role::Writer, Role::Auto, Role::Auto]);
    let mut all = vec![writable(), refused(), replica_of("db2", Some(0))];
    assert!(case.next(all.clone()).readers.is_empty());
    all[1] = of_one;
    assert_eq!(case.next(all).readers, [DB3]);
}

#[test]
fn servers_that_all_replicate_from_each_other_are_looked_at_once() {
    const MANY: u32 = 24;
    let mut case = Case::new(Kind::Replication, &[Role::Auto; MANY as usize]);
    case.next(vec![writable(); MANY as usize]);
    let all = |own: u32| {
        let others = (2..=MANY).filter(|other| *other != own);
        let one = |other: u32| replica_of(&format!("db{other}"), Some(0)).unwrap().sources;
        says(|it| (it.read_only, it.sources) = (true, others.flat_map(one).collect()))
    };
    let mut answers = vec![writable()];
    answers.extend((2..=MANY).map(all));
    // None of them has what the writer writes.
    case.next(answers.clone());
    assert_eq!(case.view.writer, Some(DB1));
    assert!(case.next(answers.clone()).readers.is_empty());
    // One that does is enough for all.
    let last = answers.last_mut().unwrap().as_mut().unwrap();
    last.sources = replica(Some(0)).unwrap().sources;
    assert_eq!(case.next(answers).readers.len(), MANY as usize - 1);
}

#[test]
fn a_switchover_holds_against_older_answers() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    case.next(vec![writable(), read_only()]);
    case.view = case.view.switched(DB2, "SWITCH TO db2", case.now);
    assert_eq!((case.view.writer, case.view.epoch), (Some(DB2), 2));
    let again = decide(&[], &case.view, &case.settings, case.now + 10);
    assert_eq!(again.writer, Some(DB2));
    assert_eq!(case.next(vec![read_only(), read_only()]).writer, None);
}

#[test]
fn a_login_that_is_refused_is_no_loss_of_the_writer() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    case.next(vec![writable(), replica(Some(0))]);
    let denied = || Err(Failure::LoginRefused("1045 Access denied".into()));
    for _ in 0..9 {
        case.next(vec![denied(), denied()]);
    }
    assert_eq!(case.view.writer, Some(DB1));
    assert_eq!(case.state(DB2), (State::Unused, "1045 Access denied"));
}

#[test]
fn a_reader_that_lags_returns_at_half_of_the_limit() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    assert_eq!(
        case.next(vec![writable(), replica(Some(10_000))]).readers,
        [DB2]
    );
    assert!(
        case.next(vec![writable(), replica(Some(11_000))])
            .readers
            .is_empty()
    );
    assert_eq!(case.state(DB2), (State::Unused, "it lags by 11000 ms"));
    assert!(
        case.next(vec![writable(), replica(Some(6_000))])
            .readers
            .is_empty()
    );
    assert_eq!(
        case.next(vec![writable(), replica(Some(5_000))]).readers,
        [DB2]
    );
    // Its source is lost: the lag grows with the time.
    for second in 1..=5 {
        let readers = &case.next(vec![refused(), replica(None)]).readers;
        assert_eq!(readers.len(), usize::from(second < 5), "after {second} s");
    }
}

#[test]
fn a_reader_on_which_statements_fail_is_left_out_for_a_while() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    let both = || vec![writable(), replica(Some(0))];
    case.next(both());
    let failing = Traffic {
        statements: 40,
        failed: 39,
        ..Traffic::default()
    };
    assert!(case.with(both(), failing).readers.is_empty());
    assert_eq!(case.state(DB2).1, "too many statements failed on it");
    for _ in 0..9 {
        assert!(case.next(both()).readers.is_empty());
    }
    assert_eq!(case.next(both()).readers, [DB2]);
    assert_eq!(case.view.servers[1].weight, 10, "it starts slowly");
    for _ in 0..9 {
        case.next(both());
    }
    assert_eq!(case.view.servers[1].weight, 100);
}

#[test]
fn a_writer_on_which_statements_fail_for_want_of_room_is_full_and_stays() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    let both = || vec![writable(), replica(Some(0))];
    case.next(both());
    let full = Traffic {
        full: 1021,
        ..Traffic::default()
    };
    assert_eq!(case.with(both(), full).writer, Some(DB1));
    let why = "statements fail for want of room: error 1021";
    assert_eq!(case.state(DB1), (State::Full, why));
    for _ in 0..9 {
        case.next(both());
        assert_eq!(case.state(DB1).0, State::Full);
    }
    assert_eq!(case.next(both()).writer, Some(DB1));
    assert_eq!(case.state(DB1).0, State::Writer);
}

#[test]
fn a_group_names_its_writer_without_a_count_of_failures() {
    let group = |own: &'static str, primary: &'static str, online: &'static [&'static str]| {
        let member = |id: &&str| GroupMember {
            id: (*id).into(),
            state: if online.contains(id) {
                "ONLINE"
            } else {
                "UNREACHABLE"
            }
            .into(),
            primary: *id == primary,
            ..GroupMember::default()
        };
        let members = ["a", "b", "c"].iter().map(member).collect();
        says(|it| {
            it.server_uuid = own.into();
            it.read_only = own != primary;
            it.group = Some(GroupReplication {
                view: String::new(),
                members,
            });
        })
    };
    let mut case = Case::new(Kind::GroupReplication, &[Role::Auto; 3]);
    let all: &[&str] = &["a", "b", "c"];
    case.next(vec![
        group("a", "a", all),
        group("b", "a", all),
        group("c", "a", all),
    ]);
    assert_eq!(case.view.writer, Some(DB1));
    let two: &[&str] = &["b", "c"];
    let lost = || Err(Failure::TimedOut);
    assert_eq!(
        case.next(vec![lost(), group("b", "b", two), group("c", "b", two)])
            .writer,
        Some(DB2)
    );
    // A member alone may say what it wants.
    let mut case = Case::new(Kind::GroupReplication, &[Role::Auto; 3]);
    assert_eq!(
        case.next(vec![group("a", "a", &["a"]), lost(), lost()])
            .writer,
        None
    );
}

#[test]
fn aurora_names_its_writer() {
    let instance = |own: &'static str, writer: &'static str, innodb_read_only: bool| {
        let row = |id: &&str| AuroraRow {
            id: (*id).into(),
            writer: *id == writer,
            lag_ms: 10,
            age_ms: 500,
        };
        says(|it| {
            it.aurora_id = own.into();
            it.innodb_read_only = innodb_read_only;
            it.aurora = ["one", "two"].iter().map(row).collect();
        })
    };
    let mut case = Case::new(Kind::Aurora, &AUTO);
    case.next(vec![
        instance("one", "one", false),
        instance("two", "one", true),
    ]);
    assert_eq!(
        (case.view.writer, &case.view.readers[..]),
        (Some(DB1), &[DB2][..])
    );
    // Two that look like writers for a moment.
    case.next(vec![
        instance("one", "one", false),
        instance("two", "two", false),
    ]);
    assert_eq!(case.view.writer, Some(DB1));
    case.next(vec![refused(), instance("two", "two", false)]);
    assert_eq!(case.view.writer, Some(DB2));
    case.next(vec![
        instance("one", "two", true),
        instance("two", "two", false),
    ]);
    assert_eq!(
        (case.view.writer, &case.view.readers[..]),
        (Some(DB2), &[DB1][..])
    );
}

#[test]
fn a_blue_green_switchover_is_followed() {
    let server = |status: &'static str, read_only: bool| {
        let row = |(id, target): &(&str, bool)| TopologyRow {
            address: format!("{id}:3306"),
            target: *target,
            status: status.into(),
        };
        says(|it| {
            it.read_only = read_only;
            it.topology = [("db1", false), ("db2", true)].iter().map(row).collect();
        })
    };
    let mut case = Case::new(Kind::Rds, &AUTO);
    let states = |case: &mut Case, status, blue, green| {
        case.next(vec![server(status, blue), server(status, green)])
            .writer
    };
    assert_eq!(states(&mut case, "AVAILABLE", false, true), Some(DB1));
    assert_eq!(
        states(&mut case, "SWITCHOVER_INITIATED", false, true),
        Some(DB1)
    );
    assert_eq!(
        states(&mut case, "SWITCHOVER_IN_PROGRESS", true, true),
        None
    );
    assert_eq!(
        states(&mut case, "SWITCHOVER_IN_PROGRESS", true, false),
        None
    );
    case.next(vec![
        refused(),
        server("SWITCHOVER_IN_POST_PROCESSING", false),
    ]);
    assert_eq!(case.view.writer, Some(DB2));
}

#[test]
fn galera_keeps_its_writer_and_takes_the_lowest_index() {
    let node = |state: u32, local_index: u64, size: u32| {
        says(|it| {
            it.galera = Some(Galera {
                state,
                state_text: "Donor/Desynced".into(),
                primary: true,
                ready: true,
                size,
                local_index,
                ..Galera::default()
            });
        })
    };
    let mut case = Case::new(Kind::Galera, &[Role::Auto; 3]);
    case.next(vec![node(4, 2, 3), node(4, 0, 3), node(4, 1, 3)]);
    assert_eq!(
        (case.view.writer, &case.view.readers[..]),
        (Some(DB2), &[DB1, ServerId(2)][..])
    );
    case.next(vec![node(4, 0, 3), node(4, 1, 3), node(4, 2, 3)]);
    assert_eq!(case.view.writer, Some(DB2));
    // A donor that does not block goes on writing, and is no reader for others.
    case.next(vec![node(4, 0, 3), node(2, 1, 3), node(2, 2, 3)]);
    assert_eq!(
        (case.view.writer, &case.view.readers[..]),
        (Some(DB2), &[DB1][..])
    );
    // One refusal is enough where the cluster has become smaller.
    case.next(vec![node(4, 0, 2), refused(), node(4, 1, 2)]);
    assert_eq!((case.view.writer, case.view.epoch), (Some(DB1), 2));
}

#[test]
fn the_next_question_comes_sooner_while_something_fails() {
    let mut case = Case::new(Kind::Replication, &AUTO);
    assert_eq!(case.view.ask_after_ms(DB1, &case.settings), 250);
    case.next(vec![writable(), read_only()]);
    assert_eq!(case.view.ask_after_ms(DB2, &case.settings), 1_000);
    case.next(vec![writable(), refused()]);
    assert_eq!(case.view.ask_after_ms(DB1, &case.settings), 1_000);
    assert_eq!(case.view.ask_after_ms(DB2, &case.settings), 250);
    case.next(vec![refused(), read_only()]);
    assert_eq!(case.view.ask_after_ms(DB2, &case.settings), 250);
}
