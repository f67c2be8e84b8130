//! One pool of a fleet: its rounds.
//!
//! A round asks for the holders of locks ([`Member::survey`]), decides what to change
//! ([`Member::decide`]), and takes note of what came of it ([`Member::done`]).

use super::kills::{
    ANYBODY, HEADER_DIGITS, KillAnswer, ROUNDS_MAX, RemoteKill, WORD_DIGITS, number_in, number_of,
};
use super::{DIGITS, HELD_FOR, Lock, Number, Op, Resource, SEATS_MAX, UNITS_MAX, shares};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A pool below its share by less than one of so many waits for no other to give.
const NEAR: u32 = 16;
/// Rounds for which the pools that there were before a connection are expected behind it.
const EXPECTED_ROUNDS: u8 = 4;
/// Rounds for which a seat is waited for that the pool's own connection before holds: more than the
/// server keeps a connection that asks nothing.
pub const SEAT_ROUNDS: u16 = 900;
/// Surveys in a row of the limits that have their turn: long enough to take units.
const TURN_SURVEYS: u8 = 7;
/// Locks of the limits that one survey asks for: those of two of the largest, told by all seats.
pub const LIMIT_LOCKS_MAX: usize = 4 * (UNITS_MAX + SEATS_MAX as usize * DIGITS as usize);

/// Use of one limit by this pool.
#[derive(Clone, Debug, Default)]
pub struct Need {
    /// The limit.
    pub resource: Resource,
    /// Units that there are, by its settings.
    pub limit: u32,
    /// Units below which it should not be.
    pub floor: u32,
    /// Units that it could use.
    pub demand: u32,
    /// Units that its backends use.
    pub used: BTreeSet<u32>,
}

/// A pool of the fleet, as another sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatView {
    /// Its number.
    pub seat: u8,
    /// Connection that holds it.
    pub connection: u64,
    /// True of the pool that looks.
    pub is_self: bool,
    /// Units that it could use.
    pub demand: u32,
    /// Units that it holds.
    pub held: u32,
    /// Units that it should have.
    pub share: u32,
}

/// Decision of a round.
#[derive(Debug, Default)]
pub struct Plan {
    /// Operations to be run in this order.
    pub ops: Vec<Op>,
    /// Units that may be used from now on.
    pub new: Vec<(Resource, u32)>,
    /// Units that are to be given up, of those without a backend.
    pub release: Vec<(Resource, u32)>,
    /// Inherited seats that another pool has by now.
    pub lost: Vec<u8>,
    /// KILLs of other pools, with the seat that is to be answered and the KILL's number there.
    pub kills: Vec<((u8, u8), RemoteKill)>,
    /// End of this pool's own KILL; `None` within: nobody has the client.
    pub killed: Option<Option<KillAnswer>>,
    /// The fleet, by the first limit.
    pub seats: Vec<SeatView>,
}

/// Units of one limit.
#[derive(Debug, Default)]
struct Division {
    claimed: BTreeSet<u32>,
    /// Claims of units that may not be used yet, and since when they are held.
    new: BTreeMap<u32, Duration>,
    /// Units whose claim and witness were free in the last survey.
    free: BTreeSet<u32>,
    /// Units that it may use while others need some.
    allowed: Option<u32>,
}

impl Division {
    /// Units that it has, besides those that may not be used yet.
    fn usable(&self) -> u32 {
        u32::try_from(self.claimed.len() - self.new.len()).unwrap_or(u32::MAX)
    }

    /// Gives a unit up that may not be used yet.
    fn drop_new(&mut self, of: Resource, unit: u32, ops: &mut Vec<Op>) {
        self.new.remove(&unit);
        self.claimed.remove(&unit);
        ops.push(Op::Release(Lock::Claim(of, unit)));
    }
}

/// A KILL of this pool's.
#[derive(Debug)]
struct OwnKill {
    kill: RemoteKill,
    /// Rounds since it was asked for.
    rounds: u8,
}

/// State of one pool.
#[derive(Debug, Default)]
pub struct Member {
    connection: u64,
    seat: Option<u8>,
    /// Seat to take where it is free: the one before, or one drawn.
    wish: u8,
    /// True if the wish is the seat before, for which nobody else waits.
    had_seat: bool,
    /// Connection that had the seat before, and rounds for which its end is waited for.
    before: (u64, u16),
    /// Seats of pools whose clients came here, and the connection that had each last: its own, or
    /// that of the process before.
    inherited: BTreeMap<u8, Option<u64>>,
    seats_free: BTreeSet<u8>,
    /// Seats that were held in the last survey.
    seats: BTreeSet<u8>,
    /// Digits and answers that it holds.
    told: BTreeSet<Lock>,
    divisions: BTreeMap<Resource, Division>,
    /// Pools that there were before the connection, and rounds for which they are expected still.
    expected: (u32, u8),
    /// Limits that have had their turn in surveys, and surveys of those that have it now.
    turns: usize,
    surveys: u8,
    kill: Option<OwnKill>,
    kills_count: u8,
    /// Seats that told of a KILL in the last survey, whose numbers are asked for in the next.
    calls: BTreeSet<u8>,
    /// Headers of KILLs that were handed out, by seat.
    seen: BTreeMap<u8, u32>,
}

/// Holders of locks, by a survey.
struct Holders<'a>(BTreeMap<&'a Lock, u64>);

impl Holders<'_> {
    fn of(&self, lock: Lock) -> Option<u64> {
        self.0.get(&lock).copied()
    }

    /// The number that a seat tells.
    fn number(&self, seat: u8, number: Number, digits: u8) -> u32 {
        let held = |digit: &u8| self.of(Lock::Digit(seat, number, *digit)).is_some();
        (0..digits).filter(held).map(|digit| 1 << digit).sum()
    }
}

/// Header of a seat's KILL, as its locks.
fn header_of(seat: u8) -> impl Iterator<Item = Lock> {
    (0..HEADER_DIGITS).map(move |digit| Lock::Digit(seat, Number::Kill, digit))
}

fn digits_of(seat: u8, number: Number, digits: u8) -> impl Iterator<Item = Lock> {
    (0..digits).map(move |digit| Lock::Digit(seat, number, digit))
}

/// Digits of `value` that are 1; a value that is too large is the largest.
fn put_number(into: &mut BTreeSet<Lock>, seat: u8, number: Number, digits: u8, value: u32) {
    let value = value.min(u32::MAX >> (32 - digits));
    let ones = (0..digits).filter(|digit| value >> digit & 1 == 1);
    into.extend(ones.map(|digit| Lock::Digit(seat, number, digit)));
}

impl Member {
    /// A pool that tries this seat first.
    #[must_use]
    pub fn new(wish: u8) -> Member {
        Member {
            wish: wish % SEATS_MAX,
            ..Member::default()
        }
    }

    /// Starts over on a new connection, on which nothing is held yet.
    pub fn connected(&mut self, connection: u64) {
        let last = std::mem::replace(&mut self.connection, connection);
        if self.seat.is_some() {
            self.before = (last, SEAT_ROUNDS);
        }
        self.had_seat |= self.seat.is_some();
        self.wish = self.seat.take().unwrap_or(self.wish);
        self.told.clear();
        self.calls.clear();
        self.seats_free.clear();
        self.divisions.clear();
        let before = u32::try_from(self.seats.len()).unwrap_or(u32::MAX);
        self.expected = (before, EXPECTED_ROUNDS);
        // Nobody is told of it any more.
        self.kill = None;
    }

    /// Number of its last connection, which the server may still have; 0 without one.
    #[must_use]
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// Forgets its connection, which is to another server than the one that is meant now.
    pub fn moves(&mut self) {
        self.connection = 0;
    }

    /// Its seat, while it holds one.
    #[must_use]
    pub fn seat(&self) -> Option<u8> {
        self.seat
    }

    /// Keeps the seat of a pool whose clients came here from others, once it is free.
    pub fn inherit(&mut self, seat: u8) {
        self.inherited.entry(seat).or_default();
    }

    /// Units that it may use.
    #[must_use]
    pub fn total(&self, resource: Resource) -> u32 {
        self.divisions.get(&resource).map_or(0, |division| {
            division.usable().min(division.allowed.unwrap_or(u32::MAX))
        })
    }

    /// Tells the others of a KILL; `false` while there is another.
    pub fn kill(&mut self, kill: RemoteKill) -> bool {
        if self.kill.is_some() || self.seat.is_none() {
            return false;
        }
        self.kills_count = self.kills_count.wrapping_add(1);
        self.kill = Some(OwnKill { kill, rounds: 0 });
        true
    }

    /// Reports the end of the KILL with this number of a seat.
    pub fn answer(&mut self, (seat, number): (u8, u8), answer: KillAnswer) -> Op {
        let lock = Lock::Answer(seat, number, answer);
        self.told.insert(lock);
        Op::Get(lock)
    }

    /// Limits of a survey: the first, and in turns as many others as fit in. A turn is long enough
    /// to take units.
    fn surveyed<'a>(&mut self, needs: &'a [Need]) -> Vec<&'a Need> {
        let Some((first, others)) = needs.split_first() else {
            return Vec::new();
        };
        let told = self.seats.len() * usize::from(DIGITS);
        let mut count = 0;
        let mut fits = |need: &&Need| {
            count += 2 * (need.limit as usize + told);
            count <= LIMIT_LOCKS_MAX
        };
        let start = self.turns % others.len().max(1);
        let in_turns = others[start..].iter().chain(&others[..start]);
        let found = [first].into_iter().chain(in_turns).take_while(&mut fits);
        let found: Vec<&Need> = found.collect();
        self.surveys = (self.surveys + 1) % TURN_SURVEYS;
        if self.surveys == 0 {
            self.turns = start + found.len().saturating_sub(1);
        }
        found
    }

    /// Locks whose holders are to be asked for.
    #[must_use]
    pub fn survey(&mut self, needs: &[Need]) -> Vec<Lock> {
        let needs = self.surveyed(needs);
        let mut locks: Vec<Lock> = (0..SEATS_MAX).map(Lock::Seat).collect();
        for &seat in &self.seats {
            locks.extend(header_of(seat));
        }
        for &seat in &self.seats {
            for need in &needs {
                locks.extend(digits_of(seat, Number::Demand(need.resource), DIGITS));
                locks.extend(digits_of(seat, Number::Limit(need.resource), DIGITS));
            }
        }
        for &seat in &self.calls {
            locks.extend(digits_of(seat, Number::Victim, WORD_DIGITS));
            locks.extend(digits_of(seat, Number::Account, WORD_DIGITS));
        }
        for need in needs {
            // The witness behind the claim: whoever has the claim may bring it.
            for unit in 0..need.limit {
                locks.push(Lock::Claim(need.resource, unit));
                locks.push(Lock::Witness(need.resource, unit));
            }
        }
        if let Some(seat) = self.seat {
            locks.extend(self.answers_to(seat));
        }
        for &seat in &self.seats {
            locks.extend(header_of(seat));
        }
        locks
    }

    /// Answers to its own KILL.
    fn answers_to(&self, seat: u8) -> [Lock; 3] {
        KillAnswer::ALL.map(|answer| Lock::Answer(seat, number_of(self.kills_count), answer))
    }

    /// Decides by the answers to a survey that has begun at this moment.
    pub fn decide(
        &mut self,
        begun: Duration,
        needs: &[Need],
        locks: &[Lock],
        found: &[Option<u64>],
    ) -> Plan {
        let mut holders = Holders(BTreeMap::new());
        let mut first_headers = BTreeMap::new();
        for (lock, holder) in locks.iter().zip(found) {
            // The last answer counts; the first one of a header is kept besides.
            if matches!(lock, Lock::Digit(_, Number::Kill, _)) {
                first_headers.entry(lock).or_insert(*holder);
            }
            match holder {
                Some(holder) => holders.0.insert(lock, *holder),
                None => holders.0.remove(lock),
            };
        }
        let mut plan = Plan::default();
        let seats: BTreeMap<u8, u64> = (0..SEATS_MAX)
            .filter_map(|seat| Some((seat, holders.of(Lock::Seat(seat))?)))
            .collect();
        let free: BTreeSet<u8> = (0..SEATS_MAX).filter(|s| !seats.contains_key(s)).collect();
        for (seat, had_by) in &mut self.inherited {
            if let Some(&holder) = seats.get(seat)
                && *had_by.get_or_insert(holder) != holder
            {
                plan.lost.push(*seat);
            }
        }
        self.inherited.retain(|seat, _| !plan.lost.contains(seat));
        self.sit_down(&seats, &free, &mut plan.ops);
        self.before.1 = self.before.1.saturating_sub(1);
        self.seats_free = free;
        let known = std::mem::replace(&mut self.seats, seats.keys().copied().collect());
        let is_needed = |of: &Resource| needs.iter().any(|need| need.resource == *of);
        self.divisions
            .retain(|of, division| is_needed(of) || !division.claimed.is_empty());
        for (of, division) in (self.divisions.iter_mut()).filter(|(of, _)| !is_needed(of)) {
            division.allowed = Some(0);
            for (unit, _) in std::mem::take(&mut division.new) {
                division.drop_new(*of, unit, &mut plan.ops);
            }
            plan.release.push((*of, u32::MAX));
        }
        let is_asked = |lock: &Lock| match lock {
            Lock::Claim(of, _) => Some(*of),
            _ => None,
        };
        let asked: BTreeSet<Resource> = locks.iter().filter_map(is_asked).collect();
        for (of, division) in &mut self.divisions {
            if !asked.contains(of) {
                // What is free now may be taken meanwhile.
                division.free.clear();
            }
        }
        for need in needs.iter().filter(|need| asked.contains(&need.resource)) {
            self.divide(begun, need, (&seats, &known), &holders, &mut plan);
        }
        if let Some(seat) = self.seat {
            self.hear_kills(seat, &known, (&first_headers, &holders), &mut plan);
            self.own_kill(seat, &holders, &mut plan);
            self.tell(seat, needs, &mut plan.ops);
        }
        self.expected.1 = self.expected.1.saturating_sub(1);
        plan
    }

    /// Takes the seat before, or one that was free twice where another pool has that, and those to
    /// be kept.
    fn sit_down(&self, seats: &BTreeMap<u8, u64>, free: &BTreeSet<u8>, ops: &mut Vec<Op>) {
        let is_own = |seat: &u8| self.had_seat && *seat == self.wish;
        let is_free =
            |seat: &u8| free.contains(seat) && (is_own(seat) || self.seats_free.contains(seat));
        let (before, rounds) = self.before;
        let is_coming_free = rounds > 0 && seats.get(&self.wish) == Some(&before);
        if self.seat.is_none() && !is_coming_free {
            let from_wish = (0..SEATS_MAX).map(|step| (self.wish + step) % SEATS_MAX);
            let mut others = from_wish.filter(|seat| !self.inherited.contains_key(seat));
            ops.extend(others.find(is_free).map(|seat| Op::Get(Lock::Seat(seat))));
        }
        let kept = self.inherited.keys().filter(|seat| free.contains(seat));
        ops.extend(kept.map(|seat| Op::Get(Lock::Seat(*seat))));
    }

    /// Decides what to give up and to take of one limit; without a seat nothing yet.
    fn divide(
        &mut self,
        begun: Duration,
        need: &Need,
        (seats, known): (&BTreeMap<u8, u64>, &BTreeSet<u8>),
        holders: &Holders<'_>,
        plan: &mut Plan,
    ) {
        let of = need.resource;
        let mut limit = need.limit;
        // Of the seats that one pool holds the lowest stands for it.
        let mut pools: BTreeMap<u64, SeatView> = BTreeMap::new();
        for (&seat, &connection) in seats {
            let is_self = connection == self.connection;
            let told = match known.contains(&seat) && !is_self {
                true => holders.number(seat, Number::Demand(of), DIGITS),
                false => 0,
            };
            let other_limit = holders.number(seat, Number::Limit(of), DIGITS);
            if other_limit > 0 && !is_self {
                limit = limit.min(other_limit);
            }
            let pool = pools.entry(connection).or_insert(SeatView {
                seat: self.seat.filter(|_| is_self).unwrap_or(seat),
                connection,
                is_self,
                demand: if is_self { need.demand } else { 0 },
                held: 0,
                share: 0,
            });
            pool.demand = pool.demand.max(told);
        }
        let division = self.divisions.entry(of).or_default();
        let mut free = BTreeSet::new();
        for unit in 0..need.limit {
            let claim = holders.of(Lock::Claim(of, unit));
            if let Some(pool) = claim.and_then(|holder| pools.get_mut(&holder)) {
                pool.held += 1;
            }
            if claim.is_none() && holders.of(Lock::Witness(of, unit)).is_none() && unit < limit {
                free.insert(unit);
            }
        }
        let mut pools: Vec<SeatView> = pools.into_values().collect();
        // All decide alike.
        pools.sort_by_key(|pool| pool.seat);
        let demands: Vec<u32> = pools.iter().map(|pool| pool.demand).collect();
        for (pool, share) in pools.iter_mut().zip(shares(limit, need.floor, &demands)) {
            pool.share = share;
        }
        let excess = |pool: &SeatView| pool.held.saturating_sub(pool.share);
        // One that has too much for its own share gives that, however little it is to others.
        let is_far = pools.iter().any(|pool| excess(pool) > pool.share / NEAR);
        let lack = |pool: &SeatView| {
            let wanted = pool.share.min(pool.demand.max(need.floor));
            match pool.held + wanted / NEAR < wanted || is_far {
                true => wanted.saturating_sub(pool.held),
                false => 0,
            }
        };
        let lacking: u32 = pools.iter().map(lack).sum();
        let lacking = lacking.saturating_sub(u32::try_from(free.len()).unwrap_or(0));
        let over: u32 = pools.iter().map(excess).sum();
        let own = pools.iter().find(|pool| pool.is_self);
        if let Some(own) = own.filter(|_| self.seat.is_some()) {
            for (unit, since) in division.new.clone() {
                let is_others = || holders.of(Lock::Witness(of, unit)).is_some();
                if !need.used.contains(&unit) && is_others() {
                    division.drop_new(of, unit, &mut plan.ops);
                } else if begun.saturating_sub(since) >= HELD_FOR {
                    division.new.remove(&unit);
                    plan.new.push((of, unit));
                }
            }
            let claimed = u32::try_from(division.claimed.len()).unwrap_or(u32::MAX);
            let part = match over {
                0 => 0,
                _ => (u64::from(lacking) * u64::from(excess(own))).div_ceil(u64::from(over)),
            };
            let part = u32::try_from(part).unwrap_or(0).min(excess(own));
            let above = u32::try_from(division.claimed.range(limit..).count()).unwrap_or(0);
            let mut give = part.max(above).min(claimed);
            // Its own, which were lost with a connection.
            let lost: Vec<u32> = need.used.difference(&division.claimed).copied().collect();
            let have = claimed.saturating_add(u32::try_from(lost.len()).unwrap_or(u32::MAX));
            let mut take = match give {
                0 => own.share.saturating_sub(have),
                _ => 0,
            };
            for unit in division.new.clone().into_keys().rev() {
                if give > 0 && !need.used.contains(&unit) {
                    division.drop_new(of, unit, &mut plan.ops);
                    give -= 1;
                }
            }
            division.allowed = (give > 0).then(|| division.usable().saturating_sub(give));
            if give > 0 {
                plan.release.push((of, give));
            }
            let get = |unit: u32| Op::Get(Lock::Claim(of, unit));
            plan.ops.extend(lost.into_iter().map(get));
            let (expected, rounds) = self.expected;
            if rounds > 0 && expected > 0 {
                // What the others want is not known yet.
                take = take.min((limit / expected).max(1).saturating_sub(have));
            }
            let start = u32::from(own.seat) * (limit / u32::from(SEATS_MAX));
            let may_take = |unit: &&u32| division.free.contains(unit) && !need.used.contains(unit);
            let in_turn = free.range(start..).chain(free.range(..start));
            let taken = in_turn.filter(may_take).take(take as usize);
            plan.ops.extend(taken.copied().map(get));
        }
        division.free = free;
        if plan.seats.is_empty() {
            plan.seats = pools;
        }
    }

    /// Finds the KILLs of others that are new, and forgets those that were taken back.
    fn hear_kills(
        &mut self,
        own: u8,
        known: &BTreeSet<u8>,
        (first, holders): (&BTreeMap<&Lock, Option<u64>>, &Holders<'_>),
        plan: &mut Plan,
    ) {
        let asked = std::mem::take(&mut self.calls);
        self.seen.retain(|seat, _| known.contains(seat));
        for &seat in known.iter().filter(|seat| **seat != own) {
            let header = holders.number(seat, Number::Kill, HEADER_DIGITS);
            if header & 1 == 1 {
                self.calls.insert(seat);
            }
            let mut locks = header_of(seat);
            let is_steady = locks.all(|lock| {
                first.get(&lock).copied().flatten().is_some() == holders.of(lock).is_some()
            });
            let id = holders.number(seat, Number::Victim, WORD_DIGITS);
            let account = holders.number(seat, Number::Account, WORD_DIGITS);
            let kill = RemoteKill::read(header, id, account);
            let number = number_in(header);
            if is_steady {
                let is_over = |lock: &&Lock| match lock {
                    Lock::Answer(of, to, _) => *of == seat && (kill.is_none() || *to != number),
                    _ => false,
                };
                let over: Vec<Lock> = self.told.iter().filter(is_over).copied().collect();
                for answer in over {
                    self.told.remove(&answer);
                    plan.ops.push(Op::Release(answer));
                }
            }
            match kill {
                Some(kill)
                    if is_steady
                        && asked.contains(&seat)
                        && self.seen.get(&seat) != Some(&header) =>
                {
                    self.seen.insert(seat, header);
                    plan.kills.push(((seat, number), kill));
                }
                None if is_steady => _ = self.seen.remove(&seat),
                _ => {}
            }
        }
    }

    /// Looks for the answer to its own KILL.
    fn own_kill(&mut self, seat: u8, holders: &Holders<'_>, plan: &mut Plan) {
        let locks = KillAnswer::ALL.into_iter().zip(self.answers_to(seat));
        let Some(own) = &mut self.kill else { return };
        let mut held = locks.filter(|(_, lock)| holders.of(*lock).is_some());
        let answer = held.next().map(|(answer, _)| answer);
        own.rounds += 1;
        if answer.is_some() || own.rounds > ROUNDS_MAX {
            self.kill = None;
            plan.killed = Some(answer);
        }
    }

    /// Tells its numbers: what is not true any more first, the header of a KILL last.
    fn tell(&mut self, seat: u8, needs: &[Need], ops: &mut Vec<Op>) {
        let mut words = BTreeSet::new();
        for need in needs {
            let (demand, limit) = (Number::Demand(need.resource), Number::Limit(need.resource));
            put_number(&mut words, seat, demand, DIGITS, need.demand);
            put_number(&mut words, seat, limit, DIGITS, need.limit);
        }
        let mut header = BTreeSet::new();
        if let Some(own) = &self.kill {
            put_number(&mut words, seat, Number::Victim, WORD_DIGITS, own.kill.id);
            let account = own.kill.account.unwrap_or(ANYBODY);
            put_number(&mut words, seat, Number::Account, WORD_DIGITS, account);
            let told = own.kill.header(self.kills_count);
            put_number(&mut header, seat, Number::Kill, HEADER_DIGITS, told);
        }
        let is_digit = |lock: &&Lock| matches!(lock, Lock::Digit(..));
        let is_told = |lock: &&Lock| words.contains(lock) || header.contains(lock);
        let old: Vec<Lock> = self.told.iter().filter(is_digit).copied().collect();
        let is_header = |lock: &Lock| matches!(lock, Lock::Digit(_, Number::Kill, _));
        let mut gone: Vec<Lock> = old.iter().filter(|lock| !is_told(lock)).copied().collect();
        gone.sort_by_key(|lock| !is_header(lock));
        for lock in gone {
            self.told.remove(&lock);
            ops.push(Op::Release(lock));
        }
        for lock in words.into_iter().chain(header.into_iter().rev()) {
            if self.told.insert(lock) {
                ops.push(Op::Get(lock));
            }
        }
    }

    /// Gives a unit up that no backend uses.
    pub fn release(&mut self, resource: Resource, unit: u32) -> Op {
        if let Some(division) = self.divisions.get_mut(&resource) {
            division.claimed.remove(&unit);
            division.new.remove(&unit);
        }
        Op::Release(Lock::Claim(resource, unit))
    }

    /// Takes note of the answers to commands, which came before this moment.
    pub fn done(&mut self, now: Duration, ops: &[Op], answers: &[Option<u64>]) {
        for (op, answer) in ops.iter().zip(answers) {
            let got = *answer == Some(1);
            match *op {
                Op::Get(Lock::Seat(seat)) if got => match self.inherited.get_mut(&seat) {
                    Some(had_by) => *had_by = Some(self.connection),
                    None => self.seat = Some(seat),
                },
                Op::Get(Lock::Claim(of, unit)) if got => {
                    let division = self.divisions.entry(of).or_default();
                    if division.claimed.insert(unit) {
                        division.new.insert(unit, now);
                    }
                }
                // Another holds it: it is not told.
                Op::Get(lock) if !got => _ = self.told.remove(&lock),
                _ => {}
            }
        }
    }
}
