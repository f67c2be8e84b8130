//! Legal steps of a script: clients that may hold a backend, and questions that may be asked.
//!
//! One thread speaks for all clients and waits for each reply, so a statement that must wait for a
//! backend which another client keeps would wait for ever. [`Claims`] follows which clients may
//! keep one; a step that would leave nothing for the others is not legal, and neither is one that
//! speaks while another client's lock stops the server. The model errs on one side: it may believe
//! that a client keeps a backend which the pool has taken back already, never the reverse.
//!
//! Some steps are not legal at any moment (docs/pool/limits.md): FOUND_ROWS() before a session
//! has found anything, where MariaDB tells what the thread's last session found; on MariaDB,
//! warnings that are older than a text which does not tell whether it leaves them; a change of user
//! with a role, which MariaDB lets stay with an account that was never granted it; a variable
//! that was never set, first named in a transaction or while its client is pinned; a
//! COM_SET_OPTION behind a routine that has set `sql_mode` for itself on MariaDB, or behind a text
//! of several that begins with GET DIAGNOSTICS on MySQL; and, on MySQL, such a routine where its
//! caller's mode has NO_BACKSLASH_ESCAPES; and a command about a statement that may be unknown, or
//! have no cursor, while `character_set_connection` is wide; and an execution that cannot be read,
//! while `character_set_results` is wide; and, on MariaDB, a reset or a change of user while an XA
//! transaction is prepared.

use super::ground::CLIENTS_MAX;
use super::script::{Act, Claim, Kill, Step};
use crate::real::Flavour;
use wire::capabilities::NO_SCHEMA;

/// Beginnings of texts that succeed in any session, and count what they find.
const FINDS: [&str; 3] = [
    "SELECT LAST_INSERT_ID()",
    "SELECT CAST('",
    "SELECT id FROM oracle_a.kinds",
];
/// Questions about warnings that may be older than the statement before.
const OLDER: [&str; 2] = ["SHOW WARNINGS", "SELECT @@error_count"];
/// Beginning of the names of variables that a script asks for before their client has set them.
pub(super) const UNSET: &str = "@unset";
/// Parts of texts that find which variables the session has never set.
const FINDS_UNSET: [&str; 2] = [UNSET, "USER_VARIABLES"];
/// Text that reads the variable that some stored code sets.
const READS_MARK: &str = "SELECT @marked";
/// The variable that procedures give back to their caller; one that fails leaves it unset.
const GIVEN: &str = "@n";
/// Beginnings of texts that do not tell.
const BLURS: [&str; 6] = ["SHOW ", "EXPLAIN ", "CALL ", "CREATE ", "DROP ", "ALTER "];
/// Parts of texts that may pin without a claim: one that writes to a table with a trigger, and one
/// that MySQL does not know.
const MAY_PIN: [&str; 2] = ["counting_table", "EXECUTE IMMEDIATE"];
/// End of a text of several that stops in front of its last statement, which pins.
const UNPARSED: &str = "; SELEC";
/// Values of `character_set_connection` in texts when its ASCII is no single byte.
const WIDE: [&str; 3] = ["= ucs2", "= utf16", "= utf32"];
/// Beginnings of texts that end a transaction, whatever it may do.
const ENDS: [&str; 2] = ["COMMIT", "ROLLBACK"];
/// Beginnings of texts that leave no older warnings.
const CLEARS: [&str; 4] = ["INSERT ", "UPDATE ", "DELETE ", "REPLACE "];

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    here: bool,
    /// True if no table has a schema for it (CLIENT_NO_SCHEMA).
    no_schema: bool,
    /// True if it may have no default schema.
    lacks_schema: bool,
    /// True if it has found some rows.
    found: bool,
    /// True if it has named [`GIVEN`] while it held nothing.
    named: bool,
    /// True if its older warnings may or may not stand.
    blurred: bool,
    /// True if it has called stored code, and is pinned if that cannot be looked up (without a
    /// default schema, or as ORACLE reads names), or if on MariaDB it has set `sql_mode` for
    /// itself.
    called: bool,
    /// True if it may have a role.
    role: bool,
    pinned: bool,
    /// Things that it has taken and will give back.
    taken: usize,
    transaction: bool,
    /// The status that COM_SET_OPTION tells is not the pool's to know.
    unclear: bool,
    /// Its `sql_mode` may have NO_BACKSLASH_ESCAPES.
    no_escapes: bool,
    /// Its transactions may be READ ONLY: a statement that would commit one fails instead.
    read_only: bool,
    manual: bool,
    /// Its XA transaction is prepared.
    xa_prepared: bool,
    /// Its `character_set_connection` is wide.
    wide: bool,
    /// Its `character_set_results` is: there an execution that cannot be read closes a cursor.
    wide_results: bool,
    /// The names of the statements that it has prepared since then, a bit for each.
    prepared_wide: u64,
}

impl Held {
    fn any(self) -> bool {
        self.keeps() || self.transaction
    }

    /// More than a transaction that BEGIN has begun.
    fn keeps(self) -> bool {
        self.pinned || self.taken > 0 || self.manual
    }

    /// Notes that a step ends the transaction, but for one that a READ ONLY transaction refuses.
    fn close(&mut self, step: &Step) {
        let ends = |text: &str| ENDS.iter().any(|start| text.starts_with(start));
        if self.read_only && !step.texts().iter().any(|text| ends(text)) {
            return;
        }
        self.transaction = false;
    }

    /// True if a text asks for FOUND_ROWS() before anything was found: MariaDB answers what the
    /// last session of the thread has found.
    fn asks_early(&self, sql: &str) -> bool {
        let asks = ["FOUND_ROWS()", "`found_rows`()"];
        asks.iter().any(|part| sql.contains(part)) && !self.found
    }

    /// Notes what a text makes of later questions; `false` if it is itself one that comes too early
    /// or too late.
    fn note_text(&mut self, sql: &str, of: Flavour) -> bool {
        let early = self.asks_early(sql);
        let names = names_given(sql);
        let needs_unset = FINDS_UNSET.iter().any(|part| sql.contains(part));
        let late = names && !self.named || needs_unset;
        // Code that it has called without a default schema was not there, and may have pinned.
        let missed = self.called && self.lacks_schema && sql == READS_MARK;
        let unset = late && self.any() || self.called && needs_unset || missed;
        if early || unset || (self.blurred && OLDER.contains(&sql)) {
            return false;
        }
        if of == Flavour::MySql && self.no_escapes && sql.contains("modal_procedure(") {
            return false;
        }
        self.named |= names;
        if sql.contains("sql_mode") {
            self.no_escapes = sql.contains("NO_BACKSLASH_ESCAPES");
        }
        self.unclear = match of {
            // Its flag of ANSI_QUOTES is wrong until the mode is set again.
            Flavour::MariaDb => {
                (self.unclear || sql.contains("modal_procedure(")) && !sql.contains("sql_mode =")
            }
            Flavour::MySql => sql.starts_with("GET DIAGNOSTICS ") && sql.contains(';'),
        };
        if sql.contains("_connection ") && WIDE.iter().any(|set| sql.contains(set)) {
            (self.wide, self.prepared_wide) = (true, 0);
        } else if sql.starts_with("SET NAMES ") {
            (self.wide, self.wide_results) = (false, false);
        }
        if sql.contains("_results ") {
            self.wide_results = WIDE.iter().any(|set| sql.contains(set));
        }
        if sql.starts_with("XA ") {
            self.xa_prepared = sql.starts_with("XA PREPARE ");
        }
        self.lacks_schema &= !sql.starts_with("USE ");
        self.read_only |= sql.contains("READ ONLY");
        let begins = |starts: &[&str]| starts.iter().any(|start| sql.starts_with(start));
        self.found |= begins(&FINDS) && !(self.no_schema && sql.contains("oracle_a."));
        if begins(&["SET ROLE "]) {
            self.role = sql != "SET ROLE NONE";
        }
        let shows = begins(&BLURS) && !sql.contains("WARNINGS");
        let inside = sql.contains("(SELECT") && sql.contains(" FROM ");
        let calls = sql.contains("_function(");
        let may_pin = MAY_PIN.iter().any(|text| sql.contains(text)) || sql.ends_with(UNPARSED);
        self.called |= calls || begins(&["CALL "]) || may_pin;
        if shows || inside || calls || sql.contains("FROM DUAL") {
            self.blurred = true;
        } else if begins(&CLEARS) || begins(&["SELECT "]) && sql.contains(" FROM ") {
            self.blurred = false;
        }
        true
    }
}

/// True if a text names the variable that procedures give back.
fn names_given(sql: &str) -> bool {
    let mut parts = sql.split(GIVEN).skip(1);
    parts.any(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_'))
}

/// Backends that clients make claims on.
#[derive(Clone, Copy, Debug)]
pub struct Backends {
    /// Fewer clients than this may hold one.
    pub count: usize,
    /// The server that they are connections to.
    pub of: Flavour,
}

/// The claims of all clients.
#[derive(Clone, Debug)]
pub(crate) struct Claims {
    held: [Held; CLIENTS_MAX],
    /// The one who alone may speak.
    alone: Option<usize>,
    backends: Backends,
}

impl Claims {
    pub(crate) fn new(backends: Backends) -> Claims {
        Claims {
            held: [Held::default(); CLIENTS_MAX],
            alone: None,
            backends,
        }
    }

    /// True while this client is there.
    pub(crate) fn is_here(&self, who: usize) -> bool {
        self.held[who].here
    }

    /// True while this client may keep a backend.
    pub(crate) fn holds(&self, who: usize) -> bool {
        self.held[who].any()
    }

    /// The one who alone may speak.
    pub(crate) fn alone(&self) -> Option<usize> {
        self.alone
    }

    /// Notes a step if it is legal; otherwise nothing changes and it says `false`.
    pub(crate) fn admit(&mut self, step: &Step) -> bool {
        let mut after = self.clone();
        if !after.note(step) || after.is_crowded() {
            return false;
        }
        if let Act::Blocked(_, steps) = &step.act {
            // While it waits it keeps a backend, whatever it claims.
            let taken = after.held[step.who].taken;
            after.held[step.who].taken += 1;
            for inner in steps {
                let speaks = inner.who != step.who || matches!(inner.act, Act::Vanish);
                if !speaks || !after.note(inner) || after.is_crowded() {
                    return false;
                }
            }
            let held = &mut after.held[step.who];
            held.taken = held.taken.min(taken);
        }
        *self = after;
        true
    }

    /// True if nothing is left for those who hold nothing.
    fn is_crowded(&self) -> bool {
        let holders = self.held.iter().filter(|held| held.any()).count();
        holders >= self.backends.count
    }

    fn note(&mut self, step: &Step) -> bool {
        let who = step.who;
        if let Act::Together(all) = &step.act {
            return self.alone.is_none() && all.iter().all(|(who, _)| self.is_here(*who));
        }
        if self.alone.is_some_and(|alone| alone != who) {
            return false;
        }
        if matches!(step.act, Act::Join(_)) == self.is_here(who) {
            return false;
        }
        let held = &mut self.held[who];
        if let Act::Join(login) = &step.act {
            *held = Held {
                no_schema: login.with & NO_SCHEMA != 0,
                lacks_schema: !login.schema,
                ..Held::default()
            };
        }
        match &step.act {
            Act::Sql(sql) if !held.note_text(sql, self.backends.of) => return false,
            Act::Prepare(_, sql) if held.asks_early(sql) => return false,
            Act::InitDb(_) => held.lacks_schema = false,
            Act::ChangeUser(_) if held.role => return false,
            Act::Reset | Act::ChangeUser(_)
                if held.xa_prepared && self.backends.of == Flavour::MariaDb =>
            {
                return false;
            }
            Act::MultiStatements(_) if held.unclear => return false,
            Act::Fetch(..) | Act::ResetStatement(_) if held.wide => return false,
            Act::Cut(_) if held.wide_results => return false,
            Act::Execute(name, ..) | Act::Again(name, _) | Act::Cut(name) | Act::Bulk(name, _)
                if held.wide && held.prepared_wide & 1 << name == 0 =>
            {
                return false;
            }
            Act::Prepare(name, _) if held.wide => held.prepared_wide |= 1 << name,
            Act::Close(name) => held.prepared_wide &= !(1 << name),
            _ => {}
        }
        match step.claim {
            Claim::None => {}
            Claim::Pins => held.pinned = true,
            Claim::Takes => held.taken += 1,
            Claim::GivesBack => held.taken = held.taken.saturating_sub(1),
            Claim::Opens => held.transaction = true,
            Claim::Closes => held.close(step),
            Claim::Manual => held.manual = true,
            // Where it is on already, nothing ends.
            Claim::Automatic if held.manual => {
                held.manual = false;
                held.transaction = false;
            }
            Claim::Automatic => {}
            Claim::Frees => {
                let Held {
                    found,
                    role,
                    no_schema,
                    lacks_schema,
                    ..
                } = *held;
                let lacks_schema = match &step.act {
                    Act::ChangeUser(login) => !login.schema,
                    _ => lacks_schema,
                };
                *held = Held {
                    found,
                    role,
                    no_schema,
                    lacks_schema,
                    ..Held::default()
                };
                self.alone = None;
            }
            Claim::Excludes => {
                held.pinned = true;
                // It would wait for the others' transactions and locks.
                let mut others = (0..CLIENTS_MAX).filter(|other| *other != who);
                if others.any(|other| self.held[other].any()) {
                    return false;
                }
                self.alone = Some(who);
            }
            Claim::Includes => self.alone = None,
        }
        self.held[who].here = !matches!(step.act, Act::Leave | Act::Vanish);
        if let Act::Kill(whom, kill) = step.act {
            if !self.is_here(whom) {
                return false;
            }
            if kill != Kill::Query {
                self.held[whom] = Held::default();
            }
        }
        true
    }
}

/// The steps that are legal, in their order, on these backends.
#[must_use]
pub fn legal(steps: &[Step], backends: Backends) -> Vec<Step> {
    let mut claims = Claims::new(backends);
    let admitted = steps.iter().filter(|step| claims.admit(step));
    admitted.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::script::Login;

    /// Number of backends of MariaDB's.
    fn of_mariadb(count: usize) -> Backends {
        let of = Flavour::MariaDb;
        Backends { count, of }
    }

    fn join(who: usize) -> Step {
        Step::new(who, Act::Join(Login::usual()), Claim::Frees)
    }

    fn claims(who: usize, claim: Claim) -> Step {
        Step::new(who, Act::Ping, claim)
    }

    #[test]
    fn one_backend_is_left_for_the_others() {
        let steps = [
            join(0),
            join(1),
            claims(0, Claim::Opens),
            claims(1, Claim::Opens),
            claims(0, Claim::Closes),
            claims(1, Claim::Opens),
        ];
        let left = legal(&steps, of_mariadb(2));
        assert_eq!(left.len(), 5, "{left:?}");
        assert_eq!(left[4], steps[5]);
    }

    #[test]
    fn nobody_asks_what_nobody_can_tell() {
        let asks = |sql: &str| Step::sql(0, sql);
        let prepares = || {
            let act = Act::Prepare(1, "SELECT FOUND_ROWS()".into());
            Step::new(0, act, Claim::None)
        };
        let steps = [
            join(0),
            asks("SELECT `found_rows`()"),
            prepares(),
            asks("SELECT LAST_INSERT_ID()"),
            asks("SELECT FOUND_ROWS()"),
            prepares(),
            asks("SET @c = (SELECT COUNT(*) FROM t0)"),
            asks("SHOW WARNINGS"),
            asks("DELETE FROM t0"),
            asks("SHOW WARNINGS"),
        ];
        let left = legal(&steps, of_mariadb(3));
        let kept: Vec<&Step> = [0, 3, 4, 5, 6, 8, 9].map(|at| &steps[at]).to_vec();
        assert_eq!(left.iter().collect::<Vec<_>>(), kept);
    }

    #[test]
    fn nobody_resets_a_prepared_xa_transaction() {
        let xa = |sql: &str| Step::sql(0, sql);
        let reset = || Step::new(0, Act::Reset, Claim::Frees);
        let steps = [
            join(0),
            reset(),
            xa("XA PREPARE 'z0'"),
            reset(),
            xa("SELECT 1"),
            xa("XA COMMIT 'z0'"),
            reset(),
        ];
        assert_eq!(legal(&steps, of_mariadb(2)).len(), steps.len() - 1);
        let of = Flavour::MySql;
        assert_eq!(legal(&steps, Backends { count: 2, of }), steps);
    }

    #[test]
    fn what_a_procedure_gives_is_named_before_a_backend_is_held() {
        let asks = |sql: &str| Step::sql(0, sql);
        let steps = [
            join(0),
            claims(0, Claim::Opens),
            asks("CALL adds0(3, @n)"),
            asks("GET DIAGNOSTICS @number = NUMBER"),
            claims(0, Claim::Closes),
            asks("SELECT @n, LAST_INSERT_ID()"),
            claims(0, Claim::Opens),
            asks("SELECT COUNT(*), @n FROM t0"),
        ];
        let left = legal(&steps, of_mariadb(3));
        let kept: Vec<&Step> = [0, 1, 3, 4, 5, 6, 7].map(|at| &steps[at]).to_vec();
        assert_eq!(left.iter().collect::<Vec<_>>(), kept);
    }

    #[test]
    fn a_status_that_nobody_can_tell_is_not_asked_for() {
        let option = || Step::new(0, Act::MultiStatements(true), Claim::None);
        let steps = [
            join(0),
            option(),
            Step::sql(0, "CALL modal_procedure('PIPES_AS_CONCAT')"),
            Step::sql(0, "SELECT 1"),
            option(),
            Step::sql(0, "SET sql_mode = ''"),
            option(),
            Step::sql(
                0,
                "GET DIAGNOSTICS CONDITION 1 @w = MESSAGE_TEXT; SELECT @w",
            ),
            option(),
            Step::sql(0, "SELECT 1"),
            option(),
        ];
        let without = |left: usize| {
            let kept = (0..steps.len()).filter(|at| *at != left);
            kept.map(|at| steps[at].clone()).collect::<Vec<_>>()
        };
        assert_eq!(legal(&steps, of_mariadb(3)), without(4));
        let of = Flavour::MySql;
        assert_eq!(legal(&steps, Backends { count: 3, of }), without(8));
    }

    #[test]
    fn what_only_mysql_tells_otherwise_is_asked_of_mariadb_alone() {
        let steps = [
            join(0),
            Step::sql(0, "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"),
            Step::sql(0, "CALL modal_procedure('ANSI_QUOTES')"),
            Step::sql(0, "SET sql_mode = ''"),
            Step::sql(0, "CALL modal_procedure('ANSI_QUOTES')"),
        ];
        let of = Flavour::MySql;
        let left = legal(&steps, Backends { count: 3, of });
        let kept = [0, 1, 3, 4].map(|at| steps[at].clone());
        assert_eq!(left, kept);
        assert_eq!(legal(&steps, of_mariadb(3)), steps);
    }

    #[test]
    fn no_execution_is_cut_where_results_are_wide() {
        let cut = || Step::new(0, Act::Cut(3), Claim::None);
        let steps = [
            join(0),
            cut(),
            Step::sql(0, "SET character_set_results = utf16"),
            cut(),
            Step::sql(0, "SET character_set_results = DEFAULT"),
            cut(),
            Step::sql(0, "SET character_set_results = utf32"),
            Step::sql(0, "SET NAMES latin1"),
            cut(),
        ];
        let kept = [0, 1, 2, 4, 5, 6, 7, 8].map(|at| steps[at].clone());
        assert_eq!(legal(&steps, of_mariadb(2)), kept);
    }

    #[test]
    fn nothing_unknown_is_executed_where_literals_are_wide() {
        let act = |act: Act| Step::new(0, act, Claim::None);
        let prepare = |name| act(Act::Prepare(name, "SELECT 1".to_string()));
        let execute = |name| act(Act::Execute(name, Vec::new(), false));
        let steps = [
            join(0),
            prepare(3),
            Step::sql(0, "SET collation_connection = utf16_bin"),
            execute(3),
            act(Act::Fetch(3, 1)),
            act(Act::ResetStatement(3)),
            prepare(5),
            execute(5),
            act(Act::Fetch(5, 1)),
            Step::sql(0, "SET NAMES latin1"),
            act(Act::Fetch(5, 1)),
            execute(3),
        ];
        let kept = [0, 1, 2, 6, 7, 9, 10, 11].map(|at| steps[at].clone());
        assert_eq!(legal(&steps, of_mariadb(3)), kept);
    }

    #[test]
    fn nobody_needs_a_variable_unset_behind_code_that_may_pin() {
        let runs_code = [
            "SELECT marking_function(3)",
            "CALL modal_procedure('PIPES_AS_CONCAT')",
            "INSERT INTO counting_table (x) VALUES (3)",
            "SELECT 9; EXECUTE IMMEDIATE 'SELECT 1'",
            "BEGIN; INSERT INTO t (v) VALUES (3); SELEC",
        ];
        let needs_unset = [
            "SELECT 1 FROM information_schema.USER_VARIABLES",
            "SELECT @unset_a",
        ];
        for (code, asks) in runs_code
            .iter()
            .flat_map(|code| needs_unset.map(|asks| (code, asks)))
        {
            let asks = || Step::sql(0, asks);
            let reset = Step::new(0, Act::Reset, Claim::Frees);
            let steps = [join(0), Step::sql(0, *code), asks(), reset, asks()];
            let left = legal(&steps, of_mariadb(2));
            assert_eq!(left.len(), 4, "{left:?}");
            assert_eq!(left[3], steps[4]);
        }
    }

    #[test]
    fn what_code_sets_is_not_read_where_the_code_was_not_found() {
        for schema in [false, true] {
            let login = Login {
                schema,
                ..Login::default()
            };
            let steps = [
                Step::new(0, Act::Join(login), Claim::None),
                Step::sql(0, "SELECT marking_function(2)"),
                Step::sql(0, READS_MARK),
                Step::sql(0, "USE oracle_b"),
                Step::sql(0, READS_MARK),
            ];
            let left = legal(&steps, of_mariadb(2));
            assert_eq!(left.len(), if schema { 5 } else { 4 }, "{left:?}");
        }
    }

    #[test]
    fn autocommit_ends_a_transaction_where_it_was_off() {
        let steps = [
            join(0),
            join(1),
            claims(0, Claim::Opens),
            claims(0, Claim::Automatic),
            claims(1, Claim::Opens),
            claims(0, Claim::Closes),
            claims(0, Claim::Manual),
            claims(0, Claim::Opens),
            claims(0, Claim::Automatic),
            claims(1, Claim::Opens),
        ];
        let left = legal(&steps, of_mariadb(2));
        let kept = [0, 1, 2, 3, 5, 6, 7, 8, 9].map(|at| &steps[at]);
        assert_eq!(left.iter().collect::<Vec<_>>(), kept);
    }

    #[test]
    fn nobody_speaks_while_one_excludes_the_others_or_is_away() {
        let steps = [
            join(0),
            join(1),
            claims(2, Claim::None),
            claims(0, Claim::Excludes),
            claims(1, Claim::None),
            claims(0, Claim::Includes),
            claims(1, Claim::None),
        ];
        let left = legal(&steps, of_mariadb(3));
        let who: Vec<usize> = left.iter().map(|step| step.who).collect();
        assert_eq!(who, [0, 1, 0, 0, 1]);
    }
}
