//! Calls of stored code: what is known to leave nothing that nobody follows pins nobody, and what
//! is not known does.
//!
//! Harmless calls are told in `tests/stories/calls.story`, harmful ones in `stored_code.story`;
//! here code is there before the pool, or made past it.

use crate::compare::{Story, same_on};
use crate::triggers_and_views::{join, servers};
use crate::world::*;

fn make(real: &Real, schema: &str, makes: &[&str]) {
    fresh_schema(real, schema);
    let mut admin = real.admin();
    admin.must(&format!("USE {schema}"));
    for sql in makes {
        admin.must(sql);
    }
}

const TWO: &str = "groups = 1\nbackends_max = 2";

/// Two hundred clients that live by procedures share eight backends.
#[test]
fn many_clients_that_call_share_few_backends() {
    for real in servers() {
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
        let pool = fresh_pool(real, "groups = 2\nbackends_max = 8");
        let mut clients: Vec<Client> = (0..200).map(|_| join(&pool, schema)).collect();
        for (n, client) in clients.iter_mut().enumerate() {
            client.must(&format!("CALL p({n}, @count)"));
        }
        for client in &mut clients {
            assert_eq!(client.value("SELECT @count"), "1");
        }
        let census = pool.wait_for_census(" statements: 400,").unwrap();
        assert!(census.contains("clients: 200, pinned: 0,"), "{census}");
        says(&census, "code_known: 200, code_unread: 0");
        assert!(census.contains("pins: {}"), "{census}");
    }
}

/// Replaces a procedure past the pool, and calls it until the pool knows.
fn until_pinned(pool: &Pool, schema: &str) {
    wait_while(|| {
        let mut client = join(pool, schema);
        client.must("CALL p()");
        let id = client.value("SELECT CONNECTION_ID()").parse().unwrap();
        pool.report_of(id).unwrap().contains("not pinned")
    });
}

/// The server itself says that there is new code, long before the next regular look.
#[test]
fn code_that_is_made_past_the_pool_is_noticed() {
    for real in servers() {
        let schema = "calls_past";
        make(real, schema, &["CREATE PROCEDURE p() SELECT 1"]);
        let extra = format!("{TWO}\nstored_code_refresh_s = 86400");
        let pool = fresh_pool(real, &extra);
        let mut one = join(&pool, schema);
        one.must("CALL p()");
        let mut admin = real.admin();
        admin.must(&format!("USE {schema}"));
        admin.script("DROP PROCEDURE p; CREATE PROCEDURE p() DO GET_LOCK('calls_past', 0)");
        until_pinned(&pool, schema);
        drop(pool);
        make(real, schema, &["CREATE PROCEDURE p() SELECT 1"]);
        let pool = fresh_pool(real, &extra);
        // Made through the pool it counts at once.
        let mut makes = join(&pool, schema);
        makes.script("DROP PROCEDURE p; CREATE PROCEDURE p() DO GET_LOCK('calls_past', 0)");
        let mut one = join(&pool, schema);
        one.must("CALL p()");
        let asked = "SELECT IS_USED_LOCK('calls_past') <=> CONNECTION_ID()";
        assert_eq!(makes.value(asked), "0");
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
    for real in servers() {
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
        let pool = fresh_pool(real, TWO);
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
    let real = or_return!(own(Real::start_mysql(&[])));
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
