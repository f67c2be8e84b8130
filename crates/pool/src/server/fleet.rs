//! The fleet: pools in front of one server that share its connections ([`::cluster::fleet`]).
//!
//! This is what groups see of it; a thread has the rounds ([`crate::server::rounds`]). A backend
//! that is to be opened takes a [`Unit`], and its first question takes the unit's witness too;
//! the unit is given back when the backend is dropped.
//!
//! Invariants: no unit is taken unless the connection has answered within [`FRESH`], so that a pool
//! that was stopped asks first; without the connection the backends that are there go on, and none
//! is opened.

use crate::server::watched::trigger::WatchTrigger;
use crate::statements::kill::jobs::{Asker, KillAsk, KillEnd};
use ::cluster::fleet::{ANYBODY, FRESH, Lock, RemoteKill, Resource, SEATS_MAX, SeatView, Units};
use reactor::{Address, Time};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// KILLs of clients elsewhere that wait; each takes about a second.
const KILLS_MAX: usize = 64;
/// Seconds for which a backend waits for the one that had its unit to end.
const WITNESS_WAIT: u32 = 1;
/// The number of the group of an asker that is another pool.
pub(super) const ELSEWHERE: usize = usize::MAX;
/// Ids that a pool has for its clients: 24 bits, below the six of its seat.
pub(crate) const IDS: u32 = 1 << 24;

/// All backends.
pub(crate) const ALL: Resource = Resource(0);

/// Receiver of the end of a KILL of a client elsewhere.
#[derive(Debug)]
pub(super) enum Waits {
    Client(Asker),
    Console(SyncSender<KillEnd>),
}

/// State of this pool's part.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) units: BTreeMap<Resource, Units>,
    /// Units that may be used of each.
    pub(super) totals: BTreeMap<Resource, usize>,
    pub(super) seats: Vec<SeatView>,
    /// Address of the server that has the claims of these units.
    pub(super) at: Option<Arc<Address>>,
    pub(super) kills: VecDeque<(Waits, RemoteKill)>,
    /// Ends of KILLs of these seats' clients, with their numbers there.
    pub(super) answers: Vec<((u8, u8), KillEnd)>,
}

/// Part of the fleet that is this pool's.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) name: String,
    /// True if there is one server, whatever addresses it has.
    has_one_server: bool,
    state: Mutex<State>,
    /// Its seat; [`SEATS_MAX`] before the first.
    pub(super) seat: AtomicU8,
    /// Seats of pools whose clients came here.
    pub(super) inherited: AtomicU64,
    /// The last moment for which the server has vouched.
    pub(super) vouched_at: AtomicU64,
    /// Dials that had to wait for that, or for a unit.
    pub(super) held_up: AtomicUsize,
    /// Fires when one does.
    pub(super) trigger: WatchTrigger,
}

/// A unit that a backend uses, until it is dropped.
#[derive(Debug)]
pub(crate) struct Unit {
    fleet: Arc<Fleet>,
    resource: Resource,
    number: u32,
}

impl Drop for Unit {
    fn drop(&mut self) {
        let mut state = self.fleet.lock();
        if let Some(units) = state.units.get_mut(&self.resource) {
            units.give(self.number);
        }
    }
}

/// The questions by which a backend takes the witnesses of its units, in front of others.
pub(crate) fn witness_questions(units: &[Unit]) -> String {
    let mut out = String::new();
    for unit in units {
        let name = Lock::Witness(unit.resource, unit.number).name(&unit.fleet.name);
        _ = write!(out, ",GET_LOCK('{name}',{WITNESS_WAIT})");
    }
    out
}

/// A number for an account, which is not [`ANYBODY`]: FNV-1a.
pub(crate) fn hash_of(name: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    name.bytes().fold(2_166_136_261, step).min(ANYBODY - 1)
}

/// The seat that a client's id names.
pub(crate) fn seat_of(id: u32) -> u32 {
    id / IDS % u32::from(SEATS_MAX)
}

impl Fleet {
    pub(crate) fn new(name: &str, has_one_server: bool) -> Fleet {
        Fleet {
            name: name.into(),
            has_one_server,
            state: Mutex::default(),
            seat: AtomicU8::new(SEATS_MAX),
            inherited: AtomicU64::new(0),
            vouched_at: AtomicU64::new(0),
            held_up: AtomicUsize::new(0),
            trigger: WatchTrigger::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its seat; the last one while it has none.
    pub(crate) fn seat(&self) -> u32 {
        u32::from(self.seat.load(SeqCst) % SEATS_MAX)
    }

    /// Keeps the seat that this client's id names, which another process gave out.
    pub(crate) fn inherit(&self, id: u32) {
        let seat = seat_of(id);
        if seat != self.seat() {
            self.inherited.fetch_or(1 << seat, SeqCst);
        }
    }

    /// True if the server at this address has just said what this pool may open there, and some of
    /// that is free; else groups are told when it is.
    pub(crate) fn may_dial(&self, at: &Address, now: Time) -> bool {
        let is_fresh = now.since(Time(self.vouched_at.load(SeqCst))) < FRESH;
        let state = self.lock();
        // Units of the writer before are none of the one now.
        let is_there = self.has_one_server || state.at.as_deref() == Some(at);
        let may = is_fresh && is_there && state.units.get(&ALL).is_some_and(Units::has_free);
        drop(state);
        if !may {
            self.hold_up();
        }
        may
    }

    fn hold_up(&self) {
        self.held_up.fetch_add(1, SeqCst);
        self.trigger.fire();
    }

    /// A unit of each for a backend that is opened now, or none at all: one that is given back is
    /// not free at once.
    pub(crate) fn take(self: &Arc<Self>, resources: &[Resource]) -> Option<Vec<Unit>> {
        let mut state = self.lock();
        let has_free = |of| state.units.get(of).is_some_and(Units::has_free);
        if !resources.iter().all(has_free) {
            self.hold_up();
            return None;
        }
        let take = |&resource: &Resource| {
            Some(Unit {
                fleet: self.clone(),
                resource,
                number: state.units.get_mut(&resource)?.take()?,
            })
        };
        resources.iter().map(take).collect()
    }

    /// Units that may be used.
    pub(crate) fn total(&self, resource: Resource) -> usize {
        self.lock().totals.get(&resource).copied().unwrap_or(0)
    }

    /// The pools of the fleet, with what they have of all backends.
    pub(crate) fn seats(&self) -> Vec<SeatView> {
        self.lock().seats.clone()
    }

    /// Looks for the victim of a KILL in the other pools; `false` where the asker is one, or none
    /// waits for the end, or too many do.
    pub(crate) fn pass_on(&self, ask: &KillAsk) -> bool {
        let (Some(asker), Some(user)) = (ask.asker, &ask.user) else {
            return false;
        };
        let kill = RemoteKill {
            id: ask.id,
            query: ask.query,
            account: Some(hash_of(user)),
        };
        asker.group != ELSEWHERE && self.tell(Waits::Client(asker), kill)
    }

    /// Looks for the victim of an administrator's KILL in the other pools; `None` where too many
    /// wait.
    pub(crate) fn pass_on_for_console(&self, id: u32, query: bool) -> Option<Receiver<KillEnd>> {
        let (sender, receiver) = sync_channel(1);
        let account = None;
        let kill = RemoteKill { id, query, account };
        self.tell(Waits::Console(sender), kill).then_some(receiver)
    }

    fn tell(&self, waits: Waits, kill: RemoteKill) -> bool {
        let kills = &mut self.lock().kills;
        let may = kills.len() < KILLS_MAX;
        if may {
            kills.push_back((waits, kill));
        }
        may
    }

    /// A KILL that another pool has asked for has come to this end here; `false` where one of this
    /// pool's clients did.
    pub(crate) fn answers(&self, asker: Asker, end: &KillEnd) -> bool {
        let is_elsewhere = asker.group == ELSEWHERE;
        if is_elsewhere {
            let (seat, number) = asker.killer.parts();
            let short = |part| u8::try_from(part).unwrap_or(0);
            let answered = (short(seat), short(number));
            self.lock().answers.push((answered, end.clone()));
        }
        is_elsewhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_takes_all_its_units_or_none() {
        let (fleet, account) = (Arc::new(Fleet::new("shop", true)), Resource(9));
        let claim = |of| fleet.lock().units.entry(of).or_default().claim(3);
        claim(ALL);
        assert!(fleet.take(&[ALL, account]).is_none());
        assert!(fleet.lock().units[&ALL].has_free() && fleet.held_up.load(SeqCst) == 1);
        claim(account);
        assert_eq!(fleet.take(&[ALL, account]).unwrap().len(), 2);
    }

    #[test]
    fn so_many_kills_wait_for_other_pools_and_no_more() {
        let fleet = Fleet::new("shop", true);
        let asked = (0..KILLS_MAX).map(|_| fleet.pass_on_for_console(7, false));
        assert_eq!(asked.flatten().count(), KILLS_MAX);
        assert!(fleet.pass_on_for_console(7, false).is_none());
    }

    #[test]
    fn units_are_of_the_server_that_has_their_claims() {
        let [one, two] = ["/one", "/two"].map(|path| Arc::new(Address::Unix(path.into())));
        for has_one_server in [true, false] {
            let fleet = Fleet::new("shop", has_one_server);
            fleet.lock().units.entry(ALL).or_default().claim(3);
            fleet.lock().at = Some(one.clone());
            assert!(fleet.may_dial(&one, Time(1)));
            assert_eq!(fleet.may_dial(&two, Time(1)), has_one_server);
        }
    }
}
