//! `mysql_native_password`: SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password))).
//!
//! A server stores SHA1(SHA1(password)) only; with it, it recovers SHA1(password) from an answer
//! and checks that its hash is the stored one.

use super::{Nonce, equal, sha256, xor};
use aws_lc_rs::digest;

/// Bytes in an answer and in a stored hash.
pub const HASH_LEN: usize = 20;

/// SHA1(SHA1(password)), what a server stores.
pub type Stored = [u8; HASH_LEN];

/// SHA1(password): whoever has it can answer any nonce.
pub type Once = [u8; HASH_LEN];

fn sha1(parts: &[&[u8]]) -> [u8; HASH_LEN] {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    parts.iter().for_each(|part| context.update(part));
    let mut hash = [0; HASH_LEN];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// The hash that a server stores for this password.
#[must_use]
pub fn stored(password: &[u8]) -> Stored {
    stored_from_once(&sha1(&[password]))
}

/// The stored hash, made from SHA1(password).
#[must_use]
pub fn stored_from_once(once: &Once) -> Stored {
    sha1(&[once])
}

/// Reads a stored hash as `mysql.user` shows it: `*` and 40 hexadecimal digits.
#[must_use]
pub fn stored_from_text(text: &str) -> Option<Stored> {
    let digits = text
        .strip_prefix('*')
        .filter(|d| d.len() == 2 * HASH_LEN && d.bytes().all(|d| d.is_ascii_hexdigit()))?;
    let mut hash = [0; HASH_LEN];
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(hash)
}

/// A client's answer to `nonce`.
#[must_use]
pub fn answer(password: &[u8], nonce: &Nonce) -> [u8; HASH_LEN] {
    answer_by(&sha1(&[password]), nonce)
}

/// The answer to `nonce` of who knows SHA1(password) only.
#[must_use]
pub fn answer_by(once: &Once, nonce: &Nonce) -> [u8; HASH_LEN] {
    xor(sha1(&[nonce, &sha1(&[once])]), once)
}

/// True if `answer` proves the password of `stored`.
#[must_use]
pub fn verify(answer: &[u8], nonce: &Nonce, stored: &Stored) -> bool {
    proven(answer, nonce, stored).is_some()
}

/// SHA1(password), if `answer` proves the password of `stored`: the answer is that, masked with
/// what both sides know.
#[must_use]
pub fn proven(answer: &[u8], nonce: &Nonce, stored: &Stored) -> Option<Once> {
    let answer = <&[u8; HASH_LEN]>::try_from(answer).ok()?;
    let once = xor(sha1(&[nonce, stored]), answer);
    equal(&sha1(&[&once]), stored).then_some(once)
}

/// Bytes of [`certificate_proof`].
pub const CERTIFICATE_PROOF_LEN: usize = 1 + 2 * digest::SHA256_OUTPUT_LEN;

/// The SHA-256 of a certificate in DER.
pub type Fingerprint = [u8; digest::SHA256_OUTPUT_LEN];

/// The fingerprint of this certificate.
#[must_use]
pub fn fingerprint(certificate: &[u8]) -> Fingerprint {
    sha256([certificate])
}

/// Proof to a client of MariaDB 11.4 or later that the owner of this certificate knows the client's
/// password, though no authority has signed the certificate: the info of the OK that ends the
/// login. A byte 1, and SHA256(SHA1(SHA1(password)), nonce, fingerprint) in upper-case digits
/// (MariaDB Connector/C and Connector/J).
#[must_use]
pub fn certificate_proof(
    stored: &Stored,
    nonce: &Nonce,
    fingerprint: &Fingerprint,
) -> [u8; CERTIFICATE_PROOF_LEN] {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut proof = [1; CERTIFICATE_PROOF_LEN];
    let hash = sha256([&stored[..], nonce, fingerprint]);
    for (digits, byte) in proof[1..].chunks_exact_mut(2).zip(hash) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
    proof
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proof_of_a_certificate_is_mariadbs() {
        // python3: hashlib.sha256(sha1(sha1(b"secret")) + bytes(range(1, 21)) + sha256(b"der"))
        let fingerprint = fingerprint(b"der");
        let mut nonce = [0; 20];
        nonce.iter_mut().zip(1..).for_each(|(byte, at)| *byte = at);
        let proof = certificate_proof(&stored(b"secret"), &nonce, &fingerprint);
        assert_eq!(proof[0], 1);
        assert_eq!(&proof[1..33], b"5CB17AADABEBC05F89033682769F9942");
        assert_eq!(&proof[33..], b"D46C9CB7A3CB3AB1957EC53201C1DA17");
    }

    #[test]
    fn a_stored_hash_is_the_servers() {
        // PASSWORD('password') of a live server.
        let text = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19";
        assert_eq!(stored_from_text(text), Some(stored(b"password")));
        assert_eq!(stored_from_text("2470"), None);
        for digits in ["XX", "+4", "\u{e9}"] {
            let text = format!("*{digits}70C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
            assert_eq!(stored_from_text(&text), None, "{text}");
        }
    }

    #[test]
    fn only_the_right_password_with_the_right_nonce_passes() {
        let nonce: Nonce = *b"abcdefghij0123456789";
        let good = answer(b"secret", &nonce);
        let stored = stored(b"secret");
        assert!(verify(&good, &nonce, &stored));
        assert!(!verify(&good, b"abcdefghij012345678X", &stored));
        assert!(!verify(&answer(b"Secret", &nonce), &nonce, &stored));
        assert!(!verify(&good[..19], &nonce, &stored));
        assert!(!verify(&[], &nonce, &stored));
        let once = proven(&good, &nonce, &stored).unwrap();
        let other: Nonce = *b"ABCDEFGHIJ9876543210";
        assert_eq!(answer_by(&once, &other), answer(b"secret", &other));
        assert_eq!(proven(&answer(b"Secret", &nonce), &nonce, &stored), None);
    }
}
