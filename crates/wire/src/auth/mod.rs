//! Authentication: proving a password without sending it.
//!
//! Both plugins are challenge and response over a nonce of 20 bytes. The pooler stands on both
//! sides: it checks its clients' answers and answers its servers' challenges. Passwords and nonces
//! are arguments; nothing here is random but the padding of RSA, which the library makes.

pub mod caching_sha2;
pub mod native;

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

/// `a` and `b` differ nowhere; takes as long wherever they differ.
fn equal(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

fn xor<const N: usize>(a: [u8; N], b: &[u8; N]) -> [u8; N] {
    std::array::from_fn(|i| a[i] ^ b[i])
}
