//! The parts of a group that one job needs, lent together.
//!
//! What is to be done is decided by values that know no group ([`crate::group`]): each borrows what
//! it looks at and changes, for the moment. This is the list of what each of them may touch; what
//! follows from what it says is done by the group, once that is given back.

use crate::auth::failed_logins::FailedLogins;
use crate::backend::closing::BackendCloser;
use crate::backend::input::FromBackend;
use crate::backend::openings::Openings;
use crate::backend::output::ToBackend;
use crate::backend::pool_members::PoolMembers;
use crate::client::answers::Answers;
use crate::client::input::FromClient;
use crate::client::output::ToClient;
use crate::cluster::elsewhere::{Readers, Reading};
use crate::group::Group;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::address_counts::AddressCounts;
use crate::limits::slow_readers::unread::Unread;
use crate::limits::timeouts::{Limits, TimeLimits};
use crate::limits::unfinished::InputRoom;
use crate::observe::statement_logs::Logging;
use crate::observe::survey::Survey;
use crate::pair::view::ClientView;
use crate::pair::{Context, Pair};
use crate::scheduler::matching::Matching;
use crate::scheduler::waiters::Waiters;
use crate::statements::answered_locally::Alone;
use crate::statements::binary_prepare::StatementCommands;
use reactor::Net;
use wire::capabilities::NO_SCHEMA;

impl<N: Net> Group<N> {
    /// Matching of waiting clients and backends at this moment.
    #[inline]
    pub(crate) fn matching(&mut self) -> Matching<'_, N::Sock> {
        Matching {
            clients: &self.clients,
            backends: &self.backends,
            pools: &mut self.backend_pools,
            waiting_count: &self.waiting_count,
            running: &self.running,
            slow_readers: &self.slow_readers,
            known_digests: &self.known_digests,
            defaults: &self.defaults,
            settings: &self.settings,
            shared: &self.shared,
            rules: &self.rules,
            index: self.index,
            drains: self.drain.is_ending(),
            address_at: self.server_status.address_at,
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
            waiting_count: &mut self.waiting_count,
            settings: &self.settings,
            counts: &mut self.counts,
            figures: &mut self.figures,
            now: self.net.now(),
        }
    }

    /// A client and a backend, to be changed together; `None` where one of them is gone.
    pub(crate) fn pair(
        &mut self,
        owner: ClientId,
        backend_id: BackendId,
    ) -> Option<Pair<'_, N::Sock>> {
        let now = self.net.now();
        Some(Pair {
            owner,
            client: self.clients.get_mut(owner)?,
            backend: self.backends.get_mut(backend_id)?,
            context: Context {
                server: &self.shared.server,
                sessions: &mut self.sessions,
                variables: &self.retained.variables,
                statements: &self.retained.statements,
                warnings: &self.retained.warnings,
                long_data: &self.retained.long_data,
                schemas: &mut self.schemas,
                gtids: &mut self.gtids,
                counts: &mut self.counts,
                epoch: self.epoch,
                now,
            },
        })
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
            counts: &mut self.counts,
            inputs: &mut self.inputs,
            lent: &mut self.lent,
            tls_bytes: &self.retained.tls_bytes,
            handshakes_left: &mut self.handshakes_left,
        }
    }

    /// Writer of clients' bytes.
    #[inline]
    pub(crate) fn client_writer(&mut self) -> ToClient<'_, N> {
        ToClient {
            net: &mut self.net,
            shared: &self.shared,
            clients: &mut self.clients,
            outputs: &self.retained.outputs,
            slow_readers: &mut self.slow_readers,
            packing: &mut self.lent.packing,
            bulk: &mut self.bulk,
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
                outputs: &self.retained.outputs,
                slow_readers: &mut self.slow_readers,
                packing: &mut self.lent.packing,
                bulk: &mut self.bulk,
            },
            settings: &self.settings,
            backends: &self.backends,
            pools: &self.backend_pools,
            digests: &self.figures.digests,
            logs: &mut self.statement_logs,
            counts: &mut self.counts,
            log: &mut self.log,
            lent: &mut self.lent.out,
        }
    }

    /// The unfinished commands of clients.
    #[inline]
    pub(crate) fn room(&mut self) -> InputRoom<'_, N::Sock> {
        InputRoom {
            inputs: &mut self.inputs,
            clients: &mut self.clients,
            shared: &self.shared,
            settings: &self.settings,
            counts: &mut self.counts,
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
            shared: &self.shared,
            slow_readers: &mut self.slow_readers,
            bulk: &mut self.bulk,
            handshakes_left: &mut self.handshakes_left,
        }
    }

    /// Writer of backends' bytes.
    #[inline]
    pub(crate) fn backend_writer(&mut self) -> ToBackend<'_, N> {
        ToBackend {
            net: &mut self.net,
            backends: &mut self.backends,
            running: &mut self.running,
            dirty: &mut self.dirty,
            bulk: &mut self.bulk,
            in_transit: &self.retained.in_transit,
            current_input: &self.current_input,
            copied_max: self.shared.text_here_max,
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
            running: &mut self.running,
            turn_output: &mut self.turn_output,
        }
    }

    /// Backends that are being made ready.
    pub(crate) fn openings(&mut self) -> Openings<'_, N::Sock> {
        Openings {
            backends: &mut self.backends,
            pools: &mut self.backend_pools,
            sessions: &mut self.sessions,
            defaults: &self.defaults,
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
            is_on: self.settings.defer_begin && self.drain.is_off() && !warned,
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
            definitions: &mut self.definitions,
            sessions: &mut self.sessions,
            retained: &mut self.retained,
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
            slow: &mut self.slow_readers,
            outputs: &self.retained.outputs,
            bulk: &mut self.bulk,
            counts: &mut self.counts,
        }
    }

    /// Failed logins.
    pub(crate) fn failed_logins(&mut self) -> FailedLogins<'_, N> {
        FailedLogins {
            net: &mut self.net,
            shared: &self.shared,
            index: self.index,
            clients: &mut self.clients,
            counts: &mut self.counts,
            log: &mut self.log,
            delays: &mut self.auth_delays,
        }
    }

    /// The clients as members of pools.
    #[inline]
    pub(crate) fn members(&mut self) -> PoolMembers<'_, N> {
        PoolMembers {
            clients: &mut self.clients,
            pools: &mut self.backend_pools,
            schemas: &mut self.schemas,
            sessions: &mut self.sessions,
            defaults: &self.defaults,
            net: &self.net,
            shared: &self.shared,
            settings: &self.settings,
        }
    }

    /// A client as one whose reads may go elsewhere; `None` where there is one server.
    #[inline]
    pub(crate) fn reading(&self, key: ClientId) -> Option<Reading<'_, N::Sock>> {
        (self.reads).of_client(key, &self.clients, &self.shared, &self.settings)
    }

    /// The clients and the servers that they may read.
    pub(crate) fn readers(&mut self) -> Readers<'_, N> {
        Readers {
            reads: &mut self.reads,
            members: PoolMembers {
                clients: &mut self.clients,
                pools: &mut self.backend_pools,
                schemas: &mut self.schemas,
                sessions: &mut self.sessions,
                defaults: &self.defaults,
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
            counted: &mut self.counted,
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
            inputs: &self.inputs,
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
            digests: &self.figures.digests,
            logs: &mut self.statement_logs,
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
            waiting_count: &self.waiting_count,
            inputs: &self.inputs,
            slow_readers: &self.slow_readers,
            retained: &self.retained,
            definitions: &self.definitions,
            sessions: &self.sessions,
            gtids: &self.gtids,
            reads: &self.reads,
            counts: &self.counts,
            figures: &self.figures,
            statement_logs: &self.statement_logs,
            bulk: &self.bulk,
        }
    }
}
