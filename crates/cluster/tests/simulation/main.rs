//! The decision against a model of servers, from seeds.
//!
//! The problem: what goes wrong with several servers goes wrong in mixtures that nobody writes
//! down. The mechanism: a world that is true ([`world`]), a monitor that asks it and hears some of
//! the answers, and after each answer the invariants that the head of the crate promises. A failure
//! prints the seed and the world's story; `ONRAMP_SEED` repeats one, `ONRAMP_SEEDS` runs more.

mod random;
mod world;

use cluster::*;
use random::Random;
use world::World;

const ALL: [Kind; 5] = [
    Kind::Replication,
    Kind::Galera,
    Kind::GroupReplication,
    Kind::Aurora,
    Kind::Rds,
];
/// Seeds of each kind where the number is not given.
const SEEDS: u64 = 150;
/// Time of one run.
const RUN_MS: u64 = 90_000;
/// Limit of an answer, and the longest that one takes that is not late.
const LIMIT_MS: u64 = 800;
const ANSWER_MS_MAX: u64 = 20;
/// Time in which the view names a writer that is stable: one question, and its answer.
const NAMED_MS: u64 = 1_000 + 3 * ANSWER_MS_MAX;
/// Time in which refusals make a server down, but for the wait for the first.
const FALLEN_MS: u64 = 600;
/// Time after any change until failures are counted and servers are up again.
const SETTLED_MS: u64 = 3 * LIMIT_MS + 4_000;
/// Length of a jump of the clock.
const JUMP_MS: u64 = 3_600_000;

/// A question that is on its way: when it was sent, when its answer or failure is there.
struct Pending {
    at: u64,
    done_at: u64,
    answer: Result<Report, Failure>,
}

struct Monitor {
    view: View,
    latest: Vec<Observation>,
    pending: Vec<Option<Pending>>,
    done_at: Vec<u64>,
    /// Difference of the pool's clock to the world's.
    jumped: u64,
    changes: Vec<(u64, Option<ServerId>)>,
}

impl Monitor {
    fn new(world: &World) -> Self {
        let count = world.servers.len();
        Self {
            view: View::new(&world.settings, world.now),
            latest: Vec::new(),
            pending: (0..count).map(|_| None).collect(),
            done_at: vec![0; count],
            jumped: JUMP_MS,
            changes: Vec::new(),
        }
    }

    /// Sends what is due, and takes what is there.
    fn step(&mut self, world: &mut World, random: &mut Random) {
        for id in 0..world.servers.len() {
            let server = server_id(id);
            if let Some(done) = self.pending[id].take_if(|it| it.done_at <= world.now) {
                self.done_at[id] = world.now;
                self.latest.retain(|it| it.server != server);
                self.latest.push(Observation {
                    server,
                    at: done.at + self.jumped,
                    took_ms: done.done_at - done.at,
                    answer: done.answer,
                    traffic: Traffic::default(),
                });
                self.decide(world);
            }
            let due = self.done_at[id] + self.view.ask_after_ms(server, &world.settings);
            if self.pending[id].is_none() && due <= world.now {
                self.pending[id] = Some(ask(world, id, random));
            }
        }
    }

    fn decide(&mut self, world: &World) {
        let now = world.now + self.jumped;
        let next = decide(&self.latest, &self.view, &world.settings, now);
        let again = decide(&self.latest, &next, &world.settings, now);
        assert_eq!(next.writer, again.writer, "counted twice");
        self.check(&next, world);
        if next.writer != self.view.writer {
            self.changes.push((world.now, next.writer));
        }
        self.view = next;
    }

    fn check(&self, next: &View, world: &World) {
        let changed = next.writer != self.view.writer;
        let lag = |id: &ServerId| {
            next.servers[id.index()]
                .report
                .as_ref()?
                .sources
                .first()?
                .lag_ms
        };
        let lag = next.readers.iter().filter_map(lag).max().unwrap_or(0);
        assert!(
            lag <= world.settings.lag_ms_max,
            "a reader lags by {lag} ms"
        );
        assert_eq!(next.epoch, self.view.epoch + u64::from(changed), "epoch");
        let Some(writer) = next.writer else { return };
        let role = world.servers[writer.index()].role;
        assert!(
            matches!(role, Role::Auto | Role::Writer),
            "the writer's role is {role:?}"
        );
        assert!(!next.readers.contains(&writer), "the writer is a reader");
        assert!(!next.why.is_empty());
        if changed {
            self.check_move(writer, next, world);
        }
    }

    /// No server that could be the writer has taken writes for longer than an answer may be old.
    fn check_move(&self, writer: ServerId, next: &View, world: &World) {
        let old_ms = world.settings.stale_ms + LIMIT_MS;
        let wrote_at = world.servers[writer.index()].wrote_at;
        assert!(
            wrote_at + old_ms >= world.now,
            "db{} does not take writes",
            writer.0 + 1
        );
        if !world.replicates() {
            return;
        }
        for (id, server) in world.servers.iter().enumerate() {
            // A server that neither the pool nor another hears is given up, if that is set.
            let is_heard = world.is_well(id) || world.is_heard(id);
            let given_up = world.settings.writer_lost == WriterLost::Replace
                && !(is_heard && world.changed_at + old_ms < world.now);
            let takes = server
                .writes_since
                .is_some_and(|at| at + old_ms < world.now);
            let answered = next.servers[id].report.is_some();
            assert!(
                id == writer.index() || !world.may_write(id) || !answered || given_up || !takes,
                "db{} became the writer while db{} takes writes: {}",
                writer.0 + 1,
                id + 1,
                next.why
            );
        }
    }
}

fn server_id(index: usize) -> ServerId {
    ServerId(u16::try_from(index).expect("few servers"))
}

/// The answer that the server gives at some moment between the question and its arrival.
fn ask(world: &mut World, id: usize, random: &mut Random) -> Pending {
    let at = world.now;
    let refused = || Err(Failure::Refused("connection refused".into()));
    let (took_ms, answer) = if !world.servers[id].up && world.servers[id].seen_by_pool {
        (1, refused())
    } else if world.answers(id, random) {
        let slow = world.servers[id].loses > 0;
        let took_ms = random.below(if slow { LIMIT_MS } else { ANSWER_MS_MAX });
        (took_ms, Ok(world.report(id)))
    } else {
        (LIMIT_MS, Err(Failure::TimedOut))
    };
    Pending {
        at,
        done_at: at + took_ms,
        answer,
    }
}

/// A run, with its seed and story in front of what fails.
fn run(kind: Kind, seed: u64, case: fn(&mut World, &mut Monitor, &mut Random)) {
    let mut random = Random(seed);
    let mut world = World::new(kind, &mut random);
    let mut monitor = Monitor::new(&world);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        case(&mut world, &mut monitor, &mut random);
    }));
    if let Err(failed) = failed {
        eprintln!(
            "{kind:?}, ONRAMP_SEED={seed}, {:?}",
            world.settings.writer_lost
        );
        for line in &world.log {
            eprintln!("  {line}");
        }
        eprintln!("changes: {:?}", monitor.changes);
        for server in &monitor.view.servers {
            eprintln!("  {server:?}");
        }
        std::panic::resume_unwind(failed);
    }
}

/// Runs `1 / part` of the seeds.
fn seeds(kind: Kind, part: u64, case: fn(&mut World, &mut Monitor, &mut Random)) {
    let given = |name| {
        std::env::var(name)
            .ok()
            .and_then(|it| it.parse::<u64>().ok())
    };
    match given("ONRAMP_SEED") {
        Some(seed) => run(kind, seed, case),
        None => (0..given("ONRAMP_SEEDS").unwrap_or(SEEDS) / part)
            .for_each(|seed| run(kind, seed, case)),
    }
}

/// Faults of all sorts, then peace: in it the one writer that there is must be named in time.
fn everything(world: &mut World, monitor: &mut Monitor, random: &mut Random) {
    let end = world.now + RUN_MS;
    while world.now < end {
        world.is_hostile = (world.now / 30_000) % 3 != 2;
        world.step(random);
        monitor.step(world, random);
        if random.below(6_000) == 0 {
            // Forth, or back.
            monitor.jumped = match random.below(2) {
                0 => monitor.jumped + JUMP_MS,
                _ => monitor.jumped.saturating_sub(JUMP_MS),
            };
            world.changed_at = world.now;
        }
        if random.below(9_000) == 0 {
            // The pool is started anew.
            *monitor = Monitor::new(world);
            world.changed_at = world.now;
        }
        if world.kind() == Kind::Galera && random.below(3_000) == 0 {
            switch(world, monitor, random);
        }
        check_named(world, monitor);
    }
}

/// An operator's switchover, to a node that takes writes.
fn switch(world: &World, monitor: &mut Monitor, random: &mut Random) {
    let id = random.index(world.servers.len());
    if world.may_write(id)
        && world.takes_writes(id)
        && world.is_well(id)
        && monitor.view.writer.is_some()
    {
        let now = world.now + monitor.jumped;
        monitor.view = monitor.view.switched(server_id(id), "SWITCH TO", now);
    }
}

fn check_named(world: &World, monitor: &Monitor) {
    let all = || 0..world.servers.len();
    let fit = |&id: &usize| world.takes_writes(id) && world.may_write(id);
    let writers: Vec<usize> = all().filter(fit).collect();
    let settled = world.changed_at + SETTLED_MS < world.now;
    if !settled || !all().all(|id| world.is_well(id)) {
        return;
    }
    let expected = match world.kind() {
        Kind::Galera if writers.is_empty() => return,
        Kind::Galera => {
            let named = monitor.view.writer.map(ServerId::index);
            let takes = named.is_some_and(|named| writers.contains(&named));
            return assert!(takes, "{named:?} is named, {writers:?} take writes");
        }
        _ if writers.len() == 1 => writers[0],
        _ => return,
    };
    let named = monitor.view.writer.map(ServerId::index);
    assert_eq!(
        named,
        Some(expected),
        "the writer is not named: {}",
        monitor.view.why
    );
}

/// One loss or one switchover after the other, and nothing else: from the moment that there is one
/// writer, the view names it in time.
fn one_by_one(world: &mut World, monitor: &mut Monitor, random: &mut Random) {
    world.is_hostile = false;
    let (mut since, mut killed_at, mut last) = (world.now, 0, None);
    for step in 0..30_000 {
        if step % 2_000 == 1_000 + random.below(100) {
            let id = random.index(world.servers.len());
            match random.below(2) {
                0 => {
                    world.kill(id, 500 + random.below(12_000));
                    killed_at = world.now;
                }
                _ if world.replicates() => world.switch_over(id),
                _ => {}
            }
        }
        world.step(random);
        monitor.step(world, random);
        // Where a lost writer is waited for, so it is when nobody knows what becomes of it.
        let waits = world.replicates()
            && world.settings.writer_lost == WriterLost::Wait
            && !(0..world.servers.len()).all(|id| world.is_well(id));
        let all = 0..world.servers.len();
        let fit = |&id: &usize| world.takes_writes(id) && world.may_write(id);
        let writers: Vec<usize> = all.filter(fit).collect();
        let writers = if waits { Vec::new() } else { writers };
        if last.as_ref() != Some(&writers) {
            (since, last) = (world.now, Some(writers.clone()));
        }
        let named = monitor.view.writer.map(ServerId::index);
        let is_named = named.is_some_and(|named| writers.contains(&named));
        let is_owed = match world.kind() {
            Kind::Galera => !writers.is_empty(),
            _ => writers.len() == 1,
        };
        assert!(
            is_named || !is_owed || world.now < since.max(killed_at + FALLEN_MS) + NAMED_MS,
            "since {since} {writers:?} take writes, {named:?} is named: {}",
            monitor.view.why
        );
    }
}

/// A writer of which every second answer is late, and one of which any may be lost, for 5 minutes.
fn half_dead(world: &mut World, monitor: &mut Monitor, random: &mut Random) {
    world.is_hostile = false;
    for step in 0..30_000 {
        if step == 500 {
            let writer = monitor.view.writer.expect("one was named").index();
            world.servers[writer].half = random.below(2) == 0;
            world.servers[writer].loses = if world.servers[writer].half { 0 } else { 50 };
            monitor.changes.clear();
        }
        world.step(random);
        monitor.step(world, random);
    }
    let changes = monitor.changes.len();
    let lossy = world.servers.iter().any(|server| server.loses > 0);
    // By chance all answers of many seconds may be lost: then the writer is waited for.
    assert!(
        changes <= if lossy { 8 } else { 1 },
        "the writer changed {changes} times"
    );
    let mut named: Vec<_> = monitor.changes.iter().filter_map(|it| it.1).collect();
    named.dedup();
    assert!(named.len() <= 1, "the writers were {named:?}");
}

#[test]
fn a_writer_is_named_within_a_second() {
    for kind in ALL {
        seeds(kind, 5, one_by_one);
    }
}

#[test]
fn a_half_dead_writer_stays() {
    for kind in ALL {
        seeds(kind, 10, half_dead);
    }
}

#[test]
fn replication_keeps_what_is_promised() {
    seeds(Kind::Replication, 1, everything);
}

#[test]
fn galera_keeps_what_is_promised() {
    seeds(Kind::Galera, 1, everything);
}

#[test]
fn group_replication_keeps_what_is_promised() {
    seeds(Kind::GroupReplication, 1, everything);
}

#[test]
fn aurora_keeps_what_is_promised() {
    seeds(Kind::Aurora, 1, everything);
}

#[test]
fn rds_keeps_what_is_promised() {
    seeds(Kind::Rds, 1, everything);
}
