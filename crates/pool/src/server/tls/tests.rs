//! Settings of TLS to the server, and what is said of those that do not fit together.
use super::*;
use crate::config::{Raw, Settings};
use cluster::ServerId;

const CERT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/tls/cert.pem");

fn settings(address: &str, tls: &str) -> Result<Settings, String> {
    let tls = tls.replace("CERT", CERT);
    let text = format!(
        "listen = \"127.0.0.1:6033\"\n[backend]\naddress = \"{address}\"\n{tls}\n\
         [[user]]\nname = \"app\"\npassword = \"app\"\n"
    );
    Raw::parse(&text)?.check()
}

fn check(address: &str, tls: &str) -> Result<(), String> {
    settings(address, tls).map(|_| ())
}

/// Protection of a connection to this address.
fn security(tls: &str, at: &str) -> Security {
    let settings = settings("db.example:3306", tls).unwrap();
    let at = Address::parse(at).unwrap();
    Security::of(Some(&settings.backend_tls), &at)
}

#[test]
fn without_a_setting_it_depends_on_the_address() {
    for (at, asking, key) in [
        ("192.0.2.1:3306", Asking::Preferred, ServerKey::None),
        ("[2001:db8::1]:3306", Asking::Preferred, ServerKey::None),
        ("127.0.0.1:3306", Asking::Off, ServerKey::Sent),
        ("127.1.2.3:3306", Asking::Off, ServerKey::Sent),
        ("[::1]:3306", Asking::Off, ServerKey::Sent),
        ("[::ffff:127.0.0.1]:3306", Asking::Off, ServerKey::Sent),
        ("/run/server.sock", Asking::Off, ServerKey::Sent),
    ] {
        assert_eq!(security("", at), Security { asking, key }, "{at}");
    }
    let far = "192.0.2.1:3306";
    let off = security("tls = \"off\"", far);
    assert_eq!((off.asking, off.key), (Asking::Off, ServerKey::None));
    assert_eq!(
        security("tls = \"required\"", "127.0.0.1:1").asking,
        Asking::Required
    );
    let unchecked = "get_server_public_key = true";
    assert_eq!(security(unchecked, far).key, ServerKey::Sent);
}

#[test]
fn a_pinned_key_is_read_and_must_be_one() {
    let folder = std::env::temp_dir().join(format!("onramp-pinned-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("public_key.pem");
    let set = format!("server_public_key = \"{}\"", file.display());
    let missing = check("h:1", &set).unwrap_err();
    assert!(missing.contains("No such file"), "{missing}");
    std::fs::write(&file, "no key").unwrap();
    let wrong = check("h:1", &set).unwrap_err();
    assert!(wrong.contains("no PEM of a public key"), "{wrong}");
    let pair = wire::auth::caching_sha2::KeyPair::generate().unwrap();
    std::fs::write(&file, pair.public_pem()).unwrap();
    let pinned = ServerKey::Pinned(pair.public_pem().into());
    for at in ["192.0.2.1:3306", "127.0.0.1:3306"] {
        assert_eq!(security(&set, at).key, pinned);
    }
    let both = check("h:1", &format!("{set}\nget_server_public_key = true")).unwrap_err();
    assert!(both.contains("leave one of them out"), "{both}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_start_says_that_a_server_elsewhere_does_not_prove_itself() {
    let verified = "tls = \"verify_identity\"\ntls_ca = \"CERT\"";
    for (address, tls, words) in [
        ("db.example:3306", "", Some("only if the server offers it")),
        ("192.0.2.1:3306", "tls = \"off\"", Some("in clear")),
        (
            "192.0.2.1:3306",
            "tls = \"preferred\"",
            Some("only if the server offers it"),
        ),
        (
            "[2001:db8::1]:1",
            "tls = \"required\"",
            Some("nobody checks"),
        ),
        ("db.example:3306", verified, None),
        ("127.0.0.1:3306", "", None),
        ("localhost:3306", "tls = \"off\"", None),
        ("[::1]:3306", "", None),
        ("/run/server.sock", "", None),
    ] {
        let warnings = settings(address, tls).unwrap().warnings;
        let said = warnings.iter().find(|said| said.contains("backend.tls:"));
        match words {
            Some(words) => assert!(
                said.is_some_and(|said| said.contains(words)),
                "{warnings:?}"
            ),
            None => assert_eq!(said, None, "{address} {tls}"),
        }
    }
}

#[test]
fn each_mode_says_what_it_needs() {
    let tcp = "db.example:3306";
    for mode in ["preferred", "required"] {
        assert_eq!(check(tcp, &format!("tls = \"{mode}\"")), Ok(()));
    }
    for mode in ["verify_ca", "verify_identity"] {
        let tls = format!("tls = \"{mode}\"\ntls_ca = \"CERT\"");
        assert_eq!(check(tcp, &tls), Ok(()));
        assert_eq!(check("127.0.0.1:3306", &tls), Ok(()));
        assert_eq!(check("[::1]:3306", &tls), Ok(()));
    }
    let ca = "tls = \"verify_ca\"\ntls_ca = \"CERT\"";
    assert_eq!(check("/run/server.sock", ca), Ok(()));
    let named = "tls = \"verify_identity\"\ntls_ca = \"CERT\"\ntls_name = \"db.example\"";
    assert_eq!(check("/run/server.sock", named), Ok(()));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    for (address, tls, words) in [
        ("h:1", "tls = \"verify_ca\"", "backend.tls_ca: expected"),
        (
            "h:1",
            "tls = \"verify_identity\"",
            "backend.tls_ca: expected",
        ),
        (
            "h:1",
            "tls = \"required\"\ntls_ca = \"CERT\"",
            "is not checked in this mode",
        ),
        ("h:1", "tls_ca = \"CERT\"", "it needs tls"),
        ("h:1", "tls_name = \"x\"", "it needs tls"),
        (
            "h:1",
            "tls = \"required\"\ntls_cert = \"CERT\"",
            "tls_cert and tls_key together",
        ),
        (
            "h:1",
            "tls = \"required\"\ntls_key = \"CERT\"",
            "tls_cert and tls_key together",
        ),
        (
            "h:1",
            "tls = \"verify_ca\"\ntls_ca = \"/none\"",
            "backend.tls_ca /none: No such file",
        ),
        (
            "h:1",
            "tls = \"required\"\ntls_name = \"a b\"",
            "no name or address",
        ),
        ("h:1", "tls = \"on\"", "verify_identity"),
        (
            "/run/s",
            "tls = \"verify_identity\"\ntls_ca = \"CERT\"",
            "a Unix socket has none",
        ),
    ] {
        let error = check(address, tls).unwrap_err();
        assert!(error.contains(words), "{tls}: {error}");
    }
}

/// Settings of two servers, with lines below `[backend]` and for the second.
fn several(backend: &str, two: &str, cluster: &str) -> Result<Settings, String> {
    let text = format!(
        "listen = \"127.0.0.1:6033\"\n[backend]\n{backend}\n\
         [[server]]\nname = \"one\"\naddress = \"db1.example:3306\"\n\
         [[server]]\nname = \"two\"\naddress = \"db2.example:3306\"\n{two}\n\
         [cluster]\n{cluster}\n[[user]]\nname = \"app\"\npassword = \"app\"\n"
    );
    Raw::parse(&text.replace("CERT", CERT))?.check()
}

#[test]
fn a_server_has_its_own_tls_and_the_rest_from_the_backend() {
    use Asking::{Off, Preferred, Required};
    let verified = "tls = \"verify_ca\"\ntls_ca = \"CERT\"";
    let identity = "tls = \"verify_identity\"";
    let at = Address::parse("192.0.2.1:3306").unwrap();
    for (backend, two, expected) in [
        ("", "tls = \"required\"", [Preferred, Required]),
        (verified, "tls = \"off\"", [Required, Off]),
        (verified, "tls = \"preferred\"", [Required, Preferred]),
        ("tls = \"off\"", verified, [Off, Required]),
        (verified, identity, [Required, Required]),
    ] {
        let settings = several(backend, two, "").unwrap();
        let asking = |id| Security::of(Some(&settings.tls_of(ServerId(id))), &at).asking;
        assert_eq!([asking(0), asking(1)], expected, "{backend} {two}");
        assert_eq!(asking(2), expected[0], "one that was found");
    }
    let settings = several(&format!("{identity}\ntls_ca = \"CERT\""), "", "").unwrap();
    for (id, name) in [(0, "db1.example"), (1, "db2.example")] {
        let tls = settings.tls_of(ServerId(id));
        assert_eq!(tls.name, ServerName::try_from(name).unwrap());
    }
    let key = "server_public_key = \"CERT\"";
    let sent = several("get_server_public_key = true", key, "").unwrap_err();
    assert!(sent.contains("server 'two': server_public_key"), "{sent}");
}

#[test]
fn what_does_not_fit_a_server_is_said_of_that_server() {
    let discovers = "discover = true\ndiscover_networks = [\"10.0.0.0/8\"]";
    let identity = "tls = \"verify_identity\"\ntls_ca = \"CERT\"";
    for (backend, two, cluster, words) in [
        (
            "",
            "tls_ca = \"CERT\"",
            "",
            "server 'two': tls_ca: it needs tls;",
        ),
        (
            identity,
            "tls = \"required\"\ntls_ca = \"CERT\"",
            "",
            "not checked in this mode; set tls to",
        ),
        (
            "",
            "tls = \"verify_ca\"\ntls_ca = \"/backend.pem\"",
            "",
            "server 'two': tls_ca /backend.pem: No such file",
        ),
        (identity, "", discovers, "servers that are found"),
    ] {
        let error = several(backend, two, cluster).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    let named = format!("{identity}\ntls_name = \"db.example\"");
    assert!(several(&named, "", discovers).is_ok());
    let warned = several("", "tls = \"off\"", "").unwrap().warnings;
    let said = |part: &str| warned.iter().filter(|said| said.contains(part)).count();
    assert_eq!(
        said("server 'two': tls: the pool speaks to db2.example:3306 without TLS"),
        1
    );
    assert_eq!(
        said("server 'one': tls: the pool speaks to db1.example:3306 with"),
        1
    );
}
