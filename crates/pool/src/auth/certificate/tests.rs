//! Settings of TLS, and what is said of files that cannot be used.
use crate::config::{Raw, Settings};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

const CERT: &str = include_str!("../../../../testkit/tls/cert.pem");
const KEY: &str = include_str!("../../../../testkit/tls/key.pem");
/// Another P-256 key than that of the certificate.
const OTHER_KEY: &str = "-----BEGIN EC PRIVATE KEY-----
MHcCAQEEILKDHhjwI4fmXMAt9eFUMJnfyPYc/jlVYJD9KdQpGKgooAoGCCqGSM49
AwEHoUQDQgAE/7JasEx2sm4F+M7mk9Xv21uYPeRwAk2aw6nQMrJgpSDArNzvQvyK
Opx0vfhITwgK13DpFoEWqE8y3EgfsmIkWQ==
-----END EC PRIVATE KEY-----
";

/// A folder of a test's own with both files.
struct Files(PathBuf);

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Files {
    fn new(test: &str) -> Files {
        let folder = std::env::temp_dir().join(format!("onramp-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = Files(folder);
        files.put("cert", CERT);
        files.put("key", KEY);
        files
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }

    fn check(&self, tls: &str) -> Result<Settings, String> {
        let text = format!(
            "listen = \"127.0.0.1:6033\"\n[backend]\naddress = \"127.0.0.1:3306\"\n[tls]\n{tls}\n\
             [[user]]\nname = \"app\"\npassword = \"app\"\n"
        );
        Raw::parse(&text.replace("DIR", self.0.to_str().unwrap()))?.check()
    }
}

const BOTH: &str = "cert = \"DIR/cert\"\nkey = \"DIR/key\"";

#[test]
fn nothing_of_a_session_is_kept_to_be_resumed() {
    let files = Files::new("tls-sessions");
    let shown = files.check(BOTH).unwrap().tls.unwrap().config.get();
    let config = &shown.config;
    assert_eq!(config.send_tls13_tickets, 0);
    assert!(!config.session_storage.can_cache() && !config.ticketer.enabled());
}

#[test]
fn tls_is_off_until_a_certificate_is_named() {
    let files = Files::new("tls-modes");
    let mode = |tls: &str| files.check(tls).unwrap().tls.map(|tls| tls.required);
    assert_eq!(mode(""), None);
    assert_eq!(mode("mode = \"off\""), None);
    assert_eq!(mode(BOTH), Some(false));
    assert_eq!(mode(&format!("mode = \"optional\"\n{BOTH}")), Some(false));
    assert_eq!(mode(&format!("mode = \"required\"\n{BOTH}")), Some(true));
    assert_eq!(mode(&format!("mode = \"off\"\n{BOTH}")), None);
}

#[test]
fn what_cannot_be_used_is_named_with_its_file() {
    let files = Files::new("tls-files");
    let key_of = |name: &str| BOTH.replace("DIR/key", &format!("DIR/{name}"));
    files.put("other", OTHER_KEY);
    files.put("empty", "");
    files.put("text", "no PEM at all\n");
    files.put("cut", &CERT[..CERT.len() / 2]);
    files.put(
        "encrypted",
        &KEY.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"),
    );
    files.put("long", &"x".repeat((1 << 20) + 1));
    for (tls, words) in [
        ("mode = \"required\"".to_owned(), "tls.cert: expected"),
        ("key = \"DIR/key\"".to_owned(), "tls.cert: expected"),
        ("cert = \"DIR/cert\"".to_owned(), "tls.key: expected"),
        (
            "mode = \"preferred\"".to_owned(),
            "tls.mode: expected auto, off, optional or required, got 'preferred'",
        ),
        (
            BOTH.replace("DIR/cert", "DIR/none"),
            "DIR/none: No such file",
        ),
        (
            BOTH.replace("DIR/cert", "DIR/empty"),
            "DIR/empty: no certificate in it",
        ),
        (
            BOTH.replace("DIR/cert", "DIR/text"),
            "DIR/text: no certificate in it",
        ),
        (
            BOTH.replace("DIR/cert", "DIR/key"),
            "DIR/key: no certificate in it",
        ),
        (BOTH.replace("DIR/cert", "DIR/cut"), "tls.cert DIR/cut: "),
        (
            BOTH.replace("DIR/cert", "DIR/long"),
            "at most 1048576 bytes",
        ),
        (key_of("none"), "tls.key DIR/none: No such file"),
        (key_of("cert"), "DIR/cert: no private key in it"),
        (key_of("encrypted"), "DIR/encrypted: the key is encrypted"),
        (
            key_of("other"),
            "tls.key DIR/other: it is not the key of the first certificate in tls.cert DIR/cert",
        ),
        (
            "certificate = \"x\"".to_owned(),
            "unknown setting 'certificate'",
        ),
        ("listen = \"x\"".to_owned(), "'listen' is no setting here"),
    ] {
        let error = files.check(&tls).unwrap_err();
        let shown = error.replace(files.0.to_str().unwrap(), "DIR");
        assert!(shown.contains(words), "{tls}: {shown}");
    }
}

#[test]
fn a_key_that_others_can_read_is_warned_of() {
    let files = Files::new("tls-rights");
    assert_eq!(files.check(BOTH).unwrap().warnings, [""; 0]);
    let key = files.0.join("key");
    std::fs::set_permissions(&key, Permissions::from_mode(0o604)).unwrap();
    let warnings = files.check(BOTH).unwrap().warnings;
    assert!(warnings[0].contains("has a private key"), "{warnings:?}");
    assert!(warnings[0].contains("mode 0604"), "{warnings:?}");
}

#[test]
fn a_certificate_that_ends_soon_is_warned_of() {
    let now = 20 * 86_400;
    let told = |until: u64| super::expiring(until, now).unwrap_or_default();
    assert!(told(now - 1).contains("has expired"));
    assert!(told(now + 3 * 86_400 + 5).contains("expires in 3 days"));
    assert_eq!(told(now + 14 * 86_400), "");
}
