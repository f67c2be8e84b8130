//! Clients that wait: how one enters the queues of its pool, leaves them, and comes back.
//!
//! A command that gets no backend at once waits in a queue of its client's pool
//! (`scheduler/queue.rs` says who goes next), at the front of its client's input. A wait is bounded
//! by what [`crate::scheduler::waiting_count`] counts. Some wait outside of the queues, with the
//! place of their moment: while something is read back on their last backend, they cannot be served
//! by another backend.
//!
//! Priority: a statement goes to the high queue when its client says so (`SET onramp_priority`), or
//! its user (`priority`), or `high_prio_mode = "statements"`; as often in a row as the user has
//! tickets (`high_prio_tickets`), then once by the low queue. So does one that is known to be
//! short, without tickets, while slow readers keep backends from others
//! ([`crate::scheduler::matching::Matching::goes_before_slow`]).
//!
//! Invariants: who waits in a queue is counted, and who is counted waits in one; who comes back to
//! a queue gets the place that it had.

use crate::backend::pools::BackendPools;
use crate::client::clients::Clients;
use crate::client::{ClientState, Handled};
use crate::config::Settings;
use crate::errors::reasons::Refusal;
use crate::group::tokens::ClientId;
use crate::observe::figures::Figures;
use crate::observe::figures::counts::Counts;
use crate::scheduler::matching::turns::stands;
use crate::scheduler::priority::Asked;
use crate::scheduler::queue::{QueueName, Waiting};
use crate::scheduler::waiting_count::WaitingCount;
use reactor::{Time, prefetch};

/// Bytes of a statement that are fetched from memory before its turn comes: of most all, and the
/// processor fetches on from there by itself.
const FETCHED_MAX: usize = 128;

/// The clients of a group, and the queues in which they wait.
pub(crate) struct Waiters<'a, S> {
    pub(crate) clients: &'a mut Clients<S>,
    pub(crate) pools: &'a mut BackendPools,
    pub(crate) waiting_count: &'a mut WaitingCount,
    pub(crate) settings: &'a Settings,
    pub(crate) counts: &'a mut Counts,
    pub(crate) figures: &'a mut Figures,
    pub(crate) now: Time,
}

/// Fate of a client that is to wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    /// Place in a queue.
    Waits,
    /// Refusal by a bound; nothing of its command has been executed.
    Refused(Refusal),
    /// Client that is gone, or about to be.
    Gone,
}

impl<S> Waiters<'_, S> {
    /// Puts a client whose command of `len` bytes is at the front of its input in its queue: at the
    /// end, or where it has a place already.
    pub(crate) fn enter(&mut self, key: ClientId, len: usize, goes_before_slow: bool) -> Entered {
        let Some(client) = self.clients.get_mut(key) else {
            return Entered::Gone;
        };
        let queue = client.queue(goes_before_slow, self.settings);
        if let Some(refusal) = (self.waiting_count).refusal(client, (queue, len), self.settings) {
            client.session.pins.forget_plan();
            self.counts.refused += 1;
            return Entered::Refused(refusal);
        }
        // A client that logs in stays in its own state while it waits.
        if client.state() == ClientState::Idle
            && !client.change_state(ClientState::Waiting, self.now)
        {
            self.clients.close_later(key);
            return Entered::Gone;
        }
        self.put(key, queue, len);
        self.counts.waited += 1;
        self.counts.waited_high += u64::from(queue == QueueName::High);
        Entered::Waits
    }

    fn put(&mut self, key: ClientId, queue: QueueName, len: usize) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let since = self.waiting_count.place_of(client, self.now);
        self.waiting_count
            .enter(client, (queue, since, len), self.settings);
        let queues = &mut self.pools.pools[client.pool as usize].queues;
        queues.push(Waiting {
            client: key,
            since,
            pool: client.pool,
            queue,
        });
    }

    /// Takes a client out of its queue; its entry is passed over later.
    pub(crate) fn forget(&mut self, key: ClientId) {
        let Some(client) = self
            .clients
            .get_mut(key)
            .filter(|client| client.place.is_in_queue())
        else {
            return;
        };
        self.waiting_count.leave(client, self.settings);
        let (pool, clients) = (client.pool as usize, &*self.clients);
        if let Some(pool) = self.pools.pools.get_mut(pool) {
            pool.queues
                .drop_stale(self.waiting_count.len(), |entry| stands(clients, entry));
        }
    }

    /// Takes the one whose turn has come out of its queue.
    pub(crate) fn pop(&mut self, pool: usize, waiting: Waiting) {
        let queues = &mut self.pools.pools[pool].queues;
        queues.pop(waiting.queue);
        self.fetch_coming(pool, waiting.queue);
        let waited = self.now.since(waiting.since);
        self.figures.waited_in(waiting.queue, waited);
        let clients = &*self.clients;
        let mut high = || {
            let stands = |waiting: &Waiting| stands(clients, waiting);
            self.pools.front_in(pool, QueueName::High, stands).is_some()
        };
        let late = waiting.queue == QueueName::Low && waited >= self.settings.prio_kickup;
        self.counts.kicked_up += u64::from(late && high());
    }

    /// Prefetches the memory of those who are next in a queue: they were last looked at when their
    /// statements came, thousands of others ago. What is found through memory that is being fetched
    /// itself is asked for one client later.
    fn fetch_coming(&self, pool: usize, queue: QueueName) {
        let queues = &self.pools.pools[pool].queues;
        if let Some(third) = queues.behind(queue, 2) {
            self.clients.prefetch(third);
        }
        let input = |others| {
            let client = self.clients.get(queues.behind(queue, others)?)?;
            client.input.bytes().map(|input| &**input)
        };
        if let Some(second) = input(1) {
            prefetch(second);
        }
        if let Some(next) = input(0) {
            prefetch(&next[..next.len().min(FETCHED_MAX)]);
        }
    }

    /// Queues a client whose statement was not sent yet at its place: the front, if it has waited
    /// there.
    pub(crate) fn wait_again(&mut self, key: ClientId) {
        let now = self.now;
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let moved = match client.is_logging_in() {
            true => client.change_state(ClientState::Opening, now),
            false => {
                client.change_state(ClientState::Idle, now)
                    && client.change_state(ClientState::Waiting, now)
            }
        };
        if !moved {
            return self.clients.close_later(key);
        }
        // The packet of a login is used up, but its place is still the one it had.
        if client.is_logging_in() {
            client.place.keep();
        }
        let (queue, len) = (client.place.queue(), client.input.command_len());
        self.put(key, queue, len);
    }

    /// Gives a client the priority that its text asks for.
    ///
    /// # Errors
    /// There is no such priority.
    pub(crate) fn ask_priority(&mut self, key: ClientId, asked: Asked) -> Result<(), Refusal> {
        match (asked, self.clients.get_mut(key)) {
            (Asked::Priority(priority), Some(client)) => {
                let limits = &self.settings.users[client.identity.user()].limits;
                client.place.priority = priority;
                client.place.give_tickets(limits.high_prio_tickets);
                Ok(())
            }
            (Asked::Wrong(name, value), _) => Err(Refusal::SessionSetting { name, value }),
            (Asked::Nothing | Asked::Priority(_) | Asked::ReadFrom(_), _) => Ok(()),
        }
    }

    /// Counts those who wait among their users' by the settings that there are now, or takes that
    /// back.
    pub(crate) fn count_for_limits(&self, on: bool) {
        for (_, client) in self.clients.iter() {
            if client.place.is_in_queue() {
                self.settings.users[client.identity.user()].count_waiting(on);
            }
        }
    }

    /// Keeps a client's command until its backend is checked in, or what is asked for it is
    /// answered; then it goes to the queue, to its place there. Nobody passes those who wait
    /// because its backend is not checked in yet.
    pub(crate) fn wait_outside(&mut self, key: ClientId) -> Handled {
        if let Some(client) = self.clients.get_mut(key) {
            self.waiting_count.place_of(client, self.now);
            if !client.change_state(ClientState::Waiting, self.now) {
                self.clients.close_later(key);
            }
        }
        Handled::Kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::pools::PoolKey;
    use crate::client::Client;
    use crate::group::scripted::shared;
    use crate::observe::figures::digests::Digests;
    use crate::scheduler::priority::Priority;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::time::Duration;

    const MOMENT: Time = Time(1_000_000_000);

    struct Bench {
        clients: Clients<()>,
        pools: BackendPools,
        waiting_count: WaitingCount,
        settings: Arc<Settings>,
        counts: Counts,
        figures: Figures,
        now: Time,
    }

    impl Bench {
        fn new(settings: &str) -> Bench {
            let settings = shared(settings).settings();
            let mut pools = BackendPools::default();
            pools.add(PoolKey::of_user("app"), |_| true);
            Bench {
                clients: Clients::default(),
                pools,
                waiting_count: WaitingCount::default(),
                figures: Figures::new(settings.users.len(), Digests::of_group(0, 1)),
                settings,
                counts: Counts::default(),
                now: MOMENT,
            }
        }

        fn waiters(&mut self) -> Waiters<'_, ()> {
            Waiters {
                clients: &mut self.clients,
                pools: &mut self.pools,
                waiting_count: &mut self.waiting_count,
                settings: &self.settings,
                counts: &mut self.counts,
                figures: &mut self.figures,
                now: self.now,
            }
        }

        /// A client between two statements.
        fn idle(&mut self) -> ClientId {
            let mut client = Client::of_tests(MOMENT, Rc::default());
            client.login = None;
            assert!(client.change_state(ClientState::Idle, MOMENT));
            self.clients.insert(client)
        }

        fn front(&mut self, queue: QueueName) -> Option<ClientId> {
            let clients = &self.clients;
            let front = (self.pools).front_in(0, queue, |waiting| stands(clients, waiting));
            front.map(|waiting| waiting.client)
        }
    }

    #[test]
    fn who_waits_is_counted_and_forgotten_once() {
        let mut bench = Bench::new("");
        let key = bench.idle();
        assert_eq!(bench.waiters().enter(key, 9, false), Entered::Waits);
        assert_eq!((bench.waiting_count.len(), bench.counts.waited), (1, 1));
        assert_eq!(bench.front(QueueName::Low), Some(key));
        bench.waiters().forget(key);
        bench.waiters().forget(key);
        assert_eq!(bench.waiting_count.len(), 0);
        assert_eq!(
            bench.front(QueueName::Low),
            None,
            "its entry is passed over"
        );
    }

    #[test]
    fn who_meets_a_bound_is_refused_and_stays_where_it_is() {
        let mut bench = Bench::new("waiting_max = 1");
        let (first, second) = (bench.idle(), bench.idle());
        assert_eq!(bench.waiters().enter(first, 9, false), Entered::Waits);
        let refused = bench.waiters().enter(second, 9, false);
        assert!(matches!(
            refused,
            Entered::Refused(Refusal::QueueFull { waiting: 1, .. })
        ));
        let client = bench.clients.get(second).unwrap();
        assert_eq!(client.state(), ClientState::Idle);
        assert_eq!((bench.waiting_count.len(), bench.counts.refused), (1, 1));
    }

    #[test]
    fn who_comes_back_has_the_place_that_it_had() {
        let mut bench = Bench::new("");
        let (first, second) = (bench.idle(), bench.idle());
        bench.waiters().enter(first, 9, false);
        bench.now = MOMENT + Duration::from_millis(1);
        bench.waiters().enter(second, 9, false);
        let waiting = Waiting {
            client: first,
            since: MOMENT,
            pool: 0,
            queue: QueueName::Low,
        };
        bench.waiters().pop(0, waiting);
        bench.waiters().forget(first);
        assert_eq!(bench.front(QueueName::Low), Some(second));
        let client = bench.clients.get_mut(first).unwrap();
        assert!(client.change_state(ClientState::Restoring, bench.now));
        bench.waiters().wait_again(first);
        assert_eq!(bench.front(QueueName::Low), Some(first));
    }

    #[test]
    fn who_is_known_to_be_short_goes_before_slow_readers() {
        let mut bench = Bench::new("");
        let key = bench.idle();
        bench.waiters().enter(key, 9, true);
        assert_eq!(bench.front(QueueName::High), Some(key));
        assert_eq!(bench.counts.waited_high, 1);
    }

    #[test]
    fn one_of_the_low_queue_that_goes_before_the_high_one_is_counted() {
        let mut bench = Bench::new("prio_kickup_ms = 1000");
        let (low, high) = (bench.idle(), bench.idle());
        bench.waiters().enter(low, 9, false);
        let waiting = Waiting {
            client: low,
            since: MOMENT,
            pool: 0,
            queue: QueueName::Low,
        };
        bench.now = MOMENT + Duration::from_millis(999);
        bench.waiters().enter(high, 9, true);
        bench.waiters().pop(0, waiting);
        assert_eq!(bench.counts.kicked_up, 0);
        bench.now = MOMENT + Duration::from_secs(1);
        bench.waiters().pop(0, waiting);
        assert_eq!(bench.counts.kicked_up, 1);
    }

    #[test]
    fn a_client_has_the_priority_that_it_asks_for() {
        let mut bench = Bench::new("");
        let key = bench.idle();
        let asked = |name| Asked::Priority(Priority::from_name(name));
        assert_eq!(bench.waiters().ask_priority(key, asked("high")), Ok(()));
        bench.waiters().enter(key, 9, false);
        assert_eq!(bench.front(QueueName::High), Some(key));
        let wrong = bench
            .waiters()
            .ask_priority(key, Asked::Wrong("onramp_priority", "7".into()));
        let is_seven =
            |refusal| matches!(refusal, Refusal::SessionSetting { value, .. } if value == "7");
        assert!(wrong.is_err_and(is_seven));
        let client = bench.clients.get(key).unwrap();
        assert_eq!(client.place.priority, Some(Priority::High));
    }

    #[test]
    fn who_waits_outside_has_a_place_and_stands_in_no_queue() {
        let mut bench = Bench::new("");
        let key = bench.idle();
        assert_eq!(bench.waiters().wait_outside(key), Handled::Kept);
        let client = bench.clients.get(key).unwrap();
        assert_eq!(client.state(), ClientState::Waiting);
        assert!(client.place.is_held() && !client.place.is_in_queue());
        assert!(bench.waiting_count.is_empty());
    }
}
