//! The rounds of a pool in its fleet: the thread that asks, and puts in force what was decided.
//!
//! It has a connection of the account that asks for the pool itself, and needs no privilege: all
//! that it says is GET_LOCK, RELEASE_LOCK and IS_USED_LOCK. What is decided is
//! [`::cluster::fleet`]'s.
//!
//! Invariant: units are withdrawn before their claims are given up.

use crate::group::shared::{Order, Shared};
use crate::group::tokens::ClientId;
use crate::observe::figures::Published;
use crate::observe::log::{Event, note};
use crate::server::fleet::{ALL, ELSEWHERE, Fleet, Waits};
use crate::server::probe::{Connection, ProbeError, Rows, log_in_to_look};
use crate::statements::kill::jobs::{Asker, KillAsk, KillEnd};
use ::cluster::fleet::{
    KillAnswer, Lock, Member, Need, Op, RemoteKill, Resource, SEAT_ROUNDS, SEATS_MAX, Units,
    told_demand,
};
use reactor::{Sender, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Between two rounds, and while this pool has nothing.
const EVERY: Duration = Duration::from_millis(250);
const EVERY_WHILE_EMPTY: Duration = Duration::from_millis(100);
/// Between two looks for backends that end.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Expressions of one text, and texts that are sent at once: what fits into a socket's buffer.
const EXPRESSIONS: usize = 128;
const TEXTS: usize = 8;
/// Time after which the server ends a connection that asks nothing, that of a host that is gone.
const GONE_AFTER: u32 = 60;
/// Its seat is free before another is taken.
const _: () = assert!(
    SEAT_ROUNDS as u128 * EVERY_WHILE_EMPTY.as_millis() >= 3 * GONE_AFTER as u128 * 1000 / 2
);
/// A pool begins to serve once it has a seat and a unit, or, with a seat, after this.
const BEGIN_MAX: Duration = Duration::from_secs(3);

/// State of the thread.
struct Rounds {
    shared: Arc<Shared>,
    fleet: Arc<Fleet>,
    published: Vec<Arc<Published>>,
    orders: Vec<Sender<Order>>,
    member: Member,
    connection: Option<Connection>,
    demands: BTreeMap<Resource, u32>,
    /// Receiver of the end of the KILL elsewhere that is told of, and its victim.
    asker: Option<(Waits, u32)>,
    is_lost: bool,
}

/// Joins the fleet, if the settings name one; returns once the pool has its seat.
///
/// # Errors
/// Why there is no thread.
pub(crate) fn start(
    shared: &Arc<Shared>,
    published: &[Arc<Published>],
    orders: &[Sender<Order>],
) -> Result<(), String> {
    let Some(fleet) = &shared.connections.fleet else {
        return Ok(());
    };
    let mut rounds = Rounds::new(shared, fleet, published, orders);
    let (begun, mut is_told) = (Time::now(), false);
    loop {
        rounds.round();
        let is_late = Time::now().since(begun) >= BEGIN_MAX;
        if rounds.member.seat().is_some() && (fleet.total(ALL) > 0 || is_late) {
            break;
        }
        if is_late && !std::mem::replace(&mut is_told, true) {
            note(
                Event::Waiting,
                format_args!("waiting for a seat in the fleet '{}'", fleet.name),
            );
        }
        reactor::pause(rounds.every());
    }
    let turn = move || {
        loop {
            rounds.rest();
            rounds.round();
        }
    };
    let thread = std::thread::Builder::new().name("fleet".into());
    let started = thread.spawn(turn).map(|_| ());
    started.map_err(|error| format!("cannot start the thread of the fleet: {error}"))
}

impl Rounds {
    /// State before the first round.
    fn new(
        shared: &Arc<Shared>,
        fleet: &Arc<Fleet>,
        published: &[Arc<Published>],
        orders: &[Sender<Order>],
    ) -> Rounds {
        let wish = (Time::now().0 / 1_000) % u64::from(SEATS_MAX);
        Rounds {
            shared: shared.clone(),
            fleet: fleet.clone(),
            published: published.to_vec(),
            orders: orders.to_vec(),
            member: Member::new(u8::try_from(wish).unwrap_or(0)),
            connection: None,
            demands: BTreeMap::new(),
            asker: None,
            is_lost: false,
        }
    }

    fn round(&mut self) {
        let turned = self.turn();
        if let Err(error) = &turned {
            self.lose();
            if !self.is_lost {
                let why = &error.why;
                note(
                    Event::FleetLost,
                    format_args!(
                        "the fleet '{}' cannot be asked: {why}; backends that are open serve on, \
                         and none is opened; it is tried again",
                        self.fleet.name
                    ),
                );
            }
        } else if self.is_lost {
            note(Event::FleetBack, format_args!("the fleet is asked again"));
        }
        self.is_lost = turned.is_err();
        if self.member.seat().is_none() || self.is_lost {
            self.fail_kills();
        }
    }

    fn every(&self) -> Duration {
        match self.member.total(ALL) {
            0 => EVERY_WHILE_EMPTY,
            _ => EVERY,
        }
    }

    /// True if the connection is none to the server that is meant now.
    fn is_elsewhere(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|it| !self.shared.upstream.means(&it.at))
    }

    /// Waits for the next round, which follows at once where a dial waits for another server. Where
    /// it waits for the server to end a backend that was closed here, that is looked for meanwhile.
    fn rest(&mut self) {
        let end = Time::now() + self.every();
        while Time::now() < end {
            self.fleet.trigger.wait(end.since(Time::now()));
            if self.is_elsewhere() {
                return;
            }
            let units: Vec<(Resource, u32)> = {
                let state = self.fleet.lock();
                let of = |(resource, units): (&Resource, &Units)| {
                    let resource = *resource;
                    units
                        .closing()
                        .map(move |unit| (resource, unit))
                        .collect::<Vec<_>>()
                };
                state.units.iter().flat_map(of).collect()
            };
            let ask =
                |(resource, unit): &(Resource, u32)| Op::Holder(Lock::Witness(*resource, *unit));
            let ops: Vec<Op> = units.iter().map(ask).collect();
            let Ok(found) = self.run(&ops) else {
                // The round that follows tells of it.
                return reactor::pause(end.since(Time::now()));
            };
            let mut is_any_free = false;
            for ((resource, unit), holder) in units.iter().zip(found) {
                let mut state = self.fleet.lock();
                let of = state.units.get_mut(resource);
                is_any_free |= of.is_some_and(|units| units.looked(*unit, holder.is_some()));
            }
            if is_any_free && self.fleet.held_up.swap(0, SeqCst) > 0 {
                self.shared.upstream.tell_groups();
            }
            reactor::pause(LOOK_EVERY.min(end.since(Time::now())));
        }
    }

    /// Gives up all claims with the lost connection.
    fn lose(&mut self) {
        self.connection = None;
        let mut state = self.fleet.lock();
        let state = &mut *state;
        for (resource, units) in &mut state.units {
            units.lose();
            state.totals.insert(*resource, units.used().len());
        }
        state.seats.clear();
        self.shared.fit_fleet(state.totals.get(&ALL).copied());
    }

    fn connect(&mut self) -> Result<(), ProbeError> {
        let mut connection = log_in_to_look(&self.shared)?;
        let last = self.member.connection();
        if let Some(seat) = self.member.seat() {
            // It may hold what is this pool's. After a restart of the server its number is
            // another's, who does not have the seat.
            let holder = Op::Holder(Lock::Seat(seat)).sql(&self.fleet.name);
            let holder = number_in(&connection.query(&format!("SELECT {holder}"))?, 0);
            if holder == Some(last) {
                let _ = connection.ask(&[format!("KILL {last}")])?;
            }
        }
        connection.query(&format!("SET SESSION wait_timeout={GONE_AFTER}"))?;
        let number = number_in(&connection.query("SELECT CONNECTION_ID()")?, 0)
            .ok_or_else(|| ProbeError::passing("the server did not tell a connection's number"))?;
        self.member.connected(number);
        self.fleet.lock().at = Some(connection.at.clone());
        self.connection = Some(connection);
        Ok(())
    }

    fn turn(&mut self) -> Result<(), ProbeError> {
        if self.is_elsewhere() {
            self.lose();
            self.member.moves();
        }
        if self.connection.is_none() {
            self.connect()?;
        }
        let needs = self.needs();
        self.tell_kills();
        let begun = Duration::from_nanos(Time::now().0);
        let locks = self.member.survey(&needs);
        let questions: Vec<Op> = locks.iter().copied().map(Op::Holder).collect();
        let found = self.run(&questions)?;
        let mut plan = self.member.decide(begun, &needs, &locks, &found);
        let mut ops = std::mem::take(&mut plan.ops);
        (plan.lost.iter()).for_each(|seat| self.lose_seat(*seat));
        {
            let mut state = self.fleet.lock();
            for (resource, unit) in &plan.new {
                state.units.entry(*resource).or_default().claim(*unit);
            }
            for (resource, count) in &plan.release {
                let units = state.units.entry(*resource).or_default().withdraw(*count);
                ops.extend((units.iter()).map(|unit| self.member.release(*resource, *unit)));
            }
            for (kill, end) in std::mem::take(&mut state.answers) {
                ops.extend(answer_of(&end).map(|answer| self.member.answer(kill, answer)));
            }
            state.seats = std::mem::take(&mut plan.seats);
        }
        // Nobody may use what is given up.
        self.put_in_force();
        let answers = self.run(&ops)?;
        let now = Duration::from_nanos(Time::now().0);
        self.member.done(now, &ops, &answers);
        if let Some(seat) = self.member.seat() {
            let before = self.fleet.seat.swap(seat, SeqCst);
            if before != seat && before < SEATS_MAX {
                self.lose_seat(before);
            }
        }
        self.put_in_force();
        for (number, kill) in plan.kills {
            self.hear(number, kill);
        }
        if let Some(answer) = plan.killed
            && let Some((asker, id)) = self.asker.take()
        {
            self.tell_end(asker, end_of(answer, id));
        }
        if !plan.new.is_empty() || self.fleet.held_up.swap(0, SeqCst) > 0 {
            self.shared.upstream.tell_groups();
        }
        Ok(())
    }

    /// Closes the clients whose ids name a seat that another pool has.
    fn lose_seat(&self, seat: u8) {
        self.fleet.inherited.fetch_and(!(1 << seat), SeqCst);
        note(
            Event::FleetSeatLost,
            format_args!("seat {seat} is another pool's by now: clients with ids of it are closed"),
        );
        Order::CloseSeat(seat).tell_all(&self.orders);
    }

    /// Tells the others of the next KILL.
    fn tell_kills(&mut self) {
        let seats = self.fleet.inherited.load(SeqCst);
        let inherited = (0..SEATS_MAX).filter(|seat| seats >> seat & 1 == 1);
        inherited.for_each(|seat| self.member.inherit(seat));
        let mut state = self.fleet.lock();
        if self.asker.is_none()
            && let Some((_, kill)) = state.kills.front()
            && self.member.kill(*kill)
        {
            self.asker = (state.kills.pop_front()).map(|(asker, kill)| (asker, kill.id));
        }
    }

    fn tell_end(&self, waits: Waits, end: KillEnd) {
        match waits {
            Waits::Client(asker) => {
                if let Some(group) = self.orders.get(asker.group) {
                    group.send(Order::Killed(asker.killer, end));
                }
            }
            // It may have given up.
            Waits::Console(answer) => _ = answer.send(end),
        }
    }

    /// Ends all KILLs that wait for other pools, which cannot be asked.
    fn fail_kills(&mut self) {
        let told = self.asker.take().map(|(asker, _)| asker);
        let kills = std::mem::take(&mut self.fleet.lock().kills);
        for asker in told.into_iter().chain(kills.into_iter().map(|it| it.0)) {
            let why = "the other pools of the fleet cannot be asked";
            self.tell_end(asker, KillEnd::Failed(why.into()));
        }
    }

    /// Hands a KILL of another pool to the group that may have its victim.
    fn hear(&self, (seat, number): (u8, u8), kill: RemoteKill) {
        let asker = Asker {
            group: ELSEWHERE,
            killer: ClientId::from_parts(seat.into(), number.into()),
        };
        let ask = KillAsk {
            asker: Some(asker),
            id: kill.id,
            query: kill.query,
            user: None,
            account: kill.account,
        };
        if let Some(group) = self.orders.get(self.shared.group_of_client(kill.id)) {
            group.send(Order::Kill(Box::new(ask)));
        }
    }

    /// Use of each limit at this moment.
    fn needs(&mut self) -> Vec<Need> {
        let settings = self.shared.settings();
        let count = |view: &Arc<Published>| {
            let census = &view.get().census;
            census.backends_checked_out + census.backends_dialling + census.waiting
        };
        let all: usize = self.published.iter().map(count).sum();
        let limit = self.shared.backends_max(&settings);
        let asked = (ALL, limit, all, self.shared.groups());
        let accounts = self.shared.connections.account_slots.shared_limits();
        let state = self.fleet.lock();
        let (mut needs, old) = (Vec::new(), std::mem::take(&mut self.demands));
        for (resource, limit, demand, floor) in std::iter::once(asked).chain(accounts) {
            let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let before = old.get(&resource).copied().unwrap_or(0);
            let demand = told_demand(before, short(demand));
            self.demands.insert(resource, demand);
            let units = state.units.get(&resource);
            needs.push(Need {
                resource,
                limit: short(limit),
                floor: short(floor),
                demand,
                used: units.map(|units| units.used().clone()).unwrap_or_default(),
            });
        }
        needs
    }

    fn put_in_force(&self) {
        let mut state = self.fleet.lock();
        state.units.retain(|_, units| !units.is_unused());
        let total = |(resource, units): (&Resource, &Units)| {
            let total = self.member.total(*resource) + units.unclaimed();
            (*resource, total as usize)
        };
        state.totals = state.units.iter().map(total).collect();
        self.shared.fit_fleet(state.totals.get(&ALL).copied());
        if self.shared.connections.account_slots.fit(&state.totals) {
            self.shared.upstream.tell_groups();
        }
    }

    /// Runs commands in their order.
    fn run(&mut self, ops: &[Op]) -> Result<Vec<Option<u64>>, ProbeError> {
        let Some(connection) = &mut self.connection else {
            return Err(ProbeError::passing("there is no connection"));
        };
        let text = |ops: &[Op]| {
            let expressions: Vec<String> = ops.iter().map(|op| op.sql(&self.fleet.name)).collect();
            format!("SELECT {}", expressions.join(","))
        };
        let texts: Vec<String> = ops.chunks(EXPRESSIONS).map(text).collect();
        let mut found = Vec::with_capacity(ops.len());
        for texts in texts.chunks(TEXTS) {
            let begun = Time::now();
            for rows in connection.ask(texts)? {
                let rows = rows?;
                let columns = rows.first().map_or(0, Vec::len);
                found.extend((0..columns).map(|column| number_in(&rows, column)));
            }
            self.fleet.vouched_at.store(begun.0, SeqCst);
        }
        match found.len() == ops.len() {
            true => Ok(found),
            false => Err(ProbeError::passing("the server did not answer as asked")),
        }
    }
}

/// A column of the first row as a number; `None` where it is NULL.
fn number_in(rows: &Rows, column: usize) -> Option<u64> {
    std::str::from_utf8(rows.first()?.get(column)?)
        .ok()?
        .parse()
        .ok()
}

/// End of a KILL for the pool that has asked, if the client was here.
fn answer_of(end: &KillEnd) -> Option<KillAnswer> {
    match end {
        KillEnd::Done => Some(KillAnswer::Done),
        KillEnd::NotOwner(_) => Some(KillAnswer::NotOwner),
        KillEnd::Failed(_) => Some(KillAnswer::Failed),
        KillEnd::Unknown(_) => None,
    }
}

/// End of a KILL as another pool has told it.
fn end_of(answer: Option<KillAnswer>, id: u32) -> KillEnd {
    match answer {
        Some(KillAnswer::Done) => KillEnd::Done,
        Some(KillAnswer::NotOwner) => KillEnd::NotOwner(id),
        Some(KillAnswer::Failed) => {
            KillEnd::Failed("the pool that has the client could not carry it out".into())
        }
        None => KillEnd::Unknown(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::scripted;

    #[test]
    fn kills_that_wait_end_when_the_others_cannot_be_asked() {
        let shared = scripted::shared("[fleet]\nname = \"shop\"");
        let (shared, (orders, mailbox)) = (Arc::new(shared), reactor::mailbox().unwrap());
        let fleet = shared.connections.fleet.clone().unwrap();
        let mut rounds = Rounds::new(&shared, &fleet, &[], &[orders]);
        let (told, waits) = (ClientId::from_parts(1, 0), ClientId::from_parts(2, 0));
        let asker = |killer| Asker { group: 0, killer };
        rounds.asker = Some((Waits::Client(asker(told)), 7));
        let ask = KillAsk {
            asker: Some(asker(waits)),
            id: 8,
            query: false,
            user: Some("app".into()),
            account: None,
        };
        assert!(fleet.pass_on(&ask));
        rounds.round();
        let why = "the other pools of the fleet cannot be asked";
        let end = |killer| Order::Killed(killer, KillEnd::Failed(why.into()));
        assert_eq!(mailbox.take(), [end(told), end(waits)]);
        assert!(fleet.lock().kills.is_empty() && rounds.asker.is_none());
    }
}
