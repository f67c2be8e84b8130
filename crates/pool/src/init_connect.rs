//! `init_connect`: statements that the server runs for each account without administrator's rights
//! when it logs in, before its first own.
//!
//! The problem: what they set is the beginning of a session and no tracker reports it, so a session
//! that began so must not be taken for one with global values, and a client must begin with it
//! whichever backend it gets. The mechanism: while the global variable is set, a fresh backend is
//! asked for all its variables; those that differ from the global values are listed in its session
//! ([`Begins`]), and in those of clients that log in as the same kind. The first client of a kind
//! waits for a backend as one with a schema does. A reset or a change of user begins without it, as
//! on the servers.
//!
//! When the variable changes, backends that began otherwise serve nobody any more.
//!
//! Invariant: no client of a kind is let in before it is known what its login does.

use crate::group::{Group, ServerFacts};
use reactor::{Key, Net};
use session::state::{CHARSET_VARIABLES, Session};
use session::text::Text;
use std::rc::Rc;
use wire::client_login::COLLATION;

/// What the logins of one kind leave in their sessions.
#[derive(Clone, Debug)]
pub(crate) struct Begins {
    /// The variable's value that did it.
    init_connect: Text,
    variables: Rc<[(Text, Text)]>,
    results_collation: Option<Text>,
}

impl Begins {
    /// What a fresh backend's session says: its character sets, and the others (`None`: not asked).
    fn of(fresh: &Session, values: &[Option<Text>], server: &ServerFacts) -> Begins {
        let (usual, results) = server.charsets_at_login(COLLATION);
        let charsets = CHARSET_VARIABLES.iter().zip(usual);
        let charsets = charsets.filter_map(|(name, usual)| {
            let value = fresh.variable(name.as_bytes())?;
            (*value != **usual).then(|| (name.as_bytes().into(), value.into()))
        });
        let names = fresh.begun.names().iter().zip(values);
        let is_charset = |name: &Text| CHARSET_VARIABLES.iter().any(|c| c.as_bytes() == &**name);
        let others = names.filter_map(|(name, value)| {
            let value = value.as_ref()?;
            let differs = fresh.value(name) != Some(value) && !is_charset(name);
            differs.then(|| (name.clone(), value.clone()))
        });
        Begins {
            init_connect: fresh.begun.init_connect().into(),
            variables: charsets.chain(others).collect(),
            results_collation: fresh
                .results_collation
                .clone()
                .filter(|own| Some(own) != results.as_ref()),
        }
    }

    /// Makes a session begin so.
    fn begin(&self, session: &mut Session) {
        for (name, value) in &*self.variables {
            // What cannot be written back stays as the backend began; there is nothing to restore.
            let _ = session.set(name, value);
        }
        if self.results_collation.is_some() {
            session.results_collation = self.results_collation.clone();
        }
    }
}

impl<N: Net> Group<N> {
    /// Whether it is known how a login of this client's kind begins; its session begins so.
    pub(crate) fn begins(&mut self, key: Key) -> bool {
        if self.begun.init_connect().is_empty() {
            return true;
        }
        let Some(client) = self.clients.get_mut(key).filter(|c| !c.changing) else {
            return true;
        };
        let known = self.roster.ranks[client.kind as usize].begins.as_ref();
        let Some(begins) = known.filter(|known| *known.init_connect == *self.begun.init_connect())
        else {
            return false;
        };
        let mut session = (*client.session).clone();
        begins.begin(&mut session);
        client.session = self.sessions.intern(session);
        true
    }

    /// A fresh backend of a kind has told its session, and with `init_connect` all its variables.
    pub(crate) fn note_begins(&mut self, kind: usize, fresh: &mut Session, values: Option<&Text>) {
        let Some(values) = values.and_then(|values| fresh.begun.read(values)) else {
            return;
        };
        let begins = Begins::of(fresh, &values, &self.shared.server);
        begins.begin(fresh);
        self.roster.ranks[kind].begins = Some(begins);
    }
}
