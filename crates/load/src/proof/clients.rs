//! Clients of a proof: threads that wait for each answer, and the group that speaks for them.
//!
//! To the main thread it is a group like any other: it follows orders and reports what was counted.
//! Its thread only waits in its poll, for orders and for news of its clients, who count into one
//! [`Counts`]. A client that hangs in a statement holds nobody up: the group ends in time without
//! it, and its operation stays without an answer.

use super::history::{Act, Answer, answer_of};
use super::{CLIENTS_MAX, Proof, columns};
use crate::blocking::Client;
use load_core::control::{Counted, Gauges, Message, Order, Share};
use load_core::errors::{Fault, Phase};
use load_core::event_loop::{self, Milestone, Turns, Waking};
use load_core::plan::Plan;
use load_core::random::Random;
use load_core::stats::{Class, Stats, Tally};
use reactor::{Event, Mailbox, Net, RealNet, Sender, Time};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Stack of a client's thread, in bytes.
const STACK_BYTES: usize = 256 * 1024;
/// Pause of a client before it connects again.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// Phase of a group, which its clients follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Orders {
    Wait,
    Run,
    Stop,
}

/// Counts of all clients of a group.
#[derive(Debug, Default)]
struct Counts {
    stats: Stats,
    tally: Tally,
    connected: u32,
    executing: u32,
    /// Clients that have tried to connect; that have ended.
    settled: u32,
    ended: u32,
    /// The error that is to end the run.
    fatal: Option<String>,
}

/// State that a group and its clients share.
struct Shared {
    plan: Arc<Plan>,
    proof: Arc<Proof>,
    share: Share,
    counts: Mutex<Counts>,
    orders: Mutex<Orders>,
    ordered: Condvar,
    news: Sender<()>,
}

impl Shared {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self, order: Orders) {
        *self.orders() = order;
        self.ordered.notify_all();
    }

    fn is_running(&self) -> bool {
        *self.orders() == Orders::Run
    }

    /// Waits while the order is this one, for so long at most.
    fn wait_while(&self, order: Orders, most: Duration) {
        let waited = self
            .ordered
            .wait_timeout_while(self.orders(), most, |now| *now == order);
        drop(waited);
    }
}

/// Runs the thread of a group of clients.
pub(crate) fn run_group(
    plan: Arc<Plan>,
    proof: Arc<Proof>,
    share: Share,
    mailbox: Mailbox<Order>,
    letters: SyncSender<Message>,
) {
    let failure = letters.clone();
    let result = Group::new(plan, proof, share, mailbox, letters).and_then(event_loop::run);
    if let Err(error) = result {
        // When the main thread is gone nobody is left to be told.
        let _ = failure.send(Message::Failed(error));
    }
}

struct Group {
    net: RealNet,
    shared: Arc<Shared>,
    mailbox: Mailbox<Order>,
    news: Mailbox<()>,
    letters: SyncSender<Message>,
    reached: Milestone,
    /// Moment to end at, once told to stop.
    end: Option<Time>,
}

impl Group {
    fn new(
        plan: Arc<Plan>,
        proof: Arc<Proof>,
        share: Share,
        mailbox: Mailbox<Order>,
        letters: SyncSender<Message>,
    ) -> Result<Group, String> {
        let mut net = event_loop::open(Waking::AtOnce)?;
        let (sender, news) =
            reactor::mailbox().map_err(|error| event_loop::wrong("make a mailbox", &error))?;
        event_loop::watch_mailbox(&mut net, &mailbox)?;
        event_loop::watch_mailbox(&mut net, &news)?;
        let shared = Arc::new(Shared {
            plan,
            proof,
            share,
            counts: Mutex::default(),
            orders: Mutex::new(Orders::Wait),
            ordered: Condvar::new(),
            news: sender,
        });
        for number in 0..shared.share.connections.min(CLIENTS_MAX) {
            let (shared, number) = (shared.clone(), shared.share.first + number);
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            let started = thread.spawn(move || live(&shared, number));
            started.map_err(|error| event_loop::wrong("start a client's thread", &error))?;
        }
        Ok(Group {
            net,
            shared,
            mailbox,
            news,
            letters,
            reached: Milestone::Opening,
            end: None,
        })
    }

    fn counted(&self) -> Box<Counted> {
        let mut counts = self.shared.counts();
        Box::new(Counted {
            group: self.shared.share.part.group as usize,
            stats: std::mem::take(&mut counts.stats),
            gauges: Gauges {
                connected: counts.connected.into(),
                executing: counts.executing.into(),
                waiting: 0,
                cpu: measure::process::thread_cpu(),
            },
            ..Counted::default()
        })
    }

    fn tell(&self, message: Message) {
        // The main thread outlives its groups; if it does not, the process is ending.
        let _ = self.letters.send(message);
    }
}

impl Turns for Group {
    fn net(&mut self) -> &mut RealNet {
        &mut self.net
    }

    fn deadline(&self) -> Time {
        self.end.unwrap_or(Time::NEVER)
    }

    fn obey(&mut self) {
        drop(self.news.take());
        for order in self.mailbox.take() {
            match order {
                Order::Start => self.shared.order(Orders::Run),
                Order::Report | Order::Checkpoint => self.tell(Message::Counted(self.counted())),
                Order::Reset => drop(self.counted()),
                Order::Users(_) | Order::Look => {}
                Order::Stop(end) => {
                    self.shared.order(Orders::Stop);
                    self.tell(Message::Counted(self.counted()));
                    self.end = Some(end);
                }
            }
        }
    }

    fn on_event(&mut self, _: &Event) {}

    fn turn(&mut self) {}

    fn is_over(&self) -> bool {
        let has_ended = self.shared.counts().ended >= self.shared.share.connections;
        self.end
            .is_some_and(|end| has_ended || self.net.now() >= end)
    }

    fn say_news(&mut self) {
        let (settled, ended, fatal) = {
            let mut counts = self.shared.counts();
            (counts.settled, counts.ended, counts.fatal.take())
        };
        let clients = self.shared.share.connections;
        if let Some(reason) = fatal {
            self.tell(Message::Fatal(reason));
        }
        if self.reached == Milestone::Opening && settled >= clients {
            self.reached = Milestone::Settled;
            self.tell(Message::Settled);
        }
        if self.reached == Milestone::Settled && ended >= clients {
            self.reached = Milestone::Finished;
            self.tell(Message::Finished);
        }
    }

    fn finish(self) {
        let mut last = self.counted();
        let counts = self.shared.counts();
        (last.tally, last.unfinished) = (counts.tally, counts.executing.into());
        drop(counts);
        self.tell(Message::Ended(last));
    }
}

/// Runs a client from its connection to its end.
fn live(shared: &Shared, number: u32) {
    let mut opened = open(shared, number, false);
    shared.counts().settled += 1;
    shared.news.send(());
    shared.wait_while(Orders::Wait, Duration::MAX);
    let mut random = Random::new(shared.plan.seed, number.into());
    let (mut busy, mut events) = (Duration::ZERO, 0);
    let mut deck = Vec::new();
    while shared.is_running() {
        let Some(client) = opened.take() else {
            opened = open(shared, number, true);
            if opened.is_none() {
                shared.wait_while(Orders::Run, RECONNECT_PAUSE);
            }
            continue;
        };
        if shared.share.events.take(1) == 0 {
            opened = Some(client);
            break;
        }
        let from = Time::now();
        let mut teller = Teller {
            shared,
            number,
            random: &mut random,
            deck: &mut deck,
            client,
            rested: Duration::ZERO,
        };
        let ended = shared.proof.subject.step(&mut teller);
        let took = Time::now().since(from).saturating_sub(teller.rested);
        busy += took;
        match ended {
            Ok(()) => {
                events += 1;
                let mut counts = shared.counts();
                counts.stats.events += 1;
                counts.stats.event_latency.record(took);
                drop(counts);
                opened = Some(teller.client);
            }
            Err(Stopped::Full | Stopped::Ended) => {
                opened = Some(teller.client);
                break;
            }
            Err(Stopped::Failed(fault)) => opened = teller.roll_back(&fault),
        }
    }
    if opened.is_some() {
        shared.counts().connected -= 1;
    }
    let mut counts = shared.counts();
    counts.tally.add(events, busy);
    counts.ended += 1;
    drop(counts);
    shared.news.send(());
}

/// Opens a connection and sets it up; what goes wrong is counted.
fn open(shared: &Shared, number: u32, again: bool) -> Option<Client> {
    let plan = &shared.plan;
    let from = Time::now();
    let (_, address) = plan.way_of(number);
    let mut phase = Phase::Connect;
    let opened = Client::connect(address, &plan.credentials, plan.connect_timeout);
    let opened = opened.and_then(|mut client| {
        phase = Phase::Init;
        let mut statements = plan.init_sql.iter();
        statements.try_for_each(|text| client.query(text.as_bytes()).map(drop))?;
        Ok(client)
    });
    let age = Time::now().since(from);
    let mut counts = shared.counts();
    match opened {
        Ok(client) => {
            counts.connected += 1;
            match again {
                false => counts.stats.connect_latency.record(age),
                true => counts.stats.reconnect_latency.record(age),
            }
            counts.stats.reconnects += u64::from(again);
            Some(client)
        }
        Err(fault) => {
            counts.stats.failed_connects += 1;
            counts.stats.error(phase, fault, Some(age));
            None
        }
    }
}

/// A client in an operation.
pub(super) struct Teller<'a> {
    shared: &'a Shared,
    number: u32,
    random: &'a mut Random,
    /// Cards that it has not been dealt yet.
    deck: &'a mut Vec<usize>,
    client: Client,
    /// Time of the operation in which it has rested.
    rested: Duration,
}

fn deal(deck: &mut Vec<usize>, cards: usize, random: &mut Random) -> usize {
    if deck.is_empty() {
        deck.extend(0..cards);
    }
    let left = u32::try_from(deck.len()).unwrap_or(u32::MAX);
    deck.swap_remove(random.below(left) as usize)
}

/// Reason for which an operation did not come to its end.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The history is full; nothing was sent.
    Full,
    /// The run ended while the client rested; nothing was sent.
    Ended,
    Failed(Fault),
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Stopped {
        Stopped::Failed(fault)
    }
}

impl Teller<'_> {
    /// A number from 0 to `bound` - 1.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        self.random.below(bound)
    }

    /// Deals the next card of the client's own deck, from 0 to `cards` - 1; one that is used up is
    /// shuffled anew.
    pub(super) fn deal(&mut self, cards: usize) -> usize {
        deal(self.deck, cards, self.random)
    }

    /// Number of the client, from 0.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The client's random numbers, as they are.
    pub(super) fn input(&self) -> Random {
        *self.random
    }

    /// Goes back to these random numbers.
    pub(super) fn repeat(&mut self, input: Random) {
        *self.random = input;
    }

    /// Draws something.
    pub(super) fn draw<T>(&mut self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(self.random)
    }

    /// Rests for so long; false if the run has ended.
    pub(super) fn rest(&mut self, time: Duration) -> bool {
        let from = Time::now();
        self.shared.wait_while(Orders::Run, time);
        self.rested += Time::now().since(from);
        self.shared.is_running()
    }

    /// True if the same is to be tried again after this error.
    pub(super) fn may_repeat(&self, fault: &Fault) -> bool {
        self.shared.plan.tolerance.ignores(fault) && self.shared.is_running()
    }

    /// Counts a transaction by its number in reports.
    pub(super) fn finished(&self, number: u16, took: Duration) {
        let mut counts = self.shared.counts();
        counts.stats.succeeded_with(number, took);
    }

    /// Rows of a statement, as texts.
    pub(super) fn rows<const N: usize>(&mut self, text: &str) -> Result<Vec<[String; N]>, Fault> {
        let mut rows = Vec::new();
        self.run(text, |row| {
            rows.push(columns(row).map(|value| String::from_utf8_lossy(value).into_owned()));
        })?;
        Ok(rows)
    }

    /// The only row of a statement.
    pub(super) fn row<const N: usize>(&mut self, text: &str) -> Result<Option<[String; N]>, Fault> {
        Ok(self.rows(text)?.pop())
    }

    /// Counts an answer without the row that must be there as a failure.
    pub(super) fn lacks_row(&self, text: &str) -> Fault {
        let fault = Fault::protocol(format!("no row: {text}"));
        let mut counts = self.shared.counts();
        counts.stats.failed(fault.clone(), false, None);
        fault
    }

    /// A number that no other write has, from 1.
    pub(super) fn next_number(&self) -> u64 {
        self.shared.proof.number()
    }

    /// Writes an operation down that is about to be sent; returns its place in the history.
    pub(super) fn begin(&self, act: Act, key: u32, value: u64) -> Result<usize, Stopped> {
        let history = &self.shared.proof.history;
        let place = history.begin(self.number, act, key, value);
        place.ok_or(Stopped::Full)
    }

    /// Notes what a read has seen.
    pub(super) fn saw(&self, place: usize, value: u64) {
        self.shared.proof.history.saw(place, value);
    }

    /// Does a write by these statements, of which the last one decides, and notes its answer.
    pub(super) fn write(&mut self, place: usize, texts: &[&str]) -> Result<(), Fault> {
        let ran = texts.iter().enumerate().try_for_each(|(at, text)| {
            let ran = self.run(text, |_| ());
            ran.map(drop).map_err(|fault| (at, fault))
        });
        let (answer, result) = match ran {
            Ok(()) => (Answer::Done, Ok(())),
            // Nothing can have been committed yet.
            Err((at, fault)) if at + 1 < texts.len() => (Answer::Refused, Err(fault)),
            Err((_, fault)) => (answer_of(&fault), Err(fault)),
        };
        if answer != Answer::Missing {
            self.shared.proof.history.answer(place, answer);
        }
        result
    }

    /// Runs a statement and counts it.
    pub(super) fn run(&mut self, text: &str, on_row: impl FnMut(&[u8])) -> Result<u64, Fault> {
        let (mut on_row, mut rows) = (on_row, 0);
        let from = Time::now();
        self.shared.counts().executing += 1;
        let ran = self.client.read(text.as_bytes(), |row| {
            rows += 1;
            on_row(row);
        });
        let (plan, now) = (&self.shared.plan, Time::now());
        let mut counts = self.shared.counts();
        counts.executing -= 1;
        match &ran {
            Ok(changed) => {
                let class = match (rows, changed) {
                    (1.., _) => Class::Read,
                    (_, 1..) => Class::Write,
                    _ => Class::Other,
                };
                let in_time = plan.model.in_time;
                counts.stats.succeeded(class, now.since(from), in_time);
                counts.stats.steps.answered(now);
            }
            Err(fault) => {
                let is_ignored = plan.tolerance.ignores(fault);
                if plan.tolerance.ends_at(fault) {
                    counts.fatal.get_or_insert_with(|| fault.words());
                    self.shared.news.send(());
                }
                let age = Some(now.since(from));
                counts.stats.failed(fault.clone(), is_ignored, age);
            }
        }
        ran
    }

    /// Ends what a failed operation has begun; the connection, if it is of use still.
    fn roll_back(mut self, fault: &Fault) -> Option<Client> {
        let is_of_server = !matches!(fault.code, 0..1000 | 2000..3000);
        if is_of_server && self.client.query(b"ROLLBACK").is_ok() {
            return Some(self.client);
        }
        let mut counts = self.shared.counts();
        counts.connected -= 1;
        counts.stats.lost += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deck_is_dealt_whole_before_it_is_shuffled_anew() {
        let (mut deck, mut random) = (Vec::new(), Random::new(5, 0));
        let mut decks = [0, 1].map(|_| [(); 23].map(|()| deal(&mut deck, 23, &mut random)));
        assert_ne!(decks[0], decks[1]);
        decks[0].sort_unstable();
        assert_eq!(decks[0], std::array::from_fn(|card| card));
    }
}
