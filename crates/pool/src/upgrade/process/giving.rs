//! A group that hands its listeners and clients to the group of its number in a new process.
//!
//! Called between two turns, it never waits: what it has sent is acknowledged by a message that
//! wakes the group. One batch is under way at a time, so a client is out of service for as long as
//! a batch takes. The next one has those whose statement has ended meanwhile (`departing.rs`), and
//! those who are idle. Who holds something is looked at again a little later.
//!
//! Invariant: when this fails, whatever the reason, all clients that were not acknowledged are
//! served here again. The group accepts again when it is told to: another process may do so
//! already.

use crate::client::closing;
use crate::group::Group;
use crate::group::tasks::Task;
use crate::group::tokens::{ClientId, UPGRADE};
use crate::upgrade::departures::{BATCH_CLIENTS, Going};
use crate::upgrade::process::{Progress, STEP_MAX, name_of_group};
use crate::upgrade::record::Stays;
use crate::upgrade::{departing, taking_in};
use handover::{Channel, ClientRecords, Come, DESCRIPTORS_MAX, Frame, Peer, Record};
use reactor::{Key, Net, RealNet, Time, Token};
use session::global_defaults::GlobalDefaults;
use session::record::PeerDefaults;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

const _: () = assert!(2 * BATCH_CLIENTS <= DESCRIPTORS_MAX);
/// Bytes of its records above which a batch is not made longer.
const BATCH_BYTES: usize = 128 * 1024;
/// Clients that could not go are looked at again after this, or after ten times what looking took.
const AGAIN: Duration = Duration::from_millis(5);
const AGAIN_FACTOR: u32 = 10;

/// Message that has been sent and is not acknowledged.
#[derive(Debug)]
enum Sent {
    Nothing,
    Listeners,
    Clients(Vec<ClientId>),
}

/// Clients that go together.
#[derive(Debug, Default)]
struct Batch {
    keys: Vec<ClientId>,
    records: Vec<ClientRecords>,
    bytes: usize,
    /// Moment since which the first of them has not been served.
    since: Time,
}

impl Batch {
    fn add(&mut self, key: ClientId, record: ClientRecords, since: Time) {
        self.since = match self.keys.is_empty() {
            true => since,
            false => self.since.min(since),
        };
        self.bytes += record.bytes();
        self.keys.push(key);
        self.records.push(record);
    }

    fn is_full(&self) -> bool {
        self.keys.len() == BATCH_CLIENTS || self.bytes >= BATCH_BYTES
    }
}

/// A group's end of a hand-over.
#[derive(Debug)]
pub(crate) struct Giving {
    index: usize,
    progress: Arc<Progress>,
    number: u64,
    channel: Channel,
    sent: Sent,
    /// Moment at which it was sent, and since which the first of its clients has not been served.
    sent_at: Time,
    since: Time,
    /// Global values that the other process has been sent, by their version.
    defaults_sent: HashSet<u64>,
    /// Clients to be looked at in this pass, and when the next one begins.
    pass: Vec<ClientId>,
    pass_left: BTreeMap<Stays, usize>,
    pass_began: Time,
    pass_at: Time,
}

impl Giving {
    /// Stops to accept and offers the listeners to the other process.
    ///
    /// # Errors
    /// Why it cannot begin.
    pub(crate) fn begin(
        group: &mut Group<RealNet>,
        index: usize,
        successor: Peer,
        progress: Arc<Progress>,
    ) -> Result<Giving, String> {
        let words = |error| format!("group {index} cannot reach its successor: {error}");
        let number = progress.steps().number;
        let socket = handover::dial(&name_of_group(successor.pid, index)).map_err(words)?;
        if handover::peer(&socket).map_err(words)? != successor {
            return Err(format!(
                "another process than {} listens for group {index}",
                successor.pid
            ));
        }
        let token = Token::new(UPGRADE, Key::from_parts(0, 0));
        group.parts.net.watch(&socket, token).map_err(words)?;
        let now = group.parts.net.now();
        let mut giving = Giving {
            index,
            progress,
            number,
            channel: Channel::new(socket),
            sent: Sent::Listeners,
            sent_at: now,
            since: now,
            defaults_sent: HashSet::new(),
            pass: Vec::new(),
            pass_left: BTreeMap::new(),
            pass_began: now,
            pass_at: Time(0),
        };
        group.parts.net.pause_listening();
        group.parts.client_side.departures.begin();
        let (greeted, again) = group.parts.clients.counted_to();
        let listeners: Vec<BorrowedFd<'_>> = group.parts.net.own_listeners().collect();
        let sent = (giving.channel).send(&Frame::Listeners { greeted, again }, &listeners);
        drop(listeners);
        if let Err(error) = sent {
            giving.give_up(group);
            return Err(words(error));
        }
        Ok(giving)
    }

    /// Carries on with the hand-over; returns the moment at which it is to be called again at the
    /// latest.
    ///
    /// # Errors
    /// Why it cannot go on: [`Giving::give_up`] is next.
    pub(crate) fn step(&mut self, group: &mut Group<RealNet>) -> Result<Time, String> {
        let index = self.index;
        let sent = self.channel.flush();
        sent.map_err(|error| format!("group {index} cannot send to its successor: {error}"))?;
        loop {
            match self.channel.receive()? {
                Come::Nothing => break,
                Come::End => return Err(format!("the successor of group {index} is gone")),
                Come::Frame(frame, _) => self.answered(group, frame)?,
            }
        }
        if !matches!(self.sent, Sent::Nothing) {
            let late = self.sent_at + STEP_MAX;
            if group.parts.net.now() >= late {
                self.progress.steps().is_silent = true;
                return Err(format!(
                    "the successor of group {index} has not answered within {} s",
                    STEP_MAX.as_secs()
                ));
            }
            return Ok(late);
        }
        if !self.channel.is_sent() {
            return Ok(group.parts.net.now() + STEP_MAX);
        }
        self.next_batch(group)
    }

    /// True if it has something to do already, behind a turn: nothing is under way, and clients
    /// wait to go.
    pub(crate) fn has_work(&self, group: &mut Group<RealNet>) -> bool {
        matches!(self.sent, Sent::Nothing)
            && self.channel.is_sent()
            && departing::has_departures(&mut group.parts)
    }

    fn answered(&mut self, group: &mut Group<RealNet>, frame: Frame) -> Result<(), String> {
        let why = match (std::mem::replace(&mut self.sent, Sent::Nothing), frame) {
            (Sent::Listeners, Frame::Taken(_)) => return Ok(()),
            (Sent::Clients(keys), Frame::Taken(verdicts)) if keys.len() == verdicts.len() => {
                self.apply(group, &keys, verdicts);
                return Ok(());
            }
            (sent, Frame::Refused { why }) => {
                self.sent = sent;
                why
            }
            (sent, _) => {
                self.sent = sent;
                "it has answered what it was not asked".to_owned()
            }
        };
        Err(format!("the successor of group {}: {why}", self.index))
    }

    fn apply(
        &mut self,
        group: &mut Group<RealNet>,
        keys: &[ClientId],
        verdicts: Vec<Option<String>>,
    ) {
        let took = Time::now().since(self.since);
        let mut moved = 0;
        for (key, verdict) in keys.iter().zip(verdicts) {
            match verdict {
                None => {
                    moved += 1;
                    closing::close(&mut group.parts, *key);
                }
                Some(why) => {
                    departing::refuse(&mut group.parts, *key);
                    self.progress.steps().refusal = Some(why);
                    taking_in::let_in(&mut group.parts, *key);
                }
            }
        }
        let mut steps = self.progress.steps();
        steps.moved += moved;
        steps.longest = steps.longest.max(took);
        steps.clients.insert(self.index, group.parts.clients.len());
    }

    fn next_batch(&mut self, group: &mut Group<RealNet>) -> Result<Time, String> {
        let mut batch = Batch::default();
        while !batch.is_full()
            && let Some((key, since)) = departing::next_departure(&mut group.parts)
        {
            match self.pack(group, key) {
                Ok(Packed::Record(record)) => batch.add(key, record, since),
                Ok(Packed::GlobalDefaults(defaults)) => {
                    group.parts.client_side.departures.put_back((key, since));
                    return self.send_defaults(group, batch, &defaults);
                }
                // Its record is too long: it is served here.
                Err(_) => group.parts.work.tasks.add(Task::Read(key)),
            }
        }
        if self.pass.is_empty() {
            if group.parts.net.now() < self.pass_at {
                return self.send_batch(group, batch);
            }
            self.pass = group.parts.clients.keys();
            self.pass_began = Time::now();
            self.pass_left.clear();
        }
        while !batch.is_full()
            && let Some(key) = self.pass.pop()
        {
            match self.pack(group, key) {
                Ok(Packed::Record(record)) => batch.add(key, record, group.parts.net.now()),
                Ok(Packed::GlobalDefaults(defaults)) => {
                    self.pass.push(key);
                    return self.send_defaults(group, batch, &defaults);
                }
                Err(why) => *self.pass_left.entry(why).or_default() += 1,
            }
        }
        if self.pass.is_empty() {
            self.end_pass(group, batch.keys.len());
        }
        self.send_batch(group, batch)
    }

    /// Ends a pass over all clients: reports the reasons for which those stay who are here.
    fn end_pass(&mut self, group: &Group<RealNet>, going: usize) {
        let now = Time::now();
        let took = now.since(self.pass_began);
        self.pass_at = now + AGAIN.max(took * AGAIN_FACTOR);
        let mut left = self.pass_left.clone();
        if going > 0 {
            left.insert(Stays::Moving, going);
        }
        let mut steps = self.progress.steps();
        if steps.number == self.number {
            steps.left.insert(self.index, left);
            steps.clients.insert(self.index, group.parts.clients.len());
        }
    }

    fn pack(&mut self, group: &mut Group<RealNet>, key: ClientId) -> Result<Packed, Stays> {
        match departing::goes(&mut group.parts, key) {
            Going::Now => {}
            Going::Soon(why) | Going::Not(why) => return Err(why),
        }
        let all = group.parts.client_view(key).map(|view| view.defaults());
        for defaults in all.unwrap_or_default() {
            if !self.defaults_sent.contains(&defaults.version()) {
                return Ok(Packed::GlobalDefaults(defaults));
            }
        }
        let record = group.parts.survey().packed(key);
        if record.is_err() {
            departing::refuse(&mut group.parts, key);
        }
        let record = record?;
        match taking_in::send_away(&mut group.parts, key) {
            true => Ok(Packed::Record(record)),
            false => Err(Stays::Busy),
        }
    }

    /// Sends global values that a record will name; behind the batch, if there is one.
    fn send_defaults(
        &mut self,
        group: &mut Group<RealNet>,
        batch: Batch,
        defaults: &GlobalDefaults,
    ) -> Result<Time, String> {
        if !batch.keys.is_empty() {
            return self.send_batch(group, batch);
        }
        let cannot = |why: &dyn Display| format!("group {} cannot send: {why}", self.index);
        let bytes = PeerDefaults::of(defaults).to_bytes();
        let bytes = bytes.map_err(|error| cannot(&error))?;
        let sent = self.channel.send(&Frame::GlobalDefaults(bytes), &[]);
        sent.map_err(|error| cannot(&error))?;
        self.defaults_sent.insert(defaults.version());
        Ok(Time(0))
    }

    /// Sends a batch; when to go on at the latest.
    fn send_batch(&mut self, group: &mut Group<RealNet>, batch: Batch) -> Result<Time, String> {
        if batch.keys.is_empty() {
            return Ok(self.pass_at);
        }
        let sockets = batch.keys.iter().flat_map(|key| {
            (group.parts.server_side.migrating).sockets(*key, &group.parts.clients)
        });
        let sockets: Vec<BorrowedFd<'_>> = sockets.map(AsFd::as_fd).collect();
        let sent = self.channel.send(&Frame::Clients(batch.records), &sockets);
        drop(sockets);
        self.sent = Sent::Clients(batch.keys);
        self.sent_at = Time::now();
        self.since = batch.since;
        let words = |error| format!("group {} cannot hand over clients: {error}", self.index);
        sent.map_err(words)?;
        Ok(self.sent_at + STEP_MAX)
    }

    /// Ends a failed hand-over: what was acknowledged has gone, everything else goes on here.
    pub(crate) fn give_up(mut self, group: &mut Group<RealNet>) {
        let served_on = group.parts.client_side.departures.end();
        (served_on.into_iter()).for_each(|key| group.parts.work.tasks.add(Task::Read(key)));
        let last = self.channel.last_word();
        let sent = std::mem::replace(&mut self.sent, Sent::Nothing);
        if let Sent::Clients(keys) = sent {
            match last {
                Some(Frame::Taken(verdicts)) if verdicts.len() == keys.len() => {
                    self.apply(group, &keys, verdicts);
                }
                _ => (keys.iter()).for_each(|key| taking_in::let_in(&mut group.parts, *key)),
            }
        }
    }
}

/// Form of a client on its way.
enum Packed {
    Record(ClientRecords),
    /// Something has to be sent before it.
    GlobalDefaults(GlobalDefaults),
}
