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
//! without tickets, while slow readers keep backends from others
//! ([`crate::matching::Matching::goes_before_slow`]). A client with an open transaction needs no
//! lane, because it has a backend; only under `high_prio_mode = "none"` it waits like everybody
//! else ([`crate::matching::Matching::waits_with_lease`]). It waits at the concurrency limit, in
//! which stalled statements do not count. None of the bounds holds for it: the others may wait for
//! the locks of its transaction, so it has to get on, and there is at most one such client for each
//! backend.
//!
//! Invariant: who waits in a lane is counted ([`crate::line`]), and who is counted waits in one.

use crate::client::{Client, ClientState, Handled};
use crate::config::Settings;
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::matching::turns::{REFUSABLE, stands};
use crate::own_ok::OwnOk;
use crate::queue::lane::{LaneName, Waiting};
use crate::queue::priority::{Asked, Mode, Priority, asked};
use reactor::{Key, Net};
use sql::lex::LexMode;

impl<N: Net> Group<N> {
    /// Puts a client whose command of `len` bytes is at the front of its input in its lane: at the
    /// end, or where it has a place already.
    pub(crate) fn wait_in_lane(&mut self, key: Key, len: usize) -> Handled {
        let goes_before_slow = self.matching().goes_before_slow(key);
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        let lane = client.lane(goes_before_slow, &self.settings);
        if let Some(refusal) = self.line.refusal(client, (lane, len), &self.settings) {
            client.pins.forget_plan();
            self.counts.refused += 1;
            self.refuse(key, &refusal);
            return Handled::Used;
        }
        let since = self.line.place_of(client, now);
        // A client that logs in stays in its own state while it waits.
        if client.state() == ClientState::Idle && !client.change_state(ClientState::Waiting, now) {
            self.close_later(key);
            return Handled::Used;
        }
        (self.line).enter(client, (lane, since, len), &self.settings);
        self.backend_pools.pools[client.pool as usize]
            .lanes
            .push(Waiting {
                client: key,
                since,
                lane,
            });
        self.counts.waited += 1;
        self.counts.waited_high += u64::from(lane == LaneName::High);
        Handled::Kept
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
        self.line.leave(client, &self.settings);
        let (pool, clients) = (client.pool as usize, &self.clients);
        if let Some(pool) = self.backend_pools.pools.get_mut(pool) {
            pool.lanes
                .drop_stale(self.line.len(), |entry| stands(clients, entry));
        }
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
            && self.matching().front_in(pool, LaneName::High).is_some();
        self.counts.kicked_up += u64::from(kicked_up);
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
                self.send_ok(key, &OwnOk::PLAIN);
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
        let down = (self.shared.upstream).down_for(now, self.settings.server_down_fail);
        for pool in 0..self.backend_pools.pools.len() {
            if let Some(lasted) = down {
                self.refuse_while_down(pool, lasted);
            }
            for lane in REFUSABLE {
                while let Some(front) = self.matching().front_in(pool, lane) {
                    let waited = now.since(front.since);
                    if waited < longest {
                        break;
                    }
                    self.backend_pools.pools[pool].lanes.pop(lane);
                    let refusal = Refusal::WaitedTooLong {
                        lane,
                        ahead: self.backend_pools.pools[pool].lanes.ahead_of(lane),
                        waited,
                        detail: self.what_backends_do(pool),
                    };
                    self.give_up(front.client, &refusal);
                }
            }
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
        while let Some(client) = self.matching().take_refusable(pool) {
            self.give_up(client, &Refusal::BackendLogin(why.to_string()));
        }
    }

    /// Every client of a pool that waits for a backend is closed with an error: logging in again
    /// helps.
    pub(crate) fn close_all_waiting(&mut self, pool: usize, why: &str) {
        while let Some(client) = self.matching().take_refusable(pool) {
            self.forget_waiting(client);
            self.refuse_and_leave(client, &Refusal::BackendLogin(why.to_string()));
        }
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
}

impl<S> Client<S> {
    /// The lane for what it wants now; takes a ticket where that is the high one.
    fn lane(&mut self, goes_before_slow: bool, settings: &Settings) -> LaneName {
        if self.state() == ClientState::Opening {
            return LaneName::Login;
        }
        if self.lease().is_some() {
            return LaneName::Held;
        }
        if goes_before_slow {
            return LaneName::High;
        }
        let limits = &settings.users[self.user as usize].limits;
        let high = match self.place.priority.unwrap_or(limits.priority) {
            Priority::High => true,
            Priority::Low => false,
            Priority::Auto => limits.high_prio_mode == Mode::Statements,
        };
        if high && self.place.use_ticket() {
            return LaneName::High;
        }
        self.place.give_tickets(limits.high_prio_tickets);
        LaneName::Low
    }
}
