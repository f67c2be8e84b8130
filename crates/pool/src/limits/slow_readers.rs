//! Clients that do not read their replies, and what they may keep from the others.
//!
//! The problem: a backend is not read while its client has not taken the last bytes, so a client
//! that stops to read keeps its backend. A few dozen of them keep all, and nobody else is served. A
//! slow reader is no criminal: an export to a slow disk looks the same.
//!
//! The mechanism, while others wait for a backend:
//! 1. Readers that have held up a backend for [`SLOW_AFTER`] may keep a share of the group's
//!    (`slow_backends_percent_max`), and those of one user `[[user]] slow_backends_max`. A text
//!    whose reader was slow is known to be long (`long_texts.rs`): its next runs count from their
//!    start, and while the share is used up ([`SlowReaders::is_squeezed`]) they are set aside in
//!    their queue (`queue.rs`). Then writes, statements of digests that are known to be short, and
//!    those of clients that have had a reply meanwhile wait in the high queue (`queueing.rs`), for
//!    which backends are reserved: any other text that nobody knows may be one more long one.
//!    One of these unknown texts at a time is tried on a backend besides the reserve: first those
//!    that are not like long ones ([`SlowReaders::is_like_long`]); of these that of the client that
//!    has run most statements, and of equal ones the last come, so that a client's statement does
//!    not wait behind long ones that came before it. While slow readers have half of the backends,
//!    nothing that is like long ones is started. A trial is over when the reply has ended, when its
//!    reader is slow, or after [`TRIAL_MAX`]; behind one whose reader was slow, the one that has
//!    waited for longest is tried.
//!    So that there is a backend for a trial when many come at once, half of the backends run texts
//!    of a shape at first (`first_runs.rs`).
//! 2. Of those beyond it, the one that has taken nothing for longest comes first: its reply is
//!    taken off its backend ([`Rest::Spooled`]), into memory first and then into the spool
//!    (`spool.rs`), from which the client reads at its own pace. Its backend is checked in behind
//!    its reply, as any other is. Within a transaction, or with a pin, it is not, so such a reply
//!    is left where it is. Where its last statement has begun the transaction (as with autocommit
//!    off), that is seen when the reply has ended: the reader counts as one that holds a backend
//!    from then on.
//!    Where statements of other clients were sent behind it on its backend, it goes first, whatever
//!    the share: they wait for its end.
//!    A long reply takes its time on the way into the spool, and the server's: one of a group goes
//!    there at a time (`collecting.rs`).
//!    While statements that were set aside wait, one reader within the share makes room for them.
//! 3. One beyond the share whose reply cannot be taken off its backend, because its session keeps
//!    that or the spool has no room, is closed once it has taken nothing for `slow_reader_ms_max`.
//!    Where the spool has no room, so is the reader of all groups that has taken nothing for
//!    longest, one a second. The log and the census say so.
//! 4. A client whose reply does not come out of the spool, because its disk fails or does not
//!    answer, is closed.
//!
//! Each group keeps its part of the share, so all groups together keep the whole.
//!
//! [`SlowReaders`] knows who is slow and says what is to be done; the group reads on, and closes.
//!
//! Invariant: whose reply is taken off its backend is sent every byte of it in order, or is closed.

use crate::backend::{Backend, Purpose};
use crate::client::{Client, ClientState, Output, Rest};
use crate::config::Settings;
use crate::group::shared::Shared;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::slow_readers::collecting::Collecting;
use crate::limits::slow_readers::first_runs::{FirstRuns, TRIAL_MAX};
use crate::limits::slow_readers::long_texts::LongTexts;
use crate::limits::spool::{Spool, Tail};
use reactor::{Slots, Time};
use session::known_digests::REPLY_MAX;
use session::meter::Meter;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A reader that takes its reply is held up for a moment now and then; one that has held up its
/// backend for so long is slow.
const SLOW_AFTER: Duration = Duration::from_millis(20);
/// Clients of a group that are remembered to have had replies while others are slow.
const PROVEN_MAX: usize = 4096;
/// Bytes of a reply that wait in memory before the rest goes to the file.
const MEMORY_MAX: usize = 16 * 1024;

/// Reason why a reader is closed whose reply cannot be taken off its backend.
const KEEPS_BACKEND: &str =
    "it keeps a backend for its transaction or a pin while others wait for one";
/// Reason why the one is closed that has taken nothing for longest.
pub(crate) const NO_ROOM: &str = "the spool (spool_bytes_max) has no room and others wait";

/// A client that holds up its backend.
#[derive(Clone, Copy, Debug)]
struct Reader {
    /// Moment at which it took bytes last.
    since: Time,
    client: ClientId,
    backend: BackendId,
    user: usize,
    /// Digest of its statement.
    digest: u64,
    /// Its transaction or a pin keeps its backend when its reply has ended.
    keeps_backend: bool,
    /// Statements of others were sent behind its own.
    has_followers: bool,
}

impl Reader {
    /// A reader behind whose statement no other was sent on its backend.
    fn new<S>(
        key: ClientId,
        client: &Client<S>,
        backend: BackendId,
        crowd: &Crowd<'_, S>,
    ) -> Reader {
        let own = client.backend_in(crowd.backends);
        Reader {
            since: client.since(),
            client: key,
            backend,
            user: client.identity.user(),
            digest: client.session.statement.digest,
            keeps_backend: client.session.is_held()
                || own.is_some_and(|own| own.session.in_transaction()),
            has_followers: false,
        }
    }
}

/// Next bytes for a client whose reply was taken off its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextOfSpool {
    /// Nothing: it has been sent all.
    Nothing,
    /// Block in memory.
    InMemory,
    /// Block to come from the file.
    OnDisk,
}

/// Action by which others get backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relief {
    /// Backend to be read on: its client takes more, or its reply goes on into the spool.
    ReadOn(BackendId),
    /// Backend whose reply goes to the spool from now on.
    TakeOff(BackendId),
    /// Client to be closed, for this reason.
    End(ClientId, &'static str),
}

/// Those of whom readers are slow, as they are at this moment.
pub(crate) struct Crowd<'a, S> {
    pub(crate) clients: &'a mut Slots<Client<S>, ClientId>,
    pub(crate) backends: &'a Slots<Backend<S>, BackendId>,
    pub(crate) settings: &'a Settings,
    pub(crate) shared: &'a Shared,
    /// The group's number.
    pub(crate) group: usize,
    pub(crate) now: Time,
}

/// A backend whose statement counts in the share: its text is known to be long, or its reader has
/// become slow.
#[derive(Clone, Copy, Debug)]
struct Long {
    backend: BackendId,
    client: ClientId,
    is_slow: bool,
    /// True if it has become so when it was tried.
    is_tried: bool,
}

/// Waiting statements that want the backends of slow readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// True if some statement waits, or another group is owed a backend.
    pub(crate) any: bool,
    /// True if a statement waits that is known to be long.
    pub(crate) long: bool,
}

/// The slow readers of a group.
#[derive(Debug)]
pub(crate) struct SlowReaders {
    /// Backends that are, or have been, held up by the clients of the replies in front.
    held_up: Vec<BackendId>,
    /// Clients whose replies were taken off their backends.
    spooled: Vec<ClientId>,
    /// Choice of the one that is taken off its backend now.
    collecting: Collecting,
    /// Backends that run statements which count in the share.
    long: Vec<Long>,
    /// Backends kept by transactions of readers whose replies are off them, as of the last turn.
    within: usize,
    /// Texts whose replies are known to hold up backends.
    texts: LongTexts,
    /// First runs of texts of shapes of which none has ended.
    first_runs: FirstRuns,
    /// Clients that have had replies since some are slow.
    proven: HashSet<ClientId>,
    /// Client whose unknown text is tried, and since when.
    trial: Option<(ClientId, Time)>,
    /// True if the next trial is that of the one that waits for longest.
    tries_oldest: bool,
    /// Moment at which the next reader beyond the share has taken nothing for too long.
    next_end: Time,
    /// Backends that slow readers of limited users hold here, as all groups were told.
    of_users: BTreeMap<usize, usize>,
    /// Replies that were taken off their backends.
    pub(crate) spool: Spool,
}

/// Places in which bytes that a client has not taken are kept, and counted.
#[derive(Clone, Copy)]
pub(crate) struct Keeps<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) outputs: &'a Meter,
}

impl SlowReaders {
    /// Nobody yet, with this spool.
    pub(crate) fn new(spool: Spool) -> SlowReaders {
        SlowReaders {
            held_up: Vec::new(),
            spooled: Vec::new(),
            collecting: Collecting::default(),
            long: Vec::new(),
            within: 0,
            texts: LongTexts::default(),
            first_runs: FirstRuns::new(),
            proven: HashSet::new(),
            trial: None,
            tries_oldest: false,
            next_end: Time::NEVER,
            of_users: BTreeMap::new(),
            spool,
        }
    }

    /// Keeps what a client cannot be sent now, at the end of what it is still to be sent.
    pub(crate) fn keep<S>(
        &mut self,
        (key, client): (ClientId, &mut Client<S>),
        bytes: &[u8],
        keeps: Keeps<'_>,
        now: Time,
    ) {
        if client.output.is_none() {
            // The write limit counts from here.
            client.count_from(now);
        }
        let transport_bytes = client.transport.unsent_bytes();
        let output = client.output.get_or_insert_default();
        output.transport_bytes = transport_bytes;
        let unsent = output.bytes.len() - output.sent;
        match &mut output.rest {
            Rest::Spooled(tail) if tail.len() > 0 || unsent >= MEMORY_MAX => {
                self.spool
                    .append(tail, bytes, key, keeps.shared.spool_of_all());
                self.collecting.heard(key, now);
            }
            _ => output.bytes.extend_from_slice(bytes),
        }
        output.count(keeps.outputs);
    }

    /// Moves the next bytes to a client of which all in memory has been sent if they are at hand;
    /// asks for them if they are in the file.
    pub(crate) fn next(
        &mut self,
        (key, output): (ClientId, &mut Output),
        Keeps { shared, outputs }: Keeps<'_>,
    ) -> NextOfSpool {
        (output.bytes, output.sent) = (Vec::new(), 0);
        let Rest::Spooled(tail) = &mut output.rest else {
            return NextOfSpool::Nothing;
        };
        let next = match tail.take_last() {
            Some(bytes) => {
                output.bytes = bytes;
                NextOfSpool::InMemory
            }
            None if tail.len() == 0 => NextOfSpool::Nothing,
            None => {
                self.spool.fetch(tail, key, &shared.jobs.spool);
                NextOfSpool::OnDisk
            }
        };
        output.count(outputs);
        next
    }

    /// Notes a written block of a client's reply, and fetches it if the client waits for it.
    pub(crate) fn stored(&mut self, key: ClientId, output: Option<&mut Output>, shared: &Shared) {
        self.spool.has_dealt();
        let Some(output) = output else { return };
        let is_next = output.waits_for_spool();
        if let Rest::Spooled(tail) = &mut output.rest {
            tail.stored();
            if is_next {
                self.spool.fetch(tail, key, &shared.jobs.spool);
            }
        }
    }

    /// Takes a block of a client's reply that was read back; `true` if it is to be sent in its
    /// turn.
    pub(crate) fn fetched(
        &mut self,
        output: Option<&mut Output>,
        bytes: Vec<u8>,
        (shared, outputs): (&Shared, &Meter),
    ) -> bool {
        self.spool.has_read();
        let Some(output) = output else { return false };
        let Rest::Spooled(tail) = &mut output.rest else {
            return false;
        };
        self.spool.fetched(tail, shared.spool_of_all());
        (output.bytes, output.sent) = (bytes, 0);
        output.count(outputs);
        true
    }

    /// Gives back what the spool has for a client that is gone.
    pub(crate) fn drop_rest(&mut self, rest: Rest, shared: &Shared) {
        if let Rest::Spooled(tail) = rest {
            self.spool.drop_tail(tail, shared.spool_of_all());
        }
    }

    /// Notes that a backend is not read because its client has not taken the last bytes.
    pub(crate) fn note_held_up<S>(&mut self, key: BackendId, backend: &mut Backend<S>, now: Time) {
        backend.flight.hold_up(now);
        if !self.held_up.contains(&key) {
            self.held_up.push(key);
        }
    }

    /// True if more of this client's reply can be taken off its backend now.
    pub(crate) fn collects(&self, client: ClientId, shared: &Shared, now: Time) -> bool {
        self.collecting.takes(client) && self.spool.takes_more(&shared.retained.spool, now)
    }

    /// Backends that count in the share.
    fn backends(&self) -> usize {
        self.long.len() + self.within
    }

    /// True if a backend counts in the share, or is held up already.
    pub(crate) fn counts(&self, backend: BackendId) -> bool {
        self.long.iter().any(|long| long.backend == backend) || self.held_up.contains(&backend)
    }

    /// True while the share is used up: no statement that is known to be long is started.
    pub(crate) fn is_squeezed(&self, settings: &Settings, shared: &Shared, group: usize) -> bool {
        self.backends() >= slow_max(settings, shared, group).max(1)
    }

    /// True if the text of this digest is known to be long.
    pub(crate) fn is_long(&self, digest: u64) -> bool {
        self.texts.is_long(digest)
    }

    /// True if the text of this digest is of a shape whose texts are known to be long.
    pub(crate) fn is_like_long(&self, digest: u64) -> bool {
        self.texts.is_like_long(digest)
    }

    /// Notes the start of a statement that is known to be long on this backend.
    pub(crate) fn start_long(&mut self, backend: BackendId, client: ClientId) {
        self.checked_in(backend);
        self.long.push(Long {
            backend,
            client,
            is_slow: false,
            is_tried: false,
        });
    }

    /// Notes the start of a statement with a text of this digest, which nobody knows.
    pub(crate) fn start_unknown(&mut self, digest: u64, now: Time) {
        let is_like_long = self.texts.is_like_long(digest);
        self.first_runs.begin(digest, is_like_long, now);
    }

    /// True if no more texts of the shape of this one are started: none has ended, and `half` of
    /// the backends have just begun one; or they are like long ones, the share is used up
    /// (`squeezed`), and slow readers have half of the backends, or may soon.
    pub(crate) fn has_alike(&self, digest: u64, half: usize, squeezed: bool, now: Time) -> bool {
        let begun = || self.first_runs.begun(digest, now);
        match squeezed && self.texts.is_like_long(digest) {
            true => self.backends() + begun() >= half,
            false => !self.first_runs.has_ended(digest) && begun() >= half,
        }
    }

    /// Next moment at which a text that has just been started counts no more as such.
    pub(crate) fn next_started(&self, now: Time) -> Time {
        self.first_runs.next(now)
    }

    /// Notes that a backend is checked in: whoever waits may have it.
    pub(crate) fn checked_in(&mut self, backend: BackendId) {
        self.long.retain(|long| long.backend != backend);
    }

    /// True if a client has had a reply since some are slow.
    pub(crate) fn is_proven(&self, client: ClientId) -> bool {
        self.proven.contains(&client)
    }

    /// Starts the trial of this client's unknown text.
    pub(crate) fn start_trial(&mut self, client: ClientId, now: Time) {
        self.trial = Some((client, now));
    }

    /// True while an unknown text that is tried waits, or runs and may still be short.
    pub(crate) fn has_trial<S>(&self, clients: &Slots<Client<S>, ClientId>, now: Time) -> bool {
        let tried = |(key, since): (ClientId, Time)| Some((clients.get(key)?, since));
        self.trial.and_then(tried).is_some_and(|(client, since)| {
            let runs = client.state() != ClientState::Idle || client.backend().is_some();
            client.state() == ClientState::Waiting || runs && now < since + TRIAL_MAX
        })
    }

    /// Backends that short statements have besides before another text is tried: one while a text
    /// that was tried in vain keeps its own.
    pub(crate) fn besides_trials(&self) -> usize {
        usize::from(self.long.iter().any(|long| long.is_tried))
    }

    /// True if the one that waits for longest is tried next.
    pub(crate) fn tries_oldest(&self) -> bool {
        self.tries_oldest
    }

    /// Notes the end of a client's statement with a text of this digest on this backend.
    pub(crate) fn statement_ended(&mut self, backend: BackendId, digest: u64, client: ClientId) {
        self.first_runs.end(digest);
        if !self.texts.is_empty() || !self.long.is_empty() {
            self.ended_beside_slow(backend, digest, client);
        }
    }

    /// Notes the end of a statement where some are long, or were.
    fn ended_beside_slow(&mut self, backend: BackendId, digest: u64, client: ClientId) {
        let ended = self.long.iter().position(|long| long.backend == backend);
        let ended = ended.map(|at| self.long.swap_remove(at));
        if ended.is_some_and(|long| long.is_slow) {
            self.proven.remove(&client);
            return;
        }
        self.texts.was_quick(digest);
        if !self.is_empty() {
            if self.proven.len() >= PROVEN_MAX {
                self.proven.clear();
            }
            self.proven.insert(client);
            self.trial.take_if(|(tried, _)| *tried == client);
        }
    }

    /// True if nobody is, or was a moment ago, slow.
    fn is_empty(&self) -> bool {
        let is_any = !self.held_up.is_empty() || !self.spooled.is_empty() || !self.long.is_empty();
        !is_any && self.of_users.is_empty()
    }

    /// True if nobody is slow, and nothing is left to be done for who was.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_empty() && self.within == 0 && self.collecting.is_at_rest()
    }

    /// Looks who is slow, and whose reply is taken off its backend, while others wait for those
    /// (`demand`). Says what is to be done, in this order.
    pub(crate) fn relieve<S>(&mut self, crowd: &mut Crowd<'_, S>, demand: Demand) -> Vec<Relief> {
        self.next_end = Time::NEVER;
        if self.is_empty() {
            (self.proven, self.trial) = (HashSet::new(), None);
            self.within = 0;
            self.collecting.end(&crowd.shared.retained.collecting);
            return Vec::new();
        }
        self.forget_quick(crowd);
        let mut slow = self.on_backends(crowd);
        self.note_long(&slow);
        let within = self.within(crowd);
        self.within = within.len();
        slow.extend(within);
        let line = self.under_way(crowd);
        self.publish_slow(&slow, crowd.settings);
        self.choose_collected(&line, crowd);
        let may_read = |backend: &_| self.may_read(backend, crowd.clients, crowd.shared, crowd.now);
        let read_on = self.held_up(crowd.backends).filter(|(_, b)| may_read(b));
        let mut relief: Vec<Relief> = read_on.map(|(key, _)| Relief::ReadOn(key)).collect();
        let max = slow_max(crowd.settings, crowd.shared, crowd.group);
        let mut over = self.backends().saturating_sub(max);
        let has_room = self.spool.has_room(&crowd.shared.retained.spool, crowd.now);
        match has_room {
            // They leave their backends by themselves.
            true => over = over.saturating_sub(line.len()),
            false => {
                let line = self.spooled(crowd.clients).filter(|(_, c)| is_under_way(c));
                slow.extend(line.filter_map(|(key, client)| stuck(key, client, crowd)));
            }
        }
        let is_full = self.backends() >= max && line.is_empty();
        let mut makes_room = demand.long && is_full;
        if makes_room && !has_room {
            crowd.shared.retained.spool.note_lack(crowd.now);
            makes_room = false;
        }
        slow.retain(|reader| demand.any || reader.has_followers);
        slow.sort_unstable_by_key(|reader| reader.since);
        let mut of_users = self.users_over(crowd.settings);
        for reader in slow {
            let of_user = of_users.get_mut(&reader.user).filter(|over| **over > 0);
            if over > 0 || of_user.is_some() || reader.has_followers {
                over = over.saturating_sub(1);
                of_user.into_iter().for_each(|over| *over -= 1);
                relief.extend(self.relieve_of(reader, crowd));
            } else if makes_room && let Some(taken_off) = self.take_off(reader, crowd) {
                makes_room = false;
                relief.push(taken_off);
            }
        }
        self.publish_longest(crowd);
        relief
    }

    /// True if a backend may be read: there may be bytes, and the client that they are for has
    /// taken the last ones, or its reply goes to the spool now.
    pub(crate) fn may_read<S>(
        &self,
        backend: &Backend<S>,
        clients: &Slots<Client<S>, ClientId>,
        shared: &Shared,
        now: Time,
    ) -> bool {
        let owner = match backend.flight.front() {
            // The pool takes what it has asked for itself, whatever its client has taken.
            Some(command) if command.purpose != Purpose::Statement => None,
            Some(command) => command.owner.or(backend.client()),
            None => backend.client(),
        };
        let waiting = |owner: ClientId| Some((owner, clients.get(owner)?.output.as_deref()?));
        let in_flight = backend.flight.len();
        let takes = |(owner, output): (ClientId, &Output)| match output.rest {
            Rest::OnBackend => has_room(output.bytes.len(), in_flight),
            Rest::Spooled(_) => self.collects(owner, shared, now),
        };
        backend.transport.is_readable() && owner.and_then(waiting).is_none_or(takes)
    }

    /// Takes a reply off its backend; where that cannot be, its reader may have to go.
    fn relieve_of<S>(&mut self, reader: Reader, crowd: &mut Crowd<'_, S>) -> Option<Relief> {
        let why = if reader.keeps_backend {
            KEEPS_BACKEND
        } else if !self.spool.has_room(&crowd.shared.retained.spool, crowd.now) {
            crowd.shared.retained.spool.note_lack(crowd.now);
            NO_ROOM
        } else {
            return self.take_off(reader, crowd);
        };
        let goes_at = reader.since + crowd.settings.slow_reader_max;
        if crowd.now >= goes_at {
            return Some(Relief::End(reader.client, why));
        }
        self.next_end = self.next_end.min(goes_at);
        None
    }

    /// Takes a reply off its backend, if its session lets go of that and it is not off already.
    fn take_off<S>(&mut self, reader: Reader, crowd: &mut Crowd<'_, S>) -> Option<Relief> {
        if reader.keeps_backend {
            return None;
        }
        let client = crowd.clients.get_mut(reader.client)?;
        if client.spooled().is_some() {
            return None;
        }
        client.output.as_mut()?.rest = Rest::Spooled(Tail::default());
        match reader.has_followers {
            true => self.spooled.insert(0, reader.client),
            false => self.spooled.push(reader.client),
        }
        Some(Relief::TakeOff(reader.backend))
    }

    /// Clients whose replies are not at their ends and go to the spool, in line for that.
    fn under_way<S>(&self, crowd: &Crowd<'_, S>) -> Vec<ClientId> {
        let spooled = self.spooled(crowd.clients);
        let under_way = spooled.filter(|(_, client)| is_under_way(client));
        under_way.map(|(key, _)| key).collect()
    }

    /// The backends of `held_up` that are there.
    fn held_up<'a, S>(
        &self,
        backends: &'a Slots<Backend<S>, BackendId>,
    ) -> impl Iterator<Item = (BackendId, &'a Backend<S>)> {
        let held_up = self.held_up.iter();
        held_up.filter_map(|key| Some((*key, backends.get(*key)?)))
    }

    /// The clients of `spooled` whose replies are off their backends.
    fn spooled<'a, S>(
        &self,
        clients: &'a Slots<Client<S>, ClientId>,
    ) -> impl Iterator<Item = (ClientId, &'a Client<S>)> {
        let spooled = self.spooled.iter();
        let spooled = spooled.filter_map(|key| Some((*key, clients.get(*key)?)));
        spooled.filter(|(_, client)| client.spooled().is_some())
    }

    /// Chooses whose reply of those in line is taken off its backend now.
    fn choose_collected<S>(&mut self, line: &[ClientId], crowd: &Crowd<'_, S>) {
        let key = self.collecting.client();
        let client = key.and_then(|key| crowd.clients.get(key));
        let backend = client.and_then(|client| client.backend_in(crowd.backends));
        let has_more = backend.is_some_and(|backend| backend.transport.is_readable());
        let all = &crowd.shared.retained.collecting;
        if let Some(had) = self.collecting.choose(line, has_more, crowd.now, all) {
            self.spooled.retain(|key| *key != had);
            self.spooled.push(had);
        }
    }

    /// Forgets backends and clients that nothing holds up any more.
    fn forget_quick<S>(&mut self, crowd: &Crowd<'_, S>) {
        let held_up = self.held_up(crowd.backends);
        let held_up = held_up.filter(|(_, backend)| backend.flight.held_up_since().is_some());
        self.held_up = held_up.map(|(key, _)| key).collect();
        self.spooled = self.spooled(crowd.clients).map(|(key, _)| key).collect();
        self.long.retain(|long| {
            let backend = crowd.backends.get(long.backend);
            backend.is_some_and(|b| b.client() == Some(long.client) && !b.flight.is_empty())
        });
    }

    /// Counts the backends of these readers in the share, and their texts as long.
    fn note_long(&mut self, slow: &[Reader]) {
        for reader in slow {
            let long = self.long.iter_mut();
            let mut long = long.filter(|long| long.backend == reader.backend);
            let known = match long.next() {
                Some(known) => known,
                None => self.long.push_mut(Long {
                    backend: reader.backend,
                    client: reader.client,
                    is_slow: false,
                    is_tried: false,
                }),
            };
            if !std::mem::replace(&mut known.is_slow, true) {
                self.texts.was_slow(reader.digest);
                let tried = self.trial.take_if(|(tried, _)| *tried == reader.client);
                known.is_tried = tried.is_some();
                self.tries_oldest ^= tried.is_some();
            }
        }
    }

    /// Readers that hold up a backend now with the reply on it.
    fn on_backends<S>(&self, crowd: &Crowd<'_, S>) -> Vec<Reader> {
        let now = crowd.now;
        let on_backend = self
            .held_up(crowd.backends)
            .filter_map(|(backend_id, backend)| {
                let since = backend.flight.held_up_since()?;
                let front = backend.flight.front()?;
                let owner = (front.owner).filter(|_| front.purpose == Purpose::Statement)?;
                let client = crowd.clients.get(owner)?;
                let waits = client.output.as_ref()?.rest.is_on_backend();
                (waits && now.since(since) >= SLOW_AFTER).then(|| Reader {
                    has_followers: backend.flight.has_followers(),
                    ..Reader::new(owner, client, backend_id, crowd)
                })
            });
        on_backend.collect()
    }

    /// Readers whose replies are off their backends, which their transactions keep.
    fn within<S>(&self, crowd: &Crowd<'_, S>) -> Vec<Reader> {
        let now = crowd.now;
        let within = self.spooled(crowd.clients).filter_map(|(key, client)| {
            let backend = (client.backend()).filter(|_| client.state() == ClientState::Idle)?;
            (now.since(client.since()) >= SLOW_AFTER)
                .then(|| Reader::new(key, client, backend, crowd))
        });
        within.collect()
    }

    /// Tells all groups how many backends the slow readers of each limited user hold here.
    fn publish_slow(&mut self, slow: &[Reader], settings: &Settings) {
        let mut now: BTreeMap<usize, usize> = BTreeMap::new();
        for reader in slow {
            let user = &settings.users[reader.user];
            if user.limits.slow_backends_max.is_some() {
                *now.entry(reader.user).or_default() += 1;
            }
        }
        let all = |user: &usize| &settings.users[*user].usage.slow;
        for (user, count) in &now {
            all(user).fetch_add(*count, Relaxed);
        }
        for (user, count) in &self.of_users {
            all(user).fetch_sub(*count, Relaxed);
        }
        self.of_users = now;
    }

    /// Number of backends by which slow readers of users are over their limits.
    fn users_over(&self, settings: &Settings) -> BTreeMap<usize, usize> {
        let over = |user: &usize| {
            let of_user = &settings.users[*user];
            let max = of_user.limits.slow_backends_max?;
            let slow = of_user.usage.slow.load(Relaxed);
            Some((*user, slow.saturating_sub(max)))
        };
        self.of_users.keys().filter_map(over).collect()
    }

    /// The reader that has taken nothing for longest and has room of the spool, or wants some.
    fn longest<S>(&self, crowd: &Crowd<'_, S>) -> Option<(Time, ClientId)> {
        let spooled = self.spooled(crowd.clients);
        let spooled = spooled.filter(|(_, client)| !client.waits_for_spool());
        let spooled = spooled.map(|(key, client)| (client.since(), key));
        let slow = self.on_backends(crowd).into_iter();
        let slow = (slow.chain(self.within(crowd))).map(|reader| (reader.since, reader.client));
        spooled.chain(slow).min()
    }

    /// Tells all groups since when the slowest reader here has taken nothing.
    fn publish_longest<S>(&self, crowd: &Crowd<'_, S>) {
        let longest = self.longest(crowd);
        let since = longest.map_or(Time::NEVER, |(since, _)| since);
        crowd.shared.retained.spool.note_longest(crowd.group, since);
    }

    /// Reader to be closed where the spool has no room: the one that has taken nothing for longest.
    pub(crate) fn longest_to_end<S>(&mut self, crowd: &Crowd<'_, S>) -> Option<ClientId> {
        if self.spooled.is_empty() && self.held_up.is_empty() {
            return None;
        }
        self.forget_quick(crowd);
        self.publish_longest(crowd);
        let (all, now) = (&crowd.shared.retained.spool, crowd.now);
        let stuck = self.held_up(crowd.backends).any(|(_, backend)| {
            let client = backend.client_in(crowd.clients);
            client.is_some_and(|client| client.spooled().is_some())
        });
        if stuck && !self.spool.has_room(all, now) {
            all.note_lack(now);
        }
        let (since, key) = self.longest(crowd)?;
        let goes = all.is_longest(crowd.group, since)
            && self.spool.lacks(all, now)
            && now.since(since) >= crowd.settings.slow_reader_max;
        goes.then_some(key)
    }

    /// Moment at which the next reader becomes slow, while others wait (`others_wait`).
    pub(crate) fn next_relief<S>(
        &self,
        backends: &Slots<Backend<S>, BackendId>,
        others_wait: bool,
        now: Time,
    ) -> Time {
        let slow_at = self.held_up(backends).filter_map(|(_, backend)| {
            let matters = others_wait || backend.flight.has_followers();
            backend.flight.held_up_since().filter(|_| matters)
        });
        let relief = slow_at.map(|since| since + SLOW_AFTER);
        let relief = relief.filter(|at| *at > now).min();
        let trial_end = self.trial.filter(|_| others_wait);
        let trial_end = trial_end.map_or(Time::NEVER, |(_, since)| since + TRIAL_MAX);
        let later = |at: Time| if at > now { at } else { Time::NEVER };
        relief
            .unwrap_or(Time::NEVER)
            .min(later(self.next_end))
            .min(later(trial_end))
            .min(self.collecting.next_choice())
    }

    /// Number of readers that hold up a backend now, of replies that are off their backends, and of
    /// bytes of the spool that those have.
    pub(crate) fn count<S>(
        &self,
        clients: &Slots<Client<S>, ClientId>,
        backends: &Slots<Backend<S>, BackendId>,
    ) -> (usize, usize, usize) {
        let waits = |(_, backend): &(BackendId, &Backend<S>)| {
            let client = backend.client_in(clients);
            client.is_some_and(|c| c.output.as_ref().is_some_and(|o| o.rest.is_on_backend()))
        };
        let slow = self.held_up(backends).filter(waits).count();
        (slow, self.spooled(clients).count(), self.spool.used())
    }

    /// Returns the group's claim on all groups' turns at its end.
    pub(crate) fn end(&mut self, shared: &Shared) {
        self.collecting.end(&shared.retained.collecting);
    }
}

/// True if the reply of a client of those in the spool is not at its end.
fn is_under_way<S>(client: &Client<S>) -> bool {
    let waits = client.backend().is_some() && client.state() != ClientState::Idle;
    waits && !client.ended.is_closing()
}

/// A reader whose reply is on its way into a spool that has no room. One that waits for what is in
/// the spool is none: it can take nothing.
fn stuck<S>(key: ClientId, client: &Client<S>, crowd: &Crowd<'_, S>) -> Option<Reader> {
    let backend = client.backend()?;
    (!client.waits_for_spool()).then(|| Reader::new(key, client, backend, crowd))
}

/// Backends of a group that slow readers may hold while others wait.
fn slow_max(settings: &Settings, shared: &Shared, group: usize) -> usize {
    part_of(
        shared.budget.share(group),
        settings.slow_backends_percent_max,
    )
}

/// Backends of this percentage: at least one where others keep one besides.
fn part_of(share: usize, percent: usize) -> usize {
    let least = usize::from(share > 1 && percent > 0);
    (share * percent / 100).max(least)
}

/// True if a backend is read although its client has not taken so many bytes. Behind a reply that
/// others are pipelined with, as much as a trusted reply has is kept.
fn has_room(untaken: usize, in_flight: usize) -> bool {
    in_flight > 1 && untaken < REPLY_MAX
}

pub(crate) mod collecting;
pub(crate) mod first_runs;
pub(crate) mod long_texts;
pub(crate) mod relieving;
#[cfg(test)]
mod tests;
pub(crate) mod unread;
