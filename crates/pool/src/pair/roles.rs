//! Roles (SET ROLE) follow their client as a part of its session.
//!
//! The problem: a session's role decides what its statements may do, and no tracker tells which it
//! is. The mechanism: a statement that may set it says so ([`sql::classify`]); before checkin
//! CURRENT_ROLE() is asked, and the answer becomes what stands behind `SET ROLE` to be in that
//! role again ([`argument_of`]). It is restored in front of everything else, because a schema may
//! be open to the role alone. Only `SET ROLE NONE` is certain to go well, any other is joined with
//! the text or waited for.
//!
//! A client that has never set its role has that of the login of its backend, which is asked when
//! the backend is fresh. Where that cannot be given back, a backend that has left it serves nobody
//! else.
//!
//! A role outlives COM_RESET_CONNECTION (MariaDB 10.11, MySQL 8.0 and 9.7). COM_CHANGE_USER begins
//! with the role of a login; but MariaDB lets the role stay where the account has no default one.
//! That is followed for the same account; to another account MariaDB would give a role that was
//! never granted to it, and the pool does not.
//!
//! Invariants: a client's statement runs in its own role or not at all; a role that the server
//! refuses to give again is NONE from then on. Privileges of prepared statements are those of the
//! role at their execution (tried on all three), so who prepared them makes no difference.

use crate::backend::BackendSession;
use crate::backend::pools::BackendPool;
use crate::backend::reuse::Reuse;
use session::state::Session;
use session::text::Text;
use sql::lex::Server;

impl BackendSession {
    /// Keeps it from serving anybody else where there is no way back to the role of its login.
    pub(crate) fn note_role(&self, reuse: &mut Reuse) {
        if self.login_role().is_none() && self.state.role.is_some() {
            reuse.end_with_client();
        }
    }
}

/// Role that stays behind a change of user to an account of a pool that may be another: the one
/// before, where the server keeps it. Nobody may have logged in yet for the new pool (privileges
/// have changed); then the old one tells whether the account has a default role. Where neither can,
/// the role ends: who has a role too few is told so by the server, one too many goes unnoticed.
pub(crate) fn role_after_change(
    before: &Session,
    (old, new): (&BackendPool, &BackendPool),
    server: Server,
) -> Option<Text> {
    let stays = matches!(server, Server::MariaDb(_))
        && old.key.user == new.key.user
        && new.login_has_role.or(old.login_has_role) == Some(false);
    before.role.clone().filter(|_| stays)
}
