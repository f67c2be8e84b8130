//! Backends that are on their way to another process with their clients.
//!
//! Such a backend is out of its group's books, so that nothing is read from it or said on it,
//! whatever happens there. One that is taken off this list for good is closed without a word,
//! because the other process has the connection too.
//!
//! Invariant: a backend is either in its group's slots or here, and here it is nobody's.

use crate::backend::Backend;
use crate::client::clients::Clients;
use crate::group::tokens::{BackendId, ClientId};
use reactor::Slots;
use std::collections::BTreeMap;

/// Backends by their clients, and what each was called in its group.
#[derive(Debug)]
pub(crate) struct Migrating<S>(BTreeMap<ClientId, (BackendId, Backend<S>)>);

impl<S> Default for Migrating<S> {
    fn default() -> Migrating<S> {
        Migrating(BTreeMap::new())
    }
}

impl<S> Migrating<S> {
    /// Takes a client's backend out of the books, if it has one.
    pub(crate) fn put(
        &mut self,
        key: ClientId,
        clients: &mut Clients<S>,
        backends: &mut Slots<Backend<S>, BackendId>,
    ) {
        if let Some((_, Some(backend_id))) = clients.unbind(key, backends)
            && let Some(backend) = backends.remove(backend_id)
        {
            self.0.insert(key, (backend_id, backend));
        }
    }

    /// Gives a client its backend back, if it had one.
    pub(crate) fn take_back(
        &mut self,
        key: ClientId,
        clients: &mut Clients<S>,
        backends: &mut Slots<Backend<S>, BackendId>,
    ) {
        if let Some((_, backend)) = self.0.remove(&key) {
            Self::bind(key, backend, clients, backends);
        }
    }

    /// Binds this backend to its client, which has come from another process.
    pub(crate) fn bind(
        key: ClientId,
        backend: Backend<S>,
        clients: &mut Clients<S>,
        backends: &mut Slots<Backend<S>, BackendId>,
    ) {
        let backend_id = backends.insert(backend);
        if let (Some(client), Some(backend)) = (clients.get_mut(key), backends.get_mut(backend_id))
        {
            client.bind(backend, (key, backend_id));
        }
    }

    /// Removes a client's backend that the other process has; returns it with its key.
    pub(crate) fn forget(&mut self, key: ClientId) -> Option<(BackendId, Backend<S>)> {
        self.0.remove(&key)
    }

    /// True if a client's backend is here.
    pub(crate) fn has(&self, key: ClientId) -> bool {
        self.0.contains_key(&key)
    }

    /// The sockets of a client that is on its way: its own, and that of its backend.
    pub(crate) fn sockets<'a>(
        &'a self,
        key: ClientId,
        clients: &'a Clients<S>,
    ) -> impl Iterator<Item = &'a S> {
        let client = clients.get(key).map(|client| &client.transport);
        let backend = self.0.get(&key).map(|(_, backend)| &backend.transport);
        client.into_iter().chain(backend).map(|over| over.sock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::login::Login;
    use crate::backend::Endpoint;
    use crate::client::Client;
    use crate::client::buffers::transport::Transport;
    use reactor::{Address, Time};
    use std::rc::Rc;
    use std::sync::Arc;
    use wire::auth::NONCE_LEN;

    struct Bench {
        migrating: Migrating<u8>,
        clients: Clients<u8>,
        backends: Slots<Backend<u8>, BackendId>,
    }

    impl Bench {
        /// A client whose socket is 1, with a backend whose socket is 2.
        fn new() -> (Bench, ClientId) {
            let login = Login::new([0; NONCE_LEN], false);
            let transport = Transport::plain(1, true);
            let client = Client::greeted(transport, Time(1), Rc::default(), login);
            let at = Arc::new(Address::Unix("/s".into()));
            let to = Endpoint::new(2, at, 0);
            let backend = Backend::dialling(to, Time(1), Rc::default(), None);
            let mut bench = Bench {
                migrating: Migrating::default(),
                clients: Clients::default(),
                backends: Slots::default(),
            };
            let key = bench.clients.insert(client);
            Migrating::bind(key, backend, &mut bench.clients, &mut bench.backends);
            (bench, key)
        }

        fn sockets(&self, key: ClientId) -> Vec<u8> {
            self.migrating
                .sockets(key, &self.clients)
                .copied()
                .collect()
        }

        /// True if the client's backend names the client; `None` without one.
        fn has_backend(&self, key: ClientId) -> Option<bool> {
            let backend = self.clients.get(key)?.backend()?;
            Some(self.backends.get(backend)?.client() == Some(key))
        }
    }

    #[test]
    fn a_backend_is_in_the_books_or_aside() {
        let (mut bench, key) = Bench::new();
        assert_eq!(bench.has_backend(key), Some(true));
        assert_eq!(bench.sockets(key), [1], "it is on no way");
        bench
            .migrating
            .put(key, &mut bench.clients, &mut bench.backends);
        assert_eq!((bench.has_backend(key), bench.backends.len()), (None, 0));
        assert!(bench.migrating.has(key));
        assert_eq!(bench.sockets(key), [1, 2]);
        (bench.migrating).take_back(key, &mut bench.clients, &mut bench.backends);
        assert_eq!(
            (bench.has_backend(key), bench.backends.len()),
            (Some(true), 1)
        );
        assert!(!bench.migrating.has(key));
    }

    #[test]
    fn what_the_other_process_has_is_forgotten_once() {
        let (mut bench, key) = Bench::new();
        let backend = bench.clients.get(key).unwrap().backend();
        bench
            .migrating
            .put(key, &mut bench.clients, &mut bench.backends);
        let forgotten = bench.migrating.forget(key);
        assert_eq!(forgotten.map(|(backend, _)| backend), backend);
        assert!(bench.migrating.forget(key).is_none());
        (bench.migrating).take_back(key, &mut bench.clients, &mut bench.backends);
        assert_eq!((bench.has_backend(key), bench.backends.len()), (None, 0));
    }

    #[test]
    fn who_has_no_backend_takes_none_along() {
        let (mut bench, key) = Bench::new();
        bench
            .migrating
            .put(key, &mut bench.clients, &mut bench.backends);
        drop(bench.migrating.forget(key));
        bench
            .migrating
            .put(key, &mut bench.clients, &mut bench.backends);
        assert!(!bench.migrating.has(key));
        assert_eq!(bench.sockets(key), [1]);
    }
}
