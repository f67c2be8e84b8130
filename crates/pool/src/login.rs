//! The client's login: who is it, and can it prove it?
//!
//! The pool checks clients itself, against its configuration, so that a storm of logins never
//! reaches the server. [`Login`] is the exchange as a state machine without a socket: the greeting
//! goes out, answers come in, and each gives an [`Outcome`]. It lives in a box that exists only
//! while a client logs in (or changes user).
//!
//! Invariants: a nonce is used once; an unknown user takes the same steps as a known one and is
//! turned away at the end, so names cannot be probed by watching the exchange.
//!
//! `caching_sha2_password` is quick when the password, or its hash of an earlier full
//! authentication, is known; else the client sends the password itself, encrypted with our RSA key,
//! or in clear over a Unix socket or the loopback interface, where nobody listens in between.

use crate::anew::Before;
use crate::config::User;
use std::cell::RefCell;
use std::collections::HashMap;
use wire::auth::caching_sha2::{
    self, Cached, FAST_AUTH_OK, FULL_AUTH, KeyPair, REQUEST_PUBLIC_KEY,
};
use wire::auth::native::{self, Stored};
use wire::auth::{Nonce, Plugin};
use wire::handshake::{self, AUTH_MORE};
use wire::packet::put_short;

/// What proves a user's password.
#[derive(Clone, Debug)]
pub struct Verifier {
    native: Stored,
    sha2: Option<Cached>,
    empty: bool,
}

impl Verifier {
    /// From the password itself: both plugins are quick.
    #[must_use]
    pub fn from_password(password: &[u8]) -> Verifier {
        Verifier {
            native: native::stored(password),
            sha2: Some(caching_sha2::cached(password)),
            empty: password.is_empty(),
        }
    }

    /// From the hash in `mysql.user`: `caching_sha2_password` needs a full authentication first.
    #[must_use]
    pub fn from_native_hash(native: Stored) -> Verifier {
        Verifier {
            native,
            sha2: None,
            empty: false,
        }
    }
}

/// What all logins of a group share.
pub(crate) struct Door<'a> {
    /// Who may log in.
    pub users: &'a [User],
    /// For full authentication.
    pub keys: &'a KeyPair,
    /// Hashes learnt in full authentications, by user.
    pub learnt: &'a RefCell<HashMap<usize, Cached>>,
}

/// What an answer led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// These packets go out; another answer follows.
    Send(Vec<u8>),
    /// It is this user (an index into the users); these packets go out in front of OK, whose
    /// sequence number is the second value.
    Welcome(usize, Vec<u8>, u8),
    /// It is not; the error's sequence number, and whether a password was given.
    Denied(u8, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The next answer is one to the nonce, in this plugin.
    Answer(Plugin),
    /// The next answer is the password, or a request for the public key.
    Password,
}

/// One exchange.
#[derive(Debug)]
pub(crate) struct Login {
    nonce: Nonce,
    stage: Stage,
    user: Option<usize>,
    /// The name as given, for the error.
    pub name: Vec<u8>,
    /// Nobody can listen in: a Unix socket, or the loopback interface.
    pub(crate) secure: bool,
    /// It is a change of user: what the connection goes back to where a server lets it live on.
    pub(crate) before: Option<Before>,
}

impl Login {
    /// An exchange about `nonce`. `secure`: nobody can listen in.
    #[must_use]
    pub(crate) fn new(nonce: Nonce, secure: bool) -> Login {
        let stage = Stage::Answer(Plugin::Native);
        Login {
            nonce,
            stage,
            user: None,
            name: Vec::new(),
            secure,
            before: None,
        }
    }

    /// The first answer: a name, and mostly a proof in the plugin that the client chose. `fresh`
    /// is a nonce in case another plugin is wanted, `seq` the number of our next packet.
    #[must_use]
    pub(crate) fn begin(
        &mut self,
        door: &Door<'_>,
        login: &handshake::Login<'_>,
        fresh: Nonce,
        seq: u8,
    ) -> Outcome {
        self.name = login.user.to_vec();
        self.user = door
            .users
            .iter()
            .position(|user| user.name.as_bytes() == login.user);
        let given = if login.plugin.is_empty() {
            Some(Plugin::Native)
        } else {
            Plugin::from_name(login.plugin)
        };
        let wanted = self.user.and_then(|user| door.users[user].plugin);
        match (given, wanted) {
            (Some(given), None) => {
                self.stage = Stage::Answer(given);
                self.answer(door, login.answer, seq)
            }
            (Some(given), Some(wanted)) if given == wanted => {
                self.stage = Stage::Answer(given);
                self.answer(door, login.answer, seq)
            }
            (_, wanted) => self.switch(wanted.unwrap_or(Plugin::Native), fresh, seq),
        }
    }

    /// Begins a change of user on a connection that stands: always with a new nonce.
    #[must_use]
    pub(crate) fn change(
        &mut self,
        door: &Door<'_>,
        name: &[u8],
        fresh: Nonce,
        seq: u8,
    ) -> Outcome {
        self.name = name.to_vec();
        self.user = door
            .users
            .iter()
            .position(|user| user.name.as_bytes() == name);
        let wanted = self.user.and_then(|user| door.users[user].plugin);
        self.switch(wanted.unwrap_or(Plugin::Native), fresh, seq)
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
    pub(crate) fn answer(&mut self, door: &Door<'_>, answer: &[u8], seq: u8) -> Outcome {
        match self.stage {
            Stage::Answer(Plugin::Native) => {
                let right = self.verifier(door).is_some_and(|verifier| {
                    if verifier.empty {
                        answer.is_empty()
                    } else {
                        native::verify(answer, &self.nonce, &verifier.native)
                    }
                });
                self.verdict(right, Vec::new(), seq, !answer.is_empty())
            }
            Stage::Answer(Plugin::CachingSha2) => self.answer_sha2(door, answer, seq),
            Stage::Password => self.answer_password(door, answer, seq),
        }
    }

    fn verifier<'d>(&self, door: &Door<'d>) -> Option<&'d Verifier> {
        self.user.map(|user| &door.users[user].verifier)
    }

    fn verdict(&self, right: bool, out: Vec<u8>, seq: u8, with_password: bool) -> Outcome {
        match self.user {
            Some(user) if right => Outcome::Welcome(user, out, seq),
            _ => Outcome::Denied(seq, with_password),
        }
    }

    fn answer_sha2(&mut self, door: &Door<'_>, answer: &[u8], seq: u8) -> Outcome {
        let verifier = self.verifier(door);
        if answer.is_empty() {
            return self.verdict(verifier.is_some_and(|v| v.empty), Vec::new(), seq, false);
        }
        let learnt = self
            .user
            .and_then(|user| door.learnt.borrow().get(&user).copied());
        let known = verifier.and_then(|v| v.sha2).or(learnt);
        if known.is_some_and(|known| caching_sha2::verify(answer, &self.nonce, &known)) {
            let mut out = Vec::new();
            put_short(&mut out, seq, |out| {
                out.extend_from_slice(&[AUTH_MORE, FAST_AUTH_OK])
            });
            return self.verdict(true, out, seq.wrapping_add(1), true);
        }
        // As a server does, also when the answer is wrong: clients exist whose quick answer is
        // never right, and who count on this.
        self.stage = Stage::Password;
        let mut out = Vec::new();
        put_short(&mut out, seq, |out| {
            out.extend_from_slice(&[AUTH_MORE, FULL_AUTH])
        });
        Outcome::Send(out)
    }

    fn answer_password(&mut self, door: &Door<'_>, answer: &[u8], seq: u8) -> Outcome {
        if answer == [REQUEST_PUBLIC_KEY] {
            let mut out = Vec::new();
            put_short(&mut out, seq, |out| {
                out.push(AUTH_MORE);
                out.extend_from_slice(door.keys.public_pem());
            });
            return Outcome::Send(out);
        }
        let password = match answer.split_last() {
            Some((0, password)) if self.secure => Some(password.to_vec()),
            _ => door.keys.decrypt(answer, &self.nonce),
        };
        let verifier = self.verifier(door);
        let right = password
            .as_ref()
            .zip(verifier)
            .is_some_and(|(password, verifier)| {
                !verifier.empty && native::stored(password) == verifier.native
            });
        if let (true, Some(user), Some(password)) = (right, self.user, password) {
            door.learnt
                .borrow_mut()
                .insert(user, caching_sha2::cached(&password));
        }
        self.verdict(right, Vec::new(), seq, true)
    }
}

#[cfg(test)]
mod tests;
