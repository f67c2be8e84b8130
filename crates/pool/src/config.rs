//! Configuration: what the user wrote, checked once, and the numbers that follow from it.
//!
//! [`Raw`] is the file as typed (TOML; an unknown key is an error); [`Settings`] is what the pool
//! runs on: every value bounded, every address resolved, every password hashed. The way from one
//! to the other is [`Raw::check`], whose errors name the key, the value, what was expected and
//! what to do. Invariant: nothing reads `Raw` after that.

use crate::accounts::Account;
use crate::hidden::Looking;
use crate::priority::{Mode, Priority};
use crate::secret::{Secret, Typed};
use crate::upstream::Place;
use crate::verifier::Verifier;
use reactor::socket::FileAccess;
use reactor::socket::Keepalive;
use reactor::{Address, accounts};
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;
use wire::auth::{Plugin, native};

/// The file as typed. Keys and their meaning are documented in docs/pool/settings.md.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    /// Addresses to listen on.
    #[serde(default)]
    pub listen: Vec<String>,
    /// See [`FileAccess::mode`]; octal digits.
    pub socket_mode: Option<String>,
    /// See [`FileAccess::owner`]; a name or a number.
    pub socket_owner: Option<String>,
    /// See [`FileAccess::group`]; a name or a number.
    pub socket_group: Option<String>,
    /// See [`Settings::clients_max`].
    pub clients_max: Option<u64>,
    /// See [`Settings::backends_max`].
    pub backends_max: Option<u64>,
    /// See [`Settings::prepared_max`].
    pub prepared_max: Option<u64>,
    /// See [`Settings::stored_code`].
    pub stored_code: Option<StoredCode>,
    /// See [`Looking::every`]; 0: never.
    pub stored_code_refresh_s: Option<u64>,
    /// See [`Settings::dials_max`].
    pub dials_max: Option<u64>,
    /// See [`Settings::logins_per_s_max`].
    pub logins_per_s_max: Option<u64>,
    /// Number of groups; derived when not given.
    pub groups: Option<u64>,
    /// See [`Settings::oversubscribe`].
    pub oversubscribe: Option<u64>,
    /// See [`Settings::stall_max`].
    pub stall_ms_max: Option<u64>,
    /// See [`Settings::ride_max`].
    pub ride_max: Option<u64>,
    /// See [`Settings::compression`].
    pub compression: Option<bool>,
    /// See [`Settings::waiting_max`].
    pub waiting_max: Option<u64>,
    /// See [`Settings::waiting_bytes_max`].
    pub waiting_bytes_max: Option<u64>,
    /// See [`Settings::memory_bytes_max`].
    pub memory_bytes_max: Option<u64>,
    /// See [`Settings::input_bytes_max`].
    pub input_bytes_max: Option<u64>,
    /// See [`Settings::slow_backends_percent_max`].
    pub slow_backends_percent_max: Option<u64>,
    /// See [`Settings::slow_reader_max`].
    pub slow_reader_ms_max: Option<u64>,
    /// See [`Settings::spool_bytes_max`].
    pub spool_bytes_max: Option<u64>,
    /// See [`Settings::spool_folder`].
    pub spool_folder: Option<PathBuf>,
    /// See [`Settings::prio_kickup`].
    pub prio_kickup_ms: Option<u64>,
    /// See [`Limits::high_prio_mode`]; for users that do not set it.
    pub high_prio_mode: Option<String>,
    /// See [`Limits::high_prio_tickets`]; for users that do not set it.
    pub high_prio_tickets: Option<u64>,
    /// See [`Limits::transaction_max`]; for users that do not set it.
    pub transaction_ms_max: Option<u64>,
    /// See [`Limits::statement_max`]; for users that do not set it.
    pub statement_ms_max: Option<u64>,
    /// See [`Settings::backends_min`].
    pub backends_min: Option<u64>,
    /// See [`Settings::backends_reserved`].
    pub backends_reserved: Option<u64>,
    /// See [`Settings::backend_idle_max`].
    pub backend_idle_ms_max: Option<u64>,
    /// See [`Settings::backend_life_max`].
    pub backend_life_s_max: Option<u64>,
    /// See [`Settings::wait_max`].
    pub wait_ms_max: Option<u64>,
    /// See [`Settings::login_max`].
    pub login_ms_max: Option<u64>,
    /// See [`Settings::dial_max`].
    pub dial_ms_max: Option<u64>,
    /// See [`Settings::server_down_fail`].
    pub server_down_fail_ms: Option<u64>,
    /// See [`Settings::backend_silence_max`]; 0: no limit.
    pub backend_silence_s_max: Option<u64>,
    /// See [`Settings::client_silence_max`]; 0: no limit.
    pub client_silence_s_max: Option<u64>,
    /// See [`Settings::write_max`].
    pub write_ms_max: Option<u64>,
    /// See [`Limits::idle_max`]; for users that do not set it.
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
    /// See [`Settings::warnings`]; no key of the file.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// What becomes of a client whose statement calls a stored procedure, or a function that is not the
/// server's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredCode {
    /// It keeps its backend: the code may have left anything.
    #[default]
    Pin,
    /// It keeps its backend to the end of its transaction, or of the statement; then the backend is
    /// closed, so that nobody else meets what the code left.
    Transaction,
    /// Nothing: the code leaves nothing but settings that the server reports by name.
    Trust,
}

/// The server as typed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawBackend {
    /// `HOST:PORT`, or the path of a Unix socket.
    pub address: String,
    /// See [`Looking::account`].
    pub monitor_user: Option<String>,
    /// Its password.
    pub monitor_password: Option<Secret>,
    /// Instead of it: the file that holds it.
    pub monitor_password_file: Option<String>,
    /// Instead of it: the variable of the environment that holds it.
    pub monitor_password_env: Option<String>,
}

/// A user as typed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawUser {
    /// The name with which clients log in.
    pub name: String,
    /// The password in clear.
    pub password: Option<Secret>,
    /// Instead of it: the file that holds it.
    pub password_file: Option<String>,
    /// Instead of it: the variable of the environment that holds it.
    pub password_env: Option<String>,
    /// Instead of it: `*` and 40 hexadecimal digits, as in `mysql.user`.
    pub password_hash: Option<String>,
    /// Plugin that clients must use; either when not given.
    pub auth: Option<String>,
    /// The account on the server, when it has another name.
    pub backend_user: Option<String>,
    /// Its password, when it is another one.
    pub backend_password: Option<Secret>,
    /// Instead of it: the file that holds it.
    pub backend_password_file: Option<String>,
    /// Instead of it: the variable of the environment that holds it.
    pub backend_password_env: Option<String>,
    /// See [`Limits::clients_max`].
    pub clients_max: Option<u64>,
    /// See [`Limits::waiting_max`].
    pub waiting_max: Option<u64>,
    /// See [`Limits::input_bytes_max`].
    pub input_bytes_max: Option<u64>,
    /// See [`Limits::backends_max`].
    pub backends_max: Option<u64>,
    /// See [`Limits::priority`].
    pub priority: Option<String>,
    /// See [`Limits::high_prio_mode`].
    pub high_prio_mode: Option<String>,
    /// See [`Limits::high_prio_tickets`].
    pub high_prio_tickets: Option<u64>,
    /// See [`Limits::idle_max`].
    pub idle_s_max: Option<u64>,
    /// See [`Limits::transaction_max`].
    pub transaction_ms_max: Option<u64>,
    /// See [`Limits::statement_max`].
    pub statement_ms_max: Option<u64>,
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
    pub backend_password: Secret,
    /// What it may use.
    pub limits: Limits,
}

/// What a user's clients may use, and where they stand.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Clients of this user at once, over all groups. Default: no limit but that of all clients.
    pub clients_max: Option<usize>,
    /// Statements of this user that may wait at once, over all groups. Default: no limit.
    pub waiting_max: Option<usize>,
    /// Bytes of unfinished and waiting commands of this user's clients, over all groups; a client
    /// that is over it is closed. Default: no limit but that of all clients.
    pub input_bytes_max: Option<usize>,
    /// Backends that clients of this user may hold up by not reading, over all groups, while others
    /// wait. Default: no limit but `slow_backends_percent_max`.
    pub backends_max: Option<usize>,
    /// Where its statements wait. Default `auto`.
    pub priority: Priority,
    /// Which of its statements have high priority by themselves. Default `transactions`.
    pub high_prio_mode: Mode,
    /// Times in a row that a client may use the high lane; then it goes once by the low lane.
    /// Default 4,294,967,295; 0 is never.
    pub high_prio_tickets: u32,
    /// A client without a statement for so long is closed, even if its `wait_timeout` is longer.
    /// Default: no limit but `wait_timeout`.
    pub idle_max: Option<Duration>,
    /// A transaction that is open for longer is rolled back and its client closed. Default: no
    /// limit.
    pub transaction_max: Option<Duration>,
    /// A statement that runs for longer is given up: its client gets an error, its backend is
    /// closed. Default: no limit.
    pub statement_max: Option<Duration>,
}

/// What these users must prove, in their order.
pub(crate) fn accounts_of(users: &[User]) -> Vec<Account> {
    let account = |user: &User| Account {
        name: user.name.clone(),
        verifier: user.verifier.clone(),
        plugin: user.plugin,
    };
    users.iter().map(account).collect()
}

/// What the pool runs on.
#[derive(Debug)]
pub struct Settings {
    /// Addresses to listen on, at least one.
    pub listen: Vec<Address>,
    /// Who may connect to the Unix sockets among them. Default: everybody (0777), as with the
    /// servers' own sockets.
    pub socket_access: FileAccess,
    /// Clients at once, over all groups. Default 10,000; 1 to 10,000,000.
    pub clients_max: usize,
    /// Connections to the server, over all groups, dialling ones included; no instant exceeds it.
    /// Default 64; at least one per group.
    pub backends_max: usize,
    /// Prepared statements on the server, over all backends; no instant exceeds it. Each backend
    /// has an even share, at least one. Default 8,192: half of what the servers allow all their
    /// clients (`max_prepared_stmt_count`), or `backends_max` where that is more.
    pub prepared_max: usize,
    /// What is believed of stored code that a statement calls. Default `pin`.
    pub stored_code: StoredCode,
    /// How it is looked for stored code that no statement's text shows.
    pub looking: Looking,
    /// Connections to the server being opened at once, per group. Default 4; 1 to 1000.
    pub dials_max: usize,
    /// Logins let in each second while statements wait, over all groups; while none wait, there is
    /// no bound. Default 4000; 1 to 1,000,000.
    pub logins_per_s_max: u32,
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
    /// The compressed protocol is offered to clients. Default true.
    pub compression: bool,
    /// Statements (and logins) waiting for a backend at once, per group. Default: no bound but the
    /// clients of the group, since each waits with one statement at most.
    pub waiting_max: usize,
    /// Bytes of the commands that wait at once, per group. Default 256 MiB; 1 MiB to 1 TiB.
    pub waiting_bytes_max: usize,
    /// Resident memory above which no client is let in. Default: nine tenths of what the machine or
    /// the control group has; at least 1 MiB.
    pub memory_bytes_max: Option<usize>,
    /// Bytes of commands that have not come whole, or wait, over all groups; one command may have
    /// half of it. At least 1 MiB. Default: see docs/pool/settings.md.
    pub input_bytes_max: Option<usize>,
    /// Of its backends, the share that a group leaves to clients that do not read their replies,
    /// while others wait. Default 50; 0 to 100.
    pub slow_backends_percent_max: usize,
    /// A client that has taken nothing of its reply for so long may be closed when others wait and
    /// its reply cannot be taken off its backend. Default 10 s.
    pub slow_reader_max: Duration,
    /// Bytes on disk of replies that were taken off their backends, over all groups. Default 4 GiB;
    /// 0 is off.
    pub spool_bytes_max: usize,
    /// Where they are.
    pub spool_folder: PathBuf,
    /// `spool_folder` was given: it must be usable.
    pub(crate) spool_folder_given: bool,
    /// A statement of the low lane that has waited for so long is in line with those of the high
    /// lane. Default 1000 ms, as in the servers' pools; 0 to a day.
    pub prio_kickup: Duration,
    /// Idle backends that are kept whatever their age of idleness, over all groups. Default 2.
    pub backends_min: usize,
    /// Backends of each group that statements of the low lane leave to logins and to statements of
    /// high priority; never more than an eighth of the group's. Default 1.
    pub backends_reserved: usize,
    /// A backend that is idle for longer is closed, down to `backends_min`. Default 60 s.
    pub backend_idle_max: Duration,
    /// A backend that is older is closed when it is idle next; the age differs by up to a tenth
    /// from backend to backend. Default 3600 s.
    pub backend_life_max: Duration,
    /// Longest wait for a backend. Default 30 s.
    pub wait_max: Duration,
    /// Longest login of a client. Default 30 s.
    pub login_max: Duration,
    /// Longest opening of a connection to the server. Default 10 s.
    pub dial_max: Duration,
    /// When the server cannot be reached for so long, what waits for a backend is refused at once.
    /// Default 5 s.
    pub server_down_fail: Duration,
    /// A connection to the server is given up when nothing has come from the server's host for so
    /// long, not even an acknowledgement. Default 15 s; 3 s to 32,767 s, the kernel's limit.
    pub backend_silence_max: Option<Duration>,
    /// The same of a client's connection and host. Default 300 s.
    pub client_silence_max: Option<Duration>,
    /// Longest time in which a client takes nothing of its reply, unless its session has set
    /// `net_write_timeout`. Default: the server's `net_write_timeout`.
    pub write_max: Option<Duration>,
    /// Longest drain after SIGTERM. Default 30 s.
    pub drain_max: Duration,
    /// Connections that may wait to be accepted, per listener; the kernel cuts it to
    /// `net.core.somaxconn`. Default 4096.
    pub backlog: i32,
    /// The server. A name is looked up when the pool dials.
    pub backend: Place,
    /// Who may log in, at least one.
    pub users: Vec<User>,
    /// What works and should not be so, to be said once at start.
    pub warnings: Vec<String>,
}

impl Settings {
    /// How backends' hosts are asked for a sign of life: they are few, so early and often.
    pub(crate) fn backend_keepalive(&self) -> Option<Keepalive> {
        let silence = self.backend_silence_max?;
        Some(Keepalive::within(silence, silence / 3))
    }

    /// How clients' are: late, so that a hundred thousand cost few packets.
    pub(crate) fn client_keepalive(&self) -> Option<Keepalive> {
        let silence = self.client_silence_max?;
        Some(Keepalive::within(silence, silence * 2 / 3))
    }

    /// Name and password of the account that asks for the pool itself.
    pub(crate) fn looking_account(&self) -> (String, Secret) {
        let first = &self.users[0];
        let own = || (first.backend_user.clone(), first.backend_password.clone());
        self.looking.account.clone().unwrap_or_else(own)
    }
}

impl Raw {
    /// Reads the text of a configuration file.
    ///
    /// # Errors
    /// The parser's words, with the line and its key.
    pub fn parse(text: &str) -> Result<Raw, String> {
        toml::from_str(text).map_err(|error| parse_error(text, &error))
    }

    /// True where the file holds passwords, or hashes of them.
    pub(crate) fn holds_secrets(&self) -> bool {
        let monitor = self
            .backend
            .as_ref()
            .and_then(|b| b.monitor_password.as_ref());
        let of_users = self.users.iter().any(|user| {
            let typed = [&user.password, &user.backend_password];
            typed.into_iter().flatten().any(|text| !text.is_empty()) || user.password_hash.is_some()
        });
        of_users || monitor.is_some_and(|text| !text.is_empty())
    }

    /// Fetches the passwords that stand elsewhere.
    fn fetch_passwords(&mut self) -> Result<(), String> {
        let warnings = &mut self.warnings;
        if let Some(backend) = &mut self.backend {
            let monitor = Typed {
                prefix: "monitor_",
                text: &mut backend.monitor_password,
                file: &mut backend.monitor_password_file,
                env: &mut backend.monitor_password_env,
            };
            monitor
                .take(warnings)
                .map_err(|error| format!("backend: {error}"))?;
        }
        for user in &mut self.users {
            let own = Typed {
                prefix: "",
                text: &mut user.password,
                file: &mut user.password_file,
                env: &mut user.password_env,
            };
            let backend = Typed {
                prefix: "backend_",
                text: &mut user.backend_password,
                file: &mut user.backend_password_file,
                env: &mut user.backend_password_env,
            };
            own.take(warnings)
                .and_then(|()| backend.take(warnings))
                .map_err(|error| format!("user '{}': {error}", user.name))?;
        }
        Ok(())
    }

    /// Checks every value and works out the defaults.
    ///
    /// # Errors
    /// One sentence that names the key, what was expected and what came.
    pub fn check(mut self) -> Result<Settings, String> {
        self.fetch_passwords()?;
        let (listen, backend) = check_addresses(&self.listen, self.backend.as_ref())?;
        if self.users.is_empty() {
            return Err("user: expected at least one [[user]] with name and password".into());
        }
        let clients_max = bounded("clients_max", self.clients_max, 10_000, 1, 10_000_000)?;
        let ms = |key, value, default| {
            bounded(key, value, default, 1, DAY_MS).map(|ms| Duration::from_millis(ms as u64))
        };
        let defaults = RawUser {
            high_prio_mode: self.high_prio_mode,
            high_prio_tickets: self.high_prio_tickets,
            idle_s_max: self.idle_s_max,
            transaction_ms_max: self.transaction_ms_max,
            statement_ms_max: self.statement_ms_max,
            ..RawUser::default()
        };
        let backends_max = bounded("backends_max", self.backends_max, 64, 1, 100_000)?;
        let prepared_max = check_prepared_max(self.prepared_max, backends_max as u64)?;
        let (key, most) = ("logins_per_s_max", 1_000_000);
        let logins = bounded(key, self.logins_per_s_max, 4000, 1, most)?;
        let backlog = bounded("backlog", self.backlog, 4096, 1, 1 << 30)?;
        Ok(Settings {
            listen,
            socket_access: check_socket_access(
                self.socket_mode.as_deref(),
                self.socket_owner.as_deref(),
                self.socket_group.as_deref(),
            )?,
            clients_max,
            backends_max,
            prepared_max,
            stored_code: self.stored_code.unwrap_or_default(),
            looking: Looking::check(self.stored_code_refresh_s, self.backend.as_ref())?,
            dials_max: bounded("dials_max", self.dials_max, 4, 1, 1000)?,
            logins_per_s_max: u32::try_from(logins).unwrap_or(u32::MAX),
            groups: self
                .groups
                .map(|n| bounded("groups", Some(n), 0, 1, 4096))
                .transpose()?,
            oversubscribe: bounded("oversubscribe", self.oversubscribe, 3, 0, 1000)?,
            stall_max: ms("stall_ms_max", self.stall_ms_max, 100)?,
            ride_max: bounded("ride_max", self.ride_max, 8, 1, 64)?,
            compression: self.compression.unwrap_or(true),
            slow_backends_percent_max: bounded(
                "slow_backends_percent_max",
                self.slow_backends_percent_max,
                50,
                0,
                100,
            )?,
            slow_reader_max: ms("slow_reader_ms_max", self.slow_reader_ms_max, 10_000)?,
            spool_bytes_max: bounded("spool_bytes_max", self.spool_bytes_max, 4 << 30, 0, 1 << 50)?,
            spool_folder_given: self.spool_folder.is_some(),
            spool_folder: self.spool_folder.unwrap_or_else(|| SPOOL_FOLDER.into()),
            waiting_max: bounded("waiting_max", self.waiting_max, 10_000_000, 1, 10_000_000)?,
            wait_max: ms("wait_ms_max", self.wait_ms_max, 30_000)?,
            login_max: ms("login_ms_max", self.login_ms_max, 30_000)?,
            dial_max: ms("dial_ms_max", self.dial_ms_max, 10_000)?,
            server_down_fail: ms("server_down_fail_ms", self.server_down_fail_ms, 5000)?,
            backend_silence_max: silence("backend_silence_s_max", self.backend_silence_s_max, 15)?,
            client_silence_max: silence("client_silence_s_max", self.client_silence_s_max, 300)?,
            write_max: (self.write_ms_max)
                .map(|n| ms("write_ms_max", Some(n), 0))
                .transpose()?,
            waiting_bytes_max: bounded(
                "waiting_bytes_max",
                self.waiting_bytes_max,
                256 << 20,
                1 << 20,
                1 << 40,
            )?,
            memory_bytes_max: optional("memory_bytes_max", self.memory_bytes_max, 1 << 20)?,
            input_bytes_max: optional("input_bytes_max", self.input_bytes_max, 1 << 20)?,
            prio_kickup: bounded("prio_kickup_ms", self.prio_kickup_ms, 1000, 0, DAY_MS)
                .map(|ms| Duration::from_millis(ms as u64))?,
            backends_min: bounded("backends_min", self.backends_min, 2, 0, 100_000)?,
            backends_reserved: bounded("backends_reserved", self.backends_reserved, 1, 0, 1000)?,
            backend_idle_max: ms("backend_idle_ms_max", self.backend_idle_ms_max, 60_000)?,
            backend_life_max: seconds("backend_life_s_max", self.backend_life_s_max, 3600)?,
            drain_max: ms("drain_ms_max", self.drain_ms_max, 30_000)?,
            backlog: i32::try_from(backlog).unwrap_or(i32::MAX),
            backend,
            users: check_users(self.users, &defaults)?,
            warnings: self.warnings,
        })
    }
}

/// What the parser says, on one line: without the line of the file that it would show, which may
/// hold a password, and without the value of a key for one.
fn parse_error(text: &str, error: &toml::de::Error) -> String {
    let Some(span) = error.span() else {
        return error.message().replace('\n', " ");
    };
    let before = text.get(..span.start).unwrap_or(text);
    let number = before.matches('\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default();
    let key = line.split_once('=').map(|(key, _)| key.trim());
    match key {
        Some(key) if key.contains("password") => format!(
            "line {number}: {key}: expected a text in quotes, each key once (what stands there is \
             not shown)"
        ),
        Some(key) if !key.is_empty() => {
            format!(
                "line {number}: {key}: {}",
                error.message().replace('\n', " ")
            )
        }
        _ => format!("line {number}: {}", error.message().replace('\n', " ")),
    }
}

/// Where clients come in, and the server.
fn check_addresses(
    listen: &[String],
    backend: Option<&RawBackend>,
) -> Result<(Vec<Address>, Place), String> {
    let listen = listen
        .iter()
        .map(|text| Address::parse(text).map_err(|error| format!("listen: {error}")));
    let listen = listen.collect::<Result<Vec<_>, _>>()?;
    if listen.is_empty() {
        return Err("listen: expected at least one address, such as 127.0.0.1:6033".into());
    }
    let backend = backend.ok_or(
        "backend: expected the server's address ([backend] address = \"HOST:PORT\", \
         or --backend 'mysql://USER@HOST:PORT?password_file=FILE')",
    )?;
    let backend = Place::parse(&backend.address).map_err(|e| format!("backend.address: {e}"))?;
    if listen.iter().any(|address| backend.is(address)) {
        return Err(format!(
            "backend.address: {backend} is also in listen; the pool would \
                            be its own server"
        ));
    }
    Ok((listen, backend))
}

/// Who may connect to a Unix socket.
fn check_socket_access(
    mode: Option<&str>,
    owner: Option<&str>,
    group: Option<&str>,
) -> Result<FileAccess, String> {
    let text = mode.unwrap_or("0777");
    let is_octal = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mode = u32::from_str_radix(text, 8).ok();
    let mode = mode.filter(|mode| is_octal && *mode <= 0o777);
    let mode = mode.ok_or_else(|| {
        format!(
            "socket_mode: expected octal digits from \"0\" to \"0777\", as \"0660\", got '{text}'"
        )
    })?;
    type LookUp = fn(&str) -> std::io::Result<u32>;
    let number = |key, what, name: Option<&str>, look_up: LookUp| {
        let found = name.map(|name| {
            look_up(name).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    format!("{key}: expected the name or the number of a {what}, got '{name}'")
                }
                _ => format!("{key}: '{name}' cannot be looked up: {error}"),
            })
        });
        found.transpose()
    };
    Ok(FileAccess {
        mode,
        owner: number("socket_owner", "user", owner, accounts::user_id)?,
        group: number("socket_group", "group", group, accounts::group_id)?,
    })
}

/// Where replies wait that were taken off their backends, unless `spool_folder` says otherwise.
const SPOOL_FOLDER: &str = "/var/tmp";
/// Milliseconds of a day, the most that a time in milliseconds may be.
const DAY_MS: u64 = 86_400_000;

fn seconds(key: &str, value: Option<u64>, default: u64) -> Result<Duration, String> {
    bounded(key, value, default, 1, 31_536_000).map(|s| Duration::from_secs(s as u64))
}

/// How long a host may be silent; 0 is no limit.
fn silence(key: &str, value: Option<u64>, default: u64) -> Result<Option<Duration>, String> {
    if value == Some(0) {
        return Ok(None);
    }
    bounded(key, value, default, 3, 32_767)
        .map(|s| Some(Duration::from_secs(s as u64)))
        .map_err(|why| format!("{why} (0: no limit)"))
}

/// A limit that is none when it is not given.
fn optional(key: &str, value: Option<u64>, min: u64) -> Result<Option<usize>, String> {
    value
        .map(|n| bounded(key, Some(n), 0, min, 1 << 50))
        .transpose()
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

/// The budget of prepared statements; each backend needs at least one.
fn check_prepared_max(value: Option<u64>, backends_max: u64) -> Result<usize, String> {
    let budget = value.or(Some(backends_max.max(8192)));
    bounded("prepared_max", budget, 8192, backends_max, 4_194_304)
        .map_err(|why| format!("{why} (at least one for each of backends_max)"))
}

fn check_users(raw: Vec<RawUser>, defaults: &RawUser) -> Result<Vec<User>, String> {
    let mut users: Vec<User> = Vec::with_capacity(raw.len());
    for user in raw {
        if users.iter().any(|other| other.name == user.name) {
            return Err(format!("user: '{}' is listed twice", user.name));
        }
        users.push(check_user(user, defaults)?);
    }
    Ok(users)
}

fn check_user(raw: RawUser, defaults: &RawUser) -> Result<User, String> {
    let limits = check_limits(&raw, defaults).map_err(|e| format!("user '{}': {e}", raw.name))?;
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
                "user '{name}': expected either a password (password, password_file or \
                 password_env) or password_hash (an account without a password has password = \
                 \"\")"
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
        limits,
    })
}

fn check_limits(raw: &RawUser, defaults: &RawUser) -> Result<Limits, String> {
    let mode = raw
        .high_prio_mode
        .as_ref()
        .or(defaults.high_prio_mode.as_ref());
    let high_prio_mode = match mode {
        None => Mode::default(),
        Some(text) => Mode::from_name(text).ok_or_else(|| {
            format!("high_prio_mode: expected transactions, statements or none, got '{text}'")
        })?,
    };
    let priority = match &raw.priority {
        None => Priority::default(),
        Some(text) => Priority::from_name(text)
            .ok_or_else(|| format!("priority: expected high, low or auto, got '{text}'"))?,
    };
    let most = u64::from(u32::MAX);
    let tickets = raw.high_prio_tickets.or(defaults.high_prio_tickets);
    let tickets = bounded("high_prio_tickets", tickets, most, 0, most)?;
    let time = |key, own: Option<u64>, default: Option<u64>| {
        let ms = own
            .or(default)
            .map(|ms| bounded(key, Some(ms), 0, 1, DAY_MS));
        let ms = ms.transpose()?;
        Ok::<_, String>(ms.map(|ms| Duration::from_millis(ms as u64)))
    };
    let idle = raw.idle_s_max.or(defaults.idle_s_max);
    Ok(Limits {
        clients_max: optional("clients_max", raw.clients_max, 1)?,
        waiting_max: optional("waiting_max", raw.waiting_max, 1)?,
        input_bytes_max: optional("input_bytes_max", raw.input_bytes_max, 1 << 16)?,
        backends_max: optional("backends_max", raw.backends_max, 0)?,
        priority,
        high_prio_mode,
        high_prio_tickets: u32::try_from(tickets).unwrap_or(u32::MAX),
        idle_max: idle
            .map(|s| seconds("idle_s_max", Some(s), 0))
            .transpose()?,
        transaction_max: time(
            "transaction_ms_max",
            raw.transaction_ms_max,
            defaults.transaction_ms_max,
        )?,
        statement_max: time(
            "statement_ms_max",
            raw.statement_ms_max,
            defaults.statement_ms_max,
        )?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

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
        let access = settings.socket_access;
        assert_eq!(
            (access.mode, access.owner, access.group),
            (0o777, None, None)
        );
        let narrow = "socket_mode = \"0660\"\nsocket_owner = \"root\"\nsocket_group = \"7\"";
        let access = check(&GOOD.replace("wait_ms_max = 500", narrow))
            .unwrap()
            .socket_access;
        assert_eq!(
            (access.mode, access.owner, access.group),
            (0o660, Some(0), Some(7))
        );
        assert_eq!(settings.users[1].backend_user, "app");
        let seconds = |s| Some(Duration::from_secs(s));
        assert_eq!(settings.backend_silence_max, seconds(15));
        assert_eq!(settings.client_silence_max, seconds(300));
        assert_eq!(settings.users[1].plugin, Some(Plugin::CachingSha2));
    }

    #[test]
    fn passwords_may_stand_in_files_and_in_the_environment() {
        let folder = std::env::temp_dir().join(format!("onramp-passwords-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("password");
        std::fs::write(&file, "from a file\n").unwrap();
        let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o600);
        let elsewhere = |keys: &str| {
            let text = GOOD.replacen("password = \"secret\"", keys, 1);
            check(&text.replace("FILE", file.to_str().unwrap()))
        };
        let settings = elsewhere("password_file = \"FILE\"").unwrap();
        assert_eq!(settings.users[0].backend_password, "from a file");
        assert_eq!(settings.warnings, [""; 0]);
        mode(0o644);
        let settings = elsewhere("password_file = \"FILE\"").unwrap();
        assert!(settings.warnings[0].contains("mode 0644"), "{settings:?}");
        let path = std::env::var("PATH").unwrap();
        let settings = elsewhere("password_env = \"PATH\"").unwrap();
        assert_eq!(settings.users[0].backend_password, path.as_str());
        let settings = elsewhere(
            "password_hash = \"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19\"\n\
             backend_password_file = \"FILE\"",
        );
        assert_eq!(settings.unwrap().users[0].backend_password, "from a file");
        let monitor =
            "monitor_user = \"m\"\nmonitor_password_env = \"PATH\"\n[[user]]\nname = \"app\"";
        let text = GOOD.replacen("[[user]]\n        name = \"app\"", monitor, 1);
        let (user, password) = check(&text).unwrap().looking.account.unwrap();
        assert_eq!((user.as_str(), &*password), ("m", path.as_str()));
        for (keys, expected) in [
            (
                "password_env = \"ONRAMP_NOT_THERE\"",
                "user 'app': password_env ONRAMP_NOT_THERE",
            ),
            (
                "password_file = \"/nowhere/p\"",
                "user 'app': password_file /nowhere/p: No such file",
            ),
            (
                "password = \"x\"\npassword_env = \"PATH\"",
                "expected one of password, password_file",
            ),
            (
                "password_env = \"PATH\"\npassword_file = \"FILE\"",
                "expected one of password",
            ),
            (
                "password_hash = \"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19\"\n\
                 password_env = \"PATH\"",
                "expected either a password",
            ),
        ] {
            let error = elsewhere(keys).unwrap_err();
            assert!(error.contains(expected), "{keys}: {error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn neither_settings_nor_mistakes_show_a_password() {
        let shown = format!("{:?} {:?}", Raw::parse(GOOD).unwrap(), check(GOOD).unwrap());
        assert!(!shown.contains("secret"), "{shown}");
        for line in [
            "password = secret",
            "password = 'secret",
            "password = \"\"\"secret",
            "password = [\"secret\"]",
            "password = \"secret\" x",
            "password = \"secret\"\n        password = \"secret\"",
            "backend_password = { secret = 1 }",
        ] {
            let error = check(&GOOD.replacen("password = \"secret\"", line, 1)).unwrap_err();
            assert!(!error.contains("secret"), "{line}: {error}");
        }
        let number = check(&GOOD.replacen("\"secret\"", "4711", 1)).unwrap_err();
        assert!(
            number.starts_with("line 8: password: expected a text"),
            "{number}"
        );
        assert!(Raw::parse(GOOD).unwrap().holds_secrets());
        let without = "[[user]]\nname = \"a\"\npassword = \"\"\n\
                       [[user]]\npassword_file = \"f\"\nname = \"b\"";
        assert!(!Raw::parse(without).unwrap().holds_secrets());
    }

    #[test]
    fn each_mistake_is_one_sentence_that_names_the_key() {
        let cases = [
            ("clients_maximum = 5", "unknown field `clients_maximum`"),
            ("wait_ms_max = 0", "wait_ms_max: expected a number from 1"),
            (
                "client_silence_s_max = 2",
                "client_silence_s_max: expected a number from 3 to 32767, got 2 (0: no limit)",
            ),
            ("clients_max = \"many\"", "clients_max"),
            ("listen = []", "duplicate key"),
            ("socket_mode = \"0778\"", "socket_mode: expected octal"),
            ("socket_mode = \"1777\"", "got '1777'"),
            ("socket_mode = \"+77\"", "got '+77'"),
            (
                "socket_owner = \"no one\"",
                "number of a user, got 'no one'",
            ),
            (
                "socket_group = \"no one\"",
                "number of a group, got 'no one'",
            ),
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
