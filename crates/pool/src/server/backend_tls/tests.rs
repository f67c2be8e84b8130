//! Settings of TLS to the server, and what is said of those that do not fit together.
use crate::config::Raw;

const CERT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/tls/cert.pem");

fn check(address: &str, tls: &str) -> Result<bool, String> {
    let tls = tls.replace("CERT", CERT);
    let text = format!(
        "listen = \"127.0.0.1:6033\"\n[backend]\naddress = \"{address}\"\n{tls}\n\
         [[user]]\nname = \"app\"\npassword = \"app\"\n"
    );
    let settings = Raw::parse(&text)?.check()?;
    Ok(settings.backend_tls.is_some())
}

#[test]
fn each_mode_says_what_it_needs() {
    let tcp = "db.example:3306";
    assert_eq!(check(tcp, ""), Ok(false));
    assert_eq!(check(tcp, "tls = \"off\""), Ok(false));
    for mode in ["preferred", "required"] {
        assert_eq!(check(tcp, &format!("tls = \"{mode}\"")), Ok(true));
    }
    for mode in ["verify_ca", "verify_identity"] {
        let tls = format!("tls = \"{mode}\"\ntls_ca = \"CERT\"");
        assert_eq!(check(tcp, &tls), Ok(true));
        assert_eq!(check("127.0.0.1:3306", &tls), Ok(true));
        assert_eq!(check("[::1]:3306", &tls), Ok(true));
    }
    let ca = "tls = \"verify_ca\"\ntls_ca = \"CERT\"";
    assert_eq!(check("/run/server.sock", ca), Ok(true));
    let named = "tls = \"verify_identity\"\ntls_ca = \"CERT\"\ntls_name = \"db.example\"";
    assert_eq!(check("/run/server.sock", named), Ok(true));
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
        ("h:1", "tls_ca = \"CERT\"", "it needs backend.tls"),
        ("h:1", "tls_name = \"x\"", "it needs backend.tls"),
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
