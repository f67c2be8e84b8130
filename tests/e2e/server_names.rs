//! The server by its name: waited for until it can be looked up, tried at all of its addresses, and
//! followed when it moves. The pool has an `/etc/hosts` of its own, in a mount namespace.

use crate::walls::{has, is_root};
use crate::world::*;
use std::fs;

const NAME: &str = "db.onramp.test";
/// The rest of the line is run where this file is `/etc/hosts`.
const OWN_HOSTS: &str = r#"mount --bind "$1" /etc/hosts && shift && exec "$@""#;

fn can() -> bool {
    is_root() && has(&["unshare", "mount"])
}

/// Lets the name mean these addresses.
fn means(hosts: &Path, addresses: &[&str]) {
    let lines = addresses.iter().map(|one| format!("{one} {NAME}\n"));
    // In place: a bound file is that one, whatever its name comes to mean.
    fs::write(hosts, lines.collect::<String>()).unwrap();
}

/// Starts a pool for the server's name and this port, until it says `line`.
fn start(real: &Real, hosts: &Path, port: u16, line: &str) -> Pool {
    // Idle backends are closed, so that there are dials, which look the name up.
    let idle = "backends_min = 0\nbackend_idle_ms_max = 1\n";
    let extra = format!("{idle}backends_max = 4\ngroups = 1\nserver_down_fail_ms = 60000\n");
    let text = config(&real.address(), &extra);
    let text = text.replace(&real.address().to_string(), &format!("{NAME}:{port}"));
    let file = config_file(real, "named.toml", &text);
    let hosts = hosts.to_str().unwrap();
    let prefix = ["unshare", "--mount", "sh", "-c", OWN_HOSTS, "sh", hosts];
    let arguments = ["--config", file.to_str().unwrap()];
    Pool::start_until(line, &prefix, binary(), &arguments).unwrap_or_else(|why| panic!("{why}"))
}

fn hosts_of(real: &Real) -> PathBuf {
    let hosts = real.folder().join("hosts");
    means(&hosts, &[]);
    hosts
}

#[test]
fn a_name_that_means_nothing_is_waited_for_and_its_addresses_are_all_tried() {
    if !can() {
        return;
    }
    let real = or_return!(pooled(own_server));
    let hosts = hosts_of(&real);
    let waiting = format!("waiting for the server: cannot look up {NAME}");
    let pool = start(&real, &hosts, real.port(), &waiting);
    // Nobody listens at the first two.
    means(&hosts, &["127.0.0.77", "127.0.0.78", "127.0.0.1"]);
    pool.wait_for("listening on").unwrap();
    let mut client = login(&pool.address, &app());
    assert_eq!(client.value("SELECT 1"), "1");
    let asked = "SELECT COUNT(*) FROM information_schema.processlist";
    assert_eq!(client.value(asked), "2");
}

#[test]
fn a_server_that_moves_is_followed_by_its_name() {
    if !can() {
        return;
    }
    let mut old = or_return!(pooled(own_server));
    let port = format!("--port={}", old.port());
    let new = or_return!(own(Real::start(&["--bind-address=127.0.0.2", &port])));
    for (real, who) in [(&old, "old"), (&new, "new")] {
        let fill = format!("INSERT INTO place.t VALUES ('{who}')");
        real.execute(&[
            "CREATE DATABASE place",
            "CREATE TABLE place.t (v TEXT)",
            &fill,
        ]);
    }
    let hosts = hosts_of(&old);
    means(&hosts, &["127.0.0.1"]);
    let pool = start(&old, &hosts, old.port(), "listening on");
    let mut client = login(&pool.address, &app().schema("place"));
    let mut inside = login(&pool.address, &app().schema("place"));
    assert_eq!(client.value("SELECT v FROM t"), "old");
    inside.must("BEGIN");
    assert_eq!(inside.value("SELECT v FROM t"), "old");
    // The old one still answers: who is in a transaction stays there, and nobody else.
    means(&hosts, &["127.0.0.2"]);
    await_answer(&mut client, "new");
    assert_eq!(inside.value("SELECT v FROM t"), "old");
    inside.must("COMMIT");
    assert_eq!(inside.value("SELECT v FROM t"), "new");
    assert_eq!(client.value("SELECT v FROM t"), "new");
    pool.wait_for(&format!("{NAME}:{} is now at 127.0.0.2", old.port()))
        .unwrap();
    // Back again, this time because the other one is gone.
    means(&hosts, &["127.0.0.1"]);
    drop(new);
    await_answer(&mut client, "old");
    old.stop();
}

/// Asks until this server answers; an error on the way is the old one's end.
fn await_answer(client: &mut Client, who: &str) {
    wait_while(|| {
        // Long enough without work for its backend to be closed as idle.
        std::thread::sleep(Duration::from_millis(700));
        let answer = client.query("SELECT v FROM t").unwrap();
        !matches!(&answer[..], [Outcome::Rows(rows)] if rows.texts() == [[who]])
    });
}
