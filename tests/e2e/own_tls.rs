//! TLS with a certificate of the pool's own, and first logins by `caching_sha2_password`, which
//! need it.

use crate::world::*;
use std::process::{Output, Stdio};
use testkit::real::mysql_command_line;

/// The page with which people begin.
const START: &str = include_str!("../../docs/pool/start.md");

fn start(file: &std::path::Path) -> Pool {
    let arguments = ["--config", file.to_str().unwrap()];
    Pool::start(binary(), &arguments).unwrap_or_else(|why| panic!("{why}"))
}

/// A pool for the accounts of the tests, with these settings in front.
fn pool(real: &Real, name: &str, top: &str) -> Pool {
    start(&config_file(real, name, &config(&real.address(), top)))
}

/// Asks by MySQL's command line who it is; `None`: it is not installed.
fn ask(pool: &Pool, user: &str, password: &str, more: &[&str]) -> Option<Output> {
    let mut command = mysql_command_line().ok()?;
    let (host, port) = pool
        .address
        .to_string()
        .split_once(':')
        .map(|(h, p)| (h.to_owned(), p.to_owned()))
        .unwrap();
    command.args([
        "--no-defaults",
        "--protocol=tcp",
        &format!("--host={host}"),
        &format!("--port={port}"),
        &format!("--user={user}"),
        &format!("--password={password}"),
        "--batch",
        "--skip-column-names",
        "--execute=SELECT CURRENT_USER()",
    ]);
    command.args(more).stdin(Stdio::null());
    Some(command.output().unwrap())
}

fn heard(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn tls_is_offered_where_the_server_offers_it() {
    let secured = app().with(cap::SSL);
    if let Some(real) = pooled(server) {
        let own = login(&real.address(), &secured).is_tls();
        let pool = pool(real, "own-tls.toml", "");
        assert_eq!(login(&pool.address, &secured).is_tls(), own);
    }
    let Some(real) = pooled(mysql) else { return };
    for (top, offered) in [
        ("", true),
        ("tls = \"auto\"", true),
        ("tls = \"off\"", false),
    ] {
        let pool = pool(real, "own-tls.toml", top);
        let mut client = login(&pool.address, &secured);
        assert_eq!(client.is_tls(), offered, "{top}");
        assert_eq!(client.value("SELECT 1"), "1");
    }
}

#[test]
fn the_pools_certificate_is_the_same_at_the_next_start() {
    let Some(real) = pooled(mysql) else { return };
    let folder = real.folder().join("state");
    std::fs::create_dir(&folder).unwrap();
    let top = format!("state_folder = \"{}\"", folder.display());
    let kept = || {
        let pool = pool(real, "own-tls-kept.toml", &top);
        assert!(login(&pool.address, &app().with(cap::SSL)).is_tls());
        std::fs::read_to_string(folder.join("tls.pem")).unwrap()
    };
    assert_eq!(kept(), kept());
}

/// The account of which the pool has only the hash sends its password at its first login. MySQL's
/// client does so under TLS, and where it may not, the log says what to do.
#[test]
fn a_first_login_of_mysqls_client_needs_tls() {
    let Some(real) = pooled(mysql) else { return };
    let first = pool(real, "own-tls-first.toml", "");
    let disabled = ["--ssl-mode=DISABLED"];
    let Some(refused) = ask(&first, "hashed", "password", &disabled) else {
        return skip("MySQL's command line is not installed");
    };
    let (_, said) = heard(&refused);
    assert!(said.contains("2061"), "{said}");
    let line = first.wait_for("reason=secure-transport").unwrap();
    for part in "event=login-failed hashed tls.mode --get-server-public-key".split(' ') {
        assert!(line.contains(part), "{line}");
    }
    let (heard_it, said) = heard(&ask(&first, "hashed", "password", &[]).unwrap());
    assert_eq!(heard_it, "app@%", "{said}");
    // And with the key that the login gives.
    let second = pool(real, "own-tls-second.toml", "tls = \"off\"");
    let with_key = ["--ssl-mode=DISABLED", "--get-server-public-key"];
    let (heard_it, said) = heard(&ask(&second, "hashed", "password", &with_key).unwrap());
    assert_eq!(heard_it, "app@%", "{said}");
}

/// Block of the page behind this line.
fn block(begin: &str) -> String {
    let (_, rest) = START.split_once(begin).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// The accounts and the file of the first page, with MySQL's own client.
#[test]
fn the_first_page_works_with_mysqls_client() {
    let real = or_return!(pooled(own_mysql));
    let accounts = [
        block("```sql\nCREATE USER app"),
        block("```sql\nCREATE USER onramp"),
    ];
    let account = accounts[0].trim().trim_end_matches(';');
    real.execute(&[&format!("CREATE USER app{account}")]);
    let monitor = format!("CREATE USER onramp{}", accounts[1].trim());
    for sql in monitor.split(";\n").map(|sql| sql.trim_end_matches(';')) {
        real.execute(&[sql]);
    }
    let file = block("```toml\n# onramp pool --config pool.toml\n");
    let socket = real.folder().join("first-page.sock");
    let file = file
        .replace("127.0.0.1:6033", "127.0.0.1:0")
        .replace("/tmp/onramp.sock", socket.to_str().unwrap())
        .replace("127.0.0.1:3306", &real.address().to_string());
    let pool = start(&config_file(&real, "first-page.toml", &file));
    for (user, password) in [("app", "secret"), ("report", "password")] {
        let Some(output) = ask(&pool, user, password, &[]) else {
            return skip("MySQL's command line is not installed");
        };
        let (heard_it, said) = heard(&output);
        assert_eq!(heard_it, "app@127.0.0.1", "{user}: {said}");
    }
}
