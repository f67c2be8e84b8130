//! A fresh backend, between its login and its first client.
//!
//! The problem: a session must be known before anything of a client's runs in it. The mechanism:
//! after the server's OK the trackers are switched on and the session is read, in one write: its
//! character sets, its role, and with `init_connect` all of its variables. Invariant: what began
//! under other global values than those known now serves nobody.

use crate::auth::account::Counted;
use crate::backend::backend_pools::DialEnd;
use crate::backend::dial::{ROLE, put_preparation};
use crate::backend::{BackendState, InFlight, Purpose};
use crate::group::Group;
use crate::server::rows::row_of;
use reactor::{Key, Net};
use session::reply_summary::ReplySummary;
use session::roles::{NONE, argument_of, has_roles};
use session::state::{CHARSET_VARIABLES, Session};
use session::text::Text;
use session::user_variables::results_collation;
use wire::command::ReplyShape;

impl<N: Net> Group<N> {
    /// Logged in: switches on the trackers and asks what a fresh session looks like.
    pub(crate) fn prepare(&mut self, key: Key) {
        let now = self.net.now();
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        let is_of_server = self.backend_pools.counted_in(backend.pool).is_some();
        backend.thread = backend
            .dial
            .take()
            .and_then(|dial| dial.thread)
            .unwrap_or(0);
        self.shared.note_thread(backend.thread);
        if !backend.change_state(BackendState::Preparing, now) {
            return self.lose(key, "the pool lost track of this connection");
        }
        for (fresh, shape) in [(false, ReplyShape::Results), (true, ReplyShape::Results)] {
            let command = InFlight::own(None, Purpose::Prepare(fresh), shape);
            backend.expect(command);
        }
        let mut out = Vec::new();
        let mut more = String::new();
        if has_roles(self.shared.server.flavour) {
            more.push_str(ROLE);
        }
        if is_of_server {
            more.push_str(",CURRENT_USER()");
        }
        if !self.begun.init_connect().is_empty() {
            more.push(',');
            more.push_str(&self.begun.question());
        }
        put_preparation(&mut out, backend.form, &more);
        self.backend_writer().send(key, &out);
    }

    /// One of the two was answered.
    pub(crate) fn prepared(
        &mut self,
        key: Key,
        fresh: bool,
        summary: &ReplySummary,
        collected: &[u8],
    ) {
        if let Some((code, text)) = &summary.error {
            let why = format!("the server refused to switch on its trackers: {code} {text}");
            return self.dial_failed(key, &why, DialEnd::Account);
        }
        if !fresh {
            return;
        }
        let now = self.net.now();
        let flavour = self.shared.server.flavour;
        let mut row = row_of(collected).unwrap_or_default();
        let mut more = row
            .split_off(CHARSET_VARIABLES.len().min(row.len()))
            .into_iter()
            .peekable();
        let role = more.next_if(|_| has_roles(flavour));
        let role = role.and_then(|role| argument_of(&role, flavour));
        let backend = self.backends.get(key);
        let account = backend.and_then(|backend| self.backend_pools.counted_in(backend.pool));
        let current = more.next_if(|_| account.is_some());
        if let (Some(account), Some(current)) = (account, current)
            && *current != *format!("{}@{}", account.user, account.host).as_bytes()
        {
            return self.dial_failed(key, &other_account(&account, &current), DialEnd::Account);
        }
        let values = more.next();
        let charsets = <[Text; 4]>::try_from(row).ok();
        let (Some(charsets), Some(backend)) = (charsets, self.backends.get_mut(key)) else {
            return self.dial_failed(
                key,
                "the server did not say what its session is like",
                DialEnd::Answered,
            );
        };
        if backend.session.begun != self.begun {
            // It may have begun under either.
            return self.retire(key);
        }
        let mut session = Session::at_login(b"", true, &charsets, &self.begun);
        let pool = backend.pool;
        let account = &self.backend_pools.pools[pool].key;
        session.begin_interactive(account.capabilities);
        let results = results_collation(collected, account.extended, &session);
        session.results_collation = self.shared.server.results_in(results);
        let known = &mut self.backend_pools.pools[pool];
        known.note_begins(&mut session, values.as_ref(), &self.shared.server);
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        let at = backend.at.clone();
        backend.session = self.sessions.intern(session);
        backend.session.accepted.note(backend.epoch);
        backend.login_role.clone_from(&role);
        self.backend_pools.pools[pool].login_has_role = Some(role.as_deref() != Some(NONE));
        if !backend.change_state(BackendState::Idle, now) {
            return self.lose(key, "the pool lost track of this connection");
        }
        self.backend_pools.dial_ends(pool);
        self.shared.upstream.reached(&at, now);
        self.backend_pools.pools[pool].dial_succeeded(now);
        self.offer(key);
    }
}

/// The server lets the pool in as another account than the one that the client has proven: with
/// other privileges, perhaps.
fn other_account(account: &Counted, current: &[u8]) -> String {
    let Counted { user, host, .. } = account;
    format!(
        "the client has proven to be '{user}'@'{host}', and from the pool's host the server takes \
         that name for '{}'; have one account for both hosts, such as '{user}'@'%', or list the \
         user in the pool's file",
        String::from_utf8_lossy(current)
    )
}
