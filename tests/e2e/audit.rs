//! The audit trail: who came in, who did not, and why they went.

use crate::console::{admin, rows, start};
use crate::world::*;
use serde_json::Value;

/// The trail goes where the log goes, so that a test can wait for its lines.
pub(crate) const TRAIL: &str = "audit_log = \"/dev/stderr\"";

/// The line of the trail that has this text in it.
fn line(pool: &Pool, part: &str) -> Value {
    let line = pool
        .wait_for(part)
        .unwrap_or_else(|why| panic!("{part}: {why}"));
    serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"))
}

/// The line about this event of a client.
fn event(pool: &Pool, event: &str, id: u32) -> Value {
    line(pool, &format!("\"{event}\",\"connection_id\":{id},"))
}

pub(crate) fn id(client: &Client) -> u32 {
    client.talk().greeting.as_ref().unwrap().connection_id
}

/// The reason for which this client has ended.
pub(crate) fn end(pool: &Pool, id: u32) -> String {
    let line = event(pool, "disconnect", id);
    assert_eq!(line["account"]["user"], "app", "{line}");
    line["connection_data"]["reason"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn each_login_and_each_end_is_a_line() {
    for real in pooled_servers() {
        let extra = format!("{TRAIL}\nbackends_max = 8\ngroups = 2");
        let (pool, place) = start(real, "audit.toml", &extra);
        let mut console = admin(&place);
        let account = app().schema("mysql").with(cap::CONNECT_ATTRS);
        let mut client = login(&pool.address, &account);
        let shown = event(&pool, "connect", id(&client));
        let time = shown["timestamp"].as_str().unwrap();
        let form = (time.len(), &time[10..11], &time[13..14]);
        assert_eq!(form, (19, " ", ":"), "{shown}");
        assert_eq!(shown["class"], "connection");
        for of in ["account", "login"] {
            assert_eq!(shown[of]["user"], "app");
        }
        assert_eq!(shown["login"]["ip"], "127.0.0.1");
        let data = &shown["connection_data"];
        let port = client.local_address().unwrap().port();
        assert_eq!(data["status"], 0, "{shown}");
        assert_eq!(data["port"], port, "{shown}");
        assert_eq!(data["connection_type"], "tcp/ip");
        assert_eq!(data["db"], "mysql");
        assert_eq!(data["connection_attributes"]["program_name"], "onramp");
        client.send(&[(Command::Quit, b"")]).unwrap();
        assert_eq!(end(&pool, id(&client)), "quit");
        let left = event(&pool, "disconnect", id(&client));
        assert_eq!(left["login"]["ip"], "127.0.0.1", "{left}");
        let client = login(&pool.address, &app());
        let gone = id(&client);
        drop(client);
        assert_eq!(end(&pool, gone), "disconnected");
        // One that leaves with its reply unread resets its connection.
        let mut client = login(&pool.address, &app());
        let (gone, question) = (id(&client), "SELECT statements FROM clients WHERE id =");
        send(&mut client, "SELECT 1");
        until(
            || match &rows(&mut console, &format!("{question} {gone}"))[..] {
                [row] if row[0] == "1" => Ok(()),
                other => Err(format!("{other:?}")),
            },
        );
        drop(client);
        assert_eq!(end(&pool, gone), "disconnected");
        let left = event(&pool, "disconnect", gone);
        assert_eq!(left["login"]["ip"], "127.0.0.1", "{left}");

        // Names that are made to break a line.
        for (user, reason) in [
            ("app", "wrong-password"),
            ("no\"body\",\"status\":0}\r\n{", "unknown-user"),
        ] {
            assert!(Client::connect(&pool.address, &Account::new(user, "wrong")).is_err());
            let part = "\"status\":1045,\"db\":\"\",\"port\":";
            let said = until(|| {
                let said = pool.said();
                let lines = said.lines().filter(|line| line.contains(part));
                let mut lines = lines.filter(|line| line.contains(reason));
                lines.next().map(str::to_owned).ok_or(said.clone())
            });
            let said: Value = serde_json::from_str(&said).unwrap();
            assert_eq!(said["event"], "connect");
            assert_eq!(said["login"]["user"], user);
        }

        // A change of user: one that is let in, and one that is not.
        let mut client = login(&pool.address, &app());
        client.change_user(&Account::new("small", "small")).unwrap();
        let changed = event(&pool, "change_user", id(&client));
        assert_eq!(
            (
                &changed["account"]["user"],
                &changed["connection_data"]["status"]
            ),
            (&"small".into(), &0.into())
        );
        let mut client = login(&pool.address, &app());
        let _ = client.change_user(&Account::new("small", "wrong"));
        let changed = event(&pool, "change_user", id(&client));
        let data = &changed["connection_data"];
        assert_eq!(data["status"], 1045);
        assert_eq!(data["reason"], "wrong-password");
        if real.flavour() == Flavour::MySql {
            assert_eq!(end(&pool, id(&client)), "wrong-password");
        }

        // Ends that others bring about.
        let mut killer = login(&pool.address, &app());
        let victim = login(&pool.address, &app());
        killer.must(&format!("KILL {}", id(&victim)));
        assert_eq!(end(&pool, id(&victim)), "killed");
        let victim = login(&pool.address, &app());
        console.must(&format!("KILL {}", id(&victim)));
        assert_eq!(end(&pool, id(&victim)), "killed-at-console");
        let mut victim = login(&pool.address, &app());
        victim.must(HOLD);
        let thread = rows(&mut console, "SELECT thread FROM transactions")
            .remove(0)
            .remove(0);
        login(&real.address(), &app()).must(&format!("KILL {thread}"));
        assert_eq!(end(&pool, id(&victim)), "backend-lost");
        let mut idle = login(&pool.address, &app());
        idle.must("SET wait_timeout = 1");
        assert_eq!(end(&pool, id(&idle)), "idle-timeout");
        pool.wait_for("event=idle-closed").unwrap();
        let mut stops = login(&pool.address, &app());
        stops.must("SET net_read_timeout = 1");
        stops.send_unframed(b"\x64\0\0\0\x03SEL").unwrap();
        assert_eq!(end(&pool, id(&stops)), "stalled");
        console.must("SET statement_ms_max = 1000");
        let mut slow = login(&pool.address, &app());
        assert_eq!(slow.failure("SELECT SLEEP(20)").code, 3024);
        assert_eq!(end(&pool, id(&slow)), "statement-time");
        console.must("SET statement_ms_max = DEFAULT");
        // As many as are there already.
        let clients = rows(&mut console, "SELECT count(*) FROM clients")
            .remove(0)
            .remove(0);
        console.must(&format!("SET clients_max = {clients}"));
        assert!(Client::connect(&pool.address, &app()).is_err());
        let refused = line(&pool, "\"reason\":\"clients\"");
        assert_eq!(refused["connection_data"]["status"], 1040);
        console.must("SET clients_max = DEFAULT");
        let stays = login(&pool.address, &app());
        let (stays, mut holds) = (id(&stays), login(&pool.address, &app()));
        holds.must(HOLD);
        // The second signal does not wait for it.
        console.must("SET drain_ms_max = 1");
        pool.terminate();
        assert_eq!(end(&pool, id(&holds)), "drain");
        assert!(["drain", "disconnected"].contains(&&*end(&pool, stays)));
        line(&pool, "\"class\":\"audit\",\"event\":\"shutdown\"");
        let said = ended(pool);
        let is_trail = |line: &&str| line.starts_with("{\"timestamp\"");
        let lines: Vec<Value> = (said.lines().filter(is_trail))
            .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
            .collect();
        assert_eq!(lines[0]["event"], "startup");
        // Who was let in has one line for that, and one for the end.
        let ids = |event: &str| {
            let of = |line: &&Value| {
                line["event"] == event
                    && line["connection_data"]["status"].as_u64().unwrap_or(0) == 0
            };
            let mut ids: Vec<u64> = lines
                .iter()
                .filter(of)
                .map(|line| line["connection_id"].as_u64().unwrap())
                .collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids("connect"), ids("disconnect"));
    }
}

#[test]
fn the_trail_and_the_console_say_how_a_client_is_secured() {
    for real in pooled_servers() {
        let under_tls = tls(real, "optional");
        let extra = format!("{TRAIL}\ngroups = 1\nbackends_max = 2\n{under_tls}");
        let (pool, place) = start(real, "audit-tls.toml", &extra);
        let mut console = admin(&place);
        let secured = || app().with(cap::SSL);
        for (account, version, cipher) in [
            (secured(), "TLSv1.3", "TLS_AES_256_GCM_SHA384"),
            (secured().tls12(), "TLSv1.2", "ECDHE-AES256-GCM-SHA384"),
        ] {
            let client = login(&pool.address, &account);
            let data = event(&pool, "connect", id(&client))["connection_data"].take();
            assert_eq!(data["connection_type"], "ssl");
            assert_eq!(data["tls_version"], *version);
            assert_eq!(data["tls_cipher"], *cipher);
            let number = id(&client);
            let shown = format!("SELECT tls, tls_version, cipher FROM clients WHERE id = {number}");
            assert_eq!(rows(&mut console, &shown), [["1", version, cipher]]);
        }
    }
}

/// Lines of a file of the trail about logins and ends of clients.
fn trail(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// Waits until the file has a line about this event of a client; how many there are.
fn count(path: &Path, event: &str, id: u32) -> usize {
    until(|| {
        let lines = trail(path);
        let of = |line: &&Value| line["event"] == event && line["connection_id"] == id;
        match lines.iter().filter(of).count() {
            0 => Err(format!("no {event} of {id}: {lines:?}")),
            count => Ok(count),
        }
    })
}

#[test]
fn a_trail_goes_on_in_another_file_and_in_another_process() {
    for real in pooled_servers() {
        let (path, old) = (
            real.folder().join("audit.log"),
            real.folder().join("audit.log.1"),
        );
        let shown = path.display();
        let extra = format!("audit_log = \"{shown}\"\ngroups = 1\nbackends_max = 2");
        let file = config_file(real, "audit-file.toml", &config(&real.address(), &extra));
        let arguments = ["--config", file.to_str().unwrap()];
        let pool = Pool::start(binary(), &arguments).unwrap();
        let first = login(&pool.address, &app());
        assert_eq!(count(&path, "connect", id(&first)), 1);
        std::fs::rename(&path, &old).unwrap();
        pool.hang_up().unwrap();
        pool.wait_for("event=settings-read").unwrap();
        let mut second = login(&pool.address, &app());
        assert_eq!(count(&path, "connect", id(&second)), 1);
        assert_eq!(trail(&old).len(), 2, "the start, and the first login");
        let new = pool.succeed(binary(), &arguments).unwrap();
        ended(pool);
        // It is another process that serves them.
        second.must("SELECT 1");
        let ids = [id(&first), id(&second)];
        drop((first, second));
        for id in ids {
            assert_eq!(count(&path, "disconnect", id), 1);
        }
        let lines = trail(&path);
        let events: Vec<&Value> = lines.iter().map(|line| &line["event"]).collect();
        assert_eq!(events, ["connect", "disconnect", "disconnect"]);
        new.terminate();
        new.wait();
    }
}

#[test]
fn what_cannot_be_written_is_counted_and_said() {
    for real in pooled_servers() {
        let (pool, place) = start(real, "audit-full.toml", "audit_log = \"/dev/full\"");
        login(&pool.address, &app());
        says(&pool.wait_for("event=audit-lost").unwrap(), "No space left");
        let mut console = admin(&place);
        let lost = "SELECT value > 0 FROM stats WHERE name = 'onramp_pool_audit_lines_lost_total'";
        assert_eq!(rows(&mut console, lost), [["1"]]);
        console.must("SET audit_log = '/dev/stderr'");
        let client = login(&pool.address, &app());
        event(&pool, "connect", id(&client));
        let words = "omitted=";
        says(&pool.wait_for("lines are written again").unwrap(), words);
        let refused = console.failure("SET audit_log = '/nowhere/audit.log'");
        says(&refused.message, "audit_log: /nowhere/audit.log: ");
        let extra = "audit_log = \"/nowhere/audit.log\"";
        let file = config_file(real, "audit-none.toml", &config(&real.address(), extra));
        let why = Pool::start(binary(), &["--config", file.to_str().unwrap()]).unwrap_err();
        says(&why, "audit_log: /nowhere/audit.log: ");
    }
}

#[test]
fn accounts_of_the_server_are_named() {
    for real in own_servers(&[]) {
        real.execute(&[
            "CREATE USER watcher@'%' IDENTIFIED BY 'watching'",
            match real.flavour() {
                Flavour::MariaDb => "GRANT SELECT ON mysql.global_priv TO watcher@'%'",
                Flavour::MySql => "GRANT SELECT ON mysql.user TO watcher@'%'",
            },
        ]);
        real.create_user("app", "app");
        let text = format!(
            "auth = \"server\"\n{TRAIL}\nbackends_max = 4\n[backend]\naddress = \"{}\"\n\
             monitor_user = \"watcher\"\nmonitor_password = \"watching\"\n",
            real.address()
        );
        let pool = pool_from(&real, &text);
        let client = login(&pool.address, &app());
        assert_eq!(
            event(&pool, "connect", id(&client))["account"]["user"],
            "app"
        );
        let gone = id(&client);
        drop(client);
        assert_eq!(end(&pool, gone), "disconnected");
        assert!(Client::connect(&pool.address, &Account::new("app", "wrong")).is_err());
        line(&pool, "\"reason\":\"wrong-password\"");
    }
}
