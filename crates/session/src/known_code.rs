//! Knowledge of the stored code that a text runs.
//!
//! Not known, and so as ever: a routine that the catalogue does not have, or whose text it was not
//! shown; names that are not ASCII; a name that is a loaded function's too; code that reads what
//! the statement before its call left; on MySQL a procedure that may count no rows, whose OK then
//! tells the count of before.

use crate::shapes::Ride;
use crate::statement::{Code, Statement};
use crate::stored_code::{Names, Routine};
use crate::text::Text;
use sql::classify::Reads;
use sql::classify::stored::{BEYOND_ASCII, Call, Folded, Judged, Leaves, fold_bare};
use sql::lex::Server;
use std::collections::BTreeSet;

/// User variables that one text's code may set, and that are still read back.
const SETS_MAX: usize = 16;

/// Side effects of all the code that a text runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The most that any of it may leave.
    pub leaves: Leaves,
    /// User variables, in lower case.
    pub sets: Vec<Text>,
}

impl Known {
    /// Notes what follows for the end of its statement.
    pub fn mark(&self, statement: &mut Statement) {
        statement.ride = Ride::Never;
        statement.explain();
        statement.code = match self.leaves {
            Leaves::Reported => Code::Reported,
            _ => Code::Known,
        };
    }
}

impl Names {
    /// Side effects of all that a text runs; `schema` is its default schema, empty where there is
    /// none, if that is certain.
    pub fn known(
        &self,
        run: &Judged,
        schema: Option<&[u8]>,
        server: Server,
    ) -> Option<(Leaves, Sets)> {
        let mysql = server.is_mysql();
        let mut leaves = run.leaves;
        let mut sets = run.sets.clone();
        if !leaves.is_followed() || !run.asks.is_empty() {
            return None;
        }
        let here = schema.map(fold_bare);
        for call in &run.calls {
            for routine in self.meant(call, here.as_ref())? {
                let counts = !(mysql && call.procedure && routine.uncounted);
                if !routine.leaves.is_followed() || !routine.asks.is_empty() || !counts {
                    return None;
                }
                leaves = leaves.max(routine.leaves);
                sets.extend(routine.sets.iter().cloned());
            }
        }
        (sets.len() <= SETS_MAX).then_some((leaves, sets))
    }

    /// Dependencies of the routines that a text calls on the statement before. `schema` is as for
    /// [`Names::known`].
    #[must_use]
    pub fn asked_by(&self, run: &Judged, schema: Option<&[u8]>) -> Reads {
        let here = schema.map(fold_bare);
        let mut asked = run.asks;
        for call in &run.calls {
            let named = (call.procedure, call.path.name.clone());
            let wanted = call.path.schema.as_ref().or(here.as_ref());
            for routine in self.routines.get(&named).into_iter().flatten() {
                if fits(routine, wanted) {
                    asked = asked.union(routine.asks);
                }
            }
        }
        asked
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
        let meant = all.iter().filter(|routine| fits(routine, wanted));
        let meant: Vec<&Routine> = meant.collect();
        (!meant.is_empty()).then_some(meant)
    }
}

/// True if a routine may be the one that is meant in this schema; `None`: in any.
fn fits(routine: &Routine, wanted: Option<&Folded>) -> bool {
    wanted.is_none_or(|wanted| routine.schema.is_empty() || routine.schema == *wanted)
}

/// User variables, in lower case.
pub type Sets = BTreeSet<Folded>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored_code::{Besides, Object, resolve};
    use sql::classify::classify;
    use sql::classify::stored::{Defined, body, run_by};
    use sql::lex::LexMode;

    const MARIADB: Server = Server::MariaDb(101_119);
    const MYSQL: Server = Server::MySql(90_704);

    fn names(server: Server) -> Names {
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        let object = |kind, schema: &str, name: &str, text: &str| Object {
            kind,
            schema: fold_bare(schema.as_bytes()),
            name: fold_bare(name.as_bytes()),
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
            loaded: Some([fold_bare(b"loaded")].into()),
            packages: [fold_bare(b"pack")].into(),
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

    fn asked(sql: &str, server: Server) -> Reads {
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        let found = classify(sql.as_bytes(), mode);
        let run = run_by(sql.as_bytes(), mode, &found).unwrap();
        names(server).asked_by(&run, Some(b"d"))
    }

    #[test]
    fn a_call_is_known_when_all_that_it_may_mean_is() {
        // What its trigger sets, no server reports for certain where it fails.
        assert_eq!(known("CALL p()", Some("d"), MYSQL), None);
        assert_eq!(known("CALL p()", Some("d"), MARIADB), None);
        assert_eq!(known("CALL D.`P`", Some("x"), MYSQL), None);
        assert_eq!(known("CALL D.`EMPTY`", Some("x"), MARIADB), Some(vec![]));
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
            assert_eq!(asked("CALL calls_asks()", server), Reads::ROW_COUNT);
            assert_eq!(asked("SELECT f(1), g(2)", server), Reads::NONE);
            assert_eq!(asked("CALL nobody()", server), Reads::NONE);
        }
    }
}
