//! Each cause: the text that takes it, what ends it, and what does not.

use super::*;
use sql::lex::Server;

const MARIADB: Server = Server::MariaDb(101_119);
const MYSQL: Server = Server::MySql(90_704);

/// Pins of a client after these statements on this server, each of which went well.
fn after(server: Server, texts: &[&str]) -> Pins {
    let mode = LexMode {
        server,
        ..LexMode::default()
    };
    let mut pins = Pins::default();
    for sql in texts {
        let found = classify(sql.as_bytes(), mode);
        let taken = acquired(sql.as_bytes(), mode, &found, Some(b"db"));
        pins.forget_plan();
        if !taken.is_empty() {
            let plan = pins.plan(sql.as_bytes());
            plan.acquired = taken;
            plan.failed_acquisition =
                failed_acquisition_of((sql.as_bytes(), mode), &found, Some(b"db"));
        }
        pins.sent(1);
        pins.answered(&ReplySummary::default());
    }
    pins
}

fn causes(pins: &Pins) -> Vec<PinReason> {
    pins.list().iter().map(|pin| pin.reason).collect()
}

/// Statements that end whatever a statement can end.
const ENDINGS: [&str; 11] = [
    "UNLOCK TABLES",
    "UNLOCK INSTANCE",
    "BACKUP UNLOCK",
    "BACKUP STAGE END",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SELECT RELEASE_ALL_LOCKS()",
    "DROP TABLE t",
    "HANDLER t CLOSE",
    "XA COMMIT 'x'",
];

macro_rules! ends {
    ($($name:ident: $cause:ident on $server:expr, $text:expr,
        by [$($by:expr),*], not by [$($not:expr),*];)*) => {$(
        #[test]
        fn $name() {
            let reason = PinReason::Text(PinCause::$cause);
            assert_eq!(causes(&after($server, &[$text])), [reason]);
            for by in [$($by),*] {
                assert!(after($server, &[$text, by]).is_empty(), "{by}");
            }
            let not: &[&str] = &[$($not),*];
            for not in not {
                assert!(after($server, &[$text, not]).is_pinned_for(reason), "{not}");
            }
        }
    )*};
}

ends! {
    locked_tables_are_unlocked: LockTables on MARIADB, "LOCK TABLES t WRITE",
        by ["UNLOCK TABLES", "UNLOCK TABLE;", "BEGIN", "START TRANSACTION"],
        not by ["COMMIT", "ROLLBACK", "UNLOCK TABLES t", "UNLOCK INSTANCE", "DROP TABLE t"];
    a_global_read_lock_is_unlocked: GlobalReadLock on MYSQL, "FLUSH TABLES WITH READ LOCK",
        by ["UNLOCK TABLES"],
        not by ["BEGIN", "COMMIT", "UNLOCK INSTANCE", "FLUSH TABLES"];
    an_instance_lock_is_unlocked: BackupLock on MYSQL, "LOCK INSTANCE FOR BACKUP",
        by ["UNLOCK INSTANCE"],
        not by ["UNLOCK TABLES", "BEGIN", "COMMIT"];
    a_backup_stage_is_ended: BackupLock on MARIADB, "BACKUP STAGE START",
        by ["BACKUP STAGE END"],
        not by ["BACKUP STAGE FLUSH", "BACKUP UNLOCK", "UNLOCK TABLES"];
    a_backup_lock_is_unlocked: BackupLock on MARIADB, "BACKUP LOCK t",
        by ["BACKUP UNLOCK"],
        not by ["BACKUP STAGE END", "UNLOCK TABLES"];
    a_temporary_table_is_dropped: TemporaryTable on MARIADB, "CREATE TEMPORARY TABLE t (a INT)",
        by ["DROP TABLE t", "DROP TEMPORARY TABLE t", "DROP TABLE IF EXISTS db.t, u"],
        not by ["DROP TABLE u", "DROP TABLE other.t", "TRUNCATE TABLE t", "COMMIT", "DROP VIEW t"];
    a_cursor_is_closed: Handler on MARIADB, "HANDLER t OPEN AS c",
        by ["HANDLER c CLOSE"],
        not by ["HANDLER t CLOSE", "HANDLER c READ FIRST", "DROP TABLE t"];
    a_cursor_without_an_alias_has_its_tables_name: Handler on MYSQL, "HANDLER db.t OPEN",
        by ["HANDLER t CLOSE"],
        not by ["HANDLER db.t CLOSE", "HANDLER u CLOSE"];
    an_xa_transaction_ends_by_its_name: Xa on MARIADB, "XA START 'x'",
        by ["XA COMMIT 'x'", "XA COMMIT 'x' ONE PHASE", "XA ROLLBACK 'x'"],
        not by ["XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'y'", "XA COMMIT 'x','y'", "ROLLBACK"];
    locks_that_are_all_released_are_ended: UserLock on MARIADB, "SELECT GET_LOCK('l', 0)",
        by ["SELECT RELEASE_ALL_LOCKS()", "DO RELEASE_ALL_LOCKS()"],
        not by ["SELECT RELEASE_LOCK('l')", "SELECT RELEASE_ALL_LOCKS(), 1", "COMMIT"];
}

macro_rules! lasts {
    ($($name:ident: $cause:ident on $server:expr, $text:expr;)*) => {$(
        #[test]
        fn $name() {
            let reason = PinReason::Text(PinCause::$cause);
            let mut texts = vec![$text];
            texts.extend(ENDINGS);
            texts.push($text);
            texts.extend(ENDINGS);
            let mut pins = after($server, &texts);
            assert_eq!(causes(&pins), [reason]);
            assert!(pins.list()[0].names.is_none(), "nothing ends it");
            // What the server says of locks and variables in use does not end it either.
            pins.ask_again();
            assert!(!pins.asks() && !pins.may_have_ended(true));
            pins.end_as_reported(&[b"0", b"0"]);
            assert_eq!(causes(&pins), [reason]);
        }
    )*};
}

lasts! {
    unknown_code_holds_for_good: StoredCode on MARIADB, "CALL p()";
    the_value_of_a_sequence_holds_for_good: Sequence on MARIADB, "SELECT NEXTVAL(s)";
    profiles_hold_for_good: Profiling on MYSQL, "SET profiling = 1";
    counters_that_began_anew_hold_for_good: SessionStatus on MARIADB, "FLUSH STATUS";
    a_variable_that_nobody_reads_holds_for_good: SpecialVariable on MARIADB, "SET rand_seed1 = 5";
    a_resource_group_holds_for_good: ResourceGroup on MYSQL, "SET RESOURCE GROUP g";
    another_user_holds_for_good: Role on MARIADB, "SET SESSION AUTHORIZATION u";
    what_is_not_understood_holds_for_good: Unknown on MARIADB, "NO SUCH STATEMENT";
    trackers_of_ones_own_hold_for_good: SessionTracking on MYSQL, "SET session_track_schema = OFF";
    a_table_whose_name_is_not_certain_holds_for_good: TemporaryTable on MARIADB,
        "CREATE TEMPORARY TABLE `\u{e9}` (a INT)";
}

#[test]
fn a_variable_in_use_is_asked_for_behind_each_statement_and_ends_as_told() {
    let mut pins = after(MYSQL, &["SET insert_id = 5, gtid_next = 'a:1'"]);
    assert_eq!(causes(&pins), [PinReason::Text(PinCause::VariableInUse)]);
    assert!(pins.asks() && pins.may_have_ended(false));
    assert_eq!(
        pins.columns_to_ask(),
        [
            "0",
            "@@SESSION.insert_id<>0",
            "@@SESSION.gtid_next<>'AUTOMATIC'"
        ]
    );
    assert!(!pins.asks(), "it is being asked");
    pins.end_as_reported(&[b"0", b"0", b"1"]);
    assert!(!pins.has(PinCause::VariableInUse, b"insert_id"));
    assert!(pins.has(PinCause::VariableInUse, b"gtid_next"));
    // Another statement may have used it up.
    pins.answered(&ReplySummary::default());
    assert_eq!(
        pins.columns_to_ask(),
        ["0", "@@SESSION.gtid_next<>'AUTOMATIC'"]
    );
    pins.end_as_reported(&[b"0", b"0"]);
    assert!(pins.is_empty());
}

#[test]
fn named_locks_are_asked_for_together_and_end_together() {
    let mut pins = after(MARIADB, &["SELECT GET_LOCK('a', 0), GET_LOCK('b', 0)"]);
    assert_eq!(
        pins.columns_to_ask(),
        ["IS_USED_LOCK('a')<=>CONNECTION_ID() OR IS_USED_LOCK('b')<=>CONNECTION_ID()"]
    );
    pins.end_as_reported(&[b"1"]);
    assert!(pins.has(PinCause::UserLock, b"a") && pins.has(PinCause::UserLock, b"b"));
    pins.end_as_reported(&[b"0"]);
    assert!(pins.is_empty());
}

#[test]
fn a_lock_of_a_computed_name_ends_with_all_others_alone() {
    let computed = "DO GET_LOCK(CONCAT('a', 1), 0)";
    let mut pins = after(MYSQL, &[computed, "DO RELEASE_LOCK('a1')", "COMMIT"]);
    assert_eq!(causes(&pins), [PinReason::Text(PinCause::UserLock)]);
    assert!(!pins.asks(), "nobody knows what to ask for");
    pins.end_as_reported(&[b"0"]);
    assert!(pins.is_pinned());
    assert!(after(MYSQL, &[computed, "DO RELEASE_ALL_LOCKS()"]).is_empty());
}

#[test]
fn an_answer_without_a_row_ends_nothing() {
    let mut pins = after(MARIADB, &["SELECT GET_LOCK('a', 0)"]);
    pins.end_as_reported(&[]);
    assert!(pins.is_pinned());
    pins.end_as_reported(&[b""]);
    assert!(pins.is_pinned(), "NULL is no 0");
}

#[test]
fn what_failed_has_given_nothing_back() {
    for (taken, ending) in [
        ("LOCK TABLES t WRITE", "UNLOCK TABLES"),
        ("CREATE TEMPORARY TABLE t (a INT)", "DROP TABLE t"),
        ("XA START 'x'", "XA COMMIT 'x'"),
        ("HANDLER t OPEN", "HANDLER t CLOSE"),
    ] {
        let mut pins = Pins::default();
        runs(&mut pins, taken, None);
        runs(&mut pins, ending, Some(1213));
        assert!(pins.is_pinned(), "{ending}");
        runs(&mut pins, ending, None);
        assert!(pins.is_empty(), "{ending}");
    }
}

#[test]
fn what_is_whole_or_not_at_all_has_taken_nothing_when_it_failed() {
    for sql in [
        "LOCK TABLES t WRITE",
        "CREATE TEMPORARY TABLE t (a INT)",
        "XA START 'x'",
        "HANDLER t OPEN",
        "FLUSH STATUS",
    ] {
        let mut pins = Pins::default();
        runs(&mut pins, sql, Some(1205));
        assert!(pins.is_empty(), "{sql}");
    }
    // Half of it may have been done.
    for sql in ["SELECT GET_LOCK('a', 0), x", "FLUSH TABLES WITH READ LOCK"] {
        let mut pins = Pins::default();
        runs(&mut pins, sql, Some(1205));
        assert!(pins.is_pinned(), "{sql}");
    }
}

#[test]
fn what_was_held_before_a_failed_statement_is_still_held() {
    let mut pins = Pins::default();
    runs(&mut pins, "LOCK TABLES t WRITE", None);
    runs(&mut pins, "LOCK TABLES u WRITE", Some(1146));
    assert!(pins.is_pinned(), "the first lock is not the second's");
    runs(&mut pins, "XA START 'x'", None);
    runs(&mut pins, "XA START 'x'", Some(1440));
    assert!(pins.has(PinCause::Xa, b"'x'"));
}

#[test]
fn a_set_of_a_variable_that_there_is_not_has_set_nothing() {
    for (error, pinned) in [(1193, false), (1064, false), (1231, true), (1227, true)] {
        let mut pins = Pins::default();
        runs(&mut pins, "SET profiling = 1, no_such = 2", Some(error));
        assert_eq!(pins.is_pinned(), pinned, "{error}");
    }
}

#[test]
fn code_behind_a_trigger_may_have_taken_something_before_it_failed() {
    let mut pins = Pins::default();
    let plan = pins.plan(b"INSERT INTO t VALUES (1)");
    plan.reasons.push(PinReason::TriggersAndViews);
    plan.failed_acquisition = super::failed_acquisition::FailedAcquisition::Failed;
    assert_eq!(pins.sent(2), [PinReason::TriggersAndViews]);
    pins.answered(&ReplySummary {
        error: Some((1062, String::new())),
        ..ReplySummary::default()
    });
    assert!(pins.is_pinned_for(PinReason::TriggersAndViews));
}

#[test]
fn a_reason_is_new_once() {
    let mut pins = Pins::default();
    assert!(pins.add(PinReason::WideCharset, None, 1));
    assert!(!pins.add(PinReason::WideCharset, None, 2));
    assert_eq!(pins.list()[0].since, 1);
    let lock = |pins: &mut Pins, name: &[u8]| {
        pins.add(PinReason::Text(PinCause::UserLock), Some(name.into()), 3)
    };
    assert!(lock(&mut pins, b"a"));
    assert!(!lock(&mut pins, b"b"));
    pins.end(PinCause::UserLock, b"a");
    assert!(pins.has(PinCause::UserLock, b"b"));
    pins.end(PinCause::UserLock, b"b");
    assert_eq!(causes(&pins), [PinReason::WideCharset]);
}

#[test]
fn what_is_held_for_good_and_by_a_name_is_held_for_good() {
    let reason = PinReason::Text(PinCause::UserLock);
    for names in [[Some(&b"a"[..]), None], [None, Some(&b"a"[..])]] {
        let mut pins = Pins::default();
        for name in names {
            pins.add(reason, name.map(Name::from), 1);
        }
        pins.end(PinCause::UserLock, b"a");
        assert!(pins.is_pinned_for(reason), "{names:?}");
        assert_eq!(pins.names(PinCause::UserLock), None);
    }
}

#[test]
fn names_that_mean_something_else_now_are_forgotten() {
    let mut pins = after(MARIADB, &["CREATE TEMPORARY TABLE t (a INT)"]);
    let plan = pins.plan(b"x");
    plan.acquired.blurred.insert(PinCause::TemporaryTable);
    pins.sent(3);
    assert_eq!(pins.names(PinCause::TemporaryTable), None);
    pins.answered(&ReplySummary::default());
    runs(&mut pins, "DROP TABLE t", None);
    assert!(pins.is_pinned());
}

#[test]
fn a_plan_counts_among_the_reasons_before_it_is_sent_and_is_none_of_them() {
    let mut pins = Pins::default();
    pins.plan(b"x").reasons.push(PinReason::PreparedSchema);
    assert!(pins.is_pinned_for(PinReason::PreparedSchema));
    assert!(!pins.is_pinned() && pins.is_under_way() && !pins.is_empty());
    assert_eq!(pins.sent(9), [PinReason::PreparedSchema]);
    assert!(pins.is_pinned() && pins.is_under_way());
    pins.answered(&ReplySummary::default());
    assert!(pins.is_pinned() && !pins.is_under_way());
    assert_eq!(pins.list()[0].since, 9);
    assert_eq!(&*pins.list()[0].text, b"x");
}

#[test]
fn the_first_text_of_a_plan_is_the_one_that_is_shown() {
    let mut pins = Pins::default();
    pins.plan(b"FIRST").reasons.push(PinReason::PreparedSchema);
    pins.plan(b"SECOND").reasons.push(PinReason::WideCharset);
    pins.sent(1);
    assert!(pins.list().iter().all(|pin| &*pin.text == b"FIRST"));
}

/// Notes when it is dropped.
#[derive(Debug)]
struct Noted(std::rc::Rc<std::cell::Cell<bool>>);

impl Guard for Noted {}

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

#[test]
fn a_guard_lasts_until_its_statement_has_ended_however_it_ends() {
    let ends: [fn(&mut Pins); 4] = [
        Pins::forget_plan,
        |pins| {
            pins.sent(1);
            pins.answered(&ReplySummary::default());
        },
        |pins| {
            pins.sent(1);
            pins.answered(&ReplySummary {
                error: Some((1064, String::new())),
                ..ReplySummary::default()
            });
        },
        |pins| *pins = Pins::default(),
    ];
    for end in ends {
        let dropped = std::rc::Rc::default();
        let mut pins = Pins::default();
        let guard = Box::new(Noted(std::rc::Rc::clone(&dropped)));
        pins.plan(b"SET GLOBAL x = 1").guards.push(guard);
        assert!(!dropped.get());
        end(&mut pins);
        assert!(dropped.get());
    }
    let dropped = std::rc::Rc::default();
    let mut pins = Pins::default();
    let guard = Box::new(Noted(std::rc::Rc::clone(&dropped)));
    pins.plan(b"SET GLOBAL x = 1").guards.push(guard);
    pins.sent(1);
    assert!(!dropped.get(), "while it runs");
    pins.forget_plan();
    assert!(!dropped.get(), "a plan that was sent is not forgotten");
}

#[test]
fn a_lock_that_may_have_ended_does_not_end_what_has_no_name() {
    let mut pins = Pins::default();
    let lock = PinReason::Text(PinCause::UserLock);
    pins.add(lock, Some(b"a".as_slice().into()), 1);
    pins.ask_again();
    assert!(pins.may_have_ended(false));
    // Which variables those are is not known.
    pins.add(PinReason::Text(PinCause::UserVariable), None, 2);
    assert!(pins.asks() && !pins.may_have_ended(false));
}

#[test]
fn user_variables_may_have_ended_where_they_are_read_back() {
    let mut pins = Pins::default();
    pins.add(
        PinReason::Text(PinCause::UserVariable),
        Some(b"values".as_slice().into()),
        1,
    );
    assert!(!pins.may_have_ended(false));
    assert!(pins.may_have_ended(true));
    pins.add(PinReason::UnexplainedChange, None, 2);
    assert!(!pins.may_have_ended(true), "that has no end");
    assert!(!Pins::default().may_have_ended(true));
}
