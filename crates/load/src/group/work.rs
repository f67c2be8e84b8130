//! Models of load within one group: the connection that begins an event, and the time.
//!
//! In a closed loop a connection goes on by itself and nothing here costs it anything. In the other
//! models it comes to rest after each event, and one of three things starts it again: an arrival
//! (open loop), its turn (`--active`), or the end of its pause (`--think-time`). Here also patience
//! ends, lifetimes end, and the number of connections follows its stages.
//!
//! Invariants: a resting connection stands in `idle` or has a timer, never both; a watched one has
//! one timer for its patience, however many statements it sends; what has been given up goes on in
//! the slot, so it is neither lost nor run twice at a time.

use super::Group;
use crate::connection::Connection;
use crate::context::Context;
use crate::work::Why;
use load_core::connection_slot::ConnectionSlot;
use load_core::durations::unit;
use load_core::errors::Fault;
use load_core::model::Loop;
use reactor::{Key, Net, Time};

impl Group {
    /// Begins to execute, as ordered.
    pub(super) fn begin_work(&mut self) {
        let now = Time::now();
        self.context.running = true;
        self.context.work.began = Some(now);
        // Who is being opened begins after the login.
        let at_rest = self.connections.iter().filter(|(_, c)| c.is_idle());
        let keys: Vec<Key> = at_rest.map(|(key, _)| key).collect();
        let Context { work, plan, .. } = &mut self.context;
        let part = work.part;
        if let Some(arrivals) = &mut work.arrivals {
            arrivals.start(now, f64::from(part.group + 1) / f64::from(part.groups));
        }
        match plan.model.drive {
            Loop::Closed => self.starting = keys,
            Loop::Open { .. } | Loop::Active(_) => work.idle.extend(keys),
            // The first pauses are cut at a random place, so that not all end at once.
            Loop::Thinking(spread) => {
                for key in keys {
                    let pause = spread.draw(&mut work.random);
                    let rest = pause.mul_f64(unit(&mut work.random));
                    work.timers.add(now + rest, (key, Why::Pause));
                }
            }
        }
    }

    /// Begins the life of a connection that has logged in, and an event if one waits for it.
    pub(super) fn on_login(&mut self, key: Key) -> Result<(), Fault> {
        let now = self.context.net.now();
        let Some(connection) = self.connections.get_mut(key) else {
            return Ok(());
        };
        let Context {
            work, plan, stats, ..
        } = &mut self.context;
        let took = now.since(connection.sent_at());
        match connection.slot.reopening {
            true => stats.reconnect_latency.record(took),
            false => stats.connect_latency.record(took),
        }
        stats.reconnects += u64::from(connection.slot.reopening);
        if let Some(lifetime) = plan.model.lifetime {
            let life = lifetime.draw(&mut work.random);
            work.timers.add(now + life, (key, Why::Lifetime));
        }
        let is_closed = work.is_closed;
        match self.context.running {
            true if connection.slot.repeats > 0 => {
                self.context.work.repeating -= 1;
                connection.repeat(&mut self.context)
            }
            true if is_closed => connection.begin_event(&mut self.context, now),
            _ => Ok(()),
        }
    }

    /// Follows a connection that has dealt with its socket: watches its patience where it executes,
    /// and finds work for it where it has come to rest.
    pub(super) fn after_event(&mut self, key: Key, was_busy: bool) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if connection.is_executing() {
            self.watch(key);
        } else if was_busy && connection.is_idle() {
            self.on_rest(key);
        }
    }

    /// Sees to it that a timer looks after a connection's patience.
    pub(super) fn watch(&mut self, key: Key) {
        let Some(patience) = self.context.plan.model.give_up else {
            return;
        };
        match self.connections.get_mut(key) {
            Some(connection) if !connection.is_watched => {
                connection.is_watched = true;
                let due = connection.asked_at() + patience;
                self.context.work.timers.add(due, (key, Why::Patience));
            }
            _ => {}
        }
    }

    fn on_rest(&mut self, key: Key) {
        if self.connections.get(key).is_some_and(|c| c.is_leaving) {
            return self.renew(key);
        }
        let now = Time::now();
        let Context {
            work,
            plan,
            running: true,
            ..
        } = &mut self.context
        else {
            return;
        };
        if work.surplus > 0 {
            work.surplus -= 1;
            return self.park(key);
        }
        match plan.model.drive {
            Loop::Closed => {}
            Loop::Active(_) => work.idle.push_back(key),
            Loop::Open { .. } => match work.next_start(now) {
                Some(start) => self.begin(key, start),
                None => work.idle.push_back(key),
            },
            Loop::Thinking(spread) => {
                let pause = spread.draw(&mut work.random);
                work.timers.add(now + pause, (key, Why::Pause));
            }
        }
    }

    /// Begins an event on a connection at rest.
    pub(super) fn begin(&mut self, key: Key, start: Time) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        match connection.begin(&mut self.context, start) {
            Ok(()) => self.watch(key),
            Err(fault) => self.close(key, fault),
        }
    }

    /// Works on what the model of load has due: timers, stages, arrivals, turns.
    pub(super) fn work_due(&mut self) {
        if self.context.work.is_closed && self.context.work.timers.next_due() == Time::NEVER {
            return self.follow_stages();
        }
        let now = Time::now();
        while let Some((due, (key, why))) = self.context.work.timers.take(now) {
            match why {
                Why::Pause => self.end_pause(key, due, now),
                Why::Patience => self.look_at_patience(key, now),
                Why::Lifetime => self.end_life(key),
            }
        }
        self.follow_stages();
        self.take_arrivals();
        while self
            .context
            .work
            .active
            .is_some_and(|active| self.context.executing < active && self.context.running)
        {
            let Some(key) = self.pop_idle() else {
                break;
            };
            if !self.context.take_event() {
                break;
            }
            self.begin(key, Time::now());
        }
    }

    /// The connection that has rested longest. Those that ended meanwhile are passed over.
    fn pop_idle(&mut self) -> Option<Key> {
        let connections = &self.connections;
        let is_idle = |key: &Key| connections.get(*key).is_some_and(Connection::is_idle);
        let idle = &mut self.context.work.idle;
        std::iter::from_fn(|| idle.pop_front()).find(is_idle)
    }

    fn end_pause(&mut self, key: Key, due: Time, now: Time) {
        if !self.connections.get(key).is_some_and(Connection::is_idle) || !self.context.running {
            return;
        }
        if self.context.work.surplus > 0 {
            self.context.work.surplus -= 1;
            return self.park(key);
        }
        if self.context.take_event() {
            self.context.stats.lag.record(now.since(due));
            self.begin(key, due);
        }
    }

    fn take_arrivals(&mut self) {
        let now = Time::now();
        while let Some(arrivals) = &mut self.context.work.arrivals {
            let Some(start) = arrivals.take(now) else {
                break;
            };
            if !self.context.take_event() {
                self.context.work.close();
                break;
            }
            self.context.stats.arrived += 1;
            if let Some(key) = self.pop_idle() {
                self.context.stats.lag.record(now.since(start));
                self.begin(key, start);
            } else if let Some(arrivals) = &mut self.context.work.arrivals {
                self.context.stats.shed += u64::from(!arrivals.wait(start));
            }
        }
        if let (Some(arrivals), Some(patience)) = (
            &mut self.context.work.arrivals,
            self.context.plan.model.give_up,
        ) {
            self.context.stats.expired += arrivals.expire(now - patience);
        }
    }

    /// Lets as many connections be open as the stages want now.
    fn follow_stages(&mut self) {
        let now = self.context.net.now();
        let Context { work, plan, .. } = &mut self.context;
        let wanted = match (work.users, work.began, plan.model.stages.is_some()) {
            (Some(users), ..) => users,
            (None, Some(began), true) => {
                // Also behind the last stage: who is logging in now may be one too many.
                let seconds = now.since(began).as_secs_f64();
                work.staged_s = seconds;
                plan.model.wanted(seconds, work.part.connections)
            }
            _ => return,
        };
        let wanted = work.part.of(wanted);
        self.opener.allow(wanted);
        work.surplus = self.connected.saturating_sub(wanted);
        while self.context.work.surplus > 0 {
            let Some(key) = self.pop_idle() else {
                return;
            };
            self.context.work.surplus -= 1;
            self.park(key);
        }
    }

    /// Allows as many connections before execution as the first stage wants.
    pub(super) fn allow_first_stage(&mut self) {
        let Context { work, plan, .. } = &mut self.context;
        work.users = plan.ordered_users;
        let staged = plan.model.wanted(0.0, work.part.connections);
        let wanted = plan.ordered_users.unwrap_or(staged);
        self.opener.allow(work.part.of(wanted));
    }

    /// Gives a connection up if it has waited too long; else looks again when that may be so.
    fn look_at_patience(&mut self, key: Key, now: Time) {
        let patience = self.context.plan.model.give_up;
        let (Some(connection), Some(patience)) = (self.connections.get_mut(key), patience) else {
            return;
        };
        let due = connection.asked_at() + patience;
        if connection.is_idle() {
            connection.is_watched = false;
        } else if due > now {
            self.context.work.timers.add(due, (key, Why::Patience));
        } else {
            self.context.stats.lag.record(now.since(due));
            self.give_up(key, now);
        }
    }

    /// Hangs up for a client that has lost its patience, and tries again.
    fn give_up(&mut self, key: Key, now: Time) {
        let Some(connection) = self.connections.remove(key) else {
            return;
        };
        self.context.stats.gave_up += 1;
        let mut slot = connection.slot;
        if connection.is_opening() {
            self.opener.abandoned();
            self.context.work.repeating -= 1;
            self.context.stats.failed_connects += 1;
            let waited = self.context.plan.model.give_up.unwrap_or_default();
            let fault = Fault::impatience(waited);
            let age = now.since(connection.sent_at());
            self.context
                .stats
                .error(connection.phase(), fault, Some(age));
        } else {
            self.context.stats.steps.error(now);
            self.opener.closed();
            self.connected -= 1;
            self.context.executing -= 1;
        }
        let model = &self.context.plan.model;
        let is_repeated =
            model.retries.is_none_or(|most| slot.repeats < most) && self.end.is_none();
        slot.repeats = match is_repeated {
            true => slot.repeats.saturating_add(1),
            false => 0,
        };
        self.context.work.repeating += u32::from(is_repeated);
        let pause = model.retry_pause.draw(&mut self.context.work.random);
        self.opener.reopen_at(now + pause, slot);
    }

    /// Ends a connection whose lifetime is over: at once where it rests, else at the end of its
    /// event.
    fn end_life(&mut self, key: Key) {
        match self.connections.get_mut(key) {
            Some(connection) if connection.is_idle() => self.renew(key),
            Some(connection) => connection.is_leaving = true,
            None => {}
        }
    }

    /// Closes a connection at rest in good order, to be reopened.
    fn renew(&mut self, key: Key) {
        if let Some(slot) = self.say_goodbye(key) {
            self.context.stats.retired += 1;
            let now = self.context.net.now();
            self.opener.reopen_at(now, slot);
        }
    }

    /// Closes a connection at rest that is not wanted for now.
    fn park(&mut self, key: Key) {
        if let Some(slot) = self.say_goodbye(key) {
            self.opener.park(slot);
        }
    }

    fn say_goodbye(&mut self, key: Key) -> Option<ConnectionSlot> {
        let mut connection = self.connections.remove(key)?;
        connection.quit(&mut self.context.net);
        self.connected -= 1;
        self.opener.closed();
        Some(connection.slot)
    }
}
