//! State behind statements, one behind the other, as replies tell of it.

use super::*;
use crate::statement::Extent;
use wire::command::ReplyShape;

const MARIADB: bool = false;
const MYSQL: bool = true;

/// The end of a statement with so many rows, behind which nothing of others stands, or something.
fn finished<'a>(
    statement: &'a Statement,
    summary: &'a ReplySummary,
    rows: u64,
    (alone, mysql): (bool, bool),
) -> Ended<'a> {
    Ended {
        statement,
        summary,
        rows,
        session: Box::leak(Box::default()),
        alone,
        mysql,
    }
}

fn statement(area: Area, found: Found) -> Statement {
    Statement {
        area,
        found,
        ..Statement::plain(ReplyShape::Results)
    }
}

fn select() -> Statement {
    statement(Area::Clears, Found::Rows)
}

fn insert() -> Statement {
    statement(Area::Clears, Found::Keeps)
}

fn rows() -> ReplySummary {
    ReplySummary {
        columns: Some(1),
        ..ReplySummary::default()
    }
}

fn changed(affected: u64) -> ReplySummary {
    ReplySummary {
        affected: Some(affected),
        ..ReplySummary::default()
    }
}

fn warned(warnings: u16) -> ReplySummary {
    ReplySummary {
        warnings,
        warned: warnings > 0,
        ..changed(1)
    }
}

fn failed(code: u16) -> ReplySummary {
    ReplySummary {
        error: Some((code, String::from("no"))),
        state: *b"42S02",
        ..ReplySummary::default()
    }
}

/// The reply to SHOW WARNINGS with rows of this number.
fn shown(errno: &[u8], count: usize) -> Vec<u8> {
    let mut reply = Vec::new();
    let mut seq = 1;
    let mut packet = |payload: &[u8]| {
        let len = u32::try_from(payload.len()).unwrap().to_le_bytes();
        reply.extend_from_slice(&len[..3]);
        reply.push(seq);
        reply.extend_from_slice(payload);
        seq += 1;
    };
    packet(&[3]);
    for name in [b"a", b"b", b"c"] {
        let mut column = vec![3];
        column.extend_from_slice(b"def");
        column.extend_from_slice(&[0, 0, 0, 1, name[0], 0, 12]);
        column.extend_from_slice(&[45, 0, 28, 0, 0, 0, 253, 1, 0, 31, 0, 0]);
        packet(&column);
    }
    for _ in 0..count {
        let mut row = Vec::new();
        for text in [&b"Warning"[..], errno, b"words"] {
            row.push(u8::try_from(text.len()).unwrap());
            row.extend_from_slice(text);
        }
        packet(&row);
    }
    packet(&[254, 0, 0, 2, 0, 0, 0]);
    reply
}

fn after(statement: Statement, summary: &ReplySummary) -> LastStatement {
    let mut last = LastStatement::default();
    last.sent();
    last.ended(&finished(&statement, summary, 3, (true, MARIADB)));
    last
}

fn keep(last: &mut LastStatement, answer: Result<Vec<u8>, ()>, meter: &Meter) {
    last.keep_conditions(answer, Some(b"utf8mb4"), 64, meter);
}

#[test]
fn of_several_statements_that_cannot_be_parsed_one_condition_counts() {
    let mut several = select();
    several.extent = Extent::Several;
    for (statement, code, counted) in [
        (several, UNPARSED, 1),
        (several, 1054, 2),
        (select(), UNPARSED, 2),
    ] {
        let mut last = after(statement, &failed(code));
        keep(&mut last, Ok(shown(b"1064", 2)), &Meter::default());
        assert_eq!(last.conditions, counted, "{code}");
        assert_eq!(last.kept().map(|kept| kept.rows().len()), Some(2));
    }
}

#[test]
fn nothing_is_native_before_the_first_statement() {
    let last = LastStatement::default();
    assert_eq!(last.lost(), LEFT_BY_STATEMENT);
    assert!(!last.has_conditions());
    assert_eq!(
        (last.row_count.get(), last.found_rows.get()),
        (Some(0), Some(0))
    );
}

#[test]
fn a_select_counts_its_rows_and_a_change_those_it_changed() {
    let last = after(select(), &rows());
    assert_eq!(
        (last.row_count.get(), last.found_rows.get()),
        (Some(-1), Some(3))
    );
    let last = after(insert(), &changed(7));
    assert_eq!(
        (last.row_count.get(), last.found_rows.get()),
        (Some(7), Some(0))
    );
    let last = after(insert(), &failed(1062));
    assert_eq!(last.row_count.get(), Some(-1));
    let many = after(insert(), &changed(u64::MAX));
    assert_eq!(many.row_count.get(), Some(i64::MAX));
}

#[test]
fn all_is_native_alone_and_nothing_where_others_ride_behind() {
    let mut last = LastStatement::default();
    last.ended(&finished(&select(), &rows(), 3, (true, MARIADB)));
    assert_eq!(last.lost(), Reads::NONE);
    last.ended(&finished(&select(), &rows(), 3, (false, MARIADB)));
    assert_eq!(last.lost(), LEFT_BY_STATEMENT);
}

#[test]
fn what_is_looked_up_and_is_not_there_leaves_the_count_of_before() {
    let of = |conditions| Statement {
        conditions,
        ..statement(Area::Clears, Found::Keeps)
    };
    for (conditions, code, count, valid) in [
        (Conditions::LooksUp, 1146, Some(7), false),
        (Conditions::LooksUp, 1049, Some(7), false),
        (Conditions::LooksUp, 1054, Some(-1), true),
        (Conditions::MayCount, 1146, None, false),
        (Conditions::Leaves, 1146, Some(-1), true),
    ] {
        let mut last = after(insert(), &changed(7));
        last.moved();
        last.ended(&finished(
            &of(conditions),
            &failed(code),
            0,
            (true, MARIADB),
        ));
        assert_eq!(last.row_count.get(), count, "{conditions:?} {code}");
        assert_eq!(
            last.is_valid_on_backend(COUNTS),
            valid,
            "{conditions:?} {code}"
        );
        let unknown = count.is_none();
        assert!(!unknown || last.alone_knows());
    }
}

#[test]
fn a_question_that_keeps_the_counts_does_not_make_them_native() {
    let asks = Statement {
        conditions: Conditions::Counts,
        ..insert()
    };
    let mut last = after(insert(), &changed(7));
    last.moved();
    last.ended(&finished(&asks, &changed(0), 0, (true, MARIADB)));
    assert_eq!(last.row_count.get(), Some(7), "it stays");
    assert!(
        !last.is_valid_on_backend(COUNTS),
        "and this backend does not know it"
    );
    last.ended(&finished(&asks, &failed(1064), 0, (true, MARIADB)));
    assert_eq!(last.row_count.get(), Some(-1));
    assert!(last.is_valid_on_backend(COUNTS), "an error counts anywhere");
}

#[test]
fn a_count_of_several_executions_is_that_of_the_last_only_if_it_is_none() {
    let of = |conditions| Statement {
        conditions,
        ..statement(Area::Clears, Found::Keeps)
    };
    let (bulk, plain) = (Conditions::CountsLast, Conditions::Leaves);
    for (conditions, summary, count) in [
        (bulk, changed(0), Some(0)),
        (bulk, changed(1), None),
        (bulk, changed(3), None),
        (bulk, failed(1146), Some(-1)),
        (plain, changed(1), Some(1)),
    ] {
        let last = after(of(conditions), &summary);
        assert_eq!(last.row_count.get(), count, "{conditions:?}");
        assert!(last.is_valid_on_backend(COUNTS), "{conditions:?}");
    }
}

#[test]
fn an_uncounted_command_and_an_absent_condition_leave_minus_one() {
    let uncounted = Statement {
        conditions: Conditions::Uncounted,
        ..insert()
    };
    assert_eq!(after(uncounted, &changed(0)).row_count.get(), Some(-1));
    let asks = Statement {
        conditions: Conditions::Asks,
        ..statement(Area::Keeps, Found::Keeps)
    };
    assert_eq!(after(asks, &warned(1)).row_count.get(), Some(-1));
    let mut last = after(insert(), &changed(7));
    last.ended(&finished(&asks, &changed(0), 0, (true, MARIADB)));
    assert_eq!(last.row_count.get(), Some(7));
}

#[test]
fn what_only_the_backend_counted_is_unknown_once_that_is_anothers() {
    for found in [Found::Counts, Found::Calculated] {
        let mut last = after(statement(Area::Clears, found), &rows());
        assert!(last.counts_unread() && last.alone_knows());
        let asks = last.pending.changed.intersects(Properties::FOUND_ROWS);
        assert_eq!(asks, found == Found::Calculated, "its client asks next");
        last.moved();
        assert!(!last.counts_unread());
        assert_eq!(last.found_rows.get(), None);
    }
    // A statement that may count tells nothing on a backend that another client has used.
    let mut last = after(select(), &rows());
    last.moved();
    let unsure = statement(Area::Clears, Found::Unsure);
    last.ended(&finished(&unsure, &changed(0), 0, (true, MARIADB)));
    assert!(!last.counts_unread() && last.found_rows.get().is_none());
    let mut last = after(select(), &rows());
    last.ended(&finished(&unsure, &changed(0), 0, (true, MARIADB)));
    assert!(last.counts_unread(), "its own backend knows");
}

#[test]
fn an_error_leaves_a_count_that_only_the_backend_knows() {
    for mysql in [MARIADB, MYSQL] {
        let mut last = after(select(), &rows());
        last.ended(&finished(&select(), &failed(1146), 0, (true, mysql)));
        assert!(last.counts_unread());
        let mut last = after(select(), &rows());
        last.ended(&finished(&insert(), &failed(1062), 0, (true, mysql)));
        assert_eq!(last.found_rows.get(), Some(3));
    }
}

#[test]
fn an_error_behind_the_conditions_of_another_statement_is_not_shown_as_its_own() {
    let meter = Meter::default();
    let asks = Statement {
        conditions: Conditions::Asks,
        ..statement(Area::Keeps, Found::Keeps)
    };
    let mut last = after(insert(), &warned(1));
    last.pending.warnings = false;
    keep(&mut last, Ok(shown(b"1265", 1)), &meter);
    last.moved();
    last.sent();
    last.ended(&finished(&asks, &warned(1), 0, (true, MARIADB)));
    assert!(last.pending.warnings, "the answer tells the status");
    keep(&mut last, Ok(shown(b"1758", 2)), &meter);
    assert!(last.kept().is_none() && last.has_unknown_conditions());
}

#[test]
fn warnings_are_owed_then_kept_then_cleared() {
    let meter = Meter::default();
    let mut last = after(insert(), &warned(2));
    assert!(last.pending.warnings && last.has_unknown_conditions());
    assert_eq!(last.conditions, 2);
    last.pending.warnings = false;
    keep(&mut last, Ok(shown(b"1265", 2)), &meter);
    assert_eq!(last.kept().map(Diagnostics::conditions), Some(2));
    assert_eq!(last.kept().and_then(|kept| kept.total), Some(2));
    assert!(meter.bytes() > 0);
    last.ended(&finished(&insert(), &changed(1), 0, (true, MARIADB)));
    assert!(!last.has_conditions());
    assert_eq!((last.conditions, meter.bytes()), (0, 0));
}

#[test]
fn an_error_has_as_many_conditions_as_are_shown() {
    let meter = Meter::default();
    let mut last = after(insert(), &failed(1146));
    assert_eq!(last.conditions, 1);
    keep(&mut last, Ok(shown(b"1146", 3)), &meter);
    assert_eq!(last.conditions, 3);
    assert_eq!(last.kept().and_then(|kept| kept.state), Some(*b"42S02"));
    let mut last = after(insert(), &failed(1146));
    last.keep_conditions(Ok(shown(b"1146", 3)), None, 3, &meter);
    let total = last.kept().and_then(|kept| kept.total);
    assert_eq!(
        total, None,
        "with as many as are stored at most, there may be more"
    );
}

#[test]
fn what_cannot_be_read_is_lost_and_not_none() {
    let meter = Meter::default();
    let mut last = after(insert(), &warned(1));
    last.pending.warnings = false;
    keep(&mut last, Err(()), &meter);
    assert!(last.kept().is_none() && last.has_unknown_conditions());
    last.ended(&finished(&insert(), &changed(1), 0, (true, MARIADB)));
    assert!(!last.has_unknown_conditions());
}

#[test]
fn what_was_lost_meanwhile_stays_lost() {
    let meter = Meter::default();
    let mut last = after(insert(), &warned(1));
    last.pending.warnings = false;
    // An error of the pool's own, while the answer is on its way.
    last.lose_conditions();
    keep(&mut last, Ok(shown(b"1265", 1)), &meter);
    assert!(last.kept().is_none() && last.has_unknown_conditions());
    assert_eq!(meter.bytes(), 0);
}

#[test]
fn a_kill_outdates_what_is_on_its_way() {
    let meter = Meter::default();
    let mut last = after(insert(), &warned(1));
    last.answered_kill(true, MYSQL);
    assert!(!last.pending.warnings, "it is not asked for any more");
    keep(&mut last, Ok(shown(b"1265", 1)), &meter);
    assert!(!last.has_conditions());
    assert_eq!((last.row_count.get(), last.conditions), (Some(0), 0));
    last.answered_kill(false, MYSQL);
    assert!(last.has_unknown_conditions());
    assert_eq!(last.conditions, 1);
    last.sent();
    last.ended(&finished(&insert(), &warned(1), 0, (true, MARIADB)));
    keep(&mut last, Ok(shown(b"1265", 1)), &meter);
    assert!(
        last.kept().is_some(),
        "those of the next statement are kept"
    );
    last.answered_kill(true, MARIADB);
    assert!(last.kept().is_some(), "MariaDB keeps them");
    assert_eq!((last.row_count.get(), last.conditions), (Some(0), 0));
}

#[test]
fn followers_take_the_backend_and_with_it_the_words() {
    let mut last = after(insert(), &warned(1));
    last.pending.explanation = Explanation::Lasting;
    last.leave_to_followers();
    assert!(last.has_unknown_conditions());
    assert_eq!(last.pending, PendingReadBack::default());
    let mut last = after(insert(), &changed(1));
    last.leave_to_followers();
    assert!(!last.has_conditions());
}

#[test]
fn a_text_that_may_clear_is_asked_about_where_that_can_be() {
    let meter = Meter::default();
    let unsure = statement(Area::Unsure, Found::Unsure);
    for (elsewhere, pending, lost) in [(false, true, true), (true, false, true)] {
        let mut last = after(insert(), &warned(1));
        last.pending.warnings = false;
        keep(&mut last, Ok(shown(b"1265", 1)), &meter);
        if elsewhere {
            last.moved();
        }
        last.ended(&finished(&unsure, &changed(0), 0, (true, MARIADB)));
        assert_eq!(last.pending.warnings, pending, "elsewhere: {elsewhere}");
        assert_eq!(last.has_unknown_conditions(), lost);
        assert!(last.kept().is_none());
    }
    let keeps = statement(Area::Keeps, Found::Keeps);
    let mut last = after(insert(), &warned(1));
    last.pending.warnings = false;
    keep(&mut last, Ok(shown(b"1265", 1)), &meter);
    last.ended(&finished(&keeps, &changed(0), 0, (true, MARIADB)));
    assert!(last.kept().is_some());
}

#[test]
fn an_error_of_a_handler_that_is_not_active_stands_nowhere_but_in_its_packet() {
    let asks = Statement {
        conditions: Conditions::Asks,
        ..statement(Area::Keeps, Found::Keeps)
    };
    let mut last = LastStatement::default();
    last.ended(&finished(
        &asks,
        &failed(NO_HANDLER_STACKED),
        0,
        (true, MYSQL),
    ));
    assert!(!last.pending.warnings);
    last.ended(&finished(&asks, &failed(1146), 0, (true, MYSQL)));
    assert!(last.pending.warnings);
}

#[test]
fn a_session_that_starts_over_keeps_found_rows_alone() {
    let mut last = after(select(), &rows());
    last.insert_id = 9;
    last.pending.changed = Properties::INSERT_ID;
    last.start_over();
    assert_eq!((last.insert_id, last.row_count.get()), (0, Some(0)));
    assert_eq!(last.found_rows.get(), Some(3));
    assert_eq!(last.pending, PendingReadBack::default());
    assert!(last.is_valid_on_backend(Reads::FOUND_ROWS));
    assert!(!last.is_valid_on_backend(COUNTS));
}

#[test]
fn an_answer_of_the_pools_own_is_not_on_the_backend() {
    let mut last = after(insert(), &changed(7));
    last.answered(0);
    assert_eq!(last.row_count.get(), Some(0));
    assert!(last.lost().contains(COUNTS));
    assert!(!last.lost().intersects(Reads::DIAGNOSTICS));
    last.answered_clean(0);
    assert!(last.lost().intersects(Reads::DIAGNOSTICS));
}

#[test]
fn conditions_that_are_no_more_counted_are_still_shown() {
    let meter = Meter::default();
    let mut last = after(insert(), &failed(1146));
    last.answered_uncounted(0);
    assert_eq!((last.row_count.get(), last.conditions), (Some(0), 0));
    assert!(last.lost().contains(COUNTS) && last.is_valid_on_backend(Reads::DIAGNOSTICS));
    // The answer was on its way.
    keep(&mut last, Ok(shown(b"1146", 1)), &meter);
    assert_eq!(last.kept().map(Diagnostics::conditions), Some(1));
    assert_eq!(last.conditions, 0);
    last.sent();
    last.ended(&finished(&insert(), &failed(1146), 0, (true, MARIADB)));
    keep(&mut last, Ok(shown(b"1146", 2)), &meter);
    assert_eq!(last.conditions, 2, "those of the next statement count");
}

#[test]
fn a_text_that_may_end_with_get_diagnostics_counts_what_nobody_knows() {
    let statement = Statement {
        conditions: Conditions::RaisesOrAsks,
        extent: Extent::Several,
        ..insert()
    };
    let last = after(statement, &changed(0));
    assert_eq!(last.row_count.get(), None);
    assert!(last.is_valid_on_backend(COUNTS) && last.may_be_asked_for());
    // GET DIAGNOSTICS was not the last.
    assert_eq!(after(statement, &changed(2)).row_count.get(), Some(2));
    assert_eq!(after(statement, &failed(1146)).row_count.get(), Some(-1));
}

#[test]
fn a_failed_preparation_is_the_statements_error_on_its_backend() {
    let meter = Meter::default();
    let mut last = after(insert(), &changed(7));
    last.prepared_ahead();
    assert!(last.lost().contains(Reads::DIAGNOSTICS));
    last.failed_ahead(&failed(1146));
    assert!(last.pending.warnings && last.pending.failed);
    assert!(last.is_valid_on_backend(COUNTS.union(Reads::DIAGNOSTICS)));
    keep(&mut last, Ok(shown(b"1146", 1)), &meter);
    assert_eq!(last.kept().and_then(|kept| kept.state), Some(*b"42S02"));
}

#[test]
fn an_error_is_known_to_come_again_once_its_words_are_read() {
    let meter = Meter::default();
    let fails = |count| {
        let mut last = after(insert(), &failed(1065));
        assert!(!last.fails_again("words"), "they are not read");
        last.pending = PendingReadBack::default();
        keep(&mut last, Ok(shown(b"1065", count)), &meter);
        last
    };
    assert!(!fails(2).fails_again("words"));
    let mut last = fails(1);
    assert!(last.fails_again("words") && !last.fails_again("others"));
    last.answered_uncounted(0);
    last.failed_again();
    assert_eq!((last.row_count.get(), last.conditions), (Some(-1), 1));
    assert!(last.fails_again("words"));
    last.answered_clean(0);
    assert!(!last.fails_again("words"));
}

#[test]
fn conditions_of_all_clients_are_counted_and_leave_with_them() {
    let meter = Meter::default();
    let kept = || {
        let kept = Diagnostics {
            reply: vec![0; 1000],
            ..Diagnostics::default()
        };
        charged(kept, &meter)
    };
    let clients: Vec<_> = (0..3).map(|_| kept()).collect();
    assert!(meter.bytes() > 3000, "what each takes besides counts");
    drop(clients);
    assert_eq!(meter.bytes(), 0);
}

mod texts;

#[test]
fn what_its_backend_has_goes_with_that() {
    for read_back in [ReadBack::Wanted, ReadBack::Uncounted, ReadBack::Outdated] {
        let mut last = LastStatement {
            valid: Reads::ROW_COUNT.union(Reads::DIAGNOSTICS),
            read_back,
            counted: Counted {
                warnings: Some(3),
                state: Some(*b"42S02"),
                signals: true,
            },
            ..LastStatement::default()
        };
        last.pending.warnings = true;
        last.pending.changed = Properties::INSERT_ID.union(Properties::ROLE);
        let mut there = LastStatement::default();
        there.came_with_backend(last.on_its_backend());
        assert_eq!((there.pending, there.valid), (last.pending, last.valid));
        assert_eq!((there.read_back, there.counted), (read_back, last.counted));
    }
}

#[test]
fn it_goes_with_its_backend_unless_more_is_owed_than_can_be_told() {
    assert!(LastStatement::default().goes_with_backend());
    let changes: [fn(&mut LastStatement); 2] = [
        |last| last.pending.failed = true,
        |last| last.pending.explanation = Explanation::Passing,
    ];
    for change in changes {
        let mut last = LastStatement::default();
        change(&mut last);
        assert!(!last.goes_with_backend() && !last.is_settled());
    }
}

#[test]
fn conditions_that_have_come_are_counted_here() {
    let (there, here) = (Meter::default(), Meter::default());
    let kept = Diagnostics {
        reply: vec![1; 700],
        ..Diagnostics::default()
    };
    let mut last = LastStatement {
        kept: Some(charged(kept, &there)),
        ..LastStatement::default()
    };
    last.charge(&here);
    assert!(here.bytes() >= 700 && there.bytes() == 0);
    drop(last);
    assert_eq!(here.bytes(), 0);
}
