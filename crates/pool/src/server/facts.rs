//! Facts of the server.
//!
//! [`crate::server::probe`] asks for it once, before the pool serves; afterwards all groups share
//! it and none changes it. What may change while the pool runs is in
//! [`crate::server::globals`].

use session::state::Session;
use session::text::Text;
use sql::lex::{LexMode, Server};
use sql::tracking::Tracked;
use std::collections::HashMap;
use std::time::Duration;
use wire::capabilities::{IGNORE_SPACE, INTERACTIVE, NO_SCHEMA};

/// Facts that the server told of itself before the pool began to serve.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// Its version, mirrored in our greeting.
    pub version: String,
    /// The collation in its greeting, mirrored in ours: some drivers (PHP's) speak its character
    /// set unless they are told another.
    pub collation: u8,
    /// Its capabilities.
    pub capabilities: u32,
    /// MariaDB's extended ones.
    pub extended: u32,
    /// Longest statement it takes, in bytes.
    pub max_allowed_packet: usize,
    /// Character sets of a client that logs in with a collation id (below 256), or changes its user
    /// with one, in the order of [`session::state::CHARSET_VARIABLES`].
    pub charsets: HashMap<u16, [Text; 4]>,
    /// True if it heeds them; or gives each client its defaults
    /// (`skip_character_set_client_handshake`).
    pub heeds_collations: bool,
    /// Character sets that no client may speak, by the collations that mean them.
    pub refused_charsets: HashMap<u16, Text>,
    /// Character sets for an id that the server does not know or heed, and after a reset.
    pub default_charsets: [Text; 4],
    /// The number of the collation in which results are described then, if it is known.
    pub default_results: Option<u16>,
    /// Trackers that a client with CLIENT_SESSION_TRACK receives.
    pub trackers: Tracked,
    /// True if it names clients by host name where it can, not by address (`skip_name_resolve` is
    /// off).
    pub names_hosts: bool,
    /// Conditions that a fresh session keeps (`max_error_count`).
    pub conditions_max: u32,
    /// `sql_mode` of a fresh session.
    pub sql_mode: String,
    /// Its global timeouts.
    pub timeouts: ServerTimeouts,
    /// Product of the server: its own functions differ, for reading statements.
    pub flavour: Server,
    /// A session that is reset loses the SQL layer's foreign keys: its cascades write no rows to
    /// the binary log and fire no triggers (MySQL 9.7 with `innodb_native_foreign_keys` off, also
    /// behind COM_CHANGE_USER).
    pub reset_loses_foreign_keys: bool,
}

#[cfg(test)]
impl ServerFacts {
    /// A MariaDB as most are.
    pub(crate) fn of_tests() -> ServerFacts {
        let default_charsets: [Text; 4] = ["utf8mb4"; 4].map(|name| name.as_bytes().into());
        ServerFacts {
            version: "11.4.0-MariaDB".into(),
            collation: 45,
            capabilities: 0,
            extended: 0,
            max_allowed_packet: 1 << 20,
            charsets: HashMap::new(),
            heeds_collations: true,
            refused_charsets: HashMap::new(),
            default_charsets,
            default_results: None,
            trackers: Tracked {
                variables: b"*"[..].into(),
                wanted: wire::track::Wanted::from_setting("*", true),
            },
            names_hosts: false,
            conditions_max: 64,
            sql_mode: String::new(),
            timeouts: ServerTimeouts::default(),
            flavour: Server::MariaDb(110_400),
            reset_loses_foreign_keys: false,
        }
    }
}

impl ServerFacts {
    /// Its version as it is shown; clients are greeted with what it has said.
    pub(crate) fn version_shown(&self) -> &str {
        wire::handshake::own_version(&self.version)
    }

    /// The character sets of a client that logs in with this collation, and the collation
    /// in which its results are described, as it is restored.
    #[must_use]
    pub fn charsets_at_login(&self, collation: u16) -> (&[Text; 4], Option<Text>) {
        let named = self.charsets.get(&collation);
        match named.filter(|_| self.heeds_collations) {
            Some(charsets) => (charsets, self.results_in(Some(collation))),
            None => self.usual_charsets(),
        }
    }

    /// Character sets for a client that names no collation.
    #[must_use]
    pub fn usual_charsets(&self) -> (&[Text; 4], Option<Text>) {
        (
            &self.default_charsets,
            self.results_in(self.default_results),
        )
    }

    /// Text that restores a collation in which results are described, where it can be: MySQL takes
    /// its number as a value of `character_set_results`; MariaDB takes only those of default
    /// collations there, and its name in SET NAMES.
    #[must_use]
    pub(crate) fn results_in(&self, collation: Option<u16>) -> Option<Text> {
        let number = collation?;
        if self.flavour.is_mysql() {
            return Some(number.to_string().into_bytes().into());
        }
        let [.., name] = self.charsets.get(&number)?;
        Some(name.clone())
    }

    /// Text that restores it by a collation's name, where a login or a change of user can choose
    /// it.
    #[must_use]
    pub(crate) fn results_by_name(&self, collation: &[u8]) -> Option<Text> {
        let is_it = |(_, [.., name]): &(&u16, &[Text; 4])| **name == *collation;
        let (number, _) = self.charsets.iter().find(is_it)?;
        self.results_in(Some(*number))
    }

    /// Mode in which the texts of a session are cut, of a client with these capabilities.
    pub(crate) fn lex_mode(&self, session: &Session, capabilities: u32) -> LexMode {
        let mode = session.lex_mode(&self.sql_mode, self.flavour);
        LexMode {
            ignore_space: mode.ignore_space || capabilities & IGNORE_SPACE != 0,
            no_schema: capabilities & NO_SCHEMA != 0,
            ..mode
        }
    }

    /// The character sets after COM_RESET_CONNECTION: MariaDB goes back to those of the login
    /// (seen on 10.11), MySQL to the global ones (its manual).
    #[must_use]
    pub fn charsets_after_reset(&self, collation: u16) -> (&[Text; 4], Option<Text>) {
        match self.flavour {
            Server::MySql(_) => self.usual_charsets(),
            _ => self.charsets_at_login(collation),
        }
    }
}

/// The server's global timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTimeouts {
    /// `wait_timeout`.
    pub wait: Duration,
    /// `interactive_timeout`.
    pub interactive: Duration,
    /// `net_read_timeout`.
    pub read: Duration,
    /// `net_write_timeout`.
    pub write: Duration,
}

impl Default for ServerTimeouts {
    /// Values that servers come with.
    fn default() -> ServerTimeouts {
        ServerTimeouts {
            wait: Duration::from_secs(28_800),
            interactive: Duration::from_secs(28_800),
            read: Duration::from_secs(30),
            write: Duration::from_secs(60),
        }
    }
}

impl ServerTimeouts {
    /// `wait_timeout` of a session with these capabilities.
    pub(crate) fn wait_of(&self, session: &Session, capabilities: u32) -> Duration {
        let (name, usual) = match capabilities & INTERACTIVE {
            0 => ("wait_timeout", self.wait),
            _ => ("interactive_timeout", self.interactive),
        };
        let own = session.variable(b"wait_timeout").and_then(seconds);
        own.or_else(|| session.defaults.value(name.as_bytes()).and_then(seconds))
            .unwrap_or(usual)
    }
}

/// A number of seconds, as the server writes it.
pub(crate) fn seconds(value: &[u8]) -> Option<Duration> {
    let value = std::str::from_utf8(value).ok()?;
    Some(Duration::from_secs(value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_the_values_that_it_has_set_and_the_servers_else() {
        let timeouts = ServerTimeouts {
            wait: Duration::from_secs(10),
            interactive: Duration::from_secs(20),
            ..ServerTimeouts::default()
        };
        let mut session = Session::default();
        assert_eq!(timeouts.wait_of(&session, 0).as_secs(), 10);
        assert_eq!(timeouts.wait_of(&session, INTERACTIVE).as_secs(), 20);
        session.set(b"wait_timeout", b"7").unwrap();
        assert_eq!(timeouts.wait_of(&session, 0).as_secs(), 7);
        assert_eq!(timeouts.wait_of(&session, INTERACTIVE).as_secs(), 7);
        assert_eq!(seconds(b"nonsense"), None);
    }
}
