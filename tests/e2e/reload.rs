//! Reload: settings that are read again while clients are served, and what of them holds.

use crate::world::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const CONSOLE: &str = "[console]\nlisten = \"127.0.0.1:0\"\nadmin_user = \"admin\"\n\
                       admin_password = \"secret\"\n";
/// Users of the file of load.
const USERS: usize = 1000;

/// A pool whose file can be written again.
struct World<'r> {
    real: &'r Real,
    name: &'static str,
    pool: Pool,
}

impl<'r> World<'r> {
    fn start(real: &'r Real, name: &'static str, top: &str, users: &str) -> World<'r> {
        let file = write(real, name, top, users);
        let pool = Pool::start(binary(), &["--config", file.to_str().unwrap()]).unwrap();
        World { real, name, pool }
    }

    fn write(&self, top: &str, users: &str) {
        write(self.real, self.name, top, users);
    }

    fn admin(&self) -> Client {
        login(&console_of(&self.pool), &Account::new("admin", "secret"))
    }
}

fn write(real: &Real, name: &str, top: &str, users: &str) -> std::path::PathBuf {
    let text = config(&real.address(), &format!("{top}\n{CONSOLE}"));
    config_file(real, name, &format!("{text}\n{users}"))
}

/// A user of the file whose backends log in as the tests' own.
fn user(name: &str, password: &str, more: &str) -> String {
    let app = app();
    format!(
        "[[user]]\nname = \"{name}\"\npassword = \"{password}\"\nbackend_user = \"{}\"\n\
         backend_password = \"{}\"\n{more}\n",
        app.user, app.password
    )
}

#[test]
fn settings_hold_once_they_are_read_again() {
    let Some(real) = pooled(server) else { return };
    let users = [user("gone", "a", ""), user("kept", "b", "")].concat();
    let top = "groups = 2\nbackends_max = 8\nwait_ms_max = 20000";
    let world = World::start(real, "reload.toml", top, &users);
    let mut console = world.admin();
    let at = |name: &str, password: &str| {
        Client::connect(&world.pool.address, &Account::new(name, password))
    };
    let mut gone = at("gone", "a").unwrap();
    let mut kept = at("kept", "b").unwrap();
    gone.must("SET @x = 1");
    // Nothing has changed.
    let said = |console: &mut Client, text: &str| console.must(text);
    said(&mut console, "RELOAD");
    world.pool.wait_for("nothing has changed").unwrap();
    // One user goes, one comes, one has another password and limit; two settings hold from now on,
    // one needs a restart.
    let limit = "clients_max = 1";
    let users = [user("kept", "c", limit), user("new", "d", "")].concat();
    let top = "groups = 3\nbackends_max = 4\nwait_ms_max = 40000";
    world.write(top, &users);
    world.pool.hang_up().unwrap();
    let line = world.pool.wait_for("in force now").unwrap();
    for part in [
        "event=settings-read",
        "backends_max: 8 -> 4",
        "wait_ms_max: 20000 -> 40000",
        "user 'gone' (removed)",
        "user 'kept' (changed)",
        "user 'new' (new)",
        "only after a restart: groups: 2 -> 3",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let shown = |console: &mut Client, name: &str| {
        console.value(&format!("SELECT value FROM config WHERE name = '{name}'"))
    };
    assert_eq!(shown(&mut console, "wait_ms_max"), "40000");
    assert_eq!(shown(&mut console, "groups"), "2");
    // Who is here stays.
    assert_eq!(gone.value("SELECT @x"), "1");
    assert_eq!(kept.value("SELECT 1"), "1");
    assert!(at("gone", "a").is_err());
    assert!(at("kept", "b").is_err(), "its password has changed");
    let refused = at("kept", "c").and_then(|mut client| client.query("SELECT 1"));
    assert!(refused.is_err(), "it may have one client, and has one");
    drop(kept);
    assert_eq!(at("new", "d").unwrap().value("SELECT 1"), "1");
    // A file that is wrong changes nothing, and its place is said.
    world.write("wait_ms_max = 5\nbackends_max = \"many\"", &users);
    let wrong = console.failure("RELOAD");
    let line = world.pool.wait_for("event=settings-kept").unwrap();
    for said in [&wrong.message, &line] {
        assert!(said.contains("the settings of before go on"), "{said}");
        says(said, "line ");
        says(said, "backends_max");
    }
    assert_eq!(shown(&mut console, "wait_ms_max"), "40000");
    // More backends than at start need a restart; a user that was gone may come again.
    world.write("backends_max = 9", &user("gone", "e", ""));
    console.must("RELOAD");
    world
        .pool
        .wait_for("backends_max: 4 -> 9 (without a restart at most 8")
        .unwrap();
    assert_eq!(shown(&mut console, "backends_max"), "4");
    assert_eq!(at("gone", "e").unwrap().value("SELECT 1"), "1");
    assert!(at("new", "d").is_err());
    assert_eq!(gone.value("SELECT @x"), "1");
}

#[test]
fn a_changed_file_is_read_by_itself_if_that_is_asked_for() {
    let Some(real) = pooled(server) else { return };
    let users = user("one", "a", "");
    let top = "reload_on_change = true\nwait_ms_max = 20000";
    let world = World::start(real, "reload-changed.toml", top, &users);
    world.write("reload_on_change = true\nwait_ms_max = 10000", &users);
    let said = world.pool.wait_for("wait_ms_max: 20000 -> 10000");
    assert!(said.unwrap().contains("event=settings-read"));
    world.write("reload_on_change = true\nwait_ms_max = \"long\"", &users);
    let said = world.pool.wait_for("event=settings-kept").unwrap();
    let words = "reload-changed.toml: line 2, column 15: wait_ms_max: expected a number";
    says(&said, words);
    // It is the last time that it is looked at without being asked.
    world.write("wait_ms_max = 5000", &users);
    world.pool.wait_for("wait_ms_max: 10000 -> 5000").unwrap();
}

/// Counts that are kept for users with a limit only are right when the limit comes, or goes, amid
/// it.
#[test]
fn a_limit_that_comes_with_a_reload_counts_who_is_there() {
    let Some(real) = pooled(server) else { return };
    let top = "groups = 1\nbackends_max = 1";
    let without = user("limited", "x", "");
    let world = World::start(real, "reload-limit.toml", top, &without);
    let account = Account::new("limited", "x");
    let mut holder = login(&world.pool.address, &app());
    let mut waits = login(&world.pool.address, &account);
    let mut half = login(&world.pool.address, &account);
    let mut console = world.admin();
    let begin = |console: &mut Client, holder: &mut Client, waits: &mut Client| {
        holder.must(HOLD);
        holder.must("SELECT 1");
        send(waits, "SELECT 2");
        until(
            || match console.value("SELECT count(*) FROM clients WHERE state = 'waiting'") {
                count if count == "1" => Ok(()),
                count => Err(count),
            },
        );
    };
    let end = |holder: &mut Client, waits: &mut Client| {
        holder.must("COMMIT");
        assert_eq!(waits.receive().unwrap()[0].rows().only(), "2");
    };
    let reload = |console: &mut Client, users: &str| {
        world.write(top, users);
        console.must("RELOAD");
    };
    // A statement waits and a command has come half when the limits come.
    begin(&mut console, &mut holder, &mut waits);
    let long = format!("SELECT LENGTH('{}')", "x".repeat(200_000));
    let payload = [b"\x03", long.as_bytes()].concat();
    let len = u32::try_from(payload.len()).unwrap().to_le_bytes();
    let packet = [&len[..3], &[0], &payload].concat();
    half.send_raw(&packet[..150_000]).unwrap();
    let held = "SELECT bytes > 100000 FROM memory WHERE what LIKE 'incomplete%'";
    until(|| match console.value(held) {
        is_held if is_held == "1" => Ok(()),
        is_held => Err(is_held),
    });
    let with = user("limited", "x", "waiting_max = 1\ninput_bytes_max = 300000");
    reload(&mut console, &with);
    end(&mut holder, &mut waits);
    let answered = half.exchange(&packet[150_000..], Command::Query).unwrap();
    assert_eq!(answered[0].rows().only(), "200000");
    begin(&mut console, &mut holder, &mut waits);
    end(&mut holder, &mut waits);
    assert_eq!(half.value(&long), "200000");
    // And when they go, and come again.
    begin(&mut console, &mut holder, &mut waits);
    reload(&mut console, &without);
    end(&mut holder, &mut waits);
    reload(&mut console, &with);
    begin(&mut console, &mut holder, &mut waits);
    end(&mut holder, &mut waits);
}

#[test]
fn a_thousand_users_are_read_again_under_load() {
    let Some(real) = pooled(server) else { return };
    let users = |from: usize, limit: usize| -> String {
        let of = |at: usize| user(&format!("u{at}"), "x", &format!("waiting_max = {limit}"));
        (from..from + USERS).map(of).collect()
    };
    let top = "groups = 2\nbackends_max = 8";
    let world = World::start(real, "reload-load.toml", top, &users(0, 10));
    let (end, statements) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _end = Stop(&end);
        for worker in 0..4 {
            let (end, statements, pool) = (&end, &statements, &world.pool);
            scope.spawn(move || {
                // Clients that stay, of users that stay and of users that go, and logins.
                let account = |at: usize| Account::new(&format!("u{at}"), "x");
                let mut stays: Vec<Client> = (0..10)
                    .map(|at| login(&pool.address, &account(worker * 250 + at * 25)))
                    .collect();
                while !end.load(Ordering::Relaxed) {
                    for client in &mut stays {
                        assert_eq!(client.value("SELECT 1"), "1");
                        statements.fetch_add(1, Ordering::Relaxed);
                    }
                    let mut comes = login(&pool.address, &account(500 + worker));
                    assert_eq!(comes.value("SELECT 2"), "2");
                }
            });
        }
        let mut console = world.admin();
        for round in 1..=10 {
            // A hundred users go each time, and a hundred come; those from 900 on stay.
            let before = statements.load(Ordering::Relaxed);
            world.write(top, &users(round % 2 * 100, 10 + round));
            console.must("RELOAD");
            wait_while(|| statements.load(Ordering::Relaxed) < before + 40);
        }
    });
    let mut console = world.admin();
    assert_eq!(console.value("SELECT count(*) >= 1000 FROM users"), "1");
}
