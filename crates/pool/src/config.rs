//! Configuration: what the user wrote, checked once, and the numbers that follow from it.
//!
//! Each setting is a row of the table in `config/rows.rs`. [`Raw`] is what is written: values by
//! key, each with its line and column, or its option. [`Settings`] is what the pool runs on: every
//! value bounded, every address parsed, every password fetched. The way from one to the other is
//! [`Raw::check`], whose errors name the place, the key, what was expected and what came.
//! Invariant: nothing reads `Raw` after that.

mod checks;
pub(crate) mod current;
mod file;
pub(crate) mod from_files;
#[cfg(test)]
pub(crate) mod generated_page;
mod mistakes;
pub(crate) mod options;
pub(crate) mod reload;
pub(crate) mod secret;
pub(crate) mod source;

#[cfg(test)]
mod page;
mod row;
mod rows;

use crate::auth::account::{Account, Method};
use crate::auth::certificate::{ClientTls, ClientTlsKeys, TlsMode};
use crate::auth::host_pattern::like;
use crate::auth::network::Network;
use crate::auth::requirement::Requirement;
use crate::auth::secret::Secret;
use crate::auth::verifier::Verifier;
use crate::config::checks::{
    CLIENTS_PER_BACKEND, check_backends_min, check_cluster, check_console, check_fleet,
    check_http_token, check_listen, check_monitor, check_otel, check_place, check_prepared_max,
    check_reads, check_requirements, check_run_as, check_server_tls, check_units, check_user,
    note_unknown_log_users, note_unshared_limits, server_accounts,
};
use crate::config::file::{File, Table};
use crate::config::mistakes::Mistakes;
use crate::limits::addresses::{AddressRules, Limit};
use crate::limits::user_use::UserUse;
use crate::server::tls::BackendTls;
use crate::server::upstream::{Place, Upstream};
use cluster::ServerId;
use files::Unread;
use reactor::Address;
use reactor::socket::{FileAccess, Keepalive};
pub(crate) use row::{At, Keys, Kind, Row, Value};
use rows::{ConsoleKeys, OtelKeys, ServerKeys, TlsKeys};
pub use rows::{FileMode, GroupNumber, HttpAddress, Limits, Settings, UserNumber};
pub(crate) use rows::{limit_rows, top_rows};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Page that describes every setting.
pub(crate) const PAGE: &str = "docs/pool/settings.md";
/// Bytes of a file of settings: a million users with a password each.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 20;

/// The settings as written.
#[derive(Clone, Debug)]
pub struct Raw {
    pub(crate) top: Keys,
    pub(crate) server: Keys,
    pub(crate) members: Vec<Keys>,
    pub(crate) cluster: Keys,
    pub(crate) fleet: Keys,
    pub(crate) tls: Keys,
    pub(crate) console: Keys,
    pub(crate) otel: Keys,
    pub(crate) users: Vec<Keys>,
    /// See [`Settings::warnings`].
    pub(crate) warnings: Vec<String>,
}

/// Treatment of a client whose statement calls a stored procedure, or a function that is not the
/// server's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoredCode {
    /// Pin: the code may have left anything.
    #[default]
    Pin,
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
            "trust" => Some(StoredCode::Trust),
            _ => None,
        }
    }
}

/// Source of the accounts of users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccountSource {
    /// Settings only.
    #[default]
    File,
    /// On the server, and in the settings.
    Server,
}

/// Accounts that a [`User`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The user of that name.
    Settings,
    /// All accounts that are read from the server.
    Server,
    /// A user that there was, and whose clients may still be here.
    Removed,
}

/// Name of the users of the server's accounts in figures, where it means all of them.
const SERVER_ACCOUNTS: &str = "(server)";

/// A user, checked.
#[derive(Clone, Debug)]
pub struct User {
    /// Accounts that it stands for.
    pub(crate) origin: Origin,
    /// The name with which clients log in.
    pub name: String,
    /// Verifier of the password.
    pub verifier: Verifier,
    /// Verifier of the second password, during a rotation.
    pub(crate) second: Option<Verifier>,
    /// Authentication method that clients are asked for; `None`: the answer of either plugin.
    pub method: Option<Method>,
    /// Further proof that its clients have to give.
    pub require: Requirement,
    /// The account on the server.
    pub backend_user: String,
    /// Its password.
    pub backend_password: Secret,
    /// Limits of its use.
    pub limits: Limits,
    /// Its use.
    pub(crate) usage: Arc<UserUse>,
}

impl User {
    /// Counts a statement of its clients into the queues, or out of them (`on`), where there is a
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
    /// True if nothing that is written of it differs.
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
        let seconds_alike = match (&self.second, &other.second) {
            (Some(own), Some(other)) => own.is_like(other),
            (own, other) => own.is_none() && other.is_none(),
        };
        of(self) == of(other) && self.verifier.is_like(&other.verifier) && seconds_alike
    }
}

/// Settings of the discovery of servers.
#[derive(Clone, Debug)]
pub(crate) struct DiscoverySettings {
    /// Networks that all addresses of a server must be in.
    pub(crate) networks: Vec<Network>,
    /// Time for which a server that is named no more stays.
    pub(crate) keep: Duration,
}

/// Limits of one of several servers on the pool's connections to it, and on those of them that run
/// something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerLimits {
    pub(crate) backends_max: Option<usize>,
    pub(crate) running_max: Option<usize>,
}

/// Several servers, checked.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Settings of the decision which of them is written to.
    pub(crate) decision: cluster::Settings,
    /// Their places, in that order.
    pub(crate) places: Vec<Place>,
    /// TLS to each.
    pub(crate) tls: Vec<Arc<BackendTls>>,
    /// Limits of each.
    pub(crate) limits: Vec<ServerLimits>,
    /// Servers may be found that the cluster names.
    pub(crate) discovery: Option<DiscoverySettings>,
    /// Time limit of an answer.
    pub(crate) answer_max: Duration,
    /// Time limit of a step of a switchover.
    pub(crate) switch_max: Duration,
    /// Program that promotes, with its arguments.
    pub(crate) promote_command: Vec<String>,
    /// Longest wait of a read for its client's own writes.
    pub(crate) read_wait_max: Duration,
    /// Reads are counted, and go to the writer all the same.
    pub(crate) read_dry_run: bool,
}

/// Address and accounts of the console.
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
    /// True if it may give commands.
    pub is_admin: bool,
}

/// Collector of metrics, spans and lines of the log, and the resource that they belong to.
#[derive(Clone, Debug)]
pub struct OtelSettings {
    /// The address without the paths of the signals, and without a `/` at its end.
    pub(crate) endpoint: String,
    /// Interval at which metrics are sent.
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
    /// Place where it was written; `None`: it has its default.
    pub place: Option<String>,
    /// True if it is read at start only.
    pub is_fixed: bool,
    /// True for a user's.
    pub of_user: bool,
}

/// Accounts of these users, in their order.
pub(crate) fn accounts_of(users: &[User]) -> Vec<Account> {
    let account = |(index, user): (usize, &User)| {
        let of = |verifier: &Verifier, second| Account {
            user: index,
            name: user.name.clone(),
            verifier: verifier.clone(),
            method: user.method,
            learnt: Arc::default(),
            of_server: None,
            second,
        };
        let second = user.second.as_ref();
        of(
            &user.verifier,
            second.map(|second| Arc::new(of(second, None))),
        )
    };
    let listed = users.iter().enumerate();
    let listed = listed.filter(|(_, user)| user.origin == Origin::Settings);
    listed.map(account).collect()
}

/// Another value of a limit of a user than is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UserLimit {
    pub(crate) user: String,
    /// Its key.
    pub(crate) name: String,
    /// Its value; none is what is written.
    pub(crate) value: Option<String>,
}

/// Pattern that is like this name alone.
fn like_itself(name: &str) -> String {
    let escaped = name.chars().flat_map(|c| {
        let escape = matches!(c, '%' | '_' | '\\').then_some('\\');
        escape.into_iter().chain([c])
    });
    escaped.collect()
}

/// Parts of `client_silence_s_max`: one may pass before a client is asked for a sign of life, one
/// until that is its turn, and one for the kernel to repeat the question.
pub(crate) const SILENCE_PARTS: u32 = 3;

impl Settings {
    /// Keepalive of backends: they are few, so early and often.
    pub(crate) fn backend_keepalive(&self) -> Option<Keepalive> {
        let silence = self.backend_silence_max?;
        Some(Keepalive::within(silence, silence / 3))
    }

    /// Keepalive of a client that is asked for a sign of life.
    pub(crate) fn client_keepalive(&self) -> Option<Keepalive> {
        Some(Keepalive::in_turns(
            self.client_silence_max? / SILENCE_PARTS,
        ))
    }

    /// Limits of one address, and one network.
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

    /// Access to the Unix sockets among the listeners.
    pub(crate) fn socket_access(&self) -> FileAccess {
        FileAccess {
            mode: self.socket_mode.0,
            owner: self.socket_owner.map(|owner| owner.0),
            group: self.socket_group.map(|group| group.0),
        }
    }

    /// TLS to one of several servers; those that were found have that of `[backend]`.
    pub(crate) fn tls_of(&self, server: ServerId) -> Arc<BackendTls> {
        let own = self.cluster.as_ref();
        let own = own.and_then(|cluster| cluster.tls.get(server.index()));
        own.unwrap_or(&self.backend_tls).clone()
    }

    /// TLS to the server of this place at an address; `None`: of several servers none is known to
    /// be there.
    pub(crate) fn tls_at(&self, upstream: &Upstream, at: &Address) -> Option<Arc<BackendTls>> {
        match self.cluster {
            None => Some(self.backend_tls.clone()),
            Some(_) => upstream.server_at(at).map(|server| self.tls_of(server)),
        }
    }

    /// True if accounts of the server may log in.
    pub(crate) fn has_server_accounts(&self) -> bool {
        self.users.iter().any(|user| user.origin == Origin::Server)
    }

    /// The place among the users of what stands for the server's account of this name: of those
    /// whose names it is like the one with the most characters that are no wildcards.
    pub(crate) fn server_account(&self, name: &str) -> Option<usize> {
        let is_its = |user: &User| {
            let is_like = || like(user.name.as_bytes(), name.as_bytes(), u8::eq);
            user.origin == Origin::Server && (user.name == SERVER_ACCOUNTS || is_like())
        };
        let rank = |user: &User| {
            let literal = user.name.bytes().filter(|byte| !b"%_\\".contains(byte));
            (user.name != SERVER_ACCOUNTS, literal.count())
        };
        let all = self.users.iter().enumerate();
        let its = all.filter(|(_, user)| is_its(user));
        // Of equal ones the last name decides, wherever a reload has put it.
        let best = its.max_by_key(|(_, user)| (rank(user), &*user.name));
        best.map(|(place, _)| place)
    }

    /// Limit of an account of the server. Of several users with the same account the lowest counts.
    pub(crate) fn account_max(
        &self,
        account: &str,
        limit: fn(&Limits) -> Option<usize>,
    ) -> Option<usize> {
        let is_its = |user: &&User| user.origin == Origin::Settings && user.backend_user == account;
        let mut listed = self.users.iter().filter(is_its).peekable();
        let of_server = match listed.peek() {
            Some(_) => None,
            None => self.server_account(account).map(|place| &self.users[place]),
        };
        let limits = listed.chain(of_server).map(|user| limit(&user.limits));
        limits.flatten().min()
    }

    /// Name and password of the account that asks what the server is, before the pool serves. In a
    /// fleet others may have all connections of a user's.
    pub(crate) fn first_account(&self) -> (String, Secret) {
        let of_settings = |user: &&User| user.origin == Origin::Settings && self.fleet.is_none();
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
            members: Vec::new(),
            cluster: Keys::of("cluster."),
            fleet: Keys::of("fleet."),
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
        let mut mistakes = Mistakes::default();
        let raw = File { text, name: None }.read(&mut mistakes);
        mistakes.result(raw)
    }

    /// Reads a configuration file, or a pipe. Its name stands in front of each error, which is
    /// noted; what can be used is read all the same.
    pub(crate) fn read(path: &Path, mistakes: &mut Mistakes) -> Option<Raw> {
        Raw::of_file(path, files::text_once(path, FILE_BYTES_MAX), mistakes)
    }

    /// Reads the file while the pool serves: it must be a regular file.
    pub(crate) fn read_again(path: &Path, mistakes: &mut Mistakes) -> Option<Raw> {
        Raw::of_file(path, files::text(path, FILE_BYTES_MAX), mistakes)
    }

    fn of_file(path: &Path, text: Result<String, Unread>, mistakes: &mut Mistakes) -> Option<Raw> {
        let name = path.display().to_string();
        let text = mistakes.note(text.map_err(|why| format!("--config {name}: {why}")))?;
        let file = File {
            text: &text,
            name: Some(name.into()),
        };
        file.read(mistakes)
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

    /// Puts another value in place of what is written of a limit of a user; none puts back what was
    /// written. An account of the server gets an entry of its own, with the limits that it has.
    ///
    /// # Errors
    /// A sentence that says what was expected.
    pub(crate) fn change_limit(&mut self, limit: &UserLimit) -> Result<(), String> {
        let UserLimit { user, name, value } = limit;
        let Some(row) = limit_rows().find(|row| row.key == name) else {
            let names: Vec<&str> = limit_rows().map(|row| row.key).collect();
            return Err(format!(
                "expected one of {}, got '{name}'",
                names.join(", ")
            ));
        };
        let value = match value {
            None => None,
            Some(text) if row.is_default_shown(text) => Some(None),
            Some(text) => {
                let wrong = || format!("{name}: expected {}, got '{text}'", row.expected());
                Some(Some((row.value_from(text).ok_or_else(wrong)?, At::Console)))
            }
        };
        let place = match self.place_of_user(user) {
            Some(place) => place,
            None => self.add_account(user)?,
        };
        match value {
            Some(value) => self.users[place].replace(row.key, value),
            None => self.users[place].put_back(row.key),
        }
        Ok(())
    }

    fn place_of_user(&self, name: &str) -> Option<usize> {
        let is_pattern =
            |keys: &Keys| matches!(keys.get("auth"), Some(Value::Text(auth)) if auth == "server");
        let own = like_itself(name);
        let is_its = |keys: &Keys| {
            let wanted = if is_pattern(keys) { &own } else { name };
            matches!(keys.get("name"), Some(Value::Text(written)) if written == wanted)
        };
        self.users.iter().position(is_its)
    }

    /// True if the entry of a user is the one whose limits hold for it.
    pub(crate) fn holds_for(&self, name: &str, settings: &Settings) -> bool {
        let place = self.place_of_user(name);
        let user = place.and_then(|place| settings.users.get(place));
        let is_pattern = user.is_some_and(|user| user.origin == Origin::Server);
        !is_pattern || settings.server_account(name) == place
    }

    /// Adds an entry for an account of the server, with the limits that it has by its name.
    fn add_account(&mut self, name: &str) -> Result<usize, String> {
        let settings = self.clone().check()?;
        let unknown = || format!("there is no [[user]] named '{name}'");
        let before = settings.server_account(name).ok_or_else(unknown)?;
        let mut keys = match self.users.get(before) {
            Some(keys) => keys.clone(),
            None => Keys::of(&format!("user '{name}': ")),
        };
        keys.set("name", Value::Text(like_itself(name)), At::Console);
        keys.set("auth", Value::Text("server".into()), At::Console);
        self.users.push(keys);
        Ok(self.users.len() - 1)
    }

    /// True where the file holds passwords, or hashes of them.
    pub(crate) fn holds_secrets(&self) -> bool {
        let holds = |keys: &Keys, name| match keys.get(name) {
            Some(Value::Secret(secret)) => !secret.is_empty(),
            Some(Value::Secrets(_)) => true,
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
            (Table::Cluster, &self.cluster),
            (Table::Fleet, &self.fleet),
            (Table::Tls, &self.tls),
            (Table::Console, &self.console),
            (Table::Otel, &self.otel),
        ] {
            shown.extend(table.rows().map(|row| {
                let written = keys.shown(row);
                let default = row.default_plain();
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
        let members = self.members.iter().map(|keys| (Table::Member, keys));
        let users = self.users.iter().map(|keys| (Table::User, keys));
        for (table, keys) in members.chain(users) {
            let written = |row: &'static Row| Some((row, keys.shown(row)?));
            shown.extend(
                table
                    .rows()
                    .filter_map(written)
                    .map(|(row, (value, place))| ShownSetting {
                        name: keys.name_of(row.key),
                        value,
                        default: row.default_shown(),
                        place: Some(place),
                        is_fixed: row.is_fixed,
                        of_user: table == Table::User,
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
        let mut mistakes = Mistakes::default();
        let settings = self.check_all(&mut mistakes);
        mistakes.result(settings)
    }

    /// Checks every value, notes every mistake, and works out the defaults. What several values
    /// have to do with each other is judged where each of them can be used.
    pub(crate) fn check_all(self, mistakes: &mut Mistakes) -> Option<Settings> {
        let shown = self.shown();
        let mut warnings = self.warnings;
        let server = mistakes.section(
            ServerKeys::note_mistakes,
            ServerKeys::from_keys,
            &self.server,
            None,
        );
        let server = server.and_then(|mut server| {
            let place = check_place(server.address.take(), !self.members.is_empty());
            let place = mistakes.note(place.map_err(|error| self.server.placed(error)));
            let monitor = check_monitor(&mut server, &mut warnings);
            let monitor = mistakes.note(monitor.map_err(|error| self.server.placed(error)))?;
            Some((server, place?, monitor))
        });
        let auth = mistakes.note(rows::account_source(&self.top));
        let from_server = auth == Some(AccountSource::Server);
        if self.users.is_empty() && auth == Some(AccountSource::File) {
            mistakes.add(
                "user: expected at least one [[user]] with name and password, or auth = \
                        \"server\""
                    .into(),
            );
        }
        if from_server && matches!(server, Some((_, _, None))) {
            mistakes.add(self.top.placed(
                "auth: \"server\" expects monitor_user and monitor_password below [backend]: the \
                 account that reads the server's accounts (docs/pool/accounts.md)",
            ));
        }
        let mut users: Vec<User> = Vec::with_capacity(self.users.len());
        for keys in &self.users {
            let Some(user) = check_user(keys, &self.top, &mut warnings, mistakes) else {
                continue;
            };
            if users.iter().any(|other| other.name == user.name) {
                let why = keys.placed(keys.name_of("name: it is listed twice"));
                mistakes.add(why);
            }
            users.push(user);
        }
        let all_users = users.len() == self.users.len();
        if from_server {
            users.extend(mistakes.note(server_accounts(&self.top)));
        }
        let tls = mistakes.section(TlsKeys::note_mistakes, TlsKeys::from_keys, &self.tls, None);
        let tls = tls.and_then(|tls| {
            let is_auto = matches!(tls.mode, None | Some(TlsMode::Auto));
            let keys = ClientTlsKeys {
                mode: tls.mode,
                cert: tls.cert,
                key: tls.key,
                client_ca: tls.client_ca,
                client_cert: tls.client_cert,
            };
            let tls = ClientTls::of(keys, &mut warnings);
            let tls = mistakes.note(tls.map_err(|error| self.tls.placed(error)))?;
            Some((tls.map(Arc::new), is_auto))
        });
        if let Some((tls, _)) = &tls
            && all_users
        {
            mistakes.note(check_requirements(&self.users, &users, tls.as_deref()));
        }
        let mut cluster = check_cluster(&self.members, &self.cluster, mistakes);
        let fleet = check_fleet(&self.fleet, mistakes);
        let server = server.and_then(|(server, place, monitor)| {
            let tls = check_server_tls(
                &self.server,
                &place,
                &self.members,
                cluster.as_mut().and_then(Option::as_mut),
                &mut warnings,
                mistakes,
            )?;
            Some((place, monitor, tls, server.proxy_protocol))
        });
        let console = mistakes.section(
            ConsoleKeys::note_mistakes,
            ConsoleKeys::from_keys,
            &self.console,
            None,
        );
        let console = console.and_then(|console| {
            let console = check_console(console, &mut warnings);
            mistakes.note(console.map_err(|error| self.console.placed(error)))
        });
        let http_token = mistakes.note(check_http_token(&self.top, &mut warnings));
        let otel = mistakes.section(
            OtelKeys::note_mistakes,
            OtelKeys::from_keys,
            &self.otel,
            None,
        );
        let otel = otel.and_then(|otel| {
            mistakes.note(check_otel(otel).map_err(|error| self.otel.placed(error)))
        });
        Settings::note_mistakes(&self.top, None, &mut |why| mistakes.add(why));
        let (address, monitor, backend_tls, proxy_protocol) = server?;
        let (tls, tls_auto) = tls?;
        let spool_folder_given = self.top.get("spool_folder").is_some();
        let settings = Settings::from_keys(
            &self.top,
            None,
            address,
            cluster?,
            fleet?,
            monitor,
            users,
            tls,
            tls_auto,
            backend_tls,
            proxy_protocol,
            console?,
            http_token?,
            otel?,
            shown,
            spool_folder_given,
            warnings,
        );
        let mut settings = mistakes.note(settings)?;
        let members = settings.cluster.iter().flat_map(|cluster| &cluster.places);
        for place in members.chain([&settings.backend]) {
            if settings.listen.iter().any(|at| place.is(at)) {
                mistakes.add(self.server.placed(format!(
                    "backend.address: {place} is also in listen; the pool would be its own server"
                )));
            }
        }
        let mut note = |checked: Result<(), String>| {
            mistakes.note(checked.map_err(|error| self.top.placed(error)));
        };
        note(check_units(&settings));
        note(check_reads(&settings));
        note(check_listen(&settings.listen));
        note(check_run_as(&settings));
        if self.top.get("backends_max").is_none() {
            let least = settings.clients_max.div_ceil(CLIENTS_PER_BACKEND);
            settings.backends_max = settings.backends_max.max(least);
        }
        let is_given = |key| self.top.get(key).is_some();
        // A failover is waited for as a backend is.
        if settings.cluster.is_some() && !is_given("server_down_fail_ms") {
            settings.server_down_fail = settings.wait_max;
        }
        note(check_backends_min(&settings, is_given("backends_min")));
        note(check_prepared_max(&mut settings, is_given("prepared_max")));
        note_unknown_log_users(&mut settings, auth?);
        note_unshared_limits(&mut settings);
        Some(settings)
    }
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
mod tests;
