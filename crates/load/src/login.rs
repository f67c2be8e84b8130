//! The client's side of a login, without a socket: packets in, packets out.
//!
//! greeting -> login -> (another plugin? -> answer) -> (more data -> answer)* -> OK or ERR.
//! `mysql_native_password` and `caching_sha2_password` are spoken. When the latter's server has not
//! cached the user's hash it wants the password itself: in clear where nobody can listen (a Unix
//! socket), else encrypted by the server's RSA key, which is asked for first.
//!
//! Invariants: the password goes out in clear over a Unix socket only; whatever the server sends,
//! the result is an answer or a [`Fault`] that says what was expected. Both the run (a million
//! logins) and the blocking client of `prepare` use this.

use crate::errors::Fault;
use wire::auth::{Nonce, Plugin, caching_sha2};
use wire::capabilities as cap;
use wire::dsn::Dsn;
use wire::handshake::{AUTH_MORE, AUTH_SWITCH, AuthSwitch, Greeting, Login as Response};
use wire::packet::put_short;
use wire::reply::{ERR, ErrPacket, OK};

/// utf8mb4_general_ci, which MySQL and MariaDB have under the same number.
const COLLATION: u8 = 45;

/// What is asked of the server. LONG_PASSWORD says towards MariaDB that the extended capabilities
/// are not in use. Session tracking is left out: nothing here would read it.
const WANTED: u32 = cap::LONG_PASSWORD
    | cap::LONG_FLAG
    | cap::CONNECT_WITH_DB
    | cap::PROTOCOL_41
    | cap::TRANSACTIONS
    | cap::SECURE_CONNECTION
    | cap::MULTI_RESULTS
    | cap::PLUGIN_AUTH
    | cap::PLUGIN_AUTH_LENENC_DATA
    | cap::DEPRECATE_EOF;

/// What there is no login without.
const REQUIRED: u32 =
    cap::PROTOCOL_41 | cap::SECURE_CONNECTION | cap::PLUGIN_AUTH | cap::DEPRECATE_EOF;

/// Who logs in, the same for all connections.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    user: Vec<u8>,
    password: Vec<u8>,
    schema: Vec<u8>,
    /// Nobody can listen: the password may go out in clear.
    private: bool,
}

impl Credentials {
    pub(crate) fn of(dsn: &Dsn) -> Credentials {
        Credentials {
            user: dsn.user.clone().into_bytes(),
            password: dsn.password.clone().into_bytes(),
            schema: dsn.schema.clone().into_bytes(),
            private: dsn.socket.is_some(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The greeting is to come.
    Greeting,
    /// An answer is out; OK, ERR, another plugin or more data is to come.
    Answered,
    /// The server's public key is to come.
    KeyRequested,
}

/// One login on its way.
#[derive(Debug)]
pub(crate) struct Login {
    stage: Stage,
    plugin: Plugin,
    nonce: Nonce,
}

/// What a packet brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The next packet of the server is awaited.
    Waits,
    /// The server has let us in.
    Done,
}

impl Login {
    pub(crate) fn new() -> Login {
        Login {
            stage: Stage::Greeting,
            plugin: Plugin::Native,
            nonce: Nonce::default(),
        }
    }

    /// Takes the server's packet numbered `seq`; appends what is to be sent.
    ///
    /// # Errors
    /// The server's refusal, or what it sent out of place.
    pub(crate) fn on_packet(
        &mut self,
        who: &Credentials,
        seq: u8,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, Fault> {
        let seq = seq.wrapping_add(1);
        match (self.stage, payload.first()) {
            (_, Some(&ERR)) => Err(Fault::server(&ErrPacket::read(payload)?)),
            (Stage::Greeting, _) => self.on_greeting(who, seq, payload, out),
            (_, Some(&OK)) => Ok(Progress::Done),
            (Stage::Answered, Some(&AUTH_SWITCH)) => self.on_switch(who, seq, payload, out),
            (_, Some(&AUTH_MORE)) => self.on_more(who, seq, &payload[1..], out),
            (_, first) => Err(Fault::protocol(format!(
                "expected OK, ERR or a step of authentication from the server; its packet begins \
                 with {first:02x?}"
            ))),
        }
    }

    fn on_greeting(
        &mut self,
        who: &Credentials,
        seq: u8,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, Fault> {
        let greeting = Greeting::read(payload)?;
        if greeting.capabilities & REQUIRED != REQUIRED {
            return Err(lacks_capabilities(&greeting));
        }
        // A plugin that is not ours is the server's default, not this user's: it will switch.
        self.plugin = Plugin::from_name(&greeting.plugin).unwrap_or(Plugin::Native);
        self.nonce = greeting.nonce;
        self.stage = Stage::Answered;
        let response = Response {
            capabilities: WANTED,
            collation: COLLATION,
            user: &who.user,
            answer: &self.plugin.answer(&who.password, &self.nonce),
            schema: &who.schema,
            plugin: self.plugin.name().as_bytes(),
        };
        response.put(out, seq);
        Ok(Progress::Waits)
    }

    fn on_switch(
        &mut self,
        who: &Credentials,
        seq: u8,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, Fault> {
        let switch = AuthSwitch::read(payload)?;
        self.plugin = Plugin::from_name(switch.plugin).ok_or_else(|| {
            Fault::protocol(format!(
                "the server wants this user authenticated by '{}'; spoken are \
                 mysql_native_password and caching_sha2_password: give the user one of these",
                String::from_utf8_lossy(switch.plugin)
            ))
        })?;
        self.nonce = switch.nonce().ok_or_else(|| {
            Fault::protocol("the server's switch of authentication has no nonce".to_owned())
        })?;
        let answer = self.plugin.answer(&who.password, &self.nonce);
        put_short(out, seq, |out| out.extend_from_slice(&answer));
        Ok(Progress::Waits)
    }

    fn on_more(
        &mut self,
        who: &Credentials,
        seq: u8,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, Fault> {
        match (self.plugin, self.stage, data) {
            (Plugin::CachingSha2, Stage::Answered, [caching_sha2::FAST_AUTH_OK]) => {}
            (Plugin::CachingSha2, Stage::Answered, [caching_sha2::FULL_AUTH]) if who.private => {
                put_short(out, seq, |out| {
                    out.extend_from_slice(&who.password);
                    out.push(0);
                });
            }
            (Plugin::CachingSha2, Stage::Answered, [caching_sha2::FULL_AUTH]) => {
                self.stage = Stage::KeyRequested;
                put_short(out, seq, |out| out.push(caching_sha2::REQUEST_PUBLIC_KEY));
            }
            (Plugin::CachingSha2, Stage::KeyRequested, pem) => {
                self.stage = Stage::Answered;
                let secret = caching_sha2::encrypt(&who.password, &self.nonce, pem)
                    .map_err(|why| Fault::protocol(why.to_owned()))?;
                put_short(out, seq, |out| out.extend_from_slice(&secret));
            }
            _ => {
                return Err(Fault::protocol(format!(
                    "the server sent {} bytes of authentication data that {} has no use for",
                    data.len(),
                    self.plugin.name()
                )));
            }
        }
        Ok(Progress::Waits)
    }
}

fn lacks_capabilities(greeting: &Greeting) -> Fault {
    let missing: Vec<&str> = cap::BACKEND_REQUIRED
        .iter()
        .filter(|(flag, _)| flag & REQUIRED & !greeting.capabilities != 0)
        .map(|(_, name)| *name)
        .collect();
    Fault::protocol(format!(
        "the server (version {}) does not offer {}, without which it cannot be used here",
        String::from_utf8_lossy(&greeting.version),
        missing.join(", ")
    ))
}

#[cfg(test)]
mod tests;
