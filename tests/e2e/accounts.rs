//! `auth = "server"`: the accounts of the server log in through the pool as they do on the server.

use crate::console::{await_rows, rows};
use crate::metrics::{figures, place_of};
use crate::privileges::TOLD;
use crate::world::*;

/// The account that reads the others has no more than this.
const SERVICE: &str = "CREATE USER watcher@'%' IDENTIFIED BY 'watching'";

fn least(real: &Real) -> &'static str {
    match real.flavour() {
        Flavour::MariaDb => "GRANT SELECT ON mysql.global_priv TO watcher@'%'",
        Flavour::MySql => "GRANT SELECT ON mysql.user TO watcher@'%'",
    }
}

/// Lets the server's accounts in; `more` are users of the pool's own.
fn text(real: &Real, more: &str) -> String {
    format!(
        "auth = \"server\"\ngroups = 2\nbackends_max = 8\n[backend]\naddress = \"{}\"\n\
         monitor_user = \"watcher\"\nmonitor_password = \"watching\"\n{more}",
        real.address()
    )
}

fn start(real: &Real, name: &str, more: &str) -> Pool {
    start_text(real, name, &text(real, more))
}

fn start_text(real: &Real, name: &str, text: &str) -> Pool {
    let file = config_file(real, name, text);
    Pool::start(binary(), &["--config", file.to_str().unwrap()])
        .unwrap_or_else(|why| panic!("{why}"))
}

/// Reason for which a pool with this configuration does not start.
fn fails(real: &Real, name: &str, text: &str) -> String {
    let file = config_file(real, name, text);
    let started = Pool::start(binary(), &["--config", file.to_str().unwrap()]);
    started.map(drop).unwrap_err()
}

/// Error of a client that is asked for a plugin that it does not speak.
const ANOTHER_PLUGIN: (u16, String) = (0, String::new());

/// Outcome of a login and a first statement: the account that it is, or the error.
fn outcome(address: &Address, account: &Account) -> Result<String, (u16, String)> {
    match Client::connect(address, account) {
        Ok(mut client) => match &client.query("SELECT CURRENT_USER()").unwrap()[..] {
            [Outcome::Failed(failure)] => Err((failure.code, failure.message.clone())),
            [Outcome::Rows(_)] => Ok(client.value("SELECT CURRENT_USER()")),
            other => panic!("{other:?}"),
        },
        Err(ClientError::Refused(failure)) => Err((failure.code, failure.message)),
        // A name that MySQL does not know may be asked for any plugin.
        Err(other) if other.to_string().contains("unknown plugin") => Err(ANOTHER_PLUGIN),
        Err(other) => panic!("{}: {other}", account.user),
    }
}

/// Tries until a login through the pool ends as one on the server does: what has been changed there
/// is followed within a second or two.
fn follows(
    real: &Real,
    pool: &Pool,
    what: &str,
    account: &Account,
) -> Result<String, (u16, String)> {
    let own = outcome(&real.address(), account);
    until(|| {
        let through = outcome(&pool.address, account);
        let denied = |through: &(u16, String)| through.0 == 1045;
        let is_same = match &own {
            Err(error) if *error == ANOTHER_PLUGIN => through.as_ref().is_err_and(denied),
            own => through == *own,
        };
        let differs = || format!("{what}: on the server {own:?}, through the pool {through:?}");
        is_same.then_some(()).ok_or_else(differs)
    });
    own
}

/// Changes of the account, one after another; true if it may log in with `pw` then.
fn changes(flavour: Flavour) -> Vec<(&'static str, bool)> {
    let all = "CREATE USER u@'%' IDENTIFIED {NATIVE} 'pw' => yes
        ALTER USER u@'%' IDENTIFIED {NATIVE} 'other' => no
        SET PASSWORD FOR u@'%' = {PASSWORD} => yes
        ALTER USER u@'%' ACCOUNT LOCK => no
        ALTER USER u@'%' ACCOUNT UNLOCK => yes
        GRANT SELECT ON mysql.proc TO u@'%' => yes
        ALTER USER u@'%' REQUIRE SSL => no
        ALTER USER u@'%' REQUIRE NONE => yes
        RENAME USER u@'%' TO v@'%' => no
        RENAME USER v@'%' TO u@'%' => yes
        DROP USER u@'%' => no
        CREATE USER u@'127.0.0.1' IDENTIFIED {NATIVE} 'pw' => yes
        CREATE USER u@'127.%' IDENTIFIED {NATIVE} 'less specific' => yes
        DROP USER u@'127.0.0.1' => no
        CREATE USER ''@'127.0.0.1' IDENTIFIED {NATIVE} 'anonymous' => no
        DROP USER ''@'127.0.0.1' => no
        ALTER USER u@'127.%' IDENTIFIED {NATIVE} 'pw' => yes
        DROP USER u@'127.%' => no
        CREATE USER u@'127.0.0.0/255.0.0.0' IDENTIFIED {NATIVE} 'pw' => yes
        DROP USER u@'127.0.0.0/255.0.0.0' => no
        CREATE USER u@'10.%' IDENTIFIED {NATIVE} 'pw' => no
        DROP USER u@'10.%' => no
        CREATE USER u@'%' IDENTIFIED {NATIVE} 'pw' {EXPIRED} => no
        ALTER USER u@'%' IDENTIFIED {NATIVE} 'pw' => yes
        ALTER USER u@'%' WITH MAX_USER_CONNECTIONS 0 => yes
        DROP USER u@'%' => no
        CREATE USER u@'%' IDENTIFIED {NATIVE} '' => no";
    let changes = table(all).into_iter().map(|[sql, may]| (sql, may == "yes"));
    let mut changes: Vec<_> = changes.collect();
    match flavour {
        Flavour::MySql => changes.retain(|(sql, _)| !sql.contains("mysql.proc")),
        // It lets them in to change it, which the pool cannot.
        Flavour::MariaDb => {
            let expired = changes.iter_mut().find(|(sql, _)| sql.contains("EXPIRED"));
            *expired.unwrap() = ("CREATE USER u@'%' IDENTIFIED {NATIVE} 'another'", false);
        }
    }
    changes
}

fn in_words(flavour: Flavour, sql: &str) -> String {
    let (native, password) = match flavour {
        Flavour::MariaDb => ("BY", "PASSWORD('pw')"),
        Flavour::MySql => ("WITH caching_sha2_password BY", "'pw'"),
    };
    sql.replace("{EXPIRED}", "PASSWORD EXPIRE")
        .replace("{NATIVE}", native)
        .replace("{PASSWORD}", password)
}

#[test]
fn accounts_are_those_of_the_server() {
    for real in own_servers(&[]) {
        real.execute(&[SERVICE, least(&real)]);
        let pool = start(&real, "accounts.toml", "");
        let who = Account::new("u", "pw");
        assert!(follows(&real, &pool, "nobody", &who).is_err());
        for (sql, may) in changes(real.flavour()) {
            let sql = in_words(real.flavour(), sql);
            let wrong = Account::new("u", "wrong");
            real.execute(&[&sql]);
            let own = follows(&real, &pool, &sql, &who);
            assert_eq!(own.is_ok(), may, "{sql}: {own:?}");
            let _ = follows(&real, &pool, &format!("{sql}, wrong password"), &wrong);
            let what = format!("{sql}, no password");
            let _ = follows(&real, &pool, &what, &Account::new("u", ""));
        }
    }
}

/// Hosts that all mean who connects from 127.0.0.1.
const HOSTS: &str = "127.0.0.1 localhost 127.0.0.% 127.% %.0.0.1 127.0.0.0/255.255.255.0 \
                     127.0.0.0/255.0.0.0 %";

/// Addresses not looked up, and looked up: then 127.0.0.1 is `localhost` too.
const NAMES: [&str; 2] = ["--skip-name-resolve=1", "--skip-name-resolve=0"];

/// Each two hosts as two accounts with their own passwords: the same one decides.
#[test]
fn the_same_host_comes_first() {
    for real in NAMES
        .iter()
        .flat_map(|names| own_servers(std::slice::from_ref(names)))
    {
        let real = &real;
        real.execute(&[SERVICE, least(real)]);
        let mut accounts = Vec::new();
        for (number, first) in HOSTS.split(' ').enumerate() {
            for second in HOSTS.split(' ').skip(number + 1) {
                let user = format!("p{}", accounts.len());
                let create = |host: &str, password: &str| {
                    let sql =
                        format!("CREATE USER {user}@'{host}' IDENTIFIED {{NATIVE}} '{password}'");
                    real.execute(&[&in_words(real.flavour(), &sql)]);
                };
                // In the order that the server is not told.
                create(second, "second");
                create(first, "first");
                accounts.push((user, first, second));
            }
        }
        let pool = start(real, "hosts.toml", "");
        let mut differ = Vec::new();
        for (user, first, second) in accounts {
            for password in ["first", "second"] {
                let who = Account::new(&user, password);
                let own = outcome(&real.address(), &who);
                let through = outcome(&pool.address, &who);
                if through != own {
                    differ.push(format!("{first}, {second}, {password}: {}", own.is_ok()));
                }
            }
        }
        assert!(differ.is_empty(), "on the server: {differ:#?}");
    }
}

/// Clients are counted, not the connections that the pool has of them.
#[test]
fn clients_of_an_account_are_counted() {
    for real in own_servers(&[]) {
        create_all(&real, &["two", "other"]);
        real.execute(&["ALTER USER two@'%' WITH MAX_USER_CONNECTIONS 2"]);
        let pool = start(&real, "counted.toml", "");
        let two = Account::new("two", "pw");
        let refused = |address: &Address| match outcome(address, &two) {
            Err((code, text)) => (code, text),
            Ok(_) => panic!("a third one is let in"),
        };
        for address in [real.address(), pool.address.clone()] {
            let mut first = Client::connect(&address, &two).unwrap();
            let second = Client::connect(&address, &two).unwrap();
            let words = "User 'two' has exceeded the 'max_user_connections' resource";
            let expected = (1226, format!("{words} (current value: 2)"));
            assert_eq!(refused(&address), expected);
            // Who becomes another leaves room, and so does who leaves.
            first.change_user(&Account::new("other", "pw")).unwrap();
            let mut third = Client::connect(&address, &two).unwrap();
            third.must("SELECT 1");
            refused(&address);
            drop(second);
            wait_while(|| Client::connect(&address, &two).is_err());
        }
    }
}

/// A change is in effect once the watch has asked again behind its end, however busy the server is:
/// a look that sees a later change has followed the one before.
#[test]
fn a_changed_account_is_followed_by_the_next_look_under_load() {
    for real in own_servers(&[]) {
        let sql = |text: &str| in_words(real.flavour(), text);
        create_all(&real, &["u", "busy"]);
        let pool = start(&real, "load.toml", "");
        // More than there are backends, each with work for minutes.
        let hashes: &[u8] = b"SELECT SHA2(REPEAT('x', 4000000), 512)";
        let work = vec![(Command::Query, hashes); 1000];
        let busy = Account::new("busy", "pw");
        let mut clients: Vec<Client> = (0..12).map(|_| login(&pool.address, &busy)).collect();
        for client in &mut clients {
            client.send(&work).unwrap();
        }
        let seen = |change: &str, counter: &str| {
            let before = pool.said().lines().count();
            real.execute(&[change]);
            until(|| {
                let said = pool.said();
                let is_seen = |line: &str| line.contains(TOLD) && line.contains(counter);
                let is_seen = said.lines().skip(before).any(is_seen);
                is_seen.then_some(()).ok_or(said)
            });
        };
        for [change, counter, may] in table(
            "ALTER USER u@'%' IDENTIFIED {NATIVE} 'new' => Com_alter_user => no
             ALTER USER u@'%' IDENTIFIED {NATIVE} 'pw' => Com_alter_user => yes
             ALTER USER u@'%' ACCOUNT LOCK => Com_alter_user => no
             ALTER USER u@'%' ACCOUNT UNLOCK => Com_alter_user => yes
             DROP USER u@'%' => Com_drop_user => no",
        ) {
            seen(&sql(change), counter);
            seen("CREATE ROLE later", "Com_create_role");
            seen("DROP ROLE later", "Com_drop_role");
            let told = outcome(&pool.address, &Account::new("u", "pw"));
            assert_eq!(told.is_ok(), may == "yes", "{change}: {told:?}");
        }
    }
}

/// Figures name each account, not all of them together.
#[test]
fn figures_are_those_of_the_accounts() {
    for real in own_servers(&[]) {
        create_all(&real, &["report"]);
        let more = text(&real, crate::console::CONSOLE);
        let settings = format!("http = \"127.0.0.1:0\"\n{more}");
        let pool = start_text(&real, "figures.toml", &settings);
        let mut client = Client::connect(&pool.address, &Account::new("report", "pw")).unwrap();
        client.must("SELECT 1");
        let mut console = crate::console::admin(&console_of(&pool));
        for table in ["users", "recent_users"] {
            let question = format!("SELECT DISTINCT user, statements > 0 FROM {table}");
            await_rows(&mut console, &question, [["report", "1"]]);
        }
        assert_eq!(rows(&mut console, "SELECT clients FROM users"), [["1"]]);
        let figures = figures(&place_of(&pool));
        assert_eq!(figures["onramp_pool_user_clients{user=\"report\"}"], 1.0);
        assert!(figures.keys().all(|name| !name.contains("(server)")));
    }
}

/// Limits of accounts that the settings know by patterns of their names, before and after a reload.
#[test]
fn limits_go_by_names() {
    for real in own_servers(&[]) {
        let names = ["app_1", "app_2", "tool"];
        create_all(&real, &names);
        let settings = |limit: &str| {
            let like = format!("[[user]]\nname = 'app\\_%'\nauth = \"server\"\n{limit}\n");
            text(&real, &like).replacen("groups = 2", "groups = 2\nwait_ms_max = 3000", 1)
        };
        let pool = start_text(&real, "named.toml", &settings("account_backends_max = 1"));
        let log_in =
            |name: &str| Client::connect(&pool.address, &Account::new(name, "pw")).unwrap();
        for name in names {
            let (mut first, mut second) = (log_in(name), log_in(name));
            first.must(HOLD);
            match name {
                "tool" => assert_eq!(second.value("SELECT 1"), "1"),
                _ => assert_eq!(second.failure("SELECT 1").code, 9501, "{name}"),
            }
        }
        let _first = log_in("app_1");
        config_file(&real, "named.toml", &settings("clients_max = 1"));
        pool.hang_up().unwrap();
        let refused = until(|| {
            let second = outcome(&pool.address, &Account::new("app_2", "pw"));
            second.err().ok_or_else(|| "it has no limit".into())
        });
        assert_eq!(refused.0, 1203);
        log_in("tool").must("SELECT 1");
    }
}

#[test]
fn the_console_limits_an_account_of_the_server() {
    for real in own_servers(&[]) {
        create_all(&real, &["report", "tool"]);
        let like = "[[user]]\nname = \"%\"\nauth = \"server\"\n";
        let more = format!("{like}{}", crate::console::CONSOLE);
        let pool = start(&real, "console-limits.toml", &more);
        let mut console = crate::console::admin(&console_of(&pool));
        let log_in = |name: &str| Client::connect(&pool.address, &Account::new(name, "pw"));
        let refused = |name: &str| log_in(name).err().map(|error| error.to_string());
        // Who is logged in already counts, and has its limits.
        let mut first = log_in("report").unwrap();
        console.must("SET USER 'report' LIMIT clients_max = 1");
        let said = until(|| refused("report").ok_or_else(|| "it may log in".to_owned()));
        says(&said, "clients_max of this user is 1");
        assert_eq!(refused("tool"), None);
        pool.hang_up().unwrap();
        until(|| refused("report").ok_or_else(|| "it may log in".to_owned()));
        let shown = rows(&mut console, "SELECT rule, target, value FROM rules");
        assert_eq!(shown, [["user", "report", "clients_max = 1"]]);
        console.must("SET USER 'report' LIMIT clients_max = DEFAULT");
        until(|| refused("report").map_or(Ok(()), Err));
        console.must("SET USER 'report' LIMIT statement_ms_max = 2000");
        assert_eq!(first.failure("SELECT SLEEP(20)").code, 3024);
    }
}

#[test]
fn a_server_that_forgets_passwords_is_told_them_again() {
    let real = or_return!(pooled(own_mysql));
    let create = "CREATE USER u@'%' IDENTIFIED WITH caching_sha2_password BY 'pw'";
    real.execute(&[SERVICE, least(&real), create]);
    let pool = start(&real, "forgets.toml", "");
    let who = Account::new("u", "pw");
    let mut first = Client::connect(&pool.address, &who).unwrap();
    assert_eq!(first.talk().full_authentications, 1);
    first.must("SELECT 1");
    let mut second = Client::connect(&pool.address, &who).unwrap();
    assert_eq!(second.talk().full_authentications, 0);
    second.must("SELECT 1");
    real.execute(&["FLUSH PRIVILEGES"]);
    // Whoever logs in when the pool has seen it sends the password again.
    let mut third = until(|| {
        let client = Client::connect(&pool.address, &who).map_err(|error| error.to_string())?;
        let forgotten = "the pool goes on with what the server has forgotten";
        let is_asked = client.talk().full_authentications == 1;
        is_asked.then_some(client).ok_or_else(|| forgotten.into())
    });
    // All at once: more backends than there are.
    for client in [&mut first, &mut second, &mut third] {
        client.must(HOLD);
        client.must("SELECT 1");
    }
    for client in [&mut first, &mut second, &mut third] {
        client.must("COMMIT");
    }
    // A password that is no longer the account's is not tried on the server.
    real.execute(&[
        "ALTER USER u@'%' IDENTIFIED WITH caching_sha2_password BY 'new' \
         FAILED_LOGIN_ATTEMPTS 1 PASSWORD_LOCK_TIME UNBOUNDED",
    ]);
    let new = Account::new("u", "new");
    let _ = follows(&real, &pool, "a new password", &new);
    let mut failures = Vec::new();
    for client in [&mut first, &mut second, &mut third] {
        match client.query(HOLD) {
            Ok(outcomes) => match &outcomes[..] {
                [Outcome::Failed(failure)] => failures.push(failure.message.clone()),
                _ => {
                    client.must("SELECT 1");
                }
            },
            Err(_) => failures.push("closed".into()),
        }
    }
    let are_told = failures.iter().all(|why| why.contains("log in again"));
    assert!(are_told, "{failures:?}");
    assert!(outcome(&real.address(), &new).is_ok(), "it is not locked");
}

#[test]
fn who_cannot_be_let_in_is_told_why_and_the_file_comes_first() {
    let real = or_return!(pooled(own_server));
    real.execute(&[SERVICE]);
    // Whether or not the file has users besides.
    let user = "[[user]]\nname = \"app\"\npassword = \"app\"\n";
    for more in ["", user] {
        let why = fails(&real, "least.toml", &text(&real, more));
        let words = "auth: GRANT SELECT ON mysql.global_priv TO 'watcher'@'...' on the server";
        says(&why, words);
        let goes_on = why.contains("event=accounts-unread") || why.contains("hold on");
        assert!(!goes_on, "{why}");
    }
    // A login that is refused lacks no privilege.
    let wrong = text(&real, user).replace("\"watching\"", "\"wrong\"");
    let why = fails(&real, "wrong.toml", &wrong);
    says(&why, "cannot be read by 'watcher' (backend.monitor_user): ");
    says(&why, "Access denied for user 'watcher'");
    assert!(!why.contains("GRANT"), "{why}");
    assert!(!why.contains("event=watch-lost"), "{why}");
    real.execute(&[
        least(&real),
        "CREATE USER keyed@'%' IDENTIFIED VIA unix_socket",
        "CREATE USER listed@'%' IDENTIFIED BY 'on the server'",
        "CREATE USER hosts@'127.0.0.1' IDENTIFIED BY 'pw'",
        "CREATE USER hosts@'127.0.0.9' IDENTIFIED BY 'pw'",
    ]);
    let more = "[[user]]\nname = \"listed\"\npassword = \"in the file\"\n\
                backend_user = \"app\"\nbackend_password = \"app\"\n";
    let pool = start(&real, "file.toml", more);
    let (code, text) = outcome(&pool.address, &Account::new("keyed", "x")).unwrap_err();
    assert_eq!(code, 1251);
    says(&text, "'keyed'@'%' is authenticated by 'unix_socket'");
    let listed = outcome(&pool.address, &Account::new("listed", "in the file"));
    assert!(listed.unwrap().contains("app@%"));
    let (code, _) = outcome(&pool.address, &Account::new("listed", "on the server")).unwrap_err();
    assert_eq!(code, 1045);
    // The privilege is taken away: what was read holds on, and the log says so.
    real.execute(&["REVOKE SELECT ON mysql.global_priv FROM watcher@'%'"]);
    pool.wait_for("event=accounts-unread").unwrap();
    let still = outcome(&pool.address, &Account::new("hosts", "pw"));
    assert!(still.is_ok(), "{still:?}");
}

/// Errors of the question other than a missing privilege are said as they are: no GRANT helps.
#[test]
fn another_error_than_a_missing_privilege_names_no_grant() {
    let real = or_return!(pooled(own_server));
    real.execute(&[SERVICE, least(&real)]);
    let pool = start(&real, "no_table.toml", "");
    real.execute(&["RENAME TABLE mysql.global_priv TO mysql.accounts_away"]);
    let is_said = |why: &str| {
        let words = "cannot be read by 'watcher' (backend.monitor_user): expected rows";
        says(why, words);
        let part = "error 1146: Table 'mysql.global_priv' doesn't exist; no GRANT helps";
        says(why, part);
        assert!(!why.contains("GRANT SELECT"), "{why}");
    };
    let said = pool.wait_for("event=accounts-unread").unwrap();
    is_said(&said);
    assert!(said.contains("those that are known hold on"), "{said}");
    // And a pool does not begin to serve.
    is_said(&fails(&real, "no_table_2.toml", &text(&real, "")));
    real.execute(&["RENAME TABLE mysql.accounts_away TO mysql.global_priv"]);
}

/// The server takes the name from the pool's host for another account.
#[test]
fn another_account_than_the_proven_one_is_never_used() {
    let real = or_return!(pooled(own_server));
    real.execute(&[
        SERVICE,
        least(&real),
        "CREATE USER hosts@'%' IDENTIFIED BY 'pw'",
        "CREATE USER hosts@'127.0.0.1' IDENTIFIED BY 'pw'",
        "CREATE USER hosts@'localhost' IDENTIFIED BY 'pw'",
    ]);
    let socket = real.folder().join("accounts.sock");
    let file = config_file(&real, "another.toml", &text(&real, ""));
    let (config, listen) = (file.to_str().unwrap(), socket.to_str().unwrap());
    let pool = Pool::start(binary(), &["--config", config, "--listen", listen]).unwrap();
    let who = Account::new("hosts", "pw");
    // By TCP both sides are the same account; by the socket the client is 'hosts'@'localhost',
    // and the pool's backends come by TCP.
    let [through, own] = [&pool.address, &real.address()].map(|at| outcome(at, &who).unwrap());
    assert_eq!(through, own);
    let (_, text) = outcome(&Address::Unix(socket), &who).unwrap_err();
    let expected = "the client has proven to be 'hosts'@'localhost', and from the pool's host the \
                    server takes that name for 'hosts@127.0.0.1'";
    assert!(text.contains(expected), "{text}");
}

/// Starts a pool of one group, so that all clients share their backends.
fn start_one_group(real: &Real, name: &str) -> Pool {
    let text = text(real, "").replace("groups = 2", "groups = 1");
    start_text(real, name, &text)
}

/// Creates accounts beside the pool's own.
fn create_all(real: &Real, users: &[&str]) {
    real.execute(&[SERVICE, least(real)]);
    users.iter().for_each(|user| create(real, user));
}

fn create(real: &Real, user: &str) {
    let sql = format!("CREATE USER {user}@'%' IDENTIFIED {{NATIVE}} 'pw'");
    real.execute(&[&in_words(real.flavour(), &sql)]);
}

/// While the accounts cannot be read, the server judges each login: what was opened before a
/// password was changed serves nobody who logs in after that.
#[test]
fn without_the_watch_the_server_judges() {
    for real in own_servers(&[]) {
        let users = ["changed", "locked", "dropped", "same"];
        create_all(&real, &users);
        let pool = start_one_group(&real, "unwatched.toml");
        // Each leaves an idle backend.
        let mut before = users.map(|user| {
            let mut client = login(&pool.address, &Account::new(user, "pw"));
            client.must("SELECT 1");
            client
        });
        let of_watcher = "SELECT id FROM information_schema.processlist WHERE user = 'watcher'";
        let id = real.admin().value(of_watcher);
        real.execute(&["DROP USER watcher@'%'", &format!("KILL {id}")]);
        pool.wait_for("event=watch-lost").unwrap();
        let alter = "ALTER USER changed@'%' IDENTIFIED {NATIVE} 'other'";
        real.execute(&[
            &in_words(real.flavour(), alter),
            "ALTER USER locked@'%' ACCOUNT LOCK",
            "DROP USER dropped@'%'",
        ]);
        for user in ["changed", "locked", "dropped"] {
            let through = outcome(&pool.address, &Account::new(user, "pw"));
            let is_refused = matches!(&through, Err((1429, _)));
            assert!(is_refused, "{user} logs in as before: {through:?}");
        }
        assert!(outcome(&pool.address, &Account::new("same", "pw")).is_ok());
        // Who was there goes on, as on the server.
        before.iter_mut().for_each(|client| {
            client.must("SELECT 2");
        });
        real.execute(&[SERVICE, least(&real)]);
        pool.wait_for("event=watch-back").unwrap();
        let new = Account::new("changed", "other");
        assert!(follows(&real, &pool, "the watch is back", &new).is_ok());
    }
}

/// The password is changed while all backends of a session's account are held by others.
#[test]
fn who_cannot_get_a_backend_any_more_is_closed() {
    for real in own_servers(&[]) {
        create_all(&real, &["u"]);
        let pool = start_one_group(&real, "closed.toml");
        let login = || Client::connect(&pool.address, &Account::new("u", "pw")).unwrap();
        let (mut first, mut second, mut holder) = (login(), login(), login());
        first.must("SELECT 1");
        second.must("SELECT 1");
        holder.must(HOLD);
        holder.must("SELECT 1");
        let alter = "ALTER USER u@'%' IDENTIFIED {NATIVE} 'other'";
        real.execute(&[&in_words(real.flavour(), alter)]);
        let new = Account::new("u", "other");
        assert!(follows(&real, &pool, "another password", &new).is_ok());
        let failure = first.failure("SELECT 2");
        assert_eq!(failure.code, 4031, "{}", failure.message);
        says(&failure.message, "has been changed");
        says(&failure.message, "log in again");
        assert!(first.query("SELECT 3").is_err(), "it is closed");
        // What is free of before serves those of before.
        holder.must("COMMIT");
        second.must("SELECT 2");
    }
}

/// The server refuses an account while all backends of its sessions are held by others: whoever
/// waits for one is told so at once, and does not wait for those.
#[test]
fn a_refused_account_is_said_while_its_backends_are_held() {
    for real in own_servers(&[]) {
        real.execute(&[SERVICE, least(&real)]);
        for (refuse, words) in [
            ("ALTER USER u@'%' ACCOUNT LOCK", "locked"),
            ("DROP USER u@'%'", "Access denied"),
        ] {
            real.execute(&["DROP USER IF EXISTS u@'%'"]);
            create(&real, "u");
            let pool = start_one_group(&real, "refused_and_held.toml");
            let login = || Client::connect(&pool.address, &Account::new("u", "pw")).unwrap();
            let (mut waiter, mut in_transaction, mut pinned) = (login(), login(), login());
            let mut busy = login();
            in_transaction.must(HOLD);
            in_transaction.must("SELECT 1");
            pinned.must("SELECT GET_LOCK('held', 0)");
            real.execute(&[refuse]);
            let failure = waiter.failure("SELECT 2");
            assert_eq!(failure.code, 1429, "{}", failure.message);
            // Of a name that it does not know MySQL may ask for a plugin that the pool does not
            // speak, or for the password itself, behind which the client is closed.
            let closed = failure.message.contains("log in again");
            let is_asked = closed || failure.message.contains("spoken are");
            let is_said = failure.message.contains(words);
            let guards = real.flavour() == Flavour::MySql && refuse.starts_with("DROP");
            assert!(is_said || guards && is_asked, "{}", failure.message);
            if closed {
                assert!(waiter.query("SELECT 4").is_err());
                continue;
            }
            // Those who hold theirs go on, as on the server, and what they give back serves the
            // others.
            in_transaction.script("SELECT 3; COMMIT");
            waiter.must("SELECT 4");
            // One that only runs a statement gives its backend back: it is waited for.
            send(&mut busy, "SELECT SLEEP(0.3)");
            waiter.must("SELECT 5");
            busy.receive().unwrap();
            pinned.must("SELECT RELEASE_LOCK('held')");
        }
    }
}

#[test]
fn who_has_to_send_a_password_after_a_restart_is_closed() {
    let mut real = or_return!(pooled(own_mysql));
    // What the accounts are must outlive the kill: servers of tests do not wait for their disks.
    real.execute(&["SET GLOBAL innodb_flush_log_at_trx_commit = 1"]);
    real.execute(&[SERVICE, least(&real)]);
    create(&real, "u");
    let pool = start_one_group(&real, "restart.toml");
    let mut client = Client::connect(&pool.address, &Account::new("u", "pw")).unwrap();
    client.must("SELECT 1");
    real.kill9();
    pool.wait_for("event=watch-lost").unwrap();
    real.restart().unwrap();
    // Until the pool knows that the server is back, other errors say that it is not.
    wait_while(|| match &client.query("SELECT 2").unwrap()[..] {
        [Outcome::Failed(failure)] => {
            let why = &failure.message;
            let is_away = failure.code == 9507;
            assert!(!is_away || !why.contains("has been changed"), "{why}");
            let is_said = why.contains("log in again") || why.contains("the next login brings it");
            failure.code != 4031 || !is_said
        }
        other => panic!("{other:?}"),
    });
    assert!(client.query("SELECT 3").is_err(), "it is closed");
}

/// The pool's own questions are asked under the server's global values until it sets its own: a row
/// limit would hide accounts and code, and padded names would be nobody's.
#[test]
fn global_values_hide_nothing_from_the_pool() {
    for real in own_servers(&[]) {
        let names = ["u", "v", "w"];
        create_all(&real, &names);
        real.execute(&["GRANT ALL ON *.* TO watcher@'%'", "CREATE DATABASE code"]);
        for name in names {
            let trigger = "FOR EACH ROW SET @seen = 1";
            real.execute(&[
                &format!("GRANT ALL ON code.* TO {name}@'%'"),
                &format!("CREATE TABLE code.{name} (n INT)"),
                &format!("CREATE TRIGGER code.{name} BEFORE INSERT ON code.{name} {trigger}"),
            ]);
        }
        let modes = "'PAD_CHAR_TO_FULL_LENGTH,ANSI_QUOTES'";
        real.execute(&[&format!(
            "SET GLOBAL sql_mode = {modes}, GLOBAL sql_select_limit = 1"
        )]);
        let pool = start_one_group(&real, "global_values.toml");
        for name in names {
            let who = Account::new(name, "pw");
            let own = outcome(&real.address(), &who);
            assert!(own.is_ok(), "{name}: {own:?}");
            assert_eq!(outcome(&pool.address, &who), own, "{name}");
            let [mut writer, mut other] =
                [(); 2].map(|()| Client::connect(&pool.address, &who).unwrap());
            writer.must(&format!("INSERT INTO code.{name} VALUES (1)"));
            assert_eq!(other.value("SELECT IFNULL(@seen, 0)"), "0", "{name}");
            assert_eq!(writer.value("SELECT IFNULL(@seen, 0)"), "1", "{name}");
        }
    }
}
