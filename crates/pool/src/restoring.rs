//! Restoring: bringing a backend into its client's session state, without a round trip.
//!
//! The problem: a backend that stands in another session's state needs commands in front of the
//! statement, and what stands behind a command on the wire runs even when that command fails: in
//! somebody else's schema, or under other variables. The mechanism, from the cheapest:
//!
//! 1. What cannot fail goes in front, in the same write ([`Front::Sure`], `sure.rs`).
//! 2. What can fail (a schema may have been dropped, a privilege revoked) is *joined* with the
//!    statement: `USE x; SELECT ...` is one command of several statements, and servers run nothing
//!    of it behind a statement that failed (tried on MariaDB 10.11 and MySQL 9.7). Their answers
//!    come as several results of one reply; the first ones are taken off, the rest is the client's.
//! 3. Where the statement is no text, or joining could change what it means, the commands are sent
//!    alone and waited for ([`Front::Waited`]).
//!
//! A text is joined only if it takes nothing for its session and sets no user variable, so that
//! nothing has to be taken back when it has not run. A client that may not send several statements
//! must not be able to through this: its text is joined only if no semicolon is in it, but at its
//! end. Nor is one with query attributes. The backend then stands in the client's session with
//! several statements allowed, and is told otherwise in front of the next command.
//!
//! Invariant: a statement behind a restoring command that failed has not run, or its client is told
//! that it may have.

use crate::backend::{InFlight, Purpose};
use crate::client::ClientState;
use crate::clients::Handled;
use crate::group::Group;
use crate::heard::Heard;
use crate::roles::{self, switch};
use crate::session::{Session, put_multi, restore, restore_as_text};
use crate::statements::payload_of;
use crate::sure::is_sure_between;
use reactor::{Key, Net};
use std::rc::Rc;
use wire::attributes::{Form, put_query};
use wire::classify::{self, Verb};
use wire::command::{Command, ReplyShape, put_command};

/// Longest text that is copied behind restoring statements, in bytes. Longer ones take longer than
/// a round trip to send anyway.
const JOINED_MAX: usize = 64 * 1024;

/// How what brings a backend into a session goes in front of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// There is nothing, or it cannot fail: the command may follow at once.
    Sure,
    /// It can fail, and is waited for.
    Waited,
    /// It can fail, and is this text in front of the statement's own.
    Joined(Vec<u8>),
}

/// What became of a statement behind a restoring command that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// It was not run.
    NotRun,
    /// It was not sent; or it was, and has run in another state.
    Unknown,
}

impl<N: Net> Group<N> {
    /// Sends a command to the client's backend, once that stands in the client's session state.
    pub(crate) fn begin(&mut self, key: Key, lease: Key, message: &[u8]) -> Handled {
        if let Some(handled) = self.prepare_ahead(key, lease, message) {
            return handled;
        }
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let session = client.session.clone();
        let mut out = std::mem::take(&mut self.lent);
        out.clear();
        let front = match self.join(key, lease, message, &mut out) {
            Some(text) => Some(Front::Joined(text)),
            None => self.put_restore(key, lease, &session, &mut out),
        };
        let result = match front {
            None => Handled::Used,
            Some(Front::Waited) => self.send_restore(key, lease, &out),
            Some(Front::Sure) => {
                self.put_primer(key, lease, &mut out);
                self.send_backend(lease, &out);
                self.ride(key, lease, message);
                Handled::Used
            }
            Some(Front::Joined(mut text)) => {
                text.extend_from_slice(payload_of(message).get(1..).unwrap_or_default());
                put_command(&mut out, Command::Query, &text);
                self.ride(key, lease, &out);
                Handled::Used
            }
        };
        self.lent = out;
        result
    }

    /// Writes what brings the backend into a session of the client's; `None` when one of the two is
    /// gone. It is never joined.
    pub(crate) fn put_restore(
        &mut self,
        key: Key,
        lease: Key,
        session: &Rc<Session>,
        out: &mut Vec<u8>,
    ) -> Option<Front> {
        let client = self.clients.get(key)?;
        let backend = self.backends.get_mut(lease)?;
        let insert_id = (backend.insert_id != Some(client.insert_id)).then_some(client.insert_id);
        let same = Rc::ptr_eq(&backend.session, session);
        if same && insert_id.is_none() {
            return Some(Front::Sure);
        }
        let waits = !same && !is_sure_here(&backend.session, session, self.epoch, backend);
        let on = backend.on(self.shared.server.flavour);
        let mut commands = 0;
        if let Some(sql) = switch(&backend.session, session, backend.login_role.as_deref()) {
            put_query(out, backend.form, &sql);
            commands += 1;
        }
        commands += restore(out, on, (&backend.session, session), insert_id);
        for i in 1..=commands {
            let purpose = Purpose::Restore(waits && i == commands);
            backend
                .flight
                .push_back(InFlight::own(Some(key), purpose, ReplyShape::Status));
        }
        if commands > 0 {
            self.counts.restored += 1;
            self.counts.restored_in_front += u64::from(!waits);
        }
        // Setting LAST_INSERT_ID() cannot fail; from here on the backend is as the client's.
        backend.insert_id = Some(client.insert_id);
        backend.session = session.clone();
        backend.note_role();
        Some(match waits && commands > 0 {
            true => Front::Waited,
            false => Front::Sure,
        })
    }

    /// Notes the restoring statements that go in one text with the client's own, and gives them;
    /// what must be sent before that text goes to `out`. `None` when they are not to be joined.
    fn join(&mut self, key: Key, lease: Key, message: &[u8], out: &mut Vec<u8>) -> Option<Vec<u8>> {
        let client = self.clients.get(key)?;
        let backend = self.backends.get_mut(lease)?;
        let session = &client.session;
        // What may hide something can need a question in front of it (`put_primer`).
        let joins = client.statement.joins && !client.statement.hides;
        if !joins || Rc::ptr_eq(&backend.session, session) {
            return None;
        }
        let multi = session.multi_statements;
        if is_sure_here(&backend.session, session, self.epoch, backend)
            || message.len() > JOINED_MAX
            || backend.form != Form::Plain
            || !(multi || is_one_statement(&payload_of(message)))
        {
            return None;
        }
        let insert_id = (backend.insert_id != Some(client.insert_id)).then_some(client.insert_id);
        let on = backend.on(self.shared.server.flavour);
        let between = (&*backend.session, &**session);
        let (mut text, mut statements) = restore_as_text(between, insert_id, on)?;
        if let Some(sql) = switch(between.0, between.1, backend.login_role.as_deref()) {
            text = [&sql, &b";"[..], &text].concat();
            statements += 1;
        }
        if !backend.session.multi_statements {
            put_multi(out, true);
            let command = InFlight::own(Some(key), Purpose::Restore(false), ReplyShape::Status);
            backend.flight.push_back(command);
        }
        for i in 1..=statements {
            let purpose = Purpose::Joined(i == statements);
            backend
                .flight
                .push_back(InFlight::own(Some(key), purpose, ReplyShape::Status));
        }
        self.counts.restored += 1;
        self.counts.restored_in_front += 1;
        backend.insert_id = Some(client.insert_id);
        backend.session = self.sessions.with_multi(session, true);
        backend.note_role();
        Some(text)
    }

    /// Whether a client's text may stand behind restoring statements in one command: it takes
    /// nothing that would have to be taken back if it did not run.
    pub(crate) fn may_join(&self, key: Key, found: &classify::Statement) -> bool {
        use Verb::{Begin, Ddl, Delete, Do, Explain, Insert, Replace, Select, Set, Show, Update};
        let plain = matches!(
            found.verb,
            Select | Insert | Update | Delete | Replace | Set | Show | Do | Explain | Begin | Ddl
        );
        let takes = |client: &crate::client::Client<N::Sock>| client.touching.is_some();
        plain && found.causes.is_empty() && !self.clients.get(key).is_some_and(takes)
    }

    pub(crate) fn send_restore(&mut self, key: Key, lease: Key, out: &[u8]) -> Handled {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        if !client.change_state(ClientState::Restoring, now) {
            self.doom(key);
            return Handled::Used;
        }
        self.send_backend(lease, out);
        self.count_busy(lease);
        Handled::Kept
    }

    /// A restoring statement was answered that stands in one text with its client's own.
    pub(crate) fn joined(&mut self, key: Key, owner: Option<Key>, last: bool, heard: &Heard) {
        let Some(owner) = owner.filter(|owner| self.clients.get(*owner).is_some()) else {
            return self.retire(key);
        };
        if let Some((code, text)) = &heard.error {
            return self.restore_failed(key, owner, Behind::NotRun, (*code, text));
        }
        if last {
            self.note_accepted(key);
        }
    }
}

/// Whether what brings a backend from one session to the other cannot fail on it. Inside of a
/// transaction a SET may fail that does not outside.
fn is_sure_here<S>(
    from: &Session,
    to: &Session,
    epoch: u64,
    backend: &crate::backend::Backend<S>,
) -> bool {
    let role = || roles::is_sure(from, to, backend.login_role.as_deref());
    is_sure_between(from, to, epoch)
        && role()
        && !(backend.in_transaction() && from.variables_differ(to))
}

/// Whether a command's text is one statement, however a server reads it.
fn is_one_statement(message: &[u8]) -> bool {
    let text = message.trim_ascii_end();
    let text = text.strip_suffix(b";").unwrap_or(text);
    !text.contains(&b';')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_anywhere_but_at_the_end_may_begin_another_statement() {
        for one in ["SELECT 1", "SELECT 1;", "SELECT 1 ; \n", ""] {
            assert!(is_one_statement(one.as_bytes()), "{one}");
        }
        for several in ["SELECT 1; SELECT 2", "SELECT ';'", "SELECT 1;;", "; x"] {
            assert!(!is_one_statement(several.as_bytes()), "{several}");
        }
    }
}
