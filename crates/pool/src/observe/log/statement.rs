//! Lines about statements: the facts that have keys, and the clients whose texts are shown.
//!
//! The problem: a log of statements is read by more people than may know passwords, and some
//! statements hold one (`SET PASSWORD`, `CREATE USER ... IDENTIFIED BY`). The mechanism: a text
//! that has one of a few words anywhere, in strings and comments too, is shown without its values
//! whatever the settings say ([`may_hold_secret`]); those who name a column `password` lose its
//! values, too. Invariant: the words of the servers' own statements stand in front of the secret,
//! so the part of a text that is shown is all that has to be looked at.

use reactor::Address;
use std::time::Duration;

/// Choice of statements that are logged, and their form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementLog {
    /// No log.
    Off,
    /// Texts without values.
    Masked,
    /// Texts with values.
    Literal,
}

impl StatementLog {
    pub(crate) fn from_name(name: &str) -> Option<StatementLog> {
        match name {
            "off" => Some(StatementLog::Off),
            "masked" => Some(StatementLog::Masked),
            "literal" => Some(StatementLog::Literal),
            _ => None,
        }
    }
}

/// Words of texts that may hold a password: of accounts, of replication, of other servers.
const SECRET_WORDS: [&[u8]; 4] = [b"password", b"identified", b"passwd", b"mysql://"];

/// True if a text may hold a password.
pub(crate) fn may_hold_secret(text: &[u8]) -> bool {
    let has = |word: &&[u8]| {
        let mut windows = text.windows(word.len());
        windows.any(|window| window.eq_ignore_ascii_case(word))
    };
    SECRET_WORDS.iter().any(has)
}

/// Facts about a statement that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatementFacts<'a> {
    /// Its command.
    pub(crate) command: Option<&'static str>,
    /// The server's address, and its number of the connection on which it ran.
    pub(crate) server: Option<(&'a Address, u32)>,
    /// Time from its arrival until it was sent to the server.
    pub(crate) wait: Duration,
    /// Time from then on until the last byte of its reply.
    pub(crate) service: Duration,
    /// Rows that the server sent.
    pub(crate) rows: u64,
    /// The error, if it has failed.
    pub(crate) error: Option<u16>,
    /// Its digest, as `SHOW STATEMENTS` has it.
    pub(crate) digest: Option<u64>,
    /// The `traceparent` that its client has given.
    pub(crate) trace: Option<&'a str>,
}

impl StatementFacts<'_> {
    /// Its keys and values; those of text are in quotes in JSON.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, serde_json::Value)> {
        let ms = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        let mut pairs = Vec::with_capacity(9);
        pairs.extend(self.command.map(|command| ("command", command.into())));
        if let Some((address, thread)) = self.server {
            pairs.push(("server", address.to_string().into()));
            pairs.push(("thread", thread.into()));
        }
        pairs.extend([
            ("wait_ms", ms(self.wait).into()),
            ("service_ms", ms(self.service).into()),
            ("rows", self.rows.into()),
        ]);
        pairs.extend(self.error.map(|error| ("error", error.into())));
        let digest = self.digest.map(|digest| format!("{digest:016x}").into());
        pairs.extend(digest.map(|digest| ("digest", digest)));
        pairs.extend(self.trace.map(|trace| ("traceparent", trace.into())));
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_passwords_are_known_by_their_words() {
        for text in [
            "SET PASSWORD = 'x'",
            "set  Password/**/for u = pAssword('x')",
            "CREATE USER u IDENTIFIED BY 'x'",
            "ALTER USER u identified WITH sha256_password AS 'x'",
            "GRANT ALL ON *.* TO u IDENTIFIED BY 'x'",
            "CHANGE MASTER TO MASTER_PASSWORD='x'",
            "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD='x'",
            "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD 'x')",
            "CREATE TABLE t (a INT) CONNECTION='mysql://u:x@h/d/t'",
            "PREPARE s FROM 'SET PASSWORD = ''x'''",
            "/*!50000 ALTER USER u IDENTIFIED BY 'x' */",
        ] {
            assert!(may_hold_secret(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "SELECT 1",
            "SELECT pass, word FROM t",
            "SELECT 'PASSWOR'",
        ] {
            assert!(!may_hold_secret(text.as_bytes()), "{text}");
        }
    }
}
