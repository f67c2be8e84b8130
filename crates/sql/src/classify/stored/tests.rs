//! Bodies, views and definitions as people write them, and as servers give them back.

use super::*;
use crate::classify::classify;

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

fn judged(text: &str, mode: LexMode) -> Judged {
    let params = [fold(b"p_in")].into_iter().collect();
    body(text.as_bytes(), mode, &params)
}

fn calls(judged: &Judged) -> Vec<String> {
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
    judged.calls.iter().map(show).collect()
}

#[test]
fn bodies_that_leave_nothing() {
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
        "BEGIN DECLARE n INT; GET DIAGNOSTICS n = ROW_COUNT; DO SLEEP(0); SET GLOBAL \
         max_connections = 5; SET @@GLOBAL.wait_timeout = 5; END",
        "BEGIN -- GET_LOCK('a', 0)\n /* SET @x = 1; */ SET NEW.`get_lock` = 1; END",
        "RETURN IF(p_in IS NULL, LAST_INSERT_ID(), ROW_COUNT())",
    ] {
        for mode in [MARIADB, MYSQL] {
            let found = judged(text, mode);
            assert_eq!(found.leaves, Leaves::Nothing, "{text}: {}", found.why);
            assert_eq!(calls(&found), [""; 0], "{text}");
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
        "WITH w (a) AS (SELECT 1) UPDATE t, w SET t.a = w.a",
    ] {
        for mode in [MARIADB, MYSQL] {
            let found = judged(text, mode);
            assert_eq!(found.leaves, Leaves::Rows, "{text}: {}", found.why);
            assert_eq!(calls(&found), [""; 0], "{text}");
        }
    }
}

#[test]
fn bodies_that_leave_something_unseen() {
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
        ("DO LAST_INSERT_ID(77)", "LAST_INSERT_ID(...)"),
        ("BEGIN CALL p(1, @out); END", "CALL @out"),
        ("GET DIAGNOSTICS @n = NUMBER", "GET DIAGNOSTICS @n"),
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
        ("SET SESSION TRANSACTION READ ONLY", "SET TRANSACTION"),
        (
            "BEGIN SET NEW.a = 'unterminated; END",
            "servers read it in different ways",
        ),
        ("SET NEW.a = 1 /*!", "servers read it in different ways"),
        ("frobnicate()", "frobnicate"),
    ];
    for (text, why) in cases {
        for mode in [MARIADB, MYSQL] {
            let found = judged(text, mode);
            assert!(found.leaves.is_unseen(), "{text}: {:?}", found.leaves);
            assert_eq!(found.why, why, "{text}");
        }
    }
}

#[test]
fn what_mysql_reports_is_left_to_its_trackers() {
    for text in [
        "SET @@max_error_count = 0",
        "SET SESSION sql_notes = 0",
        "BEGIN SET sql_mode = ''; END",
    ] {
        assert_eq!(judged(text, MYSQL).leaves, Leaves::Nothing, "{text}");
        assert!(judged(text, MARIADB).leaves.is_unseen(), "{text}");
    }
    let unknown = LexMode {
        server: Server::Unknown,
        ..MARIADB
    };
    for mode in [unknown, MYSQL, MARIADB] {
        assert_eq!(judged("SET @x = 5", mode).leaves, Leaves::ReadBack);
    }
    assert_eq!(judged("SET sql_notes = 5", unknown).leaves, Leaves::Session);
    for text in [
        "DO NEXTVAL(s)",
        "SET NEW.a = NEXT VALUE FOR s",
        "RETURN s.nextval",
    ] {
        assert_eq!(judged(text, MARIADB).leaves, Leaves::Session, "{text}");
    }
}

#[test]
fn a_declared_name_hides_a_variable_of_the_server() {
    let text = "BEGIN DECLARE a, max_error_count INT; SET max_error_count = 5; END";
    assert_eq!(judged(text, MARIADB).leaves, Leaves::Nothing);
    let text = "BEGIN DECLARE a INT; SET a = 1, max_error_count = 5; END";
    assert_eq!(judged(text, MARIADB).why, "SET max_error_count");
}

#[test]
fn calls_are_told_by_name() {
    let text = "BEGIN CALL audit; CALL `Other`.`p``q`(1); SET NEW.a = f(1) + db.G (2); \
                RETURN count (1) + point(1, 2) + `max`(3); END";
    let found = judged(text, MARIADB);
    let expected = [
        "-.count",
        "-.f",
        "-.max",
        "-.point?",
        "db.g",
        "call -.audit",
        "call other.p`q",
    ];
    assert_eq!(calls(&found), expected);
    assert_eq!(found.leaves, Leaves::Nothing, "{}", found.why);
    assert!(judged("SET NEW.a = pack.age.f(1)", MARIADB).leaves == Leaves::Session);
}

#[test]
fn views_and_columns() {
    let leaves = |text: &str| expression(text.as_bytes(), MARIADB).leaves;
    for text in [
        "select `t`.`a` AS `a`,concat(`t`.`b`,'get_lock(') AS `b` from `t` where `t`.`a` in (1,2)",
        "with recursive r(`n`) as (select 1 AS `n` union select `r`.`n` + 1 from `r`) \
         select `r`.`n` AS `n` from `r`",
        "select `t`.`x` AS `x` from (select 1 AS `1`) `t` (`x`)",
        "current_timestamp()",
        "@`x`",
    ] {
        let found = expression(text.as_bytes(), MARIADB);
        assert_eq!(found.leaves, Leaves::Nothing, "{text}: {}", found.why);
        assert_eq!(calls(&found), [""; 0], "{text}");
    }
    for text in [
        "select get_lock('q',0) AS `GET_LOCK('q',0)`",
        "select last_insert_id(9) AS `x`",
        "nextval(`d`.`sq`)",
        "@x:=5",
    ] {
        assert!(leaves(text).is_unseen(), "{text}");
    }
    assert_eq!(calls(&expression(b"select `f`() AS `q`", MYSQL)), ["-.f"]);
}

#[test]
fn a_view_asks_for_what_was_counted_before() {
    let asks = |text: &str| expression(text.as_bytes(), MARIADB).asks;
    assert_eq!(asks("select found_rows() AS `f`"), Reads::FOUND_ROWS);
    assert_eq!(asks("select `f`(row_count()) from `t`"), Reads::ROW_COUNT);
    assert_eq!(asks("select `found_rows` from `t`"), Reads::NONE);
    assert_eq!(asks("select `FOUND_ROWS`()"), Reads::FOUND_ROWS);
    assert_eq!(asks("select `s`.`found_rows`()"), Reads::NONE);
    assert_eq!(
        calls(&expression(b"select `row_count`()", MARIADB)),
        [""; 0]
    );
    let on_mysql = expression(b"select `row_count`()", MYSQL);
    assert_eq!(
        (on_mysql.asks, calls(&on_mysql)),
        (Reads::NONE, vec!["-.row_count".into()])
    );
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
        format!("{:?} {schema}.{name} {:?}", one.kind, one.judged.leaves)
    };
    found.list.iter().map(show).collect()
}

#[test]
fn definitions_are_read_from_their_statements() {
    let cases = [
        (
            "CREATE OR REPLACE DEFINER=`a`@`b` TRIGGER IF NOT EXISTS x.tr AFTER INSERT ON x.T \
             FOR EACH ROW FOLLOWS other DO GET_LOCK('a', 0)",
            "Trigger x.t Session",
        ),
        (
            "CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW BEGIN SET NEW.a = 1; END",
            "Trigger .t Nothing",
        ),
        (
            "CREATE FUNCTION f(a INT, b VARCHAR(5)) RETURNS CHAR(5) CHARSET utf8mb4 \
             DETERMINISTIC COMMENT 'x' SQL SECURITY INVOKER BEGIN SET a = 5; RETURN a; END",
            "Function .f Nothing",
        ),
        (
            "CREATE FUNCTION f() RETURNS INT RETURN GET_LOCK('a', 0)",
            "Function .f Session",
        ),
        (
            "CREATE PROCEDURE s.p(OUT a INT) SELECT 1 INTO a",
            "Procedure s.p Nothing",
        ),
        ("CREATE PROCEDURE p() SET ROLE x", "Procedure .p Session"),
        (
            "CREATE ALGORITHM=MERGE SQL SECURITY DEFINER VIEW v (a) AS SELECT GET_LOCK('a', 0)",
            "View .v Session",
        ),
        ("ALTER VIEW v AS SELECT 1", "View .v Nothing"),
        (
            "CREATE TABLE t (a INT DEFAULT NEXTVAL(s), KEY k (a))",
            "Column .t Session",
        ),
        (
            "ALTER TABLE s.t MODIFY a INT AS (@x := 5) VIRTUAL",
            "Column s.t ReadBack",
        ),
        ("CREATE TABLE IF NOT EXISTS u LIKE t", "Copy .u Nothing"),
        ("RENAME TABLE t TO s.u", "Copy s.u Nothing"),
        ("ALTER TABLE t RENAME u", "Copy .u Nothing"),
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
    assert_eq!(defined(several), ["Trigger .t Session", "View .v Nothing"]);
    assert!(definitions(b"DROP VIEW v", MARIADB).code);
    assert!(!definitions(b"CREATE TABLE t (a INT)", MARIADB).code);
    assert!(definitions(b"DROP TABLE t", MARIADB).tables);
}

/// User variables that a body may set, and what it leaves.
fn followed(text: &str, mode: LexMode) -> (Leaves, String) {
    let found = judged(text, mode);
    let names: Vec<&str> = found
        .sets
        .iter()
        .map(|name| std::str::from_utf8(name).unwrap())
        .collect();
    (found.leaves, names.join(" "))
}

#[test]
fn what_a_caller_can_follow_is_told_apart() {
    use Leaves::{Nothing, ReadBack, Reported, Rows, Session};
    for (text, mariadb, mysql, sets) in [
        ("SET @x = 5, @`Y` = 6", ReadBack, ReadBack, "x y"),
        ("SELECT 1, 2 INTO @a, @b", ReadBack, ReadBack, "a b"),
        ("DO @n := 5", ReadBack, ReadBack, "n"),
        ("CALL p(@out)", ReadBack, ReadBack, "out"),
        ("GET DIAGNOSTICS @n = NUMBER", ReadBack, ReadBack, "n"),
        ("BEGIN FETCH c INTO p_in, @x; END", ReadBack, ReadBack, "x"),
        ("SET @`a b` = 5", Session, Session, ""),
        ("SET @größe = 5", Session, Session, ""),
        ("SET SESSION sql_notes = 0", Reported, Nothing, ""),
        ("SET @@SESSION.sql_notes = 0", Reported, Nothing, ""),
        ("SET @@sql_notes = 0", Session, Nothing, ""),
        ("SET sql_auto_is_null = 1", Session, Session, ""),
        ("DO LAST_INSERT_ID(5)", ReadBack, ReadBack, ""),
        ("SELECT SQL_CALC_FOUND_ROWS 1", ReadBack, ReadBack, ""),
        (
            "BEGIN START TRANSACTION; INSERT INTO t VALUES (1); COMMIT AND NO CHAIN; END",
            Rows,
            Rows,
            "",
        ),
        (
            "BEGIN SAVEPOINT a; ROLLBACK TO release; RELEASE SAVEPOINT a; END",
            Nothing,
            Nothing,
            "",
        ),
        (
            "BEGIN COMMIT NO RELEASE; TRUNCATE t; END",
            Nothing,
            Nothing,
            "",
        ),
        ("COMMIT RELEASE", Session, Session, ""),
        ("ROLLBACK AND NO CHAIN RELEASE", Session, Session, ""),
        ("START SLAVE", Session, Session, ""),
        ("CALL db.pack.p()", Session, Session, ""),
    ] {
        let expected = |leaves| (leaves, sets.to_owned());
        assert_eq!(
            followed(text, MARIADB),
            expected(mariadb),
            "{text} on MariaDB"
        );
        assert_eq!(followed(text, MYSQL), expected(mysql), "{text} on MySQL");
    }
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
            "BEGIN CASE p_in WHEN 1 THEN DO 1; WHEN 2 THEN DO 2; END CASE; SELECT ROW_COUNT(); END",
            false,
        ),
        (
            "BEGIN CASE p_in WHEN 1 THEN DO 1; WHEN 2 THEN BEGIN END; END CASE; \
             SELECT ROW_COUNT(); END",
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
            assert_eq!(!judged(text, mode).asks.is_empty(), asks, "{text}");
        }
    }
}

#[test]
fn conditions_of_before_are_cleared_by_mysql_alone() {
    for text in [
        "SELECT @@warning_count",
        "BEGIN GET DIAGNOSTICS p_in = NUMBER; END",
        "SHOW WARNINGS",
        "BEGIN IF 1 THEN SHOW ERRORS LIMIT 1; END IF; END",
        "BEGIN SHOW COUNT(*) WARNINGS; END",
    ] {
        assert!(
            !judged(text, MARIADB).asks.is_empty() && judged(text, MYSQL).asks.is_empty(),
            "{text}"
        );
    }
    for text in [
        "SELECT warnings, errors FROM t",
        "BEGIN DELETE FROM t; SHOW WARNINGS; END",
    ] {
        assert!(judged(text, MARIADB).asks.is_empty(), "{text}");
    }
    let handled = "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN \
                   GET DIAGNOSTICS CONDITION 1 p_in = MYSQL_ERRNO; END; CALL q(); END";
    assert!(judged(handled, MARIADB).asks.is_empty());
    let deep = format!(
        "{} SELECT 1; {}",
        "BEGIN ".repeat(5000),
        "END; ".repeat(5000)
    );
    assert!(
        !judged(&deep, MARIADB).asks.is_empty(),
        "what is too deep is not followed"
    );
}

#[test]
fn what_is_asked_behind_set_statement_is_found() {
    for (text, asks) in [
        (
            "SET STATEMENT a = 1 FOR IF 1 THEN SHOW WARNINGS; END IF",
            true,
        ),
        (
            "set statement a = (1 /* FOR */), b = 2 for SET STATEMENT c = 1 FOR \
             BEGIN NOT ATOMIC SHOW WARNINGS; END",
            true,
        ),
        ("SET STATEMENT a = 1 FOR IF 1 THEN DO 1; END IF", false),
        ("IF 1 THEN SHOW WARNINGS; END IF", true),
    ] {
        let found = classify(text.as_bytes(), MARIADB);
        let asked = asked_by(text.as_bytes(), MARIADB, &found).unwrap();
        assert_eq!(!asked.asks.is_empty(), asks, "{text}");
        assert_eq!(
            run_by(text.as_bytes(), MARIADB, &found).is_none(),
            found.passing
        );
    }
    let calls = "SET STATEMENT a = 1 FOR CALL p()";
    let found = classify(calls.as_bytes(), MARIADB);
    let asked = asked_by(calls.as_bytes(), MARIADB, &found).unwrap();
    assert_eq!(asked.calls.len(), 1);
    let waits = "SELECT f(id) FROM t FOR UPDATE NOWAIT";
    let found = classify(waits.as_bytes(), MARIADB);
    assert!(found.passing);
    assert_eq!(
        asked_by(waits.as_bytes(), MARIADB, &found)
            .unwrap()
            .calls
            .len(),
        1
    );
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
        assert_eq!(judged(text, MYSQL).uncounted, uncounted, "{text}");
    }
}

#[test]
fn a_text_says_what_it_runs() {
    let run = |sql: &str| {
        let found = crate::classify::classify(sql.as_bytes(), MARIADB);
        run_by(sql.as_bytes(), MARIADB, &found)
    };
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
        ("BEGIN NOT ATOMIC DECLARE x INT; CALL p(); END", "call -.p"),
        ("IF f() THEN CALL p(); END IF", "-.f call -.p"),
    ] {
        let found = run(sql).unwrap();
        assert!(found.leaves.is_followed(), "{sql}: {}", found.why);
        assert_eq!(calls(&found).join(" "), expected, "{sql}");
    }
    for sql in [
        "CALL a.b.c()",
        "SELECT a.b.c(1)",
        "SET STATEMENT max_statement_time = 1 FOR CALL p()",
        "SET NAMES latin1; CALL p()",
        "SET @@SESSION.`sql_mode` = ''; CALL p()",
        "CALL p() /*! , '",
    ] {
        assert_eq!(run(sql), None, "{sql}");
    }
    for sql in [
        "BEGIN NOT ATOMIC DO GET_LOCK('a', 0); END",
        "PREPARE s FROM 'SELECT 1'; CALL p()",
        "CALL p(); SET ROLE x",
        "BEGIN NOT ATOMIC PREPARE s FROM 'SELECT 1'; END",
        "BEGIN NOT ATOMIC SET ROLE x; END",
        "IF 1 THEN CREATE TEMPORARY TABLE t (a INT); END IF",
    ] {
        let found = run(sql).unwrap();
        assert!(!found.leaves.is_followed(), "{sql}");
    }
}
