//! Roles (SET ROLE) follow their client as a part of its session.
//!
//! The problem: a session's role decides what its statements may do, and no tracker tells which it
//! is. The mechanism: a statement that may set it says so ([`sql::classify`]); before its lease
//! ends CURRENT_ROLE() is asked, and the answer becomes what stands behind `SET ROLE` to be in that
//! role anew ([`argument_of`]). It is restored in front of everything else, because a schema may be
//! open to the role alone. Only `SET ROLE NONE` is certain to go well, any other is joined with the
//! text or waited for.
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

use crate::backend::{Backend, Purpose};
use crate::backends::row_of;
use crate::client::{Client, Untold};
use crate::group::Group;
use crate::heard::Heard;
use crate::reasons::PinReason;
use crate::session::{Session, Text};
use reactor::{Key, Net};
use sql::classify::PinCause;
use sql::lex::Server;
use std::rc::Rc;

/// What reads a role back.
pub(crate) const ROLE: &str = "SELECT CURRENT_ROLE() LIMIT 1";
/// No role.
pub(crate) const NONE: &[u8] = b"NONE";
/// Longest text behind `SET ROLE`, in bytes.
const LEN_MAX: usize = 1024;
/// The first MySQL with roles.
const MYSQL_HAS_ROLES: u32 = 80_000;
/// MariaDB's and MySQL's error numbers for a role that the account may not have.
const REFUSED: [u16; 2] = [1959, 3530];

/// Whether sessions of a server have roles.
pub(crate) fn has_roles(server: Server) -> bool {
    match server {
        Server::MariaDb(_) => true,
        Server::MySql(version) => version >= MYSQL_HAS_ROLES,
        Server::Unknown => false,
    }
}

/// What stands behind `SET ROLE` for what CURRENT_ROLE() gave; `None` where that cannot be written
/// exactly whatever the session's character set is.
///
/// MariaDB gives the bare name of one role, or NULL; MySQL a list of names and hosts, in quotes
/// that depend on `sql_mode`, or NONE.
pub(crate) fn argument_of(current: &[u8], server: Server) -> Option<Text> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.%$ ".contains(byte);
    if current.len() > LEN_MAX {
        return None;
    }
    if !server.is_mysql() {
        let quoted = || [b"`", current, b"`"].concat().into();
        return match current {
            b"" => Some(NONE.into()),
            _ => current.iter().all(plain).then(quoted),
        };
    }
    if current == NONE {
        return Some(NONE.into());
    }
    // `name`@`host`,`name`@`host`: between two quotes there is nothing but plain letters.
    let quote = *current.first().filter(|quote| b"`\"".contains(quote))?;
    let mut parts = current.split(|byte| *byte == quote);
    let mut written = Vec::with_capacity(current.len());
    if !parts.next()?.is_empty() {
        return None;
    }
    loop {
        let names = [parts.next()?, parts.next()?, parts.next()?];
        let [name, at, host] = names;
        if at != b"@" || !name.iter().chain(host).all(plain) {
            return None;
        }
        written.extend_from_slice(&[b"`", name, b"`@`", host, b"`"].concat());
        match parts.next()? {
            b"" => return parts.next().is_none().then(|| written.into()),
            b"," => written.push(b','),
            _ => return None,
        }
    }
}

/// The statement that brings a backend from the role of one session into that of another; `None`
/// where it is the same. `login` is the role of the backend's login.
pub(crate) fn switch(from: &Session, to: &Session, login: Option<&[u8]>) -> Option<Vec<u8>> {
    let wanted = wanted(from, to, login)?;
    Some([b"SET ROLE ", wanted].concat())
}

fn wanted<'a>(from: &Session, to: &'a Session, login: Option<&'a [u8]>) -> Option<&'a [u8]> {
    if from.role == to.role {
        return None;
    }
    let login = login.unwrap_or(NONE);
    let wanted = to.role.as_deref().unwrap_or(login);
    (from.role.as_deref().unwrap_or(login) != wanted).then_some(wanted)
}

/// Whether that statement cannot fail, or there is none.
pub(crate) fn is_sure(from: &Session, to: &Session, login: Option<&[u8]>) -> bool {
    wanted(from, to, login).is_none_or(|wanted| wanted == NONE)
}

/// Whether a restoring command failed because of the role.
pub(crate) fn is_refused(code: u16) -> bool {
    REFUSED.contains(&code)
}

impl<S> Backend<S> {
    /// It stands in another session now: where there is no way back to the role of its login, it
    /// serves nobody else.
    pub(crate) fn note_role(&mut self) {
        self.spoiled |= self.login_role.is_none() && self.session.role.is_some();
    }
}

impl<S> Client<S> {
    /// Its default schema, if that is open to its account without a role of its own.
    pub(crate) fn schema_of_login(&self) -> Option<&Text> {
        let schema = self.session.schema.as_ref();
        schema.filter(|_| self.session.role.is_none() && !self.role_is_unread())
    }

    /// Whether its backend may be in a role that was not read back.
    pub(crate) fn role_is_unread(&self) -> bool {
        self.owed.role || self.statement.untold.contains(Untold::ROLE)
    }
}

impl<N: Net> Group<N> {
    /// Asks for the role that a statement has set.
    pub(crate) fn ask_for_role(&mut self, key: Key, owner: Key) {
        self.send_own(key, owner, Purpose::Role, ROLE);
    }

    /// The role has come back.
    pub(crate) fn role_told(
        &mut self,
        key: Key,
        owner: Option<Key>,
        heard: &Heard,
        collected: &[u8],
    ) {
        let gives_back = |backend: &Backend<N::Sock>| !backend.flight.is_empty();
        if heard.error.is_some() && self.backends.get(key).is_some_and(gives_back) {
            // Refused where a reset is about to follow, as in the middle of an XA transaction.
            return;
        }
        let row = row_of(collected).filter(|_| heard.error.is_none());
        let Some(current) = row.and_then(|row| row.into_iter().next()) else {
            return self.lose(key, "the server did not give a session's role back");
        };
        let role = argument_of(&current, self.shared.server.flavour);
        let Some((owner, client)) =
            owner.and_then(|owner| Some((owner, self.clients.get_mut(owner)?)))
        else {
            return self.retire(key);
        };
        client.owed.role = false;
        if role.is_none() {
            self.pin(owner, PinReason::Text(PinCause::Role));
            return self.settle(key);
        }
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        for session in [&mut client.session, &mut backend.session] {
            if session.role != role {
                let mut changed = (**session).clone();
                changed.role.clone_from(&role);
                *session = self.sessions.intern(changed);
            }
        }
        backend.note_role();
        self.settle(key);
    }

    /// Whether a client's role is about to be read back: it outlives the session.
    pub(crate) fn is_reading_role(&self, key: Key) -> bool {
        let owed = self.clients.get(key).is_some_and(|client| client.owed.role);
        owed && self.is_being_asked(key, Purpose::Role)
    }

    /// A client has changed its user, to an account of this kind: the role before, where the server
    /// lets it stay.
    pub(crate) fn role_after_change(
        &self,
        before: &Rc<Session>,
        kinds: (usize, usize),
    ) -> Option<Text> {
        let [old, new] = [kinds.0, kinds.1].map(|kind| &self.roster.ranks[kind]);
        let stays = matches!(self.shared.server.flavour, Server::MariaDb(_))
            && old.kind.user == new.kind.user
            && new.login_role.as_deref().unwrap_or(NONE) == NONE;
        before.role.clone().filter(|_| stays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIADB: Server = Server::MariaDb(101_100);
    const MYSQL: Server = Server::MySql(90_700);

    fn written(current: &str, server: Server) -> Option<String> {
        let role = argument_of(current.as_bytes(), server)?;
        Some(String::from_utf8(role.to_vec()).unwrap())
    }

    #[test]
    fn a_role_is_written_as_it_can_be_set() {
        for (current, server, expected) in [
            ("", MARIADB, Some("NONE")),
            ("app", MARIADB, Some("`app`")),
            ("my role", MARIADB, Some("`my role`")),
            ("a`b", MARIADB, None),
            ("größe", MARIADB, None),
            ("NONE", MYSQL, Some("NONE")),
            ("`a`@`%`", MYSQL, Some("`a`@`%`")),
            (
                "\"a\"@\"%\",\"b\"@\"h-1\"",
                MYSQL,
                Some("`a`@`%`,`b`@`h-1`"),
            ),
            ("`a``b`@`%`", MYSQL, None),
            ("`a`@`%`x", MYSQL, None),
            ("`a`@`%`,", MYSQL, None),
            ("`a`", MYSQL, None),
            ("a", MYSQL, None),
            ("", MYSQL, None),
        ] {
            assert_eq!(written(current, server).as_deref(), expected, "{current}");
        }
        assert_eq!(written(&"a".repeat(LEN_MAX + 1), MARIADB), None);
    }

    #[test]
    fn a_switch_goes_out_where_the_roles_differ_and_none_alone_is_sure() {
        let session = |role: Option<&str>| {
            let mut session = Session::default();
            session.role = role.map(|role| role.as_bytes().into());
            session
        };
        let (login, none, app) = (session(None), session(Some("NONE")), session(Some("`app`")));
        let said = |from, to, login: Option<&str>| {
            let login = login.map(str::as_bytes);
            let said = switch(from, to, login).map(|sql| String::from_utf8(sql).unwrap());
            (said, is_sure(from, to, login))
        };
        let app_set = Some("SET ROLE `app`".to_string());
        let none_set = Some("SET ROLE NONE".to_string());
        assert_eq!(said(&login, &login, Some("`app`")), (None, true));
        assert_eq!(said(&login, &app, Some("NONE")), (app_set.clone(), false));
        assert_eq!(said(&app, &login, Some("NONE")), (none_set.clone(), true));
        assert_eq!(said(&app, &login, Some("`app`")), (None, true));
        assert_eq!(said(&none, &login, Some("NONE")), (None, true));
        assert_eq!(said(&none, &login, Some("`app`")), (app_set, false));
        assert_eq!(said(&login, &none, Some("`app`")), (none_set, true));
    }
}
