//! More drills of whoever is on call: the page and the console lead to the culprit's name in two
//! commands at most. Those about locks, refusals and lost backends are in `on_call.rs`.

use crate::console::{admin, rows, start};
use crate::memory::hoard;
use crate::metrics::{HTTP, get, place_of};
use crate::on_call::first_row;
use crate::world::*;
use serde_json::Value;
use testkit::real::await_blocked;
use wire::capabilities::CONNECT_ATTRS;

/// Clients of the application that opens too many.
const CROWD: usize = 5000;

fn culprit() -> Account {
    Account::new("small", "small").with(CONNECT_ATTRS)
}

fn id(client: &Client) -> String {
    crate::audit::id(client).to_string()
}

#[test]
fn who_floods_with_a_bad_statement_is_found() {
    for real in pooled_servers() {
        let (pool, place) = start(real, "drill-flood.toml", "backends_max = 4\ngroups = 2");
        let mut console = admin(&place);
        let (mut good, mut bad) = (
            login(&pool.address, &app()),
            login(&pool.address, &culprit()),
        );
        for _ in 0..20 {
            good.must("SELECT 1");
            bad.failure("SELECT 'x' FROM nowhere.at_all");
        }
        let digest = until(|| {
            let question = "SHOW STATEMENTS ORDER BY errors DESC LIMIT 1";
            match &rows(&mut console, question)[..] {
                [row] if row[3] == "20" => Ok(row[0].clone()),
                other => Err(format!("{other:?}")),
            }
        });
        let question = format!("SELECT id, user, program FROM clients WHERE digest = '{digest}'");
        assert_eq!(
            rows(&mut console, &question),
            [[&*id(&bad), "small", "onramp"]]
        );
    }
}

#[test]
fn a_server_that_is_full_or_stands_still_is_found() {
    for real in own_servers(&["--max-connections=10"]) {
        let extra = "backends_max = 4\ngroups = 1\nserver_down_fail_ms = 600000";
        let (pool, place) = start(&real, "drill-slow.toml", extra);
        let (mut console, mut client) = (admin(&place), login(&pool.address, &app()));
        let connect = || Client::connect(&real.address(), &app()).ok();
        let others: Vec<Client> = std::iter::from_fn(connect).collect();
        send(&mut client, "SELECT 1");
        let full = "SELECT 1 FROM servers WHERE state = 'writer' AND why LIKE '%1040%'";
        first_row(&mut console, full);
        drop(others);
        assert_eq!(client.receive().unwrap().len(), 1);
        first_row(&mut console, "SELECT 1 FROM servers WHERE why IS NULL");
        let text = "SELECT SLEEP(600)";
        send(&mut client, text);
        await_blocked(&mut real.admin(), &client, text);
        real.suspend();
        // What runs is on a connection to this server, and its queues are not what it waits for.
        let running = first_row(&mut console, "SHOW RUNNING");
        assert_eq!(
            (&*running[0], &*running[4]),
            (&*id(&client), "running"),
            "{running:?}"
        );
        let backend = first_row(&mut console, "SHOW BACKENDS WHERE state = 'running'");
        assert_eq!(
            (&*backend[1], &backend[2]),
            ("app", &real.address().to_string())
        );
        assert_eq!(backend[5], id(&client));
        real.resume();
    }
}

#[test]
fn who_makes_memory_grow_is_found_and_ended() {
    for real in pooled_servers() {
        let (pool, place) = start(real, "drill-memory.toml", "backends_max = 4\ngroups = 2");
        let mut console = admin(&place);
        let (_other, mut grows) = (
            login(&pool.address, &app()),
            login(&pool.address, &culprit()),
        );
        assert!(hoard(&mut grows, 1).is_none());
        let named = until(|| {
            let all = rows(&mut console, "SHOW MEMORY");
            let mut most = all
                .iter()
                .filter(|row| row[0].starts_with("most of one client: "));
            let most = most.next().ok_or("nobody holds anything")?;
            match most[1].parse::<usize>().unwrap() {
                0..1_000_000 => Err(format!("{all:?}")),
                _ => Ok((most[0].clone(), all)),
            }
        });
        let (most, all) = named;
        let words = format!("{} ('small', 127.0.0.1:", id(&grows));
        says(&most, &words);
        assert!(most.ends_with(", onramp)"), "{most}");
        // The parts are the whole.
        let bytes = |at: usize| all[at][1].parse::<u64>().unwrap();
        assert_eq!(bytes(1), bytes(2) + bytes(3) + bytes(4), "{all:?}");
        assert_eq!(bytes(0), bytes(1) + bytes(5), "{all:?}");
        console.must(&format!("KILL {}", id(&grows)));
    }
}

#[test]
fn a_rotated_password_is_found() {
    for real in own_servers(&[]) {
        let extra = "backends_max = 2\ngroups = 1\nbackends_reserved = 0";
        let (pool, place) = start(&real, "drill-rotated.toml", extra);
        let (mut console, mut client) = (admin(&place), login(&pool.address, &app()));
        client.must("SELECT 1");
        real.execute(&["ALTER USER app@'%' IDENTIFIED BY 'rotated'"]);
        console.must("RECONNECT");
        let failure = until(|| match client.query("SELECT 1").unwrap().pop() {
            Some(testkit::reply::Outcome::Failed(failure)) => Ok(failure),
            other => Err(format!("{other:?}")),
        });
        assert!([1429, 4031].contains(&failure.code), "{failure:?}");
        let refused = first_row(&mut console, "SHOW REFUSALS");
        assert_eq!(refused[..2], ["app", "backend-login"]);
    }
}

/// Waits until the console shows this answer.
fn shows(console: &mut Client, text: &str, expected: &[&[&str]]) {
    until(|| match rows(console, text) {
        shown if shown == expected => Ok(()),
        shown => Err(format!("{text}: {shown:?} for {expected:?}")),
    });
}

#[test]
fn who_holds_a_table_or_a_name_is_found_and_ended() {
    const LOCKS: &str = "SELECT kind, locked, id, blocked_by, blocker_state FROM locks \
                         ORDER BY kind, statement";
    for real in own_servers(&["--performance-schema=ON"]) {
        let (pool, place) = start(&real, "drill-locks.toml", "backends_max = 8\ngroups = 2");
        fresh_schema(&real, "drill_locks");
        let mut console = admin(&place);
        let of = || login(&pool.address, &app().schema("drill_locks"));
        let (mut holder, mut alters, mut reads, mut asks) = (of(), of(), of(), of());
        holder.script("CREATE TABLE held (id INT PRIMARY KEY) ENGINE=InnoDB; BEGIN");
        holder.script("SELECT * FROM held; SELECT GET_LOCK('nightly', 0)");
        send(&mut alters, "ALTER TABLE held ADD v INT");
        let [holds, alter, read, ask] = [&holder, &alters, &reads, &asks].map(id);
        let first =
            |name: &'static str| -> [&str; 5] { ["metadata", name, &alter, &holds, "holding"] };
        if real.flavour() == Flavour::MariaDb {
            let untold: &[&str] = &["metadata", "NULL", &alter, "NULL", "NULL"];
            shows(&mut console, LOCKS, &[untold]);
            real.execute(&["INSTALL SONAME 'metadata_lock_info'"]);
        }
        // Behind it whoever reads the table; what he waits for is not the ALTER.
        shows(&mut console, LOCKS, &[&first("drill_locks.held")]);
        send(&mut reads, "SELECT * FROM held");
        send(&mut asks, "SELECT GET_LOCK('nightly', 600)");
        let second = ["metadata", "drill_locks.held", &*read, &*holds, "holding"];
        let third = ["name", "nightly", &*ask, &*holds, "holding"];
        let all = [&first("drill_locks.held")[..], &second, &third];
        shows(&mut console, LOCKS, &all);
        if real.flavour() == Flavour::MariaDb {
            // The pool knows the names of its clients' locks without it.
            real.execute(&["UNINSTALL SONAME 'metadata_lock_info'"]);
            let question = format!("{LOCKS} LIMIT 1 OFFSET 2");
            shows(&mut console, &question, &all[2..]);
        }
        // Each pin has its age.
        let question =
            format!("SELECT pins FROM clients WHERE id = {holds} AND pins LIKE 'user_lock _% s'");
        first_row(&mut console, &question);
        console.must(&format!("KILL {holds}"));
        for client in [&mut alters, &mut reads, &mut asks] {
            assert_eq!(client.receive().unwrap().len(), 1, "it has the lock");
        }
    }
}

#[test]
fn locks_that_mysql_does_not_keep_are_said_not_to_be_told() {
    let mdl = "UPDATE performance_schema.setup_instruments SET ENABLED = 'NO' \
               WHERE NAME = 'wait/lock/metadata/sql/mdl'";
    let servers = own_servers(&["--performance-schema=ON"]);
    for real in (servers.into_iter()).filter(|real| real.flavour() != Flavour::MariaDb) {
        real.create_user("app", "app");
        real.execute(&[mdl]);
        let (pool, place) = start(&real, "drill-untold.toml", "backends_max = 8\ngroups = 2");
        fresh_schema(&real, "drill_untold");
        let mut console = admin(&place);
        let of = || login(&pool.address, &app().schema("drill_untold"));
        let (mut holder, mut alters) = (of(), of());
        holder.script("CREATE TABLE held (id INT PRIMARY KEY); BEGIN; SELECT * FROM held");
        send(&mut alters, "ALTER TABLE held ADD v INT");
        let untold: &[&str] = &["metadata", "(mdl instrument off)", &id(&alters), "NULL"];
        let question = "SELECT kind, locked, id, blocked_by FROM locks";
        shows(&mut console, question, &[untold]);
        console.must(&format!("KILL {}", id(&holder)));
        assert_eq!(alters.receive().unwrap().len(), 1, "it has the lock");
    }
}

#[test]
fn who_leaves_statements_prepared_is_found() {
    for real in pooled_servers() {
        let (pool, place) = start(real, "drill-prepared.toml", "backends_max = 4\ngroups = 2");
        let mut console = admin(&place);
        let _other = login(&pool.address, &app());
        let mut leaks = login(&pool.address, &culprit());
        for number in 0..50 {
            leaks.prepare(&format!("SELECT ? AS leak_{number}"));
        }
        let question = "SELECT id, user, prepared FROM clients ORDER BY prepared DESC LIMIT 1";
        assert_eq!(
            rows(&mut console, question),
            [[&*id(&leaks), "small", "50"]]
        );
    }
}

#[test]
fn an_application_that_opens_too_many_connections_is_found() {
    let Some(real) = pooled(server) else { return };
    let (pool, place) = start(real, "drill-crowd.toml", "backends_max = 4\ngroups = 2");
    let mut console = admin(&place);
    let _other = login(&pool.address, &app());
    let crowd: Vec<Client> = (0..CROWD)
        .map(|_| login(&pool.address, &culprit()))
        .collect();
    let question = "SELECT user, program, state, count(*) FROM clients GROUP BY 1, 2, 3 \
                    ORDER BY 4 DESC LIMIT 1";
    let expected = ["small", "onramp", "idle", &CROWD.to_string()];
    assert_eq!(rows(&mut console, question), [expected]);
    drop(crowd);
}

/// True if a table of the page has a row with these parts in its columns.
fn has_row(page: &Value, table: &str, wanted: &[(&str, &str)]) -> bool {
    let table = [&page["tables"][table], &page[table]];
    let Some(table) = table.into_iter().find(|table| table.is_object()) else {
        return false;
    };
    let names = table["names"].as_array().unwrap();
    let has = |row: &Value, (name, part): &(&str, &str)| {
        let at = names.iter().position(|other| other == name).unwrap();
        row[at].to_string().contains(part)
    };
    let mut rows = table["rows"].as_array().unwrap().iter();
    rows.any(|row| wanted.iter().all(|wanted| has(row, wanted)))
}

#[test]
fn the_page_alone_names_the_culprit_of_each_drill() {
    for real in pooled_servers() {
        let lines = format!("{HTTP}backends_max = 4\ngroups = 2");
        let (pool, place) = start(real, "drill-page.toml", &lines);
        let (mut console, page) = (admin(&place), place_of(&pool));
        let of = || login(&pool.address, &culprit());
        let (mut holds, mut slow, mut bad, mut grows, mut lost) = (of(), of(), of(), of(), of());
        let _idle: Vec<Client> = (0..40).map(|_| of()).collect();
        lost.must(HOLD);
        let question = format!("SELECT thread FROM transactions WHERE id = {}", id(&lost));
        let thread = first_row(&mut console, &question).remove(0);
        real.admin().must(&format!("KILL {thread}"));
        // The log tells of it, with the number to look for.
        logs(
            &pool,
            "event=backend-lost",
            &format!("id={} account=\"small\"", id(&lost)),
        );
        holds.must(HOLD);
        (0..20).for_each(|_| drop(bad.failure("SELECT 'x' FROM nowhere.at_all")));
        assert!(hoard(&mut grows, 1).is_none());
        assert!(Client::connect(&pool.address, &Account::new("app", "wrong")).is_err());
        let text = b"SELECT SLEEP(600)";
        slow.send(&[(Command::Query, text)]).unwrap();
        let [holder, sleeper, hoarder] = [&holds, &slow, &grows].map(id);
        let most = format!("most of one client: {hoarder} ('small'");
        let wanted: [(&str, &[(&str, &str)]); 8] = [
            ("transactions", &[("id", &*holder), ("user", "small")]),
            ("holders", &[("user", "small"), ("program", "onramp")]),
            ("running", &[("id", &*sleeper), ("statement", "SLEEP(?)")]),
            ("statements", &[("errors", "20"), ("statement", "nowhere")]),
            ("users", &[("user", "small"), ("errors", "20")]),
            ("memory", &[("what", &*most)]),
            ("refusals", &[("account", "app"), ("reason", "wrong")]),
            ("sources", &[("user", "small"), ("clients", "4")]),
        ];
        until(|| {
            let page = get(&page, "/live.json", "application/json").1;
            let shown: Value = serde_json::from_str(&page).unwrap();
            let mut missing = wanted
                .iter()
                .filter(|(table, row)| !has_row(&shown, table, row));
            missing
                .next()
                .map_or(Ok(()), |row| Err(format!("{row:?}: {page}")))
        });
    }
}
