//! The ground that scripts stand on: two schemas with the same tables and routines.
//!
//! Client `k` writes to table `tk` only, so that no statement ever waits for another client's lock
//! and the replies depend on the order of the steps alone. Everything is made once; between two
//! tellings [`reset`] brings back what the script may have touched, and nothing else, because that
//! is what takes the time.

use crate::client::Client;
use crate::reply::Outcome;
use std::borrow::Cow;

/// Most clients that a script may have.
pub const CLIENTS_MAX: usize = 6;

/// The schemas.
pub const SCHEMAS: [&str; 2] = ["oracle_a", "oracle_b"];

/// An empty schema whose name is not ASCII.
const FOREIGN: &str = "oracle_\u{442}\u{435}\u{441}\u{442}";

/// Objects besides the clients' tables: name, statement. What one uses stands before it.
const OBJECTS: [(&str, &str); 23] = [
    (
        "kinds",
        "CREATE TABLE kinds (id INT PRIMARY KEY, tiny TINYINT UNSIGNED, big BIGINT, \
         price DECIMAL(10,3), ratio DOUBLE, day DATE, moment DATETIME(3), stamp TIMESTAMP NULL, \
         word VARCHAR(30), body TEXT, raw VARBINARY(20), choice ENUM('red','green'), \
         flags SET('a','b','c'), bits BIT(5))",
    ),
    (
        "kinds",
        "INSERT INTO kinds VALUES (1, 200, -5, 1.5, 0.25, '2020-02-29', \
         '2021-01-02 03:04:05.678', '2022-06-07 08:09:10', 'Wort', 'text', 0x00FF, 'red', 'a,c', \
         5), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
         (3, 0, 9223372036854775807, -0.001, 1e300, '1970-01-01', '1970-01-02 00:00:00', \
         '2000-01-01 00:00:00', '', '', '', 'green', '', 31)",
    ),
    (
        "plain_function",
        "CREATE FUNCTION plain_function(x INT) RETURNS INT DETERMINISTIC RETURN x + 1",
    ),
    (
        "marking_function",
        "CREATE FUNCTION marking_function(x INT) RETURNS INT DETERMINISTIC BEGIN \
         SET @marked = x; RETURN x; END",
    ),
    (
        "marking_view",
        "CREATE VIEW marking_view AS SELECT marking_function(4) AS m",
    ),
    (
        "marking_table",
        "CREATE TABLE marking_table (x INT) ENGINE=InnoDB",
    ),
    (
        "marking_table",
        "CREATE TRIGGER marks BEFORE INSERT ON marking_table FOR EACH ROW SET @marked = NEW.x",
    ),
    (
        "marking_procedure",
        "CREATE PROCEDURE marking_procedure(IN x INT) INSERT INTO marking_table VALUES (x)",
    ),
    (
        "rows_procedure",
        "CREATE PROCEDURE rows_procedure(IN x INT, OUT y INT) BEGIN SELECT x AS first; \
         SELECT x + 1, 'second'; SET y = x * 2; END",
    ),
    (
        "setting_procedure",
        "CREATE PROCEDURE setting_procedure() BEGIN SET SESSION div_precision_increment = 7; \
         SET @set_inside = 5; END",
    ),
    (
        "modal_procedure",
        "CREATE PROCEDURE modal_procedure(IN m VARCHAR(40)) BEGIN SET sql_mode = m; \
         SELECT @@sql_mode; END",
    ),
    (
        "counting_view",
        "CREATE VIEW counting_view AS SELECT ROW_COUNT() AS c, FOUND_ROWS() AS f",
    ),
    (
        "failing_procedure",
        "CREATE PROCEDURE failing_procedure() BEGIN SET @before_error = 1; \
         SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'on purpose', MYSQL_ERRNO = 3333; END",
    ),
    (
        "handling_procedure",
        "CREATE PROCEDURE handling_procedure(IN x INT, OUT y INT) BEGIN \
         DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET y = x; \
         SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'caught'; SELECT x AS x, y AS y; END",
    ),
    (
        "resignalling_procedure",
        "CREATE PROCEDURE resignalling_procedure() RESIGNAL SET MESSAGE_TEXT = 'again'",
    ),
    (
        "diagnosing_procedure",
        "CREATE PROCEDURE diagnosing_procedure() BEGIN \
         GET DIAGNOSTICS @number = NUMBER, @rows = ROW_COUNT; \
         GET DIAGNOSTICS CONDITION 1 @words = MESSAGE_TEXT; SHOW WARNINGS; END",
    ),
    (
        "reading_procedure",
        "CREATE PROCEDURE reading_procedure(IN x INT) BEGIN DECLARE y INT; \
         DECLARE own CURSOR FOR SELECT x; OPEN own; FETCH own INTO y; SELECT x AS first; \
         CLOSE own; SELECT x + 1, 'second'; END",
    ),
    (
        "counting_table",
        "CREATE TABLE counting_table (x INT, c INT) ENGINE=InnoDB",
    ),
    (
        "counting_table",
        "CREATE TRIGGER counts BEFORE INSERT ON counting_table FOR EACH ROW \
         SET NEW.c = ROW_COUNT(), @counted = NEW.c",
    ),
    (
        "firing_procedure",
        "CREATE PROCEDURE firing_procedure(IN y INT) INSERT INTO counting_table (x) VALUES (y)",
    ),
    (
        "locking_procedure",
        "CREATE PROCEDURE locking_procedure(IN name VARCHAR(20)) SELECT GET_LOCK(name, 5)",
    ),
    (
        "tempting_procedure",
        "CREATE PROCEDURE tempting_procedure(IN x INT) BEGIN \
         CREATE TEMPORARY TABLE IF NOT EXISTS left_behind (x INT); \
         INSERT INTO left_behind VALUES (x); END",
    ),
    (
        "preparing_procedure",
        "CREATE PROCEDURE preparing_procedure(IN x INT) BEGIN SET @text = CONCAT('SELECT ', x); \
         PREPARE inside FROM @text; EXECUTE inside; END",
    ),
];

/// Roles, which both accounts need not have.
const ROLES: [&str; 2] = ["oracle_reader", "oracle_writer"];

fn table(client: usize) -> String {
    format!(
        "CREATE TABLE t{client} (id INT AUTO_INCREMENT PRIMARY KEY, v INT, \
         name VARCHAR(20) NOT NULL DEFAULT 'x', UNIQUE KEY v (v)) ENGINE=InnoDB"
    )
}

/// The view that a client alters.
fn view(client: usize) -> String {
    format!("CREATE OR REPLACE VIEW v{client} AS SELECT 1 AS n")
}

/// The procedure that writes to a client's table.
fn adds(client: usize) -> String {
    format!(
        "CREATE PROCEDURE adds{client}(IN x INT, OUT n INT) BEGIN \
         INSERT INTO t{client} (v) VALUES (x); SELECT COUNT(*) INTO n FROM t{client}; \
         SELECT n AS rows_now; END"
    )
}

fn role(name: &str) -> [String; 3] {
    [
        format!("DROP ROLE IF EXISTS {name}"),
        format!("CREATE ROLE {name}"),
        format!("GRANT {name} TO app"),
    ]
}

/// Statements that make the ground, on a connection of an administrator.
#[must_use]
pub fn statements() -> Vec<String> {
    let mut all = vec![
        format!("DROP DATABASE IF EXISTS {FOREIGN}"),
        format!("CREATE DATABASE {FOREIGN} CHARACTER SET koi8r"),
    ];
    for schema in SCHEMAS {
        all.push(format!("DROP DATABASE IF EXISTS {schema}"));
        all.push(format!("CREATE DATABASE {schema} CHARACTER SET latin2"));
        all.push(format!("USE {schema}"));
        all.extend((0..CLIENTS_MAX).map(table));
        all.extend((0..CLIENTS_MAX).map(adds));
        all.extend((0..CLIENTS_MAX).map(view));
        all.extend(OBJECTS.map(|(_, sql)| sql.to_string()));
    }
    all.extend(ROLES.into_iter().flat_map(role));
    all
}

/// Brings back what a script of these texts may have changed.
///
/// # Errors
/// The server keeps a transaction that nobody can end, and says so in these words.
///
/// # Panics
/// When the server refuses for another reason.
pub fn reset(admin: &mut Client, texts: &[Cow<'_, str>]) -> Result<(), String> {
    end_prepared(admin);
    let both = texts.iter().any(|text| text.contains(SCHEMAS[1]));
    for schema in &SCHEMAS[..1 + usize::from(both)] {
        for client in 0..CLIENTS_MAX {
            let (table, adds) = (format!("t{client}"), format!("adds{client}"));
            if texts
                .iter()
                .any(|text| writes(text, &table) || mentions(text, &adds))
            {
                empty(admin, &format!("{schema}.t{client}"))?;
            }
            if texts
                .iter()
                .any(|text| mentions(text, &format!("d{client}")))
            {
                admin.must(&format!("DROP TABLE IF EXISTS {schema}.d{client}"));
            }
            let altered = format!("ALTER VIEW v{client} ");
            if texts.iter().any(|text| text.contains(&altered)) {
                admin.must(&format!("USE {schema}"));
                admin.must(&view(client));
            }
        }
    }
    Ok(())
}

/// Transactions that are no connection's. None of them is one that XA RECOVER lists, once those
/// have been ended.
const NOBODYS: &str =
    "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0";

/// Attempts to empty a table; prepared transactions are ended between them.
const EMPTIED_MAX: usize = 3;

/// Empties a table that nobody is to hold any more. Where somebody does, who it may be is said.
///
/// A client may have left while its XA PREPARE ran. What that prepared came behind the look for
/// such transactions, and holds its tables until it is ended. MariaDB 10.11 has been seen to keep
/// one that is no connection's and that XA RECOVER does not list: nothing ends that but a restart,
/// and no client or pool can have asked for it.
fn empty(admin: &mut Client, table: &str) -> Result<(), String> {
    let sql = format!("TRUNCATE TABLE {table}");
    let mut refused = Vec::new();
    for _ in 0..EMPTIED_MAX {
        let outcomes = admin.query(&sql);
        if matches!(outcomes.as_deref(), Ok([Outcome::Done(_)])) {
            return Ok(());
        }
        refused.push(outcomes);
        end_prepared(admin);
    }
    let asked = [
        "SHOW FULL PROCESSLIST",
        "SELECT * FROM information_schema.INNODB_TRX",
    ];
    let told = asked.map(|sql| format!("{sql}: {:?}", admin.query(sql)));
    let who = admin.who();
    let words = format!("{who}: `{sql}`: {refused:?}; {}", told.join("; "));
    if admin.value(NOBODYS) == "0" {
        panic!("{words}");
    }
    Err(words)
}

/// Ends what the script before has left: prepared distributed transactions outlive their clients.
/// The server may still be
/// about to notice that one of those has gone; until then it refuses.
fn end_prepared(admin: &mut Client) {
    for _ in 0..1_000 {
        let left = admin.rows("XA RECOVER").texts();
        if left.is_empty() {
            return;
        }
        for row in left {
            let _ = admin.query(&format!("XA ROLLBACK '{}'", row[3]));
        }
    }
    panic!("prepared transactions do not end");
}

fn writes(text: &str, table: &str) -> bool {
    mentions(text, table) && !text.starts_with("SELECT")
}

fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let part =
            |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let bytes = text.as_bytes();
        !part(at.checked_sub(1).and_then(|at| bytes.get(at))) && !part(bytes.get(at + name.len()))
    })
}

/// The statements that make what these texts mention.
pub(crate) fn wanted(texts: &[Cow<'_, str>]) -> Vec<String> {
    let named = |name: &str| texts.iter().any(|text| mentions(text, name));
    let mut made: Vec<String> = (0..CLIENTS_MAX)
        .filter(|client| named(&format!("t{client}")) || named(&format!("adds{client}")))
        .map(table)
        .collect();
    let calls = (0..CLIENTS_MAX).filter(|client| named(&format!("adds{client}")));
    made.extend(calls.map(adds));
    let mut objects: Vec<&str> = Vec::new();
    for (name, sql) in OBJECTS.iter().rev() {
        if named(name) || objects.iter().any(|later| mentions(later, name)) {
            objects.push(sql);
        }
    }
    made.extend(objects.iter().rev().map(|sql| (*sql).to_string()));
    made.extend(ROLES.into_iter().filter(|name| named(name)).flat_map(role));
    if !named(SCHEMAS[1]) {
        return made;
    }
    let [first, second] = SCHEMAS;
    let mut all = vec![
        format!("DROP DATABASE IF EXISTS {second}"),
        format!("CREATE DATABASE {second} CHARACTER SET cp1250"),
        format!("USE {second}"),
    ];
    all.extend(made.iter().cloned());
    all.push(format!("USE {first}"));
    all.append(&mut made);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_object_uses_is_made_before_it() {
        let made = wanted(&["CALL marking_procedure(1)".into()]);
        let begins: Vec<String> = made.iter().map(|sql| sql[..16].to_string()).collect();
        assert_eq!(
            begins,
            ["CREATE TABLE mar", "CREATE TRIGGER m", "CREATE PROCEDURE"]
        );
    }
}
