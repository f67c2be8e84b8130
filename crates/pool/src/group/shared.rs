//! State that all groups share: settings, the server's facts, budgets, and the findings of the
//! watch.
//!
//! Invariant: a group waits for no other here. What changes is an atomic number, or behind a lock
//! that is held for a moment; what crosses from group to group goes by mailbox ([`Order`]).

use crate::auth::Logins;
use crate::auth::password_checks::{Checked, PasswordChecks};
use crate::client::buffers::text_reading::{TEXT_HERE_MAX, TEXTS_MAX, TextJobs, TextRead};
use crate::cluster::Cluster;
use crate::config::current::Current;
use crate::config::source::Source;
use crate::config::{Settings, accounts_of};
use crate::group::tokens::ClientId;
use crate::limits::RetainedByAll;
use crate::limits::spool::{BLOCK, OfAll};
use crate::limits::spool_jobs::{SpoolDone, SpoolJobs};
use crate::observe::Records;
use crate::observe::figures::places::AccountPlaces;
use crate::observe::listing::Question;
use crate::observe::log::{self, note};
use crate::scheduler::Scheduling;
use crate::scheduler::account_slots::{AccountSlots, AllAccountSlots};
use crate::scheduler::budget::Budget;
use crate::scheduler::bulk::LONG;
use crate::scheduler::running_limit::Oversubscribe;
use crate::server::facts::ServerFacts;
use crate::server::fleet::{ALL, Fleet, Unit};
use crate::server::tls::BackendTls;
use crate::server::upstream::Upstream;
use crate::server::watched::Watched;
use crate::statements::kill::jobs::{KillAsk, KillEnd, Threads};
use ::cluster::ServerId;
use handover::Peer;
use reactor::{Address, Sender};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::auth::caching_sha2::KeyPair;

/// Connections to the server besides backends: the watch, and a look at stored code; besides, each
/// group has one while it carries a KILL.
const BESIDE_BACKENDS: usize = 2;

/// Connections that the pool leaves to others where the server takes few: administrators must get
/// in, though the servers have one more for them.
const FOR_ADMINISTRATORS: usize = 2;

/// State that all groups share, by subject.
#[derive(Debug)]
pub struct Shared {
    /// Settings in force.
    current: Current,
    /// Source of the settings; held while it is read again.
    source: Mutex<Option<Source>>,
    sizes: Sizes,
    /// Clients of all groups at this moment; changed when one comes or goes.
    clients: AtomicUsize,
    /// `backends_max` as of when the backends were last fitted to what the server takes.
    backends_wished: AtomicUsize,
    /// Backends for which the server has room.
    backends_taken: AtomicUsize,
    /// Lengths that decide by which way bytes go.
    pub lengths: Lengths,
    /// Facts of the server.
    pub server: ServerFacts,
    /// Connections to the server, and which group may open the next.
    pub budget: Budget,
    pub(crate) logins: Logins,
    pub(crate) jobs: Jobs,
    pub(crate) scheduling: Scheduling,
    pub(crate) connections: Connections,
    pub(crate) retained: RetainedByAll,
    pub(crate) watched: Watched,
    pub(crate) records: Records,
    /// Address of the server, and its state.
    pub(crate) upstream: Arc<Upstream>,
    /// The servers, where there are several.
    pub(crate) cluster: Option<Arc<Cluster>>,
}

/// Lengths that decide by which way bytes go; a simulation has shorter ones.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// The longest command with a text that a group reads itself.
    pub text_here: usize,
    /// Long texts that wait at most; a group reads one more itself.
    pub texts: usize,
    /// Bytes of a block of the spool.
    pub spool_block: usize,
    /// Bytes from which on a reply is long.
    pub long_reply: usize,
}

/// Work that other threads do for the groups.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// Full authentications that wait for a worker.
    pub(crate) checks: PasswordChecks,
    /// Long texts that wait for a reader.
    pub(crate) texts: TextJobs,
    /// Writes and reads of the spool that wait.
    pub(crate) spool: SpoolJobs,
}

/// Connections to the server, by who has them.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// Connections of each account that backends log in as.
    pub(crate) account_slots: AllAccountSlots,
    /// Places of the server's accounts among the figures.
    pub(crate) account_places: AccountPlaces,
    /// The server's numbers of all groups' backends; changed when one comes or goes.
    pub(crate) threads: Threads,
    /// The pools that share the server's connections, where there are several.
    pub(crate) fleet: Option<Arc<Fleet>>,
}

/// Number of groups, and their resources.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Groups.
    pub groups: usize,
    /// Cores of the machine.
    pub cores: usize,
    /// Clients for which each group has room.
    pub clients_per_group: usize,
}

impl Shared {
    /// State that so many groups share at their start.
    #[must_use]
    pub fn new(settings: Settings, server: ServerFacts, keys: KeyPair, sizes: Sizes) -> Shared {
        let budget = Budget::new(
            settings.backends_max,
            sizes.groups,
            settings.backends_reserved,
        );
        let fleet = settings
            .fleet
            .as_deref()
            .map(|name| Arc::new(Fleet::new(name, settings.cluster.is_none())));
        if fleet.is_some() {
            budget.set_total(0);
        }
        Shared {
            logins: Logins::new(&settings, &server, keys),
            watched: Watched::new(&settings),
            retained: RetainedByAll::new(&settings, &server, sizes.groups, sizes.cores),
            records: Records::default(),
            jobs: Jobs::default(),
            lengths: Lengths {
                text_here: TEXT_HERE_MAX,
                texts: TEXTS_MAX,
                spool_block: BLOCK,
                long_reply: LONG,
            },
            upstream: Arc::new(Upstream::new(settings.backend.clone())),
            cluster: None,
            backends_wished: AtomicUsize::new(settings.backends_max),
            backends_taken: AtomicUsize::new(usize::MAX),
            current: Current::new(settings),
            source: Mutex::new(None),
            server,
            sizes,
            clients: AtomicUsize::new(0),
            scheduling: Scheduling::new(sizes.groups, sizes.cores),
            budget,
            connections: Connections {
                fleet,
                ..Connections::default()
            },
        }
    }

    /// Number of groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.sizes.groups
    }

    /// Cores of the machine.
    pub(crate) fn cores(&self) -> usize {
        self.sizes.cores
    }

    /// Clients that one group may hold: the descriptor limit's share.
    pub(crate) fn clients_per_group(&self) -> usize {
        self.sizes.clients_per_group
    }

    /// Clients of all groups.
    pub(crate) fn clients(&self) -> usize {
        self.clients.load(Relaxed)
    }

    /// Counts a client that has come.
    pub(crate) fn add_client(&self) {
        self.clients.fetch_add(1, Relaxed);
    }

    /// Counts a client that has gone.
    pub(crate) fn remove_client(&self) {
        self.clients.fetch_sub(1, Relaxed);
    }

    /// Source of the settings, held while it is read again.
    pub(crate) fn source(&self) -> MutexGuard<'_, Option<Source>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keys for full authentication, for the next world of a simulation.
    #[must_use]
    pub fn into_keys(self) -> KeyPair {
        self.logins.keys
    }

    /// Connections to one of several servers.
    pub(crate) fn connections_to(&self, server: Option<ServerId>) -> Option<Arc<AccountSlots>> {
        Some(self.cluster.as_ref()?.connections(server?).clone())
    }

    /// True if as many run something on one of several servers as may.
    pub(crate) fn is_running_full(&self) -> bool {
        let mut running = self.cluster.iter().flat_map(|cluster| cluster.running());
        running.any(|running| running.is_at_max())
    }

    /// True if somebody waits for that, in any group.
    pub(crate) fn is_running_wanted(&self) -> bool {
        let mut running = self.cluster.iter().flat_map(|cluster| cluster.running());
        running.any(|running| running.is_wanted())
    }

    /// Connections to the server at an address of a pool on this reader, or else on the writer.
    pub(crate) fn connections_at(
        &self,
        reader: Option<ServerId>,
        at: &Address,
    ) -> Option<Arc<AccountSlots>> {
        self.connections_to(reader.or_else(|| self.upstream.server_at(at)))
    }

    /// TLS to that server; `None`: the writer is not there any more.
    pub(crate) fn tls_at(
        &self,
        reader: Option<ServerId>,
        at: &Address,
        settings: &Settings,
    ) -> Option<Arc<BackendTls>> {
        match reader {
            Some(reader) => Some(settings.tls_of(reader)),
            None => settings.tls_at(&self.upstream, at),
        }
    }

    /// Settings in force; whoever serves clients asks once for each turn.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.current.get()
    }

    /// A number that is another one when the settings are others.
    pub(crate) fn settings_epoch(&self) -> u64 {
        self.current.epoch()
    }

    /// Puts settings in force. They follow those of now ([`Settings::follow`]).
    pub(crate) fn put_in_force(&self, settings: Settings) {
        let settings = Arc::new(settings);
        // In this order: who finds a user finds its settings too.
        self.current.replace(settings.clone());
        if let Some(cluster) = &self.cluster {
            cluster.follow(&settings);
        }
        (self.logins.accounts).set_listed(accounts_of(&settings.users));
        self.connections.account_slots.follow(&settings);
        self.upstream.tell_groups();
    }

    /// Puts settings in force that have been read again; those that are read at start keep their
    /// values.
    ///
    /// # Errors
    /// A sentence, where they cannot follow those in force; everything is as before.
    pub fn follow(&self, mut settings: Settings) -> Result<(), String> {
        settings.follow(&self.settings())?;
        self.put_in_force(settings);
        Ok(())
    }

    /// Parts of the spool that all groups share.
    pub(crate) fn spool_of_all(&self) -> OfAll<'_> {
        (&self.retained.spool, &self.jobs.spool)
    }

    /// Asks all servers of a cluster at once: an error or a loss may come of another writer.
    pub(crate) fn doubt_writer(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.ask_now();
        }
    }

    /// Bounds the backends by what the server takes: `connections` in all, of which it has to have
    /// some for others. What the settings say holds again when there is room for it.
    pub(crate) fn fit_backends(&self, connections: usize) {
        let wished = self.settings().backends_max;
        let is_wish_new = self.backends_wished.swap(wished, Relaxed) != wished;
        let beside = self.groups() + BESIDE_BACKENDS + FOR_ADMINISTRATORS;
        let taken = connections.saturating_sub(beside).max(self.groups());
        self.backends_taken.store(taken, Relaxed);
        let fitting = wished.min(taken).max(self.groups());
        // What the fleet leaves to this pool is within it.
        if self.connections.fleet.is_some() || !self.budget.set_total(fitting) {
            return;
        }
        let others = "the rest is for its own other connections and for administrators";
        let cause = match fitting == wished {
            true if is_wish_new => {
                format!("backends_max is {wished} now: the pool opens at most so many backends")
            }
            true => format!(
                "the server takes {connections} connections (max_connections): backends_max, \
                 {wished}, holds again"
            ),
            false => format!(
                "backends_max is {wished}, but the server takes {connections} connections \
                 (max_connections): the pool opens at most {fitting} backends for now, {others}"
            ),
        };
        note(log::Event::BackendsMax, format_args!("{cause}"));
        self.upstream.tell_groups();
    }

    /// Units that a backend for this account uses of the fleet's limits; `None` while none is left.
    pub(crate) fn take_units(&self, account: &AccountSlots) -> Option<Vec<Unit>> {
        let Some(fleet) = &self.connections.fleet else {
            return Some(Vec::new());
        };
        let resources: Vec<_> = [ALL].into_iter().chain(account.shared_limit()).collect();
        fleet.take(&resources)
    }

    /// Bounds the backends by the units that the fleet has given this pool.
    pub(crate) fn fit_fleet(&self, units: Option<usize>) {
        if self.budget.set_total(units.unwrap_or(0)) {
            self.upstream.tell_groups();
        }
    }

    /// Backends that there may be: `backends_max`, as far as the server has room for them.
    pub(crate) fn backends_max(&self, settings: &Settings) -> usize {
        settings.backends_max.min(self.backends_taken.load(Relaxed))
    }

    /// Backends of one group that may run statements at once, where `running` groups have any to
    /// start: they share what as many groups as cores would run.
    #[must_use]
    pub fn busy_max(&self, settings: &Settings, running: usize) -> usize {
        self.running_max(settings).div_ceil(running.max(1))
    }

    /// Statements that may run at once in all groups.
    pub(crate) fn running_max(&self, settings: &Settings) -> usize {
        match settings.oversubscribe {
            Oversubscribe::By(more) => (1 + more) * self.cores().min(self.groups()),
            Oversubscribe::Auto => self.scheduling.running_limit.now(),
        }
    }

    /// Groups that take replies off their backends now; for tests.
    #[must_use]
    pub fn collecting_groups(&self) -> usize {
        self.retained.collecting.now()
    }

    /// Idle backends that group number `index` keeps: its share of `backends_min`.
    #[must_use]
    pub(crate) fn backends_kept(&self, settings: &Settings, index: usize) -> usize {
        let (all, groups) = (settings.backends_min, self.groups());
        all / groups + usize::from(index < all % groups)
    }

    /// Statements that may be prepared on one backend, so that as many backends as there may be
    /// stay within [`Watched::prepared_max`]. Each may have one.
    #[must_use]
    pub(crate) fn prepared_of_backend(&self, settings: &Settings) -> usize {
        (self.watched.prepared_max(settings) / settings.backends_max).max(1)
    }
}

/// A message to a group, from the main thread or another group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Take no new clients, and close those that hold nothing one after another, over so long.
    CloseInTurns(Duration),
    /// Take no new clients, let running statements and transactions finish, then end.
    Drain,
    /// Write down every client, and why it is pinned.
    Report,
    /// Hand the census over behind this turn.
    Census,
    /// Say something of this moment.
    Ask(Question),
    /// Replace all connections to the server, each when its client has done with it.
    Reconnect,
    /// A client of another group kills one of this.
    Kill(Box<KillAsk>),
    /// Close the clients whose ids name this seat of the fleet, which is another pool's.
    CloseSeat(u8),
    /// End of the KILL of a client of this group.
    Killed(ClientId, KillEnd),
    /// Verdict of a worker on what this client sent for its password.
    PasswordChecked(ClientId, Checked),
    /// Long text of this client's command, read by a reader.
    TextRead(ClientId, Box<TextRead>),
    /// Results of blocks of these clients' replies that were to be written or read.
    Spool(Vec<(ClientId, SpoolDone)>),
    /// Another group lacks backends, or gave some back, or the server is back, or elsewhere: the
    /// turn that follows looks at that.
    Look,
    /// Hand listeners and clients to this process.
    Give(Peer),
    /// End of the hand-over: keep the clients that are here, and accept none.
    Keep,
    /// Close the listeners: the other process has passed them on, and this one opens its own if it
    /// ever accepts again.
    CloseListeners,
    /// Accept, where no other process does: again, or for the first time without the other
    /// process's listeners.
    Accept,
    /// End with the last client.
    Leave,
}

impl Order {
    /// Sends it to each of these groups.
    pub(crate) fn tell_all(&self, groups: &[Sender<Order>]) {
        groups.iter().for_each(|group| group.send(self.clone()));
    }
}
