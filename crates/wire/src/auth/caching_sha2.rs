//! `caching_sha2_password`: SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce).
//!
//! When a server has no cached hash of the user it asks for the password itself: in clear over a
//! secure transport (a Unix socket counts), otherwise XORed with the nonce and encrypted by the
//! server's RSA key (OAEP with SHA-1, as both servers have it).

use super::{NONCE_LEN, Nonce, equal, sha256, xor};
use crate::wiped::{Wiped, wipe};
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rsa::{
    KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    PrivateDecryptingKey, PublicEncryptingKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;

/// Bytes in an answer.
pub const HASH_LEN: usize = 32;
/// Client's request for the server's public key.
pub const REQUEST_PUBLIC_KEY: u8 = 2;
/// Server's word that it has verified the answer; OK follows.
pub const FAST_AUTH_OK: u8 = 3;
/// Server's request for the password itself.
pub const FULL_AUTH: u8 = 4;

const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";

/// SHA256(SHA256(password)), what a server caches.
pub type Cached = [u8; HASH_LEN];

/// SHA256(password): whoever has it can answer any nonce, where the server has it cached.
pub type Once = [u8; HASH_LEN];

/// The hash that a server caches for this password.
#[must_use]
pub fn cached(password: &[u8]) -> Cached {
    sha256([&sha256([password])[..]])
}

/// A client's answer to `nonce`.
#[must_use]
pub fn answer(password: &[u8], nonce: &Nonce) -> [u8; HASH_LEN] {
    answer_by(&once(password), nonce)
}

/// SHA256(password).
#[must_use]
pub fn once(password: &[u8]) -> Once {
    sha256([password])
}

/// The answer to `nonce` of who knows SHA256(password) only.
#[must_use]
pub fn answer_by(once: &Once, nonce: &Nonce) -> [u8; HASH_LEN] {
    xor(sha256([&sha256([&once[..]])[..], nonce]), once)
}

/// True if `answer` proves the password of `cached`.
#[must_use]
pub fn verify(answer: &[u8], nonce: &Nonce, cached: &Cached) -> bool {
    let Ok(answer) = <&[u8; HASH_LEN]>::try_from(answer) else {
        return false;
    };
    let once = xor(sha256([&cached[..], nonce]), answer);
    equal(&sha256([&once[..]]), cached)
}

/// XORs the password with its NUL with the nonce over and over.
fn mask(bytes: &mut [u8], nonce: &Nonce) {
    for (byte, masking) in bytes.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= masking;
    }
}

/// The password for a server, encrypted with its public key (PEM, as the server sends it).
///
/// # Errors
/// A sentence that says what is wrong with the key, or that the password is too long for it.
pub fn encrypt(password: &[u8], nonce: &Nonce, pem: &[u8]) -> Result<Vec<u8>, &'static str> {
    let der = der_from_pem(pem).ok_or("the server's public key is no PEM of a public key")?;
    const UNUSABLE: &str = "the server's public key is no RSA key that can be used";
    let key = PublicEncryptingKey::from_der(&der).map_err(|_| UNUSABLE)?;
    let key = OaepPublicEncryptingKey::new(key).map_err(|_| UNUSABLE)?;
    let mut masked = [password, &[0]].concat();
    mask(&mut masked, nonce);
    let masked = Wiped::from(masked);
    let mut out = vec![0; key.ciphertext_size()];
    let len = key
        .encrypt(&OAEP_SHA1_MGF1SHA1, &masked, &mut out, None)
        .map_err(|_| "the password is too long for the server's RSA key")?
        .len();
    out.truncate(len);
    Ok(out)
}

/// The longest file with a server's public key.
const KEY_FILE_MAX: u64 = 64 << 10;

/// A server's public key, in PEM, of a file.
///
/// # Errors
/// A sentence that says what is wrong with the file or the key.
pub fn key_of_file(path: &Path) -> Result<Vec<u8>, String> {
    let pem = files::bytes(path, KEY_FILE_MAX).map_err(|why| why.to_string())?;
    check_key(&pem)?;
    Ok(pem)
}

/// Checks a server's public key, in PEM.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn check_key(pem: &[u8]) -> Result<(), &'static str> {
    encrypt(b"", &[0; NONCE_LEN], pem).map(|_| ())
}

fn der_from_pem(pem: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(pem).ok()?;
    let body = text.split_once(PEM_BEGIN)?.1.split_once(PEM_END)?.0;
    STANDARD
        .decode(body.split_whitespace().collect::<String>())
        .ok()
}

/// The key pair with which clients send their password in full authentication.
#[derive(Debug)]
pub struct KeyPair {
    private: OaepPrivateDecryptingKey,
    pem: Vec<u8>,
}

impl KeyPair {
    /// Makes a key pair of 2048 bits; takes a good part of a second.
    ///
    /// # Errors
    /// A sentence when the library cannot make one.
    pub fn generate() -> Result<KeyPair, &'static str> {
        const FAILED: &str = "the cryptography library could not make an RSA key";
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).map_err(|_| FAILED)?;
        let der: PublicKeyX509Der<'_> = key.public_key().as_der().map_err(|_| FAILED)?;
        let encoded = STANDARD.encode(der.as_ref());
        let mut pem = format!("{PEM_BEGIN}\n");
        for line in encoded.as_bytes().chunks(64) {
            pem.extend(line.iter().map(|&b| char::from(b)));
            pem.push('\n');
        }
        pem.push_str(PEM_END);
        pem.push('\n');
        let private = OaepPrivateDecryptingKey::new(key).map_err(|_| FAILED)?;
        Ok(KeyPair {
            private,
            pem: pem.into_bytes(),
        })
    }

    /// The public key as a server sends it.
    #[must_use]
    pub fn public_pem(&self) -> &[u8] {
        &self.pem
    }

    /// True if these bytes can be a client's encrypted answer: they have the length of the key.
    #[must_use]
    pub fn may_decrypt(&self, answer: &[u8]) -> bool {
        answer.len() == self.private.key_size_bytes()
    }

    /// Decrypts a client's answer, still XORed with its nonce; `None` when it is not encrypted with
    /// this key. Takes about half a millisecond of a core, whatever the bytes are.
    #[must_use]
    pub fn decrypt(&self, answer: &[u8]) -> Option<Wiped> {
        let mut out = vec![0; self.private.min_output_size()];
        let plain = self
            .private
            .decrypt(&OAEP_SHA1_MGF1SHA1, answer, &mut out, None)
            .ok()
            .map(|plain| Wiped::from(&*plain));
        wipe(&mut out);
        plain
    }
}

/// The password in what a client had encrypted ([`KeyPair::decrypt`]); `None` when there is none.
#[must_use]
pub fn unmask(plain: &[u8], nonce: &Nonce) -> Option<Wiped> {
    let mut password = plain.to_vec();
    mask(&mut password, nonce);
    let end = password.pop();
    let password = Wiped::from(password);
    (end == Some(0)).then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: Nonce = *b"abcdefghij0123456789";

    #[test]
    fn an_answer_is_the_published_formula() {
        // Computed apart: XOR of hex(SHA256(pw)) and hex(SHA256(SHA256(SHA256(pw)), nonce)).
        let once = sha256([&b"secret"[..]]);
        let twice = sha256([&once[..]]);
        let mut joined = twice.to_vec();
        joined.extend_from_slice(&NONCE);
        let pad = sha256([&joined[..]]);
        let expected: Vec<u8> = once.iter().zip(pad).map(|(a, b)| a ^ b).collect();
        assert_eq!(answer(b"secret", &NONCE).to_vec(), expected);
    }

    #[test]
    fn only_the_right_password_with_the_right_nonce_passes() {
        let good = answer(b"secret", &NONCE);
        assert!(verify(&good, &NONCE, &cached(b"secret")));
        assert!(!verify(&good, &NONCE, &cached(b"Secret")));
        assert!(!verify(&good, b"abcdefghij012345678X", &cached(b"secret")));
        assert!(!verify(&good[..31], &NONCE, &cached(b"secret")));
    }

    #[test]
    fn rsa_carries_a_password_there_and_back() {
        let pair = KeyPair::generate().unwrap();
        let sent = encrypt(
            b"a longer pass phrase than the nonce",
            &NONCE,
            pair.public_pem(),
        )
        .unwrap();
        assert!(pair.may_decrypt(&sent) && !pair.may_decrypt(&sent[1..]));
        let plain = pair.decrypt(&sent).unwrap();
        let password = unmask(&plain, &NONCE).unwrap();
        assert_eq!(&password[..], b"a longer pass phrase than the nonce");
        assert_eq!(pair.decrypt(&sent[1..]), None);
        assert!(encrypt(b"x", &NONCE, b"no key").is_err());
    }
}
