//! A backend's login, from its connection to the first command: the exchange on its own socket.
//!
//! [`crate::backend::dial`] says what is answered; here packets are taken out of what has arrived,
//! and TLS is put over the socket where the server is asked for it. What follows is a
//! [`LoginStep`]: the group sends, prepares the backend, or gives it up.
//!
//! Invariant: whatever has come behind a greeting that is answered with a request for TLS is TLS.

use crate::backend::Backend;
use crate::backend::dial::DialStep;
use crate::backend::pools::{DialEnd, PoolKey};
use reactor::Net;
use std::io;
use wire::packet::{Frame, HEADER_LEN, frame};

/// Next step of a backend that logs in.
#[derive(Debug)]
pub(crate) enum LoginStep {
    /// Nothing to do before more has come.
    Wait,
    /// Bytes to send.
    Send(Vec<u8>),
    /// Complete login.
    In,
    /// Failure: a sentence, and how the dial has failed.
    Failed(String, DialEnd),
    /// Its connection cannot be read or written any more.
    Broken(io::Error),
}

impl<S> Backend<S> {
    /// Takes a packet of its login from what has arrived; how many bytes were used, and what
    /// follows.
    pub(crate) fn take_login<N: Net<Sock = S>>(
        &mut self,
        net: &mut N,
        key: &PoolKey,
        input: &[u8],
    ) -> (usize, LoginStep) {
        let Frame::Whole { total, last_seq } = frame(input) else {
            return (0, LoginStep::Wait);
        };
        let Some(dial) = &mut self.dial else {
            return (0, LoginStep::Wait);
        };
        match dial.packet(key, &input[HEADER_LEN..total], last_seq) {
            DialStep::BeginTls(request) => {
                let step = self.begin_tls(net, &request, &input[total..]);
                (input.len(), step)
            }
            step => (total, after(step)),
        }
    }

    /// Answers the greeting of a server with which TLS stands now, if that is its state.
    pub(crate) fn go_on_with_login(&mut self, key: &PoolKey) -> LoginStep {
        if self.transport.is_handshaking() {
            return LoginStep::Wait;
        }
        let step = self.dial.as_mut().and_then(|dial| dial.secured(key));
        step.map_or(LoginStep::Wait, after)
    }

    /// Asks for TLS, and begins it. `received` is what has come behind the greeting.
    fn begin_tls<N: Net<Sock = S>>(
        &mut self,
        net: &mut N,
        request: &[u8],
        received: &[u8],
    ) -> LoginStep {
        let tls = self.dial.as_ref().map(|dial| dial.begin_tls());
        let begun = match tls {
            None => Err(io::ErrorKind::Unsupported.into()),
            Some(tls) => tls.and_then(|tls| {
                let transport = &mut self.transport;
                transport.ask_for_tls(net, request, tls, received)
            }),
        };
        match begun {
            Ok(()) => LoginStep::Wait,
            Err(error) => LoginStep::Broken(error),
        }
    }
}

/// Next step behind one that begins no TLS.
fn after(step: DialStep) -> LoginStep {
    match step {
        DialStep::Send(out) => LoginStep::Send(out),
        DialStep::Wait => LoginStep::Wait,
        DialStep::In => LoginStep::In,
        DialStep::PasswordUnknown(why) => LoginStep::Failed(why, DialEnd::PasswordUnknown),
        DialStep::AccountFull(why) => LoginStep::Failed(why, DialEnd::AccountFull),
        DialStep::Failed(why, true) => LoginStep::Failed(why, DialEnd::Account),
        DialStep::Failed(why, false) => LoginStep::Failed(why, DialEnd::Answered),
        // A login asks for TLS behind the greeting alone.
        DialStep::BeginTls(_) => LoginStep::Broken(io::ErrorKind::Unsupported.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::scripted::Scripted;
    use reactor::Time;
    use std::rc::Rc;

    fn key() -> PoolKey {
        PoolKey::of_user("app")
    }

    fn backend() -> Backend<()> {
        Backend::of_tests(Time(0), Rc::default())
    }

    fn error(code: u16, text: &[u8]) -> Vec<u8> {
        let mut payload = vec![0xFF];
        payload.extend(code.to_le_bytes());
        payload.extend(b"#HY000");
        payload.extend(text);
        let mut packet = vec![u8::try_from(payload.len()).unwrap(), 0, 0, 0];
        packet.extend(payload);
        packet
    }

    #[test]
    fn half_a_packet_waits_for_the_rest() {
        let mut backend = backend();
        let packet = error(1040, b"Too many connections");
        let half = &packet[..packet.len() - 1];
        let (used, step) = backend.take_login(&mut Scripted::default(), &key(), half);
        assert!(used == 0 && matches!(step, LoginStep::Wait), "{step:?}");
    }

    #[test]
    fn a_refusal_says_whether_another_dial_soon_is_of_use() {
        let limited: &[u8] = b"User 'a' has exceeded the 'max_user_connections' resource";
        let cases: [(u16, &[u8], DialEnd); 5] = [
            (1040, b"no", DialEnd::Answered),
            (1045, b"no", DialEnd::Account),
            (1203, b"no", DialEnd::AccountFull),
            (1226, limited, DialEnd::AccountFull),
            (1226, b"'max_connections_per_hour'", DialEnd::Answered),
        ];
        for (code, words, expected) in cases {
            let mut backend = backend();
            let mut packet = error(code, words);
            packet.extend(b"more");
            let (used, step) = backend.take_login(&mut Scripted::default(), &key(), &packet);
            assert_eq!(used, packet.len() - 4, "what is behind it is not taken");
            assert!(
                matches!(&step, LoginStep::Failed(_, end) if *end == expected),
                "{step:?}"
            );
        }
    }

    #[test]
    fn who_has_not_asked_for_tls_has_nothing_to_go_on_with() {
        let step = backend().go_on_with_login(&key());
        assert!(matches!(step, LoginStep::Wait), "{step:?}");
    }
}
