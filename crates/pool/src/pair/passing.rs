//! A reply that passes by, on its way from a backend to the client that it is for.
//!
//! The problem: what a client is to be told of a reply is known from both ends: what it has
//! negotiated and prepared, which changes it wants to hear of, in which schema its backend stands.
//! The mechanism: [`Passing`] puts that together for as many bytes as have come, has them relayed
//! ([`crate::backend::relay`]), and notes with the backend what they say. Where the pool itself has
//! asked, or the client has gone, the reply is followed all the same.
//!
//! Invariant: what is noted of a reply does not depend on whom it is for.

use crate::backend::flight::ReplyParts;
use crate::backend::relay::{Adjustments, PendingChanges, Relay, Shape, Stop};
use crate::backend::{Backend, Reports};
use crate::client::{Client, ClientSession, ClientState};
use crate::pair::prepared;
use crate::pair::trackers::{WantedBy, tracks_for_pool, wanted_by};
use crate::server::facts::ServerFacts;
use session::statement::{Conditions, Extent};
use wire::capabilities::LOCAL_FILES;
use wire::checked::{Breach, CheckedReply};
use wire::command::Command;
use wire::packet::{HEADER_LEN, PAYLOAD_MAX};
use wire::reply::Step;
use wire::status;

/// The oldest reply of a backend.
pub(crate) struct Passing<'a, S> {
    pub(crate) backend: &'a mut Backend<S>,
    /// The client to relay to; `None` if it disconnected.
    pub(crate) client: Option<&'a mut Client<S>>,
    pub(crate) server: &'a ServerFacts,
}

impl<S> Passing<'_, S> {
    /// Takes what it can from `input`, and appends to `out` what the client is sent, or what the
    /// pool is to read. Gives the bytes used up, and why it stopped.
    ///
    /// # Errors
    /// [`Breach`] when the server's bytes are no reply to the command.
    pub(crate) fn pass_on(
        &mut self,
        mut reply: CheckedReply,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Stop), Breach> {
        let backend = &mut *self.backend;
        let mysql = self.server.flavour.is_mysql();
        let (mut own_seq, mut nobodys) = (0, PendingChanges::default());
        let wanted = (self.client.as_deref()).map(|c| wanted_of(c, backend, self.server));
        let mut adjustments =
            (self.client.as_deref()).map_or_else(Default::default, |c| c.session.adjustments());
        let (seq, pending_changes, shape) = match self.client.as_deref_mut() {
            Some(client) => {
                adjustments.schema_before = is_of_before(client, backend, mysql);
                let mut shape = Shape::of(client.capabilities, wanted.as_deref(), mysql);
                shape.hides_gtids =
                    mysql && shape.track.is_some() && tracks_for_pool(&client.session);
                let session = &mut client.session;
                if adjustments.schema {
                    shape.schema = session.state.schema.as_deref();
                }
                (
                    &mut client.identity.seq,
                    &mut session.pending_changes,
                    shape,
                )
            }
            None => (&mut own_seq, &mut nobodys, Shape::own()),
        };
        let status = backend.session.transaction.status();
        let ReplyParts {
            middle,
            bound,
            summary,
        } = backend.flight.reply_parts(backend.session.bound_mut());
        let mut relay = Relay {
            reply: &mut reply,
            middle,
            seq,
            shape,
            status,
            adjustments,
            pending_changes,
            bound,
        };
        let mut opens_cursor = false;
        let fed = relay.feed(input, out, |step, eof| {
            if let Step::CursorOpen(ok) | Step::End(ok) = step {
                opens_cursor = ok.status & status::CURSOR_EXISTS != 0;
            }
            summary.notice(step, eof);
        });
        summary.len += out.len();
        let client = self.client.as_deref();
        let executed = client.and_then(|client| client.session.prepared.under_way());
        if let Some(executed) = executed.filter(|one| opens_cursor && one.cursor) {
            backend.session.note_cursor(executed.id, *reply.columns());
        }
        if let Some(front) = backend.flight.iter_mut().next() {
            front.reply = reply;
        }
        fed
    }
}

/// Trackers that a client wants reported of the session on its backend. The schema of one that
/// stands in another than its client's is not the client's. GET DIAGNOSTICS changes no state, and
/// the SET that is sent in its place does.
fn wanted_of<'a, S>(
    client: &Client<S>,
    backend: &Backend<S>,
    server: &'a ServerFacts,
) -> WantedBy<'a> {
    let mut wanted = wanted_by(&client.session, server);
    let sets = client.session.statement.conditions == Conditions::AsksInWords;
    if sets && wanted.state {
        wanted = wanted.without_state();
    }
    match backend.session.is_in_another_schema() {
        false => wanted,
        true => wanted.without_schema(),
    }
}

/// True if a schema that the reply names is of a statement before it. The trackers of the pool make
/// MariaDB report, where those of the client would not.
fn is_of_before<S>(client: &Client<S>, backend: &Backend<S>, mysql: bool) -> bool {
    let may_be_pending =
        backend.session.in_transaction() || backend.session.reports != Reports::Complete;
    let extent = client.session.statement.extent;
    let stays = matches!(extent, Extent::OneInSchema | Extent::ShortInSchema);
    backend.flight.sends_eofs() && !mysql && may_be_pending && stays
}

/// Commands that are shorter are one packet, with what the pool may put in front of their text.
const ONE_PACKET_MAX: usize = PAYLOAD_MAX / 2;

impl<S> Client<S> {
    /// Follows the reply to its statement, which goes out to this backend as this message.
    pub(crate) fn reply_to(&self, message: &[u8], backend: &Backend<S>) -> CheckedReply {
        let mut reply = CheckedReply::new(self.session.statement.shape);
        let command = message.get(HEADER_LEN).copied();
        if let Some(command) = command.and_then(Command::from_byte) {
            reply = reply.to_command(command);
            if command == Command::StmtFetch
                && let Some((id, columns)) = backend.session.cursor()
                && (self.session.prepared.under_way()).is_some_and(|fetch| fetch.id == *id)
            {
                reply = reply.of_cursor(columns);
            }
        }
        if message.len() < ONE_PACKET_MAX {
            reply = reply.numbered();
        }
        if self.capabilities & LOCAL_FILES == 0 {
            reply = reply.without_files();
        }
        reply
    }

    /// Resets the sequence number before an unsolicited packet: a client that has asked nothing
    /// gets packet 0, as from MySQL; drivers take another number for a broken stream.
    pub(crate) fn begin_unasked(&mut self) {
        if self.state() == ClientState::Idle {
            self.identity.seq = 0;
        }
    }
}

impl ClientSession {
    /// Parts of the reply to its command that it is told otherwise than the server says them.
    pub(crate) fn adjustments(&self) -> Adjustments {
        let mut adjustments = Adjustments::default();
        if self.forgets_changes() {
            adjustments.changed = true;
        } else if self.statement.counts_before {
            adjustments.warnings = Some(self.last.conditions);
        } else if let Some(prepared) = self.prepared.as_ref() {
            return prepared::adjustments(prepared);
        }
        adjustments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{InFlight, Purpose};
    use crate::pair::tests::{Parts, owner};
    use session::statement::Statement;
    use wire::capabilities::{DEPRECATE_EOF, SESSION_TRACK};
    use wire::command::ReplyShape;
    use wire::packet::put_short;
    use wire::reply::{OK, OkPacket};
    use wire::status::{AUTOCOMMIT, SESSION_STATE_CHANGED};
    use wire::track::put_schema;

    /// An OK packet that names a default schema.
    fn ok() -> Vec<u8> {
        let (mut changes, mut out) = (Vec::new(), Vec::new());
        put_schema(&mut changes, b"shop");
        let ok = OkPacket {
            affected_rows: 3,
            insert_id: 0,
            status: AUTOCOMMIT | SESSION_STATE_CHANGED,
            warnings: 0,
            info: b"",
            changes: &changes,
        };
        put_short(&mut out, 1, |out| ok.put(out, OK, true));
        out
    }

    /// Bytes that are sent of it; `is_there`: to a client that wants to hear all.
    fn sent(parts: &mut Parts, is_there: bool) -> Vec<u8> {
        parts.client.capabilities = DEPRECATE_EOF | SESSION_TRACK;
        parts.client.identity.seq = 9;
        let command = InFlight::own(Some(owner()), Purpose::Statement, ReplyShape::Results);
        parts.backend.flight.expect(command);
        let mut passing = Passing {
            backend: &mut parts.backend,
            client: is_there.then_some(&mut parts.client),
            server: &parts.server,
        };
        let (input, mut out) = (ok(), Vec::new());
        let passed = passing.pass_on(command.reply, &input, &mut out);
        assert_eq!(passed.ok(), Some((input.len(), Stop::Done)));
        out
    }

    fn names_schema(out: &[u8]) -> bool {
        out.windows(4).any(|part| part == b"shop")
    }

    #[test]
    fn what_is_noted_does_not_depend_on_whom_it_is_for() {
        let [mut one, mut other] = [Parts::bound(), Parts::bound()];
        let to_client = sent(&mut one, true);
        let to_nobody = sent(&mut other, false);
        assert_eq!(
            one.backend.flight.reply_so_far().changes,
            other.backend.flight.reply_so_far().changes
        );
        assert_eq!(one.backend.flight.reply_so_far().affected, Some(3));
        assert_eq!(other.backend.flight.reply_so_far().affected, Some(3));
        assert_eq!(
            (one.client.identity.seq, other.client.identity.seq),
            (10, 9)
        );
        assert_eq!((to_client[3], to_nobody[3]), (9, 0), "its own numbers");
    }

    #[test]
    fn the_schema_of_a_backend_that_stands_elsewhere_is_not_the_clients() {
        let mut parts = Parts::bound();
        assert!(names_schema(&sent(&mut parts, true)));
        let mut parts = Parts::bound();
        parts.backend.session.note_another_schema();
        assert!(!names_schema(&sent(&mut parts, true)));
    }

    #[test]
    fn a_schema_that_may_be_of_a_statement_before_is_told_later() {
        let mut parts = Parts::bound();
        parts.client.session.statement = Statement::plain(ReplyShape::Results);
        parts.client.session.statement.extent = Extent::OneInSchema;
        parts.backend.flight.send_eofs();
        assert!(names_schema(&sent(&mut parts, true)), "all is reported");
        let mut parts = Parts::bound();
        parts.client.session.statement = Statement::plain(ReplyShape::Results);
        parts.client.session.statement.extent = Extent::OneInSchema;
        parts.backend.flight.send_eofs();
        parts.backend.session.transaction.note_begin_sent();
        assert!(!names_schema(&sent(&mut parts, true)));
        assert!(names_schema(parts.client.session.pending_changes.bytes()));
    }
}
