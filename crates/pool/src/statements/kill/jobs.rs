//! Jobs of KILL, and their ends.
//!
//! These are the values: `carrying.rs` decides, [`crate::statements::kill::connection`] carries
//! out.
//!
//! Invariant: [`Threads`] has the server's numbers of all backends of the pool, and no others.

use crate::group::tokens::{BackendId, ClientId};
use reactor::Address;
use reactor::Time;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

/// Request of a KILL to the group that has its victim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillAsk {
    /// Client that is told the end; `None`: an administrator, who is told at once.
    pub(crate) asker: Option<Asker>,
    /// The victim's id.
    pub(crate) id: u32,
    /// True if only its statement is to end.
    pub(crate) query: bool,
    /// The killer's account on the server; nobody else's clients are its to kill. `None`: an
    /// administrator, who may end anybody's.
    pub(crate) user: Option<String>,
    /// Hash of that account, where a client of another pool of the fleet is the killer.
    pub(crate) account: Option<u32>,
}

impl KillAsk {
    /// True if it may end anybody's client.
    pub(crate) fn is_of_administrator(&self) -> bool {
        self.user.is_none() && self.account.is_none()
    }

    /// Words of the log about who has said it.
    pub(crate) fn said_by(&self) -> String {
        match &self.user {
            Some(user) => format!("said by a client of '{user}'"),
            None if self.account.is_some() => "said by a client of another pool".to_owned(),
            None if self.asker.is_some() => "said at another pool's console".to_owned(),
            None => "said at the console".to_owned(),
        }
    }
}

/// End of a KILL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KillEnd {
    /// Success.
    Done,
    /// Lack of such a client.
    Unknown(u32),
    /// Client of another account.
    NotOwner(u32),
    /// Failure to carry it to the server; the words say why.
    Failed(String),
}

/// The server's numbers of all groups' backends.
#[derive(Debug, Default)]
pub struct Threads(Mutex<HashSet<u32>>);

impl Threads {
    pub(crate) fn change(&self, change: impl FnOnce(&mut HashSet<u32>) -> bool) -> bool {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Client that is told the end of a KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    /// Its group's number.
    pub(crate) group: usize,
    /// The client, in that group.
    pub(crate) killer: ClientId,
}

/// The statement that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aim {
    /// The backend that runs it.
    pub(crate) backend: BackendId,
    /// Key of the victim.
    pub(crate) victim: ClientId,
    /// Moment at which it was sent.
    pub(crate) sent: Time,
}

/// One KILL to be carried to the server.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Client that is told the end; `None`: the pool itself has no use for that.
    pub(crate) asker: Option<Asker>,
    /// Address of the connection: its number means another one elsewhere.
    pub(crate) at: Arc<Address>,
    /// The pool of the account, an index into [`crate::backend::pools::BackendPools`].
    pub(crate) pool: usize,
    /// The server's number of the connection.
    pub(crate) thread: u32,
    /// The statement; `None`: the connection, which the pool has closed on its side.
    pub(crate) aim: Option<Aim>,
}
