//! The commands that bring a backend into its client's session go out with the client's command,
//! whatever that is; where it fails, the command has not run.

use crate::restored_sessions::{both, restored};
use crate::world::*;
use testkit::client::execution;

fn failed(reply: &[Outcome]) -> &Failure {
    reply.last().expect("a reply").failure()
}

/// Statements of one client before the other has its turn; each first statement finds its backend
/// in the other client's schema.
const MIXED: [&str; 12] = [
    "SELECT v FROM prefixed",
    "INSERT INTO prefixed VALUES ('text; with a semicolon')",
    "SET @mine = 1",
    "SELECT @mine := @mine + 1",
    "SELECT GET_LOCK('front', 5), RELEASE_LOCK('front')",
    "DO RELEASE_ALL_LOCKS()",
    "CREATE TEMPORARY TABLE passing (a INT)|DROP TEMPORARY TABLE passing",
    "LOCK TABLES prefixed READ|UNLOCK TABLES",
    "CALL adds()",
    "EXPLAIN SELECT v FROM prefixed",
    "BEGIN /* now */|COMMIT",
    "DELETE FROM prefixed",
];

/// Ends a connection. One of the pool's own may have ended by itself, as that which reads the
/// catalogue.
fn end_connection(admin: &mut Client, id: &str) {
    let outcomes = admin.query(&format!("KILL {id}")).unwrap();
    if let Some(Outcome::Failed(failure)) = outcomes.last() {
        assert_eq!(failure.code, 1094, "{failure}");
    }
}

/// Two clients whose schemas differ by text, by preparation and by execution share one backend, and
/// nobody waits for its being restored.
#[test]
fn a_mixed_workload_costs_no_round_trip() {
    both("mixed_front", |real, test| {
        let mut admin = real.admin();
        let schemas = [test.to_string(), format!("{test}_b")];
        for schema in &schemas {
            fresh_schema(real, schema);
            admin.must(&format!("CREATE TABLE {schema}.prefixed (v VARCHAR(99))"));
            let adds = "adds() INSERT INTO prefixed VALUES ('added')";
            admin.must(&format!("CREATE PROCEDURE {schema}.{adds}"));
        }
        let extra = "backends_max = 1\ngroups = 1\nstored_code = \"trust\"";
        let pool = fresh_pool(real, extra);
        let mut clients = [0, cap::MULTI_STATEMENTS].map(|capabilities| {
            let account = app().with(capabilities);
            login(&pool.address, &account.schema(""))
        });
        let mut statements = 0;
        // Without a schema there is nothing to restore, and the first has none to go back to.
        for (client, schema) in clients.iter_mut().zip(&schemas) {
            client.must(&format!("USE {schema}"));
            statements += 1;
        }
        let (all, front) = restored(&pool, statements);
        let filler = "x".repeat(200_000);
        let long = format!("INSERT INTO prefixed VALUES ('a')/*{filler}*/");
        for _ in 0..3 {
            for text in MIXED.into_iter().chain([&long[..]]) {
                for client in &mut clients {
                    for text in text.split('|') {
                        client.must(text);
                        statements += 1;
                    }
                }
            }
            let asked = "SELECT v FROM prefixed WHERE v <> ?";
            let ids = clients.each_mut().map(|client| client.prepare(asked).id);
            for _ in 0..3 {
                for (client, id) in clients.iter_mut().zip(ids) {
                    let reply = client.execute(id, &[Some(b"x")], false).unwrap();
                    assert_eq!(reply[0].rows().texts(), [["a"]]);
                }
            }
            for ((client, id), schema) in clients.iter_mut().zip(ids).zip(&schemas) {
                client.run(Command::InitDb, schema.as_bytes()).unwrap();
                client.must(&format!("USE {schema}"));
                let id = id.to_le_bytes();
                client.send(&[(Command::StmtClose, &id)]).unwrap();
                client.must("DELETE FROM prefixed");
            }
            statements += 14;
        }
        let (all_then, front_then) = restored(&pool, statements);
        assert!(all_then >= all + 100, "{all_then} after {all}");
        assert_eq!(all_then - all, front_then - front, "all were in front");
        // A text that is too long to be copied stands behind a restoring that is waited for.
        let long_text = "x".repeat(300_000);
        let longer = format!("INSERT INTO prefixed VALUES ('a')/*{long_text}*/");
        for client in &mut clients {
            client.must(&longer);
            statements += 1;
        }
        let (all, front) = restored(&pool, statements);
        assert_eq!((all - all_then, front - front_then), (2, 0));
    });
}

/// Somebody whose schema another drops, and somebody else on the same backend, who stays.
struct Doomed {
    pool: Pool,
    admin: Client,
    schema: String,
    gone: Client,
    /// Its CONNECTION_ID().
    id: u32,
    stays: Client,
}

impl Doomed {
    fn new(real: &Real, test: &str, capabilities: u32) -> Doomed {
        let extra = "backends_max = 1\ngroups = 1";
        let pool = fresh_pool(real, extra);
        let mut admin = real.admin();
        let schema = format!("{test}_doomed");
        fresh_schema(real, test);
        fresh_schema(real, &schema);
        for schema in [test, &schema] {
            admin.must(&format!("CREATE TABLE {schema}.prefixed (v VARCHAR(9))"));
            let adds = format!("adds() INSERT INTO {test}.prefixed VALUES ('called')");
            admin.must(&format!("CREATE PROCEDURE {schema}.{adds}"));
        }
        let account = app().with(capabilities);
        let mut gone = login(&pool.address, &account.clone().schema(&schema));
        let mut stays = login(&pool.address, &account.schema(test));
        gone.must("SET @kept = 'kept'");
        let id = gone.value("SELECT CONNECTION_ID()").parse().unwrap();
        stays.must("INSERT INTO prefixed VALUES ('own')");
        Doomed {
            pool,
            admin,
            schema,
            gone,
            id,
            stays,
        }
    }

    /// Drops the schema while the backend stands in the other one.
    fn drop_schema(&mut self) {
        self.stays.must("DO 1");
        self.admin.must(&format!("DROP DATABASE {}", self.schema));
    }

    /// Checks that the pool has said that nothing has run, and that it is so.
    fn check(&mut self, said: &Failure) {
        assert!(said.message.contains("1049"), "{said}");
        assert!(said.message.contains("not executed"), "{said}");
        // The one that stays has lost nothing, and nothing was taken on its backend.
        let rows = self.stays.rows("SELECT DISTINCT v FROM prefixed");
        assert_eq!(rows.texts(), [["own"]]);
        assert_eq!(self.gone.value("SELECT @kept"), "kept");
        self.check_pins();
        assert_eq!(self.gone.failure("SELECT * FROM prefixed").code, 1046);
    }

    fn check_pins(&self) {
        let report = self.pool.report_of(self.id).unwrap();
        assert!(report.contains("not pinned"), "{report}");
    }
}

#[test]
fn a_text_whose_schema_was_dropped_takes_nothing() {
    both("takes_nothing", |real, test| {
        let qualified = format!("INSERT INTO {test}.prefixed VALUES ('gone')");
        let long = format!("{qualified}/*{}*/", "x".repeat(200_000));
        let lock = format!("SELECT GET_LOCK('{test}', 0)");
        let several = (cap::MULTI_STATEMENTS, &qualified[..]);
        let texts = [
            &qualified,
            &long,
            &format!("INSERT INTO {test}.prefixed VALUES ('a;b')"),
            &lock,
            &format!("CREATE TEMPORARY TABLE {test}.passing (a INT)"),
            "SET @kept = 'changed'",
            "SELECT @kept := 'changed'",
            "SELECT 'changed' INTO @kept",
            "CALL adds()",
            &format!("CALL {test}.adds()"),
            "LOCK TABLES prefixed WRITE",
            "PREPARE s FROM 'SELECT 1'",
            &format!("EXECUTE IMMEDIATE 'INSERT INTO {test}.prefixed VALUES (1)'"),
            HOLD,
            "XA START 'x'",
        ];
        let texts = texts.map(|text| (0, text));
        for (capabilities, text) in texts.into_iter().chain([several]) {
            if real.flavour() == Flavour::MySql && text.starts_with("EXECUTE IMMEDIATE") {
                continue;
            }
            let mut doomed = Doomed::new(real, test, capabilities);
            doomed.drop_schema();
            let said = doomed.gone.failure(text);
            doomed.check(&said);
            let free = format!("SELECT IS_FREE_LOCK('{test}')");
            assert_eq!(doomed.admin.value(&free), "1", "{text}");
            // It can still take the same in a schema that exists.
            doomed.gone.must(&format!("USE {test}"));
            assert_eq!(doomed.gone.value(&lock), "1", "{text}");
        }
    });
}

#[test]
fn a_preparation_whose_schema_was_dropped_prepares_nothing() {
    both("prepares_nothing", |real, test| {
        let mut doomed = Doomed::new(real, test, 0);
        doomed.drop_schema();
        let reply = (doomed.gone).run(Command::StmtPrepare, b"SELECT v FROM prefixed");
        let said = failed(&reply.unwrap()).clone();
        doomed.check(&said);
        doomed.gone.must(&format!("USE {test}"));
        let id = doomed.gone.prepare("SELECT v FROM prefixed").id;
        let reply = doomed.gone.execute(id, &[], false).unwrap();
        assert_eq!(reply[0].rows().texts(), [["own"]]);
    });
}

/// An execution runs in the schema in which it was prepared, so it fails without that, as it does
/// on a server.
#[test]
fn an_execution_whose_schema_was_dropped_does_not_run() {
    both("execution_dropped", |real, test| {
        for prepared_there in [true, false] {
            let mut doomed = Doomed::new(real, test, 0);
            let texts = "INSERT INTO prefixed VALUES ('gone');UPDATE prefixed SET v = 'gone';\
                         INSERT INTO prefixed SELECT DATABASE()";
            let ids = texts.split(';').map(|text| doomed.gone.prepare(text).id);
            let ids: Vec<u32> = ids.collect();
            if !prepared_there {
                // Another backend, where nothing is prepared. Those of other tests stay.
                let list = doomed.admin.rows("SHOW PROCESSLIST");
                let of_pool = list.texts();
                let mut of_pool = of_pool.iter().filter(|row| row[3] == doomed.schema);
                let backend = of_pool.next().expect("its backend stands in the schema");
                end_connection(&mut doomed.admin, &backend[0]);
            }
            doomed.drop_schema();
            for id in ids {
                let reply = doomed.gone.execute(id, &[], false).unwrap();
                failed(&reply);
            }
            let rows = doomed.stays.rows("SELECT DISTINCT v FROM prefixed");
            assert_eq!(rows.texts(), [["own"]]);
            assert_eq!(doomed.stays.value("SELECT DATABASE()"), test);
            doomed.check_pins();
            doomed.gone.must(&format!("USE {test}"));
            assert_eq!(doomed.gone.value("SELECT COUNT(*) FROM prefixed"), "1");
        }
    });
}

/// A statement was prepared in a schema that stays; the client's default one is dropped. A server
/// runs the statement, and its client is told of no schema but its own.
#[test]
fn an_execution_runs_in_its_own_schema_when_the_default_one_is_gone() {
    both("own_schema", |real, test| {
        let mut doomed = Doomed::new(real, test, 0);
        let schema = doomed.schema.clone();
        let account = app().schema(test).with(cap::SESSION_TRACK);
        let mut client = login(&doomed.pool.address, &account);
        let id = client.prepare("INSERT INTO prefixed VALUES ('own')").id;
        client.must(&format!("USE {schema}"));
        doomed.stays.must("USE shop");
        doomed.drop_schema();
        for round in 1..3 {
            let mut reply = client.execute(id, &[], false).unwrap();
            let Outcome::Done(done) = &mut reply[0] else {
                panic!("{reply:?}");
            };
            assert_eq!(done.affected_rows, 1);
            assert!(!format!("{done:?}").contains("shop"), "{done:?}");
            let count = format!("SELECT COUNT(*) FROM {test}.prefixed");
            assert_eq!(doomed.admin.value(&count), (round + 1).to_string());
            doomed.stays.must("DO 1");
        }
        // By text nothing runs, least of all where the backend stands.
        let said = client.failure("CREATE TABLE astray (a INT)");
        assert!(said.message.contains("not executed"), "{said}");
        assert_eq!(doomed.stays.value("SELECT DATABASE()"), "shop");
        let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'astray'";
        assert_eq!(doomed.admin.value(tables), "0");
    });
}

/// Two clients of an account that loses rights, on one backend: one has used them, one has not.
struct Revoked {
    _pool: Pool,
    admin: Client,
    account: String,
    closed: String,
    loser: Client,
    stays: Client,
}

impl Revoked {
    fn new(real: &Real, test: &str, right: &str) -> Revoked {
        let (account, closed) = (format!("{test}_u"), format!("{test}_closed"));
        let mut admin = real.admin();
        for schema in [test, &closed] {
            fresh_schema(real, schema);
            admin.must(&format!("CREATE TABLE {schema}.prefixed (v VARCHAR(9))"));
        }
        real.script(&format!(
            "DROP USER IF EXISTS {account}@'%'; CREATE USER {account}@'%' IDENTIFIED BY 'p'; \
             GRANT ALL ON {test}.* TO {account}@'%'; GRANT ALL ON {closed}.* TO {account}@'%'; \
             GRANT {right} ON *.* TO {account}@'%'"
        ));
        let mut config = config(&real.address(), "backends_max = 1\ngroups = 1");
        config += &format!("[[user]]\nname = \"{account}\"\npassword = \"p\"\n");
        let pool = pool_from(real, &config);
        let join = |schema: &str| login(&pool.address, &Account::new(&account, "p").schema(schema));
        let (loser, stays) = (join(&closed), join(test));
        Revoked {
            admin,
            loser,
            stays,
            _pool: pool,
            account,
            closed,
        }
    }

    fn is_refused(&mut self, command: Command, arguments: &[u8]) {
        self.stays.must("DO 1");
        let reply = self.loser.run(command, arguments).unwrap();
        let said = failed(&reply);
        assert!(said.message.contains("not executed"), "{said}");
    }

    fn check(&mut self, test: &str) {
        for schema in [test, &self.closed] {
            let lost = format!("SELECT COUNT(*) FROM {schema}.prefixed WHERE v = 'lost'");
            assert_eq!(self.admin.value(&lost), "0");
        }
    }
}

#[test]
fn nothing_runs_in_a_schema_that_was_closed_to_its_account() {
    both("closed_schema", |real, test| {
        let insert = b"INSERT INTO prefixed VALUES ('lost')";
        for command in [Command::Query, Command::StmtPrepare] {
            let mut revoked = Revoked::new(real, test, "PROCESS");
            let reply = revoked.loser.run(Command::StmtPrepare, insert).unwrap();
            let Outcome::Prepared(prepared) = &reply[0] else {
                panic!("{reply:?}");
            };
            let (closed, account) = (revoked.closed.clone(), revoked.account.clone());
            let sql = format!("REVOKE ALL ON {closed}.* FROM {account}@'%'");
            revoked.admin.must(&sql);
            revoked.stays.must("DO 1");
            // The server itself says so of an execution.
            let reply = revoked.loser.execute(prepared.id, &[], false).unwrap();
            failed(&reply);
            revoked.is_refused(command, insert);
            revoked.check(test);
        }
    });
}

#[test]
fn nothing_runs_without_a_variable_that_its_account_may_no_longer_set() {
    both("closed_variable", |real, test| {
        let right = match real.flavour() {
            Flavour::MariaDb => "BINLOG ADMIN",
            Flavour::MySql => "SESSION_VARIABLES_ADMIN",
        };
        let mut revoked = Revoked::new(real, test, right);
        let variable = "SET SESSION binlog_row_image = 'minimal'";
        revoked.loser.must(variable);
        let insert = format!("INSERT INTO {test}.prefixed VALUES ('lost')");
        let id = revoked.loser.prepare(&insert).id;
        let account = revoked.account.clone();
        let sql = format!("REVOKE {right} ON *.* FROM {account}@'%'");
        revoked.admin.must(&sql);
        // A connection keeps the rights that it was opened with.
        let list = revoked.admin.rows("SHOW PROCESSLIST");
        for row in list.texts().iter().filter(|row| row[1] == account) {
            end_connection(&mut revoked.admin, &row[0]);
        }
        let execution = execution(id, &[], false);
        revoked.is_refused(Command::StmtExecute, &execution);
        revoked.is_refused(Command::StmtPrepare, insert.as_bytes());
        revoked.is_refused(Command::Query, insert.as_bytes());
        revoked.is_refused(Command::Query, b"SET @mine = 1");
        revoked.check(test);
    });
}
