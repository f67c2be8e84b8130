//! Credentials of connections, and failed logins as errors of this crate.
//!
//! The exchange itself is `wire`'s. Here stand the capabilities that a connection under load wants,
//! and the change of its errors into a [`Fault`], which counts them by number.

use crate::errors::Fault;
use crate::transport::Security;
use reactor::Address;
use wire::auth::Credential;
use wire::capabilities as cap;
use wire::client_login::{Account, COLLATION, LoginError};
use wire::dsn::{Dsn, UNPROTECTED_REMEDY};
use wire::reply::ErrPacket;

/// Capabilities that are asked of the server. Session tracking is left out: nothing here would read
/// it.
const WANTED: u32 = cap::LONG_PASSWORD
    | cap::LONG_FLAG
    | cap::CONNECT_WITH_DB
    | cap::PROTOCOL_41
    | cap::TRANSACTIONS
    | cap::SECURE_CONNECTION
    | cap::MULTI_STATEMENTS
    | cap::MULTI_RESULTS
    | cap::PS_MULTI_RESULTS
    | cap::PLUGIN_AUTH
    | cap::PLUGIN_AUTH_LENENC_DATA
    | cap::DEPRECATE_EOF;

/// Capabilities without which there is no login.
const REQUIRED: u32 =
    cap::PROTOCOL_41 | cap::SECURE_CONNECTION | cap::PLUGIN_AUTH | cap::DEPRECATE_EOF;

/// Credentials, for all connections alike.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The target: account, schema, and the key that may encrypt the password.
    target: Dsn,
    /// True if nobody outside of this host can answer in the server's place.
    is_here: bool,
    /// True if the protocol is to be compressed.
    pub compresses: bool,
    /// Security of a connection before the login.
    pub security: Security,
}

impl Credentials {
    /// Credentials for servers at these addresses.
    pub fn of<'a>(dsn: &Dsn, mut addresses: impl Iterator<Item = &'a Address>) -> Credentials {
        Credentials {
            target: dsn.clone(),
            is_here: addresses.all(Address::is_here),
            compresses: false,
            security: Security::Plain,
        }
    }

    /// Credentials with the compressed protocol, which the server then has to offer.
    #[must_use]
    pub fn compressing(self, compresses: bool) -> Credentials {
        Credentials { compresses, ..self }
    }

    /// Credentials over connections with this security.
    #[must_use]
    pub fn securing(self, security: Security) -> Credentials {
        let secured = Credentials { security, ..self };
        let wanted = secured.account().wanted;
        Credentials {
            security: secured.security.asking(wanted),
            ..secured
        }
    }

    /// Credentials in the form that the login exchange takes.
    pub fn account(&self) -> Account<'_> {
        let compress = if self.compresses { cap::COMPRESS } else { 0 };
        let wanted_tls = match self.security {
            Security::Plain => 0,
            Security::Tls(_) => cap::SSL,
        };
        let required_tls = if self.security.is_required() {
            cap::SSL
        } else {
            0
        };
        Account {
            user: self.target.user.as_bytes(),
            credential: Credential::Password(self.target.password.as_bytes()),
            schema: self.target.schema.as_bytes(),
            // Over a Unix socket nobody can listen.
            private: self.target.socket.is_some(),
            wanted: WANTED | compress | wanted_tls,
            extended: 0,
            required: REQUIRED | compress | required_tls,
            collation: COLLATION,
            server_key: self.target.server_key(self.is_here),
        }
    }
}

impl From<LoginError> for Fault {
    fn from(error: LoginError) -> Fault {
        match &error {
            LoginError::Refused {
                code,
                state,
                message,
            } => Fault::server(&ErrPacket {
                code: *code,
                state,
                message,
            }),
            LoginError::Unprotected => Fault::protocol(format!("{error}; {UNPROTECTED_REMEDY}")),
            _ => Fault::protocol(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::client_login::{ClientLogin, ServerKey};

    /// The fault that a first packet brings about.
    fn fault(payload: &[u8]) -> Fault {
        let dsn = Dsn::parse("mysql://app:secret@h/shop").unwrap();
        let who = Credentials::of(&dsn, [].iter());
        let mut login = ClientLogin::new();
        let error = login.on_packet(&who.account(), 0, payload, &mut Vec::new());
        error.unwrap_err().into()
    }

    #[test]
    fn a_refusal_keeps_number_state_and_words() {
        let refused = fault(b"\xff\x15\x04#28000Access denied");
        assert_eq!((refused.code, &*refused.sqlstate), (1045, "28000"));
        assert_eq!(refused.message, "Access denied");
        let garbled = fault(b"\x09old");
        assert_eq!(garbled.code, 2027);
        assert!(
            garbled.message.starts_with("from the server: "),
            "{}",
            garbled.message
        );
    }

    #[test]
    fn a_server_on_another_host_is_not_asked_for_its_key() {
        let dsn = Dsn::parse("mysql://app@h/shop").unwrap();
        let at = |text: &str| Address::parse(text).unwrap();
        for (last, key) in [("/s", ServerKey::Sent), ("192.0.2.1:1", ServerKey::None)] {
            let who = Credentials::of(&dsn, [&at("127.0.0.1:1"), &at(last)].into_iter());
            assert_eq!(who.account().server_key, key);
        }
        let words = Fault::from(LoginError::Unprotected).message;
        assert!(words.contains("server_public_key=FILE"), "{words}");
    }

    #[test]
    fn a_socket_is_private_and_an_address_is_not() {
        for (place, private) in [("@h/shop", false), ("@/shop?socket=/s", true)] {
            let dsn = Dsn::parse(&format!("mysql://app{place}")).unwrap();
            let who = Credentials::of(&dsn, [].iter());
            let account = who.account();
            assert_eq!((account.private, account.schema), (private, &b"shop"[..]));
            assert_eq!(account.wanted & cap::SESSION_TRACK, 0);
        }
    }
}
