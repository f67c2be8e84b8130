//! Calls: what is known of the stored code that a client's own text runs.
//!
//! The problem: a CALL, or a function that is not the server's own, may leave anything in its
//! session, so its client would keep its backend for good; an application that lives by stored
//! procedures would share none. The mechanism: the text names the routines, and the catalogue has
//! judged each of them with all that it calls, fires and reads. Where every routine that a text may
//! mean leaves nothing but what is followed anyway, the statement is as any other: what the
//! trackers report becomes the session's, the user variables that the code may set are read back
//! as those that a text sets, LAST_INSERT_ID() and FOUND_ROWS() as after any statement that may
//! change them.
//!
//! Not known, and so as ever: a routine that the catalogue does not have, or whose text it was not
//! shown; names that are not ASCII; what stands in Oracle's mode, where `a.b` may be a routine of a
//! package; a name that is a loaded function's too; code that reads what the statement before its
//! call left, since that may be on another backend; on MySQL a procedure that may count no rows,
//! whose OK then tells the count of before.

use super::catalogue::{Names, Routine};
use crate::client::{Code, Statement};
use crate::found::Found;
use crate::group::Group;
use crate::session::{Session, Text};
use reactor::{Key, Net};
use std::collections::BTreeSet;
use wire::classify::stored::{BEYOND_ASCII, Call, Folded, Judged, Leaves, fold, run_by};
use wire::classify::{self, PinCause, Verb};
use wire::lex::{LexMode, Server};

/// User variables that one text's code may set, and that are still read back.
const SETS_MAX: usize = 16;

/// What all the code that a text runs may leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// It is a CALL, or a text of several statements.
    procedures: bool,
    leaves: Leaves,
    /// User variables, in lower case.
    sets: Vec<Text>,
}

impl Known {
    /// Notes what follows for the end of its statement.
    pub(crate) fn mark(&self, statement: &mut Statement) {
        statement.ride = 0;
        statement.explains_change = true;
        statement.code = match self.leaves {
            Leaves::Reported => Code::Reported,
            _ => Code::Known,
        };
        statement.primes = self.procedures && statement.found == Found::Unsure;
    }
}

impl Names {
    /// What is known of all that a text runs; `schema` is its default schema, empty where there
    /// is none, if that is certain.
    fn known(&self, run: &Judged, schema: Option<&[u8]>, server: Server) -> Option<(Leaves, Sets)> {
        let mysql = matches!(server, Server::MySql(_));
        let mut leaves = run.leaves;
        let mut sets = run.sets.clone();
        if !leaves.is_followed() || run.asks {
            return None;
        }
        let here = schema.map(fold);
        for call in &run.calls {
            for routine in self.meant(call, here.as_ref())? {
                let counts = !(mysql && call.procedure && routine.uncounted);
                if !routine.leaves.is_followed() || routine.asks || !counts {
                    return None;
                }
                leaves = leaves.max(routine.leaves);
                sets.extend(routine.sets.iter().cloned());
            }
        }
        (sets.len() <= SETS_MAX).then_some((leaves, sets))
    }

    /// The routines that a call may mean, at least one; `None` where it may mean something else.
    fn meant(&self, call: &Call, here: Option<&Folded>) -> Option<Vec<&Routine>> {
        let path = &call.path;
        let beyond = |name: &Folded| **name == *BEYOND_ASCII;
        if beyond(&path.name) || path.schema.as_ref().is_some_and(beyond) {
            return None;
        }
        match &path.schema {
            Some(schema) if self.besides.packages.contains(schema) => return None,
            None if !call.procedure => {
                let loaded = self.besides.loaded.as_ref()?;
                if loaded.contains(&path.name) {
                    return None;
                }
            }
            _ => {}
        }
        let all = self.routines.get(&(call.procedure, path.name.clone()))?;
        let wanted = path.schema.as_ref().or(here);
        let fits = |routine: &&Routine| {
            wanted.is_none_or(|wanted| routine.schema.is_empty() || routine.schema == *wanted)
        };
        let meant: Vec<&Routine> = all.iter().filter(fits).collect();
        (!meant.is_empty()).then_some(meant)
    }
}

type Sets = BTreeSet<Folded>;

impl<N: Net> Group<N> {
    /// What is known of the stored code that a text calls, if it calls any and all is known.
    /// `schema` is its default schema, empty where there is none, if that is certain.
    pub(crate) fn known_code(
        &mut self,
        (sql, mode): (&[u8], LexMode),
        found: &classify::Statement,
        schema: Option<&[u8]>,
        session: &Session,
    ) -> Option<Known> {
        if !found.causes.contains(PinCause::StoredCode) || !self.shared.hidden.on {
            return None;
        }
        self.see_hidden();
        let known = self.judge_calls((sql, mode), found, schema, session);
        match known {
            Some(_) => self.counts.code_known += 1,
            None => self.counts.code_unknown += 1,
        }
        known
    }

    fn judge_calls(
        &self,
        (sql, mode): (&[u8], LexMode),
        found: &classify::Statement,
        schema: Option<&[u8]>,
        session: &Session,
    ) -> Option<Known> {
        let sql_mode = session.variable(b"sql_mode");
        let sql_mode = sql_mode.unwrap_or(self.shared.server.sql_mode.as_bytes());
        if sql_mode
            .split(|&byte| byte == b',')
            .any(|mode| mode == b"ORACLE")
        {
            return None;
        }
        let run = run_by(sql, mode, found)?;
        let (leaves, sets) = self.hidden.names.known(&run, schema, mode.server)?;
        Some(Known {
            procedures: found.multi || !matches!(found.verb, Verb::Select | Verb::Do),
            leaves,
            sets: sets.into_iter().collect(),
        })
    }

    /// A client's command runs code that may set these user variables.
    pub(crate) fn touch_by_code(&mut self, key: Key, known: Option<&Known>) {
        let Some(sets) = known
            .map(|known| &known.sets)
            .filter(|sets| !sets.is_empty())
        else {
            return;
        };
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let touching = client.touching.get_or_insert_default();
        touching.fresh = true;
        let names = &mut touching.names;
        for name in sets {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
}
