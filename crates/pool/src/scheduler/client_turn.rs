//! The budget of one client in one turn of its group: commands, reads and time.
//!
//! The problem: a group is one thread. A command that needs a backend makes its client wait, and
//! others are served meanwhile. A command that the pool answers by itself (COM_PING, a COMMIT with
//! no transaction open, COM_STMT_CLOSE, an error of its own) makes it wait for nothing: 64 KiB hold
//! 13,000 pings, and a compressed frame of 24 KiB 3.3 million.
//!
//! The mechanism: all bytes of clients become commands in `Group::pump`, which takes each read and
//! each command from a [`ClientTurn`]. Once that is used up, the client stands in the line of
//! `limits/unfinished.rs` with what it has sent, and goes on there as bulk work (`bulk.rs`), a turn
//! for each in line, while short statements of others are answered first. Bytes are bounded by the
//! reads. A client that does not take its answers is not read at all (`Client::takes_input`).
//!
//! Invariant: each turn of a client handles at least one command if a whole one is there.

use reactor::Time;
use std::time::Duration;

/// Commands that are handled in one turn of a client. Drivers send no more than a few that need no
/// server at once; each answer is a write, and these take about as long as bulk work may.
pub(crate) const COMMANDS_MAX: u32 = 32;
/// Times that a client's bytes are read in one turn.
const READS_MAX: u32 = 16;
/// The time of one turn, but for its first command and its last.
const TIME_MAX: Duration = Duration::from_micros(200);

/// Part of its turn that one client has taken.
#[derive(Debug, Default)]
pub(crate) struct ClientTurn {
    commands: u32,
    reads: u32,
    /// Taken with the second command or read: most turns have one, and read no clock.
    began: Option<Time>,
    is_over: bool,
}

impl ClientTurn {
    /// True if one more command may be handled.
    pub(crate) fn takes_command(&mut self, clock: impl FnOnce() -> Time) -> bool {
        self.commands += 1;
        self.goes_on(self.commands, COMMANDS_MAX, clock)
    }

    /// True if the client's bytes may be read once more.
    pub(crate) fn takes_read(&mut self, clock: impl FnOnce() -> Time) -> bool {
        self.reads += 1;
        self.goes_on(self.reads, READS_MAX, clock)
    }

    fn goes_on(&mut self, count: u32, max: u32, clock: impl FnOnce() -> Time) -> bool {
        let has_time = count == 1 || {
            let now = clock();
            now.since(*self.began.get_or_insert(now)) < TIME_MAX
        };
        self.is_over |= count > max || !has_time;
        !self.is_over
    }

    /// True once something was refused: the client goes on in a later turn.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: Time = Time(5_000_000_000);

    #[test]
    fn a_turn_has_so_many_commands_and_reads() {
        let mut turn = ClientTurn::default();
        for _ in 0..COMMANDS_MAX {
            assert!(turn.takes_command(|| BEGAN));
        }
        assert!(!turn.is_over());
        assert!(!turn.takes_command(|| BEGAN));
        assert!(turn.is_over() && !turn.takes_read(|| BEGAN));
        let mut turn = ClientTurn::default();
        assert!((0..READS_MAX).all(|_| turn.takes_read(|| BEGAN)));
        assert!(!turn.takes_read(|| BEGAN));
    }

    #[test]
    fn a_turn_has_so_much_time_behind_its_first_command() {
        let mut turn = ClientTurn::default();
        assert!(turn.takes_command(|| unreachable!("most turns have one command")));
        assert!(turn.takes_command(|| BEGAN));
        assert!(turn.takes_command(|| BEGAN + TIME_MAX - Duration::from_nanos(1)));
        assert!(!turn.takes_command(|| BEGAN + TIME_MAX));
        assert!(!turn.takes_command(|| BEGAN), "it does not begin again");
    }
}
