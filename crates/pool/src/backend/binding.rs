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

use reactor::Key;

/// The other side, if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Binding(Option<Key>);

impl Binding {
    /// Key of the backend.
    pub(crate) fn key(self) -> Option<Key> {
        self.0
    }

    /// A client's: it and an idle backend get each other.
    pub(crate) fn bind(&mut self, backend: &mut Binding, (client, lease): (Key, Key)) {
        *self = Binding(Some(lease));
        *backend = Binding(Some(client));
    }

    /// A client's: its statement goes out behind those that are in flight on this backend.
    pub(crate) fn join(&mut self, lease: Key) {
        *self = Binding(Some(lease));
    }

    /// A client's: it has no backend any more. The backend, if it is still there, is nobody's, or
    /// that of the clients behind this one.
    pub(crate) fn unbind(&mut self, client: Key, backend: Option<&mut Binding>) {
        *self = Binding(None);
        if let Some(backend) = backend {
            backend.forget(client);
        }
    }

    /// A backend's: this client is gone.
    pub(crate) fn forget(&mut self, client: Key) {
        if self.0 == Some(client) {
            *self = Binding(None);
        }
    }

    /// A backend's: its next reply is for this client, whose statement is in flight there.
    pub(crate) fn hand_over(&mut self, owner: Option<Key>) {
        *self = Binding(owner);
    }
}

#[cfg(test)]
mod tests {
    use super::Binding;
    use reactor::Key;

    fn key(index: u32) -> Key {
        Key::from_parts(index, 0)
    }

    #[test]
    fn both_sides_are_bound_and_parted_together() {
        let (mut client, mut backend) = (Binding::default(), Binding::default());
        client.bind(&mut backend, (key(1), key(7)));
        assert_eq!((client.key(), backend.key()), (Some(key(7)), Some(key(1))));
        client.unbind(key(1), Some(&mut backend));
        assert_eq!((client.key(), backend.key()), (None, None));
    }

    #[test]
    fn a_backend_stays_with_those_behind_a_client() {
        let (mut one, mut two, mut backend) = <(Binding, Binding, Binding)>::default();
        one.bind(&mut backend, (key(1), key(7)));
        two.join(key(7));
        assert_eq!(backend.key(), Some(key(1)), "its reply comes first");
        backend.hand_over(Some(key(2)));
        one.unbind(key(1), Some(&mut backend));
        assert_eq!((two.key(), backend.key()), (Some(key(7)), Some(key(2))));
        backend.forget(key(1));
        assert_eq!(backend.key(), Some(key(2)));
        backend.forget(key(2));
        assert_eq!(backend.key(), None);
    }
}
