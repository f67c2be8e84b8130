//! Reads of a group's clients on several servers: whose go where, and what they have to see.
//!
//! The problem: a client reads elsewhere only where it asks for that, and only what it has written
//! itself must be there. The mechanism: the numbers of each client's writes are noted as the server
//! reports them ([`GroupReads`]); a reader is asked to have them in the same write as the read, and
//! one that has had them before is not asked again ([`Readers`]).
//!
//! Invariants: a client between two statements belongs to its pool on the writer; what may have
//! been written without a number known keeps a client's reads on the writer.

use crate::backend::pool_members::PoolMembers;
use crate::backend::pools::{BackendPool, BackendPools};
use crate::backend::{Backend, ForBackend, InFlight};
use crate::client::clients::Clients;
use crate::client::{Client, ClientState};
use crate::cluster::reads::{ReaderList, Reads};
use crate::config::{Settings, User};
use crate::group::shared::Shared;
use crate::group::tokens::{BackendId, ClientId};
use crate::pair::trackers::TRACKED_FOR_POOL;
use crate::scheduler::priority::{Consistency, ReadFrom};
use crate::server::rows::row_of;
use ::cluster::{Kind, ServerId};
use reactor::{Address, Net, Slots, Time};
use session::elsewhere::{LEN_MAX, Why};
use session::last_gtid::may_have_written;
use session::own_writes::OwnWrites;
use session::reply_summary::ReplySummary;
use sql::elsewhere::hint;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use wire::attributes::put_query;
use wire::command::ReplyShape;
use wire::track::{Change, changes};

/// A reader that was waited for in vain is not waited for, and its client reads from the writer,
/// for so long.
const BEHIND_FOR: Duration = Duration::from_secs(1);

/// Reads of one client.
#[derive(Debug, Default)]
struct OfClient {
    /// Server that its session has named.
    from: Option<ReadFrom>,
    writes: OwnWrites,
    /// Moment until which it reads from the writer.
    writer_until: Option<Time>,
}

/// Readers, and what clients have written, as a group knows them.
#[derive(Debug, Default)]
pub(crate) struct GroupReads {
    version: u64,
    list: Arc<ReaderList>,
    /// Credit of each server for its next reads.
    credits: Vec<i64>,
    of_clients: BTreeMap<ClientId, OfClient>,
}

impl GroupReads {
    /// The server whose turn it is, of those that are not `behind`, each as often as its weight
    /// says.
    fn next(&mut self, behind: &[ServerId]) -> Option<ServerId> {
        let all = &self.list.all;
        let weight = |place: usize| {
            let id = u16::try_from(place).ok().map(ServerId);
            match id.is_some_and(|id| behind.contains(&id)) {
                true => 0,
                false => i64::from(all[place].weight),
            }
        };
        self.credits.resize(all.len(), 0);
        for (place, credit) in self.credits.iter_mut().enumerate() {
            // One that was left out has nothing to catch up with.
            *credit = match weight(place) {
                0 => 0,
                weight => *credit + weight,
            };
        }
        let readers = (0..all.len()).filter(|place| weight(*place) > 0);
        let best = readers.max_by_key(|place| self.credits[*place])?;
        self.credits[best] -= (0..all.len()).map(weight).sum::<i64>();
        u16::try_from(best).ok().map(ServerId)
    }

    /// Address of a server that is read.
    pub(crate) fn address(&self, id: ServerId) -> Option<Arc<Address>> {
        self.list.all.get(id.index())?.at.clone()
    }

    /// Bytes that it keeps.
    pub(crate) fn bytes(&self) -> usize {
        self.of_clients.len() * size_of::<(ClientId, OfClient)>()
    }

    /// Removes the client's reads elsewhere.
    pub(crate) fn forget(&mut self, key: ClientId) {
        self.of_clients.remove(&key);
    }

    /// Forgets where a client that starts over has read from; what it has written it goes on
    /// seeing.
    pub(crate) fn start_over(&mut self, key: ClientId) {
        if let Some(client) = self.of_clients.get_mut(&key) {
            client.from = None;
        }
    }

    /// Takes the list of readers in force, if that is another by now; with the one before.
    pub(crate) fn take_list(
        &mut self,
        reads: &Reads,
    ) -> Option<(Arc<ReaderList>, Arc<ReaderList>)> {
        let version = reads.version();
        if version == self.version {
            return None;
        }
        let before = std::mem::replace(&mut self.list, reads.list());
        self.version = version;
        Some((self.list.clone(), before))
    }

    /// Sends a client's reads to the writer for a while: a reader was behind.
    pub(crate) fn leave_readers(&mut self, key: ClientId, now: Time) {
        self.of_clients.entry(key).or_default().writer_until = Some(now + BEHIND_FOR);
    }

    /// A client as one whose reads may go elsewhere; `None` where there is one server.
    pub(crate) fn of_client<'a, S>(
        &'a self,
        key: ClientId,
        clients: &'a Clients<S>,
        shared: &'a Shared,
        settings: &'a Settings,
    ) -> Option<Reading<'a, S>> {
        let all = shared.reads()?;
        let client = clients.get(key)?;
        Some(Reading {
            client,
            own: self.of_clients.get(&key),
            user: &settings.users[client.identity.user()],
            list: &self.list,
            all,
            is_mysql: shared.server.flavour.is_mysql(),
        })
    }
}

/// A client as one whose reads may go elsewhere.
pub(crate) struct Reading<'a, S> {
    client: &'a Client<S>,
    own: Option<&'a OfClient>,
    user: &'a User,
    list: &'a ReaderList,
    all: &'a Reads,
    is_mysql: bool,
}

impl<S> Reading<'_, S> {
    /// Server that its session names for its reads, or else its user.
    fn from(&self) -> ReadFrom {
        let named = self.own.and_then(|own| own.from);
        named.unwrap_or(self.user.limits.read_from)
    }

    /// True if its statements may go elsewhere.
    pub(crate) fn leaves_writer(&self) -> bool {
        self.from() != ReadFrom::Writer
    }

    /// True if its statement, in this text, may go to another server as far as the client goes.
    pub(crate) fn wants_readers(&self, pools: &BackendPools, sql: &[u8]) -> bool {
        // Within a transaction on a reader each statement is looked at.
        if pools.is_reader(self.client.pool as usize) {
            return true;
        }
        match self.from() {
            ReadFrom::Writer => false,
            from => {
                let asked = hint(sql, ReadFrom::NAME).and_then(ReadFrom::from_name);
                asked.unwrap_or(from) == ReadFrom::Readers
            }
        }
    }

    /// Server for a statement of this length that goes to this one by its text.
    pub(crate) fn place_of(&self, why: Why, len: usize, now: Time) -> Why {
        let client = self.client;
        if !why.is_elsewhere() {
            return why;
        }
        let is_open = client.command.is_begin_deferred()
            || !client.session.state.commits()
            || client.session.state.is_serializable();
        let until = self.own.and_then(|own| own.writer_until);
        let is_behind = client.command.runs_apart() || until.is_some_and(|at| at > now);
        match () {
            () if is_open => Why::Transaction,
            () if client.session.is_held() || client.session.modified.is_some() => Why::Pinned,
            () if len > LEN_MAX => Why::Long,
            () if is_behind => Why::Behind,
            () if self.writes_to_see().is_none() => Why::Unsure,
            () if !self.list.takes_reads() => Why::NoReader,
            () => why,
        }
    }

    /// True if it sees what the other clients of its user have written.
    pub(crate) fn sees_account(&self) -> bool {
        self.user.limits.read_consistency == Consistency::Account
    }

    /// Writes that its read has to see; `None` where nobody can tell which those are.
    fn writes_to_see(&self) -> Option<OwnWrites> {
        let own = self.own.map(|own| &own.writes);
        let mut writes = match (self.user.limits.read_consistency, own) {
            (Consistency::None, _) => return Some(OwnWrites::default()),
            (_, own) => own.cloned().unwrap_or_default(),
        };
        if self.sees_account() {
            let all = self.user.usage.writes.lock();
            writes.join(&all.unwrap_or_else(PoisonError::into_inner));
        }
        // Galera asks the node for all that the cluster has.
        if self.all.kind == Kind::Galera {
            // Percona's nodes cannot be asked in one statement.
            return (!self.is_mysql).then(OwnWrites::default);
        }
        (self.list.is_numbered && !writes.is_unsure()).then_some(writes)
    }

    /// Writes that its read has to see and a reader's pool is not known to have: it is asked in
    /// front of the read. Galera has no numbers, and is always asked.
    pub(crate) fn not_known_to_have(&self, pool: &BackendPool) -> Option<OwnWrites> {
        if self.all.kind == Kind::Galera {
            let asks = self.user.limits.read_consistency != Consistency::None;
            return asks.then(OwnWrites::default);
        }
        let writes = self.writes_to_see()?;
        (!pool.has.covers(&writes)).then_some(writes)
    }
}

/// Clients and the readers that their statements may go to.
pub(crate) struct Readers<'a, N: Net> {
    pub(crate) reads: &'a mut GroupReads,
    pub(crate) members: PoolMembers<'a, N>,
    pub(crate) backends: &'a mut Slots<Backend<N::Sock>, BackendId>,
}

impl<N: Net> Readers<'_, N> {
    fn of(&self, key: ClientId) -> Option<Reading<'_, N::Sock>> {
        let PoolMembers {
            clients,
            shared,
            settings,
            ..
        } = &self.members;
        self.reads.of_client(key, clients, shared, settings)
    }

    fn not_known_to_have(&self, key: ClientId, pool: usize) -> Option<OwnWrites> {
        (self.of(key)?).not_known_to_have(&self.members.pools.pools[pool])
    }

    /// Returns a client without a backend to its pool on the writer.
    pub(crate) fn go_home(&mut self, key: ClientId) {
        if let Some(client) = self.members.clients.get_mut(key)
            && let Some(pool) = self.members.pools.pools.get(client.pool as usize)
            && let Some(home) = pool.home
        {
            client.pool = u32::try_from(home).unwrap_or(0);
        }
    }

    /// Sets the server that a client's session names for its reads.
    pub(crate) fn ask_from(&mut self, key: ClientId, from: Option<ReadFrom>) {
        if self.members.shared.cluster.is_some() {
            self.reads.of_clients.entry(key).or_default().from = from;
        }
    }

    /// Moves a client home before its command is judged, and has its writes numbered.
    pub(crate) fn prepare_to_route(&mut self, key: ClientId) {
        let Some(reading) = self.of(key) else {
            return;
        };
        let is_free = reading.client.backend().is_none();
        let tracks = reading.leaves_writer() || reading.sees_account();
        let begins = tracks && reading.is_mysql && !reading.client.session.state.tracks_gtids();
        if !is_free {
            return;
        }
        self.go_home(key);
        if begins && let Some(client) = self.members.clients.get_mut(key) {
            let mut session = (*client.session.state).clone();
            let (name, value) = TRACKED_FOR_POOL;
            session.put(name, value);
            client.session.state = self.members.sessions.intern(session);
        }
    }

    /// Pool for a read of a client of this pool, on a server that is not known to lack what the
    /// client has to see, and that has a backend free or takes another; else the reason.
    pub(crate) fn reader_pool(&mut self, key: ClientId, home: usize) -> Result<usize, Why> {
        let (mut behind, mut why) = (Vec::new(), Why::Full);
        loop {
            let reader = self.reads.next(&behind).ok_or(why)?;
            let pool = self.members.on_reader(home, reader);
            let entry = &self.members.pools.pools[pool];
            if entry.is_server_full() || entry.is_running_full() {
                behind.push(reader);
                continue;
            }
            let until = self.members.pools.pools[pool].behind_until;
            if until <= self.members.net.now() || self.not_known_to_have(key, pool).is_none() {
                return Ok(pool);
            }
            why = Why::Behind;
            behind.push(reader);
        }
    }

    /// Appends the question that a client's read is to stand behind on its backend, if there is
    /// one.
    pub(crate) fn put_catch_up(&mut self, key: ClientId, backend_id: BackendId, out: &mut Vec<u8>) {
        let Readers {
            reads,
            members,
            backends,
        } = self;
        let Some(backend) = backends.get_mut(backend_id) else {
            return;
        };
        let pool = backend.pool;
        if !members.pools.is_reader(pool) || backend.session.in_transaction() {
            return;
        }
        let reading = reads.of_client(key, members.clients, members.shared, members.settings);
        let writes =
            reading.and_then(|reading| reading.not_known_to_have(&members.pools.pools[pool]));
        let Some((writes, reads)) = writes.zip(members.shared.reads()) else {
            return;
        };
        let question = reads.question(members.shared.server.flavour, &writes);
        let until = members.net.now() + Duration::from_millis(reads.wait_ms) + BEHIND_FOR;
        let on = &mut members.pools.pools[pool];
        if on.behind_until > Time(0) {
            // One finds out whether it has caught up.
            on.behind_until = until;
        }
        backend.catching_up = Some(Box::new(writes));
        put_query(out, backend.form(), question.as_bytes());
        let command = InFlight::own(Some(key), ForBackend::CatchUp, ReplyShape::Results);
        backend.flight.expect(command);
    }

    /// Notes the numbers of what a client has written, before it hears that this is done.
    pub(crate) fn note_writes(&mut self, key: ClientId, blocks: &[u8]) {
        let mut noted = OwnWrites::default();
        let read = changes(blocks, |change| match change {
            Change::Variable { name, value } if name == b"last_gtid" => noted.note_gtid(value),
            Change::Gtids(block) => noted.note_set(block),
            _ => {}
        });
        if read.is_err() || noted.is_empty() {
            return;
        }
        self.add_writes(key, &noted);
    }

    fn add_writes(&mut self, key: ClientId, noted: &OwnWrites) {
        let own = &mut self.reads.of_clients.entry(key).or_default().writes;
        own.take(noted);
        if let Some(reading) = self.of(key).filter(Reading::sees_account) {
            let all = reading.user.usage.writes.lock();
            all.unwrap_or_else(PoisonError::into_inner).take(noted);
        }
    }

    /// Adds writes of a client of which no number is known, or which have none.
    pub(crate) fn doubt_writes(&mut self, key: ClientId, how: fn(&mut OwnWrites)) {
        if self.members.shared.cluster.is_some() {
            let mut noted = OwnWrites::default();
            how(&mut noted);
            self.add_writes(key, &noted);
        }
    }

    /// Doubts what a client's statement has written on the writer that is not heard to its end.
    pub(crate) fn doubt_running(&mut self, key: ClientId) {
        let runs = |state| matches!(state, ClientState::Running | ClientState::Feeding);
        let pools = &*self.members.pools;
        let may_write = |client: &Client<_>| {
            let runs = runs(client.state()) && !pools.is_reader(client.pool as usize);
            runs && may_have_written(&client.session.statement, 0)
        };
        if self.members.clients.get(key).is_some_and(may_write) {
            self.doubt_writes(key, OwnWrites::doubt);
        }
    }

    /// Takes a reader's answer to whether it has what its client has written: `false` where it
    /// lacks that.
    pub(crate) fn caught_up(
        &mut self,
        backend_id: BackendId,
        summary: &ReplySummary,
        collected: &[u8],
    ) -> bool {
        let row = row_of(collected).filter(|_| summary.error.is_none());
        let has = row.is_some_and(|row| row.first().is_some_and(|value| **value == *b"0"));
        if let Some(backend) = self.backends.get_mut(backend_id) {
            let asked = backend.catching_up.take();
            let until = self.members.net.now() + BEHIND_FOR;
            let pool = &mut self.members.pools.pools[backend.pool];
            pool.behind_until = if has { Time(0) } else { until };
            if let Some(asked) = asked.filter(|_| has) {
                pool.has.join(&asked);
            }
        }
        if let Some(reads) = self.members.shared.reads().filter(|_| !has) {
            reads.behind.fetch_add(1, Relaxed);
        }
        has
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cluster::reads::Reader;

    impl GroupReads {
        /// Writes of a client.
        pub(crate) fn writes_of(&mut self, key: ClientId) -> &mut OwnWrites {
            &mut self.of_clients.entry(key).or_default().writes
        }
    }

    /// Readers of these weights.
    pub(crate) fn reads(weights: &[u32]) -> GroupReads {
        let reader = |weight: &u32| Reader {
            at: None,
            weight: *weight,
            is_down: false,
        };
        GroupReads {
            list: Arc::new(ReaderList {
                all: weights.iter().map(reader).collect(),
                is_numbered: true,
            }),
            ..GroupReads::default()
        }
    }

    #[test]
    fn each_reader_gets_its_share_and_one_without_weight_nothing() {
        let mut all = reads(&[0, 1, 3]);
        let mut counts = [0; 3];
        for _ in 0..400 {
            counts[all.next(&[]).unwrap().index()] += 1;
        }
        assert_eq!(counts, [0, 100, 300]);
        // One that comes back does not catch up.
        all.list = reads(&[1, 1, 0]).list;
        let mut counts = [0_u32; 3];
        for _ in 0..100 {
            counts[all.next(&[]).unwrap().index()] += 1;
        }
        assert!(
            counts[0].abs_diff(counts[1]) <= 3 && counts[2] == 0,
            "{counts:?}"
        );
        let mut both = reads(&[9, 1]);
        assert_eq!(both.next(&[ServerId(0)]), Some(ServerId(1)));
        assert_eq!(both.next(&[ServerId(1), ServerId(0)]), None);
        assert_eq!(reads(&[0, 0]).next(&[]), None);
        assert_eq!(reads(&[]).next(&[]), None);
    }
}
