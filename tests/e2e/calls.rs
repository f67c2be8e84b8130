//! Calls of stored code: what is known to leave nothing that nobody follows pins nobody, and what
//! is not known does.
//!
//! Two clients on one backend run such calls and ask what each left, directly and through the
//! pool: a pin would leave the other without a backend, and what it met of the other's would show.
//! What is harmful has two backends.

use crate::compare::{Story, same_on, same_on_both};
use crate::triggers_and_views::{join, servers};
use crate::world::{HOLD, app, found, fresh_schema, server, start_pool};
use testkit::client::Client;
use testkit::onramp::Pool;
use testkit::real::{Flavour, Real};
use wire::capabilities as cap;
use wire::command::Command;

/// Two clients, a table and routines that leave nothing which is not followed.
fn begin(story: &mut Story) -> (usize, usize) {
    let account = app().schema(&story.schema);
    let account = account
        .with(cap::MULTI_STATEMENTS)
        .without(cap::SESSION_TRACK);
    let (a, b) = (story.join_as(&account), story.join_as(&account));
    story.all(a, &TABLES);
    story.all(a, &ROUTINES);
    // Before its first query a session of MariaDB has what its thread's last one found.
    story.sql(b, "SELECT v FROM t");
    (a, b)
}

const TABLES: [&str; 4] = [
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT UNIQUE)",
    "INSERT INTO t (v) VALUES (1), (2), (3)",
    "CREATE TABLE log (v INT)",
    "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.v)",
];

const ROUTINES: [&str; 18] = [
    "CREATE PROCEDURE selects(a INT) SELECT COUNT(*) FROM t WHERE v >= a",
    "CREATE PROCEDURE inserts(a INT) INSERT INTO t (v) VALUES (a)",
    "CREATE PROCEDURE updates() UPDATE t SET v = -v",
    "CREATE PROCEDURE gives(a INT, OUT b INT) BEGIN SELECT a + 1 INTO b; END",
    "CREATE PROCEDURE changes(INOUT a VARCHAR(9)) BEGIN SET a = CONCAT(a, '!'); DO 1; END",
    "CREATE PROCEDURE finds() SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1",
    "CREATE PROCEDURE numbers() UPDATE t SET v = LAST_INSERT_ID(77) WHERE v = 9999",
    "CREATE PROCEDURE warns() SELECT CAST('x' AS SIGNED)",
    "CREATE PROCEDURE fails() BEGIN DO 1; SIGNAL SQLSTATE '45000' \
     SET MESSAGE_TEXT = 'no'; END",
    "CREATE PROCEDURE handles() BEGIN DECLARE n INT; DECLARE EXIT HANDLER FOR SQLEXCEPTION \
     BEGIN GET DIAGNOSTICS CONDITION 1 n = MYSQL_ERRNO; SELECT n; END; \
     INSERT INTO t (v) SELECT MAX(v) FROM t; END",
    "CREATE PROCEDURE commits(a INT) BEGIN START TRANSACTION; INSERT INTO t (v) VALUES (a); \
     COMMIT; END",
    "CREATE PROCEDURE rolls_back(a INT) BEGIN START TRANSACTION; INSERT INTO t (v) VALUES (a); \
     ROLLBACK; SELECT 1; END",
    "CREATE FUNCTION half(a INT) RETURNS INT DETERMINISTIC RETURN a / 2",
    "CREATE FUNCTION notes(a INT) RETURNS INT BEGIN INSERT INTO log VALUES (a); \
     RETURN a + IFNULL(@seen, 0); END",
    "CREATE PROCEDURE nests(a INT) BEGIN CALL inserts(half(a)); CALL selects(a); DO 1; END",
    "CREATE PROCEDURE recurs(a INT) BEGIN IF a > 0 THEN CALL recurs(a - 1); END IF; SELECT a; END",
    "CREATE PROCEDURE counts() BEGIN UPDATE t SET v = v + 100; SELECT ROW_COUNT(); END",
    "CREATE PROCEDURE loops() BEGIN DECLARE done INT DEFAULT 0; DECLARE a INT; \
     DECLARE c CURSOR FOR SELECT v FROM t; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; \
     DO 1; OPEN c; all_of: LOOP FETCH c INTO a; IF done THEN LEAVE all_of; END IF; END LOOP; \
     CLOSE c; SELECT a > 0; END",
];

const CALLS: [&str; 23] = [
    "CALL selects(2)",
    "CALL `SELECTS` (1)",
    "CALL inserts(10)",
    "CALL inserts(10)",
    "CALL updates",
    "CALL gives(5, @seen)",
    "SET @seen = 'a'; CALL changes(@seen)",
    "CALL changes(@seen); CALL selects(1); SELECT @seen",
    "CALL finds()",
    "CALL numbers()",
    "CALL warns()",
    "CALL fails()",
    "CALL handles()",
    "CALL commits(20)",
    "CALL rolls_back(30)",
    "CALL nests(8)",
    "CALL counts()",
    "CALL loops()",
    "SELECT half(8), half(half(20))",
    "SELECT notes(3)",
    "INSERT INTO t (v) VALUES (half(90))",
    "SELECT v FROM t WHERE v > half(2) LIMIT 2",
    "DO notes(4)",
];

/// Questions to each session behind every call.
const ASKS: [&str; 4] = [
    "SELECT ROW_COUNT()",
    "SELECT LAST_INSERT_ID(), IFNULL(@seen, 'none'), @@div_precision_increment",
    "SELECT COUNT(*), MAX(v) FROM log",
    "SELECT COUNT(*), MAX(v) FROM t",
];

#[test]
fn calls_whose_code_is_known_pin_nobody() {
    same_on_both("calls_known", 1, |story| {
        let (a, b) = begin(story);
        for call in CALLS {
            story.sql(a, call);
            story.all(b, &ASKS);
            story.all(a, &ASKS);
        }
        story.sql(a, "SET max_sp_recursion_depth = 9");
        story.sql(a, "CALL recurs(3)");
        story.all(b, &ASKS);
        story.sql(a, "CALL fails()");
        story.sql(b, "SELECT 1");
        story.sql(a, "SHOW WARNINGS");
        story.sql(a, "CALL warns()");
        story.sql(b, "SELECT 1");
        story.sql(a, "SHOW WARNINGS");
    });
}

/// Prepared, by the binary protocol and as text, and under other default schemata.
#[test]
fn prepared_calls_and_other_schemata_are_known() {
    same_on_both("calls_prepared", 1, |story| {
        let (a, b) = begin(story);
        let call = story.prepare(a, "CALL gives(?, @seen)").id;
        let counts = story.prepare(a, "CALL selects(?)").id;
        let halves = story.prepare(a, "SELECT half(?)").id;
        for n in ["1", "22"] {
            for id in [call, counts, halves] {
                story.execute(a, id, &[Some(n.as_bytes())]);
                story.all(b, &ASKS);
                story.all(a, &ASKS);
            }
        }
        let name = story.schema.clone();
        let qualified = format!("CALL `{name}`.`selects`(1)");
        story.all(a, &["USE shop", &qualified]);
        story.all(b, &ASKS);
    });
}

/// A transaction that is left open keeps the backend as long as any other.
#[test]
fn a_transaction_that_a_procedure_opens_is_its_clients() {
    same_on_both("calls_session", 1, |story| {
        let (a, b) = begin(story);
        story.all(
            a,
            &["CREATE PROCEDURE opens() BEGIN START TRANSACTION; INSERT INTO log VALUES (1); END"],
        );
        story.all(a, &["CALL opens()", "SELECT COUNT(*) FROM log", "COMMIT"]);
        story.all(b, &ASKS);
    });
}

/// A routine gives the mode and the character sets back at its end. MySQL reports what the routine
/// had with the rows that it sends before, and reports nothing at its end.
#[test]
fn what_a_procedure_has_for_itself_ends_with_it() {
    same_on_both("calls_give_back", 2, |story| {
        let account = app().schema(&story.schema);
        let account = account
            .with(cap::MULTI_STATEMENTS)
            .without(cap::SESSION_TRACK);
        let (a, b) = (story.join_as(&account), story.join_as(&account));
        story.all(
            a,
            &[
                "CREATE PROCEDURE sets_mode(m VARCHAR(80)) BEGIN SET sql_mode = m; \
                 SELECT @@sql_mode; END",
                "CREATE PROCEDURE sets_names() BEGIN SET NAMES latin1; \
                 SELECT @@character_set_client; SET time_zone = '+03:00'; SELECT 2; END",
            ],
        );
        let probe = "SELECT @@sql_mode, @@character_set_client, @@collation_connection, \
                     @@character_set_results, @@time_zone, \"w\"";
        for call in [
            "CALL sets_mode('')",
            "SET sql_mode = ''",
            "CALL sets_mode('ANSI_QUOTES')",
            "SELECT 1; CALL sets_mode('ANSI_QUOTES'); SELECT 2",
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES'; CALL sets_mode('ANSI_QUOTES')",
            "CALL sets_names()",
        ] {
            story.sql(a, call);
            for held in [HOLD, "COMMIT"] {
                story.sql(b, held);
                story.sql(a, probe);
            }
        }
    });
}

#[test]
fn anonymous_blocks_keep_their_backend() {
    let Some(real) = server("anonymous_blocks_keep_their_backend") else {
        return;
    };
    same_on(real, "calls_blocks", 2, |story| {
        let (a, b) = begin(story);
        for block in [
            "BEGIN NOT ATOMIC DECLARE n INT; SELECT COUNT(*) INTO n FROM t; SELECT n; END",
            "BEGIN NOT ATOMIC SET @seen = 5; CALL inserts(50); END",
            "IF 1 > 0 THEN UPDATE t SET v = v + 1000; ELSE DELETE FROM t; END IF",
            "CASE 2 WHEN 2 THEN SELECT 7 INTO @seen; END CASE",
            "FOR i IN 1..3 DO INSERT INTO log VALUES (i); END FOR",
            "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END; CALL fails(); END",
            "BEGIN NOT ATOMIC SET @seen = 'half'; SIGNAL SQLSTATE '45000'; END",
        ] {
            story.sql(a, block);
            story.all(b, &ASKS);
            story.all(a, &ASKS[1..]);
        }
    });
}

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

/// Warnings of a function are counted in the reply, and nothing of before.
#[test]
fn statements_with_functions_count_their_own_warnings() {
    same_on_both("counts_warnings", 1, |story| {
        let (a, b) = begin(story);
        story.all(
            a,
            &[
                "CREATE FUNCTION looks() RETURNS INT RETURN (SELECT COUNT(*) FROM t)",
                "CREATE FUNCTION warns() RETURNS INT DETERMINISTIC RETURN CAST('x' AS SIGNED)",
            ],
        );
        for before in [
            "SELECT 1 / 0, 2 / 0",
            "SELECT * FROM missing",
            "SET time_zone = 'nowhere'",
            "INSERT IGNORE INTO t VALUES (1, 1)",
        ] {
            for function in ["half(4)", "looks()", "warns()", "half(looks())"] {
                for sql in ["SELECT {}", "SELECT {} FROM t", "DO {}", "SET @q = {}"] {
                    story.sql(a, before);
                    story.sql(b, "SELECT CAST('other' AS SIGNED) FROM t");
                    story.sql(a, &sql.replace("{}", function));
                }
            }
        }
    });
}

/// MySQL keeps types of stored code for as long as a session lasts; a client that leaves
/// `div_precision_increment` alone has its own, whoever has run the code before.
#[test]
fn types_of_stored_code_are_not_those_of_another_session() {
    same_on_both("types_of_code", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(
            a,
            "CREATE FUNCTION seventh(x INT) RETURNS DECIMAL(20, 10) DETERMINISTIC \
             BEGIN DECLARE y DECIMAL(20, 10); SET y = x / 7; RETURN y; END",
        );
        story.all(
            b,
            &[
                "SET div_precision_increment = 9",
                "SELECT seventh(1), 1 / 7",
            ],
        );
        story.all(a, &["SELECT seventh(1), 1 / 7", "SELECT seventh(2)"]);
        story.sql(b, "SELECT 1 / 7");
        story.sql(a, "SELECT seventh(3), 1 / 7");
    });
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
