//! Terms of each of several servers: TLS, and a limit on connections, of its own.

use crate::bank::bank;
use crate::cluster::{Pair, console, patient};
use crate::console::await_rows;
use crate::reads::say_name;
use crate::world::*;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::certificates::{Authority, Valid, put};

/// The server that answers a read.
const WHERE: &str = "SELECT name FROM here";
/// Limits on connections to the first and the second.
const LIMITS: [usize; 2] = [2, 3];
/// Clients that write, and as many that read.
const CLIENTS: usize = 6;

/// A writer, and a replica that takes connections under TLS only.
struct Scene {
    pair: Pair,
    folder: PathBuf,
}

impl Scene {
    fn start(test: &str, is_mysql: bool) -> Option<Scene> {
        let name = format!("onramp-{test}-{is_mysql}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name.replace(':', "-"));
        std::fs::create_dir_all(&folder).unwrap();
        let authority = Authority::new("the authority");
        let ca = put(&folder, "ca.pem", &authority.pem());
        let _ = put(&folder, "other.pem", &Authority::new("another").pem());
        let signed = authority.sign("two", &["127.0.0.1"], Valid::Now);
        let (cert, key) = signed.put(&folder, "two");
        let options = [
            format!("--ssl-ca={}", ca.display()),
            format!("--ssl-cert={}", cert.display()),
            format!("--ssl-key={}", key.display()),
            "--require-secure-transport=ON".into(),
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let scene = Scene {
            pair: Pair::start_with(test, is_mysql, &options)?,
            folder,
        };
        let sql = "CREATE TABLE bank.here (name VARCHAR(9)) ENGINE=InnoDB; \
                   INSERT INTO bank.here VALUES ('one')";
        scene.pair.one.script(sql);
        say_name(&scene.pair.one, &scene.pair.two, "two");
        Some(scene)
    }

    /// Settings that check certificates by this authority's, with lines for each server.
    fn settings(&self, ca: &str, [one, two]: [&str; 2]) -> String {
        let addresses = [&self.pair.one, &self.pair.two].map(Real::address);
        let ca = self.folder.join(ca);
        format!(
            "backends_max = 8\ngroups = 2\n\
             [backend]\nmonitor_user = \"app\"\nmonitor_password = \"app\"\n\
             tls = \"verify_ca\"\ntls_ca = \"{ca}\"\n\
             [[server]]\nname = \"one\"\naddress = \"{}\"\ntls = \"off\"\n{one}\n\
             [[server]]\nname = \"two\"\naddress = \"{}\"\n{two}\n\
             [console]\nlisten = \"127.0.0.1:0\"\nadmin_user = \"admin\"\n\
             admin_password = \"admin\"\n\
             [[user]]\nname = \"bank\"\npassword = \"bank\"\n[cluster]\n{}\n",
            addresses[0],
            addresses[1],
            patient(""),
            ca = ca.display(),
        )
    }

    /// Words of `--check=server` about these settings.
    fn checked(&self, ca: &str, two: &str) -> String {
        let part = self.settings(ca, ["", two]);
        let text = format!("listen = [\"127.0.0.1:0\"]\n{part}");
        let file = config_file(&self.pair.one, "checked.toml", &text);
        let words = ["pool", "--check=server", "--config"];
        let ran = Command::new(binary()).args(words).arg(file).output();
        let ran = ran.unwrap();
        String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn scenes() -> impl Iterator<Item = Scene> {
    on_both(Scene::start)
}

fn await_reader(pool: &Pool) {
    pool.wait_for("event=server-state message='two' is reader")
        .unwrap();
}

fn reader(pool: &Pool) -> Client {
    let mut client = login(&pool.address, &bank());
    client.must("SET onramp_read_from = 'readers'");
    client
}

fn is_under_tls(client: &mut Client) -> bool {
    let rows = client.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'").texts();
    !rows[0][1].is_empty()
}

#[test]
fn each_server_has_its_own_tls() {
    for scene in scenes() {
        let two = scene.pair.two.address();
        let other = scene.folder.join("other.pem");
        let own = format!("tls_ca = \"{}\"", other.display());
        let refused = format!("the server at {two}, account 'app': TLS with the server");
        for (ca, lines, words, setting) in [
            ("ca.pem", "", format!("at {two}; 2 accounts can log in"), ""),
            ("other.pem", "", refused.clone(), "backend.tls_ca"),
            ("ca.pem", &own, refused, "tls_ca of this [[server]]"),
        ] {
            let said = scene.checked(ca, lines);
            says(&said, &words);
            says(&said, setting);
        }
        // The name is that of each server's own address.
        let settings = scene.settings("ca.pem", ["", "tls = \"verify_identity\""]);
        let pool = pool_from(&scene.pair.one, &settings);
        await_reader(&pool);
        let mut client = login(&pool.address, &bank());
        assert!(!is_under_tls(&mut client));
        assert_eq!(reader(&pool).value(WHERE), "two");
        console(&pool).must("SWITCH TO two");
        assert_eq!(client.value(WHERE), "two");
        assert!(is_under_tls(&mut client));
        let id = client.value("SELECT CONNECTION_ID()");
        std::thread::scope(|scope| {
            let sleeps = scope.spawn(|| client.query("SELECT SLEEP(600) FROM here"));
            let running = "SELECT COUNT(*) FROM information_schema.processlist \
                           WHERE info LIKE 'SELECT SLEEP(600)%'";
            let mut admin = scene.pair.two.admin();
            wait_while(|| admin.value(running) == "0");
            login(&pool.address, &bank()).must(&format!("KILL QUERY {id}"));
            sleeps.join().unwrap().unwrap();
        });
    }
}

/// Limited numbers, each with the processes of a server that count, and how many stay at rest.
const LIMITED: [(&str, &str, &str); 2] = [
    ("backends", "user = 'bank'", "3"),
    ("running", "user = 'bank' AND info LIKE '%SLEEP(%'", "0"),
];

/// Asks a server for a count until that is within the limit: a server may count one for a moment
/// after it was closed, or has answered.
fn count_on(admin: &mut Client, which: &str, limit: usize) -> usize {
    let asked = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE {which}");
    until(|| match admin.value(&asked).parse().unwrap() {
        count if count <= limit => Ok(count),
        count => Err(format!("{count}, and {limit} may be: {which}")),
    })
}

#[test]
fn a_server_takes_and_runs_no_more_than_its_own_limits() {
    let all = LIMITED
        .into_iter()
        .flat_map(|it| scenes().map(move |scene| (scene, it)));
    for (scene, (what, counted, at_rest)) in all {
        let limits = LIMITS.map(|limit| format!("{what}_max = {limit}"));
        let settings = scene.settings("ca.pem", [&limits[0], &limits[1]]);
        let settings = format!("stall_ms_max = 60000\n{settings}");
        let pool = pool_from(&scene.pair.one, &settings);
        await_reader(&pool);
        let mut admins = [scene.pair.one.admin(), scene.pair.two.admin()];
        // The most on each while clients use the writer, and so many others read: until there have
        // been as many as may be, if there are any.
        let mut course = |readers: usize| {
            let (mut most, is_over, begun) = ([0; 2], AtomicBool::new(false), Instant::now());
            let has_all = AtomicBool::new(readers == 0);
            let goes_on = |round: &usize| {
                let is_awaited = !has_all.load(Ordering::SeqCst) && begun.elapsed() < LIMIT;
                *round < 40 || is_awaited
            };
            let goes_on = &goes_on;
            let names = std::thread::scope(|scope| {
                let _end = Stop(&is_over);
                let looks = scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        for (place, admin) in admins.iter_mut().enumerate() {
                            let count = count_on(admin, counted, LIMITS[place]);
                            most[place] = most[place].max(count);
                        }
                        has_all.fetch_or(most == LIMITS, Ordering::SeqCst);
                    }
                });
                let run = move |mut client: Client, sql: &'static str| -> Vec<String> {
                    let rounds = (0..).take_while(goes_on);
                    rounds.map(|_| client.value(sql)).collect()
                };
                let read = "SELECT name FROM here WHERE SLEEP(0.02) = 0";
                let all = (0..CLIENTS)
                    .map(|_| (login(&pool.address, &bank()), "SELECT SLEEP(0.01)"))
                    .chain((0..readers).map(|_| (reader(&pool), read)));
                let all: Vec<_> = all
                    .map(|(it, sql)| scope.spawn(move || run(it, sql)))
                    .collect();
                let names = all.into_iter().flat_map(|it| it.join().unwrap());
                let names: Vec<String> = names.collect();
                is_over.store(true, Ordering::SeqCst);
                looks.join().unwrap();
                names
            });
            (most, names)
        };
        let (most, names) = course(CLIENTS);
        assert_eq!(most, LIMITS, "{what}");
        for name in ["one", "two"] {
            let count = names.iter().filter(|it| *it == name).count();
            assert!(count >= 20, "{name} has answered {count}");
        }
        let mut console = console(&pool);
        let two = format!("SELECT {what}, {what}_max FROM servers WHERE name = 'two'");
        await_rows(&mut console, &two, [[at_rest, "3"]]);
        console.must("SWITCH TO two");
        let _ = course(0);
    }
}
