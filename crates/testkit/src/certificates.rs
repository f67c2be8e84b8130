//! Certificates for tests: authorities, and what they have signed.
//!
//! What must be refused is made here as well: certificates that have expired, that name another
//! host, or that another authority has signed. Each test has its own, in a folder of its own.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Validity of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Valid {
    /// Valid for decades.
    Now,
    /// Expired.
    Expired,
    /// Valid in the distant future.
    Later,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Certified {
    /// The certificate.
    pub cert: String,
    /// Its key.
    pub key: String,
}

impl Certified {
    /// Writes both as `NAME.pem` and `NAME.key` into a folder; their paths. A file that is there is
    /// replaced in one step.
    #[must_use]
    pub fn put(&self, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let cert = put(folder, &format!("{name}.pem"), &self.cert);
        (cert, put(folder, &format!("{name}.key"), &self.key))
    }
}

/// Writes a file that only its owner can read, in one step.
#[must_use]
pub fn put(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (path, new) = (folder.join(name), folder.join(format!("{name}.new")));
    let _ = std::fs::remove_file(&new);
    let mut options = std::fs::OpenOptions::new();
    let mut file = (options.write(true).create_new(true).mode(0o600).open(&new)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    std::fs::rename(&new, &path).unwrap();
    path
}

/// Authority that signs.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new one of this name.
    #[must_use]
    pub fn new(name: &str) -> Authority {
        let mut params = params(name, &[], Valid::Now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Authority {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    /// Its own certificate, in PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Signs a certificate of `subject` (its common name) for these names and addresses.
    #[must_use]
    pub fn sign(&self, subject: &str, names: &[&str], valid: Valid) -> Certified {
        let key = KeyPair::generate().unwrap();
        let params = params(subject, names, valid);
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        Certified {
            cert: cert.pem(),
            key: key.serialize_pem(),
        }
    }
}

fn params(subject: &str, names: &[&str], valid: Valid) -> CertificateParams {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, subject);
    let (from, to) = match valid {
        Valid::Now => (2020, 2049),
        Valid::Expired => (2020, 2021),
        Valid::Later => (2048, 2049),
    };
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
    params
}
