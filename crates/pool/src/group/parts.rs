//! The parts of a group, and those of them that one job needs, lent together.
//!
//! A group's steps are functions over [`Parts`]. What is to be done is decided by values that know
//! no group ([`crate::group`]): each borrows what it looks at and changes, for the moment. This is
//! the list of what each of them may touch; what follows from what it says is done by the step,
//! once that is given back.

use crate::auth::auth_delay::AuthDelays;
use crate::auth::failed_logins::FailedLogins;
use crate::backend::Backend;
use crate::backend::closing::BackendCloser;
use crate::backend::input::FromBackend;
use crate::backend::openings::Openings;
use crate::backend::output::ToBackend;
use crate::backend::pool_members::PoolMembers;
use crate::backend::pools::BackendPools;
use crate::client::ClientState;
use crate::client::answers::Answers;
use crate::client::buffers::lent::Lent;
use crate::client::buffers::received::LongInput;
use crate::client::buffers::room::Inputs;
use crate::client::buffers::transport::HANDSHAKES_PER_TURN;
use crate::client::clients::Clients;
use crate::client::input::FromClient;
use crate::client::output::ToClient;
use crate::cluster::elsewhere::{GroupReads, Readers, Reading};
use crate::config::Settings;
use crate::group::deliveries::TurnOutput;
use crate::group::drain::Drain;
use crate::group::shared::Shared;
use crate::group::tasks::{Task, Tasks};
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::address_counts::AddressCounts;
use crate::limits::addresses::CountedAddress;
use crate::limits::memory::ReportedMemory;
use crate::limits::retained::Retained;
use crate::limits::rules::RulesTaken;
use crate::limits::slow_readers::SlowReaders;
use crate::limits::slow_readers::unread::Unread;
use crate::limits::spool::Spool;
use crate::limits::timeouts::{Limits, TimeLimits};
use crate::limits::unfinished::InputRoom;
use crate::observe::figures::Figures;
use crate::observe::figures::counts::Counts;
use crate::observe::figures::digests::Digests;
use crate::observe::limited_log::LimitedLog;
use crate::observe::statement_logs::{Logging, StatementLogs};
use crate::observe::survey::Survey;
use crate::pair::view::ClientView;
use crate::pair::{Context, Pair};
use crate::scheduler::admission::Arrivals;
use crate::scheduler::bulk::Bulk;
use crate::scheduler::matching::Matching;
use crate::scheduler::running::Running;
use crate::scheduler::waiters::Waiters;
use crate::scheduler::waiting_count::WaitingCount;
use crate::server::schemas::Schemas;
use crate::server::status::ServerStatus;
use crate::server::watched::code_catalogue::Seen;
use crate::statements::answered_locally::Alone;
use crate::statements::binary_prepare::StatementCommands;
use crate::statements::kill::connection::KillConnection;
use crate::upgrade::departures::Departures;
use crate::upgrade::migrating::Migrating;
use reactor::{Net, Slots, Time};
use session::global_defaults::GlobalDefaults;
use session::known_digests::KnownDigests;
use session::last_gtid::LastGtid;
use session::prepared::Definitions;
use session::state::Interner;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use wire::capabilities::NO_SCHEMA;

/// The parts of a group, which its steps work on.
pub struct Parts<N: Net> {
    pub net: N,
    pub(crate) shared: Arc<Shared>,
    /// The settings in force.
    pub(crate) settings: Arc<Settings>,
    /// The group's number.
    pub(crate) index: usize,
    pub(crate) clients: Clients<N::Sock>,
    pub(crate) backends: Slots<Backend<N::Sock>, BackendId>,
    pub(crate) backend_pools: BackendPools,
    pub(crate) client_side: ClientSide,
    pub(crate) server_side: ServerSide<N::Sock>,
    pub(crate) known: Known,
    pub(crate) observed: Observed,
    pub work: Work,
}

/// State of clients that is not in their table.
pub(crate) struct ClientSide {
    /// Commands of clients that have not come whole.
    pub(crate) inputs: Inputs,
    /// Bytes of the client that are being handled, if they are long.
    pub(crate) current_input: LongInput,
    /// Counts of clients by their address; without such limits there are none.
    pub(crate) counted: HashMap<ClientId, CountedAddress>,
    /// Clients whose failed authentication is answered later.
    pub(crate) auth_delays: AuthDelays,
    /// Connections that wait to be accepted.
    pub(crate) arrivals: Arrivals,
    /// Clients that go to another process next, while clients do.
    pub(crate) departures: Departures,
    /// Key that the nonces of greetings are made of.
    pub(crate) nonce_key: [u8; 32],
    /// `@@last_gtid` of each client to which one was reported.
    pub(crate) gtids: BTreeMap<ClientId, LastGtid>,
    /// Bytes that are kept for clients.
    pub(crate) retained: Retained,
    /// Bytes kept for clients, as all groups know them; the client that holds most is not looked
    /// for before the moment.
    pub(crate) reported_memory: ReportedMemory,
    /// Clients that do not read their replies.
    pub(crate) slow_readers: SlowReaders,
    /// Clients that wait in queues.
    pub(crate) waiting_count: WaitingCount,
}

/// State of servers, and of connections to them, that is not in the table of backends.
pub(crate) struct ServerSide<S> {
    /// Backends that something is to be written to at the end of the turn.
    pub(crate) dirty: Vec<BackendId>,
    /// True if the group has a slot of the budget for a backend that takes the place of another.
    pub(crate) has_slot: bool,
    /// Backend pool to probe with one connect attempt while the server is down.
    pub(crate) refused_pool: Option<usize>,
    /// Counts up when another server may answer from here on (see [`session::known_good`]).
    pub(crate) epoch: u64,
    /// State of the server's address, as the group has seen it.
    pub(crate) status: ServerStatus,
    /// Statements that run here.
    pub(crate) running: Running,
    /// Backends that are on their way with their clients.
    pub(crate) migrating: Migrating<S>,
    /// KILLs that go to the server, and the connection that carries them.
    pub(crate) kill_connection: KillConnection<S>,
    /// Servers that are read, of several, and what clients have written.
    pub(crate) reads: GroupReads,
}

/// Knowledge by which statements are judged and sessions restored.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) sessions: Interner,
    /// Schemas that a pool is known to have been let into.
    pub(crate) schemas: Schemas,
    /// Texts that clients have prepared.
    pub(crate) definitions: Definitions,
    /// Digests that may be pipelined.
    pub(crate) digests: KnownDigests,
    /// Knowledge of code in triggers and views.
    pub(crate) code_seen: Seen,
    /// Number of definitions of schemas that it knows of.
    pub(crate) schemas_seen: u64,
    /// Global defaults that sessions begin with.
    pub(crate) defaults: GlobalDefaults,
    /// Rules about digests.
    pub(crate) rules: RulesTaken,
    /// Version of the settings in force.
    pub(crate) settings_epoch: u64,
}

/// Figures and logs.
pub(crate) struct Observed {
    pub(crate) counts: Counts,
    pub(crate) figures: Figures,
    /// Lines about logins that failed, and about lost connections to the server.
    pub(crate) log: LimitedLog,
    /// Statements that run and may be logged.
    pub(crate) statement_logs: StatementLogs,
}

/// Work of this turn and of those behind it.
#[derive(Default)]
pub struct Work {
    pub(crate) tasks: Tasks,
    /// Long work that goes on in later turns.
    pub(crate) bulk: Bulk,
    /// Buffers that are lent for a moment.
    pub(crate) lent: Lent,
    /// Steps of handshakes that may still be made in this turn.
    pub(crate) handshakes_left: usize,
    pub(crate) drain: Drain,
    /// Clients that a drain is to close, and when it may: each once behind an answer.
    pub(crate) answered: BTreeSet<(Time, ClientId)>,
    /// Messages that the group's thread has to hand over.
    pub turn_output: TurnOutput,
}

impl<N: Net> Parts<N> {
    /// The parts of group number `index` with nobody in it.
    pub(crate) fn new(mut net: N, shared: Arc<Shared>, index: usize) -> Parts<N> {
        let mut nonce_key = [0; 32];
        net.random(&mut nonce_key);
        let (settings_epoch, settings) = (shared.settings_epoch(), shared.settings());
        let digests = Digests::of_group(settings.digests_max, shared.groups());
        Parts {
            net,
            index,
            clients: Clients::default(),
            backends: Slots::default(),
            backend_pools: BackendPools::default(),
            client_side: ClientSide {
                inputs: Inputs::default(),
                current_input: LongInput::default(),
                counted: HashMap::new(),
                auth_delays: AuthDelays::default(),
                arrivals: Arrivals::default(),
                departures: Departures::default(),
                nonce_key,
                gtids: BTreeMap::new(),
                retained: Retained::default(),
                reported_memory: ReportedMemory::default(),
                slow_readers: SlowReaders::new(Spool::new(index, shared.lengths.spool_block)),
                waiting_count: WaitingCount::default(),
            },
            server_side: ServerSide {
                dirty: Vec::new(),
                has_slot: false,
                refused_pool: None,
                epoch: 1,
                status: ServerStatus::default(),
                running: Running::default(),
                migrating: Migrating::default(),
                kill_connection: KillConnection::default(),
                reads: GroupReads::default(),
            },
            known: Known {
                schemas_seen: shared.watched.schemas_defined.count(),
                settings_epoch,
                ..Known::default()
            },
            observed: Observed {
                counts: Counts::default(),
                figures: Figures::new(settings.users.len(), digests),
                log: LimitedLog::default(),
                statement_logs: StatementLogs::default(),
            },
            work: Work {
                handshakes_left: HANDSHAKES_PER_TURN,
                ..Work::default()
            },
            shared,
            settings,
        }
    }

    /// Returns a client to idle, and reads on what it has sent.
    pub(crate) fn return_to_idle(&mut self, key: ClientId) {
        let now = self.net.now();
        if self.clients.enter(key, ClientState::Idle, now) {
            self.work.tasks.add(Task::Read(key));
        }
    }

    /// Closes a client if its turn has come in a drain and it holds nothing, now or a moment later.
    pub(crate) fn close_if_drained(&mut self, key: ClientId) {
        let (work, now) = (&mut self.work, self.net.now());
        let departures = &self.client_side.departures;
        let later = work.drain.close(key, &mut self.clients, departures, now);
        work.answered.extend(later.map(|at| (at, key)));
    }

    /// Matching of waiting clients and backends at this moment.
    #[inline]
    pub(crate) fn matching(&mut self) -> Matching<'_, N::Sock> {
        Matching {
            clients: &self.clients,
            backends: &self.backends,
            pools: &mut self.backend_pools,
            waiting_count: &self.client_side.waiting_count,
            running: &self.server_side.running,
            slow_readers: &self.client_side.slow_readers,
            known_digests: &self.known.digests,
            defaults: &self.known.defaults,
            settings: &self.settings,
            shared: &self.shared,
            rules: &self.known.rules,
            index: self.index,
            drains: self.work.drain.is_ending(),
            address_at: self.server_side.status.address_at,
            now: self.net.now(),
            accounts: None,
        }
    }

    /// The clients that wait.
    #[inline]
    pub(crate) fn waiters(&mut self) -> Waiters<'_, N::Sock> {
        Waiters {
            clients: &mut self.clients,
            pools: &mut self.backend_pools,
            waiting_count: &mut self.client_side.waiting_count,
            settings: &self.settings,
            counts: &mut self.observed.counts,
            figures: &mut self.observed.figures,
            now: self.net.now(),
        }
    }

    /// A client and a backend, to be changed together; `None` where one of them is gone.
    pub(crate) fn pair(&mut self, owner: ClientId, backend_id: BackendId) -> Option<Pair<'_>> {
        let client = self.clients.get_mut(owner)?;
        let backend = self.backends.get_mut(backend_id)?;
        let context = Context {
            server: &self.shared.server,
            sessions: &mut self.known.sessions,
            retained: &self.client_side.retained,
            schemas: &mut self.known.schemas,
            gtids: &mut self.client_side.gtids,
            counts: &mut self.observed.counts,
            epoch: self.server_side.epoch,
            now: self.net.now(),
        };
        Some(Pair::of(owner, client, backend, context))
    }

    /// A client and the backend that it has, if it has one, to be looked at.
    pub(crate) fn client_view(&self, key: ClientId) -> Option<ClientView<'_, N::Sock>> {
        ClientView::of(key, &self.clients, &self.backends)
    }

    /// Reader of clients' bytes.
    #[inline]
    pub(crate) fn client_reader(&mut self) -> FromClient<'_, N> {
        FromClient {
            net: &mut self.net,
            clients: &mut self.clients,
            shared: &self.shared,
            settings: &self.settings,
            counts: &mut self.observed.counts,
            inputs: &mut self.client_side.inputs,
            lent: &mut self.work.lent,
            tls_bytes: &self.client_side.retained.tls_bytes,
            handshakes_left: &mut self.work.handshakes_left,
            drains: !self.work.drain.is_off(),
        }
    }

    /// Writer of clients' bytes.
    #[inline]
    pub(crate) fn client_writer(&mut self) -> ToClient<'_, N> {
        ToClient {
            net: &mut self.net,
            shared: &self.shared,
            clients: &mut self.clients,
            outputs: &self.client_side.retained.outputs,
            slow_readers: &mut self.client_side.slow_readers,
            packing: &mut self.work.lent.packing,
            bulk: &mut self.work.bulk,
        }
    }

    /// View through which the pool's own answers go.
    #[inline]
    pub(crate) fn answers(&mut self) -> Answers<'_, N> {
        Answers {
            to: ToClient {
                net: &mut self.net,
                shared: &self.shared,
                clients: &mut self.clients,
                outputs: &self.client_side.retained.outputs,
                slow_readers: &mut self.client_side.slow_readers,
                packing: &mut self.work.lent.packing,
                bulk: &mut self.work.bulk,
            },
            settings: &self.settings,
            backends: &self.backends,
            pools: &self.backend_pools,
            digests: &self.observed.figures.digests,
            logs: &mut self.observed.statement_logs,
            counts: &mut self.observed.counts,
            log: &mut self.observed.log,
            lent: &mut self.work.lent.out,
        }
    }

    /// The unfinished commands of clients.
    #[inline]
    pub(crate) fn room(&mut self) -> InputRoom<'_, N::Sock> {
        InputRoom {
            inputs: &mut self.client_side.inputs,
            clients: &mut self.clients,
            shared: &self.shared,
            settings: &self.settings,
            counts: &mut self.observed.counts,
            now: self.net.now(),
        }
    }

    /// Reader of backends' bytes.
    #[inline]
    pub(crate) fn backend_reader(&mut self) -> FromBackend<'_, N> {
        FromBackend {
            net: &mut self.net,
            backends: &mut self.backends,
            clients: &self.clients,
            pools: &self.backend_pools,
            shared: &self.shared,
            slow_readers: &mut self.client_side.slow_readers,
            bulk: &mut self.work.bulk,
            handshakes_left: &mut self.work.handshakes_left,
        }
    }

    /// Writer of backends' bytes.
    #[inline]
    pub(crate) fn backend_writer(&mut self) -> ToBackend<'_, N> {
        ToBackend {
            net: &mut self.net,
            backends: &mut self.backends,
            running: &mut self.server_side.running,
            dirty: &mut self.server_side.dirty,
            bulk: &mut self.work.bulk,
            in_transit: &self.client_side.retained.in_transit,
            current_input: &self.client_side.current_input,
            copied_max: self.shared.lengths.text_here,
        }
    }

    /// Closes backends.
    pub(crate) fn closer(&mut self) -> BackendCloser<'_, N> {
        BackendCloser {
            net: &mut self.net,
            shared: &self.shared,
            index: self.index,
            backends: &mut self.backends,
            pools: &mut self.backend_pools,
            running: &mut self.server_side.running,
            turn_output: &mut self.work.turn_output,
        }
    }

    /// Backends that are being made ready.
    pub(crate) fn openings(&mut self) -> Openings<'_, N::Sock> {
        Openings {
            backends: &mut self.backends,
            pools: &mut self.backend_pools,
            sessions: &mut self.known.sessions,
            defaults: &self.known.defaults,
            shared: &self.shared,
            now: self.net.now(),
        }
    }

    /// A client as one that may be answered without the server.
    pub(crate) fn alone(&self, key: ClientId) -> Option<Alone<'_, N::Sock>> {
        let view = self.client_view(key)?;
        let server = &self.shared.server;
        // MySQL's answer to each of its statements counts a warning of the capability.
        let warned = server.flavour.is_mysql() && view.client.capabilities & NO_SCHEMA != 0;
        Some(Alone {
            view,
            server,
            is_on: self.settings.defer_begin && self.work.drain.is_off() && !warned,
        })
    }

    /// A client with what it has prepared by number.
    pub(crate) fn statement_commands(
        &mut self,
        key: ClientId,
    ) -> Option<StatementCommands<'_, N::Sock>> {
        let client = self.clients.get_mut(key)?;
        Some(StatementCommands {
            backend: client.backend_in(&self.backends),
            client,
            server: &self.shared.server,
            definitions: &mut self.known.definitions,
            sessions: &mut self.known.sessions,
            retained: &mut self.client_side.retained,
            share: self.shared.prepared_of_backend(&self.settings),
        })
    }

    /// The clients that do not read.
    pub(crate) fn unread(&mut self) -> Unread<'_, N> {
        Unread {
            net: &self.net,
            shared: &self.shared,
            settings: &self.settings,
            index: self.index,
            clients: &mut self.clients,
            backends: &self.backends,
            pools: &self.backend_pools,
            slow: &mut self.client_side.slow_readers,
            outputs: &self.client_side.retained.outputs,
            bulk: &mut self.work.bulk,
            counts: &mut self.observed.counts,
        }
    }

    /// Failed logins.
    pub(crate) fn failed_logins(&mut self) -> FailedLogins<'_, N> {
        FailedLogins {
            net: &mut self.net,
            shared: &self.shared,
            index: self.index,
            clients: &mut self.clients,
            counts: &mut self.observed.counts,
            log: &mut self.observed.log,
            delays: &mut self.client_side.auth_delays,
        }
    }

    /// The clients as members of pools.
    #[inline]
    pub(crate) fn members(&mut self) -> PoolMembers<'_, N> {
        PoolMembers {
            clients: &mut self.clients,
            pools: &mut self.backend_pools,
            schemas: &mut self.known.schemas,
            sessions: &mut self.known.sessions,
            defaults: &self.known.defaults,
            net: &self.net,
            shared: &self.shared,
            settings: &self.settings,
        }
    }

    /// A client as one whose reads may go elsewhere; `None` where there is one server.
    #[inline]
    pub(crate) fn reading(&self, key: ClientId) -> Option<Reading<'_, N::Sock>> {
        self.shared.cluster.as_ref()?;
        (self.server_side.reads).of_client(key, &self.clients, &self.shared, &self.settings)
    }

    /// The clients and the servers that they may read.
    pub(crate) fn readers(&mut self) -> Readers<'_, N> {
        Readers {
            reads: &mut self.server_side.reads,
            members: PoolMembers {
                clients: &mut self.clients,
                pools: &mut self.backend_pools,
                schemas: &mut self.known.schemas,
                sessions: &mut self.known.sessions,
                defaults: &self.known.defaults,
                net: &self.net,
                shared: &self.shared,
                settings: &self.settings,
            },
            backends: &mut self.backends,
        }
    }

    /// Connections as they are counted by their address.
    pub(crate) fn address_counts(&mut self) -> AddressCounts<'_, N> {
        AddressCounts {
            counted: &mut self.client_side.counted,
            net: &self.net,
            shared: &self.shared,
            settings: &self.settings,
            clients: &self.clients,
        }
    }

    /// Limits of time.
    pub(crate) fn time_limits(&mut self) -> TimeLimits<'_, N> {
        TimeLimits {
            net: &self.net,
            limits: Limits {
                settings: &self.settings,
                server: &self.shared.server,
            },
            clients: &self.clients,
            backends: &mut self.backends,
            inputs: &self.client_side.inputs,
        }
    }

    /// The logs of statements, and what their lines are made of.
    pub(crate) fn logs(&mut self) -> Logging<'_, N> {
        Logging {
            net: &self.net,
            shared: &self.shared,
            settings: &self.settings,
            clients: &self.clients,
            backends: &self.backends,
            pools: &self.backend_pools,
            digests: &self.observed.figures.digests,
            logs: &mut self.observed.statement_logs,
        }
    }

    /// The group as others may look at it.
    pub fn survey(&self) -> Survey<'_, N> {
        Survey {
            net: &self.net,
            shared: &self.shared,
            settings: &self.settings,
            index: self.index,
            clients: &self.clients,
            backends: &self.backends,
            pools: &self.backend_pools,
            waiting_count: &self.client_side.waiting_count,
            inputs: &self.client_side.inputs,
            slow_readers: &self.client_side.slow_readers,
            retained: &self.client_side.retained,
            definitions: &self.known.definitions,
            sessions: &self.known.sessions,
            gtids: &self.client_side.gtids,
            reads: &self.server_side.reads,
            counts: &self.observed.counts,
            figures: &self.observed.figures,
            statement_logs: &self.observed.statement_logs,
            bulk: &self.work.bulk,
        }
    }
}

impl<N: Net> Drop for Parts<N> {
    /// Gives what the group has to the others when its thread ends.
    fn drop(&mut self) {
        self.backends = reactor::Slots::default();
        for (index, pool) in self.backend_pools.pools.iter().enumerate() {
            let count = |count| -isize::try_from(count).unwrap_or(0);
            pool.slots.count(count(pool.count), count(pool.dialling));
            pool.limits()
                .for_each(|slots| _ = slots.want((self.index, index), None));
        }
        self.client_side.slow_readers.end(&self.shared);
        (self.shared.budget).give(self.index, self.backend_pools.count);
        self.shared.budget.unwant(self.index);
        self.shared.budget.note_idle(self.index, 0);
    }
}
