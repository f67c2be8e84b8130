//! KILL of a client of another pool, told by digits.
//!
//! A pool tells one KILL at a time: first the victim and the account, then that there is one, with
//! its number. Whoever has the victim does it, and holds an [`super::Lock::Answer`] to that number
//! until the asker has taken the KILL back: one that comes late is to no other KILL. Nobody who has
//! it answers within [`ROUNDS_MAX`] rounds: there is no such client. The header is read in front of
//! the numbers and behind them, and must be the same.

/// Rounds after which a KILL that nobody has answered found nobody.
pub(super) const ROUNDS_MAX: u8 = 6;
/// Digits of the header: that there is one, its kind, and its number.
pub(super) const HEADER_DIGITS: u8 = 8;
/// Digits of the victim and the account.
pub(super) const WORD_DIGITS: u8 = 32;

/// A KILL that goes from pool to pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteKill {
    /// The victim's id.
    pub id: u32,
    /// True if only its statement is to end.
    pub query: bool,
    /// Hash of the account whose clients alone may be ended, below [`ANYBODY`]; `None`: an
    /// administrator asks.
    pub account: Option<u32>,
}

/// Account of an administrator's KILL, as it is told: all digits are 1, so that one that is missed
/// makes nobody an administrator.
pub const ANYBODY: u32 = u32::MAX;

/// Number of the KILL that makes a pool's so many.
pub(super) fn number_of(count: u8) -> u8 {
    count % 64
}

/// The number that a header has.
pub(super) fn number_in(header: u32) -> u8 {
    number_of(u8::try_from(header >> 2).unwrap_or(0))
}

impl RemoteKill {
    /// Its header, of which the number tells it from the one before.
    pub(super) fn header(self, count: u8) -> u32 {
        u32::from(number_of(count)) << 2 | u32::from(self.query) << 1 | 1
    }

    /// Reads it; `None` where there is none.
    pub(super) fn read(header: u32, id: u32, account: u32) -> Option<RemoteKill> {
        let query = header & 2 != 0;
        let account = (account != ANYBODY).then_some(account);
        (header & 1 != 0).then_some(RemoteKill { id, query, account })
    }
}

/// End of a KILL, told by the pool that has the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum KillAnswer {
    /// Success.
    Done,
    /// Client of another account.
    NotOwner,
    /// Failure to carry it to the server.
    Failed,
}

impl KillAnswer {
    pub(super) const ALL: [KillAnswer; 3] =
        [KillAnswer::Done, KillAnswer::NotOwner, KillAnswer::Failed];
}
