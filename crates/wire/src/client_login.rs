//! The client's side of a login, without a socket: packets in, packets out.
//!
//! greeting -> login -> (another plugin? -> answer) -> (more data -> answer)* -> OK or ERR.
//! `mysql_native_password` and `caching_sha2_password` are spoken. When the latter's server has not
//! cached the user's hash it wants the password itself: in clear where nobody can listen (a Unix
//! socket, or TLS), else encrypted by the server's RSA key, which is asked for first.
//!
//! Invariants: the password goes out in clear over a Unix socket or under TLS only, and encrypted
//! only by a key that [`Account::server_key`] allows; whatever the server sends, the result is an
//! answer or a [`LoginError`] that says what was expected, within [`LOGIN_PACKETS_MAX`]. Whoever
//! logs in to a server, a million times or once, uses this: the load generator, the pool's
//! backends, the doctor.

use crate::auth::{Credential, Nonce, Plugin, caching_sha2};
use crate::capabilities as cap;
use crate::handshake::{
    AUTH_MORE, AUTH_SWITCH, AuthSwitch, Greeting, Login, ZSTD_LEVEL_USUAL, put_login_start,
};
use crate::packet::{Malformed, put_short};
use crate::reply::{ERR, ErrPacket, OK};
use std::fmt;

/// `utf8mb4_general_ci`: MySQL and MariaDB have it under the same number.
pub const COLLATION: u8 = 45;

/// Packets of a server in one login: a greeting, a switch, a key, a verdict, and as many again.
pub const LOGIN_PACKETS_MAX: u8 = 10;

/// The RSA key that encrypts a password for a server that wants the password itself, on a
/// connection that others can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKey<'a> {
    /// The one that the server sends, unchecked: whoever answers in its place reads the password.
    Sent,
    /// Certificate that must be shown, as PEM.
    Pinned(&'a [u8]),
    /// None: the password is not sent.
    None,
}

/// Account and parameters of a login.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    /// The user's name.
    pub user: &'a [u8],
    /// The account's proof.
    pub credential: Credential<'a>,
    /// The default schema; empty for none.
    pub schema: &'a [u8],
    /// True where nobody can listen (a Unix socket): the password may go out in clear.
    pub private: bool,
    /// Capabilities that are asked for. With CLIENT_SSL the connection is under TLS where the
    /// server offers it ([`put_tls_request`]), and nobody can listen there either. What the server
    /// does not offer is left out, but for LONG_PASSWORD: it says towards MariaDB that its extended
    /// capabilities are not in use.
    pub wanted: u32,
    /// MariaDB's extended capabilities that are asked for, as far as the server offers them; they
    /// turn LONG_PASSWORD off.
    pub extended: u32,
    /// Capabilities without which there is no login.
    pub required: u32,
    /// Collation whose character set the session begins with, where the server heeds it;
    /// [`COLLATION`] as a rule.
    pub collation: u8,
    /// The key that may encrypt the password.
    pub server_key: ServerKey<'a>,
}

impl Account<'_> {
    /// Capabilities, extended capabilities and collation that a request for TLS tells of the login
    /// behind it.
    #[must_use]
    pub fn first(&self) -> (u32, u32, u8) {
        (self.wanted, self.extended, self.collation)
    }
}

/// Effect of a packet on the login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Wait for the next packet of the server.
    Waits,
    /// Complete login.
    Done,
}

/// Reason for a failed login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginError {
    /// The server's refusal.
    Refused {
        /// The error's number.
        code: u16,
        /// Its SQL state.
        state: Vec<u8>,
        /// Its words.
        message: Vec<u8>,
    },
    /// A packet that is cut or garbled.
    Malformed(Malformed),
    /// Server that cannot do what is required.
    Lacks {
        /// Its version.
        version: String,
        /// The names of the capabilities.
        missing: Vec<&'static str>,
    },
    /// Plugin of the account that is not spoken.
    Plugin(String),
    /// Password that is not known, only a hash of it that does not serve with what the server asks
    /// for.
    PasswordUnknown(&'static str),
    /// The server's key cannot be used.
    Key(&'static str),
    /// Server's request for the password itself, which others could read.
    Unprotected,
    /// A packet that has no place here.
    OutOfPlace(String),
}

/// Plugin that MySQL may name for an account that it does not have.
const STAND_IN: &str = "sha256_password";

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginError::Refused { code, message, .. } => {
                write!(f, "error {code}: {}", String::from_utf8_lossy(message))
            }
            LoginError::Malformed(malformed) => write!(f, "from the server: {malformed}"),
            LoginError::Lacks { version, missing } => write!(
                f,
                "the server (version {version}) does not offer {}, without which it cannot be \
                 used here",
                missing.join(", ")
            ),
            LoginError::Plugin(name) if name == STAND_IN => write!(
                f,
                "the server wants this user authenticated by '{name}', as MySQL also says of names \
                 that it does not know: look whether there is such an account for this host \
                 (SELECT user, host, plugin FROM mysql.user); spoken are mysql_native_password and \
                 caching_sha2_password"
            ),
            LoginError::Plugin(name) => write!(
                f,
                "the server wants this user authenticated by '{name}'; spoken are \
                 mysql_native_password and caching_sha2_password: give the user one of these"
            ),
            LoginError::PasswordUnknown(wanted) => write!(
                f,
                "the server asks for {wanted}, and what a client has proven of its password does \
                 not serve for that"
            ),
            LoginError::Key(why) => f.write_str(why),
            LoginError::Unprotected => f.write_str(
                "the server asks for the password itself, on a connection without TLS: it was not \
                 sent, because nobody has checked whose key would encrypt it",
            ),
            LoginError::OutOfPlace(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for LoginError {}

impl From<Malformed> for LoginError {
    fn from(malformed: Malformed) -> LoginError {
        LoginError::Malformed(malformed)
    }
}

impl LoginError {
    fn refused(payload: &[u8]) -> LoginError {
        match ErrPacket::read(payload) {
            Ok(err) => LoginError::Refused {
                code: err.code,
                state: err.state.to_vec(),
                message: err.message.to_vec(),
            },
            Err(malformed) => malformed.into(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before the greeting.
    Greeting,
    /// After an answer; OK, ERR, another plugin or more data is to come.
    Answered,
    /// Before the server's public key.
    KeyRequested,
}

/// One login on its way.
#[derive(Debug)]
pub struct ClientLogin {
    stage: Stage,
    plugin: Plugin,
    nonce: Nonce,
    /// Capabilities of both sides, once the greeting is here.
    capabilities: u32,
    /// Packets of the server so far.
    packets: u8,
}

impl Default for ClientLogin {
    fn default() -> ClientLogin {
        ClientLogin::new()
    }
}

impl ClientLogin {
    /// A login that waits for the greeting.
    #[must_use]
    pub fn new() -> ClientLogin {
        ClientLogin {
            stage: Stage::Greeting,
            plugin: Plugin::Native,
            nonce: Nonce::default(),
            capabilities: 0,
            packets: 0,
        }
    }

    /// True where nobody can read what is sent.
    fn is_private(&self, who: &Account<'_>) -> bool {
        who.private || self.capabilities & cap::SSL != 0
    }

    /// Takes the server's packet numbered `seq`; appends what is to be sent.
    ///
    /// # Errors
    /// The server's refusal, or what it sent out of place.
    pub fn on_packet(
        &mut self,
        who: &Account<'_>,
        seq: u8,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, LoginError> {
        let seq = seq.wrapping_add(1);
        if self.packets == LOGIN_PACKETS_MAX {
            return Err(LoginError::OutOfPlace(format!(
                "the server sent more than {LOGIN_PACKETS_MAX} packets and neither let the user in \
                 nor refused"
            )));
        }
        self.packets += 1;
        match (self.stage, payload.first()) {
            (_, Some(&ERR)) => Err(LoginError::refused(payload)),
            (Stage::Greeting, _) => self.on_greeting(who, seq, payload, out),
            (_, Some(&OK)) => Ok(Progress::Done),
            (Stage::Answered, Some(&AUTH_SWITCH)) => self.on_switch(who, seq, payload, out),
            (_, Some(&AUTH_MORE)) => self.on_more(who, seq, &payload[1..], out),
            (_, first) => {
                let got =
                    first.map_or("is empty".to_owned(), |it| format!("begins with {it:#04x}"));
                Err(LoginError::OutOfPlace(format!(
                    "expected OK, ERR or a step of authentication from the server; its packet {got}"
                )))
            }
        }
    }

    fn on_greeting(
        &mut self,
        who: &Account<'_>,
        seq: u8,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, LoginError> {
        let greeting = Greeting::read(payload)?;
        let offered = greeting.capabilities;
        if offered & who.required != who.required {
            return Err(lacks(&greeting, who.required));
        }
        // A plugin that is not ours is the server's default, not this user's: it will switch.
        let offered_plugin = Plugin::from_name(&greeting.plugin).unwrap_or(Plugin::Native);
        self.plugin = who.credential.plugin().unwrap_or(offered_plugin);
        self.nonce = greeting.nonce;
        self.stage = Stage::Answered;
        let (capabilities, extended) = agreed(who.wanted, who.extended, &greeting);
        self.capabilities = capabilities;
        let login = Login {
            capabilities,
            extended,
            collation: who.collation,
            user: who.user,
            answer: &self.answer(who)?,
            schema: who.schema,
            plugin: self.plugin.name().as_bytes(),
            zstd_level: ZSTD_LEVEL_USUAL,
        };
        login.put(out, seq);
        Ok(Progress::Waits)
    }

    fn answer(&self, who: &Account<'_>) -> Result<Vec<u8>, LoginError> {
        let answer = who.credential.answer(self.plugin, &self.nonce);
        answer.ok_or(LoginError::PasswordUnknown(self.plugin.name()))
    }

    fn on_switch(
        &mut self,
        who: &Account<'_>,
        seq: u8,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, LoginError> {
        let switch = AuthSwitch::read(payload)?;
        self.plugin = Plugin::from_name(switch.plugin).ok_or_else(|| {
            LoginError::Plugin(String::from_utf8_lossy(switch.plugin).into_owned())
        })?;
        self.nonce = switch.nonce().ok_or_else(|| {
            LoginError::OutOfPlace("the server's switch of authentication has no nonce".to_owned())
        })?;
        let answer = self.answer(who)?;
        put_short(out, seq, |out| out.extend_from_slice(&answer));
        Ok(Progress::Waits)
    }

    fn on_more(
        &mut self,
        who: &Account<'_>,
        seq: u8,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, LoginError> {
        let password = match who.credential {
            Credential::Password(password) => Some(password),
            Credential::Native(_) | Credential::CachingSha2(_) => None,
        };
        const THE_PASSWORD: LoginError = LoginError::PasswordUnknown("the password itself");
        match (self.plugin, self.stage, data) {
            (Plugin::CachingSha2, Stage::Answered, [caching_sha2::FAST_AUTH_OK]) => {}
            (Plugin::CachingSha2, Stage::Answered, [caching_sha2::FULL_AUTH])
                if password.is_none() =>
            {
                return Err(THE_PASSWORD);
            }
            (Plugin::CachingSha2, Stage::Answered, [caching_sha2::FULL_AUTH])
                if self.is_private(who) =>
            {
                put_short(out, seq, |out| {
                    out.extend_from_slice(password.unwrap_or_default());
                    out.push(0);
                });
            }
            (Plugin::CachingSha2, Stage::Answered, [caching_sha2::FULL_AUTH]) => {
                match who.server_key {
                    ServerKey::None => return Err(LoginError::Unprotected),
                    ServerKey::Pinned(pem) => self.put_encrypted(password, pem, seq, out)?,
                    ServerKey::Sent => {
                        self.stage = Stage::KeyRequested;
                        put_short(out, seq, |out| out.push(caching_sha2::REQUEST_PUBLIC_KEY));
                    }
                }
            }
            (Plugin::CachingSha2, Stage::KeyRequested, pem) => {
                self.stage = Stage::Answered;
                self.put_encrypted(password, pem, seq, out)?;
            }
            _ => {
                return Err(LoginError::OutOfPlace(format!(
                    "the server sent {} bytes of authentication data that {} has no use for",
                    data.len(),
                    self.plugin.name()
                )));
            }
        }
        Ok(Progress::Waits)
    }

    fn put_encrypted(
        &self,
        password: Option<&[u8]>,
        pem: &[u8],
        seq: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), LoginError> {
        const UNKNOWN: LoginError = LoginError::PasswordUnknown("the password itself");
        let password = password.ok_or(UNKNOWN)?;
        let secret = caching_sha2::encrypt(password, &self.nonce, pem).map_err(LoginError::Key)?;
        put_short(out, seq, |out| out.extend_from_slice(&secret));
        Ok(())
    }
}

/// Capabilities in use on a connection to a server with this greeting, and MariaDB's extended ones;
/// LONG_PASSWORD says that there are none of these.
fn agreed(wanted: u32, extended: u32, greeting: &Greeting) -> (u32, u32) {
    let extended = extended & greeting.extended;
    let capabilities = wanted & (greeting.capabilities | cap::LONG_PASSWORD);
    match extended {
        0 => (capabilities, 0),
        _ => (capabilities & !cap::LONG_PASSWORD, extended),
    }
}

/// Appends the packet behind which a client that asks for `wanted` and for `extended` begins TLS,
/// in answer to the greeting numbered `seq`; what comes under TLS goes on behind its number. False,
/// and nothing, where the server does not offer TLS.
///
/// All three must be what the login behind it asks for: servers go by what stands here, and MySQL
/// refuses a login with another collation.
///
/// # Errors
/// The greeting is cut or garbled.
pub fn put_tls_request(
    (wanted, extended, collation): (u32, u32, u8),
    seq: u8,
    greeting: &[u8],
    out: &mut Vec<u8>,
) -> Result<bool, Malformed> {
    let greeting = Greeting::read(greeting)?;
    if greeting.capabilities & cap::SSL == 0 {
        return Ok(false);
    }
    let (capabilities, extended) = agreed(wanted | cap::SSL, extended, &greeting);
    put_short(out, seq.wrapping_add(1), |out| {
        put_login_start(out, capabilities, extended, collation);
    });
    Ok(true)
}

fn lacks(greeting: &Greeting, required: u32) -> LoginError {
    let compress = (cap::COMPRESS, "CLIENT_COMPRESS (the compressed protocol)");
    let tls = (cap::SSL, "CLIENT_SSL (TLS)");
    let attributes = (
        cap::QUERY_ATTRIBUTES,
        "CLIENT_QUERY_ATTRIBUTES (MySQL 8.0.23), which was offered to clients because the server \
         that the pool asked at its start has it",
    );
    let missing = cap::BACKEND_REQUIRED
        .iter()
        .chain([&compress, &tls, &attributes])
        .filter(|(flag, _)| flag & required & !greeting.capabilities != 0);
    LoginError::Lacks {
        version: String::from_utf8_lossy(&greeting.version).into_owned(),
        missing: missing.map(|(_, name)| *name).collect(),
    }
}

#[cfg(test)]
mod tests;
