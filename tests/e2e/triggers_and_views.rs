//! Code that no statement's text shows: what triggers, views and columns do to their session must
//! not reach another client, though no tracker reports it.
//!
//! Each way to hide code is told in `tests/stories/stored_code.story`; here it is there before the
//! pool, made while statements wait, or not shown to the pool's account.

use crate::world::*;
use std::sync::OnceLock;

const ONE: &str = "groups = 1\nbackends_max = 1\nwait_ms_max = 20000";
const TWO: &str = "groups = 1\nbackends_max = 2";

/// Servers of these tests' own: a pool looks at all code of its server, and other tests' tables
/// bear the same names.
pub(crate) fn servers() -> Vec<&'static Real> {
    static SERVERS: [OnceLock<Option<Real>>; 2] = [OnceLock::new(), OnceLock::new()];
    let both = [
        SERVERS[0].get_or_init(|| own(Real::start(&[]))),
        SERVERS[1].get_or_init(|| own(Real::start_mysql(&[]))),
    ];
    both.into_iter().flatten().collect()
}

pub(crate) fn join(pool: &Pool, schema: &str) -> Client {
    login(&pool.address, &app().schema(schema))
}

/// Text with a lock of the test's own name: connections of the one before may not be gone yet.
fn named(sql: &str, schema: &str) -> String {
    sql.replace("'LOCK'", &format!("'{schema}'"))
}

const TAKES: &str = "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW DO GET_LOCK('LOCK', 10)";
const HELD: &str = "SELECT IS_USED_LOCK('LOCK') <=> CONNECTION_ID()";

/// A schema with a table of two rows.
fn prepare(real: &Real, schema: &str) {
    fresh_schema(real, schema);
    let table = format!("CREATE TABLE {schema}.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    real.script(&format!(
        "{table}; INSERT INTO {schema}.t (v) VALUES (10), (20)"
    ));
}

fn make(real: &Real, schema: &str, makes: &[&str]) {
    let mut admin = real.admin();
    admin.must(&format!("USE {schema}"));
    makes.iter().for_each(|sql| {
        admin.must(&named(sql, schema));
    });
}

/// Code that a client defines through the pool counts for everybody's next statement; so does what
/// was prepared before, and what is taken away again.
#[test]
fn code_that_is_defined_through_the_pool_counts_at_once() {
    for real in servers() {
        prepare(real, "hidden_made");
        let held = named(HELD, "hidden_made");
        let pool = fresh_pool(real, TWO);
        let (mut makes, mut writes) = (join(&pool, "hidden_made"), join(&pool, "hidden_made"));
        let insert = writes.prepare("INSERT INTO t (v) VALUES (1)").id;
        writes.execute(insert, &[], false).unwrap();
        assert_eq!(makes.value(&held), "0");
        makes.must(&named(TAKES, "hidden_made"));
        writes.execute(insert, &[], false).unwrap();
        assert_eq!(makes.value(&held), "0");
        assert_eq!(writes.value(&held), "1");
        drop(writes);
        let asked = "SELECT GET_LOCK('LOCK', 10) + RELEASE_LOCK('LOCK')";
        assert_eq!(makes.value(asked), "2");
        // A table of another name takes its triggers along.
        makes.must("RENAME TABLE t TO u");
        let mut writes = join(&pool, "hidden_made");
        writes.must("INSERT INTO u (v) VALUES (1)");
        assert_eq!(makes.value(&held), "0");
        assert_eq!(writes.value(&held), "1");
        drop(writes);
        // Without the trigger the table is as any other, once a look has told.
        makes.must("DROP TRIGGER tr");
        wait_while(|| {
            let mut writes = join(&pool, "hidden_made");
            writes.must("INSERT INTO u (v) VALUES (1)");
            let id = writes.value("SELECT CONNECTION_ID()").parse().unwrap();
            !pool.report_of(id).unwrap().contains("not pinned")
        });
    }
}

/// A statement that waits for a backend while somebody makes a trigger is judged again.
#[test]
fn a_statement_that_waited_is_judged_again() {
    for real in servers() {
        prepare(real, "hidden_waited");
        let extra = "groups = 1\nbackends_max = 1\nwait_ms_max = 20000";
        let pool = fresh_pool(real, extra);
        let mut makes = join(&pool, "hidden_waited");
        let mut writes = join(&pool, "hidden_waited");
        makes.must(HOLD);
        makes.must("SELECT 1");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                writes.must("INSERT INTO t (v) VALUES (1)");
            });
            pool.wait_for_census("waiting: 1").unwrap();
            makes.must(&named(TAKES, "hidden_waited"));
            waiting.join().unwrap();
        });
        pool.ask_for_report();
        pool.wait_for("pinned now: {triggers_and_views: 1}")
            .unwrap();
    }
}

#[test]
fn harmless_code_pins_nobody() {
    for real in servers() {
        prepare(real, "hidden_harmless");
        make(
            real,
            "hidden_harmless",
            &[
                "CREATE TABLE log (v INT, who VARCHAR(20))",
                "CREATE FUNCTION half(a INT) RETURNS INT DETERMINISTIC RETURN a / 2",
                "CREATE PROCEDURE logs(a INT) INSERT INTO log VALUES (half(a), @who)",
                "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW BEGIN DECLARE n INT; \
                 SELECT COUNT(*) INTO n FROM log; SET NEW.v = COALESCE(NEW.v, n); \
                 CALL logs(NEW.v); END",
                "CREATE VIEW vw AS SELECT half(v) AS h FROM t",
            ],
        );
        let pool = fresh_pool(real, ONE);
        let mut one = join(&pool, "hidden_harmless");
        let mut other = join(&pool, "hidden_harmless");
        for _ in 0..3 {
            one.script("SET @who = 'me'; INSERT INTO t (v) VALUES (NULL)");
            assert_eq!(other.value("SELECT COUNT(h) > 0 FROM vw"), "1");
        }
        assert_eq!(other.value("SELECT MAX(who) FROM log"), "me");
        pool.ask_for_report();
        pool.wait_for("2 clients, pinned now: {}").unwrap();
    }
}

/// The policies of stored code hold for code in triggers and views too.
#[test]
fn the_policy_decides_about_triggers_and_views() {
    for real in servers() {
        prepare(real, "hidden_policy");
        make(real, "hidden_policy", &[TAKES]);
        let held = named(HELD, "hidden_policy");
        let insert = "INSERT INTO t (v) VALUES (1)";
        for setting in ["stored_code = \"trust\"", "stored_code_refresh_s = 0"] {
            let pool = fresh_pool(real, &format!("{ONE}\n{setting}"));
            let (mut one, mut other) = (join(&pool, "hidden_policy"), join(&pool, "hidden_policy"));
            one.must(insert);
            assert_eq!(other.value(&held), "1", "{setting}: as the settings say");
        }
    }
}

/// Code that the pool's account is not shown is named at start, and code without a text pins.
#[test]
fn what_the_account_may_not_see_is_said() {
    for real in servers() {
        prepare(real, "hidden_dark");
        make(real, "hidden_dark", &["CREATE VIEW vw AS SELECT v FROM t"]);
        let sql = "DROP USER IF EXISTS 'dark'@'%'; CREATE USER 'dark'@'%' IDENTIFIED BY 'dark'; \
                   GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON hidden_dark.* TO 'dark'@'%'";
        real.script(sql);
        let text = config(&real.address(), TWO);
        let user = "[[user]]\nname = \"app\"";
        let dark = "[[user]]\nname = \"dark\"\npassword = \"dark\"\n[[user]]\nname = \"app\"";
        let text = text.replacen(user, dark, 1);
        let pool = pool_from(real, &text);
        let said = pool.wait_for("the account 'dark' is not shown").unwrap();
        assert!(said.contains("views (needs SELECT and SHOW VIEW"), "{said}");
        assert!(said.contains("monitor_user"), "{said}");
        if real.flavour() == Flavour::MySql {
            says(&said, "the triggers of hidden_dark (needs TRIGGER");
        }
        let mut one = join(&pool, "hidden_dark");
        one.must("SELECT * FROM vw");
        pool.ask_for_report();
        pool.wait_for("pinned now: {triggers_and_views: 1}")
            .unwrap();
        drop(pool);
        // Another account may look in its place.
        let monitor = "[backend]\nmonitor_user = \"app\"\nmonitor_password = \"app\"\n";
        let pool = pool_from(real, &text.replacen("[backend]\n", monitor, 1));
        let mut one = join(&pool, "hidden_dark");
        one.must("SELECT * FROM vw");
        pool.ask_for_report();
        pool.wait_for("pinned now: {}").unwrap();
        assert!(!pool.said().contains("is not shown"), "{}", pool.said());
    }
}
