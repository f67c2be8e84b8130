//! The backend's login: ours, on a server, and what is said before the first statement.
//!
//! The exchange is `wire`'s; [`Dial`] gives it the account of a pool key, and tells what of
//! its errors means that the account must be put right first. After the server's OK the pool
//! switches on the session trackers and reads back what a fresh session looks like, in one write.
//!
//! Invariant: a server that lacks what the pool builds on (trackers, CLIENT_DEPRECATE_EOF), or what
//! a client of this key was offered (query attributes), is refused at its greeting, with the
//! missing capability's name. With TLS ([`crate::server::tls`]) nothing follows the
//! greeting in clear but the request for it.

use crate::auth::credential::Credential;
use crate::backend::pools::PoolKey;
use crate::server::tls::{Asking, BackendTls, Security};
use reactor::{Address, Tls};
use std::io;
use std::sync::Arc;
use wire::attributes::{Form, put_query};
use wire::capabilities::{BACKEND_ALWAYS, BACKEND_REQUIRED, CONNECT_ATTRS, QUERY_ATTRIBUTES, SSL};
use wire::client_login::{Account, COLLATION, ClientLogin, LoginError, Progress, put_tls_request};
use wire::command::Command;
use wire::handshake::Greeting;
use wire::packet::put_short;

/// Switches on every tracker that the pool reads.
pub(crate) const TRACKERS: &str = "SET session_track_system_variables='*',session_track_schema=ON,\
     session_track_state_change=ON,session_track_transaction_info='CHARACTERISTICS'";

/// Question about a fresh session: [`session::state::CHARSET_VARIABLES`], in their order, and
/// `autocommit`, which MySQL 9.7 does not tell by the flag in its status.
pub(crate) const FRESH: &str = "SELECT @@character_set_client,@@character_set_connection,\
     IFNULL(@@character_set_results,''),@@collation_connection,@@autocommit";

/// The role of a fresh session, asked behind it where the server has roles.
pub(crate) const ROLE: &str = ",CURRENT_ROLE()";

/// Step that follows a packet of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DialStep {
    /// Bytes to send; another packet follows.
    Send(Vec<u8>),
    /// Bytes to send, behind which TLS begins, whatever comes next; [`Dial::secured`] when it
    /// stands.
    BeginTls(Vec<u8>),
    /// Nothing to do; another packet follows.
    Wait,
    /// Logged in.
    In,
    /// Request of the server for what is not known of the account's password; a sentence.
    PasswordUnknown(String),
    /// Refusal of a server with as many connections of the account as it takes; a sentence.
    AccountFull(String),
    /// Failure; a sentence, and whether the account is refused (so that trying again soon is of no
    /// use).
    Failed(String, bool),
}

/// One login on a server.
#[derive(Debug)]
pub(crate) struct Dial {
    login: ClientLogin,
    secure: bool,
    security: Security,
    tls: Option<Arc<BackendTls>>,
    /// Bytes that the connection begins with, until they have been sent: a PROXY header, or
    /// nothing.
    header: Vec<u8>,
    /// The greeting that is answered once TLS stands, and the number of the request for it.
    greeted: Option<(u8, Vec<u8>)>,
    /// The server's number of this connection, once it has greeted.
    pub(crate) thread: Option<u32>,
}

impl Dial {
    /// A login about to begin. `secure`: nobody can listen in (a Unix socket).
    #[must_use]
    pub(crate) fn new(secure: bool, security: Security) -> Dial {
        Dial {
            login: ClientLogin::new(),
            secure,
            security,
            tls: None,
            header: Vec::new(),
            greeted: None,
            thread: None,
        }
    }

    /// A login at this address, with TLS as the server there has it.
    #[must_use]
    pub(crate) fn at(at: &Address, tls: Option<Arc<BackendTls>>) -> Dial {
        let security = Security::of(tls.as_deref(), at);
        Dial {
            tls,
            ..Dial::new(matches!(at, Address::Unix(_)), security)
        }
    }

    /// TLS as the server has it.
    pub(crate) fn tls(&self) -> Option<&BackendTls> {
        self.tls.as_deref()
    }

    /// The pool's side of TLS, in front of its handshake.
    pub(crate) fn begin_tls(&self) -> io::Result<Tls> {
        let tls = self.tls.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        tls.begin()
    }

    /// A dial with these bytes in front of everything.
    #[must_use]
    pub(crate) fn behind(self, header: Vec<u8>) -> Dial {
        Dial { header, ..self }
    }

    /// Bytes that go out as soon as the connection is there: once, and mostly none.
    #[must_use]
    pub(crate) fn take_header(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.header)
    }

    /// Takes the server's next packet, numbered `seq`.
    #[must_use]
    pub(crate) fn packet(&mut self, key: &PoolKey, payload: &[u8], seq: u8) -> DialStep {
        let account = account_of(key, self.secure, &self.security);
        if self.thread.is_none()
            && let Ok(greeting) = Greeting::read(payload)
        {
            self.thread = Some(greeting.connection_id);
            let mut request = Vec::new();
            if self.security.asking != Asking::Off
                && put_tls_request(account.first(), seq, payload, &mut request) == Ok(true)
            {
                self.greeted = Some((seq.wrapping_add(1), payload.to_vec()));
                return DialStep::BeginTls(request);
            }
        }
        if self.greeted.is_some() {
            let why = "the server spoke under TLS before it was answered";
            return DialStep::Failed(why.into(), false);
        }
        let mut out = Vec::new();
        let step = self.login.on_packet(&account, seq, payload, &mut out);
        self.step(step, out, key)
    }

    /// Answers the greeting under the established TLS. `None` where that has been answered, or is
    /// to come.
    #[must_use]
    pub(crate) fn secured(&mut self, key: &PoolKey) -> Option<DialStep> {
        let (seq, greeting) = self.greeted.take()?;
        let account = account_of(key, self.secure, &self.security);
        let mut out = Vec::new();
        let step = self.login.on_packet(&account, seq, &greeting, &mut out);
        Some(self.step(step, out, key))
    }

    fn step(&self, step: Result<Progress, LoginError>, out: Vec<u8>, key: &PoolKey) -> DialStep {
        let asking = self.security.asking;
        match step {
            Ok(Progress::Done) => DialStep::In,
            Ok(Progress::Waits) if out.is_empty() => DialStep::Wait,
            Ok(Progress::Waits) => DialStep::Send(out),
            Err(error @ LoginError::PasswordUnknown(_)) => {
                DialStep::PasswordUnknown(words(&error, key, asking))
            }
            Err(error) if is_account_full(&error) => {
                DialStep::AccountFull(words(&error, key, asking))
            }
            Err(error) => {
                let (why, lasting) = refusal(&error, key, asking);
                DialStep::Failed(why, lasting)
            }
        }
    }
}

/// Account with which a connection of this key logs in. `secure`: nobody can listen in (a Unix
/// socket).
pub(crate) fn account_of<'a>(
    key: &'a PoolKey,
    secure: bool,
    security: &'a Security,
) -> Account<'a> {
    let offered = key.capabilities & QUERY_ATTRIBUTES;
    let (wanted_tls, required_tls) = match security.asking {
        Asking::Off => (0, 0),
        Asking::Preferred => (SSL, 0),
        Asking::Required => (SSL, SSL),
    };
    Account {
        user: key.user.as_bytes(),
        credential: key.credential.as_wire(),
        schema: b"",
        private: secure,
        wanted: BACKEND_ALWAYS | key.capabilities | CONNECT_ATTRS | wanted_tls,
        extended: key.extended,
        required: (BACKEND_REQUIRED.iter()).fold(offered | required_tls, |all, (bit, _)| all | bit),
        collation: COLLATION,
        server_key: security.key.as_wire(),
    }
}

/// Reason why a login failed, and whether the account or the server has to be put right first.
pub(crate) fn refusal(error: &LoginError, key: &PoolKey, asking: Asking) -> (String, bool) {
    (words(error, key, asking), needs_repair(error))
}

/// True if the account or the server must be put right before another attempt can do better.
fn needs_repair(error: &LoginError) -> bool {
    match error {
        LoginError::Lacks { .. }
        | LoginError::Plugin(_)
        | LoginError::PasswordUnknown(_)
        | LoginError::Unprotected => true,
        // Access denied, no such plugin, host not allowed, password expired, TLS required; locked:
        // 3118 is MySQL's, 4151 MariaDB's.
        LoginError::Refused { code, .. } => {
            matches!(
                code,
                1045 | 1130 | 1251 | 1524 | 1698 | 1820 | 1862 | 3118 | 3159 | 4151
            )
        }
        _ => false,
    }
}

/// True for the errors of MAX_USER_CONNECTIONS of an account and `max_user_connections` of the
/// server. Limits by the hour have the first one's number too, and closing a connection opens no
/// other under these.
fn is_account_full(error: &LoginError) -> bool {
    let LoginError::Refused { code, message, .. } = error else {
        return false;
    };
    let resource = b"max_user_connections";
    *code == 1203 || *code == 1226 && message.windows(resource.len()).any(|part| part == resource)
}

/// Hint about the password, for an account that was denied.
fn password_hint(key: &PoolKey) -> String {
    let user = &key.user;
    match &key.credential {
        Credential::Password(password) if password.is_empty() => format!(
            "the pool has no password for '{user}': give it one (password_file in the settings, or \
             ?password_file=FILE at the end of --backend)"
        ),
        Credential::Password(_) => format!(
            "look whether the pool's password for '{user}' is the account's on the server, and \
             whether the account may log in from the pool's host"
        ),
        Credential::Native(_) | Credential::CachingSha2(_) => format!(
            "the pool has the password that a client of '{user}' has shown; look whether the \
             account may log in from the pool's host"
        ),
    }
}

/// Hint for a denied login that went without TLS: an account with REQUIRE SSL or X509 is denied
/// like one whose password is wrong.
fn tls_hint(asking: Asking) -> &'static str {
    match asking {
        Asking::Off => {
            "; if the account requires TLS (REQUIRE SSL, X509, require_secure_transport), set \
             backend.tls: the pool logs in without"
        }
        Asking::Preferred | Asking::Required => "",
    }
}

fn words(error: &LoginError, key: &PoolKey, asking: Asking) -> String {
    match error {
        LoginError::Refused { code: 1045, .. } => {
            format!("{error}; {}{}", password_hint(key), tls_hint(asking))
        }
        LoginError::Refused { code: 3159, .. } => format!("{error}{}", tls_hint(asking)),
        LoginError::PasswordUnknown(_) => format!(
            "account '{}': {error}; the server has forgotten the password (a restart, FLUSH \
             PRIVILEGES) or another plugin is asked for; the next login brings it",
            key.user
        ),
        LoginError::Unprotected => format!(
            "account '{}': {error}; let the server offer TLS and check its certificate \
             (backend.tls = \"verify_identity\"), or name the file with its public key \
             (backend.server_public_key), or have its key taken unchecked \
             (backend.get_server_public_key = true)",
            key.user
        ),
        LoginError::Plugin(_) => format!("account '{}': {error}", key.user),
        LoginError::Lacks { missing, .. } if missing.iter().any(|name| name.contains("TLS")) => {
            format!(
                "{error}: backend.tls asks for TLS; switch it on at the server (ssl_cert, \
                 ssl_key), or look who between the pool and the server takes it out of the greeting"
            )
        }
        _ => error.to_string(),
    }
}

/// Appends the commands of a fresh backend; two replies follow. `more` is asked besides.
pub(crate) fn put_preparation(out: &mut Vec<u8>, form: Form, more: &str) {
    put_query(out, form, TRACKERS.as_bytes());
    put_query(out, form, format!("{FRESH}{more}").as_bytes());
}

/// Appends the answer of nobody: used to leave politely.
pub(crate) fn put_quit(out: &mut Vec<u8>) {
    put_short(out, 0, |out| out.push(Command::Quit.byte()));
}

#[cfg(test)]
mod tests;
