//! Client that a backend serves after the commands that run on it now.
//!
//! The problem: a KILL that the server has not answered may hit whatever runs on its connection
//! next; and a session may stand where no command brings it into another client's. The mechanism:
//! [`Reuse`] says who comes next, if anybody, and moves by the functions here alone.
//!
//! Invariant: a backend that serves nobody after its client never serves others again.

/// Client that may run something on a backend next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// Whoever gets it.
    #[default]
    Anybody,
    /// Nobody until the KILL for what runs on it is answered, then whoever gets it.
    Frozen,
    /// The client that has it, and nobody after it.
    ItsClient,
    /// Nobody until the KILL is answered, then the client that has it.
    FrozenForItsClient,
}

impl Reuse {
    /// Freezes it while a KILL for what runs on it goes out.
    pub(crate) fn freeze(&mut self) {
        *self = match self {
            Reuse::Anybody | Reuse::Frozen => Reuse::Frozen,
            Reuse::ItsClient | Reuse::FrozenForItsClient => Reuse::FrozenForItsClient,
        };
    }

    /// Ends the freeze of a KILL that was answered, or never will be. `may_come`: it may still hit
    /// what runs there.
    pub(crate) fn thaw(&mut self, may_come: bool) {
        *self = match self {
            Reuse::Anybody | Reuse::Frozen if !may_come => Reuse::Anybody,
            _ => Reuse::ItsClient,
        };
    }

    /// Limits its use to the client that has it.
    pub(crate) fn end_with_client(&mut self) {
        *self = match self {
            Reuse::Anybody | Reuse::ItsClient => Reuse::ItsClient,
            Reuse::Frozen | Reuse::FrozenForItsClient => Reuse::FrozenForItsClient,
        };
    }

    /// True if nothing is to be sent on it now.
    pub(crate) fn is_frozen(self) -> bool {
        matches!(self, Reuse::Frozen | Reuse::FrozenForItsClient)
    }

    /// True if another client may have it now.
    pub(crate) fn is_for_others(self) -> bool {
        self == Reuse::Anybody
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Reuse; 4] = [
        Reuse::Anybody,
        Reuse::Frozen,
        Reuse::ItsClient,
        Reuse::FrozenForItsClient,
    ];

    #[test]
    fn a_kill_that_was_answered_leaves_a_backend_as_it_was() {
        for before in [Reuse::Anybody, Reuse::ItsClient] {
            let mut reuse = before;
            reuse.freeze();
            assert!(reuse.is_frozen() && !reuse.is_for_others());
            reuse.thaw(false);
            assert_eq!(reuse, before);
        }
    }

    #[test]
    fn one_that_may_still_come_hits_nobody_else() {
        for mut reuse in ALL {
            reuse.thaw(true);
            assert_eq!(reuse, Reuse::ItsClient);
        }
    }

    #[test]
    fn what_ends_with_its_client_serves_no_other_again() {
        for mut reuse in ALL {
            let frozen = reuse.is_frozen();
            reuse.end_with_client();
            assert_eq!(reuse.is_frozen(), frozen);
            for step in [
                Reuse::freeze,
                |reuse: &mut Reuse| reuse.thaw(false),
                Reuse::end_with_client,
            ] {
                step(&mut reuse);
                assert!(!reuse.is_for_others());
            }
        }
    }
}
