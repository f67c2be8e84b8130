//! The role of a session as a value: how it is read, written and restored.
//!
//! Invariant: a role that cannot be written exactly, whatever the session's character set is, is
//! not known.

use crate::state::Session;
use crate::text::Text;
use sql::lex::Server;

/// No role.
pub const NONE: &[u8] = b"NONE";
/// Longest text behind `SET ROLE`, in bytes.
const LEN_MAX: usize = 1024;
/// The first MySQL with roles.
const MYSQL_HAS_ROLES: u32 = 80_000;
/// MariaDB's and MySQL's error numbers for a role that the account may not have.
const REFUSED: [u16; 2] = [1959, 3530];

/// True if sessions of a server have roles.
pub fn has_roles(server: Server) -> bool {
    match server {
        Server::MariaDb(_) => true,
        Server::MySql(version) => version >= MYSQL_HAS_ROLES,
        Server::Unknown => false,
    }
}

/// Argument of `SET ROLE` for an answer of CURRENT_ROLE(); `None` where that cannot be written
/// exactly whatever the session's character set is.
///
/// MariaDB gives the bare name of one role, or NULL; MySQL a list of names and hosts, in quotes
/// that depend on `sql_mode`, or NONE.
pub fn argument_of(current: &[u8], server: Server) -> Option<Text> {
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
pub fn switch(from: &Session, to: &Session, login: Option<&[u8]>) -> Option<Vec<u8>> {
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

/// True if that statement cannot fail, or there is none.
pub fn switch_cannot_fail(from: &Session, to: &Session, login: Option<&[u8]>) -> bool {
    wanted(from, to, login).is_none_or(|wanted| wanted == NONE)
}

/// True if a restoring command failed because of the role.
pub fn is_refused(code: u16) -> bool {
    REFUSED.contains(&code)
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
        let session = |role: Option<&str>| Session {
            role: role.map(|role| role.as_bytes().into()),
            ..Session::default()
        };
        let (login, none, app) = (session(None), session(Some("NONE")), session(Some("`app`")));
        let said = |from, to, login: Option<&str>| {
            let login = login.map(str::as_bytes);
            let said = switch(from, to, login).map(|sql| String::from_utf8(sql).unwrap());
            (said, switch_cannot_fail(from, to, login))
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
