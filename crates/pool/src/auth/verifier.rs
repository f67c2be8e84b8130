//! Verifiers of passwords: enough to check an answer, and no more.
//!
//! From the password itself both plugins can be checked at once. From the hash of `mysql.user` only
//! `mysql_native_password` can; the other plugin's hash is learnt from a full authentication and
//! kept elsewhere (`accounts.rs`). The settings make one for each user, and the watch one for each
//! account of the server.

use std::sync::Arc;
use wire::auth::Plugin;
use wire::auth::caching_sha2::{self, Cached};
use wire::auth::native::{self, Stored};
use wire::auth::sha2_stored::{StoredHash, Work};

/// The hash of no password that anybody knows.
const OF_NOBODY: Stored = [0; native::HASH_LEN];

/// Verifier of a user's password.
#[derive(Clone, Debug)]
pub struct Verifier {
    pub(crate) native: Stored,
    pub(crate) sha2: Option<Cached>,
    pub(crate) empty: bool,
    /// A server's hash for `caching_sha2_password`, which takes milliseconds to check.
    pub(crate) slow: Option<Arc<StoredHash>>,
}

impl Verifier {
    /// True if both are of one password, as far as settings can say.
    pub(crate) fn is_like(&self, other: &Verifier) -> bool {
        let of = |verifier: &Verifier| (verifier.native, verifier.sha2, verifier.empty);
        of(self) == of(other)
    }

    /// Verifier of a password in clear: both plugins are quick.
    #[must_use]
    pub fn from_password(password: &[u8]) -> Verifier {
        Verifier {
            native: native::stored(password),
            sha2: Some(caching_sha2::cached(password)),
            empty: password.is_empty(),
            slow: None,
        }
    }

    /// Verifier of a hash in `mysql.user`: `caching_sha2_password` needs a full authentication
    /// first.
    #[must_use]
    pub fn from_native_hash(native: Stored) -> Verifier {
        Verifier {
            native,
            sha2: None,
            empty: false,
            slow: None,
        }
    }

    /// No password proves it.
    pub(crate) fn of_nobody() -> Verifier {
        Verifier::from_native_hash(OF_NOBODY)
    }

    /// Verifier of what a server stores for this plugin. One of no valid hash accepts nothing, as
    /// on the server.
    pub(crate) fn from_stored(plugin: Plugin, stored: &[u8]) -> Verifier {
        if stored.is_empty() {
            return Verifier::from_password(b"");
        }
        match plugin {
            Plugin::Native => {
                let hash = std::str::from_utf8(stored).ok();
                let hash = hash.and_then(native::stored_from_text);
                hash.map_or_else(Verifier::of_nobody, Verifier::from_native_hash)
            }
            Plugin::CachingSha2 => Verifier {
                slow: StoredHash::parse(stored).map(Arc::new),
                ..Verifier::of_nobody()
            },
        }
    }

    /// Work of a check besides some microseconds; `None`: nothing.
    pub(crate) fn work(&self) -> Option<Work> {
        self.slow.as_ref().map(|slow| slow.work())
    }

    /// True if a client that sends this password in full authentication has the right one.
    pub(crate) fn is_password(&self, password: &[u8]) -> bool {
        if let Some(slow) = &self.slow {
            return slow.is_of(password);
        }
        let same = native::stored(password) == self.native;
        same && !self.empty
    }
}
