//! The backend's login: ours, on a server, and what is said before the first statement.
//!
//! [`Dial`] is the exchange as a state machine without a socket. After the server's OK the pool
//! switches on the session trackers and reads back what a fresh session looks like, in one write.
//!
//! Invariant: a server that lacks what the pool builds on (trackers, CLIENT_DEPRECATE_EOF) is
//! refused at its greeting, with the missing capability's name.

use crate::roster::Kind;
use wire::auth::caching_sha2::{self, FAST_AUTH_OK, FULL_AUTH, REQUEST_PUBLIC_KEY};
use wire::auth::{Nonce, Plugin};
use wire::capabilities::{BACKEND_ALWAYS, BACKEND_REQUIRED};
use wire::command::{Command, put_command};
use wire::handshake::{AUTH_MORE, AUTH_SWITCH, AuthSwitch, Greeting, Login};
use wire::packet::{put_packet, put_short};
use wire::reply::{ERR, ErrPacket, OK};

/// `utf8mb4_general_ci`: known to every server that has the trackers.
pub(crate) const COLLATION: u8 = 45;

/// Switches on every tracker that the pool reads.
pub(crate) const TRACKERS: &str = "SET session_track_system_variables='*',session_track_schema=ON,\
     session_track_state_change=ON,session_track_transaction_info='CHARACTERISTICS'";

/// What a fresh session looks like, in the order of [`crate::session::CHARSET_VARIABLES`].
pub(crate) const FRESH: &str = "SELECT @@character_set_client,@@character_set_connection,\
     IFNULL(@@character_set_results,''),@@collation_connection";

/// What a packet of the server led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DialStep {
    /// These bytes go out; another packet follows.
    Send(Vec<u8>),
    /// Nothing to do; another packet follows.
    Wait,
    /// Logged in.
    In,
    /// It cannot be; a sentence, and whether the account is refused (so that trying again soon is
    /// of no use).
    Failed(String, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Greeting,
    Answered(Plugin),
    /// The server's public key comes next.
    Key,
}

/// One login on a server.
#[derive(Debug)]
pub(crate) struct Dial {
    stage: Stage,
    nonce: Nonce,
    secure: bool,
}

impl Dial {
    /// A login about to begin. `secure`: nobody can listen in (a Unix socket).
    #[must_use]
    pub(crate) fn new(secure: bool) -> Dial {
        Dial {
            stage: Stage::Greeting,
            nonce: [0; 20],
            secure,
        }
    }

    /// Takes the server's next packet, numbered `seq`.
    #[must_use]
    pub(crate) fn packet(&mut self, kind: &Kind, payload: &[u8], seq: u8) -> DialStep {
        if payload.first() == Some(&ERR) {
            return refused(payload);
        }
        let seq = seq.wrapping_add(1);
        match (self.stage, payload.first()) {
            (Stage::Greeting, _) => self.greet(kind, payload, seq),
            (Stage::Answered(_), Some(&OK)) => DialStep::In,
            (Stage::Answered(_), Some(&AUTH_SWITCH)) => self.switch(kind, payload, seq),
            (Stage::Answered(Plugin::CachingSha2), Some(&AUTH_MORE)) => {
                self.more(kind, &payload[1..], seq)
            }
            (Stage::Key, Some(&AUTH_MORE)) => self.with_key(kind, &payload[1..], seq),
            (_, byte) => DialStep::Failed(
                format!("the server sent an unexpected packet ({byte:02x?}) during our login"),
                false,
            ),
        }
    }

    fn greet(&mut self, kind: &Kind, payload: &[u8], seq: u8) -> DialStep {
        let greeting = match Greeting::read(payload) {
            Ok(greeting) => greeting,
            Err(error) => return DialStep::Failed(format!("its greeting is a {error}"), false),
        };
        let missing = BACKEND_REQUIRED
            .iter()
            .find(|(bit, _)| greeting.capabilities & bit == 0);
        if let Some((_, name)) = missing {
            let version = String::from_utf8_lossy(&greeting.version);
            let text =
                format!("server version {version} does not offer {name}, which the pool needs");
            return DialStep::Failed(text, true);
        }
        self.nonce = greeting.nonce;
        let plugin = Plugin::from_name(&greeting.plugin).unwrap_or(Plugin::Native);
        self.stage = Stage::Answered(plugin);
        let login = Login {
            capabilities: (BACKEND_ALWAYS | kind.capabilities | wire::capabilities::CONNECT_ATTRS)
                & greeting.capabilities,
            collation: COLLATION,
            user: kind.user.as_bytes(),
            answer: &plugin.answer(kind.password.as_bytes(), &self.nonce),
            schema: b"",
            plugin: plugin.name().as_bytes(),
        };
        let mut out = Vec::new();
        login.put(&mut out, seq);
        DialStep::Send(out)
    }

    fn switch(&mut self, kind: &Kind, payload: &[u8], seq: u8) -> DialStep {
        let (name, nonce) = match AuthSwitch::read(payload) {
            Ok(switch) => (switch.plugin, switch.nonce()),
            Err(error) => {
                return DialStep::Failed(format!("its plugin switch is a {error}"), false);
            }
        };
        let Some((plugin, nonce)) = Plugin::from_name(name).zip(nonce) else {
            let name = String::from_utf8_lossy(name);
            let text = format!(
                "the account '{}' uses the authentication plugin '{name}'; expected \
                 mysql_native_password or caching_sha2_password",
                kind.user
            );
            return DialStep::Failed(text, true);
        };
        self.nonce = nonce;
        self.stage = Stage::Answered(plugin);
        packet(seq, &plugin.answer(kind.password.as_bytes(), &nonce))
    }

    fn more(&mut self, kind: &Kind, data: &[u8], seq: u8) -> DialStep {
        match data.first() {
            Some(&FAST_AUTH_OK) => DialStep::Wait,
            Some(&FULL_AUTH) if self.secure => {
                let mut password = kind.password.as_bytes().to_vec();
                password.push(0);
                packet(seq, &password)
            }
            Some(&FULL_AUTH) => {
                self.stage = Stage::Key;
                packet(seq, &[REQUEST_PUBLIC_KEY])
            }
            byte => DialStep::Failed(
                format!("the server sent unknown caching_sha2_password data ({byte:02x?})"),
                false,
            ),
        }
    }

    fn with_key(&mut self, kind: &Kind, pem: &[u8], seq: u8) -> DialStep {
        match caching_sha2::encrypt(kind.password.as_bytes(), &self.nonce, pem) {
            Ok(sent) => {
                self.stage = Stage::Answered(Plugin::CachingSha2);
                packet(seq, &sent)
            }
            Err(why) => DialStep::Failed(why.to_string(), false),
        }
    }
}

fn packet(seq: u8, payload: &[u8]) -> DialStep {
    let mut out = Vec::new();
    put_packet(&mut out, seq, payload);
    DialStep::Send(out)
}

fn refused(payload: &[u8]) -> DialStep {
    let Ok(err) = ErrPacket::read(payload) else {
        return DialStep::Failed("the server sent an error that cannot be read".into(), false);
    };
    let text = format!(
        "error {}: {}",
        err.code,
        String::from_utf8_lossy(err.message)
    );
    // Access denied, no such plugin, host not allowed: the account must be put right first.
    let account = matches!(err.code, 1045 | 1130 | 1251 | 1524 | 1698 | 1820 | 1862);
    DialStep::Failed(text, account)
}

/// Appends the commands of a fresh backend; two replies follow.
pub(crate) fn put_preparation(out: &mut Vec<u8>) {
    put_command(out, Command::Query, TRACKERS.as_bytes());
    put_command(out, Command::Query, FRESH.as_bytes());
}

/// Appends the answer of nobody: used to leave politely.
pub(crate) fn put_quit(out: &mut Vec<u8>) {
    put_short(out, 0, |out| out.push(Command::Quit.byte()));
}

#[cfg(test)]
mod tests;
