//! `onramp tls`: a certificate for the pool, for who has none.
//!
//! The problem: TLS needs a certificate, and a pool that is tried in five minutes has none. The
//! mechanism: `init` makes an authority of the pool's own and a certificate that it signs, for this
//! host's names; clients get the authority's certificate as their `--ssl-ca`. `renew` signs another
//! one, so that clients keep what they have, and the running pool reads the new one by itself.
//!
//! Invariants: a file that is there is never overwritten by `init`; keys are readable by their
//! owner alone; a certificate and its key are put in their places as whole files.

use clap::{Args, Subcommand};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The authority's name in its certificate. One that is renewed must find it again.
const AUTHORITY: &str = "Onramp authority of this host";
/// Days for which an authority is valid: ten years, as those that servers make for themselves.
const AUTHORITY_DAYS: u32 = 3650;
/// The longest validity of a certificate, in days.
const DAYS_MAX: u32 = AUTHORITY_DAYS;
/// Clocks of clients may be behind by this.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);
/// File in which the kernel tells the host's name.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";

const AUTHORITY_CERT: &str = "ca.pem";
const AUTHORITY_KEY: &str = "ca-key.pem";
const CERT: &str = "cert.pem";
const KEY: &str = "key.pem";

/// Make a certificate for the pool
#[derive(Args)]
pub(crate) struct TlsArgs {
    #[command(subcommand)]
    job: TlsJob,
}

#[derive(Subcommand)]
enum TlsJob {
    /// Make an authority, and a certificate that it signs (ca.pem, ca-key.pem, cert.pem, key.pem)
    Init(CertificateArgs),
    /// Replace cert.pem and key.pem, signed by the authority that is there
    Renew(CertificateArgs),
}

#[derive(Args)]
struct CertificateArgs {
    /// The folder of the files; init makes it
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// A name or an address by which clients reach the pool; may be repeated [default: this host's
    /// name, localhost, 127.0.0.1 and ::1]
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,

    /// Days for which the certificate is valid
    #[arg(long, default_value_t = 365, value_parser = days())]
    days: u32,
}

fn days() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX))
}

/// Makes them; 1, with a sentence, where that cannot be done.
pub(crate) fn run(args: &TlsArgs) -> ExitCode {
    let (name, done) = match &args.job {
        TlsJob::Init(args) => ("init", init(args)),
        TlsJob::Renew(args) => ("renew", renew(args)),
    };
    let (mut out, mut err) = (io::stdout(), io::stderr());
    match done {
        Ok(said) => {
            let _ = out.write_all(said.as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => {
            let _ = writeln!(err, "onramp tls {name}: {why}");
            ExitCode::FAILURE
        }
    }
}

fn init(args: &CertificateArgs) -> Result<String, String> {
    let folder = &args.folder;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for name in [AUTHORITY_CERT, AUTHORITY_KEY, CERT, KEY] {
        let path = folder.join(name);
        if path.exists() {
            return Err(format!(
                "{} is there already; `onramp tls renew` replaces the certificate and keeps the \
                 authority",
                path.display()
            ));
        }
    }
    let key = new_key()?;
    let authority = authority().self_signed(&key).map_err(sentence)?;
    put(folder, AUTHORITY_KEY, &key.serialize_pem(), 0o600)?;
    put(folder, AUTHORITY_CERT, &authority.pem(), 0o644)?;
    let said = certify(args, &authority.pem(), key)?;
    let (ca, cert, key) = (
        folder.join(AUTHORITY_CERT),
        folder.join(CERT),
        folder.join(KEY),
    );
    Ok(format!(
        "{said}\nThe pool's settings:\n\n[tls]\ncert = \"{}\"\nkey = \"{}\"\n\nClients verify it \
         with --ssl-ca={}. Nobody but `onramp tls renew` needs {AUTHORITY_KEY}.\n",
        cert.display(),
        key.display(),
        ca.display()
    ))
}

fn renew(args: &CertificateArgs) -> Result<String, String> {
    let read = |name: &str| {
        let path = args.folder.join(name);
        let text = fs::read_to_string(&path);
        text.map_err(|error| format!("{}: {error}; `onramp tls init` makes it", path.display()))
    };
    let (authority, key) = (read(AUTHORITY_CERT)?, read(AUTHORITY_KEY)?);
    let key = KeyPair::from_pem(&key)
        .map_err(|error| format!("{AUTHORITY_KEY} is no key that `init` has made: {error}"))?;
    let said = certify(args, &authority, key)?;
    Ok(format!(
        "{said}\nA pool that runs with these files reads them within a second.\n"
    ))
}

/// Writes a certificate for the names, and its key; says what it is.
fn certify(args: &CertificateArgs, authority_pem: &str, key: KeyPair) -> Result<String, String> {
    let names = match args.names.is_empty() {
        true => own_names(),
        false => args.names.clone(),
    };
    if let Some(wrong) = names.iter().find(|name| !is_name(name)) {
        return Err(format!(
            "--name: '{wrong}' is neither an address nor a host's name (letters, digits, '-', '.', \
             and '*' as the first label)"
        ));
    }
    let issuer = Issuer::new(authority(), key);
    let mut params = CertificateParams::new(names.clone())
        .map_err(|error| format!("--name: {}: {error}", names.join(", ")))?;
    params.distinguished_name = named(names.first().map_or("onramp", String::as_str));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    valid_for(&mut params, args.days);
    let own = new_key()?;
    let cert = params.signed_by(&own, &issuer).map_err(sentence)?;
    // The key first: a pool that reads between the two keeps what it has until they fit.
    put(&args.folder, KEY, &own.serialize_pem(), 0o600)?;
    let chain = format!("{}{authority_pem}", cert.pem());
    put(&args.folder, CERT, &chain, 0o644)?;
    Ok(format!(
        "{} is valid for {} days, for {}.",
        args.folder.join(CERT).display(),
        args.days,
        names.join(", ")
    ))
}

/// A certificate for this host's names that nobody has signed, and its key, in PEM: what servers
/// make for themselves, and valid for as long.
///
/// # Errors
/// It cannot be made.
pub(crate) fn own() -> Result<String, String> {
    let names = own_names();
    let mut params = CertificateParams::new(names.clone()).map_err(sentence)?;
    params.distinguished_name = named(names.first().map_or("onramp", String::as_str));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    valid_for(&mut params, AUTHORITY_DAYS);
    let key = new_key()?;
    let cert = params.self_signed(&key).map_err(sentence)?;
    Ok(format!("{}{}", cert.pem(), key.serialize_pem()))
}

/// Parameters of the authority's certificate.
fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(AUTHORITY);
    // It signs certificates of servers, and no further authority.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid_for(&mut params, AUTHORITY_DAYS);
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::CommonName, name);
    named
}

/// Makes it valid from now on, for so many days.
fn valid_for(params: &mut CertificateParams, days: u32) {
    let (now, since) = (reactor::utc_now(), date_time_ymd(1970, 1, 1));
    params.not_before = since + now.saturating_sub(CLOCK_SKEW);
    params.not_after = since + now + Duration::from_secs(86_400) * days;
}

/// ECDSA on P-256: every client's library has it, and it is the fastest to sign with.
fn new_key() -> Result<KeyPair, String> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(sentence)
}

fn sentence(error: rcgen::Error) -> String {
    format!("the certificate cannot be made: {error}")
}

/// By which names clients reach this host.
fn own_names() -> Vec<String> {
    let host = fs::read_to_string(HOSTNAME).unwrap_or_default();
    let host = host.trim().to_owned();
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let host = Some(host).filter(|name| !name.is_empty() && *name != "localhost");
    host.into_iter().chain(local).collect()
}

/// True if clients can look for it in a certificate.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let label = |label: &str| !label.is_empty() && label.bytes().all(plain);
    let rest = name.strip_prefix("*.").unwrap_or(name);
    name.parse::<IpAddr>().is_ok() || rest.split('.').all(label)
}

/// Puts a whole file in its place.
fn put(folder: &Path, name: &str, text: &str, mode: u32) -> Result<(), String> {
    let (path, new) = (folder.join(name), folder.join(format!("{name}.new")));
    let written = || -> io::Result<()> {
        if new.exists() {
            fs::remove_file(&new)?;
        }
        let mut options = OpenOptions::new();
        let mut file = (options.write(true).create_new(true).mode(mode)).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)
    };
    written().map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_clients_can_look_for() {
        for name in [
            "localhost",
            "db.example.org",
            "*.example.org",
            "10.1.2.3",
            "::1",
            "my_db",
        ] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "",
            "a b",
            "a..b",
            "*",
            "a.*",
            ".a",
            "a.",
            "mysql://a",
            "caf\u{e9}",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
