//! TLS to the server: every connection of the pool is under it where it is demanded, and a server
//! that does not prove itself gets neither a password nor a statement.

use crate::world::*;
use std::process::Command;
use testkit::certificates::{Authority, Valid, put};
use testkit::hostile::FalseServer;
use testkit::link::{Host, Link};
use testkit::relay::{self, Way};
use wire::auth::caching_sha2::{KeyPair, unmask};
use wire::packet::HEADER_LEN;

/// A server under TLS, and who signed its certificate.
struct Scene {
    real: Real,
    authority: Authority,
    ca: PathBuf,
    _folder: Folder,
}

impl Scene {
    fn new(test: &str, flavour: Flavour, more: &[&str]) -> Option<Scene> {
        let authority = Authority::new("the authority");
        let folder = Folder::new(test);
        let ca = put(&folder.0, "ca.pem", &authority.pem());
        let good = authority.sign("server", &["localhost", "127.0.0.1"], Valid::Now);
        let (cert, key) = good.put(&folder.0, "server");
        let files = [("ca", &ca), ("cert", &cert), ("key", &key)];
        let options = files.map(|(what, path)| format!("--ssl-{what}={}", path.display()));
        let all = [&options.each_ref().map(String::as_str)[..], more].concat();
        let real = own(match flavour {
            Flavour::MariaDb => Real::start(&all),
            Flavour::MySql => Real::start_mysql(&all),
        })?;
        Some(Scene {
            real,
            authority,
            ca,
            _folder: folder,
        })
    }

    /// On both servers, as far as they are installed.
    fn both(test: &str, more: &[&str]) -> Vec<Scene> {
        let scene = |flavour| Scene::new(&format!("{test}-{flavour:?}"), flavour, more);
        let both = [Flavour::MariaDb, Flavour::MySql].map(scene);
        both.into_iter().flatten().collect()
    }

    /// Sets the certificate that the server shows from now on.
    fn show(&self, names: &[&str], valid: Valid, by: &Authority) {
        let folder = self.ca.parent().unwrap();
        let _ = by.sign("server", names, valid).put(folder, "server");
        self.real.execute(&[match self.real.flavour() {
            Flavour::MariaDb => "FLUSH SSL",
            Flavour::MySql => "ALTER INSTANCE RELOAD TLS",
        }]);
    }

    /// The settings of a verifying mode.
    fn verified(&self, mode: &str) -> String {
        format!("tls = \"{mode}\"\ntls_ca = \"{}\"\n", self.ca.display())
    }

    fn pool(&self, address: &Address, tls: &str) -> Result<Pool, String> {
        let text = format!(
            "groups = 1\nbackends_max = 3\ndial_ms_max = 5000\nwait_ms_max = 20000\n[backend]\n\
             address = \"{address}\"\n{tls}\n[[user]]\nname = \"app\"\npassword = \"app\"\n"
        );
        let file = config_file(&self.real, "tls.toml", &text);
        Pool::start(binary(), &["--config", file.to_str().unwrap()])
    }

    /// A pool in front of the server itself.
    fn start(&self, tls: &str) -> Pool {
        self.pool(&self.real.address(), tls).unwrap()
    }

    fn refused(&self, address: &Address, tls: &str, words: &[&str]) {
        let why = self.pool(address, tls).map(drop).expect_err(tls);
        words.iter().for_each(|words| says(&why, words));
    }
}

fn cipher(client: &mut Client) -> String {
    let rows = client.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'").texts();
    rows[0][1].clone()
}

#[test]
fn each_mode_does_what_it_says() {
    for scene in Scene::both("backend-tls-modes", &[]) {
        let elsewhere = "tls_name = \"elsewhere.example\"";
        let localhost = "tls_name = \"localhost\"";
        for (tls, is_tls) in [
            ("tls = \"off\"".to_owned(), false),
            ("tls = \"preferred\"".into(), true),
            ("tls = \"required\"".into(), true),
            (scene.verified("verify_ca"), true),
            (scene.verified("verify_ca") + elsewhere, true),
            (scene.verified("verify_identity"), true),
            (scene.verified("verify_identity") + localhost, true),
        ] {
            let pool = scene.start(&tls);
            let mut client = login(&pool.address, &app());
            assert_eq!(!cipher(&mut client).is_empty(), is_tls, "{tls}");
            let socket = scene.real.socket();
            // Over a Unix socket only where it is demanded; there is no name to be verified.
            match scene.pool(&socket, &tls) {
                Err(why) => assert!(why.contains("set tls_name"), "{tls}: {why}"),
                Ok(pool) => {
                    let mut client = login(&pool.address, &app());
                    let is_tls = is_tls && !tls.contains("preferred");
                    assert_eq!(!cipher(&mut client).is_empty(), is_tls, "{tls}");
                }
            }
        }
    }
}

/// The server refuses whatever is not under TLS: probe, watch, look at code, backends, and the
/// connection of a KILL.
#[test]
fn every_connection_of_the_pool_is_under_tls() {
    for scene in Scene::both("backend-tls-all", &["--require-secure-transport=ON"]) {
        let pool = scene.start(&scene.verified("verify_identity"));
        let mut slow = login(&pool.address, &app());
        let mut other = login(&pool.address, &app());
        let id = slow.value("SELECT CONNECTION_ID()");
        send(&mut slow, "SELECT SLEEP(600)");
        let mut admin = scene.real.admin();
        testkit::real::await_blocked(&mut admin, &slow, "SELECT SLEEP(600)");
        other.must(&format!("KILL QUERY {id}"));
        // Interrupted: MariaDB says so by an error, MySQL by 1.
        let _ = slow.receive().unwrap();
        // The watch is let in too.
        admin.must("SET GLOBAL wait_timeout = 12345");
        let asked = "SELECT @@wait_timeout";
        wait_while(|| login(&pool.address, &app()).value(asked) != "12345");
        let words = ["refuses the pool's account"];
        scene.refused(&scene.real.address(), "tls = \"off\"", &words);
    }
}

/// Content of a reply, its columns too.
fn told(client: &mut Client, sql: &str) -> String {
    let outcomes = client.query(sql).unwrap();
    let columns = outcomes.iter().map(|outcome| match outcome {
        Outcome::Rows(rows) => format!("{:?}", rows.columns),
        _ => String::new(),
    });
    format!("{outcomes:?} {:?}", columns.collect::<Vec<_>>())
}

/// The form of a reply follows from what was agreed on, which servers take from the request for
/// TLS.
#[test]
fn clients_of_every_kind_are_served_over_tls() {
    for scene in Scene::both("backend-tls-kinds", &[]) {
        let pool = scene.start("tls = \"required\"");
        let metadata = cap::EXTENDED_METADATA;
        for account in [
            app(),
            app().without(cap::DEPRECATE_EOF),
            app().without(cap::SESSION_TRACK),
            app().with(cap::FOUND_ROWS),
            app().with(cap::MULTI_STATEMENTS),
            app().with(cap::COMPRESS),
            app().extended(cap::EXTENDED_BULK),
            app().extended(metadata),
            // As MariaDB's client library.
            app()
                .extended(cap::EXTENDED_BULK | metadata)
                .without(cap::DEPRECATE_EOF),
        ] {
            let both = [scene.real.address(), pool.address.clone()];
            let mut both = both.map(|address| login(&address, &account));
            for sql in [
                "SELECT 1 AS one, 'x' AS two",
                "SELECT JSON_OBJECT('a', 1) AS document, POINT(1, 2) AS place",
                "SELECT 1 UNION SELECT 2",
                "DO 1",
                "SELECT CAST('x' AS SIGNED)",
                "SELECT nothing",
            ] {
                let [direct, pooled] = both.each_mut().map(|client| told(client, sql));
                assert_eq!(direct, pooled, "{account:?}: {sql}");
            }
        }
    }
}

#[test]
fn messages_of_any_length_go_to_the_server_and_back() {
    for scene in Scene::both("backend-tls-long", &[]) {
        let pool = scene.start("tls = \"required\"");
        let mut client = login(&pool.address, &app());
        assert!(!cipher(&mut client).is_empty());
        let short = [0, 1, 4095, 16_383, 16_384, 16_385, 32_768, 65_536];
        for len in short.into_iter().chain([(16 << 20) - 12, 20 << 20]) {
            let text = "0123456789abcdef".repeat(len / 16 + 1);
            let sql = format!("SELECT '{}' AS v", &text[..len]);
            assert!(client.rows(&sql).only() == text[..len], "{len} bytes");
        }
        client.must("CREATE DATABASE IF NOT EXISTS shop");
        let sql = b"SELECT REPEAT('x', 5000) FROM information_schema.COLLATIONS a, \
                    information_schema.ENGINES b LIMIT 2000";
        client
            .send(&[(wire::command::Command::Query, sql)])
            .unwrap();
        // It is taken while the other one works.
        let mut quick = login(&pool.address, &app());
        for i in 0..50 {
            assert_eq!(quick.value(&format!("SELECT {i}")), i.to_string());
        }
        assert_eq!(client.receive().unwrap()[0].rows().rows.len(), 2000);
    }
}

#[test]
fn a_server_that_does_not_prove_itself_is_refused_with_its_reason() {
    for scene in Scene::both("backend-tls-proof", &[]) {
        let address = scene.real.address();
        let identity = scene.verified("verify_identity");
        let elsewhere = format!("{identity}tls_name = \"db.example\"\n");
        let words = ["not valid for 'db.example'", "backend.tls_name"];
        scene.refused(&address, &elsewhere, &words);
        let folder = scene.ca.parent().unwrap();
        let foreign = Authority::new("somebody else");
        let other = put(folder, "other.pem", &foreign.pem());
        for mode in ["verify_ca", "verify_identity"] {
            let tls = format!("tls = \"{mode}\"\ntls_ca = \"{}\"\n", other.display());
            let words = ["not signed by an authority", "backend.tls_ca"];
            scene.refused(&address, &tls, &words);
        }
        // MySQL refuses to show a certificate that is not valid now.
        if scene.real.flavour() == Flavour::MySql {
            continue;
        }
        scene.show(&["127.0.0.1"], Valid::Expired, &scene.authority);
        for mode in ["verify_ca", "verify_identity"] {
            let tls = scene.verified(mode);
            scene.refused(&address, &tls, &["has expired", "renew it"]);
        }
        scene.show(&["127.0.0.1"], Valid::Later, &scene.authority);
        scene.refused(&address, &identity, &["not valid yet", "clocks"]);
        // As MySQL's own certificates are.
        scene.show(&[], Valid::Now, &scene.authority);
        scene.refused(&address, &identity, &["no name at all"]);
        let pool = scene.start(&scene.verified("verify_ca"));
        assert_eq!(login(&pool.address, &app()).value("SELECT 1"), "1");
        // Not checked.
        scene.show(&["127.0.0.1"], Valid::Expired, &foreign);
        let pool = scene.start("tls = \"required\"");
        assert_eq!(login(&pool.address, &app()).value("SELECT 1"), "1");
    }
}

/// While the pool runs: backends go on, a new one is refused with its reason, and is dialled again
/// when the certificate is right.
#[test]
fn a_certificate_that_goes_bad_stops_new_backends_and_no_others() {
    for scene in Scene::both("backend-tls-later", &[]) {
        let pool = scene.start(&scene.verified("verify_identity"));
        let mut first = login(&pool.address, &app());
        first.must(HOLD);
        scene.show(&["elsewhere.example"], Valid::Now, &scene.authority);
        assert_eq!(first.value("SELECT 1"), "1");
        // Every ticket of the good certificate is of no use to the server now.
        let mut held = Vec::new();
        for _ in 0..3 {
            match Client::connect(&pool.address, &app()) {
                Ok(mut client) => {
                    let Ok(outcomes) = client.query(HOLD) else {
                        break;
                    };
                    let failed = format!("{outcomes:?}").contains("not valid for '127.0.0.1'");
                    held.push(client);
                    if failed {
                        break;
                    }
                }
                Err(error) => {
                    assert!(error.to_string().contains("not valid for"), "{error}");
                    break;
                }
            }
        }
        logs(&pool, "not valid for '127.0.0.1'", "event=backend-refused");
        assert_eq!(first.value("SELECT 2"), "2");
        drop(held);
        scene.show(&["127.0.0.1"], Valid::Now, &scene.authority);
        let mut others: Vec<Client> = Vec::new();
        while others.len() < 2 {
            let mut client = login(&pool.address, &app());
            client.must(HOLD);
            others.push(client);
        }
    }
}

/// A middleman who takes TLS out of the server's greeting: what it heard from the pool.
fn strip_tls(server: &Address) -> (Address, std::sync::mpsc::Receiver<Vec<u8>>) {
    let (tell, told) = std::sync::mpsc::sync_channel(16);
    let address = relay::start(tcp(server), Vec::new(), move |way, at, piece| {
        match (way, at) {
            (Way::ToClient, 0) => {
                // Behind the version: number, 8 bytes, a filler; then the capabilities.
                let version = piece[HEADER_LEN + 1..].iter().position(|b| *b == 0);
                let flags = HEADER_LEN + 1 + version.unwrap() + 1 + 4 + 8 + 1;
                piece[flags + 1] &= !u8::try_from(cap::SSL >> 8).unwrap();
            }
            (Way::ToServer, 0) => drop(tell.try_send(piece.clone())),
            _ => {}
        }
    });
    (address, told)
}

#[test]
fn a_server_without_tls_is_told_nothing_where_tls_is_required() {
    for scene in Scene::both("backend-tls-strip", &[]) {
        let between = "between the pool and the server";
        let words = ["CLIENT_SSL (TLS)", "backend.tls", between];
        let (middle, heard) = strip_tls(&scene.real.address());
        let verified = ["verify_ca", "verify_identity"].map(|mode| scene.verified(mode));
        let required = ["tls = \"required\"".to_owned()];
        for tls in required.into_iter().chain(verified) {
            scene.refused(&middle, &tls, &words);
            let heard = heard.recv_timeout(LIMIT).unwrap();
            let text = String::from_utf8_lossy(&heard);
            assert!(!text.contains("app"), "{text}");
        }
        let pool = scene.pool(&middle, "tls = \"preferred\"").unwrap();
        let mut client = login(&pool.address, &app());
        assert_eq!(cipher(&mut client), "");
    }
}

#[test]
fn an_account_that_requires_a_certificate_is_shown_one() {
    for scene in Scene::both("backend-tls-x509", &[]) {
        let address = scene.real.address();
        let folder = scene.ca.parent().unwrap();
        let signed = scene.authority.sign("the pool", &[], Valid::Now);
        let (cert, key) = signed.put(folder, "own");
        let (cert, key) = (cert.display(), key.display());
        let own = format!("tls_cert = \"{cert}\"\ntls_key = \"{key}\"\n");
        let require = "ALTER USER app@'%' REQUIRE SUBJECT '/CN=the pool'";
        scene.real.execute(&[require]);
        let pool = scene.pool(&address, &format!("tls = \"required\"\n{own}"));
        assert!(!cipher(&mut login(&pool.unwrap().address, &app())).is_empty());
        scene.refused(&address, "tls = \"required\"", &["1045"]);
        scene.refused(&address, &own, &["backend.tls_cert", "it needs tls"]);
    }
}

/// Dialling is cheap then. MariaDB 10.11 gives no tickets.
#[test]
fn later_connections_resume_the_session_of_an_earlier_one() {
    if let Some(scene) = Scene::new("backend-tls-resume", Flavour::MySql, &[]) {
        let pool = scene.start(&scene.verified("verify_identity"));
        let mut clients: Vec<Client> = (0..3).map(|_| login(&pool.address, &app())).collect();
        let mut reused = 0;
        for client in &mut clients {
            client.must(HOLD);
            let rows = client.rows("SHOW SESSION STATUS LIKE 'Ssl_sessions_reused'");
            let rows = rows.texts();
            reused += usize::from(matches!(&*rows[0][1], "1" | "ON"));
        }
        assert!(reused >= 1, "{:?}: {reused}", scene.real.flavour());
    }
}

/// Questions of `onramp doctor` and `onramp explain` to a server are under TLS as the pool's own
/// connections are.
#[test]
fn the_doctor_asks_under_tls() {
    // A value that no server has by default.
    const MAX: &str = "765";
    let ask = |words: &[&str]| run(binary(), words, LIMIT);
    let max = format!("--max-connections={MAX}");
    for scene in Scene::both("doctor-tls", &["--require-secure-transport=ON", &max]) {
        let at = scene.real.address();
        let (ca, other) = (&scene.ca, scene.ca.with_file_name("other.pem"));
        std::fs::write(&other, Authority::new("another").pem()).unwrap();
        let [ca, other] = [ca, &other].map(|path| path.to_str().unwrap());
        let in_clear = match scene.real.flavour() {
            Flavour::MariaDb => "error 1045",
            Flavour::MySql => "error 3159",
        };
        let modes = format!(
            " => => {in_clear}
             ?ssl-mode=DISABLED => => {in_clear}
             ?ssl-mode=PREFERRED => =>
             ?ssl-mode=REQUIRED => =>
             ?ssl-mode=VERIFY_CA => --ca {ca} =>
             ?ssl-mode=VERIFY_IDENTITY => --ca {ca} =>
             ?ssl-mode=VERIFY_CA => --ca {other} => TLS with the server:
             ?ssl-mode=VERIFY_CA => => expected --ca FILE
             ?ssl-mode=REQUIRED => --ca {ca} => which checks no certificate"
        );
        for [mode, more, why] in table(&modes) {
            for command in ["doctor", "explain 1040"] {
                let line = format!("{command} --target mysql://app:app@{at}{mode} {more}");
                let ran = ask(&words(&line));
                match why {
                    "" => assert!(ran.status.success() && ran.stdout.contains(MAX), "{ran:?}"),
                    why => says(&format!("{line}: {}{}", ran.stdout, ran.stderr), why),
                }
            }
        }
        let target = format!("mysql://app:app@{at}");
        let ran = ask(&["doctor", "--json", "--target", &target]);
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let checks = answer["checks"].as_array().unwrap();
        let asked = checks.iter().find(|check| check["name"] == "server");
        let said = |key: &str| asked.unwrap()[key].as_str().unwrap().to_owned();
        assert!(said("why").contains(in_clear), "{ran:?}");
        assert!(said("remedy").contains("ssl-mode=REQUIRED"), "{ran:?}");
    }
}

/// A server without TLS is asked where that is optional only.
#[test]
fn the_doctor_asks_no_server_without_tls_that_has_to_have_it() {
    let real = or_return!(own(Real::start(&["--skip-ssl"])));
    for (mode, is_asked) in [("PREFERRED", true), ("REQUIRED", false)] {
        let target = format!("mysql://app:app@{}?ssl-mode={mode}", real.address());
        let ask = ["doctor", "--target", &target];
        let ran = run(binary(), &ask, LIMIT);
        assert_eq!(ran.status.success(), is_asked, "{mode}: {ran:?}");
        assert_eq!(ran.stdout.contains("TLS"), !is_asked, "{mode}: {ran:?}");
    }
}

#[test]
fn who_answers_in_the_servers_place_gets_no_password_by_a_key_of_his_own() {
    let link = or_return!(crate::silent_hosts::cable());
    let other = link.on(Host::Far, || FalseServer::at(Link::FAR));
    let folder = Folder::new("false-server");
    let pair = KeyPair::generate().unwrap();
    let pem = String::from_utf8(pair.public_pem().to_vec()).unwrap();
    let pinned = folder.put("public_key.pem", &pem);
    let start = |more: &str| {
        let text = format!(
            "groups = 1\n[backend]\naddress = \"{}:{}\"\n{more}\n\
             [[user]]\nname = \"app\"\npassword = \"app\"\n",
            Link::FAR,
            other.port
        );
        let arguments = ["--config", &folder.put("false.toml", &text)];
        let enter = link.enter(Host::Near);
        let enter = enter.each_ref().map(String::as_str);
        let started = Pool::start_behind(&enter, binary(), &arguments);
        started.map(drop).expect_err(more)
    };
    for more in ["", "tls = \"off\"", "tls = \"preferred\""] {
        let why = start(more);
        assert_eq!(other.got(), None, "{more}: {why}");
        for words in [
            "it was not sent",
            "backend.server_public_key",
            "backend.tls: the pool speaks to",
            "whoever answers in the server's place is taken for it",
        ] {
            assert!(why.contains(words), "{more}: {why}");
        }
    }
    let why = start("tls = \"required\"");
    assert_eq!(other.got(), None, "nor is a login sent: {why}");
    start(&format!("server_public_key = \"{pinned}\""));
    let got = other.got().expect("encrypted by the key that is known");
    assert_ne!(got, b"app");
    let plain = pair.decrypt(&got).unwrap();
    let nonce = b"abcdefghijklmnopqrst";
    assert_eq!(unmask(&plain, nonce).as_deref(), Some(&b"app"[..]));
    start("get_server_public_key = true");
    let got = other.got();
    assert_eq!(got.as_deref(), Some(&b"app"[..]), "as it was asked for");
    for words in [&["doctor"][..], &["load", "select", "prepare"]] {
        let ask = |more: &str| {
            let target = format!("mysql://app:app@{}:{}/shop{more}", Link::FAR, other.port);
            let [program, enter @ ..] = &link.enter(Host::Near)[..] else {
                unreachable!("it enters by a program");
            };
            let mut command = Command::new(program);
            command.args(enter).arg(binary()).args(words);
            let ran = command.args(["--target", &target]).output().unwrap();
            String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
        };
        let said = ask("");
        let got = other.got();
        assert!(got.is_none_or(|quit| quit == [1]), "{words:?}: {said}");
        assert!(said.contains("it was not sent"), "{words:?}: {said}");
        ask(&format!("?server_public_key={pinned}"));
        let plain = pair.decrypt(&other.got().expect("by the known key"));
        assert_eq!(unmask(&plain.unwrap(), nonce).as_deref(), Some(&b"app"[..]));
    }
}
