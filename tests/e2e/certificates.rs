//! Certificates of clients, what accounts require of them, and certificates that are renewed while
//! the pool runs.

use crate::world::*;
use rustls::StreamOwned;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command as Program, Stdio};
use testkit::certificates::{Authority, Valid, put};
use wire::client_login::{COLLATION, put_tls_request};
use wire::packet::HEADER_LEN;

/// Outcome of a login with the servers' own command line: `Ok`, or the error's number.
fn logs_in(address: &Address, user: &str, more: &[String]) -> Option<Result<(), String>> {
    let port = port_of(address);
    let line = format!("--no-defaults --protocol=tcp -h127.0.0.1 -N -P {port} -u {user} -papp");
    let mut command = Program::new("mariadb");
    command
        .args(words(&line))
        .args(["-e", "SELECT 1"])
        .args(more);
    let output = command.stdin(Stdio::null()).output().ok()?;
    if output.status.success() {
        return Some(Ok(()));
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let rest = said.split("ERROR ").nth(1);
    let number = rest.and_then(|rest| rest.split(' ').next());
    Some(Err(number.unwrap_or(&said).to_owned()))
}

/// The options that show this certificate.
fn shown((cert, key): &(PathBuf, PathBuf)) -> Vec<String> {
    let files = [("cert", cert), ("key", key)];
    let files = files.map(|(what, path)| format!("--ssl-{what}={}", path.display()));
    [&["--ssl".to_owned()][..], &files].concat()
}

/// Each account with each certificate, on the server itself and through the pool.
#[test]
fn accounts_require_of_the_pools_clients_what_they_require_of_the_servers() {
    let folder = Folder::new("require");
    let folder = &*folder.0;
    let authority = Authority::new("the authority");
    let ca = put(folder, "ca.pem", &authority.pem());
    let (cert, key) = (authority.sign("server", &["127.0.0.1"], Valid::Now)).put(folder, "server");
    let (ca, cert, key) = (ca.display(), cert.display(), key.display());
    let options = format!("--ssl-ca={ca} --ssl-cert={cert} --ssl-key={key}");
    let real = or_return!(own(Real::start(&words(&options))));
    let accounts = table(
        r#"plain => NONE =>
           by_tls => SSL => require = "ssl"
           by_x509 => X509 => require = "x509"
           by_subject => SUBJECT '/CN=right' => require_subject = "/CN=right"
           by_issuer => ISSUER '/CN=the authority' => require_issuer = "/CN=the authority"
           by_other => ISSUER '/CN=other' => require_issuer = "/CN=other""#,
    );
    let mut text = format!(
        "groups = 1\nbackends_max = 2\naudit_log = \"/dev/stderr\"\n[backend]\naddress = \"{}\"\n\
         [tls]\ncert = \"{cert}\"\nkey = \"{key}\"\nclient_ca = \"{ca}\"\n[[user]]\n\
         name = \"app\"\npassword = \"app\"\n",
        real.address()
    );
    for &[name, requires, settings] in &accounts {
        let create = format!("CREATE USER {name}@'%' IDENTIFIED BY 'app' REQUIRE {requires}");
        real.execute(&[&create]);
        text += &format!(
            "[[user]]\nname = \"{name}\"\npassword = \"app\"\n{settings}\n\
             backend_user = \"app\"\nbackend_password = \"app\"\n"
        );
    }
    let pool = pool_from(&real, &text);
    let by = |authority: &Authority, name, valid, file: &str| {
        shown(&authority.sign(name, &[], valid).put(folder, file))
    };
    let foreign = Authority::new("the authority");
    let ways = [
        vec!["--skip-ssl".to_owned()],
        vec!["--ssl".to_owned()],
        by(&authority, "right", Valid::Now, "right"),
        by(&authority, "wrong", Valid::Now, "wrong"),
        by(&foreign, "right", Valid::Now, "foreign"),
        by(&authority, "right", Valid::Expired, "expired"),
    ];
    for [name, ..] in accounts {
        for way in &ways {
            let Some(own) = logs_in(&real.address(), name, way) else {
                return skip("the mariadb command line is not installed");
            };
            let through = logs_in(&pool.address, name, way).unwrap();
            // Let in, denied, or refused by TLS itself.
            let kind = |result: &Result<(), String>| match result {
                Err(why) if why != "1045" => Err("TLS"),
                other => other.as_ref().map_or(Err("denied"), |()| Ok(())),
            };
            let case = format!("{name} {way:?}: {own:?} {through:?}");
            assert_eq!(kind(&through), kind(&own), "{case}");
        }
    }
    // The audit trail names the certificate of who is let in, and of who is not.
    for [user, words] in table(
        r#"by_subject => "certificate_subject":"/CN=right"}
           by_subject => "certificate_subject":"/CN=wrong","reason":"certificate-subject"}
           by_x509 => "reason":"certificate-required"}"#,
    ) {
        let said = pool.said();
        let of_user = |line: &&str| line.contains(&format!("\"user\":\"{user}\""));
        let mut lines = said.lines().filter(of_user);
        assert!(lines.any(|line| line.contains(words)), "{words}: {said}");
    }
    // The log has so many lines of failed logins in a second, and no more. A fast machine fails
    // more often than that, so each is tried until its line is there.
    let [plain, ssl, _, wrong, unknown, _] = &ways;
    for (name, way, words) in [
        ("by_tls", plain, "reason=tls-required"),
        ("by_x509", ssl, "reason=certificate-required"),
        ("by_subject", wrong, "reason=certificate-subject"),
        ("by_other", wrong, "reason=certificate-issuer"),
        ("plain", unknown, "the client's certificate is not accepted"),
    ] {
        until(|| {
            let said = pool.said();
            if said.contains(words) {
                return Ok(());
            }
            let _ = logs_in(&pool.address, name, way);
            Err(format!("{words}: {said}"))
        });
    }
}

#[test]
fn what_cannot_be_required_is_refused_at_start() {
    let folder = Folder::new("require-settings");
    let authority = Authority::new("the authority");
    let ca = put(&folder.0, "ca.pem", &authority.pem());
    let (cert, key) = (authority.sign("server", &["127.0.0.1"], Valid::Now)).put(&folder.0, "s");
    let (cert, key, ca) = (cert.display(), key.display(), ca.display());
    let tls = format!("[tls]\ncert = \"{cert}\"\nkey = \"{key}\"\n");
    let [x509, subject] = ["require = \"x509\"", "require_subject = \"/CN=x\""];
    let only = format!("{tls}client_cert = \"required\"\n");
    let both = format!("{only}client_ca = \"{ca}\"\n");
    for (tls, user, words) in [
        ("", "require = \"ssl\"", "no client can use TLS"),
        (&*tls, x509, "expected tls.client_ca"),
        (&*tls, subject, "expected tls.client_ca"),
        (&only, "", "tls.client_ca: expected"),
        (&both, "", "tls.client_cert: expected tls.mode"),
    ] {
        let text = format!(
            "[backend]\naddress = \"127.0.0.1:1\"\n{tls}[[user]]\nname = \"app\"\n\
             password = \"app\"\n{user}\n"
        );
        let file = put(&folder.0, "pool.toml", &text);
        let why = Pool::start(binary(), &["--config", file.to_str().unwrap()]);
        let why = why.map(|_| ()).unwrap_err();
        assert!(why.contains(words), "{why}");
    }
}

/// The certificate that the pool shows.
fn certificate_of(address: &Address) -> Vec<u8> {
    let Address::Tcp(address) = address else {
        panic!("a TCP address")
    };
    let mut stream = TcpStream::connect(address).unwrap();
    let mut greeting = vec![0; HEADER_LEN];
    stream.read_exact(&mut greeting).unwrap();
    greeting.resize(usize::from(greeting[0]), 0);
    stream.read_exact(&mut greeting).unwrap();
    let mut request = Vec::new();
    let wanted = (testkit::talk::USUAL | cap::SSL, 0, COLLATION);
    assert!(put_tls_request(wanted, 0, &greeting, &mut request).unwrap());
    stream.write_all(&request).unwrap();
    let mut stream = StreamOwned::new(testkit::tls::client(rustls::DEFAULT_VERSIONS), stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).unwrap();
    }
    stream.conn.peer_certificates().unwrap()[0].to_vec()
}

#[test]
fn a_renewed_certificate_is_shown_without_a_restart_and_a_bad_one_never() {
    let real = or_return!(pooled(own_server));
    let folder = Folder::new("renewed");
    let folder: &Path = &folder.0;
    let authority = Authority::new("the authority");
    let renew = || authority.sign("pool", &["127.0.0.1"], Valid::Now);
    let (cert, key) = renew().put(folder, "pool");
    let text = format!(
        "groups = 2\nbackends_max = 2\n[backend]\naddress = \"{}\"\n[tls]\ncert = \"{}\"\n\
         key = \"{}\"\n[[user]]\nname = \"app\"\npassword = \"app\"\n",
        real.address(),
        cert.display(),
        key.display()
    );
    let pool = pool_from(&real, &text);
    let secured = app().with(cap::SSL);
    let mut first = login(&pool.address, &secured);
    let old = certificate_of(&pool.address);
    // Only the half of it: the key does not fit.
    let new = renew();
    let _ = put(folder, "pool.pem", &new.cert);
    logs(
        &pool,
        "event=certificates-kept",
        "not the key of the first certificate",
    );
    assert_eq!(certificate_of(&pool.address), old);
    let _ = put(folder, "pool.key", &new.key);
    pool.wait_for("event=certificates-read").unwrap();
    let shown = certificate_of(&pool.address);
    assert_ne!(shown, old);
    assert_eq!(first.value("SELECT 1"), "1");
    // On demand.
    pool.hang_up().unwrap();
    pool.wait_for("event=settings-read").unwrap();
    assert_eq!(certificate_of(&pool.address), shown);
    let read = pool.said().matches("event=certificates-read").count();
    assert_eq!(read, 1, "nothing has changed");
    let _ = put(folder, "pool.pem", "no PEM at all\n");
    logs(&pool, "no certificate in it", "event=certificates-kept");
    assert_eq!(certificate_of(&pool.address), shown);
    assert_eq!(login(&pool.address, &secured).value("SELECT 2"), "2");
    assert_eq!(first.value("SELECT 3"), "3");
}

/// `onramp load` under TLS to the pool, with and without a certificate of its own: accounts that
/// require one are let in with the right one alone, and each statement is answered.
#[test]
fn statements_of_load_run_under_tls_through_the_pool() {
    let real = or_return!(pooled(own_server));
    real.execute(&["CREATE DATABASE sbtest"]);
    let folder = Folder::new("load-tls");
    let folder = &*folder.0;
    let authority = Authority::new("the authority");
    let ca = put(folder, "ca.pem", &authority.pem());
    let (cert, key) = (authority.sign("server", &["127.0.0.1"], Valid::Now)).put(folder, "server");
    let own = authority.sign("right", &[], Valid::Now).put(folder, "own");
    let foreign = Authority::new("another");
    let other_ca = put(folder, "other.pem", &foreign.pem());
    let foreign = (foreign.sign("right", &[], Valid::Now)).put(folder, "foreign");
    let text = format!(
        "groups = 2\nbackends_max = 4\n[backend]\naddress = \"{}\"\n[tls]\nmode = \"required\"\n\
         cert = \"{}\"\nkey = \"{}\"\nclient_ca = \"{}\"\n[[user]]\nname = \"app\"\n\
         password = \"app\"\n[[user]]\nname = \"shown\"\npassword = \"app\"\nrequire = \"x509\"\n\
         backend_user = \"app\"\nbackend_password = \"app\"\n",
        real.address(),
        cert.display(),
        key.display(),
        ca.display()
    );
    let pool = pool_from(&real, &text);
    let port = port_of(&pool.address);
    let load = |user: &str, line: &str, more: &str| {
        let target = format!("mysql://{user}:app@127.0.0.1:{port}/sbtest");
        let line = format!("load --target {target} --live never --table-size 200 {line} {more}");
        onramp(&line)
    };
    let checked = format!("--tls --ca {}", ca.display());
    let with = |(cert, key): &(PathBuf, PathBuf)| {
        let (cert, key) = (cert.display(), key.display());
        format!("{checked} --tls-cert {cert} --tls-key {key}")
    };
    load("app", "oltp_read_write prepare --tables 2", &checked).ends(0);
    let runs = "oltp_read_write run --tables 2 --connections 16 --events 160 --time 0";
    let own = with(&own);
    for (user, more) in [("app", &checked), ("app", &own), ("shown", &own)] {
        for mode in ["disable", "auto"] {
            let ran = load(user, runs, &format!("{more} --db-ps-mode {mode}")).ends(0);
            says(&ran.stderr, "connects: 16 ok, 0 failed");
            says(&ran.stderr, ", 0 failed, ");
        }
    }
    let (foreign, unknown) = (with(&foreign), format!("--tls --ca {}", other_ca.display()));
    for (user, more, reason) in [
        ("app", "", "error 3159"),
        ("shown", &*checked, "error 1045"),
        ("app", &unknown, "not signed by an authority"),
        ("shown", &foreign, ""),
    ] {
        let ran = load(user, runs, more).ends(1);
        says(&ran.stderr, reason);
    }
}

/// A stranger's first minutes with TLS: certificates of `onramp tls`, and the servers' own command
/// line that verifies them by name.
#[test]
fn certificates_of_onramp_tls_are_verified_and_renewed() {
    let real = or_return!(pooled(own_server));
    let folder = Folder::new("tls-init");
    let made = folder.0.join("made");
    let tls = |job: &str, more: &[&str]| {
        let arguments = ["tls", job, made.to_str().unwrap()];
        let ran = run(binary(), &[&arguments[..], more].concat(), LIMIT);
        (ran.status.code(), ran.stdout + &ran.stderr)
    };
    let (status, said) = tls("renew", &[]);
    assert_eq!(status, Some(1));
    assert!(said.contains("`onramp tls init` makes it"), "{said}");
    let (status, said) = tls("init", &[]);
    assert_eq!(status, Some(0), "{said}");
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let file = std::fs::metadata(made.join(name)).unwrap();
        file.permissions().mode() & 0o777
    };
    assert_eq!((mode("key.pem"), mode("ca-key.pem")), (0o600, 0o600));
    let (status, again) = tls("init", &[]);
    assert_eq!(status, Some(1), "what is there stays");
    assert!(again.contains("is there already"), "{again}");
    // The settings that it names are the pool's.
    let settings = said.split("settings:").nth(1).unwrap();
    let settings = settings.split("Clients").next().unwrap();
    let text = format!(
        "{settings}\n[backend]\naddress = \"{}\"\n[[user]]\nname = \"app\"\npassword = \"app\"\n",
        real.address()
    );
    let pool = pool_from(&real, &text);
    let logs_in = |host: &str| {
        let output = Program::new("mariadb")
            .args(["--no-defaults", "--protocol=tcp", "-uapp", "-papp", "-N"])
            .args([&format!("-h{host}"), "-P", &port_of(&pool.address)])
            .arg(format!("--ssl-ca={}", made.join("ca.pem").display()))
            .args(["--ssl-verify-server-cert", "-e", "SELECT 1"])
            .stdin(Stdio::null())
            .output();
        output.ok().map(|output| output.status.success())
    };
    if logs_in("localhost").is_none() {
        return skip("the mariadb command line is not installed");
    }
    assert_eq!(["localhost", "127.0.0.1"].map(logs_in), [Some(true); 2]);
    let before = std::fs::read(made.join("cert.pem")).unwrap();
    let (status, said) = tls("renew", &["--name", "db.example.org", "--days", "7"]);
    assert_eq!(status, Some(0), "{said}");
    assert_ne!(std::fs::read(made.join("cert.pem")).unwrap(), before);
    pool.wait_for("event=certificates-read").unwrap();
    assert_eq!(logs_in("localhost"), Some(false), "it is another name's");
    let (status, said) = tls("renew", &["--name", "localhost"]);
    assert_eq!(status, Some(0), "{said}");
}
