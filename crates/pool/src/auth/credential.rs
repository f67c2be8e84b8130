//! Credentials of the pool's own logins at the server.
//!
//! Of a user in the settings that is its password. Of an account that is read from the server it is
//! what a client's own login has proven: SHA1(password) or SHA256(password), never the password.

use crate::auth::secret::Secret;
use serde::{Deserialize, Serialize};
use std::fmt;
use wire::auth::{caching_sha2, native};
use wire::wiped::wipe;

/// Credential of a backend's login. In a record for another process there is no password: an
/// account of the server, of which records are made, has the empty one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Credential {
    Password(#[serde(skip)] Secret),
    Native(native::Once),
    CachingSha2(caching_sha2::Once),
}

impl Credential {
    /// Form in which `wire` answers with it.
    pub(crate) fn as_wire(&self) -> wire::auth::Credential<'_> {
        match self {
            Credential::Password(password) => wire::auth::Credential::Password(password.as_bytes()),
            Credential::Native(once) => wire::auth::Credential::Native(once),
            Credential::CachingSha2(once) => wire::auth::Credential::CachingSha2(once),
        }
    }
}

impl Drop for Credential {
    fn drop(&mut self) {
        match self {
            // It does so itself.
            Credential::Password(_) => {}
            Credential::Native(once) => wipe(once),
            Credential::CachingSha2(once) => wipe(once),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_not_shown() {
        assert_eq!(format!("{:?}", Credential::Native([7; 20])), "***");
        assert_eq!(
            format!("{:?}", Some(Credential::CachingSha2([7; 32]))),
            "Some(***)"
        );
    }
}
