//! KILL in the simulated world: who names whom, and what the server does of it.
//!
//! Only one client in three is ever named, and only statements of such a client may be interrupted:
//! a KILL that hits anybody else fails the run.

use super::World;
use crate::sim::client::Phase;

impl World {
    /// Ends what a KILL names, as the server; a KILL QUERY finds only what runs.
    pub(super) fn carry_out_kill(&mut self, id: usize, query: bool) {
        self.note(|| format!("server kills {id}, query: {query}"));
        if query {
            if let Some(server) = self.servers.get_mut(&id) {
                server.seat.killed = server.done_at.is_some();
            }
        } else if self.servers.contains_key(&id) {
            self.leave_seat(id);
            self.wires().reset(id);
        }
    }

    /// Client that is killed now, if any: one in three may be.
    pub(super) fn choose_prey(&mut self, killer: usize) -> Option<u32> {
        if self.manners.tame || !self.random.chance(40) {
            return None;
        }
        let number = 3 * self.random.index(self.clients.len().div_ceil(3));
        let prey = &self.clients[number];
        if number == killer || prey.phase != Phase::In {
            return None;
        }
        prey.connection_id()
    }
}
