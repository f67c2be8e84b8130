//! Tests of what is known of stored code, without a group.

use super::*;
use session::statement::NOT_JUDGED;
use sql::classify::classify;
use sql::classify::stored::definitions;

/// A group's view, and the catalogue that it sees.
struct Bench {
    catalogue: CodeCatalogue,
    seen: Seen,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            catalogue: CodeCatalogue::empty(),
            seen: Seen::default(),
        }
    }

    fn code(&mut self) -> CodeSeen<'_> {
        self.seen.renew(&self.catalogue);
        CodeSeen {
            catalogue: &self.catalogue,
            sql_mode: "",
            seen: &self.seen,
        }
    }

    /// Calls `run` with a text in the schema `shop`.
    fn with<T>(&mut self, sql: &str, run: impl FnOnce(CodeSeen<'_>, SchemaText<'_>) -> T) -> T {
        let mode = LexMode::default();
        let found = classify(sql.as_bytes(), mode);
        let text = SchemaText {
            sql: sql.as_bytes(),
            mode,
            found: &found,
            schema: Some(b"shop"),
            names_none_of: None,
        };
        run(self.code(), text)
    }

    fn defines(&mut self, sql: &str) -> Option<u64> {
        self.with(sql, |code, text| {
            code.defines(text, definitions(text.sql, text.mode))
        })
    }

    fn reaches(&mut self, sql: &str) -> bool {
        self.with(sql, |code, text| code.named(text).pins())
    }

    fn asked(&mut self, sql: &str) -> Reads {
        self.with(sql, |code, text| code.asked(text))
    }
}

const TRIGGER: &str =
    "CREATE TRIGGER tr BEFORE INSERT ON orders FOR EACH ROW SELECT RELEASE_LOCK('l') INTO @a";

#[test]
fn where_there_is_no_code_nothing_is_reached() {
    let mut bench = Bench::new();
    assert!(!bench.reaches("INSERT INTO orders VALUES (1)"));
    assert_ne!(bench.code().seen.short(), NOT_JUDGED);
    assert_eq!(bench.defines("CREATE TABLE t (a INT)"), None);
    assert_eq!(bench.asked("SELECT 1 FROM orders"), Reads::NONE);
}

#[test]
fn a_trigger_counts_from_its_own_text_on() {
    let mut bench = Bench::new();
    let judged = bench.code().seen.short();
    assert!(bench.catalogue.holds(judged));
    assert!(bench.defines(TRIGGER).is_some());
    assert!(!bench.catalogue.holds(judged), "judged by older names");
    assert!(bench.catalogue.holds(NOT_JUDGED));
    assert!(bench.reaches("INSERT INTO orders VALUES (1)"));
    assert!(bench.reaches("INSERT INTO shop.orders VALUES (1)"));
    assert!(
        !bench.reaches("SELECT * FROM orders"),
        "a reader fires none"
    );
    assert!(!bench.reaches("INSERT INTO other VALUES (1)"));
    let judged = bench.code().seen.short();
    assert!(bench.catalogue.holds(judged));
}

#[test]
fn that_a_text_has_none_of_the_names_counts_for_those_that_were_looked_for() {
    let mut bench = Bench::new();
    let insert = "INSERT INTO orders VALUES (1)";
    let none_of = bench.code().seen.version;
    let reaches = |bench: &mut Bench| {
        bench.with(insert, |code, text| {
            code.named(SchemaText {
                names_none_of: Some(none_of),
                ..text
            })
            .pins()
        })
    };
    assert!(!reaches(&mut bench));
    bench.defines(TRIGGER);
    assert!(reaches(&mut bench), "a trigger has come since");
    // Of names that were all looked for nothing is looked for again.
    let latest = bench.code().seen.version;
    assert_ne!(latest, none_of);
    bench.with(insert, |code, text| {
        let named = code.named(SchemaText {
            names_none_of: Some(latest),
            ..text
        });
        assert!(!named.pins());
    });
}

#[test]
fn nothing_is_defined_or_known_where_nothing_is_looked_for() {
    let mut bench = Bench::new();
    bench.catalogue.on = false;
    assert_eq!(bench.defines(TRIGGER), None);
    let session = Session::default();
    let known = bench.with("CALL p()", |code, text| code.knows(text, &session));
    assert!(!known);
}

#[test]
fn a_procedure_is_known_by_what_it_leaves() {
    let mut bench = Bench::new();
    let session = Session::default();
    let known =
        |bench: &mut Bench, sql: &str| bench.with(sql, |code, text| code.knows(text, &session));
    assert!(
        !known(&mut bench, "CALL p()"),
        "the catalogue does not have it"
    );
    bench.defines("CREATE PROCEDURE p() UPDATE orders SET a = 1");
    assert!(known(&mut bench, "CALL p()"));
    assert!(!known(&mut bench, "CALL q()"));
    assert!(!known(&mut bench, "SELECT 1"), "it calls nothing");
}

#[test]
fn what_is_asked_beside_a_call_is_asked_for() {
    let mut bench = Bench::new();
    for sql in [
        "SELECT f(), ROW_COUNT()",
        "BEGIN NOT ATOMIC SELECT ROW_COUNT(); END",
        "SELECT ROW_COUNT(); SELEC",
    ] {
        assert_eq!(bench.asked(sql), Reads::ROW_COUNT, "{sql}");
    }
    let alone = bench.asked("SELECT ROW_COUNT()");
    assert_eq!(alone, Reads::NONE, "no code is called");
    bench.defines("CREATE PROCEDURE asks() SELECT ROW_COUNT()");
    bench.defines("CREATE VIEW asking AS SELECT FOUND_ROWS() AS f");
    assert_eq!(bench.asked("CALL asks()"), Reads::ROW_COUNT);
    assert_eq!(bench.asked("SELECT * FROM asking"), Reads::FOUND_ROWS);
}
