//! Configuration: what the user wrote, checked once, and the numbers that follow from it.
//!
//! Each setting is a row of the table in `config/rows.rs`. [`Raw`] is what is written: values by
//! key, each with its line and column, or its option. [`Settings`] is what the pool runs on: every
//! value bounded, every address parsed, every password fetched. The way from one to the other is
//! [`Raw::check`], whose errors name the place, the key, what was expected and what came.
//! Invariant: nothing reads `Raw` after that.

pub(crate) mod current;
pub(crate) mod options;
pub(crate) mod secret;
pub(crate) mod source;

#[cfg(test)]
mod page;
mod row;
mod rows;

use crate::auth::account::{Account, Method};
use crate::auth::address_limits::{AddressRules, Limit};
use crate::auth::certificate::{ClientTls, ClientTlsKeys};
use crate::auth::requirement::Requirement;
use crate::auth::secret::Secret;
use crate::auth::user_use::UserUse;
use crate::auth::verifier::Verifier;
use crate::config::secret::Typed;
use crate::server::backend_tls::{BackendTls, BackendTlsKeys};
use files::Unread;
use reactor::Address;
use reactor::socket::{FileAccess, Keepalive};
pub(crate) use row::{At, Keys, Kind, Row, Value};
use rows::{ConsoleKeys, OtelKeys, Require, ServerKeys, TlsKeys, UserKeys};
pub use rows::{FileMode, GroupNumber, HttpAddress, Limits, Settings, UserNumber};
pub(crate) use rows::{console_rows, otel_rows, server_rows, tls_rows, top_rows, user_rows};
use rustls::pki_types::CertificateDer;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wire::auth::native;

/// Where every setting is described.
pub(crate) const PAGE: &str = "docs/pool/settings.md";
/// What a user's `slow_backends_max` was called, as if it bounded all backends of a user.
const OLD_SLOW_BACKENDS: &str = "backends_max";
/// Bytes of a file of settings: a million users with a password each.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 20;
/// Names that an error suggests in place of one that is unknown.
const SUGGESTED_MAX: usize = 3;

/// The settings as written.
#[derive(Clone, Debug)]
pub struct Raw {
    pub(crate) top: Keys,
    pub(crate) server: Keys,
    pub(crate) tls: Keys,
    pub(crate) console: Keys,
    pub(crate) otel: Keys,
    pub(crate) users: Vec<Keys>,
    /// See [`Settings::warnings`].
    pub(crate) warnings: Vec<String>,
}

/// What becomes of a client whose statement calls a stored procedure, or a function that is not the
/// server's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

impl AccountSource {
    fn from_name(name: &str) -> Option<AccountSource> {
        match name {
            "file" => Some(AccountSource::File),
            "server" => Some(AccountSource::Server),
            _ => None,
        }
    }
}

impl StoredCode {
    fn from_name(name: &str) -> Option<StoredCode> {
        match name {
            "pin" => Some(StoredCode::Pin),
            "transaction" => Some(StoredCode::Transaction),
            "trust" => Some(StoredCode::Trust),
            _ => None,
        }
    }
}

/// Where the accounts of users stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccountSource {
    /// In the settings only.
    #[default]
    File,
    /// On the server, and in the settings.
    Server,
}

/// Whom a [`User`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The user of that name.
    Settings,
    /// All accounts that are read from the server.
    Server,
    /// A user that there was, and whose clients may still be here.
    Removed,
}

/// What the users of the server's accounts are called in figures, where it means all of them.
const SERVER_ACCOUNTS: &str = "(server)";

/// A user, checked.
#[derive(Clone, Debug)]
pub struct User {
    /// Whom it stands for.
    pub(crate) origin: Origin,
    /// The name with which clients log in.
    pub name: String,
    /// What proves the password.
    pub verifier: Verifier,
    /// What clients are asked for; `None`: the answer of either plugin.
    pub method: Option<Method>,
    /// What its clients have to prove besides.
    pub require: Requirement,
    /// The account on the server.
    pub backend_user: String,
    /// Its password.
    pub backend_password: Secret,
    /// What it may use.
    pub limits: Limits,
    /// What it uses.
    pub(crate) usage: Arc<UserUse>,
}

impl User {
    /// A statement of its clients waits in a lane, or does not any more. Counted where there is a
    /// limit.
    pub(crate) fn count_waiting(&self, on: bool) {
        if self.limits.waiting_max.is_some() {
            let waiting = &self.usage.waiting;
            match on {
                true => waiting.fetch_add(1, Relaxed),
                false => waiting.fetch_sub(1, Relaxed),
            };
        }
    }
}

impl User {
    /// Whether nothing that is written of it differs.
    fn is_as(&self, other: &User) -> bool {
        let of = |user: &User| {
            let onward = (user.backend_user.clone(), user.backend_password.clone());
            (
                user.method,
                user.require.clone(),
                onward,
                user.limits.clone(),
            )
        };
        of(self) == of(other) && self.verifier.is_like(&other.verifier)
    }
}

/// Where the console is, and who may log in there.
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    /// Its address.
    pub listen: Address,
    /// Its accounts.
    pub accounts: Vec<ConsoleAccount>,
}

/// An account of the console.
#[derive(Clone, Debug)]
pub struct ConsoleAccount {
    /// Its name.
    pub name: String,
    /// Its password.
    pub password: Secret,
    /// It may give commands.
    pub is_admin: bool,
}

/// Where metrics, spans and lines of the log are sent, and as whose.
#[derive(Clone, Debug)]
pub struct OtelSettings {
    /// The address without the paths of the signals, and without a `/` at its end.
    pub(crate) endpoint: String,
    /// How often metrics are sent.
    pub(crate) interval: Duration,
    /// Lines of the log are sent too.
    pub(crate) has_logs: bool,
    /// `service.name`.
    pub(crate) service_name: String,
    /// `service.instance.id`; `None`: a random one.
    pub(crate) service_instance_id: Option<String>,
    /// The authorities that are trusted; `None`: the system's.
    pub(crate) authorities: Option<Vec<CertificateDer<'static>>>,
}

/// A setting with its value, as it may be shown: no password.
#[derive(Clone, Debug)]
pub struct ShownSetting {
    /// Its name: the key, behind `backend.`, `tls.` or whose it is.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Its default.
    pub default: String,
    /// Where it was written; `None`: it has its default.
    pub place: Option<String>,
    /// It is read at start only.
    pub is_fixed: bool,
    /// It is a user's.
    pub of_user: bool,
}

/// What these users must prove, in their order.
pub(crate) fn accounts_of(users: &[User]) -> Vec<Account> {
    let account = |(index, user): (usize, &User)| Account {
        user: index,
        name: user.name.clone(),
        verifier: user.verifier.clone(),
        method: user.method,
        learnt: Arc::default(),
        of_server: None,
    };
    let listed = users.iter().enumerate();
    let listed = listed.filter(|(_, user)| user.origin == Origin::Settings);
    listed.map(account).collect()
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

    /// What one address, and one network, may have.
    pub(crate) fn address_rules(&self) -> AddressRules<'_> {
        AddressRules {
            address: Limit {
                clients: self.clients_per_address_max,
                logins_per_s: self.logins_per_s_per_address_max,
            },
            network: Limit {
                clients: self.clients_per_network_max,
                logins_per_s: self.logins_per_s_per_network_max,
            },
            network_bits: (self.network_bits_ipv4, self.network_bits_ipv6),
            exempt: &self.unlimited_networks,
        }
    }

    /// Who may connect to the Unix sockets among the listeners.
    pub(crate) fn socket_access(&self) -> FileAccess {
        FileAccess {
            mode: self.socket_mode.0,
            owner: self.socket_owner.map(|owner| owner.0),
            group: self.socket_group.map(|group| group.0),
        }
    }

    /// The place among the users of what stands for the server's accounts, if they may log in.
    pub(crate) fn server_accounts(&self) -> Option<usize> {
        self.users
            .iter()
            .position(|user| user.origin == Origin::Server)
    }

    /// Name and password of the account that asks what the server is, before the pool serves.
    pub(crate) fn first_account(&self) -> (String, Secret) {
        let of_settings = |user: &&User| user.origin == Origin::Settings;
        match self.users.iter().find(of_settings) {
            Some(first) => (first.backend_user.clone(), first.backend_password.clone()),
            None => self.monitor_account(),
        }
    }

    /// Name and password of the account that asks for the pool itself.
    pub(crate) fn monitor_account(&self) -> (String, Secret) {
        // Of those that have been, the first that still is.
        let is_here = |user: &&User| user.origin != Origin::Removed;
        let first = self.users.iter().find(is_here).unwrap_or(&self.users[0]);
        let own = || (first.backend_user.clone(), first.backend_password.clone());
        self.monitor.clone().unwrap_or_else(own)
    }
}

impl Default for Raw {
    fn default() -> Raw {
        Raw {
            top: Keys::default(),
            server: Keys::of("backend."),
            tls: Keys::of("tls."),
            console: Keys::of("console."),
            otel: Keys::of("otel."),
            users: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Raw {
    /// Reads the text of a configuration file.
    ///
    /// # Errors
    /// One sentence with the line, the key, what was expected and what came.
    pub fn parse(text: &str) -> Result<Raw, String> {
        File { text, name: None }.read()
    }

    /// Reads a configuration file, or a pipe. Its name stands in front of each error.
    ///
    /// # Errors
    /// As [`Raw::parse`], or that the file cannot be read.
    pub fn read(path: &Path) -> Result<Raw, String> {
        Raw::of_file(path, files::text_once(path, FILE_BYTES_MAX))
    }

    /// The same while the pool serves: it must be a regular file.
    ///
    /// # Errors
    /// As [`Raw::read`].
    pub(crate) fn read_again(path: &Path) -> Result<Raw, String> {
        Raw::of_file(path, files::text(path, FILE_BYTES_MAX))
    }

    fn of_file(path: &Path, text: Result<String, Unread>) -> Result<Raw, String> {
        let name = path.display().to_string();
        let text = text.map_err(|why| format!("--config {name}: {why}"))?;
        let file = File {
            text: &text,
            name: Some(name.into()),
        };
        file.read()
    }

    /// Puts another value in place of what is written of a setting that can change while the pool
    /// runs; none puts back what was written. The words that are shown of a default are a value.
    ///
    /// # Errors
    /// What is expected, or that it cannot be changed so.
    pub(crate) fn change(&mut self, name: &str, text: Option<&str>) -> Result<(), String> {
        let shown = self.shown();
        let is_fixed = |shown: &ShownSetting| shown.name == name && shown.is_fixed;
        if shown.iter().any(is_fixed) {
            return Err(format!(
                "{name} is read at start only: change it in the file, and upgrade or restart"
            ));
        }
        let Some(row) = top_rows().find(|row| row.key == name) else {
            return Err(format!(
                "{name} is changed in the file of the settings only; RELOAD has that read again"
            ));
        };
        let Some(text) = text else {
            self.top.put_back(row.key);
            return Ok(());
        };
        if row.is_default_shown(text) {
            self.top.replace(row.key, None);
            return Ok(());
        }
        let value = row.value_from(text).ok_or_else(|| {
            let why = format!("expected {}, got '{text}'", row.expected());
            At::Console.error(name, &why)
        })?;
        self.top.replace(row.key, Some((value, At::Console)));
        Ok(())
    }

    /// True where the file holds passwords, or hashes of them.
    pub(crate) fn holds_secrets(&self) -> bool {
        let holds = |keys: &Keys, name| match keys.get(name) {
            Some(Value::Secret(secret)) => !secret.is_empty(),
            _ => false,
        };
        let of_users = self.users.iter().any(|user| {
            holds(user, "password")
                || holds(user, "backend_password")
                || user.get("password_hash").is_some()
        });
        of_users
            || holds(&self.server, "monitor_password")
            || holds(&self.console, "admin_password")
            || holds(&self.console, "reader_password")
    }

    /// Every setting of the pool with its value, and what is written of each user.
    fn shown(&self) -> Vec<ShownSetting> {
        let mut shown = Vec::new();
        for (table, keys) in [
            (Table::Pool, &self.top),
            (Table::Server, &self.server),
            (Table::Tls, &self.tls),
            (Table::Console, &self.console),
            (Table::Otel, &self.otel),
        ] {
            shown.extend(table.rows().map(|row| {
                let written = keys.shown(row);
                let default = row.default_shown();
                let (value, place) = match written {
                    Some((value, place)) => (value, Some(place)),
                    None => (default.clone(), None),
                };
                let name = keys.name_of(row.key);
                ShownSetting {
                    name,
                    value,
                    default,
                    place,
                    is_fixed: row.is_fixed,
                    of_user: false,
                }
            }));
        }
        for keys in &self.users {
            let written = |row: &'static Row| Some((row, keys.shown(row)?));
            shown.extend(
                Table::User
                    .rows()
                    .filter_map(written)
                    .map(|(row, (value, place))| ShownSetting {
                        name: keys.name_of(row.key),
                        value,
                        default: row.default_shown(),
                        place: Some(place),
                        is_fixed: row.is_fixed,
                        of_user: true,
                    }),
            );
        }
        shown
    }

    /// Checks every value and works out the defaults.
    ///
    /// # Errors
    /// One sentence that names the place, the key, what was expected and what came.
    pub fn check(self) -> Result<Settings, String> {
        let shown = self.shown();
        let mut warnings = self.warnings;
        let mut server = ServerKeys::from_keys(&self.server, None)?;
        let monitor = check_monitor(&mut server, &mut warnings)?;
        let auth = rows::account_source(&self.top)?;
        if self.users.is_empty() && auth == AccountSource::File {
            return Err(
                "user: expected at least one [[user]] with name and password, or auth = \
                        \"server\""
                    .into(),
            );
        }
        if auth == AccountSource::Server && monitor.is_none() {
            return Err(
                "auth: \"server\" expects monitor_user and monitor_password below [backend]: the \
                 account that reads the server's accounts (docs/pool/accounts.md)"
                    .into(),
            );
        }
        let mut users: Vec<User> = Vec::with_capacity(self.users.len());
        for keys in &self.users {
            let user = check_user(keys, &self.top, &mut warnings)?;
            if users.iter().any(|other| other.name == user.name) {
                return Err(format!("user: '{}' is listed twice", user.name));
            }
            users.push(user);
        }
        if auth == AccountSource::Server {
            users.push(server_accounts(&self.top)?);
        }
        let tls = TlsKeys::from_keys(&self.tls, None)?;
        let tls = ClientTlsKeys {
            mode: tls.mode,
            cert: tls.cert,
            key: tls.key,
            client_ca: tls.client_ca,
            client_cert: tls.client_cert,
        };
        let tls = ClientTls::of(tls, &mut warnings)?.map(Arc::new);
        check_requirements(&users, tls.as_deref())?;
        let backend_tls = BackendTlsKeys {
            mode: server.tls,
            ca: server.tls_ca,
            cert: server.tls_cert,
            key: server.tls_key,
            name: server.tls_name,
        };
        let backend_tls = BackendTls::of(backend_tls, &server.address, &mut warnings)?;
        let console = check_console(&self.console, &mut warnings)?;
        let otel = check_otel(&self.otel)?;
        let spool_folder_given = self.top.get("spool_folder").is_some();
        let mut settings = Settings::from_keys(
            &self.top,
            None,
            server.address,
            monitor,
            users,
            tls,
            backend_tls,
            server.proxy_protocol,
            console,
            otel,
            shown,
            spool_folder_given,
            warnings,
        )?;
        if settings.listen.iter().any(|at| settings.backend.is(at)) {
            return Err(format!(
                "backend.address: {} is also in listen; the pool would be its own server",
                settings.backend
            ));
        }
        check_listen(&settings.listen)?;
        check_run_as(&settings)?;
        if self.top.get("backends_max").is_none() {
            let least = settings.clients_max.div_ceil(CLIENTS_PER_BACKEND);
            settings.backends_max = settings.backends_max.max(least);
        }
        check_backends_min(&settings, self.top.get("backends_min").is_some())?;
        check_prepared_max(&mut settings, self.top.get("prepared_max").is_some())?;
        note_unknown_log_users(&mut settings, auth);
        Ok(settings)
    }
}

/// A file that is read.
struct File<'a> {
    text: &'a str,
    name: Option<Arc<str>>,
}

type Entry<'t, 'a> = (
    &'t Spanned<std::borrow::Cow<'a, str>>,
    &'t Spanned<DeValue<'a>>,
);

impl File<'_> {
    fn read(&self) -> Result<Raw, String> {
        let table = DeTable::parse(self.text).map_err(|error| self.syntax_error(&error))?;
        let mut raw = Raw::default();
        for (key, value) in in_order(table.get_ref()) {
            let at = self.at(key.span().start);
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("backend", DeValue::Table(table)) => {
                    raw.server = self.keys("backend.", Table::Server, table)?;
                    raw.server.at = Some(at);
                }
                ("backend", _) => {
                    return Err(at.error("backend", "expected [backend] and below it its settings"));
                }
                ("tls", DeValue::Table(table)) => {
                    raw.tls = self.keys("tls.", Table::Tls, table)?;
                    raw.tls.at = Some(at);
                }
                ("tls", _) => {
                    return Err(at.error("tls", "expected [tls] and below it its settings"));
                }
                ("console", DeValue::Table(table)) => {
                    raw.console = self.keys("console.", Table::Console, table)?;
                    raw.console.at = Some(at);
                }
                ("console", _) => {
                    return Err(at.error("console", "expected [console] and below it its settings"));
                }
                ("otel", DeValue::Table(table)) => {
                    raw.otel = self.keys("otel.", Table::Otel, table)?;
                    raw.otel.at = Some(at);
                }
                ("otel", _) => {
                    return Err(at.error("otel", "expected [otel] and below it its settings"));
                }
                ("user", DeValue::Array(users)) => {
                    for user in users {
                        let DeValue::Table(table) = user.get_ref() else {
                            return Err(at.error("user", EXPECTED_USER));
                        };
                        let mut keys = self.keys(&prefix_of(table), Table::User, table)?;
                        keys.at = Some(self.at(user.span().start));
                        raw.users.push(keys);
                    }
                }
                ("user", _) => return Err(at.error("user", EXPECTED_USER)),
                _ => self.entry(&mut raw.top, Table::Pool, (key, value))?,
            }
        }
        Ok(raw)
    }

    fn keys(&self, prefix: &str, table: Table, entries: &DeTable<'_>) -> Result<Keys, String> {
        let mut keys = Keys::of(prefix);
        for entry in in_order(entries) {
            self.entry(&mut keys, table, entry)?;
        }
        Ok(keys)
    }

    /// Takes one key and its value.
    fn entry(&self, keys: &mut Keys, table: Table, entry: Entry<'_, '_>) -> Result<(), String> {
        let (key, value) = entry;
        let at = self.at(value.span().start);
        let mut name = key.get_ref().as_ref();
        if (table, name) == (Table::User, OLD_SLOW_BACKENDS) {
            name = "slow_backends_max";
            keys.warnings.push(format!(
                "{at}: a user's {OLD_SLOW_BACKENDS} is called {name} now: it bounds only the \
                 backends that slow readers of the user hold while others wait"
            ));
        }
        let Some(row) = table.rows().find(|row| row.key == name) else {
            let at = self.at(key.span().start);
            return Err(format!("{at}: {}", unknown(table, name)));
        };
        let value =
            written(row, value.get_ref()).map_err(|why| at.error(&keys.name_of(row.key), &why))?;
        keys.set(row.key, value, at);
        Ok(())
    }

    /// The place of this byte.
    fn at(&self, byte: usize) -> At {
        let before = self.text.get(..byte).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        At::Line {
            file: self.name.clone(),
            number: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }

    /// What the parser says, on one line: without the line of the file that it would show, which
    /// may hold a password, and without the value of a key for one.
    fn syntax_error(&self, error: &toml::de::Error) -> String {
        let message = error.message().replace('\n', " ");
        let Some(span) = error.span() else {
            return match &self.name {
                Some(name) => format!("{name}: {message}"),
                None => message,
            };
        };
        let at = self.at(span.start);
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = self.text.lines().nth(before.matches('\n').count());
        let key = line.and_then(|line| Some(line.split_once('=')?.0.trim()));
        match key {
            Some(key) if key.contains("password") => at.error(key, EXPECTED_PASSWORD),
            Some(key) if !key.is_empty() => at.error(key, &message),
            _ => format!("{at}: {message}"),
        }
    }
}

const EXPECTED_USER: &str = "expected [[user]], one for each account, and below it its settings";
const EXPECTED_PASSWORD: &str =
    "expected a text in quotes, each key once (what stands there is not shown)";

/// The entries of a table as they stand in the file, so that the first mistake is reported.
fn in_order<'t, 'a>(table: &'t DeTable<'a>) -> Vec<Entry<'t, 'a>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// What errors about a user say in front of a key.
fn prefix_of(table: &DeTable<'_>) -> String {
    let name = table.get("name").and_then(|name| name.get_ref().as_str());
    match name {
        Some(name) => format!("user '{}': ", name.escape_debug()),
        None => "user: ".into(),
    }
}

/// A value of the file, of the row's type.
fn written(row: &Row, value: &DeValue<'_>) -> Result<Value, String> {
    let text = |value: &DeValue<'_>| value.as_str().map(str::to_owned);
    let found = match (row.kind, value) {
        (Kind::Number { .. }, DeValue::Integer(number)) => {
            u64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .map(Value::Number)
        }
        (Kind::Number { .. }, DeValue::String(text)) if row.is_word(text) => {
            Some(Value::Text(text.to_string()))
        }
        (Kind::Switch, DeValue::Boolean(on)) => Some(Value::Switch(*on)),
        (Kind::OneOf(_) | Kind::Text(_), value) => text(value).map(Value::Text),
        (Kind::List(_), DeValue::String(text)) => Some(Value::List(vec![text.to_string()])),
        (Kind::List(_), DeValue::Array(items)) => {
            let items: Option<Vec<String>> = items.iter().map(|i| text(i.get_ref())).collect();
            items.map(Value::List)
        }
        (Kind::Password, DeValue::String(text)) => Some(Value::Secret(Secret::from(text.as_ref()))),
        _ => None,
    };
    found.ok_or_else(|| {
        let form = match row.kind {
            Kind::Password => return EXPECTED_PASSWORD.to_owned(),
            Kind::Text(_) | Kind::OneOf(_) => ", as a text in quotes",
            Kind::List(_) => " in quotes, as [\"...\", \"...\"]",
            Kind::Number { .. } | Kind::Switch => "",
        };
        format!("expected {}{form}, got {}", row.expected(), shown(value))
    })
}

/// A value of the wrong type, as an error shows it.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{}\"", text.escape_debug()),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

/// A table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Pool,
    Server,
    Tls,
    Console,
    Otel,
    User,
}

impl Table {
    fn rows(self) -> Box<dyn Iterator<Item = &'static Row>> {
        match self {
            Table::Pool => Box::new(top_rows()),
            Table::Server => Box::new(server_rows()),
            Table::Tls => Box::new(tls_rows()),
            Table::Console => Box::new(console_rows()),
            Table::Otel => Box::new(otel_rows()),
            Table::User => Box::new(user_rows()),
        }
    }

    fn place(self) -> &'static str {
        match self {
            Table::Pool => "above the first line in brackets",
            Table::Server => "below [backend]",
            Table::Tls => "below [tls]",
            Table::Console => "below [console]",
            Table::Otel => "below [otel]",
            Table::User => "below [[user]]",
        }
    }
}

/// An error about a key that is no setting of this table: where it belongs, or what is meant.
fn unknown(table: Table, name: &str) -> String {
    let others = [
        Table::Pool,
        Table::Server,
        Table::Tls,
        Table::Console,
        Table::Otel,
        Table::User,
    ]
    .into_iter();
    let elsewhere = others.filter(|other| *other != table).find(|other| {
        let has = other.rows().any(|row| row.key == name);
        has || matches!(
            (other, name),
            (Table::Pool, "backend" | "tls" | "console" | "otel" | "user")
        )
    });
    let name_shown = name.escape_debug();
    if let Some(other) = elsewhere {
        return format!(
            "'{name_shown}' is no setting here; it stands {}; {PAGE} describes every setting",
            other.place()
        );
    }
    let mut known: Vec<&str> = table.rows().map(|row| row.key).collect();
    if table == Table::Pool {
        known.extend(["backend", "tls", "console", "otel", "user"]);
    }
    match nearest(name, &known).split_last() {
        None => format!("unknown setting '{name_shown}'; {PAGE} describes every setting"),
        Some((last, [])) => format!(
            "unknown setting '{name_shown}'; is {last} meant? {PAGE} describes every setting"
        ),
        Some((last, others)) => format!(
            "unknown setting '{name_shown}'; is {} or {last} meant? {PAGE} describes every setting",
            others.join(", ")
        ),
    }
}

/// The known names that are most like this one, the order of their words apart.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let sorted = |name: &str| {
        let mut words: Vec<&str> = name.split(['_', '-', '.']).collect();
        words.sort_unstable();
        words.join("_")
    };
    let name = name.to_ascii_lowercase();
    let like = |other: &&'a str| {
        let likeness = strsim::jaro_winkler(&name, other);
        let likeness = likeness.max(strsim::normalized_damerau_levenshtein(
            &sorted(&name),
            &sorted(other),
        ));
        (likeness, *other)
    };
    let mut all: Vec<(f64, &str)> = known.iter().map(like).collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    let best = all.first().map_or(0.0, |(likeness, _)| *likeness);
    let near = |&(likeness, name)| (likeness >= 0.75 && likeness + 0.05 >= best).then_some(name);
    all.iter().filter_map(near).take(SUGGESTED_MAX).collect()
}

/// Whom the pool becomes.
fn check_run_as(settings: &Settings) -> Result<(), String> {
    let user = settings.run_as_user.as_ref().map(|user| user.0);
    match (user, &settings.run_as_group) {
        (Some(0), _) => Err("run_as_user: expected another user than root".into()),
        (None, Some(_)) => Err("run_as_group: expected run_as_user with it".into()),
        _ => Ok(()),
    }
}

/// More clients than this for each backend need more of these: a group has at least one, and holds
/// at most as many clients as a table has descriptors, 20,000 on many hosts.
const CLIENTS_PER_BACKEND: usize = 16_384;

/// The budget of prepared statements; each backend needs at least one.
fn check_prepared_max(settings: &mut Settings, is_given: bool) -> Result<(), String> {
    let least = settings.backends_max;
    if settings.prepared_max >= least {
        return Ok(());
    }
    if is_given {
        return Err(format!(
            "prepared_max: expected at least {least}, one for each of backends_max, got {}",
            settings.prepared_max
        ));
    }
    settings.prepared_max = least;
    Ok(())
}

/// No address is listened at twice; of port 0 each is another one.
fn check_listen(listen: &[Address]) -> Result<(), String> {
    let is_any = |at: &Address| matches!(at, Address::Tcp(at) if at.port() == 0);
    for (place, at) in listen.iter().enumerate() {
        if !is_any(at) && listen[..place].contains(at) {
            return Err(format!("listen: {at} is listed twice"));
        }
    }
    Ok(())
}

/// As many connections as are to be kept may be open.
fn check_backends_min(settings: &Settings, is_given: bool) -> Result<(), String> {
    let (min, max) = (settings.backends_min, settings.backends_max);
    match is_given && min > max {
        true => Err(format!(
            "backends_min: expected at most backends_max, which is {max}, got {min}"
        )),
        false => Ok(()),
    }
}

/// Users that are named for the statement log, and may be mistyped: where the server has the
/// accounts, nobody can tell before they log in.
fn note_unknown_log_users(settings: &mut Settings, auth: AccountSource) {
    if auth == AccountSource::Server {
        return;
    }
    let is_known = |name: &String| settings.users.iter().any(|user| user.name == *name);
    let unknown = settings.statement_log_users.iter().filter(|n| !is_known(n));
    let unknown: Vec<String> = unknown.map(|name| format!("'{name}'")).collect();
    if !unknown.is_empty() {
        settings.warnings.push(format!(
            "statement_log_users: there is no [[user]] named {}",
            unknown.join(", ")
        ));
    }
}

/// The account that asks for the pool itself, where it has one of its own.
fn check_monitor(
    server: &mut ServerKeys,
    warnings: &mut Vec<String>,
) -> Result<Option<(String, Secret)>, String> {
    let typed = Typed {
        prefix: "monitor_",
        text: &mut server.monitor_password,
        file: &mut server.monitor_password_file,
        env: &mut server.monitor_password_env,
    };
    typed
        .take(warnings)
        .map_err(|error| format!("backend: {error}"))?;
    match (server.monitor_user.take(), server.monitor_password.take()) {
        (Some(user), Some(password)) if !user.contains('\0') => Ok(Some((user, password))),
        (None, None) => Ok(None),
        _ => Err(
            "backend: expected monitor_user and monitor_password together, a name without a NUL"
                .into(),
        ),
    }
}

/// The console, where an address is given for it.
fn check_console(
    keys: &Keys,
    warnings: &mut Vec<String>,
) -> Result<Option<ConsoleSettings>, String> {
    let mut typed = ConsoleKeys::from_keys(keys, None)?;
    let admin = Typed {
        prefix: "admin_",
        text: &mut typed.admin_password,
        file: &mut typed.admin_password_file,
        env: &mut typed.admin_password_env,
    };
    let wrong = |error| format!("console: {error}");
    admin.take(warnings).map_err(wrong)?;
    let reader = Typed {
        prefix: "reader_",
        text: &mut typed.reader_password,
        file: &mut typed.reader_password_file,
        env: &mut typed.reader_password_env,
    };
    reader.take(warnings).map_err(wrong)?;
    let mut accounts = Vec::new();
    for (kind, name, password, is_admin) in [
        ("admin", typed.admin_user, typed.admin_password, true),
        ("reader", typed.reader_user, typed.reader_password, false),
    ] {
        match (name, password) {
            (None, None) => {}
            (Some(name), Some(password)) if !password.is_empty() => accounts.push(ConsoleAccount {
                name,
                password,
                is_admin,
            }),
            _ => {
                return Err(format!(
                    "console: expected {kind}_user and {kind}_password together, and a password \
                     that is not empty"
                ));
            }
        }
    }
    if let [admin, reader] = &accounts[..]
        && admin.name == reader.name
    {
        return Err(format!(
            "console: expected another name in reader_user than in admin_user, got '{}' in both",
            reader.name
        ));
    }
    match (typed.listen, accounts.is_empty()) {
        (None, true) => Ok(None),
        (Some(listen), false) => Ok(Some(ConsoleSettings { listen, accounts })),
        (None, false) => Err("console: expected listen, the address of the console".into()),
        (Some(_), true) => {
            Err("console: expected admin_user or reader_user: nobody could log in".into())
        }
    }
}

/// What the pool adds to the collector's address, for each signal.
const SIGNAL_PATHS: [&str; 3] = ["/v1/metrics", "/v1/traces", "/v1/logs"];

/// The export to OpenTelemetry, where an address is given for it.
fn check_otel(keys: &Keys) -> Result<Option<OtelSettings>, String> {
    let typed = OtelKeys::from_keys(keys, None)?;
    let Some(endpoint) = typed.endpoint else {
        return Ok(None);
    };
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| endpoint.strip_prefix(scheme));
    // Errors, and SHOW CONFIG, show the address: it may hold no password.
    let is_plain = |rest: &str| {
        let is_bad = |c: char| c.is_whitespace() || c.is_control() || "@?#\"".contains(c);
        !rest.trim_matches('/').is_empty() && !rest.contains(is_bad)
    };
    if !rest.is_some_and(is_plain) {
        return Err(
            "otel.endpoint: expected http://HOST:PORT or https://HOST:PORT, without a user, a \
             password or parameters"
                .into(),
        );
    }
    let endpoint = endpoint.trim_end_matches('/').to_owned();
    for path in SIGNAL_PATHS {
        if let Some(before) = endpoint.strip_suffix(path) {
            return Err(format!(
                "otel.endpoint: expected no {path} at its end, because the pool adds that: write \
                 \"{before}\""
            ));
        }
    }
    let authorities = match &typed.ca {
        Some(path) => Some(reactor::tls_files::certificates("otel.ca", path)?),
        None => None,
    };
    Ok(Some(OtelSettings {
        endpoint,
        interval: typed.interval,
        has_logs: typed.logs,
        service_name: typed.service_name,
        service_instance_id: typed.service_instance_id,
        authorities,
    }))
}

/// Whether what users require can be had.
fn check_requirements(users: &[User], tls: Option<&ClientTls>) -> Result<(), String> {
    for user in users {
        let (name, require) = (&user.name, &user.require);
        if require.tls && tls.is_none() {
            return Err(format!(
                "user '{name}': require: no client can use TLS; expected [tls] with cert and key"
            ));
        }
        if require.certificate && !tls.is_some_and(|tls| tls.checks_clients) {
            return Err(format!(
                "user '{name}': require: no client's certificate can be checked; expected \
                 tls.client_ca, the file with the authorities that sign them"
            ));
        }
    }
    Ok(())
}

/// What a user's clients have to prove besides the password.
fn requirement(user: &mut UserKeys) -> Requirement {
    let (subject, issuer) = (user.require_subject.take(), user.require_issuer.take());
    let certificate = user.require == Require::X509 || subject.is_some() || issuer.is_some();
    Requirement {
        tls: certificate || user.require == Require::Ssl,
        certificate,
        cipher: false,
        subject,
        issuer,
    }
}

/// Fetches the passwords that stand elsewhere.
fn fetch_passwords(user: &mut UserKeys, warnings: &mut Vec<String>) -> Result<(), String> {
    let own = Typed {
        prefix: "",
        text: &mut user.password,
        file: &mut user.password_file,
        env: &mut user.password_env,
    };
    own.take(warnings)?;
    let backend = Typed {
        prefix: "backend_",
        text: &mut user.backend_password,
        file: &mut user.backend_password_file,
        env: &mut user.backend_password_env,
    };
    backend.take(warnings)
}

/// What stands for the server's accounts: the limits that all of them have.
fn server_accounts(top: &Keys) -> Result<User, String> {
    Ok(User {
        origin: Origin::Server,
        name: SERVER_ACCOUNTS.into(),
        verifier: Verifier::of_nobody(),
        method: None,
        require: Requirement::default(),
        backend_user: String::new(),
        backend_password: Secret::default(),
        limits: Limits::from_keys(&Keys::default(), Some(top))?,
        usage: Arc::default(),
    })
}

fn check_user(keys: &Keys, top: &Keys, warnings: &mut Vec<String>) -> Result<User, String> {
    warnings.extend_from_slice(&keys.warnings);
    let limits = Limits::from_keys(keys, Some(top))?;
    let mut typed = UserKeys::from_keys(keys, None)?;
    let name = typed.name.clone();
    fetch_passwords(&mut typed, warnings).map_err(|error| format!("user '{name}': {error}"))?;
    let verifier = match (&typed.password, &typed.password_hash) {
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
    let require = requirement(&mut typed);
    if typed.auth == Some(Method::ClearPassword) && !require.tls {
        return Err(format!(
            "user '{name}': expected require = \"ssl\" or \"x509\" beside auth = \
             \"mysql_clear_password\": clients send the password in clear text, which only TLS \
             hides"
        ));
    }
    let backend_password = typed.backend_password.or(typed.password).ok_or_else(|| {
        format!(
            "user '{name}': expected backend_password: a hash proves the client's password to \
             the pool, but the pool needs a password for the server"
        )
    })?;
    let backend_user = typed.backend_user.unwrap_or_else(|| name.clone());
    if backend_user.contains('\0') || name.contains('\0') {
        return Err(format!(
            "user '{}': a name cannot contain a NUL",
            name.escape_default()
        ));
    }
    Ok(User {
        origin: Origin::Settings,
        name,
        verifier,
        method: typed.auth,
        require,
        backend_user,
        backend_password,
        limits,
        usage: Arc::default(),
    })
}

/// Settings with one account, for tests; `top` are lines in front of the tables.
#[cfg(test)]
pub(crate) fn test_settings(top: &str) -> Settings {
    let text = format!(
        "{top}\nlisten = [\"127.0.0.1:1\"]\n[backend]\naddress = \"127.0.0.1:2\"\n\
         [[user]]\nname = \"a\"\npassword = \"b\"\n"
    );
    Raw::parse(&text)
        .and_then(Raw::check)
        .unwrap_or_else(|why| panic!("{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;
    use wire::auth::Plugin;

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

    /// Every setting that names a file, with a file that does.
    const FILES: &str = r#"
        listen = "127.0.0.1:6033"
        [backend]
        address = "127.0.0.1:3306"
        tls = "verify_ca"
        tls_ca = "DIR/cert"
        tls_cert = "DIR/cert"
        tls_key = "DIR/key"
        monitor_user = "monitor"
        monitor_password_file = "DIR/password"
        [tls]
        cert = "DIR/cert"
        key = "DIR/key"
        client_ca = "DIR/cert"
        [console]
        listen = "127.0.0.1:6032"
        admin_user = "admin"
        admin_password_file = "DIR/password"
        reader_user = "reader"
        reader_password_file = "DIR/password"
        [otel]
        endpoint = "http://127.0.0.1:4318"
        ca = "DIR/cert"
        [[user]]
        name = "app"
        password_file = "DIR/password"
        backend_password_file = "DIR/password"
    "#;

    #[test]
    fn no_setting_has_a_pipe_waited_for() {
        let folder = std::env::temp_dir().join(format!("onramp-pipes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("cert", include_str!("../../testkit/tls/cert.pem")),
            ("key", include_str!("../../testkit/tls/key.pem")),
            ("password", "secret"),
        ] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let pipe = folder.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let text = FILES.replace("DIR", folder.to_str().unwrap());
        check(&text).unwrap();
        let rows = (top_rows().chain(server_rows()).chain(tls_rows()))
            .chain(console_rows())
            .chain(otel_rows())
            .chain(user_rows());
        let is_file = |row: &&row::Row| {
            matches!(row.kind, row::Kind::Text(what) if what.contains("path"))
                && row.key != "spool_folder"
        };
        let mut count = 0;
        for row in rows.filter(is_file) {
            let line = text.lines().find(|line| {
                let key = line.trim_start().strip_prefix(row.key);
                key.is_some_and(|rest| rest.starts_with(" ="))
            });
            let line = line.unwrap_or_else(|| panic!("FILES has no {}", row.key));
            let other = format!("{} = \"{}\"", row.key, pipe.display());
            let error = check(&text.replace(line, &other)).unwrap_err();
            assert!(error.contains(row.key), "{}: {error}", row.key);
            let words = "pipe: expected a regular file";
            assert!(error.contains(words), "{}: {error}", row.key);
            count += 1;
        }
        assert_eq!(count, text.matches(folder.to_str().unwrap()).count());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_good_file_is_checked_and_completed() {
        let settings = check(GOOD).unwrap();
        assert_eq!(settings.listen.len(), 2);
        assert_eq!(settings.wait_max, Duration::from_millis(500));
        assert_eq!(settings.clients_max, 10_000);
        let access = settings.socket_access();
        assert_eq!(
            (access.mode, access.owner, access.group),
            (0o777, None, None)
        );
        let narrow = "socket_mode = \"0660\"\nsocket_owner = \"root\"\nsocket_group = \"7\"";
        let access = check(&GOOD.replace("wait_ms_max = 500", narrow))
            .unwrap()
            .socket_access();
        assert_eq!(
            (access.mode, access.owner, access.group),
            (0o660, Some(0), Some(7))
        );
        assert_eq!(settings.users[1].backend_user, "app");
        let seconds = |s| Some(Duration::from_secs(s));
        assert_eq!(settings.backend_silence_max, seconds(15));
        assert_eq!(settings.client_silence_max, seconds(300));
        assert_eq!(
            settings.users[1].method,
            Some(Method::Plugin(Plugin::CachingSha2))
        );
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
        let (user, password) = check(&text).unwrap().monitor.unwrap();
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
            number.starts_with("line 8, column 20: user 'app': password: expected a text"),
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
            (
                "clients_maximum = 5",
                "line 3, column 9: unknown setting 'clients_maximum'; is clients_max meant? \
                 docs/pool/settings.md describes every setting",
            ),
            (
                "max_clients = 5",
                "unknown setting 'max_clients'; is clients_max meant?",
            ),
            (
                "frobnicate = 5",
                "unknown setting 'frobnicate'; docs/pool/settings.md describes",
            ),
            (
                "password = 5",
                "'password' is no setting here; it stands below [[user]]",
            ),
            (
                "clients_max = \"many\"",
                "line 3, column 23: clients_max: expected a number from 1 to 10000000, got the \
                 text \"many\"",
            ),
            ("clients_max = -5", "got -5"),
            ("clients_max = 5.5", "got 5.5"),
            (
                "compression = \"on\"",
                "compression: expected true or false, got the text \"on\"",
            ),
            (
                "stored_code = \"believe\"",
                "line 3, column 23: stored_code: expected pin, transaction or trust, got 'believe'",
            ),
            (
                "stored_code_refresh_s = 86401",
                "stored_code_refresh_s: expected a number from 1 to 86400, got 86401 (0: never)",
            ),
            ("prepared_max = 63", "prepared_max: expected at least 64"),
            (
                "idle_s_max = 0",
                "line 3, column 22: idle_s_max: expected a number from 1",
            ),
            (
                "wait_ms_max = 0",
                "line 3, column 23: wait_ms_max: expected a number from 1 to 86400000, got 0",
            ),
            (
                "client_silence_s_max = 2",
                "client_silence_s_max: expected a number from 3 to 32767, got 2 (0: no limit)",
            ),
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
        let in_user = |line: &str| without("name = \"app\"", &format!("name = \"app\"\n{line}"));
        let error = in_user("clients_max = 0");
        assert!(
            error.contains(
                "line 8, column 15: user 'app': clients_max: expected a number from 1 to"
            ),
            "{error}"
        );
        let error = in_user("wait_ms_max = 5");
        assert!(
            error.contains("it stands above the first line in brackets"),
            "{error}"
        );
        assert!(in_user("prority = \"low\"").contains("is priority meant?"));
        assert!(in_user("priority = \"last\"").contains("expected high, low or auto, got 'last'"));
        assert!(without("name = \"app\"", "").contains("user: name: expected name = "));
        assert!(
            check("")
                .unwrap_err()
                .contains("backend.address: expected the server's address")
        );
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let error = |line: &str| check(&GOOD.replace("wait_ms_max = 500", line)).unwrap_err();
        assert_eq!(
            error("backends_max = 4\nbackends_min = 5"),
            "backends_min: expected at most backends_max, which is 4, got 5"
        );
        let few = GOOD.replace("wait_ms_max = 500", "backends_max = 1");
        assert!(
            check(&few).is_ok(),
            "the default of backends_min is no mistake"
        );
        let listening = |addresses: &str| {
            Raw::parse(&format!(
                "listen = [{addresses}]\n[backend]\naddress = \"127.0.0.1:2\"\n[[user]]\n\
                 name = \"a\"\npassword = \"1\"\n"
            ))
            .unwrap()
            .check()
            .err()
        };
        let twice = |address: &str| format!("\"{address}\", \"/a\", \"{address}\"");
        let said = listening(&twice("127.0.0.1:6033")).unwrap();
        assert_eq!(said, "listen: 127.0.0.1:6033 is listed twice");
        assert!(
            listening(&twice("/b"))
                .unwrap()
                .contains("/b is listed twice")
        );
        assert_eq!(listening(&twice("127.0.0.1:0")), None);
        let console = |reader: &str| {
            let text = format!(
                "{GOOD}\n[console]\nlisten = \"127.0.0.1:3\"\nadmin_user = \"a\"\n\
                 admin_password = \"1\"\nreader_user = \"{reader}\"\nreader_password = \"2\"\n"
            );
            check(&text).err()
        };
        assert_eq!(console("b"), None);
        let said = console("a").unwrap();
        assert!(said.contains("another name in reader_user"), "{said}");
    }

    #[test]
    fn the_collectors_address_is_without_what_the_pool_adds() {
        let check = |endpoint: &str| check(&format!("{GOOD}\n[otel]\nendpoint = \"{endpoint}\"\n"));
        let settings = check("http://127.0.0.1:4318/otlp/").unwrap();
        assert_eq!(
            settings.otel.unwrap().endpoint,
            "http://127.0.0.1:4318/otlp"
        );
        for path in SIGNAL_PATHS {
            for end in ["", "/"] {
                let said = check(&format!("http://127.0.0.1:4318{path}{end}")).unwrap_err();
                assert!(said.contains("write \"http://127.0.0.1:4318\""), "{said}");
            }
        }
    }

    #[test]
    fn users_of_the_statement_log_that_there_are_not_are_told() {
        let warnings = |names: &str| {
            let line = format!("statement_log_users = [{names}]");
            check(&GOOD.replace("wait_ms_max = 500", &line))
                .unwrap()
                .warnings
        };
        assert_eq!(warnings("\"app\", \"hashed\""), [""; 0]);
        assert_eq!(
            warnings("\"app\", \"ap\", \"x\""),
            ["statement_log_users: there is no [[user]] named 'ap', 'x'"]
        );
    }

    #[test]
    fn the_old_name_of_a_users_limit_is_taken_and_said() {
        let of = |name: &str| {
            let line = format!("name = \"app\"\n{name} = 3");
            check(&GOOD.replace("name = \"app\"", &line)).unwrap()
        };
        let (new, old) = (of("slow_backends_max"), of("backends_max"));
        for settings in [&new, &old] {
            assert_eq!(settings.users[0].limits.slow_backends_max, Some(3));
            assert_eq!(settings.users[1].limits.slow_backends_max, None);
        }
        let said = |settings: &Settings| {
            let mut lines = settings.warnings.iter();
            lines.any(|line| line.contains("line 8, column 16: a user's backends_max is called"))
        };
        assert!(said(&old), "{:?}", old.warnings);
        assert!(!said(&new), "{:?}", new.warnings);
    }

    #[test]
    fn what_a_user_does_not_set_is_as_for_all() {
        let text = GOOD.replace(
            "wait_ms_max = 500",
            "idle_s_max = 7\nclients_max = 100\nhigh_prio_tickets = 3",
        );
        let text = text.replace("name = \"app\"", "name = \"app\"\nidle_s_max = 9");
        let settings = check(&text).unwrap();
        let limits: Vec<&Limits> = settings.users.iter().map(|user| &user.limits).collect();
        let idle: Vec<_> = limits
            .iter()
            .map(|l| l.idle_max.map(|t| t.as_secs()))
            .collect();
        assert_eq!(idle, [Some(9), Some(7)]);
        assert_eq!(
            (limits[0].high_prio_tickets, limits[1].high_prio_tickets),
            (3, 3)
        );
        assert_eq!(
            limits[1].clients_max, None,
            "that of all clients is no limit of each user's"
        );
        assert_eq!(settings.clients_max, 100);
    }

    #[test]
    fn one_address_may_stand_for_a_list_and_zero_for_no_limit() {
        let text = GOOD.replace(
            "[\"127.0.0.1:6033\", \"/run/onramp.sock\"]",
            "\"127.0.0.1:6033\"",
        );
        assert_eq!(check(&text).unwrap().listen.len(), 1);
        let error = check(&text.replace("\"127.0.0.1:6033\"", "6033")).unwrap_err();
        let expected = "listen: expected addresses in quotes, as [\"...\", \"...\"], got 6033";
        assert!(error.contains(expected), "{error}");
        let zero = "client_silence_s_max = 0\nstored_code_refresh_s = 0\nspool_bytes_max = 0";
        let settings = check(&GOOD.replace("wait_ms_max = 500", zero)).unwrap();
        assert_eq!(settings.client_silence_max, None);
        assert_eq!(settings.stored_code_refresh, None);
        assert_eq!(settings.spool_bytes_max, 0);
    }

    #[test]
    fn the_password_itself_needs_tls() {
        let of = |require: &str| {
            let text = format!(
                "listen = [\"127.0.0.1:1\"]\n[backend]\naddress = \"127.0.0.1:2\"\n[[user]]\n\
                 name = \"app\"\npassword = \"x\"\nauth = \"mysql_clear_password\"\n{require}"
            );
            let checked = Raw::parse(&text).and_then(Raw::check);
            checked.unwrap_err().to_string()
        };
        for require in ["", "require = \"none\"\n"] {
            let said = of(require);
            assert!(
                said.contains("user 'app': expected require = \"ssl\""),
                "{said}"
            );
        }
        let said = of("require = \"ssl\"\n");
        assert!(said.contains("no client can use TLS"), "{said}");
    }
}
