//! The bound on commands of the pool's own for one statement of a client.
//!
//! The problem: what is sent around a statement (in front, to restore its session; behind, to read
//! back what it left) follows from rules that call each other. A mistake in one of them could send
//! commands for ever, at full speed, on a backend that nobody else gets. The mechanism: each client
//! counts the answers to commands of the pool's own since it began its last command; above
//! [`OWN_COMMANDS_MAX`] the backend and the client are closed, the log says what was sent last, and
//! the client is told. It is a bug then, and a loud one.
//!
//! Not counted are SETs that are told again (`Purpose::SetAgain`): there is one for each SET of the
//! client's own text, and none brings another.
//!
//! Invariant: between two commands of a client its backends answer at most [`OWN_COMMANDS_MAX`]
//! others for it.

/// Above all that one statement can need: some ten in front of it and behind it, and a question for
/// each of 64 conditions that the client before it has left.
pub const OWN_COMMANDS_MAX: u8 = 200;

/// Answers to commands of the pool's own since a client's last command began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCommands(u8);

impl OwnCommands {
    /// Counts one more answer; `false` when that is more than there may be.
    #[must_use]
    pub fn note(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        self.0 <= OWN_COMMANDS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_bound_may_be_answered_and_no_more() {
        let mut own = OwnCommands::default();
        assert!((0..OWN_COMMANDS_MAX).all(|_| own.note()));
        assert!(!own.note() && !own.note());
    }
}
