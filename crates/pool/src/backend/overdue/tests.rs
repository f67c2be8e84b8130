//! Tests of backends whose time is over.

use super::*;
use crate::backend::binding::Binding;
use crate::backend::{ForBackend, ForSession, Purpose};
use crate::backend::{InFlight, Left};
use crate::config::test_settings;
use crate::group::tokens::ClientId;
use std::rc::Rc;
use wire::command::ReplyShape;
use wire::status::{AUTOCOMMIT, IN_TRANS};

/// A backend that has sent so many bytes of rows when its client left, and so many since.
fn backend(before: usize, since: usize) -> Backend<()> {
    let mut backend = Backend::of_tests(Time(0), Rc::default());
    let command = InFlight::own(None, Purpose::Statement, ReplyShape::Results);
    backend.flight.expect(command);
    backend.flight.summary_mut().columns = Some(1);
    backend.flight.summary_mut().len = before;
    backend.flight.note_left(Time(7));
    backend.flight.summary_mut().len += since;
    backend
}

#[test]
fn the_rest_of_a_short_reply_is_read() {
    let at = Time(7) + UNREAD_MAX;
    assert!(!backend(1 << 30, UNREAD_BYTES_MAX).is_read_in_vain(at));
    assert!(backend(1 << 30, UNREAD_BYTES_MAX + 1).is_read_in_vain(Time(7)));
    let later = at + Duration::from_nanos(1);
    assert!(backend(0, 0).is_read_in_vain(later));
}

#[test]
fn what_has_sent_no_rows_is_carried_out() {
    let mut backend = backend(0, UNREAD_BYTES_MAX + 1);
    backend.flight.summary_mut().columns = None;
    let later = Time(8) + UNREAD_MAX;
    assert!(!backend.is_read_in_vain(later));
}

#[test]
fn a_reply_counts_from_when_its_own_client_left() {
    let mut backend = backend(100, 50);
    let behind = InFlight::own(None, Purpose::Statement, ReplyShape::Results);
    backend.flight.expect(behind);
    backend.flight.note_left(Time(9));
    let left = |place: usize| backend.flight.iter().nth(place).unwrap().left;
    assert_eq!(
        left(0),
        Some(Left {
            at: Time(7),
            len: 100
        })
    );
    assert_eq!(
        left(1),
        Some(Left {
            at: Time(9),
            len: 0
        })
    );
}

#[test]
fn lives_differ_by_a_tenth_and_are_never_longer() {
    let life = Duration::from_secs(1000);
    let lives = (0..200).map(|n| life_of(BackendId::from_parts(n, 0), Time(77), life));
    let lives: Vec<Duration> = lives.collect();
    assert!(lives.iter().all(|l| *l <= life && *l > life * 9 / 10));
    let spread = *lives.iter().max().unwrap() - *lives.iter().min().unwrap();
    assert!(spread > life / 20, "{spread:?}");
}

/// Fate of a backend after so long, whose server is silent for so long.
fn after(
    backend: &Backend<()>,
    settings: &Settings,
    (passed, silent): (Duration, Option<Duration>),
) -> Option<Overdue> {
    let limits = TimeLimits {
        settings,
        timeouts: &ServerTimeouts::default(),
        capabilities: 0,
        has_spare: true,
        now: Time(0) + passed,
    };
    backend.overdue(BackendId::from_parts(0, 0), || silent, &limits)
}

fn dialled() -> Backend<()> {
    Backend::of_tests(Time(0), Rc::default())
}

/// A backend that stands in this state since the beginning.
fn standing(state: BackendState) -> Backend<()> {
    let mut backend = dialled();
    for to in [
        BackendState::Preparing,
        BackendState::Idle,
        BackendState::CheckedOut,
    ] {
        if backend.state() != state {
            assert!(backend.change_state(to, Time(0)));
        }
    }
    backend
}

#[test]
fn a_dial_has_its_own_limit_and_no_other() {
    let settings = test_settings("backend_silence_s_max = 3\ndial_ms_max = 4000");
    let long = Some(Duration::from_secs(9));
    let dial = dialled();
    let at = |ms| after(&dial, &settings, (Duration::from_millis(ms), long));
    assert_eq!(at(4000), None);
    assert!(matches!(at(4001), Some(Overdue::Dial(why)) if why.ends_with("within 4000 ms")));
}

#[test]
fn a_silent_host_loses_its_backends() {
    let settings = test_settings("backend_silence_s_max = 10");
    for state in [BackendState::Idle, BackendState::CheckedOut] {
        let backend = standing(state);
        let silent = |s| after(&backend, &settings, (Duration::ZERO, s));
        assert_eq!(silent(None), None);
        assert_eq!(silent(Some(Duration::from_millis(9_999))), None);
        let lost = silent(Some(Duration::from_secs(10)));
        assert!(matches!(lost, Some(Overdue::Lost(why)) if why.ends_with("for 10 s")));
    }
}

#[test]
fn the_pools_own_question_is_bounded_and_a_statement_is_not() {
    let settings = test_settings("wait_ms_max = 500");
    for (purpose, bounded) in [
        (ForSession::Warnings.into(), true),
        (ForSession::Restore(true).into(), true),
        (Purpose::Statement, false),
        (ForSession::Ahead.into(), false),
        (ForBackend::GiveBack.into(), false),
    ] {
        let mut backend = standing(BackendState::CheckedOut);
        (backend.flight).expect(InFlight::own(None, purpose, ReplyShape::Status));
        let at = |ms| after(&backend, &settings, (Duration::from_millis(ms), None));
        assert_eq!(at(500), None, "{purpose:?}");
        let lost = matches!(at(501), Some(Overdue::Lost(_)));
        assert_eq!(lost, bounded, "{purpose:?}");
    }
}

/// A server that rolls back for longer is left alone with it.
#[test]
fn a_rollback_behind_a_client_that_left_is_bounded_from_when_it_was_sent() {
    let settings = test_settings("wait_ms_max = 500");
    let mut backend = standing(BackendState::CheckedOut);
    (backend.session.transaction).note_status(AUTOCOMMIT | IN_TRANS);
    let sent = Time(0) + Duration::from_secs(7);
    assert!(
        backend
            .roll_back(ClientId::from_parts(1, 1), sent)
            .is_some()
    );
    let at = |ms| after(&backend, &settings, (Duration::from_millis(ms), None));
    assert_eq!(at(7500), None);
    assert!(matches!(at(7501), Some(Overdue::Lost(why)) if why.ends_with("within 500 ms")));
}

#[test]
fn what_lies_idle_is_closed_where_others_are_kept() {
    let settings = test_settings("backend_idle_ms_max = 20000");
    let idle = standing(BackendState::Idle);
    let at = |s| after(&idle, &settings, (Duration::from_secs(s), None));
    assert_eq!((at(20), at(21)), (None, Some(Overdue::Idle)));
    let bound = standing(BackendState::CheckedOut);
    let passed = Duration::from_secs(1 << 20);
    assert_eq!(after(&bound, &settings, (passed, None)), None);
}

#[test]
fn a_reply_in_front_of_what_its_client_waits_for_is_read_to_its_end() {
    let (client, backend_id) = (ClientId::from_parts(1, 0), BackendId::from_parts(1, 0));
    let mut backend = backend(0, UNREAD_BYTES_MAX + 1);
    assert!(backend.is_read_in_vain(Time(7)));
    Binding::default().bind(&mut backend.binding, (client, backend_id));
    assert!(!backend.is_read_in_vain(Time(7)));
}
