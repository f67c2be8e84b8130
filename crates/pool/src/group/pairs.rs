//! The group's clients with their backends, looked up together.
//!
//! What concerns both is a matter of [`crate::pair`], which borrows the two from here; what follows
//! for sockets, lanes and leases is done by the group, after the pair is gone.

use crate::group::Group;
use crate::naming::Naming;
use crate::pair::view::ClientView;
use crate::pair::{Context, Pair};
use crate::statement_commands::StatementCommands;
use reactor::{Key, Net};

impl<N: Net> Group<N> {
    /// A client and a backend, to be changed together; `None` where one of them is gone.
    pub(crate) fn pair(&mut self, owner: Key, lease: Key) -> Option<Pair<'_, N::Sock>> {
        let now = self.net.now();
        Some(Pair {
            owner,
            client: self.clients.get_mut(owner)?,
            backend: self.backends.get_mut(lease)?,
            context: Context {
                server: &self.shared.server,
                sessions: &mut self.sessions,
                variables: &self.kept.variables,
                statements: &self.kept.statements,
                warnings: &self.kept.warnings,
                long_data: &mut self.kept.long_data,
                schemas: &mut self.schemas,
                gtids: &mut self.gtids,
                counts: &mut self.counts,
                epoch: self.epoch,
                now,
            },
        })
    }

    /// A client with what it has prepared by name.
    pub(crate) fn naming(&mut self, key: Key) -> Option<Naming<'_, N::Sock>> {
        let client = self.clients.get_mut(key)?;
        let backend = client.lease().and_then(|lease| self.backends.get(lease));
        Some(Naming {
            key,
            client,
            backend,
            server: &self.shared.server,
            definitions: &mut self.definitions,
            sessions: &mut self.sessions,
            share: self.shared.prepared_of_backend(&self.settings),
        })
    }

    /// A client with what it has prepared by number.
    pub(crate) fn statement_commands(
        &mut self,
        key: Key,
    ) -> Option<StatementCommands<'_, N::Sock>> {
        let client = self.clients.get_mut(key)?;
        let backend = client.lease().and_then(|lease| self.backends.get(lease));
        Some(StatementCommands {
            client,
            backend,
            server: &self.shared.server,
            definitions: &mut self.definitions,
            sessions: &mut self.sessions,
            kept: &mut self.kept,
            share: self.shared.prepared_of_backend(&self.settings),
        })
    }

    /// A client and the backend that it has, if it has one, to be looked at.
    pub(crate) fn client_view(&self, key: Key) -> Option<ClientView<'_, N::Sock>> {
        ClientView::of(key, &self.clients, &self.backends)
    }
}
