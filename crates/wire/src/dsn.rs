//! A server's address with its login, as users write it in one word.
//!
//! `mysql://USER[:PASSWORD]@HOST[:PORT][/SCHEMA][?NAME=VALUE&...]`, with the names `socket`,
//! `password_file`, `password_env`, `ssl-mode` and `server_public_key`. What would end a part (`:`,
//! `@`, `/`, `?`, `%`, `&`) is written `%XX` inside it. IPv6 addresses stand in brackets. With a
//! socket the host may be empty: it is not used.
//!
//! Invariants: no name is looked up here, and nothing but files with a password or a key is opened;
//! neither an error nor the `Debug` text ever shows the password.

pub mod password;
mod ssl_mode;

pub use ssl_mode::SslMode;

use crate::auth::caching_sha2;
use crate::client_login::ServerKey;
use password::Source;
use std::fmt;
use std::path::Path;

/// The port of a MySQL server that names none.
pub const DEFAULT_PORT: u16 = 3306;

/// Remedies for a login that would send the password unprotected.
pub const UNPROTECTED_REMEDY: &str = "ask for TLS (ssl-mode=MODE behind the target's ?), or name \
     the file with the server's public key (server_public_key=FILE)";

const SCHEME: &str = "mysql://";
const FORM: &str = "mysql://USER[:PASSWORD]@HOST[:PORT][/SCHEMA][?socket=/PATH]";

/// Address of a server and account to log in with.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Dsn {
    /// Name of the account.
    pub user: String,
    /// Password; empty for none, and until [`Dsn::read`] has fetched it.
    pub password: String,
    /// Place of the password.
    pub password_source: Source,
    /// Name or address of the host, IPv6 without brackets; may be empty with a socket.
    pub host: String,
    /// TCP port, 1 to 65535.
    pub port: u16,
    /// Default schema; empty for none.
    pub schema: String,
    /// Path of a Unix socket; where it is given, host and port are not used.
    pub socket: Option<String>,
    /// TLS of connections, where the target names it.
    pub ssl_mode: Option<SslMode>,
    /// File with the server's RSA key, where the target names one.
    pub server_public_key: Option<String>,
    /// The key as PEM, once [`Dsn::read`] has fetched it.
    pub server_key_pem: Vec<u8>,
}

impl Dsn {
    /// Takes a DSN apart.
    ///
    /// # Errors
    /// A sentence that says what was expected and what came, without the password.
    pub fn parse(text: &str) -> Result<Dsn, String> {
        let wrong = |what: &str| format!("{what}; expected {FORM}");
        let rest = text
            .strip_prefix(SCHEME)
            .ok_or_else(|| wrong(&without_scheme(text)))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, schema) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority
            .rsplit_once('@')
            .ok_or_else(|| wrong(&without_user(authority, schema, query)))?;
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        };
        let Query {
            socket,
            source,
            ssl_mode,
            server_public_key,
        } = read_query(query)?;
        let password_source = match (password, source) {
            (None, source) => source,
            (Some(_), Source::Nowhere) => Source::Text,
            (Some(_), _) => return Err(TWO_PASSWORDS.to_owned()),
        };
        let (host, port) = read_place(place, schema)?;
        if user.is_empty() {
            return Err(wrong("the target's user is empty"));
        }
        if host.is_empty() && socket.is_none() {
            return Err(wrong("the target's host is empty"));
        }
        if schema.contains('/') {
            return Err(wrong("the target's schema has a '/'; write it %2F"));
        }
        Ok(Dsn {
            user: decode(user, "user")?,
            password: decode(password.unwrap_or_default(), "password")?,
            password_source,
            host: decode(host, "host")?,
            port,
            schema: decode(schema, "schema")?,
            socket,
            ssl_mode,
            server_public_key,
            server_key_pem: Vec::new(),
        })
    }

    /// Takes a DSN apart, and fetches its password and the server's key from where they are.
    ///
    /// # Errors
    /// A sentence that says what was expected and what came, without the password.
    pub fn read(text: &str) -> Result<Dsn, String> {
        let mut dsn = Dsn::parse(text)?;
        match &dsn.password_source {
            Source::Nowhere | Source::Text => {}
            Source::File(path) => dsn.password = password::of_file(path)?,
            Source::Env(name) => dsn.password = password::of_env(name)?,
        }
        if let Some(path) = &dsn.server_public_key {
            dsn.server_key_pem = caching_sha2::key_of_file(Path::new(path))
                .map_err(|why| format!("server_public_key {path}: {why}"))?;
        }
        Ok(dsn)
    }

    /// The key that may encrypt the password where there is no TLS. `is_here`: nobody outside of
    /// this host can answer in the server's place.
    #[must_use]
    pub fn server_key(&self, is_here: bool) -> ServerKey<'_> {
        match (&self.server_public_key, is_here) {
            (Some(_), _) => ServerKey::Pinned(&self.server_key_pem),
            (None, true) => ServerKey::Sent,
            (None, false) => ServerKey::None,
        }
    }

    /// A sentence about the file with its password, where others can read it.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match &self.password_source {
            Source::File(path) => password::seen_by_others(path.as_ref(), "a password"),
            _ => None,
        }
    }

    /// The target without user, password and schema: `HOST:PORT` or the socket's path.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.socket {
            Some(path) => path.clone(),
            None if self.host.contains(':') => format!("[{}]:{}", self.host, self.port),
            None => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Shows everything but the password.
impl fmt::Display for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        write!(f, "{SCHEME}{}@{host}:{}", self.user, self.port)?;
        if !self.schema.is_empty() {
            write!(f, "/{}", self.schema)?;
        }
        let mut mark = '?';
        let mut parameter = |name: &str, value: &str| {
            let written = write!(f, "{mark}{name}={value}");
            mark = '&';
            written
        };
        if let Some(path) = &self.socket {
            parameter("socket", path)?;
        }
        match &self.password_source {
            Source::Nowhere | Source::Text => {}
            Source::File(path) => parameter("password_file", path)?,
            Source::Env(name) => parameter("password_env", name)?,
        }
        if let Some(mode) = self.ssl_mode {
            parameter("ssl-mode", mode.name())?;
        }
        match &self.server_public_key {
            Some(path) => parameter("server_public_key", path),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Message for a target that does not begin with `mysql://`.
fn without_scheme(text: &str) -> String {
    match text.split_once("://") {
        // What stands behind it may be a password.
        Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) => {
            format!("a target begins with {SCHEME}, not with '{scheme}://'")
        }
        _ if text.trim().is_empty() => format!("the target is empty; it begins with {SCHEME}"),
        _ if text.starts_with('/') => format!(
            "a target begins with {SCHEME}, also that of a Unix socket, whose path stands at its \
             end: {SCHEME}USER@localhost?socket=/PATH"
        ),
        _ if text.trim().starts_with(SCHEME) => {
            format!("a target begins with {SCHEME}, and with nothing in front of it")
        }
        _ => format!("a target begins with {SCHEME}; write that in front of it"),
    }
}

/// Message for a target that has no `@` in front of its host: it stands behind a sign that ends the
/// login, or nowhere.
fn without_user(authority: &str, schema: &str, query: &str) -> String {
    let cut = match (schema.contains('@'), query.contains('@')) {
        (true, _) => Some('/'),
        (_, true) if authority.contains(':') => Some('?'),
        _ => None,
    };
    match cut {
        Some(sign) => format!(
            "the target has a '{sign}' in front of its @: inside a user or a password write it \
             %{:02X}",
            u32::from(sign)
        ),
        None => {
            "the target names no user: write USER@ in front of its host, behind mysql://".to_owned()
        }
    }
}

/// Host and port; behind them stood `/` and this.
fn read_place<'t>(place: &'t str, schema: &str) -> Result<(&'t str, u16), String> {
    if !place.starts_with('[') && place.matches(':').count() > 1 {
        return Err(format!(
            "the target's host is '{place}'; an IPv6 address stands in brackets: expected \
             [ADDRESS]:PORT, as [::1]:{DEFAULT_PORT}"
        ));
    }
    let (host, port) = if let Some(rest) = place.strip_prefix('[') {
        let (host, after) = rest
            .split_once(']')
            .ok_or("the target's IPv6 address has no closing bracket; expected [ADDRESS]:PORT")?;
        match after.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if after.is_empty() => (host, None),
            None => {
                return Err(format!(
                    "'{after}' behind the target's IPv6 address; :PORT?"
                ));
            }
        }
    } else {
        match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        }
    };
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => match port.parse() {
            Ok(port) if port != 0 => port,
            _ => {
                let hint = match (port.is_empty(), schema.starts_with('/')) {
                    (true, true) => "; write the host without http:// or https:// in front of it",
                    (true, false) => "; without the ':' in front of it, the port is 3306",
                    (false, _) => "",
                };
                return Err(format!(
                    "the target's port is '{port}'; expected 1 to 65535{hint}"
                ));
            }
        },
    };
    Ok((host, port))
}

const TWO_PASSWORDS: &str = "the target names more than one password; expected one of :PASSWORD, \
     password_file=FILE and password_env=NAME";

/// Parameters behind the `?`.
struct Query {
    socket: Option<String>,
    /// Place of the password.
    source: Source,
    ssl_mode: Option<SslMode>,
    server_public_key: Option<String>,
}

fn read_query(query: &str) -> Result<Query, String> {
    let (mut socket, mut ssl_mode, mut server_public_key) = (None, None, None);
    let mut source = Source::Nowhere;
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let found = match (name, value.is_empty()) {
            ("socket", false) => {
                let path = decode(value, "socket")?;
                if !path.starts_with('/') {
                    return Err(format!(
                        "the target's socket is '{path}'; expected its whole path, from / on, as \
                         the server's @@socket shows it"
                    ));
                }
                socket = Some(path);
                continue;
            }
            ("ssl-mode", false) => {
                ssl_mode = Some(SslMode::read(value)?);
                continue;
            }
            ("server_public_key", false) => {
                server_public_key = Some(decode(value, name)?);
                continue;
            }
            (
                "socket" | "ssl-mode" | "password_file" | "password_env" | "server_public_key",
                true,
            ) => {
                return Err(format!(
                    "the target's parameter '{name}' is empty; write {name}=VALUE, or leave it out"
                ));
            }
            ("password", _) => {
                return Err(
                    "the target's parameter 'password' is unknown; write password_file=FILE or \
                     password_env=NAME in its place, or :PASSWORD behind the user"
                        .to_owned(),
                );
            }
            ("password_file", false) => Source::File(decode(value, "password_file")?),
            ("password_env", false) => Source::Env(decode(value, "password_env")?),
            _ => {
                return Err(format!(
                    "the target's parameter '{name}' is unknown; known are socket=/PATH, \
                     password_file=FILE, password_env=NAME, ssl-mode=MODE and \
                     server_public_key=FILE"
                ));
            }
        };
        if source != Source::Nowhere {
            return Err(TWO_PASSWORDS.to_owned());
        }
        source = found;
    }
    Ok(Query {
        socket,
        source,
        ssl_mode,
        server_public_key,
    })
}

/// Replaces each `%XX` by its byte.
fn decode(text: &str, what: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err(format!(
                "a % in the target's {what} is not followed by two hexadecimal digits; \
                 write a plain % as %25"
            ));
        };
        bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
    }
    String::from_utf8(bytes).map_err(|_| format!("the target's {what} is not UTF-8 once decoded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_target_has_six_parts() {
        let dsn = Dsn::parse("mysql://app:p%40ss%3aw%25rd@db.example:3307/shop").unwrap();
        assert_eq!((&*dsn.user, &*dsn.password), ("app", "p@ss:w%rd"));
        assert_eq!((&*dsn.host, dsn.port), ("db.example", 3307));
        assert_eq!((&*dsn.schema, &dsn.socket), ("shop", &None));
        assert_eq!(dsn.place(), "db.example:3307");
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let dsn = Dsn::parse("mysql://root@127.0.0.1").unwrap();
        assert_eq!(
            (&*dsn.password, dsn.port, &*dsn.schema),
            ("", DEFAULT_PORT, "")
        );
        let dsn = Dsn::parse("mysql://a:b:c@h/").unwrap();
        assert_eq!((&*dsn.password, &*dsn.host), ("b:c", "h"));
    }

    #[test]
    fn a_socket_stands_for_the_host() {
        let dsn = Dsn::parse("mysql://root@/test?socket=/run/my%20sql.sock").unwrap();
        assert_eq!(dsn.socket.as_deref(), Some("/run/my sql.sock"));
        assert_eq!((&*dsn.host, &*dsn.schema), ("", "test"));
        assert_eq!(dsn.place(), "/run/my sql.sock");
        assert!(Dsn::parse("mysql://root@h?socket=/a").is_ok());
    }

    #[test]
    fn a_password_may_stand_elsewhere() {
        let source = |text: &str| Dsn::parse(text).unwrap().password_source;
        assert_eq!(source("mysql://a@h"), Source::Nowhere);
        assert_eq!(source("mysql://a:@h"), Source::Text);
        assert_eq!(source("mysql://a:b@h"), Source::Text);
        let text = "mysql://a@h:3306?socket=/s&password_file=/run/a b";
        assert_eq!(source(text), Source::File("/run/a b".into()));
        assert_eq!(Dsn::parse(text).unwrap().to_string(), text);
        let text = "mysql://a@h:3306/db?password_env=APP_PASSWORD";
        assert_eq!(source(text), Source::Env("APP_PASSWORD".into()));
        assert_eq!(Dsn::parse(text).unwrap().to_string(), text);
        for text in [
            "mysql://a:b@h?password_file=/f",
            "mysql://a:@h?password_env=E",
            "mysql://a@h?password_env=E&password_file=/f",
        ] {
            let error = Dsn::parse(text).unwrap_err();
            assert!(error.contains("more than one password"), "{error}");
        }
        assert_eq!(Dsn::read("mysql://a:b@h").unwrap().password, "b");
        let path = std::env::var("PATH").unwrap();
        assert_eq!(
            Dsn::read("mysql://a@h?password_env=PATH").unwrap().password,
            path
        );
        let error = Dsn::read("mysql://a@h?password_file=/nowhere/p").unwrap_err();
        assert!(
            error.contains("password_file /nowhere/p: No such file"),
            "{error}"
        );
    }

    #[test]
    fn the_servers_key_is_taken_unchecked_from_this_host_only() {
        let text = "mysql://a@h:3306?server_public_key=/k/server.pem";
        let dsn = Dsn::parse(text).unwrap();
        assert_eq!(dsn.to_string(), text);
        for is_here in [true, false] {
            assert!(matches!(dsn.server_key(is_here), ServerKey::Pinned(_)));
        }
        let error = Dsn::read(text).unwrap_err();
        assert!(error.contains("server_public_key /k/server.pem"), "{error}");
        let dsn = Dsn::parse("mysql://a@h").unwrap();
        assert_eq!(dsn.server_key(true), ServerKey::Sent);
        assert_eq!(dsn.server_key(false), ServerKey::None);
    }

    #[test]
    fn a_mode_of_tls_is_read_in_either_case_and_written_again() {
        for mode in SslMode::ALL {
            let text = format!("mysql://a@h:3306?ssl-mode={}", mode.name());
            let dsn = Dsn::parse(&text).unwrap();
            assert_eq!((dsn.ssl_mode, dsn.to_string()), (Some(mode), text));
            let lower = format!("mysql://a@h?ssl-mode={}", mode.name().to_lowercase());
            assert_eq!(Dsn::parse(&lower).unwrap().ssl_mode, Some(mode));
        }
        assert_eq!(Dsn::parse("mysql://a@h").unwrap().ssl_mode, None);
        let error = Dsn::parse("mysql://a@h?ssl-mode=on").unwrap_err();
        assert!(
            error.contains("'on'") && error.contains("VERIFY_CA"),
            "{error}"
        );
    }

    #[test]
    fn ipv6_stands_in_brackets() {
        let dsn = Dsn::parse("mysql://root@[::1]:3307/t").unwrap();
        assert_eq!((&*dsn.host, dsn.port), ("::1", 3307));
        assert_eq!(dsn.place(), "[::1]:3307");
        assert_eq!(Dsn::parse("mysql://root@[::1]").unwrap().port, DEFAULT_PORT);
        assert!(Dsn::parse("mysql://root@[::1").is_err());
        assert!(Dsn::parse("mysql://root@[::1]x").is_err());
    }

    #[test]
    fn a_wrong_target_is_explained_without_its_password() {
        for (text, expected) in [
            ("postgres://a:secret@h", "mysql://, not with 'postgres://'"),
            ("MYSQL://a:secret@h", "mysql://, not with 'MYSQL://'"),
            (
                "a:secret@h:3306",
                "begins with mysql://; write that in front",
            ),
            ("", "the target is empty"),
            (" mysql://a:secret@h", "nothing in front of it"),
            ("/run/m.sock", "mysql://USER@localhost?socket=/PATH"),
            (
                "mysql://host/db",
                "no user: write USER@ in front of its host",
            ),
            ("mysql://a:sec/ret@h", "write it %2F"),
            ("mysql://a:sec?ret@h", "write it %3F"),
            (
                "mysql://a:secret@::1",
                "'::1'; an IPv6 address stands in brackets",
            ),
            (
                "mysql://a:secret@::1:3306",
                "expected [ADDRESS]:PORT, as [::1]:3306",
            ),
            (
                "mysql://a:secret@h:",
                "port is ''; expected 1 to 65535; without the ':'",
            ),
            ("mysql://a:secret@https://h", "without http://"),
            ("mysql://a@h?password=secret", "password_file=FILE or"),
            ("mysql://a:secret@h?socket=", "'socket' is empty"),
            (
                "mysql://a:secret@h?socket=m.sock",
                "'m.sock'; expected its whole path",
            ),
            (
                "mysql://a:secret@h?password_file",
                "'password_file' is empty",
            ),
            ("mysql://:secret@h", "user is empty"),
            ("mysql://a:secret@", "host is empty"),
            ("mysql://a:secret@h:0", "port is '0'"),
            ("mysql://a:secret@h:99999", "expected 1 to 65535"),
            ("mysql://a:secret%zz@h", "two hexadecimal digits"),
            ("mysql://a:secret%ff@h", "not UTF-8"),
            ("mysql://a:secret@h?soket=/x", "'soket' is unknown"),
            ("mysql://a:secret@h/a/b", "%2F"),
        ] {
            let error = Dsn::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("sec"), "{error}");
        }
    }

    #[test]
    fn the_password_is_never_shown() {
        let dsn = Dsn::parse("mysql://app:secret@h:1/db?socket=/s").unwrap();
        assert_eq!(format!("{dsn:?}"), "mysql://app@h:1/db?socket=/s");
    }
}
