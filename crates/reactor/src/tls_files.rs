//! Certificates and keys in PEM files, for either side of TLS.
//!
//! The problem: a file that cannot be used has to be said to be one, with the setting or the option
//! that names it, what was expected, and what to do. Everything that reads such files does it here.
//!
//! Bound: the bytes of a file ([`FILE_BYTES_MAX`]).

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use std::path::Path;

/// Bytes of a file with certificates or a key.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The authorities in a PEM file, which are trusted from now on; at least one.
///
/// # Errors
/// A sentence with the setting and the file.
pub fn authorities(setting: &str, path: &Path) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for authority in certificates(setting, path)? {
        let added = store.add(authority);
        added.map_err(|error| format!("{setting} {}: {error}", path.display()))?;
    }
    Ok(store)
}

/// Content of a file, if it is not longer than such files are.
fn contents(setting: &str, path: &Path) -> Result<Vec<u8>, String> {
    files::bytes(path, FILE_BYTES_MAX).map_err(|why| format!("{setting} {}: {why}", path.display()))
}

/// The certificates of a PEM file, in its order; at least one.
///
/// # Errors
/// A sentence with the setting and the file.
pub fn certificates(setting: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let bytes = contents(setting, path)?;
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| format!("{setting} {shown}: {error}"))?;
    if found.is_empty() {
        return Err(format!(
            "{setting} {shown}: no certificate in it; expected PEM, with BEGIN CERTIFICATE, one's \
             own first and those of its issuers behind it"
        ));
    }
    Ok(found)
}

/// The private key of a PEM file.
///
/// # Errors
/// A sentence with the setting and the file.
pub fn private_key(setting: &str, path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let shown = path.display();
    let bytes = contents(setting, path)?;
    let encrypted = b"BEGIN ENCRYPTED PRIVATE KEY";
    match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(key) => Ok(key),
        Err(_) if bytes.windows(encrypted.len()).any(|part| part == encrypted) => Err(format!(
            "{setting} {shown}: the key is encrypted, which is not supported; write it decrypted \
             with openssl pkey -in {shown} -out FILE and protect FILE by its permissions"
        )),
        Err(pem::Error::NoItemsFound) => Err(format!(
            "{setting} {shown}: no private key in it; expected PEM, with BEGIN PRIVATE KEY"
        )),
        Err(error) => Err(format!("{setting} {shown}: {error}")),
    }
}
