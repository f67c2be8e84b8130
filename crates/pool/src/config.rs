//! Configuration: what the user wrote, checked once, and the numbers that follow from it.
//!
//! [`Raw`] is the file as typed (TOML; an unknown key is an error); [`Settings`] is what the pool
//! runs on: every value bounded, every address resolved, every password hashed. The way from one
//! to the other is [`Raw::check`], whose errors name the key, the value, what was expected and
//! what to do. Invariant: nothing reads `Raw` after that.

use crate::login::Verifier;
use reactor::Address;
use serde::Deserialize;
use std::time::Duration;
use wire::auth::{Plugin, native};

/// The file as typed. Keys and their meaning are documented in docs/pool.md.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    /// Addresses to listen on.
    #[serde(default)]
    pub listen: Vec<String>,
    /// See [`Settings::clients_max`].
    pub clients_max: Option<u64>,
    /// See [`Settings::backends_max`].
    pub backends_max: Option<u64>,
    /// See [`Settings::prepared_max`].
    pub prepared_max: Option<u64>,
    /// See [`Settings::dials_max`].
    pub dials_max: Option<u64>,
    /// Number of groups; derived when not given.
    pub groups: Option<u64>,
    /// See [`Settings::oversubscribe`].
    pub oversubscribe: Option<u64>,
    /// See [`Settings::stall_max`].
    pub stall_ms_max: Option<u64>,
    /// See [`Settings::ride_max`].
    pub ride_max: Option<u64>,
    /// See [`Settings::waiting_max`].
    pub waiting_max: Option<u64>,
    /// See [`Settings::wait_max`].
    pub wait_ms_max: Option<u64>,
    /// See [`Settings::login_max`].
    pub login_ms_max: Option<u64>,
    /// See [`Settings::dial_max`].
    pub dial_ms_max: Option<u64>,
    /// See [`Settings::write_max`].
    pub write_ms_max: Option<u64>,
    /// See [`Settings::idle_max`].
    pub idle_s_max: Option<u64>,
    /// See [`Settings::drain_max`].
    pub drain_ms_max: Option<u64>,
    /// See [`Settings::backlog`].
    pub backlog: Option<u64>,
    /// The server.
    pub backend: Option<RawBackend>,
    /// Who may log in.
    #[serde(default, rename = "user")]
    pub users: Vec<RawUser>,
}

/// The server as typed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawBackend {
    /// `HOST:PORT`, or the path of a Unix socket.
    pub address: String,
}

/// A user as typed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawUser {
    /// The name with which clients log in.
    pub name: String,
    /// The password in clear.
    pub password: Option<String>,
    /// Instead of it: `*` and 40 hexadecimal digits, as in `mysql.user`.
    pub password_hash: Option<String>,
    /// Plugin that clients must use; either when not given.
    pub auth: Option<String>,
    /// The account on the server, when it has another name.
    pub backend_user: Option<String>,
    /// Its password, when it is another one.
    pub backend_password: Option<String>,
}

/// A user, checked.
#[derive(Debug)]
pub struct User {
    /// The name with which clients log in.
    pub name: String,
    /// What proves the password.
    pub verifier: Verifier,
    /// Plugin that clients must use; `None`: either.
    pub plugin: Option<Plugin>,
    /// The account on the server.
    pub backend_user: String,
    /// Its password.
    pub backend_password: String,
}

/// What the pool runs on.
#[derive(Debug)]
pub struct Settings {
    /// Addresses to listen on, at least one.
    pub listen: Vec<Address>,
    /// Clients at once, over all groups. Default 10,000; 1 to 10,000,000.
    pub clients_max: usize,
    /// Connections to the server, over all groups, dialling ones included; no instant exceeds it.
    /// Default 64; at least one per group.
    pub backends_max: usize,
    /// Prepared statements on the server, over all backends; no instant exceeds it. Each backend
    /// has an even share, at least one. Default 8,192: half of what the servers allow all their
    /// clients (`max_prepared_stmt_count`), or `backends_max` where that is more.
    pub prepared_max: usize,
    /// Connections to the server being opened at once, per group. Default 4; 1 to 1000.
    pub dials_max: usize,
    /// Number of groups, when the user gave one.
    pub groups: Option<usize>,
    /// Backends of a group that run statements at once, besides one, where there are as many groups
    /// as cores; more groups share the same sum. Default 3; 0 to 1000. More backends may be leased
    /// by transactions and pinned clients.
    pub oversubscribe: usize,
    /// A backend that answers nothing for so long no longer counts as running. Default 100 ms.
    pub stall_max: Duration,
    /// Plain SELECTs of several clients in flight at once on one backend. Default 8; 1 to 64; 1 is
    /// off.
    pub ride_max: usize,
    /// Statements (and logins) waiting for a backend at once, per group. Default: no bound but the
    /// clients of the group, since each waits with one statement at most.
    pub waiting_max: usize,
    /// Longest wait for a backend. Default 30 s.
    pub wait_max: Duration,
    /// Longest login of a client. Default 30 s.
    pub login_max: Duration,
    /// Longest opening of a connection to the server. Default 10 s.
    pub dial_max: Duration,
    /// Longest time in which a client takes nothing of its reply. Default 60 s.
    pub write_max: Duration,
    /// A client without a statement for so long is closed. Default 28,800 s, as the servers'
    /// `wait_timeout`.
    pub idle_max: Duration,
    /// Longest drain after SIGTERM. Default 30 s.
    pub drain_max: Duration,
    /// Connections that may wait to be accepted, per listener; the kernel cuts it to
    /// `net.core.somaxconn`. Default 4096.
    pub backlog: i32,
    /// The server.
    pub backend: Address,
    /// Who may log in, at least one.
    pub users: Vec<User>,
}

impl Raw {
    /// Reads the text of a configuration file.
    ///
    /// # Errors
    /// The parser's words, with line and column.
    pub fn parse(text: &str) -> Result<Raw, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim_end().replace('\n', " "))
    }

    /// Checks every value and works out the defaults.
    ///
    /// # Errors
    /// One sentence that names the key, what was expected and what came.
    pub fn check(self) -> Result<Settings, String> {
        let listen = self
            .listen
            .iter()
            .map(|text| Address::parse(text).map_err(|error| format!("listen: {error}")));
        let listen = listen.collect::<Result<Vec<_>, _>>()?;
        if listen.is_empty() {
            return Err("listen: expected at least one address, such as 127.0.0.1:6033".into());
        }
        let backend = self.backend.ok_or(
            "backend: expected the server's address ([backend] address = \"HOST:PORT\", \
             or --backend mysql://USER:PASSWORD@HOST:PORT)",
        )?;
        let backend =
            Address::parse(&backend.address).map_err(|e| format!("backend.address: {e}"))?;
        if listen.contains(&backend) {
            return Err(format!(
                "backend.address: {backend} is also in listen; the pool would \
                                be its own server"
            ));
        }
        if self.users.is_empty() {
            return Err("user: expected at least one [[user]] with name and password".into());
        }
        let clients_max = bounded("clients_max", self.clients_max, 10_000, 1, 10_000_000)?;
        let ms = |key, value, default| {
            bounded(key, value, default, 1, 86_400_000).map(|ms| Duration::from_millis(ms as u64))
        };
        let backends_max = bounded("backends_max", self.backends_max, 64, 1, 100_000)?;
        let least = backends_max as u64;
        let budget = self.prepared_max.or(Some(least.max(8192)));
        let prepared_max = bounded("prepared_max", budget, 8192, least, 4_194_304)
            .map_err(|why| format!("{why} (at least one for each of backends_max)"))?;
        let backlog = bounded("backlog", self.backlog, 4096, 1, 1 << 30)?;
        Ok(Settings {
            listen,
            clients_max,
            backends_max,
            prepared_max,
            dials_max: bounded("dials_max", self.dials_max, 4, 1, 1000)?,
            groups: self
                .groups
                .map(|n| bounded("groups", Some(n), 0, 1, 4096))
                .transpose()?,
            oversubscribe: bounded("oversubscribe", self.oversubscribe, 3, 0, 1000)?,
            stall_max: ms("stall_ms_max", self.stall_ms_max, 100)?,
            ride_max: bounded("ride_max", self.ride_max, 8, 1, 64)?,
            waiting_max: bounded("waiting_max", self.waiting_max, 10_000_000, 1, 10_000_000)?,
            wait_max: ms("wait_ms_max", self.wait_ms_max, 30_000)?,
            login_max: ms("login_ms_max", self.login_ms_max, 30_000)?,
            dial_max: ms("dial_ms_max", self.dial_ms_max, 10_000)?,
            write_max: ms("write_ms_max", self.write_ms_max, 60_000)?,
            idle_max: bounded("idle_s_max", self.idle_s_max, 28_800, 1, 31_536_000)
                .map(|s| Duration::from_secs(s as u64))?,
            drain_max: ms("drain_ms_max", self.drain_ms_max, 30_000)?,
            backlog: i32::try_from(backlog).unwrap_or(i32::MAX),
            backend,
            users: check_users(self.users)?,
        })
    }
}

fn bounded(
    key: &str,
    value: Option<u64>,
    default: u64,
    min: u64,
    max: u64,
) -> Result<usize, String> {
    let value = value.unwrap_or(default);
    if !(min..=max).contains(&value) {
        return Err(format!(
            "{key}: expected a number from {min} to {max}, got {value}"
        ));
    }
    usize::try_from(value).map_err(|_| format!("{key}: {value} is too large for this machine"))
}

fn check_users(raw: Vec<RawUser>) -> Result<Vec<User>, String> {
    let mut users: Vec<User> = Vec::with_capacity(raw.len());
    for user in raw {
        if users.iter().any(|other| other.name == user.name) {
            return Err(format!("user: '{}' is listed twice", user.name));
        }
        users.push(check_user(user)?);
    }
    Ok(users)
}

fn check_user(raw: RawUser) -> Result<User, String> {
    let name = raw.name;
    let plugin = match raw.auth.as_deref() {
        None => None,
        Some(text) => Some(Plugin::from_name(text.as_bytes()).ok_or_else(|| {
            format!(
                "user '{name}': auth: expected mysql_native_password or caching_sha2_password, \
                 got '{text}'"
            )
        })?),
    };
    let verifier = match (&raw.password, &raw.password_hash) {
        (Some(password), None) => Verifier::from_password(password.as_bytes()),
        (None, Some(hash)) => {
            Verifier::from_native_hash(native::stored_from_text(hash).ok_or_else(|| {
                format!("user '{name}': password_hash: expected * and 40 hexadecimal digits")
            })?)
        }
        _ => {
            return Err(format!(
                "user '{name}': expected either password or password_hash (an account without \
                 a password has password = \"\")"
            ));
        }
    };
    let backend_password = raw.backend_password.or(raw.password).ok_or_else(|| {
        format!(
            "user '{name}': expected backend_password: a hash proves the client's password to \
             the pool, but the pool needs a password for the server"
        )
    })?;
    let backend_user = raw.backend_user.unwrap_or_else(|| name.clone());
    if backend_user.contains('\0') || name.contains('\0') {
        return Err(format!(
            "user '{}': a name cannot contain a NUL",
            name.escape_default()
        ));
    }
    Ok(User {
        name,
        verifier,
        plugin,
        backend_user,
        backend_password,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        listen = ["127.0.0.1:6033", "/run/onramp.sock"]
        wait_ms_max = 500
        [backend]
        address = "127.0.0.1:3306"
        [[user]]
        name = "app"
        password = "secret"
        [[user]]
        name = "hashed"
        password_hash = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"
        backend_user = "app"
        backend_password = "secret"
        auth = "caching_sha2_password"
    "#;

    fn check(text: &str) -> Result<Settings, String> {
        Raw::parse(text)?.check()
    }

    #[test]
    fn a_good_file_is_checked_and_completed() {
        let settings = check(GOOD).unwrap();
        assert_eq!(settings.listen.len(), 2);
        assert_eq!(settings.wait_max, Duration::from_millis(500));
        assert_eq!(settings.clients_max, 10_000);
        assert_eq!(settings.users[1].backend_user, "app");
        assert_eq!(settings.users[1].plugin, Some(Plugin::CachingSha2));
    }

    #[test]
    fn each_mistake_is_one_sentence_that_names_the_key() {
        let cases = [
            ("clients_maximum = 5", "unknown field `clients_maximum`"),
            ("wait_ms_max = 0", "wait_ms_max: expected a number from 1"),
            ("clients_max = \"many\"", "clients_max"),
            ("listen = []", "duplicate key"),
        ];
        for (line, expected) in cases {
            let text = GOOD.replace("wait_ms_max = 500", line);
            let error = check(&text).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let without = |part: &str, other: &str| check(&GOOD.replace(part, other)).unwrap_err();
        assert!(without("password = \"secret\"\n        [[", "[[").contains("expected either"));
        assert!(without("*2470", "*XX70").contains("40 hexadecimal digits"));
        assert!(without("backend_password = \"secret\"", "").contains("backend_password"));
        assert!(without("caching_sha2_password", "sha256").contains("expected mysql_native"));
        assert!(without("name = \"hashed\"", "name = \"app\"").contains("twice"));
        assert!(without("127.0.0.1:3306", "127.0.0.1:6033").contains("its own server"));
        assert!(without("127.0.0.1:3306", "nowhere").contains("expected HOST:PORT"));
        assert!(check("").unwrap_err().contains("listen"));
    }
}
