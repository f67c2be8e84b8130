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
use crate::group::Group;
use crate::session::{Session, Text};
use reactor::{Key, Net};
use sql::classify::stored::{BEYOND_ASCII, Call, Folded, Judged, Leaves, fold, run_by};
use sql::classify::{self, PinCause, Reads};
use sql::lex::{LexMode, Server};
use std::collections::BTreeSet;

/// User variables that one text's code may set, and that are still read back.
const SETS_MAX: usize = 16;

/// What all the code that a text runs may leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
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
    }
}

impl Names {
    /// What is known of all that a text runs; `schema` is its default schema, empty where there
    /// is none, if that is certain.
    fn known(&self, run: &Judged, schema: Option<&[u8]>, server: Server) -> Option<(Leaves, Sets)> {
        let mysql = server.is_mysql();
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

/// User variables, in lower case.
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
        let sql_mode = session.value(b"sql_mode");
        let sql_mode = sql_mode.unwrap_or(self.shared.server.sql_mode.as_bytes());
        if sql_mode
            .split(|&byte| byte == b',')
            .any(|mode| mode == b"ORACLE")
        {
            return None;
        }
        // A function may count before its own statement has asked, or behind.
        let counts = Reads::ROW_COUNT
            .union(Reads::FOUND_ROWS)
            .union(Reads::DIAGNOSTICS)
            .union(Reads::LAST_GTID);
        if found.own_reads.intersects(counts) {
            return None;
        }
        let run = run_by(sql, mode, found)?;
        let (leaves, sets) = self.hidden.names.known(&run, schema, mode.server)?;
        Some(Known {
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

#[cfg(test)]
mod tests {
    use super::super::catalogue::{Besides, Object, resolve};
    use super::*;
    use sql::classify::classify;
    use sql::classify::stored::{Defined, body};

    const MARIADB: Server = Server::MariaDb(101_119);
    const MYSQL: Server = Server::MySql(90_704);

    fn names(server: Server) -> Names {
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        let object = |kind, schema: &str, name: &str, text: &str| Object {
            kind,
            schema: fold(schema.as_bytes()),
            name: fold(name.as_bytes()),
            title: name.into(),
            judged: body(text.as_bytes(), mode, &BTreeSet::new()),
        };
        use Defined::{Function, Procedure, Trigger};
        let objects = [
            object(Procedure, "d", "p", "INSERT INTO t VALUES (f(1))"),
            object(Procedure, "e", "p", "DO GET_LOCK('a', 0)"),
            object(Procedure, "d", "empty", "BEGIN END"),
            object(Function, "d", "f", "RETURN 5"),
            object(Function, "d", "loaded", "RETURN 5"),
            object(Trigger, "d", "t", "SET @seen = 5"),
            object(Procedure, "d", "asks", "SELECT ROW_COUNT()"),
            object(Procedure, "d", "calls_asks", "CALL asks()"),
        ];
        let mut names = resolve(&objects.iter().collect::<Vec<_>>());
        names.besides = Besides {
            loaded: Some([fold(b"loaded")].into()),
            packages: [fold(b"pack")].into(),
        };
        names
    }

    fn known(sql: &str, schema: Option<&str>, server: Server) -> Option<Vec<Folded>> {
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        let found = classify(sql.as_bytes(), mode);
        let run = run_by(sql.as_bytes(), mode, &found)?;
        let (_, sets) = names(server).known(&run, schema.map(str::as_bytes), server)?;
        Some(sets.into_iter().collect())
    }

    #[test]
    fn a_call_is_known_when_all_that_it_may_mean_is() {
        let seen = Some(vec![fold(b"seen")]);
        // MySQL reports what its trigger sets; MariaDB does not where it fails.
        assert_eq!(known("CALL p()", Some("d"), MYSQL), seen);
        assert_eq!(known("CALL p()", Some("d"), MARIADB), None);
        assert_eq!(known("CALL D.`P`", Some("x"), MYSQL), seen);
        assert_eq!(known("CALL p()", None, MYSQL), None, "it may be that of e");
        assert_eq!(known("CALL e.p()", Some("d"), MYSQL), None);
        assert_eq!(known("CALL nobody()", Some("d"), MYSQL), None);
        assert_eq!(known("CALL empty()", Some("d"), MARIADB), Some(vec![]));
        assert_eq!(
            known("CALL empty()", Some("d"), MYSQL),
            None,
            "whose count?"
        );
        for server in [MARIADB, MYSQL] {
            assert_eq!(
                known("SELECT f(1), d.f(2)", Some("d"), server),
                Some(vec![])
            );
            assert_eq!(known("SELECT f(1), g(2)", Some("d"), server), None);
            assert_eq!(known("SELECT loaded(1)", Some("d"), server), None);
            assert_eq!(known("SELECT d.loaded(1)", Some("x"), server), Some(vec![]));
            assert_eq!(known("CALL pack.f()", Some("d"), server), None);
            assert_eq!(known("CALL asks()", Some("d"), server), None);
            assert_eq!(known("CALL calls_asks()", Some("d"), server), None);
        }
    }
}
