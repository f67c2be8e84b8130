//! Commands: what an administrator may ask for, and how it is read.
//!
//! A command is read here from the tokens of its text, and shown again as it is written, for the
//! log. Carrying it out, and the bounds of its numbers, are left to [`crate::Source::act`].

use super::{Asked, Reader, unquoted};
use crate::answer::Wrong;
use sql::lex::Kind;
use std::fmt;

/// Word in place of a value: what the file of the settings says, or the default.
pub(super) const DEFAULT: &str = "DEFAULT";

/// Actions that an administrator can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `PAUSE`: statements wait from now on.
    Pause,
    /// `RESUME`: they go on.
    Resume,
    /// `DRAIN`: no new clients, and the end when those that are there have left.
    Drain,
    /// `SHUTDOWN`: the end, at once.
    Shutdown,
    /// `KILL [CONNECTION] ID`, `KILL QUERY ID`.
    Kill {
        /// The client's id.
        id: u64,
        /// Its statement only.
        query: bool,
    },
    /// `KILL [QUERY] USER 'NAME'`, `KILL [QUERY] ADDRESS 'IP'`, `KILL IDLE TRANSACTIONS OLDER THAN
    /// S`.
    KillAll {
        /// The clients.
        victims: Victims,
        /// Their statements only.
        query: bool,
    },
    /// `REJECT DIGEST 'D' [WITH 'MESSAGE'] [FOR S]`.
    Reject {
        /// The digest, or its beginning.
        digest: String,
        /// The message to clients.
        message: String,
        /// Seconds until the rule ends.
        seconds: Option<u64>,
    },
    /// `LIMIT DIGEST 'D' TO N [FOR S]`.
    Limit {
        /// The digest, or its beginning.
        digest: String,
        /// Statements at once.
        max: u64,
        /// Seconds until the rule ends.
        seconds: Option<u64>,
    },
    /// `ALLOW DIGEST 'D'`.
    Allow {
        /// The digest, or its beginning.
        digest: String,
    },
    /// `SET USER 'NAME' LIMIT KEY = VALUE`.
    UserLimit {
        /// The user's name.
        user: String,
        /// The key of the limit.
        name: String,
        /// Value, without quotes; none is `DEFAULT`.
        value: Option<String>,
    },
    /// `RECONNECT`: connections to the server are opened anew, each when it is free.
    Reconnect,
    /// `SWITCH TO NAME`: another of several servers is to be written to.
    SwitchTo(String),
    /// `EXPLAIN ROUTE STATEMENT`: the server that a client's statement would go to.
    Route(String),
    /// `FENCED NAME`: a server takes no writes, however it looks.
    Fenced(String),
    /// `UNFENCED NAME`: takes that back.
    Unfenced(String),
    /// `RELOAD`: the configuration is read again.
    Reload,
    /// `SET NAME = VALUE` of a setting.
    Set {
        /// The setting's name.
        name: String,
        /// Value behind it, without quotes; none is `DEFAULT`.
        value: Option<String>,
    },
}

/// Clients that a command ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Victims {
    /// Clients of an account.
    User(String),
    /// Clients from an address or a network.
    Address(String),
    /// Clients that have run nothing for so many seconds in an open transaction.
    IdleTransactions(u64),
}

impl fmt::Display for Victims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Victims::User(name) => write!(f, "USER '{name}'"),
            Victims::Address(address) => write!(f, "ADDRESS '{address}'"),
            Victims::IdleTransactions(seconds) => {
                write!(f, "IDLE TRANSACTIONS OLDER THAN {seconds}")
            }
        }
    }
}

/// The end of a rule, as it is written.
fn fmt_for(f: &mut fmt::Formatter<'_>, seconds: Option<u64>) -> fmt::Result {
    seconds.map_or(Ok(()), |seconds| write!(f, " FOR {seconds}"))
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::KillAll { victims, query } => {
                write!(f, "KILL {}{victims}", if *query { "QUERY " } else { "" })
            }
            Action::Reject {
                digest,
                message,
                seconds,
            } => {
                write!(f, "REJECT DIGEST '{digest}'")?;
                if !message.is_empty() {
                    write!(f, " WITH '{message}'")?;
                }
                fmt_for(f, *seconds)
            }
            Action::Limit {
                digest,
                max,
                seconds,
            } => {
                write!(f, "LIMIT DIGEST '{digest}' TO {max}")?;
                fmt_for(f, *seconds)
            }
            Action::Allow { digest } => write!(f, "ALLOW DIGEST '{digest}'"),
            Action::UserLimit { user, name, value } => {
                let value = value.as_deref().unwrap_or(DEFAULT);
                write!(f, "SET USER '{user}' LIMIT {name} = {value}")
            }
            Action::Pause => f.write_str("PAUSE"),
            Action::Resume => f.write_str("RESUME"),
            Action::Drain => f.write_str("DRAIN"),
            Action::Shutdown => f.write_str("SHUTDOWN"),
            Action::Kill { id, query: false } => write!(f, "KILL {id}"),
            Action::Kill { id, query: true } => write!(f, "KILL QUERY {id}"),
            Action::Reconnect => f.write_str("RECONNECT"),
            Action::SwitchTo(name) => write!(f, "SWITCH TO {name}"),
            // Its values may be a secret.
            Action::Route(_) => f.write_str("EXPLAIN ROUTE ..."),
            Action::Fenced(name) => write!(f, "FENCED {name}"),
            Action::Unfenced(name) => write!(f, "UNFENCED {name}"),
            Action::Reload => f.write_str("RELOAD"),
            // What is refused is logged all the same.
            Action::Set { name, .. } if name.contains("password") => write!(f, "SET {name} = ***"),
            Action::Set { name, value } => {
                write!(f, "SET {name} = {}", value.as_deref().unwrap_or(DEFAULT))
            }
        }
    }
}

impl Reader<'_> {
    /// The text in quotes at this token; a name may stand without.
    fn quoted_at(&self, at: usize, what: &str, or_word: bool) -> Result<String, Wrong> {
        match self.tokens.get(at) {
            Some(token) if token.kind == Kind::String => {
                Ok(unquoted(&self.text[token.start..token.end]))
            }
            Some(token) if or_word && token.kind == Kind::Word => Ok(self.text_of(at).to_owned()),
            _ => Err(Wrong::syntax(format!(
                "expected {what} in quotes, got '{}'",
                self.text_of(at)
            ))),
        }
    }

    fn number_at(&self, at: usize, what: &str) -> Result<u64, Wrong> {
        self.text_of(at)
            .parse()
            .map_err(|_| Wrong::syntax(format!("expected {what}, got '{}'", self.text_of(at))))
    }

    fn expect(&self, at: usize, words: &[&str]) -> Result<usize, Wrong> {
        for (number, word) in words.iter().enumerate() {
            if !self.is(at + number, word) {
                let (rest, got) = (words[number..].join(" "), self.text_of(at + number));
                return Err(Wrong::syntax(format!("expected {rest}, got '{got}'")));
            }
        }
        Ok(at + words.len())
    }

    pub(super) fn kill(&self) -> Result<Asked, Wrong> {
        let query = self.is(1, "QUERY");
        let at = 1 + usize::from(query || self.is(1, "CONNECTION"));
        let (victims, end) = match self.text_of(at).to_ascii_uppercase().as_str() {
            "USER" => {
                let name = self.quoted_at(at + 1, "the name of a user", true)?;
                (Victims::User(name), at + 2)
            }
            "ADDRESS" => {
                let address = self.quoted_at(at + 1, "an address or a network", false)?;
                (Victims::Address(address), at + 2)
            }
            "IDLE" if at == 1 => {
                let at = self.expect(at + 1, &["TRANSACTIONS", "OLDER", "THAN"])?;
                let seconds = self.number_at(at, "a number of seconds")?;
                (Victims::IdleTransactions(seconds), at + 1)
            }
            _ => {
                self.ends(at + 1)?;
                let id = self.number_at(at, "the number of a client (SHOW CLIENTS)")?;
                return Ok(Asked::Act(Action::Kill { id, query }));
            }
        };
        self.ends(end)?;
        Ok(Asked::Act(Action::KillAll { victims, query }))
    }

    /// REJECT, LIMIT and ALLOW of a digest.
    pub(super) fn rule(&self) -> Result<Asked, Wrong> {
        let mut at = self.expect(1, &["DIGEST"])?;
        let digest = self.quoted_at(at, "a digest (SHOW STATEMENTS, SHOW RUNNING)", false)?;
        at += 1;
        let (mut message, mut max) = (String::new(), 0);
        match self.text_of(0).to_ascii_uppercase().as_str() {
            "LIMIT" => {
                at = self.expect(at, &["TO"])?;
                max = self.number_at(at, "a number of statements")?;
                at += 1;
            }
            "ALLOW" => {
                self.ends(at)?;
                return Ok(Asked::Act(Action::Allow { digest }));
            }
            _ if self.is(at, "WITH") => {
                message = self.quoted_at(at + 1, "a message", false)?;
                at += 2;
            }
            _ => {}
        }
        let mut seconds = None;
        if self.is(at, "FOR") {
            seconds = Some(self.number_at(at + 1, "a number of seconds")?);
            at += 2;
        }
        self.ends(at)?;
        Ok(Asked::Act(match self.is(0, "LIMIT") {
            true => Action::Limit {
                digest,
                max,
                seconds,
            },
            false => Action::Reject {
                digest,
                message,
                seconds,
            },
        }))
    }

    /// SET USER: a limit of one user.
    pub(super) fn user_limit(&self) -> Result<Asked, Wrong> {
        let user = self.quoted_at(2, "the name of a user", true)?;
        let at = self.expect(3, &["LIMIT"])?;
        let name = self.text_of(at).to_ascii_lowercase();
        let (value, end) = self.assigned(&name, at + 1)?;
        self.ends(end)?;
        Ok(Asked::Act(Action::UserLimit { user, name, value }))
    }
}
