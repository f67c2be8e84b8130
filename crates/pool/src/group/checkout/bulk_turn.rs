//! The part of a turn that goes to bulk work.
//!
//! `bulk.rs` says what bulk work is, and how much of it is done. Here its line is served.

use crate::group::Group;
use crate::group::tasks::Task;
use crate::scheduler::bulk::{Piece, TURN_MAX};
use reactor::Net;

impl<N: Net> Group<N> {
    /// Serves bulk work, as much as a turn may do.
    pub(crate) fn do_bulk_work(&mut self) {
        let now = self.net.now();
        let began = self.net.clock();
        self.serve_inputs(began);
        let mut end = self.net.clock();
        // What a piece leaves goes behind the others.
        while let Some(piece) = self.bulk.pop() {
            match piece {
                Piece::Reply(key) => self.read_backend(key),
                Piece::Client(key) => {
                    self.client_writer().flush_and_read_on(key);
                    // What it has said meanwhile has waited for the end of its reply.
                    self.tasks.add(Task::Read(key));
                }
                Piece::Command(key) => self.write_on(key),
            }
            self.run_tasks();
            end = self.net.clock();
            if end.since(began) >= TURN_MAX {
                break;
            }
        }
        self.bulk.rest(now, began, end);
    }
}
