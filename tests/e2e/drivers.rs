//! Real drivers doing real work: `tests/drivers`, each told directly and through the pool.
//!
//! A program there connects, pools, commits, rolls back, meets a deadlock, prepares, moves a value
//! of 6 MiB, cancels, loses a connection, and lets sixteen workers run in one crowd, each with
//! session state of its own; it prints facts. Both ways must print the same, and the pool has four
//! backends for all of it. Then it does all of that once more under TLS, in front of a pool that
//! takes nothing else. `scripts/drivers.sh` fetches and builds; what it could not have is
//! skipped here by name, with its reason. `ONRAMP_DRIVERS_MYSQL=1` does it all on MySQL too.

use crate::world::*;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// Sixteen workers and a few more connections share these.
const BACKENDS: usize = 4;

/// Runs a program; gives its output.
fn run(program: &Path, address: &Address, schema: &str, is_tls: bool) -> String {
    let how = if is_tls { &["DRIVER_TLS=1"][..] } else { &[] };
    let line = [program.to_str().unwrap(), &port_of(address), schema];
    let ran = testkit::onramp::run(Path::new("env"), &[how, &line].concat(), LIMIT);
    let is_done = ran.status.success() && ran.stdout.ends_with("done");
    assert!(is_done, "{}: {ran:?}", program.display());
    ran.stdout
}

/// One driver on both ways to one server.
fn works_on(real: &Real, program: &Path, schema: &str) {
    fresh_schema(real, schema);
    let expected = run(program, &real.address(), schema, false);
    assert!(expected.contains("crowd: 0 16 320\n"), "{expected}");
    fresh_schema(real, schema);
    let way = through(real, BACKENDS);
    let found = run(program, &way, schema, false);
    assert_eq!(found, expected, "through the pool and directly");
    drop(way);
    fresh_schema(real, schema);
    let secured = tls(real, "required");
    let extra = format!("backends_max = {BACKENDS}\ngroups = 1\n{secured}");
    let pool = fresh_pool(real, &extra);
    let found = run(program, &pool.address, schema, true);
    assert_eq!(found, expected, "through the pool under TLS and directly");
}

fn works(driver: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/drivers");
    let program = folder.join(driver).join("run");
    if !program.is_file() {
        let why = std::fs::read_to_string(folder.join(driver).join("missing"));
        let why = why.unwrap_or_else(|_| "not fetched; scripts/drivers.sh does".into());
        return skip(why.trim());
    }
    let Some(real) = pooled(server) else { return };
    let schema = format!("driver_{}", driver.replace('-', "_"));
    works_on(real, &program, &schema);
    if std::env::var_os("ONRAMP_DRIVERS_MYSQL").is_none() {
        return;
    }
    let mysql = or_return!(pooled(own_mysql));
    // The server knows the password's hash from then on, and no driver needs a key to say it.
    drop(login(&mysql.address(), &app()));
    mysql.execute(&["INSTALL COMPONENT 'file://component_query_attributes'"]);
    works_on(&mysql, &program, &schema);
}

/// Makes a test of each driver's program.
macro_rules! drivers {
    ($($name:ident: $driver:literal;)*) => {
        $(#[test]
        fn $name() {
            works($driver);
        })*
    };
}

drivers! {
    pymysql_does_its_work: "pymysql";
    sqlalchemy_does_its_work: "sqlalchemy";
    mysql_connector_python_does_its_work: "mysql-connector-python";
    go_sql_driver_does_its_work: "go";
    mysql2_for_node_does_its_work: "mysql2";
    mariadb_connector_for_node_does_its_work: "mariadb-node";
    mysql_connector_j_does_its_work: "mysql-connector-j";
    mariadb_connector_j_does_its_work: "mariadb-connector-j";
    sqlx_does_its_work: "sqlx";
}

/// Programs that say what they hear of a connection that ends: their folders, and who they are.
const ENDS: [(&str, &str); 6] = [
    ("pymysql", "PyMySQL"),
    ("mysql-connector-python", "Connector/Python"),
    ("go", "database/sql of Go"),
    ("mysql2", "mysql2 of Node"),
    ("mysql-connector-j", "Connector/J"),
    ("mariadb-connector-j", "MariaDB Connector/J"),
];
/// Page with what they hear.
const ENDS_PAGE: &str = "docs/pool/ends.md";

/// Cause of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Time,
    Kill,
    KillAtWork,
}

/// An end that the pool makes as the server of its clients does.
#[derive(Clone, Copy)]
struct End {
    name: &'static str,
    /// Done in the session before.
    before: &'static str,
    cause: Cause,
    is_tls: bool,
}

impl End {
    const fn new(name: &'static str, before: &'static str, cause: Cause) -> End {
        End {
            name,
            before,
            cause,
            is_tls: false,
        }
    }

    const fn over_tls(self, name: &'static str) -> End {
        End {
            name,
            is_tls: true,
            ..self
        }
    }
}

const IDLE: End = End::new("`wait_timeout`", "SET wait_timeout = 1", Cause::Time);
const IDLE_TLS: End = IDLE.over_tls("`wait_timeout`, over TLS");
const IDLE_OPEN: End = End::new(
    "`wait_timeout`, in a transaction",
    "BEGIN;SELECT 1;SET wait_timeout = 1",
    Cause::Time,
);
const IDLE_TRANSACTION: End = End::new(
    "`idle_transaction_timeout`",
    "BEGIN;SELECT 1;SET idle_transaction_timeout = 1",
    Cause::Time,
);
const KILLED: End = End::new("KILL of an idle client", "", Cause::Kill);
const KILLED_TLS: End = KILLED.over_tls("KILL of an idle client, over TLS");
const KILLED_AT_WORK: End = End::new("KILL while a statement runs", "", Cause::KillAtWork);

/// Ends by the pool's own limits: their names, settings, what is done in the session before, and
/// true where a statement runs.
const OWN_ENDS: [(&str, &str, &str, bool); 4] = [
    ("`statement_ms_max`", "statement_ms_max = 3000", "", true),
    (
        "`transaction_ms_max`",
        "transaction_ms_max = 5000",
        OPEN,
        false,
    ),
    ("`kept_idle_s_max`", "kept_idle_s_max = 5", OPEN, false),
    ("`idle_s_max`", "idle_s_max = 6", "", false),
];
/// Statements behind which a transaction is open.
const OPEN: &str = "BEGIN;SELECT 1";

/// True while a process has a connection to this port that neither side has ended.
/// (Documentation/networking/proc_net_tcp.rst of Linux: the other end is the third column, the
/// state the fourth, the inode the tenth.)
fn is_connected(pid: u32, port: u16) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let open: Vec<String> = (open.into_iter().flatten().flatten())
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .map(|link| link.to_string_lossy().into_owned())
        .collect();
    let port = format!(":{port:04X}");
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
        let table = std::fs::read_to_string(table).unwrap_or_default();
        table.lines().any(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            columns[2].ends_with(&port)
                && columns[3] == "01"
                && open.contains(&format!("socket:[{}]", columns[9]))
        })
    })
}

/// Starts of a program until it stands with its connection.
const STARTS_MAX: usize = 5;

/// A driver's program whose connection is to end.
struct Hearer {
    driver: &'static str,
    port: u16,
    child: Ended,
    input: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
    /// Its CONNECTION_ID().
    id: String,
}

impl Hearer {
    /// Starts one whose connection stands when what it does before is done. On a machine with much
    /// to do that may take longer than a limit that is to end it later: then it starts anew.
    fn start(
        driver: &'static str,
        to: (&Address, &str, bool),
        before: &str,
        statement: &str,
    ) -> Hearer {
        let mut tries = std::iter::repeat_with(|| Hearer::try_start(driver, to, before, statement));
        let started = tries.by_ref().take(STARTS_MAX).flatten().next();
        started.unwrap_or_else(|| panic!("{driver} does not connect to {}", to.0))
    }

    fn try_start(
        driver: &'static str,
        (address, schema, is_tls): (&Address, &str, bool),
        before: &str,
        statement: &str,
    ) -> Option<Hearer> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/drivers");
        let mut command = Command::new(folder.join(driver).join("ends"));
        if is_tls {
            command.env("DRIVER_TLS", "1");
        }
        let mut child = command
            .args([&port_of(address), schema, before, statement])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut said = BufReader::new(output).lines();
        let child = Ended(child);
        let id = said.next()?.ok()?;
        Some(Hearer {
            driver,
            port: tcp(address).port(),
            child,
            input,
            said,
            id,
        })
    }

    /// Lets it send its statement.
    fn go_on(&mut self) {
        self.input.write_all(b"\n").unwrap();
    }

    /// Waits until its connection has ended.
    fn await_end(&self) {
        wait_while(|| is_connected(self.child.0.id(), self.port));
    }

    /// The driver's word about its statement.
    fn heard(mut self) -> String {
        let heard = self.said.next().map_or_else(String::new, Result::unwrap);
        assert!(!heard.is_empty(), "{}", self.driver);
        heard
    }
}

/// A statement that runs until something ends it, and waits until that many of them run.
const RUNS: &str = "SELECT SLEEP(600)";

fn await_running(real: &Real, sql: &str, count: usize) {
    let ask =
        format!("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE \"{sql}%\"");
    let mut admin = real.admin();
    wait_while(|| admin.value(&ask) != count.to_string());
}

/// A driver's word when this has ended its connection.
fn hears(driver: &'static str, (real, address): (&Real, &Address), end: End) -> String {
    let at_work = end.cause == Cause::KillAtWork;
    let runs = format!("{RUNS}, '{driver}'");
    let statement = if at_work { &runs } else { "SELECT 1" };
    let to = (address, SCHEMA, end.is_tls);
    let mut hearer = Hearer::start(driver, to, end.before, statement);
    if at_work {
        hearer.go_on();
        await_running(real, &runs, 1);
    }
    if end.cause != Cause::Time {
        login(address, &app()).must(&format!("KILL {}", hearer.id));
    }
    if !at_work {
        hearer.await_end();
        hearer.go_on();
    }
    hearer.heard()
}

const SCHEMA: &str = "driver_ends";

/// A row of the page: the server, an end, the way, and each driver's word.
type Row = ([&'static str; 3], Vec<String>);

/// Rows as text: those that differ in the server alone, or in the end alone, are one.
fn table(mut rows: Vec<Row>, columns: &[usize]) -> String {
    let mut merged: Vec<([String; 3], Vec<String>)> = Vec::new();
    while !rows.is_empty() {
        let ([server, end, way], heard) = rows.remove(0);
        let other = if server == "MariaDB" {
            "MySQL"
        } else {
            "MariaDB"
        };
        let twin = ([other, end, way], heard);
        let twin_at = rows.iter().position(|row| *row == twin);
        twin_at.map(|at| rows.remove(at));
        let server = if twin_at.is_some() { "both" } else { server };
        let alike = |([of, _, by], said): &&mut ([String; 3], Vec<String>)| {
            (of.as_str(), by.as_str(), said) == (server, way, &twin.1)
        };
        match merged.iter_mut().find(alike) {
            Some(([_, ends, _], _)) => *ends += &format!("; {end}"),
            None => merged.push(([server, end, way].map(str::to_owned), twin.1)),
        }
    }
    let text = |(front, heard): ([String; 3], Vec<String>)| {
        let front: Vec<&str> = columns.iter().map(|at| front[*at].as_str()).collect();
        format!("| {} | {} |\n", front.join(" | "), heard.join(" | "))
    };
    merged.into_iter().map(text).collect()
}

/// Times that both ways are heard at most: a driver that is told to go on as it hears of the end
/// may say either of two words (mysql2, on a loaded machine).
const HEARD_MAX: usize = 3;

/// Rows for what the pool ends as the server does, after a comparison of both ways.
fn ends_at(real: &Real, server: &'static str, ends: &[End]) -> Vec<Row> {
    let way = through(real, 2 * ENDS.len());
    let columns = std::thread::scope(|scope| {
        let column = |(driver, _): (&'static str, &str)| {
            let way = &*way;
            scope.spawn(move || {
                let heard = |end: &End| {
                    let own = real.address();
                    let both = || [way, &own].map(|at| hears(driver, (real, at), *end));
                    let alike = |[pooled, directly]: &[String; 2]| pooled == directly;
                    let mut heard = (0..HEARD_MAX).map(|_| both());
                    let [pooled, directly] = heard.find(alike).unwrap_or_else(both);
                    assert_eq!(pooled, directly, "{driver} at {server}: {}", end.name);
                    directly
                };
                ends.iter().map(heard).collect::<Vec<String>>()
            })
        };
        let columns: Vec<_> = ENDS.into_iter().map(column).collect();
        let columns = columns.into_iter().map(|column| column.join().unwrap());
        columns.collect::<Vec<_>>()
    });
    let line = |(number, end): (usize, &End)| {
        let heard: Vec<String> = columns
            .iter()
            .map(|column| column[number].clone())
            .collect();
        ([server, end.name, ""], heard)
    };
    ends.iter().enumerate().map(line).collect()
}

/// A program of each driver, at once.
fn all_start(address: &Address, before: &str, statement: &str) -> Vec<Hearer> {
    std::thread::scope(|scope| {
        let start = |(driver, _): (&'static str, &str)| {
            let to = (address, SCHEMA, false);
            scope.spawn(move || Hearer::start(driver, to, before, statement))
        };
        let all: Vec<_> = ENDS.into_iter().map(start).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

fn all_hear(hearers: Vec<Hearer>) -> Vec<String> {
    hearers.into_iter().map(Hearer::heard).collect()
}

/// Restarts a server. MySQL has forgotten the password then, and some drivers send none in clear:
/// somebody who can logs in first.
fn restart(real: &mut Real) {
    real.restart().unwrap();
    drop(login(&real.address(), &app()));
}

/// Rows for a restart of the server, and for what the pool ends by itself.
fn own_ends_at(real: &mut Real, server: &'static str) -> Vec<Row> {
    let pool_with = |real: &Real, settings: &str| {
        let settings = format!("backends_max = 16\ngroups = 1\n{settings}");
        fresh_pool(real, &settings)
    };
    let mut rows = Vec::new();
    let name = "restart of the server, idle client";
    let pool = pool_with(real, "");
    let mut directly = all_start(&real.address(), "", "SELECT 1");
    let mut pooled = all_start(&pool.address, "", "SELECT 1");
    restart(real);
    directly.iter().for_each(Hearer::await_end);
    for hearer in directly.iter_mut().chain(&mut pooled) {
        hearer.go_on();
    }
    rows.push(([server, name, "directly"], all_hear(directly)));
    rows.push(([server, name, "pool"], all_hear(pooled)));
    let name = "death of the server while a statement runs";
    let mut directly = all_start(&real.address(), "", RUNS);
    let mut pooled = all_start(&pool.address, "", RUNS);
    for hearer in directly.iter_mut().chain(&mut pooled) {
        hearer.go_on();
    }
    await_running(real, RUNS, 2 * ENDS.len());
    real.kill9();
    restart(real);
    rows.push(([server, name, "directly"], all_hear(directly)));
    rows.push(([server, name, "pool"], all_hear(pooled)));
    let mut drained = all_start(&pool.address, "", "SELECT 1");
    pool.terminate();
    drained.iter().for_each(Hearer::await_end);
    drained.iter_mut().for_each(Hearer::go_on);
    rows.push((
        [server, "SIGTERM to the pool, idle client", "pool"],
        all_hear(drained),
    ));
    pool.wait();
    let pool = pool_with(real, "drain_ms_max = 1000");
    let mut drained = all_start(&pool.address, "BEGIN;SELECT 1", RUNS);
    drained.iter_mut().for_each(Hearer::go_on);
    await_running(real, RUNS, ENDS.len());
    pool.terminate();
    rows.push((
        [server, "`drain_ms_max` while a statement runs", "pool"],
        all_hear(drained),
    ));
    pool.wait();
    for (name, settings, before, runs) in OWN_ENDS {
        let pool = pool_with(real, settings);
        let statement = if runs { RUNS } else { "SELECT 1" };
        let mut hearers = all_start(&pool.address, before, statement);
        if !runs {
            hearers.iter().for_each(Hearer::await_end);
        }
        hearers.iter_mut().for_each(Hearer::go_on);
        rows.push(([server, name, "pool"], all_hear(hearers)));
    }
    rows
}

/// Servers of the test's own: it restarts them, and they speak TLS.
fn servers_that_end() -> Option<(Real, Real)> {
    let (cert, key) = testkit::tls::files(pooled(server)?.folder());
    let files = [("cert", cert), ("key", key)];
    let files = files.map(|(what, path)| format!("--ssl-{what}={}", path.display()));
    let maria = own(Real::start(&files.each_ref().map(String::as_str)))?;
    let mysql = own(Real::start_mysql(&[]))?;
    for real in [&maria, &mysql] {
        fresh_schema(real, SCHEMA);
        drop(login(&real.address(), &app()));
    }
    Some((maria, mysql))
}

#[test]
fn drivers_hear_of_an_end_what_they_hear_directly() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/drivers");
    let missing = (ENDS.iter()).find(|(driver, _)| !folder.join(driver).join("ends").is_file());
    if let Some((driver, _)) = missing {
        return skip(&format!("{driver} is not fetched; scripts/drivers.sh does"));
    }
    let (mut maria, mut mysql) = or_return!(servers_that_end());
    let idle = [IDLE, IDLE_TLS, IDLE_OPEN];
    let of_mysql = [idle, [KILLED, KILLED_TLS, KILLED_AT_WORK]].concat();
    let of_maria = [&idle[..], &[IDLE_TRANSACTION], &of_mysql[3..]].concat();
    let all_at = |real: &mut Real, server, ends: &[End]| {
        let rows = ends_at(real, server, ends);
        (rows, own_ends_at(real, server))
    };
    let [of_maria, of_mysql] = std::thread::scope(|scope| {
        let both = [
            scope.spawn(|| all_at(&mut maria, "MariaDB", &of_maria)),
            scope.spawn(|| all_at(&mut mysql, "MySQL", &of_mysql)),
        ];
        both.map(|one| one.join().unwrap())
    });
    let rows = table([of_maria.0, of_mysql.0].concat(), &[0, 1]);
    let own = table([of_maria.1, of_mysql.1].concat(), &[0, 1, 2]);
    let names: Vec<&str> = ENDS.iter().map(|(_, name)| *name).collect();
    let names = names.join(" | ");
    let rule = "---|".repeat(ENDS.len());
    let made = format!(
        "# What drivers say when a connection ends\n\n\
         <!-- Made by tests/e2e/drivers.rs; do not edit.\n     \
         ONRAMP_WRITE=1 cargo test --test e2e drivers_hear -->\n\n\
         The tables have what drivers say of the next statement, with MariaDB 10.11 and MySQL 9.7: \
         its\nnumber, its SQL state and number, or its own word.\n\n\
         ## As the server ends it\n\n\
         The pool ends a connection as the server of its clients does. MariaDB resets one that is \
         over\na timeout, which drivers report as a server that has gone away (2006), or open anew \
         by themselves.\nKILL ends one in order; MySQL sends error 4031 first where a client was \
         idle for too long.\nEach driver hears the same directly and through the pool.\n\n\
         | server | what ends it | {names} |\n|---|---|{rule}\n{rows}\n\
         ## Restarts, and ends of the pool's own\n\n\
         Clients of the pool that are idle outlive the server.\n\n\
         | server | what ends it | way | {names} |\n|---|---|---|{rule}\n{own}",
    );
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(ENDS_PAGE);
    if std::env::var_os("ONRAMP_WRITE").is_some() {
        return std::fs::write(page, made).unwrap();
    }
    assert_eq!(made, std::fs::read_to_string(page).unwrap());
}
