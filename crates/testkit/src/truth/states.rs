//! The kinds of session state that are no plain variable, as a catalogue.
//!
//! Each row has a change and a proof: statements that read the state without knowing of it by any
//! tracker. Where nothing in SQL shows it, an error that the state causes is the proof.
//!
//! Left out, since nobody can change them in a session of these servers: the transaction id of the
//! last write (no binary log), Galera's states.

use super::{State, Told};
use crate::client::Client;
use crate::real::Flavour;

#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Both,
    MariaDb,
    MySql,
}

/// Name, servers, statements before, change, proof.
type Entry = (
    &'static str,
    On,
    &'static [&'static str],
    &'static str,
    &'static [&'static str],
);

const DIRTY: &[&str] = &["SELECT COUNT(*) FROM dirty"];
const CHARSETS: &[&str] = &[
    "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, \
     @@collation_connection",
];
/// Statements that work in a transaction only.
const IN_TRANSACTION: &[&str] = &["SAVEPOINT probing", "ROLLBACK TO probing"];

const ENTRIES: &[Entry] = &[
    (
        "schema",
        On::Both,
        &[],
        "USE truth_other",
        &["SELECT DATABASE()"],
    ),
    (
        "schema dropped",
        On::Both,
        &["CREATE DATABASE IF NOT EXISTS truth_gone", "USE truth_gone"],
        "DROP DATABASE truth_gone",
        &["SELECT DATABASE()"],
    ),
    (
        "character sets by SET NAMES",
        On::Both,
        &[],
        "SET NAMES latin1 COLLATE latin1_bin",
        CHARSETS,
    ),
    (
        "character sets by SET CHARACTER SET",
        On::Both,
        &[],
        "SET CHARACTER SET latin1",
        CHARSETS,
    ),
    (
        "collation by character set",
        On::Both,
        &[],
        "SET character_set_connection = latin1",
        &["SELECT @@collation_connection"],
    ),
    (
        "several variables",
        On::Both,
        &[],
        "SET SESSION sql_select_limit = 5, div_precision_increment = 7",
        &["SELECT @@div_precision_increment"],
    ),
    (
        "isolation of the session",
        On::Both,
        &[],
        "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        DIRTY,
    ),
    (
        "isolation of one transaction",
        On::Both,
        &[],
        "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        DIRTY,
    ),
    (
        "isolation of one transaction by @@",
        On::MySql,
        &[],
        "SET @@transaction_isolation = 'READ-UNCOMMITTED'",
        DIRTY,
    ),
    (
        "read-only session",
        On::Both,
        &[],
        "SET SESSION TRANSACTION READ ONLY",
        &["UPDATE one SET x = 1"],
    ),
    (
        "read-only transaction",
        On::Both,
        &[],
        "SET TRANSACTION READ ONLY",
        &["UPDATE one SET x = 1"],
    ),
    (
        "transaction by BEGIN",
        On::Both,
        &[],
        "START TRANSACTION",
        IN_TRANSACTION,
    ),
    (
        "transaction by snapshot",
        On::Both,
        &[],
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        IN_TRANSACTION,
    ),
    (
        "transaction by autocommit = 0",
        On::Both,
        &["SET autocommit = 0", "COMMIT"],
        "UPDATE one SET x = x",
        &["SET TRANSACTION READ WRITE"],
    ),
    (
        "savepoint",
        On::Both,
        &["BEGIN"],
        "SAVEPOINT truth",
        &["ROLLBACK TO truth"],
    ),
    (
        "user variable by SET",
        On::Both,
        &[],
        "SET @truth = 5",
        &["SELECT @truth"],
    ),
    (
        "user variable by INTO",
        On::Both,
        &[],
        "SELECT 5 INTO @truth",
        &["SELECT @truth"],
    ),
    (
        "user variable by :=",
        On::Both,
        &[],
        "DO @truth := 5",
        &["SELECT @truth"],
    ),
    (
        "LAST_INSERT_ID() by INSERT",
        On::Both,
        &[],
        "INSERT INTO numbered (x) VALUES (1)",
        &["SELECT LAST_INSERT_ID()"],
    ),
    (
        "LAST_INSERT_ID() by its argument",
        On::Both,
        &[],
        "DO LAST_INSERT_ID(77)",
        &["SELECT LAST_INSERT_ID()"],
    ),
    (
        "LAST_INSERT_ID() by UPDATE",
        On::Both,
        &[],
        "UPDATE one SET x = LAST_INSERT_ID(77)",
        &["SELECT LAST_INSERT_ID()"],
    ),
    (
        "ROW_COUNT()",
        On::Both,
        &["DO 1"],
        "UPDATE counted SET x = x + 1",
        &["SELECT ROW_COUNT()"],
    ),
    (
        "FOUND_ROWS()",
        On::Both,
        &["SELECT 1 FROM one"],
        "SELECT SQL_CALC_FOUND_ROWS x FROM counted LIMIT 1",
        &["SELECT FOUND_ROWS()"],
    ),
    (
        "warnings",
        On::Both,
        &["SELECT 1 FROM one"],
        "SELECT CAST('truth' AS SIGNED) FROM one",
        &["SELECT @@warning_count"],
    ),
    (
        "temporary table",
        On::Both,
        &[],
        "CREATE TEMPORARY TABLE passing (x INT)",
        &["SELECT COUNT(*) FROM passing"],
    ),
    (
        "temporary table dropped",
        On::Both,
        &["CREATE TEMPORARY TABLE passing (x INT)"],
        "DROP TEMPORARY TABLE passing",
        &["SELECT COUNT(*) FROM passing"],
    ),
    (
        "temporary table altered",
        On::Both,
        &["CREATE TEMPORARY TABLE passing (x INT)"],
        "ALTER TABLE passing ADD y INT",
        &["SELECT y FROM passing"],
    ),
    (
        "table locks",
        On::Both,
        &[],
        "LOCK TABLES one READ",
        &["SELECT COUNT(*) FROM counted"],
    ),
    (
        "table locks given up",
        On::Both,
        &["LOCK TABLES one READ"],
        "UNLOCK TABLES",
        &["SELECT COUNT(*) FROM counted"],
    ),
    (
        "global read lock",
        On::Both,
        &[],
        "FLUSH TABLES WITH READ LOCK",
        &["INSERT INTO counted VALUES (1)"],
    ),
    (
        "lock for export",
        On::Both,
        &[],
        "FLUSH TABLES one FOR EXPORT",
        &["SELECT COUNT(*) FROM counted"],
    ),
    (
        "backup stage",
        On::MariaDb,
        &[],
        "BACKUP STAGE START",
        &["BACKUP STAGE END"],
    ),
    (
        "backup lock of a table",
        On::MariaDb,
        &[],
        "BACKUP LOCK one",
        &["BACKUP STAGE START", "BACKUP STAGE END"],
    ),
    (
        "instance lock",
        On::MySql,
        &[],
        "LOCK INSTANCE FOR BACKUP",
        &["SELECT COUNT(*) FROM performance_schema.metadata_locks \
           WHERE OBJECT_TYPE = 'BACKUP LOCK'"],
    ),
    (
        "named lock",
        On::Both,
        &[],
        "DO GET_LOCK('truth', 0)",
        &["SELECT IS_FREE_LOCK('truth')"],
    ),
    (
        "named lock given up",
        On::Both,
        &["DO GET_LOCK('truth', 0)"],
        "DO RELEASE_LOCK('truth')",
        &["SELECT IS_FREE_LOCK('truth')"],
    ),
    (
        "handler",
        On::Both,
        &[],
        "HANDLER one OPEN",
        &["HANDLER one READ FIRST"],
    ),
    (
        "text PREPARE",
        On::Both,
        &[],
        "PREPARE truth FROM 'SELECT 1'",
        &["EXECUTE truth"],
    ),
    (
        "text DEALLOCATE",
        On::Both,
        &["PREPARE truth FROM 'SELECT 1'"],
        "DEALLOCATE PREPARE truth",
        &["EXECUTE truth"],
    ),
    ("XA", On::Both, &[], "XA START 'truth'", &["XA END 'truth'"]),
    (
        "last value of a sequence",
        On::MariaDb,
        &[],
        "DO NEXTVAL(sequence_of_truth)",
        &["SELECT LASTVAL(sequence_of_truth)"],
    ),
    (
        "role",
        On::Both,
        &[],
        "SET ROLE truth",
        &["SELECT CURRENT_ROLE()"],
    ),
    (
        "resource group",
        On::MySql,
        &[],
        "SET RESOURCE GROUP truth",
        &["SELECT RESOURCE_GROUP FROM performance_schema.threads \
           WHERE PROCESSLIST_ID = CONNECTION_ID()"],
    ),
    (
        "random numbers by rand_seed1 and 2",
        On::Both,
        &[],
        "SET SESSION rand_seed1 = 1, rand_seed2 = 2",
        &["SELECT RAND() < 0.00000001"],
    ),
    (
        "profiles",
        On::Both,
        &[],
        "SET SESSION profiling = 1",
        &[
            "SELECT 1 FROM one",
            "SELECT COUNT(*) > 0 FROM information_schema.profiling",
        ],
    ),
];

/// Makes what the catalogue needs.
pub(crate) fn lay_ground(admin: &mut Client, flavour: Flavour) {
    for sql in [
        "DROP DATABASE IF EXISTS truth",
        "DROP DATABASE IF EXISTS truth_other",
        "CREATE DATABASE truth",
        "CREATE DATABASE truth_other",
        "USE truth",
        "CREATE TABLE one (x INT) ENGINE=InnoDB",
        "INSERT INTO one VALUES (1)",
        "CREATE TABLE counted (x INT) ENGINE=InnoDB",
        "INSERT INTO counted VALUES (1), (2), (3)",
        "CREATE TABLE dirty (x INT) ENGINE=InnoDB",
        "CREATE TABLE numbered (id INT AUTO_INCREMENT PRIMARY KEY, x INT) ENGINE=InnoDB",
        // MariaDB 10.11 crashes when a trigger makes the session read-only before an InnoDB row.
        "CREATE TABLE fired (x INT) ENGINE=MEMORY",
        "CREATE ROLE IF NOT EXISTS truth",
    ] {
        admin.must(sql);
    }
    if flavour == Flavour::MariaDb {
        admin.must("CREATE SEQUENCE sequence_of_truth");
        return;
    }
    admin.must("GRANT truth TO root@localhost");
    // Where the system forbids resource groups, the cell says so by its error.
    let made = admin.query("CREATE RESOURCE GROUP truth TYPE = USER");
    made.expect("the server is there");
}

/// The catalogue for this server.
pub(crate) fn all(flavour: Flavour) -> Vec<State> {
    let other = match flavour {
        Flavour::MariaDb => On::MySql,
        Flavour::MySql => On::MariaDb,
    };
    let entries = ENTRIES.iter().filter(|entry| entry.1 != other);
    entries.map(state_of).collect()
}

fn state_of(&(name, _, before, change, proof): &Entry) -> State {
    let strings = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    State {
        name: name.into(),
        before: strings(before),
        change: change.into(),
        at: None,
        proof: strings(proof),
        becomes: None,
        variables: strings(variables_of(name)),
        told: match name {
            "ROW_COUNT()" => Told::Affected,
            "warnings" => Told::Warnings,
            _ if name.starts_with("LAST_INSERT_ID()") => Told::InsertId,
            _ => Told::Nothing,
        },
    }
}

/// The variables that tell the whole of a state.
fn variables_of(name: &str) -> &'static [&'static str] {
    match name {
        "collation by character set" => &["collation_connection"],
        "several variables" => &["div_precision_increment"],
        "isolation of the session" => &["transaction_isolation", "tx_isolation"],
        "read-only session" => &["transaction_read_only", "tx_read_only"],
        "random numbers by rand_seed1 and 2" => &["rand_seed1", "rand_seed2"],
        "profiles" => &["profiling"],
        _ if name.starts_with("character sets") => &["character_set_client"],
        _ if name.starts_with("LAST_INSERT_ID()") => &["last_insert_id"],
        _ => &[],
    }
}
