//! The part of a turn that goes to bulk work.
//!
//! `bulk.rs` says what bulk work is, and how much of it is done. Here its line is served.

use crate::backend::replies;
use crate::group::Group;
use crate::group::tasks::Task;
use crate::scheduler::bulk::{Piece, TURN_MAX};
use reactor::Net;

impl<N: Net> Group<N> {
    /// Serves bulk work, as much as a turn may do.
    pub(crate) fn do_bulk_work(&mut self) {
        let now = self.parts.net.now();
        let began = self.parts.net.clock();
        self.serve_inputs(began);
        let mut end = self.parts.net.clock();
        // What a piece leaves goes behind the others.
        while let Some(piece) = self.parts.work.bulk.pop() {
            match piece {
                Piece::Reply(key) => replies::read_backend(&mut self.parts, key),
                Piece::Client(key) => {
                    self.parts.client_writer().flush_and_read_on(key);
                    // What it has said meanwhile has waited for the end of its reply.
                    self.parts.work.tasks.add(Task::Read(key));
                }
                Piece::Command(key) => replies::write_on(&mut self.parts, key),
            }
            self.run_tasks();
            end = self.parts.net.clock();
            if end.since(began) >= TURN_MAX {
                break;
            }
        }
        self.parts.work.bulk.rest(now, began, end);
    }
}
