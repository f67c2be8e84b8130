//! User variables that a client has never set, on a backend that has had them of another: what is
//! undone for that, and what it must not do to cascades.

use crate::world::*;

/// Nothing is undone that need not be: a value that is only set, a variable that its client has,
/// and statements that name none.
#[test]
fn only_a_variable_that_is_not_to_be_there_lets_a_backend_begin_anew() {
    let (_, pool) = or_return!(shared_pool("backends_max = 1\ngroups = 1"));
    let account = app();
    let [mut a, mut b] = [(); 2].map(|()| login(&pool.address, &account));
    let mut statements = 0;
    let mut resets = |client: &mut Client, texts: &[&str]| {
        for sql in texts {
            client.must(sql);
            statements += 1;
        }
        let said = pool.wait_for_census(&format!("statements: {statements},"));
        number_of(&said.unwrap(), "resets")
    };
    let ranks = "SELECT @r := @r + 1 FROM (SELECT @r := 0) AS x";
    assert_eq!(resets(&mut a, &["SET @a = 1, @n = NULL", ranks]), 0);
    let free = [
        "SELECT 1",
        "SET @a = 'x', @b := -5",
        "SELECT @a, @b",
        "DO 1",
    ];
    assert_eq!(resets(&mut b, &free), 0);
    assert_eq!(resets(&mut a, &["SELECT @a, @n", ranks]), 0);
    assert_eq!(resets(&mut b, &[ranks]), 1);
    for _ in 0..3 {
        assert_eq!(resets(&mut a, &[ranks]), 1);
        assert_eq!(resets(&mut b, &[ranks, "SELECT @r, @a"]), 1);
    }
    assert_eq!(resets(&mut b, &["SELECT @n"]), 2);
    // What may fail has to find none either, once for each client.
    assert_eq!(resets(&mut a, &["SET @a = 'x', @n = 2"]), 2);
    let may_fail = "SET @a = 1 + 1, @n = @@sql_mode";
    assert_eq!(resets(&mut b, &[may_fail, may_fail]), 3);
    assert_eq!(resets(&mut a, &["SET @c = 5"]), 3);
    assert_eq!(resets(&mut b, &["SET @c = (SELECT 1)"]), 4);
    assert_eq!(resets(&mut a, &["SELECT @a, @n, @c"]), 4);
    assert_eq!(resets(&mut b, &["SET @c = (SELECT 2)"]), 4);
}

/// Tables with cascades, and a trigger on the child.
const CASCADES: [&str; 8] = [
    "CREATE DATABASE cascades",
    "USE cascades",
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    "CREATE TABLE child (p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    "CREATE TABLE told (p INT)",
    "CREATE TRIGGER tell AFTER DELETE ON child FOR EACH ROW INSERT INTO told VALUES (OLD.p)",
    "INSERT INTO parent VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)",
    "INSERT INTO child VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)",
];

/// Deletes one parent as this client; returns how many tables the binary log names for it.
fn tables_logged(real: &Real, client: &mut Client, id: usize) -> usize {
    let mut admin = real.admin();
    let status = match real.flavour() {
        Flavour::MySql => "SHOW BINARY LOG STATUS",
        Flavour::MariaDb => "SHOW BINLOG STATUS",
    };
    let status = admin.rows(status).texts();
    let (file, from) = (&status[0][0], &status[0][1]);
    client.must(&format!("DELETE FROM cascades.parent WHERE id = {id}"));
    let events = admin.rows(&format!("SHOW BINLOG EVENTS IN '{file}' FROM {from}"));
    let tables = events.texts().into_iter();
    tables.filter(|event| event[2] == "Table_map").count()
}

/// A session that MySQL 9.7 has reset leaves cascades to InnoDB, which writes no row of a child to
/// the binary log and fires no trigger. It is the client's own matter to reset its session: then it
/// gets what a connection of its own would give, and nobody else does.
#[test]
fn cascades_are_logged_and_fire_triggers_whoever_had_the_backend_before() {
    let real = or_return!(pooled(mysql_with_gtids));
    real.execute(&CASCADES);
    let account = app();
    let fresh = tables_logged(&real, &mut login(&real.address(), &account), 1);
    let mut own = login(&real.address(), &account);
    own.must("USE cascades");
    own.run(Command::ResetConnection, b"").unwrap();
    let reset = tables_logged(&real, &mut own, 2);
    let pool = fresh_pool(&real, "backends_max = 1\ngroups = 1");
    let mut clients = [(); 3].map(|()| login(&pool.address, &account));
    let [a, b, c] = &mut clients;
    b.must("SET @had = 1");
    a.must("SELECT @had");
    assert_eq!(tables_logged(&real, a, 3), fresh);
    c.must("USE cascades");
    c.run(Command::ResetConnection, b"").unwrap();
    assert_eq!(tables_logged(&real, c, 4), reset);
    assert_eq!(tables_logged(&real, a, 5), fresh);
    assert_eq!(tables_logged(&real, c, 6), reset);
    b.must("USE cascades");
    assert_eq!(tables_logged(&real, b, 7), fresh);
    b.script("SET enable_cascade_triggers = ON; DELETE FROM parent WHERE id = 8");
    assert_eq!(b.value("SELECT p FROM told"), "8");
}

/// Variables of the moment, or of the statement before; those of GTIDs beside them.
const OF_THE_MOMENT: &str = "error_count identity insert_id last_insert_id pseudo_thread_id \
    rand_seed1 rand_seed2 statement_id timestamp warning_count";

/// Everything that can be told of a session: its variables, what it reports of statements that
/// change it, and how many tables the binary log names for a delete with a cascade.
fn all_of_session(
    real: &Real,
    client: &mut Client,
    id: usize,
) -> (Vec<Vec<String>>, String, usize) {
    client.must("SELECT @had");
    let table = match real.flavour() {
        Flavour::MySql => "performance_schema.session_variables",
        Flavour::MariaDb => "information_schema.SESSION_VARIABLES",
    };
    let all = format!("SELECT LOWER(VARIABLE_NAME) AS n, VARIABLE_VALUE FROM {table} ORDER BY n");
    let mut variables = client.rows(&all).texts();
    let skipped: Vec<&str> = OF_THE_MOMENT.split_whitespace().collect();
    variables.retain(|row| !row[0].contains("gtid") && !skipped.contains(&row[0].as_str()));
    assert!(variables.len() > 300, "{variables:?}");
    let changes = "USE cascades;SET NAMES latin1;SET time_zone = '+01:00', sql_mode = '';\
        SET autocommit = 0;SELECT COUNT(*) FROM parent;INSERT INTO told VALUES (0);COMMIT;\
        SET autocommit = 1;SET TRANSACTION READ ONLY;BEGIN;ROLLBACK";
    let reports = changes.split(';').map(|sql| client.query(sql).unwrap());
    let done = |outcome: &Outcome| matches!(outcome, Outcome::Done(_));
    let reports = reports.map(|told| format!("{:?}", told.iter().find(|told| done(told))));
    let reports: Vec<String> = reports.collect();
    (
        variables,
        reports.join("\n"),
        tables_logged(real, client, id),
    )
}

/// All that a session tells is the same on a backend that another client has had, and that is reset
/// or replaced for its variables, as on one that has just been opened.
#[test]
fn a_session_that_is_reset_is_as_a_fresh_one_in_all_it_tells() {
    let logs = ["--log-bin=log", "--server-id=7", "--binlog-format=ROW"];
    let servers = [own(Real::start(&logs)), pooled(mysql_with_gtids)];
    for real in servers.into_iter().flatten() {
        real.create_user("app", "app");
        real.execute(&CASCADES);
        let pool = fresh_pool(&real, "backends_max = 1\ngroups = 1");
        let account = app().with(cap::SESSION_TRACK);
        let [mut a, mut b, mut c] = [(); 3].map(|()| login(&pool.address, &account));
        let fresh = all_of_session(&real, &mut a, 1);
        for sql in [
            "SET @had = 1",
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
            "SET sql_mode = 'ANSI', time_zone = '+02:00', foreign_key_checks = 0",
            "SET unique_checks = 0, group_concat_max_len = 77, lock_wait_timeout = 7",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED, READ ONLY",
            "SELECT @had",
        ] {
            b.must(sql);
        }
        let reset = all_of_session(&real, &mut c, 2);
        assert_eq!(reset, fresh, "{:?}", real.flavour());
        let is_reset = !pool
            .wait_for_census("resets: ")
            .unwrap()
            .contains("resets: 0,");
        assert_eq!(is_reset, real.flavour() == Flavour::MariaDb);
    }
}
