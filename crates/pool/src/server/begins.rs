//! Effects of the logins of one pool on their sessions, as a value.
//!
//! `init_connect`: statements that the server runs for each account without administrator's rights
//! when it logs in, before its first own.
//!
//! The problem: what they set is the beginning of a session and no tracker reports it, so a session
//! that began so must not be taken for one with global values, and a client must begin with it
//! whichever backend it gets. The mechanism: while the global variable is set, a fresh backend is
//! asked for all its variables; those that differ from the global values are listed in its session
//! ([`Begins`]), and in those of clients that log in as the same pool. The first client of a pool
//! waits for a backend as one with a schema does. A reset or a change of user begins without it, as
//! on the servers.
//!
//! When the variable changes, backends that began otherwise serve nobody any more.
//!
//! Invariant: no client of a pool is let in before it is known what its login does.

use crate::server::facts::ServerFacts;
use session::state::{CHARSET_VARIABLES, Session};
use session::text::Text;
use std::rc::Rc;
use wire::client_login::COLLATION;

/// Session state that logins of one pool leave.
#[derive(Clone, Debug)]
pub(crate) struct Begins {
    /// The variable's value that did it.
    pub(crate) init_connect: Text,
    variables: Rc<[(Text, Text)]>,
    results_collation: Option<Text>,
}

impl Begins {
    /// Session state of a fresh backend: its character sets, and the others (`None`: not asked).
    pub(crate) fn of(fresh: &Session, values: &[Option<Text>], server: &ServerFacts) -> Begins {
        let (usual, results) = server.charsets_at_login(COLLATION.into());
        let charsets = CHARSET_VARIABLES.iter().zip(usual);
        let charsets = charsets.filter_map(|(name, usual)| {
            let value = fresh.variable(name.as_bytes())?;
            (*value != **usual).then(|| (name.as_bytes().into(), value.into()))
        });
        let names = fresh.defaults.names().iter().zip(values);
        let is_charset = |name: &Text| CHARSET_VARIABLES.iter().any(|c| c.as_bytes() == &**name);
        let others = names.filter_map(|(name, value)| {
            let value = value.as_ref()?;
            let differs = fresh.value(name) != Some(value) && !is_charset(name);
            differs.then(|| (name.clone(), value.clone()))
        });
        Begins {
            init_connect: fresh.defaults.init_connect().into(),
            variables: charsets.chain(others).collect(),
            results_collation: fresh
                .results_collation
                .clone()
                .filter(|own| Some(own) != results.as_ref()),
        }
    }

    /// Makes a session begin so.
    pub(crate) fn begin(&self, session: &mut Session) {
        for (name, value) in &*self.variables {
            // What cannot be written back stays as the backend began; there is nothing to restore.
            let _ = session.set(name, value);
        }
        if self.results_collation.is_some() {
            session.results_collation = self.results_collation.clone();
        }
    }
}
