//! Reads elsewhere: statements that go to another server than the one that is written to.
//!
//! The problem: a replica may answer a plain read as the writer would, if it has what the client
//! has written, and if the client asks for it. The mechanism: such a client is moved, for this one
//! statement or transaction, into a pool of backends on a reader ([`route`]); its session comes
//! along as to any backend ([`crate::cluster::elsewhere`] has what such a read has to see). A read
//! of which nothing has been answered runs once more on the writer where its reader is lost, or
//! behind for longer than `read_wait_ms_max`.
//!
//! Invariant: a client that has a transaction on a reader runs nothing there that only the writer
//! can do.

use crate::backend::losses;
use crate::client::{Handled, leaving};
use crate::cluster::leaving_readers;
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use crate::statements::endings;
use reactor::Net;
use session::elsewhere::{Why, runs_within, writes_nothing};
use session::own_writes::OwnWrites;
use session::statement::Statement;
use sql::classify;
use wire::command::ReplyShape;

/// Takes another list of readers: nobody waits for one that is left out, and what runs on one
/// that is down runs elsewhere.
pub(crate) fn take_readers<N: Net>(parts: &mut Parts<N>) {
    let all = parts.shared.reads();
    let Some((list, before)) = all.and_then(|all| parts.server_side.reads.take_list(all)) else {
        return;
    };
    for pool in 0..parts.backend_pools.pools.len() {
        let Some(id) = parts.backend_pools.pools[pool].key.reader else {
            continue;
        };
        let Some(reader) = list.all.get(id.index()) else {
            continue;
        };
        if reader.is_down {
            for key in parts.backends.keys_of(|backend| backend.pool == pool) {
                losses::lose(parts, key, "the server is down");
            }
        }
        let has_moved = (before.all.get(id.index())).is_none_or(|it| it.at != reader.at);
        if reader.weight == 0 || has_moved {
            leaving_readers::send_home(parts, pool);
            parts.backend_pools.pools[pool].has = OwnWrites::default();
        }
        parts.closer().leave_backends(|backend| {
            backend.pool == pool
                && (reader.weight == 0 || reader.at.as_deref() != Some(&**backend.at()))
        });
    }
}

/// Finds the server for a client's statement, and moves the client there. `None`: it goes on;
/// else it has been answered.
pub(crate) fn route<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    len: usize,
    statement: &mut Statement,
    class: &classify::Statement,
) -> Option<Handled> {
    let client = parts.clients.get(key)?;
    let (backend_id, backend) = (client.backend(), client.backend_in(&parts.backends));
    let in_transaction = backend.map(|backend| backend.session.in_transaction());
    let pool = client.pool as usize;
    // The number of one that answers with rows may come behind its answer, and be missed by
    // others until then.
    let is_late = parts.backend_pools.pools[pool].key.sends_eofs()
        && statement.shape != ReplyShape::Status
        && (parts.reading(key)).is_some_and(|reading| reading.sees_account());
    let is_numbered = !is_late
        && (client.session.state.tracks_gtids() || !parts.shared.server.flavour.is_mysql());
    match client.session.state.is_unlogged() {
        _ if writes_nothing(class) => {}
        true => parts.readers().doubt_writes(key, OwnWrites::lose),
        false if !is_numbered => parts.readers().doubt_writes(key, OwnWrites::doubt),
        false => {}
    }
    let on_reader = in_transaction.is_some() && parts.backend_pools.is_reader(pool);
    if on_reader && in_transaction == Some(true) {
        let opens_cursor = statement.shape == ReplyShape::Cursor;
        if runs_within(statement.place, class) && !opens_cursor {
            statement.place = Why::ReadOnly;
            return None;
        }
        return Some(parts.answers().refuse_counted(key, &Refusal::NotOnReader));
    }
    if matches!(statement.place, Why::NoSelect | Why::Code)
        && !(parts.reading(key)?).wants_readers(&parts.backend_pools, b"")
    {
        return None;
    }
    if backend_id.is_some()
        && (on_reader || statement.place.is_elsewhere())
        && (parts.alone(key)).is_some_and(|alone| alone.is_about_to_leave())
    {
        // It may have its backend only until that is given back.
        return Some(parts.waiters().wait_outside(key));
    }
    let mut why = (parts.reading(key)?).place_of(statement.place, len, parts.net.now());
    let is_dry_run = parts.shared.reads()?.is_dry_run;
    let mut reader_pool = None;
    if why.is_elsewhere() && !is_dry_run && !on_reader {
        match parts.readers().reader_pool(key, pool) {
            Ok(found) => reader_pool = Some(found),
            Err(none) => why = none,
        }
    }
    let goes = why.is_elsewhere() && !is_dry_run;
    // A backend that it waited for stays where it is one of the server that is asked: given
    // back, it would be waited for once more.
    if let Some(backend_id) = backend_id.filter(|_| goes != on_reader) {
        endings::settle(parts, backend_id);
        let is_kept = parts.clients.get(key)?.backend().is_some();
        if is_kept && on_reader {
            if runs_within(statement.place, class) {
                statement.place = Why::ReadOnly;
                return None;
            }
            // Something holds it there that no text showed: nothing would end that.
            leaving::refuse_and_leave(parts, key, &Refusal::NotOnReader);
            return Some(Handled::Used);
        }
        if is_kept {
            why = Why::Pinned;
        }
    }
    // What waited for its backend has been counted.
    if !on_reader {
        parts.shared.reads()?.count(why);
    }
    statement.place = match why.is_elsewhere() && is_dry_run {
        true => Why::NoReader,
        false => why,
    };
    if on_reader || !statement.place.is_elsewhere() {
        return None;
    }
    let pool = reader_pool?;
    if let Some(client) = parts.clients.get_mut(key) {
        client.pool = u32::try_from(pool).unwrap_or(0);
    }
    let pool = &parts.backend_pools.pools[pool];
    if (parts.reading(key)?).not_known_to_have(pool).is_some() {
        // Nobody's read waits behind it.
        statement.pipelinable = session::known_digests::Pipelinable::Never;
    }
    None
}

/// A client that has a backend of a reader for what does not run there gives it back, and goes
/// on (`None`), waits until it can, or is closed. In a transaction on a reader, what is no text
/// runs there.
pub(crate) fn leave_for_writer<N: Net>(parts: &mut Parts<N>, key: ClientId) -> Option<Handled> {
    let client = parts.clients.get(key)?;
    if !parts.backend_pools.is_reader(client.pool as usize) {
        return None;
    }
    let held = client.session.is_held();
    if let Some(backend_id) = client.backend()
        && let Some(backend) = client.backend_in(&parts.backends)
    {
        if backend.session.in_transaction() {
            return None;
        }
        if held {
            // Something holds it there that no text showed: nothing would end that.
            leaving::refuse_and_leave(parts, key, &Refusal::NotOnReader);
            return Some(Handled::Used);
        }
        if !backend.flight.is_empty() {
            return Some(parts.waiters().wait_outside(key));
        }
        endings::settle(parts, backend_id);
        let client = parts.clients.get(key)?;
        if client.backend().is_some() {
            return Some(parts.waiters().wait_outside(key));
        }
    }
    parts.readers().go_home(key);
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::replies;
    use crate::backend::{InFlight, Purpose};
    use crate::client::ClientState;
    use crate::cluster::Cluster;
    use crate::cluster::elsewhere::tests::reads;
    use crate::config::ServerLimits;
    use crate::errors::reasons::PinReason;
    use crate::group::Group;
    use crate::group::scripted::{Scripted, shared};
    use crate::group::tests::{NOW, bound, group};
    use crate::group::tokens::BackendId;
    use crate::scheduler::account_slots::AccountSlots;
    use crate::scheduler::checkout;
    use ::cluster::ServerId;
    use session::found::Found;
    use session::reply_summary::ReplySummary;
    use session::send_mode::Behind;
    use std::sync::Arc;

    /// A client that has a backend of the first of two servers.
    fn on_reader() -> (Group<Scripted>, ClientId, BackendId) {
        let mut group = group();
        let mut shared = shared("");
        shared.cluster = Some(Cluster::of_tests(""));
        group.parts.shared = Arc::new(shared);
        group.parts.backend_pools.pools[0].key.reader = Some(ServerId(0));
        let (key, backend_id) = bound(&mut group);
        (group, key, backend_id)
    }

    /// Statements that were counted on the reader, and those that were lost.
    fn counted(group: &Group<Scripted>) -> (u32, u32) {
        let traffic = group.parts.shared.reads().unwrap().on[0].take();
        (traffic.statements, traffic.failed)
    }

    #[test]
    fn a_reader_that_was_lost_has_nothing_for_certain_and_only_statements_count() {
        for in_transaction in [false, true] {
            let (mut group, key, backend_id) = on_reader();
            group.parts.backend_pools.pools[0].has.note_gtid(b"0-1-7");
            let backend = group.parts.backends.get_mut(backend_id).unwrap();
            backend.take_kind(&group.parts.backend_pools.pools[0].key);
            if in_transaction {
                backend.session.transaction.note_begin_sent();
            }
            backend.flight.expect(InFlight::own(
                Some(key),
                Purpose::Statement,
                ReplyShape::Results,
            ));
            let client = group.parts.clients.get_mut(key).unwrap();
            assert!(client.change_state(ClientState::Running, NOW));
            losses::lose(&mut group.parts, backend_id, "it is gone");
            assert!(group.parts.backend_pools.pools[0].has.is_empty());
            assert_eq!(counted(&group), (1, 1));
        }
        // One that nobody uses, and one that is behind.
        let (mut group, _, backend_id) = on_reader();
        checkout::release(&mut group.parts, backend_id);
        losses::lose(&mut group.parts, backend_id, "it is gone");
        assert_eq!(counted(&group), (0, 0));
        let (mut group, key, backend_id) = on_reader();
        leaving_readers::caught_up(
            &mut group.parts,
            backend_id,
            Some(key),
            (&ReplySummary::default(), b""),
        );
        assert_eq!(counted(&group), (0, 0));
        assert!(group.parts.backends.get(backend_id).is_none());
    }

    #[test]
    fn nobody_waits_for_a_reader_that_was_behind_just_now() {
        let (mut group, key, backend_id) = on_reader();
        group.parts.backend_pools.pools[0].home = Some(0);
        group.parts.server_side.reads = reads(&[1, 0]);
        group
            .parts
            .server_side
            .reads
            .writes_of(key)
            .note_gtid(b"0-1-9");
        assert_eq!(group.parts.readers().reader_pool(key, 0), Ok(0));
        leaving_readers::caught_up(
            &mut group.parts,
            backend_id,
            Some(key),
            (&ReplySummary::default(), b""),
        );
        assert_eq!(group.parts.readers().reader_pool(key, 0), Err(Why::Behind));
        // One that has nothing to wait for reads there.
        group.parts.server_side.reads.forget(key);
        assert_eq!(group.parts.readers().reader_pool(key, 0), Ok(0));
    }

    #[test]
    fn a_reader_that_takes_no_more_connections_is_passed_over_unless_one_is_free() {
        let (mut group, key, backend_id) = on_reader();
        let parts = &mut group.parts;
        parts.backend_pools.pools[0].home = Some(0);
        parts.server_side.reads = reads(&[1, 0]);
        let server = AccountSlots::of_server(ServerLimits {
            backends_max: Some(1),
            running_max: Some(1),
        });
        parts.backend_pools.pools[0].server = Some(server.clone());
        assert_eq!(parts.readers().reader_pool(key, 0), Ok(0));
        let backend = parts.backends.get_mut(backend_id).unwrap();
        backend.count_at(server.connect());
        assert_eq!(parts.readers().reader_pool(key, 0), Err(Why::Full));
        checkout::release(parts, backend_id);
        assert_eq!(parts.readers().reader_pool(key, 0), Ok(0));
        let runs = server.running().unwrap().connect();
        assert_eq!(parts.readers().reader_pool(key, 0), Err(Why::Full));
        drop(runs);
        assert_eq!(parts.readers().reader_pool(key, 0), Ok(0));
    }

    #[test]
    fn what_a_reader_lacks_is_read_from_the_writer_and_nobody_hears_of_it() {
        let (mut group, key, backend_id) = on_reader();
        group.parts.backend_pools.pools[0].home = Some(0);
        let client = group.parts.clients.get_mut(key).unwrap();
        let mut session = (*client.session.state).clone();
        session.schema = Some(b"new".as_slice().into());
        client.session.state = group.parts.known.sessions.intern(session);
        assert!(client.change_state(ClientState::Running, NOW));
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        backend.take_kind(&group.parts.backend_pools.pools[0].key);
        let mut command = InFlight::own(Some(key), Purpose::Statement, ReplyShape::Results);
        command.kept = backend.flight.keep_for_followers(b"\x09\0\0\0\x03SELECT 1");
        backend.flight.expect(command);
        let unknown_schema = (1049, "Unknown database 'new'");
        losses::restore_failed(
            &mut group.parts,
            key,
            backend_id,
            Behind::NotRun,
            unknown_schema,
        );
        let client = group.parts.clients.get(key).unwrap();
        assert!(client.session.state.schema.is_some() && client.command.runs_apart());
        assert!(client.input.bytes().is_some(), "it runs again");
    }

    /// Also behind the definitions, which a server may send before it runs anything.
    #[test]
    fn what_a_reader_refuses_to_write_runs_on_the_writer() {
        for definitions in [&b""[..], b"\x01\0\0\x01\x01\x05\0\0\x02\x03defx"] {
            let (mut group, key, backend_id) = on_reader();
            group.parts.backend_pools.pools[0].home = Some(0);
            let backend = group.parts.backends.get_mut(backend_id).unwrap();
            backend.take_kind(&group.parts.backend_pools.pools[0].key);
            let mut command = InFlight::own(Some(key), Purpose::Statement, ReplyShape::Results);
            command.kept = backend.flight.keep_for_followers(b"\x09\0\0\0\x03SELECT 1");
            backend.flight.expect(command);
            let client = group.parts.clients.get_mut(key).unwrap();
            assert!(client.change_state(ClientState::Running, NOW));
            let mut reply = definitions.to_vec();
            reply.extend_from_slice(b"\x0b\0\0\x01\xff\x0a\x05#HY000no");
            replies::digest_reply(&mut group.parts, backend_id, &reply);
            let client = group.parts.clients.get(key).unwrap();
            assert!(client.command.runs_apart() && client.input.bytes().is_some());
        }
    }

    #[test]
    fn what_is_cut_off_may_have_written_unless_it_was_a_read() {
        for (found, is_unsure) in [(Found::Rows, false), (Found::Keeps, true)] {
            let (mut group, key, backend_id) = on_reader();
            group.parts.backend_pools.pools[0].key.reader = None;
            let backend = group.parts.backends.get_mut(backend_id).unwrap();
            backend.flight.expect(InFlight::own(
                Some(key),
                Purpose::Statement,
                ReplyShape::Results,
            ));
            let client = group.parts.clients.get_mut(key).unwrap();
            client.session.statement.found = found;
            assert!(client.change_state(ClientState::Running, NOW));
            losses::lose(&mut group.parts, backend_id, "it is gone");
            assert_eq!(
                group.parts.server_side.reads.writes_of(key).is_unsure(),
                is_unsure
            );
        }
    }

    /// Text or not, the client is closed: nothing would end what holds it there.
    #[test]
    fn a_client_that_hidden_code_holds_on_a_reader_is_closed_by_what_only_the_writer_runs() {
        let (mut group, key, _) = on_reader();
        let client = group.parts.clients.get_mut(key).unwrap();
        (client.session.pins).add(PinReason::PreparedSchema, None, NOW.0);
        assert!(leave_for_writer(&mut group.parts, key).is_some());
        let client = group.parts.clients.get(key);
        assert!(client.is_none_or(|client| client.state() == ClientState::Leaving));
    }
}
