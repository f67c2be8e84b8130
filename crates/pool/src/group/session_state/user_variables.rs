//! User variables (`@a`) follow their client as values.
//!
//! The problem: a user variable lives in one server session, and no tracker tells its value. The
//! mechanism: the text names the variables that it may set ([`touched`]); when the lease would end,
//! they are read back once, with type and collation, and each becomes the literal that restores
//! it ([`literal_of`]): a part of the session, restored by difference like any other. What no
//! literal gives back exactly, and what is too long or too much to carry, pins, and is read again
//! whenever the client may have set it to something else.
//!
//! The client's next statement may stand behind the question already. The answer counts unless that
//! statement may set some itself, so a client that never pauses has its variables on one backend
//! alone for no longer than one that does.
//!
//! A variable cannot be taken away from a server session but with all else (`renewal.rs` does that
//! where a text names one that its client has never set). Elsewhere it is put to a NULL as like an
//! unset one as can be (`put_user_differences`). A NULL that the client has set itself is another,
//! as its column tells, and is restored as such.
//!
//! Names that are not ASCII are compared by the servers, each in its own way (accents, spaces at
//! the end). So where one of a client's names is such, all of them are read back together, and
//! written together: whatever is one variable for the server has one value for the pool.
//!
//! Invariants: a backend whose variables were not read back serves nobody else; names are UTF-8,
//! and lower case as far as they are ASCII.
//!
//! What the servers make of each literal was compared on MariaDB 10.11 and MySQL 9.7.

use crate::backend::Purpose;
use crate::client::touched::Touched;
use crate::errors::reasons::PinReason;
use crate::group::Group;
use reactor::{Key, Net};
use session::reply_summary::ReplySummary;
use session::state::{UserVariables, is_tricky};
use session::text::Text;
use session::user_variables::{
    COUNT_MAX, Column, Read, collected_row, literal_of, question, touched,
};
use sql::classify::{PinCause, Statement, Verb};
use sql::lex::LexMode;

/// Bytes of the literals that a client may carry: they go to the server in one SET.
const CLIENT_BYTES_MAX: usize = 1024 * 1024;

/// Bytes that the user variables of a group's clients may take.
const GROUP_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a client holds while its variables cannot be carried.
const VALUES: &[u8] = b"values";

impl<N: Net> Group<N> {
    /// A client's command is this text: notes what it may set, for when it is sent.
    pub(crate) fn touch(&mut self, key: Key, sql: &[u8], mode: LexMode, found: &Statement) {
        let others = found.untracked || found.sets_clock;
        if !(found.user_variables || others) {
            return;
        }
        let unset = self.unset_by(key, sql, mode, found);
        let mut names = match found.user_variables {
            true => touched(sql, mode, found),
            false => Some(Vec::new()),
        };
        match &mut names {
            None => self.pin_by(key, PinReason::Text(PinCause::UserVariable), sql),
            // A server with a binary log makes what such a statement reads, as NULL.
            Some(names) if names.is_empty() && found.verb != Verb::Select => {
                names.extend(unset.iter().filter(|name| !name.is_empty()).cloned());
            }
            Some(_) => {}
        }
        if let Some(client) = self.clients.get_mut(key) {
            let mut touching = Touched::by(names.unwrap_or_default(), sql, mode, found);
            touching.unset = unset;
            let nothing = touching.sets_nothing() && touching.unset.is_empty();
            client.touching = (!nothing).then(|| Box::new(touching));
        }
    }

    /// A statement that may set these variables is about to be sent.
    pub(crate) fn note_touched(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let Some(next) = client.touching.take().filter(|next| !next.sets_nothing()) else {
            return;
        };
        if let Some(backend) = client
            .lease()
            .and_then(|lease| self.backends.get_mut(lease))
        {
            for name in &next.names {
                backend.had.add(name);
            }
            for command in backend.flight_mut() {
                if command.purpose == Purpose::UserVariables(false) {
                    command.purpose = Purpose::UserVariables(true);
                }
            }
        }
        let touched = client.touched.get_or_insert_default();
        touched.add(*next);
        if touched.names.len() > COUNT_MAX {
            touched.names = Vec::new();
            self.pin(key, PinReason::Text(PinCause::UserVariable));
        }
    }

    /// Asks for the values of what the client's statements may have set; of all that it has, where
    /// one may go by the name of another.
    pub(crate) fn read_variables(&mut self, lease: Key, owner: Key) {
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        let Some(touched) = &mut client.touched else {
            return;
        };
        touched.fresh = false;
        let carried = client.session.user_variables();
        if carried.is_tricky() || touched.names.iter().any(|name| is_tricky(name)) {
            for (name, _) in carried.pairs() {
                if !touched.names.contains(name) {
                    touched.names.push(name.clone());
                }
            }
        }
        // Names are UTF-8, or nobody has noted them.
        let sql = question(&touched.names);
        let foreign = !client.session.speaks_utf8() && !sql.is_ascii();
        match std::str::from_utf8(&sql) {
            Ok(sql) if !foreign => {
                self.send_own(lease, owner, Purpose::UserVariables(false), sql);
            }
            _ => {
                touched.names = Vec::new();
                self.pin(owner, PinReason::Text(PinCause::UserVariable));
                self.go_on(owner);
                self.settle(lease);
            }
        }
    }

    /// The values have come back; `old`: a statement behind may set others or these again.
    pub(crate) fn variables_read(
        &mut self,
        key: Key,
        owner: Option<Key>,
        old: bool,
        summary: &ReplySummary,
        collected: &[u8],
    ) {
        let pool = self.backends.get(key).map_or(0, |backend| backend.pool);
        let extended = (self.backend_pools.pools.get(pool)).map_or(0, |pool| pool.key.extended);
        let row = collected_row(collected, extended).filter(|_| summary.error.is_none());
        let Some((columns, values)) = row else {
            return self.lose(key, "the server did not give a session's variables back");
        };
        let Some((owner, client)) =
            owner.and_then(|owner| Some((owner, self.clients.get_mut(owner)?)))
        else {
            return self.retire(key);
        };
        if old {
            // All of them are asked for once that statement has run.
            return;
        }
        let names = client.touched.as_mut();
        let names = names.map_or_else(Vec::new, |touched| std::mem::take(&mut touched.names));
        if columns.len() != 3 * names.len() || values.len() != columns.len() {
            return self.lose(
                key,
                "the server gave other variables back than it was asked for",
            );
        }
        let mut changes = Vec::with_capacity(names.len());
        for (i, name) in names.iter().enumerate() {
            let Column {
                len, kind, flags, ..
            } = columns[3 * i];
            let read = Read {
                name,
                kind,
                flags,
                len,
                value: values[3 * i].as_deref(),
                hex: values[3 * i + 1].as_deref().unwrap_or_default(),
                collation: values[3 * i + 2].as_deref().unwrap_or_default(),
            };
            changes.extend(literal_of(&read).map(|literal| (name.clone(), literal)));
        }
        let exact = changes.len() == names.len();
        match self.with_changes(owner, &changes).filter(|_| exact) {
            Some(user) => self.carry_variables(key, owner, user),
            None => self.keep_variables(owner, names),
        }
        self.go_on(owner);
        self.settle(key);
    }

    /// A client's user variables with these changes; `None` when they are too much to carry.
    fn with_changes(&mut self, owner: Key, changes: &[(Text, Vec<u8>)]) -> Option<UserVariables> {
        let carried = self.clients.get(owner)?.session.user_variables().clone();
        let user = carried.with(changes, &self.variables);
        if self.variables.bytes() > GROUP_BYTES_MAX {
            self.sessions.sweep();
        }
        let max = self.shared.server.max_allowed_packet;
        fits(
            (user.pairs().len(), user.bytes()),
            max,
            self.variables.bytes(),
        )
        .then_some(user)
    }

    /// Client and backend have these from now on, and they follow the client.
    fn carry_variables(&mut self, key: Key, owner: Key, user: UserVariables) {
        let (Some(client), Some(backend)) =
            (self.clients.get_mut(owner), self.backends.get_mut(key))
        else {
            return;
        };
        for session in [&mut client.session, &mut backend.session] {
            let mut changed = (**session).clone();
            changed.set_user_variables(user.clone());
            *session = self.sessions.intern(changed);
        }
        client.end_pin(PinCause::UserVariable, VALUES);
    }

    /// They stay where they are, until the client's statements have made something else of them.
    fn keep_variables(&mut self, owner: Key, names: Vec<Text>) {
        self.pin_while(owner, PinReason::Text(PinCause::UserVariable), VALUES);
        if let Some(client) = self.clients.get_mut(owner) {
            client.touched.get_or_insert_default().names = names;
        }
    }
}

/// Whether so many user variables with so many bytes follow their client, in a group where all
/// have `all` bytes then.
fn fits((count, bytes): (usize, usize), packet_max: usize, all: usize) -> bool {
    let room = CLIENT_BYTES_MAX.min(packet_max / 2);
    count <= COUNT_MAX && bytes <= room && all <= GROUP_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_client_is_bounded() {
        let packet = 16 << 20;
        assert!(fits((COUNT_MAX, CLIENT_BYTES_MAX), packet, GROUP_BYTES_MAX));
        assert!(!fits((COUNT_MAX + 1, 1), packet, 1));
        assert!(!fits((1, CLIENT_BYTES_MAX + 1), packet, 1));
        assert!(!fits((1, 1), packet, GROUP_BYTES_MAX + 1));
        assert!(
            !fits((1, 1025), 2048, 1025),
            "it is sent back in one command"
        );
    }
}
