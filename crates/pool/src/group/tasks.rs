//! Tasks: work that a step of a turn leaves for the steps behind it.
//!
//! The problem: the end of one client's statement gives its backend to another client, whose whole
//! command can run at once. Were it run from within, any call could re-enter any other, and remove
//! what its callers hold. The mechanism: a step says what is to be done next, as a [`Task`]; the
//! turn does it when the step has returned. What a step leaves is done before what was left
//! earlier, in the order in which it was left: as if each had been called in the last line of the
//! step.
//!
//! Invariants: tasks are carried out by [`Group::run_tasks`] alone, in the turn in which they were
//! left, up to [`TASKS_MAX`] for each event; for what is left then, and by the last writes of a
//! turn, the next turn begins at once ([`Group::deadline`]). Nothing that a task does calls it.
//! Their number is bounded by that of clients and backends: a step leaves at most [`PER_STEP_MAX`]
//! for each of them that it moves.

use crate::group::tokens::{BackendId, ClientId};

/// Tasks that a step leaves for a client or backend that it has moved.
const PER_STEP_MAX: usize = 4;

/// Tasks that are carried out behind one event: steps that leave each other to be done would keep
/// the group from everybody else.
pub(super) const TASKS_MAX: usize = 4096;

/// One step of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Serves a client with the bytes that it has sent.
    Read(ClientId),
    /// Decides what becomes of a client's backend.
    Settle(BackendId),
    /// Lets waiting clients pipeline on a backend.
    Pipeline(BackendId),
    /// Gives an idle backend to the client whose turn it is.
    Serve,
    /// Opens a spare backend of a pool, if it lacks one.
    Spare(usize),
}

/// Tasks that are left to be done.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    /// Left by the step that runs now, in order.
    fresh: Vec<Task>,
    /// Left by earlier steps; the last is the next.
    earlier: Vec<Task>,
}

impl Tasks {
    /// Leaves a task behind those that this step has left so far.
    pub(crate) fn add(&mut self, task: Task) {
        self.fresh.push(task);
    }

    /// True if nothing is left to be done.
    pub(crate) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.earlier.is_empty()
    }

    /// True if the step before has left no more than it may, where there are so many clients and
    /// backends.
    pub(super) fn are_few(&self, parts: usize) -> bool {
        self.fresh.len() <= PER_STEP_MAX * (1 + parts)
    }

    /// The next task, once a step has returned.
    pub(super) fn next(&mut self) -> Option<Task> {
        while let Some(task) = self.fresh.pop() {
            self.earlier.push(task);
        }
        self.earlier.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::group;
    use reactor::Time;

    #[test]
    fn for_what_the_end_of_a_turn_leaves_the_next_begins_at_once() {
        let mut group = group();
        group.turn(&[]);
        assert_ne!(group.deadline(), Time(0));
        group.parts.work.tasks.add(Task::Serve);
        assert_eq!(group.deadline(), Time(0));
        group.turn(&[]);
        assert!(group.parts.work.tasks.is_empty());
    }

    #[test]
    fn an_event_has_a_bounded_number_of_tasks_carried_out() {
        let mut group = group();
        for _ in 0..=TASKS_MAX {
            group.parts.work.tasks.add(Task::Serve);
        }
        group.run_tasks();
        assert!(!group.parts.work.tasks.is_empty());
        assert_eq!(group.deadline(), Time(0));
        group.run_tasks();
        assert!(group.parts.work.tasks.is_empty());
    }

    #[test]
    fn a_step_leaves_a_few_tasks_for_each_that_it_moves() {
        for parts in [0, 3] {
            let mut tasks = Tasks::default();
            for _ in 0..PER_STEP_MAX * (1 + parts) {
                tasks.add(Task::Serve);
                assert!(tasks.are_few(parts), "{parts}");
            }
            tasks.add(Task::Serve);
            assert!(!tasks.are_few(parts), "{parts}");
            let _ = tasks.next();
            assert!(tasks.are_few(parts), "they are of an earlier step now");
        }
    }

    #[test]
    fn what_a_step_leaves_is_done_in_order_and_before_what_was_left_earlier() {
        let mut tasks = Tasks::default();
        tasks.add(Task::Spare(1));
        tasks.add(Task::Spare(2));
        assert_eq!(tasks.next(), Some(Task::Spare(1)));
        tasks.add(Task::Spare(10));
        tasks.add(Task::Spare(11));
        let rest: Vec<Task> = std::iter::from_fn(|| tasks.next()).collect();
        assert_eq!(rest, [10, 11, 2].map(Task::Spare));
    }
}
