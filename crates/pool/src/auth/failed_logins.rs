//! Logins that fail: what the client hears of it, when, and what the log says.
//!
//! The problem: a wrong password, an account that lets nobody in and a workers' queue that is full
//! all end in one error, whose words, delay and line in the log hang together: who guesses must
//! learn no more than from the server, and wait for it. The mechanism: each is judged here, with
//! what its address has earned ([`crate::auth::auth_failures`]), into a [`Denial`]; one that is
//! held back waits in [`AuthDelays`] until its moment.
//!
//! Invariant: who waits for its error is in state *Delayed*, and whoever is in that state waits
//! here.

use crate::auth::auth_delay::{After, AuthDelays, Delayed};
use crate::auth::auth_failures::{FREE, delay_at};
use crate::auth::login::OTHER_KEY;
use crate::auth::password_checks::{CheckQueue, Full};
use crate::backend::pool_members::Bar;
use crate::client::clients::Clients;
use crate::client::{Client, ClientState};
use crate::errors::reasons::Refusal;
use crate::group::shared::Shared;
use crate::group::tokens::ClientId;
use crate::observe::audit::{Happened, end};
use crate::observe::figures::counts::Counts;
use crate::observe::identity::ClientIdentity;
use crate::observe::limited_log::LimitedLog;
use crate::server::facts::ServerFacts;
use reactor::Net;
use reactor::tls_errors::{alert_words, plain};
use rustls::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;
use wire::errors::{ACCESS_DENIED, ErrorCode, WRONG_VALUE_FOR_VAR};
use wire::reply::put_err;

/// Log message for a password that came encrypted with a key that is not the pool's.
const OTHER_KEY_HINT: &str = "; the password came encrypted with another RSA key than the pool's, \
     as that which SHOW STATUS tells of the server: let the client take the key that the login \
     gives (--get-server-public-key, allowPublicKeyRetrieval=true, no server_public_key), or use \
     TLS";
/// Log message for a client that was asked for its password without TLS, and went.
const GONE: &str = "the client went when it was asked for its password (caching_sha2_password), \
     which MySQL's clients send under TLS alone (error 2061): let it use TLS (tls.mode, [tls] cert \
     and key), or take the pool's RSA key (--get-server-public-key, allowPublicKeyRetrieval=true); \
     an account with password in place of password_hash is asked for a wrong one alone";

/// The clients of a group, and what their failed logins come to.
pub(crate) struct FailedLogins<'a, N: Net> {
    pub(crate) net: &'a mut N,
    pub(crate) shared: &'a Shared,
    /// The group's number.
    pub(crate) index: usize,
    pub(crate) clients: &'a mut Clients<N::Sock>,
    pub(crate) counts: &'a mut Counts,
    pub(crate) log: &'a mut LimitedLog,
    pub(crate) delays: &'a mut AuthDelays,
}

/// The error for a login that failed, and how long it is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) error: ErrorCode,
    pub(crate) text: String,
    pub(crate) delay: Duration,
    /// Reason as a word.
    pub(crate) reason: &'static str,
}

/// Moment at which a client gets its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Now; then its connection ends.
    AtOnce,
    /// Later, when its moment has come, or never.
    Later,
}

impl ServerFacts {
    /// A login or a change of user in a character set that no client may speak is refused in the
    /// server's words. Servers do so before they look at the password.
    pub(crate) fn refuses_charset(&self, collation: Option<u16>) -> Option<Denial> {
        let charset = self.refused_charsets.get(&collation?)?;
        let charset = String::from_utf8_lossy(charset);
        Some(Denial {
            error: WRONG_VALUE_FOR_VAR,
            text: format!(
                "Variable 'character_set_client' can't be set to the value of '{charset}'"
            ),
            delay: Duration::ZERO,
            reason: "charset",
        })
    }
}

/// Writes a login that has failed, or a change of user, into the audit trail.
pub(crate) fn audit<N: Net>(
    client: &Client<N::Sock>,
    net: &N,
    shared: &Shared,
    why: (u16, &'static str),
) {
    let name = client.login.as_deref().map_or(&[][..], |login| &login.name);
    (shared.records).note_for_audit(|| Happened::at_login(client, net, name, Some(why)));
}

impl<N: Net> FailedLogins<'_, N> {
    /// Says why a connection cannot stay, in place of the greeting.
    pub(crate) fn turn_away(&mut self, sock: &N::Sock, refusal: &Refusal) {
        let peer = self.net.peer(sock);
        self.count_refused(&ClientIdentity::at(peer), refusal);
        let mut out = Vec::new();
        put_err(&mut out, 0, refusal.code(), &refusal.to_string());
        let _ = self.net.write(sock, &out);
        let why = (refusal.code().code, refusal.name());
        (self.shared.records).note_for_audit(|| Happened::turned_away(peer, why));
    }

    /// Counts and notes a refusal that is answered by nobody who does.
    fn count_refused(&mut self, identity: &ClientIdentity, refusal: &Refusal) {
        self.counts.refused += 1;
        *self.counts.refusals.entry(refusal.name()).or_default() += 1;
        let (refusals, now) = (&self.shared.records.refusals, self.net.now());
        refusals.note(identity, refusal.name(), &refusal.to_string(), now);
        self.log.login_refused(now, identity, refusal);
    }

    /// Logs that a client was turned away, if it had not logged in before.
    pub(crate) fn note_refused(&mut self, key: ClientId, refusal: &Refusal) {
        let client = self.clients.get(key);
        if let Some(client) = client.filter(|client| !client.identity.is_known()) {
            let identity = ClientIdentity::before_login(client, &*self.net);
            self.log.login_refused(self.net.now(), &identity, refusal);
        }
    }

    /// Closes a connection whose TLS has failed, and counts and audits the refusal if the client
    /// was not known yet. The alert has told the client.
    pub(crate) fn tls_failed(&mut self, key: ClientId, error: &io::Error) {
        let client = self.clients.get(key);
        if error.kind() == ErrorKind::InvalidData
            && let Some(client) = client.filter(|client| !client.identity.is_known())
        {
            let refusal = Refusal::Tls(words_of(error));
            let why = (refusal.code().code, refusal.name());
            audit(client, &*self.net, self.shared, why);
            let identity = ClientIdentity::before_login(client, &*self.net);
            self.count_refused(&identity, &refusal);
        }
        self.clients.close_for(key, end::of(error));
    }

    /// Queues a client's encrypted password for a worker, or returns the reason not to. A client
    /// without a proof is closed.
    pub(crate) fn check(&mut self, key: ClientId, answer: &[u8]) -> Option<Denial> {
        let now = self.net.now();
        let client = self.clients.get_mut(key)?;
        let address = client.transport.peer(self.net).map(|peer| peer.ip());
        let Some((login, proof)) = (client.login.as_mut()).and_then(|login| {
            let proof = login.proof()?;
            Some((login, proof))
        }) else {
            self.clients.close_later(key);
            return None;
        };
        // Counted as failed until it is right, so that many at once are noticed as well.
        let level = self.shared.logins.failures.note(address, now);
        let queue = match level > FREE {
            true => CheckQueue::Suspect,
            false => CheckQueue::Prompt,
        };
        let from = (self.index, key);
        match self.shared.jobs.checks.submit(queue, answer, from, proof) {
            Ok(waits) => {
                login.waits = Some(waits);
                self.clients.enter(key, ClientState::Verifying, now);
                None
            }
            Err(Full { waiting }) => {
                let refusal = Refusal::PasswordChecks { waiting };
                let identity = ClientIdentity::before_login(client, &*self.net);
                self.count_refused(&identity, &refusal);
                Some(Denial {
                    error: refusal.code(),
                    text: refusal.to_string(),
                    delay: delay_at(level),
                    reason: refusal.name(),
                })
            }
        }
    }

    /// Denies a login whose name is not proven, or barred (`bar`), with a server's error in its own
    /// words.
    pub(crate) fn deny(
        &mut self,
        key: ClientId,
        name: &[u8],
        with_password: bool,
        bar: Option<Bar>,
    ) -> Option<Denial> {
        self.counts.denied += 1;
        let now = self.net.now();
        let client = self.clients.get(key)?;
        let peer = client.transport.peer(self.net);
        let address = peer.map(|peer| peer.ip());
        // Who has proven the password guesses nothing.
        let level = match &bar {
            Some(Bar::Refused { .. }) => 0,
            _ => self.shared.logins.failures.note(address, now),
        };
        let host = match address {
            Some(host) if !host.is_loopback() || !self.shared.server.names_hosts => {
                host.to_string()
            }
            _ => "localhost".to_string(),
        };
        let reason = match client.login.as_ref().is_some_and(|login| login.is_listed()) {
            true => bar.as_ref().map_or("wrong-password", Bar::reason),
            false => "unknown-user",
        };
        let using = if with_password { "YES" } else { "NO" };
        let shown = String::from_utf8_lossy(name);
        let (error, text) = match bar {
            Some(Bar::Refused { error, text, .. }) => (
                error,
                text.replace("{name}", &shown).replace("{host}", &host),
            ),
            _ => (
                ACCESS_DENIED,
                format!("Access denied for user '{shown}'@'{host}' (using password: {using})"),
            ),
        };
        let hint = match reason {
            OTHER_KEY => OTHER_KEY_HINT,
            _ => "",
        };
        let told = format!("{text}{hint}");
        let identity = ClientIdentity {
            account: Some(name.to_vec()),
            ..ClientIdentity::before_login(client, &*self.net)
        };
        (self.shared.records.refusals).note(&identity, reason, &told, now);
        self.log.login_failed(now, &identity, reason, &told);
        Some(Denial {
            error,
            text,
            delay: delay_at(level),
            reason,
        })
    }

    /// Notes that a client that logs in has gone. Where it was asked for its password without TLS,
    /// it may have gone for that: clients say so to their users (error 2061), and to nobody else.
    pub(crate) fn note_gone(&mut self, key: ClientId) {
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let asked = client.login.as_deref();
        let asked = asked.filter(|login| login.is_asked_without_tls());
        if let (ClientState::Proving, Some(login)) = (client.state(), asked) {
            let (now, reason) = (self.net.now(), "secure-transport");
            let identity = ClientIdentity {
                account: Some(login.name.clone()),
                ..ClientIdentity::before_login(client, &*self.net)
            };
            (self.shared.records.refusals).note(&identity, reason, GONE, now);
            self.log.login_failed(now, &identity, reason, GONE);
            audit(
                client,
                &*self.net,
                self.shared,
                (ACCESS_DENIED.code, reason),
            );
        }
    }

    /// Holds a client's error back; nothing else of it is looked at until then. Of those that end
    /// their connection, one without a delay, or for which there is no room, is heard at once.
    pub(crate) fn hold_back(&mut self, key: ClientId, after: After, denial: &Denial) -> Heard {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return Heard::Later;
        };
        // Its words are never on a backend.
        if after == After::NextCommand {
            client.session.last.lose_conditions();
        }
        let at_once = denial.delay == Duration::ZERO || self.delays.is_full();
        if after == After::End && at_once {
            return Heard::AtOnce;
        }
        if !client.change_state(ClientState::Delayed, now) {
            self.clients.close_later(key);
            return Heard::Later;
        }
        let delayed = Delayed {
            key,
            after,
            error: denial.error,
            text: denial.text.as_str().into(),
        };
        self.delays.push(now + denial.delay, delayed);
        Heard::Later
    }

    /// One who is to hear its error now, and is between statements if it stays.
    pub(crate) fn next_due(&mut self) -> Option<Delayed> {
        let now = self.net.now();
        loop {
            let delayed = self.delays.pop(now)?;
            let client = self.clients.get_mut(delayed.key);
            let Some(client) = client.filter(|client| client.state() == ClientState::Delayed)
            else {
                continue;
            };
            if delayed.after == After::NextCommand && !client.change_state(ClientState::Idle, now) {
                self.clients.close_later(delayed.key);
                continue;
            }
            return Some(delayed);
        }
    }
}

/// Reason of a failed handshake, with whose fault it is.
fn words_of(error: &io::Error) -> String {
    let inner = error.get_ref();
    match inner.and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::AlertReceived(alert)) => format!(
            "the client refused it with the alert {}; look at what the client verifies (CA, host \
             name), and whether tls.cert has the whole chain",
            alert_words(*alert)
        ),
        Some(Error::InvalidCertificate(why)) => format!(
            "the client's certificate is not accepted ({why}); look at its authority in \
             tls.client_ca, its validity, and whether it may be used by clients"
        ),
        Some(Error::NoCertificatesPresented) => "the client has shown no certificate, which \
             tls.client_cert requires; give it one (--ssl-cert, --ssl-key)"
            .into(),
        Some(Error::PeerIncompatible(what)) => format!(
            "the client and the pool have no way in common ({}); the pool speaks TLS 1.2 with \
             ECDHE and AEAD, and TLS 1.3",
            plain(what)
        ),
        Some(Error::InvalidMessage(what)) => {
            format!("what the client sent is no TLS ({})", plain(what))
        }
        Some(error) => error.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::login::Login;
    use crate::client::Client;
    use crate::client::buffers::transport::Transport;
    use crate::group::scripted::{Scripted, shared};
    use reactor::Time;
    use std::rc::Rc;
    use wire::auth::NONCE_LEN;

    const SECOND: Duration = Duration::from_secs(1);

    struct Bench {
        net: Scripted,
        shared: Shared,
        clients: Clients<()>,
        counts: Counts,
        log: LimitedLog,
        delays: AuthDelays,
    }

    impl Bench {
        /// Bench with a client that is logging in from 192.0.2.7.
        fn new() -> (Bench, ClientId) {
            let net = Scripted {
                peer: Some("192.0.2.7:4000".parse().unwrap()),
                ..Scripted::default()
            };
            let login = Login::new([0; NONCE_LEN], false);
            let transport = Transport::plain((), false);
            let mut clients = Clients::default();
            let client = Client::greeted(transport, Time(1), Rc::default(), login);
            let key = clients.insert(client);
            let bench = Bench {
                net,
                shared: shared(""),
                clients,
                counts: Counts::default(),
                log: LimitedLog::default(),
                delays: AuthDelays::default(),
            };
            (bench, key)
        }

        fn logins(&mut self) -> FailedLogins<'_, Scripted> {
            FailedLogins {
                net: &mut self.net,
                shared: &self.shared,
                index: 0,
                clients: &mut self.clients,
                counts: &mut self.counts,
                log: &mut self.log,
                delays: &mut self.delays,
            }
        }

        fn state(&self, key: ClientId) -> ClientState {
            self.clients.get(key).unwrap().state()
        }
    }

    fn denial(delay: Duration) -> Denial {
        Denial {
            error: ACCESS_DENIED,
            text: "no".into(),
            delay,
            reason: "wrong-password",
        }
    }

    #[test]
    fn a_wrong_password_is_denied_in_the_servers_words_and_guessing_gets_slower() {
        let (mut bench, key) = Bench::new();
        let first = bench.logins().deny(key, b"app", true, None).unwrap();
        let text = "Access denied for user 'app'@'192.0.2.7' (using password: YES)";
        assert_eq!((first.error, &*first.text), (ACCESS_DENIED, text));
        assert_eq!(first.delay, Duration::ZERO);
        let mut last = first;
        for _ in 0..=FREE {
            last = bench.logins().deny(key, b"app", false, None).unwrap();
        }
        assert!(last.delay > Duration::ZERO);
        assert_eq!(bench.counts.denied, FREE + 2);
    }

    #[test]
    fn who_has_proven_its_password_is_told_why_and_guesses_nothing() {
        let (mut bench, key) = Bench::new();
        for _ in 0..=2 * FREE {
            let bar = Bar::Refused {
                reason: "locked",
                error: wire::errors::ACCOUNT_LOCKED,
                text: "{name} from {host} is locked".into(),
            };
            let denial = bench.logins().deny(key, b"app", true, Some(bar)).unwrap();
            assert_eq!(denial.text, "app from 192.0.2.7 is locked");
            assert_eq!(denial.delay, Duration::ZERO);
        }
    }

    #[test]
    fn an_error_is_heard_at_its_moment() {
        let (mut bench, key) = Bench::new();
        let now = denial(Duration::ZERO);
        let held = bench.logins().hold_back(key, After::End, &now);
        assert_eq!(
            (held, bench.state(key)),
            (Heard::AtOnce, ClientState::Greeted)
        );
        let later = denial(SECOND);
        let held = bench.logins().hold_back(key, After::End, &later);
        assert_eq!(
            (held, bench.state(key)),
            (Heard::Later, ClientState::Delayed)
        );
        assert_eq!(bench.logins().next_due(), None);
        bench.net.now = bench.net.now + SECOND;
        let due = bench.logins().next_due().unwrap();
        assert_eq!((due.key, &*due.text), (key, "no"));
        assert_eq!(bench.logins().next_due(), None, "once");
    }

    #[test]
    fn who_stays_is_between_statements_when_it_hears_and_who_has_left_hears_nothing() {
        let (mut bench, key) = Bench::new();
        let none = denial(Duration::ZERO);
        let held = bench.logins().hold_back(key, After::NextCommand, &none);
        assert_eq!(
            held,
            Heard::Later,
            "its place is behind what is due already"
        );
        assert!(bench.logins().next_due().is_some());
        assert_eq!(bench.state(key), ClientState::Idle);
        let held = bench.logins().hold_back(key, After::NextCommand, &none);
        assert_eq!(held, Heard::Later);
        bench.clients.remove(key);
        assert_eq!(bench.logins().next_due(), None);
    }

    #[test]
    fn who_is_turned_away_gets_the_error_as_its_first_packet() {
        let (mut bench, _) = Bench::new();
        bench.logins().turn_away(&(), &Refusal::Draining);
        assert_eq!(bench.net.written[3..5], [0, wire::reply::ERR]);
        assert_eq!(bench.counts.refusals[Refusal::Draining.name()], 1);
    }
}
