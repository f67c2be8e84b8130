//! The pool's own certificate: TLS for clients where nobody has named a certificate.
//!
//! The problem: clients of `caching_sha2_password` send a password that the pool has not seen yet
//! under TLS alone, and servers offer TLS with a certificate that they have made for themselves.
//! The mechanism: where the server offers TLS, the pool makes one too (`tls.mode = "auto"`), and
//! keeps it with its key in one file of the state folder, so that it is the same at the next start
//! and after an upgrade.
//!
//! Invariants: the file is put in its place as a whole, and never overwritten; its owner alone can
//! read it; a folder that cannot be used costs the same certificate at the next start, and never
//! the start.

use crate::auth::certificate::{ClientTls, Shown, shown};
use crate::config::from_files::FromFiles;
use crate::observe::log::{Event, note};
use reactor::tls_files::{certificates, private_key};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::WebPkiClientVerifier;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};

/// A certificate and its private key, one behind the other, in PEM.
pub type MakePem = fn() -> Result<String, String>;

/// The file in the state folder.
const FILE: &str = "tls.pem";
/// The folder that a service manager gives to the pool.
const FOLDER_VARIABLE: &str = "STATE_DIRECTORY";
/// The folder that is used where it is there.
const FOLDER: &str = "/var/lib/onramp";

/// TLS with a certificate of the pool's own, of this folder, where one is given. `owner`: the user
/// that the pool becomes.
///
/// # Errors
/// No certificate can be made.
pub(crate) fn own_tls(
    folder: Option<PathBuf>,
    owner: Option<u32>,
    make: MakePem,
) -> Result<ClientTls, String> {
    let folder = folder.or_else(usual_folder);
    let kept = folder.map(|folder| keep(&folder, owner, make));
    let config = match kept {
        Some(Ok(config)) => config,
        kept => {
            let (event, why) = match kept {
                Some(Err(why)) => (Event::Warning, why),
                _ => (Event::Start, "there is no state_folder".into()),
            };
            note(
                event,
                format_args!(
                    "the pool's own certificate, which clients are shown, is another one at the \
                     next start: {why}; set state_folder, or name a certificate ([tls] cert and \
                     key)"
                ),
            );
            let pem = make()?;
            FromFiles::new(Vec::new(), move || in_memory(&pem))?
        }
    };
    Ok(ClientTls {
        required: false,
        checks_clients: false,
        config,
    })
}

fn usual_folder() -> Option<PathBuf> {
    let given = std::env::var(FOLDER_VARIABLE).unwrap_or_default();
    // Of several, the first.
    let given = given.split(':').next().filter(|given| !given.is_empty());
    let usual = || Some(PathBuf::from(FOLDER)).filter(|folder| folder.is_dir());
    given.map(PathBuf::from).or_else(usual)
}

/// The certificate of the file, which is made where it is not there.
fn keep(folder: &Path, owner: Option<u32>, make: MakePem) -> Result<FromFiles<Shown>, String> {
    let file = folder.join(FILE);
    if !file.exists() {
        let pem = make()?;
        put(&file, &pem, owner).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let path = file.clone();
    FromFiles::new(vec![file], move || {
        let chain = certificates("state_folder", &path)?;
        unverified(chain, private_key("state_folder", &path)?)
    })
}

/// Puts a whole file in its place, unless another process has been quicker.
fn put(file: &Path, text: &str, owner: Option<u32>) -> io::Result<()> {
    let new = file.with_extension(format!("{}.new", std::process::id()));
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut opened = (options.write(true).create_new(true).mode(0o600)).open(&new)?;
        opened.write_all(text.as_bytes())?;
        opened.sync_all()?;
        if owner.is_some() {
            chown(&new, owner, None)?;
        }
        match fs::hard_link(&new, file) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    };
    let written = write();
    let _ = fs::remove_file(&new);
    written
}

fn in_memory(pem: &str) -> Result<Shown, String> {
    let wrong = |error: pem::Error| format!("the pool's own certificate: {error}");
    let chain = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(wrong)?;
    unverified(chain.map_err(wrong)?, key)
}

/// Certificate as it is shown to clients of whom none is asked.
fn unverified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Shown, String> {
    let shown = shown((chain, key), WebPkiClientVerifier::no_client_auth());
    shown.map_err(|error| format!("the pool's own certificate: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn pem() -> Result<String, String> {
        let cert = include_str!("../../../testkit/tls/cert.pem");
        let key = include_str!("../../../testkit/tls/key.pem");
        Ok(format!("{cert}{key}"))
    }

    fn none() -> Result<String, String> {
        Err("none is made".into())
    }

    fn fingerprint(tls: &ClientTls) -> Vec<u8> {
        tls.config.get().fingerprint.to_vec()
    }

    #[test]
    fn the_certificate_is_kept_and_nobody_else_reads_it() {
        let folder = std::env::temp_dir().join(format!("onramp-own-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let own = |make: MakePem| own_tls(Some(folder.clone()), None, make);
        let first = own(pem).unwrap();
        let file = folder.join(FILE);
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        // The next one makes none.
        let again = own(none).unwrap();
        assert_eq!(fingerprint(&again), fingerprint(&first));
        // What is there is not overwritten, and what cannot be used is not in the way.
        fs::write(&file, "no certificate").unwrap();
        let other = own(pem).unwrap();
        assert_eq!(fingerprint(&other), fingerprint(&first));
        assert_eq!(fs::read_to_string(&file).unwrap(), "no certificate");
        fs::remove_dir_all(&folder).unwrap();
        assert!(own(pem).is_ok(), "there is no such folder");
        assert_eq!(own(none).unwrap_err(), "none is made");
    }
}
