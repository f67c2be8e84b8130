//! The history of a proof: what clients asked and were told, in order of asking.
//!
//! An operation is written down before its statement is sent, and its answer when it has come: one
//! that is never answered may or may not have happened. Bound: [`OPERATIONS_MAX`] operations; a
//! client that finds the history full ends.

use load_core::errors::Fault;
use reactor::Time;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Operations that are recorded; the run ends with the last of them.
pub(super) const OPERATIONS_MAX: usize = 1_000_000;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Write,
    Read,
}

/// Answer to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// None has come, or one that says nothing: it may have happened, or may happen yet.
    Missing,
    /// The server acknowledged it.
    Done,
    /// The server's word that it has no effect.
    Refused,
}

/// One operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) client: u32,
    pub(super) act: Act,
    pub(super) key: u32,
    /// The number that was written, or read.
    pub(super) value: u64,
    pub(super) answer: Answer,
    pub(super) from: Time,
    /// `Time::NEVER` where no answer came.
    pub(super) to: Time,
}

impl Operation {
    pub(super) fn is_write(&self) -> bool {
        self.act == Act::Write
    }

    pub(super) fn is_done(&self) -> bool {
        self.answer == Answer::Done
    }
}

/// All operations of a run.
#[derive(Debug, Default)]
pub(super) struct History {
    operations: Mutex<Vec<Operation>>,
}

impl History {
    fn lock(&self) -> MutexGuard<'_, Vec<Operation>> {
        let operations = self.operations.lock();
        operations.unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an operation down that is about to be sent; returns its place, or `None` where the
    /// history is full.
    pub(super) fn begin(&self, client: u32, act: Act, key: u32, value: u64) -> Option<usize> {
        let mut operations = self.lock();
        let at = operations.len();
        (at < OPERATIONS_MAX).then(|| {
            operations.push(Operation {
                client,
                act,
                key,
                value,
                answer: Answer::Missing,
                from: Time::now(),
                to: Time::NEVER,
            });
            at
        })
    }

    /// Notes the answer to a write.
    pub(super) fn answer(&self, at: usize, answer: Answer) {
        if let Some(operation) = self.lock().get_mut(at) {
            (operation.answer, operation.to) = (answer, Time::now());
        }
    }

    /// Notes the number that a read has seen.
    pub(super) fn saw(&self, at: usize, value: u64) {
        if let Some(operation) = self.lock().get_mut(at) {
            operation.value = value;
            (operation.answer, operation.to) = (Answer::Done, Time::now());
        }
    }

    /// Takes all operations; answers that come later are not noted.
    pub(super) fn take(&self) -> Vec<Operation> {
        std::mem::take(&mut *self.lock())
    }
}

/// Errors that leave it open whether a statement had an effect: of a shutdown, a lost connection, a
/// commit that was interrupted, and those without a meaning of their own.
const AMBIGUOUS: &[u32] = &[
    1053, 1080, 1105, 1152, 1158, 1159, 1160, 1161, 1180, 1184, 1317, 1927, 9509,
];

/// The answer that an error is: a server's error says that the statement has no effect, but for
/// those of [`AMBIGUOUS`]; a client's and the system's say nothing.
pub(super) fn answer_of(fault: &Fault) -> Answer {
    match fault.code {
        0..1000 | 2000..3000 => Answer::Missing,
        code if AMBIGUOUS.contains(&code) => Answer::Missing,
        _ => Answer::Refused,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An operation from and to these moments; 0 is no answer.
    pub(in crate::proof) fn operation(
        (client, act): (u32, Act),
        key: u32,
        value: u64,
        answer: Answer,
        (from, to): (u64, u64),
    ) -> Operation {
        let to = if to == 0 { Time::NEVER } else { Time(to) };
        let from = Time(from);
        Operation {
            client,
            act,
            key,
            value,
            answer,
            from,
            to,
        }
    }

    /// A write that was acknowledged.
    pub(in crate::proof) fn wrote(client: u32, value: u64, span: (u64, u64)) -> Operation {
        operation((client, Act::Write), 1, value, Answer::Done, span)
    }

    /// A write without an answer.
    pub(in crate::proof) fn asked(client: u32, value: u64, from: u64) -> Operation {
        operation((client, Act::Write), 1, value, Answer::Missing, (from, 0))
    }

    /// A write that was refused.
    pub(in crate::proof) fn refused(client: u32, value: u64, span: (u64, u64)) -> Operation {
        operation((client, Act::Write), 1, value, Answer::Refused, span)
    }

    /// A read.
    pub(in crate::proof) fn read(client: u32, value: u64, span: (u64, u64)) -> Operation {
        operation((client, Act::Read), 1, value, Answer::Done, span)
    }

    #[test]
    fn a_full_history_takes_no_more() {
        let history = History::default();
        for at in 0..OPERATIONS_MAX {
            assert_eq!(history.begin(1, Act::Write, 2, at as u64), Some(at));
        }
        assert_eq!(history.begin(1, Act::Write, 2, 3), None);
        history.answer(5, Answer::Refused);
        let all = history.take();
        assert_eq!(
            (all.len(), all[5].answer),
            (OPERATIONS_MAX, Answer::Refused)
        );
        assert_eq!((all[4].answer, all[4].to), (Answer::Missing, Time::NEVER));
        history.answer(5, Answer::Done);
        assert_eq!(history.take(), []);
    }

    #[test]
    fn an_error_is_a_refusal_unless_the_statement_may_have_run() {
        let fault = |code| Fault {
            code,
            ..Fault::ended("x")
        };
        for code in [1213, 1205, 1290, 3024, 9501, 9507] {
            assert_eq!(answer_of(&fault(code)), Answer::Refused, "{code}");
        }
        for code in [0, 104, 110, 1053, 1158, 1180, 1927, 2006, 2013, 2027] {
            assert_eq!(answer_of(&fault(code)), Answer::Missing, "{code}");
        }
    }
}
