//! Calls of stored code: what is known to leave nothing that nobody follows pins nobody, and what
//! is not known does.
//!
//! Harmless calls are told in `tests/stories/calls.story`. What is harmful has two backends here,
//! and its code is there before the pool, or made past it.

use crate::compare::{Story, same_on};
use crate::triggers_and_views::{join, servers};
use crate::world::{found, fresh_schema, start_pool};
use testkit::client::Client;
use testkit::onramp::Pool;
use testkit::real::{Flavour, Real};
use wire::command::Command;

/// A routine that leaves something unseen, how it is run, what is asked then, and what its own
/// client and another hear.
struct Harm {
    name: &'static str,
    only: Option<Flavour>,
    makes: &'static [&'static str],
    runs: &'static str,
    asks: &'static str,
    own: &'static str,
    others: &'static str,
}

const HARM: Harm = Harm {
    name: "",
    only: None,
    makes: &[],
    runs: "CALL p()",
    asks: "SELECT IS_USED_LOCK('LOCK') <=> CONNECTION_ID()",
    own: "1",
    others: "0",
};
const LOCKS: &str = "CREATE FUNCTION takes() RETURNS INT RETURN GET_LOCK('LOCK', 10)";

const HARMS: [Harm; 13] = [
    Harm {
        name: "lock",
        makes: &["CREATE PROCEDURE p() DO GET_LOCK('LOCK', 10)"],
        ..HARM
    },
    Harm {
        name: "nested",
        makes: &[
            LOCKS,
            "CREATE PROCEDURE p() BEGIN IF takes() THEN SELECT 1; END IF; END",
        ],
        ..HARM
    },
    Harm {
        name: "function",
        makes: &[LOCKS],
        runs: "SELECT takes()",
        ..HARM
    },
    Harm {
        name: "trigger",
        makes: &[
            "CREATE TABLE t (v INT)",
            "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW DO GET_LOCK('LOCK', 10)",
            "CREATE PROCEDURE p() INSERT INTO t VALUES (1)",
        ],
        ..HARM
    },
    Harm {
        name: "view",
        makes: &[
            LOCKS,
            "CREATE VIEW w AS SELECT takes() AS a",
            "CREATE PROCEDURE p() SELECT a FROM w",
        ],
        ..HARM
    },
    Harm {
        name: "dynamic",
        makes: &[
            "CREATE PROCEDURE p() BEGIN SET @s = 'DO GET_LOCK(''LOCK'', 10)'; PREPARE s FROM @s; \
             EXECUTE s; DEALLOCATE PREPARE s; END",
        ],
        ..HARM
    },
    Harm {
        name: "temporary",
        makes: &["CREATE PROCEDURE p() CREATE TEMPORARY TABLE mine AS SELECT 5 AS v"],
        asks: "SELECT v FROM mine",
        own: "5",
        others: "1146",
        ..HARM
    },
    Harm {
        name: "marks",
        makes: &[
            "CREATE FUNCTION marks() RETURNS INT BEGIN IF 1 THEN SET @seen = 5; END IF; \
             RETURN 1; END",
        ],
        runs: "DO marks()",
        asks: "SELECT IFNULL(@seen, 'none')",
        own: "5",
        others: "none",
        ..HARM
    },
    Harm {
        name: "variable",
        makes: &["CREATE PROCEDURE p() SET SESSION div_precision_increment = 9"],
        asks: "SELECT @@div_precision_increment",
        own: "9",
        others: "4",
        ..HARM
    },
    Harm {
        name: "silent",
        only: Some(Flavour::MariaDb),
        makes: &["CREATE PROCEDURE p() SET @@div_precision_increment = 9"],
        asks: "SELECT @@div_precision_increment",
        own: "9",
        others: "4",
        ..HARM
    },
    Harm {
        name: "sequence",
        only: Some(Flavour::MariaDb),
        makes: &[
            "CREATE SEQUENCE s",
            "CREATE PROCEDURE p() SELECT NEXTVAL(s)",
        ],
        asks: "SELECT IFNULL(LASTVAL(s) > 0, 'none')",
        own: "1",
        others: "none",
        ..HARM
    },
    Harm {
        name: "block",
        only: Some(Flavour::MariaDb),
        runs: "BEGIN NOT ATOMIC DO GET_LOCK('LOCK', 10); END",
        ..HARM
    },
    Harm {
        name: "oracle",
        only: Some(Flavour::MariaDb),
        makes: &[
            "SET sql_mode = ORACLE",
            "CREATE PACKAGE pack AS PROCEDURE p; END",
            "CREATE PACKAGE BODY pack AS PROCEDURE p AS BEGIN DO GET_LOCK('LOCK', 10); END; END",
        ],
        runs: "CALL pack.p()",
        ..HARM
    },
];

/// Each has a lock of its own name: connections of the one before may not be gone yet.
fn named(sql: &str, schema: &str) -> String {
    sql.replace("'LOCK'", &format!("'{schema}'"))
}

fn make(real: &Real, schema: &str, makes: &[&str]) {
    fresh_schema(real, schema);
    let mut admin = real.admin();
    admin.must(&format!("USE {schema}"));
    for sql in makes {
        admin.must(&named(sql, schema));
    }
}

fn answer(client: &mut Client, sql: &str) -> String {
    match client.query(sql).unwrap().pop() {
        Some(testkit::reply::Outcome::Failed(failure)) => failure.code.to_string(),
        Some(outcome) => outcome.rows().only(),
        None => String::new(),
    }
}

#[test]
fn calls_that_leave_something_unseen_pin() {
    for real in servers("calls_that_leave_something_unseen_pin") {
        let fits = |harm: &&Harm| harm.only.is_none_or(|only| only == real.flavour());
        for harm in HARMS.iter().filter(fits) {
            let schema = format!("calls_{}", harm.name);
            make(real, &schema, harm.makes);
            let pool = start_pool(real, &format!("{schema}.toml"), TWO);
            let (mut one, mut other) = (join(&pool, &schema), join(&pool, &schema));
            if harm.name == "oracle" {
                one.must("SET sql_mode = ORACLE");
            }
            one.must(&named(harm.runs, &schema));
            let asks = named(harm.asks, &schema);
            assert_eq!(answer(&mut other, &asks), harm.others, "{schema}");
            assert_eq!(answer(&mut one, &asks), harm.own, "{schema}");
            pool.ask_for_report();
            let pinned = "\"stored_code\": 1";
            pool.wait_for(pinned)
                .unwrap_or_else(|why| panic!("{schema}: {why}"));
        }
    }
}

const TWO: &str = "groups = 1\nbackends_max = 2";

/// Two hundred clients that live by procedures share eight backends.
#[test]
fn many_clients_that_call_share_few_backends() {
    for real in servers("many_clients_that_call_share_few_backends") {
        let schema = "calls_many";
        make(
            real,
            schema,
            &[
                "CREATE TABLE t (v INT)",
                "CREATE PROCEDURE p(a INT, OUT b INT) BEGIN INSERT INTO t VALUES (a); \
                 SELECT COUNT(*) INTO b FROM t WHERE v = a; END",
            ],
        );
        let pool = start_pool(real, "calls_many.toml", "groups = 2\nbackends_max = 8");
        let mut clients: Vec<Client> = (0..200).map(|_| join(&pool, schema)).collect();
        for (n, client) in clients.iter_mut().enumerate() {
            client.must(&format!("CALL p({n}, @count)"));
        }
        for client in &mut clients {
            assert_eq!(client.value("SELECT @count"), "1");
        }
        let census = pool.wait_for_census(" statements: 400,").unwrap();
        assert!(census.contains("clients: 200, pinned: 0,"), "{census}");
        assert!(
            census.contains("code_known: 200, code_unread: 0"),
            "{census}"
        );
        assert!(census.contains("pins: {}"), "{census}");
    }
}

/// Replaces a procedure past the pool, and calls it until the pool knows.
fn until_pinned(pool: &Pool, schema: &str) {
    for _ in 0..10_000 {
        let mut client = join(pool, schema);
        client.must("CALL p()");
        let id = client.value("SELECT CONNECTION_ID()").parse().unwrap();
        if !pool.report_of(id).unwrap().contains("not pinned") {
            return;
        }
    }
    panic!("the pool does not learn of code that is made past it");
}

/// The server itself says that there is new code, long before the next regular look.
#[test]
fn code_that_is_made_past_the_pool_is_noticed() {
    for real in servers("code_that_is_made_past_the_pool_is_noticed") {
        let schema = "calls_past";
        make(real, schema, &["CREATE PROCEDURE p() SELECT 1"]);
        let extra = format!("{TWO}\nstored_code_refresh_s = 86400");
        let pool = start_pool(real, "calls_past.toml", &extra);
        let mut one = join(&pool, schema);
        one.must("CALL p()");
        let mut admin = real.admin();
        admin.must(&format!("USE {schema}"));
        admin.must("DROP PROCEDURE p");
        admin.must("CREATE PROCEDURE p() DO GET_LOCK('calls_past', 0)");
        until_pinned(&pool, schema);
        drop(pool);
        make(real, schema, &["CREATE PROCEDURE p() SELECT 1"]);
        let pool = start_pool(real, "calls_past.toml", &extra);
        // Made through the pool it counts at once.
        let mut makes = join(&pool, schema);
        makes.must("DROP PROCEDURE p");
        makes.must("CREATE PROCEDURE p() DO GET_LOCK('calls_past', 0)");
        let mut one = join(&pool, schema);
        one.must("CALL p()");
        assert_eq!(
            makes.value("SELECT IS_USED_LOCK('calls_past') <=> CONNECTION_ID()"),
            "0"
        );
        pool.ask_for_report();
        // The name may stand there as the definition has it, or as the catalogue.
        let line = pool.wait_for(" calls_past.p").unwrap();
        let pins = line.contains("stored code: ") && line.ends_with("(GET_LOCK())");
        assert!(pins, "{line}");
    }
}

/// The report has a line for each object, and one for each routine whose calls pin.
#[test]
fn the_report_names_the_code() {
    for real in servers("the_report_names_the_code") {
        let schema = "calls_report";
        make(
            real,
            schema,
            &[
                "CREATE TABLE t (v INT)",
                "CREATE FUNCTION takes() RETURNS INT RETURN GET_LOCK('calls_report', 0)",
                "CREATE PROCEDURE harmless() SELECT 1",
                "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.v = takes()",
            ],
        );
        let pool = start_pool(real, "calls_report.toml", TWO);
        pool.ask_for_report();
        pool.wait_for("triggers and views that matter: ").unwrap();
        let said = pool.said();
        let object = "triggers and views: trigger tr on calls_report.t (calls takes: GET_LOCK())";
        assert!(said.lines().any(|line| line.ends_with(object)), "{said}");
        let routine = "stored code: routine calls_report.takes (GET_LOCK())";
        assert!(said.lines().any(|line| line.ends_with(routine)), "{said}");
        assert!(!said.contains("calls_report.harmless"), "{said}");
    }
}

/// Types of stored code are nobody else's where the other client has been back at its usual value
/// before, has made its backend stand there for what then fails, or has reset its session; and that
/// itself goes on as on a connection of its own. The server is the test's own: MySQL forgets the
/// code, and with it the types, of all sessions whenever anybody creates or drops stored code.
#[test]
fn types_of_stored_code_end_with_their_session() {
    let test = "types_of_stored_code_end_with_their_session";
    let Some(real) = found(Real::start_mysql(&[]), test) else {
        return;
    };
    real.create_user("app", "app");
    same_on(&real, "types_ended", 1, |story| {
        let (a, b) = (story.join(), story.join());
        let mut codes = 0;
        let mut code = |story: &mut Story| {
            codes += 1;
            let name = format!("third{codes}()");
            let result = "RETURNS DECIMAL(20, 10) NO SQL RETURN 1 / 3";
            story.sql(a, &format!("CREATE FUNCTION {name} {result}"));
            format!("SELECT {name}")
        };
        let set = |value: &str| format!("SET div_precision_increment = {value}");

        let third = code(story);
        story.all(b, &[&set("9"), &third, &set("DEFAULT"), &third]);
        story.sql(a, &third);

        let third = code(story);
        story.all(b, &[&set("9"), &third]);
        story.command(b, Command::ResetConnection, b"");
        story.all(b, &["USE types_ended", &third]);

        // What is prepared at one value is executed at another; the second of them fails.
        for prepared_at in ["5", "DEFAULT"] {
            let third = code(story);
            story.sql(b, "CREATE TABLE t (v INT)");
            story.sql(b, &set(prepared_at));
            let id = story.prepare(b, "SELECT v FROM t").id;
            story.all(b, &[&set("9"), &third]);
            story.execute(b, id, &[]);
            story.sql(b, "DROP TABLE t");
            story.sql(a, "SELECT 1");
            story.sql(b, &third);
            story.execute(b, id, &[]);
            story.sql(a, &third);
        }
    });
}
