//! Schemas that are defined anew: backends that stand in one are left
//! ([`crate::server::watched::schemas_defined`]).
//!
//! Groups look at the begin of a turn, and behind each statement of a client, whose next one may be
//! here already.

use crate::backend::{Backend, BackendState, InFlight, Purpose};
use crate::group::parts::Parts;
use reactor::Net;
use session::send_mode::SendMode;
use session::text::Text;
use sql::classify::stored::fold_bare;

/// Leaves the backends that stand in schemas which have been defined anew: they serve their
/// clients until they are checked in, and nobody else.
pub(crate) fn take_schemas<N: Net>(parts: &mut Parts<N>) {
    let (count, names) = (parts.shared.watched.schemas_defined).since(parts.known.schemas_seen);
    parts.known.schemas_seen = count;
    let is_one = |schema: &Text| (names.as_ref()).is_none_or(|n| n.contains(&fold_bare(schema)));
    // A statement that runs may have come to the schema before, and its answer says so later.
    let comes = |command: &InFlight| match command.owner.map(|owner| parts.clients.get(owner)) {
        Some(Some(client)) => {
            let statement = &client.session.statement;
            statement.send_mode == SendMode::NewSchema || statement.is_several()
        }
        _ => command.purpose == Purpose::Statement,
    };
    let stands_there = |backend: &Backend<N::Sock>| {
        let schema = backend.session.state.schema.as_ref();
        schema.is_some_and(is_one) || backend.flight.iter().any(comes)
    };
    for key in parts.backends.keys_of(stands_there) {
        let Some(backend) = parts.backends.get_mut(key) else {
            continue;
        };
        match backend.state() {
            BackendState::CheckedOut => backend.reuse.end_with_client(),
            BackendState::Idle => {
                // Its last client may have to be asked for first.
                backend.reuse.end_with_client();
                parts.closer().retire(key);
            }
            BackendState::Dialling | BackendState::Preparing => parts.closer().retire(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::take_schemas;
    use crate::group::tests::{backend, bound, group};
    use session::state::Session;
    use sql::classify::stored::{Schema, SchemaChange};
    use std::rc::Rc;

    #[test]
    fn backends_in_a_schema_that_is_defined_anew_serve_nobody_else() {
        let mut group = group();
        let (_, theirs) = bound(&mut group);
        let (_, apart) = bound(&mut group);
        let (idle, elsewhere) = (backend(&mut group), backend(&mut group));
        for (backend_id, schema) in [
            (theirs, "Shop"),
            (apart, "other"),
            (idle, "shop"),
            (elsewhere, "other"),
        ] {
            let mut session = Session::default();
            session.use_schema(Some(schema.as_bytes().into()));
            let backend = group.parts.backends.get_mut(backend_id).unwrap();
            backend.session.state = Rc::new(session);
        }
        take_schemas(&mut group.parts);
        assert_eq!(group.parts.backends.keys().len(), 4, "nothing is defined");
        let shop = Schema {
            name: Some(b"shop"[..].into()),
            change: SchemaChange::Altered,
        };
        group.parts.shared.watched.schemas_defined.note(shop, true);
        take_schemas(&mut group.parts);
        assert!(group.parts.backends.get(idle).is_none());
        for (backend_id, is_for_others) in [(theirs, false), (apart, true), (elsewhere, true)] {
            let backend = group.parts.backends.get(backend_id).unwrap();
            assert_eq!(backend.reuse.is_for_others(), is_for_others);
        }
    }
}
