//! Clients that do not read their replies, and what they may keep from the others.
//!
//! The problem: a backend is not read while its client has not taken the last bytes, so a client
//! that stops to read keeps its backend. A few dozen of them keep all, and nobody else is served. A
//! slow reader is no criminal: an export to a slow disk looks the same.
//!
//! The mechanism, while others wait for a backend:
//! 1. Readers that have held up a backend for [`SLOW_AFTER`] may keep a share of the group's
//!    (`slow_backends_percent_max`), and those of one user `[[user]] slow_backends_max`.
//! 2. Of those beyond it, the one that has taken nothing for longest comes first: its reply is
//!    taken off its backend ([`Rest::Spooled`]), into memory first and then into the spool
//!    (`spool.rs`), from which the client reads at its own pace. Its lease ends with its reply as
//!    any other does: within a transaction, or with a pin, it does not, so such a reply is left
//!    where it is. Where its last statement has begun the transaction (as with autocommit off),
//!    that is seen when the reply has ended: the reader counts as one that holds a backend from
//!    then on.
//!    Where statements of other clients were sent behind it on its backend, it goes first, whatever
//!    the share: they wait for its end.
//!    A long reply takes its time on the way into the spool, and the server's: one of a group goes
//!    there at a time (`collecting.rs`). The next client that does not read may have the backend
//!    after it. So while slow readers keep their share or more ([`Group::is_squeezed`]), statements
//!    of shapes that are known to be short wait in the high lane, for which some backends are
//!    reserved (`queueing.rs`).
//! 3. Where the spool has no room, the reader of all groups that has taken nothing for longest is
//!    closed, once that is `slow_reader_ms_max`; and so is one beyond the share whose session keeps
//!    its backend. The log and the census say so.
//! 4. A client whose reply does not come out of the spool, because its disk fails or does not
//!    answer, is closed.
//!
//! Each group keeps its part of the share, so all groups together keep the whole.
//!
//! Invariant: whose reply is taken off its backend is sent every byte of it in order, or is closed.

use crate::backend::Purpose;
use crate::buffers::spool::Tail;
use crate::buffers::spool_jobs::SpoolDone;
use crate::client::{Client, ClientState, Rest};
use crate::group::Group;
use crate::log::{Event, Facts, Peer, note_of};
use crate::queue::bulk::Piece;
use reactor::{Key, Net, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// A reader that takes its reply is held up for a moment now and then; one that has held up its
/// backend for so long is slow.
const SLOW_AFTER: Duration = Duration::from_millis(20);
/// Bytes of a reply that wait in memory before the rest goes to the file.
const MEMORY_MAX: usize = 16 * 1024;

/// A client that holds up its backend.
#[derive(Clone, Copy, Debug)]
struct Reader {
    /// When it took bytes last.
    since: Time,
    client: Key,
    lease: Key,
    user: u16,
    /// Statements of others were sent behind its own.
    has_riders: bool,
}

/// What a client whose reply was taken off its backend is sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextOfSpool {
    /// It has been sent all.
    Nothing,
    /// It is in memory now.
    InMemory,
    /// It comes from the file.
    OnDisk,
}

impl<N: Net> Group<N> {
    /// Keeps what a client cannot be sent now, at the end of what it is still to be sent.
    pub(crate) fn keep_output(&mut self, key: Key, bytes: &[u8]) {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if client.output.is_none() {
            // The write limit counts from here.
            client.since = now;
        }
        let transport_bytes = client.transport.unsent_bytes();
        let output = client.output.get_or_insert_default();
        output.transport_bytes = transport_bytes;
        let unsent = output.bytes.len() - output.sent;
        match &mut output.rest {
            Rest::Spooled(tail) if tail.len() > 0 || unsent >= MEMORY_MAX => {
                let of_all = self.shared.spool_of_all();
                self.spool.append(tail, bytes, key, of_all);
                self.collecting.heard(key, now);
            }
            _ => output.bytes.extend_from_slice(bytes),
        }
        output.count(&self.outputs);
    }

    /// What a client of which all in memory has been sent is sent next: moved there if it is at
    /// hand, asked for if it is in the file.
    pub(crate) fn next_of_spool(&mut self, key: Key) -> NextOfSpool {
        let client = self.clients.get_mut(key);
        let Some(output) = client.and_then(|client| client.output.as_mut()) else {
            return NextOfSpool::Nothing;
        };
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
                self.spool.fetch(tail, key, &self.shared.spool_jobs);
                NextOfSpool::OnDisk
            }
        };
        output.count(&self.outputs);
        next
    }

    /// The spool's threads have dealt with blocks of clients.
    pub(crate) fn on_spool(&mut self, done: Vec<(Key, SpoolDone)>) {
        for (key, done) in done {
            let failed = match done {
                SpoolDone::Stored => {
                    self.spool.has_dealt();
                    self.on_stored(key);
                    continue;
                }
                SpoolDone::Fetched(bytes) => {
                    self.spool.has_read();
                    self.on_fetched(key, bytes);
                    continue;
                }
                SpoolDone::Failed(error) => {
                    self.spool.has_dealt();
                    let folder = self.settings.spool_folder.display();
                    format!("its reply cannot be written to the spool in {folder}: {error}")
                }
                SpoolDone::Lost(error) => {
                    self.spool.has_read();
                    format!("its reply cannot be read from the spool: {error}")
                }
            };
            self.spool.failed(self.net.now());
            self.end_reader(key, &failed);
        }
    }

    /// Closes a client whose reply has not come out of the spool in so much time, in which it could
    /// take nothing. Nobody else's goes there for a while.
    pub(crate) fn end_unread(&mut self, key: Key, max: Duration) {
        let folder = self.settings.spool_folder.display();
        let ms = max.as_millis();
        let why = format!("the disk of the spool in {folder} has not answered for {ms} ms");
        self.spool.failed(self.net.now());
        self.end_reader(key, &why);
    }

    /// A block of a client's reply is written: it may be the one that it waits for.
    fn on_stored(&mut self, key: Key) {
        let client = self.clients.get_mut(key);
        let Some(output) = client.and_then(|client| client.output.as_mut()) else {
            return;
        };
        let is_next = output.waits_for_spool();
        if let Rest::Spooled(tail) = &mut output.rest {
            tail.stored();
            if is_next {
                self.spool.fetch(tail, key, &self.shared.spool_jobs);
            }
        }
    }

    /// A block of a client's reply has been read: it is sent in its turn.
    fn on_fetched(&mut self, key: Key, bytes: Vec<u8>) {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let Some(output) = &mut client.output else {
            return;
        };
        if let Rest::Spooled(tail) = &mut output.rest {
            self.spool.fetched(tail, self.shared.spool_of_all());
            (output.bytes, output.sent) = (bytes, 0);
            output.count(&self.outputs);
            // Until now it could take nothing.
            client.since = now;
            self.bulk.push(Piece::Client(key));
        }
    }

    /// Notes that a backend is not read because its client has not taken the last bytes.
    pub(crate) fn note_held_up(&mut self, key: Key) {
        let now = self.net.now();
        if let Some(backend) = self.backends.get_mut(key) {
            backend.held_up_since.get_or_insert(now);
            if !self.held_up.contains(&key) {
                self.held_up.push(key);
            }
        }
    }

    /// Whether another reply can be taken off its backend now.
    fn spool_has_room(&self) -> bool {
        self.spool.has_room(&self.shared.spool, self.net.now())
    }

    /// Whether more of a reply that is taken off its backend can be stored now.
    pub(crate) fn spool_takes_more(&self) -> bool {
        self.spool.takes_more(&self.shared.spool, self.net.now())
    }

    /// Takes replies off their backends while others wait for those.
    pub(crate) fn relieve_backends(&mut self) {
        if self.held_up.is_empty() && self.spooled.is_empty() && self.slow_of_users.is_empty() {
            self.slow_backends = 0;
            self.collecting.end(&self.shared.collecting);
            return;
        }
        self.forget_quick();
        let mut slow = self.slow_readers();
        let was_squeezed = self.is_squeezed();
        let line = self.under_way();
        self.slow_backends = slow.len() + line.len();
        if self.is_squeezed() && !was_squeezed {
            self.put_short_first();
        }
        self.publish_slow(&slow);
        self.choose_collected(&line);
        self.read_on();
        let others_wait = self.waiting > 0 || self.owes_next();
        slow.retain(|reader| others_wait || reader.has_riders);
        if slow.is_empty() {
            return self.publish_longest();
        }
        slow.sort_unstable_by_key(|reader| reader.since);
        let mut over = slow.len().saturating_sub(self.slow_max());
        let mut of_users = self.users_over();
        for reader in slow {
            let of_user = of_users.get_mut(&reader.user).filter(|over| **over > 0);
            if over == 0 && of_user.is_none() && !reader.has_riders {
                continue;
            }
            over = over.saturating_sub(1);
            of_user.into_iter().for_each(|over| *over -= 1);
            self.relieve(reader);
        }
        self.publish_longest();
    }

    /// Backends of this group that slow readers may hold while others wait.
    fn slow_max(&self) -> usize {
        let share = self.shared.budget.share(self.index);
        share * self.settings.slow_backends_percent_max / 100
    }

    /// Clients whose replies are not at their ends and go to the spool, in line for that.
    fn under_way(&self) -> Vec<Key> {
        let under_way = |key: &Key| {
            let client = self.clients.get(*key);
            client.is_some_and(|client| {
                let waits = client.spooled().is_some() && !client.closing;
                waits && client.lease().is_some() && client.state() != ClientState::Idle
            })
        };
        self.spooled.iter().copied().filter(under_way).collect()
    }

    /// Chooses whose reply of those in line is taken off its backend now.
    fn choose_collected(&mut self, line: &[Key]) {
        let now = self.net.now();
        let client = self
            .collecting
            .client()
            .and_then(|key| self.clients.get(key));
        let lease = client.and_then(Client::lease);
        let backend = lease.and_then(|lease| self.backends.get(lease));
        let has_more = backend.is_some_and(|backend| backend.transport.is_readable());
        let all = &self.shared.collecting;
        if let Some(had) = self.collecting.choose(line, has_more, now, all) {
            self.spooled.retain(|key| *key != had);
            self.spooled.push(had);
        }
    }

    /// Whether slow readers keep their share of the backends, or more, from others.
    pub(crate) fn is_squeezed(&self) -> bool {
        self.slow_backends >= self.slow_max().max(1)
    }

    /// Forgets backends and clients that nothing holds up any more.
    fn forget_quick(&mut self) {
        let backends = &self.backends;
        self.held_up.retain(|key| {
            let backend = backends.get(*key);
            backend.is_some_and(|backend| backend.held_up_since.is_some())
        });
        let clients = &self.clients;
        self.spooled.retain(|key| {
            clients
                .get(*key)
                .is_some_and(|client| client.spooled().is_some())
        });
    }

    /// Readers that hold up a backend now.
    fn slow_readers(&self) -> Vec<Reader> {
        let now = self.net.now();
        let on_backend = self.held_up.iter().filter_map(|lease| {
            let backend = self.backends.get(*lease)?;
            let since = backend.held_up_since?;
            let front = backend.flight().front()?;
            let owner = front
                .owner
                .filter(|_| front.purpose == Purpose::Statement)?;
            let client = self.clients.get(owner)?;
            let waits = client.output.as_ref()?.rest.is_on_backend();
            (waits && now.since(since) >= SLOW_AFTER).then_some(Reader {
                since: client.since,
                client: owner,
                lease: *lease,
                user: client.user,
                has_riders: self.has_riders(*lease),
            })
        });
        let within = self.spooled.iter().filter_map(|key| {
            let client = self.clients.get(*key)?;
            let lease = client
                .lease()
                .filter(|_| client.state() == ClientState::Idle)?;
            client.spooled()?;
            (now.since(client.since) >= SLOW_AFTER).then_some(Reader {
                since: client.since,
                client: *key,
                lease,
                user: client.user,
                has_riders: false,
            })
        });
        on_backend.chain(within).collect()
    }

    /// Whether statements of others stand behind the one whose reply a backend sends.
    fn has_riders(&self, lease: Key) -> bool {
        let Some(backend) = self.backends.get(lease) else {
            return false;
        };
        let mut owners = backend.flight().iter().filter_map(|command| command.owner);
        let first = owners.next();
        owners.any(|owner| Some(owner) != first)
    }

    /// Tells all groups how many backends the slow readers of each limited user hold here.
    fn publish_slow(&mut self, slow: &[Reader]) {
        let mut now: BTreeMap<u16, usize> = BTreeMap::new();
        for reader in slow {
            let user = &self.settings.users[reader.user as usize];
            if user.limits.slow_backends_max.is_some() {
                *now.entry(reader.user).or_default() += 1;
            }
        }
        let before = std::mem::take(&mut self.slow_of_users);
        let all = |user: &u16| &self.settings.users[*user as usize].usage.slow;
        for (user, count) in &now {
            all(user).fetch_add(*count, std::sync::atomic::Ordering::Relaxed);
        }
        for (user, count) in &before {
            all(user).fetch_sub(*count, std::sync::atomic::Ordering::Relaxed);
        }
        self.slow_of_users = now;
    }

    /// By how many backends slow readers of users are over their limits.
    fn users_over(&self) -> BTreeMap<u16, usize> {
        let over = |user: &u16| {
            let max = self.settings.users[*user as usize]
                .limits
                .slow_backends_max?;
            let slow = &self.settings.users[*user as usize].usage.slow;
            let slow = slow.load(std::sync::atomic::Ordering::Relaxed);
            Some((*user, slow.saturating_sub(max)))
        };
        self.slow_of_users.keys().filter_map(over).collect()
    }

    /// Replies that wait for room in the spool, or for their turn, are read on.
    fn read_on(&mut self) {
        for at in 0..self.held_up.len() {
            let key = self.held_up[at];
            if self.may_read(key) {
                self.read_in_next_turn(key);
            }
        }
    }

    /// Takes a reply off its backend; where that cannot be, its reader may have to go.
    fn relieve(&mut self, reader: Reader) {
        let now = self.net.now();
        let keeps = self
            .backends
            .get(reader.lease)
            .is_some_and(|backend| backend.in_transaction());
        let room = self.spool_has_room();
        let Some(client) = self.clients.get_mut(reader.client) else {
            return;
        };
        if keeps || client.is_held() {
            let max = self.settings.slow_reader_max;
            if now.since(reader.since) >= max {
                self.end_reader(
                    reader.client,
                    "it keeps a backend for its transaction or a pin while others wait for one",
                );
            }
            return;
        }
        if client.spooled().is_some() {
            return;
        }
        if !room {
            return self.shared.spool.note_lack(now);
        }
        if let Some(output) = &mut client.output {
            output.rest = Rest::Spooled(Tail::default());
            self.counts.spooled += 1;
            match reader.has_riders {
                true => self.spooled.insert(0, reader.client),
                false => self.spooled.push(reader.client),
            }
            self.read_in_next_turn(reader.lease);
        }
    }

    /// The reader that has taken nothing for longest and has room of the spool, or wants some.
    fn longest(&self) -> Option<(Time, Key)> {
        let spooled = self.spooled.iter();
        let spooled = spooled.filter_map(|key| Some((*key, self.clients.get(*key)?)));
        let spooled = spooled.filter(|(_, client)| !client.waits_for_spool());
        let spooled = spooled.map(|(key, client)| (client.since, key));
        let slow = self.slow_readers();
        let slow = slow.into_iter().map(|reader| (reader.since, reader.client));
        spooled.chain(slow).min()
    }

    /// Tells all groups since when the slowest reader here has taken nothing.
    fn publish_longest(&mut self) {
        let longest = self.longest();
        let since = longest.map_or(Time::NEVER, |(since, _)| since);
        self.shared.spool.note_longest(self.index, since);
    }

    /// Where the spool has no room: ends the reader that has taken nothing for longest.
    pub(crate) fn end_longest_reader(&mut self) {
        if self.spooled.is_empty() && self.held_up.is_empty() {
            return;
        }
        self.forget_quick();
        self.publish_longest();
        let (now, max) = (self.net.now(), self.settings.slow_reader_max);
        let stuck = self.held_up.iter().any(|key| {
            let owner = self.backends.get(*key).and_then(|backend| backend.lease());
            let client = owner.and_then(|owner| self.clients.get(owner));
            client.is_some_and(|client| client.spooled().is_some())
        });
        if stuck && !self.spool_has_room() {
            self.shared.spool.note_lack(now);
        }
        if let Some((since, key)) = self.longest()
            && self.shared.spool.is_longest(self.index, since)
            && self.spool.lacks(&self.shared.spool, now)
            && now.since(since) >= max
        {
            self.end_reader(
                key,
                "the spool (spool_bytes_max) has no room and others wait",
            );
        }
    }

    /// Closes a client that does not read.
    fn end_reader(&mut self, key: Key, why: &str) {
        let client = self.clients.get(key).filter(|client| !client.closing);
        let Some(client) = client else {
            return;
        };
        let account = self.backend_pools.pools.get(client.pool as usize);
        let account = account.map_or("", |pool| pool.key.user.as_str());
        let facts = Facts {
            client: Some(Peer::from(client.transport.peer(&self.net))),
            account: self.user_name(client).map(str::as_bytes),
            ..Facts::default()
        };
        let ms = self.net.now().since(client.since).as_millis();
        let id = client.id;
        note_of(
            Event::ReaderClosed,
            &facts,
            format_args!(
                "client {id} account '{account}' closed: it has taken nothing of its reply for \
                 {ms} ms, and {why}"
            ),
        );
        self.counts.slow_closed += 1;
        self.close_later(key);
    }

    /// When the next reader becomes slow while others wait.
    pub(crate) fn next_relief(&self) -> Time {
        let now = self.net.now();
        let matters = |key: &&Key| self.waiting > 0 || self.has_riders(**key);
        let since = |key: &Key| self.backends.get(*key)?.held_up_since;
        let slow_at = self
            .held_up
            .iter()
            .filter(matters)
            .filter_map(since)
            .map(|s| s + SLOW_AFTER);
        let relief = slow_at.filter(|at| *at > now).min();
        relief
            .unwrap_or(Time::NEVER)
            .min(self.collecting.next_choice())
    }

    /// Gives back what the spool has for a client that is gone.
    pub(crate) fn drop_spooled(&mut self, rest: Rest) {
        if let Rest::Spooled(tail) = rest {
            self.spool.drop_tail(tail, self.shared.spool_of_all());
        }
    }

    /// How many readers hold up a backend now, how many replies are off their backends, and bytes
    /// of the spool that those have.
    pub(crate) fn count_slow(&self) -> (usize, usize, usize) {
        let waits = |key: &&Key| {
            let lease = self.backends.get(**key).and_then(|backend| backend.lease());
            let client = lease.and_then(|lease| self.clients.get(lease));
            client.is_some_and(|c| c.output.as_ref().is_some_and(|o| o.rest.is_on_backend()))
        };
        let slow = self.held_up.iter().filter(waits).count();
        let spooled = |key: &&Key| {
            self.clients
                .get(**key)
                .is_some_and(|c| c.spooled().is_some())
        };
        let spooled = self.spooled.iter().filter(spooled).count();
        (slow, spooled, self.spool.used())
    }

    /// What the report says of a client's reply.
    pub(crate) fn reading_of(&self, client: &crate::client::Client<N::Sock>) -> String {
        let Some(output) = &client.output else {
            return String::new();
        };
        let seconds = self.net.now().since(client.since).as_secs();
        let spooled = client.spooled().unwrap_or(0);
        let unsent = output.bytes.len() - output.sent + spooled;
        let off = match (client.spooled(), client.state()) {
            (None, _) => "",
            (Some(_), ClientState::Idle | ClientState::Leaving) => ", off its backend",
            (Some(_), _) => ", being taken off its backend",
        };
        format!(", has taken nothing for {seconds} s of {unsent} bytes{off}")
    }
}
