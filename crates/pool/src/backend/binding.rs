//! The names that a client and its backend have for each other.
//!
//! The problem: where one of the two names changes and the other does not, a backend serves two
//! clients, or nobody for ever. The mechanism: each side has a [`Binding`], which anybody may read
//! and only the functions here change, both sides at once.
//!
//! Several clients may have one backend: those whose statements are in flight there. Each of them
//! names the backend; the backend names the one whose reply is next.
//!
//! Invariant: the client that a backend names has that backend, or is gone.

use crate::group::tokens::{BackendId, ClientId};

/// The other side, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binding<I>(Option<I>);

impl<I> Default for Binding<I> {
    fn default() -> Binding<I> {
        Binding(None)
    }
}

impl<I: Copy> Binding<I> {
    /// Id of the other side.
    pub(crate) fn id(self) -> Option<I> {
        self.0
    }
}

impl Binding<BackendId> {
    /// Binds a client and an idle backend to each other.
    pub(crate) fn bind(
        &mut self,
        backend: &mut Binding<ClientId>,
        (client, backend_id): (ClientId, BackendId),
    ) {
        *self = Binding(Some(backend_id));
        *backend = Binding(Some(client));
    }

    /// Binds a client whose statement goes out behind those in flight on this backend.
    pub(crate) fn join(&mut self, backend: BackendId) {
        *self = Binding(Some(backend));
    }

    /// Unbinds a client from its backend, which, if it is still there, is nobody's, or that of the
    /// clients behind this one.
    pub(crate) fn unbind(&mut self, client: ClientId, backend: Option<&mut Binding<ClientId>>) {
        *self = Binding(None);
        if let Some(backend) = backend {
            backend.forget(client);
        }
    }
}

impl Binding<ClientId> {
    /// Unbinds a backend from this client, which is gone.
    pub(crate) fn forget(&mut self, client: ClientId) {
        if self.0 == Some(client) {
            *self = Binding(None);
        }
    }

    /// Binds a backend to this client, whose statement is in flight there and for whom its next
    /// reply is.
    pub(crate) fn hand_over(&mut self, owner: Option<ClientId>) {
        *self = Binding(owner);
    }
}

#[cfg(test)]
mod tests {
    use super::Binding;
    use crate::group::tokens::{BackendId, ClientId};

    const BACKEND: BackendId = BackendId::from_parts(7, 0);

    fn id(index: u32) -> ClientId {
        ClientId::from_parts(index, 0)
    }

    #[test]
    fn both_sides_are_bound_and_parted_together() {
        let (mut client, mut backend) = (Binding::default(), Binding::default());
        client.bind(&mut backend, (id(1), BACKEND));
        assert_eq!((client.id(), backend.id()), (Some(BACKEND), Some(id(1))));
        client.unbind(id(1), Some(&mut backend));
        assert_eq!((client.id(), backend.id()), (None, None));
    }

    #[test]
    fn a_backend_stays_with_those_behind_a_client() {
        let (mut one, mut two, mut backend) = <(Binding<_>, Binding<_>, Binding<_>)>::default();
        one.bind(&mut backend, (id(1), BACKEND));
        two.join(BACKEND);
        assert_eq!(backend.id(), Some(id(1)), "its reply comes first");
        backend.hand_over(Some(id(2)));
        one.unbind(id(1), Some(&mut backend));
        assert_eq!((two.id(), backend.id()), (Some(BACKEND), Some(id(2))));
        backend.forget(id(1));
        assert_eq!(backend.id(), Some(id(2)));
        backend.forget(id(2));
        assert_eq!(backend.id(), None);
    }
}
