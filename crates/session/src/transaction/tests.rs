//! Status flags, trackers and texts, one behind the other.

use super::*;

#[test]
fn one_is_seen_by_flag_or_by_tracker_or_by_what_announces_it() {
    let mut transaction = Transaction::default();
    assert!(!transaction.is_open());
    transaction.note_status(status::IN_TRANS);
    assert!(transaction.is_open());
    transaction.note_status(0);
    transaction.note_state(b"________");
    assert!(!transaction.is_open());
    transaction.note_state(b"T_______");
    assert!(transaction.is_open());
    transaction.note_state(b"________");
    transaction.note_characteristics(b"SET TRANSACTION READ ONLY;");
    assert!(transaction.is_open() && transaction.is_announced());
    transaction.announcement_used();
    assert!(!transaction.is_open());
}

#[test]
fn one_is_open_from_its_begin_on_whatever_stands_in_front_of_that() {
    let mut transaction = Transaction::default();
    transaction.note_begin_sent();
    // The reply to what restores the session.
    transaction.note_status(status::AUTOCOMMIT);
    transaction.note_state(b"________");
    assert!(transaction.is_open());
    transaction.note_status(status::AUTOCOMMIT | status::IN_TRANS);
    transaction.note_begin_answered();
    assert!(transaction.is_open());
    transaction.note_status(status::AUTOCOMMIT);
    assert!(!transaction.is_open());
}

#[test]
fn what_an_error_has_rolled_back_is_over() {
    let mut transaction = Transaction::default();
    transaction.note_status(status::IN_TRANS);
    transaction.note_state(b"T_______");
    transaction.note_characteristics(b"START TRANSACTION READ WRITE;");
    assert!(!transaction.rolled_back() && transaction.is_open());
    // A deadlock: MariaDB says that the next one is to be so.
    transaction.note_status(status::AUTOCOMMIT);
    transaction.note_characteristics(b"SET TRANSACTION READ WRITE;");
    assert!(transaction.is_open());
    assert!(transaction.rolled_back() && !transaction.is_open());
    // One that is announced behind none is.
    transaction.note_characteristics(b"SET TRANSACTION READ ONLY;");
    transaction.note_status(status::AUTOCOMMIT);
    assert!(!transaction.rolled_back() && transaction.is_announced());
}

#[test]
fn a_savepoint_without_a_transaction_is_kept_until_its_end() {
    let mut transaction = Transaction::default();
    for end in [status::IN_TRANS, status::AUTOCOMMIT] {
        transaction.note_status(0);
        transaction.note_savepoint(true, false);
        assert!(transaction.is_open());
        transaction.note_savepoint(false, false);
        transaction.note_status(0);
        assert!(transaction.is_open());
        transaction.note_status(end);
        transaction.note_status(0);
        assert!(!transaction.is_open());
    }
}

#[test]
fn a_savepoint_under_autocommit_is_none() {
    let mut transaction = Transaction::default();
    transaction.note_status(status::AUTOCOMMIT);
    transaction.note_savepoint(true, false);
    assert!(!transaction.is_open());
    transaction.note_status(0);
    transaction.note_savepoint(true, true);
    assert!(!transaction.is_open());
}

use status::{AUTOCOMMIT, IN_TRANS};

/// Event of a transaction, as it is reported.
#[derive(Clone, Copy, Debug)]
enum Told {
    Status(u16),
    State(&'static str),
    Characteristics(&'static str),
    Savepoint { set: bool, ended: bool },
    BeginSent,
    BeginAnswered,
    Used,
}

fn after(told: &[Told]) -> Transaction {
    let mut transaction = Transaction::default();
    for told in told {
        match *told {
            Told::Status(flags) => transaction.note_status(flags),
            Told::State(state) => transaction.note_state(state.as_bytes()),
            Told::Characteristics(texts) => transaction.note_characteristics(texts.as_bytes()),
            Told::Savepoint { set, ended } => transaction.note_savepoint(set, ended),
            Told::BeginSent => transaction.note_begin_sent(),
            Told::BeginAnswered => transaction.note_begin_answered(),
            Told::Used => transaction.announcement_used(),
        }
    }
    transaction
}

const SET: Told = Told::Savepoint {
    set: true,
    ended: false,
};
const ENDED: Told = Told::Savepoint {
    set: false,
    ended: true,
};
const NEITHER: Told = Told::Savepoint {
    set: false,
    ended: false,
};

macro_rules! open {
    ($($name:ident: [$($told:expr),*] is $open:expr;)*) => {$(
        #[test]
        fn $name() {
            assert_eq!(after(&[$($told),*]).is_open(), $open);
        }
    )*};
}

open! {
    a_fresh_session_has_none: [] is false;
    the_flag_opens_one: [Told::Status(IN_TRANS)] is true;
    the_flag_beside_autocommit_opens_one: [Told::Status(IN_TRANS | AUTOCOMMIT)] is true;
    an_ok_without_the_flag_closes_it: [Told::Status(IN_TRANS), Told::Status(AUTOCOMMIT)] is false;
    without_autocommit_nothing_is_open_by_itself: [Told::Status(0)] is false;
    other_flags_open_none: [Told::Status(!IN_TRANS)] is false;
    a_first_read_without_autocommit_is_tracked:
        [Told::Status(0), Told::State("__r_____")] is true;
    an_empty_state_closes_what_was_tracked:
        [Told::State("T_______"), Told::State("________")] is false;
    a_state_without_letters_is_none: [Told::State("")] is false;
    an_ok_does_not_close_what_is_tracked:
        [Told::State("T_______"), Told::Status(AUTOCOMMIT)] is true;
    what_is_announced_is_open: [Told::Characteristics("SET TRANSACTION READ ONLY;")] is true;
    characteristics_that_are_gone_are_not:
        [Told::Characteristics("SET TRANSACTION READ ONLY;"), Told::Characteristics("")] is false;
    what_was_announced_is_used_up:
        [Told::Characteristics("SET TRANSACTION READ ONLY;"), Told::Used] is false;
    using_it_up_ends_no_transaction:
        [Told::Status(IN_TRANS), Told::Characteristics("START TRANSACTION;"), Told::Used] is true;
    a_begin_on_its_way_opens_one: [Told::BeginSent] is true;
    what_stands_in_front_of_a_begin_does_not_close_it:
        [Told::BeginSent, Told::Status(AUTOCOMMIT), Told::State("________")] is true;
    its_answer_says_what_came_of_it:
        [Told::BeginSent, Told::Status(AUTOCOMMIT), Told::BeginAnswered] is false;
    its_answer_may_say_that_it_is_open:
        [Told::BeginSent, Told::Status(IN_TRANS), Told::BeginAnswered] is true;
    a_savepoint_before_the_first_table_opens_one: [Told::Status(0), SET] is true;
    a_statement_that_sets_none_leaves_it: [Told::Status(0), SET, NEITHER] is true;
    a_commit_ends_it: [Told::Status(0), SET, ENDED] is false;
    one_that_is_set_and_ended_at_once_is_none:
        [Told::Status(0), Told::Savepoint { set: true, ended: true }] is false;
    a_statement_that_sets_none_begins_none: [Told::Status(0), NEITHER] is false;
    a_savepoint_of_a_transaction_ends_with_it:
        [Told::Status(IN_TRANS), SET, Told::Status(0)] is false;
    autocommit_ends_a_savepoint: [Told::Status(0), SET, Told::Status(AUTOCOMMIT), Told::Status(0)]
        is false;
    an_ok_without_autocommit_keeps_a_savepoint: [Told::Status(0), SET, Told::Status(0)] is true;
}

#[test]
fn what_is_announced_and_what_is_tracked_are_told_apart() {
    let announced = after(&[Told::Characteristics("SET TRANSACTION READ ONLY;")]);
    assert!(announced.is_announced() && !announced.is_tracked());
    let tracked = after(&[Told::State("T_______")]);
    assert!(tracked.is_tracked() && !tracked.is_announced());
    assert_eq!(after(&[Told::Status(0x4003)]).status(), 0x4003);
}

#[test]
fn what_an_error_has_ended_counts_no_more_whether_it_was_open_or_announced() {
    for announced in [false, true] {
        let mut transaction = Transaction::default();
        transaction.note_status(status::IN_TRANS);
        match announced {
            true => transaction.note_characteristics(b"SET TRANSACTION READ ONLY;"),
            false => transaction.note_state(b"T_______"),
        }
        assert!(
            !transaction.rolled_back(),
            "the flag still says that it is open"
        );
        transaction.note_status(status::AUTOCOMMIT);
        assert!(transaction.rolled_back(), "announced: {announced}");
        assert!(!transaction.is_open());
        assert!(!transaction.rolled_back(), "it is told once");
    }
}

#[test]
fn each_end_gives_the_next_one_another_number() {
    let mut transaction = Transaction::default();
    let mut number = transaction.number();
    let mut ends = |transaction: &Transaction| {
        let before = std::mem::replace(&mut number, transaction.number());
        before != number
    };
    transaction.note_status(status::IN_TRANS);
    transaction.note_state(b"T_______");
    assert!(!ends(&transaction));
    transaction.note_status(status::AUTOCOMMIT);
    assert!(!ends(&transaction), "the tracker comes behind it");
    transaction.note_state(b"________");
    assert!(ends(&transaction));
    // What only the tracker tells of, and what is only announced.
    transaction.note_state(b"__R_____");
    transaction.note_characteristics(b"SET TRANSACTION READ ONLY;");
    transaction.note_state(b"________");
    assert!(!ends(&transaction));
    transaction.announcement_used();
    assert!(ends(&transaction));
    // An OK within one, and outside of one.
    transaction.note_status(status::IN_TRANS);
    transaction.note_status(status::IN_TRANS);
    assert!(!ends(&transaction));
    // COMMIT AND CHAIN, or BEGIN within one.
    transaction.note_savepoint(false, true);
    assert!(transaction.is_open() && ends(&transaction));
    transaction.note_savepoint(true, false);
    assert!(!ends(&transaction));
}

#[test]
fn behind_an_error_nobody_knows_until_the_next_flags_whether_it_has_ended() {
    let mut transaction = after(&[Told::Status(AUTOCOMMIT | IN_TRANS)]);
    assert_eq!(transaction.doubt(), Doubt::None);
    transaction.note_failed(true);
    assert!(transaction.is_open());
    assert_eq!(transaction.doubt(), Doubt::MayBeCommitted);
    // The next error does not tell it either, nor does a report.
    transaction.note_failed(false);
    transaction.note_state(b"T_______");
    assert_eq!(transaction.doubt(), Doubt::MayBeCommitted);
    transaction.note_status(AUTOCOMMIT | IN_TRANS);
    assert_eq!(transaction.doubt(), Doubt::None);
    transaction.note_failed(false);
    assert_eq!(transaction.doubt(), Doubt::MayBeUndone);
    transaction.note_status(AUTOCOMMIT);
    assert_eq!(transaction.doubt(), Doubt::None);
}
