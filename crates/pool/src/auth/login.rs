//! The client's login: who is it, and can it prove it?
//!
//! The pool checks clients itself, against its configuration, so that a storm of logins never
//! reaches the server. [`Login`] is the exchange as a state machine without a socket: the greeting
//! goes out, answers come in, and each gives an [`Outcome`]. It lives in a box that exists only
//! while a client logs in (or changes user).
//!
//! Invariants: a nonce is one connection's; an unknown user takes the same steps as a known one,
//! which stands in for it (`accounts.rs`), and is turned away at the end, so names cannot be probed
//! by watching the exchange or its time.
//!
//! `caching_sha2_password` is quick when the password, or its hash of an earlier full
//! authentication, is known; else the client sends the password itself, encrypted with our RSA key
//! (which a worker decrypts: [`crate::auth::password_checks`]), or in clear over a Unix socket or
//! the loopback interface, where nobody listens in between.
//!
//! `mysql_clear_password` is the password itself, of accounts that say so. It is asked for under
//! TLS alone: elsewhere the login ends before the password is sent.

use crate::auth::account::{Account, CLEAR_PASSWORD, Method};
use crate::auth::accounts::{Identity, LoginContext, Proof, Sent};
use crate::auth::host_pattern::ClientHost;
use crate::auth::password_checks::{Checked, Waits};
use session::state::Session;
use std::rc::Rc;
use std::sync::Arc;
use wire::auth::caching_sha2::{self, FAST_AUTH_OK, FULL_AUTH, HASH_LEN, REQUEST_PUBLIC_KEY};
use wire::auth::native::{self, CERTIFICATE_PROOF_LEN, Fingerprint, certificate_proof};
use wire::auth::sha2_stored::PASSWORD_MAX;
use wire::auth::{Nonce, Plugin};
use wire::handshake::{self, AUTH_MORE};
use wire::packet::put_short;
use wire::wiped::Wiped;

/// Bytes of a name that are kept for the error, many times what an account's name may have.
const NAME_MAX: usize = 1024;
/// Reason of a failed login whose client has encrypted with another RSA key than the pool's: mostly
/// the server's.
pub(crate) const OTHER_KEY: &str = "other-rsa-key";
/// Bytes of an answer that a worker is given: a password that may be right, with its NUL, and one
/// more, so that what is longer is wrong still.
const ANSWER_MAX: usize = PASSWORD_MAX + 2;

/// Account and session of a connection before a change of user, for the case that this fails.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) session: Rc<Session>,
    pub(crate) pool: u32,
    pub(crate) user: usize,
}

/// Outcome of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Packets to send; another answer follows.
    Send(Vec<u8>),
    /// Proven user (an index into the users); these packets go out in front of OK, whose sequence
    /// number is the last value.
    Welcome(usize, Vec<u8>, u8),
    /// Denial; the error's sequence number, and whether a password was given.
    Denied(u8, bool),
    /// Bytes to be decrypted, or compared, by a worker; [`Login::checked`] takes its verdict.
    Check(Wiped),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// An answer to the nonce, in this plugin.
    Answer(Plugin),
    /// The password, or a request for the public key.
    Password,
    /// The password, with a NUL behind it.
    ClearPassword,
}

/// One exchange.
#[derive(Debug)]
pub(crate) struct Login {
    nonce: Nonce,
    stage: Stage,
    /// Account that the name means, once it has come.
    identity: Option<Identity>,
    /// Short proof that came before a full authentication.
    quick: Vec<u8>,
    /// Held while a worker checks its password.
    pub(crate) waits: Option<Waits>,
    /// The name as given, or its beginning, for the error.
    pub name: Vec<u8>,
    /// True if nobody can listen in: a Unix socket, or the loopback interface.
    pub(crate) secure: bool,
    /// True if the effect of the server's `init_connect` was not known when the password was
    /// proven.
    pub(crate) begins_late: bool,
    /// True if the connection is under TLS.
    pub(crate) is_tls: bool,
    /// The password came encrypted with another key than the pool's.
    other_key: bool,
    /// Fingerprint of the certificate that was shown to the client, in the login under TLS.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// State to return to when a change of user fails, where the server keeps the connection.
    pub(crate) before: Option<Before>,
}

/// Nonces that a client that changes its user may mix with its password.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nonces {
    /// The one that its connection was greeted with.
    pub(crate) greeted: Nonce,
    /// One for this change.
    pub(crate) fresh: Nonce,
}

impl Login {
    /// An exchange about `nonce`. `secure`: nobody can listen in.
    #[must_use]
    pub(crate) fn new(nonce: Nonce, secure: bool) -> Login {
        let stage = Stage::Answer(Plugin::Native);
        Login {
            nonce,
            stage,
            identity: None,
            quick: Vec::new(),
            waits: None,
            name: Vec::new(),
            secure,
            begins_late: false,
            is_tls: false,
            other_key: false,
            fingerprint: None,
            before: None,
        }
    }

    /// Notes the name that the client has given.
    pub(crate) fn call(&mut self, name: &[u8]) {
        self.name = cut(name, NAME_MAX);
    }

    /// The first answer: a name, and mostly a proof in the plugin that the client chose. `fresh`
    /// is a nonce in case another plugin is wanted, `seq` the number of our next packet; `host` is
    /// where the client connects from.
    #[must_use]
    pub(crate) fn begin(
        &mut self,
        login_context: &LoginContext<'_>,
        login: &handshake::Login<'_>,
        (host, fresh): (&ClientHost, Nonce),
        seq: u8,
    ) -> Outcome {
        self.call(login.user);
        let identity = login_context.accounts.find(login.user, host);
        let wanted = identity.like.method;
        self.identity = Some(identity);
        let wanted = match wanted {
            Some(Method::ClearPassword) => return self.ask_in_clear(fresh, seq),
            Some(Method::Plugin(plugin)) => Some(plugin),
            None => None,
        };
        let given = if login.plugin.is_empty() {
            Some(Plugin::Native)
        } else {
            Plugin::from_name(login.plugin)
        };
        match (given, wanted) {
            // The greeting names the other plugin, so this answers no nonce: MySQL 9's library,
            // which has nothing but this plugin, waits to be asked for it, as servers do.
            (Some(Plugin::CachingSha2), None | Some(Plugin::CachingSha2))
                if login.answer.is_empty() =>
            {
                self.switch(Plugin::CachingSha2, fresh, seq)
            }
            (Some(given), None) => {
                self.stage = Stage::Answer(given);
                self.answer(login_context, login.answer, seq)
            }
            (Some(given), Some(wanted)) if given == wanted => {
                self.stage = Stage::Answer(given);
                self.answer(login_context, login.answer, seq)
            }
            (_, wanted) => self.switch(wanted.unwrap_or(Plugin::Native), fresh, seq),
        }
    }

    /// Begins a change of user on a connection that stands. As servers do, `mysql_native_password`
    /// is asked for with the nonce that the connection was greeted with: MariaDB's client library
    /// answers to that one, whatever it is sent. The other plugin gets a fresh one. It is asked for
    /// where the client names it, because the library of MySQL 9 has no other, and where its short
    /// answer can be checked, or the password itself may be sent.
    #[must_use]
    pub(crate) fn change(
        &mut self,
        login_context: &LoginContext<'_>,
        (name, host): (&[u8], &ClientHost),
        named: &[u8],
        nonces: Nonces,
        seq: u8,
    ) -> Outcome {
        self.call(name);
        let identity = login_context.accounts.find(name, host);
        let like = &identity.like;
        let checks = self.secure || like.verifier.empty || like.sha2().is_some();
        let usual = match Plugin::from_name(named) {
            Some(Plugin::CachingSha2) if checks => Plugin::CachingSha2,
            _ => Plugin::Native,
        };
        let wanted = like.method;
        self.identity = Some(identity);
        match wanted.unwrap_or(Method::Plugin(usual)) {
            Method::Plugin(Plugin::Native) => self.switch(Plugin::Native, nonces.greeted, seq),
            Method::Plugin(Plugin::CachingSha2) => {
                self.switch(Plugin::CachingSha2, nonces.fresh, seq)
            }
            Method::ClearPassword => self.ask_in_clear(nonces.fresh, seq),
        }
    }

    /// Asks for the password itself, unless somebody could listen in.
    fn ask_in_clear(&mut self, fresh: Nonce, seq: u8) -> Outcome {
        if !self.is_tls {
            return Outcome::Denied(seq, false);
        }
        self.stage = Stage::ClearPassword;
        let mut out = Vec::new();
        // Its nonce has no meaning; clients expect that there is one.
        handshake::put_auth_switch(&mut out, seq, CLEAR_PASSWORD, &fresh);
        Outcome::Send(out)
    }

    /// Reason besides the password for which the login has failed, in the word of the log.
    pub(crate) fn obstacle(&self) -> Option<&'static str> {
        let method = self.account().and_then(|account| account.method);
        match method == Some(Method::ClearPassword) && !self.is_tls {
            true => Some("tls-required"),
            false => self.other_key.then_some(OTHER_KEY),
        }
    }

    /// True if it has been asked for the password itself, over a connection on which clients refuse
    /// to send that in clear.
    pub(crate) fn is_asked_without_tls(&self) -> bool {
        self.stage == Stage::Password && !self.is_tls
    }

    fn switch(&mut self, plugin: Plugin, fresh: Nonce, seq: u8) -> Outcome {
        self.nonce = fresh;
        self.stage = Stage::Answer(plugin);
        let mut out = Vec::new();
        handshake::put_auth_switch(&mut out, seq, plugin.name(), &fresh);
        Outcome::Send(out)
    }

    /// A further answer.
    #[must_use]
    pub(crate) fn answer(
        &mut self,
        login_context: &LoginContext<'_>,
        answer: &[u8],
        seq: u8,
    ) -> Outcome {
        match self.stage {
            Stage::Answer(Plugin::Native) => self.answer_native(answer, seq),
            Stage::Answer(Plugin::CachingSha2) => self.answer_sha2(answer, seq),
            Stage::Password => self.answer_password(login_context, answer, seq),
            Stage::ClearPassword => self.answer_in_clear(answer, seq),
        }
    }

    fn answer_native(&mut self, answer: &[u8], seq: u8) -> Outcome {
        let with_password = !answer.is_empty();
        let Some(Identity { user, like }) = &mut self.identity else {
            return Outcome::Denied(seq, with_password);
        };
        if like.verifier.empty {
            return self.verdict(!with_password, Vec::new(), seq, with_password);
        }
        let proven = like.passwords().find_map(|account| {
            let once = native::proven(answer, &self.nonce, &account.verifier.native)?;
            Some((account.clone(), once))
        });
        let right = proven.is_some();
        if let Some((account, once)) = proven {
            if user.is_some() && account.of_server.is_some() {
                // Another group may have learnt the same at the same moment.
                let _ = account.learnt.native.set(once);
            }
            // What proves the certificate is made of the password that the client has.
            *like = account;
        }
        self.verdict(right, Vec::new(), seq, with_password)
    }

    fn answer_in_clear(&self, answer: &[u8], seq: u8) -> Outcome {
        let password = answer.strip_suffix(&[0]).unwrap_or(answer);
        // As of the plugins, one that is too long is wrong.
        let is_its = |account: &Arc<Account>| {
            password.len() <= PASSWORD_MAX && account.verifier.is_password(password)
        };
        let identity = self.identity.as_ref();
        let right = identity.is_some_and(|identity| identity.like.passwords().any(is_its));
        self.verdict(right, Vec::new(), seq, !password.is_empty())
    }

    /// The account that has been proven, or would have to be.
    pub(crate) fn account(&self) -> Option<&Arc<Account>> {
        let identity = self.identity.as_ref()?;
        identity.user.map(|_| &identity.like)
    }

    fn verdict(&self, right: bool, out: Vec<u8>, seq: u8, with_password: bool) -> Outcome {
        match self.account().map(|account| account.user) {
            Some(user) if right => Outcome::Welcome(user, out, seq),
            _ => Outcome::Denied(seq, with_password),
        }
    }

    fn answer_sha2(&mut self, answer: &[u8], seq: u8) -> Outcome {
        let Some(Identity { user, like }) = &self.identity else {
            return Outcome::Denied(seq, !answer.is_empty());
        };
        // MySQL's library says by a NUL that there is no password.
        if answer.is_empty() || answer == [0] {
            return self.verdict(like.verifier.empty, Vec::new(), seq, false);
        }
        let proves = |account: &Arc<Account>| {
            let known = account.sha2();
            // Nothing is known of some: what is compared then cannot be met, and takes as long.
            let proven = caching_sha2::verify(answer, &self.nonce, &known.unwrap_or_default());
            proven && known.is_some()
        };
        if like.passwords().any(proves) && user.is_some() {
            let mut out = Vec::new();
            put_short(&mut out, seq, |out| {
                out.extend_from_slice(&[AUTH_MORE, FAST_AUTH_OK])
            });
            return self.verdict(true, out, seq.wrapping_add(1), true);
        }
        // As a server does, also when the answer is wrong: clients exist whose quick answer is
        // never right, and who count on this.
        self.stage = Stage::Password;
        // Of another length it proves nothing later either.
        self.quick = match answer.len() {
            HASH_LEN => answer.to_vec(),
            _ => Vec::new(),
        };
        let mut out = Vec::new();
        put_short(&mut out, seq, |out| {
            out.extend_from_slice(&[AUTH_MORE, FULL_AUTH])
        });
        Outcome::Send(out)
    }

    /// Proof, by the password, that the certificate is the server's own: of a login under TLS by
    /// `mysql_native_password` with a password.
    pub(crate) fn certificate_proof(&self) -> Option<[u8; CERTIFICATE_PROOF_LEN]> {
        let verifier = &self.account()?.verifier;
        let is_native = self.stage == Stage::Answer(Plugin::Native) && !verifier.empty;
        let fingerprint = self.fingerprint.as_ref().filter(|_| is_native)?;
        Some(certificate_proof(
            &verifier.native,
            &self.nonce,
            fingerprint,
        ))
    }

    /// True if its name is that of a user.
    pub(crate) fn is_listed(&self) -> bool {
        self.account().is_some()
    }

    /// Proof that a full authentication has to go by, once the name has come.
    pub(crate) fn proof(&self) -> Option<Proof> {
        Some(Proof {
            identity: self.identity.clone()?,
            nonce: self.nonce,
            quick: self.quick.clone(),
            sent: match self.secure {
                true => Sent::PerhapsClear,
                false => Sent::Encrypted,
            },
        })
    }

    fn answer_password(
        &mut self,
        login_context: &LoginContext<'_>,
        answer: &[u8],
        seq: u8,
    ) -> Outcome {
        if answer == [REQUEST_PUBLIC_KEY] {
            let mut out = Vec::new();
            put_short(&mut out, seq, |out| {
                out.push(AUTH_MORE);
                out.extend_from_slice(login_context.keys.public_pem());
            });
            return Outcome::Send(out);
        }
        if let (true, Some((0, password))) = (self.secure, answer.split_last()) {
            let identity = self.identity.as_ref();
            if identity.is_some_and(|identity| identity.like.verifier.slow.is_some()) {
                return Outcome::Check(Wiped::cut(answer, ANSWER_MAX));
            }
            let right = (self.proof()).is_some_and(|proof| proof.is_proven_by(password));
            // One encrypted answer in 256 ends like a password in clear.
            if right || !login_context.keys.may_decrypt(answer) {
                return self.verdict(right, Vec::new(), seq, true);
            }
        }
        if !login_context.keys.may_decrypt(answer) {
            return self.verdict(false, Vec::new(), seq, true);
        }
        Outcome::Check(answer.into())
    }

    /// Resumes the login with a worker's verdict on the encrypted password.
    pub(crate) fn checked(&mut self, checked: Checked, seq: u8) -> Outcome {
        self.waits = None;
        self.other_key = checked == Checked::OtherKey;
        self.verdict(checked == Checked::Right, Vec::new(), seq, true)
    }
}

/// The beginning of what a client has sent, which may be as long as a packet of a login.
fn cut(bytes: &[u8], max: usize) -> Vec<u8> {
    bytes[..bytes.len().min(max)].to_vec()
}

#[cfg(test)]
mod tests;
