//! Pools that share a limit through named locks, from seeds, with all that goes wrong.
//!
//! The server's side is the truth: locks end with their connections, and a connection ends late
//! when its pool was killed in a statement. At no step is there a unit with connections of two
//! pools, or more units than the limit, also while pools lose their seats to others; when all is
//! calm again the shares follow demand within
//! twenty rounds, which are five seconds. A pool learns with its next question that its own
//! connection is gone, and opens backends until then. `ONRAMP_SEEDS` runs more. Not drawn: a pool
//! that is stopped between the login of a backend and its first statement, or takes longer for it
//! than [`FRESH`] leaves, and whose own connection is ended then.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "simulation/random.rs"]
mod random;

use cluster::fleet::{
    FRESH, KillAnswer, LIMIT_LOCKS_MAX, Lock, Member, Need, Op, Plan, RemoteKill, Resource,
    SEAT_ROUNDS, SEATS_MAX, UNITS_MAX, Units, shares, told_demand,
};
use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const ALL: Resource = Resource(0);
const FLOOR: u32 = 2;
/// Time of a step, between two rounds, and between those of a pool that has nothing.
const STEP: Duration = Duration::from_millis(10);
const REST: u64 = 25;
const SHORT_REST: u64 = 10;

/// A connection to the server.
struct Connection {
    pool: usize,
    /// Unit of a backend; `None`: a pool's own.
    unit: Option<u32>,
    has_witness: bool,
    /// Step at which the server ends it.
    ends: Option<u64>,
}

#[derive(Default)]
struct Server {
    locks: BTreeMap<Lock, u64>,
    connections: BTreeMap<u64, Connection>,
    last: u64,
    /// The moment, where there are rounds without a world.
    now: Duration,
}

impl Server {
    fn connect(&mut self, pool: usize, unit: Option<u32>) -> u64 {
        self.last += 1;
        let (has_witness, ends) = (false, None);
        let new = Connection {
            pool,
            unit,
            has_witness,
            ends,
        };
        self.connections.insert(self.last, new);
        self.last
    }

    fn end(&mut self, id: u64) {
        self.connections.remove(&id);
        self.locks.retain(|_, holder| *holder != id);
    }

    fn run(&mut self, id: u64, op: Op) -> Option<u64> {
        match op {
            Op::Get(lock) => {
                let holder = *self.locks.entry(lock).or_insert(id);
                Some(u64::from(holder == id))
            }
            Op::Release(lock) => {
                let mine = self.locks.get(&lock) == Some(&id);
                if mine {
                    self.locks.remove(&lock);
                }
                Some(u64::from(mine))
            }
            Op::Holder(lock) => self.locks.get(&lock).copied(),
        }
    }
}

/// Commands of a pool's round that are under way.
struct Work {
    ops: Vec<Op>,
    answers: Vec<Option<u64>>,
    is_survey: bool,
    begun: Duration,
}

struct Pool {
    member: Member,
    connection: Option<u64>,
    work: Option<Work>,
    units: Units,
    /// Connections of the backends, by their units.
    used: BTreeMap<u32, u64>,
    total: u32,
    demand: u32,
    told: u32,
    stopped: bool,
    rounds: u32,
    /// Step of its next round, and of the last answer.
    rests_until: u64,
    vouched_at: Option<u64>,
    plan: Plan,
    heard: Vec<((u8, u8), RemoteKill)>,
    killed: Option<Option<KillAnswer>>,
    /// Seat that its clients' ids name.
    named: Option<u8>,
}

struct World {
    random: Random,
    server: Server,
    pools: BTreeMap<usize, Pool>,
    limit: u32,
    step: u64,
    started: usize,
    /// Seats that pools have lost to others.
    seats_lost: u32,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random(seed);
        let limit = 8 + u32::try_from(random.below(40)).unwrap();
        let (server, pools) = (Server::default(), BTreeMap::new());
        World {
            random,
            server,
            pools,
            limit,
            step: 0,
            started: 0,
            seats_lost: 0,
        }
    }

    fn start(&mut self) {
        let wish = u8::try_from(self.random.below(4)).unwrap();
        let pool = Pool {
            member: Member::new(wish),
            connection: None,
            work: None,
            units: Units::default(),
            used: BTreeMap::new(),
            total: 0,
            demand: u32::try_from(self.random.below(60)).unwrap(),
            told: 0,
            stopped: false,
            rounds: 0,
            rests_until: 0,
            vouched_at: None,
            plan: Plan::default(),
            heard: Vec::new(),
            killed: None,
            named: None,
        };
        self.pools.insert(self.started, pool);
        self.started += 1;
    }

    fn now(&self) -> Duration {
        STEP * u32::try_from(self.step).unwrap()
    }

    fn pick(&mut self) -> Option<usize> {
        let keys: Vec<usize> = self.pools.keys().copied().collect();
        (!keys.is_empty()).then(|| keys[self.random.index(keys.len())])
    }

    /// Removes a pool: its idle connections end at once, the others with their statements.
    fn kill_pool(&mut self, key: usize) {
        self.pools.remove(&key);
        for connection in self.server.connections.values_mut() {
            if connection.pool == key {
                let late = match connection.unit {
                    Some(_) if connection.has_witness => self.random.below(300),
                    // A login that nobody goes on with.
                    _ => 0,
                };
                connection.ends = Some(self.step + late);
            }
        }
    }

    fn goes_wrong(&mut self) {
        let Some(key) = self.pick() else { return };
        let draw = self.random.below(100);
        let pool = self.pools.get_mut(&key).unwrap();
        let is_dialling = (pool.used.values()).any(|id| {
            self.server
                .connections
                .get(id)
                .is_some_and(|one| !one.has_witness)
        });
        match draw {
            0..25 => pool.demand = u32::try_from(self.random.below(60)).unwrap(),
            25..35 => self.kill_pool(key),
            35..50 if !is_dialling => pool.stopped = !pool.stopped,
            // The server ends its own connection, and it learns that with its next question.
            50..65 if !is_dialling => {
                if let Some(id) = pool.connection {
                    self.server.end(id);
                }
            }
            // It gives its connection up, of which the server hears late.
            65..75 => {
                if let Some(id) = pool.connection.take() {
                    let ends = self.step + self.random.below(2000);
                    if let Some(it) = self.server.connections.get_mut(&id) {
                        it.ends = Some(ends);
                    }
                }
            }
            // A session is reset, and takes its witness again.
            75..90 => {
                let ids: Vec<u64> = pool.used.values().copied().collect();
                let id = ids
                    .first()
                    .filter(|_| pool.connection.is_some() && !pool.stopped);
                let backend = id.and_then(|id| self.server.connections.get_mut(id));
                if let Some(backend) = backend.filter(|it| it.has_witness && it.ends.is_none()) {
                    backend.has_witness = false;
                    let witness = Lock::Witness(ALL, backend.unit.unwrap());
                    self.server.locks.remove(&witness);
                }
            }
            _ if self.pools.len() < 4 => self.start(),
            _ => {}
        }
    }

    /// Some commands of a pool's round, and something of its backends.
    fn turn(&mut self, key: usize) {
        let pool = &self.pools[&key];
        if pool.stopped {
            return;
        }
        if self.step >= pool.rests_until {
            self.ask(key);
        }
        self.backends(key);
    }

    fn ask(&mut self, key: usize) {
        let begun = self.now();
        let pool = self.pools.get_mut(&key).unwrap();
        let alive = |id: &u64| self.server.connections.contains_key(id);
        if !pool.connection.as_ref().is_some_and(alive) {
            pool.work = None;
            let id = self.server.connect(key, None);
            pool.connection = Some(id);
            pool.member.connected(id);
            pool.units.lose();
            pool.total = pool.units.unclaimed();
        }
        let id = pool.connection.unwrap();
        if pool.work.is_none() {
            pool.told = told_demand(pool.told, pool.demand);
        }
        let need = Need {
            resource: ALL,
            limit: self.limit,
            floor: FLOOR,
            demand: pool.told,
            used: pool.units.used().clone(),
        };
        let needs = [need];
        let work = pool.work.get_or_insert_with(|| Work {
            ops: pool
                .member
                .survey(&needs)
                .into_iter()
                .map(Op::Holder)
                .collect(),
            answers: Vec::new(),
            is_survey: true,
            begun,
        });
        pool.vouched_at = Some(self.step);
        let some = 1 + self.random.index(400);
        while work.answers.len() < work.ops.len().min(work.answers.len() + some) {
            let op = work.ops[work.answers.len()];
            work.answers.push(self.server.run(id, op));
            if self.random.below(400) == 0 {
                break;
            }
        }
        if work.answers.len() == work.ops.len() {
            let work = pool.work.take().unwrap();
            self.go_on(key, &needs, &work);
        }
    }

    fn go_on(&mut self, key: usize, needs: &[Need], work: &Work) {
        let now = self.now();
        let pool = self.pools.get_mut(&key).unwrap();
        if work.is_survey {
            let lock = |op: &Op| match op {
                Op::Get(lock) | Op::Release(lock) | Op::Holder(lock) => *lock,
            };
            let locks: Vec<Lock> = work.ops.iter().map(lock).collect();
            let mut plan = pool.member.decide(work.begun, needs, &locks, &work.answers);
            let mut ops = std::mem::take(&mut plan.ops);
            (plan.new.iter()).for_each(|(_, unit)| pool.units.claim(*unit));
            pool.total = pool.member.total(ALL) + pool.units.unclaimed();
            for (of, count) in &plan.release {
                for unit in pool.units.withdraw(*count) {
                    ops.push(pool.member.release(*of, unit));
                }
            }
            pool.heard.append(&mut plan.kills);
            pool.killed = plan.killed.or(pool.killed);
            pool.plan = plan;
            pool.rounds += 1;
            let (answers, is_survey, begun) = (Vec::new(), false, now);
            pool.work = Some(Work {
                ops,
                answers,
                is_survey,
                begun,
            });
            return;
        }
        pool.member.done(now, &work.ops, &work.answers);
        if let Some(seat) = pool.member.seat()
            && let Some(before) = pool.named.replace(seat).filter(|it| *it != seat)
        {
            // Its clients are closed, whose ids another pool gives out.
            self.seats_lost += 1;
            let holder = self.server.locks.get(&Lock::Seat(before));
            let is_own = |id| self.server.connections[id].pool == key;
            assert!(!holder.is_some_and(is_own), "its own connection has it");
        }
        pool.total = pool.member.total(ALL) + pool.units.unclaimed();
        let rest = if pool.member.total(ALL) == 0 {
            SHORT_REST
        } else {
            REST
        };
        pool.rests_until = self.step + rest;
    }

    fn backends(&mut self, key: usize) {
        let pool = self.pools.get_mut(&key).unwrap();
        let used = u32::try_from(pool.used.len()).unwrap();
        let ids: Vec<(u32, u64)> = pool.used.iter().map(|(unit, id)| (*unit, *id)).collect();
        for (unit, id) in ids {
            let witness = Lock::Witness(ALL, unit);
            let is_unseen = |it: &&mut Connection| !it.has_witness;
            if self
                .server
                .connections
                .get_mut(&id)
                .filter(is_unseen)
                .is_none()
            {
                continue;
            }
            if self.server.run(id, Op::Get(witness)) == Some(1) {
                self.server.connections.get_mut(&id).unwrap().has_witness = true;
                continue;
            }
            // The connection before it has not ended yet.
            let other = self.server.locks[&witness];
            assert_eq!(self.server.connections[&other].pool, key, "unit {unit}");
            pool.used.remove(&unit);
            pool.units.give(unit);
            self.server.end(id);
        }
        for unit in pool.units.closing().collect::<Vec<u32>>() {
            let is_there = self.server.locks.contains_key(&Lock::Witness(ALL, unit));
            pool.units.looked(unit, is_there);
        }
        let is_fresh = |at| STEP * u32::try_from(self.step - at).unwrap() < FRESH;
        if used < pool.total.min(pool.demand) {
            if pool.vouched_at.is_some_and(is_fresh)
                && let Some(unit) = pool.units.take()
            {
                let id = self.server.connect(key, Some(unit));
                pool.used.insert(unit, id);
                let own = pool
                    .connection
                    .filter(|it| self.server.connections.contains_key(it));
                if own.is_none()
                    && self.server.run(id, Op::Get(Lock::Witness(ALL, unit))) == Some(1)
                {
                    // Its login takes less than what FRESH leaves.
                    self.server.connections.get_mut(&id).unwrap().has_witness = true;
                }
            }
        } else if (used > pool.total || used > pool.demand && self.random.below(20) == 0)
            && let Some((unit, id)) = pool.used.pop_last()
        {
            if let Some(it) = self.server.connections.get_mut(&id) {
                it.ends = Some(self.step + 3);
            }
            pool.units.give(unit);
        }
    }

    fn pass(&mut self) {
        self.step += 1;
        let over = |it: &Connection| it.ends.is_some_and(|at| at <= self.step);
        let ended: Vec<u64> = (self.server.connections.iter())
            .filter_map(|(id, it)| over(it).then_some(*id))
            .collect();
        ended.into_iter().for_each(|id| self.server.end(id));
        if let Some(key) = self.pick() {
            self.turn(key);
        }
        self.check();
    }

    fn check(&self) {
        let mut owners: BTreeMap<u32, usize> = BTreeMap::new();
        for it in self.server.connections.values() {
            if let Some(unit) = it.unit {
                let owner = *owners.entry(unit).or_insert(it.pool);
                assert_eq!(
                    owner, it.pool,
                    "unit {unit} has two pools at step {}",
                    self.step
                );
            }
        }
        assert!(owners.len() <= self.limit as usize);
    }

    /// Lets nothing go wrong any more until each pool has made so many rounds.
    fn calm(&mut self, rounds: u32) {
        self.pools
            .values_mut()
            .for_each(|pool| (pool.stopped, pool.rounds) = (false, 0));
        while self.pools.values().any(|pool| pool.rounds < rounds) {
            self.pass();
        }
    }

    fn check_shares(&self) -> u32 {
        let pools: Vec<&Pool> = self.pools.values().collect();
        let seats: BTreeSet<Option<u8>> = pools.iter().map(|pool| pool.member.seat()).collect();
        assert!(
            seats.len() == pools.len() && !seats.contains(&None),
            "{seats:?}"
        );
        let demands: Vec<u32> = pools.iter().map(|pool| pool.demand).collect();
        let fair = shares(self.limit, FLOOR, &demands);
        for (pool, fair) in pools.iter().zip(fair) {
            let wanted = fair.min(pool.demand);
            let near = wanted - wanted.div_ceil(10);
            assert!(
                pool.total >= near,
                "{} of {wanted}: {:?}",
                pool.total,
                pool.plan.seats
            );
        }
        let total: u32 = pools.iter().map(|pool| pool.total).sum();
        assert!(total <= self.limit);
        total
    }
}

fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("ONRAMP_SEEDS")
        .ok()
        .and_then(|text| text.parse().ok());
    0..given.unwrap_or(60_u64)
}

#[test]
fn the_sum_is_never_above_the_limit_and_shares_follow_demand() {
    let mut seats_lost = 0;
    for seed in seeds() {
        println!("seed {seed}");
        let mut world = World::new(seed);
        world.start();
        for _ in 0..2_000 {
            if world.random.below(40) == 0 {
                world.goes_wrong();
            }
            world.pass();
        }
        if world.pools.is_empty() {
            world.start();
        }
        // Until the server has ended what it had to.
        world.calm(3);
        while world
            .server
            .connections
            .values()
            .any(|it| it.ends.is_some_and(|at| at > world.step + 5))
        {
            world.pass();
        }
        world.calm(20);
        world.check_shares();
        for pool in world.pools.values_mut() {
            pool.demand = u32::try_from(world.random.below(60)).unwrap();
        }
        world.calm(20);
        world.check_shares();
        world.calm(10);
        assert_eq!(world.check_shares(), world.limit, "nothing is left over");
        seats_lost += world.seats_lost;
    }
    assert!(seats_lost > 0, "no seat was lost");
}

#[test]
fn a_pool_that_was_cut_off_and_lost_its_seat_gets_another_and_its_share() {
    let mut world = World::new(9);
    (0..2).for_each(|_| world.start());
    (world.pools.values_mut()).for_each(|pool| pool.demand = world.limit);
    world.calm(30);
    let lost = world.pools[&0].member.seat().unwrap();
    let used = world.pools[&0].used.clone();
    assert!(!used.is_empty());
    let cut = world.pools.get_mut(&0).unwrap();
    cut.stopped = true;
    world.server.end(cut.connection.unwrap());
    world.start();
    let new = world.pools.get_mut(&2).unwrap();
    (new.member, new.demand) = (Member::new(lost), world.limit);
    while world.pools[&2].member.seat().is_none() {
        world.pass();
    }
    assert_eq!(world.pools[&2].member.seat(), Some(lost));
    // What its backends use is nobody else's; the rest is shared by the two that are there.
    (0..2_000).for_each(|_| world.pass());
    let others = world.pools[&1].total + world.pools[&2].total;
    assert_eq!(others, world.limit - u32::try_from(used.len()).unwrap());
    world.calm(40);
    assert_ne!(world.pools[&0].member.seat(), Some(lost));
    assert_eq!(world.seats_lost, 1);
    world.check_shares();
}

#[test]
fn a_pool_alone_has_all() {
    let mut world = World::new(7);
    world.start();
    world.calm(12);
    assert_eq!(world.pools[&0].total, world.limit);
}

#[test]
fn pools_have_their_parts_at_another_server_in_a_moment() {
    let mut world = World::new(11);
    (0..3).for_each(|_| world.start());
    world.calm(30);
    let last = world.server.last;
    world.server = Server {
        last,
        ..Server::default()
    };
    for pool in world.pools.values_mut() {
        for unit in std::mem::take(&mut pool.used).into_keys() {
            pool.units.give(unit);
        }
        (pool.demand, pool.rests_until) = (world.limit, 0);
    }
    let moved_at = world.now();
    let least = world.limit / 4;
    while world.pools.values().any(|pool| pool.total < least) {
        world.pass();
        let passed = world.now() - moved_at;
        assert!(passed < Duration::from_millis(1600), "{passed:?}");
    }
}

#[test]
fn a_demand_that_swings_moves_few_units() {
    for (seed, means) in [(1, [60, 30, 10]), (2, [30, 30, 30]), (3, [14, 10, 9])] {
        let mut world = World::new(seed);
        world.limit = 32;
        means.iter().for_each(|_| world.start());
        let (mut held, mut fair) = ([0_u32; 3], [0_u32; 3]);
        for look in 0..400 {
            for (pool, mean) in world.pools.values_mut().zip(means) {
                pool.demand =
                    mean / 2 + u32::try_from(world.random.below(u64::from(mean) + 1)).unwrap();
            }
            (0..25).for_each(|_| world.pass());
            if look >= 40 {
                let demands: Vec<u32> = world.pools.values().map(|pool| pool.demand).collect();
                let shares = shares(world.limit, FLOOR, &demands);
                for (at, pool) in world.pools.values().enumerate() {
                    held[at] += pool.total;
                    fair[at] += shares[at];
                }
            }
        }
        let [held, fair] = [held, fair].map(|sums| sums.map(|sum| f64::from(sum) / 360.0));
        println!("{held:.1?} of {fair:.1?}");
        for (held, fair) in held.iter().zip(fair) {
            assert!(
                (held - fair).abs() <= (fair / 10.0).max(1.0),
                "{held} of {fair}"
            );
        }
    }
}

#[test]
fn what_is_short_is_had_by_demand_within_a_tenth() {
    for demands in [&[60, 30][..], &[10, 60], &[60, 30, 10], &[10, 60, 30]] {
        let mut world = World::new(4);
        world.limit = 32;
        demands.iter().for_each(|_| world.start());
        (world.pools.values_mut()).for_each(|pool| pool.demand = 30);
        world.calm(40);
        for (pool, demand) in world.pools.values_mut().zip(demands) {
            pool.demand = *demand;
        }
        world.calm(20);
        let held: Vec<u32> = world.pools.values().map(|pool| pool.total).collect();
        for (held, share) in held.iter().zip(shares(world.limit, FLOOR, demands)) {
            assert!(held.abs_diff(share) <= share / 10, "{held} of {share}");
        }
    }
}

#[test]
fn a_kill_finds_its_client_in_any_pool_or_nobody() {
    let mut world = World::new(3);
    (0..3).for_each(|_| world.start());
    world.calm(16);
    let (found, lost) = (
        RemoteKill {
            id: 77,
            query: true,
            account: Some(7),
        },
        RemoteKill {
            id: 78,
            query: false,
            account: None,
        },
    );
    let mut last = None;
    for (kill, answer) in [
        (found, Some(KillAnswer::NotOwner)),
        (lost, None),
        (found, None),
    ] {
        assert!(world.pools.get_mut(&0).unwrap().member.kill(kill));
        assert!(
            !world.pools.get_mut(&0).unwrap().member.kill(kill),
            "one at a time"
        );
        while world.pools[&0].killed.is_none() {
            world.pass();
            for pool in world.pools.values_mut() {
                for (number, heard) in std::mem::take(&mut pool.heard) {
                    assert_eq!(heard, kill);
                    // One that comes late is of the KILL before.
                    let late = last.filter(|last| answer.is_none() && *last != number);
                    let answer = answer.or(late.map(|_| KillAnswer::Done));
                    if let (Some(answer), Some(work)) = (answer, &mut pool.work) {
                        let number = late.unwrap_or(number);
                        work.ops.push(pool.member.answer(number, answer));
                    }
                    last = late.or(Some(number));
                }
            }
        }
        let end = world.pools.get_mut(&0).unwrap().killed.take();
        assert_eq!(end, Some(answer));
    }
}

/// Runs a round without anything that goes wrong: all answers are there at once.
fn round(member: &mut Member, server: &mut Server, id: u64, needs: &[Need], units: &mut Units) {
    let locks = member.survey(needs);
    let found: Vec<_> = (locks.iter().map(|lock| server.run(id, Op::Holder(*lock)))).collect();
    server.now += Duration::from_millis(250);
    let mut plan = member.decide(server.now, needs, &locks, &found);
    (plan.new.iter()).for_each(|(_, unit)| units.claim(*unit));
    for (of, count) in plan.release {
        let given = units.withdraw(count).into_iter();
        plan.ops.extend(given.map(|unit| member.release(of, unit)));
    }
    let answers: Vec<_> = plan.ops.iter().map(|op| server.run(id, *op)).collect();
    member.done(server.now, &plan.ops, &answers);
}

/// Use of a limit by a pool that could use all of it.
fn need_of(resource: Resource, limit: u32) -> Need {
    Need {
        resource,
        limit,
        floor: 1,
        demand: limit,
        used: BTreeSet::new(),
    }
}

#[test]
fn what_another_has_lost_is_used_when_it_opens_nothing_there_any_more() {
    let mut server = Server::default();
    let (lost, own) = (server.connect(0, None), server.connect(1, None));
    server.run(lost, Op::Get(Lock::Seat(5)));
    (0..4).for_each(|unit| _ = server.run(lost, Op::Get(Lock::Claim(ALL, unit))));
    let (mut member, needs) = (Member::new(0), [need_of(ALL, 4)]);
    member.connected(own);
    let mut new_at = |server: &mut Server, ms| {
        let now = Duration::from_millis(ms);
        let locks = member.survey(&needs);
        let ask = |lock: &Lock| server.run(own, Op::Holder(*lock));
        let found: Vec<_> = locks.iter().map(ask).collect();
        let plan = member.decide(now, &needs, &locks, &found);
        let answers: Vec<_> = plan.ops.iter().map(|op| server.run(own, *op)).collect();
        member.done(now, &plan.ops, &answers);
        plan.new.iter().map(|(_, unit)| *unit).collect::<Vec<u32>>()
    };
    (0..4).for_each(|ms| assert!(new_at(&mut server, ms).is_empty()));
    server.end(lost);
    // The claims are taken soon, and used once the other asks before it opens backends.
    (10..15).for_each(|ms| assert!(new_at(&mut server, ms).is_empty()));
    assert_eq!(server.locks.get(&Lock::Claim(ALL, 3)), Some(&own));
    let late = server.connect(0, Some(2));
    let fresh = u64::try_from(FRESH.as_millis()).unwrap();
    assert!(new_at(&mut server, 10 + fresh).is_empty());
    server.run(late, Op::Get(Lock::Witness(ALL, 2)));
    assert_eq!(new_at(&mut server, 1000), [0, 1, 3]);
    assert!(!server.locks.contains_key(&Lock::Claim(ALL, 2)));
}

#[test]
fn a_limit_that_is_gone_is_given_up_and_is_had_again() {
    let (of, mut server) = (Resource(9), Server::default());
    let (mut member, mut units) = (Member::new(0), Units::default());
    let id = server.connect(0, None);
    member.connected(id);
    let need = |units: &Units| Need {
        used: units.used().clone(),
        ..need_of(of, 4)
    };
    let claims = |server: &Server| {
        let is_claim = |lock: &&Lock| matches!(lock, Lock::Claim(..));
        server.locks.keys().filter(is_claim).count()
    };
    for _ in 0..2 {
        (0..10).for_each(|_| {
            let needs = [need(&units)];
            round(&mut member, &mut server, id, &needs, &mut units);
        });
        assert_eq!((member.total(of), claims(&server)), (4, 4));
        let used = units.take().unwrap();
        round(&mut member, &mut server, id, &[], &mut units);
        assert_eq!((member.total(of), claims(&server)), (0, 1), "of a backend");
        units.give(used);
        assert!(!units.looked(used, false) && units.looked(used, false));
        round(&mut member, &mut server, id, &[], &mut units);
        assert_eq!((claims(&server), units.is_unused()), (0, true));
    }
}

#[test]
fn a_pool_that_is_cut_off_keeps_its_backends() {
    let mut world = World::new(5);
    world.start();
    world.pools.get_mut(&0).unwrap().demand = world.limit;
    world.calm(40);
    let backends = world.pools[&0].used.clone();
    assert_eq!(backends.len(), world.limit as usize);
    world.server.end(world.pools[&0].connection.unwrap());
    for _ in 0..12 {
        world.calm(1);
        assert_eq!(world.pools[&0].used, backends);
    }
}

#[test]
fn a_pool_that_is_cut_off_forgets_its_kill() {
    let mut world = World::new(5);
    world.start();
    world.calm(8);
    let kill = RemoteKill {
        id: 77,
        query: true,
        account: Some(5),
    };
    let tell = |world: &mut World| world.pools.get_mut(&0).unwrap().member.kill(kill);
    assert!(tell(&mut world));
    world.server.end(world.pools[&0].connection.unwrap());
    world.calm(4);
    assert!(tell(&mut world));
}

#[test]
fn of_different_limits_the_least_holds_while_its_pool_is_there() {
    let mut server = Server::default();
    let mut pools = [(0, 32), (9, 8)].map(|(seat, limit)| {
        let (mut member, id) = (Member::new(seat), server.connect(seat.into(), None));
        member.connected(id);
        (member, id, Units::default(), limit)
    });
    for (first, held) in [(1, 32), (2, 8), (1, 32)] {
        for _ in 0..20 {
            for (member, id, units, limit) in &mut pools[..first] {
                round(member, &mut server, *id, &[need_of(ALL, *limit)], units);
            }
        }
        let totals = pools[..first].iter().map(|pool| pool.0.total(ALL));
        assert_eq!(totals.sum::<u32>(), held);
        let is_above = |lock: &Lock| matches!(lock, Lock::Claim(_, 8..));
        assert_eq!(server.locks.keys().any(is_above), first == 1);
        if first == 2 {
            server.end(pools[1].1);
        }
    }
}

/// A pool with seat 0 of which the server has the connection still when it has another.
fn cut_off(server: &mut Server, needs: &[Need], inherits: Option<u8>) -> (Member, u64, u64) {
    let (mut member, mut units) = (Member::new(0), Units::default());
    let [before, now] = [(); 2].map(|()| server.connect(0, None));
    member.connected(before);
    inherits.into_iter().for_each(|seat| member.inherit(seat));
    (0..4).for_each(|_| round(&mut member, server, before, needs, &mut units));
    assert_eq!(member.seat(), Some(0));
    member.connected(now);
    (member, before, now)
}

#[test]
fn a_seat_that_ones_own_lost_connection_keeps_is_waited_for_and_no_longer() {
    let (mut server, needs) = (Server::default(), [need_of(ALL, 4)]);
    let (mut member, before, now) = cut_off(&mut server, &needs, None);
    let mut units = Units::default();
    for _ in 0..SEAT_ROUNDS {
        round(&mut member, &mut server, now, &needs, &mut units);
        assert_eq!(member.seat(), None);
    }
    assert_eq!(server.locks[&Lock::Seat(0)], before);
    round(&mut member, &mut server, now, &needs, &mut units);
    assert_eq!(member.seat(), Some(1));
}

#[test]
fn an_inherited_seat_is_lost_to_another_pool_and_to_nobody_else() {
    let needs = [need_of(ALL, 4)];
    for has_another in [false, true] {
        let mut server = Server::default();
        // The process before has it at first.
        let old = server.connect(0, None);
        server.run(old, Op::Get(Lock::Seat(7)));
        let (mut member, before, now) = cut_off(&mut server, &needs, Some(7));
        server.end(old);
        let mut lost = |server: &mut Server| {
            let locks = member.survey(&needs);
            let found: Vec<_> = locks
                .iter()
                .map(|lock| server.run(now, Op::Holder(*lock)))
                .collect();
            let plan = member.decide(server.now, &needs, &locks, &found);
            let answers: Vec<_> = plan.ops.iter().map(|op| server.run(now, *op)).collect();
            member.done(server.now, &plan.ops, &answers);
            plan.lost
        };
        assert_eq!((lost(&mut server), lost(&mut server)), (vec![], vec![]));
        assert_eq!(server.locks[&Lock::Seat(7)], now);
        if has_another {
            let other = server.connect(1, None);
            server.locks.insert(Lock::Seat(7), other);
            assert_eq!((lost(&mut server), lost(&mut server)), (vec![7], vec![]));
        }
        server.end(before);
        assert_eq!(lost(&mut server), []);
    }
}

#[test]
fn all_seats_have_a_pool_and_one_more_waits_for_a_seat() {
    let seats = u32::from(SEATS_MAX);
    let mut server = Server::default();
    let mut pools: Vec<(Member, u64, Units)> = (0..=seats)
        .map(|_| (Member::new(0), server.connect(0, None), Units::default()))
        .collect();
    let needs = [need_of(ALL, seats)];
    let rounds = |server: &mut Server, pools: &mut Vec<(Member, u64, Units)>, count| {
        for _ in 0..count {
            for (member, id, units) in pools.iter_mut() {
                round(member, server, *id, &needs, units);
            }
        }
    };
    pools.iter_mut().for_each(|it| it.0.connected(it.1));
    rounds(&mut server, &mut pools, 8);
    let has_all = |pools: &[(Member, u64, Units)]| {
        let seats: BTreeSet<u8> = pools.iter().filter_map(|it| it.0.seat()).collect();
        seats.len() == usize::from(SEATS_MAX) && pools.iter().all(|it| it.0.total(ALL) <= 1)
    };
    assert!(has_all(&pools) && pools.last().unwrap().0.seat().is_none());
    server.end(pools.remove(0).1);
    rounds(&mut server, &mut pools, 8);
    assert!(has_all(&pools) && pools.iter().all(|it| it.0.total(ALL) == 1));
}

#[test]
fn a_survey_is_bounded_and_each_limit_has_its_turn() {
    let (mut member, seats) = (Member::new(0), usize::from(SEATS_MAX));
    let largest = u32::try_from(UNITS_MAX).unwrap();
    let needs: Vec<Need> = (0..=64).map(|of| need_of(Resource(of), largest)).collect();
    // All seats are taken, and tell of KILLs.
    let locks = member.survey(&needs);
    let found = vec![Some(7); locks.len()];
    member.decide(Duration::ZERO, &needs, &locks, &found);
    let locks = member.survey(&needs);
    member.decide(Duration::ZERO, &needs, &locks, &vec![Some(7); locks.len()]);
    let mut turns = BTreeMap::<Resource, u32>::new();
    for _ in 0..7 * needs.len() {
        let locks = member.survey(&needs);
        // Besides: seats, headers twice, victims and accounts, answers.
        assert!(locks.len() <= LIMIT_LOCKS_MAX + seats * (1 + 2 * 8 + 2 * 32) + 3);
        for of in locks.iter().filter_map(|lock| match lock {
            Lock::Claim(of, 0) => Some(*of),
            _ => None,
        }) {
            *turns.entry(of).or_default() += 1;
        }
    }
    assert!(turns.len() == needs.len() && turns.values().all(|count| *count >= 7));
}
