//! Targets of statements: the address of a server, as `mysql://USER[:PASS]@HOST:PORT/DB`.
//!
//! `climb` passes the address on to `load` and `pool`, which read it in full; so the parts are kept
//! as they were written (percent signs and all) and only taken apart as far as needed to name
//! another host, to leave out the schema, and to hide the password in everything that is shown.
//! The password itself reaches the children in their environment, not in their command lines, which
//! every account of the host can read.
//!
//! The one thing said to a server from here is nothing: on a fresh connection the server speaks
//! first, and its greeting carries its version. That also proves early that the address is right.

use std::fmt;
use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;
use wire::dsn::password;

use anyhow::Context;

const PORT_DEFAULT: u16 = 3306;
/// The variable in which children find the password.
const PASSWORD_ENV: &str = "ONRAMP_CLIMB_PASSWORD";
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// The address of a server with the account and the schema to use.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Dsn {
    user: String,
    password: Option<String>,
    host: String,
    port: Option<u16>,
    schema: String,
    socket: Option<String>,
    /// `password_file=FILE` or `password_env=NAME`, where the password is not in the address.
    elsewhere: Option<String>,
}

impl Dsn {
    /// An account on a loopback TCP port.
    pub(crate) fn loopback(user: &str, password: &str, port: u16, schema: &str) -> Self {
        Self {
            user: user.to_owned(),
            password: Some(password.to_owned()),
            host: "127.0.0.1".to_owned(),
            port: Some(port),
            schema: schema.to_owned(),
            socket: None,
            elsewhere: None,
        }
    }

    /// Reads an address. The text of an error never repeats the password.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let expected = |fault: &str| {
            format!(
                "{fault}; expected mysql://USER[:PASS]@HOST[:PORT]/DB \
                 or mysql://USER[:PASS]@localhost/DB?socket=/path"
            )
        };
        let rest = text
            .strip_prefix("mysql://")
            .ok_or_else(|| expected("it has no mysql://"))?;
        let (rest, query) = rest
            .split_once('?')
            .map_or((rest, None), |(a, b)| (a, Some(b)));
        let (account, place) = rest
            .rsplit_once('@')
            .ok_or_else(|| expected("it has no USER@"))?;
        let (place, schema) = place
            .split_once('/')
            .ok_or_else(|| expected("it has no /DB"))?;
        let (user, password) = account
            .split_once(':')
            .map_or((account, None), |(user, pass)| (user, Some(pass)));
        let (host, port) = host_and_port(place).ok_or_else(|| expected("PORT is no port"))?;
        let parts = [
            (user, "USER is empty"),
            (host, "HOST is empty"),
            (schema, "DB is empty"),
        ];
        if let Some((_, fault)) = parts.into_iter().find(|(part, _)| part.is_empty()) {
            return Err(expected(fault));
        }
        let (socket, elsewhere) = parameters_of(query).map_err(|fault| expected(&fault))?;
        // What the children would say of the password, and of how the parts are written.
        wire::dsn::Dsn::read(text)?;
        Ok(Self {
            user: user.to_owned(),
            password: password.map(ToOwned::to_owned),
            host: host.to_owned(),
            port,
            schema: schema.to_owned(),
            socket,
            elsewhere,
        })
    }

    /// A sentence about the file with the password, where others can read it.
    pub(crate) fn warning(&self) -> Option<String> {
        let read = wire::dsn::Dsn::parse(&self.write(None, Form::Whole)).ok()?;
        read.warning()
    }

    /// The schema that holds the tables.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// The server's Unix socket.
    pub(crate) fn socket(&self) -> Option<&str> {
        self.socket.as_deref()
    }

    /// The server's host and port.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.host, self.port.unwrap_or(PORT_DEFAULT))
    }

    /// The target by the server's Unix socket.
    pub(crate) fn by_socket(&self, socket: &str) -> Self {
        let host = "localhost".to_owned();
        Self {
            host,
            port: None,
            socket: Some(socket.to_owned()),
            ..self.clone()
        }
    }

    /// The target's account and schema behind a pool on this loopback port.
    pub(crate) fn behind_pool(&self, port: u16) -> Self {
        let host = "127.0.0.1".to_owned();
        Self {
            host,
            port: Some(port),
            socket: None,
            ..self.clone()
        }
    }

    /// Form that `load --target` takes; the command gets the password in its environment.
    pub(crate) fn for_load(&self, command: &mut Command) -> String {
        self.with_password_in(command, Form::Whole)
    }

    /// Form that `pool --backend` takes, without a schema; the command gets the password in its
    /// environment.
    pub(crate) fn for_pool(&self, command: &mut Command) -> String {
        self.with_password_in(command, Form::WithoutSchema)
    }

    fn with_password_in(&self, command: &mut Command, form: Form) -> String {
        let written = self.password.as_deref().unwrap_or_default();
        let whole = self.write(Some(written), Form::Whole);
        let password = wire::dsn::Dsn::parse(&whole).map(|read| read.password);
        let elsewhere = match password {
            Ok(password) if !password.is_empty() => {
                command.env(PASSWORD_ENV, password);
                Some(format!("password_env={PASSWORD_ENV}"))
            }
            _ => self.elsewhere.clone(),
        };
        let child = Self {
            elsewhere,
            ..self.clone()
        };
        child.write(None, form)
    }

    /// Reads the version out of the server's greeting.
    pub(crate) fn greeted_version(&self) -> anyhow::Result<String> {
        let context = || format!("{self} gives no MySQL greeting: is the server there?");
        let mut packet = Vec::new();
        self.read_greeting(&mut packet)
            .map_err(said_in_time)
            .with_context(context)?;
        version_in(&packet).with_context(context)
    }

    fn read_greeting(&self, packet: &mut Vec<u8>) -> io::Result<()> {
        if let Some(path) = &self.socket {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(GREETING_TIMEOUT))?;
            return read_packet(stream, packet);
        }
        let port = self.port.unwrap_or(PORT_DEFAULT);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (self.host.trim_matches(['[', ']']), port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, GREETING_TIMEOUT) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(GREETING_TIMEOUT))?;
                    return read_packet(stream, packet);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn write(&self, password: Option<&str>, form: Form) -> String {
        let password = password.map(|pass| format!(":{pass}")).unwrap_or_default();
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let schema = match form {
            Form::Whole => format!("/{}", self.schema),
            Form::WithoutSchema => String::new(),
        };
        let socket = self.socket.as_ref().map(|path| format!("socket={path}"));
        let parameters: Vec<String> = socket.into_iter().chain(self.elsewhere.clone()).collect();
        let query = match parameters.as_slice() {
            [] => String::new(),
            parameters => format!("?{}", parameters.join("&")),
        };
        format!(
            "mysql://{}{password}@{}{port}{schema}{query}",
            self.user, self.host
        )
    }
}

/// Form of an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    WithoutSchema,
}

/// Shown text hides the password.
impl fmt::Display for Dsn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.write(self.password.as_ref().map(|_| "***"), Form::Whole))
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A command line fit to be published: passwords hidden, words quoted for a shell.
pub(crate) fn shown_command(arguments: impl Iterator<Item = String>) -> String {
    let words: Vec<_> = arguments
        .map(|word| quoted(&password::without(&word)))
        .collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.,:@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn host_and_port(place: &str) -> Option<(&str, Option<u16>)> {
    let colon = match place.rfind(']') {
        Some(bracket) => place[bracket..].find(':').map(|at| at + bracket),
        None => place.rfind(':'),
    };
    match colon {
        Some(at) => Some((&place[..at], Some(place[at + 1..].parse().ok()?))),
        None => Some((place, None)),
    }
}

/// The socket, and where the password is.
fn parameters_of(query: Option<&str>) -> Result<(Option<String>, Option<String>), String> {
    let (mut socket, mut elsewhere) = (None, None);
    for pair in query.into_iter().flat_map(|query| query.split('&')) {
        match pair.split_once('=') {
            Some(("socket", path)) if path.starts_with('/') => socket = Some(path.to_owned()),
            Some(("password_file" | "password_env", _)) => elsewhere = Some(pair.to_owned()),
            _ => {
                return Err(format!(
                    "'{pair}' after ? is not socket=/path, password_file=FILE or password_env=NAME"
                ));
            }
        }
    }
    Ok((socket, elsewhere))
}

/// Error in words that say of a time limit what EAGAIN, by which a blocking socket shows it, does
/// not.
fn said_in_time(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} s", GREETING_TIMEOUT.as_secs()),
        ),
        _ => error,
    }
}

fn read_packet(mut stream: impl Read, packet: &mut Vec<u8>) -> io::Result<()> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    stream.take(u64::from(length)).read_to_end(packet)?;
    Ok(())
}

/// The version in a greeting of protocol 10: `0a`, the text, a zero byte.
fn version_in(packet: &[u8]) -> anyhow::Result<String> {
    match packet.split_first() {
        Some((10, rest)) => {
            let text = rest.split(|&byte| byte == 0).next().unwrap_or_default();
            let text = String::from_utf8_lossy(text);
            Ok(wire::handshake::own_version(&text).to_owned())
        }
        Some((255, [low, high, message @ ..])) => {
            let code = u16::from_le_bytes([*low, *high]);
            anyhow::bail!(
                "it refuses: error {code} {}",
                String::from_utf8_lossy(message)
            )
        }
        _ => anyhow::bail!("what answers there does not speak MySQL's protocol 10"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Argument of a child, and the password in its environment.
    fn given(dsn: &Dsn, give: fn(&Dsn, &mut Command) -> String) -> (String, Option<String>) {
        let mut command = Command::new("onramp");
        let argument = give(dsn, &mut command);
        let mut variables = command.get_envs();
        let password = variables.next().map(|(name, value)| {
            assert_eq!(name, PASSWORD_ENV);
            value.unwrap().to_str().unwrap().to_owned()
        });
        (argument, password)
    }

    #[test]
    fn a_password_goes_into_the_childs_environment() {
        for (text, argument, password) in [
            (
                "mysql://app:p%40ss@db.example:3307/shop",
                "mysql://app@db.example:3307/shop?password_env=ONRAMP_CLIMB_PASSWORD",
                Some("p@ss"),
            ),
            (
                "mysql://app@[::1]:3306/shop",
                "mysql://app@[::1]:3306/shop",
                None,
            ),
            ("mysql://app:@h/shop", "mysql://app@h/shop", None),
            (
                "mysql://app:x@localhost/shop?socket=/run/mysqld/mysqld.sock",
                "mysql://app@localhost/shop?socket=/run/mysqld/mysqld.sock\
                 &password_env=ONRAMP_CLIMB_PASSWORD",
                Some("x"),
            ),
            (
                "mysql://app@h/shop?password_env=PATH",
                "mysql://app@h/shop?password_env=PATH",
                None,
            ),
        ] {
            let dsn = Dsn::parse(text).unwrap();
            let (told, variable) = given(&dsn, Dsn::for_load);
            assert_eq!((told.as_str(), variable.as_deref()), (argument, password));
        }
    }

    #[test]
    fn shown_text_hides_the_password() {
        let dsn = Dsn::parse("mysql://app:hush@db:3307/shop").unwrap();
        assert_eq!(
            format!("{dsn} {dsn:?}")
                .matches("mysql://app:***@db:3307/shop")
                .count(),
            2
        );
        let command = [
            "onramp",
            "--target=mysql://app:hush@db/shop?socket=/s",
            "a b",
        ];
        let shown = shown_command(command.map(ToOwned::to_owned).into_iter());
        assert_eq!(
            shown,
            "onramp '--target=mysql://app:***@db/shop?socket=/s' 'a b'"
        );
    }

    #[test]
    fn the_same_account_goes_behind_the_pool() {
        let dsn = Dsn::loopback("u", "p", 3306, "sbtest");
        assert_eq!(
            given(&dsn.behind_pool(7000), Dsn::for_load),
            (
                "mysql://u@127.0.0.1:7000/sbtest?password_env=ONRAMP_CLIMB_PASSWORD".to_owned(),
                Some("p".to_owned())
            )
        );
        assert_eq!(
            given(&dsn.by_socket("/s"), Dsn::for_pool).0,
            "mysql://u@localhost?socket=/s&password_env=ONRAMP_CLIMB_PASSWORD"
        );
    }

    #[test]
    fn a_bad_address_is_named_without_its_password() {
        let bad = [
            ("db:3306/shop", "mysql://"),
            ("mysql://db:3306/shop", "USER@"),
            ("mysql://u:hush@db:3306", "/DB"),
            ("mysql://u:hush@db:3306/", "DB is empty"),
            ("mysql://u:hush@db:port/shop", "PORT"),
            ("mysql://:hush@db/shop", "USER is empty"),
            ("mysql://u:hush@db/shop?tls=1", "'tls=1' after ?"),
            (
                "mysql://u:hush@db/shop?password_env=PATH",
                "more than one password",
            ),
            (
                "mysql://u@db/shop?password_file=/nowhere/hu",
                "/nowhere/hu: No such file",
            ),
        ];
        for (text, fault) in bad {
            let error = Dsn::parse(text).unwrap_err();
            assert!(
                error.contains(fault) && !error.contains("hush"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_greeting_gives_the_version() {
        assert_eq!(
            version_in(b"\x0a10.11.19-MariaDB\0rest").unwrap(),
            "10.11.19-MariaDB"
        );
        assert_eq!(
            version_in(b"\x0a5.5.5-10.6.1-MariaDB\0").unwrap(),
            "10.6.1-MariaDB"
        );
        let refusal = version_in(b"\xff\x10\x04Too many connections").unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "it refuses: error 1040 Too many connections"
        );
        assert!(version_in(b"").is_err() && version_in(b"HTTP/1.1").is_err());
    }
}
