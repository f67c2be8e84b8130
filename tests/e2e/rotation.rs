//! Passwords that change while clients are served, and accounts that the server takes away.

use crate::world::*;
use wire::auth::Plugin;

/// A pool of one user, whose file can be written again.
struct World<'r> {
    real: &'r Real,
    name: &'static str,
    pool: Pool,
    console: Client,
}

impl<'r> World<'r> {
    /// Starts a pool for an account that has just been made with the password `old`.
    fn start(real: &'r Real, name: &'static str, user: &str) -> World<'r> {
        real.create_user(name, "old");
        let file = write(real, name, user);
        let pool = Pool::start(binary(), &["--config", file.to_str().unwrap()]).unwrap();
        let console = login(&console_of(&pool), &Account::new("admin", "secret"));
        World {
            real,
            name,
            pool,
            console,
        }
    }

    fn reload(&mut self, user: &str) {
        write(self.real, self.name, user);
        self.console.must("RELOAD");
    }

    /// Replaces all backends.
    fn reconnect(&mut self) {
        self.console.must("RECONNECT");
    }

    fn connect(&self, password: &str) -> Result<Client, ClientError> {
        Client::connect(&self.pool.address, &Account::new(self.name, password))
    }
}

fn write(real: &Real, name: &str, user: &str) -> std::path::PathBuf {
    write_with(real, name, user, "")
}

fn write_with(real: &Real, name: &str, user: &str, top: &str) -> std::path::PathBuf {
    let text = format!(
        "groups = 1\nbackends_max = 4\n{top}\n[backend]\naddress = \"{}\"\nmonitor_user = \"app\"\n\
         monitor_password = \"app\"\n[console]\nlisten = \"127.0.0.1:0\"\n\
         admin_user = \"admin\"\nadmin_password = \"secret\"\n\
         [[user]]\nname = \"{name}\"\n{user}\n",
        real.address()
    );
    config_file(real, &format!("{name}.toml"), &text)
}

/// The error of a command, behind which the client must have been closed.
fn farewell(client: &mut Client, command: Command, text: &[u8]) -> Failure {
    let failure = match client.run(command, text).unwrap().remove(0) {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    };
    assert!(client.query("SELECT 1").is_err(), "it is closed");
    failure
}

#[test]
fn clients_go_on_with_a_rotated_password() {
    for real in pooled_servers() {
        let mut world = World::start(real, "rotated", "password = \"old\"");
        let mut client = world.connect("old").unwrap();
        client.must("SET @kept = 7");
        real.execute(&["ALTER USER rotated@'%' IDENTIFIED BY 'new'"]);
        world.reload("password = \"new\"");
        world.reconnect();
        assert_eq!(client.value("SELECT @kept"), "7");
        assert_eq!(world.connect("new").unwrap().value("SELECT 1"), "1");
        assert!(world.connect("old").is_err());
        // Also who waits while the password that the file has is not the server's yet.
        real.execute(&["ALTER USER rotated@'%' IDENTIFIED BY 'newer'"]);
        world.reconnect();
        world.reload("password = \"newer\"");
        assert_eq!(client.value("SELECT @kept"), "7");
    }
}

/// Clients go on with the password of the file whatever has replaced their backends.
#[test]
fn clients_go_on_with_a_rotated_password_behind_age_idleness_and_a_restart() {
    for mut real in own_servers(&[]) {
        // What the accounts are must outlive the restart.
        real.execute(&["SET GLOBAL innodb_flush_log_at_trx_commit = 1"]);
        for (setting, restarts) in [
            ("backend_life_s_max = 1", false),
            ("backends_min = 0\nbackend_idle_ms_max = 10", false),
            ("", true),
        ] {
            real.execute(&["DROP USER IF EXISTS replaced@'%'"]);
            real.create_user("replaced", "old");
            let write = |password: &str| {
                let user = format!("password = \"{password}\"");
                write_with(&real, "replaced", &user, setting)
            };
            let file = write("old");
            let pool = Pool::start(binary(), &["--config", file.to_str().unwrap()]).unwrap();
            let account = Account::new("replaced", "old");
            let mut client = Client::connect(&pool.address, &account).unwrap();
            client.must("SET @kept = 7");
            real.execute(&["ALTER USER replaced@'%' IDENTIFIED BY 'new'"]);
            write("new");
            login(&console_of(&pool), &Account::new("admin", "secret")).must("RELOAD");
            if restarts {
                real.kill9();
                pool.wait_for("event=watch-lost").unwrap();
                real.restart().unwrap();
                pool.wait_for("event=server-back").unwrap();
            }
            let left = "SELECT COUNT(*) FROM information_schema.processlist WHERE user='replaced'";
            wait_while(|| real.admin().value(left) != "0");
            assert_eq!(client.value("SELECT @kept"), "7", "{setting}");
        }
    }
}

/// Statements that end an account on the server, and those that put it right again; the last is for
/// MySQL.
const ENDS: &str = "
    ALTER USER ended@'%' ACCOUNT LOCK => ALTER USER ended@'%' ACCOUNT UNLOCK
    ALTER USER ended@'%' REQUIRE X509 => ALTER USER ended@'%' REQUIRE NONE
    ALTER USER ended@'%' IDENTIFIED BY 'other' => ALTER USER ended@'%' IDENTIFIED BY 'old'
    RENAME USER ended@'%' TO gone@'%' => RENAME USER gone@'%' TO ended@'%'
    ALTER USER ended@'%' PASSWORD EXPIRE => ALTER USER ended@'%' IDENTIFIED BY 'old'";

/// A client that can go on no more is closed, by a statement as by COM_PING, with an error for
/// which drivers connect again; and who does so goes on once the account is right again.
#[test]
fn who_can_go_on_no_more_is_closed() {
    for real in pooled_servers() {
        let mut world = World::start(real, "ended", "password = \"old\"");
        let count = if real.flavour() == Flavour::MySql {
            5
        } else {
            4
        };
        for [end, repair] in table(ENDS).into_iter().take(count) {
            let [mut client, mut other] = [(); 2].map(|()| world.connect("old").unwrap());
            client.must("SELECT 1");
            other.must("SELECT 1");
            real.execute(&[end]);
            world.reconnect();
            for (command, text) in [(Command::Query, &b"SELECT 2"[..]), (Command::Ping, b"")] {
                let whose = match command {
                    Command::Query => &mut client,
                    _ => &mut other,
                };
                let said = farewell(whose, command, text);
                let got = (said.code, said.state.as_str());
                assert_eq!(got, (4031, "08S01"), "{end}: {}", said.message);
                assert!(said.message.contains("connect again"), "{}", said.message);
            }
            // Who has just logged in would meet the same again, and hears the server's words.
            let mut comes = world.connect("old").unwrap();
            let said = farewell(&mut comes, Command::Query, b"SELECT 2");
            assert_eq!(said.code, 1429, "{end}: {}", said.message);
            real.execute(&[repair]);
            let mut client = world.connect("old").unwrap();
            let value = (0..1000).find_map(|_| match client.query("SELECT 3") {
                Ok(outcomes) if matches!(outcomes[0], Outcome::Rows(_)) => Some(()),
                _ => {
                    client = world.connect("old").unwrap();
                    None
                }
            });
            assert!(value.is_some(), "{repair}");
            client.must("SELECT 3");
        }
    }
}

/// Both passwords of a rotation open the pool, whatever the plugin; the first one opens the server.
#[test]
fn two_passwords_open_the_pool_during_a_rotation() {
    for real in pooled_servers() {
        let mut world = World::start(real, "doubled", "password = [\"old\", \"new\"]");
        let by = |plugin| move |password| Account::new("doubled", password).plugin(plugin);
        let (native, sha2) = (by(Plugin::Native), by(Plugin::CachingSha2));
        let opens = |world: &World<'_>, account: &Account| {
            Client::connect(&world.pool.address, account).is_ok()
        };
        for account in [native, sha2] {
            assert!(opens(&world, &account("old")) && opens(&world, &account("new")));
            assert!(!opens(&world, &account("neither")) && !opens(&world, &account("")));
        }
        let mut client = world.connect("new").unwrap();
        client.must("SET @kept = 7");
        real.execute(&["ALTER USER doubled@'%' IDENTIFIED BY 'new'"]);
        world.reload("password = [\"new\", \"old\"]");
        world.reconnect();
        assert_eq!(client.value("SELECT @kept"), "7");
        assert!(opens(&world, &native("old")) && opens(&world, &sha2("old")));
        world.reload("password = \"new\"");
        assert!(opens(&world, &native("new")) && !opens(&world, &native("old")));
        assert!(opens(&world, &sha2("new")) && !opens(&world, &sha2("old")));
    }
}
