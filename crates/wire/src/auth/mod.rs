//! Authentication: proving a password without sending it.
//!
//! Both plugins are challenge and response over a nonce of 20 bytes. The pool stands on both
//! sides: it checks its clients' answers and answers its servers' challenges. Passwords and nonces
//! are arguments; nothing here is random but the padding of RSA, which the library makes.

pub mod caching_sha2;
pub mod native;
pub mod sha2_stored;

use aws_lc_rs::digest;

/// Bytes in a nonce (the trailing NUL of the greeting not counted).
pub const NONCE_LEN: usize = 20;

/// A challenge.
pub type Nonce = [u8; NONCE_LEN];

/// An authentication plugin that both sides of this crate speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plugin {
    /// `mysql_native_password`, SHA-1.
    Native,
    /// `caching_sha2_password`, SHA-256, with RSA or a secure transport for the first login.
    CachingSha2,
}

impl Plugin {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Plugin::Native => "mysql_native_password",
            Plugin::CachingSha2 => "caching_sha2_password",
        }
    }

    /// The plugin of a name on the wire.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Plugin> {
        [Plugin::Native, Plugin::CachingSha2]
            .into_iter()
            .find(|p| p.name().as_bytes() == name)
    }

    /// The answer to `nonce`; empty for an empty password, as both plugins have it.
    #[must_use]
    pub fn answer(self, password: &[u8], nonce: &Nonce) -> Vec<u8> {
        match self {
            _ if password.is_empty() => Vec::new(),
            Plugin::Native => native::answer(password, nonce).to_vec(),
            Plugin::CachingSha2 => caching_sha2::answer(password, nonce).to_vec(),
        }
    }
}

/// SHA-256 of all parts, one behind the other.
fn sha256<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> [u8; digest::SHA256_OUTPUT_LEN] {
    let mut context = digest::Context::new(&digest::SHA256);
    parts.into_iter().for_each(|part| context.update(part));
    let mut hash = [0; digest::SHA256_OUTPUT_LEN];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// Proof that an account logs in with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Credential<'a> {
    /// The password; empty for none. It serves with both plugins.
    Password(&'a [u8]),
    /// SHA1(password), which serves with `mysql_native_password` alone.
    Native(&'a native::Once),
    /// SHA256(password), which serves with `caching_sha2_password` where the server has cached it.
    CachingSha2(&'a caching_sha2::Once),
}

impl Credential<'_> {
    /// The plugin for which it is meant, if it serves with one only.
    #[must_use]
    pub fn plugin(self) -> Option<Plugin> {
        match self {
            Credential::Password(_) => None,
            Credential::Native(_) => Some(Plugin::Native),
            Credential::CachingSha2(_) => Some(Plugin::CachingSha2),
        }
    }

    /// The answer to `nonce`; `None` where it does not serve with this plugin.
    #[must_use]
    pub fn answer(self, plugin: Plugin, nonce: &Nonce) -> Option<Vec<u8>> {
        match (self, plugin) {
            (Credential::Password(password), _) => Some(plugin.answer(password, nonce)),
            (Credential::Native(once), Plugin::Native) => {
                Some(native::answer_by(once, nonce).to_vec())
            }
            (Credential::CachingSha2(once), Plugin::CachingSha2) => {
                Some(caching_sha2::answer_by(once, nonce).to_vec())
            }
            _ => None,
        }
    }
}

/// `a` and `b` differ nowhere; takes as long wherever they differ.
fn equal(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

fn xor<const N: usize>(a: [u8; N], b: &[u8; N]) -> [u8; N] {
    std::array::from_fn(|i| a[i] ^ b[i])
}
