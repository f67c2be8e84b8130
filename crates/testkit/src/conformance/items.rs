//! The kinds of session state, as a catalogue: how to set, to read and to end each.
//!
//! `{u}` is a name that is the cell's own, `{id}` the number in the client's greeting. Nothing
//! depends on the clock, and nobody waits for another's lock.

use crate::client::Client;
use crate::real::Flavour;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Both,
    MariaDb,
    MySql,
}

/// One kind of state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub name: &'static str,
    on: On,
    /// Statement of the first client.
    pub set: &'static str,
    /// Statement of the second then, for its own; may be empty.
    pub other: &'static str,
    /// Statement by which both read it.
    pub read: &'static str,
    /// Statement that ends it; may be empty.
    pub end: &'static str,
    /// Setting it fails, on purpose.
    pub fails: bool,
}

impl Item {
    /// Statement that gives a privilege back which the item takes from the clients' account.
    pub(crate) fn given_back(&self) -> Option<String> {
        let rest = self.set.strip_prefix("REVOKE ")?;
        Some(format!("GRANT {}", rest.replace(" FROM ", " TO ")))
    }
}

const fn item(
    name: &'static str,
    on: On,
    set: &'static str,
    [other, read, end]: [&'static str; 3],
) -> Item {
    Item {
        name,
        on,
        set,
        other,
        read,
        end,
        fails: false,
    }
}

const fn error(name: &'static str, set: &'static str, read: &'static str) -> Item {
    Item {
        fails: true,
        ..item(name, On::Both, set, ["", read, ""])
    }
}

const CHARSETS: &str = "SELECT @@character_set_client, @@character_set_connection, \
     @@character_set_results, @@collation_connection";
const ISOLATION: &str = "SHOW SESSION VARIABLES LIKE '%x_isolation'";
const DIRTY: &str = "SELECT COUNT(*) FROM dirty";
const THIRD: &str = "SELECT 1 / 3";
const NUMBERS: &str = "SELECT x FROM counted ORDER BY x";
/// By value: the type of a variable that nobody has set is the one known difference.
const A: &str = "SELECT @a IS NULL, LEFT(@a, 20)";
/// Finds no row, so nobody waits for anybody; a read-only session refuses it all the same.
const WRITE: &str = "UPDATE counted SET x = x WHERE x = 99";

use On::{Both, MariaDb, MySql};

#[rustfmt::skip]
const ITEMS: &[Item] = &[
    item("default schema", Both, "USE conformance_other",
        ["USE mysql", "SELECT DATABASE()", "USE conformance"]),
    item("default schema of an odd name", Both, "USE `conformance sch\u{e9}`",
        ["USE mysql", "SELECT HEX(DATABASE())", "USE conformance"]),
    item("`sql_mode`", Both, "SET sql_mode = 'ANSI_QUOTES'",
        ["SET sql_mode = ''", "SELECT @@sql_mode, \"x\"", "SET sql_mode = DEFAULT"]),
    item("`time_zone`", Both, "SET time_zone = '+05:00'",
        ["SET time_zone = '-03:00'", "SELECT FROM_UNIXTIME(0)", "SET time_zone = DEFAULT"]),
    item("SET NAMES", Both, "SET NAMES latin1",
        ["SET NAMES utf8mb4 COLLATE utf8mb4_bin", CHARSETS, "SET NAMES utf8mb4"]),
    item("SET CHARACTER SET", Both, "SET CHARACTER SET latin1",
        ["SET CHARACTER SET utf8mb4", CHARSETS, "SET NAMES utf8mb4"]),
    item("SET character_set_database", Both, "SET character_set_database = greek",
        ["SET collation_database = hebrew_general_ci",
         "SELECT @@character_set_database, @@collation_database, DATABASE()",
         "USE conformance"]),
    item("a character set set after its collation", Both,
        "SET collation_server = latin1_bin, character_set_server = greek",
        ["SET collation_server = hebrew_bin", "SELECT @@character_set_server, @@collation_server",
         "SET character_set_server = DEFAULT"]),
    item("a character set of its schema, beside another's user variable", Both,
        "SET @n{u} = 1",
        ["SET @m{u} = 1", "SELECT @@collation_database, LEFT(@m{u}, 1), LEFT(@n{u}, 1)", ""]),
    item("a collation", Both, "SET collation_connection = utf8mb4_bin",
        ["SET collation_connection = latin1_bin", CHARSETS, "SET NAMES utf8mb4"]),
    item("results as they are", Both, "SET character_set_results = NULL",
        ["SET character_set_results = latin1", CHARSETS, "SET NAMES utf8mb4"]),
    item("results in two bytes", Both, "SET character_set_results = utf16",
        ["SET character_set_results = ucs2", CHARSETS, "SET NAMES utf8mb4"]),
    item("literals in four bytes", Both, "SET collation_connection = utf32_bin",
        ["SET character_set_connection = ucs2", "SELECT HEX('a'), @@collation_connection, 'x'",
         "SET NAMES utf8mb4"]),
    item("`autocommit`", Both, "SET autocommit = 0",
        ["", "SELECT @@autocommit", "SET autocommit = 1"]),
    item("a value that is there", Both, "SET SESSION autocommit = 1, foreign_key_checks = ON",
        ["SET autocommit = 0", "SELECT @@autocommit, @@foreign_key_checks, ROW_COUNT()",
         "SET autocommit = 1"]),
    item("`autocommit`, a transaction open", Both, "SET autocommit = 0",
        ["", "SELECT @@autocommit, COUNT(*) FROM one", "SET autocommit = 1"]),
    item("`@@name` without scope", Both, "SET @@div_precision_increment = 9",
        ["SET @@div_precision_increment = 2", THIRD, "SET @@div_precision_increment = 4"]),
    item("`@@SESSION.name`", Both, "SET @@SESSION.div_precision_increment = 9",
        ["SET @@LOCAL.div_precision_increment = 2", THIRD,
         "SET @@session.div_precision_increment = DEFAULT"]),
    item("isolation level", Both, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        ["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", ISOLATION,
         "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"]),
    item("one-shot isolation level", Both, "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        ["", DIRTY, ""]),
    item("read-only session", Both, "SET SESSION TRANSACTION READ ONLY",
        ["", WRITE, "SET SESSION TRANSACTION READ WRITE"]),
    item("one-shot read-only", Both, "SET TRANSACTION READ ONLY", ["", WRITE, ""]),
    item("several in one SET", Both,
        "SET div_precision_increment = 9, time_zone = '+01:00', @a = 1, NAMES latin1",
        ["SET time_zone = '+02:00', @a = 2", "SELECT 1 / 3, @@time_zone, LEFT(@a, 20), 'x'",
         "SET div_precision_increment = DEFAULT, time_zone = DEFAULT, @a = NULL, NAMES utf8mb4"]),
    error("a SET that fails", "SET div_precision_increment = 9, time_zone = 'No/Such'", THIRD),
    item("`sql_select_limit`", Both, "SET sql_select_limit = 1",
        ["SET sql_select_limit = 2", NUMBERS, "SET sql_select_limit = DEFAULT"]),
    item("`group_concat_max_len`", Both, "SET group_concat_max_len = 4",
        ["SET group_concat_max_len = 5", "SELECT @@group_concat_max_len",
         "SET group_concat_max_len = DEFAULT"]),
    item("`lock_wait_timeout`", Both, "SET lock_wait_timeout = 77",
        ["SET lock_wait_timeout = 78", "SELECT @@lock_wait_timeout",
         "SET lock_wait_timeout = DEFAULT"]),
    item("`wait_timeout`", Both, "SET wait_timeout = 7777",
        ["SET wait_timeout = 8888", "SELECT @@wait_timeout", "SET wait_timeout = DEFAULT"]),
    item("`net_write_timeout`", Both, "SET net_write_timeout = 77",
        ["SET net_write_timeout = 88", "SELECT @@net_write_timeout",
         "SET net_write_timeout = DEFAULT"]),
    item("`foreign_key_checks`", Both, "SET foreign_key_checks = 0, unique_checks = 0",
        ["SET foreign_key_checks = 1", "SELECT @@foreign_key_checks, @@unique_checks",
         "SET foreign_key_checks = 1, unique_checks = 1"]),
    item("`sql_safe_updates`", Both, "SET sql_safe_updates = 1",
        ["", "UPDATE counted SET x = x WHERE x + 0 = 1", "SET sql_safe_updates = 0"]),
    item("`lc_time_names`", Both, "SET lc_time_names = 'de_DE'",
        ["SET lc_time_names = 'fr_FR'", "SELECT MONTHNAME('2020-03-01')",
         "SET lc_time_names = DEFAULT"]),
    item("`default_storage_engine`", Both, "SET default_storage_engine = MyISAM",
        ["SET default_storage_engine = MEMORY", "SELECT @@default_storage_engine",
         "SET default_storage_engine = DEFAULT"]),
    item("`auto_increment_increment`", Both, "SET auto_increment_increment = 7",
        ["SET auto_increment_increment = 3", "SELECT @@auto_increment_increment",
         "SET auto_increment_increment = DEFAULT"]),
    item("`optimizer_switch`", Both, "SET optimizer_switch = 'index_merge=off'",
        ["SET optimizer_switch = 'mrr=on'", "SELECT @@optimizer_switch",
         "SET optimizer_switch = DEFAULT"]),
    item("`max_error_count`, `sql_notes`", Both, "SET max_error_count = 0, sql_notes = 0",
        ["SET max_error_count = 1", "SELECT CAST('x' AS SIGNED), @@max_error_count, @@sql_notes",
         "SET max_error_count = DEFAULT, sql_notes = 1"]),
    item("`max_statement_time`", MariaDb, "SET max_statement_time = 77.5",
        ["SET max_statement_time = 88", "SELECT @@max_statement_time",
         "SET max_statement_time = DEFAULT"]),
    item("`max_execution_time`", MySql, "SET max_execution_time = 77000",
        ["SET max_execution_time = 88000", "SELECT @@max_execution_time",
         "SET max_execution_time = DEFAULT"]),
    item("SET STATEMENT", MariaDb, "SET STATEMENT div_precision_increment = 9 FOR SELECT 1 / 3",
        ["", THIRD, ""]),
    item("`sql_auto_is_null`", Both, "SET sql_auto_is_null = 1",
        ["", "SELECT @@sql_auto_is_null", "SET sql_auto_is_null = 0"]),
    item("`timestamp`", Both, "SET timestamp = 1000",
        ["SET timestamp = 2000", "SELECT UNIX_TIMESTAMP() < 1500, UNIX_TIMESTAMP() < 2500",
         "SET timestamp = DEFAULT"]),
    item("the clock goes on again", Both, "SET timestamp = 1000; SET timestamp = DEFAULT",
        ["SET timestamp = 2000", "SELECT UNIX_TIMESTAMP() < 1500, UNIX_TIMESTAMP() < 2500",
         "SET timestamp = DEFAULT"]),
    item("`sql_log_bin`", Both, "SET sql_log_bin = 0", ["", "SELECT @@sql_log_bin",
         "SET sql_log_bin = 1"]),
    item("`completion_type`", Both, "SET completion_type = 1",
        ["SET completion_type = 0", "SELECT @@completion_type", "SET completion_type = DEFAULT"]),
    item("`last_insert_id`", Both, "SET last_insert_id = 77",
        ["SET identity = 78", "SELECT LAST_INSERT_ID(), @@identity", ""]),
    item("`server_id`", MariaDb, "SET server_id = 77, gtid_domain_id = 5",
        ["SET server_id = 78", "SELECT @@server_id, @@gtid_domain_id",
         "SET server_id = DEFAULT, gtid_domain_id = DEFAULT"]),
    item("`require_row_format`", MySql, "SET require_row_format = 1",
        ["", "SELECT @@require_row_format", "SET require_row_format = 0"]),
    item("`pseudo_thread_id`", Both, "SET pseudo_thread_id = 5",
        ["SET pseudo_thread_id = 6",
         "SELECT CONNECTION_ID() = 5 AS five, CONNECTION_ID() = 6 AS six", ""]),
    item("a value with quotes", MariaDb, "SET default_master_connection = 'it''s \"\u{e9}\"'",
        ["SET default_master_connection = '12'", "SELECT HEX(@@default_master_connection)",
         "SET default_master_connection = ''"]),
    item("random numbers", Both, "SET rand_seed1 = 1, rand_seed2 = 2",
        ["", "SELECT RAND() < 0.00000001", ""]),
    item("`insert_id`", Both, "SET insert_id = 500", ["", "SELECT @@insert_id", ""]),
    item("`original_commit_timestamp`", MySql, "SET original_commit_timestamp = 5",
        ["SET original_commit_timestamp = 6", "SELECT @@original_commit_timestamp",
         "SET original_commit_timestamp = DEFAULT"]),
    item("`profiling`", Both, "SET profiling = 1", ["", "SELECT @@profiling", "SET profiling = 0"]),
    item("user variable by SET", Both, "SET @a = 5",
        ["SET @a = 'text'", A, "SET @a = NULL"]),
    item("no user variables any more", MariaDb, "SET @a = 5; FLUSH USER_VARIABLES",
        ["SET @a = 'text'", A, "SET @a = NULL"]),
    item("user variable by INTO", Both, "SELECT 1.50, x'00ff' INTO @a, @b",
        ["SELECT 7 INTO @a", "SELECT LEFT(@a, 20), LEFT(HEX(@b), 20)", "SET @a = NULL, @b = NULL"]),
    item("user variable by :=", Both, "DO @a := 5", ["DO @a := 7", A, "SET @a = NULL"]),
    item("user variable, long", Both, "SET @a = REPEAT('x', 60000)",
        ["SET @a = REPEAT('y', 6000)", "SELECT LENGTH(@a)", "SET @a = NULL"]),
    item("user variable, too long", Both, "SET @a = REPEAT('x', 100000)",
        ["", "SELECT LENGTH(@a)", "SET @a = NULL"]),
    item("user variable of an odd name", Both, "SET @`a b` = 5, @`q``r` = 6, @\u{e9} = 7",
        ["SET @`a b` = 8", "SELECT LEFT(@`a b`, 9), LEFT(@`q``r`, 9), LEFT(@\u{e9}, 9)",
         "SET @`a b` = NULL, @`q``r` = NULL, @\u{e9} = NULL"]),
    item("a user variable never set, beside one beyond ASCII", Both,
        "SET @\u{e4} = 6, optimizer_prune_level = 0",
        ["SET @\u{f6} = 7, @c = 8",
         "SELECT LEFT(@c, 9), LEFT(@d, 9), LEFT(@\u{e4}, 9), @@optimizer_prune_level",
         "SET @\u{e4} = NULL, optimizer_prune_level = DEFAULT"]),
    item("LAST_INSERT_ID() by INSERT", Both, "INSERT INTO numbered (x) VALUES (1), (2)",
        ["", "SELECT LAST_INSERT_ID()", ""]),
    item("LAST_INSERT_ID() by its argument", Both, "DO LAST_INSERT_ID(77)",
        ["DO LAST_INSERT_ID(78)", "SELECT LAST_INSERT_ID(), @@identity", ""]),
    item("ROW_COUNT()", Both, "UPDATE one SET x = x + 1", ["DO 0", "SELECT ROW_COUNT()", ""]),
    item("both counts", Both, "INSERT INTO numbered (x) VALUES (1), (2)",
        ["SELECT x FROM counted", "SELECT ROW_COUNT(), FOUND_ROWS()", ""]),
    item("ROW_COUNT() behind a warning that is raised", Both, "SIGNAL SQLSTATE '01000'",
        ["SELECT x FROM counted", "SELECT ROW_COUNT()", ""]),
    item("FOUND_ROWS()", Both, "SELECT x FROM counted LIMIT 2",
        ["SELECT 1", "SELECT FOUND_ROWS()", ""]),
    item("SQL_CALC_FOUND_ROWS", Both, "SELECT SQL_CALC_FOUND_ROWS x FROM counted LIMIT 2",
        ["SELECT 1", "SELECT FOUND_ROWS()", ""]),
    item("warnings", Both, "SELECT CAST('text' AS SIGNED) FROM one", ["", "SHOW WARNINGS", ""]),
    error("errors", "SELECT no_such_column FROM one", "SHOW WARNINGS"),
    item("SHOW ERRORS", Both, "SELECT CAST('text' AS SIGNED) FROM one", ["", "SHOW ERRORS", ""]),
    item("`@@warning_count`", Both, "SELECT CAST('text' AS SIGNED) FROM one",
        ["", "SELECT @@warning_count, @@error_count", ""]),
    item("GET DIAGNOSTICS", Both, "SELECT CAST('text' AS SIGNED) FROM one",
        ["", "GET DIAGNOSTICS @n = NUMBER", "SELECT @n"]),
    error("a statement that its client ends", "KILL QUERY CONNECTION_ID()", "SHOW WARNINGS"),
    item("another's conditions", Both, "DO 1",
        ["SELECT CAST('another''s' AS SIGNED) FROM one", "SHOW WARNINGS", ""]),
    item("another's conditions, in a text that pins", Both, "DO 1",
        ["SELECT CAST('another''s' AS SIGNED) FROM one", "SHOW WARNINGS; CALL locks()", ""]),
    item("counts that a trigger asks for", Both, "SELECT x FROM counted LIMIT 2",
        ["UPDATE one SET x = x + 1",
         "INSERT INTO asking (x) VALUES (1); SELECT c, f FROM asking ORDER BY id DESC LIMIT 1",
         ""]),
    item("status flags of several results", Both, "SELECT x FROM counted WHERE x + 0 = 1",
        ["", "SELECT 1; SELECT x + 0 FROM counted; SELECT CAST('x' AS SIGNED); DO 0", ""]),
    item("transaction", Both, "BEGIN", [WRITE, NUMBERS, "COMMIT"]),
    item("transaction, ended without one", Both, "ROLLBACK", [WRITE, NUMBERS, "COMMIT"]),
    item("transaction, characteristics said", Both, "START TRANSACTION READ WRITE",
        [WRITE, NUMBERS, "ROLLBACK"]),
    item("transaction, read-only", Both, "START TRANSACTION READ ONLY",
        [WRITE, WRITE, "ROLLBACK"]),
    item("transaction, written", Both, "BEGIN; INSERT INTO numbered (x) VALUES (1)",
        ["", "SELECT COUNT(*) FROM numbered", "ROLLBACK"]),
    item("savepoint", Both, "SAVEPOINT s", ["", "ROLLBACK TO s", ""]),
    item("XA", Both, "XA START '{u}'", ["", "SELECT COUNT(*) FROM one",
        "XA END '{u}'; XA ROLLBACK '{u}'"]),
    item("temporary table", Both, "CREATE TEMPORARY TABLE passing (x INT)",
        ["CREATE TEMPORARY TABLE passing (y INT, z INT)", "SELECT * FROM passing",
         "DROP TEMPORARY TABLE IF EXISTS passing"]),
    item("LOCK TABLES", Both, "LOCK TABLES one READ",
        ["LOCK TABLES counted READ", "SELECT COUNT(*) FROM counted", "UNLOCK TABLES"]),
    item("global read lock", Both, "FLUSH TABLES WITH READ LOCK",
        ["", "SELECT COUNT(*) FROM one", "UNLOCK TABLES"]),
    item("GET_LOCK()", Both, "DO GET_LOCK('{u}', 0)",
        ["SELECT GET_LOCK('{u}', 0)", "SELECT IS_FREE_LOCK('{u}')", "DO RELEASE_LOCK('{u}')"]),
    item("GET_LOCK(), two of them", Both, "DO GET_LOCK('{u} 2', 0), GET_LOCK('{u} 2', 0)",
        ["", "SELECT IS_FREE_LOCK('{u} 2')", "DO RELEASE_ALL_LOCKS()"]),
    item("HANDLER", Both, "HANDLER counted OPEN",
        ["HANDLER counted OPEN AS other", "HANDLER counted READ NEXT", "HANDLER counted CLOSE"]),
    item("text PREPARE", Both, "PREPARE s FROM 'SELECT 5'",
        ["PREPARE s FROM 'SELECT 6'", "EXECUTE s", "DEALLOCATE PREPARE s"]),
    item("EXECUTE IMMEDIATE", MariaDb, "EXECUTE IMMEDIATE 'SET @a = 5'",
        ["", A, "SET @a = NULL"]),
    item("sequence", MariaDb, "DO NEXTVAL(steps)", ["", "SELECT LASTVAL(steps) > 0", ""]),
    item("role", Both, "SET ROLE conformer", ["", "SELECT CURRENT_ROLE()", "SET ROLE NONE"]),
    item("a privilege that is taken away", MariaDb, "REVOKE BINLOG MONITOR ON *.* FROM app",
        ["", "SHOW BINARY LOGS", ""]),
    item("a privilege that is taken away", MySql, "REVOKE REPLICATION CLIENT ON *.* FROM app",
        ["", "SHOW BINARY LOGS", ""]),
    item("CONNECTION_ID()", Both, "DO 0",
        ["", "SELECT CAST(CONNECTION_ID() AS SIGNED) - {id} AS d", ""]),
];

/// The catalogue for this server.
pub(crate) fn all(flavour: Flavour) -> Vec<Item> {
    let other = match flavour {
        Flavour::MariaDb => On::MySql,
        Flavour::MySql => On::MariaDb,
    };
    let items = ITEMS.iter().filter(|item| item.on != other);
    items.copied().collect()
}

/// Makes what all items need.
pub(crate) fn lay_ground(admin: &mut Client, flavour: Flavour) {
    for sql in [
        "DROP DATABASE IF EXISTS conformance_other",
        "DROP DATABASE IF EXISTS `conformance sch\u{e9}`",
        "DROP DATABASE IF EXISTS conformance",
        "DROP ROLE IF EXISTS conformer",
        "CREATE DATABASE conformance_other",
        "CREATE DATABASE `conformance sch\u{e9}`",
        "CREATE DATABASE conformance",
        "USE conformance",
        "CREATE TABLE one (x INT) ENGINE=InnoDB",
        "INSERT INTO one VALUES (1)",
        "CREATE TABLE counted (x INT PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO counted VALUES (1), (2), (3), (4), (5)",
        "CREATE TABLE dirty (x INT) ENGINE=InnoDB",
        "CREATE TABLE numbered (id INT AUTO_INCREMENT PRIMARY KEY, x INT) ENGINE=InnoDB",
        // What the clients take from their own account they may give back.
        "GRANT ALL ON *.* TO app WITH GRANT OPTION",
        "CREATE ROLE conformer",
        "GRANT conformer TO app",
        "CREATE TABLE asking (id INT AUTO_INCREMENT PRIMARY KEY, x INT, c INT, f INT)",
        "CREATE TRIGGER asks BEFORE INSERT ON asking FOR EACH ROW \
         SET NEW.c = ROW_COUNT(), NEW.f = FOUND_ROWS()",
        "CREATE PROCEDURE locks() BEGIN DO GET_LOCK('own', 0); DO RELEASE_LOCK('own'); END",
        // MariaDB 10.11 crashes when a trigger makes the session read-only before an InnoDB row.
        "CREATE TABLE fired (x INT) ENGINE=MEMORY",
    ] {
        admin.must(sql);
    }
    if flavour == Flavour::MariaDb {
        admin.must("CREATE SEQUENCE steps");
    }
}

/// Makes the stored code that sets the item; what may not be in one is refused here, and missed
/// by the clients then.
pub(crate) fn make_routines(admin: &mut Client, item: &Item) {
    let set = |path: &str| item.set.replace("{u}", path);
    let (call, function) = (set("CALL"), set("function"));
    let (fires, fails) = (set("trigger"), set("failing trigger"));
    let texts = [
        format!("CREATE PROCEDURE p() BEGIN {call}; END"),
        format!("CREATE FUNCTION f() RETURNS INT BEGIN {function}; RETURN 1; END"),
        format!(
            "CREATE TRIGGER fires BEFORE INSERT ON fired FOR EACH ROW BEGIN IF NEW.x = 1 THEN \
             {fires}; ELSE {fails}; SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 3333; END IF; END"
        ),
    ];
    for text in texts {
        admin.query(&text).expect("the server is there");
    }
}

/// Removes it.
pub(crate) fn drop_routines(admin: &mut Client) {
    for sql in [
        "PROCEDURE IF EXISTS p",
        "FUNCTION IF EXISTS f",
        "TRIGGER IF EXISTS fires",
    ] {
        admin.must(&format!("DROP {sql}"));
    }
}

/// Brings back what a telling may have changed for good.
pub(crate) fn reset(admin: &mut Client, item: &Item) {
    if item.set.contains("numbered") {
        admin.must("TRUNCATE TABLE numbered");
    }
    if item.set.contains("one SET") {
        admin.must("UPDATE one SET x = 1");
    }
    if item.read.contains("asking") {
        admin.must("TRUNCATE TABLE asking");
    }
    if let Some(given_back) = item.given_back() {
        admin.must(&given_back);
    }
    if item.set.starts_with("XA") {
        let left = admin.rows("XA RECOVER");
        debug_assert!(left.rows.is_empty());
    }
}
