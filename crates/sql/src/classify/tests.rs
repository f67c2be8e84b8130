//! Tables of statements and what they must be taken for, and random texts that must not panic.
//!
//! Verb, pin and reads of ordinary statements are in `tests/statements.txt`; the tables here hold
//! the other answers, and texts with bytes that a text file shows badly.

use super::PinCause as Pin;
use super::*;
use crate::lex::{Charset, Pairs, Server};

const GBK: Charset = Charset::MultiByte(Pairs::Gbk);
const MARIADB: LexMode = LexMode {
    ansi_quotes: false,
    no_backslash_escapes: false,
    ignore_space: false,
    no_schema: false,
    charset: Charset::Utf8,
    server: Server::MariaDb(101_119),
};
const MYSQL: LexMode = LexMode {
    server: Server::MySql(80_406),
    ..MARIADB
};

/// Every row of `tests/statements.txt`.
#[test]
fn statements_are_taken_for_what_they_are() {
    let table = include_str!("tests/statements.txt").replace("\n    ", " ");
    let mut rows = 0;
    for row in table
        .lines()
        .filter(|row| !row.is_empty() && !row.starts_with('#'))
    {
        let (columns, sql) = row.split_once(" | ").expect("a bar before the text");
        let columns: Vec<&str> = columns.split(' ').collect();
        let &[server, verb, pin, reads] = columns.as_slice() else {
            panic!("four columns: {row}");
        };
        let modes: &[LexMode] = match server {
            "both" => &[MARIADB, MYSQL],
            "mariadb" => &[MARIADB],
            "mysql" => &[MYSQL],
            _ => panic!("no such server: {row}"),
        };
        let sql = sql.replace("\\n", "\n").replace("\\\\", "\\");
        for &mode in modes {
            let found = classify(sql.as_bytes(), mode);
            let found_pin = kept(&found).map_or("-", Pin::name);
            let seen = (format!("{:?}", found.verb), found_pin, found.reads);
            assert_eq!(
                seen,
                (verb.to_owned(), pin, reads_named(reads)),
                "{row} {mode:?}"
            );
        }
        rows += 1;
    }
    assert!(rows > 350, "the table was read: {rows} rows");
}

#[test]
fn what_the_pool_watches_on_the_server_is_known_to_change() {
    for sql in [
        "SET GLOBAL max_connections = 5",
        "SET @@global.sql_mode = ''",
        "CREATE USER u IDENTIFIED BY 'x'",
        "ALTER USER u ACCOUNT LOCK",
        "DROP ROLE r",
        "RENAME USER u TO v",
        "GRANT SELECT ON t TO u",
        "REVOKE ALL ON *.* FROM u",
        "SET PASSWORD FOR u = 'x'",
        "SET DEFAULT ROLE ALL TO u",
        "FLUSH PRIVILEGES",
        "SELECT 1; DROP USER u",
    ] {
        for server in [MARIADB, MYSQL] {
            assert!(classify(sql.as_bytes(), server).changes_watched, "{sql}");
        }
    }
    for sql in [
        "SET SESSION sql_mode = ''",
        "CREATE TABLE t (a INT)",
        "SHOW GRANTS FOR u",
        "FLUSH TABLES",
        "SELECT user FROM mysql.user",
    ] {
        assert!(!classify(sql.as_bytes(), MYSQL).changes_watched, "{sql}");
    }
}

/// The cause of a pin, or that a user variable is named.
fn kept(found: &Statement) -> Option<Pin> {
    let variable = found.user_variables.then_some(Pin::UserVariable);
    found.pin.or(variable)
}

fn reads_named(names: &str) -> Reads {
    names.split('+').fold(Reads::NONE, |all, name| {
        all.union(match name {
            "-" => Reads::NONE,
            "last_insert_id" => Reads::LAST_INSERT_ID,
            "row_count" => Reads::ROW_COUNT,
            "found_rows" => Reads::FOUND_ROWS,
            "diagnostics" => Reads::DIAGNOSTICS,
            "connection_id" => Reads::CONNECTION_ID,
            "last_gtid" => Reads::LAST_GTID,
            "all" => Reads::ALL,
            _ => panic!("no such read: {name}"),
        })
    })
}

/// Functions without arguments are names where something stands in the parentheses.
#[test]
fn a_name_like_that_of_a_question_is_none() {
    for name in [
        "found_rows",
        "ROW_COUNT",
        "connection_id",
        "wsrep_last_seen_gtid",
        "`Found_Rows`",
        "`row_count`",
        "`connection_id`",
    ] {
        for (text, asks) in [
            ("CREATE TABLE %(a INT, KEY % (a))", false),
            ("INSERT INTO % () VALUES ()", false),
            ("WITH % (a) AS (SELECT 1) SELECT a FROM %", false),
            ("SELECT t.a FROM t AS %(a)", false),
            ("SELECT %, t.% FROM t WHERE % IN (1)", false),
            ("ALTER TABLE t ADD KEY %(a)", false),
            ("SELECT %()", true),
            ("SELECT % ( )", true),
            ("SELECT %/**/()", true),
            ("INSERT INTO %(a) VALUES (%())", true),
        ] {
            let text = text.replace('%', name);
            for ignore_space in [false, true] {
                let mode = LexMode {
                    ignore_space,
                    ..MARIADB
                };
                let found = classify(text.as_bytes(), mode);
                assert_eq!(!found.reads.is_empty(), asks, "{text}");
            }
        }
    }
}

#[test]
fn a_quoted_name_calls_a_function_of_the_server_that_is_no_keyword() {
    let stored_code = (Reads::ALL, Some(PinCause::StoredCode));
    for server in [MARIADB, MYSQL] {
        let row_count = match server.server.is_mysql() {
            true => stored_code,
            false => (Reads::ROW_COUNT, None),
        };
        for (sql, expected) in [
            ("SELECT `last_insert_id`()", (Reads::LAST_INSERT_ID, None)),
            ("SELECT `FOUND_ROWS` ()", (Reads::FOUND_ROWS, None)),
            ("SELECT `connection_id`()", (Reads::CONNECTION_ID, None)),
            (
                "SELECT `GET_LOCK`('a', 1)",
                (Reads::NONE, Some(PinCause::UserLock)),
            ),
            ("SELECT `row_count`()", row_count),
            ("SELECT s.`found_rows`()", stored_code),
            ("SELECT `s`.`get_lock`()", stored_code),
            ("SELECT `abs`(1)", stored_code),
        ] {
            let found = classify(sql.as_bytes(), server);
            assert_eq!((found.reads, found.pin), expected, "{sql}");
        }
    }
    let ansi = LexMode {
        ansi_quotes: true,
        ..MARIADB
    };
    let sql = br#"SELECT "found_rows"()"#;
    assert_eq!(classify(sql, ansi).reads, Reads::FOUND_ROWS);
    assert!(classify(sql, MARIADB).reads.is_empty());
}

#[test]
fn what_is_not_understood_pins() {
    for sql in [
        "FROBNICATE",
        "BINLOG 'x'",
        "`select` 1",
        "1",
        "@x",
        "lbl: BEGIN END",
        "(DELETE FROM t)",
        "select.1",
        "SELECT f 1.e(1)",
        "SELECT @@session . last_insert_id",
        "SELECT @@läst_insert_id",
        "SET ínsert_id=1",
        "SET `insert``id` = 1",
        "SET sql_mode='ANSI_QUOTES'; SELECT 1",
        "SET NAMES gbk; SELECT 'é'",
        "SET NAMES gbk; SELECT 1 AS `a`",
        "SET sql_mode='ANSI_QUOTES'; SET time_zone=\"x\"",
        "SET sql_mode='IGNORE_SPACE'; SET @a = f (1)",
        "SET sql_mode='ORACLE', NAMES gbk; BEGIN",
        "SELECT 1 /*! ; SELECT 2 */",
        "CREATE PROCEDURE p() BEGIN SELECT 1;",
        "CREATE PROCEDURE p() SELECT 1; END",
    ] {
        for mode in [MARIADB, MYSQL] {
            let found = classify(sql.as_bytes(), mode);
            assert!(
                found.pin == Some(Pin::Unknown) || sql == "@x",
                "{sql}: {found:?}"
            );
            assert!(
                found.insert_id == InsertId::MaySet && found.reads == Reads::ALL,
                "{sql}: {found:?}"
            );
        }
    }
}

#[test]
fn several_statements_are_all_judged() {
    for (sql, verb, pin) in [
        ("SELECT 1; SELECT 2", Verb::Select, None),
        ("SELECT 1;; SELECT 2;", Verb::Select, None),
        (
            "INSERT INTO t (a) VALUES (1); UPDATE t SET a = 1",
            Verb::Insert,
            None,
        ),
        (
            "SELECT 1; SET @x = 1",
            Verb::Select,
            Some(Pin::UserVariable),
        ),
        (
            "SELECT 1; LOCK TABLES t READ",
            Verb::Select,
            Some(Pin::LockTables),
        ),
        ("SELECT ';'; CALL p()", Verb::Select, Some(Pin::StoredCode)),
        (
            "CREATE TABLE t (a INT); SELECT f(1)",
            Verb::Ddl,
            Some(Pin::StoredCode),
        ),
        (
            "CREATE VIEW v AS SELECT @x; SELECT @x",
            Verb::Ddl,
            Some(Pin::UserVariable),
        ),
        (
            "CREATE PROCEDURE p() BEGIN SELECT 1; END; HANDLER t OPEN",
            Verb::Ddl,
            Some(Pin::Handler),
        ),
        (
            "SET STATEMENT a=1 FOR SELECT 1; XA START 'x'",
            Verb::Select,
            Some(Pin::Unknown),
        ),
    ] {
        let found = classify(sql.as_bytes(), MARIADB);
        assert_eq!(
            (found.verb, kept(&found), found.multi),
            (verb, pin, true),
            "{sql}"
        );
    }
    for sql in [
        "SELECT 1;",
        "SELECT 1 ; -- x",
        "SELECT ';'",
        "SELECT 1 /* ; SELECT 2 */",
        "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END;",
    ] {
        assert!(!classify(sql.as_bytes(), MARIADB).multi, "{sql}");
    }
}

#[test]
fn words_that_decide_what_a_query_leaves_are_marked() {
    const NONE: Marks = Marks::NONE;
    let cut = Marks::COUNTED.union(Marks::LIMIT).union(Marks::CUTS);
    let rows = Marks::COUNTED.union(Marks::FROM);
    for (sql, marks) in [
        ("SELECT 1", Marks::COUNTED),
        ("SELECT 1 FROM t", rows),
        ("SELECT a, b FROM t LIMIT 1", rows.union(Marks::LIMIT)),
        ("SELECT 1 LIMIT 1, 2", cut),
        ("SELECT 1 LIMIT 1 OFFSET 2", cut),
        ("SELECT 1 FROM DUAL", rows.union(Marks::FROM_INSIDE)),
        (
            "SELECT TRIM(a FROM b)",
            Marks::COUNTED.union(Marks::FROM_INSIDE),
        ),
        ("SELECT 1 INTO @a", Marks::COUNTED.union(Marks::INTO)),
        (
            "SELECT 1 UNION SELECT 2",
            Marks::COUNTED
                .union(Marks::CUTS)
                .union(Marks::SELECT_INSIDE),
        ),
        ("SET @a = (SELECT 1)", Marks::SELECT_INSIDE),
        (
            "SET PASSWORD = 'x'",
            Marks::FROM_INSIDE.union(Marks::CHECKED_LATE),
        ),
        ("SET b = DEFAULT", Marks::CHECKED_LATE),
        (
            "SET a = 1, b = DEFAULT",
            Marks::CHECKED_LATE.union(Marks::SETS_SEVERAL),
        ),
        ("SET a = `default`, b = 'DEFAULT'", Marks::SETS_SEVERAL),
        ("UPDATE t SET a = DEFAULT", Marks::SET_INSIDE),
        ("SHOW COUNT(*) WARNINGS", Marks::COUNTED),
        ("DESCRIBE t", Marks::COUNTED),
        ("DESC `select`", Marks::COUNTED),
        ("EXPLAIN SELECT 1", Marks::SELECT_INSIDE),
        ("EXPLAIN UPDATE t SET v = 1", Marks::SET_INSIDE),
        ("EXPLAIN EXTENDED DELETE FROM t", Marks::FROM),
        ("SHOW WARNINGS", NONE),
        ("VALUES (1)", NONE),
        ("(VALUES (1))", NONE),
        ("SET @a = (VALUES (1))", Marks::SELECT_INSIDE),
        (
            "INSERT t SET a = (VALUES (3))",
            Marks::SELECT_INSIDE.union(Marks::SET_INSIDE),
        ),
        (
            "INSERT t VALUES (1) RETURNING (VALUES (1))",
            Marks::SELECT_INSIDE.union(Marks::RETURNING),
        ),
        (
            "DELETE FROM t RETURNING i",
            Marks::FROM.union(Marks::RETURNING),
        ),
        (
            "UPDATE t SET j = JSON_VALUE(j, '$' RETURNING CHAR)",
            Marks::SET_INSIDE,
        ),
        ("SELECT 1 AS returning", Marks::COUNTED),
        ("DO 1 IN (VALUES (1), (2))", Marks::SELECT_INSIDE),
        (
            "INSERT t VALUES (1) ON DUPLICATE KEY UPDATE a = IF(VALUES(a) > a, VALUES(a), a)",
            NONE,
        ),
        ("SELECT `FROM`, 'LIMIT'", Marks::COUNTED),
        ("INSERT t VALUES (1.5, '.', `a.b`)", NONE),
        ("INSERT db.t VALUES (1)", Marks::QUALIFIED),
        ("INSERT `db` . `t` VALUES (1)", Marks::QUALIFIED),
    ] {
        assert_eq!(classify(sql.as_bytes(), MARIADB).marks, marks, "{sql}");
    }
}

#[test]
fn signal_reads_nothing_of_the_statement_before() {
    let reads = |sql: &str| classify(sql.as_bytes(), MARIADB).reads;
    assert_eq!(reads("SIGNAL SQLSTATE '45000'"), Reads::NONE);
    assert_eq!(reads("RESIGNAL"), Reads::DIAGNOSTICS);
    assert_eq!(reads("GET DIAGNOSTICS @n = NUMBER"), Reads::DIAGNOSTICS);
    let both = Reads::DIAGNOSTICS.union(Reads::ROW_COUNT);
    assert_eq!(reads("GET DIAGNOSTICS @n = row_count"), both);
}

#[test]
fn insert_ids_and_character_sets() {
    for (sql, expected) in [
        ("SELECT 1", InsertId::Keeps),
        ("UPDATE t SET a = 1", InsertId::Keeps),
        ("DELETE FROM t", InsertId::Keeps),
        ("SET autocommit=1", InsertId::Keeps),
        ("COMMIT", InsertId::Keeps),
        ("SELECT LAST_INSERT_ID()", InsertId::Keeps),
        ("SELECT LAST_INSERT_ID( )", InsertId::Keeps),
        ("SELECT LAST_INSERT_ID(5)", InsertId::MaySet),
        ("UPDATE t SET id = LAST_INSERT_ID(id + 1)", InsertId::MaySet),
        ("INSERT INTO t VALUES ()", InsertId::InOk),
        ("REPLACE INTO t VALUES ()", InsertId::InOk),
        ("LOAD DATA INFILE 'x' INTO TABLE t", InsertId::MaySet),
        ("CREATE TABLE t (a INT) SELECT 1", InsertId::MaySet),
        ("ANALYZE INSERT INTO t VALUES (1)", InsertId::InOk),
        ("SELECT 1; INSERT INTO t VALUES ()", InsertId::InOk),
        (
            "SET STATEMENT a=1 FOR INSERT INTO t VALUES ()",
            InsertId::InOk,
        ),
        ("CALL p()", InsertId::MaySet),
        ("SELECT f(1)", InsertId::MaySet),
        ("INSERT INTO t VALUES (LAST_INSERT_ID(7))", InsertId::MaySet),
        ("INSERT INTO t SELECT f(1)", InsertId::MaySet),
        ("WITH a AS (SELECT 1) SELECT * FROM a", InsertId::Keeps),
    ] {
        assert_eq!(
            classify(sql.as_bytes(), MARIADB).insert_id,
            expected,
            "{sql}"
        );
    }
    for (sql, expected) in [
        ("SET NAMES utf8mb4", true),
        ("set names 'latin1'", true),
        ("SET CHARACTER SET utf8", true),
        ("SET CHARSET utf8", true),
        ("SET character_set_results = NULL", true),
        (
            "SET autocommit=1, @@session.collation_connection = utf8_bin",
            true,
        ),
        ("SET SESSION `character_set_client` = utf8", true),
        ("/*!50503 SET NAMES utf8mb4 */", true),
        ("/*!80000 SET NAMES utf8mb4 */", false),
        ("/*!100300 SET NAMES utf8mb4 */", true),
        ("SELECT 1; SET NAMES utf8", true),
        ("SET GLOBAL character_set_server = utf8", false),
        ("SET autocommit = 1", false),
        ("SELECT @@character_set_client", false),
        ("SELECT 'SET NAMES utf8'", false),
    ] {
        assert_eq!(
            classify(sql.as_bytes(), MARIADB).sets_charset,
            expected,
            "{sql}"
        );
    }
}

#[test]
fn the_mode_decides() {
    let ansi = LexMode {
        ansi_quotes: true,
        ..MARIADB
    };
    let literal = LexMode {
        no_backslash_escapes: true,
        ..MARIADB
    };
    let spaces = LexMode {
        ignore_space: true,
        ..MARIADB
    };
    let unknown = LexMode {
        server: Server::Unknown,
        ..MARIADB
    };
    for (sql, mode, expected) in [
        ("INSERT INTO \"t\" (a) VALUES (1)", ansi, None),
        ("SELECT \"f\"(1)", ansi, Some(Pin::StoredCode)),
        ("SET \"insert_id\" = 1", ansi, Some(Pin::VariableInUse)),
        ("SELECT \"\\\", @x -- \"", MARIADB, None),
        ("SELECT \"\\\", @x -- \"", ansi, Some(Pin::UserVariable)),
        ("SELECT '\\', @x -- '", MARIADB, None),
        ("SELECT '\\', @x -- '", literal, Some(Pin::UserVariable)),
        ("SELECT COUNT (*), MAX\n(a) FROM t", spaces, None),
        ("SELECT COUNT/**/(*) FROM t", spaces, Some(Pin::StoredCode)),
        (
            "SELECT ABS(1), COUNT(*) FROM t WHERE a IN (1)",
            unknown,
            None,
        ),
        ("SELECT ANY_VALUE(1)", unknown, Some(Pin::StoredCode)),
        ("SELECT NVL(1, 2)", unknown, Some(Pin::StoredCode)),
    ] {
        let found = classify(sql.as_bytes(), mode);
        assert_eq!(kept(&found), expected, "{sql} {mode:?}");
    }
}

#[test]
fn a_character_set_decides_where_quotes_end() {
    let with = |charset| LexMode { charset, ..MARIADB };
    // In gbk the byte before the quote swallows the backslash.
    let tricky = b"SELECT '\xbf\\', GET_LOCK('a', 1) -- '";
    assert_eq!(classify(tricky, with(GBK)).pin, Some(Pin::UserLock));
    assert_eq!(classify(tricky, with(Charset::OneByte)).pin, None);
    for (text, cause) in [
        (&b"SELECT 1"[..], None),
        (
            b"INSERT INTO `\xb1\xed` VALUES ('\xd6\xd0\xce\xc4', 'it\\'s') -- \xd6\xd0",
            None,
        ),
        (
            b"SELECT '\xd6\xd0', GET_LOCK('\xd6\xd0', 1)",
            Some(Pin::UserLock),
        ),
        (b"SELECT \xd6\xd0, \xa9@, @a FROM t", None),
        // Four bytes of gb18030, and half a character.
        (b"SELECT \x81\x30\x89\x38 FROM t", None),
        (b"SELECT \xd6 FROM t", Some(Pin::Unknown)),
    ] {
        let found = classify(text, with(GBK));
        assert_eq!(found.pin, cause, "{}", text.escape_ascii());
    }
    // The character's last byte is the backtick that seems to end the name.
    let name = b"SELECT `\x83`, GET_LOCK('a', 1), `, @a FROM t";
    assert_eq!(classify(name, with(GBK)).pin, None);
    assert_eq!(
        classify(b"SELECT 1", with(Charset::Opaque)).pin,
        Some(Pin::Unknown)
    );
    // In latin1 the byte 0xa0 is white space.
    let space = b"SELECT SQL_CALC_FOUND_ROWS\xa0* FROM t";
    assert_eq!(
        classify(space, with(Charset::OneByte)).pin,
        Some(Pin::Unknown)
    );
    let letters = b"SELECT '\xe9', \xe9t\xe9 FROM t";
    assert_eq!(classify(letters, with(Charset::OneByte)).pin, None);
    assert_eq!(classify("SELECT 'é' AS été".as_bytes(), MARIADB).pin, None);
}

#[test]
fn either_outcome_of_a_versioned_comment_counts() {
    for (sql, verb, pin) in [
        // Executed, `IN (x)`; skipped, `f (x)`.
        (
            "SELECT f /*!99999 , 1 IN */ (1)",
            Verb::Select,
            Some(Pin::StoredCode),
        ),
        (
            "/*!99999 SELECT 1; */ LOCK TABLES t READ",
            Verb::Other,
            Some(Pin::LockTables),
        ),
        (
            "SELECT 1 /*!99999 ' */, GET_LOCK('a', 1) /* ' */",
            Verb::Select,
            Some(Pin::UserLock),
        ),
        (
            "/*!80000 SET SESSION information_schema_stats_expiry=0 */",
            Verb::Set,
            None,
        ),
        (
            "CREATE DATABASE d /*!80016 DEFAULT ENCRYPTION='N' */",
            Verb::Ddl,
            None,
        ),
        (
            "/*M!999999\\- enable the sandbox mode */",
            Verb::Other,
            Some(Pin::Unknown),
        ),
    ] {
        let found = classify(sql.as_bytes(), LexMode::default());
        assert_eq!((found.verb, found.pin), (verb, pin), "{sql}");
    }
}

#[test]
fn causes_have_distinct_names() {
    for (at, cause) in Pin::ALL.iter().enumerate() {
        assert!(!cause.name().is_empty() && !cause.explanation().is_empty());
        assert!(
            Pin::ALL[..at]
                .iter()
                .all(|other| other.name() != cause.name())
        );
    }
}

#[test]
fn first_words_are_sorted() {
    verbs::check_sorted();
}

/// Neither bytes nor words in any order make it panic, and what cannot be read is not trusted.
#[test]
fn any_text_is_judged() {
    const PIECES: &str = "SELECT ~WITH ~INSERT INTO ~SET ~CREATE ~PROCEDURE ~BEGIN ~END ~CASE ~\
        IF ~(~(~)~)~,~,~;~'~\"~`~@~@@~@x ~@@session.~.~=~\
        :=~/*~*/~/*!~/*!80000 ~/*M!~-- ~\n~#~\\~1~1.e~0x~f~abs~POINT(~JSON_TABLE(~COLUMNS(~\
        VALUES ~LAST_INSERT_ID(~AS ~FOR ~DO ~\0~é~$";
    let pieces: Vec<&str> = PIECES.split('~').collect();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap_or(0)
    };
    for round in 0..60_000 {
        let mut text = Vec::new();
        for _ in 0..random() % 40 {
            if round % 4 == 0 {
                text.push(random().to_le_bytes()[0]);
            } else {
                text.extend_from_slice(pieces[random() % pieces.len()].as_bytes());
            }
        }
        let bits = random();
        let charsets = [Charset::Utf8, Charset::OneByte, GBK, Charset::Opaque];
        let servers = [
            Server::Unknown,
            Server::MariaDb(110_800),
            Server::MySql(90_300),
        ];
        let mode = LexMode {
            ansi_quotes: bits & 1 != 0,
            no_backslash_escapes: bits & 2 != 0,
            ignore_space: bits & 4 != 0,
            no_schema: false,
            charset: charsets[bits >> 3 & 3],
            server: servers[(bits >> 5) % 3],
        };
        let found = classify(&text, mode);
        if mode.charset == Charset::Opaque {
            assert!(found.causes.contains(Pin::Unknown));
        }
    }
}

/// No server reads a statement whose quote or comment has no end: what stood before it has run.
#[test]
fn what_no_server_reads_does_nothing() {
    for open in ["'", "\"", "`", "/*", "\0, ", "-- \0"] {
        for mode in [MARIADB, MYSQL] {
            let said = |sql: &str| {
                let text = format!("{sql} {open} @x, GET_LOCK('a', 1); KILL 5");
                classify(text.as_bytes(), mode)
            };
            let found = said("SELECT f(1), @@insert_id,");
            assert_eq!((found.verb, found.pin), (Verb::Other, None), "{open}");
            assert!(!found.multi && !found.kills && !found.user_variables);
            let found = said("SET @x = 1; LOCK TABLES t READ; CALL p(),");
            assert_eq!(found.causes, PinCauses::of(Pin::LockTables), "{open}");
            assert!(found.multi && found.user_variables && !found.kills);
            // Where the first changes how the second is read, nobody knows whether it is open.
            let found = said("SET sql_mode = ''; SELECT 1,");
            assert_eq!(found.pin, Some(Pin::Unknown), "{open}");
        }
    }
    let found = classify(b"SET @x = 1; SELECT f(1) /*! , 2 /* */", MARIADB);
    assert_eq!(found.pin, None);
}

/// Bodies nested deeper than can be followed pin.
#[test]
fn deep_nesting_is_bounded() {
    let deep = format!(
        "CREATE PROCEDURE p() {}{}",
        "BEGIN ".repeat(70),
        "END;".repeat(70)
    );
    assert_eq!(classify(deep.as_bytes(), MARIADB).pin, Some(Pin::Unknown));
    let parens = format!("SELECT {}1{}", "(".repeat(200), ")".repeat(200));
    assert_eq!(classify(parens.as_bytes(), MARIADB).pin, None);
    let with = format!(
        "SELECT {}WITH xx (a) AS (SELECT 1) SELECT 1{}",
        "(".repeat(99),
        ")".repeat(99)
    );
    assert_eq!(
        classify(with.as_bytes(), MARIADB).pin,
        Some(Pin::StoredCode)
    );
}

/// Through a pool on MariaDB 10.11 `SET @@autocommit = OFF` reached the next client, so it had gone
/// untracked; of other variables that is taken for granted, which costs a question at most.
#[test]
fn a_variable_set_without_word_of_its_scope_is_not_reported() {
    for (sql, untracked) in [
        ("SET @@autocommit = 0", true),
        ("SET sql_mode = '', @@sql_mode = 'ANSI_QUOTES'", true),
        ("SET autocommit = 0", false),
        ("SET @@SESSION.autocommit = 0", false),
        ("SET @@local.autocommit = 0", false),
        ("SET @@GLOBAL.autocommit = 0", false),
        ("SET autocommit = @@autocommit", false),
    ] {
        let found = classify(sql.as_bytes(), LexMode::default());
        assert_eq!((found.untracked, found.pin), (untracked, None), "{sql}");
        assert!(!classify(sql.as_bytes(), MYSQL).untracked, "{sql}");
    }
}

#[test]
fn variables_that_are_followed_in_their_own_way_are_marked() {
    let found = |sql: &str| classify(sql.as_bytes(), MARIADB);
    assert!(found("SET @@timestamp = 5").sets_clock && found("SET timestamp = DEFAULT").sets_clock);
    assert!(
        !found("SET GLOBAL timestamp = 5").sets_clock && !found("SELECT @@timestamp").sets_clock
    );
    assert!(
        found("SET identity = 5").insert_id == InsertId::MaySet
            && found("SET sql_mode = ''").insert_id == InsertId::Keeps
    );
}

#[test]
fn what_set_statement_sets_does_not_last() {
    let found = |sql: &str| classify(sql.as_bytes(), LexMode::default());
    let one = found("SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT 1");
    assert!(one.passing && one.pin.is_none(), "{one:?}");
    assert!(!found("SET sql_mode = 'ANSI_QUOTES'").passing);
    for (sql, pin) in [
        ("SET STATEMENT a=1 FOR SET sql_select_limit=1", true),
        ("SET STATEMENT a=1 FOR SET SESSION autocommit=0", true),
        ("SET STATEMENT a=1 FOR SET @x=1, @@session.b=1", true),
        ("SET STATEMENT a=1 FOR SET NAMES latin1", true),
        (
            "SET STATEMENT a=1 FOR SET SESSION TRANSACTION READ ONLY",
            true,
        ),
        ("SET STATEMENT a=1 FOR SET STATEMENT b=1 FOR SET c=1", true),
        (
            "SET STATEMENT a=1 FOR SET STATEMENT b=1 FOR SELECT 1",
            false,
        ),
        ("SET STATEMENT a=1 FOR SET GLOBAL b=1", false),
        ("SET STATEMENT a=1 FOR SET @x=1", false),
        ("SET STATEMENT session_track_schema=OFF FOR USE b", true),
        ("SET STATEMENT a=1, `insert_id`=5 FOR SELECT 1", true),
        ("SET STATEMENT max_join_size=10 FOR SELECT 1", true),
        ("SET STATEMENT character_set_server=latin1 FOR DO 1", true),
        ("SET STATEMENT `Character_Set_Results`=NULL FOR DO 1", true),
        ("SET STATEMENT collation_server=utf8mb4_bin FOR DO 1", false),
        (
            "SET STATEMENT max_statement_time=10, sql_mode='' FOR SELECT 1",
            false,
        ),
    ] {
        let cause = pin.then_some(PinCause::SpecialVariable);
        assert_eq!(found(sql).pin, cause, "{sql}");
    }
    for sql in [
        "SET STATEMENT sql_mode = '' FOR SELECT 1; SET time_zone = '+01:00'",
        "SET time_zone = '+01:00'; SET STATEMENT sql_mode = '' FOR SELECT 1",
    ] {
        assert_eq!(found(sql).pin, Some(PinCause::Unknown), "{sql}");
    }
}

#[test]
fn a_wait_for_locks_of_mariadbs_is_one_of_the_statement_alone() {
    let found = |sql: &str| classify(sql.as_bytes(), MARIADB);
    for sql in [
        "SELECT id FROM t FOR UPDATE NOWAIT",
        "(select id from t lock in share mode wait 3)",
        "INSERT INTO t SELECT id FROM u FOR UPDATE NOWAIT",
        "ALTER TABLE t WAIT 3 ADD COLUMN x INT",
        "DROP TABLE t NOWAIT",
        "TRUNCATE TABLE t WAIT 1",
        "OPTIMIZE TABLE t NOWAIT",
        "RENAME TABLE a NOWAIT TO b",
        "LOCK TABLES t WRITE WAIT 5",
    ] {
        assert!(found(sql).passing, "{sql}");
        assert!(!found(sql).causes.contains(PinCause::Unknown), "{sql}");
        assert!(!classify(sql.as_bytes(), MYSQL).passing, "{sql}");
        for several in [format!("{sql}; DO 1"), format!("DO 1; {sql}")] {
            assert!(found(&several).causes.contains(PinCause::Unknown), "{sql}");
        }
    }
    for sql in [
        "SELECT nowait, wait FROM t",
        "SELECT 1 AS wait, 3",
        "SELECT id FROM t FOR UPDATE SKIP LOCKED",
        "SELECT 'FOR UPDATE NOWAIT'",
        "UPDATE t SET wait = 3",
        "CREATE VIEW v AS SELECT id FROM t FOR UPDATE NOWAIT",
    ] {
        assert!(!found(sql).passing, "{sql}");
    }
    let set = found("SET @a = (SELECT id FROM t FOR UPDATE NOWAIT)");
    assert_eq!(set.pin, Some(PinCause::SpecialVariable));
}

#[test]
fn a_table_that_begins_a_transaction_pins() {
    let pin = |sql: &str| classify(sql.as_bytes(), MYSQL).pin;
    for sql in [
        "CREATE TABLE t (id INT) START TRANSACTION",
        "create table t select 1 AS id /* why */ start transaction",
    ] {
        assert_eq!(pin(sql), Some(PinCause::Unknown), "{sql}");
    }
    for sql in [
        "CREATE TABLE t (start INT, transaction INT)",
        "CREATE PROCEDURE p() BEGIN START TRANSACTION; COMMIT; END",
        "START TRANSACTION",
    ] {
        assert_eq!(pin(sql), None, "{sql}");
    }
}

#[test]
fn statements_of_one_text_answer_each_other() {
    let found = |sql: &str, mode| classify(sql.as_bytes(), mode);
    let (rows, counts) = (Reads::FOUND_ROWS, Reads::ROW_COUNT);
    for (sql, on_mariadb, on_mysql) in [
        ("SELECT 1; SELECT FOUND_ROWS()", Reads::NONE, Reads::NONE),
        ("SELECT FOUND_ROWS(); SELECT FOUND_ROWS()", rows, rows),
        ("DO 1; SELECT FOUND_ROWS()", rows, Reads::NONE),
        ("SET @a = 1; SELECT FOUND_ROWS()", rows, rows),
        (
            "UPDATE t SET a = 1; SELECT ROW_COUNT()",
            Reads::NONE,
            Reads::NONE,
        ),
        (
            "SHOW WARNINGS; SELECT ROW_COUNT()",
            Reads::DIAGNOSTICS.union(counts),
            Reads::DIAGNOSTICS.union(counts),
        ),
        ("SELECT 1; SHOW WARNINGS", Reads::DIAGNOSTICS, Reads::NONE),
        ("SELECT 1 FROM t; SHOW WARNINGS", Reads::NONE, Reads::NONE),
        (
            "SELECT 1 FROM DUAL; SHOW WARNINGS",
            Reads::DIAGNOSTICS,
            Reads::NONE,
        ),
    ] {
        assert_eq!(found(sql, MARIADB).reads, on_mariadb, "{sql} on MariaDB");
        assert_eq!(found(sql, MYSQL).reads, on_mysql, "{sql} on MySQL");
    }
    assert!(found("GET DIAGNOSTICS @n = NUMBER; SELECT @n", MARIADB).keeps_warnings);
    assert!(!found("GET DIAGNOSTICS @n = NUMBER; SELECT @n", MYSQL).keeps_warnings);
    assert!(!found("SELECT 1; SELECT 1 FROM t", MARIADB).keeps_warnings);
    // Neither cleared nor kept for certain.
    for sql in [
        "SELECT s.currval",
        "SELECT GET_LOCK('a', 0)",
        "DO GET_LOCK('a', 0)",
        "SET @a = GET_LOCK('a', 0)",
        "SET PASSWORD = 'x'",
        "EXPLAIN FOR CONNECTION 7",
        "FLUSH TABLES",
        "GRANT SELECT ON t TO u",
        "SHOW LOCALES",
        "SELECT f()",
    ] {
        let found = found(sql, MARIADB).with_known_code();
        let clears = found.replaces.contains(Reads::DIAGNOSTICS);
        assert!(!found.keeps_warnings && !clears, "{sql}");
    }
}
