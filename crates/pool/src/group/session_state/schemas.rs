//! Schemata that are defined anew: backends that stand in one are left
//! ([`crate::watched::schemas_defined`]).
//!
//! Groups look at the begin of a turn, and behind each statement of a client, whose next one may be
//! here already.

use crate::group::Group;
use reactor::{Key, Net};
use session::text::Text;
use sql::classify::stored::fold;

impl<N: Net> Group<N> {
    /// Leaves the backends that stand in schemata which have been defined anew, if there are some;
    /// `but` is the one that may have done so: it knows of it.
    pub(crate) fn take_schemas(&mut self, but: Option<Key>) {
        if self.shared.schemas_defined.count() == self.schemas_seen {
            return;
        }
        let (count, names) = self.shared.schemas_defined.since(self.schemas_seen);
        self.schemas_seen = count;
        let is_one = |schema: &Text| names.as_ref().is_none_or(|n| n.contains(&fold(schema)));
        self.leave_backends(|key, backend| {
            Some(key) != but && backend.session.schema.as_ref().is_some_and(is_one)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::Riding;
    use crate::group::tests::{backend, group, leased};
    use session::state::Session;
    use std::rc::Rc;

    #[test]
    fn backends_in_a_schema_that_is_defined_anew_serve_nobody_else() {
        let mut group = group();
        let (_, own) = leased(&mut group);
        let (_, theirs) = leased(&mut group);
        let (idle, elsewhere) = (backend(&mut group), backend(&mut group));
        for (lease, schema) in [
            (own, "Shop"),
            (theirs, "shop"),
            (idle, "shop"),
            (elsewhere, "other"),
        ] {
            let mut session = Session::default();
            session.use_schema(Some(schema.as_bytes().into()));
            let backend = group.backends.get_mut(lease).unwrap();
            backend.session = Rc::new(session);
            backend.riding = Riding::Open;
        }
        group.take_schemas(None);
        assert_eq!(group.backends.keys().len(), 4, "nothing is defined");
        group.shared.schemas_defined.note(b"shop"[..].into());
        group.take_schemas(Some(own));
        assert!(group.backends.get(idle).is_none());
        for (lease, is_for_others) in [(own, true), (theirs, false), (elsewhere, true)] {
            let backend = group.backends.get(lease).unwrap();
            assert_eq!(backend.reuse.is_for_others(), is_for_others);
            assert_eq!(backend.riding == Riding::Open, is_for_others);
        }
        group.take_schemas(None);
        let own = group.backends.get(own).unwrap();
        assert!(own.reuse.is_for_others(), "each is taken once");
    }
}
