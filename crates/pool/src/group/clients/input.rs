//! Unfinished commands of clients: who is read on, and who is refused.
//!
//! The bounds, the counts and the line are those of [`crate::input_room`]. Invariant: who is
//! refused for what it holds is counted again before anything else is read from it.

use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::input_room::TURN_BYTES;
use reactor::{Key, Net};

impl<N: Net> Group<N> {
    /// Serves those who stand in line, and those for whom there is room now.
    pub(crate) fn serve_inputs(&mut self) {
        self.room().seat_waiting();
        let mut left = TURN_BYTES;
        for _ in 0..self.inputs.line.len() {
            if left == 0 {
                break;
            }
            let Some((key, share)) = self.room().next_in_line(left) else {
                continue;
            };
            self.pump(key);
            left = left.saturating_sub(self.room().served(key, share));
        }
    }

    /// Closes a client for what it has sent of a command, with the error as its answer.
    pub(crate) fn refuse_input(&mut self, key: Key, refusal: &Refusal) {
        self.room().drop_command(key);
        self.refuse_and_leave(key, refusal);
        self.room().count(key);
    }
}
