//! A group's messages to others, until its thread hands them over.
//!
//! A group has no thread's hands: what it finds out for other groups, for the console or for the
//! log lies here until the turn has ended. Invariant: each is handed over once, in the order in
//! which it was put here.

use crate::group::shared::Order;
use crate::observe::listing::Answer;
use crate::observe::log::ReportLine;
use crate::scheduler::budget::Budget;

/// Messages, answers and lines that are to go out behind a turn.
#[derive(Debug, Default)]
pub struct TurnOutput {
    messages: Vec<(usize, Order)>,
    answers: Vec<Answer>,
    report: Vec<ReportLine>,
}

impl TurnOutput {
    /// Adds a message to another group.
    pub(crate) fn send(&mut self, group: usize, order: Order) {
        self.messages.push((group, order));
    }

    /// Adds orders for these groups to look at what they have.
    pub(crate) fn wake(&mut self, groups: impl Iterator<Item = usize>) {
        self.messages
            .extend(groups.map(|group| (group, Order::Look)));
    }

    /// Gives the slot of a group's backend back that is closed, and tells who can have it.
    pub(crate) fn give_slot_back(&mut self, budget: &Budget, group: usize) {
        budget.give(group, 1);
        self.wake(budget.served(group));
    }

    /// Adds the answer to a question of the console.
    pub(crate) fn answer(&mut self, answer: Answer) {
        self.answers.push(answer);
    }

    /// Stores the report that was asked for; one that nobody has taken is older.
    pub(crate) fn put_report(&mut self, lines: Vec<ReportLine>) {
        self.report = lines;
    }

    /// Takes the messages that are to go to other groups, each with its group's number.
    pub fn take_messages(&mut self) -> Vec<(usize, Order)> {
        std::mem::take(&mut self.messages)
    }

    /// Takes the answers to questions.
    pub(crate) fn take_answers(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.answers)
    }

    /// Takes the report that [`Order::Report`] has asked for.
    pub fn take_report(&mut self) -> Vec<ReportLine> {
        std::mem::take(&mut self.report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_here_goes_out_once_and_in_order() {
        let mut turn_output = TurnOutput::default();
        turn_output.send(2, Order::Drain);
        turn_output.wake([1, 3].into_iter());
        let messages = turn_output.take_messages();
        let expected = [(2, Order::Drain), (1, Order::Look), (3, Order::Look)];
        assert_eq!(messages, expected);
        assert!(turn_output.take_messages().is_empty());
        assert!(turn_output.take_answers().is_empty() && turn_output.take_report().is_empty());
    }
}
