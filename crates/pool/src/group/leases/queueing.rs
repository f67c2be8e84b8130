//! Queueing: which lane a command waits in, within which limits, and how its wait ends.
//!
//! A command that gets no backend at once waits in a lane of its client's pool (`lane.rs` says who
//! goes next), at the front of its client's input. A wait is bounded four ways: by the statements
//! that wait in the group, by those of the client's user, by the bytes of their commands, and by
//! time. Who meets a bound gets an error of its own number at once; nothing was executed, so it may
//! be tried again.
//!
//! Priority: a statement goes to the high lane when its client says so (`SET onramp_priority`), or
//! its user (`priority`), or `high_prio_mode = "statements"`; as often in a row as the user has
//! tickets (`high_prio_tickets`), then once by the low lane. So does one that is known to be short,
//! without tickets, while slow readers keep backends from others ([`Group::goes_before_slow`]). A
//! client with an open transaction needs no lane, because it has a backend; only under
//! `high_prio_mode = "none"` it waits like everybody else ([`Group::waits_with_lease`]). It waits
//! at the concurrency limit, in which stalled statements do not count. None of the bounds holds for
//! it: the others may wait for the locks of its transaction, so it has to get on, and there is at
//! most one such client for each backend.
//!
//! Invariant: `waiting`, `waiting_bytes` and the users' counts are changed together, in
//! [`Group::wait_in_lane`] and [`Group::forget_waiting`] and nowhere else.

use crate::client::{ClientState, Handled};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::queue::lane::{LaneName, Waiting};
use crate::queue::priority::{Asked, Mode, Priority, asked};
use reactor::{Key, Net, Time};
use sql::lex::LexMode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use wire::reply::OK;

/// Lanes of those who wait for a backend, and may be refused one.
const REFUSABLE: [LaneName; 3] = [LaneName::Login, LaneName::High, LaneName::Low];

impl<N: Net> Group<N> {
    /// Puts a client whose command of `len` bytes is at the front of its input in its lane: at the
    /// end, or where it has a place already.
    pub(crate) fn wait_in_lane(&mut self, key: Key, len: usize) -> Handled {
        let lane = self.lane_for(key);
        if let Some(refusal) = self.no_place(key, lane, len) {
            self.counts.refused += 1;
            self.refuse(key, &refusal);
            if let Some(client) = self.clients.get_mut(key) {
                client.pins.forget_plan();
            }
            return Handled::Used;
        }
        let (now, since) = (self.net.now(), self.place_of(key));
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        // A client that logs in stays in its own state while it waits.
        if client.state() == ClientState::Idle && !client.change_state(ClientState::Waiting, now) {
            self.close_later(key);
            return Handled::Used;
        }
        let waiting = Waiting {
            client: key,
            since,
            lane,
        };
        self.take_place(waiting, len);
        if let Some(client) = self.clients.get(key) {
            self.backend_pools.pools[client.pool as usize]
                .lanes
                .push(waiting);
        }
        self.counts.waited += 1;
        self.counts.waited_high += u64::from(lane == LaneName::High);
        Handled::Kept
    }

    /// The place of a client's command: the moment at which it came, which no other has.
    pub(crate) fn place_of(&mut self, key: Key) -> Time {
        let next = self
            .net
            .now()
            .max(self.last_place + Duration::from_nanos(1));
        let Some(client) = self.clients.get_mut(key) else {
            return next;
        };
        if client.place.take(next) {
            self.last_place = next;
        }
        client.place.since()
    }

    /// The lane for what a client wants now; takes a ticket where that is the high one.
    fn lane_for(&mut self, key: Key) -> LaneName {
        let goes_before_slow = self.goes_before_slow(key);
        let Some(client) = self.clients.get_mut(key) else {
            return LaneName::Low;
        };
        if client.state() == ClientState::Opening {
            return LaneName::Login;
        }
        if client.lease().is_some() {
            return LaneName::Held;
        }
        if goes_before_slow {
            return LaneName::High;
        }
        let limits = &self.settings.users[client.user as usize].limits;
        let high = match client.place.priority.unwrap_or(limits.priority) {
            Priority::High => true,
            Priority::Low => false,
            Priority::Auto => limits.high_prio_mode == Mode::Statements,
        };
        if high && client.place.use_ticket() {
            return LaneName::High;
        }
        client.place.give_tickets(limits.high_prio_tickets);
        LaneName::Low
    }

    /// Whether a client's statement goes to the high lane because it is known to be short, and slow
    /// readers keep what would be enough for all.
    pub(crate) fn goes_before_slow(&self, key: Key) -> bool {
        self.is_squeezed()
            && self.clients.get(key).is_some_and(|client| {
                let limits = &self.settings.users[client.user as usize].limits;
                client.place.priority.unwrap_or(limits.priority) != Priority::Low
                    && self.shapes.are_short(client.shape())
            })
    }

    /// Has those go first from now on that are known to be short and came when slow readers did not
    /// keep so much from others: what is in front of them in the low lane may wait for long.
    pub(crate) fn put_short_first(&mut self) {
        for pool in 0..self.backend_pools.pools.len() {
            let mut lanes = std::mem::take(&mut self.backend_pools.pools[pool].lanes);
            let goes_first = |waiting: &Waiting| {
                stands(&self.clients, waiting) && self.goes_before_slow(waiting.client)
            };
            for waiting in lanes.raise(goes_first) {
                if let Some(client) = self.clients.get_mut(waiting.client) {
                    client.place.raise();
                }
            }
            self.backend_pools.pools[pool].lanes = lanes;
        }
    }

    /// Why a command cannot wait.
    fn no_place(&self, key: Key, lane: LaneName, len: usize) -> Option<Refusal> {
        // Who had to wait elsewhere first, or has been in a lane, came when there was room.
        let placed = self
            .clients
            .get(key)
            .is_some_and(|client| client.place.is_held());
        if placed || lane == LaneName::Held {
            return None;
        }
        let settings = &self.settings;
        let waiting = self.waiting;
        if waiting >= settings.waiting_max {
            return Some(Refusal::LaneFull { lane, waiting });
        }
        let bytes = self.waiting_bytes;
        if bytes + len > settings.waiting_bytes_max {
            return Some(Refusal::LaneBytes { lane, bytes, len });
        }
        let index = self.clients.get(key)?.user as usize;
        let user = &settings.users[index];
        let of_user = user.usage.waiting.load(Relaxed);
        let full = user.limits.waiting_max.is_some_and(|max| of_user >= max);
        full.then(|| Refusal::UserLaneFull {
            user: user.name.clone(),
            lane,
            waiting: of_user,
        })
    }

    /// Counts a client that waits.
    pub(crate) fn take_place(&mut self, waiting: Waiting, len: usize) {
        let Some(client) = self.clients.get_mut(waiting.client) else {
            return;
        };
        client.place.enter(waiting.lane, waiting.since, len);
        self.waiting += 1;
        self.waiting_bytes += client.place.bytes();
        let user = client.user;
        self.count_waiting(user, true);
    }

    /// A statement of this user waits, or does not any more.
    pub(crate) fn count_waiting(&self, user: u16, on: bool) {
        let user = &self.settings.users[user as usize];
        if user.limits.waiting_max.is_some() {
            let waiting = &user.usage.waiting;
            match on {
                true => waiting.fetch_add(1, Relaxed),
                false => waiting.fetch_sub(1, Relaxed),
            };
        }
    }

    /// Takes a client out of its lane; its entry is passed over later.
    pub(crate) fn forget_waiting(&mut self, key: Key) {
        let Some(client) = self
            .clients
            .get_mut(key)
            .filter(|client| client.place.is_in_lane())
        else {
            return;
        };
        client.place.leave();
        self.waiting -= 1;
        self.waiting_bytes -= client.place.bytes();
        let (user, pool) = (client.user, client.pool as usize);
        self.count_waiting(user, false);
        let (clients, waiting) = (&self.clients, self.waiting);
        if let Some(pool) = self.backend_pools.pools.get_mut(pool) {
            pool.lanes
                .drop_stale(waiting, |entry| stands(clients, entry));
        }
    }

    /// Whether a client's command waits in a lane.
    pub(crate) fn is_waiting(&self, key: Key) -> bool {
        self.clients
            .get(key)
            .is_some_and(|client| client.place.is_in_lane())
    }

    /// The one of a pool whose turn is next.
    pub(crate) fn front_of(&mut self, pool: usize) -> Option<Waiting> {
        let (now, kickup) = (self.net.now(), self.settings.prio_kickup);
        let clients = &self.clients;
        self.backend_pools.pools[pool]
            .lanes
            .next(now, kickup, |waiting| stands(clients, waiting))
    }

    /// The one of a pool who may be given a backend now: the one whose turn is next, unless what is
    /// left of the backends is reserved for others.
    pub(crate) fn front_to_serve(&mut self, pool: usize) -> Option<Waiting> {
        let front = self.front_of(pool)?;
        if front.lane != LaneName::Low
            || !self
                .shared
                .budget
                .is_reserve_reached(self.index, self.backend_pools.unused())
        {
            return Some(front);
        }
        let others = [LaneName::Held, LaneName::Login, LaneName::High];
        others
            .into_iter()
            .find_map(|lane| self.front_in(pool, lane))
    }

    /// The front of one lane of a pool.
    pub(crate) fn front_in(&mut self, pool: usize, lane: LaneName) -> Option<Waiting> {
        let clients = &self.clients;
        self.backend_pools.pools[pool]
            .lanes
            .front(lane, |waiting| stands(clients, waiting))
    }

    /// Takes the one whose turn has come out of its lane.
    pub(crate) fn pop(&mut self, pool: usize, waiting: Waiting) {
        let lanes = &mut self.backend_pools.pools[pool].lanes;
        lanes.pop(waiting.lane);
        // Who waits was last looked at when its statement came, thousands of others ago.
        if let Some(coming) = lanes.second(waiting.lane) {
            self.clients.prefetch(coming);
        }
        let waited = self.net.now().since(waiting.since);
        self.figures.waited_in(waiting.lane, waited);
        let kicked_up = waiting.lane == LaneName::Low
            && waited >= self.settings.prio_kickup
            && self.front_in(pool, LaneName::High).is_some();
        self.counts.kicked_up += u64::from(kicked_up);
    }

    /// The same as [`Group::oldest_wait`], of those who may be served: while slow readers keep what
    /// the low lane may have, nobody can help it by waiting.
    pub(crate) fn oldest_wait_to_serve(&mut self) -> Option<Time> {
        match self.is_squeezed()
            && self
                .shared
                .budget
                .is_reserve_reached(self.index, self.backend_pools.unused())
        {
            true => self.oldest_wait_in(&[LaneName::Login, LaneName::High, LaneName::Held]),
            false => self.oldest_wait(),
        }
    }

    /// Since when the one waits that has waited for longest, in any lane.
    pub(crate) fn oldest_wait(&mut self) -> Option<Time> {
        self.oldest_wait_in(&LaneName::ALL)
    }

    fn oldest_wait_in(&mut self, lanes: &[LaneName]) -> Option<Time> {
        let pools = 0..self.backend_pools.pools.len();
        let fronts = pools.flat_map(|pool| lanes.iter().map(move |&lane| (pool, lane)));
        fronts
            .filter_map(|(pool, lane)| self.front_in(pool, lane))
            .map(|front| front.since)
            .min()
    }

    /// Under `high_prio_mode = "none"`, a statement of a client that has a backend waits for its
    /// turn as well, when as many statements run as may.
    pub(crate) fn waits_with_lease(&mut self, key: Key, lease: Key) -> bool {
        let resting = |lease| {
            self.backends
                .get(lease)
                .is_some_and(|backend| backend.flight().is_empty())
        };
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        self.settings.users[client.user as usize]
            .limits
            .high_prio_mode
            == Mode::None
            && client.state() == ClientState::Idle
            && resting(lease)
            && self.running.is_full_of_held(&self.shared, &self.settings)
    }

    /// The turn of a client has come that had a backend all the while.
    pub(crate) fn go_on_held(&mut self, pool: usize, held: Waiting) {
        self.pop(pool, held);
        self.shared.fronts.gets_on(self.index, self.net.now());
        self.forget_waiting(held.client);
        self.return_to_idle(held.client);
    }

    /// Deals with a text that sets the pool's own variable; `None` when it is the server's.
    pub(crate) fn on_asked(&mut self, key: Key, sql: &[u8], mode: LexMode) -> Option<Handled> {
        match asked(sql, mode) {
            Asked::Nothing => return None,
            Asked::Priority(priority) => {
                let client = self.clients.get_mut(key)?;
                let limits = &self.settings.users[client.user as usize].limits;
                client.place.priority = priority;
                client.place.give_tickets(limits.high_prio_tickets);
                self.send_ok(key, b"", OK);
            }
            Asked::Wrong(value) => {
                self.counts.refused += 1;
                self.refuse(key, &Refusal::Priority { value });
            }
        }
        Some(Handled::Used)
    }

    /// Refuses those who have waited too long for a backend.
    pub(crate) fn expire(&mut self) {
        let now = self.net.now();
        let longest = self.settings.wait_max;
        let down = self.is_down_for();
        for pool in 0..self.backend_pools.pools.len() {
            if let Some(lasted) = down {
                self.refuse_while_down(pool, lasted);
            }
            for lane in REFUSABLE {
                while let Some(front) = self.front_in(pool, lane) {
                    let waited = now.since(front.since);
                    if waited < longest {
                        break;
                    }
                    self.backend_pools.pools[pool].lanes.pop(lane);
                    let refusal = Refusal::WaitedTooLong {
                        lane,
                        ahead: self.ahead_of(pool, lane),
                        waited,
                        detail: self.what_backends_do(pool),
                    };
                    self.give_up(front.client, &refusal);
                }
            }
        }
    }

    /// Entries that stand in front of a lane's first.
    fn ahead_of(&self, pool: usize, lane: LaneName) -> usize {
        match lane {
            LaneName::Low | LaneName::Held => {
                self.backend_pools.pools[pool].lanes.len_of(LaneName::High)
            }
            LaneName::High | LaneName::Login => 0,
        }
    }

    /// A waiting client gets an error instead of a backend.
    pub(crate) fn give_up(&mut self, key: Key, refusal: &Refusal) {
        self.forget_waiting(key);
        self.counts.refused += 1;
        self.refuse(key, refusal);
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        client.pins.forget_plan();
        if client.state() == ClientState::Opening {
            return self.leave(key);
        }
        let len = client.command_len();
        client.drop_input(len);
        if !client.change_state(ClientState::Idle, now) {
            return self.close_later(key);
        }
        self.pump(key);
    }

    /// Every client of a pool that waits for a backend gets an error: the server refuses its
    /// account.
    pub(crate) fn give_up_all(&mut self, pool: usize, why: &str) {
        while let Some(client) = self.take_waiting(pool) {
            self.give_up(client, &Refusal::BackendLogin(why.to_string()));
        }
    }

    /// Every client of a pool that waits for a backend is closed with an error: logging in again
    /// helps.
    pub(crate) fn close_all_waiting(&mut self, pool: usize, why: &str) {
        while let Some(client) = self.take_waiting(pool) {
            self.forget_waiting(client);
            self.refuse_and_leave(client, &Refusal::BackendLogin(why.to_string()));
        }
    }

    /// Takes a client of a pool out of line that waits for a backend and has none, if there is one.
    pub(crate) fn take_waiting(&mut self, pool: usize) -> Option<Key> {
        REFUSABLE.into_iter().find_map(|lane| {
            let front = self.front_in(pool, lane)?;
            self.backend_pools.pools[pool].lanes.pop(lane);
            Some(front.client)
        })
    }

    fn what_backends_do(&self, pool: usize) -> String {
        let census = self.census();
        let pool = &self.backend_pools.pools[pool];
        let mut text = format!(
            "{} of this group's {} backends in use, {} of them by pinned clients, {} waiting; \
             all groups may have {}",
            census.backends_leased,
            self.backend_pools.count,
            census.pinned,
            census.waiting,
            self.shared.budget.total()
        );
        if let Some(why) = &pool.last_failure {
            text.push_str("; last failure: ");
            text.push_str(why);
        }
        text
    }

    /// When the first waiting client's time is up.
    pub(crate) fn next_expiry(&mut self) -> Time {
        let longest = self.settings.wait_max;
        self.oldest_wait_in(&REFUSABLE)
            .map_or(Time::NEVER, |since| since + longest)
    }
}

/// Whether a lane's entry still stands: its client is there and has not been served since.
fn stands<S>(clients: &reactor::Slots<crate::client::Client<S>>, waiting: &Waiting) -> bool {
    clients
        .get(waiting.client)
        .is_some_and(|client| client.place.stands_since(waiting.since))
}
