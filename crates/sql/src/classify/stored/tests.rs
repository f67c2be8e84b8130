//! Bodies, views and definitions as people write them, and as servers give them back.

use super::*;
use crate::lex::Server;

const MARIADB: LexMode = LexMode {
    ansi_quotes: false,
    no_backslash_escapes: false,
    ignore_space: false,
    no_schema: false,
    charset: crate::lex::Charset::Utf8,
    server: Server::MariaDb(101_119),
};
const MYSQL: LexMode = LexMode {
    server: Server::MySql(90_704),
    ..MARIADB
};

fn scanned(text: &str, mode: LexMode) -> Scanned {
    let params = [fold(b"p_in")].into_iter().collect();
    body(text.as_bytes(), mode, &params)
}

fn calls(all: &BTreeSet<Call>) -> Vec<String> {
    let show = |call: &Call| {
        let schema = call.path.schema.as_deref().unwrap_or(b"-");
        let name = [schema, b".", &call.path.name].concat();
        let name = String::from_utf8_lossy(&name).into_owned();
        match (call.procedure, call.perhaps) {
            (true, _) => format!("call {name}"),
            (_, true) => format!("{name}?"),
            _ => name,
        }
    };
    all.iter().map(show).collect()
}

#[test]
fn clean_bodies() {
    for text in [
        "SET NEW.a = UPPER(OLD.a), NEW.b = COALESCE(NEW.b, @default_b)",
        "RETURN 5",
        "RETURN (SELECT MAX(v) FROM t WHERE id = p_in)",
        "BEGIN SET p_in = p_in + 1; RETURN CONCAT('GET_LOCK(', p_in, ')'); END",
        "BEGIN DECLARE a, b INT DEFAULT 0; DECLARE c DATETIME(6); DECLARE d VARCHAR(20); \
         SET a = 1, b = (@x = 5); SELECT v, w INTO a, b FROM t LIMIT 1; SET c = NOW(6); END",
        "BEGIN DECLARE done INT; DECLARE c CURSOR FOR SELECT v FROM t WHERE w = @who; \
         DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; OPEN c; \
         read_all: LOOP FETCH c INTO p_in; IF done THEN LEAVE read_all; END IF; END LOOP; \
         CLOSE c; END",
        "IF NEW.a < 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF",
        "BEGIN CASE NEW.a WHEN 1 THEN SET NEW.b = 2; ELSE SET NEW.b = CASE WHEN NEW.c THEN 1 \
         ELSE start END; END CASE; END",
        "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION, SQLSTATE VALUE '23000', 1062 BEGIN END; \
         WHILE p_in > 0 DO SET p_in = p_in - 1; END WHILE; REPEAT SET p_in = 1; \
         UNTIL p_in END REPEAT; END",
        "BEGIN DECLARE n INT; DO SLEEP(n); END",
        "BEGIN -- GET_LOCK('a', 0)\n /* SET @x = 1; */ SET NEW.`get_lock` = 1; END",
        "RETURN IF(p_in IS NULL, LAST_INSERT_ID(), 0)",
    ] {
        for mode in [MARIADB, MYSQL] {
            let found = scanned(text, mode);
            assert_eq!(found.verdict, Verdict::Clean, "{text}: {}", found.why);
            assert_eq!(calls(&found.calls), [""; 0], "{text}");
        }
    }
}

#[test]
fn bodies_that_change_rows_alone() {
    for text in [
        "INSERT INTO log (a, b) VALUES (NEW.a, @who)",
        "BEGIN UPDATE counts SET n = n + 1 WHERE id = NEW.id; DELETE FROM t; END",
        "INSERT log(a) SET a = 1 ON DUPLICATE KEY UPDATE a = VALUES(a) + 1",
        "BEGIN DECLARE EXIT HANDLER FOR 1062 UPDATE t SET a = 5; REPLACE t (a) SELECT 1; END",
        "BEGIN DECLARE n INT; DELETE FROM t; GET DIAGNOSTICS n = ROW_COUNT; END",
        "WITH w (a) AS (SELECT 1) UPDATE t, w SET t.a = w.a",
    ] {
        for mode in [MARIADB, MYSQL] {
            let found = scanned(text, mode);
            assert_eq!(found.verdict, Verdict::Writes, "{text}: {}", found.why);
            assert_eq!(calls(&found.calls), [""; 0], "{text}");
        }
    }
}

#[test]
fn bodies_that_pin() {
    let cases = [
        ("DO GET_LOCK('a', 0)", "GET_LOCK()"),
        (
            "BEGIN IF NEW.a THEN DO RELEASE_ALL_LOCKS(); END IF; END",
            "RELEASE_ALL_LOCKS()",
        ),
        ("SELECT NEW.a INTO @last", "INTO @last"),
        ("SELECT a, b INTO p_in, @`last` FROM t", "INTO @`last`"),
        ("BEGIN FETCH c INTO @x; END", "INTO @x"),
        ("SET NEW.a = (@n := @n + 1)", "@n :="),
        ("SET @x = 5", "SET @x"),
        ("SET @größe = 5", "SET @größe"),
        ("SET SESSION sql_notes = 0", "SET SESSION"),
        ("SET sql_mode = ''", "SET sql_mode"),
        ("SET @@GLOBAL.wait_timeout = 5", "SET @@GLOBAL.wait_timeout"),
        ("SET NEW = 5", "SET NEW"),
        ("COMMIT RELEASE", "COMMIT"),
        ("ROLLBACK AND NO CHAIN RELEASE", "ROLLBACK"),
        ("START SLAVE", "START"),
        ("SHOW TABLES", "SHOW"),
        ("BEGIN CALL p(1, @out); END", "CALL @out"),
        (
            "BEGIN DELETE FROM t; GET DIAGNOSTICS @n = NUMBER; END",
            "DIAGNOSTICS @n",
        ),
        ("SET ROLE NONE", "SET ROLE"),
        ("SET RESOURCE GROUP g", "SET RESOURCE"),
        ("LOCK INSTANCE FOR BACKUP", "LOCK"),
        ("CREATE TEMPORARY TABLE t (a INT)", "CREATE"),
        (
            "BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND LOCK INSTANCE FOR BACKUP; END",
            "LOCK",
        ),
        (
            "BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND SET ROLE a; END",
            "SET ROLE",
        ),
        ("PREPARE s FROM 'DO 1'", "PREPARE"),
        (
            "SET session_track_state_change = 0",
            "SET session_track_state_change",
        ),
        ("SET @@timestamp = 5", "SET @@timestamp"),
        (
            "SET STATEMENT max_statement_time = 1 FOR SELECT 1",
            "SET STATEMENT",
        ),
        ("SET NAMES latin1", "SET NAMES"),
        ("SET SESSION TRANSACTION READ ONLY", "SET SESSION"),
        (
            "BEGIN SET NEW.a = 'unterminated; END",
            "servers read it in different ways",
        ),
        ("SET NEW.a = 1 /*!", "servers read it in different ways"),
        ("frobnicate()", "frobnicate"),
    ];
    for (text, why) in cases {
        for mode in [MARIADB, MYSQL] {
            let found = scanned(text, mode);
            assert_eq!(found.verdict, Verdict::Pins, "{text}");
            assert_eq!(found.why, why, "{text}");
        }
    }
}

#[test]
fn sequences_pin() {
    for text in [
        "DO NEXTVAL(s)",
        "SET NEW.a = NEXT VALUE FOR s",
        "RETURN s.nextval",
    ] {
        assert_eq!(scanned(text, MARIADB).verdict, Verdict::Pins, "{text}");
    }
}

#[test]
fn transactions_of_a_body_are_clean() {
    for text in [
        "BEGIN START TRANSACTION; TRUNCATE t; COMMIT AND NO CHAIN; END",
        "BEGIN SAVEPOINT a; ROLLBACK TO release; RELEASE SAVEPOINT a; END",
        "BEGIN COMMIT NO RELEASE; SELECT SQL_CALC_FOUND_ROWS 1; END",
    ] {
        assert_eq!(scanned(text, MYSQL).verdict, Verdict::Clean, "{text}");
    }
}

#[test]
fn last_insert_id_is_set_where_it_has_an_argument() {
    for (text, sets) in [
        ("DO LAST_INSERT_ID(5)", true),
        ("RETURN LAST_INSERT_ID()", false),
    ] {
        let found = scanned(text, MARIADB);
        assert_eq!(
            (found.verdict, found.sets_insert_id),
            (Verdict::Clean, sets)
        );
    }
}

#[test]
fn a_declared_name_hides_a_variable_of_the_server() {
    let text = "BEGIN DECLARE a, max_error_count INT; SET max_error_count = 5; END";
    assert_eq!(scanned(text, MARIADB).verdict, Verdict::Clean);
    let text = "BEGIN DECLARE a INT; SET a = 1, max_error_count = 5; END";
    assert_eq!(scanned(text, MARIADB).why, "SET max_error_count");
}

#[test]
fn calls_are_told_by_name() {
    let text = "BEGIN CALL audit; CALL `Other`.`p``q`(1); SET NEW.a = f(1) + db.G (2); \
                RETURN count (1) + point(1, 2) + `max`(3); END";
    let found = scanned(text, MARIADB);
    let expected = [
        "-.count",
        "-.f",
        "-.max",
        "-.point?",
        "db.g",
        "call -.audit",
        "call other.p`q",
    ];
    assert_eq!(calls(&found.calls), expected);
    assert_eq!(found.verdict, Verdict::Clean, "{}", found.why);
    for text in ["SET NEW.a = pack.age.f(1)", "CALL pack.age.p(1)"] {
        let found = scanned(text, MARIADB);
        let call = found.calls.first().unwrap();
        assert_eq!(
            &*call.path.name, BEYOND_ASCII,
            "a package's routine has no name here"
        );
    }
}

#[test]
fn views_and_columns() {
    for text in [
        "select `t`.`a` AS `a`,concat(`t`.`b`,'get_lock(') AS `b` from `t` where `t`.`a` in (1,2)",
        "with recursive r(`n`) as (select 1 AS `n` union select `r`.`n` + 1 from `r`) \
         select `r`.`n` AS `n` from `r`",
        "select `t`.`x` AS `x` from (select 1 AS `1`) `t` (`x`)",
        "current_timestamp()",
        "@`x`",
    ] {
        let found = expression(text.as_bytes(), MARIADB);
        assert_eq!(found.verdict, Verdict::Clean, "{text}: {}", found.why);
        assert_eq!(calls(&found.calls), [""; 0], "{text}");
    }
    for text in [
        "select get_lock('q',0) AS `GET_LOCK('q',0)`",
        "select last_insert_id(9) AS `x`",
        "nextval(`d`.`sq`)",
        "@x:=5",
    ] {
        let found = expression(text.as_bytes(), MARIADB);
        assert_eq!(found.verdict, Verdict::Pins, "{text}");
    }
    let calls_f = expression(b"select `f`() AS `q`", MYSQL).calls;
    assert_eq!(calls(&calls_f), ["-.f"]);
}

#[test]
fn a_view_asks_for_what_was_counted_before() {
    for (text, mariadb, mysql) in [
        ("select found_rows() AS `f`", true, true),
        ("select `f`(row_count()) from `t`", true, true),
        ("select `found_rows` from `t`", false, false),
        ("select `FOUND_ROWS`()", true, true),
        ("select `s`.`found_rows`()", false, false),
        ("select `row_count`()", true, false),
    ] {
        for (mode, asks) in [(MARIADB, mariadb), (MYSQL, mysql)] {
            let found = expression(text.as_bytes(), mode);
            assert_eq!(!found.asks.is_empty(), asks, "{text}");
        }
    }
}

#[test]
fn names_beyond_ascii_are_one() {
    assert_eq!(&*fold("`Größe`".as_bytes()), BEYOND_ASCII);
    assert_eq!(&*fold(b"`A``B`"), b"a`b");
    let names: Vec<Folded> = names_in(b"INSERT INTO `Db`.T1 VALUES ('t2')", MARIADB).collect();
    let names: Vec<&[u8]> = names.iter().map(|name| &**name).collect();
    assert_eq!(names, [&b"insert"[..], b"into", b"db", b"t1", b"values"]);
}

/// Kind, schema and name, and what is left.
fn defined(sql: &str) -> Vec<String> {
    let found = definitions(sql.as_bytes(), MARIADB);
    let show = |one: &Definition| {
        let path = &one.path;
        let schema = path
            .schema
            .as_deref()
            .map_or("", |s| std::str::from_utf8(s).unwrap());
        let name = String::from_utf8_lossy(&path.name);
        format!("{:?} {schema}.{name} {:?}", one.kind, one.scanned.verdict)
    };
    found.list.iter().map(show).collect()
}

#[test]
fn definitions_are_read_from_their_statements() {
    let cases = [
        (
            "CREATE OR REPLACE DEFINER=`a`@`b` TRIGGER IF NOT EXISTS x.tr AFTER INSERT ON x.T \
             FOR EACH ROW FOLLOWS other DO GET_LOCK('a', 0)",
            "Trigger x.t Pins",
        ),
        (
            "CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW BEGIN SET NEW.a = 1; END",
            "Trigger .t Clean",
        ),
        (
            "CREATE FUNCTION f(a INT, b VARCHAR(5)) RETURNS CHAR(5) CHARSET utf8mb4 \
             DETERMINISTIC COMMENT 'x' SQL SECURITY INVOKER BEGIN SET a = 5; RETURN a; END",
            "Function .f Clean",
        ),
        (
            "CREATE FUNCTION f() RETURNS INT RETURN GET_LOCK('a', 0)",
            "Function .f Pins",
        ),
        (
            "CREATE PROCEDURE s.p(OUT a INT) SELECT 1 INTO a",
            "Procedure s.p Clean",
        ),
        ("CREATE PROCEDURE p() SET ROLE x", "Procedure .p Pins"),
        (
            "CREATE ALGORITHM=MERGE SQL SECURITY DEFINER VIEW v (a) AS SELECT GET_LOCK('a', 0)",
            "View .v Pins",
        ),
        ("ALTER VIEW v AS SELECT 1", "View .v Clean"),
        (
            "CREATE TABLE t (a INT DEFAULT NEXTVAL(s), KEY k (a))",
            "Column .t Pins",
        ),
        (
            "ALTER TABLE s.t MODIFY a INT AS (@x := 5) VIRTUAL",
            "Column s.t Pins",
        ),
        ("CREATE TABLE IF NOT EXISTS u LIKE t", "Copy .u Clean"),
        ("RENAME TABLE t TO s.u", "Copy s.u Clean"),
        ("ALTER TABLE t RENAME u", "Copy .u Clean"),
    ];
    for (sql, expected) in cases {
        let found = defined(sql);
        assert_eq!(found, [expected], "{sql}");
    }
    for sql in [
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(5), KEY k (v))",
        "ALTER TABLE t ADD COLUMN w INT DEFAULT 5",
        "DROP TRIGGER tr",
        "CREATE INDEX i ON t (v)",
        "SELECT 'CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW DO 1'",
    ] {
        assert_eq!(defined(sql), [""; 0], "{sql}");
    }
    let several = "DROP TRIGGER IF EXISTS a; CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW \
                   SET @x = 5; CREATE VIEW v AS SELECT 1";
    assert_eq!(defined(several), ["Trigger .t Pins", "View .v Clean"]);
    assert!(definitions(b"DROP VIEW v", MARIADB).code);
    assert!(!definitions(b"CREATE TABLE t (a INT)", MARIADB).code);
    assert!(definitions(b"DROP TABLE t", MARIADB).tables);
}

#[test]
fn what_is_read_of_the_statement_before_is_found() {
    for (text, asks) in [
        ("SELECT ROW_COUNT()", true),
        ("BEGIN UPDATE t SET a = 1; SELECT ROW_COUNT(); END", false),
        (
            "BEGIN IF p_in THEN UPDATE t SET a = 1; END IF; SELECT ROW_COUNT(); END",
            true,
        ),
        (
            "BEGIN IF p_in THEN DO 1; ELSEIF 2 THEN DELETE FROM t; ELSE DO 1; END IF; \
             SELECT ROW_COUNT(); END",
            false,
        ),
        (
            "BEGIN DELETE FROM t; IF p_in THEN CALL p(); END IF; SELECT ROW_COUNT(); END",
            false,
        ),
        (
            "BEGIN IF p_in THEN UPDATE t SET a = 1; IF ROW_COUNT() = 0 THEN SET p_in = 1; \
             END IF; ELSE SET p_in = ROW_COUNT(); END IF; END",
            true,
        ),
        (
            "BEGIN IF p_in THEN UPDATE t SET a = 1; IF ROW_COUNT() = 0 THEN SET p_in = 1; \
             END IF; END IF; END",
            false,
        ),
        (
            "BEGIN IF p_in THEN DO 1; ELSEIF 2 THEN DELETE FROM t; END IF; \
             SELECT ROW_COUNT(); END",
            true,
        ),
        (
            "BEGIN CASE p_in WHEN 1 THEN DO 1; WHEN 2 THEN DO 2; END CASE; SELECT ROW_COUNT(); END",
            false,
        ),
        (
            "BEGIN CASE p_in WHEN 1 THEN DO 1; WHEN 2 THEN BEGIN END; END CASE; \
             SELECT ROW_COUNT(); END",
            true,
        ),
        (
            "BEGIN a: LOOP UPDATE t SET a = 1; SET p_in = p_in + ROW_COUNT(); \
             IF ROW_COUNT() = 0 THEN LEAVE a; END IF; END LOOP; SELECT ROW_COUNT(); END",
            false,
        ),
        (
            "BEGIN a: LOOP IF p_in THEN LEAVE a; END IF; DO 1; END LOOP; SELECT ROW_COUNT(); END",
            true,
        ),
        (
            "BEGIN UPDATE t SET a = 1; a: BEGIN LEAVE a; END; SELECT ROW_COUNT(); END",
            false,
        ),
        (
            "BEGIN a: BEGIN LEAVE a; DO 1; END; SELECT ROW_COUNT(); END",
            true,
        ),
        (
            "BEGIN WHILE p_in DO UPDATE t SET a = 1; END WHILE; SELECT ROW_COUNT(); END",
            true,
        ),
        (
            "BEGIN REPEAT UPDATE t SET a = 1; UNTIL ROW_COUNT() = 0 END REPEAT; END",
            false,
        ),
        (
            "BEGIN a: LOOP DELETE FROM t; IF ROW_COUNT() = 0 THEN LEAVE a; END IF; END LOOP; END",
            false,
        ),
        (
            "BEGIN DECLARE EXIT HANDLER FOR NOT FOUND DO 1; SELECT ROW_COUNT(); END",
            true,
        ),
        (
            "BEGIN DECLARE n INT; INSERT INTO t VALUES (1); GET DIAGNOSTICS n = ROW_COUNT; END",
            false,
        ),
        ("SELECT FOUND_ROWS()", true),
        ("BEGIN UPDATE t SET a = 1; SELECT FOUND_ROWS(); END", true),
        ("BEGIN SELECT 1; SELECT FOUND_ROWS(); END", false),
        ("RETURN ROW_COUNT()", true),
        (
            "INSERT INTO row_count(a) SELECT found_rows FROM found_rows",
            false,
        ),
        ("SELECT row_count, found_rows FROM t", false),
        (
            "RETURN LAST_INSERT_ID() + CONNECTION_ID() + @@GLOBAL.wait_timeout",
            false,
        ),
    ] {
        for mode in [MARIADB, MYSQL] {
            let found = scanned(text, mode);
            assert_eq!(!found.asks.is_empty(), asks, "{text}");
        }
    }
}

#[test]
fn conditions_of_before_are_cleared_by_mysql_alone() {
    let asks = |text: &str, mode| !scanned(text, mode).asks.is_empty();
    for text in [
        "SELECT @@warning_count",
        "BEGIN GET DIAGNOSTICS p_in = NUMBER; END",
        "SHOW WARNINGS",
        "BEGIN IF 1 THEN SHOW ERRORS LIMIT 1; END IF; END",
        "BEGIN SHOW COUNT(*) WARNINGS; END",
    ] {
        assert!(asks(text, MARIADB) && !asks(text, MYSQL), "{text}");
    }
    for text in [
        "SELECT warnings, errors FROM t",
        "BEGIN DELETE FROM t; SHOW WARNINGS; END",
        "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN \
         GET DIAGNOSTICS CONDITION 1 p_in = MYSQL_ERRNO; END; CALL q(); END",
    ] {
        assert!(!asks(text, MARIADB), "{text}");
    }
    let deep = "BEGIN ".repeat(5000) + &"END; ".repeat(5000);
    assert!(asks(&deep, MARIADB), "what is too deep is not followed");
}

#[test]
fn questions_of_a_text_are_found_in_whatever_block_they_stand() {
    for (text, asks) in [
        (
            "SET STATEMENT a = 1 FOR IF 1 THEN SHOW WARNINGS; END IF",
            Reads::DIAGNOSTICS,
        ),
        ("BEGIN NOT ATOMIC SELECT ROW_COUNT(); END", Reads::ROW_COUNT),
        ("SELECT FOUND_ROWS(); 'x", Reads::FOUND_ROWS),
        ("IF 1 THEN DO 1; END IF", Reads::NONE),
    ] {
        assert_eq!(asked_in(text.as_bytes(), MARIADB), asks, "{text}");
    }
}

#[test]
fn a_procedure_that_may_count_nothing_is_found() {
    for (text, uncounted) in [
        ("BEGIN END", true),
        ("BEGIN SET p_in = 5; END", true),
        ("BEGIN SELECT 1; END", false),
        ("UPDATE t SET a = 1", false),
        ("BEGIN IF p_in THEN DO 1; END IF; END", true),
        (
            "BEGIN IF p_in THEN DO 1; ELSE INSERT INTO t VALUES (1); END IF; END",
            false,
        ),
        ("a: BEGIN IF p_in THEN LEAVE a; END IF; DO 1; END", true),
        ("a: BEGIN DO 1; IF p_in THEN LEAVE a; END IF; END", false),
    ] {
        assert_eq!(scanned(text, MYSQL).uncounted, uncounted, "{text}");
    }
}

#[test]
fn a_text_says_what_it_calls() {
    for (sql, expected) in [
        ("CALL p", "call -.p"),
        (
            "CALL `Db` . `P`(f(1), (SELECT g()), @a)",
            "-.f -.g call db.p",
        ),
        (
            "SELECT f(1), count(*) FROM t WHERE a IN (SELECT h(2))",
            "-.f -.h",
        ),
        ("INSERT INTO t (a) VALUES (f(1))", "-.f"),
        ("SET @a = 1; CALL p(@a); CALL q()", "call -.p call -.q"),
        ("SET STATEMENT a = 1 FOR CALL p()", "call -.p"),
    ] {
        let found = calls_in(sql.as_bytes(), MARIADB).unwrap();
        assert_eq!(calls(&found).join(" "), expected, "{sql}");
    }
    assert_eq!(calls_in(b"CALL p() /*! , '", MARIADB), None);
}
